//! Virtual time, the time of a host's clock, and spans of either.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::str::FromStr;

use crate::arithmetic::amount_arithmetic;
use crate::decimal::{Unit, write_decimal};
use crate::parse::{ParseQuantityError, Quantity, parse};

/// An instant of virtual time: picoseconds since the start of the run.
///
/// Two of them subtract to a [`Span`]; one and a [`HostTime`] do not:
///
/// ```compile_fail
/// # use wiretwin_units::{HostTime, SimTime};
/// let _ = SimTime::from_ps(1) - HostTime::from_ns(1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

/// An instant of a host's clock: nanoseconds since that clock's own zero.
///
/// Which clock is a property of the record: a process reads one clock, and writes its name, cost
/// and resolution beside its samples. Readings of two clocks are not to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostTime(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

amount_arithmetic!(Span, "spans");

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

const PRINTED: &[Unit] = &[
    Unit::new("s", PS_PER_S),
    Unit::new("ms", PS_PER_MS),
    Unit::new("us", PS_PER_US),
    Unit::new("ns", PS_PER_NS),
    Unit::new("ps", 1),
];

const PRINTED_HOST: &[Unit] = &[
    Unit::new("s", PS_PER_S / PS_PER_NS),
    Unit::new("ms", PS_PER_MS / PS_PER_NS),
    Unit::new("us", PS_PER_US / PS_PER_NS),
    Unit::new("ns", 1),
];

const TIME: Quantity = Quantity {
    what: "a time",
    units: &[
        Unit::new("ps", 1),
        Unit::new("ns", PS_PER_NS),
        Unit::new("us", PS_PER_US),
        Unit::new("ms", PS_PER_MS),
        Unit::new("s", PS_PER_S),
    ],
    // The micro sign and the Greek letter look alike and are both typed.
    aliases: &[Unit::new("\u{b5}s", PS_PER_US), Unit::new("\u{3bc}s", PS_PER_US)],
    smallest: "ps",
};

impl SimTime {
    /// The start of the run.
    pub const ZERO: Self = Self(0);

    /// The last instant there is, 213 days after the start.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant this many picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The time since the start.
    pub const fn since_start(self) -> Span {
        Span(self.0)
    }

    /// The instant `span` later, or `None` beyond [`SimTime::MAX`].
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The instant `span` later, at most [`SimTime::MAX`].
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The time since `earlier`, or `None` where that is the later.
    pub const fn checked_since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ps) => Some(Span(ps)),
            None => None,
        }
    }

    /// The time since `earlier`, zero where that is the later.
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl HostTime {
    /// This many nanoseconds after the clock's zero.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or `None` where that is the later or the span exceeds
    /// [`Span::MAX`].
    pub const fn checked_since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Span::checked_from_ns(ns),
            None => None,
        }
    }

    /// The time since `earlier`: zero where that is the later, at most [`Span::MAX`].
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0).saturating_mul(PS_PER_NS))
    }

    /// The reading at least `span` later, whole nanoseconds being what the clock has; `None` beyond
    /// its range.
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0.div_ceil(PS_PER_NS)) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
}

impl Span {
    /// A span of this many picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of this many nanoseconds; panics beyond [`Span::MAX`], which in a `const` is a compile
    /// error.
    pub const fn from_ns(ns: u64) -> Self {
        Self::checked_from_ns(ns).expect("a span fits 64 bits of ps")
    }

    /// A span of this many microseconds; panics as [`Span::from_ns`].
    pub const fn from_us(us: u64) -> Self {
        Self(us.checked_mul(PS_PER_US).expect("a span fits 64 bits of ps"))
    }

    /// A span of this many milliseconds; panics as [`Span::from_ns`].
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.checked_mul(PS_PER_MS).expect("a span fits 64 bits of ps"))
    }

    /// A span of this many seconds; panics as [`Span::from_ns`].
    pub const fn from_s(s: u64) -> Self {
        Self(s.checked_mul(PS_PER_S).expect("a span fits 64 bits of ps"))
    }

    /// A span of this many nanoseconds, or `None` beyond [`Span::MAX`].
    pub const fn checked_from_ns(ns: u64) -> Option<Self> {
        match ns.checked_mul(PS_PER_NS) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The span in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The whole nanoseconds of the span.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The span in seconds, for statistics and plots; exact below 2^53 ps (2.5 hours).
    pub const fn as_s_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
}

impl Add<Span> for SimTime {
    type Output = Self;

    /// # Panics
    /// Beyond [`SimTime::MAX`].
    #[track_caller]
    fn add(self, span: Span) -> Self {
        self.checked_add(span).expect("virtual time ends after 213 days")
    }
}

impl AddAssign<Span> for SimTime {
    #[track_caller]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for SimTime {
    type Output = Self;

    /// # Panics
    /// Before the start of the run.
    #[track_caller]
    fn sub(self, span: Span) -> Self {
        Self(self.0.checked_sub(span.0).expect("no virtual time lies before the start of the run"))
    }
}

impl SubAssign<Span> for SimTime {
    #[track_caller]
    fn sub_assign(&mut self, span: Span) {
        *self = *self - span;
    }
}

impl Sub for SimTime {
    type Output = Span;

    /// # Panics
    /// Where `earlier` is the later of the two.
    #[track_caller]
    fn sub(self, earlier: Self) -> Span {
        self.checked_since(earlier).expect("the earlier of two instants is subtracted")
    }
}

impl Sub for HostTime {
    type Output = Span;

    /// # Panics
    /// Where `earlier` is the later of the two, or they are over 213 days apart.
    #[track_caller]
    fn sub(self, earlier: Self) -> Span {
        self.checked_since(earlier)
            .expect("the earlier of two readings is subtracted, and they are within 213 days")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, PRINTED)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, PRINTED)
    }
}

impl fmt::Display for HostTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, PRINTED_HOST)
    }
}

impl FromStr for Span {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &TIME).map(Self)
    }
}

impl FromStr for SimTime {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &TIME).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn spans_read_and_print_as_exact_decimals() {
        for (text, ps) in [
            ("2.8 us", 2_800_000),
            ("2.726337 us", 2_726_337),
            ("1 ps", 1),
            ("999 ps", 999),
            ("1 ns", 1_000),
            ("1.5 ms", 1_500_000_000),
            ("20 s", 20_000_000_000_000),
            ("1.000000000001 s", 1_000_000_000_001),
        ] {
            assert_eq!(text.parse(), Ok(Span::from_ps(ps)));
            assert_eq!(Span::from_ps(ps).to_string(), text);
        }
        assert_eq!("0.5 \u{b5}s".parse(), Ok(Span::from_ns(500)));
        assert_eq!("0.5 \u{3bc}s".parse(), Ok(Span::from_ns(500)));
        assert_eq!("0 s".parse(), Ok(Span::ZERO));
        assert_eq!(Span::ZERO.to_string(), "0 ps");
    }

    #[test]
    fn a_precision_rounds_half_up() {
        assert_eq!(format!("{:.2}", Span::from_ps(2_726_337)), "2.73 us");
        assert_eq!(format!("{:.0}", Span::from_ps(1_500)), "2 ns");
        assert_eq!(format!("{:.3}", Span::from_ps(1)), "1.000 ps");
        assert_eq!(format!("{:.30}", Span::MAX), "18446744.073709551615000000 s");
    }

    #[test]
    fn part_of_a_picosecond_is_refused() {
        let error = "0.0001 ns".parse::<Span>().unwrap_err();
        assert_eq!(error.to_string(), "`0.0001 ns` is not a whole number of ps, as a time must be");
    }

    #[test]
    fn a_bare_time_is_refused() {
        let error = "2.8".parse::<Span>().unwrap_err();
        assert_eq!(error.to_string(), "`2.8` has no unit: a time is a number with one of ps, ns, us, ms, s");
    }

    #[test]
    fn both_kinds_of_time_subtract_to_a_span_in_picoseconds() {
        assert_eq!(SimTime::from_ps(1_500) - SimTime::from_ps(500), Span::from_ns(1));
        assert_eq!(HostTime::from_ns(7) - HostTime::from_ns(4), Span::from_ps(3_000));
        assert_eq!(HostTime::from_ns(4).checked_since(HostTime::from_ns(7)), None);
        assert_eq!(HostTime::from_ns(4).saturating_since(HostTime::from_ns(7)), Span::ZERO);
        assert_eq!(HostTime::from_ns(u64::MAX).checked_since(HostTime::from_ns(0)), None);
        assert_eq!(HostTime::from_ns(u64::MAX).saturating_since(HostTime::from_ns(0)), Span::MAX);
    }

    #[test]
    fn a_host_clock_reaches_a_deadline_at_the_next_whole_nanosecond() {
        assert_eq!(HostTime::from_ns(1).checked_add(Span::from_ps(1)), Some(HostTime::from_ns(2)));
        assert_eq!(HostTime::from_ns(u64::MAX).checked_add(Span::from_ps(1)), None);
    }

    #[test]
    #[should_panic(expected = "the earlier of two instants is subtracted")]
    fn a_later_instant_is_not_subtracted_from_an_earlier() {
        let _ = SimTime::from_ps(1) - SimTime::from_ps(2);
    }

    #[test]
    #[should_panic(expected = "virtual time ends after 213 days")]
    fn virtual_time_does_not_wrap() {
        let _ = SimTime::MAX + Span::from_ps(1);
    }
}
