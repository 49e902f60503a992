//! The same runs on one worker and on many: equal digests, run by run, in the order of the runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use wiretwin_engine::{
    DEFAULT_SEED, Digest, Executor, Handle, Schedule, Stream, TaskId, Trace, TraceDigest, TraceEvent,
    TraceRecorder,
};
use wiretwin_units::{BitRate, Bytes, Span, Transmitter};

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

const RANKS: u32 = 16;
const ROUNDS: u32 = 20;
const SENT: u32 = 1;
const ARRIVED: u32 = 2;

/// A small world: ranks that send each other messages of random size over one shared line.
struct World<T> {
    schedule: Schedule,
    line: Transmitter,
    trace: T,
    /// Messages that have arrived, by receiver, and who waits.
    mailboxes: Vec<VecDeque<u64>>,
    waiting: Vec<Option<TaskId>>,
    /// Receiver and size by the event's index.
    in_flight: Vec<(u32, u64)>,
}

impl<T: Trace> World<T> {
    fn send(&mut self, from: u32, to: u32, bytes: u64) {
        let now = self.schedule.now();
        self.trace.record(TraceEvent { time: now, kind: SENT, a: u64::from(from), b: bytes });
        let sent = self.line.send(now, Bytes::new(bytes).bits()).unwrap();
        self.schedule.at(sent.end + Span::from_us(1), self.in_flight.len() as u64).unwrap();
        self.in_flight.push((to, bytes));
    }
}

async fn receive<T: Trace>(world: &RefCell<World<T>>, handle: &Handle, rank: u32) -> u64 {
    std::future::poll_fn(|_| {
        let mut world = world.borrow_mut();
        match world.mailboxes[rank as usize].pop_front() {
            Some(bytes) => std::task::Poll::Ready(bytes),
            None => {
                world.waiting[rank as usize] = Some(handle.current());
                std::task::Poll::Pending
            }
        }
    })
    .await
}

/// Runs the world of one seed to its end.
fn run<T: Trace + 'static>(seed: u64, trace: T) -> T {
    let world = Rc::new(RefCell::new(World {
        schedule: Schedule::new(),
        line: Transmitter::new(BitRate::bit_s(155_520_000)),
        trace,
        mailboxes: vec![VecDeque::new(); RANKS as usize],
        waiting: vec![None; RANKS as usize],
        in_flight: Vec::new(),
    }));
    let mut executor: Executor = Executor::new();
    let checked = Rc::new(Cell::new(0_u64));
    for rank in 0..RANKS {
        let (world, handle, checked) = (Rc::clone(&world), executor.handle(), Rc::clone(&checked));
        let mut sizes = Stream::derive(seed, &format!("rank {rank}/sizes"));
        executor.spawn(Box::pin(async move {
            for _ in 0..ROUNDS {
                let bytes = sizes.within(1..=9_000);
                world.borrow_mut().send(rank, (rank + 1) % RANKS, bytes);
                let received = receive(&world, &handle, rank).await;
                checked.set(checked.get() + received);
            }
        }));
    }
    loop {
        executor.run_ready();
        let mut world = world.borrow_mut();
        let Some(event) = world.schedule.next() else { break };
        let (to, bytes) = world.in_flight[event.what as usize];
        world.trace.record(TraceEvent { time: event.time, kind: ARRIVED, a: u64::from(to), b: bytes });
        world.mailboxes[to as usize].push_back(bytes);
        if let Some(task) = world.waiting[to as usize].take() {
            executor.wake(task);
        }
    }
    assert_eq!(executor.unfinished(), 0);
    drop(executor);
    let world = Rc::into_inner(world).expect("the tasks, which shared it, are gone").into_inner();
    assert_eq!(checked.get(), world.in_flight.iter().map(|&(_, bytes)| bytes).sum::<u64>());
    world.trace
}

/// Runs all seeds on so many threads and returns their digests in the order of the seeds.
#[allow(clippy::disallowed_methods)] // a sweep is many runs, each of which is one thread
fn sweep(seeds: &[u64], workers: usize) -> Vec<Digest> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&seed) = seeds.get(nth) else { break };
                    let digest = run(seed, TraceDigest::new());
                    assert_eq!(digest.events(), u64::from(2 * RANKS * ROUNDS));
                    sender.send((nth, digest.value())).expect("the sweep waits for all its runs");
                }
            });
        }
    });
    drop(sender);
    let mut results: Vec<(usize, Digest)> = receiver.iter().collect();
    results.sort_by_key(|&(nth, _)| nth);
    results.into_iter().map(|(_, digest)| digest).collect()
}

#[test]
fn one_worker_and_four_find_the_same_digests() {
    let seeds: Vec<u64> = (DEFAULT_SEED..DEFAULT_SEED + 40).collect();
    let one = sweep(&seeds, 1);
    assert_eq!(one.len(), seeds.len());
    assert_eq!(sweep(&seeds, 4), one);
    let distinct: std::collections::BTreeSet<String> = one.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), seeds.len(), "another seed is another run");
}

#[test]
fn a_run_has_the_digest_that_was_written_down() {
    let recorded = run(DEFAULT_SEED, TraceRecorder::new());
    assert_eq!(recorded.events().len(), 2 * (RANKS * ROUNDS) as usize);
    assert_eq!(recorded.digest().to_string(), "02566d9ac870539f51e59733d11e864d");
}

#[test]
fn where_two_runs_part_is_reported() {
    let (a, b) = (run(DEFAULT_SEED, TraceRecorder::new()), run(DEFAULT_SEED + 1, TraceRecorder::new()));
    assert_eq!(a.first_difference(&run(DEFAULT_SEED, TraceRecorder::new())), None);
    let difference = a.first_difference(&b).expect("sizes differ between seeds");
    // Both begin with rank 0 sending at time zero, one size or another.
    assert_eq!(difference.index, 0);
    assert!(difference.to_string().contains("at 0 ps: kind 1, a 0, b "), "{difference}");
}
