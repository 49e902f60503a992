//! A compiled program in the simulated world beside the bare world: host time per message.
//!
//! `ring` on 1024 ranks with a core each, one round: 2 x 1023 messages a rank, of which `elements=1` fills one in
//! 1024 and `elements=1024` all with 8 bytes. Ours is the whole run as the command line starts it: ranks as tasks,
//! payloads, additions, and every rank's result held against the reference. The reference of the bench posts the
//! same operations to a world by hand, without payloads and without computing; both worlds must have the
//! same digest in the end, or the bench fails. Left out are the model and the results as text. One JSON line per
//! workload: `ns` and `reference_ns` are medians over the turns, `ratio` that of the turns' ratios.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::collections::BTreeMap;
use std::time::Instant;

use wiretwin_benches::{Arguments, Turns};
use wiretwin_engine::Digest;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::World;
use wiretwin_net::layer::{Curve, Layer, Segment};
use wiretwin_net::model::{Idle, Model, NodeModel};
use wiretwin_net::run::{RunOptions, run};
use wiretwin_net::world::{NameId, Op, RequestId, WaitMode};
use wiretwin_prog::Program;
use wiretwin_prog::ring::{ADD, RingParams};
use wiretwin_units::{Bytes, Span};

const RANKS: u32 = 1024;
const ADD_PS: u64 = 800;

fn model() -> Model {
    let curve = |base_ps, per_byte_fs| {
        Curve::new(vec![Segment { from_bytes: 0, base_ps, per_byte_fs }]).expect("one segment")
    };
    let intra = Layer {
        call: Span::from_ps(20_000),
        overhead_send: curve(60_000, 50),
        overhead_recv: curve(70_000, 60),
        latency: curve(200_000, 20),
        gap: curve(50_000, 10),
        rendezvous_from: Some(Bytes::new(65_536)),
        acknowledged_from: None,
        fetch: None,
        fetch_unchanged: None,
        unexpected_copy: None,
        last_packet: None,
        interrupt: None,
        interrupt_saved: Span::ZERO,
    };
    let node = NodeModel {
        cores: RANKS,
        cores_of: None,
        picks_anew: false,
        idle: Idle::Sleep,
        quantum: Span::from_ps(1 << 32),
        turn: Span::ZERO,
        fair: false,
        offers: false,
        ticks: None,
    };
    Model {
        nodes: vec![node],
        placement: vec![0; RANKS as usize],
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

/// Where a piece of the vector begins does not matter here; only its length does.
fn length(elements: u64, piece: u32) -> u64 {
    elements / u64::from(RANKS) + u64::from(u64::from(piece) < elements % u64::from(RANKS))
}

/// The ring as operations, posted by hand.
struct Bare {
    world: World,
    name: NameId,
    elements: u64,
    /// By rank, the steps that it has begun.
    steps: Vec<u32>,
}

impl Bare {
    const STEPS: u32 = 2 * (RANKS - 1);

    fn post(&mut self, rank: u32, op: Op<'_>) -> RequestId {
        self.world.post(rank, op).expect("a good operation").unwrap_or(RequestId(0))
    }

    /// The pieces that a rank gives and takes in a step, and whether it adds.
    fn pieces(rank: u32, step: u32) -> (u32, u32, bool) {
        let reducing = step < RANKS - 1;
        let first = if reducing { rank } else { rank + 1 };
        let give = (first + RANKS - step % (RANKS - 1)) % RANKS;
        (give, (give + RANKS - 1) % RANKS, reducing)
    }

    fn begin(&mut self, rank: u32) {
        let step = self.steps[rank as usize];
        if step == Self::STEPS {
            self.post(rank, Op::Finish);
            return;
        }
        self.steps[rank as usize] += 1;
        let (give, take, _) = Self::pieces(rank, step);
        let (given, taken) = (8 * length(self.elements, give), 8 * length(self.elements, take));
        self.post(rank, Op::Enter { name: self.name, site: -1 });
        let source = Some((rank + RANKS - 1) % RANKS);
        let pattern = Pattern { context: 0, source, tag: Some(step) };
        let receive = self.post(rank, Op::Recv { pattern, capacity: Bytes::new(taken) });
        let to = (rank + 1) % RANKS;
        let send = Op::Send { context: 0, to, tag: step, bytes: Bytes::new(given), mode: Mode::Standard };
        let send = self.post(rank, send);
        self.post(rank, Op::Wait { requests: &[receive, send], mode: WaitMode::All });
    }

    fn end(&mut self, rank: u32) {
        self.post(rank, Op::Exit);
        let (_, take, reducing) = Self::pieces(rank, self.steps[rank as usize] - 1);
        let added = if reducing { length(self.elements, take) } else { 0 };
        if added > 0 {
            self.post(rank, Op::Compute(Span::from_ps(added * ADD_PS)));
        }
    }

    /// Nanoseconds per message of a whole run, and the world's digest.
    fn run(elements: u64) -> (f64, Digest) {
        let start = Instant::now();
        let mut world = World::new(model(), 1, false);
        // The names that the program's ranks use, in their order.
        let [_, _, name] = ["send", "recv", "exchange"].map(|name| world.name_id(name));
        let mut bare = Self { world, name, elements, steps: vec![0; RANKS as usize] };
        (0..RANKS).for_each(|rank| bare.begin(rank));
        let mut resumed = Vec::new();
        while bare.world.step() {
            resumed.clear();
            resumed.extend(bare.world.resumed().map(|(rank, _)| rank));
            for rank in &resumed {
                bare.end(*rank);
                bare.begin(*rank);
            }
        }
        let ns = start.elapsed().as_secs_f64() * 1e9;
        (ns / bare.world.counts().delivered as f64, bare.world.digest())
    }
}

/// Nanoseconds per message of the program, and the world's digest.
fn program(elements: u64) -> (f64, Digest) {
    let options = RunOptions {
        program: Program::Ring(RingParams { elements, rounds: 1 }),
        costs: BTreeMap::from([(ADD.to_string(), ADD_PS)]),
        fault: None,
    };
    let start = Instant::now();
    let done = run(World::new(model(), 1, false), &options).expect("a ring that ends");
    let ns = start.elapsed().as_secs_f64() * 1e9;
    assert!(done.outcomes.iter().all(|outcome| outcome.verified), "a sum is wrong");
    (ns / done.world.counts().delivered as f64, done.world.digest())
}

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(7, 3);
    for (elements, target) in [(1, 1.3), (1024, 1.6)] {
        let name = format!("net/ring of 1024 ranks, elements={elements}");
        if !arguments.wanted(&name) {
            continue;
        }
        let mut measured = Turns::default();
        for _ in 0..turns {
            let ((ours, digest), (bare, of_bare)) = (program(elements), Bare::run(elements));
            assert_eq!(digest, of_bare, "both worlds see the same messages at the same times");
            measured.push(ours, bare);
        }
        let (ns, bare, ratio) = measured.medians();
        println!(
            r#"{{"bench":"{name}","unit":"ns per message","ns":{ns:.0},"reference":"the bare world","reference_ns":{bare:.0},"ratio":{ratio:.3},"target_ratio":{target},"turns":{turns}}}"#
        );
    }
}
