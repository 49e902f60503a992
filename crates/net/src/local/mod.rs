//! Programs on a local network: one, a rank a host, or several at once.

use std::collections::BTreeMap;

use wiretwin_prog::{Outcome, ProgramError};

pub mod ability;
pub mod mixed;

use crate::comm::{Shared, SimComm};
use crate::lan::Lan;
use crate::ranks::{LocalRanks, Ranks};
use crate::run::{self, RunError};

/// Runs a program on a fresh network, one rank a host; `costs` are picoseconds per unit of work, by kind,
/// where a kind that is not given costs nothing.
pub fn run<P>(lan: Lan, costs: BTreeMap<String, u64>, program: P) -> Result<(Lan, Vec<Outcome>), RunError>
where
    P: AsyncFn(&mut SimComm) -> Result<Outcome, ProgramError> + Clone,
{
    let ranks = Ranks::Local(Box::new(LocalRanks::new(lan, false)));
    let finished = run::drive(Shared::new(ranks, costs, None), program)?;
    let Ranks::Local(local) = finished.world else { unreachable!("they were given") };
    Ok((local.into_lan(), finished.outcomes))
}

#[cfg(test)]
mod tests {
    use wiretwin_prog::echo::{EchoParams, echo};
    use wiretwin_prog::jacobi::{JacobiParams, jacobi};
    use wiretwin_prog::ring::{RingParams, ring};
    use wiretwin_prog::{Comm, Rank, Reference, Source, Tag, TagMatch};
    use wiretwin_units::{Bytes, Span};

    use super::*;
    use crate::lan::echo::round_trips;
    use crate::lan::tests::{PLAIN, SERIES_100, Want, lan};

    #[test]
    fn the_echo_program_takes_as_long_as_the_loop_on_lengths() {
        for bytes in [1, 1000, 10_000] {
            let times = round_trips(&mut lan(&PLAIN, false), Bytes::new(bytes), 5).expect("an echo");
            let params = EchoParams { bytes, rounds: 5 };
            let program = async move |comm: &mut SimComm| echo(comm, &params).await;
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
        let program = async move |comm: &mut SimComm| ring(comm, &params, &Reference::default()).await;
        let (net, outcomes) = run(lan(&want, false), BTreeMap::new(), program).expect("a ring");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        assert!(net.deepest_queue() < 256 && net.losses() == crate::lan::Losses::default());
        let params = JacobiParams { rows: 40, columns: 40, iterations: 5 };
        let costs = BTreeMap::from([("stencil-point".to_string(), 1_000_000)]);
        let want = Want { adapter: SERIES_100, ..want };
        let program = async move |comm: &mut SimComm| jacobi(comm, &params).await;
        let (_, outcomes) = run(lan(&want, false), costs, program).expect("a jacobi");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        assert!(outcomes[0].elapsed > Span::from_us(40 * 40 * 5 / 4), "work is charged");
    }

    #[test]
    fn a_message_of_another_tag_waits_for_its_receive() {
        let program = async |comm: &mut SimComm| {
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
        let program = async |comm: &mut SimComm| {
            if comm.rank() == Rank(1) {
                comm.recv(Source::Any, TagMatch::Any, &mut [0; 8]).await?;
            }
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        let error = run(lan(&PLAIN, false), BTreeMap::new(), program).err().expect("a deadlock");
        let said = error.to_string();
        assert!(
            said.starts_with("deadlock: rank 1 in recv waits for receive of a message from any rank"),
            "{said}"
        );
        assert!(said.contains("lost: Losses { on_links: 0"), "{said}");
        let empty = async |comm: &mut SimComm| {
            comm.send(Rank(1 - comm.rank().0), Tag(0), &[]).await?;
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        let error = run(lan(&PLAIN, false), BTreeMap::new(), empty).err().expect("a refusal");
        assert_eq!(error.to_string(), "rank 0: this layer cannot do that: a message of 0 bytes");
    }
}
