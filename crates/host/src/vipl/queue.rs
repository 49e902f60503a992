//! A work queue: descriptors in the order in which they were posted.

use std::collections::VecDeque;

use wiretwin_msg::via::{
    AddressSegment, CONTROL_SEGMENT, Completion, ControlSegment, CqHandle, DATA_SEGMENT, DataSegment,
    DescriptorView, MemoryHandle, Operation, Outcome, Place, QueueKind, control, status,
};

use super::Token;

/// Descriptors that a queue has room for when it is made; it grows.
const AT_FIRST: usize = 16;

/// A descriptor as it was when it was posted.
#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub place: Place,
    /// Bits of [`control`].
    pub control: u16,
    /// Its immediate data.
    pub immediate: u32,
    /// Its length field.
    pub length: u32,
    /// Remote memory, of RDMA.
    pub remote: AddressSegment,
    /// Local memory. The room stays when the descriptor is done, so that the next takes none.
    pub data: Vec<DataSegment>,
    /// Whether it is well formed.
    pub is_sound: bool,
    pub outcome: Option<Outcome>,
}

/// What most descriptors say: no more than this.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub length: u32,
    pub data: DataSegment,
}

impl Plain {
    /// Reads the descriptor of one line at this address, if it is such a one.
    ///
    /// # Safety
    /// A line can be read there.
    #[inline(always)]
    pub unsafe fn read(address: u64) -> Option<Self> {
        let words = address as *const u32;
        // Each field on its own, as the program has written it: a processor waits where one look takes in two.
        // SAFETY: the caller's; a line begins on a multiple of its size.
        unsafe {
            let word = |at: usize| u32::from_le(words.add(at).read_volatile());
            if word(3) != 1 {
                // Other than one segment, and no bit of the control field.
                return None;
            }
            let address = u64::from_le(words.add(8).cast::<u64>().read_volatile());
            let data = DataSegment { address, handle: MemoryHandle(word(10)), length: word(11) };
            Some(Self { length: word(6), data })
        }
    }
}

impl Posted {
    fn empty() -> Self {
        let nowhere = MemoryHandle(0);
        Self {
            place: Place { address: 0, handle: nowhere },
            control: 0,
            immediate: 0,
            length: 0,
            remote: AddressSegment { address: 0, handle: nowhere },
            data: Vec::new(),
            is_sound: false,
            outcome: None,
        }
    }

    pub const fn operation(&self) -> u16 {
        self.control & control::OPERATION
    }

    /// What is checked of it, if it is well formed.
    #[inline]
    pub fn view(&self) -> Option<DescriptorView<'_>> {
        let operation = match self.operation() {
            _ if !self.is_sound => return None,
            0 => Operation::SendReceive,
            1 => Operation::RdmaWrite,
            _ => Operation::RdmaRead,
        };
        let immediate = self.control & control::IMMEDIATE != 0;
        Some(DescriptorView { operation, immediate, length: self.length, data: &self.data })
    }

    /// The operation bits of its status.
    pub const fn operation_bits(&self, kind: QueueKind) -> u32 {
        match (kind, self.control & control::OPERATION) {
            (QueueKind::Receive, _) => status::OP_RECEIVE,
            _ if !self.is_sound => 0,
            (_, 1) => status::OP_RDMA_WRITE,
            (_, 2) => status::OP_RDMA_READ,
            _ => 0,
        }
    }

    /// Reads the descriptor that lies in this memory, which is all of one.
    fn read(&mut self, place: Place, octets: &[u8], most_segments: u16) {
        let head = ControlSegment::parse(octets).unwrap_or_default();
        self.place = place;
        (self.control, self.immediate, self.length) = (head.control, head.immediate, head.length);
        self.outcome = None;
        self.data.clear();
        let rdma = head.control & control::OPERATION != 0;
        let defined = head.control & !control::DEFINED == 0 && head.control & control::OPERATION != 3;
        self.is_sound = defined && head.segments <= most_segments && (!rdma || head.segments > 0);
        if !self.is_sound {
            return;
        }
        let (segments, _) = octets[CONTROL_SEGMENT..].as_chunks::<DATA_SEGMENT>();
        let mut segments = segments.iter().map(|octets| {
            let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|octet| octets[at + octet]));
            let address = u64::from(word(0)) | u64::from(word(4)) << 32;
            DataSegment { address, handle: MemoryHandle(word(8)), length: word(12) }
        });
        if rdma && let Some(remote) = segments.next() {
            self.remote = AddressSegment { address: remote.address, handle: remote.handle };
        }
        self.data.extend(segments);
    }
}

/// A work queue. Entries have numbers that count up from the VI's creation.
#[derive(Debug)]
pub(super) struct Queue {
    /// A ring, by number.
    entries: Vec<Posted>,
    /// The number of the entry at the head.
    first: u64,
    /// The number that the next entry gets.
    next: u64,
    /// How many at the head are done and told of.
    pub published: u64,
    pub cq: Option<CqHandle>,
    /// Handlers that wait for a descriptor each.
    pub notify: VecDeque<Token>,
}

impl Queue {
    pub fn new(cq: Option<CqHandle>) -> Self {
        let entries = vec![Posted::empty(); AT_FIRST];
        Self { entries, first: 0, next: 0, published: 0, cq, notify: VecDeque::new() }
    }

    pub const fn len(&self) -> u64 {
        self.next - self.first
    }

    pub const fn next_number(&self) -> u64 {
        self.next
    }

    const fn index(&self, number: u64) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    /// Whether one more has room without growing.
    #[inline]
    pub const fn has_place(&self) -> bool {
        self.len() < self.entries.len() as u64
    }

    /// Posts a descriptor that says nothing but where its data are; there is room for it.
    #[inline(always)]
    pub fn push_plain(&mut self, place: Place, plain: Plain) {
        let index = self.index(self.next);
        let posted = &mut self.entries[index];
        posted.place = place;
        (posted.control, posted.immediate, posted.length) = (0, 0, plain.length);
        (posted.is_sound, posted.outcome) = (true, None);
        posted.data.clear();
        posted.data.push(plain.data);
        self.next += 1;
    }

    /// Posts the descriptor in this memory; its number.
    pub fn push(&mut self, place: Place, octets: &[u8], most_segments: u16) -> u64 {
        if self.len() == self.entries.len() as u64 {
            let mut grown = vec![Posted::empty(); 2 * self.entries.len()];
            for number in self.first..self.next {
                let (from, to) = (self.index(number), number as usize & (grown.len() - 1));
                grown[to] = std::mem::replace(&mut self.entries[from], Posted::empty());
            }
            self.entries = grown;
        }
        let number = self.next;
        let index = self.index(number);
        self.entries[index].read(place, octets, most_segments);
        self.next += 1;
        number
    }

    #[inline]
    pub fn get(&self, number: u64) -> Option<&Posted> {
        (number >= self.first && number < self.next).then(|| &self.entries[self.index(number)])
    }

    /// The number of the entry at the head, or of the next one.
    #[inline]
    pub const fn first_number(&self) -> u64 {
        self.first
    }

    /// Whether nobody but who asks is told of what is done.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.cq.is_none() && self.notify.is_empty()
    }

    /// The number of the first receive that is not done: receives are done in their order.
    pub const fn first_open(&self) -> Option<u64> {
        let number = self.first + self.published;
        if number < self.next { Some(number) } else { None }
    }

    /// The whole number of the entry whose number ends in these 32 bits.
    pub fn number_of(&self, low: u32) -> Option<u64> {
        let number = self.first + u64::from(low.wrapping_sub(self.first as u32));
        (number < self.next).then_some(number)
    }

    /// The entry is done. The first outcome stays.
    pub fn finish(&mut self, number: u64, outcome: Outcome) {
        if number >= self.first && number < self.next {
            let index = self.index(number);
            self.entries[index].outcome.get_or_insert(outcome);
        }
    }

    /// All that are not done are flushed.
    pub fn flush(&mut self, kind: QueueKind) {
        for number in self.first..self.next {
            let index = self.index(number);
            let posted = &mut self.entries[index];
            let status = status::DONE | status::FLUSHED_ERROR | posted.operation_bits(kind);
            posted.outcome.get_or_insert(Outcome { status, length: 0, immediate: 0 });
        }
    }

    /// The next to be told of: done, and all before it are.
    #[inline]
    pub fn publish(&mut self) -> Option<Completion> {
        let posted = self.get(self.first + self.published)?;
        let completion = Completion { place: posted.place, outcome: posted.outcome? };
        self.published += 1;
        Some(completion)
    }

    /// Takes the head off, which was told of by whoever calls.
    #[inline]
    pub const fn pass(&mut self) {
        self.first += 1;
    }

    /// Takes the head off, if it was told of.
    #[inline]
    pub fn take(&mut self) -> Option<Completion> {
        if self.published == 0 {
            return None;
        }
        let posted = self.get(self.first)?;
        let completion = Completion { place: posted.place, outcome: posted.outcome? };
        self.first += 1;
        self.published -= 1;
        Some(completion)
    }
}
