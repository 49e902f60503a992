//! The Internet Protocol at a host: identification, fragmentation, reassembly, time to live.
//!
//! RFC 791 (1981) with RFC 1122 §3.2 and §3.3. [`Sender`] makes packets of datagrams, cut where they are
//! longer than the link carries; [`Receiver`] makes datagrams of packets; [`forward`] is what a router
//! does to one. Left out: options, source routes, type of service, ICMP as a protocol of its own: what it
//! would report are errors and events here, and the driver sends them on.
//!
//! What a packet carries is a handle of the driver's, `D`, on the datagram that it is a piece of; every
//! fragment bears it.

use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::ipv4::{Ends, HEADER_OCTETS, MAX_PACKET_OCTETS, Protocol};

mod receiver;
mod sender;

pub use receiver::{Config, Dropped, Received, Receiver, ReceiverOutput, Why};
pub use sender::{SendError, Sender, SenderConfig, SenderOutput};

/// A datagram of the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<D> {
    /// From whom, to whom.
    pub ends: Ends,
    /// Whose it is.
    pub protocol: Protocol,
    /// Octets of it, without the IP header: 0 to 65515.
    pub length: u16,
    /// Whether it may be cut; a datagram that may not is rejected where it would have to be.
    pub dont_fragment: bool,
    /// The datagram.
    pub content: D,
}

/// A packet: a datagram, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<D> {
    /// From whom, to whom.
    pub ends: Ends,
    /// Whose the datagram is.
    pub protocol: Protocol,
    /// Which of the sender's datagrams.
    pub identification: u16,
    /// Routers that it may pass.
    pub time_to_live: u8,
    /// Whether it may be cut.
    pub dont_fragment: bool,
    /// Whether more of the datagram follows it.
    pub more_fragments: bool,
    /// Octets of the datagram before it; a multiple of 8.
    pub offset: u16,
    /// Octets of the datagram in it.
    pub length: u16,
    /// An octet of the header is not as it was sent. Its checksum will find it. (One of the datagram
    /// itself is for the layer above to find.)
    pub header_corrupted: bool,
    /// An octet of the datagram is not as it was sent. The layer above will find it, or not.
    pub content_corrupted: bool,
    /// The datagram that it is a piece of.
    pub content: D,
}

impl<D> Packet<D> {
    /// Octets of it, header included.
    pub const fn octets(&self) -> u32 {
        HEADER_OCTETS as u32 + self.length as u32
    }

    /// Whether it is a fragment.
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.offset > 0
    }
}

/// Why a router does not send a packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardError {
    /// It has passed as many routers as it might: ICMP time exceeded, code 0.
    TimeToLive,
    /// Its header is damaged: it is dropped without a word.
    Corrupted,
    /// It may not be cut and is longer than the next link carries: ICMP destination unreachable, code
    /// 4.
    FragmentationNeeded {
        /// Octets of the packet.
        octets: Bytes,
        /// What the link carries.
        mtu: Bytes,
    },
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeToLive => f.write_str("time to live exceeded in transit"),
            Self::Corrupted => f.write_str("a damaged header"),
            Self::FragmentationNeeded { octets, mtu } => {
                let (octets, mtu) = (octets.get(), mtu.get());
                write!(f, "a packet of {octets} octets that may not be cut, for a link that carries {mtu}")
            }
        }
    }
}

impl core::error::Error for ForwardError {}

/// What a router does to a packet: one less to live, and as many pieces as the next link needs (RFC 791
/// §3.2, RFC 1812 §5.3.1).
///
/// # Errors
/// [`ForwardError`] where it is not sent on.
pub fn forward<D: Clone>(packet: &Packet<D>, mtu: u16) -> Result<Fragments<D>, ForwardError> {
    if packet.header_corrupted {
        return Err(ForwardError::Corrupted);
    }
    if packet.time_to_live <= 1 {
        return Err(ForwardError::TimeToLive);
    }
    let packet = Packet { time_to_live: packet.time_to_live - 1, ..packet.clone() };
    if packet.dont_fragment && packet.octets() > u32::from(mtu) {
        return Err(ForwardError::FragmentationNeeded {
            octets: Bytes::new(packet.octets().into()),
            mtu: Bytes::new(mtu.into()),
        });
    }
    Ok(Fragments::new(packet, mtu))
}

/// The pieces of a packet for a link, in order.
#[derive(Clone, Debug)]
pub struct Fragments<D> {
    packet: Packet<D>,
    /// Octets of each piece but the last: a multiple of 8.
    each: u16,
    /// Octets of the packet that were cut off already.
    done: u16,
    over: bool,
}

impl<D> Fragments<D> {
    /// Cuts a packet for a link that carries so many octets; an MTU below 68 counts as 68, the least
    /// that IP runs on.
    pub fn new(packet: Packet<D>, mtu: u16) -> Self {
        let room = mtu.max(LEAST_MTU) - HEADER_OCTETS as u16;
        let each = if packet.length <= room { packet.length } else { room / 8 * 8 };
        Self { packet, each, done: 0, over: false }
    }
}

impl<D: Clone> Iterator for Fragments<D> {
    type Item = Packet<D>;

    fn next(&mut self) -> Option<Packet<D>> {
        if self.over {
            return None;
        }
        let length = self.each.min(self.packet.length - self.done);
        let offset = self.packet.offset + self.done;
        self.done += length;
        self.over = self.done == self.packet.length;
        let more_fragments = self.packet.more_fragments || !self.over;
        Some(Packet { offset, length, more_fragments, ..self.packet.clone() })
    }
}

/// Every link that IP runs on carries so much (RFC 791 §3.2).
pub const LEAST_MTU: u16 = 68;
/// The longest datagram of the layer above.
pub const MAX_DATAGRAM_OCTETS: u16 = (MAX_PACKET_OCTETS - HEADER_OCTETS) as u16;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    pub(super) const ENDS: Ends =
        Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

    pub(super) fn packet(length: u16) -> Packet<u32> {
        Packet {
            ends: ENDS,
            protocol: Protocol::UDP,
            identification: 7,
            time_to_live: 64,
            dont_fragment: false,
            more_fragments: false,
            offset: 0,
            length,
            header_corrupted: false,
            content_corrupted: false,
            content: 1,
        }
    }

    fn pieces(packet: Packet<u32>, mtu: u16) -> Vec<(u16, u16, bool)> {
        Fragments::new(packet, mtu).map(|piece| (piece.offset, piece.length, piece.more_fragments)).collect()
    }

    #[test]
    fn a_datagram_is_cut_at_multiples_of_eight() {
        assert_eq!(pieces(packet(1_480), 1_500), [(0, 1_480, false)]);
        assert_eq!(pieces(packet(1_481), 1_500), [(0, 1_480, true), (1_480, 1, false)]);
        assert_eq!(pieces(packet(0), 1_500), [(0, 0, false)]);
        let pieces = pieces(packet(8_192 + 8), 1_500);
        assert_eq!(pieces.len(), 6);
        assert_eq!(pieces[5], (7_400, 800, false));
    }

    #[test]
    fn a_router_cuts_fragments_further() {
        let whole: Vec<_> = Fragments::new(packet(3_000), 1_500).collect();
        let further: Vec<_> = whole
            .iter()
            .flat_map(|piece| forward(piece, 596).unwrap())
            .map(|piece| (piece.offset, piece.length, piece.more_fragments, piece.time_to_live))
            .collect();
        let expected = [
            (0, 576, true, 63),
            (576, 576, true, 63),
            (1_152, 328, true, 63),
            (1_480, 576, true, 63),
            (2_056, 576, true, 63),
            (2_632, 328, true, 63),
            (2_960, 40, false, 63),
        ];
        assert_eq!(further, expected);
    }

    #[test]
    fn a_router_says_why_it_does_not_send_on() {
        let last = Packet { time_to_live: 1, ..packet(8) };
        assert_eq!(forward(&last, 1_500).err(), Some(ForwardError::TimeToLive));
        let damaged = Packet { header_corrupted: true, ..packet(8) };
        assert_eq!(forward(&damaged, 1_500).err(), Some(ForwardError::Corrupted));
        let whole = Packet { dont_fragment: true, ..packet(1_481) };
        let error = forward(&whole, 1_500).err().unwrap();
        let text = "a packet of 1501 octets that may not be cut, for a link that carries 1500";
        assert_eq!(error.to_string(), text);
    }

    proptest! {
        #[test]
        fn pieces_fit_the_link_and_make_the_whole(length in 0_u16..=MAX_DATAGRAM_OCTETS, mtu in 0_u16..9_300) {
            let mut next = 0;
            let mut more = true;
            for piece in Fragments::new(packet(length), mtu) {
                prop_assert!(more, "a piece behind the last");
                prop_assert_eq!(piece.offset, next);
                prop_assert!(piece.octets() <= u32::from(mtu.max(LEAST_MTU)));
                prop_assert!(piece.offset.is_multiple_of(8));
                next += piece.length;
                more = piece.more_fragments;
            }
            prop_assert_eq!((next, more), (length, false));
        }
    }
}
