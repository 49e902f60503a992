//! A row of small things, first come first served, in a ring of places.

/// First come, first served; grows to the most it has ever held.
///
/// As a `VecDeque`, but the ring is always a power of two and only numbers are kept, so that looking whether the
/// first is due takes a third of the instructions: that is asked of each line in each slot.
#[derive(Clone, Debug)]
pub(super) struct Lane<T> {
    /// None, or a power of two.
    places: Vec<T>,
    /// How many have ever gone and come, modulo 2^32.
    gone: u32,
    come: u32,
}

impl<T: Copy> Lane<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), gone: 0, come: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.gone == self.come
    }

    #[inline]
    const fn place(&self, number: u32) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn push_back(&mut self, one: T) {
        if self.come.wrapping_sub(self.gone) as usize == self.places.len() {
            self.grow(one);
        }
        let place = self.place(self.come);
        self.places[place] = one;
        self.come = self.come.wrapping_add(1);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filling: T) {
        let mut places: Vec<T> = self.iter().copied().collect();
        (self.gone, self.come) = (0, places.len() as u32);
        places.resize((places.len() * 2).max(4), filling);
        self.places = places;
    }

    /// Takes the first, if there is one and it is such.
    #[inline]
    pub(super) fn pop_front_if(&mut self, such: impl FnOnce(&T) -> bool) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let first = self.places[self.place(self.gone)];
        such(&first).then(|| {
            self.gone = self.gone.wrapping_add(1);
            first
        })
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        self.pop_front_if(|_| true)
    }

    /// All, from the first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.come.wrapping_sub(self.gone))
            .map(|nth| &self.places[self.place(self.gone.wrapping_add(nth))])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a deque, also where its counts go round.
        #[test]
        fn first_come_first_served(
            begun in prop_oneof![Just(0), Just(u32::MAX - 9)],
            steps in prop::collection::vec(0_u8..5, 1..200),
        ) {
            let mut lane = Lane { places: Vec::new(), gone: begun, come: begun };
            let mut naive = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0..3 => {
                        lane.push_back(number);
                        naive.push_back(number);
                    }
                    3 => prop_assert_eq!(lane.pop_front(), naive.pop_front()),
                    _ => {
                        let odd = naive.front().is_some_and(|first| first % 2 == 1);
                        let expected = if odd { naive.pop_front() } else { None };
                        prop_assert_eq!(lane.pop_front_if(|first| first % 2 == 1), expected);
                    }
                }
                prop_assert_eq!(lane.is_empty(), naive.is_empty());
                prop_assert!(lane.iter().eq(&naive));
            }
        }
    }
}
