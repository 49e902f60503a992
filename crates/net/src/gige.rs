//! Gigabit Ethernet: adapters with rings and a bus; full duplex with PAUSE, back to back or through a switch, or
//! half duplex on a line that all share.
//!
//! IEEE 802.3z and 802.3x (1998). A frame crosses the host's bus to its adapter by DMA, is whole there before
//! it goes out, and crosses the other host's bus when it has come whole. Both directions share a host's bus
//! (PCI) and its adapter's processor. An adapter tells its host of frames when so many have come, or so long
//! after the first: interrupt coalescing. A receiver whose memory fills stops its sender by PAUSE, or loses
//! frames.
//!
//! A switch has a queue at each port: it forwards a frame when it has it whole, or, cutting through, as soon as
//! it has its head and the way out is free.
//!
//! Left out: half duplex (carrier extension, bursts), errors on the line, descriptors that the host is late to
//! give back, a switch that sends PAUSE.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use wiretwin_engine::Stream;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use crate::csma_cd::{self, CsmaCd, StationId};

/// Preamble, delimiter and gap: octets of the line beside a frame's.
pub const LINE_OCTETS: Bytes = Bytes::new(20);
/// The shortest frame.
pub const SHORTEST: Bytes = Bytes::new(64);
/// What a switch that cuts through has read of a frame when it knows its way.
pub const HEAD_OCTETS: Bytes = Bytes::new(14);
/// Pause time is counted in these bit times (802.3, annex 31B).
pub const QUANTUM_BITS: u64 = 512;
/// The longest pause time, in quanta.
pub const LONGEST_PAUSE: u64 = 65_535;

/// An adapter and the bus it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// To get the bus, each frame.
    pub bus_setup: Span,
    /// Each byte on the bus.
    pub bus_byte: Span,
    /// What the adapter's own processor takes, each frame, out or in.
    pub frame: Span,
    /// Frames that wait to be fetched: the ring of send descriptors. More are refused.
    pub send_frames: u32,
    /// Memory for what has come and is not at the host.
    pub receive: Bytes,
    /// Frames that the host has memory for: the ring of receive descriptors. One more waits on the adapter until
    /// the host has taken one ([`Gige::taken`]).
    pub receive_frames: u32,
    /// The host is told after so many frames,
    pub coalesce_frames: u32,
    /// or so long after the first.
    pub coalesce: Span,
    /// Whether it stops its sender when half of that memory is full.
    pub pause: bool,
}

/// How a switch forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// When it has the frame whole.
    Stored,
    /// When it has the head, if nothing is in the way.
    CutThrough,
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// How it forwards.
    pub forwarding: Forwarding,
    /// From there to the way out.
    pub latency: Span,
    /// Memory of each way out; what finds no room is lost.
    pub port: Bytes,
}

/// Who may send at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// Both ends of each link.
    Full,
    /// One station of all.
    Half {
        /// In bursts, where it has several frames.
        bursts: bool,
    },
}

impl Duplex {
    /// The rules of the line that all share, if they do.
    #[must_use]
    pub fn rules(self, rate: BitRate) -> Option<csma_cd::Config> {
        match self {
            Self::Full => None,
            Self::Half { bursts: false } => Some(csma_cd::Config { rate, ..csma_cd::Config::THOUSAND }),
            Self::Half { bursts: true } => {
                Some(csma_cd::Config { rate, ..csma_cd::Config::THOUSAND_IN_BURSTS })
            }
        }
    }
}

/// A network; every host has the same adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits per second, each way.
    pub rate: BitRate,
    /// Who may send at a time.
    pub duplex: Duplex,
    /// From one end of a link to the other; from a station to the next, where they share one.
    pub propagation: Span,
    /// The adapters.
    pub adapter: Adapter,
    /// The switch in the middle; none between two hosts, or in half duplex.
    pub switch: Option<Switch>,
}

/// When a frame was where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The bus began to carry it to the adapter.
    pub fetched: SimTime,
    /// It was there.
    pub there: SimTime,
    /// Its first bit went out, for the last time where there is a switch or collisions.
    pub sent: SimTime,
    /// Its last bit had gone out, or the last of its extension.
    pub gone: SimTime,
    /// It had come whole.
    pub came: SimTime,
    /// The bus began to carry it to the host.
    pub stored: SimTime,
    /// It was in the host's memory.
    pub taken: SimTime,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// The host is told of a frame.
    Deliver {
        /// Whose host.
        station: u32,
        /// What it carries.
        payload: P,
        /// When it was where.
        stamps: Stamps,
    },
    /// A frame found no room, or collided too often.
    Lost {
        /// What it carried.
        payload: P,
        /// In the switch; else at the adapter that it came to, or that gave it up after collisions.
        in_switch: bool,
    },
    /// Nothing for now; look again then.
    Timeout(Option<SimTime>),
}

#[derive(Clone, Debug)]
struct Frame<P> {
    to: u32,
    octets: Bytes,
    payload: P,
    stamps: Stamps,
}

#[derive(Clone, Debug)]
enum Job<P> {
    Out(Frame<P>),
    In(Frame<P>),
}

#[derive(Clone, Debug)]
struct Station<P> {
    /// Waits to be fetched.
    ring: VecDeque<Frame<P>>,
    /// Whole on the adapter, outward.
    outward: VecDeque<Frame<P>>,
    /// Whole on the adapter, inward.
    inward: VecDeque<Frame<P>>,
    /// Octets of those, and of the one on the bus.
    held: Bytes,
    on_bus: Option<Job<P>>,
    sending: bool,
    /// Where it is on the line that all share.
    on_line: usize,
    paused_until: SimTime,
    /// It has told its sender to stop.
    pausing: bool,
    /// In the host's memory, and not told of.
    ready: VecDeque<Frame<P>>,
    /// Receive descriptors that are with the adapter's work or the host.
    used: u32,
    /// Counts what was told, so that an old timer does not tell.
    told: u64,
}

/// A way out of the switch.
#[derive(Clone, Debug)]
struct PortOut<P> {
    queue: VecDeque<Frame<P>>,
    held: Bytes,
    sending: bool,
}

#[derive(Clone, Debug)]
enum Event<P> {
    /// The bus of a station is free.
    Bus(u32),
    /// A station has sent its frame.
    Sent(u32),
    /// A frame may go on in the switch.
    Forward(Frame<P>),
    /// A way out of the switch has sent its frame.
    Forwarded(u32),
    /// A frame has come whole to a station.
    Came(Frame<P>),
    /// A station is to pause until then; a time that has passed lets it go on.
    Pause(u32, SimTime),
    /// A pause may be over.
    Resume(u32),
    /// The first frame that a host was not told of has waited long enough.
    Tell(u32, u64),
}

#[derive(Debug)]
struct Due<P>(SimTime, u64, Event<P>);

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}
impl<P> Eq for Due<P> {}
impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Due<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames taken from hosts.
    pub taken: u64,
    /// Frames that hosts were told of.
    pub delivered: u64,
    /// Frames lost in the switch.
    pub lost_in_switch: u64,
    /// Frames lost at an adapter.
    pub lost: u64,
    /// Frames given up after collisions.
    pub given_up: u64,
    /// PAUSE frames that stop.
    pub pauses: u64,
    /// Times that hosts were told of frames: interrupts.
    pub interrupts: u64,
}

/// The line that all share, in half duplex.
#[derive(Debug)]
struct Shared<P> {
    cable: CsmaCd<usize>,
    /// When it is to look again.
    due: Option<SimTime>,
    /// Frames on it, and places for more.
    frames: Vec<Option<Frame<P>>>,
    free: Vec<usize>,
}

/// The network.
#[derive(Debug)]
pub struct Gige<P> {
    config: Config,
    shared: Option<Shared<P>>,
    stations: Vec<Station<P>>,
    ports: Vec<PortOut<P>>,
    events: BinaryHeap<Reverse<Due<P>>>,
    order: u64,
    outputs: VecDeque<Output<P>>,
    counters: Counters,
}

impl<P> Gige<P> {
    /// A network of so many hosts; `backoff` gives each its stream, in half duplex.
    ///
    /// # Panics
    /// In full duplex if there are more than two and no switch; in half duplex with a switch, with PAUSE, or if the
    /// line is longer than half a slot.
    pub fn new(config: Config, stations: u32, backoff: impl FnMut(StationId) -> Stream) -> Self {
        let shared = config.duplex.rules(config.rate).map(|rules| {
            assert!(
                config.switch.is_none() && !config.adapter.pause,
                "half duplex is without switch and PAUSE"
            );
            assert!(fits(&config, stations), "a line of at most half a slot");
            let places: Vec<Span> = (0..u64::from(stations)).map(|at| config.propagation * at).collect();
            let cable = CsmaCd::new(rules, &places, backoff).expect("2 hosts or more, at 1 Mbit/s or more");
            Shared { cable, due: None, frames: Vec::new(), free: Vec::new() }
        });
        let joined = stations == 2 || config.switch.is_some() || shared.is_some();
        assert!(joined, "more than two hosts need a switch");
        let station = || Station {
            ring: VecDeque::new(),
            outward: VecDeque::new(),
            inward: VecDeque::new(),
            held: Bytes::new(0),
            on_bus: None,
            sending: false,
            on_line: 0,
            paused_until: SimTime::ZERO,
            pausing: false,
            ready: VecDeque::new(),
            used: 0,
            told: 0,
        };
        let port = || PortOut { queue: VecDeque::new(), held: Bytes::new(0), sending: false };
        Self {
            config,
            shared,
            stations: (0..stations).map(|_| station()).collect(),
            ports: (0..stations).map(|_| port()).collect(),
            events: BinaryHeap::new(),
            order: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What it is made of.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What went through.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// How long a frame takes on the line, preamble and gap apart.
    pub fn time_of(&self, octets: Bytes) -> Span {
        self.config.rate.time_for(octets.max(SHORTEST).bits()).unwrap_or(Span::MAX)
    }

    /// Whether the ring of a host has room.
    pub fn has_room(&self, host: u32) -> bool {
        self.stations[host as usize].ring.len() < self.config.adapter.send_frames as usize
    }

    /// A host has a frame for another; `false` where its ring is full.
    pub fn offer(&mut self, now: SimTime, from: u32, to: u32, octets: Bytes, payload: P) -> bool {
        self.handle_timeout(now);
        let station = &mut self.stations[from as usize];
        if station.ring.len() >= self.config.adapter.send_frames as usize {
            return false;
        }
        self.counters.taken += 1;
        let octets = octets.max(SHORTEST);
        station.ring.push_back(Frame { to, octets, payload, stamps: Stamps::default() });
        self.bus(now, from);
        true
    }

    /// A host has taken a frame that it was told of, and gives its descriptor back.
    pub fn taken(&mut self, now: SimTime, host: u32) {
        self.handle_timeout(now);
        let station = &mut self.stations[host as usize];
        station.used = station.used.saturating_sub(1);
        self.bus(now, host);
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: SimTime) {
        loop {
            let due = self.shared.as_ref().and_then(|shared| shared.due).filter(|due| *due <= now);
            let own = self.events.peek().map(|Reverse(Due(time, ..))| *time).filter(|time| *time <= now);
            match (due, own) {
                (Some(due), own) if own.is_none_or(|own| due <= own) => {
                    self.shared.as_mut().expect("it is due").cable.handle_timeout(due);
                    self.on_cable(due);
                }
                (_, Some(_)) => {
                    let Some(Reverse(Due(time, _, event))) = self.events.pop() else { return };
                    self.happen(time, event);
                }
                _ => return,
            }
        }
    }

    /// What happened; the next time that something may when that is all.
    pub fn poll_output(&mut self) -> Output<P> {
        let next = self.events.peek().map(|Reverse(Due(time, ..))| *time);
        let due = self.shared.as_ref().and_then(|shared| shared.due);
        self.outputs.pop_front().unwrap_or(Output::Timeout(next.into_iter().chain(due).min()))
    }

    /// Does what the line that all share asks for.
    fn on_cable(&mut self, now: SimTime) {
        loop {
            let Some(shared) = &mut self.shared else { return };
            match shared.cable.poll_output() {
                csma_cd::Output::Sent { station, began, due, .. } => {
                    let at = u32::from(station.0);
                    let frame = shared.frames[self.stations[at as usize].on_line].as_mut();
                    let stamps = &mut frame.expect("it is on the line").stamps;
                    (stamps.sent, stamps.gone) = (began, due);
                    self.line_is_free(now, at);
                }
                csma_cd::Output::Failed { station, frame, .. } => {
                    let Frame { payload, .. } = shared.take(frame.payload);
                    self.counters.given_up += 1;
                    self.outputs.push_back(Output::Lost { payload, in_switch: false });
                    self.line_is_free(now, station.0.into());
                }
                csma_cd::Output::Deliver { frame, .. } => {
                    let frame = shared.take(frame.payload);
                    self.came(now, frame);
                }
                csma_cd::Output::Timeout(due) => return shared.due = due,
            }
        }
    }

    /// A station may send its next frame.
    fn line_is_free(&mut self, now: SimTime, at: u32) {
        self.stations[at as usize].sending = false;
        self.send(now, at);
        self.bus(now, at);
    }

    fn at(&mut self, time: SimTime, event: Event<P>) {
        self.order += 1;
        self.events.push(Reverse(Due(time, self.order, event)));
    }

    fn happen(&mut self, now: SimTime, event: Event<P>) {
        match event {
            Event::Bus(at) => self.bus_done(now, at),
            Event::Sent(at) => self.line_is_free(now, at),
            Event::Forward(frame) => self.queue(now, frame),
            Event::Forwarded(port) => {
                let way = &mut self.ports[port as usize];
                way.sending = false;
                self.forward(now, port);
            }
            Event::Came(frame) => self.came(now, frame),
            Event::Pause(at, until) => {
                let station = &mut self.stations[at as usize];
                station.paused_until = until;
                if until > now {
                    self.at(until, Event::Resume(at));
                } else {
                    self.send(now, at);
                    self.bus(now, at);
                }
            }
            Event::Resume(at) => {
                if self.stations[at as usize].paused_until <= now {
                    self.send(now, at);
                    self.bus(now, at);
                }
            }
            Event::Tell(at, told) => {
                if self.stations[at as usize].told == told {
                    self.tell(now, at);
                }
            }
        }
    }

    /// Gives the bus its next frame: what came goes first.
    fn bus(&mut self, now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        if station.on_bus.is_some() {
            return;
        }
        let room = station.used < self.config.adapter.receive_frames;
        let mut job = if room && let Some(frame) = station.inward.pop_front() {
            station.used += 1;
            Job::In(frame)
        } else if station.outward.len() < OUTWARD_FRAMES
            && let Some(frame) = station.ring.pop_front()
        {
            Job::Out(frame)
        } else {
            return;
        };
        let octets = match &mut job {
            Job::In(frame) => {
                frame.stamps.stored = now;
                frame.octets
            }
            Job::Out(frame) => {
                frame.stamps.fetched = now;
                frame.octets
            }
        };
        station.on_bus = Some(job);
        let Adapter { bus_setup, bus_byte, frame, .. } = self.config.adapter;
        self.at(now + bus_setup + bus_byte * octets.get() + frame, Event::Bus(at));
    }

    fn bus_done(&mut self, now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        match station.on_bus.take() {
            Some(Job::Out(mut frame)) => {
                frame.stamps.there = now;
                station.outward.push_back(frame);
                self.send(now, at);
            }
            Some(Job::In(mut frame)) => {
                frame.stamps.taken = now;
                station.held -= frame.octets;
                station.ready.push_back(frame);
                let (waiting, told) = (station.ready.len(), station.told);
                if waiting >= self.config.adapter.coalesce_frames as usize {
                    self.tell(now, at);
                } else if waiting == 1 {
                    self.at(now + self.config.adapter.coalesce, Event::Tell(at, told));
                }
                self.pace(now, at);
            }
            None => {}
        }
        self.bus(now, at);
    }

    /// The host is told of everything in its memory.
    fn tell(&mut self, _now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        if station.ready.is_empty() {
            return;
        }
        station.told += 1;
        self.counters.interrupts += 1;
        while let Some(frame) = station.ready.pop_front() {
            self.counters.delivered += 1;
            let Frame { payload, stamps, .. } = frame;
            self.outputs.push_back(Output::Deliver { station: at, payload, stamps });
        }
    }

    /// Puts the next frame of a station on its line.
    fn send(&mut self, now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        if station.sending || station.paused_until > now {
            return;
        }
        let Some(mut frame) = station.outward.pop_front() else { return };
        station.sending = true;
        if let Some(shared) = &mut self.shared {
            let (to, octets) = (Some(StationId(frame.to as u16)), frame.octets);
            let place = shared.put(frame);
            station.on_line = place;
            let offered = csma_cd::Frame { to, octets, payload: place };
            let taken = shared.cable.offer(now, StationId(at as u16), offered);
            debug_assert!(taken.is_ok(), "a station that does not send takes a frame: {taken:?}");
            // What it asks for is done by whoever is doing that, or now.
            let due = shared.due.map_or(now, |due| due.min(now));
            shared.due = Some(due);
            return;
        }
        let time = self.time_of(frame.octets);
        frame.stamps.sent = now;
        frame.stamps.gone = now + time;
        let line = self.config.rate.time_for(LINE_OCTETS.bits()).unwrap_or(Span::ZERO);
        let Config { propagation, switch, rate, .. } = self.config;
        self.at(now + time + line, Event::Sent(at));
        match switch {
            None => self.at(now + time + propagation, Event::Came(frame)),
            Some(switch) => {
                let known = match switch.forwarding {
                    Forwarding::Stored => time,
                    Forwarding::CutThrough => rate.time_for(HEAD_OCTETS.bits()).unwrap_or(Span::ZERO),
                };
                self.at(now + propagation + known + switch.latency, Event::Forward(frame));
            }
        }
    }

    /// A frame joins those of its way out of the switch.
    fn queue(&mut self, now: SimTime, frame: Frame<P>) {
        let Some(switch) = self.config.switch else { return };
        let port = frame.to;
        let way = &mut self.ports[port as usize];
        if way.held + frame.octets > switch.port {
            self.counters.lost_in_switch += 1;
            return self.outputs.push_back(Output::Lost { payload: frame.payload, in_switch: true });
        }
        way.held += frame.octets;
        way.queue.push_back(frame);
        self.forward(now, port);
    }

    fn forward(&mut self, now: SimTime, port: u32) {
        let way = &mut self.ports[port as usize];
        if way.sending || self.stations[port as usize].pausing {
            return;
        }
        let Some(mut frame) = way.queue.pop_front() else { return };
        way.sending = true;
        way.held -= frame.octets;
        let time = self.time_of(frame.octets);
        let line = self.config.rate.time_for(LINE_OCTETS.bits()).unwrap_or(Span::ZERO);
        frame.stamps.sent = now;
        frame.stamps.gone = now + time;
        self.at(now + time + line, Event::Forwarded(port));
        self.at(now + time + self.config.propagation, Event::Came(frame));
    }

    /// A frame has come whole.
    fn came(&mut self, now: SimTime, mut frame: Frame<P>) {
        let at = frame.to;
        let station = &mut self.stations[at as usize];
        if station.held + frame.octets > self.config.adapter.receive {
            self.counters.lost += 1;
            return self.outputs.push_back(Output::Lost { payload: frame.payload, in_switch: false });
        }
        station.held += frame.octets;
        frame.stamps.came = now;
        station.inward.push_back(frame);
        self.pace(now, at);
        self.bus(now, at);
    }

    /// Stops the sender of a station whose memory is half full, and lets it go on when a quarter is.
    fn pace(&mut self, now: SimTime, at: u32) {
        let Adapter { receive, pause, .. } = self.config.adapter;
        let station = &mut self.stations[at as usize];
        if !pause {
            return;
        }
        let stop = !station.pausing && station.held.get() > receive.get() / 2;
        let go = station.pausing && station.held.get() <= receive.get() / 4;
        if !stop && !go {
            return;
        }
        station.pausing = stop;
        self.counters.pauses += u64::from(stop);
        // The PAUSE frame takes the line like any other, and the switch itself obeys it at once.
        let quanta = self.config.rate.time_for(wiretwin_units::Bits::new(QUANTUM_BITS * LONGEST_PAUSE));
        let arrives = now + self.time_of(SHORTEST) + self.config.propagation;
        if self.config.switch.is_some() {
            if go {
                self.forward(now, at);
            }
            return;
        }
        let until = if stop { arrives + quanta.unwrap_or(Span::MAX) } else { now };
        self.at(arrives, Event::Pause(1 - at, until));
    }
}

impl<P> Shared<P> {
    fn put(&mut self, frame: Frame<P>) -> usize {
        let place = self.free.pop().unwrap_or(self.frames.len());
        if place == self.frames.len() {
            self.frames.push(None);
        }
        self.frames[place] = Some(frame);
        place
    }

    fn take(&mut self, place: usize) -> Frame<P> {
        self.free.push(place);
        self.frames[place].take().expect("a frame is on the line until it has come or is given up")
    }
}

/// Whether a line that so many hosts share is short enough for each to hear of a collision within a slot.
#[must_use]
pub fn fits(config: &Config, stations: u32) -> bool {
    config.duplex.rules(config.rate).is_none_or(|rules| {
        let slot = rules.rate.time_for(rules.slot).unwrap_or(Span::ZERO);
        config.propagation * (2 * u64::from(stations.saturating_sub(1))) <= slot
    })
}

/// Whole frames that an adapter holds, outward, beside the one that it sends.
const OUTWARD_FRAMES: usize = 2;
