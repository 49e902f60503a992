//! The Internet checksum: the 16-bit ones' complement of the ones' complement sum of 16-bit words.
//!
//! RFC 1071 (computation, pieces of odd length), RFC 1624 (update after a field has changed).

/// A ones' complement sum that is being added up, over pieces of any length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Sum of 16-bit words, carries not yet folded in. 2^16 pieces of 2^32 octets do not fill it.
    words: u64,
    /// An odd number of octets was added: the next octet is the low half of a word.
    odd: bool,
}

impl Sum {
    /// Nothing.
    pub const ZERO: Self = Self { words: 0, odd: false };

    /// With these octets behind those before.
    #[must_use]
    pub fn octets(self, octets: &[u8]) -> Self {
        // RFC 1071 (2)(B): the sum does not depend on the order of octets in a word, so it is taken
        // in the machine's own order and turned once.
        let (fours, rest) = octets.as_chunks::<4>();
        let mut sum = 0_u64;
        for four in fours {
            sum += u64::from(u32::from_ne_bytes(*four));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_ne_bytes(last));
        let folded = u16::from_be_bytes(folded(sum).to_ne_bytes());
        // RFC 1071, 2(B): behind an odd number of octets, both halves of every word change places.
        let word = if self.odd { folded.swap_bytes() } else { folded };
        Self { words: self.words + u64::from(word), odd: self.odd ^ (octets.len() % 2 == 1) }
    }

    /// With this word behind the octets before, of which there must be an even number.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        debug_assert!(!self.odd, "a word begins at an even octet");
        Self { words: self.words + word as u64, odd: self.odd }
    }

    /// Without a word that began at an even octet.
    #[must_use]
    pub const fn without(self, word: u16) -> Self {
        Self { words: self.words + !word as u64, odd: self.odd }
    }

    /// The sum, folded to 16 bits: 0xFFFF for octets that contain their right checksum.
    pub const fn fold(self) -> u16 {
        folded(self.words)
    }

    /// The checksum: the complement of the sum.
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Whether octets that contain a checksum contain the right one.
    pub const fn holds(self) -> bool {
        self.fold() == u16::MAX
    }
}

/// A sum in 16 bits, each carry added at the low end.
const fn folded(sum: u64) -> u16 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// The checksum of these octets.
pub fn checksum(octets: &[u8]) -> u16 {
    Sum::ZERO.octets(octets).checksum()
}

/// The checksum after one of the words it covers has changed.
///
/// RFC 1624 (eqn. 3): HC' = ~(~HC + ~m + m').
pub const fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).without(old).word(new).checksum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 (1) as it is written: word by word, the carry added at once.
    fn word_by_word(octets: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in octets.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            if sum > 0xFFFF {
                sum -= 0xFFFF;
            }
        }
        sum as u16
    }

    #[test]
    fn the_worked_example_adds_up() {
        // RFC 1071 (3): 0001 f203 f4f5 f6f7 give ddf2.
        let octets = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(Sum::ZERO.octets(&octets).fold(), 0xDDF2);
        assert_eq!(checksum(&octets), 0x220D);
    }

    #[test]
    fn an_update_never_ends_in_the_other_zero() {
        // RFC 1624 (4): header checksum DD2F, 5555 becomes 3285: 0000, where eqn. 2 would give FFFF.
        assert_eq!(updated(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn no_carry_is_lost_in_the_longest_packet() {
        let octets = [0xFF; 65535];
        assert_eq!(Sum::ZERO.octets(&octets).fold(), word_by_word(&octets));
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_words(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let (ours, slow) = (Sum::ZERO.octets(&octets).fold(), word_by_word(&octets));
            prop_assert_eq!(ours, slow);
        }

        #[test]
        fn pieces_of_any_length_give_the_same_sum(
            octets in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut ends: alloc::vec::Vec<_> = cuts.iter().map(|cut| cut.index(octets.len() + 1)).collect();
            ends.push(octets.len());
            ends.sort_unstable();
            let (mut sum, mut start) = (Sum::ZERO, 0);
            for end in ends {
                sum = sum.octets(&octets[start..end]);
                start = end;
            }
            prop_assert_eq!(sum.fold(), Sum::ZERO.octets(&octets).fold());
        }

        #[test]
        fn an_updated_checksum_is_that_of_the_changed_octets(
            mut octets in prop::collection::vec(any::<u8>(), 2..200),
            at: prop::sample::Index,
            new: u16,
        ) {
            let at = at.index(octets.len() / 2) * 2;
            // A header is never all zeros, which has two sums.
            octets[0] |= 1;
            let before = checksum(&octets);
            let old = u16::from_be_bytes([octets[at], octets[at + 1]]);
            octets[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assume!(octets.iter().any(|&octet| octet != 0));
            prop_assert_eq!(updated(before, old, new), checksum(&octets));
        }

        #[test]
        fn octets_with_their_checksum_sum_to_all_ones(octets in prop::collection::vec(any::<u8>(), 0..99)) {
            prop_assume!(octets.len() % 2 == 0);
            let sum = Sum::ZERO.octets(&octets);
            prop_assert!(sum.word(sum.checksum()).holds());
        }
    }
}
