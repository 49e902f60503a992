//! What goes wrong: each error where the specification has it, at every level.

use alloc::vec::Vec;

use super::super::vi::{Place, QueueKind};
use super::super::{
    AddressSegment, AsynchronousError, DataSegment, Descriptor, ErrorCode, MemoryAttributes, MemoryHandle,
    Operation, Reliability, Resource, ViAttributes, ViHandle, ViState, status,
};
use super::rig::{Rig, said};
use super::{Consumer, Side, Verdict, ensure};

/// An error ends a reliable connection, and leaves an unreliable one as it was; at both ends.
async fn after_an_error<C: Consumer>(rig: &mut Rig<C>, vi: ViHandle) -> Verdict {
    rig.meet().await?;
    let expected = if rig.level.is_reliable() { ViState::Error } else { ViState::Connected };
    ensure!(rig.comes_to(vi, expected)?, expected, "the state after the error");
    // Until both have looked, neither goes on.
    rig.meet().await
}

/// The bits of a sender's descriptor for an error that the remote end found.
const fn remote_error(level: Reliability, at_reception: u32) -> u32 {
    match level {
        Reliability::UnreliableDelivery => 0,
        Reliability::ReliableDelivery => status::TRANSPORT_ERROR,
        Reliability::ReliableReception => at_reception,
    }
}

async fn error_of_next<C: Consumer>(
    rig: &mut Rig<C>,
    vi: ViHandle,
    kind: QueueKind,
) -> Result<u32, alloc::string::String> {
    Ok(rig.wait(vi, kind).await?.outcome.status & status::ERRORS)
}

pub(super) async fn a_message_without_a_receive_is_told_of<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(0, 0).await?;
    match rig.side {
        Side::Client => {
            rig.post_send(vi, 0, 5_000)?;
            let expected = remote_error(rig.level, status::REMOTE_DESCRIPTOR_ERROR);
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "the send");
        }
        Side::Server => {
            let count = 1 + usize::from(rig.level.is_reliable());
            let codes = rig.codes(vi, count).await?;
            ensure!(codes[0], ErrorCode::ReceiveQueueEmpty, "the error");
            ensure!(codes.len(), count, "errors: {codes:?}");
        }
    }
    after_an_error(rig, vi).await?;
    if rig.level.is_reliable() {
        return Ok(());
    }
    // What was dropped leaves no trace: the next message arrives whole.
    if rig.side == Side::Server {
        rig.post_recv(vi, 0, 5_000)?;
    }
    rig.meet().await?;
    match rig.side {
        Side::Client => {
            rig.fill(0, 4_000, 2);
            rig.post_send(vi, 0, 4_000)?;
            rig.wait(vi, QueueKind::Send).await?;
        }
        Side::Server => {
            ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, 4_000, "the next message");
            ensure!(rig.holds(0, 4_000, 2), true, "its octets");
        }
    }
    Ok(())
}

pub(super) async fn a_message_longer_than_its_receive_is_a_length_error<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    let vi = rig.connected(1, 100).await?;
    match rig.side {
        Side::Client => {
            rig.fill(0, 101, 1);
            rig.post_send(vi, 0, 101)?;
            let expected = remote_error(rig.level, status::REMOTE_DESCRIPTOR_ERROR);
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "the send");
        }
        Side::Server => {
            let error = error_of_next(rig, vi, QueueKind::Receive).await?;
            ensure!(error, status::LENGTH_ERROR, "the receive");
            ensure!(rig.vipl.read(rig.data.address, 200), &[0; 200][..], "nothing is written");
        }
    }
    after_an_error(rig, vi).await
}

pub(super) async fn a_send_longer_than_allowed_is_a_length_error<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(1, 40_000).await?;
    if rig.side == Side::Client {
        rig.post_send(vi, 0, (32 << 10) + 1)?;
        ensure!(error_of_next(rig, vi, QueueKind::Send).await?, status::LENGTH_ERROR, "too long");
        if !rig.level.is_reliable() {
            let mut descriptor = Descriptor::new(&[rig.part(0, 10)]);
            descriptor.length = 11;
            rig.post(vi, QueueKind::Send, &descriptor)?;
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, status::LENGTH_ERROR, "not its sum");
        }
    }
    after_an_error(rig, vi).await
}

pub(super) async fn memory_that_is_not_the_vis_is_a_protection_error<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    let other = rig.vipl.create_ptag().map_err(said)?;
    let foreign = rig.vipl.allocate_registered(100, other).map_err(said)?;
    let mut unregistered = rig.part(0, 10);
    unregistered.handle = MemoryHandle(1_000);
    let mut outside = rig.part(0, 10);
    outside.address += u64::from(rig.data.length) - 9;
    for (what, segment) in [("no handle", unregistered), ("outside", outside), ("another's", foreign)] {
        let vi = rig.connected(1, 100).await?;
        if rig.side == Side::Client {
            let parts = [rig.part(0, 10), segment];
            rig.post(vi, QueueKind::Send, &Descriptor::new(&parts))?;
            let error = error_of_next(rig, vi, QueueKind::Send).await?;
            ensure!(error, status::PROTECTION_ERROR, "memory of {what}");
        }
        after_an_error(rig, vi).await?;
        rig.vipl.disconnect(vi).map_err(said)?;
        rig.meet().await?;
    }
    Ok(())
}

pub(super) async fn a_receive_into_foreign_memory_is_a_protection_error<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    let other = rig.vipl.create_ptag().map_err(said)?;
    let foreign = rig.vipl.allocate_registered(100, other).map_err(said)?;
    let vi = rig.vi()?;
    if rig.side == Side::Server {
        rig.post(vi, QueueKind::Receive, &Descriptor::new(&[foreign]))?;
    }
    rig.connect(vi).await?;
    match rig.side {
        Side::Client => {
            rig.fill(0, 10, 1);
            rig.post_send(vi, 0, 10)?;
            let expected = remote_error(rig.level, status::REMOTE_DESCRIPTOR_ERROR);
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "the send");
        }
        Side::Server => {
            let error = error_of_next(rig, vi, QueueKind::Receive).await?;
            ensure!(error, status::PROTECTION_ERROR, "the receive");
            ensure!(rig.vipl.read(foreign.address, 100), &[0; 100][..], "nothing is written");
        }
    }
    after_an_error(rig, vi).await
}

pub(super) async fn descriptors_that_are_not_well_formed_are_told_of<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    // Control fields: an operation that is none, a bit that is not defined, RDMA without an address.
    for control in [3_u16, 0x10, 1] {
        let vi = rig.connected(1, 100).await?;
        if rig.side == Side::Client {
            let place = rig.place();
            let mut octets = Descriptor::new(&[]).emit();
            octets[14..16].copy_from_slice(&control.to_le_bytes());
            rig.vipl.write(place.address, &octets);
            rig.vipl.post_at(vi, QueueKind::Send, place).map_err(said)?;
            let error = error_of_next(rig, vi, QueueKind::Send).await?;
            ensure!(error, status::FORMAT_ERROR, "control {control:#x}");
        }
        after_an_error(rig, vi).await?;
        rig.vipl.disconnect(vi).map_err(said)?;
        rig.meet().await?;
    }
    // A receive queue takes receives.
    let vi = rig.vi()?;
    if rig.side == Side::Server {
        let remote = AddressSegment { address: 0, handle: MemoryHandle(1) };
        let write = Descriptor::rdma(Operation::RdmaWrite, remote, &[rig.part(0, 100)]);
        rig.post(vi, QueueKind::Receive, &write)?;
    }
    rig.connect(vi).await?;
    match rig.side {
        Side::Client => {
            rig.post_send(vi, 0, 10)?;
            let expected = remote_error(rig.level, status::REMOTE_DESCRIPTOR_ERROR);
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "the send");
        }
        Side::Server => {
            let error = error_of_next(rig, vi, QueueKind::Receive).await?;
            ensure!(error, status::FORMAT_ERROR, "a write on a receive queue");
        }
    }
    after_an_error(rig, vi).await
}

/// What the server allows, and what is asked of it.
#[derive(Clone, Copy, Debug)]
enum Forbidden {
    Handle,
    Range,
    Region,
    Vi,
}

const FORBIDDEN: [Forbidden; 4] = [Forbidden::Handle, Forbidden::Range, Forbidden::Region, Forbidden::Vi];

async fn forbidden<C: Consumer>(rig: &mut Rig<C>, operation: Operation, forbidden: Forbidden) -> Verdict {
    let read = operation == Operation::RdmaRead;
    let allowed = !matches!(forbidden, Forbidden::Vi);
    let attributes =
        ViAttributes { enable_rdma_write: allowed, enable_rdma_read: allowed && read, ..rig.attributes() };
    let vi = rig.vi_of(attributes)?;
    let region = MemoryAttributes {
        ptag: rig.tag,
        enable_rdma_write: !matches!(forbidden, Forbidden::Region),
        enable_rdma_read: read && !matches!(forbidden, Forbidden::Region),
    };
    let address = rig.vipl.allocate(1_000);
    let handle = rig.vipl.register(address, 1_000, region).map_err(said)?;
    rig.connect(vi).await?;
    let there = rig.exchange(vi, DataSegment { address, handle, length: 1_000 }).await?;
    let remote = match forbidden {
        Forbidden::Handle => AddressSegment { handle: MemoryHandle(9_999), ..there },
        Forbidden::Range => AddressSegment { address: there.address + 1, ..there },
        Forbidden::Region | Forbidden::Vi => there,
    };
    match rig.side {
        Side::Client => {
            rig.fill(0, 1_000, 7);
            let descriptor = Descriptor::rdma(operation, remote, &[rig.part(0, 1_000)]);
            rig.post(vi, QueueKind::Send, &descriptor)?;
            let expected = if read {
                status::RDMA_PROTECTION_ERROR
            } else {
                remote_error(rig.level, status::RDMA_PROTECTION_ERROR)
            };
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "{forbidden:?}");
        }
        Side::Server => {
            let code = if read { ErrorCode::RdmaReadProtection } else { ErrorCode::RdmaWriteProtection };
            ensure!(rig.codes(vi, 1).await?[0], code, "{forbidden:?}");
            ensure!(rig.vipl.read(address, 1_000), &[0; 1_000][..], "nothing is written");
        }
    }
    after_an_error(rig, vi).await?;
    rig.vipl.disconnect(vi).map_err(said)?;
    rig.meet().await?;
    rig.vipl.take_errors();
    Ok(())
}

pub(super) async fn rdma_to_memory_not_allowed_is_told_of<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    for what in FORBIDDEN {
        forbidden(rig, Operation::RdmaWrite, what).await?;
    }
    // With immediate data, a descriptor tells of it.
    let vi = rig.connected(1, 10).await?;
    match rig.side {
        Side::Client => {
            let remote = AddressSegment { address: 0, handle: MemoryHandle(9_999) };
            let write = Descriptor::rdma(Operation::RdmaWrite, remote, &[rig.part(0, 10)]);
            rig.post(vi, QueueKind::Send, &write.with_immediate(1))?;
            let expected = remote_error(rig.level, status::RDMA_PROTECTION_ERROR);
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, expected, "the write");
        }
        Side::Server => {
            let error = error_of_next(rig, vi, QueueKind::Receive).await?;
            ensure!(error, status::RDMA_PROTECTION_ERROR, "the receive");
        }
    }
    after_an_error(rig, vi).await
}

pub(super) async fn rdma_read_of_memory_not_allowed_is_told_of<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let level = rig.level;
    if rig.vipl.attributes().rdma_read.has(level) {
        for what in FORBIDDEN {
            forbidden(rig, Operation::RdmaRead, what).await?;
        }
    }
    Ok(())
}

pub(super) async fn what_is_posted_in_the_wrong_place_is_told_of<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let good = rig.place();
    let places = [
        Place { address: good.address + 8, ..good },
        Place { handle: MemoryHandle(1_000), ..good },
        Place { address: 0, ..good },
    ];
    for place in places {
        let vi = rig.connected(0, 0).await?;
        if rig.side == Side::Client {
            rig.vipl.post_at(vi, QueueKind::Send, place).map_err(said)?;
            let errors = rig.errors().await?;
            let Resource::Descriptor(about, found) = errors[0].resource else {
                return Err(alloc::format!("the error is about {:?}", errors[0].resource));
            };
            ensure!((about, found.address), (vi, place.address), "what it is about");
            ensure!(errors[0].code, ErrorCode::PostDescriptor, "the error");
            let done = rig.vipl.done(vi, QueueKind::Send);
            ensure!(done, Err(super::super::DoneError::Empty), "nothing is posted");
        }
        rig.meet().await?;
        ensure!(rig.comes_to(vi, ViState::Error)?, ViState::Error, "the state");
        rig.vipl.disconnect(vi).map_err(said)?;
        rig.meet().await?;
        rig.vipl.take_errors();
    }
    Ok(())
}

pub(super) async fn too_many_descriptors_are_an_overrun<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    let most = rig.vipl.attributes().max_descriptors;
    // Receives of an idle VI wait, all in the same place.
    let place = rig.place();
    let descriptor = Descriptor::new(&[rig.part(0, 10)]);
    for _ in 0..most {
        rig.vipl.post(vi, QueueKind::Receive, place, &descriptor).map_err(said)?;
    }
    ensure!(rig.vipl.take_errors().len(), 0, "errors of {most} descriptors");
    rig.vipl.post(vi, QueueKind::Receive, place, &descriptor).map_err(said)?;
    ensure!(rig.codes(vi, 1).await?, [ErrorCode::Overrun], "one more");
    Ok(())
}

pub(super) async fn memory_deregistered_under_a_descriptor_is_told_of<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    let vi = rig.vi()?;
    let there = rig.vipl.allocate_registered(64, rig.tag).map_err(said)?;
    if rig.side == Side::Server {
        let place = Place { address: there.address, handle: there.handle };
        let descriptor = Descriptor::new(&[rig.part(0, 10)]);
        rig.vipl.post(vi, QueueKind::Receive, place, &descriptor).map_err(said)?;
        rig.vipl.deregister_mem(there.address, there.handle).map_err(said)?;
    }
    rig.connect(vi).await?;
    match rig.side {
        Side::Client => {
            rig.post_send(vi, 0, 10)?;
            ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "the send");
        }
        Side::Server => ensure!(rig.codes(vi, 1).await?, [ErrorCode::CompletionProtection], "the status"),
    }
    Ok(())
}

pub(super) async fn memory_given_back_while_data_come_is_written_no_more<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    const WRITES: u32 = 8;
    const OCTETS: u32 = 30_000;
    for given_back_at in [Side::Server, Side::Client] {
        let vi = rig.connected(0, 0).await?;
        let there = rig.vipl.allocate_registered(OCTETS as usize, rig.tag).map_err(said)?;
        let remote = rig.exchange(vi, there).await?;
        match rig.side {
            Side::Client => {
                rig.vipl.write(there.address, &[4; OCTETS as usize]);
                let write = Descriptor::rdma(Operation::RdmaWrite, remote, &[there]);
                for _ in 0..WRITES {
                    rig.post(vi, QueueKind::Send, &write)?;
                }
                if given_back_at == Side::Client {
                    rig.vipl.deregister_mem(there.address, there.handle).map_err(said)?;
                }
                // Those that came before it was given back, wherever it was, have succeeded, and no others.
                let mut errors = Vec::new();
                for _ in 0..WRITES {
                    errors.push(error_of_next(rig, vi, QueueKind::Send).await?);
                }
                if rig.level.is_reliable() {
                    ensure!(errors.is_sorted_by_key(|error| *error != 0), true, "{errors:?}");
                }
            }
            Side::Server if given_back_at == Side::Server => {
                rig.vipl.deregister_mem(there.address, there.handle).map_err(said)?;
                // From here on it is the program's alone.
                rig.vipl.write(there.address, &[9; OCTETS as usize]);
            }
            Side::Server => {}
        }
        rig.meet().await?;
        if rig.side == Side::Server {
            let expected: &[u8] = if given_back_at == Side::Server { &[9] } else { &[4, 0] };
            let found = |rig: &Rig<C>| {
                let octets = rig.vipl.read(there.address, OCTETS as usize);
                expected.iter().any(|octet| octets == [*octet; OCTETS as usize])
            };
            while !found(rig) && rig.vipl.may_come() {}
            ensure!(found(rig), true, "octets that nobody wrote there");
        }
        rig.meet().await?;
        rig.vipl.disconnect(vi).map_err(said)?;
        rig.meet().await?;
        rig.vipl.take_errors();
    }
    Ok(())
}

pub(super) async fn a_completion_queue_that_is_full_is_told_of<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let cq = rig.vipl.create_cq(1).map_err(said)?;
    let vi = rig.vi_of(ViAttributes { receive_cq: Some(cq), ..rig.attributes() })?;
    for _ in 0..2 {
        rig.post_recv(vi, 0, 10)?;
    }
    // Both are flushed, and there is room for one.
    rig.vipl.disconnect(vi).map_err(said)?;
    let errors = rig.errors().await?;
    let expected = AsynchronousError { resource: Resource::Cq(cq), code: ErrorCode::Overrun };
    ensure!(errors, [expected], "the error");
    ensure!(rig.vipl.cq_done(cq), Ok((vi, QueueKind::Receive)), "the entry");
    Ok(())
}

pub(super) async fn a_read_that_a_disconnection_breaks_off_is_told_of<C: Consumer>(
    rig: &mut Rig<C>,
) -> Verdict {
    let level = rig.level;
    if !rig.vipl.attributes().rdma_read.has(level) {
        return Ok(());
    }
    let vi = rig.vi_of(ViAttributes { enable_rdma_read: true, ..rig.attributes() })?;
    rig.connect(vi).await?;
    let remote = rig.exchange(vi, rig.data).await?;
    match rig.side {
        Side::Client => {
            let read = Descriptor::rdma(Operation::RdmaRead, remote, &[rig.part(0, 32 << 10)]);
            // Nothing of the answer can have come when the connection ends.
            rig.vipl.hold();
            rig.post(vi, QueueKind::Send, &read)?;
            rig.vipl.disconnect(vi).map_err(said)?;
            rig.vipl.release();
            ensure!(error_of_next(rig, vi, QueueKind::Send).await?, status::FLUSHED_ERROR, "the read");
        }
        Side::Server => {
            let codes = rig.codes(vi, 2).await?;
            ensure!(codes, [ErrorCode::RdmaTransport, ErrorCode::ConnectionLost], "the errors");
        }
    }
    rig.meet().await
}
