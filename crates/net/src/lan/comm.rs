//! The [`Comm`] of a local network, with real octets, and the shipped programs on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use wiretwin_engine::Executor;
use wiretwin_msg::library::{Failure, NO_MULTICAST, Wish};
use wiretwin_prog::{
    Comm, CommError, Incoming, Outcome, Outgoing, ProgramError, Rank, Source, Status, Tag, TagMatch, Work,
    to_each,
};
use wiretwin_units::{Bytes, Span};

use super::{Completion, Lan, LanError, Op, RequestId};

struct Shared {
    lan: RefCell<Lan>,
    /// Octets on their way, by the send that made the message; and to how many.
    payloads: RefCell<BTreeMap<RequestId, (Vec<u8>, usize)>>,
    resumed: RefCell<Vec<bool>>,
    /// What a unit of work costs, picoseconds, by kind.
    costs: BTreeMap<String, u64>,
}

/// One rank of a local network.
pub struct LanComm {
    rank: u32,
    size: u32,
    /// The number of its process.
    process: u32,
    shared: Rc<Shared>,
}

/// To how many a message goes, while nobody knows.
const UNKNOWN: usize = 1 << 31;

fn refused(error: LanError) -> CommError {
    match error {
        LanError::NoSuchRank { rank, size } => CommError::NoSuchRank { rank: Rank(rank), size },
        LanError::Empty => CommError::Unsupported("a message of 0 bytes"),
        LanError::ToItself { .. } => CommError::Unsupported("a message to the rank itself"),
        LanError::Unsupported(what) => CommError::Unsupported(what),
        other => CommError::Transport(other.to_string()),
    }
}

/// What the failure of a request is to a program.
fn failed(failure: Option<Failure>) -> Result<(), CommError> {
    match failure {
        None => Ok(()),
        Some(Failure::PeerLost { rank }) => Err(CommError::PeerLost { rank: Rank(rank) }),
        Some(Failure::TimedOut { limit }) => Err(CommError::TimedOut { limit }),
        Some(Failure::Refused(reason)) => Err(CommError::Transport(reason.into())),
    }
}

impl LanComm {
    fn post(&self, op: Op<'_>) -> Result<RequestId, CommError> {
        let posted = self.shared.lan.borrow_mut().post(self.process, op).map_err(refused)?;
        Ok(posted.unwrap_or(RequestId(0)))
    }

    fn start_send(&self, to: Rank, tag: Tag, message: &[u8]) -> Result<RequestId, CommError> {
        let request = self.post(Op::send(to.0, tag.0, Bytes::new(message.len() as u64)))?;
        self.shared.payloads.borrow_mut().insert(request, (message.to_vec(), 1));
        Ok(request)
    }

    fn start_recv(&self, from: Source, tag: TagMatch, capacity: usize) -> Result<RequestId, CommError> {
        let from = match from {
            Source::Rank(rank) => Some(rank.0),
            Source::Any => None,
        };
        let tag = match tag {
            TagMatch::Tag(tag) => Some(tag.0),
            TagMatch::Any => None,
        };
        self.post(Op::recv(from, tag, Bytes::new(capacity as u64)))
    }

    /// Whether a request of the last wait has come to something.
    fn succeeded(&self, completion: &Completion) -> Result<(), CommError> {
        if completion.failed {
            failed(self.shared.lan.borrow().failure(self.process, completion.request))
        } else {
            Ok(())
        }
    }

    async fn wait(&self, requests: &[RequestId]) -> Result<Vec<Completion>, CommError> {
        self.post(Op::wait(requests))?;
        self.resumed().await;
        Ok(self.shared.lan.borrow().completions(self.process).to_vec())
    }

    fn deliver(&self, completion: &Completion, buffer: &mut [u8]) -> Result<Status, CommError> {
        self.succeeded(completion)?;
        let message = self.take_payload(completion.message);
        let kept = buffer.len().min(message.len());
        buffer[..kept].copy_from_slice(&message[..kept]);
        if completion.truncated {
            let buffer = Bytes::new(buffer.len() as u64);
            return Err(CommError::Truncated { message: completion.bytes, buffer });
        }
        Ok(Status { source: Rank(completion.source), tag: Tag(completion.tag), bytes: completion.bytes })
    }

    /// The octets of a message, which are kept while it is on its way to others.
    fn take_payload(&self, message: RequestId) -> Vec<u8> {
        let mut payloads = self.shared.payloads.borrow_mut();
        match payloads.get_mut(&message) {
            Some((octets, takers)) if *takers > 1 => {
                *takers -= 1;
                octets.clone()
            }
            _ => payloads.remove(&message).map(|(octets, _)| octets).unwrap_or_default(),
        }
    }

    /// Sleeps for so long.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where ranks have no message layer.
    pub async fn pause(&mut self, span: Span) -> Result<(), CommError> {
        self.post(Op::Pause(span))?;
        self.resumed().await;
        Ok(())
    }

    /// Asks for what is no message: the number that it came to.
    async fn wish(&self, wish: &Wish) -> Result<u32, CommError> {
        let request = self.post(Op::Wish(wish))?;
        let completion = self.wait(&[request]).await?[0];
        self.succeeded(&completion).map(|()| completion.number)
    }

    /// Starts processes of a program (`pvm_spawn`): how many were started.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where the interface starts none; [`CommError::Transport`] where none was
    /// started, with the interface's own error.
    pub async fn spawn(&mut self, program: &str, count: u32) -> Result<u32, CommError> {
        self.wish(&Wish::Spawn { program: program.into(), count }).await
    }

    /// Clears the circuit to a rank (`atm_close`), on which all has come that was sent; the next message to it
    /// asks for another. Whether there was one.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where circuits are there for good; [`CommError::Transport`] while something
    /// is on its way.
    pub async fn hang_up(&mut self, rank: Rank) -> Result<bool, CommError> {
        self.check(rank)?;
        self.wish(&Wish::HangUp { rank: rank.0 }).await.map(|cleared| cleared > 0)
    }

    /// Lets messages say from now on that they are of this user (AUTH_SYS).
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where messages say nothing of the kind.
    pub async fn identify(&mut self, user: u32) -> Result<(), CommError> {
        self.wish(&Wish::Identify { user }).await.map(drop)
    }

    /// The user that the last message says it is of.
    ///
    /// # Errors
    /// As [`LanComm::identify`]; [`CommError::Transport`] where it did not say.
    pub async fn caller(&mut self) -> Result<u32, CommError> {
        self.wish(&Wish::Caller).await
    }

    /// Until the network says that the rank goes on.
    async fn resumed(&self) {
        poll_fn(|_| {
            let resumed = &mut self.shared.resumed.borrow_mut()[self.process as usize];
            if core::mem::take(resumed) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Refuses before anything of the call has happened.
    fn check(&self, rank: Rank) -> Result<(), CommError> {
        if rank.0 < self.size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size: self.size }) }
    }
}

impl Comm for LanComm {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn now(&self) -> Span {
        self.shared.lan.borrow().now().since_start()
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let request = self.start_send(to, tag, message)?;
        self.wait(&[request]).await?.iter().try_for_each(|one| self.succeeded(one))
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let request = self.start_recv(from, tag, buffer.len())?;
        let completions = self.wait(&[request]).await?;
        self.deliver(&completions[0], buffer)
    }

    async fn mcast(&mut self, to: &[Rank], tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let to = self.others(to)?;
        if to.is_empty() {
            return Ok(());
        }
        let ranks: Vec<u32> = to.iter().map(|to| to.0).collect();
        let bytes = Bytes::new(message.len() as u64);
        let posted =
            self.shared.lan.borrow_mut().post(self.process, Op::Multicast { to: &ranks, tag: tag.0, bytes });
        let request = match posted {
            Ok(request) => request.unwrap_or(RequestId(0)),
            Err(LanError::Unsupported(NO_MULTICAST)) => {
                return self.exchange(&to_each(&to, tag, message), &mut []).await;
            }
            Err(error) => return Err(refused(error)),
        };
        self.shared.payloads.borrow_mut().insert(request, (message.to_vec(), ranks.len()));
        self.wait(&[request]).await?.iter().try_for_each(|one| self.succeeded(one))
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        sends.iter().try_for_each(|send| self.check(send.to))?;
        let mut requests = Vec::with_capacity(sends.len() + receives.len());
        for receive in receives.iter() {
            requests.push(self.start_recv(receive.from, receive.tag, receive.buffer.len())?);
        }
        for send in sends {
            requests.push(self.start_send(send.to, send.tag, send.message)?);
        }
        let completions = self.wait(&requests).await?;
        // A wait returns its requests in their order, the receives first.
        let mut outcome = completions.iter().skip(receives.len()).try_for_each(|one| self.succeeded(one));
        for (receive, completion) in receives.iter_mut().zip(&completions) {
            match self.deliver(completion, receive.buffer) {
                Ok(status) => receive.status = Some(status),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    async fn join_group(&mut self, group: &str) -> Result<u32, CommError> {
        self.wish(&Wish::Join { group: group.into() }).await
    }

    async fn leave_group(&mut self, group: &str) -> Result<(), CommError> {
        self.wish(&Wish::Leave { group: group.into() }).await.map(drop)
    }

    async fn group_size(&mut self, group: &str) -> Result<u32, CommError> {
        self.wish(&Wish::Size { group: group.into() }).await
    }

    async fn group_barrier(&mut self, group: &str, members: u32) -> Result<(), CommError> {
        self.wish(&Wish::Barrier { group: group.into(), members }).await.map(drop)
    }

    async fn group_cast(&mut self, group: &str, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let bytes = Bytes::new(message.len() as u64);
        let request = self.post(Op::Wish(&Wish::Cast { group: group.into(), tag: tag.0, bytes }))?;
        // To how many it goes is known when the group has said who is in it; until then it is kept.
        self.shared.payloads.borrow_mut().insert(request, (message.to_vec(), UNKNOWN));
        let completion = self.wait(&[request]).await?[0];
        let mut payloads = self.shared.payloads.borrow_mut();
        if let Some((_, takers)) = payloads.get_mut(&request) {
            *takers = (*takers + completion.number as usize).saturating_sub(UNKNOWN);
            if *takers == 0 {
                payloads.remove(&request);
            }
        }
        drop(payloads);
        self.succeeded(&completion)
    }

    async fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> T {
        let price = self.shared.costs.get(work.kind).copied().unwrap_or(0);
        let cost = Span::from_ps(price.saturating_mul(work.count));
        // A rank that runs may compute, and wait for nothing but that.
        if self.post(Op::Compute(cost)).is_ok() {
            let _ = self.wait(&[]).await;
        }
        body()
    }
}

/// Why a program did not run to its end on a local network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The program failed on a rank.
    Program {
        /// The rank.
        rank: u32,
        /// Why.
        error: ProgramError,
    },
    /// Ranks wait for what will not come.
    Deadlock {
        /// The ranks.
        ranks: Vec<u32>,
        /// What was lost until then.
        losses: super::Losses,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { rank, error } => write!(f, "rank {rank}: {error}"),
            Self::Deadlock { ranks, losses } => {
                write!(f, "ranks {ranks:?} wait for what will not come; lost: {losses:?}")
            }
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a program on a fresh network, one rank a host; `costs` are picoseconds per unit of work, by kind,
/// where a kind that is not given costs nothing.
///
/// # Errors
/// [`RunError`].
pub fn run<P>(lan: Lan, costs: BTreeMap<String, u64>, program: P) -> Result<(Lan, Vec<Outcome>), RunError>
where
    P: AsyncFn(&mut LanComm) -> Result<Outcome, ProgramError> + Clone + 'static,
{
    run_beside(lan, costs, program, Vec::new())
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What a rank of another program does.
pub(super) type Body = Box<dyn FnOnce(LanComm) -> Task>;

/// The same, beside ranks of other programs: which stack, counted from 0 with the main one, which rank, and
/// what it does. The run is over when all ranks of the main program have ended.
pub(super) fn run_beside<P>(
    lan: Lan,
    costs: BTreeMap<String, u64>,
    program: P,
    beside: Vec<(usize, u32, Body)>,
) -> Result<(Lan, Vec<Outcome>), RunError>
where
    P: AsyncFn(&mut LanComm) -> Result<Outcome, ProgramError> + Clone + 'static,
{
    let (ranks, crews) = (lan.size(), lan.crews());
    let processes = crews.last().copied().unwrap_or(0) + ranks;
    let shared = Rc::new(Shared {
        lan: RefCell::new(lan),
        payloads: RefCell::default(),
        resumed: RefCell::new(vec![false; processes as usize]),
        costs,
    });
    let results = Rc::new(RefCell::new(vec![None; ranks as usize]));
    let accompanied = !beside.is_empty();
    let mut executor = Executor::<Task>::with_capacity(ranks as usize + beside.len());
    let mut tasks = vec![None; processes as usize];
    let comm_of = |rank, process, shared: &Rc<Shared>| LanComm {
        rank,
        process,
        size: ranks,
        shared: Rc::clone(shared),
    };
    for rank in 0..ranks {
        let (mut comm, results, program) =
            (comm_of(rank, rank, &shared), Rc::clone(&results), program.clone());
        tasks[rank as usize] = Some(executor.spawn(Box::pin(async move {
            let result = program(&mut comm).await;
            // A program that has returned does not wait.
            let _ = comm.post(Op::Finish);
            results.borrow_mut()[rank as usize] = Some(result);
        })));
    }
    for (crew, rank, body) in beside {
        let process = crews[crew] + rank;
        tasks[process as usize] = Some(executor.spawn(body(comm_of(rank, process, &shared))));
    }
    loop {
        executor.run_ready();
        if accompanied && results.borrow().iter().all(Option::is_some) {
            break;
        }
        let mut lan = shared.lan.borrow_mut();
        if !lan.step() {
            break;
        }
        for &process in lan.resumed() {
            shared.resumed.borrow_mut()[process as usize] = true;
            if let Some(task) = tasks[process as usize] {
                executor.wake(task);
            }
        }
    }
    drop(executor);
    let shared = Rc::into_inner(shared).expect("the tasks, which held the others, are gone");
    let lan = shared.lan.into_inner();
    let mut outcomes = Vec::new();
    for (rank, result) in results.take().into_iter().enumerate() {
        match result {
            Some(Err(error)) => return Err(RunError::Program { rank: rank as u32, error }),
            Some(Ok(outcome)) => outcomes.push(outcome),
            None => {}
        }
    }
    if outcomes.len() < ranks as usize {
        return Err(RunError::Deadlock { ranks: lan.blocked(), losses: lan.losses() });
    }
    Ok((lan, outcomes))
}

#[cfg(test)]
mod tests {
    use wiretwin_prog::Reference;
    use wiretwin_prog::echo::{EchoParams, echo};
    use wiretwin_prog::jacobi::{JacobiParams, jacobi};
    use wiretwin_prog::ring::{RingParams, ring};

    use super::super::echo::round_trips;
    use super::super::tests::{PLAIN, SERIES_100, Want, lan};
    use super::*;

    #[test]
    fn the_echo_program_takes_as_long_as_the_loop_on_lengths() {
        for bytes in [1, 1000, 10_000] {
            let times = round_trips(&mut lan(&PLAIN, false), Bytes::new(bytes), 5).expect("an echo");
            let params = EchoParams { bytes, rounds: 5 };
            let program = async move |comm: &mut LanComm| echo(comm, &params).await;
            let (_, outcomes) = run(lan(&PLAIN, false), BTreeMap::new(), program).expect("an echo");
            // The loop posts its receive with its send; the program once the send has returned.
            assert_eq!(outcomes[0].elapsed, times.into_iter().sum::<Span>());
            assert!(outcomes.iter().all(|outcome| outcome.verified));
            assert_ne!(outcomes[0].digest, outcomes[1].digest, "the answer is another message");
        }
    }

    #[test]
    fn programs_compute_the_right_result_over_the_switch() {
        let want = Want { hosts: 4, switch: true, ..PLAIN };
        let params = RingParams { elements: 3000, rounds: 2 };
        let program = async move |comm: &mut LanComm| ring(comm, &params, &Reference::default()).await;
        let (net, outcomes) = run(lan(&want, false), BTreeMap::new(), program).expect("a ring");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        assert!(net.deepest_queue() < 256 && net.losses() == super::super::Losses::default());
        let params = JacobiParams { rows: 40, columns: 40, iterations: 5 };
        let costs = BTreeMap::from([("stencil-point".to_string(), 1_000_000)]);
        let want = Want { adapter: SERIES_100, ..want };
        let program = async move |comm: &mut LanComm| jacobi(comm, &params).await;
        let (_, outcomes) = run(lan(&want, false), costs, program).expect("a jacobi");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        assert!(outcomes[0].elapsed > Span::from_us(40 * 40 * 5 / 4), "work is charged");
    }

    #[test]
    fn a_message_of_another_tag_waits_for_its_receive() {
        let program = async |comm: &mut LanComm| {
            let mut buffer = [0; 3];
            if comm.rank() == Rank(0) {
                comm.send(Rank(1), Tag(5), b"one").await?;
                comm.send(Rank(1), Tag(6), b"two").await?;
            } else {
                let status = comm.recv(Source::Any, TagMatch::Tag(Tag(6)), &mut buffer).await?;
                assert_eq!((status.source, &buffer), (Rank(0), b"two"));
                let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                assert_eq!((status.tag, &buffer), (Tag(5), b"one"));
            }
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        run(lan(&PLAIN, false), BTreeMap::new(), program).expect("a run that ends");
    }

    #[test]
    fn a_rank_that_waits_for_nothing_that_was_sent_is_named() {
        let program = async |comm: &mut LanComm| {
            if comm.rank() == Rank(1) {
                comm.recv(Source::Any, TagMatch::Any, &mut [0; 8]).await?;
            }
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        let error = run(lan(&PLAIN, false), BTreeMap::new(), program).err().expect("a deadlock");
        assert!(error.to_string().starts_with("ranks [1] wait for what will not come"), "{error}");
        let empty = async |comm: &mut LanComm| {
            comm.send(Rank(1 - comm.rank().0), Tag(0), &[]).await?;
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        let error = run(lan(&PLAIN, false), BTreeMap::new(), empty).err().expect("a refusal");
        assert_eq!(error.to_string(), "rank 0: this layer cannot do that: a message of 0 bytes");
    }
}
