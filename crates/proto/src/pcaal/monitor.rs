//! What watches a circuit: latencies and losses in, high or low out.

use wiretwin_units::{SimTime, Span};

use super::config::{Config, Watch};

/// What was learned of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Its latency is high.
    pub high: bool,
    /// The stamp of the cell that showed it, or of the one that should have come: ns.
    pub stamp: u64,
}

/// The receiver's half of the monitoring element or, for [`Watch::RoundTrip`], the sender's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Monitor {
    watch: Watch,
    high_threshold: i64,
    low_threshold: i64,
    interval: Span,
    loss_threshold: Span,
    high: bool,
    /// The average, in ns, once there is one.
    average: Option<i64>,
    /// When the next monitoring cell is lost; nothing is awaited before the first came.
    lost_at: Option<SimTime>,
    /// The number and stamp of the last.
    last: Option<(u32, u64)>,
}

impl Monitor {
    pub(super) fn new(config: &Config, watch: Watch) -> Self {
        let ns = |span: Span| (span.as_ps() / 1_000) as i64;
        Self {
            watch,
            high_threshold: ns(config.high_threshold),
            low_threshold: ns(config.low_threshold),
            interval: config.monitor_interval,
            loss_threshold: config.loss_threshold,
            high: false,
            average: None,
            lost_at: None,
            last: None,
        }
    }

    pub(super) const fn is_high(&self) -> bool {
        self.high
    }

    /// When to look for a loss.
    pub(super) const fn deadline(&self) -> Option<SimTime> {
        self.lost_at
    }

    /// A monitoring cell came; false for one that is no later than the last that did.
    pub(super) fn monitored(&mut self, now: SimTime, number: u32, stamp: u64) -> bool {
        if self.last.is_some_and(|(last, _)| number.wrapping_sub(last).wrapping_sub(1) >= 1 << 31) {
            return false;
        }
        self.last = Some((number, stamp));
        self.lost_at = (self.watch != Watch::OnDemand).then(|| self.awaited(now));
        true
    }

    /// Nobody looked for a while: what is awaited is awaited from now on.
    pub(super) fn await_anew(&mut self, now: SimTime) {
        self.lost_at = self.lost_at.map(|_| self.awaited(now));
    }

    fn awaited(&self, from: SimTime) -> SimTime {
        from.saturating_add(self.interval).saturating_add(self.loss_threshold)
    }

    /// A latency was measured, in ns; below 0 where clocks differ.
    pub(super) fn measured(&mut self, latency: i64, stamp: u64) -> Option<Verdict> {
        let latency = match self.watch {
            Watch::Average(weight) => {
                let average =
                    self.average.map_or(latency, |old| old + latency.saturating_sub(old) / i64::from(weight));
                self.average = Some(average);
                average
            }
            Watch::Network => return None,
            _ => latency,
        };
        if latency > self.high_threshold {
            self.turn(true, stamp)
        } else if latency < self.low_threshold {
            self.turn(false, stamp)
        } else {
            None
        }
    }

    /// A cell came that met congestion, or a monitoring cell that did not.
    pub(super) fn marked(&mut self, congestion: bool, stamp: u64) -> Option<Verdict> {
        if self.watch == Watch::Network { self.turn(congestion, stamp) } else { None }
    }

    /// A monitoring cell is lost if one should have come by now. That latency is high is told again with
    /// each, as what told of it may be lost too.
    pub(super) fn expire(&mut self, now: SimTime) -> Option<Verdict> {
        let lost_at = self.lost_at.filter(|&at| at <= now)?;
        let next = lost_at.saturating_add(self.interval);
        self.lost_at = Some(if next > now { next } else { now.saturating_add(self.interval) });
        let (number, stamp) = self.last?;
        let stamp = stamp.saturating_add(self.interval.as_ps() / 1_000);
        self.last = Some((number.wrapping_add(1), stamp));
        self.average = None;
        self.high = true;
        Some(Verdict { high: true, stamp })
    }

    fn turn(&mut self, high: bool, stamp: u64) -> Option<Verdict> {
        let turned = self.high != high;
        self.high = high;
        turned.then_some(Verdict { high, stamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor(watch: Watch) -> Monitor {
        Monitor::new(&Config::default(), watch)
    }

    fn high(stamp: u64) -> Option<Verdict> {
        Some(Verdict { high: true, stamp })
    }

    fn low(stamp: u64) -> Option<Verdict> {
        Some(Verdict { high: false, stamp })
    }

    fn ms(ms: u64) -> SimTime {
        SimTime::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn between_the_thresholds_nothing_turns() {
        let mut monitor = monitor(Watch::EachCell);
        for (latency, verdict) in [
            (100_000, None),
            (100_001, high(7)),
            (500_000, None),
            (95_000, None),
            (90_000, None),
            (89_999, low(7)),
            (95_000, None),
        ] {
            assert_eq!(monitor.measured(latency, 7), verdict, "{latency} ns");
        }
    }

    #[test]
    fn an_average_hides_one_late_cell_and_an_old_one_weighs_on() {
        let mut monitor = monitor(Watch::Average(4));
        assert_eq!(monitor.measured(50_000, 1), None);
        assert_eq!(monitor.measured(200_000, 2), None, "87.5 us on average");
        assert_eq!(monitor.measured(200_000, 3), high(3));
        assert_eq!(monitor.measured(50_000, 4), None, "99 us still");
    }

    #[test]
    fn a_cell_that_does_not_come_is_lost_and_each_further_one_too() {
        let mut monitor = monitor(Watch::EachCell);
        assert_eq!(monitor.deadline(), None);
        assert!(monitor.monitored(ms(5), 0, 4_000_000));
        assert_eq!(monitor.deadline(), Some(ms(205)));
        assert_eq!(monitor.expire(ms(204)), None);
        assert_eq!(monitor.expire(ms(205)), high(104_000_000));
        assert_eq!(monitor.expire(ms(305)), high(204_000_000));
        assert!(!monitor.monitored(ms(306), 1, 0), "a late one is not news");
        assert!(monitor.monitored(ms(307), 3, 0));
        assert_eq!(monitor.deadline(), Some(ms(507)));
        assert_eq!(monitor.measured(10_000, 0), low(0));
    }

    #[test]
    fn the_network_says_it_or_nobody() {
        let mut network = monitor(Watch::Network);
        assert_eq!(network.measured(1_000_000, 0), None);
        assert_eq!(network.marked(true, 1), high(1));
        assert_eq!(network.marked(false, 2), low(2));
        assert_eq!(monitor(Watch::EachCell).marked(true, 1), None);
        let mut demand = monitor(Watch::OnDemand);
        assert!(demand.monitored(ms(0), 0, 0));
        assert_eq!(demand.deadline(), None, "nothing is awaited where nothing is sent");
    }
}
