//! Broadcast: one call to whoever hears it, and the replies of those who do.
//!
//! RFC 5531 §7.4.1 (over datagrams, through the port mapper's CALLIT; servers answer only if they succeed).
//! When it is sent again is that of Sun's `clnt_broadcast`: waits of 4, 6, 8, 10, 12 and 14 seconds.

use alloc::collections::{BTreeSet, VecDeque};

use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime, Span};

use super::client::{CallError, DATAGRAM_OCTETS};
use super::work::of_message;
use super::{Body, Call, Message, Refusal, Reply};

/// What a broadcast is told when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long to wait after each time it is sent; [`WAITS`].
    pub waits: &'static [Span],
    /// After how many replies it ends; `None` if only its user ends it, or time.
    pub enough: Option<u32>,
}

/// An answer of one peer, its first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<P, B> {
    /// Who answers.
    pub peer: P,
    /// The results.
    pub results: B,
}

/// What is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// A second answer of this peer: it heard the call more than once.
    Duplicate(P),
    /// This peer rejects, though it should keep silent.
    Refused(P, Refusal),
    /// A reply to something else.
    Stray {
        /// That of the reply.
        xid: u32,
    },
    /// It is over.
    Ended(Ended),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How many answered.
    pub answers: u32,
    /// How often the call was sent.
    pub sent: u32,
    /// Whether it ended because time was over. Without any answer that is a time-out.
    pub timed_out: bool,
}

/// Outputs of a broadcast: the calls go to the broadcast address.
pub type BroadcastOutput<P, B> = Output<Call<B>, Answer<P, B>, Event<P>>;

/// One broadcast. `P` is the address of a peer.
#[derive(Debug)]
pub struct Broadcast<P, B> {
    config: Config,
    call: Call<B>,
    peers: BTreeSet<P>,
    sent: u32,
    /// When the wait that runs is over; `None` when it has ended.
    until: Option<SimTime>,
    outputs: VecDeque<BroadcastOutput<P, B>>,
}

impl<P: Ord + Copy, B: Body> Broadcast<P, B> {
    /// Sends a call for the first time.
    ///
    /// # Errors
    /// [`CallError`] for a message of more than [`DATAGRAM_OCTETS`].
    pub fn start(now: SimTime, config: Config, call: Call<B>) -> Result<Self, CallError> {
        let (found, allowed) = (call.length(), DATAGRAM_OCTETS);
        if found > allowed {
            return Err(CallError::TooLong { found, allowed });
        }
        let head = Bytes::new(call.head().len() as u64);
        let outputs = of_message(true, head, call.body()).map(Output::Work).collect();
        let mut broadcast = Self { config, call, peers: BTreeSet::new(), sent: 0, until: Some(now), outputs };
        broadcast.handle_timeout(now);
        Ok(broadcast)
    }

    /// A reply of a peer arrives.
    pub fn handle_reply(&mut self, _now: SimTime, peer: P, reply: Reply<B>) {
        if self.until.is_none() || reply.xid != self.call.xid {
            return self.outputs.push_back(Output::Event(Event::Stray { xid: reply.xid }));
        }
        let head = Bytes::new(reply.head().len() as u64);
        self.outputs.extend(of_message(false, head, reply.body()).map(Output::Work));
        match reply.result {
            Err(refusal) => self.outputs.push_back(Output::Event(Event::Refused(peer, refusal))),
            Ok(_) if !self.peers.insert(peer) => {
                self.outputs.push_back(Output::Event(Event::Duplicate(peer)));
            }
            Ok(results) => {
                self.outputs.push_back(Output::Deliver(Answer { peer, results }));
                if self.config.enough.is_some_and(|enough| self.peers.len() >= enough as usize) {
                    self.end(false);
                }
            }
        }
    }

    /// The time that was asked for has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        if self.until.is_none_or(|until| now < until) {
            return;
        }
        let Some(&wait) = self.config.waits.get(self.sent as usize) else { return self.end(true) };
        self.sent += 1;
        self.until = Some(now.saturating_add(wait));
        self.outputs.push_back(Output::Transmit(self.call.clone()));
    }

    /// Ends it: the answers are enough.
    pub fn stop(&mut self) {
        self.end(false);
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> BroadcastOutput<P, B> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.until))
    }

    fn end(&mut self, timed_out: bool) {
        if self.until.take().is_some() {
            let ended = Ended { answers: self.peers.len() as u32, sent: self.sent, timed_out };
            self.outputs.push_back(Output::Event(Event::Ended(ended)));
        }
    }
}

/// Sun's waits, 54 s in all.
pub const WAITS: &[Span] = &[
    Span::from_s(4),
    Span::from_s(6),
    Span::from_s(8),
    Span::from_s(10),
    Span::from_s(12),
    Span::from_s(14),
];

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::super::{Credential, Target};
    use super::*;

    type Machine = Broadcast<u8, Arc<[u8]>>;
    type Out = BroadcastOutput<u8, Arc<[u8]>>;

    fn at(seconds: u64) -> SimTime {
        SimTime::ZERO + Span::from_s(seconds)
    }

    fn started(enough: Option<u32>) -> Machine {
        let target = Target { program: 1, version: 1, procedure: 1 };
        let call = Call { xid: 7, target, credential: Credential::NONE, arguments: Arc::from([]) };
        Broadcast::start(at(0), Config { waits: WAITS, enough }, call).expect("40 octets")
    }

    fn drain(machine: &mut Machine) -> (Vec<Out>, Option<SimTime>) {
        let mut outputs = Vec::new();
        loop {
            match machine.poll_output() {
                Output::Timeout(next) => return (outputs, next),
                Output::Work(_) => {}
                other => outputs.push(other),
            }
        }
    }

    fn reply(xid: u32) -> Reply<Arc<[u8]>> {
        Reply { xid, result: Ok(Arc::from([])) }
    }

    #[test]
    fn it_is_sent_at_the_times_of_the_library_and_then_ends() {
        let mut machine = started(None);
        let mut times = Vec::new();
        loop {
            let (outputs, next) = drain(&mut machine);
            match (&outputs[..], next) {
                ([Output::Transmit(call)], Some(next)) => {
                    assert_eq!(call.xid, 7);
                    times.push(next.since_start().as_ns() / 1_000_000_000);
                    machine.handle_timeout(next);
                }
                ([Output::Event(ended)], None) => {
                    let expected = Ended { answers: 0, sent: 6, timed_out: true };
                    assert_eq!(*ended, Event::Ended(expected));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(times, [4, 10, 18, 28, 40, 54]);
    }

    #[test]
    fn each_peer_answers_once_and_enough_is_enough() {
        let mut machine = started(Some(2));
        drain(&mut machine);
        machine.handle_reply(at(1), 10, reply(7));
        machine.handle_reply(at(1), 10, reply(7));
        machine.handle_reply(at(1), 11, reply(8));
        machine.handle_reply(at(1), 12, Reply { xid: 7, result: Err(Refusal::ProgramUnavailable) });
        machine.handle_timeout(at(2));
        machine.handle_reply(at(3), 13, reply(7));
        machine.handle_reply(at(3), 14, reply(7));
        machine.stop();
        let results = Arc::from([]);
        let expected = [
            Output::Deliver(Answer { peer: 10, results: Arc::clone(&results) }),
            Output::Event(Event::Duplicate(10)),
            Output::Event(Event::Stray { xid: 8 }),
            Output::Event(Event::Refused(12, Refusal::ProgramUnavailable)),
            Output::Deliver(Answer { peer: 13, results }),
            Output::Event(Event::Ended(Ended { answers: 2, sent: 1, timed_out: false })),
            Output::Event(Event::Stray { xid: 7 }),
        ];
        assert_eq!(drain(&mut machine), (expected.to_vec(), None));
    }

    #[test]
    fn what_fits_no_datagram_is_not_sent() {
        let target = Target { program: 1, version: 1, procedure: 1 };
        let arguments: Arc<[u8]> = Arc::from([0; 8764]);
        let call = Call { xid: 7, target, credential: Credential::NONE, arguments };
        let error = Machine::start(at(0), Config { waits: WAITS, enough: None }, call).expect_err("8804");
        let allowed = DATAGRAM_OCTETS;
        assert_eq!(error, CallError::TooLong { found: Bytes::new(8804), allowed });
    }
}
