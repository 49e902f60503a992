//! Remote procedure calls as the message layer of a rank, and the port mapper's daemon.
//!
//! RPC has calls and replies, not messages: here a send is kept, and becomes the argument of the call that the
//! next receive from that rank makes; the reply is what is received. A rank that receives without having kept
//! anything for the sender is a server: it waits for a call, and its next send to that rank is the reply. A send
//! that nothing follows from goes as a call nobody waits for (batched, RFC 5531 §7.4.2). So two ranks that
//! both send and then both receive from each other both call, nobody serves, and the calls time out: as they
//! would with one thread each.
//!
//! Every rank is a server of [`PROGRAM`], registered with the port mapper of its host. The first call to a rank
//! asks its port mapper for the port, then makes a connection, which stays. Messages are `opaque<>`. A tag is a
//! procedure, [`TAGS`] of them answered and as many not; a reply has no tag, and is the message that its
//! caller waits for.
//!
//! Over UDP a message is one datagram, and a longer one is rejected. A call that nothing answers goes again after
//! 5 s, until 25 s are over ([`Retry::SUN_RPC`]); the server remembers what it has answered, and answers a call that
//! comes again without carrying it out again. It goes on doing so when its rank has ended, as long as anything else
//! goes on. A call that nobody waits for is sent once.
//!
//! *Choice*: the port mapper is asked over the transport of the calls; Sun's library asks over UDP.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::rpc::portmap::{self, Mapping, Transport as Over};

use super::client::{self, CallId, Client, Completed, DATAGRAM_OCTETS, Mode, Retry, TOTAL};
use super::mapper::{Question, Reading};
use super::matter::{Records, content_of, datagram_of, read};
use super::record::DEFAULT_BUFFER;
use super::server::{self, CACHE_CALLS, Origin, Server, Service};
use super::{Argument, Credential, Incoming, Matter, Refusal as Denied};
use crate::library::{
    Address, Call, ConnectionId, Content, Control, Done, Event, Failure, Library, LibraryOutput, Outcome,
    Ready, Refusal, Request, SocketId,
};

mod daemon;
mod user;

pub use daemon::PortMapper;

/// The program of every rank: the first number for users.
pub const PROGRAM: u32 = 0x2000_0000;
/// Its version.
pub const VERSION: u32 = 1;
/// How many tags there are.
pub const TAGS: u32 = 64;
/// The port at which a rank serves.
pub const SERVER_PORT: u16 = 1023;
/// The port from which a rank calls, over UDP.
pub const CALLER_PORT: u16 = 1022;
/// The longest message over UDP: a call's head, the length and the message are a datagram.
pub const LONGEST_DATAGRAM: Bytes = Bytes::new(DATAGRAM_OCTETS.get() - 44);

const fn call_of(tag: u32) -> u32 {
    tag + 1
}

const fn one_way_of(tag: u32) -> u32 {
    TAGS + tag + 1
}

/// The tag of a procedure, and whether it is answered.
const fn tag_of(procedure: u32) -> (u32, bool) {
    if procedure > TAGS { (procedure - TAGS - 1, false) } else { (procedure - 1, true) }
}

/// A message that waits to be an argument.
#[derive(Clone, Copy, Debug)]
struct Kept {
    tag: u32,
    payload: Payload,
}

/// How far this rank is with another.
#[derive(Debug)]
struct Peer {
    client: Client<Matter>,
    port: Option<u16>,
    /// Asks for the port.
    mapper: Option<Box<Client<Matter>>>,
    line: Option<ConnectionId>,
    mapper_line: Option<ConnectionId>,
    kept: Option<Kept>,
    /// Made before the port is known: messages, and the receive that waits for the reply.
    queued: VecDeque<(Kept, Option<Request>)>,
    /// The calls that wait for their replies.
    calls: Vec<(CallId, Request)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// To the server of a rank.
    Server(u32),
    /// To the port mapper of its host.
    Mapper(u32),
    /// Of a rank that calls.
    Caller(u32),
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    source: u32,
    tag: u32,
    message: MessageId,
    /// Where it is answered, the call.
    call: Option<server::RequestId>,
    /// Who says to call.
    user: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Posted {
    request: Request,
    from: Option<u32>,
    tag: Option<u32>,
    /// It waits for a reply.
    calling: bool,
}

/// The library of one rank.
#[derive(Debug)]
pub struct RpcRank {
    rank: u32,
    over: Over,
    /// Over UDP: the socket that calls come to, and the one that calls leave from.
    serves: Option<SocketId>,
    calls: Option<SocketId>,
    /// A call has been answered.
    has_served: bool,
    /// Who has said to make the last call that was received.
    user: Option<u32>,
    peers: Vec<Peer>,
    server: Server<Address, Matter>,
    lines: BTreeMap<ConnectionId, (Line, Records)>,
    /// Connections that are being made, in order.
    connecting: VecDeque<Line>,
    posted: Vec<Posted>,
    /// Calls that no receive has taken.
    asked: VecDeque<Asked>,
    /// Calls that were received and not answered.
    open: VecDeque<(u32, server::RequestId)>,
    outputs: VecDeque<LibraryOutput>,
}

const STREAM: client::Transport = client::Transport::Stream { buffer: DEFAULT_BUFFER, resends: 0 };

const DATAGRAMS: client::Transport =
    client::Transport::Datagram { retry: Retry::SUN_RPC, largest: DATAGRAM_OCTETS };

fn client_of(over: Over, program: u32, version: u32, xid: u32) -> Client<Matter> {
    let credential = Credential::NONE;
    let transport = if over == Over::UDP { DATAGRAMS } else { STREAM };
    let config = client::Config { program, version, credential, total: TOTAL, transport };
    Client::new(config, xid)
}

/// What a server that remembers so many calls of datagrams is told.
fn server_config(cache: usize) -> server::Config {
    server::Config { cache, buffer: DEFAULT_BUFFER, datagram: DATAGRAM_OCTETS }
}

impl RpcRank {
    /// The library of this rank, of so many, rank r living on host r. Over UDP its driver gives it sockets at
    /// [`SERVER_PORT`] and [`CALLER_PORT`] before anything else.
    #[must_use]
    pub fn new(rank: u32, size: u32, over: Over) -> Self {
        let peer = |other: u32| Peer {
            client: client_of(over, PROGRAM, VERSION, (rank << 8 | other) << 16),
            port: None,
            mapper: None,
            line: None,
            mapper_line: None,
            kept: None,
            queued: VecDeque::new(),
            calls: Vec::new(),
        };
        let mut server = Server::new(server_config(CACHE_CALLS), Matter::nothing());
        server.register(Service {
            program: PROGRAM,
            version: VERSION,
            procedures: (1..=2 * TAGS).collect(),
            wants_system: false,
        });
        Self {
            rank,
            over,
            serves: None,
            calls: None,
            has_served: false,
            user: None,
            peers: (0..size).map(peer).collect(),
            server,
            lines: BTreeMap::new(),
            connecting: VecDeque::new(),
            posted: Vec::new(),
            asked: VecDeque::new(),
            open: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    fn system(&mut self, call: Call) {
        self.outputs.push_back(Output::Transmit(call));
    }

    // As a caller

    /// Makes a call, or one that nobody waits for; first of all finds out where.
    fn call(&mut self, now: SimTime, to: u32, kept: Kept, receive: Option<Request>) {
        let peer = &mut self.peers[to as usize];
        if peer.port.is_none() {
            peer.queued.push_back((kept, receive));
            if peer.mapper.is_none() {
                let mapping = Mapping { program: PROGRAM, version: VERSION, transport: self.over, port: 0 };
                let mut mapper = client_of(self.over, portmap::PROGRAM, portmap::VERSION, to);
                let question = Question::GetPort(mapping);
                // Four words are no long string.
                let arguments = question.arguments().expect("a mapping fits");
                let asked = mapper.call(now, question.procedure(), Matter::Octets(arguments), Mode::Blocking);
                debug_assert!(asked.is_ok(), "four words are no long message");
                peer.mapper = Some(Box::new(mapper));
                self.drain_mapper(now, to);
            }
            return;
        }
        let arguments = Matter::Message(Argument::opaque(kept.payload));
        let (procedure, mode) = match receive {
            Some(_) => (call_of(kept.tag), Mode::Blocking),
            None => (one_way_of(kept.tag), Mode::Batched),
        };
        let call = peer.client.call(now, procedure, arguments, mode);
        match (call, receive) {
            (Ok(call), Some(receive)) => peer.calls.push((call, receive)),
            (Ok(_), None) => peer.client.flush(now),
            (Err(_), _) => {}
        }
        self.drain_client(now, to);
    }

    /// Sends what was kept for a rank without waiting for an answer.
    fn flush(&mut self, now: SimTime, to: u32) {
        if let Some(kept) = self.peers[to as usize].kept.take() {
            self.call(now, to, kept, None);
        }
    }

    fn drain_client(&mut self, now: SimTime, to: u32) {
        loop {
            match self.peers[to as usize].client.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(client::Transmit::Connect) => {
                    let port = self.peers[to as usize].port.unwrap_or(0);
                    self.connecting.push_back(Line::Server(to));
                    self.system(Call::Connect { to: Address { host: to, port } });
                }
                Output::Transmit(client::Transmit::Write(write)) => {
                    if let Some(connection) = self.peers[to as usize].line {
                        let content = content_of(&write);
                        self.system(Call::Write { connection, content, wait: true });
                    }
                }
                Output::Transmit(client::Transmit::Datagram(call)) => {
                    let port = self.peers[to as usize].port.unwrap_or(0);
                    self.send_to(self.calls, Address { host: to, port }, datagram_of(&call));
                }
                Output::Deliver(completed) => self.replied(to, completed),
                Output::Event(client::Event::SentAgain(_)) => {
                    self.outputs.push_back(Output::Event(Event::SentAgain));
                }
                Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        // A connection that has come to be takes what was flushed before it was there.
        let peer = &mut self.peers[to as usize];
        if peer.client.state() == client::State::Open && peer.client.has_batched() {
            peer.client.flush(now);
            self.drain_client(now, to);
        }
    }

    fn drain_mapper(&mut self, now: SimTime, to: u32) {
        loop {
            let Some(mapper) = self.peers[to as usize].mapper.as_mut() else { return };
            match mapper.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(client::Transmit::Connect) => {
                    self.connecting.push_back(Line::Mapper(to));
                    self.system(Call::Connect { to: Address { host: to, port: MAPPER_PORT } });
                }
                Output::Transmit(client::Transmit::Write(write)) => {
                    if let Some(connection) = self.peers[to as usize].mapper_line {
                        let content = content_of(&write);
                        self.system(Call::Write { connection, content, wait: true });
                    }
                }
                Output::Transmit(client::Transmit::Datagram(call)) => {
                    let mapper = Address { host: to, port: MAPPER_PORT };
                    self.send_to(self.calls, mapper, datagram_of(&call));
                }
                Output::Event(client::Event::SentAgain(_)) => {
                    self.outputs.push_back(Output::Event(Event::SentAgain));
                }
                Output::Event(_) => {}
                Output::Deliver(completed) => return self.found(now, to, completed),
                Output::Timeout(_) => return,
            }
        }
    }

    /// The port mapper has answered, or will not.
    fn found(&mut self, now: SimTime, to: u32, completed: Completed<Matter>) {
        let peer = &mut self.peers[to as usize];
        peer.mapper = None;
        let unknown = Failure::Refused("the port mapper has no such program");
        let port = match completed.result {
            Ok(Matter::Octets(octets)) => Reading::word(&octets).ok().filter(|&port| port > 0).ok_or(unknown),
            Ok(_) => Err(unknown),
            Err(failure) => Err(failure_of(failure, to)),
        };
        let port = port.and_then(|port| u16::try_from(port).map_err(|_| unknown));
        peer.port = port.ok();
        let line = peer.mapper_line.take();
        let queued = core::mem::take(&mut peer.queued);
        if let Some(connection) = line {
            self.lines.remove(&connection);
            self.system(Call::Close { connection });
        }
        for (kept, receive) in queued {
            match (port, receive) {
                (Ok(_), _) => self.call(now, to, kept, receive),
                (Err(failure), Some(request)) => self.fail(request, failure),
                (Err(_), None) => {}
            }
        }
    }

    fn replied(&mut self, from: u32, completed: Completed<Matter>) {
        let calls = &mut self.peers[from as usize].calls;
        let Some(at) = calls.iter().position(|(call, _)| *call == completed.call) else { return };
        let (_, request) = calls.remove(at);
        let failure = match completed.result {
            Ok(results) => match results.payload() {
                Some(payload) => {
                    self.posted.retain(|one| one.request != request);
                    return self.done(Done::Received { request, message: payload.message });
                }
                None => Failure::Refused("a reply without a message"),
            },
            Err(failure) => failure_of(failure, from),
        };
        self.fail(request, failure);
    }

    fn fail(&mut self, request: Request, failure: Failure) {
        self.posted.retain(|one| one.request != request);
        self.done(Done::Failed { request, failure });
    }

    // As a server

    fn drain_server(&mut self, now: SimTime) {
        loop {
            match self.server.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(server::Transmit::Write(line, write)) => {
                    let connection = ConnectionId(line.0 as u32);
                    self.system(Call::Write { connection, content: content_of(&write), wait: true });
                }
                Output::Transmit(server::Transmit::Close(line)) => {
                    let connection = ConnectionId(line.0 as u32);
                    self.lines.remove(&connection);
                    self.system(Call::Close { connection });
                }
                Output::Transmit(server::Transmit::Datagram(to, reply)) => {
                    self.has_served = true;
                    self.send_to(self.serves, to, datagram_of(&reply));
                }
                Output::Deliver(request) => self.is_asked(now, request),
                Output::Event(server::Event::Garbage { .. }) => {
                    self.outputs.push_back(Output::Event(Event::Garbage { what: "a call" }));
                }
                Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    fn is_asked(&mut self, now: SimTime, request: server::Request<Address, Matter>) {
        let source = match request.origin {
            Origin::Datagram(from) => Some(from.host),
            Origin::Connection(line) => match self.lines.get(&ConnectionId(line.0 as u32)) {
                Some(&(Line::Caller(source), _)) => Some(source),
                _ => None,
            },
        };
        let (Some(source), Some(payload)) = (source, request.arguments.payload()) else {
            self.server.reply(now, request.id, Err(Denied::GarbageArguments));
            return;
        };
        let (tag, answered) = tag_of(request.target.procedure);
        if !answered {
            self.server.no_reply(now, request.id);
        }
        let call = answered.then_some(request.id);
        let user = request.credential.who().and_then(Result::ok).map(|who| who.uid);
        self.asked.push_back(Asked { source, tag, message: payload.message, call, user });
        self.serve();
    }

    /// Sends a datagram.
    fn send_to(&mut self, socket: Option<SocketId>, to: Address, content: Content) {
        // Without a socket the datagram is as good as lost.
        if let Some(socket) = socket {
            self.system(Call::SendTo { socket, to, content });
        }
    }

    /// A datagram has come.
    fn take_datagram(&mut self, now: SimTime, socket: SocketId, from: Address, content: &mut Content) {
        let incoming = read(content);
        if Some(socket) == self.serves {
            self.server.handle_datagram(now, from, incoming);
            return self.drain_server(now);
        }
        let Some(peer) = self.peers.get_mut(from.host as usize) else { return };
        match incoming {
            Incoming::Reply(reply) if from.port == MAPPER_PORT => {
                if let Some(mapper) = &mut peer.mapper {
                    mapper.handle_reply(now, reply);
                }
                self.drain_mapper(now, from.host);
            }
            Incoming::Reply(reply) => {
                peer.client.handle_reply(now, reply);
                self.drain_client(now, from.host);
            }
            _ => self.outputs.push_back(Output::Event(Event::Garbage { what: "a reply" })),
        }
    }

    /// Gives calls to the receives that take them.
    fn serve(&mut self) {
        let mut at = 0;
        while let Some(one) = self.posted.get(at).copied() {
            let takes = |asked: &Asked| {
                !one.calling
                    && one.from.is_none_or(|from| from == asked.source)
                    && one.tag.is_none_or(|tag| tag == asked.tag)
            };
            let Some(found) = self.asked.iter().position(takes) else {
                at += 1;
                continue;
            };
            let Some(asked) = self.asked.remove(found) else { return };
            self.posted.remove(at);
            if let Some(call) = asked.call {
                self.open.push_back((asked.source, call));
            }
            self.user = asked.user;
            self.done(Done::Received { request: one.request, message: asked.message });
        }
    }

    fn due(&self) -> Option<SimTime> {
        let clients =
            self.peers.iter().flat_map(|peer| core::iter::once(&peer.client).chain(peer.mapper.as_deref()));
        clients.filter_map(Client::due).min()
    }

    fn ended(&mut self, now: SimTime, connection: ConnectionId) {
        match self.lines.remove(&connection).map(|line| line.0) {
            Some(Line::Server(to)) => {
                self.peers[to as usize].line = None;
                self.peers[to as usize].client.handle_closed(now);
                self.drain_client(now, to);
            }
            Some(Line::Mapper(to)) => {
                self.peers[to as usize].mapper_line = None;
                if let Some(mapper) = &mut self.peers[to as usize].mapper {
                    mapper.handle_closed(now);
                }
                self.drain_mapper(now, to);
            }
            Some(Line::Caller(_)) => {
                self.server.handle_closed(now, server::ConnectionId(connection.0.into()))
            }
            None => {}
        }
    }
}

/// What has become of a call to a rank, as its receive says it.
const fn failure_of(failure: client::Failure, rank: u32) -> Failure {
    match failure {
        client::Failure::TimedOut { after, .. } => Failure::TimedOut { limit: after },
        client::Failure::NotConnected | client::Failure::ConnectionLost => Failure::PeerLost { rank },
        client::Failure::Refused(denied) => Failure::Refused(name_of(denied)),
    }
}

const fn name_of(denied: Denied) -> &'static str {
    match denied {
        Denied::ProgramUnavailable => "PROG_UNAVAIL",
        Denied::ProgramMismatch { .. } => "PROG_MISMATCH",
        Denied::ProcedureUnavailable => "PROC_UNAVAIL",
        Denied::GarbageArguments => "GARBAGE_ARGS",
        Denied::SystemError => "SYSTEM_ERR",
        Denied::RpcMismatch { .. } => "RPC_MISMATCH",
        Denied::Authentication(status) => status.name(),
    }
}

/// The port mapper's port.
pub const MAPPER_PORT: u16 = portmap::PORT;

impl Library for RpcRank {
    fn admit(&self, to: u32, tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if to == self.rank {
            return Err(Refusal::ToItself);
        }
        if self.over == Over::UDP && bytes > LONGEST_DATAGRAM {
            return Err(Refusal::TooLong { most: LONGEST_DATAGRAM });
        }
        if tag >= TAGS {
            return Err(Refusal::Unsupported("a tag over 63: a tag is a procedure, and there are 64"));
        }
        Ok(())
    }

    fn send(&mut self, now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        let payload = Payload::whole(request.message(), bytes);
        if let Some(at) = self.open.iter().position(|(source, _)| *source == to)
            && let Some((_, call)) = self.open.remove(at)
        {
            self.server.reply(now, call, Ok(Matter::Message(Argument::opaque(payload))));
            self.drain_server(now);
        } else {
            self.flush(now, to);
            self.peers[to as usize].kept = Some(Kept { tag, payload });
        }
        self.done(Done::Sent(request));
    }

    fn receive(
        &mut self,
        _now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        _capacity: Bytes,
    ) {
        self.posted.push(Posted { request, from, tag, calling: false });
    }

    fn admit_control(&self, control: &Control) -> Result<(), Refusal> {
        Self::admits_control(control)
    }

    fn control(&mut self, _now: SimTime, request: Request, control: Control) {
        self.controls(request, &control);
    }

    fn leave(&mut self, now: SimTime) {
        for to in 0..self.peers.len() as u32 {
            self.flush(now, to);
        }
    }

    fn is_busy(&self) -> bool {
        // A reply may be lost: its call would come again.
        let answers = self.over == Over::UDP && self.has_served;
        answers || self.peers.iter().any(|peer| !peer.queued.is_empty() || peer.client.has_unsent())
    }

    fn progress(&mut self, now: SimTime) {
        let before = self.outputs.len();
        self.serve();
        for at in 0..self.posted.len() {
            let Some(Posted { request, from: Some(from), calling: false, .. }) = self.posted.get(at).copied()
            else {
                continue;
            };
            if let Some(kept) = self.peers[from as usize].kept.take() {
                self.posted[at].calling = true;
                self.call(now, from, kept, Some(request));
            }
        }
        for to in 0..self.peers.len() as u32 {
            self.flush(now, to);
        }
        if self.outputs.len() == before {
            self.system(Call::Select { write: None, until: self.due(), idle: false });
        }
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Accepted { connection, from, .. } => {
                self.lines.insert(connection, (Line::Caller(from.host), Records::default()));
                self.server.handle_connected(now, server::ConnectionId(connection.0.into()));
            }
            Outcome::Connected { connection, .. } => {
                let Some(line) = self.connecting.pop_front() else { return };
                self.lines.insert(connection, (line, Records::default()));
                match line {
                    Line::Server(to) => {
                        self.peers[to as usize].line = Some(connection);
                        self.peers[to as usize].client.handle_connected(now);
                        self.drain_client(now, to);
                    }
                    Line::Mapper(to) => {
                        self.peers[to as usize].mapper_line = Some(connection);
                        if let Some(mapper) = &mut self.peers[to as usize].mapper {
                            mapper.handle_connected(now);
                        }
                        self.drain_mapper(now, to);
                    }
                    Line::Caller(_) => {}
                }
            }
            Outcome::Failed(_) => match self.connecting.pop_front() {
                Some(Line::Server(to)) => {
                    self.peers[to as usize].client.handle_closed(now);
                    self.drain_client(now, to);
                }
                Some(Line::Mapper(to)) => {
                    if let Some(mapper) = &mut self.peers[to as usize].mapper {
                        mapper.handle_closed(now);
                    }
                    self.drain_mapper(now, to);
                }
                Some(Line::Caller(_)) | None => {}
            },
            Outcome::Ready(ready) => {
                for ready in ready {
                    match *ready {
                        Ready::Readable(connection) => {
                            self.system(Call::Read { connection, most: DEFAULT_BUFFER, wait: false });
                        }
                        Ready::Acceptable(listener) => self.system(Call::Accept { listener }),
                        Ready::Datagram(socket) => {
                            self.system(Call::ReceiveFrom { socket, wait: false });
                        }
                        Ready::Writable(_) | Ready::Pdu(_) | Ready::Circuit(..) => {}
                    }
                }
                if ready.is_empty() {
                    for to in 0..self.peers.len() as u32 {
                        self.peers[to as usize].client.handle_timeout(now);
                        self.drain_client(now, to);
                        if let Some(mapper) = &mut self.peers[to as usize].mapper {
                            mapper.handle_timeout(now);
                        }
                        self.drain_mapper(now, to);
                    }
                }
            }
            Outcome::Read { connection, content } => {
                let Some((line, records)) = self.lines.get_mut(&connection) else { return };
                let line = *line;
                records.take(content);
                while let Some(incoming) =
                    self.lines.get_mut(&connection).and_then(|(_, records)| records.poll())
                {
                    match (line, incoming) {
                        (Line::Caller(_), incoming) => {
                            self.server.handle_record(
                                now,
                                server::ConnectionId(connection.0.into()),
                                incoming,
                            );
                            self.drain_server(now);
                        }
                        (Line::Server(to), Incoming::Reply(reply)) => {
                            self.peers[to as usize].client.handle_reply(now, reply);
                            self.drain_client(now, to);
                        }
                        (Line::Mapper(to), Incoming::Reply(reply)) => {
                            if let Some(mapper) = &mut self.peers[to as usize].mapper {
                                mapper.handle_reply(now, reply);
                            }
                            self.drain_mapper(now, to);
                        }
                        _ => self.outputs.push_back(Output::Event(Event::Garbage { what: "a reply" })),
                    }
                }
            }
            Outcome::Ended { connection } => {
                self.ended(now, connection);
                self.system(Call::Close { connection });
            }
            Outcome::Bound { socket, at } if at.port == SERVER_PORT => self.serves = Some(socket),
            Outcome::Bound { socket, .. } => self.calls = Some(socket),
            Outcome::Datagram { socket, from, content } => self.take_datagram(now, socket, from, content),
            Outcome::Given { .. }
            | Outcome::Listening { .. }
            | Outcome::Changed { .. }
            | Outcome::Wrote { .. }
            | Outcome::Closed { .. }
            | Outcome::Sent { .. }
            | Outcome::Empty { .. }
            | Outcome::GivenCircuit { .. }
            | Outcome::SentPdu { .. }
            | Outcome::Pdu { .. }
            | Outcome::NoPdu { .. }
            | Outcome::Fore(_)
            | Outcome::Started { .. }
            | Outcome::Tree { .. }
            | Outcome::Branch { .. } => {}
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
