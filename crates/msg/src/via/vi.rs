//! One VI: its work queues, and what the two directions of its connection remember.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::attributes::RemoteAttributes;
use super::{
    AddressSegment, CqHandle, Descriptor, FormatError, HostAddress, MemoryHandle, Packet, ViAttributes,
    ViHandle, ViplError, status,
};

/// `VIP_VI_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViState {
    /// Not connected.
    Idle,
    /// A connection was asked for.
    ConnectPending,
    /// Connected.
    Connected,
    /// The connection was lost; the consumer disconnects.
    Error,
}

/// Which work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueKind {
    /// Of sends and RDMA.
    Send,
    /// Of receives.
    Receive,
}

/// Where a descriptor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its virtual address.
    pub address: u64,
    /// The handle of its memory.
    pub handle: MemoryHandle,
}

/// How a descriptor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bits of [`status`].
    pub status: u32,
    /// Octets moved.
    pub length: u32,
    /// Immediate data that came.
    pub immediate: u32,
}

/// A descriptor that was taken off its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The place of the descriptor in its queue.
    pub place: Place,
    /// How it ended.
    pub outcome: Outcome,
}

impl Completion {
    /// Whether it did what it asked for.
    pub const fn is_success(&self) -> bool {
        self.outcome.status & status::ERRORS == 0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub place: Place,
    pub descriptor: Result<Descriptor, FormatError>,
    pub outcome: Option<Outcome>,
}

/// A work queue. Entries have numbers that count up from the VI's creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Posted>,
    /// The number of the entry at the head.
    first: u64,
    /// How many at the head are done and told of.
    published: usize,
    pub cq: Option<CqHandle>,
    pub notify: bool,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number that the next entry gets.
    pub fn next_number(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub fn push(&mut self, posted: Posted) -> u64 {
        self.entries.push_back(posted);
        self.next_number() - 1
    }

    pub fn get(&self, number: u64) -> Option<&Posted> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The number of the first that is not done.
    pub fn first_open(&self) -> Option<u64> {
        let index = self.entries.iter().position(|posted| posted.outcome.is_none())?;
        Some(self.first + index as u64)
    }

    /// The whole number of the entry whose number ends in these 32 bits.
    pub fn number_of(&self, low: u32) -> Option<u64> {
        let ahead = low.wrapping_sub(self.first as u32);
        let number = self.first + u64::from(ahead);
        (number < self.next_number()).then_some(number)
    }

    /// The entry is done. The first outcome stays.
    pub fn finish(&mut self, number: u64, outcome: Outcome) {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(posted) = index.and_then(|index| self.entries.get_mut(index))
            && posted.outcome.is_none()
        {
            posted.outcome = Some(outcome);
        }
    }

    /// All that are not done are flushed.
    pub fn flush(&mut self, kind: QueueKind) {
        for posted in &mut self.entries {
            if posted.outcome.is_none() {
                let status = status::DONE | status::FLUSHED_ERROR | operation_bits(posted, kind);
                posted.outcome = Some(Outcome { status, length: 0, immediate: 0 });
            }
        }
    }

    /// The next to be told of: done, and all before it are.
    pub fn publish(&mut self) -> Option<Completion> {
        let posted = self.entries.get(self.published)?;
        let outcome = posted.outcome?;
        self.published += 1;
        Some(Completion { place: posted.place, outcome })
    }

    /// Takes the head off, if it was told of.
    pub fn take(&mut self) -> Option<Completion> {
        if self.published == 0 {
            return None;
        }
        let posted = self.entries.pop_front()?;
        self.first += 1;
        self.published -= 1;
        posted.outcome.map(|outcome| Completion { place: posted.place, outcome })
    }
}

/// The operation bits of a descriptor's status.
pub(crate) fn operation_bits(posted: &Posted, kind: QueueKind) -> u32 {
    match (kind, &posted.descriptor) {
        (QueueKind::Receive, _) => status::OP_RECEIVE,
        (QueueKind::Send, Ok(descriptor)) => match descriptor.operation {
            super::Operation::SendReceive => 0,
            super::Operation::RdmaWrite => status::OP_RDMA_WRITE,
            super::Operation::RdmaRead => status::OP_RDMA_READ,
        },
        (QueueKind::Send, Err(_)) => 0,
    }
}

/// A packet that may have to be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Unacknowledged {
    pub sequence: u32,
    /// The descriptor that is done when this packet is acknowledged.
    pub finishes: Option<u64>,
    /// The descriptor that it belongs to.
    pub entry: Option<u64>,
    pub packet: Packet,
}

/// Memory that the remote end reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub number: u32,
    pub source: AddressSegment,
    pub total: u32,
    pub offset: u32,
}

/// The sending direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sending {
    /// The descriptor being sent.
    pub entry: u64,
    /// How much of it has gone.
    pub offset: u32,
    /// Whether any of it has gone.
    pub begun: bool,
    pub sequence: u32,
    pub unacknowledged: VecDeque<Unacknowledged>,
    pub due: Option<SimTime>,
    pub resends: u32,
    /// RDMA reads without their octets: number, octets still to come.
    pub reads: Vec<(u64, u32)>,
    pub responses: VecDeque<Response>,
}

/// What is coming in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Assembly {
    #[default]
    Nothing,
    /// A send, into the receive descriptor of this number.
    Receive { number: u64, got: u32 },
    /// An RDMA write.
    Write { got: u32 },
    /// The rest of a message that was rejected.
    Refused,
}

/// The receiving direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Receiving {
    pub expected: u32,
    pub assembly: Assembly,
    /// Packets taken and not yet acknowledged.
    pub owed: u32,
}

/// The remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub host: HostAddress,
    pub vi: ViHandle,
    pub attributes: RemoteAttributes,
}

/// A request of ours for a connection.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub request: Packet,
    pub attempt: u32,
    pub deadline: Option<SimTime>,
    pub again: SimTime,
}

#[derive(Clone, Debug)]
pub(crate) struct Vi {
    pub handle: ViHandle,
    pub attributes: ViAttributes,
    pub state: ViState,
    pub send: Queue,
    pub receive: Queue,
    pub peer: Option<Peer>,
    pub sending: Sending,
    pub receiving: Receiving,
    pub attempt: u32,
    pub asking: Option<Asking>,
    /// How the last request for a connection ended.
    pub answer: Option<Result<RemoteAttributes, ViplError>>,
}

impl Vi {
    pub fn new(handle: ViHandle, attributes: ViAttributes) -> Self {
        Self {
            handle,
            attributes,
            state: ViState::Idle,
            send: Queue { cq: attributes.send_cq, ..Queue::default() },
            receive: Queue { cq: attributes.receive_cq, ..Queue::default() },
            peer: None,
            sending: Sending::default(),
            receiving: Receiving::default(),
            attempt: 0,
            asking: None,
            answer: None,
        }
    }

    pub const fn queue(&mut self, kind: QueueKind) -> &mut Queue {
        match kind {
            QueueKind::Send => &mut self.send,
            QueueKind::Receive => &mut self.receive,
        }
    }

    pub const fn remote_view(&self) -> RemoteAttributes {
        self.attributes.remote_view()
    }

    /// The connection is there: both directions begin anew.
    pub fn connected(&mut self, peer: Peer) {
        self.state = ViState::Connected;
        self.peer = Some(peer);
        self.sending = Sending { entry: self.send.next_number(), ..Sending::default() };
        self.receiving = Receiving::default();
        self.asking = None;
        self.answer = Some(Ok(peer.attributes));
    }

    /// The connection is gone: nothing of it is remembered, and what was posted is flushed.
    pub fn gone(&mut self, state: ViState) {
        self.state = state;
        self.peer = None;
        self.sending = Sending::default();
        self.receiving = Receiving::default();
        self.asking = None;
        self.send.flush(QueueKind::Send);
        self.receive.flush(QueueKind::Receive);
    }

    /// The request for a connection is over without one.
    pub fn answered(&mut self, result: Result<RemoteAttributes, ViplError>) {
        self.asking = None;
        self.state = ViState::Idle;
        self.answer = Some(result);
    }

    /// Whether part of an RDMA write has come, or the answer to an RDMA read has not gone or not been acknowledged.
    pub fn serves_rdma(&self) -> bool {
        matches!(self.receiving.assembly, Assembly::Write { .. })
            || !self.sending.responses.is_empty()
            || self.sending.unacknowledged.iter().any(|kept| kept.entry.is_none())
    }

    pub fn due(&self) -> Option<SimTime> {
        let asking = self
            .asking
            .as_ref()
            .map(|asking| asking.deadline.map_or(asking.again, |end| end.min(asking.again)));
        [asking, self.sending.due].into_iter().flatten().min()
    }
}
