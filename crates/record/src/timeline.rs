//! Where each rank's time went, interval by interval.
//!
//! A run of any length fits: beyond [`Timeline::MOST`] intervals those that lie close together are summed by
//! kind, so that the time of every kind stays what it was, to the picosecond.

use std::fmt;

use wiretwin_units::Span;

/// What a rank did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The program's own work.
    Compute = 0,
    /// Inside the messaging layer, on a core.
    Endpoint = 1,
    /// A message it waited for was on the wire.
    Wire = 2,
    /// It waited for its peer, for a link or for a core.
    Waiting = 3,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Compute, Self::Endpoint, Self::Wire, Self::Waiting];

    /// The kind's name in tables and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Endpoint => "endpoint",
            Self::Wire => "wire",
            Self::Waiting => "waiting",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One stretch of one rank's time. Times are picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The rank.
    pub rank: u32,
    /// First instant.
    pub start_ps: u64,
    /// The instant after the last.
    pub end_ps: u64,
    /// What it did.
    pub kind: Kind,
    /// The call it was in: an index into the world's names; 0 is none.
    pub name: u32,
    /// The source line of the call, a number of the program's own; -1 is none.
    pub site: i32,
    /// The other rank, -1 if none.
    pub peer: i32,
    /// The length of the message, bytes.
    pub bytes: u64,
}

/// The intervals of a run, per rank in ascending time; together they leave no gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    intervals: Vec<Interval>,
    /// Per rank, the index of its latest interval plus one; 0 is none.
    latest: Vec<usize>,
    /// How many intervals there may be.
    most: usize,
    /// Those of a rank that begin within one stretch of this length have been summed; 0: none have.
    coarse_ps: u64,
}

impl Timeline {
    /// How many intervals are kept, unless there are more ranks than an eighth of it.
    pub const MOST: usize = 1_000_000;

    /// An empty timeline of `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self::holding(ranks, Self::MOST)
    }

    fn holding(ranks: u32, most: usize) -> Self {
        let most = most.max(2 * Kind::ALL.len() * ranks as usize);
        Self { intervals: Vec::new(), latest: vec![0; ranks as usize], most, coarse_ps: 0 }
    }

    /// The length of the stretches within which a rank's time has been summed by kind, because there were
    /// too many intervals; zero where there were not.
    #[must_use]
    pub const fn coarse(&self) -> Span {
        Span::from_ps(self.coarse_ps)
    }

    /// Adds an interval; one that only continues the rank's latest is merged with it, an empty one
    /// is dropped.
    pub fn push(&mut self, interval: Interval) {
        if interval.start_ps == interval.end_ps {
            return;
        }
        let latest = &mut self.latest[interval.rank as usize];
        if let Some(last) = latest.checked_sub(1).map(|index| &mut self.intervals[index]) {
            let continued = Interval { start_ps: last.start_ps, end_ps: interval.end_ps, ..interval };
            if last.end_ps == interval.start_ps
                && continued == (Interval { end_ps: interval.end_ps, ..*last })
            {
                last.end_ps = interval.end_ps;
                return;
            }
        }
        self.intervals.push(interval);
        *latest = self.intervals.len();
        if self.intervals.len() > self.most {
            self.thin();
        }
    }

    /// Sums what lies close together until half of what may be held is left.
    fn thin(&mut self) {
        self.intervals.sort_by_key(|interval| interval.rank);
        let end = self.intervals.iter().map(|interval| interval.end_ps).max().unwrap_or(0);
        let stretches = self.most / 2 / Kind::ALL.len() / self.latest.len();
        // The first try is fine; what it leaves too much of is summed again.
        let first = end.div_ceil(stretches as u64).next_power_of_two().max(64) >> 6;
        self.coarse_ps = self.coarse_ps.max(first);
        while self.sum_up() > self.most / 2 {
            self.coarse_ps *= 2;
        }
        self.latest.fill(0);
        for (index, interval) in self.intervals.iter().enumerate() {
            self.latest[interval.rank as usize] = index + 1;
        }
    }

    /// Sums, by kind, the intervals of a rank that begin within the same stretch; how many are left.
    fn sum_up(&mut self) -> usize {
        let stretch = |interval: &Interval| (interval.rank, interval.start_ps / self.coarse_ps);
        let (mut from, mut kept) = (0, 0);
        while from < self.intervals.len() {
            let first = self.intervals[from];
            let same = |interval: &&Interval| stretch(interval) == stretch(&first);
            let to = from + self.intervals[from..].iter().take_while(same).count();
            let mut sums: [Option<Interval>; Kind::ALL.len()] = [None; _];
            let mut order = Vec::with_capacity(sums.len());
            for interval in &self.intervals[from..to] {
                let length = interval.end_ps - interval.start_ps;
                if let Some(sum) = &mut sums[interval.kind as usize] {
                    sum.end_ps += length;
                    // Of several calls, lines or peers none is named.
                    if (sum.name, sum.site) != (interval.name, interval.site) {
                        (sum.name, sum.site) = (0, -1);
                    }
                    if (sum.peer, sum.bytes) != (interval.peer, interval.bytes) {
                        (sum.peer, sum.bytes) = (-1, 0);
                    }
                } else {
                    order.push(interval.kind);
                    sums[interval.kind as usize] = Some(*interval);
                }
            }
            let mut start_ps = first.start_ps;
            for sum in order.into_iter().filter_map(|kind| sums[kind as usize]) {
                let end_ps = start_ps + (sum.end_ps - sum.start_ps);
                self.intervals[kept] = Interval { start_ps, end_ps, ..sum };
                (start_ps, kept) = (end_ps, kept + 1);
            }
            from = to;
        }
        self.intervals.truncate(kept);
        kept
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.latest.len() as u32
    }

    /// The intervals: in the order they were recorded, or by rank where there were too many.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(rank: u32, start_ps: u64, end_ps: u64) -> Interval {
        Interval { rank, start_ps, end_ps, kind: Kind::Waiting, name: 0, site: -1, peer: -1, bytes: 0 }
    }

    #[test]
    fn adjoining_equal_intervals_of_a_rank_become_one_and_empty_ones_none() {
        let mut timeline = Timeline::new(2);
        timeline.push(waiting(0, 0, 5));
        timeline.push(waiting(1, 0, 9));
        timeline.push(waiting(0, 5, 5));
        timeline.push(waiting(0, 5, 7));
        timeline.push(Interval { kind: Kind::Wire, ..waiting(0, 7, 8) });
        timeline.push(waiting(0, 9, 10));
        let wire = Interval { kind: Kind::Wire, ..waiting(0, 7, 8) };
        assert_eq!(timeline.intervals(), [waiting(0, 0, 7), waiting(1, 0, 9), wire, waiting(0, 9, 10)]);
    }

    #[test]
    fn beyond_the_most_each_kind_keeps_its_time_and_no_rank_has_a_gap() {
        let (ranks, most) = (3, 60);
        let mut thinned = Timeline::holding(ranks, most);
        let mut whole = Timeline::holding(ranks, usize::MAX);
        let mut clocks = [0; 3];
        for step in 0..5000_u64 {
            let rank = (step * 7 % 3) as usize;
            let kind = Kind::ALL[(step * step % 11 % 4) as usize];
            let (start_ps, peer) = (clocks[rank], (step % 5) as i32);
            clocks[rank] += 1 + step % 13 * (step % 3);
            let interval = Interval { kind, peer, end_ps: clocks[rank], ..waiting(rank as u32, start_ps, 0) };
            thinned.push(interval);
            whole.push(interval);
            assert!(thinned.intervals().len() <= most);
        }
        assert!(whole.intervals().len() > 10 * most && whole.coarse() == Span::ZERO);
        assert!(thinned.intervals().len() > most / 8 && thinned.coarse() > Span::ZERO);
        for (rank, clock) in clocks.into_iter().enumerate() {
            let of = |line: &Timeline| {
                let mine = line.intervals().iter().filter(|interval| interval.rank as usize == rank);
                mine.copied().collect::<Vec<_>>()
            };
            let mut next = 0;
            for interval in of(&thinned) {
                assert_eq!(interval.start_ps, next);
                next = interval.end_ps;
            }
            assert_eq!(next, clock);
            for kind in Kind::ALL {
                let sum = |line: &Timeline| -> u64 {
                    let those = of(line).into_iter().filter(|interval| interval.kind == kind);
                    those.map(|interval| interval.end_ps - interval.start_ps).sum()
                };
                assert_eq!(sum(&thinned), sum(&whole), "rank {rank}, {kind}");
            }
        }
    }
}
