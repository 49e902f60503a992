//! A work queue: descriptors in the order in which they were posted.

use std::collections::VecDeque;
use std::slice;

use wiretwin_msg::via::{
    AddressSegment, CONTROL_SEGMENT, Completion, ControlSegment, CqHandle, DATA_SEGMENT, DataSegment,
    DescriptorView, MemoryHandle, Operation, Outcome, Place, QueueKind, control, status,
};

use super::Token;

/// Descriptors that a queue has room for when it is made; it grows.
const AT_FIRST: usize = 16;

/// A descriptor as it was when it was posted: one cache line, and more behind it of those that are not plain.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Posted {
    /// Its place, and where the memory of that is registered.
    address: u64,
    handle: MemoryHandle,
    /// Its length field.
    pub length: u32,
    /// Local memory, if it is plain.
    one: DataSegment,
    /// If it is plain, the version of registered memory in which it and its data could be reached.
    reached: u64,
    /// How it ended; of one that has not, the status is 0.
    ended: Outcome,
    /// Bits of [`control`].
    pub control: u16,
    /// Whether it is well formed.
    pub is_sound: bool,
    /// What a plain descriptor does not have. It stays when the descriptor is done, so that the next takes no memory.
    more: Option<Box<More>>,
}

/// What a descriptor has that is not plain.
#[derive(Clone, Debug)]
struct More {
    immediate: u32,
    /// Remote memory, of RDMA.
    remote: AddressSegment,
    /// Local memory.
    data: Vec<DataSegment>,
}

const OPEN: Outcome = Outcome { status: 0, length: 0, immediate: 0 };
const NOWHERE: AddressSegment = AddressSegment { address: 0, handle: MemoryHandle(0) };

/// The version of memory for what is not plain: never reached.
const NEVER: u64 = u64::MAX;

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
            address: 0,
            handle: nowhere,
            length: 0,
            one: DataSegment { address: 0, handle: nowhere, length: 0 },
            reached: NEVER,
            ended: OPEN,
            control: 0,
            is_sound: false,
            more: None,
        }
    }

    /// How it ended, if it has.
    #[inline(always)]
    pub fn outcome(&self) -> Option<Outcome> {
        (self.ended.status != 0).then_some(self.ended)
    }

    /// The first outcome stays.
    fn end(&mut self, outcome: Outcome) {
        if self.outcome().is_none() {
            self.ended = outcome;
        }
    }

    /// Its immediate data.
    pub fn immediate(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.immediate)
    }

    /// Remote memory, of RDMA.
    pub fn remote(&self) -> AddressSegment {
        self.more.as_ref().map_or(NOWHERE, |more| more.remote)
    }

    pub const fn place(&self) -> Place {
        Place { address: self.address, handle: self.handle }
    }

    /// Local memory.
    #[inline]
    pub fn data(&self) -> &[DataSegment] {
        if self.reached == NEVER {
            self.more.as_ref().map_or(&[], |more| &more.data)
        } else {
            slice::from_ref(&self.one)
        }
    }

    /// Local memory of a plain descriptor, if it and that can still be reached as they could when it was posted.
    #[inline(always)]
    pub fn plain(&self, version: u64) -> Option<DataSegment> {
        (self.reached == version).then_some(self.one)
    }

    fn completion(&self) -> Option<Completion> {
        Some(Completion { place: self.place(), outcome: self.outcome()? })
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
        Some(DescriptorView { operation, immediate, length: self.length, data: self.data() })
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
        (self.address, self.handle) = (place.address, place.handle);
        (self.control, self.length) = (head.control, head.length);
        (self.ended, self.reached) = (OPEN, NEVER);
        let more = self
            .more
            .get_or_insert_with(|| Box::new(More { immediate: 0, remote: NOWHERE, data: Vec::new() }));
        (more.immediate, more.remote) = (head.immediate, NOWHERE);
        more.data.clear();
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
            more.remote = AddressSegment { address: remote.address, handle: remote.handle };
        }
        more.data.extend(segments);
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

    /// Posts a descriptor that says nothing but where its data are; there is room for it. In this version of memory
    /// it and they can be reached.
    #[inline(always)]
    pub fn push_plain(&mut self, place: Place, plain: Plain, version: u64) {
        let index = self.index(self.next);
        let posted = &mut self.entries[index];
        (posted.address, posted.handle) = (place.address, place.handle);
        (posted.length, posted.one, posted.reached) = (plain.length, plain.data, version);
        (posted.control, posted.is_sound, posted.ended) = (0, true, OPEN);
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

    /// The entry at the head, if nothing is done there that was told of.
    #[inline(always)]
    pub fn head(&self) -> Option<&Posted> {
        (self.published == 0 && self.first < self.next).then(|| &self.entries[self.index(self.first)])
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
            self.entries[index].end(outcome);
        }
    }

    /// All that are not done are flushed.
    pub fn flush(&mut self, kind: QueueKind) {
        for number in self.first..self.next {
            let index = self.index(number);
            let posted = &mut self.entries[index];
            let status = status::DONE | status::FLUSHED_ERROR | posted.operation_bits(kind);
            posted.end(Outcome { status, length: 0, immediate: 0 });
        }
    }

    /// The next to be told of: done, and all before it are.
    #[inline]
    pub fn publish(&mut self) -> Option<Completion> {
        let completion = self.get(self.first + self.published)?.completion()?;
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
        let completion = self.get(self.first)?.completion()?;
        self.first += 1;
        self.published -= 1;
        Some(completion)
    }
}

/// Numbers in a ring that grows: the first that was put there is the first to be taken.
#[derive(Debug)]
pub(super) struct Numbers {
    ring: Vec<u64>,
    /// How many were taken, and put there.
    taken: usize,
    put: usize,
}

impl Numbers {
    /// Makes one with room for at least `count` entries: the next power of two.
    pub fn with_room(count: usize) -> Self {
        Self { ring: vec![0; count.next_power_of_two()], taken: 0, put: 0 }
    }

    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub const fn clear(&mut self) {
        self.taken = self.put;
    }

    const fn index(&self, at: usize) -> usize {
        at & (self.ring.len() - 1)
    }

    #[inline(always)]
    pub fn push(&mut self, number: u64) {
        if self.len() == self.ring.len() {
            self.grow();
        }
        let index = self.index(self.put);
        self.ring[index] = number;
        self.put = self.put.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self) {
        let held: Vec<u64> = self.iter().collect();
        (self.taken, self.put) = (0, held.len());
        self.ring.resize(2 * self.ring.len(), 0);
        self.ring[..held.len()].copy_from_slice(&held);
    }

    #[inline(always)]
    pub fn first(&self) -> Option<u64> {
        (self.taken != self.put).then(|| self.ring[self.index(self.taken)])
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.taken = self.taken.wrapping_add(1);
        Some(first)
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|at| self.ring[self.index(self.taken.wrapping_add(at))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_numbers_keeps_their_order_where_it_grows() {
        let mut numbers = Numbers::with_room(2);
        let mut next = 0;
        for round in 0..6 {
            (0..round).for_each(|at| numbers.push(10 * round + at));
            if round % 2 == 0 {
                next += u64::from(numbers.pop().is_some());
            }
        }
        let all = [20, 21, 30, 31, 32, 40, 41, 42, 43, 50, 51, 52, 53, 54];
        let left: Vec<u64> = std::iter::once(10).chain(all).skip(next as usize).collect();
        assert_eq!(numbers.iter().collect::<Vec<_>>(), left);
        assert_eq!(std::iter::from_fn(|| numbers.pop()).collect::<Vec<_>>(), left);
        assert!(numbers.is_empty());
    }
}
