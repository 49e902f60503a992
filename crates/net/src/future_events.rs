//! The future event list of a network of few hosts: the soonest events apart from the others.
//!
//! A network of two hosts has a handful of events pending: one for each processor, one for the wire, a few timers.
//! A list of so few, sorted, costs less than any queue for many. What does not fit goes to a [`Schedule`], and all
//! that is in the list comes before all that is there. Order is that of the schedule alone: by time, and those of one
//! instant as they were given.

use wiretwin_engine::Schedule;
use wiretwin_units::SimTime;

/// The low 24 bits of how often something has changed, such as the work on a core: an event that is stale by a multiple of
/// as many changes would pass for current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch([u8; 3]);

impl Epoch {
    pub(crate) const fn of(changes: u32) -> Self {
        let [first, second, third, _] = changes.to_le_bytes();
        Self([first, second, third])
    }
}

/// So many stand apart.
const FEW: usize = 16;

/// Events with their times, and the clock.
pub(crate) struct FutureEvents<E = u64> {
    now: SimTime,
    /// The last one first.
    soon: Vec<(SimTime, E)>,
    schedule: Schedule<E>,
    /// The time of the first in the schedule, before which all in the list are due.
    far: SimTime,
    given: u64,
}

impl<E: Copy> FutureEvents<E> {
    pub(crate) fn new() -> Self {
        Self {
            now: SimTime::ZERO,
            soon: Vec::with_capacity(FEW + 1),
            schedule: Schedule::new(),
            far: SimTime::MAX,
            given: 0,
        }
    }

    /// The clock.
    pub(crate) const fn now(&self) -> SimTime {
        self.now
    }

    /// How many events are to come.
    pub(crate) const fn pending(&self) -> usize {
        self.soon.len() + self.schedule.pending()
    }

    /// How many there ever were.
    pub(crate) const fn given(&self) -> u64 {
        self.given
    }

    /// When the next event is due.
    pub(crate) fn next_time(&self) -> Option<SimTime> {
        match self.soon.last() {
            Some(&(time, _)) => Some(time),
            None => (self.schedule.pending() > 0).then_some(self.far),
        }
    }

    /// All that is to come, in no order that counts; `None` where it is more than a few.
    pub(crate) fn few(&self) -> Option<impl Iterator<Item = (SimTime, E)> + '_> {
        (self.schedule.pending() == 0).then(|| self.soon.iter().copied())
    }

    /// Another event, at the present or in the future.
    pub(crate) fn at(&mut self, time: SimTime, what: E) {
        debug_assert!(time >= self.now, "{time} has passed: the clock is at {}", self.now);
        self.given += 1;
        if time >= self.far {
            return self.put_far(time, what);
        }
        if self.soon.len() >= FEW {
            let last = self.soon[0].0;
            if last <= time {
                if last == time {
                    self.make_last_far();
                }
                return self.put_far(time, what);
            }
            self.make_last_far();
        }
        self.soon.push((time, what));
        let mut place = self.soon.len() - 1;
        while place > 0 && self.soon[place - 1].0 <= time {
            self.soon[place] = self.soon[place - 1];
            place -= 1;
        }
        self.soon[place] = (time, what);
    }

    /// The last instant of the list goes to the schedule whole: nothing in the list is ever due when something there is.
    fn make_last_far(&mut self) {
        let last = self.soon[0].0;
        let count = self.soon.iter().take_while(|(time, _)| *time == last).count();
        for place in (0..count).rev() {
            self.put_far(last, self.soon[place].1);
        }
        self.soon.drain(..count);
    }

    fn put_far(&mut self, time: SimTime, what: E) {
        let scheduled = self.schedule.at(time, what);
        debug_assert!(scheduled.is_ok(), "its clock is never ahead");
        self.far = self.far.min(time);
    }

    /// The next event, with the clock at its time.
    pub(crate) fn next(&mut self) -> Option<E> {
        let (time, what) = match self.soon.pop() {
            Some(event) => event,
            None => {
                let event = self.schedule.next()?;
                self.far = self.schedule.next_time().unwrap_or(SimTime::MAX);
                (event.time, event.what)
            }
        };
        self.now = time;
        Some(what)
    }

    /// Moves the clock if no event is due until then, that instant included: as if one had been given, and taken.
    pub(crate) fn pass(&mut self, time: SimTime) -> bool {
        if self.next_time().is_some_and(|due| due <= time) {
            return false;
        }
        self.now = time;
        self.given += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_engine::Stream;

    use super::*;

    #[test]
    fn it_gives_what_a_schedule_alone_gives() {
        // Times that often meet, few and many pending, and what is given while others are taken.
        for (seed, spread, most) in [(1, 3, 8), (2, 40, 40), (3, 1_000, 300), (4, 5, 300), (5, 1, 20)] {
            let mut chance = Stream::derive(seed, "future");
            let (mut future, mut schedule) = (FutureEvents::new(), Schedule::new());
            for number in 0..20_000 {
                if (future.pending() as u64) < chance.below(most) {
                    let time = SimTime::from_ps(schedule.now().as_ps() + chance.below(spread));
                    future.at(time, number);
                    schedule.at(time, number).expect("it is not in the past");
                } else {
                    assert_eq!(future.next_time(), schedule.next_time());
                    let event = schedule.next();
                    assert_eq!(future.next(), event.map(|event| event.what), "of seed {seed}");
                    assert_eq!(future.now(), schedule.now());
                }
                assert!(future.soon.len() <= FEW, "the list stays short, whatever meets");
                assert_eq!(future.pending(), schedule.pending());
                assert_eq!(future.given(), schedule.scheduled());
            }
        }
    }

    #[test]
    fn the_clock_passes_to_where_nothing_is_due() {
        let mut future = FutureEvents::new();
        future.at(SimTime::from_ps(10), 7);
        assert!(future.pass(SimTime::from_ps(9)));
        assert_eq!((future.now(), future.given()), (SimTime::from_ps(9), 2));
        assert!(!future.pass(SimTime::from_ps(10)), "what is due at that instant was given first");
        assert_eq!(future.next(), Some(7));
        assert!(future.pass(SimTime::from_ps(10)));
    }
}
