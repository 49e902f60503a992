//! Things by number, whose places are used again.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Things that come and go, each by the number of its place: events, queues and other things hold the number alone.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

const THERE: &str = "a number stands for one thing until it is removed";

impl<T> Slab<T> {
    /// Nothing is there.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps a thing; the number of its place, which may have been that of one removed before.
    #[inline]
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(thing);
            return place;
        }
        self.places.push(Some(thing));
        (self.places.len() - 1) as u32
    }

    /// Takes a thing away.
    ///
    /// # Panics
    /// Where nothing is there.
    #[inline]
    pub fn remove(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize].take().expect(THERE)
    }

    /// How many things there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        self.places[place as usize].as_ref().expect(THERE)
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect(THERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_when_its_thing_has_gone() {
        let mut slab = Slab::new();
        let (first, second) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab[first], slab.remove(first), slab.len()), ('a', 'a', 1));
        assert_eq!(slab.insert('c'), first);
        slab[second] = 'd';
        assert_eq!(slab.iter().collect::<Vec<_>>(), [&'c', &'d']);
    }
}
