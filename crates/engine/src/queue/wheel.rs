//! A wheel of wheels: events by the highest digit in which their time differs from a base.
//!
//! Times are read as eleven digits of six bits. Relative to a base, an event lies at the level of the
//! highest digit in which it differs from it, in the slot that this digit names; so the earliest
//! event is in the lowest slot of the lowest level that holds any. Moving the base into that slot
//! spreads its events over the levels below. An event goes down at most eleven times, however times
//! are distributed, and events of one instant keep their order, for they are always in one slot.

use alloc::boxed::Box;

use super::arena::{Arena, Chain, Likeness};
use crate::event::Event;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 64_usize.div_ceil(DIGIT_BITS as usize);

/// The bits of all digits above that of a level.
const fn above(level: u32) -> u64 {
    match u64::MAX.checked_shl((level + 1) * DIGIT_BITS) {
        Some(bits) => bits,
        None => 0,
    }
}

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

impl Wheel {
    pub(super) fn new() -> Self {
        Self { base: 0, levels: 0, slots: [0; LEVELS], chains: Box::new([[Chain::EMPTY; SLOTS]; LEVELS]) }
    }

    /// The time before which it can hold no event, in ps.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Whether it holds no event.
    pub(super) const fn is_empty(&self) -> bool {
        self.levels == 0
    }

    /// Bytes allocated beside the arena's.
    pub(super) const fn resident_bytes(&self) -> usize {
        size_of::<[[Chain; SLOTS]; LEVELS]>()
    }

    /// Takes an event whose time is at or after the base.
    #[inline]
    pub(super) fn insert<E: Copy>(&mut self, arena: &mut Arena<E>, event: Event<E>) {
        let time = event.time.as_ps();
        debug_assert!(time >= self.base, "no event lies before the base");
        let highest = 63 - ((time ^ self.base) | 1).leading_zeros();
        let level = (highest / DIGIT_BITS) as usize;
        let slot = (time >> (level as u32 * DIGIT_BITS)) as usize % SLOTS;
        let chain = &mut self.chains[level][slot];
        if chain.len() == 0 {
            self.levels |= 1 << level;
            self.slots[level] |= 1 << slot;
        }
        arena.append(chain, event);
    }

    /// The time of the earliest event, in ps.
    pub(super) fn first_time<E: Copy>(&self, arena: &Arena<E>) -> Option<u64> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        arena.least(&self.chains[level][self.slots[level].trailing_zeros() as usize])
    }

    /// Takes all events of the earliest slot out and moves the base to where the slot begins.
    pub(super) fn take_first(&mut self) -> Option<Chain> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let slots = &mut self.slots[level as usize];
        let slot = slots.trailing_zeros();
        // The digits above the slot's stay, its own is its number, those below are zero.
        self.base = (self.base & above(level)) | u64::from(slot) << (level * DIGIT_BITS);
        *slots &= *slots - 1;
        if *slots == 0 {
            self.levels &= self.levels - 1;
        }
        Some(core::mem::replace(&mut self.chains[level as usize][slot as usize], Chain::EMPTY))
    }

    /// Spreads events that were taken from the first slot, and are not of one instant, over the
    /// levels from their highest differing digit down.
    pub(super) fn spread<E: Copy>(&mut self, arena: &mut Arena<E>, mut chain: Chain, likeness: Likeness) {
        // The digits in which all agree stay; no event lies before the first that they allow.
        let level = (63 - likeness.differing.leading_zeros()) / DIGIT_BITS;
        self.base = likeness.first & above(level);
        while let Some((chunk, count)) = arena.detach(&mut chain) {
            for position in 0..count {
                let event = arena.events(chunk)[position];
                self.insert(arena, event);
            }
            arena.release(chunk);
        }
    }
}
