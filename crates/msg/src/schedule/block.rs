//! Blocks of a vector, one per rank, and the folding of ranks beyond a power of two.

use alloc::vec::Vec;

use super::{Amount, Call, Region};

/// Contiguous blocks, one per rank, in rank order.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Where block i begins; one more than there are blocks.
    starts: Vec<u64>,
}

impl Blocks {
    /// The blocks of a call: by rank as given, or all alike. For an all-to-all, those sent.
    pub(crate) fn of(call: &Call<'_>) -> Self {
        match call.amount {
            Amount::Each(bytes) => Self::from_lengths((0..call.size).map(|_| bytes)),
            Amount::ByRank(list) => Self::from_lengths(list.iter().copied()),
            Amount::Exchange { send, .. } => Self::from_lengths(send.iter().copied()),
        }
    }

    pub(crate) fn from_lengths(lengths: impl Iterator<Item = u64>) -> Self {
        let mut at = 0;
        let mut starts = Vec::from([0]);
        starts.extend(lengths.map(|bytes| {
            at += bytes;
            at
        }));
        Self { starts }
    }

    /// A vector of `bytes` cut into `count` blocks of whole elements, the first ones longer if they
    /// cannot be alike.
    pub(crate) fn cut(bytes: u64, unit: u64, count: u32) -> Self {
        let elements = bytes / unit;
        let (each, longer) = (elements / u64::from(count), elements % u64::from(count));
        Self::from_lengths((0..u64::from(count)).map(|index| (each + u64::from(index < longer)) * unit))
    }

    pub(crate) fn bytes(&self, block: u32) -> u64 {
        self.starts[block as usize + 1] - self.starts[block as usize]
    }

    pub(crate) fn total(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Block `block`, in a workspace whose vector begins at `base`.
    pub(crate) fn region(&self, base: u64, block: u32) -> Region {
        self.range(base, block, block + 1)
    }

    /// Blocks `first` to `end` (not included).
    pub(crate) fn range(&self, base: u64, first: u32, end: u32) -> Region {
        let (start, stop) = (self.starts[first as usize], self.starts[end as usize]);
        Region { offset: base + start, length: stop - start }
    }
}

/// The ranks beyond the largest power of two folded into their neighbours: of the first `2 * extra`
/// ranks, each even one hands its part to the odd one above and sits out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    /// How many take part: a power of two.
    pub(crate) active: u32,
    /// How many sit out.
    pub(crate) extra: u32,
}

impl Fold {
    pub(crate) const fn new(size: u32) -> Self {
        let active = 1 << size.ilog2();
        Self { active, extra: size - active }
    }

    /// A rank's number among those that take part, `None` if it sits out.
    pub(crate) const fn active_of(&self, rank: u32) -> Option<u32> {
        if rank >= 2 * self.extra {
            Some(rank - self.extra)
        } else if rank % 2 == 1 {
            Some(rank / 2)
        } else {
            None
        }
    }

    /// The rank of one that takes part.
    pub(crate) const fn rank_of(&self, active: u32) -> u32 {
        if active < self.extra { 2 * active + 1 } else { active + self.extra }
    }

    /// The partner of a rank in folding, if it has one.
    pub(crate) const fn partner(&self, rank: u32) -> Option<u32> {
        if rank < 2 * self.extra { Some(rank ^ 1) } else { None }
    }

    /// The blocks (by rank) that active numbers `first` to `end` stand for.
    pub(crate) const fn blocks(&self, first: u32, end: u32) -> (u32, u32) {
        (self.first_block(first), self.first_block(end))
    }

    const fn first_block(&self, active: u32) -> u32 {
        if active < self.extra { 2 * active } else { active + self.extra }
    }
}
