//! What is wrong with a plan, as data.

use std::fmt;

/// Why a plan was rejected: the key, what stands there, and what may stand there.
///
/// ```
/// let error = wiretwin_plan::NetworkPlan::from_text("star:hosts=1,rate=1Gbit/s").unwrap_err();
/// assert_eq!((error.key.as_str(), error.value.as_str()), ("hosts", "1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The path of the key from the top of the plan, such as `lines[2].rate`; empty for the plan as a whole.
    pub key: String,
    /// The value found there as it was written, or `nothing` where the key is missing.
    pub value: String,
    /// What is allowed there.
    pub allowed: String,
}

impl PlanError {
    /// An error at `key`, where `value` stands.
    pub fn new(key: impl Into<String>, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), allowed: allowed.into() }
    }

    /// The same error as it reads from one level further up, where the key was reached through `segment`.
    #[must_use]
    pub fn under(mut self, segment: &str) -> Self {
        self.key = match (self.key.is_empty(), self.key.starts_with('[')) {
            (true, _) => segment.to_string(),
            (false, true) => format!("{segment}{}", self.key),
            (false, false) => format!("{segment}.{}", self.key),
        };
        self
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "the whole" } else { &self.key };
        write!(f, "{key} is {}; allowed: {}", self.value, self.allowed)
    }
}

impl std::error::Error for PlanError {}
