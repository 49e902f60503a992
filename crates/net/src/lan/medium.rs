//! A network of frames: the cable of CSMA/CD, the ring of the timed token, Gigabit Ethernet, or switches that
//! carry PDUs.
//!
//! The access procedures are machines of their own ([`CsmaCd`], [`TimedToken`], [`Gige`]); here each host
//! has a station, with a queue of frames in front of it.

use std::collections::VecDeque;

use wiretwin_engine::Stream;
use wiretwin_units::{Bytes, SimTime, Span};

use super::config::{Config, NetworkConfig};
use super::core::Passed;
use super::load::LOAD_PACKET;
use super::switches::{MAPPED, PACKETS, Switches};
use crate::csma_cd::{self, CsmaCd};
use crate::fault::BitErrors;
use crate::gige::{self, Gige, Stamps};
use crate::station::{Frame, StationId};
use crate::timed_token::{self, TimedToken};

/// The number of a packet that a frame carries.
pub(super) type Packet = u32;

enum Access {
    Cable(CsmaCd<Packet>),
    Ring(TimedToken<Packet>, timed_token::Config),
    Gige(Box<Gige<(Packet, Bytes)>>),
    Switches(Box<Switches>),
}

/// What the medium asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Came {
    /// A frame has come to a host, sent by itself for so long, after a fixed delay on its way.
    Frame { host: u32, packet: Packet, sent: Span, through: Span, stamps: Option<Stamps> },
    /// A frame was given up.
    Lost { packet: Packet },
    /// A PDU has left host memory that was mapped: whose end of a connection it was.
    Left { end: u32 },
    /// Nothing for now; look again then.
    Until(Option<SimTime>),
}

pub(super) struct Medium {
    access: Access,
    /// By host: frames that its station has not been offered.
    queues: Vec<VecDeque<(u32, Packet, Bytes)>>,
    most: usize,
    /// Where its bits may be wrong.
    errors: Option<BitErrors>,
    passed: Passed,
    /// How long the frames of hosts that came have taken on it; those of load apart.
    pub(super) carried: Span,
    /// When it is to look again.
    pub(super) scheduled: SimTime,
}

impl Medium {
    /// The medium of a network, if it has one.
    pub(super) fn new(config: &Config, seed: u64) -> Option<Self> {
        let hosts = config.hosts.len() as u32;
        let stations = hosts + 2 * config.load.len() as u32;
        let access = match &config.network {
            NetworkConfig::BackToBack(_) | NetworkConfig::Switch(..) => return None,
            NetworkConfig::Cable { rate, hop } => {
                let config = csma_cd::Config { rate: *rate, ..csma_cd::Config::TEN };
                let places: Vec<Span> = (0..u64::from(stations)).map(|host| *hop * host).collect();
                let cable = CsmaCd::new(config, &places, |station| backoff(seed, hosts, station));
                Access::Cable(cable.expect("2 to 64 stations on a cable of 1 Mbit/s or more"))
            }
            NetworkConfig::Gige(config) => {
                Access::Gige(Box::new(Gige::new(*config, hosts, |station| backoff(seed, hosts, station))))
            }
            NetworkConfig::Switches => {
                let plan = config.switches.as_ref().expect("a network of switches has its plan");
                Access::Switches(Box::new(Switches::new(plan, hosts, config.mapped_buffers, seed)))
            }
            NetworkConfig::Ring { rate, hop, latency, target } => {
                let config =
                    timed_token::Config { rate: *rate, target: *target, ..timed_token::Config::FDDI };
                let station = timed_token::StationConfig { hop: *hop, latency: *latency, queue_frames: 1 };
                let ring = TimedToken::new(config, &vec![station; stations as usize]);
                Access::Ring(ring.expect("the target was checked when the network was read"), config)
            }
        };
        let queues: Vec<_> = (0..stations).map(|_| VecDeque::new()).collect();
        let passed = Passed::default();
        let errors = config.bit_error.map(|rate| BitErrors::new(rate, Stream::derive(seed, "medium/bits")));
        Some(Self {
            access,
            queues,
            most: QUEUE_FRAMES,
            errors,
            passed,
            carried: Span::ZERO,
            scheduled: SimTime::MAX,
        })
    }

    /// Frames that passed, were lost, and are queued.
    pub(super) fn passed(&self) -> Passed {
        Passed { held: self.passed.taken - self.passed.given - self.passed.lost, ..self.passed }
    }

    /// Puts a frame of so many octets behind those of a host; `false` where its queue is full.
    pub(super) fn offer(&mut self, now: SimTime, from: u32, to: u32, packet: Packet, octets: Bytes) -> bool {
        self.passed.taken += 1;
        if let Access::Gige(network) = &mut self.access {
            let taken = network.offer(now, from, to, octets, (packet, octets));
            self.passed.lost += u64::from(!taken);
            return taken;
        }
        if let Access::Switches(network) = &mut self.access {
            network.offer(now, PACKETS, [from, to], packet, octets);
            return true;
        }
        if self.queues[from as usize].len() >= self.most {
            self.passed.lost += 1;
            return false;
        }
        self.queues[from as usize].push_back((to, packet, octets));
        self.feed(now, from);
        true
    }

    /// Whether the adapter of a host takes a frame now.
    pub(super) fn has_room(&self, host: u32) -> bool {
        match &self.access {
            Access::Gige(network) => network.has_room(host),
            _ => self.queues[host as usize].len() < self.most,
        }
    }

    /// A host has taken a frame that had come to its memory; whether the network cares.
    pub(super) fn taken(&mut self, now: SimTime, host: u32) -> bool {
        match &mut self.access {
            Access::Gige(network) if network.config().adapter.receive_frames < u32::MAX => {
                network.taken(now, host);
                true
            }
            _ => false,
        }
    }

    /// Gives switches a PDU on the circuits of mapped memory, of this end of a connection.
    pub(super) fn offer_mapped(
        &mut self,
        now: SimTime,
        way: [u32; 2],
        end: u32,
        packet: Packet,
        octets: Bytes,
    ) {
        self.passed.taken += 1;
        if let Access::Switches(network) = &mut self.access {
            network.offer(now, MAPPED, way, packet, octets);
            network.sends_mapped(way, end);
        }
    }

    /// A PDU that has come on the circuits of mapped memory was read: its buffer is free.
    pub(super) fn free_mapped(&mut self, now: SimTime, way: [u32; 2]) {
        if let Access::Switches(network) = &mut self.access {
            network.free_mapped(now, way);
        }
    }

    /// Cells that switches had no room for.
    pub(super) fn refused(&self) -> u64 {
        match &self.access {
            Access::Switches(network) => network.refused(),
            _ => 0,
        }
    }

    /// Gives a host's station its next frame, if it takes one.
    fn feed(&mut self, now: SimTime, host: u32) {
        let Some(&(to, payload, octets)) = self.queues[host as usize].front() else { return };
        let station = StationId(host as u16);
        let frame = Frame { to: Some(StationId(to as u16)), octets, payload };
        let taken = match &mut self.access {
            Access::Cable(cable) => cable.is_idle(station) && cable.offer(now, station, frame).is_ok(),
            Access::Ring(ring, _) => ring.offer(now, station, frame) == Ok(true),
            Access::Gige(_) | Access::Switches(_) => false,
        };
        if taken {
            self.queues[host as usize].pop_front();
        }
    }

    /// Whether some bit of a frame of so many octets is wrong, which its check sequence finds.
    fn is_wrong(&mut self, octets: Bytes) -> bool {
        let mut wrong = false;
        if let Some(errors) = &mut self.errors {
            errors.pass(8 * octets.get(), |_| wrong = true);
        }
        wrong
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, now: SimTime) {
        match &mut self.access {
            Access::Cable(cable) => cable.handle_timeout(now),
            Access::Ring(ring, _) => ring.handle_timeout(now),
            Access::Gige(network) => network.handle_timeout(now),
            Access::Switches(network) => network.advance(now),
        }
    }

    /// The next thing that happened by `now`.
    pub(super) fn poll(&mut self, now: SimTime) -> Came {
        loop {
            let mut octets = Bytes::new(0);
            let (host, came) = match &mut self.access {
                Access::Cable(cable) => match cable.poll_output() {
                    csma_cd::Output::Deliver { station, frame, .. } => {
                        octets = frame.octets.max(SHORTEST_FRAME);
                        let sent = cable.config().time_of(frame.octets);
                        (None, Some(came_of(station.0.into(), frame.payload, sent)))
                    }
                    csma_cd::Output::Sent { station, .. } => (Some(u32::from(station.0)), None),
                    csma_cd::Output::Failed { station, frame, .. } => {
                        (Some(u32::from(station.0)), Some(Came::Lost { packet: frame.payload }))
                    }
                    csma_cd::Output::Timeout(time) => return Came::Until(time),
                },
                Access::Ring(ring, config) => match ring.poll_output() {
                    timed_token::Output::Deliver { station, frame, .. } => {
                        octets = frame.octets;
                        let sent = config.time_of(frame.octets);
                        (None, Some(came_of(station.0.into(), frame.payload, sent)))
                    }
                    timed_token::Output::Sent { station, .. } => (Some(u32::from(station.0)), None),
                    timed_token::Output::Timeout(time) => return Came::Until(time),
                },
                Access::Gige(network) => match network.poll_output() {
                    gige::Output::Deliver { station: host, payload: (packet, length), stamps } => {
                        octets = length.max(gige::SHORTEST);
                        let sent = stamps.gone - stamps.sent;
                        let (through, stamps) = (Span::ZERO, Some(stamps));
                        (None, Some(Came::Frame { host, packet, sent, through, stamps }))
                    }
                    gige::Output::Lost { payload: (packet, _), .. } => (None, Some(Came::Lost { packet })),
                    gige::Output::Timeout(time) => return Came::Until(time),
                },
                Access::Switches(network) => match network.poll(now) {
                    came @ (Came::Until(_) | Came::Left { .. }) => return came,
                    came => (None, Some(came)),
                },
            };
            if let Some(host) = host {
                self.feed(now, host);
            }
            let came = match came {
                Some(Came::Frame { packet, .. }) if self.is_wrong(octets) => Some(Came::Lost { packet }),
                came => came,
            };
            match came {
                Some(Came::Frame { packet, sent, .. }) => {
                    self.passed.given += 1;
                    if packet != LOAD_PACKET {
                        self.carried += sent;
                    }
                }
                Some(Came::Lost { .. }) => self.passed.lost += 1,
                _ => continue,
            }
            if let Some(came) = came {
                return came;
            }
        }
    }
}

/// The stream of a station's back-offs: those of hosts come first, then two stations for each load.
fn backoff(seed: u64, hosts: u32, station: StationId) -> Stream {
    let station = u32::from(station.0);
    let path = match station.checked_sub(hosts) {
        None => format!("host {station}/backoff"),
        Some(at) => format!("load {}/backoff {}", at / 2, at % 2),
    };
    Stream::derive(seed, &path)
}

const fn came_of(host: u32, packet: Packet, sent: Span) -> Came {
    Came::Frame { host, packet, sent, through: Span::ZERO, stamps: None }
}

/// What a frame of CSMA/CD is padded to.
const SHORTEST_FRAME: Bytes = Bytes::new(64);
/// Frames that wait in front of a station: BSD's `ifq_maxlen`.
const QUEUE_FRAMES: usize = 50;
