//! Headers of PVM 3: of a packet between daemons, of a fragment on a stream, of a message.
//!
//! After PVM 3.4.4 (`pvmproto.h`, `ddpro.c`, `tdpro.c`, `lpvm.c`), which is its own specification. What
//! a message carries is XDR or an image of memory, as its encoding says. Left out: the message header
//! of 3.3 and before, whose layout was not found in a source.
//!
//! | Header | Octets | Fields |
//! |---|---|---|
//! | packet, on UDP | 16 | destination 4, source 4, sequence 2, acknowledged 2, flags 1, unused 3 |
//! | fragment, on a stream | 16 | destination 4, source 4, length 4, flags 1, unused 3 |
//! | message, behind the first fragment's | 32 | encoding, tag, context, sequence, wait, checksum, unused 8 |

use core::fmt;

use wiretwin_units::Seq;

use crate::octets::{put, u16_at, u32_at};
use crate::{DecodeError, EmitError};

/// A task identifier: flags for daemons and groups, 12 bits of host, 18 of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u32);

impl Tid {
    /// The daemon of the host where this is said.
    pub const MY_DAEMON: Self = Self(DAEMON);

    /// A task; `None` unless the host is in 1..=4095 and its own number in 1..=262143.
    pub const fn task(host: u32, local: u32) -> Option<Self> {
        let right = host >= 1 && host <= MAX_HOST && local >= 1 && local <= LOCAL;
        if right { Some(Self(host << HOST_AT | local)) } else { None }
    }

    /// The daemon of a host; `None` unless that is in 0..=4095. Of 0, [`Tid::MY_DAEMON`].
    pub const fn daemon(host: u32) -> Option<Self> {
        if host <= MAX_HOST { Some(Self(DAEMON | host << HOST_AT)) } else { None }
    }

    /// Whether this is a daemon.
    pub const fn is_daemon(self) -> bool {
        self.0 & (DAEMON | GROUP) == DAEMON
    }

    /// Whether this is many tasks at once.
    pub const fn is_multicast(self) -> bool {
        self.0 & (DAEMON | GROUP) == GROUP
    }

    /// Whether this is one task.
    pub const fn is_task(self) -> bool {
        self.0 & (DAEMON | GROUP) == 0 && self.local() > 0
    }

    /// Which host, 0..=4095.
    pub const fn host(self) -> u32 {
        self.0 >> HOST_AT & MAX_HOST
    }

    /// Its own part, 0..=262143.
    pub const fn local(self) -> u32 {
        self.0 & LOCAL
    }
}

impl fmt::Display for Tid {
    /// As PVM prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{:x}", self.0)
    }
}

/// The header of a packet between daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where it goes.
    pub destination: Tid,
    /// Where it comes from.
    pub source: Tid,
    /// Its number, counted from 1, where it carries data.
    pub sequence: Seq<16>,
    /// The number that it acknowledges, where it does.
    pub acknowledged: Seq<16>,
    /// First of a message.
    pub first: bool,
    /// Last of a message.
    pub last: bool,
    /// Carries data.
    pub data: bool,
    /// The daemon ends.
    pub finish: bool,
    /// Acknowledges.
    pub acknowledges: bool,
}

impl Packet {
    /// Reads the header that octets begin with, and returns it with the rest.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 16 octets; [`Fault::Value`](crate::Fault::Value) for
    /// flags that there are not.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let (octets, rest) = header(PACKET, octets)?;
        let flags = octets[12];
        if flags & !(FIRST | LAST | DATA | FINISH | ACKNOWLEDGES) != 0 {
            return Err(DecodeError::value((PACKET, "flags"), 12, flags, "0 to 31"));
        }
        let packet = Self {
            destination: Tid(u32_at(octets, 0)),
            source: Tid(u32_at(octets, 4)),
            sequence: Seq::wrapping(u16_at(octets, 8).into()),
            acknowledged: Seq::wrapping(u16_at(octets, 10).into()),
            first: flags & FIRST != 0,
            last: flags & LAST != 0,
            data: flags & DATA != 0,
            finish: flags & FINISH != 0,
            acknowledges: flags & ACKNOWLEDGES != 0,
        };
        Ok((packet, rest))
    }

    /// The 16 octets.
    pub fn octets(&self) -> [u8; HEADER_OCTETS] {
        let flags = [
            (self.first, FIRST),
            (self.last, LAST),
            (self.data, DATA),
            (self.finish, FINISH),
            (self.acknowledges, ACKNOWLEDGES),
        ];
        let mut octets = [0; HEADER_OCTETS];
        put(&mut octets, 0, self.destination.0.to_be_bytes());
        put(&mut octets, 4, self.source.0.to_be_bytes());
        put(&mut octets, 8, (self.sequence.get() as u16).to_be_bytes());
        put(&mut octets, 10, (self.acknowledged.get() as u16).to_be_bytes());
        octets[12] = flags.iter().fold(0, |bits, &(set, bit)| if set { bits | bit } else { bits });
        octets
    }
}

/// The header of a fragment between a task and a daemon, or between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it goes.
    pub destination: Tid,
    /// Where it comes from.
    pub source: Tid,
    /// Octets behind this header; in the first of a message with the message's header.
    pub length: u32,
    /// First of a message.
    pub first: bool,
    /// Last of a message.
    pub last: bool,
}

impl Fragment {
    /// Reads the header that octets begin with, and returns it with the rest, which may hold less
    /// than the length says: a stream brings it as it likes.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 16 octets; [`Fault::Value`](crate::Fault::Value) for
    /// flags that there are not, for a first fragment that is shorter than a message's header, and for
    /// 2^31 octets or more.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let (octets, rest) = header(FRAGMENT, octets)?;
        let (length, flags) = (u32_at(octets, 8), octets[12]);
        if flags & !(FIRST | LAST) != 0 {
            return Err(DecodeError::value((FRAGMENT, "flags"), 12, flags, "0 to 3"));
        }
        let least = if flags & FIRST != 0 { MESSAGE_OCTETS as u32 } else { 0 };
        if !(least..1 << 31).contains(&length) {
            let allowed = "0 to 2147483647, 32 and up in the first";
            return Err(DecodeError::value((FRAGMENT, "length"), 8, length, allowed));
        }
        let (destination, source) = (Tid(u32_at(octets, 0)), Tid(u32_at(octets, 4)));
        Ok((Self { destination, source, length, first: flags & FIRST != 0, last: flags & LAST != 0 }, rest))
    }

    /// The 16 octets.
    ///
    /// # Errors
    /// [`EmitError`] for a length that [`Fragment::parse`] would reject.
    pub fn octets(&self) -> Result<[u8; HEADER_OCTETS], EmitError> {
        let least = if self.first { MESSAGE_OCTETS as u32 } else { 0 };
        if !(least..1 << 31).contains(&self.length) {
            let allowed = "0 to 2147483647, 32 and up in the first";
            return Err(EmitError::value(FRAGMENT, "length", self.length, allowed));
        }
        let mut octets = [0; HEADER_OCTETS];
        put(&mut octets, 0, self.destination.0.to_be_bytes());
        put(&mut octets, 4, self.source.0.to_be_bytes());
        put(&mut octets, 8, self.length.to_be_bytes());
        octets[12] = if self.first { FIRST } else { 0 } | if self.last { LAST } else { 0 };
        Ok(octets)
    }
}

/// The header of a message, in front of its data in the first fragment or packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// How the data are encoded: [`Message::XDR`], or the signature of the sender's memory.
    pub encoding: u32,
    /// Tag: 0 to 2^31 - 1 of users, above of the system.
    pub tag: u32,
    /// Context.
    pub context: u32,
    /// Sequence, in no use.
    pub sequence: u32,
    /// Which request of the system this answers.
    pub wait: u32,
    /// Checksum, in no use.
    pub checksum: u32,
}

impl Message {
    /// The encoding that any host understands.
    pub const XDR: u32 = 0x1000_0000;

    /// Reads the header that octets begin with, and returns it with the data.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 32 octets.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let Some((octets, rest)) = octets.split_at_checked(MESSAGE_OCTETS) else {
            return Err(DecodeError::size(MESSAGE, "header", octets.len(), "32 or more"));
        };
        let [encoding, tag, context, sequence, wait, checksum] =
            [0, 4, 8, 12, 16, 20].map(|at| u32_at(octets, at));
        Ok((Self { encoding, tag, context, sequence, wait, checksum }, rest))
    }

    /// The 32 octets.
    pub fn octets(&self) -> [u8; MESSAGE_OCTETS] {
        let words = [self.encoding, self.tag, self.context, self.sequence, self.wait, self.checksum];
        let mut octets = [0; MESSAGE_OCTETS];
        for (place, word) in octets.chunks_exact_mut(4).zip(words) {
            put(place, 0, word.to_be_bytes());
        }
        octets
    }
}

/// The 16 octets of a header, and the rest.
fn header<'a>(format: &'static str, octets: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    octets
        .split_at_checked(HEADER_OCTETS)
        .ok_or_else(|| DecodeError::size(format, "header", octets.len(), "16 or more"))
}

/// Octets of the header of a packet or a fragment.
pub const HEADER_OCTETS: usize = 16;
/// Octets of the header of a message.
pub const MESSAGE_OCTETS: usize = 32;

const PACKET: &str = "PVM packet";
const FRAGMENT: &str = "PVM fragment";
const MESSAGE: &str = "PVM message";
const DAEMON: u32 = 0x8000_0000;
const GROUP: u32 = 0x4000_0000;
const HOST_AT: u32 = 18;
const MAX_HOST: u32 = 0xFFF;
const LOCAL: u32 = 0x3_FFFF;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const DATA: u8 = 4;
const FINISH: u8 = 8;
const ACKNOWLEDGES: u8 = 16;

/// Reads arbitrary octets as each header and, if they are one, writes what was read and compares. The
/// fuzz target and the property test below are this function.
///
/// # Panics
/// If a header that was read is not written back octet for octet, unused ones apart: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    if let Ok((packet, _)) = Packet::parse(octets) {
        assert_eq!(packet.octets()[..13], octets[..13], "written back octet for octet");
    }
    if let Ok((fragment, _)) = Fragment::parse(octets) {
        let written = fragment.octets().expect("a length that was read");
        assert_eq!(written[..13], octets[..13], "written back octet for octet");
    }
    if let Ok((message, _)) = Message::parse(octets) {
        assert_eq!(message.octets()[..24], octets[..24], "written back octet for octet");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_identifier_says_what_it_is() {
        let task = Tid::task(1, 2).expect("a task");
        assert_eq!((task.0, task.host(), task.local(), task.to_string()), (0x4_0002, 1, 2, "t40002".into()));
        assert!(task.is_task() && !task.is_daemon() && !task.is_multicast());
        let daemon = Tid::daemon(4095).expect("a daemon");
        assert_eq!((daemon.0, daemon.host()), (0xBFFC_0000, 4095));
        assert!(daemon.is_daemon() && !daemon.is_task());
        assert!(Tid(0x4004_0000).is_multicast());
        assert_eq!(Tid::daemon(0), Some(Tid::MY_DAEMON));
        for (host, local) in [(0, 1), (4096, 1), (1, 0), (1, 0x4_0000)] {
            assert_eq!(Tid::task(host, local), None);
        }
        assert_eq!(Tid::daemon(4096), None);
    }

    fn packet() -> Packet {
        Packet {
            destination: Tid(0x8004_0000),
            source: Tid(0x8008_0000),
            sequence: Seq::wrapping(0xFFFF),
            acknowledged: Seq::wrapping(3),
            first: true,
            last: true,
            data: true,
            finish: false,
            acknowledges: false,
        }
    }

    #[test]
    fn a_packet_is_written_and_read() {
        let octets = packet().octets();
        assert_eq!(octets, *b"\x80\x04\0\0\x80\x08\0\0\xff\xff\0\x03\x07\0\0\0");
        assert_eq!(Packet::parse(&octets), Ok((packet(), &[][..])));
        let bare =
            Packet { first: false, last: false, data: false, finish: true, acknowledges: true, ..packet() };
        assert_eq!(bare.octets()[12], 24);
    }

    #[test]
    fn a_fragment_and_its_message_are_written_and_read() {
        let fragment = Fragment {
            destination: Tid(0x4_0001),
            source: Tid(0x8_0001),
            length: 36,
            first: true,
            last: false,
        };
        let octets = fragment.octets().expect("room for the message's header");
        assert_eq!(octets, *b"\0\x04\0\x01\0\x08\0\x01\0\0\0\x24\x01\0\0\0");
        assert_eq!(Fragment::parse(&octets), Ok((fragment, &[][..])));
        let message =
            Message { encoding: Message::XDR, tag: 7, context: 1, sequence: 0, wait: 2, checksum: 0 };
        let octets = message.octets();
        assert_eq!(octets[..20], *b"\x10\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\x02");
        assert_eq!((Message::parse(&octets), &octets[20..]), (Ok((message, &[][..])), &[0; 12][..]));
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let mut octets = packet().octets();
        octets[12] = 32;
        let said = "PVM packet, flags at octet 12: 32, allowed is 0 to 31";
        assert_eq!(Packet::parse(&octets).expect_err(said).to_string(), said);
        octets[12] = 4;
        let said = "PVM fragment, flags at octet 12: 4, allowed is 0 to 3";
        assert_eq!(Fragment::parse(&octets).expect_err(said).to_string(), said);
        for (flags, length) in [(1, 31_u32), (0, 1 << 31)] {
            octets[12] = flags;
            put(&mut octets, 8, length.to_be_bytes());
            let error = Fragment::parse(&octets).expect_err("a wrong length");
            assert_eq!((error.field, error.offset.get()), ("length", 8));
            let first = flags == 1;
            let fragment = Fragment { destination: Tid(1), source: Tid(2), length, first, last: true };
            assert_eq!(fragment.octets().expect_err("a wrong length").field, "length");
        }
        assert_eq!(Packet::parse(&octets[1..]).expect_err("15 octets").field, "header");
        assert_eq!(Fragment::parse(&octets[1..]).expect_err("15 octets").field, "header");
        assert_eq!(Message::parse(&[0; 31]).expect_err("31 octets").field, "header");
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 0..40), flags in 0u8..40) {
            if let Some(octet) = octets.get_mut(12) {
                *octet = flags;
            }
            round_trip(&octets);
        }
    }
}
