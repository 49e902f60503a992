//! Ring allreduce: the sum over all ranks of a vector, on every rank.
//!
//! Reduce-scatter and then allgather around the ring: 2 (p - 1) rounds, in each of which every rank
//! passes one of p pieces to its right neighbour.

use std::ops::Range;

use crate::comm::{Comm, Incoming, Outgoing, Rank, Source, Tag, TagMatch, Work};
use crate::data::{add, digest, digest_of, share};
use crate::outcome::{Outcome, ProgramError, elapsed};
use crate::reference::Reference;

/// The kind of work of one addition. Live, making the numbers counts with it.
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

/// Where the pieces of the vector lie; the first ones are longer by one.
#[derive(Clone, Copy)]
struct Pieces {
    each: usize,
    longer: usize,
}

impl Pieces {
    fn of(self, index: usize) -> Range<usize> {
        let start = index * self.each + index.min(self.longer);
        start..start + self.each + usize::from(index < self.longer)
    }
}

/// Runs it; every rank compares its result with that of [`sequential`], which is computed once for all that
/// share `reference`. Numbers lie as they travel, 8 bytes each, little-endian: a piece is sent from where it is, and one
/// that is complete is received to where it belongs.
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
    let pieces = Pieces { each: elements / size, longer: elements % size };
    let mut incoming = vec![[0; 8]; pieces.of(0).len()];
    let mut vector = Vec::new();
    // Outside of the loop, whose steps wait: a division is dear beside what a step does here.
    let (right, left) = (Rank(((rank + 1) % size) as u32), Rank(((rank + size - 1) % size) as u32));
    let start = comm.now();
    for _ in 0..params.rounds {
        let made = || (0..elements).map(|index| contribution(rank, index).to_le_bytes()).collect();
        vector = comm.compute(AROUND, made).await;
        // Piece `rank` leaves first, and what is taken leaves next: while reducing up to piece `rank + 1`, which is the
        // one completed here, and then on with that.
        let mut number = rank;
        for step in 0..2 * (size - 1) {
            let reducing = step < size - 1;
            let give = pieces.of(number);
            number = if number == 0 { size - 1 } else { number - 1 };
            let take = pieces.of(number);
            let taken = take.len();
            let [given, place] = vector.get_disjoint_mut([give, take]).expect("pieces do not overlap");
            let buffer = if reducing { &mut incoming[..taken] } else { place };
            let tag = Tag(step as u32);
            let sends = [Outgoing { to: right, tag, message: given.as_flattened() }];
            let mut receives = [Incoming {
                from: Source::Rank(left),
                tag: TagMatch::Tag(tag),
                buffer: buffer.as_flattened_mut(),
                status: None,
            }];
            comm.exchange(&sends, &mut receives).await?;
            if reducing && taken > 0 {
                let (received, sums) = (&incoming[..taken], &mut vector[pieces.of(number)]);
                comm.compute(Work { kind: ADD, count: taken as u64 }, || add(received, sums)).await;
            }
        }
    }
    let elapsed = elapsed(start, comm.now());
    let digest = digest(vector.as_flattened().iter().copied());
    let ranks = comm.size();
    let alone = || digest_of(&if params.rounds == 0 { Vec::new() } else { sequential(params, ranks) });
    let verified = digest == reference.digest(alone);
    Ok(Outcome::new(elapsed, digest, verified))
}
