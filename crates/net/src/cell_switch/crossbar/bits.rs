//! Choosing among the ones of a word.

use wiretwin_engine::Stream;

/// Every octet of a word set to 1.
const OCTETS: u64 = 0x0101_0101_0101_0101;
/// The top bit of every octet.
const TOPS: u64 = OCTETS << 7;

/// The place of the `n`-th one of an octet, at `n` * 256 + octet.
const IN_OCTET: [u8; 2048] = {
    let mut table = [0; 2048];
    let mut octet = 0;
    while octet < 256 {
        let (mut n, mut place) = (0, 0);
        while place < 8 {
            if octet >> place & 1 == 1 {
                table[n * 256 + octet] = place as u8;
                n += 1;
            }
            place += 1;
        }
        octet += 1;
    }
    table
};

/// How many ones an octet has.
const ONES: [u8; 256] = {
    let mut table = [0; 256];
    let mut octet = 1;
    while octet < 256 {
        table[octet] = table[octet / 2] + (octet % 2) as u8;
        octet += 1;
    }
    table
};

/// The place of the `nth`-th one, counted from 0 and asked for by how many there are, of a word that has some; for
/// words of two octets by tables, for a processor without an instruction that counts ones takes as long as a choice.
#[inline]
fn chosen_one(word: u64, nth: impl FnOnce(u32) -> u32) -> u32 {
    if word >= 1 << 16 {
        return nth_one(word, nth(word.count_ones()));
    }
    let (low, high) = (word & 0xFF, word >> 8);
    let below = u32::from(ONES[low as usize]);
    let n = nth(below + u32::from(ONES[high as usize]));
    let (octet, rank, from) = if n < below { (low, n, 0) } else { (high, n - below, 8) };
    from + u32::from(IN_OCTET[(rank as usize * 256 + octet as usize) & 2047])
}

/// The place of the `n`-th one, from 0, of a word that has more than `n`.
///
/// Without a branch: a loop over the ones costs a wrong guess of the processor nearly each time. Ones are
/// counted by octet, side by side (Vigna, "Broadword implementation of rank/select queries", 2008).
#[inline]
pub(super) fn nth_one(word: u64, n: u32) -> u32 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let octets = (fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    // In each octet the ones up to and with it.
    let up_to = octets.wrapping_mul(OCTETS);
    let before = ((u64::from(n).wrapping_mul(OCTETS) | TOPS).wrapping_sub(up_to) & TOPS).count_ones() * 8;
    let rank = n - ((up_to << 8) >> before & 0xFF) as u32;
    let octet = word >> before & 0xFF;
    before + u32::from(IN_OCTET[rank as usize * 256 + octet as usize])
}

/// Random halves of words: two choices from one number.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    stream: Stream,
    kept: Option<u32>,
}

impl Choices {
    pub(super) const fn new(stream: Stream) -> Self {
        Self { stream, kept: None }
    }

    /// One of the ones of a word that has some, all equally likely to 2^-26.
    #[inline]
    pub(super) fn one_of(&mut self, word: u64) -> u32 {
        if word & word.wrapping_sub(1) == 0 {
            return word.trailing_zeros();
        }
        let half = self.kept.take().unwrap_or_else(|| {
            let bits = self.stream.bits();
            self.kept = Some((bits >> 32) as u32);
            bits as u32
        });
        chosen_one(word, |count| ((u64::from(half) * u64::from(count)) >> 32) as u32)
    }
}

/// The first one at or after a place, going round.
#[inline]
pub(super) const fn next_one(word: u64, from: u32) -> u32 {
    let ahead = word & (u64::MAX << from);
    if ahead != 0 { ahead.trailing_zeros() } else { word.trailing_zeros() }
}

/// The places of the ones of a word, from the least.
#[inline]
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let place = word.trailing_zeros();
            word &= word - 1;
            place
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_is_chosen_as_often_as_any_other() {
        let word = 0x8000_0001_0010_1011_u64;
        let mut choices = Choices::new(Stream::derive(1, "choices"));
        let mut seen = [0_u32; 64];
        let times = 120_000;
        for _ in 0..times {
            seen[choices.one_of(word) as usize] += 1;
        }
        let expected = f64::from(times) / f64::from(word.count_ones());
        for (place, count) in seen.into_iter().map(f64::from).enumerate() {
            if word >> place & 1 == 1 {
                // Five standard deviations of a binomial count.
                assert!((count - expected).abs() < 5.0 * expected.sqrt(), "place {place}: {count}");
            } else {
                assert_eq!(count, 0.0);
            }
        }
    }

    #[test]
    fn the_nth_one_is_where_counting_finds_it() {
        let mut stream = Stream::derive(2, "words");
        for round in 0..20_000 {
            let word = stream.bits() & if round % 2 == 0 { stream.bits() & stream.bits() } else { u64::MAX };
            for word in [word, word & 0xFFFF, word & 0xFF] {
                for (n, place) in ones(word).enumerate() {
                    assert_eq!(nth_one(word, n as u32), place, "{word:#x}, {n}");
                    assert_eq!(
                        chosen_one(word, |count| count - 1 - n as u32),
                        ones(word).nth(word.count_ones() as usize - 1 - n).unwrap()
                    );
                }
            }
        }
    }

    #[test]
    fn ones_are_found_by_number_and_going_round() {
        let word = 0b1010_0100;
        assert_eq!([0, 1, 2].map(|n| nth_one(word, n)), [2, 5, 7]);
        assert_eq!([0, 2, 3, 6, 8, 63].map(|from| next_one(word, from)), [2, 2, 5, 7, 2, 2]);
        assert_eq!(ones(word).collect::<Vec<_>>(), [2, 5, 7]);
        assert_eq!(ones(0).count(), 0);
    }
}
