//! What a NIC, a VI and a region of memory are told or tell: the attribute structures of VIPL.

use wiretwin_units::{Bytes, Span};

use super::{CqHandle, HostAddress, Memory, Ptag, ViplError};

/// How far a provider answers for a message; the values are those of the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reliability {
    /// At most once; what is lost is not reported, and the connection stays up.
    UnreliableDelivery = 1,
    /// Exactly once and in order; a send is done when the remote NIC has it. An error ends the connection.
    ReliableDelivery = 2,
    /// The same; a send is done when it is in the remote memory.
    ReliableReception = 4,
}

impl Reliability {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::UnreliableDelivery, Self::ReliableDelivery, Self::ReliableReception];

    /// The level with this value.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::UnreliableDelivery),
            2 => Some(Self::ReliableDelivery),
            4 => Some(Self::ReliableReception),
            _ => None,
        }
    }

    /// Whether loss is repaired, and an error ends the connection.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::UnreliableDelivery)
    }
}

/// The levels at which something is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReliabilitySupport(u8);

impl ReliabilitySupport {
    /// None.
    pub const NONE: Self = Self(0);
    /// All three.
    pub const ALL: Self = Self(7);

    /// These levels.
    #[must_use]
    pub const fn with(self, level: Reliability) -> Self {
        Self(self.0 | level as u8)
    }

    /// Whether this level is among them.
    pub const fn has(self, level: Reliability) -> bool {
        self.0 & level as u8 != 0
    }
}

/// Who does a provider's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// The adapter: a doorbell is a store, and what arrives is put in its place by DMA.
    Adapter,
    /// The kernel: a doorbell is a trap, and what arrives is copied from the driver's ring.
    Kernel,
}

/// `VIP_NIC_ATTRIBUTES`, and what a provider is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicAttributes {
    /// Its name.
    pub name: &'static str,
    /// Its address.
    pub local: HostAddress,
    /// Longest discriminator, octets.
    pub max_discriminator: u16,
    /// Octets registered at once.
    pub max_register_bytes: u64,
    /// Regions registered at once.
    pub max_register_regions: u32,
    /// Octets of one region.
    pub max_register_block: u64,
    /// VIs at once.
    pub max_vi: u32,
    /// Descriptors on one work queue, done or not.
    pub max_descriptors: u32,
    /// Segments of one descriptor, the control segment not counted.
    pub max_segments: u16,
    /// Completion queues at once.
    pub max_cq: u32,
    /// Entries of one completion queue.
    pub max_cq_entries: u32,
    /// Octets of one message. A provider must support at least 32 KiB.
    pub max_transfer: u32,
    /// Octets of a message that go in one packet.
    pub native_mtu: u32,
    /// Protection tags at once.
    pub max_ptag: u32,
    /// The reliability levels of VIs.
    pub reliability: ReliabilitySupport,
    /// The levels at which there is RDMA write.
    pub rdma_write: ReliabilitySupport,
    /// The levels at which there is RDMA read.
    pub rdma_read: ReliabilitySupport,
    /// Who does the work.
    pub emulation: Emulation,
    /// Packets of a reliable VI that may be without acknowledgment.
    pub window: u32,
    /// How long an acknowledgment, or an answer to a request for a connection, may take before what it
    /// answers is sent again.
    pub resend_after: Span,
    /// How often that is done before the connection is lost.
    pub resends: u32,
}

impl NicAttributes {
    /// Octets of a packet before its data, the Ethernet header not counted.
    pub const FRAGMENT_HEADER: u64 = super::packet::FRAGMENT_HEADER as u64;

    /// A NIC that does all of the specification.
    pub const fn adapter(local: HostAddress) -> Self {
        Self {
            name: "adapter",
            local,
            max_discriminator: 64,
            max_register_bytes: 1 << 40,
            max_register_regions: 1 << 16,
            max_register_block: 1 << 36,
            max_vi: 1 << 12,
            max_descriptors: 1024,
            max_segments: 252,
            max_cq: 1024,
            max_cq_entries: 1 << 16,
            max_transfer: 1 << 20,
            native_mtu: 1 << 11,
            max_ptag: 1 << 12,
            reliability: ReliabilitySupport::ALL,
            rdma_write: ReliabilitySupport::ALL,
            rdma_read: ReliabilitySupport::NONE
                .with(Reliability::ReliableDelivery)
                .with(Reliability::ReliableReception),
            emulation: Emulation::Adapter,
            window: 64,
            resend_after: Span::from_ms(10),
            resends: 7,
        }
    }

    /// M-VIA on an Ethernet of MTU 1500: messages of at most 32 KiB, no RDMA read (Ong & Farrell 2000);
    /// unreliable and reliable delivery.
    ///
    /// *Choice*: what its versions had of reliable delivery is not known; it is here at the first two
    /// levels. A packet carries 1500 octets less the header of [`super::Packet`].
    pub const fn m_via(local: HostAddress) -> Self {
        let levels = ReliabilitySupport::NONE
            .with(Reliability::UnreliableDelivery)
            .with(Reliability::ReliableDelivery);
        Self {
            name: "m-via",
            max_transfer: 32 << 10,
            native_mtu: 1500 - super::packet::FRAGMENT_HEADER as u32,
            max_segments: 252,
            reliability: levels,
            rdma_write: levels,
            rdma_read: ReliabilitySupport::NONE,
            emulation: Emulation::Kernel,
            ..Self::adapter(local)
        }
    }
}

/// `VIP_VI_ATTRIBUTES`, and the completion queues given at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViAttributes {
    /// How far messages are answered for.
    pub reliability: Reliability,
    /// The longest message.
    pub max_transfer: Bytes,
    /// Quality of service: 0 is best effort, all that there is here.
    pub qos: u32,
    /// The memory that it may use.
    pub ptag: Ptag,
    /// Whether the remote end may write into memory.
    pub enable_rdma_write: bool,
    /// Whether the remote end may read memory.
    pub enable_rdma_read: bool,
    /// Where completed sends are told of.
    pub send_cq: Option<CqHandle>,
    /// Where completed receives are told of.
    pub receive_cq: Option<CqHandle>,
}

impl ViAttributes {
    /// Whether a NIC with this memory and these completion queues supports them.
    ///
    /// # Errors
    /// The code of the first that it does not support; [`ViplError::InvalidParameter`] for a completion queue
    /// that is none.
    pub fn check(
        &self,
        nic: &NicAttributes,
        memory: &Memory,
        has_cq: impl Fn(CqHandle) -> bool,
    ) -> Result<(), ViplError> {
        if !nic.reliability.has(self.reliability) {
            return Err(ViplError::InvalidReliabilityLevel);
        }
        if self.max_transfer.get() == 0 || self.max_transfer.get() > nic.max_transfer.into() {
            return Err(ViplError::InvalidMtu);
        }
        if self.qos != 0 {
            return Err(ViplError::InvalidQos);
        }
        if !memory.has_tag(self.ptag) {
            return Err(ViplError::InvalidPtag);
        }
        if self.enable_rdma_read && !nic.rdma_read.has(self.reliability) {
            return Err(ViplError::InvalidRdmaread);
        }
        let mut cqs = [self.send_cq, self.receive_cq].into_iter().flatten();
        if cqs.all(has_cq) { Ok(()) } else { Err(ViplError::InvalidParameter) }
    }

    /// What the remote end of a connection learns of them.
    pub const fn remote_view(&self) -> RemoteAttributes {
        RemoteAttributes { reliability: self.reliability, max_transfer: self.max_transfer, qos: self.qos }
    }

    /// The codes of the connection calls: what must be the same at both ends.
    ///
    /// # Errors
    /// The first that is not: reliability level, maximum transfer size, quality of service.
    pub fn agrees(&self, remote: &RemoteAttributes) -> Result<(), ViplError> {
        if self.reliability != remote.reliability {
            Err(ViplError::InvalidReliabilityLevel)
        } else if self.max_transfer != remote.max_transfer {
            Err(ViplError::InvalidMtu)
        } else if self.qos != remote.qos {
            Err(ViplError::InvalidQos)
        } else {
            Ok(())
        }
    }
}

/// What one end of a connection learns of the other's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAttributes {
    /// Its reliability level.
    pub reliability: Reliability,
    /// Its maximum transfer size.
    pub max_transfer: Bytes,
    /// Its quality of service.
    pub qos: u32,
}

/// `VIP_MEM_ATTRIBUTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAttributes {
    /// The VIs that may use it.
    pub ptag: Ptag,
    /// Whether remote ends may write into it.
    pub enable_rdma_write: bool,
    /// Whether remote ends may read it.
    pub enable_rdma_read: bool,
}
