//! What comes in at an input.

use wiretwin_engine::Stream;

use super::Config;

/// How the cells of an input come and where they go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Each slot has a cell with the probability of the load, each for any output, all alike.
    Uniform,
    /// Bursts of cells for one output, any, all alike; lengths and pauses geometric, pauses of nothing
    /// among them.
    Bursty {
        /// Mean length of a burst in cells, at least 1.
        mean: f64,
    },
}

/// A cell that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The output it goes to.
    pub output: u8,
    /// Whether it goes before others.
    pub urgent: bool,
}

/// The cells of one input, slot by slot. Takes one random number a slot, whatever comes.
#[derive(Clone, Debug)]
pub struct Source {
    stream: Stream,
    ports: u32,
    /// A cell comes, or a burst begins, where the upper half of the number is below this.
    begins: u64,
    /// A burst ends after its cell where the upper half is below this; `None` for single cells.
    ends: Option<u64>,
    /// A cell is urgent where what is left of the lower half is below this.
    urgent: u32,
    burst: Option<u8>,
}

/// 2^32 outcomes of half a random number.
const OUTCOMES: f64 = 4_294_967_296.0;

impl Source {
    /// The traffic of an input under a checked configuration.
    pub fn new(config: &Config, stream: Stream) -> Self {
        let (begins, ends) = match config.traffic {
            Traffic::Uniform => (config.load, None),
            Traffic::Bursty { mean } => {
                // A pause of k slots has the probability b (1 - b)^k: (1 - b)/b slots on average.
                let begins = config.load / (config.load + mean * (1.0 - config.load));
                (begins, Some((OUTCOMES / mean) as u64))
            }
        };
        Self {
            stream,
            ports: u32::from(config.ports),
            begins: (begins * OUTCOMES) as u64,
            ends,
            urgent: (config.urgent * OUTCOMES) as u32,
            burst: None,
        }
    }

    /// What the next slot brings.
    #[inline]
    pub fn next_slot(&mut self) -> Option<Arrival> {
        let number = self.stream.bits();
        let upper = number >> 32;
        // Lemire's product without rejection: outputs differ in likelihood by less than 2^-26.
        let product = (number & 0xFFFF_FFFF) * u64::from(self.ports);
        let urgent = (product as u32) < self.urgent;
        let Some(ends) = self.ends else {
            return (upper < self.begins).then_some(Arrival { output: (product >> 32) as u8, urgent });
        };
        let output = match self.burst {
            Some(output) => {
                if upper < ends {
                    self.burst = None;
                }
                output
            }
            None if upper < self.begins => {
                let output = (product >> 32) as u8;
                // The first cell ends the burst with the same likelihood as any other: from the number's
                // low bits, as the high ones are known to be low.
                let last = u64::from((number as u32).wrapping_mul(0x9E37_79B9)) < ends;
                self.burst = (!last).then_some(output);
                output
            }
            None => return None,
        };
        Some(Arrival { output, urgent })
    }

    /// The first cell from slot `from` on and before `end`, and its slot.
    pub(super) fn next_arrival(&mut self, from: u64, end: u64) -> Option<(u64, Arrival)> {
        (from..end).find_map(|slot| self.next_slot().map(|arrival| (slot, arrival)))
    }
}
