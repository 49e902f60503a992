//! VIPL over a device: the calls that read and write memory, and those that wait.
//!
//! A device is memory and a network with one other NIC. In a live world its futures are ready at their
//! first poll; in a simulated one they are pending while others have their turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::{SimTime, Span};

use super::attributes::RemoteAttributes;
use super::connection::Asked;
use super::descriptor::{CONTROL_SEGMENT, DATA_SEGMENT};
use super::nic::{AsynchronousError, Delivery, DoneError, Event, Nic};
use super::vi::{Completion, Place, QueueKind};
use super::{
    Address, CqHandle, DataSegment, Descriptor, HostAddress, MemoryAttributes, MemoryHandle, NicAttributes,
    Packet, Ptag, ViHandle, ViplError,
};

/// Nothing can happen any more: the other process has gone, or all wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

impl From<Stuck> for ViplError {
    fn from(_: Stuck) -> Self {
        Self::NotReachable
    }
}

/// What comes from the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The octets of a packet.
    Packet(Vec<u8>),
    /// Those of one whose head is whole and whose data are not.
    Damaged(Vec<u8>),
    /// The mark of [`Vipl::meet`].
    Mark,
    /// Nothing: a time has come.
    Time,
}

/// A network of two NICs, seen from one of them.
#[allow(async_fn_in_trait)] // used through static generics only; no future crosses a thread
pub trait Device {
    /// The time.
    fn now(&self) -> SimTime;

    /// Sends the octets of a packet.
    ///
    /// # Errors
    /// [`Stuck`].
    fn transmit(&mut self, octets: Vec<u8>) -> Result<(), Stuck>;

    /// Sends a mark behind everything before it.
    ///
    /// # Errors
    /// [`Stuck`].
    fn mark(&mut self) -> Result<(), Stuck>;

    /// Waits for what comes next, until a time at most; `None` is for ever.
    ///
    /// # Errors
    /// [`Stuck`].
    async fn arrival(&mut self, until: Option<SimTime>) -> Result<Arrival, Stuck>;

    /// The address of the NIC at the other end.
    fn remote(&self) -> HostAddress;
}

/// Where the memory of a process begins.
const BASE: u64 = 0x10_0000;

/// One process with one NIC.
#[derive(Debug)]
pub struct Vipl<D> {
    device: D,
    nic: Nic,
    memory: Vec<u8>,
    events: VecDeque<Event>,
    errors: VecDeque<AsynchronousError>,
    timer: Option<SimTime>,
    marks: u64,
}

impl<D: Device> Vipl<D> {
    /// `VipOpenNic`.
    pub fn open(device: D, attributes: NicAttributes) -> Self {
        Self {
            device,
            nic: Nic::new(attributes),
            memory: Vec::new(),
            events: VecDeque::new(),
            errors: VecDeque::new(),
            timer: None,
            marks: 0,
        }
    }

    /// `VipCloseNic`, and the device for another.
    ///
    /// # Errors
    /// [`ViplError::NotReachable`].
    pub fn close(mut self) -> Result<D, ViplError> {
        self.nic.close(self.device.now());
        self.settle(&[])?;
        Ok(self.device)
    }

    /// The provider: what neither reads or names memory, nor sends, nor waits, may be called on it.
    pub const fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    /// The device.
    pub const fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// New memory on a multiple of 64 octets.
    pub fn allocate(&mut self, octets: usize) -> u64 {
        let at = self.memory.len().next_multiple_of(64);
        self.memory.resize(at + octets, 0);
        BASE + at as u64
    }

    /// Writes into memory.
    ///
    /// # Panics
    /// If it is not memory of this process.
    pub fn write(&mut self, address: u64, octets: &[u8]) {
        let at = self.place(address, octets.len()).expect("memory of this process");
        self.memory[at..at + octets.len()].copy_from_slice(octets);
    }

    /// Reads memory.
    ///
    /// # Panics
    /// If it is not memory of this process.
    pub fn read(&self, address: u64, octets: usize) -> &[u8] {
        let at = self.place(address, octets).expect("memory of this process");
        &self.memory[at..at + octets]
    }

    fn place(&self, address: u64, octets: usize) -> Option<usize> {
        let at = usize::try_from(address.checked_sub(BASE)?).ok()?;
        (at.checked_add(octets)? <= self.memory.len()).then_some(at)
    }

    /// The errors that the handler of `VipErrorCallback` was called with.
    pub fn take_errors(&mut self) -> Vec<AsynchronousError> {
        self.errors.drain(..).collect()
    }

    /// Everything else that was told, oldest first.
    pub fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// `VipRegisterMem`.
    ///
    /// # Errors
    /// As for [`Nic::register_mem`]; [`ViplError::InvalidParameter`] for what is not memory.
    pub fn register(
        &mut self,
        address: u64,
        octets: usize,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        if self.place(address, octets).is_none() {
            return Err(ViplError::InvalidParameter);
        }
        self.nic.register_mem(address, octets as u64, attributes)
    }

    /// New memory, registered with a tag, that remote ends may write and, if the NIC can, read.
    ///
    /// # Errors
    /// As for [`Vipl::register`].
    pub fn allocate_registered(&mut self, octets: usize, ptag: Ptag) -> Result<DataSegment, ViplError> {
        let address = self.allocate(octets);
        let enable_rdma_read = self.nic.attributes().rdma_read != super::ReliabilitySupport::NONE;
        let attributes = MemoryAttributes { ptag, enable_rdma_write: true, enable_rdma_read };
        let handle = self.register(address, octets, attributes)?;
        Ok(DataSegment { address, handle, length: octets as u32 })
    }

    /// Writes a descriptor into memory and posts it on a queue.
    ///
    /// # Errors
    /// As for [`Vipl::post_send`].
    pub fn post(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        place: Place,
        descriptor: &Descriptor,
    ) -> Result<(), ViplError> {
        self.write(place.address, &descriptor.emit());
        match kind {
            QueueKind::Send => self.post_send(vi, place),
            QueueKind::Receive => self.post_recv(vi, place),
        }
    }

    /// `VipPostSend` of the descriptor that lies there.
    ///
    /// # Errors
    /// As for [`Nic::post_send`], and [`ViplError::NotReachable`].
    pub fn post_send(&mut self, vi: ViHandle, place: Place) -> Result<(), ViplError> {
        let octets = self.descriptor_octets(place);
        self.nic.post_send(self.device.now(), vi, place, &octets)?;
        Ok(self.settle(&[])?)
    }

    /// `VipPostRecv`.
    ///
    /// # Errors
    /// As for [`Vipl::post_send`].
    pub fn post_recv(&mut self, vi: ViHandle, place: Place) -> Result<(), ViplError> {
        let octets = self.descriptor_octets(place);
        self.nic.post_recv(self.device.now(), vi, place, &octets)?;
        Ok(self.settle(&[])?)
    }

    /// What lies there, as far as the longest descriptor goes and memory does.
    fn descriptor_octets(&self, place: Place) -> Vec<u8> {
        let longest = CONTROL_SEGMENT + usize::from(self.nic.attributes().max_segments) * DATA_SEGMENT;
        let at = self.place(place.address, 0).unwrap_or(self.memory.len());
        self.memory[at..self.memory.len().min(at + longest)].to_vec()
    }

    /// `VipSendWait` or `VipRecvWait`.
    ///
    /// # Errors
    /// [`ViplError::Timeout`]; [`ViplError::DescriptorError`] if the queue is empty;
    /// [`ViplError::InvalidParameter`], [`ViplError::NotReachable`]. A descriptor in error is returned as
    /// one.
    pub async fn wait(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        timeout: Option<Span>,
    ) -> Result<Completion, ViplError> {
        let until = timeout.map(|span| self.device.now().saturating_add(span));
        loop {
            match self.nic.done(vi, kind) {
                Ok(completion) | Err(DoneError::Failed(completion)) => return Ok(completion),
                Err(DoneError::NotDone) => self.turn(until).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// `VipCQWait`.
    ///
    /// # Errors
    /// [`ViplError::Timeout`], [`ViplError::InvalidParameter`], [`ViplError::NotReachable`].
    pub async fn cq_wait(
        &mut self,
        cq: CqHandle,
        timeout: Option<Span>,
    ) -> Result<(ViHandle, QueueKind), ViplError> {
        let until = timeout.map(|span| self.device.now().saturating_add(span));
        loop {
            match self.nic.cq_done(cq) {
                Err(ViplError::NotDone) => self.turn(until).await?,
                done => return done,
            }
        }
    }

    /// `VipConnectWait`.
    ///
    /// # Errors
    /// [`ViplError::Timeout`], [`ViplError::InvalidParameter`], [`ViplError::NotReachable`].
    pub async fn connect_wait(
        &mut self,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<Asked, ViplError> {
        let wait = self.nic.connect_wait(self.device.now(), discriminator, timeout)?;
        self.settle(&[])?;
        loop {
            match self.nic.poll_wait(wait) {
                Err(ViplError::NotDone) => self.turn(None).await?,
                done => return done,
            }
        }
    }

    /// `VipConnectAccept`.
    ///
    /// # Errors
    /// As for [`Nic::connect_accept`], and [`ViplError::NotReachable`].
    pub fn connect_accept(&mut self, asked: &Asked, vi: ViHandle) -> Result<(), ViplError> {
        self.nic.connect_accept(self.device.now(), asked.connection, vi)?;
        Ok(self.settle(&[])?)
    }

    /// `VipConnectReject`.
    ///
    /// # Errors
    /// As for [`Nic::connect_reject`], and [`ViplError::NotReachable`].
    pub fn connect_reject(&mut self, asked: &Asked) -> Result<(), ViplError> {
        self.nic.connect_reject(self.device.now(), asked.connection)?;
        Ok(self.settle(&[])?)
    }

    /// `VipConnectRequest` to whoever waits at the remote NIC with this discriminator.
    ///
    /// # Errors
    /// As for [`Nic::connect_request`] and [`Nic::connect_result`], and [`ViplError::NotReachable`].
    pub async fn connect_request(
        &mut self,
        vi: ViHandle,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<RemoteAttributes, ViplError> {
        let remote = Address { host: self.device.remote(), discriminator: discriminator.to_vec() };
        self.nic.connect_request(self.device.now(), vi, b"", &remote, timeout)?;
        self.connect_peer_wait(vi).await
    }

    /// `VipConnectPeerRequest`: [`Nic::connect_result`] is `VipConnectPeerDone`.
    ///
    /// # Errors
    /// As for [`Nic::connect_peer_request`], and [`ViplError::NotReachable`].
    pub fn connect_peer_request(
        &mut self,
        vi: ViHandle,
        local: &[u8],
        remote: &[u8],
        timeout: Option<Span>,
    ) -> Result<(), ViplError> {
        let remote = Address { host: self.device.remote(), discriminator: remote.to_vec() };
        self.nic.connect_peer_request(self.device.now(), vi, local, &remote, timeout)?;
        Ok(self.settle(&[])?)
    }

    /// `VipConnectPeerWait`.
    ///
    /// # Errors
    /// As for [`Nic::connect_result`], and [`ViplError::NotReachable`].
    pub async fn connect_peer_wait(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        self.settle(&[])?;
        loop {
            match self.nic.connect_result(vi) {
                Err(ViplError::NotDone) => self.turn(None).await?,
                done => return done,
            }
        }
    }

    /// `VipDisconnect`.
    ///
    /// # Errors
    /// As for [`Nic::disconnect`], and [`ViplError::NotReachable`].
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ViplError> {
        self.nic.disconnect(self.device.now(), vi)?;
        Ok(self.settle(&[])?)
    }

    /// Waits until the other process calls this too; all that it sent before is here then.
    ///
    /// # Errors
    /// [`ViplError::NotReachable`].
    pub async fn meet(&mut self) -> Result<(), ViplError> {
        self.settle(&[])?;
        if let Err(stuck) = self.device.mark() {
            return Err(self.broken_down(stuck)?);
        }
        while self.marks == 0 {
            self.turn(None).await?;
        }
        self.marks -= 1;
        Ok(())
    }

    /// Lets one thing happen.
    ///
    /// # Errors
    /// [`ViplError::Timeout`] once the time has come, [`ViplError::NotReachable`].
    pub async fn turn(&mut self, until: Option<SimTime>) -> Result<(), ViplError> {
        self.settle(&[])?;
        let wake = [until, self.timer].into_iter().flatten().min();
        let arrival = match self.device.arrival(wake).await {
            Ok(arrival) => arrival,
            Err(stuck) => return Err(self.broken_down(stuck)?),
        };
        match arrival {
            Arrival::Packet(octets) => {
                // What is no packet of ours is not looked at.
                if let Ok((packet, data)) = Packet::parse(&octets) {
                    self.nic.handle_packet(self.device.now(), &packet);
                    self.settle(data)?;
                }
            }
            Arrival::Damaged(octets) => {
                if let Ok((packet, _)) = Packet::parse(&octets) {
                    self.nic.handle_damaged(&packet);
                    self.settle(&[])?;
                }
            }
            Arrival::Mark => self.marks += 1,
            Arrival::Time => {
                let now = self.device.now();
                if self.timer.is_some_and(|timer| timer <= now) {
                    self.nic.handle_timeout(now);
                    self.settle(&[])?;
                } else if until.is_some_and(|until| until <= now) {
                    return Err(ViplError::Timeout);
                }
            }
        }
        Ok(())
    }

    /// The device is gone: the provider tells of it. What the call at hand returns.
    fn broken_down(&mut self, stuck: Stuck) -> Result<ViplError, Stuck> {
        self.nic.handle_failure();
        self.settle(&[])?;
        Ok(stuck.into())
    }

    /// Carries out what the provider asks for; `data` are those of the packet at hand.
    fn settle(&mut self, data: &[u8]) -> Result<(), Stuck> {
        use wiretwin_proto::Output;
        let mut works = Ok(());
        loop {
            match self.nic.poll_output() {
                Output::Work(_) => {}
                // The device is gone: what the provider says of that is carried out, and nothing is sent.
                Output::Transmit(_) if works.is_err() => {}
                Output::Transmit(packet) => {
                    let memory = &self.memory;
                    let octets = packet.emit(|address, length, out| {
                        // What is registered is memory, and memory does not shrink.
                        let at = (address - BASE) as usize;
                        out.extend_from_slice(&memory[at..at + length as usize]);
                    });
                    works = self.device.transmit(octets);
                    if works.is_err() {
                        self.nic.handle_failure();
                    }
                }
                Output::Deliver(Delivery::Deposit(deposit)) => {
                    let from = deposit.from as usize;
                    self.write(deposit.address, &data[from..from + deposit.length as usize]);
                }
                Output::Deliver(Delivery::Complete(completion)) => {
                    let at = completion.place.address + Delivery::COMPLETION_AT;
                    self.write(at, &Delivery::completion_octets(&completion));
                }
                Output::Event(Event::Asynchronous(error)) => self.errors.push_back(error),
                Output::Event(event) => self.events.push_back(event),
                Output::Timeout(timer) => {
                    self.timer = timer;
                    return works;
                }
            }
        }
    }
}
