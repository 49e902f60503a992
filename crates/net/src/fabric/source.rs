//! What circuits are given to carry.

use std::sync::Arc;

use wiretwin_engine::Stream;
use wiretwin_units::{Cells, SimTime, Span};

/// When PDUs come to host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// There is always another cell, each a PDU of its own.
    Greedy,
    /// One each so long, the first at once.
    Constant {
        /// From one to the next; above 0.
        gap: Span,
    },
    /// As a Poisson process.
    Poisson {
        /// The mean from one to the next; above 0.
        mean: Span,
    },
    /// One each so long during times that are on, none during times that are off, both exponential.
    OnOff {
        /// From one to the next; above 0.
        gap: Span,
        /// The mean time on; above 0.
        on: Span,
        /// The mean time off.
        off: Span,
    },
    /// At these times, so many cells each; ascending.
    Playback(Arc<[(SimTime, Cells)]>),
}

/// A source that has begun.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub hop: u32,
    pub load: Load,
    /// Cells of a PDU.
    pub pdu: u32,
    stream: Stream,
    /// When its time on ends.
    on_until: SimTime,
    /// PDUs so far.
    made: usize,
}

impl Source {
    pub(super) fn new(hop: u32, load: Load, pdu: u32, stream: Stream) -> Self {
        Self { hop, load, pdu, stream, on_until: SimTime::ZERO, made: 0 }
    }

    /// When the first comes.
    pub(super) fn first(&mut self, now: SimTime) -> Option<SimTime> {
        match &self.load {
            Load::Greedy => None,
            Load::Constant { .. } => Some(now),
            Load::Poisson { mean } => Some(now + self.stream.exponential(*mean)),
            Load::OnOff { on, off, .. } => {
                let begins = now + self.stream.exponential(*off);
                self.on_until = begins + self.stream.exponential(*on);
                Some(begins)
            }
            Load::Playback(times) => times.first().map(|&(time, _)| time.max(now)),
        }
    }

    /// The one that comes now, in cells, and when the next does.
    pub(super) fn next(&mut self, now: SimTime) -> (u32, Option<SimTime>) {
        self.made += 1;
        let next = match &self.load {
            Load::Greedy => None,
            Load::Constant { gap } => Some(now + *gap),
            Load::Poisson { mean } => Some(now + self.stream.exponential(*mean)),
            Load::OnOff { gap, on, off } => {
                let mut next = now + *gap;
                while next > self.on_until {
                    next = self.on_until + self.stream.exponential(*off);
                    self.on_until = next + self.stream.exponential(*on);
                }
                Some(next)
            }
            Load::Playback(times) => {
                let cells = times[self.made - 1].1.get() as u32;
                return (cells, times.get(self.made).map(|&(time, _)| time.max(now)));
            }
        };
        (self.pdu, next)
    }
}
