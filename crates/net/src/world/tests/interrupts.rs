//! Messages that take their receiver's core, each by a case whose times are worked out by hand.

use super::*;

/// Ranks on hosts with lines that take 1 ps for a short message, and what a message takes of its receiver's core: 300 and 1 a byte.
fn hosts(count: u32) -> World {
    World::new(on_hosts(count), 1, true)
}

fn on_hosts(count: u32) -> Model {
    let alone = model(1, 1, Idle::Yield, plain_layer());
    let interrupt =
        Curve::new(vec![Segment { from_bytes: 0, base_ps: 300, per_byte_fs: 1000 }]).expect("ascends");
    // A byte takes 1 fs on a line, and what is short 1 ps.
    let text = format!("star:hosts={count},rate=8000000Gbit/s,mtu=4048B,headers=0B,framing=0B");
    Model {
        nodes: vec![alone.nodes[0].clone(); count as usize],
        placement: (0..count).collect(),
        inter: Some(Layer { interrupt: Some(interrupt), ..plain_layer() }),
        network: Some(network(&text)),
        ..alone
    }
}

fn send(world: &mut World, rank: u32, to: u32, bytes: u64) {
    world.enter(rank, "Send");
    let send = world.send(rank, to, 0, bytes, Mode::Standard);
    world.wait(rank, &[send], WaitMode::All);
}

fn receive(world: &mut World, rank: u32, source: u32) {
    world.enter(rank, "Recv");
    let receive = world.recv(rank, from(source, 0));
    world.wait(rank, &[receive], WaitMode::All);
}

/// A world of two hosts in which rank 0 has sent `bytes` at once, and rank 1 has received them after computing for
/// `computed`.
fn received(bytes: u64, computed: u64) -> World {
    let mut world = hosts(2);
    send(&mut world, 0, 1, bytes);
    world.compute(1, computed);
    receive(&mut world, 1, 0);
    world.until(1);
    world
}

/// The clock of a rank, all that it has posted being done.
fn reached(world: &mut World, rank: u32) -> u64 {
    world.post(rank, Op::Yield).unwrap();
    world.until(rank);
    world.check_totals();
    world.clock(rank)
}

#[test]
fn a_rank_that_computes_does_so_for_longer_where_a_message_comes() {
    let world = received(8, 5000);
    // The message has come, and the receive takes its call and 50.
    assert_eq!(world.clock(1), 5000 + 308 + 60);
    let kinds = world.totals(1).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds, [5000, 368, 0, 0]);
    world.check_totals();
}

#[test]
fn who_waits_loses_nothing() {
    let world = received(8, 100);
    assert_eq!(world.clock(1), 1172);
}

#[test]
fn an_offer_of_many_bytes_interrupts_as_an_envelope() {
    let world = received(2000, 5000);
    let kinds = world.totals(1).unwrap().map(|span| span.as_ps());
    assert_eq!(kinds[0], 5000);
    // Asked for when the computing has ended, and then all the way, of which 2 ps are the lines'.
    let asked = 5000 + 300 + 10;
    assert!((asked + 1000..=asked + 1200).contains(&world.clock(1)), "{}", world.clock(1));
}

#[test]
fn what_is_sent_after_computing_leaves_later() {
    let mut world = hosts(2);
    world.compute(1, 5000);
    world.compute(1, 1000);
    send(&mut world, 1, 0, 8);
    send(&mut world, 0, 1, 8);
    world.until(0);
    receive(&mut world, 0, 1);
    world.until(1);
    world.until(0);
    assert_eq!(world.clock(0), 6000 + 308 + 1172);
}

#[test]
fn messages_of_one_sender_close_to_each_other_share_an_interrupt() {
    let mut world = hosts(2);
    for _ in 0..2 {
        world.enter(0, "Isend");
        world.send(0, 1, 0, 8, Mode::Standard);
    }
    world.wait(0, &[], WaitMode::All);
    world.compute(1, 5000);
    // They leave 110 apart.
    assert_eq!(reached(&mut world, 1), 5000 + 308 + 110);
}

#[test]
fn messages_of_two_senders_are_worked_on_one_after_the_other() {
    // A kernel that is at work already takes less for the next one, or nothing.
    for (saved, next) in [(0, 308), (200, 108), (1000, 0)] {
        let mut model = on_hosts(3);
        model.inter.as_mut().unwrap().interrupt_saved = Span::from_ps(saved);
        let mut world = World::new(model, 1, true);
        receive(&mut world, 2, 0);
        for rank in 0..2 {
            send(&mut world, rank, 2, 8);
        }
        // They come at the same time.
        world.until(2);
        assert_eq!(world.clock(2), 1172);
        receive(&mut world, 2, 1);
        world.until(2);
        assert_eq!(world.clock(2), 1172 + next.max(60));
    }
}

#[test]
fn what_a_rank_begins_while_the_kernel_works_is_not_late() {
    let mut world = hosts(2);
    // The kernel works from 814 to 1122.
    world.compute(1, 814);
    send(&mut world, 1, 0, 8);
    send(&mut world, 0, 1, 8);
    world.until(0);
    receive(&mut world, 0, 1);
    world.until(1);
    world.until(0);
    assert_eq!(world.clock(0), 814 + 1172);
}

#[test]
fn on_a_core_that_hosts_share_whoever_computes_goes_on_later() {
    for idle in [Idle::Spin, Idle::Yield, Idle::Sleep] {
        let mut model = on_hosts(3);
        model.nodes.iter_mut().for_each(|node| (node.idle, node.quantum) = (idle, Span::from_ps(100_000)));
        model.nodes[2].cores_of = Some(1);
        let mut world = World::new(model, 1, true);
        world.compute(0, 500);
        send(&mut world, 0, 2, 8);
        world.compute(1, 5000);
        receive(&mut world, 2, 0);
        assert_eq!(reached(&mut world, 1), 5000 + 308, "{idle:?}");
        let kinds = world.totals(1).unwrap().map(|span| span.as_ps());
        assert_eq!(kinds, [5000, 308, 0, 0], "{idle:?}");
    }
}

/// Hosts 1 and 2 on one core, whose kernel gives ranks that yield as much of it as those that compute.
fn fair(picks_anew: bool) -> World {
    let mut model = on_hosts(3);
    for node in &mut model.nodes {
        (node.idle, node.quantum, node.turn) = (Idle::Yield, Span::from_ps(100_000), Span::from_ps(10));
        (node.fair, node.picks_anew) = (true, picks_anew);
    }
    model.nodes[2].cores_of = Some(1);
    model.keeping = vec!["Recv".to_owned()];
    World::new(model, 1, true)
}

/// The clocks of ranks 1 and 2 when they are resumed.
fn resumed(world: &mut World) -> [u64; 2] {
    [1, 2].map(|rank| {
        if world.ranks[rank as usize].state != State::Running {
            world.until(rank);
        }
        world.clock(rank)
    })
}

#[test]
fn picked_anew_a_core_goes_to_whom_it_is_owed() {
    let ends = [false, true].map(|picks_anew| {
        let mut world = fair(picks_anew);
        world.compute(0, 500);
        send(&mut world, 0, 2, 8);
        world.compute(1, 5000);
        world.compute(2, 3000);
        for rank in [1, 2] {
            world.post(rank, Op::Yield).unwrap();
        }
        resumed(&mut world)
    });
    let (interrupt, look) = (308, 10);
    let [kept, picked] = ends;
    assert_eq!(kept, [5000 + interrupt, 5000 + interrupt + look + 3000]);
    // The kernel is done at 500 + 1122, when rank 1 has had the core alone.
    assert_eq!(picked, [5000 + interrupt + 3000 + look, 500 + 1122 + 3000]);
}

#[test]
fn picked_anew_a_rank_that_waits_keeps_its_core_no_longer() {
    let [kept, picked] = [false, true].map(|picks_anew| {
        let mut world = fair(picks_anew);
        world.compute(0, 500);
        send(&mut world, 0, 1, 8);
        receive(&mut world, 1, 0);
        world.compute(2, 3000);
        // Rank 1 looks for its message again and again in a call that offers its core to nobody.
        world.post(2, Op::Yield).unwrap();
        resumed(&mut world)
    });
    // Rank 1 takes its message in, and its slice goes on.
    let (comes, taken_in, slice) = (500 + 1122, 50, 100_000);
    assert_eq!(kept, [comes + taken_in, comes + taken_in + slice + 3000]);
    // Rank 2 computes first, and hands the core on.
    assert_eq!(picked, [comes + 3000 + 10 + taken_in, comes + 3000]);
}

#[test]
fn an_echo_takes_what_it_takes_where_nothing_is_interrupted() {
    for bytes in [0, 8, 900, 5000, 100_000] {
        let mut plain = on_hosts(2);
        plain.inter = Some(plain_layer());
        let [alone, interrupted] = [plain, on_hosts(2)].map(|model| {
            let mut world = World::new(model, 1, true);
            for _ in 0..3 {
                for (rank, peer) in [(0, 1), (1, 0)] {
                    send(&mut world, rank, peer, bytes);
                    receive(&mut world, peer, rank);
                    world.until(peer);
                    if world.ranks[rank as usize].state != State::Running {
                        world.until(rank);
                    }
                }
            }
            world.clock(0)
        });
        assert_eq!(alone, interrupted, "{bytes} bytes");
    }
}

#[test]
fn where_nothing_interrupts_ranks_run_ahead() {
    let mut model = on_hosts(2);
    model.inter = Some(plain_layer());
    let mut world = World::new(model, 1, true);
    assert!(!world.is_behind(0));
    world.compute(1, 5000);
    assert_eq!(world.clock(1), 5000);
    assert!(hosts(2).is_behind(0));
}
