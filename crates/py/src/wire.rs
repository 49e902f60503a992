//! The wire process.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the wire that the JSON file at `spec_path` specifies; the exit status.
///
/// Takes over the process: see `docs/models/wire.md`.
#[pyfunction]
fn wire_main(py: Python<'_>, spec_path: PathBuf) -> i32 {
    py.detach(|| wiretwin_emu::wire_main(&spec_path))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(wire_main, module)?)
}
