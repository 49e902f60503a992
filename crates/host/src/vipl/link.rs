//! One connection: a ring each way and a few words in shared memory, and a socket that wakes the peer and tells
//! when it is gone.
//!
//! The memory has no name and goes with the last process that maps it. Each end writes the words of one half and reads
//! those of the other.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, send, sendmsg,
};

use super::views::Views;
use crate::mapping::Mapping;
use crate::ring::{Consumer, FRAME, Producer, RING_BYTES};

/// The words of both ends, before the rings.
const WORDS: usize = 4096;
/// Those of one end.
const HALF: usize = 512;
/// Within a half: messages accepted; on another line, for it is written seldom, the rest.
const ACCEPTED: usize = 0;
const CLOSING: usize = 128;
const SLEEPS: usize = 132;
const READS: usize = 136;
const BYTES: usize = WORDS + 2 * RING_BYTES;
/// Nobody can make it shorter, nor longer: what is mapped stays there.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// What an end says last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The connection was ended.
    Disconnected,
    /// There was no receive for the message behind those that were accepted.
    ReceiveQueueEmpty,
    /// The receive for it was in error, or too small.
    Descriptor,
    /// The memory that it names may not be written, or read.
    RdmaProtection,
    /// Its data could not be fetched.
    Transport,
}

impl Closing {
    const ALL: [Self; 5] = [
        Self::Disconnected,
        Self::ReceiveQueueEmpty,
        Self::Descriptor,
        Self::RdmaProtection,
        Self::Transport,
    ];

    /// As it is written; 0 is none.
    pub const fn code(self) -> u32 {
        self as u32 + 1
    }

    /// The reverse of [`Closing::code`]: what is unknown is the end of the connection.
    pub fn of(code: u32) -> Self {
        *Self::ALL.get((code as usize).wrapping_sub(1)).unwrap_or(&Self::Disconnected)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub producer: Producer,
    pub consumer: Consumer,
    pub socket: OwnedFd,
    /// The memory of the process at the other end.
    pub views: Views,
    /// Where a message that lies in several places is put together.
    pub scratch: Box<[u8]>,
    ours: usize,
    /// The word by which the other end says that it wants to be woken.
    sleeps: NonNull<u32>,
    // After the rings, which point into it.
    mapping: Mapping,
}

impl Link {
    /// The memory of a connection that this end accepts.
    pub fn memory() -> io::Result<OwnedFd> {
        let memory = memfd_create("wiretwin-vipl", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, BYTES as u64)?;
        fcntl_add_seals(&memory, SEALS)?;
        Ok(memory)
    }

    /// An end of the connection over this memory; `readable` is the other process, if its memory can be read.
    pub fn new(
        memory: &OwnedFd,
        socket: OwnedFd,
        accepts: bool,
        readable: Option<libc::pid_t>,
    ) -> io::Result<Self> {
        if fstat(memory)?.st_size != BYTES as i64 || !fcntl_get_seals(memory)?.contains(SEALS) {
            return Err(io::Error::other("the peer handed over other memory than a connection's"));
        }
        let mapping = Mapping::new(memory.as_fd(), BYTES)?;
        let (there, back) = (mapping.at(WORDS), mapping.at(WORDS + RING_BYTES));
        let (out, into) = if accepts { (there, back) } else { (back, there) };
        // SAFETY: zeroed, page-aligned memory that lives as long as the link; of each ring one end is made here
        // and the other by the peer.
        let (producer, consumer) = unsafe { (Producer::new(out), Consumer::new(into)) };
        let ours = if accepts { 0 } else { HALF };
        let scratch = vec![0; FRAME].into();
        let views = Views::new(readable);
        let sleeps = mapping.at(HALF - ours + SLEEPS).cast();
        let link = Self { producer, consumer, socket, views, scratch, ours, sleeps, mapping };
        link.flag(ours + READS).store(readable.is_some().into(), Ordering::Release);
        Ok(link)
    }

    fn flag(&self, at: usize) -> &AtomicU32 {
        // SAFETY: a multiple of four within the words, which both ends access as atomics.
        unsafe { AtomicU32::from_ptr(self.mapping.at(at).as_ptr().cast()) }
    }

    fn count(&self, half: usize) -> &AtomicU64 {
        // SAFETY: a multiple of eight within the words, which both ends access as atomics.
        unsafe { AtomicU64::from_ptr(self.mapping.at(half + ACCEPTED).as_ptr().cast()) }
    }

    const fn theirs(&self) -> usize {
        HALF - self.ours
    }

    /// Messages of this end that the other has said to have accepted.
    pub fn accepted(&self) -> u64 {
        self.count(self.theirs()).load(Ordering::Acquire)
    }

    /// Tells the other end how many messages this end has accepted since the connection began.
    pub fn accept(&self, messages: u64) {
        self.count(self.ours).store(messages, Ordering::Release);
        self.nudge();
    }

    /// What the other end said last, once it has.
    #[inline]
    pub fn closing(&self) -> Option<Closing> {
        match self.flag(self.theirs() + CLOSING).load(Ordering::Acquire) {
            0 => None,
            code => Some(Closing::of(code)),
        }
    }

    /// The last word of this end.
    pub fn close(&self, closing: Closing) {
        self.flag(self.ours + CLOSING).store(closing.code(), Ordering::Release);
        self.nudge();
    }

    /// Whether the other end can read the memory of this process.
    pub fn is_read(&self) -> bool {
        self.flag(self.theirs() + READS).load(Ordering::Relaxed) != 0
    }

    /// Says whether this end wants to be woken; what it said before.
    pub fn sleep(&self, sleeps: bool) -> bool {
        self.flag(self.ours + SLEEPS).swap(sleeps.into(), Ordering::SeqCst) != 0
    }

    /// Wakes the other end if it sleeps: there is something for it.
    #[inline(always)]
    pub fn nudge(&self) {
        // SAFETY: as in `flag`.
        let sleeps = unsafe { AtomicU32::from_ptr(self.sleeps.as_ptr()) };
        if sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::SeqCst) != 0 {
            // Where the socket is full, the other end has been woken; where it is gone, nobody sleeps.
            let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// Takes what woke this end; true if the other end is gone.
    pub fn is_gone(&self) -> bool {
        let mut bytes = [0; 64];
        loop {
            match rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return true,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
    }
}

/// Sends a packet, with a file that is handed over.
pub(super) fn say(socket: &OwnedFd, packet: &[u8], file: Option<&OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut handed = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().map(AsFd::as_fd).collect();
    if !files.is_empty() {
        handed.push(SendAncillaryMessage::ScmRights(&files));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(packet)], &mut handed, flags)?;
    Ok(())
}

/// Takes a packet that has come, with the file that came with it; the octets are none at the end.
pub(super) fn hear(socket: &OwnedFd, packet: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut handed = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let heard = recvmsg(socket, &mut [IoSliceMut::new(packet)], &mut handed, flags)?;
    let file = handed.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok((heard.bytes, file))
}

impl Drop for Link {
    fn drop(&mut self) {
        // Also where a child of this process has the socket too.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}
