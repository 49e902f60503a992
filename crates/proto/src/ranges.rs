//! A bounded set of ranges of sequence numbers, for what came out of order and what was acknowledged
//! selectively.

use alloc::vec::Vec;

/// A place in the sequence space of one direction, counted from its SYN and not wrapped: the SYN is 0,
/// the first octet 1. Places before the SYN are negative and only come from a peer that is wrong.
pub(crate) type Place = i64;

/// A place in half the room, kept near another by whoever moves that on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near(u32);

impl Near {
    pub(crate) const fn new(place: Place) -> Self {
        Self(place as u32)
    }

    /// The place, that of the two nearest to `base`.
    pub(crate) const fn to(self, base: Place) -> Place {
        base + self.0.wrapping_sub(base as u32) as i32 as i64
    }
}

/// From a place to the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub from: Place,
    pub to: Place,
}

/// Ranges that neither overlap nor touch, in order.
///
/// It owns no heap until a first range comes, and gives it back when asked to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<Range>);

impl Ranges {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn as_slice(&self) -> &[Range] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Octets of heap.
    pub(crate) fn heap_octets(&self) -> usize {
        self.0.capacity() * size_of::<Range>()
    }

    /// Adds a range; false where it would be one more than `most`, and then nothing has changed.
    pub(crate) fn insert(&mut self, from: Place, to: Place, most: usize) -> bool {
        if from >= to {
            return true;
        }
        // Those that overlap or touch: from the first that ends at or after `from` to the last that
        // begins at or before `to`.
        let first = self.0.partition_point(|range| range.to < from);
        let after = first + self.0[first..].partition_point(|range| range.from <= to);
        if first == after {
            if self.0.len() >= most {
                return false;
            }
            self.0.insert(first, Range { from, to });
            return true;
        }
        let merged = Range { from: from.min(self.0[first].from), to: to.max(self.0[after - 1].to) };
        self.0[first] = merged;
        self.0.drain(first + 1..after);
        true
    }

    /// Forgets everything before `place`.
    pub(crate) fn forget_before(&mut self, place: Place) {
        let gone = self.0.partition_point(|range| range.to <= place);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.from = first.from.max(place);
        }
    }

    /// Takes the range that begins at or before `place` and reaches beyond it, with all before it:
    /// the place after its last.
    pub(crate) fn take_through(&mut self, place: Place) -> Option<Place> {
        let to = self.0.first().filter(|range| range.from <= place)?.to;
        self.0.remove(0);
        (to > place).then_some(to)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives back the heap of a set that is empty.
    pub(crate) fn relax(&mut self) {
        if self.0.is_empty() && self.0.capacity() > 0 {
            self.0 = Vec::new();
        }
    }

    /// The range that `place` is in.
    pub(crate) fn containing(&self, place: Place) -> Option<Range> {
        let at = self.0.partition_point(|range| range.to <= place);
        self.0.get(at).copied().filter(|range| range.from <= place)
    }

    /// The first range that begins after `place`.
    pub(crate) fn next_after(&self, place: Place) -> Option<Range> {
        let at = self.0.partition_point(|range| range.from <= place);
        self.0.get(at).copied()
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn of(ranges: &[(Place, Place)]) -> Ranges {
        let mut set = Ranges::new();
        for &(from, to) in ranges {
            assert!(set.insert(from, to, 100));
        }
        set
    }

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(of(&[(1, 3), (5, 7), (3, 5)]).as_slice(), [Range { from: 1, to: 7 }]);
        assert_eq!(of(&[(5, 7), (1, 3)]).as_slice(), [Range { from: 1, to: 3 }, Range { from: 5, to: 7 }]);
    }

    #[test]
    fn one_range_too_many_changes_nothing_and_one_that_joins_is_taken() {
        let mut set = of(&[(1, 3), (5, 7)]);
        assert!(!set.insert(10, 12, 2));
        assert_eq!(set.as_slice().len(), 2);
        assert!(set.insert(7, 9, 2) && set.insert(2, 6, 2));
        assert_eq!(set.as_slice(), [Range { from: 1, to: 9 }]);
    }

    #[test]
    fn an_empty_set_gives_its_heap_back_when_asked() {
        let mut set = of(&[(1, 3)]);
        set.relax();
        assert!(set.heap_octets() > 0, "not while a range is there");
        assert_eq!(set.take_through(1), Some(3));
        set.relax();
        assert_eq!(set.heap_octets(), 0);
    }

    proptest! {
        /// Against a set of single places.
        #[test]
        fn a_set_holds_what_was_put_in(
            puts in prop::collection::vec((0i64..60, 0i64..12), 0..20),
            before in 0i64..70,
        ) {
            let mut naive = [false; 80];
            let mut set = Ranges::new();
            for (from, length) in puts {
                prop_assert!(set.insert(from, from + length, 1000));
                for place in from..from + length {
                    naive[place as usize] = true;
                }
            }
            for (place, &held) in naive.iter().enumerate() {
                prop_assert_eq!(set.containing(place as i64).is_some(), held, "place {}", place);
            }
            prop_assert!(set.as_slice().windows(2).all(|pair| pair[0].to < pair[1].from));
            prop_assert!(set.as_slice().iter().all(|range| range.from < range.to));
            let next = set.next_after(before).map(|range| range.from);
            let naive_next = (before + 1..80).find(|&at| naive[at as usize] && !naive[at as usize - 1]);
            prop_assert_eq!(next, naive_next);
            set.forget_before(before);
            for (place, &held) in naive.iter().enumerate() {
                let held = held && place as i64 >= before;
                prop_assert_eq!(set.containing(place as i64).is_some(), held, "place {}", place);
            }
        }
    }
}
