//! Peers that go, or with which there is no talking: what hangs on them fails.
//!
//! What a peer sent whole before it went may still be taken. Choice: a receive from any source fails when the last
//! of the other ranks has gone, though the rank might still send to itself: nobody else will, and it would wait for
//! ever.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::{Arrived, Done, Failure, HERE, Machine, Receiving};
use crate::library::Request;
use crate::mpi::credit::Credits;
use crate::mpi::packet::Kind;
use crate::mpi::policy::Terms;

impl Machine {
    /// What the peer's library is set to: requests with a peer that is set differently fail.
    pub fn handle_terms(&mut self, _now: SimTime, rank: u32, terms: &Terms) {
        if let Err(mismatch) = self.policy.terms().agree(terms) {
            self.refuse(rank, Failure::Mismatch { rank, mismatch });
        }
    }

    /// The peer has gone.
    pub fn handle_lost(&mut self, _now: SimTime, rank: u32) {
        self.refuse(rank, Failure::PeerLost { rank });
    }

    /// Why nobody may send what is asked for: its source, or with any source the last of all others, has gone.
    pub(super) fn hopeless(&self, source: Option<u32>) -> Option<Failure> {
        match source {
            Some(source) => self.peers.get(source as usize)?.refused.as_deref().copied(),
            None => self.alone,
        }
    }

    fn refuse(&mut self, rank: u32, failure: Failure) {
        let Some(peer) = self.peers.get_mut(rank as usize) else { return };
        peer.refused = Some(Box::new(failure));
        peer.credits = self.policy.flow.map(Credits::new).map(Box::new);
        let mut others = self.peers.iter().enumerate().filter(|(other, _)| *other != self.rank as usize);
        if others.all(|(_, peer)| peer.refused.is_some()) {
            self.alone = Some(failure);
        }
        self.fail_sends(rank, failure);
        self.fail_receives(rank, failure);
        // The data of a rendezvous do not come any more: nobody may take its envelope.
        let matcher = &mut self.matcher;
        self.arrived.retain(|&id, Arrived { from, packet }| {
            let stays = *from != rank || packet.kind != Kind::Request;
            if !stays {
                matcher.withdraw(HERE, &packet.envelope, id);
            }
            stays
        });
    }

    fn fail_sends(&mut self, rank: u32, failure: Failure) {
        let theirs: Vec<u64> =
            self.sends.iter().filter(|(_, send)| send.outgoing.to == rank).map(|(&id, _)| id).collect();
        for id in theirs {
            let Some(send) = self.sends.remove(&id) else { continue };
            let request = Request(id);
            if send.cancelling {
                self.done(Done::Cancelled { request, done: false });
            }
            if send.told {
                self.buffered -= send.outgoing.bytes;
            } else {
                self.done(Done::Failed { request, failure });
            }
        }
    }

    fn fail_receives(&mut self, rank: u32, failure: Failure) {
        let alone = self.alone.is_some();
        let hopeless = |receive: &Receiving| match (&receive.matched, receive.incoming.pattern.source) {
            (Some(matched), _) => matched.0 == rank,
            (None, Some(source)) => source == rank,
            (None, None) => alone,
        };
        let theirs: Vec<u64> =
            self.receives.iter().filter(|(_, receive)| hopeless(receive)).map(|(&id, _)| id).collect();
        for id in theirs {
            let Some(receive) = self.receives.remove(&id) else { continue };
            if let Some(posted) = receive.posted {
                self.matcher.cancel(posted, id);
            }
            self.done(Done::Failed { request: Request(id), failure });
        }
    }
}
