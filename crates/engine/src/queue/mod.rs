//! The event queue: a wheel of wheels for what is far, a sorted run and a heap for what is near.
//!
//! While few events are pending all of them are near: one small heap beats any wheel. When the heap grows beyond
//! that, the later half goes to the wheel, and when the wheel is empty again everything is near once more.
//!
//! Far events lie in the [`Wheel`], in chunks from an [`Arena`]. When nothing near is left and the
//! next event is asked for, the wheel's earliest slot is opened: a slot of few events is sorted into
//! the *run*; one of many is spread over the levels below first, unless all are of one instant: then
//! they become the *lane*, which needs no sorting. An event scheduled into the time that the run
//! covers goes to a *heap*; should that grow, as after a slot of few events that lie far apart
//! was opened, the later half of all that is near goes back to the wheel. So a push and a pop cost a
//! bounded number of moves and the sorting of a short run, whatever the distribution of times.
//!
//! After the hierarchical wheels of Varghese and Lauck (1987), scheme 7, opened lazily as the ladder
//! queue of Tang, Goh and Thng (2005) opens its rungs, but with fixed digits in place of rungs sized
//! by what they hold: no estimate that can be wrong, and no more than eleven levels.

mod arena;
mod heap;
mod wheel;

use alloc::vec::Vec;

use wiretwin_units::SimTime;

use self::arena::{Arena, Lane};
use self::heap::Heap;
use self::wheel::Wheel;
use crate::event::Event;

/// A slot of at most so many events is sorted rather than spread.
const RUN_EVENTS: u64 = 20;

/// A heap of more than so many events makes the later half of what is near go back to the wheel.
const HEAP_EVENTS: usize = 96;

/// A priority queue of [`Event`]s by (time, sequence).
///
/// The queue gives out the sequence numbers, so ties leave in the order in which they came. It is
/// fast where times are pushed at or after the last one popped, as a simulation does, and correct
/// for any.
///
/// Cancelling is the client's business: an event cannot be taken out, but a slot and its generation
/// in [`Event::what`] let the client see, when it comes up, that it no longer matters.
#[derive(Clone)]
pub struct EventQueue<E = u64> {
    next_seq: u64,
    /// How many events have left. Not the number pending: a push would then change two neighbouring
    /// numbers of which a pop has just written one, and wait for that store.
    left: u64,
    moves: u64,
    /// The time of the event popped last, in ps; never after `near_last`.
    now: u64,
    /// Events up to this time, in ps, are near; those after it are in the wheel. The end of time where the wheel is
    /// empty.
    near_last: u64,
    /// Near events, the earliest first; those before `run_next` are gone.
    run: Vec<Event<E>>,
    run_next: usize,
    /// Near events that came after the run was sorted.
    heap: Heap<E>,
    /// The heap's length at which some of it goes back to the wheel.
    heap_limit: usize,
    /// Near events of the instant `lane_time`, in their order.
    lane: Lane,
    lane_time: u64,
    wheel: Wheel,
    /// The time of the wheel's earliest event, in ps; 0 where it has not been looked for, which no
    /// event of the wheel has.
    far_first: u64,
    arena: Arena<E>,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue. What happens is of at most 8 bytes, which is checked when a client is compiled.
    pub fn new() -> Self {
        const { assert!(size_of::<Event<E>>() == 24, "an event is 24 bytes") };
        Self {
            next_seq: 0,
            left: 0,
            moves: 0,
            now: 0,
            near_last: u64::MAX,
            run: Vec::new(),
            run_next: 0,
            heap: Heap::new(),
            heap_limit: HEAP_EVENTS,
            lane: Lane::EMPTY,
            lane_time: 0,
            wheel: Wheel::new(),
            far_first: 0,
            arena: Arena::new(),
        }
    }

    /// How many events are pending.
    pub const fn len(&self) -> usize {
        (self.next_seq - self.left) as usize
    }

    /// Whether none is.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events were ever pushed, which is the next sequence number.
    pub const fn pushed(&self) -> u64 {
        self.next_seq
    }

    /// How often events were moved between being pushed and popped, a passage through the heap
    /// counting as its depth: work, told without a clock.
    ///
    /// Bounded whatever the distribution of times: an event goes down at most eleven levels, and
    /// what is sent back has been paid for by as many pushes.
    pub const fn moves(&self) -> u64 {
        self.moves
    }

    /// Bytes that the queue has allocated.
    pub fn resident_bytes(&self) -> usize {
        self.arena.resident_bytes()
            + size_of::<Self>()
            + (self.run.capacity() + self.heap.capacity()) * size_of::<Event<E>>()
            + self.wheel.resident_bytes()
    }

    /// Adds an event and returns its sequence number.
    #[inline]
    pub fn push(&mut self, time: SimTime, what: E) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let event = Event { time, seq, what };
        if time.as_ps() > self.near_last {
            if time.as_ps() < self.far_first {
                self.far_first = time.as_ps();
            }
            self.wheel.insert(&mut self.arena, event);
        } else {
            self.push_near(event);
        }
        seq
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event<E>> {
        self.pop_through(SimTime::MAX)
    }

    /// Takes the earliest event if its time is not after `last`.
    ///
    /// Where it is after, nothing changes: events pushed before it cost what they would have.
    #[inline]
    pub fn pop_through(&mut self, last: SimTime) -> Option<Event<E>> {
        let is_near = self.run_next < self.run.len() || !self.heap.is_empty() || !self.lane.is_empty();
        if !is_near && !self.open_through(last) {
            return None;
        }
        let run = self.run.get(self.run_next).map_or(u128::MAX, Event::key);
        let heap = self.heap.first().map_or(u128::MAX, Event::key);
        if let Some(&event) = self.lane.first(&self.arena).filter(|event| event.key() < run.min(heap)) {
            if event.time > last {
                return None;
            }
            self.lane.drop_first(&mut self.arena);
            return Some(self.popped(event));
        }
        if run < heap {
            let event = self.run[self.run_next];
            if event.time > last {
                return None;
            }
            self.run_next += 1;
            return Some(self.popped(event));
        }
        if self.heap.first()?.time > last {
            return None;
        }
        let event = self.heap.pop()?;
        Some(self.popped(event))
    }

    /// The earliest event, which stays. Those of the wheel's earliest slot are near from then on, so that what is
    /// pushed before them goes through the heap.
    pub fn first(&mut self) -> Option<Event<E>> {
        let is_near = self.run_next < self.run.len() || !self.heap.is_empty() || !self.lane.is_empty();
        if !is_near && !self.open() {
            return None;
        }
        let run = self.run.get(self.run_next).copied();
        let heap = self.heap.first().copied();
        let lane = self.lane.first(&self.arena).copied();
        [run, heap, lane].into_iter().flatten().min_by_key(Event::key)
    }

    /// The time of the earliest event, found once and then remembered.
    pub fn next_time(&mut self) -> Option<SimTime> {
        let run = self.run.get(self.run_next).map(|event| event.time);
        let heap = self.heap.first().map(|event| event.time);
        let lane = self.lane.first(&self.arena).map(|event| event.time);
        let near = [run, heap, lane].into_iter().flatten().min();
        near.or_else(|| self.find_far_first().map(SimTime::from_ps))
    }

    /// Books an event that has been taken from the near structures.
    #[inline]
    fn popped(&mut self, event: Event<E>) -> Event<E> {
        self.left += 1;
        self.now = event.time.as_ps();
        event
    }

    /// Adds an event whose time is not after `near_last`.
    #[inline(never)]
    fn push_near(&mut self, event: Event<E>) {
        let time = event.time.as_ps();
        if self.lane.is_empty() && time == self.now {
            self.lane_time = time;
        }
        if time == self.lane_time && (time == self.now || !self.lane.is_empty()) {
            // Later in sequence than all that are there, so the lane stays in order.
            self.lane.push(&mut self.arena, event);
            return;
        }
        self.heap.push(event);
        self.moves += u64::from(self.heap.len().ilog2()) + 1;
        if self.heap.len() > self.heap_limit {
            self.send_back();
        }
    }

    /// Moves the later half of the run and the heap to the wheel.
    ///
    /// What is not after the last popped time or the lane's, or lies before the wheel's base, stays.
    #[cold]
    #[inline(never)]
    fn send_back(&mut self) {
        self.run.drain(..self.run_next);
        self.run_next = 0;
        self.run.extend(self.heap.drain());
        self.run.sort_unstable_by_key(Event::key);
        self.moves += self.run.len() as u64;

        let mut done = self.now;
        if !self.lane.is_empty() {
            done = done.max(self.lane_time);
        }
        let stay = match done.checked_add(1) {
            Some(first) => {
                let middle = self.run[self.run.len() / 2].time.as_ps();
                let from = middle.max(self.wheel.base()).max(first);
                self.run.partition_point(|event| event.time.as_ps() < from)
            }
            None => self.run.len(),
        };
        if stay == self.run.len() {
            // A tie, or times before the base: the heap holds them as well as anything.
            self.heap_limit = 2 * stay;
            self.run.drain(RUN_EVENTS as usize..).for_each(|event| self.heap.push(event));
            return;
        }
        // Not zero, for it is after `done`; and earlier than all that is in the wheel.
        self.far_first = self.run[stay].time.as_ps();
        self.near_last = self.far_first - 1;
        for event in self.run.drain(stay..) {
            self.wheel.insert(&mut self.arena, event);
        }
        self.heap_limit = HEAP_EVENTS;
    }

    /// The time of the wheel's earliest event, in ps.
    ///
    /// Looking reads one slot, and only once until that slot is opened, which reads it as well.
    fn find_far_first(&mut self) -> Option<u64> {
        if self.far_first == 0 {
            self.far_first = self.wheel.first_time(&self.arena)?;
        }
        Some(self.far_first)
    }

    /// As [`EventQueue::open`], but only where the wheel's earliest event is not after `last`: so no
    /// event is made near before the clock reaches it.
    #[inline(never)]
    fn open_through(&mut self, last: SimTime) -> bool {
        if last < SimTime::MAX && self.find_far_first().is_none_or(|first| first > last.as_ps()) {
            return false;
        }
        self.open()
    }

    /// Makes the earliest events of the wheel near; false where it has none.
    fn open(&mut self) -> bool {
        self.far_first = 0;
        loop {
            let Some(mut chain) = self.wheel.take_first() else {
                return false;
            };
            let count = chain.len();
            if count <= RUN_EVENTS {
                self.run.clear();
                self.run_next = 0;
                while let Some((chunk, count)) = self.arena.detach(&mut chain) {
                    self.run.extend_from_slice(&self.arena.events(chunk)[..count]);
                    self.arena.release(chunk);
                }
                // Ties lie in their order in the slot, and a stable sort keeps it.
                self.run.sort_by_key(|event| event.time);
                self.moves += self.run.len() as u64;
                let last = self.run.last().map_or(self.near_last, |event| event.time.as_ps());
                self.near_last = if self.wheel.is_empty() { u64::MAX } else { last };
                self.heap_limit = HEAP_EVENTS;
                return true;
            }
            let likeness = self.arena.likeness(&chain);
            if likeness.differing == 0 {
                self.lane = Lane::from_chain(chain);
                self.lane_time = likeness.first;
                self.near_last = if self.wheel.is_empty() { u64::MAX } else { likeness.first };
                return true;
            }
            self.moves += count;
            self.wheel.spread(&mut self.arena, chain, likeness);
        }
    }
}
