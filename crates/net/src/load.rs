//! Sources of background load: when the next unit (a cell, a PDU, a datagram) comes to be.

use wiretwin_engine::{Probability, Stream};
use wiretwin_units::{SimTime, Span};

/// When units follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// At equal intervals, from a random phase on.
    Constant {
        /// From one unit to the next.
        interval: Span,
    },
    /// At exponentially distributed intervals.
    Poisson {
        /// From one unit to the next on average.
        mean: Span,
    },
    /// In bursts of this number of units, with exponentially distributed pauses between them.
    Bursts {
        /// From one unit to the next on average.
        mean: Span,
        /// From one unit to the next of a burst; at most the mean.
        interval: Span,
        /// Units in a burst on average (geometric), at least 1.
        units: f64,
    },
    /// At equal intervals while it is on; times on and off are exponentially distributed.
    OnOff {
        /// From one unit to the next while on.
        interval: Span,
        /// Mean time on.
        on: Span,
        /// Mean time off.
        off: Span,
    },
}

/// A traffic source.
#[derive(Clone, Debug)]
pub struct Generator {
    law: Law,
    stream: Stream,
    /// When the next unit comes to be.
    next: SimTime,
    /// When it falls silent.
    until: SimTime,
    /// Units of its burst that are still to come.
    left: u64,
}

impl Generator {
    /// A source at time 0, on or off as at any time.
    #[must_use]
    pub fn new(law: Law, mut stream: Stream) -> Self {
        let first = match law {
            Law::Constant { interval } | Law::OnOff { interval, .. } => interval,
            Law::Poisson { mean } | Law::Bursts { mean, .. } => mean,
        };
        let next = SimTime::ZERO + stream.uniform(Span::ZERO..=first);
        let mut found = Self { law, stream, next, until: SimTime::MAX, left: 0 };
        if let Law::OnOff { on, off, .. } = law {
            // A memoryless time is left of whatever it is in.
            let (share, chance) = (on.as_s_f64() / (on.as_s_f64() + off.as_s_f64()), found.stream.unit());
            found.until = SimTime::ZERO;
            if chance < share {
                found.until = SimTime::ZERO + found.stream.exponential(on);
            }
            found.fall_silent();
        }
        found
    }

    /// When the next unit comes to be.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> SimTime {
        self.next
    }

    /// It has.
    #[inline]
    pub fn advance(&mut self) {
        let pause = match self.law {
            Law::Constant { interval } | Law::OnOff { interval, .. } => interval,
            Law::Poisson { mean } => self.stream.exponential(mean),
            Law::Bursts { interval, .. } if self.left > 0 => {
                self.left -= 1;
                interval
            }
            Law::Bursts { mean, interval, units } => {
                let goes_on = Probability::new(1.0 - 1.0 / units).expect("a burst has one unit or more");
                while self.stream.happens(goes_on) {
                    self.left += 1;
                }
                let off = mean.as_ps().saturating_sub(interval.as_ps()) as f64 * units;
                interval + self.stream.exponential(Span::from_ps(off as u64))
            }
        };
        self.next = self.next.saturating_add(pause);
        self.fall_silent();
    }

    /// While the next unit lies beyond the time on, it waits for the next time on: the intervals run only
    /// while the source is on, so that not a part of a unit is lost.
    #[inline]
    fn fall_silent(&mut self) {
        while self.next >= self.until {
            let Law::OnOff { on, off, .. } = self.law else { return };
            let left = self.next.saturating_since(self.until);
            let start = self.until.saturating_add(self.stream.exponential(off));
            self.until = start.saturating_add(self.stream.exponential(on));
            self.next = start.saturating_add(left);
            if start == SimTime::MAX {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(law: Law, seed: u64, until: SimTime) -> Vec<SimTime> {
        let mut generator = Generator::new(law, Stream::derive(seed, "source"));
        let mut times = Vec::new();
        while generator.next() < until {
            times.push(generator.next());
            generator.advance();
        }
        times
    }

    #[test]
    fn a_constant_source_keeps_its_interval() {
        let until = SimTime::ZERO + Span::from_ms(10);
        let times = cells(Law::Constant { interval: Span::from_us(10) }, 1, until);
        assert_eq!(times.len(), 1000);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Span::from_us(10)));
    }

    #[test]
    fn an_on_off_source_sends_its_mean_rate_in_bursts_of_its_mean_length() {
        let (on, off) = (Span::from_ms(2), Span::from_ms(6));
        let law = Law::OnOff { interval: Span::from_us(10), on, off };
        let times = cells(law, 7, SimTime::ZERO + Span::from_s(100));
        // A quarter of 10 cells in 100 us.
        let share = times.len() as f64 / 10_000_000.0;
        assert!((0.24..0.26).contains(&share), "{share}");
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let pauses: Vec<f64> = gaps
            .clone()
            .filter(|gap| *gap > Span::from_us(10))
            .map(|gap| (gap - Span::from_us(10)).as_s_f64())
            .collect();
        assert!(gaps.min() == Some(Span::from_us(10)), "never faster than the peak");
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((0.0057..0.0063).contains(&mean), "{mean} s");
        assert!((11_500..13_500).contains(&pauses.len()), "{} bursts of 2 ms in 100 s", pauses.len());
    }
}
