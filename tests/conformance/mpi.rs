//! MPI message layers over a live communicator: their packets are its messages, and each end first
//! tells the other what it is set to.

use std::collections::BTreeMap;
use std::time::Duration;

use wiretwin_host::{Mesh, ShmStream, SocketStream, Wait};
use wiretwin_msg::library::Request;
use wiretwin_msg::matching::{Envelope, Pattern};
use wiretwin_msg::mpi::{
    Data, Done, Event, Failure, Flow, Incoming, Kind, Machine, Outgoing, Packet, Policy, Received,
    SynchronousSend, Terms, Transmit,
};
use wiretwin_msg::protocol::Mode;
use wiretwin_prog::{Comm, Rank, Source, Tag, TagMatch};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_tests::message;
use wiretwin_units::{Bytes, SimTime};

const NOW: SimTime = SimTime::ZERO;
/// No wait is longer: an end that waits for the other in vain fails.
const LIMIT: Duration = Duration::from_secs(20);
/// What the messages of the communicator are: settings, packets, and that no more come.
const TERMS: Tag = Tag(1);
const PACKET: Tag = Tag(2);
const CLOSE: Tag = Tag(3);
/// Words before the octets of a packet.
const WORDS: usize = 10;
/// A word that stands for nothing.
const NONE: u64 = u64::MAX;

fn octets(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(octets: &[u8]) -> Vec<u64> {
    octets.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn maybe(length: Option<Bytes>) -> u64 {
    length.map_or(NONE, Bytes::get)
}

fn terms_to_words(terms: &Terms) -> Vec<u64> {
    let flow = terms.flow.map_or([NONE; 4], |flow| {
        [flow.buffers.into(), flow.reserve.into(), flow.return_after.into(), flow.buffer.get()]
    });
    let lengths = [terms.rendezvous_from, terms.apart_from, terms.window].map(maybe);
    [&lengths[..], &[terms.data as u64, terms.synchronous as u64], &flow].concat()
}

fn terms_from_words(words: &[u64]) -> Terms {
    let length = |at: usize| (words[at] != NONE).then(|| Bytes::new(words[at]));
    let one = |kinds: &[Data], at: usize| kinds.iter().copied().find(|kind| *kind as u64 == words[at]);
    let synchronous = [SynchronousSend::Acknowledged, SynchronousSend::Rendezvous];
    Terms {
        rendezvous_from: length(0),
        apart_from: length(1),
        window: length(2),
        data: one(&[Data::Sent, Data::Put, Data::Get], 3).expect("a way of data"),
        synchronous: synchronous[usize::try_from(words[4]).unwrap()],
        flow: length(8).map(|buffer| Flow {
            buffers: words[5] as u32,
            reserve: words[6] as u32,
            return_after: words[7] as u32,
            buffer,
        }),
    }
}

/// Kinds by number.
const KINDS: [Kind; 11] = [
    Kind::Eager { synchronous: false },
    Kind::Eager { synchronous: true },
    Kind::Request,
    Kind::Reply,
    Kind::Data,
    Kind::Fetched,
    Kind::Matched,
    Kind::Cancel,
    Kind::Cancelled { done: false },
    Kind::Cancelled { done: true },
    Kind::Credit,
];

fn packet_to_words(packet: &Packet) -> [u64; WORDS] {
    let Envelope { context, source, tag } = packet.envelope;
    [
        KINDS.iter().position(|kind| *kind == packet.kind).expect("one of them") as u64,
        context.into(),
        source.into(),
        tag.into(),
        packet.bytes.get(),
        packet.send,
        packet.receive,
        packet.credit.into(),
        packet.matched.get(),
        packet.body.map_or(NONE, |body| body.length.get()),
    ]
}

fn packet_from_words(words: &[u64], message: MessageId) -> Packet {
    let word = |at: usize| words[at] as u32;
    Packet {
        kind: KINDS[words[0] as usize],
        envelope: Envelope { context: word(1), source: word(2), tag: word(3) },
        bytes: Bytes::new(words[4]),
        send: words[5],
        receive: words[6],
        credit: word(7),
        matched: Bytes::new(words[8]),
        body: (words[9] != NONE).then(|| Payload::whole(message, Bytes::new(words[9]))),
    }
}

/// One end: a message layer, and the memory that its handles stand for.
struct End<'a, C> {
    comm: &'a mut C,
    machine: Machine,
    /// What sends send.
    memory: BTreeMap<MessageId, Vec<u8>>,
    /// What has come.
    came: Vec<Vec<u8>>,
    done: BTreeMap<Request, Done>,
    /// Packets that went out.
    kinds: Vec<Kind>,
}

impl<'a, C: Comm> End<'a, C> {
    fn new(comm: &'a mut C, policy: Policy) -> Self {
        let machine = Machine::new(comm.rank().0, comm.size(), policy);
        Self {
            comm,
            machine,
            memory: BTreeMap::new(),
            came: Vec::new(),
            done: BTreeMap::new(),
            kinds: Vec::new(),
        }
    }

    fn peer(&self) -> Rank {
        Rank(1 - self.comm.rank().0)
    }

    /// The next message of the communicator: what it is, and its octets.
    async fn take(&mut self) -> (Tag, Vec<u8>) {
        let mut buffer = vec![0; 1 << 18];
        let from = Source::Rank(self.peer());
        let status = self.comm.recv(from, TagMatch::Any, &mut buffer).await.expect("it comes in time");
        buffer.truncate(status.bytes.get() as usize);
        (status.tag, buffer)
    }

    async fn tell_terms(&mut self) {
        let terms = octets(&terms_to_words(&self.machine.policy().terms()));
        self.comm.send(self.peer(), TERMS, &terms).await.unwrap();
        let (tag, theirs) = self.take().await;
        assert_eq!(tag, TERMS);
        self.machine.handle_terms(NOW, self.peer().0, &terms_from_words(&words(&theirs)));
        self.drain().await;
    }

    async fn send(&mut self, request: Request, tag: u32, content: Vec<u8>) {
        let (to, bytes) = (self.peer().0, Bytes::new(content.len() as u64));
        self.memory.insert(request.message(), content);
        let outgoing = Outgoing { to, context: 0, tag, bytes, mode: Mode::Standard, buffer: request.0 };
        self.machine.send(NOW, request, outgoing).unwrap();
        self.drain().await;
    }

    async fn receive(&mut self, request: Request, tag: u32, capacity: Bytes) {
        let pattern = Pattern { context: 0, source: Some(self.peer().0), tag: Some(tag) };
        self.machine.receive(NOW, request, Incoming { pattern, capacity, buffer: request.0 }).unwrap();
        self.drain().await;
    }

    /// Does what the machine asks for.
    async fn drain(&mut self) {
        loop {
            match self.machine.poll_output() {
                Output::Work(_) => {}
                Output::Transmit(Transmit::Packet { to, packet }) => {
                    let mut content = octets(&packet_to_words(&packet));
                    if let Some(Payload { message, start, length }) = packet.body {
                        let memory = &self.memory[&message][start.get() as usize..];
                        content.extend(&memory[..length.get() as usize]);
                    }
                    self.kinds.push(packet.kind);
                    self.comm.send(Rank(to), PACKET, &content).await.unwrap();
                    if packet.body.is_some() {
                        self.machine.handle_sent(NOW, packet.send);
                    }
                }
                Output::Deliver(done) => {
                    let (Done::Sent(request)
                    | Done::Received(Received { request, .. })
                    | Done::Cancelled { request, .. }
                    | Done::Failed { request, .. }) = done;
                    assert_eq!(self.done.insert(request, done), None, "it was done already");
                }
                Output::Timeout(_) => return,
                // A message may come before its receive.
                Output::Event(Event::Unexpected { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Until every request is done.
    async fn finish(&mut self) {
        while self.machine.open() > 0 {
            let (tag, content) = self.take().await;
            assert_eq!(tag, PACKET);
            let (head, body) = content.split_at(8 * WORDS);
            let packet = packet_from_words(&words(head), MessageId(self.came.len() as u64));
            self.came.push(body.to_vec());
            self.machine.handle_packet(NOW, self.peer().0, packet);
            self.drain().await;
        }
    }

    /// Nothing more goes; nor has any more come.
    async fn close(&mut self) {
        self.comm.send(self.peer(), CLOSE, &[]).await.unwrap();
        assert_eq!(self.take().await, (CLOSE, Vec::new()));
    }

    /// The octets that a receive got.
    fn received(&self, request: u64) -> &[u8] {
        let Some(Done::Received(received)) = self.done.get(&Request(request)) else {
            panic!("request {request}: {:?}", self.done)
        };
        assert!(!received.truncated);
        &self.came[received.body.expect("data come with every message").message.0 as usize]
    }
}

/// A layer of each kind that sends packets only, with this threshold.
fn policies(threshold: u64) -> [Policy; 4] {
    let from = Some(Bytes::new(threshold));
    [Policy::lam(Bytes::new(threshold)), Policy::mpich(), Policy::mvich(), Policy::over_streams()]
        .map(|policy| Policy { rendezvous_from: from, ..policy })
}

/// The two ends have these thresholds: all that either asks of the other fails, and says why.
async fn set_differently<C: Comm>(comm: &mut C, thresholds: [u64; 2]) {
    let mine = policies(thresholds[comm.rank().0 as usize]);
    for policy in mine {
        let name = policy.name;
        let mut end = End::new(comm, policy);
        let rank = end.peer().0;
        // One waits already when the other's settings come.
        end.receive(Request(1), 7, Bytes::new(20_000)).await;
        assert_eq!(end.machine.open(), 1, "{name}");
        end.tell_terms().await;
        for (request, length) in [(2, 0), (3, 4000), (4, 6000), (5, 20_000)] {
            end.send(Request(request), 7, message(request, length)).await;
        }
        end.receive(Request(6), 7, Bytes::new(20_000)).await;
        end.finish().await;
        for request in 1..=6 {
            let Some(Done::Failed { failure: Failure::Mismatch { rank: whose, mismatch }, .. }) =
                end.done.get(&Request(request))
            else {
                panic!("{name}, request {request}: {:?}", end.done)
            };
            assert_eq!((*whose, mismatch.field), (rank, "rendezvous threshold"), "{name}");
            assert_eq!(mismatch.to_string(), "the peer has another rendezvous threshold");
        }
        assert_eq!((end.done.len(), &end.kinds[..]), (6, &[][..]), "{name}: nothing goes out");
        end.close().await;
    }
}

/// The two ends have one threshold: messages below it and at it go both ways, and arrive unchanged.
async fn set_alike<C: Comm>(comm: &mut C, threshold: u64) {
    for policy in policies(threshold) {
        let name = policy.name;
        let mut end = End::new(comm, policy);
        let (me, peer) = (u64::from(end.comm.rank().0), u64::from(end.peer().0));
        end.receive(Request(1), 7, Bytes::new(threshold)).await;
        end.tell_terms().await;
        let number = |rank: u64, at: u64| 10 * rank + at;
        end.send(Request(2), 7, message(number(me, 0), threshold as usize - 1)).await;
        end.send(Request(3), 8, message(number(me, 1), threshold as usize)).await;
        end.receive(Request(4), 8, Bytes::new(threshold)).await;
        end.finish().await;
        assert_eq!(end.received(1), message(number(peer, 0), threshold as usize - 1), "{name}");
        assert_eq!(end.received(4), message(number(peer, 1), threshold as usize), "{name}");
        let eager = Kind::Eager { synchronous: false };
        let count = |kind| end.kinds.iter().filter(|gone| **gone == kind).count();
        let of_each = [eager, Kind::Request, Kind::Reply, Kind::Data].map(count);
        assert_eq!((of_each, end.kinds.len()), ([1; 4], 4), "{name}: {:?}", end.kinds);
        end.close().await;
    }
}

fn over_tcp(body: impl AsyncFn(&mut Mesh<SocketStream>) + Sync) {
    let options = super::options(Wait::Block);
    super::run(2, LIMIT, |meeting| wiretwin_host::tcp(meeting, &options, LIMIT), body);
}

fn over_shm(body: impl AsyncFn(&mut Mesh<ShmStream>) + Sync) {
    super::run(2, LIMIT, |meeting| wiretwin_host::shm(meeting, Wait::Yield, LIMIT), body);
}

#[test]
fn ends_with_other_thresholds_refuse_each_other_over_tcp() {
    over_tcp(async |comm| set_differently(comm, [5000, 8000]).await);
}

#[test]
fn ends_with_other_thresholds_refuse_each_other_over_shared_memory() {
    over_shm(async |comm| set_differently(comm, [8000, 5000]).await);
}

#[test]
fn ends_with_one_threshold_talk_over_tcp() {
    over_tcp(async |comm| set_alike(comm, 5000).await);
}

#[test]
fn ends_with_one_threshold_talk_over_shared_memory() {
    over_shm(async |comm| set_alike(comm, 5000).await);
}
