//! What of the direct transport can be had here.

use std::net::Ipv4Addr;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use wiretwin_host::direct::{address_of_interface, try_past};

/// Tries to have a packet socket on an interface, or on the one that the direct transport would take: its IPv4 address.
#[pyfunction]
#[pyo3(signature = (interface=None))]
fn direct_past_kernel(py: Python<'_>, interface: Option<&str>) -> PyResult<Ipv4Addr> {
    let ip = address_of_interface(interface)
        .ok_or_else(|| PyOSError::new_err("no interface that is up and has an IPv4 address"))?;
    py.detach(|| try_past(ip))?;
    Ok(ip)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(direct_past_kernel, module)?)
}
