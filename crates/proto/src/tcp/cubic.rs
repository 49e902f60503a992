//! CUBIC (RFC 9438): the window as a cubic function of the time since the last loss.
//!
//! The specification's variables are real numbers of segments and seconds, and so are these.

use wiretwin_units::SimTime;

use super::congestion::Acked;

/// The variables of RFC 9438 §4.1.2, in segments and seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cubic {
    w_max: f32,
    k: f32,
    w_est: f64,
    /// The window when the last loss was found, before it shrank.
    cwnd_prior: f32,
    /// Octets of growth that did not make a whole one.
    rest: f32,
    /// When the current stage of avoidance began; [`SimTime::MAX`] outside one.
    t_epoch: SimTime,
}

impl Cubic {
    pub(super) const NEW: Self =
        Self { w_max: 0.0, k: 0.0, w_est: 0.0, cwnd_prior: 0.0, rest: 0.0, t_epoch: SimTime::MAX };

    /// Octets by which an acknowledgment in avoidance widens a window of `cwnd` octets.
    pub(super) fn step(&mut self, cwnd: u32, acked: Acked) -> u32 {
        let mss = f64::from(acked.mss);
        let window = f64::from(cwnd) / mss;
        if self.t_epoch == SimTime::MAX {
            self.begin_epoch(acked.now, window);
        }
        let t = acked.now.saturating_since(self.t_epoch).as_s_f64();
        let round_trip = acked.round_trip.map_or(0.0, |span| span.as_s_f64());
        let segments = f64::from(acked.octets) / mss;
        // §4.3, equation 4: what Reno would have; once that is where the last loss was, as fast as
        // Reno.
        let alpha = if self.w_est < f64::from(self.cwnd_prior) { ALPHA } else { 1.0 };
        self.w_est += alpha * segments / window;
        let growth = if self.w_cubic(t) < self.w_est {
            self.w_est - window
        } else {
            // §4.2: the target lies between the window and one and a half of it.
            let target = self.w_cubic(t + round_trip).clamp(window, 1.5 * window);
            (target - window) / window * segments
        };
        let octets = growth.max(0.0) * mss + f64::from(self.rest);
        let whole = octets as u32;
        self.rest = (octets - f64::from(whole)) as f32;
        whole
    }

    /// §4.6 with §4.7: remembers where the loss was; the threshold in octets.
    pub(super) fn on_loss(&mut self, cwnd: u32, flight: u32, mss: u32) -> u32 {
        let window = f64::from(cwnd) / f64::from(mss);
        self.cwnd_prior = window as f32;
        // Fast convergence: a second loss below the first makes room for others.
        let less = window < f64::from(self.w_max);
        self.w_max = if less { window * (1.0 + BETA) / 2.0 } else { window } as f32;
        self.end_epoch();
        ((f64::from(flight) * BETA) as u32).max(2 * mss)
    }

    pub(super) fn end_epoch(&mut self) {
        self.t_epoch = SimTime::MAX;
        self.rest = 0.0;
    }

    fn begin_epoch(&mut self, now: SimTime, window: f64) {
        self.t_epoch = now;
        self.w_est = window;
        let w_max = f64::from(self.w_max);
        if window < w_max {
            // Equation 2.
            self.k = libm::cbrt((w_max - window) / C) as f32;
        } else {
            self.k = 0.0;
            self.w_max = window as f32;
        }
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64) -> f64 {
        let since = t - f64::from(self.k);
        C * since * since * since + f64::from(self.w_max)
    }
}

/// §4.6: what is left of the window after a loss.
const BETA: f64 = 0.7;
/// §5.1: segments per cubic second.
const C: f64 = 0.4;
/// §4.3: 3 (1 - beta) / (1 + beta), Reno's share for this beta.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[cfg(test)]
mod tests {
    use wiretwin_units::Span;

    use super::*;

    /// Windows, in segments, at each second after a loss at 100 segments, with one acknowledgment a
    /// segment and this round trip.
    fn after_loss(round_trip: Span, seconds: u64) -> alloc::vec::Vec<f64> {
        let mss = 1_000;
        let mut cubic = Cubic::NEW;
        let mut cwnd = cubic.on_loss(100 * mss, 100 * mss, mss);
        let mut windows = alloc::vec::Vec::new();
        let mut now = SimTime::ZERO;
        for second in 1..=seconds {
            while now < SimTime::ZERO + Span::from_s(second) {
                let acked = Acked {
                    now,
                    octets: mss,
                    mss,
                    flight: cwnd,
                    most: u32::MAX,
                    round_trip: Some(round_trip),
                };
                cwnd += cubic.step(cwnd, acked);
                now += Span::from_ps(round_trip.as_ps() * u64::from(mss) / u64::from(cwnd));
            }
            windows.push(f64::from(cwnd) / f64::from(mss));
        }
        windows
    }

    #[test]
    fn the_window_follows_the_cubic_of_equation_1() {
        // K = cbrt(100 x 0.3 / 0.4) = 4.217 s; W(t) = 0.4 (t - K)^3 + 100.
        let windows = after_loss(Span::from_ms(300), 8);
        for (second, window) in (1..).zip(windows) {
            let t = f64::from(second) - 4.217_163;
            let expected = 0.4 * t * t * t + 100.0;
            assert!((window - expected).abs() < 0.02 * expected, "{second} s: {window} for {expected}");
        }
    }

    #[test]
    fn on_a_short_round_trip_it_is_as_quick_as_reno() {
        // In 1 s of 1 ms round trips Reno's share alone adds 0.53 segments a round trip.
        let windows = after_loss(Span::from_ms(1), 1);
        assert!(windows[0] > 400.0, "{windows:?}");
    }

    #[test]
    fn a_second_loss_below_the_first_gives_way() {
        let mut cubic = Cubic::NEW;
        assert_eq!(cubic.on_loss(100_000, 100_000, 1_000), 70_000);
        assert_eq!(cubic.w_max, 100.0);
        cubic.on_loss(80_000, 80_000, 1_000);
        assert_eq!(cubic.w_max, 68.0);
        assert_eq!(cubic.on_loss(1_000, 500, 1_000), 2_000, "two segments at least");
    }
}
