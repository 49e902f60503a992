//! The probe process: one live layer behind the probe protocol.
//!
//! A specification in, lines of JSON out; `docs/reference/probe-protocol.md` is the reference.

mod output;
mod probe;
mod reader;
mod spec;

pub use probe::probe_main;
pub use spec::{Layer, Spec, SpecError};
