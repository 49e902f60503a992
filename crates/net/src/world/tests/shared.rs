//! Ranks that share cores, and nodes that share links; quanta are 4000 ps.

use super::*;
use crate::model::LinkModel;

fn shared(ranks: u32, cores: u32, idle: Idle) -> World {
    World::new(model(ranks, cores, idle, plain_layer()), 1, true)
}

/// Steps to the end; when each rank was resumed. A resumed rank finishes.
fn ends(world: &mut World) -> Vec<u64> {
    let mut ends = vec![u64::MAX; world.size() as usize];
    for _ in 0..1000 {
        if !world.step() {
            world.check_totals();
            return ends;
        }
        let resumed = world.resumed().map(|(rank, _)| rank).collect::<Vec<_>>();
        for rank in resumed {
            ends[rank as usize] = world.clock(rank);
            world.post(rank, Op::Finish).unwrap();
        }
    }
    panic!("no end within 1000 steps");
}

#[test]
fn two_computing_ranks_take_turns_on_one_core() {
    for idle in [Idle::Spin, Idle::Sleep] {
        let mut world = shared(2, 1, idle);
        for rank in 0..2 {
            world.compute(rank, 10_000);
            world.post(rank, Op::Yield).unwrap();
        }
        // 0: 0-4000, 8000-12000, 16000-18000; 1: 4000-8000, 12000-16000, 18000-20000.
        assert_eq!(ends(&mut world), [18_000, 20_000]);
        let kinds = |rank| world.totals(rank).unwrap().map(|span| span.as_ps());
        assert_eq!(kinds(0), [10_000, 0, 0, 8_000]);
        assert_eq!(kinds(1), [10_000, 0, 0, 10_000]);
    }
}

#[test]
fn three_computing_ranks_take_turns_on_two_cores() {
    let mut world = shared(3, 2, Idle::Sleep);
    for rank in 0..3 {
        world.compute(rank, 6_000);
        world.post(rank, Op::Yield).unwrap();
    }
    // 0 and 1 run to 4000; then 2 (core of 0) and 0 (core of 1); 0 ends at 6000, 1 runs 6000-8000,
    // and 2, whose slice ends at 8000 with nobody in the queue, runs 4000-10000.
    assert_eq!(ends(&mut world), [6_000, 8_000, 10_000]);
}

#[test]
fn a_rank_that_polls_keeps_the_core_until_its_slice_ends() {
    let message = |idle| {
        let mut world = shared(2, 1, idle);
        let receive = world.recv(0, from(1, 0));
        world.wait(0, &[receive], WaitMode::All);
        world.compute(1, 1000);
        let send = world.send(1, 0, 0, 8, Mode::Standard);
        world.wait(1, &[send], WaitMode::All);
        let ends = ends(&mut world);
        (ends, world.totals(0).unwrap().map(|span| span.as_ps()))
    };
    // 0 polls to 4000; 1 computes to 5000, sends to 5100; flight 1010; taken in 50.
    assert_eq!(message(Idle::Spin), (vec![6160, 5100], [0, 50, 1010, 5100]));
    assert_eq!(message(Idle::Sleep), (vec![2160, 1100], [0, 50, 1010, 1100]));
}

#[test]
fn what_others_compute_on_a_core_makes_a_ranks_own_library_cold_too() {
    let mut model = model(2, 1, Idle::Sleep, plain_layer());
    model.cold = vec![Cold { after: Span::from_ps(2000), takes: Span::from_ps(600) }];
    let mut world = World::new(model, 1, true);
    let receive = world.recv(0, from(1, 0));
    world.wait(0, &[receive], WaitMode::All);
    world.compute(1, 1000);
    let sends = [(); 2].map(|()| world.send(1, 0, 0, 8, Mode::Standard));
    world.wait(1, &sends, WaitMode::All);
    // 1 computes to 1000, sends to 1400, for the library is cold, and to 1500; flight 1010; 0 takes that in, 50 and 300.
    assert_eq!(ends(&mut world), [2760, 1500]);
}

#[test]
fn ranks_have_their_first_turns_in_the_order_that_is_told() {
    let ended = |order: Vec<u32>| {
        let model = Model { dealt: vec![0; 3], order, ..model(3, 1, Idle::Yield, plain_layer()) };
        let mut world = World::new(model, 1, true);
        for rank in 0..3 {
            world.compute(rank, 1000);
            world.post(rank, Op::Yield).unwrap();
        }
        ends(&mut world)
    };
    assert_eq!(ended(vec![]), [1000, 2000, 3000]);
    assert_eq!(ended(vec![0, 1, 2]), [1000, 2000, 3000]);
    assert_eq!(ended(vec![2, 0, 1]), [2000, 3000, 1000]);
}

/// Ranks on the cores that they are dealt to; a turn takes 400.
fn yielding(dealt: Vec<u32>, cores: u32) -> World {
    let mut model = model(dealt.len() as u32, cores, Idle::Yield, plain_layer());
    model.nodes[0].turn = Span::from_ps(400);
    World::new(Model { dealt, ..model }, 1, true)
}

#[test]
fn ranks_that_yield_look_for_messages_by_turns() {
    let mut world = yielding(vec![0, 0], 1);
    let receive = world.recv(0, from(1, 0));
    world.wait(0, &[receive], WaitMode::All);
    world.compute(1, 1000);
    let send = world.send(1, 0, 0, 8, Mode::Standard);
    world.wait(1, &[send], WaitMode::All);
    // 0 looks to 400; 1 computes to 1400, sends to 1500 and looks to 1900; then 0 to 2300 and 1 to 2700, and
    // meanwhile, at 1500 and a flight of 1010, the message is there. It is taken in for 50.
    assert_eq!(ends(&mut world), [2750, 1500]);
}

#[test]
fn where_cores_are_shared_fairly_those_that_wait_take_as_much_as_those_that_compute() {
    let time = |fair, computed| {
        let mut model = model(2, 1, Idle::Yield, plain_layer());
        (model.nodes[0].turn, model.nodes[0].fair) = (Span::from_ps(400), fair);
        let mut world = World::new(Model { dealt: vec![0, 0], ..model }, 1, true);
        let receive = world.recv(0, from(1, 0));
        world.wait(0, &[receive], WaitMode::All);
        world.compute(1, computed);
        let send = world.send(1, 0, 0, 8, Mode::Standard);
        world.wait(1, &[send], WaitMode::All);
        ends(&mut world)
    };
    // 0 looks to 400 and 1 has the core in slices of 4000. To 20 400 and the 100 of its send, if it keeps it; then 1
    // looks to 20 900, and both by turns: 0 to 21 300, 1 to 21 700, and the message that came at 21 510 is taken in.
    assert_eq!(time(false, 20_000), [21_750, 20_500]);
    // Else 0 looks after each of five slices until it has had as much, at first for 3600 and then for 4000 each; the
    // last time before the send.
    assert_eq!(time(true, 20_000)[1], 20_500 + 3600 + 4 * 4000);
}

#[test]
fn a_rank_offers_its_core_before_it_takes_in_what_has_come() {
    let ended = |offers, fair| {
        let mut model = model(2, 1, Idle::Yield, plain_layer());
        (model.nodes[0].turn, model.nodes[0].fair, model.nodes[0].offers) =
            (Span::from_ps(400), fair, offers);
        let mut world = World::new(Model { dealt: vec![0, 0], ..model }, 1, true);
        let send = world.send(0, 1, 0, 8, Mode::Standard);
        let receive = world.recv(0, from(1, 0));
        world.wait(0, &[send, receive], WaitMode::All);
        world.compute(1, 3000);
        let answer = world.send(1, 0, 0, 8, Mode::Standard);
        let receive = world.recv(1, from(0, 0));
        world.wait(1, &[answer, receive], WaitMode::All);
        ends(&mut world)[1]
    };
    // 0 sends to 100 and looks to 500. 1 computes to 3500 and answers to 3600, when a message has long come: it takes
    // that in for 50.
    assert_eq!([false, true].map(|fair| ended(false, fair)), [3650, 3650]);
    // Or 0 has its turn first: one look, or as many as 1 has had more of the core.
    assert_eq!([false, true].map(|fair| ended(true, fair)), [3650 + 400, 3650 + 2600]);
}

#[test]
fn a_rank_that_sleeps_leaves_its_core_to_the_other_and_is_not_late_for_one_that_waits() {
    let time = |idle, computed| {
        let mut model = model(2, 1, idle, plain_layer());
        (model.nodes[0].turn, model.nodes[0].fair) = (Span::from_ps(400), true);
        let mut world = World::new(Model { dealt: vec![0, 0], ..model }, 1, true);
        world.post(0, Op::Sleep(Span::from_ps(19_000))).unwrap();
        let send = world.send(0, 1, 0, 8, Mode::Standard);
        world.wait(0, &[send], WaitMode::All);
        world.compute(1, computed);
        let receive = world.recv(1, from(0, 0));
        world.wait(1, &[receive], WaitMode::All);
        let ends = ends(&mut world);
        assert_eq!(world.totals(0).unwrap()[0], Span::from_ps(19_000), "{idle:?}");
        world.check_totals();
        (ends, world.totals(1).unwrap()[0].as_ps())
    };
    for computed in [0, 15_000] {
        // It sends for 100 when it wakes; flight 1010, taken in for 50.
        assert_eq!(time(Idle::Sleep, computed), (vec![19_100, 20_160], computed));
        // The slice of the one that polls ends at 20 000.
        assert_eq!(time(Idle::Spin, computed).0[0], 20_100);
        // One that waits looks for 400 at a time.
        let (ends, own) = time(Idle::Yield, computed);
        assert!((19_100..=19_500).contains(&ends[0]) && own == computed, "{ends:?}");
    }
    // It sleeps to 19 000 and waits for the core, where the other is owed as much.
    let (ends, own) = time(Idle::Yield, 40_000);
    assert!(own == 40_000 && ends[0] < 40_000 + 100, "{ends:?}");
}

#[test]
fn a_rank_that_waits_in_a_call_that_keeps_its_core_is_left_by_slices() {
    let time = |call: &str| {
        let mut model = model(2, 1, Idle::Yield, plain_layer());
        model.nodes[0].turn = Span::from_ps(400);
        let keeping = vec!["Probe".to_owned()];
        let mut world = World::new(Model { dealt: vec![0, 0], keeping, ..model }, 1, true);
        let name = world.name_id(call);
        world.post(0, Op::Enter { name, site: 0 }).unwrap();
        let receive = world.recv(0, from(1, 0));
        world.wait(0, &[receive], WaitMode::All);
        let send = world.send(1, 0, 0, 8, Mode::Standard);
        world.wait(1, &[send], WaitMode::All);
        ends(&mut world)
    };
    // After 10 for its call rank 0 looks for 400 or for 4000; 1 sends for 100 and looks for 400; of the flight of 1010 rank 0 sees the end in
    // its second look or its second slice, and takes the message in for 50.
    assert_eq!(time("Recv"), [10 + 400 + 100 + 400 + 400 + 400 + 50, 510]);
    assert_eq!(time("Probe"), [10 + 4000 + 100 + 1010 + 50, 4110]);
}

#[test]
fn a_rank_that_yields_stays_on_its_core_though_another_is_free() {
    let time = |dealt| {
        let mut world = yielding(dealt, 2);
        for rank in 0..3 {
            world.compute(rank, if rank == 1 { 1000 } else { 6000 });
            world.post(rank, Op::Yield).unwrap();
        }
        ends(&mut world)
    };
    assert_eq!(time(vec![0, 1, 1]), [6_000, 1_000, 7_400]);
    // In slices of 4000: 0, 2, 0 to 10000, 2 to 12000; the second of them has looked in vain by 10400.
    assert_eq!(time(vec![0, 1, 0]), [10_000, 1_000, 12_400]);
}

#[test]
fn an_arrival_waits_for_the_core_that_another_rank_computes_on() {
    let mut world = shared(2, 1, Idle::Sleep);
    let receive = world.recv(0, from(1, 0));
    world.wait(0, &[receive], WaitMode::All);
    world.compute(1, 1000);
    world.send(1, 0, 0, 8, Mode::Standard);
    world.compute(1, 10_000);
    world.post(1, Op::Yield).unwrap();
    // Arrives at 2110; the slice of 1 ends at 4000; 0 takes it in to 4050; 1 has 7100 left.
    assert_eq!(ends(&mut world), [4050, 11_150]);
    let kinds = world.totals(0).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [0, 50, 1010, 1100 + 1890], "waiting for the sender, then for the core");
}

#[test]
fn an_echo_on_one_core_that_is_given_up_takes_as_long_as_on_two() {
    // A rendezvous ends at both ends at once, and then both want the core for the 10 of their calls.
    for (bytes, each_way) in [(8, 1170), (1000, 1170 + 10)] {
        let mut world = shared(2, 1, Idle::Sleep);
        assert_eq!(echo(&mut world, bytes, 5), 5 * 2 * each_way, "{bytes} bytes");
        world.check_totals();
    }
}

#[test]
fn polling_ranks_on_one_core_exchange_once_a_slice() {
    // The plateau that two spinning ranks on one core show: a message per time slice.
    let mut world = shared(2, 1, Idle::Spin);
    let time = echo(&mut world, 8, 10);
    assert!((10 * 2 * 4000 - 4000..=10 * 2 * 4000 + 4000).contains(&time), "{time}");
    world.check_totals();
}

fn two_nodes(ranks: u32, link: Option<LinkModel>) -> World {
    let node = NodeModel {
        cores: ranks,
        cores_of: None,
        idle: Idle::Sleep,
        quantum: Span::from_ps(4000),
        turn: Span::ZERO,
        fair: false,
        offers: false,
        picks_anew: false,
        ticks: None,
    };
    let inter = Layer { overhead_send: flat(210), ..plain_layer() };
    let model = Model {
        nodes: vec![node.clone(), node],
        placement: (0..ranks).map(|rank| rank % 2).collect(),
        dealt: Vec::new(),
        order: Vec::new(),
        own: None,
        intra: plain_layer(),
        inter: Some(inter),
        link,
        network: None,
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    };
    World::new(model, 1, true)
}

/// A byte in 1000 ps.
const LINK: LinkModel =
    LinkModel { rate: BitRate::bit_s(8_000_000_000), delay: Span::from_ps(500), message: Bytes::new(0) };

#[test]
fn between_nodes_the_other_layer_and_the_link_hold() {
    assert_eq!(echo(&mut two_nodes(2, None), 8, 3), 3 * 2 * 1270);
    for bytes in [8, 999, 1000, 5000] {
        let mut world = two_nodes(2, Some(LINK));
        let request_to_send = if bytes >= 1000 { 500 } else { 0 };
        let each_way = 1270 + 500 + 1000 * bytes + request_to_send;
        assert_eq!(echo(&mut world, bytes, 3), 3 * 2 * each_way, "{bytes} bytes");
        world.check_totals();
    }
}

#[test]
fn messages_queue_for_a_link_and_none_is_lost_or_overtaken() {
    let mut world = two_nodes(4, Some(LINK));
    let mut receives = Vec::new();
    for (sender, receiver) in [(0, 1), (2, 3)] {
        world.send(sender, receiver, 0, 100, Mode::Standard);
        world.post(sender, Op::Finish).unwrap();
        let receive = world.recv(receiver, from(sender, 0));
        world.wait(receiver, &[receive], WaitMode::All);
        receives.push(receive);
    }
    // Both leave at 200; the first is through at 100 200, the second at 200 200.
    let ends = ends(&mut world);
    let alone = 200 + 100_000 + 500 + 1010 + 50;
    assert_eq!([ends[1], ends[3]], [alone, alone + 100_000]);
    let kinds = world.totals(3).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [0, 50, 100_000 + 500 + 1010, 200 + 100_000], "queueing is waiting, not wire");
}

#[test]
fn a_message_occupies_the_link_for_its_headers_too() {
    let with_headers = LinkModel { message: Bytes::new(66), ..LINK };
    assert_eq!(echo(&mut two_nodes(2, Some(with_headers)), 8, 3), 3 * 2 * (1270 + 500 + 1000 * (8 + 66)));
    // An envelope has headers as well; of its flight the sender's part is credited to the data.
    let eager = echo(&mut two_nodes(2, Some(with_headers)), 999, 1);
    let rendezvous = echo(&mut two_nodes(2, Some(with_headers)), 1000, 1);
    assert_eq!(rendezvous - eager, 2 * (1000 + 500 + 66_000));
}
