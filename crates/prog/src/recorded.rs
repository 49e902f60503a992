//! A communicator that takes note of every message its rank sends: the trace of a program.

use wiretwin_units::{Bytes, Span};

use crate::comm::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When the call that sent it began, on the clock of the rank.
    pub at: Span,
    /// To whom.
    pub to: Rank,
    /// With which tag.
    pub tag: Tag,
    /// How long it was.
    pub bytes: Bytes,
}

/// A rank's communicator with a list of what it has sent; everything else is the inner one's.
#[derive(Debug)]
pub struct Recorded<'a, C> {
    inner: &'a mut C,
    sent: Vec<Sent>,
}

impl<'a, C: Comm> Recorded<'a, C> {
    /// Begins with an empty list.
    pub const fn new(inner: &'a mut C) -> Self {
        Self { inner, sent: Vec::new() }
    }

    /// What was sent, in order.
    pub fn into_sent(self) -> Vec<Sent> {
        self.sent
    }

    fn note(&mut self, to: Rank, tag: Tag, message: &[u8]) {
        let (at, bytes) = (self.inner.now(), Bytes::new(message.len() as u64));
        self.sent.push(Sent { at, to, tag, bytes });
    }
}

impl<C: Comm> Comm for Recorded<'_, C> {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> u32 {
        self.inner.size()
    }

    fn now(&self) -> Span {
        self.inner.now()
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.note(to, tag, message);
        self.inner.send(to, tag, message).await
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        self.inner.recv(from, tag, buffer).await
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        for send in sends {
            self.note(send.to, send.tag, send.message);
        }
        self.inner.exchange(sends, receives).await
    }

    async fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> T {
        self.inner.compute(work, body).await
    }
}
