//! The group server as a process: the task `pvmgs`, which a daemon has started.
//!
//! It waits in a read of its daemon's connection, and writes what a request has brought about before it reads
//! on. All that it says goes through the daemons (`PvmDontRoute`).

use alloc::collections::VecDeque;
use alloc::string::String;

use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};

use super::line::{self, Line};
use crate::library::{Call, ConnectionId, Content, Event, Library, LibraryOutput, Outcome};
use crate::pvm::Tid;
use crate::pvm::body::Piece;
use crate::pvm::group::{SERVER, Server};
use crate::pvm::task::{self, Config, Routing, Task, Transmit};

/// The server of a virtual machine.
#[derive(Debug)]
pub struct GroupServer {
    server: Server<Piece>,
    daemon: Option<(ConnectionId, Line)>,
    out: VecDeque<Content>,
    /// A call has no outcome.
    busy: bool,
    outputs: VecDeque<LibraryOutput>,
}

impl GroupServer {
    /// A server that its daemon knows as this process.
    #[must_use]
    pub fn new(process: u32) -> Self {
        let config = Config {
            routing: Routing::Never,
            pid: process as i32,
            name: String::from(SERVER),
            tracer: false,
            ..Config::default()
        };
        Self {
            server: Server::new(Task::new(config)),
            daemon: None,
            out: VecDeque::new(),
            busy: false,
            outputs: VecDeque::new(),
        }
    }

    /// Does what the task asks for since it was called; then writes, or waits for more.
    fn drain(&mut self, now: SimTime) {
        loop {
            match self.server.poll_output(now) {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(Transmit::WriteDaemon(fragment)) => {
                    self.out.push_back(line::content(&fragment, Content::new()));
                }
                // The daemon's connection is there from the start.
                Output::Transmit(Transmit::ConnectDaemon) => self.server.task.handle_daemon_open(now),
                Output::Event(task::Event::Garbage(_)) => self.garbage(),
                Output::Transmit(_) | Output::Deliver(_) | Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        if self.busy {
            return;
        }
        let Some((connection, line)) = &self.daemon else { return };
        let call = match self.out.pop_front() {
            Some(content) => Call::Write { connection: *connection, content, wait: true },
            None => Call::Read { connection: *connection, most: line.wanted(), wait: true },
        };
        self.busy = true;
        self.outputs.push_back(Output::Transmit(call));
    }

    fn garbage(&mut self) {
        self.outputs.push_back(Output::Event(Event::Garbage { what: "a fragment of PVM" }));
    }

    fn take_in(&mut self, now: SimTime) {
        while let Some((_, line)) = &mut self.daemon {
            match line.take() {
                Ok(Some(fragment)) => self.server.task.handle_daemon_fragment(now, fragment),
                Ok(None) => return,
                Err(_) => {
                    self.garbage();
                    self.daemon = None;
                    self.server.task.handle_daemon_closed(now);
                }
            }
        }
    }
}

impl Library for GroupServer {
    fn progress(&mut self, now: SimTime) {
        self.server.task.enrol(now);
        self.drain(now);
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        if let Outcome::Given { connection, .. } = outcome {
            self.daemon = Some((connection, Line::new(Tid::MY_DAEMON)));
            return;
        }
        self.busy = false;
        match outcome {
            Outcome::Read { content, .. } => {
                if let Some((_, line)) = &mut self.daemon {
                    content.move_to(Bytes::MAX, &mut line.inbox);
                }
                self.take_in(now);
            }
            Outcome::Ended { .. } => {
                self.daemon = None;
                self.server.task.handle_daemon_closed(now);
            }
            _ => {}
        }
        self.drain(now);
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
