//! Where packets lie while they are under way.

use wiretwin_proto::direct::Frame;
use wiretwin_proto::tcp::{Ecn, Segment};

/// What every hop of a packet needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Where the number of its next line stands in the list of paths.
    pub place: u32,
    /// Bytes of the packet, IP header included; zero where the number is free.
    pub bytes: u32,
}

/// What only its ends need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The end that receives.
    pub end: u32,
    pub unit: Unit,
}

/// What a packet is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// A segment of TCP.
    Segment(Segment),
    /// A datagram of an echo: which, counted from its first.
    Datagram(u32),
    /// A frame of the direct transport, which lies apart.
    Frame,
    /// A piece of a message, which nothing loses.
    Piece,
}

/// Packets by number; a number is given out again when its packet has left.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    /// Apart, so that what hops touch is a few bytes a packet.
    pub packets: Vec<Packet>,
    loads: Vec<Load>,
    /// Of packets that are frames, which are longer than segments; none where no packet is one.
    frames: Vec<Frame>,
    free: Vec<u32>,
}

impl Slab {
    #[inline]
    pub(super) fn insert(&mut self, packet: Packet, load: Load) -> u32 {
        if let Some(number) = self.free.pop() {
            self.packets[number as usize] = packet;
            self.loads[number as usize] = load;
            return number;
        }
        self.packets.push(packet);
        self.loads.push(load);
        (self.packets.len() - 1) as u32
    }

    /// The packet of this number is a frame.
    pub(super) fn keep_frame(&mut self, number: u32, frame: Frame) {
        let wanted = self.packets.len().max(self.frames.len());
        self.frames.resize(wanted, frame);
        self.frames[number as usize] = frame;
    }

    /// The frame that a packet of this number is, or was until another took its number.
    pub(super) fn frame(&self, number: u32) -> Frame {
        self.frames[number as usize]
    }

    pub(super) fn load(&self, number: u32) -> &Load {
        &self.loads[number as usize]
    }

    /// Marks a packet of TCP that may be marked; whether it is one.
    #[cold]
    pub(super) fn mark(&mut self, number: u32) -> bool {
        let Unit::Segment(segment) = &mut self.loads[number as usize].unit else { return false };
        let may = segment.ecn != Ecn::NotCapable;
        if may {
            segment.ecn = Ecn::Congestion;
        }
        may
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.packets[number as usize].bytes = 0;
        self.free.push(number);
    }

    /// Packets that are under way.
    pub(super) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Each packet that is under way.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(|packet| packet.bytes > 0)
    }
}
