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
//! What happens inside is done when somebody asks, each thing at its own time: between two hosts the time that
//! [`Output::Timeout`] names is not that of the next thing but a bound for when a host may hear of one, so that
//! whoever drives this looks once per interrupt rather than once per step of each frame.
//!
//! Left out: errors on the line, a switch that sends PAUSE.

mod event;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use wiretwin_engine::{Slab, Stream};
use wiretwin_units::{BitRate, Bits, Bytes, SimTime, Span};

use self::event::Event;
use crate::csma_cd::{self, CsmaCd, StationId};
use crate::future_events::{Epoch, FutureEvents};
use crate::port::{Backlog, Room, Scheduler, Taken};

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
    /// Frames that wait to be fetched: the ring of send descriptors. More are rejected.
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

#[derive(Clone, Copy, Debug)]
struct Frame<P> {
    to: u32,
    octets: Bytes,
    payload: P,
    stamps: Stamps,
}

/// Which of the network's frames.
type Place = u32;

#[derive(Clone, Copy, Debug)]
enum Job {
    Out(Place),
    In(Place),
}

#[derive(Clone, Debug)]
struct Station {
    /// Waits to be fetched.
    ring: VecDeque<Place>,
    /// Whole on the adapter, outward.
    outward: VecDeque<Place>,
    /// Whole on the adapter, inward.
    inward: VecDeque<Place>,
    /// Octets of those, and of the one on the bus.
    held: Bytes,
    /// Octets of frames on the line to it, in full duplex.
    coming: Bytes,
    on_bus: Option<Job>,
    sending: bool,
    /// The frame that it has on the line that all share.
    on_line: Place,
    paused_until: SimTime,
    /// It has told its sender to stop.
    pausing: bool,
    /// In the host's memory, and not told of.
    ready: VecDeque<Place>,
    /// Receive descriptors that are with the adapter's work or the host.
    used: u32,
    /// Counts what was told, so that an old timer does not tell.
    told: u32,
}

/// A way out of the switch.
#[derive(Clone, Debug)]
struct PortOut {
    queue: Backlog<Place>,
    sending: bool,
}

/// What is to be told, in order.
#[derive(Clone, Copy, Debug)]
enum Told {
    Deliver { station: u32, place: Place },
    Lost { place: Place, in_switch: bool },
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
struct Shared {
    cable: CsmaCd<Place>,
    /// When it is to look again.
    due: Option<SimTime>,
}

/// The network.
pub struct Gige<P> {
    config: Config,
    shared: Option<Shared>,
    stations: Vec<Station>,
    ports: Vec<PortOut>,
    frames: Slab<Frame<P>>,
    future: FutureEvents<Event>,
    outputs: VecDeque<Told>,
    times: Times,
    counters: Counters,
}

/// Times that no frame changes; the shortest ones of those that it does.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// A frame on a host's bus.
    bus: Span,
    /// A frame on the line, to its end.
    line: Span,
    /// A quarter of a receiver's memory on the line.
    quarter: Span,
    /// What follows a frame on the line before another may.
    gap: Span,
    /// The longest pause.
    pause: Span,
}

impl<P: Copy> Gige<P> {
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
            Shared { cable, due: None }
        });
        let joined = stations == 2 || config.switch.is_some() || shared.is_some();
        assert!(joined, "more than two hosts need a switch");
        let station = || Station {
            ring: VecDeque::new(),
            outward: VecDeque::new(),
            inward: VecDeque::new(),
            held: Bytes::new(0),
            coming: Bytes::new(0),
            on_bus: None,
            sending: false,
            on_line: 0,
            paused_until: SimTime::ZERO,
            pausing: false,
            ready: VecDeque::new(),
            used: 0,
            told: 0,
        };
        let room = config.switch.map_or(Room::Any, |switch| Room::Bytes(switch.port));
        let port = || PortOut { queue: Backlog::new(Scheduler::Fifo, room), sending: false };
        let Adapter { bus_setup, bus_byte, frame, receive, .. } = config.adapter;
        let on_line = |octets: Bytes| config.rate.time_for(octets.bits()).unwrap_or(Span::MAX);
        let times = Times {
            bus: bus_setup + bus_byte * SHORTEST.get() + frame,
            line: on_line(SHORTEST) + config.propagation,
            quarter: on_line(Bytes::new(receive.get() / 4)),
            gap: on_line(LINE_OCTETS),
            pause: config.rate.time_for(Bits::new(QUANTUM_BITS * LONGEST_PAUSE)).unwrap_or(Span::MAX),
        };
        Self {
            config,
            shared,
            stations: (0..stations).map(|_| station()).collect(),
            ports: (0..stations).map(|_| port()).collect(),
            frames: Slab::new(),
            future: FutureEvents::new(),
            outputs: VecDeque::new(),
            times,
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
        if !self.has_room(from) {
            return false;
        }
        self.counters.taken += 1;
        let octets = octets.max(SHORTEST);
        let place = self.frames.insert(Frame { to, octets, payload, stamps: Stamps::default() });
        self.stations[from as usize].ring.push_back(place);
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
            let own = self.future.next_time().filter(|time| *time <= now);
            match (due, own) {
                (Some(due), own) if own.is_none_or(|own| due <= own) => {
                    self.shared.as_mut().expect("it is due").cable.handle_timeout(due);
                    self.on_cable(due);
                }
                (_, Some(_)) => {
                    let Some(event) = self.future.next() else { return };
                    self.happen(self.future.now(), event);
                }
                _ => return,
            }
        }
    }

    /// What happened; when that is all, a time before which nothing else does that anybody is told of.
    pub fn poll_output(&mut self) -> Output<P> {
        match self.outputs.pop_front() {
            Some(Told::Deliver { station, place }) => {
                let Frame { payload, stamps, .. } = self.frames.remove(place);
                Output::Deliver { station, payload, stamps }
            }
            Some(Told::Lost { place, in_switch }) => {
                Output::Lost { payload: self.frames.remove(place).payload, in_switch }
            }
            None => {
                let due = self.shared.as_ref().and_then(|shared| shared.due);
                Output::Timeout(self.next_told().into_iter().chain(due).min())
            }
        }
    }

    /// Nobody is told of anything before this.
    ///
    /// Between two hosts with room in their memories: a host is told when so many frames have crossed its bus,
    /// one after the other, or when the timer of the first is up; and a frame that comes has to cross the bus,
    /// one that goes out the line before. Elsewhere: the next thing that happens.
    fn next_told(&self) -> Option<SimTime> {
        let first = self.future.next_time()?;
        let Adapter { receive, coalesce, coalesce_frames, .. } = self.config.adapter;
        let ([one, other], Some(few)) = (self.stations.as_slice(), self.future.few()) else {
            return Some(first);
        };
        let is_roomy = |station: &Station| station.held + station.coming <= Bytes::new(receive.get() / 2);
        if self.shared.is_some() || self.config.switch.is_some() || !is_roomy(one) || !is_roomy(other) {
            return Some(first);
        }
        let Times { bus, line, quarter, .. } = self.times;
        // From when a frame has crossed a station's bus until its host is told.
        let waits = [one, other].map(|station| {
            let others = u64::from(coalesce_frames).saturating_sub(station.ready.len() as u64 + 1);
            let full = bus * others;
            if station.ready.is_empty() { full.min(coalesce) } else { full }
        });
        let comes = waits.map(|wait| bus + wait);
        let goes = [line + comes[1], line + comes[0]];
        let mut told = None;
        for (time, event) in few {
            let lag = match event {
                Event::Bus(at) => match self.stations[at as usize].on_bus {
                    Some(Job::In(_)) => waits[at as usize].min(bus + goes[at as usize]),
                    _ => comes[at as usize].min(goes[at as usize]),
                },
                Event::Sent(at) | Event::Stop(at) | Event::Go(at) | Event::Resume(at) => {
                    comes[at as usize].min(goes[at as usize])
                }
                Event::Came(place) => comes[self.frames[place].to as usize],
                Event::Tell(at, told) if Epoch::of(self.stations[at as usize].told) != told => continue,
                Event::Tell(..) | Event::Forward(_) | Event::Forwarded(_) => Span::ZERO,
            };
            told = Some(told.map_or(time + lag, |told: SimTime| told.min(time + lag)));
        }
        // What is not on a line yet fills no more than a quarter of a memory until then.
        told.map(|told| told.min(first + quarter))
    }

    /// Does what the line that all share asks for.
    fn on_cable(&mut self, now: SimTime) {
        loop {
            let Some(shared) = &mut self.shared else { return };
            match shared.cable.poll_output() {
                csma_cd::Output::Sent { station, began, due, .. } => {
                    let at = u32::from(station.0);
                    let stamps = &mut self.frames[self.stations[at as usize].on_line].stamps;
                    (stamps.sent, stamps.gone) = (began, due);
                    self.line_is_free(now, at);
                }
                csma_cd::Output::Failed { station, frame, .. } => {
                    self.counters.given_up += 1;
                    self.outputs.push_back(Told::Lost { place: frame.payload, in_switch: false });
                    self.line_is_free(now, station.0.into());
                }
                csma_cd::Output::Deliver { frame, .. } => self.came(now, frame.payload),
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

    fn at(&mut self, time: SimTime, event: Event) {
        self.future.at(time, event);
    }

    fn happen(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Bus(at) => self.bus_done(now, at),
            Event::Sent(at) => self.line_is_free(now, at),
            Event::Forward(place) => self.queue(now, place),
            Event::Forwarded(port) => {
                let way = &mut self.ports[port as usize];
                way.sending = false;
                self.forward(now, port);
            }
            Event::Came(place) => {
                let Frame { to, octets, .. } = self.frames[place];
                self.stations[to as usize].coming -= octets;
                self.came(now, place);
            }
            Event::Stop(at) => {
                let until = now + self.times.pause;
                self.stations[at as usize].paused_until = until;
                self.at(until, Event::Resume(at));
            }
            Event::Go(at) => {
                self.stations[at as usize].paused_until = SimTime::ZERO;
                self.send(now, at);
                self.bus(now, at);
            }
            Event::Resume(at) if self.stations[at as usize].paused_until > now => {}
            // A receiver that still has no room has asked again by then.
            Event::Resume(at) if self.stations[1 - at as usize].pausing => {
                self.counters.pauses += 1;
                self.happen(now, Event::Stop(at));
            }
            Event::Resume(at) => {
                self.send(now, at);
                self.bus(now, at);
            }
            Event::Tell(at, told) => {
                if Epoch::of(self.stations[at as usize].told) == told {
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
        let (job, octets) = if room && let Some(place) = station.inward.pop_front() {
            station.used += 1;
            self.frames[place].stamps.stored = now;
            (Job::In(place), self.frames[place].octets)
        } else if station.outward.len() < OUTWARD_FRAMES
            && let Some(place) = station.ring.pop_front()
        {
            self.frames[place].stamps.fetched = now;
            (Job::Out(place), self.frames[place].octets)
        } else {
            return;
        };
        station.on_bus = Some(job);
        let Adapter { bus_setup, bus_byte, frame, .. } = self.config.adapter;
        self.at(now + bus_setup + bus_byte * octets.get() + frame, Event::Bus(at));
    }

    fn bus_done(&mut self, now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        match station.on_bus.take() {
            Some(Job::Out(place)) => {
                self.frames[place].stamps.there = now;
                station.outward.push_back(place);
                self.send(now, at);
            }
            Some(Job::In(place)) => {
                self.frames[place].stamps.taken = now;
                station.held -= self.frames[place].octets;
                station.ready.push_back(place);
                let (waiting, told) = (station.ready.len(), Epoch::of(station.told));
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
        station.told = station.told.wrapping_add(1);
        self.counters.interrupts += 1;
        self.counters.delivered += station.ready.len() as u64;
        self.outputs.extend(station.ready.drain(..).map(|place| Told::Deliver { station: at, place }));
    }

    /// Puts the next frame of a station on its line.
    fn send(&mut self, now: SimTime, at: u32) {
        let station = &mut self.stations[at as usize];
        if station.sending || station.paused_until > now {
            return;
        }
        let Some(place) = station.outward.pop_front() else { return };
        station.sending = true;
        let frame = &mut self.frames[place];
        let octets = frame.octets;
        if let Some(shared) = &mut self.shared {
            let to = Some(StationId(frame.to as u16));
            station.on_line = place;
            let offered = csma_cd::Frame { to, octets, payload: place };
            let taken = shared.cable.offer(now, StationId(at as u16), offered);
            debug_assert!(taken.is_ok(), "a station that does not send takes a frame: {taken:?}");
            // What it asks for is done by whoever is doing that, or now.
            let due = shared.due.map_or(now, |due| due.min(now));
            shared.due = Some(due);
            return;
        }
        let Config { propagation, switch, rate, .. } = self.config;
        let time = rate.time_for(octets.bits()).unwrap_or(Span::MAX);
        (frame.stamps.sent, frame.stamps.gone) = (now, now + time);
        let to = frame.to as usize;
        self.at(now + time + self.times.gap, Event::Sent(at));
        match switch {
            None => {
                self.stations[to].coming += octets;
                self.at(now + time + propagation, Event::Came(place));
            }
            Some(switch) => {
                let known = match switch.forwarding {
                    Forwarding::Stored => time,
                    Forwarding::CutThrough => rate.time_for(HEAD_OCTETS.bits()).unwrap_or(Span::ZERO),
                };
                self.at(now + propagation + known + switch.latency, Event::Forward(place));
            }
        }
    }

    /// A frame joins those of its way out of the switch.
    fn queue(&mut self, now: SimTime, place: Place) {
        let Frame { to: port, octets, .. } = self.frames[place];
        if self.ports[port as usize].queue.offer(0, octets.get() as u32, place) == Taken::Lost {
            self.counters.lost_in_switch += 1;
            return self.outputs.push_back(Told::Lost { place, in_switch: true });
        }
        self.forward(now, port);
    }

    fn forward(&mut self, now: SimTime, port: u32) {
        let way = &mut self.ports[port as usize];
        if way.sending || self.stations[port as usize].pausing {
            return;
        }
        let Some((place, _)) = way.queue.pop() else { return };
        let Config { rate, propagation, .. } = self.config;
        let frame = &mut self.frames[place];
        way.sending = true;
        let time = rate.time_for(frame.octets.bits()).unwrap_or(Span::MAX);
        (frame.stamps.sent, frame.stamps.gone) = (now, now + time);
        self.stations[port as usize].coming += frame.octets;
        self.at(now + time + self.times.gap, Event::Forwarded(port));
        self.at(now + time + propagation, Event::Came(place));
    }

    /// A frame has come whole.
    fn came(&mut self, now: SimTime, place: Place) {
        let frame = &mut self.frames[place];
        let at = frame.to;
        let station = &mut self.stations[at as usize];
        if station.held + frame.octets > self.config.adapter.receive {
            self.counters.lost += 1;
            return self.outputs.push_back(Told::Lost { place, in_switch: false });
        }
        station.held += frame.octets;
        frame.stamps.came = now;
        station.inward.push_back(place);
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
        let arrives = now + self.time_of(SHORTEST) + self.config.propagation;
        if self.config.switch.is_some() {
            if go {
                self.forward(now, at);
            }
            return;
        }
        self.at(arrives, if stop { Event::Stop(1 - at) } else { Event::Go(1 - at) });
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
