//! All to all, each something else.
//!
//! The workspace: what is sent, then what is received, then scratch.

use alloc::vec;
use alloc::vec::Vec;

use super::block::Blocks;
use super::{Algorithm, Amount, Builder, Plan, Region, Step, add, subtract};

pub(super) fn plan(mut builder: Builder<'_>, algorithm: Algorithm) -> Plan {
    let call = builder.call;
    let (rank, size) = (call.rank, call.size);
    let outgoing = Blocks::of(call);
    let incoming = match call.amount {
        Amount::Exchange { receive, .. } => Blocks::from_lengths(receive.iter().copied()),
        _ => outgoing.clone(),
    };
    let base = outgoing.total();
    let send = |peer| Step::Send { peer, region: outgoing.region(0, peer) };
    let recv = |peer| Step::Recv { peer, region: incoming.region(base, peer) };
    let own = Step::Copy { from: outgoing.region(0, rank).offset, region: incoming.region(base, rank) };
    let mut workspace = base + incoming.total();
    match algorithm {
        Algorithm::Scattered => {
            let mut steps = Vec::new();
            steps.extend((1..size).map(|distance| recv(add(rank, distance, size))));
            steps.extend((1..size).map(|distance| send(subtract(rank, distance, size))));
            steps.push(own);
            builder.bulk(steps);
        }
        Algorithm::Pairwise => {
            builder.bulk(vec![own]);
            for distance in 1..size {
                let (to, from) = if size.is_power_of_two() {
                    (rank ^ distance, rank ^ distance)
                } else {
                    (add(rank, distance, size), subtract(rank, distance, size))
                };
                builder.bulk(vec![send(to), recv(from)]);
            }
        }
        _ => {
            brucks(&mut builder, outgoing.bytes(0));
            workspace += base + 2 * base;
        }
    }
    let input = Region { offset: 0, length: base };
    let output = Region { offset: base, length: incoming.total() };
    builder.finish(algorithm, input, output, workspace)
}

/// Bruck et al. (1997): rotate, send in round k all blocks whose number has bit k, rotate back.
fn brucks(builder: &mut Builder<'_>, bytes: u64) {
    let (rank, size) = (builder.call.rank, builder.call.size);
    let total = bytes * u64::from(size);
    let at = |base: u64, index: u32| Region { offset: base + bytes * u64::from(index), length: bytes };
    let (result, rotated, packed, unpacked) = (total, 2 * total, 3 * total, 4 * total);
    builder.bulk(
        (0..size)
            .map(|index| Step::Copy {
                from: at(0, add(rank, index, size)).offset,
                region: at(rotated, index),
            })
            .collect(),
    );
    let mut distance = 1;
    while distance < size {
        let chosen = (0..size).filter(|index| index & distance != 0).collect::<Vec<_>>();
        let place = |base: u64, position: usize| at(base, position as u32);
        builder.bulk(
            chosen
                .iter()
                .enumerate()
                .map(|(position, index)| Step::Copy {
                    from: at(rotated, *index).offset,
                    region: place(packed, position),
                })
                .collect(),
        );
        let length = bytes * chosen.len() as u64;
        let mut steps = vec![
            Step::Send { peer: add(rank, distance, size), region: Region { offset: packed, length } },
            Step::Recv { peer: subtract(rank, distance, size), region: Region { offset: unpacked, length } },
        ];
        steps.extend(chosen.iter().enumerate().map(|(position, index)| Step::Copy {
            from: place(unpacked, position).offset,
            region: at(rotated, *index),
        }));
        builder.bulk(steps);
        distance <<= 1;
    }
    builder.bulk(
        (0..size)
            .map(|index| Step::Copy {
                from: at(rotated, index).offset,
                region: at(result, subtract(rank, index, size)),
            })
            .collect(),
    );
}
