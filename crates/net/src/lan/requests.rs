//! Requests of ranks: their numbers, and the messages that sends made.

use wiretwin_msg::library::NO_MULTICAST;
use wiretwin_msg::protocol::Mode;
use wiretwin_units::{Bytes, Span};

use super::core::LanEvent;
use super::host::Action;
use super::trail::SegmentId;
use super::{Kind, Lan, Message, OpError, Request, RequestId, State};

impl Lan {
    /// The first rank of the stack of which a process is a rank. With stacks beside the main one, ranks are
    /// counted through: behind those of one come its daemons, then the ranks of the next.
    pub(super) fn process_set_of(&self, process: u32) -> Option<u32> {
        let size = self.size();
        if self.process_sets.is_empty() {
            return (process < size).then_some(0);
        }
        self.process_sets.iter().copied().find(|&first| (first..first + size).contains(&process))
    }

    /// A rank goes to sleep.
    pub(super) fn pause(&mut self, rank: u32, span: Span) -> Result<(), OpError> {
        if !self.config.stack.message.is_library() {
            return Err(OpError::Unsupported("a pause, but of ranks with a message layer"));
        }
        let process = &mut self.processes[rank as usize];
        process.state = State::Waiting;
        process.paused = true;
        process.waits.clear();
        process.waited = 0;
        let time = self.now() + span;
        self.core.at(time, LanEvent::Pause(rank));
        Ok(())
    }

    /// It has slept.
    pub(super) fn pause_over(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        process.paused = false;
        let here = process.here;
        self.hosts[here.host as usize].cpu.slept(here.thread);
        self.give(rank, Action::Progress { rank });
    }

    /// The first rank of each stack: the main one, then those beside it.
    #[must_use]
    pub fn process_sets(&self) -> Vec<u32> {
        if self.process_sets.is_empty() { vec![0] } else { self.process_sets.clone() }
    }

    pub(super) fn open(&mut self, rank: u32, kind: Kind) -> RequestId {
        self.serial += 1;
        let slot = match self.free_requests.pop() {
            Some(slot) => slot,
            None => self.requests.len() as u32,
        };
        let id = RequestId(self.serial << 24 | u64::from(slot));
        let request = Request { id, rank, complete: false, cancelled: false, failure: None, number: 0, kind };
        match self.requests.get_mut(slot as usize) {
            Some(entry) => *entry = request,
            None => self.requests.push(request),
        }
        id
    }

    /// Opens the request of a send: its context, receiver and tag, and how many ranks take the message.
    pub(super) fn open_send(
        &mut self,
        rank: u32,
        (context, to, tag): (u32, u32, u32),
        mode: Mode,
        bytes: Bytes,
        takers: u32,
    ) -> RequestId {
        let message = Message {
            to,
            context,
            tag,
            bytes,
            mode,
            arrived: Bytes::new(0),
            begun: self.now(),
            begin: SegmentId::NONE,
            returned: false,
            matched: false,
            takers,
        };
        self.open(rank, Kind::Send(message))
    }

    /// Messages that went to several ranks as one.
    #[must_use]
    pub const fn sent_to_several(&self) -> u64 {
        self.sent_to_several
    }

    /// A rank sends one message to several.
    pub(super) fn post_multicast(
        &mut self,
        rank: u32,
        to: &[u32],
        tag: u32,
        bytes: Bytes,
    ) -> Result<RequestId, OpError> {
        to.iter().try_for_each(|&to| self.check_rank(to))?;
        let Some(&first) = to.first() else { return Err(OpError::Unsupported(NO_MULTICAST)) };
        if to.contains(&rank) || to.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(OpError::ToItself { rank });
        }
        if !self.config.stack.message.is_library() {
            return Err(OpError::Unsupported(NO_MULTICAST));
        }
        let admitted = self.library_admits_many(rank, to, tag, bytes);
        admitted.map_err(|refusal| OpError::of(refusal, rank, bytes))?;
        let request = self.open_send(rank, (0, first, tag), Mode::Standard, bytes, to.len() as u32);
        self.several.insert(request, to.to_vec());
        self.sent_to_several += 1;
        self.post_to_library(rank, request, true);
        Ok(request)
    }

    pub(super) fn find(&self, id: RequestId) -> Option<usize> {
        let slot = (id.0 & 0xff_ffff) as usize;
        self.requests.get(slot).filter(|request| request.id == id).map(|_| slot)
    }

    pub(super) fn close(&mut self, id: RequestId) {
        if let Some(slot) = self.find(id) {
            self.requests[slot].kind = Kind::Free;
            self.requests[slot].id = RequestId(u64::MAX);
            self.free_requests.push(slot as u32);
        }
    }

    /// The message that a send made, while it is known.
    pub(super) fn message(&mut self, id: RequestId) -> Option<&mut Message> {
        let slot = self.find(id)?;
        match &mut self.requests[slot].kind {
            Kind::Send(message) => Some(message),
            _ => None,
        }
    }
}
