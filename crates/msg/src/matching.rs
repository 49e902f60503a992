//! Message matching: which receive takes which message.
//!
//! MPI-4.1, section 3.5 (semantics of point-to-point communication) and 3.8 (probe and cancel). A
//! message carries a context, a source and a tag; a receive names a context and a source and a tag
//! or wildcards. A message goes to the earliest posted receive that accepts it; a receive takes the
//! earliest arrived message that it accepts. Messages of one sender in one context arrive in the
//! order they were sent (that is the caller's promise), so they do not overtake each other.
//!
//! One [`Matcher`] serves all destinations of a simulated world. Receives without wildcards and
//! unexpected messages are found by hashing destination, context, source and tag; receives with a
//! wildcard stand in one list per destination and context, in the order they were posted, and so do
//! unexpected messages a second time, for receives with wildcards and for probes. Entries live in a
//! slab: once the queues have been as long as they get, nothing allocates.
//!
//! Left out: matched probe (`MPI_Mprobe`) hands the message over as [`Matcher::take`].

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::table::{Key, Slot, Table, mix};

/// Whose messages a receive or probe accepts; `None` is `MPI_ANY_SOURCE`.
pub type SourceFilter = Option<u32>;

/// Which tags a receive or probe accepts; `None` is `MPI_ANY_TAG`.
pub type TagFilter = Option<u32>;

/// What a message is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The communicator's context.
    pub context: u32,
    /// The sender.
    pub source: u32,
    /// The tag.
    pub tag: u32,
}

/// What a receive or a probe asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The communicator's context.
    pub context: u32,
    /// Whose messages.
    pub source: SourceFilter,
    /// Which tags.
    pub tag: TagFilter,
}

impl Pattern {
    /// Whether a message with this envelope is accepted.
    #[inline]
    #[must_use]
    pub fn accepts(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

/// A receive that waits in the posted queue, for [`Matcher::cancel`]: one more than its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted(NonZeroU32);

/// The answer to [`Matcher::post`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOutcome {
    /// The receive took a message that had arrived already: its owner's handle.
    Took {
        /// The envelope of the message.
        envelope: Envelope,
        /// The handle given to [`Matcher::arrive`].
        message: u64,
    },
    /// No message yet; the receive waits.
    Waits(Posted),
}

const NONE: u32 = u32::MAX;
/// Stands for "any" in the place of a receive, and for both in the list that holds all wildcard receives of a destination
/// and context. Real sources and tags are smaller.
const ANY: u32 = u32::MAX;
/// Stands for both in the list that holds all unexpected messages of a destination and context.
const ALL: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    destination: u32,
    context: u32,
    source: u32,
    tag: u32,
}

impl Key for Place {
    #[inline]
    fn hash(&self) -> u64 {
        let first = u64::from(self.destination) | (u64::from(self.context) << 32);
        let second = u64::from(self.source) | (u64::from(self.tag) << 32);
        mix(first, second)
    }
}

/// Ends of a doubly linked list through the slab.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };
}

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

impl Links {
    const ALONE: Self = Self { previous: NONE, next: NONE };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Free,
    Posted,
    Unexpected,
}

/// One line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry {
    /// Order of posting, comparable between lists.
    sequence: u64,
    handle: u64,
    /// Where the entry stands; source or tag is `ANY` for a receive with that wildcard.
    place: Place,
    /// In the list of its exact place, or for a wildcard receive in that of its context.
    exact: Links,
    /// In the list of its destination and context (unexpected messages only).
    context: Links,
    kind: EntryKind,
}

/// The matching state of any number of destinations.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    /// Lists that are not empty. That of an exact place holds either receives or messages: they would have met.
    places: Table<Place, List>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    next_sequence: u64,
    /// Wildcard receives waiting, over all destinations: while there is none, an arrival need not look.
    wildcards: usize,
    posted: usize,
    unexpected: usize,
}

impl Matcher {
    /// No receive posted, no message arrived.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many receives wait.
    #[must_use]
    pub const fn posted_count(&self) -> usize {
        self.posted
    }

    /// How many messages wait for a receive.
    #[must_use]
    pub const fn unexpected_count(&self) -> usize {
        self.unexpected
    }

    /// Bytes of memory held.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.places.memory_bytes()
            + self.entries.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Posts a receive at `destination`; `handle` comes back from [`Matcher::arrive`].
    pub fn post(&mut self, destination: u32, pattern: Pattern, handle: u64) -> PostOutcome {
        if let Some(index) = self.find_unexpected(destination, &pattern) {
            let (envelope, message) = self.remove_unexpected(index);
            return PostOutcome::Took { envelope, message };
        }
        let place = Place {
            destination,
            context: pattern.context,
            source: pattern.source.unwrap_or(ANY),
            tag: pattern.tag.unwrap_or(ANY),
        };
        let index = self.insert(EntryKind::Posted, place, handle);
        let list_place = list_of_posted(&place);
        self.push(list_place, index, exact_links);
        if is_wildcard(&place) {
            self.wildcards += 1;
        }
        self.posted += 1;
        PostOutcome::Waits(Posted(NonZeroU32::MIN.saturating_add(index)))
    }

    /// A message reaches `destination`: the handle of the receive that takes it, or `None` if it
    /// joins the unexpected queue under `message`.
    pub fn arrive(&mut self, destination: u32, envelope: Envelope, message: u64) -> Option<u64> {
        let place =
            Place { destination, context: envelope.context, source: envelope.source, tag: envelope.tag };
        let slot = self.places.find(&place);
        let exact = slot.map_or(NONE, |slot| self.head(slot, EntryKind::Posted));
        let wildcard = if self.wildcards == 0 { NONE } else { self.first_wildcard(destination, &envelope) };
        let is_exact = match (exact, wildcard) {
            (_, NONE) => true,
            (NONE, _) => false,
            _ => self.entries[exact as usize].sequence < self.entries[wildcard as usize].sequence,
        };
        if !is_exact {
            return Some(self.remove_posted(wildcard));
        }
        if let Some(slot) = slot.filter(|_| exact != NONE) {
            let handle = self.entries[exact as usize].handle;
            self.unlink(slot, exact, exact_links);
            self.posted -= 1;
            self.release(exact);
            return Some(handle);
        }
        let index = self.insert(EntryKind::Unexpected, place, message);
        self.push(place, index, exact_links);
        self.push(context_list(&place), index, context_links);
        self.unexpected += 1;
        None
    }

    /// The earliest unexpected message that `pattern` accepts, left where it is (`MPI_Iprobe`).
    #[must_use]
    pub fn probe(&self, destination: u32, pattern: &Pattern) -> Option<(Envelope, u64)> {
        let index = self.find_unexpected(destination, pattern)?;
        let entry = &self.entries[index as usize];
        Some((envelope_of(&entry.place), entry.handle))
    }

    /// The same, taken out of the queue (`MPI_Improbe`).
    pub fn take(&mut self, destination: u32, pattern: &Pattern) -> Option<(Envelope, u64)> {
        let index = self.find_unexpected(destination, pattern)?;
        Some(self.remove_unexpected(index))
    }

    /// Takes this unexpected message back, wherever it stands: `false` if it has been matched.
    pub fn withdraw(&mut self, destination: u32, envelope: &Envelope, message: u64) -> bool {
        let Envelope { context, source, tag } = *envelope;
        let place = Place { destination, context, source, tag };
        let slot = self.places.find(&place);
        let mut at = slot.map_or(NONE, |slot| self.head(slot, EntryKind::Unexpected));
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.handle == message {
                self.remove_unexpected(at);
                return true;
            }
            at = entry.exact.next;
        }
        false
    }

    /// Withdraws a receive (`MPI_Cancel`): `false` if it has been matched, or cancelled before.
    ///
    /// `handle` must be the one the receive was posted with; it tells a reused place apart.
    pub fn cancel(&mut self, receive: Posted, handle: u64) -> bool {
        let index = receive.0.get() - 1;
        match self.entries.get(index as usize) {
            Some(entry) if entry.kind == EntryKind::Posted && entry.handle == handle => {
                self.remove_posted(index);
                true
            }
            _ => false,
        }
    }

    fn first_wildcard(&self, destination: u32, envelope: &Envelope) -> u32 {
        let place = Place { destination, context: envelope.context, source: ANY, tag: ANY };
        let mut at = self.places.get(&place).map_or(NONE, |list| list.head);
        while at != NONE {
            let entry = &self.entries[at as usize];
            if pattern_of(&entry.place).accepts(envelope) {
                return at;
            }
            at = entry.exact.next;
        }
        NONE
    }

    fn find_unexpected(&self, destination: u32, pattern: &Pattern) -> Option<u32> {
        if self.unexpected == 0 {
            return None;
        }
        if let (Some(source), Some(tag)) = (pattern.source, pattern.tag) {
            let place = Place { destination, context: pattern.context, source, tag };
            let head = self.head(self.places.find(&place)?, EntryKind::Unexpected);
            return (head != NONE).then_some(head);
        }
        let place = Place { destination, context: pattern.context, source: ALL, tag: ALL };
        let mut at = self.places.get(&place)?.head;
        while at != NONE {
            let entry = &self.entries[at as usize];
            if pattern.accepts(&envelope_of(&entry.place)) {
                return Some(at);
            }
            at = entry.context.next;
        }
        None
    }

    fn insert(&mut self, kind: EntryKind, place: Place, handle: u64) -> u32 {
        let entry = Entry {
            sequence: self.next_sequence,
            handle,
            place,
            exact: Links::ALONE,
            context: Links::ALONE,
            kind,
        };
        self.next_sequence += 1;
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return index;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    /// The first of the list at a place of the table, if it is of this kind.
    #[inline]
    fn head(&self, slot: Slot, kind: EntryKind) -> u32 {
        let head = self.places.at(slot).map_or(NONE, |list| list.head);
        if head != NONE && self.entries[head as usize].kind == kind { head } else { NONE }
    }

    fn remove_posted(&mut self, index: u32) -> u64 {
        let Entry { place, handle, .. } = self.entries[index as usize];
        self.remove(list_of_posted(&place), index, exact_links);
        if is_wildcard(&place) {
            self.wildcards -= 1;
        }
        self.posted -= 1;
        self.release(index);
        handle
    }

    fn remove_unexpected(&mut self, index: u32) -> (Envelope, u64) {
        let Entry { place, handle, .. } = self.entries[index as usize];
        self.remove(place, index, exact_links);
        self.remove(context_list(&place), index, context_links);
        self.unexpected -= 1;
        self.release(index);
        (envelope_of(&place), handle)
    }

    fn release(&mut self, index: u32) {
        self.entries[index as usize].kind = EntryKind::Free;
        self.free.push(index);
    }

    /// Takes an entry out of the list of a place.
    fn remove(&mut self, place: Place, index: u32, links: impl Fn(&mut Entry) -> &mut Links) {
        // An entry in a list keeps the list in the table until it is taken out here.
        let slot = self.places.find(&place).expect("a linked entry has its list");
        self.unlink(slot, index, links);
    }

    #[inline]
    fn unlink(&mut self, slot: Slot, index: u32, links: impl Fn(&mut Entry) -> &mut Links) {
        let Links { previous, next } = *links(&mut self.entries[index as usize]);
        if (previous, next) == (NONE, NONE) {
            self.places.remove_at(slot);
            return;
        }
        if previous != NONE {
            links(&mut self.entries[previous as usize]).next = next;
        }
        if next != NONE {
            links(&mut self.entries[next as usize]).previous = previous;
        }
        if let Some(ends) = self.places.at_mut(slot) {
            ends.head = if previous == NONE { next } else { ends.head };
            ends.tail = if next == NONE { previous } else { ends.tail };
        }
    }

    /// Puts an entry at the end of the list of a place.
    #[inline]
    fn push(&mut self, place: Place, index: u32, links: impl Fn(&mut Entry) -> &mut Links) {
        let list = self.places.entry(place, || List::EMPTY);
        let previous = core::mem::replace(&mut list.tail, index);
        *links(&mut self.entries[index as usize]) = Links { previous, next: NONE };
        if previous == NONE {
            list.head = index;
        } else {
            links(&mut self.entries[previous as usize]).next = index;
        }
    }
}

fn exact_links(entry: &mut Entry) -> &mut Links {
    &mut entry.exact
}

fn context_links(entry: &mut Entry) -> &mut Links {
    &mut entry.context
}

const fn is_wildcard(place: &Place) -> bool {
    place.source == ANY || place.tag == ANY
}

const fn context_list(place: &Place) -> Place {
    Place { destination: place.destination, context: place.context, source: ALL, tag: ALL }
}

const fn list_of_posted(place: &Place) -> Place {
    if !is_wildcard(place) {
        return *place;
    }
    Place { destination: place.destination, context: place.context, source: ANY, tag: ANY }
}

const fn envelope_of(place: &Place) -> Envelope {
    Envelope { context: place.context, source: place.source, tag: place.tag }
}

fn pattern_of(place: &Place) -> Pattern {
    Pattern {
        context: place.context,
        source: (place.source != ANY).then_some(place.source),
        tag: (place.tag != ANY).then_some(place.tag),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn any_tag(source: u32) -> Pattern {
        Pattern { context: 0, source: Some(source), tag: None }
    }

    fn exactly(source: u32, tag: u32) -> Pattern {
        Pattern { context: 0, source: Some(source), tag: Some(tag) }
    }

    const ANYTHING: Pattern = Pattern { context: 0, source: None, tag: None };

    fn from(source: u32, tag: u32) -> Envelope {
        Envelope { context: 0, source, tag }
    }

    #[test]
    fn messages_of_one_sender_do_not_overtake_under_a_wildcard_tag() {
        let mut matcher = Matcher::new();
        assert_eq!(matcher.arrive(9, from(1, 7), 100), None);
        assert_eq!(matcher.arrive(9, from(1, 3), 101), None);
        let took = PostOutcome::Took { envelope: from(1, 7), message: 100 };
        assert_eq!(matcher.post(9, any_tag(1), 1), took);
        let took = PostOutcome::Took { envelope: from(1, 3), message: 101 };
        assert_eq!(matcher.post(9, any_tag(1), 2), took);
    }

    #[test]
    fn the_earlier_of_an_exact_and_a_wildcard_receive_takes_the_message() {
        let mut matcher = Matcher::new();
        matcher.post(0, ANYTHING, 1);
        matcher.post(0, exactly(4, 4), 2);
        assert_eq!(matcher.arrive(0, from(4, 4), 100), Some(1));
        assert_eq!(matcher.arrive(0, from(4, 4), 101), Some(2));
        matcher.post(0, exactly(4, 4), 3);
        matcher.post(0, ANYTHING, 4);
        assert_eq!(matcher.arrive(0, from(4, 4), 102), Some(3));
        assert_eq!(matcher.arrive(0, from(5, 5), 103), Some(4));
    }

    #[test]
    fn contexts_and_destinations_are_apart() {
        let mut matcher = Matcher::new();
        matcher.post(0, ANYTHING, 1);
        assert_eq!(matcher.arrive(0, Envelope { context: 1, source: 0, tag: 0 }, 100), None);
        assert_eq!(matcher.arrive(1, from(0, 0), 101), None);
        assert_eq!(matcher.arrive(0, from(0, 0), 102), Some(1));
        assert_eq!(matcher.unexpected_count(), 2);
    }

    #[test]
    fn a_cancelled_receive_takes_nothing_and_is_cancelled_once() {
        let mut matcher = Matcher::new();
        let PostOutcome::Waits(receive) = matcher.post(0, exactly(1, 1), 5) else { panic!("nothing came") };
        assert!(matcher.cancel(receive, 5));
        assert!(!matcher.cancel(receive, 5));
        assert_eq!(matcher.arrive(0, from(1, 1), 100), None);
        matcher.post(0, exactly(2, 2), 6);
        assert!(!matcher.cancel(receive, 5), "the place is another receive's now");
        assert_eq!(matcher.posted_count(), 1);
    }

    #[test]
    fn a_probe_leaves_the_message_and_take_removes_it() {
        let mut matcher = Matcher::new();
        matcher.arrive(0, from(1, 1), 100);
        matcher.arrive(0, from(2, 1), 101);
        let tag_one = Pattern { context: 0, source: None, tag: Some(1) };
        assert_eq!(matcher.probe(0, &tag_one), Some((from(1, 1), 100)));
        assert_eq!(matcher.probe(0, &any_tag(2)), Some((from(2, 1), 101)));
        assert_eq!(matcher.take(0, &tag_one), Some((from(1, 1), 100)));
        assert_eq!(matcher.take(0, &tag_one), Some((from(2, 1), 101)));
        assert_eq!(matcher.take(0, &tag_one), None);
    }

    #[test]
    fn steady_traffic_with_ever_new_tags_keeps_no_memory() {
        let mut matcher = Matcher::new();
        for tag in 0..64 {
            matcher.arrive(0, from(1, tag), 1);
            matcher.post(0, exactly(1, tag), 2);
        }
        let held = matcher.memory_bytes();
        for tag in 64..10_000 {
            matcher.arrive(0, from(1, tag), 1);
            matcher.post(0, exactly(1, tag), 2);
            matcher.post(0, exactly(1, tag), 3);
            matcher.arrive(0, from(1, tag), 4);
        }
        assert_eq!(matcher.memory_bytes(), held);
        assert!(matcher.places.is_empty());
    }

    /// The standard's words, read literally: two lists, searched from the front.
    #[derive(Default)]
    struct Naive {
        posted: Vec<(u32, Pattern, u64)>,
        unexpected: Vec<(u32, Envelope, u64)>,
    }

    impl Naive {
        fn post(&mut self, destination: u32, pattern: Pattern, handle: u64) -> Option<(Envelope, u64)> {
            let found = self
                .unexpected
                .iter()
                .position(|(at, envelope, _)| *at == destination && pattern.accepts(envelope));
            if let Some(index) = found {
                let (_, envelope, message) = self.unexpected.remove(index);
                return Some((envelope, message));
            }
            self.posted.push((destination, pattern, handle));
            None
        }

        fn arrive(&mut self, destination: u32, envelope: Envelope, message: u64) -> Option<u64> {
            let found = self
                .posted
                .iter()
                .position(|(at, pattern, _)| *at == destination && pattern.accepts(&envelope));
            if let Some(index) = found {
                return Some(self.posted.remove(index).2);
            }
            self.unexpected.push((destination, envelope, message));
            None
        }
    }

    fn filter() -> impl Strategy<Value = Option<u32>> {
        prop_oneof![2 => (0u32..3).prop_map(Some), 1 => Just(None)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn matcher_agrees_with_two_linear_lists(
            steps in prop::collection::vec((0u8..8, 0u32..2, 0u32..2, filter(), filter(), 0u32..3, 0u32..3), 1..300)
        ) {
            let mut matcher = Matcher::new();
            let mut naive = Naive::default();
            let mut receives = Vec::new();
            for (handle, (what, destination, context, source, tag, from, with)) in steps.into_iter().enumerate() {
                let handle = handle as u64;
                let pattern = Pattern { context, source, tag };
                let envelope = Envelope { context, source: from, tag: with };
                match what {
                    0..=2 => match (matcher.post(destination, pattern, handle), naive.post(destination, pattern, handle)) {
                        (PostOutcome::Took { envelope, message }, expected) => {
                            prop_assert_eq!(Some((envelope, message)), expected);
                        }
                        (PostOutcome::Waits(receive), expected) => {
                            prop_assert_eq!(expected, None);
                            receives.push((receive, handle));
                        }
                    },
                    3..=5 => prop_assert_eq!(
                        matcher.arrive(destination, envelope, handle),
                        naive.arrive(destination, envelope, handle)
                    ),
                    6 => {
                        let expected = naive.unexpected.iter()
                            .find(|(at, envelope, _)| *at == destination && pattern.accepts(envelope))
                            .map(|(_, envelope, message)| (*envelope, *message));
                        prop_assert_eq!(matcher.probe(destination, &pattern), expected);
                    }
                    _ => {
                        if let Some((receive, handle)) = receives.pop() {
                            let waits = naive.posted.iter().position(|(_, _, held)| *held == handle);
                            if let Some(index) = waits {
                                naive.posted.remove(index);
                            }
                            prop_assert_eq!(matcher.cancel(receive, handle), waits.is_some());
                        }
                    }
                }
                prop_assert_eq!(matcher.posted_count(), naive.posted.len());
                prop_assert_eq!(matcher.unexpected_count(), naive.unexpected.len());
            }
        }
    }
}
