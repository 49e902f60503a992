//! Every event meets every state of a task, and every stage of a connection.

use std::fmt::Write;

use wiretwin_msg::pvm::pack::Packed;
use wiretwin_msg::pvm::system::{CONTEXT_TC, CONTEXT_TM, Put, tag};
use wiretwin_msg::pvm::task::{Config, Event, Routing, State, Task, Transmit};
use wiretwin_msg::pvm::{Head, Message, Octets, Signature, Tid};
use wiretwin_proto::Output;
use wiretwin_units::SimTime;

const NOW: SimTime = SimTime::ZERO;
const MINE: Tid = Tid(0x8_0001);
const LOWER: Tid = Tid(0x4_0001);
const HIGHER: Tid = Tid(0xC_0001);

/// Something done to a task.
type Deed<'a> = &'a dyn Fn(&mut Task<Octets>);
/// The same, of another task.
type DeedOf<'a> = &'a dyn Fn(&mut Task<Octets>, Tid);

fn task() -> Task<Octets> {
    Task::new(Config { routing: Routing::Direct, ..Config::default() })
}

fn system(tag: u32, wait: u32, from: Tid, context: u32, put: Put) -> Message<Octets> {
    let head = Head { encoding: Signature::XDR, tag, context, wait };
    Message { to: MINE, from, head, parts: put.parts() }
}

fn from_daemon(task: &mut Task<Octets>, message: &Message<Octets>) {
    message.fragments().for_each(|fragment| task.handle_daemon_fragment(NOW, fragment));
}

/// What a task has done: its letters, in order.
fn said(task: &mut Task<Octets>) -> String {
    let mut said = String::new();
    loop {
        said.push(match task.poll_output() {
            Output::Timeout(_) => return said,
            Output::Transmit(Transmit::ConnectDaemon | Transmit::Connect { .. }) => 'C',
            Output::Transmit(Transmit::WriteDaemon(_)) => 'w',
            Output::Transmit(Transmit::Write { .. }) => 'W',
            Output::Transmit(Transmit::Listen(_)) => 'L',
            Output::Transmit(Transmit::Prove(_)) => 'P',
            Output::Transmit(Transmit::Close) => 'X',
            Output::Deliver(answer) if answer.result.is_ok() => 'a',
            Output::Deliver(_) => 'f',
            Output::Event(Event::Enrolled(_)) => 'E',
            Output::Event(Event::Lost(_)) => 'l',
            Output::Event(Event::RouteOpen(_)) => 'O',
            Output::Event(Event::RouteRefused(_)) => 'R',
            Output::Event(Event::RouteLost(_)) => 'Q',
            Output::Event(Event::Arrived) => 'M',
            Output::Event(Event::Garbage(_)) => 'g',
            Output::Work(_) => continue,
        });
    }
}

fn connect_answer() -> Message<Octets> {
    system(tag::TM_CONNECT, 0, Tid::MY_DAEMON, CONTEXT_TM, Put::new().int(1318).int(1).text("/file"))
}

fn number() -> Message<Octets> {
    let put = Put::new().int(1).tid(MINE).int(0).ints(&[0; 6]).int(4080).int(0).text("0:0").int(0);
    system(tag::TM_CONN2, 0, Tid::MY_DAEMON, CONTEXT_TM, put)
}

fn nothing_found() -> Message<Octets> {
    system(tag::TM_DB, 1, Tid::MY_DAEMON, CONTEXT_TM, Put::new().int(-32))
}

/// A message is sent, whether that is refused or not.
fn send(task: &mut Task<Octets>, to: Tid) {
    let _refused = task.send(NOW, to, 1, Packed::empty());
}

fn exit(task: &mut Task<Octets>) {
    let _refused = task.exit(NOW);
}

fn text() -> Message<Octets> {
    system(5, 0, LOWER, 0, Put::new().int(1))
}

/// A task that has come to a state by the way there is.
fn at(state: State) -> Task<Octets> {
    let mut task = task();
    let steps: [Deed<'_>; 6] = [
        &|task| task.enrol(NOW),
        &|task| task.handle_daemon_open(NOW),
        &|task| from_daemon(task, &connect_answer()),
        &|task| from_daemon(task, &number()),
        &|task| from_daemon(task, &nothing_found()),
        &exit,
    ];
    for step in steps {
        if task.state() == state {
            break;
        }
        step(&mut task);
    }
    if state == State::Gone {
        task.handle_daemon_closed(NOW);
    }
    assert_eq!(task.state(), state);
    said(&mut task);
    task
}

const STATES: [State; 8] = [
    State::Apart,
    State::Connecting,
    State::Asking,
    State::Proving,
    State::Tracing,
    State::Enrolled,
    State::Leaving,
    State::Gone,
];

#[test]
fn every_event_meets_every_state_of_a_task() {
    let events: [(&str, Deed<'_>); 9] = [
        ("enrol", &|task| task.enrol(NOW)),
        ("open", &|task| task.handle_daemon_open(NOW)),
        ("closed", &|task| task.handle_daemon_closed(NOW)),
        ("connect", &|task| from_daemon(task, &connect_answer())),
        ("number", &|task| from_daemon(task, &number())),
        ("found", &|task| from_daemon(task, &nothing_found())),
        ("message", &|task| from_daemon(task, &text())),
        ("send", &|task| send(task, MINE)),
        ("exit", &exit),
    ];
    let mut table = String::new();
    for (name, event) in events {
        write!(table, "{name}:").expect("a string");
        for state in STATES {
            let mut task = at(state);
            event(&mut task);
            let said = said(&mut task);
            let to = STATES.iter().position(|&one| one == task.state()).expect("a state");
            write!(table, " {said}{to}").expect("a string");
        }
        table.push('\n');
    }
    assert_eq!(table, TASK, "\n{table}");
}

/// By event: for each state what was said, and the number of the state after it.
const TASK: &str = "\
enrol: C1 1 2 3 4 5 6 7
open: 0 w2 2 3 4 5 6 7
closed: 0 Xl7 Xl7 Xl7 Xl7 Xl7 Xa7 7
connect: g0 g1 Pw3 g3 g4 g5 g6 g7
number: g0 g1 g2 w4 g4 g5 g6 g7
found: g0 g1 g2 g3 E5 g5 g6 g7
message: g0 g1 g2 g3 M4 M5 g6 g7
send: 0 1 2 3 4 wa5 6 7
exit: 0 1 2 3 4 w6 6 7
";

#[test]
fn every_event_meets_every_stage_of_a_connection() {
    let request = |peer| system(tag::TC_CONREQ, 0, peer, CONTEXT_TC, Put::new().int(1318).text("0:1"));
    let answer = |peer, refusal: i32| {
        system(tag::TC_CONACK, 0, peer, CONTEXT_TC, Put::new().int(1318).int(refusal).text("0:1"))
    };
    let end = |peer: Tid| system(tag::TC_TASKEXIT, 0, Tid::MY_DAEMON, CONTEXT_TC, Put::new().tid(peer));
    let stages: [(&str, DeedOf<'_>); 8] = [
        ("none", &|_, _| {}),
        ("preparing", &send),
        ("asked", &|task, peer| {
            send(task, peer);
            task.handle_bound(NOW, peer, "0:0");
        }),
        ("connecting", &|task, peer| {
            send(task, peer);
            task.handle_bound(NOW, peer, "0:0");
            from_daemon(task, &answer(peer, 0));
        }),
        ("answering", &|task, peer| from_daemon(task, &request(peer))),
        ("granted", &|task, peer| {
            from_daemon(task, &request(peer));
            task.handle_bound(NOW, peer, "0:0");
        }),
        ("open", &|task, peer| {
            from_daemon(task, &request(peer));
            task.handle_bound(NOW, peer, "0:0");
            task.handle_route_open(NOW, peer);
        }),
        ("refused", &|task, peer| {
            send(task, peer);
            task.handle_bound(NOW, peer, "0:0");
            from_daemon(task, &answer(peer, 1));
        }),
    ];
    let events: [(&str, DeedOf<'_>); 8] = [
        ("send", &send),
        ("bound", &|task, peer| task.handle_bound(NOW, peer, "0:0")),
        ("open", &|task, peer| task.handle_route_open(NOW, peer)),
        ("closed", &|task, peer| task.handle_route_closed(NOW, peer)),
        ("request", &|task, peer| from_daemon(task, &request(peer))),
        ("granted", &|task, peer| from_daemon(task, &answer(peer, 0))),
        ("refused", &|task, peer| from_daemon(task, &answer(peer, 1))),
        ("ended", &|task, peer| from_daemon(task, &end(peer))),
    ];
    let mut table = String::new();
    for (stage, bring) in stages {
        write!(table, "{stage}:").expect("a string");
        for (_, event) in events {
            for peer in [LOWER, HIGHER] {
                let mut task = at(State::Enrolled);
                bring(&mut task, peer);
                said(&mut task);
                event(&mut task, peer);
                let said = said(&mut task);
                write!(table, " {}", if said.is_empty() { "-" } else { &said }).expect("a string");
            }
        }
        table.push('\n');
    }
    assert_eq!(table, ROUTES, "\n{table}");
}

/// By stage: for each event, of a task with a lower and with a higher number, what was said.
const ROUTES: &str = "\
none: L L - - - - - - L L g g g g - -
preparing: - - ww ww - - Rwa Rwa - - g g g g Rwa Rwa
asked: - - - - - - Rwa Rwa w - C C Rwa Rwa Rwa Rwa
connecting: - - - - OWa OWa Rwa Rwa w w g g g g Rwa Rwa
answering: - - w w - - R R w w g g g g R R
granted: - - - - O O R R w w g g g g R R
open: Wa Wa - - - - Q Q w w g g g g - -
refused: wa wa - - - - R R L L g g g g R R
";
