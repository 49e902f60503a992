//! Header error control: a CRC-8 that corrects one bit and detects most others.
//!
//! I.432.1, header error control: generator x^8 + x^2 + x + 1, remainder added modulo 2 to the
//! coset 01010101; a receiver alternates between correcting and detecting, so that the errors of a
//! burst, one after another, are not "corrected" into other people's cells.

use core::fmt;

use crc::{CRC_8_I_432_1, Crc};

use super::HEADER_OCTETS;

/// What the receiver does with a header that fails its check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HecMode {
    /// A single wrong bit is put right; anything else is dropped. Entered on an error-free header.
    #[default]
    Correction,
    /// Every wrong header is dropped. Entered on any error.
    Detection,
}

impl fmt::Display for HecMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Correction => "Correction mode",
            Self::Detection => "Detection mode",
        })
    }
}

/// What became of one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HecVerdict {
    /// The check holds: the header is as it came.
    Valid,
    /// One bit was wrong; this is the header with the bit put right.
    Corrected([u8; HEADER_OCTETS]),
    /// The cell is to be dropped.
    Discarded,
}

/// The receiver of one link's headers, in either of its two modes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HecReceiver {
    mode: HecMode,
}

impl HecReceiver {
    /// A receiver in correction mode.
    pub const fn new() -> Self {
        Self { mode: HecMode::Correction }
    }

    /// The mode the next header meets.
    pub const fn mode(&self) -> HecMode {
        self.mode
    }

    /// Checks one header.
    ///
    /// I.432.1, "HEC: receiver modes of operation": correction mode takes single-bit errors back and goes to
    /// detection mode on any error; detection mode drops every header with an error and goes back
    /// to correction mode on the first without.
    pub fn handle_header(&mut self, header: [u8; HEADER_OCTETS]) -> HecVerdict {
        let syndrome = syndrome(header);
        let (verdict, next) = match (self.mode, syndrome) {
            (_, 0) => (HecVerdict::Valid, HecMode::Correction),
            (HecMode::Correction, _) => (correct(header, syndrome), HecMode::Detection),
            (HecMode::Detection, _) => (HecVerdict::Discarded, HecMode::Detection),
        };
        self.mode = next;
        verdict
    }
}

/// The header error control octet of four header octets.
pub const fn header_error_control(octets: [u8; 4]) -> u8 {
    CRC.checksum(&octets)
}

/// Zero if the check holds, else a value that depends on the wrong bits alone.
const fn syndrome(header: [u8; HEADER_OCTETS]) -> u8 {
    header_error_control([header[0], header[1], header[2], header[3]]) ^ header[4]
}

/// Turns the one bit that gives this syndrome, if there is one.
fn correct(mut header: [u8; HEADER_OCTETS], syndrome: u8) -> HecVerdict {
    match SINGLE_BIT_SYNDROMES.iter().position(|&of_bit| of_bit == syndrome) {
        Some(bit) => {
            header[bit / 8] ^= 0x80 >> (bit % 8);
            HecVerdict::Corrected(header)
        }
        None => HecVerdict::Discarded,
    }
}

const CRC: Crc<u8> = Crc::<u8>::new(&CRC_8_I_432_1);

/// The syndrome of each of the 40 bits, first bit first; all different.
const SINGLE_BIT_SYNDROMES: [u8; HEADER_OCTETS * 8] = {
    let mut table = [0; HEADER_OCTETS * 8];
    let mut bit = 0;
    while bit < table.len() {
        // A header of zeros whose check holds, with this bit turned.
        let mut header = [0, 0, 0, 0, header_error_control([0; 4])];
        header[bit / 8] ^= 0x80 >> (bit % 8);
        table[bit] = syndrome(header);
        bit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    const HEADER: [u8; 5] = [0x00, 0x10, 0x06, 0x43, 0x47];

    fn turned(mut header: [u8; 5], bits: &[usize]) -> [u8; 5] {
        for bit in bits {
            header[bit / 8] ^= 0x80 >> (bit % 8);
        }
        header
    }

    /// Division by the generator, bit by bit, as the specification describes it.
    fn long_division(octets: [u8; 4]) -> u8 {
        let mut remainder = u64::from(u32::from_be_bytes(octets)) << 8;
        for bit in (8..40).rev() {
            if remainder >> bit & 1 == 1 {
                remainder ^= 0b1_0000_0111 << (bit - 8);
            }
        }
        remainder as u8 ^ 0b0101_0101
    }

    #[test]
    fn known_octets() {
        assert_eq!(header_error_control([0x00, 0x00, 0x00, 0x00]), 0x55);
        assert_eq!(header_error_control([0x00, 0x00, 0x00, 0x01]), 0x52);
        assert_eq!(header_error_control([0x00, 0x00, 0x00, 0x09]), 0x6A);
        assert_eq!(CRC.checksum(b"123456789"), 0xA1);
    }

    #[test]
    fn correction_mode_passes_a_valid_header_and_stays() {
        let mut receiver = HecReceiver::new();
        assert_eq!(receiver.handle_header(HEADER), HecVerdict::Valid);
        assert_eq!(receiver.mode().to_string(), "Correction mode");
    }

    #[test]
    fn correction_mode_corrects_each_single_bit_and_goes_to_detection() {
        for bit in 0..40 {
            let mut receiver = HecReceiver::new();
            assert_eq!(
                receiver.handle_header(turned(HEADER, &[bit])),
                HecVerdict::Corrected(HEADER),
                "bit {bit}"
            );
            assert_eq!(receiver.mode(), HecMode::Detection);
        }
    }

    #[test]
    fn correction_mode_never_corrects_two_wrong_bits_into_the_sent_header() {
        let mut discarded = 0;
        for first in 0..40 {
            for second in first + 1..40 {
                let mut receiver = HecReceiver::new();
                match receiver.handle_header(turned(HEADER, &[first, second])) {
                    HecVerdict::Discarded => discarded += 1,
                    verdict => assert!(!matches!(verdict, HecVerdict::Valid), "bits {first} and {second}"),
                }
                assert_eq!(receiver.mode(), HecMode::Detection);
            }
        }
        // The generator is (x + 1) times a primitive polynomial of degree 7: an even number of
        // wrong bits has even parity, and no single bit has its syndrome.
        assert_eq!(discarded, 40 * 39 / 2);
    }

    #[test]
    fn detection_mode_drops_a_single_wrong_bit_and_stays() {
        let mut receiver = HecReceiver { mode: HecMode::Detection };
        assert_eq!(receiver.handle_header(turned(HEADER, &[7])), HecVerdict::Discarded);
        assert_eq!(receiver.mode().to_string(), "Detection mode");
    }

    #[test]
    fn detection_mode_drops_several_wrong_bits_and_stays() {
        let mut receiver = HecReceiver { mode: HecMode::Detection };
        assert_eq!(receiver.handle_header(turned(HEADER, &[3, 9, 27])), HecVerdict::Discarded);
        assert_eq!(receiver.mode(), HecMode::Detection);
    }

    #[test]
    fn detection_mode_ends_with_the_first_valid_header() {
        let mut receiver = HecReceiver { mode: HecMode::Detection };
        assert_eq!(receiver.handle_header(HEADER), HecVerdict::Valid);
        assert_eq!(receiver.mode(), HecMode::Correction);
        assert_eq!(receiver.handle_header(turned(HEADER, &[0])), HecVerdict::Corrected(HEADER));
    }

    proptest! {
        #[test]
        fn the_octet_is_the_remainder_of_long_division(octets in any::<[u8; 4]>()) {
            prop_assert_eq!(header_error_control(octets), long_division(octets));
        }

        #[test]
        fn every_single_bit_of_every_header_is_corrected(octets in any::<[u8; 4]>(), bit in 0usize..40) {
            let [a, b, c, d] = octets;
            let sent = [a, b, c, d, header_error_control(octets)];
            let verdict = HecReceiver::new().handle_header(turned(sent, &[bit]));
            prop_assert_eq!(verdict, HecVerdict::Corrected(sent));
        }
    }
}
