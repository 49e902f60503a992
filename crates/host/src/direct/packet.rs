//! Frames past the kernel's protocols, by a packet socket (AF_PACKET): the kernel copies those that come into a ring
//! that this process looks at, before its own protocols see them, and sends what this process writes as it is.
//!
//! A filter on the packet socket takes the frames for one UDP port of one address that are not cut and no longer than
//! a frame of ours; one on the UDP socket of that port drops the same ones, which the kernel would hand over a second
//! time. All other traffic of the interface is left as it is, so the kernel's TCP is as fast as without; and each
//! process of a host has a socket of its own.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::device::{EndpointError, Receives, Sends};
use super::ether::{Interface, MOST};
use super::udp::FRAME;
use crate::mapping::Mapping;

/// Memory of one frame in the ring: the longest of ours, and what the kernel writes before it.
const SLOT: usize = 2048;
/// Frames that may have come and not been looked at: the credits of 64 peers.
const SLOTS: usize = 4096;
/// Memory that the kernel makes in one piece.
const BLOCK: usize = 1 << 16;
/// Frames that go with one call.
const BATCH: usize = 32;

/// The half that sends.
#[derive(Debug)]
pub(super) struct Out {
    socket: Rc<OwnedFd>,
    frames: Vec<u8>,
    lengths: Vec<usize>,
}

/// The half that receives.
#[derive(Debug)]
pub(super) struct In {
    ring: Mapping,
    next: usize,
    _socket: Rc<OwnedFd>,
}

/// Opens the device of an interface for the datagrams to an address, whose UDP socket no longer has them.
///
/// # Errors
/// [`EndpointError`]: the process may not (`CAP_NET_RAW`), or the kernel has no memory for the ring.
pub(super) fn open(
    interface: &Interface,
    to: SocketAddrV4,
    udp: &impl AsFd,
) -> Result<(In, Out), EndpointError> {
    let failed = |doing| move |error| EndpointError { doing, error };
    // SAFETY: a system call without pointers; what it returns is checked.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(failed("opening a packet socket")(io::Error::last_os_error()));
    }
    // SAFETY: a descriptor that is this process's alone.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let on = 1_i32;
    let request = libc::tpacket_req {
        tp_block_size: BLOCK as u32,
        tp_block_nr: (SLOTS * SLOT / BLOCK) as u32,
        tp_frame_size: SLOT as u32,
        tp_frame_nr: SLOTS as u32,
    };
    let packet = |option| (libc::SOL_PACKET, option);
    set(&socket, packet(libc::PACKET_VERSION), &libc::tpacket_versions::TPACKET_V2)
        .and_then(|()| set(&socket, packet(libc::PACKET_RX_RING), &request))
        .map_err(failed("making a ring of frames"))?;
    set(&socket, packet(libc::PACKET_IGNORE_OUTGOING), &on).map_err(failed("setting up a packet socket"))?;
    // Without it frames go through the interface's queue, and arrive as well.
    let _ = set(&socket, packet(libc::PACKET_QDISC_BYPASS), &on);
    let ring = Mapping::new(socket.as_fd(), SLOTS * SLOT).map_err(failed("mapping a ring of frames"))?;
    attach(&socket, &mut taken_past(to)).map_err(failed("filtering frames"))?;
    // SAFETY: plain numbers, all of which may be zero.
    let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    at.sll_family = libc::AF_PACKET as u16;
    // Of every protocol: sockets of one get a frame when the kernel's own protocol has had it.
    at.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    at.sll_ifindex = interface.index as i32;
    // SAFETY: the address lives until the call is over, with its length.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const at).cast(), size_of_val(&at) as libc::socklen_t)
    };
    if bound != 0 {
        return Err(failed("binding to the interface")(io::Error::last_os_error()));
    }
    attach(udp, &mut left_to_kernel(interface.index)).map_err(failed("filtering datagrams"))?;
    let socket = Rc::new(socket);
    let out =
        Out { socket: Rc::clone(&socket), frames: vec![0; BATCH * MOST], lengths: Vec::with_capacity(BATCH) };
    Ok((In { ring, next: 0, _socket: socket }, out))
}

impl Sends for Out {
    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        if self.lengths.len() == BATCH {
            self.flush();
        }
        let at = self.lengths.len() * MOST;
        self.frames.get_mut(at..at + MOST)
    }

    #[inline]
    fn put(&mut self, length: usize) {
        self.lengths.push(length);
    }

    /// What the kernel does not take is lost, as in a network.
    #[inline]
    fn flush(&mut self) {
        let (fd, count) = (self.socket.as_raw_fd(), self.lengths.len());
        if count == 1 {
            // SAFETY: a frame that was put there.
            unsafe { libc::send(fd, self.frames.as_ptr().cast(), self.lengths[0], libc::MSG_DONTWAIT) };
        } else if count > 1 {
            let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
            // SAFETY: messages of nothing are messages.
            let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
            let frames = self.frames.chunks_exact_mut(MOST).zip(&self.lengths);
            for ((piece, message), (frame, &length)) in pieces.iter_mut().zip(&mut messages).zip(frames) {
                let piece = piece.write(libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: length });
                (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (piece, 1);
            }
            // SAFETY: so many messages of one piece each, all of which live until the call is over.
            unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
        }
        self.lengths.clear();
    }
}

impl Receives for In {
    #[inline]
    fn take(&mut self, look: impl FnOnce(&[u8])) -> bool {
        let slot = self.ring.at(self.next * SLOT).as_ptr();
        // SAFETY: the slot begins with this header; its status is the kernel's to write until it says that the rest is
        // this process's, and this process's from then on.
        unsafe {
            let head = slot.cast::<libc::tpacket2_hdr>();
            let status = AtomicU32::from_ptr(&raw mut (*head).tp_status);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            let (from, length) = (usize::from((*head).tp_mac), (*head).tp_snaplen as usize);
            if from + length <= SLOT {
                look(std::slice::from_raw_parts(slot.add(from), length));
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % SLOTS;
        true
    }
}

/// The frames that this device takes, as a program of the classic filter (`filter.rst` of the Linux kernel).
fn taken_past(to: SocketAddrV4) -> Vec<libc::sock_filter> {
    let mut program = vec![of(LOAD_LENGTH, 0), of(IF_GREATER, MOST as u32)];
    for (load, at, value) in [
        (LOAD_HALF, 12, 0x0800),
        // IPv4 without options, no part of a packet that was cut, UDP.
        (LOAD_BYTE, 14, 0x45),
        (LOAD_BYTE, 23, 17),
        (LOAD_WORD, 30, to.ip().to_bits()),
        (LOAD_HALF, 36, to.port().into()),
    ] {
        program.extend([of(load, at), of(IF_EQUAL, value)]);
    }
    program.extend([of(LOAD_HALF, 20), of(IF_ANY_OF, 0x3fff), of(RETURN, TAKEN), of(RETURN, 0)]);
    let reject = program.len() - 1;
    for (at, instruction) in program.iter_mut().enumerate() {
        let away = (reject - at).saturating_sub(1) as u8;
        match instruction.code {
            IF_EQUAL => instruction.jf = away,
            IF_GREATER | IF_ANY_OF => instruction.jt = away,
            _ => {}
        }
    }
    program
}

/// The datagrams that the UDP socket keeps: those of other interfaces, and those that the kernel has joined.
fn left_to_kernel(interface: u32) -> Vec<libc::sock_filter> {
    let another = libc::sock_filter { code: IF_EQUAL, jt: 0, jf: 3, k: interface };
    let joined = libc::sock_filter { code: IF_GREATER, jt: 1, jf: 0, k: 8 + FRAME as u32 };
    let from = (libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX) as u32;
    vec![of(LOAD_WORD, from), another, of(LOAD_LENGTH, 0), joined, of(RETURN, 0), of(RETURN, TAKEN)]
}

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_LENGTH: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_LEN) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const IF_ANY_OF: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// So many bytes of a frame are taken: all.
const TAKEN: u32 = u32::MAX;

const fn of(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn attach(socket: &impl AsFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), &program)
}

fn set<T>(socket: &impl AsFd, (level, option): (i32, i32), value: &T) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the option's value, which lives until the call is over, with its length.
    let outcome = unsafe {
        let length = size_of_val(value) as libc::socklen_t;
        libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), length)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
