//! Parameters of one end (Q.2110 §7.7 and §7.6; values of Q.2130 for signalling).

use wiretwin_units::{Bytes, Span};

pub use crate::parameter::ConfigError;
use crate::parameter::{check, one_or_more, some};

/// What is done where a number of the peer cannot be right (management errors Q, R, S and T).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Faults {
    /// A recovery is begun, as the standard has it. What was not acknowledged is lost or, with
    /// [`Config::clear_buffers`] off, can be retrieved.
    #[default]
    Recovered,
    /// Deviation: the PDU is ignored and counted, and no variable goes back. For paths that reorder or
    /// duplicate PDUs, where such numbers are no error of the peer.
    Ignored,
}

/// When the peer may send more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credit {
    /// A whole window beyond what was delivered, always.
    #[default]
    Automatic,
    /// The window at first, then as much as the user grants.
    Granted,
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `Timer_CC`: how long an answer to BGN, END, RS or ER is waited for. 1 s.
    pub timer_cc: Span,
    /// `MaxCC`: how many times each of these is sent, 1 or more. 4.
    pub max_cc: u32,
    /// `Timer_POLL`: time from POLL to POLL while data are under way. 750 ms.
    pub timer_poll: Span,
    /// `Timer_KEEP-ALIVE`: time to the next POLL when none are; more than a round trip. 2 s.
    pub timer_keep_alive: Span,
    /// `Timer_NO-RESPONSE`: the longest time without a STAT; more than `Timer_KEEP-ALIVE` and a round
    /// trip. 7 s.
    pub timer_no_response: Span,
    /// `Timer_IDLE`: the time without POLLs when nothing is to be sent. 15 s.
    pub timer_idle: Span,
    /// `MaxPD`: the most SDs between POLLs, 1 or more. 25.
    pub max_pd: u32,
    /// `MaxSTAT`: the most elements of a STAT, odd and 3 or more. 67.
    pub max_stat: u32,
    /// `k`: the most octets of information, 1 to 65528. 4096.
    pub k: Bytes,
    /// `j`: the most octets between users, at most 65524. 4096.
    pub j: Bytes,
    /// How many SDs the peer may send beyond what was delivered: 1 to a half of the numbers less one.
    /// 128, a local choice.
    pub window: u32,
    /// How the window moves.
    pub credit: Credit,
    /// `Clear-buffers`: what was acknowledged selectively is forgotten at once, and all that was not at
    /// the end of a connection; off, it can be retrieved then. On.
    pub clear_buffers: bool,
    /// A POLL follows the last SD that was to be sent again. Off.
    pub poll_after_retransmission: bool,
    /// What is done about numbers that cannot be right.
    pub faults: Faults,
    /// Whether work is put out: a live driver has no use for it. On.
    pub work: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            timer_cc: Span::from_s(1),
            max_cc: 4,
            timer_poll: Span::from_ms(750),
            timer_keep_alive: Span::from_s(2),
            timer_no_response: Span::from_s(7),
            timer_idle: Span::from_s(15),
            max_pd: 25,
            max_stat: 67,
            k: Bytes::new(4096),
            j: Bytes::new(4096),
            window: 128,
            credit: Credit::Automatic,
            clear_buffers: true,
            poll_after_retransmission: false,
            faults: Faults::Recovered,
            work: true,
        }
    }
}

impl Config {
    /// Whether an end with numbers of so many bits can work with these.
    ///
    /// # Errors
    /// [`ConfigError`] with the first parameter that is not allowed.
    pub fn check(&self, number_bits: u32) -> Result<(), ConfigError> {
        let most_window = (1_u64 << (number_bits - 1)) - 1;
        let (no_response, keep_alive) = (self.timer_no_response, self.timer_keep_alive);
        let odd = self.max_stat >= 3 && self.max_stat % 2 == 1;
        let window = (1..=most_window).contains(&self.window.into());
        check([
            ("Timer_CC", some(self.timer_cc)),
            ("MaxCC", one_or_more(self.max_cc)),
            ("Timer_POLL", some(self.timer_poll)),
            ("Timer_KEEP-ALIVE", some(keep_alive)),
            (
                "Timer_NO-RESPONSE",
                (no_response.as_ps(), no_response > keep_alive, "more than Timer_KEEP-ALIVE, in ps"),
            ),
            ("Timer_IDLE", some(self.timer_idle)),
            ("MaxPD", one_or_more(self.max_pd)),
            ("MaxSTAT", (self.max_stat.into(), odd, "odd, 3 or more")),
            ("k", (self.k.get(), (1..=65_528).contains(&self.k.get()), "1 to 65528")),
            ("j", (self.j.get(), self.j.get() <= 65_524, "0 to 65524")),
            ("the window", (self.window.into(), window, "1 to half the numbers less one")),
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
        assert_eq!(good.check(24), Ok(()));
        for (config, said) in [
            (Config { max_stat: 4, ..good }, "MaxSTAT is 4, allowed is odd, 3 or more"),
            (Config { max_pd: 0, ..good }, "MaxPD is 0, allowed is 1 or more"),
            (Config { max_cc: 0, ..good }, "MaxCC is 0, allowed is 1 or more"),
            (
                Config { window: 1 << 23, ..good },
                "the window is 8388608, allowed is 1 to half the numbers less one",
            ),
            (Config { k: Bytes::new(65_529), ..good }, "k is 65529, allowed is 1 to 65528"),
            (
                Config { timer_no_response: good.timer_keep_alive, ..good },
                "Timer_NO-RESPONSE is 2000000000000, allowed is more than Timer_KEEP-ALIVE, in ps",
            ),
            (Config { timer_poll: Span::ZERO, ..good }, "Timer_POLL is 0, allowed is more than 0 ps"),
        ] {
            assert_eq!(config.check(24).expect_err(said).to_string(), said);
        }
        assert_eq!(Config { window: 8, ..good }.check(4).expect_err("of 4 bits").value, 8);
    }
}
