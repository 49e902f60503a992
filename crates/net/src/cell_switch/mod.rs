//! Cell switches under synthetic traffic, for the study of queueing: all ports share one slot clock.
//!
//! [`run_by_slot`] walks all ports of an [`OutputQueued`] switch once a slot, [`crossbar::run_crossbar`] those of a
//! crossbar. Tests compare the first with a run in which every arrival and every departure is an event.
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

use wiretwin_plan::PlanError;
use wiretwin_units::Span;

pub use drive::run_by_slot;
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

impl Config {
    /// Checks that there is such a switch.
    ///
    /// # Errors
    /// [`PlanError`] for the first number that cannot be.
    pub fn check(&self) -> Result<(), PlanError> {
        if !(2..=MOST_PORTS).contains(&self.ports) {
            return Err(PlanError::new("ports", self.ports, format!("2 to {MOST_PORTS}")));
        }
        if !(0.0..=1.0).contains(&self.load) {
            return Err(PlanError::new("load", self.load, "0 to 1"));
        }
        // A slot in which ports are told apart, and no more slots than time has room for.
        if self.slot < Span::from_ns(1) {
            return Err(PlanError::new("slot", self.slot, "1 ns or more"));
        }
        let most = (u64::MAX / self.slot.as_ps() - 1).min(1 << 56);
        if self.slots > most {
            return Err(PlanError::new("slots", self.slots, format!("at most {most} of this length")));
        }
        Ok(())
    }
}

/// What was seen of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}
