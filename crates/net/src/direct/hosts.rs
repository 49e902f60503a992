//! The direct transport between hosts of a [`Wire`], with its classes and background load, frame by frame.
//!
//! Each host has a port of the wire and an end for each of its peers. Frames are as long as they are live, with what
//! Ethernet, IPv4 and UDP put around them, and of the class of their service. What hosts need for a frame is left
//! out: they are as quick as nothing, which a wire of some megabits makes little of.

use std::fmt;

use wiretwin_plan::PlanError;
use wiretwin_proto::Payload;
use wiretwin_proto::direct::{Config, Counters, Frame as DirectFrame, Service, Services};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::direct::Repr;

use super::end::{DirectEnd, Step};
use crate::frame::{Counters as PortCounters, Frame, Mac, Output, PortId, QueueCounters, Wire, WireConfig};

/// The class of the protected service: expedited forwarding (RFC 3246). The ordinary one has 0.
pub const PROTECTED_DSCP: u8 = 46;
/// Ethernet, IPv4 and UDP around a frame.
const AROUND: u64 = 14 + 20 + 8;

/// A frame on the wire.
type Packet = (Repr, Payload);

/// A message has come whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Whose it is.
    pub from: usize,
    /// Who has it.
    pub to: usize,
    /// The sender's number for it.
    pub tag: u64,
    /// The time at which this happened.
    pub at: SimTime,
}

/// The parameters of a live endpoint over datagrams.
#[must_use]
pub fn live_config(services: Services, has_fixed_window: bool) -> Config {
    Config { services, has_fixed_window, ..Config::datagrams() }
}

/// Hosts on a wire.
pub struct Hosts {
    now: SimTime,
    wire: Wire<Packet>,
    /// By host and peer.
    ends: Vec<Vec<Option<DirectEnd>>>,
    came: Vec<Came>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("now", &self.now).field("wire", &self.wire).finish_non_exhaustive()
    }
}

fn mac(host: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, host as u8])
}

impl Hosts {
    /// So many hosts, of which nobody has sent anything. Messages are as long as [`Config::eager`] at most.
    ///
    /// # Errors
    /// [`PlanError`]: of the wire, or a configuration with which no end can work.
    pub fn new(wire: WireConfig, config: Config, hosts: usize) -> Result<Self, PlanError> {
        let wire = Wire::new(wire, hosts)?;
        let mut ends = Vec::new();
        for host in 0..hosts {
            let end = |peer: usize| DirectEnd::new(config, host as u32, peer as u32);
            let of_host = (0..hosts).map(|peer| (peer != host).then(|| end(peer)).transpose());
            ends.push(of_host.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Self { now: SimTime::ZERO, wire, ends, came: Vec::new() })
    }

    /// The time that has been reached.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// What all ends have counted together.
    #[must_use]
    pub fn totals(&self) -> Counters {
        let mut totals = Counters::default();
        self.ends.iter().flatten().flatten().for_each(|end| totals.add(end.counters()));
        totals
    }

    /// What an end has counted.
    ///
    /// # Panics
    /// If a host has no such peer.
    #[must_use]
    pub fn counters(&self, host: usize, peer: usize) -> Counters {
        *self.ends[host][peer].as_ref().expect(NO_PEER).counters()
    }

    /// Counts of the wire's port of a host, and of the queues on the way to it.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn port(&self, host: usize) -> (PortCounters, &[QueueCounters]) {
        let port = PortId(host as u16);
        (*self.wire.counters(port).expect("a port for each host"), self.wire.queue_counters(port))
    }

    /// Hands over a message: whether there was room for it in the queue.
    ///
    /// # Panics
    /// If a host has no such peer.
    pub fn send(&mut self, host: usize, peer: usize, tag: u64, length: Bytes) -> bool {
        let now = self.now;
        let taken = self.ends[host][peer].as_mut().expect(NO_PEER).send(now, tag, None, (length, now));
        self.drain(host, peer);
        taken
    }

    /// Goes on until messages have come, or to this time: what has come.
    pub fn run(&mut self, until: SimTime) -> Vec<Came> {
        loop {
            let on_wire = self.take();
            if !self.came.is_empty() {
                return std::mem::take(&mut self.came);
            }
            let ends = self.ends.iter().flatten().flatten();
            let next = ends.map(DirectEnd::deadline).chain(on_wire).min();
            let Some(next) = next.filter(|&next| next <= until && next < SimTime::MAX) else {
                self.now = self.now.max(until);
                self.wire.handle_timeout(self.now);
                return Vec::new();
            };
            self.now = self.now.max(next);
            self.wire.handle_timeout(self.now);
            for host in 0..self.ends.len() {
                for peer in 0..self.ends.len() {
                    let Some(end) = &mut self.ends[host][peer] else { continue };
                    if end.deadline() <= self.now {
                        end.handle_timeout(self.now);
                        self.drain(host, peer);
                    }
                }
            }
        }
    }

    /// Takes what the wire has for hosts; when it is to be asked next.
    fn take(&mut self) -> Option<SimTime> {
        loop {
            match self.wire.poll_output() {
                Output::Timeout(next) => return next,
                Output::Deliver { port, from, frame, .. } => {
                    let (host, peer) = (usize::from(port.0), usize::from(from.0));
                    // A frame that is flooded is for others, too.
                    if frame.destination != mac(host) {
                        continue;
                    }
                    let (repr, payload) = frame.payload;
                    let end = self.ends[host][peer].as_mut().expect(NO_PEER);
                    end.handle_frame(self.now, &repr, payload);
                    self.drain(host, peer);
                }
            }
        }
    }

    /// Takes what an end has to say.
    fn drain(&mut self, host: usize, peer: usize) {
        loop {
            let end = self.ends[host][peer].as_mut().expect(NO_PEER);
            match end.step(self.now) {
                Step::Timer(_) => return,
                Step::Transmit(frame) => self.transmit(host, peer, frame),
                Step::Came(tag) => self.came.push(Came { from: peer, to: host, tag, at: self.now }),
                Step::Cleared(_) => {}
            }
        }
    }

    fn transmit(&mut self, host: usize, peer: usize, frame: DirectFrame) {
        let dscp = if frame.service() == Service::Protected { PROTECTED_DSCP } else { 0 };
        let octets = AROUND + frame.repr.head_octets() as u64 + frame.payload.length.get();
        let frame = Frame {
            destination: mac(peer),
            source: mac(host),
            ethertype: 0x0800,
            protocol: Some(17),
            dscp: Some(dscp),
            length: Bytes::new(octets),
            flipped: Vec::new(),
            payload: (frame.repr, frame.payload),
        };
        self.wire.handle_frame(self.now, PortId(host as u16), frame).expect("a frame that fits, from a host");
    }
}

const NO_PEER: &str = "a peer of this host";

/// Messages to and fro, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// How long they are.
    pub length: Bytes,
    /// From an answer to the next message.
    pub pause: Span,
    /// How many there are.
    pub count: u64,
}

impl Echo {
    /// Runs it between the first two hosts: how long each message took to the other and back.
    ///
    /// # Panics
    /// If there is but one host.
    pub fn run(self, hosts: &mut Hosts) -> Vec<Span> {
        let mut took = Vec::with_capacity(self.count as usize);
        for tag in 0..self.count {
            let begun = hosts.now();
            assert!(hosts.send(0, 1, tag, self.length), "one message finds room");
            'answer: loop {
                for came in hosts.run(SimTime::MAX) {
                    if came.to == 0 {
                        took.push(came.at - begun);
                        break 'answer;
                    }
                    hosts.send(1, 0, came.tag, self.length);
                }
            }
            let next = hosts.now().saturating_add(self.pause);
            while hosts.now() < next {
                hosts.run(next);
            }
        }
        took
    }
}

/// Many hosts send to the first at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incast {
    /// How long their messages are.
    pub length: Bytes,
    /// How many each sends.
    pub count: u64,
}

impl Incast {
    /// Runs it: how long it took to the last message.
    ///
    /// # Panics
    /// If there is but one host.
    pub fn run(self, hosts: &mut Hosts) -> Span {
        let begun = hosts.now();
        let senders = hosts.ends.len() - 1;
        let mut next = vec![0; senders];
        let mut missing = senders as u64 * self.count;
        while missing > 0 {
            for (sender, next) in (1..).zip(&mut next) {
                while *next < self.count && hosts.send(sender, 0, *next, self.length) {
                    *next += 1;
                }
            }
            missing -= hosts.run(SimTime::MAX).len() as u64;
        }
        hosts.now() - begun
    }
}
