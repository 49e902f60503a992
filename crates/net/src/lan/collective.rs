//! Collective operations of MPI on a local network, on lengths alone: how long each call takes.
//!
//! A call is the schedules that the library of the stack makes of it ([`wiretwin_msg::schedule::library`]):
//! LAM's for `mpi-lam`, those of MPICH 1 for `mpi-mpich` and `mpi-mvich`, which is a device of it, and today's
//! for `mpi`. All sends and receives of a round are posted, then waited for. What a reduction computes costs
//! nothing.

use thiserror::Error;
use wiretwin_msg::schedule::library::Collectives;
use wiretwin_msg::schedule::{Amount, Call, Collective, ScheduleError, Step};
use wiretwin_units::{Bytes, SimTime, Span};

use super::stack::Message;
use super::{Lan, Losses, Op, OpError, RequestId};

/// Why a collective did not end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// The stack has none.
    #[error("stack {stack} has no collectives; allowed: one of MPI")]
    NotMpi {
        /// The stack.
        stack: String,
    },
    /// There is no schedule for it.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The network rejected an operation.
    #[error(transparent)]
    Refused(#[from] OpError),
    /// A message came to nothing.
    #[error("rank {rank}: {failure:?}")]
    Failed {
        /// On whose side.
        rank: u32,
        /// What it came to.
        failure: wiretwin_msg::library::Failure,
    },
    /// Ranks wait for what will not come.
    #[error("ranks {ranks:?} wait for what will not come; lost: {losses:?}")]
    Lost {
        /// The ranks.
        ranks: Vec<u32>,
        /// What was lost.
        losses: Losses,
    },
}

/// What a rank sends (`true`) to and receives from a peer in a round.
type Round = Vec<(bool, u32, Bytes)>;

struct Rank {
    /// Rounds to come, the next one last.
    rounds: Vec<Round>,
    ended: SimTime,
}

/// Makes `calls` calls of a collective, with root 0 and so many bytes each; returns how long each takes, from
/// when all have called to when the last has returned.
pub fn run(
    lan: &mut Lan,
    collective: Collective,
    bytes: Bytes,
    calls: u32,
) -> Result<Vec<Span>, CollectiveError> {
    let library = match lan.config().stack.message {
        Message::MpiLam => Collectives::Lam,
        Message::MpiMpich | Message::MpiMvich => Collectives::Mpich1,
        Message::Mpi => Collectives::Mpich4,
        _ => return Err(CollectiveError::NotMpi { stack: lan.config().stack.to_string() }),
    };
    let mut times = Vec::new();
    for _ in 0..calls {
        times.push(once(lan, library, collective, bytes)?);
    }
    Ok(times)
}

/// The rounds of a rank, the last one first.
fn rounds(
    library: Collectives,
    collective: Collective,
    bytes: Bytes,
    rank: u32,
    size: u32,
) -> Result<Vec<Round>, ScheduleError> {
    let amount = Amount::Each(if collective == Collective::Barrier { 0 } else { bytes.get() });
    let call = Call { collective, algorithm: None, rank, size, root: 0, amount, unit: 1, commutative: true };
    let plans = library.plans(&call)?;
    let moved = |step: &Step| match *step {
        Step::Send { peer, region } => Some((true, peer, Bytes::new(region.length))),
        Step::Recv { peer, region } | Step::Reduce { peer, region } => {
            Some((false, peer, Bytes::new(region.length)))
        }
        Step::Copy { .. } | Step::Combine { .. } => None,
    };
    let mut rounds: Vec<Round> = plans
        .iter()
        .flat_map(|plan| &plan.rounds)
        .map(|steps| steps.iter().filter_map(moved).collect::<Round>())
        .filter(|round| !round.is_empty())
        .collect();
    rounds.reverse();
    Ok(rounds)
}

fn once(
    lan: &mut Lan,
    library: Collectives,
    collective: Collective,
    bytes: Bytes,
) -> Result<Span, CollectiveError> {
    let size = lan.size();
    let begun = lan.now();
    let mut ranks = Vec::with_capacity(size as usize);
    for rank in 0..size {
        let rounds = rounds(library, collective, bytes, rank, size)?;
        ranks.push(Rank { rounds, ended: begun });
    }
    let mut left = 0;
    for rank in 0..size {
        left += u32::from(post_round(lan, rank, &mut ranks[rank as usize])?);
    }
    while left > 0 {
        if !lan.step() {
            return Err(CollectiveError::Lost { ranks: lan.blocked(), losses: lan.losses() });
        }
        for rank in lan.resumed().to_vec() {
            if let Some(failure) = lan.completions(rank).iter().find_map(|one| lan.failure(rank, one.request))
            {
                return Err(CollectiveError::Failed { rank, failure });
            }
            let now = lan.now();
            let one = &mut ranks[rank as usize];
            one.ended = now;
            left -= u32::from(!post_round(lan, rank, one)?);
        }
    }
    let ended = ranks.iter().map(|one| one.ended).max().unwrap_or(begun);
    Ok(ended - begun)
}

/// Posts the next round of a rank, if there is one.
fn post_round(lan: &mut Lan, rank: u32, one: &mut Rank) -> Result<bool, OpError> {
    let Some(round) = one.rounds.pop() else { return Ok(false) };
    let mut requests: Vec<RequestId> = Vec::with_capacity(round.len());
    // Receives first, as the libraries do where both are in a round.
    for (_, peer, bytes) in round.iter().filter(|(is_send, ..)| !is_send) {
        let op = Op::recv(Some(*peer), Some(TAG), *bytes);
        requests.extend(lan.post(rank, op)?);
    }
    for (_, peer, bytes) in round.iter().filter(|(is_send, ..)| *is_send) {
        requests.extend(lan.post(rank, Op::send(*peer, TAG, *bytes))?);
    }
    lan.post(rank, Op::wait(&requests))?;
    Ok(true)
}

/// The tag of every message of a collective: messages between two ranks match in their order.
const TAG: u32 = 1;

#[cfg(test)]
mod tests {
    use super::super::tests::{PLAIN, Want, lan};
    use super::*;

    const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "linux22", "buffer_bytes": 65535,
        "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;

    fn gige(stack: &'static str, hosts: usize) -> Want {
        Want { stack, hosts, adapter: r#"{"kind": "frames"}"#, more: SOCKET, ..PLAIN }
    }

    #[test]
    fn every_collective_of_every_library_ends() {
        for stack in ["mpi-lam/tcp/gige", "mpi-mpich/tcp/gige", "mpi/tcp/gige"] {
            for collective in Collective::ALL {
                let mut net = lan(&gige(stack, 5), false);
                let times = run(&mut net, collective, Bytes::new(3000), 2).expect("it ends");
                assert!(times.iter().all(|time| *time > Span::ZERO), "{stack} {collective:?}");
                assert_eq!(net.losses(), Losses::default());
            }
        }
    }

    #[test]
    fn a_tree_is_quicker_than_one_by_one_where_there_are_many() {
        let bytes = Bytes::new(20_000);
        let time = |stack, hosts| {
            run(&mut lan(&gige(stack, hosts), false), Collective::Bcast, bytes, 1).expect("it ends")[0]
        };
        // Four ranks: three messages of the root in a row in LAM, two deep in MPICH.
        assert!(time("mpi-lam/tcp/gige", 4) > time("mpi-mpich/tcp/gige", 4));
        let eight = [time("mpi-lam/tcp/gige", 8), time("mpi-lam/tcp/gige", 4)];
        assert!(
            eight[0].as_ps() < 2 * eight[1].as_ps(),
            "{eight:?}: a tree of three levels, not seven in a row"
        );
    }

    #[test]
    fn what_a_user_sets_of_mpi_holds_and_ranks_that_are_set_differently_do_not_talk() {
        let set = |more: &str| {
            let text =
                super::super::tests::json(&gige("mpi/tcp/gige", 2)).replacen('{', &format!("{{{more},"), 1);
            super::super::Config::from_json(&text)
        };
        let time = |more: &str, bytes| {
            let mut net = Lan::new(set(more).expect("it can be"), 7, false);
            run(&mut net, Collective::Bcast, Bytes::new(bytes), 1).map(|times| times[0])
        };
        let plain = r#""mpi": {"synchronous": "acknowledged", "always_buffered": false}"#;
        let early = format!(r#"{plain}, "rendezvous_from_bytes": 1000"#);
        let good = |more: &str, bytes| time(more, bytes).expect("it ends");
        assert_eq!(good(plain, 999), good(&early, 999), "below either");
        assert!(good(plain, 1000) < good(&early, 1000), "a rendezvous takes a round trip more");
        let apart =
            r#""mpi": {"synchronous": "rendezvous", "always_buffered": true, "apart_from_bytes": 500}"#;
        assert!(good(plain, 499) < good(apart, 499), "everything is copied, and heads of p4 are longer");
        assert!(good(apart, 500) > good(apart, 499), "a second write");
        let error = time(r#""rendezvous_from_bytes": [1000, 2000]"#, 10).expect_err("they are not the same");
        assert!(error.to_string().contains("the peer has another rendezvous threshold"), "{error}");
        assert_eq!(time(r#""rendezvous_from_bytes": [1000, 1000]"#, 10), time(&early, 10));
        for (more, part) in [
            (r#""rendezvous_from_bytes": [1000]"#, "one length, or, over sockets, one for each host"),
            (r#""mpi": {"synchronous": "never", "always_buffered": true}"#, "acknowledged, rendezvous"),
            (r#""mpi": {"synchronous": "rendezvous", "always_buffered": 1}"#, "true or false"),
        ] {
            let error = set(more).expect_err("it is refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_has_no_collectives_says_so() {
        let error = run(&mut lan(&PLAIN, false), Collective::Bcast, Bytes::new(1), 1).unwrap_err();
        assert_eq!(error.to_string(), "stack fore/aal5 has no collectives; allowed: one of MPI");
    }
}
