//! Pieces of messages on their way through a daemon.

use alloc::vec::Vec;

use wiretwin_proto::{Output, WorkKind};
use wiretwin_units::{Bytes, Seq, SimTime};
use wiretwin_wire::pvm as wire;

use super::{Body, Daemon, Demand, Event, StreamId, Transmit, peer, room};
use crate::pvm::{Fragment, Message, Packet, Tid};

impl<B: Body> Daemon<B> {
    /// What a peer asks for since it was called.
    pub(super) fn drain_peer(&mut self, now: SimTime, host: u32) {
        while let Some(peer) = self.hosts.get_mut(&host).and_then(|host| host.peer.as_mut()) {
            match peer.poll_output() {
                Output::Transmit(packet) => {
                    self.work(WorkKind::Forward, packet.length());
                    self.outputs.push_back(Output::Transmit(Transmit::Datagram { host, packet }));
                }
                Output::Deliver(packet) => self.packet_came(now, host, packet),
                Output::Event(peer::Event::SentAgain(_)) => self.event(Event::SentAgain { host }),
                Output::Event(peer::Event::Repeated(_)) => self.event(Event::Repeated { host }),
                Output::Event(peer::Event::Finished) if host == self.config.master => self.halt(),
                Output::Event(_) => self.host_lost(now, host),
                Output::Work(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    /// A packet of another host, in its order.
    fn packet_came(&mut self, now: SimTime, number: u32, packet: Packet<B>) {
        let Packet { header, head, body } = packet;
        let (to, from) = (header.destination, header.source);
        let fragment = Fragment { to, from, first: head, last: header.last, body };
        if to.is_multicast() {
            return self.copy_to_each(number, fragment);
        }
        if to.host() != self.config.host {
            return self.event(Event::NobodyThere(to));
        }
        if !to.is_daemon() {
            return self.hand_over(fragment);
        }
        let Some(host) = self.hosts.get_mut(&number) else { return };
        match host.assembly.handle(fragment) {
            Ok(Some(message)) if from.is_daemon() => self.between(now, number, message),
            Ok(Some(message)) => self.event(Event::Garbage { from, tag: message.head.tag }),
            Ok(None) => {}
            Err(_) => self.event(Event::Stray(from)),
        }
    }

    /// A piece of a message to many that has come from a host (or this one): a copy for each task here.
    fn copy_to_each(&mut self, number: u32, fragment: Fragment<B>) {
        let Some(host) = self.hosts.get_mut(&number) else { return };
        let Some(at) = host.multicasts.iter().position(|many| many.group == fragment.to) else {
            return self.event(Event::NobodyThere(fragment.to));
        };
        let tids = if fragment.last { host.multicasts.remove(at).to } else { host.multicasts[at].to.clone() };
        // The last of the list first, as PVM does.
        for &to in tids.iter().rev() {
            self.hand_over(Fragment { to, ..fragment.clone() });
        }
    }

    /// A piece that a task has written.
    pub(super) fn piece_came(&mut self, now: SimTime, id: StreamId, mut fragment: Fragment<B>) {
        self.work(WorkKind::Forward, fragment.length());
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let tid = stream.tid;
        let to = fragment.to;
        // Whoever it says it is.
        fragment.from = tid.unwrap_or(Tid(0));
        if to.is_daemon() {
            match stream.assembly.handle(fragment) {
                Ok(Some(message)) if to.host() == 0 || to.host() == self.config.host => {
                    self.request(now, id, message);
                }
                Ok(Some(message)) if tid.is_some() => self.send(now, message),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => self.event(Event::Stray(tid.unwrap_or(Tid(0)))),
            }
            return;
        }
        let Some(tid) = tid else { return self.event(Event::Stray(Tid(0))) };
        if to.is_multicast() {
            return self.multicast_piece(now, tid, fragment);
        }
        if to.host() == self.config.host {
            return self.hand_over(fragment);
        }
        self.forward(now, to.host(), fragment);
    }

    /// A piece of a message of a task here to many: one for each host.
    fn multicast_piece(&mut self, now: SimTime, tid: Tid, fragment: Fragment<B>) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let Some(many) = task.multicast.as_ref().filter(|many| many.group == fragment.to) else {
            return self.event(Event::NobodyThere(fragment.to));
        };
        let hosts: Vec<u32> = many.to.iter().map(|daemon| daemon.host()).collect();
        if fragment.last {
            task.multicast = None;
        }
        for host in hosts.into_iter().rev() {
            if host == self.config.host {
                self.copy_to_each(host, fragment.clone());
            } else {
                self.forward(now, host, fragment.clone());
            }
        }
    }

    /// Sends a message on from here.
    pub(super) fn send(&mut self, now: SimTime, message: Message<B>) {
        let host = match message.to.host() {
            0 => self.config.host,
            host => host,
        };
        if host != self.config.host {
            for fragment in message.fragments() {
                self.forward(now, host, fragment);
            }
        } else if message.to.is_daemon() {
            self.between(now, host, message);
        } else {
            message.fragments().for_each(|fragment| self.hand_over(fragment));
        }
    }

    /// Sends a piece to another host, in as many packets as it takes.
    fn forward(&mut self, now: SimTime, number: u32, fragment: Fragment<B>) {
        let datagram = self.config.datagram;
        let Some(peer) = self.hosts.get_mut(&number).and_then(|host| host.peer.as_mut()) else {
            return self.event(Event::NobodyThere(fragment.to));
        };
        let (length, mut at) = (fragment.body.length(), Bytes::new(0));
        loop {
            let first = fragment.first.filter(|_| at == Bytes::new(0));
            let part = (length - at).min(room(datagram, first.is_some()));
            let body = fragment.body.part(at, part);
            at += part;
            let last = fragment.last && at == length;
            peer.send(now, data(Fragment { to: fragment.to, from: fragment.from, first, last, body }));
            if at == length {
                break;
            }
        }
        self.drain_peer(now, number);
    }

    /// Writes a piece to a task here, or keeps it until the task is connected.
    pub(super) fn hand_over(&mut self, fragment: Fragment<B>) {
        let Some(task) = self.tasks.get_mut(&fragment.to) else {
            return self.event(Event::NobodyThere(fragment.to));
        };
        match task.stream {
            Some(stream) => {
                self.work(WorkKind::Forward, fragment.length());
                self.outputs.push_back(Output::Transmit(Transmit::Write(stream, fragment)));
            }
            None => task.early.push(fragment),
        }
    }

    /// A host is lost: whoever waits for it hears so.
    pub(super) fn host_lost(&mut self, now: SimTime, number: u32) {
        if self.hosts.remove(&number).is_none() {
            return;
        }
        self.event(Event::HostLost { host: number });
        if number == self.config.master {
            return self.halt();
        }
        if self.config.host == self.config.master {
            self.tell_all_of_loss(now, number);
        }
        self.waits_of_host(now, number);
    }

    /// Ends the virtual machine, or what of it can be reached.
    pub(super) fn halt_all(&mut self) {
        let numbers: Vec<u32> = self.hosts.keys().copied().collect();
        for number in numbers {
            if let Some(peer) = self.hosts.get_mut(&number).and_then(|host| host.peer.as_mut()) {
                peer.part();
                while let Output::Transmit(packet) = peer.poll_output() {
                    self.outputs.push_back(Output::Transmit(Transmit::Datagram { host: number, packet }));
                }
            }
        }
        self.halt();
    }

    /// A signal for a task here.
    pub(super) fn signal(&mut self, tid: Tid, signal: i32) {
        if self.tasks.contains_key(&tid) {
            self.demand(Demand::Signal { tid, signal });
        } else {
            self.event(Event::NobodyThere(tid));
        }
    }
}

/// A packet with data, and no number yet.
fn data<B>(fragment: Fragment<B>) -> Packet<B> {
    let header = wire::Packet {
        destination: fragment.to,
        source: fragment.from,
        sequence: Seq::ZERO,
        acknowledged: Seq::ZERO,
        first: fragment.first.is_some(),
        last: fragment.last,
        data: true,
        finish: false,
        acknowledges: false,
    };
    Packet { header, head: fragment.first, body: fragment.body }
}
