//! Where packets lie while they are under way.

use wiretwin_proto::tcp::Segment;

/// A packet: a segment, and who it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub segment: Segment,
    /// The flow and the end of it that receives.
    pub flow: u32,
    pub end: u8,
    /// Octets of the packet, IP header included.
    pub octets: u32,
}

/// Packets by number; a number is given out again when its packet has left.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Arena {
    pub(super) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(number) = self.free.pop() {
            self.packets[number as usize] = packet;
            return number;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    pub(super) fn get(&self, number: u32) -> &Packet {
        &self.packets[number as usize]
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Packets that are under way.
    pub(super) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
