//! All to one, and one to all, a block each.

use alloc::vec;
use alloc::vec::Vec;

use super::block::Blocks;
use super::{Algorithm, Builder, Plan, Region, Step, add, subtract};

const NOTHING: Region = Region { offset: 0, length: 0 };

pub(super) fn gather(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let blocks = Blocks::of(call);
    let total = blocks.total();
    let own = blocks.region(0, call.rank);
    let is_root = call.rank == call.root;
    let mut workspace = total;
    if algorithm == Algorithm::Linear {
        if is_root {
            let others = (0..call.size).filter(|rank| *rank != call.root);
            builder.bulk(others.map(|peer| Step::Recv { peer, region: blocks.region(0, peer) }).collect());
        } else {
            builder.bulk(vec![Step::Send { peer: call.root, region: own }]);
        }
    } else {
        // Numbered from the root, a subtree's blocks adjoin; they lie in scratch unless that is the
        // order of ranks anyway.
        let tree = Tree::new(&builder, &blocks);
        workspace += tree.base;
        if tree.base > 0 {
            builder.bulk(vec![Step::Copy { from: own.offset, region: tree.region(tree.me, tree.me + 1) }]);
        }
        let mut mask = 1;
        while mask < call.size {
            if tree.me & mask != 0 {
                let region = tree.region(tree.me, (tree.me + mask).min(call.size));
                builder.bulk(vec![Step::Send { peer: tree.rank_of(tree.me - mask), region }]);
                break;
            }
            let child = tree.me + mask;
            if child < call.size {
                let region = tree.region(child, (child + mask).min(call.size));
                builder.bulk(vec![Step::Recv { peer: tree.rank_of(child), region }]);
            }
            mask <<= 1;
        }
        if is_root && tree.base > 0 {
            let home = |index| Step::Copy {
                from: tree.region(index, index + 1).offset,
                region: blocks.region(0, tree.rank_of(index)),
            };
            builder.bulk((1..call.size).map(home).collect::<Vec<_>>());
        }
    }
    let output = if is_root { Region { offset: 0, length: total } } else { NOTHING };
    builder.finish(algorithm, own, output, workspace)
}

pub(super) fn scatter(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let blocks = Blocks::of(call);
    let total = blocks.total();
    let own = blocks.region(0, call.rank);
    let is_root = call.rank == call.root;
    let mut workspace = total;
    if algorithm == Algorithm::Linear {
        if is_root {
            let others = (0..call.size).filter(|rank| *rank != call.root);
            builder.bulk(others.map(|peer| Step::Send { peer, region: blocks.region(0, peer) }).collect());
        } else {
            builder.bulk(vec![Step::Recv { peer: call.root, region: own }]);
        }
    } else {
        let tree = Tree::new(&builder, &blocks);
        workspace += tree.base;
        if is_root && tree.base > 0 {
            let away = |index| Step::Copy {
                from: blocks.region(0, tree.rank_of(index)).offset,
                region: tree.region(index, index + 1),
            };
            builder.bulk((1..call.size).map(away).collect::<Vec<_>>());
        }
        let mut mask = 1;
        let mut end = call.size;
        while mask < call.size {
            if tree.me & mask != 0 {
                end = (tree.me + mask).min(call.size);
                let peer = tree.rank_of(tree.me - mask);
                builder.bulk(vec![Step::Recv { peer, region: tree.region(tree.me, end) }]);
                break;
            }
            mask <<= 1;
        }
        mask >>= 1;
        while mask > 0 {
            let child = tree.me + mask;
            if child < end {
                let region = tree.region(child, end);
                builder.bulk(vec![Step::Send { peer: tree.rank_of(child), region }]);
                end = child;
            }
            mask >>= 1;
        }
        if !is_root && tree.base > 0 {
            let from = tree.region(tree.me, tree.me + 1).offset;
            builder.bulk(vec![Step::Copy { from, region: own }]);
        }
    }
    let input = if is_root { Region { offset: 0, length: total } } else { NOTHING };
    builder.finish(algorithm, input, own, workspace)
}

/// Ranks numbered from the root, with blocks of one length.
struct Tree {
    me: u32,
    root: u32,
    size: u32,
    each: u64,
    /// Where the blocks in tree order lie.
    base: u64,
}

impl Tree {
    fn new(builder: &Builder<'_>, blocks: &Blocks) -> Self {
        let call = builder.call;
        let base = if call.root == 0 { 0 } else { blocks.total() };
        let me = subtract(call.rank, call.root, call.size);
        Self { me, root: call.root, size: call.size, each: blocks.bytes(0), base }
    }

    fn rank_of(&self, index: u32) -> u32 {
        add(index, self.root, self.size)
    }

    fn region(&self, first: u32, end: u32) -> Region {
        Region {
            offset: self.base + self.each * u64::from(first),
            length: self.each * u64::from(end - first),
        }
    }
}
