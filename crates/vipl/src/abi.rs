//! The types of `vipl.h`, in the order of that header.

use std::ffi::{c_char, c_int, c_ulong, c_void};

use wiretwin_msg::via::ViplError;

/// A handle: the number of its NIC in the upper half, that of the object in the lower.
pub type Handle = *mut c_void;
/// `VIP_RETURN`.
pub type Return = c_int;

/// `VIP_SUCCESS`.
pub const SUCCESS: Return = 0;

/// The value that a call returns.
pub(crate) fn code<T>(result: Result<T, ViplError>) -> Return {
    result.map_or_else(|error| error.code().into(), |_| SUCCESS)
}

/// `VIP_NET_ADDRESS`: the bytes of host and discriminator begin where `host_address` does.
#[derive(Debug)]
#[repr(C)]
pub struct NetAddress {
    /// Bytes of the host part.
    pub host_address_len: u16,
    /// Bytes of the discriminator.
    pub discriminator_len: u16,
    /// The first byte of both.
    pub host_address: [u8; 1],
}

/// `VIP_NIC_ATTRIBUTES`.
#[allow(missing_docs)] // the names of the header
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NicAttributes {
    pub name: [u8; 64],
    pub hardware_version: c_ulong,
    pub provider_version: c_ulong,
    pub nic_address_len: u16,
    pub local_nic_address: *const u8,
    pub thread_safe: c_int,
    pub max_discriminator_len: u16,
    pub max_register_bytes: c_ulong,
    pub max_register_regions: c_ulong,
    pub max_register_block_bytes: c_ulong,
    pub max_vi: c_ulong,
    pub max_descriptors_per_queue: c_ulong,
    pub max_segments_per_desc: c_ulong,
    pub max_cq: c_ulong,
    pub max_cq_entries: c_ulong,
    pub max_transfer_size: c_ulong,
    pub native_mtu: c_ulong,
    pub max_ptags: c_ulong,
    pub reliability_level_support: u16,
    pub rdma_read_support: u16,
}

/// `VIP_VI_ATTRIBUTES`.
#[allow(missing_docs)] // the names of the header
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ViAttributes {
    pub reliability_level: u16,
    pub max_transfer_size: c_ulong,
    pub qos: Handle,
    pub ptag: Handle,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

/// `VIP_MEM_ATTRIBUTES`.
#[allow(missing_docs)] // the names of the header
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemAttributes {
    pub ptag: Handle,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

/// `VIP_ERROR_DESCRIPTOR`.
#[allow(missing_docs)] // the names of the header
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ErrorDescriptor {
    pub nic: Handle,
    pub vi: Handle,
    pub cq: Handle,
    pub descriptor: *mut c_void,
    pub op_code: c_ulong,
    pub resource_code: c_int,
    pub error_code: c_int,
}

/// `VIP_AUTODISCOVERY_LIST`.
#[allow(missing_docs)] // the names of the header
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AutodiscoveryList {
    pub number_of_hops: c_ulong,
    pub addresses: *const *const NetAddress,
    pub count: c_ulong,
}

/// `VIP_VI_HANDLER`: context, NIC, VI, descriptor.
pub type ViHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, *mut c_void);
/// `VIP_CQ_HANDLER`: context, NIC, VI, whether the receive queue.
pub type CqHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, c_int);
/// `VIP_ERROR_HANDLER`: context, error.
pub type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);

/// A string of the caller's.
pub type Text = *const c_char;
