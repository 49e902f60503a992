//! The bare loop that switches of cells are held against.

use std::hint::black_box;
use std::time::Instant;

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
