//! The program-level world with 1024 ranks: host time per message, and memory per idle rank.
//!
//! Every rank posts a receive, sends to another rank, computes and waits for both; then again. All
//! posting, matching, protocol, accounting and digesting is in the figure; the timeline is off. The
//! reference is one push and one pop of a plain `BinaryHeap` with 1024 events pending, measured in
//! turns with each workload. One JSON line per workload: `ns` and `reference_ns` are medians over the
//! turns, `ratio` that of the turns' ratios.
//!
//! A steady turn must not allocate: the peak of the allocator may not rise above what was in use when
//! the turn began. The bench fails otherwise.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, Turns};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::World;
use wiretwin_net::layer::{Curve, Layer, Segment};
use wiretwin_net::model::NetworkModel;
use wiretwin_net::model::{Idle, Model, NodeModel};
use wiretwin_net::world::{NameId, Op, RequestId, WaitMode};
use wiretwin_plan::NetworkPlan;
use wiretwin_units::{Bytes, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const RANKS: u32 = 1024;

/// What ranks do.
#[derive(Clone, Copy, PartialEq)]
enum Workload {
    /// To the right neighbour, eager, from the left one by name.
    Ring,
    /// To a rank far away that changes every round, from any source.
    Shuffle,
    /// As the ring, by rendezvous.
    Rendezvous,
    /// As the ring, four ranks to a core.
    Shared,
    /// As the ring, a rank on each host of a three-level fat tree.
    FatTree,
    /// As the shuffle, likewise.
    FatTreeShuffle,
}

impl Workload {
    const ALL: [Self; 6] =
        [Self::Ring, Self::Shuffle, Self::Rendezvous, Self::Shared, Self::FatTree, Self::FatTreeShuffle];

    const fn name(self) -> &'static str {
        match self {
            Self::Ring => "net/1024-ranks ring",
            Self::Shuffle => "net/1024-ranks shuffle any-source",
            Self::Rendezvous => "net/1024-ranks ring rendezvous",
            Self::Shared => "net/1024-ranks ring four-to-a-core",
            Self::FatTree => "net/1024-ranks ring fat-tree",
            Self::FatTreeShuffle => "net/1024-ranks shuffle any-source fat-tree",
        }
    }

    /// The most that a message may take, in nanoseconds on a machine on which a push and a pop of the reference
    /// take 36; what is judged is the ratio.
    const fn target_ns(self) -> u32 {
        match self {
            Self::FatTree => 700,
            _ => 1000,
        }
    }

    const fn is_on_hosts(self) -> bool {
        matches!(self, Self::FatTree | Self::FatTreeShuffle)
    }
}

fn model(ranks: u32, cores: u32) -> Model {
    let curve = |base_ps, per_byte_fs| {
        let segment = |from_bytes, base_ps| Segment { from_bytes, base_ps, per_byte_fs };
        Curve::new(vec![segment(0, base_ps), segment(4096, base_ps + 100_000)]).expect("two segments")
    };
    let intra = Layer {
        call: Span::from_ps(50_000),
        overhead_send: curve(300_000, 50),
        overhead_recv: curve(350_000, 60),
        latency: curve(200_000, 20),
        gap: curve(100_000, 10),
        rendezvous_from: Some(Bytes::new(65_536)),
        acknowledged_from: None,
        fetch: None,
        fetch_unchanged: None,
        unexpected_copy: Some(curve(20_000, 30)),
        last_packet: None,
        interrupt: None,
        interrupt_saved: Span::ZERO,
    };
    Model {
        nodes: vec![NodeModel {
            cores,
            cores_of: None,
            picks_anew: false,
            idle: Idle::Sleep,
            quantum: Span::from_ps(4_000_000_000),
            turn: Span::ZERO,
            fair: false,
            offers: false,
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

/// A rank on each host of a fat tree of 100 Gbit/s.
fn on_hosts(ranks: u32) -> Model {
    let plan =
        NetworkPlan::from_text(&format!("fat-tree:hosts={ranks},levels=3,rate=100Gbit/s,switch_delay=300ns"));
    let network = NetworkModel::new(&plan.expect("a good network")).expect("a good network");
    let one = model(1, 1);
    Model {
        nodes: vec![one.nodes[0].clone(); ranks as usize],
        placement: (0..ranks).collect(),
        dealt: Vec::new(),
        order: Vec::new(),
        inter: Some(one.intra.clone()),
        network: Some(network),
        first: Vec::new(),
        beyond: Vec::new(),
        cold: Vec::new(),
        keeping: Vec::new(),
        ..one
    }
}

struct Bench {
    world: World,
    workload: Workload,
    name: NameId,
    /// Per rank, how many rounds it has begun.
    rounds: Vec<u64>,
    resumed: Vec<u32>,
}

impl Bench {
    fn new(workload: Workload) -> Self {
        let cores = if workload == Workload::Shared { RANKS / 4 } else { RANKS };
        let model = if workload.is_on_hosts() { on_hosts(RANKS) } else { model(RANKS, cores) };
        let mut world = World::new(model, 1, false);
        let name = world.name_id("Sendrecv");
        let mut bench = Self { world, workload, name, rounds: vec![0; RANKS as usize], resumed: Vec::new() };
        for rank in 0..RANKS {
            bench.begin(rank);
        }
        bench
    }

    /// Posts one round of a rank: two requests and a wait.
    fn begin(&mut self, rank: u32) {
        let round = self.rounds[rank as usize];
        self.rounds[rank as usize] += 1;
        let (to, from, bytes) = match self.workload {
            Workload::Ring | Workload::Shared | Workload::FatTree => {
                ((rank + 1) % RANKS, Some((rank + RANKS - 1) % RANKS), 1024)
            }
            Workload::Rendezvous => ((rank + 1) % RANKS, Some((rank + RANKS - 1) % RANKS), 1 << 17),
            Workload::Shuffle | Workload::FatTreeShuffle => {
                (rank ^ (1 + (round * 389 % 1023) as u32), None, 1024)
            }
        };
        let world = &mut self.world;
        let mut post = |op: Op<'_>| world.post(rank, op).expect("a good operation").unwrap_or(RequestId(0));
        post(Op::Enter { name: self.name, site: 1 });
        let pattern = Pattern { context: 0, source: from, tag: Some((round % 1000) as u32) };
        let receive = post(Op::Recv { pattern, capacity: Bytes::new(1 << 20) });
        let tag = (round % 1000) as u32;
        let send = post(Op::Send { context: 0, to, tag, bytes: Bytes::new(bytes), mode: Mode::Standard });
        post(Op::Wait { requests: &[receive, send], mode: WaitMode::All });
    }

    /// Nanoseconds per message over at least so many.
    fn turn(&mut self, messages: u64) -> f64 {
        let before = self.world.counts().delivered;
        let start = Instant::now();
        while self.world.counts().delivered - before < messages {
            assert!(self.world.step(), "the ranks are stuck");
            self.resumed.clear();
            self.resumed.extend(self.world.resumed().map(|(rank, _)| rank));
            for index in 0..self.resumed.len() {
                let rank = self.resumed[index];
                let work = 200_000 + u64::from(rank.wrapping_mul(2_654_435_761) >> 12);
                self.world.post(rank, Op::Exit).expect("a resumed rank may post");
                self.world.post(rank, Op::Compute(Span::from_ps(work))).expect("a resumed rank may post");
                self.begin(rank);
            }
        }
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
        nanoseconds / (self.world.counts().delivered - before) as f64
    }
}

/// Nanoseconds per push and pop of a heap that holds 1024 events.
fn reference(pairs: u64) -> f64 {
    let mut heap: BinaryHeap<Reverse<(u64, u64, u64)>> = BinaryHeap::with_capacity(2048);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 1_000_000
    };
    for sequence in 0..u64::from(RANKS) {
        heap.push(Reverse((draw(), sequence, sequence)));
    }
    let start = Instant::now();
    for sequence in 0..pairs {
        let Some(Reverse((time, _, index))) = heap.pop() else { break };
        heap.push(Reverse((time + draw(), sequence, index)));
    }
    std::hint::black_box(&heap);
    start.elapsed().as_secs_f64() * 1e9 / pairs as f64
}

fn messages(workload: Workload, turns: usize) {
    let mut bench = Bench::new(workload);
    let count = 100_000;
    // To the steady state: every queue and slab as long as it gets, which a rare meeting of ranks decides.
    bench.turn(48 * count);
    let mut measured = Turns::default();
    let mut grown = 0;
    for _ in 0..turns {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let ns = bench.turn(count);
        grown += ALLOCATOR.peak_usage().saturating_sub(before);
        measured.push(ns, reference(count));
    }
    let (ns, pair, ratio) = measured.medians();
    println!(
        r#"{{"bench":"{}","unit":"ns per message","ns":{ns:.0},"target_ratio":{:.1},"target_ns":{},"stretch_ns":400,"reference":"push and pop of a BinaryHeap of 1024","reference_ns":{pair:.1},"ratio":{ratio:.2},"least_ns":{:.0},"allocated_bytes":{grown},"turns":{turns}}}"#,
        workload.name(),
        f64::from(workload.target_ns()) / 36.0,
        workload.target_ns(),
        measured.least().0,
    );
    assert_eq!(grown, 0, "{}: {grown} bytes were allocated in steady turns", workload.name());
}

fn idle_ranks(ranks: u32) {
    let before = ALLOCATOR.current_usage();
    let world = World::new(model(ranks, ranks), 1, false);
    let bytes = (ALLOCATOR.current_usage() - before) as f64 / f64::from(ranks);
    println!(
        r#"{{"bench":"net/idle-ranks {ranks}","unit":"bytes per rank","value":{bytes:.1},"whole_mib":{:.0}}}"#,
        bytes * f64::from(ranks) / 1_048_576.0
    );
    assert_eq!(world.size(), ranks);
}

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(15, 3);
    for workload in Workload::ALL {
        if arguments.wanted(workload.name()) {
            messages(workload, turns);
        }
    }
    if arguments.wanted("net/idle-ranks 1000000") {
        idle_ranks(1_000_000);
    }
}
