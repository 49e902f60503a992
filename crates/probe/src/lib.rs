//! The probe process: one live layer behind the probe protocol.
//!
//! A specification in, lines of JSON out; `docs/reference/probe-protocol.md` is the reference.

mod output;
mod probe;
mod program;
mod reader;
mod spec;
mod timed;

pub use probe::probe_main;
pub use program::Program;
pub use spec::{Layer, Spec, SpecError, Task};
