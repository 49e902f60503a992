//! The wire as a whole: exact times, conservation, order, the same fates for the same seed.

use proptest::prelude::*;
use wiretwin_engine::Probability;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::*;

/// A frame from station `from` to station `to`, of `length` octets, that carries its number.
fn frame(from: u8, to: u8, length: u64, number: u32) -> Frame<u32> {
    Frame {
        destination: if to == 0xFF { Mac::BROADCAST } else { Mac([2, 0, 0, 0, 0, to]) },
        source: Mac([2, 0, 0, 0, 0, from]),
        ethertype: 0x0800,
        protocol: Some(17),
        dscp: Some(0),
        length: Bytes::new(length),
        flipped: Vec::new(),
        payload: number,
    }
}

fn config(medium: Medium) -> WireConfig {
    WireConfig {
        medium,
        rate: BitRate::mbit_s(10),
        delay: Span::from_us(5),
        queue_frames: 1000,
        longest: Bytes::new(1518),
        rules: Vec::new(),
        queues: None,
        background: Vec::new(),
        seed: 1,
    }
}

const SWITCH: Medium = Medium::Switch { latency: Span::from_us(3), queue: Bytes::kib(512) };

fn us(us: u64) -> SimTime {
    SimTime::from_ps(us * 1_000_000)
}

/// A delivery: port, number of the frame, time in microseconds rounded down.
type Delivery = (u16, u32, u64);

/// Runs the wire until nothing is under way.
fn drain(wire: &mut Wire<u32>) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    loop {
        match wire.poll_output() {
            Output::Deliver { port, frame, due, .. } => {
                deliveries.push((port.0, frame.payload, due.as_ps() / 1_000_000));
            }
            Output::Timeout(Some(at)) => wire.handle_timeout(at),
            Output::Timeout(None) => return deliveries,
        }
    }
}

fn run(config: WireConfig, ports: usize, frames: &[(u64, u16, Frame<u32>)]) -> (Wire<u32>, Vec<Delivery>) {
    let mut wire = Wire::new(config, ports).unwrap();
    for (at, port, frame) in frames {
        wire.handle_frame(us(*at), PortId(*port), frame.clone()).unwrap();
    }
    let deliveries = drain(&mut wire);
    (wire, deliveries)
}

#[test]
fn what_a_frame_costs_on_the_line_counts_preamble_padding_check_and_gap() {
    // 1500 octets of data: 8 + 14 + 1500 + 4 octets, and a gap of 12 makes 1538.
    assert_eq!(frame(1, 2, 1514, 0).line_bits() + Frame::<u32>::gap_bits(), Bytes::new(1538).bits());
    assert_eq!(frame(1, 2, 42, 0).line_bits(), Bytes::new(72).bits(), "padded to 64 octets");
    assert_eq!(frame(1, 2, 61, 0).line_bits(), Bytes::new(73).bits());
}

#[test]
fn a_cable_takes_serialisation_then_delay_each_way_by_itself() {
    // 1526 octets at 10 Mbit/s: 1220.8 us; the gap 9.6 us.
    let full = |number| frame(1, 2, 1514, number);
    let (wire, deliveries) =
        run(config(Medium::Cable), 2, &[(0, 0, full(0)), (0, 0, full(1)), (100, 1, frame(2, 1, 60, 2))]);
    assert_eq!(deliveries, [(0, 2, 100 + 62), (1, 0, 1225), (1, 1, 2456)], "100 + 62.6, 1225.8, 1230.4 more");
    assert_eq!(wire.counters(PortId(1)).unwrap().delivered_bytes, 2 * 1514);
}

#[test]
fn a_cable_that_was_idle_keeps_the_gap_and_nothing_else() {
    // The first ends at 57.6 us; the gap ends at 67.2.
    let short = |number| frame(1, 2, 60, number);
    let (_, deliveries) =
        run(config(Medium::Cable), 2, &[(0, 0, short(0)), (60, 0, short(1)), (500, 0, short(2))]);
    assert_eq!(deliveries, [(1, 0, 62), (1, 1, 129), (1, 2, 562)], "62.6, 67.2 + 62.6, 500 + 62.6 us");
}

#[test]
fn a_million_frames_take_the_right_time_to_the_picosecond() {
    let rate = BitRate::bit_s(155_520_000);
    let mut wire = Wire::new(WireConfig { rate, queue_frames: 1 << 20, ..config(Medium::Cable) }, 2).unwrap();
    for number in 0..100_000 {
        wire.handle_frame(SimTime::ZERO, PortId(0), frame(1, 2, 101, number)).unwrap();
    }
    let mut last = SimTime::ZERO;
    loop {
        match wire.poll_output() {
            Output::Deliver { due, .. } => last = due,
            Output::Timeout(Some(at)) => wire.handle_timeout(at),
            Output::Timeout(None) => break,
        }
    }
    let octets = 100_000_u128 * (101 + 24) - 12;
    let expected = octets * 8 * 1_000_000_000_000 / 155_520_000 + 5_000_000;
    assert_eq!(u128::from(last.as_ps()), expected);
}

#[test]
fn a_switch_stores_learns_and_forwards() {
    let frames = [(0, 0, frame(1, 2, 60, 0)), (1000, 1, frame(2, 1, 60, 1)), (2000, 0, frame(1, 2, 60, 2))];
    let (wire, deliveries) = run(config(SWITCH), 3, &frames);
    // Twice 57.6 + 5 us, and 3 us in the switch. Only the first goes everywhere.
    assert_eq!(deliveries, [(1, 0, 128), (2, 0, 128), (0, 1, 1128), (1, 2, 2128)]);
    assert_eq!(wire.counters(PortId(0)).unwrap().copied, 1);
}

#[test]
fn pairs_do_not_disturb_one_another_at_a_switch_but_share_a_medium() {
    let learn =
        |station: u8| (u64::from(station) * 1000, u16::from(station) - 1, frame(station, 0xFF, 60, 0));
    let mut frames: Vec<_> = (1..=4).map(learn).collect();
    for number in 1..=10 {
        frames.push((10_000, 0, frame(1, 2, 1514, number)));
        frames.push((10_000, 2, frame(3, 4, 1514, 100 + number)));
    }
    let last = |deliveries: &[Delivery], port| {
        deliveries.iter().filter(|delivery| delivery.0 == port).map(|delivery| delivery.2).max().unwrap()
    };
    let (_, switched) = run(config(SWITCH), 4, &frames);
    // Ten of 1230.4 us, the last without its gap; the second line one frame later; 13 us of delays.
    let expected = 10_000 + 12_304 - 9 + 1220 + 13;
    assert!(last(&switched, 1).abs_diff(expected) <= 1, "{} {expected}", last(&switched, 1));
    assert_eq!(last(&switched, 1), last(&switched, 3));
    let (_, shared) = run(config(Medium::Shared), 4, &frames);
    let expected = 10_000 + 24_608 - 9 + 5;
    assert!(last(&shared, 1).abs_diff(expected) <= 1, "{} {expected}", last(&shared, 1));
}

#[test]
fn a_shared_medium_gives_turns_in_port_order() {
    let mut frames = Vec::new();
    for number in 0..3 {
        for port in 0..3 {
            let station = port as u8 + 1;
            frames.push((0, port, frame(station, 9, 60, 10 * u32::from(port) + number)));
        }
    }
    let (wire, deliveries) = run(config(Medium::Shared), 3, &frames);
    let heard: Vec<u32> =
        deliveries.iter().filter(|delivery| delivery.0 == 0).map(|delivery| delivery.1).collect();
    assert_eq!(heard, [10, 20, 11, 21, 12, 22], "port 0 hears the others by turns, and not itself");
    assert_eq!(deliveries.last().unwrap().2, 600, "9 x 67.2 us less a gap of 9.6, and 5");
    assert_eq!(wire.counters(PortId(0)).unwrap().copied, 3);
}

#[test]
fn ports_with_long_and_short_queues_get_frames_in_equal_numbers() {
    let mut frames: Vec<_> = (0..90).map(|number| (0, 0, frame(1, 2, 300, number))).collect();
    frames.extend((0..10).map(|number| (0, 1, frame(2, 1, 300, 1000 + number))));
    let (_, deliveries) = run(config(Medium::Shared), 2, &frames);
    let order: Vec<bool> = deliveries.iter().map(|delivery| delivery.1 >= 1000).collect();
    let expected: Vec<bool> = (0..100).map(|place| place < 20 && place % 2 == 1).collect();
    assert_eq!(order, expected);
}

#[test]
fn full_queues_drop_the_last_to_come() {
    let burst = |count| (0..count).map(|number| (0, 0, frame(1, 2, 60, number))).collect::<Vec<_>>();
    for medium in [Medium::Cable, Medium::Shared] {
        let (wire, deliveries) = run(WireConfig { queue_frames: 3, ..config(medium) }, 2, &burst(10));
        assert_eq!(deliveries.len(), 4, "one on the line and three that wait");
        assert_eq!(deliveries.last().unwrap().1, 3);
        assert_eq!(wire.counters(PortId(0)).unwrap().queue_drops, 6);
    }
    // Two inputs fill one output twice as fast as it empties: of 20, room for 5 of 60 octets.
    let switch = Medium::Switch { latency: Span::ZERO, queue: Bytes::new(300) };
    let mut frames = vec![(0, 2, frame(3, 0xFF, 60, 0))];
    for number in 0..20 {
        frames.push((1000, 0, frame(1, 3, 60, number)));
        frames.push((1000, 1, frame(2, 3, 60, number)));
    }
    let (wire, _) = run(config(switch), 3, &frames);
    let counters = wire.counters(PortId(2)).unwrap();
    assert_eq!((counters.delivered, counters.switch_drops), (20 + 5, 15));
}

#[test]
fn stations_that_start_together_collide_and_all_get_through() {
    let mut frames = Vec::new();
    for number in 0..20 {
        for port in 0..3 {
            frames.push((0, port, frame(port as u8 + 1, 9, 1000, 100 * u32::from(port) + number)));
        }
    }
    let (wire, deliveries) = run(config(Medium::CsmaCd), 3, &frames);
    let collisions: u64 = (0..3).map(|port| wire.counters(PortId(port)).unwrap().collisions).sum();
    assert!(collisions >= 3, "{collisions}");
    for port in 0..3 {
        let heard: Vec<u32> =
            deliveries.iter().filter(|delivery| delivery.0 == port).map(|delivery| delivery.1).collect();
        assert_eq!(heard.len(), 40, "both others, whole");
        assert!(heard.iter().all(|number| number / 100 != u32::from(port)), "and not itself");
    }
    // 60 frames of 1012 octets and a gap; collisions cost more.
    assert!(deliveries.last().unwrap().2 > 60 * (1012 + 12) * 8 / 10);
    let odd = WireConfig { rate: BitRate::mbit_s(20), ..config(Medium::CsmaCd) };
    assert_eq!(
        Wire::<u32>::new(odd, 2).unwrap_err().to_string(),
        "rate is 20 Mbit/s; allowed: 10, 100 or 1000 Mbit/s where stations collide"
    );
}

fn rule(action: Action, when: When) -> Rule {
    Rule { action, when, filter: Filter::default() }
}

fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    deliveries.iter().map(|delivery| delivery.1).collect()
}

#[test]
fn rules_drop_duplicate_and_hold_back() {
    let frames: Vec<_> = (0..6).map(|number| (0, 0, frame(1, 2, 60, number))).collect();
    let with = |rules| run(WireConfig { rules, ..config(Medium::Cable) }, 2, &frames);
    let (wire, deliveries) = with(vec![rule(Action::Drop, When::Nth(vec![2]))]);
    assert_eq!(numbers(&deliveries), [0, 2, 3, 4, 5]);
    assert_eq!(deliveries[1].2, 62 + 2 * 67 + 1, "a dropped frame has taken its time: 62.6 + 134.4");
    assert_eq!(wire.counters(PortId(1)).unwrap().rule_drops, 1);

    let (wire, deliveries) = with(vec![rule(Action::Duplicate, When::Nth(vec![6]))]);
    assert_eq!(numbers(&deliveries), [0, 1, 2, 3, 4, 5, 5]);
    assert!((deliveries[6].2 - deliveries[5].2).abs_diff(67) <= 1);
    assert_eq!(wire.counters(PortId(1)).unwrap().duplicated, 1);

    let overtaken = Hold { frames: Some(2), time: Span::from_ms(10) };
    let (wire, deliveries) = with(vec![rule(Action::Reorder(overtaken), When::Nth(vec![2]))]);
    assert_eq!(numbers(&deliveries), [0, 2, 3, 1, 4, 5]);
    assert_eq!(deliveries[2].2, deliveries[3].2, "at once after the second that overtook it");
    assert_eq!(wire.counters(PortId(1)).unwrap().reordered, 1);

    let (_, deliveries) = with(vec![rule(Action::Reorder(overtaken), When::Nth(vec![6]))]);
    assert_eq!(deliveries[5].2, 62 + 5 * 67 + 1 + 10_000, "nobody overtakes it: 10 ms late");

    let waits = Hold { frames: None, time: Span::from_us(100) };
    let (_, deliveries) = with(vec![rule(Action::Reorder(waits), When::Nth(vec![1]))]);
    assert_eq!(numbers(&deliveries), [1, 0, 2, 3, 4, 5]);
    assert_eq!(deliveries[1].2, 162);
}

#[test]
fn a_flipped_bit_is_noted_on_the_frame_and_on_no_other_copy() {
    let filter = Filter { to: Some(PortId(1)), ..Filter::default() };
    let rules = vec![Rule { action: Action::Corrupt, when: When::Every(1), filter }];
    let mut wire = Wire::new(WireConfig { rules, ..config(SWITCH) }, 3).unwrap();
    wire.handle_frame(SimTime::ZERO, PortId(0), frame(1, 0xFF, 60, 0)).unwrap();
    let mut flipped = Vec::new();
    loop {
        match wire.poll_output() {
            Output::Deliver { port, frame, .. } => flipped.push((port.0, frame.flipped.len())),
            Output::Timeout(Some(at)) => wire.handle_timeout(at),
            Output::Timeout(None) => break,
        }
    }
    assert_eq!(flipped, [(1, 1), (2, 0)]);
}

#[test]
fn misuse_is_refused_with_the_bound() {
    let refusal = |config, ports| Wire::<u32>::new(config, ports).unwrap_err().to_string();
    assert_eq!(refusal(config(Medium::Cable), 3), "ports is 3; allowed: 2 to 2");
    assert_eq!(refusal(config(SWITCH), 1), "ports is 1; allowed: 2 to 256");
    let slow = WireConfig { rate: BitRate::bit_s(999), ..config(Medium::Cable) };
    assert_eq!(refusal(slow, 2), "rate is 999 bit/s; allowed: 1 kbit/s or more");
    let to = Filter { to: Some(PortId(2)), ..Filter::default() };
    let rules = vec![Rule { action: Action::Drop, when: When::Every(1), filter: to }];
    let stray = WireConfig { rules, ..config(Medium::Cable) };
    assert_eq!(refusal(stray, 2), "rules[0] is port 2; allowed: ports 0 to 1");
    let queues = Some(Queues::strict_priority(&[46]).unwrap());
    let error = Wire::<()>::new(WireConfig { queues, ..config(Medium::Shared) }, 2).unwrap_err();
    assert!(error.to_string().ends_with("at the outputs of a switch"), "{error}");
    let never = WireConfig { rules: vec![rule(Action::Drop, When::Every(0))], ..config(Medium::Cable) };
    assert_eq!(refusal(never, 2), "rules[0].every is 0; allowed: 1 or more");

    let mut wire = Wire::new(config(Medium::Cable), 2).unwrap();
    let mut refusal =
        |at, port, frame| wire.handle_frame(us(at), PortId(port), frame).unwrap_err().to_string();
    assert_eq!(refusal(5, 2, frame(1, 2, 60, 0)), "port is 2; allowed: 0 to 1");
    assert_eq!(refusal(5, 0, frame(1, 2, 1519, 0)), "frame.length is 1519 B; allowed: 14 B to 1518 B");
    assert!(refusal(5, 0, frame(1, 2, 13, 0)).starts_with("frame.length is 13 B"));
    wire.handle_timeout(us(7));
    let error = wire.handle_frame(us(6), PortId(0), frame(1, 2, 60, 0)).unwrap_err();
    assert_eq!(error.to_string(), "now is 6 us; allowed: 7 us or later");
    assert_eq!(wire.totals(), Totals::default(), "none was counted");
}

#[test]
fn a_frame_says_of_itself_what_the_models_look_at() {
    let mut octets = vec![0; 60];
    octets[..12].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    octets[12..14].copy_from_slice(&[8, 0]);
    octets[23] = 6;
    let frame = Frame::of(&octets, ()).unwrap();
    assert_eq!((frame.destination, frame.source), (Mac([1, 2, 3, 4, 5, 6]), Mac([7, 8, 9, 10, 11, 12])));
    assert_eq!((frame.ethertype, frame.protocol, frame.length), (0x0800, Some(6), Bytes::new(60)));
    octets[12..14].copy_from_slice(&[0x86, 0xDD]);
    octets[20] = 58;
    assert_eq!(Frame::of(&octets, ()).unwrap().protocol, Some(58));
    octets[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(Frame::of(&octets, ()).unwrap().protocol, None);
    assert_eq!(Frame::of(&octets[..20], ()).unwrap().protocol, None);
    assert_eq!(Frame::of(&octets[..13], ()), None);
    assert_eq!(Mac([0x1, 0xab, 0, 0, 0, 0xff]).to_string(), "01:ab:00:00:00:ff");
}

// ---- what holds for any traffic ----

#[derive(Clone, Debug)]
struct Scene {
    config: WireConfig,
    ports: u16,
    /// Gap since the one before in ns, port, destination station, length.
    frames: Vec<(u64, u16, u8, u64)>,
}

fn any_rule(ports: u16) -> impl Strategy<Value = Rule> {
    let hold = (prop::option::of(1u32..4), 1u64..2_000_000)
        .prop_map(|(frames, ns)| Hold { frames, time: Span::from_ns(ns) });
    let action = prop_oneof![
        Just(Action::Drop),
        Just(Action::Corrupt),
        Just(Action::Duplicate),
        hold.prop_map(Action::Reorder),
    ];
    let when = prop_oneof![
        (0.0..=1.0f64).prop_map(|chance| When::Chance(Probability::new(chance).unwrap())),
        (1u64..9).prop_map(When::Every),
        prop::collection::vec(1u64..30, 1..4).prop_map(When::Nth),
    ];
    let port = prop::option::of((0..ports).prop_map(PortId));
    let filter = (port.clone(), port).prop_map(|(from, to)| Filter { from, to, ..Filter::default() });
    (action, when, filter).prop_map(|(action, when, filter)| Rule { action, when, filter })
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let medium = prop_oneof![
        Just((Medium::Cable, 2u16)),
        (2u16..6, 0u64..5_000, 0u64..6_000).prop_map(|(ports, ns, bytes)| {
            (Medium::Switch { latency: Span::from_ns(ns), queue: Bytes::new(bytes) }, ports)
        }),
        (2u16..6).prop_map(|ports| (Medium::Shared, ports)),
        (2u16..6).prop_map(|ports| (Medium::CsmaCd, ports)),
    ];
    medium.prop_flat_map(|(medium, ports)| {
        let frames = prop::collection::vec(
            (0u64..100_000, 0..ports, prop_oneof![0..6u8, Just(0xFF)], 14u64..1519),
            0..60,
        );
        let rules = prop::collection::vec(any_rule(ports), 0..4);
        (frames, rules, 1u64..2_000_000_000, 0u64..50_000, 0u32..8, any::<u64>()).prop_map(
            move |(frames, rules, rate, delay, queue_frames, seed)| Scene {
                config: WireConfig {
                    medium,
                    rate: match medium {
                        Medium::CsmaCd => [10, 100, 1000].map(BitRate::mbit_s)[rate as usize % 3],
                        _ => BitRate::bit_s(rate.max(1000)),
                    },
                    delay: Span::from_ns(delay),
                    queue_frames,
                    longest: Bytes::new(1518),
                    rules,
                    queues: Some(match seed % 3 {
                        0 => Queues::strict_priority(&[46]).unwrap(),
                        1 => Queues::weighted(&[(46, 3)], 1).unwrap(),
                        _ => Queues::weighted(&[(0, 1)], 200).unwrap(),
                    })
                    .filter(|_| seed % 2 == 0 && matches!(medium, Medium::Switch { .. })),
                    background: Vec::new(),
                    seed,
                },
                ports,
                frames,
            },
        )
    })
}

fn of_class(dscp: u8, number: u32) -> Frame<u32> {
    Frame { dscp: Some(dscp), ..frame(0, 1, 1486, number) }
}

/// Both hosts have been heard, and then ten frames of each of two classes come to the output to port 1 at once.
fn order_of_classes(queues: Queues, queue: Bytes) -> (Wire<u32>, Vec<u32>) {
    let medium = Medium::Switch { latency: Span::from_us(3), queue };
    let config = WireConfig { queues: Some(queues), ..config(medium) };
    let mut wire = Wire::new(config, 3).unwrap();
    wire.handle_frame(us(0), PortId(1), frame(1, 0xFF, 60, 100)).unwrap();
    drain(&mut wire);
    for number in 0..10 {
        wire.handle_frame(us(1000), PortId(0), of_class(0, number)).unwrap();
        wire.handle_frame(us(1000), PortId(2), of_class(46, 50 + number)).unwrap();
    }
    let order = drain(&mut wire).into_iter().map(|(.., number, _)| number).collect();
    (wire, order)
}

#[test]
fn a_class_of_higher_priority_goes_first_and_one_with_a_weight_takes_its_share() {
    let room = Bytes::kib(512);
    let (wire, order) = order_of_classes(Queues::strict_priority(&[46]).unwrap(), room);
    // Each pair reaches the output at once; the frame that came first is on the line already.
    assert_eq!(order[..6], [0, 50, 51, 52, 53, 54]);
    assert_eq!(order[10..14], [59, 1, 2, 3]);
    let sent: Vec<u64> = wire.queue_counters(PortId(1)).iter().map(|queue| queue.sent).collect();
    assert_eq!(sent, [10, 10]);
    assert_eq!(wire.queue_counters(PortId(1))[0].sent_bytes, 14_860);
    let (_, order) = order_of_classes(Queues::weighted(&[(46, 3)], 1).unwrap(), room);
    let protected = order[..8].iter().filter(|&&number| number >= 50).count();
    assert!((5..=6).contains(&protected), "{order:?}");
}

#[test]
fn a_queue_that_is_full_loses_its_own_class_alone() {
    let (wire, order) = order_of_classes(Queues::strict_priority(&[46]).unwrap(), Bytes::new(3000));
    let counted = wire.queue_counters(PortId(1));
    assert!(counted[0].drops == 0 && counted[1].drops > 0, "{counted:?}");
    assert_eq!(wire.counters(PortId(1)).unwrap().switch_drops, counted[1].drops);
    assert_eq!(order.len() as u64 + counted[1].drops, 20);
}

/// The waits of frames of a class that come each 20 ms beside background load on class 0, in microseconds, sorted.
fn beside(load: f64, dscp: u8) -> (Vec<u64>, Wire<u32>) {
    let queues = Some(Queues::strict_priority(&[46]).unwrap());
    let background = vec![Background::of(0, load)];
    let mut wire = Wire::new(WireConfig { queues, background, ..config(SWITCH) }, 2).unwrap();
    let (mut took, mut from) = (Vec::new(), 0);
    for number in 0..500 {
        let mut next = us(from);
        while next < us(from + 20_000) {
            wire.handle_timeout(next);
            if next == us(from) {
                wire.handle_frame(next, PortId(0), of_class(dscp, number)).unwrap();
            }
            loop {
                match wire.poll_output() {
                    Output::Deliver { due, frame, .. } => {
                        took.push((due - us(20_000 * u64::from(frame.payload))).as_ns() / 1000);
                    }
                    Output::Timeout(at) => {
                        next = at.unwrap_or(SimTime::MAX);
                        break;
                    }
                }
            }
        }
        from += 20_000;
    }
    took.sort_unstable();
    (took, wire)
}

#[test]
fn background_load_delays_its_own_class_and_takes_its_share_of_the_line() {
    let (free, _) = beside(0.0, 0);
    let (ordinary, wire) = beside(0.7, 0);
    let (protected, _) = beside(0.7, 46);
    // A frame of the load is on the line for 1230 us; who goes first waits for one at most.
    assert!(protected.iter().all(|&us| us <= free[0] + 1231), "{:?}", protected.last());
    assert!(ordinary[ordinary.len() / 2] > free[0] && ordinary[ordinary.len() - 5] > free[0] + 10_000);
    let counted = wire.queue_counters(PortId(1))[1];
    let share = (counted.background * 1538 * 8) as f64 / 1e7 / 10.0;
    assert!((0.55..0.85).contains(&share), "{share}");
    let (none, wire) = beside(1.5, 0);
    assert!(none.len() < 500 && wire.queue_counters(PortId(1))[1].background_drops > 0);
}

/// Everything that came out, in order: port, sender, number, bits flipped, time in ps.
type Trace = Vec<(u16, u16, u32, Vec<u32>, u64)>;

/// Runs a scene, asking the wire to catch up `extra` times between any two frames.
fn trace(scene: &Scene, extra: u64) -> (Trace, Vec<u64>) {
    let mut wire = Wire::new(scene.config.clone(), scene.ports.into()).unwrap();
    let (mut trace, mut handed_in) = (Trace::new(), Vec::new());
    let mut poll = |wire: &mut Wire<u32>| loop {
        let totals = wire.totals();
        match wire.poll_output() {
            Output::Deliver { port, from, frame, due } => {
                trace.push((port.0, from.0, frame.payload, frame.flipped, due.as_ps()));
            }
            Output::Timeout(next) => {
                assert_eq!(totals.entered, totals.delivered + totals.dropped + totals.held, "{totals:?}");
                return next;
            }
        }
    };
    let mut now = 0;
    for (number, &(gap, port, to, length)) in scene.frames.iter().enumerate() {
        for step in 1..=extra {
            wire.handle_timeout(SimTime::from_ps(now + gap * 1000 * step / (extra + 1)));
            poll(&mut wire);
        }
        now += gap * 1000;
        handed_in.push(now);
        let dscp = Some(46 * (number as u8 % 2));
        let frame = Frame { dscp, ..frame(port as u8, to, length, number as u32) };
        wire.handle_frame(SimTime::from_ps(now), PortId(port), frame).unwrap();
        poll(&mut wire);
    }
    while let Some(next) = poll(&mut wire) {
        wire.handle_timeout(next);
    }
    assert_eq!(wire.held(), 0);
    (trace, handed_in)
}

proptest! {
    #[test]
    fn nothing_is_lost_uncounted_and_nothing_is_early(scene in any_scene()) {
        let (trace, handed_in) = trace(&scene, 0);
        prop_assert!(trace.windows(2).all(|pair| pair[0].4 <= pair[1].4), "deliveries in order of time");
        let lines = if matches!(scene.config.medium, Medium::Switch { .. }) { 2 } else { 1 };
        for (to, from, number, _, due) in &trace {
            let &(_, port, _, length) = &scene.frames[*number as usize];
            prop_assert_eq!(*from, port);
            prop_assert_ne!(to, from);
            // Exact serialisation of each line, rounded down, and the propagation.
            let bits = u128::from(frame(0, 0, length, 0).line_bits().get());
            let delay = u128::from(scene.config.delay.as_ps());
            // Along a cable of stations it is as far as they are apart.
            let delay = match scene.config.medium {
                Medium::CsmaCd => (delay * u128::from(to.abs_diff(*from)) / u128::from(scene.ports - 1)).max(1) - 1,
                _ => delay,
            };
            let each = bits * 1_000_000_000_000 / u128::from(scene.config.rate.get()) + delay;
            let least = u128::from(handed_in[*number as usize]) + lines * each;
            prop_assert!(u128::from(*due) + lines >= least, "frame {number}: {due} before {least}");
        }
    }

    #[test]
    fn when_the_wire_is_asked_changes_nothing(scene in any_scene(), extra in 1u64..5) {
        prop_assert_eq!(trace(&scene, 0), trace(&scene, extra));
    }

    #[test]
    fn without_rules_a_pair_of_ports_keeps_its_order(mut scene in any_scene()) {
        scene.config.rules.clear();
        scene.config.queues = None;
        let (trace, _) = trace(&scene, 0);
        let mut last = std::collections::BTreeMap::new();
        for (to, from, number, _, _) in trace {
            let before = last.insert((from, to), number);
            prop_assert!(before.is_none_or(|before| before < number), "{from} to {to}: {before:?}, {number}");
        }
    }

    /// The oracle: a line is a clock of exact fractions.
    #[test]
    fn a_cable_agrees_with_exact_fractions(
        frames in prop::collection::vec((0u64..3_000_000, 14u64..1519), 1..80),
        rate in 1_000u64..3_000_000_000,
    ) {
        let base = config(Medium::Cable);
        let config = WireConfig { rate: BitRate::bit_s(rate), delay: Span::ZERO, ..base };
        let frames: Vec<_> = frames.into_iter().map(|(gap, length)| (gap, 0, 9, length)).collect();
        let (trace, handed_in) = trace(&Scene { config, ports: 2, frames: frames.clone() }, 0);
        // In parts of 1/rate ps; a frame that finds the line idle begins at its own whole picosecond.
        let mut free = 0_u128;
        for (number, &(_, _, _, length)) in frames.iter().enumerate() {
            let now = u128::from(handed_in[number]);
            // The line is idle once the whole picosecond in which it falls idle has begun.
            let start = if now > free / u128::from(rate) { now * u128::from(rate) } else { free };
            let octets = u128::from(length.max(60) + 12);
            let end = start + octets * 8 * 1_000_000_000_000;
            prop_assert_eq!(u128::from(trace[number].4), end / u128::from(rate), "frame {}", number);
            free = end + 96 * 1_000_000_000_000;
        }
    }
}
