//! Slots: all nodes of a rate share them, and only those that have something to do are asked.

use wiretwin_units::{BitRate, SimTime};

use super::plan::{CELL_BITS, PS_PER_S};

/// The slots of one rate: cell times, the first at 0, and which nodes each of the next concerns.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    rate: u64,
    /// Whole picoseconds of a slot, and what is left over, in parts of the rate.
    whole_ps: u64,
    part: u64,
    /// A slot whose beginning is known, and that beginning.
    slot: u64,
    time_ps: u64,
    carried: u64,
    /// By slot, round and round: a bit for each node.
    wheel: Vec<u64>,
    words: usize,
    places: u64,
    /// By place of the wheel, whether it has a bit.
    occupied: Vec<u64>,
    /// Nodes woken last, all of one slot and one word, that the wheel does not show yet: many in turn are
    /// woken for one slot.
    woken_slot: u64,
    woken_word: u32,
    woken: u64,
    /// The next slot that concerns a node; `u64::MAX` for none.
    next: u64,
    /// The slot after the last that was run: none before it is run any more.
    ahead: u64,
}

impl Domain {
    /// Slots of this rate for so many nodes, none of which is woken further ahead than so many slots.
    pub(super) fn new(rate: BitRate, nodes: usize, furthest: u64) -> Self {
        let cell_ps = u128::from(CELL_BITS) * PS_PER_S;
        let (words, places) = (nodes.div_ceil(64).max(1), (furthest + 2).next_power_of_two().max(64));
        Self {
            rate: rate.get(),
            whole_ps: (cell_ps / u128::from(rate.get())) as u64,
            part: (cell_ps % u128::from(rate.get())) as u64,
            slot: 0,
            time_ps: 0,
            carried: 0,
            wheel: vec![0; words * places as usize],
            words,
            places,
            occupied: vec![0; places as usize / 64],
            woken_slot: u64::MAX,
            woken_word: 0,
            woken: 0,
            next: u64::MAX,
            ahead: 0,
        }
    }

    /// When the next slot begins that concerns a node.
    #[inline]
    pub(super) fn next_time(&self) -> SimTime {
        if self.next == u64::MAX { SimTime::MAX } else { SimTime::from_ps(self.start_ps(self.next)) }
    }

    /// When a slot begins that is not before the one last run.
    #[inline]
    fn start_ps(&self, slot: u64) -> u64 {
        let slots = slot - self.slot;
        if slots == 1 {
            let carried = self.carried + self.part;
            return self.time_ps + self.whole_ps + u64::from(carried >= self.rate);
        }
        let parts = u128::from(self.carried) + u128::from(slots) * u128::from(self.part);
        self.time_ps + slots * self.whole_ps + (parts / u128::from(self.rate)) as u64
    }

    /// The first slot that begins at this time or after it and was not run yet.
    pub(super) fn slot_from(&self, time: SimTime) -> u64 {
        let cell_ps = u128::from(CELL_BITS) * PS_PER_S;
        // The beginning of slot n is n cell times, cut to a whole picosecond.
        let mut slot = (u128::from(time.as_ps()) * u128::from(self.rate)).div_ceil(cell_ps) as u64;
        let begins = |slot: u64| (u128::from(slot) * cell_ps / u128::from(self.rate)) as u64;
        while slot > 0 && begins(slot - 1) >= time.as_ps() {
            slot -= 1;
        }
        slot.max(self.ahead)
    }

    /// Concerns a node with a slot.
    #[inline]
    pub(super) fn wake(&mut self, node: u32, slot: u64) {
        debug_assert!(slot >= self.ahead, "slot {slot} was run: {} is next", self.ahead);
        debug_assert!(self.next == u64::MAX || slot < self.next + self.places, "further than the wheel");
        if (slot, node / 64) != (self.woken_slot, self.woken_word) {
            self.show();
            (self.woken_slot, self.woken_word) = (slot, node / 64);
            let place = slot & (self.places - 1);
            self.occupied[(place / 64) as usize] |= 1 << (place % 64);
            self.next = self.next.min(slot);
        }
        self.woken |= 1 << (node % 64);
    }

    /// Puts the nodes woken last on the wheel.
    #[inline]
    fn show(&mut self) {
        let place = (self.woken_slot & (self.places - 1)) as usize;
        self.wheel[place * self.words + self.woken_word as usize] |= std::mem::take(&mut self.woken);
    }

    /// Begins the next slot: its number. Its nodes are then taken word by word.
    #[inline]
    pub(super) fn begin(&mut self) -> u64 {
        self.show();
        let slot = self.next;
        let slots = slot - self.slot;
        if slots == 1 {
            self.time_ps += self.whole_ps;
            self.carried += self.part;
            if self.carried >= self.rate {
                self.carried -= self.rate;
                self.time_ps += 1;
            }
        } else {
            let parts = u128::from(self.carried) + u128::from(slots) * u128::from(self.part);
            self.time_ps += slots * self.whole_ps + (parts / u128::from(self.rate)) as u64;
            self.carried = (parts % u128::from(self.rate)) as u64;
        }
        self.slot = slot;
        self.ahead = slot + 1;
        slot
    }

    /// How many words of nodes there are.
    pub(super) const fn words(&self) -> usize {
        self.words
    }

    /// Takes a word of the nodes of the slot that has begun.
    #[inline]
    pub(super) fn take(&mut self, word: usize) -> u64 {
        let place = (self.slot & (self.places - 1)) as usize;
        std::mem::take(&mut self.wheel[place * self.words + word])
    }

    /// Concerns the nodes of a word, those of these bits, with the slot after the one that has begun.
    #[inline]
    pub(super) fn wake_again(&mut self, word: usize, bits: u64) {
        let place = (self.slot + 1) & (self.places - 1);
        self.wheel[place as usize * self.words + word] |= bits;
        self.occupied[(place / 64) as usize] |= 1 << (place % 64);
    }

    /// Ends the slot: looks for the next.
    #[inline]
    pub(super) fn end(&mut self) {
        let place = self.slot & (self.places - 1);
        self.occupied[(place / 64) as usize] &= !(1 << (place % 64));
        let after = (self.slot + 1) & (self.places - 1);
        if self.occupied[(after / 64) as usize] >> (after % 64) & 1 == 1 {
            self.next = self.slot + 1;
            return;
        }
        self.next = self.search(after);
    }

    fn search(&self, from: u64) -> u64 {
        let words = self.occupied.len() as u64;
        for step in 0..=words {
            let word = (from / 64 + step) % words;
            let mut bits = self.occupied[word as usize];
            if step == 0 {
                bits &= u64::MAX << (from % 64);
            } else if step == words {
                bits &= (1 << (from % 64)) - 1;
            }
            if bits != 0 {
                let place = word * 64 + u64::from(bits.trailing_zeros());
                return self.slot + 1 + (place.wrapping_sub(from) & (self.places - 1));
            }
        }
        u64::MAX
    }

    /// The beginning of the slot that has begun.
    pub(super) const fn now(&self) -> SimTime {
        SimTime::from_ps(self.time_ps)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set that is sorted.
        #[test]
        fn nodes_are_woken_in_their_slots_at_exact_times(
            rate in 1_000_000_u64..2_000_000_000, nodes in 1_u32..130, furthest in 1_u64..300,
            wakes in prop::collection::vec((0_u32..130, 0_u64..300, any::<bool>()), 1..200),
        ) {
            let rate = BitRate::bit_s(rate);
            let mut domain = Domain::new(rate, nodes as usize, furthest);
            let mut naive: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut current = 0;
            for (node, ahead, run) in wakes {
                let slot = current + ahead % furthest;
                naive.insert((slot, node % nodes));
                domain.wake(node % nodes, slot);
                if !run {
                    continue;
                }
                let slot = naive.first().unwrap().0;
                let exact = u128::from(slot) * u128::from(CELL_BITS) * PS_PER_S / u128::from(rate.get());
                let time = SimTime::from_ps(exact as u64);
                prop_assert_eq!(domain.next_time(), time);
                if exact > 0 {
                    prop_assert_eq!(domain.slot_from(time), slot);
                }
                prop_assert_eq!(domain.begin(), slot);
                prop_assert_eq!(domain.now(), time);
                for word in 0..domain.words() {
                    let mut bits = domain.take(word);
                    while bits != 0 {
                        let node = word as u32 * 64 + bits.trailing_zeros();
                        prop_assert!(naive.remove(&(slot, node)));
                        bits &= bits - 1;
                    }
                }
                domain.end();
                prop_assert!(naive.first().is_none_or(|&(next, _)| next > slot));
                current = slot + 1;
            }
        }
    }
}
