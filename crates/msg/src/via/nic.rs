//! The provider: the calls of VIPL that do not wait, and the machine behind them.

use alloc::collections::{BTreeMap, VecDeque};

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::attributes::{Emulation, MemoryAttributes, NicAttributes, ViAttributes};
use super::connection::{Request, Waiting};
use super::descriptor::{CONTROL_SEGMENT, ControlSegment, DATA_SEGMENT};
use super::memory::{Access, Memory};
use super::names::Names;
use super::vi::{Completion, Outcome, Place, Posted, QueueKind, Vi, ViState, operation_bits};
use super::{
    Body, CqHandle, Descriptor, FormatError, MemoryHandle, Packet, Ptag, ViHandle, ViplError, send, status,
};

/// Descriptors lie on multiples of this.
pub const DESCRIPTOR_ALIGNMENT: u64 = 64;

/// `VIP_ERROR_CODE`: errors that no descriptor can tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorCode {
    /// The descriptor posted is not on a multiple of 64 octets, or not in memory of its VI.
    PostDescriptor,
    /// The connection was lost.
    ConnectionLost,
    /// A message came, and no receive was posted.
    ReceiveQueueEmpty,
    /// More descriptors were posted than a queue takes, or completed than a completion queue takes.
    Overrun,
    /// An RDMA write came to memory that may not be written.
    RdmaWriteProtection,
    /// An RDMA write of an unreliable connection came damaged ([`Nic::handle_damaged`]).
    RdmaWriteData,
    /// Part of an RDMA write came.
    RdmaWriteAbort,
    /// An RDMA read came to memory that may not be read.
    RdmaReadProtection,
    /// The status of a descriptor could not be written: its memory is not registered any more.
    CompletionProtection,
    /// A connection was lost in the middle of an RDMA write that came, or of the answer to an RDMA read.
    RdmaTransport,
    /// Nothing works any more ([`Nic::handle_failure`]).
    Catastrophic,
}

/// What an error is about (`VIP_RESOURCE_CODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The NIC itself.
    Nic,
    /// A VI.
    Vi(ViHandle),
    /// A completion queue.
    Cq(CqHandle),
    /// A descriptor of a VI.
    Descriptor(ViHandle, Place),
}

/// What the error handler of `VipErrorCallback` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsynchronousError {
    /// What about.
    pub resource: Resource,
    /// The code of the error.
    pub code: ErrorCode,
}

/// Octets of the packet at hand go into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// Where to.
    pub address: u64,
    /// Which octet of the packet's data is the first.
    pub from: u32,
    /// Octets.
    pub length: u32,
}

/// What the driver writes into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Data of the packet last handed in.
    Deposit(Deposit),
    /// Immediate data, length and status of a descriptor: [`Delivery::COMPLETION_AT`] octets behind its
    /// beginning.
    Complete(Completion),
}

impl Delivery {
    /// Where in a descriptor the fields begin that a provider fills in.
    pub const COMPLETION_AT: u64 = 20;

    /// The octets to write there.
    pub fn completion_octets(completion: &Completion) -> [u8; 12] {
        let Outcome { status, length, immediate } = completion.outcome;
        ControlSegment { segments: 0, control: 0, immediate, length, status }.completion()
    }
}

/// What the consumer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A descriptor is done.
    Completed(ViHandle, QueueKind),
    /// The handler of `VipSendNotify` or `VipRecvNotify` is called with this descriptor, off its queue.
    Notified(ViHandle, QueueKind, Completion),
    /// The handler of `VipCQNotify` is called.
    CqNotified(CqHandle, ViHandle, QueueKind),
    /// The handler of `VipErrorCallback` is called.
    Asynchronous(AsynchronousError),
    /// A request for a connection was answered, or is over: `connect_result` tells how.
    Answered(ViHandle),
    /// Somebody asks for a connection: `poll_wait` tells who.
    Asked,
}

/// Outputs of a NIC.
pub type NicOutput = Output<Packet, Delivery, Event>;

/// Why nothing was taken off a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneError {
    /// `VIP_NOT_DONE`.
    NotDone,
    /// `VIP_DESCRIPTOR_ERROR` with no descriptor: the queue is empty.
    Empty,
    /// `VIP_DESCRIPTOR_ERROR`: it was taken off, and is in error.
    Failed(Completion),
    /// `VIP_INVALID_PARAMETER`: no such VI.
    NoSuchVi,
}

impl From<DoneError> for ViplError {
    fn from(error: DoneError) -> Self {
        match error {
            DoneError::NotDone => Self::NotDone,
            DoneError::Empty | DoneError::Failed(_) => Self::DescriptorError,
            DoneError::NoSuchVi => Self::InvalidParameter,
        }
    }
}

/// What was not worth an error to anyone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Packets for no connection.
    pub strays: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that were behind a gap.
    pub out_of_order: u64,
    /// Messages of which a part was lost on an unreliable connection.
    pub broken: u64,
    /// Messages rejected on an unreliable connection.
    pub refused: u64,
    /// Packets sent again.
    pub resent: u64,
    /// Packets that came damaged.
    pub damaged: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct CompletionQueue {
    entries: VecDeque<(ViHandle, QueueKind)>,
    capacity: u32,
    notify: bool,
}

/// All of a NIC but its VIs.
#[derive(Debug)]
pub(crate) struct Common {
    pub attributes: NicAttributes,
    pub memory: Memory,
    pub outputs: VecDeque<NicOutput>,
    pub counters: NicCounters,
    cqs: BTreeMap<u32, CompletionQueue>,
}

/// One NIC of one process.
#[derive(Debug)]
pub struct Nic {
    pub(crate) common: Common,
    pub(crate) vis: BTreeMap<u32, Vi>,
    pub(crate) waits: BTreeMap<u32, Waiting>,
    pub(crate) requests: BTreeMap<u32, Request>,
    pub(crate) next_handle: u32,
    pub(crate) names: Names,
    /// The device has broken down.
    pub(crate) failed: bool,
    /// VIs whose timers may have changed are looked at only when asked: how many run.
    next_vi: u32,
    next_cq: u32,
}

impl Common {
    pub fn work(&mut self, kind: WorkKind, bytes: u64, count: u32) {
        self.outputs.push_back(Output::Work(Work { kind, bytes: Bytes::new(bytes), count }));
    }

    pub fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub fn transmit(&mut self, packet: Packet) {
        self.outputs.push_back(Output::Transmit(packet));
    }

    pub fn error(&mut self, vi: ViHandle, code: ErrorCode) {
        self.event(Event::Asynchronous(AsynchronousError { resource: Resource::Vi(vi), code }));
    }

    /// A packet to the remote end of a connection.
    pub fn packet(&self, vi: &Vi, body: Body) -> Option<Packet> {
        let peer = vi.peer?;
        let from = self.attributes.local;
        Some(Packet { to: peer.host, from, to_vi: peer.vi, from_vi: vi.handle, body })
    }

    /// Tells of everything that is done at the head of a queue.
    pub fn publish(&mut self, vi: &mut Vi, kind: QueueKind) {
        let (handle, tag) = (vi.handle, vi.attributes.ptag);
        let queue = vi.queue(kind);
        while let Some(completion) = queue.publish() {
            let Place { address, handle: memory } = completion.place;
            if self.memory.check(address, CONTROL_SEGMENT as u64, memory, tag, Access::Local).is_ok() {
                self.outputs.push_back(Output::Deliver(Delivery::Complete(completion)));
            } else {
                let resource = Resource::Descriptor(handle, completion.place);
                let code = ErrorCode::CompletionProtection;
                self.event(Event::Asynchronous(AsynchronousError { resource, code }));
            }
            if let Some(cq) = queue.cq {
                self.publish_to(cq, handle, kind);
            }
            if core::mem::take(&mut queue.notify) {
                let taken = queue.take().expect("it was published just now");
                self.event(Event::Notified(handle, kind, taken));
            } else {
                self.event(Event::Completed(handle, kind));
            }
        }
    }

    fn publish_to(&mut self, handle: CqHandle, vi: ViHandle, kind: QueueKind) {
        let Some(cq) = self.cqs.get_mut(&handle.0) else { return };
        if core::mem::take(&mut cq.notify) {
            return self.event(Event::CqNotified(handle, vi, kind));
        }
        if cq.entries.len() < cq.capacity as usize {
            return cq.entries.push_back((vi, kind));
        }
        // Choice: the specification leaves it to the consumer to make it large enough. The entry is lost.
        let resource = Resource::Cq(handle);
        self.event(Event::Asynchronous(AsynchronousError { resource, code: ErrorCode::Overrun }));
    }

    /// A descriptor is done.
    pub fn finish(&mut self, vi: &mut Vi, kind: QueueKind, number: u64, outcome: Outcome) {
        vi.queue(kind).finish(number, outcome);
        self.publish(vi, kind);
    }

    /// A descriptor is done, in error.
    pub fn finish_in_error(&mut self, vi: &mut Vi, kind: QueueKind, number: u64, error: u32) {
        let operation = vi.queue(kind).get(number).map_or(0, |posted| operation_bits(posted, kind));
        let outcome = Outcome { status: status::DONE | error | operation, length: 0, immediate: 0 };
        self.finish(vi, kind, number, outcome);
    }

    /// The connection ends: everything posted is flushed, and the state is this.
    pub fn end(&mut self, vi: &mut Vi, state: ViState) {
        vi.gone(state);
        self.publish(vi, QueueKind::Send);
        self.publish(vi, QueueKind::Receive);
    }

    /// The connection is lost by an error at this end: the remote end is told, and the consumer.
    pub fn lose(&mut self, vi: &mut Vi, tell: Body, code: Option<ErrorCode>) {
        if let Some(packet) = self.packet(vi, tell) {
            self.transmit(packet);
        }
        if let Some(code) = code {
            self.error(vi.handle, code);
        }
        self.lost(vi);
    }

    /// The connection is lost: the consumer is told, also of an RDMA operation of the remote end that this breaks
    /// off, for which no descriptor here stands.
    pub fn lost(&mut self, vi: &mut Vi) {
        if vi.serves_rdma() {
            self.error(vi.handle, ErrorCode::RdmaTransport);
        }
        self.end(vi, ViState::Error);
        self.error(vi.handle, ErrorCode::ConnectionLost);
    }
}

impl Nic {
    /// `VipOpenNic`.
    pub fn new(attributes: NicAttributes) -> Self {
        let common = Common {
            attributes,
            memory: Memory::default(),
            outputs: VecDeque::new(),
            counters: NicCounters::default(),
            cqs: BTreeMap::new(),
        };
        let (vis, waits, requests) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (names, failed) = (Names::default(), false);
        Self { common, vis, waits, requests, next_handle: 0, names, failed, next_vi: 0, next_cq: 0 }
    }

    /// `VipQueryNic`.
    pub const fn attributes(&self) -> &NicAttributes {
        &self.common.attributes
    }

    /// What was counted: what `VipQuerySystemManagementInfo` tells of this provider.
    pub const fn counters(&self) -> NicCounters {
        self.common.counters
    }

    /// The memory that is registered.
    pub const fn memory(&self) -> &Memory {
        &self.common.memory
    }

    /// `VipCloseNic`: every connection is ended, every descriptor flushed.
    pub fn close(&mut self, now: SimTime) {
        let handles: alloc::vec::Vec<u32> = self.vis.keys().copied().collect();
        for handle in handles {
            self.disconnect(now, ViHandle(handle)).expect("a VI of this NIC");
        }
        self.waits.clear();
        self.requests.clear();
        self.names = Names::default();
    }

    /// The device has broken down for good: the consumer is told, every connection is lost, what is asked for or
    /// waited for comes to nothing, and no connection is made any more.
    pub fn handle_failure(&mut self) {
        if core::mem::replace(&mut self.failed, true) {
            return;
        }
        let error = AsynchronousError { resource: Resource::Nic, code: ErrorCode::Catastrophic };
        self.common.event(Event::Asynchronous(error));
        for vi in self.vis.values_mut() {
            match vi.state {
                ViState::Connected => self.common.lost(vi),
                ViState::ConnectPending => {
                    vi.answered(Err(ViplError::NotReachable));
                    self.common.event(Event::Answered(vi.handle));
                }
                ViState::Idle | ViState::Error => {}
            }
        }
        for waiting in self.waits.values_mut() {
            waiting.fail();
        }
    }

    /// The next thing to be done.
    pub fn poll_output(&mut self) -> NicOutput {
        self.common.outputs.pop_front().unwrap_or_else(|| {
            let waits = self.waits.values().filter_map(Waiting::due);
            Output::Timeout(self.vis.values().filter_map(Vi::due).chain(waits).min())
        })
    }

    /// The name service.
    pub const fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// `VipCreatePtag`.
    ///
    /// # Errors
    /// [`ViplError::ErrorResource`] if there are too many.
    pub fn create_ptag(&mut self) -> Result<Ptag, ViplError> {
        self.common.memory.create_tag(&self.common.attributes)
    }

    /// `VipDestroyPtag`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], or [`ViplError::ErrorResource`] while a VI or a region has it.
    pub fn destroy_ptag(&mut self, tag: Ptag) -> Result<(), ViplError> {
        let in_use = self.vis.values().any(|vi| vi.attributes.ptag == tag);
        self.common.memory.destroy_tag(tag, in_use)
    }

    /// `VipRegisterMem`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for no octets, or past the end of the address space;
    /// [`ViplError::InvalidPtag`], [`ViplError::InvalidRdmaread`], [`ViplError::ErrorResource`].
    pub fn register_mem(
        &mut self,
        address: u64,
        length: u64,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        let common = &mut self.common;
        let handle = common.memory.register(&common.attributes, address, length, attributes)?;
        common.work(WorkKind::RegisterMemory, length, 1);
        Ok(handle)
    }

    /// `VipDeregisterMem`: descriptors that still name it will fail.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] if it is not what was registered.
    pub fn deregister_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<(), ViplError> {
        let length = self.common.memory.deregister(address, handle)?;
        self.common.work(WorkKind::DeregisterMemory, length, 1);
        Ok(())
    }

    /// `VipQueryMem`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn query_mem(&self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError> {
        self.common.memory.attributes(address, handle)
    }

    /// `VipSetMemAttributes`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidPtag`], [`ViplError::InvalidRdmaread`].
    pub fn set_mem_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        self.common.memory.set_attributes(&self.common.attributes, address, handle, attributes)
    }

    fn check_vi_attributes(&self, attributes: &ViAttributes) -> Result<(), ViplError> {
        let common = &self.common;
        let has_cq = |cq: CqHandle| common.cqs.contains_key(&cq.0);
        attributes.check(&common.attributes, &common.memory, has_cq)
    }

    /// `VipCreateVi`.
    ///
    /// # Errors
    /// The code of the attribute that is not supported, [`ViplError::InvalidParameter`] for a completion
    /// queue that is none, [`ViplError::ErrorResource`] if there are too many.
    pub fn create_vi(&mut self, attributes: ViAttributes) -> Result<ViHandle, ViplError> {
        self.check_vi_attributes(&attributes)?;
        if self.vis.len() >= self.common.attributes.max_vi as usize {
            return Err(ViplError::ErrorResource);
        }
        self.next_vi += 1;
        let handle = ViHandle(self.next_vi);
        self.vis.insert(handle.0, Vi::new(handle, attributes));
        Ok(handle)
    }

    /// `VipDestroyVi`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless it is idle,
    /// [`ViplError::ErrorResource`] while descriptors are on its queues.
    pub fn destroy_vi(&mut self, handle: ViHandle) -> Result<(), ViplError> {
        let vi = self.vis.get(&handle.0).ok_or(ViplError::InvalidParameter)?;
        if vi.state != ViState::Idle {
            return Err(ViplError::InvalidState);
        }
        if vi.send.len() + vi.receive.len() > 0 {
            return Err(ViplError::ErrorResource);
        }
        self.vis.remove(&handle.0);
        Ok(())
    }

    /// `VipQueryVi`: its state and attributes, and whether its queues are empty (send, receive).
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn query_vi(&self, handle: ViHandle) -> Result<(ViState, ViAttributes, bool, bool), ViplError> {
        let vi = self.vis.get(&handle.0).ok_or(ViplError::InvalidParameter)?;
        Ok((vi.state, vi.attributes, vi.send.len() == 0, vi.receive.len() == 0))
    }

    /// `VipSetViAttributes`; the completion queues stay as they are.
    ///
    /// # Errors
    /// As for [`Nic::create_vi`], and [`ViplError::InvalidState`] unless it is idle.
    pub fn set_vi_attributes(&mut self, handle: ViHandle, attributes: ViAttributes) -> Result<(), ViplError> {
        let vi = self.vis.get(&handle.0).ok_or(ViplError::InvalidParameter)?;
        if vi.state != ViState::Idle {
            return Err(ViplError::InvalidState);
        }
        let ViAttributes { send_cq, receive_cq, .. } = vi.attributes;
        let attributes = ViAttributes { send_cq, receive_cq, ..attributes };
        self.check_vi_attributes(&attributes)?;
        if let Some(vi) = self.vis.get_mut(&handle.0) {
            vi.attributes = attributes;
        }
        Ok(())
    }

    /// `VipPostSend`: `octets` is what lies at `place`, as far as the memory goes.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] if there is no such VI. All else is told by the descriptor, or as
    /// an asynchronous error.
    pub fn post_send(
        &mut self,
        now: SimTime,
        vi: ViHandle,
        place: Place,
        octets: &[u8],
    ) -> Result<(), ViplError> {
        let descriptor = Descriptor::parse(octets, self.common.attributes.max_segments);
        self.post(now, vi, QueueKind::Send, place, descriptor)
    }

    /// `VipPostRecv`, likewise.
    ///
    /// # Errors
    /// As for [`Nic::post_send`].
    pub fn post_recv(
        &mut self,
        now: SimTime,
        vi: ViHandle,
        place: Place,
        octets: &[u8],
    ) -> Result<(), ViplError> {
        let descriptor = Descriptor::parse(octets, self.common.attributes.max_segments);
        self.post(now, vi, QueueKind::Receive, place, descriptor)
    }

    /// The same for a descriptor that was read already, or that no octets stand for.
    ///
    /// # Errors
    /// As for [`Nic::post_send`].
    pub fn post(
        &mut self,
        now: SimTime,
        handle: ViHandle,
        kind: QueueKind,
        place: Place,
        descriptor: Result<Descriptor, FormatError>,
    ) -> Result<(), ViplError> {
        let vi = self.vis.get_mut(&handle.0).ok_or(ViplError::InvalidParameter)?;
        let common = &mut self.common;
        let doorbell = match common.attributes.emulation {
            Emulation::Adapter => WorkKind::Doorbell,
            Emulation::Kernel => WorkKind::FastTrap,
        };
        common.work(doorbell, 0, 1);
        let segments = descriptor
            .as_ref()
            .map_or(0, |descriptor| descriptor.data.len() + usize::from(descriptor.remote.is_some()));
        let octets = (CONTROL_SEGMENT + segments * DATA_SEGMENT) as u64;
        let tag = vi.attributes.ptag;
        let reached = common.memory.check(place.address, octets, place.handle, tag, Access::Local).is_ok();
        let fault = if !place.address.is_multiple_of(DESCRIPTOR_ALIGNMENT) || !reached {
            Some((Resource::Descriptor(handle, place), ErrorCode::PostDescriptor))
        } else if vi.queue(kind).len() >= common.attributes.max_descriptors as usize {
            Some((Resource::Vi(handle), ErrorCode::Overrun))
        } else {
            None
        };
        if let Some((resource, code)) = fault {
            // Choice: the provider does not know what was meant, so the connection does not go on.
            common.event(Event::Asynchronous(AsynchronousError { resource, code }));
            if vi.state == ViState::Connected {
                common.lose(vi, Body::Disconnect, None);
            }
            return Ok(());
        }
        let number = vi.queue(kind).push(Posted { place, descriptor, outcome: None });
        match (vi.state, kind) {
            (ViState::Connected, QueueKind::Send) => send::process(common, now, vi),
            (ViState::Connected | ViState::Idle | ViState::ConnectPending, QueueKind::Receive) => {}
            (ViState::Error, _) | (_, QueueKind::Send) => {
                common.finish_in_error(vi, kind, number, status::FLUSHED_ERROR);
            }
        }
        Ok(())
    }

    /// `VipSendDone`: takes the head off the send queue if it is done.
    ///
    /// # Errors
    /// [`DoneError`].
    pub fn send_done(&mut self, vi: ViHandle) -> Result<Completion, DoneError> {
        self.done(vi, QueueKind::Send)
    }

    /// `VipRecvDone`.
    ///
    /// # Errors
    /// [`DoneError`].
    pub fn recv_done(&mut self, vi: ViHandle) -> Result<Completion, DoneError> {
        self.done(vi, QueueKind::Receive)
    }

    /// Either.
    ///
    /// # Errors
    /// [`DoneError`].
    pub fn done(&mut self, vi: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        let vi = self.vis.get_mut(&vi.0).ok_or(DoneError::NoSuchVi)?;
        let queue = vi.queue(kind);
        if queue.len() == 0 {
            return Err(DoneError::Empty);
        }
        match queue.take() {
            None => Err(DoneError::NotDone),
            Some(completion) if completion.is_success() => Ok(completion),
            Some(completion) => Err(DoneError::Failed(completion)),
        }
    }

    /// `VipSendNotify`, `VipRecvNotify`: the next descriptor done is taken off and told of once.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn notify(&mut self, handle: ViHandle, kind: QueueKind) -> Result<(), ViplError> {
        let vi = self.vis.get_mut(&handle.0).ok_or(ViplError::InvalidParameter)?;
        match vi.queue(kind).take() {
            Some(taken) => self.common.event(Event::Notified(handle, kind, taken)),
            None => vi.queue(kind).notify = true,
        }
        Ok(())
    }

    /// `VipCreateCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for none or too many entries, [`ViplError::ErrorResource`].
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, ViplError> {
        if entries == 0 || entries > self.common.attributes.max_cq_entries {
            return Err(ViplError::InvalidParameter);
        }
        if self.common.cqs.len() >= self.common.attributes.max_cq as usize {
            return Err(ViplError::ErrorResource);
        }
        self.next_cq += 1;
        let queue = CompletionQueue { entries: VecDeque::new(), capacity: entries, notify: false };
        self.common.cqs.insert(self.next_cq, queue);
        Ok(CqHandle(self.next_cq))
    }

    /// `VipResizeCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], also for fewer than wait in it.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), ViplError> {
        let most = self.common.attributes.max_cq_entries;
        let queue = self.common.cqs.get_mut(&cq.0).ok_or(ViplError::InvalidParameter)?;
        if entries == 0 || entries > most || (entries as usize) < queue.entries.len() {
            return Err(ViplError::InvalidParameter);
        }
        queue.capacity = entries;
        Ok(())
    }

    /// `VipDestroyCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], or [`ViplError::ErrorResource`] while a VI is bound to it.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), ViplError> {
        if !self.common.cqs.contains_key(&cq.0) {
            return Err(ViplError::InvalidParameter);
        }
        if self.vis.values().any(|vi| vi.send.cq == Some(cq) || vi.receive.cq == Some(cq)) {
            return Err(ViplError::ErrorResource);
        }
        self.common.cqs.remove(&cq.0);
        Ok(())
    }

    /// `VipCQDone`: which queue has a descriptor that is done.
    ///
    /// # Errors
    /// [`ViplError::NotDone`], [`ViplError::InvalidParameter`].
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<(ViHandle, QueueKind), ViplError> {
        let queue = self.common.cqs.get_mut(&cq.0).ok_or(ViplError::InvalidParameter)?;
        queue.entries.pop_front().ok_or(ViplError::NotDone)
    }

    /// `VipCQNotify`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn cq_notify(&mut self, cq: CqHandle) -> Result<(), ViplError> {
        let queue = self.common.cqs.get_mut(&cq.0).ok_or(ViplError::InvalidParameter)?;
        match queue.entries.pop_front() {
            Some((vi, kind)) => self.common.event(Event::CqNotified(cq, vi, kind)),
            None => queue.notify = true,
        }
        Ok(())
    }
}
