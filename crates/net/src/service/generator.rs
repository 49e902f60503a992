//! When a source has cells to send.

use wiretwin_engine::Stream;
use wiretwin_units::{BitRate, SimTime, Span};

use super::contract::cell_time;

/// When cells come to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// There always is one: for circuits whose rate is told.
    Greedy,
    /// At this rate, from a random phase on.
    Constant(BitRate),
    /// At this rate while it is on; times on and off are exponential.
    OnOff {
        /// The rate while on.
        peak: BitRate,
        /// Mean time on.
        on: Span,
        /// Mean time off.
        off: Span,
    },
}

/// A source.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    law: Law,
    stream: Stream,
    interval: Span,
    /// When the next cell comes to be.
    next: SimTime,
    /// When it falls silent.
    until: SimTime,
}

impl Generator {
    /// One that is on or off at the beginning as at any time.
    pub(super) fn new(law: Law, mut stream: Stream) -> Self {
        let interval = match law {
            Law::Greedy => Span::ZERO,
            Law::Constant(rate) => cell_time(rate),
            Law::OnOff { peak, .. } => cell_time(peak),
        };
        let phase = SimTime::ZERO + stream.uniform(Span::ZERO..=interval);
        let mut found = Self { law, stream, interval, next: phase, until: SimTime::MAX };
        match law {
            Law::Greedy => found.next = SimTime::MAX,
            Law::Constant(_) => {}
            Law::OnOff { on, off, .. } => {
                // A memoryless time is left of whatever it is in.
                let (share, chance) = (on.as_s_f64() / (on.as_s_f64() + off.as_s_f64()), found.stream.unit());
                found.until = SimTime::ZERO;
                if chance < share {
                    found.until = SimTime::ZERO + found.stream.exponential(on);
                }
                found.fall_silent();
            }
        }
        found
    }

    /// When the next cell comes to be; [`SimTime::MAX`] where that is not a matter of time.
    #[inline]
    pub(super) const fn next(&self) -> SimTime {
        self.next
    }

    /// It has.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next = self.next.saturating_add(self.interval);
        self.fall_silent();
    }

    /// While the next cell lies beyond the time on, it waits for the next time on: the intervals run only
    /// while the source is on, so that not a part of a cell is lost.
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
        let times = cells(Law::Constant(BitRate::bit_s(42_400_000)), 1, until);
        assert_eq!(times.len(), 1000);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Span::from_us(10)));
        assert!(cells(Law::Greedy, 1, until).is_empty());
    }

    #[test]
    fn an_on_off_source_sends_its_mean_rate_in_bursts_of_its_mean_length() {
        let (on, off) = (Span::from_ms(2), Span::from_ms(6));
        let law = Law::OnOff { peak: BitRate::bit_s(42_400_000), on, off };
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
