//! Two ranks on one connection, with nothing added to the bytes of a message.
//!
//! What NetPIPE's TCP module does: both ends know the sizes, so no header is needed and nothing is
//! matched. Made for measuring.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use rustix::event::PollFd;

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::{Bytes, Span};

use crate::clock::Clock;
use crate::stream::{Failure, Spinner, Stream, Waited, events, pause};

/// Runs a program of the live world to its end.
///
/// # Panics
/// If the future is not ready at its first poll: then it does not come from a live world.
pub fn drive<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a live future is ready at its first poll"),
    }
}

/// A send that is made at the first poll, and then over.
///
/// Beside an `async fn` that awaits nothing, this and [`Receiving`] leave no state behind: a compiler puts
/// the two calls of an echo into the loop around them, where a state machine of each would be filled in,
/// called and its result read back from memory between the coming of a message and the answer.
struct Sending<'p, 'm, S> {
    pair: &'p mut Pair<S>,
    to: Rank,
    tag: Tag,
    message: &'m [u8],
}

/// A receive, like [`Sending`].
struct Receiving<'p, 'm, S> {
    pair: &'p mut Pair<S>,
    from: Source,
    tag: TagMatch,
    buffer: &'m mut [u8],
}

impl<S: Stream> Future for Sending<'_, '_, S> {
    type Output = Result<(), CommError>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { pair, to, tag, message } = self.get_mut();
        Poll::Ready(pair.send_now(*to, *tag, message))
    }
}

impl<S: Stream> Future for Receiving<'_, '_, S> {
    type Output = Result<Status, CommError>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { pair, from, tag, buffer } = self.get_mut();
        Poll::Ready(pair.recv_now(*from, *tag, buffer))
    }
}

/// The unframed world of two ranks.
///
/// Tags are not carried (a receive reports the tag it asked for), except that [`Tag::CONTROL`]
/// takes the reliable way on a layer that may lose messages. A receive takes exactly as many bytes
/// as its buffer has.
#[derive(Debug)]
pub struct Pair<S> {
    stream: S,
    rank: Rank,
    clock: Clock,
}

impl<S: Stream> Pair<S> {
    /// The rank `rank` (0 or 1) at one end of `stream`.
    ///
    /// # Panics
    /// If `rank` is neither 0 nor 1.
    pub fn new(rank: Rank, stream: S) -> Self {
        assert!(rank.0 < 2, "a pair has ranks 0 and 1");
        Self { stream, rank, clock: Clock::start() }
    }

    /// The connection.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    const fn peer(&self) -> Rank {
        Rank(1 - self.rank.0)
    }

    #[inline]
    fn check_rank(&self, rank: Rank) -> Result<(), CommError> {
        if rank.0 == self.peer().0 { Ok(()) } else { Err(self.wrong_rank(rank)) }
    }

    #[cold]
    fn wrong_rank(&self, rank: Rank) -> CommError {
        if rank == self.rank {
            CommError::Unsupported("a message to oneself on an unframed pair")
        } else {
            CommError::NoSuchRank { rank, size: 2 }
        }
    }

    #[inline]
    fn check_match(&self, from: Source, tag: TagMatch) -> Result<Tag, CommError> {
        if let Source::Rank(rank) = from {
            self.check_rank(rank)?;
        }
        match tag {
            TagMatch::Tag(tag) => Ok(tag),
            TagMatch::Any => Err(CommError::Unsupported("any tag on an unframed pair: tags are not carried")),
        }
    }

    #[inline(always)]
    fn send_now(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.check_rank(to)?;
        let sent = if tag == Tag::CONTROL {
            self.stream.send_control(message)
        } else {
            self.stream.send_all(message)
        };
        sent.map_err(|failure| self.fail(failure))
    }

    #[inline(always)]
    fn recv_now(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let tag = self.check_match(from, tag)?;
        let received = if tag == Tag::CONTROL {
            self.stream.recv_control(buffer)
        } else {
            self.stream.recv_exact(buffer)
        };
        received.map_err(|failure| self.fail(failure))?;
        Ok(Status { source: self.peer(), tag, bytes: Bytes::new(buffer.len() as u64) })
    }

    #[cold]
    fn fail(&self, failure: Failure) -> CommError {
        match failure {
            Failure::PeerGone => CommError::PeerLost { rank: self.peer() },
            Failure::Limit => CommError::TimedOut {
                limit: Span::from_ps(
                    u64::try_from(self.stream.limit().as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000),
                ),
            },
            Failure::Refused(reason) => CommError::Transport(reason),
        }
    }
}

impl<S: Stream> Comm for Pair<S> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        2
    }

    #[inline]
    fn now(&self) -> Span {
        self.clock.now()
    }

    #[inline(always)]
    fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> impl Future<Output = Result<(), CommError>> {
        Sending { pair: self, to, tag, message }
    }

    #[inline(always)]
    fn recv(
        &mut self,
        from: Source,
        tag: TagMatch,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<Status, CommError>> {
        Receiving { pair: self, from, tag, buffer }
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        for send in sends {
            self.check_rank(send.to)?;
        }
        for receive in receives.iter() {
            self.check_match(receive.from, receive.tag)?;
        }
        if sends.is_empty() && receives.is_empty() {
            return self.stream.move_nothing().map_err(|failure| self.fail(failure));
        }
        let (mut sending, mut sent, mut receiving, mut received) = (0, 0, 0, 0);
        let mut spinner = Spinner::new(self.stream.limit(), 1024);
        let mut gone = false;
        loop {
            let mut moved = false;
            if let Some(send) = sends.get(sending)
                && let Some(count) =
                    self.stream.try_send(&send.message[sent..]).map_err(|failure| self.fail(failure))?
            {
                (sent, moved) = (sent + count, true);
                if sent == send.message.len() {
                    (sending, sent) = (sending + 1, 0);
                }
            }
            if let Some(receive) = receives.get_mut(receiving)
                && let Some(count) = self
                    .stream
                    .try_recv(&mut receive.buffer[received..])
                    .map_err(|failure| self.fail(failure))?
            {
                (received, moved) = (received + count, true);
                if received == receive.buffer.len() {
                    let TagMatch::Tag(tag) = receive.tag else { unreachable!("checked above") };
                    receive.status = Some(Status {
                        source: self.peer(),
                        tag,
                        bytes: Bytes::new(receive.buffer.len() as u64),
                    });
                    (receiving, received) = (receiving + 1, 0);
                }
            }
            if sending == sends.len() && receiving == receives.len() {
                return Ok(());
            }
            if moved {
                spinner.reset();
                continue;
            }
            let mut fds = [PollFd::new(&self.stream, events(sending < sends.len()))];
            let waited = pause(self.stream.wait(), &mut fds, &mut spinner);
            if waited.map_err(|failure| self.fail(failure))? == Waited::Look {
                if gone {
                    return Err(self.fail(Failure::PeerGone));
                }
                // Once more: what it sent before it went still counts.
                gone = self.stream.closed();
            }
        }
    }

    async fn compute<T>(&mut self, _work: Work, body: impl FnOnce() -> T) -> T {
        body()
    }
}
