//! Long messages' bytes over the kernel's TCP.

use wiretwin_proto::MessageId;

use super::super::stream::{self, Job};
use super::{Endpoint, Trouble};

impl Endpoint {
    /// The peer has asked for a message whose bytes go by the stream.
    pub(super) fn begin_stream(&mut self, number: usize, id: MessageId, reference: u32, length: u64) {
        let Some(sending) = self.sends.get(id.0 as usize) else { return };
        // SAFETY: the caller of `send` promised the bytes until the completion, before which the job goes.
        let job = unsafe { Job::new(id, reference, sending.bytes, length.min(sending.length)) };
        self.peers[number].jobs.push_back(job);
        self.streaming += 1;
        self.send_stream(number);
    }

    /// Sends and takes what there is on streams: whether there was something.
    #[inline]
    pub(super) fn progress_streams(&mut self) -> bool {
        if self.streaming == 0 {
            return false;
        }
        let mut moved = false;
        for number in 0..self.peers.len() {
            if !self.peers[number].jobs.is_empty() {
                moved |= self.send_stream(number);
            }
            if self.peers[number].expects > 0 {
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
        let peer = &mut self.peers[number];
        let Some(way) = self.ends.as_ref().and_then(|ends| ends.way_from(peer.key)) else { return false };
        let found = peer.coming.take(way, &mut self.inbox, number);
        self.carried.stream += found.completed as u64;
        self.less_expected(number, found.completed);
        found.moved
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
        for job in std::mem::take(&mut peer.jobs) {
            self.done(job.id(), Some(Trouble::PeerGone));
        }
    }
}
