//! Ranks that wait: for requests, for messages that they probe for, or for one look at what has come.

use wiretwin_msg::library::Failure;
use wiretwin_msg::matching::Pattern;
use wiretwin_units::Span;

use super::host::Action;
use super::{Kind, Lan, Look, Message, OpError, RequestId, State};
use crate::op::{Completion, Found, Outcome, WaitMode, words};

impl Lan {
    /// A rank waits for requests, in the order in which they are asked for.
    pub(super) fn wait(&mut self, rank: u32, requests: &[RequestId], mode: WaitMode) -> Result<(), OpError> {
        for request in requests {
            self.check_own(rank, *request)?;
        }
        let look = if mode == WaitMode::Test { Look::Due } else { Look::No };
        if look == Look::Due && !self.config.stack.message.is_library() {
            return Err(OpError::Unsupported("a look without waiting, of ranks that have no message layer"));
        }
        let process = &mut self.processes[rank as usize];
        process.state = State::Waiting;
        process.waits.clear();
        process.waited = 0;
        (process.mode, process.look, process.probed) = (mode, look, false);
        process.waits.extend_from_slice(requests);
        self.give(rank, Action::Progress { rank });
        Ok(())
    }

    /// A rank waits for a message, or looks for one.
    pub(super) fn probe(&mut self, rank: u32, pattern: Pattern, look: Look) -> Result<(), OpError> {
        if let Some(source) = pattern.source {
            self.check_rank(source)?;
        }
        self.check_mpi(rank, "a probe")?;
        let process = &mut self.processes[rank as usize];
        process.state = State::Waiting;
        process.waits.clear();
        process.waited = 0;
        (process.probe, process.look) = (Some(pattern), look);
        self.give(rank, Action::Progress { rank });
        Ok(())
    }

    /// A rank takes a receive back.
    pub(super) fn withdraw(&mut self, rank: u32, request: RequestId) -> Result<(), OpError> {
        let slot = self.check_own(rank, request)?;
        if !matches!(self.requests[slot].kind, Kind::Recv { .. }) {
            return Err(OpError::Unsupported("to take a send back"));
        }
        self.check_mpi(rank, "to take a receive back")?;
        self.give(rank, Action::Withdraw { process: rank, request });
        Ok(())
    }

    /// The slot of a request that is open, and this rank's.
    fn check_own(&self, rank: u32, request: RequestId) -> Result<usize, OpError> {
        self.find(request)
            .filter(|slot| self.requests[*slot].rank == rank)
            .ok_or(OpError::NoSuchRequest { request })
    }

    /// Rejects what only a library of MPI has.
    pub(super) fn check_mpi(&self, _rank: u32, what: &'static str) -> Result<(), OpError> {
        if self.config.stack.message.is_mpi() { Ok(()) } else { Err(OpError::Unsupported(what)) }
    }

    /// Resumes a rank if what it waits for has happened, or its look is over.
    pub(super) fn resume_if_done(&mut self, rank: u32) -> bool {
        let process = &self.processes[rank as usize];
        if process.probe.is_some() {
            return self.resume_if_found(rank);
        }
        match process.mode {
            WaitMode::All => self.resume_if_all(rank),
            mode => self.resume_if_any(rank, mode),
        }
    }

    fn is_open(&self, request: RequestId) -> bool {
        self.find(request).is_some_and(|slot| !self.requests[slot].complete)
    }

    fn resume_if_all(&mut self, rank: u32) -> bool {
        let process = &self.processes[rank as usize];
        let next = process.waits[process.waited..].iter().position(|request| self.is_open(*request));
        let waited = next.map_or(process.waits.len(), |at| process.waited + at);
        self.processes[rank as usize].waited = waited;
        if next.is_some() {
            return false;
        }
        let waits = core::mem::take(&mut self.processes[rank as usize].waits);
        self.resume(rank, &waits);
        self.processes[rank as usize].waits = waits;
        true
    }

    fn resume_if_any(&mut self, rank: u32, mode: WaitMode) -> bool {
        let process = &self.processes[rank as usize];
        let is_over = process.waits.is_empty() || process.look == Look::Taken;
        let most = if mode == WaitMode::Any { 1 } else { usize::MAX };
        let done = process.waits.iter().copied().filter(|request| !self.is_open(*request));
        let done = done.take(most).collect::<Vec<_>>();
        if done.is_empty() && !is_over {
            return false;
        }
        self.resume(rank, &done);
        true
    }

    fn resume_if_found(&mut self, rank: u32) -> bool {
        let process = &mut self.processes[rank as usize];
        let (Some(pattern), look) = (process.probe, process.look) else { return false };
        let found = self.look_for(rank, &pattern);
        if found.is_none() && look != Look::Taken {
            return false;
        }
        let process = &mut self.processes[rank as usize];
        (process.probe, process.probed, process.found) = (None, true, found);
        self.resume(rank, &[]);
        true
    }

    /// The message that a receive would take.
    fn look_for(&mut self, rank: u32, pattern: &Pattern) -> Option<Found> {
        let (envelope, bytes) = self.library_probes(rank, pattern)?;
        // Of those that are like it, the one that was sent first.
        let is_it = |request: &&super::Request| match request.kind {
            Kind::Send(message) => {
                !message.matched
                    && (request.rank, message.to) == (envelope.source, rank)
                    && (message.context, message.tag) == (envelope.context, envelope.tag)
            }
            _ => false,
        };
        let message = self.requests.iter().filter(is_it).map(|request| request.id).min()?;
        Some(Found { source: envelope.source, tag: envelope.tag, bytes, message })
    }

    /// What a rank that is suspended waits for, in words.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn waits_of(&self, rank: u32) -> Vec<String> {
        let process = &self.processes[rank as usize];
        if let Some(pattern) = &process.probe {
            return vec![words::of_probe(pattern)];
        }
        let open = process.waits.iter().filter_map(|request| self.find(*request));
        let open = open.filter(|slot| !self.requests[*slot].complete);
        open.filter_map(|slot| match self.requests[slot].kind {
            Kind::Send(Message { bytes, to, tag, context, .. }) => {
                Some(words::of_send(bytes, to, tag, context))
            }
            Kind::Recv { pattern, .. } => Some(words::of_receive(&pattern)),
            Kind::Free => None,
        })
        .collect()
    }

    /// How long the processor of a rank's host has been busy.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn busy_of(&self, rank: u32) -> Span {
        self.hosts[self.processes[rank as usize].here.host as usize].cpu.busy()
    }

    /// What a rank that the last step has resumed is resumed with.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn outcome_of(&self, rank: u32) -> Outcome<'_> {
        let process = &self.processes[rank as usize];
        if process.probed { Outcome::Probed(process.found) } else { Outcome::Completed(&process.completions) }
    }

    /// What a resumed rank's wait returned, in the order in which it was asked for.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn completions(&self, rank: u32) -> &[Completion] {
        &self.processes[rank as usize].completions
    }

    /// Why a request of a rank's last wait has failed.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn failure(&self, rank: u32, request: RequestId) -> Option<Failure> {
        let failures = &self.processes[rank as usize].failures;
        failures.iter().find(|(failed, _)| *failed == request).map(|(_, failure)| *failure)
    }
}
