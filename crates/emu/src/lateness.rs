//! How late things were: a histogram of times with a bounded relative error.

use serde_json::{Value, json};

/// Buckets to each doubling: the upper bound of a bucket is at most 1/16 above its lower one.
const STEPS: u32 = 16;
const BUCKETS: usize = 61 * STEPS as usize;

/// Counts of times, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Lateness {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many were added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The greatest, exactly.
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The time that `share` of all do not exceed, rounded up by at most a sixteenth; 0 of none.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (number, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest(number).min(self.max_ns);
            }
        }
        0
    }

    /// As JSON: count, mean, quantiles, greatest, and every bucket that is not empty as the greatest
    /// time it holds and its count.
    pub fn to_json(&self) -> Value {
        let mean = if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 };
        let filled: Vec<Value> = (0..BUCKETS)
            .filter(|&number| self.buckets[number] > 0)
            .map(|number| json!([highest(number), self.buckets[number]]))
            .collect();
        json!({
            "count": self.count,
            "mean": (mean * 10.0).round() / 10.0,
            "p50": self.quantile_ns(0.5),
            "p99": self.quantile_ns(0.99),
            "p99_9": self.quantile_ns(0.999),
            "max": self.max_ns,
            "buckets": filled,
        })
    }
}

/// Below 16 each number has its bucket; from there on each doubling has 16.
fn bucket(ns: u64) -> usize {
    if ns < u64::from(STEPS) {
        return ns as usize;
    }
    let doublings = ns.ilog2() - STEPS.ilog2();
    ((doublings + 1) * STEPS) as usize + ((ns >> doublings) as usize - STEPS as usize)
}

/// The greatest time of a bucket.
fn highest(bucket: usize) -> u64 {
    let (row, column) = (bucket as u32 / STEPS, bucket as u64 % u64::from(STEPS));
    if row == 0 {
        return column;
    }
    let above = (u128::from(STEPS) + u128::from(column) + 1) << (row - 1);
    u64::try_from(above - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_ramp_are_within_a_sixteenth_above() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_ns(0.5), 0);
        (1..=100_000).for_each(|ns| lateness.add(ns));
        for (share, exact) in [(0.5, 50_000), (0.99, 99_000), (0.999, 99_900)] {
            let found = lateness.quantile_ns(share);
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}");
        }
        assert_eq!((lateness.max_ns(), lateness.quantile_ns(1.0)), (100_000, 100_000));
        let json = lateness.to_json();
        assert_eq!((json["count"].as_u64(), json["mean"].as_f64()), (Some(100_000), Some(50_000.5)));
        let listed: u64 =
            json["buckets"].as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum();
        assert_eq!(listed, 100_000);
    }

    proptest! {
        #[test]
        fn every_time_is_in_the_bucket_that_holds_it(ns in prop_oneof![any::<u64>(), 0u64..100_000]) {
            let number = bucket(ns);
            prop_assert!(number < BUCKETS);
            prop_assert!(ns <= highest(number));
            prop_assert!(number == 0 || ns > highest(number - 1));
        }
    }
}
