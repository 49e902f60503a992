//! How many frames may be under way: up while the delay is short, down as it grows or frames are lost.
//!
//! In the manner of Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter" (2020), with one decision a measured round trip.

use wiretwin_units::Span;

/// The window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    frames: u32,
    most: u32,
    target: Span,
    is_fixed: bool,
    /// Frames that were sent and those reported missing since the last decision.
    sent: u32,
    missing: u32,
}

/// Never fewer: a lost frame is seen by those behind it, and a receiver that others keep from its core, whose
/// answers then come late, is no full switch.
const LEAST: u32 = 16;

impl Window {
    pub(super) const fn new(first: u32, most: u32, target: Span) -> Self {
        Self { frames: first, most, target, is_fixed: false, sent: 0, missing: 0 }
    }

    /// One that stays as it is.
    pub(super) const fn fixed(frames: u32) -> Self {
        Self { is_fixed: true, ..Self::new(frames, frames, Span::MAX) }
    }

    pub(super) const fn frames(&self) -> u32 {
        self.frames
    }

    pub(super) const fn sent(&mut self) {
        self.sent += 1;
    }

    pub(super) const fn missing(&mut self, frames: u32) {
        self.missing = self.missing.saturating_add(frames);
    }

    /// A round trip has been measured; `excess` is by how much it was longer than the shortest.
    pub(super) fn decide(&mut self, excess: Span, was_full: bool) {
        let many_lost = self.missing > 2 && self.missing > self.sent / 16;
        (self.sent, self.missing) = (0, 0);
        if self.is_fixed {
            return;
        }
        if excess > self.target {
            // Swift: in proportion to what is too much, at most half.
            let (excess, target) = (u128::from(excess.as_ps()), u128::from(self.target.as_ps()));
            let cut = (u128::from(self.frames) * (excess - target) / excess / 2) as u32;
            self.frames = self.frames.saturating_sub(cut.max(1));
        } else if many_lost {
            self.frames -= self.frames / 4;
        } else if was_full {
            self.frames += (self.frames / 8).max(1);
        }
        self.frames = self.frames.clamp(LEAST.min(self.most), self.most);
    }

    /// Two time-outs in a row.
    pub(super) fn silence(&mut self) {
        if !self.is_fixed {
            self.frames = (self.frames / 2).max(LEAST.min(self.most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window::new(64, 256, Span::from_us(100))
    }

    #[test]
    fn a_window_that_is_used_grows_to_its_bound_while_the_delay_is_short() {
        let mut window = window();
        window.decide(Span::from_us(50), false);
        assert_eq!(window.frames(), 64);
        window.decide(Span::from_us(50), true);
        assert_eq!(window.frames(), 72);
        (0..50).for_each(|_| window.decide(Span::ZERO, true));
        assert_eq!(window.frames(), 256);
    }

    #[test]
    fn it_falls_with_the_delay_by_at_most_half_and_never_to_nothing() {
        let mut window = window();
        window.decide(Span::from_us(200), true);
        assert_eq!(window.frames(), 48);
        (0..50).for_each(|_| window.decide(Span::from_s(1), true));
        assert_eq!(window.frames(), LEAST);
    }

    #[test]
    fn a_fixed_one_stays_as_it_is() {
        let mut window = Window::fixed(64);
        window.missing(100);
        window.decide(Span::from_s(1), true);
        window.silence();
        assert_eq!(window.frames(), 64);
    }

    #[test]
    fn one_frame_in_a_hundred_that_is_lost_does_not_lower_it_and_one_in_ten_does() {
        for (missing, after) in [(1, 72), (10, 48)] {
            let mut window = window();
            (0..100).for_each(|_| window.sent());
            window.missing(missing);
            window.decide(Span::ZERO, true);
            assert_eq!(window.frames(), after);
        }
    }
}
