//! Matchings as they should be, step by step; refusals.

use proptest::prelude::*;
use wiretwin_engine::{Stream, TraceRecorder, Untraced};

use super::*;
use crate::cell_switch::Config;

fn requests(rows: &[u64]) -> Requests {
    let mut requests = Requests::new(rows.len());
    for (input, &row) in (0..).zip(rows) {
        for output in 0..rows.len() as u32 {
            requests.set(input, output, row >> output & 1 == 1);
        }
    }
    requests
}

/// Largest number of pairs, by trying everything.
fn most_pairs(rows: &[u64], taken: u64) -> u32 {
    let Some((&row, rest)) = rows.split_first() else { return 0 };
    let without = most_pairs(rest, taken);
    let with = (0..64).filter(|output| (row & !taken) >> output & 1 == 1);
    with.map(|output| 1 + most_pairs(rest, taken | 1 << output)).fold(without, u32::max)
}

/// Whether the matching uses requests only, and no two free ports ask for each other.
fn is_maximal(rows: &[u64], matching: &Matching) -> bool {
    let pairs: Vec<_> = matching.pairs().collect();
    let asked = pairs.iter().all(|&(input, output)| rows[input as usize] >> output & 1 == 1);
    let (mut inputs, mut outputs) = (0_u64, 0_u64);
    for &(input, output) in &pairs {
        inputs |= 1 << input;
        outputs |= 1 << output;
    }
    let free = (0..rows.len()).filter(|input| inputs >> input & 1 == 0);
    let mut left = free.map(|input| rows[input] & !outputs);
    asked && pairs.len() == outputs.count_ones() as usize && left.all(|row| row == 0)
}

fn rows(ports: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<u64>> {
    ports.prop_flat_map(|ports| {
        prop::collection::vec(any::<u64>().prop_map(move |row| row & (u64::MAX >> (64 - ports))), ports)
    })
}

proptest! {
    #[test]
    fn a_maximum_matching_has_as_many_pairs_as_there_can_be(rows in rows(2..=7)) {
        let matching = maximum_matching(&requests(&rows));
        prop_assert_eq!(matching.len(), most_pairs(&rows, 0));
        prop_assert!(is_maximal(&rows, &matching));
    }

    #[test]
    fn rounds_end_in_a_maximal_matching_of_at_least_half_the_maximum(rows in rows(2..=64), seed in any::<u64>()) {
        let asked = requests(&rows);
        let mut by_pim = Matching::new(rows.len());
        let mut pim = Pim::new(rows.len(), Stream::derive(seed, "pim"));
        let mut rounds = 0;
        while pim.round(&asked, &mut by_pim) {
            rounds += 1;
            prop_assert!(rounds <= rows.len(), "every round adds a pair");
        }
        let mut by_islip = Matching::new(rows.len());
        let mut islip = Islip::new(rows.len());
        while islip.round(&asked, &mut by_islip, false) {}
        let most = maximum_matching(&asked).len();
        for matching in [by_pim, by_islip] {
            prop_assert!(is_maximal(&rows, &matching));
            prop_assert!(matching.len() * 2 >= most && matching.len() <= most);
        }
    }

    #[test]
    fn cells_are_conserved_and_keep_their_order(
        ports in 2_u8..=64, load in 0.0..=1.0, scheduler in 0..5, seed in any::<u64>(),
    ) {
        let scheduler = match scheduler {
            0 => Scheduler::Pim { iterations: 1 },
            1 => Scheduler::Pim { iterations: 4 },
            2 => Scheduler::Islip { iterations: 2 },
            3 => Scheduler::Maximum,
            _ => Scheduler::Fifo,
        };
        let config = Config { ports, load, seed, slots: 120, ..Config::default() };
        let mut trace = TraceRecorder::new();
        let cells = run_crossbar(&config, scheduler, &mut trace).unwrap();
        prop_assert_eq!(cells.arrived, cells.departed + cells.held);
        // Of one input to one output no cell overtakes another, and no output sends two in a slot.
        let mut last = std::collections::BTreeMap::new();
        let mut leaving = std::collections::BTreeSet::new();
        for event in trace.events() {
            let before = last.insert(event.a, event.b);
            prop_assert!(before.is_none_or(|before| before < event.b));
            prop_assert!(leaving.insert((event.time, event.a >> 8)));
        }
        let mut again = TraceRecorder::new();
        run_crossbar(&config, scheduler, &mut again).unwrap();
        prop_assert_eq!(trace.digest(), again.digest());
    }
}

#[test]
fn islip_pointers_move_past_what_was_accepted_in_the_first_round() {
    // Both inputs ask for both outputs: the first slot pairs 0 with 0 only, then the pointers part.
    let all = requests(&[0b11, 0b11]);
    let mut islip = Islip::new(2);
    let mut first = Matching::new(2);
    islip.round(&all, &mut first, true);
    assert_eq!(first.pairs().collect::<Vec<_>>(), [(0, 0)]);
    for expected in [[(0, 1), (1, 0)], [(0, 0), (1, 1)], [(0, 1), (1, 0)]] {
        let mut matching = Matching::new(2);
        islip.round(&all, &mut matching, true);
        assert_eq!(matching.pairs().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused =
        |config: Config, scheduler| run_crossbar(&config, scheduler, &mut Untraced).unwrap_err().to_string();
    let none = Config { ports: 0, ..Config::default() };
    assert_eq!(refused(none, Scheduler::Maximum), "ports is 0; allowed: 2 to 64");
    let idle = Scheduler::Pim { iterations: 0 };
    assert_eq!(refused(Config::default(), idle), "iterations is 0; allowed: 1 or more");
}
