//! Collectives as libraries of their time did them.
//!
//! | | LAM 6.3 | MPICH 1.1 and 1.2 | MPICH 4 |
//! |---|---|---|---|
//! | barrier | as below, of nothing, to rank 0 and back | hypercube | dissemination |
//! | bcast | up to 4 ranks from the root one by one, else a binomial tree | binomial tree | by size |
//! | reduce | the same, to the root | binomial tree | by size |
//! | allreduce | reduce, then bcast | reduce, then bcast | by size |
//! | gather, scatter | to and from the root one by one | the same | binomial tree |
//! | allgather | gather, then bcast | ring | by size |
//! | alltoall | all at once | all at once | by size |
//! | reduce-scatter | reduce, then scatter | reduce, then scatter | by size |
//! | scan, exscan | rank after rank | recursive doubling | recursive doubling |
//!
//! *Choice*: the sources of LAM 6.3 and MPICH 1.1.2 were not read; the table is what their later versions of the
//! same years do. LAM's scan is left out: it is done as MPICH's.

use alloc::vec;
use alloc::vec::Vec;

use super::{Algorithm, Amount, Blocks, Call, Collective, Plan, ScheduleError, Thresholds, plan};

/// Whose collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collectives {
    /// LAM's, up to version 7.0.
    Lam,
    /// Those of MPICH 1, which every device of it has: `ch_p4`, and MVICH.
    Mpich1,
    /// Those of MPICH 4.
    Mpich4,
}

/// Up to so many ranks LAM goes through them one by one (`LAM_COLLMAXLIN`).
const LAM_LINEAR_RANKS: u32 = 4;

impl Collectives {
    /// What a call is made of, one after the other: which collective, how.
    fn parts(self, collective: Collective, size: u32) -> Vec<(Collective, Option<Algorithm>)> {
        use Algorithm as A;
        use Collective as C;
        let tree = match self {
            Self::Lam if size <= LAM_LINEAR_RANKS => Some(A::Linear),
            _ => Some(A::Binomial),
        };
        match (self, collective) {
            (Self::Mpich4, _) => vec![(collective, None)],
            (Self::Lam, C::Barrier) | (_, C::Bcast | C::Reduce) => vec![(collective, tree)],
            (Self::Mpich1, C::Barrier) => vec![(C::Barrier, Some(A::RecursiveDoubling))],
            (_, C::Allreduce) => vec![(C::Reduce, tree), (C::Bcast, tree)],
            (_, C::ReduceScatter) => vec![(C::Reduce, tree), (C::Scatter, Some(A::Linear))],
            (_, C::Gather | C::Scatter) => vec![(collective, Some(A::Linear))],
            (Self::Lam, C::Allgather) => vec![(C::Gather, Some(A::Linear)), (C::Bcast, tree)],
            (Self::Mpich1, C::Allgather) => vec![(C::Allgather, Some(A::Ring))],
            (_, C::Alltoall) => vec![(C::Alltoall, Some(A::Scattered))],
            (_, C::Scan | C::Exscan) => vec![(collective, Some(A::RecursiveDoubling))],
        }
    }

    /// What one rank does for a call, as plans one after the other: the result of each is what the next is
    /// about. The algorithm of the call says nothing.
    ///
    /// # Errors
    /// As for [`plan`].
    pub fn plans(self, call: &Call<'_>) -> Result<Vec<Plan>, ScheduleError> {
        let whole = Amount::Each(Blocks::of(call).total());
        let parts = self.parts(call.collective, call.size);
        let several = parts.len() > 1;
        let one = |(collective, algorithm)| {
            // A part that has the whole of what the call has by block.
            let amount = match (several, collective) {
                (true, Collective::Reduce | Collective::Bcast)
                    if call.collective != Collective::Allreduce =>
                {
                    whole
                }
                _ => call.amount,
            };
            plan(&Call { collective, algorithm, amount, ..*call }, &Thresholds::MPICH)
        };
        parts.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;

    fn call(collective: Collective, rank: u32, size: u32) -> Call<'static> {
        let amount = Amount::Each(if collective == Collective::Barrier { 0 } else { 100 });
        Call { collective, algorithm: None, rank, size, root: 0, amount, unit: 1, commutative: true }
    }

    /// By rank: messages sent, and their octets.
    fn sent(library: Collectives, collective: Collective, size: u32) -> Vec<(usize, u64)> {
        (0..size)
            .map(|rank| {
                let plans = library.plans(&call(collective, rank, size)).unwrap();
                let steps = plans.iter().flat_map(|plan| plan.rounds.iter().flatten());
                let sends = steps.filter(|step| matches!(step, Step::Send { .. }));
                sends.fold((0, 0), |sum, step| (sum.0 + 1, sum.1 + step.region().length))
            })
            .collect()
    }

    #[test]
    fn libraries_send_what_their_algorithms_do() {
        use Collective as C;
        use Collectives::{Lam, Mpich1};
        assert_eq!(sent(Lam, C::Bcast, 4), [(3, 300), (0, 0), (0, 0), (0, 0)], "one by one");
        let tree = [(3, 300), (0, 0), (1, 100), (0, 0), (2, 200), (0, 0), (1, 100), (0, 0)];
        assert_eq!(sent(Lam, C::Bcast, 8), tree);
        assert_eq!(sent(Mpich1, C::Bcast, 8), tree);
        assert_eq!(sent(Mpich1, C::Bcast, 4), [(2, 200), (0, 0), (1, 100), (0, 0)]);
        assert_eq!(sent(Lam, C::Barrier, 3), [(2, 0), (1, 0), (1, 0)]);
        assert_eq!(sent(Lam, C::Barrier, 6), [(3, 0), (1, 0), (2, 0), (1, 0), (2, 0), (1, 0)]);
        assert_eq!(sent(Mpich1, C::Barrier, 8), [(3, 0); 8]);
        assert_eq!(sent(Mpich1, C::Barrier, 3), [(1, 0), (2, 0), (1, 0)]);
        // All blocks go to the root, and the whole comes back.
        assert_eq!(sent(Lam, C::Allgather, 3), [(2, 600), (1, 100), (1, 100)]);
        assert_eq!(sent(Mpich1, C::Allgather, 3), [(2, 200); 3]);
        assert_eq!(sent(Lam, C::Alltoall, 5), [(4, 400); 5]);
        // Up a tree and down it.
        assert_eq!(sent(Mpich1, C::Allreduce, 4), [(2, 200), (1, 100), (2, 200), (1, 100)]);
        assert_eq!(sent(Mpich1, C::ReduceScatter, 2), [(1, 100), (1, 200)]);
        let today = sent(Collectives::Mpich4, C::Barrier, 8);
        assert_eq!(today, [(3, 0); 8]);
    }

    #[test]
    fn what_one_rank_sends_another_receives() {
        for library in [Collectives::Lam, Collectives::Mpich1, Collectives::Mpich4] {
            for collective in Collective::ALL {
                for size in 1..10 {
                    let mut balance = alloc::collections::BTreeMap::new();
                    for rank in 0..size {
                        for plan in library.plans(&call(collective, rank, size)).unwrap() {
                            for step in plan.rounds.iter().flatten() {
                                let (pair, by) = match *step {
                                    Step::Send { peer, .. } => ((rank, peer), 1),
                                    Step::Recv { peer, .. } | Step::Reduce { peer, .. } => ((peer, rank), -1),
                                    _ => continue,
                                };
                                *balance.entry((pair, step.region().length)).or_insert(0) += by;
                            }
                        }
                    }
                    assert!(balance.values().all(|left| *left == 0), "{library:?} {collective:?} {size}");
                }
            }
        }
    }
}
