//! The heads on the wire.

use core::fmt;

use wiretwin_units::Bytes;

use super::super::packet::{Kind, Packet};
use crate::library::Content;
use crate::matching::Envelope;

/// Octets of LAM's envelope.
pub const LAM_HEAD: usize = 24;
/// Octets of p4's head.
pub const P4_HEAD: usize = 32;
/// Octets of a packet with an envelope.
const PACKET: usize = 40;
/// Octets of a request to send.
const REQUEST: usize = 44;
/// Octets of a leave to send.
const REPLY: usize = 36;
/// Octets of a packet that takes a send back.
const CANCEL: usize = 28;
/// Octets of the answer to that.
const CANCELLED: usize = 32;

const SHORT: u32 = 0x02;
const LONG: u32 = 0x04;
const ACK: u32 = 0x08;
const SECOND: u32 = 0x10;
const SYNCHRONOUS: u32 = 0x20;

const P4_PACKET: u32 = 0;
const P4_FOLLOWS: u32 = 1;
const P4_DATA: u32 = 2;

const MPICH_SHORT: u32 = 0;
const MPICH_LONG: u32 = 1;
const MPICH_REQUEST_SEND: u32 = 2;
const MPICH_OK_TO_SEND: u32 = 4;
const MPICH_ANTI_SEND: u32 = 5;
const MPICH_ANTI_SEND_OK: u32 = 6;

/// Whose heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// LAM's, client to client.
    Lam,
    /// Those of MPICH's `ch_p4`.
    P4,
}

/// A head, read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it says.
    pub packet: Packet,
    /// The number of the message: LAM's sequence, MPICH's id of send or receive.
    pub number: u32,
    /// The rank that sends the message.
    pub from: u32,
    /// For whom.
    pub to: u32,
}

/// A head that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadError {
    /// The field whose value it cannot have.
    pub field: &'static str,
    /// The value.
    pub found: u32,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:#x} is not a value of it", self.field, self.found)
    }
}

impl core::error::Error for HeadError {}

/// Whether the data of this head are a message of their own.
pub(super) fn is_apart(packet: &Packet) -> bool {
    packet.kind == Kind::Eager { synchronous: false } && packet.credit == APART
}

/// In a head that was read, says that its data come apart.
const APART: u32 = 1;

impl Heads {
    /// Octets that are read next for a head, with what is read already.
    pub fn octets(self, read: &Content) -> Bytes {
        let octets = match (self, read.peek_words::<8>()) {
            (Self::Lam, _) => LAM_HEAD as u64,
            (Self::P4, Some([P4_PACKET, _, _, _, octets, ..])) => P4_HEAD as u64 + u64::from(octets),
            (Self::P4, _) => P4_HEAD as u64,
        };
        Bytes::new(octets)
    }
}

fn push(content: &mut Content, words: &[u32]) {
    words.iter().for_each(|word| content.push_octets(&word.to_be_bytes()));
}

fn length(bytes: Bytes) -> u32 {
    // Longer messages are not admitted.
    bytes.get() as u32
}

impl Head {
    /// Writes it and its data; what is a write of its own comes back.
    pub fn emit(&self, heads: Heads, apart_from: Option<Bytes>, first: &mut Content) -> Option<Content> {
        match heads {
            Heads::Lam => {
                self.emit_lam(first);
                None
            }
            Heads::P4 => self.emit_p4(apart_from, first),
        }
    }

    fn emit_lam(&self, content: &mut Content) {
        let Packet { kind, envelope, bytes, .. } = self.packet;
        let flags = match kind {
            Kind::Eager { synchronous: true } => SHORT | SYNCHRONOUS,
            Kind::Request => LONG,
            Kind::Reply => LONG | ACK,
            Kind::Data => LONG | SECOND,
            Kind::Matched => SHORT | ACK,
            _ => SHORT,
        };
        let Envelope { context, source, tag } = envelope;
        push(content, &[length(bytes), tag, flags, source, context, self.number]);
        if let (Kind::Eager { .. } | Kind::Data, Some(body)) = (kind, self.packet.body) {
            content.push_body(body);
        }
    }

    fn emit_p4(&self, apart_from: Option<Bytes>, content: &mut Content) -> Option<Content> {
        let Packet { kind, envelope, bytes, body, .. } = self.packet;
        let Envelope { context, source, tag } = envelope;
        let p4 = |content: &mut Content, kind: u32, octets: usize, id: u32| {
            push(content, &[kind, self.to, self.from, 0, octets as u32, id, 0, self.from]);
        };
        let mode = |content: &mut Content, mode: u32| {
            push(content, &[mode, context, source, self.to, self.from, self.number]);
        };
        match kind {
            Kind::Data => p4(content, P4_DATA, bytes.get() as usize, self.number),
            Kind::Reply => {
                p4(content, P4_PACKET, REPLY, 0);
                mode(content, MPICH_OK_TO_SEND);
                // How much is wanted takes the place of the receive's handle.
                push(content, &[self.number, self.packet.receive as u32, length(bytes)]);
            }
            Kind::Cancel => {
                p4(content, P4_PACKET, CANCEL, 0);
                mode(content, MPICH_ANTI_SEND);
                push(content, &[self.number]);
            }
            Kind::Cancelled { done } => {
                p4(content, P4_PACKET, CANCELLED, 0);
                mode(content, MPICH_ANTI_SEND_OK);
                push(content, &[self.number, u32::from(done)]);
            }
            Kind::Request => {
                p4(content, P4_PACKET, REQUEST, 0);
                mode(content, MPICH_REQUEST_SEND);
                push(content, &[tag, length(bytes), 0, self.number, 0]);
            }
            _ if apart_from.is_some_and(|from| bytes >= from) => {
                p4(content, P4_PACKET, PACKET, 0);
                mode(content, MPICH_LONG);
                push(content, &[tag, length(bytes), 0, self.number]);
                let mut second = Content::new();
                p4(&mut second, P4_FOLLOWS, bytes.get() as usize, 0);
                second.push_body(body?);
                return Some(second);
            }
            _ => {
                p4(content, P4_PACKET, PACKET + bytes.get() as usize, 0);
                mode(content, MPICH_SHORT);
                push(content, &[tag, length(bytes), 0, self.number]);
            }
        }
        if let (Kind::Eager { .. } | Kind::Data, Some(body)) = (kind, body) {
            content.push_body(body);
        }
        None
    }

    /// Reads one, if it is there whole; `announced` is the packet whose data come apart.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn parse(
        heads: Heads,
        announced: Option<Packet>,
        content: &mut Content,
    ) -> Result<Option<Self>, HeadError> {
        match heads {
            Heads::Lam => Self::parse_lam(content),
            Heads::P4 => Self::parse_p4(announced, content),
        }
    }

    fn parse_lam(content: &mut Content) -> Result<Option<Self>, HeadError> {
        let Some([bytes, tag, flags, source, context, number]) = take::<6>(content) else { return Ok(None) };
        let kind = match flags {
            SHORT => Kind::Eager { synchronous: false },
            flags if flags == SHORT | SYNCHRONOUS => Kind::Eager { synchronous: true },
            LONG => Kind::Request,
            flags if flags == LONG | ACK => Kind::Reply,
            flags if flags == LONG | SECOND => Kind::Data,
            flags if flags == SHORT | ACK => Kind::Matched,
            found => return Err(HeadError { field: "flags of an envelope", found }),
        };
        let mut packet = Packet::of(kind);
        packet.envelope = Envelope { context, source, tag };
        packet.bytes = checked(bytes, "length of an envelope")?;
        Ok(Some(Self { packet, number, from: source, to: 0 }))
    }

    fn parse_p4(announced: Option<Packet>, content: &mut Content) -> Result<Option<Self>, HeadError> {
        // The whole head, and of a packet all its words, must be there before any is taken.
        let Some(words) = content.peek_words::<8>() else { return Ok(None) };
        let [kind, to, from, _, octets, id, _, _] = words;
        match (kind, announced) {
            (P4_FOLLOWS, Some(mut packet)) => {
                if u64::from(octets) != packet.bytes.get() {
                    return Err(HeadError { field: "length of data that follow", found: octets });
                }
                take::<8>(content);
                packet.credit = 0;
                Ok(Some(Self { packet, number: packet.send as u32, from, to }))
            }
            (P4_DATA, None) => {
                take::<8>(content);
                let mut packet = Packet::of(Kind::Data);
                packet.bytes = checked(octets, "length of data")?;
                Ok(Some(Self { packet, number: id, from, to }))
            }
            (P4_PACKET, None) => Self::parse_mpich(content, octets as usize, from, to),
            (found, _) => Err(HeadError { field: "type of a message", found }),
        }
    }

    fn parse_mpich(
        content: &mut Content,
        octets: usize,
        from: u32,
        to: u32,
    ) -> Result<Option<Self>, HeadError> {
        let Some(words) = content.peek_words::<9>() else { return Ok(None) };
        let mode = words[8];
        let known = match mode {
            MPICH_SHORT => octets.min(PACKET),
            MPICH_LONG => PACKET,
            MPICH_REQUEST_SEND => REQUEST,
            MPICH_OK_TO_SEND => REPLY,
            MPICH_ANTI_SEND => CANCEL,
            MPICH_ANTI_SEND_OK => CANCELLED,
            found => return Err(HeadError { field: "mode of a packet", found }),
        };
        if known > octets
            || (mode == MPICH_SHORT && known < PACKET)
            || (mode != MPICH_SHORT && known != octets)
        {
            return Err(HeadError { field: "length of a packet", found: octets as u32 });
        }
        let whole = P4_HEAD + known;
        if content.octets_in_front() < whole as u64 {
            return Ok(None);
        }
        take::<8>(content);
        let mut next = || take::<1>(content).map_or(0, |[word]| word);
        let [_, context, source, _, _, _] = core::array::from_fn(|_| next());
        let number;
        let mut packet = Packet::of(Kind::Eager { synchronous: false });
        packet.envelope = Envelope { context, source, tag: 0 };
        match mode {
            MPICH_OK_TO_SEND => {
                packet.kind = Kind::Reply;
                number = next();
                packet.receive = next().into();
                packet.bytes = checked(next(), "octets that are wanted")?;
            }
            MPICH_ANTI_SEND => {
                packet.kind = Kind::Cancel;
                number = next();
            }
            MPICH_ANTI_SEND_OK => {
                number = next();
                packet.kind = Kind::Cancelled { done: next() != 0 };
            }
            _ => {
                packet.envelope.tag = next();
                packet.bytes = checked(next(), "length of a message")?;
                let _format = next();
                number = next();
                match mode {
                    MPICH_REQUEST_SEND => {
                        packet.kind = Kind::Request;
                        let _handle = next();
                    }
                    MPICH_LONG => packet.credit = APART,
                    _ if packet.bytes.get() != (octets - PACKET) as u64 => {
                        return Err(HeadError { field: "length of a short message", found: octets as u32 });
                    }
                    _ => {}
                }
            }
        }
        Ok(Some(Self { packet, number, from, to }))
    }
}

fn checked(bytes: u32, field: &'static str) -> Result<Bytes, HeadError> {
    if i32::try_from(bytes).is_ok() {
        Ok(Bytes::new(bytes.into()))
    } else {
        Err(HeadError { field, found: bytes })
    }
}

fn take<const N: usize>(content: &mut Content) -> Option<[u32; N]> {
    let words = content.peek_words::<N>()?;
    content.take_octets(&mut [0; 64][..4 * N]);
    Some(words)
}

/// Panics if a head that was read from these octets is not the same when it is written and read again.
pub fn round_trip(heads: Heads, octets: &[u8]) {
    let mut content = Content::new();
    content.push_octets(octets);
    let mut announced = None;
    while let Ok(Some(head)) = Head::parse(heads, announced, &mut content) {
        let mut again = Content::new();
        let apart = is_apart(&head.packet);
        let mut written = head;
        written.packet.credit = 0;
        written.packet.body = None;
        if announced.is_none() && head.packet.kind != Kind::Data {
            let from = if apart { head.packet.bytes } else { head.packet.bytes + Bytes::new(1) };
            let second = written.emit(heads, Some(from), &mut again);
            assert!(second.is_none(), "there is no body to write");
            let same = Head::parse(heads, None, &mut again).expect("our own").expect("all of it is there");
            assert_eq!(same.packet, head.packet);
            assert_eq!(same.number, head.number);
        }
        announced = apart.then_some(Packet { send: head.number.into(), ..head.packet });
        if !apart && matches!(head.packet.kind, Kind::Eager { .. } | Kind::Data) {
            let skipped = content.move_to(head.packet.bytes, &mut Content::new());
            if skipped < head.packet.bytes {
                return;
            }
        }
    }
}
