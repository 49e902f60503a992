//! A host: what its processes and interrupt handlers do on its processor.

use wiretwin_engine::Stream;
use wiretwin_msg::library::{CircuitId, Done, SocketId};
use wiretwin_msg::matching::Envelope;
use wiretwin_proto::{MessageId, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

use super::activity::Activity;
use super::cell::Cell;
use super::config::{AdapterConfig, HostConfig};
use super::core::LanEvent;
use super::cpu::{Cpu, Level, Next, Step, ThreadId};
use super::datagram::DatagramId;
use super::stack::{Message, Transport};
use super::trail::SegmentId;
use super::{
    Anatomy, Arrived, Completion, Kind, Lan, Look, MESSAGE_CAME, RESUMED, Request, RequestId, State,
};

/// What a thread does once the steps before are paid.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// A process calls send.
    Begin { message: RequestId },
    /// A PDU goes to the adapter.
    Hand { circuit: u32, payload: Payload },
    /// So does a message of signalling.
    Pass { circuit: u32, payload: Payload },
    /// A process begins to set its circuits up.
    Enroll { process: u32 },
    /// The host cuts the next cell off what a circuit has to send.
    Segment { circuit: u32 },
    /// A cell wants room in the adapter's FIFO.
    Room { adapter: u32, cell: Cell },
    /// A cell is in the adapter's FIFO.
    Put { adapter: u32, cell: Cell },
    /// The send call has returned.
    Sent { message: RequestId },
    /// A process sees to what it waits for.
    Progress { rank: u32 },
    /// A process has a PDU in its own memory.
    Took { rank: u32, payload: Payload },
    /// An interrupt handler takes the next thing from its adapter.
    Handle { adapter: u32 },
    /// A PDU stands at its stream head.
    Deliver { circuit: u32, payload: Payload },
    // Of datagrams between ranks.
    /// UDP takes a message.
    SendRankDatagram { message: RequestId },
    /// A host has given up fragments.
    Reassembled,
    /// A datagram stands before the reader of a host.
    RankDatagramCame,
    /// A process reads a datagram.
    ReadRankDatagram { rank: u32 },
    // Of sockets.
    /// A process writes the next piece.
    Write { rank: u32 },
    /// A process reads what has come from another.
    Read { rank: u32, from: u32 },
    /// It has that in its own memory.
    Got { rank: u32, from: u32, octets: Bytes },
    /// A packet goes to the adapter.
    Transmit { packet: u32, to: u32, octets: Bytes },
    /// A packet comes to its connection.
    Input { packet: u32 },
    /// A connection's timer has run out.
    Expire { end: u32 },
    /// There is something to read.
    Readable { end: u32 },
    /// There is room to write.
    Writable { end: u32 },
    /// A connection is open, or over.
    Changed { end: u32 },
    // Of libraries.
    /// A process asks its library for what it has posted.
    Ask { process: u32, request: RequestId },
    /// It takes a receive back.
    Withdraw { process: u32, request: RequestId },
    /// It ends.
    Leave { process: u32 },
    /// It makes the next system call that the library wants.
    Call { process: u32 },
    /// It is in that call, and looks whether it can go on.
    Attempt { process: u32 },
    /// It reads what there is.
    Fetch { process: u32 },
    /// It has that in its own memory.
    Fetched { process: u32, octets: Bytes },
    /// All that it writes is taken.
    Wrote { process: u32 },
    /// PDUs go to the adapter from memory that is mapped.
    Post { process: u32 },
    /// There is a buffer of mapped memory again for who writes there.
    MappedRoom { end: u32 },
    /// A datagram has left it.
    SentDatagram { process: u32, socket: SocketId },
    /// A datagram is there for a socket.
    DatagramCame { socket: u32, datagram: DatagramId },
    /// A process has a datagram in its own memory.
    TakeDatagram { process: u32, socket: u32 },
    // Of VIs.
    /// A message stands before the process of a host.
    ViCame,
    /// The receive descriptor that a process has read is posted again.
    Repost { process: u32, line: u32 },
    /// A timer of a host's VIs has run out.
    ViExpire,
    /// A PDU has left it.
    SentPdu { process: u32, circuit: CircuitId },
    /// A PDU is there for a circuit.
    PduCame { circuit: u32, packet: u32 },
    /// A process has a PDU in its own memory.
    TakePdu { process: u32, circuit: CircuitId, packet: u32 },
    /// The library has done something that was asked.
    Done { process: u32, done: Done },
}

/// A thread, and the host whose processor it is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadAt {
    pub(super) host: u32,
    pub(super) thread: ThreadId,
}

pub(super) struct Host {
    pub(super) cpu: Cpu<Action>,
    pub(super) config: HostConfig,
    /// Where the timers of protocols run.
    pub(super) timer: ThreadAt,
    bus_free: SimTime,
    background: Option<Background>,
}

struct Background {
    stream: Stream,
    clock: ThreadId,
    others: ThreadId,
}

impl Host {
    pub(super) fn new(number: u16, config: HostConfig, stream: Option<Stream>) -> Self {
        let mut cpu = Cpu::new(number);
        let timer = ThreadAt { host: number.into(), thread: cpu.thread(Level::Interrupt) };
        let background = stream.map(|stream| Background {
            stream,
            clock: cpu.thread(Level::Interrupt),
            others: cpu.thread(Level::Process),
        });
        Self { cpu, config, timer, bus_free: SimTime::ZERO, background }
    }

    /// When so many bytes would have crossed the bus, if nobody has it.
    pub(super) fn would_cross(&self, now: SimTime, bytes: Bytes) -> Option<SimTime> {
        let bus = &self.config.bus;
        (self.bus_free <= now).then(|| now + bus.setup + bus.byte * bytes.get())
    }

    /// Takes the bus for so many bytes behind whoever has it: from when to when.
    pub(super) fn take_bus(&mut self, now: SimTime, bytes: Bytes) -> (SimTime, SimTime) {
        let start = now.max(self.bus_free);
        self.bus_free = start + self.config.bus.setup + self.config.bus.byte * bytes.get();
        (start, self.bus_free)
    }
}

impl Lan {
    /// Runs a host's processor until it is busy or has nothing to do.
    pub(super) fn run_cpu(&mut self, host: u32) {
        loop {
            let now = self.core.now();
            match self.hosts[host as usize].cpu.next(now, &self.core.trail) {
                Next::Act(thread, action) => self.act(ThreadAt { host, thread }, action),
                Next::Busy(end, number) => {
                    // Where nothing else is to be done before, it need not go through the queue.
                    let alone =
                        self.stirred.is_empty() && self.resumed.is_empty() && self.core.future.pass(end);
                    if !alone {
                        return self.core.at(end, LanEvent::Cpu { host: host as u16, charge: number });
                    }
                    self.hosts[host as usize].cpu.finish(number, end, &mut self.core.trail);
                }
                Next::Idle => return,
            }
        }
    }

    /// Gives a thread something to do behind what it has, and its host a look at it.
    pub(super) fn wake(&mut self, here: ThreadAt, steps: &[Step<Action>]) {
        let now = self.core.now();
        let cpu = &mut self.hosts[here.host as usize].cpu;
        for step in steps {
            cpu.append(here.thread, *step);
        }
        cpu.wake(here.thread, now, &mut self.core.trail);
        self.stirred.push(here.host);
    }

    /// Gives a rank's process an action behind what it has to do.
    pub(super) fn give(&mut self, rank: u32, action: Action) {
        self.wake(self.processes[rank as usize].here, &[Step::Do(action)]);
    }

    /// The program's own work.
    pub(super) fn charge_program(&mut self, rank: u32, span: Span) {
        self.wake(self.processes[rank as usize].here, &[Step::Charge(Activity::Compute, span)]);
    }

    /// An interrupt handler has something to do, which came with this.
    pub(super) fn raise(&mut self, here: ThreadAt, after: SegmentId, adapter: u32) {
        let entry = self.fee(here.host, Activity::Interrupt);
        let handle = Step::Do(Action::Handle { adapter });
        self.wake(here, &[Step::After(after), entry, handle]);
    }

    /// What an activity costs on a host.
    pub(super) fn price(&self, host: u32, activity: Activity, bytes: Bytes, message: Bytes) -> Step<Action> {
        Step::Charge(activity, self.hosts[host as usize].config.prices.of(activity, bytes, message))
    }

    /// What an activity costs on a host, whatever it is done to.
    pub(super) fn fee(&self, host: u32, activity: Activity) -> Step<Action> {
        self.price(host, activity, Bytes::ZERO, Bytes::ZERO)
    }

    /// What a thread's next step comes after.
    pub(super) fn trail_of(&self, here: ThreadAt) -> SegmentId {
        self.hosts[here.host as usize].cpu.trail(here.thread)
    }

    /// Puts steps before those that a thread has.
    pub(super) fn insert(&mut self, here: ThreadAt, steps: &[Step<Action>]) {
        self.hosts[here.host as usize].cpu.prepend(here.thread, steps);
    }

    /// The same of steps whose memory is that of [`Lan::scratch`].
    pub(super) fn insert_all(&mut self, here: ThreadAt, mut steps: Vec<Step<Action>>) {
        self.insert(here, &steps);
        steps.clear();
        self.scratch = steps;
    }

    /// A send, as the Fore interface does it: per PDU a system call, its work, a copy, the adapter.
    pub(super) fn start_send(&mut self, rank: u32, request: RequestId) {
        let here = self.processes[rank as usize].here;
        let most = self.config.pdu_bytes.get();
        let Some(&mut message) = self.message(request) else { return };
        let circuit = self.circuit_between(rank, message.to);
        self.wake(here, &[Step::Do(Action::Begin { message: request })]);
        let total = message.bytes.get();
        let mut start = 0;
        while start < total {
            let length = Bytes::new(most.min(total - start));
            let payload = Payload { message: MessageId(request.0), start: Bytes::new(start), length };
            let steps = [
                self.price(here.host, Activity::Trap, length, message.bytes),
                self.price(here.host, Activity::ForeSend, length, message.bytes),
                self.price(here.host, Activity::CopyIn, length, message.bytes),
                Step::Do(Action::Hand { circuit, payload }),
            ];
            self.wake(here, &steps);
            start += length.get();
        }
        self.wake(here, &[Step::Do(Action::Sent { message: request })]);
    }

    /// A receive is posted: perhaps its message is here already.
    pub(super) fn post_receive(&mut self, rank: u32, request: RequestId) {
        let found = self.processes[rank as usize]
            .unexpected
            .iter()
            .position(|message| self.accepts(request, *message));
        match found {
            Some(at) => {
                if let Some(message) = self.processes[rank as usize].unexpected.remove(at) {
                    self.complete(request, message);
                }
            }
            None => self.processes[rank as usize].posted.push_back(request),
        }
    }

    /// A process begins a message: perhaps its first to that peer.
    fn charge_first_use(&mut self, here: ThreadAt, request: RequestId) {
        let first = self.config.first_use;
        let Some(slot) = self.find(request) else { return };
        let (Kind::Send(message), rank) = (self.requests[slot].kind, self.requests[slot].rank) else {
            return;
        };
        if self.processes[rank as usize].reached.insert(message.to) {
            self.insert(here, &[Step::Charge(Activity::FirstUse, first)]);
        }
    }

    fn accepts(&self, receive: RequestId, message: RequestId) -> bool {
        let (Some(receive), Some(sent)) = (self.find(receive), self.find(message)) else { return false };
        match (self.requests[receive].kind, self.requests[sent].kind) {
            (Kind::Recv { pattern, .. }, Kind::Send(message)) => {
                let (context, tag) = (message.context, message.tag);
                pattern.accepts(&Envelope { context, source: self.requests[sent].rank, tag })
            }
            _ => false,
        }
    }

    pub(super) fn complete(&mut self, receive: RequestId, of: RequestId) {
        if let Some(slot) = self.find(receive) {
            self.requests[slot].complete = true;
            if let Kind::Recv { message, .. } = &mut self.requests[slot].kind {
                *message = of;
            }
        }
        if let Some(message) = self.message(of) {
            message.matched = true;
        }
    }

    fn act(&mut self, here: ThreadAt, action: Action) {
        match action {
            Action::Begin { message } => {
                let now = self.core.now();
                let begin = self.core.trail.begin(message.0, now, here.host as u16);
                self.hosts[here.host as usize].cpu.set_trail(here.thread, begin);
                self.charge_first_use(here, message);
                if let Some(message) = self.message(message) {
                    (message.begun, message.begin) = (now, begin);
                }
            }
            Action::Hand { circuit, payload } => {
                self.capture_pdu(here.host, circuit, &payload);
                self.hand(here, circuit, payload);
            }
            Action::Pass { circuit, payload } => self.hand(here, circuit, payload),
            Action::Enroll { process } => self.enroll(here, process),
            Action::Segment { circuit } => self.segment(here, circuit),
            Action::Room { adapter, cell } => self.room(here, adapter, cell),
            Action::Put { adapter, mut cell } => {
                cell.trail = self.trail_of(here);
                let out = self.adapters[adapter as usize].out;
                self.core.send(out, cell);
            }
            Action::Sent { message } => {
                if let Some(slot) = self.find(message) {
                    self.requests[slot].complete = true;
                }
            }
            Action::Progress { rank } => match self.config.stack.message {
                Message::Fore => self.progress(here, rank),
                Message::Socket if self.config.stack.transport == Transport::Udp => {
                    self.datagram_progress(here, rank);
                }
                Message::Socket => self.socket_progress(here, rank),
                _ => self.turn(here, rank),
            },
            Action::Took { rank, payload } => self.took(here, rank, payload),
            Action::Handle { adapter } => self.handle_interrupt(here, adapter),
            Action::Deliver { circuit, payload } => {
                self.capture_pdu(here.host, circuit, &payload);
                self.deliver(here, circuit, payload);
            }
            Action::SendRankDatagram { message } => self.send_rank_datagram(here, message),
            Action::Reassembled => self.drain_datagrams(here),
            Action::RankDatagramCame => self.rank_datagram_came(here),
            Action::ReadRankDatagram { rank } => self.read_datagram(here, rank),
            Action::Write { rank } => self.write(here, rank),
            Action::Read { rank, from } => self.read(here, rank, from),
            Action::Got { rank, from, octets } => self.got(here, rank, from, octets),
            Action::Transmit { packet, to, octets } => self.send_packet(here, packet, to, octets),
            Action::Input { packet } => self.input(here, packet),
            Action::Expire { end } => self.expire(here, end),
            Action::Readable { end } => self.is_readable(here, end),
            Action::Writable { end } => self.is_writable(here, end),
            Action::Changed { end } => self.has_changed(here, end),
            Action::Ask { process, request } => self.ask(here, process, request),
            Action::Withdraw { process, request } => self.take_back(here, process, request),
            Action::Leave { process } => self.leave(here, process),
            Action::Call { process } => self.begin_call(here, process),
            Action::Attempt { process } => self.attempt(here, process),
            Action::Fetch { process } => self.fetch(here, process),
            Action::Fetched { process, octets } => self.fetched(here, process, octets),
            Action::Wrote { process } => self.wrote(here, process),
            Action::Post { process } => self.post_mapped(here, process),
            Action::MappedRoom { end } => self.mapped_room(here, end),
            Action::SentDatagram { process, socket } => self.sent_datagram(here, process, socket),
            Action::DatagramCame { socket, datagram } => self.datagram_came(here, socket, datagram),
            Action::TakeDatagram { process, socket } => self.take_datagram(here, process, socket),
            Action::ViCame => {
                let trail = self.trail_of(here);
                self.vi_came(here.host, trail);
            }
            Action::Repost { process, line } => self.repost(here, process, line),
            Action::ViExpire => self.vi_expire(here),
            Action::SentPdu { process, circuit } => self.sent_pdu(here, process, circuit),
            Action::PduCame { circuit, packet } => self.pdu_came(here, circuit, packet),
            Action::TakePdu { process, circuit, packet } => {
                self.take_received(here, process, circuit, packet);
            }
            Action::Done { process, done } => self.library_done(here, process, done),
        }
    }

    pub(super) fn hand(&mut self, here: ThreadAt, circuit: u32, payload: Payload) {
        let taken = self.circuits[circuit as usize].sender.send(payload);
        debug_assert!(taken, "the PDU limit is one that the adaptation layer carries");
        self.circuits[circuit as usize].handed.push_back(payload);
        match self.hosts[here.host as usize].config.adapter {
            AdapterConfig::Series100 { .. } => {
                self.insert(here, &[Step::Do(Action::Segment { circuit })]);
            }
            AdapterConfig::Series200 { .. } | AdapterConfig::Frames => {
                let trail = self.trail_of(here);
                let adapter = self.circuits[circuit as usize].from;
                self.take_pdu(adapter, circuit, trail);
            }
        }
    }

    /// A rank that waits has found nothing to read: it sleeps, after it has entered the kernel and looked there.
    pub(super) fn found_nothing(&mut self, here: ThreadAt, rank: u32, entry: Step<Action>) {
        let process = &mut self.processes[rank as usize];
        if process.in_call || process.write_blocked {
            process.asleep = true;
        } else {
            process.in_call = true;
            self.insert(here, &[entry, Step::Do(Action::Progress { rank })]);
        }
    }

    /// What a process does while it waits: reads what is there, else sleeps.
    fn progress(&mut self, here: ThreadAt, rank: u32) {
        if self.processes[rank as usize].state != State::Waiting {
            return;
        }
        if self.resume_if_done(rank) {
            return;
        }
        let size = self.size();
        let ready = (0..size)
            .filter(|&from| from != rank && self.wants_from(rank, from))
            .map(|from| self.circuit_between(from, rank))
            .find(|circuit| !self.circuits[*circuit as usize].arrived.is_empty());
        let entry = self.fee(here.host, Activity::Trap);
        let Some(circuit) = ready else { return self.found_nothing(here, rank, entry) };
        let entered = core::mem::take(&mut self.processes[rank as usize].in_call);
        let circuit = &mut self.circuits[circuit as usize];
        let Some(Arrived { payload, trail }) = circuit.arrived.pop_front() else { return };
        circuit.arrived_bytes -= payload.length;
        let message = self.message(RequestId(payload.message.0)).map_or(payload.length, |one| one.bytes);
        let steps = [
            Step::After(trail),
            if entered { Step::Charge(Activity::Trap, Span::ZERO) } else { entry },
            self.price(here.host, Activity::ForeReceive, payload.length, message),
            self.price(here.host, Activity::CopyOut, payload.length, message),
            Step::Do(Action::Took { rank, payload }),
            Step::Do(Action::Progress { rank }),
        ];
        self.insert(here, &steps);
    }

    fn took(&mut self, here: ThreadAt, rank: u32, payload: Payload) {
        let id = RequestId(payload.message.0);
        let Some(message) = self.message(id) else { return };
        message.arrived += payload.length;
        if message.arrived < message.bytes {
            return;
        }
        self.message_came(here, rank, id);
    }

    /// A process has the whole of a message: it goes to the first receive that accepts it.
    pub(super) fn message_came(&mut self, here: ThreadAt, rank: u32, id: RequestId) {
        self.note_message(here, rank, id);
        let found =
            self.processes[rank as usize].posted.iter().position(|receive| self.accepts(*receive, id));
        match found {
            Some(at) => {
                if let Some(receive) = self.processes[rank as usize].posted.remove(at) {
                    self.complete(receive, id);
                }
            }
            None => self.processes[rank as usize].unexpected.push_back(id),
        }
    }

    /// Takes note of a message that a process has.
    pub(super) fn note_message(&mut self, here: ThreadAt, rank: u32, id: RequestId) {
        let Some(message) = self.message(id) else { return };
        let (bytes, begun) = (message.bytes, message.begun);
        self.core.observe(MESSAGE_CAME, u64::from(rank), bytes.get());
        if self.core.trail.is_on() {
            let from = self.find(id).map_or(rank, |slot| self.requests[slot].rank);
            let last = self.trail_of(here);
            let ended = self.core.now();
            let parts = self.core.trail.path(last, begun, ended);
            self.anatomies.push(Anatomy { ranks: (from, rank), bytes, begun, ended, parts });
        }
    }

    /// A rank goes on, with these requests, which are complete and are no more.
    pub(super) fn resume(&mut self, rank: u32, requests: &[RequestId]) {
        let mut completions = core::mem::take(&mut self.processes[rank as usize].completions);
        completions.clear();
        self.processes[rank as usize].failures.clear();
        for &request in requests {
            completions.extend(self.returned(rank, request));
        }
        let process = &mut self.processes[rank as usize];
        process.completions = completions;
        process.state = State::Running;
        process.look = Look::No;
        let here = process.here;
        self.hosts[here.host as usize].cpu.returned(here.thread);
        self.resumed.push(rank);
        self.core.observe(RESUMED, u64::from(rank), requests.len() as u64);
    }

    /// What a request that is complete came to; it is no more, and nor is a message that both its ends have.
    fn returned(&mut self, rank: u32, request: RequestId) -> Option<Completion> {
        let slot = self.find(request)?;
        let Request { cancelled, number, .. } = self.requests[slot];
        let failure = self.requests[slot].failure.take();
        let mut completion = Completion {
            request,
            source: rank,
            tag: 0,
            bytes: Bytes::new(0),
            message: request,
            number,
            truncated: false,
            cancelled,
            failed: failure.is_some(),
        };
        if let Some(failure) = failure {
            self.processes[rank as usize].failures.push((request, *failure));
        }
        if completion.failed || cancelled {
            self.close(request);
            return Some(completion);
        }
        match self.requests[slot].kind {
            Kind::Recv { capacity, message: id, .. } => {
                let first = self.process_set_of(rank).unwrap_or(0);
                completion.source = self.find(id).map_or(rank, |sent| self.requests[sent].rank) - first;
                let sent = self.message(id).map(|message| {
                    message.takers -= 1;
                    *message
                });
                let Some(sent) = sent else {
                    self.close(request);
                    return None;
                };
                (completion.tag, completion.bytes, completion.message) = (sent.tag, sent.bytes, id);
                completion.truncated = sent.bytes > capacity;
                if sent.takers > 0 {
                    // It is on its way to others.
                } else if sent.returned {
                    self.close(id);
                } else if let Some(message) = self.message(id) {
                    message.arrived = Bytes::MAX;
                }
                self.close(request);
            }
            Kind::Send(message) => {
                (completion.tag, completion.bytes) = (message.tag, message.bytes);
                if message.arrived == Bytes::MAX {
                    self.close(request);
                } else if let Some(message) = self.message(request) {
                    message.returned = true;
                }
            }
            Kind::Free => return None,
        }
        Some(completion)
    }

    /// A PDU has come for a process: it stands at the stream head, and a sleeper is woken.
    fn deliver(&mut self, here: ThreadAt, circuit: u32, payload: Payload) {
        let trail = self.trail_of(here);
        let room = self.config.stream_bytes;
        let circuit = &mut self.circuits[circuit as usize];
        if circuit.arrived_bytes + payload.length > room {
            self.unread += 1;
            return;
        }
        circuit.arrived_bytes += payload.length;
        circuit.arrived.push_back(Arrived { payload, trail });
        let rank = circuit.to;
        self.rouse(here.host, rank, trail);
    }

    /// Wakes a rank's process, if it sleeps.
    pub(super) fn rouse(&mut self, host: u32, rank: u32, trail: SegmentId) {
        let process = &mut self.processes[rank as usize];
        if core::mem::take(&mut process.asleep) {
            let reader = process.here;
            let switch = self.fee(host, Activity::ContextSwitch);
            self.wake(reader, &[Step::After(trail), switch, Step::Do(Action::Progress { rank })]);
        }
    }

    // What else runs on a host

    pub(super) fn start_background(&mut self, host: u32) {
        let now = self.core.now();
        let at = &mut self.hosts[host as usize];
        let (Some(background), Some(config)) = (&mut at.background, at.config.background) else { return };
        let phase = config.tick.as_ps().checked_sub(1).map(|last| background.stream.within(0..=last));
        let pause = (config.wake > Span::ZERO).then(|| background.stream.exponential(config.wake));
        if let Some(phase) = phase {
            self.endless += 1;
            self.core.at(now + Span::from_ps(phase), LanEvent::Tick(host));
        }
        if let Some(pause) = pause {
            self.endless += 1;
            self.core.at(now + pause, LanEvent::Wake(host));
        }
    }

    pub(super) fn background_due(&mut self, host: u32, event: LanEvent) {
        let now = self.core.now();
        let at = &mut self.hosts[host as usize];
        let (Some(background), Some(config)) = (&mut at.background, at.config.background) else { return };
        let (thread, work, next) = if matches!(event, LanEvent::Tick(_)) {
            (background.clock, config.tick_work, config.tick)
        } else {
            let work = background.stream.exponential(config.wake_work);
            // At least a picosecond, so that time passes.
            let next = background.stream.exponential(config.wake).max(Span::from_ps(1));
            (background.others, work, next)
        };
        self.core.at(now + next, event);
        self.wake(ThreadAt { host, thread }, &[Step::Charge(Activity::Background, work)]);
    }
}
