//! The CRC-10 at the end of a cell's payload, as AAL type 3/4, OAM and RM cells have it.
//!
//! I.363.3 §9.1.1, I.610 §10.1: x^10 + x^9 + x^5 + x^4 + x + 1 over the 374 bits before it.

use crc::{CRC_10_ATM, Crc, Table};

use crate::DecodeError;
use crate::cell::PAYLOAD_OCTETS;
use crate::octets::{put, u16_at};

static CRC: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_10_ATM);

/// The remainders of six bits, for those in front of the CRC that do not fill an octet.
const SIX_BITS: [u16; 64] = {
    let mut table = [0; 64];
    let mut bits = 0;
    while bits < 64 {
        let mut register = (bits as u16) << 4;
        let mut step = 0;
        while step < 6 {
            register = if register & 0x200 != 0 { register << 1 ^ 0x233 } else { register << 1 } & 0x3FF;
            step += 1;
        }
        table[bits] = register;
        bits += 1;
    }
    table
};

/// Where the two octets stand whose low ten bits are the CRC.
pub(crate) const CRC_AT: usize = PAYLOAD_OCTETS - 2;

/// The CRC that the first 374 bits of a payload have.
pub(crate) fn computed(payload: &[u8]) -> u16 {
    let octets = CRC.checksum(&payload[..CRC_AT]);
    let six = u16::from(payload[CRC_AT] >> 2);
    // Six bits of the register leave it and meet the six that come.
    (octets << 6 & 0x3FF) ^ SIX_BITS[usize::from(octets >> 4 ^ six)]
}

/// Writes the CRC behind the 374 bits.
pub(crate) fn close(payload: &mut [u8]) {
    let crc = computed(payload);
    let word = u16_at(payload, CRC_AT) & 0xFC00 | crc;
    put(payload, CRC_AT, word.to_be_bytes());
}

/// Passes if the CRC is right.
pub(crate) fn check(format: &'static str, payload: &[u8]) -> Result<(), DecodeError> {
    let (found, computed) = (u16_at(payload, CRC_AT) & 0x3FF, computed(payload));
    if found == computed {
        return Ok(());
    }
    Err(DecodeError::checksum((format, "CRC-10"), CRC_AT, found, computed))
}

/// Sees these octets as a cell's payload.
pub(crate) fn sized(format: &'static str, octets: &[u8]) -> Result<(), DecodeError> {
    if octets.len() == PAYLOAD_OCTETS {
        return Ok(());
    }
    Err(DecodeError::size(format, "payload", octets.len(), "48"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Long division, bit by bit.
    fn divided(payload: &[u8], bits: usize) -> u16 {
        (0..bits).fold(0, |register: u16, bit| {
            let next = u16::from(payload[bit / 8] >> (7 - bit % 8) & 1);
            let out = register >> 9 & 1 ^ next;
            (register << 1 & 0x3FF) ^ if out == 1 { 0x233 } else { 0 }
        })
    }

    #[test]
    fn the_check_of_the_catalogue_holds() {
        assert_eq!(CRC.checksum(b"123456789"), 0x199);
        assert_eq!(divided(b"123456789", 72), 0x199);
    }

    proptest! {
        #[test]
        fn the_crc_is_the_remainder_of_374_bits(octets in prop::collection::vec(any::<u8>(), 48)) {
            prop_assert_eq!(computed(&octets), divided(&octets, 374));
            let mut closed = octets.clone();
            close(&mut closed);
            prop_assert_eq!(check("test", &closed), Ok(()));
            prop_assert_eq!(CRC.checksum(&closed), 0, "over all 384 bits nothing remains");
            prop_assert_eq!(closed[46] & 0xFC, octets[46] & 0xFC);
        }

        #[test]
        fn every_burst_of_ten_bits_is_found(
            octets in prop::collection::vec(any::<u8>(), 48),
            at in 0usize..375,
            pattern in 1u16..0x400,
        ) {
            let mut wrong = octets;
            close(&mut wrong);
            for bit in (0..10).filter(|bit| pattern >> bit & 1 == 1 && at + bit < 384) {
                wrong[(at + bit) / 8] ^= 0x80 >> ((at + bit) % 8);
            }
            prop_assert!(check("test", &wrong).is_err());
        }
    }
}
