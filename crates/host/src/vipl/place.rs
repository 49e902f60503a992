//! Where ends of connections find each other.
//!
//! Within a host that is a socket without a name on a disk. Between hosts it is a port of TCP, one of a few that follow
//! from the names of the network and the end: whoever waits listens at the first that is free, and whoever asks tries
//! them in turn. A socket within the host, as above, keeps a second from waiting for the same.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    getpeername, listen, recv, send, socket_with, sockopt,
};
use wiretwin_msg::via::{HostAddress, ViplError};

/// Requests that may wait at one address.
const BACKLOG: i32 = 128;
/// Ports that a name may have, and from which to which they are: below those that a kernel gives away by itself.
const PORTS: usize = 4;
const FIRST_PORT: u64 = 20_000;
const END_PORT: u64 = 32_768;
/// Octets before a packet on a stream: its length.
const BEFORE: usize = 2;

/// FNV-1a of these octets, each part with its length (Fowler, Noll, Vo).
pub(super) fn digest(parts: &[&[u8]]) -> u64 {
    let octets = parts
        .iter()
        .flat_map(|part| (part.len() as u32).to_le_bytes().into_iter().chain(part.iter().copied()));
    octets.fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3))
}

/// The host part of the addresses of a network within a host: one host, this one.
pub(super) fn network_address(network: &str) -> HostAddress {
    let [first, second, third, fourth, ..] = digest(&[network.as_bytes()]).to_le_bytes();
    // A locally administered address, as of an Ethernet.
    HostAddress([2, 0, first, second, third, fourth])
}

/// The host part of the addresses of a host that is reached at this address of IPv4.
#[must_use]
pub const fn host_of(ip: Ipv4Addr) -> HostAddress {
    let [first, second, third, fourth] = ip.octets();
    HostAddress([2, 0, first, second, third, fourth])
}

/// The reverse of [`host_of`].
#[must_use]
pub const fn ip_of(host: HostAddress) -> Option<Ipv4Addr> {
    match host.0 {
        [2, 0, first, second, third, fourth] => Some(Ipv4Addr::new(first, second, third, fourth)),
        _ => None,
    }
}

/// Where somebody listens: a server at its discriminator, peers at what both have.
#[derive(Debug)]
pub(super) struct Place {
    here: SocketAddrUnix,
    there: Option<Ports>,
}

/// Ports of a host that are to be tried.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    ip: Ipv4Addr,
    ports: [u16; PORTS],
    next: usize,
}

impl Place {
    /// At the host of this address, or within this one.
    pub fn new(network: &str, at: Option<Ipv4Addr>, parts: &[&[u8]]) -> Result<Self, ViplError> {
        let user = rustix::process::geteuid().as_raw();
        let digest = digest(&[&[network.as_bytes()], parts].concat());
        let host = at.map(|ip| format!("{ip}/")).unwrap_or_default();
        let name = format!("wiretwin-vipl/{user}/{host}{network}/{digest:016x}");
        let here = SocketAddrUnix::new_abstract_name(name.as_bytes());
        let port = |number: usize| {
            (FIRST_PORT + (digest >> (16 * number) & 0xffff) % (END_PORT - FIRST_PORT)) as u16
        };
        let there = at.map(|ip| Ports { ip, ports: std::array::from_fn(port), next: 0 });
        Ok(Self { here: here.map_err(|_| ViplError::InvalidParameter)?, there })
    }

    /// Its ports, if it is of a host.
    pub const fn ports(&self) -> Option<&Ports> {
        self.there.as_ref()
    }

    /// Listens there; `None` if somebody does already.
    pub fn listener(&self) -> Result<Option<Listener>, ViplError> {
        let none_left = |_| ViplError::ErrorResource;
        let socket = local_socket()?;
        match bind(&socket, &self.here) {
            Err(Errno::ADDRINUSE) => return Ok(None),
            bound => bound.map_err(none_left)?,
        }
        let Some(ports) = &self.there else {
            listen(&socket, BACKLOG).map_err(none_left)?;
            return Ok(Some(Listener { socket, lock: None }));
        };
        let open = ports.ports.iter().find_map(|port| {
            let stream = stream_socket().ok()?;
            sockopt::set_socket_reuseaddr(&stream, true).ok()?;
            bind(&stream, &SocketAddrV4::new(ports.ip, *port)).ok()?;
            listen(&stream, BACKLOG).ok()?;
            Some(stream)
        });
        let stream = open.ok_or(ViplError::ErrorResource)?;
        Ok(Some(Listener { socket: stream, lock: Some(socket) }))
    }

    /// Connects to whoever listens there within this host, if anybody does.
    pub fn connected(&self) -> Result<OwnedFd, ViplError> {
        let socket = local_socket()?;
        connect(&socket, &self.here).map_err(|_| ViplError::NoMatch)?;
        Ok(socket)
    }
}

impl Ports {
    /// Begins to connect to the next of them; none when there are no more.
    pub fn dial(&mut self) -> Option<OwnedFd> {
        while let Some(port) = self.ports.get(self.next) {
            self.next += 1;
            let socket = stream_socket().ok()?;
            let begun = connect(&socket, &SocketAddrV4::new(self.ip, *port));
            if matches!(begun, Ok(()) | Err(Errno::INPROGRESS)) {
                return Some(socket);
            }
        }
        None
    }
}

/// Whether a connection that was begun stands by now.
pub(super) fn stands(socket: &OwnedFd) -> io::Result<bool> {
    sockopt::socket_error(socket)??;
    match getpeername(socket) {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Listener {
    pub socket: OwnedFd,
    /// What keeps others from listening there, between hosts.
    lock: Option<OwnedFd>,
}

impl Listener {
    /// Takes one that has connected, within this host a process of this user.
    pub fn accepted(&self) -> io::Result<Option<OwnedFd>> {
        let socket = accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let ours =
            self.lock.is_some() || sockopt::socket_peercred(&socket)?.uid == rustix::process::geteuid();
        Ok(ours.then_some(socket))
    }
}

fn local_socket() -> Result<OwnedFd, ViplError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|_| ViplError::ErrorResource)
}

fn stream_socket() -> Result<OwnedFd, ViplError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).map_err(|_| ViplError::ErrorResource)
}

/// Sends a packet on a stream: so few octets have room in a connection that is new.
pub(super) fn say_packet(socket: &OwnedFd, packet: &[u8]) -> io::Result<()> {
    let octets = [&(packet.len() as u16).to_le_bytes()[..], packet].concat();
    let sent = send(socket, &octets, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    if sent == octets.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Takes a packet that has come whole on a stream; the octets are none at the end.
pub(super) fn hear_packet(socket: &OwnedFd, packet: &mut [u8]) -> io::Result<usize> {
    let mut length = [0; BEFORE];
    let (_, seen) = recv(socket, &mut length[..], RecvFlags::DONTWAIT | RecvFlags::PEEK)?;
    if seen == 0 {
        return Ok(0);
    }
    let length = usize::from(u16::from_le_bytes(length));
    if length > packet.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut octets = vec![0; BEFORE + length];
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    if seen < BEFORE || recv(socket, &mut octets[..], flags)?.1 < octets.len() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    recv(socket, &mut octets[..], RecvFlags::DONTWAIT)?;
    packet[..length].copy_from_slice(&octets[BEFORE..]);
    Ok(length)
}
