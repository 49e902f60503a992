//! How a process comes by its circuits: the calls of the Fore interface that set them up, one direction at a time.
//!
//! A process has one descriptor that listens, at the same access point on every host. To send to another it opens a
//! descriptor and connects it there, simplex; the other accepts by a descriptor of its own. So two that begin to speak to
//! each other at once need not agree on whose circuit it is. A tree is connected to one rank after the other. A call
//! that was not accepted is made again after 3 s (a choice: it is only that nobody was in the library); one for which
//! there is no channel, no bandwidth or no such host is not.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wiretwin_units::{SimTime, Span};
use wiretwin_wire::spans::Outcome as CallOutcome;

use super::Reliable;
use super::topology::Topology;
use crate::fore::{Answer, Ask, Dataflow, Error, Qos, RequestId, Sign};
use crate::library::{Call, CircuitId, Library, Outcome};

/// The access point at which processes listen: the first behind that of IP.
pub const MEETING_POINT: u32 = 1026;
/// After this a call that was not accepted is made again.
const RETRY: Span = Span::from_s(3);

/// How circuits are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circuits {
    /// Which rank this is.
    pub rank: u32,
    /// Of how many, each on the host of its number.
    pub size: u32,
    /// Which are there from the start.
    pub topology: Topology,
    /// What each asks of the network.
    pub qos: Qos,
}

/// What a circuit that is being connected is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// What goes to a rank.
    Rank(u32),
    /// The tree of this number.
    Tree(usize),
}

/// What a call was made for; answers come in the order of calls.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Listen,
    Open(Target),
    Connect(CircuitId),
    Request,
    /// A descriptor for what this host asks for, from this access point where it is a tree.
    Take {
        request: RequestId,
        host: u32,
        tree: Option<u32>,
    },
    Accept {
        host: u32,
        tree: Option<u32>,
    },
    Close,
}

/// Whose PDUs come in on a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// Those of a line, by its number.
    Line(usize),
    /// Those of a branch, by its number.
    Branch(usize),
}

/// The circuits of a process.
#[derive(Debug, Default)]
pub(super) struct Dial {
    /// None where all are permanent.
    config: Option<Circuits>,
    listener: Option<CircuitId>,
    purposes: VecDeque<Purpose>,
    connecting: BTreeMap<CircuitId, Target>,
    again: Vec<(SimTime, CircuitId, Target)>,
    pub(super) incoming: BTreeMap<CircuitId, Incoming>,
}

impl Dial {
    /// When a call is to be made again.
    pub(super) fn deadline(&self) -> Option<SimTime> {
        self.again.iter().map(|one| one.0).min()
    }
}

impl<L: Library> Reliable<L> {
    /// Whether circuits are set up by calls.
    pub(super) const fn is_switched(&self) -> bool {
        self.dial.config.is_some()
    }

    /// Listens, and has the circuits of the topology made.
    pub(super) fn begin(&mut self, config: Circuits) {
        self.dial.config = Some(config);
        self.ask(Ask::Open { asap: MEETING_POINT, queue: 2 * config.size }, Purpose::Listen);
        for rank in config.topology.neighbours(config.rank, config.size) {
            self.want(rank);
        }
    }

    fn ask(&mut self, ask: Ask, purpose: Purpose) {
        self.dial.purposes.push_back(purpose);
        self.call(Call::Fore(ask));
    }

    /// A circuit to a rank is wanted, if there is none.
    pub(super) fn want(&mut self, rank: u32) {
        let Some(line) = self.lines.iter_mut().find(|line| line.rank == rank) else { return };
        if line.out.is_none() && !line.wanted {
            line.wanted = true;
            self.ask(Ask::Open { asap: 0, queue: 0 }, Purpose::Open(Target::Rank(rank)));
        }
    }

    /// So is one to all ranks of a tree.
    pub(super) fn want_tree(&mut self, number: usize) {
        self.ask(Ask::Open { asap: 0, queue: 0 }, Purpose::Open(Target::Tree(number)));
    }

    fn connect(&mut self, circuit: CircuitId, target: Target) {
        let (host, flow) = match target {
            Target::Rank(rank) => (Some(rank), Dataflow::Simplex),
            Target::Tree(number) => {
                let tree = &self.trees[number];
                (tree.to.get(tree.joined).copied(), Dataflow::Multicast)
            }
        };
        let (Some(host), Some(config)) = (host, self.dial.config) else { return };
        self.dial.connecting.insert(circuit, target);
        let ask = Ask::Connect { circuit, host, asap: MEETING_POINT, qos: config.qos, flow };
        self.ask(ask, Purpose::Connect(circuit));
    }

    /// A call has its answer.
    pub(super) fn answered(&mut self, now: SimTime, answer: Answer) {
        let Some(purpose) = self.dial.purposes.pop_front() else { return };
        match (purpose, answer) {
            (Purpose::Listen, Answer::Opened { circuit, .. }) => self.dial.listener = Some(circuit),
            (Purpose::Open(target), Answer::Opened { circuit, asap }) => {
                if let Target::Tree(number) = target {
                    self.trees[number].asap = asap;
                }
                self.connect(circuit, target);
            }
            (Purpose::Request, Answer::Request { request, host, asap, multicast }) => {
                let tree = multicast.then_some(asap);
                self.ask(Ask::Open { asap: 0, queue: 0 }, Purpose::Take { request, host, tree });
            }
            (Purpose::Take { request, host, tree }, Answer::Opened { circuit: by, .. }) => {
                let Some(circuit) = self.dial.listener else { return };
                let flow = if tree.is_some() { Dataflow::Multicast } else { Dataflow::Simplex };
                let back = Qos::default();
                self.ask(Ask::Accept { circuit, by, request, flow, back }, Purpose::Accept { host, tree });
            }
            (Purpose::Accept { host, tree }, Answer::Accepted { by }) => self.accepted(now, by, host, tree),
            (Purpose::Connect(circuit), Answer::Refused { error }) => self.not_connected(now, circuit, error),
            (Purpose::Open(target), Answer::Refused { error }) => self.give_up(now, target, error),
            // Closed, asked, nothing to take: no more is to be done about it.
            _ => {}
        }
    }

    /// A circuit comes in from now on.
    fn accepted(&mut self, now: SimTime, by: CircuitId, host: u32, tree: Option<u32>) {
        let incoming = match tree {
            None => match self.lines.iter().position(|line| line.rank == host) {
                Some(at) => Incoming::Line(at),
                None => return self.ask(Ask::Close { circuit: by }, Purpose::Close),
            },
            Some(asap) => Incoming::Branch(self.add_branch(now, host, asap)),
        };
        self.dial.incoming.insert(by, incoming);
    }

    /// Something has become of a descriptor.
    pub(super) fn sign(&mut self, now: SimTime, circuit: CircuitId, sign: Sign) {
        match sign {
            Sign::Requested => self.ask(Ask::Listen { circuit }, Purpose::Request),
            Sign::Connected => match self.dial.connecting.remove(&circuit) {
                Some(Target::Rank(rank)) => self.has_circuit(rank, circuit),
                Some(Target::Tree(number)) => {
                    let tree = &mut self.trees[number];
                    tree.joined += 1;
                    if tree.joined < tree.to.len() {
                        self.connect(circuit, Target::Tree(number));
                    } else {
                        self.tree_stands(number, circuit);
                    }
                }
                None => {}
            },
            Sign::Refused(error) => self.not_connected(now, circuit, error),
            Sign::Gone => {
                if self.dial.incoming.remove(&circuit).is_some() {
                    self.ask(Ask::Close { circuit }, Purpose::Close);
                }
                if let Some(line) = self.lines.iter_mut().find(|line| line.out == Some(circuit)) {
                    (line.out, line.wanted) = (None, false);
                    self.ask(Ask::Close { circuit }, Purpose::Close);
                }
            }
        }
    }

    fn not_connected(&mut self, now: SimTime, circuit: CircuitId, error: Error) {
        let Some(target) = self.dial.connecting.remove(&circuit) else { return };
        let later = matches!(
            error,
            Error::Refused { outcome: CallOutcome::Failed } | Error::TimedOut | Error::Closed
        );
        if later {
            return self.dial.again.push((now + RETRY, circuit, target));
        }
        self.ask(Ask::Close { circuit }, Purpose::Close);
        self.give_up(now, target, error);
    }

    fn give_up(&mut self, now: SimTime, target: Target, error: Error) {
        let why = match error {
            Error::Refused { outcome: CallOutcome::NoVc } => "no channel is free for a circuit",
            Error::Refused { outcome: CallOutcome::NoResources } => {
                "too little bandwidth is left for a circuit"
            }
            Error::Refused { outcome: CallOutcome::BadDestination } => "there is no such host",
            Error::NoBuffers { .. } => "no descriptor is left",
            _ => "a circuit was rejected",
        };
        match target {
            Target::Rank(rank) => {
                if let Some(line) = self.lines.iter_mut().find(|line| line.rank == rank) {
                    line.refused = Some(why);
                    line.held.clear();
                    line.channel.fail();
                }
            }
            Target::Tree(number) => {
                let tree = &mut self.trees[number];
                let rank = tree.to.get(tree.joined).copied().unwrap_or(0);
                tree.refused = Some(why);
                tree.held.clear();
                tree.root.fail(rank);
            }
        }
        let _ = now;
    }

    /// Clears the circuit to a rank, once all that was sent on it has come; the next message asks for another.
    /// How many were cleared.
    pub(super) fn hang_up(&mut self, rank: u32) -> Result<u32, &'static str> {
        let Some(line) = self.lines.iter_mut().find(|line| line.rank == rank) else { return Ok(0) };
        if line.wanted || line.channel.is_waiting() {
            return Err("what was sent on the circuit has not all come");
        }
        let Some(circuit) = line.out.take() else { return Ok(0) };
        self.ask(Ask::Close { circuit }, Purpose::Close);
        Ok(1)
    }

    /// Makes the calls again that are due.
    pub(super) fn dial_again(&mut self, now: SimTime) {
        let (due, later) = core::mem::take(&mut self.dial.again).into_iter().partition(|one| one.0 <= now);
        self.dial.again = later;
        for (_, circuit, target) in due {
            self.connect(circuit, target);
        }
    }

    /// A branch of a rank's tree has come to be.
    fn add_branch(&mut self, now: SimTime, rank: u32, asap: u32) -> usize {
        let connection = self.seat(super::Seat::Branch(self.branches.len()));
        let channel = super::Channel::new(self.config);
        self.branches.push(super::Branch { rank, asap, channel });
        self.inner.handle(now, Outcome::Branch { connection, rank });
        self.branches.len() - 1
    }
}
