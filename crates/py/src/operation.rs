//! An operation of a rank, as Python gives it: a tuple of its kind and its fields.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyInt, PyList, PyTuple};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{NameId, Op, RequestId, WaitMode};
use wiretwin_units::{Bytes, Span};

/// The modes of waits by name.
pub(crate) const WAITS: [(&str, WaitMode); 4] =
    [("all", WaitMode::All), ("any", WaitMode::Any), ("some", WaitMode::Some), ("test", WaitMode::Test)];

/// An operation that has been read.
pub(crate) enum Asked {
    Op(Op<'static>),
    /// For so many requests, which were read beside it.
    Wait {
        count: u32,
        mode: WaitMode,
    },
}

impl Asked {
    /// What is posted, of a wait for these requests.
    pub(crate) const fn posted<'a>(&self, requests: &'a [RequestId]) -> Op<'a> {
        match *self {
            Self::Op(operation) => operation,
            Self::Wait { mode, .. } => Op::Wait { requests, mode },
        }
    }

    /// Whether what a program gets to know by it may depend on time.
    pub(crate) const fn tells_time(&self) -> bool {
        match self {
            Self::Op(Op::Recv { pattern, .. }) => pattern.source.is_none(),
            Self::Op(operation) => matches!(operation, Op::Probe(_) | Op::ProbeNow(_) | Op::Yield),
            Self::Wait { mode, .. } => !matches!(mode, WaitMode::All),
        }
    }
}

/// Reads an operation; the requests of a wait go to `requests`, and the names of calls are numbered by `name_id`.
///
/// # Errors
/// Those of Python for a wrong type or value: the operation, the field, what is allowed.
pub(crate) fn read(
    op: &Bound<'_, PyTuple>,
    requests: &mut Vec<RequestId>,
    name_id: impl FnOnce(&str) -> NameId,
) -> PyResult<Asked> {
    let fields = Fields { op };
    let kind = fields.text(0, "the operation")?;
    let operation = match &*kind {
        "send" => {
            fields.count(6)?;
            let mode = mode_named(&fields.text(5, "mode")?)?;
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
            let mode = named("wait", &WAITS, &fields.text(2, "mode")?)?;
            requests.clear();
            let list = fields.item(1)?;
            if let Ok(list) = list.cast::<PyList>() {
                for item in list.iter() {
                    requests.push(RequestId(item.extract()?));
                }
            } else {
                for item in list.try_iter()? {
                    requests.push(RequestId(item?.extract()?));
                }
            }
            return Ok(Asked::Wait { count: requests.len() as u32, mode });
        }
        "enter" => {
            fields.count(3)?;
            let name = name_id(&fields.text(1, "name")?);
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
        "sleep" => {
            fields.count(2)?;
            Op::Sleep(Span::from_ps(fields.number(1, "ps")?))
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

/// The mode of a send of this name.
///
/// # Errors
/// A `ValueError` where there is none.
pub(crate) fn mode_named(name: &str) -> PyResult<Mode> {
    named("send", &Mode::BY_NAME, name)
}

/// A source, a tag, or none for -1, which is any.
///
/// # Errors
/// A `ValueError` for another number, of what `name` says.
pub(crate) fn filter(number: i64, name: impl FnOnce() -> String) -> PyResult<Option<u32>> {
    match u32::try_from(number) {
        Ok(number) => Ok(Some(number)),
        Err(_) if number == -1 => Ok(None),
        Err(_) => {
            let name = name();
            Err(PyValueError::new_err(format!("{name} is {number}; allowed: -1 for any, or 0 and above")))
        }
    }
}

fn named<T: Copy>(kind: &str, list: &[(&str, T)], name: &str) -> PyResult<T> {
    list.iter().find(|(one, _)| *one == name).map(|(_, value)| *value).ok_or_else(|| {
        let allowed = list.iter().map(|(one, _)| *one).collect::<Vec<_>>().join(", ");
        PyValueError::new_err(format!("{kind}: mode is {name:?}; allowed: {allowed}"))
    })
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
        filter(self.number(index, name)?, || format!("{}: {name}", self.shown()))
    }

    fn pattern(&self) -> PyResult<Pattern> {
        Ok(Pattern {
            context: self.number(1, "context")?,
            source: self.filter(2, "source")?,
            tag: self.filter(3, "tag")?,
        })
    }
}
