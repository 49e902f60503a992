//! The same workload as in `tests/golden/pvm` gives the same packets: flags, lengths, tags and, where the
//! system speaks, octets, in the same order from each task or daemon to each.
//!
//! Which of two senders is first is chance there, so that each has an order of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wiretwin_msg::pvm::message::FragmentReceiver;
use wiretwin_msg::pvm::pack::Packed;
use wiretwin_msg::pvm::task::{Routing, Task, Value};
use wiretwin_msg::pvm::{Fragment, Octets, Packet, PvmError, Tid};
use wiretwin_units::Bytes;

use crate::testbed::{Machine, Process, Sent, packed};

const SIZES: [usize; 3] = [4, 4064, 10_000];
/// Between the programs' own messages; the tag has room for octets of padding.
const GREETING: u32 = 0x7FFF_FFFF;
const CONTROL: u32 = ((1 << 29) - 2) << 2;
const CONREQ: u32 = 0x8003_0001;
const DM_DB: u32 = 0x8002_0017;

/// What is compared of a packet or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    first: bool,
    last: bool,
    /// Headers and all.
    length: u64,
    /// Tag, context, encoding, and whether it waits.
    head: Option<(u32, u32, u32, bool)>,
    /// The octets, of the system.
    octets: Vec<u8>,
}

/// From whom to whom, and whether through the daemons.
type Flows = BTreeMap<(u32, u32, bool), Vec<Told>>;

/// A request of the mailbox, with zeros behind its name: PVM leaves there what was there.
fn without_fill(body: &[u8]) -> Vec<u8> {
    let mut octets = body.to_vec();
    let length = u32::from_be_bytes(octets[8..12].try_into().expect("four")) as usize;
    octets[12 + length..12 + length.next_multiple_of(4)].fill(0);
    octets
}

struct Capture {
    packets: Vec<(u32, Packet<Octets>)>,
    fragments: Vec<(u32, Fragment<Octets>)>,
}

fn golden(route: &str, size: usize) -> Capture {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/pvm/{route}-{size}.pcap"));
    let file = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut capture = Capture { packets: Vec::new(), fragments: Vec::new() };
    let mut streams: BTreeMap<u32, FragmentReceiver> = BTreeMap::new();
    let mut rest = &file[24..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().expect("four")) as usize;
        let ip = &rest[30..16 + length];
        rest = &rest[16 + length..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let (host, behind) = (u32::from(ip[15]), &ip[usize::from(ip[0] & 15) * 4..total]);
        match ip[9] {
            17 => capture.packets.push((host, Packet::parse(&behind[8..]).expect("a packet"))),
            6 => {
                let stream =
                    streams.entry(host).or_insert_with(|| FragmentReceiver::new(Bytes::new(1 << 16)));
                stream.handle_octets(&behind[usize::from(behind[12] >> 4) * 4..]).expect("fragments");
                while let Some(fragment) = stream.poll_fragment() {
                    capture.fragments.push((host, fragment));
                }
            }
            _ => {}
        }
    }
    capture
}

fn flows(capture: &Capture) -> Flows {
    let mut flows = Flows::new();
    // Of one message after the other from each to each.
    let mut of_system = BTreeMap::new();
    let mut put =
        |from: Tid, to: Tid, daemons: bool, first: Option<_>, last: bool, length: u64, body: &[u8]| {
            let key = (from.0, to.0, daemons);
            let head = first.map(|head: wiretwin_msg::pvm::Head| {
                (head.tag, head.context, head.encoding.0, head.wait != 0)
            });
            if let Some((tag, ..)) = head {
                of_system.insert(key, tag);
            }
            let tag = of_system.get(&key).copied().unwrap_or(0);
            // A port is chance.
            let octets = match tag {
                CONREQ | 0x8003_0002 => body[..4].to_vec(),
                DM_DB if body.len() > 12 => without_fill(body),
                tag if tag >= 1 << 31 => body.to_vec(),
                _ => Vec::new(),
            };
            flows.entry(key).or_default().push(Told { first: head.is_some(), last, length, head, octets });
        };
    for (_, packet) in capture.packets.iter().filter(|(_, packet)| packet.header.data) {
        let header = packet.header;
        let body = packet.body.as_slice();
        put(header.source, header.destination, true, packet.head, header.last, packet.length().get(), body);
    }
    for (_, fragment) in &capture.fragments {
        let body = fragment.body.as_slice();
        put(fragment.from, fragment.to, false, fragment.first, fragment.last, fragment.length().get(), body);
    }
    flows
}

/// Each packet with data is acknowledged by itself, in order, before the next.
fn acknowledgements_hold(capture: &Capture) {
    for host in [1, 2] {
        let sent = capture.packets.iter().filter(|(from, packet)| *from == host && packet.header.data);
        let numbers: Vec<u32> = sent.map(|(_, packet)| packet.header.sequence.get()).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1));
        let acknowledged =
            capture.packets.iter().filter(|(from, packet)| *from != host && !packet.header.data);
        let acknowledged: Vec<u32> =
            acknowledged.map(|(_, packet)| packet.header.acknowledged.get()).collect();
        assert_eq!(numbers, acknowledged);
    }
    for (_, packet) in capture.packets.iter().filter(|(_, packet)| !packet.header.data) {
        let header = packet.header;
        assert!(header.acknowledges && !header.first && !header.last && !header.finish);
        assert!(header.source.is_daemon() && header.destination.is_daemon());
        assert_eq!((header.sequence.get(), packet.length().get()), (0, 16));
    }
}

/// The name under which a rank of the capture was in the mailbox.
fn name_of(capture: &Capture, rank: usize) -> String {
    let text = |packet: &Packet<Octets>| String::from_utf8_lossy(packet.body.as_slice()).into_owned();
    let found = capture.packets.iter().find_map(|(_, packet)| {
        let text = text(packet);
        let at = text.find("wiretwin:")?;
        Some(text[at..].split(':').take(2).collect::<Vec<_>>().join(":"))
    });
    format!("{}:{rank}", found.expect("a name"))
}

struct Workload {
    machine: Machine,
    ranks: [(Process, Tid); 2],
}

impl Workload {
    fn send(&mut self, from: usize, tag: u32, text: &[u8]) {
        let to = self.ranks[1 - from].1;
        self.machine.send(self.ranks[from].0, to, tag, text);
    }

    fn recv(&mut self, at: usize, tag: u32) {
        let from = self.ranks[1 - at].1;
        self.machine.recv(self.ranks[at].0, Some(from), Some(tag));
    }

    fn exchange(&mut self, first: usize, tag: u32) {
        self.send(first, tag, b"");
        self.send(1 - first, tag, b"");
        self.recv(0, tag);
        self.recv(1, tag);
    }
}

/// What the ranks of the capture did: see its README, and the shim of PVM.
fn ours(route: &str, size: usize, theirs: &Capture) -> Capture {
    let mut machine = Machine::new(2);
    machine.routing = if route == "advise" { Routing::Direct } else { Routing::Never };
    machine.hold = false;
    // The console was there before, and has left.
    let (console, _) = machine.enrolled(1);
    machine.call(console, Task::exit).expect("it leaves");
    machine.finish();
    machine.wire.clear();
    let ranks = [machine.enrolled(1), machine.enrolled(2)];
    for (rank, &(process, tid)) in ranks.iter().enumerate() {
        let entry: Packed<Octets> = packed(&tid.0.to_be_bytes());
        let name = name_of(theirs, rank);
        assert_eq!(
            machine.call(process, |task, now| task.putinfo(now, &name, &entry, 0)),
            Ok(Value::Number(0))
        );
    }
    // Who asks for the connection, and whether the other has something to say before it is there.
    let asker = theirs.packets.iter().find(|(_, packet)| packet.head.is_some_and(|head| head.tag == CONREQ));
    let asker = asker.map_or(1, |(host, _)| *host as usize - 1);
    let user = |packet: &Packet<Octets>| packet.head.is_some_and(|head| head.tag == GREETING);
    let early = theirs.packets.iter().any(|(_, packet)| user(packet));
    let mut work = Workload { machine, ranks };
    for (process, _) in ranks {
        for rank in 0..2 {
            let name = name_of(theirs, rank);
            let found = work.machine.call(process, |task, now| task.recvinfo(now, &name, 0, 0));
            assert!(matches!(found, Ok(Value::Entry(_))), "{found:?}");
        }
        // The first one is done before the other.
        if process == ranks[asker].0 {
            work.send(asker, GREETING, b"");
        }
    }
    if route == "advise" {
        let (process, tid) = work.ranks[1 - asker];
        let peer = work.ranks[asker].1;
        let answered =
            |sent: &Sent| matches!(sent, Sent::Packet { packet, .. } if packet.header.source == tid);
        work.machine.run_until(|machine| {
            if early { machine.wire.iter().any(answered) } else { machine.task(process).has_route(peer) }
        });
    }
    work.send(1 - asker, GREETING, b"");
    work.recv(0, GREETING);
    work.recv(1, GREETING);
    work.exchange(asker, GREETING);
    work.exchange(asker, GREETING);
    work.exchange(asker, CONTROL);
    let padding = (size.wrapping_neg() & 3) as u32;
    let text = vec![0; size];
    let tag_of = |capture: &Capture, rank: usize| {
        let heads = capture.packets.iter().map(|(host, packet)| (*host, packet.head));
        let heads = heads.chain(capture.fragments.iter().map(|(host, fragment)| (*host, fragment.first)));
        let mut tags =
            heads.filter(|(host, _)| *host == rank as u32 + 1).filter_map(|(_, head)| Some(head?.tag));
        tags.find(|&tag| tag < 1 << 24).expect("its own message")
    };
    for rank in [0, 1] {
        let tag = tag_of(theirs, rank);
        assert_eq!(tag & 3, padding);
        work.send(rank, tag, &text);
        work.recv(1 - rank, tag);
    }
    work.exchange(1, CONTROL);
    for (process, _) in work.ranks {
        work.machine.call(process, Task::exit).expect("it leaves");
    }
    work.machine.finish();
    let mut capture = Capture { packets: Vec::new(), fragments: Vec::new() };
    for sent in work.machine.wire {
        match sent {
            Sent::Packet { from, packet } => capture.packets.push((from, packet)),
            Sent::Fragment { from, fragment } => capture.fragments.push((from, fragment)),
        }
    }
    capture
}

#[test]
fn packets_are_those_of_pvm() -> Result<(), PvmError> {
    for route in ["normal", "advise"] {
        for size in SIZES {
            let theirs = golden(route, size);
            let ours = ours(route, size, &theirs);
            acknowledgements_hold(&theirs);
            acknowledgements_hold(&ours);
            let (theirs, ours) = (flows(&theirs), flows(&ours));
            assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{route} {size}");
            for (key, theirs) in &theirs {
                let ours = &ours[key];
                for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                    assert_eq!(ours, theirs, "{route} {size}, {key:x?}, number {at}");
                }
                assert_eq!(ours.len(), theirs.len(), "{route} {size}, {key:x?}");
            }
        }
    }
    Ok(())
}
