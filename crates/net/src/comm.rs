//! The simulated [`Comm`]: a rank's view of a [`World`], with real payloads.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::{Bytes, Span};

use crate::world::{Completion, NameId, Op, RequestId, WaitMode, World, WorldError};

/// A change to one byte of one message on its way, to show that receivers use what they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which message: the how-manieth to be delivered to its receiver, from 0.
    pub delivery: u64,
    /// Which byte; nothing happens where the message is shorter.
    pub byte: u64,
    /// What it is changed with, bit by bit.
    pub flip: u8,
}

/// What all ranks of a simulated program share.
pub(crate) struct Shared {
    pub(crate) world: RefCell<World>,
    /// Payloads on their way, by message.
    payloads: RefCell<BTreeMap<RequestId, Vec<u8>>>,
    /// What a resumed rank's wait returned, until it has looked.
    outcomes: RefCell<Vec<Option<Vec<Completion>>>>,
    deliveries: Cell<u64>,
    fault: Option<Fault>,
    /// What a unit of work costs, picoseconds, by kind.
    costs: BTreeMap<String, u64>,
    names: Names,
}

#[derive(Clone, Copy)]
struct Names {
    send: NameId,
    recv: NameId,
    exchange: NameId,
}

impl Shared {
    pub(crate) fn new(mut world: World, costs: BTreeMap<String, u64>, fault: Option<Fault>) -> Rc<Self> {
        let names = Names {
            send: world.name_id("send"),
            recv: world.name_id("recv"),
            exchange: world.name_id("exchange"),
        };
        let ranks = world.size() as usize;
        Rc::new(Self {
            world: RefCell::new(world),
            payloads: RefCell::default(),
            outcomes: RefCell::new(vec![None; ranks]),
            deliveries: Cell::new(0),
            fault,
            costs,
            names,
        })
    }

    /// Leaves a rank what it was resumed with.
    pub(crate) fn resumed(&self, rank: u32, completions: &[Completion]) {
        self.outcomes.borrow_mut()[rank as usize] = Some(completions.to_vec());
    }

    fn deliver(&self, completion: &Completion, buffer: &mut [u8]) -> Result<Status, CommError> {
        let mut message = self.payloads.borrow_mut().remove(&completion.message).unwrap_or_default();
        let number = self.deliveries.get();
        self.deliveries.set(number + 1);
        if completion.truncated {
            let kept = buffer.len().min(message.len());
            buffer[..kept].copy_from_slice(&message[..kept]);
            let (message, buffer) = (Bytes::new(completion.bytes), Bytes::new(buffer.len() as u64));
            return Err(CommError::Truncated { message, buffer });
        }
        if let Some(fault) = self.fault.filter(|fault| fault.delivery == number)
            && let Some(byte) = message.get_mut(fault.byte as usize)
        {
            *byte ^= fault.flip;
        }
        buffer[..message.len()].copy_from_slice(&message);
        Ok(Status {
            source: Rank(completion.source),
            tag: Tag(completion.tag),
            bytes: Bytes::new(completion.bytes),
        })
    }
}

/// One rank of a simulated world.
pub struct SimComm {
    rank: u32,
    size: u32,
    /// Whether operations may have to wait for a core, so that the clock shows them only later.
    shares_cores: bool,
    shared: Rc<Shared>,
}

impl SimComm {
    pub(crate) fn new(rank: u32, shared: Rc<Shared>) -> Self {
        let (size, shares_cores) = {
            let world = shared.world.borrow();
            (world.size(), world.shares_cores(rank))
        };
        Self { rank, size, shares_cores, shared }
    }

    /// Refuses a rank that is not there, before anything of the call has happened.
    fn check(&self, rank: Rank) -> Result<(), CommError> {
        if rank.0 < self.size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size: self.size }) }
    }

    fn check_source(&self, from: Source) -> Result<(), CommError> {
        match from {
            Source::Rank(rank) => self.check(rank),
            Source::Any => Ok(()),
        }
    }

    fn post(&self, op: Op<'_>) -> Result<Option<RequestId>, CommError> {
        self.shared.world.borrow_mut().post(self.rank, op).map_err(refused)
    }

    fn enter(&self, name: NameId) -> Result<(), CommError> {
        self.post(Op::Enter { name, site: -1 }).map(|_| ())
    }

    fn start_send(&self, to: Rank, tag: Tag, message: &[u8]) -> Result<RequestId, CommError> {
        let bytes = message.len() as u64;
        let op = Op::Send { context: 0, to: to.0, tag: tag.0, bytes, mode: Mode::Standard };
        let request = self.post(op)?.unwrap_or(RequestId(0));
        self.shared.payloads.borrow_mut().insert(request, message.to_vec());
        Ok(request)
    }

    fn start_recv(&self, from: Source, tag: TagMatch, capacity: usize) -> Result<RequestId, CommError> {
        let source = match from {
            Source::Rank(rank) => Some(rank.0),
            Source::Any => None,
        };
        let tag = match tag {
            TagMatch::Tag(tag) => Some(tag.0),
            TagMatch::Any => None,
        };
        let pattern = Pattern { context: 0, source, tag };
        Ok(self.post(Op::Recv { pattern, capacity: capacity as u64 })?.unwrap_or(RequestId(0)))
    }

    async fn wait(&self, requests: &[RequestId]) -> Result<Vec<Completion>, CommError> {
        self.post(Op::Wait { requests, mode: WaitMode::All })?;
        Ok(self.resumption().await)
    }

    /// Until the world resumes this rank.
    async fn resumption(&self) -> Vec<Completion> {
        poll_fn(|_| match self.shared.outcomes.borrow_mut()[self.rank as usize].take() {
            Some(completions) => Poll::Ready(completions),
            None => Poll::Pending,
        })
        .await
    }
}

fn refused(error: WorldError) -> CommError {
    match error {
        WorldError::NoSuchPeer { peer, size } => CommError::NoSuchRank { rank: Rank(peer), size },
        other => CommError::Transport(other.to_string()),
    }
}

impl Comm for SimComm {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn now(&self) -> Span {
        // A rank of this world: it has a clock.
        let now = self.shared.world.borrow().rank_now(self.rank).map_or(0, |now| now.as_ps());
        Span::from_ps(now)
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.check(to)?;
        self.enter(self.shared.names.send)?;
        let request = self.start_send(to, tag, message)?;
        self.wait(&[request]).await?;
        self.post(Op::Exit).map(|_| ())
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        self.check_source(from)?;
        self.enter(self.shared.names.recv)?;
        let request = self.start_recv(from, tag, buffer.len())?;
        let completions = self.wait(&[request]).await?;
        self.post(Op::Exit)?;
        self.shared.deliver(&completions[0], buffer)
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        sends.iter().try_for_each(|send| self.check(send.to))?;
        receives.iter().try_for_each(|receive| self.check_source(receive.from))?;
        self.enter(self.shared.names.exchange)?;
        let mut requests = Vec::with_capacity(sends.len() + receives.len());
        for receive in receives.iter() {
            requests.push(self.start_recv(receive.from, receive.tag, receive.buffer.len())?);
        }
        for send in sends {
            requests.push(self.start_send(send.to, send.tag, send.message)?);
        }
        let completions = self.wait(&requests).await?;
        self.post(Op::Exit)?;
        // A wait for all returns its requests in their order, the receives first.
        let mut outcome = Ok(());
        for (receive, completion) in receives.iter_mut().zip(&completions) {
            match self.shared.deliver(completion, receive.buffer) {
                Ok(status) => receive.status = Some(status),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    async fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> T {
        // Prices are checked before a program starts; what has none is free.
        let price = self.shared.costs.get(work.kind).copied();
        let Some(price) = price.filter(|_| work.count > 0) else { return body() };
        let cost = Span::from_ps(price.saturating_mul(work.count));
        let posted = self.post(Op::Compute(cost));
        if self.shares_cores && posted.is_ok() && self.post(Op::Yield).is_ok() {
            self.resumption().await;
        }
        body()
    }
}
