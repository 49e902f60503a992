//! The simulated world as Python sees it: operations as tuples in, outcomes as tuples out.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use wiretwin_emu::{Simulator, SimulatorError, SimulatorOptions};
use wiretwin_host::sim::Given;
use wiretwin_msg::library::Failure;
use wiretwin_msg::matching::Pattern;
use wiretwin_net::ranks::{Blocked, Completion, Op, Outcome, Ranks as Inner, RequestId, WaitMode};
use wiretwin_record::chrome;
use wiretwin_record::timeline::Kind;
use wiretwin_units::{Bytes, Span};

use crate::operation::{Asked, filter, mode_named, read};
use crate::rank_trace::{Again, RankTrace, TracePlayer, answer, received};

/// The source of no receive, and the destination of no send.
const NOBODY: i64 = -2;

/// Ranks that compute and send messages in virtual time.
#[pyclass(module = "wiretwin._core")]
struct World {
    inner: Inner,
    /// Reused for the requests of a wait.
    requests: Vec<RequestId>,
    /// By rank, what is asked and answered; empty when it is not kept.
    traces: Vec<RankTrace>,
    calls: Vec<Call>,
    /// Whether an answer may have depended on time.
    timed: bool,
}

/// Where a rank is in its calls of MPI.
#[derive(Clone, Copy, Default)]
struct Call {
    /// It has begun one, whose end the world has not been told.
    is_open: bool,
    /// It waits for a receive and a send at once, and is told of this receive alone.
    exchange: Option<RequestId>,
}

impl World {
    /// Posts an operation that has been read.
    fn ask(&mut self, rank: u32, asked: Asked) -> PyResult<u64> {
        self.timed |= asked.tells_time();
        let posted = asked.posted(&self.requests);
        let request = self.inner.post(rank, posted).map_err(refused)?.map_or(0, |request| request.0);
        if let Some(trace) = self.traces.get_mut(rank as usize) {
            trace.add(&asked, &self.requests, request);
        }
        Ok(request)
    }

    /// Posts the end of a rank's call, if it is in one, a stretch of computation, and the beginning of the next call.
    fn go_to(&mut self, rank: u32, ps: u64, name: &Bound<'_, PyString>, site: i32) -> PyResult<()> {
        self.leave(rank)?;
        let name = self.inner.name_id(&PyBackedStr::try_from(name.clone())?);
        self.ask(rank, Asked::Op(Op::Compute(Span::from_ps(ps))))?;
        self.ask(rank, Asked::Op(Op::Enter { name, site }))?;
        if let Some(call) = self.calls.get_mut(rank as usize) {
            call.is_open = true;
        }
        Ok(())
    }

    /// Rejects completions of which one has come to nothing: a program cannot go on as if it had not.
    fn none_failed(&self, rank: u32, completions: &[Completion]) -> PyResult<()> {
        let Some(one) = completions.iter().find(|one| one.failed) else { return Ok(()) };
        let why = match self.inner.failure(rank, one.request) {
            Some(Failure::PeerLost { rank }) => format!("the connection to rank {rank} is lost"),
            Some(Failure::TimedOut { limit }) => format!("nothing came within {limit}"),
            Some(Failure::Refused(reason)) => reason.to_string(),
            None => "a request has come to nothing".to_string(),
        };
        Err(PyRuntimeError::new_err(format!("rank {rank}: {why}")))
    }
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (ranks, model_json, *, seed = 1, timeline = true))]
    fn new(ranks: u32, model_json: &str, seed: u64, timeline: bool) -> PyResult<Self> {
        if ranks == 0 {
            return Err(PyValueError::new_err("ranks is 0; allowed: 1 or more"));
        }
        let inner = Inner::from_json(model_json, ranks, seed, timeline).map_err(refused)?;
        let calls = vec![Call::default(); ranks as usize];
        Ok(Self { inner, requests: Vec::new(), traces: Vec::new(), calls, timed: false })
    }

    #[getter]
    fn size(&self) -> u32 {
        self.inner.size()
    }

    #[getter]
    fn is_behind(&self) -> bool {
        (0..self.inner.size()).any(|rank| self.inner.is_behind(rank))
    }

    /// Keeps what ranks ask and are answered from now on.
    fn record(&mut self) {
        self.traces = vec![RankTrace::default(); self.inner.size() as usize];
    }

    /// What has been kept since `record`, by rank; nothing more is.
    fn recorded(&mut self) -> Vec<RankTrace> {
        let mut traces = std::mem::take(&mut self.traces);
        for trace in &mut traces {
            trace.name(self.inner.names());
        }
        traces
    }

    #[getter]
    const fn timed(&self) -> bool {
        self.timed
    }

    fn post(&mut self, rank: u32, op: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let asked = read(op, &mut self.requests, |name| self.inner.name_id(name))?;
        self.ask(rank, asked)
    }

    /// Posts a stretch of computation and the beginning of the call that ends it; before, the end of the last call.
    fn enter(&mut self, rank: u32, ps: u64, name: &Bound<'_, PyString>, site: i32) -> PyResult<()> {
        self.go_to(rank, ps, name, site)
    }

    /// Posts the end of a rank's call, if it is in one.
    fn leave(&mut self, rank: u32) -> PyResult<()> {
        if let Some(call) = self.calls.get_mut(rank as usize)
            && std::mem::take(&mut call.is_open)
        {
            self.ask(rank, Asked::Op(Op::Exit))?;
        }
        Ok(())
    }

    /// Does as `enter`, posts a receive and a send, and waits for both; returns their requests. The source of no
    /// receive, and the destination of no send, is -2; any source or tag is -1.
    #[pyo3(signature = (rank, ps, name, site, context, receive, send, mode))]
    #[allow(clippy::too_many_arguments, reason = "one crossing for a call of MPI")]
    fn exchange(
        &mut self,
        rank: u32,
        ps: u64,
        name: &Bound<'_, PyString>,
        site: i32,
        context: u32,
        receive: (i64, i64, u64),
        send: (i64, u32, u64),
        mode: &str,
    ) -> PyResult<(u64, u64)> {
        let mode = mode_named(mode)?;
        self.go_to(rank, ps, name, site)?;
        let mut made = [0; 2];
        let (source, tag, capacity) = receive;
        if source != NOBODY {
            let source = filter(source, || "exchange: source".to_string())?;
            let tag = filter(tag, || "exchange: tag".to_string())?;
            let pattern = Pattern { context, source, tag };
            made[0] = self.ask(rank, Asked::Op(Op::Recv { pattern, capacity: Bytes::new(capacity) }))?;
        }
        let (to, tag, bytes) = send;
        if to != NOBODY {
            let to = u32::try_from(to)
                .map_err(|_| refused(format!("exchange: dest is {to}; allowed: 0 and above")))?;
            let send = Op::Send { context, to, tag, bytes: Bytes::new(bytes), mode };
            made[1] = self.ask(rank, Asked::Op(send))?;
        }
        self.requests.clear();
        self.requests.extend(made.into_iter().filter(|one| *one > 0).map(RequestId));
        self.ask(rank, Asked::Wait { count: self.requests.len() as u32, mode: WaitMode::All })?;
        self.calls[rank as usize].exchange = Some(RequestId(made[0]));
        Ok((made[0], made[1]))
    }

    /// Does what ranks did in another world, with these durations of their computation or with their own, and in these
    /// stretches asleep for so long of it; whether all have come to their end.
    #[pyo3(signature = (traces, durations_ps = None, asleep_ps = None))]
    fn replay(
        &mut self,
        traces: Vec<PyRef<'_, RankTrace>>,
        durations_ps: Option<Vec<Vec<u64>>>,
        asleep_ps: Option<Vec<Vec<(u64, u64)>>>,
    ) -> PyResult<bool> {
        let mut durations = durations_ps.map(Vec::into_iter);
        let mut asleep = asleep_ps.unwrap_or_default().into_iter();
        let mut players = Vec::with_capacity(traces.len());
        for trace in &traces {
            let own = durations.as_mut().map(|durations| durations.next().unwrap_or_default());
            let asleep = asleep.next().unwrap_or_default();
            players.push(Again::of(trace, own, asleep, |name| self.inner.name_id(name)));
        }
        let in_background = traces.iter().any(|trace| trace.has_backgrounds());
        let mut resumed = (0..players.len() as u32).collect::<Vec<_>>();
        loop {
            for rank in resumed.drain(..) {
                players[rank as usize].resume(rank, &mut self.inner, &mut self.requests)?;
            }
            if !self.inner.step() {
                return Ok(players.iter().all(Again::is_over));
            }
            self.inner.each_resumed(|rank, _| resumed.push(rank));
            if in_background {
                for (rank, outcome) in self.inner.resumed() {
                    if let Outcome::Completed(completions) = outcome {
                        players[rank as usize].completed(completions);
                    }
                }
            }
        }
    }

    fn step<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.inner.step();
        let resumed = PyList::empty(py);
        for (rank, outcome) in self.inner.resumed() {
            if let Outcome::Completed(completions) = outcome {
                self.none_failed(rank, completions)?;
            }
            if let Some(trace) = self.traces.get_mut(rank as usize) {
                trace.answered(outcome);
            }
            let exchange = self.calls.get_mut(rank as usize).and_then(|call| call.exchange.take());
            let told = match exchange {
                Some(receive) => received(py, receive, outcome)?,
                None => answer(py, outcome)?,
            };
            resumed.append((rank, told))?;
        }
        Ok(resumed)
    }

    /// Lets real processes be the ranks, which meet the world in memory at `path`, until all have ended; `goes_on`
    /// is asked now and then whether they are still to.
    ///
    /// Returns what each rank took, the same by kind, the messages it sent and the turns it had between the library's start and its
    /// end; or why the run did not come to its end, as a word and, where it is one rank's fault, its number; for a rank that has gone, also what ranks
    /// waited and looked for, if nothing else happened any more, and which slept outside their library, in which function of
    /// the kernel. The launcher starts the
    /// first ranks, `launched`; the world's others are for processes that the program spawns.
    #[pyo3(signature = (path, goes_on, *, launched, tag_bits, ignored, apart, patience, windows_in_memory, own_cores, disturbed, look_ps, compute_ps, memory_bytes))]
    #[allow(clippy::too_many_arguments, reason = "they have names where it is called")]
    fn serve<'py>(
        &mut self,
        py: Python<'py>,
        path: PathBuf,
        goes_on: &Bound<'py, PyAny>,
        launched: u32,
        tag_bits: u32,
        ignored: u64,
        apart: u64,
        patience: u32,
        windows_in_memory: bool,
        own_cores: bool,
        disturbed: (u32, f64),
        look_ps: u64,
        compute_ps: Option<u64>,
        memory_bytes: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let compute_ps = compute_ps.unwrap_or(u64::MAX);
        let windows_in_memory = u32::from(windows_in_memory);
        let (disturbed_rank, share) = disturbed;
        let given = Given {
            launched,
            tag_bits,
            ignored,
            apart,
            patience,
            windows_in_memory,
            own_cores: u32::from(own_cores),
            disturbed_rank,
            disturbed_ppm: (1e6 * share).round() as u32,
            look_ps,
            compute_ps,
            ..Given::default()
        };
        let options = SimulatorOptions { given, memory: Bytes::new(memory_bytes) };
        let mut failed = None;
        let goes_on = goes_on.clone().unbind();
        let world = &mut self.inner;
        let ended = py.detach(|| {
            let asked = || match Python::attach(|py| goes_on.call0(py)?.extract::<bool>(py)) {
                Ok(goes_on) => goes_on,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            };
            Simulator::new(world, &path, &options).and_then(|mut simulator| simulator.run(asked))
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let (word, rank, reason) = match ended {
            Ok(marked) => {
                let ranks = marked
                    .iter()
                    .map(|one| (one.span.as_ps(), one.totals.map(Span::as_ps), one.sent, one.turns));
                return ("done", PyList::new(py, ranks)?).into_pyobject(py);
            }
            Err(SimulatorError::Absent { come }) => ("absent", come, String::new()),
            Err(SimulatorError::Gone { rank, vain, outside }) => {
                let vain: Vec<_> = vain.into_iter().map(told).collect();
                return ("gone", (rank, vain, outside)).into_pyobject(py);
            }
            Err(SimulatorError::Spawned { processes }) => ("spawned", processes, String::new()),
            Err(SimulatorError::Deadlock(_)) => ("deadlock", 0, String::new()),
            Err(SimulatorError::Asked { rank, reason }) => ("asked", rank, reason),
            Err(error) => return Err(refused(error)),
        };
        (word, (rank, reason)).into_pyobject(py)
    }

    fn now_ps(&self, rank: u32) -> PyResult<u64> {
        self.inner.rank_now(rank).map(|now| now.as_ps()).map_err(refused)
    }

    fn begun_ps(&self, rank: u32) -> PyResult<u64> {
        self.inner.rank_begun(rank).map(|begun| begun.as_ps()).map_err(refused)
    }

    fn blocked(&self) -> Vec<(u32, String, String, i32)> {
        self.inner.blocked().into_iter().map(told).collect()
    }

    fn blocked_since_ps(&self) -> Vec<(u32, u64)> {
        self.inner.blocked().into_iter().map(|item| (item.rank, item.since.as_ps())).collect()
    }

    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        totals_of(py, &self.inner)
    }

    fn timeline<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        timeline_of(py, &self.inner)
    }

    fn timeline_coarse_ps(&self) -> u64 {
        self.inner.timeline().map_or(0, |timeline| timeline.coarse().as_ps())
    }

    fn write_chrome_trace(&self, path: PathBuf) -> PyResult<()> {
        write_chrome_trace(&self.inner, &path)
    }

    fn names(&self) -> Vec<String> {
        self.inner.names().to_vec()
    }

    fn counts(&self) -> (u64, u64, u64) {
        let counts = self.inner.counts();
        (counts.sent, counts.delivered, counts.held)
    }

    fn longest(&self) -> u64 {
        self.inner.counts().longest.get()
    }

    fn digest(&self) -> String {
        self.inner.digest().to_string()
    }
}

/// Who waits, for what, in which call, at which site.
fn told(blocked: Blocked) -> (u32, String, String, i32) {
    (blocked.rank, blocked.operation, blocked.name, blocked.site)
}

pub(crate) fn totals_of<'py>(py: Python<'py>, world: &Inner) -> PyResult<Bound<'py, PyDict>> {
    let totals = PyDict::new(py);
    for kind in Kind::ALL {
        let values = (0..world.size())
            .map(|rank| Ok(world.totals(rank).map_err(refused)?[kind as usize].as_ps()))
            .collect::<PyResult<Vec<u64>>>()?;
        totals.set_item(format!("{kind}_ps"), PyArray1::from_vec(py, values))?;
    }
    Ok(totals)
}

pub(crate) fn timeline_of<'py>(py: Python<'py>, world: &Inner) -> PyResult<Bound<'py, PyDict>> {
    let timeline = PyDict::new(py);
    let intervals = world.timeline().map_or(&[][..], |timeline| timeline.intervals());
    macro_rules! column {
        ($name:literal, $value:expr) => {
            timeline.set_item($name, PyArray1::from_iter(py, intervals.iter().map($value)))?;
        };
    }
    column!("rank", |item| item.rank);
    column!("start_ps", |item| item.start_ps);
    column!("end_ps", |item| item.end_ps);
    column!("kind", |item| item.kind as u8);
    column!("name_index", |item| item.name);
    column!("site", |item| item.site);
    column!("peer", |item| item.peer);
    column!("bytes", |item| item.bytes);
    Ok(timeline)
}

/// Writes the world's intervals to a file, piece by piece.
pub(crate) fn write_chrome_trace(world: &Inner, path: &Path) -> PyResult<()> {
    let intervals = world.timeline().map_or(&[][..], |timeline| timeline.intervals());
    let out = BufWriter::new(File::create(path)?);
    Ok(chrome::write(out, world.size(), world.names(), intervals.iter().copied())?)
}

pub(crate) fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Adds this file's classes to the module.
///
/// # Errors
/// Those of the interpreter.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<World>()?;
    module.add_class::<RankTrace>()?;
    module.add_class::<TracePlayer>()
}
