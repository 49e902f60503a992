//! What one rank asked of the world and what the world answered, in order: kept while it runs, played to the rank
//! when it runs alone, done again in another world.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};
use serde::{Deserialize, Serialize};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{Completion, Found, NameId, Op, Outcome, Ranks, RanksError, RequestId};
use wiretwin_units::{Bytes, Span};

use crate::operation::{Asked, WAITS, read};

/// An operation as it is kept; the requests that it makes and names are in lists of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    Compute(u64),
    Enter { name: u32, site: i32 },
    Exit,
    Send { context: u32, to: u32, tag: u32, bytes: u64, mode: u8 },
    Recv { asked: Asks, capacity: u64 },
    Cancel,
    Wait { count: u32, mode: u8 },
    Probe(Asks),
    ProbeNow(Asks),
    Yield,
    Finish,
}

/// What a receive or a probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asks {
    context: u32,
    source: Option<u32>,
    tag: Option<u32>,
}

impl Asks {
    const fn of(pattern: &Pattern) -> Self {
        Self { context: pattern.context, source: pattern.source, tag: pattern.tag }
    }

    const fn pattern(self) -> Pattern {
        Pattern { context: self.context, source: self.source, tag: self.tag }
    }
}

impl Step {
    /// Whether the world gives it a number, by which waits name it.
    const fn makes_request(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Recv { .. })
    }

    /// How many requests it names.
    const fn names(&self) -> usize {
        match *self {
            Self::Cancel => 1,
            Self::Wait { count, .. } => count as usize,
            _ => 0,
        }
    }

    /// Whether the rank goes on only when the world resumes it.
    const fn suspends(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Probe(_) | Self::ProbeNow(_) | Self::Yield)
    }

    /// Whether it is the same, as far as the rank's own path decides it: not how long it computed, nor the number
    /// of a line, which are numbered in the order in which all ranks came to them.
    fn is_like(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Compute(_), Self::Compute(_)) => true,
            (Self::Enter { name: then, .. }, Self::Enter { name, .. }) => then == name,
            _ => self == now,
        }
    }
}

/// What a rank was resumed with.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Answer {
    /// So many of the completions.
    Completed(u32),
    Found(Arrived),
    Nothing,
}

/// A message as the rank hears of it: of the request (0 of a probe); a cancelled receive has source and tag -2.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrived {
    request: u64,
    source: i64,
    tag: i64,
    bytes: u64,
    message: u64,
}

impl Arrived {
    const fn completed(item: &Completion) -> Self {
        if item.cancelled {
            return Self { request: item.request.0, source: -2, tag: -2, bytes: 0, message: 0 };
        }
        Self {
            request: item.request.0,
            source: item.source as i64,
            tag: item.tag as i64,
            bytes: item.bytes.get(),
            message: item.message.0,
        }
    }

    const fn found(item: &Found) -> Self {
        Self {
            request: 0,
            source: item.source as i64,
            tag: item.tag as i64,
            bytes: item.bytes.get(),
            message: item.message.0,
        }
    }

    fn completion<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { request, source, tag, bytes, message } = self;
        Ok((request, source, tag, bytes, message).into_pyobject(py)?.into_any())
    }

    fn probed<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok((self.source, self.tag, self.bytes, self.message).into_pyobject(py)?.into_any())
    }
}

/// What the world's answer looks like in Python.
pub(crate) fn answer<'py>(py: Python<'py>, outcome: Outcome<'_>) -> PyResult<Bound<'py, PyAny>> {
    match outcome {
        Outcome::Completed(items) => {
            let items = items.iter().map(|item| Arrived::completed(item).completion(py));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Outcome::Probed(Some(found)) => Arrived::found(&found).probed(py),
        Outcome::Probed(None) | Outcome::Reached => Ok(py.None().into_bound(py)),
    }
}

/// What one rank asked of the world and what the world answered, in order.
#[pyclass(module = "wiretwin._core", skip_from_py_object)]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankTrace {
    steps: Vec<Step>,
    /// What sends and receives returned, one after the other.
    made: Vec<u64>,
    /// What waits and cancels named, one after the other.
    named: Vec<u64>,
    answers: Vec<Answer>,
    completions: Vec<Arrived>,
    /// Of calls, by number.
    names: Vec<String>,
}

impl RankTrace {
    /// Adds an operation, and the request that it made.
    pub(crate) fn add(&mut self, asked: &Asked, requests: &[RequestId], made: u64) {
        let step = step(asked);
        if step.makes_request() {
            self.made.push(made);
        }
        match asked {
            Asked::Op(Op::Cancel(request)) => self.named.push(request.0),
            Asked::Wait { .. } => self.named.extend(requests.iter().map(|request| request.0)),
            Asked::Op(_) => {}
        }
        self.steps.push(step);
    }

    /// Adds what the rank was resumed with.
    pub(crate) fn answered(&mut self, outcome: Outcome<'_>) {
        self.answers.push(match outcome {
            Outcome::Completed(items) => {
                self.completions.extend(items.iter().map(Arrived::completed));
                Answer::Completed(items.len() as u32)
            }
            Outcome::Probed(Some(found)) => Answer::Found(Arrived::found(&found)),
            Outcome::Probed(None) | Outcome::Reached => Answer::Nothing,
        });
    }

    /// Gives it the names of the calls, by the numbers that its world gave them.
    pub(crate) fn name(&mut self, names: &[String]) {
        self.names = names.to_vec();
    }

    pub(crate) fn number_of(&mut self, name: &str) -> NameId {
        let known = self.names.iter().position(|one| one == name);
        NameId(known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        }) as u32)
    }

    /// An operation as it was posted, of a step that named these requests.
    fn posted<'py>(&self, py: Python<'py>, step: &Step, named: &[u64]) -> PyResult<Bound<'py, PyTuple>> {
        let asks = |asks: &Asks| {
            let any = |filter: Option<u32>| filter.map_or(-1, i64::from);
            (asks.context, any(asks.source), any(asks.tag))
        };
        match step {
            Step::Compute(ps) => ("compute", ps).into_pyobject(py),
            Step::Enter { name, site } => {
                let name = self.names.get(*name as usize).map_or("", String::as_str);
                ("enter", name, site).into_pyobject(py)
            }
            Step::Exit => ("exit",).into_pyobject(py),
            Step::Send { context, to, tag, bytes, mode } => {
                ("send", context, to, tag, bytes, Mode::BY_NAME[*mode as usize].0).into_pyobject(py)
            }
            Step::Recv { asked, capacity } => {
                let (context, source, tag) = asks(asked);
                ("recv", context, source, tag, capacity).into_pyobject(py)
            }
            Step::Cancel => ("cancel", named[0]).into_pyobject(py),
            Step::Wait { mode, .. } => {
                ("wait", PyTuple::new(py, named)?, WAITS[*mode as usize].0).into_pyobject(py)
            }
            Step::Probe(pattern) | Step::ProbeNow(pattern) => {
                let (context, source, tag) = asks(pattern);
                let what = if matches!(step, Step::Probe(_)) { "probe" } else { "probe_now" };
                (what, context, source, tag).into_pyobject(py)
            }
            Step::Yield => ("yield",).into_pyobject(py),
            Step::Finish => ("finish",).into_pyobject(py),
        }
    }
}

fn step(asked: &Asked) -> Step {
    match asked {
        Asked::Op(Op::Compute(span)) => Step::Compute(span.as_ps()),
        Asked::Op(Op::Enter { name, site }) => Step::Enter { name: name.0, site: *site },
        Asked::Op(Op::Exit) => Step::Exit,
        Asked::Op(Op::Send { context, to, tag, bytes, mode }) => Step::Send {
            context: *context,
            to: *to,
            tag: *tag,
            bytes: bytes.get(),
            mode: number(&Mode::BY_NAME, *mode),
        },
        Asked::Op(Op::Recv { pattern, capacity }) => {
            Step::Recv { asked: Asks::of(pattern), capacity: capacity.get() }
        }
        Asked::Op(Op::Cancel(_)) => Step::Cancel,
        Asked::Op(Op::Probe(pattern)) => Step::Probe(Asks::of(pattern)),
        Asked::Op(Op::ProbeNow(pattern)) => Step::ProbeNow(Asks::of(pattern)),
        Asked::Op(Op::Yield) => Step::Yield,
        Asked::Op(Op::Finish) => Step::Finish,
        Asked::Wait { count, mode } => Step::Wait { count: *count, mode: number(&WAITS, *mode) },
        Asked::Op(Op::Multicast { .. } | Op::Wish(_) | Op::Wait { .. } | Op::Watch { .. } | Op::Pause(_)) => {
            unreachable!("not among what is read")
        }
    }
}

fn number<T: PartialEq + Copy>(list: &[(&str, T)], value: T) -> u8 {
    list.iter().position(|(_, one)| *one == value).unwrap_or(0) as u8
}

#[pymethods]
impl RankTrace {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Appends an operation and the request that it makes, 0 if none.
    #[pyo3(signature = (op, request = 0))]
    fn append(&mut self, op: &Bound<'_, PyTuple>, request: u64) -> PyResult<()> {
        let mut requests = Vec::new();
        let asked = read(op, &mut requests, |name| self.number_of(name))?;
        self.add(&asked, &requests, request);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.steps.len()
    }

    /// The operations with the request that each made, 0 if none.
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (mut made, mut named) = (self.made.iter(), &self.named[..]);
        let list = PyList::empty(py);
        for step in &self.steps {
            let (mine, rest) = named.split_at(step.names());
            named = rest;
            let request = if step.makes_request() { made.next().copied().unwrap_or(0) } else { 0 };
            list.append((self.posted(py, step, mine)?, request))?;
        }
        Ok(list)
    }

    /// What each suspension ended with.
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut played = Played::default();
        let list = PyList::empty(py);
        while let Some(outcome) = played.next(py, self)? {
            list.append(outcome)?;
        }
        Ok(list)
    }

    /// The numbers of the messages that it received, or found.
    fn messages(&self) -> Vec<u64> {
        let found = self.answers.iter().filter_map(|answer| match answer {
            Answer::Found(found) => Some(found.message),
            _ => None,
        });
        self.completions.iter().map(|item| item.message).chain(found).collect()
    }

    /// How many messages it sends.
    fn sends(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Send { .. })).count()
    }

    /// Whether it asks for nothing but time.
    fn is_silent(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Compute(_) | Step::Finish | Step::Yield))
    }

    /// A number of what it does, without whom with: which calls where, how long its messages are, how many it waits
    /// for. Of ranks of one world only.
    fn kind(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for step in &self.steps {
            std::mem::discriminant(step).hash(&mut hasher);
            match step {
                Step::Enter { name, site } => (name, site).hash(&mut hasher),
                Step::Send { bytes, mode, .. } => (bytes, mode).hash(&mut hasher),
                Step::Recv { capacity, .. } => capacity.hash(&mut hasher),
                Step::Wait { count, mode } => (count, mode).hash(&mut hasher),
                _ => {}
            }
        }
        hasher.finish()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = postcard::to_allocvec(&*slf.borrow())
            .map_err(|error| PyRuntimeError::new_err(format!("a trace cannot be written: {error}")))?;
        Ok((slf.get_type().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// The trace that was pickled.
    #[classmethod]
    fn from_bytes(_: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        postcard::from_bytes(bytes)
            .map_err(|error| PyValueError::new_err(format!("the bytes are not those of a trace: {error}")))
    }
}

/// A rank that does once more what is in its trace, up to each suspension.
pub(crate) struct Again<'a> {
    trace: &'a RankTrace,
    /// The numbers of the calls' names in this world.
    names: Vec<NameId>,
    /// How long it computes instead.
    durations: Option<Vec<u64>>,
    computed: usize,
    next: usize,
    /// What waits and cancels name, as places in `made`.
    named: Vec<u32>,
    waited: usize,
    /// The requests that its sends and receives have made this time.
    made: Vec<RequestId>,
    /// Of the wait that is being posted.
    requests: Vec<RequestId>,
}

impl<'a> Again<'a> {
    /// The rank at its beginning, the calls' names numbered by `name_id`.
    ///
    /// # Errors
    /// A `ValueError` where it has fewer durations than stretches, or names a request that it has not made.
    pub(crate) fn of(
        trace: &'a RankTrace,
        durations: Option<Vec<u64>>,
        mut name_id: impl FnMut(&str) -> NameId,
    ) -> PyResult<Self> {
        let stretches = trace.steps.iter().filter(|step| matches!(step, Step::Compute(_))).count();
        if durations.as_ref().is_some_and(|durations| durations.len() < stretches) {
            return Err(PyValueError::new_err(
                "a recording has more stretches of computation than durations",
            ));
        }
        let mut made = trace.made.iter().copied().zip(0..).collect::<Vec<(u64, u32)>>();
        made.sort_unstable();
        let step = |request: &u64| {
            let at = made.binary_search_by_key(request, |(one, _)| *one);
            at.map(|at| made[at].1).map_err(|_| {
                PyValueError::new_err(format!("request {request} of a recording was never made"))
            })
        };
        let named = trace.named.iter().map(step).collect::<PyResult<_>>()?;
        let names = trace.names.iter().map(|name| name_id(name)).collect();
        let made = Vec::with_capacity(trace.made.len());
        Ok(Self {
            trace,
            names,
            durations,
            computed: 0,
            next: 0,
            named,
            waited: 0,
            made,
            requests: Vec::new(),
        })
    }

    /// Whether it has done everything.
    pub(crate) const fn is_over(&self) -> bool {
        self.next == self.trace.steps.len()
    }

    /// Posts what it does until it is suspended.
    ///
    /// # Errors
    /// Those of the world.
    pub(crate) fn resume(&mut self, rank: u32, world: &mut Ranks) -> Result<(), RanksError> {
        while let Some(step) = self.trace.steps.get(self.next) {
            self.next += 1;
            self.requests.clear();
            let named = &self.named[self.waited..self.waited + step.names()];
            self.waited += named.len();
            self.requests.extend(named.iter().filter_map(|one| self.made.get(*one as usize)));
            let operation = match *step {
                Step::Compute(own) => {
                    let ps = self.durations.as_ref().map_or(own, |durations| durations[self.computed]);
                    self.computed += 1;
                    Op::Compute(Span::from_ps(ps))
                }
                Step::Enter { name, site } => Op::Enter { name: self.names[name as usize], site },
                Step::Exit => Op::Exit,
                Step::Send { context, to, tag, bytes, mode } => Op::Send {
                    context,
                    to,
                    tag,
                    bytes: Bytes::new(bytes),
                    mode: Mode::BY_NAME[mode as usize].1,
                },
                Step::Recv { asked, capacity } => {
                    Op::Recv { pattern: asked.pattern(), capacity: Bytes::new(capacity) }
                }
                Step::Cancel => Op::Cancel(self.requests.first().copied().unwrap_or(RequestId(0))),
                Step::Wait { mode, .. } => {
                    Op::Wait { requests: &self.requests, mode: WAITS[mode as usize].1 }
                }
                Step::Probe(asked) => Op::Probe(asked.pattern()),
                Step::ProbeNow(asked) => Op::ProbeNow(asked.pattern()),
                Step::Yield => Op::Yield,
                Step::Finish => Op::Finish,
            };
            let made = world.post(rank, operation)?;
            if step.makes_request() {
                self.made.push(made.unwrap_or(RequestId(0)));
            }
            if step.suspends() {
                break;
            }
        }
        Ok(())
    }
}

/// How far a trace has been played.
#[derive(Debug, Default)]
struct Played {
    step: usize,
    made: usize,
    named: usize,
    answered: usize,
    completed: usize,
    suspended: bool,
    is_over: bool,
}

impl Played {
    /// The next outcome.
    fn next<'py>(&mut self, py: Python<'py>, trace: &RankTrace) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(answer) = trace.answers.get(self.answered) else { return Ok(None) };
        self.answered += 1;
        Ok(Some(match *answer {
            Answer::Completed(count) => {
                let items = &trace.completions[self.completed..self.completed + count as usize];
                self.completed += count as usize;
                let items = items.iter().map(|item| item.completion(py)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(py, items)?.into_any()
            }
            Answer::Found(found) => found.probed(py)?,
            Answer::Nothing => py.None().into_bound(py),
        }))
    }
}

/// Answers one rank from its trace, as the world did.
#[pyclass(module = "wiretwin._core")]
pub(crate) struct TracePlayer {
    trace: Py<RankTrace>,
    played: Played,
    /// Reused for the requests of a wait.
    requests: Vec<RequestId>,
}

impl TracePlayer {
    fn take(
        &mut self,
        py: Python<'_>,
        asked: &Asked,
        known: bool,
        shown: impl Fn() -> String,
    ) -> PyResult<u64> {
        let trace = self.trace.borrow(py);
        let played = &mut self.played;
        let now = step(asked);
        let then = trace.steps.get(played.step);
        let named = then.map_or(&[][..], |then| &trace.named[played.named..played.named + then.names()]);
        let same = match asked {
            Asked::Op(Op::Cancel(request)) => named == [request.0],
            Asked::Wait { .. } => self.requests.iter().map(|one| one.0).eq(named.iter().copied()),
            Asked::Op(_) => true,
        };
        let Some(then) = then.filter(|then| known && then.is_like(&now) && same) else {
            let was = then.map_or_else(
                || Ok("the end".to_string()),
                |then| trace.posted(py, then, named).map(|posted| words(&posted)),
            )?;
            return Err(PyValueError::new_err(format!(
                "operation {} is {}, it was {was}",
                played.step,
                shown()
            )));
        };
        played.step += 1;
        played.named += named.len();
        played.suspended = then.suspends();
        played.is_over = matches!(then, Step::Finish);
        if !then.makes_request() {
            return Ok(0);
        }
        played.made += 1;
        Ok(trace.made[played.made - 1])
    }
}

#[pymethods]
impl TracePlayer {
    #[new]
    fn new(trace: Py<RankTrace>) -> Self {
        Self { trace, played: Played::default(), requests: Vec::new() }
    }

    /// Takes an operation, which must be the next of the trace; returns the request that it made then.
    fn post(&mut self, op: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let py = op.py();
        let mut known = true;
        let trace = self.trace.clone_ref(py);
        let asked = read(op, &mut self.requests, |name| {
            let at = trace.borrow(py).names.iter().position(|one| one == name);
            known = at.is_some();
            NameId(at.unwrap_or(0) as u32)
        })?;
        self.take(py, &asked, known, || words(op))
    }

    /// Goes to the end of the suspension: what the rank is resumed with, alone in a tuple, or nothing if it is not.
    fn resume<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.played.is_over || !self.played.suspended {
            return Ok(None);
        }
        let trace = self.trace.borrow(py);
        let outcome = self.played.next(py, &trace)?;
        self.played.suspended &= outcome.is_none();
        outcome.map(|outcome| (outcome,).into_pyobject(py)).transpose()
    }
}

/// An operation in words.
fn words(op: &Bound<'_, PyTuple>) -> String {
    let parts = op.iter().map(|part| part.str().map_or_else(|_| "?".to_string(), |text| text.to_string()));
    parts.collect::<Vec<_>>().join(" ")
}
