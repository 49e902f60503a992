//! Messages, and the fragments and packets that they travel in.
//!
//! A fragment goes over a stream, between a task and its daemon or between two tasks; a packet goes over
//! UDP, between two daemons. Both carry one piece of a message, the first one with the message's head.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::Bytes;
use wiretwin_wire::pvm::{self as wire, HEADER_OCTETS, MESSAGE_OCTETS};
use wiretwin_wire::{DecodeError, EmitError, Fault};

use super::pack::{Packed, Signature};
use super::{Body, Octets, Tid};

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its encoding word.
    pub encoding: Signature,
    /// Its tag: 0 to 2^31 - 1 of users, above of the system.
    pub tag: u32,
    /// Its context.
    pub context: u32,
    /// Which request of the system this belongs to; 0 for none.
    pub wait: u32,
}

impl Head {
    pub(crate) fn wire(&self) -> wire::Message {
        let Self { encoding, tag, context, wait } = *self;
        wire::Message { encoding: encoding.0, tag, context, sequence: 0, wait, checksum: 0 }
    }

    pub(crate) fn of(message: &wire::Message) -> Self {
        let wire::Message { encoding, tag, context, wait, .. } = *message;
        Self { encoding: Signature(encoding), tag, context, wait }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<B> {
    /// Who gets it.
    pub to: Tid,
    /// Who sent it.
    pub from: Tid,
    /// Its head.
    pub head: Head,
    /// Its pieces.
    pub parts: Vec<B>,
}

impl<B: Body> Message<B> {
    /// How long it is, its head apart.
    pub fn length(&self) -> Bytes {
        self.parts.iter().map(Body::length).sum()
    }

    /// What it carries.
    pub fn packed(&self) -> Packed<B> {
        Packed { encoding: self.head.encoding, parts: self.parts.clone() }
    }

    /// Its fragments: one for each piece, at least one.
    pub fn fragments(&self) -> impl Iterator<Item = Fragment<B>> {
        let count = self.parts.len().max(1);
        (0..count).map(move |number| Fragment {
            to: self.to,
            from: self.from,
            first: (number == 0).then_some(self.head),
            last: number + 1 == count,
            body: self.parts.get(number).cloned().unwrap_or_else(|| B::from_octets(Vec::new())),
        })
    }
}

/// A piece of a message on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<B> {
    /// Who gets the message.
    pub to: Tid,
    /// Who sent it.
    pub from: Tid,
    /// The message's head, in its first fragment.
    pub first: Option<Head>,
    /// It is the last.
    pub last: bool,
    /// The piece.
    pub body: B,
}

impl<B: Body> Fragment<B> {
    /// How long it is, headers included.
    pub fn length(&self) -> Bytes {
        headers(self.first.is_some()) + self.body.length()
    }

    /// It in octets; `None` where it carries a handle.
    ///
    /// # Errors
    /// [`EmitError`] for 2^31 octets or more.
    pub fn octets(&self) -> Result<Option<Vec<u8>>, EmitError> {
        let Some(body) = self.body.octets() else { return Ok(None) };
        Ok(Some(with_head(&header(self).octets()?, self.first, body)))
    }
}

fn header<B: Body>(fragment: &Fragment<B>) -> wire::Fragment {
    let length = (fragment.length().get() - HEADER_OCTETS as u64).min(u32::MAX.into()) as u32;
    let (destination, source, first) = (fragment.to, fragment.from, fragment.first.is_some());
    wire::Fragment { destination, source, length, first, last: fragment.last }
}

/// The headers in front of a fragment's piece, which is shorter than 2^31 octets.
pub(crate) fn heads<B: Body>(fragment: &Fragment<B>) -> Vec<u8> {
    let header = header(fragment).octets().expect("a piece is shorter");
    with_head(&header, fragment.first, &[])
}

/// A piece of a message between two daemons, or an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// Its header. Whether it is a message's first is what `head` says.
    pub header: wire::Packet,
    /// The message's head, in its first packet.
    pub head: Option<Head>,
    /// The piece; empty without data.
    pub body: B,
}

impl<B: Body> Packet<B> {
    /// How long it is, headers included.
    pub fn length(&self) -> Bytes {
        headers(self.head.is_some()) + self.body.length()
    }

    /// It in octets; `None` where it carries a handle.
    pub fn octets(&self) -> Option<Vec<u8>> {
        Some(with_head(&self.header.octets(), self.head, self.body.octets()?))
    }
}

impl Packet<Octets> {
    /// The packet that a datagram is.
    ///
    /// # Errors
    /// As [`wire::Packet::parse`] and [`wire::Message::parse`].
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        let (header, mut rest) = wire::Packet::parse(octets)?;
        let mut head = None;
        if header.first {
            let (message, data) = wire::Message::parse(rest)?;
            (head, rest) = (Some(Head::of(&message)), data);
        }
        Ok(Self { header, head, body: rest.to_vec().into() })
    }
}

/// Octets of the headers in front of a piece.
pub(crate) const fn headers(first: bool) -> Bytes {
    Bytes::new((HEADER_OCTETS + if first { MESSAGE_OCTETS } else { 0 }) as u64)
}

fn with_head(header: &[u8], head: Option<Head>, body: &[u8]) -> Vec<u8> {
    let mut octets = header.to_vec();
    if let Some(head) = head {
        octets.extend(head.wire().octets());
    }
    octets.extend_from_slice(body);
    octets
}

/// Takes fragments out of a stream of octets, however that was cut.
#[derive(Debug)]
pub struct FragmentReceiver {
    /// The longest fragment that is taken, headers apart.
    most: Bytes,
    octets: Vec<u8>,
    ready: VecDeque<Fragment<Octets>>,
    broken: bool,
}

impl FragmentReceiver {
    /// A receiver that takes fragments with at most this many octets behind their header.
    pub const fn new(most: Bytes) -> Self {
        Self { most, octets: Vec::new(), ready: VecDeque::new(), broken: false }
    }

    /// Octets have come. After an error the stream is of no use: what is to come cannot be found in it.
    ///
    /// # Errors
    /// As [`wire::Fragment::parse`]; a length of more than `most` too.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Result<(), DecodeError> {
        if self.broken {
            return Ok(());
        }
        self.octets.extend_from_slice(octets);
        let mut at = 0;
        let done = loop {
            match take(&self.octets[at..], self.most) {
                Ok(Some((fragment, length))) => {
                    self.ready.push_back(fragment);
                    at += length;
                }
                Ok(None) => break Ok(()),
                Err(error) => {
                    self.broken = true;
                    break Err(error);
                }
            }
        };
        self.octets.drain(..at);
        done
    }

    /// The next whole fragment.
    pub fn poll_fragment(&mut self) -> Option<Fragment<Octets>> {
        self.ready.pop_front()
    }

    /// Octets that wait for the rest of their fragment.
    pub const fn waiting(&self) -> Bytes {
        Bytes::new(self.octets.len() as u64)
    }
}

/// The fragment that octets begin with, and how long it is there; `None` where it is not whole.
fn take(octets: &[u8], most: Bytes) -> Result<Option<(Fragment<Octets>, usize)>, DecodeError> {
    if octets.len() < HEADER_OCTETS {
        return Ok(None);
    }
    let (header, rest) = wire::Fragment::parse(octets)?;
    if u64::from(header.length) > most.get() {
        let allowed = "no more than this receiver was made for";
        let fault = Fault::Value { found: header.length.into(), allowed };
        let (format, field) = ("PVM fragment", "length");
        return Err(DecodeError { format, field, offset: Bytes::new(8), fault });
    }
    let Some(mut body) = rest.get(..header.length as usize) else { return Ok(None) };
    let mut first = None;
    if header.first {
        let (message, data) = wire::Message::parse(body)?;
        (first, body) = (Some(Head::of(&message)), data);
    }
    let wire::Fragment { destination, source, length, last, .. } = header;
    let fragment = Fragment { to: destination, from: source, first, last, body: body.to_vec().into() };
    Ok(Some((fragment, HEADER_OCTETS + length as usize)))
}

/// Puts pieces of messages together again; one message at a time from each sender.
#[derive(Clone, Debug)]
pub struct Assembly<B> {
    open: Vec<Message<B>>,
}

impl<B> Default for Assembly<B> {
    /// Nothing has come.
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<B: Body> Assembly<B> {
    /// A piece comes; the message, if it was the last. A piece without a beginning is dropped, and so is
    /// a message that another one begins in.
    pub fn handle(&mut self, fragment: Fragment<B>) -> Result<Option<Message<B>>, Stray> {
        let Fragment { to, from, first, last, body } = fragment;
        let at = self.open.iter().position(|message| message.from == from);
        let repeated = at.is_some() && first.is_some();
        let at = match (first, at) {
            (Some(head), at) => {
                let message = Message { to, from, head, parts: Vec::new() };
                match at {
                    Some(at) => {
                        self.open[at] = message;
                        at
                    }
                    None => {
                        self.open.push(message);
                        self.open.len() - 1
                    }
                }
            }
            (None, Some(at)) => at,
            (None, None) => return Err(Stray),
        };
        self.open[at].parts.push(body);
        let done = last.then(|| self.open.swap_remove(at));
        if repeated && done.is_none() { Err(Stray) } else { Ok(done) }
    }

    /// How many messages are not whole.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }
}

/// A piece that belongs to no message, or began one inside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray;

/// Takes fragments out of arbitrary octets, at once and in pieces of `step`, and compares; reads them as a
/// datagram too.
///
/// # Panics
/// If the two differ, or if what was read is not written back: a bug here.
#[doc(hidden)]
pub fn same_however_cut(octets: &[u8], step: usize) {
    let most = Bytes::new(1 << 20);
    let mut whole = FragmentReceiver::new(most);
    let mut pieces = FragmentReceiver::new(most);
    let once = whole.handle_octets(octets);
    let mut again = Ok(());
    for piece in octets.chunks(step.max(1)) {
        again = again.and(pieces.handle_octets(piece));
    }
    assert_eq!(once.is_ok(), again.is_ok(), "the same error");
    let mut assembly = Assembly::default();
    while let Some(fragment) = whole.poll_fragment() {
        assert_eq!(Some(&fragment), pieces.poll_fragment().as_ref(), "the same fragments");
        let written = fragment.octets().expect("a length that was read").expect("octets");
        assert_eq!(written.len() as u64, fragment.length().get());
        let from = fragment.from;
        if let Ok(Some(message)) = assembly.handle(fragment) {
            assert_eq!(message.from, from);
        }
    }
    assert_eq!(pieces.poll_fragment(), None);
    if let Ok(packet) = Packet::parse(octets) {
        let written = packet.octets().expect("octets");
        assert_eq!(Packet::parse(&written), Ok(packet), "written back");
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_units::Seq;

    use super::*;

    fn head(tag: u32) -> Head {
        Head { encoding: Signature::XDR, tag, context: 0, wait: 0 }
    }

    fn message(parts: &[&[u8]]) -> Message<Octets> {
        let parts = parts.iter().map(|part| part.to_vec().into()).collect();
        Message { to: Tid(0x8_0001), from: Tid(0x4_0002), head: head(7), parts }
    }

    #[test]
    fn a_message_is_a_fragment_for_each_piece_and_one_for_none() {
        let fragments: Vec<_> = message(&[b"abcd", b"efgh"]).fragments().collect();
        let told: Vec<_> =
            fragments.iter().map(|one| (one.first.is_some(), one.last, one.length().get())).collect();
        assert_eq!(told, [(true, false, 52), (false, true, 20)]);
        let first = fragments[0].octets().expect("short").expect("octets");
        let expected = b"\0\x08\0\x01\0\x04\0\x02\0\0\0\x24\x01\0\0\0\x10\0\0\0\0\0\0\x07";
        assert_eq!(first[..24], expected[..]);
        assert_eq!(first[48..], b"abcd"[..]);
        let empty: Vec<_> = message(&[]).fragments().collect();
        assert_eq!((empty.len(), empty[0].length().get(), empty[0].last), (1, 48, true));
    }

    #[test]
    fn pieces_of_two_senders_are_kept_apart_and_pieces_without_a_beginning_dropped() {
        let mut assembly = Assembly::default();
        let other = Message { from: Tid(0x4_0003), ..message(&[b"1234", b"5678"]) };
        let ours: Vec<_> = message(&[b"abcd", b"efgh"]).fragments().collect();
        let theirs: Vec<_> = other.fragments().collect();
        assert_eq!(assembly.handle(ours[1].clone()), Err(Stray));
        assert_eq!(assembly.handle(ours[0].clone()), Ok(None));
        assert_eq!(assembly.handle(theirs[0].clone()), Ok(None));
        assert_eq!(assembly.open(), 2);
        assert_eq!(assembly.handle(ours[1].clone()), Ok(Some(message(&[b"abcd", b"efgh"]))));
        assert_eq!(assembly.handle(theirs[0].clone()), Err(Stray), "begun again");
        assert_eq!(assembly.handle(theirs[1].clone()), Ok(Some(other)));
        assert_eq!(assembly.open(), 0);
    }

    #[test]
    fn a_stream_is_cut_by_lengths_and_ends_at_a_wrong_one() {
        let octets: Vec<u8> = message(&[b"abcd", b"efgh"])
            .fragments()
            .flat_map(|one| one.octets().expect("short").expect("octets"))
            .collect();
        for step in [1, 5, 17, 100] {
            same_however_cut(&octets, step);
        }
        let mut receiver = FragmentReceiver::new(Bytes::new(35));
        let error = receiver.handle_octets(&octets).expect_err("36 octets");
        assert_eq!((error.field, error.offset.get()), ("length", 8));
        assert_eq!(receiver.handle_octets(b"more"), Ok(()), "it takes nothing any more");
        assert_eq!(receiver.poll_fragment(), None);
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let header = wire::Packet {
            destination: Tid(0x8_0001),
            source: Tid(0x4_0002),
            sequence: Seq::wrapping(1),
            acknowledged: Seq::wrapping(0),
            first: true,
            last: true,
            data: true,
            finish: false,
            acknowledges: false,
        };
        let packet = Packet { header, head: Some(head(7)), body: Octets::from(b"abcd".to_vec()) };
        let octets = packet.octets().expect("octets");
        assert_eq!((octets.len(), octets[12]), (52, 7));
        assert_eq!(Packet::parse(&octets), Ok(packet));
        assert_eq!(Packet::parse(&octets[..40]).expect_err("no head").field, "header");
    }
}
