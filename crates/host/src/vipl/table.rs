//! Objects by handle, and completion queues.

use std::collections::VecDeque;

use wiretwin_msg::via::{CqHandle, QueueKind, ViHandle};

use super::{Event, Token};

/// A table whose places are used again and whose handles are not: the place is the lower part of a handle.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<(u32, Option<T>)>,
    free: VecDeque<u32>,
    used: u32,
}

impl<T> Table<T> {
    const BITS: u32 = 12;
    const LAST: u32 = u32::MAX >> Self::BITS;

    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: VecDeque::new(), used: 0 }
    }

    pub const fn len(&self) -> u32 {
        self.used
    }

    pub fn insert(&mut self, make: impl FnOnce(u32) -> T) -> Option<u32> {
        let place = match self.free.pop_front() {
            Some(place) => place,
            None if self.slots.len() < 1 << Self::BITS => {
                self.slots.push((0, None));
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let slot = &mut self.slots[place as usize];
        slot.0 += 1;
        let handle = slot.0 << Self::BITS | place;
        slot.1 = Some(make(handle));
        self.used += 1;
        Some(handle)
    }

    fn slot(&self, handle: u32) -> Option<usize> {
        let place = (handle & ((1 << Self::BITS) - 1)) as usize;
        (self.slots.get(place)?.0 == handle >> Self::BITS).then_some(place)
    }

    #[inline]
    pub fn get(&self, handle: u32) -> Option<&T> {
        self.slots[self.slot(handle)?].1.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        let place = self.slot(handle)?;
        self.slots[place].1.as_mut()
    }

    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let place = self.slot(handle)?;
        let taken = self.slots[place].1.take()?;
        self.used -= 1;
        // A place whose handles are used up stays empty.
        if self.slots[place].0 < Self::LAST {
            self.free.push_back(place as u32);
        }
        Some(taken)
    }

    pub fn handles(&self) -> impl Iterator<Item = u32> {
        let taken = |(place, slot): (usize, &(u32, Option<T>))| {
            slot.1.is_some().then_some(slot.0 << Self::BITS | place as u32)
        };
        self.slots.iter().enumerate().filter_map(taken)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, slot)| slot.as_ref())
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|(_, slot)| slot.as_mut())
    }
}

/// A completion queue.
#[derive(Debug)]
pub(super) struct Cq {
    pub entries: VecDeque<(ViHandle, QueueKind)>,
    pub capacity: u32,
    pub notify: VecDeque<Token>,
    /// The VIs that are bound to it, each as often as it is.
    pub bound: Vec<ViHandle>,
}

/// The completion queues.
#[derive(Debug)]
pub(super) struct Cqs(pub Table<Cq>);

impl Cqs {
    /// Tells of a descriptor that is done; false if there is no room.
    pub fn publish(
        &mut self,
        handle: CqHandle,
        vi: ViHandle,
        kind: QueueKind,
        events: &mut VecDeque<Event>,
    ) -> bool {
        let Some(cq) = self.0.get_mut(handle.0) else { return true };
        if let Some(token) = cq.notify.pop_front() {
            events.push_back(Event::CqNotified { cq: handle, vi, kind, token });
            return true;
        }
        let room = cq.entries.len() < cq.capacity as usize;
        if room {
            cq.entries.push_back((vi, kind));
        }
        room
    }
}
