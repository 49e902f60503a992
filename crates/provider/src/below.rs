//! What carries messages below libfabric's interface: the direct transport, or a simulator.

use std::time::Duration;

use wiretwin_host::direct::{Address, Busy, Completion, Endpoint, Outgoing, Receive};
use wiretwin_host::sim::{Rank, with_rank};
use wiretwin_msg::tagged::Pattern;

use crate::settings::{self, Wait};

/// Turns without anything to do before [`Wait::Yield`] gives way.
const PATIENCE: u32 = 64;

/// One of the two.
pub(crate) enum Below {
    Direct(Box<Endpoint>),
    /// This process is a rank whose messages and time are simulated.
    Simulated,
}

/// Calls the same method of either.
macro_rules! of_either {
    ($below:expr, $one:ident => $call:expr) => {
        match $below {
            Below::Direct($one) => $call,
            Below::Simulated => with_rank(|$one| $call).ok().flatten().expect("a rank that was made"),
        }
    };
}

impl Below {
    /// The simulator where the environment names one, else the direct transport; and how a rank waits there.
    pub(crate) fn open() -> Result<(Self, Wait), String> {
        if with_rank(|_| ()).map_err(|error| error.to_string())?.is_some() {
            return Ok((Self::Simulated, Wait::Spin));
        }
        let (options, wait) = settings::read()?;
        let endpoint = Endpoint::open(options).map_err(|error| error.to_string())?;
        Ok((Self::Direct(Box::new(endpoint)), wait))
    }

    pub(crate) fn address(&self) -> Address {
        of_either!(self, one => one.address())
    }

    pub(crate) fn peer(&mut self, address: Address) -> usize {
        of_either!(self, one => one.peer(address))
    }

    /// # Safety
    /// The bytes are left alone until the completion.
    #[inline]
    pub(crate) unsafe fn send(&mut self, peer: usize, message: Outgoing) -> Result<(), Busy> {
        // SAFETY: the caller's promise.
        of_either!(self, one => unsafe { one.send(peer, message) })
    }

    /// # Safety
    /// The buffer is left alone until the completion.
    #[inline]
    pub(crate) unsafe fn receive(&mut self, pattern: Pattern, receive: Receive) {
        // SAFETY: the caller's promise.
        of_either!(self, one => unsafe { one.receive(pattern, receive) });
    }

    /// Looks for a message, after progress.
    pub(crate) fn peek(&mut self, pattern: &Pattern) -> Option<Completion> {
        if let Self::Direct(one) = self {
            one.progress();
        }
        of_either!(self, one => one.peek(pattern))
    }

    /// Looks for a message and takes it, after progress.
    pub(crate) fn claim(&mut self, pattern: &Pattern) -> Option<(usize, Completion)> {
        if let Self::Direct(one) = self {
            one.progress();
        }
        of_either!(self, one => one.claim(pattern))
    }

    /// # Safety
    /// As for [`Below::receive`].
    pub(crate) unsafe fn receive_claimed(&mut self, place: usize, receive: Receive) {
        // SAFETY: the caller's promise.
        of_either!(self, one => unsafe { one.receive_claimed(place, receive) });
    }

    pub(crate) fn discard_claimed(&mut self, place: usize) {
        of_either!(self, one => one.discard_claimed(place));
    }

    pub(crate) fn cancel(&mut self, context: usize) -> bool {
        of_either!(self, one => one.cancel(context))
    }

    #[inline]
    pub(crate) fn completion(&mut self) -> Option<Completion> {
        of_either!(self, one => one.completion())
    }

    /// Makes progress; for long where the rank waits and nobody else wants its core.
    #[inline]
    pub(crate) fn look_on(&mut self, wait: Wait) {
        match self {
            Self::Direct(one) if wait != Wait::Yield => one.look_on(),
            _ => self.progress(),
        }
    }

    #[inline]
    pub(crate) fn progress(&mut self) {
        match self {
            Self::Direct(one) => one.progress(),
            Self::Simulated => {
                if with_rank(Rank::progress) == Ok(Some(true)) {
                    // Without the rank, which the other thread needs.
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Lets others have this rank's core, as it has been told to, where there is nothing to do.
    #[inline]
    pub(crate) fn give_way(&mut self, wait: Wait) {
        let Self::Direct(one) = self else { return };
        match wait {
            Wait::Auto => one.give_way(),
            Wait::Yield if one.idle_turns() > PATIENCE => std::thread::yield_now(),
            Wait::Spin | Wait::Yield => {}
        }
    }

    pub(crate) fn finish(&mut self, limit: Duration) {
        of_either!(self, one => one.finish(limit));
    }
}
