//! Poisson's equation on the unit cube by red-black over-relaxation, after PDE1 of the GENESIS suite.
//!
//! The n x n x n inner points are cut along their first two axes on a mesh of ranks (a mesh one rank wide
//! makes slabs). An iteration updates the points with an even sum of indices (red), then the others
//! (black). Before each half a rank takes from each neighbour the points of the other colour in the face
//! between them: a message of half a face, 8 bytes a point, so that n = 64 in slabs makes 16 KiB and
//! n = 45 about 8 KB. Every `check` iterations the ranks agree on the greatest change of a point, and end
//! when it is at most 10^-v.
//!
//! The boundary holds u = x^2 + y^2 / 2 + z^2 / 4 + x y + y z, which also solves the difference equation
//! exactly.

use crate::comm::{Comm, Work};
use crate::data::digest_of;
use crate::grid::{Mesh, over_relaxation, power_of_ten};
use crate::halo::{Border, SIDES, Side, collect, exchange, greatest};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of updating one point.
pub const RELAX_POINT: &str = "relax-point";

/// The grid and how far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pde1Params {
    /// Inner points along each axis; at least as many as the mesh has ranks there.
    pub n: u64,
    /// v: end when an iteration changes no point by more than 10^-v.
    pub accuracy: u64,
    /// Iterations from one agreement on the change to the next.
    pub check: u64,
    /// Ranks down the mesh; 0: what `across` leaves.
    pub down: u64,
    /// Ranks across the mesh; 0: what `down` leaves.
    pub across: u64,
}

impl Pde1Params {
    /// Nobody waits for what does not converge: far more iterations than the best factor needs.
    const fn most_iterations(&self) -> u64 {
        100 + 20 * self.n * self.accuracy
    }

    fn spacing(&self) -> f64 {
        1.0 / (self.n + 1) as f64
    }
}

/// The solution at a point whose indices count from 0, the boundary.
fn solution(params: &Pde1Params, at: [usize; 3]) -> f64 {
    let [x, y, z] = at.map(|index| index as f64 * params.spacing());
    x * x + 0.5 * y * y + 0.25 * z * z + x * y + y * z
}

/// A block with one layer around it. Indices count from that layer.
struct Block {
    /// Indices of the layer's corner in the grid with its boundary.
    first: (usize, usize),
    rows: usize,
    columns: usize,
    /// Points along the axis that is not cut.
    deep: usize,
    values: Vec<f64>,
    omega: f64,
    /// What the right-hand side adds to the mean of the neighbours: - h^2 f / 6, with f = 3.5.
    source: f64,
}

impl Block {
    fn new(params: &Pde1Params, (top, rows): (usize, usize), (left, columns): (usize, usize)) -> Self {
        let deep = params.n as usize;
        let last = deep + 1;
        let mut values = Vec::with_capacity((rows + 2) * (columns + 2) * (deep + 2));
        for row in top..top + rows + 2 {
            for column in left..left + columns + 2 {
                for layer in 0..=last {
                    let at = [row, column, layer];
                    let boundary = at.iter().any(|index| *index == 0 || *index == last);
                    values.push(if boundary { solution(params, at) } else { 0.0 });
                }
            }
        }
        let source = -params.spacing() * params.spacing() * 3.5 / 6.0;
        Self { first: (top, left), rows, columns, deep, values, omega: over_relaxation(params.n), source }
    }

    fn at(&self, row: usize, column: usize, layer: usize) -> usize {
        (row * (self.columns + 2) + column) * (self.deep + 2) + layer
    }

    /// The layers of a line that have the colour: 0 red, 1 black.
    fn layers(&self, row: usize, column: usize, colour: usize) -> impl Iterator<Item = usize> + use<> {
        let first = 1 + (self.first.0 + row + self.first.1 + column + 1 + colour) % 2;
        (first..=self.deep).step_by(2)
    }

    /// Updates the points of a colour, and returns the greatest change.
    fn relax(&mut self, colour: usize) -> f64 {
        let (line, plane) = (self.deep + 2, (self.columns + 2) * (self.deep + 2));
        let mut most = 0.0f64;
        for row in 1..=self.rows {
            for column in 1..=self.columns {
                for layer in self.layers(row, column, colour) {
                    let here = self.at(row, column, layer);
                    let old = self.values[here];
                    let around = (self.values[here - plane] + self.values[here + plane])
                        + (self.values[here - line] + self.values[here + line])
                        + (self.values[here - 1] + self.values[here + 1]);
                    let change = self.omega * (around / 6.0 + self.source - old);
                    self.values[here] = old + change;
                    most = most.max(change.abs());
                }
            }
        }
        most
    }

    /// How many points of a colour there are.
    fn points(&self, colour: usize) -> u64 {
        let lines = (1..=self.rows).flat_map(|row| (1..=self.columns).map(move |column| (row, column)));
        lines.map(|(row, column)| self.layers(row, column, colour).count() as u64).sum()
    }

    /// The points of a colour that go to a neighbour, or (`halo`) come from it.
    fn face(&self, side: Side, colour: usize, halo: bool) -> Vec<usize> {
        let range = |direction: i32, length: usize| match (direction, halo) {
            (0, _) => 1..=length,
            (-1, true) => 0..=0,
            (-1, false) => 1..=1,
            (_, true) => length + 1..=length + 1,
            (_, false) => length..=length,
        };
        let mut points = Vec::new();
        for row in range(side.0, self.rows) {
            for column in range(side.1, self.columns) {
                points.extend(self.layers(row, column, colour).map(|layer| self.at(row, column, layer)));
            }
        }
        points
    }

    fn inner(&self) -> Vec<f64> {
        let mut inner = Vec::with_capacity(self.rows * self.columns * self.deep);
        for row in 1..=self.rows {
            for column in 1..=self.columns {
                let start = self.at(row, column, 1);
                inner.extend_from_slice(&self.values[start..start + self.deep]);
            }
        }
        inner
    }
}

/// What was computed alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The inner points, by row, column and layer.
    pub grid: Vec<f64>,
    /// Iterations that it took.
    pub iterations: u64,
    /// Whether the last of them changed little enough.
    pub converged: bool,
}

/// The same grid computed alone.
#[must_use]
pub fn sequential(params: &Pde1Params) -> Solved {
    let side = params.n as usize;
    let mut block = Block::new(params, (0, side), (0, side));
    let limit = power_of_ten(params.accuracy);
    let (mut iterations, mut converged) = (0, false);
    while !converged && iterations < params.most_iterations() {
        let change = block.relax(0).max(block.relax(1));
        iterations += 1;
        converged = iterations % params.check == 0 && change <= limit;
    }
    Solved { grid: block.inner(), iterations, converged }
}

/// The greatest distance of a grid from the solution.
#[must_use]
pub fn error(params: &Pde1Params, grid: &[f64]) -> f64 {
    let n = params.n as usize;
    let distance = |(at, value): (usize, &f64)| {
        (value - solution(params, [at / (n * n) + 1, at / n % n + 1, at % n + 1])).abs()
    };
    grid.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Runs it; rank 0 collects the grid and compares it with [`sequential`]. Elapsed is the time of the
/// iterations, without the collecting.
///
/// The digest is of the whole grid on rank 0, the same for every mesh, and of the rank's block elsewhere.
///
/// # Errors
/// [`ProgramError`] from a call, or with a mesh that is not allowed.
pub async fn pde1<C: Comm>(comm: &mut C, params: &Pde1Params) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let mesh = Mesh::of_grid(size, params.down, params.across, params.n, 1)?;
    let n = params.n as usize;
    let (rows, columns) = mesh.block(rank, n, n);
    let mut block = Block::new(params, rows, columns);
    let mut borders = [0, 1].map(|colour| {
        let faces = SIDES[..4].iter().filter_map(|side| {
            let peer = mesh.beside(rank, *side)?;
            Some(Border::new(*side, peer, block.face(*side, colour, false), block.face(*side, colour, true)))
        });
        faces.collect::<Vec<_>>()
    });
    let points = [block.points(0), block.points(1)];
    let limit = power_of_ten(params.accuracy);
    let (mut iterations, mut converged) = (0, false);
    let start = comm.now();
    while !converged && iterations < params.most_iterations() {
        let mut change = 0.0f64;
        for colour in [0, 1] {
            exchange(comm, &mut block.values, &mut borders[1 - colour]).await?;
            let work = Work { kind: RELAX_POINT, count: points[colour] };
            change = change.max(comm.compute(work, || block.relax(colour)).await);
        }
        iterations += 1;
        if iterations % params.check == 0 {
            converged = greatest(comm, change).await? <= limit;
        }
    }
    let elapsed = elapsed(start, comm.now());
    let mine = block.inner();
    let mut grid = vec![0.0; if rank == 0 { n * n * n } else { 0 }];
    let length_of = |other| {
        let ((_, rows), (_, columns)) = mesh.block(other, n, n);
        rows * columns * n
    };
    collect(comm, &mine, length_of, |other, values| {
        let ((top, _), (left, columns)) = mesh.block(other, n, n);
        for (row, plane) in values.chunks_exact(columns * n).enumerate() {
            let at = ((top + row) * n + left) * n;
            grid[at..at + plane.len()].copy_from_slice(plane);
        }
    })
    .await?;
    if rank > 0 {
        return Ok(Outcome::new(elapsed, digest_of(&mine), converged));
    }
    let alone = sequential(params);
    let verified = converged && alone.converged && digest_of(&grid) == digest_of(&alone.grid);
    Ok(Outcome::new(elapsed, digest_of(&grid), verified))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(n: u64, accuracy: u64) -> Pde1Params {
        Pde1Params { n, accuracy, check: 1, down: 0, across: 0 }
    }

    #[test]
    fn it_converges_to_the_solution_in_some_times_n_iterations() {
        for n in [1, 2, 7, 16] {
            for accuracy in [4, 8, 12] {
                let params = params(n, accuracy);
                let solved = sequential(&params);
                assert!(solved.converged && solved.iterations < 2 * (n + 5) * accuracy, "{n}: {solved:?}");
                // What changes by so little a step is a few steps from its end.
                let limit = 20.0 * power_of_ten(accuracy);
                assert!(
                    error(&params, &solved.grid) < limit,
                    "{n}, {accuracy}: {}",
                    error(&params, &solved.grid)
                );
            }
        }
    }

    #[test]
    fn the_change_is_looked_at_every_so_many_iterations() {
        let every = sequential(&params(9, 6));
        let tenth = sequential(&Pde1Params { check: 10, ..params(9, 6) });
        assert_eq!(tenth.iterations, every.iterations.next_multiple_of(10));
    }

    #[test]
    fn a_face_of_one_colour_is_half_a_face() {
        let block = Block::new(&params(64, 3), (0, 32), (0, 64));
        assert_eq!(block.face((1, 0), 0, false).len() * 8, 16 * 1024);
        assert_eq!(block.points(0) + block.points(1), 32 * 64 * 64);
        let (given, taken) = (block.face((1, 0), 1, false), block.face((1, 0), 1, true));
        assert_eq!(given.len(), taken.len());
    }
}
