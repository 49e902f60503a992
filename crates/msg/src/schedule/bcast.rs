//! One to all.

use alloc::vec;

use super::block::Blocks;
use super::{Algorithm, Builder, Plan, Region, Step, add, allgather, subtract};

pub(super) fn plan(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let bytes = Blocks::of(call).bytes(0);
    let whole = Region { offset: 0, length: bytes };
    match algorithm {
        Algorithm::Binomial => binomial(&mut builder, whole),
        Algorithm::Linear if call.rank == call.root => {
            let others = (0..call.size).filter(|rank| *rank != call.root);
            builder.bulk(others.map(|peer| Step::Send { peer, region: whole }).collect());
        }
        Algorithm::Linear => builder.bulk(vec![Step::Recv { peer: call.root, region: whole }]),
        _ => {
            // Pieces are numbered from the root; all but the last few are of the same length.
            let piece = bytes.div_ceil(u64::from(call.size));
            let pieces = Blocks::from_lengths(
                (0..u64::from(call.size))
                    .map(|index| (piece * (index + 1)).min(bytes) - (piece * index).min(bytes)),
            );
            scatter_pieces(&mut builder, &pieces);
            let me = subtract(call.rank, call.root, call.size);
            let rank_of = |index| add(index, call.root, call.size);
            if algorithm == Algorithm::ScatterRingAllgather {
                allgather::ring(&mut builder, &pieces, 0, me, rank_of);
            } else {
                allgather::recursive_doubling(&mut builder, &pieces, 0, me, rank_of);
            }
        }
    }
    let has_input = if call.rank == call.root { bytes } else { 0 };
    builder.finish(algorithm, Region { offset: 0, length: has_input }, whole, bytes)
}

/// Receive from the parent, then send to the children, the farthest first.
fn binomial(builder: &mut Builder<'_>, region: Region) {
    let call = builder.call;
    let me = subtract(call.rank, call.root, call.size);
    let mut mask = 1;
    while mask < call.size {
        if me & mask != 0 {
            builder.bulk(vec![Step::Recv { peer: add(me - mask, call.root, call.size), region }]);
            break;
        }
        mask <<= 1;
    }
    mask >>= 1;
    while mask > 0 {
        if me + mask < call.size {
            builder.bulk(vec![Step::Send { peer: add(me + mask, call.root, call.size), region }]);
        }
        mask >>= 1;
    }
}

/// Binomial scatter of pieces: each rank gets those of its subtree and passes on its children's.
fn scatter_pieces(builder: &mut Builder<'_>, pieces: &Blocks) {
    let call = builder.call;
    let me = subtract(call.rank, call.root, call.size);
    let mut mask = 1;
    let mut end = call.size;
    while mask < call.size {
        if me & mask != 0 {
            end = (me + mask).min(call.size);
            let peer = add(me - mask, call.root, call.size);
            builder.bulk(vec![Step::Recv { peer, region: pieces.range(0, me, end) }]);
            break;
        }
        mask <<= 1;
    }
    mask >>= 1;
    while mask > 0 {
        if me + mask < end {
            let peer = add(me + mask, call.root, call.size);
            builder.bulk(vec![Step::Send { peer, region: pieces.range(0, me + mask, end) }]);
            end = me + mask;
        }
        mask >>= 1;
    }
}
