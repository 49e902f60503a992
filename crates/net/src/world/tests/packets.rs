//! Ranks on the hosts of a network that is followed packet by packet.

use proptest::prelude::*;

use super::*;

/// The bytes of a full packet that are the program's, and that a line carries.
const PAYLOAD: u64 = 1448;
const ON_LINE: u64 = 1538;
/// What a byte takes at 10 Gbit/s, in ps.
const BYTE: u64 = 800;
/// Packets that TCP sends before the first acknowledgment.
const INITIAL_WINDOW: u64 = 10;

pub(super) fn on(topology: &str, hosts: u32, inter: Layer) -> World {
    let text = format!("{topology},hosts={hosts}").replacen(',', ":", 1);
    let node = NodeModel {
        cores: 1,
        cores_of: None,
        idle: Idle::Sleep,
        quantum: Span::from_ps(4000),
        turn: Span::ZERO,
        fair: false,
        offers: false,
        picks_anew: false,
        ticks: None,
    };
    let model = Model {
        nodes: vec![node; hosts as usize],
        placement: (0..hosts).collect(),
        dealt: Vec::new(),
        order: Vec::new(),
        own: None,
        intra: plain_layer(),
        inter: Some(inter),
        link: None,
        network: Some(network(&text)),
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    };
    World::new(model, 1, true)
}

fn eager() -> Layer {
    Layer { rendezvous_from: None, ..plain_layer() }
}

/// Each message is sent by its source at once and awaited by its destination: when the last rank is done, in ps.
pub(super) fn shuffle(world: &mut World, messages: &[(u32, u32, u64)]) -> u64 {
    let mut requests = vec![Vec::new(); world.size() as usize];
    for (tag, (from_rank, to, bytes)) in (0..).zip(messages) {
        let send = world.send(*from_rank, *to, tag, *bytes, Mode::Standard);
        let receive = world.recv(*to, from(*from_rank, tag));
        requests[*from_rank as usize].push(send);
        requests[*to as usize].push(receive);
    }
    let mut open = 0;
    for (rank, requests) in (0..).zip(&requests) {
        if !requests.is_empty() {
            world.wait(rank, requests, WaitMode::All);
            open += 1;
        }
    }
    while open > 0 {
        assert!(world.step(), "all messages arrive: {:?}", world.blocked());
        open -= world.resumed().len();
    }
    world.check_totals();
    (0..world.size()).map(|rank| world.clock(rank)).max().unwrap()
}

/// The same on the same network at both fidelities: by messages, by packets.
fn both(topology: &str, hosts: u32, messages: &[(u32, u32, u64)]) -> (f64, f64) {
    let of = |fidelity: &str| {
        let topology = format!("{topology},fidelity={fidelity}");
        shuffle(&mut on(&topology, hosts, eager()), messages) as f64
    };
    (of("message"), of("packet"))
}

#[test]
fn a_message_of_one_packet_takes_what_it_takes_as_a_flow() {
    for bytes in [8, 100, PAYLOAD] {
        let (flow, packet) = both("star,rate=10Gbit/s,delay=1us,switch_delay=300ns", 2, &[(0, 1, bytes)]);
        assert!((flow - packet).abs() <= 2.0, "{bytes} bytes: {flow} and {packet} ps");
    }
    // The one byte of a message without any.
    let (flow, packet) = both("star,rate=10Gbit/s", 2, &[(0, 1, 0)]);
    assert!((packet - flow - 2.0 * BYTE as f64).abs() <= 2.0, "{flow} and {packet} ps");
}

#[test]
fn a_message_within_the_first_window_follows_itself_packet_by_packet() {
    let packets = INITIAL_WINDOW;
    let found =
        shuffle(&mut on("star,rate=10Gbit/s,fidelity=packet", 2, eager()), &[(0, 1, packets * PAYLOAD)]);
    // On the first line all packets, on the second the last one; the ends' 1170 ps besides.
    let wire = (packets + 1) * ON_LINE * BYTE;
    assert!((wire..=wire + 1170).contains(&found), "{found} ps for {wire} ps");
}

#[test]
fn a_longer_message_waits_for_acknowledgments_while_the_window_opens() {
    let (flow, packet) = both("star,rate=10Gbit/s,delay=10us", 2, &[(0, 1, 40 * PAYLOAD)]);
    // 10 packets, 20, then the rest. The line stands still from the end of a window until the acknowledgment of that
    // window's first packet is there: it takes two lines of the packet's time, two of an acknowledgment's, four delays.
    let acknowledgment = 90 * BYTE;
    let round_trip = 2 * (ON_LINE * BYTE + acknowledgment) + 40_000_000;
    let still = 2 * round_trip - (10 + 20) * ON_LINE * BYTE;
    let lost = packet - flow;
    assert!((lost - still as f64).abs() <= 4.0, "{lost} and {still} ps");
}

#[test]
fn long_messages_share_a_line_about_as_flows_do() {
    const MB: u64 = 1_000_000;
    let incast = (1..9).map(|source| (source, 0, 4 * MB)).collect::<Vec<_>>();
    let (flow, packet) = both("star,rate=10Gbit/s,delay=1us", 9, &incast);
    assert!((0.98..1.03).contains(&(packet / flow)), "incast: {flow} and {packet} ps");
    // Host 0 sends to host 1 along three lines, on each of which another pair sends.
    let lot = [(0, 1, 8 * MB), (2, 3, 8 * MB), (4, 5, 8 * MB), (6, 7, 8 * MB)];
    let (flow, packet) = both("parking-lot,rate=10Gbit/s,delay=1us", 8, &lot);
    assert!((0.95..1.35).contains(&(packet / flow)), "parking lot: {flow} and {packet} ps");
}

#[test]
fn an_acknowledgment_does_not_wait_behind_what_its_host_sends_to_others() {
    // Each host sends to the next, and acknowledges what the one before sends.
    let ring = (0..16).map(|rank| (rank, (rank + 1) % 16, 1 << 20)).collect::<Vec<_>>();
    let (flow, packet) = both("fat-tree,rate=100Gbit/s,delay=500ns,switch_delay=300ns", 16, &ring);
    // In the order in which packets come, acknowledgments would wait for whole windows: 1.64 times.
    assert!((1.0..1.3).contains(&(packet / flow)), "{flow} and {packet} ps");
}

#[test]
fn a_full_queue_loses_packets_and_no_message() {
    let incast = (1..9).map(|source| (source, 0, 1_000_000)).collect::<Vec<_>>();
    let topology = "star,rate=10Gbit/s,delay=1us,fidelity=packet";
    let free = shuffle(&mut on(topology, 9, eager()), &incast);
    let tight = shuffle(&mut on(&format!("{topology},queue=32KiB"), 9, eager()), &incast);
    assert!(tight > free, "{tight} and {free} ps: what is lost is sent again");
}

#[test]
fn a_slow_sender_is_not_overtaken_by_its_network() {
    let per_byte = Curve::new(vec![Segment { from_bytes: 0, base_ps: 110, per_byte_fs: 8_000_000 }]).unwrap();
    let layer = Layer { overhead_send: per_byte, ..eager() };
    let bytes = 1_000_000;
    let found = shuffle(&mut on("star,rate=10Gbit/s,fidelity=packet", 2, layer), &[(0, 1, bytes)]);
    // Ten times what the line takes; the last packet crosses the second line after that.
    let made = bytes * 8_000;
    assert!((made..made + 4 * ON_LINE * BYTE).contains(&found), "{found} ps for {made} ps");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the topology, the queue and the messages: all arrive, in the same order and time whenever it is run,
    /// and the time of every rank adds up.
    #[test]
    fn every_message_arrives_and_a_run_is_the_same_every_time(
        kind in 0_usize..5,
        queue in prop_oneof![Just(""), Just(",queue=8KiB"), Just(",queue=3packets")],
        messages in prop::collection::vec((0_u32..8, 0_u32..8, 0_u64..60_000), 1..24),
    ) {
        let topology = ["star", "ring", "dumbbell", "parking-lot", "fat-tree"][kind];
        let topology = format!("{topology},rate=1Gbit/s,delay=2us,fidelity=packet{queue}");
        let messages = messages.into_iter().filter(|found| found.0 != found.1).collect::<Vec<_>>();
        let run = || {
            let mut world = on(&topology, 8, plain_layer());
            (shuffle(&mut world, &messages), world.digest())
        };
        let first = run();
        prop_assert_eq!(first, run());
    }
}
