//! Switches of cells as Python sees them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wiretwin_engine::Untraced;
use wiretwin_net::cell_switch::crossbar::{Scheduler, pairs_by_round, run_crossbar};
use wiretwin_net::cell_switch::{Config, run_by_slot};
use wiretwin_net::packet::Sessions;
use wiretwin_net::service;
use wiretwin_plan::PlanError;

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Pairs found after each round of parallel iterative matching, summed over trials.
#[pyfunction]
fn pim_pairs(py: Python<'_>, ports: u8, probability: f64, trials: u32, seed: u64) -> PyResult<Vec<u64>> {
    py.detach(|| pairs_by_round(ports, probability, trials, seed)).map_err(refused)
}

/// A switch of `scheduler` under uniform traffic: what it carries in the second half of its slots.
#[pyfunction]
fn switch_carries<'py>(
    py: Python<'py>,
    scheduler: &str,
    iterations: u8,
    ports: u8,
    load: f64,
    slots: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let scheduler = match scheduler {
        "pim" => Some(Scheduler::Pim { iterations }),
        "islip" => Some(Scheduler::Islip { iterations }),
        "maximum" => Some(Scheduler::Maximum),
        "fifo" => Some(Scheduler::Fifo),
        "output-queued" => None,
        other => {
            return Err(refused(format!(
                "scheduler = {other}; allowed: pim, islip, maximum, fifo, output-queued"
            )));
        }
    };
    let run = |slots| {
        let switch = Config { ports, load, slots, seed, ..Config::default() };
        match scheduler {
            Some(scheduler) => run_crossbar(&switch, scheduler, &mut Untraced),
            None => run_by_slot(&switch, &mut Untraced),
        }
    };
    let (whole, half) =
        py.detach(|| Ok((run(slots)?, run(slots / 2)?))).map_err(|error: PlanError| refused(error))?;
    let result = PyDict::new(py);
    let seen = ((slots - slots / 2) * u64::from(ports)) as f64;
    result.set_item("carried", (whole.departed - half.departed) as f64 / seen)?;
    result.set_item("offered", (whole.arrived - half.arrived) as f64 / seen)?;
    let waited = (whole.waited - half.waited) as f64 / (whole.departed - half.departed).max(1) as f64;
    result.set_item("mean_wait_slots", waited)?;
    Ok(result)
}

/// Runs streams and echoes over a network of cell switches: a plan and a report, both JSON.
#[pyfunction]
fn run_sessions(py: Python<'_>, plan_json: &str) -> PyResult<String> {
    let sessions = Sessions::from_json(plan_json).map_err(refused)?;
    Ok(py.detach(|| sessions.run()).to_string())
}

/// Runs ports that service categories share: a scenario and a report, both JSON.
#[pyfunction]
fn service_run(py: Python<'_>, scenario_json: &str) -> PyResult<String> {
    let scenario = service::Scenario::from_json(scenario_json).map_err(refused)?;
    Ok(py.detach(|| scenario.run()).to_string())
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pim_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(run_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(service_run, module)?)?;
    module.add_function(wrap_pyfunction!(switch_carries, module)?)
}
