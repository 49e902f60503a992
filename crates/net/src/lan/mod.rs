//! A local network, cell by cell, with hosts that pay.
//!
//! Where [`World`](crate::World) knows a network by what a twin measured of it, a [`Lan`] is made of its
//! parts: hosts whose processor, bus and adapter are serial resources, links, switches; and the protocol
//! machines of `proto`, the same that run live, ask for the work that the hosts are charged for. It takes
//! the operations of ranks by [`Lan::post`] and says who goes on by [`Lan::step`].
//!
//! | file | idea |
//! |---|---|
//! | `config` | what a network is made of, from JSON |
//! | `stack` | which layers go on top of each other |
//! | `requests`, `waits` | requests and messages; when ranks go on |
//! | `activity`, `trail` | what takes time, and the critical path of a message |
//! | `core`, `cell` | events, links, cells |
//! | `cpu`, `host` | the processor, and what processes and interrupt handlers do on it |
//! | `socket`, `datagram`, `medium` | stream sockets over TCP; datagram sockets of libraries; cable and ring |
//! | `layer` | message layers: the libraries of processes, and their system calls |
//! | `rank_udp`, `ip` | datagrams between ranks, over UDP and IP |
//! | `vi` | the VIs of hosts: emulated by the kernel, or of adapters that have them |
//! | `switches` | any network of cell switches, under packets |
//! | `circuit` | circuits, permanent and switched |
//! | `fore` | the Fore interface of libraries: PDUs on circuits |
//! | `signalling` | how switched circuits come to be: SPANS between hosts and switch |
//! | `load` | stations that only generate |
//! | `adaptation` | AAL 5 and AAL 3/4 of a circuit |
//! | `adapter` | adapters: cell by cell through a FIFO, or with a processor of their own |
//! | `train` | cells that nobody contends with |
//! | `asx100` | a cell switch |
//! | `fault` | wrong bits on lines |
//! | `capture` | what a host sends and receives, as octets |
//! | `admission` | reserved bandwidth: who gets it |
//! | `echo`, `flood` | messages there and back, and all at one |
//! | `collective` | collective operations of MPI on it |

pub mod activity;
mod adaptation;
mod adapter;
pub mod admission;
mod asx100;
pub mod capture;
mod cell;
mod circuit;
pub mod collective;
pub mod config;
mod core;
mod cpu;
mod datagram;
pub mod echo;
pub mod fault;
pub mod flood;
mod fore;
mod host;
mod ip;
mod layer;
pub mod load;
mod medium;
mod rank_udp;
mod requests;
mod signalling;
mod socket;
pub mod stack;
mod switches;
pub mod trail;
mod train;
pub mod vi;
mod waits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wiretwin_engine::{Digest, Slab, Stream};
use wiretwin_msg::library::{Address, Content, Failure, ListenerId};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_proto::tcp::{self, Reason};
use wiretwin_units::{Bytes, SimTime, Span};

pub use self::asx100::SwitchConfig;
pub use self::config::{Beside, Config, Prices};
pub use self::core::{LinkConfig, Passed};
pub use crate::op::{Completion, Op, OpError, RequestId};
use adapter::Adapter;
use admission::Admission;
use asx100::Switch;
use capture::Capture;
use circuit::{Arrived, Circuit};
use config::NetworkConfig;
use core::{Core, LanEvent, Link, LinkId, Port};
use cpu::Step;
use datagram::{DatagramSocket, Datagrams};
use fault::{LineEnd, LineErrors};
use fore::Pdu;
use host::{Action, Host, ThreadAt};
use layer::{MappedEnd, Runtime};
use load::Load;
use medium::Medium;
use rank_udp::RankUdp;
use signalling::Signalling;
use socket::{End, Packet, Pending};
use stack::{Lower, Message as MessageLayer, Transport};
use trail::{Part, SegmentId, Trail};

use crate::fault::BitErrors;
use crate::op::{Found, WaitMode};

/// What was lost, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Cells lost on links.
    pub on_links: u64,
    /// Cells that a switch had no room or no circuit for.
    pub in_switches: u64,
    /// Cells that an adapter had no room or no circuit for.
    pub in_adapters: u64,
    /// PDUs whose check failed for want of a cell.
    pub pdus: u64,
    /// Those of them that did not come whole before their reassembly timer ran out.
    pub timed_out: u64,
    /// Datagrams that lacked a fragment for too long, and damaged ones.
    pub datagrams: u64,
    /// PDUs and datagrams that the receiving process had no room for.
    pub unread: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Running,
    Waiting,
    Finished,
}

#[derive(Default)]
struct Process {
    here: ThreadAt,
    state: State,
    waits: Vec<RequestId>,
    /// So many of them, from the first, are complete.
    waited: usize,
    mode: WaitMode,
    /// It waits for a message that this accepts, not for requests.
    probe: Option<Pattern>,
    /// That it has been resumed with what a probe has found.
    probed: bool,
    found: Option<Found>,
    /// It goes on after one look, whatever that finds.
    look: Look,
    /// Receives that no message has come for, in the order of posting.
    posted: VecDeque<RequestId>,
    /// Messages that no receive has been posted for.
    unexpected: VecDeque<RequestId>,
    /// It is inside a receiving system call.
    in_call: bool,
    /// It sleeps there.
    asleep: bool,
    /// It has gone to sleep by itself.
    paused: bool,
    /// Sends of sockets that it has not finished, and whether the first finds no room.
    sends: VecDeque<Pending>,
    write_blocked: bool,
    /// Ranks that it has sent to, where the first message to each costs something.
    reached: BTreeSet<u32>,
    completions: Vec<Completion>,
    /// Why those of them that have failed did.
    failures: Vec<(RequestId, Failure)>,
}

/// A look at what has come, by a process that does not wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Look {
    /// It waits.
    #[default]
    No,
    /// It is to look.
    Due,
    /// Its library looks.
    Taken,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    rank: u32,
    complete: bool,
    cancelled: bool,
    failure: Option<Box<Failure>>,
    /// Of a control call: what it came to.
    number: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Free,
    Send(Message),
    Recv { pattern: Pattern, capacity: Bytes, message: RequestId },
}

/// A message on its way: known by its sender's request, which stays until the message has come.
#[derive(Clone, Copy, Debug)]
struct Message {
    to: u32,
    context: u32,
    tag: u32,
    bytes: Bytes,
    mode: Mode,
    arrived: Bytes,
    begun: SimTime,
    begin: SegmentId,
    /// The sender knows that it has left.
    returned: bool,
    /// A receive has got it.
    matched: bool,
    /// Ranks that have not taken it.
    takers: u32,
}

/// A message that has come, with its critical path; only where the trail is on.
#[derive(Clone, Debug)]
pub struct Anatomy {
    /// Sender and receiver.
    pub ranks: (u32, u32),
    /// Its length.
    pub bytes: Bytes,
    /// When its sender called.
    pub begun: SimTime,
    /// When its receiver had it.
    pub ended: SimTime,
    /// The parts of its latency, which sum to it.
    pub parts: Vec<Part>,
}

/// The network. See the module's description.
pub struct Lan {
    config: Config,
    core: Core,
    hosts: Vec<Host>,
    adapters: Vec<Adapter>,
    switches: Vec<Switch>,
    admission: Admission,
    capture: Option<Capture>,
    circuits: Vec<Circuit>,
    processes: Vec<Process>,
    requests: Vec<Request>,
    free_requests: Vec<u32>,
    serial: u64,
    resumed: Vec<u32>,
    /// Hosts whose processor was given something.
    stirred: Vec<u32>,
    anatomies: Vec<Anatomy>,
    pdus_lost: u64,
    timed_out: u64,
    unread: u64,
    /// Events of the kind that never end.
    endless: usize,
    ends: Vec<End>,
    /// The rules of TCP, by host.
    rules: Vec<Arc<tcp::Config>>,
    runtimes: Vec<Runtime>,
    /// The first process of each stack.
    process_sets: Vec<u32>,
    /// Ends of connections through mapped memory.
    mapped: Vec<MappedEnd>,
    /// Sockets that wait for connections, by address: whose, and its number there.
    listening: BTreeMap<Address, (u32, ListenerId)>,
    /// Connections that are over: whose, to whom, why.
    over: Vec<(u32, u32, Reason)>,
    /// Packets on their way.
    packets: Slab<Packet>,
    /// By host, where ranks send each other datagrams.
    rank_udp: Vec<RankUdp>,
    pieces_lost: u64,
    vis: vi::Vis,
    /// Datagram sockets, by number and by address; and what is on its way between them.
    udp: Vec<DatagramSocket>,
    bound: BTreeMap<Address, u32>,
    datagrams: Datagrams,
    /// PDUs of libraries on their way.
    pdus: Slab<Pdu>,
    signalling: Option<Box<Signalling>>,
    /// Whom messages to several are for, until their library has them.
    several: BTreeMap<RequestId, Vec<u32>>,
    sent_to_several: u64,
    controls: layer::Controls,
    medium: Option<Box<Medium>>,
    finished: (SimTime, Span),
    loads: Vec<Load>,
    // Kept for their allocations.
    scratch: Vec<Step<Action>>,
    asked: Vec<Step<Action>>,
    contents: Vec<Content>,
    seed: u64,
}

impl Lan {
    /// A network with one rank on each host. With `trail`, the path of every message is kept.
    #[must_use]
    pub fn new(config: Config, seed: u64, trail: bool) -> Self {
        let size = config.hosts.len() as u32;
        let mut lan = Self {
            core: Core::new(trail),
            hosts: Vec::new(),
            adapters: Vec::new(),
            switches: Vec::new(),
            admission: Admission::default(),
            capture: None,
            circuits: Vec::new(),
            processes: Vec::new(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            serial: 0,
            resumed: Vec::new(),
            stirred: Vec::new(),
            anatomies: Vec::new(),
            pdus_lost: 0,
            timed_out: 0,
            unread: 0,
            endless: 0,
            ends: Vec::new(),
            rules: Vec::new(),
            runtimes: Vec::new(),
            process_sets: Vec::new(),
            mapped: Vec::new(),
            listening: BTreeMap::new(),
            over: Vec::new(),
            packets: Slab::new(),
            rank_udp: Vec::new(),
            pieces_lost: 0,
            vis: vi::Vis::default(),
            udp: Vec::new(),
            bound: BTreeMap::new(),
            datagrams: Datagrams::default(),
            pdus: Slab::new(),
            signalling: None,
            several: BTreeMap::new(),
            sent_to_several: 0,
            controls: layer::Controls::default(),
            medium: None,
            finished: (SimTime::ZERO, Span::ZERO),
            loads: Vec::new(),
            scratch: Vec::new(),
            asked: Vec::new(),
            contents: Vec::new(),
            seed,
            config,
        };
        match lan.config.network {
            NetworkConfig::BackToBack(link) => {
                for number in 0..size {
                    let out = lan.add_link(number, link, Port::Adapter(1 - number));
                    lan.add_host(number, out);
                }
            }
            NetworkConfig::Switch(link, config) => {
                let mut switch = Switch::new(0, config);
                for number in 0..size {
                    let up = lan.add_link(number * 2, link, Port::Element { element: 0, port: number });
                    let down = lan.add_link(number * 2 + 1, link, Port::Adapter(number));
                    switch.add_port(down);
                    lan.add_host(number, up);
                }
                lan.switches.push(switch);
            }
            NetworkConfig::Cable { .. }
            | NetworkConfig::Ring { .. }
            | NetworkConfig::Gige(_)
            | NetworkConfig::Switches => {
                for number in 0..size {
                    lan.add_host(number, LinkId(u32::MAX));
                }
                lan.medium = Medium::new(&lan.config, seed).map(Box::new);
            }
        }
        if lan.config.network.has_cells() {
            for from in 0..size {
                for to in (0..size).filter(|&to| to != from) {
                    lan.add_circuit(from, to);
                }
            }
        }
        if let Some((host, link)) = lan.config.capture {
            lan.capture = Some(Capture::new(host, link, lan.config.hosts.len()));
        }
        if let Some(socket) = lan.config.socket.clone() {
            lan.rules_of_hosts(&socket);
            if lan.sends_datagrams() {
                lan.open_datagram_sockets(&socket);
            } else if lan.config.stack.message.is_library() {
                lan.datagrams = Datagrams::new(size, &socket);
                lan.move_in(&socket);
            } else {
                lan.connect_all(&socket);
            }
        } else if lan.config.stack.message.has_circuits() && lan.config.stack.message.is_library() {
            lan.move_onto_circuits();
        }
        if let Some(config) = lan.config.vi.clone() {
            lan.open_nics(&config);
        }
        lan.start_load();
        if lan.config.network.has_cells() {
            lan.admit_all();
        }
        if let Some(config) = lan.config.circuits {
            lan.start_signalling(config);
        }
        lan.core.trains = lan.may_have_trains();
        lan
    }

    /// The random numbers of a part, by its path.
    fn stream(&self, path: &str) -> Stream {
        Stream::derive(self.seed, path)
    }

    fn add_link(&mut self, number: u32, link: LinkConfig, to: Port) -> LinkId {
        let loss = self.config.loss.map(|loss| (loss, self.stream(&format!("link {number}/loss"))));
        let end = self.config.bit_error.map(|rate| {
            let errors = BitErrors::new(rate, self.stream(&format!("link {number}/bits")));
            LineEnd::new(errors, self.config.stack.lower == Lower::Aal5)
        });
        self.core.add_link(Link::new(link, to, loss).with_errors(end))
    }

    fn add_host(&mut self, number: u32, out: LinkId) {
        let config = self.config.hosts[number as usize].clone();
        let background = config.background.map(|_| self.stream(&format!("host {number}/background")));
        let mut host = Host::new(number as u16, config, background);
        let handler = host.cpu.thread(cpu::Level::Interrupt);
        let handler = ThreadAt { host: number, thread: handler };
        self.adapters.push(Adapter::new(host.config.adapter, out, handler));
        self.hosts.push(host);
        self.add_process(number);
        self.start_background(number);
    }

    /// Another process on a host; the first one of each is a rank's.
    fn add_process(&mut self, host: u32) {
        let thread = self.hosts[host as usize].cpu.thread(cpu::Level::Process);
        self.processes.push(Process { here: ThreadAt { host, thread }, ..Process::default() });
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// The clock.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.core.now()
    }

    /// What it is made of.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// A digest of every cell that came to the end of a link and every completion, with its time.
    /// Cells that go in trains may count before they are there.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.core.digest_with_links(CELLS_CAME)
    }

    /// All segments, where the trail is on.
    #[must_use]
    pub const fn trail(&self) -> &Trail {
        &self.core.trail
    }

    /// Messages that have come, in order, where the trail is on.
    #[must_use]
    pub fn anatomies(&self) -> &[Anatomy] {
        &self.anatomies
    }

    /// What was lost.
    #[must_use]
    pub fn losses(&self) -> Losses {
        Losses {
            on_links: self.core.links.iter().map(|link| link.passed().lost).sum(),
            in_switches: self.switches.iter().map(|switch| switch.passed().lost).sum::<u64>()
                + self.medium.as_ref().map_or(0, |medium| medium.refused()),
            in_adapters: self.adapters.iter().map(|adapter| adapter.passed().lost).sum(),
            pdus: self.pdus_lost,
            timed_out: self.timed_out,
            datagrams: self.pieces_lost,
            unread: self.unread,
        }
    }

    /// What became of cells with wrong bits, on all links.
    #[must_use]
    pub fn line_errors(&self) -> LineErrors {
        self.core.links.iter().map(Link::errors).fold(LineErrors::default(), LineErrors::and)
    }

    /// Cells by element: links, switches, adapters, in the order of their numbers, with a name.
    #[must_use]
    pub fn passed(&self) -> Vec<(String, Passed)> {
        let links =
            self.core.links.iter().enumerate().map(|(at, link)| (format!("link {at}"), link.passed()));
        let switches =
            self.switches.iter().enumerate().map(|(at, switch)| (format!("switch {at}"), switch.passed()));
        let adapters =
            self.adapters.iter().enumerate().map(|(at, one)| (format!("adapter {at}"), one.passed()));
        let medium = self.medium.iter().map(|medium| ("medium".to_string(), medium.passed()));
        links.chain(switches).chain(adapters).chain(medium).collect()
    }

    /// When the last rank that has ended did so, and how long frames but of load had taken on the medium by then.
    #[must_use]
    pub const fn finished(&self) -> (SimTime, Span) {
        self.finished
    }

    /// Connections that are over: whose end, to whom, and why.
    #[must_use]
    pub fn over(&self) -> &[(u32, u32, Reason)] {
        &self.over
    }

    /// How long each host's processor has been busy.
    #[must_use]
    pub fn busy(&self) -> Vec<Span> {
        self.hosts.iter().map(|host| host.cpu.busy()).collect()
    }

    /// The longest that a switch's output queue has been, cells.
    #[must_use]
    pub fn deepest_queue(&self) -> usize {
        self.switches.iter().map(Switch::deepest).max().unwrap_or(0)
    }

    /// How many events there were.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.core.future.given()
    }

    /// PDUs of which a cell is still somewhere.
    #[must_use]
    pub fn pdus_under_way(&self) -> usize {
        self.core.pdus.live()
    }

    /// Ranks that have not ended and wait for what will not come, after a step that returned `false`.
    #[must_use]
    pub fn blocked(&self) -> Vec<u32> {
        let waits = |rank: &u32| self.processes[*rank as usize].state == State::Waiting;
        (0..self.size()).filter(waits).collect()
    }

    /// Posts an operation of a rank. A send or a receive returns its request, others `None`.
    ///
    /// # Errors
    /// [`OpError`] names what is wrong; nothing happens then.
    pub fn post(&mut self, rank: u32, op: Op<'_>) -> Result<Option<RequestId>, OpError> {
        if self.process_set_of(rank).is_none() {
            return Err(OpError::NoSuchRank { rank, size: self.size() });
        }
        match self.processes[rank as usize].state {
            State::Running => {}
            State::Waiting => return Err(OpError::RankSuspended { rank }),
            State::Finished => return Err(OpError::RankFinished { rank }),
        }
        match op {
            Op::Compute(span) | Op::Sleep(span) => {
                self.charge_program(rank, span);
                Ok(None)
            }
            // The stack's own prices have what a call costs.
            Op::Enter { .. } | Op::Exit => Ok(None),
            Op::Send { context, to, tag, bytes, mode } => {
                self.check_rank(to)?;
                if context != 0 || !matches!(mode, Mode::Standard | Mode::Unchanged) {
                    self.check_mpi(rank, "a message in a mode or a communicator")?;
                }
                self.admit(rank, to, tag, bytes)?;
                let request = self.open_send(rank, (context, to, tag), mode, bytes, 1);
                match self.config.stack.message {
                    MessageLayer::Fore => self.start_send(rank, request),
                    MessageLayer::Socket if self.sends_datagrams() => self.post_datagram(rank, request),
                    MessageLayer::Socket => self.post_socket_send(rank, request, to, bytes),
                    _ => self.post_to_library(rank, request, true),
                }
                Ok(Some(request))
            }
            Op::Control(control) => self.post_control(rank, control).map(Some),
            Op::Multicast { to, tag, bytes } => self.post_multicast(rank, to, tag, bytes).map(Some),
            Op::Recv { pattern, capacity } => {
                if let Some(from) = pattern.source {
                    self.check_rank(from)?;
                }
                if pattern.context != 0 {
                    self.check_mpi(rank, "a receive in a communicator")?;
                }
                let message = RequestId(u64::MAX);
                let request = self.open(rank, Kind::Recv { pattern, capacity, message });
                if self.config.stack.message.is_library() {
                    self.post_to_library(rank, request, false);
                } else {
                    self.post_receive(rank, request);
                }
                Ok(Some(request))
            }
            Op::Pause(span) => {
                self.pause(rank, span)?;
                Ok(None)
            }
            Op::Cancel(request) => self.withdraw(rank, request).map(|()| None),
            Op::Wait { requests, mode } => self.wait(rank, requests, mode).map(|()| None),
            Op::Probe(pattern) => self.probe(rank, pattern, Look::No).map(|()| None),
            Op::ProbeNow(pattern) => self.probe(rank, pattern, Look::Due).map(|()| None),
            Op::Watch { .. } => Err(OpError::Unsupported("to wait for requests and a message at once")),
            Op::Yield => self.wait(rank, &[], WaitMode::All).map(|()| None),
            Op::Finish => {
                self.processes[rank as usize].state = State::Finished;
                self.finished = (self.now(), self.medium.as_ref().map_or(Span::ZERO, |one| one.carried));
                if self.config.stack.message.is_library() {
                    self.give(rank, Action::Leave { process: rank });
                    self.give(rank, Action::Progress { rank });
                }
                Ok(None)
            }
        }
    }

    /// Lets time pass until some rank may go on. `false` where nothing more will happen: every rank has
    /// ended, or those left wait for what will not come.
    pub fn step(&mut self) -> bool {
        self.resumed.clear();
        loop {
            while let Some(host) = self.stirred.pop() {
                self.run_cpu(host);
            }
            if !self.resumed.is_empty() {
                return true;
            }
            if !self.has_work() && !self.await_quiet() {
                return false;
            }
            let Some(event) = self.core.next() else { return false };
            self.dispatch(event);
        }
    }

    /// The ranks that the last step resumed, in order.
    #[must_use]
    pub fn resumed(&self) -> &[u32] {
        &self.resumed
    }

    fn dispatch(&mut self, event: LanEvent) {
        match event {
            LanEvent::Cpu { host, charge } => {
                let now = self.core.now();
                if self.hosts[usize::from(host)].cpu.finish(charge, now, &mut self.core.trail) {
                    self.run_cpu(host.into());
                }
            }
            LanEvent::Link(link) => {
                if let Port::Adapter(adapter) = self.core.link(link).to() {
                    self.take_earlier(adapter);
                }
                let Some((port, cell)) = self.core.arrive(link) else { return };
                match port {
                    Port::Adapter(adapter) => {
                        self.came_step_by_step();
                        self.cell_came(adapter, cell);
                    }
                    Port::Element { element, port } => {
                        self.switches[element as usize].take(&mut self.core, port, cell);
                    }
                }
            }
            LanEvent::Crossed { switch } => {
                self.switches[usize::from(switch)].crossed(&mut self.core);
                self.switch_hears(switch.into());
            }
            LanEvent::PortFree { switch, port } => {
                self.switches[usize::from(switch)].port_free(&mut self.core, port.into());
                self.switch_hears(switch.into());
            }
            LanEvent::Signalling(at) => self.signalling_due(at),
            LanEvent::Firmware(adapter) => self.firmware_done(adapter),
            LanEvent::Outward(adapter) => self.is_outward(adapter),
            LanEvent::Inward(adapter) => self.is_inward(adapter),
            LanEvent::Unheard => {}
            LanEvent::Transmit(adapter) => self.transmit(adapter),
            LanEvent::Interrupt(adapter) => self.interrupt_due(adapter),
            LanEvent::Tick(host) | LanEvent::Wake(host) => self.background_due(host, event),
            LanEvent::Timer(number) => self.timer_due(number),
            LanEvent::Medium => self.medium_due(),
            LanEvent::Load(number) => self.load_due(number),
            LanEvent::Alarm(process) => self.alarm_due(process),
            LanEvent::Fragments(host) => self.fragments_due(host),
            LanEvent::Reassembly(adapter) => self.reassembly_due(adapter),
            LanEvent::Vi(host) => self.vi_due(host),
            LanEvent::Pause(rank) => self.pause_over(rank),
            LanEvent::Coming(adapter) => self.cell_due(adapter),
        }
    }

    /// Whether the message layer takes a send.
    fn admit(&self, rank: u32, to: u32, tag: u32, bytes: Bytes) -> Result<(), OpError> {
        if self.config.stack.message.is_library() {
            let admitted = self.library_admits(rank, to, tag, bytes);
            return admitted.map_err(|refusal| OpError::of(refusal, rank, bytes));
        }
        if to == rank {
            return Err(OpError::ToItself { rank });
        }
        if bytes == Bytes::new(0) {
            return Err(OpError::Empty);
        }
        if self.sends_datagrams() && bytes > self.longest_datagram() {
            return Err(OpError::TooLong { bytes, most: self.longest_datagram() });
        }
        let cut = self.config.cut_messages || self.config.stack.message != MessageLayer::Fore;
        if bytes > self.config.pdu_bytes && !cut {
            return Err(OpError::TooLong { bytes, most: self.config.pdu_bytes });
        }
        Ok(())
    }

    /// Whether a message of a rank is a datagram.
    fn sends_datagrams(&self) -> bool {
        self.config.stack.message == MessageLayer::Socket && self.config.stack.transport == Transport::Udp
    }

    fn check_rank(&self, rank: u32) -> Result<(), OpError> {
        let size = self.size();
        if rank < size { Ok(()) } else { Err(OpError::NoSuchRank { rank, size }) }
    }
}

/// Observable points: the cells that came to the end of a link.
const CELLS_CAME: u32 = 1;
/// A message is complete at its receiver.
const MESSAGE_CAME: u32 = 2;
/// A rank goes on.
const RESUMED: u32 = 3;
/// A frame has come to a host.
const FRAME_CAME: u32 = 4;

#[cfg(test)]
pub(crate) mod tests;
