//! Signals as something to wait for, beside whatever else a loop waits for.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// Signals that are read from a descriptor in place of their usual effect, in this thread and those
/// it starts from now on.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// `SIGTERM`
    Terminate,
    /// `SIGINT`
    Interrupt,
    /// `SIGUSR1`
    User,
}

impl Caught {
    /// The signal's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::User => "SIGUSR1",
        }
    }
}

impl Signals {
    /// Catches `SIGTERM`, `SIGINT` and `SIGUSR1`.
    ///
    /// # Errors
    /// Those of `pthread_sigmask(3)` and `signalfd(2)`.
    pub fn catch() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set that the other calls then read; no old set is
        // asked for; -1 makes a new descriptor, which nobody else owns.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let status = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            if status != 0 {
                return Err(io::Error::from_raw_os_error(status));
            }
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The next signal that has come, if any.
    ///
    /// # Errors
    /// Those of `read(2)`.
    pub fn next(&self) -> io::Result<Option<Caught>> {
        // `struct signalfd_siginfo`: 128 bytes, of which the first four are the signal's number.
        let mut info = [0; 128];
        loop {
            match rustix::io::read(&self.fd, &mut info) {
                Ok(_) => {
                    let number = i32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
                    return Ok(Some(match number {
                        libc::SIGTERM => Caught::Terminate,
                        libc::SIGINT => Caught::Interrupt,
                        _ => Caught::User,
                    }));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caught_signal_is_read_and_does_nothing_else() {
        // In a thread of its own: the mask is the thread's.
        std::thread::spawn(|| {
            let signals = Signals::catch().unwrap();
            assert_eq!(signals.next().unwrap(), None);
            // SAFETY: the signals are blocked in this thread, which is where they are sent.
            unsafe {
                libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1);
                libc::pthread_kill(libc::pthread_self(), libc::SIGTERM);
            }
            let mut caught = [signals.next().unwrap().unwrap(), signals.next().unwrap().unwrap()];
            caught.sort_by_key(|signal| signal.name());
            assert_eq!(caught.map(Caught::name), ["SIGTERM", "SIGUSR1"]);
            assert_eq!(signals.next().unwrap(), None);
        })
        .join()
        .unwrap();
    }
}
