//! NICs: opened, closed and asked; protection tags, memory, names, the error handler.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wiretwin_host::vipl::{Adapter, Event, Reach};
use wiretwin_msg::via::{
    AsynchronousError, CqHandle, HostAddress, MemoryAttributes, MemoryHandle, Ptag, QueueKind, Reliability,
    ReliabilitySupport, Resource, ViHandle, ViplError,
};

use crate::abi::{
    AutodiscoveryList, CqHandler, ErrorDescriptor, ErrorHandler, Handle, MemAttributes, NetAddress,
    NicAttributes, Return, Text, ViHandler, code,
};
use crate::device;

/// NICs that a process may open in its life.
const MOST: usize = 1 << 16;
/// The provider's own version, 1.0.
const VERSION: c_ulong = 0x0001_0000;
/// A timeout in milliseconds that never passes, also as 32 bits have it.
const INFINITE: c_ulong = u32::MAX as c_ulong;

type Callback = Mutex<Option<(usize, ErrorHandler)>>;

/// One NIC. It stays where it is when it is closed, so that late calls find it closed.
pub(crate) struct Nic {
    pub number: u32,
    pub adapter: Adapter,
    is_open: AtomicBool,
    /// Whether it reaches other hosts, and whether its name service asks the system for what it does not know.
    is_network: bool,
    asks_system: AtomicBool,
    callback: Arc<Callback>,
    /// Its address, as attributes and discovery point to it.
    address: [u8; 4 + 6],
    discovered: AtomicPtr<NetAddress>,
}

static NICS: [AtomicPtr<Nic>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static OPENED: AtomicU32 = AtomicU32::new(0);

/// The handle of an object of a NIC.
pub(crate) fn handle(nic: u32, object: u32) -> Handle {
    (u64::from(nic) << 32 | u64::from(object)) as Handle
}

/// The NIC of a handle, and the number of the object.
#[inline]
pub(crate) fn object(handle: Handle) -> Result<(&'static Nic, u32), ViplError> {
    let handle = handle as u64;
    let slot = NICS.get((handle >> 32) as usize).ok_or(ViplError::InvalidParameter)?;
    // SAFETY: a NIC that was opened is never freed.
    let nic = unsafe { slot.load(Ordering::Acquire).as_ref() }.ok_or(ViplError::InvalidParameter)?;
    if !nic.is_open.load(Ordering::Relaxed) {
        return Err(ViplError::InvalidParameter);
    }
    Ok((nic, handle as u32))
}

/// The NIC itself, of its own handle.
pub(crate) fn nic(handle: Handle) -> Result<&'static Nic, ViplError> {
    let (nic, object) = object(handle)?;
    if object == 0 { Ok(nic) } else { Err(ViplError::InvalidParameter) }
}

/// The number of an object that must be of this NIC; that of none (0) if it is another's.
pub(crate) fn number_at(nic: &Nic, handle: Handle) -> u32 {
    let handle = handle as u64;
    if handle >> 32 == u64::from(nic.number) { handle as u32 } else { 0 }
}

/// A timeout in milliseconds.
pub(crate) fn timeout(milliseconds: c_ulong) -> Option<Duration> {
    (milliseconds < INFINITE).then(|| Duration::from_millis(milliseconds))
}

/// Where a result goes.
///
/// # Safety
/// It is null or a place for the result.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T) -> Result<&'a mut T, ViplError> {
    // SAFETY: the caller's.
    unsafe { pointer.as_mut() }.ok_or(ViplError::InvalidParameter)
}

fn tell(number: u32, callback: &Callback, event: Event) {
    let nic = handle(number, 0);
    match event {
        Event::Asynchronous(AsynchronousError { resource, code }) => {
            let called = *callback.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((context, handler)) = called else { return };
            let none = null_mut();
            let (resource_code, vi, cq, descriptor) = match resource {
                Resource::Nic => (0, none, none, none),
                Resource::Vi(ViHandle(vi)) => (1, handle(number, vi), none, none),
                Resource::Cq(CqHandle(cq)) => (2, none, handle(number, cq), none),
                Resource::Descriptor(ViHandle(vi), place) => {
                    (3, handle(number, vi), none, place.address as *mut c_void)
                }
            };
            let (op_code, error_code) = (0, code as c_int);
            let mut error = ErrorDescriptor { nic, vi, cq, descriptor, op_code, resource_code, error_code };
            // SAFETY: a handler and its context, as the consumer gave them.
            unsafe { handler(context as *mut c_void, &raw mut error) };
        }
        Event::Notified { vi, completion, token: [context, handler], .. } => {
            // SAFETY: the handler that came with this context.
            unsafe {
                let handler = std::mem::transmute::<usize, ViHandler>(handler);
                handler(
                    context as *mut c_void,
                    nic,
                    handle(number, vi.0),
                    completion.place.address as *mut c_void,
                );
            }
        }
        Event::CqNotified { vi, kind, token: [context, handler], .. } => {
            // SAFETY: as above.
            unsafe {
                let handler = std::mem::transmute::<usize, CqHandler>(handler);
                let receives = c_int::from(kind == QueueKind::Receive);
                handler(context as *mut c_void, nic, handle(number, vi.0), receives);
            }
        }
    }
}

fn open(device: &CStr) -> Result<Handle, ViplError> {
    let device = device.to_str().map_err(|_| ViplError::InvalidParameter)?;
    let (reach, network) = device::parse(device).ok_or(ViplError::InvalidParameter)?;
    let number = OPENED.fetch_add(1, Ordering::Relaxed) + 1;
    let slot = NICS.get(number as usize).ok_or_else(|| {
        OPENED.fetch_sub(1, Ordering::Relaxed);
        ViplError::ErrorResource
    })?;
    let callback = Arc::new(Callback::default());
    let told = Arc::clone(&callback);
    let adapter = Adapter::open(reach, network, true, Box::new(move |event| tell(number, &told, event)))?;
    let mut address = [0; 10];
    address[..2].copy_from_slice(&6_u16.to_ne_bytes());
    address[4..].copy_from_slice(&adapter.local().0);
    let (is_open, asks_system) = (AtomicBool::new(true), AtomicBool::new(false));
    let (is_network, discovered) = (reach != Reach::Memory, AtomicPtr::new(null_mut()));
    let nic = Nic { number, adapter, is_open, is_network, asks_system, callback, address, discovered };
    let nic = Box::leak(Box::new(nic));
    nic.discovered.store(nic.address.as_mut_ptr().cast(), Ordering::Relaxed);
    slot.store(nic, Ordering::Release);
    Ok(handle(number, 0))
}

/// `VipOpenNic`.
///
/// # Safety
/// The name is null or ends in a zero byte; the place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipOpenNic(device: Text, nic: *mut Handle) -> Return {
    if device.is_null() || nic.is_null() {
        return code(Err::<(), _>(ViplError::InvalidParameter));
    }
    // SAFETY: the caller's.
    unsafe { code(open(CStr::from_ptr(device)).map(|opened| *nic = opened)) }
}

/// `VipCloseNic`.
#[unsafe(no_mangle)]
pub extern "C" fn VipCloseNic(handle: Handle) -> Return {
    code(nic(handle).and_then(|nic| {
        if !nic.is_open.swap(false, Ordering::AcqRel) {
            return Err(ViplError::InvalidParameter);
        }
        nic.adapter.close();
        Ok(())
    }))
}

/// The value of an attribute that tells which levels are supported.
fn levels(support: ReliabilitySupport) -> u16 {
    Reliability::ALL.into_iter().filter(|level| support.has(*level)).map(|level| level as u16).sum()
}

/// `VipQueryNic`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryNic(handle: Handle, attributes: *mut NicAttributes) -> Return {
    code(nic(handle).and_then(|nic| {
        // SAFETY: the caller's.
        let place = unsafe { place(attributes) }?;
        let known = nic.adapter.attributes();
        let mut name = [0; 64];
        name[..known.name.len()].copy_from_slice(known.name.as_bytes());
        *place = NicAttributes {
            name,
            hardware_version: 0,
            provider_version: VERSION,
            nic_address_len: known.local.0.len() as u16,
            local_nic_address: nic.address[4..].as_ptr(),
            thread_safe: 1,
            max_discriminator_len: known.max_discriminator,
            max_register_bytes: known.max_register_bytes,
            max_register_regions: known.max_register_regions.into(),
            max_register_block_bytes: known.max_register_block,
            max_vi: known.max_vi.into(),
            max_descriptors_per_queue: known.max_descriptors.into(),
            max_segments_per_desc: known.max_segments.into(),
            max_cq: known.max_cq.into(),
            max_cq_entries: known.max_cq_entries.into(),
            max_transfer_size: known.max_transfer.into(),
            native_mtu: known.native_mtu.into(),
            max_ptags: known.max_ptag.into(),
            reliability_level_support: levels(known.reliability),
            rdma_read_support: levels(known.rdma_read),
        };
        Ok(())
    }))
}

/// `VipCreatePtag`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreatePtag(owner: Handle, tag: *mut Handle) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let place = unsafe { place(tag) }?;
        *place = handle(nic.number, nic.adapter.create_ptag()?.0);
        Ok(())
    }))
}

/// `VipDestroyPtag`.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyPtag(owner: Handle, tag: Handle) -> Return {
    code(nic(owner).and_then(|nic| nic.adapter.destroy_ptag(Ptag(number_at(nic, tag)))))
}

/// The attributes of memory at this place.
///
/// # Safety
/// It is null or has attributes.
unsafe fn memory(nic: &Nic, attributes: *const MemAttributes) -> Result<MemoryAttributes, ViplError> {
    // SAFETY: the caller's.
    let given = unsafe { attributes.as_ref() }.ok_or(ViplError::InvalidParameter)?;
    Ok(MemoryAttributes {
        ptag: Ptag(number_at(nic, given.ptag)),
        enable_rdma_write: given.enable_rdma_write != 0,
        enable_rdma_read: given.enable_rdma_read != 0,
    })
}

/// `VipRegisterMem`.
///
/// # Safety
/// Attributes and place are null or what they should be. The memory may be written by this library while it is
/// registered and stays mapped so long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRegisterMem(
    owner: Handle,
    address: *mut c_void,
    length: c_ulong,
    attributes: *const MemAttributes,
    registered: *mut u32,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let (place, attributes) = unsafe { (place(registered)?, memory(nic, attributes)?) };
        *place = nic.adapter.register_mem(address as u64, length, attributes)?.0;
        Ok(())
    }))
}

/// `VipDeregisterMem`.
#[unsafe(no_mangle)]
pub extern "C" fn VipDeregisterMem(owner: Handle, address: *mut c_void, registered: u32) -> Return {
    code(nic(owner).and_then(|nic| nic.adapter.deregister_mem(address as u64, MemoryHandle(registered))))
}

/// `VipQueryMem`.
///
/// # Safety
/// The place is null or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryMem(
    owner: Handle,
    address: *mut c_void,
    registered: u32,
    attributes: *mut MemAttributes,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let place = unsafe { place(attributes) }?;
        let known = nic.adapter.query_mem(address as u64, MemoryHandle(registered))?;
        *place = MemAttributes {
            ptag: handle(nic.number, known.ptag.0),
            enable_rdma_write: known.enable_rdma_write.into(),
            enable_rdma_read: known.enable_rdma_read.into(),
        };
        Ok(())
    }))
}

/// `VipSetMemAttributes`.
///
/// # Safety
/// The attributes are null or some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetMemAttributes(
    owner: Handle,
    address: *mut c_void,
    registered: u32,
    attributes: *const MemAttributes,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let attributes = unsafe { memory(nic, attributes) }?;
        nic.adapter.set_mem_attributes(address as u64, MemoryHandle(registered), attributes)
    }))
}

/// `VipErrorCallback`.
///
/// # Safety
/// The handler is null or may be called with this context on another thread, until it is taken away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipErrorCallback(
    owner: Handle,
    context: *mut c_void,
    handler: Option<ErrorHandler>,
) -> Return {
    code(nic(owner).map(|nic| {
        let handler = handler.map(|handler| (context as usize, handler));
        *nic.callback.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }))
}

/// `VipQuerySystemManagementInfo`.
///
/// # Safety
/// The place is null or one for what is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQuerySystemManagementInfo(
    owner: Handle,
    what: c_ulong,
    list: *mut AutodiscoveryList,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let place = unsafe { place(list) }?;
        if what != 1 {
            return Err(ViplError::InvalidParameter);
        }
        // The one host of this network.
        *place = AutodiscoveryList {
            number_of_hops: 0,
            addresses: nic.discovered.as_ptr().cast_const().cast(),
            count: 1,
        };
        Ok(())
    }))
}

/// The hosts of a text with one on each line: its address in hexadecimal digits, a blank, its name.
fn hosts(text: &str) -> Option<Vec<(&str, HostAddress)>> {
    let host = |line: &'_ str| {
        let (digits, _) = line.trim().split_once(char::is_whitespace)?;
        let mut address = [0; 6];
        if digits.len() != 2 * address.len() || !digits.is_ascii() {
            return None;
        }
        for (octet, at) in address.iter_mut().zip((0..).step_by(2)) {
            *octet = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
        }
        Some(HostAddress(address))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| Some((line.trim().split_once(char::is_whitespace)?.1.trim(), host(line)?))).collect()
}

/// `VipNSInit`.
///
/// # Safety
/// The hosts are null or text that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSInit(owner: Handle, init: *const c_char) -> Return {
    code(nic(owner).and_then(|nic| {
        if init.is_null() {
            nic.asks_system.store(nic.is_network, Ordering::Relaxed);
            return nic.adapter.names(|names| names.open(&[("localhost", nic.adapter.local())]));
        }
        // SAFETY: the caller's.
        let text = unsafe { CStr::from_ptr(init) }.to_str().map_err(|_| ViplError::InvalidParameter)?;
        let hosts = hosts(text).ok_or(ViplError::InvalidParameter)?;
        nic.adapter.names(|names| names.open(&hosts))
    }))
}

/// `VipNSGetHostByName`.
///
/// # Safety
/// The name is null or ends in a zero byte; the place is null or one for a host's address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByName(
    owner: Handle,
    name: Text,
    address: *mut NetAddress,
    number: c_ulong,
) -> Return {
    code(nic(owner).and_then(|nic| {
        if name.is_null() || address.is_null() {
            return Err(ViplError::InvalidParameter);
        }
        // SAFETY: the caller's.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| ViplError::ErrorNameservice)?;
        let number = usize::try_from(number).map_err(|_| ViplError::ErrorNameservice)?;
        let host = nic.adapter.names(|names| names.host_by_name(name, number));
        let host = host.or_else(|error| match nic.asks_system.load(Ordering::Relaxed) {
            true => device::host_by_name(name, number).ok_or(error),
            false => Err(error),
        })?;
        // SAFETY: the caller's.
        unsafe { crate::connect::write_address(address, host, &[]) };
        Ok(())
    }))
}

/// `VipNSGetHostByAddr`.
///
/// # Safety
/// The address is null or one; the name has so much room as its length says, or both are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByAddr(
    owner: Handle,
    address: *const NetAddress,
    name: *mut c_char,
    length: *mut c_ulong,
) -> Return {
    code(nic(owner).and_then(|nic| {
        // SAFETY: the caller's.
        let (address, length) = unsafe { (crate::connect::read_address(address)?, place(length)?) };
        let found = nic.adapter.names(|names| names.host_by_address(address.host).map(String::from));
        let found = found.or_else(|error| match nic.asks_system.load(Ordering::Relaxed) {
            true => device::name_of(address.host).ok_or(error),
            false => Err(error),
        })?;
        let room = usize::try_from(*length).unwrap_or(usize::MAX);
        *length = found.len() as c_ulong;
        if name.is_null() || room <= found.len() {
            return Err(ViplError::InvalidParameter);
        }
        // SAFETY: the caller's: there is room for the name and its zero.
        unsafe {
            std::ptr::copy_nonoverlapping(found.as_ptr(), name.cast(), found.len());
            *name.add(found.len()) = 0;
        }
        Ok(())
    }))
}

/// `VipNSShutdown`.
#[unsafe(no_mangle)]
pub extern "C" fn VipNSShutdown(owner: Handle) -> Return {
    code(nic(owner).and_then(|nic| {
        nic.asks_system.store(false, Ordering::Relaxed);
        nic.adapter.names(wiretwin_msg::via::Names::close)
    }))
}

versions! {
    VipOpenNic VipCloseNic VipQueryNic VipCreatePtag VipDestroyPtag VipRegisterMem VipDeregisterMem
    VipQueryMem VipSetMemAttributes VipErrorCallback VipQuerySystemManagementInfo VipNSInit
    VipNSGetHostByName VipNSGetHostByAddr VipNSShutdown
}
