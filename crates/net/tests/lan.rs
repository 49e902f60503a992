//! A local network over generated stacks, sizes, losses and programs: what holds whatever happens.

mod lan_of;

use lan_of::{LINK, PLAIN, Want, lan};
use proptest::prelude::*;
use wiretwin_net::lan::activity::Activity;
use wiretwin_net::lan::echo::{EchoError, round_trips};
use wiretwin_net::lan::{Anatomy, Lan, Op};
use wiretwin_units::{Bytes, Span};

fn any_network() -> impl Strategy<Value = Want> {
    let atm = prop::sample::select(vec![
        "fore/aal5",
        "fore/aal34",
        "socket/tcp/aal5",
        "pvm-advise/tcp/aal5",
        "pvm-normal/udp/aal5",
    ]);
    let cells = (atm, prop::sample::select(vec!["series-100", "series-200"]), any::<bool>())
        .prop_map(|(stack, adapter, switch)| Want { stack, adapter, switch, ..PLAIN });
    let frames =
        prop::sample::select(vec!["socket/tcp/ethernet", "socket/tcp/fddi", "pvm-normal/udp/ethernet"])
            .prop_map(|stack| Want { stack, adapter: "frames", ..PLAIN });
    let shape = (prop_oneof![4 => cells, 2 => frames], 0_u64..20_000_000, 4_096_u32..=52_428, any::<bool>());
    shape.prop_map(|(want, price, buffer, nodelay)| Want { price, buffer, nodelay, ..want })
}

fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![
        1_u64..200,
        3_900_u64..4_300,
        1_u64..40_000,
        Just(1_460),
        Just(4_096),
        Just(4_097),
        Just(65_536)
    ]
}

/// Fails where an element has lost count.
fn conserved(lan: &Lan) -> Result<(), TestCaseError> {
    for (name, passed) in lan.passed() {
        prop_assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{}: {:?}", name, passed);
    }
    Ok(())
}

/// Fails where the parts of a message leave a gap, overlap or do not take all its time.
fn sums_to_its_latency(lan: &Lan) -> Result<(), TestCaseError> {
    for anatomy in lan.anatomies() {
        let mut end = anatomy.begun;
        for part in &anatomy.parts {
            prop_assert_eq!(part.segment.start, end + part.waited, "a gap or an overlap");
            end = part.segment.end;
        }
        prop_assert!(end == anatomy.ended && end > anatomy.begun);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_a_message_sum_to_its_latency(want in any_network(), bytes in any_size(), seed: u64) {
        let mut lan = lan(&want, seed, true);
        let times = round_trips(&mut lan, Bytes::new(bytes), 3).expect("nothing is lost");
        prop_assert_eq!(lan.anatomies().len(), 6);
        sums_to_its_latency(&lan)?;
        prop_assert!(times.len() == 3);
        conserved(&lan)?;
    }

    /// Any number of hosts that send to any others at once, over lines that lose cells: counts add up at
    /// every moment that anybody can look, and at the end no cell is anywhere.
    #[test]
    fn cells_are_conserved_whatever_is_sent(
        want in any_network(),
        hosts in 2_usize..7,
        loss in prop_oneof![Just(0.0), Just(0.001), Just(0.05), Just(1.0)],
        sends in prop::collection::vec((0_u32..7, 1_u32..7, 1_u64..30_000), 1..20),
        seed: u64,
    ) {
        let loss = if want.adapter == "frames" { 0.0 } else { loss };
        // Two hosts need no switch; more do.
        let switch = want.switch || (hosts > 2 && want.adapter != "frames");
        let want = Want { hosts, switch, loss, ..want };
        let mut lan = lan(&want, seed, false);
        let hosts = hosts as u32;
        let mut due = vec![0; hosts as usize];
        for (from, to, bytes) in sends {
            let (from, bytes) = (from % hosts, Bytes::new(bytes));
            let to = (from + 1 + to % (hosts - 1)) % hosts;
            lan.post(from, Op::send(to, 1, bytes)).expect("two different ranks");
            due[to as usize] += 1;
        }
        for (rank, count) in due.iter().enumerate() {
            let mut wanted = Vec::new();
            for _ in 0..*count {
                let recv = Op::recv(None, None, Bytes::new(30_000));
                wanted.extend(lan.post(rank as u32, recv).expect("it runs"));
            }
            lan.post(rank as u32, Op::wait(&wanted)).expect("it runs");
        }
        let mut steps = 0;
        while lan.step() {
            conserved(&lan)?;
            for at in 0..lan.resumed().len() {
                let rank = lan.resumed()[at];
                lan.post(rank, Op::Finish).expect("it runs");
            }
            steps += 1;
            prop_assert!(steps <= 100, "more resumed than wait");
        }
        conserved(&lan)?;
        prop_assert_eq!(lan.pdus_under_way(), 0, "nothing more happens, and a cell is somewhere");
        let lost = lan.losses();
        if loss == 0.0 && lost.in_switches + lost.in_adapters == 0 {
            prop_assert_eq!(lan.blocked(), [] as [u32; 0], "nothing was lost: {:?}", lost);
        }
    }

    #[test]
    fn a_run_is_the_same_with_the_same_seed(want in any_network(), bytes in any_size(), seed: u64) {
        let run = || {
            let mut lan = lan(&want, seed, false);
            (round_trips(&mut lan, Bytes::new(bytes), 3), lan.digest())
        };
        prop_assert_eq!(run(), run());
    }
}

/// What an adaptation layer leaves of the line's rate: payload over 53 octets a cell. AAL 5: 8 octets of
/// trailer and padding to 48; AAL 3/4: 8 octets of header and trailer, padding to 4, 44 octets a cell.
#[test]
fn what_a_line_carries_is_the_efficiency_of_the_adaptation_layer() {
    for bytes in [40_u64, 41, 44, 48, 88, 500, 1_460, 4_000, 4_056, 4_096] {
        for (stack, cells) in [
            ("fore/aal5", (bytes + 8).div_ceil(48)),
            ("fore/aal34", (bytes.div_ceil(4) * 4 + 8).div_ceil(44)),
        ] {
            // Hosts cost so little that the line is always the slowest part.
            let want = Want { stack, price: 0, ..PLAIN };
            let time = |count: u64| {
                let mut lan = lan(&want, 7, false);
                for _ in 0..count {
                    lan.post(0, Op::send(1, 0, Bytes::new(bytes))).expect("a send");
                }
                let recv = Op::recv(Some(0), None, Bytes::new(bytes));
                let wanted: Vec<_> =
                    (0..count).filter_map(|_| lan.post(1, recv).expect("a receive")).collect();
                lan.post(1, Op::wait(&wanted)).expect("it waits");
                while lan.step() {}
                assert_eq!(lan.passed()[0].1.given, count * cells, "{stack}, {bytes} bytes");
                assert_eq!(lan.blocked(), [1; 0]);
                lan.now().as_ps()
            };
            let took = time(300) - time(100);
            let (rate, cell_bits) = LINK;
            let efficiency = (200 * bytes * 8) as f64 / (took as f64 / 1e12) / rate as f64;
            let expected = (bytes * 8) as f64 / (cells * cell_bits) as f64;
            assert!(
                (efficiency / expected - 1.0).abs() < 1e-6,
                "{stack}, {bytes} bytes: {efficiency} of the line, and {expected} by the cells"
            );
        }
    }
}

/// TCP carries no more than a window each round trip, and on a long line just that.
#[test]
fn a_socket_carries_a_window_a_round_trip() {
    let delay = 20_000_000_000_u64; // 20 ms
    let text = lan_of::json(&Want { stack: "socket/tcp/aal5", price: 1_000, buffer: 16_384, ..PLAIN })
        .replace("\"propagation_ps\": 100000", &format!("\"propagation_ps\": {delay}"));
    let config = wiretwin_net::lan::Config::from_json(&text).expect("a network");
    let one_way = |bytes: u64| {
        let mut lan = Lan::new(config.clone(), 7, false);
        let times = round_trips(&mut lan, Bytes::new(bytes), 2).expect("an echo that ends");
        times[1].as_ps() / 2
    };
    let (short, long) = (one_way(1 << 20), one_way(2 << 20));
    let goodput = f64::from(1 << 20) / ((long - short) as f64 / 1e12);
    let bound = 16_384.0 / (2.0 * delay as f64 / 1e12);
    assert!(goodput <= bound && goodput > 0.85 * bound, "{goodput} bytes/s, window / RTT is {bound}");
}

#[test]
fn a_dead_peer_ends_every_stack_with_an_error_that_says_what_was_lost() {
    for (stack, switch) in [("fore/aal5", false), ("fore/aal34", true), ("socket/tcp/aal5", true)] {
        for adapter in ["series-100", "series-200"] {
            let want = Want { stack, switch, adapter, loss: 1.0, ..PLAIN };
            let mut lan = lan(&want, 7, false);
            let error = round_trips(&mut lan, Bytes::new(10_000), 1).expect_err("nobody hears anything");
            let EchoError::Lost { losses, over, .. } = &error else { panic!("{error}") };
            assert!(losses.on_links > 0, "{stack}: {error}");
            assert_eq!(over.is_some(), stack.starts_with("socket"), "{stack}: {error}");
        }
    }
}

/// A timer that runs out just when the last copy ends takes the processor before the reader goes on.
#[test]
fn a_timer_between_the_last_copy_and_the_reader_is_in_the_path() {
    let (stack, adapter) = ("socket/tcp/ethernet", "frames");
    let want = Want { stack, adapter, price: 15_355_647, buffer: 4_172, nodelay: false, ..PLAIN };
    let mut lan = lan(&want, 9_166_669_584_101_922_141, true);
    round_trips(&mut lan, Bytes::new(4_096), 3).expect("nothing is lost");
    let waited = |anatomy: &Anatomy| anatomy.parts.last().map(|last| (last.segment.activity, last.waited));
    let four_activities = Span::from_ps(4 * 15_355_647 + 980);
    let held_up =
        lan.anatomies().iter().filter(|at| waited(at) == Some((Activity::Compute, four_activities)));
    assert!(held_up.count() > 0);
    sums_to_its_latency(&lan).expect("no gap and no overlap");
}
