//! What travels on a stream or in a datagram: heads as octets, bodies as handles.

mod held;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;

use held::{Held, Part};

/// Octets that are known, and ranges of messages that are not, in order.
///
/// A range of no octets comes with the octet before it: it is how a message without octets is known.
///
/// It takes two words where nothing is in it: memory comes with what is put in first, stays with it, and goes from
/// one to another with all that is in it.
#[derive(Clone, Default)]
pub struct Content {
    held: Option<Box<Held>>,
    length: u64,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets: Vec<u8> = self.held.iter().flat_map(|held| held.octets()).collect();
        let parts: Vec<Part> = self.held.iter().flat_map(|held| held.parts()).collect();
        f.debug_struct("Content")
            .field("octets", &octets)
            .field("parts", &parts)
            .field("length", &self.length)
            .finish()
    }
}

/// Whatever memory they have.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (&self.held, &other.held) {
            (Some(one), Some(other)) => one.parts().eq(other.parts()) && one.octets().eq(other.octets()),
            _ => self.is_empty() && other.is_empty(),
        }
    }
}

impl Eq for Content {}

/// What is in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// So many octets.
    Octets(Bytes),
    /// This range of a message.
    Body(Payload),
    /// Nothing.
    Nothing,
}

impl Content {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { held: None, length: 0 }
    }

    /// How many octets it takes.
    #[must_use]
    pub const fn length(&self) -> Bytes {
        Bytes::new(self.length)
    }

    /// Whether nothing is in it, not even a range of no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_empty())
    }

    /// Whether it has memory, of what is or was in it.
    #[must_use]
    pub const fn has_memory(&self) -> bool {
        self.held.is_some()
    }

    fn held(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }

    /// The first octet, where it is known.
    #[must_use]
    pub fn first_octet(&self) -> Option<u8> {
        if self.octets_in_front() == 0 {
            return None;
        }
        self.held.as_ref()?.octets().next()
    }

    /// Puts octets behind.
    pub fn push_octets(&mut self, octets: &[u8]) {
        if !octets.is_empty() {
            self.held().push_octets(octets);
            self.length += octets.len() as u64;
        }
    }

    /// Puts so many zeros behind.
    pub fn push_zeros(&mut self, count: u64) {
        if count > 0 {
            self.held().push_zeros(count);
            self.length += count;
        }
    }

    /// Puts a range of a message behind; one that goes on where the last one ends becomes one with it.
    pub fn push_body(&mut self, body: Payload) {
        self.length += body.length.get();
        self.held().push_body(body);
    }

    /// Moves up to `most` octets from the front of this behind those of another; returns how many.
    pub fn move_to(&mut self, most: Bytes, to: &mut Self) -> Bytes {
        if most.get() >= self.length && to.is_empty() {
            core::mem::swap(self, to);
            return to.length();
        }
        let Some(held) = &mut self.held else { return Bytes::new(0) };
        let into = to.held();
        let mut left = most;
        loop {
            match held.front() {
                Front::Octets(count) if left > Bytes::new(0) => {
                    let moved = left.min(count);
                    held.take_octets(moved.get() as usize, |octets| into.push_octets(octets));
                    left -= moved;
                }
                Front::Body(body) if left > Bytes::new(0) || body.length == Bytes::new(0) => {
                    let Some(body) = held.take_body(left) else { break };
                    into.push_body(body);
                    left -= body.length;
                }
                _ => break,
            }
        }
        let moved = most - left;
        self.length -= moved.get();
        to.length += moved.get();
        moved
    }

    /// What is in front.
    #[must_use]
    pub fn front(&self) -> Front {
        self.held.as_ref().map_or(Front::Nothing, |held| held.front())
    }

    /// Takes exactly as many octets as there is room for from the front; `false`, with nothing taken, where
    /// fewer are there before the next range of a message.
    pub fn take_octets(&mut self, into: &mut [u8]) -> bool {
        if into.is_empty() {
            return true;
        }
        if self.octets_in_front() < into.len() as u64 {
            return false;
        }
        let Some(held) = &mut self.held else { return false };
        let mut done = 0;
        held.take_octets(into.len(), |octets| {
            into[done..done + octets.len()].copy_from_slice(octets);
            done += octets.len();
        });
        self.length -= done as u64;
        true
    }

    /// How many octets there are before the next range of a message.
    #[must_use]
    pub fn octets_in_front(&self) -> u64 {
        match self.front() {
            Front::Octets(count) => count.get(),
            _ => 0,
        }
    }

    /// So many words, big endian, left where they are; `None` where fewer octets are in front.
    #[must_use]
    pub fn peek_words<const N: usize>(&self) -> Option<[u32; N]> {
        if self.octets_in_front() < 4 * N as u64 {
            return None;
        }
        let mut octets = self.held.as_ref()?.octets();
        let mut octet = || u32::from(octets.next().unwrap_or(0));
        Some(core::array::from_fn(|_| octet() << 24 | octet() << 16 | octet() << 8 | octet()))
    }

    /// Takes up to so many octets of the range of a message in front; `None` where none is.
    pub fn take_body(&mut self, most: Bytes) -> Option<Payload> {
        let taken = self.held.as_mut()?.take_body(most)?;
        self.length -= taken.length.get();
        Some(taken)
    }

    /// Forgets everything; the memory stays.
    pub fn clear(&mut self) {
        if let Some(held) = &mut self.held {
            held.clear();
        }
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wiretwin_proto::MessageId;

    use super::*;

    fn body(message: u64, start: u64, length: u64) -> Payload {
        Payload { message: MessageId(message), start: Bytes::new(start), length: Bytes::new(length) }
    }

    #[test]
    fn a_head_and_its_body_come_as_they_went() {
        let mut content = Content::new();
        content.push_octets(b"head");
        content.push_body(body(7, 0, 10));
        content.push_zeros(2);
        assert_eq!(content.length(), Bytes::new(16));
        assert!(!content.take_octets(&mut [0; 5]), "there are four before the body");
        let mut head = [0; 4];
        assert!(content.take_octets(&mut head));
        assert_eq!(&head, b"head");
        assert_eq!(content.take_body(Bytes::new(3)), Some(body(7, 0, 3)));
        assert_eq!(content.front(), Front::Body(body(7, 3, 7)));
        assert_eq!(content.take_body(Bytes::new(100)), Some(body(7, 3, 7)));
        assert_eq!(content.take_body(Bytes::new(1)), None);
        assert!(content.take_octets(&mut [9; 2]));
        assert!(content.is_empty() && content.length() == Bytes::new(0));
    }

    #[test]
    fn a_range_of_no_octets_comes_with_the_octet_before_it() {
        let (mut content, mut read) = (Content::new(), Content::new());
        content.push_octets(b"ab");
        content.push_body(body(1, 0, 0));
        content.push_octets(b"c");
        assert_eq!(content.move_to(Bytes::new(1), &mut read), Bytes::new(1));
        assert_eq!(read.front(), Front::Octets(Bytes::new(1)));
        assert_eq!(content.move_to(Bytes::new(1), &mut read), Bytes::new(1));
        assert!(read.take_octets(&mut [0; 2]));
        assert_eq!(read.take_body(Bytes::new(0)), Some(body(1, 0, 0)));
        assert!(read.is_empty());
        assert_eq!(content.length(), Bytes::new(1));
    }

    proptest! {
        #[test]
        fn what_is_cut_anywhere_is_whole_again(
            parts in prop::collection::vec((0u64..40, any::<bool>()), 0..12),
            cuts in prop::collection::vec(0u64..30, 1..40),
        ) {
            let make = || {
                let mut content = Content::new();
                for (number, &(length, octets)) in parts.iter().enumerate() {
                    if octets {
                        let octets: Vec<u8> = (0..length).map(|at| (at + number as u64) as u8).collect();
                        content.push_octets(&octets);
                    } else {
                        content.push_body(body(number as u64, 5, length));
                    }
                }
                content
            };
            let (whole, mut left, mut read) = (make(), make(), Content::new());
            for cut in cuts.iter().cycle().take(400) {
                let before = left.length();
                let moved = left.move_to(Bytes::new(*cut), &mut read);
                prop_assert_eq!(moved, Bytes::new(*cut).min(before));
                prop_assert_eq!(left.length() + moved, before);
            }
            left.move_to(Bytes::new(1000), &mut read);
            prop_assert!(left.is_empty());
            prop_assert_eq!(read, whole);
        }
    }

    /// A content as plainly as it can be: each octet apart.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Plain {
        Octet(u8),
        Body(Payload),
    }

    fn push_plain(plain: &mut Vec<Plain>, body: Payload) {
        match plain.last_mut() {
            Some(Plain::Body(last))
                if last.message == body.message
                    && last.start + last.length == body.start
                    && body.length > Bytes::new(0) =>
            {
                last.length += body.length;
            }
            _ => plain.push(Plain::Body(body)),
        }
    }

    fn move_plain(from: &mut Vec<Plain>, mut left: u64, to: &mut Vec<Plain>) {
        while let Some(&first) = from.first() {
            match first {
                Plain::Octet(_) if left > 0 => {
                    to.push(from.remove(0));
                    left -= 1;
                }
                Plain::Body(body) if left > 0 || body.length == Bytes::new(0) => {
                    let moved = body.length.get().min(left);
                    push_plain(to, Payload { length: Bytes::new(moved), ..body });
                    left -= moved;
                    let (start, length) = (body.start + Bytes::new(moved), body.length - Bytes::new(moved));
                    from.remove(0);
                    if length > Bytes::new(0) {
                        return from.insert(0, Plain::Body(Payload { start, length, ..body }));
                    }
                }
                _ => return,
            }
        }
    }

    /// How many octets there are in front, and how long the content is.
    fn lengths(plain: &[Plain]) -> (u64, u64) {
        let in_front = plain.iter().take_while(|one| matches!(one, Plain::Octet(_))).count();
        let length = plain.iter().map(|one| match one {
            Plain::Octet(_) => 1,
            Plain::Body(body) => body.length.get(),
        });
        (in_front as u64, length.sum())
    }

    proptest! {
        #[test]
        fn whatever_is_done_it_is_as_each_octet_apart_would_be(
            steps in prop::collection::vec((0u8..10, 0u64..120), 1..60),
        ) {
            let (mut one, mut two) = (Content::new(), Content::new());
            let (mut plain, mut other): (Vec<Plain>, Vec<Plain>) = (Vec::new(), Vec::new());
            // Ranges go on where the last one ended, one time in two.
            let mut next = 0;
            for (step, &(kind, count)) in steps.iter().enumerate() {
                match kind {
                    0 | 1 => {
                        let octets: Vec<u8> = (0..count).map(|at| (at as usize + step) as u8).collect();
                        one.push_octets(&octets[..octets.len() >> (2 * kind)]);
                        plain.extend(octets[..octets.len() >> (2 * kind)].iter().map(|&octet| Plain::Octet(octet)));
                    }
                    2 => {
                        one.push_zeros(count % 5);
                        plain.extend((0..count % 5).map(|_| Plain::Octet(0)));
                    }
                    3 | 4 => {
                        // A message without octets is one of its own.
                        let length = count / 2 % 40;
                        let range = body(if length > 0 { 0 } else { step as u64 + 1 }, next, length);
                        next += range.length.get() + u64::from(kind == 4);
                        one.push_body(range);
                        push_plain(&mut plain, range);
                    }
                    5 => {
                        let mut octets: Vec<u8> = (0..count % 90).map(|_| 0).collect();
                        let there = one.take_octets(&mut octets);
                        prop_assert_eq!(there, octets.len() as u64 <= lengths(&plain).0);
                        if there {
                            let taken: Vec<_> = plain.drain(..octets.len()).collect();
                            prop_assert_eq!(taken, octets.into_iter().map(Plain::Octet).collect::<Vec<_>>());
                        }
                    }
                    6 => {
                        let taken = one.take_body(Bytes::new(count));
                        match plain.first().copied() {
                            Some(Plain::Body(range)) => {
                                let length = range.length.min(Bytes::new(count));
                                prop_assert_eq!(taken, Some(Payload { length, ..range }));
                                plain.remove(0);
                                let (start, length) = (range.start + length, range.length - length);
                                if length > Bytes::new(0) {
                                    plain.insert(0, Plain::Body(Payload { start, length, ..range }));
                                }
                            }
                            _ => prop_assert_eq!(taken, None),
                        }
                    }
                    7 if count == 0 => {
                        one.clear();
                        plain.clear();
                    }
                    7 | 8 => {
                        one.move_to(Bytes::new(count), &mut two);
                        move_plain(&mut plain, count, &mut other);
                    }
                    _ => {
                        core::mem::swap(&mut one, &mut two);
                        core::mem::swap(&mut plain, &mut other);
                    }
                }
                let (in_front, length) = lengths(&plain);
                prop_assert_eq!((one.octets_in_front(), one.length().get()), (in_front, length));
                prop_assert_eq!(one.is_empty(), plain.is_empty());
                prop_assert_eq!(one.first_octet(), match plain.first() {
                    Some(Plain::Octet(octet)) => Some(*octet),
                    _ => None,
                });
                let (mut octets, mut bodies) = (Vec::new(), Vec::new());
                for part in &plain {
                    match *part {
                        Plain::Octet(octet) => octets.push(octet),
                        Plain::Body(body) => bodies.push((octets.len() as u64, body)),
                    }
                }
                let (mut before, mut there) = (0, Vec::new());
                for part in one.held.iter().flat_map(|held| held.parts()) {
                    match part {
                        Part::Octets(count) => before += count,
                        Part::Body(body) => there.push((before, body)),
                    }
                }
                prop_assert_eq!(one.held.iter().flat_map(|held| held.octets()).collect::<Vec<_>>(), octets);
                prop_assert_eq!(there, bodies);
            }
        }
    }

    #[test]
    fn what_moves_whole_takes_its_memory_with_it_and_what_is_cut_does_not() {
        let (mut content, mut read) = (Content::new(), Content::new());
        assert!(!content.has_memory(), "nothing was in it");
        content.push_octets(&[0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(content.move_to(Bytes::new(4), &mut read), Bytes::new(4));
        assert!(content.has_memory() && read.has_memory());
        assert!(read.take_octets(&mut [0; 4]));
        let mut last = Content::new();
        assert_eq!(content.move_to(Bytes::MAX, &mut last), Bytes::new(4));
        assert!(!content.has_memory() && content.is_empty());
        assert_eq!(last.peek_words(), Some([2]));
        assert_eq!(read, content, "with memory or without, nothing is nothing");
        assert_ne!(last, read);
    }

    #[test]
    fn cleared_it_is_as_new() {
        let mut content = Content::new();
        content.push_octets(&[1; 10]);
        content.push_body(body(1, 0, 5));
        content.clear();
        assert_eq!(content, Content::new());
    }
}
