//! Jacobi: the heat equation on a line or a square by repeated averaging, with halo exchange.
//!
//! The grid is cut into a line of strips or a mesh of tiles, one per rank. In every iteration each
//! rank exchanges the edges of its part with its neighbours and replaces each point by the mean of
//! its two or four neighbours. The boundary keeps its values. At the end rank 0 collects the grid and
//! compares it, bit for bit, with the sequential program.

use crate::comm::{Comm, Incoming, Outgoing, Rank, Source, Tag, TagMatch, Work};
use crate::data::{digest_of, get, put, share};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of one point.
pub const STENCIL_POINT: &str = "stencil-point";

/// The grid: `rows` x `columns` inner points; one row makes it a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JacobiParams {
    /// Inner points down; 1 for the one-dimensional equation.
    pub rows: u64,
    /// Inner points across.
    pub columns: u64,
    /// How many iterations.
    pub iterations: u64,
}

/// The value of a boundary or starting point; row and column count from -1, the boundary.
fn initial(params: &JacobiParams, row: i64, column: i64) -> f64 {
    let (rows, columns) = (params.rows as i64, params.columns as i64);
    if column < 0 {
        1.0
    } else if column >= columns {
        -0.5
    } else if row < 0 && rows > 1 {
        0.25 + column as f64 / columns as f64
    } else if row >= rows && rows > 1 {
        2.0
    } else {
        ((row * 31 + column * 17) % 101) as f64 / 101.0
    }
}

/// A part of the grid with a halo of one point all round.
#[derive(Clone, Debug)]
struct Tile {
    rows: usize,
    columns: usize,
    line: bool,
    old: Vec<f64>,
    new: Vec<f64>,
}

impl Tile {
    fn new(params: &JacobiParams, (top, rows): (usize, usize), (left, columns): (usize, usize)) -> Self {
        let width = columns + 2;
        let value = |at: usize| {
            let (row, column) = ((at / width) as i64 - 1, (at % width) as i64 - 1);
            initial(params, top as i64 + row, left as i64 + column)
        };
        let old = (0..(rows + 2) * width).map(value).collect::<Vec<_>>();
        Self { rows, columns, line: params.rows == 1, new: old.clone(), old }
    }

    fn at(&self, row: usize, column: usize) -> usize {
        row * (self.columns + 2) + column
    }

    /// One iteration over the inner points.
    fn relax(&mut self) {
        for row in 1..=self.rows {
            for column in 1..=self.columns {
                let here = self.at(row, column);
                let across = self.old[here - 1] + self.old[here + 1];
                self.new[here] = if self.line {
                    0.5 * across
                } else {
                    let width = self.columns + 2;
                    0.25 * (across + (self.old[here - width] + self.old[here + width]))
                };
            }
        }
        std::mem::swap(&mut self.old, &mut self.new);
    }

    fn row(&self, row: usize) -> Vec<f64> {
        self.old[self.at(row, 1)..=self.at(row, self.columns)].to_vec()
    }

    fn column(&self, column: usize) -> Vec<f64> {
        (1..=self.rows).map(|row| self.old[self.at(row, column)]).collect()
    }

    fn set_row(&mut self, row: usize, values: &[f64]) {
        let start = self.at(row, 1);
        self.old[start..start + self.columns].copy_from_slice(values);
    }

    fn set_column(&mut self, column: usize, values: &[f64]) {
        for (row, value) in values.iter().enumerate() {
            let at = self.at(row + 1, column);
            self.old[at] = *value;
        }
    }

    fn inner(&self) -> Vec<f64> {
        (1..=self.rows).flat_map(|row| self.row(row)).collect()
    }
}

/// The whole grid after all iterations, computed alone: inner points by row.
#[must_use]
pub fn sequential(params: &JacobiParams) -> Vec<f64> {
    let mut tile = Tile::new(params, (0, params.rows as usize), (0, params.columns as usize));
    for _ in 0..params.iterations {
        tile.relax();
    }
    tile.inner()
}

/// The mesh of ranks: (down, across), as square as their number allows; a line has one row.
#[must_use]
pub fn mesh(params: &JacobiParams, ranks: u32) -> (u32, u32) {
    if params.rows == 1 {
        return (1, ranks);
    }
    let down = (1..=ranks.isqrt()).rev().find(|down| ranks.is_multiple_of(*down)).unwrap_or(1);
    (down, ranks / down)
}

/// The four sides of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Up,
    Down,
    Left,
    Right,
}

impl Side {
    const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Left, Self::Right];

    const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Runs it. Elapsed is the time of the iterations, without the collecting.
///
/// # Errors
/// [`ProgramError`] from a call, or where a rank would have no points.
pub async fn jacobi<C: Comm>(comm: &mut C, params: &JacobiParams) -> Result<Outcome, ProgramError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let (down, across) = mesh(params, size);
    for (name, value, least) in [("rows", params.rows, down), ("columns", params.columns, across)] {
        if value < u64::from(least) {
            let allowed = format!("{least} or more, for {size} ranks in a mesh of {down} x {across}");
            return Err(ProgramError::Parameter { name, value, allowed });
        }
    }
    let part = |rank: u32| {
        (
            share(params.rows as usize, down as usize, (rank / across) as usize),
            share(params.columns as usize, across as usize, (rank % across) as usize),
        )
    };
    let (rows, columns) = part(rank);
    let mut tile = Tile::new(params, rows, columns);
    let neighbour = |side| match side {
        Side::Up => (rank >= across).then(|| rank - across),
        Side::Down => (rank / across + 1 < down).then_some(rank + across),
        Side::Left => (rank % across > 0).then(|| rank - 1),
        Side::Right => (rank % across + 1 < across).then_some(rank + 1),
    };
    let sides = Side::ALL.into_iter().filter_map(|side| Some((side, neighbour(side)?))).collect::<Vec<_>>();
    let points = (tile.rows * tile.columns) as u64;
    let start = comm.now();
    for _ in 0..params.iterations {
        exchange_halos(comm, &mut tile, &sides).await?;
        comm.compute(Work { kind: STENCIL_POINT, count: points }, || tile.relax()).await;
    }
    let elapsed = elapsed(start, comm.now());
    let mine = tile.inner();
    let mut verified = true;
    if rank == 0 {
        let mut grid = vec![0.0; (params.rows * params.columns) as usize];
        for other in 0..size {
            let ((top, rows), (left, columns)) = part(other);
            let mut values = mine.clone();
            if other > 0 {
                let mut bytes = vec![0; rows * columns * 8];
                comm.recv(Source::Rank(Rank(other)), TagMatch::Tag(COLLECT), &mut bytes).await?;
                values = vec![0.0; rows * columns];
                get(&bytes, &mut values);
            }
            for (row, line) in values.chunks_exact(columns).enumerate() {
                let at = (top + row) * params.columns as usize + left;
                grid[at..at + columns].copy_from_slice(line);
            }
        }
        verified = digest_of(&grid) == digest_of(&sequential(params));
    } else {
        let mut bytes = vec![0; mine.len() * 8];
        put(&mine, &mut bytes);
        comm.send(Rank(0), COLLECT, &bytes).await?;
    }
    Ok(Outcome::new(elapsed, digest_of(&mine), verified))
}

const COLLECT: Tag = Tag(100);

/// Sends each edge to the neighbour there, and receives its edge into the halo.
async fn exchange_halos<C: Comm>(
    comm: &mut C,
    tile: &mut Tile,
    sides: &[(Side, u32)],
) -> Result<(), ProgramError> {
    let edge = |side| match side {
        Side::Up => tile.row(1),
        Side::Down => tile.row(tile.rows),
        Side::Left => tile.column(1),
        Side::Right => tile.column(tile.columns),
    };
    let outgoing = sides
        .iter()
        .map(|(side, _)| {
            let values = edge(*side);
            let mut bytes = vec![0; values.len() * 8];
            put(&values, &mut bytes);
            bytes
        })
        .collect::<Vec<_>>();
    let mut incoming = outgoing.iter().map(|bytes| vec![0; bytes.len()]).collect::<Vec<_>>();
    // A message is tagged with the side it leaves by.
    let sends = sides
        .iter()
        .zip(&outgoing)
        .map(|((side, peer), message)| Outgoing { to: Rank(*peer), tag: Tag(*side as u32), message })
        .collect::<Vec<_>>();
    let mut receives = sides
        .iter()
        .zip(&mut incoming)
        .map(|((side, peer), buffer)| Incoming {
            from: Source::Rank(Rank(*peer)),
            tag: TagMatch::Tag(Tag(side.opposite() as u32)),
            buffer,
            status: None,
        })
        .collect::<Vec<_>>();
    comm.exchange(&sends, &mut receives).await?;
    for ((side, _), bytes) in sides.iter().zip(&incoming) {
        let mut values = vec![0.0; bytes.len() / 8];
        get(bytes, &mut values);
        match side {
            Side::Up => tile.set_row(0, &values),
            Side::Down => tile.set_row(tile.rows + 1, &values),
            Side::Left => tile.set_column(0, &values),
            Side::Right => tile.set_column(tile.columns + 1, &values),
        }
    }
    Ok(())
}
