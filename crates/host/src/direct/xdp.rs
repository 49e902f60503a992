//! Frames past the kernel's protocols, by AF_XDP: the kernel puts those that come into memory of this process, and
//! takes those to be sent from there.
//!
//! A program that the kernel runs on every frame of the interface hands over those for one UDP port of one address
//! that are not cut and no longer than a frame of ours, and lets pass everything else; what it cannot hand over
//! passes too, and comes to the UDP socket of the same port. The interface runs it through a link that is
//! held open, so it goes with the process, however that ends. There is one such program an interface: another process
//! of the host has to do without.
//!
//! The generic mode is used, in which the kernel copies: it is there with every interface, and between virtual ones
//! faster than the mode of their own, which also slows the kernel's own traffic down. One queue is served, the first.

mod program;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::device::{EndpointError, Receives, Sends};
use super::ether::{Interface, MOST};
use crate::mapping::Mapping;

/// The memory of one frame: the longest of ours, and what the kernel leaves free before it.
const CHUNK: usize = 2048;
/// Frames that may have come and not been looked at: the credits of 64 peers.
const INTO: u32 = 4096;
/// Frames that may be on their way out.
const OUT: u32 = 1024;
/// Calls with which a flush tries to send what waits; each sends up to 32 frames.
const MOST_CALLS: u32 = 2 * OUT / 32;

/// What both halves hold: dropped with the later of them.
#[derive(Debug)]
struct Socket {
    socket: OwnedFd,
    memory: Mapping,
    /// The program runs as long as this is open.
    _link: OwnedFd,
}

/// The half that sends.
#[derive(Debug)]
pub(super) struct Out {
    ring: Ring<libc::xdp_desc>,
    done: Ring<u64>,
    free: Vec<u64>,
    socket: Rc<Socket>,
}

/// The half that receives.
#[derive(Debug)]
pub(super) struct In {
    ring: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    socket: Rc<Socket>,
}

/// Opens the device of an interface for the datagrams to an address.
///
/// # Errors
/// [`EndpointError`]: the process may not (`CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`), or another holds the interface.
pub(super) fn open(interface: &Interface, to: SocketAddrV4) -> Result<(In, Out), EndpointError> {
    let failed = |doing| move |error| EndpointError { doing, error };
    let (map, link) = program::attach(interface.index, to)?;
    let memory =
        Mapping::anonymous((INTO + OUT) as usize * CHUNK).map_err(failed("making memory for frames"))?;
    // SAFETY: a system call without pointers; what it returns is checked.
    let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(EndpointError { doing: "opening an AF_XDP socket", error: io::Error::last_os_error() });
    }
    // SAFETY: a descriptor that is this process's alone.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let register = libc::xdp_umem_reg {
        addr: memory.at(0).as_ptr() as u64,
        len: u64::from(INTO + OUT) * CHUNK as u64,
        chunk_size: CHUNK as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(&socket, libc::XDP_UMEM_REG, &register).map_err(failed("registering memory for frames"))?;
    for (option, entries) in [
        (libc::XDP_UMEM_FILL_RING, INTO),
        (libc::XDP_UMEM_COMPLETION_RING, OUT),
        (libc::XDP_RX_RING, INTO),
        (libc::XDP_TX_RING, OUT),
    ] {
        set(&socket, option, &entries).map_err(failed("making rings of frames"))?;
    }
    let rings = rings(&socket).map_err(failed("mapping rings of frames"))?;
    let (mut fill, done, into, out) = rings;
    (0..INTO).for_each(|number| fill.put(u64::from(number) * CHUNK as u64));
    let at = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: interface.index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the address lives until the call is over, with its length.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const at).cast(), size_of_val(&at) as libc::socklen_t)
    };
    if bound != 0 {
        return Err(EndpointError {
            doing: "binding to the interface's first queue",
            error: io::Error::last_os_error(),
        });
    }
    program::hand_over(&map, 0, &socket)?;
    let socket = Rc::new(Socket { socket, memory, _link: link });
    let free = (INTO..INTO + OUT).map(|number| u64::from(number) * CHUNK as u64).collect();
    Ok((In { ring: into, fill, socket: Rc::clone(&socket) }, Out { ring: out, done, free, socket }))
}

impl Sends for Out {
    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        if self.free.is_empty() {
            while let Some(address) = self.done.take() {
                self.free.push(address);
            }
        }
        let address = *self.free.last()?;
        // SAFETY: a chunk of the memory, which is this half's alone while its address is free.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.socket.memory.at(address as usize).as_ptr(), MOST)
        })
    }

    #[inline]
    fn put(&mut self, length: usize) {
        let Some(addr) = self.free.pop() else { return };
        self.ring.put(libc::xdp_desc { addr, len: length as u32, options: 0 });
    }

    #[inline]
    fn flush(&mut self) {
        let mut calls = 0..MOST_CALLS;
        while !self.ring.is_consumed() && calls.next().is_some() {
            let fd = self.socket.socket.as_raw_fd();
            // SAFETY: a message without bytes.
            let sent =
                unsafe { libc::sendto(fd, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
            if sent < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
                return;
            }
        }
    }
}

impl Receives for In {
    #[inline]
    fn take(&mut self, look: impl FnOnce(&[u8])) -> bool {
        let Some(libc::xdp_desc { addr, len, .. }) = self.ring.take() else { return false };
        let memory = &self.socket.memory;
        // SAFETY: bytes of a chunk that the kernel has filled and leaves alone until it is put into the fill ring.
        look(unsafe { std::slice::from_raw_parts(memory.at(addr as usize).as_ptr(), len as usize) });
        self.fill.put(addr & !(CHUNK as u64 - 1));
        true
    }
}

/// One end of a ring that the kernel has the other end of.
#[derive(Debug)]
struct Ring<T> {
    produced: *const AtomicU32,
    consumed: *const AtomicU32,
    entries: *mut T,
    mask: u32,
    /// How far this end is, and the other was when it was looked at last.
    own: u32,
    other: u32,
    _mapping: Mapping,
}

impl<T: Copy> Ring<T> {
    fn new(socket: &OwnedFd, page: u64, count: u32, offsets: &libc::xdp_ring_offset) -> io::Result<Self> {
        let bytes = offsets.desc as usize + count as usize * size_of::<T>();
        let mapping = Mapping::of_part(socket.as_fd(), page, bytes)?;
        let at = |offset: u64| mapping.at(offset as usize).as_ptr();
        let (produced, consumed) =
            (at(offsets.producer).cast_const().cast(), at(offsets.consumer).cast_const().cast());
        let entries = at(offsets.desc).cast();
        Ok(Self { produced, consumed, entries, mask: count - 1, own: 0, other: 0, _mapping: mapping })
    }

    fn produced(&self) -> &AtomicU32 {
        // SAFETY: a place of the mapping that the kernel keeps for this.
        unsafe { &*self.produced }
    }

    fn consumed(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.consumed }
    }

    /// The next entry that the kernel has put there.
    #[inline]
    fn take(&mut self) -> Option<T> {
        if self.own == self.other {
            self.other = self.produced().load(Ordering::Acquire);
            if self.own == self.other {
                return None;
            }
        }
        // SAFETY: an entry of the ring that the kernel has written, and leaves alone until it is told of below.
        let entry = unsafe { self.entries.add((self.own & self.mask) as usize).read() };
        self.own = self.own.wrapping_add(1);
        self.consumed().store(self.own, Ordering::Release);
        Some(entry)
    }

    /// Puts an entry for the kernel. There is room: no ring has fewer entries than there are chunks for it.
    #[inline]
    fn put(&mut self, entry: T) {
        // SAFETY: an entry of the ring that the kernel has taken, or has not been given yet.
        unsafe { self.entries.add((self.own & self.mask) as usize).write(entry) };
        self.own = self.own.wrapping_add(1);
        self.produced().store(self.own, Ordering::Release);
    }

    /// Whether the kernel has taken all that was put.
    #[inline]
    fn is_consumed(&self) -> bool {
        self.consumed().load(Ordering::Acquire) == self.own
    }
}

type Descriptors = Ring<libc::xdp_desc>;

/// The rings of a socket: those of memory to be filled and sent, and of frames that came and go.
fn rings(socket: &OwnedFd) -> io::Result<(Ring<u64>, Ring<u64>, Descriptors, Descriptors)> {
    // SAFETY: plain numbers, all of which may be zero.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&offsets) as libc::socklen_t;
    // SAFETY: the places live until the call is over.
    let got = unsafe {
        let (level, option) = (libc::SOL_XDP, libc::XDP_MMAP_OFFSETS);
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut offsets).cast(), &raw mut length)
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((
        Ring::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING, INTO, &offsets.fr)?,
        Ring::new(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, OUT, &offsets.cr)?,
        Ring::new(socket, libc::XDP_PGOFF_RX_RING as u64, INTO, &offsets.rx)?,
        Ring::new(socket, libc::XDP_PGOFF_TX_RING as u64, OUT, &offsets.tx)?,
    ))
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the option's value, which lives until the call is over, with its length.
    let outcome = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, std::ptr::from_ref(value).cast(), length)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
