//! Frames that come, through memory and from the network.

use std::net::SocketAddrV4;

use wiretwin_proto::Payload;
use wiretwin_proto::direct::Kept;
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::direct::{Body, Repr, is_sound};

use super::super::ether::Mac;
use super::super::network::Network;
use super::{Endpoint, MessageId, TURN};

/// Datagrams that are taken from the network before others have their turn: not so few that reading the clock counts.
const BURST: usize = 4 * TURN;

impl Endpoint {
    pub(super) fn take_memory(&mut self, number: usize) -> bool {
        let Some(mut into) = self.peers[number].into.take() else { return false };
        let mut moved = false;
        for _ in 0..TURN {
            if !into.take(|frame| self.frame(number, frame)) {
                break;
            }
            moved = true;
        }
        // A peer that was lost meanwhile has no way any more.
        if !self.peers[number].is_gone {
            self.peers[number].into = Some(into);
        }
        moved
    }

    /// Takes what has come from the network: whether there was something.
    #[inline]
    pub(super) fn take_datagrams(&mut self) -> bool {
        // First what the kernel brings: what went past it may have been sent later.
        let mut moved = false;
        for _ in 0..TURN {
            let Some(came) = self.network.as_mut().and_then(Network::receive) else { break };
            moved = true;
            self.now = SimTime::ZERO + self.clock.now();
            came.frames().for_each(|frame| {
                self.carried.udp += 1;
                self.datagram(frame, came.from, None);
            });
            if let Some(network) = &mut self.network {
                network.give_back(came);
            }
        }
        self.take_past_kernel() | moved
    }

    #[inline]
    fn take_past_kernel(&mut self) -> bool {
        let Some(mut into) = self.network.as_mut().and_then(|network| network.into.take()) else {
            return false;
        };
        let mut count = 0;
        while count < BURST
            && into.take(|frame, from, mac| {
                if count == 0 {
                    self.now = SimTime::ZERO + self.clock.now();
                }
                self.carried.past += 1;
                self.datagram(frame, from, Some(mac));
            })
        {
            count += 1;
        }
        if let Some(network) = &mut self.network {
            network.into = Some(into);
        }
        count > 0
    }

    pub(super) fn datagram(&mut self, frame: &[u8], from: SocketAddrV4, mac: Option<Mac>) {
        if !is_sound(frame) {
            return;
        }
        let Ok(repr) = Repr::parse(frame) else { return };
        let number = match repr.body {
            _ if repr.key != self.local.key => return,
            Body::Hello { key, .. } => match self.by_key.get(&key) {
                Some(&number) => number,
                None => self.add(key, false, from),
            },
            _ => usize::from(repr.lane),
        };
        let Some(peer) = self.peers.get_mut(number).filter(|peer| !peer.is_gone && !peer.uses_memory) else {
            return;
        };
        if mac.is_some() && mac != peer.mac && peer.datagrams == from {
            let is_near = self.network.as_ref().is_some_and(|network| network.is_near(*from.ip()));
            peer.mac = mac.filter(|_| is_near);
        }
        self.parsed(number, &repr, frame);
    }

    /// A frame from a peer, through memory: nothing damages it.
    #[inline]
    fn frame(&mut self, number: usize, frame: &[u8]) {
        if let Ok(repr) = Repr::parse(frame) {
            self.carried.memory += 1;
            self.parsed(number, &repr, frame);
        }
    }

    #[inline]
    fn parsed(&mut self, number: usize, repr: &Repr, frame: &[u8]) {
        let bytes = &frame[repr.head_octets()..];
        if self.take_at_once(number, repr, bytes) {
            self.measure_held();
            return;
        }
        self.next_frame += 1;
        let id = self.next_frame;
        let payload = Payload::whole(MessageId(id), Bytes::new(bytes.len() as u64));
        let peer = &mut self.peers[number];
        if peer.machine.handle_frame(self.now, repr, payload) == Kept::Yes {
            peer.kept.insert(id, bytes.to_vec());
        }
        self.drain(number, bytes);
        self.measure_held();
    }
}
