//! What ranks ask of their interfaces besides messages, and the processes that it takes.
//!
//! A control call is posted as a message is, goes to the library, and comes back with a number. Groups of PVM are
//! kept by a task that its daemons start when they are first asked for one (`pvmgs`), and which is found through
//! their mailbox; where tasks speak to each other the daemons, which sleep there, come to be with the first control
//! call.
//! *Choice*: a process that is started is there at once, and so are daemons; what it takes to make them is left
//! out as it is for those that are there from the start.

use std::collections::{BTreeMap, BTreeSet};

use wiretwin_msg::library::{CallError, Control, Library, Outcome, Refusal};
use wiretwin_msg::protocol::Mode;
use wiretwin_msg::pvm::group::SERVER;
use wiretwin_msg::pvm::library::daemon::Daemon;
use wiretwin_msg::pvm::library::server::GroupServer;
use wiretwin_proto::{Work, WorkKind};
use wiretwin_units::Bytes;

use super::super::host::{Action, ThreadAt};
use super::super::stack::Message;
use super::super::{Kind, Lan, OpError, RequestId};
use super::{Machine, Runtime};

/// Whom a message to a group is for, until that is known.
const UNKNOWN: u32 = 1 << 31;

/// Control calls on their way to their libraries, and what was done for them.
#[derive(Default)]
pub(in super::super) struct Controls {
    asked: BTreeMap<RequestId, Control>,
    /// The first ranks of stacks whose daemons were woken.
    woken: BTreeSet<u32>,
    /// Octets of messages that libraries have put into the form of the wire, and taken out of it.
    converted: u64,
}

impl Controls {
    pub(super) fn take(&mut self, id: RequestId) -> Option<Control> {
        self.asked.remove(&id)
    }

    pub(super) fn note(&mut self, work: &Work) {
        if matches!(work.kind, WorkKind::XdrOpaqueOut | WorkKind::XdrOpaqueIn) {
            self.converted += work.bytes.get();
        }
    }
}

impl Lan {
    /// Octets of messages that libraries have put into the form of the wire, and taken out of it.
    #[must_use]
    pub const fn converted(&self) -> u64 {
        self.controls.converted
    }

    /// A rank asks for something.
    pub(in super::super) fn post_control(
        &mut self,
        rank: u32,
        control: &Control,
    ) -> Result<RequestId, OpError> {
        let message = self.config.stack.message;
        // Mapped memory reaches tasks alone.
        if !message.is_library() || message == Message::PvmMapped {
            return Err(OpError::Unsupported(control.unsupported()));
        }
        let machine = &self.runtimes[rank as usize].machine;
        let admitted: Result<(), Refusal> = of_library!(machine, library => library.admit_control(control));
        let (tag, bytes, is_message) = match *control {
            Control::Cast { tag, bytes, .. } => (tag, bytes, true),
            _ => (0, Bytes::new(0), false),
        };
        admitted.map_err(|refusal| OpError::of(refusal, rank, bytes))?;
        if message == Message::PvmAdvise {
            self.wake_daemons(rank);
        }
        let id = self.open_send(rank, (0, rank, tag), Mode::Standard, bytes, UNKNOWN);
        if !is_message && let Some(message) = self.message(id) {
            // Nobody gets it.
            (message.arrived, message.matched) = (Bytes::MAX, true);
        }
        self.controls.asked.insert(id, control.clone());
        self.post_to_library(rank, id, is_message);
        Ok(id)
    }

    /// A control call has come to this number.
    pub(super) fn answered(&mut self, id: RequestId, number: u32) {
        let Some(slot) = self.find(id) else { return };
        self.requests[slot].number = number;
        if let Kind::Send(message) = &mut self.requests[slot].kind
            && message.arrived != Bytes::MAX
        {
            // Some may have it already.
            message.takers = message.takers + number - UNKNOWN;
            if message.takers == 0 {
                message.arrived = Bytes::MAX;
            }
        }
    }

    /// The daemons of a rank's stack, if they slept so far.
    fn wake_daemons(&mut self, rank: u32) {
        let first = self.process_set_of(rank).unwrap_or(0);
        if !self.controls.woken.insert(first) {
            return;
        }
        let size = self.size();
        for host in 0..size {
            let daemon = self.add_runtime(host, Machine::PvmDaemon(Box::new(Daemon::new(host, size))));
            let [to_rank, to_daemon] = self.connect_locally([daemon, first + host]);
            for (process, end, peer) in [(daemon, to_rank, host), (first + host, to_daemon, size + host)] {
                let connection = self.name_connection(process, end, peer);
                self.ends[end as usize].name = connection;
            }
            self.give(daemon, Action::Progress { rank: daemon });
        }
    }

    /// A process starts another one on its host, which is connected to it.
    pub(super) fn start_program(&mut self, here: ThreadAt, process: u32, program: &str) {
        if program != SERVER {
            return self.outcome(here, process, Outcome::Failed(CallError::NoSuchProgram));
        }
        let number = self.processes.len() as u32;
        let started = self.add_runtime(here.host, Machine::PvmGroups(Box::new(GroupServer::new(number))));
        let [to_starter, to_started] = self.connect_locally([started, process]);
        let name = self.name_connection(started, to_starter, process);
        self.ends[to_starter as usize].name = name;
        let connection = self.runtimes[process as usize].name(to_started);
        self.ends[to_started as usize].name = connection;
        self.give(started, Action::Progress { rank: started });
        self.outcome(here, process, Outcome::Started { process: started, connection });
    }

    /// A process that was not there from the start.
    pub(super) fn add_runtime(&mut self, host: u32, machine: Machine) -> u32 {
        let number = self.processes.len() as u32;
        self.add_process(host);
        self.runtimes.push(Runtime::new(machine));
        number
    }

    /// A connection between two processes of a host: the end of each, in their order.
    fn connect_locally(&mut self, processes: [u32; 2]) -> [u32; 2] {
        let number = self.ends.len() as u32;
        let Some(socket) = self.config.socket.clone() else { return [number; 2] };
        let host = self.processes[processes[0] as usize].here.host;
        let ends = [
            self.add_end(processes[0], host, number + 1, socket.mtu),
            self.add_end(processes[1], host, number, socket.mtu),
        ];
        let nodelay = self.sets_nodelay(processes[1], &socket);
        self.open_connection(ends, nodelay);
        ends
    }
}
