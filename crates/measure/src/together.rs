//! What any number of ranks do together, timed by every rank: collective calls of a library, streams of pairs.
//!
//! Rank 0 leads: it tells all others what to do and how often, each rank times its own part of every
//! iteration, and rank 0 gathers the times. An iteration counts with its slowest rank, and beside it with the
//! mean over the ranks that time something, which is what the OSU benchmarks print.

use std::collections::{BTreeMap, BTreeSet};

use wiretwin_prog::{Comm, CommError, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

use crate::pairs::{self, Pattern, Windows};
use crate::plan::{Step, next_chunk};
use crate::run::Samples;

const NAMES: [&str; 56] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce_scatter",
    "gatherv",
    "scatterv",
    "allgatherv",
    "alltoallv",
    "alltoallw",
    "reduce_scatter_block",
    "ibarrier",
    "ibcast",
    "ireduce",
    "iallreduce",
    "igather",
    "iscatter",
    "iallgather",
    "ialltoall",
    "ireduce_scatter",
    "igatherv",
    "iscatterv",
    "iallgatherv",
    "ialltoallv",
    "ialltoallw",
    "ireduce_scatter_block",
    "ibarrier_busy",
    "ibcast_busy",
    "ireduce_busy",
    "iallreduce_busy",
    "igather_busy",
    "iscatter_busy",
    "iallgather_busy",
    "ialltoall_busy",
    "ireduce_scatter_busy",
    "igatherv_busy",
    "iscatterv_busy",
    "iallgatherv_busy",
    "ialltoallv_busy",
    "ialltoallw_busy",
    "ireduce_scatter_block_busy",
    "pairs",
    "bidirectional",
    "load",
    "put",
    "get",
    "accumulate",
    "get_accumulate",
    "fetch_and_op",
    "compare_and_swap",
    "put_stream",
    "get_stream",
];

/// Iterations that tell how long to compute where the plain call was not timed before.
const SOUNDINGS: u32 = 10;
const MAGIC: u64 = u64::from_le_bytes(*b"wtgroup1");
const WORDS: usize = 7;
const QUIT: u64 = u64::MAX;

/// Something that all ranks do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Together(usize);

impl Together {
    /// The names of all, in the order of the protocol.
    pub const NAMES: &'static [&'static str] = &NAMES;

    /// The name used in schedules.
    pub const fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// What has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(Self)
    }

    /// Whether it is made of messages between two ranks, and so goes over any layer.
    pub fn over_any_layer(self) -> bool {
        self.pattern().is_some()
    }

    fn pattern(self) -> Option<Pattern> {
        Pattern::from_name(self.name())
    }

    /// The plain call, of one between whose start and end the ranks compute.
    fn plain(self) -> Option<Self> {
        self.name().strip_suffix("_busy").and_then(Self::from_name)
    }
}

/// What all ranks are told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The operation that all ranks do.
    pub what: Together,
    /// Do it once and look at what has come, in place of timing it.
    pub verify: bool,
    /// Length of a message, or of the block of one rank, in bytes.
    pub bytes: u64,
    /// Messages an iteration.
    pub messages: u64,
    /// How long a rank computes between the start and the end of a non-blocking call; the time from one message
    /// to the next under a load.
    pub busy: Span,
}

/// Does one thing as often as there are entries for times, which are set to those of this rank, nanoseconds.
pub type Doing<C> = fn(&mut C, &Deed, &mut [u64]) -> Result<(), CommError>;

/// A rank of a measurement of what ranks do together.
#[derive(Debug)]
pub struct Group<C> {
    doing: Doing<C>,
    /// What has been verified, by length.
    verified: BTreeSet<(Together, u64)>,
    /// The median time of what was timed.
    known: BTreeMap<(Together, u64), Span>,
    windows: Windows,
    times_ns: Vec<u64>,
    message: Vec<u8>,
}

/// What a step gave: iteration by iteration the slowest rank, and the mean over the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSamples {
    /// The slowest rank.
    pub slowest: Samples,
    /// The mean over the ranks, rounded to nanoseconds.
    pub mean: Samples,
}

fn encode(deed: Option<(&Deed, u64)>) -> [u8; 8 * WORDS] {
    let words = match deed {
        None => [MAGIC, QUIT, 0, 0, 0, 0, 0],
        Some((deed, iterations)) => [
            MAGIC,
            deed.what.0 as u64,
            u64::from(deed.verify),
            deed.bytes,
            deed.messages,
            deed.busy.as_ps(),
            iterations,
        ],
    };
    let mut message = [0; 8 * WORDS];
    for (place, word) in message.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    message
}

/// Reads an order: what to do and how often, or nothing more.
fn decode(message: &[u8; 8 * WORDS]) -> Result<Option<(Deed, u64)>, CommError> {
    let mut words = message.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut word = || words.next().expect("as many words as a message has");
    let lost_step = || CommError::Transport("the ranks are out of step: not an order".into());
    if word() != MAGIC {
        return Err(lost_step());
    }
    let code = word();
    if code == QUIT {
        return Ok(None);
    }
    let what = usize::try_from(code).ok().filter(|code| *code < NAMES.len()).map(Together);
    let what = what.ok_or_else(lost_step)?;
    let (verify, bytes, messages, busy) = (word() == 1, word(), word(), Span::from_ps(word()));
    Ok(Some((Deed { what, verify, bytes, messages, busy }, word())))
}

impl<C: Comm> Group<C> {
    /// A rank that does things by `doing`.
    pub fn new(doing: Doing<C>) -> Self {
        Self {
            doing,
            verified: BTreeSet::new(),
            known: BTreeMap::new(),
            windows: Windows::default(),
            times_ns: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Takes the samples of one step, at rank 0.
    ///
    /// # Errors
    /// Those of the layer, and what a verification found at this rank. Samples taken before an error are
    /// lost with it.
    pub async fn step(&mut self, comm: &mut C, step: &Step<Together>) -> Result<GroupSamples, CommError> {
        let (what, bytes) = (step.kind, step.bytes.get());
        let mut deed =
            Deed { what, verify: true, bytes, messages: u64::from(step.messages), busy: step.delay };
        if !self.verified.contains(&(what, bytes)) {
            self.lead(comm, &deed, 1).await?;
            self.verified.insert((what, bytes));
        }
        deed.verify = false;
        if let Some(plain) = what.plain()
            && step.delay == Span::ZERO
        {
            deed.busy = match self.known.get(&(plain, bytes)) {
                Some(&known) => known,
                None => self.sounded(comm, &Deed { what: plain, ..deed }).await?,
            };
        }
        let empty = Samples::none(deed.busy);
        let mut samples = GroupSamples { slowest: empty.clone(), mean: empty };
        let mut first = Vec::new();
        self.gather(comm, &deed, 1, &mut first).await?;
        samples.slowest.first = Some(Span::from_ps(first[0].0 * 1000));
        samples.mean.first = Some(Span::from_ps(first[0].1 * 1000));
        let mut estimate = first[0].0 * 1000;
        if step.warmup > 0 {
            let before = comm.now().as_ps();
            self.lead(comm, &deed, step.warmup).await?;
            estimate = estimate.min((comm.now().as_ps() - before) / u64::from(step.warmup));
        }
        let (mut taken, mut spent) = (Vec::new(), 0);
        loop {
            let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
            let chunk = next_chunk(step, count, Span::from_ps(spent), Span::from_ps(estimate));
            if chunk == 0 {
                break;
            }
            let before = comm.now().as_ps();
            self.gather(comm, &deed, chunk, &mut taken).await?;
            let took = comm.now().as_ps() - before;
            spent += took;
            estimate = took / u64::from(chunk);
        }
        (samples.slowest.values_ns, samples.mean.values_ns) = taken.into_iter().unzip();
        if let Some(median) = samples.slowest.median() {
            self.known.insert((what, bytes), median);
        }
        Ok(samples)
    }

    /// Tells all others that nothing more will come.
    ///
    /// # Errors
    /// Those of the layer.
    pub async fn quit(&mut self, comm: &mut C) -> Result<(), CommError> {
        tell_all(comm, &encode(None)).await
    }

    /// Does at any other rank what rank 0 says, until it says that nothing more will come.
    ///
    /// # Errors
    /// Those of the layer, and what a verification found at this rank.
    pub async fn serve(&mut self, comm: &mut C) -> Result<(), CommError> {
        let leader = Source::Rank(Rank(0));
        loop {
            let mut order = [0; 8 * WORDS];
            comm.recv(leader, TagMatch::Tag(Tag::CONTROL), &mut order).await?;
            let Some((deed, iterations)) = decode(&order)? else { return Ok(()) };
            self.take_part(comm, &deed, iterations).await?;
            self.message.clear();
            self.message.extend(self.times_ns.iter().flat_map(|time| time.to_le_bytes()));
            comm.send(Rank(0), Tag::CONTROL, &self.message).await?;
        }
    }

    async fn take_part(&mut self, comm: &mut C, deed: &Deed, iterations: u64) -> Result<(), CommError> {
        let count = usize::try_from(iterations).unwrap_or(usize::MAX);
        self.times_ns.clear();
        self.times_ns.resize(count, 0);
        match deed.what.pattern() {
            Some(pattern) => {
                pairs::take_part(comm, pattern, deed, &mut self.windows, &mut self.times_ns).await
            }
            None => (self.doing)(comm, deed, &mut self.times_ns),
        }
    }

    /// Has everybody do something; the times of all, rank by rank, are in `times_ns` afterwards.
    async fn lead(&mut self, comm: &mut C, deed: &Deed, iterations: u32) -> Result<(), CommError> {
        tell_all(comm, &encode(Some((deed, u64::from(iterations))))).await?;
        self.take_part(comm, deed, u64::from(iterations)).await?;
        self.message.resize(8 * iterations as usize, 0);
        for rank in 1..comm.size() {
            let from = Source::Rank(Rank(rank));
            let came = comm.recv(from, TagMatch::Tag(Tag::CONTROL), &mut self.message).await?;
            if came.bytes.get() != self.message.len() as u64 {
                let reason = format!("rank {rank} sent {} bytes of times", came.bytes.get());
                return Err(CommError::Transport(reason));
            }
            let times = self.message.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time));
            self.times_ns.extend(times);
        }
        Ok(())
    }

    /// Likewise; adds the slowest rank and the mean of each iteration, nanoseconds.
    async fn gather(
        &mut self,
        comm: &mut C,
        deed: &Deed,
        iterations: u32,
        into: &mut Vec<(u64, u64)>,
    ) -> Result<(), CommError> {
        self.lead(comm, deed, iterations).await?;
        let count = iterations as usize;
        into.extend((0..count).map(|iteration| {
            let times =
                || self.times_ns.iter().copied().skip(iteration).step_by(count).filter(|&time| time > 0);
            let ranks = times().count().max(1) as u64;
            (times().max().unwrap_or(0), (times().sum::<u64>() + ranks / 2) / ranks)
        }));
        Ok(())
    }

    /// The median time of a few iterations.
    async fn sounded(&mut self, comm: &mut C, deed: &Deed) -> Result<Span, CommError> {
        let mut taken = Vec::new();
        self.gather(comm, deed, SOUNDINGS, &mut taken).await?;
        taken.sort_unstable();
        Ok(Span::from_ps(taken[taken.len() / 2].0 * 1000))
    }
}

async fn tell_all<C: Comm>(comm: &mut C, message: &[u8]) -> Result<(), CommError> {
    for rank in 1..comm.size() {
        comm.send(Rank(rank), Tag::CONTROL, message).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_reads_back_and_any_other_message_is_rejected() {
        for name in Together::NAMES {
            let what = Together::from_name(name).unwrap();
            assert_eq!(what.name(), *name);
            let busy = Span::from_ps(5000);
            let deed = Deed { what, verify: true, bytes: 1 << 20, messages: 3, busy };
            assert_eq!(decode(&encode(Some((&deed, 7)))), Ok(Some((deed, 7))));
        }
        assert_eq!(decode(&encode(None)), Ok(None));
        assert!(decode(&[0; 8 * WORDS]).is_err());
        let mut unknown = encode(None);
        unknown[8..16].copy_from_slice(&(NAMES.len() as u64).to_le_bytes());
        assert!(decode(&unknown).is_err());
    }

    #[test]
    fn every_busy_call_has_a_plain_one_and_no_other_has() {
        for name in Together::NAMES {
            let plain = Together::from_name(name).unwrap().plain().map(Together::name);
            assert_eq!(plain, name.strip_suffix("_busy"));
        }
    }
}
