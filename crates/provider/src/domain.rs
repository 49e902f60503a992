//! Fabrics, domains and address vectors.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::size_t;
use wiretwin_host::direct::Address;

use crate::abi::*;
use crate::error;
use crate::inert::{self, Plain, no_bind, no_control, nothing};

static FABRIC_FID: FiOps = Plain::<FidFabric>::OPS;
static FABRIC: OpsFabric = OpsFabric {
    size: size_of::<OpsFabric>(),
    domain,
    passive_ep: nothing,
    eq_open: inert::eq_open,
    wait_open: nothing,
    trywait: nothing,
};

pub(crate) unsafe extern "C" fn fabric(
    attr: *mut FabricAttr,
    made: *mut *mut FidFabric,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { fclass: FI_CLASS_FABRIC, context, ops: &FABRIC_FID };
    // SAFETY: the attributes are those of an info, and the result has the caller's place.
    unsafe {
        let api_version = (*attr).api_version;
        *made = Box::into_raw(Box::new(FidFabric { fid, ops: &FABRIC, api_version }));
    }
    0
}

/// A domain: what is shared by the objects that are used together.
#[repr(C)]
pub(crate) struct Domain {
    fid: FidDomain,
    /// Held during each call, where the caller may make several at once.
    pub lock: Lock,
}

/// A lock that is only there where it is needed.
pub(crate) struct Lock {
    is_needed: bool,
    is_held: AtomicBool,
}

/// Frees the lock when it is dropped.
pub(crate) struct Held<'a>(&'a Lock);

impl Lock {
    #[inline]
    pub(crate) fn take(&self) -> Held<'_> {
        if self.is_needed {
            while self.is_held.swap(true, Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        Held(self)
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_needed {
            self.0.is_held.store(false, Ordering::Release);
        }
    }
}

static DOMAIN_FID: FiOps = Plain::<Domain>::OPS;
static DOMAIN: OpsDomain = OpsDomain {
    size: size_of::<OpsDomain>(),
    av_open,
    cq_open: crate::cq::cq_open,
    endpoint: crate::endpoint::endpoint,
    scalable_ep: nothing,
    cntr_open: inert::cntr_open,
    poll_open: nothing,
    stx_ctx: nothing,
    srx_ctx: nothing,
    query_atomic: nothing,
    query_collective: nothing,
};

unsafe extern "C" fn domain(
    _fabric: *mut FidFabric,
    info: *mut FiInfo,
    made: *mut *mut FidDomain,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { fclass: FI_CLASS_DOMAIN, context, ops: &DOMAIN_FID };
    // SAFETY: the info is one of ours or a copy of it, and the result has the caller's place.
    unsafe {
        let is_needed = (*info).domain_attr.as_ref().is_some_and(|attr| attr.threading == FI_THREAD_SAFE);
        let lock = Lock { is_needed, is_held: AtomicBool::new(false) };
        let domain = Domain { fid: FidDomain { fid, ops: &DOMAIN, mr: &inert::REGIONS }, lock };
        *made = Box::into_raw(Box::new(domain)).cast();
    }
    0
}

/// An address vector: addresses by the order in which they were inserted.
#[repr(C)]
pub(crate) struct Av {
    fid: FidAv,
    pub domain: *mut Domain,
    pub addresses: Vec<Address>,
}

static AV_FID: FiOps = FiOps { bind: no_bind, control: no_control, ..Plain::<Av>::OPS };
static AV: OpsAv = OpsAv {
    size: size_of::<OpsAv>(),
    insert,
    insertsvc: nothing,
    insertsym: nothing,
    remove,
    lookup,
    straddr,
};

unsafe extern "C" fn av_open(
    domain: *mut FidDomain,
    attr: *mut AvAttr,
    made: *mut *mut FidAv,
    context: *mut c_void,
) -> c_int {
    let fid = FidAv { fid: Fid { fclass: FI_CLASS_AV, context, ops: &AV_FID }, ops: &AV };
    // SAFETY: the attributes and the place for the result are the caller's to be written to.
    unsafe {
        if let Some(attr) = attr.as_mut() {
            attr.kind = FI_AV_TABLE;
        }
        *made = Box::into_raw(Box::new(Av { fid, domain: domain.cast(), addresses: Vec::new() })).cast();
    }
    0
}

unsafe extern "C" fn insert(
    av: *mut FidAv,
    addresses: *const c_void,
    count: size_t,
    numbers: *mut FiAddr,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: the vector is one of ours; the caller has so many addresses, and places for as many numbers
    // or none.
    unsafe {
        let av = &mut *av.cast::<Av>();
        let _held = (*av.domain).lock.take();
        let bytes = std::slice::from_raw_parts(addresses.cast::<u8>(), count * Address::BYTES);
        let mut inserted = 0;
        for (at, bytes) in bytes.chunks_exact(Address::BYTES).enumerate() {
            let number = match Address::from_bytes(bytes) {
                Ok(address) => {
                    av.addresses.push(address);
                    inserted += 1;
                    av.addresses.len() as FiAddr - 1
                }
                Err(_) => FI_ADDR_UNSPEC,
            };
            if !numbers.is_null() {
                *numbers.add(at) = number;
            }
        }
        inserted
    }
}

/// An address keeps its number until the vector is closed.
unsafe extern "C" fn remove(_av: *mut FidAv, _numbers: *mut FiAddr, _count: size_t, _flags: u64) -> c_int {
    0
}

unsafe extern "C" fn lookup(av: *mut FidAv, number: FiAddr, to: *mut c_void, length: *mut size_t) -> c_int {
    // SAFETY: the vector is one of ours, and `to` has room for `length` bytes.
    unsafe {
        let av = &*av.cast::<Av>();
        let _held = (*av.domain).lock.take();
        let Some(address) = av.addresses.get(number as usize) else { return error(EINVAL) };
        give(&address.to_bytes(), to, length);
    }
    0
}

/// Writes as much of an address as there is room for, and its whole length: whether it was enough.
///
/// # Safety
/// `to` has room for `length` bytes.
pub(crate) unsafe fn give(bytes: &[u8], to: *mut c_void, length: *mut size_t) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let room = *length;
        *length = bytes.len();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), room.min(bytes.len()));
        room >= bytes.len()
    }
}

unsafe extern "C" fn straddr(
    _av: *mut FidAv,
    address: *const c_void,
    to: *mut c_char,
    length: *mut size_t,
) -> *const c_char {
    // SAFETY: the caller has an address, and `to` has room for `length` bytes, or for none.
    unsafe {
        let bytes = std::slice::from_raw_parts(address.cast::<u8>(), Address::BYTES);
        let mut text = Address::from_bytes(bytes).map_or_else(
            |error| error.to_string(),
            |address| format!("wiretwin-direct://{}/{:x}", address.datagrams, address.host),
        );
        text.push('\0');
        give(text.as_bytes(), to.cast(), length);
    }
    to
}
