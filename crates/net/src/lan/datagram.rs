//! Datagram sockets of libraries: UDP, and IP's fragments where a datagram is longer than a packet.
//!
//! A datagram whose packet is lost never comes, and nobody says so: what came of it is given up after IP's
//! 30 s, and its content as soon as none of its packets is on its way. Choice: what IP does to a packet is in
//! the driver's price of it, as it is for TCP's. Left out: the message that comes back where nobody has the
//! port (ICMP).

use std::collections::VecDeque;

use wiretwin_msg::library::{Address, Call, CallError, Content, Outcome, SocketId};
use wiretwin_proto::ip;
use wiretwin_proto::udp::{self, Event};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::Bytes;
use wiretwin_wire::ipv4::{Ends, Protocol};

use super::Lan;
use super::activity::Activity;
use super::capture::ip_of;
use super::config::SocketConfig;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::ip::HostIp;
use super::socket::Carried;
use super::trail::SegmentId;

/// A socket.
pub(super) struct DatagramSocket {
    machine: udp::Socket,
    process: u32,
    at: Address,
    /// Its name in its process.
    name: SocketId,
    /// Datagrams that have come, in order.
    waiting: VecDeque<DatagramId>,
    /// What brought the last one.
    came: SegmentId,
}

/// A datagram, by its number; none has that of another.
pub(super) type DatagramId = u64;

/// A datagram that its reader has not taken.
#[derive(Debug)]
struct Datagram {
    from: Address,
    to: Address,
    content: Content,
    checksum: bool,
    /// Packets of it on their way.
    packets: u32,
    /// All of it has come.
    whole: bool,
}

/// Datagrams that have neither been taken nor lost, and IP of each host.
#[derive(Default)]
pub(super) struct Datagrams {
    /// In the order of their numbers.
    list: VecDeque<(DatagramId, Datagram)>,
    sent: DatagramId,
    ip: Vec<HostIp<DatagramId>>,
}

impl Datagrams {
    /// None yet, on so many hosts.
    pub(super) fn new(hosts: u32, config: &SocketConfig) -> Self {
        let ip = (0..hosts).map(|_| HostIp::new(config)).collect();
        Self { list: VecDeque::new(), sent: 0, ip }
    }

    fn add(&mut self, from: Address, to: Address, content: Content) -> DatagramId {
        let number = self.sent;
        self.sent += 1;
        let datagram = Datagram { from, to, content, checksum: false, packets: 0, whole: false };
        self.list.push_back((number, datagram));
        number
    }

    fn get_mut(&mut self, number: DatagramId) -> Option<&mut Datagram> {
        let at = self.list.binary_search_by_key(&number, |one| one.0).ok()?;
        Some(&mut self.list[at].1)
    }

    fn remove(&mut self, number: DatagramId) -> Option<Datagram> {
        let at = self.list.binary_search_by_key(&number, |one| one.0).ok()?;
        Some(self.list.remove(at)?.1)
    }

    /// A packet of a datagram is on its way no more.
    fn packet_gone(&mut self, number: DatagramId) {
        if let Some(datagram) = self.get_mut(number) {
            datagram.packets -= 1;
            if datagram.packets == 0 && !datagram.whole {
                self.remove(number);
            }
        }
    }

    /// Datagrams of which something is kept, and packets that wait for the rest of theirs.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, u32) {
        (self.list.len(), self.ip.iter().map(|ip| ip.receiver.held()).sum())
    }
}

impl Lan {
    pub(super) fn bind(&mut self, here: ThreadAt, process: u32, port: u16) {
        let taken = |port| self.bound.contains_key(&Address { host: here.host, port });
        let port = match port {
            0 => (FIRST_PORT..u16::MAX).find(|&port| !taken(port)).unwrap_or(0),
            port => port,
        };
        if port == 0 || taken(port) {
            return self.outcome(here, process, Outcome::Failed(CallError::PortTaken { port }));
        }
        let at = Address { host: here.host, port };
        let name = self.add_socket(process, at);
        self.outcome(here, process, Outcome::Bound { socket: name, at });
    }

    /// A process gets a socket at an address that is free.
    pub(super) fn add_socket(&mut self, process: u32, at: Address) -> SocketId {
        let name = SocketId(self.udp.iter().filter(|socket| socket.process == process).count() as u32);
        self.bound.insert(at, self.udp.len() as u32);
        // SunOS 4.1 sums no datagrams.
        let machine = udp::Socket::new(udp::Config { checksum: false, ..udp::Config::default() });
        let (waiting, came) = (VecDeque::new(), SegmentId::NONE);
        self.udp.push(DatagramSocket { machine, process, at, name, waiting, came });
        name
    }

    fn udp_socket(&self, process: u32, name: SocketId) -> Option<u32> {
        self.udp
            .iter()
            .position(|socket| socket.process == process && socket.name == name)
            .map(|at| at as u32)
    }

    pub(super) fn send_datagram(
        &mut self,
        here: ThreadAt,
        process: u32,
        socket: SocketId,
        to: Address,
        content: Content,
    ) {
        let Some(config) = &self.config.socket else { return };
        let encapsulation = config.encapsulation;
        let Some(number) = self.udp_socket(process, socket) else {
            return self.outcome(here, process, Outcome::Empty { socket });
        };
        let (from, length) = (self.udp[number as usize].at, content.length());
        let datagram = self.datagrams.add(from, to, content);
        let machine = &mut self.udp[number as usize].machine;
        if let Err(error) = machine.send(Payload::whole(MessageId(datagram), length)) {
            self.datagrams.remove(datagram);
            let error = CallError::TooLong { bytes: error.length, most: error.most };
            return self.outcome(here, process, Outcome::Failed(error));
        }
        // To a here.host that is not there nothing is sent.
        let there = to.host < self.size();
        let mut steps = core::mem::take(&mut self.scratch);
        steps.push(Step::Mask(true));
        while let Some(output) = poll(&mut self.udp[number as usize].machine) {
            match output {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Transmit(sent) if there => {
                    if let Some(datagram) = self.datagrams.get_mut(datagram) {
                        datagram.checksum = sent.checksum;
                    }
                    let ends = Ends { source: ip_of(here.host), destination: ip_of(to.host) };
                    let (protocol, length) = (Protocol::UDP, sent.octets() as u16);
                    let whole =
                        ip::Datagram { ends, protocol, length, dont_fragment: false, content: datagram };
                    let taken = self.datagrams.ip[here.host as usize].sender.send(whole);
                    debug_assert!(taken.is_ok(), "a datagram of UDP is one that IP carries");
                }
                _ => {}
            }
        }
        loop {
            match self.datagrams.ip[here.host as usize].sender.poll_output() {
                Output::Work(_) => {}
                Output::Transmit(piece) => {
                    if let Some(datagram) = self.datagrams.get_mut(datagram) {
                        datagram.packets += 1;
                    }
                    let octets = Bytes::new(piece.octets().into()) + encapsulation;
                    let packet = self.add_packet(Carried::Piece(piece));
                    if to.host != here.host {
                        steps.push(self.price(here.host, Activity::PacketOut, octets, octets));
                    }
                    steps.push(Step::Do(Action::Transmit { packet, to: to.host, octets }));
                }
                Output::Deliver(never) | Output::Event(never) => match never {},
                Output::Timeout(_) => break,
            }
        }
        if !there {
            self.datagrams.remove(datagram);
        }
        steps.push(Step::Mask(false));
        steps.push(Step::Do(Action::SentDatagram { process, socket }));
        self.insert_all(here, steps);
    }

    /// A datagram has left its process.
    pub(super) fn sent_datagram(&mut self, here: ThreadAt, process: u32, socket: SocketId) {
        self.outcome(here, process, Outcome::Sent { socket, rest: Content::new() });
    }

    /// A packet of a datagram has come to IP.
    pub(super) fn piece_came(&mut self, here: ThreadAt, piece: ip::Packet<DatagramId>) {
        let now = self.core.now();
        self.datagrams.ip[here.host as usize].receiver.handle_packet(now, piece);
        self.drain_pieces(here);
        self.datagrams.packet_gone(piece.content);
    }

    /// A packet of a datagram is lost.
    pub(super) fn piece_lost(&mut self, piece: ip::Packet<DatagramId>) {
        self.datagrams.packet_gone(piece.content);
    }

    /// The timer of a host's reassembly may have run out.
    pub(super) fn library_fragments_due(&mut self, host: u32) {
        let now = self.core.now();
        self.endless -= 1;
        self.datagrams.ip[host as usize].handle_timeout(now);
        let timer = self.hosts[host as usize].timer;
        self.drain_pieces(timer);
    }

    /// Does what IP of a host asks for.
    fn drain_pieces(&mut self, here: ThreadAt) {
        loop {
            match self.datagrams.ip[here.host as usize].receiver.poll_output() {
                Output::Work(_) => {}
                Output::Deliver(received) => self.is_whole(here, received.datagram.content),
                Output::Event(_) => self.pieces_lost += 1,
                Output::Transmit(never) => match never {},
                Output::Timeout(due) => {
                    let due = self.datagrams.ip[here.host as usize].schedule(due);
                    // Nobody waits for what is given up: no run goes on for it.
                    self.endless += usize::from(due.is_some());
                    return self.watch_fragments(here.host, due);
                }
            }
        }
    }

    /// All packets of a datagram have come.
    fn is_whole(&mut self, here: ThreadAt, number: DatagramId) {
        // Packets that are known by the same number of IP may be of two datagrams.
        let Some(datagram) = self.datagrams.get_mut(number) else { return };
        let Some(&socket) = self.bound.get(&datagram.to) else { return };
        datagram.whole = true;
        let payload = Payload::whole(MessageId(number), datagram.content.length());
        let came = udp::Datagram { payload, checksum: datagram.checksum, corrupted: false };
        self.udp[socket as usize].machine.handle_datagram(came);
        let mut steps = core::mem::take(&mut self.scratch);
        while let Some(output) = poll(&mut self.udp[socket as usize].machine) {
            match output {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Deliver(_) => {
                    steps.push(Step::Do(Action::DatagramCame { socket, datagram: number }));
                }
                Output::Event(Event::Full { .. }) => {
                    self.unread += 1;
                    self.datagrams.remove(number);
                }
                _ => {}
            }
        }
        self.insert_all(here, steps);
    }

    /// A datagram is there for a process.
    pub(super) fn datagram_came(&mut self, here: ThreadAt, number: u32, datagram: DatagramId) {
        let trail = self.trail_of(here);
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
    pub(super) fn receive_datagram(&mut self, here: ThreadAt, process: u32, socket: SocketId, wait: bool) {
        let Some(number) = self.udp_socket(process, socket) else {
            return self.outcome(here, process, Outcome::Empty { socket });
        };
        let one = &mut self.udp[number as usize];
        let came = one.came;
        if one.waiting.is_empty() || one.machine.receive(Bytes::MAX).is_none() {
            if wait {
                return self.sleep(here, process, Call::ReceiveFrom { socket, wait });
            }
            return self.outcome(here, process, Outcome::Empty { socket });
        }
        let mut steps = core::mem::take(&mut self.scratch);
        steps.push(Step::After(came));
        steps.push(self.fee(here.host, Activity::SocketReceive));
        while let Some(output) = poll(&mut self.udp[number as usize].machine) {
            if let Output::Work(work) = output {
                self.charge(here.host, &work, &mut steps);
            }
        }
        steps.push(Step::Do(Action::TakeDatagram { process, socket: number }));
        self.insert_all(here, steps);
    }

    /// The datagram is in the process's own memory.
    pub(super) fn take_datagram(&mut self, here: ThreadAt, process: u32, number: u32) {
        let one = &mut self.udp[number as usize];
        let socket = one.name;
        let taken = one.waiting.pop_front().and_then(|number| self.datagrams.remove(number));
        let Some(Datagram { from, mut content, .. }) = taken else {
            return self.outcome(here, process, Outcome::Empty { socket });
        };
        self.outcome(here, process, Outcome::Datagram { socket, from, content: &mut content });
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
