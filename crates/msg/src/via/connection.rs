//! Connections: client and server, or two peers that both ask.

use alloc::vec::Vec;

use wiretwin_units::{SimTime, Span};

use super::attributes::RemoteAttributes;
use super::nic::{Event, Nic};
use super::vi::{Asking, Peer, Vi, ViState};
use super::{Address, Body, ConnHandle, Packet, ViHandle, ViplError, WaitHandle};

/// A server that waits (`VipConnectWait`).
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    discriminator: Vec<u8>,
    deadline: Option<SimTime>,
    found: Option<Result<ConnHandle, ViplError>>,
}

impl Waiting {
    pub fn due(&self) -> Option<SimTime> {
        if self.found.is_none() { self.deadline } else { None }
    }

    /// Nobody will ask any more.
    pub fn fail(&mut self) {
        self.found = self.found.or(Some(Err(ViplError::NotReachable)));
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    remote: Address,
    attributes: RemoteAttributes,
    vi: ViHandle,
    attempt: u32,
    accepted: Option<ViHandle>,
}

/// Who asks for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// To accept or reject it with.
    pub connection: ConnHandle,
    /// Who.
    pub remote: Address,
    /// The attributes of the remote VI.
    pub attributes: RemoteAttributes,
}

impl Nic {
    fn check_discriminators(&self, discriminators: &[&[u8]]) -> Result<(), ViplError> {
        let most = usize::from(self.attributes().max_discriminator);
        if discriminators.iter().all(|discriminator| discriminator.len() <= most) {
            Ok(())
        } else {
            Err(ViplError::InvalidParameter)
        }
    }

    const fn check_works(&self) -> Result<(), ViplError> {
        if self.failed { Err(ViplError::NotReachable) } else { Ok(()) }
    }

    /// `VipConnectWait` begins: [`Nic::poll_wait`] tells who asks, or that the time is over.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for a discriminator that is too long; [`ViplError::NotReachable`] once the
    /// device has broken down.
    pub fn connect_wait(
        &mut self,
        now: SimTime,
        discriminator: &[u8],
        timeout: Option<Span>,
    ) -> Result<WaitHandle, ViplError> {
        self.check_discriminators(&[discriminator])?;
        self.check_works()?;
        self.next_handle += 1;
        let deadline = timeout.map(|span| now.saturating_add(span));
        let waiting = Waiting { discriminator: discriminator.to_vec(), deadline, found: None };
        self.waits.insert(self.next_handle, waiting);
        Ok(WaitHandle(self.next_handle))
    }

    /// Whether somebody asks; the wait is over unless this is [`ViplError::NotDone`].
    ///
    /// # Errors
    /// [`ViplError::NotDone`], [`ViplError::Timeout`], [`ViplError::NotReachable`] if the device has broken down,
    /// [`ViplError::InvalidParameter`] for a wait that is over.
    pub fn poll_wait(&mut self, wait: WaitHandle) -> Result<Asked, ViplError> {
        let waiting = self.waits.get(&wait.0).ok_or(ViplError::InvalidParameter)?;
        let found = waiting.found.ok_or(ViplError::NotDone)?;
        self.waits.remove(&wait.0);
        let connection = found?;
        let request = self.requests.get(&connection.0).ok_or(ViplError::Timeout)?;
        Ok(Asked { connection, remote: request.remote.clone(), attributes: request.attributes })
    }

    /// `VipConnectAccept`. If it fails, the remote end is not told: it may be tried again.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless the VI is idle, or the code of
    /// the attribute that is not that of the remote VI.
    pub fn connect_accept(
        &mut self,
        _now: SimTime,
        connection: ConnHandle,
        handle: ViHandle,
    ) -> Result<(), ViplError> {
        let request = self.requests.get_mut(&connection.0).filter(|request| request.accepted.is_none());
        let request = request.ok_or(ViplError::InvalidParameter)?;
        let vi = self.vis.get_mut(&handle.0).ok_or(ViplError::InvalidParameter)?;
        if vi.state != ViState::Idle {
            return Err(ViplError::InvalidState);
        }
        vi.attributes.agrees(&request.attributes)?;
        request.accepted = Some(handle);
        let (host, attempt) = (request.remote.host, request.attempt);
        vi.connected(Peer { host, vi: request.vi, attributes: request.attributes });
        let body = Body::Accept { attempt, attributes: vi.remote_view() };
        if let Some(packet) = self.common.packet(vi, body) {
            self.common.transmit(packet);
        }
        Ok(())
    }

    /// `VipConnectReject`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn connect_reject(&mut self, _now: SimTime, connection: ConnHandle) -> Result<(), ViplError> {
        let open = self.requests.get(&connection.0).is_some_and(|request| request.accepted.is_none());
        if !open {
            return Err(ViplError::InvalidParameter);
        }
        if let Some(request) = self.requests.remove(&connection.0) {
            self.reject(&request.remote, request.vi, request.attempt, ViplError::Reject);
        }
        Ok(())
    }

    fn reject(&mut self, remote: &Address, to_vi: ViHandle, attempt: u32, error: ViplError) {
        let (to, from) = (remote.host, self.common.attributes.local);
        let body = Body::Reject { attempt, error };
        self.common.transmit(Packet { to, from, to_vi, from_vi: ViHandle(0), body });
    }

    /// `VipConnectRequest` begins: [`Nic::connect_result`] tells how it ends.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless the VI is idle,
    /// [`ViplError::NotReachable`] once the device has broken down.
    pub fn connect_request(
        &mut self,
        now: SimTime,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        timeout: Option<Span>,
    ) -> Result<(), ViplError> {
        self.ask(now, vi, local, remote, timeout, false)
    }

    /// `VipConnectPeerRequest`: both ends call it, each with the other's address.
    ///
    /// # Errors
    /// As for [`Nic::connect_request`].
    pub fn connect_peer_request(
        &mut self,
        now: SimTime,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        timeout: Option<Span>,
    ) -> Result<(), ViplError> {
        self.ask(now, vi, local, remote, timeout, true)
    }

    fn ask(
        &mut self,
        now: SimTime,
        handle: ViHandle,
        local: &[u8],
        remote: &Address,
        timeout: Option<Span>,
        peer: bool,
    ) -> Result<(), ViplError> {
        self.check_discriminators(&[local, &remote.discriminator])?;
        self.check_works()?;
        let vi = self.vis.get_mut(&handle.0).ok_or(ViplError::InvalidParameter)?;
        if vi.state != ViState::Idle {
            return Err(ViplError::InvalidState);
        }
        vi.attempt += 1;
        vi.state = ViState::ConnectPending;
        vi.answer = None;
        let body = Body::Connect {
            peer,
            attempt: vi.attempt,
            attributes: vi.remote_view(),
            from: local.to_vec(),
            to: remote.discriminator.clone(),
        };
        let from = self.common.attributes.local;
        let request = Packet { to: remote.host, from, to_vi: ViHandle(0), from_vi: handle, body };
        self.common.transmit(request.clone());
        vi.asking = Some(Asking {
            request,
            attempt: vi.attempt,
            deadline: timeout.map(|span| now.saturating_add(span)),
            again: now.saturating_add(self.common.attributes.resend_after),
        });
        Ok(())
    }

    /// `VipConnectPeerDone`, and how `VipConnectRequest` ended: the attributes of the remote VI.
    ///
    /// # Errors
    /// [`ViplError::NotDone`] while there is no answer; [`ViplError::Timeout`], [`ViplError::Reject`],
    /// [`ViplError::NoMatch`], or the code of the attribute that is not that of the remote VI;
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] if nothing was asked.
    pub fn connect_result(&mut self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        let vi = self.vis.get_mut(&vi.0).ok_or(ViplError::InvalidParameter)?;
        match vi.answer {
            Some(answer) => answer,
            None if vi.asking.is_some() => Err(ViplError::NotDone),
            None => Err(ViplError::InvalidState),
        }
    }

    /// `VipDisconnect`: the VI is idle, and what was posted is flushed.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn disconnect(&mut self, _now: SimTime, handle: ViHandle) -> Result<(), ViplError> {
        let vi = self.vis.get_mut(&handle.0).ok_or(ViplError::InvalidParameter)?;
        if let Some(packet) = self.common.packet(vi, Body::Disconnect) {
            self.common.transmit(packet);
        }
        self.common.end(vi, ViState::Idle);
        self.requests.retain(|_, request| request.accepted != Some(handle));
        Ok(())
    }

    pub(crate) fn connection_timeouts(&mut self, now: SimTime) {
        let common = &mut self.common;
        for vi in self.vis.values_mut() {
            let Some(asking) = &mut vi.asking else { continue };
            if asking.deadline.is_some_and(|deadline| deadline <= now) {
                vi.answered(Err(ViplError::Timeout));
                common.event(Event::Answered(vi.handle));
            } else if asking.again <= now {
                asking.again = now.saturating_add(common.attributes.resend_after);
                common.transmit(asking.request.clone());
            }
        }
        for waiting in self.waits.values_mut() {
            if waiting.due().is_some_and(|deadline| deadline <= now) {
                waiting.found = Some(Err(ViplError::Timeout));
            }
        }
    }

    pub(crate) fn handle_connection(&mut self, _now: SimTime, packet: &Packet) {
        match &packet.body {
            Body::Connect { peer: false, attempt, attributes, from, to } => {
                self.asked(packet, *attempt, *attributes, from, to);
            }
            Body::Connect { peer: true, attempt, attributes, from, to } => {
                self.asked_as_peer(packet, *attempt, *attributes, from, to);
            }
            Body::Accept { attempt, attributes } => {
                let Some(vi) = self.pending(packet.to_vi, *attempt) else { return };
                vi.connected(Peer { host: packet.from, vi: packet.from_vi, attributes: *attributes });
                self.common.event(Event::Answered(packet.to_vi));
            }
            Body::Reject { attempt, error } => {
                let Some(vi) = self.pending(packet.to_vi, *attempt) else { return };
                vi.answered(Err(*error));
                self.common.event(Event::Answered(packet.to_vi));
            }
            _ => {}
        }
    }

    fn pending(&mut self, vi: ViHandle, attempt: u32) -> Option<&mut Vi> {
        let vi =
            self.vis.get_mut(&vi.0).filter(|vi| vi.asking.as_ref().is_some_and(|a| a.attempt == attempt));
        if vi.is_none() {
            self.common.counters.strays += 1;
        }
        vi
    }

    fn asked(&mut self, packet: &Packet, attempt: u32, attributes: RemoteAttributes, from: &[u8], to: &[u8]) {
        let known = self.requests.values().find(|request| {
            request.remote.host == packet.from && request.vi == packet.from_vi && request.attempt == attempt
        });
        if let Some(request) = known {
            // It was sent again: the answer may have been lost.
            let vi = request.accepted.and_then(|vi| self.vis.get(&vi.0));
            let accept = vi.and_then(|vi| {
                self.common.packet(vi, Body::Accept { attempt, attributes: vi.remote_view() })
            });
            if let Some(accept) = accept {
                self.common.transmit(accept);
            }
            return;
        }
        let remote = Address { host: packet.from, discriminator: from.to_vec() };
        let waiting = self.waits.values_mut().find(|wait| wait.found.is_none() && wait.discriminator == to);
        let Some(waiting) = waiting else {
            return self.reject(&remote, packet.from_vi, attempt, ViplError::NoMatch);
        };
        self.next_handle += 1;
        waiting.found = Some(Ok(ConnHandle(self.next_handle)));
        let request = Request { remote, attributes, vi: packet.from_vi, attempt, accepted: None };
        self.requests.insert(self.next_handle, request);
        self.common.event(Event::Asked);
    }

    fn asked_as_peer(
        &mut self,
        packet: &Packet,
        attempt: u32,
        attributes: RemoteAttributes,
        from: &[u8],
        to: &[u8],
    ) {
        let matching = self.vis.values_mut().find(|vi| {
            let crossing = vi.asking.as_ref().is_some_and(|asking| {
                asking.request.to == packet.from
                    && matches!(&asking.request.body, Body::Connect { peer: true, from: ours, to: theirs, .. }
                        if ours == to && theirs == from)
            });
            let known = vi.peer.is_some_and(|peer| peer.host == packet.from && peer.vi == packet.from_vi);
            crossing || known
        });
        // Nobody here asks yet. The remote end asks again until its time is over.
        let Some(vi) = matching else { return };
        if vi.asking.is_some() {
            if let Err(error) = vi.attributes.agrees(&attributes) {
                vi.answered(Err(error));
                let handle = vi.handle;
                self.common.event(Event::Answered(handle));
                let remote = Address { host: packet.from, discriminator: from.to_vec() };
                return self.reject(&remote, packet.from_vi, attempt, error);
            }
            vi.connected(Peer { host: packet.from, vi: packet.from_vi, attributes });
            self.common.event(Event::Answered(vi.handle));
        }
        if let Some(accept) = self.common.packet(vi, Body::Accept { attempt, attributes: vi.remote_view() }) {
            self.common.transmit(accept);
        }
    }
}
