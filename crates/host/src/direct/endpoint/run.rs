//! Messages in a row: where several have gone to one peer of another host without a look at what has come between, more are
//! likely to follow, and wait for each other.

use super::Endpoint;

/// Messages of a run that go at once.
const AT_ONCE: u32 = 4;

/// Messages that were sent to one peer in one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    peer: usize,
    turn: u32,
    sent: u32,
    /// What is being sent may wait for what follows.
    pub is_on: bool,
}

impl Endpoint {
    /// Counts a message that is about to be sent to a peer.
    #[inline]
    pub(super) fn run_on(&mut self, peer: usize) {
        let Run { turn, sent, .. } = self.run;
        let follows = turn == self.turn && self.run.peer == peer;
        let sent = if follows { sent + 1 } else { 1 };
        let is_on = sent > AT_ONCE && !self.peers[peer].uses_memory;
        self.run = Run { peer, turn: self.turn, sent, is_on };
    }

    /// Sends what still waits of a run.
    #[inline]
    pub(super) fn end_run(&mut self) {
        if self.run.sent > AT_ONCE {
            self.run.sent = 0;
            self.flush();
        }
    }

    /// Sends the frames that wait, unless more are likely to follow.
    #[inline]
    pub(super) fn flush(&mut self) {
        let Some(network) = &mut self.network else { return };
        if self.run.is_on { network.hold() } else { network.flush() }
    }
}
