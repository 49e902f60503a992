//! Whether two ends read one clock, and how far apart they are if they do not.

use wiretwin_proto::pcaal::ClockSync;
use wiretwin_units::Span;

use crate::socket::SocketStream;
use crate::stream::{Failure, Stream};

/// How often the way there and back is timed between two clocks; the shortest counts.
const ROUNDS: usize = 16;
/// How often the clock is told over the control circuit, where it has to be.
const INTERVAL: Span = Span::from_s(1);
/// Says which run of which kernel this is (random(4)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Says which clocks a process has of it (time_namespaces(7)).
const NAMESPACE: &str = "/proc/self/ns/time";

/// What `CLOCK_MONOTONIC` reads, in nanoseconds.
pub(super) fn monotonic_ns() -> i64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    clock.tv_sec * 1_000_000_000 + clock.tv_nsec
}

/// The same for all that read one clock, and for nobody else; all 0 where that cannot be told.
pub(super) fn identity() -> [u8; 64] {
    let mut identity = [0; 64];
    let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
    // A kernel without these namespaces has one clock.
    let namespace = std::fs::read_link(NAMESPACE).unwrap_or_default();
    if !boot.is_empty() {
        let words = format!("{} {}", boot.trim(), namespace.display());
        for (place, octet) in identity.iter_mut().zip(words.bytes()) {
            *place = octet;
        }
    }
    identity
}

/// How the clock of a peer that has another is to be learned: half of the shortest of a few round trips stands
/// for the delay of the control circuit. `leads` is whether this end asks.
pub(super) fn learn(control: &mut SocketStream, leads: bool) -> Result<ClockSync, Failure> {
    let mut shortest = i64::MAX;
    for _ in 0..ROUNDS {
        if leads {
            let asked = monotonic_ns();
            control.send_all(&[0])?;
            control.recv_exact(&mut [0])?;
            shortest = shortest.min(monotonic_ns() - asked);
        } else {
            control.recv_exact(&mut [0])?;
            control.send_all(&[0])?;
        }
    }
    let mut found = shortest.to_le_bytes();
    if leads {
        control.send_all(&found)?;
    } else {
        control.recv_exact(&mut found)?;
    }
    Ok(ClockSync { interval: INTERVAL, delay: Span::from_ns(u64::from_le_bytes(found) / 2) })
}
