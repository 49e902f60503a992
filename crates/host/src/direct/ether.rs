//! Frames as whole Ethernet frames, for devices that go past the kernel's protocols: IPv4 and UDP around them, as
//! the kernel would have put them.

use std::ffi::CStr;
use std::net::{Ipv4Addr, SocketAddrV4};

use wiretwin_proto::direct::Service;
use wiretwin_wire::checksum::checksum;

use super::udp::PROTECTED_TOS;

/// The bytes before a frame: Ethernet, IPv4 without options, UDP.
pub(super) const AROUND: usize = 14 + 20 + 8;

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

/// The Ethernet interface that has an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub index: u32,
    pub mac: Mac,
    pub ip: Ipv4Addr,
    mask: u32,
}

impl Interface {
    /// The interface of this address; none if there is none that carries Ethernet frames.
    pub(super) fn of(ip: Ipv4Addr) -> Option<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: a place for the list, which is freed below.
        if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
            return None;
        }
        let (mut named, mut links) = (None, Vec::new());
        let mut at = first;
        while !at.is_null() {
            // SAFETY: an entry of the list, whose name is a string and whose addresses, where there are any, are
            // of the families that they say.
            unsafe {
                let entry = &*at;
                at = entry.ifa_next;
                let name = CStr::from_ptr(entry.ifa_name).to_bytes();
                let Some(address) = entry.ifa_addr.as_ref() else { continue };
                match i32::from(address.sa_family) {
                    libc::AF_INET => {
                        let of = |at: *const libc::sockaddr| {
                            u32::from_be(at.cast::<libc::sockaddr_in>().read_unaligned().sin_addr.s_addr)
                        };
                        if of(entry.ifa_addr) == ip.to_bits() && !entry.ifa_netmask.is_null() {
                            named = Some((name, of(entry.ifa_netmask)));
                        }
                    }
                    libc::AF_PACKET => {
                        links.push((name, entry.ifa_addr.cast::<libc::sockaddr_ll>().read_unaligned()));
                    }
                    _ => {}
                }
            }
        }
        let found = named.and_then(|(name, mask)| {
            let (_, link) = links.iter().find(|(one, _)| *one == name)?;
            let mac: Mac = link.sll_addr[..6].try_into().ok()?;
            let is_ethernet = link.sll_hatype == libc::ARPHRD_ETHER && link.sll_halen == 6;
            is_ethernet.then_some(Self { index: link.sll_ifindex as u32, mac, ip, mask })
        });
        // SAFETY: the list that was made above; the names in it are not used any more.
        unsafe { libc::freeifaddrs(first) };
        found
    }

    /// Whether frames to this address need no router.
    pub(super) fn is_near(&self, ip: Ipv4Addr) -> bool {
        (ip.to_bits() ^ self.ip.to_bits()) & self.mask == 0
    }
}

/// Writes what comes before a datagram's `length` bytes of frames. Its checksum may be left out (RFC 768), as 0: a frame
/// has its check.
#[inline]
pub(super) fn put_around(
    octets: &mut [u8],
    (from_mac, from): (Mac, SocketAddrV4),
    (to_mac, to): (Mac, SocketAddrV4),
    length: usize,
    service: Service,
    checksum_of_datagram: u16,
) {
    octets[..6].copy_from_slice(&to_mac);
    octets[6..12].copy_from_slice(&from_mac);
    octets[12..14].copy_from_slice(&[0x08, 0x00]);
    let tos = if service == Service::Protected { PROTECTED_TOS as u8 } else { 0 };
    octets[14..16].copy_from_slice(&[0x45, tos]);
    octets[16..18].copy_from_slice(&((20 + 8 + length) as u16).to_be_bytes());
    // No identification, for it is never cut: "do not fragment" (RFC 6864). Time to live 64, UDP.
    octets[18..26].copy_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    octets[26..30].copy_from_slice(&from.ip().octets());
    octets[30..34].copy_from_slice(&to.ip().octets());
    let sum = checksum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[34..36].copy_from_slice(&from.port().to_be_bytes());
    octets[36..38].copy_from_slice(&to.port().to_be_bytes());
    octets[38..40].copy_from_slice(&((8 + length) as u16).to_be_bytes());
    octets[40..42].copy_from_slice(&checksum_of_datagram.to_be_bytes());
}

/// The sum of what a datagram's checksum covers besides the datagram (RFC 768), from which a kernel or an adapter goes on.
pub(super) fn sum_of_pseudo_header(from: SocketAddrV4, to: SocketAddrV4, length: usize) -> u16 {
    let mut octets = [0; 12];
    octets[..4].copy_from_slice(&from.ip().octets());
    octets[4..8].copy_from_slice(&to.ip().octets());
    octets[9] = 17;
    octets[10..].copy_from_slice(&((8 + length) as u16).to_be_bytes());
    !checksum(&octets)
}

/// The frames of a datagram of ours that came, and who sent it; none if it is damaged. Its addresses have been looked at by the
/// device, which hands on no others.
#[inline]
pub(super) fn within(octets: &[u8]) -> Option<(&[u8], SocketAddrV4, Mac)> {
    let around: &[u8; AROUND] = octets.get(..AROUND)?.try_into().ok()?;
    let length = usize::from(u16::from_be_bytes([around[38], around[39]])).checked_sub(8)?;
    let ip = Ipv4Addr::new(around[26], around[27], around[28], around[29]);
    let from = SocketAddrV4::new(ip, u16::from_be_bytes([around[34], around[35]]));
    let mac = [around[6], around[7], around[8], around[9], around[10], around[11]];
    // The network may have filled up a frame that is short.
    Some((octets.get(AROUND..AROUND + length)?, from, mac))
}

#[cfg(test)]
mod tests {
    use wiretwin_wire::{ethernet, ipv4, udp};

    use super::super::udp::FRAME;
    use super::*;

    #[test]
    fn what_is_put_around_a_frame_is_ethernet_ipv4_and_udp_and_is_taken_off_again() {
        let (from, to) =
            (SocketAddrV4::new([10, 0, 0, 1].into(), 1000), SocketAddrV4::new([10, 0, 0, 2].into(), 2000));
        for (length, service, tos) in [(32, Service::Ordinary, 0), (FRAME, Service::Protected, 46 << 2)] {
            let mut octets = vec![7; AROUND + length];
            put_around(&mut octets, ([2; 6], from), ([4; 6], to), length, service, 0);
            assert_eq!(within(&octets), Some((&[7; FRAME][..length], from, [2; 6])));
            assert_eq!(octets[..6], [4; 6]);
            let frame = ethernet::Frame::new_checked(&octets[..]).expect("a frame");
            assert_eq!(frame.kind(), ethernet::Kind::Type(ethernet::EtherType::IPV4));
            let packet = ipv4::Packet::new_checked(frame.payload()).expect("a packet");
            let repr = ipv4::Repr::parse(&packet).expect("a sound header");
            assert_eq!((repr.ends.source, repr.ends.destination), (*from.ip(), *to.ip()));
            assert_eq!(octets[15], tos);
            let datagram = udp::Datagram::new_checked(packet.payload()).expect("a datagram");
            assert_eq!((datagram.source_port(), datagram.destination_port()), (1000, 2000));
            assert_eq!(datagram.payload().len(), length);
            // Filled up by the network.
            octets.extend([0; 9]);
            assert_eq!(within(&octets).map(|(frame, ..)| frame.len()), Some(length));
        }
    }

    #[test]
    fn frames_cut_short_are_none() {
        let mut octets = vec![0; AROUND + 40];
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        put_around(&mut octets, ([0; 6], nowhere), ([0; 6], nowhere), 40, Service::Ordinary, 0);
        for length in 0..octets.len() {
            assert_eq!(within(&octets[..length]), None);
        }
        octets[38..40].copy_from_slice(&[0, 7]);
        assert_eq!(within(&octets), None, "less than a header of UDP");
    }
}
