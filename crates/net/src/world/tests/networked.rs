//! Ranks on the hosts of a network, each by a case whose times are worked out by hand.

use super::*;
use crate::model::NetworkModel;

/// A rank on each host. Of a packet of this network 100 bytes are the message's and 48 are not; a byte takes 1 ps.
fn hosts(count: u32, topology: &str, inter: Layer) -> World {
    let text = format!("{topology}:hosts={count},rate=8000Gbit/s,mtu=148B,headers=48B,framing=0B");
    on(count, network(&text), inter)
}

fn on(count: u32, network: NetworkModel, inter: Layer) -> World {
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
        nodes: vec![node; count as usize],
        placement: (0..count).collect(),
        dealt: Vec::new(),
        order: Vec::new(),
        own: None,
        intra: plain_layer(),
        inter: Some(inter),
        link: None,
        network: Some(network),
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    };
    World::new(model, 1, true)
}

/// When a message that rank 0 sends at once is with rank 1, who waits for it.
fn one_way(world: &mut World, bytes: u64) -> u64 {
    world.enter(0, "Send");
    let send = world.send(0, 1, 0, bytes, Mode::Standard);
    world.wait(0, &[send], WaitMode::All);
    world.enter(1, "Recv");
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(1);
    world.check_totals();
    world.clock(1)
}

#[test]
fn a_message_of_one_packet_takes_its_ends_and_each_line_once() {
    // 8 bytes and 48: 56 ps on each of the two lines.
    assert_eq!(one_way(&mut hosts(2, "star", plain_layer()), 8), 1170 + 2 * 56);
    assert_eq!(one_way(&mut hosts(2, "back-to-back", plain_layer()), 8), 1170 + 56);
    // The cable is one medium: a switch that would send the packet again is not there.
    assert_eq!(one_way(&mut hosts(2, "shared-cable", plain_layer()), 8), 1170 + 56);
    assert_eq!(one_way(&mut hosts(2, "star", plain_layer()), 0), 1170 + 2 * 48);
}

#[test]
fn the_fin_of_a_synchronous_message_crosses_the_network_too() {
    let mut world = hosts(2, "star", plain_layer());
    let send = world.send(0, 1, 0, 8, Mode::Synchronous);
    world.wait(0, &[send], WaitMode::All);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(0);
    let taken_in = 100 + 2 * 56 + 1010 + 50;
    assert_eq!([world.clock(1), world.clock(0)], [taken_in + 100, taken_in + 100 + 2 * 48 + 1010 + 50]);
    world.check_totals();
}

#[test]
fn delays_of_lines_and_switches_are_added_and_a_switch_may_pass_on_at_once() {
    let text = "star:hosts=2,rate=8000Gbit/s,mtu=148B,headers=48B,framing=0B,delay=7ps,switch_delay=30ps";
    let waits = one_way(&mut on(2, network(text), plain_layer()), 8);
    assert_eq!(waits, 1170 + 2 * 56 + 2 * 7 + 30);
    let text = format!("{text},forwarding=cut-through");
    assert_eq!(one_way(&mut on(2, network(&text), plain_layer()), 8), waits - 56);
}

#[test]
fn a_long_message_takes_what_the_slower_of_network_and_ends_takes() {
    // 9 packets: 900 + 9 * 48 = 1332 ps on the line from when the first is made (10 + 100), the last of them 148 ps
    // more on the second; then the ends of that packet.
    assert_eq!(one_way(&mut hosts(2, "star", plain_layer()), 900), 10 + 100 + 1332 + 148 + 1010 + 50);
    // One byte more is a packet more, of 49 ps: on the second line it waits for the full one before it.
    assert_eq!(one_way(&mut hosts(2, "star", plain_layer()), 901), 10 + 100 + 1381 + 148 + 1010 + 50);
    // An end that works longer than the network: what is left is the last packet.
    let per_byte =
        |fs: i64| Curve::new(vec![Segment { from_bytes: 0, base_ps: 110, per_byte_fs: fs }]).unwrap();
    let slow = Layer { overhead_send: per_byte(10_000), ..plain_layer() };
    let ends = 110 + 9000 + 1000 + 60;
    assert_eq!(one_way(&mut hosts(2, "star", slow), 900), ends + 148);
    let slow = Layer { overhead_recv: per_byte(10_000), ..plain_layer() };
    let first_packet = 10 + 100;
    let found = one_way(&mut hosts(2, "star", slow), 900);
    assert!((first_packet + 1010 + 9100..=1170 + 9000 + 1332).contains(&found), "{found}");
}

#[test]
fn the_last_packet_follows_those_before_it_behind_the_slowest_line() {
    // Of three lines: bytes there take so many picoseconds on those of the hosts and on the one between.
    let taken = |line: u64, trunk: u64, bytes: u64| {
        let text = format!(
            "dumbbell:hosts=2,rate={}Gbit/s,trunk_rate={}Gbit/s,mtu=148B,headers=48B,framing=0B",
            8000 / line,
            8000 / trunk
        );
        one_way(&mut on(2, network(&text), plain_layer()), bytes) - 110 - 1010 - 50
    };
    // One packet of 56 bytes.
    assert_eq!(taken(1, 2, 8), 56 * 4);
    assert_eq!(taken(2, 1, 8), 56 * 5);
    // Nine of 148 and one of 49, which is there before the last of the others has been sent on.
    assert_eq!(taken(1, 2, 901), 148 + 9 * 148 * 2 + 148 + 49);
    assert_eq!(taken(2, 1, 901), 9 * 148 * 2 + 148 + 148 * 2 + 49 * 2);
    assert_eq!(taken(1, 2, 101), 148 + 148 * 2 + 148 + 49);
    // One of 140 finds that one gone.
    assert_eq!(taken(1, 2, 192), 148 + 148 * 2 + 140 * 2 + 140);
}

#[test]
fn a_network_far_faster_than_the_ends_changes_nothing() {
    let text = "star:hosts=2,rate=9000000Gbit/s";
    for bytes in [0, 8, 900, 1_000_000] {
        let layer = Layer { rendezvous_from: None, ..plain_layer() };
        let found = one_way(&mut on(2, network(text), layer), bytes);
        let wire = (bytes + bytes / 1448 * 90) * 8 / 9000 + 4;
        assert!((1170..=1170 + wire).contains(&found), "{bytes} bytes: {found}");
    }
}

#[test]
fn senders_to_one_receiver_share_its_line() {
    // Seven long messages at once to rank 0: its line carries them all, each with a seventh of the rate.
    let layer = Layer { rendezvous_from: None, ..plain_layer() };
    let mut world = hosts(8, "star", layer);
    let bytes = 100_000;
    for rank in 1..8 {
        world.enter(rank, "Send");
        let send = world.send(rank, 0, rank, bytes, Mode::Standard);
        world.wait(rank, &[send], WaitMode::All);
    }
    world.enter(0, "Recv");
    let receives = (1..8).map(|rank| world.recv(0, from(rank, rank))).collect::<Vec<_>>();
    world.wait(0, &receives, WaitMode::All);
    world.until(0);
    world.check_totals();
    let load = 7 * (bytes + bytes / 100 * 48);
    let found = world.clock(0);
    // Seven receives of 50 ps, one after the other, and the ends of the last packet.
    let least = load + 1010 + 50;
    assert!((least..=least + 700).contains(&found), "{found} for at least {least}");
}

#[test]
fn messages_of_a_pair_follow_each_other_and_another_pair_passes() {
    let layer = Layer { rendezvous_from: None, ..plain_layer() };
    let mut world = hosts(4, "star", layer);
    world.enter(0, "Send");
    let sends = [50_000, 8].map(|bytes| world.send(0, 1, 0, bytes, Mode::Standard));
    world.wait(0, &sends, WaitMode::All);
    world.enter(2, "Send");
    let send = world.send(2, 3, 0, 8, Mode::Standard);
    world.wait(2, &[send], WaitMode::All);
    world.enter(1, "Recv");
    let receives = [0, 0].map(|tag| world.recv(1, from(0, tag)));
    world.wait(1, &receives, WaitMode::All);
    world.enter(3, "Recv");
    let receive = world.recv(3, from(2, 0));
    world.wait(3, &[receive], WaitMode::All);
    world.until(3);
    assert_eq!(world.clock(3), 1170 + 2 * 56, "nobody else is on its lines");
    let both = world.until(1);
    assert_eq!(both.iter().map(|one| one.bytes.get()).collect::<Vec<_>>(), [50_000, 8]);
    assert!(world.clock(1) > 50_000 + 500 * 48 + 56, "the short one came after the long one");
    let counts = world.counts();
    assert_eq!((counts.sent, counts.delivered, counts.held), (3, 3, 0));
}

#[test]
fn a_rendezvous_crosses_the_network_with_its_envelope_and_its_data() {
    let found = one_way(&mut hosts(2, "star", plain_layer()), 1000);
    // The envelope (96 ps and its flight), then 10 packets and the ends; nothing is sent before the envelope is
    // there.
    let data = 1000 + 10 * 48 + 148;
    assert!(found >= 96 + data + 1010, "{found}");
    let eager = Layer { rendezvous_from: None, ..plain_layer() };
    assert!(found > one_way(&mut hosts(2, "star", eager), 1000), "{found}");
}

#[test]
fn the_send_of_an_acknowledged_message_is_over_when_its_receiver_has_it() {
    let time = |from: u64, mode: Mode, last: u32| {
        let layer =
            Layer { rendezvous_from: None, acknowledged_from: Some(Bytes::new(from)), ..plain_layer() };
        let mut world = hosts(2, "star", layer);
        world.enter(0, "Send");
        let send = world.send(0, 1, 0, 1000, mode);
        world.wait(0, &[send], WaitMode::All);
        world.compute(1, 1_000_000);
        world.enter(1, "Recv");
        let receive = world.recv(1, super::from(0, 0));
        world.wait(1, &[receive], WaitMode::All);
        world.until(last);
        (world.clock(0), world.clock(1))
    };
    let (left, received) = time(1001, Mode::Standard, 1);
    assert!(left < 100_000 && received > 1_000_000, "{left} {received}");
    // The message itself takes no other way than one that is synchronous: only its sender waits.
    let told = time(1000, Mode::Standard, 0);
    assert_eq!(told, time(1001, Mode::Synchronous, 0));
    assert!(told.0 > told.1, "{told:?}");
    assert_eq!(told.1, received + 100, "the receiver tells the sender by a message of no bytes");
    assert_eq!(time(1000, Mode::Buffered, 1), (left, received));
}
