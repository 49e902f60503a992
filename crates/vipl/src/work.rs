//! Work queues and completion queues.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

use wiretwin_host::vipl::Token;
use wiretwin_msg::via::{
    Completion, CqHandle, DoneError, MemoryHandle, Place, QueueKind, ViHandle, ViplError,
};

use crate::abi::{CqHandler, Handle, Return, ViHandler, code};
use crate::nic::{handle, nic, object, place, timeout};

const fn queue(receives: bool) -> QueueKind {
    if receives { QueueKind::Receive } else { QueueKind::Send }
}

// A copy for each queue, as half of what is looked at differs: the closure of each is a type of its own.
#[inline(always)]
fn post<const RECEIVES: bool>(vi: Handle, descriptor: *mut c_void, memory: u32) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let place = Place { address: descriptor as u64, handle: MemoryHandle(memory) };
        nic.adapter.post(ViHandle(vi), queue(RECEIVES), place)
    }))
}

/// `VipPostSend`.
#[unsafe(no_mangle)]
pub extern "C" fn VipPostSend(vi: Handle, descriptor: *mut c_void, memory: u32) -> Return {
    post::<false>(vi, descriptor, memory)
}

/// `VipPostRecv`.
#[unsafe(no_mangle)]
pub extern "C" fn VipPostRecv(vi: Handle, descriptor: *mut c_void, memory: u32) -> Return {
    post::<true>(vi, descriptor, memory)
}

/// Hands over the descriptor that was taken off a queue, in error or not; none, if none was.
///
/// # Safety
/// The place is null or one.
#[inline(always)]
unsafe fn taken(
    descriptor: *mut *mut c_void,
    take: impl FnOnce() -> Result<Completion, DoneError>,
    none_yet: ViplError,
) -> Result<(), ViplError> {
    // SAFETY: the caller's.
    let place = unsafe { place(descriptor) }?;
    let taken = take();
    *place = match &taken {
        Ok(completion) | Err(DoneError::Failed(completion)) => completion.place.address as *mut c_void,
        Err(_) => null_mut(),
    };
    match taken {
        Ok(_) => Ok(()),
        Err(DoneError::NotDone) => Err(none_yet),
        Err(error) => Err(error.into()),
    }
}

#[inline(always)]
unsafe fn done<const RECEIVES: bool>(vi: Handle, descriptor: *mut *mut c_void) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        // SAFETY: the caller's.
        unsafe { taken(descriptor, || nic.adapter.done(ViHandle(vi), queue(RECEIVES)), ViplError::NotDone) }
    }))
}

unsafe fn wait(vi: Handle, kind: QueueKind, milliseconds: c_ulong, descriptor: *mut *mut c_void) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let wait = || nic.adapter.wait(ViHandle(vi), kind, timeout(milliseconds));
        // SAFETY: the caller's.
        unsafe { taken(descriptor, wait, ViplError::Timeout) }
    }))
}

/// `VipSendDone`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendDone(vi: Handle, descriptor: *mut *mut c_void) -> Return {
    // SAFETY: the caller's.
    unsafe { done::<false>(vi, descriptor) }
}

/// `VipRecvDone`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvDone(vi: Handle, descriptor: *mut *mut c_void) -> Return {
    // SAFETY: the caller's.
    unsafe { done::<true>(vi, descriptor) }
}

/// `VipSendWait`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendWait(
    vi: Handle,
    milliseconds: c_ulong,
    descriptor: *mut *mut c_void,
) -> Return {
    // SAFETY: the caller's.
    unsafe { wait(vi, QueueKind::Send, milliseconds, descriptor) }
}

/// `VipRecvWait`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvWait(
    vi: Handle,
    milliseconds: c_ulong,
    descriptor: *mut *mut c_void,
) -> Return {
    // SAFETY: the caller's.
    unsafe { wait(vi, QueueKind::Receive, milliseconds, descriptor) }
}

fn notify(vi: Handle, kind: QueueKind, context: *mut c_void, handler: Option<ViHandler>) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let handler = handler.ok_or(ViplError::InvalidParameter)?;
        let token: Token = [context as usize, handler as usize];
        nic.adapter.notify(ViHandle(vi), kind, token)
    }))
}

/// `VipSendNotify`.
///
/// # Safety
/// The handler is null or may be called with this context on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendNotify(
    vi: Handle,
    context: *mut c_void,
    handler: Option<ViHandler>,
) -> Return {
    notify(vi, QueueKind::Send, context, handler)
}

/// `VipRecvNotify`.
///
/// # Safety
/// As for [`VipSendNotify`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvNotify(
    vi: Handle,
    context: *mut c_void,
    handler: Option<ViHandler>,
) -> Return {
    notify(vi, QueueKind::Receive, context, handler)
}

fn entries(count: c_ulong) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// `VipCreateCQ`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateCQ(owner: Handle, count: c_ulong, cq: *mut Handle) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let place = unsafe { place(cq) }?;
        *place = handle(nic.number, nic.adapter.create_cq(entries(count))?.0);
        Ok(())
    }))
}

/// `VipDestroyCQ`.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyCQ(cq: Handle) -> Return {
    code(object(cq).and_then(|(nic, cq)| nic.adapter.destroy_cq(CqHandle(cq))))
}

/// `VipResizeCQ`.
#[unsafe(no_mangle)]
pub extern "C" fn VipResizeCQ(cq: Handle, count: c_ulong) -> Return {
    code(object(cq).and_then(|(nic, cq)| nic.adapter.resize_cq(CqHandle(cq), entries(count))))
}

/// Hands over an entry of a completion queue.
///
/// # Safety
/// Each place is null or one.
unsafe fn entry(
    cq: Handle,
    (vi, receives): (*mut Handle, *mut c_int),
    take: impl FnOnce(&crate::nic::Nic, CqHandle) -> Result<(ViHandle, QueueKind), ViplError>,
) -> Return {
    code(object(cq).and_then(|(nic, cq)| {
        // SAFETY: the caller's.
        let (vi, receives) = unsafe { (place(vi)?, place(receives)?) };
        let (ViHandle(about), kind) = take(nic, CqHandle(cq))?;
        *vi = handle(nic.number, about);
        *receives = c_int::from(kind == QueueKind::Receive);
        Ok(())
    }))
}

/// `VipCQDone`.
///
/// # Safety
/// Each place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQDone(cq: Handle, vi: *mut Handle, receives: *mut c_int) -> Return {
    // SAFETY: the caller's.
    unsafe { entry(cq, (vi, receives), |nic, cq| nic.adapter.cq_done(cq)) }
}

/// `VipCQWait`.
///
/// # Safety
/// Each place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQWait(
    cq: Handle,
    milliseconds: c_ulong,
    vi: *mut Handle,
    receives: *mut c_int,
) -> Return {
    // SAFETY: the caller's.
    unsafe { entry(cq, (vi, receives), |nic, cq| nic.adapter.cq_wait(cq, timeout(milliseconds))) }
}

/// `VipCQNotify`.
///
/// # Safety
/// The handler is null or may be called with this context on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQNotify(cq: Handle, context: *mut c_void, handler: Option<CqHandler>) -> Return {
    code(object(cq).and_then(|(nic, cq)| {
        let handler = handler.ok_or(ViplError::InvalidParameter)?;
        nic.adapter.cq_notify(CqHandle(cq), [context as usize, handler as usize])
    }))
}

versions! {
    VipPostSend VipPostRecv VipSendDone VipRecvDone VipSendWait VipRecvWait VipSendNotify VipRecvNotify
    VipCreateCQ VipDestroyCQ VipResizeCQ VipCQDone VipCQWait VipCQNotify
}
