//! Connections.

use std::ffi::c_ulong;

use wiretwin_msg::via::{Address, ConnHandle, HostAddress, ViHandle, ViplError};

use crate::abi::{Handle, NetAddress, Return, ViAttributes, code};
use crate::nic::{handle, nic, object, place, timeout};
use crate::vi::write_remote;

/// The address at this place.
///
/// # Safety
/// It is null or has an address, with as many bytes as its lengths say.
pub(crate) unsafe fn read_address(address: *const NetAddress) -> Result<Address, ViplError> {
    // SAFETY: the caller's.
    unsafe {
        let head = address.as_ref().ok_or(ViplError::InvalidParameter)?;
        let first = (&raw const (*address).host_address).cast::<u8>();
        let (host, more) = (usize::from(head.host_address_len), usize::from(head.discriminator_len));
        let octets = std::slice::from_raw_parts(first, host + more);
        let (host, discriminator) = octets.split_at(host);
        let host = HostAddress(host.try_into().map_err(|_| ViplError::InvalidParameter)?);
        Ok(Address { host, discriminator: discriminator.to_vec() })
    }
}

/// Writes an address.
///
/// # Safety
/// There is room for it.
pub(crate) unsafe fn write_address(place: *mut NetAddress, host: HostAddress, discriminator: &[u8]) {
    // SAFETY: the caller's.
    unsafe {
        (*place).host_address_len = host.0.len() as u16;
        (*place).discriminator_len = discriminator.len() as u16;
        let first = (&raw mut (*place).host_address).cast::<u8>();
        first.copy_from_nonoverlapping(host.0.as_ptr(), host.0.len());
        first.add(host.0.len()).copy_from_nonoverlapping(discriminator.as_ptr(), discriminator.len());
    }
}

/// `VipConnectWait`.
///
/// # Safety
/// Addresses are null or some; places are null or ones, that of the remote address with room for the longest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectWait(
    owner: Handle,
    local: *const NetAddress,
    milliseconds: c_ulong,
    remote: *mut NetAddress,
    attributes: *mut ViAttributes,
    connection: *mut Handle,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let (local, place) = unsafe { (read_address(local)?, place(connection)?) };
        let asked = nic.adapter.connect_wait(&local.discriminator, timeout(milliseconds))?;
        // SAFETY: the caller's.
        unsafe {
            if !remote.is_null() {
                write_address(remote, asked.remote.host, &asked.remote.discriminator);
            }
            write_remote(attributes, asked.attributes);
        }
        *place = handle(nic.number, asked.connection.0);
        Ok(())
    }))
}

/// `VipConnectAccept`.
#[unsafe(no_mangle)]
pub extern "C" fn VipConnectAccept(connection: Handle, vi: Handle) -> Return {
    code(object(connection).and_then(|(nic, connection)| {
        let vi = ViHandle(crate::nic::number_at(nic, vi));
        nic.adapter.connect_accept(ConnHandle(connection), vi)
    }))
}

/// `VipConnectReject`.
#[unsafe(no_mangle)]
pub extern "C" fn VipConnectReject(connection: Handle) -> Return {
    code(object(connection).and_then(|(nic, connection)| nic.adapter.connect_reject(ConnHandle(connection))))
}

/// The addresses of a request; that of this end may be left away.
///
/// # Safety
/// Each is null or an address.
unsafe fn ends(local: *const NetAddress, remote: *const NetAddress) -> Result<(Vec<u8>, Address), ViplError> {
    // SAFETY: the caller's.
    unsafe {
        let local = if local.is_null() { Vec::new() } else { read_address(local)?.discriminator };
        Ok((local, read_address(remote)?))
    }
}

/// `VipConnectRequest`.
///
/// # Safety
/// Addresses are null or some; the place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectRequest(
    vi: Handle,
    local: *const NetAddress,
    remote: *const NetAddress,
    milliseconds: c_ulong,
    attributes: *mut ViAttributes,
) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        // SAFETY: the caller's.
        let (local, remote) = unsafe { ends(local, remote) }?;
        let timeout = timeout(milliseconds);
        let answered = nic.adapter.connect_request(ViHandle(vi), &local, &remote, timeout)?;
        // SAFETY: the caller's.
        unsafe { write_remote(attributes, answered) };
        Ok(())
    }))
}

/// `VipConnectPeerRequest`.
///
/// # Safety
/// Addresses are null or some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerRequest(
    vi: Handle,
    local: *const NetAddress,
    remote: *const NetAddress,
    milliseconds: c_ulong,
) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        // SAFETY: the caller's.
        let (local, remote) = unsafe { ends(local, remote) }?;
        nic.adapter.connect_peer_request(ViHandle(vi), &local, &remote, timeout(milliseconds))
    }))
}

/// `VipConnectPeerDone`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerDone(vi: Handle, attributes: *mut ViAttributes) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let answered = nic.adapter.connect_result(ViHandle(vi))?;
        // SAFETY: the caller's.
        unsafe { write_remote(attributes, answered) };
        Ok(())
    }))
}

/// `VipConnectPeerWait`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerWait(vi: Handle, attributes: *mut ViAttributes) -> Return {
    code(object(vi).and_then(|(nic, vi)| {
        let answered = nic.adapter.connect_peer_wait(ViHandle(vi))?;
        // SAFETY: the caller's.
        unsafe { write_remote(attributes, answered) };
        Ok(())
    }))
}

/// `VipDisconnect`.
#[unsafe(no_mangle)]
pub extern "C" fn VipDisconnect(vi: Handle) -> Return {
    code(object(vi).and_then(|(nic, vi)| nic.adapter.disconnect(ViHandle(vi))))
}

versions! {
    VipConnectWait VipConnectAccept VipConnectReject VipConnectRequest VipConnectPeerRequest
    VipConnectPeerDone VipConnectPeerWait VipDisconnect
}
