//! Buffers that a peer has posted: how many may still be filled, and how many it is owed.
//!
//! As in MVICH's lineage: each packet takes buffers, each packet back returns those that were emptied, and
//! a packet of its own returns them when there is none to go with. A few are kept for such packets, so that
//! two ranks that send to each other never both wait for buffers.

use alloc::collections::VecDeque;

use wiretwin_units::Bytes;

use super::packet::{HEAD, Kind, Packet};

/// How buffers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Buffers that each rank posts for each other.
    pub buffers: u32,
    /// Those that only packets that return buffers may fill.
    pub reserve: u32,
    /// Emptied buffers that are returned by a packet of their own.
    pub return_after: u32,
    /// Octets of a buffer, heads included.
    pub buffer: Bytes,
}

impl Flow {
    /// Buffers for an eager message of so many octets.
    pub fn needed(&self, bytes: Bytes) -> u32 {
        let room = self.buffer.get() - HEAD;
        if bytes.get() <= room {
            return 1;
        }
        u32::try_from(bytes.get().div_ceil(room).max(1)).unwrap_or(u32::MAX)
    }

    /// Buffers that a packet takes: none for data written into memory.
    pub fn taken_by(&self, packet: &Packet) -> u32 {
        match packet.kind {
            Kind::Eager { .. } => self.needed(packet.bytes),
            _ => 1,
        }
    }
}

/// One peer.
#[derive(Clone, Debug)]
pub struct Credits {
    flow: Flow,
    available: u32,
    owed: u32,
    waiting: VecDeque<Packet>,
}

impl Credits {
    /// All buffers are empty.
    pub const fn new(flow: Flow) -> Self {
        Self { flow, available: flow.buffers, owed: 0, waiting: VecDeque::new() }
    }

    /// Buffers that may be filled.
    pub const fn available(&self) -> u32 {
        self.available
    }

    /// Packets that wait for buffers.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A packet is to go: it waits behind those that wait.
    pub fn push(&mut self, packet: Packet) {
        self.waiting.push_back(packet);
    }

    /// A packet goes past none that wait, if there are buffers for it; whether it does.
    #[inline]
    pub fn pass(&mut self, packet: &mut Packet) -> bool {
        let taken = self.flow.taken_by(packet);
        let passes = self.waiting.is_empty() && self.available >= taken + self.flow.reserve;
        if passes {
            self.available -= taken;
            packet.credit = core::mem::take(&mut self.owed);
        }
        passes
    }

    /// A packet has come, with buffers that are returned.
    pub fn came(&mut self, packet: &Packet) {
        self.available += packet.credit;
        self.owed += self.flow.taken_by(packet);
    }

    /// The next packet that goes.
    pub fn pop(&mut self) -> Option<Packet> {
        let taken = self.waiting.front().map(|packet| self.flow.taken_by(packet));
        let mut packet = match taken {
            Some(taken) if self.available >= taken + self.flow.reserve => self.waiting.pop_front()?,
            _ if self.owed >= self.flow.return_after && self.available > 0 => Packet::of(Kind::Credit),
            _ => return None,
        };
        self.available -= self.flow.taken_by(&packet);
        packet.credit = core::mem::take(&mut self.owed);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow { buffers: 4, reserve: 1, return_after: 1, buffer: Bytes::new(HEAD + 100) };

    fn eager(bytes: u64) -> Packet {
        let mut packet = Packet::of(Kind::Eager { synchronous: false });
        packet.bytes = Bytes::new(bytes);
        packet
    }

    #[test]
    fn a_message_waits_for_as_many_buffers_as_it_takes() {
        let mut credits = Credits::new(FLOW);
        credits.push(eager(201));
        credits.push(eager(0));
        assert_eq!(credits.pop().map(|packet| packet.bytes), Some(Bytes::new(201)));
        assert_eq!(credits.available(), 1);
        assert_eq!(credits.pop(), None, "the last buffer is kept");
        let mut back = Packet::of(Kind::Credit);
        back.credit = 1;
        credits.came(&back);
        let next = credits.pop().expect("there is room");
        assert_eq!((next.kind, next.credit), (Kind::Eager { synchronous: false }, 1), "and returns one");
    }

    #[test]
    fn two_that_flood_each_other_go_on() {
        let mut ends = [Credits::new(FLOW), Credits::new(FLOW)];
        for end in &mut ends {
            (0..100).for_each(|_| end.push(eager(250)));
        }
        let mut came = [0, 0];
        loop {
            let mut moved = false;
            for from in 0..2 {
                while let Some(packet) = ends[from].pop() {
                    moved |= packet.kind != Kind::Credit;
                    came[1 - from] += u32::from(packet.kind != Kind::Credit);
                    ends[1 - from].came(&packet);
                    assert!(ends[1 - from].owed <= FLOW.buffers, "no buffer is filled twice");
                    if packet.kind == Kind::Credit {
                        break;
                    }
                }
            }
            if !moved && came == [100, 100] {
                break;
            }
        }
        assert_eq!(came, [100, 100]);
    }
}
