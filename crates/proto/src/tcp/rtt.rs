//! Round trips and the retransmission time-out: Jacobson 1988 in ticks as BSD has it
//! (`tcp_xmit_timer`), or RFC 6298 to the nanosecond.

use wiretwin_units::Span;

use super::config::{Clock, Config};

/// The estimator of one connection.
///
/// On a clock of ticks, `srtt` is in eighths of a tick and `rttvar` in quarters, and `rto` in ticks;
/// on a fine clock the two are nanoseconds and `rto` is microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    srtt: i64,
    rttvar: i64,
    rto: u32,
    /// How often the time-out was backed off since the last measurement (`t_rxtshift`).
    shift: u8,
}

impl Rtt {
    pub(super) fn new(config: &Config) -> Self {
        let initial = units(config, config.rto.initial);
        // With no measurement the deviation alone makes the time-out: BSD holds it doubled, so that
        // with four deviations the first back-off starts from twice the initial time-out.
        let rttvar = match config.clock {
            Clock::Ticks { .. } => 2 * initial,
            Clock::Fine => initial / i64::from(config.rto.deviations),
        };
        Self { srtt: 0, rttvar, rto: clamped(config, initial), shift: 0 }
    }

    /// Takes a measured round trip, of a segment that was sent once (Karn).
    pub(super) fn sample(&mut self, config: &Config, measured: Span) {
        let measured = units(config, measured);
        match config.clock {
            Clock::Ticks { .. } => self.sample_ticks(measured + 1),
            Clock::Fine if self.srtt == 0 => {
                // RFC 6298 (2.2).
                self.srtt = measured.max(1);
                self.rttvar = measured / 2;
            }
            Clock::Fine => {
                // RFC 6298 (2.3).
                self.rttvar += ((self.srtt - measured).abs() - self.rttvar) / 4;
                self.srtt = (self.srtt + (measured - self.srtt) / 8).max(1);
            }
        }
        self.restart(config);
    }

    /// `rtt` ticks, the one in which the segment went counted in.
    fn sample_ticks(&mut self, rtt: i64) {
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.rttvar = rtt << 1;
            return;
        }
        let delta = rtt - 1 - (self.srtt >> 3);
        self.srtt = (self.srtt + delta).max(1);
        self.rttvar = (self.rttvar + delta.abs() - (self.rttvar >> 2)).max(1);
    }

    /// Undoes every back-off.
    pub(super) fn restart(&mut self, config: &Config) {
        self.shift = 0;
        self.rto = clamped(config, self.value(config));
    }

    /// Forgets how often it was backed off, but not how far.
    pub(super) fn forgive(&mut self) {
        self.shift = 0;
    }

    /// Doubles the time-out; false where that was once too often.
    #[must_use]
    pub(super) fn back_off(&mut self, config: &Config) -> bool {
        if self.shift >= config.rto.most {
            return false;
        }
        self.shift += 1;
        let doublings = self.shift.min(config.rto.doublings);
        let base = match config.clock {
            // BSD bounds the product, so that on a short path the first doublings do not show.
            Clock::Ticks { .. } => self.value(config),
            Clock::Fine => self.value(config).max(units(config, config.rto.min)),
        };
        self.rto = clamped(config, base << doublings);
        if let Clock::Ticks { .. } = config.clock
            && self.shift > config.rto.most / 4
        {
            // The estimate is likely wrong: the next measurement is to replace it, and until then the
            // deviation carries what it amounted to.
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
        true
    }

    /// How often it was backed off.
    pub(super) const fn shift(&self) -> u8 {
        self.shift
    }

    /// Counts a probe as a back-off, and says the time to the next (`tcp_setpersist`).
    pub(super) fn persist(&mut self, config: &Config) -> Span {
        let base = match config.clock {
            Clock::Ticks { .. } => ((self.srtt >> 2) + self.rttvar) >> 1,
            Clock::Fine => self.value(config).max(units(config, config.rto.min)),
        };
        let doublings = self.shift.min(config.rto.doublings);
        if self.shift < config.rto.most {
            self.shift += 1;
        }
        let (least, most) = config.persist;
        span(config, base << doublings).clamp(least, most)
    }

    /// The time-out as it stands.
    pub(super) fn rto(&self, config: &Config) -> Span {
        match config.clock {
            Clock::Ticks { slow, .. } => Span::from_ps(u64::from(self.rto).saturating_mul(slow.as_ps())),
            Clock::Fine => Span::from_us(u64::from(self.rto)),
        }
    }

    /// RFC 6298 (5.7): a time-out that rests on no measurement is at least this.
    pub(super) fn at_least(&mut self, config: &Config, least: Span) {
        self.rto = self.rto.max(coarse(config, units(config, least)));
    }

    /// The smoothed round trip, if one was measured.
    pub(super) fn smoothed(&self, config: &Config) -> Option<Span> {
        let srtt = match config.clock {
            Clock::Ticks { slow, .. } => (self.srtt as u64).saturating_mul(slow.as_ps() / 8),
            Clock::Fine => (self.srtt as u64).saturating_mul(1_000),
        };
        (srtt > 0).then(|| Span::from_ps(srtt))
    }

    /// Smoothed round trip and deviations, neither clamped nor backed off.
    fn value(&self, config: &Config) -> i64 {
        match config.clock {
            Clock::Ticks { .. } if config.rto.deviations == 2 => ((self.srtt >> 2) + self.rttvar) >> 1,
            Clock::Ticks { .. } => (self.srtt >> 3) + self.rttvar,
            Clock::Fine => self.srtt + i64::from(config.rto.deviations) * self.rttvar,
        }
    }
}

/// A span in the units of the clock, at least as short as the span.
fn units(config: &Config, span: Span) -> i64 {
    let units = match config.clock {
        Clock::Ticks { slow, .. } => span.as_ps() / slow.as_ps(),
        Clock::Fine => span.as_ns(),
    };
    // Room for the doublings.
    units.min(1 << 46) as i64
}

fn span(config: &Config, units: i64) -> Span {
    let unit = match config.clock {
        Clock::Ticks { slow, .. } => slow.as_ps(),
        Clock::Fine => 1_000,
    };
    Span::from_ps((units.max(0) as u64).saturating_mul(unit))
}

/// A time-out within its bounds, in its own units.
fn clamped(config: &Config, rto: i64) -> u32 {
    coarse(config, rto.clamp(units(config, config.rto.min), units(config, config.rto.max)))
}

fn coarse(config: &Config, units: i64) -> u32 {
    let rto = match config.clock {
        Clock::Ticks { .. } => units,
        Clock::Fine => units / 1_000,
    };
    rto.clamp(1, i64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn ticks(count: u64) -> Span {
        Span::from_ms(500 * count)
    }

    #[test]
    fn the_first_time_outs_are_those_that_bsd_is_known_for() {
        let backed_off = |config: &Config| {
            let mut rtt = Rtt::new(config);
            let mut all: Vec<u64> = [rtt.rto(config).as_ps() / 1_000_000_000_000].into();
            for _ in 0..4 {
                assert!(rtt.back_off(config));
                all.push(rtt.rto(config).as_ps() / 1_000_000_000_000);
            }
            all
        };
        assert_eq!(backed_off(&Config::bsd43_reno()), [6, 24, 48, 64, 64]);
        assert_eq!(backed_off(&Config::bsd43_tahoe()), [6, 12, 24, 48, 64]);
        assert_eq!(backed_off(&Config::linux_modern()), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn a_short_round_trip_in_ticks_settles_at_three_of_them() {
        let config = Config::bsd43_reno();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, ticks(0));
        assert_eq!((rtt.srtt, rtt.rttvar, rtt.rto), (8, 2, 3), "srtt one tick, half a tick of deviation");
        for _ in 0..100 {
            rtt.sample(&config, ticks(0));
        }
        assert_eq!((rtt.srtt, rtt.rttvar), (7, 3), "both stick where the shifts round them");
        assert_eq!(rtt.rto(&config), Span::from_ms(1_500));
    }

    #[test]
    fn a_steady_round_trip_in_ticks_is_found() {
        let config = Config::bsd43_reno();
        let mut rtt = Rtt::new(&config);
        for _ in 0..200 {
            rtt.sample(&config, ticks(10));
        }
        assert_eq!(rtt.smoothed(&config).map(|srtt| srtt.as_ps() / ticks(1).as_ps()), Some(10));
        assert!(rtt.rto(&config) <= ticks(14), "{}", rtt.rto(&config));
    }

    #[test]
    fn rfc_6298_measures_to_the_nanosecond() {
        let config = Config::linux_modern();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, Span::from_ms(100));
        assert_eq!(rtt.rto(&config), Span::from_ms(300), "R + 4 R/2");
        rtt.sample(&config, Span::from_ms(180));
        // RTTVAR = 3/4 50 + 1/4 80 = 57.5, SRTT = 110.
        assert_eq!(rtt.rto(&config), Span::from_ms(340));
        assert_eq!(rtt.smoothed(&config), Some(Span::from_ms(110)));
    }

    #[test]
    fn a_peer_that_never_answers_is_given_up() {
        for config in Config::presets() {
            let mut rtt = Rtt::new(&config);
            let retransmissions = (0..).take_while(|_| rtt.back_off(&config)).count();
            assert_eq!(retransmissions, usize::from(config.rto.most), "{}", config.name);
            assert_eq!(rtt.rto(&config), config.rto.max);
        }
    }

    #[test]
    fn probes_of_a_closed_window_come_at_5_5_6_12_24_48_60_seconds() {
        // Stevens 1994, §22.2: from a time-out of 1.5 s.
        let config = Config::bsd43_reno();
        let mut rtt = Rtt { srtt: 12, rttvar: 3, ..Rtt::new(&config) };
        let spans: Vec<u64> = (0..8).map(|_| rtt.persist(&config).as_ps() / 1_000_000_000_000).collect();
        assert_eq!(spans, [5, 5, 6, 12, 24, 48, 60, 60]);
    }
}
