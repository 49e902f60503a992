//! One task of a parallel program: its messages as a trace, its two circuits, its peer.
//!
//! A task is no program of ranks. Its trace says when each message is sent, whether or not the one before has come, and
//! nobody matches or answers them; what is simulated are the two machines of [`pcaal`] at its ends, which ask the port's
//! circuits for one cell after another. Ranks would put a library between: some 350 ns a message (the bench `messages`),
//! beside 42 ns for a cell with its source (the bench `service`), and none of it would be seen.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use wiretwin_engine::{Digest, Stream, Trace as _, TraceDigest, TraceEvent};
use wiretwin_proto::pcaal::{self, Circuit, ConfigError, Endpoint, Event, Kind, LocalClock, Pdu, Run};
use wiretwin_proto::{MessageId, Output, Payload, abr};
use wiretwin_units::{BitRate, Bytes, Cells, SimTime, Span, Transmitter};

use super::network::{CircuitReport, cell_time};

/// Which circuits a task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// The ordinary circuit, of unspecified rate, and no other.
    Ubr,
    /// The backup circuit, of available rate, and no other.
    Abr,
    /// Either, as the latency of the ordinary one is low or high.
    LmeEce,
}

/// A message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it is sent, from the beginning of the trace.
    pub at: Span,
    /// How many values it has, 1 or more.
    pub values: u32,
    /// Octets of each.
    pub kind: Kind,
}

/// What a task sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// In the order of their times; at least one.
    pub messages: Vec<Message>,
    /// After this it begins again; not before the last message.
    pub period: Span,
}

/// A task.
#[derive(Clone, Debug)]
pub struct TaskPlan {
    /// What it is called.
    pub name: String,
    /// The ports to its peer. Back to it nothing else is under way.
    pub path: Vec<usize>,
    /// From the task to the first port.
    pub access: Span,
    /// Of its own line, in cells of 424 bits: its ordinary circuit has no other peak rate.
    pub line: BitRate,
    /// Which circuits it may use.
    pub mechanism: Mechanism,
    /// At which its host makes cells of values, whatever the circuit, in cells of 424 bits; `None` for a host that
    /// has them all at once.
    pub source: Option<BitRate>,
    /// Its adaptation layer.
    pub layer: pcaal::Config,
    /// The clock of its peer.
    pub peer_clock: LocalClock,
    /// The contract of the backup circuit.
    pub backup: abr::Config,
    /// The peak rate of the control circuit, each way.
    pub control: BitRate,
    /// What it sends.
    pub trace: Arc<Trace>,
    /// When it begins.
    pub start: SimTime,
}

/// An end of a task's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Sender,
    Receiver,
}

/// What was seen of a task.
#[derive(Clone, Debug)]
pub struct TaskReport {
    /// Messages sent.
    pub messages: u64,
    /// From the call that sent a message to its last value, in the order of the messages.
    pub latencies: Vec<Span>,
    /// Of its machine.
    pub counters: pcaal::Counters,
    /// Data cells that were lost in queues.
    pub lost_data: u64,
    /// Other cells of it that were.
    pub lost_other: u64,
    /// The ordinary, the backup and the control circuit there.
    pub circuits: [CircuitReport; 3],
    /// Cells on the control circuit back.
    pub back: u64,
    /// How long it was in high-latency mode.
    pub high: Span,
    /// Values that did not come when they should have: none.
    pub misplaced: u64,
    /// The peer was given up.
    pub peer_lost: bool,
    /// Of every message's arrival and every change of mode.
    pub digest: Digest,
}

/// A task and its peer.
#[derive(Clone, Debug)]
pub(super) struct Task {
    sender: Endpoint,
    receiver: Endpoint,
    mechanism: Mechanism,
    /// The host, which makes one data cell after another.
    source: Option<Transmitter>,
    /// The ordinary and the backup circuit have not taken what they were handed.
    busy: [bool; 2],
    /// The host makes a cell, and has none before that one.
    making: bool,
    circuits: [usize; 3],
    timeouts: [Option<SimTime>; 2],
    trace: Arc<Trace>,
    /// The next message of the trace, and when it is sent.
    next: usize,
    next_at: SimTime,
    started: bool,
    /// By message that is under way: when it was sent and how many values it has.
    under_way: VecDeque<(SimTime, u32)>,
    sent: u64,
    /// The next value of the first message under way.
    value: u32,
    latencies: Vec<Span>,
    misplaced: u64,
    /// Of the control circuit back: a cell each time its peak rate has room for one.
    back_peak: Transmitter,
    cell_time: Span,
    back_delay: Span,
    back: u64,
    lost_data: u64,
    lost_other: u64,
    high_since: Option<SimTime>,
    high: Span,
    peer_lost: bool,
    digest: TraceDigest,
}

const ARRIVED: u32 = 0;
const MODE: u32 = 1;

impl Task {
    /// A task whose trace begins at any of its messages.
    pub(super) fn new(
        plan: &TaskPlan,
        circuits: [usize; 3],
        back_delay: Span,
        mut stream: Stream,
    ) -> Result<Self, ConfigError> {
        let watch = plan.layer.watch.filter(|_| plan.mechanism == Mechanism::LmeEce);
        let layer = pcaal::Config { watch, work: false, ..plan.layer };
        let next = stream.below(plan.trace.messages.len() as u64) as usize;
        // The first message leaves within a period of nothing in particular: it is not in step with others.
        let start = plan.start + stream.uniform(Span::ZERO..=layer.monitor_interval);
        Ok(Self {
            sender: Endpoint::new(layer)?,
            receiver: Endpoint::new(pcaal::Config { clock: plan.peer_clock, ..layer })?,
            mechanism: plan.mechanism,
            source: plan.source.map(Transmitter::new),
            busy: [false; 2],
            making: false,
            circuits,
            timeouts: [None; 2],
            next,
            next_at: start,
            started: false,
            trace: Arc::clone(&plan.trace),
            under_way: VecDeque::new(),
            sent: 0,
            value: 0,
            latencies: Vec::new(),
            misplaced: 0,
            back_peak: Transmitter::new(plan.control),
            cell_time: cell_time(plan.line),
            back_delay,
            back: 0,
            lost_data: 0,
            lost_other: 0,
            high_since: None,
            high: Span::ZERO,
            peer_lost: false,
            digest: TraceDigest::new(),
        })
    }

    pub(super) const fn circuits(&self) -> [usize; 3] {
        self.circuits
    }

    /// When it has something to do by itself.
    pub(super) fn due(&self) -> SimTime {
        let timers = self.timeouts.iter().flatten().copied().min().unwrap_or(SimTime::MAX);
        let made = self.source.filter(|_| self.making).map_or(SimTime::MAX, |source| source.free_at());
        timers.min(self.next_message()).min(made)
    }

    fn next_message(&self) -> SimTime {
        if self.peer_lost {
            return SimTime::MAX;
        }
        self.next_at
    }

    /// Lets time pass.
    pub(super) fn handle_time(&mut self, now: SimTime) {
        if !self.started {
            self.started = true;
            if self.mechanism == Mechanism::LmeEce {
                self.sender.start(now);
            }
        }
        while self.next_message() <= now {
            self.send(now);
        }
        if self.making && self.source.is_some_and(|source| source.free_at() <= now) {
            self.making = false;
            self.hold_back(now);
        }
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
    }

    fn send(&mut self, now: SimTime) {
        let Message { values, kind, .. } = self.trace.messages[self.next];
        let length = Bytes::new(u64::from(values) * kind.octets() as u64);
        let payload = Payload::whole(MessageId(self.sent), length);
        let sent = self.sender.send(now, self.sent as u32, &[Run { kind, payload }]);
        if sent.is_ok() {
            self.under_way.push_back((now, values));
            self.sent += 1;
        } else {
            self.peer_lost = true;
        }
        let Trace { messages, period } = &*self.trace;
        let here = messages[self.next].at.as_ps();
        self.next = (self.next + 1) % messages.len();
        let ahead = if self.next == 0 { period.as_ps() } else { 0 } + messages[self.next].at.as_ps();
        self.next_at = self.next_at.saturating_add(Span::from_ps(ahead.saturating_sub(here)));
    }

    /// A cell reaches an end.
    pub(super) fn handle_cell(&mut self, now: SimTime, end: End, cell: pcaal::Cell) {
        match end {
            End::Sender => self.sender.handle_cell(now, cell),
            End::Receiver => self.receiver.handle_cell(now, cell),
        }
    }

    /// A circuit's queue is empty, or not.
    pub(super) fn set_busy(&mut self, now: SimTime, circuit: usize, busy: bool) {
        let place = match (self.mechanism, self.circuits.iter().position(|&one| one == circuit)) {
            (Mechanism::LmeEce, Some(1)) => 1,
            (_, Some(2) | None) => return,
            _ => 0,
        };
        self.busy[place] = busy;
        self.hold_back(now);
    }

    /// The layer keeps its data while a circuit is busy, and while the host makes the next cell.
    fn hold_back(&mut self, now: SimTime) {
        for (circuit, busy) in [Circuit::Ordinary, Circuit::Backup].into_iter().zip(self.busy) {
            self.sender.set_busy(now, circuit, busy || self.making);
        }
    }

    /// The next cell that an end wants to send: by a circuit of the network, or back.
    pub(super) fn next_cell(&mut self, now: SimTime) -> Option<(Option<usize>, pcaal::Cell)> {
        loop {
            match self.sender.poll_output() {
                Output::Transmit(cell) => {
                    if let (Pdu::Data { .. }, Some(source)) = (&cell.pdu, &mut self.source) {
                        let made = source.send(now, Cells::new(1).bits());
                        self.making = made.is_ok();
                    }
                    let circuit = match (cell.circuit, self.mechanism) {
                        (Circuit::Control, _) => self.circuits[2],
                        (Circuit::Backup, _) | (_, Mechanism::Abr) => self.circuits[1],
                        (Circuit::Ordinary, _) => self.circuits[0],
                    };
                    self.set_busy(now, circuit, true);
                    return Some((Some(circuit), cell));
                }
                Output::Event(Event::Mode { high, .. }) => self.note_mode(now, high),
                Output::Event(Event::PeerLost) => self.peer_lost = true,
                Output::Timeout(timeout) => {
                    self.timeouts[0] = timeout;
                    break;
                }
                Output::Work(_) | Output::Deliver(_) => {}
            }
        }
        loop {
            match self.receiver.poll_output() {
                Output::Transmit(cell) => return Some((None, cell)),
                Output::Deliver(values) => self.deliver(now, &values),
                Output::Timeout(timeout) => {
                    self.timeouts[1] = timeout;
                    return None;
                }
                Output::Event(_) | Output::Work(_) => {}
            }
        }
    }

    fn note_mode(&mut self, now: SimTime, high: bool) {
        if let Some(since) = self.high_since.take() {
            self.high += now - since;
        }
        self.high_since = high.then_some(now);
        self.digest.record(TraceEvent { time: now, kind: MODE, a: u64::from(high), b: 0 });
    }

    fn deliver(&mut self, now: SimTime, values: &pcaal::Values) {
        let number = self.latencies.len() as u64;
        let Some(&(sent, length)) = self.under_way.front() else {
            self.misplaced += 1;
            return;
        };
        let expected = values.tag == number as u32 && values.first == self.value;
        self.value += u32::from(values.count);
        if !expected || values.end != (self.value == length) {
            self.misplaced += 1;
        }
        if values.end {
            self.under_way.pop_front();
            self.value = 0;
            self.latencies.push(now - sent);
            self.digest.record(TraceEvent {
                time: now,
                kind: ARRIVED,
                a: number,
                b: self.sender.counters().retransmitted,
            });
        }
    }

    /// When a cell that leaves the peer now is here. A peak rate holds back the cell behind, and no cell is longer
    /// on a line for it.
    pub(super) fn carry_back(&mut self, now: SimTime) -> SimTime {
        self.back += 1;
        let sent = self.back_peak.send(now, Cells::new(1).bits());
        sent.map_or(SimTime::MAX, |sent| sent.start.saturating_add(self.cell_time + self.back_delay))
    }

    /// A cell was lost in a queue.
    pub(super) fn lost(&mut self, cell: &pcaal::Cell) {
        match cell.pdu {
            Pdu::Data { .. } => self.lost_data += 1,
            _ => self.lost_other += 1,
        }
    }

    pub(super) fn report(&self, now: SimTime, circuits: [CircuitReport; 3]) -> TaskReport {
        TaskReport {
            messages: self.sent,
            latencies: self.latencies.clone(),
            counters: self.sender.counters(),
            lost_data: self.lost_data,
            lost_other: self.lost_other,
            circuits,
            back: self.back,
            high: self.high + self.high_since.map_or(Span::ZERO, |since| now - since),
            misplaced: self.misplaced,
            peer_lost: self.peer_lost,
            digest: self.digest.value(),
        }
    }
}
