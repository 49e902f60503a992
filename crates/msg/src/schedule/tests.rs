//! Every schedule is executed on real data and compared with the definition of its collective.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::*;

/// A byte of data as a word over ranks: which ranks' contributions it holds, in which order, so that
/// nothing lost, doubled or out of order goes unseen.
type Cell = Vec<(u32, u64)>;

/// Runs all ranks' plans against each other. Sends of a round see the workspace as the round began.
fn execute(plans: &[Plan], spaces: &mut [Vec<Cell>], commutative: bool) {
    let size = plans.len();
    let mut wires: Vec<VecDeque<Vec<Cell>>> = vec![VecDeque::new(); size * size];
    // Per rank: the round, and whether its sends have left.
    let mut at = vec![(0usize, false); size];
    loop {
        let mut moved = false;
        for rank in 0..size {
            let (round, sent) = at[rank];
            let Some(steps) = plans[rank].rounds.get(round) else { continue };
            if !sent {
                for step in steps {
                    if let Step::Send { peer, region } = step {
                        wires[rank * size + *peer as usize].push_back(cells(&spaces[rank], *region).to_vec());
                    }
                }
                at[rank].1 = true;
                moved = true;
            }
            let mut wanted = vec![0usize; size];
            for step in steps {
                if let Step::Recv { peer, .. } | Step::Reduce { peer, .. } = step {
                    wanted[*peer as usize] += 1;
                }
            }
            if (0..size).any(|peer| wires[peer * size + rank].len() < wanted[peer]) {
                continue;
            }
            let space = &mut spaces[rank];
            let mut reduced = Vec::new();
            for step in steps {
                let (Step::Recv { peer, region } | Step::Reduce { peer, region }) = *step else { continue };
                let message = wires[peer as usize * size + rank].pop_front().unwrap();
                assert_eq!(message.len() as u64, region.length, "rank {rank} from {peer}");
                if matches!(step, Step::Recv { .. }) {
                    fill(space, region, &message);
                } else {
                    reduced.push((peer, region, message));
                }
            }
            for (peer, region, message) in reduced {
                combine(space, region, &message, (peer as usize) > rank, commutative);
            }
            for step in steps {
                match *step {
                    Step::Copy { from, region } => {
                        let data = cells(space, Region { offset: from, ..region }).to_vec();
                        fill(space, region, &data);
                    }
                    Step::Combine { from, region, after } => {
                        let data = cells(space, Region { offset: from, ..region }).to_vec();
                        combine(space, region, &data, after, commutative);
                    }
                    _ => {}
                }
            }
            at[rank] = (round + 1, false);
            moved = true;
        }
        if !moved {
            break;
        }
    }
    for rank in 0..size {
        assert_eq!(at[rank].0, plans[rank].rounds.len(), "rank {rank} hangs in its plan");
    }
    assert!(wires.iter().all(VecDeque::is_empty), "messages that nobody receives");
}

fn cells(space: &[Cell], region: Region) -> &[Cell] {
    &space[region.offset as usize..(region.offset + region.length) as usize]
}

fn fill(space: &mut [Cell], region: Region, data: &[Cell]) {
    space[region.offset as usize..(region.offset + region.length) as usize].clone_from_slice(data);
}

fn combine(space: &mut [Cell], region: Region, other: &[Cell], after: bool, commutative: bool) {
    let start = region.offset as usize;
    for (cell, other) in space[start..].iter_mut().zip(other) {
        let (left, right) = if after { (&*cell, other) } else { (other, &*cell) };
        let mut joined = left.clone();
        joined.extend(right);
        if commutative {
            joined.sort_unstable();
        }
        *cell = joined;
    }
}

/// What the rank contributes: cell `index` of rank `r` is the word (r, index).
fn own(rank: u32, region: Region) -> Vec<Cell> {
    (0..region.length).map(|index| vec![(rank, index)]).collect()
}

fn run(make: impl Fn(u32) -> Call<'static>, size: u32) -> (Vec<Plan>, Vec<Vec<Cell>>) {
    let plans = (0..size).map(|rank| plan(&make(rank), &Thresholds::MPICH).unwrap()).collect::<Vec<_>>();
    let mut spaces = Vec::new();
    for (rank, plan) in plans.iter().enumerate() {
        let mut space = vec![vec![(u32::MAX, 0)]; plan.workspace as usize];
        fill(&mut space, plan.input, &own(rank as u32, plan.input));
        spaces.push(space);
    }
    execute(&plans, &mut spaces, make(0).commutative);
    (plans, spaces)
}

fn call(
    collective: Collective,
    algorithm: Option<Algorithm>,
    rank: u32,
    size: u32,
    root: u32,
) -> Call<'static> {
    Call { collective, algorithm, rank, size, root, amount: Amount::Each(0), unit: 1, commutative: true }
}

fn leak(list: Vec<u64>) -> &'static [u64] {
    list.leak()
}

/// What output each rank must have, by definition; amounts as in the call.
fn expected(call: &Call<'_>, rank: u32) -> Vec<Cell> {
    let size = call.size;
    let blocks = Blocks::of(call);
    let words = |ranks: core::ops::Range<u32>, index: u64| ranks.map(|rank| (rank, index)).collect::<Cell>();
    let all = |length: u64| (0..length).map(|index| words(0..size, index)).collect::<Vec<_>>();
    let gathered = || {
        (0..size)
            .flat_map(|owner| (0..blocks.bytes(owner)).map(move |index| vec![(owner, index)]))
            .collect::<Vec<_>>()
    };
    match call.collective {
        Collective::Bcast => (0..blocks.bytes(0)).map(|index| vec![(call.root, index)]).collect(),
        Collective::Reduce if rank == call.root => all(blocks.bytes(0)),
        Collective::Allreduce => all(blocks.bytes(0)),
        Collective::ReduceScatter => {
            let region = blocks.region(0, rank);
            (region.offset..region.offset + region.length).map(|index| words(0..size, index)).collect()
        }
        Collective::Scan => (0..blocks.bytes(0)).map(|index| words(0..rank + 1, index)).collect(),
        Collective::Exscan if rank > 0 => (0..blocks.bytes(0)).map(|index| words(0..rank, index)).collect(),
        Collective::Gather if rank == call.root => gathered(),
        Collective::Allgather => gathered(),
        Collective::Scatter => {
            let region = blocks.region(0, rank);
            (region.offset..region.offset + region.length).map(|index| vec![(call.root, index)]).collect()
        }
        Collective::Alltoall => {
            let sent = |from: u32, to: u32| match call.amount {
                Amount::Each(bytes) => bytes,
                _ => exchange(from, to),
            };
            (0..size)
                .flat_map(|from| {
                    let start: u64 = (0..rank).map(|to| sent(from, to)).sum();
                    (start..start + sent(from, rank)).map(move |index| vec![(from, index)])
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// An uneven all-to-all.
fn exchange(from: u32, to: u32) -> u64 {
    u64::from((from * 3 + to * 5) % 4)
}

fn check(make: &dyn Fn(u32) -> Call<'static>, size: u32, label: &str) {
    let (plans, spaces) = run(make, size);
    for (rank, (plan, space)) in plans.iter().zip(&spaces).enumerate() {
        let expected = expected(&make(rank as u32), rank as u32);
        assert_eq!(cells(space, plan.output), expected, "{label}, rank {rank} of {size}");
    }
}

#[test]
fn every_algorithm_does_what_its_collective_says_for_1_to_17_ranks_and_any_root() {
    for collective in Collective::ALL {
        let automatic = [None];
        let named = collective.algorithms().iter().copied().map(Some);
        for algorithm in automatic.into_iter().chain(named) {
            for size in 1..=17 {
                for root in 0..size {
                    let rooted = matches!(
                        collective,
                        Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter
                    );
                    if root > 0 && !rooted {
                        break;
                    }
                    for bytes in [0, 1, 5, 34] {
                        let make = |rank| Call {
                            amount: Amount::Each(bytes),
                            ..call(collective, algorithm, rank, size, root)
                        };
                        let label = alloc::format!("{collective:?} {algorithm:?} root {root} bytes {bytes}");
                        check(&make, size, &label);
                    }
                }
            }
        }
    }
}

#[test]
fn of_nothing_there_are_no_messages_but_those_of_a_barrier() {
    for collective in Collective::ALL {
        for rank in 0..5 {
            let amount = Amount::Each(0);
            let call = Call {
                collective,
                algorithm: None,
                rank,
                size: 5,
                root: 1,
                amount,
                unit: 1,
                commutative: true,
            };
            let rounds = plan(&call, &Thresholds::MPICH).unwrap().rounds;
            assert_eq!(rounds.is_empty(), collective != Collective::Barrier, "{collective:?}");
        }
    }
}

#[test]
fn operations_that_do_not_commute_are_applied_in_the_order_of_ranks() {
    let collectives = [
        Collective::Reduce,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::Scan,
        Collective::Exscan,
    ];
    for collective in collectives {
        for algorithm in collective.algorithms() {
            let refused = matches!(
                (collective, algorithm),
                (Collective::Allreduce, Algorithm::Ring)
                    | (Collective::ReduceScatter, Algorithm::RecursiveHalving | Algorithm::Pairwise)
            );
            for size in 1..=17 {
                for root in [0, size / 2, size - 1] {
                    let make = |rank| Call {
                        amount: Amount::Each(24),
                        commutative: false,
                        unit: 4,
                        ..call(collective, Some(*algorithm), rank, size, root)
                    };
                    if refused {
                        let error = plan(&make(0), &Thresholds::MPICH).unwrap_err();
                        assert!(matches!(error, ScheduleError::NoSuchAlgorithm { .. }));
                    } else {
                        check(&make, size, &alloc::format!("{collective:?} {algorithm:?} root {root}"));
                    }
                }
            }
        }
    }
}

#[test]
fn uneven_blocks_go_where_they_belong() {
    for size in 1..=17u32 {
        let lengths = leak((0..size).map(|rank| u64::from(rank * 7 % 5)).collect());
        let cases: [(Collective, &[Algorithm]); 4] = [
            (Collective::Allgather, &[Algorithm::Ring, Algorithm::Brucks, Algorithm::RecursiveDoubling]),
            (Collective::Gather, &[Algorithm::Linear]),
            (Collective::Scatter, &[Algorithm::Linear]),
            (
                Collective::ReduceScatter,
                &[Algorithm::RecursiveHalving, Algorithm::Pairwise, Algorithm::ReduceThenScatter],
            ),
        ];
        for (collective, algorithms) in cases {
            for algorithm in algorithms {
                let make = |rank| Call {
                    amount: Amount::ByRank(lengths),
                    ..call(collective, Some(*algorithm), rank, size, 0)
                };
                check(&make, size, &alloc::format!("{collective:?} {algorithm:?}"));
            }
        }
        for algorithm in [Algorithm::Pairwise, Algorithm::Scattered] {
            let make = |rank| Call {
                amount: Amount::Exchange {
                    send: leak((0..size).map(|to| exchange(rank, to)).collect()),
                    receive: leak((0..size).map(|from| exchange(from, rank)).collect()),
                },
                ..call(Collective::Alltoall, Some(algorithm), rank, size, 0)
            };
            check(&make, size, &alloc::format!("alltoallv {algorithm:?}"));
        }
    }
}

#[test]
fn reductions_are_cut_between_elements() {
    for (collective, algorithm) in [
        (Collective::Allreduce, Algorithm::Ring),
        (Collective::Allreduce, Algorithm::ReduceScatterAllgather),
        (Collective::Reduce, Algorithm::ReduceScatterGather),
    ] {
        for rank in 0..7 {
            let made =
                Call { amount: Amount::Each(40), unit: 8, ..call(collective, Some(algorithm), rank, 7, 3) };
            let plan = plan(&made, &Thresholds::MPICH).unwrap();
            for step in plan.rounds.iter().flatten() {
                assert_eq!(step.region().offset % 8, 0);
                assert_eq!(step.region().length % 8, 0);
            }
        }
    }
}

#[test]
fn auto_changes_where_mpich_does() {
    use Algorithm as A;
    use Collective as C;
    let chosen = |collective, size, bytes, unit| {
        let made = Call { amount: Amount::Each(bytes), unit, ..call(collective, None, 0, size, 0) };
        plan(&made, &Thresholds::MPICH).unwrap().algorithm
    };
    for (collective, size, bytes, algorithm) in [
        (C::Bcast, 8, 12_287, A::Binomial),
        (C::Bcast, 7, 1 << 20, A::Binomial),
        (C::Bcast, 8, 12_288, A::ScatterRecursiveDoublingAllgather),
        (C::Bcast, 9, 12_288, A::ScatterRingAllgather),
        (C::Bcast, 8, 524_288, A::ScatterRingAllgather),
        (C::Reduce, 8, 2_048, A::Binomial),
        (C::Reduce, 8, 2_049, A::ReduceScatterGather),
        (C::Allreduce, 8, 2_048, A::RecursiveDoubling),
        (C::Allreduce, 8, 2_049, A::ReduceScatterAllgather),
        (C::Allgather, 4, 131_071, A::RecursiveDoubling),
        (C::Allgather, 4, 131_072, A::Ring),
        (C::Allgather, 5, 16_383, A::Brucks),
        (C::Allgather, 5, 16_384, A::Ring),
        (C::Alltoall, 8, 256, A::Brucks),
        (C::Alltoall, 7, 256, A::Scattered),
        (C::Alltoall, 8, 32_768, A::Scattered),
        (C::Alltoall, 8, 32_769, A::Pairwise),
        (C::Gather, 8, 1 << 20, A::Binomial),
        (C::ReduceScatter, 8, 65_535, A::RecursiveHalving),
        (C::ReduceScatter, 8, 65_536, A::Pairwise),
    ] {
        assert_eq!(chosen(collective, size, bytes, 1), algorithm, "{collective:?} {size} {bytes}");
    }
    assert_eq!(chosen(C::Allreduce, 8, 4096, 1024), A::RecursiveDoubling, "4 elements over 8 ranks");
}

#[test]
fn a_wrong_call_is_refused_with_what_is_allowed() {
    let good = call(Collective::Gather, None, 0, 3, 0);
    let text = |call: Call<'_>| alloc::format!("{}", plan(&call, &Thresholds::MPICH).unwrap_err());
    assert_eq!(text(Call { rank: 3, ..good }), "rank is 3; allowed: 0 to 2");
    assert_eq!(text(Call { root: 9, ..good }), "root is 9; allowed: 0 to 2");
    assert_eq!(
        text(Call { amount: Amount::ByRank(&[1, 2]), ..good }),
        "gather: wrong amounts; allowed: one number of bytes, or one for each rank"
    );
    assert_eq!(
        text(Call { algorithm: Some(Algorithm::Ring), ..good }),
        "gather: no algorithm \"ring\" for this call; allowed: auto, binomial, linear"
    );
    assert_eq!(
        text(Call { amount: Amount::ByRank(&[1, 2, 3]), algorithm: Some(Algorithm::Binomial), ..good }),
        "gather: no algorithm \"binomial\" for this call; allowed: auto, linear"
    );
    assert_eq!(
        text(Call { amount: Amount::Each(12), unit: 8, ..good }),
        "element length 8 does not divide 12 bytes; allowed: a divisor, at least 1"
    );
    assert_eq!(
        text(Call { amount: Amount::Each(u64::MAX), ..good }),
        "the amounts add up to more than 2^60 bytes"
    );
    let size = call(Collective::Barrier, None, 0, 0, 0);
    assert_eq!(text(size), "rank 0 of no ranks at all");
}

#[test]
fn names_lead_back_to_what_they_name() {
    for collective in Collective::ALL {
        assert_eq!(Collective::from_name(collective.name()), Some(collective));
        for algorithm in collective.algorithms() {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(*algorithm));
        }
    }
    assert_eq!(Algorithm::from_name("auto"), None);
}
