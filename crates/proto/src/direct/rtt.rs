//! Round trips: their mean and deviation, the shortest, and the time-out that follows (RFC 6298 §2).

use wiretwin_units::Span;

/// What is known of round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    srtt: Option<u64>,
    rttvar: u64,
    /// The shortest, in ps, which rises by a thousandth with every sample that is longer.
    shortest: u64,
}

impl Rtt {
    pub(super) fn sample(&mut self, round_trip: Span) {
        let r = round_trip.as_ps().max(1);
        match self.srtt {
            None => {
                // RFC 6298 (2.2)
                (self.srtt, self.rttvar, self.shortest) = (Some(r), r / 2, r);
            }
            Some(srtt) => {
                // RFC 6298 (2.3), alpha 1/8, beta 1/4
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(r) / 4;
                self.srtt = Some(srtt - srtt / 8 + r / 8);
                self.shortest = r.min(self.shortest + self.shortest / 1024);
            }
        }
    }

    /// By how much this round trip exceeds the shortest.
    pub(super) fn excess(&self, round_trip: Span) -> Span {
        Span::from_ps(round_trip.as_ps().saturating_sub(self.shortest))
    }

    /// How long to wait for an answer after so many waits in vain.
    pub(super) fn timeout(&self, least: Span, most: Span, in_vain: u32) -> Span {
        // RFC 6298 (2.1), with a first value for networks of today.
        let base = self.srtt.map_or(5 * least.as_ps(), |srtt| srtt.saturating_add(4 * self.rttvar));
        let base = base.clamp(least.as_ps(), most.as_ps());
        // RFC 6298 (5.5)
        let backed_off = base.saturating_mul(1 << in_vain.min(20));
        Span::from_ps(backed_off.min(most.as_ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Span = Span::from_us(200);
    const MOST: Span = Span::from_ms(200);

    #[test]
    fn a_timeout_follows_the_round_trips_between_its_bounds_and_doubles_in_vain() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(LEAST, MOST, 0), Span::from_ms(1));
        rtt.sample(Span::from_us(10));
        assert_eq!(rtt.timeout(LEAST, MOST, 0), LEAST);
        assert_eq!(rtt.timeout(LEAST, MOST, 3), Span::from_us(1600));
        assert_eq!(rtt.timeout(LEAST, MOST, 60), MOST);
        for _ in 0..100 {
            rtt.sample(Span::from_ms(1));
        }
        let settled = rtt.timeout(LEAST, MOST, 0);
        assert!(settled > Span::from_us(990) && settled < Span::from_us(1100), "{settled}");
        rtt.sample(Span::from_s(60));
        assert_eq!(rtt.timeout(LEAST, MOST, 0), MOST, "a peer that computed for a minute");
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten_slowly() {
        let mut rtt = Rtt::default();
        rtt.sample(Span::from_us(10));
        assert_eq!(rtt.excess(Span::from_us(15)), Span::from_us(5));
        for _ in 0..2_000 {
            rtt.sample(Span::from_us(50));
        }
        assert_eq!(rtt.excess(Span::from_us(50)), Span::ZERO);
    }
}
