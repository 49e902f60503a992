//! The Virtual Interface Architecture 1.0: NICs, VIs, registered memory, descriptors, connections.
//!
//! The VI Architecture specification (1997) and the VI Developer's Guide (1998) with its programming
//! interface, VIPL. [`Nic`] is the provider: sans I/O, it never touches a message's octets, but says
//! where they are ([`Gather`]) and where they go ([`Deposit`]). [`Vipl`] is the programming interface
//! over any [`Device`] that has memory and a network; [`loopback`] is the simulated device; the local network of
//! `net` has a [`Nic`] on each host; the host's room has the same calls live, between processes over shared memory.
//! [`messages`] is a message layer straight over it. [`conformance`] is one suite for all of them.
//!
//! What the specification leaves to a provider is a [`NicAttributes`]: [`NicAttributes::adapter`] is a NIC
//! with everything, [`NicAttributes::m_via`] M-VIA, the emulation in the Linux kernel.
//!
//! Left out: the linking of descriptors through `Next`, which no consumer sees.

pub mod attributes;
mod check;
pub mod conformance;
mod connection;
mod descriptor;
pub mod loopback;
mod memory;
pub mod messages;
mod names;
mod nic;
mod packet;
mod receive;
mod send;
mod vi;
mod vipl;

use core::fmt;

pub use attributes::{
    Emulation, MemoryAttributes, NicAttributes, Reliability, ReliabilitySupport, RemoteAttributes,
    ViAttributes,
};
pub use check::{DescriptorView, check_segments};
pub use connection::Asked;
pub use descriptor::{
    ADDRESS_SEGMENT, AddressSegment, CONTROL_SEGMENT, ControlSegment, DATA_SEGMENT, DataSegment, Descriptor,
    FormatError, Operation, control, status,
};
pub use memory::{Access, Fault, Memory, Region};
pub use names::Names;
pub use nic::{AsynchronousError, Delivery, Deposit, ErrorCode, Event, Nic, NicCounters, NicOutput};
pub use nic::{DESCRIPTOR_ALIGNMENT, DoneError, Resource};
pub use packet::{Body, Fragment, FragmentKind, Gather, NakReason, Packet, PacketError};
pub use vi::{Completion, Outcome, Place, QueueKind, ViState};
pub use vipl::{Arrival, Device, Stuck, Vipl};

/// Why a call of VIPL failed: the codes of `VIP_RETURN`, `VIP_SUCCESS` (0) being the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ViplError {
    /// No completed descriptor, or no connection yet.
    NotDone = 1,
    /// A handle or another argument is not valid.
    InvalidParameter,
    /// Something is used up, or still in use.
    ErrorResource,
    /// The time given has passed.
    Timeout,
    /// The remote end rejected the connection.
    Reject,
    /// The reliability level is not supported, or is not that of the remote VI.
    InvalidReliabilityLevel,
    /// The maximum transfer size is not supported, or is not that of the remote VI.
    InvalidMtu,
    /// The quality of service is not supported, or is not that of the remote VI.
    InvalidQos,
    /// The protection tag is not one of this NIC's.
    InvalidPtag,
    /// RDMA read was asked for where there is none.
    InvalidRdmaread,
    /// The descriptor completed in error, or the queue is empty.
    DescriptorError,
    /// The VI is not in a state in which this can be done.
    InvalidState,
    /// The name service is not open, or knows no such host.
    ErrorNameservice,
    /// Nobody waits for a connection at that discriminator.
    NoMatch,
    /// The remote NIC cannot be reached.
    NotReachable,
}

impl ViplError {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 15] = [
        Self::NotDone,
        Self::InvalidParameter,
        Self::ErrorResource,
        Self::Timeout,
        Self::Reject,
        Self::InvalidReliabilityLevel,
        Self::InvalidMtu,
        Self::InvalidQos,
        Self::InvalidPtag,
        Self::InvalidRdmaread,
        Self::DescriptorError,
        Self::InvalidState,
        Self::ErrorNameservice,
        Self::NoMatch,
        Self::NotReachable,
    ];

    /// The value of `VIP_RETURN`.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Its name in `vipl.h`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotDone => "VIP_NOT_DONE",
            Self::InvalidParameter => "VIP_INVALID_PARAMETER",
            Self::ErrorResource => "VIP_ERROR_RESOURCE",
            Self::Timeout => "VIP_TIMEOUT",
            Self::Reject => "VIP_REJECT",
            Self::InvalidReliabilityLevel => "VIP_INVALID_RELIABILITY_LEVEL",
            Self::InvalidMtu => "VIP_INVALID_MTU",
            Self::InvalidQos => "VIP_INVALID_QOS",
            Self::InvalidPtag => "VIP_INVALID_PTAG",
            Self::InvalidRdmaread => "VIP_INVALID_RDMAREAD",
            Self::DescriptorError => "VIP_DESCRIPTOR_ERROR",
            Self::InvalidState => "VIP_INVALID_STATE",
            Self::ErrorNameservice => "VIP_ERROR_NAMESERVICE",
            Self::NoMatch => "VIP_NO_MATCH",
            Self::NotReachable => "VIP_NOT_REACHABLE",
        }
    }
}

impl fmt::Display for ViplError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for ViplError {}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// A NIC gives each number once: one that has been given back is never valid again.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);
    )*};
}

handles! {
    /// `VIP_VI_HANDLE`.
    ViHandle;
    /// `VIP_PROTECTION_HANDLE`.
    Ptag;
    /// `VIP_MEM_HANDLE`.
    MemoryHandle;
    /// `VIP_CQ_HANDLE`.
    CqHandle;
    /// `VIP_CONN_HANDLE`: a request for a connection that waits for its answer.
    ConnHandle;
    /// A wait for a request (`VipConnectWait`), while it lasts.
    WaitHandle;
}

/// The host part of a network address: that of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostAddress(pub [u8; 6]);

/// `VIP_NET_ADDRESS`: a NIC, and whom at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The NIC.
    pub host: HostAddress,
    /// Opaque, at most [`NicAttributes::max_discriminator`] octets.
    pub discriminator: alloc::vec::Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_codes_are_those_of_the_header() {
        let codes: alloc::vec::Vec<u8> = ViplError::ALL.iter().map(|error| error.code()).collect();
        assert_eq!(codes, (1..=15).collect::<alloc::vec::Vec<u8>>());
        assert_eq!(ViplError::DescriptorError.code(), 11);
        assert_eq!(alloc::format!("{}", ViplError::NoMatch), "VIP_NO_MATCH");
    }
}
