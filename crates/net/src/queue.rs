//! The events of a world, by time and then in the order they were scheduled.

use wiretwin_engine::EventQueue;
use wiretwin_units::SimTime;

/// Something that happens in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The envelope of a message reaches its destination.
    Arrive { message: u32 },
    /// The data of a rendezvous reach their destination.
    DataArrive { message: u32 },
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
    /// A receive is withdrawn: a number of the world's list.
    Cancel { number: u32 },
    /// The work on a shared core ends; stale unless `epoch` is the core's.
    Core { core: u32, epoch: u32 },
    /// A time slice ends on a node whose ranks queue for its cores.
    Slice { node: u32 },
}

/// The bits of an epoch that an event carries: an event that is stale by this many epochs of one core
/// would pass for current, and a core makes one event an epoch.
pub(crate) const EPOCH_MASK: u32 = (1 << 28) - 1;

impl Event {
    /// Kind in the low 4 bits, a 32-bit number above, an epoch above that.
    fn encode(self) -> u64 {
        let (kind, number, epoch) = match self {
            Self::Arrive { message } => (0, message, 0),
            Self::DataArrive { message } => (1, message, 0),
            Self::LinkEnter { message } => (2, message, 0),
            Self::LinkHead { message } => (3, message, 0),
            Self::Proceed { rank } => (4, rank, 0),
            Self::Cancel { number } => (5, number, 0),
            Self::Core { core, epoch } => (6, core, epoch & EPOCH_MASK),
            Self::Slice { node } => (7, node, 0),
            Self::Fin { message } => (8, message, 0),
            Self::Share => (9, 0, 0),
            Self::Flow { flow } => (10, flow, 0),
        };
        kind | u64::from(number) << 4 | u64::from(epoch) << 36
    }

    fn decode(index: u64) -> Self {
        let number = (index >> 4) as u32;
        match index & 15 {
            0 => Self::Arrive { message: number },
            1 => Self::DataArrive { message: number },
            2 => Self::LinkEnter { message: number },
            3 => Self::LinkHead { message: number },
            4 => Self::Proceed { rank: number },
            5 => Self::Cancel { number },
            6 => Self::Core { core: number, epoch: (index >> 36) as u32 },
            7 => Self::Slice { node: number },
            8 => Self::Fin { message: number },
            9 => Self::Share,
            _ => Self::Flow { flow: number },
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Queue {
    events: EventQueue,
    /// How many are not [`Event::Slice`].
    others: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        self.others += usize::from(!matches!(event, Event::Slice { .. }));
        self.events.push(SimTime::from_ps(time), event.encode());
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.pop_through(u64::MAX)
    }

    /// The next event, if it is due at `last` or before.
    pub(crate) fn pop_through(&mut self, last: u64) -> Option<(u64, Event)> {
        let popped = self.events.pop_through(SimTime::from_ps(last))?;
        let event = Event::decode(popped.what);
        self.others -= usize::from(!matches!(event, Event::Slice { .. }));
        Some((popped.time.as_ps(), event))
    }

    /// Whether an event is scheduled that is not [`Event::Slice`].
    pub(crate) fn has_more_than_slices(&self) -> bool {
        self.others > 0
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.events.resident_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_its_number() {
        for number in [0, 1, 77, u32::MAX] {
            for event in [
                Event::Arrive { message: number },
                Event::DataArrive { message: number },
                Event::LinkEnter { message: number },
                Event::LinkHead { message: number },
                Event::Proceed { rank: number },
                Event::Cancel { number },
                Event::Core { core: number, epoch: number & EPOCH_MASK },
                Event::Slice { node: number },
                Event::Fin { message: number },
                Event::Share,
                Event::Flow { flow: number },
            ] {
                assert_eq!(Event::decode(event.encode()), event);
            }
        }
    }

    #[test]
    fn time_slices_are_told_from_events_that_matter() {
        let mut queue = Queue::default();
        queue.push(5, Event::Slice { node: 0 });
        assert!(!queue.has_more_than_slices());
        queue.push(3, Event::Proceed { rank: 9 });
        assert!(queue.has_more_than_slices());
        assert_eq!(queue.pop_through(2), None);
        assert_eq!(queue.pop(), Some((3, Event::Proceed { rank: 9 })));
        assert!(!queue.has_more_than_slices());
        assert!(queue.memory_bytes() > 0);
    }
}
