//! Connections through memory of the adapter that is mapped into processes, without TCP and IP.
//!
//! What Chen, Brandt and Armstrong (1996) made of PVM's library: where it called sockets, it calls the
//! driver (`ioctl`), whose buffers are mapped into the process. The library packs into such a buffer and
//! unpacks out of it, so that octets are copied once at each end; buffers are taken from and go back to lists
//! that were filled at the start. The network loses nothing, so that nothing is acknowledged or repeated.
//!
//! | call of the library | what it is | what it pays |
//! |---|---|---|
//! | write | the driver is told of PDUs, each up to the MTU | `trap`, and `packet_out` each |
//! | select | a look at the lists; a call of the driver where it has to sleep | `select`; `trap` |
//! | read | a look at what came | nothing |
//!
//! Choice: looking needs no call, as the lists lie in the mapped memory. Left out: an end of buffers; there are
//! as many as messages need.

use std::collections::VecDeque;

use wiretwin_msg::library::{Call, ConnectionId, Content, Outcome};
use wiretwin_units::Bytes;

use super::super::Lan;
use super::super::activity::Activity;
use super::super::cpu::{Step, ThreadId};
use super::super::host::Action;
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
    /// What has come and was not read.
    inbox: Content,
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
                host: self.processes[process as usize].host,
                other: first + u32::from(end == first),
                name,
                sent: VecDeque::new(),
                inbox: Content::new(),
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

    /// Whether a call is one that goes through mapped memory.
    pub(super) fn is_call_mapped(&self, process: u32, call: &Call) -> bool {
        let inhabitant = &self.inhabitants[process as usize];
        let of = |connection: &ConnectionId| inhabitant.end(*connection).is_some_and(is_mapped);
        match call {
            Call::Write { connection, .. } | Call::Read { connection, .. } => of(connection),
            // A process with mapped memory has no sockets.
            Call::Select { .. } => {
                inhabitant.connections.first().is_some_and(|end| end.is_some_and(is_mapped))
            }
            _ => false,
        }
    }

    /// A call of the driver begins.
    pub(super) fn begin_mapped(&mut self, host: u32, thread: ThreadId, process: u32) {
        let Some(call) = &self.inhabitants[process as usize].current else { return };
        let none = Bytes::new(0);
        match call {
            Call::Write { content, .. } => {
                let most = self.config.socket.as_ref().map_or(none, |socket| Bytes::new(socket.mtu.into()));
                let (octets, mut steps) = (content.length(), core::mem::take(&mut self.scratch));
                steps.clear();
                steps.push(self.price(host, Activity::Trap, none, none));
                for at in 0..octets.get().div_ceil(most.get()) {
                    let pdu = most.min(octets - most * at);
                    steps.push(self.price(host, Activity::PacketOut, pdu, pdu));
                }
                steps.push(Step::Do(Action::Post { process }));
                self.insert(host, thread, &steps);
                self.scratch = steps;
            }
            Call::Select { write, until, .. } => {
                let (write, now) = (*write, self.core.now());
                let waits = until.is_none_or(|until| until > now);
                self.look(process, write);
                let sleeps = waits && self.inhabitants[process as usize].ready.is_empty();
                let mut steps = vec![self.price(host, Activity::Select, none, none)];
                if sleeps {
                    steps.push(self.price(host, Activity::Trap, none, none));
                }
                steps.push(Step::Do(Action::Attempt { process }));
                self.insert(host, thread, &steps);
            }
            _ => self.insert(host, thread, &[Step::Do(Action::Attempt { process })]),
        }
    }

    /// The driver has PDUs.
    pub(in super::super) fn post_mapped(&mut self, host: u32, thread: ThreadId, process: u32) {
        let Some(Call::Write { connection, mut content, .. }) =
            self.inhabitants[process as usize].current.take()
        else {
            return;
        };
        let (now, trail) = (self.core.now(), self.hosts[host as usize].cpu.trail(thread));
        let mtu = self.config.socket.as_ref().map_or(0, |socket| socket.mtu);
        if let Some(end) = self.inhabitants[process as usize].end(connection) {
            let (other, mine) = (self.mapped(end).other, (end - FIRST) as usize);
            let to = self.mapped[other as usize].host;
            while !content.is_empty() {
                let mut pdu = Content::new();
                let octets = content.move_to(Bytes::new(mtu.into()), &mut pdu);
                self.mapped[mine].sent.push_back(pdu);
                let packet = self.add_packet(Carried::Mapped { end: other, octets: octets.get() });
                self.packets.follows(packet, trail);
                if let Some(medium) = &mut self.medium {
                    medium.advance(now);
                    medium.offer_mapped(now, [host, to], packet, octets);
                }
            }
            self.medium_due();
        }
        self.outcome(host, thread, process, Outcome::Wrote { connection, rest: content });
    }

    /// A PDU is in the memory of a process.
    pub(in super::super) fn mapped_came(&mut self, host: u32, thread: ThreadId, end: u32) {
        let trail = self.hosts[host as usize].cpu.trail(thread);
        let other = self.mapped[end as usize].other as usize;
        let pdu = self.mapped[other].sent.pop_front();
        let end = &mut self.mapped[end as usize];
        if let Some(mut pdu) = pdu {
            pdu.move_to(Bytes::MAX, &mut end.inbox);
        }
        end.came = trail;
        let process = end.process;
        self.rouse_library(process, trail);
    }

    /// A process reads what came, where it lies.
    pub(super) fn read_mapped(&mut self, host: u32, thread: ThreadId, process: u32, end: u32, most: Bytes) {
        let mut content = core::mem::take(&mut self.content);
        content.clear();
        let end = &mut self.mapped[(end - FIRST) as usize];
        end.inbox.move_to(most, &mut content);
        let (connection, came) = (end.name, end.came);
        self.insert(host, thread, &[Step::After(came)]);
        self.outcome(host, thread, process, Outcome::Read { connection, content: &mut content });
        self.content = content;
    }
}
