//! MPI over the VI Architecture, live: what MVICH was, between processes of this host or of several.
//!
//! The machine is the one of the simulated world ([`wiretwin_msg::mpi::Machine`]), and so are the heads
//! ([`wiretwin_msg::mpi::vias`]); memory and VIs are those of [`crate::vipl`]. A message below the threshold is copied
//! into buffers that were posted beforehand and are counted; of a longer one the data are written into the memory of
//! its receive (RDMA write), which is registered for it and stays registered.
//!
//! *Choice*: a VI for each pair of ranks, made when the ranks meet, at reliable delivery.

mod buffers;
mod call;
mod meet;
mod registrations;
mod short;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use wiretwin_msg::mpi::vias::HEAD_OCTETS;
use wiretwin_msg::mpi::{Flow, Machine, Packet, Policy};
use wiretwin_msg::via::{
    Address, AddressSegment, DoneError, HostAddress, MemoryHandle, QueueKind, Reliability, ViAttributes,
    ViHandle, ViplError,
};
use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::{Bytes, SimTime, Span};

use crate::clock::Clock;
use crate::direct::try_past;
use crate::rendezvous::{Meeting, MeetingError};
use crate::store::Store;
use crate::stream::Wait;
use crate::vipl::{Adapter, Reach};
use buffers::Buffers;
use call::Slot;
use registrations::Registrations;

/// The machine has no timers.
const NOW: SimTime = SimTime::ZERO;
/// How long a rank that leaves waits at most until what it has sent was taken.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a rank is set.
#[derive(Clone, Debug, PartialEq)]
pub struct MvichOptions {
    /// Thresholds, buffers, registrations: those of [`Policy::mvich`] with other numbers.
    pub policy: Policy,
    /// [`Wait::Spin`] or [`Wait::Yield`]. Where more ranks than cores are on this host, each gives way at every turn in
    /// vain.
    pub wait: Wait,
    /// By what the ranks reach each other.
    pub reach: Reach,
}

impl Default for MvichOptions {
    fn default() -> Self {
        Self { policy: Policy::mvich(), wait: Wait::Spin, reach: Reach::Memory }
    }
}

/// A message that comes in parts.
#[derive(Debug)]
struct Coming {
    /// What the first part said: buffers are returned with that alone.
    packet: Packet,
    /// Where it is put together, and how many bytes are there.
    number: usize,
    there: u64,
}

/// A rank at the other end of a VI.
#[derive(Debug)]
struct Peer {
    vi: ViHandle,
    buffers: Buffers,
    /// Sends whose data are free when they are done: how many sends were posted by then, and which.
    frees: VecDeque<(u64, u64)>,
    posted: u64,
    done: u64,
    /// The message of which not all parts have come.
    coming: Option<Coming>,
    /// The receive that was emptied last, if it was not posted again.
    emptied: Option<u32>,
}

/// One rank of a world over VIs.
#[derive(Debug)]
pub struct Mvich {
    rank: Rank,
    // Before the buffers: memory goes when nobody writes into it any more.
    adapter: Adapter,
    machine: Machine,
    flow: Flow,
    /// By rank; none for this rank, nor for one that is gone.
    peers: Vec<Option<Peer>>,
    registrations: Registrations,
    /// Messages that nobody has asked for yet, or that have not come whole.
    store: Store,
    /// Messages of this rank to itself that nobody has asked for yet, by request.
    own: BTreeMap<u64, Vec<u8>>,
    /// Where the data of sends go that a reply has allowed, by request.
    grants: BTreeMap<u64, AddressSegment>,
    /// Memory of sends that is registered for them.
    used: BTreeMap<u64, MemoryHandle>,
    /// Copies of what lies where it cannot be registered.
    aside: BTreeMap<u64, Vec<u8>>,
    /// The requests of the call under way.
    slots: Vec<Slot>,
    /// The most bytes of one RDMA write.
    transfer: usize,
    next_request: u64,
    clock: Clock,
    limit: Duration,
    wait: Wait,
    /// There are more ranks on this host than cores.
    is_crowded: bool,
}

impl Mvich {
    /// Meets the other ranks. `limit` bounds every wait of a call.
    ///
    /// # Errors
    /// [`MeetingError`], also for settings that cannot be.
    pub fn meet(
        meeting: &Meeting<'_>,
        options: &MvichOptions,
        limit: Duration,
    ) -> Result<Self, MeetingError> {
        let policy = options.policy.clone();
        policy.check().map_err(|error| MeetingError::new("the settings of mpi-mvich", error))?;
        let Some(flow) = policy.flow else {
            return Err(MeetingError::new("the settings of mpi-mvich", "buffers are not counted"));
        };
        // Who does not come is missed here.
        let (network, hosts) = meet::hosts(meeting, options.reach)?;
        if let Reach::Packet(ip) = options.reach {
            let refused = |error| MeetingError::new("opening a packet socket", error);
            try_past(ip).map_err(refused)?;
        }
        let device = options.reach.name();
        let refuse = |error: ViplError| MeetingError::new(format_args!("opening a NIC by {device}"), error);
        // Memory of the program stays registered when the program has given it back.
        let adapter = Adapter::open(options.reach, &network, false, Box::new(|_| ())).map_err(refuse)?;
        let hosts = hosts.unwrap_or_else(|| vec![adapter.local(); meeting.size as usize]);
        let tag = adapter.create_ptag().map_err(refuse)?;
        let registrations = Registrations::new(tag, policy.registrations.unwrap_or(0) as usize);
        let mut mvich = Self {
            rank: Rank(meeting.rank),
            machine: Machine::new(meeting.rank, meeting.size, policy),
            flow,
            peers: (0..meeting.size).map(|_| None).collect(),
            registrations,
            store: Store::default(),
            own: BTreeMap::new(),
            grants: BTreeMap::new(),
            used: BTreeMap::new(),
            aside: BTreeMap::new(),
            slots: Vec::new(),
            transfer: adapter.attributes().max_transfer as usize,
            next_request: 0,
            clock: Clock::start(),
            limit,
            wait: if options.wait == Wait::Spin { Wait::Spin } else { Wait::Yield },
            is_crowded: hosts.iter().filter(|host| **host == adapter.local()).count() > cores(),
            adapter,
        };
        let attributes = ViAttributes {
            reliability: Reliability::ReliableDelivery,
            max_transfer: Bytes::new(mvich.transfer as u64),
            qos: 0,
            ptag: tag,
            enable_rdma_write: true,
            enable_rdma_read: false,
            send_cq: None,
            receive_cq: None,
        };
        // All are asked first, and waited for then: nobody waits for one that waits for another.
        for peer in (0..meeting.size).filter(|peer| *peer != meeting.rank) {
            let joined = mvich.ask((peer, hosts[peer as usize]), attributes, meeting.limit);
            joined.map_err(|error| {
                MeetingError::new(format_args!("asking rank {peer} for a connection"), error)
            })?;
        }
        for (number, peer) in mvich.peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let joined = mvich.adapter.connect_peer_wait(peer.vi);
            joined.map_err(|error| MeetingError::new(format_args!("meeting rank {number}"), error))?;
        }
        Ok(mvich)
    }

    fn ask(
        &mut self,
        (rank, host): (u32, HostAddress),
        attributes: ViAttributes,
        limit: Duration,
    ) -> Result<(), ViplError> {
        let vi = self.adapter.create_vi(attributes)?;
        let buffers = Buffers::new(&self.adapter, attributes.ptag, &self.flow)?;
        let (frees, coming, emptied) = (VecDeque::new(), None, None);
        let peer = Peer { vi, buffers, frees, posted: 0, done: 0, coming, emptied };
        let peer = self.peers[rank as usize].insert(peer);
        for receive in peer.buffers.receives() {
            self.adapter.post(vi, QueueKind::Receive, receive)?;
        }
        let remote = Address { host, discriminator: rank.to_be_bytes().to_vec() };
        self.adapter.connect_peer_request(vi, &self.rank.0.to_be_bytes(), &remote, Some(limit))
    }

    /// How it waits.
    pub const fn wait(&self) -> Wait {
        self.wait
    }

    /// How often memory of the program was registered.
    pub const fn registrations(&self) -> u64 {
        self.registrations.made
    }

    /// The bytes of a message that one buffer has room for.
    const fn room(&self) -> usize {
        self.flow.buffer.get() as usize - HEAD_OCTETS
    }

    /// Takes sends that are done off the queue of a peer; false if the peer is gone.
    fn reap(&mut self, rank: usize) -> bool {
        let Some(peer) = &mut self.peers[rank] else { return false };
        let mut is_there = true;
        while peer.buffers.open() > 0 {
            match self.adapter.done(peer.vi, QueueKind::Send) {
                Ok(_) => {
                    peer.buffers.done();
                    peer.done += 1;
                }
                Err(DoneError::NotDone | DoneError::Empty) => break,
                Err(_) => {
                    is_there = false;
                    break;
                }
            }
        }
        while let Some((posted, send)) = peer.frees.front().copied()
            && posted <= peer.done
        {
            peer.frees.pop_front();
            self.machine.handle_sent(NOW, send);
        }
        is_there
    }

    /// The connection to a rank is gone, or is to end.
    fn lose(&mut self, rank: usize) {
        let Some(peer) = self.peers[rank].take() else { return };
        // The VI is there, for it was made here.
        let _ = self.adapter.disconnect(peer.vi);
        if let Some(Coming { number, .. }) = peer.coming {
            self.store.complete(number);
            self.store.forget(number);
        }
        self.machine.handle_lost(NOW, rank as u32);
        let memory = peer.buffers.memory();
        let _ = self.adapter.deregister_mem(memory.address, memory.handle);
    }
}

/// Cores of this host, whichever this process may run on.
fn cores() -> usize {
    // SAFETY: a plain query.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

impl Drop for Mvich {
    fn drop(&mut self) {
        for peer in self.peers.iter_mut().flatten() {
            // What was sent is taken by the other end's adapter, whether or not its program calls.
            while peer.buffers.open() > 0
                && self.adapter.wait(peer.vi, QueueKind::Send, Some(FAREWELL)).is_ok()
            {
                peer.buffers.done();
            }
        }
        self.adapter.close();
    }
}

impl Comm for Mvich {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    #[inline]
    fn now(&self) -> Span {
        self.clock.now()
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.run(&[Outgoing { to, tag, message }], &mut [])
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let mut receives = [Incoming { from, tag, buffer, status: None }];
        self.run(&[], &mut receives)?;
        let [receive] = receives;
        Ok(receive.status.expect("a receive that is over has a status"))
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        self.run(sends, receives)
    }

    async fn compute<T>(&mut self, _work: Work, body: impl FnOnce() -> T) -> T {
        body()
    }
}
