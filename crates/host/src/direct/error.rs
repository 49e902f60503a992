//! Why an endpoint cannot be had.

use std::fmt;
use std::io;

/// A device or an endpoint that could not be had, and what was being done.
#[derive(Debug)]
pub struct EndpointError {
    pub(super) doing: &'static str,
    pub(super) error: io::Error,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the direct transport, {}: {}", self.doing, self.error)
    }
}

impl std::error::Error for EndpointError {}
