//! Latencies by hand; connections made and refused; processes of one host; what programs may rely on.

use std::collections::{BTreeMap, VecDeque};

use wiretwin_msg::library::{CallError, Content, LibraryOutput, ListenerId};
use wiretwin_prog::{Comm, Incoming, Outcome as Ended, Outgoing, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

use super::super::Op;
use super::super::activity::Activity;
use super::super::echo::round_trips;
use super::super::tests::{PLAIN, SERIES_200, Want, json, lan};
use super::*;
use crate::SimComm;
use crate::local::run;

/// A daemon that makes the calls it was told, and keeps what they came to, as text, with the time.
pub(in super::super) struct Script {
    calls: VecDeque<Call>,
    asked: bool,
    pub(super) log: Vec<(u64, String)>,
}

impl Script {
    pub(super) fn new(calls: impl IntoIterator<Item = Call>) -> Self {
        Self { calls: calls.into_iter().collect(), asked: false, log: Vec::new() }
    }
}

impl Library for Script {
    fn progress(&mut self, _now: SimTime) {
        self.asked = false;
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        self.log.push((now.as_ps(), format!("{outcome:?}")));
    }

    fn poll_output(&mut self) -> LibraryOutput {
        if core::mem::replace(&mut self.asked, true) {
            return Output::Timeout(None);
        }
        self.calls.pop_front().map_or(Output::Timeout(None), Output::Transmit)
    }
}

mod circuits;
mod control;
mod over_udp;

const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;
const FRAMES: &str = r#"{"kind": "frames"}"#;
const SMALL: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;

fn framed() -> Want {
    Want { stack: "framed/tcp/aal5", switch: true, more: SOCKET, ..PLAIN }
}

/// A network with daemons besides.
fn with_daemons(daemons: Vec<(u32, Script)>) -> Lan {
    let mut lan = lan(&framed(), false);
    for (host, script) in daemons {
        lan.add_process(host);
        lan.runtimes.push(Runtime::new(Machine::Script(script)));
        let process = lan.runtimes.len() as u32 - 1;
        lan.give(process, Action::Progress { rank: process });
    }
    lan
}

fn log(lan: &Lan, daemon: usize) -> Vec<(u64, String)> {
    let Machine::Script(script) = &lan.runtimes[2 + daemon].machine else { panic!("a daemon") };
    script.log.clone()
}

fn words(octets: &[u8]) -> Content {
    let mut content = Content::new();
    content.push_octets(octets);
    content
}

fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

#[test]
fn a_framed_message_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // 4 octets behind a head of 16, 20 of TCP, 20 of IP, 18 of frame: 78, with 8 of preamble.
    let octets = 78;
    let library = price(Library, 4);
    let write = price(Trap, 0) + price(SocketSend, 0) + price(CopyIn, 20) + price(Mbuf, 0);
    let send = price(SegmentOut, 40) + price(Checksum, 40) + price(PacketOut, octets);
    let wire = (octets + 8) * 8 * 100_000 + 100_000;
    let receive = price(Interrupt, 0) + price(PacketIn, octets) + price(SegmentIn, 40) + price(Checksum, 40);
    // It slept in select, and then reads: a system call of its own.
    let read = price(ContextSwitch, 0)
        + price(Trap, 0)
        + price(SocketReceive, 0)
        + price(CopyOut, 20)
        + price(Mbuf, 0);
    let latency = library + write + send + wire + receive + read + library;
    let want = Want { stack: "framed/tcp/ethernet", adapter: FRAMES, switch: false, more: SMALL, ..PLAIN };
    let mut lan = lan(&want, true);
    let times = round_trips(&mut lan, Bytes::new(4), 20).expect("an echo that ends");
    assert!(times.iter().all(|time| time.as_ps() >= 2 * latency), "2 x {latency}: {times:?}");
    let besides = price(AckIn, 20) + price(AckIn, 20);
    let quick = times[5..].iter().filter(|time| time.as_ps() <= 2 * latency + besides).count();
    assert!(quick >= 10, "2 x {latency}: {times:?}");
    for anatomy in lan.anatomies() {
        let sum: Span =
            anatomy.parts.iter().map(|part| part.waited + (part.segment.end - part.segment.start)).sum();
        assert_eq!(sum, anatomy.ended - anatomy.begun);
    }
}

#[test]
fn a_head_makes_a_message_as_much_longer_on_the_wire() {
    // 40 octets of headers of TCP and IP, 8 of LLC/SNAP, 8 of AAL 5's trailer: 40 + 16 more are two cells.
    for (bytes, cells) in [(0, 2), (24, 2), (25, 3), (72, 3), (73, 4)] {
        let mut lan = lan(&framed(), false);
        round_trips(&mut lan, Bytes::new(bytes), 1).expect("an echo that ends");
        let first = lan.passed()[0].1.taken;
        // What acknowledges is a cell or two of its own.
        assert!((cells..cells + 3).contains(&first), "{bytes} bytes: {first} cells");
    }
}

#[test]
fn a_connection_is_made_carries_octets_both_ways_and_ends() {
    let server = Script::new([
        Call::Listen { port: 111 },
        Call::Accept { listener: ListenerId(0) },
        Call::Read { connection: ConnectionId(0), most: Bytes::new(3), wait: true },
        Call::Write { connection: ConnectionId(0), content: words(b"yes"), wait: true },
        Call::Read { connection: ConnectionId(0), most: Bytes::new(100), wait: true },
        Call::Close { connection: ConnectionId(0) },
    ]);
    let to = address(1, 111);
    let client = Script::new([
        // Once the other one listens.
        Call::Select { write: None, until: Some(SimTime::from_ps(1_000_000_000)), idle: false },
        Call::Connect { to },
        Call::Write { connection: ConnectionId(0), content: words(b"well"), wait: true },
        Call::Read { connection: ConnectionId(0), most: Bytes::new(100), wait: true },
        Call::Close { connection: ConnectionId(0) },
    ]);
    for host in [0, 1] {
        let scripts =
            vec![(1, Script::new(server_calls(&server))), (host, Script::new(server_calls(&client)))];
        let mut lan = with_daemons(scripts);
        assert!(!lan.step(), "no rank goes on");
        let told: Vec<String> = log(&lan, 0).into_iter().map(|line| line.1).collect();
        assert!(told[0].starts_with("Listening"), "{told:?}");
        assert!(told[1].contains(&format!("host: {host}")), "{told:?}");
        assert!(told[2].contains("[119, 101, 108]") && told[4].contains("[108]"), "{told:?}");
        let told = log(&lan, 1);
        assert!(told[0].0 >= 1_000_000_000 && told[0].1 == "Ready([])", "{told:?}");
        assert!(told[1].1.starts_with("Connected") && told[3].1.contains("[121, 101, 115]"), "{told:?}");
        assert!(told[4].1.starts_with("Closed"), "{told:?}");
        let cells: u64 = lan.passed().iter().map(|one| one.1.taken).sum();
        assert_eq!(cells > 0, host == 0, "within a host nothing comes to the adapter");
    }
}

/// The calls of a script, to make another of them.
fn server_calls(script: &Script) -> Vec<Call> {
    let copy = |call: &Call| match call {
        Call::Listen { port } => Call::Listen { port: *port },
        Call::Accept { listener } => Call::Accept { listener: *listener },
        Call::Connect { to } => Call::Connect { to: *to },
        Call::Read { connection, most, wait } => {
            Call::Read { connection: *connection, most: *most, wait: *wait }
        }
        Call::Close { connection } => Call::Close { connection: *connection },
        Call::Select { write, until, idle } => Call::Select { write: *write, until: *until, idle: *idle },
        Call::Write { connection, content, wait } => {
            let octets: &[u8] = if content.length() == Bytes::new(3) { b"yes" } else { b"well" };
            Call::Write { connection: *connection, content: words(octets), wait: *wait }
        }
        other => panic!("{other:?} is in no script"),
    };
    script.calls.iter().map(copy).collect()
}

#[test]
fn nobody_at_a_port_and_a_port_that_is_taken_are_refused_by_name() {
    let to = address(1, 9);
    let asked = [
        Call::Connect { to },
        Call::Listen { port: 7 },
        Call::Listen { port: 7 },
        Call::Bind { port: 7 },
        Call::Read { connection: ConnectionId(4), most: Bytes::new(1), wait: true },
    ];
    let mut lan = with_daemons(vec![(0, Script::new(asked))]);
    assert!(!lan.step());
    let told: Vec<String> = log(&lan, 0).into_iter().map(|line| line.1).collect();
    let failed = |error: CallError| format!("{:?}", Outcome::Failed(error));
    assert_eq!(told[0], failed(CallError::Refused { to }));
    assert!(told[1].starts_with("Listening"));
    assert_eq!(told[2], failed(CallError::PortTaken { port: 7 }));
    assert!(told[3].starts_with("Bound"), "a port of UDP is another than one of TCP");
    assert!(told[4].starts_with("Ended"));
}

#[test]
fn datagrams_come_whole_from_a_host_and_its_neighbour_and_one_too_long_goes_nowhere() {
    let socket = wiretwin_msg::library::SocketId(0);
    for stack in ["framed/tcp/aal5", "framed/tcp/ethernet"] {
        let frames = stack.ends_with("ethernet");
        let (adapter, more) = if frames { (FRAMES, SMALL) } else { (PLAIN.adapter, SOCKET) };
        let mut lan = lan(&Want { stack, switch: !frames, adapter, more, ..PLAIN }, false);
        let to = address(0, 5);
        let send = |to, octets: u64| {
            let mut content = Content::new();
            content.push_octets(b"head");
            content.push_zeros(octets - 4);
            Call::SendTo { socket, to, content }
        };
        let receive = |wait| Call::ReceiveFrom { socket, wait };
        let taker = [Call::Bind { port: 5 }, receive(false), receive(true), receive(true), receive(false)];
        let sender = |port| {
            [
                Call::Bind { port },
                send(to, 5000),
                send(to, 9217),
                send(address(0, 77), 10),
                send(address(9, 5), 10),
            ]
        };
        let daemons =
            [(0, taker.into_iter().collect::<Vec<_>>()), (1, sender(6).into()), (0, sender(6).into())];
        for (host, calls) in daemons {
            lan.add_process(host);
            lan.runtimes.push(Runtime::new(Machine::Script(Script::new(calls))));
            let process = lan.runtimes.len() as u32 - 1;
            lan.give(process, Action::Progress { rank: process });
        }
        assert!(!lan.step(), "nothing is left to do");
        let told = |daemon| log(&lan, daemon).into_iter().map(|line| line.1).collect::<Vec<_>>();
        let taken = told(0);
        assert_eq!(taken.len(), 5, "{stack}: {taken:?}");
        assert!(taken[1].starts_with("Empty") && taken[4].starts_with("Empty"));
        for from in ["host: 0, port: 6", "host: 1, port: 6"] {
            let whole = |line: &&String| line.contains(from) && line.contains("length: 5000");
            assert_eq!(taken[2..4].iter().filter(whole).count(), 1, "{stack}: {taken:?}");
        }
        let sent = told(1);
        assert!(sent[1].starts_with("Sent") && sent[3].starts_with("Sent") && sent[4].starts_with("Sent"));
        assert!(sent[2].contains("TooLong"), "{}", sent[2]);
    }
}

#[test]
fn fragments_of_datagrams_that_are_never_whole_leave_nothing_behind() {
    let socket = wiretwin_msg::library::SocketId(0);
    for (stack, sent) in [("framed/tcp/ethernet", 40), ("framed/tcp/aal5", 40), ("framed/tcp/ethernet", 1)] {
        let frames = stack.ends_with("ethernet");
        let (adapter, network) = if frames { (FRAMES, SMALL) } else { (PLAIN.adapter, SMALL) };
        let want = Want { stack, switch: !frames, adapter, more: network, ..PLAIN };
        // Of a single one every fragment is lost; of forty, some of most.
        let error = if sent == 1 { "0.01" } else { "0.00001" };
        let text = json(&want).replacen('{', &format!("{{\"bit_error\": {error},"), 1);
        let config = Config::from_json(&text).expect("a network that can be");
        let mut lan = Lan::new(config, 7, false);
        let taker = core::iter::once(Call::Bind { port: 5 })
            .chain((0..=sent).map(|_| Call::ReceiveFrom { socket, wait: true }));
        let sender = core::iter::once(Call::Bind { port: 6 }).chain((0..sent).map(|_| {
            let mut content = Content::new();
            content.push_zeros(5000);
            Call::SendTo { socket, to: address(0, 5), content }
        }));
        for (host, calls) in [(0, taker.collect::<Vec<_>>()), (1, sender.collect())] {
            lan.add_process(host);
            lan.runtimes.push(Runtime::new(Machine::Script(Script::new(calls))));
            let process = lan.runtimes.len() as u32 - 1;
            lan.give(process, Action::Progress { rank: process });
        }
        assert!(!lan.step(), "nothing is left to do");
        // What is never whole keeps no run alive, and is given up where one goes on.
        assert!(lan.now().as_ps() < 30_000_000_000_000 && (sent == 1 || lan.datagrams.kept().1 > 0));
        lan.post(0, Op::Compute(Span::from_s(31))).expect("a rank that runs");
        lan.post(0, Op::wait(&[])).expect("a rank that runs");
        assert!(lan.step());
        let came = log(&lan, 0).len() as u64 - 1;
        let losses = lan.losses();
        if sent == 1 {
            assert_eq!((came, lan.datagrams.kept()), (0, (0, 0)), "{losses:?}");
            continue;
        }
        assert!(came > 2 && losses.datagrams > 2 && came + losses.datagrams <= sent, "{came}: {losses:?}");
        // On a circuit the last ones are known to be lost when another comes.
        let (kept, held) = lan.datagrams.kept();
        assert!(held == 0 && kept <= if frames { 0 } else { 2 }, "{stack}: {kept} kept, {held} held");
    }
}

#[test]
fn the_end_of_a_peer_wakes_who_reads() {
    let server = [Call::Listen { port: 5 }, Call::Accept { listener: ListenerId(0) }];
    let read = Call::Read { connection: ConnectionId(0), most: Bytes::new(1), wait: true };
    let close = Call::Close { connection: ConnectionId(0) };
    let later = Call::Select { write: None, until: Some(SimTime::from_ps(1 << 40)), idle: false };
    let reader = Script::new([Call::Connect { to: address(1, 5) }, read]);
    let server = Script::new(server.into_iter().chain([later, close]));
    let mut lan = with_daemons(vec![(1, server), (0, reader)]);
    assert!(!lan.step());
    let told = log(&lan, 1);
    assert!(told[1].1.starts_with("Ended") && told[1].0 > 1 << 40, "{told:?}");
}

#[test]
fn a_time_on_which_nothing_hangs_keeps_no_run_alive() {
    for (idle, long) in [(true, false), (false, true)] {
        let wait = Call::Select { write: None, until: Some(SimTime::from_ps(1 << 45)), idle };
        let mut lan = with_daemons(vec![(0, Script::new([wait]))]);
        assert!(!lan.step());
        assert_eq!(log(&lan, 0).len() == 1, long);
        assert_eq!(lan.now().as_ps() >= 1 << 45, long);
    }
}

// What programs may rely on.

fn program<P>(want: &Want, program: P)
where
    P: AsyncFn(&mut SimComm) -> Result<(), wiretwin_prog::ProgramError> + Clone + 'static,
{
    let whole = async move |comm: &mut SimComm| {
        program(comm).await?;
        Ok(Ended::new(Span::ZERO, 0, true))
    };
    run(lan(want, false), BTreeMap::new(), whole).expect("a run that ends");
}

/// Every message layer.
const LAYERS: [&str; 7] = [
    "fore+reliable/aal5",
    "pvm-fore/aal34",
    "framed/tcp/aal5",
    "mpi-lam/tcp/aal5",
    "mpi-mpich/tcp/aal5",
    "pvm-advise/tcp/aal5",
    "pvm-normal/udp/aal5",
];

const SIZES: [usize; 7] = [0, 1, 100, 4097, 40_000, 300_000, 1 << 21];

#[test]
fn messages_of_every_size_come_whole_and_in_order_also_to_oneself() {
    for stack in LAYERS {
        program(&Want { stack, ..framed() }, async move |comm: &mut SimComm| {
            let (rank, other) = (comm.rank(), Rank(1 - comm.rank().0));
            for (number, size) in SIZES.into_iter().enumerate() {
                let message: Vec<u8> = (0..size).map(|at| (at * 7 + number) as u8).collect();
                for to in [rank, other] {
                    let (mut first, mut second) = (vec![0; size], vec![0; 1]);
                    let sends = [
                        Outgoing { to, tag: Tag(3), message: &message },
                        Outgoing { to, tag: Tag(3), message: &[number as u8] },
                    ];
                    let receive = |buffer| Incoming {
                        from: Source::Any,
                        tag: TagMatch::Tag(Tag(3)),
                        buffer,
                        status: None,
                    };
                    comm.exchange(&sends, &mut [receive(&mut first), receive(&mut second)]).await?;
                    assert_eq!(
                        (first == message, &second[..]),
                        (true, &[number as u8][..]),
                        "{stack}, {size} bytes"
                    );
                }
            }
            Ok(())
        });
    }
}

#[test]
fn wildcards_take_anyone_and_tags_are_kept_apart() {
    for stack in LAYERS {
        let want = Want { stack, hosts: 4, adapter: SERIES_200, ..framed() };
        program(&want, async |comm: &mut SimComm| {
            let mut buffer = [0; 8];
            if comm.rank() == Rank(0) {
                let mut seen = [0; 4];
                for _ in 0..6 {
                    let status = comm.recv(Source::Any, TagMatch::Tag(Tag(1)), &mut buffer).await?;
                    seen[status.source.0 as usize] += 1;
                    assert_eq!(buffer[0], status.source.0 as u8);
                }
                assert_eq!(seen, [0, 2, 2, 2]);
                for from in 1..4 {
                    let status = comm.recv(Source::Rank(Rank(from)), TagMatch::Any, &mut buffer).await?;
                    assert_eq!((status.tag, status.bytes), (Tag(9), Bytes::new(0)));
                }
            } else {
                let rank = comm.rank().0 as u8;
                comm.send(Rank(0), Tag(9), &[]).await?;
                for _ in 0..2 {
                    comm.send(Rank(0), Tag(1), &[rank; 8]).await?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for stack in LAYERS {
        let times = || {
            let mut lan = lan(&Want { stack, background: true, ..framed() }, false);
            (round_trips(&mut lan, Bytes::new(20_000), 10).expect("an echo that ends"), lan.digest())
        };
        assert_eq!(times(), times());
    }
    assert!(json(&framed()).contains("framed/tcp/aal5"));
}

// Remote procedure calls

fn rpc() -> Want {
    Want { stack: "rpc/tcp/aal5", ..framed() }
}

#[test]
fn a_call_and_its_reply_are_an_echo_and_the_first_one_asks_the_port_mapper() {
    for bytes in [0, 1, 1000, 10_000, 100_000] {
        let mut lan = lan(&rpc(), true);
        let times = round_trips(&mut lan, Bytes::new(bytes), 6).expect("an echo that ends");
        let later = times[2..].iter().max().expect("six");
        assert!(times[0].as_ps() > later.as_ps() + price(Activity::RpcHead, 40), "{times:?}");
        for anatomy in lan.anatomies() {
            let busy = |part: &super::super::trail::Part| part.segment.end - part.segment.start;
            let sum: Span = anatomy.parts.iter().map(|part| part.waited + busy(part)).sum();
            assert_eq!(sum, anatomy.ended - anatomy.begun, "{bytes} bytes");
        }
        assert_eq!(lan.anatomies().len(), 12);
    }
}

#[test]
fn a_call_takes_the_cells_of_its_octets() {
    // 8 of LLC/SNAP, 40 of TCP and IP, a mark of 4, a head of 40 or 24, a length of 4, 8 of AAL 5: 100 octets are
    // 204 there and 188 back.
    let count = |rounds| {
        let mut lan = lan(&rpc(), false);
        round_trips(&mut lan, Bytes::new(100), rounds).expect("an echo that ends");
        let passed = lan.passed();
        (passed[0].1.taken, passed[2].1.taken)
    };
    let ((there, back), (more_there, more_back)) = (count(5), count(6));
    assert_eq!((more_there - there, more_back - back), (5, 4));
}

#[test]
fn a_send_that_nothing_follows_is_a_call_that_nobody_waits_for() {
    program(&Want { hosts: 3, ..rpc() }, async |comm: &mut SimComm| {
        let mut buffer = [0; 4];
        if comm.rank() == Rank(0) {
            let mut seen = [0; 3];
            for _ in 0..4 {
                let status = comm.recv(Source::Any, TagMatch::Tag(Tag(7)), &mut buffer).await?;
                seen[status.source.0 as usize] += 1;
            }
            assert_eq!(seen, [0, 2, 2]);
        } else {
            comm.send(Rank(0), Tag(7), b"oneA").await?;
            comm.send(Rank(0), Tag(7), b"oneB").await?;
        }
        Ok(())
    });
}

#[test]
fn what_calls_cannot_be_is_refused_and_two_that_call_each_other_time_out() {
    let whole = async |comm: &mut SimComm| {
        let other = Rank(1 - comm.rank().0);
        let error = comm.send(comm.rank(), Tag(0), &[1]).await.expect_err("to itself");
        assert!(error.to_string().contains("a message to the rank itself"), "{error}");
        let error = comm.send(other, Tag(64), &[1]).await.expect_err("a tag");
        assert!(error.to_string().contains("a tag is a procedure"), "{error}");
        comm.send(other, Tag(1), &[1]).await?;
        comm.recv(Source::Rank(other), TagMatch::Any, &mut [0; 4]).await?;
        Ok(Ended::new(Span::ZERO, 0, true))
    };
    let error = run(lan(&rpc(), false), BTreeMap::new(), whole).err().expect("nobody serves");
    assert!(error.to_string().contains("nothing came within 25000000000000 ps"), "{error}");
}
