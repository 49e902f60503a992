//! The ways to other hosts of one endpoint: datagrams through the kernel's socket, and past it where that may be.
//!
//! Both are one UDP port, so a peer need not know which is used. The first frames to a peer go through the kernel,
//! which finds the way. As soon as one has come from it past the kernel, and from its own network, frames to it
//! go back to the Ethernet address that it came from.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use wiretwin_proto::direct::Service;

use super::error::EndpointError;
use super::ether::{Interface, Mac};
use super::held::Held;
use super::packet::{self, In, Out};
use super::udp::{self, UdpDevice};

/// How many frames came which way, and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Through shared memory.
    pub memory: u64,
    /// Past the kernel's protocols, by a packet socket.
    pub past: u64,
    /// As datagrams through the kernel.
    pub udp: u64,
    /// Messages whose bytes came over TCP.
    pub stream: u64,
}

/// Tries to have a packet socket on the interface of an address, and lets it go again.
///
/// # Errors
/// What the kernel said, and of what.
pub fn try_past(ip: Ipv4Addr) -> io::Result<()> {
    let mut network = Network::open(ip, true)?;
    network.go_past().map_err(|EndpointError { doing, error }| {
        // The same kind of error, so that a caller can tell that it is for lack of privilege.
        io::Error::new(error.kind(), format!("{doing}: {error}"))
    })
}

/// What there is of the packet socket.
#[derive(Debug)]
enum Past {
    /// Not asked for: no peer of another host is known.
    Unasked,
    /// It is there.
    Open { interface: Interface, out: Held<Out> },
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
    pub into: Option<In>,
    /// Turns since the kernel's socket had something.
    quiet: u32,
}

/// Turns in which the kernel's socket is asked each time after something has come there, and of which it is asked in one
/// later, where there is another device: the call takes as long as eight looks at that.
const ASKED: u32 = 256;

impl Network {
    /// The kernel's socket at an address; a packet socket is to be looked for if it `goes_past` the kernel.
    pub(super) fn open(ip: Ipv4Addr, goes_past: bool) -> io::Result<Self> {
        let udp = UdpDevice::open(ip)?;
        let local = udp.address()?;
        let past = if goes_past { Past::Unasked } else { Past::Closed };
        Ok(Self { udp, local, past, into: None, quiet: 0 })
    }

    /// Where datagrams are taken.
    pub(super) const fn address(&self) -> SocketAddrV4 {
        self.local
    }

    /// Looks for a packet socket, if one is wanted that has not been looked for.
    ///
    /// # Errors
    /// [`EndpointError`]: there is none, and frames go through the kernel.
    pub(super) fn go_past(&mut self) -> Result<(), EndpointError> {
        if !matches!(self.past, Past::Unasked) {
            return Ok(());
        }
        self.past = Past::Closed;
        let interface = Interface::of(*self.local.ip()).ok_or_else(|| EndpointError {
            doing: "looking for the Ethernet interface of the address",
            error: io::Error::other("none has it"),
        })?;
        let (into, out) = packet::open(&interface, self.local, self.udp.socket())?;
        self.into = Some(into);
        self.past = Past::Open { interface, out: Held::new(out) };
        Ok(())
    }

    /// Whether frames from a host may tell of the way to it.
    pub(super) fn is_near(&self, ip: Ipv4Addr) -> bool {
        matches!(&self.past, Past::Open { interface, .. } if interface.is_near(ip))
    }

    /// Takes a frame, which goes with the next [`Network::flush`] at the latest: past the kernel where the Ethernet
    /// address that leads to the peer is known.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        (to, mac): (SocketAddrV4, Option<Mac>),
        (head, payload): (&[u8], &[u8]),
        service: Service,
    ) {
        // In the order in which they were handed over.
        if let (Some(mac), Past::Open { interface, out }) = (mac, &mut self.past) {
            self.udp.flush();
            out.device().transmit((interface.mac, self.local), (mac, to), head, payload, service);
        } else {
            if let Past::Open { out, .. } = &mut self.past {
                out.flush();
            }
            self.udp.transmit(to, head, payload, service);
        }
    }

    /// The sockets that can be read from when something has come.
    pub(super) fn wakers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.udp.socket().as_fd()].into_iter().chain(self.into.iter().map(In::waker))
    }

    /// Sends the frames that wait.
    #[inline]
    pub(super) fn flush(&mut self) {
        if let Past::Open { out, .. } = &mut self.past {
            out.flush();
        }
        self.udp.flush();
    }

    /// Leaves the frames that wait for others, where there is a thread to send them if none follow soon.
    #[inline]
    pub(super) fn hold(&mut self) {
        if let Past::Open { out, .. } = &mut self.past {
            out.hold();
        }
        self.udp.flush();
    }

    /// What has come through the kernel, if this is a turn in which it is asked.
    #[inline]
    pub(super) fn receive(&mut self) -> Option<udp::Came> {
        self.quiet = self.quiet.wrapping_add(1);
        if matches!(self.past, Past::Open { .. }) && self.quiet > ASKED && !self.quiet.is_multiple_of(ASKED) {
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
