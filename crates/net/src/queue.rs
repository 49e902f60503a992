//! The events of a world, by time and then in the order they were scheduled.

use wiretwin_engine::{EventQueue, EventSink};
use wiretwin_units::SimTime;

pub(crate) use crate::future_events::Epoch;
use crate::packet;

/// Something that happens in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The envelope of a message reaches its destination.
    Arrive { message: u32 },
    /// The data of a rendezvous reach their destination.
    DataArrive { message: u32 },
    /// The kernel of its destination begins to work on a message.
    Interrupt { message: u32 },
    /// The kernel may be done with the messages that have come to a core.
    InterruptsEnd { core: u32 },
    /// The word of a receiver that has fetched a message reaches its sender.
    Fin { message: u32 },
    /// A message reaches the transmitter of its sender's node.
    LinkEnter { message: u32 },
    /// The first bit of a message reaches the receiver's end of the link.
    LinkHead { message: u32 },
    /// The shares of flows are found, all changes of this instant being in.
    Share,
    /// A timer of a flow runs out.
    Flow { flow: u32 },
    /// A rank with a core of its own goes on.
    Proceed { rank: u32 },
    /// A rank goes on without what it waits for.
    Rouse { rank: u32 },
    /// A receive is withdrawn: a number of the world's list.
    Cancel { number: u32 },
    /// The work on a shared core ends, or the turn of a rank begins there; stale unless `epoch` is the core's.
    Core { core: u32, epoch: Epoch },
    /// A rank that shares cores has slept enough.
    Awake { sharer: u32 },
    /// A time slice ends on cores that ranks queue for.
    Slice { queue: u32 },
    /// Something happens in the network, which is followed packet by packet.
    Packet { kind: packet::Kind, number: u32 },
}

#[derive(Clone, Default)]
pub(crate) struct Queue {
    events: EventQueue<Event>,
    /// How many are not [`Event::Slice`].
    others: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        self.others += usize::from(!matches!(event, Event::Slice { .. }));
        self.events.push(SimTime::from_ps(time), event);
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.pop_through(u64::MAX)
    }

    /// The next event, if it is due at `last` or before.
    pub(crate) fn pop_through(&mut self, last: u64) -> Option<(u64, Event)> {
        let popped = self.events.pop_through(SimTime::from_ps(last))?;
        let event = popped.what;
        self.others -= usize::from(!matches!(event, Event::Slice { .. }));
        Some((popped.time.as_ps(), event))
    }

    /// Whether an event is scheduled that is not [`Event::Slice`].
    pub(crate) fn has_more_than_slices(&self) -> bool {
        self.others > 0
    }
}

impl EventSink<packet::Event> for Queue {
    #[inline]
    fn put(&mut self, time: SimTime, what: packet::Event) {
        let packet::Event { kind, number } = what;
        self.push(time.as_ps(), Event::Packet { kind, number });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_slices_are_told_from_events_that_matter() {
        let mut queue = Queue::default();
        queue.push(5, Event::Slice { queue: 0 });
        assert!(!queue.has_more_than_slices());
        queue.push(3, Event::Proceed { rank: 9 });
        assert!(queue.has_more_than_slices());
        assert_eq!(queue.pop_through(2), None);
        assert_eq!(queue.pop(), Some((3, Event::Proceed { rank: 9 })));
        assert!(!queue.has_more_than_slices());
    }
}
