//! The memory of a content: one piece for a head, a body and what fills it, and queues where there is more.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;

use super::Front;

/// Octets that need no queue: the heads of a short message of MPICH take 72, all others fewer.
const FEW: usize = 112;

/// One range of octets, or of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Octets(u64),
    Body(Payload),
}

/// What is in a content: a few octets and one range of a message, else queues of either.
///
/// There are as many contents as connections at times, so that this is small, and allocated once.
#[derive(Clone, Debug)]
pub(super) struct Held {
    few: [u8; FEW],
    /// Of the few, those that are there.
    from: u8,
    to: u8,
    /// Those from here on are behind the body; where there is none, this is `to`.
    cut: u8,
    has_body: bool,
    /// Whether all is in the queues, and nothing here.
    is_long: bool,
    body: Payload,
    /// Kept for its memory where it is empty.
    long: Option<Box<Long>>,
}

#[derive(Clone, Debug, Default)]
struct Long {
    octets: VecDeque<u8>,
    parts: VecDeque<Part>,
}

impl Long {
    fn push_octets(&mut self, octets: &[u8]) {
        self.octets.extend(octets);
        self.count(octets.len() as u64);
    }

    fn count(&mut self, octets: u64) {
        match self.parts.back_mut() {
            Some(Part::Octets(count)) => *count += octets,
            _ => self.parts.push_back(Part::Octets(octets)),
        }
    }

    fn push_body(&mut self, body: Payload) {
        match self.parts.back_mut() {
            Some(Part::Body(last)) if goes_on(last, &body) => last.length += body.length,
            _ => self.parts.push_back(Part::Body(body)),
        }
    }
}

/// Whether a range goes on where the one before it ends.
fn goes_on(last: &Payload, next: &Payload) -> bool {
    last.message == next.message && last.start + last.length == next.start && next.length > Bytes::new(0)
}

impl Default for Held {
    fn default() -> Self {
        Self {
            few: [0; FEW],
            from: 0,
            to: 0,
            cut: 0,
            has_body: false,
            is_long: false,
            body: NO_BODY,
            long: None,
        }
    }
}

const NO_BODY: Payload =
    Payload { message: wiretwin_proto::MessageId(0), start: Bytes::new(0), length: Bytes::new(0) };

impl Held {
    pub(super) const fn is_empty(&self) -> bool {
        !self.is_long && !self.has_body && self.from == self.to
    }

    /// The queues, where all is in them.
    fn queues(&self) -> Option<&Long> {
        if self.is_long { self.long.as_deref() } else { None }
    }

    fn queues_mut(&mut self) -> Option<&mut Long> {
        if self.is_long { self.long.as_deref_mut() } else { None }
    }

    /// The octets here that are before the body, and those behind it.
    fn few(&self) -> (&[u8], &[u8]) {
        let (from, cut, to) = (usize::from(self.from), usize::from(self.cut), usize::from(self.to));
        (&self.few[from..cut], &self.few[cut..to])
    }

    pub(super) fn front(&self) -> Front {
        if let Some(long) = self.queues() {
            return match long.parts.front() {
                None => Front::Nothing,
                Some(Part::Octets(count)) => Front::Octets(Bytes::new(*count)),
                Some(Part::Body(body)) => Front::Body(*body),
            };
        }
        match (self.few().0.len(), self.has_body) {
            (0, false) => Front::Nothing,
            (0, true) => Front::Body(self.body),
            (count, _) => Front::Octets(Bytes::new(count as u64)),
        }
    }

    /// Puts octets behind, at least one.
    pub(super) fn push_octets(&mut self, octets: &[u8]) {
        if let Some(long) = self.queues_mut() {
            return long.push_octets(octets);
        }
        match self.room_for(octets.len()) {
            Some(room) => room.copy_from_slice(octets),
            None => self.spill().push_octets(octets),
        }
    }

    /// Puts so many zeros behind, at least one.
    pub(super) fn push_zeros(&mut self, count: u64) {
        if !self.is_long
            && let Ok(few) = usize::try_from(count)
            && let Some(room) = self.room_for(few)
        {
            return room.fill(0);
        }
        let long = self.spill();
        long.octets.extend(core::iter::repeat_n(0, count as usize));
        long.count(count);
    }

    /// The place of so many octets more, which are now among those here; `None` where there is none.
    fn room_for(&mut self, octets: usize) -> Option<&mut [u8]> {
        let (from, to) = (usize::from(self.from), usize::from(self.to));
        if octets > FEW - (to - from) {
            return None;
        }
        if octets > FEW - to {
            self.few.copy_within(from..to, 0);
            self.from = 0;
            self.to -= from as u8;
            self.cut -= from as u8;
        }
        let to = usize::from(self.to);
        self.to += octets as u8;
        if !self.has_body {
            self.cut = self.to;
        }
        Some(&mut self.few[to..to + octets])
    }

    /// Puts a range of a message behind; one that goes on where the last one ends becomes one with it.
    pub(super) fn push_body(&mut self, body: Payload) {
        if let Some(long) = self.queues_mut() {
            long.push_body(body);
        } else if !self.has_body {
            (self.body, self.has_body) = (body, true);
        } else if self.cut == self.to && goes_on(&self.body, &body) {
            self.body.length += body.length;
        } else {
            self.spill().push_body(body);
        }
    }

    /// Everything goes to the queues.
    fn spill(&mut self) -> &mut Long {
        let mut long = self.long.take().unwrap_or_default();
        if !self.is_long {
            let (before, behind) = self.few();
            if !before.is_empty() {
                long.push_octets(before);
            }
            if self.has_body {
                long.push_body(self.body);
            }
            if !behind.is_empty() {
                long.push_octets(behind);
            }
            self.forget_few();
            self.is_long = true;
        }
        self.long.insert(long)
    }

    fn forget_few(&mut self) {
        (self.from, self.to, self.cut, self.has_body) = (0, 0, 0, false);
    }

    /// Takes so many octets from the front, which are there, and shows them in one or two pieces.
    pub(super) fn take_octets(&mut self, count: usize, mut show: impl FnMut(&[u8])) {
        let Some(long) = self.queues_mut() else {
            show(&self.few().0[..count]);
            self.from += count as u8;
            if self.from == self.to {
                (self.from, self.to, self.cut) = (0, 0, 0);
            }
            return;
        };
        let (first, second) = long.octets.as_slices();
        show(&first[..count.min(first.len())]);
        if count > first.len() {
            show(&second[..count - first.len()]);
        }
        long.octets.drain(..count);
        if let Some(Part::Octets(there)) = long.parts.front_mut() {
            *there -= count as u64;
            if *there == 0 {
                self.pop_part();
            }
        }
    }

    /// Takes up to so many octets of the range of a message in front; `None` where none is.
    pub(super) fn take_body(&mut self, most: Bytes) -> Option<Payload> {
        let Front::Body(_) = self.front() else { return None };
        let body = match self.queues_mut().and_then(|long| long.parts.front_mut()) {
            Some(Part::Body(body)) => body,
            _ => &mut self.body,
        };
        let taken = Payload { length: most.min(body.length), ..*body };
        body.start += taken.length;
        body.length -= taken.length;
        if body.length == Bytes::new(0) {
            if self.is_long {
                self.pop_part();
            } else {
                (self.has_body, self.cut) = (false, self.to);
            }
        }
        Some(taken)
    }

    /// The first part of the queues is used up; with the last one they are only kept.
    fn pop_part(&mut self) {
        if let Some(long) = &mut self.long {
            long.parts.pop_front();
            self.is_long = !long.parts.is_empty();
        }
    }

    /// The first octets, in order.
    pub(super) fn octets(&self) -> impl Iterator<Item = u8> + '_ {
        let (before, behind) = self.few();
        let long = self.queues().into_iter().flat_map(|long| &long.octets);
        before.iter().chain(behind).chain(long).copied()
    }

    /// What there is, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let (before, behind) = self.few();
        let octets = |few: &[u8]| (!few.is_empty()).then_some(Part::Octets(few.len() as u64));
        let body = self.has_body.then_some(Part::Body(self.body));
        let long = self.queues().into_iter().flat_map(|long| &long.parts).copied();
        octets(before).into_iter().chain(body).chain(octets(behind)).chain(long)
    }

    /// Forgets everything; the memory stays.
    pub(super) fn clear(&mut self) {
        self.forget_few();
        self.is_long = false;
        if let Some(long) = &mut self.long {
            long.octets.clear();
            long.parts.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_are_most_of_takes_two_cache_lines_with_what_the_allocator_adds() {
        assert!(size_of::<Held>() <= 152, "{}", size_of::<Held>());
    }
}
