//! The five timers of one end.

use wiretwin_units::SimTime;

/// A timer, in the order in which two that run out together are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Cc,
    NoResponse,
    Poll,
    KeepAlive,
    Idle,
}

impl Timer {
    pub(super) const ALL: [Self; 5] = [Self::Cc, Self::NoResponse, Self::Poll, Self::KeepAlive, Self::Idle];
}

/// Each timer runs or does not.
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

    pub(super) fn runs(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize] != SimTime::MAX
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<SimTime> {
        let [a, b, c, d, e] = self.deadlines;
        let next = a.min(b).min(c.min(d)).min(e);
        (next != SimTime::MAX).then_some(next)
    }

    /// The deadline of each.
    #[cfg(test)]
    pub(super) fn next_each(&self) -> [Option<SimTime>; 5] {
        self.deadlines.map(|at| (at != SimTime::MAX).then_some(at))
    }

    /// Stops and names a timer that has run out by `now`: the earliest.
    pub(super) fn take_expired(&mut self, now: SimTime) -> Option<Timer> {
        let next = self.next().filter(|&next| next <= now)?;
        let timer = Timer::ALL.into_iter().find(|&timer| self.deadlines[timer as usize] == next)?;
        self.stop(timer);
        Some(timer)
    }
}
