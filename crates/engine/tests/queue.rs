//! The event queue against a sorted vector, over arbitrary and over hostile schedules.

use proptest::prelude::*;
use wiretwin_engine::{Event, EventQueue};
use wiretwin_units::SimTime;

/// The oracle: all pending events, sorted at each pop by their key.
#[derive(Default)]
struct SortedVec {
    events: Vec<Event>,
    next_seq: u64,
}

impl SortedVec {
    fn push(&mut self, time: u64, index: u64) {
        let event = Event { time: SimTime::from_ps(time), seq: self.next_seq, index };
        self.next_seq += 1;
        let at = self.events.partition_point(|other| (other.time, other.seq) > (event.time, event.seq));
        self.events.insert(at, event);
    }

    fn next_time(&self) -> Option<SimTime> {
        self.events.last().map(|event| event.time)
    }

    fn pop(&mut self) -> Option<Event> {
        self.events.pop()
    }
}

/// One thing done to a queue.
#[derive(Clone, Debug)]
enum Step {
    /// Push at the time popped last plus this, ending at the last instant there is.
    Push(u64),
    /// Push so many with one increment.
    Burst(u64, u16),
    /// Push at this very time, past or not.
    PushAt(u64),
    Pop,
    PopMany(u16),
    PopThrough(u64),
    Peek,
}

fn increment() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0_u64),
        2 => 0_u64..4,
        4 => 0_u64..1_000,
        2 => Just(2_726_337_u64),
        4 => 0_u64..10_000_000,
        2 => (any::<u64>(), 0_u32..64).prop_map(|(bits, shift)| bits >> shift),
        1 => Just(u64::MAX),
    ]
}

fn step(past: bool) -> impl Strategy<Value = Step> {
    let at = if past { 1 } else { 0 };
    prop_oneof![
        12 => increment().prop_map(Step::Push),
        2 => (increment(), 1_u16..900).prop_map(|(by, count)| Step::Burst(by, count)),
        at => increment().prop_map(Step::PushAt),
        10 => Just(Step::Pop),
        2 => (1_u16..900).prop_map(Step::PopMany),
        2 => increment().prop_map(Step::PopThrough),
        2 => Just(Step::Peek),
    ]
}

fn agrees_with_the_oracle(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut queue = EventQueue::new();
    let mut oracle = SortedVec::default();
    let mut now = 0_u64;
    let mut index = 0;
    let mut push = |queue: &mut EventQueue, oracle: &mut SortedVec, time: u64| {
        index += 7;
        let seq = queue.push(SimTime::from_ps(time), index);
        assert_eq!(seq, oracle.next_seq);
        oracle.push(time, index);
    };
    for step in steps {
        match step {
            Step::Push(by) => push(&mut queue, &mut oracle, now.saturating_add(by)),
            Step::PushAt(time) => push(&mut queue, &mut oracle, time),
            Step::Burst(by, count) => {
                for nth in 0..u64::from(count) {
                    // Half of a burst is one tie, half a staircase.
                    let time = now.saturating_add(by).saturating_add(if nth % 2 == 0 { 0 } else { nth });
                    push(&mut queue, &mut oracle, time);
                }
            }
            Step::Pop | Step::PopMany(_) => {
                let count = if let Step::PopMany(count) = step { count } else { 1 };
                for _ in 0..count {
                    let (popped, expected) = (queue.pop(), oracle.pop());
                    prop_assert_eq!(popped, expected);
                    now = popped.map_or(now, |event| event.time.as_ps());
                }
            }
            Step::PopThrough(by) => {
                let last = SimTime::from_ps(now.saturating_add(by));
                let expected =
                    if oracle.next_time().is_some_and(|time| time <= last) { oracle.pop() } else { None };
                let popped = queue.pop_through(last);
                prop_assert_eq!(popped, expected);
                now = popped.map_or(now, |event| event.time.as_ps());
            }
            Step::Peek => prop_assert_eq!(queue.next_time(), oracle.next_time()),
        }
        prop_assert_eq!(queue.len(), oracle.events.len());
    }
    while let Some(expected) = oracle.pop() {
        prop_assert_eq!(queue.pop(), Some(expected));
    }
    prop_assert_eq!(queue.pop(), None);
    prop_assert!(queue.is_empty());
    Ok(())
}

proptest! {
    #[test]
    fn events_leave_as_from_a_sorted_vector(steps in prop::collection::vec(step(false), 1..120)) {
        agrees_with_the_oracle(steps)?;
    }

    #[test]
    fn events_pushed_into_the_past_leave_as_from_a_sorted_vector(steps in prop::collection::vec(step(true), 1..120)) {
        agrees_with_the_oracle(steps)?;
    }
}
