//! The simulated world as Python sees it: operations as tuples in, outcomes as tuples out.

use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::model::Model;
use wiretwin_net::world::{Op, Outcome, RequestId, WaitMode, World as Inner};
use wiretwin_record::chrome::to_json;
use wiretwin_record::timeline::{Kind, Timeline};
use wiretwin_units::Span;

/// Ranks that compute and send messages in virtual time.
#[pyclass(module = "wiretwin._core")]
struct World {
    inner: Inner,
    /// Reused for the requests of a wait.
    requests: Vec<RequestId>,
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (ranks, model_json, *, seed = 1, timeline = true))]
    fn new(ranks: u32, model_json: &str, seed: u64, timeline: bool) -> PyResult<Self> {
        if ranks == 0 {
            return Err(PyValueError::new_err("ranks is 0; allowed: 1 or more"));
        }
        let model = Model::from_json(model_json, ranks).map_err(refused)?;
        Ok(Self { inner: Inner::new(model, seed, timeline), requests: Vec::new() })
    }

    #[getter]
    fn size(&self) -> u32 {
        self.inner.size()
    }

    fn post(&mut self, rank: u32, op: &Bound<'_, PyTuple>) -> PyResult<u64> {
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
                    bytes: fields.number(4, "nbytes")?,
                    mode,
                }
            }
            "recv" => {
                fields.count(5)?;
                Op::Recv { pattern: fields.pattern()?, capacity: fields.number(4, "capacity")? }
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
                let op = Op::Wait { requests: &self.requests, mode };
                return self.inner.post(rank, op).map(|_| 0).map_err(refused);
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
        let request = self.inner.post(rank, operation).map_err(refused)?;
        Ok(request.map_or(0, |request| request.0))
    }

    fn step<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.inner.step();
        let resumed = PyList::empty(py);
        for (rank, outcome) in self.inner.resumed() {
            let outcome = match outcome {
                Outcome::Completed(completions) => {
                    let items = completions.iter().map(|item| {
                        if item.cancelled {
                            (item.request.0, -2i64, -2i64, 0u64, 0u64)
                        } else {
                            let (source, tag) = (i64::from(item.source), i64::from(item.tag));
                            (item.request.0, source, tag, item.bytes, item.message.0)
                        }
                    });
                    PyList::new(py, items.collect::<Vec<_>>())?.into_any()
                }
                Outcome::Probed(Some(found)) => {
                    (found.source, found.tag, found.bytes, found.message.0).into_pyobject(py)?.into_any()
                }
                Outcome::Probed(None) | Outcome::Reached => py.None().into_bound(py),
            };
            resumed.append((rank, outcome))?;
        }
        Ok(resumed)
    }

    fn now_ps(&self, rank: u32) -> PyResult<u64> {
        self.inner.rank_now(rank).map(|now| now.as_ps()).map_err(refused)
    }

    fn blocked(&self) -> Vec<(u32, String, String, i32)> {
        let blocked = self.inner.blocked().into_iter();
        blocked.map(|item| (item.rank, item.operation, item.name, item.site)).collect()
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

    fn chrome_trace(&self) -> String {
        chrome_trace_of(&self.inner)
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

pub(crate) fn chrome_trace_of(world: &Inner) -> String {
    let empty = Timeline::new(world.size());
    to_json(world.timeline().unwrap_or(&empty), world.names())
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
