//! Arbitrary octets as a message, as a stream of records, and as both to a server that is a port mapper.

use std::net::Ipv4Addr;
use std::sync::Arc;

use wiretwin_msg::rpc::mapper::{Answer, Caller, Mapper};
use wiretwin_msg::rpc::record::{DEFAULT_BUFFER, RecordReceiver};
use wiretwin_msg::rpc::server::{Config, ConnectionId, Origin, Server, Transmit};
use wiretwin_msg::rpc::{Incoming, fuzz};
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::rpc::portmap::Transport;

/// Panics if a message is not the same when it is written and read again, if records depend on how their
/// stream was cut, or if a server leaves a call open that its program has answered.
pub fn check(octets: &[u8]) {
    fuzz::round_trip(octets);
    let step = usize::from(octets.first().copied().unwrap_or(0));
    fuzz::same_however_cut(octets, step);
    let config = Config { cache: 2, buffer: DEFAULT_BUFFER, datagram: Bytes::new(400) };
    let mut server: Server<u8, Arc<[u8]>> = Server::new(config, Arc::from([]));
    Mapper::services().into_iter().for_each(|service| server.register(service));
    let mut mapper = Mapper::new(2);
    let connection = ConnectionId(1);
    server.handle_connected(SimTime::ZERO, connection);
    server.handle_datagram(SimTime::ZERO, 1, Incoming::parse(octets));
    drain(&mut server, &mut mapper);
    let mut receiver = RecordReceiver::new(Bytes::new(1000));
    // An error ends the stream; what came before it is served.
    let _ended = receiver.handle_octets(octets);
    while let Some(record) = receiver.poll_record() {
        server.handle_record(SimTime::ZERO, connection, Incoming::parse(&record));
        drain(&mut server, &mut mapper);
    }
    assert_eq!(server.open_calls(), 0, "each was answered");
    assert!(server.remembered() <= 2 && mapper.all().len() <= 2, "within their bounds");
}

fn drain(server: &mut Server<u8, Arc<[u8]>>, mapper: &mut Mapper) {
    loop {
        match server.poll_output() {
            Output::Deliver(request) => {
                let local = matches!(request.origin, Origin::Connection(_));
                let caller = Caller {
                    local,
                    transport: Transport::TCP,
                    owner: "me".into(),
                    reached: Ipv4Addr::LOCALHOST,
                    seconds: 1,
                };
                let (version, procedure) = (request.target.version, request.target.procedure);
                let answered = match mapper.answer(version, procedure, &request.arguments, &caller) {
                    Answer::Results(results) => server.reply(SimTime::ZERO, request.id, Ok(results)),
                    Answer::Refused(refusal) => server.reply(SimTime::ZERO, request.id, Err(refusal)),
                    Answer::Silence => server.no_reply(SimTime::ZERO, request.id),
                };
                assert!(answered, "it was open");
            }
            Output::Transmit(Transmit::Write(_, write)) => {
                assert_eq!(write.octets().len() as u64, write.length().get());
            }
            Output::Timeout(_) => return,
            _ => {}
        }
    }
}
