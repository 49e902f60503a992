//! The rules of the model, each by a case whose times are worked out by hand.

mod cells;
mod direct;
mod early;
mod fetched;
mod interrupts;
mod networked;
mod packets;
mod shared;
mod watch;
mod whole;

use super::*;
use crate::layer::{Curve, Segment};
use crate::model::{BeyondMessages, Cold, FirstCall, Idle, NetworkModel, NodeModel};
use wiretwin_units::{BitRate, Bytes};

fn flat(ps: u64) -> Curve {
    Curve::constant(Span::from_ps(ps))
}

/// call 10, o_s 110, o_r 60, L 1000: an echo takes 1170 each way.
fn plain_layer() -> Layer {
    Layer {
        call: Span::from_ps(10),
        overhead_send: flat(110),
        overhead_recv: flat(60),
        latency: flat(1000),
        gap: flat(0),
        rendezvous_from: Some(Bytes::new(1000)),
        acknowledged_from: None,
        fetch: None,
        fetch_unchanged: None,
        unexpected_copy: None,
        last_packet: None,
        interrupt: None,
        interrupt_saved: Span::ZERO,
    }
}

fn model(ranks: u32, cores: u32, idle: Idle, intra: Layer) -> Model {
    Model {
        nodes: vec![NodeModel {
            cores,
            cores_of: None,
            idle,
            quantum: Span::from_ps(4000),
            turn: Span::ZERO,
            fair: false,
            offers: false,
            picks_anew: false,
            ticks: None,
        }],
        placement: vec![0; ranks as usize],
        dealt: Vec::new(),
        order: Vec::new(),
        own: None,
        intra,
        inter: None,
        link: None,
        network: None,
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    }
}

/// A network as a user writes it.
fn network(text: &str) -> NetworkModel {
    NetworkModel::new(&wiretwin_plan::NetworkPlan::from_text(text).unwrap()).unwrap()
}

fn world(ranks: u32) -> World {
    World::new(model(ranks, ranks, Idle::Spin, plain_layer()), 1, true)
}

fn anything() -> Pattern {
    Pattern { context: 0, source: None, tag: None }
}

fn from(source: u32, tag: u32) -> Pattern {
    Pattern { context: 0, source: Some(source), tag: Some(tag) }
}

impl World {
    fn enter(&mut self, rank: u32, name: &str) {
        let name = self.name_id(name);
        self.post(rank, Op::Enter { name, site: 7 }).unwrap();
    }

    fn send(&mut self, rank: u32, to: u32, tag: u32, bytes: u64, mode: Mode) -> RequestId {
        self.post(rank, Op::Send { context: 0, to, tag, bytes: Bytes::new(bytes), mode }).unwrap().unwrap()
    }

    fn recv(&mut self, rank: u32, pattern: Pattern) -> RequestId {
        self.post(rank, Op::Recv { pattern, capacity: Bytes::new(1 << 40) }).unwrap().unwrap()
    }

    fn wait(&mut self, rank: u32, requests: &[RequestId], mode: WaitMode) {
        self.post(rank, Op::Wait { requests, mode }).unwrap();
    }

    fn compute(&mut self, rank: u32, ps: u64) {
        self.post(rank, Op::Compute(Span::from_ps(ps))).unwrap();
    }

    fn clock(&self, rank: u32) -> u64 {
        self.rank_now(rank).unwrap().as_ps()
    }

    /// Steps until `rank` is resumed; its completions.
    fn until(&mut self, rank: u32) -> Vec<Completion> {
        for _ in 0..1000 {
            assert!(self.step(), "rank {rank} is never resumed: {:?}", self.blocked());
            let found =
                self.resumed().find(|(resumed, _)| *resumed == rank).map(|(_, outcome)| match outcome {
                    Outcome::Completed(items) => items.to_vec(),
                    _ => Vec::new(),
                });
            if let Some(found) = found {
                return found;
            }
        }
        panic!("rank {rank} is not resumed within 1000 steps");
    }

    fn check_totals(&self) {
        for rank in 0..self.size() {
            let sum: u64 = self.totals(rank).unwrap().iter().map(|span| span.as_ps()).sum();
            assert_eq!(sum, self.clock(rank), "rank {rank}");
        }
    }
}

#[test]
fn a_first_call_takes_what_its_kinds_take_and_later_ones_do_not() {
    let mut model = model(2, 2, Idle::Spin, plain_layer());
    let first = |calls: &[&str], ps| FirstCall {
        calls: calls.iter().map(|&call| call.to_owned()).collect(),
        takes: Span::from_ps(ps),
        at_end: false,
        early_from: None,
    };
    model.first = vec![first(&["bcast", "gather"], 1000), first(&["gather"], 200)];
    let mut world = World::new(model, 1, true);
    let mut enter = |rank, name| {
        world.enter(rank, name);
        world.clock(rank)
    };
    // Each pays 10 for a call; what kinds have in common is paid once a rank, and nothing for others.
    assert_eq!(enter(0, "send"), 10);
    assert_eq!(enter(0, "bcast"), 1020);
    assert_eq!(enter(0, "gather"), 1230);
    assert_eq!(enter(0, "gather"), 1240);
    assert_eq!(enter(1, "gather"), 1210);
    assert_eq!(enter(1, "bcast"), 1220);
    world.check_totals();
}

#[test]
fn a_call_takes_each_time_what_it_takes_beyond_its_messages() {
    let mut model = model(2, 2, Idle::Spin, plain_layer());
    let beyond = |calls: &[&str], ps| BeyondMessages {
        calls: calls.iter().map(|&call| call.to_owned()).collect(),
        takes_ps: ps,
    };
    model.beyond = vec![beyond(&["Bcast", "Ibcast"], 500), beyond(&["recv"], -4), beyond(&["Barrier"], -70)];
    let mut world = World::new(model, 1, true);
    let mut enter = |rank, name| {
        world.enter(rank, name);
        world.clock(rank)
    };
    assert_eq!(enter(0, "send"), 10);
    assert_eq!(enter(0, "Ibcast"), 520);
    assert_eq!(enter(0, "Bcast"), 1030);
    assert_eq!(enter(1, "recv"), 6);
    // Never less than nothing.
    assert_eq!(enter(1, "Barrier"), 6);
    world.check_totals();
}

#[test]
fn a_call_takes_more_the_longer_its_rank_has_computed_since_the_last() {
    let mut model = model(2, 2, Idle::Spin, plain_layer());
    let cold = |after, takes| Cold { after: Span::from_ps(after), takes: Span::from_ps(takes) };
    model.cold = vec![cold(100, 30), cold(300, 50), cold(500, 40)];
    let mut world = World::new(model, 1, true);
    let mut call_after = |computed: &[u64]| {
        for &ps in computed {
            world.post(0, Op::Compute(Span::from_ps(ps))).unwrap();
        }
        let before = world.clock(0);
        world.enter(0, "send");
        world.post(0, Op::Exit).unwrap();
        world.clock(0) - before
    };
    // Every call takes 10.
    assert_eq!(call_after(&[]), 10);
    assert_eq!(call_after(&[50]), 25);
    assert_eq!(call_after(&[60, 40]), 40);
    assert_eq!(call_after(&[200]), 50);
    assert_eq!(call_after(&[400]), 55);
    assert_eq!(call_after(&[u64::from(u32::MAX)]), 50);
    assert_eq!(call_after(&[]), 10);
    world.check_totals();
}

#[test]
fn a_first_receive_pays_once_what_comes_at_its_end_after_its_message() {
    let mut model = model(2, 2, Idle::Spin, plain_layer());
    let takes = Span::from_ps(5000);
    model.first = vec![FirstCall { calls: vec!["recv".into()], takes, at_end: true, early_from: None }];
    let mut world = World::new(model, 1, true);
    let mut receive = |wait_ps| {
        world.post(0, Op::Compute(Span::from_ps(wait_ps))).unwrap();
        world.enter(0, "send");
        let sent = world.send(0, 1, 0, 8, Mode::Standard);
        world.wait(0, &[sent], WaitMode::All);
        world.enter(1, "recv");
        let received = world.recv(1, from(0, 0));
        world.wait(1, &[received], WaitMode::All);
        for _ in 0..2 {
            assert!(world.step());
            for rank in world.resumed().map(|(rank, _)| rank).collect::<Vec<_>>() {
                world.post(rank, Op::Exit).unwrap();
            }
        }
        (world.clock(0), world.clock(1))
    };
    let ((sent, first), (sent_again, later)) = (receive(100_000), receive(100_000));
    assert_eq!(first - sent, later - sent_again + 5000);
}

/// A blocking send or receive, as a client makes it.
fn echo(world: &mut World, bytes: u64, rounds: u64) -> u64 {
    world.enter(0, "Send");
    let first = world.send(0, 1, 0, bytes, Mode::Standard);
    world.wait(0, &[first], WaitMode::All);
    world.enter(1, "Recv");
    let second = world.recv(1, from(0, 0));
    world.wait(1, &[second], WaitMode::All);
    // Per rank: whether it is in its send.
    let mut sending = [true, false];
    let mut done = 0;
    while done < rounds {
        assert!(world.step());
        let resumed: Vec<u32> = world.resumed().map(|(rank, _)| rank).collect();
        for rank in resumed {
            world.post(rank, Op::Exit).unwrap();
            let was_sending = std::mem::replace(&mut sending[rank as usize], false);
            let peer = 1 - rank;
            if was_sending {
                world.enter(rank, "Recv");
                let request = world.recv(rank, from(peer, 0));
                world.wait(rank, &[request], WaitMode::All);
            } else {
                if rank == 0 {
                    done += 1;
                    if done == rounds {
                        continue;
                    }
                }
                sending[rank as usize] = true;
                world.enter(rank, "Send");
                let request = world.send(rank, peer, 0, bytes, Mode::Standard);
                world.wait(rank, &[request], WaitMode::All);
            }
        }
    }
    world.clock(0)
}

#[test]
fn an_echo_takes_both_overheads_and_the_latency_each_way() {
    for (bytes, protocol) in [(8, "eager"), (1000, "rendezvous")] {
        let mut world = world(2);
        assert_eq!(echo(&mut world, bytes, 5), 5 * 2 * 1170, "{protocol}");
        world.check_totals();
    }
}

#[test]
fn a_message_of_a_rank_to_itself_has_a_layer_of_its_own() {
    for (own, takes) in [(None, 110 + 1000 + 60), (Some(10), 10 + 10)] {
        let mut model = model(1, 1, Idle::Spin, plain_layer());
        model.own = own.map(|ps| Layer {
            overhead_send: flat(ps),
            overhead_recv: flat(ps),
            latency: flat(0),
            rendezvous_from: None,
            ..plain_layer()
        });
        let mut world = World::new(model, 1, true);
        world.enter(0, "recv");
        let received = world.recv(0, from(0, 0));
        world.enter(0, "send");
        let sent = world.send(0, 0, 0, 500, Mode::Standard);
        world.wait(0, &[sent, received], WaitMode::All);
        world.until(0);
        // The receive is posted 10 ps before the send begins.
        assert!((takes..=takes + 10).contains(&world.clock(0)), "{own:?}: {}", world.clock(0));
        world.check_totals();
    }
}

#[test]
fn an_echo_is_exact_for_every_shape_of_layer() {
    let line = |base_ps, per_byte_fs| {
        Curve::new(vec![
            Segment { from_bytes: 0, base_ps, per_byte_fs },
            Segment { from_bytes: 4096, base_ps: base_ps + 100, per_byte_fs: per_byte_fs / 2 },
        ])
        .unwrap()
    };
    // The last: both ends work at the same time; a send is still over before its message is in.
    for latency in [line(700, 300), line(0, 0), line(-20, -400)] {
        for rendezvous_from in [None, Some(Bytes::new(0)), Some(Bytes::new(5000))] {
            let layer = Layer {
                call: Span::from_ps(40),
                overhead_send: line(500, 700),
                overhead_recv: line(30, 900),
                latency: latency.clone(),
                gap: line(10, 10),
                rendezvous_from,
                acknowledged_from: None,
                fetch: None,
                fetch_unchanged: None,
                unexpected_copy: Some(flat(1_000_000)),
                last_packet: None,
                interrupt: None,
                interrupt_saved: Span::ZERO,
            };
            for bytes in [0, 1, 100, 4096, 5000, 1 << 20] {
                let expected = u64::try_from(layer.half_round_trip_ps(bytes)).unwrap() * 6;
                let mut world = World::new(model(2, 2, Idle::Spin, layer.clone()), 1, true);
                assert_eq!(echo(&mut world, bytes, 3), expected, "{bytes} bytes, {rendezvous_from:?}");
                world.check_totals();
            }
        }
    }
}

#[test]
fn a_late_receiver_pays_its_overhead_and_the_copy_of_an_unexpected_message() {
    let layer = Layer { unexpected_copy: Some(flat(500)), ..plain_layer() };
    let mut world = World::new(model(2, 2, Idle::Spin, layer), 1, true);
    world.enter(0, "Send");
    let send = world.send(0, 1, 3, 8, Mode::Standard);
    world.wait(0, &[send], WaitMode::All);
    world.until(0);
    assert_eq!(world.clock(0), 110);
    world.compute(1, 5000);
    world.enter(1, "Recv");
    let receive = world.recv(1, anything());
    world.wait(1, &[receive], WaitMode::All);
    let got = world.until(1);
    assert_eq!((got[0].source, got[0].tag, got[0].bytes.get(), got[0].message), (0, 3, 8, send));
    assert_eq!(world.clock(1), 5000 + 10 + 50 + 500);
    let kinds = world.totals(1).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [5000, 560, 0, 0]);
}

#[test]
fn a_posted_receive_whose_message_came_during_compute_pays_no_copy() {
    let layer = Layer { unexpected_copy: Some(flat(500)), ..plain_layer() };
    let mut world = World::new(model(2, 2, Idle::Spin, layer), 1, true);
    let receive = world.recv(1, from(0, 3));
    world.compute(1, 5000);
    world.wait(1, &[receive], WaitMode::All);
    world.send(0, 1, 3, 8, Mode::Standard);
    world.until(1);
    assert_eq!(world.clock(1), 5050);
}

#[test]
fn a_rendezvous_moves_only_while_both_ends_are_inside() {
    // The sender computes between its send and its wait: the transfer waits for it.
    let mut world = world(2);
    let send = world.send(0, 1, 0, 1000, Mode::Standard);
    world.compute(0, 7000);
    world.wait(0, &[send], WaitMode::All);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(1);
    assert_eq!(world.clock(1), 7000 + 1160, "1170 less the sender's call");
    world.check_totals();
    // The receiver posts early, computes, and waits late.
    let mut world = World::new(model(2, 2, Idle::Spin, plain_layer()), 1, true);
    let receive = world.recv(1, from(0, 0));
    world.compute(1, 9000);
    world.wait(1, &[receive], WaitMode::All);
    let send = world.send(0, 1, 0, 1000, Mode::Standard);
    world.wait(0, &[send], WaitMode::All);
    world.until(0);
    assert_eq!(world.clock(0), 9000 + 1160);
    let kinds = world.totals(0).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [0, 100, 1060, 9000], "endpoint, wire, waiting");
    world.check_totals();
}

#[test]
fn a_synchronous_send_completes_with_its_receive_and_a_buffered_one_at_once() {
    let mut world = world(2);
    let send = world.send(0, 1, 0, 8, Mode::Buffered);
    world.wait(0, &[send], WaitMode::All);
    world.until(0);
    assert_eq!(world.clock(0), 100);
    let send = world.send(0, 1, 1, 8, Mode::Synchronous);
    world.wait(0, &[send], WaitMode::All);
    world.compute(1, 50_000);
    let receive = world.recv(1, from(0, 1));
    world.wait(1, &[receive], WaitMode::All);
    world.until(0);
    // 1 takes it in, 50, and says so, 100; that flies, and 0 takes it in.
    assert_eq!([world.clock(1), world.clock(0)], [50_000 + 150, 50_000 + 150 + 1010 + 50]);
    world.check_totals();
}

#[test]
fn arrivals_of_one_sender_keep_their_order_and_the_gap() {
    let latency = Curve::new(vec![
        Segment { from_bytes: 0, base_ps: 1000, per_byte_fs: 0 },
        Segment { from_bytes: 100, base_ps: 50_000, per_byte_fs: 0 },
    ])
    .unwrap();
    let layer = Layer { latency, gap: flat(700), ..plain_layer() };
    let mut world = World::new(model(2, 2, Idle::Spin, layer), 1, true);
    world.send(0, 1, 1, 100, Mode::Standard);
    world.send(0, 1, 2, 8, Mode::Standard);
    let first = world.recv(1, anything());
    let second = world.recv(1, anything());
    world.wait(1, &[second], WaitMode::All);
    let got = world.until(1);
    assert_eq!(got[0].tag, 2, "the slow message was sent first and is matched first");
    // Sent at 100, flies 50 000 + 10; the next arrives the gap later.
    assert_eq!(world.clock(1), 100 + 50_010 + 700 + 50);
    world.wait(1, &[first], WaitMode::Test);
    assert_eq!(world.until(1)[0].tag, 1);
}

#[test]
fn wait_any_returns_the_one_that_came_and_keeps_the_other() {
    let mut world = world(3);
    world.compute(1, 5000);
    world.send(1, 0, 1, 8, Mode::Standard);
    world.compute(2, 2000);
    world.send(2, 0, 2, 8, Mode::Standard);
    let first = world.recv(0, from(1, 1));
    let second = world.recv(0, from(2, 2));
    world.wait(0, &[first, second], WaitMode::Any);
    let got = world.until(0);
    assert_eq!((got.len(), got[0].request, got[0].source), (1, second, 2));
    assert_eq!(world.clock(0), 2000 + 1160);
    let gone = world.post(0, Op::Wait { requests: &[second], mode: WaitMode::All });
    assert_eq!(gone, Err(OpError::NoSuchRequest { request: second }));
    world.wait(0, &[first], WaitMode::Some);
    assert_eq!(world.until(0)[0].source, 1);
    assert_eq!(world.clock(0), 5000 + 1160);
}

#[test]
fn a_probe_sees_what_has_arrived_by_its_own_clock_only() {
    let mut world = world(2);
    world.send(0, 1, 5, 8, Mode::Standard); // arrives at 100 + 1010
    for (until, seen) in [(1109, false), (1110, true)] {
        let now = world.clock(1);
        world.compute(1, until - now);
        world.post(1, Op::ProbeNow(from(0, 5))).unwrap();
        assert!(world.step());
        let outcome = world.resumed().next().unwrap().1;
        match outcome {
            Outcome::Probed(found) => assert_eq!(found.is_some(), seen, "at {until}"),
            other => panic!("{other:?}"),
        }
    }
    world.compute(1, 1);
    let late = world.recv(1, anything());
    world.wait(1, &[late], WaitMode::All);
    assert_eq!(world.until(1).len(), 1, "the probe left it");
}

#[test]
fn a_blocking_probe_waits_for_the_arrival() {
    let mut world = world(2);
    world.post(1, Op::Probe(anything())).unwrap();
    world.compute(0, 4000);
    let send = world.send(0, 1, 5, 8, Mode::Standard);
    assert!(world.step());
    let found = Found { source: 0, tag: 5, bytes: Bytes::new(8), message: send };
    assert_eq!(world.resumed().collect::<Vec<_>>(), [(1, Outcome::Probed(Some(found)))]);
    assert_eq!(world.clock(1), 4000 + 100 + 1010);
    let kinds = world.totals(1).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [0, 0, 1010, 4100]);
}

#[test]
fn a_test_returns_what_is_complete_now_and_leaves_the_rest() {
    let mut world = world(2);
    let receive = world.recv(1, from(0, 5));
    world.send(0, 1, 5, 8, Mode::Standard);
    world.compute(1, 1000);
    world.wait(1, &[receive], WaitMode::Test);
    assert_eq!(world.until(1), []);
    world.compute(1, 200);
    world.wait(1, &[receive], WaitMode::Test);
    assert_eq!(world.until(1).len(), 1);
    assert_eq!(world.clock(1), 1250);
}

#[test]
fn a_cancelled_receive_completes_cancelled_and_its_message_stays() {
    let mut world = world(2);
    let receive = world.recv(1, anything());
    world.compute(1, 500);
    world.post(1, Op::Cancel(receive)).unwrap();
    world.send(0, 1, 5, 8, Mode::Standard);
    world.compute(1, 5000);
    world.wait(1, &[receive], WaitMode::All);
    assert!(world.until(1)[0].cancelled, "cancelled at 500, although the message came before the wait");
    let receive = world.recv(1, anything());
    world.post(1, Op::Cancel(receive)).unwrap();
    world.wait(1, &[receive], WaitMode::All);
    let got = world.until(1);
    assert!(!got[0].cancelled, "matched already");
    assert_eq!(world.counts(), Counts { sent: 1, delivered: 1, held: 0, longest: Bytes::new(8) });
}

#[test]
fn a_message_longer_than_its_buffer_is_truncated_not_lost() {
    let mut world = world(2);
    world.send(0, 1, 5, 8, Mode::Standard);
    let receive = world.post(1, Op::Recv { pattern: anything(), capacity: Bytes::new(7) }).unwrap().unwrap();
    world.wait(1, &[receive], WaitMode::All);
    let got = world.until(1);
    assert!(got[0].truncated);
    assert_eq!(got[0].bytes.get(), 8);
}

#[test]
fn a_deadlock_ends_the_steps_and_says_who_waits_for_what() {
    for idle in [Idle::Spin, Idle::Sleep] {
        for cores in [2, 1] {
            let mut world = World::new(model(2, cores, idle, plain_layer()), 1, true);
            for rank in 0..2 {
                world.enter(rank, "Recv");
                let receive = world.recv(rank, from(1 - rank, 4));
                world.wait(rank, &[receive], WaitMode::All);
            }
            assert!(!world.step());
            assert!(!world.step());
            let blocked = world.blocked();
            assert_eq!(blocked.len(), 2);
            assert_eq!(blocked[1].operation, "receive of a message from rank 0 with tag 4 in context 0",);
            assert_eq!((blocked[1].name.as_str(), blocked[1].site), ("Recv", 7));
        }
    }
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let mut world = world(2);
    let before = (world.digest(), world.counts(), world.requests.len(), world.clock(0));
    let pattern = Pattern { context: 0, source: Some(2), tag: None };
    let send = |to, tag| Op::Send { context: 0, to, tag, bytes: Bytes::new(1), mode: Mode::Standard };
    let cases = [
        (2, Op::Exit, "no rank 2 here: ranks are 0 to 1"),
        (0, send(2, 0), "the peer is rank 2: ranks are 0 to 1"),
        (0, send(1, u32::MAX), "tag 4294967295 is too large: tags are 0 to 2147483647"),
        (0, Op::Recv { pattern, capacity: Bytes::new(1) }, "the peer is rank 2: ranks are 0 to 1"),
        (0, Op::Wait { requests: &[RequestId(9)], mode: WaitMode::All }, "request 9 does not exist"),
        (0, Op::Cancel(RequestId(1 << 32)), "request 4294967296 does not exist"),
        (0, Op::Enter { name: NameId(5), site: 0 }, "name 5 was not given out"),
    ];
    for (rank, op, message) in cases {
        let error = world.post(rank, op).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!((world.digest(), world.counts(), world.requests.len(), world.clock(0)), before);
    let request = world.recv(0, anything());
    let twice = world.post(0, Op::Wait { requests: &[request, request], mode: WaitMode::All });
    assert_eq!(twice, Err(OpError::RequestTwice { request }));
    let stolen = world.post(1, Op::Wait { requests: &[request], mode: WaitMode::All });
    assert_eq!(stolen, Err(OpError::RequestOfAnother { request, rank: 1, owner: 0 }));
    world.wait(0, &[request], WaitMode::All);
    assert_eq!(world.post(0, Op::Exit), Err(OpError::RankSuspended { rank: 0 }));
    world.post(1, Op::Finish).unwrap();
    assert_eq!(world.post(1, Op::Exit), Err(OpError::RankFinished { rank: 1 }));
}

#[test]
fn a_buffered_rendezvous_is_pushed_although_its_sender_has_finished() {
    let mut world = world(2);
    let send = world.send(0, 1, 0, 1000, Mode::Buffered);
    world.wait(0, &[send], WaitMode::All);
    world.until(0);
    world.post(0, Op::Finish).unwrap();
    world.compute(1, 5000);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(1);
    assert_eq!(world.clock(1), 5000 + 1160);
    assert_eq!(world.clock(0), 5100, "the sender was kept until its data were out");
    world.check_totals();
}
