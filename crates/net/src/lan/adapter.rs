//! Adapters between a host and its ATM link.
//!
//! *Series-100*: two FIFOs of cells. The host segments, and writes each cell; the first cell that comes
//! into an empty FIFO interrupts the host after a delay, and the handler reads and reassembles until the
//! FIFO is empty.
//!
//! *Series-200*: a processor of its own does one job at a time: it takes up a PDU, sends a cell, takes in a
//! cell, hands a PDU over. Cells cross the host's bus by DMA, one after the other, while it goes on. What
//! comes in goes first. The host is interrupted once a PDU.

use std::collections::VecDeque;

use wiretwin_proto::Payload;
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::Lan;
use super::activity::Activity;
use super::adaptation::Asked;
use super::cell::{Cell, PduId, Vc};
use super::config::{AdapterConfig, FirmwarePrices};
use super::core::{LanEvent, LinkId, Passed};
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::stack::{Lower, Message};
use super::trail::SegmentId;
use super::train::{Coming, Crossing};

/// A PDU that came, for its circuit's reader.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    circuit: u32,
    payload: Payload,
}

/// What the processor of a Series-200 is doing.
#[derive(Clone, Copy, Debug)]
enum Job {
    TakeUp(u32),
    Send(Cell),
    TakeIn { trail: SegmentId, delivery: Option<Delivery> },
    Hand(Delivery, SegmentId),
}

pub(super) struct Adapter {
    config: AdapterConfig,
    pub(super) out: LinkId,
    /// Its host's handler of its interrupt.
    handler: ThreadAt,
    /// The handler has been called and has not found everything done.
    handling: bool,
    /// Circuits by the VCI on which they come in, on path 0.
    circuits: Vec<u32>,
    pub(super) receive_fifo: VecDeque<Cell>,
    // Of a Series-200.
    job: Option<Job>,
    /// When it began; and when it ends, where no event was scheduled for that.
    job_began: SimTime,
    unhurried: Option<SimTime>,
    /// Cells of trains that will come, in order; and when it is to look for one.
    pub(super) coming: VecDeque<Coming>,
    pub(super) looks_at: Option<SimTime>,
    /// The last cell that it sent in a train.
    pub(super) crossing: Option<Crossing>,
    to_send: VecDeque<(u32, SegmentId)>,
    sending: Option<u32>,
    send_trail: SegmentId,
    /// It was told to look again then, when the line has room.
    will_look_at: Option<SimTime>,
    outward: VecDeque<Cell>,
    inward: VecDeque<(Option<Delivery>, SegmentId)>,
    to_hand: VecDeque<(Delivery, SegmentId)>,
    handed: VecDeque<(Delivery, SegmentId)>,
    /// Packets that frames brought.
    packets: VecDeque<(u32, SegmentId)>,
    passed: Passed,
}

impl Adapter {
    pub(super) fn new(config: AdapterConfig, out: LinkId, handler: ThreadAt) -> Self {
        Self {
            config,
            out,
            handler,
            handling: false,
            circuits: Vec::new(),
            receive_fifo: VecDeque::new(),
            job: None,
            job_began: SimTime::ZERO,
            unhurried: None,
            coming: VecDeque::new(),
            looks_at: None,
            crossing: None,
            to_send: VecDeque::new(),
            sending: None,
            send_trail: SegmentId::NONE,
            will_look_at: None,
            outward: VecDeque::new(),
            inward: VecDeque::new(),
            to_hand: VecDeque::new(),
            handed: VecDeque::new(),
            packets: VecDeque::new(),
            passed: Passed::default(),
        }
    }

    /// Cells of this channel belong to this circuit.
    pub(super) fn expect(&mut self, vc: Vc, circuit: u32) {
        let at = usize::from(vc.id().vci.0);
        if self.circuits.len() <= at {
            self.circuits.resize(at + 1, u32::MAX);
        }
        self.circuits[at] = circuit;
    }

    /// And no more.
    pub(super) fn expect_no_more(&mut self, vc: Vc) {
        if let Some(circuit) = self.circuits.get_mut(usize::from(vc.id().vci.0)) {
            *circuit = u32::MAX;
        }
    }

    /// A frame has brought a packet.
    pub(super) fn frame_came(&mut self, packet: u32, trail: SegmentId) {
        self.packets.push_back((packet, trail));
    }

    /// The handler, if it is to be called.
    pub(super) const fn call_handler(&self) -> Option<ThreadAt> {
        if self.handling { None } else { Some(self.handler) }
    }

    /// The handler was called.
    pub(super) const fn is_called(&mut self) {
        self.handling = true;
    }

    fn circuit(&self, vc: Vc) -> Option<u32> {
        if vc.id().vpi.get() != 0 {
            return None;
        }
        self.circuits.get(usize::from(vc.vci())).copied().filter(|&circuit| circuit != u32::MAX)
    }

    /// The number of its host.
    pub(super) const fn host(&self) -> u32 {
        self.handler.host
    }

    /// Its processor has something to do.
    pub(super) const fn is_working(&self) -> bool {
        self.job.is_some()
    }

    /// When its job ends, where no event was scheduled for that.
    pub(super) const fn unhurried(&self) -> Option<SimTime> {
        self.unhurried
    }

    /// When its job began.
    pub(super) const fn job_began(&self) -> SimTime {
        self.job_began
    }

    /// That job has an event of its own from now on, or has ended.
    pub(super) const fn hurry(&mut self) -> Option<SimTime> {
        self.unhurried.take()
    }

    /// It has nothing to send, nothing to hand over and no last cell of a PDU: nobody hears of what it does.
    pub(super) fn only_takes_in(&self) -> bool {
        let fifo = &self.receive_fifo;
        self.sending.is_none()
            && self.to_send.is_empty()
            && self.to_hand.is_empty()
            && fifo.len() <= LOOKED_THROUGH
            && fifo.iter().all(|cell| !cell.is_last())
    }

    /// Cells that came from the line: taken, given to the reassembler, lost for want of room.
    pub(super) fn passed(&self) -> Passed {
        Passed { held: self.receive_fifo.len() as u64, ..self.passed }
    }
}

/// The longest FIFO that is looked through for the last cell of a PDU.
const LOOKED_THROUGH: usize = 4;
/// A cell's payload on the bus.
pub(super) const CELL_BYTES: Bytes = Bytes::new(PAYLOAD_OCTETS as u64);

impl Lan {
    /// Whether a cell that comes to an adapter has a circuit, and room in the FIFO.
    pub(super) fn is_taken(&mut self, number: u32, cell: &Cell) -> bool {
        let adapter = &mut self.adapters[number as usize];
        adapter.passed.taken += 1;
        if cell.pdu == PduId::NONE {
            // Load: nobody has opened its circuit, and it goes no further than the line.
            adapter.passed.given += 1;
            return false;
        }
        let room = match adapter.config {
            AdapterConfig::Series100 { receive_fifo_cells, .. }
            | AdapterConfig::Series200 { receive_fifo_cells, .. } => receive_fifo_cells as usize,
            AdapterConfig::Frames => 0,
        };
        if adapter.receive_fifo.len() >= room || adapter.circuit(cell.vc).is_none() {
            adapter.passed.lost += 1;
            self.core.pdus.gone(cell.pdu);
            return false;
        }
        true
    }

    /// A cell of a train is there for the processor of a Series-200.
    pub(super) fn put_in_fifo(&mut self, number: u32, cell: Cell) {
        if self.is_taken(number, &cell) {
            self.adapters[number as usize].receive_fifo.push_back(cell);
        }
    }

    /// A cell has come to an adapter.
    pub(super) fn cell_came(&mut self, number: u32, mut cell: Cell) {
        if !self.is_taken(number, &cell) {
            return;
        }
        let now = self.core.now();
        let adapter = &mut self.adapters[number as usize];
        match adapter.config {
            AdapterConfig::Series100 { interrupt_delay, .. } => {
                let first = !core::mem::replace(&mut adapter.handling, true);
                if first {
                    let due = now + interrupt_delay;
                    let place = number as u16;
                    cell.trail = self.core.trail.push(cell.trail, Activity::InterruptDelay, place, now, due);
                    self.core.at(due, LanEvent::Interrupt(number));
                }
                self.adapters[number as usize].receive_fifo.push_back(cell);
            }
            AdapterConfig::Series200 { .. } => {
                adapter.receive_fifo.push_back(cell);
                self.transmit(number);
            }
            AdapterConfig::Frames => {}
        }
    }

    /// Feeds a cell to its circuit's reassembler: the work that is, and the PDU that it completes.
    #[inline]
    fn reassemble(&mut self, number: u32, cell: Cell) -> (Works, Option<Delivery>) {
        let now = self.core.now();
        let adapter = &mut self.adapters[number as usize];
        adapter.passed.given += 1;
        let mut works = Works::default();
        let (Some(circuit), Some(&pdu)) = (adapter.circuit(cell.vc), self.core.pdus.get(cell.pdu)) else {
            return (works, None);
        };
        self.core.pdus.gone(cell.pdu);
        let receiver = &mut self.circuits[circuit as usize].receiver;
        receiver.take(now, &cell, &pdu);
        let mut delivery = None;
        loop {
            match receiver.poll() {
                Asked::Work(activity, bytes) => works.push(activity, bytes),
                Asked::Give(payload) => delivery = Some(Delivery { circuit, payload }),
                Asked::Discarded => self.pdus_lost += 1,
                Asked::Nothing => break,
            }
        }
        self.watch(circuit);
        if let Some(payload) = delivery.map(|delivery| delivery.payload)
            && self.config.stack.message != Message::Fore
        {
            let packet = payload.message.0 as u32;
            // What was sent before a switched circuit got this channel is none of it.
            if self.is_switched(circuit) && !self.circuits[circuit as usize].packets.contains(&packet) {
                return (works, None);
            }
            self.forget_lost(circuit, packet);
        }
        (works, delivery)
    }

    /// A circuit keeps the order of its packets: those given to it before the one that came are lost.
    pub(super) fn forget_lost(&mut self, circuit: u32, came: u32) {
        while let Some(packet) = self.circuits[circuit as usize].packets.pop_front() {
            if packet == came {
                return;
            }
            self.lose_packet(packet);
        }
    }

    /// Sees to it that a circuit's reassembly timer is looked at when it may run out.
    fn watch(&mut self, number: u32) {
        if self.config.reassembly_timer.is_none() {
            return;
        }
        let circuit = &mut self.circuits[number as usize];
        if circuit.watched {
            return;
        }
        if let Some(due) = circuit.receiver.deadline() {
            circuit.watched = true;
            let due = due.max(self.core.now());
            self.core.at(due, LanEvent::Reassembly(number));
        }
    }

    /// The reassembly timer of a circuit may have run out.
    pub(super) fn reassembly_due(&mut self, number: u32) {
        let now = self.core.now();
        let circuit = &mut self.circuits[number as usize];
        circuit.watched = false;
        circuit.receiver.expire(now);
        while let Asked::Discarded = circuit.receiver.poll() {
            self.pdus_lost += 1;
            self.timed_out += 1;
        }
        self.watch(number);
    }

    /// The next cell of what a circuit has to send, if any, and the work that it is. The cell has no trail
    /// yet.
    #[inline]
    pub(super) fn cut(&mut self, circuit: u32) -> Option<(Works, Cell)> {
        let at = &mut self.circuits[circuit as usize];
        let mut works = Works::default();
        let cut = loop {
            match at.sender.poll() {
                Asked::Work(activity, bytes) => works.push(activity, bytes),
                Asked::Give(cut) => break cut,
                Asked::Discarded | Asked::Nothing => return None,
            }
        };
        if cut.index == 0 {
            let payload = at.handed.pop_front().expect("each PDU that is cut was handed over");
            let cells = at.sender.cells(&payload);
            at.pdu = self.core.pdus.add(payload, cut.number, cells, (cut.sequence, cut.tag));
        }
        let cell =
            Cell { vc: at.vc, pdu: at.pdu, index: cut.index, marks: cut.marks, trail: SegmentId::NONE };
        Some((works, cell))
    }

    /// Whether a cell may be put behind those that wait for the line; else when it may.
    fn room_at(&self, number: u32, fifo_cells: u32, coming: usize) -> Option<SimTime> {
        let adapter = &self.adapters[number as usize];
        let link = self.core.link(adapter.out);
        let (now, cell) = (self.core.now(), link.cell_time());
        let (free, more) = Crossing::before(adapter.crossing, now, link.free_at());
        if free <= now {
            return None;
        }
        let slots = u64::from(fifo_cells).saturating_sub((coming + more) as u64 + 1);
        // Those that wait are sent one after the other: at this instant one place fewer is taken.
        let room = SimTime::from_ps(free.as_ps().saturating_sub(cell.as_ps().saturating_mul(slots)));
        (room > now).then_some(room)
    }

    // Series-100

    /// The host goes on cutting what a circuit has to send.
    pub(super) fn segment(&mut self, here: ThreadAt, circuit: u32) {
        let adapter = self.circuits[circuit as usize].from;
        let Some((works, cell)) = self.cut(circuit) else { return };
        let message = self.core.pdus.get(cell.pdu).map_or(Bytes::new(0), |pdu| pdu.payload.length);
        let steps = [Step::Do(Action::Room { adapter, cell }), Step::Do(Action::Segment { circuit })];
        self.insert(here, &steps);
        self.insert_works(here, &works, message);
    }

    fn insert_works(&mut self, here: ThreadAt, works: &Works, message: Bytes) {
        for (activity, bytes) in works.list[..works.count].iter().rev() {
            let step = self.price(here.host, *activity, *bytes, message);
            self.insert(here, &[step]);
        }
    }

    /// The host writes a cell into the FIFO, once that has room: until then it looks again and again.
    pub(super) fn room(&mut self, here: ThreadAt, number: u32, cell: Cell) {
        let AdapterConfig::Series100 { send_fifo_cells, .. } = self.adapters[number as usize].config else {
            return;
        };
        let steps = match self.room_at(number, send_fifo_cells, 0) {
            Some(room) => [
                Step::Charge(Activity::FifoFull, room - self.core.now()),
                Step::Do(Action::Room { adapter: number, cell }),
            ],
            None => [
                self.price(here.host, Activity::CellOut, CELL_BYTES, CELL_BYTES),
                Step::Do(Action::Put { adapter: number, cell }),
            ],
        };
        self.insert(here, &steps);
    }

    /// The interrupt of a Series-100 is due.
    pub(super) fn interrupt_due(&mut self, number: u32) {
        let adapter = &self.adapters[number as usize];
        let trail = adapter.receive_fifo.front().map_or(SegmentId::NONE, |cell| cell.trail);
        let handler = adapter.handler;
        self.raise(handler, trail, number);
    }

    // Both

    /// The handler takes the next thing that its adapter has for it.
    pub(super) fn handle_interrupt(&mut self, here: ThreadAt, number: u32) {
        let again = Step::Do(Action::Handle { adapter: number });
        let adapter = &mut self.adapters[number as usize];
        match adapter.config {
            AdapterConfig::Series100 { .. } => {
                let Some(cell) = adapter.receive_fifo.pop_front() else {
                    adapter.handling = false;
                    return;
                };
                let (works, delivery) = self.reassemble(number, cell);
                self.insert(here, &[again]);
                if let Some(delivery) = delivery {
                    let steps = self.pdu_steps(here.host, delivery);
                    self.insert(here, &steps);
                }
                self.insert_works(here, &works, CELL_BYTES);
                let read = self.price(here.host, Activity::CellIn, CELL_BYTES, CELL_BYTES);
                self.insert(here, &[Step::After(cell.trail), read]);
            }
            AdapterConfig::Series200 { .. } => {
                let Some((delivery, trail)) = adapter.handed.pop_front() else {
                    adapter.handling = false;
                    return;
                };
                let [work, deliver] = self.pdu_steps(here.host, delivery);
                self.insert(here, &[Step::After(trail), work, deliver, again]);
            }
            AdapterConfig::Frames => {
                let Some((packet, trail)) = adapter.packets.pop_front() else {
                    adapter.handling = false;
                    return;
                };
                let [work, input] = self.packet_steps(here.host, packet, self.packet_octets(packet));
                self.insert(here, &[Step::After(trail), work, input, again]);
                let now = self.core.now();
                if self.medium.as_mut().is_some_and(|medium| medium.taken(now, here.host)) {
                    self.medium_due();
                }
            }
        }
    }

    /// The steps of a handler to which a PDU has come.
    fn pdu_steps(&self, host: u32, delivery: Delivery) -> [Step<Action>; 2] {
        let Delivery { circuit, payload } = delivery;
        match self.config.stack.message {
            Message::Fore => {
                let work = self.fee(host, Activity::PduInterrupt);
                [work, Step::Do(Action::Deliver { circuit, payload })]
            }
            Message::ForeReliable | Message::PvmFore => {
                let work = self.fee(host, Activity::PduInterrupt);
                [work, Step::Do(Action::PduCame { circuit, packet: payload.message.0 as u32 })]
            }
            _ => self.packet_steps(host, payload.message.0 as u32, payload.length),
        }
    }

    // Series-200

    /// The host has handed over a PDU that a circuit's sender has taken.
    pub(super) fn take_pdu(&mut self, number: u32, circuit: u32, trail: SegmentId) {
        self.adapters[number as usize].to_send.push_back((circuit, trail));
        self.transmit(number);
    }

    /// The adapter's processor takes its next job, if it has none.
    pub(super) fn transmit(&mut self, number: u32) {
        if self.core.trains {
            self.catch_up(number);
            self.hurry(number);
        }
        let now = self.core.now();
        let place = number as u16;
        let adapter = &mut self.adapters[number as usize];
        let AdapterConfig::Series200 { send_fifo_cells, aal5, aal34, pace, .. } = adapter.config else {
            return;
        };
        let prices = if self.config.stack.lower == Lower::Aal34 { aal34 } else { aal5 };
        if adapter.will_look_at == Some(now) {
            adapter.will_look_at = None;
        }
        if adapter.job.is_some() {
            return;
        }
        let (job, span) = if let Some(cell) = adapter.receive_fifo.pop_front() {
            let (works, delivery) = self.reassemble(number, cell);
            let span = works.priced(&prices);
            let trail = self.core.trail.push(cell.trail, Activity::ReceiveCell, place, now, now + span);
            (Job::TakeIn { trail, delivery }, span)
        } else if let Some((delivery, trail)) = adapter.to_hand.pop_front() {
            let span = prices.receive_pdu;
            let trail = self.core.trail.push(trail, Activity::ReceivePdu, place, now, now + span);
            (Job::Hand(delivery, trail), span)
        } else if let Some(circuit) = adapter.sending {
            let coming = adapter.outward.len();
            let paced = self.circuits[circuit as usize].next_cell;
            let room = self.room_at(number, send_fifo_cells, coming).unwrap_or(now).max(paced);
            if room > now {
                return self.look_at(number, room);
            }
            let Some((works, mut cell)) = self.cut(circuit) else {
                self.adapters[number as usize].sending = None;
                return self.transmit(number);
            };
            let span = works.priced(&prices);
            // Circuits that carry packets go as fast as they can, unless they have a rate of their own.
            let pace = if self.config.stack.message == Message::Fore { pace } else { Span::ZERO };
            let circuit = &mut self.circuits[circuit as usize];
            circuit.next_cell = now + pace.max(circuit.spacing);
            let adapter = &mut self.adapters[number as usize];
            cell.trail = self.core.trail.push(adapter.send_trail, Activity::SendCell, place, now, now + span);
            adapter.send_trail = cell.trail;
            if cell.is_last() {
                adapter.sending = None;
            }
            (Job::Send(cell), span)
        } else if let Some((circuit, trail)) = adapter.to_send.pop_front() {
            let before = self.core.trail.later(adapter.send_trail, trail);
            let end = now + prices.send_pdu;
            adapter.send_trail = self.core.trail.push(before, Activity::SendPdu, place, now, end);
            (Job::TakeUp(circuit), prices.send_pdu)
        } else {
            return;
        };
        let adapter = &mut self.adapters[number as usize];
        (adapter.job, adapter.job_began) = (Some(job), now);
        if matches!(job, Job::TakeIn { delivery: None, .. }) && self.is_unhurried(number) {
            self.adapters[number as usize].unhurried = Some(now + span);
            self.await_cell(number);
        } else {
            self.core.at(now + span, LanEvent::Firmware(number));
        }
    }

    /// A job to take a cell in that completes nothing has ended at `time`, before now, and the next one begins if there
    /// is a cell for it.
    pub(super) fn take_in_unheard(&mut self, number: u32, time: SimTime) {
        let adapter = &mut self.adapters[number as usize];
        adapter.unhurried = None;
        let ended = adapter.job.take();
        if ended.is_some() {
            let host = adapter.host();
            let (_, end) = self.hosts[host as usize].take_bus(time, CELL_BYTES);
            self.core.quiet = self.core.quiet.max(end);
        }
        if let Some(cell) = self.adapters[number as usize].receive_fifo.pop_front() {
            self.begin_unheard(number, cell, time);
        }
    }

    /// Begins to take in a cell where nobody hears of its end.
    pub(super) fn begin_unheard(&mut self, number: u32, cell: Cell, time: SimTime) {
        let AdapterConfig::Series200 { aal5, aal34, .. } = self.adapters[number as usize].config else {
            return;
        };
        let (works, delivery) = self.reassemble(number, cell);
        debug_assert!(delivery.is_none(), "the last cell of a PDU has an event");
        let span = works.priced(if self.config.stack.lower == Lower::Aal34 { &aal34 } else { &aal5 });
        let adapter = &mut self.adapters[number as usize];
        adapter.job = Some(Job::TakeIn { trail: SegmentId::NONE, delivery: None });
        (adapter.job_began, adapter.unhurried) = (time, Some(time + span));
    }

    /// Looks again later, unless it is to look earlier already.
    fn look_at(&mut self, number: u32, time: SimTime) {
        let adapter = &mut self.adapters[number as usize];
        if adapter.will_look_at.is_none_or(|at| at > time) {
            adapter.will_look_at = Some(time);
            self.await_cell_sent(number);
            self.core.at(time, LanEvent::Transmit(number));
        }
    }

    /// The adapter's processor has done its job.
    pub(super) fn firmware_done(&mut self, number: u32) {
        if self.core.trains {
            self.take_what_came(number, self.core.now());
        }
        let job = self.adapters[number as usize].job.take();
        match job {
            Some(Job::TakeUp(circuit)) => self.adapters[number as usize].sending = Some(circuit),
            Some(Job::Send(cell)) if self.send_ahead(number, cell) => {}
            Some(Job::Send(mut cell)) => {
                self.core.stepwise += usize::from(self.core.trains);
                let (end, trail) = self.dma(number, cell.trail);
                cell.trail = trail;
                self.core.at(end, LanEvent::Outward(number));
                self.adapters[number as usize].outward.push_back(cell);
            }
            Some(Job::TakeIn { trail, delivery }) => {
                let (end, trail) = self.dma(number, trail);
                if delivery.is_some() || !self.core.trains {
                    self.core.at(end, LanEvent::Inward(number));
                    self.adapters[number as usize].inward.push_back((delivery, trail));
                } else {
                    // Of a cell that completes nothing nobody hears.
                    self.core.quiet = self.core.quiet.max(end);
                }
            }
            Some(Job::Hand(delivery, trail)) => {
                let adapter = &mut self.adapters[number as usize];
                adapter.handed.push_back((delivery, trail));
                if !core::mem::replace(&mut adapter.handling, true) {
                    let handler = adapter.handler;
                    self.raise(handler, trail, number);
                }
            }
            None => {}
        }
        self.transmit(number);
        if self.core.trains {
            self.take_what_comes_now(number);
        }
    }

    /// A cell's payload crosses the bus: until when.
    fn dma(&mut self, number: u32, trail: SegmentId) -> (SimTime, SegmentId) {
        let now = self.core.now();
        let host = self.adapters[number as usize].host();
        let (start, end) = self.hosts[host as usize].take_bus(now, CELL_BYTES);
        (end, self.core.trail.push(trail, Activity::Dma, host as u16, start, end))
    }

    /// It has crossed.
    pub(super) fn is_outward(&mut self, number: u32) {
        let adapter = &mut self.adapters[number as usize];
        if let Some(cell) = adapter.outward.pop_front() {
            let out = adapter.out;
            self.core.send(out, cell);
        }
    }

    /// The same the other way.
    pub(super) fn is_inward(&mut self, number: u32) {
        let adapter = &mut self.adapters[number as usize];
        if let Some((Some(delivery), trail)) = adapter.inward.pop_front() {
            adapter.to_hand.push_back((delivery, trail));
            self.transmit(number);
        }
    }
}

/// Work on one cell, a few kinds of it.
#[derive(Clone, Copy)]
pub(super) struct Works {
    list: [(Activity, Bytes); 4],
    count: usize,
}

impl Default for Works {
    fn default() -> Self {
        Self { list: [(Activity::Crc, Bytes::new(0)); 4], count: 0 }
    }
}

impl Works {
    fn push(&mut self, activity: Activity, bytes: Bytes) {
        let slot = self.list.get_mut(self.count).expect("an adaptation layer does four things to a cell");
        *slot = (activity, bytes);
        self.count += 1;
    }

    /// What firmware takes for it; the CRC is made by hardware as the octets pass.
    fn priced(&self, prices: &FirmwarePrices) -> Span {
        let of = |activity| match activity {
            Activity::SegmentCell => prices.send_cell,
            Activity::ReassembleCell => prices.receive_cell,
            _ => Span::ZERO,
        };
        self.list[..self.count].iter().map(|(activity, _)| of(*activity)).sum()
    }
}
