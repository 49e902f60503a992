//! Reductions.
//!
//! Operands are combined in the order of ranks wherever the operation does not commute: groups of
//! adjoining ranks are merged, the lower on the left.

use alloc::vec;

use super::block::{Blocks, Fold};
use super::{Algorithm, Builder, Plan, Region, Step, add, allgather, subtract};

const NOTHING: Region = Region { offset: 0, length: 0 };

pub(super) fn reduce(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let bytes = Blocks::of(call).bytes(0);
    let whole = Region { offset: 0, length: bytes };
    // Numbering from the root mixes the order of ranks.
    let root = if call.commutative { call.root } else { 0 };
    if algorithm == Algorithm::Binomial {
        binomial(&mut builder, root, whole);
    } else if algorithm == Algorithm::Linear {
        if call.rank == root {
            let others = (0..call.size).filter(|rank| *rank != root);
            builder.bulk(others.map(|peer| Step::Reduce { peer, region: whole }).collect());
        } else {
            builder.bulk(vec![Step::Send { peer: root, region: whole }]);
        }
    } else {
        let fold = Fold::new(call.size);
        let pieces = Blocks::cut(bytes, call.unit, fold.active);
        if let Some(active) = fold_in(&mut builder, &fold, whole) {
            halve(&mut builder, &fold, &pieces, active, Order::Nearest);
            let collector = fold.active_of(root).unwrap_or(root / 2);
            collect(&mut builder, &fold, &pieces, active, collector);
        }
        if fold.active_of(root).is_none() {
            // The root sat out; its partner stands in for it.
            pass(&mut builder, root + 1, root, whole);
        }
    }
    pass(&mut builder, root, call.root, whole);
    let output = if call.rank == call.root { whole } else { NOTHING };
    builder.finish(algorithm, whole, output, bytes)
}

pub(super) fn allreduce(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let (rank, size) = (call.rank, call.size);
    let bytes = Blocks::of(call).bytes(0);
    let whole = Region { offset: 0, length: bytes };
    if algorithm == Algorithm::Ring {
        let pieces = Blocks::cut(bytes, call.unit, size);
        let (right, left) = (add(rank, 1, size), subtract(rank, 1, size));
        for round in 0..size - 1 {
            builder.bulk(vec![
                Step::Send { peer: right, region: pieces.region(0, subtract(rank, round + 1, size)) },
                Step::Reduce { peer: left, region: pieces.region(0, subtract(rank, round + 2, size)) },
            ]);
        }
        // Piece `rank` is complete here now.
        allgather::ring(&mut builder, &pieces, 0, rank, |index| index);
    } else {
        let fold = Fold::new(size);
        if let Some(active) = fold_in(&mut builder, &fold, whole) {
            if algorithm == Algorithm::RecursiveDoubling {
                let mut mask = 1;
                while mask < fold.active {
                    let peer = fold.rank_of(active ^ mask);
                    builder
                        .bulk(vec![Step::Send { peer, region: whole }, Step::Reduce { peer, region: whole }]);
                    mask <<= 1;
                }
            } else {
                let pieces = Blocks::cut(bytes, call.unit, fold.active);
                halve(&mut builder, &fold, &pieces, active, Order::Nearest);
                spread(&mut builder, &fold, &pieces, active);
            }
        }
        if let Some(partner) = fold.partner(rank) {
            let step = if fold.active_of(rank).is_some() {
                Step::Send { peer: partner, region: whole }
            } else {
                Step::Recv { peer: partner, region: whole }
            };
            builder.bulk(vec![step]);
        }
    }
    builder.finish(algorithm, whole, whole, bytes)
}

pub(super) fn reduce_scatter(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let (rank, size) = (call.rank, call.size);
    let blocks = Blocks::of(call);
    let whole = Region { offset: 0, length: blocks.total() };
    let own = blocks.region(0, rank);
    match algorithm {
        Algorithm::Pairwise => {
            // Receives are combined with the own block, which nobody else is sent.
            for distance in 1..size {
                let (to, from) = (add(rank, distance, size), subtract(rank, distance, size));
                builder.bulk(vec![
                    Step::Send { peer: to, region: blocks.region(0, to) },
                    Step::Reduce { peer: from, region: own },
                ]);
            }
        }
        Algorithm::RecursiveHalving => {
            let fold = Fold::new(size);
            // The pieces of the active ranks: their own blocks, and their partners'.
            let pieces = Blocks::from_lengths((0..fold.active).map(|active| {
                let (first, end) = fold.blocks(active, active + 1);
                blocks.range(0, first, end).length
            }));
            if let Some(active) = fold_in(&mut builder, &fold, whole) {
                halve(&mut builder, &fold, &pieces, active, Order::Farthest);
            }
            if let Some(partner) = fold.partner(rank) {
                let step = if fold.active_of(rank).is_some() {
                    Step::Send { peer: partner, region: blocks.region(0, partner) }
                } else {
                    Step::Recv { peer: partner, region: own }
                };
                builder.bulk(vec![step]);
            }
        }
        _ => {
            binomial(&mut builder, 0, whole);
            if rank == 0 {
                builder.bulk(
                    (1..size).map(|peer| Step::Send { peer, region: blocks.region(0, peer) }).collect(),
                );
            } else {
                builder.bulk(vec![Step::Recv { peer: 0, region: own }]);
            }
        }
    }
    builder.finish(algorithm, whole, own, whole.length)
}

/// Recursive doubling; the workspace: the result, what this rank's group has so far, a message.
pub(super) fn scan(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let bytes = Blocks::of(call).bytes(0);
    let inclusive = call.collective == super::Collective::Scan;
    let result = Region { offset: 0, length: bytes };
    let partial = Region { offset: bytes, length: bytes };
    let message = Region { offset: 2 * bytes, length: bytes };
    builder.bulk(vec![Step::Copy { from: result.offset, region: partial }]);
    let mut empty = !inclusive;
    let mut mask = 1;
    while mask < call.size {
        let peer = call.rank ^ mask;
        if peer < call.size {
            let mut steps = vec![Step::Send { peer, region: partial }, Step::Recv { peer, region: message }];
            let below = peer < call.rank;
            steps.push(Step::Combine { from: message.offset, region: partial, after: !below });
            if below {
                steps.push(if empty {
                    Step::Copy { from: message.offset, region: result }
                } else {
                    Step::Combine { from: message.offset, region: result, after: false }
                });
                empty = false;
            }
            builder.bulk(steps);
        }
        mask <<= 1;
    }
    let output = if empty { NOTHING } else { result };
    builder.finish(algorithm, result, output, 3 * bytes)
}

/// A binomial tree towards `root`.
fn binomial(builder: &mut Builder<'_>, root: u32, region: Region) {
    let call = builder.call;
    let me = subtract(call.rank, root, call.size);
    let mut mask = 1;
    while mask < call.size {
        if me & mask != 0 {
            builder.bulk(vec![Step::Send { peer: add(me - mask, root, call.size), region }]);
            return;
        }
        if me + mask < call.size {
            builder.bulk(vec![Step::Reduce { peer: add(me + mask, root, call.size), region }]);
        }
        mask <<= 1;
    }
}

/// Sends a region from one rank to another, unless they are the same.
fn pass(builder: &mut Builder<'_>, from: u32, to: u32, region: Region) {
    if from == to {
        return;
    }
    if builder.call.rank == from {
        builder.bulk(vec![Step::Send { peer: to, region }]);
    } else if builder.call.rank == to {
        builder.bulk(vec![Step::Recv { peer: from, region }]);
    }
}

/// Folds the ranks beyond a power of two; the number among those that take part, if this one does.
fn fold_in(builder: &mut Builder<'_>, fold: &Fold, whole: Region) -> Option<u32> {
    let rank = builder.call.rank;
    let active = fold.active_of(rank);
    if let Some(partner) = fold.partner(rank) {
        builder.bulk(vec![if active.is_some() {
            Step::Reduce { peer: partner, region: whole }
        } else {
            Step::Send { peer: partner, region: whole }
        }]);
    }
    active
}

/// In which order partners are met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Neighbours first: keeps the order of operands, but leaves pieces in bit-reversed order.
    Nearest,
    /// Farthest first: leaves piece i with number i, but mixes the order of operands.
    Farthest,
}

/// Recursive halving: each round exchanges halves of what is left, until each holds one piece.
fn halve(builder: &mut Builder<'_>, fold: &Fold, pieces: &Blocks, active: u32, order: Order) {
    let (mut first, mut count) = (0, fold.active);
    for round in 0..fold.active.ilog2() {
        let bit = match order {
            Order::Nearest => 1 << round,
            Order::Farthest => fold.active >> (round + 1),
        };
        let peer = fold.rank_of(active ^ bit);
        count /= 2;
        let (keep, give) = if active & bit == 0 { (first, first + count) } else { (first + count, first) };
        builder.bulk(vec![
            Step::Send { peer, region: pieces.range(0, give, give + count) },
            Step::Reduce { peer, region: pieces.range(0, keep, keep + count) },
        ]);
        first = keep;
    }
}

/// Undoes [`halve`] with [`Order::Nearest`]: all get all pieces.
fn spread(builder: &mut Builder<'_>, fold: &Fold, pieces: &Blocks, active: u32) {
    for round in (0..fold.active.ilog2()).rev() {
        let peer = fold.rank_of(active ^ (1 << round));
        let (mine, other) = halves(fold, active, round);
        builder.bulk(vec![
            Step::Send { peer, region: pieces.range(0, mine.0, mine.1) },
            Step::Recv { peer, region: pieces.range(0, other.0, other.1) },
        ]);
    }
}

/// The same, towards one only.
fn collect(builder: &mut Builder<'_>, fold: &Fold, pieces: &Blocks, active: u32, collector: u32) {
    for round in (0..fold.active.ilog2()).rev() {
        let bit = 1 << round;
        let peer = fold.rank_of(active ^ bit);
        let (mine, other) = halves(fold, active, round);
        if (active ^ collector) & bit != 0 {
            builder.bulk(vec![Step::Send { peer, region: pieces.range(0, mine.0, mine.1) }]);
            return;
        }
        builder.bulk(vec![Step::Recv { peer, region: pieces.range(0, other.0, other.1) }]);
    }
}

/// What `active` and its partner of this round held after it: piece ranges.
fn halves(fold: &Fold, active: u32, round: u32) -> ((u32, u32), (u32, u32)) {
    let (mut first, mut count) = (0, fold.active);
    for earlier in 0..round {
        count /= 2;
        if active & (1 << earlier) != 0 {
            first += count;
        }
    }
    count /= 2;
    let (low, high) = ((first, first + count), (first + count, first + 2 * count));
    if active & (1 << round) == 0 { (low, high) } else { (high, low) }
}
