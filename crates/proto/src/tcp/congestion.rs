//! The congestion window: slow start, avoidance, and what a loss does to it.

use wiretwin_units::{SimTime, Span};

use super::config::{Config, Congestion, InitialWindow, LossBasis};
use super::cubic::Cubic;

/// The congestion window of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Octets that may be in flight.
    pub cwnd: u32,
    /// Where slow start ends.
    pub ssthresh: u32,
    cubic: Cubic,
}

/// What an acknowledgment of new data meets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub now: SimTime,
    /// Octets acknowledged.
    pub octets: u32,
    /// Octets of a segment.
    pub mss: u32,
    /// Octets that were in flight before.
    pub flight: u32,
    /// The most that a window may be.
    pub most: u32,
    pub round_trip: Option<Span>,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self { cwnd: 1, ssthresh: u32::MAX, cubic: Cubic::NEW }
    }

    /// Takes the window to where a connection begins.
    pub(super) fn open(&mut self, config: &Config, mss: u32) {
        self.cwnd = initial(config, mss);
    }

    /// After a silence of a time-out.
    pub(super) fn restart_after_idle(&mut self, config: &Config, mss: u32) {
        let restart = match config.initial_window {
            InitialWindow::SendBuffer => mss,
            _ => initial(config, mss),
        };
        self.cwnd = self.cwnd.min(restart);
        self.cubic.end_epoch();
    }

    /// An acknowledgment of new data, outside recovery.
    pub(super) fn on_ack(&mut self, config: &Config, acked: Acked) {
        let Acked { octets, mss, flight, most, .. } = acked;
        if config.grow_if_used {
            let used = if self.cwnd < self.ssthresh { flight.saturating_mul(2) } else { flight + mss };
            if used < self.cwnd {
                return;
            }
        }
        let in_slow_start = match config.loss_basis {
            // BSD: avoidance begins above the threshold.
            LossBasis::Windows => self.cwnd <= self.ssthresh,
            LossBasis::Flight => self.cwnd < self.ssthresh,
        };
        let step = if in_slow_start {
            if config.count_octets { octets.min(mss) } else { mss }
        } else if config.congestion == Congestion::Cubic {
            self.cubic.step(self.cwnd, acked)
        } else {
            // Whole octets, and at least one: RFC 5681 equation 3.
            let step = (u64::from(mss) * u64::from(mss) / u64::from(self.cwnd)) as u32;
            let eighth = if config.eighth { mss / 8 } else { 0 };
            if config.eighth { step + eighth } else { step.max(1) }
        };
        self.cwnd = self.cwnd.saturating_add(step).min(most);
    }

    /// A loss that duplicates told of: sets the threshold.
    pub(super) fn on_loss(&mut self, config: &Config, snd_wnd: u32, flight: u32, mss: u32) {
        self.ssthresh = match (config.congestion, config.loss_basis) {
            (Congestion::Cubic, _) => self.cubic.on_loss(self.cwnd, flight, mss),
            // BSD: in whole segments, and at least two.
            (_, LossBasis::Windows) => (snd_wnd.min(self.cwnd) / 2 / mss).max(2) * mss,
            (_, LossBasis::Flight) => (flight / 2).max(2 * mss),
        };
    }

    /// The retransmission timer ran out: `again` where it had done so for the same segment.
    pub(super) fn on_timeout(&mut self, config: &Config, snd_wnd: u32, flight: u32, mss: u32, again: bool) {
        // RFC 5681 §3.1: the threshold is held for a segment that was retransmitted by the timer
        // before. BSD halves it anew.
        if !(again && config.loss_basis == LossBasis::Flight) {
            self.on_loss(config, snd_wnd, flight, mss);
        }
        self.cwnd = mss;
    }
}

fn initial(config: &Config, mss: u32) -> u32 {
    match config.initial_window {
        InitialWindow::Segments(segments) => u32::from(segments) * mss,
        InitialWindow::SendBuffer => config.buffers.send,
        InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4_380)),
        InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiretwin_units::Bytes;

    fn acked(octets: u32) -> Acked {
        Acked {
            now: SimTime::ZERO,
            octets,
            mss: 1_000,
            flight: 1 << 20,
            most: 65_535,
            round_trip: Some(Span::from_ms(10)),
        }
    }

    #[test]
    fn windows_begin_as_their_documents_say() {
        let first = |config: Config, mss| {
            let mut window = Window::new();
            window.open(&config, mss);
            window.cwnd
        };
        assert_eq!(first(Config::bsd43_reno(), 1_460), 1_460);
        assert_eq!(first(Config::linux_modern(), 1_448), 14_480);
        assert_eq!(first(Config::linux_modern(), 8_948), 17_896);
        let rfc3390 = Config { initial_window: InitialWindow::Rfc3390, ..Config::linux_modern() };
        assert_eq!([536, 1_460, 4_312].map(|mss| first(rfc3390.clone(), mss)), [2_144, 4_380, 8_624]);
        let sunos = Config::sunos41().with_buffers(Bytes::kib(32), Bytes::kib(32)).expect("a size that goes");
        assert_eq!(first(sunos.clone(), 1_460), 32_768);
        let mut window = Window { cwnd: 32_768, ..Window::new() };
        window.restart_after_idle(&sunos, 1_460);
        assert_eq!(window.cwnd, 1_460);
    }

    #[test]
    fn slow_start_doubles_each_round_trip_and_avoidance_adds_one_segment() {
        let config = Config { congestion: Congestion::Reno, ..Config::linux_modern() };
        let mut window = Window { cwnd: 4_000, ssthresh: 8_000, cubic: Cubic::NEW };
        for _ in 0..4 {
            window.on_ack(&config, acked(1_000));
        }
        assert_eq!(window.cwnd, 8_000);
        for _ in 0..8 {
            window.on_ack(&config, acked(1_000));
        }
        assert!((8_900..=9_000).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn the_eighth_makes_avoidance_quicker() {
        let mut quick = Window { cwnd: 16_000, ssthresh: 8_000, cubic: Cubic::NEW };
        let mut plain = quick;
        for _ in 0..16 {
            quick.on_ack(&Config::bsd43_reno(), acked(1_000));
            plain.on_ack(&Config { eighth: false, ..Config::bsd43_reno() }, acked(1_000));
        }
        assert!((16_900..=17_000).contains(&plain.cwnd), "{}", plain.cwnd);
        assert!((18_800..=19_000).contains(&quick.cwnd), "16 x 125 more: {}", quick.cwnd);
    }

    #[test]
    fn a_loss_halves_what_its_rule_starts_from() {
        let mut window = Window { cwnd: 9_500, ssthresh: u32::MAX, cubic: Cubic::NEW };
        window.on_loss(&Config::bsd43_reno(), 7_900, 5_000, 1_000);
        assert_eq!(window.ssthresh, 3_000, "half of 7900 in whole segments");
        let modern = Config { congestion: Congestion::NewReno, ..Config::linux_modern() };
        window.on_loss(&modern, 7_900, 5_000, 1_000);
        assert_eq!(window.ssthresh, 2_500, "half of the flight");
        window.on_loss(&modern, 7_900, 100, 1_000);
        assert_eq!(window.ssthresh, 2_000, "two segments at least");
    }

    #[test]
    fn a_second_time_out_of_a_segment_keeps_the_threshold_of_rfc_5681() {
        let modern = Config { congestion: Congestion::NewReno, ..Config::linux_modern() };
        let mut window = Window { cwnd: 9_000, ssthresh: u32::MAX, cubic: Cubic::NEW };
        window.on_timeout(&modern, 65_535, 8_000, 1_000, false);
        assert_eq!((window.cwnd, window.ssthresh), (1_000, 4_000));
        window.on_timeout(&modern, 65_535, 1_000, 1_000, true);
        assert_eq!((window.cwnd, window.ssthresh), (1_000, 4_000));
        window.on_timeout(&Config::bsd43_reno(), 65_535, 1_000, 1_000, true);
        assert_eq!(window.ssthresh, 2_000, "BSD halves anew");
    }

    #[test]
    fn a_window_that_holds_nobody_back_does_not_grow() {
        let mut window = Window { cwnd: 10_000, ssthresh: u32::MAX, cubic: Cubic::NEW };
        window.on_ack(&Config::linux_modern(), Acked { flight: 4_000, ..acked(1_000) });
        assert_eq!(window.cwnd, 10_000);
        window.on_ack(&Config::linux_modern(), Acked { flight: 5_000, ..acked(1_000) });
        assert_eq!(window.cwnd, 11_000);
        window.on_ack(&Config::bsd43_reno(), Acked { flight: 1_000, ..acked(1_000) });
        assert_eq!(window.cwnd, 12_000);
    }
}
