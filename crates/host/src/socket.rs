//! TCP and Unix stream sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use crate::rendezvous::{Meeting, MeetingError, set_waits};
use crate::stream::{Failure, Spinner, Stream, Wait};

/// How a socket is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// How a receive waits.
    pub wait: Wait,
    /// `TCP_NODELAY`: Nagle's algorithm (RFC 896) off. Default: on, that is Nagle off.
    pub nodelay: bool,
    /// `SO_SNDBUF` in bytes as asked for; the kernel doubles it and has bounds of its own. `None`
    /// leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
    /// `SO_RCVBUF` in bytes, likewise.
    pub receive_buffer_bytes: Option<usize>,
    /// The address rank 0 listens on. Default: 127.0.0.1.
    pub address: IpAddr,
    /// The port; 0, the default, takes any free one.
    pub port: u16,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            wait: Wait::Block,
            nodelay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
        }
    }
}

impl SocketOptions {
    pub(crate) fn set_buffers(&self, socket: impl AsFd) -> io::Result<()> {
        if let Some(bytes) = self.send_buffer_bytes {
            sockopt::set_socket_send_buffer_size(&socket, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
        }
        Ok(())
    }
}

/// A connected stream socket.
#[derive(Debug)]
pub struct SocketStream {
    fd: OwnedFd,
    wait: Wait,
    limit: Duration,
}

/// Turns between two looks at the clock while spinning on a system call of some 100 ns.
const SPIN_PERIOD: u32 = 2048;

/// Meets the other ranks and connects to each over TCP; `None` stands for this rank.
///
/// # Errors
/// [`MeetingError`]: the address is in use or not allowed, or a rank did not come in time.
pub fn tcp(
    meeting: &Meeting<'_>,
    options: &SocketOptions,
    limit: Duration,
) -> Result<Vec<Option<SocketStream>>, MeetingError> {
    let connections = meeting.tcp(options)?;
    finish(connections, options.wait, limit, |fd| Ok(sockopt::set_tcp_nodelay(fd, options.nodelay)?))
}

/// Meets the other ranks and connects to each over a Unix stream socket; `None` stands for this
/// rank.
///
/// # Errors
/// [`MeetingError`]: the path is too long or not writable, or a rank did not come in time.
pub fn unix(
    meeting: &Meeting<'_>,
    options: &SocketOptions,
    limit: Duration,
) -> Result<Vec<Option<SocketStream>>, MeetingError> {
    let connections = meeting.unix()?;
    finish(connections, options.wait, limit, |fd| options.set_buffers(fd))
}

fn finish(
    connections: Vec<Option<OwnedFd>>,
    wait: Wait,
    limit: Duration,
    set: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
) -> Result<Vec<Option<SocketStream>>, MeetingError> {
    connections
        .into_iter()
        .map(|connection| {
            connection
                .map(|fd| {
                    set(fd.as_fd())
                        .and_then(|()| set_waits(&fd, limit))
                        .map(|()| SocketStream { fd, wait, limit })
                        .map_err(|error| MeetingError::new("setting up a socket", error))
                })
                .transpose()
        })
        .collect()
}

impl SocketStream {
    /// `TCP_NODELAY` as the kernel reports it; `None` on a socket that is not TCP.
    pub fn nodelay(&self) -> Option<bool> {
        sockopt::tcp_nodelay(&self.fd).ok()
    }

    /// The IP address of the other end.
    pub(crate) fn peer_ip(&self) -> io::Result<IpAddr> {
        let peer = rustix::net::getpeername(&self.fd)?;
        let peer = peer.ok_or(io::ErrorKind::NotConnected)?;
        Ok(std::net::SocketAddr::try_from(peer)?.ip())
    }

    /// The congestion control in use; `None` on a socket that is not TCP.
    pub fn congestion(&self) -> Option<String> {
        sockopt::tcp_congestion(&self.fd).ok()
    }

    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes as the kernel reports them (on Linux, twice what was
    /// asked for).
    ///
    /// # Errors
    /// Those of `getsockopt(2)`.
    pub fn buffers(&self) -> io::Result<(usize, usize)> {
        Ok((sockopt::socket_send_buffer_size(&self.fd)?, sockopt::socket_recv_buffer_size(&self.fd)?))
    }

    #[inline]
    fn send_some(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, Failure> {
        loop {
            match send(&self.fd, bytes, flags | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }

    /// `None`: nothing here (or, blocking, nothing came within the limit).
    #[inline]
    fn recv_some(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<Option<usize>, Failure> {
        loop {
            match recv(&self.fd, &mut *buffer, flags) {
                Ok((0, _)) => return Err(Failure::PeerGone),
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }

    fn flags(&self) -> (SendFlags, RecvFlags) {
        match self.wait {
            Wait::Block => (SendFlags::empty(), RecvFlags::empty()),
            Wait::Spin | Wait::Yield => (SendFlags::DONTWAIT, RecvFlags::DONTWAIT),
        }
    }

    /// A transfer that did not move: an error when blocking (the limit has passed), one turn of
    /// the spin otherwise.
    #[inline]
    fn not_moved(&self, spinner: &mut Spinner) -> Result<(), Failure> {
        match self.wait {
            Wait::Block => return Err(Failure::Limit),
            Wait::Spin => {}
            Wait::Yield => rustix::thread::sched_yield(),
        }
        spinner.turn().map(|_| ())
    }
}

#[cold]
pub(crate) fn failure(error: Errno) -> Failure {
    match error {
        Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::CONNABORTED => Failure::PeerGone,
        other => Failure::Refused(io::Error::from(other).to_string()),
    }
}

impl AsFd for SocketStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Stream for SocketStream {
    #[inline]
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure> {
        let (flags, _) = self.flags();
        let mut rest = message;
        let mut spinner = Spinner::new(self.limit, SPIN_PERIOD);
        while !rest.is_empty() {
            match self.send_some(rest, flags)? {
                0 => self.not_moved(&mut spinner)?,
                count => {
                    rest = &rest[count..];
                    spinner.reset();
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let (_, flags) = self.flags();
        let mut filled = 0;
        let mut spinner = Spinner::new(self.limit, SPIN_PERIOD);
        while filled < buffer.len() {
            match self.recv_some(&mut buffer[filled..], flags)? {
                None => self.not_moved(&mut spinner)?,
                Some(count) => {
                    filled += count;
                    spinner.reset();
                }
            }
        }
        Ok(())
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        if bytes.is_empty() {
            return Ok(Some(0)); // a byte stream has no empty message
        }
        Ok(Some(self.send_some(bytes, SendFlags::DONTWAIT)?).filter(|&count| count > 0))
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        if buffer.is_empty() { Ok(Some(0)) } else { self.recv_some(buffer, RecvFlags::DONTWAIT) }
    }

    fn wait(&self) -> Wait {
        self.wait
    }

    /// The end of a socket's stream is seen by receiving.
    fn closed(&self) -> bool {
        false
    }

    fn move_nothing(&mut self) -> Result<(), Failure> {
        let mut byte = [0];
        self.recv_some(&mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK).map(|_| ())
    }

    fn limit(&self) -> Duration {
        self.limit
    }
}
