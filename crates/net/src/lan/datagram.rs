//! Datagram sockets of libraries: UDP, and IP's fragments where a datagram is longer than a packet.
//!
//! A datagram whose packet is lost never comes, and nobody says so. Left out: the message that comes back
//! where nobody has the port (ICMP); a timer for datagrams that are never whole, as nothing is kept of them
//! but a count.

use std::collections::VecDeque;

use wiretwin_msg::library::{Address, Call, CallError, Content, Outcome, SocketId};
use wiretwin_proto::udp::{self, Event};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::Bytes;

use super::Lan;
use super::activity::Activity;
use super::cpu::{Step, ThreadId};
use super::host::Action;
use super::socket::{Carried, IP_OCTETS};
use super::trail::SegmentId;

/// A socket.
pub(super) struct DatagramSocket {
    machine: udp::Socket,
    process: u32,
    at: Address,
    /// Its name in its process.
    name: SocketId,
    /// Datagrams that have come, in order.
    waiting: VecDeque<u32>,
    /// What brought the last one.
    came: SegmentId,
}

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Datagram {
    from: Address,
    to: Address,
    content: Content,
    /// Packets of it that have not come.
    left: u32,
    checksum: bool,
}

/// Datagrams on their way, by number.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    list: Vec<Datagram>,
    free: Vec<u32>,
}

impl Datagrams {
    fn add(&mut self, datagram: Datagram) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.list[slot as usize] = datagram;
            return slot;
        }
        self.list.push(datagram);
        self.list.len() as u32 - 1
    }

    fn take(&mut self, number: u32) -> (Address, Content) {
        self.free.push(number);
        let datagram = &mut self.list[number as usize];
        (datagram.from, core::mem::take(&mut datagram.content))
    }
}

/// What IP puts into each packet of a datagram of so many octets, UDP's header included: multiples of
/// eight in all but the last.
fn pieces(octets: u64, mtu: u16) -> impl Iterator<Item = u64> {
    let most = (u64::from(mtu) - IP_OCTETS) / 8 * 8;
    (0..octets.div_ceil(most)).map(move |at| most.min(octets - at * most))
}

impl Lan {
    pub(super) fn bind(&mut self, host: u32, thread: ThreadId, process: u32, port: u16) {
        let taken = |port| self.bound.contains_key(&Address { host, port });
        let port = match port {
            0 => (FIRST_PORT..u16::MAX).find(|&port| !taken(port)).unwrap_or(0),
            port => port,
        };
        if port == 0 || taken(port) {
            return self.outcome(host, thread, process, Outcome::Failed(CallError::PortTaken { port }));
        }
        let name = SocketId(self.udp.iter().filter(|socket| socket.process == process).count() as u32);
        let at = Address { host, port };
        self.bound.insert(at, self.udp.len() as u32);
        // SunOS 4.1 sums no datagrams.
        let machine = udp::Socket::new(udp::Config { checksum: false, ..udp::Config::default() });
        let (waiting, came) = (VecDeque::new(), SegmentId::NONE);
        self.udp.push(DatagramSocket { machine, process, at, name, waiting, came });
        self.outcome(host, thread, process, Outcome::Bound { socket: name, at });
    }

    fn udp_socket(&self, process: u32, name: SocketId) -> Option<u32> {
        self.udp
            .iter()
            .position(|socket| socket.process == process && socket.name == name)
            .map(|at| at as u32)
    }

    pub(super) fn send_datagram(
        &mut self,
        host: u32,
        thread: ThreadId,
        process: u32,
        socket: SocketId,
        to: Address,
        content: Content,
    ) {
        let Some(config) = &self.config.socket else { return };
        let (mtu, encapsulation) = (config.mtu, config.encapsulation);
        let Some(number) = self.udp_socket(process, socket) else {
            return self.outcome(host, thread, process, Outcome::Empty { socket });
        };
        let (from, length) = (self.udp[number as usize].at, content.length());
        let datagram = self.datagrams.add(Datagram { from, to, content, left: 0, checksum: false });
        let machine = &mut self.udp[number as usize].machine;
        if let Err(error) = machine.send(Payload::whole(MessageId(datagram.into()), length)) {
            self.datagrams.take(datagram);
            let error = CallError::TooLong { bytes: error.length, most: error.most };
            return self.outcome(host, thread, process, Outcome::Failed(error));
        }
        // To a host that is not there nothing is sent.
        let there = to.host < self.size();
        let mut steps = core::mem::take(&mut self.scratch);
        steps.clear();
        steps.push(Step::Mask(true));
        while let Some(output) = poll(&mut self.udp[number as usize].machine) {
            match output {
                Output::Work(work) => self.charge(host, &work, &mut steps),
                Output::Transmit(sent) if there => {
                    self.datagrams.list[datagram as usize].checksum = sent.checksum;
                    for octets in pieces(sent.octets().into(), mtu) {
                        let carried = Carried::Piece { datagram, octets };
                        let packet = self.add_packet(carried);
                        self.datagrams.list[datagram as usize].left += 1;
                        let octets = Bytes::new(octets + IP_OCTETS) + encapsulation;
                        if to.host != host {
                            steps.push(self.price(host, Activity::PacketOut, octets, octets));
                        }
                        steps.push(Step::Do(Action::Transmit { packet, to: to.host, octets }));
                    }
                }
                _ => {}
            }
        }
        steps.push(Step::Mask(false));
        steps.push(Step::Do(Action::SentDatagram { process, socket }));
        self.insert(host, thread, &steps);
        self.scratch = steps;
    }

    /// A datagram has left its process.
    pub(super) fn sent_datagram(&mut self, host: u32, thread: ThreadId, process: u32, socket: SocketId) {
        self.outcome(host, thread, process, Outcome::Sent { socket, rest: Content::new() });
    }

    /// A packet of a datagram has come.
    pub(super) fn piece_came(&mut self, host: u32, thread: ThreadId, datagram: u32) {
        let one = &mut self.datagrams.list[datagram as usize];
        one.left -= 1;
        if one.left > 0 {
            return;
        }
        let Some(&number) = self.bound.get(&one.to) else {
            self.datagrams.take(datagram);
            return;
        };
        let payload = Payload::whole(MessageId(datagram.into()), one.content.length());
        let whole = udp::Datagram { payload, checksum: one.checksum, corrupted: false };
        let socket = &mut self.udp[number as usize];
        socket.machine.handle_datagram(whole);
        let mut steps = core::mem::take(&mut self.scratch);
        steps.clear();
        while let Some(output) = poll(&mut self.udp[number as usize].machine) {
            match output {
                Output::Work(work) => self.charge(host, &work, &mut steps),
                Output::Deliver(_) => steps.push(Step::Do(Action::DatagramCame { socket: number, datagram })),
                Output::Event(Event::Full { .. }) => drop(self.datagrams.take(datagram)),
                _ => {}
            }
        }
        self.insert(host, thread, &steps);
        self.scratch = steps;
    }

    /// A datagram is there for a process.
    pub(super) fn datagram_came(&mut self, host: u32, thread: ThreadId, number: u32, datagram: u32) {
        let trail = self.hosts[host as usize].cpu.trail(thread);
        let socket = &mut self.udp[number as usize];
        socket.waiting.push_back(datagram);
        socket.came = trail;
        let process = socket.process;
        self.rouse_library(process, trail);
    }

    /// The socket of a process, if a datagram is there.
    pub(super) fn has_datagram(&self, process: u32, name: SocketId) -> bool {
        let number = self.udp_socket(process, name);
        number.is_none_or(|number| !self.udp[number as usize].waiting.is_empty())
    }

    /// The sockets of a process that have a datagram.
    pub(super) fn sockets_with_datagrams(&self, process: u32) -> impl Iterator<Item = SocketId> {
        let mine = self.udp.iter().filter(move |socket| socket.process == process);
        mine.filter(|socket| !socket.waiting.is_empty()).map(|socket| socket.name)
    }

    /// A process takes a datagram: what that costs comes first.
    pub(super) fn receive_datagram(
        &mut self,
        host: u32,
        thread: ThreadId,
        process: u32,
        socket: SocketId,
        wait: bool,
    ) {
        let Some(number) = self.udp_socket(process, socket) else {
            return self.outcome(host, thread, process, Outcome::Empty { socket });
        };
        let one = &mut self.udp[number as usize];
        let came = one.came;
        if one.waiting.is_empty() || one.machine.receive(Bytes::MAX).is_none() {
            if wait {
                return self.sleep(host, thread, process, Call::ReceiveFrom { socket, wait });
            }
            return self.outcome(host, thread, process, Outcome::Empty { socket });
        }
        let mut steps = core::mem::take(&mut self.scratch);
        steps.clear();
        steps.push(Step::After(came));
        steps.push(self.price(host, Activity::SocketReceive, Bytes::new(0), Bytes::new(0)));
        while let Some(output) = poll(&mut self.udp[number as usize].machine) {
            if let Output::Work(work) = output {
                self.charge(host, &work, &mut steps);
            }
        }
        steps.push(Step::Do(Action::TakeDatagram { process, socket: number }));
        self.insert(host, thread, &steps);
        self.scratch = steps;
    }

    /// The datagram is in the process's own memory.
    pub(super) fn take_datagram(&mut self, host: u32, thread: ThreadId, process: u32, number: u32) {
        let one = &mut self.udp[number as usize];
        let socket = one.name;
        let Some(datagram) = one.waiting.pop_front() else {
            return self.outcome(host, thread, process, Outcome::Empty { socket });
        };
        let (from, mut content) = self.datagrams.take(datagram);
        self.outcome(host, thread, process, Outcome::Datagram { socket, from, content: &mut content });
    }
}

/// The next output of a socket, if there is one.
fn poll(machine: &mut udp::Socket) -> Option<udp::UdpOutput> {
    match machine.poll_output() {
        Output::Timeout(_) => None,
        output => Some(output),
    }
}

/// The first port that the system chooses.
const FIRST_PORT: u16 = 1024;
