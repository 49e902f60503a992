//! Runs the shipped programs in a simulated world.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use thiserror::Error;
use wiretwin_engine::{Executor, TaskId};
use wiretwin_plan::{PlanError, read};
pub use wiretwin_prog::Program;
use wiretwin_prog::{Comm as _, Outcome, ProgramError, Recorded, Reference, Sent};

use crate::comm::{Fault, Shared, SimComm};
use crate::json::At;
use crate::lan::Losses;
use crate::ranks::{Blocked, Ranks};
use crate::world::World;

/// What a program is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The program.
    pub program: Program,
    /// Picoseconds per unit of work, by kind.
    pub costs: BTreeMap<String, u64>,
    /// A byte to be changed on its way.
    pub fault: Option<Fault>,
}

/// A program that has run.
pub struct Finished {
    /// The ranks as they were at the end: clocks, totals, timeline, digest.
    pub world: Ranks,
    /// By rank.
    pub outcomes: Vec<Outcome>,
}

/// Why a program did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The program, its parameters or the model cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The program failed on a rank.
    #[error("rank {rank}: {error}")]
    Program {
        /// The rank.
        rank: u32,
        /// The error that it failed with.
        error: ProgramError,
    },
    /// Ranks wait for what will never come.
    #[error("deadlock:{}", deadlock(blocked, losses.as_ref()))]
    Deadlock {
        /// Which, and for what.
        blocked: Vec<Blocked>,
        /// What a local network had lost until then.
        losses: Option<Losses>,
    },
}

/// Which ranks wait for what, eight at most, and what was lost.
fn deadlock(blocked: &[Blocked], losses: Option<&Losses>) -> String {
    let each = blocked.iter().take(8);
    let each = each.map(|one| format!(" rank {} in {} waits for {};", one.rank, one.name, one.operation));
    let more = blocked.len().checked_sub(9).map(|more| format!(" and {} more ranks", more + 1));
    let lost = losses.map(|losses| format!(" lost: {losses:?}"));
    each.chain(more).chain(lost).collect()
}

impl RunOptions {
    /// Reads the parameters of a program: its own, `costs_ps` (an object, by kind of work), and
    /// optionally `fault` (`{"delivery", "byte", "flip"}`).
    ///
    /// # Errors
    /// [`PlanError`] for no such program, and for the first key that is wrong.
    pub fn from_json(name: &str, text: &str) -> Result<Self, PlanError> {
        read::from_json(text)
            .and_then(|value| Self::read(name, &At::top(&value)))
            .map_err(|error| error.under("parameters"))
    }

    fn read(name: &str, top: &At<'_>) -> Result<Self, PlanError> {
        let no_program = || PlanError::new("program", name, Program::NAMES.join(", "));
        let parameters = Program::parameters(name).ok_or_else(no_program)?;
        let keys = parameters.iter().map(|one| one.name).chain(["costs_ps", "fault"]).collect::<Vec<_>>();
        let fields = top.object(&keys.join(" "))?;
        let mut values = Vec::with_capacity(parameters.len());
        for one in parameters {
            values.push(match (fields.optional(one.name), one.default) {
                (None, Some(default)) => default,
                _ => fields.get(one.name)?.integer(one.least, one.most)?,
            });
        }
        let program = Program::new(name, &values).ok_or_else(no_program)?;
        let mut costs = BTreeMap::new();
        if let Some(at) = fields.optional("costs_ps") {
            let kinds = [program.work(), program.free_work()].concat();
            let prices = at.object(&kinds.join(" "))?;
            for kind in kinds.into_iter().filter(|kind| prices.value.get(kind).is_some()) {
                costs.insert(kind.to_string(), prices.get(kind)?.integer(0, 1 << 50)?);
            }
        }
        if let Some(kind) = program.work().iter().find(|kind| !costs.contains_key(**kind)) {
            let allowed = "what a unit of this work costs, picoseconds";
            return Err(PlanError::new(format!("costs_ps.{kind}"), "nothing", allowed));
        }
        let fault = fields.optional("fault").map(|at| read_fault(&at)).transpose()?;
        Ok(Self { program, costs, fault })
    }
}

fn read_fault(at: &At<'_>) -> Result<Fault, PlanError> {
    let fields = at.object("delivery byte flip")?;
    Ok(Fault {
        delivery: fields.get("delivery")?.integer(0, u64::MAX)?,
        byte: fields.get("byte")?.integer(0, u64::MAX)?,
        flip: fields.get("flip")?.integer(1, 255)? as u8,
    })
}

/// Runs a program by name, with parameters and model as JSON. With `timeline` the world records intervals.
pub fn run_named(
    name: &str,
    parameters: &str,
    model: &str,
    ranks: u32,
    seed: u64,
    timeline: bool,
) -> Result<Finished, RunError> {
    let options = RunOptions::from_json(name, parameters)?;
    run_on(Ranks::from_json(model, ranks, seed, timeline)?, &options)
}

/// Runs a program in a fresh world.
///
/// # Errors
/// [`RunError::Program`] and [`RunError::Deadlock`].
pub fn run(world: World, options: &RunOptions) -> Result<Finished, RunError> {
    run_on(Ranks::Costs(world), options)
}

fn run_on(world: Ranks, options: &RunOptions) -> Result<Finished, RunError> {
    let shared = Shared::new(world, options.costs.clone(), options.fault);
    let (program, reference) = (options.program, Reference::default());
    drive(shared, async move |comm| program.run(comm, &reference).await)
}

/// Runs a program by name as [`run_named`] does without intervals; besides, what one of its ranks sent and when.
///
/// # Errors
/// [`RunError`]; a rank that is not there is rejected by name.
pub fn run_traced(
    name: &str,
    parameters: &str,
    model: &str,
    ranks: u32,
    seed: u64,
    traced: u32,
) -> Result<(Finished, Vec<Sent>), RunError> {
    if traced >= ranks {
        return Err(PlanError::new("rank", traced, format!("0 to {}", ranks - 1)).into());
    }
    let options = RunOptions::from_json(name, parameters)?;
    let world = Ranks::from_json(model, ranks, seed, false)?;
    let shared = Shared::new(world, options.costs.clone(), options.fault);
    let (program, reference, sent) =
        (options.program, Reference::default(), Rc::new(RefCell::new(Vec::new())));
    let keep = Rc::clone(&sent);
    let traced = async move |comm: &mut SimComm| {
        if comm.rank().0 != traced {
            return program.run(comm, &reference).await;
        }
        let mut recorded = Recorded::new(comm);
        let outcome = program.run(&mut recorded, &reference).await;
        *keep.borrow_mut() = recorded.into_sent();
        outcome
    };
    let finished = drive(shared, traced)?;
    Ok((finished, sent.take()))
}

/// Runs any program in a fresh world, work costing nothing.
///
/// # Errors
/// [`RunError::Program`] and [`RunError::Deadlock`].
pub fn run_body<P>(world: World, program: P) -> Result<Finished, RunError>
where
    P: AsyncFn(&mut SimComm) -> Result<Outcome, ProgramError> + Clone,
{
    drive(Shared::new(Ranks::Costs(world), BTreeMap::new(), None), program)
}

type Results = Rc<RefCell<Vec<Option<Result<Outcome, ProgramError>>>>>;

/// Runs a program to its end.
pub(crate) fn drive<P>(shared: Rc<Shared>, program: P) -> Result<Finished, RunError>
where
    P: AsyncFn(&mut SimComm) -> Result<Outcome, ProgramError> + Clone,
{
    let ranks = shared.world.borrow().size();
    let results: Results = Rc::new(RefCell::new(vec![None; ranks as usize]));
    let mut executor = Executor::with_capacity(ranks as usize);
    for rank in 0..ranks {
        let comm = SimComm::new(rank, Rc::clone(&shared));
        executor.spawn(Box::pin(of_rank(rank, comm, Rc::clone(&results), program.clone())));
    }
    proceed(&shared, &mut executor, |rank| (rank < ranks).then(|| TaskId::new(rank)), || false);
    drop(executor);
    let outcomes = outcomes(&shared, results.take())?;
    Ok(Finished { world: world_of(shared), outcomes })
}

/// Lets time pass until nothing more happens or it is over; `task_of` is the task of a process.
pub(crate) fn proceed<F: Future<Output = ()> + Unpin>(
    shared: &Shared,
    executor: &mut Executor<F>,
    task_of: impl Fn(u32) -> Option<TaskId>,
    is_over: impl Fn() -> bool,
) {
    loop {
        executor.run_ready();
        if is_over() {
            return;
        }
        let mut world = shared.world.borrow_mut();
        if !world.step() {
            return;
        }
        world.each_resumed(|process, first| {
            shared.resumed(process, first);
            if let Some(task) = task_of(process) {
                executor.wake(task);
            }
        });
    }
}

/// What the ranks of a program came to, once nothing more happens.
pub(crate) fn outcomes(
    shared: &Shared,
    results: Vec<Option<Result<Outcome, ProgramError>>>,
) -> Result<Vec<Outcome>, RunError> {
    let failed = results.iter().enumerate().find_map(|(rank, result)| match result {
        Some(Err(error)) => Some((rank as u32, error.clone())),
        _ => None,
    });
    if let Some((rank, error)) = failed {
        return Err(RunError::Program { rank, error });
    }
    let ranks = results.len();
    let outcomes = results.into_iter().flatten().flatten().collect::<Vec<_>>();
    if outcomes.len() < ranks {
        let world = shared.world.borrow();
        let losses = match &*world {
            Ranks::Costs(_) => None,
            Ranks::Local(local) => Some(local.lan().losses()),
        };
        return Err(RunError::Deadlock { blocked: world.blocked(), losses });
    }
    Ok(outcomes)
}

/// The ranks as they were left, once no task is there that holds them.
pub(crate) fn world_of(shared: Rc<Shared>) -> Ranks {
    Rc::into_inner(shared).expect("the tasks are gone").world.into_inner()
}

/// Runs a rank of a program to its end.
pub(crate) async fn of_rank<P>(rank: u32, mut comm: SimComm, results: Results, program: P)
where
    P: AsyncFn(&mut SimComm) -> Result<Outcome, ProgramError>,
{
    let result = program(&mut comm).await;
    results.borrow_mut()[rank as usize] = Some(result);
    // A rank whose program has returned is not suspended, so it may finish.
    let finished = comm.finish();
    debug_assert!(finished, "it runs");
}

#[cfg(test)]
pub(crate) mod tests;
