//! Loss recovery by selective acknowledgments: the procedures of RFC 6675 §4 over ranges.

use crate::ranges::{Place, Range, Ranges};

/// What a sender knows: `una` to `snd_max` is in flight, `sacked` of it has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight<'a> {
    pub sacked: &'a Ranges,
    pub una: Place,
    pub snd_max: Place,
    /// Everything before was retransmitted in this recovery (`HighRxt` + 1).
    pub high_rxt: Place,
    pub mss: u32,
    /// `DupThresh`.
    pub threshold: u8,
}

impl Flight<'_> {
    /// The holes from the first on, each with whether it counts as lost (`IsLost`): enough ranges or
    /// octets were acknowledged above it.
    fn holes(&self) -> impl Iterator<Item = (Range, bool)> {
        let ranges = self.sacked.as_slice();
        let octets: i64 = ranges.iter().map(|range| range.to - range.from).sum();
        let enough = i64::from(self.threshold - 1) * i64::from(self.mss);
        let mut above = octets;
        let mut from = self.una;
        ranges.iter().enumerate().map(move |(index, range)| {
            let hole = Range { from, to: range.from };
            let lost = ranges.len() - index >= usize::from(self.threshold) || above > enough;
            above -= range.to - range.from;
            from = range.to;
            (hole, lost)
        })
    }

    /// The place after the highest octet acknowledged selectively.
    fn high_sacked(&self) -> Place {
        self.sacked.as_slice().last().map_or(self.una, |range| range.to)
    }

    /// Octets that are taken to be on their way (`SetPipe`).
    pub(super) fn pipe(&self) -> u32 {
        let above = self.snd_max - self.high_sacked().max(self.una);
        let resent = |hole: Range| (hole.to.min(self.high_rxt) - hole.from).max(0);
        let holes: i64 =
            self.holes().map(|(hole, lost)| if lost { 0 } else { hole.to - hole.from } + resent(hole)).sum();
        (above + holes).clamp(0, i64::from(u32::MAX)) as u32
    }

    /// Whether the first octet in flight is lost.
    pub(super) fn is_first_lost(&self) -> bool {
        self.holes().next().is_some_and(|(_, lost)| lost)
    }

    /// What to retransmit next: of a hole that is lost (`NextSeg` rule 1) or, with `any`, of any hole
    /// (rule 3); at most a segment.
    pub(super) fn next_hole(&self, any: bool) -> Option<Range> {
        self.holes()
            .filter(|&(_, lost)| lost || any)
            .map(|(hole, _)| Range { from: hole.from.max(self.high_rxt), to: hole.to })
            .find(|rest| rest.from < rest.to)
            .map(|rest| Range { from: rest.from, to: rest.to.min(rest.from + i64::from(self.mss)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sacked(ranges: &[(Place, Place)]) -> Ranges {
        let mut set = Ranges::new();
        for &(from, to) in ranges {
            assert!(set.insert(from, to, 100));
        }
        set
    }

    fn flight(sacked: &Ranges, high_rxt: Place) -> Flight<'_> {
        Flight { sacked, una: 1, snd_max: 1_001, high_rxt, mss: 100, threshold: 3 }
    }

    #[test]
    fn without_blocks_all_is_on_its_way_and_nothing_lost() {
        let none = Ranges::new();
        assert_eq!(flight(&none, 1).pipe(), 1_000);
        assert_eq!(flight(&none, 1).next_hole(true), None);
        assert!(!flight(&none, 1).is_first_lost());
    }

    #[test]
    fn a_hole_is_lost_below_three_ranges_or_more_than_two_segments() {
        let two_segments = sacked(&[(101, 301)]);
        assert!(!flight(&two_segments, 1).is_first_lost());
        let more = sacked(&[(101, 302)]);
        assert!(flight(&more, 1).is_first_lost());
        let three_ranges = sacked(&[(101, 102), (201, 202), (301, 302)]);
        assert!(flight(&three_ranges, 1).is_first_lost());
        // The second hole has two ranges above it alone: on its way.
        assert_eq!(flight(&three_ranges, 1).pipe(), 99 + 99 + (1_001 - 302));
    }

    #[test]
    fn what_is_lost_goes_first_and_each_part_once() {
        let set = sacked(&[(251, 302), (401, 602)]);
        // Lost: 1..251, with 252 octets above. The second hole has 201 octets above it.
        assert_eq!(flight(&set, 1).next_hole(false), Some(Range { from: 1, to: 101 }));
        assert_eq!(flight(&set, 201).next_hole(false), Some(Range { from: 201, to: 251 }));
        assert_eq!(flight(&set, 251).next_hole(false), Some(Range { from: 302, to: 401 }));
        assert_eq!(flight(&set, 401).next_hole(false), None);
        let few = sacked(&[(251, 302), (401, 402)]);
        assert_eq!(flight(&few, 1).next_hole(false), None);
        assert_eq!(flight(&few, 251).next_hole(true), Some(Range { from: 302, to: 401 }));
    }

    #[test]
    fn what_was_sent_again_is_on_its_way_again() {
        let set = sacked(&[(251, 602)]);
        assert_eq!(flight(&set, 1).pipe(), 1_001 - 602);
        assert_eq!(flight(&set, 101).pipe(), 1_001 - 602 + 100);
    }
}
