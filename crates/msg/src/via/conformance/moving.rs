//! Data move: sends, RDMA, completion queues, notification.

use alloc::vec::Vec;

use super::super::vi::QueueKind;
use super::super::{
    AddressSegment, Descriptor, MemoryHandle, Operation, ViAttributes, ViState, control, status,
};
use super::rig::{Rig, said};
use super::{Consumer, Side, Verdict, ensure};

pub(super) async fn messages_of_every_size_arrive<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let mtu = rig.vipl.attributes().native_mtu;
    let sizes = [0, 1, mtu - 1, mtu, mtu + 1, (3 * mtu).min(32 << 10), 32 << 10];
    let vi = rig.vi()?;
    let room = 32 << 10;
    if rig.side == Side::Server {
        for _ in sizes {
            rig.post_recv(vi, 0, room)?;
        }
    }
    rig.connect(vi).await?;
    for (index, size) in sizes.into_iter().enumerate() {
        let seed = index as u8 + 1;
        match rig.side {
            Side::Client => {
                rig.fill(0, size, seed);
                let place = rig.post_send(vi, 0, size)?;
                let sent = rig.wait(vi, QueueKind::Send).await?;
                ensure!(sent.place.address, place.address, "the descriptor sent");
                ensure!(sent.outcome.status, status::DONE, "status of a send of {size} octets");
                ensure!(sent.outcome.length, size, "length of a send");
            }
            Side::Server => {
                let received = rig.wait(vi, QueueKind::Receive).await?;
                ensure!(received.outcome.status, status::DONE | status::OP_RECEIVE, "a receive of {size}");
                ensure!(received.outcome.length, size, "length of a receive");
                ensure!(rig.holds(0, size, seed), true, "the octets of a message of {size}");
            }
        }
        rig.meet().await?;
    }
    Ok(())
}

pub(super) async fn data_are_gathered_and_scattered<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    if rig.side == Side::Server {
        let parts = [rig.part(0, 1), rig.part(100, 0), rig.part(200, 4_000), rig.part(10_000, 2_000)];
        rig.post(vi, QueueKind::Receive, &Descriptor::new(&parts))?;
    }
    rig.connect(vi).await?;
    match rig.side {
        Side::Client => {
            rig.fill(0, 5_000, 9);
            let parts = [rig.part(0, 3_000), rig.part(3_000, 0), rig.part(3_000, 2_000)];
            rig.post(vi, QueueKind::Send, &Descriptor::new(&parts))?;
            ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "it is sent");
        }
        Side::Server => {
            ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, 5_000, "all of it came");
            let mut came = rig.vipl.read(rig.data.address, 1).to_vec();
            came.extend_from_slice(rig.vipl.read(rig.data.address + 200, 4_000));
            came.extend_from_slice(rig.vipl.read(rig.data.address + 10_000, 999));
            let beyond = rig.vipl.read(rig.data.address + 10_999, 1_001).to_vec();
            rig.vipl.write(rig.data.address, &came);
            ensure!(rig.holds(0, 5_000, 9), true, "its parts, put together");
            ensure!(beyond.iter().all(|octet| *octet == 0), true, "nothing is written beyond it");
        }
    }
    Ok(())
}

pub(super) async fn immediate_data_arrive_with_or_without_others<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(3, 8_000).await?;
    for (size, immediate) in [(0, Some(0xdead_beef)), (8_000, Some(0)), (10, None)] {
        match rig.side {
            Side::Client => {
                let mut descriptor = Descriptor::new(&[rig.part(0, size)]);
                descriptor.immediate = immediate;
                rig.post(vi, QueueKind::Send, &descriptor)?;
                rig.wait(vi, QueueKind::Send).await?;
            }
            Side::Server => {
                let outcome = rig.wait(vi, QueueKind::Receive).await?.outcome;
                let came = (outcome.status & status::IMMEDIATE != 0).then_some(outcome.immediate);
                ensure!(came, immediate, "immediate data with {size} octets");
                ensure!(outcome.length, size, "its length");
            }
        }
    }
    Ok(())
}

pub(super) async fn both_directions_at_once_do_not_meet<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    for index in 0..4 {
        rig.post_recv(vi, index * 20_000, 20_000)?;
    }
    rig.connect(vi).await?;
    let (ours, theirs) = if rig.side == Side::Server { (3, 5) } else { (5, 3) };
    rig.fill(100_000, 20_000, ours);
    for _ in 0..4 {
        rig.post_send(vi, 100_000, 20_000)?;
    }
    for index in 0..4 {
        ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, 20_000, "message {index}");
        ensure!(rig.holds(index * 20_000, 20_000, theirs), true, "octets of message {index}");
        ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "send {index}");
    }
    Ok(())
}

pub(super) async fn descriptors_complete_in_order<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(10, 100).await?;
    if rig.side == Side::Client {
        let empty = rig.vipl.done(vi, QueueKind::Send);
        ensure!(empty, Err(super::super::DoneError::Empty), "an empty queue");
        let mut places = Vec::new();
        for size in 1..=10 {
            places.push(rig.post_send(vi, 0, size)?);
        }
        for place in places {
            let sent = rig.wait(vi, QueueKind::Send).await?.place;
            ensure!(sent.address, place.address, "the next sent");
        }
    } else {
        for size in 1..=10 {
            ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, size, "the next received");
        }
        rig.post_recv(vi, 0, 1)?;
        let done = rig.vipl.done(vi, QueueKind::Receive);
        ensure!(done, Err(super::super::DoneError::NotDone), "a receive that nothing came for");
    }
    Ok(())
}

pub(super) async fn rdma_write_needs_no_receive<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(0, 0).await?;
    let remote = rig.exchange(vi, rig.part(1_000, 0)).await?;
    if rig.side == Side::Client {
        rig.fill(0, 30_000, 4);
        let parts = [rig.part(0, 10_000), rig.part(10_000, 20_000)];
        rig.post(vi, QueueKind::Send, &Descriptor::rdma(Operation::RdmaWrite, remote, &parts))?;
        let outcome = rig.wait(vi, QueueKind::Send).await?.outcome;
        ensure!(outcome.status, status::DONE | status::OP_RDMA_WRITE, "status of the write");
        ensure!(outcome.length, 30_000, "length of the write");
    }
    rig.meet().await?;
    if rig.side == Side::Server {
        ensure!(rig.comes_to_hold(1_000, 30_000, 4), true, "the octets written");
        ensure!(rig.vipl.take_errors().len(), 0, "errors");
    }
    Ok(())
}

pub(super) async fn rdma_write_with_immediate_takes_a_receive<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(1, 10).await?;
    let remote = rig.exchange(vi, rig.part(1_000, 0)).await?;
    match rig.side {
        Side::Client => {
            rig.fill(0, 5_000, 6);
            let write = Descriptor::rdma(Operation::RdmaWrite, remote, &[rig.part(0, 5_000)]);
            rig.post(vi, QueueKind::Send, &write.with_immediate(77))?;
            ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "the write");
        }
        Side::Server => {
            let outcome = rig.wait(vi, QueueKind::Receive).await?.outcome;
            let expected = status::DONE | status::OP_REMOTE_RDMA_WRITE | status::IMMEDIATE;
            ensure!(
                (outcome.status, outcome.immediate, outcome.length),
                (expected, 77, 5_000),
                "the receive"
            );
            ensure!(rig.holds(1_000, 5_000, 6), true, "the octets written");
        }
    }
    Ok(())
}

fn reads<C: Consumer>(rig: &mut Rig<C>) -> bool {
    let level = rig.level;
    rig.vipl.attributes().rdma_read.has(level)
}

pub(super) async fn rdma_read_brings_remote_memory<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    if !reads(rig) {
        // Where there is none, asking for it is refused.
        let attributes = ViAttributes { enable_rdma_read: true, ..rig.attributes() };
        let refused = rig.vipl.create_vi(attributes);
        ensure!(refused, Err(super::super::ViplError::InvalidRdmaread), "a VI that may be read through");
        let vi = rig.connected(0, 0).await?;
        if rig.side == Side::Client {
            let remote = AddressSegment { address: 0, handle: MemoryHandle(1) };
            let read = Descriptor::rdma(Operation::RdmaRead, remote, &[rig.part(0, 10)]);
            rig.post(vi, QueueKind::Send, &read)?;
            let outcome = rig.wait(vi, QueueKind::Send).await?.outcome;
            ensure!(outcome.status & status::ERRORS, status::FORMAT_ERROR, "a read");
        }
        return Ok(());
    }
    let vi = rig.vi_of(ViAttributes { enable_rdma_read: true, ..rig.attributes() })?;
    rig.connect(vi).await?;
    if rig.side == Side::Server {
        rig.fill(50_000, 30_000, 8);
    }
    let remote = rig.exchange(vi, rig.part(50_000, 0)).await?;
    if rig.side == Side::Client {
        for size in [30_000, 0, 1] {
            let parts = [rig.part(0, size / 3), rig.part(u64::from(size / 3), size - size / 3)];
            rig.post(vi, QueueKind::Send, &Descriptor::rdma(Operation::RdmaRead, remote, &parts))?;
            let outcome = rig.wait(vi, QueueKind::Send).await?.outcome;
            ensure!(outcome.status, status::DONE | status::OP_RDMA_READ, "a read of {size}");
            ensure!(outcome.length, size, "its length");
            ensure!(rig.holds(0, size, 8), true, "its octets");
        }
    }
    Ok(())
}

pub(super) async fn a_fence_waits_for_reads<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    if !reads(rig) {
        return Ok(());
    }
    let vi = rig.vi_of(ViAttributes { enable_rdma_read: true, ..rig.attributes() })?;
    if rig.side == Side::Server {
        rig.fill(50_000, 10_000, 8);
        rig.post_recv(vi, 100_000, 10_000)?;
    }
    rig.connect(vi).await?;
    let remote = rig.exchange(vi, rig.part(50_000, 0)).await?;
    match rig.side {
        Side::Client => {
            // What is sent is what was read just before: without the fence it would be zeros.
            let part = rig.part(0, 10_000);
            rig.post(vi, QueueKind::Send, &Descriptor::rdma(Operation::RdmaRead, remote, &[part]))?;
            rig.post(vi, QueueKind::Send, &Descriptor::new(&[part]).fenced())?;
            for _ in 0..2 {
                ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "read and send");
            }
        }
        Side::Server => {
            ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, 10_000, "it comes back");
            ensure!(rig.holds(100_000, 10_000, 8), true, "as it went");
        }
    }
    Ok(())
}

pub(super) async fn completion_queues_tell_which_queue<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let cq = rig.vipl.create_cq(8).map_err(said)?;
    let vi = rig.vi_of(ViAttributes { send_cq: Some(cq), receive_cq: Some(cq), ..rig.attributes() })?;
    rig.post_recv(vi, 0, 10)?;
    ensure!(rig.vipl.cq_done(cq), Err(super::super::ViplError::NotDone), "nothing is done");
    rig.connect(vi).await?;
    rig.post_send(vi, 100, 10)?;
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (about, kind) = rig.vipl.cq_wait(cq, super::rig::PATIENCE).await.map_err(said)?;
        ensure!(about, vi, "the VI");
        ensure!(rig.vipl.done(vi, kind).is_ok(), true, "the descriptor of {kind:?}");
        kinds.push(kind);
    }
    kinds.sort();
    ensure!(kinds, [QueueKind::Send, QueueKind::Receive], "one of each");
    Ok(())
}

pub(super) async fn notification_takes_the_descriptor_once<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(2, 10).await?;
    if rig.side == Side::Client {
        for _ in 0..2 {
            rig.post_send(vi, 0, 10)?;
            rig.wait(vi, QueueKind::Send).await?;
        }
        return Ok(());
    }
    rig.vipl.notify(vi, QueueKind::Receive).map_err(said)?;
    // The second is not taken by it.
    let second = rig.wait(vi, QueueKind::Receive).await?;
    let notified = rig.vipl.notified().await.map_err(said)?;
    for (about, kind, first) in &notified {
        ensure!((*about, *kind), (vi, QueueKind::Receive), "the queue");
        ensure!(*first == second.place.address, false, "two descriptors");
    }
    ensure!(notified.len(), 1, "calls of the handler");
    ensure!(rig.state(vi)?, ViState::Connected, "the state");
    ensure!(control::DEFINED, 15, "bits of control");
    Ok(())
}
