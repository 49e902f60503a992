//! What libfabric's binary interface is made of, as far as the provider speaks it.
//!
//! libfabric 1.17, `rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`, `fi_tagged.h`, `fi_eq.h`, `fi_cm.h` and
//! `providers/fi_prov.h`; later versions only add at the end of structures. Sizes and places are compared
//! with those of a C compiler by a test.

use std::ffi::{c_char, c_int, c_void};

use libc::{iovec, size_t, ssize_t};

/// The address of an endpoint, as an address vector numbers it.
pub(crate) type FiAddr = u64;
/// A function that this provider has not; libfabric's callers look before they call, or take -FI_ENOSYS.
pub(crate) type Nothing = unsafe extern "C" fn() -> c_int;
/// The same where callers expect a count.
pub(crate) type NothingSent = unsafe extern "C" fn() -> ssize_t;

pub(crate) const FI_MSG: u64 = 1 << 1;
pub(crate) const FI_TAGGED: u64 = 1 << 3;
pub(crate) const FI_RECV: u64 = 1 << 10;
pub(crate) const FI_SEND: u64 = 1 << 11;
pub(crate) const FI_MULTI_RECV: u64 = 1 << 16;
pub(crate) const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub(crate) const FI_PEEK: u64 = 1 << 19;
pub(crate) const FI_COMPLETION: u64 = 1 << 24;
pub(crate) const FI_INJECT: u64 = 1 << 25;
pub(crate) const FI_LOCAL_COMM: u64 = 1 << 51;
pub(crate) const FI_REMOTE_COMM: u64 = 1 << 52;
pub(crate) const FI_SOURCE: u64 = 1 << 57;
pub(crate) const FI_DIRECTED_RECV: u64 = 1 << 59;
pub(crate) const FI_CLAIM: u64 = 1 << 59;
pub(crate) const FI_DISCARD: u64 = 1 << 58;
pub(crate) const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
pub(crate) const FI_ORDER_SAS: u64 = 1 << 8;
pub(crate) const FI_ADDR_UNSPEC: FiAddr = u64::MAX;

pub(crate) const FI_OPT_MIN_MULTI_RECV: c_int = 0;
pub(crate) const FI_EP_UNSPEC: c_int = 0;
pub(crate) const FI_EP_RDM: c_int = 3;
pub(crate) const FI_AV_TABLE: c_int = 2;
pub(crate) const FI_PROGRESS_MANUAL: c_int = 2;
pub(crate) const FI_THREAD_SAFE: c_int = 1;
pub(crate) const FI_THREAD_DOMAIN: c_int = 3;
pub(crate) const FI_RM_ENABLED: c_int = 2;
pub(crate) const FI_ENABLE: c_int = 6;

pub(crate) const FI_CLASS_FABRIC: size_t = 1;
pub(crate) const FI_CLASS_DOMAIN: size_t = 2;
pub(crate) const FI_CLASS_EP: size_t = 3;
pub(crate) const FI_CLASS_AV: size_t = 11;
pub(crate) const FI_CLASS_MR: size_t = 12;
pub(crate) const FI_CLASS_EQ: size_t = 13;
pub(crate) const FI_CLASS_CQ: size_t = 14;
pub(crate) const FI_CLASS_CNTR: size_t = 15;

pub(crate) const FI_CQ_FORMAT_CONTEXT: c_int = 1;
pub(crate) const FI_CQ_FORMAT_MSG: c_int = 2;
pub(crate) const FI_CQ_FORMAT_DATA: c_int = 3;
pub(crate) const FI_WAIT_UNSPEC: c_int = 1;

pub(crate) const ENOENT: c_int = libc::ENOENT;
pub(crate) const EAGAIN: c_int = libc::EAGAIN;
pub(crate) const EINVAL: c_int = libc::EINVAL;
pub(crate) const ENOSYS: c_int = libc::ENOSYS;
pub(crate) const ENOMSG: c_int = libc::ENOMSG;
pub(crate) const ENODATA: c_int = libc::ENODATA;
pub(crate) const ENOPROTOOPT: c_int = libc::ENOPROTOOPT;
pub(crate) const ECONNRESET: c_int = libc::ECONNRESET;
pub(crate) const ECANCELED: c_int = libc::ECANCELED;
pub(crate) const EIO: c_int = libc::EIO;
pub(crate) const FI_ETOOSMALL: c_int = 257;
pub(crate) const FI_EAVAIL: c_int = 259;
pub(crate) const FI_ETRUNC: c_int = 265;

/// `struct fid`.
#[repr(C)]
pub(crate) struct Fid {
    pub fclass: size_t,
    pub context: *mut c_void,
    pub ops: *const FiOps,
}

/// `struct fi_ops`.
#[repr(C)]
pub(crate) struct FiOps {
    pub size: size_t,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub ops_open: Nothing,
}

#[repr(C)]
pub(crate) struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
    pub rma_iov_limit: size_t,
    pub tclass: u32,
}

#[repr(C)]
pub(crate) struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
}

#[repr(C)]
pub(crate) struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: size_t,
    pub msg_prefix_size: size_t,
    pub max_order_raw_size: size_t,
    pub max_order_war_size: size_t,
    pub max_order_waw_size: size_t,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub auth_key_size: size_t,
    pub auth_key: *mut u8,
}

#[repr(C)]
pub(crate) struct DomainAttr {
    pub domain: *mut FidDomain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: size_t,
    pub cq_data_size: size_t,
    pub cq_cnt: size_t,
    pub ep_cnt: size_t,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub max_ep_tx_ctx: size_t,
    pub max_ep_rx_ctx: size_t,
    pub max_ep_stx_ctx: size_t,
    pub max_ep_srx_ctx: size_t,
    pub cntr_cnt: size_t,
    pub mr_iov_limit: size_t,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: size_t,
    pub max_err_data: size_t,
    pub mr_cnt: size_t,
    pub tclass: u32,
}

#[repr(C)]
pub(crate) struct FabricAttr {
    pub fabric: *mut FidFabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
pub(crate) struct FiInfo {
    pub next: *mut FiInfo,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: size_t,
    pub dest_addrlen: size_t,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
    pub nic: *mut c_void,
}

#[repr(C)]
pub(crate) struct FiProvider {
    pub version: u32,
    pub fi_version: u32,
    pub context: [*mut c_void; 4],
    pub name: *const c_char,
    pub getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const FiInfo,
        *mut *mut FiInfo,
    ) -> c_int,
    pub fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    pub cleanup: unsafe extern "C" fn(),
}

#[repr(C)]
pub(crate) struct FidFabric {
    pub fid: Fid,
    pub ops: *const OpsFabric,
    pub api_version: u32,
}

#[repr(C)]
pub(crate) struct OpsFabric {
    pub size: size_t,
    pub domain: unsafe extern "C" fn(*mut FidFabric, *mut FiInfo, *mut *mut FidDomain, *mut c_void) -> c_int,
    pub passive_ep: Nothing,
    pub eq_open: unsafe extern "C" fn(*mut FidFabric, *mut c_void, *mut *mut FidEq, *mut c_void) -> c_int,
    pub wait_open: Nothing,
    pub trywait: Nothing,
}

#[repr(C)]
pub(crate) struct FidDomain {
    pub fid: Fid,
    pub ops: *const OpsDomain,
    pub mr: *const OpsMr,
}

#[repr(C)]
pub(crate) struct OpsDomain {
    pub size: size_t,
    pub av_open: unsafe extern "C" fn(*mut FidDomain, *mut AvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut FidDomain, *mut CqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int,
    pub scalable_ep: Nothing,
    pub cntr_open: unsafe extern "C" fn(*mut FidDomain, *mut c_void, *mut *mut FidCntr, *mut c_void) -> c_int,
    pub poll_open: Nothing,
    pub stx_ctx: Nothing,
    pub srx_ctx: Nothing,
    pub query_atomic: Nothing,
    pub query_collective: Nothing,
}

#[repr(C)]
pub(crate) struct OpsMr {
    pub size: size_t,
    pub reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        size_t,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
    pub regv: Nothing,
    pub regattr: Nothing,
}

#[repr(C)]
pub(crate) struct FidMr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub(crate) struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: size_t,
    pub ep_per_node: size_t,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub(crate) struct FidAv {
    pub fid: Fid,
    pub ops: *const OpsAv,
}

#[repr(C)]
pub(crate) struct OpsAv {
    pub size: size_t,
    pub insert:
        unsafe extern "C" fn(*mut FidAv, *const c_void, size_t, *mut FiAddr, u64, *mut c_void) -> c_int,
    pub insertsvc: Nothing,
    pub insertsym: Nothing,
    pub remove: unsafe extern "C" fn(*mut FidAv, *mut FiAddr, size_t, u64) -> c_int,
    pub lookup: unsafe extern "C" fn(*mut FidAv, FiAddr, *mut c_void, *mut size_t) -> c_int,
    pub straddr: unsafe extern "C" fn(*mut FidAv, *const c_void, *mut c_char, *mut size_t) -> *const c_char,
}

#[repr(C)]
pub(crate) struct CqAttr {
    pub size: size_t,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
pub(crate) struct FidCq {
    pub fid: Fid,
    pub ops: *const OpsCq,
}

#[repr(C)]
pub(crate) struct OpsCq {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut FidCq, *mut c_void, size_t) -> ssize_t,
    pub readfrom: unsafe extern "C" fn(*mut FidCq, *mut c_void, size_t, *mut FiAddr) -> ssize_t,
    pub readerr: unsafe extern "C" fn(*mut FidCq, *mut CqErrEntry, u64) -> ssize_t,
    pub sread: unsafe extern "C" fn(*mut FidCq, *mut c_void, size_t, *const c_void, c_int) -> ssize_t,
    pub sreadfrom:
        unsafe extern "C" fn(*mut FidCq, *mut c_void, size_t, *mut FiAddr, *const c_void, c_int) -> ssize_t,
    pub signal: Nothing,
    pub strerror:
        unsafe extern "C" fn(*mut FidCq, c_int, *const c_void, *mut c_char, size_t) -> *const c_char,
}

/// `struct fi_cq_tagged_entry`, of which the shorter formats are the beginning.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CqEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CqErrEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: size_t,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: size_t,
}

#[repr(C)]
pub(crate) struct FidCntr {
    pub fid: Fid,
    pub ops: *const OpsCntr,
}

#[repr(C)]
pub(crate) struct OpsCntr {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut FidCntr) -> u64,
    pub readerr: unsafe extern "C" fn(*mut FidCntr) -> u64,
    pub add: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub set: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub wait: Nothing,
    pub adderr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    pub seterr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
}

#[repr(C)]
pub(crate) struct FidEq {
    pub fid: Fid,
    pub ops: *const OpsEq,
}

#[repr(C)]
pub(crate) struct OpsEq {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut FidEq, *mut u32, *mut c_void, size_t, u64) -> ssize_t,
    pub readerr: unsafe extern "C" fn(*mut FidEq, *mut c_void, u64) -> ssize_t,
    pub write: NothingSent,
    pub sread: NothingSent,
    pub strerror: Nothing,
}

#[repr(C)]
pub(crate) struct FidEp {
    pub fid: Fid,
    pub ops: *const OpsEp,
    pub cm: *const OpsCm,
    pub msg: *const OpsMsg,
    pub rma: *const OpsRma,
    pub tagged: *const OpsTagged,
    pub atomic: *const c_void,
    pub collective: *const c_void,
}

#[repr(C)]
pub(crate) struct OpsEp {
    pub size: size_t,
    pub cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> ssize_t,
    pub getopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut size_t) -> c_int,
    pub setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, size_t) -> c_int,
    pub tx_ctx: Nothing,
    pub rx_ctx: Nothing,
    pub rx_size_left: NothingSent,
    pub tx_size_left: NothingSent,
}

#[repr(C)]
pub(crate) struct OpsCm {
    pub size: size_t,
    pub setname: Nothing,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut size_t) -> c_int,
    pub getpeer: Nothing,
    pub connect: Nothing,
    pub listen: Nothing,
    pub accept: Nothing,
    pub reject: Nothing,
    pub shutdown: Nothing,
    pub join: Nothing,
}

#[repr(C)]
pub(crate) struct Msg {
    pub iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: FiAddr,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub(crate) struct MsgTagged {
    pub iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: FiAddr,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}

type Ctx = *mut c_void;

#[repr(C)]
pub(crate) struct OpsMsg {
    pub size: size_t,
    pub recv: unsafe extern "C" fn(*mut FidEp, *mut c_void, size_t, Ctx, FiAddr, Ctx) -> ssize_t,
    pub recvv: unsafe extern "C" fn(*mut FidEp, *const iovec, *mut Ctx, size_t, FiAddr, Ctx) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const Msg, u64) -> ssize_t,
    pub send: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, Ctx, FiAddr, Ctx) -> ssize_t,
    pub sendv: unsafe extern "C" fn(*mut FidEp, *const iovec, *mut Ctx, size_t, FiAddr, Ctx) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const Msg, u64) -> ssize_t,
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, FiAddr) -> ssize_t,
    pub senddata: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, Ctx, u64, FiAddr, Ctx) -> ssize_t,
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, u64, FiAddr) -> ssize_t,
}

#[repr(C)]
pub(crate) struct OpsTagged {
    pub size: size_t,
    pub recv: unsafe extern "C" fn(*mut FidEp, *mut c_void, size_t, Ctx, FiAddr, u64, u64, Ctx) -> ssize_t,
    pub recvv:
        unsafe extern "C" fn(*mut FidEp, *const iovec, *mut Ctx, size_t, FiAddr, u64, u64, Ctx) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> ssize_t,
    pub send: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, Ctx, FiAddr, u64, Ctx) -> ssize_t,
    pub sendv: unsafe extern "C" fn(*mut FidEp, *const iovec, *mut Ctx, size_t, FiAddr, u64, Ctx) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const MsgTagged, u64) -> ssize_t,
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, FiAddr, u64) -> ssize_t,
    pub senddata:
        unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, Ctx, u64, FiAddr, u64, Ctx) -> ssize_t,
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, size_t, u64, FiAddr, u64) -> ssize_t,
}

/// Of memory elsewhere, none of which can be had.
#[repr(C)]
pub(crate) struct OpsRma {
    pub size: size_t,
    pub each: [NothingSent; 9],
}

#[cfg(not(test))]
unsafe extern "C" {
    /// The version of the libfabric that has loaded the provider.
    pub(crate) fn fi_version() -> u32;
}

/// A test is loaded by no libfabric.
#[cfg(test)]
pub(crate) unsafe fn fi_version() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// A structure of C, how long it is here, and where its fields are.
    struct Layout {
        name: &'static str,
        size: usize,
        fields: Vec<(&'static str, usize)>,
    }

    macro_rules! layout {
        ($rust:ident, $c:literal, $($field:ident = $name:literal),* $(,)?) => {
            Layout { name: $c, size: size_of::<$rust>(), fields: vec![$(($name, offset_of!($rust, $field))),*] }
        };
    }

    /// Every structure that is read or written in place. Tables of functions may be shorter here.
    fn layouts() -> Vec<Layout> {
        vec![
            layout!(Fid, "struct fid", context = "context", ops = "ops"),
            layout!(
                FiInfo,
                "struct fi_info",
                caps = "caps",
                addr_format = "addr_format",
                src_addr = "src_addr",
                handle = "handle",
                tx_attr = "tx_attr",
                ep_attr = "ep_attr",
                domain_attr = "domain_attr",
                fabric_attr = "fabric_attr",
                nic = "nic"
            ),
            layout!(
                TxAttr,
                "struct fi_tx_attr",
                op_flags = "op_flags",
                msg_order = "msg_order",
                inject_size = "inject_size",
                iov_limit = "iov_limit",
                tclass = "tclass"
            ),
            layout!(
                RxAttr,
                "struct fi_rx_attr",
                op_flags = "op_flags",
                size = "size",
                iov_limit = "iov_limit"
            ),
            layout!(
                EpAttr,
                "struct fi_ep_attr",
                kind = "type",
                max_msg_size = "max_msg_size",
                mem_tag_format = "mem_tag_format",
                rx_ctx_cnt = "rx_ctx_cnt",
                auth_key = "auth_key"
            ),
            layout!(
                DomainAttr,
                "struct fi_domain_attr",
                name = "name",
                threading = "threading",
                data_progress = "data_progress",
                resource_mgmt = "resource_mgmt",
                av_type = "av_type",
                mr_key_size = "mr_key_size",
                cq_data_size = "cq_data_size",
                max_ep_rx_ctx = "max_ep_rx_ctx",
                caps = "caps",
                mr_cnt = "mr_cnt"
            ),
            layout!(FabricAttr, "struct fi_fabric_attr", name = "name", api_version = "api_version"),
            layout!(
                FiProvider,
                "struct fi_provider",
                fi_version = "fi_version",
                name = "name",
                getinfo = "getinfo",
                fabric = "fabric",
                cleanup = "cleanup"
            ),
            layout!(FidFabric, "struct fid_fabric", ops = "ops", api_version = "api_version"),
            layout!(FidDomain, "struct fid_domain", ops = "ops", mr = "mr"),
            layout!(OpsDomain, "struct fi_ops_domain", endpoint = "endpoint", cntr_open = "cntr_open"),
            layout!(OpsMr, "struct fi_ops_mr", reg = "reg"),
            layout!(FidMr, "struct fid_mr", mem_desc = "mem_desc", key = "key"),
            layout!(AvAttr, "struct fi_av_attr", kind = "type", flags = "flags"),
            layout!(OpsAv, "struct fi_ops_av", insert = "insert", remove = "remove", straddr = "straddr"),
            layout!(CqAttr, "struct fi_cq_attr", format = "format", wait_obj = "wait_obj"),
            layout!(OpsCq, "struct fi_ops_cq", readerr = "readerr", sread = "sread", strerror = "strerror"),
            layout!(CqEntry, "struct fi_cq_tagged_entry", len = "len", data = "data", tag = "tag"),
            layout!(CqErrEntry, "struct fi_cq_err_entry", olen = "olen", err = "err", err_data = "err_data"),
            layout!(OpsCntr, "struct fi_ops_cntr", read = "read", wait = "wait", seterr = "seterr"),
            layout!(OpsEq, "struct fi_ops_eq", read = "read", strerror = "strerror"),
            layout!(FidEp, "struct fid_ep", cm = "cm", msg = "msg", tagged = "tagged"),
            layout!(OpsEp, "struct fi_ops_ep", cancel = "cancel", setopt = "setopt"),
            layout!(OpsCm, "struct fi_ops_cm", getname = "getname", join = "join"),
            layout!(Msg, "struct fi_msg", addr = "addr", data = "data"),
            layout!(MsgTagged, "struct fi_msg_tagged", tag = "tag", ignore = "ignore", data = "data"),
            layout!(
                OpsMsg,
                "struct fi_ops_msg",
                recvmsg = "recvmsg",
                inject = "inject",
                injectdata = "injectdata"
            ),
            layout!(OpsRma, "struct fi_ops_rma", each = "read"),
            layout!(
                OpsTagged,
                "struct fi_ops_tagged",
                recvmsg = "recvmsg",
                sendmsg = "sendmsg",
                inject = "inject",
                injectdata = "injectdata"
            ),
        ]
    }

    #[test]
    fn a_c_compiler_lays_the_structures_out_as_they_are_here() {
        if !Path::new("/usr/include/rdma/providers/fi_prov.h").exists() {
            eprintln!("left out: no headers of libfabric");
            return;
        }
        let mut source = String::from("#include <stddef.h>\n");
        for header in [
            "fabric",
            "fi_cm",
            "fi_domain",
            "fi_endpoint",
            "fi_eq",
            "fi_rma",
            "fi_tagged",
            "providers/fi_prov",
        ] {
            writeln!(source, "#include <rdma/{header}.h>").expect("a string");
        }
        for Layout { name, size, fields } in layouts() {
            // Tables of functions end with what was added later: the size that is said bounds them.
            let relation = if name.contains("_ops_") { ">=" } else { "==" };
            writeln!(source, "_Static_assert(sizeof({name}) {relation} {size}, \"{name}\");")
                .expect("a string");
            for (field, at) in fields {
                writeln!(source, "_Static_assert(offsetof({name}, {field}) == {at}, \"{name}.{field}\");")
                    .expect("a string");
            }
        }
        let file = std::env::temp_dir().join(format!("wiretwin-layout-{}.c", std::process::id()));
        std::fs::write(&file, source).expect("a place for a file");
        let done = Command::new("cc").args(["-std=c11", "-fsyntax-only"]).arg(&file).output();
        std::fs::remove_file(&file).expect("it was written just now");
        let done = done.expect("the compiler that links Rust programs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
