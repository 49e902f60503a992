//! What a live layer must offer under [`crate::Pair`]: bytes, in order, to one peer.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::rendezvous::timespec;

/// Why a transfer ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has closed its end or has died.
    PeerGone,
    /// The limit on a wait has passed.
    Limit,
    /// The transport rejected, with its reason.
    Refused(String),
}

/// How a rank waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Sleeps in the kernel until there is something to do.
    Block,
    /// Asks again and again, holding its core.
    Spin,
    /// Asks again and again, giving way to other processes on its core.
    Yield,
}

impl Wait {
    /// The name used in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Spin => "spin",
            Self::Yield => "yield",
        }
    }
}

/// One peer's end of a live connection.
///
/// A stream of bytes carries no message boundaries, so both ends must agree on sizes; a layer with
/// boundaries (datagrams, say) reports a disagreement as [`Failure::Refused`].
pub trait Stream: AsFd {
    /// Sends all of `message`, waiting as the layer was told to.
    ///
    /// # Errors
    /// Any [`Failure`]; the connection is then of no further use, except after
    /// [`Failure::Limit`] on a layer that may lose messages.
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure>;

    /// Fills `buffer`, waiting as the layer was told to.
    ///
    /// # Errors
    /// Those of [`Stream::send_all`].
    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure>;

    /// Sends what can be sent at once, which for a message of no bytes is that message; the number
    /// of bytes, `None` if nothing can be sent now.
    ///
    /// # Errors
    /// [`Failure::PeerGone`] or [`Failure::Refused`].
    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure>;

    /// Takes what is here already; the number of bytes, `None` if nothing is.
    ///
    /// # Errors
    /// [`Failure::PeerGone`] or [`Failure::Refused`].
    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure>;

    /// How a receive waits.
    fn wait(&self) -> Wait;

    /// Whether the peer has gone without [`Stream::try_recv`] being able to tell. What it sent
    /// before may still be there. Costs a system call; looked at about once a millisecond.
    fn closed(&self) -> bool;

    /// Enters the layer, looks for something to do, and leaves.
    ///
    /// # Errors
    /// [`Failure::PeerGone`] or [`Failure::Refused`].
    fn move_nothing(&mut self) -> Result<(), Failure>;

    /// The longest any wait may last.
    fn limit(&self) -> Duration;

    /// [`Stream::send_all`] for messages about the measurement itself, which must not be lost.
    ///
    /// # Errors
    /// Any [`Failure`].
    fn send_control(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.send_all(message)
    }

    /// [`Stream::recv_exact`] for what [`Stream::send_control`] sends.
    ///
    /// # Errors
    /// Any [`Failure`].
    fn recv_control(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.recv_exact(buffer)
    }
}

/// Turns of a yielding wait before it gives way for the first time.
const PATIENCE: u32 = 256;
/// The slice of a wait in the kernel between two looks at the limit and at the peer.
const SLICE: Duration = Duration::from_millis(10);

/// What a rank that waits finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Perhaps something has come: try again.
    Perhaps,
    /// The same, and it is time to look whether peers have gone.
    Look,
}

/// Waits a little for one of `fds` to be ready, as `wait` says.
#[inline]
pub(crate) fn pause(wait: Wait, fds: &mut [PollFd<'_>], spinner: &mut Spinner) -> Result<Waited, Failure> {
    match wait {
        Wait::Spin => std::hint::spin_loop(),
        Wait::Yield if spinner.turns() < PATIENCE => std::hint::spin_loop(),
        Wait::Yield => rustix::thread::sched_yield(),
        Wait::Block => {
            return match poll(fds, Some(&timespec(SLICE))) {
                Ok(0) => spinner.check().map(|_| Waited::Look),
                Ok(_) | Err(Errno::INTR) => Ok(Waited::Perhaps),
                Err(error) => Err(Failure::Refused(io::Error::from(error).to_string())),
            };
        }
    }
    Ok(if spinner.turn()? { Waited::Look } else { Waited::Perhaps })
}

/// The events to wait for in the kernel.
pub(crate) fn events(to_send: bool) -> PollFlags {
    if to_send { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
}

/// Bounds a spinning wait without reading the clock on the fast path: the clock is read once every
/// `period` turns, for the first time after the first `period` turns.
#[derive(Debug)]
pub struct Spinner {
    turns: u32,
    period: u32,
    limit: Duration,
    since: Option<Instant>,
}

impl Spinner {
    /// A wait of at most `limit`, checked every `period` turns (rounded up to a power of two).
    pub fn new(limit: Duration, period: u32) -> Self {
        Self { turns: 0, period: period.next_power_of_two(), limit, since: None }
    }

    /// One turn. True when it is time for a slow check of something else, such as whether the peer
    /// still lives.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    #[inline]
    pub fn turn(&mut self) -> Result<bool, Failure> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns & (self.period - 1) == 0 { self.check() } else { Ok(false) }
    }

    /// How many turns have been made.
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// Starts counting anew, after progress.
    #[inline]
    pub const fn reset(&mut self) {
        self.turns = 0;
        self.since = None;
    }

    /// Compares the time waited with the limit.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    #[cold]
    pub fn check(&mut self) -> Result<bool, Failure> {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= self.limit { Err(Failure::Limit) } else { Ok(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinner_ends_at_its_limit_and_not_before_its_first_period() {
        let mut spinner = Spinner::new(Duration::ZERO, 8);
        for _ in 0..7 {
            assert_eq!(spinner.turn(), Ok(false));
        }
        assert_eq!(spinner.turn(), Err(Failure::Limit));
        let mut patient = Spinner::new(Duration::from_secs(3600), 8);
        assert_eq!((0..80).filter(|_| patient.turn() == Ok(true)).count(), 10);
        patient.reset();
        assert_eq!(patient.turns(), 0);
    }
}
