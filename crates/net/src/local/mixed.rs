//! Several programs at once, on the same hosts and lines, each with its own ranks and stack.
//!
//! A shipped program runs to its end. Two more go on until all of those have ended: in `calls` every rank but the
//! first sends requests to it, waits for each reply, and pauses for a random time; in `ttcp` every rank but the
//! first sends it messages without end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;

use serde_json::Value;
use wiretwin_engine::{Executor, Stream};
use wiretwin_plan::{PlanError, read};
use wiretwin_prog::{Comm, CommError, Outcome, ProgramError, Rank, Reference, Source, Tag, TagMatch};
use wiretwin_units::{Bytes, Span};

use crate::comm::{Place, Shared, SimComm};
use crate::json::At;
use crate::lan::stack::{Message, Stack};
use crate::lan::{Beside, Config, Lan, Prices};
use crate::model::Model;
use crate::ranks::{LocalRanks, Ranks};
use crate::run::{self, RunError, RunOptions};
use crate::world::World;

/// What the ranks of a program do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A shipped program.
    Named(RunOptions),
    /// Calls of the first rank by all others.
    Calls {
        /// Of a request.
        bytes: Bytes,
        /// Of its reply.
        reply: Bytes,
        /// After it; the mean of an exponential distribution.
        pause: Span,
    },
    /// Messages of this length to the first rank from all others.
    Ttcp {
        /// Of a message.
        bytes: Bytes,
    },
}

/// A program among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What it does.
    pub role: Role,
    /// Its stack, where the network's hosts are in every detail; elsewhere all have the layer of the model.
    pub stack: Option<Stack>,
    /// By host of such a network, what the library of the stack charges; none for what that of the main one does.
    pub prices: Vec<Prices>,
    /// By rank: on a network in every detail its host, elsewhere its number in the model.
    pub places: Vec<u32>,
}

/// What a caller or a sender has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of a caller, from request to reply; the first left out, for it makes the connection.
    pub responses: Vec<Span>,
    /// Bytes that the first rank has got of it.
    pub received: u64,
}

/// A program that has run among others.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// By rank, of a shipped program.
    pub outcomes: Vec<Outcome>,
    /// By rank but the first, of one that goes on.
    pub seen: Vec<Seen>,
    /// By rank, the number of its process among the [`Ranks`].
    pub processes: Vec<u32>,
}

const MOST_BYTES: u64 = 1 << 24;
const MOST_PLACES: u64 = 1 << 20;

impl Job {
    /// Reads programs from a list of objects: `name`, `parameters`, `places`, and `stack` where there is one, with
    /// `hosts` as it has them.
    pub fn list(text: &str) -> Result<Vec<Self>, PlanError> {
        read::from_json(text)
            .and_then(|value| Self::read(&At::top(&value)))
            .map_err(|error| error.under("programs"))
    }

    fn read(top: &At<'_>) -> Result<Vec<Self>, PlanError> {
        let mut found = Vec::new();
        for at in top.list("programs")? {
            let fields = at.object("name stack hosts places parameters")?;
            let (name, given) = (fields.get("name")?, fields.get("parameters")?);
            let role = match name.value.as_str() {
                Some("calls") => {
                    let of = given.object("bytes reply pause_ps")?;
                    let bytes = |key| Ok::<_, PlanError>(Bytes::new(of.get(key)?.integer(1, MOST_BYTES)?));
                    let pause = Span::from_ps(of.get("pause_ps")?.integer(0, 60_000_000_000_000)?);
                    Role::Calls { bytes: bytes("bytes")?, reply: bytes("reply")?, pause }
                }
                Some("ttcp") => {
                    let bytes = given.object("bytes")?.get("bytes")?.integer(1, MOST_BYTES)?;
                    Role::Ttcp { bytes: Bytes::new(bytes) }
                }
                _ => {
                    let name = name.value.as_str().unwrap_or_default();
                    let named = RunOptions::from_json(name, &given.value.to_string());
                    Role::Named(named.map_err(|error| error.under(&at.key))?)
                }
            };
            let stack = fields.optional("stack").map(|at| at.text()?.parse());
            let stack = stack.transpose().map_err(|error: PlanError| error.under(&fields.key))?;
            let prices = fields.optional("hosts").map(|at| Beside::read_prices(&at)).transpose()?;
            let at = fields.get("places")?;
            let mut places: Vec<u32> = Vec::new();
            for place in at.list("numbers")? {
                let number = place.integer(0, MOST_PLACES)? as u32;
                if places.contains(&number) {
                    return Err(place.refuse("each once"));
                }
                places.push(number);
            }
            if places.len() < if matches!(role, Role::Named(_)) { 1 } else { 2 } {
                return Err(at.refuse("a place for each rank; two or more of calls and ttcp"));
            }
            found.push(Self { role, stack, prices: prices.unwrap_or_default(), places });
        }
        Ok(found)
    }
}

/// Runs programs at once on a model, as [`Ranks::from_json`] reads it, until those that end have ended.
///
/// On a network in every detail the model's stack is the main one, whose prices the hosts have.
///
/// # Errors
/// [`RunError`]: a program, its stack or its places cannot be, a program fails, or ranks wait for ever.
pub fn run_together(model: &str, jobs: &[Job], seed: u64) -> Result<(Ranks, Vec<Done>), RunError> {
    if !jobs.iter().any(|job| matches!(job.role, Role::Named(_))) {
        return Err(refused("", "calls and ttcp alone", "a program among them that comes to an end"));
    }
    let value: Value = read::from_json(model).map_err(|error| error.under("model"))?;
    let mut patience = PATIENCE;
    loop {
        let (ranks, firsts) = match value.get("local") {
            Some(local) => on_hosts(&local.to_string(), jobs, seed)?,
            None => {
                let size = jobs.iter().flat_map(|job| &job.places).max().map_or(0, |most| most + 1);
                apart("a rank of the model", jobs.iter())?;
                let model = Model::from_json(model, size).map_err(|error| error.under("model"))?;
                (Ranks::Costs(World::new(model, seed, false)), vec![0; jobs.len()])
            }
        };
        let shared = Shared::new(ranks, BTreeMap::new(), None);
        if let Some(done) = run(&shared, jobs, &firsts, seed, patience)? {
            return Ok((run::world_of(shared), done));
        }
        patience *= 16;
    }
}

/// Steps of the world without one of a program that ends, after which the others are stopped to see whether it ever
/// goes on. Where it does, all is run again with more patience: what is returned was never disturbed.
const PATIENCE: u64 = 1 << 17;

fn refused(key: &str, value: impl ToString, allowed: &str) -> RunError {
    PlanError::new(key, value, allowed).under("programs").into()
}

/// Rejects places that two programs have.
fn apart<'a>(what: &str, jobs: impl Iterator<Item = &'a Job>) -> Result<(), RunError> {
    let mut taken = std::collections::BTreeSet::new();
    for place in jobs.flat_map(|job| &job.places) {
        if !taken.insert(place) {
            return Err(refused("places", place, &format!("{what} to one program alone")));
        }
    }
    Ok(())
}

/// Makes the network with a set of processes for each stack, or several where programs of one stack share a host;
/// and says of each program where its set begins.
fn on_hosts(config: &str, jobs: &[Job], seed: u64) -> Result<(Ranks, Vec<u32>), RunError> {
    let mut config = Config::from_json(config).map_err(|error| error.under("model.local"))?;
    let size = config.hosts.len() as u32;
    let mut sets: Vec<(Stack, Vec<&Job>)> = vec![(config.stack, Vec::new())];
    let mut set_of = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        if let Some(host) = job.places.iter().find(|place| **place >= size) {
            let key = format!("[{number}].places");
            return Err(refused(&key, host, &format!("hosts 0 to {}", size - 1)));
        }
        let stack = job.stack.unwrap_or(config.stack);
        let free = |jobs: &[&Job]| !jobs.iter().flat_map(|one| &one.places).any(|at| job.places.contains(at));
        let set = sets.iter().position(|(one, jobs)| *one == stack && free(jobs));
        let set = set.unwrap_or_else(|| {
            sets.push((stack, Vec::new()));
            sets.len() - 1
        });
        sets[set].1.push(job);
        set_of.push(set);
    }
    let others = sets.iter().skip(1);
    let others = others.map(|(stack, jobs)| Beside { stack: *stack, prices: jobs[0].prices.clone() });
    beside(&mut config, others.collect())?;
    let lan = Lan::new(config, seed, false);
    let firsts = lan.process_sets();
    Ok((
        Ranks::Local(Box::new(LocalRanks::new(lan, false))),
        set_of.into_iter().map(|set| firsts[set]).collect(),
    ))
}

/// Puts ranks of other stacks beside those of a network's own.
fn beside(config: &mut Config, others: Vec<Beside>) -> Result<(), RunError> {
    let refuse = |stack: Stack, allowed: &str| Err(refused("stack", stack, allowed));
    let main = config.stack;
    let mut all = std::iter::once(main).chain(others.iter().map(|one| one.stack));
    if let Some(stack) = all.find(|stack| stack.message.has_circuits() && !others.is_empty()) {
        return refuse(
            stack,
            "stacks over IP where there are several: a circuit between two hosts carries one",
        );
    }
    if !others.is_empty() && (!main.message.is_library() || main.message.is_over_vis()) {
        return refuse(main, "a message layer over sockets, for there are others");
    }
    for (at, Beside { stack: one, .. }) in others.iter().enumerate() {
        let is_over_sockets =
            one.message.is_library() && !one.message.is_over_vis() && one.message != Message::PvmMapped;
        if one.lower != main.lower || !is_over_sockets {
            return refuse(*one, "a message layer over sockets of the same network, but of the first");
        }
        let has_ports = matches!(one.message, Message::Rpc | Message::PvmNormal);
        if has_ports && (*one == main || others[..at].iter().any(|other| other.stack == *one)) {
            return refuse(*one, "on hosts that no other program of that stack has: its ports are fixed");
        }
    }
    config.beside = others;
    Ok(())
}

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Results = Rc<RefCell<Vec<Option<Result<Outcome, ProgramError>>>>>;
type SharedSeen = Rc<RefCell<Seen>>;

/// Runs programs until those that end have ended; `None` where patience was too short to say whether they ever do.
fn run(
    shared: &Rc<Shared>,
    jobs: &[Job],
    firsts: &[u32],
    seed: u64,
    patience: u64,
) -> Result<Option<Vec<Done>>, RunError> {
    let left: Rc<Cell<usize>> = Rc::default();
    let (mut ending, mut asking, mut serving): (Vec<(u32, Task)>, Vec<_>, Vec<_>) = Default::default();
    let mut all: Vec<(Vec<u32>, Results, Vec<SharedSeen>)> = Vec::new();
    for (job, &first) in jobs.iter().zip(firsts) {
        let results: Results = Rc::default();
        let mut seen: Vec<SharedSeen> = Vec::new();
        let costs = match &job.role {
            Role::Named(options) => options.costs.clone(),
            Role::Calls { .. } | Role::Ttcp { .. } => BTreeMap::new(),
        };
        let place = Rc::new(Place::new(first, job.places.clone(), costs));
        let processes = job.places.iter().map(|at| first + at).collect::<Vec<_>>();
        for (rank, &process) in (0..).zip(&processes) {
            let comm = SimComm::placed(rank, &place, Rc::clone(shared));
            if let Role::Named(options) = &job.role {
                let (program, reference) = (options.program, Reference::default());
                let (results, left) = (Rc::clone(&results), Rc::clone(&left));
                results.borrow_mut().push(None);
                left.set(left.get() + 1);
                let body = async move |comm: &mut SimComm| program.run(comm, &reference).await;
                let task = async move {
                    run::of_rank(rank, comm, Rc::clone(&results), body).await;
                    let failed = matches!(results.borrow()[rank as usize], Some(Err(_)));
                    left.set(if failed { 0 } else { left.get().saturating_sub(1) });
                };
                ending.push((process, Box::pin(task)));
            } else if rank > 0 {
                let number = asking.len();
                let stream = Stream::derive(seed, &format!("mixed/client {number}"));
                let mine: SharedSeen = Rc::default();
                seen.push(Rc::clone(&mine));
                let task: Task = Box::pin(ask(comm, job.role.clone(), stream, mine));
                asking.push((process, task));
            } else {
                serving.push((process, comm, job.role.clone(), all.len()));
            }
        }
        all.push((processes, results, seen));
    }
    let serving = serving.into_iter().map(|(process, comm, role, number)| {
        let task: Task = Box::pin(serve(comm, role, all[number].2.clone()));
        (process, task)
    });
    let is_told = until_ended(shared, ending, asking.into_iter().chain(serving), &left, patience);
    if !is_told {
        return Ok(None);
    }
    let mut done = Vec::new();
    for (processes, results, seen) in all {
        let seen = seen.iter().map(|seen| seen.borrow().clone()).collect();
        let outcomes =
            run::outcomes(shared, results.take()).map_err(|error| of_program(error, &processes))?;
        done.push(Done { outcomes, seen, processes });
    }
    Ok(Some(done))
}

/// Lets tasks go on, each of a process, until none is `left` of those that end, or these wait for ever: whether that
/// was found out. Where none of these goes on for so many steps, the `endless` ones are stopped: what is under way
/// comes to an end then, and resumes one of them or none.
fn until_ended(
    shared: &Shared,
    ending: Vec<(u32, Task)>,
    endless: impl Iterator<Item = (u32, Task)>,
    left: &Cell<usize>,
    patience: u64,
) -> bool {
    let mut executor = Executor::with_capacity(ending.len());
    let mut tasks = BTreeMap::new();
    let of_ending = ending.into_iter().map(|(process, task)| (process, task, true));
    for (process, task, ends) in of_ending.chain(endless.map(|(process, task)| (process, task, false))) {
        tasks.insert(process, (executor.spawn(task), ends));
    }
    let (quiet, is_stopped, goes_on) = (Cell::new(0), Cell::new(false), Cell::new(false));
    let task_of = |process| {
        let &(task, ends) = tasks.get(&process)?;
        if ends {
            quiet.set(0);
            goes_on.set(is_stopped.get());
        }
        (ends || !is_stopped.get()).then_some(task)
    };
    let is_over = || {
        quiet.set(quiet.get() + 1);
        is_stopped.set(is_stopped.get() || quiet.get() > patience);
        left.get() == 0 || goes_on.get()
    };
    run::proceed(shared, &mut executor, task_of, is_over);
    !goes_on.get()
}

/// Says of a program's own ranks which of them wait for ever.
fn of_program(error: RunError, processes: &[u32]) -> RunError {
    let RunError::Deadlock { mut blocked, losses } = error else { return error };
    blocked.retain_mut(|one| {
        let rank = processes.iter().position(|process| *process == one.rank);
        one.rank = rank.map_or(one.rank, |rank| rank as u32);
        rank.is_some()
    });
    RunError::Deadlock { blocked, losses }
}

/// What a caller or a sender does, for ever.
async fn ask(mut comm: SimComm, role: Role, stream: Stream, seen: SharedSeen) {
    // What ends it is the end of its connection, which its figures show.
    let _ = asking(&mut comm, &role, stream, &seen).await;
}

async fn asking(
    comm: &mut SimComm,
    role: &Role,
    mut stream: Stream,
    seen: &SharedSeen,
) -> Result<(), CommError> {
    let request = vec![0; bytes_of(role).get() as usize];
    let Role::Calls { reply, pause, .. } = *role else {
        loop {
            comm.stream(Rank(0), Tag(0), &request).await?;
        }
    };
    let mut answer = vec![0; reply.get() as usize];
    let mut first = true;
    loop {
        let begun = comm.now();
        comm.send(Rank(0), Tag(0), &request).await?;
        comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut answer).await?;
        if !core::mem::take(&mut first) {
            seen.borrow_mut().responses.push(comm.now() - begun);
        }
        comm.pause(stream.exponential(pause)).await?;
    }
}

/// What the first rank does, for ever.
async fn serve(mut comm: SimComm, role: Role, seen: Vec<SharedSeen>) {
    let mut buffer = vec![0; bytes_of(&role).get() as usize];
    while let Ok(status) = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await {
        let Some(seen) = (status.source.0 as usize).checked_sub(1).and_then(|at| seen.get(at)) else {
            continue;
        };
        seen.borrow_mut().received += status.bytes.get();
        if let Role::Calls { reply, .. } = role
            && comm.send(status.source, status.tag, &vec![0; reply.get() as usize]).await.is_err()
        {
            return;
        }
    }
}

/// Of a request or message.
fn bytes_of(role: &Role) -> Bytes {
    match role {
        Role::Calls { bytes, .. } | Role::Ttcp { bytes } => *bytes,
        Role::Named(_) => unreachable!("it neither calls nor streams"),
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_prog::Work;

    use super::*;

    /// A stream from rank 1 to rank 0, beside rank 2, which works for `work` and then takes a message of rank 3, sent
    /// if `is_sent`: what came of them within so much patience, and for what rank 2 waits at the end.
    fn beside_a_stream(work: u64, is_sent: bool, patience: u64) -> (bool, usize, Vec<String>) {
        let model = crate::run::tests::model(4, 4);
        let world = World::new(Model::from_json(&model, 4).expect("a model"), 1, false);
        let shared = Shared::new(Ranks::Costs(world), BTreeMap::from([("step".into(), 1000)]), None);
        let comm = |rank| SimComm::new(rank, Rc::clone(&shared));
        let left = Rc::new(Cell::new(2_usize));
        let (counted, of_sender) = (Rc::clone(&left), Rc::clone(&left));
        let (mut taker, mut sender) = (comm(2), comm(3));
        let taking: Task = Box::pin(async move {
            let costs = Work { kind: "step", count: work };
            taker.compute(costs, || ()).await;
            taker.recv(Source::Rank(Rank(3)), TagMatch::Any, &mut [0; 8]).await.expect("a message");
            counted.set(counted.get() - 1);
        });
        let sending: Task = Box::pin(async move {
            if is_sent {
                sender.send(Rank(2), Tag(0), &[1; 8]).await.expect("it is sent");
            }
            of_sender.set(of_sender.get() - 1);
            assert!(sender.finish());
        });
        let (role, seen) = (Role::Ttcp { bytes: Bytes::new(8) }, SharedSeen::default());
        let stream: Task = Box::pin(ask(comm(1), role.clone(), Stream::derive(1, "test"), Rc::clone(&seen)));
        let server: Task = Box::pin(serve(comm(0), role, vec![seen]));
        let endless = [(1, stream), (0, server)].into_iter();
        let is_told = until_ended(&shared, vec![(2, taking), (3, sending)], endless, &left, patience);
        let blocked = shared.world.borrow().blocked();
        let waits = blocked.iter().filter(|one| one.rank == 2).map(|one| one.operation.clone());
        (is_told, left.get(), waits.collect())
    }

    #[test]
    fn ranks_that_wait_for_ever_are_found_beside_a_stream_that_never_ends() {
        let (is_told, left, waits) = beside_a_stream(0, false, 1000);
        assert_eq!((is_told, left), (true, 1));
        assert!(waits[0].contains("rank 3"), "{waits:?}");
        assert_eq!(beside_a_stream(0, true, 1000), (true, 0, Vec::new()));
        let (is_told, ..) = beside_a_stream(1_000_000, true, 1000);
        assert!(!is_told, "rank 2 works for longer than patience lasts");
        assert_eq!(beside_a_stream(1000, true, 1_000_000), (true, 0, Vec::new()));
    }
}
