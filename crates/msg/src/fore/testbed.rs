//! Hosts and a switch, joined by lines that take time and may lose signalling messages.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::cell::VcId;
use wiretwin_wire::spans::{Aal, Address, MAX_MESSAGE_OCTETS, Repr};

use super::driver::{self, DEVICE, Done, Transmit};
use super::switch::{self, Act};
use super::types::{CallId, Dataflow, Descriptor, Endpoint, Error, Qos, RequestId};
use super::{Bandwidth, CallControl, Driver};

/// From a host to the switch, or back.
const LINE: Span = Span::from_us(10);

pub(super) enum Passing {
    ToSwitch(u32, Repr),
    ToHost(u32, Repr),
    Pdu(u32, VcId, Payload),
}

pub(super) struct Bed {
    pub(super) now: SimTime,
    pub(super) hosts: Vec<Driver>,
    pub(super) control: CallControl,
    /// By the port and channel on which cells come in.
    pub(super) routes: BTreeMap<(u32, VcId), Vec<(u32, VcId)>>,
    queue: BTreeMap<(SimTime, u64), Passing>,
    serial: u64,
    pub(super) done: Vec<Vec<Done>>,
    pub(super) events: Vec<Vec<driver::Event>>,
    pub(super) refusals: Vec<switch::Event>,
    /// Signalling messages by number, from 1, that are lost.
    pub(super) lose: Vec<u64>,
    pub(super) signals: u64,
    calls: u32,
}

pub(super) fn address(port: u32) -> Address {
    Address([0, 0, 0, 1, 0, 0, 0, port as u8])
}

pub(super) fn at(port: u32, asap: u32) -> Endpoint {
    Endpoint { nsap: address(port), asap }
}

impl Bed {
    pub(super) fn new(hosts: u32, config: switch::Config) -> Self {
        let addresses = (0..hosts).map(address).collect();
        let bandwidth = Bandwidth::new((0..2 * hosts).map(|_| 90_000_000));
        let mut bed = Self {
            now: SimTime::ZERO,
            hosts: (0..hosts).map(|host| Driver::new(driver::Config::default(), host)).collect(),
            control: CallControl::new(config, 1, Address([9; 8]), addresses, bandwidth),
            routes: BTreeMap::new(),
            queue: BTreeMap::new(),
            serial: 0,
            done: (0..hosts).map(|_| Vec::new()).collect(),
            events: (0..hosts).map(|_| Vec::new()).collect(),
            refusals: Vec::new(),
            lose: Vec::new(),
            signals: 0,
            calls: 0,
        };
        for host in 0..hosts as usize {
            bed.hosts[host].start(bed.now);
        }
        bed.run();
        bed
    }

    pub(super) fn post(&mut self, passing: Passing) {
        self.serial += 1;
        self.queue.insert((self.now + LINE, self.serial), passing);
    }

    fn signal(&mut self, passing: Passing) {
        self.signals += 1;
        let (Passing::ToSwitch(_, message) | Passing::ToHost(_, message)) = &passing else { return };
        // As octets, as it would travel.
        let mut octets = [0; MAX_MESSAGE_OCTETS];
        let end = message.emit(&mut octets).expect("room");
        assert_eq!(Repr::parse(&octets[..end]).as_ref(), Ok(message));
        if !self.lose.contains(&self.signals) {
            self.post(passing);
        }
    }

    /// What everybody asks for; the next time that somebody waits for.
    pub(super) fn drain(&mut self) -> Option<SimTime> {
        let mut due: Vec<SimTime> = Vec::new();
        for port in 0..self.hosts.len() as u32 {
            loop {
                match self.hosts[port as usize].poll_output() {
                    Output::Transmit(Transmit::Signal(message)) => {
                        self.signal(Passing::ToSwitch(port, message))
                    }
                    Output::Transmit(Transmit::Pdu { vc, payload }) => {
                        for (to, into) in self.routes.get(&(port, vc)).cloned().unwrap_or_default() {
                            self.post(Passing::Pdu(to, into, payload));
                        }
                    }
                    Output::Deliver(done) => self.done[port as usize].push(done),
                    Output::Event(event) => self.events[port as usize].push(event),
                    Output::Work(_) => {}
                    Output::Timeout(time) => break due.extend(time),
                }
            }
        }
        loop {
            match self.control.poll_output() {
                Output::Transmit(Act::Signal { port, message }) => {
                    self.signal(Passing::ToHost(port, message))
                }
                Output::Transmit(Act::Join { from, to, .. }) => self.routes.entry(from).or_default().push(to),
                Output::Transmit(Act::Part { from, to }) => {
                    let branches = self.routes.get_mut(&from).expect("it was joined");
                    let place = branches.iter().position(|one| *one == to).expect("it was joined");
                    branches.remove(place);
                }
                Output::Event(event) => self.refusals.push(event),
                Output::Work(_) | Output::Deliver(()) => {}
                Output::Timeout(time) => break due.extend(time),
            }
        }
        due.into_iter().min()
    }

    /// Until nothing is left to happen.
    pub(super) fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step(SimTime::MAX) {
                return;
            }
        }
        panic!("it goes on for ever");
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// The next thing that happens up to `end`, if any.
    fn step(&mut self, end: SimTime) -> bool {
        let due = self.drain();
        let next = self.queue.first_key_value().map(|(key, _)| key.0);
        let Some(time) = due.into_iter().chain(next).min().filter(|time| *time <= end) else { return false };
        self.now = self.now.max(time);
        let now = self.now;
        if next.is_some_and(|next| next <= time) {
            match self.queue.pop_first().expect("it is there").1 {
                Passing::ToSwitch(port, message) => self.control.handle_message(now, port, message),
                Passing::ToHost(port, message) => self.hosts[port as usize].handle_signal(now, message),
                Passing::Pdu(port, vc, payload) => self.hosts[port as usize].handle_pdu(vc, payload),
            }
        } else {
            self.control.handle_timeout(now);
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(now));
        }
        true
    }

    pub(super) fn call(&mut self) -> CallId {
        self.calls += 1;
        CallId(self.calls)
    }

    /// A descriptor that is bound.
    pub(super) fn bound(&mut self, host: usize, asap: u32, queue: u32) -> Descriptor {
        let (descriptor, info) = self.hosts[host].open(DEVICE).expect("it opens");
        assert_eq!(info.mtu, Bytes::new(4096));
        self.hosts[host].bind(descriptor, asap, queue).expect("it binds");
        descriptor
    }

    pub(super) fn connect(
        &mut self,
        host: usize,
        descriptor: Descriptor,
        to: Endpoint,
        qos: Qos,
        flow: Dataflow,
    ) -> Result<CallId, Error> {
        let (call, now) = (self.call(), self.now);
        self.hosts[host].connect(now, descriptor, to, qos, Aal::Type5, flow, call).map(|()| call)
    }

    /// Listens, and accepts the next request by the same descriptor.
    pub(super) fn accept(&mut self, host: usize, descriptor: Descriptor, flow: Dataflow) -> CallId {
        let request = self.listen(host, descriptor);
        let (call, now) = (self.call(), self.now);
        let accepted =
            self.hosts[host].accept(now, descriptor, descriptor, request, Qos::default(), flow, call);
        accepted.expect("it takes it");
        self.run();
        call
    }

    /// The next request.
    pub(super) fn listen(&mut self, host: usize, descriptor: Descriptor) -> RequestId {
        let call = self.call();
        self.hosts[host].listen(descriptor, call).expect("it listens");
        self.drain();
        match self.done[host].last() {
            Some(Done::Listened { call: of, request, .. }) if *of == call => *request,
            other => panic!("no request has come: {other:?}"),
        }
    }

    pub(super) fn is_connected(&self, host: usize, call: CallId) -> bool {
        self.done[host].iter().any(|done| matches!(done, Done::Connected { call: of, .. } if *of == call))
    }

    pub(super) fn error_of(&self, host: usize, call: CallId) -> Option<Error> {
        self.done[host].iter().find_map(|done| match done {
            Done::Failed { call: of, error } if *of == call => Some(*error),
            _ => None,
        })
    }

    /// Sends a PDU, and says who has it: host, length.
    pub(super) fn send(&mut self, host: usize, descriptor: Descriptor, bytes: u64) -> Result<(), Error> {
        let payload = Payload::whole(MessageId(bytes), Bytes::new(bytes));
        self.hosts[host].send(descriptor, payload)?;
        self.run();
        Ok(())
    }

    pub(super) fn receive(&mut self, host: usize, descriptor: Descriptor, most: u64) -> Option<Payload> {
        let call = self.call();
        self.hosts[host].receive(descriptor, Bytes::new(most), call).ok()?;
        self.drain();
        self.done[host].iter().find_map(|done| match done {
            Done::Received { call: of, payload } if *of == call => Some(*payload),
            _ => None,
        })
    }

    /// A simplex connection from one host to another.
    pub(super) fn simplex(&mut self, from: usize, to: usize, qos: Qos) -> (Descriptor, Descriptor) {
        let server = self.bound(to, 0, 1);
        let client = self.bound(from, 0, 0);
        let asap = self.hosts[to].access_point(server).expect("it is bound");
        let call = self.connect(from, client, at(to as u32, asap), qos, Dataflow::Simplex).expect("it asks");
        // Up to where the server is asked, and not to where it has waited too long.
        self.pass(Span::from_ms(50));
        self.accept(to, server, Dataflow::Simplex);
        assert!(self.is_connected(from, call), "{:?}", self.done);
        (client, server)
    }
}
