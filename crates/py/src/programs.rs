//! The shipped programs in the simulated world.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use wiretwin_net::run::{run_named, run_traced};

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
    let outcomes = PyList::empty(py);
    for outcome in &run.outcomes {
        let item = PyDict::new(py);
        item.set_item("elapsed_ps", outcome.elapsed.as_ps())?;
        item.set_item("digest", format!("{:016x}", outcome.digest))?;
        item.set_item("verified", outcome.verified)?;
        item.set_item("points", points_of(outcome))?;
        outcomes.append(item)?;
    }
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
    result.set_item("digest", run.world.digest().to_string())?;
    Ok(result)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_program, module)?)
}
