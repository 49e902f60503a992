//! Where a message's time went: segments that point at what they had to wait for.
//!
//! Everything that takes time leaves a segment: which activity, from when to when, and its *cause*, the
//! segment that had to end before it could begin. Where two had to, the later is the cause. Walking back
//! from the end of a message to its beginning gives the critical path. On it every picosecond belongs to
//! one segment, or lies between the end of a cause and the beginning of what it caused: that is waiting
//! for the resource of the latter. So the parts sum to the latency exactly, whatever the model does.
//!
//! A trail that is switched off costs a branch per segment and no memory.

use wiretwin_units::{SimTime, Span};

use super::activity::Activity;

/// Names a segment of a [`Trail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId(u32);

impl SegmentId {
    /// No segment: nothing is known, or the trail is off.
    pub const NONE: Self = Self(u32::MAX);
}

/// A stretch of time that something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when.
    pub start: SimTime,
    /// To when.
    pub end: SimTime,
    /// The activity that took the time.
    pub activity: Activity,
    /// Whose: the number of the host, adapter, link or switch, by the activity's layer.
    pub place: u16,
    /// What had to end first.
    pub cause: SegmentId,
    /// The message on whose behalf, as [`Trail::begin`] was told.
    pub message: u64,
}

/// One line of an anatomy: time in a resource, with the waiting for it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The segment.
    pub segment: Segment,
    /// Between its cause's end and its start.
    pub waited: Span,
}

/// All segments of a run.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    on: bool,
    segments: Vec<Segment>,
}

impl Trail {
    /// A trail; where `on` is false, nothing is kept.
    #[must_use]
    pub const fn new(on: bool) -> Self {
        Self { on, segments: Vec::new() }
    }

    /// Whether it keeps anything.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// All segments, in the order in which they ended.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The beginning of a message, from which its path is measured.
    pub fn begin(&mut self, message: u64, now: SimTime, place: u16) -> SegmentId {
        if !self.on {
            return SegmentId::NONE;
        }
        let cause = SegmentId::NONE;
        self.keep(Segment { start: now, end: now, activity: Activity::Compute, place, cause, message })
    }

    /// Takes note of a segment, for the message of its cause. Without a cause nothing is kept: it is on
    /// nobody's path.
    pub fn push(
        &mut self,
        cause: SegmentId,
        activity: Activity,
        place: u16,
        start: SimTime,
        end: SimTime,
    ) -> SegmentId {
        if !self.on || cause == SegmentId::NONE {
            return cause;
        }
        let message = self.segments[cause.0 as usize].message;
        self.keep(Segment { start, end, activity, place, cause, message })
    }

    /// Which of two causes counts for something done for `new`'s message: of segments of the same
    /// message the one that ended later, else `new`.
    #[must_use]
    pub fn later(&self, old: SegmentId, new: SegmentId) -> SegmentId {
        let (Some(before), Some(after)) =
            (self.segments.get(old.0 as usize), self.segments.get(new.0 as usize))
        else {
            return if new == SegmentId::NONE { old } else { new };
        };
        if before.message == after.message && before.end > after.end { old } else { new }
    }

    /// The critical path that ends in `last`, of a message that was begun and ended then. What was done
    /// for an earlier message, and had to be, counts from the beginning of this one. Where the processor
    /// did something else after `last`, before the message's process went on, the path ends with a part
    /// that takes no time and waited for as long.
    #[must_use]
    pub fn path(&self, last: SegmentId, begun: SimTime, ended: SimTime) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut next = last;
        if let Some(segment) = self.segments.get(last.0 as usize)
            && segment.end < ended
        {
            let goes_on =
                Segment { start: ended, end: ended, activity: Activity::Compute, cause: last, ..*segment };
            parts.push(Part { segment: goes_on, waited: Span::ZERO });
        }
        while let Some(segment) = self.segments.get(next.0 as usize) {
            if let Some(later) = parts.last_mut() {
                later.waited = later.segment.start - segment.end.max(begun);
            }
            if segment.end < begun || (segment.end == begun && segment.start < begun) {
                break;
            }
            let start = segment.start.max(begun);
            parts.push(Part { segment: Segment { start, ..*segment }, waited: Span::ZERO });
            next = segment.cause;
        }
        // Where nothing is known of the beginning, the first part was waited for.
        if let Some(first) = parts.last_mut()
            && first.waited == Span::ZERO
        {
            first.waited = first.segment.start - begun;
        }
        debug_assert!(
            parts.first().is_none_or(|part| part.segment.end == ended),
            "the path ends where the message does"
        );
        parts.reverse();
        parts
    }

    fn keep(&mut self, segment: Segment) -> SegmentId {
        let id = u32::try_from(self.segments.len()).expect("a traced run is short: below 2^32 segments");
        self.segments.push(segment);
        SegmentId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    #[test]
    fn a_path_has_no_gap_and_no_overlap() {
        let mut trail = Trail::new(true);
        let root = trail.begin(7, at(100), 0);
        let copy = trail.push(root, Activity::CopyIn, 0, at(100), at(150));
        let wire = trail.push(copy, Activity::Serialize, 0, at(170), at(200));
        let fly = trail.push(wire, Activity::Propagate, 0, at(200), at(210));
        let path = trail.path(fly, at(100), at(210));
        let sum: Span = path.iter().map(|part| part.waited + (part.segment.end - part.segment.start)).sum();
        assert_eq!(sum.as_ps(), 110);
        let waits = path.iter().map(|part| part.waited.as_ps()).collect::<Vec<_>>();
        assert_eq!(waits, [0, 0, 20, 0]);
    }

    #[test]
    fn a_processor_that_did_something_else_at_the_end_was_waited_for() {
        let mut trail = Trail::new(true);
        let root = trail.begin(7, at(100), 0);
        let copy = trail.push(root, Activity::CopyOut, 3, at(100), at(150));
        let path = trail.path(copy, at(100), at(190));
        let last = path.last().expect("a part");
        assert_eq!((last.waited.as_ps(), last.segment.start, last.segment.end), (40, at(190), at(190)));
        assert_eq!((last.segment.cause, last.segment.place, path.len()), (copy, 3, 3));
    }

    #[test]
    fn of_two_causes_of_one_message_the_later_counts() {
        let mut trail = Trail::new(true);
        let (one, other) = (trail.begin(1, at(0), 0), trail.begin(2, at(0), 0));
        let early = trail.push(one, Activity::CopyIn, 0, at(0), at(5));
        let late = trail.push(one, Activity::CopyIn, 0, at(5), at(9));
        let strange = trail.push(other, Activity::CopyIn, 0, at(0), at(50));
        assert_eq!((trail.later(early, late), trail.later(late, early)), (late, late));
        assert_eq!(trail.later(strange, early), early, "another message is no cause");
        assert_eq!(trail.later(SegmentId::NONE, early), early);
        assert_eq!(trail.later(early, SegmentId::NONE), early);
    }

    #[test]
    fn a_trail_that_is_off_keeps_nothing() {
        let mut trail = Trail::new(false);
        let root = trail.begin(1, at(0), 0);
        assert_eq!(trail.push(root, Activity::CopyIn, 0, at(0), at(1)), SegmentId::NONE);
        assert!(trail.segments().is_empty() && trail.path(root, at(0), at(0)).is_empty());
    }
}
