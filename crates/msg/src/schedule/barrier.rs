//! All wait for all.

use alloc::vec;
use alloc::vec::Vec;

use super::block::Fold;
use super::{Algorithm, Builder, Plan, Region, Step, add, subtract};

const NOTHING: Region = Region { offset: 0, length: 0 };

pub(super) fn plan(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    match algorithm {
        Algorithm::Linear => linear(&mut builder),
        Algorithm::Binomial => binomial(&mut builder),
        Algorithm::RecursiveDoubling => recursive_doubling(&mut builder),
        _ => dissemination(&mut builder),
    }
    builder.finish(algorithm, NOTHING, NOTHING, 0)
}

const fn to(peer: u32) -> Step {
    Step::Send { peer, region: NOTHING }
}

const fn from(peer: u32) -> Step {
    Step::Recv { peer, region: NOTHING }
}

/// Dissemination (Hensgen, Finkel, Manber 1988): in round k, signal the rank 2^k above.
fn dissemination(builder: &mut Builder<'_>) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    let mut distance = 1;
    while distance < size {
        builder.round(vec![to(add(rank, distance, size)), from(subtract(rank, distance, size))]);
        distance *= 2;
    }
}

/// All tell rank 0, which tells all.
fn linear(builder: &mut Builder<'_>) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    if rank == 0 {
        builder.round((1..size).map(from).collect::<Vec<_>>());
        builder.round((1..size).map(to).collect::<Vec<_>>());
    } else {
        builder.round(vec![to(0)]);
        builder.round(vec![from(0)]);
    }
}

/// Up a binomial tree to rank 0, and down again.
fn binomial(builder: &mut Builder<'_>) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    let below = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
    let children: Vec<u32> =
        (0..32).map(|bit| 1 << bit).take_while(|bit| *bit < below).map(|bit| rank + bit).collect();
    let children = || children.iter().copied().filter(|child| *child < size);
    for child in children() {
        builder.round(vec![from(child)]);
    }
    if rank > 0 {
        builder.round(vec![to(rank - below)]);
        builder.round(vec![from(rank - below)]);
    }
    for child in children().rev() {
        builder.round(vec![to(child)]);
    }
}

/// Each tells a partner in every dimension of a hypercube; ranks beyond it tell a neighbour first, and hear of
/// it last.
fn recursive_doubling(builder: &mut Builder<'_>) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    let fold = Fold::new(size);
    let (active, partner) = (fold.active_of(rank), fold.partner(rank));
    if let Some(partner) = partner {
        builder.round(vec![if active.is_some() { from(partner) } else { to(partner) }]);
    }
    if let Some(active) = active {
        for dimension in 0..fold.active.ilog2() {
            let peer = fold.rank_of(active ^ 1 << dimension);
            builder.round(vec![to(peer), from(peer)]);
        }
    }
    if let Some(partner) = partner {
        builder.round(vec![if active.is_some() { to(partner) } else { from(partner) }]);
    }
}
