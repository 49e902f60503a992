//! What is known of crossbars: saturation, rounds, waits.

use wiretwin_engine::Untraced;

use super::*;
use crate::cell_switch::run_by_slot;

fn run(ports: u8, load: f64, scheduler: Scheduler, slots: u64, observe: bool) -> (Config, CrossbarTotals) {
    let switch = Config { ports, load, slots, seed: 11, ..Config::default() };
    let config = CrossbarConfig { switch, scheduler, speed_up: 1, observe };
    (switch, run_crossbar(&config, &mut Untraced).unwrap())
}

/// Throughput when every input always has cells.
fn saturated(ports: u8, scheduler: Scheduler) -> f64 {
    // Queues only grow: what counts is the second half, by a run of the whole and one of the first half.
    let slots = 400_000 / u64::from(ports);
    let departed = |slots| run(ports, 1.0, scheduler, slots, false).1.cells.departed;
    (departed(2 * slots) - departed(slots)) as f64 / (slots as f64 * f64::from(ports))
}

#[test]
fn queues_in_order_saturate_at_the_known_values() {
    // Karol, Hluchyj and Morgan (1987), table I; 2 - sqrt 2 without end.
    let known = [(2, 0.7500), (3, 0.6825), (4, 0.6553), (5, 0.6399), (6, 0.6302), (7, 0.6234), (8, 0.6184)];
    for (ports, known) in known {
        let measured = saturated(ports, Scheduler::Fifo);
        assert!((measured - known).abs() < 0.006, "{ports} ports: {measured:.4}, known {known}");
    }
    let many = saturated(64, Scheduler::Fifo);
    assert!((many - (2.0 - f64::sqrt(2.0))).abs() < 0.01, "64 ports: {many:.4}");
}

#[test]
fn one_round_of_pim_saturates_at_one_less_1_over_e_and_more_rounds_at_more() {
    // Every input asks for every output: an input is granted by nobody with (1 - 1/N)^N.
    for ports in [4_u8, 16, 64] {
        let n = f64::from(ports);
        let known = 1.0 - (1.0 - 1.0 / n).powf(n);
        let measured = saturated(ports, Scheduler::Pim { iterations: 1 });
        assert!((measured - known).abs() < 0.02, "{ports} ports: {measured:.4}, known {known:.4}");
    }
    let by_rounds = [1, 2, 3, 4].map(|iterations| saturated(16, Scheduler::Pim { iterations }));
    assert!(by_rounds.is_sorted(), "{by_rounds:?}");
    assert!(by_rounds[3] > 0.97, "{by_rounds:?}");
}

#[test]
fn one_round_of_islip_carries_everything_of_uniform_traffic() {
    assert!(saturated(16, Scheduler::Islip { iterations: 1 }) > 0.99);
}

#[test]
fn rounds_to_the_end_stay_below_the_known_mean() {
    // Anderson and others (1993), appendix: at most log2 N + 4/3 rounds on average.
    for ports in [4, 16, 64] {
        for load in [0.5, 0.9, 1.0] {
            let (_, totals) = run(ports, load, Scheduler::Pim { iterations: 4 }, 20_000, true);
            let slots: u64 = totals.rounds.iter().sum();
            let rounds: u64 = (0..).zip(&totals.rounds).map(|(rounds, slots)| rounds * slots).sum();
            let mean = rounds as f64 / slots as f64;
            let bound = f64::from(ports).log2() + 4.0 / 3.0;
            assert!(mean <= bound, "{ports} ports at {load}: {mean:.2} rounds, at most {bound:.2}");
            assert!(totals.after.is_sorted(), "{:?}", totals.after);
            assert!(totals.matched_share(1).unwrap() > 0.5 && totals.matched_share(99) == Some(1.0));
        }
    }
}

#[test]
fn rounds_find_the_share_of_a_maximal_matching_that_a_second_program_found() {
    // 16 ports, independent requests of this probability; another implementation, 2000 trials.
    let known = [
        (0.10, [0.873, 0.998, 1.000]),
        (0.25, [0.755, 0.975, 1.000]),
        (0.50, [0.684, 0.931, 0.996]),
        (0.75, [0.660, 0.903, 0.986]),
        (1.00, [0.640, 0.878, 0.971]),
    ];
    for (p, known) in known {
        let after = pairs_by_round(16, p, 4000, 1).unwrap();
        let whole = *after.last().unwrap() as f64;
        for (round, (&found, known)) in after.iter().zip(known).enumerate() {
            let share = found as f64 / whole;
            assert!((share - known).abs() < 0.006, "p {p}, round {}: {share:.4}, known {known}", round + 1);
        }
    }
}

#[test]
fn counting_rounds_changes_nothing() {
    for scheduler in [Scheduler::Islip { iterations: 1 }, Scheduler::Islip { iterations: 3 }] {
        let (counted, plain) =
            (run(8, 0.95, scheduler, 5000, true).1, run(8, 0.95, scheduler, 5000, false).1);
        assert_eq!(counted.cells, plain.cells, "{scheduler}");
    }
}

#[test]
fn no_matching_waits_less_than_queues_at_the_outputs_and_speed_up_comes_near() {
    let (switch, four) = run(16, 0.8, Scheduler::Pim { iterations: 4 }, 60_000, false);
    let ideal = run_by_slot(&switch, &mut Untraced).unwrap().mean_wait().unwrap();
    let wait = four.cells.mean_wait().unwrap();
    assert!(wait > ideal, "{wait} against {ideal}");
    let twice = CrossbarConfig { switch, speed_up: 2, ..CrossbarConfig::default() };
    let twice = run_crossbar(&twice, &mut Untraced).unwrap().cells.mean_wait().unwrap();
    assert!(twice < wait && (twice / ideal - 1.0).abs() < 0.1, "{twice} against {ideal}");
    let maximum = run(16, 0.8, Scheduler::Maximum, 20_000, false).1.cells.mean_wait().unwrap();
    let one = run(16, 0.8, Scheduler::Pim { iterations: 2 }, 20_000, false).1.cells.mean_wait().unwrap();
    assert!(maximum < one, "{maximum} against {one}");
}
