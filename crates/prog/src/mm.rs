//! Matrix multiplication on a mesh of ranks, C = A B, as in Lin et al. (1995).
//!
//! A lies in row stripes on the left column of the mesh, B in column stripes on the top row. The
//! stripes of A travel along the rows, then those of B along the columns; each rank multiplies what it
//! has into its block of C, and rank 0, the master, collects the blocks.
//!
//! An element of C is the sum over k, from 0, of `A[i][k] B[k][j]`, on any mesh: the result equals the
//! sequential one bit for bit.
//!
//! Choice: a stripe is passed on from rank to rank along its row or column (on 2 x 2 that is one message
//! each). The paper does not say how wide an element is; here it is a parameter.

use std::ops::{Add, Mul};

use crate::comm::{Comm, Rank, Source, Tag, TagMatch, Work};
use crate::data::digest;
use crate::grid::Mesh;
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of one multiplication and addition.
pub const MULTIPLY_ADD: &str = "multiply-add";

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmParams {
    /// The side of the square matrices, elements; at least that of the mesh.
    pub n: u64,
    /// The width of an element: 64 or 32 bits.
    pub bits: u64,
    /// How often.
    pub rounds: u64,
    /// Ranks down the mesh; 0: what `across` leaves.
    pub down: u64,
    /// Ranks across the mesh; 0: what `down` leaves.
    pub across: u64,
}

/// An element of a matrix.
trait Element: Copy + Default + Add<Output = Self> + Mul<Output = Self> {
    const BYTES: usize;
    fn of(value: f64) -> Self;
    fn put(self, bytes: &mut [u8]);
    fn get(bytes: &[u8]) -> Self;
}

impl Element for f64 {
    const BYTES: usize = 8;

    fn of(value: f64) -> Self {
        value
    }

    fn put(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        // Chunks of as many bytes as an element has.
        Self::from_le_bytes(bytes.try_into().expect("chunks of 8 bytes"))
    }
}

impl Element for f32 {
    const BYTES: usize = 4;

    fn of(value: f64) -> Self {
        value as Self
    }

    fn put(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        // Chunks of as many bytes as an element has.
        Self::from_le_bytes(bytes.try_into().expect("chunks of 4 bytes"))
    }
}

fn put<T: Element>(values: impl IntoIterator<Item = T>, bytes: &mut [u8]) {
    for (value, place) in values.into_iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        value.put(place);
    }
}

fn get<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::get).collect()
}

fn element_of_a(row: usize, column: usize) -> f64 {
    ((row * 37 + column * 11) % 257) as f64 / 128.0 - 1.0
}

fn element_of_b(row: usize, column: usize) -> f64 {
    1.0 / (1 + (row * 5 + column * 23) % 193) as f64
}

/// `c` = `a` `b`, with `a` of rows of length `n`, `b` of rows of length `columns`.
fn multiply<T: Element>(a: &[T], b: &[T], n: usize, columns: usize, c: &mut [T]) {
    for (row, sums) in a.chunks_exact(n).zip(c.chunks_exact_mut(columns)) {
        sums.fill(T::default());
        for (factor, line) in row.iter().zip(b.chunks_exact(columns)) {
            for (sum, value) in sums.iter_mut().zip(line) {
                *sum = *sum + *factor * *value;
            }
        }
    }
}

fn whole<T: Element>(n: usize) -> Vec<u8> {
    let all = |element: fn(usize, usize) -> f64| {
        (0..n * n).map(|at| T::of(element(at / n, at % n))).collect::<Vec<_>>()
    };
    let mut c = vec![T::default(); n * n];
    multiply(&all(element_of_a), &all(element_of_b), n, n, &mut c);
    let mut bytes = vec![0; n * n * T::BYTES];
    put(c, &mut bytes);
    bytes
}

/// C computed alone: the bytes of its elements by row, little-endian.
#[must_use]
pub fn sequential(params: &MmParams) -> Vec<u8> {
    let n = params.n as usize;
    if params.bits == 32 { whole::<f32>(n) } else { whole::<f64>(n) }
}

const STRIPE_OF_A: Tag = Tag(1);
const STRIPE_OF_B: Tag = Tag(2);
const BLOCK: Tag = Tag(3);

/// Runs it; rank 0 compares C with [`sequential`]. Elapsed is from the first stripe to the last block.
///
/// The digest is of C on rank 0, the same for every mesh, and of the rank's block elsewhere.
///
/// # Errors
/// [`ProgramError`] from a call, or with a side, width or mesh that is not allowed.
pub async fn mm<C: Comm>(comm: &mut C, params: &MmParams) -> Result<Outcome, ProgramError> {
    match params.bits {
        64 => on_mesh::<f64, C>(comm, params).await,
        32 => on_mesh::<f32, C>(comm, params).await,
        value => Err(ProgramError::Parameter { name: "bits", value, allowed: "64 or 32".into() }),
    }
}

async fn on_mesh<T: Element, C: Comm>(comm: &mut C, params: &MmParams) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let mesh = Mesh::of_grid(size, params.down, params.across, params.n, 1)?;
    let n = params.n as usize;
    let ((top, rows), (left, columns)) = mesh.block(rank, n, n);
    let (row, column) = mesh.place(rank);
    let mut stripe_of_a = vec![0; rows * n * T::BYTES];
    let mut stripe_of_b = vec![0; n * columns * T::BYTES];
    if column == 0 {
        put((0..rows * n).map(|at| T::of(element_of_a(top + at / n, at % n))), &mut stripe_of_a);
    }
    if row == 0 {
        let element = |at| T::of(element_of_b(at / columns, left + at % columns));
        put((0..n * columns).map(element), &mut stripe_of_b);
    }
    let mut block = vec![T::default(); rows * columns];
    let mut message = vec![0; rows * columns * T::BYTES];
    let mut collected = vec![0; if rank == 0 { n * n * T::BYTES } else { 0 }];
    let mut incoming = vec![0; message.len()]; // rank 0's block is the largest
    let (mut first, mut odd) = (Vec::new(), Vec::new());
    let start = comm.now();
    for round in 0..params.rounds {
        pass_on(comm, mesh, (0, 1), STRIPE_OF_A, &mut stripe_of_a).await?;
        pass_on(comm, mesh, (1, 0), STRIPE_OF_B, &mut stripe_of_b).await?;
        let count = (rows * columns * n) as u64;
        comm.compute(Work { kind: MULTIPLY_ADD, count }, || {
            multiply(&get::<T>(&stripe_of_a), &get::<T>(&stripe_of_b), n, columns, &mut block);
            put(block.iter().copied(), &mut message);
        })
        .await;
        if rank > 0 {
            comm.send(Rank(0), BLOCK, &message).await?;
        } else {
            for other in 0..size {
                let ((top, rows), (left, columns)) = mesh.block(other, n, n);
                let bytes = rows * columns * T::BYTES;
                let part = if other == 0 {
                    &message
                } else {
                    let from = Source::Rank(Rank(other));
                    comm.recv(from, TagMatch::Tag(BLOCK), &mut incoming[..bytes]).await?;
                    &incoming
                };
                for (row, line) in part[..bytes].chunks_exact(columns * T::BYTES).enumerate() {
                    let at = ((top + row) * n + left) * T::BYTES;
                    collected[at..at + line.len()].copy_from_slice(line);
                }
            }
        }
        // Every round has the same result; one that differs is kept for the digest.
        let result = if rank == 0 { &collected } else { &message };
        if round == 0 {
            first.clone_from(result);
        } else if *result != first {
            odd.clone_from(result);
        }
        // What came must come again.
        if column > 0 {
            stripe_of_a.fill(0);
        }
        if row > 0 {
            stripe_of_b.fill(0);
        }
    }
    let elapsed = elapsed(start, comm.now());
    let verified = odd.is_empty() && (rank > 0 || params.rounds == 0 || first == sequential(params));
    Ok(Outcome::new(elapsed, digest(first.into_iter().chain(odd)), verified))
}

/// Receives a stripe from the rank before in the given direction, if there is one, and sends it to the
/// next.
async fn pass_on<C: Comm>(
    comm: &mut C,
    mesh: Mesh,
    (rows, columns): (i32, i32),
    tag: Tag,
    stripe: &mut [u8],
) -> Result<(), ProgramError> {
    let rank = comm.rank().0;
    if let Some(before) = mesh.beside(rank, (-rows, -columns)) {
        comm.recv(Source::Rank(Rank(before)), TagMatch::Tag(tag), stripe).await?;
    }
    if let Some(next) = mesh.beside(rank, (rows, columns)) {
        comm.send(Rank(next), tag, stripe).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_the_sum_of_its_products_in_order() {
        let params = MmParams { n: 7, bits: 64, rounds: 1, down: 0, across: 0 };
        let c = get::<f64>(&sequential(&params));
        for (at, value) in c.iter().enumerate() {
            let sum = (0..7).fold(0.0, |sum, k| sum + element_of_a(at / 7, k) * element_of_b(k, at % 7));
            assert_eq!(value.to_bits(), sum.to_bits());
        }
    }

    #[test]
    fn single_precision_is_near_double() {
        let params = |bits| MmParams { n: 20, bits, rounds: 1, down: 0, across: 0 };
        let single = get::<f32>(&sequential(&params(32)));
        let double = get::<f64>(&sequential(&params(64)));
        assert_eq!(single.len(), double.len());
        assert!(single.iter().zip(&double).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5));
        assert!(single.iter().zip(&double).any(|(a, b)| f64::from(*a) != *b));
    }
}
