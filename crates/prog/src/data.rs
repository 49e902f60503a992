//! Numbers as bytes, and the words that programs put into messages.

/// Writes numbers into a message, little-endian; `bytes` must be eight times as long.
pub(crate) fn put(values: &[f64], bytes: &mut [u8]) {
    for (value, place) in values.iter().zip(bytes.chunks_exact_mut(8)) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// Reads them back.
pub(crate) fn get(bytes: &[u8], values: &mut [f64]) {
    for (value, place) in values.iter_mut().zip(bytes.chunks_exact(8)) {
        // A chunk of exactly eight bytes.
        *value = f64::from_le_bytes(place.try_into().expect("chunks of eight bytes"));
    }
}

/// Adds numbers as they travel to others as they travel.
pub(crate) fn add(numbers: &[[u8; 8]], sums: &mut [[u8; 8]]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum = (f64::from_le_bytes(*sum) + f64::from_le_bytes(*number)).to_le_bytes();
    }
}

/// Byte `index` of message `round`: differs between rounds and between neighbours.
fn pattern(round: u64, index: usize) -> u8 {
    let mixed =
        round.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (index as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 40) as u8
}

/// Makes message `round`.
pub(crate) fn fill(message: &mut [u8], round: u64) {
    for (index, byte) in message.iter_mut().enumerate() {
        *byte = pattern(round, index);
    }
}

/// A digest of bytes (FNV-1a, 64 bits), to compare results by.
pub(crate) fn digest(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// A digest of numbers, bit for bit.
#[must_use]
pub fn digest_of(values: &[f64]) -> u64 {
    digest(values.iter().flat_map(|value| value.to_le_bytes()))
}

/// Cuts `count` things into `parts` as evenly as possible: where part `index` begins, and its length.
pub(crate) fn share(count: usize, parts: usize, index: usize) -> (usize, usize) {
    let (each, longer) = (count / parts, count % parts);
    (index * each + index.min(longer), each + usize::from(index < longer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_message() {
        let values = [0.0, -0.0, 1.5, f64::MIN_POSITIVE, -1e300];
        let mut bytes = [0; 40];
        put(&values, &mut bytes);
        let mut back = [1.0; 5];
        get(&bytes, &mut back);
        assert_eq!(digest_of(&values), digest_of(&back));
    }

    #[test]
    fn shares_adjoin_and_differ_by_one_at_most() {
        for (count, parts) in [(0, 3), (7, 3), (9, 3), (2, 5)] {
            let mut next = 0;
            for index in 0..parts {
                let (start, length) = share(count, parts, index);
                assert_eq!(start, next);
                assert!(length == count / parts || length == count / parts + 1);
                next = start + length;
            }
            assert_eq!(next, count);
        }
    }
}
