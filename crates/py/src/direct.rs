//! What of the direct transport can be had here, and messages between its endpoints alone, live and simulated.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wiretwin_host::Meeting;
use wiretwin_host::direct::{
    Counters, Exchange, Options, Services, Task, Thresholds, Ways, address_of_interface, exchange, try_past,
};
use wiretwin_net::direct::{Echo, Hosts, Incast, live_config};
use wiretwin_net::frame::{KEYS, read_wire};
use wiretwin_net::json::{At, read};
use wiretwin_units::{Bytes, Span};

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Tries to have a packet socket on an interface, or on the one that the direct transport would take: its IPv4 address.
#[pyfunction]
#[pyo3(signature = (interface=None))]
fn direct_past_kernel(py: Python<'_>, interface: Option<&str>) -> PyResult<Ipv4Addr> {
    let ip = address_of_interface(interface)
        .ok_or_else(|| PyOSError::new_err("no interface that is up and has an IPv4 address"))?;
    py.detach(|| try_past(ip))?;
    Ok(ip)
}

/// Messages to be exchanged.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Asked {
    task: String,
    bytes: u64,
    count: u64,
    pause_ns: u64,
    service: String,
    t_high_ns: u64,
    t_low_ns: u64,
    interval_ns: u64,
    t_lost_ns: u64,
    fixed_window: bool,
}

impl Asked {
    fn services(&self) -> PyResult<Services> {
        match self.service.as_str() {
            "ordinary" => Ok(Services::Ordinary),
            "protected" => Ok(Services::Protected),
            "adaptive" => Ok(Services::Adaptive(Thresholds {
                high: Span::from_ns(self.t_high_ns),
                low: Span::from_ns(self.t_low_ns),
                interval: Span::from_ns(self.interval_ns),
                lost: Span::from_ns(self.t_lost_ns),
            })),
            other => Err(refused(format!("service = {other}; allowed: ordinary, protected, adaptive"))),
        }
    }

    fn is_echo(&self) -> PyResult<bool> {
        match self.task.as_str() {
            "echo" => Ok(true),
            "incast" => Ok(false),
            other => Err(refused(format!("task = {other}; allowed: echo, incast"))),
        }
    }
}

/// What ends have counted, and how long things took, by name.
fn found<'py>(py: Python<'py>, took_ns: Vec<u64>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("took_ns", took_ns)?;
    let frames = counters.sent + counters.resent;
    for (name, value) in [
        ("frames_ordinary", frames - counters.protected),
        ("frames_protected", counters.protected),
        ("bytes_ordinary", counters.bytes[0]),
        ("bytes_protected", counters.bytes[1]),
        ("sent", counters.sent),
        ("resent", counters.resent),
        ("received", counters.received),
        ("timeouts", counters.timeouts),
    ] {
        found.set_item(name, value)?;
    }
    Ok(found)
}

/// Exchanges messages with the other ranks, which meet in a directory; what became of it at this one.
#[pyfunction]
#[pyo3(signature = (asked, *, directory, seat, address, way, limit_s))]
fn direct_exchange<'py>(
    py: Python<'py>,
    asked: Asked,
    directory: PathBuf,
    seat: (u32, u32),
    address: &str,
    way: &str,
    limit_s: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let ways = match way {
        "packet" => Ways::Packet,
        "udp" => Ways::Datagrams,
        other => return Err(refused(format!("way = {other}; allowed: packet, udp"))),
    };
    let ip = address.parse().map_err(refused)?;
    let services = asked.services()?;
    let options = Options { ip, ways, services, has_fixed_window: asked.fixed_window, ..Options::default() };
    let pause = Duration::from_nanos(asked.pause_ns);
    let task = if asked.is_echo()? { Task::Echo { pause } } else { Task::Incast };
    let (length, count, (rank, size)) = (asked.bytes as usize, asked.count, seat);
    let done = py.detach(|| {
        let meeting = Meeting { directory: &directory, rank, size, limit: Duration::from_secs_f64(limit_s) };
        exchange(&meeting, &Exchange { options, task, length, count })
    });
    let done = done.map_err(|error| PyOSError::new_err(error.to_string()))?;
    found(py, done.took.iter().map(|took| took.as_nanos() as u64).collect(), &done.counters)
}

/// The same between simulated hosts on a wire, whose specification is JSON; at all of them together.
#[pyfunction]
fn direct_simulated<'py>(
    py: Python<'py>,
    asked: Asked,
    hosts: usize,
    wire_json: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let value = read::from_json(wire_json).map_err(refused)?;
    let names: Vec<String> = (1..=hosts).map(|host| format!("h{host}")).collect();
    let fields = At::top(&value).object(KEYS).map_err(refused)?;
    let wire = read_wire(&fields, &names).map_err(refused)?;
    let config = live_config(asked.services()?, asked.fixed_window);
    let (length, count) = (Bytes::new(asked.bytes), asked.count);
    let mut all = Hosts::new(wire, config, hosts).map_err(refused)?;
    let took = if asked.is_echo()? {
        let echo = Echo { length, pause: Span::from_ns(asked.pause_ns), count };
        py.detach(|| echo.run(&mut all))
    } else {
        vec![py.detach(|| Incast { length, count }.run(&mut all))]
    };
    let took = took.into_iter().map(Span::as_ns).collect();
    let result = found(py, took, &all.totals())?;
    let lost: u64 = (0..hosts).map(|host| all.port(host).0.switch_drops + all.port(host).0.queue_drops).sum();
    result.set_item("lost", lost)?;
    Ok(result)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(direct_past_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(direct_exchange, module)?)?;
    module.add_function(wrap_pyfunction!(direct_simulated, module)?)
}
