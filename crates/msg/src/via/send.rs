//! The sending direction: descriptors in order, cut into packets; what is not acknowledged goes again.

use wiretwin_proto::WorkKind;
use wiretwin_units::SimTime;

use super::attributes::Emulation;
use super::memory::Access;
use super::nic::{Common, ErrorCode, Nic};
use super::vi::{Outcome, QueueKind, Unacknowledged, Vi, ViState, operation_bits};
use super::{
    AddressSegment, Body, DataSegment, DescriptorView, Fragment, FragmentKind, Gather, NakReason, Operation,
    Packet, Reliability, ViHandle, check_segments, status,
};

/// Sends what may be sent: answers to RDMA reads first, then descriptors.
pub(crate) fn process(common: &mut Common, now: SimTime, vi: &mut Vi) {
    while vi.state == ViState::Connected && (respond(common, now, vi) || advance(common, now, vi)) {}
}

fn window_is_open(common: &Common, vi: &Vi) -> bool {
    !vi.attributes.reliability.is_reliable()
        || vi.sending.unacknowledged.len() < common.attributes.window as usize
}

/// Sends a packet that takes a number; `finishes` is the descriptor that is done with it.
fn put(
    common: &mut Common,
    now: SimTime,
    vi: &mut Vi,
    entry: Option<u64>,
    finishes: Option<u64>,
    body: impl FnOnce(u32) -> Body,
) {
    let sequence = vi.sending.sequence;
    let Some(packet) = common.packet(vi, body(sequence)) else { return };
    vi.sending.sequence = sequence.wrapping_add(1);
    if vi.attributes.reliability.is_reliable() {
        let kept = Unacknowledged { sequence, finishes, entry, packet: packet.clone() };
        vi.sending.unacknowledged.push_back(kept);
        if vi.sending.due.is_none() {
            vi.sending.due = Some(now.saturating_add(common.attributes.resend_after));
        }
    }
    let octets = match &packet.body {
        Body::Fragment(fragment) => fragment.data.length().get(),
        _ => 0,
    };
    common.work(WorkKind::ViaPacketOut, octets, 1);
    common.transmit(packet);
}

/// One packet of an answer to an RDMA read; whether one went.
fn respond(common: &mut Common, now: SimTime, vi: &mut Vi) -> bool {
    if !window_is_open(common, vi) {
        return false;
    }
    let Some(mut response) = vi.sending.responses.pop_front() else { return false };
    // It was allowed when it was asked for; memory may have been given back since.
    let AddressSegment { address, handle } = response.source;
    let (length, tag) = (response.total.into(), vi.attributes.ptag);
    if common.memory.check(address, length, handle, tag, Access::RdmaRead).is_err() {
        common.lose(vi, Body::Disconnect, Some(ErrorCode::RdmaReadProtection));
        return false;
    }
    let length = (response.total - response.offset).min(common.attributes.native_mtu);
    let source: alloc::sync::Arc<[DataSegment]> =
        alloc::sync::Arc::from([DataSegment { address, handle, length: response.total }]);
    let data = Gather::new(source, response.offset.into(), length);
    let kind = FragmentKind::Response(response.number);
    let (offset, total) = (response.offset, response.total);
    response.offset += length;
    if response.offset < response.total {
        vi.sending.responses.push_front(response);
    }
    put(common, now, vi, None, None, |sequence| {
        Body::Fragment(Fragment { kind, sequence, offset, total, immediate: None, data })
    });
    true
}

/// One packet of the descriptor at hand; whether something was done.
fn advance(common: &mut Common, now: SimTime, vi: &mut Vi) -> bool {
    let number = vi.sending.entry;
    let Some(posted) = vi.send.get(number) else { return false };
    let operation_bits = operation_bits(posted, QueueKind::Send);
    if !vi.sending.begun {
        let checked = match &posted.descriptor {
            Err(_) => Err(status::FORMAT_ERROR),
            Ok(descriptor) if descriptor.fence && !vi.sending.reads.is_empty() => return false,
            Ok(descriptor) => DescriptorView::from(descriptor).check_send(
                &common.attributes,
                &vi.attributes,
                &common.memory,
            ),
        };
        if let Err(error) = checked {
            refuse(common, vi, number, error);
            return true;
        }
    }
    if !window_is_open(common, vi) {
        return false;
    }
    let Some(Ok(descriptor)) = vi.send.get(number).map(|posted| posted.descriptor.clone()) else {
        return false;
    };
    // It was checked when it began; memory may have been given back since.
    if vi.sending.begun
        && let Err(error) = check_segments(&descriptor.data, vi.attributes.ptag, &common.memory)
    {
        refuse(common, vi, number, error);
        return true;
    }
    let total = descriptor.length;
    if let (Operation::RdmaRead, Some(remote)) = (descriptor.operation, descriptor.remote) {
        vi.sending.entry += 1;
        let nothing = total == 0;
        vi.sending.reads.push((number, total));
        put(common, now, vi, Some(number), None, |sequence| Body::ReadRequest {
            sequence,
            remote,
            length: total,
            number: number as u32,
        });
        if nothing {
            received(common, now, vi, number, 0);
        }
        return true;
    }
    let offset = vi.sending.offset;
    let length = (total - offset).min(common.attributes.native_mtu);
    let last = offset + length == total;
    let data = Gather::new(descriptor.data.clone(), offset.into(), length);
    let kind = match descriptor.remote {
        Some(remote) => FragmentKind::Write(AddressSegment {
            address: remote.address.wrapping_add(offset.into()),
            handle: remote.handle,
        }),
        None => FragmentKind::Send,
    };
    let immediate = descriptor.immediate.filter(|_| last);
    if last {
        vi.sending.entry += 1;
        vi.sending.offset = 0;
        vi.sending.begun = false;
    } else {
        vi.sending.offset += length;
        vi.sending.begun = true;
    }
    put(common, now, vi, Some(number), last.then_some(number), |sequence| {
        Body::Fragment(Fragment { kind, sequence, offset, total, immediate, data })
    });
    if last && !vi.attributes.reliability.is_reliable() {
        // It is on its way, and nobody answers for more.
        let outcome = Outcome { status: status::DONE | operation_bits, length: total, immediate: 0 };
        common.finish(vi, QueueKind::Send, number, outcome);
    }
    true
}

/// A descriptor is in error: it is done, and a reliable connection ends.
fn refuse(common: &mut Common, vi: &mut Vi, number: u64, error: u32) {
    common.finish_in_error(vi, QueueKind::Send, number, error);
    if vi.attributes.reliability.is_reliable() {
        common.lose(vi, Body::Disconnect, None);
    } else {
        vi.sending.entry += 1;
        (vi.sending.offset, vi.sending.begun) = (0, false);
    }
}

/// Octets of an RDMA read have come.
pub(crate) fn received(common: &mut Common, now: SimTime, vi: &mut Vi, number: u64, octets: u32) {
    let Some(index) = vi.sending.reads.iter().position(|(waiting, _)| *waiting == number) else { return };
    let (_, left) = &mut vi.sending.reads[index];
    *left = left.saturating_sub(octets);
    if *left > 0 {
        return;
    }
    vi.sending.reads.remove(index);
    let length =
        vi.send.get(number).and_then(|posted| posted.descriptor.as_ref().ok()).map_or(0, |d| d.length);
    let outcome = Outcome { status: status::DONE | status::OP_RDMA_READ, length, immediate: 0 };
    common.finish(vi, QueueKind::Send, number, outcome);
    process(common, now, vi);
}

/// Packets before `next` are there.
pub(crate) fn acknowledged(common: &mut Common, now: SimTime, vi: &mut Vi, next: u32) {
    let mut any = false;
    while let Some(first) = vi.sending.unacknowledged.front() {
        if first.sequence.wrapping_sub(next) as i32 >= 0 {
            break;
        }
        any = true;
        let finishes = first.finishes;
        vi.sending.unacknowledged.pop_front();
        let done = finishes.and_then(|number| {
            let posted = vi.send.get(number)?;
            let length = posted.descriptor.as_ref().map_or(0, |descriptor| descriptor.length);
            Some((number, operation_bits(posted, QueueKind::Send), length))
        });
        if let Some((number, operation, length)) = done {
            let outcome = Outcome { status: status::DONE | operation, length, immediate: 0 };
            common.finish(vi, QueueKind::Send, number, outcome);
        }
    }
    if any {
        vi.sending.resends = 0;
        let waiting = !vi.sending.unacknowledged.is_empty();
        vi.sending.due = waiting.then(|| now.saturating_add(common.attributes.resend_after));
        process(common, now, vi);
    }
}

/// The remote end says that a packet ended the connection.
pub(crate) fn refused(common: &mut Common, now: SimTime, vi: &mut Vi, sequence: u32, reason: NakReason) {
    acknowledged(common, now, vi, sequence);
    let front = vi.sending.unacknowledged.front();
    let entry = front.filter(|first| first.sequence == sequence).and_then(|first| first.entry);
    if let Some(number) = entry {
        let read = vi.sending.reads.iter().any(|(waiting, _)| *waiting == number);
        let error = match (vi.attributes.reliability, reason) {
            // An RDMA read is done when its octets are there, at any level.
            (Reliability::ReliableReception, NakReason::RdmaProtection) => status::RDMA_PROTECTION_ERROR,
            (_, NakReason::RdmaProtection) if read => status::RDMA_PROTECTION_ERROR,
            (Reliability::ReliableReception, _) => status::REMOTE_DESCRIPTOR_ERROR,
            // At reliable delivery nobody answers for what the remote end does with it.
            _ => status::TRANSPORT_ERROR,
        };
        common.finish_in_error(vi, QueueKind::Send, number, error);
    }
    common.lost(vi);
}

/// The timer of a connection has run out.
pub(crate) fn resend(common: &mut Common, now: SimTime, vi: &mut Vi) {
    let Some(due) = vi.sending.due else { return };
    if due > now {
        return;
    }
    common.work(WorkKind::TimerExpiry, 0, 1);
    if vi.sending.resends >= common.attributes.resends {
        let entry = vi.sending.unacknowledged.front().and_then(|first| first.entry);
        if let Some(number) = entry {
            common.finish_in_error(vi, QueueKind::Send, number, status::TRANSPORT_ERROR);
        }
        return common.lose(vi, Body::Disconnect, None);
    }
    vi.sending.resends += 1;
    vi.sending.due = Some(now.saturating_add(common.attributes.resend_after));
    for kept in &vi.sending.unacknowledged {
        let octets = match &kept.packet.body {
            Body::Fragment(fragment) => fragment.data.length().get(),
            _ => 0,
        };
        common.counters.resent += 1;
        common.work(WorkKind::ViaPacketOut, octets, 1);
        common.transmit(kept.packet.clone());
    }
}

impl Nic {
    /// The time that was asked for has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        for vi in self.vis.values_mut() {
            resend(&mut self.common, now, vi);
        }
        self.connection_timeouts(now);
    }

    /// A packet comes. Its data are at the driver's hand until all that this brings about was taken
    /// with [`Nic::poll_output`].
    pub fn handle_packet(&mut self, now: SimTime, packet: &Packet) {
        if packet.to != self.common.attributes.local {
            self.common.counters.strays += 1;
            return;
        }
        match &packet.body {
            Body::Connect { .. } | Body::Accept { .. } | Body::Reject { .. } => {
                self.handle_connection(now, packet);
            }
            _ => self.handle_connected(now, packet),
        }
    }

    /// A packet comes whose head is whole and whose data are not, from a network that sums them apart: data of an
    /// unreliable connection are lost, and the consumer is told; those of a reliable one come again.
    pub fn handle_damaged(&mut self, packet: &Packet) {
        let common = &mut self.common;
        let vi = self.vis.get_mut(&packet.to_vi.0).filter(|_| packet.to == common.attributes.local);
        let ours =
            vi.filter(|vi| vi.peer.is_some_and(|peer| peer.host == packet.from && peer.vi == packet.from_vi));
        match (ours, &packet.body) {
            (Some(vi), Body::Fragment(fragment)) => {
                common.counters.damaged += 1;
                super::receive::damaged(common, vi, fragment);
            }
            _ => common.counters.strays += 1,
        }
    }

    fn handle_connected(&mut self, now: SimTime, packet: &Packet) {
        let common = &mut self.common;
        let vi = self.vis.get_mut(&packet.to_vi.0);
        let ours =
            vi.filter(|vi| vi.peer.is_some_and(|peer| peer.host == packet.from && peer.vi == packet.from_vi));
        let Some(vi) = ours else {
            common.counters.strays += 1;
            // Whoever thinks there is a connection learns that there is none.
            if matches!(packet.body, Body::Fragment(_) | Body::ReadRequest { .. })
                && packet.from_vi != ViHandle(0)
            {
                let (to, from) = (packet.from, common.attributes.local);
                let (to_vi, from_vi) = (packet.from_vi, packet.to_vi);
                common.transmit(Packet { to, from, to_vi, from_vi, body: Body::Disconnect });
            }
            return;
        };
        match &packet.body {
            Body::Fragment(fragment) => {
                if common.attributes.emulation == Emulation::Kernel {
                    common.work(WorkKind::CopyOut, fragment.data.length().get(), 1);
                }
                super::receive::fragment(common, now, vi, fragment);
            }
            Body::ReadRequest { sequence, remote, length, number } => {
                super::receive::read_request(common, now, vi, *sequence, *remote, *length, *number);
            }
            Body::Ack { next } => {
                common.work(WorkKind::ViaPacketIn, 0, 1);
                let ahead = next.wrapping_sub(vi.sending.sequence) as i32;
                if ahead <= 0 {
                    acknowledged(common, now, vi, *next);
                }
            }
            Body::Nak { sequence, reason } => refused(common, now, vi, *sequence, *reason),
            Body::Disconnect => common.lost(vi),
            Body::Connect { .. } | Body::Accept { .. } | Body::Reject { .. } => {}
        }
    }
}
