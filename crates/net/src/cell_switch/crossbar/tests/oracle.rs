//! What is known of crossbars: saturation, rounds, waits.

use wiretwin_engine::{Probability, Stream, Untraced};

use super::*;
use crate::cell_switch::oracle::mean_wait;
use crate::cell_switch::{Config, Totals, run_by_slot};

fn run(ports: u8, load: f64, scheduler: Scheduler, slots: u64) -> (Config, Totals) {
    let config = Config { ports, load, slots, seed: 11, ..Config::default() };
    (config, run_crossbar(&config, scheduler, &mut Untraced).unwrap())
}

/// Throughput when every input always has cells.
fn saturated(ports: u8, scheduler: Scheduler) -> f64 {
    // Queues only grow: what counts is the second half, by a run of the whole and one of the first half.
    let slots = 400_000 / u64::from(ports);
    let departed = |slots| run(ports, 1.0, scheduler, slots).1.departed;
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
            let (trials, chance) = (2_000_u32, Probability::new(load).unwrap());
            let mut stream = Stream::derive(11, "requests");
            let mut pim = Pim::new(ports, Stream::derive(11, "choices"));
            let mut rounds = 0_u32;
            for _ in 0..trials {
                let mut requests = Requests::new(ports);
                for place in 0..(ports * ports) as u32 {
                    let (input, output) = (place / ports as u32, place % ports as u32);
                    requests.set(input, output, stream.happens(chance));
                }
                let mut matching = Matching::new(ports);
                while pim.round(&requests, &mut matching) {
                    rounds += 1;
                }
            }
            let mean = f64::from(rounds) / f64::from(trials);
            let bound = (ports as f64).log2() + 4.0 / 3.0;
            assert!(mean <= bound, "{ports} ports at {load}: {mean:.2} rounds, at most {bound:.2}");
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
fn no_matching_waits_less_than_queues_at_the_outputs() {
    let (config, four) = run(16, 0.8, Scheduler::Pim { iterations: 4 }, 60_000);
    let ideal = mean_wait(&run_by_slot(&config, &mut Untraced).unwrap());
    let wait = mean_wait(&four);
    assert!(wait > ideal, "{wait} against {ideal}");
    let maximum = mean_wait(&run(16, 0.8, Scheduler::Maximum, 20_000).1);
    let one = mean_wait(&run(16, 0.8, Scheduler::Pim { iterations: 2 }, 20_000).1);
    assert!(maximum < one, "{maximum} against {one}");
}
