//! When each of a few fixed parts of a network has something to do next, and which is first.

use wiretwin_units::SimTime;

/// A tournament over the times of so many parts; of those with one time the lower number is first.
///
/// Every part has exactly one time, so that a change is a walk from a leaf to the root, and the next to act
/// is known without a search: for tens of parts that change at each cell that is less than a queue of events.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    times: Vec<SimTime>,
    /// By node, the part that is first below it: 1 is the root, the leaves are the last half.
    first: Vec<u32>,
}

impl Agenda {
    /// Nobody has anything to do.
    pub(super) fn new(parts: usize) -> Self {
        let leaves = parts.next_power_of_two().max(2);
        let mut first: Vec<u32> = (0..2 * leaves).map(|node| node.saturating_sub(leaves) as u32).collect();
        for node in (1..leaves).rev() {
            first[node] = first[2 * node];
        }
        Self { times: vec![SimTime::MAX; leaves], first }
    }

    /// A part acts next at this time; [`SimTime::MAX`] is never.
    #[inline]
    pub(super) fn set(&mut self, part: usize, time: SimTime) {
        let leaves = self.times.len();
        self.times[part] = time;
        let mut node = (leaves + part) / 2;
        while node > 0 {
            let (left, right) = (self.first[2 * node], self.first[2 * node + 1]);
            let later = self.times[right as usize] < self.times[left as usize];
            self.first[node] = if later { right } else { left };
            node /= 2;
        }
    }

    /// Who is first, and when.
    #[inline]
    pub(super) fn next(&self) -> (SimTime, usize) {
        let part = self.first[1] as usize;
        (self.times[part], part)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a search.
        #[test]
        fn the_first_is_the_earliest_and_of_those_the_lowest(
            parts in 1_usize..40, changes in prop::collection::vec((0_usize..40, 0_u64..30), 1..200),
        ) {
            let mut agenda = Agenda::new(parts);
            let mut naive = vec![u64::MAX; parts];
            for (part, time) in changes {
                let part = part % parts;
                naive[part] = if time == 29 { u64::MAX } else { time };
                agenda.set(part, SimTime::from_ps(naive[part]));
                let first = (0..parts).min_by_key(|&part| (naive[part], part)).unwrap();
                prop_assert_eq!(agenda.next(), (SimTime::from_ps(naive[first]), first));
            }
        }
    }
}
