//! The measuring loop of an echo, on lengths alone: how long each round trip takes.
//!
//! As [`wiretwin_prog::echo`] does it with octets; a test holds the two together.

use thiserror::Error;
use wiretwin_units::{Bytes, Span};

use super::{Kind, Lan, Op, OpError, State};

/// Why an echo did not end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EchoError {
    /// The network rejected an operation.
    #[error(transparent)]
    Refused(#[from] OpError),
    /// A message did not come, and nothing more will happen.
    #[error(
        "{}round trip {round} did not end: lost were {} cells on links, {} in switches and {} in adapters, {} PDUs \
         for want of a cell and {} for want of room before their reader",
        over.map(|reason| format!("{reason}; ")).unwrap_or_default(),
        losses.on_links, losses.in_switches, losses.in_adapters, losses.pdus, losses.unread
    )]
    Lost {
        /// The round trip, from 0.
        round: u64,
        /// What was lost.
        losses: super::Losses,
        /// Why the connection is over, if there was one and it is.
        over: Option<wiretwin_proto::tcp::Reason>,
    },
}

/// Rank 0 sends `bytes`, rank 1 sends as many back, `rounds` times; returns the time of each round trip.
///
/// # Errors
/// [`EchoError`]: a message of 0 bytes on an interface that carries none, or a loss.
pub fn round_trips(lan: &mut Lan, bytes: Bytes, rounds: u64) -> Result<Vec<Span>, EchoError> {
    run(lan, bytes, rounds, false).map(|tally| tally.times)
}

/// What an echo found that goes on after a loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The time of each round trip that ended, in order.
    pub times: Vec<Span>,
    /// Round trips of which a message was lost.
    pub lost: u64,
}

/// As [`round_trips`], but a round trip of which a message is lost is given up and counted, and the next one
/// begins at once: there is nothing under way then that could still bring it about. A program on real
/// hosts would find that out by a timeout of its own.
///
/// # Errors
/// [`EchoError`]: a message of 0 bytes on an interface that carries none, or a connection that is over.
pub fn round_trips_despite_losses(lan: &mut Lan, bytes: Bytes, rounds: u64) -> Result<Tally, EchoError> {
    run(lan, bytes, rounds, true)
}

fn run(lan: &mut Lan, bytes: Bytes, rounds: u64, patient: bool) -> Result<Tally, EchoError> {
    let mut tally = Tally { times: Vec::with_capacity(rounds as usize), lost: 0 };
    // Both begin by waiting for nothing: from then on each acts when it is resumed.
    let ask = |lan: &mut Lan| -> Result<(), OpError> {
        let sent = lan.post(0, Op::send(1, 1, bytes))?.unwrap_or(super::RequestId(0));
        let due = lan.post(0, Op::recv(Some(1), Some(2), bytes))?;
        lan.post(0, Op::wait(&[sent, due.unwrap_or(super::RequestId(0))])).map(|_| ())
    };
    let listen = |lan: &mut Lan| -> Result<(), OpError> {
        let due = lan.post(1, Op::recv(Some(0), Some(1), bytes))?;
        lan.post(1, Op::wait(&[due.unwrap_or(super::RequestId(0))])).map(|_| ())
    };
    listen(lan)?;
    let mut begun = lan.now();
    ask(lan)?;
    let mut answering = false;
    while tally.times.len() as u64 + tally.lost < rounds {
        if !lan.step() {
            if patient && lan.over().is_empty() {
                tally.lost += 1;
                lan.give_up(0);
                lan.give_up(1);
                answering = false;
                if tally.times.len() as u64 + tally.lost < rounds {
                    listen(lan)?;
                    begun = lan.now();
                    ask(lan)?;
                }
                continue;
            }
            return Err(EchoError::Lost {
                round: tally.times.len() as u64,
                losses: lan.losses(),
                over: lan.over().first().map(|end| end.2),
            });
        }
        for at in 0..lan.resumed().len() {
            match lan.resumed()[at] {
                0 => {
                    tally.times.push(lan.now() - begun);
                    begun = lan.now();
                    if tally.times.len() as u64 + tally.lost < rounds {
                        ask(lan)?;
                    }
                }
                1 if answering => {
                    answering = false;
                    listen(lan)?;
                }
                _ => {
                    answering = true;
                    let sent = lan.post(1, Op::send(0, 2, bytes))?;
                    lan.post(1, Op::wait(&[sent.unwrap_or(super::RequestId(0))]))?;
                }
            }
        }
    }
    Ok(tally)
}

impl Lan {
    /// Ends the wait of a rank for what will not come, after a step that returned `false`: its receives are
    /// withdrawn, its messages that nobody has got are forgotten, and it may post again.
    pub fn give_up(&mut self, rank: u32) {
        let Some(process) = self.processes.get_mut(rank as usize) else { return };
        if process.state == State::Waiting {
            process.state = State::Running;
        }
        process.in_call = false;
        process.asleep = false;
        process.waits.clear();
        process.posted.clear();
        for slot in 0..self.requests.len() {
            let request = &self.requests[slot];
            let forgotten = match request.kind {
                Kind::Send(message) => !message.matched,
                Kind::Recv { .. } => true,
                Kind::Free => false,
            };
            if forgotten && request.rank == rank {
                for process in &mut self.processes {
                    process.unexpected.retain(|message| *message != request.id);
                }
                self.close(request.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::tests::{PLAIN, SERIES_100, Want, json, lan};
    use super::*;

    fn tally(want: &Want, bytes: u64, rounds: u64) -> (Tally, Lan) {
        let mut lan = lan(want, false);
        let tally =
            round_trips_despite_losses(&mut lan, Bytes::new(bytes), rounds).expect("an echo that ends");
        (tally, lan)
    }

    const LOSSY: Want = Want { switch: true, more: "\"cut_messages\": true, \"cell_loss\": 0.001", ..PLAIN };

    #[test]
    fn without_a_loss_patience_changes_nothing() {
        let (found, one) = tally(&PLAIN, 9000, 5);
        let mut other = lan(&PLAIN, false);
        let times = round_trips(&mut other, Bytes::new(9000), 5).expect("an echo that ends");
        assert_eq!((found, one.digest()), (Tally { times, lost: 0 }, other.digest()));
    }

    #[test]
    fn lost_rounds_are_counted_and_the_others_take_their_time() {
        for (stack, adapter) in
            [("fore/aal5", PLAIN.adapter), ("fore/aal34", PLAIN.adapter), ("fore/aal5", SERIES_100)]
        {
            for bytes in [40, 4096, 10_000] {
                let want = Want { stack, adapter, ..LOSSY };
                let (found, lan) = tally(&want, bytes, 300);
                assert_eq!(found.times.len() as u64 + found.lost, 300);
                // A round trip of one cell there and back passes four links; others pass more.
                let cells = 4 * bytes.div_ceil(if stack == "fore/aal5" { 48 } else { 44 });
                let expected = 300.0 * (1.0 - 0.999_f64.powi(cells as i32));
                let close = 4.0 * expected.sqrt() + 2.0;
                assert!(
                    (found.lost as f64 - expected).abs() < close,
                    "{} of {expected}: {want:?}",
                    found.lost
                );
                let quiet = Want { more: PLAIN.more, ..want };
                let (alone, _) = tally(&quiet, bytes, 2);
                // What is left of a message that lacks a cell is read before the next one: never quicker.
                assert!(found.times.iter().all(|time| *time >= alone.times[1]), "{bytes} bytes");
                assert!(found.times.contains(&alone.times[1]));
                assert_eq!(lan.pdus_under_way(), 0);
            }
        }
    }

    #[test]
    fn an_echo_of_which_nothing_comes_ends_and_leaves_nothing_open() {
        let want = Want { more: "\"cut_messages\": true, \"cell_loss\": 1", ..PLAIN };
        let (found, lan) = tally(&want, 10_000, 50);
        assert_eq!(found, Tally { times: Vec::new(), lost: 50 });
        assert!(lan.requests.iter().all(|request| matches!(request.kind, Kind::Free)));
        assert!(lan.requests.len() < 8, "slots are used again: {}", lan.requests.len());
    }

    #[test]
    fn the_first_message_to_a_peer_takes_longer_by_what_first_use_takes() {
        let text = json(&PLAIN).replacen('{', "{\"first_use_ps\": 7000000000, ", 1);
        let mut lan = Lan::new(Config::from_json(&text).expect("a network"), 7, true);
        let times = round_trips(&mut lan, Bytes::new(40), 3).expect("an echo that ends");
        assert_eq!(times[0] - times[1], Span::from_ms(14), "each end sends first once");
        assert_eq!(times[1], times[2]);
        let part = &lan.anatomies()[0].parts[1];
        assert_eq!(part.segment.activity.name(), "first_use");
        assert_eq!(part.segment.end - part.segment.start, Span::from_ms(7));
    }
}
