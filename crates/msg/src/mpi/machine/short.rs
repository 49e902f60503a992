//! The way of nearly every short message over counted buffers: a send that goes at once, and a message that its
//! receive waits for. The machine hears of each in one step, keeps nothing of it and has nothing to put out for it.
//!
//! What is not as usual is rejected with nothing begun, and goes the long way.

use wiretwin_units::Bytes;

use super::{Envelope, Kind, Machine, Mode, Outgoing, Packet, Request};

impl Machine {
    /// Whether nobody waits for a message, none was kept, and nothing is left to put out.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.receives.is_empty() && self.arrived.is_empty() && self.own.is_empty() && !self.has_outputs()
    }

    /// Whether [`Machine::poll_output`] has something.
    #[inline]
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// A standard send that goes eagerly, whose data the transport copies at once: its packet, and it is over. `None`
    /// if it is not so, or has to wait.
    #[inline]
    pub fn send_at_once(&mut self, request: Request, outgoing: &Outgoing) -> Option<Packet> {
        let Outgoing { to, context, tag, bytes, mode, .. } = *outgoing;
        let is_eager = self.policy.rendezvous_from.is_none_or(|from| bytes < from);
        let is_usual = is_eager && mode == Mode::Standard && self.policy.window.is_none();
        if !is_usual || to == self.rank || self.has_outputs() {
            return None;
        }
        let peer = self.peers.get_mut(to as usize).filter(|peer| peer.refused.is_none())?;
        let mut packet = Packet::of(Kind::Eager { synchronous: false });
        packet.envelope = Envelope { context, source: self.rank, tag };
        packet.bytes = bytes;
        packet.send = request.0;
        peer.credits.as_mut()?.pass(&mut packet).then_some(packet)
    }

    /// A whole eager message has come to the only receive that there is, which was not posted; false if it should
    /// go elsewhere.
    #[inline]
    pub fn take_at_once(&mut self, from: u32, packet: &Packet) -> bool {
        let is_usual = packet.kind == Kind::Eager { synchronous: false } && self.policy.window.is_none();
        if !is_usual || !self.is_bare() || packet.matched > Bytes::new(0) {
            return false;
        }
        let peer = self.peers.get_mut(from as usize).filter(|peer| peer.refused.is_none());
        let Some(credits) = peer.and_then(|peer| peer.credits.as_mut()) else { return false };
        credits.came(packet);
        while let Some(packet) = self.peers[from as usize].credits.as_mut().and_then(|credits| credits.pop())
        {
            self.transmit(from, packet);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_proto::Output;
    use wiretwin_units::SimTime;

    use super::super::{Incoming, Transmit};
    use super::*;
    use crate::matching::Pattern;
    use crate::mpi::Policy;

    fn outgoing(to: u32, bytes: u64, mode: Mode) -> Outgoing {
        Outgoing { to, context: 0, tag: 1, bytes: Bytes::new(bytes), mode, buffer: 0 }
    }

    #[test]
    fn a_short_message_is_over_at_once_and_what_is_not_short_is_left_alone() {
        let mut ends = [0, 1].map(|rank| Machine::new(rank, 2, Policy::mvich()));
        let packet = ends[0].send_at_once(Request(1), &outgoing(1, 8, Mode::Standard)).expect("it goes");
        assert_eq!((packet.bytes, packet.envelope.tag, packet.credit), (Bytes::new(8), 1, 0));
        assert!(ends[1].take_at_once(0, &packet));
        assert!(!ends[1].has_outputs() && ends[1].open() == 0);
        let back = ends[1].send_at_once(Request(1), &outgoing(0, 8, Mode::Standard)).expect("it goes");
        assert_eq!(back.credit, 1, "the buffer goes back with what goes");
        for refused in [
            outgoing(0, 8, Mode::Standard),
            outgoing(2, 8, Mode::Standard),
            outgoing(1, 8, Mode::Synchronous),
            outgoing(1, 1 << 20, Mode::Standard),
        ] {
            assert_eq!(ends[0].send_at_once(Request(2), &refused), None, "{refused:?}");
        }
        assert_eq!(ends[0].open(), 0);
    }

    #[test]
    fn buffers_that_nothing_takes_back_are_returned_and_no_more_are_filled_than_there_are() {
        let mut ends = [0, 1].map(|rank| Machine::new(rank, 2, Policy::mvich()));
        let flow = Policy::mvich().flow.expect("it counts buffers");
        let mut gone = 0;
        while let Some(packet) = ends[0].send_at_once(Request(gone), &outgoing(1, 8, Mode::Standard)) {
            gone += 1;
            if gone < u64::from(flow.return_after) {
                assert!(ends[1].take_at_once(0, &packet) && !ends[1].has_outputs());
            } else if gone == u64::from(flow.return_after) {
                assert!(ends[1].take_at_once(0, &packet));
                let Output::Transmit(Transmit::Packet { to: 0, packet }) = ends[1].poll_output() else {
                    panic!("buffers are returned")
                };
                assert_eq!((packet.kind, packet.credit), (Kind::Credit, flow.return_after));
            }
        }
        assert_eq!(gone, u64::from(flow.buffers - flow.reserve), "as many as may be filled");
    }

    #[test]
    fn a_message_goes_the_long_way_where_another_waits_or_was_kept() {
        let mut ends = [0, 1].map(|rank| Machine::new(rank, 2, Policy::mvich()));
        let packet = ends[0].send_at_once(Request(1), &outgoing(1, 8, Mode::Standard)).expect("it goes");
        let any = Pattern { context: 0, source: None, tag: Some(7) };
        let incoming = Incoming { pattern: any, capacity: Bytes::new(8), buffer: 0 };
        ends[1].receive(SimTime::ZERO, Request(1), incoming).expect("a receive");
        assert!(!ends[1].take_at_once(0, &packet), "a receive is posted");
        let mut other = Machine::new(1, 2, Policy::mvich());
        other.handle_packet(SimTime::ZERO, 0, packet);
        while !matches!(other.poll_output(), Output::Timeout(_)) {}
        assert!(!other.is_bare() && !other.take_at_once(0, &packet), "one was kept");
    }
}
