//! A heap with four children to a node: fewer levels than two, and one cache line or two for each.

use alloc::vec::Vec;

use crate::event::Event;

const CHILDREN: usize = 4;

/// Events by (time, sequence), the earliest on top.
///
/// An event that is taken leaves a hole at the top. The event that is pushed next falls into the hole from there, in
/// one walk where a removal and an insertion would be two; only where another is taken first is the hole closed.
#[derive(Clone)]
pub(super) struct Heap<E> {
    events: Vec<Event<E>>,
    /// The event at the top has been taken.
    has_hole: bool,
}

impl<E: Copy> Heap<E> {
    pub(super) const fn new() -> Self {
        Self { events: Vec::new(), has_hole: false }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.events.len() - self.has_hole as usize
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events there is room for.
    pub(super) const fn capacity(&self) -> usize {
        self.events.capacity()
    }

    /// The earliest event.
    #[inline]
    pub(super) fn first(&mut self) -> Option<&Event<E>> {
        self.close();
        self.events.first()
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event<E>) {
        if self.has_hole {
            self.has_hole = false;
            return self.sink(event);
        }
        let mut place = self.events.len();
        self.events.push(event);
        let events = &mut self.events[..];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if events[parent].key() <= event.key() {
                break;
            }
            events[place] = events[parent];
            place = parent;
        }
        events[place] = event;
    }

    /// Takes the earliest event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event<E>> {
        let first = *self.first()?;
        self.has_hole = true;
        Some(first)
    }

    /// Takes all events, in no order that counts.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Event<E>> {
        self.close();
        self.events.drain(..)
    }

    /// Puts the last event where the hole is, if there is one.
    #[inline]
    fn close(&mut self) {
        if self.has_hole {
            self.has_hole = false;
            if let Some(last) = self.events.pop().filter(|_| !self.events.is_empty()) {
                self.sink(last);
            }
        }
    }

    /// Puts an event in the place of the one at the top.
    fn sink(&mut self, event: Event<E>) {
        let events = &mut self.events[..];
        let key = event.key();
        let (mut place, mut child) = (0, 1);
        // Without a branch that depends on which child is the least.
        while let Some([a, b, c, d]) = events.get(child..child + CHILDREN) {
            let (left, of_left) = if b.key() < a.key() { (b.key(), 1) } else { (a.key(), 0) };
            let (right, of_right) = if d.key() < c.key() { (d.key(), 3) } else { (c.key(), 2) };
            let (least, of) = if right < left { (right, of_right) } else { (left, of_left) };
            if least >= key {
                break;
            }
            events[place] = events[child + of];
            place = child + of;
            child = CHILDREN * place + 1;
        }
        // Fewer than four are left at the end alone.
        if let Some(rest) = events.get(child..).filter(|rest| rest.len() < CHILDREN)
            && let Some((of, least)) = rest.iter().enumerate().min_by_key(|(_, event)| event.key())
            && least.key() < key
        {
            events[place] = events[child + of];
            place = child + of;
        }
        events[place] = event;
    }
}
