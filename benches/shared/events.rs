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

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let last = self.entries.pop()?;
        let Some(first) = self.entries.first().copied() else { return Some(parts(last)) };
        let entries = &mut self.entries[..];
        let (mut at, mut child) = (0, 1);
        while let Some(&[a, b, c, d]) = entries.get(child..child + 4) {
            // Without a branch that depends on what is there.
            let (left, of_left) = if b < a { (b, 1) } else { (a, 0) };
            let (right, of_right) = if d < c { (d, 3) } else { (c, 2) };
            let (least, of) = if right < left { (right, of_right) } else { (left, of_left) };
            if least >= last {
                break;
            }
            entries[at] = least;
            at = child + of;
            child = 4 * at + 1;
        }
        // Fewer than four are left at the end alone.
        if let Some(rest) = entries.get(child..).filter(|rest| rest.len() < 4)
            && let Some((of, least)) = rest.iter().copied().enumerate().min_by_key(|(_, entry)| *entry)
            && least < last
        {
            entries[at] = least;
            at = child + of;
        }
        entries[at] = last;
        Some(parts(first))
    }
}

/// A timing wheel: stretches of 2^`shift` of time, each put in order when its turn comes. Nothing may be scheduled
/// further ahead than all stretches together.
pub struct Wheel {
    stretches: Vec<Vec<u128>>,
    /// The stretch whose turn it is, the last first.
    current: Vec<u128>,
    number: u64,
    shift: u32,
    held: usize,
    scheduled: u32,
}

impl Wheel {
    /// So many stretches, a power of two.
    ///
    /// # Panics
    /// With another number.
    #[must_use]
    pub fn new(shift: u32, stretches: usize) -> Self {
        assert!(stretches.is_power_of_two(), "the number of a stretch is masked");
        let stretches = vec![Vec::new(); stretches];
        Self { stretches, current: Vec::new(), number: 0, shift, held: 0, scheduled: 0 }
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.stretches.len() - 1)
    }

    /// Schedules `what` for `time`.
    ///
    /// # Panics
    /// Too far ahead.
    #[inline]
    pub fn push(&mut self, time: u64, what: u32) {
        self.scheduled = self.scheduled.wrapping_add(1);
        self.held += 1;
        let entry = entry(time, self.scheduled, what);
        let number = time >> self.shift;
        if number > self.number {
            assert!(number - self.number < self.stretches.len() as u64, "the wheel ends before {time}");
            let place = self.place(number);
            self.stretches[place].push(entry);
        } else {
            let at = self.current.partition_point(|other| *other > entry);
            self.current.insert(at, entry);
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        if self.held == 0 {
            return None;
        }
        while self.current.is_empty() {
            self.number += 1;
            let place = self.place(self.number);
            std::mem::swap(&mut self.current, &mut self.stretches[place]);
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.held -= 1;
        self.current.pop().map(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!((heap.pop(), wheel.pop()), (Some(first), Some(first)));
            now = first.0;
        }
        for first in expected {
            assert_eq!((heap.pop(), wheel.pop()), (Some(first), Some(first)));
        }
        assert_eq!((heap.pop(), wheel.pop()), (None, None));
    }
}
