//! Frames as UDP datagrams: to any host, with no privilege.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use wiretwin_proto::direct::Service;

/// A socket that never waits.
#[derive(Debug)]
pub(super) struct UdpDevice {
    socket: UdpSocket,
    /// The frame being sent, and the one that has come.
    out: Vec<u8>,
    came: Vec<u8>,
    service: Service,
}

/// The longest frame: what an Ethernet frame of 1500 bytes holds beside the headers of IPv4 and UDP.
pub(super) const FRAME: usize = 1472;
/// What the kernel is asked to keep of what has come: credits of many peers.
const BUFFER: usize = 8 << 20;
/// Expedited forwarding (RFC 3246), as a type of service.
const PROTECTED_TOS: u32 = 46 << 2;

impl UdpDevice {
    pub(super) fn open(ip: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddrV4::new(ip, 0))?;
        socket.set_nonblocking(true)?;
        // The kernel gives less if it must; what does not fit is lost and sent again.
        set_socket_recv_buffer_size(&socket, BUFFER)?;
        set_socket_send_buffer_size(&socket, BUFFER)?;
        let (out, came) = (Vec::with_capacity(FRAME), vec![0; FRAME + 1]);
        Ok(Self { socket, out, came, service: Service::Ordinary })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddrV4> {
        match self.socket.local_addr()? {
            SocketAddr::V4(address) => Ok(address),
            SocketAddr::V6(_) => Err(io::Error::other("a socket of IPv4 has an address of IPv6")),
        }
    }

    /// Sends a frame; what the kernel does not take is lost, as in a network.
    pub(super) fn transmit(&mut self, to: SocketAddrV4, head: &[u8], payload: &[u8], service: Service) {
        if self.service != service {
            let tos = if service == Service::Protected { PROTECTED_TOS } else { 0 };
            // A service that cannot be had is the ordinary one.
            let _ = rustix::net::sockopt::set_ip_tos(&self.socket, tos as u8);
            self.service = service;
        }
        self.out.clear();
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(payload);
        wiretwin_wire::direct::seal(&mut self.out);
        let _ = self.socket.send_to(&self.out, to);
    }

    /// The next frame that has come, in a buffer that is given back by [`UdpDevice::give_back`].
    pub(super) fn receive(&mut self) -> Option<(Vec<u8>, usize, SocketAddrV4)> {
        // An error belongs to a datagram sent before: its host was not to be reached, and is asked again.
        for _ in 0..4 {
            match self.socket.recv_from(&mut self.came) {
                Ok((length, SocketAddr::V4(from))) => {
                    return Some((std::mem::take(&mut self.came), length, from));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        None
    }

    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        self.came = buffer;
    }
}
