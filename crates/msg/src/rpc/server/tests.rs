//! What a server does with calls of every kind.

use alloc::sync::Arc;

use wiretwin_units::Span;
use wiretwin_wire::rpc::System;

use super::*;

mod loss;

type Octets = Arc<[u8]>;
type Machine = Server<u8, Octets>;

const CONFIG: Config = Config { cache: 4, buffer: Bytes::new(0), datagram: Bytes::new(8800) };
const PROGRAM: u32 = 0x2000_0001;
const NOW: SimTime = SimTime::ZERO;

fn service(version: u32) -> Service {
    Service { program: PROGRAM, version, procedures: [1, 2].to_vec(), wants_system: false }
}

fn server(config: Config) -> Machine {
    let mut server = Server::new(config, octets(b""));
    server.register(service(1));
    server
}

fn octets(text: &[u8]) -> Octets {
    Arc::from(text)
}

fn call(xid: u32, version: u32, procedure: u32) -> Call<Octets> {
    let target = Target { program: PROGRAM, version, procedure };
    Call { xid, target, credential: Credential::NONE, arguments: octets(b"args") }
}

fn drain(server: &mut Machine) -> Vec<ServerOutput<u8, Octets>> {
    let mut outputs = Vec::new();
    loop {
        match server.poll_output() {
            Output::Timeout(next) => {
                assert_eq!(next, None, "a server has no timers");
                return outputs;
            }
            Output::Work(_) => {}
            other => outputs.push(other),
        }
    }
}

/// The requests that a call over datagrams is, which has nothing else to it.
fn request(server: &mut Machine, peer: u8, call: Call<Octets>) -> RequestId {
    server.handle_datagram(NOW, peer, Incoming::Call(call));
    match &drain(server)[..] {
        [Output::Deliver(request)] => request.id,
        other => panic!("{other:?}"),
    }
}

fn answered(xid: u32, result: Result<&[u8], Refusal>) -> ServerOutput<u8, Octets> {
    Output::Transmit(Transmit::Datagram(9, Reply { xid, result: result.map(octets) }))
}

/// The octets written to each connection.
fn written(server: &mut Machine) -> Vec<(u64, Vec<u8>)> {
    let write = |output| match output {
        Output::Transmit(Transmit::Write(id, write)) => (id.0, write.octets()),
        other => panic!("{other:?}"),
    };
    drain(server).into_iter().map(write).collect()
}

fn record(xid: u8, results: &[u8]) -> Vec<u8> {
    let mut octets = [0x80, 0, 0, 24 + results.len() as u8, 0, 0, 0, xid, 0, 0, 0, 1].to_vec();
    octets.extend([0; 16]);
    octets.extend(results);
    octets
}

#[test]
fn a_call_is_delivered_and_its_reply_goes_back() {
    let mut server = server(CONFIG);
    server.handle_datagram(NOW, 9, Incoming::Call(call(7, 1, 2)));
    let target = Target { program: PROGRAM, version: 1, procedure: 2 };
    let (id, origin, credential) = (RequestId(0), Origin::Datagram(9), Credential::NONE);
    let request = Request { id, origin, target, credential, arguments: octets(b"args") };
    assert_eq!(drain(&mut server), [Output::Deliver(request)]);
    assert_eq!(server.open_calls(), 1);
    assert!(server.reply(NOW, id, Ok(octets(b"done"))));
    assert_eq!(drain(&mut server), [answered(7, Ok(b"done"))]);
    assert!(!server.reply(NOW, id, Ok(octets(b"done"))), "once");
    assert_eq!((drain(&mut server), server.open_calls()), (Vec::new(), 0));
}

#[test]
fn procedure_0_does_nothing_and_says_so() {
    let mut server = server(CONFIG);
    server.handle_datagram(NOW, 9, Incoming::Call(call(7, 1, 0)));
    assert_eq!(drain(&mut server), [answered(7, Ok(b""))]);
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let mut server = server(CONFIG);
    server.register(service(3));
    let mut other = call(1, 1, 1);
    other.target.program = 5;
    for (call, refusal) in [
        (other, Refusal::ProgramUnavailable),
        (call(1, 2, 1), Refusal::ProgramMismatch { low: 1, high: 3 }),
        (call(1, 9, 0), Refusal::ProgramMismatch { low: 1, high: 3 }),
        (call(1, 1, 3), Refusal::ProcedureUnavailable),
    ] {
        server.handle_datagram(NOW, 9, Incoming::Call(call));
        assert_eq!(drain(&mut server), [answered(1, Err(refusal))]);
    }
    assert!(server.unregister(PROGRAM, 1) && !server.unregister(PROGRAM, 1));
    server.handle_datagram(NOW, 9, Incoming::Call(call(1, 1, 1)));
    let only = Refusal::ProgramMismatch { low: 3, high: 3 };
    assert_eq!(drain(&mut server), [answered(1, Err(only))]);
    // Another version of the protocol, and too long a credential.
    for (octets, refusal) in [
        (&b"\0\0\0\x01\0\0\0\0\0\0\0\x03"[..], Refusal::RpcMismatch { low: 2, high: 2 }),
        (
            b"\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x01\x91",
            Refusal::Authentication(AuthStatus::BAD_CREDENTIAL),
        ),
    ] {
        server.handle_datagram(NOW, 9, Incoming::parse(octets));
        assert_eq!(drain(&mut server), [answered(1, Err(refusal))]);
    }
}

#[test]
fn the_program_says_garbage_arguments_and_system_errors() {
    for refusal in [Refusal::GarbageArguments, Refusal::SystemError] {
        let mut server = server(CONFIG);
        let id = request(&mut server, 9, call(1, 1, 1));
        server.reply(NOW, id, Err(refusal));
        assert_eq!(drain(&mut server), [answered(1, Err(refusal))]);
    }
}

#[test]
fn who_calls_is_looked_at() {
    let mut server = server(CONFIG);
    server.register(Service { wants_system: true, ..service(1) });
    let who = System::new(0, b"spark", 100, 10, &[]).expect("no groups");
    let system = Credential::system(&who).expect("a short name");
    let of = |words: &[u32]| {
        let octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Incoming::parse(&octets)
    };
    let head = [7, 0, 2, PROGRAM, 1, 1];
    for (incoming, status) in [
        (Incoming::Call(call(7, 1, 1)), AuthStatus::TOO_WEAK),
        (of(&[&head[..], &[1, 4, 0, 0, 0]].concat()), AuthStatus::BAD_CREDENTIAL),
        (of(&[&head[..], &[6, 4, 0, 0, 0]].concat()), AuthStatus::REJECTED_CREDENTIAL),
    ] {
        server.handle_datagram(NOW, 9, incoming);
        let refusal = Refusal::Authentication(status);
        assert_eq!(drain(&mut server), [answered(7, Err(refusal))]);
    }
    server.handle_datagram(NOW, 9, Incoming::Call(call(7, 1, 0)));
    assert_eq!(drain(&mut server), [answered(7, Ok(b""))], "procedure 0 is for anyone");
    request(&mut server, 9, Call { credential: system, ..call(7, 1, 1) });
}

#[test]
fn a_call_that_comes_again_is_answered_again_and_not_carried_out() {
    let mut server = server(CONFIG);
    let id = request(&mut server, 9, call(7, 1, 1));
    server.handle_datagram(NOW, 9, Incoming::Call(call(7, 1, 1)));
    let again = |answered| Output::Event(Event::Duplicate { xid: 7, peer: 9, answered });
    assert_eq!(drain(&mut server), [again(false)]);
    server.reply(NOW, id, Ok(octets(b"done")));
    drain(&mut server);
    server.handle_datagram(NOW, 9, Incoming::Call(call(7, 1, 1)));
    assert_eq!(drain(&mut server), [again(true), answered(7, Ok(b"done"))]);
    request(&mut server, 8, call(7, 1, 1));
}

#[test]
fn a_full_cache_drops_calls_and_never_forgets_one_in_progress() {
    let mut server = server(CONFIG);
    let ids: Vec<_> = (0..4).map(|xid| request(&mut server, 9, call(xid, 1, 1))).collect();
    server.handle_datagram(NOW, 9, Incoming::Call(call(4, 1, 1)));
    assert_eq!(drain(&mut server), [Output::Event(Event::Busy { xid: 4, peer: 9 })]);
    assert!(server.no_reply(NOW, ids[0]));
    assert_eq!(drain(&mut server), [], "a batched call");
    request(&mut server, 9, call(4, 1, 1));
    assert_eq!(server.remembered(), 4);
}

#[test]
fn results_that_fit_no_datagram_are_a_system_error() {
    let mut server = server(CONFIG);
    let id = request(&mut server, 9, call(7, 1, 1));
    server.reply(NOW, id, Ok(octets(&[0; 8780])));
    assert_eq!(drain(&mut server), [answered(7, Err(Refusal::SystemError))]);
}

#[test]
fn replies_of_a_connection_go_in_the_order_of_its_calls() {
    let mut server = server(CONFIG);
    let (one, two) = (ConnectionId(1), ConnectionId(2));
    server.handle_connected(NOW, one);
    server.handle_connected(NOW, two);
    for (id, xid, procedure) in [(one, 1, 1), (one, 2, 1), (two, 1, 1), (one, 3, 0)] {
        server.handle_record(NOW, id, Incoming::Call(call(xid, 1, procedure)));
    }
    let ids: Vec<_> = drain(&mut server)
        .into_iter()
        .map(|output| match output {
            Output::Deliver(request) => request.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids.len(), 3);
    server.reply(NOW, ids[1], Ok(octets(b"2222")));
    assert_eq!(written(&mut server), [], "the first is not ready");
    server.reply(NOW, ids[2], Ok(octets(b"other conn  ")));
    assert_eq!(written(&mut server), [(2, record(1, b"other conn  "))], "nobody else waits for it");
    server.no_reply(NOW, ids[0]);
    assert_eq!(written(&mut server), [(1, record(2, b"2222")), (1, record(3, b""))]);
}

#[test]
fn a_connection_that_carries_something_else_ends() {
    let mut server = server(CONFIG);
    let id = ConnectionId(1);
    server.handle_connected(NOW, id);
    server.handle_record(NOW, id, Incoming::Call(call(1, 1, 1)));
    server.handle_record(NOW, id, Incoming::Reply(Reply { xid: 1, result: Ok(octets(b"")) }));
    let garbage = Output::Event(Event::Garbage { origin: Origin::Connection(id), error: None });
    let outputs = drain(&mut server);
    assert_eq!(outputs[1..], [garbage, Output::Transmit(Transmit::Close(id))]);
    assert!(server.reply(NOW, RequestId(0), Ok(octets(b""))));
    assert_eq!(drain(&mut server), [Output::Event(Event::Orphan(RequestId(0)))]);
    server.handle_record(NOW, id, Incoming::Call(call(2, 1, 1)));
    assert_eq!(drain(&mut server), [], "it is gone");
    server.handle_datagram(NOW, 9, Incoming::parse(b"abc"));
    let outputs = drain(&mut server);
    assert!(matches!(outputs[..], [Output::Event(Event::Garbage { error: Some(_), .. })]), "{outputs:?}");
}

#[test]
fn work_is_said_for_reading_and_for_making() {
    let mut server = server(CONFIG);
    server.handle_connected(NOW, ConnectionId(1));
    server.handle_record(NOW, ConnectionId(1), Incoming::Call(call(1, 1, 1)));
    server.reply(NOW, RequestId(0), Ok(octets(b"done")));
    let mut work = Vec::new();
    loop {
        match server.poll_output() {
            Output::Work(Work { kind, bytes, count }) => work.push((kind, bytes.get(), count)),
            Output::Timeout(_) => break,
            _ => {}
        }
    }
    let expected = [
        (WorkKind::RecordIn, 44, 1),
        (WorkKind::RpcHeadIn, 40, 1),
        (WorkKind::XdrOpaqueIn, 4, 1),
        (WorkKind::RpcHeadOut, 24, 1),
        (WorkKind::XdrOpaqueOut, 4, 1),
        (WorkKind::RecordOut, 32, 1),
    ];
    assert_eq!(work, expected);
    assert_eq!(Span::from_s(0), NOW.since_start());
}
