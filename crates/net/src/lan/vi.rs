//! The VIs of hosts: one to each other host, of a NIC that the kernel emulates (M-VIA) or of an adapter that
//! has them.
//!
//! The provider is [`wiretwin_msg::via::Nic`], the machine that passes the conformance suite. Here it gets a
//! place: under an emulation its work is the processor's, of the process that posts or of the handler that a
//! packet wakes; an adapter does it by itself, and only a doorbell is the processor's. Connections are there
//! from the start, made by the machines' own packets in no time. A process that waits looks again and again
//! (`via_poll`): it does not sleep, so nobody switches to it.
//!
//! *Choice*: an emulation that finds the adapter's ring full waits for room, on the processor; the octets of
//! memory are not kept, but what a descriptor says beside them (heads, ranges of messages).

use std::collections::VecDeque;

use wiretwin_engine::Slab;
use wiretwin_msg::library::{Call, ConnectionId, Content, Outcome, Ready, Way};
use wiretwin_msg::mpi::Flow;
use wiretwin_msg::via::{
    Address, AddressSegment, Body, DataSegment, Descriptor, Emulation, Event, HostAddress, MemoryAttributes,
    MemoryHandle, Nic, NicAttributes, Operation, Packet, Place, Ptag, QueueKind, Reliability, ViAttributes,
    ViHandle, ViState,
};
use wiretwin_plan::PlanError;
use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use super::Lan;
use super::activity::Activity;
use super::config::NetworkConfig;
use super::core::LanEvent;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::socket::Carried;
use super::stack::Message;
use super::trail::SegmentId;
use crate::json::At;

/// What NICs are, and what is posted on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViConfig {
    /// Who does the work.
    pub emulation: Emulation,
    /// The level of every VI.
    pub reliability: Reliability,
    /// Octets of a frame's payload.
    pub mtu: Bytes,
    /// The longest message of a descriptor.
    pub max_transfer: Bytes,
    /// Receives posted on each VI.
    pub buffers: u32,
    /// Octets of a buffer, for MPI; straight over VIs each takes the longest message.
    pub buffer: Bytes,
}

impl ViConfig {
    /// Counted buffers of MPI.
    pub(super) const fn flow(&self, flow: Flow) -> Flow {
        Flow { buffers: self.buffers, buffer: self.buffer, ..flow }
    }

    /// The longest length from which rendezvous may begin, so that an eager message finds buffers.
    pub(super) fn most_eager(&self) -> u64 {
        // Kept back: the reserve of MVICH, and those that are too few to return.
        let free = u64::from(self.buffers).saturating_sub(HELD_BACK);
        free * (self.buffer.get() - LEAST_BUFFER) + 1
    }
}

/// What MVICH's flow keeps back of its buffers, and the octets of a buffer that are no message.
const HELD_BACK: u64 = 14;
const LEAST_BUFFER: u64 = 48;

/// Reads the VIs of a network.
pub(super) fn read(at: &At<'_>, hosts: u64) -> Result<ViConfig, PlanError> {
    let fields = at.object("device reliability mtu_bytes max_transfer_bytes buffers buffer_bytes")?;
    let devices = [("m-via", Emulation::Kernel), ("adapter", Emulation::Adapter)];
    let emulation = fields.get("device")?.one_of(&devices)?;
    let level = fields.get("reliability")?;
    let reliability = level.one_of(&[
        ("unreliable-delivery", Reliability::UnreliableDelivery),
        ("reliable-delivery", Reliability::ReliableDelivery),
        ("reliable-reception", Reliability::ReliableReception),
    ])?;
    if reliability == Reliability::ReliableReception && emulation == Emulation::Kernel {
        return Err(level.refuse("unreliable-delivery or reliable-delivery of m-via"));
    }
    // So many VIs, and on each as many descriptors as a queue takes.
    debug_assert!(hosts <= 64, "a network has at most 64 hosts");
    Ok(ViConfig {
        emulation,
        reliability,
        mtu: Bytes::new(fields.get("mtu_bytes")?.integer(100, 9_000)?),
        max_transfer: Bytes::new(fields.get("max_transfer_bytes")?.integer(32 << 10, 1 << 30)?),
        buffers: fields.get("buffers")?.integer(HELD_BACK + 2, 1024)? as u32,
        buffer: Bytes::new(fields.get("buffer_bytes")?.integer(LEAST_BUFFER + 1, 32 << 10)?),
    })
}

/// One VI, to another host.
#[derive(Debug)]
struct Line {
    vi: ViHandle,
    peer: u32,
    /// What descriptors carry that have been posted and have not come, by number.
    sent: VecDeque<(u64, Content)>,
    /// Send descriptors that are not done.
    posted: u32,
    /// What has come and is not read.
    arrived: VecDeque<Content>,
    came: SegmentId,
    over: bool,
}

#[derive(Debug)]
struct HostNic {
    nic: Nic,
    memory: MemoryHandle,
    lines: Vec<Line>,
    next: u64,
    /// Messages whose handler has not said yet that they are there: on which line.
    coming: VecDeque<(u32, Content)>,
    /// Whose message is at hand: the sending host and its number.
    at_hand: Option<(u32, u64)>,
    due: SimTime,
    scheduled: SimTime,
}

/// The VIs of a network.
#[derive(Debug, Default)]
pub(super) struct Vis {
    nics: Vec<HostNic>,
    /// Packets on their way.
    packets: Slab<Packet>,
}

/// All memory of a process: one region, and descriptors and data of message n at multiples of [`STRIDE`].
const MEMORY: u64 = 1 << 30;
const STRIDE_BITS: u32 = 30;
const MEMORY_OCTETS: u64 = 1 << 62;
/// Send descriptors of a VI that are under way at most.
const SEND_DESCRIPTORS: u32 = 64;
/// The check sequence behind a packet.
const FCS_OCTETS: Bytes = Bytes::new(4);

const fn address_of(host: u32) -> HostAddress {
    let [a, b, c, d] = host.to_be_bytes();
    HostAddress([2, 0, a, b, c, d])
}

const fn host_of(address: HostAddress) -> u32 {
    let HostAddress([_, _, a, b, c, d]) = address;
    u32::from_be_bytes([a, b, c, d])
}

/// The number of the message whose data lie there.
const fn number_of(address: u64) -> u64 {
    (address - MEMORY) >> STRIDE_BITS
}

fn attributes(config: &ViConfig, host: u32) -> NicAttributes {
    let local = address_of(host);
    let kind = match config.emulation {
        Emulation::Kernel => NicAttributes::m_via(local),
        Emulation::Adapter => NicAttributes::adapter(local),
    };
    NicAttributes {
        max_register_bytes: u64::MAX,
        max_register_block: u64::MAX,
        max_transfer: config.max_transfer.get() as u32,
        native_mtu: (config.mtu.get() - NicAttributes::FRAGMENT_HEADER) as u32,
        ..kind
    }
}

impl Lan {
    /// Gives every host its NIC, connects them in no time, and gives every rank its library.
    pub(super) fn open_nics(&mut self, config: &ViConfig) {
        let size = self.size();
        let now = self.core.now();
        for host in 0..size {
            let mut nic = Nic::new(attributes(config, host));
            let (ptag, memory) = open_memory(&mut nic);
            let vi = ViAttributes {
                reliability: config.reliability,
                max_transfer: config.max_transfer,
                qos: 0,
                ptag,
                enable_rdma_write: true,
                enable_rdma_read: false,
                send_cq: None,
                receive_cq: None,
            };
            let lines = (0..size).filter(|&peer| peer != host).map(|peer| Line {
                vi: nic.create_vi(vi).expect("a VI to each of 63 hosts"),
                peer,
                sent: VecDeque::new(),
                posted: 0,
                arrived: VecDeque::new(),
                came: SegmentId::NONE,
                over: false,
            });
            let lines = lines.collect();
            self.vis.nics.push(HostNic {
                nic,
                memory,
                lines,
                next: 0,
                coming: VecDeque::new(),
                at_hand: None,
                due: SimTime::MAX,
                scheduled: SimTime::MAX,
            });
            for line in 0..size - 1 {
                (0..config.buffers).for_each(|_| self.post_receive_descriptor(host, line));
                let one = &mut self.vis.nics[host as usize];
                let (vi, peer) = (one.lines[line as usize].vi, one.lines[line as usize].peer);
                let pair = [host.min(peer), host.max(peer)].map(u32::to_be_bytes).concat();
                let remote = Address { host: address_of(peer), discriminator: pair.clone() };
                let asked = one.nic.connect_peer_request(now, vi, &pair, &remote, None);
                asked.expect("a VI that is idle, and a discriminator of 8 octets");
            }
        }
        self.make_connections(now);
        self.start_runtimes();
        for host in 0..size {
            for line in 0..size - 1 {
                let peer = self.vis.nics[host as usize].lines[line as usize].peer;
                self.give_connection(host, ConnectionId(line), peer);
            }
        }
    }

    /// Hands the packets of connections over until there are none.
    fn make_connections(&mut self, now: SimTime) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for host in 0..self.vis.nics.len() {
                let mut sent = Vec::new();
                loop {
                    match self.vis.nics[host].nic.poll_output() {
                        Output::Transmit(packet) => sent.push(packet),
                        Output::Timeout(_) => break,
                        _ => {}
                    }
                }
                for packet in sent {
                    quiet = false;
                    let to = host_of(packet.to) as usize;
                    self.vis.nics[to].nic.handle_packet(now, &packet);
                }
            }
        }
        debug_assert!(self.vis.nics.iter().all(|one| {
            let connected =
                |line: &Line| one.nic.query_vi(line.vi).is_ok_and(|(state, ..)| state == ViState::Connected);
            one.lines.iter().all(connected)
        }));
    }

    fn post_receive_descriptor(&mut self, host: u32, line: u32) {
        let (now, over_via) = (self.core.now(), self.config.stack.message == Message::Via);
        let Some(length) =
            self.config.vi.as_ref().map(|vi| if over_via { vi.max_transfer } else { vi.buffer })
        else {
            return;
        };
        let one = &mut self.vis.nics[host as usize];
        let (vi, handle) = (one.lines[line as usize].vi, one.memory);
        let place = Place { address: MEMORY, handle };
        let descriptor =
            Descriptor::new(&[DataSegment { address: MEMORY, handle, length: length.get() as u32 }]);
        let posted = one.nic.post(now, vi, QueueKind::Receive, place, Ok(descriptor));
        debug_assert!(posted.is_ok(), "the VI is of this NIC");
    }

    // Calls of libraries

    /// Goes as far with a call over VIs as it can.
    pub(super) fn attempt_vi(&mut self, here: ThreadAt, process: u32, call: Call) {
        match call {
            Call::Post { connection, content, way } => {
                let line = &self.vis.nics[here.host as usize].lines[connection.0 as usize];
                if line.over {
                    return self.outcome(here, process, Outcome::Ended { connection });
                }
                if line.posted >= SEND_DESCRIPTORS {
                    let call = Call::Post { connection, content, way };
                    return self.sleep(here, process, call);
                }
                self.post_send_descriptor(here.host, connection.0, content, way);
                let call = Call::Post { connection, content: Content::new(), way };
                self.runtimes[process as usize].current = Some(call);
                self.insert(here, &[Step::Do(Action::Wrote { process })]);
                self.drain_vi(here.host, Some(here), SegmentId::NONE);
            }
            Call::Read { connection, .. } => {
                let line = &mut self.vis.nics[here.host as usize].lines[connection.0 as usize];
                let (came, over) = (line.came, line.over);
                match line.arrived.pop_front() {
                    Some(mut content) => {
                        let repost = Step::Do(Action::Repost { process, line: connection.0 });
                        self.insert(here, &[Step::After(came), repost]);
                        let outcome = Outcome::Read { connection, content: &mut content };
                        self.outcome(here, process, outcome);
                    }
                    None if over => self.outcome(here, process, Outcome::Ended { connection }),
                    None => {
                        let outcome = Outcome::Read { connection, content: &mut Content::new() };
                        self.outcome(here, process, outcome);
                    }
                }
            }
            Call::Select { .. } => {
                let ready = self.vi_ready(process);
                if ready.is_empty() && !self.looks(process) {
                    return self.sleep(here, process, call);
                }
                self.outcome(here, process, Outcome::Ready(&ready));
                if ready.is_empty() {
                    let poll = self.fee(here.host, Activity::ViaPoll);
                    self.insert(here, &[poll]);
                }
            }
            _ => debug_assert!(false, "libraries over VIs make no calls of sockets"),
        }
    }

    /// Lines with something to read, or that are over and not told of.
    fn vi_ready(&self, process: u32) -> Vec<Ready> {
        let lines = self.vis.nics[process as usize].lines.iter().enumerate();
        let ready = lines.filter(|(_, line)| !line.arrived.is_empty() || line.over);
        ready.map(|(at, _)| Ready::Readable(ConnectionId(at as u32))).collect()
    }

    /// Whether a call that looks again and again would find something.
    pub(super) fn vi_may_go_on(&self, process: u32, call: &Call) -> bool {
        match call {
            Call::Post { connection, .. } => {
                let line = &self.vis.nics[process as usize].lines[connection.0 as usize];
                line.over || line.posted < SEND_DESCRIPTORS
            }
            Call::Select { .. } => !self.vi_ready(process).is_empty(),
            _ => true,
        }
    }

    fn post_send_descriptor(&mut self, host: u32, line: u32, content: Content, way: Way) {
        let now = self.core.now();
        let one = &mut self.vis.nics[host as usize];
        let number = one.next;
        one.next += 1;
        let immediate = match way {
            Way::Immediate => content.peek_words::<1>().map(|[word]| word),
            Way::Send | Way::Write => None,
        };
        let beside = if immediate.is_some() { Bytes::new(4) } else { Bytes::new(0) };
        let length = (content.length() - beside).get() as u32;
        let handle = one.memory;
        let address = MEMORY + (number << STRIDE_BITS);
        let data = [DataSegment { address, handle, length }];
        let descriptor = match way {
            // Every process has registered the same region under the same handle.
            Way::Write => {
                Descriptor::rdma(Operation::RdmaWrite, AddressSegment { address: MEMORY, handle }, &data)
            }
            Way::Send | Way::Immediate => Descriptor { immediate, ..Descriptor::new(&data) },
        };
        let at = &mut one.lines[line as usize];
        at.posted += 1;
        if way != Way::Write {
            at.sent.push_back((number, content));
        }
        let vi = at.vi;
        let posted = one.nic.post(now, vi, QueueKind::Send, Place { address, handle }, Ok(descriptor));
        debug_assert!(posted.is_ok(), "the VI is of this NIC");
    }

    /// The process posts a receive descriptor again.
    pub(super) fn repost(&mut self, here: ThreadAt, process: u32, line: u32) {
        debug_assert_eq!(here.host, process, "one rank lives on a here.host");
        self.post_receive_descriptor(here.host, line);
        self.drain_vi(here.host, Some(here), SegmentId::NONE);
    }

    // Packets

    fn is_emulated(&self) -> bool {
        self.config.vi.as_ref().is_some_and(|vi| vi.emulation == Emulation::Kernel)
    }

    /// Whether a packet that has come is one that an adapter takes by itself.
    pub(super) fn is_for_adapter(&self, packet: u32) -> bool {
        self.config.stack.message.is_over_vis() && !self.is_emulated() && packet != super::load::LOAD_PACKET
    }

    /// An emulation that finds no room in the adapter's ring looks again when a frame may have left it.
    pub(super) fn waits_for_ring(&mut self, here: ThreadAt, packet: u32, to: u32, octets: Bytes) -> bool {
        let (NetworkConfig::Gige(config), true) =
            (&self.config.network, self.config.stack.message.is_over_vis())
        else {
            return false;
        };
        let adapter = config.adapter;
        let now = self.core.now();
        let full = self.medium.as_mut().is_some_and(|medium| {
            medium.advance(now);
            !medium.has_room(here.host)
        });
        if full {
            let again = adapter.bus_setup + adapter.bus_byte * octets.get() + adapter.frame;
            // At least something, or it would never pass.
            let again = Step::Charge(Activity::FifoFull, again.max(Span::from_ns(100)));
            self.insert(here, &[again, Step::Do(Action::Transmit { packet, to, octets })]);
        }
        full
    }

    /// A packet is lost.
    pub(super) fn vi_lost(&mut self, packet: u32) {
        self.vis.packets.remove(packet);
    }

    /// A packet comes to the NIC of a host: in its handler, or at the adapter.
    pub(super) fn take_vi(
        &mut self,
        host: u32,
        thread: Option<ThreadAt>,
        carried: Carried,
        trail: SegmentId,
    ) {
        let Carried::Vi { packet, .. } = carried else { return };
        let packet = self.vis.packets.remove(packet);
        let now = self.core.now();
        let one = &mut self.vis.nics[host as usize];
        one.at_hand = match &packet.body {
            Body::Fragment(fragment) => {
                fragment.data.origin().map(|address| (host_of(packet.from), number_of(address)))
            }
            _ => None,
        };
        let refused = |nic: &Nic| nic.counters().refused + nic.counters().broken;
        let before = refused(&one.nic);
        one.nic.handle_packet(now, &packet);
        self.unread += refused(&one.nic) - before;
        self.drain_vi(host, thread, trail);
        self.vis.nics[host as usize].at_hand = None;
    }

    /// Does what a NIC asks for since it was called. Without a thread the adapter does it, at once.
    fn drain_vi(&mut self, host: u32, thread: Option<ThreadAt>, trail: SegmentId) {
        let mut steps = Vec::new();
        loop {
            match self.vis.nics[host as usize].nic.poll_output() {
                Output::Work(work) => self.charge_vi(host, &work, &mut steps),
                Output::Transmit(packet) => {
                    let (octets, to) = (packet.length() + FCS_OCTETS, host_of(packet.to));
                    let packet = self.vis.packets.insert(packet);
                    let packet = self.add_packet(Carried::Vi { packet, octets });
                    if thread.is_some() {
                        steps.push(Step::Do(Action::Transmit { packet, to, octets }));
                    } else {
                        self.transmit_frame(host, packet, to, octets, trail);
                    }
                }
                Output::Deliver(_) => {}
                Output::Event(event) => self.vi_event(host, thread, trail, event, &mut steps),
                Output::Timeout(due) => {
                    self.set_vi_timer(host, due);
                    break;
                }
            }
        }
        if let Some(thread) = thread {
            self.insert(thread, &steps);
        }
    }

    /// What the processor pays of a NIC's work.
    fn charge_vi(&self, host: u32, work: &Work, steps: &mut Vec<Step<Action>>) {
        match work.kind {
            WorkKind::Doorbell
            | WorkKind::FastTrap
            | WorkKind::RegisterMemory
            | WorkKind::DeregisterMemory => self.charge(host, work, steps),
            _ if !self.is_emulated() => {}
            WorkKind::CopyOut => steps.push(self.price(host, Activity::ViaCopy, work.bytes, work.bytes)),
            _ => self.charge(host, work, steps),
        }
    }

    fn vi_event(
        &mut self,
        host: u32,
        thread: Option<ThreadAt>,
        trail: SegmentId,
        event: Event,
        steps: &mut Vec<Step<Action>>,
    ) {
        let one = &mut self.vis.nics[host as usize];
        let line_of = |lines: &[Line], vi| lines.iter().position(|line| line.vi == vi).map(|at| at as u32);
        match event {
            Event::Completed(vi, QueueKind::Send) => {
                let taken = one.nic.send_done(vi);
                debug_assert!(!matches!(taken, Err(wiretwin_msg::via::DoneError::NotDone)), "it was told of");
                if let Some(line) = line_of(&one.lines, vi) {
                    one.lines[line as usize].posted -= 1;
                    self.rouse_library(host, trail);
                }
            }
            Event::Completed(vi, QueueKind::Receive) => {
                let done = one.nic.recv_done(vi);
                let (Ok(_), Some(line), Some((from, number))) = (done, line_of(&one.lines, vi), one.at_hand)
                else {
                    return;
                };
                let back = from_line(host, from);
                let sent = &mut self.vis.nics[from as usize].lines[back as usize].sent;
                // Those before it were lost.
                let content = loop {
                    match sent.pop_front() {
                        Some((other, _)) if other < number => {}
                        Some((_, content)) => break content,
                        None => return,
                    }
                };
                self.vis.nics[host as usize].coming.push_back((line, content));
                if thread.is_some() {
                    steps.push(Step::Do(Action::ViCame));
                } else {
                    self.vi_came(host, trail);
                }
            }
            Event::Asynchronous(_) => {
                for line in &mut one.lines {
                    let state = one.nic.query_vi(line.vi).map(|(state, ..)| state);
                    line.over |= state.is_ok_and(|state| state != ViState::Connected);
                }
                self.rouse_library(host, trail);
            }
            Event::Notified(..) | Event::CqNotified(..) | Event::Answered(_) | Event::Asked => {}
        }
    }

    /// A message stands before the process of a host.
    pub(super) fn vi_came(&mut self, host: u32, trail: SegmentId) {
        let one = &mut self.vis.nics[host as usize];
        let Some((line, content)) = one.coming.pop_front() else { return };
        let at = &mut one.lines[line as usize];
        at.arrived.push_back(content);
        at.came = trail;
        self.rouse_library(host, trail);
    }

    // Timers

    fn set_vi_timer(&mut self, host: u32, due: Option<SimTime>) {
        let now = self.core.now();
        let one = &mut self.vis.nics[host as usize];
        one.due = due.unwrap_or(SimTime::MAX);
        if one.due < one.scheduled {
            one.scheduled = one.due.max(now);
            let time = one.scheduled;
            self.core.at(time, LanEvent::Vi(host));
        }
    }

    /// A timer of a host's NIC may be due.
    pub(super) fn vi_due(&mut self, host: u32) {
        let now = self.core.now();
        let one = &mut self.vis.nics[host as usize];
        if now != one.scheduled {
            return;
        }
        one.scheduled = SimTime::MAX;
        if one.due > now {
            let due = (one.due < SimTime::MAX).then_some(one.due);
            return self.set_vi_timer(host, due);
        }
        if self.is_emulated() {
            let timer = self.hosts[host as usize].timer;
            self.wake(timer, &[Step::Do(Action::ViExpire)]);
        } else {
            self.vis.nics[host as usize].nic.handle_timeout(now);
            self.drain_vi(host, None, SegmentId::NONE);
        }
    }

    /// It has run out, and the kernel sees to it.
    pub(super) fn vi_expire(&mut self, here: ThreadAt) {
        let now = self.core.now();
        self.vis.nics[here.host as usize].nic.handle_timeout(now);
        self.drain_vi(here.host, Some(here), SegmentId::NONE);
    }
}

/// Which line of a host leads to another.
const fn from_line(to: u32, from: u32) -> u32 {
    if to > from { to - 1 } else { to }
}

/// All memory of a process, registered.
fn open_memory(nic: &mut Nic) -> (Ptag, MemoryHandle) {
    let ptag = nic.create_ptag().expect("the first tag of a NIC");
    let attributes = MemoryAttributes { ptag, enable_rdma_write: true, enable_rdma_read: false };
    let memory = nic.register_mem(MEMORY, MEMORY_OCTETS, attributes).expect("the first region of a NIC");
    (ptag, memory)
}

#[cfg(test)]
mod tests;
