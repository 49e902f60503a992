//! How far apart two processes are: the round trip of one cache line between their cores.
//!
//! Where a hypervisor or a scheduler moves processes about, it is this that changes: two cores that
//! share a cache pass a line on in a fraction of the time that two others need, and messages
//! through shared memory with it. It takes a millisecond and needs no library, so it can be made
//! just before and just after whatever is timed, and tells which state of the host that was.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::ftruncate;

use crate::mapping::Mapping;

/// Bytes of the shared file.
const BYTES: usize = 4096;
/// Where the first of the two leaves what it measured, on a line of its own, in picoseconds; 0 is
/// not yet.
const FOUND: usize = 512;
/// Round trips that are timed together: shorter than what a scheduler gives a process.
const ROUNDS: u64 = 20;
/// How often that is done. The fastest counts: an interruption only ever adds.
const BATCHES: u64 = 100;
/// Looks at the line between two looks at the clock.
const LOOKS: u32 = 1 << 12;

/// Measures with another process that calls this at the same time with the same new `file`; one of
/// the two is the `first`. Returns nanoseconds for a cache line there and back, the same on both
/// sides, and nothing if the other has not come, or not answered, within `limit`.
///
/// # Errors
/// If the file cannot be made, or not be mapped.
pub fn crossing(file: &Path, first: bool, limit: Duration) -> io::Result<Option<f64>> {
    let shared = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file)?;
    ftruncate(&shared, BYTES as u64)?;
    let mapping = Mapping::new(shared.as_fd(), BYTES)?;
    let deadline = Instant::now() + limit;
    let found = if first {
        lead(word(&mapping, 0), word(&mapping, FOUND), deadline)
    } else {
        follow(word(&mapping, 0), word(&mapping, FOUND), deadline)
    };
    Ok(found.map(|ps| ps as f64 / 1000.0))
}

fn word(mapping: &Mapping, at: usize) -> &AtomicU64 {
    // SAFETY: a multiple of 8 inside a page-aligned mapping of BYTES that lives as long as the
    // reference and is accessed as atomics by both sides.
    unsafe { AtomicU64::from_ptr(mapping.at(at).as_ptr().cast()) }
}

/// The first writes even numbers into the line, from 2; the other answers each with the next odd
/// one, after a 1 that says that it is there.
fn lead(line: &AtomicU64, found: &AtomicU64, deadline: Instant) -> Option<u64> {
    await_value(line, 1, deadline)?;
    let mut fastest = u64::MAX;
    let mut next = 2;
    for _ in 0..=BATCHES {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            line.store(next, Ordering::Release);
            await_value(line, next + 1, deadline)?;
            next += 2;
        }
        fastest = fastest.min(begin.elapsed().as_nanos() as u64 * 1000 / ROUNDS);
    }
    let fastest = fastest.max(1);
    found.store(fastest, Ordering::Release);
    Some(fastest)
}

fn follow(line: &AtomicU64, found: &AtomicU64, deadline: Instant) -> Option<u64> {
    line.store(1, Ordering::Release);
    for round in 1..=(BATCHES + 1) * ROUNDS {
        await_value(line, 2 * round, deadline)?;
        line.store(2 * round + 1, Ordering::Release);
    }
    let mut ps = found.load(Ordering::Acquire);
    while ps == 0 {
        if Instant::now() > deadline {
            return None;
        }
        ps = found.load(Ordering::Acquire);
    }
    Some(ps)
}

/// Looks until the line holds the value; gives way now and then, for the other may need this core.
#[inline]
fn await_value(line: &AtomicU64, value: u64, deadline: Instant) -> Option<()> {
    loop {
        for _ in 0..LOOKS {
            if line.load(Ordering::Acquire) == value {
                return Some(());
            }
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("wiretwin-crossing-{name}-{}", std::process::id()))
    }

    #[test]
    fn both_sides_learn_the_same_time() {
        let file = fresh("both");
        let other = std::thread::spawn({
            let file = file.clone();
            move || crossing(&file, false, Duration::from_secs(30))
        });
        let here = crossing(&file, true, Duration::from_secs(30)).expect("mapped").expect("answered");
        let there = other.join().expect("no panic").expect("mapped").expect("answered");
        std::fs::remove_file(file).expect("made");
        assert!(here > 0.0);
        assert_eq!(here.to_bits(), there.to_bits());
    }

    #[test]
    fn nobody_else_is_no_answer() {
        for (name, first) in [("leader", true), ("follower", false)] {
            let file = fresh(name);
            let found = crossing(&file, first, Duration::from_millis(5));
            std::fs::remove_file(file).expect("made");
            assert_eq!(found.expect("mapped"), None);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let absent = Path::new("/nonexistent/wiretwin/line");
        assert!(crossing(absent, true, Duration::from_millis(5)).is_err());
    }
}
