//! Cell switches under synthetic traffic, for the study of queueing: all ports share one slot clock.
//!
//! An [`OutputQueued`] switch is driven in two ways that must not differ in anything that can be seen:
//! [`run_by_event`] on the engine's schedule, an event for every arrival and every departure, as a switch
//! in a network is; and [`run_by_slot`], which walks all ports once a slot, for sweeps. Tests compare the
//! digests of everything that leaves.
//!
//! Source: M. Karol, M. Hluchyj, S. Morgan, "Input versus output queueing on a space-division packet
//! switch" (1987) for the model: slots, independent inputs, a cell that comes in a slot may leave in it.
//! Left out: links, headers, anything outside the switch: see `lan` for a network of real parts.

pub mod crossbar;
mod drive;
#[cfg(test)]
#[path = "tests/oracle.rs"]
mod oracle;
mod queues;
#[cfg(test)]
mod tests;
mod traffic;

use std::fmt;

use wiretwin_units::Span;

pub use drive::{run_by_event, run_by_slot};
pub use queues::OutputQueued;
pub use traffic::Source;

/// Ports a switch may have.
pub const MOST_PORTS: u8 = 64;

/// A switch, its traffic, and how long to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Inputs, and as many outputs: 2 to [`MOST_PORTS`].
    pub ports: u8,
    /// Share of the slots of each input that carry a cell, 0 to 1.
    pub load: f64,
    /// The time of a slot: at least a nanosecond.
    pub slot: Span,
    /// How many slots.
    pub slots: u64,
    /// The seed.
    pub seed: u64,
}

impl Default for Config {
    /// 16 ports of 149.76 Mbit/s at 0.9 of their rate, uniform, no limit to the queues.
    fn default() -> Self {
        Self { ports: 16, load: 0.9, slot: Span::from_ps(2_831_197), slots: 100_000, seed: 1 }
    }
}

/// Why there is no such switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// Too few ports or too many.
    Ports {
        /// How many were asked for.
        ports: u8,
    },
    /// A load that is not from 0 to 1.
    Load {
        /// Its value.
        load: f64,
    },
    /// A matching without a round.
    Iterations,
    /// A slot too short to tell its ports apart.
    Slot {
        /// The slot asked for.
        slot: Span,
    },
    /// More slots than time has room for.
    Slots {
        /// How many were asked for.
        slots: u64,
        /// How many there may be.
        most: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports { ports } => write!(f, "ports = {ports}: a switch has 2 to {MOST_PORTS}"),
            Self::Load { load } => write!(f, "load = {load}: allowed are 0 to 1"),
            Self::Iterations => f.write_str("iterations = 0: at least 1"),
            Self::Slot { slot } => write!(f, "a slot of {slot}: at least 1 ns"),
            Self::Slots { slots, most } => write!(f, "slots = {slots}: at most {most} of this length"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Checks that there is such a switch.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(2..=MOST_PORTS).contains(&self.ports) {
            return Err(ConfigError::Ports { ports: self.ports });
        }
        if !(0.0..=1.0).contains(&self.load) {
            return Err(ConfigError::Load { load: self.load });
        }
        if self.slot < Span::from_ns(1) {
            return Err(ConfigError::Slot { slot: self.slot });
        }
        let most = (u64::MAX / self.slot.as_ps() - 1).min(1 << 56);
        if self.slots > most {
            return Err(ConfigError::Slots { slots: self.slots, most });
        }
        Ok(())
    }
}

/// What was seen of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Cells that came.
    pub arrived: u64,
    /// Cells that left.
    pub departed: u64,
    /// Cells that were still there at the end.
    pub held: u64,
    /// Slots that the cells that left had waited, all together: none for one that left in the slot in
    /// which it came.
    pub waited: u64,
    /// Cells by the slots they waited; the last entry counts all that waited as long or longer.
    pub waits: Vec<u64>,
    /// The most cells that waited at one output.
    pub longest: u32,
}

impl Totals {
    /// Mean wait in slots; `None` if no cell left.
    pub fn mean_wait(&self) -> Option<f64> {
        (self.departed > 0).then(|| self.waited as f64 / self.departed as f64)
    }

    /// Share of the slots of the outputs in which a cell left.
    pub fn throughput(&self, config: &Config) -> f64 {
        self.departed as f64 / (config.slots.max(1) as f64 * f64::from(config.ports))
    }
}
