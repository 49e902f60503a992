//! What comes in at an input.

use wiretwin_engine::Stream;

use super::Config;

/// The cells of one input, slot by slot: each slot has one with the probability of the load, for any output, all
/// alike. Takes one random number a slot, whatever comes.
#[derive(Clone, Debug)]
pub struct Source {
    stream: Stream,
    ports: u32,
    /// A cell comes where the upper half of the number is below this.
    comes: u64,
}

/// 2^32 outcomes of half a random number.
const OUTCOMES: f64 = 4_294_967_296.0;

impl Source {
    /// The traffic of an input under a checked configuration.
    pub fn new(config: &Config, stream: Stream) -> Self {
        Self { stream, ports: u32::from(config.ports), comes: (config.load * OUTCOMES) as u64 }
    }

    /// The output of the cell that the next slot brings, if it brings one.
    #[inline]
    pub fn next_slot(&mut self) -> Option<u8> {
        let number = self.stream.bits();
        // Lemire's product without rejection: outputs differ in likelihood by less than 2^-26.
        let product = (number & 0xFFFF_FFFF) * u64::from(self.ports);
        (number >> 32 < self.comes).then_some((product >> 32) as u8)
    }
}
