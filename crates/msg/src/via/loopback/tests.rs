use alloc::string::String;

use super::super::conformance::{self, CASES, Side};
use super::super::{
    Delivery, Descriptor, ErrorCode, NicAttributes, QueueKind, Reliability, ViAttributes, ViState, Vipl,
    status,
};
use super::*;
use wiretwin_units::Bytes;

fn suite(attributes: impl Fn(HostAddress) -> NicAttributes) {
    let nics = HOSTS.map(&attributes);
    for level in conformance::levels(&nics[0]) {
        let mut ends = pair(Span::from_us(10), [&[], &[]]);
        for case in CASES {
            let cable = ends[0].handle();
            let [one, other] = ends;
            let server = conformance::run(case, level, Side::Server, Vipl::open(one, nics[0].clone()));
            let client = conformance::run(case, level, Side::Client, Vipl::open(other, nics[1].clone()));
            // Either may have been left alone by the other: both are told.
            ends = match run(&cable, server, client) {
                (Ok(one), Ok(other)) => [one, other],
                (one, other) => panic!("{:?}\n{:?}", one.err(), other.err()),
            };
        }
    }
}

#[test]
fn the_adapter_conforms() {
    suite(NicAttributes::adapter);
}

#[test]
fn m_via_conforms() {
    suite(NicAttributes::m_via);
}

#[test]
fn a_case_that_is_none_is_named() {
    let [one, other] = pair(Span::from_us(1), [&[], &[]]);
    let nics = HOSTS.map(NicAttributes::adapter);
    let level = Reliability::ReliableDelivery;
    let cable = one.handle();
    let server = conformance::run("dance", level, Side::Server, Vipl::open(one, nics[0].clone()));
    let client = conformance::run("dance", level, Side::Client, Vipl::open(other, nics[1].clone()));
    let (server, _) = run(&cable, server, client);
    assert_eq!(server.err(), Some(String::from("dance, ReliableDelivery, Server: no such case")));
}

/// What becomes of `count` messages of `length` octets when packets of the client are lost; `cut` stops
/// all. The errors of the receives, those of the sends, the errors told to the client, its state.
struct Fate {
    received: Vec<(u32, u32)>,
    sent: Vec<u32>,
    codes: Vec<ErrorCode>,
    state: ViState,
    resent: u64,
}

fn fate(level: Reliability, lost: &[u64], count: usize, length: u32, cut: bool) -> Fate {
    let [server, client] = pair(Span::from_us(10), [&[], lost]);
    let cable = server.handle();
    let nics = HOSTS.map(NicAttributes::adapter);
    let open = |device, nic: &NicAttributes| {
        let mut vipl = Vipl::open(device, nic.clone());
        let ptag = vipl.nic().create_ptag().expect("a tag");
        let data = vipl.allocate_registered(1 << 16, ptag).expect("memory");
        let attributes = ViAttributes {
            reliability: level,
            max_transfer: Bytes::new(1 << 16),
            qos: 0,
            ptag,
            enable_rdma_write: false,
            enable_rdma_read: false,
            send_cq: None,
            receive_cq: None,
        };
        let vi = vipl.nic().create_vi(attributes).expect("a VI");
        let descriptors = vipl.allocate_registered(64 * count, ptag).expect("memory");
        let place = move |index: usize| super::super::Place {
            address: descriptors.address + 64 * index as u64,
            handle: descriptors.handle,
        };
        let descriptor = Descriptor::new(&[super::super::DataSegment { length, ..data }]);
        (vipl, vi, place, descriptor, data)
    };
    let (mut at_server, vi, place, receive, data) = open(server, &nics[0]);
    let serve = async {
        for index in 0..count {
            at_server.post(vi, QueueKind::Receive, place(index), &receive).expect("posted");
        }
        at_server.meet().await.expect("the client");
        at_server.connect_peer_request(vi, b"a", b"a", None).expect("asked");
        at_server.connect_peer_wait(vi).await.expect("connected");
        let mut received = Vec::new();
        // Until nothing comes any more.
        while let Ok(done) = at_server.wait(vi, QueueKind::Receive, Some(Span::from_ms(500))).await {
            if done.is_success() {
                let octets = at_server.read(data.address, length as usize);
                assert!(octets.iter().enumerate().all(|(place, octet)| *octet == (place % 251) as u8));
            }
            received.push((done.outcome.status & status::ERRORS, done.outcome.length));
        }
        received
    };
    let (mut at_client, vi, place, send, data) = open(client, &nics[1]);
    let ask = async {
        let octets: Vec<u8> = (0..length as usize).map(|place| (place % 251) as u8).collect();
        at_client.write(data.address, &octets);
        at_client.meet().await.expect("the server");
        at_client.connect_peer_request(vi, b"a", b"a", None).expect("asked");
        at_client.connect_peer_wait(vi).await.expect("connected");
        if cut {
            at_client.device().cut();
        }
        for index in 0..count {
            at_client.post(vi, QueueKind::Send, place(index), &send).expect("posted");
        }
        let mut sent = Vec::new();
        for _ in 0..count {
            let done = at_client.wait(vi, QueueKind::Send, None).await.expect("it ends");
            sent.push(done.outcome.status & status::ERRORS);
        }
        let codes = at_client.take_errors().iter().map(|error| error.code).collect();
        let state = at_client.nic().query_vi(vi).expect("a VI").0;
        (sent, codes, state, at_client.nic().counters().resent)
    };
    let (received, (sent, codes, state, resent)) = run(&cable, serve, ask);
    Fate { received, sent, codes, state, resent }
}

/// The client's first two packets ask for the connection and accept the server's.
const FIRST: u64 = 2;

#[test]
fn an_unreliable_message_that_loses_a_part_is_partial_and_the_next_is_whole() {
    // Messages of three packets; the second packet of the first is lost.
    let fate = fate(Reliability::UnreliableDelivery, &[FIRST + 1], 2, 5_000, false);
    assert_eq!(fate.sent, [0, 0], "nobody answers for it");
    assert_eq!(fate.received, [(status::PARTIAL_ERROR, 2_048), (0, 5_000)]);
    assert_eq!((fate.state, fate.resent), (ViState::Connected, 0));
}

#[test]
fn an_unreliable_message_that_is_lost_whole_leaves_no_trace() {
    let fate = fate(Reliability::UnreliableDelivery, &[FIRST], 3, 100, false);
    assert_eq!(fate.received, [(0, 100), (0, 100)]);
    assert!(fate.codes.is_empty());
}

#[test]
fn reliable_messages_arrive_exactly_once_whatever_is_lost() {
    for level in [Reliability::ReliableDelivery, Reliability::ReliableReception] {
        for lost in [&[FIRST][..], &[FIRST + 1, FIRST + 4, FIRST + 9], &[FIRST + 29]] {
            let fate = fate(level, lost, 10, 5_000, false);
            assert_eq!(fate.received, [(0, 5_000); 10], "{lost:?}");
            assert_eq!(fate.sent, [0; 10]);
            assert_eq!(fate.state, ViState::Connected);
            assert!(fate.resent > 0, "what was lost came again");
        }
    }
}

#[test]
fn a_reliable_connection_that_is_cut_is_lost() {
    let fate = fate(Reliability::ReliableDelivery, &[], 2, 5_000, true);
    assert_eq!(fate.sent, [status::TRANSPORT_ERROR, status::FLUSHED_ERROR]);
    assert_eq!(fate.codes, [ErrorCode::ConnectionLost]);
    assert_eq!(fate.state, ViState::Error);
    // Seven times all six packets.
    assert_eq!(fate.resent, 42);
    assert_eq!(Delivery::COMPLETION_AT, 20);
}

#[test]
fn processes_that_wait_for_each_other_are_told_so() {
    let [one, other] = pair(Span::from_us(1), [&[], &[]]);
    let cable = one.handle();
    let waiting = |device: Loopback| async move {
        let mut vipl = Vipl::open(device, NicAttributes::adapter(HOSTS[0]));
        vipl.connect_wait(b"", None).await.map(|_| ())
    };
    let stuck = Err(super::super::ViplError::NotReachable);
    assert_eq!(run(&cable, waiting(one), waiting(other)), (stuck, stuck));
}
