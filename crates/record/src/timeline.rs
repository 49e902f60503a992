//! Where each rank's time went, interval by interval.

use std::fmt;

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
}

impl Timeline {
    /// An empty timeline of `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self { intervals: Vec::new(), latest: vec![0; ranks as usize] }
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
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.latest.len() as u32
    }

    /// The intervals in the order they were recorded.
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
}
