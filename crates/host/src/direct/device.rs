//! What a device does that takes whole Ethernet frames: a half that sends, and a half that receives, so that what
//! comes can be answered while it is looked at.

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

/// The half that sends.
pub(super) trait Sends {
    /// Memory for the next frame, at least [`MOST`](super::ether::MOST) bytes; none while all of it is on its way.
    fn room(&mut self) -> Option<&mut [u8]>;

    /// Takes the frame that was written there; it goes with the next [`Sends::flush`].
    fn put(&mut self, length: usize);

    /// Has the kernel send the frames that were taken. What it cannot send now goes with the next call.
    fn flush(&mut self);
}

/// The half that receives.
pub(super) trait Receives {
    /// Hands the next frame to `look`; false if none has come.
    fn take(&mut self, look: impl FnOnce(&[u8])) -> bool;
}
