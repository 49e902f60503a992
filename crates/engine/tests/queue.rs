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
        let event = Event { time: SimTime::from_ps(time), seq: self.next_seq, what: index };
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
    First,
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
        2 => Just(Step::First),
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
            Step::First => prop_assert_eq!(queue.first(), oracle.events.last().copied()),
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

/// Runs a queue with the oracle beside it and returns the moves per event that it took.
struct Watched {
    queue: EventQueue,
    oracle: std::collections::BinaryHeap<std::cmp::Reverse<(u64, u64)>>,
    now: u64,
}

impl Watched {
    fn new() -> Self {
        Self { queue: EventQueue::new(), oracle: std::collections::BinaryHeap::new(), now: 0 }
    }

    fn push(&mut self, time: u64) {
        let seq = self.queue.push(SimTime::from_ps(time), 0);
        self.oracle.push(std::cmp::Reverse((time, seq)));
    }

    fn pop(&mut self) -> u64 {
        let expected = self.oracle.pop().map(|std::cmp::Reverse(key)| key);
        let popped = self.queue.pop().map(|event| (event.time.as_ps(), event.seq));
        assert_eq!(popped, expected);
        self.now = popped.expect("the pattern leaves something to pop").0;
        self.now
    }

    fn drain(mut self) -> f64 {
        while !self.oracle.is_empty() {
            self.pop();
        }
        assert_eq!(self.queue.pop(), None);
        self.queue.moves() as f64 / self.queue.pushed() as f64
    }
}

const MANY: u64 = 100_000;

/// A queue whose near events reach 2^35 ps (34 ms) ahead: of two events in one slot, the first has
/// been popped.
fn with_a_wide_run() -> Watched {
    let mut watched = Watched::new();
    watched.push(1 << 40);
    watched.push((1 << 40) + (1 << 35));
    watched.pop();
    watched
}

/// So many events stay in one heap, each passed through at most nine levels of two children.
const FEW: f64 = 512.0 * 10.0 / MANY as f64;

#[test]
fn events_of_one_instant_are_not_moved_once_they_are_many() {
    let mut watched = Watched::new();
    for _ in 0..MANY {
        watched.push(5_000_000);
    }
    let moves = watched.drain();
    assert!(moves <= FEW, "{moves}");
}

#[test]
fn few_events_stay_in_the_heap_and_many_that_have_become_few_return_to_it() {
    let mut watched = Watched::new();
    let mut time = 0;
    for pending in [300, 5_000, 300] {
        while watched.queue.len() > pending {
            watched.pop();
        }
        while watched.queue.len() < pending {
            time = (time + 7_919_777) % 50_000_000;
            watched.push(watched.now + time);
        }
        for round in 0..20_000 {
            watched.pop();
            watched.push(watched.now + 1 + round * 7_919 % 50_000_000);
        }
    }
    assert!(watched.drain() < 10.0);
}

#[test]
fn events_scheduled_for_now_are_not_moved_at_all() {
    let mut watched = Watched::new();
    watched.push(1_000);
    watched.pop();
    for _ in 0..MANY {
        watched.push(watched.now);
        watched.push(watched.now);
        watched.pop();
    }
    let moves = watched.drain();
    assert!(moves <= 0.01, "{moves}");
}

#[test]
fn an_early_far_event_does_not_make_the_queue_a_heap() {
    let mut watched = with_a_wide_run();
    for nth in 0..MANY {
        watched.push(watched.now + 1 + nth * 7_919 % 1_000_003);
        if nth % 10 == 0 {
            watched.pop();
        }
    }
    let moves = watched.drain();
    assert!(moves <= 6.0, "{moves}");
}

#[test]
fn growing_gaps_and_far_outliers_cost_a_level_each() {
    let mut watched = Watched::new();
    for round in 0..MANY / 64 {
        for bit in 0..64 {
            watched.push(watched.now.saturating_add((1 << bit) + round));
        }
        for _ in 0..32 {
            watched.pop();
        }
    }
    let moves = watched.drain();
    assert!(moves <= 5.0, "{moves}");
}

#[test]
fn bursts_far_apart_cost_a_few_moves() {
    let mut watched = Watched::new();
    for burst in 1..=MANY / 1_000 {
        for nth in 0..1_000 {
            watched.push(burst * 1_000_000_007_000 + nth * 37 % 11);
        }
    }
    let moves = watched.drain();
    assert!(moves <= 5.0, "{moves}");
}

#[test]
fn events_pushed_each_before_the_last_cost_a_few_moves() {
    let mut watched = Watched::new();
    watched.push(0);
    watched.pop();
    for round in 0..10 {
        for nth in 0..MANY / 10 {
            watched.push((round + 1) * 1_000_000_000 - nth * 1_000);
        }
        for _ in 0..MANY / 20 {
            watched.pop();
        }
    }
    let moves = watched.drain();
    assert!(moves <= 7.0, "{moves}");
}

#[test]
fn pushing_just_enough_to_be_sent_back_each_time_stays_bounded() {
    let mut watched = with_a_wide_run();
    for round in 0..MANY / 600 {
        for nth in 0..600 {
            watched.push(watched.now + 1_000_000_000 - nth * 1_000 - round);
        }
        watched.pop();
        watched.pop();
    }
    let moves = watched.drain();
    assert!(moves <= 9.0, "{moves}");
}

#[test]
fn looking_at_a_far_event_does_not_make_near_ones_dear() {
    let mut watched = Watched::new();
    watched.push(0);
    watched.pop();
    for far in 0..50 {
        watched.push(30_000_000_000_000 + far * 1_000_000);
    }
    assert_eq!(watched.queue.next_time(), Some(SimTime::from_ps(30_000_000_000_000)));
    for nth in 0..MANY {
        watched.push(watched.now + 1 + nth * 7_919 % 1_000_003);
        if nth % 10 == 0 {
            watched.pop();
            watched.queue.next_time();
            assert_eq!(watched.queue.pop_through(SimTime::ZERO), None);
        }
    }
    let moves = watched.drain();
    assert!(moves <= 6.0, "{moves}");
}

#[test]
fn storage_grows_by_what_is_pending_and_is_used_again() {
    let mut queue = EventQueue::new();
    let mut state = 1_u64;
    let mut increment = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 44
    };
    for _ in 0..MANY {
        queue.push(SimTime::from_ps(increment()), 0);
    }
    let full = queue.resident_bytes();
    assert!(full as u64 <= MANY * 40, "{full} bytes for {MANY} events");
    for _ in 0..5 * MANY {
        let event = queue.pop().unwrap();
        queue.push(event.time + wiretwin_units::Span::from_ps(increment()), 0);
    }
    let held = queue.resident_bytes();
    assert!(held as u64 <= MANY * 40, "{held} bytes for {MANY} events");
}
