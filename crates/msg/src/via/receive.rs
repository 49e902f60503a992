//! The receiving direction: packets in order, each to where its message goes.

use wiretwin_proto::{Output, WorkKind};
use wiretwin_units::SimTime;

use super::memory::Access;
use super::nic::{Common, Delivery, Deposit, ErrorCode};
use super::packet::ranges;
use super::vi::{Assembly, Outcome, QueueKind, Response, Vi};
use super::{
    AddressSegment, Body, DescriptorView, Fragment, FragmentKind, NakReason, Reliability, check_segments,
    send, status,
};

/// Packets after which one is acknowledged though its message goes on.
const ACKNOWLEDGE_EVERY: u32 = 8;

/// Why a packet was rejected: what the remote end is told, and what the consumer here.
struct Refusal {
    reason: NakReason,
    code: Option<ErrorCode>,
}

/// Whether the packet is the next; an unreliable connection goes on after a gap.
fn in_order(common: &mut Common, vi: &mut Vi, sequence: u32) -> bool {
    let ahead = sequence.wrapping_sub(vi.receiving.expected) as i32;
    if vi.attributes.reliability.is_reliable() {
        match ahead {
            0 => {}
            ..0 => {
                // Its acknowledgment was lost.
                common.counters.duplicates += 1;
                acknowledge(common, vi);
                return false;
            }
            _ => {
                common.counters.out_of_order += 1;
                return false;
            }
        }
    } else if ahead < 0 {
        // No message comes twice.
        common.counters.duplicates += 1;
        return false;
    } else if ahead > 0 {
        broken(common, vi);
    }
    vi.receiving.expected = sequence.wrapping_add(1);
    true
}

/// The rest of the message that was coming will not come.
fn broken(common: &mut Common, vi: &mut Vi) {
    match core::mem::replace(&mut vi.receiving.assembly, Assembly::Refused) {
        Assembly::Receive { number, got } => {
            common.counters.broken += 1;
            let error = status::DONE | status::PARTIAL_ERROR | status::OP_RECEIVE;
            let outcome = Outcome { status: error, length: got, immediate: 0 };
            common.finish(vi, QueueKind::Receive, number, outcome);
        }
        Assembly::Write { .. } => {
            common.counters.broken += 1;
            common.error(vi.handle, ErrorCode::RdmaWriteAbort);
        }
        Assembly::Nothing | Assembly::Refused => {}
    }
}

fn acknowledge(common: &mut Common, vi: &mut Vi) {
    vi.receiving.owed = 0;
    if let Some(packet) = common.packet(vi, Body::Ack { next: vi.receiving.expected }) {
        common.transmit(packet);
    }
}

/// Acknowledges what was taken, if it is time to.
fn owe(common: &mut Common, vi: &mut Vi, message_ends: bool) {
    if !vi.attributes.reliability.is_reliable() {
        return;
    }
    vi.receiving.owed += 1;
    // A sender of such a NIC that has no more than its window under way waits for this.
    if message_ends || vi.receiving.owed >= ACKNOWLEDGE_EVERY.min(common.attributes.window) {
        acknowledge(common, vi);
    }
}

/// Part of a message comes.
pub(crate) fn fragment(common: &mut Common, now: SimTime, vi: &mut Vi, fragment: &Fragment) {
    common.work(WorkKind::ViaPacketIn, fragment.data.length().get(), 1);
    if !in_order(common, vi, fragment.sequence) {
        return;
    }
    // At reliable delivery it is enough that the NIC has it; at reliable reception it must be in memory.
    let early = vi.attributes.reliability == Reliability::ReliableDelivery;
    let taken = match fragment.kind {
        FragmentKind::Send => receive(common, vi, fragment, early),
        FragmentKind::Write(remote) => write(common, vi, fragment, remote, early),
        FragmentKind::Response(number) => {
            response(common, now, vi, fragment, number);
            Ok(())
        }
    };
    if let Err(refusal) = taken {
        refuse(common, vi, fragment.sequence, refusal);
    }
}

/// Part of a message comes damaged.
pub(crate) fn damaged(common: &mut Common, vi: &mut Vi, fragment: &Fragment) {
    common.work(WorkKind::ViaPacketIn, fragment.data.length().get(), 1);
    // A reliable connection does as if it had not come.
    if vi.attributes.reliability.is_reliable() || !in_order(common, vi, fragment.sequence) {
        return;
    }
    if fragment.is_first() {
        broken(common, vi);
    }
    let before = core::mem::replace(&mut vi.receiving.assembly, Assembly::Refused);
    match (fragment.kind, before) {
        (FragmentKind::Send, Assembly::Receive { number, got }) => corrupt(common, vi, number, got),
        (FragmentKind::Send, _) if fragment.is_first() => match vi.receive.first_open() {
            Some(number) => corrupt(common, vi, number, 0),
            None => common.error(vi.handle, ErrorCode::ReceiveQueueEmpty),
        },
        (FragmentKind::Write(_), before)
            if fragment.is_first() || matches!(before, Assembly::Write { .. }) =>
        {
            common.error(vi.handle, ErrorCode::RdmaWriteData);
        }
        // Of a message that was given up already.
        _ => {}
    }
}

/// A receive ends with what came before the damage.
fn corrupt(common: &mut Common, vi: &mut Vi, number: u64, length: u32) {
    let status = status::DONE | status::TRANSPORT_ERROR | status::OP_RECEIVE;
    common.finish(vi, QueueKind::Receive, number, Outcome { status, length, immediate: 0 });
}

fn refuse(common: &mut Common, vi: &mut Vi, sequence: u32, Refusal { reason, code }: Refusal) {
    if vi.attributes.reliability.is_reliable() {
        return common.lose(vi, Body::Nak { sequence, reason }, code);
    }
    common.counters.refused += 1;
    if let Some(code) = code {
        common.error(vi.handle, code);
    }
}

/// Puts data where segments say; `offset` is their place in the message.
fn deposit(common: &mut Common, segments: impl Iterator<Item = (u64, u32)>) {
    let mut from = 0;
    for (address, length) in segments {
        common.outputs.push_back(Output::Deliver(Delivery::Deposit(Deposit { address, from, length })));
        from += length;
    }
}

fn receive(common: &mut Common, vi: &mut Vi, fragment: &Fragment, early: bool) -> Result<(), Refusal> {
    if fragment.is_first() {
        if matches!(vi.receiving.assembly, Assembly::Receive { .. } | Assembly::Write { .. }) {
            broken(common, vi);
        }
        vi.receiving.assembly = Assembly::Refused;
        let number = begin(common, vi, fragment)?;
        vi.receiving.assembly = Assembly::Receive { number, got: 0 };
    }
    let Assembly::Receive { number, got } = vi.receiving.assembly else { return Ok(()) };
    if got != fragment.offset {
        broken(common, vi);
        return Ok(());
    }
    let Some(Ok(descriptor)) = vi.receive.get(number).map(|posted| &posted.descriptor) else { return Ok(()) };
    let length = fragment.data.length().get() as u32;
    let data = descriptor.data.clone();
    let last = fragment.is_last();
    // It was all there when the message began; memory may have been given back since.
    if !fragment.is_first()
        && let Err(error) = check_segments(&descriptor.data, vi.attributes.ptag, &common.memory)
    {
        vi.receiving.assembly = Assembly::Refused;
        common.finish_in_error(vi, QueueKind::Receive, number, error);
        return Err(Refusal { reason: NakReason::Descriptor, code: None });
    }
    if early {
        owe(common, vi, last);
    }
    deposit(common, ranges(&data, fragment.offset.into(), length));
    vi.receiving.assembly = Assembly::Receive { number, got: got + length };
    if !early {
        owe(common, vi, last);
    }
    if last {
        vi.receiving.assembly = Assembly::Nothing;
        let came = if fragment.immediate.is_some() { status::IMMEDIATE } else { 0 };
        let outcome = Outcome {
            status: status::DONE | status::OP_RECEIVE | came,
            length: fragment.total,
            immediate: fragment.immediate.unwrap_or(0),
        };
        common.finish(vi, QueueKind::Receive, number, outcome);
    }
    Ok(())
}

/// Finds the receive for a message, and looks whether it will do.
fn begin(common: &mut Common, vi: &mut Vi, fragment: &Fragment) -> Result<u64, Refusal> {
    let empty = Refusal { reason: NakReason::ReceiveQueueEmpty, code: Some(ErrorCode::ReceiveQueueEmpty) };
    let number = vi.receive.first_open().ok_or(empty)?;
    let Some(posted) = vi.receive.get(number) else { unreachable!("it is open") };
    let error = match &posted.descriptor {
        Ok(descriptor) => {
            let view = DescriptorView::from(descriptor);
            view.check_receive(fragment.total, &vi.attributes, &common.memory).err()
        }
        Err(_) => Some(status::FORMAT_ERROR),
    };
    match error {
        None => Ok(number),
        Some(error) => {
            common.finish_in_error(vi, QueueKind::Receive, number, error);
            Err(Refusal { reason: NakReason::Descriptor, code: None })
        }
    }
}

fn write(
    common: &mut Common,
    vi: &mut Vi,
    fragment: &Fragment,
    remote: AddressSegment,
    early: bool,
) -> Result<(), Refusal> {
    if fragment.is_first() {
        if matches!(vi.receiving.assembly, Assembly::Receive { .. } | Assembly::Write { .. }) {
            broken(common, vi);
        }
        vi.receiving.assembly = Assembly::Write { got: 0 };
    }
    let last = fragment.is_last();
    let Assembly::Write { got } = vi.receiving.assembly else { return Ok(()) };
    if got != fragment.offset {
        broken(common, vi);
        return Ok(());
    }
    let length = fragment.data.length().get() as u32;
    // All of it is looked at when it begins, so that nothing of a write that is refused is written.
    let (checked, tag) = (if fragment.is_first() { fragment.total } else { length }, vi.attributes.ptag);
    let allowed = vi.attributes.enable_rdma_write
        && common.memory.check(remote.address, checked.into(), remote.handle, tag, Access::RdmaWrite).is_ok();
    if !allowed {
        vi.receiving.assembly = Assembly::Refused;
        let mut code = Some(ErrorCode::RdmaWriteProtection);
        // With immediate data a descriptor tells of it.
        if let (Some(_), Some(number)) = (fragment.immediate, vi.receive.first_open()) {
            let outcome = Outcome {
                status: status::DONE | status::RDMA_PROTECTION_ERROR | status::OP_REMOTE_RDMA_WRITE,
                length: 0,
                immediate: 0,
            };
            common.finish(vi, QueueKind::Receive, number, outcome);
            code = None;
        }
        return Err(Refusal { reason: NakReason::RdmaProtection, code });
    }
    let receive = match fragment.immediate {
        None => None,
        Some(immediate) => {
            let Some(number) = vi.receive.first_open() else {
                vi.receiving.assembly = Assembly::Nothing;
                let code = Some(ErrorCode::ReceiveQueueEmpty);
                return Err(Refusal { reason: NakReason::ReceiveQueueEmpty, code });
            };
            Some((number, immediate))
        }
    };
    if early {
        owe(common, vi, last);
    }
    deposit(common, core::iter::once((remote.address, length)).filter(|(_, length)| *length > 0));
    if !early {
        owe(common, vi, last);
    }
    vi.receiving.assembly = if last { Assembly::Nothing } else { Assembly::Write { got: got + length } };
    if let Some((number, immediate)) = receive {
        let status = status::DONE | status::OP_REMOTE_RDMA_WRITE | status::IMMEDIATE;
        common.finish(vi, QueueKind::Receive, number, Outcome { status, length: fragment.total, immediate });
    }
    Ok(())
}

/// Octets that were read come.
fn response(common: &mut Common, now: SimTime, vi: &mut Vi, fragment: &Fragment, number: u32) {
    let length = fragment.data.length().get() as u32;
    owe(common, vi, fragment.is_last());
    let Some(number) = vi.send.number_of(number) else { return };
    let waiting = vi.sending.reads.iter().any(|(read, _)| *read == number);
    let Some(Ok(descriptor)) = vi.send.get(number).map(|posted| &posted.descriptor) else { return };
    if !waiting || fragment.total != descriptor.length {
        return;
    }
    let data = descriptor.data.clone();
    deposit(common, ranges(&data, fragment.offset.into(), length));
    send::received(common, now, vi, number, length);
}

/// The remote end reads memory.
pub(crate) fn read_request(
    common: &mut Common,
    now: SimTime,
    vi: &mut Vi,
    sequence: u32,
    remote: AddressSegment,
    length: u32,
    number: u32,
) {
    common.work(WorkKind::ViaPacketIn, 0, 1);
    if !vi.attributes.reliability.is_reliable() {
        common.counters.strays += 1;
        return;
    }
    if !in_order(common, vi, sequence) {
        return;
    }
    let AddressSegment { address, handle } = remote;
    let tag = vi.attributes.ptag;
    let allowed = vi.attributes.enable_rdma_read
        && u64::from(length) <= vi.attributes.max_transfer.get()
        && common.memory.check(address, length.into(), handle, tag, Access::RdmaRead).is_ok();
    if !allowed {
        let code = Some(ErrorCode::RdmaReadProtection);
        return refuse(common, vi, sequence, Refusal { reason: NakReason::RdmaProtection, code });
    }
    owe(common, vi, true);
    if length > 0 {
        vi.sending.responses.push_back(Response { number, source: remote, total: length, offset: 0 });
        send::process(common, now, vi);
    }
}
