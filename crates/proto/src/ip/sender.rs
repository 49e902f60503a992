//! The sender: packets out of datagrams.

use alloc::collections::VecDeque;
use core::convert::Infallible;
use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::ipv4::HEADER_OCTETS;

use super::{Datagram, Fragments, LEAST_MTU, MAX_DATAGRAM_OCTETS, Packet};
use crate::{Output, Work, WorkKind};

/// Parameters of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// What the link carries, in octets, IP header included: 68 or more.
    pub mtu: u16,
    /// Routers that a packet may pass. RFC 1122 §3.2.1.7 leaves it to the user; BSD's TCP: 30, then 60;
    /// the default is 64 (RFC 1700).
    pub time_to_live: u8,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self { mtu: 1_500, time_to_live: 64 }
    }
}

/// A datagram that is not sent; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It is longer than a packet can say.
    TooLong {
        /// Octets of the datagram.
        length: Bytes,
        /// The most there may be.
        most: Bytes,
    },
    /// It may not be cut and is longer than the link carries.
    FragmentationNeeded {
        /// Octets of the packet.
        octets: Bytes,
        /// What the link carries.
        mtu: Bytes,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { length, most } => {
                write!(f, "a datagram of {} octets: IP carries at most {}", length.get(), most.get())
            }
            Self::FragmentationNeeded { octets, mtu } => write!(
                f,
                "a packet of {} octets that may not be cut, for a link that carries {}",
                octets.get(),
                mtu.get()
            ),
        }
    }
}

impl core::error::Error for SendError {}

/// Outputs of the sender.
pub type SenderOutput<D> = Output<Packet<D>, Infallible, Infallible>;

/// The sending side of one interface.
#[derive(Clone, Debug)]
pub struct Sender<D> {
    config: SenderConfig,
    /// What the next datagram is known by; from 1, as BSD counts.
    next: u16,
    waiting: VecDeque<Packet<D>>,
    current: Option<Fragments<D>>,
    /// The next piece, whose work was put out.
    paid: Option<Packet<D>>,
    /// Work of the next piece that is still to be put out.
    due: Option<Work>,
}

impl<D: Clone> Sender<D> {
    /// A sender that has sent nothing yet; an MTU below 68 counts as 68.
    pub fn new(config: SenderConfig) -> Self {
        let config = SenderConfig { mtu: config.mtu.max(LEAST_MTU), ..config };
        Self { config, next: 1, waiting: VecDeque::new(), current: None, paid: None, due: None }
    }

    /// Takes a datagram to send behind those already taken.
    ///
    /// # Errors
    /// [`SendError`] where it cannot be sent on this interface.
    pub fn send(&mut self, datagram: Datagram<D>) -> Result<(), SendError> {
        let Datagram { ends, protocol, length, dont_fragment, content } = datagram;
        if length > MAX_DATAGRAM_OCTETS {
            let (length, most) = (Bytes::new(length.into()), Bytes::new(MAX_DATAGRAM_OCTETS.into()));
            return Err(SendError::TooLong { length, most });
        }
        let octets = u32::from(length) + HEADER_OCTETS as u32;
        if dont_fragment && octets > u32::from(self.config.mtu) {
            let (octets, mtu) = (Bytes::new(octets.into()), Bytes::new(self.config.mtu.into()));
            return Err(SendError::FragmentationNeeded { octets, mtu });
        }
        self.waiting.push_back(Packet {
            ends,
            protocol,
            identification: self.next,
            time_to_live: self.config.time_to_live,
            dont_fragment,
            more_fragments: false,
            offset: 0,
            length,
            header_corrupted: false,
            content_corrupted: false,
            content,
        });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// The next thing to do. Per packet: its making, its header's checksum, the packet.
    pub fn poll_output(&mut self) -> SenderOutput<D> {
        loop {
            if let Some(work) = self.due.take() {
                return Output::Work(work);
            }
            if let Some(packet) = self.paid.take() {
                return Output::Transmit(packet);
            }
            let Some(packet) = self.current.as_mut().and_then(Iterator::next) else {
                let Some(packet) = self.waiting.pop_front() else { return Output::Timeout(None) };
                self.current = Some(Fragments::new(packet, self.config.mtu));
                continue;
            };
            let octets = Bytes::new(packet.octets().into());
            let header = Bytes::new(HEADER_OCTETS as u64);
            self.due = Some(Work { kind: WorkKind::Checksum, bytes: header, count: 1 });
            self.paid = Some(packet);
            return Output::Work(Work { kind: WorkKind::PacketOut, bytes: octets, count: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use wiretwin_wire::ipv4::Protocol;

    use super::*;
    use crate::ip::tests::ENDS;

    fn datagram(length: u16) -> Datagram<u32> {
        Datagram { ends: ENDS, protocol: Protocol::UDP, length, dont_fragment: false, content: 5 }
    }

    #[test]
    fn pieces_of_a_datagram_share_its_number_and_the_next_has_another() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.send(datagram(2_000)).unwrap();
        sender.send(datagram(10)).unwrap();
        let mut sent = Vec::new();
        let mut work = Vec::new();
        loop {
            match sender.poll_output() {
                Output::Work(each) => work.push((each.kind, each.bytes.get())),
                Output::Transmit(packet) => sent.push((packet.identification, packet.octets())),
                Output::Timeout(timeout) => {
                    assert_eq!(timeout, None);
                    break;
                }
            }
        }
        assert_eq!(sent, [(1, 1_500), (1, 540), (2, 30)]);
        assert_eq!(work[..2], [(WorkKind::PacketOut, 1_500), (WorkKind::Checksum, 20)]);
        assert_eq!(work.len(), 6);
    }

    #[test]
    fn what_does_not_go_is_refused_with_the_bound() {
        let mut sender = Sender::new(SenderConfig::default());
        let error = sender.send(datagram(u16::MAX)).unwrap_err();
        assert_eq!(error.to_string(), "a datagram of 65535 octets: IP carries at most 65515");
        let error = sender.send(Datagram { dont_fragment: true, ..datagram(1_481) }).unwrap_err();
        assert!(matches!(error, SendError::FragmentationNeeded { .. }));
        assert_eq!(sender.poll_output(), Output::Timeout(None));
    }
}
