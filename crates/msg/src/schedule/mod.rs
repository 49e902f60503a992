//! Collective operations as schedules of sends, receives and reductions.
//!
//! A schedule is what one rank does, in rounds. All sends and receives of a round start together;
//! when all are complete, its reductions are made, then its copies and combinations in the order
//! given; then the next round begins. Sends read the workspace as it was when the round began.
//!
//! Everything lies in one workspace per rank; [`Plan`] says where the input goes, where the result
//! is, and how long the workspace must be. What lies behind the two is scratch.
//!
//! Algorithms carry the names that MPICH gives them in its `MPIR_CVAR_*_INTRA_ALGORITHM`
//! variables; `auto` chooses as MPICH does by default (4.x, `src/mpi/coll`, single-level selection),
//! by the sizes in [`Thresholds`]. They are built from the published descriptions: Thakur,
//! Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH" (2005); Bruck
//! et al., "Efficient Algorithms for All-to-All Communications" (1997); Hensgen, Finkel, Manber, "Two
//! Algorithms for Barrier Synchronization" (1988). What libraries did before that is in [`library`].
//!
//! Any number of ranks and any root. Where an algorithm wants a power of two, the ranks beyond it are
//! folded into neighbours first and served again at the end.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod block;
pub mod library;
mod reduce;
mod rooted;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

pub(crate) use block::Blocks;

/// A stretch of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins, bytes.
    pub offset: u64,
    /// How long it is, bytes.
    pub length: u64,
}

/// One thing a rank does in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a region to a rank.
    Send {
        /// The receiver.
        peer: u32,
        /// What is sent.
        region: Region,
    },
    /// Receives a message from a rank into a region.
    Recv {
        /// The sender.
        peer: u32,
        /// Where it goes.
        region: Region,
    },
    /// Receives a message from a rank and combines it with a region: received op region if the peer
    /// is the lower rank, else region op received.
    Reduce {
        /// The sender.
        peer: u32,
        /// What it is combined with, and where the result goes.
        region: Region,
    },
    /// Copies within the workspace.
    Copy {
        /// Where from.
        from: u64,
        /// Where to.
        region: Region,
    },
    /// Combines within the workspace: region := from op region, or region op from if `after`.
    Combine {
        /// The other operand.
        from: u64,
        /// The operand that is replaced by the result.
        region: Region,
        /// Whether the other operand is the right one.
        after: bool,
    },
}

/// What one rank does, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The rounds, in order.
    pub rounds: Vec<Vec<Step>>,
    /// Where the rank's input goes.
    pub input: Region,
    /// Where its result is; of length 0 if it has none.
    pub output: Region,
    /// The length of the workspace, bytes.
    pub workspace: u64,
    /// The algorithm, `auto` resolved.
    pub algorithm: Algorithm,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Reduce_scatter` (and `_block`).
    ReduceScatter,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
    /// `MPI_Gather` and `MPI_Gatherv`.
    Gather,
    /// `MPI_Scatter` and `MPI_Scatterv`.
    Scatter,
    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather,
    /// `MPI_Alltoall` and `MPI_Alltoallv`.
    Alltoall,
    /// `MPI_Barrier`.
    Barrier,
}

/// How a collective is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// A binomial tree.
    Binomial,
    /// All with the root, one by one.
    Linear,
    /// Binomial scatter, then recursive doubling allgather (van de Geijn).
    ScatterRecursiveDoublingAllgather,
    /// Binomial scatter, then ring allgather.
    ScatterRingAllgather,
    /// Recursive halving reduce-scatter, then binomial gather.
    ReduceScatterGather,
    /// Recursive halving reduce-scatter, then recursive doubling allgather (Rabenseifner).
    ReduceScatterAllgather,
    /// Recursive doubling.
    RecursiveDoubling,
    /// Recursive halving.
    RecursiveHalving,
    /// Around a ring.
    Ring,
    /// Bruck's, with rotations.
    Brucks,
    /// A partner per round.
    Pairwise,
    /// All at once, non-blocking.
    Scattered,
    /// Dissemination.
    Dissemination,
    /// Reduction to rank 0 in order, then a scatter: for operations that do not commute.
    ReduceThenScatter,
}

/// How much each rank contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount<'a> {
    /// So many bytes each: of the message for one-to-all and reductions, per block for the others.
    Each(u64),
    /// By rank, bytes (gather, scatter, allgather, reduce-scatter).
    ByRank(&'a [u64]),
    /// By rank, bytes sent to and received from it (all-to-all).
    Exchange {
        /// To each.
        send: &'a [u64],
        /// From each.
        receive: &'a [u64],
    },
}

/// A collective call as one rank makes it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The collective operation.
    pub collective: Collective,
    /// How; `None` is `auto`.
    pub algorithm: Option<Algorithm>,
    /// This rank.
    pub rank: u32,
    /// Of how many.
    pub size: u32,
    /// The root, where there is one; else 0.
    pub root: u32,
    /// How much.
    pub amount: Amount<'a>,
    /// The length of an element, bytes: reductions are cut between elements only.
    pub unit: u64,
    /// Whether the operation commutes.
    pub commutative: bool,
}

/// Where `auto` changes from one algorithm to another, with MPICH's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// `MPIR_CVAR_BCAST_SHORT_MSG_SIZE`: binomial below.
    pub bcast_short_bytes: u64,
    /// `MPIR_CVAR_BCAST_LONG_MSG_SIZE`: ring from here on.
    pub bcast_long_bytes: u64,
    /// `MPIR_CVAR_BCAST_MIN_PROCS`: binomial with fewer ranks.
    pub bcast_min_ranks: u32,
    /// `MPIR_CVAR_REDUCE_SHORT_MSG_SIZE`: binomial up to here.
    pub reduce_short_bytes: u64,
    /// `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`: recursive doubling up to here.
    pub allreduce_short_bytes: u64,
    /// `MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`, of all blocks together: Bruck's below.
    pub allgather_short_bytes: u64,
    /// `MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE`, of all blocks together: ring from here on.
    pub allgather_long_bytes: u64,
    /// `MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`, of a block: Bruck's up to here, with 8 ranks or more.
    pub alltoall_short_bytes: u64,
    /// `MPIR_CVAR_ALLTOALL_MEDIUM_MSG_SIZE`, of a block: all at once up to here.
    pub alltoall_medium_bytes: u64,
    /// `MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE`, of the vector: pairwise from here on.
    pub reduce_scatter_long_bytes: u64,
}

impl Thresholds {
    /// MPICH's defaults.
    pub const MPICH: Self = Self {
        bcast_short_bytes: 12_288,
        bcast_long_bytes: 524_288,
        bcast_min_ranks: 8,
        reduce_short_bytes: 2_048,
        allreduce_short_bytes: 2_048,
        allgather_short_bytes: 81_920,
        allgather_long_bytes: 524_288,
        alltoall_short_bytes: 256,
        alltoall_medium_bytes: 32_768,
        reduce_scatter_long_bytes: 524_288,
    };
}

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// Rank or root is not among the ranks, or there are none.
    NoSuchRank {
        /// What: `rank` or `root`.
        what: &'static str,
        /// Its value.
        value: u32,
        /// How many ranks there are.
        size: u32,
    },
    /// The amounts are not of the kind or number that the collective takes.
    WrongAmount {
        /// The collective.
        collective: Collective,
        /// What is allowed.
        allowed: String,
    },
    /// The element length is 0 or does not divide an amount.
    WrongUnit {
        /// The element length.
        unit: u64,
        /// The amount.
        bytes: u64,
    },
    /// The collective has no such algorithm, or not for this call.
    NoSuchAlgorithm {
        /// The collective.
        collective: Collective,
        /// The algorithm's name.
        algorithm: String,
        /// What is allowed.
        allowed: String,
    },
    /// The sizes add up to more than 64 bits hold.
    TooLong,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { what, value, size: 0 } => write!(f, "{what} {value} of no ranks at all"),
            Self::NoSuchRank { what, value, size } => {
                write!(f, "{what} is {value}; allowed: 0 to {}", size - 1)
            }
            Self::WrongAmount { collective, allowed } => {
                write!(f, "{}: wrong amounts; allowed: {allowed}", collective.name())
            }
            Self::WrongUnit { unit, bytes } => {
                write!(
                    f,
                    "element length {unit} does not divide {bytes} bytes; allowed: a divisor, at least 1"
                )
            }
            Self::NoSuchAlgorithm { collective, algorithm, allowed } => {
                write!(
                    f,
                    "{}: no algorithm {algorithm:?} for this call; allowed: {allowed}",
                    collective.name()
                )
            }
            Self::TooLong => f.write_str("the amounts add up to more than 2^60 bytes"),
        }
    }
}

impl core::error::Error for ScheduleError {}

impl Collective {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::Exscan,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Alltoall,
        Self::Barrier,
    ];

    /// Its name in interfaces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Barrier => "barrier",
        }
    }

    /// The collective of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// Its algorithms.
    #[must_use]
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm as A;
        match self {
            Self::Bcast => {
                &[A::Binomial, A::ScatterRecursiveDoublingAllgather, A::ScatterRingAllgather, A::Linear]
            }
            Self::Reduce => &[A::Binomial, A::ReduceScatterGather, A::Linear],
            Self::Allreduce => &[A::RecursiveDoubling, A::ReduceScatterAllgather, A::Ring],
            Self::ReduceScatter => &[A::RecursiveHalving, A::Pairwise, A::ReduceThenScatter],
            Self::Scan | Self::Exscan => &[A::RecursiveDoubling],
            Self::Gather | Self::Scatter => &[A::Binomial, A::Linear],
            Self::Allgather => &[A::RecursiveDoubling, A::Brucks, A::Ring],
            Self::Alltoall => &[A::Brucks, A::Pairwise, A::Scattered],
            Self::Barrier => &[A::Dissemination, A::RecursiveDoubling, A::Binomial, A::Linear],
        }
    }
}

impl Algorithm {
    const ALL: [Self; 14] = [
        Self::Binomial,
        Self::Linear,
        Self::ScatterRecursiveDoublingAllgather,
        Self::ScatterRingAllgather,
        Self::ReduceScatterGather,
        Self::ReduceScatterAllgather,
        Self::RecursiveDoubling,
        Self::RecursiveHalving,
        Self::Ring,
        Self::Brucks,
        Self::Pairwise,
        Self::Scattered,
        Self::Dissemination,
        Self::ReduceThenScatter,
    ];

    /// Its name, MPICH's where MPICH has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binomial => "binomial",
            Self::Linear => "linear",
            Self::ScatterRecursiveDoublingAllgather => "scatter_recursive_doubling_allgather",
            Self::ScatterRingAllgather => "scatter_ring_allgather",
            Self::ReduceScatterGather => "reduce_scatter_gather",
            Self::ReduceScatterAllgather => "reduce_scatter_allgather",
            Self::RecursiveDoubling => "recursive_doubling",
            Self::RecursiveHalving => "recursive_halving",
            Self::Ring => "ring",
            Self::Brucks => "brucks",
            Self::Pairwise => "pairwise",
            Self::Scattered => "scattered",
            Self::Dissemination => "dissemination",
            Self::ReduceThenScatter => "reduce_then_scatter",
        }
    }

    /// The algorithm of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// The schedule of one rank for a collective call.
///
/// # Errors
/// [`ScheduleError`] names what is wrong with the call.
pub fn plan(call: &Call<'_>, thresholds: &Thresholds) -> Result<Plan, ScheduleError> {
    check(call)?;
    let algorithm = match call.algorithm {
        Some(algorithm) => algorithm,
        None => choose(call, thresholds),
    };
    refuse_unfit(call, algorithm)?;
    let builder = Builder { call, rounds: Vec::new() };
    Ok(match call.collective {
        Collective::Bcast => bcast::plan(builder, algorithm),
        Collective::Reduce => reduce::reduce(builder, algorithm),
        Collective::Allreduce => reduce::allreduce(builder, algorithm),
        Collective::ReduceScatter => reduce::reduce_scatter(builder, algorithm),
        Collective::Scan | Collective::Exscan => reduce::scan(builder, algorithm),
        Collective::Gather => rooted::gather(builder, algorithm),
        Collective::Scatter => rooted::scatter(builder, algorithm),
        Collective::Allgather => allgather::plan(builder, algorithm),
        Collective::Alltoall => alltoall::plan(builder, algorithm),
        Collective::Barrier => barrier::plan(builder, algorithm),
    })
}

fn check(call: &Call<'_>) -> Result<(), ScheduleError> {
    let size = call.size;
    for (what, value) in [("rank", call.rank), ("root", call.root)] {
        if value >= size {
            return Err(ScheduleError::NoSuchRank { what, value, size });
        }
    }
    let wrong = |allowed: &str| {
        let allowed = allowed.to_string();
        Err(ScheduleError::WrongAmount { collective: call.collective, allowed })
    };
    let fits = |list: &[u64]| list.len() == size as usize;
    let by_rank = matches!(
        call.collective,
        Collective::Gather | Collective::Scatter | Collective::Allgather | Collective::ReduceScatter
    );
    match call.amount {
        Amount::Each(_) => {}
        Amount::ByRank(list) if by_rank && fits(list) => {}
        Amount::Exchange { send, receive }
            if call.collective == Collective::Alltoall && fits(send) && fits(receive) =>
        {
            if send[call.rank as usize] != receive[call.rank as usize] {
                return wrong("as many bytes to itself as from itself");
            }
        }
        _ if by_rank => return wrong("one number of bytes, or one for each rank"),
        _ if call.collective == Collective::Alltoall => {
            return wrong("one number of bytes, or two for each rank: to and from it");
        }
        _ => return wrong("one number of bytes"),
    }
    let lists: [&[u64]; 2] = match call.amount {
        Amount::Each(_) => [&[], &[]],
        Amount::ByRank(list) => [list, &[]],
        Amount::Exchange { send, receive } => [send, receive],
    };
    let each = if let Amount::Each(bytes) = call.amount { bytes } else { 0 };
    let total = lists
        .iter()
        .flat_map(|list| list.iter())
        .try_fold(each.checked_mul(u64::from(size)).ok_or(ScheduleError::TooLong)?, |sum, bytes| {
            sum.checked_add(*bytes)
        });
    // Workspaces are at most six times as long.
    if total.is_none_or(|total| total > 1 << 60) {
        return Err(ScheduleError::TooLong);
    }
    let amounts = lists.into_iter().flatten().copied().chain([each]);
    for bytes in amounts {
        if call.unit == 0 || bytes % call.unit != 0 {
            return Err(ScheduleError::WrongUnit { unit: call.unit, bytes });
        }
    }
    Ok(())
}

/// As MPICH chooses by default; where it looks at more than sizes, the case without hierarchy.
fn choose(call: &Call<'_>, thresholds: &Thresholds) -> Algorithm {
    use Algorithm as A;
    let Call { size, .. } = *call;
    let blocks = Blocks::of(call);
    let each = blocks.bytes(0);
    let uniform = matches!(call.amount, Amount::Each(_));
    let elements = each / call.unit;
    // The largest power of two that is not above the number of ranks.
    let power = u64::from(1u32 << size.ilog2());
    match call.collective {
        Collective::Bcast => {
            if each < thresholds.bcast_short_bytes || size < thresholds.bcast_min_ranks {
                A::Binomial
            } else if each < thresholds.bcast_long_bytes && size.is_power_of_two() {
                A::ScatterRecursiveDoublingAllgather
            } else {
                A::ScatterRingAllgather
            }
        }
        Collective::Reduce => {
            if each > thresholds.reduce_short_bytes && elements >= power && call.commutative {
                A::ReduceScatterGather
            } else {
                A::Binomial
            }
        }
        Collective::Allreduce => {
            if each <= thresholds.allreduce_short_bytes || elements < power || !call.commutative {
                A::RecursiveDoubling
            } else {
                A::ReduceScatterAllgather
            }
        }
        Collective::ReduceScatter => {
            if !call.commutative {
                A::ReduceThenScatter
            } else if blocks.total() < thresholds.reduce_scatter_long_bytes {
                A::RecursiveHalving
            } else {
                A::Pairwise
            }
        }
        Collective::Scan | Collective::Exscan => A::RecursiveDoubling,
        Collective::Gather | Collective::Scatter if uniform => A::Binomial,
        Collective::Gather | Collective::Scatter => A::Linear,
        Collective::Allgather => {
            let total = blocks.total();
            if total < thresholds.allgather_long_bytes && size.is_power_of_two() {
                A::RecursiveDoubling
            } else if total < thresholds.allgather_short_bytes {
                A::Brucks
            } else {
                A::Ring
            }
        }
        Collective::Alltoall => {
            if !uniform {
                A::Scattered
            } else if each <= thresholds.alltoall_short_bytes && size >= 8 {
                A::Brucks
            } else if each <= thresholds.alltoall_medium_bytes {
                A::Scattered
            } else {
                A::Pairwise
            }
        }
        Collective::Barrier => A::Dissemination,
    }
}

fn refuse_unfit(call: &Call<'_>, algorithm: Algorithm) -> Result<(), ScheduleError> {
    use Algorithm as A;
    let uniform = matches!(call.amount, Amount::Each(_));
    let fits = |algorithm: Algorithm| match (call.collective, algorithm) {
        (Collective::Gather | Collective::Scatter, A::Binomial) => uniform,
        (Collective::Alltoall, A::Brucks) => uniform,
        (Collective::ReduceScatter, A::RecursiveHalving | A::Pairwise) => call.commutative,
        (Collective::Allreduce, A::Ring) => call.commutative,
        _ => true,
    };
    let known = call.collective.algorithms();
    if known.contains(&algorithm) && fits(algorithm) {
        return Ok(());
    }
    let mut allowed = "auto".to_string();
    for algorithm in known.iter().filter(|algorithm| fits(**algorithm)) {
        allowed.push_str(", ");
        allowed.push_str(algorithm.name());
    }
    let algorithm = algorithm.name().to_string();
    Err(ScheduleError::NoSuchAlgorithm { collective: call.collective, algorithm, allowed })
}

/// A plan being made.
pub(crate) struct Builder<'a> {
    pub(crate) call: &'a Call<'a>,
    rounds: Vec<Vec<Step>>,
}

impl Builder<'_> {
    /// Adds a round. Regions of no length still make a message unless `bulk` drops them.
    pub(crate) fn round(&mut self, steps: Vec<Step>) {
        if !steps.is_empty() {
            self.rounds.push(steps);
        }
    }

    /// Adds a round of bulk data: messages and copies of no length are left out. Both ends know the
    /// length, so both leave them out.
    pub(crate) fn bulk(&mut self, mut steps: Vec<Step>) {
        steps.retain(|step| step.region().length > 0);
        self.round(steps);
    }

    pub(crate) fn finish(self, algorithm: Algorithm, input: Region, output: Region, workspace: u64) -> Plan {
        Plan { rounds: self.rounds, input, output, workspace, algorithm }
    }
}

impl Step {
    /// The region it sends, fills or replaces.
    #[must_use]
    pub const fn region(&self) -> Region {
        match *self {
            Self::Send { region, .. }
            | Self::Recv { region, .. }
            | Self::Reduce { region, .. }
            | Self::Copy { region, .. }
            | Self::Combine { region, .. } => region,
        }
    }
}

/// (rank + by) mod size, for by <= size.
pub(crate) const fn add(rank: u32, by: u32, size: u32) -> u32 {
    ((rank as u64 + by as u64) % size as u64) as u32
}

/// (rank - by) mod size, for by <= size.
pub(crate) const fn subtract(rank: u32, by: u32, size: u32) -> u32 {
    ((rank as u64 + size as u64 - by as u64) % size as u64) as u32
}

#[cfg(test)]
mod tests;
