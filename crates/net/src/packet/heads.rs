//! The first packet of each link that has any: when it arrives.
//!
//! A heap of few entries that are mostly replaced by the next of the same link, which costs one walk
//! where a queue of events would take a pop and a push.

use wiretwin_units::SimTime;

#[derive(Clone, Copy, Debug)]
struct Head {
    time: SimTime,
    seq: u64,
    link: u32,
}

impl Head {
    fn key(&self) -> (SimTime, u64) {
        (self.time, self.seq)
    }
}

/// A heap with four children a node, the earliest arrival on top; those of one instant in the order in
/// which they came to be the first of their links.
#[derive(Clone, Debug, Default)]
pub(super) struct Heads {
    heap: Vec<Head>,
    seq: u64,
}

const CHILDREN: usize = 4;

impl Heads {
    /// The earliest arrival.
    pub(super) fn next_time(&self) -> Option<SimTime> {
        self.heap.first().map(|head| head.time)
    }

    /// The link of the earliest arrival.
    pub(super) fn next_link(&self) -> Option<u32> {
        self.heap.first().map(|head| head.link)
    }

    /// A link that had nothing on its way has.
    pub(super) fn push(&mut self, time: SimTime, link: u32) {
        self.seq += 1;
        let head = Head { time, seq: self.seq, link };
        let mut place = self.heap.len();
        self.heap.push(head);
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].key() <= head.key() {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = head;
    }

    /// The earliest arrival has happened; the next of its link is at this time, if there is one.
    pub(super) fn advance(&mut self, next: Option<SimTime>) {
        let head = match next {
            Some(time) => {
                self.seq += 1;
                Head { time, seq: self.seq, link: self.heap[0].link }
            }
            None => {
                let Some(last) = self.heap.pop() else { return };
                if self.heap.is_empty() {
                    return;
                }
                last
            }
        };
        self.sink(head);
    }

    /// Puts an entry where the first was.
    fn sink(&mut self, head: Head) {
        let heap = &mut self.heap[..];
        let mut place = 0;
        loop {
            let first = place * CHILDREN + 1;
            let Some(children) = heap.get(first..heap.len().min(first + CHILDREN)) else { break };
            let mut least = None;
            let mut key = head.key();
            for (offset, child) in children.iter().enumerate() {
                if child.key() < key {
                    (least, key) = (Some(first + offset), child.key());
                }
            }
            let Some(least) = least else { break };
            heap[place] = heap[least];
            place = least;
        }
        heap[place] = head;
    }

    /// How often a packet came to be the first of its link.
    pub(super) const fn scheduled(&self) -> u64 {
        self.seq
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list that is searched.
        #[test]
        fn arrivals_come_in_the_order_of_time_and_then_of_scheduling(
            steps in prop::collection::vec((0_u64..30, any::<bool>(), any::<bool>()), 1..200),
        ) {
            let mut heads = Heads::default();
            let mut naive: Vec<(u64, u64, u32)> = Vec::new();
            let (mut seq, mut now) = (0, 0);
            for (link, (ahead, push, again)) in (0..).zip(steps) {
                if push || naive.is_empty() {
                    seq += 1;
                    naive.push((now + ahead, seq, link));
                    heads.push(SimTime::from_ps(now + ahead), link);
                    continue;
                }
                let first = (0..naive.len()).min_by_key(|&at| (naive[at].0, naive[at].1)).unwrap();
                let (time, _, of) = naive.swap_remove(first);
                prop_assert_eq!(heads.next_time(), Some(SimTime::from_ps(time)));
                prop_assert_eq!(heads.next_link(), Some(of));
                now = time;
                if again {
                    seq += 1;
                    naive.push((now + ahead, seq, of));
                }
                heads.advance(again.then(|| SimTime::from_ps(now + ahead)));
            }
            prop_assert_eq!(heads.scheduled(), seq);
        }
    }
}
