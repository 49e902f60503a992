//! What one endpoint tells others, through whatever launcher they have, so that they can reach it.

use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::MetadataExt;

use crate::clock::since_1970;

/// Where an endpoint is, and the key that frames to it carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The random number that frames to the endpoint carry.
    pub key: u64,
    /// When the endpoint was made, in sixteenths of a second and less.
    pub epoch: u32,
    /// The same for all processes that can share memory through sockets without a path.
    pub host: u64,
    /// The random number in the name of the socket at which the endpoint takes shared memory.
    pub name: u64,
    /// Where it takes datagrams; port 0 if it does not.
    pub datagrams: SocketAddrV4,
    /// The TCP port of the same address at which it takes connections that tell of its end; 0 if it does not.
    pub ends: u16,
}

/// Bytes that are no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the {} bytes of an address of this version of the direct transport", Address::BYTES)
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// Its length.
    pub const BYTES: usize = 40;
    const MARK: [u8; 4] = *b"wtd2";

    /// An address with fresh random numbers.
    pub(super) fn here(datagrams: SocketAddrV4, ends: u16) -> io::Result<Self> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let half =
            |at: usize| random[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let epoch = (since_1970().as_ns() >> 26) as u32;
        Ok(Self { key: half(0), epoch, host: host()?, name: half(8), datagrams, ends })
    }

    /// The address of a rank that is reached through a simulator.
    #[must_use]
    pub const fn of_rank(rank: u32) -> Self {
        let datagrams = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        Self { key: 0, epoch: 0, host: 0, name: rank as u64, datagrams, ends: 0 }
    }

    /// That rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.name as u32
    }

    /// The address as bytes that a launcher can carry.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&Self::MARK);
        bytes[4..8].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.host.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.name.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.datagrams.ip().octets());
        bytes[36..38].copy_from_slice(&self.datagrams.port().to_be_bytes());
        bytes[38..].copy_from_slice(&self.ends.to_be_bytes());
        bytes
    }

    /// Reads what [`Address::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`AddressError`] where the bytes are none of that.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| AddressError)?;
        if bytes[..4] != Self::MARK {
            return Err(AddressError);
        }
        let wide =
            |at: usize| bytes[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let ip = Ipv4Addr::new(bytes[32], bytes[33], bytes[34], bytes[35]);
        Ok(Self {
            epoch: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            key: wide(8),
            host: wide(16),
            name: wide(24),
            datagrams: SocketAddrV4::new(ip, u16::from_be_bytes([bytes[36], bytes[37]])),
            ends: u16::from_be_bytes([bytes[38], bytes[39]]),
        })
    }
}

/// The IPv4 address of an interface that is up; without a name, of the first that is not the loopback one.
#[must_use]
pub fn address_of_interface(name: Option<&str>) -> Option<Ipv4Addr> {
    let mut first = std::ptr::null_mut();
    // SAFETY: a place for the list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut found = None;
    let mut at = first;
    while found.is_none() && !at.is_null() {
        // SAFETY: an entry of the list, whose name is a string and whose address, if there is one, is of
        // the family that it says.
        unsafe {
            let entry = &*at;
            at = entry.ifa_next;
            let flags = entry.ifa_flags as i32;
            let is_wanted = match name {
                Some(name) => CStr::from_ptr(entry.ifa_name).to_bytes() == name.as_bytes(),
                None => flags & libc::IFF_LOOPBACK == 0,
            };
            let family = entry.ifa_addr.as_ref().map(|address| i32::from(address.sa_family));
            if is_wanted && flags & libc::IFF_UP != 0 && family == Some(libc::AF_INET) {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                found = Some(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)));
            }
        }
    }
    // SAFETY: the list that was made above.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// A number of the boot and the network namespace: sockets without a path reach all of it and no more.
fn host() -> io::Result<u64> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    let boot = u64::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(boot ^ namespace.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written_and_nothing_else_is_one() {
        let there = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 4567);
        let address = Address::here(there, 89).expect("random numbers");
        let bytes = address.to_bytes();
        assert_eq!(Address::from_bytes(&bytes), Ok(address));
        assert_eq!(Address::from_bytes(&bytes[..39]), Err(AddressError));
        let mut other = bytes;
        other[3] = b'1';
        assert_eq!(Address::from_bytes(&other), Err(AddressError));
    }

    #[test]
    fn two_endpoints_of_one_host_have_its_number_and_keys_of_their_own() {
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let (a, b) = (Address::here(nowhere, 0).expect("one"), Address::here(nowhere, 0).expect("another"));
        assert_eq!(a.host, b.host);
        assert!(a.key != b.key && a.name != b.name && a.key != a.name);
    }
}
