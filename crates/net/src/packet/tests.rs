//! Oracles, conservation, fairness.

use std::sync::Arc;

use proptest::prelude::*;
use wiretwin_plan::{LineId, NetworkPlan};
use wiretwin_proto::tcp::{Config, DelayedAck, Reason};
use wiretwin_units::{Bytes, SimTime, Span};

use super::{Application, ConnectionId, Costs, Simulation};

fn at_s(s: u64) -> SimTime {
    SimTime::ZERO + Span::from_s(s)
}

fn modern(octets: u64) -> Config {
    Config { work: false, ..Config::linux_modern() }
        .with_buffers(Bytes::new(octets), Bytes::new(octets))
        .unwrap()
}

/// Pairs of hosts at 1 Gbit/s, 10 us away, over a line of 155 Mbit/s and 5 ms with a queue of 256 packets.
struct Dumbbell {
    pairs: u32,
    mtu: u16,
    trunk: String,
    application: Application,
    costs: Option<Costs>,
}

impl Dumbbell {
    fn of(pairs: u32, mtu: u16) -> Self {
        let trunk = "trunk_rate=155Mbit/s,trunk_delay=5ms,fidelity=packet,queue=256packets".into();
        Self { pairs, mtu, trunk, application: Application::Endless, costs: None }
    }

    fn build(&self, config: Config) -> Side {
        let text = format!(
            "dumbbell:hosts={},rate=1Gbit/s,delay=10us,mtu={}B,framing=8B,{}",
            2 * self.pairs,
            self.mtu,
            self.trunk
        );
        let mut simulation = Simulation::new(&NetworkPlan::from_text(&text).unwrap(), 1).unwrap();
        if let Some(costs) = self.costs {
            simulation.set_costs(costs);
        }
        let config = Arc::new(config);
        let connections = (0..self.pairs)
            .map(|pair| {
                let start = SimTime::ZERO + Span::from_ms(7 * u64::from(pair));
                let hosts = [2 * pair, 2 * pair + 1];
                simulation.connect(hosts, [&config, &config], self.application, start)
            })
            .collect();
        Side { simulation, connections }
    }
}

/// A dumbbell that was built.
struct Side {
    simulation: Simulation,
    connections: Vec<ConnectionId>,
}

/// The shared line, from left to right: the first that is added.
const FORWARD: LineId = LineId(0);

impl Side {
    /// Octets of each connection between two instants.
    fn read_between(&mut self, from_s: u64, to_s: u64) -> Vec<u64> {
        let read = |side: &Self| -> Vec<u64> {
            let network = side.simulation.network();
            side.connections.iter().map(|found| network.stream(found.end(true)).read.get()).collect()
        };
        self.simulation.run_until(at_s(from_s));
        let before = read(self);
        self.simulation.run_until(at_s(to_s));
        read(self).into_iter().zip(before).map(|(after, before)| after - before).collect()
    }

    fn dropped(&self) -> u64 {
        self.simulation.network().line(FORWARD).port.dropped
    }

    fn assert_conserved(&self) {
        let network = self.simulation.network();
        let lines = 0..network.graph().lines().len() as u32;
        let reports = lines.map(|line| network.line(LineId(line))).collect::<Vec<_>>();
        assert!(reports.iter().all(|found| found.port.offered >= found.port.dropped + found.held));
        let delivered = |line: &super::LineReport| line.port.offered - line.port.dropped - line.held;
        assert_eq!(network.hops(), reports.iter().map(delivered).sum::<u64>());
        // Hosts without costs hold nothing.
        let held = reports.iter().map(|found| found.held).sum::<u64>();
        assert_eq!(network.under_way() as u64, held);
    }
}

/// Throughput is the window over the round trip where the window is small, and that of the line, less
/// headers, where it is not.
#[test]
fn goodput_is_window_over_round_trip_or_the_line() {
    for window in [5_u64, 10, 20, 40].map(|segments| segments * 1_448) {
        // An acknowledgment that waits would be a round trip of its own.
        let mut config = Config { delayed_ack: DelayedAck::None, ..modern(window) };
        config.buffers.send = 1 << 20;
        let mut side = Dumbbell::of(1, 1_500).build(config);
        let read = side.read_between(2, 12)[0] as f64 / 10.0;
        // Out: three delays and serialisations of a full packet; back: of an acknowledgment.
        let on = |octets: f64| octets * 8.0 / 155e6 + 2.0 * octets * 8.0 / 1e9 + 5.02e-3;
        let round_trip = on(1_508.0) + on(60.0);
        let expected = window as f64 / round_trip;
        let ratio = read / expected;
        // The window goes out in bursts: its last segment waits for those before it.
        assert!((0.93..=1.001).contains(&ratio), "window {window}: {read:.0} for {expected:.0} octets/s");
        assert_eq!(side.dropped(), 0);
        side.assert_conserved();
    }
    let mut side = Dumbbell::of(1, 1_500).build(modern(300_000));
    let read = side.read_between(2, 12)[0] as f64 / 10.0;
    let line = 155e6 / 8.0 * 1_448.0 / 1_508.0;
    assert!((0.995..=1.001).contains(&(read / line)), "{read:.0} for {line:.0} octets/s");
}

#[test]
fn six_connections_share_the_line_fairly_and_fill_it() {
    for (mtu, mss) in [(1_500_u16, 1_448.0), (8_244, 8_192.0)] {
        for config in [modern(4 << 20), Config { work: false, ..Config::linux22() }] {
            let name = config.name;
            let mut side = Dumbbell::of(6, mtu).build(config);
            let read = side.read_between(5, 45);
            let sum: f64 = read.iter().map(|&octets| octets as f64).sum();
            let squares: f64 = read.iter().map(|&octets| (octets as f64).powi(2)).sum();
            let jain = sum * sum / (6.0 * squares);
            assert!(jain > 0.9, "{name}, MTU {mtu}: Jain's index {jain:.3} of {read:?}");
            let line = 155e6 / 8.0 * mss / (f64::from(mtu) + 8.0) * 40.0;
            assert!(
                (0.9..=1.001).contains(&(sum / line)),
                "{name}, MTU {mtu}: {:.3} of the line",
                sum / line
            );
            assert!(side.dropped() > 0 || name == "linux22");
            side.assert_conserved();
        }
    }
}

#[test]
fn the_queue_never_holds_more_than_it_may() {
    for queue in ["17 packets", "25636 B"] {
        let trunk = format!("trunk_rate=155Mbit/s,trunk_delay=5ms,fidelity=packet,queue={queue}");
        let mut side = Dumbbell { trunk, ..Dumbbell::of(6, 1_500) }.build(modern(4 << 20));
        side.simulation.run_until(at_s(5));
        let found = side.simulation.network().line(FORWARD).port;
        // The last of 17 packets of 1508 octets waits for the 16 before it.
        let longest = 16.0 * 1_508.0 * 8.0 / 155e6;
        let wait = found.longest_wait.as_ps() as f64 / 1e12;
        assert!((0.99..=1.0).contains(&(wait / longest)), "{queue}: {wait} s for {longest} s");
        assert!(found.dropped > 0);
        side.assert_conserved();
    }
}

/// RFC 3168: a port that marks shortens the windows before its queue is full. While the window opens, a mark is heard a
/// round trip after it was made, in which the window doubles at most.
#[test]
fn marks_hold_the_queue_short_and_lose_nothing() {
    let run = |keys: &str| {
        let trunk = format!("trunk_rate=155Mbit/s,trunk_delay=5ms,fidelity=packet,{keys}");
        let config = Config { ecn: true, ..modern(4 << 20) };
        let mut side = Dumbbell { trunk, ..Dumbbell::of(1, 1_500) }.build(config);
        let read = side.read_between(5, 25)[0] as f64 / 20.0;
        side.assert_conserved();
        let network = side.simulation.network();
        let report = network.stream(side.connections[0].end(true));
        (read / (155e6 / 8.0 * 1_448.0 / 1_508.0), network.line(FORWARD), report.sender)
    };
    // The line and its way back hold 128 packets.
    let packet_s = 1_508.0 * 8.0 / 155e6;
    let (filled, line, sender) = run("ecn=64packets,queue=400packets");
    let wait = line.port.longest_wait.as_ps() as f64 / 1e12 / packet_s;
    assert!((0.99..=1.001).contains(&filled), "{filled:.3} of the line");
    assert!((64.0..=2.0 * 64.0 + 130.0).contains(&wait), "{wait:.0} packets were ahead of one");
    assert_eq!((line.port.dropped, sender.retransmitted, sender.timeouts), (0, 0, 0));
    assert!(sender.marks > 2 && line.marked >= sender.marks.into(), "{line:?} {sender:?}");
    // A window that is halved below what the line holds leaves it idle.
    let (filled_less, short, _) = run("ecn=8packets");
    assert!((0.8..0.99).contains(&filled_less), "{filled_less:.3} of the line");
    assert!(short.port.longest_wait < line.port.longest_wait);
    let (_, dropping, sender) = run("queue=64packets");
    assert!(dropping.port.dropped > 0 && dropping.marked == 0 && sender.retransmitted > 0);
}

#[test]
fn a_run_is_the_same_every_time() {
    let run = || {
        let mut side = Dumbbell::of(6, 1_500).build(modern(4 << 20));
        side.simulation.run_until(at_s(3));
        let network = side.simulation.network();
        let streams: Vec<_> = side.connections.iter().map(|found| network.stream(found.end(true))).collect();
        (streams, network.hops(), side.simulation.events())
    };
    assert_eq!(run(), run());
}

#[test]
fn hosts_that_cost_hold_back_what_the_line_would_carry() {
    // 300 us a segment, as Chen et al. (1996) give their TCP: 3333 segments a second and side at most,
    // acknowledgments counted in.
    let costs = Some(Costs { per_segment: Span::from_us(300), ..Costs::default() });
    let config = Config { work: true, ..modern(300_000) };
    let mut side = Dumbbell { costs, ..Dumbbell::of(1, 1_500) }.build(config);
    let read = side.read_between(2, 12)[0] as f64 / 10.0;
    // With an acknowledgment for every second segment, a host handles 3 for 2 of text.
    let expected = 2.0 / (3.0 * 300e-6) * 1_448.0;
    assert!((0.95..=1.01).contains(&(read / expected)), "{read:.0} for {expected:.0} octets/s");
    assert_eq!(side.dropped(), 0);
}

#[test]
fn what_does_not_exist_packet_by_packet_is_rejected_by_name() {
    for (text, key, allowed) in [
        ("shared-cable:hosts=2,rate=10Mbit/s", "topology", "a topology of switches"),
        ("star:hosts=2,rate=1Gbit/s,forwarding=cut-through", "forwarding", "store-and-forward"),
        ("star:hosts=2,rate=1Gbit/s,headers=48B", "headers", "52 B"),
        ("star:hosts=2,rate=1Gbit/s,mtu=100000B", "mtu", "104 B to 65535 B"),
        ("star:hosts=2,rate=1Gbit/s,mtu=60B", "mtu", "104 B to 65535 B"),
        ("star:hosts=2,rate=1bit/s", "rate", "1538 B in 1 s or faster"),
        ("ring:hosts=3,rate=1Gbit/s,trunk_rate=12kbit/s", "trunk_rate", "1538 B in 1 s or faster"),
        ("star:hosts=2,rate=1Gbit/s,switch_delay=2s", "switch_delay", "1 s at most"),
        ("star:hosts=2,rate=1Gbit/s,queue=0packets", "queue", "one packet of 1538 B"),
        ("star:hosts=2,rate=1Gbit/s,queue=1500B", "queue", "one packet of 1538 B"),
        ("star:hosts=2,rate=1Gbit/s,ecn=20cells", "ecn", "packets or bytes"),
        ("star:hosts=2,rate=1Gbit/s,ecn=20", "ecn", "such as \"64 packets\""),
    ] {
        let error = NetworkPlan::from_text(&format!("{text},fidelity=packet")).unwrap_err();
        assert_eq!(error.key, key, "{text}");
        assert!(error.allowed.contains(allowed), "{text}: {}", error.allowed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the rules, the queue and the line: every transfer ends, with all of it read, and no
    /// packet appears or vanishes.
    #[test]
    fn every_transfer_ends_and_packets_are_conserved(
        preset in 0_usize..6,
        pairs in 1_u32..5,
        queue in 2_u32..40,
        rate_mbit_s in 1_u64..1_000,
        delay_us in 1_u64..30_000,
        octets in 1_u64..400_000,
        mtu in prop_oneof![Just(576_u16), Just(1_500), Just(9_180)],
    ) {
        let config = Config { work: false, ..Config::presets()[preset].clone() };
        let trunk = format!("trunk_rate={rate_mbit_s}Mbit/s,trunk_delay={delay_us}us,fidelity=packet,queue={queue}packets");
        let application = Application::Transfer(Bytes::new(octets));
        let mut side = Dumbbell { trunk, application, ..Dumbbell::of(pairs, mtu) }.build(config);
        side.simulation.run_until(at_s(20_000));
        side.assert_conserved();
        let network = side.simulation.network();
        prop_assert_eq!(network.under_way(), 0);
        for found in &side.connections {
            let report = network.stream(found.end(true));
            prop_assert_eq!(report.read.get(), octets);
            prop_assert_eq!(report.ended, Some(Reason::Finished));
        }
    }
}
