//! The events of a world, by time and then in the order they were scheduled.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The envelope of a message reaches its destination.
    Arrive { message: u32 },
    /// The data of a rendezvous reach their destination.
    DataArrive { message: u32 },
    /// A message reaches the transmitter of its sender's node.
    LinkEnter { message: u32 },
    /// The first bit of a message reaches the receiver's end of the link.
    LinkHead { message: u32 },
    /// A rank with a core of its own goes on.
    Proceed { rank: u32 },
    /// A receive is withdrawn.
    Cancel { request: u64 },
    /// A shared core's work or time slice ends; stale unless `epoch` is the core's.
    Core { node: u32, core: u32, epoch: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    time: u64,
    sequence: u64,
    event: Event,
}

impl Ord for Entry {
    /// Reversed, for a heap whose top is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    /// How many are not [`Event::Core`].
    others: usize,
    next_sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        self.others += usize::from(!matches!(event, Event::Core { .. }));
        self.heap.push(Entry { time, sequence: self.next_sequence, event });
        self.next_sequence += 1;
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.time)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.heap.pop()?.event;
        self.others -= usize::from(!matches!(event, Event::Core { .. }));
        Some(event)
    }

    /// Whether an event is scheduled that is not [`Event::Core`].
    pub(crate) fn has_more_than_cores(&self) -> bool {
        self.others > 0
    }
}
