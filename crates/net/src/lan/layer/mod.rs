//! Message layers: the libraries of processes, by [`Library`].
//!
//! Every rank of a stack with a message layer, and every daemon that the layer has, is a process with a
//! *runtime*, which is its library with all that is open there. What the library asks for becomes steps of
//! the process's thread, in order: work is charged as the host's profile prices it, a system call is entered
//! and done (`calls`), and what it came to goes back to the library. A call that waits puts the process to
//! sleep where it is; whatever could end the wait looks whether it does.
//!
//! To add a message layer: write its machine in `msg`, give it a variant of [`Machine`], a name in `stack`,
//! and say in [`runtimes_of`] on which host each process runs. Nothing else here knows which layer it serves.

mod calls;
mod mapped;

use std::collections::{BTreeSet, VecDeque};

use wiretwin_msg::fore::{Descriptor, Qos};
use wiretwin_msg::framed::Framed;
use wiretwin_msg::library::{
    Address, Call, CircuitId, ConnectionId, Done, Library, LibraryOutput, Outcome, Ready, Refusal, Request,
};
use wiretwin_msg::matching::{Envelope, Pattern};
use wiretwin_msg::mpi::stream::{Heads, StreamMpi};
use wiretwin_msg::mpi::vias::ViaMpi;
use wiretwin_msg::mpi::{Outgoing, Policy};
use wiretwin_msg::pvm::{Encoding, library as pvm};
use wiretwin_msg::reliable::{self, Reliable, channel};
use wiretwin_msg::rpc::library::{CALLER_PORT, MAPPER_PORT, PortMapper, RpcRank, SERVER_PORT};
use wiretwin_msg::via::messages::Messages;
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::rpc::portmap::Transport as Over;

use super::config::{Beside, Config, SocketConfig};
use super::core::LanEvent;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::signalling::SwitchedConfig;
use super::socket::charge;
use super::stack::{Message as MessageLayer, Stack, Transport};
use super::{Kind, Lan, Look, Message, RequestId, State};

pub(super) use control::Controls;
pub(super) use mapped::{MappedEnd, is_mapped};

/// The library of a process.
pub(super) enum Machine {
    Framed(Box<Framed>),
    Mpi(Box<StreamMpi>),
    Pvm(Box<pvm::Rank>),
    PvmDaemon(Box<pvm::daemon::Daemon>),
    PvmGroups(Box<pvm::server::GroupServer>),
    Rpc(Box<RpcRank>),
    ForeReliable(Box<Reliable<Framed>>),
    PvmFore(Box<Reliable<pvm::Rank>>),
    PortMapper(Box<PortMapper>),
    Via(Box<Messages>),
    Mvich(Box<ViaMpi>),
    #[cfg(test)]
    Script(tests::Script),
}

/// Calls a method of whatever library it is.
macro_rules! of_library {
    ($machine:expr, $library:ident => $call:expr) => {
        match $machine {
            Machine::Framed($library) => $call,
            Machine::Mpi($library) => $call,
            Machine::Pvm($library) => $call,
            Machine::PvmDaemon($library) => $call,
            Machine::PvmGroups($library) => $call,
            Machine::Rpc($library) => $call,
            Machine::ForeReliable($library) => $call,
            Machine::PvmFore($library) => $call,
            Machine::PortMapper($library) => $call,
            Machine::Via($library) => $call,
            Machine::Mvich($library) => $call,
            #[cfg(test)]
            Machine::Script($library) => $call,
        }
    };
}

mod control;

/// Who lives where.
pub(super) struct StartUp {
    /// The ranks, one a host, then daemons: with their host.
    processes: Vec<(u32, Machine)>,
    /// Processes that have a connection from the start.
    open: Vec<(u32, u32)>,
    /// Ranks that have circuits to each other from the start.
    circuits: Vec<(u32, u32)>,
    /// Processes that listen at a port from the start.
    listening: Vec<(u32, u16)>,
    /// Processes that have a socket for datagrams at a port from the start.
    bound: Vec<(u32, u16)>,
}

/// Those of one stack, their processes counted from 0.
fn runtimes_of(stack: Stack, config: &Config) -> StartUp {
    let message = stack.message;
    let size = config.hosts.len() as u32;
    let mesh = || (0..size).flat_map(|one| (one + 1..size).map(move |other| (one, other))).collect();
    let (mut processes, mut open, mut listening) = (Vec::new(), Vec::new(), Vec::new());
    let (mut circuits, mut bound) = (Vec::new(), Vec::new());
    let given = || if config.circuits.is_some() { Vec::new() } else { mesh() };
    match message {
        MessageLayer::Fore | MessageLayer::Socket => {}
        MessageLayer::Framed => {
            processes
                .extend((0..size).map(|rank| (rank, Machine::Framed(Box::new(Framed::new(rank, size))))));
            open = mesh();
        }
        MessageLayer::MpiLam | MessageLayer::MpiMpich | MessageLayer::Mpi => {
            processes.extend((0..size).map(|rank| {
                let (policy, heads) = over_streams(message, config, rank);
                let library = StreamMpi::new(rank, size, policy, heads).expect("policies for streams");
                (rank, Machine::Mpi(Box::new(library)))
            }));
            open = mesh();
        }
        MessageLayer::Via | MessageLayer::MpiMvich => {
            let transfer = config.vi.as_ref().map_or(Bytes::new(0), |vi| vi.max_transfer);
            let rank = |rank| {
                let machine = if message == MessageLayer::Via {
                    Machine::Via(Box::new(Messages::new(rank, size, transfer)))
                } else {
                    let library = ViaMpi::new(rank, size, mvich(config, rank), transfer);
                    Machine::Mvich(Box::new(library.expect("a policy for VIs")))
                };
                (rank, machine)
            };
            processes.extend((0..size).map(rank));
        }
        MessageLayer::PvmAdvise | MessageLayer::PvmMapped => {
            // Daemons sleep while tasks speak to each other: they are left out.
            let usage = pvm::Usage { direct: true, encoding: Encoding::Default };
            let rank = |rank| (rank, Machine::Pvm(Box::new(pvm::Rank::new(rank, size, usage))));
            processes.extend((0..size).map(rank));
            open = mesh();
        }
        MessageLayer::ForeReliable => {
            processes.extend((0..size).map(|rank| {
                (rank, Machine::ForeReliable(Box::new(over_circuits(Framed::new(rank, size), rank, config))))
            }));
            circuits = given();
        }
        MessageLayer::PvmFore => {
            let usage = pvm::Usage { direct: true, encoding: Encoding::Default };
            processes.extend((0..size).map(|rank| {
                let library = over_circuits(pvm::Rank::new(rank, size, usage), rank, config);
                (rank, Machine::PvmFore(Box::new(library)))
            }));
            circuits = given();
        }
        MessageLayer::PvmNormal => {
            let usage = pvm::Usage { direct: false, encoding: Encoding::Default };
            let rank = |rank| (rank, Machine::Pvm(Box::new(pvm::Rank::new(rank, size, usage))));
            let daemon = |host| (host, Machine::PvmDaemon(Box::new(pvm::daemon::Daemon::new(host, size))));
            processes.extend((0..size).map(rank).chain((0..size).map(daemon)));
            open = (0..size).map(|rank| (rank, size + rank)).collect();
        }
        MessageLayer::Rpc => {
            let over = if stack.transport == Transport::Udp { Over::UDP } else { Over::TCP };
            let rank = |rank| (rank, Machine::Rpc(Box::new(RpcRank::new(rank, size, over))));
            processes.extend((0..size).map(rank));
            processes.extend((0..size).map(|host| (host, Machine::PortMapper(Box::new(PortMapper::new())))));
            let served = if over == Over::UDP {
                bound.extend((0..size).map(|rank| (rank, CALLER_PORT)));
                &mut bound
            } else {
                &mut listening
            };
            served.extend((0..size).map(|rank| (rank, SERVER_PORT)));
            served.extend((0..size).map(|host| (size + host, MAPPER_PORT)));
        }
    }
    StartUp { processes, open, circuits, listening, bound }
}

/// A library over circuits that are given, or that it sets up itself.
fn over_circuits<L: Library>(library: L, rank: u32, config: &Config) -> Reliable<L> {
    let rules = channel::Config { pdu: config.pdu_bytes, ..channel::Config::default() };
    match config.circuits {
        None => Reliable::new(library, rules),
        Some(SwitchedConfig { topology, peak, .. }) => {
            let (size, qos) = (config.hosts.len() as u32, Qos { peak, ..Qos::default() });
            Reliable::switched(library, rules, reliable::Circuits { rank, size, topology, qos })
        }
    }
}

/// A layer of MPI over streams, with the thresholds of a network, and whose heads it has.
fn over_streams(message: MessageLayer, config: &Config, rank: u32) -> (Policy, Heads) {
    let (policy, heads) = match message {
        MessageLayer::MpiLam => (Policy::lam(LAM_THRESHOLD), Heads::Lam),
        MessageLayer::MpiMpich => (Policy::mpich(), Heads::P4),
        // Heads of its own would be one more format: it has the shorter ones.
        _ => (Policy::over_streams(), Heads::Lam),
    };
    let policy = match &config.mpi {
        None => policy,
        Some(set) => Policy {
            always_buffered: set.always_buffered,
            synchronous: set.synchronous,
            apart_from: set.apart_from,
            ..policy
        },
    };
    let heads = if policy.apart_from.is_some() { Heads::P4 } else { heads };
    let rendezvous_from = config.rendezvous_of(rank).or(policy.rendezvous_from);
    (Policy { rendezvous_from, ..policy }, heads)
}

/// MVICH, with the thresholds and buffers of a network.
pub(super) fn mvich(config: &Config, rank: u32) -> Policy {
    let policy = Policy::mvich();
    let flow = policy.flow.zip(config.vi.as_ref()).map(|(flow, vi)| vi.flow(flow));
    let rendezvous_from = config.rendezvous_of(rank).or(policy.rendezvous_from);
    Policy { flow, rendezvous_from, ..policy }
}

/// From here LAM sends by rendezvous, as shipped.
const LAM_THRESHOLD: Bytes = Bytes::kib(64);

/// What a descriptor of a process has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Circuits {
    /// A permanent circuit to another process, and one back.
    Pair { out: u32, into: u32 },
    /// What the driver knows.
    Descriptor(Descriptor),
}

/// A process with a library.
pub(super) struct Runtime {
    machine: Machine,
    /// Calls that the library has asked for and that are not begun.
    pub(super) calls: VecDeque<Call>,
    /// The one that it is in.
    pub(super) current: Option<Call>,
    /// The end that it is connecting.
    connecting: Option<u32>,
    /// It sleeps there.
    asleep: bool,
    /// By name: its ends.
    connections: Vec<Option<u32>>,
    /// Those of them that something may have come to since they were found empty.
    stirred: BTreeSet<u32>,
    /// By name: their ports, and ends that wait to be accepted.
    listeners: Vec<(u16, VecDeque<u32>)>,
    /// By name.
    circuits: Vec<Circuits>,
    /// Kept for its allocation.
    ready: Vec<Ready>,
    /// When it is to go on at the latest; and whether a run is to last until then.
    deadline: SimTime,
    idle: bool,
    /// The alarm that is set, and whether it counts as one that nothing hangs on.
    alarm: SimTime,
    alarm_is_idle: bool,
}

impl Runtime {
    const fn new(machine: Machine) -> Self {
        Self {
            machine,
            calls: VecDeque::new(),
            current: None,
            connecting: None,
            asleep: false,
            connections: Vec::new(),
            stirred: BTreeSet::new(),
            listeners: Vec::new(),
            circuits: Vec::new(),
            ready: Vec::new(),
            deadline: SimTime::MAX,
            idle: true,
            alarm: SimTime::MAX,
            alarm_is_idle: false,
        }
    }

    fn end(&self, connection: ConnectionId) -> Option<u32> {
        self.connections.get(connection.0 as usize).copied().flatten()
    }

    /// The end of a connection that is one of TCP.
    fn socket(&self, connection: ConnectionId) -> Option<u32> {
        self.end(connection).filter(|&end| !is_mapped(end))
    }

    pub(super) fn circuits(&self, circuit: CircuitId) -> Option<Circuits> {
        self.circuits.get(circuit.0 as usize).copied()
    }

    pub(super) fn add_descriptor(&mut self, descriptor: Descriptor) -> CircuitId {
        self.circuits.push(Circuits::Descriptor(descriptor));
        CircuitId(self.circuits.len() as u32 - 1)
    }

    fn name(&mut self, end: u32) -> ConnectionId {
        self.connections.push(Some(end));
        let name = self.connections.len() as u32 - 1;
        self.stirred.insert(name);
        ConnectionId(name)
    }
}

impl Lan {
    /// Gives every process of the message layer its library, and opens what is open from the start.
    pub(super) fn move_in(&mut self, config: &SocketConfig) {
        let beside = self.config.beside.iter().map(|one| one.stack);
        let stacks = core::iter::once(self.config.stack).chain(beside);
        for stack in stacks.collect::<Vec<_>>() {
            self.start_process_set(stack, config);
        }
        for process in 0..self.runtimes.len() as u32 {
            if self.process_set_of(process).is_none() {
                self.give(process, Action::Progress { rank: process });
            }
        }
    }

    /// Gives every rank its library, and its circuits.
    pub(super) fn move_onto_circuits(&mut self) {
        for (one, other) in self.start_runtimes().circuits {
            for (rank, peer) in [(one, other), (other, one)] {
                let pair = Circuits::Pair {
                    out: self.circuit_between(rank, peer),
                    into: self.circuit_between(peer, rank),
                };
                let runtime = &mut self.runtimes[rank as usize];
                runtime.circuits.push(pair);
                let circuit = CircuitId(runtime.circuits.len() as u32 - 1);
                let (now, given) = (self.core.now(), Outcome::GivenCircuit { circuit, rank: peer });
                of_library!(&mut runtime.machine, library => library.handle(now, given));
            }
        }
    }

    /// Gives the ranks of one stack and its daemons their libraries.
    fn start_process_set(&mut self, stack: Stack, config: &SocketConfig) {
        let StartUp { processes, open, listening, bound, .. } = runtimes_of(stack, &self.config);
        let first = self.runtimes.len() as u32;
        self.process_sets.push(first);
        for (number, (host, machine)) in (first as usize..).zip(processes) {
            if number >= self.processes.len() {
                self.add_process(host);
            }
            self.runtimes.push(Runtime::new(machine));
        }
        for (one, other) in open {
            let both = [first + one, first + other];
            if stack.message == MessageLayer::PvmMapped {
                self.map_memory(both);
                continue;
            }
            let hosts = both.map(|process| self.processes[process as usize].here.host);
            let number = self.ends.len() as u32;
            let ends = [
                self.add_end(both[0], hosts[0], number + 1, config.mtu),
                self.add_end(both[1], hosts[1], number, config.mtu),
            ];
            self.open_connection(ends, self.sets_nodelay(both[0], config));
            for (process, end, rank) in [(both[0], ends[0], other), (both[1], ends[1], one)] {
                let connection = self.name_connection(process, end, rank);
                self.ends[end as usize].name = connection;
            }
        }
        self.tell_terms(first);
        for (process, port) in listening.into_iter().map(|(process, port)| (first + process, port)) {
            let at = address(self.processes[process as usize].here.host, port);
            let listener = self.add_listener(process, at);
            let now = self.core.now();
            let machine = &mut self.runtimes[process as usize].machine;
            of_library!(machine, library => library.handle(now, Outcome::Listening { listener, at }));
        }
        for (process, port) in bound.into_iter().map(|(process, port)| (first + process, port)) {
            let at = address(self.processes[process as usize].here.host, port);
            let socket = self.add_socket(process, at);
            let now = self.core.now();
            let machine = &mut self.runtimes[process as usize].machine;
            of_library!(machine, library => library.handle(now, Outcome::Bound { socket, at }));
        }
    }

    /// Whether a process sets `TCP_NODELAY` of its sockets: ranks of the main stack where the network says so,
    /// those beside as is usual on their stack.
    fn sets_nodelay(&self, process: u32, config: &SocketConfig) -> bool {
        self.beside_of(process).map_or(config.nodelay, |one| one.stack.message.sets_nodelay())
    }

    /// The message layer beside the main one whose process this is, if it is not one of the main stack.
    fn beside_of(&self, process: u32) -> Option<&Beside> {
        let process_set = self.process_sets.iter().rposition(|&first| first <= process).unwrap_or(0);
        process_set.checked_sub(1).and_then(|at| self.config.beside.get(at))
    }

    /// Where ranks of a layer of MPI are not all set the same, they tell each other when they begin.
    fn tell_terms(&mut self, first: u32) {
        if self.config.rendezvous.windows(2).all(|two| two[0] == two[1]) {
            return;
        }
        let (now, size) = (self.core.now(), self.size());
        let terms = |lan: &Self, rank: u32| match &lan.runtimes[(first + rank) as usize].machine {
            Machine::Mpi(library) => Some(library.machine().policy().terms()),
            _ => None,
        };
        for rank in 0..size {
            for peer in (0..size).filter(|peer| *peer != rank) {
                let theirs = terms(self, peer);
                if let (Machine::Mpi(library), Some(theirs)) =
                    (&mut self.runtimes[(first + rank) as usize].machine, theirs)
                {
                    library.handle_terms(now, peer, &theirs);
                }
            }
        }
    }

    /// A process has a connection from the start.
    fn name_connection(&mut self, process: u32, end: u32, rank: u32) -> ConnectionId {
        let connection = self.runtimes[process as usize].name(end);
        self.give_connection(process, connection, rank);
        connection
    }

    /// Gives every process of the message layer its library; the processes of what it returns are gone.
    pub(super) fn start_runtimes(&mut self) -> StartUp {
        let mut started = runtimes_of(self.config.stack, &self.config);
        for (number, (host, machine)) in started.processes.drain(..).enumerate() {
            if number >= self.processes.len() {
                self.add_process(host);
            }
            self.runtimes.push(Runtime::new(machine));
        }
        started
    }

    /// Tells a library of a connection that is open from the start.
    pub(super) fn give_connection(&mut self, process: u32, connection: ConnectionId, rank: u32) {
        let now = self.core.now();
        let machine = &mut self.runtimes[process as usize].machine;
        of_library!(machine, library => library.handle(now, Outcome::Given { connection, rank }));
    }

    pub(super) fn library_admits(&self, rank: u32, to: u32, tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        of_library!(&self.runtimes[rank as usize].machine, library => library.admit(to, tag, bytes))
    }

    pub(super) fn library_admits_many(
        &self,
        rank: u32,
        to: &[u32],
        tag: u32,
        bytes: Bytes,
    ) -> Result<(), Refusal> {
        let machine = &self.runtimes[rank as usize].machine;
        of_library!(machine, library => library.admit_multicast(to, tag, bytes))
    }

    /// A process does what its library asks for before anything is posted.
    pub(super) fn enroll(&mut self, here: ThreadAt, process: u32) {
        self.settle(here, process, false);
    }

    /// A send or a receive is posted: the process turns to it when it has done what came before.
    pub(super) fn post_to_library(&mut self, rank: u32, request: RequestId, send: bool) {
        if send {
            self.give(rank, Action::Begin { message: request });
        }
        self.give(rank, Action::Ask { process: rank, request });
    }

    /// A process asks its library for what was posted.
    pub(super) fn ask(&mut self, here: ThreadAt, process: u32, id: RequestId) {
        let now = self.core.now();
        let Some(slot) = self.find(id) else { return };
        let (request, kind) = (Request(id.0), self.requests[slot].kind);
        let machine = &mut self.runtimes[process as usize].machine;
        let (several, control) = (self.several.remove(&id), self.controls.take(id));
        of_library!(machine, library => match kind {
            _ if control.is_some() => {
                if let Some(control) = control {
                    library.control(now, request, control);
                }
            }
            Kind::Send(message) if several.is_some() => {
                let to = several.unwrap_or_default();
                library.multicast(now, request, &to, message.tag, message.bytes);
            }
            Kind::Send(message) => match library.mpi() {
                Some(mpi) => {
                    let Message { to, context, tag, bytes, mode, .. } = message;
                    let outgoing = Outgoing { to, context, tag, bytes, mode, buffer: 0 };
                    let begun = mpi.send_in_mode(now, request, outgoing);
                    debug_assert!(begun.is_ok(), "it was admitted");
                }
                None => library.send(now, request, message.to, message.tag, message.bytes),
            },
            Kind::Recv { pattern, capacity, .. } => match library.mpi() {
                Some(mpi) => mpi.receive_in_context(now, request, pattern, capacity),
                None => library.receive(now, request, pattern.source, pattern.tag, capacity),
            },
            Kind::Free => {}
        });
        // What else was posted comes before any waiting.
        self.settle(here, process, false);
    }

    /// A process takes a receive back.
    pub(super) fn take_back(&mut self, here: ThreadAt, process: u32, request: RequestId) {
        let now = self.core.now();
        let machine = &mut self.runtimes[process as usize].machine;
        of_library!(machine, library => if let Some(mpi) = library.mpi() {
            mpi.cancel(now, Request(request.0));
        });
        self.settle(here, process, false);
    }

    /// The envelope and the length of the message that a receive of a rank would take.
    pub(super) fn library_probes(&mut self, rank: u32, pattern: &Pattern) -> Option<(Envelope, Bytes)> {
        let machine = &mut self.runtimes[rank as usize].machine;
        let found = of_library!(machine, library => library.mpi().and_then(|mpi| mpi.probe(pattern)));
        found.map(|found| (found.envelope, found.bytes))
    }

    /// A process has said that it ends.
    pub(super) fn leave(&mut self, here: ThreadAt, process: u32) {
        let now = self.core.now();
        of_library!(&mut self.runtimes[process as usize].machine, library => library.leave(now));
        self.settle(here, process, false);
    }

    /// A process has nothing else to do: where it waits, its library goes on.
    pub(super) fn turn(&mut self, here: ThreadAt, process: u32) {
        let is_rank = self.process_set_of(process).is_some();
        let goes_on = match self.processes[process as usize].state {
            _ if !is_rank => true,
            State::Waiting if self.processes[process as usize].paused => false,
            State::Waiting => !self.resume_if_done(process),
            State::Finished => {
                of_library!(&self.runtimes[process as usize].machine, library => library.is_busy())
            }
            State::Running => false,
        };
        if !goes_on {
            return;
        }
        let look = &mut self.processes[process as usize].look;
        if *look == Look::Due {
            *look = Look::Taken;
        }
        let now = self.core.now();
        of_library!(&mut self.runtimes[process as usize].machine, library => library.progress(now));
        self.settle(here, process, true);
    }

    /// What a call came to goes to the library.
    pub(super) fn outcome(&mut self, here: ThreadAt, process: u32, outcome: Outcome<'_>) {
        let now = self.core.now();
        of_library!(&mut self.runtimes[process as usize].machine, library => library.handle(now, outcome));
        self.settle(here, process, false);
    }

    /// Does what a library has asked for since it was called, before anything else of its process; then,
    /// with `turn`, sees whether there is more.
    fn settle(&mut self, here: ThreadAt, process: u32, turn: bool) {
        let mut steps = core::mem::take(&mut self.asked);
        steps.clear();
        loop {
            let machine = &mut self.runtimes[process as usize].machine;
            let output: LibraryOutput = of_library!(machine, library => library.poll_output());
            match output {
                Output::Work(work) => {
                    self.controls.note(&work);
                    let prices = self.beside_of(process).and_then(|one| one.prices.get(here.host as usize));
                    let prices = prices.unwrap_or(&self.hosts[here.host as usize].config.prices);
                    charge(prices, &work, &mut steps);
                }
                Output::Transmit(call) => {
                    self.runtimes[process as usize].calls.push_back(call);
                    steps.push(Step::Do(Action::Call { process }));
                }
                Output::Deliver(done) => steps.push(Step::Do(Action::Done { process, done })),
                Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        // A look is over even where the library has nothing to look at.
        if turn && (!steps.is_empty() || self.looks(process)) {
            steps.push(Step::Do(Action::Progress { rank: process }));
        }
        self.insert(here, &steps);
        self.asked = steps;
    }

    /// The library has done something that was asked of it.
    pub(super) fn library_done(&mut self, here: ThreadAt, process: u32, done: Done) {
        let request = match done {
            Done::Sent(request) => request,
            Done::Received { request, message } => {
                let (receive, message) = (RequestId(request.0), RequestId(message.0));
                self.note_message(here, process, message);
                return self.complete(receive, message);
            }
            Done::Answered { request, number } => {
                self.answered(RequestId(request.0), number);
                request
            }
            Done::Cancelled(request) => {
                if let Some(slot) = self.find(RequestId(request.0)) {
                    self.requests[slot].cancelled = true;
                }
                request
            }
            Done::Failed { request, failure } => {
                if let Some(slot) = self.find(RequestId(request.0)) {
                    self.requests[slot].failure = Some(Box::new(failure));
                }
                request
            }
        };
        if let Some(slot) = self.find(RequestId(request.0)) {
            self.requests[slot].complete = true;
        }
    }

    /// Whether a process does not wait for what its library looks for.
    pub(super) fn looks(&self, process: u32) -> bool {
        self.processes[process as usize].look == Look::Taken
    }

    // Sleep

    /// The process sleeps in its call.
    pub(super) fn sleep(&mut self, here: ThreadAt, process: u32, call: Call) {
        let runtime = &mut self.runtimes[process as usize];
        runtime.asleep = true;
        (runtime.deadline, runtime.idle) = match call {
            Call::Select { until, idle, .. } => (until.unwrap_or(SimTime::MAX), idle),
            _ => (SimTime::MAX, true),
        };
        runtime.current = Some(call);
        self.hosts[here.host as usize].cpu.block(here.thread);
        self.set_alarm(process);
    }

    /// Something has happened that a process may wait for.
    pub(super) fn rouse_library(&mut self, process: u32, trail: super::trail::SegmentId) {
        // The end of a connection that nobody has accepted is nobody's.
        if self.runtimes.get(process as usize).is_none_or(|one| !one.asleep) || !self.may_go_on(process) {
            return;
        }
        let runtime = &mut self.runtimes[process as usize];
        runtime.asleep = false;
        runtime.deadline = SimTime::MAX;
        self.set_alarm(process);
        let here = self.processes[process as usize].here;
        let woken = if self.config.stack.message.is_over_vis() {
            super::activity::Activity::ViaPoll
        } else {
            super::activity::Activity::ContextSwitch
        };
        let switch = self.fee(here.host, woken);
        self.insert(here, &[Step::After(trail), switch, Step::Do(Action::Attempt { process })]);
        let now = self.core.now();
        self.hosts[here.host as usize].cpu.unblock(here.thread, now, &mut self.core.trail);
        self.stirred.push(here.host);
    }

    /// Sets the alarm of a process as its deadline wants. One that is set for earlier stays, and nothing
    /// hangs on it if nothing hangs on the deadline.
    fn set_alarm(&mut self, process: u32) {
        let runtime = &mut self.runtimes[process as usize];
        let idle = runtime.idle || runtime.deadline == SimTime::MAX;
        if runtime.deadline < runtime.alarm {
            // The one that was set before fires too, and finds nothing to do: it is idle from now on.
            if runtime.alarm < SimTime::MAX && !runtime.alarm_is_idle {
                self.endless += 1;
            }
            runtime.alarm = runtime.deadline;
            runtime.alarm_is_idle = idle;
            self.endless += usize::from(idle);
            let time = runtime.alarm;
            return self.core.at(time, LanEvent::Alarm(process));
        }
        if runtime.alarm < SimTime::MAX && runtime.alarm_is_idle != idle {
            runtime.alarm_is_idle = idle;
            if idle {
                self.endless += 1;
            } else {
                self.endless -= 1;
            }
        }
    }

    /// An alarm of a process fires.
    pub(super) fn alarm_due(&mut self, process: u32) {
        let now = self.core.now();
        let runtime = &mut self.runtimes[process as usize];
        if now != runtime.alarm {
            // One that was replaced.
            self.endless -= 1;
            return;
        }
        runtime.alarm = SimTime::MAX;
        if runtime.alarm_is_idle {
            self.endless -= 1;
        }
        if runtime.deadline > now {
            return self.set_alarm(process);
        }
        self.rouse_library(process, super::trail::SegmentId::NONE);
    }
}

/// Where a socket of a host is, by its port.
const fn address(host: u32, port: u16) -> Address {
    Address { host, port }
}

#[cfg(test)]
mod tests;
