//! Packets that lines lose.

use wiretwin_engine::{Probability, Stream};
use wiretwin_plan::Share;

/// What each line loses, each packet with the same chance; empty where nothing is lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    chance: Probability,
    /// By line.
    streams: Vec<Stream>,
    lost: u64,
}

impl Losses {
    pub(super) fn new(share: Share, lines: usize, seed: u64) -> Self {
        let chance = Probability::new(share.0).expect("a share is a probability");
        let lines = if share.0 > 0.0 { lines } else { 0 };
        let streams = (0..lines).map(|line| Stream::derive(seed, &format!("network/line {line}/losses")));
        Self { chance, streams: streams.collect(), lost: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether a packet at the end of this line is lost.
    pub(super) fn loses(&mut self, line: u32) -> bool {
        let loses = self.streams[line as usize].happens(self.chance);
        self.lost += u64::from(loses);
        loses
    }

    /// How many were.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
