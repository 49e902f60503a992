//! Stream: rank 0 sends many messages one way; rank 1 answers once when it has them all.

use crate::comm::{Comm, Rank, Source, Tag, TagMatch, Work};
use crate::data::{digest, fill};
use crate::echo::{CHECKED_BYTE, MADE_BYTE};
use crate::outcome::{Outcome, ProgramError, elapsed};

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamParams {
    /// The length of a message, bytes.
    pub bytes: u64,
    /// How many.
    pub messages: u64,
}

/// Runs it. The elapsed time of rank 0 ends with the answer.
///
/// # Errors
/// [`ProgramError`] from a call, or with fewer than two ranks.
pub async fn stream<C: Comm>(comm: &mut C, params: &StreamParams) -> Result<Outcome, ProgramError> {
    if comm.size() < 2 {
        let (name, value) = ("ranks", u64::from(comm.size()));
        return Err(ProgramError::Parameter { name, value, allowed: "2 or more".into() });
    }
    let mut message = vec![0; params.bytes as usize];
    let mut answer = [0; 8];
    let mut seen = 0;
    let mut verified = true;
    let start = comm.now();
    // A digest of what is sent, made where it is sent and where it is received.
    let note = |seen: u64, message: &[u8]| seen.rotate_left(7) ^ digest(message.iter().copied());
    let work = |kind| Work { kind, count: params.bytes };
    match comm.rank() {
        Rank(0) => {
            for round in 0..params.messages {
                let make = || {
                    fill(&mut message, round);
                    note(seen, &message)
                };
                seen = comm.compute(work(MADE_BYTE), make).await;
                comm.send(Rank(1), Tag(1), &message).await?;
            }
            comm.recv(Source::Rank(Rank(1)), TagMatch::Tag(Tag(2)), &mut answer).await?;
            verified = u64::from_le_bytes(answer) == seen;
        }
        Rank(1) => {
            for _ in 0..params.messages {
                comm.recv(Source::Rank(Rank(0)), TagMatch::Tag(Tag(1)), &mut message).await?;
                seen = comm.compute(work(CHECKED_BYTE), || note(seen, &message)).await;
            }
            comm.send(Rank(0), Tag(2), &seen.to_le_bytes()).await?;
        }
        _ => {}
    }
    Ok(Outcome::new(elapsed(start, comm.now()), seen, verified))
}
