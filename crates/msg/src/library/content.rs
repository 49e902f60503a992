//! What travels on a stream or in a datagram: heads as octets, bodies as handles.

use alloc::collections::VecDeque;

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;

/// Octets that are known, and ranges of messages that are not, in order.
///
/// A range of no octets comes with the octet before it: it is how a message without octets is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    octets: VecDeque<u8>,
    parts: VecDeque<Part>,
    length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Octets(u64),
    Body(Payload),
}

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
        Self { octets: VecDeque::new(), parts: VecDeque::new(), length: 0 }
    }

    /// How many octets it takes.
    #[must_use]
    pub const fn length(&self) -> Bytes {
        Bytes::new(self.length)
    }

    /// Whether nothing is in it, not even a range of no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first octet, where it is known.
    #[must_use]
    pub fn first_octet(&self) -> Option<u8> {
        matches!(self.parts.front(), Some(Part::Octets(_))).then(|| self.octets.front().copied()).flatten()
    }

    /// Puts octets behind.
    pub fn push_octets(&mut self, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        self.octets.extend(octets);
        self.count(octets.len() as u64);
    }

    /// Puts so many zeros behind.
    pub fn push_zeros(&mut self, count: u64) {
        if count > 0 {
            self.octets.extend(core::iter::repeat_n(0, count as usize));
            self.count(count);
        }
    }

    fn count(&mut self, octets: u64) {
        self.length += octets;
        match self.parts.back_mut() {
            Some(Part::Octets(count)) => *count += octets,
            _ => self.parts.push_back(Part::Octets(octets)),
        }
    }

    /// Puts a range of a message behind; one that goes on where the last one ends becomes one with it.
    pub fn push_body(&mut self, body: Payload) {
        self.length += body.length.get();
        if let Some(Part::Body(last)) = self.parts.back_mut()
            && last.message == body.message
            && last.start + last.length == body.start
            && body.length > Bytes::new(0)
        {
            last.length += body.length;
            return;
        }
        self.parts.push_back(Part::Body(body));
    }

    /// Moves up to `most` octets from the front of this behind those of another; returns how many.
    pub fn move_to(&mut self, most: Bytes, to: &mut Self) -> Bytes {
        let mut left = most.get();
        while let Some(part) = self.parts.front_mut() {
            match part {
                Part::Octets(count) if left > 0 => {
                    let moved = left.min(*count);
                    let whole = moved == *count;
                    *count -= moved;
                    to.octets.extend(self.octets.drain(..moved as usize));
                    to.count(moved);
                    left -= moved;
                    if !whole {
                        break;
                    }
                }
                Part::Body(body) if left > 0 || body.length == Bytes::new(0) => {
                    let moved = Bytes::new(left.min(body.length.get()));
                    let part = Payload { length: moved, ..*body };
                    let whole = moved == body.length;
                    body.start += moved;
                    body.length -= moved;
                    to.push_body(part);
                    left -= moved.get();
                    if !whole {
                        break;
                    }
                }
                _ => break,
            }
            self.parts.pop_front();
        }
        let moved = Bytes::new(most.get() - left);
        self.length -= moved.get();
        moved
    }

    /// What is in front.
    #[must_use]
    pub fn front(&self) -> Front {
        match self.parts.front() {
            None => Front::Nothing,
            Some(Part::Octets(count)) => Front::Octets(Bytes::new(*count)),
            Some(Part::Body(body)) => Front::Body(*body),
        }
    }

    /// Takes exactly as many octets as there is room for from the front; `false`, with nothing taken, where
    /// fewer are there before the next range of a message.
    pub fn take_octets(&mut self, into: &mut [u8]) -> bool {
        if into.is_empty() {
            return true;
        }
        let Some(Part::Octets(count)) = self.parts.front_mut() else { return false };
        let wanted = into.len() as u64;
        if *count < wanted {
            return false;
        }
        *count -= wanted;
        if *count == 0 {
            self.parts.pop_front();
        }
        self.length -= wanted;
        for (place, octet) in into.iter_mut().zip(self.octets.drain(..wanted as usize)) {
            *place = octet;
        }
        true
    }

    /// How many octets there are before the next range of a message.
    #[must_use]
    pub fn octets_in_front(&self) -> u64 {
        match self.parts.front() {
            Some(Part::Octets(count)) => *count,
            _ => 0,
        }
    }

    /// So many words, big endian, left where they are; `None` where fewer octets are in front.
    #[must_use]
    pub fn peek_words<const N: usize>(&self) -> Option<[u32; N]> {
        if self.octets_in_front() < 4 * N as u64 {
            return None;
        }
        let mut octets = self.octets.iter().copied();
        let mut octet = || u32::from(octets.next().unwrap_or(0));
        Some(core::array::from_fn(|_| octet() << 24 | octet() << 16 | octet() << 8 | octet()))
    }

    /// Takes up to so many octets of the range of a message in front; `None` where none is.
    pub fn take_body(&mut self, most: Bytes) -> Option<Payload> {
        let Some(Part::Body(body)) = self.parts.front_mut() else { return None };
        let taken = Payload { length: most.min(body.length), ..*body };
        body.start += taken.length;
        body.length -= taken.length;
        if body.length == Bytes::new(0) {
            self.parts.pop_front();
        }
        self.length -= taken.length.get();
        Some(taken)
    }

    /// Forgets everything; the memory stays.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.parts.clear();
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

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

    #[test]
    fn cleared_it_is_as_new() {
        let mut content = Content::new();
        content.push_octets(&[1; 10]);
        content.push_body(body(1, 0, 5));
        content.clear();
        assert_eq!(content, Content::new());
    }
}
