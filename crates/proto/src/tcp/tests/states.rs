//! Every state meets every event.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;

use wiretwin_units::{SimTime, Span};

use super::pair::{ISS, bytes, ms, setup};
use crate::tcp::{Config, Endpoint, Flags, Pieces, Segment, SeqNumber, State};
use crate::{Output, Payload};

/// The end under test is the first of [`setup`], so that its numbers are small; these are the peer's.
const PEER: u32 = ISS[1];

struct Bench {
    end: Endpoint,
    now: SimTime,
}

/// A segment of the peer: the place of its first octet and of its acknowledgment.
fn segment(flags: Flags, from: u32, len: u64, ack: u32) -> Segment {
    let (seq, ack) = (SeqNumber::wrapping(PEER) + from, SeqNumber::wrapping(ISS[0]) + ack);
    let payload = Payload::whole(crate::MessageId(1), bytes(len));
    Segment { window: 8_192, payload, ..Segment::control(seq, ack, flags) }
}

impl Bench {
    fn new(challenge: bool) -> Self {
        let config = Config { challenge, work: false, pieces: Pieces::Whole, ..Config::bsd43_reno() };
        Self { end: Endpoint::new(Arc::new(config), setup(0)), now: ms(1) }
    }

    /// Takes a new end to a state, as a user and a peer would.
    fn in_state(state: State, challenge: bool) -> Self {
        let mut bench = Self::new(challenge);
        let ack = Flags::ACK;
        let now = bench.now;
        let open = |bench: &mut Self| {
            bench.end.connect(now).unwrap();
            bench.drain();
            bench.take(segment(Flags::SYN | ack, 0, 0, 1));
        };
        match state {
            State::Closed => {}
            State::Listen => bench.end.listen(now).unwrap(),
            State::SynSent => bench.end.connect(now).unwrap(),
            State::SynReceived => {
                bench.end.listen(now).unwrap();
                bench.take(segment(Flags::SYN, 0, 0, 0));
            }
            State::Established => open(&mut bench),
            State::CloseWait | State::LastAck => {
                open(&mut bench);
                bench.take(segment(Flags::FIN | ack, 1, 0, 1));
            }
            _ => open(&mut bench),
        }
        bench.drain();
        if matches!(
            state,
            State::FinWait1 | State::FinWait2 | State::Closing | State::TimeWait | State::LastAck
        ) {
            bench.end.shutdown(now).unwrap();
            bench.drain();
        }
        match state {
            State::FinWait2 | State::TimeWait => {
                bench.take(segment(ack, 1, 0, 2));
            }
            State::Closing => {
                bench.take(segment(Flags::FIN | ack, 1, 0, 1));
            }
            _ => {}
        }
        if state == State::TimeWait {
            bench.take(segment(Flags::FIN | ack, 1, 0, 2));
        }
        assert_eq!(bench.end.state(), state);
        bench
    }

    fn take(&mut self, segment: Segment) -> String {
        self.end.handle_segment(self.now, &segment);
        self.drain()
    }

    /// What comes out, as text.
    fn drain(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..100 {
            match self.end.poll_output() {
                Output::Timeout(_) => return text,
                Output::Transmit(segment) => {
                    let place = segment.seq.get().wrapping_sub(ISS[0]) as i32;
                    let acked = segment.ack.get().wrapping_sub(PEER) as i32;
                    write!(text, " <{:?} {place}", segment.flags).unwrap();
                    if !segment.is_empty() {
                        write!(text, "+{}", segment.len()).unwrap();
                    }
                    if segment.flags.has(Flags::ACK) {
                        write!(text, " ack {acked}").unwrap();
                    }
                    text.push('>');
                }
                Output::Deliver(payload) => write!(text, " [{} octets]", payload.length.get()).unwrap(),
                Output::Event(event) => write!(text, " {event:?}").unwrap(),
                Output::Work(work) => panic!("{work:?} where none is to be put out"),
            }
        }
        panic!("no end of outputs: {text}");
    }
}

/// The places that the peer expects next and has next to send, once the connection is open.
fn peer_next(state: State) -> (u32, u32) {
    let acked = match state {
        State::FinWait2 | State::TimeWait => 2,
        _ => 1,
    };
    let fin_came = matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
    (if fin_came { 2 } else { 1 }, acked)
}

type Event = (&'static str, fn(&mut Bench, u32, u32) -> String);

const EVENTS: [Event; 22] = [
    ("connect", |bench, _, _| command(bench, |end, now| end.connect(now).map_err(|e| format!("{e}")))),
    ("listen", |bench, _, _| command(bench, |end, now| end.listen(now).map_err(|e| format!("{e}")))),
    ("send 10", |bench, _, _| {
        command(bench, |end, now| end.send(now, bytes(10)).map(|_| ()).map_err(|e| format!("{e}")))
    }),
    ("receive", |bench, _, _| {
        let read = bench.end.receive(bench.now, bytes(10));
        format!(" {read:?}{}", bench.drain())
    }),
    ("shutdown", |bench, _, _| command(bench, |end, now| end.shutdown(now).map_err(|e| format!("{e}")))),
    ("close", |bench, _, _| command(bench, |end, now| end.close(now).map_err(|e| format!("{e}")))),
    ("abort", |bench, _, _| command(bench, |end, now| end.abort(now).map_err(|e| format!("{e}")))),
    ("time passes", |bench, _, _| {
        bench.end.handle_timeout(bench.now + Span::from_ms(100));
        bench.drain()
    }),
    ("ten minutes pass", |bench, _, _| {
        bench.end.handle_timeout(bench.now + Span::from_s(600));
        bench.drain()
    }),
    ("no route", |bench, _, _| {
        bench.end.handle_unreachable(bench.now);
        bench.drain()
    }),
    ("SYN", |bench, _, _| bench.take(segment(Flags::SYN, 0, 0, 0))),
    ("SYN in window", |bench, from, ack| bench.take(segment(Flags::SYN | Flags::ACK, from + 5, 0, ack))),
    ("SYN,ACK", |bench, _, _| bench.take(segment(Flags::SYN | Flags::ACK, 0, 0, 1))),
    ("ACK", |bench, from, ack| bench.take(segment(Flags::ACK, from, 0, ack))),
    ("ACK of all", |bench, from, _| bench.take(segment(Flags::ACK, from, 0, 2))),
    ("ACK of the unsent", |bench, from, _| bench.take(segment(Flags::ACK, from, 0, 99))),
    ("text", |bench, from, ack| bench.take(segment(Flags::ACK, from, 10, ack))),
    ("text out of order", |bench, from, ack| bench.take(segment(Flags::ACK, from + 10, 10, ack))),
    ("text outside", |bench, from, ack| bench.take(segment(Flags::ACK, from + 99_999, 10, ack))),
    ("FIN", |bench, from, ack| bench.take(segment(Flags::FIN | Flags::ACK, from, 0, ack))),
    ("RST", |bench, from, ack| bench.take(segment(Flags::RST | Flags::ACK, from, 0, ack))),
    ("corrupted", |bench, from, ack| {
        bench.take(Segment { corrupted: true, ..segment(Flags::ACK, from, 10, ack) })
    }),
];

fn command(bench: &mut Bench, run: fn(&mut Endpoint, SimTime) -> Result<(), String>) -> String {
    match run(&mut bench.end, bench.now) {
        Ok(()) => bench.drain(),
        Err(error) => {
            let after = bench.drain();
            assert_eq!(after, "", "a command that is rejected changes nothing");
            format!(" refused: {error}")
        }
    }
}

fn table(challenge: bool) -> String {
    let mut table = String::new();
    for state in State::ALL {
        writeln!(table, "{state}").unwrap();
        for (name, event) in EVENTS {
            let mut bench = Bench::in_state(state, challenge);
            let (from, ack) = peer_next(state);
            let out = event(&mut bench, from, ack);
            let after = bench.end.state();
            let change = if after == state { String::new() } else { format!(" -> {after}") };
            writeln!(table, "  {name}:{out}{change}").unwrap();
        }
    }
    table
}

/// The whole table, as it was read against RFC 9293 §3.10. A change of it is a change of behaviour.
#[test]
fn every_state_answers_every_event_as_the_table_says() {
    let found = table(false);
    let expected = include_str!("states.txt");
    let different: Vec<_> = found.lines().zip(expected.lines()).filter(|(a, b)| a != b).collect();
    assert!(found == expected, "{different:#?}\n{found}");
}

/// RFC 5961 changes nothing else where all other numbers are right.
#[test]
fn with_challenges_only_a_syn_in_the_window_is_answered_otherwise() {
    let (plain, careful) = (table(false), table(true));
    let mut state = "";
    for (plain, careful) in plain.lines().zip(careful.lines()) {
        if !plain.starts_with(' ') {
            state = plain;
        } else if plain != careful {
            assert!(plain.starts_with("  SYN in window:"), "{state}: {careful}");
            assert!(careful.contains("ACK") && !careful.contains("RST"), "{state}: {careful}");
            assert!(!careful.contains("->"), "{state}: {careful}");
        }
    }
}

#[test]
fn with_challenges_a_reset_off_the_mark_ends_nothing() {
    for (challenge, survives) in [(true, true), (false, false)] {
        let mut bench = Bench::in_state(State::Established, challenge);
        let out = bench.take(segment(Flags::RST, 5, 0, 1));
        assert_eq!(bench.end.state() == State::Established, survives, "{out}");
        assert_eq!(out.contains("<ACK"), survives, "{out}");
    }
}

#[test]
fn a_reset_takes_a_passive_end_back_to_listen() {
    let mut bench = Bench::in_state(State::SynReceived, false);
    bench.take(segment(Flags::RST | Flags::ACK, 1, 0, 1));
    assert_eq!(bench.end.state(), State::Listen);
    let out = bench.take(segment(Flags::SYN, 0, 0, 0));
    assert_eq!(out, " <SYN,ACK 0 ack 1>");
}

#[test]
fn an_end_that_its_user_left_answers_text_with_a_reset() {
    let mut bench = Bench::in_state(State::Established, false);
    bench.end.close(bench.now).unwrap();
    bench.drain();
    bench.take(segment(Flags::ACK, 1, 0, 2));
    assert_eq!(bench.end.state(), State::FinWait2);
    let out = bench.take(segment(Flags::ACK, 1, 10, 2));
    assert!(out.contains("RST") && out.contains("Closed(Reset)"), "{out}");
}

#[test]
fn an_end_that_its_user_left_does_not_wait_for_ever() {
    let mut bench = Bench::in_state(State::Established, false);
    bench.end.close(bench.now).unwrap();
    bench.drain();
    bench.take(segment(Flags::ACK, 1, 0, 2));
    let start = bench.now;
    loop {
        match bench.end.poll_output() {
            Output::Timeout(Some(next)) => {
                bench.now = next;
                bench.end.handle_timeout(next);
            }
            Output::Timeout(None) => break,
            _ => {}
        }
    }
    assert_eq!(bench.end.state(), State::Closed);
    assert!(bench.now - start <= Span::from_s(760), "{}", bench.now);
}

#[test]
fn time_wait_gives_way_to_a_new_connection() {
    let bench = Bench::in_state(State::TimeWait, false);
    assert!(bench.end.gives_way_to(&segment(Flags::SYN, 77, 0, 0)));
    assert!(!bench.end.gives_way_to(&segment(Flags::SYN, 1, 0, 0)), "an old one");
    assert!(!bench.end.gives_way_to(&segment(Flags::SYN | Flags::ACK, 77, 0, 0)));
    assert!(!Bench::in_state(State::FinWait2, false).end.gives_way_to(&segment(Flags::SYN, 77, 0, 0)));
}
