//! Timers, and the grids that BSD's count on.

use wiretwin_units::{SimTime, Span};

use super::config::{Clock, Config};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// An acknowledgment is owed.
    DelayedAck,
    /// An acknowledgment is awaited.
    Retransmit,
    /// A closed window is to be probed.
    Persist,
    /// A silent peer is to be probed; before the connection is open, its establishment ends.
    Keep,
    /// TIME-WAIT, or a wait for the peer's FIN, ends.
    TwoMsl,
}

impl Timer {
    pub(super) const ALL: [Self; 5] =
        [Self::DelayedAck, Self::Retransmit, Self::Persist, Self::Keep, Self::TwoMsl];
}

/// The timers of a connection: each runs or does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// By [`Timer`]; [`SimTime::MAX`] where it does not run.
    deadlines: [SimTime; 5],
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self { deadlines: [SimTime::MAX; 5] }
    }

    pub(super) fn set(&mut self, timer: Timer, deadline: SimTime) {
        self.deadlines[timer as usize] = deadline;
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = SimTime::MAX;
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    pub(super) fn runs(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize] != SimTime::MAX
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<SimTime> {
        let [a, b, c, d, e] = self.deadlines;
        let next = a.min(b).min(c.min(d)).min(e);
        (next != SimTime::MAX).then_some(next)
    }

    /// Stops a timer that has run out by `now`; false where it has not.
    pub(super) fn take_expired(&mut self, timer: Timer, now: SimTime) -> bool {
        let expired = self.runs(timer) && self.deadlines[timer as usize] <= now;
        if expired {
            self.stop(timer);
        }
        expired
    }
}

/// Where the ticks of a host's grids lie: a tick is where time plus the phase is a multiple of the
/// period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Of the slow grid; below its period.
    pub slow: Span,
    /// Of the fast grid; below its period.
    pub fast: Span,
}

/// The instant `count` ticks after `now`, on the grid of this period and phase.
pub(super) fn tick_after(now: SimTime, count: u64, period: Span, phase: Span) -> SimTime {
    let (period, phase) = (period.as_ps(), phase.as_ps());
    let ticks = (now.as_ps().saturating_add(phase) / period).saturating_add(count);
    SimTime::from_ps(ticks.saturating_mul(period).saturating_sub(phase))
}

/// Ticks of the grid up to `now`.
pub(super) fn ticks_at(now: SimTime, period: Span, phase: Span) -> u64 {
    now.as_ps().saturating_add(phase.as_ps()) / period.as_ps()
}

impl Config {
    /// When a timer of this span that is set now runs out.
    pub(super) fn deadline(&self, now: SimTime, span: Span) -> SimTime {
        match self.clock {
            Clock::Fine => now.saturating_add(span),
            Clock::Ticks { slow, .. } => {
                let count = (span.as_ps() / slow.as_ps()).max(1);
                tick_after(now, count, slow, self.phases.slow)
            }
        }
    }

    /// The time from `since` to `now`, as a timer of this clock would count it.
    pub(super) fn elapsed(&self, since: SimTime, now: SimTime) -> Span {
        match self.clock {
            Clock::Fine => now.saturating_since(since),
            Clock::Ticks { slow, .. } => {
                let ticks = ticks_at(now, slow, self.phases.slow) - ticks_at(since, slow, self.phases.slow);
                Span::from_ps(ticks.saturating_mul(slow.as_ps()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> SimTime {
        SimTime::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_timer_of_n_ticks_lasts_between_n_less_one_and_n_periods() {
        let (period, phase) = (Span::from_ms(500), Span::from_ms(100));
        // Ticks at 400, 900, 1400, ...
        assert_eq!(tick_after(ms(0), 2, period, phase), ms(900));
        assert_eq!(tick_after(ms(399), 2, period, phase), ms(900));
        assert_eq!(tick_after(ms(400), 2, period, phase), ms(1_400), "a tick that is now has been");
        assert_eq!(ticks_at(ms(400), period, phase), 1);
    }

    #[test]
    fn a_fine_clock_counts_to_the_instant() {
        let (fine, ticks) = (Config::linux_modern(), Config::bsd43_reno());
        assert_eq!(fine.deadline(ms(1), Span::from_ms(300)), ms(301));
        assert_eq!(ticks.deadline(ms(1), Span::from_ms(300)), ms(500), "one tick at least");
        assert_eq!(ticks.deadline(ms(1), Span::from_s(6)), ms(6_000));
        assert_eq!(ticks.elapsed(ms(499), ms(501)), Span::from_ms(500));
        assert_eq!(fine.elapsed(ms(499), ms(501)), Span::from_ms(2));
    }

    #[test]
    fn the_earliest_timer_is_next_and_each_expires_once() {
        let mut timers = Timers::new();
        assert_eq!(timers.next(), None);
        timers.set(Timer::Keep, ms(9));
        timers.set(Timer::Retransmit, ms(5));
        assert_eq!(timers.next(), Some(ms(5)));
        assert!(!timers.take_expired(Timer::Retransmit, ms(4)));
        assert!(timers.take_expired(Timer::Retransmit, ms(5)));
        assert!(!timers.take_expired(Timer::Retransmit, ms(5)));
        assert_eq!(timers.next(), Some(ms(9)));
    }
}
