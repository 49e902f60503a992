//! The receiving half: what came, what is missing (Q.2110 §7.5, VR variables). Numbers are compared
//! from VR(R).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::Seq;

/// What an SD brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sd<const BITS: u32> {
    /// It and those kept behind it are next: take them with [`Receiver::next`].
    Next,
    /// It is kept.
    Kept,
    /// It is kept, and those from the first to before the second number are missing.
    Gap(Seq<BITS>, Seq<BITS>),
    /// It is beyond the window; those up to the edge are missing, if that is new.
    Beyond(Option<(Seq<BITS>, Seq<BITS>)>),
    /// It came before.
    Again,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub(crate) struct Receiver<const BITS: u32, T> {
    pub vr_r: Seq<BITS>,
    pub vr_h: Seq<BITS>,
    pub vr_mr: Seq<BITS>,
    /// The receive buffer, from VR(R) on.
    buffer: VecDeque<Option<T>>,
    /// How many are in it.
    kept: usize,
}

impl<const BITS: u32, T: Copy> Receiver<BITS, T> {
    pub(crate) const fn new() -> Self {
        Self { vr_r: Seq::ZERO, vr_h: Seq::ZERO, vr_mr: Seq::ZERO, buffer: VecDeque::new(), kept: 0 }
    }

    /// `Initialize state variables`; VR(MR) is set apart.
    pub(crate) fn initialize(&mut self) {
        self.begin_at(Seq::ZERO);
    }

    /// The same, from another number than 0.
    pub(crate) fn begin_at(&mut self, vr_r: Seq<BITS>) {
        (self.vr_r, self.vr_h) = (vr_r, vr_r);
        self.clear();
    }

    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.kept = 0;
    }

    /// Takes an SD.
    #[inline]
    pub(crate) fn sd(&mut self, n: Seq<BITS>, item: T) -> Sd<BITS> {
        if n == self.vr_r && n != self.vr_mr {
            // The next in order. Its place in the buffer, if there is one, is empty.
            match self.buffer.front_mut() {
                Some(place) => *place = Some(item),
                None => self.buffer.push_back(Some(item)),
            }
            self.kept += 1;
            if n == self.vr_h {
                self.vr_h = n.next();
            }
            return Sd::Next;
        }
        self.sd_out_of_order(n, item)
    }

    fn sd_out_of_order(&mut self, n: Seq<BITS>, item: T) -> Sd<BITS> {
        // Choice: a number before VR(R) is one that came before, not one beyond the window.
        if n.precedes(self.vr_r) {
            return Sd::Again;
        }
        let (place, highest) = (n.offset_from(self.vr_r), self.vr_h.offset_from(self.vr_r));
        let edge = self.vr_mr.offset_from(self.vr_r);
        if place >= edge {
            let gap = (highest < edge).then_some((self.vr_h, self.vr_mr));
            if gap.is_some() {
                self.vr_h = self.vr_mr;
            }
            return Sd::Beyond(gap);
        }
        let place = place as usize;
        if self.buffer.get(place).is_some_and(Option::is_some) {
            return Sd::Again;
        }
        if self.buffer.len() <= place {
            self.buffer.resize(place + 1, None);
        }
        self.buffer[place] = Some(item);
        self.kept += 1;
        let h = self.vr_h;
        if place as u32 >= highest {
            self.vr_h = n.next();
        }
        if place as u32 > highest { Sd::Gap(h, n) } else { Sd::Kept }
    }

    /// Takes the next in order, if it is there.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Seq<BITS>, T)> {
        let item = (*self.buffer.front()?)?;
        self.buffer.pop_front();
        self.kept -= 1;
        let number = self.vr_r;
        self.vr_r = number.next();
        Some((number, item))
    }

    /// How many may come together, in order and without a look at each: as many as the window lets in, where
    /// nothing is kept or known to be missing.
    pub(crate) fn room(&self) -> u32 {
        if self.kept > 0 || self.vr_h != self.vr_r { 0 } else { self.vr_mr.offset_from(self.vr_r) }
    }

    /// So many came together, at most [`Receiver::room`], and are taken.
    pub(crate) fn pass(&mut self, count: u32) {
        self.vr_r += count;
        self.vr_h = self.vr_r;
    }

    /// Takes everything that is kept, gaps and all.
    pub(crate) fn take_kept(&mut self) -> impl Iterator<Item = (Seq<BITS>, T)> + '_ {
        let first = self.vr_r;
        self.kept = 0;
        let numbered = self.buffer.drain(..).enumerate();
        numbered.filter_map(move |(place, item)| Some((first + place as u32, item?)))
    }

    /// How many are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Whether a POLL with this N(S) cannot be: it is below VR(H).
    pub(crate) fn is_below_highest(&self, s: Seq<BITS>) -> bool {
        s.precedes(self.vr_r) || s.offset_from(self.vr_r) < self.vr_h.offset_from(self.vr_r)
    }

    /// A POLL with this N(S), not below VR(H): moves VR(H).
    pub(crate) fn polled(&mut self, s: Seq<BITS>) {
        let edge = self.vr_mr.offset_from(self.vr_r);
        let highest = s.offset_from(self.vr_r).min(edge);
        self.vr_h = self.vr_r + highest;
    }

    fn has(&self, place: u32) -> bool {
        self.buffer.get(place as usize).is_some_and(Option::is_some)
    }

    /// The lists that say what is missing up to VR(H): each of at most `most` elements, the last maybe
    /// empty.
    pub(crate) fn lists(&self, most: usize, mut send: impl FnMut(Vec<Seq<BITS>>)) {
        let mut list = Vec::new();
        let (mut place, end) = (0, self.vr_h.offset_from(self.vr_r));
        while place != end {
            while place < end && self.has(place) {
                place += 1;
            }
            list.push(self.vr_r + place);
            if place == end {
                break;
            }
            if list.len() >= most {
                let next = alloc::vec![self.vr_r + place];
                send(core::mem::replace(&mut list, next));
            }
            while place < end && !self.has(place) {
                place += 1;
            }
            list.push(self.vr_r + place);
        }
        send(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Half = Receiver<4, u8>;

    fn n(number: u32) -> Seq<4> {
        Seq::wrapping(number)
    }

    fn lists(half: &Half, most: usize) -> Vec<Vec<u32>> {
        let mut lists = Vec::new();
        half.lists(most, |list| lists.push(list.iter().map(|number| number.get()).collect()));
        lists
    }

    fn half() -> Half {
        let mut half = Half::new();
        half.begin_at(n(13));
        half.vr_mr = n(13 + 7);
        half
    }

    #[test]
    fn what_comes_in_order_is_next_and_a_gap_is_told_once() {
        let mut half = half();
        assert_eq!(half.sd(n(13), 0), Sd::Next);
        assert_eq!(half.next(), Some((n(13), 0)));
        assert_eq!(half.next(), None);
        assert_eq!(half.sd(n(0), 2), Sd::Gap(n(14), n(0)));
        assert_eq!(half.sd(n(1), 3), Sd::Kept);
        assert_eq!(half.sd(n(0), 2), Sd::Again);
        assert_eq!(half.sd(n(13), 0), Sd::Again);
        assert_eq!(half.sd(n(15), 1), Sd::Kept);
        assert_eq!(half.kept(), 3);
        assert_eq!(half.sd(n(14), 9), Sd::Next);
        let next: Vec<_> = core::iter::from_fn(|| half.next()).collect();
        assert_eq!(next, [(n(14), 9), (n(15), 1), (n(0), 2), (n(1), 3)]);
        assert_eq!((half.vr_r, half.vr_h, half.kept()), (n(2), n(2), 0));
    }

    #[test]
    fn beyond_the_window_nothing_is_kept_and_the_gap_is_told_once() {
        let mut half = half();
        assert_eq!(half.sd(n(4), 0), Sd::Beyond(Some((n(13), n(4)))));
        assert_eq!(half.sd(n(4), 0), Sd::Beyond(None));
        assert_eq!((half.vr_r, half.vr_h, half.kept()), (n(13), n(4), 0));
        half.vr_mr = half.vr_r;
        assert_eq!(half.sd(n(13), 0), Sd::Beyond(None), "a window of nothing");
    }

    #[test]
    fn a_list_names_gaps_and_runs() {
        let mut half = half();
        assert_eq!(lists(&half, 7), [Vec::<u32>::new()]);
        half.sd(n(0), 3);
        half.sd(n(1), 4);
        half.polled(n(4));
        assert_eq!(lists(&half, 7), [[13, 0, 2, 4]]);
        half.polled(n(6));
        assert_eq!(half.vr_h, n(4), "no further than the window");
        assert!(half.is_below_highest(n(3)) && half.is_below_highest(n(12)) && !half.is_below_highest(n(4)));
        half.sd(n(3), 6);
        assert_eq!(lists(&half, 7), [[13, 0, 2, 3, 4]]);
        assert_eq!(lists(&half, 3), [[13, 0, 2], [2, 3, 4]]);
    }

    #[test]
    fn what_is_kept_at_an_end_is_taken_with_its_gaps() {
        let mut half = half();
        half.sd(n(14), 1);
        half.sd(n(0), 3);
        assert_eq!(half.take_kept().collect::<Vec<_>>(), [(n(14), 1), (n(0), 3)]);
        assert_eq!(half.kept(), 0);
    }
}
