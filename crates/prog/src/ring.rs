//! Ring allreduce: the sum over all ranks of a vector, on every rank.
//!
//! Reduce-scatter and then allgather around the ring: 2 (p - 1) rounds, in each of which every rank
//! passes one of p pieces to its right neighbour.

use crate::comm::{Comm, Incoming, Outgoing, Rank, Source, Tag, TagMatch, Work};
use crate::data::{add, digest_of, get, put, share};
use crate::outcome::{Outcome, ProgramError, elapsed};
use crate::reference::Reference;

/// The kind of work of one addition. Live, making, packing and unpacking the numbers count with it.
pub const ADD: &str = "add";

/// What belongs to the additions, and is counted with them.
const AROUND: Work = Work { kind: ADD, count: 0 };

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingParams {
    /// The length of the vector, numbers of 8 bytes.
    pub elements: u64,
    /// How often.
    pub rounds: u64,
}

/// What rank `rank` contributes to the sum of place `index`.
fn contribution(rank: usize, index: usize) -> f64 {
    1.0 / (1.0 + rank as f64 + index as f64 * 0.125)
}

/// The sum as the ring makes it, piece by piece in the order in which its ranks add, computed alone.
#[must_use]
pub fn sequential(params: &RingParams, ranks: u32) -> Vec<f64> {
    let (elements, ranks) = (params.elements as usize, ranks as usize);
    let mut result = vec![0.0; elements];
    for piece in 0..ranks {
        let (start, length) = share(elements, ranks, piece);
        for (place, sum) in result[start..start + length].iter_mut().enumerate() {
            // Piece i starts at rank i and is finished by the rank before it on the ring.
            *sum = contribution(piece, start + place);
            for step in 1..ranks {
                *sum += contribution((piece + step) % ranks, start + place);
            }
        }
    }
    result
}

/// Runs it; every rank compares its result with that of [`sequential`], which is computed once for all that
/// share `reference`.
///
/// # Errors
/// [`ProgramError`] from a call.
pub async fn ring<C: Comm>(
    comm: &mut C,
    params: &RingParams,
    reference: &Reference,
) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0 as usize, comm.size() as usize);
    let elements = params.elements as usize;
    let (right, left) = (Rank(((rank + 1) % size) as u32), Rank(((rank + size - 1) % size) as u32));
    let longest = share(elements, size, 0).1;
    let (mut outgoing, mut incoming) = (vec![0; longest * 8], vec![0; longest * 8]);
    let mut vector = Vec::new();
    let start = comm.now();
    for _ in 0..params.rounds {
        let made = || (0..elements).map(|index| contribution(rank, index)).collect();
        vector = comm.compute(AROUND, made).await;
        for step in 0..2 * (size - 1) {
            let reducing = step < size - 1;
            // While reducing, piece `rank` leaves first; piece `rank + 1` is the one completed here.
            let round = step % (size - 1);
            let first = if reducing { rank } else { rank + 1 };
            let give = (first + size - round) % size;
            let take = (give + size - 1) % size;
            let (give_at, give_length) = share(elements, size, give);
            let (take_at, take_length) = share(elements, size, take);
            let give = &vector[give_at..give_at + give_length];
            comm.compute(AROUND, || put(give, &mut outgoing[..give_length * 8])).await;
            let sends =
                [Outgoing { to: right, tag: Tag(step as u32), message: &outgoing[..give_length * 8] }];
            let mut receives = [Incoming {
                from: Source::Rank(left),
                tag: TagMatch::Tag(Tag(step as u32)),
                buffer: &mut incoming[..take_length * 8],
                status: None,
            }];
            comm.exchange(&sends, &mut receives).await?;
            let place = &mut vector[take_at..take_at + take_length];
            let added = if reducing { take_length } else { 0 };
            comm.compute(Work { kind: ADD, count: added as u64 }, || {
                let received = &incoming[..take_length * 8];
                if reducing {
                    add(received, place);
                } else {
                    get(received, place);
                }
            })
            .await;
        }
    }
    let elapsed = elapsed(start, comm.now());
    let digest = digest_of(&vector);
    let ranks = comm.size();
    let alone = || digest_of(&if params.rounds == 0 { Vec::new() } else { sequential(params, ranks) });
    let verified = digest == reference.digest(alone);
    Ok(Outcome::new(elapsed, digest, verified))
}
