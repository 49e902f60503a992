//! Which ranks have circuits to each other from the start.

use alloc::vec::Vec;

/// A pattern of circuits that are held; whoever sends beyond it has a circuit made for the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// No circuits: each is made for its first message.
    Demand,
    /// Every two ranks.
    All,
    /// A mesh of as many rows as columns, or fewer: the ranks above, below, left and right.
    Mesh,
    /// A hypercube: ranks whose numbers differ in one bit.
    Hypercube,
    /// A binary tree: the rank above, and up to two below.
    Tree,
}

impl Topology {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Demand, Self::All, Self::Mesh, Self::Hypercube, Self::Tree];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Demand => "demand",
            Self::All => "all",
            Self::Mesh => "mesh",
            Self::Hypercube => "hypercube",
            Self::Tree => "tree",
        }
    }

    /// Whether so many ranks can stand like that.
    #[must_use]
    pub const fn takes(self, size: u32) -> bool {
        !matches!(self, Self::Hypercube) || size.is_power_of_two()
    }

    /// Those that a rank has circuits to, in order.
    #[must_use]
    pub fn neighbours(self, rank: u32, size: u32) -> Vec<u32> {
        let joined = |other: u32| match self {
            Self::Demand => false,
            Self::All => true,
            Self::Mesh => {
                let across = size / rows(size);
                let (one, two) = ((rank / across, rank % across), (other / across, other % across));
                one.0.abs_diff(two.0) + one.1.abs_diff(two.1) == 1
            }
            Self::Hypercube => (rank ^ other).count_ones() == 1,
            Self::Tree => {
                let (low, high) = (rank.min(other), rank.max(other));
                (high - 1) / 2 == low
            }
        };
        (0..size).filter(|&other| other != rank && joined(other)).collect()
    }
}

/// Rows of a mesh: the most that divide it and are no more than its columns.
fn rows(size: u32) -> u32 {
    (1..=size)
        .take_while(|rows| rows * rows <= size)
        .filter(|rows| size.is_multiple_of(*rows))
        .last()
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_the_pattern() {
        for (topology, rank, size, found) in [
            (Topology::Demand, 0, 4, &[][..]),
            (Topology::All, 1, 4, &[0, 2, 3]),
            (Topology::Mesh, 5, 12, &[1, 4, 6, 9]),
            (Topology::Mesh, 3, 12, &[2, 7]),
            (Topology::Mesh, 1, 3, &[0, 2]),
            (Topology::Hypercube, 5, 8, &[1, 4, 7]),
            (Topology::Tree, 0, 6, &[1, 2]),
            (Topology::Tree, 2, 6, &[0, 5]),
        ] {
            assert_eq!(topology.neighbours(rank, size), found, "{topology:?} of {size}, rank {rank}");
        }
        assert!(!Topology::Hypercube.takes(6) && Topology::Hypercube.takes(8) && Topology::Mesh.takes(7));
    }

    #[test]
    fn who_has_a_neighbour_is_one() {
        for topology in Topology::ALL {
            for size in (2..=16).filter(|&size| topology.takes(size)) {
                for rank in 0..size {
                    for other in topology.neighbours(rank, size) {
                        assert!(
                            topology.neighbours(other, size).contains(&rank),
                            "{topology:?} {rank} {other}"
                        );
                    }
                }
            }
        }
    }
}
