//! The names of devices, and how a host is found by its name.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use wiretwin_host::direct::address_of_interface;
use wiretwin_host::vipl::{Reach, host_of, ip_of};
use wiretwin_msg::via::HostAddress;

/// The device of a name and its network: `shm`, `udp`, `packet`; the interface of the latter two behind `@`, by its name
/// or its address, and the network behind `:`. Without an interface it is the first that is up and not the loopback one,
/// or that where there is no other.
pub(crate) fn parse(name: &str) -> Option<(Reach, &str)> {
    let (device, network) = match name.split_once(':') {
        None => (name, ""),
        Some((_, "")) => return None,
        Some(parts) => parts,
    };
    let (device, interface) = match device.split_once('@') {
        None => (device, None),
        Some((device, interface)) => (device, Some(interface)),
    };
    let ip = || match interface {
        None => Some(address_of_interface(None).unwrap_or(Ipv4Addr::LOCALHOST)),
        Some(interface) => interface.parse().ok().or_else(|| address_of_interface(Some(interface))),
    };
    let reach = match device {
        "shm" if interface.is_none() => Reach::Memory,
        "udp" => Reach::Udp(ip()?),
        "packet" => Reach::Packet(ip()?),
        _ => return None,
    };
    Some((reach, network))
}

/// The host of a name that the system knows, or of an address of IPv4 as it is written.
pub(crate) fn host_by_name(name: &str, number: usize) -> Option<HostAddress> {
    let found = (name, 0).to_socket_addrs().ok()?;
    let mut hosts: Vec<Ipv4Addr> = found
        .filter_map(|address| match address.ip() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })
        .collect();
    hosts.dedup();
    hosts.get(number).copied().map(host_of)
}

/// The address of a host as it is written.
pub(crate) fn name_of(host: HostAddress) -> Option<String> {
    ip_of(host).map(|ip| ip.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name_an_interface_and_a_network() {
        let there = Ipv4Addr::new(10, 1, 2, 3);
        let cases = [
            ("shm", Reach::Memory, ""),
            ("shm:a", Reach::Memory, "a"),
            ("udp@10.1.2.3", Reach::Udp(there), ""),
            ("udp@10.1.2.3:b", Reach::Udp(there), "b"),
            ("udp@lo", Reach::Udp(Ipv4Addr::LOCALHOST), ""),
            ("packet@lo:c:d", Reach::Packet(Ipv4Addr::LOCALHOST), "c:d"),
        ];
        for (name, reach, network) in cases {
            assert_eq!(parse(name), Some((reach, network)), "{name}");
        }
        for name in ["", "shm:", "shm@lo", "udp@nowhere", "udp@", "tcp", ":a"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn hosts_are_known_by_their_addresses_and_by_the_systems_names() {
        let there = HostAddress([2, 0, 10, 1, 2, 3]);
        assert_eq!(host_by_name("10.1.2.3", 0), Some(there));
        assert_eq!(host_by_name("10.1.2.3", 1), None);
        assert_eq!(host_by_name("localhost", 0), Some(HostAddress([2, 0, 127, 0, 0, 1])));
        assert_eq!(name_of(there).as_deref(), Some("10.1.2.3"));
        assert_eq!(name_of(HostAddress([9; 6])), None);
    }
}
