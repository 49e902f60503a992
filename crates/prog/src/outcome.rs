//! What a program run by a rank comes to.

use std::fmt;

use wiretwin_units::Span;

use crate::comm::CommError;

/// What a rank reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the first to the last instant of the program proper, on this rank's clock.
    pub elapsed: Span,
    /// A digest of this rank's part of the result, bit for bit.
    pub digest: u64,
    /// Whether what this rank can check is right: the received data, or the result against the
    /// sequential program.
    pub verified: bool,
    /// What a program that measures has found, on the rank that did; of others nothing.
    pub points: Vec<Point>,
}

impl Outcome {
    /// That of a program that has a result, and measures nothing.
    #[must_use]
    pub const fn new(elapsed: Span, digest: u64, verified: bool) -> Self {
        Self { elapsed, digest, verified, points: Vec::new() }
    }
}

/// What messages of a size take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The size, bytes.
    pub bytes: u64,
    /// The time of one message: RTT/2.
    pub time: Span,
    /// Round trips that were run for it.
    pub rounds: u64,
}

/// Why a program failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// A call failed.
    Comm(CommError),
    /// The program does not run with these parameters.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: String,
    },
}

impl From<CommError> for ProgramError {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(error) => error.fmt(f),
            Self::Parameter { name, value, allowed } => write!(f, "{name} is {value}; allowed: {allowed}"),
        }
    }
}

impl std::error::Error for ProgramError {}

/// How long from `start` to `end`; a clock does not run backwards.
pub(crate) fn elapsed(start: Span, end: Span) -> Span {
    Span::from_ps(end.as_ps().saturating_sub(start.as_ps()))
}
