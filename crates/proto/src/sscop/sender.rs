//! The sending half: what waits, what is under way, what is to be sent again (Q.2110 §7.5, VT
//! variables).
//!
//! Numbers are compared from VT(A), those of POLLs from VT(PA). The machine of the parallel-computing
//! adaptation layer has the same half, with numbers of 32 bits.

use alloc::collections::VecDeque;

use wiretwin_units::Seq;

/// Why a STAT or a USTAT cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatError {
    /// N(PS) is not that of a POLL that may be answered: error R.
    Poll,
    /// N(R) or the list: error S for a STAT, T for a USTAT.
    List,
}

/// What is done about elements that name what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They are errors.
    IsError,
    /// They are passed over.
    IsSkipped,
}

/// An SD that was sent and is kept.
#[derive(Clone, Copy, Debug)]
struct Slot<const BITS: u32, T> {
    item: T,
    /// VT(PS) when it was sent last.
    poll_seq: Seq<BITS>,
    kept: Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Under way.
    Sent,
    /// In the retransmission queue.
    Wanted,
    /// Acknowledged selectively, and forgotten.
    Released,
}

/// The sending half.
#[derive(Clone, Debug)]
pub(crate) struct Sender<const BITS: u32, T> {
    pub vt_s: Seq<BITS>,
    pub vt_ps: Seq<BITS>,
    pub vt_a: Seq<BITS>,
    pub vt_pa: Seq<BITS>,
    pub vt_ms: Seq<BITS>,
    pub vt_pd: u32,
    /// The transmission queue.
    queue: VecDeque<T>,
    /// The transmission buffer: from VT(A) to VT(S).
    buffer: VecDeque<Slot<BITS, T>>,
    /// How many of these are in the retransmission queue.
    wanted: usize,
    /// None before this place of the buffer is.
    first_wanted: usize,
}

impl<const BITS: u32, T: Copy> Sender<BITS, T> {
    pub(crate) const fn new() -> Self {
        Self {
            vt_s: Seq::ZERO,
            vt_ps: Seq::ZERO,
            vt_a: Seq::ZERO,
            vt_pa: Seq::wrapping(1),
            vt_ms: Seq::ZERO,
            vt_pd: 0,
            queue: VecDeque::new(),
            buffer: VecDeque::new(),
            wanted: 0,
            first_wanted: 0,
        }
    }

    /// `Initialize state variables`; the transmission buffer is empty after it, the queue is kept.
    pub(crate) fn initialize(&mut self) {
        self.begin_at(Seq::ZERO, Seq::ZERO);
    }

    /// The same, from other numbers than 0.
    pub(crate) fn begin_at(&mut self, vt_s: Seq<BITS>, vt_ps: Seq<BITS>) {
        (self.vt_s, self.vt_a) = (vt_s, vt_s);
        (self.vt_ps, self.vt_pa) = (vt_ps, vt_ps.next());
        self.vt_pd = 0;
        self.clear_buffer();
    }

    pub(crate) fn clear_buffer(&mut self) {
        self.buffer.clear();
        self.clear_wanted();
    }

    pub(crate) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// Empties the retransmission queue alone.
    pub(crate) fn clear_wanted(&mut self) {
        if self.wanted > 0 {
            for slot in self.buffer.iter_mut().filter(|slot| slot.kept == Kept::Wanted) {
                slot.kept = Kept::Sent;
            }
        }
        (self.wanted, self.first_wanted) = (0, 0);
    }

    /// Puts something behind what waits.
    pub(crate) fn push(&mut self, item: T) {
        self.queue.push_back(item);
    }

    /// The oldest that is not acknowledged in order or, if all are, that waits.
    pub(crate) fn oldest(&self) -> Option<T> {
        self.buffer.front().map(|slot| slot.item).or(self.queue.front().copied())
    }

    /// How much waits.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// How much was sent and is not acknowledged in order.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn has_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// Whether the window lets something new out.
    pub(crate) fn is_open(&self) -> bool {
        self.room() > 0
    }

    /// How many more the window lets out.
    pub(crate) fn room(&self) -> usize {
        if self.vt_ms.precedes(self.vt_a) {
            return 0;
        }
        (self.vt_ms.offset_from(self.vt_a) as usize).saturating_sub(self.buffer.len())
    }

    /// Takes the lowest of the retransmission queue.
    pub(crate) fn next_wanted(&mut self) -> Option<(Seq<BITS>, T)> {
        if self.wanted == 0 {
            return None;
        }
        let ahead = self.buffer.iter().skip(self.first_wanted);
        let place = self.first_wanted + ahead.take_while(|slot| slot.kept != Kept::Wanted).count();
        let slot = self.buffer.get_mut(place).expect("what is counted as wanted is in the buffer");
        slot.kept = Kept::Sent;
        slot.poll_seq = self.vt_ps;
        self.wanted -= 1;
        self.first_wanted = place + 1;
        Some((self.vt_a + place as u32, slot.item))
    }

    /// Takes the next of what waits, whether or not the window is open.
    pub(crate) fn next_new(&mut self) -> Option<(Seq<BITS>, T)> {
        let item = self.queue.pop_front()?;
        Some((self.send_one(item), item))
    }

    /// This goes now, by no queue: its number.
    #[inline]
    pub(crate) fn send_one(&mut self, item: T) -> Seq<BITS> {
        let number = self.vt_s;
        self.vt_s = number.next();
        self.buffer.push_back(Slot { item, poll_seq: self.vt_ps, kept: Kept::Sent });
        number
    }

    /// These go now, by no queue: the number of the first.
    pub(crate) fn send(&mut self, items: impl ExactSizeIterator<Item = T>) -> Seq<BITS> {
        let (number, poll_seq) = (self.vt_s, self.vt_ps);
        self.vt_s = number + items.len() as u32;
        self.buffer.extend(items.map(|item| Slot { item, poll_seq, kept: Kept::Sent }));
        number
    }

    /// Counts a POLL that is about to be sent: its N(PS).
    pub(crate) fn next_poll(&mut self) -> Seq<BITS> {
        self.vt_ps = self.vt_ps.next();
        self.vt_pd = 0;
        self.vt_ps
    }

    /// Forgets what lies below `r`, which is at most VT(S).
    fn acknowledge(&mut self, r: Seq<BITS>) {
        self.acknowledge_with(r, |_| ());
    }

    /// The same, with a look at each.
    pub(crate) fn acknowledge_with(&mut self, r: Seq<BITS>, mut done: impl FnMut(T)) {
        let count = r.offset_from(self.vt_a) as usize;
        for _ in 0..count {
            let slot = self.buffer.pop_front().expect("what is acknowledged was sent");
            self.wanted -= usize::from(slot.kept == Kept::Wanted);
            done(slot.item);
        }
        self.first_wanted = self.first_wanted.saturating_sub(count);
        self.vt_a = r;
    }

    /// Where in the buffer a number is, or would be; at most its length.
    fn place(&self, number: Seq<BITS>) -> Option<usize> {
        let place = number.offset_from(self.vt_a) as usize;
        (place <= self.buffer.len()).then_some(place)
    }

    fn want(&mut self, place: usize) {
        self.buffer[place].kept = Kept::Wanted;
        self.wanted += 1;
        self.first_wanted = self.first_wanted.min(place);
    }

    /// A STAT: how many are to be sent again, `None` where it has no list.
    ///
    /// Until the error is found, what precedes it is done, as in the standard.
    pub(crate) fn stat(
        &mut self,
        ps: Seq<BITS>,
        r: Seq<BITS>,
        mr: Seq<BITS>,
        list: &[Seq<BITS>],
        missing: Missing,
        release: bool,
    ) -> Result<Option<u32>, StatError> {
        let polls = self.vt_ps.next().offset_from(self.vt_pa);
        if !ps.is_within(self.vt_pa, polls) {
            return Err(StatError::Poll);
        }
        self.place(r).ok_or(StatError::List)?;
        self.acknowledge(r);
        self.vt_pa = ps;
        self.vt_ms = mr;
        if list.len() < 2 {
            return Ok(None);
        }
        let mut wanted = 0;
        let mut from =
            self.place(list[0]).filter(|&place| place < self.buffer.len()).ok_or(StatError::List)?;
        for (index, &element) in list[1..].iter().enumerate() {
            let to = self.place(element).filter(|&to| to > from).ok_or(StatError::List)?;
            for place in from..to {
                let slot = &mut self.buffer[place];
                if index % 2 == 1 {
                    // A run that was received.
                    if release && slot.kept != Kept::Released {
                        self.wanted -= usize::from(slot.kept == Kept::Wanted);
                        slot.kept = Kept::Released;
                    }
                } else if slot.kept == Kept::Released {
                    if missing == Missing::IsError {
                        return Err(StatError::List);
                    }
                } else if slot.kept == Kept::Sent && was_sent_before(slot.poll_seq, ps, self.vt_ps) {
                    self.want(place);
                    wanted += 1;
                }
            }
            from = to;
        }
        Ok(Some(wanted))
    }

    /// A USTAT: how many are missing by it.
    pub(crate) fn ustat(
        &mut self,
        (first, end): (Seq<BITS>, Seq<BITS>),
        r: Seq<BITS>,
        mr: Seq<BITS>,
        missing: Missing,
    ) -> Result<u32, StatError> {
        self.place(r).filter(|&place| place < self.buffer.len()).ok_or(StatError::List)?;
        self.acknowledge(r);
        self.vt_ms = mr;
        let from = self.place(first).ok_or(StatError::List)?;
        let to = self.place(end).filter(|&to| from < to && to < self.buffer.len()).ok_or(StatError::List)?;
        for place in from..to {
            match self.buffer[place].kept {
                Kept::Sent => self.want(place),
                Kept::Wanted => {}
                Kept::Released if missing == Missing::IsError => return Err(StatError::List),
                Kept::Released => {}
            }
        }
        Ok((to - from) as u32)
    }

    /// Whether [`Sender::stat`] or [`Sender::ustat`] would accept this from the window's numbers alone:
    /// for machines that ignore what cannot be, and must not half do it.
    pub(crate) fn accepts(&self, ps: Option<Seq<BITS>>, r: Seq<BITS>, list: &[Seq<BITS>]) -> bool {
        let polls = self.vt_ps.next().offset_from(self.vt_pa);
        let rising = |pair: &[Seq<BITS>]| pair[0].offset_from(r) < pair[1].offset_from(r);
        let left = self.vt_s.offset_from(r);
        ps.is_none_or(|ps| ps.is_within(self.vt_pa, polls))
            && self.place(r).is_some()
            && list.windows(2).all(rising)
            && list.last().is_none_or(|last| {
                let last = last.offset_from(r);
                last < left || ps.is_some() && last == left
            })
    }

    /// Takes back what was sent from `from` on.
    pub(crate) fn retrieve_sent(&mut self, from: Seq<BITS>) -> impl Iterator<Item = T> + '_ {
        let place = self.place(from).unwrap_or(self.buffer.len());
        (self.wanted, self.first_wanted) = (0, 0);
        self.vt_s = self.vt_a + place as u32;
        self.buffer.drain(place..).filter(|slot| slot.kept != Kept::Released).map(|slot| slot.item)
    }

    /// Takes back everything that was sent and is not acknowledged in order.
    pub(crate) fn take_all(&mut self, mut taken: impl FnMut(T)) {
        self.buffer.drain(..).for_each(|slot| taken(slot.item));
        (self.wanted, self.first_wanted) = (0, 0);
    }

    /// Takes back what waits.
    pub(crate) fn retrieve_waiting(&mut self) -> impl Iterator<Item = T> + '_ {
        self.queue.drain(..)
    }
}

/// Whether an SD was sent before the POLL that a STAT answers: counted back from VT(PS).
fn was_sent_before<const BITS: u32>(poll_seq: Seq<BITS>, ps: Seq<BITS>, vt_ps: Seq<BITS>) -> bool {
    vt_ps.offset_from(poll_seq) > vt_ps.offset_from(ps)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    type Half = Sender<4, u8>;

    fn n(number: u32) -> Seq<4> {
        Seq::wrapping(number)
    }

    /// A half that has sent five from number 14 on, over the end of the numbers, then a POLL.
    fn five_sent() -> Half {
        let mut half = Half::new();
        half.begin_at(n(14), n(15));
        half.vt_ms = n(14 + 7);
        (0..5).for_each(|item| half.push(item));
        while half.is_open() && half.next_new().is_some() {}
        assert_eq!(half.next_poll(), n(0));
        half
    }

    fn wanted(half: &mut Half) -> Vec<(u32, u8)> {
        core::iter::from_fn(|| half.next_wanted()).map(|(number, item)| (number.get(), item)).collect()
    }

    #[test]
    fn a_stat_sends_the_missing_again_once_and_forgets_the_rest() {
        let mut half = five_sent();
        let list = [n(15), n(0), n(1), n(3)];
        assert_eq!(half.stat(n(0), n(15), n(6), &list, Missing::IsError, true), Ok(Some(3)));
        assert_eq!(wanted(&mut half), [(15, 1), (1, 3), (2, 4)]);
        // The same again, from before they were sent again.
        assert_eq!(half.stat(n(0), n(15), n(6), &list, Missing::IsError, true), Ok(Some(0)));
        // The next POLL comes after, and they are missing still.
        half.next_poll();
        assert_eq!(half.stat(n(1), n(15), n(6), &list, Missing::IsError, true), Ok(Some(3)));
    }

    #[test]
    fn what_was_acknowledged_selectively_cannot_be_missing() {
        let mut half = five_sent();
        half.stat(n(0), n(14), n(6), &[n(14), n(15), n(1)], Missing::IsError, true).expect("a list");
        assert_eq!(half.ustat((n(15), n(0)), n(14), n(6), Missing::IsError), Err(StatError::List));
        assert_eq!(half.ustat((n(15), n(0)), n(14), n(6), Missing::IsSkipped), Ok(1));
        assert_eq!(wanted(&mut half), [(14, 0)]);
    }

    #[test]
    fn numbers_outside_the_window_are_errors_and_not_accepted() {
        for (ps, r, list) in [
            (n(1), n(14), &[][..]),
            (n(15), n(14), &[]),
            (n(0), n(13), &[]),
            (n(0), n(4), &[]),
            (n(0), n(14), &[n(3), n(4)]),
            (n(0), n(14), &[n(0), n(0)]),
            (n(0), n(14), &[n(0), n(15)]),
            (n(0), n(14), &[n(0), n(4)]),
            (n(0), n(15), &[n(14), n(0)]),
        ] {
            let mut half = five_sent();
            assert!(!half.accepts(Some(ps), r, list), "{ps} {r} {list:?}");
            half.stat(ps, r, n(6), list, Missing::IsError, true).expect_err("a wrong number");
        }
        let mut half = five_sent();
        assert!(half.accepts(Some(n(0)), n(14), &[n(14), n(3)]));
        assert_eq!(half.stat(n(0), n(14), n(6), &[n(14), n(3)], Missing::IsError, true), Ok(Some(5)));
        assert!(half.accepts(None, n(14), &[n(14), n(2)]));
        assert!(!half.accepts(None, n(14), &[n(14), n(3)]), "the last cannot be in a gap");
    }

    #[test]
    fn a_window_that_is_full_is_closed_also_where_numbers_wrap() {
        let mut half = five_sent();
        assert!(half.is_open());
        (5..9).for_each(|item| half.push(item));
        while half.is_open() && half.next_new().is_some() {}
        assert_eq!((half.vt_s, half.waiting()), (n(5), 2));
        half.vt_ms = n(13);
        assert!(!half.is_open(), "an edge before all that is under way");
    }
}
