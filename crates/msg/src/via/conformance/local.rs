//! What needs no other process: attributes, handles, resources.

use wiretwin_units::Bytes;

use super::super::vi::{Place, QueueKind};
use super::super::{
    CqHandle, HostAddress, MemoryAttributes, MemoryHandle, Ptag, Reliability, ViAttributes, ViHandle,
    ViplError,
};
use super::rig::{Rig, said};
use super::{Consumer, Verdict, ensure};

pub(super) async fn attributes_not_supported_are_refused<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let good = rig.attributes();
    let nic = rig.vipl.attributes();
    let too_long = Bytes::new(u64::from(nic.max_transfer) + 1);
    let mut cases = alloc::vec![
        (ViAttributes { max_transfer: too_long, ..good }, ViplError::InvalidMtu),
        (ViAttributes { max_transfer: Bytes::new(0), ..good }, ViplError::InvalidMtu),
        (ViAttributes { qos: 1, ..good }, ViplError::InvalidQos),
        (ViAttributes { ptag: Ptag(99), ..good }, ViplError::InvalidPtag),
        (ViAttributes { send_cq: Some(CqHandle(99)), ..good }, ViplError::InvalidParameter),
    ];
    let unreliable = Reliability::UnreliableDelivery;
    let read = ViAttributes { reliability: unreliable, enable_rdma_read: true, ..good };
    cases.push((read, ViplError::InvalidRdmaread));
    if !nic.reliability.has(Reliability::ReliableReception) {
        let level = ViAttributes { reliability: Reliability::ReliableReception, ..good };
        cases.push((level, ViplError::InvalidReliabilityLevel));
    }
    let vi = rig.vi()?;
    for (attributes, code) in cases {
        ensure!(rig.vipl.create_vi(attributes), Err(code), "{attributes:?}");
        if attributes.send_cq.is_none() {
            ensure!(rig.vipl.set_vi_attributes(vi, attributes), Err(code), "set to {attributes:?}");
        }
    }
    ensure!(rig.vipl.query_vi(vi).map(|(_, now, ..)| now), Ok(good), "they are as they were");
    let smaller = ViAttributes { max_transfer: Bytes::new(1), ..good };
    ensure!(rig.vipl.set_vi_attributes(vi, smaller), Ok(()), "what is supported");
    ensure!(nic.max_transfer >= 32 << 10, true, "the least maximum transfer size");
    Ok(())
}

pub(super) async fn handles_that_are_none_are_refused<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let none = ViHandle(1_000);
    let invalid = ViplError::InvalidParameter;
    let place = Place { address: rig.data.address, handle: rig.data.handle };
    ensure!(rig.vipl.post_at(none, QueueKind::Send, place), Err(invalid), "post a send");
    ensure!(rig.vipl.post_at(none, QueueKind::Receive, place), Err(invalid), "post a receive");
    let waited = rig.vipl.wait(none, QueueKind::Send, None).await;
    ensure!(waited, Err(invalid), "wait for a send");
    ensure!(rig.vipl.destroy_vi(none), Err(invalid), "destroy a VI");
    ensure!(rig.vipl.disconnect(none), Err(invalid), "disconnect a VI");
    ensure!(rig.vipl.query_vi(none).map(|_| ()), Err(invalid), "query a VI");
    ensure!(rig.vipl.notify(none, QueueKind::Send), Err(invalid), "notify of a VI");
    let long = alloc::vec![0; usize::from(rig.vipl.attributes().max_discriminator) + 1];
    let waited = rig.vipl.connect_wait(&long, None).await;
    ensure!(waited.map(|_| ()), Err(invalid), "a discriminator that is too long");
    let cq = CqHandle(1_000);
    ensure!(rig.vipl.cq_done(cq), Err(invalid), "a completion queue");
    ensure!(rig.vipl.destroy_cq(cq), Err(invalid), "destroy a completion queue");
    ensure!(rig.vipl.resize_cq(cq, 1), Err(invalid), "resize a completion queue");
    ensure!(rig.vipl.create_cq(0), Err(invalid), "a completion queue of nothing");
    ensure!(rig.vipl.destroy_ptag(Ptag(99)), Err(invalid), "destroy a tag");
    let (address, handle) = (rig.data.address, rig.data.handle);
    ensure!(rig.vipl.deregister_mem(address + 1, handle), Err(invalid), "not where it begins");
    ensure!(rig.vipl.deregister_mem(address, MemoryHandle(99)), Err(invalid), "no such memory");
    let query = rig.vipl.query_mem(address - 1, handle);
    ensure!(query, Err(invalid), "query memory outside the region");
    let attributes = MemoryAttributes { ptag: rig.tag, enable_rdma_write: false, enable_rdma_read: false };
    ensure!(rig.vipl.register(address, 0, attributes), Err(invalid), "register nothing");
    ensure!(rig.vipl.register(u64::MAX - 5, 10, attributes), Err(invalid), "register what is no memory");
    let foreign = MemoryAttributes { ptag: Ptag(99), ..attributes };
    ensure!(rig.vipl.register(address, 10, foreign), Err(ViplError::InvalidPtag), "with no tag");
    let set = rig.vipl.set_mem_attributes(address, handle, foreign);
    ensure!(set, Err(ViplError::InvalidPtag), "set to no tag");
    ensure!(rig.vipl.set_mem_attributes(address, handle, attributes), Ok(()), "set");
    ensure!(rig.vipl.query_mem(address, handle), Ok(attributes), "query");
    Ok(())
}

pub(super) async fn resources_end_and_come_back<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let nic = rig.vipl.attributes();
    let used_up = ViplError::ErrorResource;
    let mut last = None;
    for _ in 1..nic.max_ptag {
        last = Some(rig.vipl.create_ptag().map_err(said)?);
    }
    ensure!(rig.vipl.create_ptag(), Err(used_up), "one tag more");
    ensure!(rig.vipl.destroy_ptag(last.unwrap_or(rig.tag)), Ok(()), "give one back");
    ensure!(rig.vipl.create_ptag().is_ok(), true, "and get another");
    let mut vi = rig.vi()?;
    for _ in 1..nic.max_vi {
        vi = rig.vi()?;
    }
    let attributes = rig.attributes();
    ensure!(rig.vipl.create_vi(attributes), Err(used_up), "one VI more");
    ensure!(rig.vipl.destroy_vi(vi), Ok(()), "give one back");
    ensure!(rig.vipl.destroy_vi(vi), Err(ViplError::InvalidParameter), "not twice");
    ensure!(rig.vi()? == vi, false, "a handle is given once");
    let mut cq = rig.vipl.create_cq(1).map_err(said)?;
    for _ in 1..nic.max_cq {
        cq = rig.vipl.create_cq(1).map_err(said)?;
    }
    ensure!(rig.vipl.create_cq(1), Err(used_up), "one completion queue more");
    ensure!(rig.vipl.destroy_cq(cq), Ok(()), "give one back");
    ensure!(rig.vipl.create_cq(1).is_ok(), true, "and get another");
    let more = rig.vipl.create_cq(nic.max_cq_entries + 1);
    ensure!(more, Err(ViplError::InvalidParameter), "too many entries");
    Ok(())
}

pub(super) async fn what_is_in_use_stays<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let in_use = ViplError::ErrorResource;
    ensure!(rig.vipl.destroy_ptag(rig.tag), Err(in_use), "the tag of memory");
    let tag = rig.vipl.create_ptag().map_err(said)?;
    let cq = rig.vipl.create_cq(2).map_err(said)?;
    let vi = rig.vi_of(ViAttributes { ptag: tag, send_cq: Some(cq), ..rig.attributes() })?;
    ensure!(rig.vipl.destroy_ptag(tag), Err(in_use), "the tag of a VI");
    ensure!(rig.vipl.destroy_cq(cq), Err(in_use), "the completion queue of a VI");
    ensure!(rig.vipl.resize_cq(cq, 5), Ok(()), "it may grow");
    ensure!(rig.vipl.destroy_vi(vi), Ok(()), "the VI goes");
    ensure!(rig.vipl.destroy_cq(cq), Ok(()), "then its completion queue may");
    ensure!(rig.vipl.destroy_ptag(tag), Ok(()), "and its tag");
    let vi = rig.vi()?;
    rig.post_recv(vi, 0, 10)?;
    ensure!(rig.vipl.destroy_vi(vi), Err(in_use), "a VI with a descriptor");
    Ok(())
}

pub(super) async fn names_are_found_while_their_service_is_open<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let closed = ViplError::ErrorNameservice;
    let (ours, theirs) = (rig.vipl.attributes().local, rig.vipl.remote());
    let names = &mut rig.vipl;
    ensure!(names.ns_get_host_by_name("here", 0), Err(closed), "before it is open");
    ensure!(names.ns_get_host_by_addr(ours), Err(closed), "before it is open");
    ensure!(names.ns_shutdown(), Err(closed), "before it is open");
    ensure!(names.ns_init(&[("", ours)]), Err(ViplError::InvalidParameter), "a name of no letters");
    ensure!(names.ns_init(&[("here", ours), ("there", theirs), ("here", theirs)]), Ok(()), "it opens");
    ensure!(names.ns_init(&[]), Err(closed), "once");
    ensure!(names.ns_get_host_by_name("there", 0), Ok(theirs), "a name");
    ensure!(names.ns_get_host_by_name("here", 1), Ok(theirs), "the second of a name");
    ensure!(names.ns_get_host_by_name("here", 2), Err(closed), "a third");
    ensure!(names.ns_get_host_by_name("nowhere", 0), Err(closed), "no such name");
    ensure!(names.ns_get_host_by_addr(ours), Ok("here".into()), "an address");
    ensure!(names.ns_get_host_by_addr(HostAddress([9; 6])), Err(closed), "no such address");
    ensure!(names.ns_shutdown(), Ok(()), "it closes");
    ensure!(names.ns_get_host_by_name("here", 0), Err(closed), "closed");
    Ok(())
}
