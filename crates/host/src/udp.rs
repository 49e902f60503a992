//! UDP: one datagram a message, which may be lost.
//!
//! A TCP connection beside it carries what must arrive and tells at once when the peer dies. A
//! receive that meets no datagram within the loss limit ends with [`Failure::Limit`]; the caller
//! counts it and goes on. The limit follows the waits that were seen ([`LossLimit`]). Each control message received empties the socket of datagrams that came
//! before it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, sockopt};

use crate::rendezvous::{Meeting, MeetingError, set_waits};
use crate::socket::{SocketOptions, SocketStream, failure, tcp};
use crate::stream::{Failure, Spinner, Stream, Wait};

/// The largest payload of a UDP datagram over IPv4: 65535 - 20 - 8 (RFC 768, RFC 791).
pub const LARGEST_DATAGRAM: usize = 65_507;

/// The slice of a blocking wait between two looks at whether the peer still lives.
const SLICE: Duration = Duration::from_millis(10);
/// Turns between two looks at the clock and the peer while spinning.
const SPIN_PERIOD: u32 = 2048;

/// A datagram counts as lost after so many times the longest wait for one that came.
const PATIENCE: u32 = 8;

/// When a datagram counts as lost: after [`PATIENCE`] times the longest wait so far for one that came, within
/// these bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossLimit {
    /// Never before.
    pub least: Duration,
    /// Always after.
    pub most: Duration,
}

impl LossLimit {
    /// The same limit whatever was seen.
    pub const fn exactly(limit: Duration) -> Self {
        Self { least: limit, most: limit }
    }

    /// The limit once `longest` was the longest wait for a datagram that came.
    fn after(self, longest: Duration) -> Duration {
        longest.saturating_mul(PATIENCE).max(self.least).min(self.most)
    }
}

/// A connected UDP socket with a TCP connection beside it.
#[derive(Debug)]
pub struct UdpStream {
    fd: OwnedFd,
    control: SocketStream,
    wait: Wait,
    loss_limit: LossLimit,
    /// The longest wait for a datagram that came, zero while all came within a [`SLICE`] or a few turns.
    longest: Duration,
}

impl UdpStream {
    /// Meets the other rank of a pair. `limit` bounds waits for control messages, `loss_limit`
    /// those for datagrams.
    ///
    /// # Errors
    /// [`MeetingError`].
    pub fn meet(
        meeting: &Meeting<'_>,
        options: &SocketOptions,
        limit: Duration,
        loss_limit: LossLimit,
    ) -> Result<Self, MeetingError> {
        let beside =
            SocketOptions { address: options.address, port: options.port, ..SocketOptions::default() };
        let mut streams = tcp(meeting, &beside, limit)?;
        let mut control = streams
            .swap_remove(1 - meeting.rank as usize)
            .ok_or_else(|| MeetingError::new("meeting over UDP", "takes two ranks"))?;
        let refuse = |error: io::Error| MeetingError::new("setting up a UDP socket", error);
        let family = if options.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let fd = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| refuse(error.into()))?;
        options.set_buffers(&fd).map_err(refuse)?;
        let port = if meeting.rank == 0 { options.port } else { 0 };
        let address = SocketAddr::new(options.address, port);
        rustix::net::bind(&fd, &address).map_err(|error| {
            MeetingError::new(format_args!("binding UDP {address}"), io::Error::from(error))
        })?;
        let socket = UdpSocket::from(fd);
        let here = socket.local_addr().map_err(refuse)?;
        let exchange =
            |failure: Failure| MeetingError::new("exchanging UDP ports", format_args!("{failure:?}"));
        control.send_all(&here.port().to_le_bytes()).map_err(exchange)?;
        let mut port = [0; 2];
        control.recv_exact(&mut port).map_err(exchange)?;
        // The other rank listens where it connected from: on another host, that is another address.
        let there = SocketAddr::new(control.peer_ip().map_err(refuse)?, u16::from_le_bytes(port));
        socket.connect(there).map_err(refuse)?;
        let fd = OwnedFd::from(socket);
        set_waits(&fd, SLICE.min(loss_limit.least)).map_err(refuse)?;
        Ok(Self { fd, control, wait: options.wait, loss_limit, longest: Duration::ZERO })
    }

    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes as the kernel reports them.
    ///
    /// # Errors
    /// Those of `getsockopt(2)`.
    pub fn buffers(&self) -> io::Result<(usize, usize)> {
        Ok((sockopt::socket_send_buffer_size(&self.fd)?, sockopt::socket_recv_buffer_size(&self.fd)?))
    }

    /// Throws away datagrams that have come.
    fn drain(&self) {
        let mut byte = [0];
        while !matches!(recv(&self.fd, &mut byte, RecvFlags::DONTWAIT), Err(Errno::AGAIN)) {}
    }

    #[inline]
    fn recv_datagram(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<bool, Failure> {
        loop {
            // TRUNC: the length of the datagram, not of what was copied.
            match recv(&self.fd, &mut *buffer, flags | RecvFlags::TRUNC) {
                Ok((_, count)) if count == buffer.len() => return Ok(true),
                Ok((_, count)) => return Err(wrong_length(count, buffer.len())),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }
}

#[cold]
fn wrong_length(count: usize, expected: usize) -> Failure {
    Failure::Refused(format!("a datagram of {count} bytes came where one of {expected} was due"))
}

impl AsFd for UdpStream {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Stream for UdpStream {
    #[inline]
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure> {
        let mut spinner = Spinner::new(self.loss_limit.most, SPIN_PERIOD);
        loop {
            let flags = if self.wait == Wait::Block { SendFlags::empty() } else { SendFlags::DONTWAIT };
            match send(&self.fd, message, flags | SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    if self.wait == Wait::Block {
                        spinner.check()?;
                    } else {
                        spinner.turn()?;
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }

    #[inline]
    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        if self.wait == Wait::Block {
            if self.recv_datagram(buffer, RecvFlags::empty())? {
                return Ok(());
            }
            let since = Instant::now();
            let limit = self.loss_limit.after(self.longest).saturating_sub(SLICE);
            loop {
                if self.closed() {
                    return Err(Failure::PeerGone);
                }
                if self.recv_datagram(buffer, RecvFlags::empty())? {
                    self.longest = self.longest.max(SLICE + since.elapsed());
                    return Ok(());
                }
                if since.elapsed() >= limit {
                    return Err(Failure::Limit);
                }
            }
        }
        let mut spinner = Spinner::new(self.loss_limit.after(self.longest), SPIN_PERIOD);
        let mut since = None;
        while !self.recv_datagram(buffer, RecvFlags::DONTWAIT)? {
            if self.wait == Wait::Yield {
                rustix::thread::sched_yield();
            }
            if spinner.turn()? {
                since.get_or_insert_with(Instant::now);
                if self.closed() {
                    return Err(Failure::PeerGone);
                }
            }
        }
        if let Some(since) = since {
            self.longest = self.longest.max(since.elapsed());
        }
        Ok(())
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        match send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(None),
            Err(error) => Err(failure(error)),
        }
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        Ok(self.recv_datagram(buffer, RecvFlags::DONTWAIT)?.then_some(buffer.len()))
    }

    fn wait(&self) -> Wait {
        self.wait
    }

    fn closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.control, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(count) if count > 0)
    }

    fn move_nothing(&mut self) -> Result<(), Failure> {
        let mut byte = [0];
        match recv(&self.fd, &mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }

    fn limit(&self) -> Duration {
        self.loss_limit.most
    }

    fn send_control(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.control.send_all(message)
    }

    fn recv_control(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let outcome = self.control.recv_exact(buffer);
        self.drain();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_after_a_multiple_of_the_longest_wait_within_bounds() {
        let ms = Duration::from_millis;
        let limit = LossLimit { least: ms(50), most: ms(250) };
        let after = [0, 10, 20, 100].map(|longest| limit.after(ms(longest)));
        assert_eq!(after, [ms(50), ms(80), ms(160), ms(250)]);
        assert_eq!(LossLimit::exactly(ms(20)).after(ms(100)), ms(20));
    }
}
