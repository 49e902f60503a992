//! Octets that come one after the other, counted.

use std::io::Read;

use super::{CaptureError, CaptureFault};

/// A source of octets that knows how many have come.
#[derive(Debug)]
pub(super) struct Input<R> {
    format: &'static str,
    source: R,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(format: &'static str, source: R) -> Self {
        Self { format, source, offset: 0 }
    }

    /// Fills `octets`; false if the file ended before the first.
    pub(super) fn exact_or_end(
        &mut self,
        field: &'static str,
        octets: &mut [u8],
    ) -> Result<bool, CaptureError> {
        let mut filled = 0;
        while filled < octets.len() {
            match self.source.read(&mut octets[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(self.truncated(field, filled, octets.len())),
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(field, CaptureFault::Io(error))),
            }
        }
        self.offset += filled as u64;
        Ok(true)
    }

    /// Fills `octets`.
    pub(super) fn exact(&mut self, field: &'static str, octets: &mut [u8]) -> Result<(), CaptureError> {
        if self.exact_or_end(field, octets)? || octets.is_empty() {
            return Ok(());
        }
        Err(self.truncated(field, 0, octets.len()))
    }

    /// The next `count` octets. Room is taken as they come, not for what a length promises.
    pub(super) fn octets(&mut self, field: &'static str, count: u32) -> Result<Vec<u8>, CaptureError> {
        let mut octets = Vec::with_capacity(count.min(FIRST_ROOM) as usize);
        match self.source.by_ref().take(count.into()).read_to_end(&mut octets) {
            Ok(found) if found as u64 == u64::from(count) => {
                self.offset += u64::from(count);
                Ok(octets)
            }
            Ok(found) => Err(self.truncated(field, found, count as usize)),
            Err(error) => Err(self.error(field, CaptureFault::Io(error))),
        }
    }

    /// A field that stands `back` octets before where we are.
    pub(super) fn value(
        &self,
        field: &'static str,
        back: u64,
        found: u64,
        allowed: &'static str,
    ) -> CaptureError {
        let fault = CaptureFault::Value { found, allowed };
        CaptureError { format: self.format, field, offset: self.offset - back, fault }
    }

    fn truncated(&self, field: &'static str, found: usize, needed: usize) -> CaptureError {
        self.error(field, CaptureFault::Truncated { found: found as u64, needed: needed as u64 })
    }

    fn error(&self, field: &'static str, fault: CaptureFault) -> CaptureError {
        CaptureError { format: self.format, field, offset: self.offset, fault }
    }
}

/// Room taken before octets have come.
const FIRST_ROOM: u32 = 4096;
