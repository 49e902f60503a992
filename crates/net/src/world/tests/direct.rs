//! Ranks between which the direct transport carries messages, packet by packet.

use super::*;
use crate::model::NetworkModel;

/// A rank on each host; a byte takes 1 ps on a line.
fn hosts(count: u32, keys: &str, inter: Layer) -> World {
    let text =
        format!("star:hosts={count},rate=8000Gbit/s,framing=0B,fidelity=packet,transport=direct{keys}");
    let network: NetworkModel = network(&text);
    let nodes = vec![model(1, 1, Idle::Sleep, plain_layer()).nodes[0].clone(); count as usize];
    let model = Model {
        nodes,
        placement: (0..count).collect(),
        inter: Some(inter),
        network: Some(network),
        ..model(count, 1, Idle::Sleep, plain_layer())
    };
    World::new(model, 1, true)
}

/// Sends from one rank to another that waits.
fn one_way(world: &mut World, bytes: u64, mode: Mode) -> u64 {
    world.enter(0, "Send");
    let send = world.send(0, 1, 0, bytes, mode);
    world.wait(0, &[send], WaitMode::All);
    world.enter(1, "Recv");
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    let completions = world.until(1);
    assert_eq!(completions[0].bytes, Bytes::new(bytes));
    world.check_totals();
    world.clock(1)
}

/// IPv4, UDP and a frame's header; what a message's first frame has besides.
const AROUND: u64 = 20 + 8 + 32;
const HEAD: u64 = 16;

#[test]
fn a_short_message_takes_its_ends_and_its_frame_on_each_line() {
    for bytes in [0, 8, 999] {
        let frame = AROUND + HEAD + bytes;
        assert_eq!(one_way(&mut hosts(2, "", plain_layer()), bytes, Mode::Standard), 1170 + 2 * frame);
    }
}

#[test]
fn a_long_message_is_offered_and_asked_for_and_sent_and_its_ends_come_on_top() {
    // The offer with its 12 octets, what asks for it with 16, and a frame that says where its bytes belong with 12.
    let crossed = 2 * (AROUND + HEAD + 12) + 2 * (AROUND + 16) + 2 * (AROUND + 12 + 1000);
    let found = one_way(&mut hosts(2, "", plain_layer()), 1000, Mode::Standard);
    // What the layer takes has the handshake in it.
    assert_eq!(found, 1170 + crossed);
    // A layer that knows no limit has the transport's.
    let eager = || Layer { rendezvous_from: None, ..plain_layer() };
    let [pushed, offered] =
        [16 << 10, (16 << 10) + 1].map(|bytes| one_way(&mut hosts(2, "", eager()), bytes, Mode::Standard));
    assert!(offered > pushed + 2 * (AROUND + 16), "{pushed} {offered}");
    // A short one that is to be received first is told of by a frame of its own.
    let synchronous = one_way(&mut hosts(2, "", eager()), 8, Mode::Synchronous);
    assert!(synchronous > 1170 + 2 * (2 * AROUND + 8), "{synchronous}");
}

/// Each rank sends to each, short and long ones; the time, the digest and what was counted.
fn all_to_all(keys: &str) -> (u64, wiretwin_engine::Digest, wiretwin_proto::direct::Counters, u64) {
    let ranks = 4;
    let mut world = hosts(ranks, keys, Layer { rendezvous_from: None, ..plain_layer() });
    for rank in 0..ranks {
        world.enter(rank, "Alltoall");
        let mut requests = Vec::new();
        for tag in 0..20 {
            for peer in (0..ranks).filter(|&peer| peer != rank) {
                requests.push(world.recv(rank, from(peer, tag)));
                let bytes = [8, 5_000, 200_000][tag as usize % 3];
                requests.push(world.send(rank, peer, tag, bytes, Mode::Standard));
            }
        }
        world.wait(rank, &requests, WaitMode::All);
    }
    run(&mut world, ranks as usize, finish);
    world.check_totals();
    let counts = world.counts();
    assert_eq!((counts.sent, counts.delivered, counts.held), (240, 240, 0));
    let end = (0..ranks).map(|rank| world.clock(rank)).max().unwrap();
    let lost = world.congestion().iter().find(|(name, _)| *name == "lost_packets").unwrap().1;
    (end, world.digest(), world.direct_totals().unwrap(), lost)
}

#[test]
fn what_lines_lose_is_sent_again_and_costs_time_alone() {
    let (quiet, digest, counted, lost) = all_to_all("");
    assert_eq!((lost, counted.resent, counted.duplicates), (0, 0, 0));
    assert_eq!(all_to_all("").1, digest);
    let (lossy, other, again, lost) = all_to_all(",packet_loss=0.01");
    assert!(lost > 50 && again.resent > 50, "{lost} lost, {again:?}");
    // Each message was there once, as `counts` says; each numbered frame, too.
    assert_eq!((again.received, again.impossible, again.stray), (counted.received, 0, 0));
    assert!(lossy > quiet, "{lossy} after {quiet}");
    assert_ne!(other, digest);
    assert_eq!(all_to_all(",packet_loss=0.01").1, other);
}

/// A rank that has finished reads on, so that its peers hear of what they sent.
fn finish(world: &mut World, rank: u32) {
    world.post(rank, Op::Finish).unwrap();
}

/// Lets ranks go on until all that wait have been resumed, so often in all.
fn run(world: &mut World, mut resumed: usize, mut each: impl FnMut(&mut World, u32)) {
    while resumed > 0 {
        assert!(world.step(), "{:?}", world.blocked());
        let ranks = world.resumed().map(|(rank, _)| rank).collect::<Vec<_>>();
        for rank in ranks {
            resumed -= 1;
            each(world, rank);
        }
    }
}

#[test]
fn a_receiver_that_stops_reading_drops_nothing_and_its_senders_stop() {
    let (count, second) = (20_000_u32, 1_000_000_000_000);
    let mut world = hosts(2, "", plain_layer());
    world.compute(1, second);
    let receives = (0..count).map(|_| world.recv(1, from(0, 0))).collect::<Vec<_>>();
    world.wait(1, &receives, WaitMode::All);
    let (mut sent, mut most_held, mut most_waiting, mut yields) = (0, 0, 0, false);
    let send = |world: &mut World, sent: &mut u32| {
        if *sent < count {
            *sent += 1;
            let one = world.send(0, 1, 0, 8, Mode::Standard);
            world.wait(0, &[one], WaitMode::All);
        } else {
            finish(world, 0);
        }
    };
    send(&mut world, &mut sent);
    run(&mut world, 2 * count as usize + 1, |world, rank| {
        let carrier = world.network.as_ref().unwrap().carrier.as_ref().unwrap();
        most_waiting = most_waiting.max(carrier.network.waiting_frames(1));
        if world.now().as_ps() < second {
            most_held = most_held.max(world.counts().held);
        }
        // The sender does not run ahead: what lies in the receiver's memory is seen after each message.
        yields ^= rank == 0;
        if rank == 0 && yields {
            world.post(0, Op::Yield).unwrap();
        } else if rank == 0 {
            send(world, &mut sent);
        }
    });
    // No more lies in the receiver's memory than was granted, and POLLs; no more waits than a queue holds, and one.
    assert!((64..=64 + 20).contains(&most_waiting), "{most_waiting} frames waited");
    assert_eq!(most_held, 4096, "messages that were held");
    assert!(world.clock(0) >= second, "the sender went on before the receiver read: {}", world.clock(0));
    let counted = world.direct_totals().unwrap();
    assert_eq!((counted.received, counted.duplicates, counted.impossible), (u64::from(count), 0, 0));
    assert_eq!(world.counts().delivered, u64::from(count));
}

#[test]
fn what_came_while_its_receiver_computed_is_read_when_it_waits_and_costs_no_flight_then() {
    let mut world = hosts(2, "", plain_layer());
    let send = world.send(0, 1, 0, 8, Mode::Standard);
    world.wait(0, &[send], WaitMode::All);
    world.compute(1, 50_000);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(1);
    assert_eq!(world.clock(1), 50_000 + 50, "what a receive takes besides its call");
}

/// Frames that a port loses where eight ranks send to one at once, with a window that is fixed or follows the delay.
fn lost_in_incast(has_fixed_window: bool) -> u64 {
    let (senders, each) = (8, 3000);
    let text = "star:hosts=9,rate=100Mbit/s,delay=5us,queue=256KiB,fidelity=packet,transport=direct";
    let mut world = hosts(9, "", Layer { rendezvous_from: None, ..plain_layer() });
    let model = Model { network: Some(network(text)), ..world.model().clone() };
    world = World::new(model, 1, false);
    let carrier = world.network.as_mut().unwrap().carrier.as_mut().unwrap();
    carrier.direct.as_mut().unwrap().has_fixed_window = has_fixed_window;
    let mut receives = Vec::new();
    for rank in 1..=senders {
        receives.extend((0..each).map(|_| world.recv(0, from(rank, 0))));
        let sends = (0..each).map(|_| world.send(rank, 0, 0, 1400, Mode::Standard)).collect::<Vec<_>>();
        world.wait(rank, &sends, WaitMode::All);
    }
    world.wait(0, &receives, WaitMode::All);
    run(&mut world, senders as usize + 1, finish);
    assert_eq!(world.counts().delivered, u64::from(senders * each));
    let lost = world.congestion();
    lost.iter().find(|(name, _)| *name == "lost_packets").unwrap().1
}

#[test]
fn a_window_that_follows_the_delay_loses_a_tenth_of_what_a_fixed_one_loses_where_many_send_to_one() {
    let lost = [true, false].map(lost_in_incast);
    println!("lost: {lost:?}");
    assert!(lost[0] > 1000 && lost[1] * 10 <= lost[0], "{lost:?}");
}
