//! Parameters of a machine: what is allowed, and the error that says so.

use core::fmt;

use wiretwin_units::Span;

/// A parameter that cannot be: its name, its value and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter, in the specification's words.
    pub parameter: &'static str,
    /// Its value: a count, octets, or a span in ps.
    pub value: u64,
    /// What is allowed.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, allowed is {}", self.parameter, self.value, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

/// The value of a parameter, whether it is allowed, and what is.
pub(crate) type Rule = (u64, bool, &'static str);

/// A span that must not be zero.
pub(crate) fn some(span: Span) -> Rule {
    (span.as_ps(), span > Span::ZERO, "more than 0 ps")
}

/// A count that must not be zero.
pub(crate) fn one_or_more(count: u32) -> Rule {
    (count.into(), count >= 1, "1 or more")
}

/// The first parameter, by name, whose rule does not hold.
pub(crate) fn check<const N: usize>(rules: [(&'static str, Rule); N]) -> Result<(), ConfigError> {
    match rules.into_iter().find(|(_, (_, holds, _))| !holds) {
        Some((parameter, (value, _, allowed))) => Err(ConfigError { parameter, value, allowed }),
        None => Ok(()),
    }
}
