//! Rank programs on the executor: what an idle rank takes in memory, and what waking one costs.
//!
//! The programs wait for messages in a mailbox, as ranks of a simulated world do. JSON lines as those
//! of the hold bench; the reference for a wake is a bare loop that polls the same futures in turn.
#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, Turns, median};
use wiretwin_engine::{Executor, Handle, TaskId, Trace, TraceDigest, TraceEvent};
use wiretwin_units::SimTime;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Mailboxes of one word, and a count of what was read.
struct World {
    boxes: RefCell<Vec<u64>>,
    read: Cell<u64>,
}

async fn receive(world: &World, rank: u32) -> u64 {
    std::future::poll_fn(|_| match std::mem::take(&mut world.boxes.borrow_mut()[rank as usize]) {
        0 => Poll::Pending,
        message => Poll::Ready(message),
    })
    .await
}

/// A rank that receives for ever and holds a little state over each wait.
fn rank(world: Rc<World>, number: u32) -> Pin<Box<impl Future<Output = ()>>> {
    Box::pin(async move {
        let mut sum = 0_u64;
        loop {
            sum = sum.wrapping_add(receive(&world, number).await);
            world.read.set(sum);
        }
    })
}

fn world(ranks: u32) -> Rc<World> {
    Rc::new(World { boxes: RefCell::new(vec![0; ranks as usize]), read: Cell::new(0) })
}

/// Bytes that a program and its place in the executor take once it waits.
fn idle(ranks: u32) {
    let world = world(ranks);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut executor = Executor::with_capacity(ranks as usize);
    for number in 0..ranks {
        executor.spawn(rank(Rc::clone(&world), number));
        // As a driver starts ranks: each runs to its first wait before the next is made.
        executor.run_ready();
    }
    let peak = (ALLOCATOR.peak_usage() - before) as f64 / f64::from(ranks);
    let future = {
        let one = rank(Rc::clone(&world), 0);
        size_of_val(&*one) as f64
    };
    assert_eq!(executor.unfinished(), ranks as usize);
    println!(
        r#"{{"bench":"engine/idle ranks {ranks}","unit":"bytes per idle rank, at the peak","value":{peak:.1},"reference":"the future alone","reference_value":{future:.1},"ratio":{:.3}}}"#,
        peak / future
    );
}

/// Nanoseconds from a message to its rank waiting again, for ranks in no particular order.
fn wake(ranks: u32, turns: usize) {
    let (ours, bare) = (world(ranks), world(ranks));
    let mut executor = Executor::with_capacity(ranks as usize);
    let mut futures = Vec::new();
    for number in 0..ranks {
        executor.spawn(rank(Rc::clone(&ours), number));
        futures.push(rank(Rc::clone(&bare), number));
    }
    executor.run_ready();
    let handle: Handle = executor.handle();
    // Each rank once a round, a stride prime to their number apart.
    let order: Vec<u32> =
        (0..ranks).map(|nth| (u64::from(nth) * 611_953 % u64::from(ranks)) as u32).collect();
    let rounds = (1_000_000 / ranks).max(1);
    let messages = f64::from(rounds) * f64::from(ranks);
    let mut measured = Turns::default();
    for _ in 0..turns {
        let start = Instant::now();
        for _ in 0..rounds {
            for &to in &order {
                ours.boxes.borrow_mut()[to as usize] = 1;
                handle.wake(TaskId::new(to));
                executor.run_ready();
            }
        }
        let a = start.elapsed().as_secs_f64() / messages * 1e9;
        let start = Instant::now();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..rounds {
            for &to in &order {
                bare.boxes.borrow_mut()[to as usize] = 1;
                assert!(futures[to as usize].as_mut().poll(&mut context).is_pending());
            }
        }
        let b = start.elapsed().as_secs_f64() / messages * 1e9;
        assert_eq!(ours.read.get(), bare.read.get());
        measured.push(a, b);
    }
    let (ns, bare, ratio) = measured.medians();
    println!(
        r#"{{"bench":"engine/wake {ranks}","unit":"ns per wake and poll","ns":{ns:.1},"reference":"bare polls","reference_ns":{bare:.1},"ratio":{ratio:.3},"turns":{turns}}}"#,
    );
}

/// Nanoseconds to put one event into the digest.
fn digest(turns: usize) {
    const EVENTS: u64 = 1_000_000;
    let mut times = Vec::new();
    for _ in 0..turns {
        let mut digest = TraceDigest::new();
        let start = Instant::now();
        for nth in 0..EVENTS {
            let event =
                TraceEvent { time: SimTime::from_ps(nth * 1_000), kind: nth as u32 % 7, a: nth, b: nth ^ 5 };
            digest.record(event);
        }
        times.push(start.elapsed().as_secs_f64() / EVENTS as f64 * 1e9);
        assert_eq!(digest.events(), EVENTS);
        std::hint::black_box(digest.value());
    }
    println!(
        r#"{{"bench":"engine/trace digest","unit":"ns per event","ns":{:.1},"turns":{turns}}}"#,
        median(&mut times)
    );
}

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(11, 3);
    if arguments.wanted("idle ranks 1000000") {
        idle(1_000_000);
    }
    for ranks in [1_024, 1_000_000] {
        if arguments.wanted(&format!("wake {ranks}")) {
            wake(ranks, turns);
        }
    }
    if arguments.wanted("trace digest") {
        digest(turns);
    }
}
