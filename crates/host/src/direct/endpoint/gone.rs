//! Peers whose processes have ended.

use wiretwin_proto::MessageId;

use super::super::ends::Told;
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
        self.look_at_ends();
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

    /// Looks at the connections that tell of peers' ends.
    pub(super) fn look_at_ends(&mut self) {
        let mut all = Vec::new();
        let Some(ends) = &mut self.ends else { return };
        ends.look(self.local.key, |told| all.push(told));
        if ends.take_changed() {
            for peer in &mut self.peers {
                peer.machine.hand_over(ends.way_to(peer.key).is_some());
            }
        }
        let number_of = |key: &u64| self.by_key.get(key).copied();
        let mut ended = Vec::new();
        let mut brought = Vec::new();
        for told in all {
            match told {
                Told::Lost { peer } => ended.extend(number_of(&peer)),
                Told::Bytes { from } => brought.extend(number_of(&from)),
            }
        }
        for number in brought {
            self.take_stream(number);
        }
        ended.retain(|&number| !self.peers[number].is_gone);
        if !ended.is_empty() {
            // What they sent before their end is still there.
            let mut turns = 0..LAST_TURNS;
            if let Some(network) = &mut self.network {
                network.ask_kernel();
            }
            while self.take_datagrams() && turns.next().is_some() {}
        }
        for number in ended {
            while self.take_stream(number) {}
            self.lose(number);
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
        self.end_streams(number);
        for id in self.sends.find(|sending| sending.peer == number) {
            self.done(MessageId(id as u64), Some(Trouble::PeerGone));
        }
    }
}
