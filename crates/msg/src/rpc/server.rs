//! The server: calls are found their procedure, carried out once, and answered in order.
//!
//! RFC 5531 §4, §8, §9. Calls of any number of connections and of datagrams from anywhere; a program is
//! whoever takes what [`Server::poll_output`] delivers and calls [`Server::reply`]. What it cannot be
//! asked is answered here: programs, versions and procedures that there are not, credentials that are
//! not taken. Procedure 0 is answered here too (§12.1: it does nothing).
//!
//! *Choice*: replies of a connection go in the order of its calls, as from a server that does one after the
//! other; the specification lets them go in any.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::DecodeError;
use wiretwin_wire::rpc::Auth;

use super::cache::{DuplicateCache, Key, Verdict};
use super::record::{RecordSender, Write};
use super::work::of_message;
use super::{AuthStatus, Body, Call, Credential, Incoming, Message, Refusal, Reply, Target};

#[cfg(test)]
mod tests;

/// What a server is told when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many calls of datagrams are remembered; [`CACHE_CALLS`]. 0 for none: then a call that arrives
    /// twice is carried out twice, as in Sun's servers unless they ask for a cache.
    pub cache: usize,
    /// The buffer of a connection; [`DEFAULT_BUFFER`](super::record::DEFAULT_BUFFER).
    pub buffer: Bytes,
    /// Octets of the longest datagram; longer replies are SYSTEM_ERR.
    pub datagram: Bytes,
}

/// A program in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Its procedures besides 0.
    pub procedures: Vec<u32>,
    /// Whether callers must say who they are (AUTH_SYS).
    pub wants_system: bool,
}

/// Which connection. The driver gives the numbers out, and none twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Where a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<P> {
    /// A datagram of this peer.
    Datagram(P),
    /// A connection.
    Connection(ConnectionId),
}

/// Which call: counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A call to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<P, B> {
    /// Give this back with the results.
    pub id: RequestId,
    /// Who calls.
    pub origin: Origin<P>,
    /// What is called: registered, and not procedure 0.
    pub target: Target,
    /// Who says to call.
    pub credential: Credential,
    /// With what.
    pub arguments: B,
}

/// What goes to the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<P, B> {
    /// This to this peer, as one datagram.
    Datagram(P, Reply<B>),
    /// This to a connection.
    Write(ConnectionId, Write<Reply<B>>),
    /// End this connection: what came over it is no call.
    Close(ConnectionId),
}

/// What is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// A call was met a second time: its reply was sent again, or will come.
    Duplicate {
        /// That of the call.
        xid: u32,
        /// Who calls.
        peer: P,
        /// Whether there was a reply to send again.
        answered: bool,
    },
    /// A call was dropped: all places of the cache are taken by calls in progress.
    Busy {
        /// That of the call.
        xid: u32,
        /// Who calls.
        peer: P,
    },
    /// What arrived cannot be read and cannot be answered.
    Garbage {
        /// From where.
        origin: Origin<P>,
        /// Why not; `None` for a reply, which is none to any call of ours.
        error: Option<DecodeError>,
    },
    /// There was nobody to give the reply to any more: the connection is gone.
    Orphan(RequestId),
}

/// Outputs of the server.
pub type ServerOutput<P, B> = Output<Transmit<P, B>, Request<P, B>, Event<P>>;

#[derive(Debug)]
struct Connection<B> {
    sender: RecordSender<Reply<B>>,
    /// Calls in order, with their reply if they have one. A batched call leaves none.
    calls: VecDeque<(RequestId, Slot<B>)>,
}

#[derive(Debug)]
enum Slot<B> {
    Waiting,
    Ready(Reply<B>),
    Silent,
}

#[derive(Debug)]
struct Open<P> {
    xid: u32,
    origin: Origin<P>,
    key: Option<Key<P>>,
}

/// The server. `P` is the address of a peer that sends datagrams.
#[derive(Debug)]
pub struct Server<P, B> {
    config: Config,
    services: BTreeMap<(u32, u32), Service>,
    connections: BTreeMap<ConnectionId, Connection<B>>,
    open: BTreeMap<RequestId, Open<P>>,
    cache: DuplicateCache<P, B>,
    next: u64,
    /// The results of procedure 0.
    nothing: B,
    outputs: VecDeque<ServerOutput<P, B>>,
}

impl<P: Ord + Copy, B: Body> Server<P, B> {
    /// A server without programs. `nothing` is a body of no octets.
    pub fn new(config: Config, nothing: B) -> Self {
        Self {
            config,
            services: BTreeMap::new(),
            connections: BTreeMap::new(),
            open: BTreeMap::new(),
            cache: DuplicateCache::new(config.cache),
            next: 0,
            nothing,
            outputs: VecDeque::new(),
        }
    }

    /// A datagram arrives.
    pub fn handle_datagram(&mut self, _now: SimTime, peer: P, incoming: Incoming<B>) {
        let origin = Origin::Datagram(peer);
        let call = match self.readable(origin, incoming) {
            Ok(call) => call,
            Err(Some((xid, refusal))) => return self.send(peer, Reply { xid, result: Err(refusal) }),
            Err(None) => return,
        };
        if let Err(refusal) = self.admit(&call) {
            return self.send(peer, Reply { xid: call.xid, result: Err(refusal) });
        }
        if call.target.procedure == 0 {
            return self.send(peer, Reply { xid: call.xid, result: Ok(self.nothing.clone()) });
        }
        let (xid, key) = (call.xid, Key { xid: call.xid, peer, target: call.target });
        match self.cache.look(key) {
            Verdict::New => {
                self.deliver(origin, Some(key), call);
            }
            Verdict::InProgress => self.event(Event::Duplicate { xid, peer, answered: false }),
            Verdict::Done(reply) => {
                self.event(Event::Duplicate { xid, peer, answered: true });
                self.send(peer, reply);
            }
            Verdict::Full => self.event(Event::Busy { xid, peer }),
        }
    }

    /// A connection was accepted.
    pub fn handle_connected(&mut self, _now: SimTime, id: ConnectionId) {
        let sender = RecordSender::new(self.config.buffer);
        self.connections.insert(id, Connection { sender, calls: VecDeque::new() });
    }

    /// A record of a connection arrives.
    pub fn handle_record(&mut self, _now: SimTime, id: ConnectionId, incoming: Incoming<B>) {
        if !self.connections.contains_key(&id) {
            return;
        }
        let origin = Origin::Connection(id);
        let (xid, result) = match self.readable(origin, incoming) {
            Ok(call) => match self.admit(&call) {
                Ok(()) if call.target.procedure != 0 => {
                    let request = self.deliver(origin, None, call);
                    let connection = self.connections.get_mut(&id).expect("it is there");
                    return connection.calls.push_back((request, Slot::Waiting));
                }
                Ok(()) => (call.xid, Ok(self.nothing.clone())),
                Err(refusal) => (call.xid, Err(refusal)),
            },
            Err(Some((xid, refusal))) => (xid, Err(refusal)),
            Err(None) => {
                // Choice: as in Sun's servers, a stream that carries something else ends.
                self.outputs.push_back(Output::Transmit(Transmit::Close(id)));
                return self.handle_closed(_now, id);
            }
        };
        let request = self.number();
        let connection = self.connections.get_mut(&id).expect("it is there");
        connection.calls.push_back((request, Slot::Ready(Reply { xid, result })));
        self.send_in_order(id);
    }

    /// A connection is gone.
    pub fn handle_closed(&mut self, _now: SimTime, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// Takes a program in, in one version. One that is there is replaced.
    pub fn register(&mut self, service: Service) {
        self.services.insert((service.program, service.version), service);
    }

    /// Takes a program out; whether it was there.
    pub fn unregister(&mut self, program: u32, version: u32) -> bool {
        self.services.remove(&(program, version)).is_some()
    }

    /// Answers a call: with results, or with why there are none, [`Refusal::GarbageArguments`] if the
    /// arguments cannot be read. False if the call is not open: it was answered, or never was.
    pub fn reply(&mut self, _now: SimTime, id: RequestId, result: Result<B, Refusal>) -> bool {
        self.finish(id, Some(result))
    }

    /// Ends a call that gets no reply: a batched one. False if it is not open.
    pub fn no_reply(&mut self, _now: SimTime, id: RequestId) -> bool {
        self.finish(id, None)
    }

    /// What is to be done next. The server has no timers.
    pub fn poll_output(&mut self) -> ServerOutput<P, B> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }

    /// How many calls are being carried out.
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// How many calls are remembered.
    pub fn remembered(&self) -> usize {
        self.cache.held()
    }

    /// The call in it; or an answer; or nothing that can be answered.
    fn readable(
        &mut self,
        origin: Origin<P>,
        incoming: Incoming<B>,
    ) -> Result<Call<B>, Option<(u32, Refusal)>> {
        let error = match incoming {
            Incoming::Call(call) => {
                if matches!(origin, Origin::Connection(_)) {
                    self.work(Work { kind: WorkKind::RecordIn, bytes: call.length(), count: 1 });
                }
                let head = Bytes::new(call.head().len() as u64);
                of_message(false, head, call.body()).for_each(|work| self.work(work));
                return Ok(call);
            }
            Incoming::Unreadable { xid, refusal } => return Err(Some((xid, refusal))),
            Incoming::Reply(_) => None,
            Incoming::Garbage(error) => Some(error),
        };
        self.event(Event::Garbage { origin, error });
        Err(None)
    }

    /// Whether a call may be carried out (§9; who calls is looked at first).
    fn admit(&self, call: &Call<B>) -> Result<(), Refusal> {
        let status = match call.credential.who() {
            Some(Err(_)) => Some(AuthStatus::BAD_CREDENTIAL),
            None if call.credential.flavor() != Auth::NONE.flavor => Some(AuthStatus::REJECTED_CREDENTIAL),
            Some(Ok(_)) | None => None,
        };
        if let Some(status) = status {
            return Err(Refusal::Authentication(status));
        }
        let Target { program, version, procedure } = call.target;
        let Some(service) = self.services.get(&(program, version)) else {
            let mut versions = self.services.range((program, 0)..=(program, u32::MAX)).map(|(key, _)| key.1);
            return Err(match (versions.next(), versions.next_back()) {
                (None, _) => Refusal::ProgramUnavailable,
                (Some(low), high) => Refusal::ProgramMismatch { low, high: high.unwrap_or(low) },
            });
        };
        if procedure == 0 {
            return Ok(());
        }
        if service.wants_system && call.credential.flavor() != Auth::SYSTEM {
            return Err(Refusal::Authentication(AuthStatus::TOO_WEAK));
        }
        if !service.procedures.contains(&procedure) {
            return Err(Refusal::ProcedureUnavailable);
        }
        Ok(())
    }

    fn deliver(&mut self, origin: Origin<P>, key: Option<Key<P>>, call: Call<B>) -> RequestId {
        let Call { xid, target, credential, arguments } = call;
        let id = self.number();
        self.open.insert(id, Open { xid, origin, key });
        self.outputs.push_back(Output::Deliver(Request { id, origin, target, credential, arguments }));
        id
    }

    fn number(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next - 1)
    }

    fn finish(&mut self, id: RequestId, result: Option<Result<B, Refusal>>) -> bool {
        let Some(Open { xid, origin, key }) = self.open.remove(&id) else { return false };
        let mut reply = result.map(|result| Reply { xid, result });
        match origin {
            Origin::Datagram(peer) => {
                // Choice: results that fit no datagram are a failure of the server.
                if reply.as_ref().is_some_and(|reply| reply.length() > self.config.datagram) {
                    reply = Some(Reply { xid, result: Err(Refusal::SystemError) });
                }
                if let Some(key) = key {
                    self.cache.finish(key, reply.clone());
                }
                if let Some(reply) = reply {
                    self.send(peer, reply);
                }
            }
            Origin::Connection(connection) => {
                let calls = self.connections.get_mut(&connection).map(|open| &mut open.calls);
                let Some(slot) = calls.and_then(|calls| calls.iter_mut().find(|(each, _)| *each == id))
                else {
                    self.event(Event::Orphan(id));
                    return true;
                };
                slot.1 = reply.map_or(Slot::Silent, Slot::Ready);
                self.send_in_order(connection);
            }
        }
        true
    }

    fn send(&mut self, peer: P, reply: Reply<B>) {
        let head = Bytes::new(reply.head().len() as u64);
        of_message(true, head, reply.body()).for_each(|work| self.work(work));
        self.outputs.push_back(Output::Transmit(Transmit::Datagram(peer, reply)));
    }

    fn send_in_order(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while connection.calls.front().is_some_and(|(_, slot)| !matches!(slot, Slot::Waiting)) {
            let Some((_, Slot::Ready(reply))) = connection.calls.pop_front() else { continue };
            let head = Bytes::new(reply.head().len() as u64);
            self.outputs.extend(of_message(true, head, reply.body()).map(Output::Work));
            connection.sender.put(&reply, reply.length(), true);
        }
        while let Some(write) = connection.sender.poll_write() {
            let (bytes, count) = (write.length(), write.pieces.len() as u32);
            self.outputs.push_back(Output::Work(Work { kind: WorkKind::RecordOut, bytes, count }));
            self.outputs.push_back(Output::Transmit(Transmit::Write(id, write)));
        }
    }

    fn event(&mut self, event: Event<P>) {
        self.outputs.push_back(Output::Event(event));
    }

    fn work(&mut self, work: Work) {
        self.outputs.push_back(Output::Work(work));
    }
}

/// Calls that a cache remembers, if a program does not say.
pub const CACHE_CALLS: usize = 256;
