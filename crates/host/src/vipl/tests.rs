//! VIs between two hosts that a cable joins.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use wiretwin_msg::via::{
    Address, DataSegment, Descriptor, DoneError, ErrorCode, MemoryAttributes, Place, QueueKind, Reliability,
    ViAttributes, ViHandle, ViState, status,
};
use wiretwin_units::Bytes;

use super::{Adapter, Event, Reach, carrier::SILENCE, host_of};
use crate::direct::tests::hosts::{HERE, THERE, enter, ip, with_hosts};

const LIMIT: Option<Duration> = Some(Duration::from_secs(30));
/// How often a kernel asks, and what a crowded machine may take to tell.
const MORE: Duration = Duration::from_secs(4);

/// A line of memory that a descriptor lies in, and what it receives.
#[repr(align(64))]
struct Room([u8; 128]);

struct End {
    adapter: Adapter,
    events: Receiver<Event>,
    vi: ViHandle,
    // What the adapter writes into.
    _room: Box<Room>,
}

/// An adapter with a VI that has a receive, on the host that the thread is on.
fn open(reach: Reach) -> End {
    let (tell, events) = mpsc::channel();
    let handler = Box::new(move |event| tell.send(event).expect("the test hears"));
    let adapter = Adapter::open(reach, "cable", false, handler).expect("a NIC");
    let ptag = adapter.create_ptag().expect("a tag");
    let mut room = Box::new(Room([0; 128]));
    let address = room.0.as_mut_ptr() as u64;
    let access = MemoryAttributes { ptag, enable_rdma_write: false, enable_rdma_read: false };
    let handle = adapter.register_mem(address, 128, access).expect("memory");
    let attributes = ViAttributes {
        reliability: Reliability::ReliableDelivery,
        max_transfer: Bytes::new(64),
        qos: 0,
        ptag,
        enable_rdma_write: false,
        enable_rdma_read: false,
        send_cq: None,
        receive_cq: None,
    };
    let vi = adapter.create_vi(attributes).expect("a VI");
    let descriptor = Descriptor::new(&[DataSegment { address: address + 64, handle, length: 64 }]).emit();
    room.0[..descriptor.len()].copy_from_slice(&descriptor);
    adapter.post(vi, QueueKind::Receive, Place { address, handle }).expect("a receive");
    End { adapter, events, vi, _room: room }
}

#[test]
fn a_cable_that_is_pulled_is_noticed_at_both_ends() {
    with_hosts(|hosts| {
        let ips = [HERE, THERE];
        for reach in [Reach::Udp, Reach::Packet] {
            let ends = [0, 1].map(|at| {
                enter(&hosts[at]);
                open(reach(ips[at]))
            });
            for at in [0, 1] {
                enter(&hosts[at]);
                let remote = Address { host: host_of(ips[1 - at]), discriminator: vec![1] };
                ends[at].adapter.connect_peer_request(ends[at].vi, &[1], &remote, LIMIT).expect("asked");
            }
            for End { adapter, vi, .. } in &ends {
                adapter.connect_peer_wait(*vi).expect("connected");
            }
            enter(&hosts[1]);
            ip("link set e0 down");
            let began = Instant::now();
            for End { adapter, events, vi, .. } in &ends {
                let Err(DoneError::Failed(flushed)) = adapter.wait(*vi, QueueKind::Receive, LIMIT) else {
                    panic!("it was not heard of")
                };
                assert_eq!(flushed.outcome.status & status::ERRORS, status::FLUSHED_ERROR);
                assert!(began.elapsed() < SILENCE + MORE, "after {:?}", began.elapsed());
                assert_eq!(adapter.query_vi(*vi).expect("the VI").0, ViState::Error);
                let Ok(Event::Asynchronous(told)) = events.recv_timeout(MORE) else {
                    panic!("it was not told")
                };
                assert_eq!(told.code, ErrorCode::ConnectionLost);
            }
            ip("link set e0 up");
        }
    });
}
