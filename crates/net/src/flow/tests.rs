use std::collections::BTreeMap;

use proptest::prelude::*;
use wiretwin_engine::Schedule;
use wiretwin_units::{BitRate, Bits, SimTime};

use super::{FlowId, Flows};
use crate::fairness::{Session, max_min_shares};

/// Flows, driven until all have ended.
struct Driver {
    flows: Flows,
    schedule: Schedule,
    ended: BTreeMap<u32, SimTime>,
}

impl Driver {
    fn new(rates: &[u64]) -> Self {
        let flows = Flows::new(rates.iter().map(|rate| BitRate::bit_s(*rate)));
        Self { flows, schedule: Schedule::new(), ended: BTreeMap::new() }
    }

    fn start(&mut self, path: &[u32], bits: u64, ceiling: Option<u64>, client: u32) -> FlowId {
        self.flows.start(self.schedule.now(), path, Bits::new(bits), ceiling.map(BitRate::bit_s), client)
    }

    fn settle(&mut self) {
        self.flows.settle(self.schedule.now());
        while let Some((time, flow)) = self.flows.poll_timer() {
            self.schedule.at(time, u64::from(flow.0)).unwrap();
        }
    }

    fn run_until(&mut self, last: SimTime) {
        self.settle();
        while let Some(event) = self.schedule.next_through(last) {
            if let Some(client) = self.flows.handle_timer(event.time, FlowId(event.what as u32)) {
                self.ended.insert(client, event.time);
            }
            self.settle();
        }
        if last < SimTime::MAX {
            self.schedule.advance(last).unwrap();
        }
    }

    fn run(mut self) -> BTreeMap<u32, SimTime> {
        self.run_until(SimTime::MAX);
        assert_eq!(self.flows.active(), 0);
        self.ended
    }
}

/// Picoseconds in a microsecond.
const US: u64 = 1_000_000;

#[test]
fn a_flow_alone_takes_its_bits_at_the_least_rate_of_its_path() {
    let mut driver = Driver::new(&[1_000_000_000, 100_000_000]);
    driver.start(&[0, 1], 100_000, None, 7);
    assert_eq!(driver.run(), BTreeMap::from([(7, SimTime::from_ps(1000 * US))]));
}

#[test]
fn what_one_flow_leaves_the_others_get_at_once() {
    // Two of 100,000 bits over 1 Gbit/s: half each, until the shorter ends at 100 us with 50,000 bits.
    let mut driver = Driver::new(&[1_000_000_000]);
    driver.start(&[0], 100_000, None, 0);
    driver.start(&[0], 50_000, None, 1);
    let ended = driver.run();
    assert_eq!(ended[&1], SimTime::from_ps(100 * US));
    assert_eq!(ended[&0], SimTime::from_ps(150 * US));
}

#[test]
fn a_flow_that_comes_later_takes_its_share_from_then_on() {
    let mut driver = Driver::new(&[1_000_000_000]);
    driver.start(&[0], 100_000, None, 0);
    driver.run_until(SimTime::from_ps(50 * US));
    driver.start(&[0], 100_000, None, 1);
    let ended = driver.run();
    assert_eq!(ended[&0], SimTime::from_ps(150 * US), "50,000 bits alone, 50,000 at half the rate");
    assert_eq!(ended[&1], SimTime::from_ps(200 * US));
}

#[test]
fn a_flow_below_its_ceiling_leaves_the_rest_to_others() {
    let mut driver = Driver::new(&[1_000_000_000]);
    let slow = driver.start(&[0], 100_000, Some(100_000_000), 0);
    let fast = driver.start(&[0], 100_000, None, 1);
    driver.settle();
    assert_eq!([slow, fast].map(|flow| driver.flows.rate(flow)), [100, 900].map(BitRate::mbit_s));
}

#[test]
fn a_parking_lot_has_its_analytic_shares() {
    // One flow over n lines, one more over each: half of a line each, whatever n is.
    for lines in 1..20_u32 {
        let mut driver = Driver::new(&vec![1_000_000_000; lines as usize]);
        let all = (0..lines).collect::<Vec<_>>();
        let long = driver.start(&all, 1 << 40, None, 0);
        let short = all.iter().map(|line| driver.start(&[*line], 1 << 40, None, 1)).collect::<Vec<_>>();
        driver.settle();
        for flow in short.into_iter().chain([long]) {
            assert_eq!(driver.flows.rate(flow), BitRate::mbit_s(500));
        }
    }
}

#[derive(Clone, Debug)]
struct Wanted {
    path: Vec<u32>,
    bits: u64,
    ceiling: Option<u64>,
    after_us: u64,
}

fn wanted(media: u32) -> impl Strategy<Value = Wanted> {
    let path = prop::sample::subsequence((0..media).collect::<Vec<_>>(), 1..=media.min(4) as usize);
    (path, 1_u64..2_000_000, prop::option::of(1_000_000_u64..2_000_000_000), 0_u64..200)
        .prop_map(|(path, bits, ceiling, after_us)| Wanted { path, bits, ceiling, after_us })
}

fn some_flows() -> impl Strategy<Value = (Vec<u64>, Vec<Wanted>)> {
    prop::collection::vec(1_000_000_u64..1_000_000_000, 1..8).prop_flat_map(|rates| {
        let flows = prop::collection::vec(wanted(rates.len() as u32), 1..24);
        (Just(rates), flows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Against progressive filling over everything, in floating point, after each change.
    #[test]
    fn shares_are_max_min_fair((rates, mut wanted) in some_flows()) {
        wanted.sort_by_key(|one| one.after_us);
        let mut driver = Driver::new(&rates);
        let mut begun: Vec<(u32, FlowId)> = Vec::new();
        for (client, one) in (0..).zip(&wanted) {
            driver.run_until(SimTime::from_ps(one.after_us * US));
            begun.push((client, driver.start(&one.path, one.bits, one.ceiling, client)));
            driver.settle();
            let open = begun.iter().filter(|(client, _)| !driver.ended.contains_key(client)).collect::<Vec<_>>();
            let sessions = open
                .iter()
                .map(|(client, _)| Session {
                    links: wanted[*client as usize].path.iter().map(|medium| *medium as usize).collect(),
                    demand: wanted[*client as usize].ceiling.map(|rate| rate as f64),
                    weight: 1.0,
                })
                .collect::<Vec<_>>();
            let capacities = rates.iter().map(|rate| *rate as f64).collect::<Vec<_>>();
            let shares = max_min_shares(&capacities, &sessions);
            for ((client, flow), share) in open.iter().zip(shares) {
                let found = driver.flows.rate(*flow).get() as f64;
                // Shares are rounded down, and what that leaves goes to the next that are fixed.
                prop_assert!((found - share).abs() <= wanted.len() as f64, "{client}: {found} for {share}");
            }
        }
        let ended = driver.run();
        prop_assert_eq!(ended.len(), wanted.len(), "every flow ends");
        for (client, one) in (0..).zip(&wanted) {
            let most = one.path.iter().map(|medium| rates[*medium as usize]).min().unwrap();
            let most = most.min(one.ceiling.unwrap_or(u64::MAX));
            let took = ended[&client].as_ps() - one.after_us * US;
            let least = u128::from(one.bits) * super::SECOND / u128::from(most);
            prop_assert!(u128::from(took) >= least, "{} ps, {} at the full rate", took, least);
        }
    }

    /// A medium carries no more bits than its rate allows, and the bits of all flows that crossed it.
    #[test]
    fn no_medium_carries_more_than_its_rate((rates, wanted) in some_flows()) {
        let mut driver = Driver::new(&rates);
        for (client, one) in (0..).zip(&wanted) {
            driver.start(&one.path, one.bits, one.ceiling, client);
        }
        let ended = driver.run();
        for (medium, rate) in (0..).zip(&rates) {
            let crossing = || (0_u32..).zip(&wanted).filter(|(_, one)| one.path.contains(&medium));
            let bits = crossing().map(|(_, one)| u128::from(one.bits)).sum::<u128>();
            let last = crossing().map(|(client, _)| ended[&client].as_ps()).max().unwrap_or(0);
            prop_assert!(u128::from(last) * u128::from(*rate) >= bits * super::SECOND);
        }
    }
}
