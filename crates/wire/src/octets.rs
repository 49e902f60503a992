//! Numbers in octets, highest octet first.

/// The 16 bits at `at`.
pub(crate) const fn u16_at(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// The 32 bits at `at`.
pub(crate) const fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// The `N` octets at `at`.
pub(crate) fn array_at<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&octets[at..at + N]);
    array
}

/// Writes `what` at `at`.
pub(crate) fn put<const N: usize>(octets: &mut [u8], at: usize, what: [u8; N]) {
    octets[at..at + N].copy_from_slice(&what);
}
