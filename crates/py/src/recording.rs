//! Recorded runs and schedules as traces of ranks.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{NameId, WaitMode};
use wiretwin_record::script::{Message, Receive, Rejected, Script, Transfer};
use wiretwin_record::{goal, recording};

use crate::operation::WAITS;
use crate::rank_trace::{RankTrace, number};
use crate::steps::{Asks, Step, Steps};

impl Script for RankTrace {
    fn compute(&mut self, ps: u64) {
        self.push(Step::Compute(ps), 0, []);
    }

    fn enter(&mut self, call: &str) {
        let NameId(name) = self.number_of(call);
        self.push(Step::Enter { name, site: -1 }, 0, []);
    }

    fn exit(&mut self) {
        self.push(Step::Exit, 0, []);
    }

    fn send(&mut self, message: Message, mode: Mode, request: u64) {
        self.push(sends(message, mode), request, []);
    }

    fn recv(&mut self, receive: Receive, request: u64) {
        self.push(receives(receive), request, []);
    }

    fn wait(&mut self, requests: &[u64]) {
        self.push(waits(requests.len()), 0, requests.iter().copied());
    }

    fn begin(&mut self, rounds: &[Vec<Transfer>]) {
        let mut steps = Steps::default();
        for round in rounds {
            let before = steps.requests();
            for transfer in round {
                let step = match *transfer {
                    Transfer::Send(message) => sends(message, Mode::Standard),
                    Transfer::Recv(receive) => receives(receive),
                };
                steps.push(step, []);
            }
            steps.push(waits(round.len()), before + 1..=steps.requests());
        }
        self.begin(steps);
    }

    fn wait_background(&mut self, number: u64) {
        self.push(Step::WaitBackground(number as u32), 0, []);
    }

    fn finish(&mut self) {
        self.push(Step::Finish, 0, []);
    }
}

fn sends(message: Message, mode: Mode) -> Step {
    let Message { context, to, tag, bytes } = message;
    Step::Send { context, to, tag, bytes, mode: number(&Mode::BY_NAME, mode) }
}

fn receives(receive: Receive) -> Step {
    let Receive { context, source, tag, capacity } = receive;
    Step::Recv { asked: Asks::of(&Pattern { context, source, tag }), capacity }
}

fn waits(count: usize) -> Step {
    Step::Wait { count: count as u32, mode: number(&WAITS, WaitMode::All) }
}

/// What each rank of a recorded run did, in numbers, and the functions that were called and are not recorded.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "the tuples of the interface in Python")]
fn recording_summary(
    py: Python<'_>,
    folder: PathBuf,
    ranks: u32,
) -> PyResult<(Vec<(u64, u64, u64, u64, u64, u64)>, Vec<String>)> {
    let (rows, unknown) = py.detach(|| recording::summary(&folder, ranks)).map_err(rejected)?;
    let row = |row: recording::Summary| {
        (row.sends, row.sent_bytes, row.receives, row.collectives, row.computed_ns, row.inside_ns)
    };
    Ok((rows.into_iter().map(row).collect(), unknown))
}

/// What the ranks of a recorded run do, collectives as messages; or `to` ranks, each what one of its place does.
#[pyfunction]
#[pyo3(signature = (folder, ranks, compute_scale, to=None))]
fn read_recording(
    py: Python<'_>,
    folder: PathBuf,
    ranks: u32,
    compute_scale: f64,
    to: Option<u32>,
) -> PyResult<Vec<RankTrace>> {
    py.detach(|| {
        let mut traces = vec![RankTrace::default(); to.unwrap_or(ranks) as usize];
        match to {
            None => recording::read(&folder, &mut traces, compute_scale),
            Some(_) => recording::read_extended(&folder, ranks, &mut traces, compute_scale),
        }
        .map(|()| traces)
    })
    .map_err(rejected)
}

/// What the ranks of a schedule in GOAL do, which is these bytes of a file.
#[pyfunction]
fn read_goal(py: Python<'_>, path: PathBuf, data: &[u8], unit_ps: f64) -> PyResult<Vec<RankTrace>> {
    let read = || {
        let no_text = |_| Rejected::whole(&path, "is not text").allowing("a schedule in GOAL, or a folder");
        goal::read(&path, std::str::from_utf8(data).map_err(no_text)?, unit_ps)
    };
    py.detach(read).map_err(rejected)
}

/// A `ValueError` of five texts, of which some are None: the file, the key, the value found there, what is wrong,
/// and what is allowed.
fn rejected(error: Rejected) -> PyErr {
    let Rejected { file, key, value, reason, allowed } = error;
    PyValueError::new_err((file, key, value, reason, allowed))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(recording_summary, module)?)?;
    module.add_function(wrap_pyfunction!(read_recording, module)?)?;
    module.add_function(wrap_pyfunction!(read_goal, module)?)
}
