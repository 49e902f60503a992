//! Connections through memory of the adapter that is mapped into processes, without TCP and IP.
//!
//! What Chen, Brandt and Armstrong (1996) made of PVM's library: where it called sockets, it calls the
//! driver (`ioctl`), whose buffers are mapped into the process. The library packs into such a buffer and
//! unpacks out of it, so that octets are copied once at each end. Buffers of one PDU are taken from and go back to
//! lists that were filled at the start, two for each connection: who writes finds as much room as the first has
//! buffers, and waits for one; what comes and finds none in the second waits in the adapter, and its credits with
//! it, so that it holds back the sender's adapter and no other circuit. The network loses nothing, so that nothing
//! is acknowledged or repeated.
//!
//! | call of the library | what it is | what it pays |
//! |---|---|---|
//! | write | the driver is told of PDUs, each up to the MTU | `trap`, and `packet_out` each |
//! | select | a look at the lists; a call of the driver where it has to sleep | `select`; `trap` |
//! | read | a look at what came | nothing |
//!
//! Choices: looking needs no call, as the lists lie in the mapped memory. A buffer that was sent is free when its
//! last cell has left it, for which the driver interrupts only where somebody waits; one that has come when its
//! octets were read, into the message that the library puts together.

use std::collections::VecDeque;

use wiretwin_msg::library::{Call, ConnectionId, Content, Outcome};
use wiretwin_units::Bytes;

use super::super::Lan;
use super::super::activity::Activity;
use super::super::cpu::Step;
use super::super::host::{Action, ThreadAt};
use super::super::socket::Carried;
use super::super::trail::SegmentId;

/// Numbers of ends from here are those of mapped memory.
const FIRST: u32 = 1 << 31;

/// Whether the number of an end is one of mapped memory.
pub(in super::super) const fn is_mapped(end: u32) -> bool {
    end >= FIRST
}

/// One end of a connection.
pub(in super::super) struct MappedEnd {
    process: u32,
    host: u32,
    other: u32,
    name: ConnectionId,
    /// PDUs that it has sent and that have not been taken at the other end, in order.
    sent: VecDeque<Content>,
    /// Its buffers with PDUs that have not left it, and whether somebody found none.
    used: u32,
    full: bool,
    /// What has come and was not read, and what is left of each PDU.
    inbox: Content,
    unread: VecDeque<Bytes>,
    /// What brought it.
    came: SegmentId,
}

impl Lan {
    /// Two processes have each other's memory from the start.
    pub(super) fn map_memory(&mut self, [one, other]: [u32; 2]) {
        let first = self.mapped.len() as u32;
        for (process, peer, end) in [(one, other, first), (other, one, first + 1)] {
            let name = self.name_connection(process, FIRST + end, peer);
            self.mapped.push(MappedEnd {
                process,
                host: self.processes[process as usize].here.host,
                other: first + u32::from(end == first),
                name,
                sent: VecDeque::new(),
                used: 0,
                full: false,
                inbox: Content::new(),
                unread: VecDeque::new(),
                came: SegmentId::NONE,
            });
        }
    }

    fn mapped(&self, end: u32) -> &MappedEnd {
        &self.mapped[(end - FIRST) as usize]
    }

    /// Whether there is something to read.
    pub(super) fn has_mapped(&self, end: u32) -> bool {
        !self.mapped(end).inbox.is_empty()
    }

    /// Whether a write would find a buffer.
    pub(super) fn has_mapped_room(&self, end: u32) -> bool {
        self.mapped(end).used < self.config.mapped_buffers
    }

    /// Somebody looks for room: where there is none it is told of the next.
    pub(super) fn wants_mapped_room(&mut self, end: u32) {
        let full = !self.has_mapped_room(end);
        self.mapped[(end - FIRST) as usize].full |= full;
    }

    /// The buffers that a write takes, each with so many octets.
    fn mapped_pdus(&self, end: u32, octets: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let most = self.config.socket.as_ref().map_or(Bytes::MAX, |socket| Bytes::new(socket.mtu.into()));
        let free = u64::from(self.config.mapped_buffers - self.mapped(end).used);
        let count = octets.get().div_ceil(most.get()).min(free);
        (0..count).map(move |at| most.min(octets - most * at))
    }

    /// Whether a call is one that goes through mapped memory.
    pub(super) fn is_call_mapped(&self, process: u32, call: &Call) -> bool {
        let runtime = &self.runtimes[process as usize];
        let of = |connection: &ConnectionId| runtime.end(*connection).is_some_and(is_mapped);
        match call {
            Call::Write { connection, .. } | Call::Read { connection, .. } => of(connection),
            // A process with mapped memory has no sockets.
            Call::Select { .. } => runtime.connections.first().is_some_and(|end| end.is_some_and(is_mapped)),
            _ => false,
        }
    }

    /// A call of the driver begins.
    pub(super) fn begin_mapped(&mut self, here: ThreadAt, process: u32) {
        let Some(call) = &self.runtimes[process as usize].current else { return };
        match call {
            Call::Write { connection, content, .. } => {
                let end = self.runtimes[process as usize].end(*connection);
                let (octets, mut steps) = (content.length(), core::mem::take(&mut self.scratch));
                steps.clear();
                steps.push(self.fee(here.host, Activity::Trap));
                for pdu in end.into_iter().flat_map(|end| self.mapped_pdus(end, octets)) {
                    steps.push(self.price(here.host, Activity::PacketOut, pdu, pdu));
                }
                steps.push(Step::Do(Action::Post { process }));
                self.insert_all(here, steps);
            }
            Call::Select { write, until, .. } => {
                let (write, now) = (*write, self.core.now());
                let waits = until.is_none_or(|until| until > now);
                self.look(process, write);
                let sleeps = waits && self.runtimes[process as usize].ready.is_empty();
                let mut steps = vec![self.fee(here.host, Activity::Select)];
                if sleeps {
                    steps.push(self.fee(here.host, Activity::Trap));
                }
                steps.push(Step::Do(Action::Attempt { process }));
                self.insert(here, &steps);
            }
            _ => self.insert(here, &[Step::Do(Action::Attempt { process })]),
        }
    }

    /// The driver has PDUs.
    pub(in super::super) fn post_mapped(&mut self, here: ThreadAt, process: u32) {
        let Some(Call::Write { connection, mut content, wait }) =
            self.runtimes[process as usize].current.take()
        else {
            return;
        };
        let (now, trail) = (self.core.now(), self.trail_of(here));
        if let Some(end) = self.runtimes[process as usize].end(connection) {
            let (other, mine) = (self.mapped(end).other, (end - FIRST) as usize);
            let to = self.mapped[other as usize].host;
            for octets in self.mapped_pdus(end, content.length()) {
                let mut pdu = Content::new();
                content.move_to(octets, &mut pdu);
                let sender = &mut self.mapped[mine];
                sender.sent.push_back(pdu);
                sender.used += 1;
                let packet = self.add_packet(Carried::Mapped { end: other, octets: octets.get() });
                self.packets[packet].trail = trail;
                if let Some(medium) = &mut self.medium {
                    medium.advance(now);
                    medium.offer_mapped(now, [here.host, to], end, packet, octets);
                }
            }
            self.medium_due();
            if !content.is_empty() {
                self.mapped[mine].full = true;
                if wait {
                    return self.sleep(here, process, Call::Write { connection, content, wait });
                }
            }
        }
        self.outcome(here, process, Outcome::Wrote { connection, rest: content });
    }

    /// A PDU has left the memory of an end: its driver interrupts where somebody waits for the buffer.
    pub(in super::super) fn mapped_left(&mut self, end: u32) {
        let one = &mut self.mapped[(end - FIRST) as usize];
        one.used -= 1;
        let host = one.host;
        if core::mem::take(&mut one.full) {
            let timer = self.hosts[host as usize].timer;
            let entry = self.fee(host, Activity::Interrupt);
            self.wake(timer, &[entry, Step::Do(Action::MappedRoom { end })]);
        }
    }

    /// Who waits for a buffer goes on.
    pub(in super::super) fn mapped_room(&mut self, here: ThreadAt, end: u32) {
        let trail = self.trail_of(here);
        let process = self.mapped(end).process;
        self.rouse_library(process, trail);
    }

    /// A PDU is in the memory of a process.
    pub(in super::super) fn mapped_came(&mut self, here: ThreadAt, end: u32) {
        let trail = self.trail_of(here);
        let other = self.mapped[end as usize].other as usize;
        let pdu = self.mapped[other].sent.pop_front();
        let end = &mut self.mapped[end as usize];
        if let Some(mut pdu) = pdu {
            end.unread.push_back(pdu.length());
            pdu.move_to(Bytes::MAX, &mut end.inbox);
        }
        end.came = trail;
        let process = end.process;
        self.rouse_library(process, trail);
    }

    /// A process reads what came, where it lies.
    pub(super) fn read_mapped(&mut self, here: ThreadAt, process: u32, end: u32, most: Bytes) {
        let mut content = self.spare_content();
        let end = &mut self.mapped[(end - FIRST) as usize];
        let mut read = end.inbox.move_to(most, &mut content);
        let mut free = 0;
        while let Some(pdu) = end.unread.front_mut().filter(|pdu| read >= **pdu) {
            read -= *pdu;
            free += 1;
            end.unread.pop_front();
        }
        if let Some(pdu) = end.unread.front_mut() {
            *pdu -= read;
        }
        let (connection, came, other) = (end.name, end.came, end.other as usize);
        if let Some(medium) = &mut self.medium
            && free > 0
        {
            let (now, from) = (self.core.now(), self.mapped[other].host);
            medium.advance(now);
            for _ in 0..free {
                medium.free_mapped(now, [from, here.host]);
            }
            self.medium_due();
        }
        self.insert(here, &[Step::After(came)]);
        self.outcome(here, process, Outcome::Read { connection, content: &mut content });
        self.keep_content(content);
    }
}
