//! The event queue: a wheel of wheels for what is far, a sorted run and a heap for what is near.
//!
//! Far events lie in the [`Wheel`], in chunks from an [`Arena`]. When nothing near is left, the
//! wheel's earliest slot is opened: a slot of few events is sorted into the *run*; one of many is
//! spread over the levels below first; one of a single instant becomes the *lane*, which needs no
//! sorting. An event scheduled into the time that the run covers goes to a binary *heap*; should
//! that grow, as after a far event was opened too early, the later half of all that is near goes
//! back to the wheel. So a push and a pop cost a constant number of moves and the sorting of a short
//! run, whatever the distribution of times: there is no pattern that makes them linear.
//!
//! After the hierarchical wheels of Varghese and Lauck (1987), scheme 7, opened lazily as the ladder
//! queue of Tang, Goh and Thng (2005) opens its rungs, but with fixed digits in place of rungs sized
//! by what they hold: no estimate that can be wrong, and no more than eleven levels.

mod arena;
mod wheel;

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use wiretwin_units::SimTime;

use self::arena::{Arena, CHUNK_EVENTS, Lane};
use self::wheel::Wheel;
use crate::event::Event;

/// A slot of at most so many events is sorted rather than spread.
const RUN_EVENTS: u64 = 64;

/// A heap of more than so many events makes the later half of what is near go back to the wheel.
const HEAP_EVENTS: usize = 512;

/// A priority queue of [`Event`]s by (time, sequence).
///
/// The queue gives out the sequence numbers, so ties leave in the order in which they came. It is
/// fast where times are pushed at or after the last one popped, as a simulation does, and correct
/// for any.
///
/// Cancelling is the client's business: an event cannot be taken out, but a slot and its generation
/// in [`Event::index`] let the client see, when it comes up, that it no longer matters.
#[derive(Clone)]
pub struct EventQueue {
    len: usize,
    next_seq: u64,
    /// The time of the event popped last, in ps; never after `near_last`.
    now: u64,
    /// Events up to this time, in ps, are near; those after it are in the wheel.
    near_last: u64,
    /// Near events, the earliest at the end.
    run: Vec<Event>,
    /// Near events that came after the run was sorted.
    heap: BinaryHeap<Late>,
    /// The heap's length at which some of it goes back to the wheel.
    heap_limit: usize,
    /// Near events of the instant `lane_time`, in their order.
    lane: Lane,
    lane_time: u64,
    wheel: Wheel,
    arena: Arena,
    buffer: [Event; CHUNK_EVENTS],
}

/// An event ordered so that a heap's greatest is the earliest.
#[derive(Clone)]
struct Late(Event);

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}

/// Which of the near structures holds the earliest event.
#[derive(Clone, Copy)]
enum Near {
    Run,
    Heap,
    Lane,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl EventQueue {
    /// An empty queue.
    pub fn new() -> Self {
        let nothing = Event { time: SimTime::ZERO, seq: 0, index: 0 };
        Self {
            len: 0,
            next_seq: 0,
            now: 0,
            near_last: 0,
            run: Vec::new(),
            heap: BinaryHeap::new(),
            heap_limit: HEAP_EVENTS,
            lane: Lane::EMPTY,
            lane_time: 0,
            wheel: Wheel::new(),
            arena: Arena::new(),
            buffer: [nothing; CHUNK_EVENTS],
        }
    }

    /// How many events are pending.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many events were ever pushed, which is the next sequence number.
    pub const fn pushed(&self) -> u64 {
        self.next_seq
    }

    /// Bytes that the queue has allocated.
    pub fn resident_bytes(&self) -> usize {
        self.arena.resident_bytes()
            + size_of::<Self>()
            + (self.run.capacity() + self.heap.capacity()) * size_of::<Event>()
            + self.wheel.resident_bytes()
    }

    /// Adds an event and returns its sequence number.
    #[inline]
    pub fn push(&mut self, time: SimTime, index: u64) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.len += 1;
        let event = Event { time, seq, index };
        if time.as_ps() > self.near_last {
            self.wheel.insert(&mut self.arena, event);
        } else {
            self.push_near(event);
        }
        seq
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        self.pop_through(SimTime::MAX)
    }

    /// Takes the earliest event if its time is not after `last`.
    #[inline]
    pub fn pop_through(&mut self, last: SimTime) -> Option<Event> {
        let (near, event) = self.earliest()?;
        if event.time > last {
            return None;
        }
        match near {
            Near::Run => {
                self.run.pop();
            }
            Near::Heap => {
                self.heap.pop();
            }
            Near::Lane => self.lane.drop_first(&mut self.arena),
        }
        self.len -= 1;
        self.now = event.time.as_ps();
        Some(event)
    }

    /// The time of the earliest event.
    pub fn next_time(&mut self) -> Option<SimTime> {
        self.earliest().map(|(_, event)| event.time)
    }

    /// The earliest event and where it lies.
    #[inline]
    fn earliest(&mut self) -> Option<(Near, Event)> {
        if self.heap.is_empty() && self.lane.is_empty() {
            if self.run.is_empty() && !self.open() {
                return None;
            }
            if let Some(&event) = self.run.last() {
                return Some((Near::Run, event));
            }
        }
        self.earliest_of_three()
    }

    fn earliest_of_three(&self) -> Option<(Near, Event)> {
        let run = self.run.last().map(|event| (Near::Run, *event));
        let heap = self.heap.peek().map(|late| (Near::Heap, late.0));
        let lane = self.lane.first(&self.arena).map(|event| (Near::Lane, *event));
        [run, heap, lane].into_iter().flatten().min_by_key(|(_, event)| event.key())
    }

    /// Adds an event whose time is not after `near_last`.
    #[inline(never)]
    fn push_near(&mut self, event: Event) {
        let time = event.time.as_ps();
        if self.lane.is_empty() && time == self.now {
            self.lane_time = time;
        }
        if time == self.lane_time && (time == self.now || !self.lane.is_empty()) {
            // Later in sequence than all that are there, so the lane stays in order.
            self.lane.push(&mut self.arena, event);
            return;
        }
        self.heap.push(Late(event));
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
        let mut near = core::mem::take(&mut self.run);
        near.extend(self.heap.drain().map(|late| late.0));
        near.sort_unstable_by_key(|event| core::cmp::Reverse(event.key()));

        let mut done = self.now;
        if !self.lane.is_empty() {
            done = done.max(self.lane_time);
        }
        let sent = match done.checked_add(1) {
            Some(first) => {
                let from = near[near.len() / 2].time.as_ps().max(self.wheel.base()).max(first);
                // The latest come first.
                near.partition_point(|event| event.time.as_ps() >= from)
            }
            None => 0,
        };
        if sent == 0 {
            // A tie, or times before the base: the heap holds them as well as anything.
            self.heap_limit = near.len() * 2;
            self.run = near.split_off(near.len() - near.len().min(RUN_EVENTS as usize));
            self.heap.extend(near.into_iter().map(Late));
            return;
        }
        // Not zero, for it is after `done`.
        self.near_last = near[sent - 1].time.as_ps() - 1;
        for event in near[..sent].iter().rev() {
            self.wheel.insert(&mut self.arena, *event);
        }
        near.drain(..sent);
        self.run = near;
        self.heap_limit = HEAP_EVENTS;
    }

    /// Makes the earliest events of the wheel near; false where it has none.
    #[inline(never)]
    fn open(&mut self) -> bool {
        loop {
            let Some(slot) = self.wheel.first_slot() else {
                return false;
            };
            if slot.is_one_instant() {
                self.lane = Lane::from_chain(self.wheel.take(&slot));
                self.lane_time = self.wheel.base();
                self.near_last = self.lane_time;
                return true;
            }
            if self.wheel.count(&slot) <= RUN_EVENTS {
                let mut chain = self.wheel.take(&slot);
                loop {
                    let count = self.arena.take_chunk(&mut chain, &mut self.buffer);
                    if count == 0 {
                        break;
                    }
                    self.run.extend_from_slice(&self.buffer[..count]);
                }
                self.run.sort_unstable_by_key(|event| core::cmp::Reverse(event.key()));
                self.near_last = self.run.first().map_or(self.near_last, |event| event.time.as_ps());
                self.heap_limit = HEAP_EVENTS;
                return true;
            }
            self.wheel.spread(&mut self.arena, &slot, &mut self.buffer);
        }
    }
}
