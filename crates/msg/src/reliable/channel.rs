//! Both directions between two processes over circuits that lose PDUs and keep their order: segmentation,
//! and retransmission of exactly what was lost.
//!
//! | variable | meaning |
//! |---|---|
//! | `vt_s` | the number of the next new data |
//! | `vt_a` | all data before this is known to have come |
//! | `stamp` | counts what was sent on the circuit, also again: data and polls |
//! | `vr_r` | the data that is expected next |
//! | `vr_h` | one more than the highest that has come |
//! | `vr_stamp` | the last stamp that has come |
//!
//! A circuit keeps the order, so a stamp that is left out is a loss, and whoever sees it says so at once by a
//! status; the sender repeats what is missing and was last sent before the stamp that the status names. A loss
//! that no later PDU shows is found by a poll, when nothing has been heard for a time. Who receives says nothing
//! of its own accord: acknowledgments travel with data the other way, and are asked for once in half a window.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use super::pdu::{HEAD_OCTETS, Head, Kind, MOST_RANGES, Missing, put_list, take_list};
use crate::library::Content;

/// How a channel works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest PDU, head included; 17 to 65551 bytes. 4096 is what the Fore interface takes.
    pub pdu: Bytes,
    /// Data that may be under way, in PDUs; 2 to 65536.
    pub window: u32,
    /// How long after the last sign of the peer it is polled, at first; each time twice as long.
    pub timer: Span,
    /// The longest time between polls.
    pub most: Span,
    /// How long the peer may say nothing while data is under way, before it is taken for lost.
    pub limit: Span,
}

impl Default for Config {
    /// Choice: a window of 32 PDUs, polls after 100 ms to 1 s. A process answers only while it is in its library,
    /// so the limit has to be longer than any stretch of computing: an hour.
    fn default() -> Self {
        Self {
            pdu: Bytes::new(4096),
            window: 32,
            timer: Span::from_ms(100),
            most: Span::from_s(1),
            limit: Span::from_s(3600),
        }
    }
}

/// What a channel has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Data was sent again.
    SentAgain,
    /// Octets came that are none of this layer's, or make no sense now.
    Garbage,
    /// The peer has said nothing for too long: nothing more goes.
    Lost,
}

/// Outputs of a channel: PDUs to send, data in its inbox, events.
pub type ChannelOutput = Output<Content, (), Event>;

/// Data that may have to be sent again.
#[derive(Debug)]
struct Kept {
    data: Content,
    /// When it was last sent, by stamp.
    stamp: u32,
    came: bool,
}

/// What passed, in PDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Data sent for the first time.
    pub sent: u64,
    /// Data sent again.
    pub again: u64,
    /// Data that came for the first time.
    pub came: u64,
    /// Data that had come before.
    pub twice: u64,
    /// Polls sent.
    pub polls: u64,
    /// Statuses sent.
    pub statuses: u64,
}

/// One channel.
#[derive(Debug)]
pub struct Channel {
    config: Config,
    vt_s: u32,
    stamp: u32,
    /// From `vt_a` on.
    kept: VecDeque<Kept>,
    /// Data since a status was last asked for.
    unasked: u32,
    vr_r: u32,
    vr_h: u32,
    vr_stamp: u32,
    /// What came too early.
    early: BTreeMap<u32, Content>,
    /// What the peer has last been told is expected.
    told: u32,
    inbox: Content,
    /// When the peer was last heard of, or what it answers for was sent.
    since: SimTime,
    deadline: Option<SimTime>,
    pause: Span,
    lost: bool,
    passed: Passed,
    outputs: VecDeque<ChannelOutput>,
}

/// Whether `a` is before `b`; numbers go round.
pub(super) const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Channel {
    /// A channel on which nothing was sent.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            vt_s: 0,
            stamp: 0,
            kept: VecDeque::new(),
            unasked: 0,
            vr_r: 0,
            vr_h: 0,
            vr_stamp: 0,
            early: BTreeMap::new(),
            told: 0,
            inbox: Content::new(),
            since: SimTime::ZERO,
            deadline: None,
            pause: config.timer,
            lost: false,
            passed: Passed::default(),
            outputs: VecDeque::new(),
        }
    }

    // Getters

    /// Whether data would be taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.kept.len() < self.config.window as usize
    }

    /// Whether data is under way that is not known to have come.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.kept.is_empty() && !self.lost
    }

    /// Whether the peer is taken for lost.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// When [`Channel::handle_timeout`] is due, if ever.
    #[must_use]
    pub const fn deadline(&self) -> Option<SimTime> {
        self.deadline
    }

    /// What has come in order and was not taken.
    pub const fn inbox(&mut self) -> &mut Content {
        &mut self.inbox
    }

    /// What passed.
    #[must_use]
    pub const fn passed(&self) -> Passed {
        self.passed
    }

    fn vt_a(&self) -> u32 {
        self.vt_s.wrapping_sub(self.kept.len() as u32)
    }

    // Handlers

    /// Takes from the front of `content` what there is room for, in PDUs that nothing else shares.
    pub fn write(&mut self, now: SimTime, content: &mut Content) {
        let most = Bytes::new(self.config.pdu.get() - HEAD_OCTETS as u64);
        while !content.is_empty() && self.has_room() && !self.lost {
            let mut data = Content::new();
            let length = content.move_to(most, &mut data);
            self.work(WorkKind::UserCopy, length);
            self.unasked += 1;
            let full = self.kept.len() + 1 == self.config.window as usize;
            let asks = full || self.unasked > self.config.window / 2;
            let number = self.vt_s;
            self.vt_s = number.wrapping_add(1);
            if self.kept.is_empty() {
                (self.since, self.pause) = (now, self.config.timer);
            }
            self.passed.sent += 1;
            self.kept.push_back(Kept { data, stamp: 0, came: false });
            self.send_data(self.kept.len() - 1, asks);
            self.deadline = Some(now + self.pause);
        }
    }

    /// A PDU has come.
    pub fn handle_pdu(&mut self, now: SimTime, pdu: &mut Content) {
        let Ok(head) = Head::take(pdu) else { return self.event(Event::Garbage) };
        if self.lost {
            return;
        }
        self.work(WorkKind::RecordIn, Bytes::new(head.length.into()));
        // Numbers that neither side can have used yet are nobody's.
        let under_way = head.expected.wrapping_sub(self.vt_a());
        let window = 2 * self.config.window;
        let sensible = match head.kind {
            Kind::Status => true,
            Kind::OfTree => false,
            Kind::Data | Kind::Poll => {
                let ahead = head.number.wrapping_sub(self.vr_r);
                // What came before may come once more.
                ahead <= window || before(head.number, self.vr_r)
            }
        };
        let known = under_way <= self.kept.len() as u32 || before(head.expected, self.vt_a());
        if !sensible || !known {
            return self.event(Event::Garbage);
        }
        self.acknowledged(now, head.expected);
        match head.kind {
            Kind::Data => self.data(&head, pdu),
            Kind::Poll => {
                self.vr_stamp = head.stamp;
                self.send_status();
            }
            Kind::Status => match take_list(pdu) {
                Ok(missing) => self.status(now, &head, &missing),
                Err(_) => self.event(Event::Garbage),
            },
            Kind::OfTree => {}
        }
    }

    /// The time of [`Channel::deadline`] has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        if !self.is_waiting() {
            self.deadline = None;
            return;
        }
        if now.saturating_since(self.since) >= self.config.limit {
            self.lost = true;
            self.deadline = None;
            self.kept.clear();
            return self.event(Event::Lost);
        }
        self.passed.polls += 1;
        self.send_head(Kind::Poll, true, self.vt_s);
        self.pause = (self.pause * 2).min(self.config.most);
        self.deadline = Some(now + self.pause);
    }

    /// The peer cannot be reached, and will not be: nothing more goes.
    pub fn fail(&mut self) {
        if !core::mem::replace(&mut self.lost, true) {
            self.deadline = None;
            self.kept.clear();
            self.event(Event::Lost);
        }
    }

    /// Says what has come, where the peer does not know.
    pub fn tell(&mut self) {
        if self.told != self.vr_r && !self.lost {
            self.send_status();
        }
    }

    /// What is to be done next; the time is that of [`Channel::deadline`].
    pub fn poll_output(&mut self) -> ChannelOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.deadline))
    }

    // What PDUs bring about

    fn acknowledged(&mut self, now: SimTime, expected: u32) {
        let count = expected.wrapping_sub(self.vt_a());
        if count as usize <= self.kept.len() {
            self.kept.drain(..count as usize);
        }
        (self.since, self.pause) = (now, self.config.timer);
        self.deadline = (!self.kept.is_empty()).then(|| now + self.pause);
    }

    fn data(&mut self, head: &Head, pdu: &mut Content) {
        let gap = head.stamp != self.vr_stamp.wrapping_add(1);
        self.vr_stamp = head.stamp;
        let fresh = !before(head.number, self.vr_r) && !self.early.contains_key(&head.number);
        if fresh {
            self.passed.came += 1;
            self.work(WorkKind::UserCopy, pdu.length());
            if !before(head.number, self.vr_h) {
                self.vr_h = head.number.wrapping_add(1);
            }
            self.early.insert(head.number, core::mem::take(pdu));
            while let Some(mut next) = self.early.remove(&self.vr_r) {
                next.move_to(Bytes::MAX, &mut self.inbox);
                self.vr_r = self.vr_r.wrapping_add(1);
            }
            self.outputs.push_back(Output::Deliver(()));
        } else {
            self.passed.twice += 1;
        }
        if gap || head.asks {
            self.send_status();
        }
    }

    fn status(&mut self, now: SimTime, head: &Head, missing: &[Missing]) {
        let vt_a = self.vt_a();
        for at in 0..self.kept.len() {
            let number = vt_a.wrapping_add(at as u32);
            let listed = missing.iter().any(|one| number.wrapping_sub(one.first) < one.count);
            if !listed && before(number, head.number) {
                self.kept[at].came = true;
            }
            let kept = &self.kept[at];
            // What was sent behind the stamp that is named may still be on its way.
            if !kept.came && !before(head.stamp, kept.stamp) {
                self.passed.again += 1;
                let length = kept.data.length();
                self.event(Event::SentAgain);
                self.work(WorkKind::UserCopy, length);
                self.send_data(at, false);
                self.deadline = Some(now + self.pause);
            }
        }
    }

    // What is sent

    fn send_data(&mut self, at: usize, asks: bool) {
        self.stamp = self.stamp.wrapping_add(1);
        let number = self.vt_a().wrapping_add(at as u32);
        if asks {
            self.unasked = 0;
        }
        let kept = &mut self.kept[at];
        kept.stamp = self.stamp;
        let length = kept.data.length();
        let mut copy = kept.data.clone();
        let head = Head {
            kind: Kind::Data,
            asks,
            length: length.get() as u16,
            number,
            expected: self.vr_r,
            stamp: self.stamp,
        };
        self.told = self.vr_r;
        let mut pdu = Content::new();
        pdu.push_octets(&head.octets());
        copy.move_to(Bytes::MAX, &mut pdu);
        self.work(WorkKind::RecordOut, length);
        self.outputs.push_back(Output::Transmit(pdu));
    }

    fn send_head(&mut self, kind: Kind, asks: bool, number: u32) {
        self.stamp = self.stamp.wrapping_add(1);
        self.told = self.vr_r;
        let head = Head { kind, asks, length: 0, number, expected: self.vr_r, stamp: self.stamp };
        let mut pdu = Content::new();
        pdu.push_octets(&head.octets());
        self.work(WorkKind::RecordOut, Bytes::new(0));
        self.outputs.push_back(Output::Transmit(pdu));
    }

    fn send_status(&mut self) {
        let mut list: Vec<Missing> = Vec::new();
        let mut covered = self.vr_h;
        let mut number = self.vr_r;
        while before(number, self.vr_h) {
            if !self.early.contains_key(&number) {
                let full = list.len() == MOST_RANGES;
                match list.last_mut() {
                    Some(last) if last.first.wrapping_add(last.count) == number => last.count += 1,
                    _ if full => {
                        // The sender is not to take what is not listed for received.
                        covered = number;
                        break;
                    }
                    _ => list.push(Missing { first: number, count: 1 }),
                }
            }
            number = number.wrapping_add(1);
        }
        self.passed.statuses += 1;
        self.told = self.vr_r;
        let head = Head {
            kind: Kind::Status,
            asks: false,
            length: 8 * list.len() as u16,
            number: covered,
            expected: self.vr_r,
            stamp: self.vr_stamp,
        };
        let mut pdu = Content::new();
        pdu.push_octets(&head.octets());
        put_list(&list, &mut pdu);
        self.work(WorkKind::RecordOut, Bytes::new(head.length.into()));
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
mod tests;
