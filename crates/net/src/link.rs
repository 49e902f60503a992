//! A transmitter that serialises messages one after the other at an exact rate.

/// One direction of a node's wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitter {
    free_at_ps: u64,
    /// What the integer division of the last serialisation left over, in units of ps/rate; carried
    /// while the transmitter stays busy, so that a million messages take the right time.
    remainder: u64,
}

impl Transmitter {
    /// Accepts `bytes` at `now_ps`: when their first bit leaves and when the last one has left.
    ///
    /// `rate_bit_s` must not be zero.
    pub fn accept(&mut self, bytes: u64, now_ps: u64, rate_bit_s: u64) -> (u64, u64) {
        let start = now_ps.max(self.free_at_ps);
        if start > self.free_at_ps {
            self.remainder = 0;
        }
        let work = u128::from(bytes) * 8 * 1_000_000_000_000 + u128::from(self.remainder);
        let rate = u128::from(rate_bit_s);
        let span = u64::try_from(work / rate).unwrap_or(u64::MAX);
        // A remainder is smaller than the rate, which is a u64.
        self.remainder = (work % rate) as u64;
        self.free_at_ps = start.saturating_add(span);
        (start, self.free_at_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_transmitter_carries_the_remainder() {
        // 53 bytes at 155.52 Mbit/s take 2726337.448... ps.
        let mut transmitter = Transmitter::default();
        let mut end = 0;
        for _ in 0..1_000_000 {
            end = transmitter.accept(53, 0, 155_520_000).1;
        }
        assert_eq!(u128::from(end), 1_000_000u128 * 53 * 8 * 1_000_000_000_000 / 155_520_000);
    }

    #[test]
    fn a_message_queues_behind_the_one_before_and_an_idle_wire_forgets() {
        let mut transmitter = Transmitter::default();
        assert_eq!(transmitter.accept(1, 100, 8_000_000_000_000), (100, 101));
        assert_eq!(transmitter.accept(10, 50, 8_000_000_000_000), (101, 111));
        assert_eq!(transmitter.accept(0, 500, 8_000_000_000_000), (500, 500));
        let mut thirds = Transmitter::default();
        assert_eq!(thirds.accept(1, 0, 3_000_000_000_000), (0, 2));
        assert_eq!(thirds.accept(1, 10, 3_000_000_000_000), (10, 12), "not 13: the wire fell idle");
    }
}
