//! What every case needs: a tag, memory, a VI, a connection.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wiretwin_units::{Bytes, Span};

use super::super::vi::{Completion, Place, QueueKind};
use super::super::{
    AddressSegment, AsynchronousError, DataSegment, Descriptor, ErrorCode, MemoryHandle, Ptag, Reliability,
    Resource, ViAttributes, ViHandle, ViState, ViplError,
};
use super::{Consumer, Side, Verdict};

pub(super) const SERVICE: &[u8] = b"service";
/// No wait of the suite is longer.
pub(super) const PATIENCE: Option<Span> = Some(Span::from_s(10));

pub(super) struct Rig<C> {
    pub vipl: C,
    pub level: Reliability,
    pub side: Side,
    pub tag: Ptag,
    /// Memory for descriptors, one after another.
    descriptors: DataSegment,
    next: u64,
    /// Memory for data.
    pub data: DataSegment,
}

/// Where the two agree what they tell each other by plain sends.
const NOTE: u64 = 200_000;

/// Octets of a descriptor with a few segments, a multiple of 64.
const DESCRIPTOR_ROOM: u64 = 256;

/// A code as what a case found.
pub(super) fn said(error: ViplError) -> String {
    error.to_string()
}

impl<C: Consumer> Rig<C> {
    pub fn new(mut vipl: C, level: Reliability, side: Side) -> Result<Self, ViplError> {
        let tag = vipl.create_ptag()?;
        let descriptors = vipl.allocate_registered(64 * DESCRIPTOR_ROOM as usize, tag)?;
        let data = vipl.allocate_registered(1 << 18, tag)?;
        Ok(Self { vipl, level, side, tag, descriptors, next: 0, data })
    }

    /// Both have come here.
    pub async fn meet(&mut self) -> Verdict {
        self.vipl.meet().await.map_err(said)
    }

    pub async fn end(mut self) -> Result<C::Device, String> {
        self.meet().await?;
        self.vipl.end().await
    }

    pub const fn attributes(&self) -> ViAttributes {
        ViAttributes {
            reliability: self.level,
            max_transfer: Bytes::new(32 << 10),
            qos: 0,
            ptag: self.tag,
            enable_rdma_write: true,
            enable_rdma_read: false,
            send_cq: None,
            receive_cq: None,
        }
    }

    pub fn vi(&mut self) -> Result<ViHandle, String> {
        let attributes = self.attributes();
        self.vi_of(attributes)
    }

    pub fn vi_of(&mut self, attributes: ViAttributes) -> Result<ViHandle, String> {
        self.vipl.create_vi(attributes).map_err(said)
    }

    /// A VI connected to the other process's, which has `count` receives of `length` octets posted, and
    /// takes part in this too.
    pub async fn connected(&mut self, count: u64, length: u32) -> Result<ViHandle, String> {
        let vi = self.vi()?;
        if self.side == Side::Server {
            for index in 0..count {
                self.post_recv(vi, index * u64::from(length), length)?;
            }
        }
        self.connect(vi).await?;
        Ok(vi)
    }

    pub async fn connect(&mut self, vi: ViHandle) -> Verdict {
        match self.side {
            Side::Server => {
                let asked = self.vipl.connect_wait(SERVICE, PATIENCE).await.map_err(said)?;
                self.vipl.connect_accept(&asked, vi).map_err(said)?;
            }
            Side::Client => loop {
                match self.vipl.connect_request(vi, SERVICE, PATIENCE).await {
                    Ok(_) => break,
                    // The server does not wait yet.
                    Err(ViplError::NoMatch) => {}
                    Err(error) => return Err(said(error)),
                }
            },
        }
        self.meet().await
    }

    /// The server tells the client where memory of its own is.
    pub async fn exchange(&mut self, vi: ViHandle, ours: DataSegment) -> Result<AddressSegment, String> {
        let mut octets: Vec<u8> = ours.address.to_le_bytes().to_vec();
        octets.extend(ours.handle.0.to_le_bytes());
        match self.side {
            Side::Server => {
                let note = self.part(NOTE, 12);
                self.vipl.write(note.address, &octets);
                self.meet().await?;
                self.post_send(vi, NOTE, 12)?;
                self.wait(vi, QueueKind::Send).await?;
            }
            Side::Client => {
                self.post_recv(vi, NOTE, 12)?;
                self.meet().await?;
                self.wait(vi, QueueKind::Receive).await?;
                octets = self.vipl.read(self.data.address + NOTE, 12).to_vec();
            }
        }
        let address = u64::from_le_bytes(octets[..8].try_into().expect("eight octets"));
        let handle = MemoryHandle(u32::from_le_bytes(octets[8..].try_into().expect("four octets")));
        Ok(AddressSegment { address, handle })
    }

    /// A place for the next descriptor.
    pub fn place(&mut self) -> Place {
        let address = self.descriptors.address + self.next % 64 * DESCRIPTOR_ROOM;
        self.next += 1;
        Place { address, handle: self.descriptors.handle }
    }

    /// Part of the data's memory.
    pub fn part(&self, from: u64, length: u32) -> DataSegment {
        DataSegment { address: self.data.address + from, handle: self.data.handle, length }
    }

    pub fn post(&mut self, vi: ViHandle, kind: QueueKind, descriptor: &Descriptor) -> Result<Place, String> {
        let place = self.place();
        self.vipl.post(vi, kind, place, descriptor).map_err(said)?;
        Ok(place)
    }

    pub fn post_recv(&mut self, vi: ViHandle, from: u64, length: u32) -> Result<Place, String> {
        let part = self.part(from, length);
        self.post(vi, QueueKind::Receive, &Descriptor::new(&[part]))
    }

    pub fn post_send(&mut self, vi: ViHandle, from: u64, length: u32) -> Result<Place, String> {
        let part = self.part(from, length);
        self.post(vi, QueueKind::Send, &Descriptor::new(&[part]))
    }

    pub async fn wait(&mut self, vi: ViHandle, kind: QueueKind) -> Result<Completion, String> {
        let completion = self.vipl.wait(vi, kind, PATIENCE).await.map_err(said)?;
        // What stands in memory is what was told.
        let at = completion.place.address + super::super::Delivery::COMPLETION_AT;
        let written = super::super::Delivery::completion_octets(&completion);
        super::ensure!(self.vipl.read(at, 12), &written[..], "the descriptor in memory");
        Ok(completion)
    }

    /// Fills data with octets that tell places apart.
    pub fn fill(&mut self, from: u64, length: u32, seed: u8) {
        let octets: Vec<u8> = pattern(seed, length);
        self.vipl.write(self.data.address + from, &octets);
    }

    pub fn holds(&self, from: u64, length: u32, seed: u8) -> bool {
        self.vipl.read(self.data.address + from, length as usize) == pattern(seed, length)
    }

    /// Whether data hold what was filled in there, once they do or what would make them has come.
    pub fn comes_to_hold(&mut self, from: u64, length: u32, seed: u8) -> bool {
        loop {
            let holds = self.holds(from, length, seed);
            if holds || !self.vipl.may_come() {
                return holds;
            }
        }
    }

    pub fn state(&mut self, vi: ViHandle) -> Result<ViState, String> {
        self.vipl.query_vi(vi).map(|(state, ..)| state).map_err(said)
    }

    /// The state of a VI once it is this one, or once what would make it so has come.
    pub fn comes_to(&mut self, vi: ViHandle, expected: ViState) -> Result<ViState, String> {
        loop {
            let state = self.state(vi)?;
            if state == expected || !self.vipl.may_come() {
                return Ok(state);
            }
        }
    }

    /// Waits until an asynchronous error has come; all of them.
    pub async fn errors(&mut self) -> Result<Vec<AsynchronousError>, String> {
        loop {
            let errors = self.vipl.take_errors();
            if !errors.is_empty() {
                return Ok(errors);
            }
            self.vipl.turn().await.map_err(said)?;
        }
    }

    /// Waits until `count` asynchronous errors about a VI have come; the codes of all that have. What an
    /// earlier VI left behind, a lost connection told of late say, is passed over.
    pub async fn codes(&mut self, vi: ViHandle, count: usize) -> Result<Vec<ErrorCode>, String> {
        let mut codes = Vec::new();
        while codes.len() < count {
            let errors = self.errors().await?;
            let ours = |error: &&AsynchronousError| match error.resource {
                Resource::Vi(about) | Resource::Descriptor(about, _) => about == vi,
                Resource::Cq(_) | Resource::Nic => false,
            };
            codes.extend(errors.iter().filter(ours).map(|error| error.code));
        }
        Ok(codes)
    }
}

/// Octets that tell places apart.
fn pattern(seed: u8, length: u32) -> Vec<u8> {
    (0..length).map(|place| (place as u8) ^ ((place >> 8) as u8).wrapping_mul(31) ^ seed).collect()
}
