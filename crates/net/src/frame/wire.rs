//! The wire: what joins the ports, and the machine that moves frames across it.
//!
//! - A **cable** joins two ports. Each direction has a transmitter of its own: a frame takes its
//!   serialisation time (preamble, padding and check sequence included), then the gap keeps the line
//!   busy; its last bit arrives a propagation delay later, and with it the frame.
//! - A **switch** has such a cable to each port. It stores a frame whole, then forwards it by the
//!   table of a learning bridge: a frame is serialised twice, and ports that send to one another do
//!   not disturb other pairs. Each of its outputs has a finite queue, or several by class ([`Queues`]),
//!   and may have background load in them.
//! - A **shared** medium carries one frame at a time for all ports, and every port hears every other.
//!   When it falls idle, the next port after the last sender that has a frame waiting may send one.
//!   Choice: turns in place of collisions and backoff, the limit of a fair half-duplex Ethernet that
//!   wastes nothing on contention.
//! - Stations on a **CSMA/CD** cable listen, collide and back off: [`csma_cd`](crate::csma_cd).
//!
//! A host's frames wait in a finite queue of their port until its transmitter takes them.

use std::collections::VecDeque;
use std::fmt;

use wiretwin_engine::{EventQueue, Slab, Stream};
use wiretwin_plan::{PlanError, Queue};
use wiretwin_units::{BitRate, Bytes, SimTime, Span, Transmitter};

use super::counters::{Counters, Totals};
use super::queues::{Background, Leaving, Outputs, QueueCounters, Queues};
use super::switch::{Forward, Table};
use super::{CHECK, Frame, GAP, HEADER, PREAMBLE, PortId, SHORTEST};
use crate::csma_cd::{self, CsmaCd, StationId};
use crate::fault::{Faults, Hold, Passing, Rule, When};
use crate::port::{self, Discipline, PortSpec, Taken};

/// The slowest line, so that no queue outlasts the run.
const SLOWEST: BitRate = BitRate::kbit_s(1);
/// While no frame is under way, background load is looked after so often.
const IDLE: Span = Span::from_ms(10);

/// What joins the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Two ports, a line each way.
    Cable,
    /// Any number of ports, each with a line each way to a switch that stores and forwards.
    Switch {
        /// From the last bit in to the first bit out, if the output is idle.
        latency: Span,
        /// What may wait for each output, the frame being sent apart; with queues by class, in each of them.
        queue: Bytes,
    },
    /// Any number of ports on one medium, by turns.
    Shared,
    /// Any number of stations on one cable, evenly spaced, that listen, collide and back off. Half
    /// duplex at 10, 100 or 1000 Mbit/s; the delay is from one end of the cable to the other.
    CsmaCd,
}

/// How a wire is made.
#[derive(Clone, Debug, PartialEq)]
pub struct WireConfig {
    /// What joins the ports.
    pub medium: Medium,
    /// Bits per second of each line; at least 1 kbit/s.
    pub rate: BitRate,
    /// Propagation time of each line.
    pub delay: Span,
    /// Frames that may wait in a port's transmit queue, the one being sent apart.
    pub queue_frames: u32,
    /// The longest frame, header and data; longer ones are rejected.
    pub longest: Bytes,
    /// Faults, in order.
    pub rules: Vec<Rule>,
    /// Queues by class at the outputs of a switch; one for all if absent.
    pub queues: Option<Queues>,
    /// Background load at the outputs of a switch.
    pub background: Vec<Background>,
    /// The seed of the faults and of background load.
    pub seed: u64,
}

/// What a wire asks of its driver, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Give this frame to the port's host.
    Deliver {
        /// The port that receives.
        port: PortId,
        /// The port that sent.
        from: PortId,
        /// The frame.
        frame: Frame<P>,
        /// When its last bit arrived; not later than the time the wire has been brought to.
        due: SimTime,
    },
    /// Nothing more for now. Call [`Wire::handle_timeout`] at this time; `None` is never.
    Timeout(Option<SimTime>),
}

/// What will happen.
#[derive(Clone, Debug)]
enum Step<P> {
    /// A frame is whole at the switch.
    Switch { from: PortId, frame: Frame<P> },
    /// The shared medium falls idle.
    Idle,
    /// A frame is whole at a port.
    Arrive { from: PortId, to: PortId, frame: Frame<P> },
    /// So is its second copy, which has met the rules with the first.
    Again { from: PortId, to: PortId, frame: Frame<P> },
    /// A frame has been held back long enough.
    Release { to: PortId, number: u64 },
    /// A frame reaches the queues of an output.
    Queue { from: PortId, to: PortId, frame: Frame<P> },
    /// What waits at an output has its turn.
    Turn { to: PortId },
    /// A source of background load has a frame.
    Load { to: PortId, source: u16 },
}

impl<P> Step<P> {
    /// Whether it is about no frame that a host has sent.
    const fn is_of_nobody(&self) -> bool {
        matches!(self, Self::Turn { .. } | Self::Load { .. })
    }
}

/// A frame that waits to be overtaken.
#[derive(Clone, Debug)]
struct HeldBack<P> {
    number: u64,
    from: PortId,
    frame: Frame<P>,
    frames_left: Option<u32>,
}

#[derive(Clone, Debug)]
struct Port<P> {
    counters: Counters,
    held_back: Vec<HeldBack<P>>,
}

/// The transmitters, and what waits for them.
enum Lines<P> {
    Cable(Vec<port::Port<()>>),
    Switch { inward: Vec<port::Port<()>>, outward: Outward<P>, table: Table, latency: Span },
    Shared { line: Transmitter, busy: bool, last: usize, waiting: Vec<VecDeque<Frame<P>>> },
    CsmaCd { cable: Box<CsmaCd<Frame<P>>>, waiting: Vec<VecDeque<Frame<P>>> },
}

/// The outputs of a switch.
enum Outward<P> {
    /// A queue each, which frames leave as they come.
    Plain(Vec<port::Port<()>>),
    /// Queues by class, or background load.
    Queued(Outputs<P>),
}

/// Ports and what joins them.
pub struct Wire<P> {
    now: SimTime,
    rate: BitRate,
    delay: Span,
    queue_frames: usize,
    longest: Bytes,
    lines: Lines<P>,
    faults: Faults,
    ports: Vec<Port<P>>,
    /// Numbers of steps.
    events: EventQueue<u32>,
    steps: Slab<Step<P>>,
    /// How many of the steps are about no frame that a host has sent.
    of_nobody: usize,
    outputs: VecDeque<Output<P>>,
}

impl<P> fmt::Debug for Wire<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("now", &self.now)
            .field("ports", &self.ports.len())
            .finish_non_exhaustive()
    }
}

impl<P: Clone> Wire<P> {
    /// The most ports of a wire.
    pub const MOST_PORTS: usize = 256;

    /// An idle wire with this many ports.
    ///
    /// # Errors
    /// [`PlanError`]: fewer than 2 ports or more than the medium joins, a rate that is too low or no half-duplex Ethernet's
    /// where stations collide, a rule of a port that is not there or of every 0th frame.
    pub fn new(config: WireConfig, ports: usize) -> Result<Self, PlanError> {
        let WireConfig { medium, rate, delay, queue_frames, longest, rules, queues, background, seed } =
            config;
        let most = if medium == Medium::Cable { 2 } else { Self::MOST_PORTS };
        if !(2..=most).contains(&ports) {
            return Err(PlanError::new("ports", ports, format!("2 to {most}")));
        }
        if rate < SLOWEST {
            return Err(PlanError::new("rate", rate, format!("{SLOWEST} or more")));
        }
        for (number, rule) in rules.iter().enumerate() {
            let named = [rule.filter.from, rule.filter.to];
            if let Some(port) = named.into_iter().flatten().find(|port| usize::from(port.0) >= ports) {
                return Err(PlanError::new(
                    format!("rules[{number}]"),
                    port,
                    format!("ports 0 to {}", ports - 1),
                ));
            }
            if rule.when == When::Every(0) {
                return Err(PlanError::new(format!("rules[{number}].every"), 0, "1 or more"));
            }
        }
        let has_queues = queues.is_some() || !background.is_empty();
        if has_queues && !matches!(medium, Medium::Switch { .. }) {
            return Err(PlanError::new("queues and background", "given", "at the outputs of a switch"));
        }
        let lines_of = |discipline| {
            let (framing, gap) = (Bytes::new(PREAMBLE + CHECK), Bytes::new(GAP));
            vec![port::Port::new(PortSpec { rate, framing, gap, discipline, marks_after: Span::MAX }); ports]
        };
        // The frame that is being sent has a place of its own.
        let inward = Discipline::Fifo(Some(Queue::Packets(queue_frames.saturating_add(1))));
        let lines = match medium {
            Medium::Cable => Lines::Cable(lines_of(inward)),
            Medium::Switch { latency, queue } => Lines::Switch {
                inward: lines_of(inward),
                outward: if has_queues {
                    Outward::Queued(Outputs::new(ports, (rate, queue, seed), queues, &background)?)
                } else {
                    Outward::Plain(lines_of(Discipline::FifoBehind(queue)))
                },
                table: Table::default(),
                latency,
            },
            Medium::CsmaCd => {
                let config = [csma_cd::Config::TEN, csma_cd::Config::HUNDRED, csma_cd::Config::THOUSAND]
                    .into_iter()
                    .find(|config| config.rate == rate)
                    .ok_or_else(|| {
                        PlanError::new("rate", rate, "10, 100 or 1000 Mbit/s where stations collide")
                    })?;
                let place = |port: usize| delay.as_ps() as u128 * port as u128 / (ports as u128 - 1);
                let places: Vec<Span> = (0..ports).map(|port| Span::from_ps(place(port) as u64)).collect();
                let backoff =
                    |station: StationId| Stream::derive(seed, &format!("wire/backoff/{}", station.0));
                let cable = CsmaCd::new(config, &places, backoff)
                    .expect("two stations or more, at one of the rates there are");
                Lines::CsmaCd { cable: Box::new(cable), waiting: vec![VecDeque::new(); ports] }
            }
            Medium::Shared => {
                let line = Transmitter::new(rate);
                Lines::Shared { line, busy: false, last: ports - 1, waiting: vec![VecDeque::new(); ports] }
            }
        };
        let mut wire = Self {
            now: SimTime::ZERO,
            rate,
            delay,
            queue_frames: queue_frames as usize,
            longest,
            lines,
            faults: Faults::new(rules, seed),
            ports: vec![Port { counters: Counters::default(), held_back: Vec::new() }; ports],
            events: EventQueue::new(),
            steps: Slab::new(),
            of_nobody: 0,
            outputs: VecDeque::new(),
        };
        if let Some(outputs) = wire.outputs() {
            let first: Vec<_> = outputs.first().collect();
            for (to, source, at) in first {
                wire.schedule(at, Step::Load { to, source });
            }
        }
        Ok(wire)
    }

    /// The outputs of a switch with queues by class or background load.
    fn outputs(&mut self) -> Option<&mut Outputs<P>> {
        match &mut self.lines {
            Lines::Switch { outward: Outward::Queued(outputs), .. } => Some(outputs),
            _ => None,
        }
    }

    /// Counts of each queue of the output to a port: none where the port has one for all and no background load.
    pub fn queue_counters(&self, port: PortId) -> &[QueueCounters] {
        match &self.lines {
            Lines::Switch { outward: Outward::Queued(outputs), .. } => outputs.counters(port),
            _ => &[],
        }
    }

    /// How many ports there are.
    pub const fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Counts of a port; `None` if there is no such port.
    pub fn counters(&self, port: PortId) -> Option<&Counters> {
        self.ports.get(usize::from(port.0)).map(|port| &port.counters)
    }

    /// Frames in queues, on lines and held back, counted where they are; outputs that have not been
    /// polled are no longer among them.
    pub fn held(&self) -> u64 {
        let moving = |step: &&Step<P>| {
            !matches!(step, Step::Idle | Step::Release { .. } | Step::Turn { .. } | Step::Load { .. })
        };
        let waiting = match &self.lines {
            Lines::Shared { waiting, .. } => waiting.iter().map(VecDeque::len).sum(),
            Lines::CsmaCd { cable, waiting } => {
                waiting.iter().map(VecDeque::len).sum::<usize>() + on_cable(cable)
            }
            Lines::Switch { outward: Outward::Queued(outputs), .. } => outputs.waiting(),
            // Their frames are in steps as soon as they are queued.
            Lines::Cable(_) | Lines::Switch { .. } => 0,
        };
        let held_back: usize = self.ports.iter().map(|port| port.held_back.len()).sum();
        (self.steps.iter().filter(moving).count() + waiting + held_back) as u64
    }

    /// Sums over all ports.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { held: self.held(), ..Totals::default() };
        self.ports.iter().for_each(|port| totals.add(&port.counters));
        totals
    }

    /// Takes a frame that a port's host has just handed to its transmitter. Whatever is due by then
    /// happens first.
    ///
    /// # Errors
    /// [`PlanError`]: no such port, a length that no frame has, a time that has passed. The frame is not counted then.
    pub fn handle_frame(&mut self, now: SimTime, port: PortId, frame: Frame<P>) -> Result<(), PlanError> {
        let index = usize::from(port.0);
        if index >= self.ports.len() {
            return Err(PlanError::new("port", port.0, format!("0 to {}", self.ports.len() - 1)));
        }
        if frame.length > self.longest || frame.length < Bytes::new(HEADER as u64) {
            return Err(PlanError::new(
                "frame.length",
                frame.length,
                format!("{HEADER} B to {}", self.longest),
            ));
        }
        if now < self.now {
            return Err(PlanError::new("now", now, format!("{} or later", self.now)));
        }
        self.handle_timeout(now);
        let counters = &mut self.ports[index].counters;
        counters.received += 1;
        counters.received_bytes += frame.length.get();
        let sent = match &mut self.lines {
            Lines::Cable(lines) | Lines::Switch { inward: lines, .. } => send(&mut lines[index], now, &frame),
            Lines::Shared { busy, waiting, .. } => {
                if *busy && waiting[index].len() >= self.queue_frames {
                    None
                } else {
                    waiting[index].push_back(frame);
                    self.take_turns();
                    return Ok(());
                }
            }
            Lines::CsmaCd { cable, waiting } => {
                if !cable.is_idle(StationId(port.0)) && waiting[index].len() >= self.queue_frames {
                    None
                } else {
                    waiting[index].push_back(frame);
                    self.offer(port);
                    return Ok(());
                }
            }
        };
        let Some(sent) = sent else {
            self.ports[index].counters.queue_drops += 1;
            return Ok(());
        };
        let at = sent.saturating_add(self.delay);
        let step = match self.lines {
            Lines::Cable(_) => Step::Arrive { from: port, to: PortId(1 - port.0), frame },
            _ => Step::Switch { from: port, frame },
        };
        self.schedule(at, step);
        Ok(())
    }

    /// Brings the wire to `now`; a time already reached changes nothing.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while let Some(at) = self.next().filter(|&at| at <= now) {
            // A step back by an event that was due already is none: the wire stays where it is.
            self.now = self.now.max(at);
            if let Lines::CsmaCd { cable, .. } = &mut self.lines {
                cable.handle_timeout(at);
                self.drain_cable();
            }
            while let Some(event) = self.events.pop_through(at) {
                let step = self.steps.remove(event.what);
                self.of_nobody -= usize::from(step.is_of_nobody());
                self.step(step);
            }
        }
        self.now = self.now.max(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Output<P> {
        match self.outputs.pop_front() {
            Some(output) => output,
            None => {
                let next = self.next();
                let is_idle = self.steps.len() == self.of_nobody && self.of_nobody > 0 && self.held() == 0;
                Output::Timeout(if is_idle { next.max(Some(self.now.saturating_add(IDLE))) } else { next })
            }
        }
    }

    /// When something happens next. The cable has been drained.
    fn next(&mut self) -> Option<SimTime> {
        let own = self.events.next_time();
        let Lines::CsmaCd { cable, .. } = &mut self.lines else { return own };
        let csma_cd::Output::Timeout(cable) = cable.poll_output() else {
            unreachable!("the cable is drained as soon as it has been brought forward")
        };
        own.into_iter().chain(cable).min()
    }

    fn step(&mut self, step: Step<P>) {
        match step {
            Step::Switch { from, frame } => self.forward(from, frame),
            Step::Idle => {
                if let Lines::Shared { busy, .. } = &mut self.lines {
                    *busy = false;
                }
                self.take_turns();
            }
            Step::Arrive { from, to, frame } => self.arrive(from, to, frame),
            Step::Again { from, to, frame } => self.deliver(from, to, frame),
            Step::Release { to, number } => self.release(to, |held| held.number == number),
            Step::Queue { from, to, frame } => self.queue(from, to, frame),
            Step::Turn { to } => {
                if let Some(outputs) = self.outputs() {
                    outputs.turned(to);
                }
                self.turn(to);
            }
            Step::Load { to, source } => {
                self.leave(to);
                let now = self.now;
                let at = self.outputs().map(|outputs| outputs.load(now, to, source));
                if let Some(at) = at.filter(|&at| at < SimTime::MAX) {
                    self.schedule(at, Step::Load { to, source });
                }
                self.turn(to);
            }
        }
    }

    /// Puts a frame into the queue of its class.
    fn queue(&mut self, from: PortId, to: PortId, frame: Frame<P>) {
        self.leave(to);
        let now = self.now;
        let Some(outputs) = self.outputs() else { return };
        let (leaving, drops) = {
            let leaving = outputs.take(now, to, from, frame);
            (leaving, outputs.counters(to).iter().map(|queue| queue.drops).sum())
        };
        self.ports[usize::from(to.0)].counters.switch_drops = drops;
        if let Some(leaving) = leaving {
            self.left(to, leaving);
        }
        self.turn(to);
    }

    /// Sends on what has had its turn by now at an output.
    fn leave(&mut self, to: PortId) {
        let now = self.now;
        while let Some(leaving) = self.outputs().and_then(|outputs| outputs.next(now, to)) {
            self.left(to, leaving);
        }
    }

    fn left(&mut self, to: PortId, leaving: Leaving<P>) {
        let Leaving { from, frame, at } = leaving;
        self.schedule(at.saturating_add(self.delay), Step::Arrive { from, to, frame });
    }

    fn turn(&mut self, to: PortId) {
        self.leave(to);
        if let Some(at) = self.outputs().and_then(|outputs| outputs.turn(to)) {
            self.schedule(at, Step::Turn { to });
        }
    }

    /// Gives a station with nothing to do the next frame of its queue.
    fn offer(&mut self, port: PortId) {
        let Lines::CsmaCd { cable, waiting } = &mut self.lines else { return };
        let station = StationId(port.0);
        while cable.is_idle(station)
            && let Some(frame) = waiting[usize::from(port.0)].pop_front()
        {
            let octets = frame.length + Bytes::new(CHECK);
            let offered = csma_cd::Frame { to: None, octets, payload: frame };
            cable
                .offer(self.now, station, offered)
                .expect("an idle station of this cable is offered a frame of at most 64 KiB");
        }
    }

    /// Takes what the cable has to say.
    fn drain_cable(&mut self) {
        loop {
            let Lines::CsmaCd { cable, .. } = &mut self.lines else { return };
            match cable.poll_output() {
                csma_cd::Output::Deliver { station, from, frame, .. } => {
                    self.arrive(PortId(from.0), PortId(station.0), frame.payload);
                }
                csma_cd::Output::Sent { station, collisions, .. } => {
                    let copies = self.ports.len() as u64 - 2;
                    let counters = &mut self.ports[usize::from(station.0)].counters;
                    counters.copied += copies;
                    counters.collisions += u64::from(collisions);
                    self.offer(PortId(station.0));
                }
                csma_cd::Output::Failed { station, .. } => {
                    self.ports[usize::from(station.0)].counters.collision_drops += 1;
                    self.offer(PortId(station.0));
                }
                csma_cd::Output::Timeout(_) => break,
            }
        }
        let Lines::CsmaCd { cable, .. } = &self.lines else { return };
        for (number, port) in (0..).zip(&mut self.ports) {
            port.counters.damaged = cable.counters(StationId(number)).map_or(0, |counted| counted.damaged);
        }
    }

    fn schedule(&mut self, at: SimTime, step: Step<P>) {
        self.of_nobody += usize::from(step.is_of_nobody());
        let number = self.steps.insert(step);
        self.events.push(at, number);
    }

    /// The switch has a whole frame: puts it on the lines to where it goes.
    fn forward(&mut self, from: PortId, frame: Frame<P>) {
        let Lines::Switch { outward, table, latency, .. } = &mut self.lines else {
            unreachable!("only a switch is sent frames to forward")
        };
        let targets = match table.forward(self.now, from, frame.source, frame.destination) {
            Forward::One(port) => usize::from(port.0)..usize::from(port.0) + 1,
            Forward::All => 0..self.ports.len(),
            Forward::Nowhere => {
                self.ports[usize::from(from.0)].counters.filtered += 1;
                return;
            }
        };
        let ready = self.now.saturating_add(*latency);
        let mut sends = Vec::new();
        let targets = targets.filter(|&index| index != usize::from(from.0));
        let Outward::Plain(outward) = outward else {
            let targets: Vec<PortId> = targets.map(|index| PortId(index as u16)).collect();
            self.ports[usize::from(from.0)].counters.copied += targets.len() as u64 - 1;
            for to in targets {
                self.schedule(ready, Step::Queue { from, to, frame: frame.clone() });
            }
            return;
        };
        for index in targets {
            sends.push((PortId(index as u16), send(&mut outward[index], ready, &frame)));
        }
        self.ports[usize::from(from.0)].counters.copied += sends.len() as u64 - 1;
        for (to, sent) in sends {
            let frame = frame.clone();
            match sent {
                Some(sent) => {
                    let at = sent.saturating_add(self.delay);
                    self.schedule(at, Step::Arrive { from, to, frame });
                }
                None => {
                    self.ports[usize::from(to.0)].counters.switch_drops += 1;
                }
            }
        }
    }

    /// Gives an idle shared medium to the next port that has a frame waiting.
    fn take_turns(&mut self) {
        let Lines::Shared { line, busy, last, waiting } = &mut self.lines else { return };
        if *busy {
            return;
        }
        let count = waiting.len();
        let turn = (1..=count).map(|step| (*last + step) % count).find(|&port| !waiting[port].is_empty());
        let Some((turn, frame)) = turn.and_then(|turn| Some((turn, waiting[turn].pop_front()?))) else {
            return;
        };
        (*last, *busy) = (turn, true);
        let from = PortId(turn as u16);
        let sent = line.send(self.now, frame.line_bits()).ok();
        let idle = sent.and_then(|sent| line.send(sent.end, Frame::<P>::gap_bits()).ok());
        let (Some(sent), Some(idle)) = (sent, idle) else {
            // It would end after the last instant there is, and so would all others.
            self.ports[turn].counters.queue_drops += 1;
            return;
        };
        self.schedule(idle.end, Step::Idle);
        self.ports[turn].counters.copied += count as u64 - 2;
        let at = sent.end.saturating_add(self.delay);
        for to in (0..count).filter(|&to| to != turn) {
            self.schedule(at, Step::Arrive { from, to: PortId(to as u16), frame: frame.clone() });
        }
    }

    /// A frame is whole at a port: the rules decide.
    fn arrive(&mut self, from: PortId, to: PortId, mut frame: Frame<P>) {
        let Frame { ethertype, protocol, dscp, length, .. } = frame;
        let fate = self.faults.judge(&Passing { from, to, ethertype, protocol, dscp, length: length.bits() });
        let counters = &mut self.ports[usize::from(to.0)].counters;
        if fate.dropped {
            counters.rule_drops += 1;
            return;
        }
        counters.corrupted += fate.flips.len() as u64;
        counters.duplicated += u64::from(fate.copies);
        frame.flipped.extend(fate.flips);
        let again = self.time_for(&frame);
        let mut at = self.now;
        for _ in 0..fate.copies {
            at = at.saturating_add(again);
            self.schedule(at, Step::Again { from, to, frame: frame.clone() });
        }
        match fate.hold {
            None => self.deliver(from, to, frame),
            Some(hold) => self.hold_back(from, to, frame, hold),
        }
    }

    /// What a frame and the gap after it take on a line.
    fn time_for(&self, frame: &Frame<P>) -> Span {
        let bits = frame.line_bits() + Frame::<P>::gap_bits();
        self.rate.time_for(bits).unwrap_or(Span::MAX)
    }

    fn hold_back(&mut self, from: PortId, to: PortId, frame: Frame<P>, hold: Hold) {
        // The number of the step that releases it at the latest.
        let number = self.events.pushed();
        self.schedule(self.now.saturating_add(hold.time), Step::Release { to, number });
        let port = &mut self.ports[usize::from(to.0)];
        port.counters.reordered += 1;
        port.held_back.push(HeldBack { number, from, frame, frames_left: hold.frames });
    }

    /// Gives a frame to a port; those that waited for it to pass follow.
    fn deliver(&mut self, from: PortId, to: PortId, frame: Frame<P>) {
        self.emit(from, to, frame);
        let port = &mut self.ports[usize::from(to.0)];
        if port.held_back.is_empty() {
            return;
        }
        for held in &mut port.held_back {
            held.frames_left = held.frames_left.map(|left| left.saturating_sub(1));
        }
        self.release(to, |held| held.frames_left == Some(0));
    }

    /// Gives the held frames that `wanted` chooses to their port.
    fn release(&mut self, to: PortId, wanted: impl Fn(&HeldBack<P>) -> bool) {
        let held_back = &mut self.ports[usize::from(to.0)].held_back;
        let (released, kept) = std::mem::take(held_back).into_iter().partition(|held| wanted(held));
        *held_back = kept;
        let released: Vec<HeldBack<P>> = released;
        for held in released {
            self.emit(held.from, to, held.frame);
        }
    }

    fn emit(&mut self, from: PortId, port: PortId, frame: Frame<P>) {
        let counters = &mut self.ports[usize::from(port.0)].counters;
        counters.delivered += 1;
        counters.delivered_bytes += frame.length.get();
        self.outputs.push_back(Output::Deliver { port, from, frame, due: self.now });
    }
}

/// When the last bit of a frame that is given to a line will have left, unless it finds no room.
fn send<P>(line: &mut port::Port<()>, now: SimTime, frame: &Frame<P>) -> Option<SimTime> {
    match line.take(now, 0, (), frame.length.get().max(SHORTEST) as u32) {
        Taken::Sent(end) | Taken::Marked(end) => Some(end),
        _ => None,
    }
}

/// Frames that a cable's stations have not done with, and copies that have not reached theirs.
fn on_cable<P: Clone>(cable: &CsmaCd<Frame<P>>) -> usize {
    let others = cable.stations() as u64 - 1;
    let (mut entered, mut left) = (0, 0);
    for station in 0..cable.stations() as u16 {
        let counted = cable.counters(StationId(station)).unwrap_or_default();
        entered += counted.offered + counted.sent * others;
        left += counted.sent + counted.excessive + counted.late + counted.received + counted.damaged;
    }
    (entered - left) as usize
}
