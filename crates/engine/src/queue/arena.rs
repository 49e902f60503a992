//! Storage of events in chunks of a fixed size, so that growing copies nothing and doubles nothing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::event::Event;

/// Events in a chunk.
const CHUNK_EVENTS: usize = 32;

/// Chunks that are allocated together.
const SLAB_CHUNKS: usize = 64;

/// No chunk.
const NONE: u32 = u32::MAX;

/// Some events and the chunk that follows: 776 bytes.
#[derive(Clone)]
struct Chunk<E> {
    events: [Event<E>; CHUNK_EVENTS],
    next: u32,
}

/// Events in the order in which they were appended, in a chain of chunks all full but the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
    len: u64,
}

impl Chain {
    /// Nothing.
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    /// How many events it holds.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }
}

/// In what the times of some events are alike.
#[derive(Clone, Copy)]
pub(super) struct Likeness {
    /// One of the times, in ps.
    pub(super) first: u64,
    /// The bits in which any time differs from it.
    pub(super) differing: u64,
}

/// The chunks of all chains, and those that are free.
#[derive(Clone)]
pub(super) struct Arena<E> {
    slabs: Vec<Box<[Chunk<E>; SLAB_CHUNKS]>>,
    free: u32,
}

impl<E: Copy> Arena<E> {
    pub(super) const fn new() -> Self {
        Self { slabs: Vec::new(), free: NONE }
    }

    /// Bytes allocated.
    pub(super) fn resident_bytes(&self) -> usize {
        self.slabs.len() * size_of::<[Chunk<E>; SLAB_CHUNKS]>()
            + self.slabs.capacity() * size_of::<Box<[Chunk<E>; SLAB_CHUNKS]>>()
    }

    /// Appends `event` to `chain`.
    #[inline]
    pub(super) fn append(&mut self, chain: &mut Chain, event: Event<E>) {
        let position = chain.len as usize % CHUNK_EVENTS;
        if position == 0 {
            self.extend(chain, event);
        }
        // Field by field: as a whole, the event would pass through the stack, written in three parts
        // and read back in two, and wait there for its own stores.
        let Event { time, seq, what } = event;
        let place = &mut self.chunk_mut(chain.tail).events[position];
        place.time = time;
        place.seq = seq;
        place.what = what;
        chain.len += 1;
    }

    /// Gives `chain` a further chunk; what a new chunk is filled with says nothing.
    #[cold]
    #[inline(never)]
    fn extend(&mut self, chain: &mut Chain, filler: Event<E>) {
        if self.free == NONE {
            self.grow(filler);
        }
        let fresh = self.free;
        self.free = core::mem::replace(&mut self.chunk_mut(fresh).next, NONE);
        if chain.len == 0 {
            chain.head = fresh;
        } else {
            self.chunk_mut(chain.tail).next = fresh;
        }
        chain.tail = fresh;
    }

    /// Allocates a slab and frees its chunks.
    fn grow(&mut self, filler: Event<E>) {
        let first = self.slabs.len() * SLAB_CHUNKS;
        let last = u32::try_from(first + SLAB_CHUNKS).expect("memory ends before 2^32 chunks of events");
        let mut slab = vec![Chunk { events: [filler; CHUNK_EVENTS], next: NONE }; SLAB_CHUNKS];
        for (chunk, id) in slab.iter_mut().zip(first as u32..last) {
            chunk.next = if id + 1 == last { self.free } else { id + 1 };
        }
        let slab = slab.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("made of that length"));
        self.slabs.push(slab);
        self.free = first as u32;
    }

    /// The least time of a chain's events, in ps.
    pub(super) fn least(&self, chain: &Chain) -> Option<u64> {
        let mut least = None;
        let mut rest = *chain;
        while let Some((chunk, count)) = self.detach(&mut rest) {
            let here = self.events(chunk)[..count].iter().map(|event| event.time.as_ps()).min();
            least = [least, here].into_iter().flatten().min();
        }
        least
    }

    /// In what the times of a chain's events are alike. The chain is not empty.
    pub(super) fn likeness(&self, chain: &Chain) -> Likeness {
        let first = self.chunk(chain.head).events[0].time.as_ps();
        let mut differing = 0;
        let mut rest = *chain;
        while let Some((chunk, count)) = self.detach(&mut rest) {
            let events = &self.events(chunk)[..count];
            differing |= events.iter().fold(0, |bits, event| bits | (event.time.as_ps() ^ first));
        }
        Likeness { first, differing }
    }

    /// Takes the first chunk off `chain`, with how many events it holds. It stays allocated until
    /// [`Arena::release`].
    #[inline]
    pub(super) fn detach(&self, chain: &mut Chain) -> Option<(u32, usize)> {
        if chain.len == 0 {
            return None;
        }
        let id = chain.head;
        let count = chain.len.min(CHUNK_EVENTS as u64) as usize;
        chain.len -= count as u64;
        chain.head = self.chunk(id).next;
        Some((id, count))
    }

    /// The events of a chunk, those beyond its count being old ones.
    #[inline]
    pub(super) fn events(&self, id: u32) -> &[Event<E>; CHUNK_EVENTS] {
        &self.chunk(id).events
    }

    /// Frees a chunk.
    #[inline]
    pub(super) fn release(&mut self, id: u32) {
        let free = self.free;
        self.chunk_mut(id).next = free;
        self.free = id;
    }

    #[inline]
    fn chunk(&self, id: u32) -> &Chunk<E> {
        &self.slabs[id as usize / SLAB_CHUNKS][id as usize % SLAB_CHUNKS]
    }

    #[inline]
    fn chunk_mut(&mut self, id: u32) -> &mut Chunk<E> {
        &mut self.slabs[id as usize / SLAB_CHUNKS][id as usize % SLAB_CHUNKS]
    }
}

/// A chain that is read from its front while it grows at its end: events of one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    chain: Chain,
    /// Events of the first chunk that are gone already.
    read: usize,
}

impl Lane {
    pub(super) const EMPTY: Self = Self { chain: Chain::EMPTY, read: 0 };

    /// A lane of these events, which are in the order in which they are to leave.
    pub(super) const fn from_chain(chain: Chain) -> Self {
        Self { chain, read: 0 }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.chain.len == self.read as u64
    }

    /// The event that leaves next.
    #[inline]
    pub(super) fn first<'a, E: Copy>(&self, arena: &'a Arena<E>) -> Option<&'a Event<E>> {
        if self.is_empty() { None } else { Some(&arena.chunk(self.chain.head).events[self.read]) }
    }

    pub(super) fn push<E: Copy>(&mut self, arena: &mut Arena<E>, event: Event<E>) {
        arena.append(&mut self.chain, event);
    }

    /// Drops the event that [`Lane::first`] shows. Not to be called on an empty lane.
    pub(super) fn drop_first<E: Copy>(&mut self, arena: &mut Arena<E>) {
        self.read += 1;
        if self.read == CHUNK_EVENTS || self.is_empty() {
            let id = self.chain.head;
            self.chain.len -= self.read as u64;
            self.chain.head = arena.chunk(id).next;
            self.read = 0;
            arena.release(id);
        }
    }
}
