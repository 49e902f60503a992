//! The root of a multicast circuit that loses PDUs: what one process sends to several, repeated until all have it.
//!
//! Numbers and stamps are those of [`Channel`](super::channel::Channel), which is also what each leaf has: all that
//! the root sends, also again and to poll, goes on the one circuit, so that every leaf sees a gap in the stamps where
//! it has lost something. Each leaf says what has come on a circuit of its own, and data is kept until the last of
//! them has it. What one leaf lacks comes to the others twice.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use super::channel::{ChannelOutput, Config, Event, before};
use super::pdu::{HEAD_OCTETS, Head, Kind, take_list};
use crate::library::Content;

/// Data that may have to be sent again.
#[derive(Debug)]
struct Kept {
    data: Content,
    /// When it was last sent, by stamp.
    stamp: u32,
}

#[derive(Debug)]
struct Leaf {
    rank: u32,
    /// All data before this has come.
    expected: u32,
    /// When it was last heard of, or what it answers for was sent.
    since: SimTime,
}

/// The root of one tree.
#[derive(Debug)]
pub struct Root {
    config: Config,
    leaves: Vec<Leaf>,
    /// The number of the next new data.
    vt_s: u32,
    stamp: u32,
    kept: VecDeque<Kept>,
    /// Data since a status was last asked for.
    unasked: u32,
    deadline: Option<SimTime>,
    pause: Span,
    /// The leaf that was taken for lost.
    lost: Option<u32>,
    outputs: VecDeque<ChannelOutput>,
}

impl Root {
    /// A tree to these ranks on which nothing was sent.
    #[must_use]
    pub fn new(config: Config, to: &[u32]) -> Self {
        let leaf = |&rank: &u32| Leaf { rank, expected: 0, since: SimTime::ZERO };
        Self {
            config,
            leaves: to.iter().map(leaf).collect(),
            vt_s: 0,
            stamp: 0,
            kept: VecDeque::new(),
            unasked: 0,
            deadline: None,
            pause: config.timer,
            lost: None,
            outputs: VecDeque::new(),
        }
    }

    /// Whether data would be taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.kept.len() < self.config.window as usize
    }

    /// The leaf that is taken for lost, if any: nothing more goes to anyone.
    #[must_use]
    pub const fn lost(&self) -> Option<u32> {
        self.lost
    }

    /// When [`Root::handle_timeout`] is due, if ever.
    #[must_use]
    pub const fn deadline(&self) -> Option<SimTime> {
        self.deadline
    }

    /// Takes from the front of `content` what there is room for, in PDUs that nothing else shares.
    pub fn write(&mut self, now: SimTime, content: &mut Content) {
        let most = Bytes::new(self.config.pdu.get() - HEAD_OCTETS as u64);
        while !content.is_empty() && self.has_room() && self.lost.is_none() {
            let mut data = Content::new();
            let length = content.move_to(most, &mut data);
            self.work(WorkKind::UserCopy, length);
            self.unasked += 1;
            let full = self.kept.len() + 1 == self.config.window as usize;
            let asks = full || self.unasked > self.config.window / 2;
            if self.kept.is_empty() {
                self.pause = self.config.timer;
                self.leaves.iter_mut().for_each(|leaf| leaf.since = now);
            }
            self.vt_s = self.vt_s.wrapping_add(1);
            self.kept.push_back(Kept { data, stamp: 0 });
            self.send_data(self.kept.len() - 1, asks);
            self.deadline = Some(now + self.pause);
        }
    }

    /// A leaf has said what has come.
    pub fn handle_pdu(&mut self, now: SimTime, rank: u32, pdu: &mut Content) {
        let Ok(head) = Head::take(pdu) else { return self.event(Event::Garbage) };
        let under_way = head.expected.wrapping_sub(self.vt_a());
        let known = under_way <= self.kept.len() as u32 || before(head.expected, self.vt_a());
        let vt_s = self.vt_s;
        let leaf = self.leaves.iter_mut().find(|leaf| leaf.rank == rank);
        let (Some(leaf), Kind::Status, true, Ok(missing)) = (leaf, head.kind, known, take_list(pdu)) else {
            return self.event(Event::Garbage);
        };
        if self.lost.is_some() {
            return;
        }
        leaf.since = now;
        if before(leaf.expected, head.expected) {
            leaf.expected = head.expected;
        }
        let (mine, covered, stamp) = (leaf.expected, head.number, head.stamp);
        self.work(WorkKind::RecordIn, Bytes::new(head.length.into()));
        let behind = |leaf: &Leaf| vt_s.wrapping_sub(leaf.expected);
        let most = self.leaves.iter().map(behind).max().unwrap_or(0);
        while self.kept.len() > most as usize {
            self.kept.pop_front();
        }
        self.pause = self.config.timer;
        self.deadline = (!self.kept.is_empty()).then(|| now + self.pause);
        let vt_a = self.vt_a();
        for at in 0..self.kept.len() {
            let number = vt_a.wrapping_add(at as u32);
            let listed = missing.iter().any(|one| number.wrapping_sub(one.first) < one.count);
            let came = before(number, mine) || (!listed && before(number, covered));
            // What was sent behind the stamp that is named may still be on its way.
            if !came && !before(stamp, self.kept[at].stamp) {
                self.event(Event::SentAgain);
                self.work(WorkKind::UserCopy, self.kept[at].data.length());
                self.send_data(at, false);
            }
        }
    }

    /// The time of [`Root::deadline`] has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        let limit = self.config.limit;
        let silent = |leaf: &&Leaf| leaf.expected != self.vt_s && now.saturating_since(leaf.since) >= limit;
        if let Some(rank) = self.leaves.iter().find(silent).map(|leaf| leaf.rank) {
            return self.fail(rank);
        }
        self.stamp = self.stamp.wrapping_add(1);
        let (kind, asks, length) = (Kind::Poll, true, 0);
        let head = Head { kind, asks, length, number: self.vt_s, expected: 0, stamp: self.stamp };
        self.send(&head, Content::new());
        self.pause = (self.pause * 2).min(self.config.most);
        self.deadline = Some(now + self.pause);
    }

    /// A leaf cannot be reached, and will not be: nothing more goes.
    pub fn fail(&mut self, rank: u32) {
        self.lost = Some(rank);
        self.deadline = None;
        self.kept.clear();
        self.event(Event::Lost);
    }

    /// What is to be done next; the time is that of [`Root::deadline`].
    pub fn poll_output(&mut self) -> ChannelOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.deadline))
    }

    fn vt_a(&self) -> u32 {
        self.vt_s.wrapping_sub(self.kept.len() as u32)
    }

    fn send_data(&mut self, at: usize, asks: bool) {
        self.stamp = self.stamp.wrapping_add(1);
        let number = self.vt_a().wrapping_add(at as u32);
        if asks {
            self.unasked = 0;
        }
        let kept = &mut self.kept[at];
        kept.stamp = self.stamp;
        let (data, length) = (kept.data.clone(), kept.data.length().get() as u16);
        let head = Head { kind: Kind::Data, asks, length, number, expected: 0, stamp: self.stamp };
        self.send(&head, data);
    }

    fn send(&mut self, head: &Head, mut data: Content) {
        self.work(WorkKind::RecordOut, data.length());
        let mut pdu = Content::new();
        pdu.push_octets(&head.octets());
        data.move_to(Bytes::MAX, &mut pdu);
        self.outputs.push_back(Output::Transmit(pdu));
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_proto::{MessageId, Payload};

    use super::super::channel::Channel;
    use super::*;

    /// A root and its leaves; each PDU is lost on the way to a leaf where `lose` says so.
    fn carry(root: &mut Root, leaves: &mut [Channel], now: SimTime, lose: &mut impl FnMut(usize) -> bool) {
        loop {
            let mut moved = false;
            loop {
                match root.poll_output() {
                    Output::Transmit(pdu) => {
                        assert!(pdu.length() <= Bytes::new(4096), "what the interface takes");
                        for (at, leaf) in leaves.iter_mut().enumerate() {
                            if !lose(at) {
                                leaf.handle_pdu(now, &mut pdu.clone());
                            }
                        }
                        moved = true;
                    }
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            for (at, leaf) in leaves.iter_mut().enumerate() {
                loop {
                    match leaf.poll_output() {
                        Output::Transmit(mut pdu) => {
                            root.handle_pdu(now, 1 + at as u32, &mut pdu);
                            moved = true;
                        }
                        Output::Timeout(_) => break,
                        _ => {}
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn second(count: u64) -> SimTime {
        SimTime::ZERO + Span::from_s(count)
    }

    #[test]
    fn every_leaf_gets_everything_in_order_whatever_is_lost() {
        for share in [0, 3, 7] {
            let config = Config { window: 8, ..Config::default() };
            let mut root = Root::new(config, &[1, 2, 3]);
            let mut leaves = [0; 3].map(|_| Channel::new(config));
            let mut state = 12_345_u64;
            let mut lose = |at: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at as u64 | 1);
                (state >> 33) % 20 < share
            };
            let mut content = Content::new();
            content.push_octets(b"head");
            content.push_body(Payload::whole(MessageId(1), Bytes::new(200_000)));
            let mut now = SimTime::ZERO;
            while !content.is_empty() || root.deadline().is_some() {
                root.write(now, &mut content);
                carry(&mut root, &mut leaves, now, &mut lose);
                if let Some(due) = root.deadline() {
                    now = due;
                    root.handle_timeout(now);
                    carry(&mut root, &mut leaves, now, &mut lose);
                }
                assert!(now < second(100), "it goes on for ever");
            }
            for leaf in &mut leaves {
                assert_eq!(leaf.inbox().length(), Bytes::new(200_004));
            }
        }
    }

    #[test]
    fn a_leaf_that_says_nothing_is_taken_for_lost_and_named() {
        let config = Config { limit: Span::from_s(5), ..Config::default() };
        let mut root = Root::new(config, &[1, 2]);
        let mut leaves = [0; 2].map(|_| Channel::new(config));
        let mut content = Content::new();
        content.push_octets(b"anything");
        root.write(SimTime::ZERO, &mut content);
        let mut now = SimTime::ZERO;
        while let Some(due) = root.deadline() {
            now = due;
            root.handle_timeout(now);
            carry(&mut root, &mut leaves, now, &mut |at| at == 1);
        }
        assert_eq!((root.lost(), now < second(7)), (Some(2), true));
    }

    #[test]
    fn what_no_leaf_can_have_said_changes_nothing() {
        let mut root = Root::new(Config::default(), &[1]);
        let mut content = Content::new();
        content.push_octets(b"anything");
        root.write(SimTime::ZERO, &mut content);
        while !matches!(root.poll_output(), Output::Timeout(_)) {}
        let head = |kind, expected| Head { kind, asks: false, length: 0, number: 0, expected, stamp: 1 };
        for (rank, head) in [(2, head(Kind::Status, 1)), (1, head(Kind::Data, 1)), (1, head(Kind::Status, 9))]
        {
            let mut pdu = Content::new();
            pdu.push_octets(&head.octets());
            root.handle_pdu(SimTime::ZERO, rank, &mut pdu);
            assert_eq!(root.poll_output(), Output::Event(Event::Garbage));
        }
        assert!(root.deadline().is_some(), "it still waits for its leaf");
    }
}
