//! Shared memory: two rings between two processes, one for each direction.
//!
//! The memory has no name: rank 0 of the two makes it (`memfd_create`) and hands it over on a Unix
//! socket. So no disk is behind it, nothing is left behind, and the socket tells when the peer
//! dies.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::mapping::Mapping;
use crate::rendezvous::{Meeting, MeetingError};
use crate::ring::{Announced, Consumer, Producer, RING_BYTES};
use crate::stream::{Failure, Spinner, Stream, Wait};

/// Looks at the ring, with nothing else between them, that make one turn of a wait.
const BURST: u32 = 64;
/// Turns between two looks at the clock and the peer: about a millisecond.
const SPIN_PERIOD: u32 = 1 << 9;
/// The same when every turn gives way, which is a system call.
const YIELD_PERIOD: u32 = 1 << 10;
/// Turns of a yielding wait before it gives way for the first time.
const PATIENCE: u32 = 4;

/// One end of a pair of rings.
#[derive(Debug)]
pub struct ShmStream {
    producer: Producer,
    consumer: Consumer,
    peer: OwnedFd,
    wait: Wait,
    limit: Duration,
    // After the rings, which point into it.
    _mapping: Mapping,
}

/// Meets the other ranks and shares two rings with each; `None` stands for this rank. `wait` is
/// [`Wait::Spin`] or [`Wait::Yield`]: there is nothing to block on, so [`Wait::Block`] yields.
///
/// # Errors
/// [`MeetingError`].
pub fn shm(
    meeting: &Meeting<'_>,
    wait: Wait,
    limit: Duration,
) -> Result<Vec<Option<ShmStream>>, MeetingError> {
    let rank = meeting.rank as usize;
    meeting
        .unix()?
        .into_iter()
        .enumerate()
        .map(|(peer, connection)| {
            connection
                .map(|socket| {
                    join(socket, rank < peer, wait, limit).map_err(|error| {
                        MeetingError::new(format_args!("sharing memory with rank {peer}"), error)
                    })
                })
                .transpose()
        })
        .collect()
}

fn join(socket: OwnedFd, first: bool, wait: Wait, limit: Duration) -> io::Result<ShmStream> {
    let memory = if first { offer(&socket)? } else { accept(&socket)? };
    let mapping = Mapping::new(memory.as_fd(), 2 * RING_BYTES)?;
    let (there, back) = (mapping.at(0), mapping.at(RING_BYTES));
    let (out, into) = if first { (there, back) } else { (back, there) };
    // SAFETY: zeroed, page-aligned memory (RING_BYTES is a multiple of the page size) that lives
    // as long as the stream; of each ring one end is made here and the other by the peer.
    let (producer, consumer) = unsafe { (Producer::new(out), Consumer::new(into)) };
    let wait = if wait == Wait::Spin { wait } else { Wait::Yield };
    Ok(ShmStream { producer, consumer, peer: socket, wait, limit, _mapping: mapping })
}

fn offer(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let memory = memfd_create("wiretwin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, 2 * RING_BYTES as u64)?;
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [memory.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(memory)
}

fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let memory = control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
        .ok_or_else(|| io::Error::other("the peer handed over no memory"))?;
    if fstat(&memory)?.st_size != 2 * RING_BYTES as i64 {
        return Err(io::Error::other("the peer handed over memory of another size"));
    }
    Ok(memory)
}

impl ShmStream {
    /// Shared memory per direction, in bytes.
    pub const fn ring_bytes() -> usize {
        RING_BYTES
    }

    fn spinner(&self) -> Spinner {
        let period = if self.wait == Wait::Spin { SPIN_PERIOD } else { YIELD_PERIOD };
        Spinner::new(self.limit, period)
    }

    /// Between two bursts of looking; true if the peer has been found dead.
    #[cold]
    fn turn(&self, spinner: &mut Spinner) -> Result<bool, Failure> {
        if self.wait != Wait::Spin && spinner.turns() >= PATIENCE {
            rustix::thread::sched_yield();
        }
        Ok(spinner.turn()? && self.closed())
    }

    #[inline]
    fn announced(&self, spinner: &mut Spinner) -> Result<Announced, Failure> {
        loop {
            for _ in 0..BURST {
                if let Some(announced) = self.consumer.peek() {
                    return Ok(announced);
                }
                std::hint::spin_loop();
            }
            if self.turn(spinner)? {
                // What it sent before it died still counts.
                return self.consumer.peek().ok_or(Failure::PeerGone);
            }
        }
    }

    /// Sends whatever does not go out as one line at once.
    #[inline(never)]
    fn send_pieces(&mut self, message: &[u8]) -> Result<(), Failure> {
        let mut rest = message;
        let mut looks = 0_u32;
        let mut spinner = self.spinner();
        loop {
            match self.producer.push(rest) {
                Some(count) if count == rest.len() => return Ok(()),
                Some(count) => {
                    rest = &rest[count..];
                    spinner.reset();
                }
                None => {
                    std::hint::spin_loop();
                    looks = looks.wrapping_add(1);
                    if looks.is_multiple_of(BURST) && self.turn(&mut spinner)? {
                        return Err(Failure::PeerGone);
                    }
                }
            }
        }
    }

    /// Receives whatever does not come as one line soon.
    #[inline(never)]
    fn recv_pieces(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let mut filled = 0;
        let mut spinner = self.spinner();
        loop {
            let announced = self.announced(&mut spinner)?;
            if announced.is_empty() && filled < buffer.len() {
                return Err(out_of_step(buffer.len() - filled));
            }
            filled += self.consumer.take(announced, &mut buffer[filled..]);
            if filled == buffer.len() {
                return Ok(());
            }
            spinner.reset();
        }
    }
}

#[cold]
fn out_of_step(due: usize) -> Failure {
    Failure::Refused(format!("an empty message came where {due} bytes were due"))
}

impl AsFd for ShmStream {
    /// The Unix socket that tells when the peer dies.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.peer.as_fd()
    }
}

impl Stream for ShmStream {
    #[inline(always)]
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure> {
        if self.producer.push_line(message) { Ok(()) } else { self.send_pieces(message) }
    }

    #[inline(always)]
    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        if self.consumer.take_line(buffer, BURST) { Ok(()) } else { self.recv_pieces(buffer) }
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        Ok(self.producer.push(bytes))
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        match self.consumer.peek() {
            None => Ok(None),
            Some(announced) if announced.is_empty() && !buffer.is_empty() => Err(out_of_step(buffer.len())),
            Some(announced) => Ok(Some(self.consumer.take(announced, buffer))),
        }
    }

    fn wait(&self) -> Wait {
        self.wait
    }

    fn closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.peer, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(count) if count > 0)
    }

    #[inline]
    fn move_nothing(&mut self) -> Result<(), Failure> {
        std::hint::black_box(self.consumer.peek());
        Ok(())
    }

    fn limit(&self) -> Duration {
        self.limit
    }
}
