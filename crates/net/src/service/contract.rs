//! Service categories, what a circuit of each may send, and what is made of cells beyond that.
//!
//! af-tm-0056 §2 for the categories, §4.4.2 for the generic cell rate algorithm in its form of virtual
//! scheduling, §4.3 for conformance. What is guaranteed of a circuit ([`Category::guaranteed`]) is what
//! admission counts. Left out: early and partial packet discard, frame-based conformance (GFR came later).

use wiretwin_plan::PlanError;
use wiretwin_proto::abr;
use wiretwin_units::{BitRate, Cells, SimTime, Span};

/// A category of service, with the parameters of a circuit's contract. Rates count 424 bits a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Category {
    /// Constant bit rate.
    Cbr {
        /// PCR.
        peak: BitRate,
        /// CDVT: how early a cell may come.
        tolerance: Span,
    },
    /// Variable bit rate.
    Vbr {
        /// PCR.
        peak: BitRate,
        /// CDVT, of the peak rate.
        tolerance: Span,
        /// SCR: at most the peak rate.
        sustained: BitRate,
        /// MBS: cells that may come at the peak rate, 1 or more.
        burst: Cells,
    },
    /// Available bit rate.
    Abr(abr::Config),
    /// Unspecified bit rate: nothing is promised, nothing asked.
    Ubr,
}

impl Category {
    /// Its name, in lower case.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cbr { .. } => "cbr",
            Self::Vbr { .. } => "vbr",
            Self::Abr(_) => "abr",
            Self::Ubr => "ubr",
        }
    }

    /// What a port sets aside for a circuit, in bit/s.
    ///
    /// Choice: of VBR the sustained rate, so that bursts of several may meet in the buffer.
    #[must_use]
    pub fn guaranteed(&self) -> f64 {
        match self {
            Self::Cbr { peak, .. } => peak.get() as f64,
            Self::Vbr { sustained, .. } => sustained.get() as f64,
            Self::Abr(config) => config.mcr.cells_per_s() * CELL_BITS as f64,
            Self::Ubr => 0.0,
        }
    }

    /// Whether there is such a contract.
    ///
    /// # Errors
    /// [`PlanError`] naming the parameter.
    pub fn check(&self) -> Result<(), PlanError> {
        match self {
            Self::Vbr { peak, sustained, burst, .. } => {
                if sustained > peak {
                    return Err(PlanError::new("scr", sustained, format!("at most PCR, {peak}")));
                }
                if burst.is_zero() {
                    return Err(PlanError::new("mbs", burst, "1 cell or more"));
                }
                Ok(())
            }
            Self::Abr(config) => {
                config.check().map_err(|error| PlanError::new("abr", error, "rates that can be"))
            }
            Self::Cbr { .. } | Self::Ubr => Ok(()),
        }
    }

    /// What looks after it at the entrance to the network; nothing of ABR, whose source keeps to its rate,
    /// and of UBR.
    #[must_use]
    pub fn policer(&self) -> Option<Policer> {
        match *self {
            Self::Cbr { peak, tolerance } => {
                Some(Policer { peak: Gcra::new(cell_time(peak), tolerance), sustained: None })
            }
            Self::Vbr { peak, tolerance, sustained, burst } => {
                let (t, t_s) = (cell_time(peak), cell_time(sustained));
                // BT = (MBS - 1)(1/SCR - 1/PCR), and the tolerance on top of it.
                let burst_tolerance = t_s.as_ps().saturating_sub(t.as_ps()).saturating_mul(burst.get() - 1);
                let limit = Span::from_ps(burst_tolerance.saturating_add(tolerance.as_ps()));
                Some(Policer { peak: Gcra::new(t, tolerance), sustained: Some(Gcra::new(t_s, limit)) })
            }
            Self::Abr(_) | Self::Ubr => None,
        }
    }
}

/// GCRA(T, tau).
#[derive(Clone, Copy, Debug)]
pub struct Gcra {
    increment: Span,
    limit: Span,
    /// TAT: when the next cell is expected.
    expected: SimTime,
}

impl Gcra {
    /// For cells this far apart that may come so much too early.
    #[must_use]
    pub const fn new(increment: Span, limit: Span) -> Self {
        Self { increment, limit, expected: SimTime::ZERO }
    }

    /// Whether a cell that comes now conforms.
    #[must_use]
    pub fn admits(&self, now: SimTime) -> bool {
        now.saturating_add(self.limit) >= self.expected
    }

    /// Counts a cell that conforms.
    pub fn count(&mut self, now: SimTime) {
        self.expected = self.expected.max(now).saturating_add(self.increment);
    }
}

/// The policer of one circuit.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    peak: Gcra,
    sustained: Option<Gcra>,
}

impl Policer {
    /// A cell comes; whether it conforms to every rate. One that does not counts for none.
    pub fn conforms(&mut self, now: SimTime) -> bool {
        if !self.peak.admits(now) || self.sustained.is_some_and(|gcra| !gcra.admits(now)) {
            return false;
        }
        self.peak.count(now);
        if let Some(gcra) = &mut self.sustained {
            gcra.count(now);
        }
        true
    }
}

/// From one cell to the next at a rate, rounded down: a source that keeps to the rate conforms.
pub(super) fn cell_time(rate: BitRate) -> Span {
    Span::from_ps((u128::from(CELL_BITS) * 1_000_000_000_000 / u128::from(rate.get())) as u64)
}

/// Bits of a cell.
pub(super) const CELL_BITS: u64 = 424;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn us(us: u64) -> SimTime {
        SimTime::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_cell_that_comes_too_early_does_not_conform_and_is_not_counted() {
        let mut gcra = Gcra::new(Span::from_us(10), Span::from_us(3));
        let mut take = |at| {
            let admits = gcra.admits(us(at));
            if admits {
                gcra.count(us(at));
            }
            admits
        };
        assert_eq!([0, 7, 16, 17, 27, 37].map(&mut take), [true, true, false, true, true, true]);
        assert!(!take(46), "47 would be in time");
    }

    #[test]
    fn a_burst_of_mbs_cells_may_come_at_the_peak_rate_and_no_more() {
        let rate = BitRate::bit_s;
        let vbr = Category::Vbr {
            peak: rate(42_400_000),
            tolerance: Span::ZERO,
            sustained: rate(4_240_000),
            burst: Cells::new(5),
        };
        let mut policer = vbr.policer().expect("VBR is policed");
        let conform: Vec<bool> = (0..8).map(|cell| policer.conforms(us(10 * cell))).collect();
        assert_eq!(conform, [true, true, true, true, true, false, false, false]);
        assert!(policer.conforms(us(5 * 100)), "in time for the sustained rate");
    }

    #[test]
    fn a_contract_that_cannot_be_is_refused_with_what_is_allowed() {
        let (peak, tolerance) = (BitRate::mbit_s(1), Span::ZERO);
        let vbr = |sustained, burst| Category::Vbr { peak, tolerance, sustained, burst: Cells::new(burst) };
        for (category, said) in [
            (vbr(BitRate::mbit_s(2), 5), "scr is 2 Mbit/s; allowed: at most PCR, 1 Mbit/s"),
            (vbr(peak, 0), "mbs is 0 cells; allowed: 1 cell or more"),
        ] {
            assert_eq!(category.check().expect_err(said).to_string(), said);
        }
        assert_eq!(vbr(peak, 1).check(), Ok(()));
    }

    proptest! {
        /// The other form of the standard: a bucket that leaks.
        #[test]
        fn virtual_scheduling_is_the_leaky_bucket(
            increment in 1_u64..50, limit in 0_u64..100, gaps in prop::collection::vec(0_u64..60, 1..100),
        ) {
            let mut gcra = Gcra::new(Span::from_us(increment), Span::from_us(limit));
            let (mut level, mut last, mut now) = (0_u64, 0, 0);
            for gap in gaps {
                now += gap;
                let left = level.saturating_sub(now - last);
                let conforms = left <= limit;
                prop_assert_eq!(gcra.admits(us(now)), conforms);
                if conforms {
                    (level, last) = (left + increment, now);
                    gcra.count(us(now));
                }
            }
        }
    }
}
