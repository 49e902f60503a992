//! Arbitrary octets as a stream of PVM's fragments, as a datagram, and as a message that is unpacked; and
//! what they are to a daemon and a task in each of their states.

use wiretwin_msg::pvm::daemon::{Config, DATAGRAM_OCTETS, Daemon, HostEntry, StreamId, Timing};
use wiretwin_msg::pvm::group::Server;
use wiretwin_msg::pvm::message::FragmentReceiver;
use wiretwin_msg::pvm::system::{CONTEXT_GROUPS, CONTEXT_TC, CONTEXT_TM, tag};
use wiretwin_msg::pvm::task::{self, Routing, Task};
use wiretwin_msg::pvm::{Fragment, Head, Message, Octets, Packet, Signature, Tid, fuzz};
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime, Span};

const NOW: SimTime = SimTime::ZERO;

/// Panics if fragments depend on how their stream was cut, if what is read is not what is written, or if
/// an empty buffer gives an item; if a daemon or a task never stops, or if one that is
/// gone says anything.
pub fn check(octets: &[u8]) {
    let step = usize::from(octets.first().copied().unwrap_or(0));
    fuzz::same_however_cut(octets, step);
    fuzz::read_arbitrary(octets);
    let mut receiver = FragmentReceiver::new(Bytes::new(1 << 16));
    // An error ends the stream; what came before it is taken.
    let _ended = receiver.handle_octets(octets);
    let fragments: Vec<Fragment<Octets>> = core::iter::from_fn(|| receiver.poll_fragment()).collect();
    to_daemon(octets, &fragments);
    for stage in 0..5 {
        to_task(stage, &fragments);
    }
    // And as what each request of the system might say.
    let (&[how, context, ..], body) = (octets, octets.get(2..).unwrap_or_default()) else { return };
    let tags = [tag::TM_CONNECT, 0x8002_0001, tag::TC_CONREQ, 0];
    let tag = tags[usize::from(how >> 6)] + u32::from(how & 31);
    let contexts = [CONTEXT_TM, CONTEXT_TC, CONTEXT_GROUPS, 0];
    let (wait, from) = (u32::from(context >> 2 & 7), Tid(0x8_0001));
    let context = contexts[usize::from(context & 3)];
    let head = Head { encoding: Signature::XDR, tag, context, wait };
    let parts = vec![Octets::from(body.to_vec())];
    for to in [Tid::MY_DAEMON, Tid(0x8004_0000), Tid(0x4_0001)] {
        let message = Message { to, from, head, parts: parts.clone() };
        let fragments: Vec<_> = message.fragments().collect();
        to_daemon(octets, &fragments);
        (0..5).for_each(|stage| to_task(stage, &fragments));
    }
}

fn to_daemon(octets: &[u8], fragments: &[Fragment<Octets>]) {
    let host = |number| HostEntry { number, name: format!("h{number}"), architecture: "x".into() };
    let config = Config {
        host: 1,
        master: 1,
        hosts: vec![host(1), host(2)],
        timing: Timing::default(),
        datagram: DATAGRAM_OCTETS,
        address: String::new(),
    };
    let mut daemon: Daemon<Octets> = Daemon::new(config, NOW).expect("two hosts");
    let known = StreamId(1);
    assert!(daemon.attach(known).is_some());
    daemon.handle_connected(NOW, StreamId(2));
    for fragment in fragments {
        daemon.handle_fragment(NOW, known, fragment.clone());
        daemon.handle_fragment(NOW, StreamId(2), fragment.clone());
        drain(&mut daemon);
    }
    // As of the other daemon: a numbered packet, and what the octets themselves say.
    for (number, fragment) in fragments.iter().enumerate() {
        let mut octets = vec![0; 16];
        octets[..4].copy_from_slice(&fragment.to.0.to_be_bytes());
        octets[4..8].copy_from_slice(&Tid::daemon(2).expect("a host").0.to_be_bytes());
        octets[9] = number as u8 + 1;
        octets[12] = 4 | u8::from(fragment.first.is_some()) | u8::from(fragment.last) << 1;
        octets.extend(fragment.octets().expect("short").expect("octets").into_iter().skip(16));
        daemon.handle_datagram(NOW, 2, Packet::parse(&octets).expect("a packet"));
        drain(&mut daemon);
    }
    if let Ok(packet) = Packet::parse(octets) {
        daemon.handle_datagram(NOW, 2, packet);
    }
    daemon.handle_timeout(NOW + Span::from_s(100));
    drain(&mut daemon);
    daemon.handle_closed(NOW, known);
    daemon.handle_closed(NOW, StreamId(2));
    drain(&mut daemon);
}

fn drain(daemon: &mut Daemon<Octets>) {
    for _ in 0..100_000 {
        match daemon.poll_output() {
            Output::Timeout(_) => return,
            Output::Deliver(wiretwin_msg::pvm::daemon::Demand::Spawn { id, .. }) => {
                daemon.handle_spawned(NOW, id, Err(wiretwin_msg::pvm::PvmError::NoFile));
            }
            _ => {}
        }
    }
    panic!("a daemon that never stops");
}

/// A task that is apart, connecting, asking, enrolled, or gone.
fn to_task(stage: u8, fragments: &[Fragment<Octets>]) {
    let config = task::Config { routing: Routing::Direct, ..task::Config::default() };
    let peer = Tid(0x8_0001);
    let mut server = Server::new(match stage {
        0..=2 => Task::new(config),
        _ => Task::joined(config, Tid(0x4_0001), [peer]),
    });
    if stage > 0 {
        server.task.enrol(NOW);
    }
    if stage == 2 {
        server.task.handle_daemon_open(NOW);
    }
    if stage == 4 {
        server.task.handle_daemon_closed(NOW);
    }
    let gone = server.task.state() == task::State::Gone;
    outputs(&mut server);
    for fragment in fragments {
        server.task.handle_daemon_fragment(NOW, fragment.clone());
        server.task.handle_fragment(NOW, peer, fragment.clone());
        let said = outputs(&mut server);
        assert!(!gone || !said, "one that is gone says nothing");
    }
    server.task.handle_bound(NOW, fragments.first().map_or(peer, |fragment| fragment.from), "0:0");
    server.task.handle_route_open(NOW, peer);
    server.task.handle_route_closed(NOW, peer);
    outputs(&mut server);
}

/// Whether anything was sent.
fn outputs(server: &mut Server<Octets>) -> bool {
    let mut said = false;
    for _ in 0..100_000 {
        match server.poll_output(NOW) {
            Output::Timeout(_) => return said,
            Output::Transmit(_) => said = true,
            _ => {}
        }
    }
    panic!("a task that never stops");
}
