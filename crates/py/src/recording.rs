//! Recorded runs and schedules as traces of ranks.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{Op, RequestId, WaitMode};
use wiretwin_record::script::{Message, Receive, Rejected, Script};
use wiretwin_record::{goal, recording};
use wiretwin_units::{Bytes, Span};

use crate::operation::Asked;
use crate::rank_trace::RankTrace;

impl Script for RankTrace {
    fn compute(&mut self, ps: u64) {
        self.add(&Asked::Op(Op::Compute(Span::from_ps(ps))), &[], 0);
    }

    fn enter(&mut self, call: &str) {
        let name = self.number_of(call);
        self.add(&Asked::Op(Op::Enter { name, site: -1 }), &[], 0);
    }

    fn exit(&mut self) {
        self.add(&Asked::Op(Op::Exit), &[], 0);
    }

    fn send(&mut self, message: Message, mode: Mode, request: u64) {
        let Message { context, to, tag, bytes } = message;
        let send = Op::Send { context, to, tag, bytes: Bytes::new(bytes), mode };
        self.add(&Asked::Op(send), &[], request);
    }

    fn recv(&mut self, receive: Receive, request: u64) {
        let Receive { context, source, tag, capacity } = receive;
        let receive = Op::Recv { pattern: Pattern { context, source, tag }, capacity: Bytes::new(capacity) };
        self.add(&Asked::Op(receive), &[], request);
    }

    fn wait(&mut self, requests: &[u64]) {
        let requests = requests.iter().map(|one| RequestId(*one)).collect::<Vec<_>>();
        self.add(&Asked::Wait { count: requests.len() as u32, mode: WaitMode::All }, &requests, 0);
    }

    fn finish(&mut self) {
        self.add(&Asked::Op(Op::Finish), &[], 0);
    }
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

/// What the ranks of a recorded run do, collectives as messages.
#[pyfunction]
fn read_recording(
    py: Python<'_>,
    folder: PathBuf,
    ranks: u32,
    compute_scale: f64,
) -> PyResult<Vec<RankTrace>> {
    py.detach(|| {
        let mut traces = vec![RankTrace::default(); ranks as usize];
        recording::read(&folder, &mut traces, compute_scale).map(|()| traces)
    })
    .map_err(rejected)
}

/// What the ranks of a schedule in GOAL do.
#[pyfunction]
fn read_goal(py: Python<'_>, path: PathBuf, text: &str, unit_ps: f64) -> PyResult<Vec<RankTrace>> {
    py.detach(|| goal::read(&path, text, unit_ps)).map_err(rejected)
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
