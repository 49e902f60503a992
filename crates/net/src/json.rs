//! Reading JSON with errors that name the key, the value and what is allowed.

use std::fmt;

use serde_json::{Map, Value};
use wiretwin_plan::PlanError;

/// Why a document was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What the document is: `model`, `parameters`.
    pub document: &'static str,
    /// The key, as a path from the top: `intra.latency[1].base_ps`; empty for the whole.
    pub key: String,
    /// The value found there, as JSON, or `nothing`.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "the whole" } else { &self.key };
        write!(f, "{}: {key} is {}; allowed: {}", self.document, self.value, self.allowed)
    }
}

impl std::error::Error for JsonError {}

/// Parses a text.
///
/// # Errors
/// [`JsonError`] for what is not JSON.
pub fn parse(document: &'static str, text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|error| JsonError {
        document,
        key: String::new(),
        value: format!("not JSON ({error})"),
        allowed: "a JSON object".into(),
    })
}

/// A value and the path to it.
pub struct At<'a> {
    document: &'static str,
    /// The path, as in [`JsonError::key`].
    pub key: String,
    /// The value.
    pub value: &'a Value,
}

/// The members of an object whose keys are all known.
pub struct Fields<'a> {
    document: &'static str,
    key: String,
    /// The members.
    pub map: &'a Map<String, Value>,
}

impl<'a> At<'a> {
    /// The whole document.
    pub fn top(document: &'static str, value: &'a Value) -> Self {
        Self { document, key: String::new(), value }
    }

    /// A member of an object whose other keys are not known yet; none where it is absent or this is no object.
    pub fn member(&self, key: &str) -> Option<Self> {
        let value = self.value.as_object()?.get(key)?;
        Some(Self { document: self.document, key: join(&self.key, key), value })
    }

    /// The error that this value is none of what is allowed.
    pub fn refuse(&self, allowed: &str) -> JsonError {
        let mut shown = self.value.to_string();
        if shown.len() > 80 {
            let cut = (0..=77).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0);
            shown.truncate(cut);
            shown.push_str("...");
        }
        self.refuse_as(shown, allowed.into())
    }

    /// The same, with the value shown in another way.
    pub fn refuse_as(&self, value: String, allowed: String) -> JsonError {
        JsonError { document: self.document, key: self.key.clone(), value, allowed }
    }

    /// What is wrong with the plan that this value is.
    pub(crate) fn refuse_plan(&self, error: PlanError) -> JsonError {
        let PlanError { key, value, allowed } = error;
        let key = if key.is_empty() { self.key.clone() } else { join(&self.key, &key) };
        JsonError { document: self.document, key, value, allowed }
    }

    /// The members, if this is an object with no key but the known ones.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn object(&self, known: &[&str]) -> Result<Fields<'a>, JsonError> {
        let allowed = || format!("an object with the keys {}", known.join(", "));
        let map = self.value.as_object().ok_or_else(|| self.refuse(&allowed()))?;
        if let Some((key, value)) = map.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            let unknown = At { document: self.document, key: join(&self.key, key), value };
            return Err(unknown.refuse(&format!("no such key; known are {}", known.join(", "))));
        }
        Ok(Fields { document: self.document, key: self.key.clone(), map })
    }

    /// The items of a list that is not empty.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn list(&self, allowed: &str) -> Result<Vec<At<'a>>, JsonError> {
        let allowed = format!("a list of {allowed}");
        let list = self.value.as_array().ok_or_else(|| self.refuse(&allowed))?;
        if list.is_empty() {
            return Err(self.refuse(&allowed));
        }
        Ok(list
            .iter()
            .enumerate()
            .map(|(index, value)| At {
                document: self.document,
                key: format!("{}[{index}]", self.key),
                value,
            })
            .collect())
    }

    /// An integer from `least` to `most`.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn integer(&self, least: u64, most: u64) -> Result<u64, JsonError> {
        match self.value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ if least == most => Err(self.refuse(&format!("{least}"))),
            _ => Err(self.refuse(&format!("an integer from {least} to {most}"))),
        }
    }

    /// The same, where it may be negative.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn signed(&self, least: i64, most: i64) -> Result<i64, JsonError> {
        match self.value.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.refuse(&format!("an integer from {least} to {most}"))),
        }
    }

    /// A number from `least` to `most`.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn real(&self, least: f64, most: f64) -> Result<f64, JsonError> {
        let value = self.value.as_f64().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| self.refuse(&format!("{least} to {most}")))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn truth(&self) -> Result<bool, JsonError> {
        self.value.as_bool().ok_or_else(|| self.refuse("true or false"))
    }

    /// Reads a string.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn text(&self) -> Result<&'a str, JsonError> {
        self.value.as_str().ok_or_else(|| self.refuse("a text"))
    }

    /// What one of several words stands for.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, JsonError> {
        let found = words.iter().find(|(word, _)| self.value.as_str() == Some(word));
        let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, meant)| *meant).ok_or_else(|| self.refuse(&names()))
    }
}

impl<'a> Fields<'a> {
    /// A member that must be given.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn get(&self, key: &str) -> Result<At<'a>, JsonError> {
        let path = join(&self.key, key);
        match self.map.get(key) {
            Some(value) => Ok(At { document: self.document, key: path, value }),
            None => Err(JsonError {
                document: self.document,
                key: path,
                value: "nothing".into(),
                allowed: "this key must be given".into(),
            }),
        }
    }

    /// The member, unless absent or null.
    pub fn optional(&self, key: &str) -> Option<At<'a>> {
        let value = self.map.get(key).filter(|value| !value.is_null())?;
        Some(At { document: self.document, key: join(&self.key, key), value })
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
