//! Frames through shared memory: a ring from each process to each other one of the host that it sends to.
//!
//! The memory has no name, so nothing is left of it whatever becomes of the processes. Each endpoint listens
//! at a socket without a path; whoever wants to send to it makes a ring, connects, and hands the ring over.
//! The connection stays open: its end is how the kernel tells that the other process is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};

use super::address::Address;
use crate::mapping::Mapping;
use crate::ring::{Consumer, Producer, RING_BYTES, copy_short};

/// The longest frame: as much as a ring takes in one piece, twice over.
pub(super) const FRAME: usize = 8192 + 64;
/// The sender's address and the receiver's key.
const GREETING: usize = Address::BYTES + 8;

/// The socket at which rings are taken.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    /// Connections whose greeting has not come yet.
    pending: Vec<OwnedFd>,
}

/// The way to a peer.
#[derive(Debug)]
pub(super) struct Out {
    producer: Producer,
    peer: OwnedFd,
    // After the ring, which points into it.
    _mapping: Mapping,
}

/// The way from a peer.
#[derive(Debug)]
pub(super) struct In {
    consumer: Consumer,
    peer: OwnedFd,
    _mapping: Mapping,
}

fn at(name: u64) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(format!("wiretwin-direct-{name:016x}").as_bytes())?)
}

const fn seals() -> SealFlags {
    SealFlags::SHRINK.union(SealFlags::GROW)
}

impl Listener {
    pub(super) fn open(name: u64) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &at(name)?)?;
        listen(&socket, 4096)?;
        Ok(Self { socket, pending: Vec::new() })
    }

    /// Takes rings that were handed over to the endpoint of this key: the sender's address with each.
    pub(super) fn accept(&mut self, key: u64, mut taken: impl FnMut(Address, In)) {
        loop {
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(connection) => self.pending.push(connection),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let mut place = 0;
        while place < self.pending.len() {
            match greeting(&self.pending[place], key) {
                Ok(None) => place += 1,
                Ok(Some((from, mapping))) => {
                    let peer = self.pending.swap_remove(place);
                    // SAFETY: memory of this size that cannot shrink and was zero when it was made, which
                    // lives as long as the value; the only producer is the process that handed it over.
                    let consumer = unsafe { Consumer::new(mapping.at(0)) };
                    taken(from, In { consumer, peer, _mapping: mapping });
                }
                // A stranger, or one that has gone already.
                Err(_) => drop(self.pending.swap_remove(place)),
            }
        }
    }
}

/// The sender's address and its ring; nothing if they have not come yet.
fn greeting(connection: &OwnedFd, key: u64) -> io::Result<Option<(Address, Mapping)>> {
    let mut bytes = [0; GREETING];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let came = match recvmsg(
        connection,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    ) {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let stranger = || io::Error::from(io::ErrorKind::PermissionDenied);
    let is_for_us = came == GREETING && bytes[Address::BYTES..] == key.to_be_bytes();
    let memory = memory.filter(|_| is_for_us).ok_or_else(stranger)?;
    let from = Address::from_bytes(&bytes[..Address::BYTES]).map_err(io::Error::other)?;
    let own = rustix::process::geteuid();
    if socket_peercred(connection)?.uid != own
        || fstat(&memory)?.st_size != RING_BYTES as i64
        || !fcntl_get_seals(&memory)?.contains(seals())
    {
        return Err(stranger());
    }
    Ok(Some((from, Mapping::new(memory.as_fd(), RING_BYTES)?)))
}

impl Out {
    /// A ring from one endpoint to another, handed over to it.
    ///
    /// # Errors
    /// The endpoint is gone, or not of this host or user.
    pub(super) fn open(from: Address, to: Address) -> io::Result<Self> {
        let memory = memfd_create("wiretwin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, RING_BYTES as u64)?;
        fcntl_add_seals(&memory, seals())?;
        let mapping = Mapping::new(memory.as_fd(), RING_BYTES)?;
        let peer = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&peer, &at(to.name)?)?;
        if socket_peercred(&peer)?.uid != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut bytes = [0; GREETING];
        bytes[..Address::BYTES].copy_from_slice(&from.to_bytes());
        bytes[Address::BYTES..].copy_from_slice(&to.key.to_be_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [memory.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&peer, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        // SAFETY: fresh memory of this size, zero, which lives as long as the value; its only consumer is
        // the process that it was handed to.
        let producer = unsafe { Producer::new(mapping.at(0)) };
        Ok(Self { producer, peer, _mapping: mapping })
    }

    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.producer.has_room()
    }

    /// Sends a frame, for which there is room.
    #[inline]
    pub(super) fn transmit(&mut self, head: &[u8], payload: &[u8]) {
        self.producer.push_frame(head, payload).expect("asked for room before");
    }

    /// The same for a frame that is short, whose head `emit` writes: false if it is not.
    #[inline]
    pub(super) fn transmit_short(&mut self, head: usize, emit: impl Fn(&mut [u8]), payload: &[u8]) -> bool {
        self.producer.push_written(head + payload.len(), |line| {
            let (first, rest) = line.split_at_mut(head);
            emit(first);
            // SAFETY: as long as the payload, for the line is as long as both.
            unsafe { copy_short(payload.as_ptr(), rest.as_mut_ptr(), payload.len()) };
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        closed(&self.peer)
    }
}

impl In {
    /// Hands the next frame to `look`; false if none has come.
    #[inline]
    pub(super) fn take(&mut self, look: impl FnOnce(&[u8])) -> bool {
        self.consumer.take_frame(look)
    }

    pub(super) fn is_closed(&self) -> bool {
        closed(&self.peer)
    }
}

/// Whether the process at the other end has closed the connection or ended.
fn closed(connection: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(connection, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::HUP)
}
