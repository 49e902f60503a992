//! JSON that is looked at value by value, with errors that name the key, the value and what is allowed.

use serde_json::Value;
pub use wiretwin_plan::{PlanError, read};

/// A value and the path to it. What reads the value returns a [`PlanError`] where the value is none of what is allowed.
pub struct At<'a> {
    /// The path, as in [`PlanError::key`].
    pub key: String,
    /// The value.
    pub value: &'a Value,
}

impl<'a> At<'a> {
    /// The whole document.
    pub const fn top(value: &'a Value) -> Self {
        Self { key: String::new(), value }
    }

    /// The error that this value is none of what is allowed.
    pub fn refuse(&self, allowed: &str) -> PlanError {
        let mut shown = self.value.to_string();
        if shown.len() > 80 {
            let cut = (0..=77).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0);
            shown.truncate(cut);
            shown.push_str("...");
        }
        self.refuse_as(shown, allowed)
    }

    /// The same, with the value shown in another way.
    pub fn refuse_as(&self, value: impl ToString, allowed: impl Into<String>) -> PlanError {
        PlanError::new(&self.key, value, allowed)
    }

    /// The same of a member, there or not.
    pub fn refuse_member(&self, key: &str, value: impl ToString, allowed: impl Into<String>) -> PlanError {
        PlanError::new(join(&self.key, key), value, allowed)
    }

    /// This, if it is an object with no key but the known ones, which are the words of a text.
    pub fn object(&self, known: &str) -> Result<Self, PlanError> {
        let names = || known.split_ascii_whitespace().collect::<Vec<_>>().join(", ");
        let allowed = || format!("an object with the keys {}", names());
        let map = self.value.as_object().ok_or_else(|| self.refuse(&allowed()))?;
        let is_known = |key: &str| known.split_ascii_whitespace().any(|one| one == key);
        if let Some((key, value)) = map.iter().find(|(key, _)| !is_known(key)) {
            let unknown = At { key: join(&self.key, key), value };
            return Err(unknown.refuse(&format!("no such key; known are {}", names())));
        }
        Ok(Self { key: self.key.clone(), value: self.value })
    }

    /// A member that must be given.
    pub fn get(&self, key: &str) -> Result<Self, PlanError> {
        match self.value.get(key) {
            Some(value) => Ok(Self { key: join(&self.key, key), value }),
            None => Err(self.refuse_member(key, "nothing", "this key must be given")),
        }
    }

    /// The member, unless absent or null.
    pub fn optional(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self { key: join(&self.key, key), value })
    }

    /// The items of a list that is not empty.
    pub fn list(&self, allowed: &str) -> Result<Vec<Self>, PlanError> {
        let list = self.value.as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| self.refuse(&format!("a list of {allowed}")))?;
        let at = |(index, value)| Self { key: format!("{}[{index}]", self.key), value };
        Ok(list.iter().enumerate().map(at).collect())
    }

    /// An integer from `least` to `most`.
    pub fn integer(&self, least: u64, most: u64) -> Result<u64, PlanError> {
        match self.value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ if least == most => Err(self.refuse(&format!("{least}"))),
            _ => Err(self.refuse(&format!("an integer from {least} to {most}"))),
        }
    }

    /// The same, where it may be negative.
    pub fn signed(&self, least: i64, most: i64) -> Result<i64, PlanError> {
        let value = self.value.as_i64().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| self.refuse(&format!("an integer from {least} to {most}")))
    }

    /// A number from `least` to `most`.
    pub fn real(&self, least: f64, most: f64) -> Result<f64, PlanError> {
        let value = self.value.as_f64().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| self.refuse(&format!("{least} to {most}")))
    }

    /// Yes or no.
    pub fn truth(&self) -> Result<bool, PlanError> {
        self.value.as_bool().ok_or_else(|| self.refuse("true or false"))
    }

    /// Text.
    pub fn text(&self) -> Result<&'a str, PlanError> {
        self.value.as_str().ok_or_else(|| self.refuse("a text"))
    }

    /// What one of several words stands for.
    pub fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, PlanError> {
        let found = words.iter().find(|(word, _)| self.value.as_str() == Some(word));
        let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, meant)| *meant).ok_or_else(|| self.refuse(&names()))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
