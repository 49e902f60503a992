//! Echo: rank 0 sends, rank 1 sends back what it got; the others look on.
//!
//! As in Lin et al. (1995). Each message differs; rank 1 answers with every byte changed, and rank 0
//! checks the answer.

use crate::comm::{Comm, Rank, Source, Tag, TagMatch, Work};
use crate::data::{digest, fill};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of a byte that is made. Like the two that follow it is free unless a price is given: what
/// an echo is run for is its messages.
pub const MADE_BYTE: &str = "made-byte";
/// The kind of work of a byte that is answered: changed, and put into a digest.
pub const ANSWERED_BYTE: &str = "answered-byte";
/// The kind of work of a byte that is compared and put into a digest.
pub const CHECKED_BYTE: &str = "checked-byte";

/// What is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoParams {
    /// The length of a message, bytes.
    pub bytes: u64,
    /// How many round trips, at least 1.
    pub rounds: u64,
}

/// Runs it. The elapsed time of rank 0 is that of all round trips.
///
/// # Errors
/// [`ProgramError`] from a call, or with fewer than two ranks.
pub async fn echo<C: Comm>(comm: &mut C, params: &EchoParams) -> Result<Outcome, ProgramError> {
    if comm.size() < 2 {
        let (name, value) = ("ranks", u64::from(comm.size()));
        return Err(ProgramError::Parameter { name, value, allowed: "2 or more".into() });
    }
    let mut message = vec![0; params.bytes as usize];
    let mut answer = vec![0; params.bytes as usize];
    let mut verified = true;
    let mut seen = 0;
    let start = comm.now();
    match comm.rank() {
        Rank(0) => {
            for round in 0..params.rounds {
                let made = Work { kind: MADE_BYTE, count: params.bytes };
                comm.compute(made, || fill(&mut message, round)).await;
                comm.send(Rank(1), Tag(1), &message).await?;
                let status = comm.recv(Source::Rank(Rank(1)), TagMatch::Tag(Tag(2)), &mut answer).await?;
                verified &= status.bytes.get() == params.bytes;
                let check = || {
                    let right = answer.iter().zip(&message).all(|(got, sent)| *got == !*sent);
                    (right, digest(answer.iter().copied()))
                };
                let checked = Work { kind: CHECKED_BYTE, count: params.bytes };
                let (right, found) = comm.compute(checked, check).await;
                verified &= right;
                seen ^= found.rotate_left(round as u32 % 64);
            }
        }
        Rank(1) => {
            for round in 0..params.rounds {
                comm.recv(Source::Rank(Rank(0)), TagMatch::Tag(Tag(1)), &mut message).await?;
                let reply = || {
                    for (byte, got) in answer.iter_mut().zip(&message) {
                        *byte = !*got;
                    }
                    digest(message.iter().copied())
                };
                let answered = Work { kind: ANSWERED_BYTE, count: params.bytes };
                let found = comm.compute(answered, reply).await;
                seen ^= found.rotate_left(round as u32 % 64);
                comm.send(Rank(0), Tag(2), &answer).await?;
            }
        }
        _ => {}
    }
    Ok(Outcome::new(elapsed(start, comm.now()), seen, verified))
}
