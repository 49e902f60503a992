//! One end of a TCP connection: the machine, its timers, and a user who reads at once.

use std::sync::Arc;

use wiretwin_proto::tcp::{Config, Endpoint, Event, Read, Reason, SeqNumber, Setup, TcpOutput};
use wiretwin_proto::{MessageId, Output};
use wiretwin_units::{Bytes, SimTime};

/// An end of a connection and its user.
#[derive(Clone, Debug)]
pub(crate) struct TcpEnd {
    pub machine: Endpoint,
    /// When its next timer runs out; [`SimTime::MAX`] for never.
    deadline: SimTime,
    /// The earliest of its timers that are scheduled.
    scheduled: SimTime,
    /// Bytes that the user has still to write.
    pub to_write: u64,
    /// The user closes when all is written.
    pub closes: bool,
    pub ended: Option<Reason>,
    pub read: u64,
    pub last_read: SimTime,
}

impl TcpEnd {
    /// The end of the connection of this number that opens it (`side` 0), or the other (1).
    pub(crate) fn new(number: u32, side: u32, config: Arc<Config>, mtu: u16) -> Self {
        let id = |side: u32| MessageId(u64::from(number) * 2 + u64::from(side));
        let iss = SeqNumber::wrapping(number.wrapping_mul(64_000) + side * 32_000);
        let setup = Setup { iss, stream: id(side), peer_stream: id(1 - side), mtu };
        Self {
            machine: Endpoint::new(config, setup),
            deadline: SimTime::MAX,
            scheduled: SimTime::MAX,
            to_write: 0,
            closes: false,
            ended: None,
            read: 0,
            last_read: SimTime::ZERO,
        }
    }

    /// What the machine puts out next, and what its user does of it: its work and its segments are the caller's, what is
    /// delivered has been read, and a timeout is a timer that is to be set.
    #[inline]
    pub(crate) fn step(&mut self, now: SimTime) -> TcpOutput {
        let mut output = self.machine.poll_output();
        match &mut output {
            Output::Work(_) | Output::Transmit(_) | Output::Event(Event::Urgent { .. }) => {}
            Output::Deliver(_) => {
                if let Read::Octets(bytes) = self.machine.receive(now, Bytes::new(u64::MAX)) {
                    self.read += bytes.get();
                    self.last_read = now;
                }
            }
            Output::Event(Event::Established | Event::Writable) => self.go_on_writing(now),
            Output::Event(Event::EndOfStream) => {
                // It has closed already where the connection is over.
                let _ = self.machine.close(now);
            }
            Output::Event(Event::Closed(reason)) => self.ended = Some(*reason),
            Output::Timeout(deadline) => {
                self.deadline = deadline.unwrap_or(SimTime::MAX);
                *deadline = self.timer();
            }
        }
        output
    }

    /// A timer that was set is due at `now`: whether the machine has something to say, or else when to look again.
    pub(crate) fn is_due(&mut self, now: SimTime) -> Result<(), Option<SimTime>> {
        if self.scheduled == now {
            self.scheduled = SimTime::MAX;
        }
        if self.deadline > now {
            return Err(self.timer());
        }
        self.machine.handle_timeout(now);
        Ok(())
    }

    /// When a timer is to be set, if one is: one that comes too early finds that out by itself and looks again.
    fn timer(&mut self) -> Option<SimTime> {
        let is_earlier = self.deadline < self.scheduled;
        is_earlier.then(|| {
            self.scheduled = self.deadline;
            self.deadline
        })
    }

    /// The user writes what there is room for.
    pub(crate) fn go_on_writing(&mut self, now: SimTime) {
        if self.to_write == 0 {
            return;
        }
        // A connection that is over takes no more.
        if let Ok(taken) = self.machine.send(now, Bytes::new(self.to_write)) {
            self.to_write -= taken.get();
        }
        if self.to_write == 0 && self.closes {
            self.closes = self.machine.close(now).is_err();
        }
    }
}
