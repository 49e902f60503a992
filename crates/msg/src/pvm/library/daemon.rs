//! The daemon of a host as a process: its tasks' connections, and a socket for the other daemons.
//!
//! As `work` of PVM's daemon does it: it looks what is ready, takes one datagram and one read from each
//! task, and sends what that brings about. A datagram is a call; a piece for a task is written when its
//! connection has room.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::pvm::{self as wire, HEADER_OCTETS, MESSAGE_OCTETS};

use crate::library::{
    Address, Call, CallError, ConnectionId, Content, Event, Library, LibraryOutput, Outcome, Ready, SocketId,
};
use crate::pvm::body::Piece;
use crate::pvm::daemon::{
    self, Config, DATAGRAM_OCTETS, Demand, HostEntry, SpawnId, StreamId, Timing, Transmit,
};
use crate::pvm::{Head, Packet, PvmError};

use super::line::{self, Line};

/// Where every daemon's socket is: the port of one is fixed here, where PVM's take any and tell each other.
pub const DAEMON_PORT: u16 = 1023;

/// The daemon of one host.
#[derive(Debug)]
pub struct Daemon {
    daemon: daemon::Daemon<Piece>,
    socket: Option<SocketId>,
    lines: BTreeMap<ConnectionId, Line>,
    /// To tasks, in order.
    out: VecDeque<(ConnectionId, Content)>,
    /// Tasks that are being started, in order.
    starts: VecDeque<SpawnId>,
    busy: u32,
    /// A datagram has been sent since it looked what is ready.
    sent: bool,
    outputs: VecDeque<LibraryOutput>,
}

impl Daemon {
    /// The daemon of a host (a rank's number), of so many; the first one is the master.
    ///
    /// # Panics
    /// For more than 4095 hosts.
    pub fn new(host: u32, size: u32) -> Self {
        let entry = |rank: u32| HostEntry {
            number: rank + 1,
            name: alloc::format!("h{rank}"),
            architecture: String::from("SUN4"),
        };
        let config = Config {
            host: host + 1,
            master: 1,
            hosts: (0..size).map(entry).collect(),
            // Nobody asks a silent host whether it is there: a run would never end.
            timing: Timing { ping: None, ..Timing::default() },
            datagram: DATAGRAM_OCTETS,
            address: alloc::format!("{:08x}:{DAEMON_PORT:04x}", host + 1),
        };
        let daemon =
            daemon::Daemon::new(config, SimTime::ZERO).expect("1 to 4095 hosts, and this one of them");
        Self {
            daemon,
            socket: None,
            lines: BTreeMap::new(),
            out: VecDeque::new(),
            starts: VecDeque::new(),
            busy: 0,
            sent: false,
            outputs: VecDeque::new(),
        }
    }

    fn call(&mut self, call: Call) {
        self.busy += 1;
        self.outputs.push_back(Output::Transmit(call));
    }

    /// Does what the daemon asks for since it was called; then waits, if nothing is under way.
    fn drain(&mut self) {
        let due = loop {
            match self.daemon.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(Transmit::Datagram { host, packet }) => {
                    if let Some(socket) = self.socket {
                        let to = Address { host: host - 1, port: DAEMON_PORT };
                        self.call(Call::SendTo { socket, to, content: content(&packet) });
                        self.sent = true;
                    }
                }
                Output::Transmit(Transmit::Write(stream, fragment)) => {
                    self.out.push_back((ConnectionId(stream.0), line::content(&fragment, Content::new())));
                }
                Output::Event(daemon::Event::SentAgain { .. }) => {
                    self.outputs.push_back(Output::Event(Event::SentAgain));
                }
                Output::Event(daemon::Event::Garbage { .. } | daemon::Event::Stray(_)) => self.garbage(),
                Output::Deliver(Demand::Spawn { id, file: program, .. }) => {
                    self.starts.push_back(id);
                    self.call(Call::Start { program });
                }
                // What is there from the start is not made or ended here.
                Output::Transmit(_) | Output::Deliver(_) | Output::Event(_) => {}
                Output::Timeout(due) => break due,
            }
        };
        if self.busy == 0 && self.socket.is_some() {
            // `work` asks for the time before it looks what is ready, and `netoutput` before it where packets
            // are to be sent or not acknowledged.
            if core::mem::take(&mut self.sent) || self.daemon.repeats_at().is_some() {
                self.ask_time();
            }
            self.ask_time();
            let write = self.out.front().map(|(connection, _)| *connection);
            self.call(Call::Select { write, until: due, idle: self.daemon.repeats_at().is_none() });
        }
    }

    /// A system call, `gettimeofday`.
    fn ask_time(&mut self) {
        let work = Work { kind: WorkKind::SystemCall, bytes: Bytes::new(0), count: 1 };
        self.outputs.push_back(Output::Work(work));
    }

    fn garbage(&mut self) {
        self.outputs.push_back(Output::Event(Event::Garbage { what: "a packet of PVM" }));
    }

    /// What became of the start of a task.
    fn started(&mut self, now: SimTime, result: Result<i32, PvmError>) {
        if let Some(id) = self.starts.pop_front() {
            self.daemon.handle_spawned(now, id, result);
        }
    }

    /// A datagram of the daemon of a host.
    fn datagram(&mut self, now: SimTime, from: Address, content: &mut Content) {
        match packet(content) {
            Some(packet) => {
                let awaited = self.daemon.repeats_at();
                self.daemon.handle_datagram(now, from.host + 1, packet);
                if awaited != self.daemon.repeats_at() {
                    // `netinput` measures the round trip of what is acknowledged.
                    self.ask_time();
                }
            }
            None => self.garbage(),
        }
    }

    fn take_in(&mut self, now: SimTime, connection: ConnectionId) {
        while let Some(line) = self.lines.get_mut(&connection) {
            match line.take() {
                Ok(Some(fragment)) => self.daemon.handle_fragment(now, StreamId(connection.0), fragment),
                Ok(None) => return,
                Err(_) => {
                    self.garbage();
                    self.lost(now, connection);
                }
            }
        }
    }

    fn lost(&mut self, now: SimTime, connection: ConnectionId) {
        self.lines.remove(&connection);
        self.out.retain(|(to, _)| *to != connection);
        self.daemon.handle_closed(now, StreamId(connection.0));
    }
}

impl Library for Daemon {
    fn progress(&mut self, now: SimTime) {
        if self.busy > 0 {
            return;
        }
        if self.socket.is_none() {
            return self.call(Call::Bind { port: DAEMON_PORT });
        }
        self.daemon.handle_timeout(now);
        self.drain();
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        if let Outcome::Given { connection, .. } = outcome {
            // One task a host: the first number is its rank's.
            if self.daemon.attach(StreamId(connection.0)).is_some() {
                self.lines.insert(connection, Line::new(self.daemon.tid()));
            }
            return;
        }
        self.busy -= 1;
        match outcome {
            Outcome::Bound { socket, .. } => self.socket = Some(socket),
            Outcome::Started { process, connection } => {
                self.started(now, Ok(process as i32));
                self.lines.insert(connection, Line::new(self.daemon.tid()));
                self.daemon.handle_connected(now, StreamId(connection.0));
            }
            Outcome::Failed(CallError::NoSuchProgram) => self.started(now, Err(PvmError::NoFile)),
            Outcome::Ready(ready) => {
                self.daemon.handle_timeout(now);
                let mut writable = None;
                for ready in ready {
                    match *ready {
                        Ready::Datagram(socket) => self.call(Call::ReceiveFrom { socket, wait: false }),
                        Ready::Readable(connection) => {
                            if let Some(line) = self.lines.get(&connection) {
                                let most = line.wanted();
                                self.call(Call::Read { connection, most, wait: false });
                            }
                        }
                        Ready::Writable(connection) => writable = Some(connection),
                        Ready::Acceptable(_) | Ready::Pdu(_) | Ready::Circuit(..) => {}
                    }
                }
                if writable.is_some()
                    && let Some((connection, content)) = self.out.pop_front()
                {
                    self.call(Call::Write { connection, content, wait: false });
                }
            }
            Outcome::Datagram { from, content, .. } => self.datagram(now, from, content),
            Outcome::Read { connection, content } => {
                let announced = |daemon: &Self| daemon.lines.get(&connection).is_some_and(Line::is_announced);
                let before = announced(self);
                if let Some(line) = self.lines.get_mut(&connection) {
                    content.move_to(Bytes::MAX, &mut line.inbox);
                }
                self.take_in(now, connection);
                // What a header has announced is read without another look.
                if !before && let Some(line) = self.lines.get(&connection).filter(|line| line.is_announced())
                {
                    let most = line.wanted();
                    return self.call(Call::Read { connection, most, wait: false });
                }
            }
            Outcome::Wrote { connection, rest } if !rest.is_empty() => {
                self.out.push_front((connection, rest));
            }
            Outcome::Ended { connection } => {
                // What is over would be ready at every look.
                self.call(Call::Close { connection });
                self.lost(now, connection);
            }
            _ => {}
        }
        self.drain();
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}

/// A packet as content.
fn content(packet: &Packet<Piece>) -> Content {
    let mut content = Content::new();
    content.push_octets(&packet.header.octets());
    if let Some(head) = packet.head {
        content.push_octets(&head.wire().octets());
    }
    line::push(&mut content, &packet.body);
    content
}

/// The packet that content is; `None` for what is none.
fn packet(content: &mut Content) -> Option<Packet<Piece>> {
    let mut octets = [0; HEADER_OCTETS];
    if !content.take_octets(&mut octets) {
        return None;
    }
    let (header, _) = wire::Packet::parse(&octets).ok()?;
    let mut head = None;
    if header.first {
        let mut octets = [0; MESSAGE_OCTETS];
        if !content.take_octets(&mut octets) {
            return None;
        }
        let (message, _) = wire::Message::parse(&octets).ok()?;
        head = Some(Head::of(&message));
    }
    let length = content.length();
    Some(Packet { header, head, body: line::piece(content, length) })
}

#[cfg(test)]
mod tests {
    use wiretwin_units::Seq;

    use super::*;
    use crate::pvm::Tid;

    /// How often the daemon asks for the time before it looks what is ready, and whether it then does.
    fn asked(daemon: &mut Daemon) -> (usize, bool) {
        let mut asked = 0;
        loop {
            match daemon.poll_output() {
                Output::Work(Work { kind: WorkKind::SystemCall, .. }) => asked += 1,
                Output::Transmit(Call::Select { .. }) => return (asked, true),
                Output::Timeout(_) => return (asked, false),
                _ => {}
            }
        }
    }

    #[test]
    fn the_time_is_asked_for_before_each_look_and_once_more_where_a_packet_was_to_be_sent() {
        let now = SimTime::ZERO;
        let mut daemon = Daemon::new(0, 2);
        daemon.progress(now);
        assert_eq!(asked(&mut daemon), (0, false), "the socket is bound first");
        daemon
            .handle(now, Outcome::Bound { socket: SocketId(0), at: Address { host: 0, port: DAEMON_PORT } });
        assert_eq!(asked(&mut daemon), (1, true));
        let header = wire::Packet {
            destination: Tid::daemon(1).expect("the first host's"),
            source: Tid::daemon(2).expect("the second host's"),
            sequence: Seq::wrapping(1),
            acknowledged: Seq::wrapping(0),
            first: false,
            last: false,
            data: true,
            finish: false,
            acknowledges: false,
        };
        let mut octets = Content::new();
        octets.push_octets(&header.octets());
        let (socket, from) = (SocketId(0), Address { host: 1, port: DAEMON_PORT });
        daemon.handle(now, Outcome::Ready(&[Ready::Datagram(socket)]));
        daemon.handle(now, Outcome::Datagram { socket, from, content: &mut octets });
        assert_eq!(asked(&mut daemon), (0, false), "it acknowledges first");
        daemon.handle(now, Outcome::Sent { socket, rest: Content::new() });
        assert_eq!(asked(&mut daemon), (2, true));
    }
}
