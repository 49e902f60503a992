//! A virtual machine of machines: daemons, tasks and what joins them, in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use wiretwin_msg::pvm::daemon::{self, Config, Daemon, Demand, HostEntry, StreamId, Timing};
use wiretwin_msg::pvm::group::{SERVER, Server};
use wiretwin_msg::pvm::pack::Packed;
use wiretwin_msg::pvm::task::{self, CallId, Routing, Task, Value};
use wiretwin_msg::pvm::{Fragment, Message, Octets, Packet, PvmError, Tid};
use wiretwin_proto::Output;
use wiretwin_units::{SimTime, Span};

/// Which process, from 0.
pub type Process = usize;

/// One thing on its way.
#[derive(Debug)]
enum Coming {
    Datagram { from: u32, to: u32, packet: Packet<Octets> },
    DaemonOpen(Process),
    ToDaemon(Process, Fragment<Octets>),
    FromDaemon(Process, Fragment<Octets>),
    DaemonClosed(Process),
    ProcessClosed(Process),
    Bound(Process, Tid),
    RouteOpen(Process, Tid),
    Route { to: Process, from: Tid, fragment: Fragment<Octets> },
    RouteClosed(Process, Tid),
    Started { host: u32, id: daemon::SpawnId, process: Option<Process> },
    Timer(u32),
}

/// What a process runs.
enum Program {
    Task(Task<Octets>),
    Server(Server<Octets>),
}

struct Running {
    program: Program,
    host: u32,
    alive: bool,
    /// Connected to its daemon.
    attached: bool,
}

/// The machine.
pub struct Machine {
    pub now: SimTime,
    daemons: BTreeMap<u32, Daemon<Octets>>,
    processes: Vec<Running>,
    coming: BTreeMap<(SimTime, u64), Coming>,
    serial: u64,
    timers: BTreeMap<u32, SimTime>,
    answers: BTreeMap<(Process, CallId), Result<Value<Octets>, PvmError>>,
    /// Packets between daemons and fragments between tasks, as they were sent.
    pub wire: Vec<Sent>,
    pub task_events: Vec<(Process, task::Event)>,
    pub daemon_events: Vec<(u32, daemon::Event)>,
    /// The programs that can be started.
    pub files: BTreeSet<String>,
    pub signals: Vec<(Tid, i32)>,
    pub halted: BTreeSet<u32>,
    /// Datagrams that are lost, by their place in the order of sending.
    pub lost: BTreeSet<usize>,
    /// Hosts that nothing comes to or from.
    pub dark: BTreeSet<u32>,
    sent: usize,
    /// What tasks that are started are told.
    pub routing: Routing,
    pub hold: bool,
}

/// What went over the network.
#[derive(Clone, Debug)]
pub enum Sent {
    Packet { from: u32, packet: Packet<Octets> },
    Fragment { from: u32, fragment: Fragment<Octets> },
}

const LOCAL: Span = Span::from_us(20);
const REMOTE: Span = Span::from_us(100);

impl Machine {
    /// So many hosts, `h1` and so on, the first of them the master.
    pub fn new(hosts: u32) -> Self {
        Self::with(hosts, Timing { ping: None, ..Timing::default() })
    }

    pub fn with(hosts: u32, timing: Timing) -> Self {
        let entries: Vec<HostEntry> = (1..=hosts)
            .map(|number| HostEntry { number, name: format!("h{number}"), architecture: "SUN4".into() })
            .collect();
        let daemon = |host: u32| {
            let config = Config {
                host,
                master: 1,
                hosts: entries.clone(),
                timing,
                datagram: daemon::DATAGRAM_OCTETS,
                address: format!("0a1400{host:02x}:1000"),
            };
            (host, Daemon::new(config, SimTime::ZERO).expect("its host is there"))
        };
        let mut machine = Self {
            now: SimTime::ZERO,
            daemons: (1..=hosts).map(daemon).collect(),
            processes: Vec::new(),
            coming: BTreeMap::new(),
            serial: 0,
            timers: BTreeMap::new(),
            answers: BTreeMap::new(),
            wire: Vec::new(),
            task_events: Vec::new(),
            daemon_events: Vec::new(),
            files: [SERVER.to_string(), "child".into()].into(),
            signals: Vec::new(),
            halted: BTreeSet::new(),
            lost: BTreeSet::new(),
            dark: BTreeSet::new(),
            sent: 0,
            routing: Routing::Allow,
            hold: true,
        };
        (1..=hosts).for_each(|host| machine.drain_daemon(host));
        machine
    }

    /// A task on a host that begins now.
    pub fn start(&mut self, host: u32) -> Process {
        self.start_as(host, 0, "")
    }

    fn start_as(&mut self, host: u32, cookie: i32, file: &str) -> Process {
        let pid = 1000 + self.processes.len() as i32;
        let (routing, hold) = (self.routing, self.hold);
        let task = Task::new(task::Config { routing, pid, cookie, hold, ..task::Config::default() });
        let program = if file == SERVER { Program::Server(Server::new(task)) } else { Program::Task(task) };
        self.processes.push(Running { program, host, alive: true, attached: false });
        let process = self.processes.len() - 1;
        self.with_task(process, |task, now| task.enrol(now));
        process
    }

    /// Starts a task and runs until it is part of the machine.
    pub fn enrolled(&mut self, host: u32) -> (Process, Tid) {
        let process = self.start(host);
        self.run_until(|machine| machine.tid(process).is_some());
        (process, self.tid(process).expect("enrolled"))
    }

    pub fn tid(&self, process: Process) -> Option<Tid> {
        self.task(process).tid()
    }

    pub fn task(&self, process: Process) -> &Task<Octets> {
        match &self.processes[process].program {
            Program::Task(task) => task,
            Program::Server(server) => &server.task,
        }
    }

    pub fn daemon(&self, host: u32) -> &Daemon<Octets> {
        &self.daemons[&host]
    }

    /// The process of a number, if it is enrolled.
    pub fn process(&self, tid: Tid) -> Option<Process> {
        (0..self.processes.len()).find(|&one| self.tid(one) == Some(tid))
    }

    /// Calls the library of a process.
    pub fn with_task<T>(
        &mut self,
        process: Process,
        call: impl FnOnce(&mut Task<Octets>, SimTime) -> T,
    ) -> T {
        let now = self.now;
        let task = match &mut self.processes[process].program {
            Program::Task(task) => task,
            Program::Server(server) => &mut server.task,
        };
        let result = call(task, now);
        self.drain_process(process);
        result
    }

    /// Makes a call and runs until it has ended.
    pub fn call(
        &mut self,
        process: Process,
        call: impl FnOnce(&mut Task<Octets>, SimTime) -> Result<CallId, PvmError>,
    ) -> Result<Value<Octets>, PvmError> {
        let id = self.with_task(process, call)?;
        self.run_until(|machine| machine.answers.contains_key(&(process, id)));
        self.answers.remove(&(process, id)).expect("it has ended")
    }

    /// The same for a call that gives a number, with errors as PVM's numbers.
    pub fn number(
        &mut self,
        process: Process,
        call: impl FnOnce(&mut Task<Octets>, SimTime) -> Result<CallId, PvmError>,
    ) -> i32 {
        match self.call(process, call) {
            Ok(Value::Number(value)) => value,
            Ok(_) => 0,
            Err(error) => error.code(),
        }
    }

    /// What a call that has ended came to.
    pub fn answer(&mut self, process: Process, call: CallId) -> Option<Result<Value<Octets>, PvmError>> {
        self.answers.remove(&(process, call))
    }

    pub fn send(&mut self, process: Process, to: Tid, tag: u32, text: &[u8]) -> CallId {
        let packed = packed(text);
        self.with_task(process, |task, now| task.send(now, to, tag, packed)).expect("a task and a tag")
    }

    /// Takes a message, and waits for it.
    pub fn recv(&mut self, process: Process, from: Option<Tid>, tag: Option<u32>) -> Message<Octets> {
        self.run_until(|machine| machine.task(process).probe(from, tag).is_some());
        self.with_task(process, |task, _| task.take(from, tag)).expect("it has come")
    }

    /// Kills a process: its connections close, and nobody says why.
    pub fn kill(&mut self, process: Process) {
        self.processes[process].alive = false;
        self.push(LOCAL, Coming::ProcessClosed(process));
        let mine = self.tid(process);
        for other in 0..self.processes.len() {
            if let Some(tid) = mine
                && other != process
                && self.task(other).has_route(tid)
            {
                self.push(REMOTE, Coming::RouteClosed(other, tid));
            }
        }
    }

    /// Kills a process that has written so many more fragments: what it has handed over beyond them was never
    /// written.
    pub fn kill_in_mid_message(&mut self, process: Process, fragments: usize) {
        let mine = self.tid(process);
        let mut written = 0;
        self.coming.retain(|_, coming| {
            let its = match coming {
                Coming::ToDaemon(writer, _) => *writer == process,
                Coming::Route { from, .. } => Some(*from) == mine,
                _ => false,
            };
            written += usize::from(its);
            !its || written <= fragments
        });
        assert!(written > fragments, "it had more to write than {fragments}");
        self.kill(process);
    }

    /// Runs until this holds.
    ///
    /// # Panics
    /// If nothing is left to happen before it does, or a day is over.
    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            assert!(self.step(), "nothing is left to happen");
            assert!(self.now < SimTime::ZERO + Span::from_s(86_400), "a day is over");
        }
    }

    /// Runs until nothing is left.
    pub fn finish(&mut self) {
        while self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some(((time, _), coming)) = self.coming.pop_first() else { return false };
        self.now = time;
        self.happen(coming);
        true
    }

    fn push(&mut self, after: Span, coming: Coming) {
        self.serial += 1;
        self.coming.insert((self.now + after, self.serial), coming);
    }

    fn happen(&mut self, coming: Coming) {
        let now = self.now;
        match coming {
            Coming::Datagram { from, to, packet } => {
                self.daemon_mut(to).handle_datagram(now, from, packet);
                self.drain_daemon(to);
            }
            Coming::DaemonOpen(process) => {
                let host = self.processes[process].host;
                if self.halted.contains(&host) || self.dark.contains(&host) {
                    return self.with_task(process, |task, now| task.handle_daemon_closed(now));
                }
                self.processes[process].attached = true;
                self.daemon_mut(host).handle_connected(now, StreamId(process as u32));
                self.with_task(process, |task, now| task.handle_daemon_open(now));
            }
            Coming::ToDaemon(process, fragment) => {
                let host = self.processes[process].host;
                if self.processes[process].attached && !self.halted.contains(&host) {
                    self.daemon_mut(host).handle_fragment(now, StreamId(process as u32), fragment);
                    self.drain_daemon(host);
                }
            }
            Coming::FromDaemon(process, fragment) => {
                if self.processes[process].alive {
                    self.with_task(process, |task, now| task.handle_daemon_fragment(now, fragment));
                }
            }
            Coming::DaemonClosed(process) => {
                self.processes[process].attached = false;
                if self.processes[process].alive {
                    self.with_task(process, |task, now| task.handle_daemon_closed(now));
                }
            }
            Coming::ProcessClosed(process) => {
                let host = self.processes[process].host;
                if std::mem::take(&mut self.processes[process].attached) && !self.halted.contains(&host) {
                    self.daemon_mut(host).handle_closed(now, StreamId(process as u32));
                    self.drain_daemon(host);
                }
            }
            Coming::Bound(process, peer) => {
                let address = format!("0a1400{:02x}:{:04x}", self.processes[process].host, process);
                self.with_task(process, |task, now| task.handle_bound(now, peer, &address));
            }
            Coming::RouteOpen(process, peer) => {
                self.with_task(process, |task, now| task.handle_route_open(now, peer));
            }
            Coming::Route { to, from, fragment } => {
                if self.processes[to].alive {
                    self.with_task(to, |task, now| task.handle_fragment(now, from, fragment));
                }
            }
            Coming::RouteClosed(process, peer) => {
                if self.processes[process].alive {
                    self.with_task(process, |task, now| task.handle_route_closed(now, peer));
                }
            }
            Coming::Started { host, id, process } => {
                let result = process.map(|process| 1000 + process as i32).ok_or(PvmError::NoFile);
                self.daemon_mut(host).handle_spawned(now, id, result);
                self.drain_daemon(host);
            }
            Coming::Timer(host) => {
                if self.timers.get(&host) == Some(&now) && !self.halted.contains(&host) {
                    self.timers.remove(&host);
                    self.daemon_mut(host).handle_timeout(now);
                    self.drain_daemon(host);
                }
            }
        }
    }

    fn daemon_mut(&mut self, host: u32) -> &mut Daemon<Octets> {
        self.daemons.get_mut(&host).expect("a host")
    }

    fn drain_daemon(&mut self, host: u32) {
        loop {
            match self.daemon_mut(host).poll_output() {
                Output::Transmit(daemon::Transmit::Datagram { host: to, packet }) => {
                    self.wire.push(Sent::Packet { from: host, packet: packet.clone() });
                    self.sent += 1;
                    let dark =
                        self.dark.contains(&host) || self.dark.contains(&to) || self.halted.contains(&to);
                    if !self.lost.contains(&(self.sent - 1)) && !dark {
                        self.push(REMOTE, Coming::Datagram { from: host, to, packet });
                    }
                }
                Output::Transmit(daemon::Transmit::Write(stream, fragment)) => {
                    self.push(LOCAL, Coming::FromDaemon(stream.0 as usize, fragment));
                }
                Output::Transmit(daemon::Transmit::Prove(_)) | Output::Work(_) => {}
                Output::Transmit(daemon::Transmit::Close(stream)) => {
                    self.push(LOCAL, Coming::DaemonClosed(stream.0 as usize));
                }
                Output::Deliver(Demand::Spawn { id, file, .. }) => {
                    let process = self.files.contains(&file).then(|| {
                        let cookie = 1000 + self.processes.len() as i32;
                        self.start_as(host, cookie, &file)
                    });
                    self.push(LOCAL / 2, Coming::Started { host, id, process });
                }
                Output::Deliver(Demand::Signal { tid, signal }) => {
                    self.signals.push((tid, signal));
                    if signal == 15
                        && let Some(process) = self.process(tid)
                    {
                        self.kill(process);
                    }
                }
                Output::Deliver(Demand::Halt) => drop(self.halted.insert(host)),
                Output::Event(event) => self.daemon_events.push((host, event)),
                Output::Timeout(next) => {
                    if let Some(next) = next
                        && self.timers.get(&host) != Some(&next)
                    {
                        let next = next.max(self.now);
                        self.timers.insert(host, next);
                        self.serial += 1;
                        self.coming.insert((next, self.serial), Coming::Timer(host));
                    }
                    return;
                }
            }
        }
    }

    fn drain_process(&mut self, process: Process) {
        let now = self.now;
        loop {
            let output = match &mut self.processes[process].program {
                Program::Task(task) => task.poll_output(),
                Program::Server(server) => server.poll_output(now),
            };
            let host = self.processes[process].host;
            match output {
                Output::Transmit(task::Transmit::ConnectDaemon) => {
                    self.push(LOCAL, Coming::DaemonOpen(process))
                }
                Output::Transmit(task::Transmit::WriteDaemon(fragment)) => {
                    self.push(LOCAL, Coming::ToDaemon(process, fragment));
                }
                Output::Transmit(task::Transmit::Listen(peer)) => {
                    self.push(Span::from_us(1), Coming::Bound(process, peer));
                }
                Output::Transmit(task::Transmit::Connect { peer, address }) => {
                    let there = usize::from_str_radix(&address[9..], 16).expect("a port");
                    let mine = self.tid(process).expect("enrolled");
                    if self.processes[there].alive && self.tid(there) == Some(peer) {
                        self.push(REMOTE, Coming::RouteOpen(process, peer));
                        self.push(REMOTE, Coming::RouteOpen(there, mine));
                    } else {
                        self.push(REMOTE, Coming::RouteClosed(process, peer));
                    }
                }
                Output::Transmit(task::Transmit::Write { peer, fragment }) => {
                    self.wire.push(Sent::Fragment { from: host, fragment: fragment.clone() });
                    let from = self.tid(process).expect("enrolled");
                    if let Some(to) = self.process(peer) {
                        self.push(REMOTE, Coming::Route { to, from, fragment });
                    }
                }
                Output::Transmit(task::Transmit::Close) => self.push(LOCAL, Coming::ProcessClosed(process)),
                Output::Transmit(task::Transmit::Prove(_)) | Output::Work(_) => {}
                Output::Deliver(answer) => drop(self.answers.insert((process, answer.call), answer.result)),
                Output::Event(event) => self.task_events.push((process, event)),
                Output::Timeout(_) => return,
            }
        }
    }
}

/// A message of these octets, as one piece of up to 4032 after the other.
pub fn packed(text: &[u8]) -> Packed<Octets> {
    let mut buffer = wiretwin_msg::pvm::SendBuffer::new(wiretwin_msg::pvm::Encoding::Default);
    buffer.pack(text, text.len(), 1).expect("all of them");
    buffer.packed()
}

/// The octets of a message.
pub fn octets(message: &Message<Octets>) -> Vec<u8> {
    message.parts.iter().flat_map(|part| part.as_slice().to_vec()).collect()
}
