//! Poisson's equation on the unit square by multigrid, after PDE2 of the GENESIS suite.
//!
//! The n x n inner points, n = 2^k - 1, are cut in both directions on a mesh of ranks. A V-cycle smooths
//! twice going down and once coming up by red-black relaxation, restricts residuals by half weighting and
//! interpolates corrections bilinearly. A coarse point belongs to the rank that has the fine point at the
//! same place; the cycle goes down as long as every rank has a point, and solves the coarsest grid by
//! over-relaxation. On every level boundaries are exchanged: before each half of a sweep the points of one
//! colour, before a restriction the residuals of one colour, before an interpolation whole lines. So most
//! messages are short, and the shorter the coarser the grid.
//!
//! After each cycle the ranks agree on the greatest change of a point in its last sweep, and end when it is
//! at most 10^-v. The boundary holds u = x^2 + y^2 / 2 + x y, which also solves the difference equation
//! exactly.

use crate::alone::{Alone, run};
use crate::comm::{Comm, CommError, Work};
use crate::data::digest_of;
use crate::grid::{Mesh, over_relaxation, power_of_ten};
use crate::halo::{Border, Side, collect_blocks, exchange, greatest};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of smoothing one point, or computing its residual.
pub const SMOOTH_POINT: &str = "smooth-point";
/// The kind of work of restricting to, or interpolating, one point.
pub const TRANSFER_POINT: &str = "transfer-point";

/// The grid and how far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pde2Params {
    /// Inner points down and across: a power of two less one, at least as many as the mesh has ranks there.
    pub n: u64,
    /// v: end when the last sweep of a cycle changes no point by more than 10^-v.
    pub accuracy: u64,
    /// Ranks down the mesh; 0: what `across` leaves.
    pub down: u64,
    /// Ranks across the mesh; 0: what `down` leaves.
    pub across: u64,
}

impl Pde2Params {
    /// A cycle gains a digit, about; nobody waits for what does not converge.
    const fn most_cycles(&self) -> u64 {
        20 + 4 * self.accuracy
    }
}

/// The solution at a point whose indices count from 0, the boundary.
fn solution(n: u64, row: usize, column: usize) -> f64 {
    let spacing = 1.0 / (n + 1) as f64;
    let (x, y) = (row as f64 * spacing, column as f64 * spacing);
    x * x + 0.5 * y * y + x * y
}

const RED: usize = 0;
const BLACK: usize = 1;
const SWEEPS_DOWN: u32 = 2;
const SWEEPS_UP: u32 = 1;

/// Where a rank's points lie on a level: its first row and how many, its first column and how many.
type Place = ((usize, usize), (usize, usize));

/// A rank's part of one grid, with one line around it. Indices count from that line.
struct Level {
    /// Inner points a side of the whole grid.
    n: usize,
    place: Place,
    values: Vec<f64>,
    /// h^2 / 4 times the right-hand side, and h^2 / 4 times what it is missed by.
    source: Vec<f64>,
    residual: Vec<f64>,
    /// The points of a colour beside each neighbour; whole lines beside those left and right, and beside
    /// those above and below with the corners.
    colours: [Vec<Border>; 2],
    lines: [Vec<Border>; 2],
}

impl Level {
    fn new(n: usize, place: Place, beside: impl Fn(Side) -> Option<u32>) -> Self {
        let ((_, rows), (_, columns)) = place;
        let size = (rows + 2) * (columns + 2);
        let empty = || vec![0.0; size];
        let (values, source, residual) = (empty(), empty(), empty());
        let mut level =
            Self { n, place, values, source, residual, colours: [vec![], vec![]], lines: [vec![], vec![]] };
        for side in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            let Some(peer) = beside(side) else { continue };
            for colour in [RED, BLACK] {
                let points = |halo| level.edge(side, halo, Some(colour));
                let border = Border::new(side, peer, points(false), points(true));
                level.colours[colour].push(border);
            }
            let points = |halo| level.edge(side, halo, None);
            let border = Border::new(side, peer, points(false), points(true));
            level.lines[usize::from(side.1 == 0)].push(border);
        }
        level
    }

    const fn width(&self) -> usize {
        self.place.1.1 + 2
    }

    /// The colour of a point: that of the sum of its indices.
    const fn colour(&self, row: usize, column: usize) -> usize {
        // Indices in the grid are one less each, which leaves the sum as odd or even as it is.
        (self.place.0.0 + row + self.place.1.0 + column) % 2
    }

    /// The points on an edge that go to a neighbour, or (`halo`) come from it.
    fn edge(&self, side: Side, halo: bool, colour: Option<usize>) -> Vec<usize> {
        let ((_, rows), (_, columns)) = self.place;
        let one = |direction: i32, length: usize| match (direction, halo) {
            (-1, true) => 0..=0,
            (-1, false) => 1..=1,
            (_, true) => length + 1..=length + 1,
            (_, false) => length..=length,
        };
        let (rows, columns) = match (side, colour) {
            ((0, direction), _) => (1..=rows, one(direction, columns)),
            ((direction, _), Some(_)) => (one(direction, rows), 1..=columns),
            // Lines go left and right first: then those above and below carry the corners, too.
            ((direction, _), None) => (one(direction, rows), 0..=columns + 1),
        };
        let points = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
        let wanted =
            points.filter(|(row, column)| colour.is_none_or(|colour| self.colour(*row, *column) == colour));
        wanted.map(|(row, column)| row * self.width() + column).collect()
    }

    /// The inner points of a colour, row by row.
    fn each(&self, colour: usize) -> impl Iterator<Item = usize> + use<> {
        let ((_, rows), (_, columns)) = self.place;
        let (width, corner) = (self.width(), self.colour(0, 0));
        (1..=rows).flat_map(move |row| {
            let first = 1 + (corner + row + 1 + colour) % 2;
            (first..=columns).step_by(2).map(move |column| row * width + column)
        })
    }

    fn around(&self, of: &[f64], at: usize) -> f64 {
        (of[at - self.width()] + of[at + self.width()]) + (of[at - 1] + of[at + 1])
    }

    /// Relaxes the points of a colour; the greatest change.
    fn relax(&mut self, colour: usize, omega: f64) -> f64 {
        let mut most = 0.0f64;
        for at in self.each(colour) {
            let mean = 0.25 * self.around(&self.values, at);
            let change = omega * (mean - self.source[at] - self.values[at]);
            self.values[at] += change;
            most = most.max(change.abs());
        }
        most
    }

    fn find_residual(&mut self) {
        for colour in [RED, BLACK] {
            for at in self.each(colour) {
                self.residual[at] = 0.25 * self.around(&self.values, at) - self.source[at] - self.values[at];
            }
        }
    }

    fn points(&self) -> u64 {
        (self.place.0.1 * self.place.1.1) as u64
    }

    /// Takes half-weighted residuals of the finer grid for its right-hand side, and starts from nothing.
    fn restrict(&mut self, fine: &Self) {
        let ((top, rows), (left, columns)) = self.place;
        self.values.fill(0.0);
        for row in 1..=rows {
            for column in 1..=columns {
                let fine_row = 2 * (top + row - 1) + 2 - fine.place.0.0;
                let fine_column = 2 * (left + column - 1) + 2 - fine.place.1.0;
                let at = fine_row * fine.width() + fine_column;
                // Four times as much, as the spacing is twice the finer one.
                let missed = 2.0 * fine.residual[at] + 0.5 * fine.around(&fine.residual, at);
                self.source[row * (columns + 2) + column] = -missed;
            }
        }
    }

    /// Adds what the coarser grid found, bilinearly.
    fn correct(&mut self, coarse: &Self) {
        let ((top, rows), (left, columns)) = self.place;
        // The coarse points before and after a fine one; the same where there is one at its place.
        let beside = |fine: usize, first: usize| {
            let after = fine / 2 + 1 - first;
            (if fine.is_multiple_of(2) { after - 1 } else { after }, after)
        };
        for row in 1..=rows {
            let (above, below) = beside(top + row - 1, coarse.place.0.0);
            for column in 1..=columns {
                let (before, after) = beside(left + column - 1, coarse.place.1.0);
                let value = |row: usize, column: usize| coarse.values[row * coarse.width() + column];
                let sum = (value(above, before) + value(above, after))
                    + (value(below, before) + value(below, after));
                self.values[row * (columns + 2) + column] += 0.25 * sum;
            }
        }
    }
}

/// Where a rank's points lie on the grid with half as many: those at the places of its odd ones.
fn halve(((top, rows), (left, columns)): Place) -> Place {
    let half = |first: usize, count: usize| (first / 2, (first + count) / 2 - first / 2);
    (half(top, rows), half(left, columns))
}

/// A rank's part of all grids, the finest first.
struct Grids {
    levels: Vec<Level>,
}

impl Grids {
    /// The parts of a rank; with as many levels as leave every rank of the mesh a point on the last.
    fn new(params: &Pde2Params, mesh: Mesh, rank: u32, depth: usize) -> Self {
        let n = params.n as usize;
        let mut place = mesh.block(rank, n, n);
        let mut levels = Vec::new();
        for level in 0..depth {
            levels.push(Level::new(((n + 1) >> level) - 1, place, |side| mesh.beside(rank, side)));
            place = halve(place);
        }
        let finest = &mut levels[0];
        let ((top, rows), (left, columns)) = finest.place;
        let spacing = 1.0 / (params.n + 1) as f64;
        finest.source.fill(spacing * spacing * 3.0 / 4.0);
        for row in 0..rows + 2 {
            for column in 0..columns + 2 {
                let inside = |index: usize| (1..=n).contains(&index);
                if !inside(top + row) || !inside(left + column) {
                    finest.values[row * (columns + 2) + column] =
                        solution(params.n, top + row, left + column);
                }
            }
        }
        Self { levels }
    }

    /// One sweep over both colours of a level; the greatest change.
    async fn sweep<C: Comm>(&mut self, comm: &mut C, level: usize, omega: f64) -> Result<f64, CommError> {
        let level = &mut self.levels[level];
        let mut change = 0.0f64;
        for colour in [RED, BLACK] {
            exchange(comm, &mut level.values, &mut level.colours[1 - colour]).await?;
            let work = Work { kind: SMOOTH_POINT, count: level.each(colour).count() as u64 };
            change = change.max(comm.compute(work, || level.relax(colour, omega)).await);
        }
        Ok(change)
    }

    /// One V-cycle; the greatest change of its last sweep over the finest grid.
    async fn cycle<C: Comm>(&mut self, comm: &mut C) -> Result<f64, CommError> {
        let last = self.levels.len() - 1;
        let mut change = 0.0;
        for at in 0..last {
            for _ in 0..SWEEPS_DOWN {
                self.sweep(comm, at, 1.0).await?;
            }
            let [fine, coarse] = &mut self.levels[at..=at + 1] else { unreachable!("two levels") };
            exchange(comm, &mut fine.values, &mut fine.colours[BLACK]).await?;
            let work = Work { kind: SMOOTH_POINT, count: fine.points() };
            comm.compute(work, || fine.find_residual()).await;
            exchange(comm, &mut fine.residual, &mut fine.colours[BLACK]).await?;
            let work = Work { kind: TRANSFER_POINT, count: coarse.points() };
            comm.compute(work, || coarse.restrict(fine)).await;
        }
        let n = self.levels[last].n as u64;
        for _ in 0..2 * (n + 1) {
            change = self.sweep(comm, last, over_relaxation(n)).await?;
        }
        for at in (0..last).rev() {
            let [fine, coarse] = &mut self.levels[at..=at + 1] else { unreachable!("two levels") };
            for lines in &mut coarse.lines {
                exchange(comm, &mut coarse.values, lines).await?;
            }
            let work = Work { kind: TRANSFER_POINT, count: fine.points() };
            comm.compute(work, || fine.correct(coarse)).await;
            for _ in 0..SWEEPS_UP {
                change = self.sweep(comm, at, 1.0).await?;
            }
        }
        Ok(change)
    }

    /// Cycles until the change is small; whether it became so.
    async fn solve<C: Comm>(&mut self, comm: &mut C, params: &Pde2Params) -> Result<bool, CommError> {
        let limit = power_of_ten(params.accuracy);
        for _ in 0..params.most_cycles() {
            let change = self.cycle(comm).await?;
            if greatest(comm, change).await? <= limit {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn inner(&self) -> Vec<f64> {
        let finest = &self.levels[0];
        let ((_, rows), (_, columns)) = finest.place;
        let lines = (1..=rows).flat_map(|row| {
            let start = row * finest.width() + 1;
            finest.values[start..start + columns].iter().copied()
        });
        lines.collect()
    }
}

/// How many levels leave every rank of a mesh a point; none if the finest does not.
fn depth(n: usize, mesh: Mesh) -> usize {
    let mut places: Vec<Place> = (0..mesh.down * mesh.across).map(|rank| mesh.block(rank, n, n)).collect();
    let mut depth = 0;
    while places.iter().all(|((_, rows), (_, columns))| *rows > 0 && *columns > 0) {
        depth += 1;
        places.iter_mut().for_each(|place| *place = halve(*place));
    }
    depth
}

/// The same grid computed by one rank, on as many levels: the inner points by row, and whether it converged.
///
/// # Errors
/// [`ProgramError`] for a mesh or a side that is not allowed.
pub fn sequential(params: &Pde2Params, ranks: u32) -> Result<(Vec<f64>, bool), ProgramError> {
    let (_, depth) = check(params, ranks)?;
    let mut grids = Grids::new(params, Mesh { down: 1, across: 1 }, 0, depth);
    let converged = run(grids.solve(&mut Alone, params))?;
    Ok((grids.inner(), converged))
}

/// The greatest distance of a grid from the solution.
#[must_use]
pub fn error(params: &Pde2Params, grid: &[f64]) -> f64 {
    let n = params.n as usize;
    let distance = |(at, value): (usize, &f64)| (value - solution(params.n, at / n + 1, at % n + 1)).abs();
    grid.iter().enumerate().map(distance).fold(0.0, f64::max)
}

fn check(params: &Pde2Params, ranks: u32) -> Result<(Mesh, usize), ProgramError> {
    let mesh = Mesh::of(ranks, params.down, params.across)?;
    let refuse = |allowed: String| Err(ProgramError::Parameter { name: "n", value: params.n, allowed });
    if !(params.n + 1).is_power_of_two() {
        return refuse("a power of two less one, such as 63".into());
    }
    let least = mesh.down.max(mesh.across);
    match depth(params.n as usize, mesh) {
        0 => refuse(format!("{least} or more, for a mesh of {} x {}", mesh.down, mesh.across)),
        depth => Ok((mesh, depth)),
    }
}

/// Runs it; rank 0 collects the grid and compares it with [`sequential`]. Elapsed is the time of the cycles,
/// without the collecting.
///
/// The digest is of the whole grid on rank 0, the same for every mesh with as many levels, and of the rank's
/// block elsewhere.
///
/// # Errors
/// [`ProgramError`] from a call, or with a mesh or a side that is not allowed.
pub async fn pde2<C: Comm>(comm: &mut C, params: &Pde2Params) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let (mesh, depth) = check(params, size)?;
    let mut grids = Grids::new(params, mesh, rank, depth);
    let start = comm.now();
    let converged = grids.solve(comm, params).await?;
    let elapsed = elapsed(start, comm.now());
    let n = params.n as usize;
    let mine = grids.inner();
    let mut grid = vec![0.0; if rank == 0 { n * n } else { 0 }];
    collect_blocks(comm, mesh, n, &mine, &mut grid).await?;
    if rank > 0 {
        return Ok(Outcome::new(elapsed, digest_of(&mine), converged));
    }
    let (alone, also) = sequential(params, size)?;
    let digest = digest_of(&grid);
    Ok(Outcome::new(elapsed, digest, converged && also && digest == digest_of(&alone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(n: u64, accuracy: u64) -> Pde2Params {
        Pde2Params { n, accuracy, down: 0, across: 0 }
    }

    #[test]
    fn a_few_cycles_reach_the_solution_on_any_grid() {
        for n in [3, 7, 63, 127] {
            let mut grids =
                Grids::new(&params(n, 12), Mesh { down: 1, across: 1 }, 0, n.count_ones() as usize);
            let mut errors = vec![1.0];
            for _ in 0..8 {
                run(grids.cycle(&mut Alone)).expect("nobody to talk to");
                errors.push(error(&params(n, 12), &grids.inner()));
            }
            let gains: Vec<f64> = errors.windows(2).take(5).map(|pair| pair[1] / pair[0]).collect();
            assert!(gains.iter().all(|gain| *gain < 0.15), "side {n}: {gains:?}");
            assert!(errors[8] < 1e-7, "side {n}: {errors:?}");
        }
    }

    #[test]
    fn the_cycle_goes_down_while_every_rank_has_a_point() {
        let mesh = |down, across| Mesh { down, across };
        assert_eq!(depth(63, mesh(1, 1)), 6);
        assert_eq!(depth(63, mesh(2, 2)), 5, "down to three points a side");
        assert_eq!(depth(63, mesh(3, 1)), 5);
        assert_eq!(depth(3, mesh(4, 1)), 0);
    }

    #[test]
    fn fewer_levels_reach_the_same_solution() {
        for (down, across) in [(1, 1), (2, 2), (4, 3), (5, 1)] {
            let params = Pde2Params { down, across, ..params(31, 10) };
            let (grid, converged) = sequential(&params, (down * across) as u32).expect("a mesh that fits");
            assert!(
                converged && error(&params, &grid) < 1e-9,
                "{down} x {across}: {}",
                error(&params, &grid)
            );
        }
    }

    #[test]
    fn a_coarse_point_lies_at_the_place_of_an_odd_one() {
        assert_eq!(halve(((0, 32), (32, 31))), ((0, 16), (16, 15)));
        assert_eq!(halve(((21, 21), (42, 21))), ((10, 11), (21, 10)));
        assert_eq!(halve(((2, 1), (0, 1))), ((1, 0), (0, 0)));
    }

    #[test]
    fn messages_are_as_short_as_the_grids_are_coarse() {
        let grids = Grids::new(&params(63, 6), Mesh { down: 2, across: 2 }, 0, 5);
        let lengths = grids.levels.iter().map(|level| level.edge((1, 0), false, Some(RED)).len() * 8);
        assert_eq!(lengths.collect::<Vec<_>>(), [128, 64, 32, 16, 8]);
    }

    #[test]
    fn a_side_that_is_no_power_of_two_less_one_is_refused() {
        let error = sequential(&params(64, 6), 1).expect_err("64");
        assert_eq!(error.to_string(), "n is 64; allowed: a power of two less one, such as 63");
        let error = sequential(&params(3, 6), 5).expect_err("3 on 1 x 5");
        assert_eq!(error.to_string(), "n is 3; allowed: 5 or more, for a mesh of 1 x 5");
    }
}
