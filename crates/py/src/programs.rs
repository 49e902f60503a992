//! The shipped programs in the simulated world.

use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyDict, PyList};
use wiretwin_net::local::mixed;
use wiretwin_net::ranks::Ranks;
use wiretwin_net::run::{RunError, run_named, run_traced};
use wiretwin_prog::Outcome;
use wiretwin_units::{SimTime, Span};

use crate::lan::points_of;
use crate::world::{refused, timeline_of, totals_of, write_chrome_trace};

/// Runs a shipped program in a simulated world; with what one rank sent, the timeline, or that in a file for
/// viewers, if they are asked for.
#[pyfunction]
#[pyo3(signature = (name, params_json, model_json, ranks, seed, *, traced=None, timeline=false, chrome_trace=None))]
#[allow(clippy::too_many_arguments)]
fn run_program<'py>(
    py: Python<'py>,
    name: &str,
    params_json: &str,
    model_json: &str,
    ranks: u32,
    seed: u64,
    traced: Option<u32>,
    timeline: bool,
    chrome_trace: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    if traced.is_some() && (timeline || chrome_trace.is_some()) {
        return Err(PyValueError::new_err("traced: is given with a timeline; allowed: one of them"));
    }
    let recorded = timeline || chrome_trace.is_some();
    let run = py.detach(|| match traced {
        Some(rank) => run_traced(name, params_json, model_json, ranks, seed, rank),
        None => run_named(name, params_json, model_json, ranks, seed, recorded).map(|run| (run, Vec::new())),
    });
    let (run, sent) = run.map_err(refused)?;
    let result = PyDict::new(py);
    if traced.is_some() {
        let times = sent.iter().map(|sent| sent.at.as_ps()).collect();
        result.set_item("sent_ps", numpy::PyArray1::from_vec(py, times))?;
        let sizes = sent.iter().map(|sent| sent.bytes.get()).collect();
        result.set_item("sent_bytes", numpy::PyArray1::from_vec(py, sizes))?;
        let peers = sent.iter().map(|sent| u64::from(sent.to.0)).collect();
        result.set_item("sent_to", numpy::PyArray1::from_vec(py, peers))?;
    }
    let outcomes = outcomes_of(py, &run.outcomes)?;
    let ends = (0..ranks)
        .map(|rank| run.world.rank_now(rank).map(|now| now.as_ps()).map_err(refused))
        .collect::<PyResult<Vec<u64>>>()?;
    let counts = run.world.counts();
    result.set_item("outcomes", outcomes)?;
    result.set_item("end_ps", numpy::PyArray1::from_vec(py, ends))?;
    result.set_item("totals", totals_of(py, &run.world)?)?;
    if timeline {
        result.set_item("timeline", timeline_of(py, &run.world)?)?;
    }
    if let Some(recorded) = run.world.timeline() {
        result.set_item("timeline_coarse_ps", recorded.coarse().as_ps())?;
    }
    if let Some(path) = chrome_trace {
        write_chrome_trace(&run.world, &path)?;
    }
    result.set_item("names", run.world.names().to_vec())?;
    result.set_item("messages", counts.delivered)?;
    result.set_item("congestion", run.world.congestion().into_py_dict(py)?)?;
    result.set_item("digest", run.world.digest().to_string())?;
    Ok(result)
}

/// Runs programs at once on a model: what each has come to; and the end, what the network lost and marked, and the digest.
#[pyfunction]
fn run_together<'py>(
    py: Python<'py>,
    model_json: &str,
    programs_json: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let run = || mixed::run_together(model_json, &mixed::Job::list(programs_json)?, seed);
    let (ranks, done) = py.detach(run).map_err(|error| match error {
        RunError::Program { .. } | RunError::Deadlock { .. } => PyRuntimeError::new_err(error.to_string()),
        _ => refused(error),
    })?;
    let programs = PyList::empty(py);
    for one in done {
        let item = PyDict::new(py);
        let now = |process: &u32| ranks.rank_now(*process).map(SimTime::as_ps).map_err(refused);
        item.set_item("end_ps", one.processes.iter().map(now).collect::<PyResult<Vec<u64>>>()?)?;
        let parts =
            |process: &u32| ranks.totals(*process).map(|parts| parts.map(Span::as_ps)).map_err(refused);
        item.set_item("parts_ps", one.processes.iter().map(parts).collect::<PyResult<Vec<_>>>()?)?;
        item.set_item("outcomes", outcomes_of(py, &one.outcomes)?)?;
        let times = |seen: &mixed::Seen| {
            numpy::PyArray1::from_vec(py, seen.responses.iter().map(|time| time.as_ps()).collect())
        };
        item.set_item("response_ps", one.seen.iter().map(times).collect::<Vec<_>>())?;
        item.set_item("received_bytes", one.seen.iter().map(|seen| seen.received).collect::<Vec<_>>())?;
        programs.append(item)?;
    }
    let end = match &ranks {
        Ranks::Local(local) => local.lan().now(),
        Ranks::Costs(_) => {
            let ends = (0..ranks.size()).filter_map(|rank| ranks.rank_now(rank).ok());
            ends.max().unwrap_or_default()
        }
    };
    let result = PyDict::new(py);
    result.set_item("programs", programs)?;
    result.set_item("end_ps", end.as_ps())?;
    result.set_item("congestion", ranks.congestion().into_py_dict(py)?)?;
    result.set_item("digest", ranks.digest().to_string())?;
    Ok(result)
}

fn outcomes_of<'py>(py: Python<'py>, outcomes: &[Outcome]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for outcome in outcomes {
        let item = PyDict::new(py);
        item.set_item("elapsed_ps", outcome.elapsed.as_ps())?;
        item.set_item("digest", format!("{:016x}", outcome.digest))?;
        item.set_item("verified", outcome.verified)?;
        item.set_item("points", points_of(outcome))?;
        list.append(item)?;
    }
    Ok(list)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_program, module)?)?;
    module.add_function(wrap_pyfunction!(run_together, module)?)
}
