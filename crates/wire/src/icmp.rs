//! Internet control messages, as far as IP and its users need them.
//!
//! RFC 792; next-hop MTU from RFC 1191 §4. Messages that are not understood are carried.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Type, Code, Checksum | 1, 1, 2 | the checksum is over all octets |
//! | what the type needs | 4 | |
//! | Data | 0 and up | an echo's own, or the head of the packet that an error is about |

use crate::checksum::{self, Sum};
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError};

/// Why a packet did not reach its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Code 0: no way to the network.
    Net,
    /// Code 1: no way to the host.
    Host,
    /// Code 2: the host does not speak the protocol.
    Protocol,
    /// Code 3: nobody listens at the port.
    Port,
    /// Code 4: it is too long for the next network and may not be fragmented.
    FragmentationNeeded {
        /// What the next network takes, octets; 0 from routers before RFC 1191.
        next_hop_mtu: u16,
    },
    /// Code 5 to 15: the other reasons (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1).
    Other(u8),
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Type 8: send this back.
    EchoRequest {
        /// Who asks.
        identifier: u16,
        /// Which of its questions.
        sequence: u16,
    },
    /// Type 0: sent back.
    EchoReply {
        /// Who asked.
        identifier: u16,
        /// Which of its questions.
        sequence: u16,
    },
    /// Type 3: the packet did not reach its destination.
    Unreachable(Unreachable),
    /// Type 11: the packet or its reassembly took too long.
    TimeExceeded {
        /// Code 1, in reassembly; else code 0, on the way.
        reassembly: bool,
    },
    /// Any other.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// The four octets behind the checksum.
        rest: [u8; 4],
    },
}

/// What a packet of this protocol says besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message.
    pub message: Message,
    /// Octets of data, 0 to 65507.
    pub data_length: u16,
}

impl Repr {
    /// Reads the payload of a packet and checks the checksum; the data begin at octet 8.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 8 to 65515 octets;
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the checksum fails; then
    /// [`Fault::Value`](crate::Fault::Value) for a code that the type does not have.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        if octets.len() < HEADER_OCTETS || octets.len() > MAX_OCTETS {
            return Err(DecodeError::size(FORMAT, "message", octets.len(), "8 to 65515"));
        }
        let sum = Sum::ZERO.octets(octets);
        if !sum.holds() {
            let found = u16_at(octets, CHECKSUM_AT);
            let computed = sum.without(found).checksum();
            return Err(DecodeError::checksum((FORMAT, "Checksum"), CHECKSUM_AT, found, computed));
        }
        let (identifier, sequence) = (u16_at(octets, 4), u16_at(octets, 6));
        let wrong = |allowed| Err(DecodeError::value((FORMAT, "Code"), 1, octets[1], allowed));
        // Choice: what RFC 792 calls unused is sent as zeros and ignored when it comes.
        let message = match (octets[0], octets[1]) {
            (ECHO_REQUEST, 0) => Message::EchoRequest { identifier, sequence },
            (ECHO_REPLY, 0) => Message::EchoReply { identifier, sequence },
            (ECHO_REQUEST | ECHO_REPLY, _) => return wrong("0"),
            (UNREACHABLE, 0) => Message::Unreachable(Unreachable::Net),
            (UNREACHABLE, 1) => Message::Unreachable(Unreachable::Host),
            (UNREACHABLE, 2) => Message::Unreachable(Unreachable::Protocol),
            (UNREACHABLE, 3) => Message::Unreachable(Unreachable::Port),
            (UNREACHABLE, 4) => {
                Message::Unreachable(Unreachable::FragmentationNeeded { next_hop_mtu: sequence })
            }
            (UNREACHABLE, code @ 5..=15) => Message::Unreachable(Unreachable::Other(code)),
            (UNREACHABLE, _) => return wrong("0 to 15"),
            (TIME_EXCEEDED, code @ 0..=1) => Message::TimeExceeded { reassembly: code == 1 },
            (TIME_EXCEEDED, _) => return wrong("0 or 1"),
            (kind, code) => Message::Other { kind, code, rest: array_at(octets, 4) },
        };
        Ok(Self { message, data_length: (octets.len() - HEADER_OCTETS) as u16 })
    }

    /// Writes the header. The data must be in place: the checksum covers them.
    ///
    /// # Errors
    /// [`EmitError`] if header and data are more than 65515 octets, or not as many as `octets`, or
    /// for a code or a type that another kind of message has. Nothing is written then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        let pair = |one: u16, two: u16| {
            let ([a, b], [c, d]) = (one.to_be_bytes(), two.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, rest) = match self.message {
            Message::EchoRequest { identifier, sequence } => (ECHO_REQUEST, 0, pair(identifier, sequence)),
            Message::EchoReply { identifier, sequence } => (ECHO_REPLY, 0, pair(identifier, sequence)),
            Message::Unreachable(Unreachable::Net) => (UNREACHABLE, 0, [0; 4]),
            Message::Unreachable(Unreachable::Host) => (UNREACHABLE, 1, [0; 4]),
            Message::Unreachable(Unreachable::Protocol) => (UNREACHABLE, 2, [0; 4]),
            Message::Unreachable(Unreachable::Port) => (UNREACHABLE, 3, [0; 4]),
            Message::Unreachable(Unreachable::FragmentationNeeded { next_hop_mtu }) => {
                (UNREACHABLE, 4, pair(0, next_hop_mtu))
            }
            Message::Unreachable(Unreachable::Other(code @ 5..=15)) => (UNREACHABLE, code, [0; 4]),
            Message::Unreachable(Unreachable::Other(code)) => {
                return Err(EmitError::value(FORMAT, "Code", code, "5 to 15 for another reason"));
            }
            Message::TimeExceeded { reassembly } => (TIME_EXCEEDED, reassembly.into(), [0; 4]),
            Message::Other {
                kind: kind @ (ECHO_REQUEST | ECHO_REPLY | UNREACHABLE | TIME_EXCEEDED), ..
            } => {
                return Err(EmitError::value(
                    FORMAT,
                    "Type",
                    kind,
                    "another than 0, 3, 8 and 11 for another message",
                ));
            }
            Message::Other { kind, code, rest } => (kind, code, rest),
        };
        let total = self.total_octets();
        if total > MAX_OCTETS {
            return Err(EmitError::value(FORMAT, "data", self.data_length, "0 to 65507 octets"));
        }
        EmitError::unless_size(FORMAT, "header and data", octets.len(), total)?;
        put(octets, 0, [kind, code, 0, 0]);
        put(octets, 4, rest);
        let checksum = checksum::checksum(octets);
        put(octets, CHECKSUM_AT, checksum.to_be_bytes());
        Ok(())
    }

    /// Octets of header and data.
    pub const fn total_octets(&self) -> usize {
        HEADER_OCTETS + self.data_length as usize
    }
}

/// Octets before the data.
pub const HEADER_OCTETS: usize = 8;

const FORMAT: &str = "ICMP message";
const CHECKSUM_AT: usize = 2;
const MAX_OCTETS: usize = 65_515;
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;

/// Reads arbitrary octets as a message and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a message that was read is not written back the same: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let written = &mut scratch[..octets.len()];
    written[HEADER_OCTETS..].copy_from_slice(&octets[HEADER_OCTETS..]);
    repr.emit(written).expect("what was read can be written");
    assert_eq!(Repr::parse(written), Ok(repr), "what was written reads the same");
    let has_unused = matches!(repr.message, Message::Unreachable(_) | Message::TimeExceeded { .. });
    if !has_unused && u16_at(octets, CHECKSUM_AT) != u16::MAX {
        assert_eq!(written, octets, "written back octet for octet");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn emitted(message: Message, data: &[u8]) -> Vec<u8> {
        let repr = Repr { message, data_length: data.len() as u16 };
        let mut octets = vec![0xEE; HEADER_OCTETS];
        octets.extend(data);
        repr.emit(&mut octets).expect("the size fits");
        octets
    }

    #[test]
    fn each_message_has_its_octets() {
        let (identifier, sequence) = (0x1234, 5);
        let frag = Message::Unreachable(Unreachable::FragmentationNeeded { next_hop_mtu: 1500 });
        let cases: [(Message, [u8; 8]); 9] = [
            (Message::EchoRequest { identifier, sequence }, [8, 0, 0x21, 0x64, 0x12, 0x34, 0, 5]),
            (Message::EchoReply { identifier, sequence }, [0, 0, 0x29, 0x64, 0x12, 0x34, 0, 5]),
            (Message::Unreachable(Unreachable::Net), [3, 0, 0x38, 0x9D, 0, 0, 0, 0]),
            (Message::Unreachable(Unreachable::Host), [3, 1, 0x38, 0x9C, 0, 0, 0, 0]),
            (Message::Unreachable(Unreachable::Protocol), [3, 2, 0x38, 0x9B, 0, 0, 0, 0]),
            (Message::Unreachable(Unreachable::Port), [3, 3, 0x38, 0x9A, 0, 0, 0, 0]),
            (frag, [3, 4, 0x32, 0xBD, 0, 0, 5, 0xDC]),
            (Message::TimeExceeded { reassembly: true }, [11, 1, 0x30, 0x9C, 0, 0, 0, 0]),
            (Message::Other { kind: 4, code: 0, rest: [0; 4] }, [4, 0, 0x37, 0x9D, 0, 0, 0, 0]),
        ];
        for (message, head) in cases {
            let octets = emitted(message, b"abc");
            assert_eq!(octets[..8], head, "{message:?}");
            assert_eq!(Repr::parse(&octets), Ok(Repr { message, data_length: 3 }));
        }
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let octets = emitted(Message::EchoRequest { identifier: 1, sequence: 1 }, b"");
        let error = Repr::parse(&octets[..7]).expect_err("seven octets");
        assert_eq!(error.to_string(), "ICMP message, message at octet 0: 7 octets, allowed are 8 to 65515");
        for bit in 0..64 {
            let mut wrong = octets.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Repr::parse(&wrong).expect_err("a bit was turned").field, "Checksum");
        }
        for (kind, code, allowed) in [(8, 1, "0"), (0, 9, "0"), (3, 16, "0 to 15"), (11, 2, "0 or 1")] {
            let mut wrong = [kind, code, 0, 0, 0, 0, 0, 0];
            let right = checksum::checksum(&wrong);
            put(&mut wrong, 2, right.to_be_bytes());
            let expected = DecodeError::value(("ICMP message", "Code"), 1, code, allowed);
            assert_eq!(Repr::parse(&wrong), Err(expected));
        }
    }

    #[test]
    fn a_message_that_does_not_fit_is_not_written() {
        let reply = Message::EchoReply { identifier: 1, sequence: 1 };
        let mut octets = [0xEE; 9];
        for (message, data_length, field) in [
            (reply, 0, "header and data"),
            (reply, 65_508, "data"),
            (Message::Unreachable(Unreachable::Other(4)), 1, "Code"),
            (Message::Unreachable(Unreachable::Other(16)), 1, "Code"),
            (Message::Other { kind: 3, code: 1, rest: [0; 4] }, 1, "Type"),
        ] {
            let error = Repr { message, data_length }.emit(&mut octets).expect_err(field);
            assert_eq!(error.field, field);
        }
        assert_eq!(octets, [0xEE; 9]);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(
            mut octets in prop::collection::vec(any::<u8>(), 8..80),
            valid: bool,
            known in prop::option::of((prop::sample::select(&[0u8, 3, 8, 11][..]), 0u8..17)),
        ) {
            if let Some((kind, code)) = known {
                put(&mut octets, 0, [kind, code]);
            }
            if valid {
                put(&mut octets, 2, [0, 0]);
                let right = checksum::checksum(&octets);
                put(&mut octets, 2, right.to_be_bytes());
            }
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
        }
    }
}
