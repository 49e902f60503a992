//! What a port of the wire is made of: something that frames come out of and go into.

use std::io;
use std::os::fd::AsFd;

use wiretwin_host::Tap;

/// An end of the wire. Neither call waits.
pub trait Device: AsFd {
    /// Takes the next frame from the host; its length, or `None` if there is none.
    ///
    /// # Errors
    /// Those of the device: one ends the wire.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Gives the host a frame; `false` if it did not take it, which counts as a loss.
    ///
    /// # Errors
    /// Those of the device: one ends the wire.
    fn try_write(&self, frame: &[u8]) -> io::Result<bool>;
}

impl Device for Tap {
    #[inline]
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Self::try_read(self, buffer)
    }

    #[inline]
    fn try_write(&self, frame: &[u8]) -> io::Result<bool> {
        match Self::try_write(self, frame) {
            // The device is down: a cable that is plugged in at one end.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(false),
            other => other,
        }
    }
}
