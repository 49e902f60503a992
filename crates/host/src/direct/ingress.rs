//! Datagrams that a packet socket has had go no further: a program of a few instructions at the entrance of the interface
//! drops them before IP and UDP see them, where the process may load one (`CAP_BPF` and `CAP_NET_ADMIN`, Linux 6.6).
//!
//! Packet sockets get a frame before that program does. Without it the filter on the UDP socket drops the same datagrams,
//! behind all that the kernel's protocols have done for each. The program goes with the descriptor of its link, and so
//! with the process, however that ends; it says nothing of any other frame, so others' programs see it as before.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An instruction, `struct bpf_insn` of `linux/bpf.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// The register that is written to, and above it the one that is read.
    registers: u8,
    offset: i16,
    value: i32,
}

/// What is asked of `bpf(2)` to load a program, as far as it is needed.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 4],
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attached_as: u32,
}

/// The same to attach it.
#[repr(C)]
struct Attach {
    program: u32,
    interface: u32,
    attached_as: u32,
    flags: u32,
    /// Relative to nothing, whatever else is attached.
    relative: [u32; 4],
}

const LOAD_PROGRAM: i32 = 5;
const CREATE_LINK: i32 = 28;
const OF_TRAFFIC_CONTROL: u32 = 3;
const TCX_INGRESS: u32 = 46;
const NEXT_PROGRAM: i32 = -1;
const DROP: i32 = 2;

const fn of(code: u8, registers: u8, value: i32) -> Instruction {
    Instruction { code, registers, offset: 0, value }
}

/// Drops the datagrams to an address that are whole and in packets of at most `most` bytes: those of
/// [`super::packet::taken_past`].
fn program(to: SocketAddrV4, most: usize) -> Vec<Instruction> {
    // The packet stays in register 6, for which the loads from it look there; its length is the first field.
    let mut program = vec![of(0xbf, 0x16, 0), of(0x61, 0x60, 0), of(GREATER, 0, most as i32)];
    for (load, at, value) in [
        (HALF, 12, 0x0800),
        (BYTE, 14, 0x45),
        (BYTE, 23, 17),
        (WORD, 30, to.ip().to_bits() as i32),
        (HALF, 36, to.port().into()),
    ] {
        program.extend([of(load, 0, at), of(DIFFERS, 0, value)]);
    }
    program.extend([of(HALF, 0, 20), of(ANY_OF, 0, 0x3fff), of(SET, 0, DROP), of(EXIT, 0, 0)]);
    let end = program.len();
    program.extend([of(SET, 0, NEXT_PROGRAM), of(EXIT, 0, 0)]);
    for (at, instruction) in program.iter_mut().enumerate() {
        if matches!(instruction.code, GREATER | DIFFERS | ANY_OF) {
            instruction.offset = (end - at - 1) as i16;
        }
    }
    program
}

const WORD: u8 = 0x20;
const HALF: u8 = 0x28;
const BYTE: u8 = 0x30;
const GREATER: u8 = 0x26;
const ANY_OF: u8 = 0x46;
const DIFFERS: u8 = 0x56;
const SET: u8 = 0xb7;
const EXIT: u8 = 0x95;

/// Has the datagrams to an address end at an interface, until the descriptor is closed.
///
/// # Errors
/// The process may not, or the kernel cannot.
pub(super) fn end_at(interface: u32, to: SocketAddrV4, most: usize) -> io::Result<OwnedFd> {
    let program = program(to, most);
    let license = c"Apache-2.0";
    let loaded = bpf(
        LOAD_PROGRAM,
        &Load {
            kind: OF_TRAFFIC_CONTROL,
            count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log: [0; 4],
            version: 0,
            flags: 0,
            name: *b"wiretwin_direct\0",
            interface: 0,
            attached_as: TCX_INGRESS,
        },
    )?;
    let program = loaded.as_raw_fd() as u32;
    bpf(CREATE_LINK, &Attach { program, interface, attached_as: TCX_INGRESS, flags: 0, relative: [0; 4] })
}

fn bpf<T>(command: i32, what: &T) -> io::Result<OwnedFd> {
    // SAFETY: what is asked, with its length; what it points to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(what), size_of::<T>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just made for this process; bpf sets close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
