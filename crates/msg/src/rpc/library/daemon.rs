//! The port mapper's daemon: it accepts, reads questions, answers them, for ever.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::{Ipv4Addr, SocketAddrV4};

use alloc::format;
use wiretwin_proto::Output;
use wiretwin_units::SimTime;
use wiretwin_wire::rpc::portmap::{Transport as Over, UniversalAddress};

use super::{PROGRAM, SERVER_PORT, VERSION, server_config};
use crate::library::{Address, Call, ConnectionId, Event, Library, LibraryOutput, Outcome, Ready, SocketId};
use crate::rpc::mapper::{Answer, Caller, Mapper, Registration, UNKNOWN};
use crate::rpc::matter::{Records, content_of, datagram_of, read};
use crate::rpc::record::DEFAULT_BUFFER;
use crate::rpc::server::{self, Origin, Server};
use crate::rpc::{Matter, Refusal as Denied};

/// Registrations that it has room for.
const ROOM: usize = 64;

/// The daemon of one host, whose rank has registered its server.
#[derive(Debug)]
pub struct PortMapper {
    mapper: Mapper,
    server: Server<Address, Matter>,
    /// Where it is asked by datagrams, if it is.
    socket: Option<SocketId>,
    lines: BTreeMap<ConnectionId, Records>,
    outputs: VecDeque<LibraryOutput>,
}

impl Default for PortMapper {
    fn default() -> Self {
        Self::new()
    }
}

impl PortMapper {
    /// A daemon that knows the server of its host's rank.
    #[must_use]
    pub fn new() -> Self {
        let mut mapper = Mapper::new(ROOM);
        let address = UniversalAddress(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT));
        for netid in ["tcp", "udp"] {
            mapper.set(Registration {
                program: PROGRAM,
                version: VERSION,
                netid: netid.into(),
                address: format!("{address}"),
                owner: UNKNOWN.into(),
            });
        }
        // A question may be answered twice: nothing is remembered.
        let mut server = Server::new(server_config(0), Matter::nothing());
        Mapper::services().into_iter().for_each(|service| server.register(service));
        Self { mapper, server, socket: None, lines: BTreeMap::new(), outputs: VecDeque::new() }
    }

    fn drain(&mut self, now: SimTime) {
        loop {
            match self.server.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(server::Transmit::Write(line, write)) => {
                    let (connection, content) = (ConnectionId(line.0 as u32), content_of(&write));
                    let write = Call::Write { connection, content, wait: true };
                    self.outputs.push_back(Output::Transmit(write));
                }
                Output::Transmit(server::Transmit::Close(line)) => {
                    let connection = ConnectionId(line.0 as u32);
                    self.lines.remove(&connection);
                    self.outputs.push_back(Output::Transmit(Call::Close { connection }));
                }
                Output::Transmit(server::Transmit::Datagram(to, reply)) => {
                    if let Some(socket) = self.socket {
                        let send = Call::SendTo { socket, to, content: datagram_of(&reply) };
                        self.outputs.push_back(Output::Transmit(send));
                    }
                }
                Output::Deliver(request) => {
                    let caller = Caller {
                        local: false,
                        owner: UNKNOWN.into(),
                        reached: Ipv4Addr::LOCALHOST,
                        transport: match request.origin {
                            Origin::Datagram(_) => Over::UDP,
                            Origin::Connection(_) => Over::TCP,
                        },
                        seconds: 0,
                    };
                    let Matter::Octets(octets) = &request.arguments else {
                        self.server.reply(now, request.id, Err(Denied::GarbageArguments));
                        continue;
                    };
                    let target = request.target;
                    match self.mapper.answer(target.version, target.procedure, octets, &caller) {
                        Answer::Results(octets) => {
                            self.server.reply(now, request.id, Ok(Matter::Octets(octets)))
                        }
                        Answer::Refused(denied) => self.server.reply(now, request.id, Err(denied)),
                        Answer::Silence => self.server.no_reply(now, request.id),
                    };
                }
                Output::Event(server::Event::Garbage { .. }) => {
                    self.outputs.push_back(Output::Event(Event::Garbage { what: "a question" }));
                }
                Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }
}

impl Library for PortMapper {
    fn progress(&mut self, _now: SimTime) {
        self.outputs.push_back(Output::Transmit(Call::Select { write: None, until: None, idle: true }));
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Ready(ready) => {
                for ready in ready {
                    let call = match *ready {
                        Ready::Readable(connection) => {
                            Call::Read { connection, most: DEFAULT_BUFFER, wait: false }
                        }
                        Ready::Acceptable(listener) => Call::Accept { listener },
                        Ready::Datagram(socket) => Call::ReceiveFrom { socket, wait: false },
                        Ready::Writable(_) | Ready::Pdu(_) | Ready::Circuit(..) => continue,
                    };
                    self.outputs.push_back(Output::Transmit(call));
                }
            }
            Outcome::Bound { socket, .. } => self.socket = Some(socket),
            Outcome::Datagram { from, content, .. } => {
                self.server.handle_datagram(now, from, read(content));
                self.drain(now);
            }
            Outcome::Accepted { connection, .. } => {
                self.lines.insert(connection, Records::default());
                self.server.handle_connected(now, server::ConnectionId(connection.0.into()));
            }
            Outcome::Read { connection, content } => {
                let Some(records) = self.lines.get_mut(&connection) else { return };
                records.take(content);
                while let Some(incoming) = self.lines.get_mut(&connection).and_then(Records::poll) {
                    self.server.handle_record(now, server::ConnectionId(connection.0.into()), incoming);
                    self.drain(now);
                }
            }
            Outcome::Ended { connection } => {
                self.lines.remove(&connection);
                self.server.handle_closed(now, server::ConnectionId(connection.0.into()));
                self.outputs.push_back(Output::Transmit(Call::Close { connection }));
            }
            _ => {}
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
