//! The bare loops that switches of cells are held against.

use std::hint::black_box;
use std::time::Instant;

use crate::events::Wheel;

/// Nanoseconds per cell of a loop over 16 outputs at 0.9 of their rate: xorshift for the arrivals, a ring of
/// slot numbers for each output, the waits summed, nothing else.
#[must_use]
pub fn bare_cells(slots: u32) -> f64 {
    const PORTS: usize = 16;
    const RING: usize = 1024;
    let mut rings = vec![[0_u32; RING]; PORTS];
    let (mut heads, mut tails) = ([0_usize; PORTS], [0_usize; PORTS]);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let (mut cells, mut waited) = (0_u64, 0_u64);
    let begins = (0.9 * 4_294_967_296.0) as u64;
    let start = Instant::now();
    for slot in 0..slots {
        for _ in 0..PORTS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if state >> 32 < begins {
                let output = (state as usize) % PORTS;
                rings[output][tails[output] % RING] = slot;
                tails[output] += 1;
            }
        }
        for output in 0..PORTS {
            if heads[output] != tails[output] {
                waited += u64::from(slot - rings[output][heads[output] % RING]);
                heads[output] += 1;
                cells += 1;
            }
        }
    }
    black_box(waited);
    start.elapsed().as_secs_f64() * 1e9 / cells as f64
}

/// Nanoseconds per cell-hop of 16 hosts around one output-queued switch, on lines of 155 Mbit/s (a cell of 424 bits
/// in 2.74 us) and 500 ns: each host has a cell for another one, evenly drawn, in 0.9 of its slots, for a given
/// number of slots. An event when a cell is made, when it reaches the switch and when it reaches its host; each
/// makes two hops.
#[must_use]
pub fn bare_switch(slots: u64) -> f64 {
    const PORTS: u64 = 16;
    const CELL: u64 = 2_735_484;
    const DELAY: u64 = 500_000;
    const AT_SWITCH: u32 = 1 << 8;
    const AT_HOST: u32 = 2 << 8;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    };
    let begins = (0.9 * 4_294_967_296.0) as u64;
    let end = slots * CELL;
    // Stretches of 131 ns with two events in each, and 537 us in all: as long as 196 cells, of which 4 wait on average.
    let mut wheel = Wheel::new(17, 1 << 12);
    let mut free = [0_u64; PORTS as usize];
    let (mut hops, mut waited) = (0_u64, 0_u64);
    for host in 0..PORTS {
        wheel.push(CELL * host / PORTS, host as u32);
    }
    let start = Instant::now();
    while let Some((now, what)) = wheel.pop()
        && now < end
    {
        let port = what & 255;
        if what >= AT_HOST {
            hops += 1;
        } else if what >= AT_SWITCH {
            hops += 1;
            let begins = now.max(free[port as usize]);
            waited += begins - now;
            free[port as usize] = begins + CELL;
            wheel.push(begins + CELL + DELAY, AT_HOST | port);
        } else {
            let mut slots = 1;
            while draw() >= begins {
                slots += 1;
            }
            wheel.push(now + slots * CELL, port);
            let other = (draw() * (PORTS - 1)) >> 32;
            let to = other + u64::from(other >= u64::from(port));
            wheel.push(now + CELL + DELAY, AT_SWITCH | to as u32);
        }
    }
    black_box(waited);
    start.elapsed().as_secs_f64() * 1e9 / hops as f64
}
