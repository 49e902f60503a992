//! Probes: what a model measures of itself, registered by name and read at the end.
//!
//! Registering allocates; counting does not. A probe is reached by its number, so a model pays an
//! index for it and no look-up.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::{SimTime, Span};

/// Why no probe was registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// There is a probe of this name.
    Taken {
        /// The name.
        name: String,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { name } => write!(f, "there is a probe `{name}` already: each has its own name"),
        }
    }
}

impl core::error::Error for ProbeError {}

/// The number of a probe that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterId(u32);

/// The number of a probe that follows a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelId(u32);

/// The number of a probe that keeps a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramId(u32);

/// A level over time: a queue's length, a window, the number of busy servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    value: u64,
    greatest: u64,
    since: SimTime,
    begun: SimTime,
    /// Sum of value times ps up to `since`.
    area: u128,
}

impl Level {
    const fn begin(now: SimTime) -> Self {
        Self { value: 0, greatest: 0, since: now, begun: now, area: 0 }
    }

    fn area_at(&self, now: SimTime) -> u128 {
        self.area + u128::from(self.value) * u128::from((now - self.since).as_ps())
    }

    fn set(&mut self, now: SimTime, value: u64) {
        self.area = self.area_at(now);
        self.since = now;
        self.value = value;
        self.greatest = self.greatest.max(value);
    }
}

/// Values by magnitude: exact below 64, then 32 buckets to each doubling, so that a quantile is at
/// most 3.2 % above the true one. The least, the greatest and the mean are exact. 15 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    least: u64,
    greatest: u64,
}

/// Buckets to a doubling, as a power of two.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

/// The bucket of a value.
const fn bucket(value: u64) -> usize {
    // Doublings above the first 2 x SUB values, which have a bucket each.
    let doublings = (value | SUB).ilog2() - SUB_BITS;
    ((doublings as usize) << SUB_BITS) + (value >> doublings) as usize
}

/// The greatest value of a bucket.
const fn bucket_end(bucket: usize) -> u64 {
    if bucket < 2 * SUB as usize {
        return bucket as u64;
    }
    let doublings = (bucket as u64 >> SUB_BITS) - 1;
    let start = SUB + (bucket as u64 & (SUB - 1));
    // The last bucket ends at the greatest value there is.
    (start << doublings) + ((1 << doublings) - 1)
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// A histogram of nothing yet.
    pub fn new() -> Self {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Self { counts, count: 0, sum: 0, least: u64::MAX, greatest: 0 }
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// How many values were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The least value.
    pub const fn least(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.least) }
    }

    /// The greatest value.
    pub const fn greatest(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.greatest) }
    }

    /// The mean of the values.
    pub fn mean(&self) -> Option<f64> {
        if self.count == 0 { None } else { Some(self.sum as f64 / self.count as f64) }
    }

    /// The least value that at least `per_million` of a million values do not exceed, or up to
    /// 3.2 % more: the end of its bucket, within what was counted.
    ///
    /// 500 000 is the median; what is beyond a million counts as a million.
    pub fn quantile(&self, per_million: u32) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let share = u128::from(per_million.min(1_000_000)) * u128::from(self.count);
        let rank = share.div_ceil(1_000_000).max(1);
        let mut seen = 0_u128;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return Some(bucket_end(bucket).clamp(self.least, self.greatest));
            }
        }
        unreachable!("the buckets hold all values that were counted")
    }
}

/// What a probe shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading<'a> {
    /// How often, or how much.
    Count(u64),
    /// A level over the time since it was registered.
    Level {
        /// The level now.
        last: u64,
        /// The highest it was.
        greatest: u64,
        /// Its average weighted by time; `None` where no time has passed.
        mean: Option<f64>,
        /// How long it was followed.
        over: Span,
    },
    /// A distribution.
    Histogram(&'a Histogram),
}

#[derive(Clone, Copy)]
enum Kind {
    Counter(CounterId),
    Level(LevelId),
    Histogram(HistogramId),
}

/// The probes of a run.
///
/// ```
/// use wiretwin_engine::{Probes, Reading};
/// use wiretwin_units::SimTime;
///
/// let mut probes = Probes::new();
/// let queue = probes.level("port 3/queue", SimTime::ZERO)?;
/// probes.set(queue, SimTime::from_ps(10), 4);
/// let (name, reading) = probes.readings(SimTime::from_ps(20)).next().unwrap();
/// assert_eq!(name, "port 3/queue");
/// assert!(matches!(reading, Reading::Level { last: 4, mean: Some(2.0), .. }));
/// # Ok::<(), wiretwin_engine::ProbeError>(())
/// ```
#[derive(Clone, Default)]
pub struct Probes {
    names: Vec<(String, Kind)>,
    taken: BTreeSet<String>,
    counters: Vec<u64>,
    levels: Vec<Level>,
    histograms: Vec<Histogram>,
}

/// The number of the next probe of a kind.
fn next_id(count: usize) -> u32 {
    u32::try_from(count).expect("memory ends before 2^32 probes")
}

impl Probes {
    /// No probes yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn register(&mut self, name: &str, kind: Kind) -> Result<(), ProbeError> {
        if !self.taken.insert(name.into()) {
            return Err(ProbeError::Taken { name: name.into() });
        }
        self.names.push((name.into(), kind));
        Ok(())
    }

    /// Registers a counter.
    ///
    /// # Errors
    /// [`ProbeError::Taken`].
    pub fn counter(&mut self, name: &str) -> Result<CounterId, ProbeError> {
        let id = CounterId(next_id(self.counters.len()));
        self.register(name, Kind::Counter(id))?;
        self.counters.push(0);
        Ok(id)
    }

    /// Registers a level, which is 0 from `now` on.
    ///
    /// # Errors
    /// [`ProbeError::Taken`].
    pub fn level(&mut self, name: &str, now: SimTime) -> Result<LevelId, ProbeError> {
        let id = LevelId(next_id(self.levels.len()));
        self.register(name, Kind::Level(id))?;
        self.levels.push(Level::begin(now));
        Ok(id)
    }

    /// Registers a histogram.
    ///
    /// # Errors
    /// [`ProbeError::Taken`].
    pub fn histogram(&mut self, name: &str) -> Result<HistogramId, ProbeError> {
        let id = HistogramId(next_id(self.histograms.len()));
        self.register(name, Kind::Histogram(id))?;
        self.histograms.push(Histogram::new());
        Ok(id)
    }

    /// Adds to a counter, which stays at `u64::MAX` once there.
    #[inline]
    pub fn count(&mut self, id: CounterId, amount: u64) {
        let counter = &mut self.counters[id.0 as usize];
        *counter = counter.saturating_add(amount);
    }

    /// Sets a level from `now` on.
    ///
    /// # Panics
    /// Where `now` is before the last time it was set: virtual time does not go back.
    #[inline]
    pub fn set(&mut self, id: LevelId, now: SimTime, value: u64) {
        self.levels[id.0 as usize].set(now, value);
    }

    /// Counts a value in a histogram.
    #[inline]
    pub fn add(&mut self, id: HistogramId, value: u64) {
        self.histograms[id.0 as usize].add(value);
    }

    /// What every probe shows at `now`, in the order of registration.
    ///
    /// # Panics
    /// Where `now` is before the last time a level was set.
    pub fn readings(&self, now: SimTime) -> impl Iterator<Item = (&str, Reading<'_>)> {
        self.names.iter().map(move |(name, kind)| {
            let reading = match *kind {
                Kind::Counter(id) => Reading::Count(self.counters[id.0 as usize]),
                Kind::Level(id) => {
                    let level = &self.levels[id.0 as usize];
                    let over = now - level.begun;
                    let area = level.area_at(now) as f64;
                    let mean = if over.is_zero() { None } else { Some(area / over.as_ps() as f64) };
                    Reading::Level { last: level.value, greatest: level.greatest, mean, over }
                }
                Kind::Histogram(id) => Reading::Histogram(&self.histograms[id.0 as usize]),
            };
            (name.as_str(), reading)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn probes_read_in_the_order_in_which_they_were_registered() {
        let mut probes = Probes::new();
        let lost = probes.counter("z/lost").unwrap();
        let sizes = probes.histogram("a/sizes").unwrap();
        probes.count(lost, 2);
        probes.count(lost, u64::MAX);
        probes.add(sizes, 48);
        let names: Vec<&str> = probes.readings(SimTime::ZERO).map(|(name, _)| name).collect();
        assert_eq!(names, ["z/lost", "a/sizes"]);
        assert_eq!(probes.readings(SimTime::ZERO).next(), Some(("z/lost", Reading::Count(u64::MAX))));
    }

    #[test]
    fn a_name_is_taken_once_whatever_the_kind() {
        let mut probes = Probes::new();
        probes.counter("queue").unwrap();
        let error = probes.level("queue", SimTime::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "there is a probe `queue` already: each has its own name");
        assert_eq!(probes.readings(SimTime::ZERO).count(), 1);
    }

    #[test]
    fn a_level_is_averaged_by_how_long_it_was_held() {
        let mut probes = Probes::new();
        let level = probes.level("queue", SimTime::from_ps(100)).unwrap();
        probes.set(level, SimTime::from_ps(110), 6);
        probes.set(level, SimTime::from_ps(130), 1);
        let reading = probes.readings(SimTime::from_ps(140)).next().unwrap().1;
        // 10 at 0, 20 at 6 and 10 at 1: 130 over 40.
        let expected = Reading::Level { last: 1, greatest: 6, mean: Some(3.25), over: Span::from_ps(40) };
        assert_eq!(reading, expected);
        let at_once = Probes::new();
        assert_eq!(at_once.readings(SimTime::ZERO).count(), 0);
    }

    #[test]
    fn a_level_over_no_time_has_no_average() {
        let mut probes = Probes::new();
        probes.level("queue", SimTime::from_ps(5)).unwrap();
        let reading = probes.readings(SimTime::from_ps(5)).next().unwrap().1;
        assert!(matches!(reading, Reading::Level { mean: None, .. }));
    }

    #[test]
    fn buckets_adjoin_and_are_at_most_a_thirty_second_wide() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_end(BUCKETS - 1), u64::MAX);
        for index in 0..BUCKETS - 1 {
            let end = bucket_end(index);
            assert_eq!((bucket(end), bucket(end + 1)), (index, index + 1));
            let next_end = bucket_end(index + 1);
            assert!(u128::from(next_end - end - 1) * 32 <= u128::from(end) + 32, "{index}");
        }
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_sorted_values() {
        let mut histogram = Histogram::new();
        let mut values: Vec<u64> = (0..10_000_u64).map(|n| n * n * 37 % 1_000_003).collect();
        values.iter().for_each(|&value| histogram.add(value));
        values.sort_unstable();
        for per_million in [1, 250_000, 500_000, 990_000, 999_999, 1_000_000] {
            let rank = (values.len() as u64 * u64::from(per_million)).div_ceil(1_000_000).max(1);
            let exact = values[rank as usize - 1];
            let read = histogram.quantile(per_million).unwrap();
            assert!(read >= exact && read - exact <= exact / 31, "{per_million}: {read} for {exact}");
        }
        assert_eq!(histogram.quantile(0), histogram.quantile(1));
        assert_eq!(histogram.greatest(), values.last().copied());
        assert_eq!(histogram.least(), values.first().copied());
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        assert_eq!(histogram.mean(), Some(mean));
    }

    #[test]
    fn a_histogram_of_nothing_shows_nothing() {
        let histogram = Histogram::new();
        assert_eq!((histogram.quantile(500_000), histogram.least(), histogram.mean()), (None, None, None));
    }
}
