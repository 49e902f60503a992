//! Datagram sockets of ranks without a library: UDP over IP, whose packets are cut where they are longer than the
//! network carries.
//!
//! Each rank has one socket, which all others send to. A message is one datagram, or it is rejected; nothing is
//! repeated, and what is lost is lost without a word: in the network, by a fragment that does not come in time,
//! or before a socket without room.

use wiretwin_proto::ip;
use wiretwin_proto::udp::{self, Socket};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, Span};
use wiretwin_wire::ipv4::{Ends, Protocol};

use super::activity::Activity;
use super::capture::ip_of;
use super::config::SocketConfig;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::ip::HostIp;
use super::socket::Carried;
use super::trail::SegmentId;
use super::{Lan, RequestId, State};

/// A datagram between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) datagram: udp::Datagram,
}

/// What a host has of IP and UDP.
pub(super) struct RankUdp {
    ip: HostIp<Sent>,
    socket: Socket,
    /// What brought the datagram that came last.
    came: SegmentId,
}

impl RankUdp {
    fn new(config: &SocketConfig) -> Self {
        Self { ip: HostIp::new(config), socket: Socket::new(config.udp), came: SegmentId::NONE }
    }
}

impl Lan {
    /// Opens a socket on each host.
    pub(super) fn open_datagram_sockets(&mut self, config: &SocketConfig) {
        self.rank_udp = (0..self.size()).map(|_| RankUdp::new(config)).collect();
    }

    /// The longest datagram that a socket sends.
    pub(super) fn longest_datagram(&self) -> Bytes {
        let most = self.config.socket.as_ref().map_or(0, |socket| socket.udp.send_most);
        Bytes::new(most.min(wiretwin_wire::udp::MAX_PAYLOAD_OCTETS).into())
    }

    /// A send is posted: a system call, and what UDP and IP make of it.
    pub(super) fn post_datagram(&mut self, rank: u32, message: RequestId) {
        let here = self.processes[rank as usize].here;
        let steps = [
            Step::Do(Action::Begin { message }),
            self.fee(here.host, Activity::Trap),
            self.fee(here.host, Activity::SocketSend),
            Step::Do(Action::SendRankDatagram { message }),
            Step::Do(Action::Sent { message }),
        ];
        self.wake(here, &steps);
    }

    /// UDP takes a message and IP its datagram; the packets go to the driver.
    pub(super) fn send_rank_datagram(&mut self, here: ThreadAt, id: RequestId) {
        let Some(&mut message) = self.message(id) else { return };
        let payload = Payload::whole(MessageId(id.0), message.bytes);
        let mut steps = core::mem::take(&mut self.scratch);
        steps.push(Step::Mask(true));
        let taken = self.rank_udp[here.host as usize].socket.send(payload);
        debug_assert!(taken.is_ok(), "longer ones were rejected when they were posted");
        loop {
            match self.rank_udp[here.host as usize].socket.poll_output() {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Transmit(datagram) => {
                    let ends = Ends { source: ip_of(here.host), destination: ip_of(message.to) };
                    let content = Sent { from: here.host, to: message.to, datagram };
                    let length = datagram.octets() as u16;
                    let protocol = Protocol::UDP;
                    let whole = ip::Datagram { ends, protocol, length, dont_fragment: false, content };
                    let taken = self.rank_udp[here.host as usize].ip.sender.send(whole);
                    debug_assert!(taken.is_ok(), "a datagram of UDP is one that IP carries");
                }
                Output::Deliver(_) | Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        let encapsulation = self.config.socket.as_ref().map_or(Bytes::new(0), |socket| socket.encapsulation);
        loop {
            match self.rank_udp[here.host as usize].ip.sender.poll_output() {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Transmit(piece) => {
                    let octets = Bytes::new(piece.octets().into()) + encapsulation;
                    let packet = self.add_packet(Carried::Ip(piece));
                    steps.push(self.price(here.host, Activity::PacketOut, octets, octets));
                    steps.push(Step::Do(Action::Transmit { packet, to: message.to, octets }));
                }
                Output::Deliver(never) | Output::Event(never) => match never {},
                Output::Timeout(_) => break,
            }
        }
        steps.push(Step::Mask(false));
        self.insert_all(here, steps);
    }

    /// A packet has come to IP.
    pub(super) fn take_ip(&mut self, here: ThreadAt, piece: ip::Packet<Sent>) {
        let now = self.core.now();
        self.rank_udp[here.host as usize].ip.receiver.handle_packet(now, piece);
        self.drain_datagrams(here);
    }

    /// The timer of a host's reassembly may have run out.
    pub(super) fn rank_fragments_due(&mut self, host: u32) {
        let now = self.core.now();
        self.rank_udp[host as usize].ip.handle_timeout(now);
        let timer = self.hosts[host as usize].timer;
        self.wake(timer, &[Step::Do(Action::Reassembled)]);
    }

    /// Does what IP and UDP of a host ask for.
    pub(super) fn drain_datagrams(&mut self, here: ThreadAt) {
        let mut steps = core::mem::take(&mut self.scratch);
        loop {
            let at = &mut self.rank_udp[here.host as usize];
            match at.ip.receiver.poll_output() {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Deliver(received) => {
                    let datagram = received.datagram.content.datagram;
                    let corrupted = datagram.corrupted || received.corrupted;
                    at.socket.handle_datagram(udp::Datagram { corrupted, ..datagram });
                    self.drain_socket(here.host, &mut steps);
                }
                Output::Event(_) => self.pieces_lost += 1,
                Output::Transmit(never) => match never {},
                Output::Timeout(due) => {
                    let due = at.ip.schedule(due);
                    self.watch_fragments(here.host, due);
                    break;
                }
            }
        }
        self.insert_all(here, steps);
    }

    fn drain_socket(&mut self, host: u32, steps: &mut Vec<Step<Action>>) {
        loop {
            match self.rank_udp[host as usize].socket.poll_output() {
                Output::Work(work) => self.charge(host, &work, steps),
                Output::Deliver(_) => steps.push(Step::Do(Action::RankDatagramCame)),
                Output::Event(udp::Event::Full { .. }) => self.unread += 1,
                Output::Event(_) => self.pieces_lost += 1,
                Output::Transmit(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    /// A datagram stands before its reader.
    pub(super) fn rank_datagram_came(&mut self, here: ThreadAt) {
        let trail = self.trail_of(here);
        self.rank_udp[here.host as usize].came = trail;
        self.rouse(here.host, here.host, trail);
    }

    /// What a process does while it waits: reads what is there, else sleeps.
    pub(super) fn datagram_progress(&mut self, here: ThreadAt, rank: u32) {
        if self.processes[rank as usize].state != State::Waiting || self.resume_if_done(rank) {
            return;
        }
        let entry = self.fee(here.host, Activity::Trap);
        let at = &self.rank_udp[here.host as usize];
        let (ready, came) = (at.socket.waiting() > Bytes::ZERO, at.came);
        if !ready || self.processes[rank as usize].posted.is_empty() {
            return self.found_nothing(here, rank, entry);
        }
        let entered = core::mem::take(&mut self.processes[rank as usize].in_call);
        let steps = [
            Step::After(came),
            if entered { Step::Charge(Activity::Trap, Span::ZERO) } else { entry },
            self.fee(here.host, Activity::SocketReceive),
            Step::Do(Action::ReadRankDatagram { rank }),
        ];
        self.insert(here, &steps);
    }

    /// A process reads the first datagram that waits for it.
    pub(super) fn read_datagram(&mut self, here: ThreadAt, rank: u32) {
        let mut steps = core::mem::take(&mut self.scratch);
        let read = self.rank_udp[here.host as usize].socket.receive(Bytes::MAX);
        self.drain_socket(here.host, &mut steps);
        if let Some(payload) = read {
            steps.push(Step::Do(Action::Took { rank, payload }));
        }
        steps.push(Step::Do(Action::Progress { rank }));
        self.insert_all(here, steps);
    }
}

#[cfg(test)]
mod tests;
