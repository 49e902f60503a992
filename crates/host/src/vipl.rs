//! VIPL, live: the VI Architecture 1.0 between processes of this host, or of several.
//!
//! An [`Adapter`] is a NIC of one process. What it offers and rejects is what the sans-I/O machine of
//! [`wiretwin_msg::via`] offers and rejects, and the same suite says so. Within a host data go through a ring of shared
//! memory or in one copy from the memory of the sender, with nothing allocated, and not through packets; between hosts
//! the direct transport carries them ([`Reach`]).
//!
//! Whoever calls takes what has come along. A thread of the adapter does it where nobody calls: it carries out RDMA
//! writes of remote ends, calls handlers, and hears of processes that are gone (their sockets end).
//!
//! *Choice*: data are written into a process by that process alone, into what it has registered. It maps what the other
//! has registered where that is shared memory already, to read it; registering cannot make memory shared that the program
//! has.

mod adapter;
mod carrier;
mod connect;
mod link;
mod lock;
mod place;
mod queue;
mod remote;
mod service;
mod table;
mod vi;
mod views;
mod wire;

#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use wiretwin_msg::via::{AsynchronousError, Completion, CqHandle, QueueKind, ViHandle};

use crate::direct::Ways;
pub use adapter::Adapter;
pub use place::{host_of, ip_of};

/// Whom a NIC reaches, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Processes of this user on this host, through shared memory.
    Memory,
    /// Processes of hosts, this one among them, by datagrams from this address.
    Udp(Ipv4Addr),
    /// The same, past the kernel's protocols by a packet socket to hosts of its network (`CAP_NET_RAW`).
    Packet(Ipv4Addr),
}

impl Reach {
    /// The name of the device.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "shm",
            Self::Udp(_) => "udp",
            Self::Packet(_) => "packet",
        }
    }

    const fn is_network(self) -> bool {
        !matches!(self, Self::Memory)
    }

    const fn device(self) -> Option<(Ipv4Addr, Ways)> {
        match self {
            Self::Memory => None,
            Self::Udp(ip) => Some((ip, Ways::Datagrams)),
            Self::Packet(ip) => Some((ip, Ways::Packet)),
        }
    }
}

/// The name of a network that those who know this directory share.
pub(crate) fn network_of(directory: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    format!("{:016x}", place::digest(&[directory.as_os_str().as_bytes()]))
}

/// A handler of the consumer and its context, handed back as they came.
pub type Token = [usize; 2];

/// What the consumer's handlers are told, on the thread of the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handler of `VipErrorCallback`.
    Asynchronous(AsynchronousError),
    /// The handler of `VipSendNotify` or `VipRecvNotify`: this descriptor was taken off its queue.
    Notified {
        /// The VI that the queue belongs to.
        vi: ViHandle,
        /// Which queue.
        kind: QueueKind,
        /// The descriptor that was taken off, and its outcome.
        completion: Completion,
        /// Which handler.
        token: Token,
    },
    /// The handler of `VipCQNotify`.
    CqNotified {
        /// Which completion queue.
        cq: CqHandle,
        /// Whose descriptor is done.
        vi: ViHandle,
        /// On which queue.
        kind: QueueKind,
        /// Which handler.
        token: Token,
    },
}
