//! All to all, everything.

use alloc::vec;
use alloc::vec::Vec;

use super::block::{Blocks, Fold};
use super::{Algorithm, Builder, Plan, Region, Step, add, subtract};

pub(super) fn plan(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let blocks = Blocks::of(call);
    let total = blocks.total();
    let me = call.rank;
    let mut workspace = total;
    match algorithm {
        Algorithm::RecursiveDoubling => recursive_doubling(&mut builder, &blocks, 0, me, |index| index),
        Algorithm::Ring => ring(&mut builder, &blocks, 0, me, |index| index),
        _ => {
            brucks(&mut builder, &blocks);
            workspace = 2 * total;
        }
    }
    builder.finish(algorithm, blocks.region(0, me), Region { offset: 0, length: total }, workspace)
}

/// Each rank passes on to its right what it got from its left: p - 1 rounds.
pub(super) fn ring(
    builder: &mut Builder<'_>,
    blocks: &Blocks,
    base: u64,
    me: u32,
    rank_of: impl Fn(u32) -> u32,
) {
    let size = builder.call.size;
    let (right, left) = (rank_of(add(me, 1, size)), rank_of(subtract(me, 1, size)));
    for round in 0..size - 1 {
        let outgoing = blocks.region(base, subtract(me, round, size));
        let incoming = blocks.region(base, subtract(me, round + 1, size));
        builder.bulk(vec![
            Step::Send { peer: right, region: outgoing },
            Step::Recv { peer: left, region: incoming },
        ]);
    }
}

/// In round k, groups of 2^k exchange all they have; ranks beyond a power of two are folded.
pub(super) fn recursive_doubling(
    builder: &mut Builder<'_>,
    blocks: &Blocks,
    base: u64,
    me: u32,
    rank_of: impl Fn(u32) -> u32,
) {
    let size = builder.call.size;
    let fold = Fold::new(size);
    let everything = blocks.range(base, 0, size);
    let Some(active) = fold.active_of(me) else {
        // Hands its block to its partner, and gets everything in the end.
        let partner = rank_of(me + 1);
        builder.bulk(vec![Step::Send { peer: partner, region: blocks.region(base, me) }]);
        builder.bulk(vec![Step::Recv { peer: partner, region: everything }]);
        return;
    };
    let partner = fold.partner(me);
    if let Some(partner) = partner {
        let region = blocks.region(base, partner);
        builder.bulk(vec![Step::Recv { peer: rank_of(partner), region }]);
    }
    let held = |group: u32, mask: u32| {
        let first = group & !(mask - 1);
        let (first, end) = fold.blocks(first, first + mask);
        blocks.range(base, first, end)
    };
    let mut mask = 1;
    while mask < fold.active {
        let other = active ^ mask;
        let peer = rank_of(fold.rank_of(other));
        builder.bulk(vec![
            Step::Send { peer, region: held(active, mask) },
            Step::Recv { peer, region: held(other, mask) },
        ]);
        mask <<= 1;
    }
    if let Some(partner) = partner {
        builder.bulk(vec![Step::Send { peer: rank_of(partner), region: everything }]);
    }
}

/// Bruck et al. (1997): blocks are gathered in the order from oneself upward, in ceil(log2 p)
/// rounds, and rotated into place at the end. The rotated vector lies behind the result.
fn brucks(builder: &mut Builder<'_>, blocks: &Blocks) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    let base = blocks.total();
    let owner = |index: u32, of: u32| add(of, index, size);
    let rotated = |of: u32| Blocks::from_lengths((0..size).map(|index| blocks.bytes(owner(index, of))));
    let mine = rotated(rank);
    let own = blocks.region(0, rank);
    builder.bulk(vec![Step::Copy { from: own.offset, region: mine.region(base, 0) }]);
    let mut have = 1;
    while have < size {
        let count = have.min(size - have);
        builder.bulk(vec![
            Step::Send { peer: subtract(rank, have, size), region: mine.range(base, 0, count) },
            Step::Recv { peer: add(rank, have, size), region: mine.range(base, have, have + count) },
        ]);
        have += count;
    }
    let back = |index| Step::Copy {
        from: mine.region(base, index).offset,
        region: blocks.region(0, owner(index, rank)),
    };
    builder.bulk((1..size).map(back).collect::<Vec<_>>());
}
