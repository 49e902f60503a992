//! What messages carry: octets, or a handle where nobody looks at them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;

/// A piece of what a message carries. Cloning it must be cheap.
pub trait Body: Clone {
    /// How long it is.
    fn length(&self) -> Bytes;

    /// A part of it; `start + length` is at most [`Body::length`].
    fn part(&self, start: Bytes, length: Bytes) -> Self;

    /// Octets that the library itself has made.
    fn from_octets(octets: Vec<u8>) -> Self;

    /// The octets, where it has any: always for one of [`Body::from_octets`] and its parts.
    fn octets(&self) -> Option<&[u8]>;
}

/// Octets, shared.
#[derive(Clone, Debug)]
pub struct Octets {
    all: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Octets {
    /// The octets.
    pub fn as_slice(&self) -> &[u8] {
        &self.all[self.start..self.end]
    }
}

impl PartialEq for Octets {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Octets {}

impl From<Vec<u8>> for Octets {
    fn from(octets: Vec<u8>) -> Self {
        Self { start: 0, end: octets.len(), all: octets.into() }
    }
}

impl Body for Octets {
    fn length(&self) -> Bytes {
        Bytes::new((self.end - self.start) as u64)
    }

    fn part(&self, start: Bytes, length: Bytes) -> Self {
        let start = self.start + start.get() as usize;
        let end = start + length.get() as usize;
        assert!(end <= self.end, "a part that is not in the whole");
        Self { all: Arc::clone(&self.all), start, end }
    }

    fn from_octets(octets: Vec<u8>) -> Self {
        octets.into()
    }

    fn octets(&self) -> Option<&[u8]> {
        Some(self.as_slice())
    }
}

/// A piece of a simulated world: a program's message is a handle, what the library says is octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Of the library itself.
    Octets(Octets),
    /// Of a program: a range of its message, and octets that fill the last unit of XDR behind it.
    Message {
        /// The range.
        range: Payload,
        /// How many octets fill.
        fill: u8,
    },
}

impl Body for Piece {
    fn length(&self) -> Bytes {
        match self {
            Self::Octets(octets) => octets.length(),
            Self::Message { range, fill } => range.length + Bytes::new((*fill).into()),
        }
    }

    fn part(&self, start: Bytes, length: Bytes) -> Self {
        match self {
            Self::Octets(octets) => Self::Octets(octets.part(start, length)),
            Self::Message { range, .. } => {
                assert!(start + length <= self.length(), "a part that is not in the whole");
                let from = start.min(range.length);
                let of_range = (start + length).min(range.length) - from;
                let fill = (length - of_range).get() as u8;
                let range = Payload { message: range.message, start: range.start + from, length: of_range };
                Self::Message { range, fill }
            }
        }
    }

    fn from_octets(octets: Vec<u8>) -> Self {
        Self::Octets(octets.into())
    }

    fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Octets(octets) => Some(octets.as_slice()),
            Self::Message { .. } => None,
        }
    }
}

/// All octets of pieces; `None` where one has none.
pub(crate) fn gather<B: Body>(parts: &[B]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(part.octets()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use wiretwin_proto::MessageId;

    use super::*;

    #[test]
    fn a_part_of_a_part_is_where_it_was_in_the_whole() {
        let whole = Octets::from(b"0123456789".to_vec());
        let part = whole.part(Bytes::new(2), Bytes::new(6)).part(Bytes::new(1), Bytes::new(3));
        assert_eq!((part.as_slice(), part.length().get()), (&b"345"[..], 3));
        let range = Payload::whole(MessageId(1), Bytes::new(9));
        let whole = Piece::Message { range, fill: 3 };
        assert_eq!((whole.length().get(), whole.octets()), (12, None));
        let part = |start, length| match whole.part(Bytes::new(start), Bytes::new(length)) {
            Piece::Message { range, fill } => (range.start.get(), range.length.get(), fill),
            Piece::Octets(_) => panic!("of a program"),
        };
        assert_eq!([part(0, 8), part(8, 4), part(10, 2)], [(0, 8, 0), (8, 1, 3), (9, 0, 2)]);
        assert_eq!(gather(&[Piece::from_octets(b"ab".to_vec()), whole]), None);
    }
}
