//! What a client does, state by state, at stated times.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::{AuthStatus, Incoming};
use super::*;

type Octets = Arc<[u8]>;

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Span::from_ms(ms)
}

fn client(transport: Transport) -> Client<Octets> {
    let (program, version) = (0x2000_0001, 1);
    let config = Config { program, version, credential: Credential::NONE, total: TOTAL, transport };
    Client::new(config, 7)
}

fn datagrams() -> Client<Octets> {
    client(Transport::Datagram { retry: Retry::SUN_RPC, largest: DATAGRAM_OCTETS })
}

fn stream(resends: u32) -> Client<Octets> {
    client(Transport::Stream { buffer: Bytes::new(0), resends })
}

fn drain(client: &mut Client<Octets>) -> (Vec<ClientOutput<Octets>>, Option<SimTime>) {
    let mut outputs = Vec::new();
    loop {
        match client.poll_output() {
            Output::Timeout(next) => return (outputs, next),
            Output::Work(_) => {}
            other => outputs.push(other),
        }
    }
}

fn octets(text: &[u8]) -> Octets {
    Arc::from(text)
}

fn call(client: &mut Client<Octets>, ms: u64, mode: Mode) -> CallId {
    client.call(at(ms), 3, octets(b"args"), mode).expect("it fits")
}

fn done(call: CallId, result: Result<&[u8], Failure>) -> ClientOutput<Octets> {
    Output::Deliver(Completed { call, result: result.map(octets) })
}

/// The octets of each write, and nothing else put out.
fn written(client: &mut Client<Octets>) -> Vec<Vec<u8>> {
    let write = |output| match output {
        Output::Transmit(Transmit::Write(write)) => write.octets(),
        other => panic!("{other:?}"),
    };
    drain(client).0.into_iter().map(write).collect()
}

fn record(xid: u8) -> Vec<u8> {
    let mut octets = b"\x80\0\0\x2c\0\0\0".to_vec();
    octets.push(xid);
    octets.extend(b"\0\0\0\0\0\0\0\x02\x20\0\0\x01\0\0\0\x01\0\0\0\x03");
    octets.extend([0; 16]);
    octets.extend(b"args");
    octets
}

#[test]
fn a_call_is_a_datagram_and_its_reply_the_results() {
    let mut client = datagrams();
    let id = call(&mut client, 0, Mode::Blocking);
    let (outputs, next) = drain(&mut client);
    let [Output::Transmit(Transmit::Datagram(sent))] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(sent.octets(), record(7)[4..]);
    assert_eq!((next, client.state(), client.waiting()), (Some(at(5000)), State::Connectionless, 1));
    let reply = b"\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0done";
    let Incoming::Reply(reply) = Incoming::parse(reply) else { panic!("a reply") };
    client.handle_reply(at(1), reply.clone());
    assert_eq!(drain(&mut client), (Vec::from([done(id, Ok(b"done"))]), None));
    client.handle_reply(at(2), reply);
    assert_eq!(drain(&mut client).0, [Output::Event(Event::Stray { xid: 7 })], "once");
}

#[test]
fn a_call_is_sent_again_with_its_xid_until_its_time_is_over() {
    for (retry, times) in [(Retry::SUN_RPC, &[5, 10, 15, 20][..]), (Retry::TI_RPC, &[15])] {
        let mut client = client(Transport::Datagram { retry, largest: DATAGRAM_OCTETS });
        let id = call(&mut client, 0, Mode::Blocking);
        let (first, mut next) = drain(&mut client);
        for &seconds in times {
            assert_eq!(next, Some(at(seconds * 1000)));
            client.handle_timeout(at(seconds * 1000));
            let (outputs, then) = drain(&mut client);
            assert_eq!(outputs, [Output::Event(Event::SentAgain(id)), first[0].clone()]);
            next = then;
        }
        assert_eq!(next, Some(at(25_000)));
        client.handle_timeout(at(24_999));
        assert_eq!(drain(&mut client).0, []);
        client.handle_timeout(at(25_000));
        let failure = Failure::TimedOut { after: TOTAL, sent: times.len() as u32 + 1 };
        assert_eq!(drain(&mut client), (Vec::from([done(id, Err(failure))]), None));
    }
    let said = Failure::TimedOut { after: TOTAL, sent: 5 }.to_string();
    assert_eq!(said, "no reply within 25000 ms; the call was sent 5 times");
}

#[test]
fn every_refusal_ends_the_call_with_its_name() {
    for refusal in [
        Refusal::ProgramUnavailable,
        Refusal::ProgramMismatch { low: 1, high: 3 },
        Refusal::ProcedureUnavailable,
        Refusal::GarbageArguments,
        Refusal::SystemError,
        Refusal::RpcMismatch { low: 2, high: 2 },
        Refusal::Authentication(AuthStatus::TOO_WEAK),
    ] {
        let mut client = datagrams();
        let id = call(&mut client, 0, Mode::Blocking);
        drain(&mut client);
        client.handle_reply(at(1), Reply { xid: id.0, result: Err(refusal) });
        assert_eq!(drain(&mut client).0, [done(id, Err(Failure::Refused(refusal)))]);
    }
}

#[test]
fn replies_find_their_calls_in_any_order() {
    let mut client = datagrams();
    let ids = [0, 1, 2].map(|ms| call(&mut client, ms, Mode::Blocking));
    assert_eq!(ids, [CallId(7), CallId(8), CallId(9)]);
    drain(&mut client);
    for id in [ids[2], ids[0], ids[1]] {
        client.handle_reply(at(10), Reply { xid: id.0, result: Ok(octets(b"done")) });
        assert_eq!(drain(&mut client).0, [done(id, Ok(b"done"))]);
    }
}

#[test]
fn xids_go_round_and_pass_over_those_that_wait() {
    let mut client = datagrams();
    client.xid = u32::MAX;
    let first = call(&mut client, 0, Mode::Blocking);
    assert_eq!((first, call(&mut client, 0, Mode::Blocking)), (CallId(u32::MAX), CallId(0)));
    client.xid = u32::MAX;
    assert_eq!(call(&mut client, 0, Mode::Blocking), CallId(1));
}

#[test]
fn a_call_that_fits_no_datagram_is_refused() {
    let mut client = datagrams();
    let error = client.call(at(0), 3, octets(&[0; 8764]), Mode::Blocking).expect_err("8804 octets");
    assert_eq!(error.to_string(), "a call of 8804 octets, a datagram has room for 8800");
    assert_eq!(drain(&mut client), (Vec::new(), None));
}

#[test]
fn a_stream_is_connected_by_the_first_call() {
    let mut client = stream(0);
    assert_eq!(client.state(), State::Closed);
    let id = call(&mut client, 0, Mode::Blocking);
    assert_eq!(drain(&mut client), (Vec::from([Output::Transmit(Transmit::Connect)]), Some(at(25_000))));
    assert_eq!(client.state(), State::Connecting);
    client.handle_connected(at(1));
    assert_eq!(written(&mut client), [record(7)]);
    client.handle_reply(at(2), Reply { xid: 7, result: Ok(octets(b"done")) });
    assert_eq!(drain(&mut client), (Vec::from([done(id, Ok(b"done"))]), None));
    assert_eq!(client.state(), State::Open);
}

#[test]
fn batched_calls_wait_for_the_blocking_one_that_flushes_them() {
    let mut client = stream(0);
    call(&mut client, 0, Mode::Batched);
    drain(&mut client);
    client.handle_connected(at(1));
    call(&mut client, 1, Mode::Batched);
    assert_eq!(drain(&mut client), (Vec::new(), None), "nobody waits for them");
    let id = call(&mut client, 2, Mode::Blocking);
    assert_eq!(written(&mut client), [[record(7), record(8), record(9)].concat()]);
    client.handle_reply(at(3), Reply { xid: 9, result: Ok(octets(b"done")) });
    assert_eq!(drain(&mut client).0, [done(id, Ok(b"done"))]);
    call(&mut client, 4, Mode::Batched);
    client.flush(at(4));
    assert_eq!(written(&mut client), [record(10)]);
}

#[test]
fn batched_datagrams_go_at_once_and_never_again() {
    let mut client = datagrams();
    call(&mut client, 0, Mode::Batched);
    let (outputs, next) = drain(&mut client);
    assert!(matches!(outputs[..], [Output::Transmit(Transmit::Datagram(_))]), "{outputs:?}");
    assert_eq!((next, client.waiting()), (None, 0));
}

#[test]
fn a_connection_that_is_refused_or_lost_ends_its_calls() {
    let mut client = stream(0);
    let id = call(&mut client, 0, Mode::Blocking);
    drain(&mut client);
    client.handle_closed(at(1));
    assert_eq!(drain(&mut client), (Vec::from([done(id, Err(Failure::NotConnected))]), None));
    let id = call(&mut client, 2, Mode::Blocking);
    assert_eq!(drain(&mut client).0, [Output::Transmit(Transmit::Connect)], "the next call tries again");
    client.handle_connected(at(3));
    call(&mut client, 3, Mode::Batched);
    assert_eq!(written(&mut client), [record(8)]);
    client.handle_closed(at(4));
    let lost = Output::Event(Event::BatchLost { calls: 1 });
    assert_eq!(drain(&mut client).0, [lost, done(id, Err(Failure::ConnectionLost))]);
    client.handle_closed(at(5));
    assert_eq!(drain(&mut client), (Vec::new(), None));
}

#[test]
fn a_call_is_sent_again_over_a_new_connection_as_often_as_it_may() {
    let mut client = stream(1);
    let id = call(&mut client, 0, Mode::Blocking);
    drain(&mut client);
    client.handle_connected(at(1));
    assert_eq!(written(&mut client), [record(7)]);
    client.handle_closed(at(2));
    let again = [Output::Event(Event::SentAgain(id)), Output::Transmit(Transmit::Connect)];
    assert_eq!(drain(&mut client), (again.to_vec(), Some(at(25_000))), "the time goes on");
    client.handle_connected(at(3));
    assert_eq!(written(&mut client), [record(7)], "with the same xid");
    client.handle_closed(at(4));
    assert_eq!(drain(&mut client).0, [done(id, Err(Failure::ConnectionLost))]);
    // Lost once, and then nobody is there: it may have been carried out all the same.
    let id = call(&mut client, 5, Mode::Blocking);
    client.handle_connected(at(6));
    client.handle_closed(at(7));
    drain(&mut client);
    client.handle_closed(at(8));
    assert_eq!(drain(&mut client).0, [done(id, Err(Failure::ConnectionLost))]);
}

#[test]
fn a_connection_that_never_comes_takes_no_longer_than_the_total_time() {
    let mut client = stream(0);
    let id = call(&mut client, 0, Mode::Blocking);
    drain(&mut client);
    client.handle_timeout(at(25_000));
    let failure = Failure::TimedOut { after: TOTAL, sent: 0 };
    assert_eq!(drain(&mut client), (Vec::from([done(id, Err(failure))]), None));
    client.handle_connected(at(26_000));
    assert_eq!(drain(&mut client), (Vec::new(), None), "it is not sent any more");
}

#[test]
fn work_is_said_before_what_it_makes() {
    let mut client = stream(0);
    call(&mut client, 0, Mode::Blocking);
    client.handle_connected(at(0));
    let work = |kind, bytes, count| Output::Work(Work { kind, bytes: Bytes::new(bytes), count });
    let mut outputs: Vec<_> = core::iter::from_fn(|| match client.poll_output() {
        Output::Timeout(_) => None,
        other => Some(other),
    })
    .collect();
    assert!(matches!(outputs.pop(), Some(Output::Transmit(Transmit::Write(_)))));
    let expected = [
        work(WorkKind::RpcHeadOut, 40, 1),
        work(WorkKind::XdrOpaqueOut, 4, 1),
        Output::Transmit(Transmit::Connect),
        work(WorkKind::RecordOut, 48, 1),
    ];
    assert_eq!(outputs, expected);
}
