//! A wheel of wheels: events by the highest digit in which their time differs from a base.
//!
//! Times are read as eleven digits of six bits. Relative to a base, an event lies at the level of the
//! highest digit in which it differs from it, in the slot that this digit names; so the earliest
//! event is in the lowest slot of the lowest level that holds any. Moving the base into that slot
//! spreads its events over the levels below. An event goes down at most eleven times, however times
//! are distributed, and events of one instant keep their order, for they are always in one slot.

use alloc::boxed::Box;

use super::arena::{Arena, CHUNK_EVENTS, Chain};
use crate::event::Event;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 64_usize.div_ceil(DIGIT_BITS as usize);

/// Events at or after a base.
#[derive(Clone)]
pub(super) struct Wheel {
    /// No event lies before it.
    base: u64,
    /// Which levels hold events.
    levels: u16,
    /// Which slots of each level hold events.
    slots: [u64; LEVELS],
    chains: Box<[[Chain; SLOTS]; LEVELS]>,
}

/// The earliest slot of a wheel.
pub(super) struct Slot {
    level: usize,
    slot: usize,
}

impl Slot {
    /// Whether all events of the slot are of one instant.
    pub(super) const fn is_one_instant(&self) -> bool {
        self.level == 0
    }
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self { base: 0, levels: 0, slots: [0; LEVELS], chains: Box::new([[Chain::EMPTY; SLOTS]; LEVELS]) }
    }

    /// The time before which it can hold no event, in ps.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes allocated beside the arena's.
    pub(super) const fn resident_bytes(&self) -> usize {
        size_of::<[[Chain; SLOTS]; LEVELS]>()
    }

    /// Takes an event whose time is at or after the base.
    #[inline]
    pub(super) fn insert(&mut self, arena: &mut Arena, event: Event) {
        let time = event.time.as_ps();
        debug_assert!(time >= self.base, "no event lies before the base");
        let highest = 63 - ((time ^ self.base) | 1).leading_zeros();
        let level = (highest / DIGIT_BITS) as usize;
        let slot = (time >> (level as u32 * DIGIT_BITS)) as usize % SLOTS;
        self.levels |= 1 << level;
        self.slots[level] |= 1 << slot;
        arena.append(&mut self.chains[level][slot], event);
    }

    /// Where the earliest events are.
    pub(super) fn first_slot(&self) -> Option<Slot> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some(Slot { level, slot: self.slots[level].trailing_zeros() as usize })
    }

    /// How many events are there.
    pub(super) fn count(&self, at: &Slot) -> u64 {
        self.chains[at.level][at.slot].len()
    }

    /// Takes all events of the first slot out and moves the base to where the slot begins.
    pub(super) fn take(&mut self, at: &Slot) -> Chain {
        let shift = at.level as u32 * DIGIT_BITS;
        // The digits above the slot's stay, its own is its number, those below are zero.
        let above = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
        self.base = (self.base & above) | (at.slot as u64) << shift;
        self.slots[at.level] &= !(1 << at.slot);
        if self.slots[at.level] == 0 {
            self.levels &= !(1 << at.level);
        }
        core::mem::replace(&mut self.chains[at.level][at.slot], Chain::EMPTY)
    }

    /// Spreads the events of the first slot over the levels below. The slot is not of one instant.
    pub(super) fn spread(&mut self, arena: &mut Arena, at: &Slot, buffer: &mut [Event; CHUNK_EVENTS]) {
        let mut chain = self.take(at);
        loop {
            let count = arena.take_chunk(&mut chain, buffer);
            if count == 0 {
                break;
            }
            for event in &buffer[..count] {
                self.insert(arena, *event);
            }
        }
    }
}
