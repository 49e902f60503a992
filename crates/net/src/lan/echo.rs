//! The measuring loop of an echo, on lengths alone: how long each round trip takes.
//!
//! As [`wiretwin_prog::echo`] does it with octets; a test holds the two together.

use std::fmt;

use wiretwin_units::{Bytes, Span};

use super::{Lan, LanError, Op};

/// Why an echo did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoError {
    /// The network refused an operation.
    Refused(LanError),
    /// A message did not come, and nothing more will happen.
    Lost {
        /// The round trip, from 0.
        round: u64,
        /// What was lost.
        losses: super::Losses,
        /// Why the connection is over, if there was one and it is.
        over: Option<wiretwin_proto::tcp::Reason>,
    },
}

impl From<LanError> for EchoError {
    fn from(error: LanError) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Display for EchoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Lost { round, losses, over } => {
                if let Some(reason) = over {
                    write!(f, "{reason}; ")?;
                }
                write!(
                    f,
                    "round trip {round} did not end: lost were {} cells on links, {} in switches and {} in \
                 adapters, {} PDUs for want of a cell and {} for want of room before their reader",
                    losses.on_links, losses.in_switches, losses.in_adapters, losses.pdus, losses.unread
                )
            }
        }
    }
}

impl std::error::Error for EchoError {}

/// Rank 0 sends `bytes`, rank 1 sends as many back, `rounds` times; returns the time of each round trip.
///
/// # Errors
/// [`EchoError`]: a message of 0 bytes on an interface that carries none, or a loss.
pub fn round_trips(lan: &mut Lan, bytes: Bytes, rounds: u64) -> Result<Vec<Span>, EchoError> {
    let mut times = Vec::with_capacity(rounds as usize);
    // Both begin by waiting for nothing: from then on each acts when it is resumed.
    let ask = |lan: &mut Lan| -> Result<(), LanError> {
        let sent = lan.post(0, Op::Send { to: 1, tag: 1, bytes })?.unwrap_or(super::RequestId(0));
        let due = lan.post(0, Op::Recv { from: Some(1), tag: Some(2), capacity: bytes })?;
        lan.post(0, Op::Wait(&[sent, due.unwrap_or(super::RequestId(0))])).map(|_| ())
    };
    let listen = |lan: &mut Lan| -> Result<(), LanError> {
        let due = lan.post(1, Op::Recv { from: Some(0), tag: Some(1), capacity: bytes })?;
        lan.post(1, Op::Wait(&[due.unwrap_or(super::RequestId(0))])).map(|_| ())
    };
    listen(lan)?;
    let mut begun = lan.now();
    ask(lan)?;
    let mut answering = false;
    while (times.len() as u64) < rounds {
        if !lan.step() {
            return Err(EchoError::Lost {
                round: times.len() as u64,
                losses: lan.losses(),
                over: lan.over().first().map(|end| end.2),
            });
        }
        for at in 0..lan.resumed().len() {
            match lan.resumed()[at] {
                0 => {
                    times.push(lan.now() - begun);
                    begun = lan.now();
                    if (times.len() as u64) < rounds {
                        ask(lan)?;
                    }
                }
                1 if answering => {
                    answering = false;
                    listen(lan)?;
                }
                _ => {
                    answering = true;
                    let sent = lan.post(1, Op::Send { to: 0, tag: 2, bytes })?;
                    lan.post(1, Op::Wait(&[sent.unwrap_or(super::RequestId(0))]))?;
                }
            }
        }
    }
    Ok(times)
}
