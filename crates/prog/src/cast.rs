//! One to all: rank 0 sends everybody a message, and has a short answer of each.

use crate::comm::{Comm, Incoming, Outgoing, Rank, Source, Tag, TagMatch, Work};
use crate::data::digest_of;
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of making or reading a byte.
pub const CAST_BYTE: &str = "cast-byte";

const THERE: Tag = Tag(1);
const BACK: Tag = Tag(2);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastParams {
    /// The length of a message.
    pub bytes: u64,
    /// How often.
    pub rounds: u64,
}

/// The message of a round.
fn message(round: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64)
        .map(|at| (at.wrapping_mul(31).wrapping_add(round.wrapping_mul(17)) >> 3) as u8)
        .collect()
}

/// Eight bytes that tell a message from others.
fn answer(message: &[u8]) -> [u8; 8] {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ message.len() as u64;
    let mixed = |sum: u64, octet: &u8| (sum ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
    message.iter().fold(start, mixed).to_le_bytes()
}

/// Runs it: everybody compares what has come with what was sent, and rank 0 all answers.
///
/// # Errors
/// [`ProgramError`] from a call.
pub async fn cast<C: Comm>(comm: &mut C, params: &CastParams) -> Result<Outcome, ProgramError> {
    let (rank, size, bytes) = (comm.rank(), comm.size(), params.bytes as usize);
    let all: Vec<Rank> = (1..size).map(Rank).collect();
    let work = Work { kind: CAST_BYTE, count: params.bytes };
    let mut buffer = vec![0; bytes];
    let mut answers = vec![[0; 8]; size as usize - 1];
    let mut verified = true;
    let start = comm.now();
    for round in 0..params.rounds {
        if rank == Rank(0) {
            let sent = comm.compute(work, || message(round, bytes)).await;
            comm.mcast(&all, THERE, &sent).await?;
            let mut receives: Vec<Incoming<'_>> = all
                .iter()
                .zip(&mut answers)
                .map(|(&from, buffer)| Incoming {
                    from: Source::Rank(from),
                    tag: TagMatch::Tag(BACK),
                    buffer,
                    status: None,
                })
                .collect();
            comm.exchange(&[], &mut receives).await?;
            drop(receives);
            verified &= answers.iter().all(|one| *one == answer(&sent));
        } else {
            comm.recv(Source::Rank(Rank(0)), TagMatch::Tag(THERE), &mut buffer).await?;
            let came = &buffer;
            let (same, said) = comm.compute(work, || (*came == message(round, bytes), answer(came))).await;
            verified &= same;
            comm.exchange(&[Outgoing { to: Rank(0), tag: BACK, message: &said }], &mut []).await?;
        }
    }
    let elapsed = elapsed(start, comm.now());
    let last: Vec<f64> =
        answer(&message(params.rounds, bytes)).iter().map(|octet| f64::from(*octet)).collect();
    Ok(Outcome::new(elapsed, digest_of(&last), verified))
}
