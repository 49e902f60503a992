//! The bytes of long messages over the kernel's TCP, which has them cut and joined by the device where that can.
//!
//! They go on the connections that tell of peers' ends, each from the endpoint that made it. A message goes this way
//! when its receive has been found by frames and the peer has asked for it, so order does not depend on two ways.
//! Before its bytes come twelve: the number under which the peer has asked for it, and its length.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use wiretwin_proto::MessageId;

use super::inbox::Inbox;

const HEAD: usize = 12;

/// A message that was asked for.
#[derive(Debug)]
pub(super) struct Job {
    id: MessageId,
    head: [u8; HEAD],
    bytes: *const u8,
    length: usize,
    /// Bytes that the kernel has taken, the head among them.
    done: usize,
}

impl Job {
    /// The first `length` bytes of a message, which the peer knows by `reference`.
    ///
    /// # Safety
    /// The bytes stay as they are until the job is gone.
    pub(super) unsafe fn new(id: MessageId, reference: u32, bytes: *const u8, length: u64) -> Self {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&reference.to_be_bytes());
        head[4..].copy_from_slice(&length.to_be_bytes());
        Self { id, head, bytes, length: length as usize, done: 0 }
    }

    pub(super) const fn id(&self) -> MessageId {
        self.id
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
        // SAFETY: the job's maker promised so many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(job.bytes, job.length) };
        let (head, rest) = (&job.head[job.done.min(HEAD)..], &bytes[job.done.saturating_sub(HEAD)..]);
        let pieces = [IoSlice::new(head), IoSlice::new(rest)];
        let mut nothing = SendAncillaryBuffer::default();
        match sendmsg(socket, &pieces, &mut nothing, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => {
                job.done += count;
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

/// What is coming on a connection.
#[derive(Debug, Default)]
pub(super) struct Coming {
    head: [u8; HEAD],
    /// Bytes of the head that have come, and of the message.
    heads: usize,
    done: u64,
}

/// What a look at a connection found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Bytes have come.
    pub moved: bool,
    /// Receives that they have completed.
    pub completed: usize,
}

/// Bytes of a message that nobody waits for any more are dropped so many at a time.
const DROPPED: usize = 1 << 14;

impl Coming {
    /// Takes what has come from the peer of this number to where it belongs.
    pub(super) fn take(&mut self, socket: BorrowedFd<'_>, inbox: &mut Inbox, source: usize) -> Found {
        let mut found = Found::default();
        loop {
            if self.heads < HEAD {
                match recv(socket, &mut self.head[self.heads..], RecvFlags::DONTWAIT) {
                    Ok((count @ 1.., _)) => self.heads += count,
                    _ => return found,
                }
                found.moved = true;
                continue;
            }
            let [a, b, c, d, length @ ..] = self.head;
            let (reference, length) = (u32::from_be_bytes([a, b, c, d]), u64::from_be_bytes(length));
            let left = length.saturating_sub(self.done);
            let mut nowhere = [0; DROPPED];
            let came = match inbox.place(source, reference, self.done) {
                Some((place, room)) => {
                    let room = room.min(left) as usize;
                    // SAFETY: part of a buffer that whoever posted the receive lends until its completion.
                    let place = unsafe { std::slice::from_raw_parts_mut(place, room) };
                    recv(socket, place, RecvFlags::DONTWAIT)
                }
                None => recv(socket, &mut nowhere[..left.min(DROPPED as u64) as usize], RecvFlags::DONTWAIT),
            };
            let Ok((count, _)) = came else { return found };
            if count == 0 && left > 0 {
                return found;
            }
            found.moved = true;
            self.done += count as u64;
            found.completed += usize::from(inbox.came(source, reference, count as u64));
            if self.done >= length {
                (self.heads, self.done) = (0, 0);
            }
        }
    }
}
