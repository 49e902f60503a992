//! An open-addressing map from fixed keys to small values.
//!
//! Linear probing with backward-shift deletion: no tombstones, no allocation while the number of
//! entries stays below its past peak, and the same layout on every run.

use alloc::vec;
use alloc::vec::Vec;

/// A key of a [`Table`]: compared for equality and mixed to 64 bits.
pub trait Key: Copy + Eq {
    /// A well mixed hash; the low bits choose the slot.
    fn hash(&self) -> u64;
}

/// Mixes a word into a running hash: the halves of one product of 128 bits, folded.
#[inline]
#[must_use]
pub const fn mix(state: u64, word: u64) -> u64 {
    let product = (state ^ 0x9E37_79B9_7F4A_7C15) as u128 * (word ^ 0xBF58_476D_1CE4_E5B9) as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Where a key is in a [`Table`], until the next entry is put in or taken out.
#[derive(Clone, Copy, Debug)]
pub struct Slot(usize);

/// The map. Values are looked up, inserted and removed by key; it cannot be iterated.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    slots: Vec<Option<(K, V)>>,
    len: usize,
}

impl<K: Key, V: Copy> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Copy> Table<K, V> {
    /// An empty map that owns no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), len: 0 }
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory held.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<(K, V)>>()
    }

    /// The value under `key`.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key)?;
        self.at_mut(at)
    }

    /// The value at a place, copied.
    #[inline]
    #[must_use]
    pub fn at(&self, Slot(at): Slot) -> Option<V> {
        self.slots[at].map(|(_, value)| value)
    }

    /// The value at a place.
    #[inline]
    #[must_use]
    pub fn at_mut(&mut self, Slot(at): Slot) -> Option<&mut V> {
        self.slots[at].as_mut().map(|(_, value)| value)
    }

    /// The value under `key`, copied.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        self.find(key).and_then(|slot| self.at(slot))
    }

    /// The value under `key`, put there by `default` if there was none.
    #[inline]
    pub fn entry(&mut self, key: K, default: impl FnOnce() -> V) -> &mut V {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = slot_of(&key, mask);
        loop {
            match &self.slots[at] {
                Some((held, _)) if *held == key => break,
                Some(_) => at = (at + 1) & mask,
                None => {
                    self.slots[at] = Some((key, default()));
                    self.len += 1;
                    break;
                }
            }
        }
        // The loop above ends only on a slot that holds `key`.
        &mut self.slots[at].as_mut().expect("a slot just found or filled").1
    }

    /// Takes the value under `key` out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.find(key).and_then(|slot| self.remove_at(slot))
    }

    /// Takes the value at a place out.
    #[inline]
    pub fn remove_at(&mut self, Slot(mut hole): Slot) -> Option<V> {
        let value = self.slots[hole].take().map(|(_, value)| value)?;
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some((held, _)) = &self.slots[at] {
            let home = slot_of(held, mask);
            // Move back an entry whose home lies at or before the hole on its probe path.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at].take();
                hole = at;
            }
            at = (at + 1) & mask;
        }
        Some(value)
    }

    /// Where `key` is.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &K) -> Option<Slot> {
        if self.len == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = slot_of(key, mask);
        loop {
            match &self.slots[at] {
                Some((held, _)) if held == key => return Some(Slot(at)),
                Some(_) => at = (at + 1) & mask,
                None => return None,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = core::mem::replace(&mut self.slots, vec![None; size]);
        let mask = size - 1;
        for (key, value) in old.into_iter().flatten() {
            let mut at = slot_of(&key, mask);
            while self.slots[at].is_some() {
                at = (at + 1) & mask;
            }
            self.slots[at] = Some((key, value));
        }
    }
}

#[inline]
fn slot_of<K: Key>(key: &K, mask: usize) -> usize {
    (key.hash() as usize) & mask
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Colliding(u16);

    impl Key for Colliding {
        fn hash(&self) -> u64 {
            u64::from(self.0 % 5)
        }
    }

    proptest! {
        #[test]
        fn table_agrees_with_a_tree_under_collisions(steps in prop::collection::vec((0u16..40, 0u8..3, any::<u32>()), 0..400)) {
            let mut table = Table::new();
            let mut tree = BTreeMap::new();
            for (key, what, value) in steps {
                match what {
                    0 => {
                        *table.entry(Colliding(key), || 0) = value;
                        tree.insert(key, value);
                    }
                    1 => prop_assert_eq!(table.remove(&Colliding(key)), tree.remove(&key)),
                    _ => prop_assert_eq!(table.get(&Colliding(key)), tree.get(&key).copied()),
                }
                prop_assert_eq!(table.len(), tree.len());
            }
            for (key, value) in tree {
                prop_assert_eq!(table.get(&Colliding(key)), Some(value));
            }
        }
    }
}
