//! For drivers that have nothing to do: what wakes them, when they are to look again, and who else wants their core.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use wiretwin_units::{SimTime, Span};

use super::super::ends::Ends;
use super::super::network::Network;
use super::Endpoint;
use crate::rendezvous::timespec;

/// How long a stream that is full may have room before it is seen: nothing comes when it has.
const ROOM: Duration = Duration::from_micros(200);
/// Turns without anything to do before others are let on the core, and from then on between two offers of it: while it
/// counts as free, and where another was seen to want it.
const FREE: [u32; 2] = [512, 64];
const WANTED: [u32; 2] = [32, 8];
/// Offers that nobody took before there is as much patience as at first.
const UNTAKEN: u32 = 1024;
/// The longest sleep of [`Endpoint::give_way`].
const NAP: Duration = Duration::from_millis(1);
/// An offer that takes longer than this was taken.
const TAKEN: Span = Span::from_us(2);
/// Who takes an offer for longer than this has work to do; others wait as well, and offer the core in turn.
const WORKED: Span = Span::from_us(20);
/// After so many offers that others took to work, in one wait, sleeps take the place of offers. In a shorter wait a
/// rank would take longer to be woken than to ask.
const LONG: u32 = 3;
/// Sleeps until the core is offered again.
const NAPS: u32 = 16;
/// The longest turn of a caller that does nothing but ask: one who does more between two has a use for the core.
const ASKING: Span = Span::from_us(2);
/// Turns of one call by such a caller: as long as an answer takes from another host.
const LOOKS: u32 = 128;
/// The longest time from one such call to the next in which nobody has taken the core that the caller offered: an offer takes
/// half of it, and two that are taken, by one that waits too, take longer.
const UNTAKEN_OFFER: Span = Span::from_us(1);
/// How many calls look only once, from one that came long after the call before it.
const FAR: u32 = 64;

/// What is known of those who want this thread's core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Offers of the core until it counts as free; none left where it does.
    left: u32,
    /// Offers of this wait that were taken by others to work, and sleeps until the next.
    worked: u32,
    naps: u32,
    /// The turn of the last offer or sleep, and when that was over.
    turn: u32,
    at: Span,
    /// When a caller of [`Endpoint::look_on`] was last told that there was nothing, and calls that are to have one turn.
    looked_at: Span,
    far: u32,
}

impl Endpoint {
    /// The files that can be read from when something has come, from peers that are reached by datagrams.
    pub fn wakers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let network = self.network.iter().flat_map(Network::wakers);
        network.chain(self.ends.iter().map(Ends::waker))
    }

    /// How long nothing is to be done though nothing comes; none for ever.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        if self.peers.iter().any(|peer| !peer.jobs.is_empty()) {
            return Some(ROOM);
        }
        let first = self.peers.iter().filter_map(|peer| peer.timeout).min()?;
        let left = first.saturating_since(SimTime::ZERO + self.clock.now());
        Some(Duration::from_nanos(left.as_ps().div_ceil(1000)))
    }

    /// Makes progress and looks at everything, whatever it takes: for whoever looks seldom.
    pub fn attend(&mut self) {
        if let Some(network) = &mut self.network {
            network.ask_kernel();
        }
        self.progress();
        self.look_at = SimTime::ZERO;
        self.look_at_clock();
        self.accept();
    }

    /// Sleeps until something comes from another host or is due, so long at most, and attends to it.
    pub fn nap(&mut self, most: Duration) {
        let limit = self.due().map_or(most, |due| due.min(most));
        let mut wakers: Vec<_> =
            self.wakers().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // Whatever ends it early is looked at.
        let _ = poll(&mut wakers, Some(&timespec(limit)));
        drop(wakers);
        self.attend();
    }

    /// Makes progress for whoever waits. A caller that has begun an operation and asks, or has asked just before and was told
    /// that there is nothing, may let others have its core whenever it is told so, for which nobody asks, and which takes
    /// longer than to look; so there are more turns in one call. Not where the last such calls were far from each other:
    /// others had the core between them, or the caller has a use for it.
    #[inline]
    pub fn look_on(&mut self) {
        let has_begun = std::mem::take(&mut self.has_begun);
        self.progress();
        if self.has_completions() {
            return;
        }
        let crowd = &mut self.crowd;
        if !has_begun && self.clock.now() - crowd.looked_at > UNTAKEN_OFFER {
            crowd.far = FAR;
        }
        if crowd.far == 0 && crowd.left == 0 {
            for _ in 1..LOOKS {
                self.progress();
                if self.has_completions() {
                    return;
                }
            }
        }
        let crowd = &mut self.crowd;
        (crowd.far, crowd.looked_at) = (crowd.far.saturating_sub(1), self.clock.now());
    }

    /// Lets others have this thread's core now and then, for whoever has found nothing to do for some turns. Where
    /// others work there for long, and all peers are on other hosts, sleeps for at most a millisecond until something
    /// comes; memory wakes nobody.
    #[inline]
    pub fn give_way(&mut self) {
        let [patience, each] = if self.crowd.left > 0 { WANTED } else { FREE };
        if self.idle >= patience && self.turn.wrapping_sub(self.crowd.turn) >= each {
            self.offer_core();
        }
    }

    #[cold]
    fn offer_core(&mut self) {
        let (begun, turns) = (self.clock.now(), self.turn.wrapping_sub(self.crowd.turn));
        if self.idle < turns {
            // Another wait than at the last offer.
            (self.crowd.worked, self.crowd.naps) = (0, 0);
        } else if begun - self.crowd.at <= ASKING * u64::from(turns) {
            if self.crowd.naps > 0 && self.is_woken() {
                self.crowd.naps -= 1;
                self.nap(NAP);
            } else {
                thread::yield_now();
                let away = self.clock.now() - begun;
                let crowd = &mut self.crowd;
                crowd.left = if away > TAKEN { UNTAKEN } else { crowd.left.saturating_sub(1) };
                if away > WORKED {
                    crowd.worked += 1;
                    crowd.naps = if crowd.worked < LONG { 0 } else { NAPS };
                }
            }
        }
        (self.crowd.turn, self.crowd.at) = (self.turn, self.clock.now());
    }

    /// Whether whatever can go on or come next wakes a sleeper.
    fn is_woken(&self) -> bool {
        let own = self.local.key;
        self.peers.iter().all(|peer| peer.jobs.is_empty() && (!peer.uses_memory || peer.key == own))
    }
}
