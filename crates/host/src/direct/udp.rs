//! Frames as UDP datagrams: to any host, with no privilege.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use wiretwin_proto::direct::Service;

/// A socket that never waits.
///
/// Frames to one peer that follow each other are one call: the kernel cuts them apart as late as it can
/// (`UDP_SEGMENT`) and joins those that come (`UDP_GRO`), between processes of one machine without cutting them at
/// all. Where it or the device cannot, each frame is a call of its own.
#[derive(Debug)]
pub(super) struct UdpDevice {
    socket: UdpSocket,
    /// Frames that wait to be sent, for whom, and how long each of them but the last is.
    out: Vec<u8>,
    to: SocketAddrV4,
    each: usize,
    /// The kernel cuts what is sent into frames.
    cuts: bool,
    came: Vec<u8>,
    service: Service,
}

/// What has come with one call, in a buffer that is given back by [`UdpDevice::give_back`].
#[derive(Debug)]
pub(super) struct Came {
    buffer: Vec<u8>,
    length: usize,
    each: usize,
    pub from: SocketAddrV4,
}

impl Came {
    /// Iterates over the frames in the order in which they arrived.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.buffer[..self.length].chunks(self.each)
    }
}

/// The longest frame: what an Ethernet frame of 1500 bytes holds beside the headers of IPv4 and UDP.
pub(super) const FRAME: usize = 1472;
/// The most bytes of frames that go with one call: as many as every kernel that cuts takes, and in which no IP packet
/// is too long.
const MOST_AT_ONCE: usize = 44 * FRAME;
/// The most that comes with one call.
const MOST_RECEIVED: usize = 1 << 16;
/// What the kernel is asked to keep of what has come: credits of many peers.
const BUFFER: usize = 8 << 20;
/// Expedited forwarding (RFC 3246), as a type of service.
pub(super) const PROTECTED_TOS: u32 = 46 << 2;

impl UdpDevice {
    pub(super) fn open(ip: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddrV4::new(ip, 0))?;
        socket.set_nonblocking(true)?;
        // The kernel gives less if it must; what does not fit is lost and sent again.
        set_socket_recv_buffer_size(&socket, BUFFER)?;
        set_socket_send_buffer_size(&socket, BUFFER)?;
        // A kernel that does not join hands over one frame at a time.
        let _ = set(&socket, libc::UDP_GRO, 1);
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        Ok(Self {
            socket,
            out: Vec::with_capacity(MOST_AT_ONCE),
            to: nowhere,
            each: 0,
            cuts: true,
            came: vec![0; MOST_RECEIVED],
            service: Service::Ordinary,
        })
    }

    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) fn address(&self) -> io::Result<SocketAddrV4> {
        match self.socket.local_addr()? {
            SocketAddr::V4(address) => Ok(address),
            SocketAddr::V6(_) => Err(io::Error::other("a socket of IPv4 has an address of IPv6")),
        }
    }

    /// Takes a frame, which goes with the next [`UdpDevice::flush`] at the latest.
    pub(super) fn transmit(&mut self, to: SocketAddrV4, head: &[u8], payload: &[u8], service: Service) {
        let length = head.len() + payload.len();
        // Of those that go together only the last may be shorter.
        let joins = (to, service) == (self.to, self.service)
            && length <= self.each
            && self.out.len().is_multiple_of(self.each)
            && self.out.len() + length <= MOST_AT_ONCE;
        if !self.out.is_empty() && !joins {
            self.flush();
        }
        if self.service != service {
            let tos = if service == Service::Protected { PROTECTED_TOS } else { 0 };
            // A service that cannot be had is the ordinary one.
            let _ = rustix::net::sockopt::set_ip_tos(&self.socket, tos as u8);
            self.service = service;
        }
        if self.out.is_empty() {
            (self.to, self.each) = (to, length);
        }
        let at = self.out.len();
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(payload);
        wiretwin_wire::direct::seal(&mut self.out[at..]);
    }

    /// Sends the frames that wait; what the kernel does not take is lost, as in a network.
    pub(super) fn flush(&mut self) {
        if self.out.len() > self.each && self.cuts {
            match send_cut(&self.socket, self.to, &self.out, self.each as u16) {
                // A way whose packets are smaller, or a device that cannot fill in checksums.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE)) =>
                {
                    self.cuts = false;
                }
                _ => self.out.clear(),
            }
        }
        for frame in self.out.chunks(self.each.max(1)) {
            let _ = self.socket.send_to(frame, self.to);
        }
        self.out.clear();
    }

    /// The next frames that have come.
    pub(super) fn receive(&mut self) -> Option<Came> {
        // An error belongs to a datagram sent before: its host was not to be reached, and is asked again.
        for _ in 0..4 {
            match receive_joined(&self.socket, &mut self.came) {
                Ok(Some((length, each, from))) => {
                    return Some(Came { buffer: std::mem::take(&mut self.came), length, each, from });
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        None
    }

    pub(super) fn give_back(&mut self, came: Came) {
        self.came = came.buffer;
    }
}

/// A place for one control message of a number.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// Sends frames of `each` bytes, the last perhaps shorter, with one call.
fn send_cut(socket: &UdpSocket, to: SocketAddrV4, frames: &[u8], each: u16) -> io::Result<()> {
    let mut name = sockaddr(to);
    let mut control = Control([0; 32]);
    let mut piece = libc::iovec { iov_base: frames.as_ptr().cast_mut().cast(), iov_len: frames.len() };
    // SAFETY: a message of nothing is one; the pointers are to places that live until the call is over, with
    // their lengths, and the control message fits its place, which is aligned for it.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of_val(&name) as libc::socklen_t;
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(2) as usize;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_UDP;
        (*head).cmsg_type = libc::UDP_SEGMENT;
        (*head).cmsg_len = libc::CMSG_LEN(2) as usize;
        libc::CMSG_DATA(head).cast::<u16>().write_unaligned(each);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes frames that the kernel has joined: all their bytes, those of each but the last, and who sent them;
/// nothing of a sender that has no address of IPv4.
fn receive_joined(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Option<(usize, usize, SocketAddrV4)>> {
    let mut name = sockaddr(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let mut control = Control([0; 32]);
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: as above; the kernel says how much of the place for control messages it has filled.
    let (count, each) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of_val(&name) as libc::socklen_t;
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of_val(&control);
        let count = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        let is_said =
            !head.is_null() && ((*head).cmsg_level, (*head).cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let each = is_said.then(|| libc::CMSG_DATA(head).cast::<i32>().read_unaligned());
        (count as usize, each.map_or(count as usize, |each| each as usize))
    };
    let from = SocketAddrV4::new(
        Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr)),
        u16::from_be(name.sin_port),
    );
    let is_known = i32::from(name.sin_family) == libc::AF_INET;
    Ok(is_known.then_some((count, each.max(1), from)))
}

fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: address.ip().to_bits().to_be() },
        sin_zero: [0; 8],
    }
}

fn set(socket: &UdpSocket, option: i32, value: i32) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the option's value is an int, which lives until the call is over.
    let outcome = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), length)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
