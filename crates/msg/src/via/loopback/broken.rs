//! What a network does to RDMA and to unreliable messages, and a device that breaks down.

use super::super::{
    AddressSegment, DataSegment, Descriptor, ErrorCode, NicAttributes, Operation, Place, QueueKind,
    Reliability, Resource, ViAttributes, ViHandle, ViState, Vipl, ViplError, status,
};
use super::*;
use wiretwin_units::Bytes;

/// A process: where its descriptors and data are.
struct End {
    vipl: Vipl<Loopback>,
    vi: ViHandle,
    descriptors: DataSegment,
    data: DataSegment,
}

impl End {
    fn new(device: Loopback, host: HostAddress, level: Reliability) -> Self {
        Self::of(device, NicAttributes::adapter(host), level)
    }

    fn of(device: Loopback, nic: NicAttributes, level: Reliability) -> Self {
        let mut vipl = Vipl::open(device, nic);
        let ptag = vipl.nic().create_ptag().expect("a tag");
        let data = vipl.allocate_registered(1 << 16, ptag).expect("memory");
        let descriptors = vipl.allocate_registered(64 * 16, ptag).expect("memory");
        let attributes = ViAttributes {
            reliability: level,
            max_transfer: Bytes::new(1 << 16),
            qos: 0,
            ptag,
            enable_rdma_write: true,
            enable_rdma_read: level.is_reliable(),
            send_cq: None,
            receive_cq: None,
        };
        let vi = vipl.nic().create_vi(attributes).expect("a VI");
        Self { vipl, vi, descriptors, data }
    }

    async fn connect(&mut self) {
        self.vipl.meet().await.expect("the other process");
        self.vipl.connect_peer_request(self.vi, b"a", b"a", None).expect("asked");
        self.vipl.connect_peer_wait(self.vi).await.expect("connected");
    }

    fn post(&mut self, kind: QueueKind, index: u64, descriptor: &Descriptor) {
        let place = Place { address: self.descriptors.address + 64 * index, handle: self.descriptors.handle };
        self.vipl.post(self.vi, kind, place, descriptor).expect("posted");
    }

    /// A message or, with a place, an RDMA write of so many octets.
    fn send(&mut self, index: u64, length: u32, to: Option<AddressSegment>) {
        let part = [DataSegment { length, ..self.data }];
        let descriptor = match to {
            Some(remote) => Descriptor::rdma(Operation::RdmaWrite, remote, &part),
            None => Descriptor::new(&part),
        };
        self.post(QueueKind::Send, index, &descriptor);
    }

    fn codes(&mut self) -> Vec<ErrorCode> {
        self.vipl.take_errors().iter().map(|error| error.code).collect()
    }

    fn state(&mut self) -> ViState {
        self.vipl.nic().query_vi(self.vi).expect("a VI").0
    }

    /// Lets so much time pass.
    async fn pass(&mut self, time: Span) {
        let until = self.vipl.device().now().saturating_add(time);
        while self.vipl.turn(Some(until)).await.is_ok() {}
    }
}

/// The client's first two packets ask for the connection and accept the server's.
const FIRST: u64 = 2;

/// What a server is told, and its state, when its client's packets are lost or damaged: of two RDMA writes or
/// messages of three packets; and how its receives end.
fn told(
    level: Reliability,
    rdma: bool,
    lost: &[u64],
    damaged: &[u64],
) -> (Vec<ErrorCode>, ViState, Vec<(u32, u32)>) {
    let [server, mut client] = pair(Span::from_us(10), [&[], lost]);
    client.damage(damaged);
    let cable = server.handle();
    let [mut server, mut client] =
        [(server, HOSTS[0]), (client, HOSTS[1])].map(|(device, host)| End::new(device, host, level));
    // Both allocate alike.
    let there = AddressSegment { address: server.data.address, handle: server.data.handle };
    let serve = async {
        let descriptor = Descriptor::new(&[server.data]);
        (0..3).for_each(|index| server.post(QueueKind::Receive, index, &descriptor));
        server.connect().await;
        server.pass(Span::from_ms(500)).await;
        let mut received = Vec::new();
        while let Ok(done) = server.vipl.wait(server.vi, QueueKind::Receive, Some(Span::from_ms(1))).await {
            received.push((done.outcome.status & status::ERRORS, done.outcome.length));
        }
        (server.codes(), server.state(), received)
    };
    let ask = async {
        client.connect().await;
        (0..2).for_each(|index| client.send(index, 5_000, rdma.then_some(there)));
        client.pass(Span::from_ms(500)).await;
    };
    run(&cable, serve, ask).0
}

#[test]
fn an_rdma_write_of_which_a_part_is_lost_is_aborted() {
    let (codes, state, received) = told(Reliability::UnreliableDelivery, true, &[FIRST + 1], &[]);
    assert_eq!((codes, state), (Vec::from([ErrorCode::RdmaWriteAbort]), ViState::Connected));
    assert!(received.is_empty(), "no receive is for it");
}

#[test]
fn data_that_come_damaged_are_told_of_where_nothing_comes_again() {
    for part in 0..3 {
        let damaged = [FIRST + part];
        let (codes, state, _) = told(Reliability::UnreliableDelivery, true, &[], &damaged);
        assert_eq!(
            (codes, state),
            (Vec::from([ErrorCode::RdmaWriteData]), ViState::Connected),
            "part {part}"
        );
        let (codes, state, received) = told(Reliability::UnreliableDelivery, false, &[], &damaged);
        assert_eq!((codes, state), (Vec::new(), ViState::Connected), "part {part}");
        let before = 2_048 * part as u32;
        assert_eq!(received, [(status::TRANSPORT_ERROR, before), (0, 5_000)], "and the next is whole");
        for level in [Reliability::ReliableDelivery, Reliability::ReliableReception] {
            let (codes, state, received) = told(level, false, &[], &damaged);
            assert_eq!((codes, state), (Vec::new(), ViState::Connected), "it comes again");
            assert_eq!(received, [(0, 5_000); 2]);
        }
    }
}

#[test]
fn a_connection_that_is_lost_within_an_rdma_write_says_so() {
    // Of six packets the first comes, and what is sent again does not; the end of the connection does.
    let lost: Vec<u64> = (FIRST + 1..FIRST + 6 + 7 * 6).collect();
    let (codes, state, _) = told(Reliability::ReliableDelivery, true, &lost, &[]);
    assert_eq!(codes, [ErrorCode::RdmaTransport, ErrorCode::ConnectionLost]);
    assert_eq!(state, ViState::Error);
    let (codes, ..) = told(Reliability::ReliableDelivery, false, &lost, &[]);
    assert_eq!(codes, [ErrorCode::ConnectionLost], "a message has a receive that tells of it");
}

#[test]
fn a_device_that_breaks_down_loses_every_connection_and_ends_every_wait() {
    let [server, client] = pair(Span::from_us(10), [&[], &[]]);
    let cable = server.handle();
    let level = Reliability::ReliableDelivery;
    let [mut server, mut client] =
        [(server, HOSTS[0]), (client, HOSTS[1])].map(|(device, host)| End::new(device, host, level));
    let serve = async {
        let descriptor = Descriptor::new(&[server.data]);
        server.post(QueueKind::Receive, 0, &descriptor);
        server.connect().await;
        let wait = server.vipl.nic().connect_wait(SimTime::ZERO, b"b", None).expect("it begins");
        // Its client ends without a word, and nothing is left that could happen.
        let vi = server.vi;
        assert_eq!(server.vipl.wait(vi, QueueKind::Receive, None).await, Err(ViplError::NotReachable));
        let errors: Vec<_> =
            server.vipl.take_errors().iter().map(|error| (error.resource, error.code)).collect();
        let lost = (Resource::Vi(vi), ErrorCode::ConnectionLost);
        assert_eq!(errors, [(Resource::Nic, ErrorCode::Catastrophic), lost], "told of once");
        let flushed = server.vipl.wait(vi, QueueKind::Receive, None).await.expect("it is done");
        assert_eq!(flushed.outcome.status & status::ERRORS, status::FLUSHED_ERROR);
        assert_eq!(server.state(), ViState::Error);
        assert_eq!(server.vipl.nic().poll_wait(wait), Err(ViplError::NotReachable));
        server.vipl.disconnect(vi).expect("it is there still");
        let again = server.vipl.connect_peer_request(vi, b"a", b"a", None);
        assert_eq!(again, Err(ViplError::NotReachable));
        let waits = server.vipl.nic().connect_wait(SimTime::ZERO, b"b", None);
        assert_eq!(waits, Err(ViplError::NotReachable));
        assert_eq!(server.codes(), [], "and nothing else is told");
    };
    let ask = async {
        client.connect().await;
    };
    run(&cable, serve, ask);
}

/// Whose memory is given back in the middle of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whose {
    Sender,
    Receiver,
    Read,
}

/// How the descriptors at the client and the server end, the codes told to the server, and whether octets behind the
/// first packet came to memory that was given back.
fn given_back(level: Reliability, whose: Whose) -> (u32, Option<u32>, Vec<ErrorCode>, bool) {
    let [server, client] = pair(Span::from_us(10), [&[], &[]]);
    let cable = server.handle();
    // A window of one packet: the others go when it is acknowledged.
    let [mut server, mut client] = [(server, HOSTS[0]), (client, HOSTS[1])].map(|(device, host)| {
        End::of(device, NicAttributes { window: 1, ..NicAttributes::adapter(host) }, level)
    });
    let there = AddressSegment { address: server.data.address, handle: server.data.handle };
    let serve = async {
        let descriptor = Descriptor::new(&[server.data]);
        server.post(QueueKind::Receive, 0, &descriptor);
        let DataSegment { address, handle, .. } = server.data;
        if whose == Whose::Read {
            server.vipl.write(address, &[7; 5_000]);
        }
        server.connect().await;
        server.vipl.meet().await.expect("the client");
        if whose != Whose::Sender {
            // The first packet of the message, or what asks for octets.
            server.vipl.turn(None).await.expect("it comes");
            server.vipl.nic().deregister_mem(address, handle).expect("it was registered");
        }
        server.pass(Span::from_ms(50)).await;
        let wait = server.vipl.wait(server.vi, QueueKind::Receive, Some(Span::from_ms(1))).await;
        let behind = server.vipl.read(address, 5_000)[2_048..].contains(&9);
        (wait.ok().map(|done| done.outcome.status & status::ERRORS), server.codes(), behind)
    };
    let ask = async {
        let DataSegment { address, handle, .. } = client.data;
        client.vipl.write(address, &[9; 5_000]);
        client.connect().await;
        client.vipl.meet().await.expect("the server");
        if whose == Whose::Read {
            let part = [DataSegment { length: 5_000, ..client.data }];
            client.post(QueueKind::Send, 0, &Descriptor::rdma(Operation::RdmaRead, there, &part));
        } else {
            client.send(0, 5_000, None);
        }
        if whose == Whose::Sender {
            client.vipl.nic().deregister_mem(address, handle).expect("it was registered");
        }
        let done = client.vipl.wait(client.vi, QueueKind::Send, None).await.expect("it ends");
        done.outcome.status & status::ERRORS
    };
    let ((received, codes, behind), sent) = run(&cable, serve, ask);
    (sent, received, codes, behind)
}

#[test]
fn memory_that_is_given_back_within_a_message_is_not_touched() {
    let level = Reliability::ReliableReception;
    let lost = ErrorCode::ConnectionLost;
    let (sent, received, codes, behind) = given_back(level, Whose::Receiver);
    assert_eq!((sent, received), (status::REMOTE_DESCRIPTOR_ERROR, Some(status::PROTECTION_ERROR)));
    assert_eq!((codes, behind), (Vec::from([lost]), false));
    let (sent, received, codes, behind) = given_back(level, Whose::Sender);
    assert_eq!((sent, received), (status::PROTECTION_ERROR, Some(status::FLUSHED_ERROR)));
    assert_eq!((codes, behind), (Vec::from([lost]), false));
    let (sent, _, codes, _) = given_back(level, Whose::Read);
    assert_eq!(sent, status::FLUSHED_ERROR);
    assert_eq!(codes, [ErrorCode::RdmaReadProtection, lost]);
    // Where nobody answers, all is sent at once; the receive is in error, and the connection goes on.
    let (sent, received, codes, behind) = given_back(Reliability::UnreliableDelivery, Whose::Receiver);
    assert_eq!((sent, received), (0, Some(status::PROTECTION_ERROR)));
    assert_eq!((codes, behind), (Vec::new(), false));
}
