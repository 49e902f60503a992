//! Collectives of a recorded run as the messages of one rank.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use wiretwin_msg::schedule::{Amount, Call, Collective, Step, Thresholds, plan};

/// Collectives as the recorder numbers them.
pub(super) const NAMED: [Collective; 11] = [
    Collective::Barrier,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::ReduceScatter,
    Collective::Scan,
    Collective::Exscan,
];

/// The function of MPI that a collective is.
pub(super) const fn mpi_name(collective: Collective) -> &'static str {
    match collective {
        Collective::Barrier => "MPI_Barrier",
        Collective::Bcast => "MPI_Bcast",
        Collective::Reduce => "MPI_Reduce",
        Collective::Allreduce => "MPI_Allreduce",
        Collective::Gather => "MPI_Gather",
        Collective::Scatter => "MPI_Scatter",
        Collective::Allgather => "MPI_Allgather",
        Collective::Alltoall => "MPI_Alltoall",
        Collective::ReduceScatter => "MPI_Reduce_scatter",
        Collective::Scan => "MPI_Scan",
        Collective::Exscan => "MPI_Exscan",
    }
}

/// The function of MPI that begins it and does not block.
pub(super) const fn mpi_name_begun(collective: Collective) -> &'static str {
    match collective {
        Collective::Barrier => "MPI_Ibarrier",
        Collective::Bcast => "MPI_Ibcast",
        Collective::Reduce => "MPI_Ireduce",
        Collective::Allreduce => "MPI_Iallreduce",
        Collective::Gather => "MPI_Igather",
        Collective::Scatter => "MPI_Iscatter",
        Collective::Allgather => "MPI_Iallgather",
        Collective::Alltoall => "MPI_Ialltoall",
        Collective::ReduceScatter => "MPI_Ireduce_scatter",
        Collective::Scan => "MPI_Iscan",
        Collective::Exscan => "MPI_Iexscan",
    }
}

/// Bytes by rank of the communicator, there and back, of collectives whose ranks give different amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<i32, (u64, u64)>);

impl Counts {
    pub(super) fn set(&mut self, peer: i32, sent: u64, received: u64) {
        self.0.insert(peer, (sent, received));
    }

    pub(super) fn extend(&mut self, others: &Self) {
        self.0.extend(&others.0);
    }

    fn by_rank(&self, size: u32) -> Vec<(u64, u64)> {
        (0..size).map(|rank| self.0.get(&(rank as i32)).copied().unwrap_or_default()).collect()
    }
}

/// A collective, as those that met in it know it together.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    pub(super) collective: Collective,
    /// -1 where there is none.
    pub(super) root: i32,
    /// The most that one gave.
    pub(super) bytes: u64,
    pub(super) unit: u64,
    pub(super) counts: Counts,
}

impl Default for Meeting {
    fn default() -> Self {
        Self { collective: Collective::Barrier, root: 0, bytes: 0, unit: 0, counts: Counts::default() }
    }
}

/// A message of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leg {
    pub(super) receives: bool,
    /// The other rank of the communicator.
    pub(super) peer: u32,
    pub(super) bytes: u64,
}

/// Of a call whose ranks give equal amounts: collective, rank and size of the communicator, root, bytes, unit.
type Equal = (Collective, u32, u32, u32, u64, u64);

/// The messages of one rank's collectives, by round; those of equal calls are reckoned once.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    known: BTreeMap<Equal, Vec<Vec<Leg>>>,
    /// Of the last call with counts.
    last: Vec<Vec<Leg>>,
}

impl Rounds {
    /// Those of a call; `own` are the counts that the rank gave itself, `me` and `size` are of its communicator.
    ///
    /// # Errors
    /// Why there are none, in words.
    pub(super) fn of(
        &mut self,
        call: &Meeting,
        own: &Counts,
        me: u32,
        size: u32,
    ) -> Result<&[Vec<Leg>], String> {
        let root = u32::try_from(call.root).unwrap_or(0);
        if size == 1 {
            return Ok(&[]);
        }
        if root >= size {
            return Err(format!("a root below {size}; it is {root}"));
        }
        if call.counts.0.is_empty() {
            let key = (call.collective, me, size, root, call.bytes, call.unit);
            return Ok(match self.known.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(planned(call, Amount::Each(call.bytes), me, size, root)?)
                }
            });
        }
        let lengths = call.counts.by_rank(size);
        self.last = match call.collective {
            Collective::Alltoall => {
                let (send, receive) = own.by_rank(size).into_iter().unzip::<_, _, Vec<u64>, Vec<u64>>();
                planned(call, Amount::Exchange { send: &send, receive: &receive }, me, size, root)?
            }
            Collective::Gather | Collective::Scatter => {
                let is_gather = call.collective == Collective::Gather;
                let leg = |peer: u32, receives| Leg { receives, peer, bytes: lengths[peer as usize].0 };
                let legs = if me == root {
                    (0..size).filter(|peer| *peer != me).map(|peer| leg(peer, is_gather)).collect()
                } else {
                    vec![Leg { peer: root, ..leg(me, !is_gather) }]
                };
                vec![legs.into_iter().filter(|leg: &Leg| leg.bytes > 0).collect()]
            }
            _ => {
                let lengths = lengths.iter().map(|one| one.0).collect::<Vec<_>>();
                planned(call, Amount::ByRank(&lengths), me, size, root)?
            }
        };
        Ok(&self.last)
    }
}

fn planned(
    call: &Meeting,
    amount: Amount<'_>,
    rank: u32,
    size: u32,
    root: u32,
) -> Result<Vec<Vec<Leg>>, String> {
    let call = Call {
        collective: call.collective,
        algorithm: None,
        rank,
        size,
        root,
        amount,
        unit: call.unit.max(1),
        commutative: true,
    };
    let plan = plan(&call, &Thresholds::MPICH).map_err(|error| error.to_string())?;
    let leg = |step: &Step| match *step {
        Step::Send { peer, region } => Some(Leg { receives: false, peer, bytes: region.length }),
        Step::Recv { peer, region } | Step::Reduce { peer, region } => {
            Some(Leg { receives: true, peer, bytes: region.length })
        }
        _ => None,
    };
    Ok(plan.rounds.iter().map(|round| round.iter().filter_map(leg).collect()).collect())
}
