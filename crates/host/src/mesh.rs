//! Any number of ranks, each connected to every other, with matching: the live world of programs.
//!
//! A message travels as a frame: 4 bytes tag, 4 bytes that mark a frame, 8 bytes length (little
//! endian), payload. Whoever waits also takes in what others send, so a send ends although the
//! receiver has not asked yet, as long as it is inside some call; such messages stand in the
//! unexpected queue. Matching is that of the simulated world, [`wiretwin_msg::matching`].

use std::time::Duration;

use rustix::event::PollFd;
use wiretwin_msg::matching::{Envelope, Matcher, Pattern, PostOutcome, Posted};
use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::{Bytes, Span};

use crate::clock::Clock;
use crate::line::{HEADER, Line, Place, Sink};
use crate::store::Store;
use crate::stream::{Failure, Spinner, Stream, Wait, Waited, events, pause};

/// The communicator of programs, and that of [`Tag::CONTROL`], which no wildcard takes.
const CONTEXT: u32 = 0;
const CONTROL_CONTEXT: u32 = 1;
/// Turns of a spinning wait between two looks at the clock and at peers that may have gone.
const SPIN_PERIOD: u32 = 1 << 12;
/// While spinning, lines that nobody waits for are looked at every so many turns.
const OTHERS: u32 = 64;

/// The framed world of any number of ranks.
#[derive(Debug)]
pub struct Mesh<S> {
    rank: Rank,
    lines: Vec<Option<Line<S>>>,
    matcher: Matcher,
    store: Store,
    slots: Vec<Slot>,
    sent: Vec<usize>,
    clock: Clock,
    limit: Duration,
    wait: Wait,
}

/// A receive of the call that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No message yet.
    Waiting(Posted),
    /// Matched with a message in the store.
    Taking(usize),
    /// Its message is arriving from this rank.
    Arriving(Rank),
    /// Over, well or not.
    Done,
}

/// What a call still has to do.
struct Call<'a, 'b> {
    sends: &'a [Outgoing<'a>],
    receives: &'a mut [Incoming<'b>],
    /// The first thing that went wrong without ending the call.
    error: Option<CommError>,
}

impl<S: Stream> Mesh<S> {
    /// The rank `rank` of as many ranks as `streams` has entries, one for each rank, none for
    /// itself. `limit` bounds every wait; `wait` says how this rank waits when it is alone.
    ///
    /// # Panics
    /// If `streams` lacks another rank's connection or has one for this rank.
    pub fn new(rank: Rank, streams: Vec<Option<S>>, limit: Duration) -> Self {
        for (number, stream) in streams.iter().enumerate() {
            assert_eq!(stream.is_none(), number == rank.0 as usize, "one connection for each other rank");
        }
        let wait = streams.iter().flatten().map(Stream::wait).next().unwrap_or(Wait::Yield);
        Self {
            rank,
            lines: streams.into_iter().map(|stream| stream.map(Line::new)).collect(),
            matcher: Matcher::new(),
            store: Store::default(),
            slots: Vec::new(),
            sent: Vec::new(),
            clock: Clock::start(),
            limit,
            wait,
        }
    }

    /// The connections, by rank.
    pub fn streams(&self) -> impl Iterator<Item = &S> {
        self.lines.iter().flatten().map(Line::stream)
    }

    fn world_size(&self) -> u32 {
        self.lines.len() as u32
    }

    fn check_rank(&self, rank: Rank) -> Result<(), CommError> {
        let size = self.world_size();
        if rank.0 < size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size }) }
    }

    fn run(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), CommError> {
        for send in sends {
            self.check_rank(send.to)?;
        }
        for receive in receives.iter() {
            if let Source::Rank(rank) = receive.from {
                self.check_rank(rank)?;
            }
        }
        let mut call = Call { sends, receives, error: None };
        self.post(&mut call);
        self.sent.clear();
        self.sent.resize(sends.len(), 0);
        let outcome = self.drive(&mut call);
        if outcome.is_err() {
            self.abandon();
        }
        match (outcome, call.error) {
            (Err(error), _) | (Ok(()), Some(error)) => Err(error),
            (Ok(()), None) => Ok(()),
        }
    }

    fn post(&mut self, call: &mut Call<'_, '_>) {
        self.slots.clear();
        for (number, receive) in call.receives.iter().enumerate() {
            let control = receive.tag == TagMatch::Tag(Tag::CONTROL);
            let pattern = Pattern {
                context: if control { CONTROL_CONTEXT } else { CONTEXT },
                source: match receive.from {
                    Source::Rank(rank) => Some(rank.0),
                    Source::Any => None,
                },
                tag: match receive.tag {
                    TagMatch::Tag(_) if control => Some(0),
                    TagMatch::Tag(tag) => Some(tag.0),
                    TagMatch::Any => None,
                },
            };
            self.slots.push(match self.matcher.post(self.rank.0, pattern, number as u64) {
                PostOutcome::Took { message, .. } => Slot::Taking(message as usize),
                PostOutcome::Waits(posted) => Slot::Waiting(posted),
            });
        }
    }

    /// Withdraws what a failed call has posted; what is arriving for it is thrown away.
    fn abandon(&mut self) {
        for (number, slot) in self.slots.drain(..).enumerate() {
            match slot {
                Slot::Waiting(posted) => {
                    self.matcher.cancel(posted, number as u64);
                }
                Slot::Taking(message) => self.store.forget(message),
                Slot::Arriving(_) | Slot::Done => {}
            }
        }
        for line in self.lines.iter_mut().flatten() {
            line.abandon();
        }
    }

    fn drive(&mut self, call: &mut Call<'_, '_>) -> Result<(), CommError> {
        let mut spinner = Spinner::new(self.limit, SPIN_PERIOD);
        loop {
            let mut moved = self.send(call)?;
            let everyone = self.wait == Wait::Block || spinner.turns() % OTHERS == OTHERS - 1;
            moved |= self.receive(call, everyone)?;
            moved |= self.take(call);
            if self.sending(call).next().is_none() && self.slots.iter().all(|slot| *slot == Slot::Done) {
                return Ok(());
            }
            if moved {
                spinner.reset();
                continue;
            }
            self.look_for_lost(call)?;
            if self.idle(call, &mut spinner)? == Waited::Look {
                for line in self.lines.iter_mut().flatten() {
                    line.notice_end();
                }
            }
        }
    }

    /// The sends that are not over.
    fn sending<'a>(&'a self, call: &'a Call<'_, '_>) -> impl Iterator<Item = &'a Outgoing<'a>> {
        self.sent
            .iter()
            .zip(call.sends)
            .filter(|(at, send)| **at < HEADER + send.message.len())
            .map(|(_, send)| send)
    }

    fn send(&mut self, call: &mut Call<'_, '_>) -> Result<bool, CommError> {
        let mut moved = false;
        for (number, send) in call.sends.iter().enumerate() {
            let frame = HEADER + send.message.len();
            if self.sent[number] == frame {
                continue;
            }
            if send.to == self.rank {
                self.send_to_oneself(send, call.receives, &mut call.error);
                (self.sent[number], moved) = (frame, true);
                continue;
            }
            let Some(line) = self.lines[send.to.0 as usize].as_mut() else {
                unreachable!("every other rank has a line")
            };
            let before = self.sent[number];
            line.send(number, send, &mut self.sent[number])
                .map_err(|failure| fail(send.to, failure, self.limit))?;
            moved |= self.sent[number] > before;
        }
        Ok(moved)
    }

    fn send_to_oneself(
        &mut self,
        send: &Outgoing<'_>,
        receives: &mut [Incoming<'_>],
        error: &mut Option<CommError>,
    ) {
        let envelope = envelope(self.rank, send.tag);
        let message = self.store.begin(self.rank, send.tag, send.message.len());
        self.store.bytes_mut(message).copy_from_slice(send.message);
        self.store.complete(message);
        if let Some(number) = self.matcher.arrive(self.rank.0, envelope, message as u64) {
            self.slots[number as usize] = Slot::Done;
            deliver(&mut self.store, message, &mut receives[number as usize], error);
        }
    }

    fn receive(&mut self, call: &mut Call<'_, '_>, everyone: bool) -> Result<bool, CommError> {
        let mut moved = false;
        for number in 0..self.lines.len() {
            let peer = Rank(number as u32);
            let Some(line) = self.lines[number].as_mut() else { continue };
            if !everyone && !line.is_busy() && !wanted(&self.slots, call.receives, peer) {
                continue;
            }
            let mut landing = Landing {
                rank: self.rank,
                peer,
                matcher: &mut self.matcher,
                store: &mut self.store,
                slots: &mut self.slots,
                receives: call.receives,
                error: &mut call.error,
            };
            moved |= line.receive(&mut landing).map_err(|failure| fail(peer, failure, self.limit))?;
        }
        Ok(moved)
    }

    /// Takes messages that have become complete in the store.
    fn take(&mut self, call: &mut Call<'_, '_>) -> bool {
        let mut moved = false;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Slot::Taking(message) = *slot
                && self.store.is_complete(message)
            {
                deliver(&mut self.store, message, &mut call.receives[number], &mut call.error);
                (*slot, moved) = (Slot::Done, true);
            }
        }
        moved
    }

    /// Ends a call that waits for ranks that have gone.
    fn look_for_lost(&self, call: &Call<'_, '_>) -> Result<(), CommError> {
        let gone = |rank: Rank| self.lines[rank.0 as usize].as_ref().is_some_and(Line::has_ended);
        for send in self.sending(call) {
            if gone(send.to) {
                return Err(CommError::PeerLost { rank: send.to });
            }
        }
        for (slot, receive) in self.slots.iter().zip(call.receives.iter()) {
            let source = match *slot {
                Slot::Done => continue,
                Slot::Taking(message) => Source::Rank(self.store.source(message)),
                Slot::Arriving(rank) => Source::Rank(rank),
                Slot::Waiting(_) => receive.from,
            };
            match source {
                Source::Rank(rank) if gone(rank) => return Err(CommError::PeerLost { rank }),
                Source::Any if self.world_size() > 1 => {
                    let mut others = (0..self.world_size()).map(Rank).filter(|&rank| rank != self.rank);
                    if others.all(gone) {
                        let first = Rank(u32::from(self.rank.0 == 0));
                        return Err(CommError::PeerLost { rank: first });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn idle(&self, call: &Call<'_, '_>, spinner: &mut Spinner) -> Result<Waited, CommError> {
        let failed = |failure| fail(self.rank, failure, self.limit);
        if self.wait != Wait::Block {
            return pause(self.wait, &mut [], spinner).map_err(failed);
        }
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.lines.len());
        for (number, line) in self.lines.iter().enumerate() {
            if let Some(line) = line
                && !line.has_ended()
            {
                let to_send = self.sending(call).any(|send| send.to.0 as usize == number);
                fds.push(PollFd::new(line.stream(), events(to_send)));
            }
        }
        pause(self.wait, &mut fds, spinner).map_err(failed)
    }
}

/// Whether a receive under way may be answered by `peer`.
fn wanted(slots: &[Slot], receives: &[Incoming<'_>], peer: Rank) -> bool {
    slots.iter().zip(receives).any(|(slot, receive)| {
        matches!(slot, Slot::Waiting(_))
            && (receive.from == Source::Any || receive.from == Source::Rank(peer))
    })
}

const fn envelope(source: Rank, tag: Tag) -> Envelope {
    if tag.0 == Tag::CONTROL.0 {
        Envelope { context: CONTROL_CONTEXT, source: source.0, tag: 0 }
    } else {
        Envelope { context: CONTEXT, source: source.0, tag: tag.0 }
    }
}

/// Where the frames of one line go.
struct Landing<'a, 'b> {
    rank: Rank,
    peer: Rank,
    matcher: &'a mut Matcher,
    store: &'a mut Store,
    slots: &'a mut [Slot],
    receives: &'a mut [Incoming<'b>],
    error: &'a mut Option<CommError>,
}

impl Sink for Landing<'_, '_> {
    fn begin(&mut self, tag: Tag, length: usize) -> Place {
        let envelope = envelope(self.peer, tag);
        let number = self.store.next_number();
        if let Some(receive) = self.matcher.arrive(self.rank.0, envelope, number as u64) {
            self.slots[receive as usize] = Slot::Arriving(self.peer);
            return Place::Receive(receive as usize);
        }
        Place::Store(self.store.begin(self.peer, tag, length))
    }

    fn room(&mut self, place: Place, at: usize) -> &mut [u8] {
        let whole = match place {
            Place::Receive(number) => &mut *self.receives[number].buffer,
            Place::Store(number) => self.store.bytes_mut(number),
            Place::Nowhere => &mut [],
        };
        whole.get_mut(at..).unwrap_or_default()
    }

    fn end(&mut self, place: Place, tag: Tag, length: usize) {
        match place {
            Place::Receive(number) => {
                self.slots[number] = Slot::Done;
                finish(&mut self.receives[number], self.peer, tag, length, self.error);
            }
            Place::Store(number) => self.store.complete(number),
            Place::Nowhere => {}
        }
    }
}

/// Hands over a message that is complete in the store.
fn deliver(store: &mut Store, message: usize, receive: &mut Incoming<'_>, error: &mut Option<CommError>) {
    let (source, tag) = (store.source(message), store.tag(message));
    let bytes = store.bytes(message);
    let count = bytes.len().min(receive.buffer.len());
    receive.buffer[..count].copy_from_slice(&bytes[..count]);
    finish(receive, source, tag, bytes.len(), error);
    store.forget(message);
}

fn finish(receive: &mut Incoming<'_>, source: Rank, tag: Tag, length: usize, error: &mut Option<CommError>) {
    let (message, buffer) = (Bytes::new(length as u64), Bytes::new(receive.buffer.len() as u64));
    if message > buffer {
        error.get_or_insert(CommError::Truncated { message, buffer });
    }
    receive.status = Some(Status { source, tag, bytes: message.min(buffer) });
}

impl<S: Stream> Comm for Mesh<S> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.world_size()
    }

    #[inline]
    fn now(&self) -> Span {
        self.clock.now()
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.run(&[Outgoing { to, tag, message }], &mut [])
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let mut receives = [Incoming { from, tag, buffer, status: None }];
        self.run(&[], &mut receives)?;
        let [receive] = receives;
        Ok(receive.status.expect("a receive that is over has a status"))
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        self.run(sends, receives)
    }

    async fn compute<T>(&mut self, _work: Work, body: impl FnOnce() -> T) -> T {
        body()
    }
}

#[cold]
fn fail(rank: Rank, failure: Failure, limit: Duration) -> CommError {
    match failure {
        Failure::PeerGone => CommError::PeerLost { rank },
        Failure::Limit => CommError::TimedOut {
            limit: Span::from_ps(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000)),
        },
        Failure::Refused(reason) => CommError::Transport(reason),
    }
}
