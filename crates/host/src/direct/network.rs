//! The ways to other hosts of one endpoint: datagrams through the kernel's socket, and past it where that may be.
//!
//! Both are one UDP port, so a peer need not know which is used. The first frames to a peer go through the kernel,
//! which finds the way. As soon as one has come from it past the kernel, and from its own network, frames to it
//! go back to the Ethernet address that it came from.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use wiretwin_proto::direct::Service;

use super::device::Sends;
use super::ether::{AROUND, Interface, Mac, put_around};
use super::udp::{self, UdpDevice};
use super::xdp::{self, XdpError};

/// How many frames came which way, and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Through shared memory.
    pub memory: u64,
    /// By AF_XDP.
    pub xdp: u64,
    /// As datagrams through the kernel.
    pub udp: u64,
    /// Messages whose bytes came over TCP.
    pub stream: u64,
}

/// Tries to have the device that goes past the kernel, on the interface of an address, and lets it go again.
///
/// # Errors
/// What the kernel said, and of what.
pub fn try_xdp(ip: Ipv4Addr) -> io::Result<()> {
    let mut network = Network::open(ip, true)?;
    network.go_past().map_err(|XdpError { doing, error }| {
        // The same kind of error, so that a caller can tell that it is for lack of privilege.
        io::Error::new(error.kind(), format!("{doing}: {error}"))
    })
}

/// The device that goes past the kernel.
#[derive(Debug)]
enum Past {
    /// Not asked for: no peer of another host is known.
    Unasked,
    /// It is there.
    Open { interface: Interface, out: xdp::Out },
    /// It cannot be had, or is not wanted.
    Closed,
}

/// The devices.
#[derive(Debug)]
pub(super) struct Network {
    udp: UdpDevice,
    local: SocketAddrV4,
    past: Past,
    /// The half that receives; whoever looks at what it has takes it out meanwhile.
    pub into: Option<xdp::In>,
    /// Turns since the kernel's socket had something.
    quiet: u32,
}

/// Frames of a message longer than this go through the kernel, which takes and brings many at once.
const SHORT: u64 = 4 * udp::FRAME as u64;
/// Turns in which the kernel's socket is asked each time after something has come there, and how often it is asked
/// later, where there is another device: the call costs more than a look at that.
const ASKED: u32 = 256;
const SELDOM: u32 = 32;

impl Network {
    /// The kernel's socket at an address; `wants_past` says that another device is looked for.
    pub(super) fn open(ip: Ipv4Addr, wants_past: bool) -> io::Result<Self> {
        let udp = UdpDevice::open(ip)?;
        let local = udp.address()?;
        let past = if wants_past { Past::Unasked } else { Past::Closed };
        Ok(Self { udp, local, past, into: None, quiet: 0 })
    }

    /// Where datagrams are taken.
    pub(super) const fn address(&self) -> SocketAddrV4 {
        self.local
    }

    /// Looks for a device that goes past the kernel, if one is wanted that has not been looked for.
    ///
    /// # Errors
    /// [`XdpError`]: there is none, and frames go through the kernel.
    pub(super) fn go_past(&mut self) -> Result<(), XdpError> {
        if !matches!(self.past, Past::Unasked) {
            return Ok(());
        }
        self.past = Past::Closed;
        let interface = Interface::of(*self.local.ip()).ok_or_else(|| XdpError {
            doing: "looking for the Ethernet interface of the address",
            error: io::Error::other("none has it"),
        })?;
        let (into, out) = xdp::open(&interface, self.local)?;
        self.into = Some(into);
        self.past = Past::Open { interface, out };
        Ok(())
    }

    /// Whether frames from a host may tell of the way to it.
    pub(super) fn is_near(&self, ip: Ipv4Addr) -> bool {
        matches!(&self.past, Past::Open { interface, .. } if interface.is_near(ip))
    }

    /// Takes a frame of a message of so many bytes, which goes with the next [`Network::flush`] at the latest: past the
    /// kernel where the Ethernet address that leads to the peer is known.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        (to, mac): (SocketAddrV4, Option<Mac>),
        (head, payload): (&[u8], &[u8]),
        message: u64,
        service: Service,
    ) {
        if let (Some(mac), Past::Open { interface, out }) = (mac, &mut self.past)
            && message <= SHORT
            && let Some(room) = out.room()
        {
            // In the order in which they were handed over.
            self.udp.flush();
            let length = head.len() + payload.len();
            put_around(room, (interface.mac, self.local), (mac, to), length, service);
            let (first, rest) = room[AROUND..AROUND + length].split_at_mut(head.len());
            first.copy_from_slice(head);
            rest.copy_from_slice(payload);
            wiretwin_wire::direct::seal(&mut room[AROUND..AROUND + length]);
            out.put(AROUND + length);
        } else {
            if let Past::Open { out, .. } = &mut self.past {
                out.flush();
            }
            self.udp.transmit(to, head, payload, service);
        }
    }

    /// Sends the frames that wait.
    #[inline]
    pub(super) fn flush(&mut self) {
        if let Past::Open { out, .. } = &mut self.past {
            out.flush();
        }
        self.udp.flush();
    }

    /// What has come through the kernel, if this is a turn in which it is asked.
    #[inline]
    pub(super) fn receive(&mut self) -> Option<udp::Came> {
        self.quiet = self.quiet.wrapping_add(1);
        if matches!(self.past, Past::Open { .. }) && self.quiet > ASKED && !self.quiet.is_multiple_of(SELDOM)
        {
            return None;
        }
        let came = self.udp.receive();
        if came.is_some() {
            self.quiet = 0;
        }
        came
    }

    /// Has the next turns ask the kernel for what has come there.
    pub(super) const fn ask_kernel(&mut self) {
        self.quiet = 0;
    }

    pub(super) fn give_back(&mut self, came: udp::Came) {
        self.udp.give_back(came);
    }
}
