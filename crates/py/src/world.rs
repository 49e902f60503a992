//! The simulated world as Python sees it: operations as tuples in, outcomes as tuples out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use wiretwin_emu::{Simulator, SimulatorError, SimulatorOptions};
use wiretwin_host::sim::Given;
use wiretwin_msg::library::Failure;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{
    Blocked, Completion, Op, Outcome, Ranks as Inner, RanksError, RequestId, WaitMode,
};
use wiretwin_record::chrome;
use wiretwin_record::timeline::Kind;
use wiretwin_units::{Bytes, Span};

/// Ranks that compute and send messages in virtual time.
#[pyclass(module = "wiretwin._core")]
struct World {
    inner: Inner,
    /// Reused for the requests of a wait.
    requests: Vec<RequestId>,
    /// By rank, where what is asked and answered is written down; empty when it is not.
    records: Vec<Record>,
    /// Whether an answer may have depended on time.
    timed: bool,
}

/// The lists to which what a rank asks of the world, and what the world answers, is appended.
#[derive(FromPyObject)]
struct Record(Py<PyList>, Py<PyList>, Py<PyList>);

impl Record {
    /// Appends an operation as it was posted, the requests of a wait as a tuple, and the request it returned.
    fn operation(&self, op: &Bound<'_, PyTuple>, request: u64) -> PyResult<()> {
        let py = op.py();
        let operations = self.0.bind(py);
        let listed = if op.len() == 3 { op.get_item(1)?.cast_into::<PyList>().ok() } else { None };
        match listed {
            Some(list) => operations.append((op.get_item(0)?, list.to_tuple(), op.get_item(2)?))?,
            None => operations.append(op)?,
        }
        self.1.bind(py).append(request)
    }

    fn outcome(&self, outcome: &Bound<'_, PyAny>) -> PyResult<()> {
        self.2.bind(outcome.py()).append(outcome)
    }
}

/// Whether what a program gets to know by an operation may depend on time.
const fn tells_time(asked: &Asked) -> bool {
    match asked {
        Asked::Op(Op::Recv { pattern, .. }) => pattern.source.is_none(),
        Asked::Op(operation) => matches!(operation, Op::Probe(_) | Op::ProbeNow(_) | Op::Yield),
        Asked::Wait(mode) => !matches!(mode, WaitMode::All),
    }
}

/// An operation that has been read.
enum Asked {
    Op(Op<'static>),
    /// For the requests of [`World::requests`].
    Wait(WaitMode),
}

/// What a rank does again.
enum Step {
    Op(Op<'static>),
    /// For so many requests, the next of [`Player::waits`].
    Wait(WaitMode, usize),
    /// The request that the step of this number made.
    Cancel(usize),
}

/// A recorded rank that posts its operations once more, up to each suspension.
#[derive(Default)]
struct Player {
    steps: Vec<Step>,
    next: usize,
    /// By step, the request that it has made this time.
    made: Vec<RequestId>,
    /// The steps that made the requests of waits, wait after wait.
    waits: Vec<usize>,
    waited: usize,
    /// Of the wait that is being posted.
    requests: Vec<RequestId>,
}

impl Player {
    fn resume(&mut self, rank: u32, world: &mut Inner) -> Result<(), RanksError> {
        while let Some(step) = self.steps.get(self.next) {
            self.next += 1;
            let operation = match *step {
                Step::Op(operation) => operation,
                Step::Cancel(step) => Op::Cancel(self.made[step]),
                Step::Wait(mode, count) => {
                    let steps = &self.waits[self.waited..self.waited + count];
                    self.waited += count;
                    self.requests.clear();
                    self.requests.extend(steps.iter().map(|step| self.made[*step]));
                    Op::Wait { requests: &self.requests, mode }
                }
            };
            let suspends = matches!(operation, Op::Wait { .. } | Op::Probe(_) | Op::ProbeNow(_) | Op::Yield);
            self.made.push(world.post(rank, operation)?.unwrap_or(RequestId(0)));
            if suspends {
                break;
            }
        }
        Ok(())
    }
}

impl World {
    /// Refuses completions of which one has come to nothing: a program cannot go on as if it had not.
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

    /// A rank that has done `operations`, which returned `requests`, with these durations instead of its own.
    fn player(
        &mut self,
        operations: &[Bound<'_, PyTuple>],
        requests: &[u64],
        durations: Vec<u64>,
    ) -> PyResult<Player> {
        let mut player = Player::default();
        let mut made_by = BTreeMap::new();
        let mut durations = durations.into_iter();
        let unknown =
            |request: u64| PyValueError::new_err(format!("request {request} of a recording was never made"));
        for (number, (operation, request)) in operations.iter().zip(requests).enumerate() {
            let step = match self.read(operation)? {
                Asked::Op(Op::Compute(_)) => {
                    let duration = durations.next().ok_or_else(|| {
                        PyValueError::new_err("a recording has more stretches of computation than durations")
                    })?;
                    Step::Op(Op::Compute(Span::from_ps(duration)))
                }
                Asked::Op(Op::Cancel(request)) => {
                    Step::Cancel(*made_by.get(&request.0).ok_or_else(|| unknown(request.0))?)
                }
                Asked::Op(operation) => Step::Op(operation),
                Asked::Wait(mode) => {
                    for request in &self.requests {
                        player.waits.push(*made_by.get(&request.0).ok_or_else(|| unknown(request.0))?);
                    }
                    Step::Wait(mode, self.requests.len())
                }
            };
            player.steps.push(step);
            if *request != 0 {
                made_by.insert(*request, number);
            }
        }
        Ok(player)
    }

    /// Reads an operation; the requests of a wait go to `self.requests`.
    fn read(&mut self, op: &Bound<'_, PyTuple>) -> PyResult<Asked> {
        let fields = Fields { op };
        let kind = fields.text(0, "the operation")?;
        let operation = match &*kind {
            "send" => {
                fields.count(6)?;
                let mode = fields.text(5, "mode")?;
                let mode = Mode::from_name(&mode).ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "send: mode is {mode:?}; allowed: standard, synchronous, ready, buffered"
                    ))
                })?;
                Op::Send {
                    context: fields.number(1, "context")?,
                    to: fields.number(2, "dest")?,
                    tag: fields.number(3, "tag")?,
                    bytes: Bytes::new(fields.number(4, "nbytes")?),
                    mode,
                }
            }
            "recv" => {
                fields.count(5)?;
                Op::Recv { pattern: fields.pattern()?, capacity: Bytes::new(fields.number(4, "capacity")?) }
            }
            "wait" => {
                fields.count(3)?;
                let mode = match &*fields.text(2, "mode")? {
                    "all" => WaitMode::All,
                    "any" => WaitMode::Any,
                    "some" => WaitMode::Some,
                    "test" => WaitMode::Test,
                    other => {
                        return Err(PyValueError::new_err(format!(
                            "wait: mode is {other:?}; allowed: all, any, some, test"
                        )));
                    }
                };
                self.requests.clear();
                let list = fields.item(1)?;
                if let Ok(list) = list.cast::<PyList>() {
                    for item in list.iter() {
                        self.requests.push(RequestId(item.extract()?));
                    }
                } else {
                    for item in list.try_iter()? {
                        self.requests.push(RequestId(item?.extract()?));
                    }
                }
                return Ok(Asked::Wait(mode));
            }
            "enter" => {
                fields.count(3)?;
                let name = self.inner.name_id(&fields.text(1, "name")?);
                Op::Enter { name, site: fields.number(2, "site")? }
            }
            "exit" => {
                fields.count(1)?;
                Op::Exit
            }
            "compute" => {
                fields.count(2)?;
                Op::Compute(Span::from_ps(fields.number(1, "ps")?))
            }
            "probe" => {
                fields.count(4)?;
                Op::Probe(fields.pattern()?)
            }
            "probe_now" => {
                fields.count(4)?;
                Op::ProbeNow(fields.pattern()?)
            }
            "cancel" => {
                fields.count(2)?;
                Op::Cancel(RequestId(fields.number(1, "req")?))
            }
            "yield" => {
                fields.count(1)?;
                Op::Yield
            }
            "finish" => {
                fields.count(1)?;
                Op::Finish
            }
            other => {
                return Err(PyValueError::new_err(format!(
                    "no operation {other:?}; allowed: compute, enter, exit, send, recv, probe, probe_now, \
                     cancel, wait, yield, finish"
                )));
            }
        };
        Ok(Asked::Op(operation))
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
        Ok(Self { inner, requests: Vec::new(), records: Vec::new(), timed: false })
    }

    #[getter]
    fn size(&self) -> u32 {
        self.inner.size()
    }

    #[getter]
    fn shares_cores(&self) -> bool {
        (0..self.inner.size()).any(|rank| self.inner.shares_cores(rank))
    }

    /// Writes down what ranks ask and are answered from now on, in three lists of each.
    fn record(&mut self, lists: Vec<Record>) -> PyResult<()> {
        if lists.len() != self.inner.size() as usize {
            let (given, ranks) = (lists.len(), self.inner.size());
            return Err(PyValueError::new_err(format!("lists of {given} ranks; allowed: of all {ranks}")));
        }
        self.records = lists;
        Ok(())
    }

    #[getter]
    const fn timed(&self) -> bool {
        self.timed
    }

    fn post(&mut self, rank: u32, op: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let asked = self.read(op)?;
        self.timed |= tells_time(&asked);
        let operation = match asked {
            Asked::Op(operation) => operation,
            Asked::Wait(mode) => Op::Wait { requests: &self.requests, mode },
        };
        let request = self.inner.post(rank, operation).map_err(refused)?.map_or(0, |request| request.0);
        if let Some(record) = self.records.get(rank as usize) {
            record.operation(op, request)?;
        }
        Ok(request)
    }

    /// Posts a stretch of computation and the beginning of the call that ends it.
    fn enter(&mut self, rank: u32, ps: u64, name: &Bound<'_, PyString>, site: i32) -> PyResult<()> {
        let id = self.inner.name_id(&PyBackedStr::try_from(name.clone())?);
        self.inner.post(rank, Op::Compute(Span::from_ps(ps))).map_err(refused)?;
        self.inner.post(rank, Op::Enter { name: id, site }).map_err(refused)?;
        if let Some(record) = self.records.get(rank as usize) {
            let py = name.py();
            record.operation(&(intern!(py, "compute"), ps).into_pyobject(py)?, 0)?;
            record.operation(&(intern!(py, "enter"), name, site).into_pyobject(py)?, 0)?;
        }
        Ok(())
    }

    /// Runs recorded operations, rank by rank, with other durations of their computation; whether all ranks have
    /// come to their end.
    ///
    /// A recording is the operations as they were posted, and the requests that each post returned.
    #[allow(clippy::type_complexity)]
    fn replay<'py>(
        &mut self,
        recordings: Vec<(Vec<Bound<'py, PyTuple>>, Vec<u64>)>,
        durations_ps: Vec<Vec<u64>>,
    ) -> PyResult<bool> {
        let mut players = recordings
            .iter()
            .zip(durations_ps)
            .map(|((operations, requests), durations)| self.player(operations, requests, durations))
            .collect::<PyResult<Vec<_>>>()?;
        let mut resumed = (0..players.len() as u32).collect::<Vec<_>>();
        loop {
            for rank in resumed.drain(..) {
                players[rank as usize].resume(rank, &mut self.inner).map_err(refused)?;
            }
            if !self.inner.step() {
                return Ok(players.iter().all(|player| player.next == player.steps.len()));
            }
            resumed.extend(self.inner.resumed().map(|(rank, _)| rank));
        }
    }

    fn step<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.inner.step();
        let resumed = PyList::empty(py);
        for (rank, outcome) in self.inner.resumed() {
            let outcome = match outcome {
                Outcome::Completed(completions) => {
                    self.none_failed(rank, completions)?;
                    let items = completions.iter().map(|item| {
                        if item.cancelled {
                            (item.request.0, -2i64, -2i64, 0u64, 0u64)
                        } else {
                            let (source, tag) = (i64::from(item.source), i64::from(item.tag));
                            (item.request.0, source, tag, item.bytes.get(), item.message.0)
                        }
                    });
                    PyList::new(py, items.collect::<Vec<_>>())?.into_any()
                }
                Outcome::Probed(Some(found)) => (found.source, found.tag, found.bytes.get(), found.message.0)
                    .into_pyobject(py)?
                    .into_any(),
                Outcome::Probed(None) | Outcome::Reached => py.None().into_bound(py),
            };
            if let Some(record) = self.records.get(rank as usize) {
                record.outcome(&outcome)?;
            }
            resumed.append((rank, outcome))?;
        }
        Ok(resumed)
    }

    /// Lets real processes be the ranks, which meet the world in memory at `path`, until all have ended; `goes_on`
    /// is asked now and then whether they are still to.
    ///
    /// Returns what each rank took, the same by kind, and the messages it sent between the library's start and its end; or why the
    /// run did not come to its end, as a word and, where it is one rank's fault, its number; for a rank that has gone, also what ranks
    /// waited and looked for, if nothing else happened any more, and which slept outside their library, in which function of
    /// the kernel. The launcher starts the
    /// first ranks, `launched`; the world's others are for processes that the program spawns.
    #[pyo3(signature = (path, goes_on, *, launched, tag_bits, ignored, apart, patience, look_ps, compute_ps, memory_bytes))]
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
        look_ps: u64,
        compute_ps: Option<u64>,
        memory_bytes: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let compute_ps = compute_ps.unwrap_or(u64::MAX);
        let given =
            Given { launched, tag_bits, ignored, apart, patience, look_ps, compute_ps, ..Given::default() };
        let options = SimulatorOptions { given, memory: Bytes::new(memory_bytes) };
        let mut failed = None;
        let asked = || match goes_on.call0().and_then(|answer| answer.extract::<bool>()) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let ended =
            Simulator::new(&mut self.inner, &path, &options).and_then(|mut simulator| simulator.run(asked));
        if let Some(error) = failed {
            return Err(error);
        }
        let (word, rank, reason) = match ended {
            Ok(marked) => {
                let ranks =
                    marked.iter().map(|one| (one.span.as_ps(), one.totals.map(Span::as_ps), one.sent));
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

/// The fields of an operation.
struct Fields<'a, 'py> {
    op: &'a Bound<'py, PyTuple>,
}

impl<'py> Fields<'_, 'py> {
    fn item(&self, index: usize) -> PyResult<Bound<'py, PyAny>> {
        self.op.get_item(index)
    }

    fn count(&self, wanted: usize) -> PyResult<()> {
        let given = self.op.len();
        if given == wanted {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!("{}: {given} fields given, {wanted} wanted", self.shown())))
    }

    fn shown(&self) -> String {
        self.op.repr().map_or_else(|_| "operation".to_string(), |text| text.to_string())
    }

    fn text(&self, index: usize, name: &str) -> PyResult<PyBackedStr> {
        let wrong = || PyTypeError::new_err(format!("{}: {name} is not a string", self.shown()));
        let item = self.op.get_borrowed_item(index).map_err(|_| wrong())?;
        item.extract::<PyBackedStr>().map_err(|_| wrong())
    }

    fn number<T>(&self, index: usize, name: &str) -> PyResult<T>
    where
        T: for<'b> FromPyObject<'b, 'py>,
    {
        let item = self.op.get_borrowed_item(index)?;
        item.extract::<T>().map_err(|_| {
            let shown = item.repr().map_or_else(|_| "?".to_string(), |text| text.to_string());
            if item.is_instance_of::<PyInt>() {
                PyValueError::new_err(format!("{}: {name} is {shown}, which is out of range", self.shown()))
            } else {
                PyTypeError::new_err(format!("{}: {name} is {shown}; allowed: an integer", self.shown()))
            }
        })
    }

    /// A source, a tag or -1 for any.
    fn filter(&self, index: usize, name: &str) -> PyResult<Option<u32>> {
        let number: i64 = self.number(index, name)?;
        match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) if number == -1 => Ok(None),
            Err(_) => Err(PyValueError::new_err(format!(
                "{}: {name} is {number}; allowed: -1 for any, or 0 and above",
                self.shown()
            ))),
        }
    }

    fn pattern(&self) -> PyResult<Pattern> {
        Ok(Pattern {
            context: self.number(1, "context")?,
            source: self.filter(2, "source")?,
            tag: self.filter(3, "tag")?,
        })
    }
}

pub(crate) fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Adds this file's classes to the module.
///
/// # Errors
/// Those of the interpreter.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<World>()
}
