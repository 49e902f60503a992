//! Two ways to keep the events of a bare loop in order: by time, and among equals as they were scheduled.

/// What happens, and when: the time in the upper half, the order of scheduling below, a word of the loop's last.
fn entry(time: u64, order: u32, what: u32) -> u128 {
    u128::from(time) << 64 | u128::from(order) << 32 | u128::from(what)
}

fn parts(entry: u128) -> (u64, u32) {
    ((entry >> 64) as u64, entry as u32)
}

/// A heap of four children to a node.
#[derive(Default)]
pub struct Heap {
    entries: Vec<u128>,
    scheduled: u32,
}

impl Heap {
    /// Schedules `what` for `time`.
    #[inline]
    pub fn push(&mut self, time: u64, what: u32) {
        self.scheduled = self.scheduled.wrapping_add(1);
        let entry = entry(time, self.scheduled, what);
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 && self.entries[(at - 1) / 4] > entry {
            self.entries[at] = self.entries[(at - 1) / 4];
            at = (at - 1) / 4;
        }
        self.entries[at] = entry;
    }

    /// The first, which stays.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(u64, u32)> {
        self.entries.first().copied().map(parts)
    }

    /// Schedules `what` for `time` in place of the first: half the work of removing that and pushing this.
    ///
    /// # Panics
    /// On an empty heap.
    #[inline]
    pub fn replace(&mut self, time: u64, what: u32) {
        self.scheduled = self.scheduled.wrapping_add(1);
        self.sink(entry(time, self.scheduled, what));
    }

    /// Drops the first, where there is one.
    #[inline]
    pub fn remove(&mut self) {
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sink(last);
        }
    }

    /// Moves `entry` down from the root, whose own entry is lost, to its place.
    #[inline]
    fn sink(&mut self, entry: u128) {
        let entries = &mut self.entries[..];
        let (mut at, mut child) = (0, 1);
        while let Some(children) = entries.get(child..entries.len().min(child + 4))
            && !children.is_empty()
        {
            // A choice of values rather than of ways, which would be foretold wrongly half of the time.
            let (mut least, mut of) = (children[0], 0);
            for (number, &other) in children.iter().enumerate().skip(1) {
                (least, of) = if other < least { (other, number) } else { (least, of) };
            }
            if least >= entry {
                break;
            }
            entries[at] = least;
            at = child + of;
            child = 4 * at + 1;
        }
        entries[at] = entry;
    }
}

/// A timing wheel: stretches of 2^`shift` of time, each put in order when its turn comes. Nothing may be scheduled
/// further ahead than all stretches together.
///
/// A stretch is a chain through one vector whose places are used again, the last freed first, so that a few hundred
/// events stay in the first cache.
pub struct Wheel {
    /// For each stretch, the place of the event that was scheduled for it last.
    stretches: Vec<u32>,
    /// An event and the next place: of its stretch, or of the free ones.
    places: Vec<(u128, u32)>,
    free: u32,
    /// The stretch whose turn it is, the last first.
    current: Vec<u128>,
    number: u64,
    shift: u32,
    /// Events that wait for the turn of their stretch.
    waiting: usize,
    scheduled: u32,
}

impl Wheel {
    /// The end of a chain.
    const END: u32 = u32::MAX;

    /// From here on the standard library's sort is quicker than putting one entry after the other in its place.
    const LONG: usize = 20;

    /// So many stretches, a power of two.
    ///
    /// # Panics
    /// With another number.
    #[must_use]
    pub fn new(shift: u32, stretches: usize) -> Self {
        assert!(stretches.is_power_of_two(), "the number of a stretch is masked");
        Self {
            stretches: vec![Self::END; stretches],
            places: Vec::new(),
            free: Self::END,
            current: Vec::new(),
            number: 0,
            shift,
            waiting: 0,
            scheduled: 0,
        }
    }

    fn stretch(&mut self, number: u64) -> &mut u32 {
        let masked = number as usize & (self.stretches.len() - 1);
        &mut self.stretches[masked]
    }

    /// Schedules `what` for `time`.
    ///
    /// # Panics
    /// Too far ahead.
    #[inline]
    pub fn push(&mut self, time: u64, what: u32) {
        self.scheduled = self.scheduled.wrapping_add(1);
        let entry = entry(time, self.scheduled, what);
        let number = time >> self.shift;
        if number <= self.number {
            self.current.push(entry);
            settle(&mut self.current);
            return;
        }
        assert!(number - self.number < self.stretches.len() as u64, "the wheel ends before {time}");
        self.waiting += 1;
        let free = self.free;
        if let Some(place) = self.places.get_mut(free as usize) {
            self.free = place.1;
            let before = std::mem::replace(self.stretch(number), free);
            self.places[free as usize] = (entry, before);
        } else {
            let new = self.places.len() as u32;
            let before = std::mem::replace(self.stretch(number), new);
            self.places.push((entry, before));
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        loop {
            if let Some(first) = self.current.pop() {
                return Some(parts(first));
            }
            if self.waiting == 0 {
                return None;
            }
            self.turn();
        }
    }

    /// The next stretch has its turn.
    #[inline]
    fn turn(&mut self) {
        self.number += 1;
        let mut at = std::mem::replace(self.stretch(self.number), Self::END);
        while let Some(place) = self.places.get_mut(at as usize) {
            self.current.push(place.0);
            let next = std::mem::replace(&mut place.1, self.free);
            self.free = at;
            self.waiting -= 1;
            at = next;
        }
        if self.current.len() > Self::LONG {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        } else {
            (2..=self.current.len()).for_each(|end| settle(&mut self.current[..end]));
        }
    }
}

/// Moves the last entry to its place among the others, which are in order, the greatest first.
#[inline]
fn settle(entries: &mut [u128]) {
    let Some((&entry, others)) = entries.split_last() else { return };
    let mut at = others.len();
    while at > 0 && entries[at - 1] < entry {
        entries[at] = entries[at - 1];
        at -= 1;
    }
    entries[at] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the first of both, which are the same.
    fn taken(heap: &mut Heap, wheel: &mut Wheel) -> Option<(u64, u32)> {
        let first = heap.first();
        heap.remove();
        assert_eq!(first, wheel.pop(), "the heap and the wheel have the same order");
        first
    }

    #[test]
    fn both_take_the_first_by_time_and_then_by_order() {
        let (mut heap, mut wheel) = (Heap::default(), Wheel::new(3, 64));
        let mut expected = Vec::new();
        let mut now = 0;
        for round in 0..500_u32 {
            for more in 0..2 + round % 2 {
                let time = now + u64::from((round * 37 + more * 11) % 200);
                heap.push(time, round);
                wheel.push(time, round);
                expected.push((time, round));
            }
            // A stable sort: among equals, as they were scheduled.
            expected.sort_by_key(|(time, _)| *time);
            let first = expected.remove(0);
            assert_eq!(taken(&mut heap, &mut wheel), Some(first));
            now = first.0;
        }
        for first in expected {
            assert_eq!(taken(&mut heap, &mut wheel), Some(first));
        }
        assert_eq!(taken(&mut heap, &mut wheel), None);
    }

    #[test]
    fn an_event_in_place_of_the_first_is_as_one_pushed_after_its_removal() {
        let (mut replaced, mut pushed) = (Heap::default(), Heap::default());
        for what in 0..300_u32 {
            for heap in [&mut replaced, &mut pushed] {
                heap.push(u64::from(what * 7 % 64), what);
            }
        }
        for what in 300..2_000_u32 {
            let first = pushed.first();
            assert_eq!(replaced.first(), first);
            let later = first.map_or(0, |(time, _)| time) + u64::from(what * 13 % 50);
            replaced.replace(later, what);
            pushed.remove();
            pushed.push(later, what);
        }
        while let Some(first) = pushed.first() {
            assert_eq!(replaced.first(), Some(first));
            replaced.remove();
            pushed.remove();
        }
        assert_eq!(replaced.first(), None);
    }

    #[test]
    fn a_stretch_of_many_events_is_put_in_order_too() {
        let mut wheel = Wheel::new(10, 4);
        let time = |what: u32| u64::from(what * 611 % 1_000);
        (0..200).for_each(|what| wheel.push(1_024 + time(what), what));
        let mut expected = (0..200).map(|what| (1_024 + time(what), what)).collect::<Vec<_>>();
        expected.sort_by_key(|(time, _)| *time);
        assert!(std::iter::from_fn(|| wheel.pop()).eq(expected));
    }

    #[test]
    #[should_panic(expected = "the wheel ends before 512")]
    fn nothing_is_scheduled_beyond_the_wheel() {
        Wheel::new(3, 64).push(512, 0);
    }
}
