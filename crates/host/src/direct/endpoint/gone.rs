//! Peers whose processes have ended.

use wiretwin_proto::MessageId;

use super::{Endpoint, Trouble};

/// Turns in which what a peer of another host had sent before its end is taken.
const LAST_TURNS: u32 = 1 << 12;

impl Endpoint {
    /// Has the kernel tell of the end of a peer that something is sent to or waited for from.
    #[inline]
    pub(super) fn watch(&mut self, number: usize) {
        if !self.peers[number].is_watched {
            self.begin_watch(number);
        }
    }

    #[cold]
    fn begin_watch(&mut self, number: usize) {
        let peer = &mut self.peers[number];
        // One that has only been heard of holds a connection itself.
        let Some(address) = peer.address.filter(|address| address.key != self.local.key) else { return };
        peer.is_watched = true;
        if let Some(ends) = &mut self.ends {
            // Without a connection the peer's end is not noticed, and all else goes on.
            let _ = ends.reach(address);
        }
    }

    /// Looks for peers whose processes have ended.
    pub(super) fn look_at_peers(&mut self) {
        let mut ended = Vec::new();
        if let Some(ends) = &mut self.ends {
            ends.look(self.local.key, |key| ended.push(key));
        }
        let ended = ended.iter().filter_map(|key| self.by_key.get(key).copied());
        let ended: Vec<_> = ended.filter(|&number| !self.peers[number].is_gone).collect();
        if !ended.is_empty() {
            // What they sent before their end is still there.
            let mut turns = 0..LAST_TURNS;
            if let Some(network) = &mut self.network {
                network.ask_kernel();
            }
            while self.take_datagrams() && turns.next().is_some() {}
        }
        ended.into_iter().for_each(|number| self.lose(number));
        for number in 0..self.peers.len() {
            let peer = &self.peers[number];
            let is_closed = peer.out.as_ref().is_some_and(|out| out.is_closed())
                || peer.into.as_ref().is_some_and(|into| into.is_closed());
            if is_closed && !peer.is_gone {
                // What it sent before its end is still there.
                while self.take_memory(number) {}
                self.lose(number);
            }
        }
    }

    /// A peer's process is no more.
    pub(super) fn lose(&mut self, number: usize) {
        let peer = &mut self.peers[number];
        peer.is_gone = true;
        (peer.out, peer.into, peer.timeout, peer.is_stuck) = (None, None, None, false);
        peer.kept.clear();
        let sink = peer.sink.take();
        self.inbox.lose(number, sink);
        for id in self.sends.find(|sending| sending.peer == number) {
            self.done(MessageId(id as u64), Some(Trouble::PeerGone));
        }
    }
}
