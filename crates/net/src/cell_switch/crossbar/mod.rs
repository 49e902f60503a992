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
#[path = "tests/oracle.rs"]
mod oracle;
mod queues;
mod rounds;
mod run;
#[cfg(test)]
mod tests;

use wiretwin_plan::PlanError;

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

impl Scheduler {
    /// Checks that there is such a scheduler.
    ///
    /// # Errors
    /// [`PlanError`] for a matching without a round.
    pub fn check(self) -> Result<(), PlanError> {
        match self {
            Self::Pim { iterations: 0 } | Self::Islip { iterations: 0 } => {
                Err(PlanError::new("iterations", 0, "1 or more"))
            }
            _ => Ok(()),
        }
    }
}
