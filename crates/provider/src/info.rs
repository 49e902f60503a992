//! `fi_getinfo`: what the provider offers, and whether that is what is asked for.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

use crate::abi::*;
use crate::error;

/// The name by which users choose the provider.
pub(crate) const PROVIDER: &CStr = c"wiretwin";
const FABRIC: &CStr = c"wiretwin-direct";
const DOMAIN: &CStr = c"direct";
const SENDS: u64 = FI_MSG | FI_TAGGED | FI_SEND;
const RECEIVES: u64 = FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
const CAPS: u64 = SENDS | RECEIVES | FI_LOCAL_COMM | FI_REMOTE_COMM;
/// The longest message that may be injected: copied before the call returns.
const INJECT: usize = 1024;
/// Room behind each structure for what a later libfabric has added to it.
const SPARE: usize = 256;

/// Memory that libfabric frees, zero.
///
/// # Safety
/// `T` is a plain structure of C.
unsafe fn made<T>() -> *mut T {
    // SAFETY: no more is asked of `calloc` than that.
    let memory = unsafe { libc::calloc(1, size_of::<T>() + SPARE) };
    assert!(!memory.is_null(), "no memory for a structure of libfabric");
    memory.cast()
}

/// Whether a name that is asked for, if any, is this one.
///
/// # Safety
/// `asked` is null or a string of C.
unsafe fn is_or_none(asked: *const c_char, name: &CStr) -> bool {
    // SAFETY: the caller's promise.
    asked.is_null() || unsafe { CStr::from_ptr(asked) } == name
}

/// # Safety
/// `hints` is null or as libfabric hands them on.
unsafe fn suits(hints: *const FiInfo) -> bool {
    // SAFETY: as above, for each of the structures that it may point to.
    unsafe {
        let Some(hints) = hints.as_ref() else { return true };
        let kind = hints.ep_attr.as_ref().map_or(FI_EP_UNSPEC, |ep| ep.kind);
        let most = hints.ep_attr.as_ref().map_or(0, |ep| ep.max_msg_size);
        let fabric = hints.fabric_attr.as_ref().map_or(null_mut(), |fabric| fabric.name);
        let domain = hints.domain_attr.as_ref().map_or(null_mut(), |domain| domain.name);
        let inject = hints.tx_attr.as_ref().map_or(0, |tx| tx.inject_size);
        matches!(kind, FI_EP_UNSPEC | FI_EP_RDM)
            && hints.caps & !CAPS == 0
            && most <= MOST
            && inject <= INJECT
            && is_or_none(fabric, FABRIC)
            && is_or_none(domain, DOMAIN)
    }
}

/// The longest message.
const MOST: usize = 1 << 40;

pub(crate) unsafe extern "C" fn getinfo(
    _version: u32,
    _node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    hints: *const FiInfo,
    found: *mut *mut FiInfo,
) -> c_int {
    // SAFETY: hints are null or whole, and `found` is the caller's to be written to. All that is written
    // to below has just been made.
    unsafe {
        if !suits(hints) {
            return error(ENODATA);
        }
        let asked = hints.as_ref().and_then(|hints| hints.domain_attr.as_ref());
        let threading = if asked.is_some_and(|asked| asked.threading == FI_THREAD_SAFE) {
            FI_THREAD_SAFE
        } else {
            FI_THREAD_DOMAIN
        };
        let info = made::<FiInfo>();
        let (tx, rx) = (made::<TxAttr>(), made::<RxAttr>());
        let (ep, domain, fabric) = (made::<EpAttr>(), made::<DomainAttr>(), made::<FabricAttr>());
        let flags = |of: Option<u64>| of.unwrap_or(0);
        let tx_hints = hints.as_ref().and_then(|hints| hints.tx_attr.as_ref());
        let rx_hints = hints.as_ref().and_then(|hints| hints.rx_attr.as_ref());
        (*tx).caps = SENDS;
        (*tx).op_flags = flags(tx_hints.map(|tx| tx.op_flags));
        (*tx).msg_order = FI_ORDER_SAS;
        (*tx).inject_size = INJECT;
        (*tx).size = 4096;
        (*tx).iov_limit = 1;
        (*rx).caps = RECEIVES;
        (*rx).op_flags = flags(rx_hints.map(|rx| rx.op_flags));
        (*rx).msg_order = FI_ORDER_SAS;
        (*rx).size = 4096;
        (*rx).iov_limit = 1;
        (*ep).kind = FI_EP_RDM;
        (*ep).protocol_version = 1;
        (*ep).max_msg_size = MOST;
        (*ep).mem_tag_format = u64::MAX;
        ((*ep).tx_ctx_cnt, (*ep).rx_ctx_cnt) = (1, 1);
        (*domain).name = libc::strdup(DOMAIN.as_ptr());
        (*domain).threading = threading;
        ((*domain).control_progress, (*domain).data_progress) = (FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL);
        (*domain).resource_mgmt = FI_RM_ENABLED;
        (*domain).av_type = FI_AV_TABLE;
        (*domain).mr_key_size = 8;
        (*domain).cq_data_size = 8;
        ((*domain).cq_cnt, (*domain).ep_cnt, (*domain).cntr_cnt) = (64, 64, 64);
        ((*domain).tx_ctx_cnt, (*domain).rx_ctx_cnt) = (64, 64);
        ((*domain).max_ep_tx_ctx, (*domain).max_ep_rx_ctx) = (1, 1);
        (*domain).caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
        (*fabric).name = libc::strdup(FABRIC.as_ptr());
        (*fabric).prov_version = crate::VERSION;
        (*info).caps = CAPS;
        ((*info).tx_attr, (*info).rx_attr) = (tx, rx);
        ((*info).ep_attr, (*info).domain_attr, (*info).fabric_attr) = (ep, domain, fabric);
        *found = info;
    }
    0
}
