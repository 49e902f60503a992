//! How far apart two processes are.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Measures the round trip of a cache line with another process that uses the same new file.
#[pyfunction]
fn crossing_ns(py: Python<'_>, file: PathBuf, first: bool, limit_s: f64) -> PyResult<Option<f64>> {
    let limit = Duration::try_from_secs_f64(limit_s)
        .map_err(|error| PyValueError::new_err(format!("limit_s = {limit_s}: {error}")))?;
    Ok(py.detach(|| wiretwin_host::crossing(&file, first, limit))?)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(crossing_ns, module)?)
}
