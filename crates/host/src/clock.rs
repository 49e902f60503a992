//! The clock samples are taken with: `CLOCK_MONOTONIC`, read in user space (vDSO).
//!
//! Choice: not the bare time stamp counter. Its reading costs about half as much, but it needs
//! calibration against this same clock (an error of its own in every sample), is not invariant on
//! every host, and batching already keeps the reading under 1 % of a sample.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wiretwin_units::{HostTime, Span};

/// Time since this clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

/// What reading the clock costs and how finely it ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockQuality {
    /// Nanoseconds per reading: the fastest of several long runs of readings.
    pub cost_ns: f64,
    /// The largest number of nanoseconds that divides every step seen between two readings.
    pub resolution_ns: u64,
}

impl Clock {
    /// The name of the underlying clock.
    pub const NAME: &'static str = "CLOCK_MONOTONIC";

    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Time since the start.
    #[inline]
    pub fn now(&self) -> Span {
        let elapsed = self.start.elapsed();
        Span::from_ps(
            (elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())).saturating_mul(1000),
        )
    }

    /// Measures the clock itself; takes about a millisecond.
    pub fn quality(&self) -> ClockQuality {
        const RUNS: usize = 15;
        const READINGS: u32 = 1000;
        let mut cost_ns = f64::INFINITY;
        let mut resolution_ns = 0;
        for _ in 0..RUNS {
            let before = self.now();
            let mut last = before;
            for _ in 0..READINGS {
                last = self.now();
            }
            let total_ns = (last.as_ps() - before.as_ps()) / 1000;
            cost_ns = cost_ns.min(total_ns as f64 / f64::from(READINGS));
        }
        for _ in 0..READINGS {
            let before = self.now().as_ps();
            let mut after = self.now().as_ps();
            while after == before {
                after = self.now().as_ps();
            }
            resolution_ns = common_divisor(resolution_ns, (after - before) / 1000);
        }
        ClockQuality { cost_ns, resolution_ns }
    }
}

/// Time since 1970 as the system has it, for files that say so; zero before. It can be set, so no
/// interval is measured with it.
pub fn since_1970() -> HostTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    HostTime::from_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Euclid's algorithm; 0 divides nothing.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_back_and_knows_its_cost() {
        let clock = Clock::start();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let quality = clock.quality();
        assert!(quality.cost_ns > 0.0 && quality.cost_ns.is_finite(), "{quality:?}");
        assert!(quality.resolution_ns >= 1, "{quality:?}");
    }
}
