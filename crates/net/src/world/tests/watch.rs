//! Ranks that wait for requests and messages at once, and requests that are let go of.

use super::*;

#[test]
fn a_watch_ends_with_the_message_or_the_request_that_comes_first() {
    let mut world = world(3);
    let request = world.recv(0, from(1, 0));
    world.post(0, Op::Watch { requests: &[request], pattern: from(2, 5) }).unwrap();
    world.compute(1, 10_000);
    world.send(1, 0, 0, 8, Mode::Standard);
    world.send(2, 0, 5, 8, Mode::Standard);
    assert_eq!(world.until(0), []);
    // Sent by 110, there at 1110; nothing has been taken in.
    assert_eq!(world.clock(0), 1110);
    world.post(0, Op::Watch { requests: &[request], pattern: from(2, 6) }).unwrap();
    assert_eq!(world.until(0).len(), 1);
    // The call that a receive is made in is none here: 10 of its 60 are that.
    assert_eq!(world.clock(0), 10_000 + 1160);
    world.check_totals();
}

#[test]
fn a_watch_that_nothing_ends_names_both_things_that_it_waits_for() {
    let mut world = world(2);
    let request = world.recv(0, from(1, 0));
    world.post(0, Op::Watch { requests: &[request], pattern: from(1, 5) }).unwrap();
    assert!(!world.step());
    let blocked = world.blocked();
    assert_eq!(blocked.len(), 1);
    assert!(blocked[0].operation.contains("with tag 5"), "{}", blocked[0].operation);
    assert!(blocked[0].operation.contains("with tag 0"), "{}", blocked[0].operation);
}

#[test]
fn a_send_that_is_let_go_of_arrives_and_its_place_is_used_again() {
    for bytes in [8, 5000] {
        let mut world = world(2);
        for _ in 0..10 {
            let send = world.send(0, 1, 0, bytes, Mode::Standard);
            world.let_go(0, send).unwrap();
            world.post(0, Op::Yield).unwrap();
            let request = world.recv(1, from(0, 0));
            world.wait(1, &[request], WaitMode::All);
            world.until(0);
            if bytes > 1000 {
                // Its data move while it is inside the library.
                let own = world.recv(0, from(1, 9));
                world.wait(0, &[own], WaitMode::All);
                assert_eq!(world.until(1).len(), 1);
                world.send(1, 0, 9, 0, Mode::Standard);
                world.until(0);
            } else {
                assert_eq!(world.until(1).len(), 1);
            }
        }
        assert!(world.requests.len() < 20, "{} requests", world.requests.len());
    }
}

#[test]
fn a_rank_that_is_roused_goes_on_with_nothing_and_is_not_disturbed_later() {
    for cores in [2, 1] {
        for idle in [Idle::Spin, Idle::Sleep, Idle::Yield] {
            let mut world = World::new(model(2, cores, idle, plain_layer()), 1, true);
            let (own, other) = (world.recv(0, from(1, 0)), world.recv(1, from(0, 0)));
            world.post(0, Op::Watch { requests: &[own], pattern: from(1, 5) }).unwrap();
            world.wait(1, &[other], WaitMode::Some);
            for round in 0..3 {
                assert!(!world.step(), "{cores} cores, {idle:?}, round {round}");
                let before = world.clock(0);
                world.rouse(0);
                assert_eq!(world.until(0), [], "{cores} cores, {idle:?}, round {round}");
                assert!(world.clock(0) >= before);
                world.post(0, Op::Watch { requests: &[own], pattern: from(1, 5) }).unwrap();
            }
            assert!(!world.step());
            world.rouse(0);
            assert_eq!(world.until(0), []);
            world.send(0, 1, 0, 8, Mode::Standard);
            world.wait(0, &[own], WaitMode::Some);
            assert_eq!(world.until(1).len(), 1, "{cores} cores, {idle:?}");
            world.send(1, 0, 0, 8, Mode::Standard);
            world.post(1, Op::Yield).unwrap();
            assert_eq!(world.until(0).len(), 1, "{cores} cores, {idle:?}");
            world.check_totals();
        }
    }
}
