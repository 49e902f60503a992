//! Objects that callers ask for and that do nothing here, and functions that this provider has not.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use libc::{size_t, ssize_t};

use crate::abi::*;
use crate::error;

pub(crate) unsafe extern "C" fn nothing() -> c_int {
    error(ENOSYS)
}

pub(crate) unsafe extern "C" fn nothing_sent() -> ssize_t {
    error(ENOSYS) as ssize_t
}

pub(crate) unsafe extern "C" fn no_bind(_fid: *mut Fid, _other: *mut Fid, _flags: u64) -> c_int {
    error(ENOSYS)
}

pub(crate) unsafe extern "C" fn no_control(_fid: *mut Fid, _command: c_int, _argument: *mut c_void) -> c_int {
    error(ENOSYS)
}

/// Functions of an object of type `T`, whose first field is its `Fid`, and which is freed when it is closed.
pub(crate) struct Plain<T>(std::marker::PhantomData<T>);

impl<T> Plain<T> {
    pub(crate) const OPS: FiOps = FiOps {
        size: size_of::<FiOps>(),
        close: Self::close,
        bind: no_bind,
        control: no_control,
        ops_open: nothing,
    };

    unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
        // SAFETY: the object was made by `Box::into_raw` as a `T`, and is closed once.
        drop(unsafe { Box::from_raw(fid.cast::<T>()) });
        0
    }
}

unsafe extern "C" fn read(_counter: *mut FidCntr) -> u64 {
    0
}

unsafe extern "C" fn change(_counter: *mut FidCntr, _value: u64) -> c_int {
    0
}

static COUNTER: OpsCntr = OpsCntr {
    size: size_of::<OpsCntr>(),
    read,
    readerr: read,
    add: change,
    set: change,
    wait: nothing,
    adderr: change,
    seterr: change,
};
static COUNTER_FID: FiOps = Plain::<FidCntr>::OPS;

pub(crate) unsafe extern "C" fn cntr_open(
    _domain: *mut FidDomain,
    _attr: *mut c_void,
    made: *mut *mut FidCntr,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { fclass: FI_CLASS_CNTR, context, ops: &COUNTER_FID };
    // SAFETY: the caller's place for the result.
    unsafe { *made = Box::into_raw(Box::new(FidCntr { fid, ops: &COUNTER })) };
    0
}

unsafe extern "C" fn no_event(
    _queue: *mut FidEq,
    _event: *mut u32,
    _buffer: *mut c_void,
    _length: size_t,
    _flags: u64,
) -> ssize_t {
    error(EAGAIN) as ssize_t
}

unsafe extern "C" fn no_error(_queue: *mut FidEq, _buffer: *mut c_void, _flags: u64) -> ssize_t {
    error(EAGAIN) as ssize_t
}

static EVENTS: OpsEq = OpsEq {
    size: size_of::<OpsEq>(),
    read: no_event,
    readerr: no_error,
    write: nothing_sent,
    sread: nothing_sent,
    strerror: nothing,
};
static EVENTS_FID: FiOps = Plain::<FidEq>::OPS;

pub(crate) unsafe extern "C" fn eq_open(
    _fabric: *mut FidFabric,
    _attr: *mut c_void,
    made: *mut *mut FidEq,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { fclass: FI_CLASS_EQ, context, ops: &EVENTS_FID };
    // SAFETY: the caller's place for the result.
    unsafe { *made = Box::into_raw(Box::new(FidEq { fid, ops: &EVENTS })) };
    0
}

static REGION_FID: FiOps = Plain::<FidMr>::OPS;

/// Memory needs no registration: the region is a token.
unsafe extern "C" fn reg(
    _fid: *mut Fid,
    _buffer: *const c_void,
    _length: size_t,
    _access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    made: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { fclass: FI_CLASS_MR, context, ops: &REGION_FID };
    // SAFETY: the caller's place for the result.
    unsafe { *made = Box::into_raw(Box::new(FidMr { fid, mem_desc: null_mut(), key })) };
    0
}

pub(crate) static REGIONS: OpsMr = OpsMr { size: size_of::<OpsMr>(), reg, regv: nothing, regattr: nothing };
