//! One end: values and cells in, cells and values out.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::pcaal::{CELL_OCTETS, LSTAT_ELEMENTS, STAT_ELEMENTS};

use super::PcaalOutput;
use super::cell::{Cell, Circuit, Pdu, Values};
use super::config::{Config, ConfigError, LocalClock, Watch};
use super::monitor::{Monitor, Verdict};
use super::queue::{Queue, Waiting};
use crate::sscop::{Missing, Receiver, Sd, Sender};
use crate::{Output, Payload, Work, WorkKind};

/// Values of one kind, which follow each other in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Octets of each value.
    pub kind: wiretwin_wire::pcaal::Kind,
    /// Their octets: a multiple of those of a value.
    pub payload: Payload,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This end sends its data by the other circuit from now on.
    Mode {
        /// The backup circuit.
        high: bool,
        /// Cells that are sent again by it for that.
        again: u32,
    },
    /// The peer says nothing. Nothing is sent any more, and what is sent is rejected.
    PeerLost,
}

/// Why a message is rejected; nothing is sent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no value in it.
    Empty,
    /// Octets that are not whole values.
    NotWhole {
        /// Octets handed in.
        found: Bytes,
        /// Octets of a value.
        value: Bytes,
    },
    /// More than 2^32 - 1 values.
    TooMany,
    /// The peer is lost.
    PeerLost,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a message without a value"),
            Self::NotWhole { found, value } => {
                write!(f, "{} octets are not whole values of {}", found.get(), value.get())
            }
            Self::TooMany => f.write_str("a message of more than 4294967295 values"),
            Self::PeerLost => f.write_str("the peer says nothing"),
        }
    }
}

impl core::error::Error for SendError {}

/// What one end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data cells sent by the ordinary circuit.
    pub data_ordinary: u64,
    /// Data cells sent by the backup circuit.
    pub data_backup: u64,
    /// Of both, those sent again.
    pub retransmitted: u64,
    /// Cells sent by the control circuit.
    pub control: u64,
    /// Monitoring cells sent.
    pub monitoring: u64,
    /// Data cells received.
    pub received: u64,
    /// Data cells dropped that had come before, or lie beyond the window.
    pub discarded: u64,
    /// Cells dropped for their CRC or their Connection Identifier.
    pub corrupted: u64,
    /// POLLs, STATs and the like ignored for their numbers.
    pub ignored: u64,
    /// Changes of mode.
    pub switches: u64,
    /// Times that the peer's clock was learned anew and had moved by more than `T_M`: a step, or a drift that
    /// was let go on for too long.
    pub clock_steps: u64,
}

/// One end of a connection between two tasks.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) now: SimTime,
    pub(super) sender: Sender<32, Values>,
    pub(super) queue: Queue,
    pub(super) receiver: Receiver<32, Values>,
    /// This end sends in high-latency mode.
    high: bool,
    monitor: Option<Monitor>,
    /// How far this clock is ahead of the peer's, in ns; `None` while that is not known.
    ahead_of_peer: Option<i64>,
    /// N(PS) of the last POLL that came.
    polled: Seq<32>,
    poll_at: Option<SimTime>,
    no_response_at: Option<SimTime>,
    monitor_at: Option<SimTime>,
    clock_at: Option<SimTime>,
    next_monitor: u32,
    /// Data were sent since the last monitoring cell.
    pub(super) active: bool,
    pub(super) lost: bool,
    /// What comes has come just now.
    watching: bool,
    pub(super) busy: [bool; 2],
    pub(super) outputs: VecDeque<PcaalOutput>,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// An end over circuits that are there.
    ///
    /// # Errors
    /// [`ConfigError`] for parameters that cannot be.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let mut sender = Sender::new();
        let mut receiver = Receiver::new();
        sender.vt_ms = Seq::wrapping(config.window);
        receiver.vr_mr = Seq::wrapping(config.window);
        Ok(Self {
            config,
            now: SimTime::ZERO,
            sender,
            queue: Queue::default(),
            receiver,
            high: false,
            monitor: config.watch.map(|watch| Monitor::new(&config, watch)),
            ahead_of_peer: config.clock_sync.is_none().then_some(0),
            polled: Seq::ZERO,
            poll_at: None,
            no_response_at: None,
            monitor_at: None,
            clock_at: None,
            next_monitor: 0,
            active: false,
            lost: false,
            watching: true,
            busy: [false; 2],
            outputs: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Whether data go by the backup circuit.
    pub const fn is_high(&self) -> bool {
        self.high
    }

    /// Whether the peer's data should, by what this end has seen.
    pub fn sees_high(&self) -> bool {
        self.monitor.is_some_and(|monitor| monitor.is_high())
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Cells that wait to be sent for the first time.
    pub fn waiting(&self) -> usize {
        self.queue.cells()
    }

    /// Cells that were sent and are not acknowledged in order.
    pub fn unacknowledged(&self) -> usize {
        self.sender.unacknowledged()
    }

    /// The oldest values that may have to be sent still: what lies before them in what was handed in is
    /// not needed any more.
    pub fn oldest(&self) -> Option<Values> {
        self.sender.oldest().or_else(|| self.queue.first())
    }

    /// Whether a data cell of this number is within the window: a driver keeps the octets of no other.
    pub fn is_awaited(&self, number: Seq<32>) -> bool {
        number.is_within(self.receiver.vr_r, self.config.window)
    }

    // Commands

    /// Begins to send monitoring cells, and the clock if it is to be.
    pub fn start(&mut self, now: SimTime) {
        self.now = now;
        if self.config.watch.is_some() {
            self.monitor_at = Some(now);
        }
        self.clock_at = self.config.clock_sync.map(|_| now);
        self.handle_timeout(now);
    }

    /// Ends that, and awaits none. Data that are under way are still seen to.
    pub fn stop(&mut self, now: SimTime) {
        self.now = now;
        (self.monitor_at, self.clock_at) = (None, None);
        let fresh = self.config.watch.map(|watch| Monitor::new(&self.config, watch));
        self.monitor = fresh;
    }

    /// Sends a message: each of its values, in order and once.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&mut self, now: SimTime, tag: u32, runs: &[Run]) -> Result<(), SendError> {
        self.now = now;
        if self.lost {
            return Err(SendError::PeerLost);
        }
        let mut total = 0_u64;
        for run in runs {
            let (found, value) = (run.payload.length, run.kind.octets() as u64);
            if !found.get().is_multiple_of(value) {
                return Err(SendError::NotWhole { found, value: Bytes::new(value) });
            }
            total += found.get() / value;
        }
        if total == 0 {
            return Err(SendError::Empty);
        }
        let total = u32::try_from(total).map_err(|_| SendError::TooMany)?;
        let mut first = 0;
        for Run { kind, payload } in runs {
            let count = (payload.length.get() / kind.octets() as u64) as u32;
            let most = kind.most(self.config.stamp_data) as u32;
            let end = first + count == total;
            self.queue.push(Waiting { tag, kind: *kind, first, count, most, end, payload: *payload });
            first += count;
        }
        // Without data under way a timer of POLLs is SSCOP's Timer_KEEP-ALIVE, which data stop.
        if self.no_response_at.is_none() {
            self.poll_at = Some(self.after(self.config.timer_poll));
            self.no_response_at = Some(self.after(self.config.timer_no_response));
        }
        Ok(())
    }

    /// Whether a circuit takes data: while it is busy, data for it wait, and go by the other if the mode
    /// changes. The control circuit is never busy.
    pub fn set_busy(&mut self, now: SimTime, circuit: Circuit, busy: bool) {
        self.now = now;
        if let Some(place) = self.busy.get_mut(circuit as usize) {
            *place = busy;
        }
    }

    /// Whether cells are handed in as they come. What a driver finds when it has looked elsewhere for a while has
    /// waited for the driver: no latency is taken from it, and nothing is missed that was due meanwhile.
    pub fn set_watching(&mut self, now: SimTime, watching: bool) {
        self.now = now;
        self.watching = watching;
        if let Some(monitor) = &mut self.monitor {
            monitor.await_anew(now);
        }
    }

    /// The clock of this end is another from now on, as where somebody sets it.
    pub fn set_clock(&mut self, now: SimTime, clock: LocalClock) {
        self.now = now;
        self.config.clock = clock;
    }

    // Inputs

    /// Takes a cell.
    pub fn handle_cell(&mut self, now: SimTime, cell: Cell) {
        self.handle_timeout(now);
        self.work(WorkKind::SscopIn, CELL_OCTETS as u64);
        self.work(WorkKind::Crc, CELL_OCTETS as u64);
        if cell.corrupted || cell.connection != self.config.connection {
            self.counters.corrupted += 1;
            return;
        }
        match cell.pdu {
            Pdu::Data { number, values, stamp } => {
                if cell.circuit == Circuit::Ordinary {
                    self.watch_data(stamp, cell.congestion);
                }
                self.handle_data(number, values);
            }
            Pdu::Poll { ps, s } => self.handle_poll(ps, s),
            Pdu::Stat { ps, mr, r, list } => {
                self.handle_stat(ps, mr, r, &list);
            }
            Pdu::Ustat { first, end, mr, r } => self.handle_ustat((first, end), mr, r),
            Pdu::Lstat { ps, mr, r, list, high, .. } => {
                let again = self.handle_stat(ps, mr, r, &list);
                self.turn(high, again);
            }
            Pdu::Monitor { number, stamp, high } => self.handle_monitor(number, stamp, high, cell.congestion),
            Pdu::Echo { number, stamp } => self.handle_echo(number, stamp),
            Pdu::Clock { stamp } => {
                if let Some(sync) = self.config.clock_sync {
                    let delay = (sync.delay.as_ps() / 1_000) as i64;
                    let ahead = (self.clock().wrapping_sub(stamp) as i64).wrapping_sub(delay);
                    let threshold = self.config.high_threshold.as_ps() / 1_000;
                    let moved = |old: i64| ahead.wrapping_sub(old).unsigned_abs() > threshold;
                    self.counters.clock_steps += u64::from(self.ahead_of_peer.is_some_and(moved));
                    self.ahead_of_peer = Some(ahead);
                }
            }
        }
    }

    /// Takes octets that are no cell: they are counted.
    pub fn handle_bad_cell(&mut self, now: SimTime) {
        self.handle_timeout(now);
        self.counters.corrupted += 1;
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.now = now;
        let due = |at: Option<SimTime>| at.is_some_and(|at| at <= now);
        if due(self.no_response_at) {
            (self.no_response_at, self.poll_at) = (None, None);
            self.lost = true;
            self.outputs.push_back(Output::Event(Event::PeerLost));
        }
        if due(self.poll_at) {
            self.send_poll();
        }
        if due(self.clock_at)
            && let Some(sync) = self.config.clock_sync
        {
            self.clock_at = Some(self.after(sync.interval));
            let stamp = self.clock();
            self.transmit(Circuit::Control, Pdu::Clock { stamp });
        }
        if due(self.monitor_at) {
            self.monitor_at = Some(self.after(self.config.monitor_interval));
            if self.config.watch != Some(Watch::OnDemand) || core::mem::take(&mut self.active) {
                let (number, stamp) = (self.next_monitor, self.clock());
                self.next_monitor = number.wrapping_add(1);
                self.counters.monitoring += 1;
                self.transmit(Circuit::Ordinary, Pdu::Monitor { number, stamp, high: self.high });
            }
        }
        let verdict = self.monitor.as_mut().and_then(|monitor| monitor.expire(now));
        self.act_on(verdict);
    }

    /// The next thing to do. To be called after each call that takes the time, until it yields
    /// [`Output::Timeout`].
    pub fn poll_output(&mut self) -> PcaalOutput {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            if self.lost || self.busy[self.circuit() as usize] {
                return Output::Timeout(self.next_timeout());
            }
            match self.next_data() {
                None => return Output::Timeout(self.next_timeout()),
                // What is put out alone goes by no queue.
                Some(cell) if !self.config.work => {
                    self.sent_data(1);
                    return Output::Transmit(cell);
                }
                Some(cell) => {
                    self.put_out(cell);
                    self.sent_data(1);
                }
            }
        }
    }

    fn next_timeout(&self) -> Option<SimTime> {
        let awaited = self.monitor.and_then(|monitor| monitor.deadline());
        let timers = [self.poll_at, self.no_response_at, self.monitor_at, self.clock_at, awaited];
        timers.into_iter().flatten().min()
    }

    // Sending

    pub(super) const fn circuit(&self) -> Circuit {
        if self.high { Circuit::Backup } else { Circuit::Ordinary }
    }

    fn next_data(&mut self) -> Option<Cell> {
        let again = self.sender.next_wanted();
        self.counters.retransmitted += u64::from(again.is_some());
        let next = match again {
            None if self.sender.is_open() => self.queue.next().map(|values| {
                let number = self.sender.send(core::iter::once(values));
                (number, values)
            }),
            again => again,
        };
        let (number, values) = next?;
        let stamp = self.count_data(1);
        Some(self.cell(self.circuit(), Pdu::Data { number, values, stamp }))
    }

    /// So many data cells go now, with this stamp.
    pub(super) fn count_data(&mut self, cells: u32) -> Option<u32> {
        match self.circuit() {
            Circuit::Backup => self.counters.data_backup += u64::from(cells),
            _ => self.counters.data_ordinary += u64::from(cells),
        }
        self.active = true;
        self.config.stamp_data.then(|| self.clock() as u32)
    }

    pub(super) fn sent_data(&mut self, cells: u32) {
        self.sender.vt_pd += cells;
        if self.sender.vt_pd >= self.config.max_pd {
            self.send_poll();
        }
    }

    /// Choice: POLLs go with the data, so that the receiver learns what is missing behind the last cell.
    fn send_poll(&mut self) {
        let ps = self.sender.next_poll();
        self.transmit(self.circuit(), Pdu::Poll { ps, s: self.sender.vt_s });
        let under_way = self.no_response_at.is_some();
        let timer = if under_way { Some(self.config.timer_poll) } else { self.config.timer_keep_alive };
        self.poll_at = timer.map(|timer| self.after(timer));
    }

    /// How many it has sent again.
    fn handle_stat(&mut self, ps: Seq<32>, mr: Seq<32>, r: Seq<32>, list: &[Seq<32>]) -> u32 {
        if !self.sender.accepts(Some(ps), r, list) {
            self.counters.ignored += 1;
            return 0;
        }
        let mr = self.edge(mr);
        let done = self.sender.stat(ps, r, mr, list, Missing::IsSkipped, true);
        let again = done.expect("numbers that were accepted");
        self.heard();
        again.unwrap_or(0)
    }

    fn handle_ustat(&mut self, gap: (Seq<32>, Seq<32>), mr: Seq<32>, r: Seq<32>) {
        if !self.sender.accepts(None, r, &[gap.0, gap.1]) {
            self.counters.ignored += 1;
            return;
        }
        let mr = self.edge(mr);
        self.sender.ustat(gap, r, mr, Missing::IsSkipped).expect("numbers that were accepted");
        self.heard();
    }

    fn edge(&self, mr: Seq<32>) -> Seq<32> {
        if mr.precedes(self.sender.vt_ms) { self.sender.vt_ms } else { mr }
    }

    /// The peer lives.
    fn heard(&mut self) {
        let quiet = self.queue.cells() == 0 && self.sender.unacknowledged() == 0;
        if !quiet {
            self.no_response_at = Some(self.after(self.config.timer_no_response));
        } else if self.no_response_at.take().is_some() {
            self.poll_at = self.config.timer_keep_alive.map(|timer| self.after(timer));
        }
    }

    /// The mode is to be this, from the next cell on. So many cells, missing by the list of what said so, go
    /// again; what is under way does not.
    fn turn(&mut self, high: bool, again: u32) {
        if high == self.high {
            return;
        }
        self.high = high;
        self.counters.switches += 1;
        self.outputs.push_back(Output::Event(Event::Mode { high, again }));
    }

    // Receiving

    fn handle_data(&mut self, number: Seq<32>, values: Values) {
        self.counters.received += 1;
        match self.receiver.sd(number, values) {
            Sd::Next => {
                while let Some((_, values)) = self.receiver.next() {
                    self.outputs.push_back(Output::Deliver(values));
                }
                self.receiver.vr_mr = self.receiver.vr_r + self.config.window;
            }
            Sd::Kept => {}
            Sd::Gap(first, end) | Sd::Beyond(Some((first, end))) => {
                let (mr, r) = (self.receiver.vr_mr, self.receiver.vr_r);
                self.transmit(Circuit::Control, Pdu::Ustat { first, end, mr, r });
            }
            Sd::Again | Sd::Beyond(None) => self.counters.discarded += 1,
        }
    }

    fn handle_poll(&mut self, ps: Seq<32>, s: Seq<32>) {
        if self.receiver.is_below_highest(s) || ps.precedes(self.polled) {
            self.counters.ignored += 1;
            return;
        }
        self.polled = ps;
        self.receiver.polled(s);
        let (mr, r) = (self.receiver.vr_mr, self.receiver.vr_r);
        for list in self.lists(STAT_ELEMENTS) {
            self.transmit(Circuit::Control, Pdu::Stat { ps, mr, r, list });
        }
    }

    fn lists(&self, most: usize) -> Vec<Vec<Seq<32>>> {
        let mut lists = Vec::new();
        self.receiver.lists(most, |list| lists.push(list));
        lists
    }

    // Watching

    fn clock(&self) -> u64 {
        self.config.clock.read(self.now)
    }

    fn handle_monitor(&mut self, number: u32, stamp: u64, peer_is_high: bool, congestion: bool) {
        let clock = self.clock();
        let Some(watch) = self.config.watch else { return };
        if watch == Watch::RoundTrip {
            return self.transmit(Circuit::Control, Pdu::Echo { number, stamp });
        }
        let Some(monitor) = self.monitor.as_mut() else { return };
        if !monitor.monitored(self.now, number, stamp) || !self.watching {
            return;
        }
        let latency =
            self.ahead_of_peer.map(|ahead| (clock as i64).wrapping_sub(stamp as i64).wrapping_sub(ahead));
        let measured = latency.and_then(|latency| monitor.measured(latency, stamp));
        let verdict = measured.or(monitor.marked(congestion, stamp));
        // An LSTAT was lost if the peer does otherwise.
        let high = monitor.is_high();
        let again = (high != peer_is_high).then_some(Verdict { high, stamp });
        self.act_on(verdict.or(again));
    }

    pub(super) fn watch_data(&mut self, stamp: Option<u32>, congestion: bool) {
        let clock = self.clock();
        let watches = self.watching && self.config.watch != Some(Watch::RoundTrip);
        let Some(monitor) = self.monitor.as_mut().filter(|_| watches) else { return };
        let mut verdict = None;
        if let (Some(stamp), Some(ahead)) = (stamp, self.ahead_of_peer) {
            let theirs = clock.wrapping_sub(ahead as u64);
            let latency = (theirs as u32).wrapping_sub(stamp).cast_signed();
            verdict = monitor.measured(latency.into(), theirs.wrapping_sub(latency as u64));
        }
        if congestion {
            verdict = verdict.or(monitor.marked(true, clock));
        }
        self.act_on(verdict);
    }

    fn handle_echo(&mut self, number: u32, stamp: u64) {
        let clock = self.clock();
        let watches = self.config.watch == Some(Watch::RoundTrip);
        let Some(monitor) = self.monitor.as_mut().filter(|_| watches) else { return };
        if monitor.monitored(self.now, number, stamp) && self.watching {
            let verdict = monitor.measured((clock as i64).wrapping_sub(stamp as i64) / 2, stamp);
            self.act_on(verdict);
        }
    }

    fn act_on(&mut self, verdict: Option<Verdict>) {
        let Some(Verdict { high, stamp }) = verdict else { return };
        if self.config.watch == Some(Watch::RoundTrip) {
            return self.turn(high, 0);
        }
        let list = self.lists(LSTAT_ELEMENTS).swap_remove(0);
        let (mr, r) = (self.receiver.vr_mr, self.receiver.vr_r);
        self.transmit(Circuit::Control, Pdu::Lstat { ps: self.polled, mr, r, list, stamp, high });
    }

    // Parts

    fn after(&self, span: Span) -> SimTime {
        self.now.saturating_add(span)
    }

    fn work(&mut self, kind: WorkKind, octets: u64) {
        if self.config.work {
            let work = Work { kind, bytes: Bytes::new(octets), count: 1 };
            self.outputs.push_back(Output::Work(work));
        }
    }

    fn transmit(&mut self, circuit: Circuit, pdu: Pdu) {
        self.put_out(self.cell(circuit, pdu));
    }

    const fn cell(&self, circuit: Circuit, pdu: Pdu) -> Cell {
        let (connection, congestion, corrupted) = (self.config.connection, false, false);
        Cell { circuit, connection, pdu, congestion, corrupted }
    }

    fn put_out(&mut self, cell: Cell) {
        self.work(WorkKind::SscopOut, CELL_OCTETS as u64);
        self.work(WorkKind::Crc, CELL_OCTETS as u64);
        self.counters.control += u64::from(cell.circuit == Circuit::Control);
        self.outputs.push_back(Output::Transmit(cell));
    }
}
