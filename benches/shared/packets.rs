//! The bare loops that networks of packets are held against: windows, queues and lines, and no TCP.

use std::hint::black_box;
use std::time::Instant;

use crate::events::{Heap, Wheel};

/// Half of a microsecond, in picoseconds.
const DELAY: u64 = 500_000;

/// Nanoseconds per packet-hop of six flows of `window` packets over a dumbbell whose lines are all of 155 Mbit/s
/// and 500 ns, for `milliseconds` of simulated time. Segments of 1448 octets in packets of 1508; every second packet
/// is acknowledged by one of 60. Nothing is lost.
#[must_use]
pub fn bare_dumbbell(window: u32, milliseconds: u64) -> f64 {
    const FLOWS: u32 = 6;
    let end = milliseconds * 1_000_000_000;
    let octets = |octets: u64| octets * 8 * 1_000_000 / 155;
    let spans = [octets(1508), octets(60)];
    // What happens: the flow, the line it is on (0 to 2), and whether it is an acknowledgement.
    let line = |flow: u32, hop: u32, acknowledges: u32| {
        let of_flow = if hop == 1 { 0 } else { 1 + flow * 2 + hop / 2 };
        (acknowledges * (1 + 2 * FLOWS) + of_flow) as usize
    };
    let mut heap = Heap::default();
    let mut free = [0_u64; 2 * (1 + 2 * FLOWS as usize)];
    let (mut received, mut read) = ([0_u64; FLOWS as usize], 0);
    let mut hops = 0_u64;
    // When what is sent now reaches the end of its line, and what happens then.
    let mut sent = |now: u64, flow: u32, hop: u32, acknowledges: u32| {
        let free = &mut free[line(flow, hop, acknowledges)];
        *free = now.max(*free) + spans[acknowledges as usize];
        (*free + DELAY, flow | hop << 4 | acknowledges << 8)
    };
    for flow in 0..FLOWS {
        for _ in 0..window {
            let (time, what) = sent(0, flow, 0, 0);
            heap.push(time, what);
        }
    }
    let start = Instant::now();
    while let Some((now, what)) = heap.first()
        && now < end
    {
        hops += 1;
        let (flow, hop, acknowledges) = (what & 15, what >> 4 & 15, what >> 8);
        if hop < 2 {
            let (time, what) = sent(now, flow, hop + 1, acknowledges);
            heap.replace(time, what);
        } else if acknowledges == 1 {
            let (time, what) = sent(now, flow, 0, 0);
            heap.replace(time, what);
            let (time, what) = sent(now, flow, 0, 0);
            heap.push(time, what);
        } else {
            read += 1;
            received[flow as usize] += 1;
            if received[flow as usize].is_multiple_of(2) {
                let (time, what) = sent(now, flow, 0, 1);
                heap.replace(time, what);
            } else {
                heap.remove();
            }
        }
    }
    black_box(read);
    start.elapsed().as_secs_f64() * 1e9 / hops as f64
}

/// Where each host of a [`TREE_HOSTS`] tree sends to: a permutation by xorshift in which nobody sends to itself.
#[must_use]
pub fn partners() -> Vec<u32> {
    let mut partners = (0..TREE_HOSTS).collect::<Vec<_>>();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    // Sattolo: one cycle through all.
    for at in (1..partners.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        partners.swap(at, (state >> 33) as usize % at);
    }
    partners
}

/// Hosts of the three-level fat tree: 16 pods of 8 edge and 8 aggregation switches, 8 hosts to an edge switch, and
/// 64 switches at the core.
pub const TREE_HOSTS: u32 = 1024;

/// Nanoseconds per packet-hop of a fat tree of 1024 hosts at 100 Gbit/s and 1 us a line, each of which sends to
/// its partner with `window` packets of 4000 octets under way, up the tree as the receiver's number says; every
/// second packet is acknowledged by one of 64. A given simulated time is timed after 100 us that are not;
/// nothing is lost.
///
/// # Panics
/// Where a packet waits longer than the loop's wheel is long: 134 us.
#[must_use]
pub fn bare_tree(window: u32, microseconds: u64) -> f64 {
    const HOP: u64 = 1_000_000;
    // Until then packets spread over the tree, and the wheel grows to its size.
    const WARM_UP: u64 = 100_000_000;
    let end = WARM_UP + microseconds * 1_000_000;
    let spans = [320_000, 5_120];
    let partners = partners();
    let mut senders = vec![0; partners.len()];
    for (from, to) in (0..).zip(&partners) {
        senders[*to as usize] = from;
    }
    let mut free = vec![0_u64; 6 * partners.len()];
    let mut received = vec![0_u32; partners.len()];
    let mut wheel = Wheel::new(11, 1 << 16);
    let mut hops = 0_u64;
    // What happens: the receiver, the level of the line (0 to 2 up, 3 to 5 down), whether it acknowledges.
    let mut send = |wheel: &mut Wheel, now: u64, to: u32, level: u32, acknowledges: u32| {
        let from = if acknowledges == 1 { partners[to as usize] } else { senders[to as usize] };
        let (up, core) = (to % 8, to / 8 % 8);
        let line = match level {
            0 => from,
            1 => from / 8 * 8 + up,
            2 => from / 64 * 64 + up * 8 + core,
            3 => to / 64 * 64 + up * 8 + core,
            4 => to / 8 * 8 + up,
            _ => to,
        };
        let free = &mut free[(level * TREE_HOSTS + line) as usize];
        *free = now.max(*free) + spans[acknowledges as usize];
        wheel.push(*free + HOP, to | level << 10 | acknowledges << 13);
    };
    for to in &partners {
        (0..window).for_each(|_| send(&mut wheel, 0, *to, 0, 0));
    }
    let mut start = None;
    while let Some((now, what)) = wheel.pop()
        && now < end
    {
        if now >= WARM_UP {
            start.get_or_insert_with(Instant::now);
            hops += 1;
        }
        let (to, level, acknowledges) = (what & 1023, what >> 10 & 7, what >> 13);
        let from = if acknowledges == 1 { partners[to as usize] } else { senders[to as usize] };
        if level < 5 {
            // Within a rack or a pod no further up than it takes.
            let next = match level {
                0 if from / 8 == to / 8 => 5,
                1 if from / 64 == to / 64 => 4,
                _ => level + 1,
            };
            send(&mut wheel, now, to, next, acknowledges);
        } else if acknowledges == 1 {
            let partner = partners[to as usize];
            (0..2).for_each(|_| send(&mut wheel, now, partner, 0, 0));
        } else {
            received[to as usize] += 1;
            if received[to as usize].is_multiple_of(2) {
                send(&mut wheel, now, from, 0, 1);
            }
        }
    }
    start.map_or(f64::NAN, |start| start.elapsed().as_secs_f64() * 1e9 / hops as f64)
}
