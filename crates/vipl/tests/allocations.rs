//! Nothing is allocated for a message, by any thread: allocations are counted.

mod ends;

use std::alloc::System;
use std::sync::Barrier;

use ends::{End, LARGE, Nic};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use vipl::VipSendDone;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Round trips, the first half of them to grow what grows.
const ROUNDS: usize = 400;
/// Octets of a message, within its receive; of an RDMA write through the ring, and of one that the other end fetches.
const SHORT: u32 = 8;
const WRITES: [u32; 2] = [4 << 10, 256 << 10];

fn round(end: &mut End, first: bool) {
    for turn in [first, !first] {
        if turn {
            for length in WRITES {
                end.send(1, length);
                end.look(VipSendDone);
            }
            end.send(0, SHORT);
            end.look(VipSendDone);
        } else {
            end.wait();
            end.post_receive();
        }
    }
}

/// One test, for the allocator is one for all.
#[test]
fn a_message_is_not_allocated_for() {
    assert!(WRITES.into_iter().all(|length| length as usize <= LARGE));
    let network = format!("a{}", std::process::id());
    let nics = [Nic::open(&network), Nic::open(&network)];
    let half = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut end = End::connect(&nics[1], 1, 0, 4);
            (0..ROUNDS / 2).for_each(|_| round(&mut end, false));
            half.wait();
            half.wait();
            (0..ROUNDS / 2).for_each(|_| round(&mut end, false));
            half.wait();
            half.wait();
        });
        let mut end = End::connect(&nics[0], 0, 1, 4);
        (0..ROUNDS / 2).for_each(|_| round(&mut end, true));
        half.wait();
        let region = Region::new(ALLOCATOR);
        half.wait();
        (0..ROUNDS / 2).for_each(|_| round(&mut end, true));
        half.wait();
        let change = region.change();
        half.wait();
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{ROUNDS} round trips");
        other.join().expect("the other end");
    });
    nics.iter().for_each(Nic::close);
}
