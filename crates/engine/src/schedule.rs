//! The virtual clock and what is scheduled on it.

use core::fmt;

use wiretwin_units::{SimTime, Span};

use crate::event::{Event, EventSink};
use crate::queue::EventQueue;

/// Why an event was not scheduled, or the clock not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// The instant has passed.
    Past {
        /// The instant asked for.
        time: SimTime,
        /// The clock.
        now: SimTime,
    },
    /// The instant lies beyond [`SimTime::MAX`].
    BeyondTheEnd {
        /// The delay asked for.
        delay: Span,
        /// The clock.
        now: SimTime,
    },
    /// An event is due before the instant to which the clock was to move.
    EventDue {
        /// The instant asked for.
        time: SimTime,
        /// When the earliest event is due.
        due: SimTime,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Past { time, now } => write!(f, "{time} has passed: the clock is at {now}"),
            Self::BeyondTheEnd { delay, now } => {
                write!(f, "{delay} after {now} is beyond {}, the last instant there is", SimTime::MAX)
            }
            Self::EventDue { time, due } => {
                write!(f, "the clock does not move to {time} past an event due at {due}")
            }
        }
    }
}

impl core::error::Error for ScheduleError {}

/// A virtual clock with the events that are to come.
///
/// The clock moves only by [`Schedule::next`] and its kin, never back. The driver's loop is: run what
/// the last event made ready until nothing is, then take the next event.
///
/// ```
/// use wiretwin_engine::Schedule;
/// use wiretwin_units::Span;
///
/// let mut schedule = Schedule::new();
/// schedule.after(Span::from_us(3), 7)?;
/// schedule.after(Span::from_us(1), 8)?;
/// assert_eq!(schedule.next().map(|event| event.what), Some(8));
/// assert_eq!(schedule.now().to_string(), "1 us");
/// # Ok::<(), wiretwin_engine::ScheduleError>(())
/// ```
#[derive(Clone)]
pub struct Schedule<E = u64> {
    now: SimTime,
    queue: EventQueue<E>,
}

impl<E: Copy> Default for Schedule<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventSink<E> for Schedule<E> {
    #[inline]
    fn put(&mut self, time: SimTime, what: E) {
        debug_assert!(time >= self.now, "{time} has passed: the clock is at {}", self.now);
        self.queue.push(time, what);
    }
}

impl<E: Copy> Schedule<E> {
    /// A clock at the start of the run, with nothing to come.
    pub fn new() -> Self {
        Self { now: SimTime::ZERO, queue: EventQueue::new() }
    }

    /// The clock.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// How many events are to come.
    pub const fn pending(&self) -> usize {
        self.queue.len()
    }

    /// How many events were ever scheduled.
    pub const fn scheduled(&self) -> u64 {
        self.queue.pushed()
    }

    /// Bytes allocated for events.
    pub fn resident_bytes(&self) -> usize {
        self.queue.resident_bytes()
    }

    /// When the next event is due.
    pub fn next_time(&mut self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// Schedules an event at `time` and returns its sequence number.
    ///
    /// # Errors
    /// [`ScheduleError::Past`] where `time` is before the clock.
    pub fn at(&mut self, time: SimTime, what: E) -> Result<u64, ScheduleError> {
        if time < self.now {
            return Err(ScheduleError::Past { time, now: self.now });
        }
        Ok(self.queue.push(time, what))
    }

    /// Schedules an event `delay` from now and returns its sequence number.
    ///
    /// # Errors
    /// [`ScheduleError::BeyondTheEnd`].
    pub fn after(&mut self, delay: Span, what: E) -> Result<u64, ScheduleError> {
        let time = self.now.checked_add(delay).ok_or(ScheduleError::BeyondTheEnd { delay, now: self.now })?;
        Ok(self.queue.push(time, what))
    }

    /// Takes the next event and moves the clock to it.
    #[allow(clippy::should_implement_trait)] // an iterator would hold the schedule that its events change
    pub fn next(&mut self) -> Option<Event<E>> {
        self.next_through(SimTime::MAX)
    }

    /// Takes the next event if it is due at `last` or before, and moves the clock to it.
    ///
    /// Where it is not, the clock stays; [`Schedule::advance`] moves it on.
    #[inline]
    pub fn next_through(&mut self, last: SimTime) -> Option<Event<E>> {
        let event = self.queue.pop_through(last)?;
        self.now = event.time;
        Some(event)
    }

    /// Moves the clock to `time` although no event is due there.
    ///
    /// # Errors
    /// [`ScheduleError::Past`] where that would be back, [`ScheduleError::EventDue`] where an event
    /// lies between.
    pub fn advance(&mut self, time: SimTime) -> Result<(), ScheduleError> {
        if time < self.now {
            return Err(ScheduleError::Past { time, now: self.now });
        }
        if let Some(due) = self.queue.next_time().filter(|&due| due < time) {
            return Err(ScheduleError::EventDue { time, due });
        }
        self.now = time;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ties_come_in_the_order_in_which_they_were_scheduled() {
        let mut schedule = Schedule::new();
        for index in 0..100 {
            schedule.after(Span::from_ns(5), index).unwrap();
        }
        for index in 0..100 {
            assert_eq!(schedule.next().map(|event| event.what), Some(index));
        }
        assert_eq!(schedule.next(), None);
        assert_eq!(schedule.now(), SimTime::from_ps(5_000));
    }

    #[test]
    fn an_event_scheduled_for_now_comes_after_those_already_due_now() {
        let mut schedule = Schedule::new();
        schedule.after(Span::from_ps(9), 0).unwrap();
        schedule.after(Span::from_ps(9), 1).unwrap();
        assert_eq!(schedule.next().map(|event| event.what), Some(0));
        schedule.after(Span::ZERO, 2).unwrap();
        assert_eq!(schedule.next().map(|event| event.what), Some(1));
        assert_eq!(schedule.next().map(|event| event.what), Some(2));
    }

    #[test]
    fn nothing_is_scheduled_in_the_past_or_after_the_end() {
        let mut schedule = Schedule::new();
        schedule.after(Span::from_us(2), 0).unwrap();
        schedule.next();
        let error = schedule.at(SimTime::from_ps(1), 1).unwrap_err();
        assert_eq!(error.to_string(), "1 ps has passed: the clock is at 2 us");
        let error = schedule.after(Span::MAX, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "18446744.073709551615 s after 2 us is beyond 18446744.073709551615 s, the last instant there is"
        );
        assert_eq!(schedule.pending(), 0);
    }

    #[test]
    fn the_clock_moves_to_a_horizon_but_not_past_an_event() {
        let mut schedule = Schedule::new();
        schedule.after(Span::from_us(2), 0).unwrap();
        assert_eq!(schedule.next_through(SimTime::from_ps(1_999_999)), None);
        assert_eq!(schedule.now(), SimTime::ZERO);
        assert!(matches!(schedule.advance(SimTime::from_ps(2_000_001)), Err(ScheduleError::EventDue { .. })));
        schedule.advance(SimTime::from_ps(2_000_000)).unwrap();
        assert!(matches!(schedule.advance(SimTime::ZERO), Err(ScheduleError::Past { .. })));
        assert_eq!(schedule.next_time(), Some(SimTime::from_ps(2_000_000)));
    }
}
