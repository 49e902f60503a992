//! Random streams by name, and the distributions that simulations draw from them.
//!
//! A stream depends on the run's seed and on its own path and on nothing else, so a component that is
//! added disturbs no other. Everything is pinned: generator, derivation and distributions give the
//! same numbers on every machine and in every version, and tests hold the first of each.
//!
//! - Derivation: SipHash-1-3 with 128 bits of output over the path's bytes, keyed with (seed, 0) for
//!   the generator's state and (seed, 1) for its stream.
//! - Generator: PCG XSL RR 128/64 (O'Neill 2014), as NumPy's `PCG64`.
//! - Logarithm: that of `libm` (FreeBSD's msun), not the platform's.

use core::fmt;
use core::hash::Hasher as _;
use core::ops::RangeInclusive;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use wiretwin_units::Span;

/// The seed of a run for which none was given.
pub const DEFAULT_SEED: u64 = 1_995;

/// A chance from 0 to 1; by default 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probability {
    /// Outcomes of 2^64 that count; 2^64 itself for certainty.
    outcomes: u128,
}

/// A number that is no probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotAProbability {
    /// The number.
    pub value: f64,
}

impl fmt::Display for NotAProbability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no probability: allowed are 0 to 1", self.value)
    }
}

impl core::error::Error for NotAProbability {}

impl Probability {
    /// This probability, to the nearest 2^-64 below.
    ///
    /// # Errors
    /// [`NotAProbability`] where it is not from 0 to 1.
    pub fn new(value: f64) -> Result<Self, NotAProbability> {
        if !(0.0..=1.0).contains(&value) {
            return Err(NotAProbability { value });
        }
        // Exact: a product with a power of two, of which the whole part is taken.
        Ok(Self { outcomes: (value * 18_446_744_073_709_551_616.0) as u128 })
    }
}

/// One component's random numbers.
///
/// ```
/// use wiretwin_engine::{DEFAULT_SEED, Stream};
/// use wiretwin_units::Span;
///
/// let mut arrivals = Stream::derive(DEFAULT_SEED, "switch/port 3/arrivals");
/// assert!(arrivals.exponential(Span::from_us(2)) < Span::from_us(80));
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64,
}

impl Stream {
    /// The stream of the component at `path`, its names from the outside in: `switch/port 3/loss`. No two components
    /// of a run may have one path: they would draw the same numbers.
    pub fn derive(seed: u64, path: &str) -> Self {
        let hash = |purpose| {
            let mut hasher = SipHasher13::new_with_keys(seed, purpose);
            hasher.write(path.as_bytes());
            hasher.finish128().as_u128()
        };
        Self { generator: Pcg64::new(hash(0), hash(1)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 to `count` - 1, all equally likely (Lemire 2019, with rejection).
    ///
    /// # Panics
    /// Where `count` is zero: there is no such number.
    #[track_caller]
    pub fn below(&mut self, count: u64) -> u64 {
        assert!(count > 0, "a choice is among at least one");
        let mut product = u128::from(self.bits()) * u128::from(count);
        if (product as u64) < count {
            // 2^64 mod count: so many low products are one too many for their result.
            let surplus = count.wrapping_neg() % count;
            while (product as u64) < surplus {
                product = u128::from(self.bits()) * u128::from(count);
            }
        }
        (product >> 64) as u64
    }

    /// An integer of the range, both ends included, all equally likely.
    ///
    /// # Panics
    /// Where the range is empty.
    #[track_caller]
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        let span = last.checked_sub(first).expect("a range of choices is not empty");
        match span.checked_add(1) {
            Some(count) => first + self.below(count),
            None => self.bits(),
        }
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT
    }

    /// Whether something of this probability happens. Takes one number whatever the probability.
    pub fn happens(&mut self, probability: Probability) -> bool {
        u128::from(self.bits()) < probability.outcomes
    }

    /// A span of the range, both ends included, in whole picoseconds.
    ///
    /// # Panics
    /// Where the range is empty.
    #[track_caller]
    pub fn uniform(&mut self, range: RangeInclusive<Span>) -> Span {
        let (first, last) = range.into_inner();
        Span::from_ps(self.within(first.as_ps()..=last.as_ps()))
    }

    /// An exponentially distributed span of this mean, rounded down to whole picoseconds; at most
    /// 36.8 times the mean, as 53 random bits go, and at most [`Span::MAX`].
    pub fn exponential(&mut self, mean: Span) -> Span {
        // From (0, 1], so that the logarithm is finite.
        let unit = ((self.bits() >> 11) + 1) as f64 * UNIT;
        Span::from_ps((-libm::log(unit) * mean.as_ps() as f64) as u64)
    }
}

/// 2^-53, the step of [`Stream::unit`].
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    // From a second implementation of derivation, generator and distributions, written in Python from
    // their specifications.
    const GOLDEN_BITS: [u64; 4] = [
        3_526_995_750_561_239_757,
        1_560_258_937_909_894_151,
        17_481_942_571_526_338_361,
        11_678_344_639_727_547_458,
    ];
    const GOLDEN_BELOW: [u64; 4] = [191, 84, 947, 633];
    const GOLDEN_WITHIN: [u64; 4] = [11, 10, 15, 13];
    const GOLDEN_UNIT: [u64; 4] = [
        4_596_056_683_865_850_344,
        4_590_759_182_139_375_448,
        4_606_711_324_316_529_510,
        4_603_877_536_263_893_382,
    ];
    const GOLDEN_EXPONENTIAL: [u64; 4] = [1_654_441, 2_470_036, 53719, 457151];
    const GOLDEN_UNIFORM: [u64; 4] = [1191, 1084, 1948, 1633];
    const GOLDEN_HAPPENS: [u64; 4] = [1, 1, 0, 0];

    fn stream() -> Stream {
        Stream::derive(DEFAULT_SEED, "test/golden")
    }

    #[test]
    fn generator_and_derivation_are_pinned() {
        let mut stream = stream();
        let bits: Vec<u64> = (0..4).map(|_| stream.bits()).collect();
        assert_eq!(bits, GOLDEN_BITS);
    }

    #[test]
    fn every_distribution_is_pinned() {
        let first = |draw: fn(&mut Stream) -> u64| {
            let mut stream = stream();
            (0..4).map(|_| draw(&mut stream)).collect::<Vec<u64>>()
        };
        assert_eq!(first(|stream| stream.below(1_000)), GOLDEN_BELOW);
        assert_eq!(first(|stream| stream.within(10..=15)), GOLDEN_WITHIN);
        assert_eq!(first(|stream| stream.unit().to_bits()), GOLDEN_UNIT);
        assert_eq!(first(|stream| stream.exponential(Span::from_us(1)).as_ps()), GOLDEN_EXPONENTIAL);
        assert_eq!(
            first(|stream| stream.uniform(Span::from_ns(1)..=Span::from_ns(2)).as_ps()),
            GOLDEN_UNIFORM
        );
        let third = |stream: &mut Stream| u64::from(stream.happens(Probability::new(1.0 / 3.0).unwrap()));
        assert_eq!(first(third), GOLDEN_HAPPENS);
    }

    #[test]
    fn a_stream_depends_on_its_own_path_and_seed_alone() {
        let first = |seed, path| Stream::derive(seed, path).bits();
        let all = [first(7, "link/loss"), first(8, "link/loss"), first(7, "link/lost"), first(7, "link")];
        let distinct: BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn integers_are_drawn_without_bias() {
        // Of three quarters of 2^64 choices, a product without rejection would give every third twice
        // the chance of the others, that is half of all draws.
        let mut stream = stream();
        let thirds = (0..10_000).filter(|_| stream.below(3 << 62).is_multiple_of(3)).count();
        assert!(thirds.abs_diff(3_333) < 212, "{thirds} of 10000");
        let mut faces = [0_u32; 6];
        for _ in 0..60_000 {
            faces[stream.within(1..=6) as usize - 1] += 1;
        }
        // 4.5 standard deviations of sqrt(60000 x 5/36) = 91.
        assert!(faces.iter().all(|&face| face.abs_diff(10_000) < 410), "{faces:?}");
        assert_eq!(stream.within(9..=9), 9);
        let _ = stream.within(0..=u64::MAX);
    }

    #[test]
    fn an_exponential_span_has_its_mean_and_its_tail() {
        let mut stream = stream();
        let mean = Span::from_us(1);
        let draws: Vec<u64> = (0..100_000).map(|_| stream.exponential(mean).as_ps()).collect();
        let average = draws.iter().sum::<u64>() / draws.len() as u64;
        // 4.5 standard errors of 1/sqrt(100000) of the mean.
        assert!(average.abs_diff(1_000_000) < 14_300, "{average}");
        let beyond = draws.iter().filter(|&&ps| ps > 2_000_000).count();
        // e^-2 of them, 13534, give or take 4.5 x sqrt(13534 x 0.865).
        assert!(beyond.abs_diff(13_534) < 490, "{beyond}");
        assert_eq!(stream.exponential(Span::ZERO), Span::ZERO);
        assert!(stream.exponential(Span::MAX) <= Span::MAX);
    }

    #[test]
    fn what_is_certain_happens_and_what_is_impossible_does_not() {
        let mut stream = stream();
        let (never, always) = (Probability::new(0.0).unwrap(), Probability::new(1.0).unwrap());
        assert!((0..1_000).all(|_| stream.happens(always) && !stream.happens(never)));
        let rare = Probability::new(0.01).unwrap();
        let count = (0..100_000).filter(|_| stream.happens(rare)).count();
        assert!(count.abs_diff(1_000) < 142, "{count}");
        for value in [-0.1, 1.000_1, f64::NAN, f64::INFINITY] {
            assert!(Probability::new(value).is_err());
        }
        assert_eq!(
            Probability::new(1.5).unwrap_err().to_string(),
            "1.5 is no probability: allowed are 0 to 1"
        );
    }
}
