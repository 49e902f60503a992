//! Which service frames go by: the ordinary one while its latency is low, else the protected one.
//!
//! Vila-Sallent and Solé-Pareta (1998), §4, with round trips in place of the latencies one way, as the
//! clocks of two hosts differ: above `T_M` the protected service, below `T_m` the ordinary one again. While
//! frames go by the protected service, POLLs still go by the ordinary one and measure it.

use wiretwin_units::{SimTime, Span};

use super::config::{Services, Thresholds};

/// One of two ways through a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// What everyone uses.
    #[default]
    Ordinary,
    /// One that is kept clear of the others' load.
    Protected,
}

/// What chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chooser {
    thresholds: Option<Thresholds>,
    chosen: Service,
    /// When to measure next, while frames are sent.
    due: Option<SimTime>,
    /// When it was measured last.
    last: Option<SimTime>,
}

impl Chooser {
    pub(super) const fn new(services: Services) -> Self {
        let chosen = match services {
            Services::Protected => Service::Protected,
            Services::Ordinary | Services::Adaptive(_) => Service::Ordinary,
        };
        Self { thresholds: services.thresholds(), chosen, due: None, last: None }
    }

    pub(super) const fn chosen(&self) -> Service {
        self.chosen
    }

    pub(super) const fn due(&self) -> Option<SimTime> {
        self.due
    }

    /// A numbered frame is sent: whether to measure at once, as it is the first for so long.
    pub(super) fn sending(&mut self, now: SimTime) -> bool {
        let (Some(two), None) = (self.thresholds, self.due) else { return false };
        let at = self.last.map_or(now, |last| last.saturating_add(two.interval));
        self.due = Some(at);
        at <= now && self.measure(now, true)
    }

    /// The measurement that was due is made, or need not be: whether it is one to make.
    pub(super) fn measure(&mut self, now: SimTime, is_active: bool) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = self.thresholds.filter(|_| is_active).map(|two| now.saturating_add(two.interval));
        if is_active {
            self.last = Some(now);
        }
        is_active
    }

    /// A POLL that went by the ordinary service so long ago has no answer yet.
    pub(super) fn waited(&mut self, so_long: Span) -> bool {
        let lost = self.thresholds.is_some_and(|two| so_long > two.lost);
        if lost {
            self.chosen = Service::Protected;
        }
        lost
    }

    /// A round trip by the ordinary service.
    pub(super) fn measured(&mut self, round_trip: Span) {
        if let Some(two) = self.thresholds {
            if round_trip > two.high {
                self.chosen = Service::Protected;
            } else if round_trip < two.low {
                self.chosen = Service::Ordinary;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Services {
        Services::Adaptive(Thresholds {
            high: Span::from_us(100),
            low: Span::from_us(90),
            interval: Span::from_ms(1),
            lost: Span::from_ms(5),
        })
    }

    #[test]
    fn between_the_thresholds_nothing_turns() {
        let mut chooser = Chooser::new(two());
        for (us, chosen) in [
            (95, Service::Ordinary),
            (100, Service::Ordinary),
            (101, Service::Protected),
            (90, Service::Protected),
            (89, Service::Ordinary),
            (99, Service::Ordinary),
        ] {
            chooser.measured(Span::from_us(us));
            assert_eq!(chooser.chosen(), chosen, "{us} us");
        }
    }

    #[test]
    fn it_measures_while_frames_are_sent_and_then_no_more() {
        let mut chooser = Chooser::new(two());
        let at = |us| SimTime::ZERO + Span::from_us(us);
        assert_eq!(chooser.due(), None);
        assert!(chooser.sending(at(0)));
        assert!(!chooser.sending(at(1)));
        assert!(!chooser.measure(at(999), true));
        assert!(chooser.measure(at(1000), true));
        assert_eq!(chooser.due(), Some(at(2000)));
        assert!(!chooser.measure(at(2000), false));
        assert_eq!(chooser.due(), None);
        // Who sends seldom measures with each message, but not sooner than the interval allows.
        assert!(chooser.sending(at(2500)));
        assert!(!chooser.measure(at(3500), false));
        assert!(chooser.sending(at(3500)));
        assert!(!chooser.measure(at(4500), false));
        assert!(chooser.sending(at(9000)));
    }

    #[test]
    fn a_measurement_without_an_answer_is_a_high_one_and_one_service_is_never_left() {
        let mut chooser = Chooser::new(two());
        assert!(!chooser.waited(Span::from_ms(5)));
        assert!(chooser.waited(Span::from_ms(6)));
        assert_eq!(chooser.chosen(), Service::Protected);
        for (services, only) in
            [(Services::Ordinary, Service::Ordinary), (Services::Protected, Service::Protected)]
        {
            let mut one = Chooser::new(services);
            one.measured(Span::from_s(1));
            assert!(!one.waited(Span::from_s(1)));
            one.measured(Span::from_ns(1));
            assert_eq!(one.chosen(), only);
        }
    }
}
