//! What may happen next, as [`Upcoming`](crate::upcoming::Upcoming) keeps it.

use super::frames::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The bus of a station is free.
    Bus(u32),
    /// A station has sent its frame.
    Sent(u32),
    /// A frame may go on in the switch.
    Forward(Place),
    /// A way out of the switch has sent its frame.
    Forwarded(u32),
    /// A frame has come whole to a station.
    Came(Place),
    /// A station is to pause.
    Stop(u32),
    /// It need not any more.
    Go(u32),
    /// A pause may be over.
    Resume(u32),
    /// The first frame that a host was not told of has waited long enough: of the so manyth time, in 24 bits.
    Tell(u32, u32),
}

impl Event {
    /// As a number: 8 bits of kind, 24 of a count, 32 of whose.
    pub(super) const fn index(self) -> u64 {
        let (kind, count, whose) = match self {
            Self::Bus(at) => (0, 0, at),
            Self::Sent(at) => (1, 0, at),
            Self::Forward(place) => (2, 0, place),
            Self::Forwarded(port) => (3, 0, port),
            Self::Came(place) => (4, 0, place),
            Self::Stop(at) => (5, 0, at),
            Self::Go(at) => (6, 0, at),
            Self::Resume(at) => (7, 0, at),
            Self::Tell(at, told) => (8, told & COUNT_MASK, at),
        };
        (kind as u64) << 56 | (count as u64) << 32 | whose as u64
    }

    pub(super) const fn of(index: u64) -> Self {
        let whose = index as u32;
        match index >> 56 {
            0 => Self::Bus(whose),
            1 => Self::Sent(whose),
            2 => Self::Forward(whose),
            3 => Self::Forwarded(whose),
            4 => Self::Came(whose),
            5 => Self::Stop(whose),
            6 => Self::Go(whose),
            7 => Self::Resume(whose),
            _ => Self::Tell(whose, (index >> 32) as u32 & COUNT_MASK),
        }
    }
}

/// What is kept of a count.
pub(super) const COUNT_MASK: u32 = 0xff_ffff;
