//! Receives that wait for messages, and messages that wait for receives, of one rank.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wiretwin_proto::MessageId;
use wiretwin_units::Bytes;

use crate::library::Request;
use crate::matching::{Envelope, Matcher, Pattern, PostOutcome, Posted};

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    matcher: Matcher,
    posted: Vec<(Request, Option<u32>, Posted)>,
    /// Messages that no receive has taken: how long they are.
    kept: BTreeMap<MessageId, Bytes>,
}

impl Waiting {
    /// A message is here: the receive that it is for, or it is kept.
    pub(crate) fn came(
        &mut self,
        source: u32,
        tag: u32,
        message: MessageId,
        length: Bytes,
    ) -> Option<Request> {
        match self.matcher.arrive(0, Envelope { context: 0, source, tag }, message.0) {
            Some(request) => {
                let request = Request(request);
                self.posted.retain(|(posted, ..)| *posted != request);
                Some(request)
            }
            None => {
                self.kept.insert(message, length);
                None
            }
        }
    }

    /// A receive is posted: the message that was kept for it, with its length, or it waits.
    pub(crate) fn receive(
        &mut self,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
    ) -> Option<(MessageId, Bytes)> {
        match self.matcher.post(0, Pattern { context: 0, source: from, tag }, request.0) {
            PostOutcome::Took { message, .. } => {
                let message = MessageId(message);
                Some((message, self.kept.remove(&message).unwrap_or(Bytes::new(0))))
            }
            PostOutcome::Waits(posted) => {
                self.posted.push((request, from, posted));
                None
            }
        }
    }

    /// Takes back a receive that waits for one of these ranks alone.
    pub(crate) fn withdraw(&mut self, gone: impl Fn(u32) -> bool) -> Option<Request> {
        for at in (0..self.posted.len()).rev() {
            let (request, from, posted) = self.posted[at];
            if from.is_some_and(&gone) && self.matcher.cancel(posted, request.0) {
                self.posted.remove(at);
                return Some(request);
            }
        }
        None
    }
}
