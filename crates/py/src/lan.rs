//! The local network as Python sees it: a configuration as JSON in, times as arrays out.

use std::collections::BTreeMap;

use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use wiretwin_msg::schedule::Collective;
use wiretwin_net::SimComm;
use wiretwin_net::json::PlanError;
use wiretwin_net::lan::activity::Activity;
use wiretwin_net::lan::collective::CollectiveError;
use wiretwin_net::lan::echo::{EchoError, Tally, round_trips, round_trips_despite_losses};
use wiretwin_net::lan::flood::flood;
use wiretwin_net::lan::trail::Segment;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_net::local::ability::{Ability, try_ability};
use wiretwin_net::local::run;
use wiretwin_net::run::RunOptions;
use wiretwin_prog::netpipe::{self, Method};
use wiretwin_prog::{Outcome, Reference};
use wiretwin_record::capture::pcap::{Header, Writer};
use wiretwin_record::capture::{CaptureError, LinkType};
use wiretwin_units::{Bytes, Span};

use crate::world::refused;

fn build(config_json: &str, seed: u64, trail: bool) -> PyResult<Lan> {
    let config = Config::from_json(config_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Lan::new(config, seed, trail))
}

fn failed(error: EchoError) -> PyErr {
    match error {
        EchoError::Refused(_) => PyValueError::new_err(error.to_string()),
        EchoError::Lost { .. } => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Echoes messages of each size on a fresh network; with `patient`, goes on after a loss.
#[pyfunction]
#[pyo3(signature = (config_json, sizes, rounds, seed, patient=false))]
fn lan_echo<'py>(
    py: Python<'py>,
    config_json: &str,
    sizes: Vec<u64>,
    rounds: u64,
    seed: u64,
    patient: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for size in sizes {
        let (tally, lan) = py.detach(|| {
            let mut lan = build(config_json, seed, false)?;
            let bytes = Bytes::new(size);
            let tally = if patient {
                round_trips_despite_losses(&mut lan, bytes, rounds).map_err(failed)?
            } else {
                Tally { times: round_trips(&mut lan, bytes, rounds).map_err(failed)?, lost: 0 }
            };
            Ok::<_, PyErr>((tally, lan))
        })?;
        let item = PyDict::new(py);
        let switched = lan.passed().into_iter().filter(|(name, _)| name.starts_with("switch"));
        let (taken, lost) = switched.fold((0, 0), |sum, (_, one)| (sum.0 + one.taken, sum.1 + one.lost));
        item.set_item("lost_rounds", tally.lost)?;
        item.set_item("switched_cells", taken)?;
        item.set_item("switch_lost_cells", lost)?;
        let (sent, again) = lan.segments();
        item.set_item("sent_segments", sent)?;
        item.set_item("retransmitted_segments", again)?;
        let times = tally.times.into_iter().map(Span::as_ps).collect::<Vec<_>>();
        item.set_item("bytes", size)?;
        item.set_item("round_trip_ps", PyArray1::from_vec(py, times))?;
        item.set_item("digest", lan.digest().to_string())?;
        item.set_item("events", lan.events())?;
        item.set_item("busy_ps", lan.busy().into_iter().map(Span::as_ps).collect::<Vec<_>>())?;
        item.set_item("deepest_queue_cells", lan.deepest_queue())?;
        list.append(item)?;
    }
    Ok(list)
}

fn columns<'py>(py: Python<'py>, segments: &[(Segment, Span)]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let numbers = |of: &dyn Fn(&(Segment, Span)) -> u64| {
        PyArray1::from_vec(py, segments.iter().map(of).collect::<Vec<u64>>())
    };
    let names = |of: &dyn Fn(Activity) -> &'static str| {
        segments.iter().map(|(segment, _)| of(segment.activity)).collect::<Vec<_>>()
    };
    table.set_item("activity", names(&Activity::name))?;
    table.set_item("layer", names(&|activity| activity.layer().name()))?;
    table.set_item("resource", names(&|activity| activity.resource().name()))?;
    table.set_item("place", numbers(&|(segment, _)| u64::from(segment.place)))?;
    table.set_item("start_ps", numbers(&|(segment, _)| segment.start.as_ps()))?;
    table.set_item("end_ps", numbers(&|(segment, _)| segment.end.as_ps()))?;
    table.set_item("waited_ps", numbers(&|(_, waited)| waited.as_ps()))?;
    Ok(table)
}

/// The anatomy of the last message of an echo, and everything that took time in its last round trip.
#[pyfunction]
fn lan_anatomy<'py>(
    py: Python<'py>,
    config_json: &str,
    size: u64,
    rounds: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let lan = py.detach(|| {
        let mut lan = build(config_json, seed, true)?;
        round_trips(&mut lan, Bytes::new(size), rounds).map_err(failed)?;
        Ok::<_, PyErr>(lan)
    })?;
    let Some(anatomy) = lan.anatomies().get((2 * rounds).saturating_sub(2) as usize) else {
        return Err(PyValueError::new_err("rounds is 0; allowed: 1 or more"));
    };
    let parts = anatomy.parts.iter().map(|part| (part.segment, part.waited)).collect::<Vec<_>>();
    let message = anatomy.parts.first().map_or(0, |part| part.segment.message);
    let busy = lan.trail().segments().iter().filter(|one| one.message == message && one.end > one.start);
    let busy = busy.map(|segment| (*segment, Span::ZERO)).collect::<Vec<_>>();
    let result = PyDict::new(py);
    result.set_item("bytes", anatomy.bytes.get())?;
    result.set_item("begun_ps", anatomy.begun.as_ps())?;
    result.set_item("ended_ps", anatomy.ended.as_ps())?;
    result.set_item("path", columns(py, &parts)?)?;
    result.set_item("busy", columns(py, &busy)?)?;
    result.set_item("digest", lan.digest().to_string())?;
    Ok(result)
}

/// What one host sends and receives in an echo, as a capture in the pcap format; the configuration says whose.
#[pyfunction]
fn lan_capture<'py>(
    py: Python<'py>,
    config_json: &str,
    size: u64,
    rounds: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let file = py.detach(|| {
        let mut lan = build(config_json, seed, false)?;
        round_trips_despite_losses(&mut lan, Bytes::new(size), rounds).map_err(failed)?;
        let Some(capture) = lan.captured() else {
            return Err(PyValueError::new_err(
                "network: capture_host is nothing; allowed: the number of a host",
            ));
        };
        if capture.missed > 0 {
            let kept = capture.packets.len();
            return Err(PyRuntimeError::new_err(format!(
                "more than {kept} packets: fewer rounds make fewer"
            )));
        }
        let fcs_octets = (capture.link == LinkType::ETHERNET).then_some(FCS_OCTETS);
        let broken = |error: CaptureError| PyRuntimeError::new_err(error.to_string());
        let header = Header { fcs_octets, ..Header::new(capture.link) };
        let mut writer = Writer::new(Vec::new(), header).map_err(broken)?;
        for (time, octets) in &capture.packets {
            writer.packet((*time).into(), octets).map_err(broken)?;
        }
        writer.finish().map_err(broken)
    })?;
    Ok(PyBytes::new(py, &file))
}

/// The check sequence of a frame, as captures of Ethernet have it here.
const FCS_OCTETS: u8 = 4;

/// Runs a shipped program, one rank a host; its parameters and `costs_ps` as JSON.
#[pyfunction]
fn lan_run<'py>(
    py: Python<'py>,
    config_json: &str,
    program: &str,
    params_json: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (lan, outcomes) = py.detach(|| {
        let options = RunOptions::from_json(program, params_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if options.fault.is_some() {
            return Err(PyValueError::new_err("parameters: fault: is given; allowed: nothing, on a network"));
        }
        let lan = build(config_json, seed, false)?;
        let reference = Reference::default();
        let body = async move |comm: &mut SimComm| options.program.run(comm, &reference).await;
        run(lan, options.costs, body).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    })?;
    program_result(py, &lan, &outcomes)
}

fn program_result<'py>(py: Python<'py>, lan: &Lan, outcomes: &[Outcome]) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let elapsed = outcomes.iter().map(|one| one.elapsed.as_ps()).collect::<Vec<_>>();
    let results = outcomes.iter().map(|one| format!("{:016x}", one.digest)).collect::<Vec<_>>();
    let (sent, again) = lan.segments();
    result.set_item("elapsed_ps", PyArray1::from_vec(py, elapsed))?;
    result.set_item("points", outcomes.iter().map(points_of).collect::<Vec<_>>())?;
    result.set_item("results", results)?;
    result.set_item("verified", outcomes.iter().all(|one| one.verified))?;
    let (end, carried) = lan.finished();
    result.set_item("end_ps", end.as_ps())?;
    result.set_item("carried_ps", carried.as_ps())?;
    result.set_item("sent_segments", sent)?;
    result.set_item("retransmitted_segments", again)?;
    result.set_item("digest", lan.digest().to_string())?;
    result.set_item("events", lan.events())?;
    result.set_item("lost_cells", lan.losses().in_switches)?;
    let signalled = lan.signalled().unwrap_or_default();
    result.set_item("circuits", signalled.joined)?;
    result.set_item("set_up_ps", signalled.last.as_ps())?;
    result.set_item("sent_to_several", lan.sent_to_several())?;
    Ok(result)
}

/// NetPIPE over these sizes, in one run: by size its time and the round trips that were made; and the digest.
#[pyfunction]
#[pyo3(signature = (config_json, sizes, seed, full=false))]
fn lan_netpipe(
    py: Python<'_>,
    config_json: &str,
    sizes: Vec<u64>,
    seed: u64,
    full: bool,
) -> PyResult<(Vec<Measured>, String)> {
    py.detach(|| {
        let lan = build(config_json, seed, false)?;
        let method = Method { full, ..Method::NETPIPE };
        let body = async move |comm: &mut SimComm| netpipe::sweep(comm, &sizes.clone(), &method).await;
        let (lan, outcomes) =
            run(lan, BTreeMap::new(), body).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((points_of(&outcomes[0]), lan.digest().to_string()))
    })
}

/// Makes calls of a collective operation of MPI on a fresh network; returns how long each takes, in ps, and the digest.
#[pyfunction]
fn lan_collective(
    py: Python<'_>,
    config_json: &str,
    collective: &str,
    bytes: u64,
    calls: u32,
    seed: u64,
) -> PyResult<(Vec<u64>, String)> {
    py.detach(|| {
        let Some(named) = Collective::from_name(collective) else {
            let names = Collective::ALL.map(Collective::name).join(", ");
            return Err(PyValueError::new_err(format!("no collective {collective:?}; allowed: {names}")));
        };
        let mut lan = build(config_json, seed, false)?;
        let times = wiretwin_net::lan::collective::run(&mut lan, named, Bytes::new(bytes), calls).map_err(
            |error| match error {
                CollectiveError::Lost { .. } | CollectiveError::Failed { .. } => {
                    PyRuntimeError::new_err(error.to_string())
                }
                _ => PyValueError::new_err(error.to_string()),
            },
        )?;
        Ok((times.into_iter().map(Span::as_ps).collect(), lan.digest().to_string()))
    })
}

/// What a program has measured: bytes, nanoseconds, round trips.
pub type Measured = (u64, f64, u64);

/// All that a rank has measured.
pub fn points_of(outcome: &Outcome) -> Vec<Measured> {
    outcome.points.iter().map(|one| (one.bytes, one.time.as_ps() as f64 / 1e3, one.rounds)).collect()
}

/// Tries what an interface can do, on three hosts or more: whether it has done it, and what it did or said.
#[pyfunction]
fn lan_try(py: Python<'_>, config_json: &str, ability: &str, seed: u64) -> PyResult<(bool, String)> {
    py.detach(|| {
        let Some(wanted) = Ability::from_name(ability) else {
            let names = Ability::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
            return Err(PyValueError::new_err(format!("no ability {ability:?}; allowed: {names}")));
        };
        let config = Config::from_json(config_json).map_err(refused)?;
        if config.hosts.len() < 3 {
            let hosts = config.hosts.len();
            return Err(PyValueError::new_err(format!(
                "{hosts} hosts; allowed: 3 or more, to try {ability}"
            )));
        }
        let trial = try_ability(config, seed, wanted);
        Ok((trial.able, trial.evidence))
    })
}

/// Rejects the configuration of a network that cannot be: a `ValueError` of key, value and what is allowed.
#[pyfunction]
fn check_lan(config_json: &str) -> PyResult<()> {
    let rejected = |error: PlanError| PyValueError::new_err((error.key, error.value, error.allowed));
    Config::from_json(config_json).map(drop).map_err(rejected)
}

/// Floods rank 0 with datagrams from all others for a time: what came of its second half.
#[pyfunction]
fn lan_flood<'py>(
    py: Python<'py>,
    config_json: &str,
    bytes: u64,
    gap_ps: u64,
    length_ps: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (found, digest) = py.detach(|| {
        let mut lan = build(config_json, seed, false)?;
        let (gap, length) = (Span::from_ps(gap_ps), Span::from_ps(length_ps));
        let found = flood(&mut lan, Bytes::new(bytes), gap, length)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok::<_, PyErr>((found, lan.digest()))
    })?;
    let item = PyDict::new(py);
    item.set_item("length_ps", found.length.as_ps())?;
    item.set_item("sent", found.sent)?;
    item.set_item("got", found.got)?;
    item.set_item("unread", found.unread)?;
    item.set_item("lost", found.lost)?;
    item.set_item("busy_ps", found.busy.as_ps())?;
    item.set_item("digest", digest.to_string())?;
    Ok(item)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(lan_echo, module)?)?;
    module.add_function(wrap_pyfunction!(lan_anatomy, module)?)?;
    module.add_function(wrap_pyfunction!(lan_capture, module)?)?;
    module.add_function(wrap_pyfunction!(lan_run, module)?)?;
    module.add_function(wrap_pyfunction!(lan_netpipe, module)?)?;
    module.add_function(wrap_pyfunction!(lan_collective, module)?)?;
    module.add_function(wrap_pyfunction!(lan_flood, module)?)?;
    module.add_function(wrap_pyfunction!(lan_try, module)?)?;
    module.add_function(wrap_pyfunction!(check_lan, module)?)
}
