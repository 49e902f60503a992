//! Rendezvous data that receivers take from their sender's memory.

use super::*;

/// The plain layer, whose receivers fetch in 2010, `call` included; an envelope flies 1010.
fn fetching() -> World {
    let layer = Layer { fetch: Some(flat(2010)), ..plain_layer() };
    World::new(model(2, 2, Idle::Spin, layer), 1, true)
}

fn kinds(world: &World, rank: u32) -> [u64; 4] {
    world.totals(rank).unwrap().map(|span| span.as_ps())
}

#[test]
fn a_receiver_fetches_while_its_sender_computes() {
    let mut world = fetching();
    let send = world.send(0, 1, 0, 1000, Mode::Standard);
    world.compute(0, 7000);
    world.wait(0, &[send], WaitMode::All);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(1);
    assert_eq!(world.clock(1), 100 + 1010 + 2000);
    world.until(0);
    assert_eq!(world.clock(0), 7100 + 50, "the word came long before, and is taken in when the sender looks");
    assert_eq!(kinds(&world, 0), [7000, 150, 0, 0]);
    world.check_totals();
}

#[test]
fn what_was_sent_before_and_is_as_it_was_is_fetched_sooner() {
    let layer = Layer { fetch_unchanged: Some(flat(610)), fetch: Some(flat(2010)), ..plain_layer() };
    for (mode, fetched) in [(Mode::Standard, 2000), (Mode::Unchanged, 600)] {
        let mut world = World::new(model(2, 2, Idle::Spin, layer.clone()), 1, true);
        let send = world.send(0, 1, 0, 1000, mode);
        world.wait(0, &[send], WaitMode::All);
        let receive = world.recv(1, from(0, 0));
        world.wait(1, &[receive], WaitMode::All);
        world.until(1);
        assert_eq!(world.clock(1), 100 + 1010 + fetched);
        world.check_totals();
    }
}

#[test]
fn a_sender_that_waits_completes_when_the_receivers_word_has_come() {
    let mut world = fetching();
    let send = world.send(0, 1, 0, 1000, Mode::Standard);
    world.wait(0, &[send], WaitMode::All);
    world.compute(1, 9000);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(0);
    assert_eq!(world.clock(1), 9000 + 2000, "the envelope waits; all is the receiver's work");
    assert_eq!(world.clock(0), 9000 + 2000 + 1010 + 50);
    assert_eq!(kinds(&world, 0), [0, 150, 1010, 10_900], "endpoint, wire, waiting");
    world.check_totals();
}

#[test]
fn both_ranks_of_an_exchange_fetch_at_once() {
    let mut world = fetching();
    for rank in [0, 1] {
        let send = world.send(rank, 1 - rank, 0, 1000, Mode::Standard);
        let receive = world.recv(rank, from(1 - rank, 0));
        world.wait(rank, &[send, receive], WaitMode::All);
    }
    world.until(1);
    assert_eq!([world.clock(0), world.clock(1)], [100 + 1010 + 2000 + 1010 + 50; 2]);
    assert_eq!(world.counts(), Counts { sent: 2, delivered: 2, held: 0, longest: Bytes::new(1000) });
    world.check_totals();
}

#[test]
fn a_short_message_is_not_fetched_even_if_its_sender_is_to_be_told() {
    let mut world = fetching();
    assert_eq!(echo(&mut world, 8, 5), 5 * 2 * 1170);
    let mut world = fetching();
    let send = world.send(0, 1, 0, 8, Mode::Synchronous);
    world.wait(0, &[send], WaitMode::All);
    let receive = world.recv(1, from(0, 0));
    world.wait(1, &[receive], WaitMode::All);
    world.until(0);
    assert_eq!([world.clock(1), world.clock(0)], [1160 + 100, 1160 + 100 + 1010 + 50]);
}

#[test]
fn data_that_a_link_carries_are_pushed() {
    let layer = Layer { fetch: Some(flat(2010)), ..plain_layer() };
    let node = NodeModel {
        cores: 1,
        cores_of: None,
        idle: Idle::Spin,
        quantum: Span::from_ps(4000),
        turn: Span::ZERO,
        fair: false,
        offers: false,
        picks_anew: false,
        ticks: None,
    };
    let link = crate::model::LinkModel {
        rate: BitRate::bit_s(8_000_000_000_000),
        delay: Span::from_ps(0),
        message: Bytes::new(0),
    };
    let model = |link| Model {
        nodes: vec![node.clone(), node.clone()],
        placement: vec![0, 1],
        dealt: Vec::new(),
        order: Vec::new(),
        own: None,
        intra: layer.clone(),
        inter: Some(layer.clone()),
        link,
        network: None,
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    };
    let clocks = [None, Some(link)].map(|link| {
        let mut world = World::new(model(link), 1, true);
        let send = world.send(0, 1, 0, 1000, Mode::Standard);
        world.compute(0, 50_000);
        world.wait(0, &[send], WaitMode::All);
        let receive = world.recv(1, from(0, 0));
        world.wait(1, &[receive], WaitMode::All);
        world.until(1);
        world.clock(1)
    });
    assert_eq!(clocks[0], 100 + 1010 + 2000);
    assert!(clocks[1] > 50_000, "the sender had to be there: {}", clocks[1]);
}
