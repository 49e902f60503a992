//! Frames past the kernel's protocols, by a packet socket (AF_PACKET): the kernel copies those that come into a ring
//! that this process looks at, before its own protocols see them, and sends what this process writes as it is.
//!
//! A filter on the packet socket takes the datagrams for one UDP port of one address that are not cut and no longer than
//! the longest of ours; one on the UDP socket of that port drops the same ones, which the kernel would hand over a second
//! time, unless they have ended at the interface already (`ingress`). All other traffic of the interface is left as it
//! is, so the kernel's TCP is as fast as without; and each process of a host has a socket of its own.
//!
//! Frames to one peer that follow each other go as one datagram, which the kernel or the adapter cuts as late as it can
//! (UDP segmentation offload, asked for by the header before the packet: Virtual I/O Device 1.2, §5.1.6), and come as
//! one where nobody has cut it or the other kernel has joined them.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wiretwin_proto::direct::Service;

use super::error::EndpointError;
use super::ether::{AROUND, Interface, Mac, put_around, sum_of_pseudo_header, within};
use super::held::Collects;
use super::ingress;
use super::udp::FRAME;
use crate::mapping::Mapping;

/// The most bytes of frames in one datagram: with what the kernel writes before them they fill a slot.
pub(super) const MOST_AT_ONCE: usize = 5 * FRAME;
/// The most frames in one datagram: as many as every kernel that cuts takes.
const MOST_FRAMES: usize = 44;
/// Memory of one datagram in the ring.
const SLOT: usize = 8192;
/// Datagrams that may have come and not been looked at: the credits of 32 peers whose every frame comes alone.
const SLOTS: usize = 2048;
/// Memory that the kernel makes in one piece.
const BLOCK: usize = 1 << 16;
/// The header before each packet, `virtio_net_hdr`, in this host's order of octets.
const OFFLOAD: usize = 10;
/// What comes before the frames of a datagram.
const BEFORE: usize = OFFLOAD + AROUND;

/// Two ends of a datagram: Ethernet addresses, and those of UDP.
pub(super) type End = (Mac, SocketAddrV4);

/// The half that sends.
#[derive(Debug)]
pub(super) struct Out {
    socket: Arc<OwnedFd>,
    /// The datagram that waits, for whom, and how many bytes of frames are in it.
    datagram: Box<[u8]>,
    ends: Option<(End, End, Service)>,
    length: usize,
    /// How long each of its frames but the last is.
    each: usize,
    /// The interface's packets may be cut by the kernel.
    joins: bool,
}

/// The half that receives.
#[derive(Debug)]
pub(super) struct In {
    ring: Mapping,
    next: usize,
    socket: Arc<OwnedFd>,
    /// Ends at the interface what this device has had, where that can be had.
    _end: Option<OwnedFd>,
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
        .and_then(|()| set(&socket, packet(PACKET_VNET_HDR), &on))
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
    // Without it the filter does, later.
    let end = ingress::end_at(interface.index, to, AROUND + MOST_AT_ONCE).ok();
    let socket = Arc::new(socket);
    let out = Out {
        socket: Arc::clone(&socket),
        datagram: vec![0; BEFORE + MOST_AT_ONCE].into(),
        ends: None,
        length: 0,
        each: 0,
        joins: true,
    };
    Ok((In { ring, next: 0, socket, _end: end }, out))
}

impl Out {
    /// Takes a frame, which goes with the next [`Out::flush`] at the latest.
    #[inline]
    pub(super) fn transmit(&mut self, from: End, to: End, head: &[u8], payload: &[u8], service: Service) {
        let length = head.len() + payload.len();
        // Of frames that go together only the last may be shorter.
        let joins = self.joins
            && length <= self.each
            && self.length.is_multiple_of(self.each)
            && self.ends == Some((from, to, service));
        if !joins {
            self.flush();
            (self.ends, self.each) = (Some((from, to, service)), length);
        }
        let at = BEFORE + self.length;
        let (first, rest) = self.datagram[at..at + length].split_at_mut(head.len());
        first.copy_from_slice(head);
        rest.copy_from_slice(payload);
        wiretwin_wire::direct::seal(&mut self.datagram[at..at + length]);
        self.length += length;
        if self.length + self.each > MOST_AT_ONCE || self.length >= MOST_FRAMES * self.each {
            // The receiver copies these while the next are written.
            self.flush();
        }
    }

    fn flush_joined(&mut self, ends: (End, End, Service), length: usize) {
        let (from, to, _) = ends;
        let each = self.each;
        self.datagram[..2].copy_from_slice(&[NEEDS_CHECKSUM, IS_UDP_TO_BE_CUT]);
        let fields = [AROUND, each, AROUND - 8, 6];
        for (field, value) in self.datagram[2..OFFLOAD].chunks_exact_mut(2).zip(fields) {
            field.copy_from_slice(&(value as u16).to_ne_bytes());
        }
        // The kernel sums each part's bytes where the adapter does not, and starts from this.
        let begun = sum_of_pseudo_header(from.1, to.1, length);
        if self.send(begun, ends, length) {
            return;
        }
        // An interface that cannot, and whose queue, which would cut them, is passed by.
        self.joins = false;
        self.datagram[..OFFLOAD].fill(0);
        for at in (0..length).step_by(each) {
            let part = each.min(length - at);
            self.datagram.copy_within(BEFORE + at..BEFORE + at + part, BEFORE);
            self.send(0, ends, part);
        }
    }

    /// Sends the frames that lie in the buffer, `length` bytes, as one datagram; returns whether the kernel took it.
    fn send(&mut self, checksum: u16, (from, to, service): (End, End, Service), length: usize) -> bool {
        put_around(&mut self.datagram[OFFLOAD..], from, to, length, service, checksum);
        let whole = BEFORE + length;
        // SAFETY: a datagram that was put there.
        let sent = unsafe {
            libc::send(self.socket.as_raw_fd(), self.datagram.as_ptr().cast(), whole, libc::MSG_DONTWAIT)
        };
        sent == whole as isize
    }
}

impl Collects for Out {
    /// Sends the frames that wait; what the kernel does not take is lost, as in a network.
    #[inline]
    fn flush(&mut self) {
        let length = std::mem::take(&mut self.length);
        let Some(ends) = self.ends.filter(|_| length > 0) else { return };
        if length <= self.each {
            self.datagram[..OFFLOAD].fill(0);
            self.send(0, ends, length);
        } else {
            self.flush_joined(ends, length);
        }
    }

    #[inline]
    fn waiting(&self) -> usize {
        if self.length == 0 { 0 } else { self.length.div_ceil(self.each) }
    }
}

impl In {
    /// What can be read from when a datagram has come.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Hands the frames of the next datagram to `look`, each with who sent it; false if none has come.
    #[inline]
    pub(super) fn take(&mut self, mut look: impl FnMut(&[u8], SocketAddrV4, Mac)) -> bool {
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
            if (OFFLOAD..=SLOT).contains(&from) && from + length <= SLOT {
                let octets = std::slice::from_raw_parts(slot.add(from - OFFLOAD), OFFLOAD + length);
                let (offload, octets) = octets.split_at(OFFLOAD);
                let each = usize::from(u16::from_ne_bytes([offload[4], offload[5]]));
                if let Some((frames, from, mac)) = within(octets) {
                    let each = if each == 0 { frames.len() } else { each };
                    frames.chunks(each.max(1)).for_each(|frame| look(frame, from, mac));
                }
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % SLOTS;
        true
    }
}

/// The frames that this device takes, as a program of the classic filter (`filter.rst` of the Linux kernel).
fn taken_past(to: SocketAddrV4) -> Vec<libc::sock_filter> {
    let mut program = vec![of(LOAD_LENGTH, 0), of(IF_GREATER, (AROUND + MOST_AT_ONCE) as u32)];
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

/// The datagrams that the UDP socket keeps: those of other interfaces, and those in which the kernel has joined more.
fn left_to_kernel(interface: u32) -> Vec<libc::sock_filter> {
    let another = libc::sock_filter { code: IF_EQUAL, jt: 0, jf: 3, k: interface };
    let joined = libc::sock_filter { code: IF_GREATER, jt: 1, jf: 0, k: (8 + MOST_AT_ONCE) as u32 };
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
/// Each packet has the header of [`OFFLOAD`] before it (`linux/if_packet.h`).
const PACKET_VNET_HDR: i32 = 15;
/// In that header (`linux/virtio_net.h`): the checksum is to be completed, and the packet to be cut into datagrams.
const NEEDS_CHECKSUM: u8 = 1;
const IS_UDP_TO_BE_CUT: u8 = 5;
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
