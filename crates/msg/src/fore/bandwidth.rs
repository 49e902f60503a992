//! Reserved bandwidth, link by link: who gets it.
//!
//! A call gets its target on every link of its path, or what is left, if that is its minimum or more; else
//! nothing is reserved anywhere. One account for permanent circuits, switched ones and trees.

use alloc::vec::Vec;

/// What a link is short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// The link, by its number.
    pub link: u32,
    /// What it carries, bit/s.
    pub capacity_bit_s: u64,
    /// What is reserved there, bit/s.
    pub reserved_bit_s: u64,
}

/// What is reserved on each link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// By number of the link: what it carries, what is reserved, bit/s.
    links: Vec<(u64, u64)>,
}

impl Bandwidth {
    /// Links that carry so much each, bit/s.
    #[must_use]
    pub fn new(capacities: impl IntoIterator<Item = u64>) -> Self {
        Self { links: capacities.into_iter().map(|capacity| (capacity, 0)).collect() }
    }

    /// Reserves on every link of a path, bit/s; returns what is granted. What is left counts in whole kbit/s, as the
    /// interface does. A link without a number here carries anything.
    ///
    /// # Errors
    /// [`Short`] names the first link that has less than the minimum left; nothing is reserved then.
    pub fn grant(&mut self, path: &[u32], target: u64, minimum: u64) -> Result<u64, Short> {
        let mut granted = target;
        for &link in path {
            let Some(&(capacity_bit_s, reserved_bit_s)) = self.links.get(link as usize) else { continue };
            let left = capacity_bit_s - reserved_bit_s;
            if minimum > left {
                return Err(Short { link, capacity_bit_s, reserved_bit_s });
            }
            if granted > left {
                granted = (left - left % 1000).max(minimum);
            }
        }
        for &link in path {
            if let Some((_, reserved)) = self.links.get_mut(link as usize) {
                *reserved += granted;
            }
        }
        Ok(granted)
    }

    /// Gives back what was granted.
    pub fn release(&mut self, path: &[u32], granted: u64) {
        for &link in path {
            if let Some((_, reserved)) = self.links.get_mut(link as usize) {
                *reserved -= granted;
            }
        }
    }

    /// What is reserved on a link, bit/s.
    #[must_use]
    pub fn reserved(&self, link: u32) -> u64 {
        self.links.get(link as usize).map_or(0, |(_, reserved)| *reserved)
    }

    /// What a link carries, bit/s; 0 where there is none of this number.
    #[must_use]
    pub fn capacity(&self, link: u32) -> u64 {
        self.links.get(link as usize).map_or(0, |(capacity, _)| *capacity)
    }
}
