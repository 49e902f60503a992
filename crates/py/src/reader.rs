//! Memory that is read on another core.

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A thread on another core that reads what it is told to.
#[pyclass(name = "Reader")]
struct Reader(wiretwin_host::Reader);

#[pymethods]
impl Reader {
    #[new]
    fn new(cpu: u32) -> PyResult<Self> {
        wiretwin_host::Reader::start(cpu).map(Self).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn read(&mut self, data: PyReadonlyArray1<'_, u8>) -> PyResult<()> {
        let bytes = data.as_slice().map_err(|_| {
            PyValueError::new_err(format!("{} bytes that do not lie side by side cannot be read", data.len()))
        })?;
        self.0.read(bytes);
        Ok(())
    }
}

/// Adds this file's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Reader>()
}
