//! VIPL over shared memory: the VI Architecture 1.0 between processes of this host, live.
//!
//! An [`Adapter`] is a NIC of one process. What it offers and refuses is what the sans-I/O machine of
//! [`wiretwin_msg::via`] offers and refuses, and the same suite says so; but data go through a ring of shared memory
//! or in one copy from the memory of the sender, with nothing allocated, and not through packets.
//!
//! Whoever calls takes what has come along. A thread of the adapter does it where nobody calls: it carries out RDMA
//! writes of remote ends, calls handlers, and hears of processes that are gone (their sockets end).
//!
//! *Choice*: data are written into a process by that process alone, into what it has registered. It maps what the other
//! has registered where that is shared memory already, to read it; registering cannot make memory shared that the program
//! has.

mod adapter;
mod connect;
mod link;
mod queue;
mod remote;
mod service;
mod table;
mod vi;
mod views;

use wiretwin_msg::via::{AsynchronousError, Completion, CqHandle, QueueKind, ViHandle};

pub use adapter::Adapter;

/// The name of a network that those who know this directory share.
pub(crate) fn network_of(directory: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    format!("{:016x}", connect::digest(&[directory.as_os_str().as_bytes()]))
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
