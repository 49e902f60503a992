//! The socket of a circuit: cells in datagrams that fit a packet of Ethernet, many of them with one call.
//!
//! The kernel cuts what is sent into datagrams as late as it can (`UDP_SEGMENT`) and joins what has come
//! (`UDP_GRO`), on one host without cutting it at all. Where it does not know how, or the device on the way does
//! not, each datagram is a call of its own.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, recv, send, sockopt};

use super::{CELL, refuse};
use crate::rendezvous::MeetingError;
use crate::socket::{SocketOptions, failure};
use crate::stream::Failure;

/// Octets of one datagram: 30 cells, so that it fits a packet of Ethernet.
pub(super) const DATAGRAM: usize = 30 * CELL;
/// The most octets that are handed to the kernel at once, no more than it takes: the other end begins with them while
/// the next are made, and each time costs both ends a call and a wake-up.
pub(super) const MOST_AT_ONCE: usize = 32 * DATAGRAM;
/// The most that the kernel hands over at once.
pub(super) const MOST_RECEIVED: usize = 1 << 16;

/// A socket, connected to that of the other end after [`CircuitSocket::connect`].
#[derive(Debug)]
pub(super) struct CircuitSocket {
    socket: UdpSocket,
    /// The kernel cuts what is sent into datagrams.
    cuts: bool,
}

impl CircuitSocket {
    /// A socket on any port of an address, in a class of service, with a buffer for `octets` octets of cells
    /// unless the options ask for another.
    pub(super) fn open(options: &SocketOptions, dscp: u8, octets: usize) -> Result<Self, MeetingError> {
        let socket = UdpSocket::bind(SocketAddr::new(options.address, 0)).map_err(refuse)?;
        sockopt::set_socket_recv_buffer_size(&socket, octets).map_err(|error| refuse(error.into()))?;
        options.set_buffers(&socket).map_err(refuse)?;
        let class = dscp.checked_mul(4).ok_or_else(|| {
            MeetingError::new("setting the class of a circuit", format_args!("DSCP {dscp}: 0 to 63"))
        })?;
        let set = if options.address.is_ipv4() {
            sockopt::set_ip_tos(&socket, class)
        } else {
            sockopt::set_ipv6_tclass(&socket, class.into())
        };
        set.map_err(|error| refuse(error.into()))?;
        let cuts = set_udp(&socket, libc::UDP_SEGMENT, DATAGRAM as i32).is_ok();
        // A kernel that does not join hands over one datagram at a time.
        let _ = set_udp(&socket, libc::UDP_GRO, 1);
        Ok(Self { socket, cuts })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    pub(super) fn connect(&self, to: IpAddr, port: u16) -> io::Result<()> {
        self.socket.connect(SocketAddr::new(to, port))
    }

    /// Sends cells, in datagrams; those for which there is no room are lost, as they may be anywhere.
    pub(super) fn send(&mut self, cells: &[u8]) -> Result<(), Failure> {
        if self.cuts {
            match put(&self.socket, cells) {
                // A way whose packets are smaller, or a device that cannot fill in checksums.
                Err(Errno::INVAL | Errno::IO | Errno::MSGSIZE) => {
                    self.cuts = false;
                    set_udp(&self.socket, libc::UDP_SEGMENT, 0).map_err(refused)?;
                }
                sent => return sent.map_err(failure),
            }
        }
        cells.chunks(DATAGRAM).try_for_each(|datagram| put(&self.socket, datagram)).map_err(failure)
    }

    /// Takes cells that have come, whole datagrams of them; `None` if none have. `buffer` has [`MOST_RECEIVED`]
    /// octets.
    pub(super) fn recv(&self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                // What was sent earlier met nobody: the TCP connection tells if that is so.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }

    /// Its DSCP as the kernel has it.
    pub(super) fn class(&self) -> io::Result<u8> {
        let octet = if sockopt::socket_domain(&self.socket)? == AddressFamily::INET {
            sockopt::ip_tos(&self.socket)?.into()
        } else {
            sockopt::ipv6_tclass(&self.socket)?
        };
        Ok((octet / 4) as u8)
    }

    /// `SO_SNDBUF` and `SO_RCVBUF`, in bytes as the kernel reports them.
    pub(super) fn buffers(&self) -> io::Result<(usize, usize)> {
        let send = sockopt::socket_send_buffer_size(&self.socket)?;
        Ok((send, sockopt::socket_recv_buffer_size(&self.socket)?))
    }
}

impl AsFd for CircuitSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn put(socket: &UdpSocket, octets: &[u8]) -> Result<(), Errno> {
    match send(socket, octets, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::CONNREFUSED) => Ok(()),
        Err(error) => Err(error),
    }
}

fn refused(error: io::Error) -> Failure {
    Failure::Refused(format!("setting up a socket of a circuit: {error}"))
}

fn set_udp(socket: &UdpSocket, option: i32, value: i32) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the option's value is an int, which lives until the call is over.
    let outcome = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), length)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
