//! How switched circuits come to be: SPANS between the drivers of hosts and the call control of the switch.
//!
//! Both are machines of [`wiretwin_msg::fore`]. What they say to each other are PDUs on the signalling channel: a
//! driver hands one to its adapter as any other, and the switch writes the cells of one into the queue of a port, before
//! all others. Call control does one message after the other on a processor of its own. Processes set up circuits and
//! trees by the calls of the interface ([`Ask`]); permanent circuits between every two hosts stand beside, on channels
//! that call control does not give out, and both draw on the same account of bandwidth.
//!
//! Choices: every host has heard its address before a run begins; a driver pays `fore_send` for a message that it sends
//! and `pdu_interrupt` for one that comes; clearing drops what the adapter has not sent.

use std::collections::{BTreeMap, VecDeque};

use wiretwin_engine::Slab;
use wiretwin_msg::fore::driver::{self, DEVICE, Done, Transmit};
use wiretwin_msg::fore::switch::{self, Act};
use wiretwin_msg::fore::{
    Answer, Ask, CallControl, CallId, Dataflow, Descriptor, Driver, Endpoint, Sign, Want,
};
use wiretwin_msg::library::{CircuitId, Outcome, Ready};
use wiretwin_msg::reliable::topology::Topology;
use wiretwin_plan::PlanError;
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{BitRate, Bytes, SimTime, Span};
use wiretwin_wire::cell::VcId;
use wiretwin_wire::spans::{Aal, Address, MAX_MESSAGE_OCTETS, Repr, SIGNALLING_VCI};

use super::Lan;
use super::activity::Activity;
use super::adaptation::Asked;
use super::admission::spacing;
use super::asx100::Branch;
use super::cell::Vc;
use super::circuit::{Arrived, FIRST_VCI};
use super::config::{AdapterConfig, HostConfig, NetworkConfig};
use super::core::LanEvent;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::layer::Circuits;
use super::socket::Carried;
use super::stack::{Lower, Stack};
use crate::json::At;

/// Circuits that are set up by calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedConfig {
    /// Which are there from the start.
    pub topology: Topology,
    /// What the switch's processor takes for a message.
    pub processing: Span,
    /// What each circuit asks for, kbit/s.
    pub peak: Want,
    /// The last channel that is given out on each link.
    pub last_vci: u16,
}

/// What signalling has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signalled {
    /// Messages, of hosts and of the switch.
    pub messages: u64,
    /// Branches that were joined: one for each circuit, and for each leaf of a tree.
    pub joined: u64,
    /// Those that were taken away again.
    pub parted: u64,
    /// Calls that were rejected.
    pub refused: u64,
    /// When the last one was joined.
    pub last: SimTime,
}

/// Reads what circuits are to be.
pub(super) fn read(
    top: &At<'_>,
    stack: &Stack,
    network: &NetworkConfig,
    hosts: &[HostConfig],
) -> Result<Option<SwitchedConfig>, PlanError> {
    let Some(at) = top.optional("circuits") else { return Ok(None) };
    if !stack.message.has_circuits() || !stack.message.is_library() {
        return Err(at.refuse("nothing here: only fore+reliable and pvm-fore set circuits up"));
    }
    if !matches!(network, NetworkConfig::Switch(..)) {
        return Err(at.refuse("nothing here: call control is a switch's, and there is none"));
    }
    let fields = at.object("topology processing_ps peak_kbit_s minimum_kbit_s last_vci")?;
    let named = fields.get("topology")?;
    let size = hosts.len() as u32;
    let topology = Topology::ALL.into_iter().find(|one| named.value.as_str() == Some(one.name()));
    let Some(topology) = topology else {
        return Err(named.refuse(&Topology::ALL.map(Topology::name).join(", ")));
    };
    if !topology.takes(size) {
        return Err(named.refuse("a topology that so many hosts can have: a hypercube has a power of two"));
    }
    let or = |key, least, most, default| match fields.optional(key) {
        Some(at) => at.integer(least, most),
        None => Ok(default),
    };
    let target = or("peak_kbit_s", 0, 1_000_000, 0)? as u32;
    let minimum = or("minimum_kbit_s", 0, target.into(), target.into())? as u32;
    let processing = Span::from_ps(fields.get("processing_ps")?.integer(0, 60_000_000_000_000)?);
    let last_vci = or("last_vci", FIRST_VCI.into(), 1023, 1023)? as u16;
    if target > 0 && hosts.iter().any(|host| matches!(host.adapter, AdapterConfig::Series100 { .. })) {
        return Err(fields.get("peak_kbit_s")?.refuse("0: a series-100 cannot space cells"));
    }
    Ok(Some(SwitchedConfig { topology, processing, peak: Want { target, minimum }, last_vci }))
}

/// What has come for a descriptor.
struct Inbox {
    process: u32,
    circuit: CircuitId,
    arrived: VecDeque<Arrived>,
    bytes: Bytes,
}

pub(super) struct Signalling {
    control: CallControl,
    /// By host.
    drivers: Vec<Driver>,
    /// The signalling circuits of each host, to the switch and back.
    up: Vec<u32>,
    down: Vec<u32>,
    /// Circuits from this number on are switched.
    first: u32,
    messages: Slab<Repr>,
    /// By host: switched circuits by the channel on which they leave it.
    outs: Vec<BTreeMap<u16, u32>>,
    inboxes: BTreeMap<(u32, Descriptor), Inbox>,
    /// Calls that wait: whose.
    connecting: BTreeMap<CallId, (u32, CircuitId)>,
    /// What has become of descriptors and was not told, by process.
    signs: BTreeMap<u32, Vec<(CircuitId, Sign)>>,
    /// When each host, and then call control, is to be looked at.
    alarms: Vec<SimTime>,
    serial: u32,
    signalled: Signalled,
}

/// The signalling channel.
pub(super) const SIGNALLING: Vc = Vc::new(0, SIGNALLING_VCI.0);

/// Where a host is, as signalling has it: behind its port of the only switch.
fn address_of(host: u32) -> Address {
    let [a, b, c, d] = host.to_be_bytes();
    Address([0, 0, 0, 1, a, b, c, d])
}

fn host_of(address: Address) -> u32 {
    let [_, _, _, _, a, b, c, d] = address.0;
    u32::from_be_bytes([a, b, c, d])
}

const fn vc_of(id: VcId) -> Vc {
    Vc::new(id.vpi.get(), id.vci.0)
}

impl Lan {
    /// Gives every host its driver, the switch its call control, and has the processes set up their circuits.
    pub(super) fn start_signalling(&mut self, config: SwitchedConfig) {
        let size = self.size();
        let addresses: Vec<Address> = (0..size).map(address_of).collect();
        // Permanent circuits, and those of load, have the channels before.
        let first = FIRST_VCI + size as u16 + self.config.load.len() as u16;
        let control = switch::Config {
            processing: config.processing,
            vcis: (first, config.last_vci),
            backlog: 4 * size.max(16),
            ..switch::Config::default()
        };
        let switch = Address([u8::MAX; 8]);
        let ledger = core::mem::take(self.admission.ledger_mut());
        let control = CallControl::new(control, 1, switch, addresses, ledger);
        let rules = driver::Config {
            mtu: self.config.pdu_bytes,
            queue: self.config.stream_bytes,
            descriptors: 256,
            ..driver::Config::default()
        };
        let (mut drivers, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for host in 0..size {
            let mut driver = Driver::new(rules, host);
            let status = Repr::StatusIndication { switch_epoch: 1, host: address_of(host), switch };
            driver.start(SimTime::ZERO);
            driver.handle_signal(SimTime::ZERO, status);
            while !matches!(driver.poll_output(), Output::Timeout(_)) {}
            drivers.push(driver);
            up.push(self.new_circuit((host, SIGNALLING), (host, SIGNALLING)));
            let number = self.new_circuit((host, SIGNALLING), (host, SIGNALLING));
            self.adapters[host as usize].expect(SIGNALLING, number);
            down.push(number);
        }
        self.signalling = Some(Box::new(Signalling {
            control,
            drivers,
            up,
            down,
            first: self.circuits.len() as u32,
            messages: Slab::new(),
            outs: vec![BTreeMap::new(); size as usize],
            inboxes: BTreeMap::new(),
            connecting: BTreeMap::new(),
            signs: BTreeMap::new(),
            alarms: vec![SimTime::MAX; size as usize + 1],
            serial: 0,
            signalled: Signalled::default(),
        }));
        for process in 0..self.runtimes.len() as u32 {
            self.give(process, Action::Enroll { process });
        }
    }

    /// What signalling has come to, where circuits are switched.
    #[must_use]
    pub fn signalled(&self) -> Option<Signalled> {
        self.signalling.as_ref().map(|one| one.signalled)
    }

    /// Switched circuits and trees that there are, and channels in use for them.
    #[must_use]
    pub fn calls(&self) -> (usize, usize) {
        self.signalling.as_ref().map_or((0, 0), |one| (one.control.calls(), one.control.channels()))
    }

    /// The account of what is reserved, whoever keeps it.
    pub(super) fn ledger_mut(&mut self) -> &mut wiretwin_msg::fore::Bandwidth {
        match &mut self.signalling {
            Some(signalling) => signalling.control.bandwidth_mut(),
            None => self.admission.ledger_mut(),
        }
    }

    // Calls of processes

    /// A process sets circuits up, or clears them.
    pub(super) fn fore_call(&mut self, here: ThreadAt, process: u32, ask: Ask) {
        let answer = self.answer_to(here.host, process, ask);
        let steps = self.drain_driver(here.host);
        // What the driver sends comes before what the process does next.
        self.outcome(here, process, Outcome::Fore(answer));
        self.insert(here, &steps);
    }

    fn descriptor(&self, process: u32, circuit: CircuitId) -> Descriptor {
        match self.runtimes[process as usize].circuits(circuit) {
            Some(Circuits::Descriptor(descriptor)) => descriptor,
            // None that is open: the driver says so.
            _ => Descriptor(u32::MAX),
        }
    }

    fn answer_to(&mut self, host: u32, process: u32, ask: Ask) -> Answer {
        let now = self.core.now();
        let aal = if self.config.stack.lower == Lower::Aal34 { Aal::Type4 } else { Aal::Type5 };
        let of = |lan: &Self, circuit| lan.descriptor(process, circuit);
        let (one, other) = match ask {
            Ask::Open { .. } => (Descriptor(u32::MAX), Descriptor(u32::MAX)),
            Ask::Accept { circuit, by, .. } => (of(self, circuit), of(self, by)),
            Ask::Listen { circuit } | Ask::Connect { circuit, .. } | Ask::Close { circuit } => {
                (of(self, circuit), Descriptor(u32::MAX))
            }
        };
        let Some(signalling) = &mut self.signalling else { return Answer::NoRequest };
        signalling.serial += 1;
        let call = CallId(signalling.serial);
        let driver = &mut signalling.drivers[host as usize];
        let answer = match ask {
            Ask::Open { asap, queue } => {
                let opened = driver.open(DEVICE).and_then(|(descriptor, _)| {
                    driver.bind(descriptor, asap, queue).map(|asap| (descriptor, asap))
                });
                opened.map(|(descriptor, asap)| {
                    let circuit = self.runtimes[process as usize].add_descriptor(descriptor);
                    let inbox = Inbox { process, circuit, arrived: VecDeque::new(), bytes: Bytes::new(0) };
                    signalling.inboxes.insert((host, descriptor), inbox);
                    Answer::Opened { circuit, asap }
                })
            }
            Ask::Listen { .. } if !driver.is_asked(one) => Ok(Answer::NoRequest),
            Ask::Listen { .. } => driver.listen(one, call).map(|()| listened(driver)),
            Ask::Accept { by, request, flow, back, .. } => {
                driver.accept(now, one, other, request, back, flow, call).map(|()| {
                    // The circuit back is there later.
                    if flow == Dataflow::Duplex {
                        signalling.connecting.insert(call, (process, by));
                    }
                    Answer::Accepted { by }
                })
            }
            Ask::Connect { circuit, host: to, asap, qos, flow } => {
                let to = Endpoint { nsap: address_of(to), asap };
                driver.connect(now, one, to, qos, aal, flow, call).map(|()| {
                    signalling.connecting.insert(call, (process, circuit));
                    Answer::Asked { circuit }
                })
            }
            Ask::Close { .. } => {
                let closed = driver.close(now, one).map(|()| Answer::Closed);
                let unread = signalling.inboxes.remove(&(host, one));
                for Arrived { payload, .. } in unread.into_iter().flat_map(|inbox| inbox.arrived) {
                    self.lose_packet(payload.message.0 as u32);
                }
                closed
            }
        };
        answer.unwrap_or_else(|error| Answer::Refused { error })
    }

    /// What is told to a process that looks, besides what has come.
    pub(super) fn signs_of(&self, process: u32) -> Vec<Ready> {
        let Some(signalling) = &self.signalling else { return Vec::new() };
        let host = self.processes[process as usize].here.host;
        let told = signalling.signs.get(&process).into_iter().flatten();
        let told = told.map(|(circuit, sign)| Ready::Circuit(*circuit, *sign));
        let driver = &signalling.drivers[host as usize];
        let mine = signalling.inboxes.range((host, Descriptor(0))..=(host, Descriptor(u32::MAX)));
        let asked = mine
            .filter(|((_, descriptor), inbox)| inbox.process == process && driver.is_asked(*descriptor))
            .map(|(_, inbox)| Ready::Circuit(inbox.circuit, Sign::Requested));
        told.chain(asked).collect()
    }

    /// It was told.
    pub(super) fn signs_told(&mut self, process: u32) {
        if let Some(signalling) = &mut self.signalling {
            signalling.signs.remove(&process);
        }
    }

    // PDUs of descriptors

    /// The circuit that a PDU of a descriptor goes on, `None` where the driver takes none.
    pub(super) fn switched_out(
        &mut self,
        host: u32,
        descriptor: Descriptor,
        payload: Payload,
    ) -> Option<u32> {
        let signalling = self.signalling.as_mut()?;
        let driver = &mut signalling.drivers[host as usize];
        driver.send(descriptor, payload).ok()?;
        loop {
            match driver.poll_output() {
                Output::Transmit(Transmit::Pdu { vc, .. }) => {
                    return signalling.outs[host as usize].get(&vc.vci.0).copied();
                }
                // The copy is a price of the call.
                Output::Work(_) => {}
                _ => return None,
            }
        }
    }

    /// Whether something has come for a descriptor.
    pub(super) fn has_arrived(&self, host: u32, descriptor: Descriptor) -> bool {
        let inbox = self.signalling.as_ref().and_then(|one| one.inboxes.get(&(host, descriptor)));
        inbox.is_some_and(|inbox| !inbox.arrived.is_empty())
    }

    /// The first of it.
    pub(super) fn take_arrived(&mut self, host: u32, descriptor: Descriptor) -> Option<Arrived> {
        let inbox = self.signalling.as_mut()?.inboxes.get_mut(&(host, descriptor))?;
        let first = inbox.arrived.pop_front()?;
        inbox.bytes -= first.payload.length;
        Some(first)
    }

    /// A PDU has come on a switched circuit: it stands before whoever has the circuit, if there is room.
    pub(super) fn switched_pdu_came(&mut self, host: u32, circuit: u32, arrived: Arrived) {
        let vc = self.circuits[circuit as usize].into.id();
        let (room, packet) = (self.config.stream_bytes, arrived.payload.message.0 as u32);
        let Some(signalling) = &mut self.signalling else { return };
        let reader = signalling.drivers[host as usize].reader_of(vc);
        let inbox = reader.and_then(|reader| signalling.inboxes.get_mut(&(host, reader)));
        let Some(inbox) = inbox.filter(|inbox| inbox.bytes + arrived.payload.length <= room) else {
            self.unread += 1;
            return self.lose_packet(packet);
        };
        inbox.bytes += arrived.payload.length;
        inbox.arrived.push_back(arrived);
        let process = inbox.process;
        self.rouse_library(process, arrived.trail);
    }

    /// Whether a circuit was set up by a call.
    pub(super) fn is_switched(&self, circuit: u32) -> bool {
        self.signalling.as_ref().is_some_and(|one| circuit >= one.first)
    }

    // Drivers

    /// What a driver asks for: messages to be sent are steps of whoever has called it.
    fn drain_driver(&mut self, host: u32) -> Vec<Step<Action>> {
        let (mut steps, mut roused) = (Vec::new(), Vec::new());
        loop {
            let Some(signalling) = &mut self.signalling else { return steps };
            let of_call = |signalling: &mut Signalling, call| signalling.connecting.remove(&call);
            let (whose, sign) = match signalling.drivers[host as usize].poll_output() {
                Output::Transmit(Transmit::Signal(message)) => {
                    let circuit = signalling.up[host as usize];
                    let payload = self.on_its_way(circuit, message);
                    let octets = payload.length;
                    steps.push(self.price(host, Activity::ForeSend, octets, octets));
                    steps.push(Step::Do(Action::Pass { circuit, payload }));
                    continue;
                }
                Output::Deliver(Done::Connected { call, .. }) => (of_call(signalling, call), Sign::Connected),
                Output::Deliver(Done::Failed { call, error }) => {
                    (of_call(signalling, call), Sign::Refused(error))
                }
                Output::Event(driver::Event::Gone { descriptor }) => {
                    let inbox = signalling.inboxes.get(&(host, descriptor));
                    (inbox.map(|inbox| (inbox.process, inbox.circuit)), Sign::Gone)
                }
                Output::Timeout(due) => {
                    self.set_signalling_alarm(host, due);
                    break;
                }
                // Who listens is told at once, and PDUs are not the driver's to keep here.
                _ => continue,
            };
            if let Some((process, circuit)) = whose {
                signalling.signs.entry(process).or_default().push((circuit, sign));
                roused.push(process);
            }
        }
        // Requests that wait are a sign too.
        let here = self.processes.iter().enumerate().filter(|(_, one)| one.here.host == host);
        roused.extend(here.map(|(at, _)| at as u32));
        for process in roused {
            self.rouse_library(process, super::trail::SegmentId::NONE);
        }
        steps
    }

    /// A message of signalling as a PDU of a circuit.
    fn on_its_way(&mut self, circuit: u32, message: Repr) -> Payload {
        let length = message.emit(&mut [0; MAX_MESSAGE_OCTETS]).expect("no message of signalling is longer");
        let number = match &mut self.signalling {
            Some(signalling) => {
                signalling.signalled.messages += 1;
                signalling.messages.insert(message)
            }
            None => 0,
        };
        let packet = self.add_packet(Carried::Signal(number));
        self.circuits[circuit as usize].packets.push_back(packet);
        Payload::whole(MessageId(packet.into()), Bytes::new(length as u64))
    }

    /// A message has come to a host.
    pub(super) fn signal_came(&mut self, here: ThreadAt, packet: u32) {
        let now = self.core.now();
        let Carried::Signal(number) = self.packets.remove(packet).carried else { return };
        let Some(signalling) = &mut self.signalling else { return };
        let message = signalling.messages.remove(number);
        signalling.drivers[here.host as usize].handle_signal(now, message);
        let steps = self.drain_driver(here.host);
        self.insert(here, &steps);
    }

    /// One will not come.
    pub(super) fn forget_signal(&mut self, number: u32) {
        if let Some(signalling) = &mut self.signalling {
            signalling.messages.remove(number);
        }
    }

    // The switch

    /// What has come to the switch's control processor.
    pub(super) fn switch_hears(&mut self, switch: u32) {
        let now = self.core.now();
        while let Some((port, cell)) = self.switches[switch as usize].hear() {
            let circuit = self.signalling.as_ref().and_then(|one| one.up.get(port as usize).copied());
            let pdu = self.core.pdus.get(cell.pdu).copied();
            self.core.pdus.gone(cell.pdu);
            let (Some(circuit), Some(pdu)) = (circuit, pdu) else { continue };
            let receiver = &mut self.circuits[circuit as usize].receiver;
            receiver.take(now, &cell, &pdu);
            let mut whole = None;
            loop {
                match receiver.poll() {
                    Asked::Give(payload) => whole = Some(payload),
                    Asked::Discarded => self.pdus_lost += 1,
                    Asked::Work(..) => {}
                    Asked::Nothing => break,
                }
            }
            let Some(packet) = whole.map(|payload| payload.message.0 as u32) else { continue };
            self.forget_lost(circuit, packet);
            let Carried::Signal(number) = self.packets.remove(packet).carried else { continue };
            if let Some(signalling) = &mut self.signalling {
                let message = signalling.messages.remove(number);
                signalling.control.handle_message(now, port, message);
            }
            self.drain_control();
        }
    }

    fn drain_control(&mut self) {
        loop {
            let Some(signalling) = &mut self.signalling else { return };
            match signalling.control.poll_output() {
                Output::Transmit(Act::Signal { port, message }) => {
                    let circuit = signalling.down[port as usize];
                    let payload = self.on_its_way(circuit, message);
                    let at = &mut self.circuits[circuit as usize];
                    let taken = at.sender.send(payload);
                    debug_assert!(taken, "a message of signalling is short");
                    at.handed.push_back(payload);
                    while let Some((_, cell)) = self.cut(circuit) {
                        self.switches[0].tell(&mut self.core, port, cell);
                    }
                }
                Output::Transmit(Act::Join { from, to, peak_kbit_s }) => self.join(from, to, peak_kbit_s),
                Output::Transmit(Act::Part { from, to }) => self.part(from, to),
                Output::Event(switch::Event::Refused { .. }) => signalling.signalled.refused += 1,
                Output::Timeout(due) => {
                    let at = self.size();
                    return self.set_signalling_alarm(at, due);
                }
                _ => {}
            }
        }
    }

    /// Cells of a circuit go on to a port from now on.
    fn join(&mut self, from: (u32, VcId), to: (u32, VcId), peak_kbit_s: u32) {
        let now = self.core.now();
        let ((port, vc), (leaf_port, into)) = ((from.0, vc_of(from.1)), (to.0, vc_of(to.1)));
        let branch = Branch { port: leaf_port, vc: into, class: u8::from(peak_kbit_s == 0) };
        self.switches[0].connect(port, vc, branch).expect("call control gives each channel out once");
        let Some(signalling) = &mut self.signalling else { return };
        signalling.signalled.joined += 1;
        signalling.signalled.last = now;
        let known = signalling.outs[port as usize].get(&vc.vci()).copied();
        let sender = known.unwrap_or_else(|| self.new_circuit((port, vc), (leaf_port, into)));
        let leaf = self.new_circuit((port, vc), (leaf_port, into));
        let circuit = &mut self.circuits[sender as usize];
        circuit.leaves.push(leaf);
        circuit.reserved = BitRate::new(u64::from(peak_kbit_s) * 1000).ok();
        circuit.spacing = spacing(circuit.reserved);
        self.take_before_change(leaf_port);
        self.adapters[leaf_port as usize].expect(into, leaf);
        if let Some(signalling) = &mut self.signalling {
            signalling.outs[port as usize].insert(vc.vci(), sender);
        }
    }

    /// No more.
    fn part(&mut self, from: (u32, VcId), to: (u32, VcId)) {
        let ((port, vc), (leaf_port, into)) = ((from.0, vc_of(from.1)), (to.0, vc_of(to.1)));
        self.switches[0].disconnect(port, vc, leaf_port, into);
        let Some(signalling) = &mut self.signalling else { return };
        signalling.signalled.parted += 1;
        let Some(&sender) = signalling.outs[port as usize].get(&vc.vci()) else { return };
        let found = self.circuits[sender as usize].leaves.iter().position(|leaf| {
            (self.circuits[*leaf as usize].to, self.circuits[*leaf as usize].into) == (leaf_port, into)
        });
        let Some(at) = found else { return };
        let leaf = self.circuits[sender as usize].leaves.remove(at);
        self.take_before_change(leaf_port);
        self.adapters[leaf_port as usize].expect_no_more(into);
        for packet in core::mem::take(&mut self.circuits[leaf as usize].packets) {
            self.lose_packet(packet);
        }
        if self.circuits[sender as usize].leaves.is_empty() {
            while let Some((_, cell)) = self.cut(sender) {
                self.core.pdus.gone(cell.pdu);
            }
            if let Some(signalling) = &mut self.signalling {
                signalling.outs[port as usize].remove(&vc.vci());
            }
        }
    }

    // Time

    /// When call control speaks next, if nobody speaks to it.
    pub(super) fn control_speaks(&self) -> SimTime {
        let last = self.signalling.as_ref().and_then(|one| one.alarms.last());
        last.copied().unwrap_or(SimTime::MAX)
    }

    fn set_signalling_alarm(&mut self, at: u32, due: Option<SimTime>) {
        let now = self.core.now();
        let Some(signalling) = &mut self.signalling else { return };
        let alarm = &mut signalling.alarms[at as usize];
        if let Some(due) = due.filter(|due| *due < *alarm) {
            *alarm = due.max(now);
            self.core.at(due.max(now), LanEvent::Signalling(at));
        }
    }

    /// A driver, or call control, may have something to do.
    pub(super) fn signalling_due(&mut self, at: u32) {
        let (now, size) = (self.core.now(), self.size());
        let Some(signalling) = &mut self.signalling else { return };
        if signalling.alarms[at as usize] > now {
            return;
        }
        signalling.alarms[at as usize] = SimTime::MAX;
        if at == size {
            signalling.control.handle_timeout(now);
            return self.drain_control();
        }
        signalling.drivers[at as usize].handle_timeout(now);
        let steps = self.drain_driver(at);
        if !steps.is_empty() {
            let timer = self.hosts[at as usize].timer;
            self.wake(timer, &steps);
        }
    }
}

/// The request that a call to listen was told of.
fn listened(driver: &mut Driver) -> Answer {
    match driver.poll_output() {
        Output::Deliver(Done::Listened { request, calling, multicast, .. }) => {
            Answer::Request { request, host: host_of(calling.nsap), asap: calling.asap, multicast }
        }
        _ => Answer::NoRequest,
    }
}

#[cfg(test)]
mod tests;
