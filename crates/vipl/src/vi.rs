//! VIs: made, asked, changed, given back.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use wiretwin_msg::via::{self, CqHandle, Ptag, Reliability, RemoteAttributes, ViHandle, ViState, ViplError};
use wiretwin_units::Bytes;

use crate::abi::{Handle, Return, ViAttributes, code};
use crate::nic::{Nic, handle, nic, number_at, object, place};

/// Attributes as the header has them.
///
/// # Safety
/// The place is null or has attributes.
unsafe fn read(
    nic: &Nic,
    attributes: *const ViAttributes,
    [send_cq, receive_cq]: [Option<CqHandle>; 2],
) -> Result<via::ViAttributes, ViplError> {
    // SAFETY: the caller's.
    let given = unsafe { attributes.as_ref() }.ok_or(ViplError::InvalidParameter)?;
    let level = u8::try_from(given.reliability_level).ok().and_then(Reliability::from_code);
    Ok(via::ViAttributes {
        reliability: level.ok_or(ViplError::InvalidReliabilityLevel)?,
        max_transfer: Bytes::new(given.max_transfer_size),
        qos: u32::from(!given.qos.is_null()),
        ptag: Ptag(number_at(nic, given.ptag)),
        enable_rdma_write: given.enable_rdma_write != 0,
        enable_rdma_read: given.enable_rdma_read != 0,
        send_cq,
        receive_cq,
    })
}

/// What a remote end's attributes tell, if anybody wants to know.
///
/// # Safety
/// The place is null or one.
pub(crate) unsafe fn write_remote(place: *mut ViAttributes, remote: RemoteAttributes) {
    // SAFETY: the caller's.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = ViAttributes {
            reliability_level: remote.reliability as u16,
            max_transfer_size: remote.max_transfer.get(),
            qos: null_mut(),
            ptag: null_mut(),
            enable_rdma_write: 0,
            enable_rdma_read: 0,
        };
    }
}

/// `VipCreateVi`.
///
/// # Safety
/// Attributes and place are null or what they should be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateVi(
    owner: Handle,
    attributes: *const ViAttributes,
    send_cq: Handle,
    receive_cq: Handle,
    vi: *mut Handle,
) -> Return {
    code(nic(owner).and_then(|nic| {
        let cqs = [send_cq, receive_cq];
        let cqs = cqs.map(|cq: *mut c_void| (!cq.is_null()).then(|| CqHandle(number_at(nic, cq))));
        // SAFETY: the caller's.
        let (place, attributes) = unsafe { (place(vi)?, read(nic, attributes, cqs)?) };
        *place = handle(nic.number, nic.adapter.create_vi(attributes)?.0);
        Ok(())
    }))
}

/// `VipDestroyVi`.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyVi(vi: Handle) -> Return {
    code(object(vi).and_then(|(nic, vi)| nic.adapter.destroy_vi(ViHandle(vi))))
}

/// `VipQueryVi`: what nobody wants to know may have no place.
///
/// # Safety
/// Each place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryVi(
    vi: Handle,
    state: *mut c_int,
    attributes: *mut ViAttributes,
    send_empty: *mut c_int,
    receive_empty: *mut c_int,
) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let (now, known, no_send, no_receive) = nic.adapter.query_vi(ViHandle(vi))?;
        let now = match now {
            ViState::Idle => 0,
            ViState::Connected => 1,
            ViState::ConnectPending => 2,
            ViState::Error => 3,
        };
        // SAFETY: the caller's.
        unsafe {
            for (place, value) in
                [(state, now), (send_empty, no_send.into()), (receive_empty, no_receive.into())]
            {
                if let Some(place) = place.as_mut() {
                    *place = value;
                }
            }
            if let Some(place) = attributes.as_mut() {
                *place = ViAttributes {
                    reliability_level: known.reliability as u16,
                    max_transfer_size: known.max_transfer.get(),
                    qos: null_mut(),
                    ptag: handle(nic.number, known.ptag.0),
                    enable_rdma_write: known.enable_rdma_write.into(),
                    enable_rdma_read: known.enable_rdma_read.into(),
                };
            }
        }
        Ok(())
    }))
}

/// `VipSetViAttributes`.
///
/// # Safety
/// The attributes are null or some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetViAttributes(vi: Handle, attributes: *const ViAttributes) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        // SAFETY: the caller's.
        let attributes = unsafe { read(nic, attributes, [None; 2]) }?;
        nic.adapter.set_vi_attributes(ViHandle(vi), attributes)
    }))
}

versions! {
    VipCreateVi VipDestroyVi VipQueryVi VipSetViAttributes
}
