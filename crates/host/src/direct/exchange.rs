//! Messages between endpoints alone: what two services, and a window that follows the delay, are worth live.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wiretwin_msg::tagged::Pattern;
use wiretwin_proto::direct::Counters;

use super::{Address, Completion, Endpoint, Kind, Options, Outgoing, Receive};
use crate::rendezvous::{Meeting, MeetingError};

/// What ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Rank 0 sends messages to rank 1, one at a time, with a pause before the next; rank 1 sends each back.
    Echo {
        /// From an answer to the next message.
        pause: Duration,
    },
    /// All others send to rank 0 at once.
    Incast,
}

/// Messages to be exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// How each rank's endpoint is set up.
    pub options: Options,
    /// What ranks do.
    pub task: Task,
    /// How long messages are, in bytes; at least 1.
    pub length: usize,
    /// How many each sender sends.
    pub count: u64,
}

/// What became of it at this rank.
#[derive(Clone, Debug, Default)]
pub struct Exchanged {
    /// Of an echo at rank 0 how long each message took to the other and back; of an incast at rank 0 from the word to begin
    /// to the last message.
    pub took: Vec<Duration>,
    /// What the ends of this rank have counted, together.
    pub counters: Counters,
}

/// Turns without anything to do before a rank sleeps.
const PATIENCE: u32 = 64;
/// The longest sleep.
const NAP: Duration = Duration::from_millis(5);
const TAG: u64 = 1;

/// One process of the exchange: its endpoint, and how it meets the others.
struct Rank<'a> {
    meeting: &'a Meeting<'a>,
    endpoint: Endpoint,
    buffer: Vec<u8>,
    peers: Vec<usize>,
    end: Instant,
}

/// Exchanges messages with the other ranks, within the limit of the meeting.
///
/// # Errors
/// [`MeetingError`]: an endpoint cannot be had, another rank did not come or has gone, or the limit has passed.
pub fn exchange(meeting: &Meeting<'_>, exchange: &Exchange) -> Result<Exchanged, MeetingError> {
    let failed = |error| MeetingError::new("opening an endpoint", error);
    let endpoint = Endpoint::open(exchange.options).map_err(failed)?;
    let buffer = vec![0; exchange.length.max(1)];
    let end = Instant::now() + meeting.limit;
    let mut rank = Rank { meeting, endpoint, buffer, peers: Vec::new(), end };
    rank.meet()?;
    let mut took = Vec::new();
    match (exchange.task, meeting.rank) {
        (Task::Echo { pause }, 0) => {
            for _ in 0..exchange.count {
                let begun = Instant::now();
                rank.send(1)?;
                rank.receive()?;
                took.push(begun.elapsed());
                rank.rest(pause);
            }
        }
        (Task::Echo { .. }, _) => {
            for _ in 0..exchange.count {
                rank.receive()?;
                rank.send(0)?;
            }
        }
        (Task::Incast, 0) => {
            let others = u64::from(meeting.size) - 1;
            (0..others).try_for_each(|_| rank.receive())?;
            let begun = Instant::now();
            (1..=others as usize).try_for_each(|other| rank.send(other))?;
            (0..others * exchange.count).try_for_each(|_| rank.receive())?;
            took.push(begun.elapsed());
        }
        (Task::Incast, _) => {
            rank.send(0)?;
            rank.receive()?;
            (0..exchange.count).try_for_each(|_| rank.send(0))?;
        }
    }
    rank.endpoint.finish(rank.end.saturating_duration_since(Instant::now()));
    let mut counters = Counters::default();
    rank.peers.iter().for_each(|&peer| counters.add(&rank.endpoint.counters(peer)));
    Ok(Exchanged { took, counters })
}

impl Rank<'_> {
    fn path(&self, rank: u32, suffix: &str) -> PathBuf {
        self.meeting.directory.join(format!("direct-{rank}{suffix}"))
    }

    /// Shows its address and looks for those of all ranks.
    fn meet(&mut self) -> Result<(), MeetingError> {
        let own = self.meeting.rank;
        let (new, whole) = (self.path(own, ".new"), self.path(own, ""));
        let written =
            fs::write(&new, self.endpoint.address().to_bytes()).and_then(|()| fs::rename(&new, &whole));
        written.map_err(|error| MeetingError::new(whole.display(), error))?;
        for rank in 0..self.meeting.size {
            let path = self.path(rank, "");
            let octets = loop {
                match fs::read(&path) {
                    Ok(octets) => break octets,
                    Err(error) if Instant::now() > self.end => {
                        return Err(MeetingError::new(path.display(), error));
                    }
                    Err(_) => self.endpoint.nap(NAP),
                }
            };
            let address =
                Address::from_bytes(&octets).map_err(|error| MeetingError::new(path.display(), error))?;
            let peer = self.endpoint.peer(address);
            self.peers.push(peer);
        }
        Ok(())
    }

    fn send(&mut self, to: usize) -> Result<(), MeetingError> {
        let message = Outgoing {
            bytes: self.buffer.as_ptr(),
            length: self.buffer.len() as u64,
            tag: Some(TAG),
            data: None,
            context: None,
        };
        // SAFETY: without a context, the bytes are needed during the call alone.
        while unsafe { self.endpoint.send(self.peers[to], message) }.is_err() {
            self.turn("waiting for room in the queue")?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), MeetingError> {
        let receive =
            Receive { buffer: self.buffer.as_mut_ptr(), length: self.buffer.len() as u64, context: Some(0) };
        // SAFETY: the buffer is this rank's own, and left alone until the completion, which is waited for or the
        // endpoint dropped.
        unsafe { self.endpoint.receive(Pattern { source: None, tag: Some(TAG), ignore: 0 }, receive) };
        loop {
            match self.endpoint.completion() {
                Some(Completion { kind: Kind::Received, trouble: None, .. }) => return Ok(()),
                Some(Completion { trouble: Some(trouble), .. }) => {
                    return Err(MeetingError::new("waiting for a message", format_args!("{trouble:?}")));
                }
                Some(_) => {}
                None => self.turn("waiting for a message")?,
            }
        }
    }

    /// Makes progress, or sleeps where there is nothing to do.
    fn turn(&mut self, doing: &str) -> Result<(), MeetingError> {
        self.endpoint.progress();
        if self.endpoint.has_completions() || self.endpoint.idle_turns() < PATIENCE {
            return Ok(());
        }
        if Instant::now() > self.end {
            return Err(MeetingError::new(doing, "the limit has passed"));
        }
        self.endpoint.nap(NAP);
        Ok(())
    }

    /// Sees to what is under way for so long.
    fn rest(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.endpoint.nap(left);
        }
    }
}
