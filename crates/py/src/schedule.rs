//! Schedules of collectives.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wiretwin_msg::schedule::{Algorithm, Amount, Call, Collective, Plan, Step, Thresholds, plan};

type PyStep = (&'static str, i64, u64, u64);

/// The rounds of one rank of a collective.
#[pyfunction]
#[pyo3(signature = (collective, algorithm, rank, size, root = 0, nbytes = 0, *, unit = 1, commutative = true, counts = None, recv_counts = None))]
#[allow(clippy::too_many_arguments)] // one call of the interface in Python, mostly by keyword
fn schedule(
    collective: &str,
    algorithm: &str,
    rank: u32,
    size: u32,
    root: u32,
    nbytes: u64,
    unit: u64,
    commutative: bool,
    counts: Option<Vec<u64>>,
    recv_counts: Option<Vec<u64>>,
) -> PyResult<Vec<Vec<PyStep>>> {
    let plan = make(collective, algorithm, rank, size, root, nbytes, unit, commutative, counts, recv_counts)?;
    Ok(plan.rounds.iter().map(|round| steps(round)).collect())
}

/// Where a schedule expects its data, and which algorithm `auto` stands for.
#[pyfunction]
#[pyo3(signature = (collective, algorithm, rank, size, root = 0, nbytes = 0, *, unit = 1, commutative = true, counts = None, recv_counts = None))]
#[allow(clippy::too_many_arguments)]
fn schedule_layout<'py>(
    py: Python<'py>,
    collective: &str,
    algorithm: &str,
    rank: u32,
    size: u32,
    root: u32,
    nbytes: u64,
    unit: u64,
    commutative: bool,
    counts: Option<Vec<u64>>,
    recv_counts: Option<Vec<u64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = make(collective, algorithm, rank, size, root, nbytes, unit, commutative, counts, recv_counts)?;
    let layout = PyDict::new(py);
    layout.set_item("algorithm", plan.algorithm.name())?;
    layout.set_item("input", (plan.input.offset, plan.input.length))?;
    layout.set_item("output", (plan.output.offset, plan.output.length))?;
    layout.set_item("workspace_bytes", plan.workspace)?;
    Ok(layout)
}

#[allow(clippy::too_many_arguments)]
fn make(
    collective: &str,
    algorithm: &str,
    rank: u32,
    size: u32,
    root: u32,
    nbytes: u64,
    unit: u64,
    commutative: bool,
    counts: Option<Vec<u64>>,
    recv_counts: Option<Vec<u64>>,
) -> PyResult<Plan> {
    let collective = Collective::from_name(collective).ok_or_else(|| {
        let names = Collective::ALL.map(Collective::name).join(", ");
        PyValueError::new_err(format!("no collective {collective:?}; allowed: {names}"))
    })?;
    let algorithm = match algorithm {
        "auto" => None,
        name => Some(Algorithm::from_name(name).ok_or_else(|| {
            let names = collective.algorithms().iter().map(|algorithm| algorithm.name());
            let names = names.collect::<Vec<_>>().join(", ");
            PyValueError::new_err(format!(
                "{}: no algorithm {name:?}; allowed: auto, {names}",
                collective.name()
            ))
        })?),
    };
    let amount = match (&counts, &recv_counts) {
        (None, None) => Amount::Each(nbytes),
        (Some(send), None) => Amount::ByRank(send),
        (Some(send), Some(receive)) => Amount::Exchange { send, receive },
        (None, Some(_)) => {
            return Err(PyValueError::new_err("recv_counts is given without counts; give both or neither"));
        }
    };
    let call = Call { collective, algorithm, rank, size, root, amount, unit, commutative };
    plan(&call, &Thresholds::MPICH).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn steps(round: &[Step]) -> Vec<PyStep> {
    let mut steps = Vec::with_capacity(round.len());
    for step in round {
        let region = step.region();
        let mut push = |kind, peer| steps.push((kind, peer, region.offset, region.length));
        match step {
            Step::Send { peer, .. } => push("send", i64::from(*peer)),
            Step::Recv { peer, .. } => push("recv", i64::from(*peer)),
            Step::Reduce { peer, .. } => {
                push("recv", i64::from(*peer));
                push("reduce", i64::from(*peer));
            }
            Step::Copy { .. } => push("copy", -1),
            Step::Combine { .. } => push("reduce", -1),
        }
    }
    steps
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(schedule, module)?)?;
    module.add_function(wrap_pyfunction!(schedule_layout, module)?)
}
