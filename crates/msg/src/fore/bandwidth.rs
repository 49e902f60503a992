//! Reserved bandwidth, link by link: who gets it.
//!
//! A call gets its target on every link of its path, or what is left, if that is its minimum or more; else
//! nothing is reserved anywhere.

use alloc::vec::Vec;

/// What is reserved on each link, kbit/s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// By number of the link: what it carries, what is reserved.
    links: Vec<(u32, u32)>,
}

impl Bandwidth {
    /// Links that carry so much each, kbit/s.
    #[must_use]
    pub fn new(capacities: impl IntoIterator<Item = u32>) -> Self {
        Self { links: capacities.into_iter().map(|capacity| (capacity, 0)).collect() }
    }

    /// Reserves on every link of a path; returns what is granted, `None` where the minimum does not fit.
    pub fn grant(&mut self, path: &[u32], target: u32, minimum: u32) -> Option<u32> {
        let left = |link: &u32| self.links.get(*link as usize).map_or(0, |(capacity, used)| capacity - used);
        let granted = path.iter().map(left).min().unwrap_or(target).min(target);
        if granted < minimum {
            return None;
        }
        for &link in path {
            if let Some((_, used)) = self.links.get_mut(link as usize) {
                *used += granted;
            }
        }
        Some(granted)
    }

    /// Gives back what was granted.
    pub fn release(&mut self, path: &[u32], granted: u32) {
        for &link in path {
            if let Some((_, used)) = self.links.get_mut(link as usize) {
                *used -= granted;
            }
        }
    }

    /// What is reserved on a link, kbit/s.
    #[must_use]
    pub fn reserved(&self, link: u32) -> u32 {
        self.links.get(link as usize).map_or(0, |(_, used)| *used)
    }
}
