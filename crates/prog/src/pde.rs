//! Poisson's equation on the unit square by successive over-relaxation on a mesh of ranks, after Akl's
//! program in Lin et al. (1995).
//!
//! The n x n inner points of a grid are cut into a checkerboard of blocks, one per rank. An iteration
//! updates the points with an even sum of row and column (red), then the others (black), with the
//! relaxation factor that is best for the square, omega = 2 / (1 + sin(pi h)), h = 1 / (n + 1). There are
//! g n iterations, g = v / 3 for an accuracy of 10^-v. In each a rank exchanges boundaries with its
//! neighbours once, at its beginning.
//!
//! Choice: what is exchanged are the black points of the two outermost lines of a block, as many values
//! as one line has points, and one value with a diagonal neighbour whose corner is black. From these a
//! rank computes the red points just outside its block itself, as their owner does. So one exchange
//! serves both halves of an iteration without any point lagging behind, and the result equals the
//! sequential one bit for bit on every mesh. (With a boundary one iteration old the factor above diverges
//! on two blocks and more.)
//!
//! The boundary holds u = x^2 + y^2 / 2 + x y, which also solves the difference equation exactly.

use crate::comm::{Comm, Work};
use crate::data::digest_of;
use crate::grid::{Mesh, over_relaxation};
use crate::halo::{Border, SIDES, Side, collect_blocks, exchange};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of updating one point.
pub const SOR_POINT: &str = "sor-point";

/// The grid and how far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdeParams {
    /// Inner points down and across; at least twice the side of the mesh.
    pub n: u64,
    /// v: iterate for an accuracy of 10^-v.
    pub accuracy: u64,
    /// Ranks down the mesh; 0: what `across` leaves.
    pub down: u64,
    /// Ranks across the mesh; 0: what `down` leaves.
    pub across: u64,
}

impl PdeParams {
    /// g n with g = v / 3, rounded up.
    #[must_use]
    pub const fn iterations(&self) -> u64 {
        (self.accuracy * self.n).div_ceil(3)
    }

    fn spacing(&self) -> f64 {
        1.0 / (self.n + 1) as f64
    }
}

/// The solution at a point; row and column count from -1, the boundary.
fn solution(params: &PdeParams, row: i64, column: i64) -> f64 {
    let (x, y) = ((row + 1) as f64 * params.spacing(), (column + 1) as f64 * params.spacing());
    x * x + 0.5 * y * y + x * y
}

/// The halo of a block: two lines.
const HALO: usize = 2;

/// A block of the grid with its halo. Positions count from the halo's corner.
struct Block {
    /// Row and column, in the grid, of the block's first point.
    first: (usize, usize),
    rows: usize,
    columns: usize,
    values: Vec<f64>,
    omega: f64,
    /// What the right-hand side adds to the mean of the neighbours: - h^2 f / 4, with f = 3.
    source: f64,
}

impl Block {
    fn new(params: &PdeParams, (top, rows): (usize, usize), (left, columns): (usize, usize)) -> Self {
        let width = columns + 2 * HALO;
        let side = params.n as i64;
        let value = |at: usize| {
            let row = (top + at / width) as i64 - HALO as i64;
            let column = (left + at % width) as i64 - HALO as i64;
            let inside = (0..side).contains(&row) && (0..side).contains(&column);
            if inside { 0.0 } else { solution(params, row, column) }
        };
        Self {
            first: (top, left),
            rows,
            columns,
            values: (0..(rows + 2 * HALO) * width).map(value).collect(),
            omega: over_relaxation(params.n),
            source: -params.spacing() * params.spacing() * 3.0 / 4.0,
        }
    }

    fn at(&self, row: usize, column: usize) -> usize {
        row * (self.columns + 2 * HALO) + column
    }

    /// The first column, from `column` on, whose point in this row has the colour: 0 red, 1 black.
    fn coloured(&self, row: usize, column: usize, colour: usize) -> usize {
        column + (self.first.0 + row + self.first.1 + column + colour) % 2
    }

    /// Updates the points of a colour in some rows and columns, and returns how many.
    fn update(&mut self, rows: (usize, usize), columns: (usize, usize), colour: usize) -> u64 {
        let width = self.columns + 2 * HALO;
        let mut count = 0;
        for row in rows.0..rows.1 {
            for column in (self.coloured(row, columns.0, colour)..columns.1).step_by(2) {
                let here = self.at(row, column);
                let old = self.values[here];
                let around = (self.values[here - width] + self.values[here + width])
                    + (self.values[here - 1] + self.values[here + 1]);
                self.values[here] = old + self.omega * (0.25 * around + self.source - old);
                count += 1;
            }
        }
        count
    }

    /// One iteration, with the red points beside the block on the sides that have a neighbour.
    fn iterate(&mut self, neighbours: &[Side]) -> u64 {
        let (rows, columns) = ((HALO, HALO + self.rows), (HALO, HALO + self.columns));
        let mut count = self.update(rows, columns, 0);
        for side in neighbours {
            count += match *side {
                (-1, 0) => self.update((rows.0 - 1, rows.0), columns, 0),
                (1, 0) => self.update((rows.1, rows.1 + 1), columns, 0),
                (0, -1) => self.update(rows, (columns.0 - 1, columns.0), 0),
                (0, 1) => self.update(rows, (columns.1, columns.1 + 1), 0),
                _ => 0,
            };
        }
        count + self.update(rows, columns, 1)
    }

    /// The black points that go to a neighbour, or (`halo`) come from it.
    fn boundary(&self, side: Side, halo: bool) -> Vec<usize> {
        let range = |direction: i32, length: usize, deep: usize| match (direction, halo) {
            (0, _) => (HALO, HALO + length),
            (-1, true) => (HALO - deep, HALO),
            (-1, false) => (HALO, HALO + deep),
            (_, true) => (HALO + length, HALO + length + deep),
            (_, false) => (HALO + length - deep, HALO + length),
        };
        let deep = if side.0 != 0 && side.1 != 0 { 1 } else { 2 };
        let rows = range(side.0, self.rows, deep);
        let columns = range(side.1, self.columns, deep);
        (rows.0..rows.1)
            .flat_map(|row| {
                (self.coloured(row, columns.0, 1)..columns.1)
                    .step_by(2)
                    .map(move |column| self.at(row, column))
            })
            .collect()
    }

    fn inner(&self) -> Vec<f64> {
        (HALO..HALO + self.rows)
            .flat_map(|row| {
                let start = self.at(row, HALO);
                self.values[start..start + self.columns].iter().copied()
            })
            .collect()
    }
}

/// The whole grid after all iterations, computed alone: inner points by row.
#[must_use]
pub fn sequential(params: &PdeParams) -> Vec<f64> {
    let side = params.n as usize;
    let mut block = Block::new(params, (0, side), (0, side));
    for _ in 0..params.iterations() {
        block.iterate(&[]);
    }
    block.inner()
}

/// The greatest distance of a grid, inner points by row, from the solution.
#[must_use]
pub fn error(params: &PdeParams, grid: &[f64]) -> f64 {
    let n = params.n as usize;
    let distance =
        |(at, value): (usize, &f64)| (value - solution(params, (at / n) as i64, (at % n) as i64)).abs();
    grid.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Runs it; rank 0 collects the grid and compares it with [`sequential`]. Elapsed is the time of the
/// iterations, without the collecting.
///
/// The digest is of the whole grid on rank 0, the same for every mesh, and of the rank's block elsewhere.
///
/// # Errors
/// [`ProgramError`] from a call, or with a mesh that is not allowed.
pub async fn pde<C: Comm>(comm: &mut C, params: &PdeParams) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let mesh = Mesh::of_grid(size, params.down, params.across, params.n, 2)?;
    let n = params.n as usize;
    let (rows, columns) = mesh.block(rank, n, n);
    let mut block = Block::new(params, rows, columns);
    let mut borders = SIDES
        .into_iter()
        .filter_map(|side| {
            let peer = mesh.beside(rank, side)?;
            // A corner that is red is not sent; both sides know from the grid.
            Some(Border::new(side, peer, block.boundary(side, false), block.boundary(side, true)))
        })
        .collect::<Vec<_>>();
    let neighbours = borders.iter().map(|border| border.side).collect::<Vec<_>>();
    // A dry run, for the count alone.
    let count = Block::new(params, rows, columns).iterate(&neighbours);
    let start = comm.now();
    for _ in 0..params.iterations() {
        exchange(comm, &mut block.values, &mut borders).await?;
        comm.compute(Work { kind: SOR_POINT, count }, || block.iterate(&neighbours)).await;
    }
    let elapsed = elapsed(start, comm.now());
    let mine = block.inner();
    let mut grid = vec![0.0; if rank == 0 { n * n } else { 0 }];
    collect_blocks(comm, mesh, n, &mine, &mut grid).await?;
    if rank > 0 {
        return Ok(Outcome::new(elapsed, digest_of(&mine), true));
    }
    let digest = digest_of(&grid);
    Ok(Outcome::new(elapsed, digest, digest == digest_of(&sequential(params))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_a_third_of_v_times_n() {
        let params = |n, accuracy| PdeParams { n, accuracy, down: 0, across: 0 };
        assert_eq!(params(16, 6).iterations(), 32);
        assert_eq!(params(256, 12).iterations(), 1024);
        assert_eq!(params(16, 1).iterations(), 6);
    }

    #[test]
    fn the_error_falls_with_v_to_the_solution() {
        for n in [8, 16, 33] {
            let found = [3, 6, 9, 12].map(|accuracy| {
                let params = PdeParams { n, accuracy, down: 0, across: 0 };
                error(&params, &sequential(&params))
            });
            // The best factor is a defective one: g n iterations gain a little less than 10^-v.
            assert!(found.windows(2).all(|pair| pair[1] < pair[0] / 100.0), "n {n}: {found:?}");
            assert!(found[3] < 1e-7, "n {n}: {found:?}");
        }
    }
}
