//! The ways to other hosts of one endpoint: datagrams through the kernel's socket, and past it where that may be.
//!
//! Both are one UDP port, so a peer need not know which is used. The first frames to a peer go through the kernel,
//! which finds the way. As soon as one has come from it past the kernel, and from its own network, frames to it
//! go back to the Ethernet address that it came from.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use wiretwin_proto::direct::Service;

use super::device::{EndpointError, Receives, Sends};
use super::ether::{AROUND, Interface, Mac, put_around};
use super::packet;
use super::udp::{self, UdpDevice};
use super::xdp;

/// How many frames came which way, and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Through shared memory.
    pub memory: u64,
    /// Past the kernel's protocols, by a packet socket or AF_XDP.
    pub past: u64,
    /// As datagrams through the kernel.
    pub udp: u64,
    /// Messages whose bytes came over TCP.
    pub stream: u64,
}

/// A device that goes past the kernel's protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// A packet socket.
    Packet,
    /// AF_XDP.
    Xdp,
}

/// Tries to have a device that goes past the kernel, on the interface of an address, and lets it go again.
///
/// # Errors
/// What the kernel said, and of what.
pub fn try_past(past: Past, ip: Ipv4Addr) -> io::Result<()> {
    let mut network = Network::open(ip, Some(past))?;
    network.go_past().map_err(|EndpointError { doing, error }| {
        // The same kind of error, so that a caller can tell that it is for lack of privilege.
        io::Error::new(error.kind(), format!("{doing}: {error}"))
    })
}

/// What there is of such a device.
#[derive(Debug)]
enum State {
    /// Not asked for: no peer of another host is known.
    Unasked(Past),
    /// It is there.
    Open { interface: Interface, out: Out },
    /// It cannot be had, or is not wanted.
    Closed,
}

/// The half of one that sends.
#[derive(Debug)]
enum Out {
    Packet(packet::Out),
    Xdp(xdp::Out),
}

/// The half of one that receives.
#[derive(Debug)]
pub(super) enum In {
    Packet(packet::In),
    Xdp(xdp::In),
}

impl Sends for Out {
    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Packet(out) => out.room(),
            Self::Xdp(out) => out.room(),
        }
    }

    #[inline]
    fn put(&mut self, length: usize) {
        match self {
            Self::Packet(out) => out.put(length),
            Self::Xdp(out) => out.put(length),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            Self::Packet(out) => out.flush(),
            Self::Xdp(out) => out.flush(),
        }
    }
}

impl Receives for In {
    #[inline]
    fn take(&mut self, look: impl FnOnce(&[u8])) -> bool {
        match self {
            Self::Packet(into) => into.take(look),
            Self::Xdp(into) => into.take(look),
        }
    }
}

/// The devices.
#[derive(Debug)]
pub(super) struct Network {
    udp: UdpDevice,
    local: SocketAddrV4,
    past: State,
    /// The half that receives; whoever looks at what it has takes it out meanwhile.
    pub into: Option<In>,
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
    /// The kernel's socket at an address, and the other device that is to be looked for.
    pub(super) fn open(ip: Ipv4Addr, past: Option<Past>) -> io::Result<Self> {
        let udp = UdpDevice::open(ip)?;
        let local = udp.address()?;
        let past = past.map_or(State::Closed, State::Unasked);
        Ok(Self { udp, local, past, into: None, quiet: 0 })
    }

    /// Where datagrams are taken.
    pub(super) const fn address(&self) -> SocketAddrV4 {
        self.local
    }

    /// Looks for a device that goes past the kernel, if one is wanted that has not been looked for.
    ///
    /// # Errors
    /// [`EndpointError`]: there is none, and frames go through the kernel.
    pub(super) fn go_past(&mut self) -> Result<(), EndpointError> {
        let State::Unasked(past) = self.past else { return Ok(()) };
        self.past = State::Closed;
        let interface = Interface::of(*self.local.ip()).ok_or_else(|| EndpointError {
            doing: "looking for the Ethernet interface of the address",
            error: io::Error::other("none has it"),
        })?;
        let (into, out) = match past {
            Past::Packet => packet::open(&interface, self.local, self.udp.socket())
                .map(|(into, out)| (In::Packet(into), Out::Packet(out)))?,
            Past::Xdp => {
                xdp::open(&interface, self.local).map(|(into, out)| (In::Xdp(into), Out::Xdp(out)))?
            }
        };
        self.into = Some(into);
        self.past = State::Open { interface, out };
        Ok(())
    }

    /// Whether frames from a host may tell of the way to it.
    pub(super) fn is_near(&self, ip: Ipv4Addr) -> bool {
        matches!(&self.past, State::Open { interface, .. } if interface.is_near(ip))
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
        if let (Some(mac), State::Open { interface, out }) = (mac, &mut self.past)
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
            if let State::Open { out, .. } = &mut self.past {
                out.flush();
            }
            self.udp.transmit(to, head, payload, service);
        }
    }

    /// Sends the frames that wait.
    #[inline]
    pub(super) fn flush(&mut self) {
        if let State::Open { out, .. } = &mut self.past {
            out.flush();
        }
        self.udp.flush();
    }

    /// What has come through the kernel, if this is a turn in which it is asked.
    #[inline]
    pub(super) fn receive(&mut self) -> Option<udp::Came> {
        self.quiet = self.quiet.wrapping_add(1);
        if matches!(self.past, State::Open { .. }) && self.quiet > ASKED && !self.quiet.is_multiple_of(SELDOM)
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
