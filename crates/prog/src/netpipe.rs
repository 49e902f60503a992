//! NetPIPE: how long a message of each size takes, over a schedule of sizes.
//!
//! As NetPIPE 2 does it (Snell, Mikler, Gustafson 1996): round trips between ranks 0 and 1; sizes that double
//! with one between, and from 16 octets on a few octets to each side of them; several trials of a size, each
//! long enough to be timed, of which the best counts. A time is half of a round trip. The other ranks look on.
//!
//! A trial stops when its state repeats: when the last round trips, one or several in a row, have taken to the
//! picosecond as long as those before them, the rest of it would do so too, and is counted without being run.
//! The trials behind it would be the same. A live clock never does that; in a simulated world it makes a
//! sweep short. `full` runs everything.
//!
//! Left out: NetPIPE's streaming mode, and its cache tricks.

use wiretwin_units::Span;

use crate::comm::{Comm, Rank, Source, Tag, TagMatch};
use crate::data::{digest, pattern};
use crate::outcome::{Outcome, Point, ProgramError, elapsed};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetpipeParams {
    /// The sizes, bytes: at least 1 each.
    pub sizes: Vec<u64>,
    /// How long a trial is to last at least. NetPIPE's are of 250 ms.
    pub trial: Span,
    /// Trials of a size, at least 1. NetPIPE has 7.
    pub trials: u64,
    /// Whether a trial goes on though its state repeats.
    pub full: bool,
}

/// From this size on sizes are perturbed.
const PERTURBED_FROM: u64 = 16;
/// A trial has at least so many round trips.
const LEAST_ROUNDS: u64 = 3;
/// The longest run of round trips that is looked for twice.
const LONGEST_PERIOD: usize = 8;
/// How many times a run is to be seen.
const SEEN: usize = 3;

const PING: Tag = Tag(1);
const END: Tag = Tag(2);

/// NetPIPE's sizes up to `most`: 1, 2, 3, 4, 6, 8, 12, and so on, each from 16 on with one `perturbation` less
/// and more; none is perturbed by 0.
#[must_use]
pub fn schedule(most: u64, perturbation: u64) -> Vec<u64> {
    let mut sizes = vec![1];
    let mut power = 2;
    while power <= most {
        for size in [power, power * 3 / 2].into_iter().filter(|&size| size <= most) {
            let perturbed = size >= PERTURBED_FROM && perturbation > 0;
            let around = if perturbed { [size - perturbation, size, size + perturbation] } else { [size; 3] };
            sizes.extend(around);
        }
        power *= 2;
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Runs it. Rank 0 has a point for each size.
///
/// # Errors
/// [`ProgramError`] from a call, or with fewer than two ranks or a size of 0.
pub async fn netpipe<C: Comm>(comm: &mut C, params: &NetpipeParams) -> Result<Outcome, ProgramError> {
    let refused = |name, value, allowed: &str| ProgramError::Parameter { name, value, allowed: allowed.into() };
    if comm.size() < 2 {
        return Err(refused("ranks", u64::from(comm.size()), "2 or more"));
    }
    if params.sizes.contains(&0) {
        return Err(refused("size", 0, "1 byte or more"));
    }
    let most = params.sizes.iter().copied().max().unwrap_or(1) as usize;
    let mut buffer: Vec<u8> = (0..most).map(|index| pattern(0, index)).collect();
    let mut verified = true;
    let mut points = Vec::new();
    let start = comm.now();
    match comm.rank() {
        Rank(0) => {
            let mut answer = vec![0; most];
            for &bytes in &params.sizes {
                let message = &buffer[..bytes as usize];
                let rounds = rounds_of(params, points.last(), bytes);
                let point = measure(comm, params, message, &mut answer, rounds).await?;
                verified &= answer[..message.len()] == *message;
                points.push(point);
            }
            comm.send(Rank(1), END, &[0]).await?;
        }
        Rank(1) => loop {
            let status = comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut buffer).await?;
            if status.tag == END {
                break;
            }
            comm.send(Rank(0), PING, &buffer[..status.bytes.get() as usize]).await?;
        },
        _ => {}
    }
    // What is measured is no result: the sizes are.
    let digest = digest(params.sizes.iter().flat_map(|size| size.to_le_bytes()));
    Ok(Outcome { elapsed: elapsed(start, comm.now()), digest, verified, points })
}

/// How many round trips a trial takes, as the size before says.
fn rounds_of(params: &NetpipeParams, before: Option<&Point>, bytes: u64) -> u64 {
    let Some(before) = before else { return LEAST_ROUNDS };
    let round = before.time.as_ps().saturating_mul(2).max(1);
    // A longer message takes no less than in proportion to those of the size before, or about as long.
    let round = round.max((u128::from(round) * u128::from(bytes) / u128::from(before.bytes) / 2) as u64);
    (params.trial.as_ps() / round).max(LEAST_ROUNDS)
}

/// The best of the trials of a size.
async fn measure<C: Comm>(
    comm: &mut C,
    params: &NetpipeParams,
    message: &[u8],
    answer: &mut [u8],
    rounds: u64,
) -> Result<Point, ProgramError> {
    let mut best = u64::MAX;
    let mut run = 0;
    let mut times = Vec::new();
    for trial in 0..=params.trials.max(1) {
        times.clear();
        // The first one only warms up what is in between.
        let wanted = if trial == 0 { 1 } else { rounds };
        let mut period = None;
        while (times.len() as u64) < wanted && period.is_none() {
            let begun = comm.now();
            comm.send(Rank(1), PING, message).await?;
            comm.recv(Source::Rank(Rank(1)), TagMatch::Tag(PING), answer).await?;
            times.push(elapsed(begun, comm.now()).as_ps());
            period = if params.full { None } else { period_of(&times) };
        }
        run += times.len() as u64;
        if trial == 0 {
            continue;
        }
        best = best.min(whole(&times, period, wanted) / (2 * wanted));
        if period.is_some() {
            break;
        }
    }
    Ok(Point { bytes: message.len() as u64, time: Span::from_ps(best), rounds: run })
}

/// How many round trips there are in what is repeated at the end, if anything is.
fn period_of(times: &[u64]) -> Option<usize> {
    (1..=LONGEST_PERIOD).find(|&period| {
        let Some(from) = times.len().checked_sub(SEEN * period) else { return false };
        let tail = &times[from..];
        tail[period..].iter().zip(tail).all(|(one, before)| one == before)
    })
}

/// What `wanted` round trips take, those that were not run as those that repeat.
fn whole(times: &[u64], period: Option<usize>, wanted: u64) -> u64 {
    let run: u64 = times.iter().sum();
    let Some(period) = period else { return run };
    let repeated = &times[times.len() - period..];
    let left = wanted - times.len() as u64;
    let (whole, part) = (left / period as u64, (left % period as u64) as usize);
    run + repeated.iter().sum::<u64>() * whole + repeated[..part].iter().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_netpipe() {
        let sizes = [
            1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67, 93, 96, 99,
        ];
        assert_eq!(schedule(96, 3), sizes);
        assert_eq!(schedule(24, 0), [1, 2, 3, 4, 6, 8, 12, 16, 24]);
        assert_eq!(schedule(1, 3), [1]);
    }

    #[test]
    fn what_repeats_is_found_and_counted_without_being_run() {
        assert_eq!(period_of(&[9, 5, 5]), None, "seen twice");
        assert_eq!(period_of(&[9, 5, 5, 5]), Some(1));
        assert_eq!(period_of(&[1, 5, 6, 5, 6, 5, 6]), Some(2));
        assert_eq!(period_of(&[5, 6, 5, 6, 5, 7]), None);
        assert_eq!(whole(&[9, 5, 5, 5], Some(1), 10), 24 + 6 * 5);
        assert_eq!(whole(&[1, 5, 6, 5, 6, 5, 6], Some(2), 10), 34 + 5 + 6 + 5);
        assert_eq!(whole(&[1, 2, 3], None, 3), 6);
    }
}
