//! A consumer that makes the calls of `vipl.h`, as a C program would.

#[path = "../shared/mod.rs"]
mod shared;
mod stopped;

use std::ffi::{CStr, CString, c_int, c_ulong, c_void};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use vipl::abi::{ErrorDescriptor, Handle, MemAttributes, NetAddress, NicAttributes as Nic, Return};
use vipl::*;
use wiretwin_msg::via::conformance::Consumer;
use wiretwin_msg::via::{
    Address, Asked, AsynchronousError, Completion, ConnHandle, ControlSegment, CqHandle, Descriptor,
    DoneError, ErrorCode, HostAddress, MemoryAttributes, MemoryHandle, NicAttributes, Outcome, Place, Ptag,
    QueueKind, Reliability, ReliabilitySupport, RemoteAttributes, Resource, ViAttributes, ViHandle, ViState,
    ViplError,
};
use wiretwin_units::{Bytes, Span};

use shared::Shared;
use stopped::Stopped;

/// How long something that another thread tells may take.
const PATIENCE: Duration = Duration::from_secs(10);

const CODES: [ErrorCode; 11] = [
    ErrorCode::PostDescriptor,
    ErrorCode::ConnectionLost,
    ErrorCode::ReceiveQueueEmpty,
    ErrorCode::Overrun,
    ErrorCode::RdmaWriteProtection,
    ErrorCode::RdmaWriteData,
    ErrorCode::RdmaWriteAbort,
    ErrorCode::RdmaReadProtection,
    ErrorCode::CompletionProtection,
    ErrorCode::RdmaTransport,
    ErrorCode::Catastrophic,
];

/// What handlers were told.
#[derive(Default)]
struct Told {
    errors: Mutex<Vec<AsynchronousError>>,
    notified: Mutex<Vec<(ViHandle, u64)>>,
}

/// Closes a NIC: its thread writes to descriptors, and calls handlers, until then.
struct OpenNic(Handle);

impl Drop for OpenNic {
    fn drop(&mut self) {
        // A NIC that is closed already is rejected.
        let _ = VipCloseNic(self.0);
    }
}

enum Memory {
    Private(Vec<u64>),
    Shared(Shared),
}

/// A process with a NIC of `libvipl`, and a socket to the process of the other end.
pub struct C {
    /// Before what its thread writes to: fields are dropped in this order.
    _open: OpenNic,
    nic: Handle,
    told: Arc<Told>,
    other: UnixStream,
    memory: Vec<Memory>,
    /// Whether memory is such that the other process can map it.
    shares: bool,
    vis: Vec<ViHandle>,
    /// The other end, while it is held.
    held: Option<Stopped>,
    /// Whether the two may be of several hosts, and when both have met last then: what was sent before may still be on
    /// its way.
    is_network: bool,
    met: Option<Instant>,
}

/// What this process has seen: a bit for each code that a call returned, then one for each that the error handler
/// was told.
pub static SEEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

fn result(code: Return) -> Result<(), ViplError> {
    SEEN[0].fetch_or(1 << code, Ordering::Relaxed);
    match usize::try_from(code).expect("a code is not negative") {
        0 => Ok(()),
        code => Err(ViplError::ALL[code - 1]),
    }
}

/// The number of an object, of its handle.
fn number(handle: Handle) -> u32 {
    handle as u64 as u32
}

fn milliseconds(timeout: Option<Span>) -> c_ulong {
    timeout.map_or(c_ulong::MAX, |span| span.as_ps() / 1_000_000_000)
}

unsafe extern "C" fn on_error(context: *mut c_void, error: *mut ErrorDescriptor) {
    // SAFETY: the context that was given with this handler, and an error that is there while it is told.
    let (told, error) = unsafe { (&*context.cast::<Told>(), &*error) };
    let vi = ViHandle(number(error.vi));
    let resource = match error.resource_code {
        0 => Resource::Nic,
        1 => Resource::Vi(vi),
        2 => Resource::Cq(CqHandle(number(error.cq))),
        _ => Resource::Descriptor(vi, Place { address: error.descriptor as u64, handle: MemoryHandle(0) }),
    };
    let code = CODES[usize::try_from(error.error_code).expect("a code")];
    SEEN[1].fetch_or(1 << error.error_code, Ordering::Relaxed);
    told.errors.lock().expect("nobody panicked").push(AsynchronousError { resource, code });
}

unsafe extern "C" fn on_receive(context: *mut c_void, _: Handle, vi: Handle, descriptor: *mut c_void) {
    // SAFETY: the context that was given with this handler.
    let told = unsafe { &*context.cast::<Told>() };
    told.notified.lock().expect("nobody panicked").push((ViHandle(number(vi)), descriptor as u64));
}

fn attributes_of(remote: &vipl::abi::ViAttributes) -> RemoteAttributes {
    let reliability = Reliability::from_code(remote.reliability_level as u8).expect("a level");
    RemoteAttributes { reliability, max_transfer: Bytes::new(remote.max_transfer_size), qos: 0 }
}

const NO_ATTRIBUTES: vipl::abi::ViAttributes = vipl::abi::ViAttributes {
    reliability_level: 0,
    max_transfer_size: 0,
    qos: null_mut(),
    ptag: null_mut(),
    enable_rdma_write: 0,
    enable_rdma_read: 0,
};

impl C {
    pub fn open(device: &str, other: UnixStream, shares: bool) -> Self {
        let is_network = !device.starts_with("shm");
        let device = CString::new(device).expect("no zero in it");
        let mut nic = null_mut();
        let told = Arc::new(Told::default());
        // SAFETY: names and places are there; the context lives as long as the NIC.
        unsafe {
            assert_eq!(VipOpenNic(device.as_ptr(), &raw mut nic), 0);
            let context = Arc::as_ptr(&told).cast_mut().cast();
            assert_eq!(VipErrorCallback(nic, context, Some(on_error)), 0);
        }
        Self {
            _open: OpenNic(nic),
            nic,
            told,
            other,
            memory: Vec::new(),
            shares,
            vis: Vec::new(),
            held: None,
            is_network,
            met: None,
        }
    }

    fn handle(&self, object: u32) -> Handle {
        (self.nic as u64 | u64::from(object)) as Handle
    }

    fn memory_attributes(&self, attributes: MemoryAttributes) -> MemAttributes {
        MemAttributes {
            ptag: self.handle(attributes.ptag.0),
            enable_rdma_write: attributes.enable_rdma_write.into(),
            enable_rdma_read: attributes.enable_rdma_read.into(),
        }
    }

    fn vi_attributes(&self, attributes: &ViAttributes) -> vipl::abi::ViAttributes {
        vipl::abi::ViAttributes {
            reliability_level: attributes.reliability as u16,
            max_transfer_size: attributes.max_transfer.get(),
            qos: attributes.qos as usize as Handle,
            ptag: self.handle(attributes.ptag.0),
            enable_rdma_write: attributes.enable_rdma_write.into(),
            enable_rdma_read: attributes.enable_rdma_read.into(),
        }
    }

    /// An address of this network.
    fn address(&self, discriminator: &[u8]) -> Vec<u64> {
        net_address(local(self.nic), discriminator)
    }

    /// Waits until the error handler was told something.
    pub fn error(&self) -> Result<(), ViplError> {
        let began = Instant::now();
        while self.told.errors.lock().expect("nobody panicked").is_empty() {
            if began.elapsed() > PATIENCE {
                return Err(ViplError::Timeout);
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits until handlers were told of all that has happened: by a send that is flushed and told of behind it.
    fn fence(&mut self) -> Result<(), ViplError> {
        let ptag = self.create_ptag()?;
        let place = self.allocate_registered(64, ptag)?;
        let attributes = ViAttributes {
            reliability: Reliability::UnreliableDelivery,
            max_transfer: Bytes::new(1),
            qos: 0,
            ptag,
            enable_rdma_write: false,
            enable_rdma_read: false,
            send_cq: None,
            receive_cq: None,
        };
        let vi = self.create_vi(attributes)?;
        let place = Place { address: place.address, handle: place.handle };
        self.post(vi, QueueKind::Send, place, &Descriptor::new(&[]))?;
        self.notify(vi, QueueKind::Send)?;
        let began = Instant::now();
        let told = |told: &Told| {
            let mut notified = told.notified.lock().expect("nobody panicked");
            let before = notified.len();
            notified.retain(|(about, _)| *about != vi);
            notified.len() < before
        };
        while !told(&self.told) {
            assert!(began.elapsed() < PATIENCE, "the thread of the library tells nothing");
            std::thread::yield_now();
        }
        self.destroy_vi(vi)?;
        self.deregister_mem(place.address, place.handle)?;
        self.destroy_ptag(ptag)
    }

    fn completion(descriptor: *mut c_void) -> Completion {
        // SAFETY: a descriptor that was taken off its queue, in memory of this process.
        let octets = unsafe { std::slice::from_raw_parts(descriptor.cast::<u8>(), 32) };
        let ControlSegment { immediate, length, status, .. } =
            ControlSegment::parse(octets).expect("32 octets");
        let place = Place { address: descriptor as u64, handle: MemoryHandle(0) };
        Completion { place, outcome: Outcome { status, length, immediate } }
    }

    fn taken(code: Return, descriptor: *mut c_void) -> Result<Completion, DoneError> {
        match result(code) {
            Ok(()) => Ok(Self::completion(descriptor)),
            Err(ViplError::DescriptorError) if descriptor.is_null() => Err(DoneError::Empty),
            Err(ViplError::DescriptorError) => Err(DoneError::Failed(Self::completion(descriptor))),
            Err(ViplError::NotDone | ViplError::Timeout) => Err(DoneError::NotDone),
            Err(_) => Err(DoneError::NoSuchVi),
        }
    }

    fn entry(code: Return, vi: Handle, receives: c_int) -> Result<(ViHandle, QueueKind), ViplError> {
        let kind = if receives != 0 { QueueKind::Receive } else { QueueKind::Send };
        result(code).map(|()| (ViHandle(number(vi)), kind))
    }
}

/// Octets of a `VIP_NET_ADDRESS`.
fn net_address(host: HostAddress, discriminator: &[u8]) -> Vec<u64> {
    let mut octets = (host.0.len() as u16).to_ne_bytes().to_vec();
    octets.extend((discriminator.len() as u16).to_ne_bytes());
    octets.extend(host.0);
    octets.extend(discriminator);
    octets.resize(octets.len().next_multiple_of(8), 0);
    octets.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight octets"))).collect()
}

fn local(nic: Handle) -> HostAddress {
    let attributes = query(nic);
    // SAFETY: so many octets are there.
    let octets = unsafe {
        std::slice::from_raw_parts(attributes.local_nic_address, attributes.nic_address_len.into())
    };
    HostAddress(octets.try_into().expect("six octets"))
}

fn query(nic: Handle) -> Nic {
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: a place for them, which is filled in.
    unsafe {
        assert_eq!(VipQueryNic(nic, attributes.as_mut_ptr()), 0);
        attributes.assume_init()
    }
}

fn support(levels: u16) -> ReliabilitySupport {
    let levels = Reliability::ALL.into_iter().filter(|level| levels & *level as u16 != 0);
    levels.fold(ReliabilitySupport::NONE, ReliabilitySupport::with)
}

/// The pointer to an address.
fn at(address: &[u64]) -> *const NetAddress {
    address.as_ptr().cast()
}

impl Consumer for C {
    type Device = UnixStream;

    fn attributes(&mut self) -> NicAttributes {
        let known = query(self.nic);
        let number = |value: c_ulong| u32::try_from(value).expect("a small number");
        NicAttributes {
            name: "shm",
            max_discriminator: known.max_discriminator_len,
            max_register_bytes: known.max_register_bytes,
            max_register_regions: number(known.max_register_regions),
            max_register_block: known.max_register_block_bytes,
            max_vi: number(known.max_vi),
            max_descriptors: number(known.max_descriptors_per_queue),
            max_segments: number(known.max_segments_per_desc) as u16,
            max_cq: number(known.max_cq),
            max_cq_entries: number(known.max_cq_entries),
            max_transfer: number(known.max_transfer_size),
            native_mtu: number(known.native_mtu),
            max_ptag: number(known.max_ptags),
            reliability: support(known.reliability_level_support),
            rdma_read: support(known.rdma_read_support),
            ..NicAttributes::adapter(local(self.nic))
        }
    }

    fn remote(&mut self) -> HostAddress {
        local(self.nic)
    }

    fn allocate(&mut self, octets: usize) -> u64 {
        // Whole words, and a cache line to spare to begin on one.
        let memory = if self.shares {
            Memory::Shared(Shared::new(octets.max(1)))
        } else {
            Memory::Private(vec![0_u64; octets / 8 + 9])
        };
        let base = match &memory {
            Memory::Shared(shared) => shared.base() as u64,
            Memory::Private(words) => words.as_ptr() as u64,
        };
        self.memory.push(memory);
        base.next_multiple_of(64)
    }

    fn write(&mut self, address: u64, octets: &[u8]) {
        // SAFETY: memory that was allocated above.
        unsafe { std::ptr::copy_nonoverlapping(octets.as_ptr(), address as *mut u8, octets.len()) };
    }

    fn read(&self, address: u64, octets: usize) -> &[u8] {
        // SAFETY: memory that was allocated above, which lives as long as this; nothing comes while it is read.
        unsafe { std::slice::from_raw_parts(address as *const u8, octets) }
    }

    fn take_errors(&mut self) -> Vec<AsynchronousError> {
        std::mem::take(&mut *self.told.errors.lock().expect("nobody panicked"))
    }

    async fn notified(&mut self) -> Result<Vec<(ViHandle, QueueKind, u64)>, ViplError> {
        let began = Instant::now();
        loop {
            let told = std::mem::take(&mut *self.told.notified.lock().expect("nobody panicked"));
            if !told.is_empty() {
                return Ok(told.into_iter().map(|(vi, at)| (vi, QueueKind::Receive, at)).collect());
            }
            if began.elapsed() > PATIENCE {
                return Err(ViplError::Timeout);
            }
            std::thread::yield_now();
        }
    }

    async fn turn(&mut self) -> Result<(), ViplError> {
        self.error()?;
        self.fence()
    }

    /// Stops the server, which started this process.
    fn hold(&mut self) {
        self.held = Some(Stopped::parent());
    }

    fn release(&mut self) {
        self.held = None;
    }

    fn may_come(&mut self) -> bool {
        std::thread::yield_now();
        self.met.is_some_and(|met| met.elapsed() < PATIENCE)
    }

    async fn meet(&mut self) -> Result<(), ViplError> {
        let gone = |_| ViplError::NotReachable;
        self.other.write_all(&[1]).map_err(gone)?;
        self.other.read_exact(&mut [0]).map_err(gone)?;
        if self.is_network {
            self.met = Some(Instant::now());
        }
        for vi in self.vis.clone() {
            // A VI that is gone is refused.
            let _ = self.query_vi(vi);
        }
        Ok(())
    }

    async fn end(mut self) -> Result<UnixStream, String> {
        result(VipCloseNic(self.nic)).map_err(|error| error.to_string())?;
        self.meet().await.map_err(|error| error.to_string())?;
        Ok(self.other)
    }

    fn create_ptag(&mut self) -> Result<Ptag, ViplError> {
        let mut tag = null_mut();
        // SAFETY: a place for it.
        result(unsafe { VipCreatePtag(self.nic, &raw mut tag) }).map(|()| Ptag(number(tag)))
    }

    fn destroy_ptag(&mut self, tag: Ptag) -> Result<(), ViplError> {
        result(VipDestroyPtag(self.nic, self.handle(tag.0)))
    }

    fn register(
        &mut self,
        address: u64,
        octets: usize,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        let attributes = self.memory_attributes(attributes);
        let mut handle = 0;
        let (address, octets) = (address as *mut c_void, octets as c_ulong);
        // SAFETY: attributes and a place; what is no memory is refused.
        let code =
            unsafe { VipRegisterMem(self.nic, address, octets, &raw const attributes, &raw mut handle) };
        result(code).map(|()| MemoryHandle(handle))
    }

    fn deregister_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<(), ViplError> {
        result(VipDeregisterMem(self.nic, address as *mut c_void, handle.0))
    }

    fn query_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError> {
        let mut found = MemAttributes { ptag: null_mut(), enable_rdma_write: 0, enable_rdma_read: 0 };
        // SAFETY: a place for them.
        result(unsafe { VipQueryMem(self.nic, address as *mut c_void, handle.0, &raw mut found) })?;
        Ok(MemoryAttributes {
            ptag: Ptag(number(found.ptag)),
            enable_rdma_write: found.enable_rdma_write != 0,
            enable_rdma_read: found.enable_rdma_read != 0,
        })
    }

    fn set_mem_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        let attributes = self.memory_attributes(attributes);
        let address = address as *mut c_void;
        // SAFETY: attributes.
        result(unsafe { VipSetMemAttributes(self.nic, address, handle.0, &raw const attributes) })
    }

    fn create_vi(&mut self, attributes: ViAttributes) -> Result<ViHandle, ViplError> {
        let cq = |cq: Option<CqHandle>| cq.map_or(null_mut(), |cq| self.handle(cq.0));
        let (send, receive) = (cq(attributes.send_cq), cq(attributes.receive_cq));
        let given = self.vi_attributes(&attributes);
        let mut vi = null_mut();
        // SAFETY: attributes and a place.
        result(unsafe { VipCreateVi(self.nic, &raw const given, send, receive, &raw mut vi) })?;
        self.vis.push(ViHandle(number(vi)));
        Ok(ViHandle(number(vi)))
    }

    fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ViplError> {
        result(VipDestroyVi(self.handle(vi.0)))
    }

    fn query_vi(&mut self, vi: ViHandle) -> Result<(ViState, ViAttributes, bool, bool), ViplError> {
        let (mut state, mut found, mut empty) = (0, NO_ATTRIBUTES, [0; 2]);
        let [send, receive] = &mut empty;
        // SAFETY: places for them.
        let code = unsafe { VipQueryVi(self.handle(vi.0), &raw mut state, &raw mut found, send, receive) };
        result(code)?;
        let states = [ViState::Idle, ViState::Connected, ViState::ConnectPending, ViState::Error];
        let remote = attributes_of(&found);
        let attributes = ViAttributes {
            reliability: remote.reliability,
            max_transfer: remote.max_transfer,
            qos: 0,
            ptag: Ptag(number(found.ptag)),
            enable_rdma_write: found.enable_rdma_write != 0,
            enable_rdma_read: found.enable_rdma_read != 0,
            send_cq: None,
            receive_cq: None,
        };
        Ok((states[usize::try_from(state).expect("a state")], attributes, empty[0] != 0, empty[1] != 0))
    }

    fn set_vi_attributes(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ViplError> {
        let given = self.vi_attributes(&attributes);
        // SAFETY: attributes.
        result(unsafe { VipSetViAttributes(self.handle(vi.0), &raw const given) })
    }

    fn post_at(&mut self, vi: ViHandle, kind: QueueKind, place: Place) -> Result<(), ViplError> {
        let (vi, descriptor) = (self.handle(vi.0), place.address as *mut c_void);
        result(match kind {
            QueueKind::Send => VipPostSend(vi, descriptor, place.handle.0),
            QueueKind::Receive => VipPostRecv(vi, descriptor, place.handle.0),
        })
    }

    fn done(&mut self, vi: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        let (vi, mut descriptor) = (self.handle(vi.0), null_mut());
        // SAFETY: a place for it.
        let code = unsafe {
            match kind {
                QueueKind::Send => VipSendDone(vi, &raw mut descriptor),
                QueueKind::Receive => VipRecvDone(vi, &raw mut descriptor),
            }
        };
        Self::taken(code, descriptor)
    }

    async fn wait(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        timeout: Option<Span>,
    ) -> Result<Completion, ViplError> {
        let (vi, mut descriptor) = (self.handle(vi.0), null_mut());
        // SAFETY: a place for it.
        let code = unsafe {
            match kind {
                QueueKind::Send => VipSendWait(vi, milliseconds(timeout), &raw mut descriptor),
                QueueKind::Receive => VipRecvWait(vi, milliseconds(timeout), &raw mut descriptor),
            }
        };
        match Self::taken(code, descriptor) {
            Ok(completion) | Err(DoneError::Failed(completion)) => Ok(completion),
            Err(_) => Err(result(code).expect_err("it failed")),
        }
    }

    fn notify(&mut self, vi: ViHandle, kind: QueueKind) -> Result<(), ViplError> {
        let context = Arc::as_ptr(&self.told).cast_mut().cast();
        let vi = self.handle(vi.0);
        // SAFETY: the context lives as long as the NIC.
        result(unsafe {
            match kind {
                QueueKind::Send => VipSendNotify(vi, context, Some(on_receive)),
                QueueKind::Receive => VipRecvNotify(vi, context, Some(on_receive)),
            }
        })
    }

    fn create_cq(&mut self, entries: u32) -> Result<CqHandle, ViplError> {
        let mut cq = null_mut();
        // SAFETY: a place for it.
        result(unsafe { VipCreateCQ(self.nic, entries.into(), &raw mut cq) }).map(|()| CqHandle(number(cq)))
    }

    fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), ViplError> {
        result(VipResizeCQ(self.handle(cq.0), entries.into()))
    }

    fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), ViplError> {
        result(VipDestroyCQ(self.handle(cq.0)))
    }

    fn cq_done(&mut self, cq: CqHandle) -> Result<(ViHandle, QueueKind), ViplError> {
        let (mut vi, mut receives) = (null_mut(), 0);
        // SAFETY: places for them.
        let code = unsafe { VipCQDone(self.handle(cq.0), &raw mut vi, &raw mut receives) };
        Self::entry(code, vi, receives)
    }

    async fn cq_wait(
        &mut self,
        cq: CqHandle,
        timeout: Option<Span>,
    ) -> Result<(ViHandle, QueueKind), ViplError> {
        let (mut vi, mut receives) = (null_mut(), 0);
        let timeout = milliseconds(timeout);
        // SAFETY: places for them.
        let code = unsafe { VipCQWait(self.handle(cq.0), timeout, &raw mut vi, &raw mut receives) };
        Self::entry(code, vi, receives)
    }

    async fn connect_wait(
        &mut self,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<Asked, ViplError> {
        let address = self.address(discriminator);
        let mut remote = [0_u64; 16];
        let (mut attributes, mut connection) = (NO_ATTRIBUTES, null_mut());
        // SAFETY: an address, and places with room for the longest.
        result(unsafe {
            let (remote, timeout) = (remote.as_mut_ptr().cast(), milliseconds(timeout));
            let connection = &raw mut connection;
            VipConnectWait(self.nic, at(&address), timeout, remote, &raw mut attributes, connection)
        })?;
        let remote = Address { host: local(self.nic), discriminator: Vec::new() };
        Ok(Asked {
            connection: ConnHandle(number(connection)),
            remote,
            attributes: attributes_of(&attributes),
        })
    }

    fn connect_accept(&mut self, asked: &Asked, vi: ViHandle) -> Result<(), ViplError> {
        result(VipConnectAccept(self.handle(asked.connection.0), self.handle(vi.0)))
    }

    fn connect_reject(&mut self, asked: &Asked) -> Result<(), ViplError> {
        result(VipConnectReject(self.handle(asked.connection.0)))
    }

    async fn connect_request(
        &mut self,
        vi: ViHandle,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<RemoteAttributes, ViplError> {
        let remote = self.address(discriminator);
        let (timeout, mut found) = (milliseconds(timeout), NO_ATTRIBUTES);
        // SAFETY: an address and a place.
        result(unsafe {
            VipConnectRequest(self.handle(vi.0), null(), at(&remote), timeout, &raw mut found)
        })?;
        Ok(attributes_of(&found))
    }

    fn connect_peer_request(
        &mut self,
        vi: ViHandle,
        local: &[u8],
        remote: &[u8],
        timeout: Option<Span>,
    ) -> Result<(), ViplError> {
        let (local, remote) = (self.address(local), self.address(remote));
        let timeout = milliseconds(timeout);
        // SAFETY: addresses.
        result(unsafe { VipConnectPeerRequest(self.handle(vi.0), at(&local), at(&remote), timeout) })
    }

    fn connect_result(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        let mut found = NO_ATTRIBUTES;
        // SAFETY: a place.
        result(unsafe { VipConnectPeerDone(self.handle(vi.0), &raw mut found) })?;
        Ok(attributes_of(&found))
    }

    async fn connect_peer_wait(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        let mut found = NO_ATTRIBUTES;
        // SAFETY: a place.
        result(unsafe { VipConnectPeerWait(self.handle(vi.0), &raw mut found) })?;
        Ok(attributes_of(&found))
    }

    fn disconnect(&mut self, vi: ViHandle) -> Result<(), ViplError> {
        result(VipDisconnect(self.handle(vi.0)))
    }

    fn ns_init(&mut self, hosts: &[(&str, HostAddress)]) -> Result<(), ViplError> {
        let line = |(name, host): &(&str, HostAddress)| {
            let digits: String = host.0.iter().map(|octet| format!("{octet:02x}")).collect();
            format!("{digits} {name}\n")
        };
        let text = CString::new(hosts.iter().map(line).collect::<String>()).expect("no zero in it");
        // SAFETY: it ends in a zero.
        result(unsafe { VipNSInit(self.nic, text.as_ptr()) })
    }

    fn ns_get_host_by_name(&mut self, name: &str, number: usize) -> Result<HostAddress, ViplError> {
        let name = CString::new(name).expect("no zero in it");
        let mut found = [0_u64; 2];
        // SAFETY: it ends in a zero; there is room for a host.
        result(unsafe {
            VipNSGetHostByName(self.nic, name.as_ptr(), found.as_mut_ptr().cast(), number as c_ulong)
        })?;
        let octets: Vec<u8> = found.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(HostAddress(octets[4..10].try_into().expect("six octets")))
    }

    fn ns_get_host_by_addr(&mut self, host: HostAddress) -> Result<String, ViplError> {
        let address = net_address(host, &[]);
        let mut name = [0_u8; 64];
        let mut length = name.len() as c_ulong;
        // SAFETY: an address, and so much room.
        result(unsafe {
            VipNSGetHostByAddr(self.nic, at(&address), name.as_mut_ptr().cast(), &raw mut length)
        })?;
        Ok(CStr::from_bytes_until_nul(&name).expect("a zero").to_str().expect("letters").into())
    }

    fn ns_shutdown(&mut self) -> Result<(), ViplError> {
        result(VipNSShutdown(self.nic))
    }
}
