//! A crossbar with queues at its inputs: who may send to whom is matched anew each slot.
//!
//! Cells wait at their input in a queue for each output (virtual output queues), so that none blocks
//! another's way, or in one queue in the order in which they came, for comparison. Ports are bits: a
//! switch of 64 matches with words, not with lists.
//!
//! Source: T. Anderson, S. Owicki, J. Saxe, C. Thacker, "High-speed switch scheduling for local-area
//! networks" (1993) for parallel iterative matching; N. McKeown, "The iSLIP scheduling algorithm for
//! input-queued switches" (1999); Karol, Hluchyj and Morgan (1987) for queues in order.

mod bits;
mod matcher;
mod maximum;
#[cfg(test)]
mod oracle;
mod queues;
mod rounds;
mod run;
#[cfg(test)]
mod tests;

use std::fmt;

use super::{Config, ConfigError, Totals};

pub use matcher::{Islip, Matching, Pim, Requests};
pub use maximum::maximum_matching;
pub use rounds::pairs_by_round;
pub use run::run_crossbar;

/// How inputs and outputs are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Parallel iterative matching: every free output grants one of the free inputs that ask, every input
    /// accepts one of its grants, all choices uniform; so many times.
    Pim {
        /// Rounds of request, grant and accept; at least 1.
        iterations: u8,
    },
    /// As PIM with round-robin pointers for choices, which move only where a grant of the first round was
    /// accepted.
    Islip {
        /// Rounds; at least 1.
        iterations: u8,
    },
    /// As many pairs as there can be. An oracle: it starves whom it likes.
    Maximum,
    /// No virtual output queues: only the first cell of each input asks, every output takes one of those
    /// that ask, all alike.
    Fifo,
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pim { iterations } => write!(f, "pim-{iterations}"),
            Self::Islip { iterations } => write!(f, "islip-{iterations}"),
            Self::Maximum => f.write_str("maximum"),
            Self::Fifo => f.write_str("fifo"),
        }
    }
}

/// A crossbar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossbarConfig {
    /// Ports, traffic, slots. The buffer is that of an input, all its queues together.
    pub switch: Config,
    /// Who may send to whom.
    pub scheduler: Scheduler,
    /// Matchings a slot; with more than one, cells wait at their output as well. At least 1.
    pub speed_up: u8,
    /// Rounds of matching are counted up to the end, those that are not used included.
    pub observe: bool,
}

impl Default for CrossbarConfig {
    /// 16 ports, parallel iterative matching in 4 rounds, no speed-up.
    fn default() -> Self {
        Self {
            switch: Config::default(),
            scheduler: Scheduler::Pim { iterations: 4 },
            speed_up: 1,
            observe: false,
        }
    }
}

/// Why there is no such crossbar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrossbarError {
    /// Its ports, traffic or slots.
    Switch(ConfigError),
    /// No round of matching, or no matching in a slot.
    None {
        /// Which number was zero.
        name: &'static str,
    },
    /// Rounds are to be counted where there are none.
    Observe {
        /// The scheduler.
        scheduler: Scheduler,
    },
    /// Urgent cells, which a crossbar does not tell apart.
    Urgent {
        /// The share asked for.
        share: f64,
    },
}

impl fmt::Display for CrossbarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(error) => error.fmt(f),
            Self::None { name } => write!(f, "{name} = 0: at least 1"),
            Self::Observe { scheduler } => {
                write!(f, "observe with {scheduler}: only pim and islip have rounds to count")
            }
            Self::Urgent { share } => write!(f, "urgent = {share}: a crossbar has one priority, so 0"),
        }
    }
}

impl std::error::Error for CrossbarError {}

impl From<ConfigError> for CrossbarError {
    fn from(error: ConfigError) -> Self {
        Self::Switch(error)
    }
}

impl CrossbarConfig {
    /// Checks that there is such a crossbar.
    ///
    /// # Errors
    /// [`CrossbarError`].
    pub fn check(&self) -> Result<(), CrossbarError> {
        self.switch.check()?;
        let rounds = match self.scheduler {
            Scheduler::Pim { iterations } | Scheduler::Islip { iterations } => Some(iterations),
            Scheduler::Maximum | Scheduler::Fifo => None,
        };
        if rounds == Some(0) {
            return Err(CrossbarError::None { name: "iterations" });
        }
        if self.speed_up == 0 {
            return Err(CrossbarError::None { name: "speed_up" });
        }
        if self.observe && rounds.is_none() {
            return Err(CrossbarError::Observe { scheduler: self.scheduler });
        }
        if self.switch.urgent > 0.0 {
            return Err(CrossbarError::Urgent { share: self.switch.urgent });
        }
        Ok(())
    }
}

/// What was seen of a crossbar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossbarTotals {
    /// Cells and their waits. `longest` is that of an input.
    pub cells: Totals,
    /// Pairs matched and used.
    pub matched: u64,
    /// Where rounds were counted: pairs that there were after the first round, the second, …, summed over
    /// slots. The last is the whole of what the scheduler finds.
    pub after: Vec<u64>,
    /// Where rounds were counted: slots by the rounds they took until nothing was left to match.
    pub rounds: Vec<u64>,
}

impl CrossbarTotals {
    /// The share of a maximal matching that there is after so many rounds; `None` where rounds were not
    /// counted or nothing was ever matched.
    pub fn matched_share(&self, rounds: usize) -> Option<f64> {
        let whole = *self.after.last().filter(|&&whole| whole > 0)?;
        let found = *self.after.get(rounds.checked_sub(1)?.min(self.after.len() - 1))?;
        Some(found as f64 / whole as f64)
    }
}
