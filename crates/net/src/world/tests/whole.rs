//! Whole programs, generated: nothing is lost, every picosecond counted, and a rerun is the same.

use proptest::prelude::*;

use super::*;
use crate::model::LinkModel;
use wiretwin_msg::table::mix;

#[derive(Clone, Debug)]
struct Letter {
    from: u32,
    to: u32,
    tag: u32,
    bytes: u64,
    mode: Mode,
    /// Of the receive: any source, any tag.
    any: (bool, bool),
    /// Compute before the send and before the receive.
    pause: (u64, u64),
}

/// What lies between nodes besides the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    Nothing,
    Link,
    Network,
}

#[derive(Clone, Debug)]
struct Program {
    ranks: u32,
    nodes: u32,
    cores: u32,
    idle: Idle,
    between: Between,
    /// Receivers take rendezvous data by themselves.
    fetches: bool,
    mode: WaitMode,
    /// All times are multiplied by this.
    scale: i64,
    letters: Vec<Letter>,
}

fn letter(ranks: u32) -> impl Strategy<Value = Letter> {
    let mode =
        prop_oneof![3 => Just(Mode::Standard), 1 => Just(Mode::Synchronous), 1 => Just(Mode::Buffered)];
    let bytes = prop_oneof![0u64..2000, Just(999), Just(1000)];
    (0..ranks, 0..ranks, 0u32..3, bytes, mode, (prop::bool::ANY, prop::bool::ANY), (0u64..9000, 0u64..9000))
        .prop_map(|(from, to, tag, bytes, mode, any, pause)| Letter {
            from,
            to,
            tag,
            bytes,
            mode,
            any,
            pause,
        })
}

fn program() -> impl Strategy<Value = Program> {
    (1u32..6, 1u32..3).prop_flat_map(|(ranks, nodes)| {
        let mode = prop_oneof![Just(WaitMode::All), Just(WaitMode::Any), Just(WaitMode::Some)];
        let idle = prop_oneof![Just(Idle::Spin), Just(Idle::Sleep), Just(Idle::Yield)];
        let letters = prop::collection::vec(letter(ranks), 0..24);
        let between = prop_oneof![Just(Between::Nothing), Just(Between::Link), Just(Between::Network)];
        let flags = (between, prop::bool::ANY);
        (1u32..4, idle, flags, mode, letters).prop_map(
            move |(cores, idle, (between, fetches), mode, letters)| Program {
                ranks,
                nodes,
                cores,
                idle,
                between,
                fetches,
                mode,
                scale: 1,
                letters,
            },
        )
    })
}

/// The layer with all times multiplied.
fn slowed(layer: &Layer, scale: i64) -> Layer {
    let slow = |curve: &Curve| {
        let segments = curve.segments().iter().map(|segment| Segment {
            from_bytes: segment.from_bytes,
            base_ps: segment.base_ps * scale,
            per_byte_fs: segment.per_byte_fs * scale,
        });
        Curve::new(segments.collect()).unwrap()
    };
    Layer {
        call: Span::from_ps(layer.call.as_ps() * scale as u64),
        overhead_send: slow(&layer.overhead_send),
        overhead_recv: slow(&layer.overhead_recv),
        latency: slow(&layer.latency),
        gap: slow(&layer.gap),
        rendezvous_from: layer.rendezvous_from,
        acknowledged_from: layer.acknowledged_from,
        fetch: layer.fetch.as_ref().map(slow),
        fetch_unchanged: layer.fetch_unchanged.as_ref().map(slow),
        unexpected_copy: layer.unexpected_copy.as_ref().map(slow),
        last_packet: None,
        interrupt: None,
        interrupt_saved: Span::ZERO,
    }
}

fn build(program: &Program) -> World {
    let slow_start = vec![
        Segment { from_bytes: 0, base_ps: 1000, per_byte_fs: 500 },
        Segment { from_bytes: 900, base_ps: -400, per_byte_fs: 1500 },
    ];
    let intra = Layer {
        latency: Curve::new(slow_start).unwrap(),
        gap: flat(30),
        fetch: program.fetches.then(|| flat(900)),
        unexpected_copy: Some(flat(70)),
        last_packet: None,
        interrupt: None,
        interrupt_saved: Span::ZERO,
        ..plain_layer()
    };
    let intra = slowed(&intra, program.scale);
    let node = NodeModel {
        cores: program.cores,
        cores_of: None,
        idle: program.idle,
        quantum: Span::from_ps(4000),
        turn: Span::from_ps(300),
        fair: false,
        offers: false,
        picks_anew: false,
        ticks: None,
    };
    let model = Model {
        nodes: vec![node; program.nodes as usize],
        placement: (0..program.ranks).map(|rank| rank % program.nodes).collect(),
        dealt: Vec::new(),
        order: Vec::new(),
        inter: Some(Layer { overhead_send: flat(300 * program.scale as u64), ..intra.clone() }),
        own: None,
        intra,
        link: (program.between == Between::Link).then_some(LinkModel {
            rate: BitRate::bit_s(7_000_000_000_000),
            delay: Span::from_ps(333),
            message: Bytes::new(0),
        }),
        network: (program.between == Between::Network)
            .then(|| network("star:hosts=2,rate=7000Gbit/s,delay=333ps,mtu=400B,headers=20B")),
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
    };
    World::new(model, 1, true)
}

/// What a rank does before it waits.
enum Operation {
    Pause(u64),
    Recv(Pattern),
    Send(Letter),
}

/// All receives, then all sends, with pauses between.
fn operations(program: &Program, rank: u32) -> Vec<Operation> {
    let mut list = Vec::new();
    for letter in program.letters.iter().filter(|letter| letter.to == rank) {
        list.push(Operation::Pause(letter.pause.1));
        list.push(Operation::Recv(Pattern {
            context: 0,
            source: (!letter.any.0).then_some(letter.from),
            tag: (!letter.any.1).then_some(letter.tag),
        }));
    }
    for letter in program.letters.iter().filter(|letter| letter.from == rank) {
        list.push(Operation::Pause(letter.pause.0));
        list.push(Operation::Send(letter.clone()));
    }
    list
}

fn perform(world: &mut World, rank: u32, operation: &Operation) -> Option<RequestId> {
    match operation {
        Operation::Pause(ps) => {
            world.compute(rank, *ps);
            None
        }
        Operation::Recv(pattern) => Some(world.recv(rank, *pattern)),
        Operation::Send(letter) => Some(world.send(rank, letter.to, letter.tag, letter.bytes, letter.mode)),
    }
}

/// Runs a program: each rank does its operations, then waits until everything is complete. With
/// `in_step`, a rank posts an operation only when the world has reached its clock, so that none runs
/// ahead of another. Returns the completions of receives by rank, in the order they were reported.
fn drive(program: &Program, in_step: bool) -> (World, Vec<Vec<Completion>>) {
    let mut world = build(program);
    let mut open = vec![Vec::new(); program.ranks as usize];
    let mut waiting = vec![false; program.ranks as usize];
    let mut received = vec![Vec::new(); program.ranks as usize];
    let mut lists = (0..program.ranks).map(|rank| operations(program, rank).into_iter()).collect::<Vec<_>>();
    let mut turn = (0..program.ranks).map(|rank| (rank, Vec::new())).collect::<Vec<_>>();
    for _ in 0..100_000 {
        for (rank, items) in turn {
            let mine: &mut Vec<RequestId> = &mut open[rank as usize];
            for item in items {
                let item: Completion = item;
                mine.retain(|request| *request != item.request);
                if item.request != item.message {
                    received[rank as usize].push(item);
                }
            }
            let list = &mut lists[rank as usize];
            if in_step && let Some(operation) = list.next() {
                mine.extend(perform(&mut world, rank, &operation));
                world.post(rank, Op::Yield).unwrap();
                continue;
            }
            mine.extend(list.filter_map(|operation| perform(&mut world, rank, &operation)));
            if mine.is_empty() && std::mem::replace(&mut waiting[rank as usize], true) {
                world.post(rank, Op::Finish).unwrap();
            } else {
                waiting[rank as usize] = true;
                world.wait(rank, mine, program.mode);
            }
        }
        if !world.step() {
            return (world, received);
        }
        turn = world
            .resumed()
            .map(|(rank, outcome)| match outcome {
                Outcome::Completed(items) => (rank, items.to_vec()),
                _ => (rank, Vec::new()),
            })
            .collect();
    }
    panic!("no end");
}

fn run(program: &Program) -> (World, Vec<Vec<Completion>>) {
    drive(program, false)
}

/// Wildcards can take what an exact receive waits for, so a program with both may leave some waiting.
fn only_exact(program: &Program) -> bool {
    program.letters.iter().all(|letter| letter.any == (false, false))
}

fn check_invariants(world: &World, program: &Program, received: &[Vec<Completion>]) {
    world.check_totals();
    let counts = world.counts();
    assert_eq!(counts.sent, program.letters.len() as u64);
    assert_eq!(counts.sent, counts.delivered + counts.held);
    let reported: usize = received.iter().map(Vec::len).sum();
    assert!(reported as u64 <= counts.delivered);
    if world.blocked().is_empty() {
        assert_eq!(counts.held, 0);
        assert_eq!(reported as u64, counts.delivered);
    }
    let mut clocks = vec![0; program.ranks as usize];
    for interval in world.timeline().unwrap().intervals() {
        let clock = &mut clocks[interval.rank as usize];
        assert_eq!(interval.start_ps, *clock, "rank {}'s timeline leaves no gap", interval.rank);
        *clock = interval.end_ps;
    }
    for (rank, clock) in clocks.into_iter().enumerate() {
        assert_eq!(clock, world.clock(rank as u32));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_message_is_lost_and_every_picosecond_is_counted(program in program()) {
        let (world, received) = run(&program);
        check_invariants(&world, &program, &received);
        if only_exact(&program) {
            prop_assert_eq!(world.blocked(), vec![]);
        }
        let (again, _) = run(&program);
        prop_assert_eq!(again.digest(), world.digest());
    }

    #[test]
    fn ranks_that_run_ahead_see_what_ranks_in_step_see(program in program()) {
        // A core each: only then may a rank run ahead.
        let mut program = Program { cores: program.ranks, scale: 1 << 20, ..program };
        // Events of one instant run in the order in which they were scheduled, which is not the same
        // in both runs. So no two instants may be the same: each pause gets low digits of its own.
        for (index, letter) in program.letters.iter_mut().enumerate() {
            let own = |which: u64| mix(which, index as u64) % (1 << 20);
            letter.pause = ((letter.pause.0 << 20) + own(1), (letter.pause.1 << 20) + own(2));
        }
        let (ahead, got_ahead) = run(&program);
        let (in_step, got_in_step) = drive(&program, true);
        let seen = |got: &[Vec<Completion>]| {
            got.iter()
                .map(|items| items.iter().map(|item| (item.source, item.tag, item.bytes.get())).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        for rank in 0..program.ranks {
            prop_assert_eq!(ahead.totals(rank), in_step.totals(rank));
        }
        prop_assert_eq!(seen(&got_ahead), seen(&got_in_step));
    }

    #[test]
    fn exact_receives_get_their_messages_in_the_order_sent(program in program()) {
        let mut program = program;
        program.letters.iter_mut().for_each(|letter| letter.any = (false, false));
        program.mode = WaitMode::All;
        let (world, received) = run(&program);
        prop_assert_eq!(world.blocked(), vec![]);
        for (rank, items) in received.iter().enumerate() {
            // Receives were posted in the order of the letters, and a wait returns them so.
            let wanted = program.letters.iter().filter(|letter| letter.to == rank as u32);
            let wanted = wanted.map(|letter| (letter.from, letter.tag, letter.bytes)).collect::<Vec<_>>();
            let got = items.iter().map(|item| (item.source, item.tag, item.bytes.get())).collect::<Vec<_>>();
            prop_assert_eq!(got, wanted);
        }
    }

    #[test]
    fn a_wildcard_for_all_takes_every_message_once(program in program()) {
        let mut program = program;
        program.letters.iter_mut().for_each(|letter| letter.any = (true, true));
        let (world, received) = run(&program);
        prop_assert_eq!(world.blocked(), vec![]);
        for (rank, items) in received.iter().enumerate() {
            let wanted = program.letters.iter().filter(|letter| letter.to == rank as u32);
            let mut wanted = wanted.map(|letter| (letter.from, letter.tag, letter.bytes)).collect::<Vec<_>>();
            let mut got = items.iter().map(|item| (item.source, item.tag, item.bytes.get())).collect::<Vec<_>>();
            wanted.sort_unstable();
            got.sort_unstable();
            prop_assert_eq!(got, wanted);
            let mut ids = items.iter().map(|item| item.message).collect::<Vec<_>>();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), items.len());
        }
    }
}

#[test]
fn the_digest_of_a_fixed_program_is_pinned() {
    let letters = (0..40u32)
        .map(|number| Letter {
            from: number % 4,
            to: (number * 7 + 1) % 4,
            tag: number % 3,
            bytes: u64::from(number) * 61,
            mode: if number % 5 == 0 { Mode::Synchronous } else { Mode::Standard },
            any: (true, true),
            pause: (u64::from(number) * 100, 50),
        })
        .collect();
    let program = Program {
        ranks: 4,
        nodes: 2,
        cores: 1,
        idle: Idle::Spin,
        between: Between::Link,
        fetches: false,
        mode: WaitMode::Some,
        scale: 1,
        letters,
    };
    let (world, received) = run(&program);
    check_invariants(&world, &program, &received);
    assert_eq!(world.digest().to_string(), "b58af1cf210164b8775f9d22c4dd7b39");
}
