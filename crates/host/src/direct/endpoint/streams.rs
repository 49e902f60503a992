//! Long messages' bytes over the kernel's TCP.

use wiretwin_proto::MessageId;
use wiretwin_units::SimTime;
use wiretwin_wire::direct::{Body, Extent, Number, seal};

use super::super::packet::MOST_AT_ONCE;
use super::super::stream::{self, Job};
use super::{Endpoint, Trouble};

/// Messages whose bytes are pushed on the stream: longer than what goes past the kernel at once, and so short that to
/// ask for them first would take long beside them (a tenth of the time of 256 KiB, and more). One that comes before its
/// receive is copied once more.
pub(super) const LEAST_PUSHED: u64 = MOST_AT_ONCE as u64;
const MOST_PUSHED: u64 = 1 << 18;
/// Turns in which streams are asked each time after something has come on one.
const LIVELY: u32 = 512;

impl Endpoint {
    /// Whether the bytes of a message of this length are pushed on the stream.
    #[inline]
    pub(super) fn pushes(&self, number: usize, length: u64) -> bool {
        if !(LEAST_PUSHED..=MOST_PUSHED).contains(&length) {
            return false;
        }
        let peer = &self.peers[number];
        !peer.uses_memory
            && !peer.machine.is_peer_short()
            && self.ends.as_ref().is_some_and(|ends| ends.way_to(peer.key).is_some())
    }

    /// The number of a frame that is a pushed message's and goes for the first time: with its bytes. Sent again it goes
    /// as any.
    #[inline]
    pub(super) fn first_pushed(&self, number: usize, body: &Body) -> Option<Number> {
        let Body::Message { number: ns, head: Some(head) } = *body else { return None };
        let is_first = matches!(head.extent, Extent::Pushed { .. })
            && self.peers[number].last_pushed.is_none_or(|last| last.precedes(ns));
        is_first.then_some(ns)
    }

    /// Sends a message with its frame on the stream.
    pub(super) fn push_stream(&mut self, number: usize, id: MessageId, frame: &mut [u8], ns: Number) {
        self.peers[number].last_pushed = Some(ns);
        // What was sent before it comes before it.
        if let Some(network) = &mut self.network {
            network.flush();
        }
        seal(frame);
        let Some(sending) = self.sends.get(id.0 as usize) else { return };
        // SAFETY: the caller of `send` promised the bytes until the completion, before which the job goes.
        let job = unsafe { Job::pushed(id, frame, sending.bytes, sending.length) };
        self.begin_job(number, job);
    }

    /// A message of a peer will come on its stream.
    pub(super) fn expect(&mut self, number: usize) {
        self.peers[number].expects += 1;
        self.streaming += 1;
    }

    /// The peer has asked for a message whose bytes go by the stream.
    pub(super) fn begin_stream(&mut self, number: usize, id: MessageId, reference: u32, length: u64) {
        let Some(sending) = self.sends.get(id.0 as usize) else { return };
        // SAFETY: the caller of `send` promised the bytes until the completion, before which the job goes.
        let job = unsafe { Job::new(id, reference, sending.bytes, length.min(sending.length)) };
        self.begin_job(number, job);
    }

    fn begin_job(&mut self, number: usize, job: Job) {
        self.peers[number].jobs.push_back(job);
        self.streaming += 1;
        self.send_stream(number);
    }

    /// Sends and takes what there is on streams: whether there was something.
    #[inline]
    pub(super) fn progress_streams(&mut self) -> bool {
        self.quiet = self.quiet.saturating_add(1);
        if self.streaming == 0 && self.quiet > LIVELY {
            return false;
        }
        let mut moved = false;
        for number in 0..self.peers.len() {
            let peer = &mut self.peers[number];
            peer.is_lively &= self.quiet <= LIVELY;
            let (sends, takes) = (!peer.jobs.is_empty(), peer.expects > 0 || peer.is_lively);
            if sends {
                moved |= self.send_stream(number);
            }
            if takes {
                moved |= self.take_stream(number);
            }
        }
        moved
    }

    fn send_stream(&mut self, number: usize) -> bool {
        let peer = &mut self.peers[number];
        let Some(way) = self.ends.as_ref().and_then(|ends| ends.way_to(peer.key)) else { return false };
        let mut sent = Vec::new();
        let moved = stream::send(way, &mut peer.jobs, |id| sent.push(id));
        self.streaming -= sent.len();
        sent.into_iter().for_each(|id| self.done(id, None));
        moved
    }

    pub(super) fn take_stream(&mut self, number: usize) -> bool {
        let mut moved = false;
        loop {
            let peer = &mut self.peers[number];
            let Some(way) = self.ends.as_ref().and_then(|ends| ends.way_from(peer.key)) else { return moved };
            let found = peer.coming.take(way, &mut self.inbox, number);
            self.carried.stream += found.completed as u64;
            if found.moved {
                (peer.is_lively, self.quiet) = (true, 0);
                moved = true;
            }
            self.less_expected(number, found.completed);
            let Some((frame, length)) = found.frame else { return moved };
            self.now = SimTime::ZERO + self.clock.now();
            let from = self.peers[number].datagrams;
            self.datagram(&frame[..length], from, None);
        }
    }

    /// So many of the messages that a peer was asked for have come.
    pub(super) fn less_expected(&mut self, number: usize, count: usize) {
        self.peers[number].expects -= count;
        self.streaming -= count;
    }

    /// What was to be sent to a peer, or to come from it, will not.
    pub(super) fn end_streams(&mut self, number: usize) {
        let peer = &mut self.peers[number];
        self.streaming -= peer.jobs.len() + std::mem::take(&mut peer.expects);
        peer.last_pushed = None;
        for sink in std::mem::take(&mut peer.coming.pushed) {
            self.inbox.lose(number, Some(sink));
        }
        let peer = &mut self.peers[number];
        for job in std::mem::take(&mut peer.jobs) {
            self.done(job.id(), Some(Trouble::PeerGone));
        }
    }
}
