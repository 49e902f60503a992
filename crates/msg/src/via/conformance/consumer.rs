//! The programming interface as the suite uses it, whatever carries it out.

use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::Span;

use super::super::attributes::RemoteAttributes;
use super::super::connection::Asked;
use super::super::nic::{AsynchronousError, DoneError, Event};
use super::super::vi::{Completion, Place, QueueKind, ViState};
use super::super::{
    Arrival, CqHandle, DataSegment, Descriptor, Device, HostAddress, MemoryAttributes, MemoryHandle,
    NicAttributes, Ptag, ReliabilitySupport, ViAttributes, ViHandle, Vipl, ViplError,
};

/// One process with one NIC: the calls of VIPL, with the results that the specification gives them.
///
/// Timeouts of none are for ever. The future of a call that waits is ready at its first poll where a clock runs.
#[allow(missing_docs, clippy::missing_errors_doc)] // the calls of VIPL by their names
#[allow(async_fn_in_trait)] // used through static generics only; no future crosses a thread
pub trait Consumer {
    /// What is left when the NIC is closed, for the next.
    type Device;

    fn attributes(&mut self) -> NicAttributes;
    /// The address of the NIC at the other end.
    fn remote(&mut self) -> HostAddress;
    /// New memory, zeroed, on a multiple of 64 octets.
    fn allocate(&mut self, octets: usize) -> u64;
    fn write(&mut self, address: u64, octets: &[u8]);
    fn read(&self, address: u64, octets: usize) -> &[u8];
    /// What the error handler was told.
    fn take_errors(&mut self) -> Vec<AsynchronousError>;
    /// What the handler of a notification was told, once it has been: the VI, the queue, the descriptor's address.
    async fn notified(&mut self) -> Result<Vec<(ViHandle, QueueKind, u64)>, ViplError>;
    /// Lets one thing happen, or a little time pass.
    async fn turn(&mut self) -> Result<(), ViplError>;
    /// From here on nothing happens at the other end, until `release`.
    fn hold(&mut self);
    /// What `hold` held back happens.
    fn release(&mut self);
    /// Whether what the other process sent before both met last may still be on its way: never, where nothing overtakes
    /// the mark by which they meet.
    fn may_come(&mut self) -> bool {
        false
    }
    /// Both processes have come here, and what they sent before has come, unless [`Consumer::may_come`].
    async fn meet(&mut self) -> Result<(), ViplError>;
    /// Closes the NIC when both have come here.
    async fn end(self) -> Result<Self::Device, String>;

    fn create_ptag(&mut self) -> Result<Ptag, ViplError>;
    fn destroy_ptag(&mut self, tag: Ptag) -> Result<(), ViplError>;
    fn register(
        &mut self,
        address: u64,
        octets: usize,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError>;
    fn deregister_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<(), ViplError>;
    fn query_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError>;
    fn set_mem_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError>;

    fn create_vi(&mut self, attributes: ViAttributes) -> Result<ViHandle, ViplError>;
    fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ViplError>;
    fn query_vi(&mut self, vi: ViHandle) -> Result<(ViState, ViAttributes, bool, bool), ViplError>;
    fn set_vi_attributes(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ViplError>;

    /// `VipPostSend` or `VipPostRecv` of the descriptor that lies there.
    fn post_at(&mut self, vi: ViHandle, kind: QueueKind, place: Place) -> Result<(), ViplError>;
    fn done(&mut self, vi: ViHandle, kind: QueueKind) -> Result<Completion, DoneError>;
    async fn wait(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        timeout: Option<Span>,
    ) -> Result<Completion, ViplError>;
    fn notify(&mut self, vi: ViHandle, kind: QueueKind) -> Result<(), ViplError>;

    fn create_cq(&mut self, entries: u32) -> Result<CqHandle, ViplError>;
    fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), ViplError>;
    fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), ViplError>;
    fn cq_done(&mut self, cq: CqHandle) -> Result<(ViHandle, QueueKind), ViplError>;
    async fn cq_wait(
        &mut self,
        cq: CqHandle,
        timeout: Option<Span>,
    ) -> Result<(ViHandle, QueueKind), ViplError>;

    async fn connect_wait(&mut self, discriminator: &[u8], timeout: Option<Span>)
    -> Result<Asked, ViplError>;
    fn connect_accept(&mut self, asked: &Asked, vi: ViHandle) -> Result<(), ViplError>;
    fn connect_reject(&mut self, asked: &Asked) -> Result<(), ViplError>;
    async fn connect_request(
        &mut self,
        vi: ViHandle,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<RemoteAttributes, ViplError>;
    fn connect_peer_request(
        &mut self,
        vi: ViHandle,
        local: &[u8],
        remote: &[u8],
        timeout: Option<Span>,
    ) -> Result<(), ViplError>;
    /// `VipConnectPeerDone`.
    fn connect_result(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError>;
    async fn connect_peer_wait(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError>;
    fn disconnect(&mut self, vi: ViHandle) -> Result<(), ViplError>;

    fn ns_init(&mut self, hosts: &[(&str, HostAddress)]) -> Result<(), ViplError>;
    fn ns_get_host_by_name(&mut self, name: &str, number: usize) -> Result<HostAddress, ViplError>;
    fn ns_get_host_by_addr(&mut self, host: HostAddress) -> Result<String, ViplError>;
    fn ns_shutdown(&mut self) -> Result<(), ViplError>;

    /// New memory, registered with a tag, that remote ends may write and, if the NIC can, read.
    fn allocate_registered(&mut self, octets: usize, ptag: Ptag) -> Result<DataSegment, ViplError> {
        let address = self.allocate(octets);
        let enable_rdma_read = self.attributes().rdma_read != ReliabilitySupport::NONE;
        let attributes = MemoryAttributes { ptag, enable_rdma_write: true, enable_rdma_read };
        let handle = self.register(address, octets, attributes)?;
        Ok(DataSegment { address, handle, length: octets as u32 })
    }

    /// Writes a descriptor into memory and posts it on a queue.
    fn post(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        place: Place,
        descriptor: &Descriptor,
    ) -> Result<(), ViplError> {
        self.write(place.address, &descriptor.emit());
        self.post_at(vi, kind, place)
    }
}

impl<D: Device> Consumer for Vipl<D> {
    type Device = D;

    fn attributes(&mut self) -> NicAttributes {
        self.nic().attributes().clone()
    }

    fn remote(&mut self) -> HostAddress {
        self.device().remote()
    }

    fn allocate(&mut self, octets: usize) -> u64 {
        self.allocate(octets)
    }

    fn write(&mut self, address: u64, octets: &[u8]) {
        self.write(address, octets);
    }

    fn read(&self, address: u64, octets: usize) -> &[u8] {
        self.read(address, octets)
    }

    fn take_errors(&mut self) -> Vec<AsynchronousError> {
        self.take_errors()
    }

    async fn notified(&mut self) -> Result<Vec<(ViHandle, QueueKind, u64)>, ViplError> {
        let mut notified = Vec::new();
        while let Some(event) = self.take_event() {
            if let Event::Notified(vi, kind, completion) = event {
                notified.push((vi, kind, completion.place.address));
            }
        }
        Ok(notified)
    }

    async fn turn(&mut self) -> Result<(), ViplError> {
        let until = self.device().now().saturating_add(Span::from_s(10));
        self.turn(Some(until)).await
    }

    /// In virtual time nothing happens between two calls that do not wait.
    fn hold(&mut self) {}

    fn release(&mut self) {}

    async fn meet(&mut self) -> Result<(), ViplError> {
        self.meet().await
    }

    async fn end(self) -> Result<D, String> {
        let gone = |_| String::from("the other process has gone");
        let mut device = self.close().map_err(|error| alloc::format!("{error}"))?;
        // What the other NIC said in closing is for nobody.
        device.mark().map_err(gone)?;
        while device.arrival(None).await.map_err(gone)? != Arrival::Mark {}
        Ok(device)
    }

    fn create_ptag(&mut self) -> Result<Ptag, ViplError> {
        self.nic().create_ptag()
    }

    fn destroy_ptag(&mut self, tag: Ptag) -> Result<(), ViplError> {
        self.nic().destroy_ptag(tag)
    }

    fn register(
        &mut self,
        address: u64,
        octets: usize,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        self.register(address, octets, attributes)
    }

    fn deregister_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<(), ViplError> {
        self.nic().deregister_mem(address, handle)
    }

    fn query_mem(&mut self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError> {
        self.nic().query_mem(address, handle)
    }

    fn set_mem_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        self.nic().set_mem_attributes(address, handle, attributes)
    }

    fn create_vi(&mut self, attributes: ViAttributes) -> Result<ViHandle, ViplError> {
        self.nic().create_vi(attributes)
    }

    fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ViplError> {
        self.nic().destroy_vi(vi)
    }

    fn query_vi(&mut self, vi: ViHandle) -> Result<(ViState, ViAttributes, bool, bool), ViplError> {
        self.nic().query_vi(vi)
    }

    fn set_vi_attributes(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ViplError> {
        self.nic().set_vi_attributes(vi, attributes)
    }

    fn post_at(&mut self, vi: ViHandle, kind: QueueKind, place: Place) -> Result<(), ViplError> {
        match kind {
            QueueKind::Send => self.post_send(vi, place),
            QueueKind::Receive => self.post_recv(vi, place),
        }
    }

    fn done(&mut self, vi: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        self.nic().done(vi, kind)
    }

    async fn wait(
        &mut self,
        vi: ViHandle,
        kind: QueueKind,
        timeout: Option<Span>,
    ) -> Result<Completion, ViplError> {
        self.wait(vi, kind, timeout).await
    }

    fn notify(&mut self, vi: ViHandle, kind: QueueKind) -> Result<(), ViplError> {
        self.nic().notify(vi, kind)
    }

    fn create_cq(&mut self, entries: u32) -> Result<CqHandle, ViplError> {
        self.nic().create_cq(entries)
    }

    fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), ViplError> {
        self.nic().resize_cq(cq, entries)
    }

    fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), ViplError> {
        self.nic().destroy_cq(cq)
    }

    fn cq_done(&mut self, cq: CqHandle) -> Result<(ViHandle, QueueKind), ViplError> {
        self.nic().cq_done(cq)
    }

    async fn cq_wait(
        &mut self,
        cq: CqHandle,
        timeout: Option<Span>,
    ) -> Result<(ViHandle, QueueKind), ViplError> {
        self.cq_wait(cq, timeout).await
    }

    async fn connect_wait(
        &mut self,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<Asked, ViplError> {
        self.connect_wait(discriminator, timeout).await
    }

    fn connect_accept(&mut self, asked: &Asked, vi: ViHandle) -> Result<(), ViplError> {
        self.connect_accept(asked, vi)
    }

    fn connect_reject(&mut self, asked: &Asked) -> Result<(), ViplError> {
        self.connect_reject(asked)
    }

    async fn connect_request(
        &mut self,
        vi: ViHandle,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<RemoteAttributes, ViplError> {
        self.connect_request(vi, discriminator, timeout).await
    }

    fn connect_peer_request(
        &mut self,
        vi: ViHandle,
        local: &[u8],
        remote: &[u8],
        timeout: Option<Span>,
    ) -> Result<(), ViplError> {
        self.connect_peer_request(vi, local, remote, timeout)
    }

    fn connect_result(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        self.nic().connect_result(vi)
    }

    async fn connect_peer_wait(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        self.connect_peer_wait(vi).await
    }

    fn disconnect(&mut self, vi: ViHandle) -> Result<(), ViplError> {
        self.disconnect(vi)
    }

    fn ns_init(&mut self, hosts: &[(&str, HostAddress)]) -> Result<(), ViplError> {
        self.nic().names().open(hosts)
    }

    fn ns_get_host_by_name(&mut self, name: &str, number: usize) -> Result<HostAddress, ViplError> {
        self.nic().names().host_by_name(name, number)
    }

    fn ns_get_host_by_addr(&mut self, host: HostAddress) -> Result<String, ViplError> {
        self.nic().names().host_by_address(host).map(String::from)
    }

    fn ns_shutdown(&mut self) -> Result<(), ViplError> {
        self.nic().names().close()
    }
}
