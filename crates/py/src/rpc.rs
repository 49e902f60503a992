//! Remote procedure calls over real sockets, for stubs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wiretwin_host::{Reaction, RpcClient, RpcServer, since_1970};
use wiretwin_msg::rpc::client::{Config, DATAGRAM_OCTETS, Retry, Transport};
use wiretwin_msg::rpc::record::DEFAULT_BUFFER;
use wiretwin_msg::rpc::server::{self, CACHE_CALLS, Service};
use wiretwin_msg::rpc::{Credential, Refusal};
use wiretwin_units::Span;
use wiretwin_wire::rpc::System;

/// Seconds since 1970, as far as 32 bits go.
fn seconds() -> u32 {
    (since_1970().as_ns() / 1_000_000_000) as u32
}

/// The first address of a host.
fn address(host: &str, port: u16) -> PyResult<SocketAddr> {
    let mut found = (host, port).to_socket_addrs()?;
    found.next().ok_or_else(|| PyOSError::new_err(format!("{host} has no address")))
}

/// A client of one version of a program.
#[pyclass(name = "RpcClient", module = "wiretwin._core")]
struct PyRpcClient(RpcClient);

#[pymethods]
impl PyRpcClient {
    #[new]
    #[pyo3(signature = (host, port, program, version, stream, timeout_s, system = None))]
    fn new(
        host: &str,
        port: u16,
        program: u32,
        version: u32,
        stream: bool,
        timeout_s: f64,
        system: Option<(u32, u32)>,
    ) -> PyResult<Self> {
        if !(0.001..=3600.0).contains(&timeout_s) {
            return Err(PyValueError::new_err(format!(
                "a time-out of {timeout_s} s; allowed: 0.001 to 3600"
            )));
        }
        let transport = if stream {
            Transport::Stream { buffer: DEFAULT_BUFFER, resends: 0 }
        } else {
            Transport::Datagram { retry: Retry::SUN_RPC, largest: DATAGRAM_OCTETS }
        };
        let credential = match system {
            None => Credential::NONE,
            Some((uid, gid)) => {
                let who = System::new(seconds(), b"wiretwin", uid, gid, &[]);
                let who = who.ok_or_else(|| PyValueError::new_err("more than 16 groups"))?;
                Credential::system(&who).map_err(|error| PyValueError::new_err(error.to_string()))?
            }
        };
        let total = Span::from_us((timeout_s * 1e6) as u64);
        let config = Config { program, version, credential, total, transport };
        let client = RpcClient::new(config, address(host, port)?, std::process::id() << 16 ^ seconds())?;
        Ok(Self(client))
    }

    /// Calls a procedure: its results, in the form of XDR.
    fn call<'py>(
        &mut self,
        py: Python<'py>,
        procedure: u32,
        arguments: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let results = py.detach(|| self.0.call(procedure, arguments));
        match results {
            Ok(octets) => Ok(PyBytes::new(py, &octets)),
            Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
        }
    }
}

/// A server of some programs, over TCP and UDP at one port.
#[pyclass(name = "RpcServer", module = "wiretwin._core")]
struct PyRpcServer(RpcServer);

#[pymethods]
impl PyRpcServer {
    #[new]
    fn new(host: &str, port: u16, programs: Vec<(u32, u32, Vec<u32>)>) -> PyResult<Self> {
        let config = server::Config { cache: CACHE_CALLS, buffer: DEFAULT_BUFFER, datagram: DATAGRAM_OCTETS };
        let mut server = RpcServer::bind(config, address(host, port)?)?;
        for (program, version, procedures) in programs {
            server.register(Service { program, version, procedures, wants_system: false });
        }
        Ok(Self(server))
    }

    #[getter]
    fn port(&self) -> PyResult<u16> {
        Ok(self.0.address()?.port())
    }

    /// Serves what is there, after waiting for it no longer than `limit_s`. `react` is called with program,
    /// version, procedure and arguments, and returns results, or nothing for arguments that are garbage.
    fn step(&mut self, py: Python<'_>, limit_s: f64, react: &Bound<'_, PyAny>) -> PyResult<()> {
        if !(0.0..=3600.0).contains(&limit_s) {
            return Err(PyValueError::new_err(format!("a limit of {limit_s} s; allowed: 0 to 3600")));
        }
        let react: Py<PyAny> = react.clone().unbind();
        let mut raised = None;
        py.detach(|| {
            self.0.step(Duration::from_secs_f64(limit_s), |request| {
                let target = request.target;
                Python::attach(|py| {
                    let arguments = PyBytes::new(py, &request.arguments);
                    let named = (target.program, target.version, target.procedure, arguments);
                    let answer =
                        react.call1(py, named).and_then(|answer| answer.extract::<Option<Vec<u8>>>(py));
                    match answer {
                        Ok(Some(octets)) => Reaction::Results(Arc::from(octets)),
                        Ok(None) => Reaction::Refused(Refusal::GarbageArguments),
                        Err(error) => {
                            raised.get_or_insert(error);
                            Reaction::Refused(Refusal::SystemError)
                        }
                    }
                })
            })
        })?;
        raised.map_or(Ok(()), Err)
    }
}

/// Adds this file's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRpcClient>()?;
    module.add_class::<PyRpcServer>()
}
