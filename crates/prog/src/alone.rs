//! A world of one rank, in which a program is its own sequential version.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wiretwin_units::Span;

use crate::comm::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};

/// The only rank. There is nobody to send to; its clock stands still.
pub(crate) struct Alone;

/// Runs what a program does with nobody else.
pub(crate) fn run<T>(program: impl Future<Output = T>) -> T {
    match pin!(program).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("alone, every call is ready at once"),
    }
}

const fn nobody(rank: Rank) -> CommError {
    CommError::NoSuchRank { rank, size: 1 }
}

impl Comm for Alone {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> u32 {
        1
    }

    fn now(&self) -> Span {
        Span::ZERO
    }

    async fn send(&mut self, to: Rank, _tag: Tag, _message: &[u8]) -> Result<(), CommError> {
        Err(nobody(to))
    }

    async fn recv(&mut self, from: Source, _tag: TagMatch, _buffer: &mut [u8]) -> Result<Status, CommError> {
        Err(match from {
            Source::Rank(rank) => nobody(rank),
            Source::Any => CommError::Unsupported("a receive from nobody"),
        })
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        match (sends, receives) {
            ([], []) => Ok(()),
            ([send, ..], _) => Err(nobody(send.to)),
            (_, [_, ..]) => Err(CommError::Unsupported("a receive from nobody")),
        }
    }

    async fn compute<T>(&mut self, _work: Work, body: impl FnOnce() -> T) -> T {
        body()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_nobody_to_talk_to() {
        run(async {
            let mut alone = Alone;
            assert_eq!(alone.send(Rank(1), Tag(0), &[1]).await, Err(nobody(Rank(1))));
            let received = alone.recv(Source::Rank(Rank(3)), TagMatch::Any, &mut [0]).await;
            assert_eq!(received, Err(nobody(Rank(3))));
            assert!(alone.recv(Source::Any, TagMatch::Any, &mut []).await.is_err());
            assert_eq!(alone.exchange(&[], &mut []).await, Ok(()));
            let send = Outgoing { to: Rank(0), tag: Tag(0), message: &[] };
            assert_eq!(alone.exchange(&[send], &mut []).await, Err(nobody(Rank(0))));
            assert_eq!(alone.compute(Work { kind: "work", count: 1 }, || 7).await, 7);
        });
    }
}
