//! The program that the kernel runs on every frame of the interface, as instructions of its virtual machine
//! (RFC 9669), so that no compiler is needed to have it.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::super::device::EndpointError;
use super::super::ether::{AROUND, MOST};

/// An instruction: its code, registers (the source in the high half), offset and number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// Bytes of attributes: at least what each command here reads, the rest being zero.
const ATTRIBUTES: usize = 64;

// RFC 9669 §4 and §5, and the kernel's `bpf.h`.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const LOAD_NUMBER: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD_NUMBER: u8 = 0x07;
const AND_NUMBER: u8 = 0x57;
const IF_GREATER: u8 = 0x2d;
const IF_NOT_GREATER: u8 = 0xbd;
const IF_UNEQUAL: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const SOURCE_IS_MAP: u8 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_TO_XDP: u32 = 37;
/// Frames that the kernel has joined are shown piece by piece: else it would copy each into one piece of up to 64 KiB
/// first, for which it may find no memory.
const MAY_BE_IN_PIECES: u32 = 1 << 5;
const GENERIC_MODE: u32 = 1 << 1;
/// Sockets by queue.
const QUEUES: u32 = 64;

/// The program: frames to the address go to the socket of their queue in the map, all others pass.
fn program(to: SocketAddrV4, map: i32) -> Vec<Instruction> {
    let plain = |code, registers, offset, number| Instruction { code, registers, offset, number };
    let pair = |to: u8, from: u8| from << 4 | to;
    // What the frame holds, as a number loaded from it reads on this machine.
    let half = |octets: [u8; 2]| i32::from(u16::from_ne_bytes(octets));
    // Registers: 1 what is known of the frame; 2 its beginning; 3 its end; 4 and 5 in passing.
    let mut program = vec![
        plain(LOAD_WORD, pair(2, 1), 0, 0),
        plain(LOAD_WORD, pair(3, 1), 4, 0),
        // Longer than ours: frames that the kernel has joined, which its socket takes.
        plain(MOVE, pair(4, 2), 0, 0),
        plain(ADD_NUMBER, 4, 0, MOST as i32 + 1),
        plain(IF_NOT_GREATER, pair(4, 3), PASS, 0),
        plain(MOVE, pair(4, 2), 0, 0),
        plain(ADD_NUMBER, 4, 0, AROUND as i32),
        plain(IF_GREATER, pair(4, 3), PASS, 0),
    ];
    let mut unless = |code: u8, offset: i16, and: Option<i32>, number: i32| {
        program.push(plain(code, pair(5, 2), offset, 0));
        program.extend(and.map(|and| plain(AND_NUMBER, 5, 0, and)));
        program.push(plain(IF_UNEQUAL, 5, PASS, number));
    };
    unless(LOAD_HALF, 12, None, half([0x08, 0x00]));
    // IPv4 without options, no part of a packet that was cut, UDP.
    unless(LOAD_BYTE, 14, None, 0x45);
    unless(LOAD_HALF, 20, Some(half([0x3f, 0xff])), 0);
    unless(LOAD_BYTE, 23, None, 17);
    unless(LOAD_WORD, 30, None, i32::from_ne_bytes(to.ip().octets()));
    unless(LOAD_HALF, 36, None, half(to.port().to_be_bytes()));
    program.extend([
        // The queue; what has no socket there passes.
        plain(LOAD_WORD, pair(2, 1), 16, 0),
        plain(LOAD_NUMBER, pair(1, SOURCE_IS_MAP), 0, map),
        plain(0, 0, 0, 0),
        plain(MOVE_NUMBER, 3, 0, XDP_PASS),
        plain(CALL, 0, 0, REDIRECT_MAP),
        plain(EXIT, 0, 0, 0),
        plain(MOVE_NUMBER, 0, 0, XDP_PASS),
        plain(EXIT, 0, 0, 0),
    ]);
    let pass = program.len() - 2;
    for (at, instruction) in program.iter_mut().enumerate() {
        if matches!(instruction.code, IF_GREATER | IF_NOT_GREATER | IF_UNEQUAL) {
            instruction.offset = (pass - at - 1) as i16;
        }
    }
    program
}

/// To where the frame passes: filled in when the program is whole.
const PASS: i16 = 0;

/// Has an interface run the program: the map of sockets, and the link that keeps the program running.
pub(super) fn attach(interface: u32, to: SocketAddrV4) -> Result<(OwnedFd, OwnedFd), EndpointError> {
    let failed = |doing| move |error| EndpointError { doing, error };
    let mut attributes = [0; ATTRIBUTES];
    put(&mut attributes, 0, MAP_OF_SOCKETS);
    // A key and a value of so many bytes each.
    [(4, 4), (8, 4), (12, QUEUES)].into_iter().for_each(|(at, value)| put(&mut attributes, at, value));
    let map = bpf(MAP_CREATE, &mut attributes).map_err(failed("making a map of AF_XDP sockets"))?;

    let program = program(to, map.as_raw_fd());
    let mut attributes = [0; ATTRIBUTES];
    put(&mut attributes, 0, PROGRAM_OF_XDP);
    put(&mut attributes, 4, program.len() as u32);
    put_address(&mut attributes, 8, program.as_ptr().cast());
    put_address(&mut attributes, 16, c"Apache-2.0".as_ptr().cast());
    put(&mut attributes, 44, MAY_BE_IN_PIECES);
    let program = bpf(PROGRAM_LOAD, &mut attributes).map_err(failed("loading an XDP program"))?;

    let mut attributes = [0; ATTRIBUTES];
    let program = program.as_raw_fd() as u32;
    [(0, program), (4, interface), (8, ATTACH_TO_XDP), (12, GENERIC_MODE)]
        .into_iter()
        .for_each(|(at, value)| put(&mut attributes, at, value));
    let link =
        bpf(LINK_CREATE, &mut attributes).map_err(failed("attaching an XDP program to the interface"))?;
    Ok((map, link))
}

/// Puts a socket into the map, for a queue.
pub(super) fn hand_over(map: &OwnedFd, queue: u32, socket: &OwnedFd) -> Result<(), EndpointError> {
    let socket = socket.as_raw_fd();
    let mut attributes = [0; ATTRIBUTES];
    put(&mut attributes, 0, map.as_raw_fd() as u32);
    put_address(&mut attributes, 8, (&raw const queue).cast());
    put_address(&mut attributes, 16, (&raw const socket).cast());
    // SAFETY: the attributes of the command, whose addresses are of places that live until the call is over.
    match unsafe { libc::syscall(libc::SYS_bpf, MAP_UPDATE, attributes.as_mut_ptr(), attributes.len()) } {
        0 => Ok(()),
        _ => {
            Err(EndpointError { doing: "handing the AF_XDP socket over", error: io::Error::last_os_error() })
        }
    }
}

fn put(attributes: &mut [u8; ATTRIBUTES], at: usize, value: u32) {
    attributes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn put_address(attributes: &mut [u8; ATTRIBUTES], at: usize, value: *const u8) {
    attributes[at..at + 8].copy_from_slice(&(value as u64).to_ne_bytes());
}

/// A command that makes something, which the descriptor stands for.
fn bpf(command: i32, attributes: &mut [u8; ATTRIBUTES]) -> io::Result<OwnedFd> {
    // SAFETY: the attributes of the command, whose addresses are of places that live until the call is over.
    let made = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), attributes.len()) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that is this process's alone; the kernel closes it when another program is executed.
    Ok(unsafe { OwnedFd::from_raw_fd(made as i32) })
}
