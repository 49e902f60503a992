//! NetPIPE: how long a message of each size takes, over a schedule of sizes.
//!
//! As NetPIPE 2 does it (Snell, Mikler & Gustafson 1996): round trips between ranks 0 and 1, the other ranks look
//! on. Sizes double, with one between, and from 16 bytes on come with one a few bytes below and above. Of a
//! size there are some trials, of which the fastest counts; a trial begins with a handshake, and is as many
//! round trips as make it long enough by what the size before took; a hundred round trips of one byte come before
//! the first. A time is RTT/2. The sweep ends when a message takes longer than a second.
//!
//! A trial stops when its state repeats: when the last round trips, one or several in a row, have taken to the
//! picosecond as long as those before them, the rest of it would do so too, and is counted without being run.
//! When a trial has gone as the one before, no more are run. A live clock never does that; in a simulated
//! world it makes a sweep short. `full` runs everything.
//!
//! Left out: NetPIPE's streaming mode, its receives posted beforehand, and its variance.

use wiretwin_units::Span;

use crate::comm::{Comm, Rank, Source, Tag, TagMatch};
use crate::data::{digest, fill};
use crate::outcome::{Outcome, Point, ProgramError, elapsed};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetpipeParams {
    /// The longest message, bytes; at least 1.
    pub most: u64,
    /// How far the sizes to each side of one are from it, bytes; 0 for none.
    pub perturbation: u64,
    /// How each size is measured.
    pub method: Method,
}

/// How a size is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// How long a trial is to last, microseconds.
    pub trial_us: u64,
    /// Trials of a size, at least 1.
    pub trials: u64,
    /// Whether a trial goes on though its state repeats.
    pub full: bool,
}

impl Method {
    /// NetPIPE's, with trials that stop.
    pub const NETPIPE: Self = Self { trial_us: 250_000, trials: 7, full: false };
}

/// From this size on sizes are perturbed.
const PERTURBED_FROM: u64 = 16;
/// Round trips of one byte before everything: what a connection does at its start is over then, and how long
/// the first trial has to be is known.
const LATENCY_ROUNDS: u64 = 100;
/// A trial has at least so many round trips.
const LEAST_ROUNDS: u64 = 7;
/// A size whose messages take longer is the last one.
const STOP: Span = Span::from_s(1);
/// The longest run of round trips that is looked for again.
const LONGEST_PERIOD: usize = 8;
/// How many times a run is to be seen.
const SEEN: usize = 3;

const PING: Tag = Tag(1);
const END: Tag = Tag(2);

/// NetPIPE's sizes up to `most`, ascending: 1, 2, 3, 4, 6, 8, 12 and so on, each from 16 on with one
/// `perturbation` less and one more.
#[must_use]
pub fn schedule(most: u64, perturbation: u64) -> Vec<u64> {
    let mut sizes = vec![1];
    let mut power = 2;
    while power <= most {
        for size in [power, power + power / 2].into_iter().filter(|&size| size <= most) {
            let step = if size >= PERTURBED_FROM { perturbation } else { 0 };
            sizes.extend([size - step, size, size + step]);
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
/// [`ProgramError`] from a call, or with fewer than two ranks.
pub async fn netpipe<C: Comm>(comm: &mut C, params: &NetpipeParams) -> Result<Outcome, ProgramError> {
    sweep(comm, &schedule(params.most, params.perturbation), &params.method).await
}

/// The same over sizes of one's own, each at least 1 byte.
///
/// # Errors
/// As for [`netpipe`], and for a size of 0.
pub async fn sweep<C: Comm>(comm: &mut C, sizes: &[u64], method: &Method) -> Result<Outcome, ProgramError> {
    if comm.size() < 2 {
        let value = u64::from(comm.size());
        return Err(ProgramError::Parameter { name: "ranks", value, allowed: "2 or more".into() });
    }
    if sizes.contains(&0) {
        return Err(ProgramError::Parameter { name: "size", value: 0, allowed: "1 or more".into() });
    }
    let most = sizes.iter().copied().max().unwrap_or(1) as usize;
    let mut verified = true;
    let mut points: Vec<Point> = Vec::new();
    let start = comm.now();
    match comm.rank() {
        Rank(0) => {
            let mut message = vec![0; most];
            fill(&mut message, 0);
            let mut answer = vec![0; most];
            let mut before = latency(comm).await?;
            for &bytes in sizes {
                let (message, answer) = (&message[..bytes as usize], &mut answer[..bytes as usize]);
                let rounds = rounds_of(method, &before, bytes);
                answer.fill(0);
                let point = measure(comm, method, message, answer, rounds).await?;
                verified &= answer == message;
                points.push(point);
                before = point;
                if point.time > STOP {
                    break;
                }
            }
            comm.send(Rank(1), END, &[0]).await?;
        }
        Rank(1) => {
            let mut buffer = vec![0; most];
            loop {
                let status = comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut buffer).await?;
                if status.tag == END {
                    break;
                }
                comm.send(Rank(0), PING, &buffer[..status.bytes.get() as usize]).await?;
            }
        }
        _ => {}
    }
    // What is measured is no result: the sizes are.
    let digest = digest(sizes.iter().flat_map(|size| size.to_le_bytes()));
    Ok(Outcome { points, ..Outcome::new(elapsed(start, comm.now()), digest, verified) })
}

/// What one byte takes, roughly.
async fn latency<C: Comm>(comm: &mut C) -> Result<Point, ProgramError> {
    let mut sum = 0;
    for _ in 0..LATENCY_ROUNDS {
        sum += round_trip(comm, &[0], &mut [0]).await?;
    }
    Ok(Point { bytes: 1, time: Span::from_ps(sum / (2 * LATENCY_ROUNDS)), rounds: LATENCY_ROUNDS })
}

/// How many round trips a trial takes, if messages take as long as the size before in proportion.
fn rounds_of(method: &Method, before: &Point, bytes: u64) -> u64 {
    let one = u128::from(before.time.as_ps().max(1)) * u128::from(bytes) / u128::from(before.bytes);
    let trial = u128::from(method.trial_us) * 1_000_000;
    ((trial / one.max(1)) as u64).max(LEAST_ROUNDS)
}

/// The fastest of the trials of a size.
async fn measure<C: Comm>(
    comm: &mut C,
    method: &Method,
    message: &[u8],
    answer: &mut [u8],
    rounds: u64,
) -> Result<Point, ProgramError> {
    let mut quickest = u64::MAX;
    let mut run = 0;
    let (mut before, mut times) = (Vec::new(), Vec::new());
    for trial in 0..method.trials.max(1) {
        round_trip(comm, &[0], &mut [0]).await?;
        core::mem::swap(&mut before, &mut times);
        times.clear();
        let mut period = None;
        while (times.len() as u64) < rounds && period.is_none() {
            times.push(round_trip(comm, message, answer).await?);
            period = if method.full { None } else { period_of(&times) };
        }
        run += times.len() as u64;
        quickest = quickest.min(whole(&times, period, rounds) / (2 * rounds));
        // It went as the trial before, and so will the next one.
        if trial > 0 && period.is_some() && times == before {
            break;
        }
    }
    Ok(Point { bytes: message.len() as u64, time: Span::from_ps(quickest), rounds: run })
}

/// There and back, picoseconds.
async fn round_trip<C: Comm>(comm: &mut C, message: &[u8], answer: &mut [u8]) -> Result<u64, ProgramError> {
    let begun = comm.now();
    comm.send(Rank(1), PING, message).await?;
    comm.recv(Source::Rank(Rank(1)), TagMatch::Tag(PING), answer).await?;
    Ok(elapsed(begun, comm.now()).as_ps())
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
        let sizes =
            [1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67, 93, 96, 99];
        assert_eq!(schedule(96, 3), sizes);
        assert_eq!(schedule(24, 0), [1, 2, 3, 4, 6, 8, 12, 16, 24]);
        assert_eq!(schedule(1, 3), [1]);
    }

    #[test]
    fn a_trial_is_as_long_as_the_size_before_lets_expect() {
        let method = Method { trial_us: 1000, ..Method::NETPIPE };
        let before = Point { bytes: 64, time: Span::from_us(10), rounds: 100 };
        assert_eq!(rounds_of(&method, &before, 96), 66, "of 15 us");
        let before = Point { time: Span::from_us(1000), ..before };
        assert_eq!(rounds_of(&method, &before, 96), LEAST_ROUNDS);
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
