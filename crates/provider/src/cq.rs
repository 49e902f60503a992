//! Completion queues.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use libc::{size_t, ssize_t};

use crate::abi::*;
use crate::domain::Domain;
use crate::endpoint::Ep;
use crate::error;
use crate::inert::{Plain, nothing};

/// A completion queue, and the endpoints that it hears of.
#[repr(C)]
pub(crate) struct Cq {
    fid: FidCq,
    domain: *mut Domain,
    /// Bytes of an entry in the format that was asked for.
    entry_bytes: usize,
    pub entries: VecDeque<(CqEntry, FiAddr)>,
    pub errors: VecDeque<CqErrEntry>,
    pub endpoints: Vec<*mut Ep>,
    /// None of its endpoints is simulated.
    pub is_direct: bool,
    /// The last read handed entries out: the next may say at once that there are no more. Libraries read on until they
    /// are told so, and another look at the devices would keep them from what has come.
    has_told: bool,
}

static CQ_FID: FiOps = Plain::<Cq>::OPS;
static CQ: OpsCq =
    OpsCq { size: size_of::<OpsCq>(), read, readfrom, readerr, sread, sreadfrom, signal: nothing, strerror };

pub(crate) unsafe extern "C" fn cq_open(
    domain: *mut FidDomain,
    attr: *mut CqAttr,
    made: *mut *mut FidCq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the attributes are the caller's, and so is the place for the result.
    unsafe {
        if (*attr).wait_obj > FI_WAIT_UNSPEC {
            // There is nothing to wait for in the kernel: what comes through memory wakes nobody.
            return error(ENOSYS);
        }
        let fields = match (*attr).format {
            FI_CQ_FORMAT_CONTEXT => 1,
            FI_CQ_FORMAT_MSG => 3,
            FI_CQ_FORMAT_DATA => 5,
            _ => 6,
        };
        let cq = Cq {
            fid: FidCq { fid: Fid { fclass: FI_CLASS_CQ, context, ops: &CQ_FID }, ops: &CQ },
            domain: domain.cast(),
            entry_bytes: fields * size_of::<u64>(),
            entries: VecDeque::new(),
            errors: VecDeque::new(),
            endpoints: Vec::new(),
            is_direct: true,
            has_told: false,
        };
        *made = Box::into_raw(Box::new(cq)).cast();
    }
    0
}

unsafe extern "C" fn read(cq: *mut FidCq, to: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's arguments, handed on.
    unsafe { readfrom(cq, to, count, null_mut()) }
}

unsafe extern "C" fn readfrom(
    cq: *mut FidCq,
    to: *mut c_void,
    count: size_t,
    sources: *mut FiAddr,
) -> ssize_t {
    // SAFETY: the queue is one of ours and so are its endpoints, which are taken off it before they are
    // freed; the caller's places have room for `count` entries. No reference to the queue lives while an
    // endpoint fills it.
    unsafe {
        let cq = cq.cast::<Cq>();
        let _held = (*(*cq).domain).lock.take();
        let mut reader = Reader { cq, to: to.cast(), sources, room: count, given: 0 };
        let has_told = std::mem::take(&mut (*cq).has_told);
        if (*cq).entries.is_empty() && (*cq).errors.is_empty() {
            if has_told {
                return error(EAGAIN) as ssize_t;
            }
            for at in 0..(*cq).endpoints.len() {
                let ep = (&(*cq).endpoints)[at];
                Ep::progress(ep, &mut reader);
            }
        }
        if reader.given == 0 && !(*cq).errors.is_empty() {
            return error(FI_EAVAIL) as ssize_t;
        }
        while reader.given < count
            && let Some((entry, source)) = (*cq).entries.pop_front()
        {
            reader.give(&entry, source);
        }
        if reader.given == 0 {
            return error(EAGAIN) as ssize_t;
        }
        (*cq).has_told = (*cq).is_direct;
        reader.given as ssize_t
    }
}

/// A call that reads a queue: where its entries go, and how many there is room for.
pub(crate) struct Reader {
    pub cq: *mut Cq,
    to: *mut u8,
    sources: *mut FiAddr,
    room: usize,
    given: usize,
}

impl Reader {
    /// Whether the next entry of the queue can go straight to the reader.
    pub(crate) fn has_room(&self) -> bool {
        // SAFETY: the queue lives while it is read, and nobody else holds a reference to it.
        self.given < self.room && unsafe { (*self.cq).entries.is_empty() }
    }

    /// Hands out an entry, for which there is room.
    #[inline]
    pub(crate) fn give(&mut self, entry: &CqEntry, source: FiAddr) {
        debug_assert!(self.given < self.room);
        // SAFETY: the caller of the read has places for `room` entries, each as long as the queue's format has it, and
        // for as many sources or none.
        unsafe {
            let bytes = (*self.cq).entry_bytes;
            let place = self.to.add(self.given * bytes);
            if bytes == size_of::<CqEntry>() {
                place.cast::<CqEntry>().write_unaligned(*entry);
            } else {
                std::ptr::copy_nonoverlapping(std::ptr::from_ref(entry).cast(), place, bytes);
            }
            if !self.sources.is_null() {
                *self.sources.add(self.given) = source;
            }
        }
        self.given += 1;
    }
}

unsafe extern "C" fn readerr(cq: *mut FidCq, to: *mut CqErrEntry, _flags: u64) -> ssize_t {
    // SAFETY: the queue is one of ours, and the place the caller's.
    unsafe {
        let cq = &mut *cq.cast::<Cq>();
        let _held = (*cq.domain).lock.take();
        match cq.errors.pop_front() {
            Some(entry) => {
                *to = entry;
                1
            }
            None => error(EAGAIN) as ssize_t,
        }
    }
}

unsafe extern "C" fn sread(
    cq: *mut FidCq,
    to: *mut c_void,
    count: size_t,
    condition: *const c_void,
    timeout_ms: c_int,
) -> ssize_t {
    // SAFETY: the caller's arguments, handed on.
    unsafe { sreadfrom(cq, to, count, null_mut(), condition, timeout_ms) }
}

unsafe extern "C" fn sreadfrom(
    cq: *mut FidCq,
    to: *mut c_void,
    count: size_t,
    sources: *mut FiAddr,
    _condition: *const c_void,
    timeout_ms: c_int,
) -> ssize_t {
    let end = u64::try_from(timeout_ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
    loop {
        // SAFETY: the caller's arguments, handed on.
        let found = unsafe { readfrom(cq, to, count, sources) };
        if found != error(EAGAIN) as ssize_t || end.is_some_and(|end| Instant::now() >= end) {
            return found;
        }
    }
}

unsafe extern "C" fn strerror(
    _cq: *mut FidCq,
    _number: c_int,
    _data: *const c_void,
    to: *mut c_char,
    length: size_t,
) -> *const c_char {
    let text = c"the direct transport: the peer's process has ended, or the message was too long";
    let bytes = text.to_bytes_with_nul();
    if !to.is_null() && length >= bytes.len() {
        // SAFETY: the caller's room for `length` bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
    }
    text.as_ptr()
}
