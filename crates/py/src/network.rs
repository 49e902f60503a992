//! Networks as users write them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wiretwin_plan::{NetworkPlan, NodeKind, PlanError, Topology};

/// Reads a network: `fat-tree:hosts=64,rate=100Gbit/s`, or the JSON object of a table.
///
/// Where the topology takes a number of hosts and none is given, it has `hosts` of them.
#[pyfunction]
#[pyo3(signature = (text, *, hosts = None))]
fn read_network<'py>(py: Python<'py>, text: &str, hosts: Option<u32>) -> PyResult<Bound<'py, PyDict>> {
    let (plan, graph) = py
        .detach(|| {
            let plan = read(text, hosts)?;
            plan.graph().map(|graph| (plan, graph))
        })
        .map_err(rejected)?;
    let of_kind = |kind| graph.nodes().iter().filter(|node| node.kind == kind).count();
    let found = PyDict::new(py);
    let json = serde_json::to_string(&plan).map_err(|error| PyValueError::new_err(error.to_string()))?;
    found.set_item("plan_json", json)?;
    found.set_item("hosts", graph.hosts().len())?;
    found.set_item("switches", of_kind(NodeKind::Switch))?;
    found.set_item("lines", graph.lines().len())?;
    Ok(found)
}

fn read(text: &str, hosts: Option<u32>) -> Result<NetworkPlan, PlanError> {
    let mut table = NetworkPlan::table(text)?;
    let lists_nodes = table.get("topology").is_some_and(|name| name == Topology::LISTED);
    if let (Some(hosts), Some(members), false) = (hosts, table.as_object_mut(), lists_nodes) {
        members.entry("hosts").or_insert_with(|| hosts.into());
    }
    NetworkPlan::from_value(&table)
}

/// A `ValueError` of three texts: the key, the value found there, and what is allowed.
fn rejected(error: PlanError) -> PyErr {
    PyValueError::new_err((error.key, error.value, error.allowed))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_network, module)?)
}
