//! The probe process.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the probe that the JSON file at `spec_path` specifies; the exit status.
///
/// Takes over the process: see `docs/reference/probe-protocol.md`.
#[pyfunction]
fn probe_main(py: Python<'_>, spec_path: PathBuf) -> i32 {
    py.detach(|| wiretwin_probe::probe_main(&spec_path))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(probe_main, module)?)
}
