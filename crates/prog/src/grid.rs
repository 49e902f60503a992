//! A mesh of ranks, numbered by row: who is where, and who stands beside; and what grids have in common.

use crate::data::share;
use crate::outcome::ProgramError;

/// Ranks in rows and columns; rank 0 is at the top left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Ranks down.
    pub down: u32,
    /// Ranks across.
    pub across: u32,
}

impl Mesh {
    /// A mesh of all `ranks`, `down` x `across`; 0 stands for what the other leaves, and both 0 for a
    /// mesh as square as their number allows.
    ///
    /// # Errors
    /// [`ProgramError::Parameter`] where it does not hold all ranks exactly.
    pub fn of(ranks: u32, down: u64, across: u64) -> Result<Self, ProgramError> {
        let wrong = |name, value| {
            let allowed = format!("a divisor of {ranks} (ranks), with down x across = {ranks}; or 0");
            Err(ProgramError::Parameter { name, value, allowed })
        };
        let all = u64::from(ranks);
        let (down, across) = match (down, across) {
            (0, 0) => {
                let down = (1..=ranks.isqrt()).rev().find(|down| ranks.is_multiple_of(*down)).unwrap_or(1);
                return Ok(Self { down, across: ranks / down });
            }
            (0, across) if all.is_multiple_of(across) => (all / across, across),
            (0, across) => return wrong("across", across),
            (down, 0) if all.is_multiple_of(down) => (down, all / down),
            (down, across) if down.checked_mul(across) == Some(all) => (down, across),
            (down, _) => return wrong("down", down),
        };
        // Divisors of a number of 32 bits.
        Ok(Self { down: down as u32, across: across as u32 })
    }

    /// As [`Mesh::of`], for a grid of `n` points a side of which each rank gets `each` or more a side.
    ///
    /// # Errors
    /// As there, and where the grid is too small.
    pub(crate) fn of_grid(
        ranks: u32,
        down: u64,
        across: u64,
        n: u64,
        each: u32,
    ) -> Result<Self, ProgramError> {
        let mesh = Self::of(ranks, down, across)?;
        let least = u64::from(each) * u64::from(mesh.down.max(mesh.across));
        if n < least {
            let allowed = format!("{least} or more, for a mesh of {} x {}", mesh.down, mesh.across);
            return Err(ProgramError::Parameter { name: "n", value: n, allowed });
        }
        Ok(mesh)
    }

    /// Row and column of a rank.
    #[must_use]
    pub const fn place(self, rank: u32) -> (u32, u32) {
        (rank / self.across, rank % self.across)
    }

    /// The rank so many rows down and columns right of another, if there is one.
    #[must_use]
    pub fn beside(self, rank: u32, (rows, columns): (i32, i32)) -> Option<u32> {
        let (row, column) = self.place(rank);
        let row = row.checked_add_signed(rows).filter(|row| *row < self.down)?;
        let column = column.checked_add_signed(columns).filter(|column| *column < self.across)?;
        Some(row * self.across + column)
    }

    /// A rank's block of `rows` x `columns`: where its rows begin and how many they are, and its columns.
    pub(crate) fn block(self, rank: u32, rows: usize, columns: usize) -> ((usize, usize), (usize, usize)) {
        let (row, column) = self.place(rank);
        (share(rows, self.down as usize, row as usize), share(columns, self.across as usize, column as usize))
    }
}

/// The relaxation factor that is best for the square and the cube of n inner points a side,
/// 2 / (1 + sin(pi / (n + 1))), by the series of the sine: the same on every machine.
pub(crate) fn over_relaxation(n: u64) -> f64 {
    let x = std::f64::consts::PI / (n + 1) as f64;
    let (mut term, mut sine) = (x, x);
    for k in 1..20 {
        term *= -x * x / f64::from(2 * k * (2 * k + 1));
        sine += term;
    }
    2.0 / (1.0 + sine)
}

/// 10^-v, by division: the same on every machine.
pub(crate) fn power_of_ten(v: u64) -> f64 {
    (0..v).fold(1.0, |value, _| value / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_that_of_the_sine() {
        for n in [2, 16, 255] {
            let sine = (std::f64::consts::PI / (n + 1) as f64).sin();
            assert!((over_relaxation(n) - 2.0 / (1.0 + sine)).abs() < 1e-15);
        }
    }

    #[test]
    fn a_mesh_holds_all_ranks() {
        assert_eq!(Mesh::of(4, 0, 0), Ok(Mesh { down: 2, across: 2 }));
        assert_eq!(Mesh::of(6, 0, 0), Ok(Mesh { down: 2, across: 3 }));
        assert_eq!(Mesh::of(6, 3, 0), Ok(Mesh { down: 3, across: 2 }));
        assert_eq!(Mesh::of(6, 0, 6), Ok(Mesh { down: 1, across: 6 }));
        assert_eq!(Mesh::of(6, 6, 1), Ok(Mesh { down: 6, across: 1 }));
    }

    #[test]
    fn a_mesh_of_another_number_of_ranks_is_refused_by_its_side() {
        let named = |mesh: Result<Mesh, ProgramError>| mesh.expect_err("refused").to_string();
        assert!(named(Mesh::of(6, 4, 0)).starts_with("down is 4; allowed: a divisor of 6"));
        assert!(named(Mesh::of(6, 0, 5)).starts_with("across is 5"));
        assert!(named(Mesh::of(6, 2, 2)).starts_with("down is 2"));
        assert!(named(Mesh::of(6, u64::MAX, 2)).starts_with("down is"));
    }

    #[test]
    fn neighbours_end_at_the_edge() {
        let mesh = Mesh { down: 2, across: 3 };
        assert_eq!(mesh.beside(1, (0, 1)), Some(2));
        assert_eq!(mesh.beside(2, (0, 1)), None);
        assert_eq!(mesh.beside(1, (-1, 0)), None);
        assert_eq!(mesh.beside(1, (1, -1)), Some(3));
    }
}
