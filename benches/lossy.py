"""Drop one in so many frames that come in on an interface, until standard input ends: an XDP program of ours.

    python benches/lossy.py eth0 100

Prints ``ready`` when it is in force. It is loaded and held by bpf(2) (Linux's ``bpf.h``) in the generic mode,
before packet sockets and the kernel's protocols see a frame, and goes with the process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys

CALLS = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE = 5, 28
TYPE_XDP, ATTACH_XDP, GENERIC = 6, 37, 2
GET_PRANDOM_U32 = 7
DROP, PASS = 1, 2


def instruction(code: int, register: int = 0, jump: int = 0, value: int = 0) -> bytes:
    """Return an instruction of eBPF (RFC 9669, 3)."""
    return struct.pack("<BBhi", code, register, jump, value)


def program(one_in: int) -> bytes:
    """Return the program: a random number that is a multiple of `one_in` drops the frame."""
    return b"".join(
        [
            instruction(0x85, value=GET_PRANDOM_U32),
            instruction(0x94, value=one_in),  # r0 %= one_in, 32 bits
            instruction(0x56, jump=2),  # if r0 != 0 skip two
            instruction(0xB7, value=DROP),
            instruction(0x95),
            instruction(0xB7, value=PASS),
            instruction(0x95),
        ]
    )


def bpf(command: int, attributes: bytes) -> int:
    """Call bpf(2); return the file descriptor that it gives.

    Raises
    ------
    OSError
        The kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    found = libc.syscall(CALLS[platform.machine()], command, buffer, len(attributes))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf(2), command {command}: {os.strerror(error)}")
    return int(found)


def attach(interface: str, one_in: int) -> int:
    """Have an interface lose frames; return the descriptor whose end ends that."""
    code = program(one_in)
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"MIT")
    load = struct.pack(
        "<IIQQIIQII",
        *(TYPE_XDP, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(licence)),
        *(0, 0, 0, 0, 0),
    )
    loaded = bpf(PROG_LOAD, load)
    return bpf(
        LINK_CREATE, struct.pack("<IIII", loaded, socket.if_nametoindex(interface), ATTACH_XDP, GENERIC)
    )


if __name__ == "__main__":
    held = attach(sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    sys.stdin.read()
