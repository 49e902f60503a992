//! Who waits on a core that another wants.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;

/// How often this thread has slept, and how often another ran while it could have.
fn switches() -> [i64; 2] {
    // SAFETY: plain numbers, all of which may be zero, in a place that lives until the call is over.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    [usage.ru_nvcsw, usage.ru_nivcsw]
}

/// Has an endpoint wait on a core that another thread wants until `until` holds of this thread's switches. Between two
/// questions a loop of `work` turns is done. Returns the switches and both endpoints.
fn wait_beside_another(ways: Ways, work: u64, until: impl Fn([i64; 2]) -> bool) -> ([i64; 2], [Endpoint; 2]) {
    let mut ends = pair(ways);
    let there = ends[1].address();
    let peer = ends[0].peer(there);
    let all = sched_getaffinity(None).expect("the cores of this thread");
    let core = (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core)).expect("a core");
    let mut one = CpuSet::new();
    one.set(core);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sched_setaffinity(None, &one).expect("a core of this thread");
            while !stop.load(Ordering::Relaxed) {
                black_box(());
            }
        });
        sched_setaffinity(None, &one).expect("a core of this thread");
        let (start, begun) = (Instant::now(), switches());
        let seen = loop {
            let seen = [0, 1].map(|at| switches()[at] - begun[at]);
            if until(seen) || start.elapsed() > LIMIT {
                break seen;
            }
            for _ in 0..1000 {
                (0..work).for_each(|at| {
                    black_box(at);
                });
                ends[0].progress();
                ends[0].give_way();
            }
        };
        stop.store(true, Ordering::Relaxed);
        sched_setaffinity(None, &all).expect("the cores of this thread");
        assert_eq!(ends[0].address_of(peer), Some(there));
        (seen, ends)
    })
}

#[test]
fn on_a_core_that_another_wants_it_sleeps_and_is_woken_by_what_comes() {
    let ([slept, _], mut ends) = wait_beside_another(Ways::Datagrams, 0, |[slept, _]| slept >= 20);
    assert!(slept >= 20, "slept {slept} times");
    let mut buffer = [0; 8];
    // SAFETY: the buffer outlives the completion, which is waited for; without a context, the bytes of a message are
    // needed during the call alone.
    unsafe {
        ends[0].receive(any(5), into(&mut buffer, 7));
        let there = ends[0].address();
        let to = ends[1].peer(there);
        ends[1].send(to, outgoing(&[3; 8], 5, None)).expect("room");
    }
    let start = Instant::now();
    while ends[0].completion().is_none() {
        assert!(start.elapsed() < LIMIT);
        ends[1].progress();
        // Longer than the test may take: it ends because something comes.
        ends[0].nap(2 * LIMIT);
    }
    assert_eq!(buffer, [3; 8]);
}

#[test]
fn who_is_reached_through_memory_or_works_between_two_questions_does_not_sleep() {
    for (ways, work) in [(Ways::SharedMemory, 0), (Ways::Datagrams, 20_000)] {
        let ([slept, others], _) = wait_beside_another(ways, work, |[_, others]| others >= 50);
        assert!(others >= 50, "{ways:?}: another ran {others} times");
        assert!(slept < 5, "{ways:?}: slept {slept} times");
    }
}
