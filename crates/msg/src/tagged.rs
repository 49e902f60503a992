//! Matching by 64-bit tags and masks: which receive takes which message, for the direct transport.
//!
//! A message has a source and a tag; or no tag, and is then of another kind that only receives without a
//! tag take. A receive names a tag, the bits of it that do not count, and a source or any. As in
//! [`crate::matching`], a message goes to the earliest posted receive that accepts it, and a receive takes
//! the earliest arrived message that it accepts; masks leave nothing to hash by, so both queues are searched
//! from their beginning, which for programs that keep few of either is a comparison or two.

use alloc::collections::VecDeque;

/// What a message is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender.
    pub source: u32,
    /// The tag, if the message is of the tagged kind.
    pub tag: Option<u64>,
}

/// What a receive asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Whose messages; `None` is anyone's.
    pub source: Option<u32>,
    /// The tag; `None` asks for messages of the kind without one.
    pub tag: Option<u64>,
    /// Bits of the tag that do not count.
    pub ignore: u64,
}

impl Pattern {
    /// Whether a message with this envelope is accepted.
    #[inline]
    #[must_use]
    pub fn accepts(&self, envelope: &Envelope) -> bool {
        let tag = match (self.tag, envelope.tag) {
            (Some(wanted), Some(tag)) => (wanted ^ tag) & !self.ignore == 0,
            (None, None) => true,
            _ => false,
        };
        tag && self.source.is_none_or(|source| source == envelope.source)
    }
}

/// The two queues of one receiver; `R` stands for a receive, `M` for a message that came unexpected.
///
/// ```
/// use wiretwin_msg::tagged::{Envelope, Matcher, Pattern};
///
/// let mut matcher = Matcher::new();
/// let any_low_bits = Pattern { source: None, tag: Some(0x700), ignore: 0xff };
/// assert_eq!(matcher.post(any_low_bits, "receive"), None);
/// let envelope = Envelope { source: 3, tag: Some(0x742) };
/// assert_eq!(matcher.arrive(envelope, || "message"), Some("receive"));
/// ```
#[derive(Clone, Debug)]
pub struct Matcher<R, M> {
    posted: VecDeque<(Pattern, R)>,
    unexpected: VecDeque<(Envelope, M)>,
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        Self { posted: VecDeque::new(), unexpected: VecDeque::new() }
    }
}

impl<R, M> Matcher<R, M> {
    /// No receive posted, no message arrived.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Posts a receive: the message that it takes at once, if one has come.
    pub fn post(&mut self, pattern: Pattern, receive: R) -> Option<(Envelope, M)> {
        let taken = self.take(&pattern);
        if taken.is_none() {
            self.posted.push_back((pattern, receive));
        }
        taken
    }

    /// A message comes: the receive that takes it, or else what `message` makes of it waits.
    #[inline]
    pub fn arrive(&mut self, envelope: Envelope, message: impl FnOnce() -> M) -> Option<R> {
        let place = self.posted.iter().position(|(pattern, _)| pattern.accepts(&envelope));
        let Some(place) = place else {
            self.unexpected.push_back((envelope, message()));
            return None;
        };
        taken_out(&mut self.posted, place).map(|(_, receive)| receive)
    }

    /// The earliest unexpected message that `pattern` accepts, left where it is.
    pub fn probe(&self, pattern: &Pattern) -> Option<&(Envelope, M)> {
        self.unexpected.iter().find(|(envelope, _)| pattern.accepts(envelope))
    }

    /// The same, taken out of the queue.
    pub fn take(&mut self, pattern: &Pattern) -> Option<(Envelope, M)> {
        let place = self.unexpected.iter().position(|(envelope, _)| pattern.accepts(envelope))?;
        taken_out(&mut self.unexpected, place)
    }

    /// Withdraws the receives for which `is` holds; they are handed to `withdrawn` in their order.
    pub fn withdraw(&mut self, mut is: impl FnMut(&Pattern, &R) -> bool, mut withdrawn: impl FnMut(R)) {
        let mut place = 0;
        while place < self.posted.len() {
            if is(&self.posted[place].0, &self.posted[place].1) {
                if let Some((_, receive)) = self.posted.remove(place) {
                    withdrawn(receive);
                }
            } else {
                place += 1;
            }
        }
    }

    /// Keeps of the unexpected messages those for which `is` holds.
    pub fn keep(&mut self, mut is: impl FnMut(&Envelope, &M) -> bool) {
        self.unexpected.retain(|(envelope, message)| is(envelope, message));
    }
}

/// What was at a place of a queue: nearly always the first.
#[inline]
fn taken_out<T>(queue: &mut VecDeque<T>, place: usize) -> Option<T> {
    if place == 0 { queue.pop_front() } else { queue.remove(place) }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn tagged(source: Option<u32>, tag: u64, ignore: u64) -> Pattern {
        Pattern { source, tag: Some(tag), ignore }
    }

    fn from(source: u32, tag: u64) -> Envelope {
        Envelope { source, tag: Some(tag) }
    }

    #[test]
    fn a_message_goes_to_the_earliest_receive_that_accepts_it() {
        let mut matcher = Matcher::<u32, u32>::new();
        assert_eq!(matcher.post(tagged(Some(1), 5, 0), 10), None);
        assert_eq!(matcher.post(tagged(None, 0, u64::MAX), 11), None);
        assert_eq!(matcher.post(tagged(Some(2), 5, 0), 12), None);
        assert_eq!(matcher.arrive(from(2, 5), || 0), Some(11));
        assert_eq!(matcher.arrive(from(2, 5), || 0), Some(12));
        assert_eq!(matcher.arrive(from(2, 5), || 7), None);
        assert_eq!(matcher.arrive(from(1, 5), || 0), Some(10));
        assert_eq!(matcher.post(tagged(None, 4, 1), 13), Some((from(2, 5), 7)));
    }

    #[test]
    fn messages_of_one_source_do_not_overtake_each_other() {
        let mut matcher = Matcher::<u32, u32>::new();
        for number in 0..3 {
            assert_eq!(matcher.arrive(from(1, 5), || number), None);
        }
        assert_eq!(matcher.probe(&tagged(Some(1), 5, 0)), Some(&(from(1, 5), 0)));
        for number in 0..3 {
            assert_eq!(matcher.take(&tagged(Some(1), 5, 0)), Some((from(1, 5), number)));
        }
        assert_eq!(matcher.take(&tagged(Some(1), 5, 0)), None);
    }

    #[test]
    fn messages_with_and_without_tags_are_apart() {
        let mut matcher = Matcher::<u32, u32>::new();
        let plain = Pattern { source: None, tag: None, ignore: 0 };
        matcher.post(plain, 1);
        matcher.post(tagged(None, 0, u64::MAX), 2);
        assert_eq!(matcher.arrive(from(0, 9), || 0), Some(2));
        assert_eq!(matcher.arrive(Envelope { source: 0, tag: None }, || 0), Some(1));
    }

    #[test]
    fn what_is_withdrawn_takes_nothing_and_the_rest_stays_in_order() {
        let mut matcher = Matcher::<u32, u32>::new();
        (0..4).for_each(|receive| assert_eq!(matcher.post(tagged(Some(receive % 2), 5, 0), receive), None));
        let mut gone = Vec::new();
        matcher.withdraw(|pattern, _| pattern.source == Some(0), |receive| gone.push(receive));
        assert_eq!(gone, [0, 2]);
        assert_eq!(matcher.arrive(from(0, 5), || 9), None);
        assert_eq!(matcher.arrive(from(1, 5), || 9), Some(1));
        matcher.keep(|_, &message| message != 9);
        assert_eq!(matcher.take(&tagged(None, 5, 0)), None);
    }
}
