//! The bytes of long messages over the kernel's TCP, which has them cut and joined by the device where that can.
//!
//! They go on the connections that tell of peers' ends, each from the endpoint that made it. A message goes this way
//! when its receive has been found by frames and the peer has asked for it, so order does not depend on two ways. One
//! that is not so long is pushed: its only frame goes here too, and its bytes behind. Before a message's bytes comes a
//! head of [`HEAD`]: in twelve the number under which the peer has asked for it, or [`PUSHED`] and how long its frame is,
//! and its length; then its frame, if it was pushed, and zeros.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use wiretwin_proto::MessageId;
use wiretwin_wire::direct::MOST_HEAD_OCTETS;

use super::inbox::{Inbox, Sink};

const HEAD: usize = FRAME + MOST_HEAD_OCTETS;
/// Where in it the frame is.
const FRAME: usize = 12;
/// The least number of a message that was not asked for: above it is the length of its frame.
const PUSHED: u32 = u32::MAX - 0xff;

/// A message that was asked for.
#[derive(Debug)]
pub(super) struct Job {
    id: MessageId,
    head: [u8; HEAD],
    bytes: *const u8,
    length: usize,
    /// Bytes that the kernel has taken, the head among them.
    done: usize,
    /// The kernel had room for a part alone.
    is_stuck: bool,
}

impl Job {
    /// The first `length` bytes of a message, which the peer knows by `reference`.
    ///
    /// # Safety
    /// The bytes stay as they are until the job is gone.
    pub(super) unsafe fn new(id: MessageId, reference: u32, bytes: *const u8, length: u64) -> Self {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&reference.to_be_bytes());
        head[4..FRAME].copy_from_slice(&length.to_be_bytes());
        Self { id, head, bytes, length: length as usize, done: 0, is_stuck: false }
    }

    /// A whole message that was not asked for, with its frame.
    ///
    /// # Safety
    /// The bytes stay as they are until the job is gone.
    pub(super) unsafe fn pushed(id: MessageId, frame: &[u8], bytes: *const u8, length: u64) -> Self {
        // SAFETY: the caller's promise.
        let mut job = unsafe { Self::new(id, PUSHED + frame.len() as u32, bytes, length) };
        job.head[FRAME..FRAME + frame.len()].copy_from_slice(frame);
        job
    }

    pub(super) const fn id(&self) -> MessageId {
        self.id
    }

    /// The same bytes lie here now, under the promise of [`Job::new`].
    pub(super) const fn move_to(&mut self, bytes: *const u8) {
        self.bytes = bytes;
    }
}

/// Has the kernel take what it has room for: whether it took anything. `sent` is called for each message that it has
/// whole.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    jobs: &mut VecDeque<Job>,
    mut sent: impl FnMut(MessageId),
) -> bool {
    let mut moved = false;
    while let Some(job) = jobs.front_mut() {
        // So as not to send in many small pieces: the kernel says so when a third of its room is free.
        if job.is_stuck && !is_ready(socket, PollFlags::OUT) {
            break;
        }
        // SAFETY: the job's maker promised so many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(job.bytes, job.length) };
        let (head, rest) = (&job.head[job.done.min(HEAD)..], &bytes[job.done.saturating_sub(HEAD)..]);
        let pieces = [IoSlice::new(head), IoSlice::new(rest)];
        let mut nothing = SendAncillaryBuffer::default();
        match sendmsg(socket, &pieces, &mut nothing, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => {
                job.done += count;
                job.is_stuck = job.done < HEAD + job.length;
                moved = true;
            }
            Err(Errno::INTR) => {}
            // It has no room; or the connection has ended, which is told elsewhere.
            Err(_) => break,
        }
        if job.done == HEAD + job.length {
            sent(job.id);
            jobs.pop_front();
        }
    }
    moved
}

#[derive(Debug)]
struct Head([u8; HEAD]);

impl Default for Head {
    fn default() -> Self {
        Self([0; HEAD])
    }
}

/// A frame that has come with a message.
pub(super) type Told = ([u8; MOST_HEAD_OCTETS], usize);

/// Whether a connection has room or bytes. To ask does not take the connection's lock, which the kernel needs to put
/// there what comes; to try to receive does.
fn is_ready(socket: BorrowedFd<'_>, wanted: PollFlags) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::from_borrowed_fd(socket, wanted)], Some(&now)), Ok(1..))
}

/// What is coming on a connection.
#[derive(Debug, Default)]
pub(super) struct Coming {
    head: Head,
    /// Bytes of the head that have come, and of the message.
    heads: usize,
    done: u64,
    /// The frame in the head has been handed on.
    is_told: bool,
    /// Where pushed messages go whose frames have come, in their order.
    pub pushed: VecDeque<Sink>,
}

/// What a look at a connection found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// A frame has come, which is to be taken before more is.
    pub frame: Option<Told>,
    /// Bytes have come.
    pub moved: bool,
    /// Receives that they have completed.
    pub completed: usize,
}

/// Bytes of a message that nobody waits for any more are dropped so many at a time.
const DROPPED: usize = 512;

impl Coming {
    /// Takes what has come from the peer of this number to where it belongs.
    pub(super) fn take(&mut self, socket: BorrowedFd<'_>, inbox: &mut Inbox, source: usize) -> Found {
        let mut found = Found::default();
        // When the bytes of the frame that was handed on last are taken, more have been asked for.
        if (!self.is_told || self.done > 0) && !is_ready(socket, PollFlags::IN) {
            return found;
        }
        loop {
            if self.heads < HEAD {
                match recv(socket, &mut self.head.0[self.heads..], RecvFlags::DONTWAIT) {
                    Ok((count @ 1.., _)) => self.heads += count,
                    _ => return found,
                }
                found.moved = true;
                continue;
            }
            let number = |at: usize, octets: usize| {
                self.head.0[at..at + octets].iter().fold(0, |all, &octet| all << 8 | u64::from(octet))
            };
            let (reference, length) = (number(0, 4) as u32, number(4, 8));
            let is_pushed = reference >= PUSHED;
            if is_pushed && !self.is_told {
                self.is_told = true;
                let mut octets = [0; MOST_HEAD_OCTETS];
                octets.copy_from_slice(&self.head.0[FRAME..]);
                found.frame = Some((octets, ((reference - PUSHED) as usize).min(MOST_HEAD_OCTETS)));
                return found;
            }
            let left = length.saturating_sub(self.done);
            let mut nowhere = [0; DROPPED];
            let sink = self.pushed.front().copied().filter(|_| is_pushed);
            let place = match sink {
                Some(sink) => inbox.place_of(sink),
                // A frame before its own has not come yet.
                None if is_pushed => return found,
                None => inbox.place(source, reference, self.done),
            };
            let asked = place.map_or(DROPPED as u64, |(_, room)| room).min(left) as usize;
            let came = match place {
                Some((place, _)) => {
                    // SAFETY: part of a buffer that whoever posted the receive lends until its completion.
                    let place = unsafe { std::slice::from_raw_parts_mut(place, asked) };
                    recv(socket, place, RecvFlags::DONTWAIT)
                }
                None => recv(socket, &mut nowhere[..asked], RecvFlags::DONTWAIT),
            };
            let Ok((count, _)) = came else { return found };
            if count == 0 && left > 0 {
                return found;
            }
            found.moved = true;
            self.done += count as u64;
            found.completed += usize::from(match sink {
                // SAFETY: the kernel has written so many bytes, or there was no place for them.
                Some(sink) => match unsafe { inbox.advance(sink, count as u64) } {
                    Some(rest) => {
                        self.pushed[0] = rest;
                        false
                    }
                    None => self.pushed.pop_front().is_some(),
                },
                None => inbox.came(source, reference, count as u64),
            });
            if self.done >= length {
                (self.heads, self.done, self.is_told) = (0, 0, false);
                return found;
            }
            if count < asked {
                return found;
            }
        }
    }
}
