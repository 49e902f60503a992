//! Frames of the direct transport: what follows the UDP header.
//!
//! The format is this project's own. Every frame begins with a header of [`HEADER_OCTETS`], highest octet
//! first:
//!
//! | Octets | Field |
//! |---|---|
//! | 0..8 | Key: that of the endpoint which the frame is for |
//! | 8..12 | Check: [`check`] over the whole frame, these octets taken as zero |
//! | 12..16 | Epoch of the sender |
//! | 16 | version, high half; Kind, low half |
//! | 17 | Flags |
//! | 18..20 | Lane: the number that the receiver gave this sender, or [`NO_LANE`] |
//! | 20..24 | N(S) of a numbered frame and of a POLL, N(PS) of a STAT, else 0 |
//! | 24..28 | N(R): every number before it has come |
//! | 28..32 | Granted: so many numbers from N(R) on may be sent |
//!
//! The names N(S), N(R), N(PS), POLL, STAT and USTAT are those of Q.2110, whose way of sending again what
//! is missing the transport has. A message's own fields, its tag, its remote data and its length, are only
//! in the first of its frames. The UDP checksum is not relied on: a frame that a kernel hands to a virtual
//! interface carries an unfinished one.

use wiretwin_units::Seq;

use crate::octets::{array_at, put, u16_at, u32_at};
use crate::{DecodeError, EmitError};

/// Octets of the header of every frame.
pub const HEADER_OCTETS: usize = 32;
/// Octets of the fields of a [`Body::Bulk`] behind it.
pub const BULK_OCTETS: usize = 12;
/// The most octets before the payload: the header and a message's own fields.
pub const MOST_HEAD_OCTETS: usize = HEADER_OCTETS + 28;
/// The most elements of the list of a STAT.
pub const STAT_ELEMENTS: usize = 7;
/// The Lane of a frame to an endpoint that has given no number yet.
pub const NO_LANE: u16 = u16::MAX;

/// A number of a frame or a POLL.
pub type Number = Seq<32>;

/// How much of a message its first frame brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Its beginning; the message has so many bytes, and frames without a head bring the rest.
    Begun {
        /// Bytes of the message.
        length: u64,
    },
    /// Nothing: the message is offered, and waits for a [`Body::Clear`].
    Offered {
        /// Bytes of the message.
        length: u64,
        /// The number by which the sender knows it.
        offer: u32,
    },
    /// Nothing: its bytes come another way, on which nothing is lost, without being asked for.
    Pushed {
        /// Bytes of the message.
        length: u64,
    },
}

/// A message's own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The tag that it is matched by; a message without one is of another kind.
    pub tag: Option<u64>,
    /// Remote data, if the message has any.
    pub data: Option<u64>,
    /// How much of the message comes with it.
    pub extent: Extent,
}

impl Head {
    /// How many octets its fields take in a frame, behind the [`HEADER_OCTETS`] of each.
    #[must_use]
    pub const fn octets(&self) -> usize {
        (if self.tag.is_some() { 8 } else { 0 })
            + (if self.data.is_some() { 8 } else { 0 })
            + match self.extent {
                Extent::Whole => 0,
                Extent::Begun { .. } | Extent::Pushed { .. } => 8,
                Extent::Offered { .. } => 12,
            }
    }
}

/// The elements of a STAT or USTAT: the first that is missing, the first that came after it, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    elements: [Number; STAT_ELEMENTS],
    count: u8,
}

impl List {
    /// A list of these elements; `None` where there are more than [`STAT_ELEMENTS`].
    #[must_use]
    pub fn new(elements: &[Number]) -> Option<Self> {
        let mut list = Self { elements: [Number::ZERO; STAT_ELEMENTS], count: elements.len() as u8 };
        list.elements.get_mut(..elements.len())?.copy_from_slice(elements);
        Some(list)
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[Number] {
        &self.elements[..usize::from(self.count)]
    }
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The sender's key and its number for the receiver: what the receiver needs to answer.
    Hello {
        /// The sender's key.
        key: u64,
        /// The number that the receiver is to put into Lane.
        lane: u16,
        /// The epoch of the receiver whose HELLO is answered; `None` where nothing is answered.
        answers: Option<u32>,
    },
    /// Bytes of a message, in order; numbered.
    Message {
        /// N(S).
        number: Number,
        /// The message's own fields, in its first frame.
        head: Option<Head>,
    },
    /// Bytes of a message that was offered and cleared, at their place; numbered.
    Bulk {
        /// N(S).
        number: Number,
        /// The number by which the receiver knows the message.
        reference: u32,
        /// Where in the message the bytes begin.
        offset: u64,
    },
    /// The receiver of an offered message asks for it; numbered.
    Clear {
        /// N(S).
        number: Number,
        /// The number by which the sender of the message knows it.
        offer: u32,
        /// The number by which the receiver will know it.
        reference: u32,
        /// How many bytes are wanted, from the first on.
        length: u64,
    },
    /// POLL: asks for a STAT.
    Poll {
        /// N(S) of the next frame.
        number: Number,
        /// N(PS).
        ps: Number,
    },
    /// STAT: answers a POLL.
    Stat {
        /// N(PS) of the POLL.
        ps: Number,
        /// What is missing.
        list: List,
    },
    /// USTAT: tells of a gap at once.
    Ustat {
        /// The first that is missing.
        first: Number,
        /// The one behind the last that is missing.
        end: Number,
    },
    /// Nothing but N(R) and Granted.
    Ack,
}

/// A frame without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The key of the endpoint which the frame is for.
    pub key: u64,
    /// The sender's epoch.
    pub epoch: u32,
    /// The receiver's number for the sender, or [`NO_LANE`].
    pub lane: u16,
    /// The frame was sent by the protected service.
    pub protected: bool,
    /// The sender has little memory left for messages that nobody has asked for.
    pub short: bool,
    /// N(R).
    pub received: Number,
    /// How many numbers from N(R) on may be sent.
    pub granted: u32,
    /// What the frame says.
    pub body: Body,
}

impl Repr {
    /// How many octets come before the payload.
    #[must_use]
    pub const fn head_octets(&self) -> usize {
        HEADER_OCTETS
            + match self.body {
                Body::Hello { .. } => 16,
                Body::Message { head: None, .. } | Body::Ack => 0,
                Body::Message { head: Some(head), .. } => head.octets(),
                Body::Bulk { .. } => BULK_OCTETS,
                Body::Clear { .. } => 16,
                Body::Poll { .. } => 4,
                Body::Stat { list, .. } => 4 * list.count as usize,
                Body::Ustat { .. } => 8,
            }
    }

    /// Reads a frame; its payload is what follows the first [`Repr::head_octets`].
    ///
    /// # Errors
    /// [`DecodeError`] with the first field that is not as it must be. The check is left to
    /// [`is_sound`], as devices that cannot damage a frame do without.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        if octets.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "header", octets.len(), "32 or more"));
        }
        let (version, kind, flags) = (octets[16] >> 4, octets[16] & 15, octets[17]);
        if version != VERSION {
            return Err(DecodeError::value((FORMAT, "version"), 16, version, "1"));
        }
        let number = Number::wrapping(u32_at(octets, 20));
        let rest = &octets[HEADER_OCTETS..];
        let allowed =
            PROTECTED | SHORT | if kind == MESSAGE { FIRST | TAG | DATA | BEGUN | OFFERED } else { 0 };
        if flags & !allowed != 0 {
            return Err(DecodeError::value((FORMAT, "Flags"), 17, flags, "those of the kind"));
        }
        let body = Self::body(kind, flags, number, rest)?;
        let repr = Self {
            key: u64_at(octets, 0),
            epoch: u32_at(octets, 12),
            lane: u16_at(octets, 18),
            protected: flags & PROTECTED != 0,
            short: flags & SHORT != 0,
            received: Number::wrapping(u32_at(octets, 24)),
            granted: u32_at(octets, 28),
            body,
        };
        let numbered = matches!(body, Body::Hello { .. } | Body::Ustat { .. } | Body::Ack);
        if numbered && number != Number::ZERO {
            return Err(DecodeError::value((FORMAT, "N(S)"), 20, number.get(), "0 in a frame without one"));
        }
        let has_payload = match body {
            Body::Message { head, .. } => {
                head.is_none_or(|head| matches!(head.extent, Extent::Whole | Extent::Begun { .. }))
            }
            Body::Bulk { .. } => true,
            _ => false,
        };
        if !has_payload && octets.len() != repr.head_octets() {
            return Err(DecodeError::size(FORMAT, "frame", octets.len(), "those of its fields"));
        }
        Ok(repr)
    }

    fn body(kind: u8, flags: u8, number: Number, rest: &[u8]) -> Result<Body, DecodeError> {
        let need = |octets: usize| {
            if rest.len() < octets {
                return Err(DecodeError::size(
                    FORMAT,
                    "fields of the kind",
                    rest.len(),
                    "those of its fields",
                ));
            }
            Ok(())
        };
        Ok(match kind {
            HELLO => {
                need(16)?;
                let answers = match u16_at(rest, 10) {
                    0 => None,
                    1 => Some(u32_at(rest, 12)),
                    other => return Err(DecodeError::value((FORMAT, "answers"), 42, other, "0 or 1")),
                };
                if answers.is_none() && u32_at(rest, 12) != 0 {
                    return Err(DecodeError::value((FORMAT, "answered epoch"), 44, u32_at(rest, 12), "0"));
                }
                Body::Hello { key: u64_at(rest, 0), lane: u16_at(rest, 8), answers }
            }
            MESSAGE if flags & FIRST == 0 => {
                if flags & (TAG | DATA | BEGUN | OFFERED) != 0 {
                    return Err(DecodeError::value(
                        (FORMAT, "Flags"),
                        17,
                        flags,
                        "no head but in a first frame",
                    ));
                }
                Body::Message { number, head: None }
            }
            MESSAGE => {
                let mut at = 0;
                let mut field = |flag: u8| {
                    if flags & flag == 0 {
                        return Ok(None);
                    }
                    need(at + 8)?;
                    at += 8;
                    Ok(Some(u64_at(rest, at - 8)))
                };
                let (tag, data) = (field(TAG)?, field(DATA)?);
                let extent = match flags & (BEGUN | OFFERED) {
                    0 => Extent::Whole,
                    BEGUN => {
                        need(at + 8)?;
                        Extent::Begun { length: u64_at(rest, at) }
                    }
                    OFFERED => {
                        need(at + 12)?;
                        Extent::Offered { length: u64_at(rest, at), offer: u32_at(rest, at + 8) }
                    }
                    _ => {
                        need(at + 8)?;
                        Extent::Pushed { length: u64_at(rest, at) }
                    }
                };
                Body::Message { number, head: Some(Head { tag, data, extent }) }
            }
            BULK => {
                need(12)?;
                Body::Bulk { number, reference: u32_at(rest, 0), offset: u64_at(rest, 4) }
            }
            CLEAR => {
                need(16)?;
                Body::Clear {
                    number,
                    offer: u32_at(rest, 0),
                    reference: u32_at(rest, 4),
                    length: u64_at(rest, 8),
                }
            }
            POLL => {
                need(4)?;
                Body::Poll { number, ps: Number::wrapping(u32_at(rest, 0)) }
            }
            STAT => {
                if rest.len() > 4 * STAT_ELEMENTS || !rest.len().is_multiple_of(4) {
                    return Err(DecodeError::size(
                        FORMAT,
                        "list",
                        rest.len(),
                        "4 for each of at most 7 elements",
                    ));
                }
                let mut elements = [Number::ZERO; STAT_ELEMENTS];
                let count = rest.len() / 4;
                for (index, element) in elements[..count].iter_mut().enumerate() {
                    *element = Number::wrapping(u32_at(rest, 4 * index));
                }
                Body::Stat { ps: number, list: List { elements, count: count as u8 } }
            }
            USTAT => {
                need(8)?;
                Body::Ustat {
                    first: Number::wrapping(u32_at(rest, 0)),
                    end: Number::wrapping(u32_at(rest, 4)),
                }
            }
            ACK => Body::Ack,
            other => return Err(DecodeError::value((FORMAT, "Kind"), 16, other, "0 to 7")),
        })
    }

    /// Writes the frame without its payload, and its check as zero: [`seal`] follows the payload.
    ///
    /// # Errors
    /// [`EmitError`] where `octets` are not [`Repr::head_octets`].
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "head", octets.len(), self.head_octets())?;
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut flags = flag(self.protected, PROTECTED) | flag(self.short, SHORT);
        let (header, rest) = octets.split_at_mut(HEADER_OCTETS);
        let (kind, number) = match self.body {
            Body::Hello { key, lane, answers } => {
                put(rest, 0, key.to_be_bytes());
                put(rest, 8, lane.to_be_bytes());
                put(rest, 10, u16::from(answers.is_some()).to_be_bytes());
                put(rest, 12, answers.unwrap_or(0).to_be_bytes());
                (HELLO, Number::ZERO)
            }
            Body::Message { number, head } => {
                if let Some(head) = head {
                    flags |= FIRST;
                    let mut at = 0;
                    for (flag, field) in [(TAG, head.tag), (DATA, head.data)] {
                        if let Some(field) = field {
                            flags |= flag;
                            put(rest, at, field.to_be_bytes());
                            at += 8;
                        }
                    }
                    match head.extent {
                        Extent::Whole => {}
                        Extent::Begun { length } => {
                            flags |= BEGUN;
                            put(rest, at, length.to_be_bytes());
                        }
                        Extent::Offered { length, offer } => {
                            flags |= OFFERED;
                            put(rest, at, length.to_be_bytes());
                            put(rest, at + 8, offer.to_be_bytes());
                        }
                        Extent::Pushed { length } => {
                            flags |= BEGUN | OFFERED;
                            put(rest, at, length.to_be_bytes());
                        }
                    }
                }
                (MESSAGE, number)
            }
            Body::Bulk { number, reference, offset } => {
                put(rest, 0, reference.to_be_bytes());
                put(rest, 4, offset.to_be_bytes());
                (BULK, number)
            }
            Body::Clear { number, offer, reference, length } => {
                put(rest, 0, offer.to_be_bytes());
                put(rest, 4, reference.to_be_bytes());
                put(rest, 8, length.to_be_bytes());
                (CLEAR, number)
            }
            Body::Poll { number, ps } => {
                put(rest, 0, ps.get().to_be_bytes());
                (POLL, number)
            }
            Body::Stat { ps, list } => {
                for (index, element) in list.as_slice().iter().enumerate() {
                    put(rest, 4 * index, element.get().to_be_bytes());
                }
                (STAT, ps)
            }
            Body::Ustat { first, end } => {
                put(rest, 0, first.get().to_be_bytes());
                put(rest, 4, end.get().to_be_bytes());
                (USTAT, Number::ZERO)
            }
            Body::Ack => (ACK, Number::ZERO),
        };
        put(header, 0, self.key.to_be_bytes());
        put(header, 8, [0; 4]);
        put(header, 12, self.epoch.to_be_bytes());
        (header[16], header[17]) = (VERSION << 4 | kind, flags);
        put(header, 18, self.lane.to_be_bytes());
        put(header, 20, number.get().to_be_bytes());
        put(header, 24, self.received.get().to_be_bytes());
        put(header, 28, self.granted.to_be_bytes());
        Ok(())
    }
}

/// The check of a frame: 32 bits that depend on every bit of it but those of the check itself.
///
/// Choice: a chain of folded 64-bit multiplications, sixteen octets each, which takes a tenth of the time
/// of a CRC in software. A damaged frame passes with a chance of 2^-32.
///
/// # Panics
/// If there are fewer octets than a header has.
#[must_use]
pub fn check(frame: &[u8]) -> u32 {
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        wide as u64 ^ (wide >> 64) as u64
    };
    let mut state = fold(u64_at(frame, 0) ^ CHECK_ODD, u64::from(u32_at(frame, 12)) ^ CHECK_EVEN);
    let mut pairs = frame[16..].chunks_exact(16);
    for pair in &mut pairs {
        state = fold(u64_at(pair, 0) ^ CHECK_ODD, u64_at(pair, 8) ^ state);
    }
    let mut last = [0; 16];
    last[..pairs.remainder().len()].copy_from_slice(pairs.remainder());
    state = fold(u64_at(&last, 0) ^ CHECK_ODD, u64_at(&last, 8) ^ state);
    state = fold(state ^ CHECK_EVEN, frame.len() as u64 ^ CHECK_ODD);
    state as u32 ^ (state >> 32) as u32
}

/// Writes the check of a frame that is whole.
///
/// # Panics
/// If there are fewer octets than a header has.
pub fn seal(frame: &mut [u8]) {
    let value = check(frame);
    put(frame, 8, value.to_be_bytes());
}

/// Whether a frame is long enough and has the check that belongs to it.
#[must_use]
pub fn is_sound(frame: &[u8]) -> bool {
    frame.len() >= HEADER_OCTETS && u32_at(frame, 8) == check(frame)
}

/// Panics unless a frame that can be read is written back the same: the fuzz target.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let head = repr.head_octets();
    assert!(head <= octets.len(), "fields beyond the frame");
    let mut written = [0; HEADER_OCTETS + 4 * STAT_ELEMENTS];
    let written = &mut written[..head];
    repr.emit(written).expect("the size is that of the head");
    put(written, 8, array_at::<4>(octets, 8));
    assert_eq!(written, &octets[..head], "{repr:?}");
    seal(written);
    assert!(is_sound(written));
}

fn u64_at(octets: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(octets, at))
}

const FORMAT: &str = "direct frame";
const VERSION: u8 = 1;
const HELLO: u8 = 0;
const MESSAGE: u8 = 1;
const BULK: u8 = 2;
const CLEAR: u8 = 3;
const POLL: u8 = 4;
const STAT: u8 = 5;
const USTAT: u8 = 6;
const ACK: u8 = 7;
const FIRST: u8 = 1;
const DATA: u8 = 2;
const BEGUN: u8 = 4;
const OFFERED: u8 = 8;
const PROTECTED: u8 = 16;
const SHORT: u8 = 32;
const TAG: u8 = 64;
/// Odd numbers without a pattern: the fractions of the square roots of 2 and 3.
const CHECK_ODD: u64 = 0x6a09_e667_f3bc_c909;
const CHECK_EVEN: u64 = 0xbb67_ae85_84ca_a73b;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn repr(body: Body) -> Repr {
        Repr {
            key: 0x0102_0304_0506_0708,
            epoch: 9,
            lane: 3,
            protected: false,
            short: false,
            received: Number::wrapping(7),
            granted: 64,
            body,
        }
    }

    fn n(number: u32) -> Number {
        Number::wrapping(number)
    }

    fn bodies() -> Vec<Body> {
        let head = |data: Option<u64>, extent| Some(Head { tag: data.map(|_| 5), data, extent });
        let mut bodies = vec![
            Body::Hello { key: 11, lane: 1, answers: None },
            Body::Hello { key: 11, lane: 1, answers: Some(4) },
            Body::Message { number: n(1), head: None },
            Body::Bulk { number: n(2), reference: 3, offset: 1 << 33 },
            Body::Clear { number: n(3), offer: 1, reference: 2, length: 1 << 34 },
            Body::Poll { number: n(4), ps: n(5) },
            Body::Stat { ps: n(5), list: List::new(&[]).expect("none") },
            Body::Stat { ps: n(5), list: List::new(&[n(1); STAT_ELEMENTS]).expect("the most") },
            Body::Ustat { first: n(1), end: n(2) },
            Body::Ack,
        ];
        for data in [None, Some(u64::MAX)] {
            for extent in [
                Extent::Whole,
                Extent::Begun { length: 99 },
                Extent::Offered { length: 1 << 40, offer: 8 },
                Extent::Pushed { length: 1 << 39 },
            ] {
                bodies.push(Body::Message { number: n(6), head: head(data, extent) });
            }
        }
        bodies
    }

    fn emitted(repr: &Repr) -> Vec<u8> {
        let mut octets = vec![0; repr.head_octets()];
        repr.emit(&mut octets).expect("the size is right");
        seal(&mut octets);
        octets
    }

    #[test]
    fn a_short_message_has_the_octets_that_the_table_says() {
        let head = Head { tag: Some(0xaa), data: Some(0xbb), extent: Extent::Whole };
        let mut frame = repr(Body::Message { number: n(0x11), head: Some(head) });
        frame.short = true;
        let octets = emitted(&frame);
        assert_eq!(octets.len(), 48);
        assert_eq!(octets[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(octets[12..32], [0, 0, 0, 9, 0x11, 0x63, 0, 3, 0, 0, 0, 0x11, 0, 0, 0, 7, 0, 0, 0, 64]);
        assert_eq!(octets[32..48], [0, 0, 0, 0, 0, 0, 0, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0xbb]);
    }

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        for body in bodies() {
            for (protected, short) in [(false, false), (true, false), (false, true)] {
                let frame = Repr { protected, short, ..repr(body) };
                assert!(frame.head_octets() <= MOST_HEAD_OCTETS || matches!(body, Body::Stat { .. }));
                assert_eq!(Repr::parse(&emitted(&frame)), Ok(frame));
            }
        }
    }

    #[test]
    fn any_bit_that_is_turned_is_seen_and_so_is_a_cut() {
        for body in bodies() {
            let octets = emitted(&repr(body));
            assert!(is_sound(&octets));
            for bit in 0..8 * octets.len() {
                let mut damaged = octets.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_sound(&damaged), "bit {bit} of {body:?}");
            }
            assert!(!is_sound(&octets[..octets.len() - 1]));
            let longer = [&octets[..], &[0]].concat();
            assert!(!is_sound(&longer), "a zero behind {body:?}");
        }
        assert!(!is_sound(&[0; 31]));
    }

    #[test]
    fn an_error_names_the_field() {
        let good = emitted(&repr(Body::Ack));
        for (at, value, said) in [
            (16, 0x27, "direct frame, version at octet 16: 2, allowed is 1"),
            (16, 0x18, "direct frame, Kind at octet 16: 8, allowed is 0 to 7"),
            (17, 0x41, "direct frame, Flags at octet 17: 65, allowed is those of the kind"),
            (20, 1, "direct frame, N(S) at octet 20: 16777216, allowed is 0 in a frame without one"),
            (
                16,
                0x14,
                "direct frame, fields of the kind at octet 0: 0 octets, allowed are those of its fields",
            ),
        ] {
            let mut octets = good.clone();
            octets[at] = value;
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
        let said = "direct frame, header at octet 0: 31 octets, allowed are 32 or more";
        assert_eq!(Repr::parse(&good[..31]).expect_err(said).to_string(), said);
    }

    #[test]
    fn fields_that_are_cut_short_are_errors() {
        for body in bodies() {
            let octets = emitted(&repr(body));
            for length in 0..octets.len() {
                if let Ok(shorter) = Repr::parse(&octets[..length]) {
                    assert!(shorter.head_octets() <= length, "{body:?} cut to {length}");
                }
            }
        }
    }
}
