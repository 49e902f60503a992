//! What two ends of a connection agree upon.

use core::fmt;

use wiretwin_units::{Cells, Span};

use super::CellRate;

/// The parameters of a source, af-tm-0056 §5.10.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// PCR: never faster. 0 to 16 777 215 cells/s.
    pub pcr: CellRate,
    /// MCR: always allowed. At most PCR. Default 0.
    pub mcr: CellRate,
    /// ICR: at first, and after a pause longer than ADTF. MCR to PCR. Default PCR.
    pub icr: CellRate,
    /// RIF, as the number of halvings of 1: 0 (1) to 15 (1/32768). Default 4 (1/16).
    pub rif_halvings: u8,
    /// RDF, likewise. Default 4 (1/16).
    pub rdf_halvings: u8,
    /// Nrm: cells per forward RM cell, that cell included. A power of two from 2 to 256. Default 32.
    pub nrm: Cells,
    /// Trm: the longest between forward RM cells while there is something to send. 100 ms and its
    /// halvings down to 781.25 us. Default 100 ms.
    pub trm: Span,
    /// TBE: cells sent before the first feedback may come. 0 to 16 777 215. Default 16 777 215.
    pub tbe: Cells,
    /// FRTT: the fixed part of the round trip. At most 16.7 s.
    pub frtt: Span,
    /// CDF, as the number of halvings of 1, 0 to 6 (1/64); `None` is 0. Default 4 (1/16).
    pub cdf_halvings: Option<u8>,
    /// ADTF: a rate that is not used for so long is given up. 10 ms to 10.23 s in steps of 10 ms.
    /// Default 500 ms.
    pub adtf: Span,
}

/// A parameter out of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// A rate is above what signalling can say.
    Rate {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: CellRate,
        /// The most it may be.
        most: CellRate,
    },
    /// A rate is below the one it may not be below.
    TooLow {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: CellRate,
        /// The least it may be, the minimum rate.
        least: CellRate,
    },
    /// Another parameter, with what is allowed.
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value, in the unit of `allowed`.
        value: u64,
        /// What it may be.
        allowed: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { name, value, most } => write!(f, "{name} is {value}: allowed is at most {most}"),
            Self::TooLow { name, value, least } => {
                write!(f, "{name} is {value}, below the minimum cell rate of {least}")
            }
            Self::Value { name, value, allowed } => write!(f, "{name} is {value}: allowed is {allowed}"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// The defaults for a peak rate, without propagation.
    #[must_use]
    pub const fn new(pcr: CellRate) -> Self {
        Self {
            pcr,
            mcr: CellRate::ZERO,
            icr: pcr,
            rif_halvings: 4,
            rdf_halvings: 4,
            nrm: Cells::new(32),
            trm: Span::from_ms(100),
            tbe: Cells::new(MOST_CELLS),
            frtt: Span::ZERO,
            cdf_halvings: Some(4),
            adtf: Span::from_ms(500),
        }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// [`ConfigError`] for the first that is not, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        let most = CellRate::raw(MOST_CELLS as f64);
        for (name, value, most) in
            [("PCR", self.pcr, most), ("MCR", self.mcr, self.pcr), ("ICR", self.icr, self.pcr)]
        {
            if value > most {
                return Err(ConfigError::Rate { name, value, most });
            }
        }
        if self.icr < self.mcr {
            return Err(ConfigError::TooLow { name: "ICR", value: self.icr, least: self.mcr });
        }
        let value = |good, name, value, allowed| {
            if good { Ok(()) } else { Err(ConfigError::Value { name, value, allowed }) }
        };
        let (rif, rdf) = (u64::from(self.rif_halvings), u64::from(self.rdf_halvings));
        value(rif <= 15, "RIF", rif, "0 to 15 halvings")?;
        value(rdf <= 15, "RDF", rdf, "0 to 15 halvings")?;
        let nrm = self.nrm.get();
        value(
            (2..=256).contains(&nrm) && nrm.is_power_of_two(),
            "Nrm",
            nrm,
            "2, 4, 8 and so on to 256 cells",
        )?;
        let (trm, longest) = (self.trm.as_ps(), Span::from_ms(100).as_ps());
        let halving = (0..=7).any(|halvings| longest >> halvings == trm);
        value(halving, "Trm", trm, "100 ms halved 0 to 7 times, in ps")?;
        value(self.tbe.get() <= MOST_CELLS, "TBE", self.tbe.get(), "0 to 16777215 cells")?;
        value(self.frtt <= Span::from_ms(16_700), "FRTT", self.frtt.as_ps(), "0 to 16.7 s, in ps")?;
        if let Some(cdf) = self.cdf_halvings {
            value(cdf <= 6, "CDF", u64::from(cdf), "0 to 6 halvings, or none")?;
        }
        let (adtf, step) = (self.adtf.as_ps(), Span::from_ms(10).as_ps());
        let steps = adtf.is_multiple_of(step) && (1..=1023).contains(&(adtf / step));
        value(steps, "ADTF", adtf, "10 ms to 10.23 s in steps of 10 ms, in ps")
    }

    /// The rate to begin with: ICR, and no more than fills the network before feedback comes.
    ///
    /// af-tm-0056 §5.10.2.2: ICR becomes the lesser of ICR and TBE/FRTT once the round trip is known.
    #[must_use]
    pub fn initial(&self) -> CellRate {
        if self.frtt.is_zero() {
            return self.icr;
        }
        let exposed = CellRate::raw(self.tbe.get() as f64 / self.frtt.as_s_f64());
        self.icr.min(exposed).max(self.mcr)
    }

    /// CRM: forward RM cells without an answer before the source slows down, TBE/Nrm.
    ///
    /// Choice: rounded up, and at least 1; §5.10.2.2 wants an integer and does not say which.
    #[must_use]
    pub const fn crm(&self) -> u64 {
        let crm = self.tbe.get().div_ceil(self.nrm.get());
        if crm == 0 { 1 } else { crm }
    }
}

/// What signalling can say: 24 bits.
const MOST_CELLS: u64 = 0xFF_FFFF;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn rate(cells_per_s: f64) -> CellRate {
        CellRate::new(cells_per_s).expect("a rate")
    }

    #[test]
    fn the_defaults_are_in_range() {
        assert_eq!(Config::new(rate(353_207.0)).check(), Ok(()));
        assert_eq!(Config::new(rate(353_207.0)).crm(), 524_288);
    }

    #[test]
    fn every_parameter_out_of_range_is_named_with_what_is_allowed() {
        let good = Config::new(rate(100_000.0));
        for (config, says) in [
            (Config::new(rate(1.7e7)), "PCR is 17000000 cells/s: allowed is at most 16777215 cells/s"),
            (Config { mcr: rate(2e5), ..good }, "MCR is 200000 cells/s: allowed is at most 100000 cells/s"),
            (Config { icr: rate(2e5), ..good }, "ICR is 200000 cells/s: allowed is at most 100000 cells/s"),
            (
                Config { mcr: rate(10.0), icr: rate(5.0), ..good },
                "ICR is 5 cells/s, below the minimum cell rate of 10 cells/s",
            ),
            (Config { rif_halvings: 16, ..good }, "RIF is 16: allowed is 0 to 15 halvings"),
            (Config { rdf_halvings: 16, ..good }, "RDF is 16: allowed is 0 to 15 halvings"),
            (Config { nrm: Cells::new(33), ..good }, "Nrm is 33: allowed is 2, 4, 8 and so on to 256 cells"),
            (
                Config { nrm: Cells::new(512), ..good },
                "Nrm is 512: allowed is 2, 4, 8 and so on to 256 cells",
            ),
            (
                Config { trm: Span::from_ms(90), ..good },
                "Trm is 90000000000: allowed is 100 ms halved 0 to 7 times, in ps",
            ),
            (Config { tbe: Cells::new(1 << 24), ..good }, "TBE is 16777216: allowed is 0 to 16777215 cells"),
            (
                Config { frtt: Span::from_s(17), ..good },
                "FRTT is 17000000000000: allowed is 0 to 16.7 s, in ps",
            ),
            (Config { cdf_halvings: Some(7), ..good }, "CDF is 7: allowed is 0 to 6 halvings, or none"),
            (
                Config { adtf: Span::from_ms(15), ..good },
                "ADTF is 15000000000: allowed is 10 ms to 10.23 s in steps of 10 ms, in ps",
            ),
        ] {
            assert_eq!(config.check().expect_err("out of range").to_string(), says);
        }
    }

    #[test]
    fn the_initial_rate_does_not_expose_the_network() {
        let exposed = Config { tbe: Cells::new(1000), frtt: Span::from_ms(20), ..Config::new(rate(1e5)) };
        assert_eq!(exposed.initial(), rate(50_000.0));
        assert_eq!(
            Config { mcr: rate(6e4), ..exposed }.initial(),
            rate(6e4),
            "what is guaranteed is allowed"
        );
        assert_eq!(Config { frtt: Span::ZERO, ..exposed }.initial(), rate(1e5));
        assert_eq!(exposed.crm(), 32);
        assert_eq!(Config { tbe: Cells::new(0), ..exposed }.crm(), 1);
    }
}
