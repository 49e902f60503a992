//! What one rank asked of the world and what the world answered, in order: kept while it runs, played to the rank
//! when it runs alone, done again in another world.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::iter::Peekable;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};
use serde::{Deserialize, Serialize};
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{Completion, Found, NameId, Op, Outcome, Ranks, RequestId, WaitMode};
use wiretwin_units::Span;

use crate::background::Backgrounds;
use crate::operation::{Asked, WAITS, read};
use crate::steps::{ANY, Asks, Place, Step, StepReader, Steps};
use crate::world::refused;

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

/// What the world's answer to a wait says of one receive: nothing if it is none of those waited for.
pub(crate) fn received<'py>(
    py: Python<'py>,
    receive: RequestId,
    outcome: Outcome<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let Outcome::Completed(items) = outcome else { return answer(py, outcome) };
    let Some(item) = items.iter().find(|item| item.request == receive) else {
        return Ok(py.None().into_bound(py));
    };
    Arrived::completed(item).completion(py)
}

/// What one rank asked of the world and what the world answered, in order.
#[pyclass(module = "wiretwin._core", skip_from_py_object)]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankTrace {
    /// With the requests that they name.
    steps: Steps,
    /// What sends and receives returned, one after the other; empty where that is 1, 2 and so on.
    made: Vec<u64>,
    answers: Vec<Answer>,
    completions: Vec<Arrived>,
    /// Of calls, by number.
    names: Vec<String>,
    /// What goes on in the background, each from its [`Step::Begin`]: rounds of sends and receives, behind each the wait
    /// for its requests.
    backgrounds: Vec<Steps>,
}

impl RankTrace {
    /// Adds the beginning of what goes on in the background.
    pub(crate) fn begin(&mut self, rounds: Steps) {
        self.backgrounds.push(rounds);
        self.push(Step::Begin, 0, []);
    }

    /// Whether something goes on in the background.
    pub(crate) const fn has_backgrounds(&self) -> bool {
        !self.backgrounds.is_empty()
    }

    /// Adds an operation, and the request that it made.
    pub(crate) fn add(&mut self, asked: &Asked, requests: &[RequestId], made: u64) {
        let named = match asked {
            Asked::Op(Op::Cancel(request)) => std::slice::from_ref(request),
            Asked::Wait { .. } => requests,
            Asked::Op(_) => &[],
        };
        self.push(step(asked), made, named.iter().map(|request| request.0));
    }

    /// Adds an operation, the request that it makes, if it does, and those that it names.
    pub(crate) fn push(&mut self, step: Step, request: u64, named: impl IntoIterator<Item = u64>) {
        if step.makes_request() {
            let before = self.steps.requests();
            if self.made.is_empty() && request != before + 1 {
                self.made.extend(1..=before);
            }
            if !self.made.is_empty() || request != before + 1 {
                self.made.push(request);
            }
        }
        self.steps.push(step, named);
    }

    /// What a send or a receive returned, by its number from 0.
    fn made(&self, nth: usize) -> u64 {
        if self.made.is_empty() { nth as u64 + 1 } else { self.made[nth] }
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

    /// Its sends and receives by what they returned, each with its number from 0; empty where that is one less.
    fn by_request(&self) -> Vec<(u64, u32)> {
        let mut made = self.made.iter().copied().zip(0..).collect::<Vec<(u64, u32)>>();
        made.sort_unstable();
        made
    }

    /// An operation as it was posted, of a step that named these requests.
    fn posted<'py>(&self, py: Python<'py>, step: &Step, named: &[u64]) -> PyResult<Bound<'py, PyTuple>> {
        let asks = |asks: &Asks| {
            let any = |filter: u32| if filter == ANY { -1 } else { i64::from(filter) };
            (asks.context, any(asks.source), any(asks.tag))
        };
        match step {
            Step::Compute(ps) => ("compute", ps).into_pyobject(py),
            Step::Sleep(ps) => ("sleep", ps).into_pyobject(py),
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
            Step::Begin | Step::WaitBackground(_) => unreachable!("it is posted as its messages"),
        }
    }
}

fn step(asked: &Asked) -> Step {
    match asked {
        Asked::Op(Op::Compute(span)) => Step::Compute(span.as_ps()),
        Asked::Op(Op::Sleep(span)) => Step::Sleep(span.as_ps()),
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
        Asked::Op(
            Op::Multicast { .. } | Op::Control(_) | Op::Wait { .. } | Op::Watch { .. } | Op::Pause(_),
        ) => {
            unreachable!("not among what is read")
        }
    }
}

pub(crate) fn number<T: PartialEq + Copy>(list: &[(&str, T)], value: T) -> u8 {
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

    /// The operations with the request that each made, 0 if none; of what goes on in the background, the first messages
    /// where it begins and the others where it is waited for.
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut made = 0;
        let mut reader = self.steps.read();
        let list = PyList::empty(py);
        let mut flat = Flat { trace: self, list: &list, made: self.steps.requests(), going: Vec::new() };
        while let Some(step) = reader.step() {
            match step {
                Step::Begin => flat.begin(py)?,
                Step::WaitBackground(number) => flat.go_on(py, number as usize, true)?,
                _ => {
                    let mine = (0..step.names()).map(|_| reader.named()).collect::<Vec<_>>();
                    let request = if step.makes_request() { self.made(made) } else { 0 };
                    made += usize::from(step.makes_request());
                    list.append((self.posted(py, &step, &mine)?, request))?;
                }
            }
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
        let steps = std::iter::once(&self.steps).chain(&self.backgrounds).flat_map(Steps::iter);
        steps.filter(|step| matches!(step, Step::Send { .. })).count()
    }

    /// How long the longest message is that it sends, bytes.
    fn longest(&self) -> u64 {
        let steps = std::iter::once(&self.steps).chain(&self.backgrounds).flat_map(Steps::iter);
        let lengths = steps.filter_map(|step| match step {
            Step::Send { bytes, .. } => Some(bytes),
            _ => None,
        });
        lengths.max().unwrap_or(0)
    }

    /// Whether it asks for nothing but time.
    fn is_silent(&self) -> bool {
        self.steps
            .iter()
            .all(|step| matches!(step, Step::Compute(_) | Step::Sleep(_) | Step::Finish | Step::Yield))
    }

    /// The names of the calls that it makes, each once, in the order of the first of each.
    fn calls(&self) -> Vec<&str> {
        let mut met = vec![false; self.names.len()];
        let mut found = Vec::new();
        for step in self.steps.iter() {
            if let Step::Enter { name, .. } = step
                && let Some(met) = met.get_mut(name as usize)
                && !std::mem::replace(met, true)
            {
                found.push(self.names[name as usize].as_str());
            }
        }
        found
    }

    /// A number of what it does, without whom with: which calls where, how long its messages are, how many it waits
    /// for. Of ranks of one world only.
    fn kind(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for step in self.steps.iter() {
            std::mem::discriminant(&step).hash(&mut hasher);
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

/// Lists what goes on in the background as operations.
struct Flat<'a, 'py> {
    trace: &'a RankTrace,
    list: &'a Bound<'py, PyList>,
    /// The last request that was made.
    made: u64,
    /// By number: what is left, and the requests of the round that was begun.
    going: Vec<(StepReader<'a>, Vec<u64>)>,
}

impl<'py> Flat<'_, 'py> {
    fn begin(&mut self, py: Python<'py>) -> PyResult<()> {
        let number = self.going.len();
        self.going.push((self.trace.backgrounds[number].read(), Vec::new()));
        self.go_on(py, number, false)
    }

    /// The messages of the next round, or those of all and the waits for them.
    fn go_on(&mut self, py: Python<'py>, number: usize, ends: bool) -> PyResult<()> {
        let (reader, begun) = &mut self.going[number];
        loop {
            if !begun.is_empty() {
                if !ends {
                    return Ok(());
                }
                let wait = Step::Wait { count: begun.len() as u32, mode: 0 };
                self.list.append((self.trace.posted(py, &wait, begun)?, 0))?;
                begun.clear();
            }
            loop {
                match reader.step() {
                    None => return Ok(()),
                    Some(step) if step.makes_request() => {
                        self.made += 1;
                        begun.push(self.made);
                        self.list.append((self.trace.posted(py, &step, &[])?, self.made))?;
                    }
                    Some(wait) => {
                        (0..wait.names()).for_each(|_| _ = reader.named());
                        break;
                    }
                }
            }
        }
    }
}

/// A rank that does once more what is in its trace, up to each suspension.
pub(crate) struct Again<'a> {
    reader: StepReader<'a>,
    /// The requests that its sends and receives have made this time, without the first ones, of which none is open.
    made: Vec<RequestId>,
    /// How many those first ones are.
    before: u64,
    /// How many requests no wait for all has named.
    open: u64,
    /// Its sends and receives by what they returned then; empty where that is one more than their number.
    by_request: Vec<(u64, u32)>,
    /// The numbers of the calls' names in this world.
    names: Vec<NameId>,
    /// How long it computes instead.
    durations: Option<std::vec::IntoIter<u64>>,
    /// The stretches in which it sleeps, and for how long.
    asleep: Peekable<std::vec::IntoIter<(u64, u64)>>,
    /// The number of the next stretch.
    stretch: u64,
    /// What goes on in the background, each from its beginning.
    backgrounds: std::slice::Iter<'a, Steps>,
    going: Backgrounds<'a>,
}

impl<'a> Again<'a> {
    /// The rank at its beginning, the calls' names numbered by `name_id`.
    pub(crate) fn of(
        trace: &'a RankTrace,
        durations: Option<Vec<u64>>,
        asleep: Vec<(u64, u64)>,
        mut name_id: impl FnMut(&str) -> NameId,
    ) -> Self {
        Self {
            reader: trace.steps.read(),
            made: Vec::new(),
            before: 0,
            open: 0,
            by_request: trace.by_request(),
            names: trace.names.iter().map(|name| name_id(name)).collect(),
            durations: durations.map(Vec::into_iter),
            asleep: asleep.into_iter().peekable(),
            stretch: 0,
            backgrounds: trace.backgrounds.iter(),
            going: Backgrounds::default(),
        }
    }

    /// Takes what the world has completed.
    pub(crate) fn completed(&mut self, completions: &[Completion]) {
        self.going.completed(completions);
    }

    /// Whether it has done everything.
    pub(crate) const fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    /// What a send or a receive made this time that returned `request` then.
    #[inline]
    fn made(&self, request: u64) -> PyResult<RequestId> {
        let number = if self.by_request.is_empty() {
            Some(request.wrapping_sub(1))
        } else {
            let found = self.by_request.binary_search_by_key(&request, |(one, _)| *one);
            found.ok().map(|at| u64::from(self.by_request[at].1))
        };
        let made = number.and_then(|number| self.made.get(number.wrapping_sub(self.before) as usize));
        made.copied()
            .ok_or_else(|| PyValueError::new_err(format!("request {request} of a recording was never made")))
    }

    /// How long the next stretch takes: as given, or else its own.
    fn duration(&mut self, own: u64) -> PyResult<Span> {
        self.stretch += 1;
        Ok(Span::from_ps(match &mut self.durations {
            None => own,
            Some(durations) => durations.next().ok_or_else(|| {
                PyValueError::new_err("a recording has more stretches of computation than durations")
            })?,
        }))
    }

    /// Posts what it does until it is suspended; `requests` are those of a wait meanwhile.
    ///
    /// # Errors
    /// Those of the world; a `ValueError` where it has fewer durations than stretches, or names a request that it has
    /// not made.
    pub(crate) fn resume(
        &mut self,
        rank: u32,
        world: &mut Ranks,
        requests: &mut Vec<RequestId>,
    ) -> PyResult<()> {
        if self.going.waits() && !self.going.go_on(rank, world, requests).map_err(refused)? {
            return Ok(());
        }
        while let Some(step) = self.reader.step() {
            if step.names() > 0 {
                requests.clear();
                for _ in 0..step.names() {
                    let request = self.reader.named();
                    requests.push(self.made(request)?);
                }
            }
            let operation = match step {
                Step::Compute(own) => {
                    let (stretch, span) = (self.stretch, self.duration(own)?);
                    match self.asleep.next_if(|(number, _)| *number == stretch) {
                        Some((_, asleep)) => {
                            let asleep = Span::from_ps(asleep.min(span.as_ps()));
                            let at_work = Span::from_ps(span.as_ps() - asleep.as_ps());
                            world.post(rank, Op::Compute(at_work)).map_err(refused)?;
                            Op::Sleep(asleep)
                        }
                        None => Op::Compute(span),
                    }
                }
                Step::Sleep(own) => Op::Sleep(self.duration(own)?),
                Step::Enter { name, site } => Op::Enter { name: self.names[name as usize], site },
                Step::Exit => Op::Exit,
                Step::Send { .. } | Step::Recv { .. } => {
                    let Some(transfer) = step.transfer() else { continue };
                    transfer
                }
                Step::Cancel => Op::Cancel(requests[0]),
                Step::Wait { count, mode } => {
                    let mode = WAITS[mode as usize].1;
                    if mode == WaitMode::All {
                        self.open = self.open.saturating_sub(u64::from(count));
                        if self.open == 0 {
                            self.before += self.made.len() as u64;
                            self.made.clear();
                        }
                        if count > 0 && !self.going.is_empty() {
                            self.going.wait_for(requests, None);
                            if self.going.go_on(rank, world, requests).map_err(refused)? {
                                continue;
                            }
                            break;
                        }
                    }
                    Op::Wait { requests: if count == 0 { &[] } else { requests }, mode }
                }
                Step::Probe(asked) => Op::Probe(asked.pattern()),
                Step::ProbeNow(asked) => Op::ProbeNow(asked.pattern()),
                Step::Yield => Op::Yield,
                Step::Finish => Op::Finish,
                Step::Begin => {
                    let rounds = self.backgrounds.next().map(Steps::read).unwrap_or_default();
                    self.going.begin(rounds, rank, world).map_err(refused)?;
                    continue;
                }
                Step::WaitBackground(number) => {
                    self.going.wait_for(&[], Some(number));
                    if self.going.go_on(rank, world, requests).map_err(refused)? {
                        continue;
                    }
                    break;
                }
            };
            if let Some(made) = world.post(rank, operation).map_err(refused)? {
                self.made.push(made);
                self.open += 1;
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
    place: Place,
    made: usize,
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
        let mut reader = trace.steps.read_from(played.place);
        let then = reader.step();
        let named = (0..then.map_or(0, |then| then.names())).map(|_| reader.named()).collect::<Vec<_>>();
        let same = match asked {
            Asked::Op(Op::Cancel(request)) => named == [request.0],
            Asked::Wait { .. } => self.requests.iter().map(|one| one.0).eq(named.iter().copied()),
            Asked::Op(_) => true,
        };
        let Some(then) = then.filter(|then| known && then.is_like(&now) && same) else {
            let was = then.map_or_else(
                || Ok("the end".to_string()),
                |then| trace.posted(py, &then, &named).map(|posted| words(&posted)),
            )?;
            return Err(PyValueError::new_err(format!(
                "operation {} is {}, it was {was}",
                played.step,
                shown()
            )));
        };
        played.step += 1;
        played.place = trace.steps.place_of(&reader);
        played.suspended = then.suspends();
        played.is_over = matches!(then, Step::Finish);
        if !then.makes_request() {
            return Ok(0);
        }
        played.made += 1;
        Ok(trace.made(played.made - 1))
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
