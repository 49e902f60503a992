//! Reading a JSON object key by key: an error names the key, the value and what is allowed, and no
//! unknown key passes.

use std::fmt;

use serde_json::{Map, Value};

/// A specification that is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The key, as a path such as `schedule[3].bytes`; empty for the whole file.
    pub key: String,
    /// What is wrong with it, and what is allowed.
    pub reason: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "{}: {}", self.key, self.reason)
        }
    }
}

impl std::error::Error for SpecError {}

/// One object of the specification, emptied as its keys are read.
pub(crate) struct Reader {
    path: String,
    object: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Reader {
    pub fn new(path: impl Into<String>, value: Value) -> Result<Self, SpecError> {
        let path = path.into();
        match value {
            Value::Object(object) => Ok(Self { path, object, known: Vec::new() }),
            other => Err(SpecError { key: path, reason: format!("{} is not an object", show(&other)) }),
        }
    }

    pub fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub fn wrong(&self, name: &str, value: &Value, allowed: impl fmt::Display) -> SpecError {
        SpecError { key: self.key(name), reason: format!("{} is not allowed: {allowed}", show(value)) }
    }

    /// The value of an optional key; `null` counts as absent.
    pub fn optional(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.object.remove(name).filter(|value| !value.is_null())
    }

    /// Whether a key is absent or null.
    pub fn lacks(&self, name: &str) -> bool {
        self.object.get(name).is_none_or(Value::is_null)
    }

    /// Every key that has not been read, with its value as a text.
    pub fn rest(self, text: impl Fn(&Value) -> Option<String>) -> Result<Vec<(String, String)>, SpecError> {
        let read = |(key, value): (&String, &Value)| match text(value) {
            Some(text) => Ok((key.clone(), text)),
            None => Err(self.wrong(key, value, "one line of text, a number, true or false")),
        };
        self.object.iter().map(read).collect()
    }

    pub fn required(&mut self, name: &'static str, allowed: &str) -> Result<Value, SpecError> {
        self.optional(name)
            .ok_or_else(|| SpecError { key: self.key(name), reason: format!("missing: {allowed}") })
    }

    /// A whole number from `low` to `high`.
    pub fn integer(
        &mut self,
        name: &'static str,
        low: u64,
        high: u64,
        default: Option<u64>,
    ) -> Result<u64, SpecError> {
        let allowed = format!("a whole number from {low} to {high}");
        let value = match (self.optional(name), default) {
            (Some(value), _) => value,
            (None, Some(default)) => return Ok(default),
            (None, None) => {
                return Err(SpecError { key: self.key(name), reason: format!("missing: {allowed}") });
            }
        };
        match value.as_u64() {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.wrong(name, &value, allowed)),
        }
    }

    /// A number above 0, at most `high`.
    pub fn positive(
        &mut self,
        name: &'static str,
        high: f64,
        default: Option<f64>,
    ) -> Result<f64, SpecError> {
        let allowed = format!("a number above 0, at most {high}");
        let value = match (self.optional(name), default) {
            (Some(value), _) => value,
            (None, Some(default)) => return Ok(default),
            (None, None) => {
                return Err(SpecError { key: self.key(name), reason: format!("missing: {allowed}") });
            }
        };
        match value.as_f64() {
            Some(number) if number > 0.0 && number <= high => Ok(number),
            _ => Err(self.wrong(name, &value, allowed)),
        }
    }

    pub fn boolean(&mut self, name: &'static str, default: bool) -> Result<bool, SpecError> {
        match self.optional(name) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(value),
            Some(other) => Err(self.wrong(name, &other, "true or false")),
        }
    }

    /// A word that `parse` knows.
    pub fn word<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        default: Option<T>,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, SpecError> {
        let value = match (self.optional(name), default) {
            (Some(value), _) => value,
            (None, Some(default)) => return Ok(default),
            (None, None) => {
                return Err(SpecError { key: self.key(name), reason: format!("missing: {allowed}") });
            }
        };
        value.as_str().and_then(parse).ok_or_else(|| self.wrong(name, &value, allowed))
    }

    /// Rejects what has not been read.
    pub fn end(self) -> Result<(), SpecError> {
        match self.object.keys().next() {
            None => Ok(()),
            Some(key) => Err(SpecError {
                key: self.key(key),
                reason: if self.known.is_empty() {
                    "unknown key: none is allowed here".to_owned()
                } else {
                    format!("unknown key: allowed are {}", self.known.join(", "))
                },
            }),
        }
    }
}

/// A value, shortened.
pub(crate) fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
