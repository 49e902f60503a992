//! The shipped programs, by name and parameters.

use serde_json::Value;
use wiretwin_prog::echo::{EchoParams, echo};
use wiretwin_prog::jacobi::{JacobiParams, jacobi};
use wiretwin_prog::ring::{RingParams, ring};
use wiretwin_prog::stream::{StreamParams, stream};
use wiretwin_prog::{Comm, Outcome, ProgramError};

use crate::reader::{Reader, SpecError};

/// A shipped program with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ping-pong between ranks 0 and 1.
    Echo(EchoParams),
    /// One way from rank 0 to rank 1.
    Stream(StreamParams),
    /// Ring allreduce.
    Ring(RingParams),
    /// The heat equation on a line or a square.
    Jacobi(JacobiParams),
}

/// The longest message or vector: 4 GiB.
const LONGEST: u64 = 1 << 32;
/// The most repetitions.
const MOST: u64 = 1 << 40;

impl Program {
    pub(crate) fn read(value: Value) -> Result<Self, SpecError> {
        let mut reader = Reader::new("program", value)?;
        let name = reader.required("name", "echo, stream, ring or jacobi")?;
        let program = match name.as_str() {
            Some("echo") => Self::Echo(EchoParams {
                bytes: reader.integer("bytes", 0, LONGEST, None)?,
                rounds: reader.integer("rounds", 1, MOST, None)?,
            }),
            Some("stream") => Self::Stream(StreamParams {
                bytes: reader.integer("bytes", 0, LONGEST, None)?,
                messages: reader.integer("messages", 1, MOST, None)?,
            }),
            Some("ring") => Self::Ring(RingParams {
                elements: reader.integer("elements", 0, LONGEST / 8, None)?,
                rounds: reader.integer("rounds", 1, MOST, None)?,
            }),
            Some("jacobi") => Self::Jacobi(JacobiParams {
                rows: reader.integer("rows", 1, 1 << 16, None)?,
                columns: reader.integer("columns", 1, 1 << 30, None)?,
                iterations: reader.integer("iterations", 0, MOST, None)?,
            }),
            _ => return Err(reader.wrong("name", &name, "echo, stream, ring or jacobi")),
        };
        reader.end()?;
        Ok(program)
    }

    /// The name used in specifications.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Stream(_) => "stream",
            Self::Ring(_) => "ring",
            Self::Jacobi(_) => "jacobi",
        }
    }

    /// Runs this rank's part.
    ///
    /// # Errors
    /// Those of the program.
    pub async fn run<C: Comm>(&self, comm: &mut C) -> Result<Outcome, ProgramError> {
        match self {
            Self::Echo(params) => echo(comm, params).await,
            Self::Stream(params) => stream(comm, params).await,
            Self::Ring(params) => ring(comm, params).await,
            Self::Jacobi(params) => jacobi(comm, params).await,
        }
    }
}
