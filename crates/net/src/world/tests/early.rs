//! What the first message takes that comes before its receive, while its receiver is in the library.

use super::*;

const TAKES: u64 = 70_000;
/// For so long the core of a receiver is at work on a message that has come; a send takes 100.
const INTERRUPT: u64 = 120;

fn two_hosts() -> World {
    let mut model = model(2, 1, Idle::Spin, plain_layer());
    model.nodes.push(model.nodes[0].clone());
    let inter = Layer { interrupt: Some(flat(INTERRUPT)), ..plain_layer() };
    (model.placement, model.inter) = (vec![0, 1], Some(inter));
    let first = |calls: &[&str], from, ps| FirstCall {
        calls: calls.iter().map(|&call| call.to_owned()).collect(),
        takes: Span::from_ps(ps),
        at_end: false,
        early_from: Some(Bytes::new(from)),
    };
    model.first = vec![first(&["recv"], 100, TAKES), first(&["recv"], 500, 5 * TAKES)];
    World::new(model, 1, true)
}

/// When rank 1 has a message of 8 bytes, and one of `bytes` that was sent `pause` behind it; `ask` says in which order
/// it posts both receives and waits for them.
fn behind_a_short_one(world: &mut World, bytes: u64, pause: u64, ask: fn(&mut World)) -> u64 {
    let before = world.clock(1);
    world.compute(0, 10_000);
    world.send(0, 1, 1, 8, Mode::Standard);
    world.compute(0, pause);
    world.send(0, 1, 2, bytes, Mode::Standard);
    world.enter(1, "Recv");
    ask(world);
    world.post(1, Op::Exit).unwrap();
    world.check_totals();
    world.clock(1) - before
}

fn one_by_one(world: &mut World) {
    for tag in [1, 2] {
        let receive = world.recv(1, from(0, tag));
        world.wait(1, &[receive], WaitMode::All);
        world.until(1);
    }
}

fn both_at_once(world: &mut World) {
    let receives = [world.recv(1, from(0, 1)), world.recv(1, from(0, 2))];
    world.wait(1, &receives, WaitMode::All);
    world.until(1);
}

#[test]
fn one_right_behind_another_is_read_with_it_and_kept_and_takes_that_once() {
    let mut world = two_hosts();
    let [short, first, later, long, longer] =
        [8, 100, 200, 500, 600].map(|bytes| behind_a_short_one(&mut world, bytes, 0, one_by_one));
    assert_eq!([first - TAKES, later, long - 5 * TAKES, longer], [short; 4]);
    // Who gets the long one first pays for both.
    let mut world = two_hosts();
    assert_eq!(behind_a_short_one(&mut world, 900, 0, one_by_one), short + 6 * TAKES);
}

#[test]
fn none_is_early_whose_receive_was_posted_before() {
    let mut world = two_hosts();
    let first = behind_a_short_one(&mut world, 600, 0, both_at_once);
    assert_eq!(behind_a_short_one(&mut world, 600, 0, both_at_once), first);
}

#[test]
fn none_is_early_that_comes_when_the_one_before_it_has_been_taken_in() {
    let mut world = two_hosts();
    let first = behind_a_short_one(&mut world, 600, 50, one_by_one);
    assert_eq!(behind_a_short_one(&mut world, 600, 50, one_by_one), first);
}

#[test]
fn none_is_early_whose_receiver_was_away_until_it_asked_for_it() {
    let mut world = two_hosts();
    let mut receive = || {
        world.send(0, 1, 2, 600, Mode::Standard);
        world.compute(1, 50_000);
        let before = world.clock(1);
        let receive = world.recv(1, from(0, 2));
        world.wait(1, &[receive], WaitMode::All);
        world.until(1);
        world.clock(1) - before
    };
    assert_eq!([receive(), receive()], [50; 2]);
}

#[test]
fn one_that_comes_while_its_receiver_waits_for_another_is_early() {
    let mut world = two_hosts();
    world.send(0, 1, 2, 100, Mode::Standard);
    world.compute(0, 10_000);
    world.send(0, 1, 1, 8, Mode::Standard);
    let waited = world.recv(1, from(0, 1));
    world.wait(1, &[waited], WaitMode::All);
    world.until(1);
    let before = world.clock(1);
    let early = world.recv(1, from(0, 2));
    world.wait(1, &[early], WaitMode::All);
    world.until(1);
    assert_eq!(world.clock(1) - before, 50 + TAKES);
    world.check_totals();
}

#[test]
fn a_call_that_looks_before_it_receives_takes_any_message_so() {
    let mut world = two_hosts();
    let mut receive = |name| {
        world.enter(1, name);
        let receive = world.recv(1, from(0, 1));
        world.wait(1, &[receive], WaitMode::All);
        world.compute(0, 1000);
        let sent = world.clock(0);
        world.send(0, 1, 1, 100, Mode::Standard);
        world.until(1);
        world.post(1, Op::Exit).unwrap();
        world.clock(1) - sent
    };
    let expected = receive("Recv");
    assert_eq!([receive("recv") - TAKES, receive("recv")], [expected; 2]);
}
