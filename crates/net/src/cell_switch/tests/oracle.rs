//! Queueing theory: what is known of these queues in closed form.

use wiretwin_engine::{Stream, Untraced};
use wiretwin_units::{BitRate, Bits, SimTime, Span, Transmitter};

use super::*;

/// Mean wait of the cells that left, in slots.
pub(super) fn mean_wait(totals: &Totals) -> f64 {
    totals.waited as f64 / totals.departed as f64
}

/// Mean and half width of its 99.9 % interval (Student's t with 19 degrees of freedom) over 20 seeds.
fn mean_of_twenty(of: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<_> = (0..20).map(of).collect();
    let mean = values.iter().sum::<f64>() / 20.0;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 19.0;
    (mean, 3.883 * (variance / 20.0).sqrt())
}

#[test]
fn the_mean_wait_is_that_of_karol_hluchyj_and_morgan() {
    // (N - 1)/N p/(2 (1 - p)) slots.
    for ports in [2, 4, 16, 64] {
        for load in [0.3, 0.6, 0.8, 0.9] {
            let slots = 6_000_000 / u64::from(ports) / 20;
            let wait = |seed| {
                let config = Config { ports, load, slots, seed, ..Config::default() };
                mean_wait(&run_by_slot(&config, &mut Untraced).unwrap())
            };
            let (mean, half) = mean_of_twenty(wait);
            let n = f64::from(ports);
            let known = (n - 1.0) / n * load / (2.0 * (1.0 - load));
            // A run begins with an empty switch, which takes off a little.
            let start = known * 30.0 / (1.0 - load) / slots as f64;
            assert!(
                (mean - known).abs() < half + start,
                "{ports} ports at {load}: {mean:.4} ± {half:.4}, known {known:.4}"
            );
            assert!(half < 0.25 * known, "{ports} ports at {load}: an interval of ± {half:.4} says nothing");
        }
    }
}

#[test]
fn poisson_cells_at_a_transmitter_wait_as_in_m_d_1() {
    // rho/(2 (1 - rho)) cell times: a line of 149.76 Mbit/s.
    let cell = Bits::new(424);
    let rate = BitRate::kbit_s(149_760);
    for load in [0.3, 0.6, 0.9] {
        let cells = 100_000;
        let wait = |seed| {
            let mut stream = Stream::derive(seed, "poisson");
            let mut line = Transmitter::new(rate);
            let service = rate.time_for(cell).unwrap().as_ps() as f64;
            let mean = Span::from_ps((service / load) as u64);
            let (mut now, mut waited) = (SimTime::ZERO, 0.0);
            for _ in 0..cells {
                now += stream.exponential(mean);
                waited += (line.send(now, cell).unwrap().start - now).as_ps() as f64;
            }
            waited / f64::from(cells) / service
        };
        let (mean, half) = mean_of_twenty(wait);
        let known = load / (2.0 * (1.0 - load));
        let start = known * 30.0 / (1.0 - load) / f64::from(cells);
        assert!((mean - known).abs() < half + start, "at {load}: {mean:.4} ± {half:.4}, known {known:.4}");
    }
}
