//! Parameters of one end; the values are those of Vila-Sallent and Solé-Pareta (1998) where they give
//! one.

use wiretwin_units::{SimTime, Span};

pub use crate::parameter::ConfigError;
use crate::parameter::{check, one_or_more, some};

/// What watches the ordinary circuit. The authors took the first and rejected the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// The latency of each cell, against both thresholds.
    #[default]
    EachCell,
    /// An average of latencies: each new one counts one part in so many, 1 or more. Loss as above.
    Average(u32),
    /// As the first, but monitoring cells are sent only while data are.
    OnDemand,
    /// RTT/2 of monitoring cells, at the sender: no clock is needed, and both ways count.
    RoundTrip,
    /// What the network says: a cell that met congestion (EFCI), or a monitoring cell that did not.
    Network,
}

/// A clock that is not ideal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalClock {
    /// How far it is ahead at the beginning, in ns.
    pub ahead_ns: i64,
    /// How much it gains, in ns each second (parts in 10^9).
    pub gains_ns_each_s: i64,
}

impl LocalClock {
    /// What it reads: ns, not below 0.
    pub fn read(&self, now: SimTime) -> u64 {
        let ns = i128::from(now.as_ps() / 1_000);
        // A division of this width takes as long as the rest of what is done for a cell.
        let gained = match self.gains_ns_each_s {
            0 => 0,
            gains => ns * i128::from(gains) / 1_000_000_000,
        };
        (ns + gained + i128::from(self.ahead_ns)).clamp(0, u64::MAX.into()) as u64
    }
}

/// How the peer's clock is learned: it is sent over the control circuit, whose delay is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSync {
    /// How often.
    pub interval: Span,
    /// What that circuit takes.
    pub delay: Span,
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Connection Identifier.
    pub connection: u16,
    /// Time from POLL to POLL while data are under way. 100 ms.
    pub timer_poll: Span,
    /// Time from POLL to POLL while none are, as in SSCOP's transient phase; `None` for no POLLs then.
    pub timer_keep_alive: Option<Span>,
    /// The longest time without a STAT while data are under way. 7 s, as SSCOP's.
    pub timer_no_response: Span,
    /// `MaxPD`: the most data cells between POLLs. 25, as SSCOP's.
    pub max_pd: u32,
    /// How many cells may be under way beyond what was delivered: 1 to 2^31 - 1. 1024, a choice.
    pub window: u32,
    /// Data cells say when they were sent, and are watched as monitoring cells are; they hold a value
    /// less then. On.
    pub stamp_data: bool,
    /// What watches the ordinary circuit; `None` for one that is never left.
    pub watch: Option<Watch>,
    /// Time from one monitoring cell to the next. 100 ms.
    pub monitor_interval: Span,
    /// `T_L`: how long after it was expected a monitoring cell is lost. 100 ms.
    pub loss_threshold: Span,
    /// `T_M`: latency above it is high. 100 us.
    pub high_threshold: Span,
    /// `T_m`: latency below it is low again; below `T_M`. 90 us.
    pub low_threshold: Span,
    /// This end's clock.
    pub clock: LocalClock,
    /// How the peer's clock is learned; `None` where both read the same.
    pub clock_sync: Option<ClockSync>,
    /// Whether work is put out.
    pub work: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connection: 0,
            timer_poll: Span::from_ms(100),
            timer_keep_alive: None,
            timer_no_response: Span::from_s(7),
            max_pd: 25,
            window: 1024,
            stamp_data: true,
            watch: Some(Watch::EachCell),
            monitor_interval: Span::from_ms(100),
            loss_threshold: Span::from_ms(100),
            high_threshold: Span::from_us(100),
            low_threshold: Span::from_us(90),
            clock: LocalClock::default(),
            clock_sync: None,
            work: true,
        }
    }
}

impl Config {
    /// Whether an end can work with these.
    ///
    /// # Errors
    /// [`ConfigError`] with the first parameter that is not allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        let below = self.low_threshold < self.high_threshold;
        let window = (1..1 << 31).contains(&self.window);
        let weight = if let Some(Watch::Average(weight)) = self.watch { weight } else { 1 };
        let sync = self.clock_sync.map_or(Span::from_ps(1), |sync| sync.interval);
        check([
            ("the time from POLL to POLL", some(self.timer_poll)),
            (
                "the time from POLL to POLL without data",
                some(self.timer_keep_alive.unwrap_or(self.timer_poll)),
            ),
            ("the longest time without a STAT", some(self.timer_no_response)),
            ("MaxPD", one_or_more(self.max_pd)),
            ("the window", (self.window.into(), window, "1 to 2^31 - 1")),
            ("the monitoring interval", some(self.monitor_interval)),
            ("T_L", some(self.loss_threshold)),
            ("T_m", (self.low_threshold.as_ps(), below, "below T_M, in ps")),
            ("the weight of an average", one_or_more(weight)),
            ("the time from clock to clock", some(sync)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_parameter_that_cannot_be_is_named_with_what_is_allowed() {
        let good = Config::default();
        assert_eq!(good.check(), Ok(()));
        for (config, said) in [
            (
                Config { low_threshold: good.high_threshold, ..good },
                "T_m is 100000000, allowed is below T_M, in ps",
            ),
            (Config { window: 0, ..good }, "the window is 0, allowed is 1 to 2^31 - 1"),
            (Config { max_pd: 0, ..good }, "MaxPD is 0, allowed is 1 or more"),
            (
                Config { watch: Some(Watch::Average(0)), ..good },
                "the weight of an average is 0, allowed is 1 or more",
            ),
            (Config { loss_threshold: Span::ZERO, ..good }, "T_L is 0, allowed is more than 0 ps"),
        ] {
            assert_eq!(config.check().expect_err(said).to_string(), said);
        }
    }

    #[test]
    fn a_clock_that_gains_is_ahead_more_and_more() {
        let clock = LocalClock { ahead_ns: -500, gains_ns_each_s: 20_000 };
        assert_eq!(clock.read(SimTime::ZERO), 0, "not before the beginning of time");
        assert_eq!(clock.read(SimTime::ZERO + Span::from_s(10)), 10_000_000_000 + 200_000 - 500);
    }
}
