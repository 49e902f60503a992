//! The system calls of a library: what each does, and what it costs besides.
//!
//! Every call pays `trap`. A PDU that is sent pays `fore_send` and `copy_in` besides, one that is taken
//! `fore_receive` and `copy_out`. A write, a connect and a close pay `socket_send` besides, a read that gets something
//! `socket_receive`, a select `select`; TCP says the rest. Who slept pays `context_switch` before it goes on.

use wiretwin_msg::fore::Ask;
use wiretwin_msg::library::{Address, Call, CallError, ConnectionId, Content, ListenerId, Outcome, Ready};
use wiretwin_proto::tcp::{Read, Reason, State};
use wiretwin_units::{Bytes, SimTime};

use super::super::Lan;
use super::super::activity::Activity;
use super::super::cpu::{Step, relax};
use super::super::host::{Action, ThreadAt};
use super::{address, is_mapped};

/// The first port that the system chooses (4.3BSD: those below are for the superuser).
const FIRST_PORT: u16 = 1024;

/// Of so many that were read the memory is kept.
const SPARE_CONTENTS: usize = 64;

impl Lan {
    /// A process makes its library's next call.
    pub(in super::super) fn begin_call(&mut self, here: ThreadAt, process: u32) {
        let runtime = &mut self.runtimes[process as usize];
        let Some(call) = runtime.calls.pop_front() else { return };
        relax(&mut runtime.calls);
        if self.config.stack.message.is_over_vis() {
            // No system calls: what posting costs, the NIC says.
            runtime.current = Some(call);
            return self.insert(here, &[Step::Do(Action::Attempt { process })]);
        }
        let besides = match call {
            Call::Write { .. } | Call::Connect { .. } | Call::Close { .. } | Call::SendTo { .. } => {
                Some(Activity::SocketSend)
            }
            Call::Select { .. } => Some(Activity::Select),
            // It opens the device, and binds: another system call.
            Call::Fore(Ask::Open { .. }) => Some(Activity::Trap),
            _ => None,
        };
        let pdu = match &call {
            Call::SendPdu { content, .. } => Some(content.length()),
            _ => None,
        };
        let is_mapped = self.is_call_mapped(process, &call);
        self.runtimes[process as usize].current = Some(call);
        if is_mapped {
            return self.begin_mapped(here, process);
        }
        let attempt = Step::Do(Action::Attempt { process });
        let trap = self.fee(here.host, Activity::Trap);
        if let Some(octets) = pdu {
            let send = self.price(here.host, Activity::ForeSend, octets, octets);
            let copy = self.price(here.host, Activity::CopyIn, octets, octets);
            return self.insert(here, &[trap, send, copy, attempt]);
        }
        match besides {
            Some(besides) => {
                let besides = self.fee(here.host, besides);
                self.insert(here, &[trap, besides, attempt]);
            }
            None => self.insert(here, &[trap, attempt]),
        }
    }

    /// Goes as far with its call as it can.
    pub(in super::super) fn attempt(&mut self, here: ThreadAt, process: u32) {
        let Some(call) = self.runtimes[process as usize].current.take() else { return };
        if self.config.stack.message.is_over_vis() {
            return self.attempt_vi(here, process, call);
        }
        match call {
            Call::Post { connection, .. } => {
                debug_assert!(false, "a descriptor is posted on a socket");
                self.outcome(here, process, Outcome::Ended { connection });
            }
            Call::Listen { port } => self.listen(here, process, port),
            Call::Accept { listener } => self.accept(here, process, listener),
            Call::Connect { to } => {
                if self.runtimes[process as usize].connecting.is_none() {
                    self.runtimes[process as usize].current = Some(Call::Connect { to });
                    return self.connect(here, process, to);
                }
                self.connected(here, process, to);
            }
            Call::Nodelay { connection, on } => {
                if let Some(end) = self.runtimes[process as usize].socket(connection) {
                    self.ends[end as usize].machine.set_nodelay(on);
                }
                self.outcome(here, process, Outcome::Changed { connection });
            }
            Call::Write { connection, content, wait } => {
                if self.runtimes[process as usize].end(connection).is_some_and(is_mapped) {
                    // It has waited for a buffer.
                    self.runtimes[process as usize].current = Some(Call::Write { connection, content, wait });
                    return self.begin_mapped(here, process);
                }
                self.write_on(here, process, connection, content, wait);
            }
            Call::Read { connection, most, wait } => {
                let Some(end) = self.runtimes[process as usize].end(connection) else {
                    return self.outcome(here, process, Outcome::Ended { connection });
                };
                if is_mapped(end) {
                    return self.read_mapped(here, process, end, most);
                }
                let (readable, came) = (self.is_there(end), self.ends[end as usize].came);
                if readable {
                    self.runtimes[process as usize].current = Some(Call::Read { connection, most, wait });
                    let receive = self.fee(here.host, Activity::SocketReceive);
                    let steps = [Step::After(came), receive, Step::Do(Action::Fetch { process })];
                    self.insert(here, &steps);
                } else if wait {
                    self.sleep(here, process, Call::Read { connection, most, wait });
                } else {
                    self.was_read(here, process, connection, Bytes::new(0));
                }
            }
            Call::Close { connection } => {
                let now = self.core.now();
                let at = connection.0 as usize;
                let end = self.runtimes[process as usize].socket(connection);
                if let Some(end) = end {
                    self.runtimes[process as usize].connections[at] = None;
                    // One that is over already needs no more.
                    let _ = self.ends[end as usize].machine.close(now);
                }
                self.outcome(here, process, Outcome::Closed { connection });
                if let Some(end) = end {
                    self.drain(here, end, true);
                }
            }
            Call::Select { write, until, idle } => {
                self.look(process, write);
                let ready = core::mem::take(&mut self.runtimes[process as usize].ready);
                if ready.is_empty() && until.unwrap_or(SimTime::MAX) > self.core.now() && !self.looks(process)
                {
                    self.runtimes[process as usize].ready = ready;
                    return self.sleep(here, process, Call::Select { write, until, idle });
                }
                self.signs_told(process);
                self.outcome(here, process, Outcome::Ready(&ready));
                self.runtimes[process as usize].ready = ready;
            }
            Call::Bind { port } => self.bind(here, process, port),
            Call::SendTo { socket, to, content } => {
                self.send_datagram(here, process, socket, to, content);
            }
            Call::SendPdu { circuit, content } => self.send_pdu(here, process, circuit, content),
            Call::ReceivePdu { circuit, wait } => self.receive_pdu(here, process, circuit, wait),
            Call::ReceiveFrom { socket, wait } => self.receive_datagram(here, process, socket, wait),
            Call::Fore(ask) => self.fore_call(here, process, ask),
            Call::Start { program } => self.start_program(here, process, &program),
        }
    }

    /// Whether a sleeper's call can go on.
    pub(super) fn may_go_on(&mut self, process: u32) -> bool {
        let now = self.core.now();
        let runtime = &self.runtimes[process as usize];
        if self.config.stack.message.is_over_vis() {
            return runtime.current.as_ref().is_none_or(|call| self.vi_may_go_on(process, call));
        }
        match &runtime.current {
            Some(Call::Read { connection, .. }) => {
                runtime.end(*connection).is_none_or(|end| self.is_there(end))
            }
            Some(Call::Write { connection, .. }) => {
                runtime.end(*connection).is_none_or(|end| self.has_room(end))
            }
            Some(Call::Connect { .. }) => runtime.connecting.is_none_or(|end| {
                self.ends[end as usize].machine.state().is_synchronized() || self.is_over(end)
            }),
            Some(Call::Accept { listener }) => {
                runtime.listeners.get(listener.0 as usize).is_some_and(|(_, waiting)| !waiting.is_empty())
            }
            Some(Call::ReceivePdu { circuit, .. }) => self.has_pdu(process, *circuit),
            Some(Call::ReceiveFrom { socket, .. }) => self.has_datagram(process, *socket),
            Some(Call::Select { write, until, .. }) => {
                let (write, until) = (*write, *until);
                self.look(process, write);
                !self.runtimes[process as usize].ready.is_empty() || until.unwrap_or(SimTime::MAX) <= now
            }
            _ => true,
        }
    }

    /// Finds out what is ready for a process.
    pub(super) fn look(&mut self, process: u32, write: Option<ConnectionId>) {
        let mut ready = core::mem::take(&mut self.runtimes[process as usize].ready);
        ready.clear();
        let mut stirred = core::mem::take(&mut self.runtimes[process as usize].stirred);
        let runtime = &self.runtimes[process as usize];
        stirred.extend(write.map(|name| name.0));
        stirred.retain(|&at| {
            let name = ConnectionId(at);
            let Some(end) = runtime.end(name) else { return false };
            let readable = self.is_there(end);
            if readable {
                ready.push(Ready::Readable(name));
            }
            if write == Some(name) && self.has_room(end) {
                ready.push(Ready::Writable(name));
            }
            // Nobody says when something has come to mapped memory.
            readable || is_mapped(end)
        });
        self.runtimes[process as usize].stirred = stirred;
        let runtime = &self.runtimes[process as usize];
        for (at, (_, waiting)) in runtime.listeners.iter().enumerate() {
            if !waiting.is_empty() {
                ready.push(Ready::Acceptable(ListenerId(at as u32)));
            }
        }
        let wanted = write.and_then(|name| self.runtimes[process as usize].end(name));
        if let Some(end) = wanted.filter(|&end| is_mapped(end)) {
            self.wants_mapped_room(end);
        }
        ready.extend(self.sockets_with_datagrams(process).map(Ready::Datagram));
        ready.extend(self.signs_of(process));
        ready.extend(self.circuits_with_pdus(process).map(Ready::Pdu));
        self.runtimes[process as usize].ready = ready;
    }

    /// Whether a write to an end would not wait.
    fn has_room(&self, end: u32) -> bool {
        if is_mapped(end) {
            return self.has_mapped_room(end);
        }
        !self.ends[end as usize].full || self.is_over(end)
    }

    /// Something may have come to an end, or it is over.
    pub(in super::super) fn stir(&mut self, number: u32) {
        let end = &self.ends[number as usize];
        if end.name != ConnectionId(u32::MAX)
            && let Some(runtime) = self.runtimes.get_mut(end.process as usize)
        {
            runtime.stirred.insert(end.name.0);
        }
    }

    /// Whether a read of an end would get something: octets, or the end of them.
    fn is_there(&self, end: u32) -> bool {
        if is_mapped(end) {
            return self.has_mapped(end);
        }
        let machine = &self.ends[end as usize].machine;
        machine.readable() > Bytes::new(0) || self.is_over(end) || machine.state().has_received_fin()
    }

    fn is_over(&self, end: u32) -> bool {
        self.ends[end as usize].machine.state() == State::Closed
    }

    // Connections

    fn listen(&mut self, here: ThreadAt, process: u32, port: u16) {
        let taken = |port| self.listening.contains_key(&address(here.host, port));
        let port = match port {
            0 => (FIRST_PORT..u16::MAX).find(|&port| !taken(port)).unwrap_or(0),
            port => port,
        };
        if port == 0 || taken(port) {
            return self.outcome(here, process, Outcome::Failed(CallError::PortTaken { port }));
        }
        let at = address(here.host, port);
        let listener = self.add_listener(process, at);
        self.outcome(here, process, Outcome::Listening { listener, at });
    }

    /// A socket that waits for connections.
    pub(super) fn add_listener(&mut self, process: u32, at: Address) -> ListenerId {
        let runtime = &mut self.runtimes[process as usize];
        let listener = ListenerId(runtime.listeners.len() as u32);
        runtime.listeners.push((at.port, std::collections::VecDeque::new()));
        self.listening.insert(at, (process, listener));
        listener
    }

    fn accept(&mut self, here: ThreadAt, process: u32, listener: ListenerId) {
        let runtime = &mut self.runtimes[process as usize];
        let waiting = runtime.listeners.get_mut(listener.0 as usize).and_then(|one| one.1.pop_front());
        let Some(end) = waiting else {
            return self.sleep(here, process, Call::Accept { listener });
        };
        let connection = runtime.name(end);
        self.ends[end as usize].name = connection;
        let other = self.ends[end as usize].other;
        let (from, came) = (self.ends[other as usize].at, self.ends[end as usize].came);
        self.insert(here, &[Step::After(came)]);
        self.outcome(here, process, Outcome::Accepted { listener, connection, from });
    }

    /// Both ends come to be, and the first asks for the connection. Where nobody listens the other one is
    /// closed, and says so when it is asked.
    fn connect(&mut self, here: ThreadAt, process: u32, to: Address) {
        let now = self.core.now();
        let Some(socket) = self.config.socket.as_ref() else { return };
        let (mtu, nodelay) = (socket.mtu, self.sets_nodelay(process, socket));
        let listener = self.listening.get(&to).copied();
        let there = to.host.min(self.size() - 1);
        let first = self.ends.len() as u32;
        self.add_end(process, here.host, first + 1, mtu);
        self.add_end(listener.map_or(u32::MAX, |one| one.0), there, first, mtu);
        // No two connections of a here.host have the same port there, and none one that listens.
        let port = FIRST_PORT + (first / 2 % u32::from(u16::MAX - FIRST_PORT)) as u16;
        self.ends[first as usize].at = address(here.host, port);
        let peer = &mut self.ends[first as usize + 1];
        peer.at = to;
        if listener.is_some() {
            let opened = peer.machine.listen(now);
            debug_assert!(opened.is_ok(), "it is new");
            peer.machine.set_nodelay(nodelay);
        }
        let machine = &mut self.ends[first as usize].machine;
        let asked = machine.connect(now);
        debug_assert!(asked.is_ok(), "it is new");
        machine.set_nodelay(nodelay);
        self.runtimes[process as usize].connecting = Some(first);
        self.insert(here, &[Step::Do(Action::Attempt { process })]);
        self.drain(here, first, true);
    }

    fn connected(&mut self, here: ThreadAt, process: u32, to: Address) {
        let Some(end) = self.runtimes[process as usize].connecting else { return };
        if self.is_over(end) {
            self.runtimes[process as usize].connecting = None;
            let refused = self.over.iter().rev().any(|one| one.0 == process && one.2 == Reason::Refused);
            let error = if refused { CallError::Refused { to } } else { CallError::Unreachable { to } };
            return self.outcome(here, process, Outcome::Failed(error));
        }
        if !self.ends[end as usize].machine.state().is_synchronized() {
            return self.sleep(here, process, Call::Connect { to });
        }
        let runtime = &mut self.runtimes[process as usize];
        runtime.connecting = None;
        let connection = runtime.name(end);
        self.ends[end as usize].name = connection;
        self.outcome(here, process, Outcome::Connected { connection, to });
    }

    /// A connection is open, or over.
    pub(in super::super) fn has_changed(&mut self, here: ThreadAt, number: u32) {
        if !self.config.stack.message.is_library() {
            return;
        }
        let trail = self.trail_of(here);
        let end = &mut self.ends[number as usize];
        end.came = trail;
        end.full = false;
        let (process, at, unnamed) = (end.process, end.at, end.name == ConnectionId(u32::MAX));
        let opened = end.machine.state() == State::Established;
        self.stir(number);
        if opened
            && unnamed
            && let Some(&(owner, listener)) = self.listening.get(&at)
        {
            let waiting = &mut self.runtimes[owner as usize].listeners[listener.0 as usize].1;
            if !waiting.contains(&number) {
                waiting.push_back(number);
            }
        }
        self.rouse_library(process, trail);
    }

    // Octets

    fn write_on(
        &mut self,
        here: ThreadAt,
        process: u32,
        connection: ConnectionId,
        mut content: Content,
        wait: bool,
    ) {
        let now = self.core.now();
        let Some(number) = self.runtimes[process as usize].end(connection) else {
            return self.outcome(here, process, Outcome::Ended { connection });
        };
        if content.length() == Bytes::new(0) {
            return self.outcome(here, process, Outcome::Wrote { connection, rest: content });
        }
        let end = &mut self.ends[number as usize];
        let most = end.machine.piece(content.length());
        let Ok(taken) = end.machine.send(now, most) else {
            return self.outcome(here, process, Outcome::Ended { connection });
        };
        content.move_to(taken, &mut end.content);
        let rest = content.length() > Bytes::new(0);
        if !content.has_memory() {
            // All of it went: its writer has the memory of another for what it writes next.
            content = self.contents.pop().unwrap_or_default();
        }
        let call = Call::Write { connection, content, wait };
        if taken == Bytes::new(0) {
            end.full = true;
            if wait {
                self.sleep(here, process, call);
            } else {
                self.runtimes[process as usize].current = Some(call);
                self.insert(here, &[Step::Do(Action::Wrote { process })]);
            }
        } else {
            self.runtimes[process as usize].current = Some(call);
            let next = if rest { Action::Attempt { process } } else { Action::Wrote { process } };
            self.insert(here, &[Step::Do(next)]);
        }
        self.drain(here, number, true);
    }

    /// A write has ended.
    pub(in super::super) fn wrote(&mut self, here: ThreadAt, process: u32) {
        let current = self.runtimes[process as usize].current.take();
        if let Some(Call::Write { connection, content, .. } | Call::Post { connection, content, .. }) =
            current
        {
            self.outcome(here, process, Outcome::Wrote { connection, rest: content });
        }
    }

    /// A process takes what there is from TCP.
    pub(in super::super) fn fetch(&mut self, here: ThreadAt, process: u32) {
        let now = self.core.now();
        let runtime = &self.runtimes[process as usize];
        let Some(Call::Read { connection, most, .. }) = runtime.current else { return };
        let Some(number) = runtime.end(connection) else { return };
        let octets = match self.ends[number as usize].machine.receive(now, most) {
            Read::Octets(octets) => octets,
            Read::Nothing => Bytes::new(0),
            Read::End => {
                self.runtimes[process as usize].current = None;
                return self.outcome(here, process, Outcome::Ended { connection });
            }
        };
        self.insert(here, &[Step::Do(Action::Fetched { process, octets })]);
        self.drain(here, number, true);
    }

    /// The octets are in the process's own memory.
    pub(in super::super) fn fetched(&mut self, here: ThreadAt, process: u32, octets: Bytes) {
        if let Some(Call::Read { connection, .. }) = self.runtimes[process as usize].current.take() {
            self.was_read(here, process, connection, octets);
        }
    }

    /// Nothing, with the memory of what was read before, if there is any.
    pub(super) fn spare_content(&mut self) -> Content {
        self.contents.pop().unwrap_or_default()
    }

    /// Keeps the memory of what has been read.
    pub(super) fn keep_content(&mut self, mut content: Content) {
        if content.has_memory() && self.contents.len() < SPARE_CONTENTS {
            content.clear();
            self.contents.push(content);
        }
    }

    fn was_read(&mut self, here: ThreadAt, process: u32, connection: ConnectionId, octets: Bytes) {
        let mut content = self.spare_content();
        if let Some(end) = self.runtimes[process as usize].end(connection)
            && octets > Bytes::new(0)
        {
            let other = self.ends[end as usize].other;
            let theirs = &mut self.ends[other as usize].content;
            let moved = theirs.move_to(octets, &mut content);
            debug_assert_eq!(moved, octets, "what TCP delivers was written");
            if theirs.is_empty() {
                let empty = core::mem::take(theirs);
                self.keep_content(empty);
            }
        }
        self.outcome(here, process, Outcome::Read { connection, content: &mut content });
        self.keep_content(content);
    }
}
