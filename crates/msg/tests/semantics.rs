//! MPI's semantics, `tests/conformance/mpi.txt`, held by every policy of our machine.
//!
//! Packets between two ranks keep their order; what is done next, of all that could be, is drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wiretwin_msg::library::Request;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::mpi::{
    Done, Event, Failure, Incoming, Machine, Misuse, Outgoing, Packet, Policy, Received, Transmit,
};
use wiretwin_msg::protocol::Mode;
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};

const SCRIPT: &str = include_str!("../../../tests/conformance/mpi.txt");
const RANKS: u32 = 3;
const NOW: SimTime = SimTime::ZERO;
/// Short for every library, and long for every library.
const SHORT: u64 = 100;
const LONG: u64 = 200_000;
/// Orders in which each case is run with each policy.
const ORDERS: u64 = 8;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

fn policies() -> Vec<Policy> {
    let small = Policy { name: "a small window", window: Some(Bytes::new(3 * SHORT)), ..Policy::general() };
    let sent = Policy { data: wiretwin_msg::mpi::Data::Sent, ..small.clone() };
    vec![
        Policy::lam(Bytes::kib(64)),
        Policy::lam(Bytes::kib(128)),
        Policy::mpich(),
        Policy::mvich(),
        Policy::general(),
        small,
        sent,
    ]
}

struct Line<'a> {
    verb: &'a str,
    name: &'a str,
    words: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split_whitespace();
        let verb = parts.next().expect("a verb");
        let (mut name, mut words) = ("", BTreeMap::new());
        for part in parts {
            match part.split_once('=') {
                Some((key, value)) => drop(words.insert(key, value)),
                None if part == "truncated" => drop(words.insert(part, "yes")),
                None => name = part,
            }
        }
        Self { verb, name, words }
    }

    fn number(&self, key: &str) -> u64 {
        let text = self.words[key];
        let (times, unit) = match text.strip_suffix(['S', 'L']) {
            Some("") => (1, &text[text.len() - 1..]),
            Some(times) => (times.parse().expect("a number"), &text[text.len() - 1..]),
            None => return text.parse().expect("a number"),
        };
        times * if unit == "S" { SHORT } else { LONG }
    }

    fn filter(&self, key: &str) -> Option<u32> {
        (self.words[key] != "any").then(|| self.number(key) as u32)
    }

    fn pattern(&self) -> Pattern {
        Pattern { context: 0, source: self.filter("from"), tag: self.filter("tag") }
    }
}

/// The script's cases: name, and the lines of each rank.
fn cases() -> Vec<(&'static str, [Vec<Line<'static>>; RANKS as usize])> {
    let mut cases: Vec<(_, [Vec<_>; RANKS as usize])> = Vec::new();
    for line in SCRIPT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(name) = line.strip_prefix("case ") {
            cases.push((name, Default::default()));
            continue;
        }
        let (who, what) = line.split_once(": ").expect("a rank and what it does");
        let (_, ranks) = cases.last_mut().expect("a case first");
        for (rank, lines) in ranks.iter_mut().enumerate() {
            if who == "ALL" || who == rank.to_string() {
                lines.push(Line::parse(what));
            }
        }
    }
    cases
}

struct Rank {
    machine: Machine,
    at: usize,
    next: u64,
    names: BTreeMap<String, Request>,
    done: BTreeMap<Request, Done>,
    flood: Vec<Request>,
    in_barrier: bool,
}

struct World {
    ranks: Vec<Rank>,
    /// By sender and receiver.
    wires: Vec<VecDeque<Packet>>,
    received: BTreeSet<u64>,
    barrier: u32,
}

impl World {
    fn new(policy: &Policy) -> Self {
        let rank = |rank| Rank {
            machine: Machine::new(rank, RANKS, policy.clone()),
            at: 0,
            next: u64::from(rank) << 32 | 1,
            names: BTreeMap::new(),
            done: BTreeMap::new(),
            flood: Vec::new(),
            in_barrier: false,
        };
        Self {
            ranks: (0..RANKS).map(rank).collect(),
            wires: (0..RANKS * RANKS).map(|_| VecDeque::new()).collect(),
            received: BTreeSet::new(),
            barrier: 0,
        }
    }

    /// Carries out what a rank's machine asks for.
    fn drain(&mut self, rank: usize) {
        loop {
            let one = &mut self.ranks[rank];
            match one.machine.poll_output() {
                Output::Work(_) => {}
                Output::Transmit(Transmit::Packet { to, packet }) => {
                    assert_ne!(to as usize, rank, "a message to itself needs no transport");
                    if packet.body.is_some() {
                        one.machine.handle_sent(NOW, packet.send);
                    }
                    self.wires[rank * RANKS as usize + to as usize].push_back(packet);
                }
                Output::Transmit(Transmit::Fetch { body, receive, .. }) => {
                    one.machine.handle_fetched(NOW, receive, body);
                }
                Output::Deliver(done) => {
                    let request = match done {
                        Done::Sent(request) | Done::Failed { request, .. } => request,
                        Done::Cancelled { request, .. } => request,
                        Done::Received(Received { request, bytes, body, truncated, .. }) => {
                            let body = body.expect("data come with every message");
                            assert!(self.received.insert(body.message.0), "a message came twice");
                            assert_eq!(body.length < bytes, truncated, "as much as fits");
                            request
                        }
                    };
                    let before = one.done.insert(request, done);
                    assert!(before.is_none_or(|done| matches!(done, Done::Cancelled { done: false, .. })));
                }
                Output::Event(Event::Unexpected { .. }) => {}
                Output::Event(garbage @ Event::Garbage { .. }) => panic!("{garbage:?}"),
                Output::Timeout(_) => return,
            }
        }
    }

    /// The rank's next line, if it can be done now.
    fn step(&mut self, rank: usize, line: &Line<'_>) -> bool {
        let one = &mut self.ranks[rank];
        let send = |one: &mut Rank, bytes: u64, mode: Mode| {
            let request = Request(one.next);
            one.next += 1;
            let (to, tag) = (line.number("to") as u32, line.number("tag") as u32);
            let outgoing = Outgoing { to, context: 0, tag, bytes: Bytes::new(bytes), mode, buffer: 0 };
            one.machine.send(NOW, request, outgoing).expect("it is admitted");
            request
        };
        match line.verb {
            "isend" => {
                let mode = Mode::from_name(line.words.get("mode").unwrap_or(&"standard")).expect("a mode");
                let request = send(one, line.number("bytes"), mode);
                one.names.insert(line.name.into(), request);
            }
            "flood" => {
                for _ in 0..line.number("count") {
                    let request = send(one, line.number("bytes"), Mode::Standard);
                    one.flood.push(request);
                }
            }
            "irecv" => {
                let request = Request(one.next);
                one.next += 1;
                let capacity = Bytes::new(line.number("bytes"));
                let incoming = Incoming { pattern: line.pattern(), capacity, buffer: 0 };
                one.machine.receive(NOW, request, incoming).expect("it is admitted");
                one.names.insert(line.name.into(), request);
            }
            "drain" => {
                // One receive after the other; the line is done when all are.
                let open = one.names.get("drain").copied();
                match open.map(|request| one.done.remove(&request)) {
                    Some(None) => return false,
                    Some(Some(Done::Received(received))) => {
                        assert_eq!(received.bytes.get(), line.number("bytes"));
                        // They come in the order in which they were sent.
                        let message = received.body.expect("data").message.0;
                        let last = one.names.insert("last".into(), Request(message));
                        assert!(last.is_none_or(|last| last.0 >> 32 != message >> 32 || last.0 < message));
                        one.names.remove("drain");
                        let count = one.names.entry("count".into()).or_insert(Request(0));
                        count.0 += 1;
                        if count.0 == line.number("count") {
                            count.0 = 0;
                            return true;
                        }
                        return false;
                    }
                    Some(Some(other)) => panic!("{other:?}"),
                    None => {
                        let request = Request(one.next);
                        one.next += 1;
                        let capacity = Bytes::new(line.number("bytes"));
                        let incoming = Incoming { pattern: line.pattern(), capacity, buffer: 0 };
                        one.machine.receive(NOW, request, incoming).expect("it is admitted");
                        one.names.insert("drain".into(), request);
                        self.drain(rank);
                        return false;
                    }
                }
            }
            "settle" => return one.flood.iter().all(|request| one.done.contains_key(request)),
            "wait" => {
                let Some(done) = one.done.get(&one.names[line.name]) else { return false };
                check(done, line);
            }
            "test" => {
                let done = one.done.contains_key(&one.names[line.name]);
                assert_eq!(done, line.words["done"] == "yes", "test {}", line.name);
            }
            "probe" => {
                let Some(found) = one.machine.probe(&line.pattern()) else { return false };
                assert_eq!(u64::from(found.envelope.source), line.number("source"));
                assert_eq!(u64::from(found.envelope.tag), line.number("tag_is"));
                assert_eq!(found.bytes.get(), line.number("bytes"));
            }
            "iprobe" => assert_eq!(one.machine.probe(&line.pattern()), None, "iprobe"),
            "cancel" => one.machine.cancel(NOW, one.names[line.name]),
            "attach" => one.machine.attach(Bytes::new(line.number("bytes"))),
            "barrier" => {
                if !one.in_barrier {
                    one.in_barrier = true;
                    self.barrier += 1;
                }
                return false;
            }
            other => panic!("no verb {other:?}"),
        }
        self.drain(rank);
        true
    }
}

fn check(done: &Done, line: &Line<'_>) {
    if let Some(cancelled) = line.words.get("cancelled") {
        assert!(matches!(done, Done::Cancelled { done, .. } if *done == (*cancelled == "yes")), "{done:?}");
        return;
    }
    match done {
        Done::Sent(_) => {}
        Done::Received(received) => {
            assert_eq!(received.truncated, line.words.contains_key("truncated"), "{received:?}");
            for (key, found) in [
                ("source", u64::from(received.envelope.source)),
                ("tag", u64::from(received.envelope.tag)),
                ("bytes", received.bytes.get()),
            ] {
                if line.words.contains_key(key) {
                    assert_eq!(found, line.number(key), "{key} of {}", line.name);
                }
            }
        }
        other => panic!("{}: {other:?}", line.name),
    }
}

fn run(policy: &Policy, name: &str, lines: &[Vec<Line<'_>>], seed: u64) -> World {
    let mut world = World::new(policy);
    let mut random = Random(seed);
    let mut idle = 0;
    loop {
        if world.barrier == RANKS {
            world.barrier = 0;
            for one in &mut world.ranks {
                one.in_barrier = false;
                one.at += 1;
            }
        }
        let ended = |world: &World| (0..RANKS as usize).all(|rank| world.ranks[rank].at == lines[rank].len());
        if ended(&world) && world.wires.iter().all(VecDeque::is_empty) {
            break;
        }
        let choice = random.below(RANKS as usize * (RANKS as usize + 1));
        let moved = if choice < RANKS as usize {
            let at = world.ranks[choice].at;
            let before = world.ranks[choice].names.len();
            match lines[choice].get(at) {
                Some(line) if world.step(choice, line) => {
                    world.ranks[choice].at += 1;
                    true
                }
                _ => before != world.ranks[choice].names.len(),
            }
        } else {
            let wire = choice - RANKS as usize;
            let (from, to) = (wire / RANKS as usize, wire % RANKS as usize);
            match world.wires[wire].pop_front() {
                Some(packet) => {
                    world.ranks[to].machine.handle_packet(NOW, from as u32, packet);
                    world.drain(to);
                    true
                }
                None => false,
            }
        };
        idle = if moved { 0 } else { idle + 1 };
        assert!(idle < 2_000, "{}: {name}: nothing goes on (order {seed})", policy.name);
    }
    for (rank, one) in world.ranks.iter().enumerate() {
        assert_eq!(one.machine.open(), 0, "{}: {name}: rank {rank} has open requests", policy.name);
    }
    world
}

#[test]
fn every_policy_has_the_semantics_of_mpi() {
    let cases = cases();
    assert!(cases.len() >= 17, "the script is read: {}", cases.len());
    for policy in policies() {
        for (name, lines) in &cases {
            for order in 0..ORDERS {
                run(&policy, name, lines, order);
            }
        }
    }
}

#[test]
fn what_is_kept_for_nobody_is_bounded_where_there_is_a_window() {
    let cases = cases();
    let (name, lines) = cases.iter().find(|(name, _)| name.contains("flood")).expect("the flood");
    for policy in policies() {
        let world = run(&policy, name, lines, 1);
        let (_, most) = world.ranks[2].machine.kept();
        match policy.window {
            Some(window) => assert!(most <= window + window, "{}: {most} of two senders", policy.name),
            // Even where buffers are counted: what is copied out of them is not.
            None => assert!(most.get() > 200 * SHORT, "{}: {most}", policy.name),
        }
    }
}

#[test]
fn a_flood_of_messages_without_data_is_bounded_where_there_is_a_window() {
    const MANY: u64 = 40_000;
    for policy in policies().into_iter().filter(|policy| policy.window.is_some()) {
        let mut world = pair(&policy);
        for number in 1..=MANY {
            world.ranks[0].machine.send(NOW, Request(number), to_one(0, Mode::Standard)).expect("sent");
            world.drain(0);
        }
        let told = world.ranks[0].done.len() as u64;
        let window = policy.window.expect("it has one").get();
        assert!(told <= window / 32, "{}: {told} are sent and nobody waits for them", policy.name);
        // All of them are there when they are asked for.
        carry(&mut world);
        for number in 1..=MANY {
            world.ranks[1].machine.receive(NOW, Request(MANY + number), FROM_ZERO).expect("posted");
            world.drain(1);
            carry(&mut world);
        }
        assert_eq!(world.ranks[0].machine.open() + world.ranks[1].machine.open(), 0, "{}", policy.name);
        assert_eq!(world.ranks[1].done.len() as u64, MANY);
    }
}

/// Two ranks with nothing between them but what the test carries.
fn pair(policy: &Policy) -> World {
    World::new(policy)
}

fn carry(world: &mut World) {
    loop {
        let Some(wire) = world.wires.iter().position(|wire| !wire.is_empty()) else { return };
        let packet = world.wires[wire].pop_front().expect("it is not empty");
        let (from, to) = (wire / RANKS as usize, wire % RANKS as usize);
        world.ranks[to].machine.handle_packet(NOW, from as u32, packet);
        world.drain(to);
    }
}

const fn to_one(bytes: u64, mode: Mode) -> Outgoing {
    Outgoing { to: 1, context: 0, tag: 1, bytes: Bytes::new(bytes), mode, buffer: 0 }
}

const FROM_ZERO: Incoming = Incoming {
    pattern: Pattern { context: 0, source: Some(0), tag: Some(1) },
    capacity: Bytes::new(u64::MAX),
    buffer: 0,
};

#[test]
fn two_gibibytes_are_a_length() {
    for policy in policies() {
        let mut world = pair(&policy);
        world.ranks[1].machine.receive(NOW, Request(9), FROM_ZERO).expect("posted");
        world.ranks[0].machine.send(NOW, Request(1), to_one(2 << 30, Mode::Standard)).expect("sent");
        world.drain(0);
        carry(&mut world);
        let Some(Done::Received(received)) = world.ranks[1].done.get(&Request(9)) else {
            panic!("{}", policy.name)
        };
        assert_eq!(received.bytes.get(), 2 << 30);
        assert_eq!(received.body.map(|body| body.length), Some(Bytes::new(2 << 30)));
    }
}

#[test]
fn a_send_whose_data_have_not_gone_is_taken_back() {
    for policy in policies() {
        let mut world = pair(&policy);
        world.ranks[0].machine.send(NOW, Request(1), to_one(LONG, Mode::Standard)).expect("sent");
        world.drain(0);
        carry(&mut world);
        world.ranks[0].machine.cancel(NOW, Request(1));
        world.drain(0);
        carry(&mut world);
        let cancelled = Done::Cancelled { request: Request(1), done: true };
        assert_eq!(world.ranks[0].done.get(&Request(1)), Some(&cancelled), "{}", policy.name);
        assert_eq!(world.ranks[1].machine.probe(&FROM_ZERO.pattern), None, "nobody sees it any more");
        // The next is not it.
        world.ranks[0].machine.send(NOW, Request(2), to_one(7, Mode::Standard)).expect("sent");
        world.drain(0);
        carry(&mut world);
        world.ranks[1].machine.receive(NOW, Request(9), FROM_ZERO).expect("posted");
        world.drain(1);
        let Some(Done::Received(received)) = world.ranks[1].done.get(&Request(9)) else {
            panic!("it is there")
        };
        assert_eq!(received.bytes.get(), 7);
        assert_eq!(world.ranks[0].machine.open() + world.ranks[1].machine.open(), 0);
    }
}

#[test]
fn what_is_taken_back_leaves_nothing_behind() {
    for policy in policies() {
        let mut world = pair(&policy);
        let to_nobody = Outgoing { tag: 2, ..to_one(LONG, Mode::Standard) };
        world.ranks[0].machine.send(NOW, Request(1), to_nobody).expect("sent");
        for number in 2..50 {
            world.ranks[0].machine.send(NOW, Request(number), to_nobody).expect("sent");
            world.ranks[0].machine.cancel(NOW, Request(number));
            world.drain(0);
            carry(&mut world);
        }
        assert_eq!(world.ranks[1].machine.unexpected(), 1, "{}: what was not taken back", policy.name);
    }
}

#[test]
fn peers_that_are_set_differently_are_refused_by_name() {
    let mut world = pair(&Policy::lam(Bytes::kib(64)));
    let theirs = Policy::lam(Bytes::kib(128)).terms();
    let machine = &mut world.ranks[0].machine;
    machine.handle_terms(NOW, 2, &Policy::lam(Bytes::kib(64)).terms());
    machine
        .receive(
            NOW,
            Request(5),
            Incoming { pattern: Pattern { source: Some(1), ..FROM_ZERO.pattern }, ..FROM_ZERO },
        )
        .expect("posted");
    machine.handle_terms(NOW, 1, &theirs);
    machine.send(NOW, Request(1), to_one(4, Mode::Standard)).expect("taken, and failed");
    machine.send(NOW, Request(2), Outgoing { to: 2, ..to_one(4, Mode::Standard) }).expect("the other goes");
    world.drain(0);
    for request in [5, 1] {
        let Some(Done::Failed { failure: Failure::Mismatch { rank: 1, mismatch }, .. }) =
            world.ranks[0].done.get(&Request(request))
        else {
            panic!("{:?}", world.ranks[0].done)
        };
        assert_eq!(mismatch.to_string(), "the peer has another rendezvous threshold");
    }
    assert_eq!(world.ranks[0].done.get(&Request(2)), Some(&Done::Sent(Request(2))));
}

#[test]
fn misuse_is_named_and_changes_nothing() {
    let mut world = pair(&Policy::general());
    let machine = &mut world.ranks[0].machine;
    let nobody = Outgoing { to: 3, ..to_one(1, Mode::Standard) };
    assert_eq!(machine.send(NOW, Request(1), nobody), Err(Misuse::NoSuchRank { rank: 3, size: 3 }));
    let source = Pattern { source: Some(7), ..FROM_ZERO.pattern };
    let refused = machine.receive(NOW, Request(1), Incoming { pattern: source, ..FROM_ZERO });
    assert_eq!(refused, Err(Misuse::NoSuchRank { rank: 7, size: 3 }));
    machine.attach(Bytes::new(10));
    let refused = machine.send(NOW, Request(1), to_one(11, Mode::Buffered));
    assert_eq!(refused, Err(Misuse::NoBuffer { needed: Bytes::new(11), left: Bytes::new(10) }));
    machine.receive(NOW, Request(1), FROM_ZERO).expect("posted");
    let refused = machine.send(NOW, Request(1), to_one(1, Mode::Standard));
    assert_eq!(refused, Err(Misuse::RequestInUse(Request(1))));
    assert_eq!(machine.open(), 1);
    world.drain(0);
    assert!(world.wires.iter().all(VecDeque::is_empty));
}

#[test]
fn what_hangs_on_a_lost_peer_fails_and_the_rest_goes_on() {
    for policy in policies() {
        let mut world = pair(&policy);
        let machine = &mut world.ranks[0].machine;
        let from_one = Pattern { source: Some(1), ..FROM_ZERO.pattern };
        let anyone = Pattern { source: None, ..FROM_ZERO.pattern };
        machine.receive(NOW, Request(1), Incoming { pattern: from_one, ..FROM_ZERO }).expect("posted");
        machine.receive(NOW, Request(2), Incoming { pattern: anyone, ..FROM_ZERO }).expect("posted");
        machine.send(NOW, Request(3), to_one(LONG, Mode::Standard)).expect("sent");
        machine.handle_lost(NOW, 1);
        machine.send(NOW, Request(4), to_one(1, Mode::Standard)).expect("taken, and failed");
        world.drain(0);
        let lost =
            |request| Done::Failed { request: Request(request), failure: Failure::PeerLost { rank: 1 } };
        for request in [1, 3, 4] {
            assert_eq!(world.ranks[0].done.get(&Request(request)), Some(&lost(request)), "{}", policy.name);
        }
        let again = Outgoing { to: 0, ..to_one(5, Mode::Standard) };
        let third = &mut world.ranks[2].machine;
        third.send(NOW, Request(7), again).expect("sent");
        world.drain(2);
        carry(&mut world);
        assert!(matches!(world.ranks[0].done.get(&Request(2)), Some(Done::Received(_))), "from another");
    }
}

#[test]
fn a_receive_from_any_source_fails_when_nobody_is_left_to_send() {
    for policy in policies() {
        let mut world = pair(&policy);
        let machine = &mut world.ranks[0].machine;
        let pattern = Pattern { source: None, ..FROM_ZERO.pattern };
        let anyone = Incoming { pattern, ..FROM_ZERO };
        machine.receive(NOW, Request(1), anyone).expect("posted");
        machine.handle_lost(NOW, 2);
        machine.receive(NOW, Request(2), anyone).expect("posted");
        assert_eq!(machine.open(), 2, "{}: rank 1 may still send", policy.name);
        machine.handle_lost(NOW, 1);
        machine.receive(NOW, Request(3), anyone).expect("taken, and failed");
        assert_eq!(machine.open(), 0, "{}", policy.name);
        world.drain(0);
        for request in [1, 2, 3].map(Request) {
            let failed = Done::Failed { request, failure: Failure::PeerLost { rank: 1 } };
            assert_eq!(world.ranks[0].done.get(&request), Some(&failed), "{}", policy.name);
        }
    }
}

#[test]
fn an_eager_message_of_a_peer_that_went_may_be_taken_and_a_rendezvous_may_not() {
    for policy in policies() {
        for source in [Some(0), None] {
            let mut world = pair(&policy);
            let pattern = Pattern { source, tag: None, ..FROM_ZERO.pattern };
            let incoming = Incoming { pattern, capacity: Bytes::new(LONG), ..FROM_ZERO };
            let sender = &mut world.ranks[0].machine;
            sender.send(NOW, Request(1), to_one(LONG, Mode::Standard)).expect("sent");
            sender.send(NOW, Request(2), to_one(1, Mode::Standard)).expect("sent");
            world.drain(0);
            carry(&mut world);
            let receiver = &mut world.ranks[1].machine;
            receiver.handle_lost(NOW, 0);
            receiver.handle_lost(NOW, 2);
            receiver.receive(NOW, Request(8), incoming).expect("posted");
            receiver.receive(NOW, Request(9), incoming).expect("taken, and failed");
            assert_eq!((receiver.open(), receiver.kept().0), (0, Bytes::new(0)), "{}", policy.name);
            world.drain(1);
            let done = &world.ranks[1].done;
            let Some(Done::Received(received)) = done.get(&Request(8)) else {
                panic!("{}: {:?}", policy.name, done.get(&Request(8)))
            };
            assert_eq!(received.bytes, Bytes::new(1), "{}: the short one has come", policy.name);
            let rank = if source.is_some() { 0 } else { 2 };
            let failed = Done::Failed { request: Request(9), failure: Failure::PeerLost { rank } };
            assert_eq!(done.get(&Request(9)), Some(&failed), "{}", policy.name);
        }
    }
}

#[test]
fn a_buffered_send_to_a_peer_that_went_gives_its_memory_back_and_a_cancelled_one_its_answer() {
    for policy in policies() {
        let mut world = pair(&policy);
        let machine = &mut world.ranks[0].machine;
        machine.attach(Bytes::new(LONG));
        machine.send(NOW, Request(1), to_one(LONG, Mode::Buffered)).expect("it fits");
        machine.send(NOW, Request(2), to_one(LONG, Mode::Standard)).expect("sent");
        machine.cancel(NOW, Request(2));
        machine.handle_lost(NOW, 1);
        let other = Outgoing { to: 2, ..to_one(LONG, Mode::Buffered) };
        machine.send(NOW, Request(3), other).expect("the memory is free again");
        let told: Vec<_> = core::iter::from_fn(|| match machine.poll_output() {
            Output::Timeout(_) => None,
            output => Some(output),
        })
        .filter_map(|output| match output {
            Output::Deliver(done @ (Done::Cancelled { .. } | Done::Failed { .. })) => Some(done),
            _ => None,
        })
        .collect();
        let (request, failure) = (Request(2), Failure::PeerLost { rank: 1 });
        let both = [Done::Cancelled { request, done: false }, Done::Failed { request, failure }];
        assert_eq!(told, both, "{}", policy.name);
    }
}
