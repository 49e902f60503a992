//! Parameters of one end.

use wiretwin_units::{Bytes, Span};

pub use crate::parameter::ConfigError;
use crate::parameter::{check, one_or_more, some};

/// Which service frames go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Services {
    /// The ordinary one alone.
    #[default]
    Ordinary,
    /// The protected one alone.
    Protected,
    /// The ordinary one while its latency is low, else the protected one.
    Adaptive(Thresholds),
}

impl Services {
    /// The thresholds, where there are any.
    pub(super) const fn thresholds(&self) -> Option<Thresholds> {
        match self {
            Self::Adaptive(thresholds) => Some(*thresholds),
            Self::Ordinary | Self::Protected => None,
        }
    }
}

/// When the protected service is used, and when no more (Vila-Sallent and Solé-Pareta 1998, §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// `T_M`: a round trip by the ordinary service above this is high.
    pub high: Span,
    /// `T_m`: a round trip by the ordinary service below this is low; less than `T_M`.
    pub low: Span,
    /// The time from one measurement to the next while frames are sent.
    pub interval: Span,
    /// `T_L`: a measurement that takes longer is lost, and the latency high.
    pub lost: Span,
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most bytes of a frame, its header included: 256 to 65,507. 1472, what a UDP datagram in an
    /// Ethernet frame holds.
    pub frame: Bytes,
    /// The longest message that is sent without being asked for. 16 KiB.
    pub eager: Bytes,
    /// For how many frames this end has buffers: what it grants, 4 to 32,768. 256.
    pub receive_window: u32,
    /// How many messages may wait to be sent, 1 or more. 4096.
    pub queue: u32,
    /// The most frames under way before any delay is known, 1 or more. 64.
    pub first_window: u32,
    /// The most frames under way, `first_window` or more. 1024.
    pub most_window: u32,
    /// By how much a round trip may exceed the shortest one before the window falls. 100 us.
    pub delay_target: Span,
    /// Frames between POLLs, 1 or more. 32.
    pub max_pd: u32,
    /// Frames that are acknowledged together, 1 to half of what is granted. 32.
    pub ack_every: u32,
    /// How long an acknowledgment waits for a frame to go with, less than `rto_least`. 100 us.
    pub ack_delay: Span,
    /// The least time without an answer before a POLL asks for one. 200 us.
    pub rto_least: Span,
    /// The longest such time, to which it doubles while a peer is silent. 200 ms.
    pub rto_most: Span,
    /// The window stays at `first_window`, whatever the delay and however much is lost: for comparison. It does not.
    pub has_fixed_window: bool,
    /// One of two services, or both. The ordinary one.
    pub services: Services,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            frame: Bytes::new(1472),
            eager: Bytes::new(16 << 10),
            receive_window: 256,
            queue: 4096,
            first_window: 64,
            most_window: 1024,
            delay_target: Span::from_us(100),
            max_pd: 32,
            ack_every: 32,
            ack_delay: Span::from_us(100),
            rto_least: Span::from_us(200),
            rto_most: Span::from_ms(200),
            has_fixed_window: false,
            services: Services::Ordinary,
        }
    }
}

impl Config {
    /// The parameters over datagrams of an Ethernet: no more frames under way than the least buffer that Linux gives a
    /// socket by default has room for, from two peers at once.
    #[must_use]
    pub fn datagrams() -> Self {
        Self {
            receive_window: 64,
            first_window: 64,
            most_window: 64,
            ack_every: 16,
            delay_target: Span::from_us(500),
            ..Self::default()
        }
    }

    /// Whether an end can work with these.
    ///
    /// # Errors
    /// [`ConfigError`] with the first parameter that is not allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        let frame = self.frame.get();
        let granted = self.receive_window;
        let within = |value: u32, least: u32, most: u32| (least..=most).contains(&value);
        check([
            ("the frame", (frame, (256..=65_507).contains(&frame), "256 to 65507")),
            ("the receive window", (granted.into(), within(granted, 4, 1 << 15), "4 to 32768")),
            ("the queue", one_or_more(self.queue)),
            ("the first window", one_or_more(self.first_window)),
            (
                "the largest window",
                (
                    self.most_window.into(),
                    within(self.most_window, self.first_window, 1 << 15),
                    "the first window to 32768",
                ),
            ),
            ("the delay target", some(self.delay_target)),
            ("MaxPD", one_or_more(self.max_pd)),
            (
                "frames acknowledged together",
                (
                    self.ack_every.into(),
                    within(self.ack_every, 1, granted / 2),
                    "1 to half the receive window",
                ),
            ),
            (
                "the acknowledgment's delay",
                (
                    self.ack_delay.as_ps(),
                    self.ack_delay > Span::ZERO && self.ack_delay < self.rto_least,
                    "more than 0 ps, less than the least time-out",
                ),
            ),
            (
                "the longest time-out",
                (self.rto_most.as_ps(), self.rto_most > self.rto_least, "more than the least, in ps"),
            ),
            (
                "T_m",
                self.services.thresholds().map_or((0, true, ""), |two| {
                    (
                        two.low.as_ps(),
                        two.low < two.high && two.high < two.lost,
                        "less than T_M, that less than T_L",
                    )
                }),
            ),
            (
                "the monitoring interval",
                self.services.thresholds().map_or((0, true, ""), |two| some(two.interval)),
            ),
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
        let two = Thresholds {
            high: Span::from_us(90),
            low: Span::from_us(90),
            interval: Span::from_ms(1),
            lost: Span::from_ms(5),
        };
        for (config, said) in [
            (Config { frame: Bytes::new(255), ..good }, "the frame is 255, allowed is 256 to 65507"),
            (Config { receive_window: 3, ..good }, "the receive window is 3, allowed is 4 to 32768"),
            (
                Config { ack_every: 129, ..good },
                "frames acknowledged together is 129, allowed is 1 to half the receive window",
            ),
            (
                Config { ack_delay: good.rto_least, ..good },
                "the acknowledgment's delay is 200000000, allowed is more than 0 ps, less than the least time-out",
            ),
            (
                Config { services: Services::Adaptive(two), ..good },
                "T_m is 90000000, allowed is less than T_M, that less than T_L",
            ),
        ] {
            assert_eq!(config.check().expect_err(said).to_string(), said);
        }
    }
}
