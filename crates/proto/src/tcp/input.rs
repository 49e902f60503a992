//! What arrives (`tcp_input`; RFC 9293 §3.10.7), by state.

use wiretwin_units::{SimTime, Span};

use super::config::DelayedAck;
use super::config::{Clock, MOST_SCALE};
use super::endpoint::{Endpoint, NO_PLACE, Reset};
use super::event::Reason;
use super::output::timestamp;
use super::segment::{Ecn, Flags, Segment};
use super::state::State;
use super::timers::{Timer, tick_after};
use crate::WorkKind;
use crate::ranges::{Near, Place};

/// A segment as far as it was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    /// The place of its first octet.
    pub from: Place,
    /// Octets of text.
    pub len: i64,
    pub flags: Flags,
    /// The place of its acknowledgment.
    pub ack: Place,
    /// The window, scaled.
    pub window: u32,
    /// The time since a segment came before.
    pub gap: Span,
}

impl Endpoint {
    /// Takes a segment that is for this connection.
    ///
    /// Timers that have run out by `now` and were not handled yet are handled first.
    pub fn handle_segment(&mut self, now: SimTime, segment: &Segment) {
        self.clock(now);
        if self.timers.next().is_some_and(|deadline| deadline <= now) {
            self.handle_timeout(now);
        }
        self.counters.received += 1;
        let octets = segment.octets();
        self.work(WorkKind::SegmentIn, octets, 1);
        self.work(WorkKind::Checksum, octets, 1);
        if segment.corrupted {
            self.counters.corrupted += 1;
            return;
        }
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.in_listen(segment),
            State::SynSent => self.in_syn_sent(segment),
            _ => self.in_others(segment),
        }
    }

    // CLOSED

    /// RFC 9293 §3.10.7.1: there is no such connection.
    fn refuse(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.pend().reset = Some(if segment.flags.has(Flags::ACK) {
            Reset { seq: segment.ack, ack: None }
        } else {
            let syn = u32::from(segment.flags.has(Flags::SYN));
            let fin = u32::from(segment.flags.has(Flags::FIN));
            let ack = segment.seq + segment.len() + syn + fin;
            Reset { seq: super::SeqNumber::ZERO, ack: Some(ack) }
        });
    }

    // LISTEN

    fn in_listen(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            return self.refuse(segment);
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        self.state = State::SynReceived;
        self.start_opening();
        self.switches.ack_now = true;
        self.want_pass();
    }

    /// What a SYN says. Choice: text that comes with it is not kept; the peer sends it again.
    fn take_syn(&mut self, segment: &Segment) {
        self.last_received = self.now;
        self.irs = segment.seq;
        self.rcv_nxt = 1;
        self.rcv_adv = 1;
        let options = segment.options;
        let offered = self.config.offered_mss(self.setup.mtu);
        let theirs = options.mss.unwrap_or(self.config.default_mss).max(super::config::LEAST_MSS);
        self.mss = offered.min(theirs);
        if self.config.buffers.round_to_segments {
            self.round_buffers();
        }
        self.switches.sack &= options.sack_permitted;
        // RFC 3168 §6.1.1: both bits ask, ECE alone grants.
        let asks = !segment.flags.has(Flags::ACK);
        self.switches.ecn =
            self.config.ecn && segment.flags.has(Flags::ECE) && segment.flags.has(Flags::CWR) == asks;
        match options.timestamps {
            Some(stamps) if self.switches.timestamps => {
                self.ts_recent = stamps.value;
                self.ts_recent_at_s = seconds(self.now);
            }
            _ => self.switches.timestamps = false,
        }
        match options.window_scale {
            Some(scale) if self.switches.scaling => {
                self.snd_scale = scale.min(MOST_SCALE);
                self.rcv_scale = self.config.offered_scale();
            }
            _ => self.switches.scaling = false,
        }
        // The window of a SYN is never scaled.
        self.snd_wnd = u32::from(segment.window);
        self.max_sndwnd = self.snd_wnd;
        self.snd_wl1 = segment.seq;
        self.snd_wl2 = self.seq_of(0);
        let mss = self.segment_octets();
        self.window.open(&self.config, mss);
    }

    /// Buffers of whole segments, and no segment larger than the buffer that it waits in.
    fn round_buffers(&mut self) {
        let limit = self.config.buffers.limit;
        let mss = u32::from(self.mss);
        if self.snd_hiwat < mss {
            self.mss = self.snd_hiwat as u16;
        } else {
            self.snd_hiwat = self.snd_hiwat.div_ceil(mss).saturating_mul(mss).min(limit.max(self.snd_hiwat));
        }
        let mss = u32::from(self.mss);
        if self.rcv_hiwat > mss {
            self.rcv_hiwat = self.rcv_hiwat.div_ceil(mss).saturating_mul(mss).min(limit.max(self.rcv_hiwat));
        }
    }

    // SYN-SENT

    fn in_syn_sent(&mut self, segment: &Segment) {
        let flags = segment.flags;
        let ack = self.place_of_ack(segment.ack);
        let acked = flags.has(Flags::ACK);
        if acked && !(1..=self.snd_max).contains(&ack) {
            return self.refuse(segment);
        }
        if flags.has(Flags::RST) {
            if acked {
                self.end(Reason::Refused);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        self.timers.stop(Timer::Retransmit);
        self.switches.ack_now = true;
        self.want_pass();
        if acked {
            self.snd_una = ack;
            self.snd_nxt = self.snd_nxt.max(ack);
            self.measure(ack);
            self.open();
        } else {
            // Both have asked: each answers the other's SYN with its own.
            self.state = State::SynReceived;
            self.snd_nxt = 0;
        }
    }

    /// The connection is open.
    fn open(&mut self) {
        self.state = State::Established;
        self.timers.stop(Timer::Keep);
        if self.switches.keep_alive {
            self.set_keep(self.config.keep_alive.idle);
        }
        self.pend().established = true;
        if self.switches.syn_again {
            // RFC 5681 §3.1: one segment to begin with, where the SYN was lost.
            self.window.cwnd = self.segment_octets();
            if let Clock::Fine = self.config.clock {
                self.rtt.at_least(&self.config, AFTER_LOST_SYN);
            }
        }
        self.switches.timed_out = false;
        self.work(WorkKind::Wakeup, 0, 1);
        if self.switches.close_wanted {
            self.submit_all();
            self.state = State::FinWait1;
            self.want_pass();
        }
    }

    // The others

    fn in_others(&mut self, segment: &Segment) {
        let gap = self.now.saturating_since(self.last_received);
        self.last_received = self.now;
        self.probes = 0;
        if self.switches.keep_alive && self.state.is_synchronized() {
            self.set_keep(self.config.keep_alive.idle);
        }
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.snd_scale };
        let mut incoming = Incoming {
            from: self.place_of_peer(segment.seq),
            len: i64::from(segment.len()),
            flags: segment.flags,
            ack: self.place_of_ack(segment.ack),
            window: u32::from(segment.window) << scale,
            gap,
        };
        // RFC 7323 §5.3 R1.
        if self.is_old(segment) {
            return self.answer_outside(segment.flags);
        }
        let first = incoming.from;
        if !self.trim_front(&mut incoming) {
            return;
        }
        // The user has left: whatever comes is for nobody (RFC 9293 §3.6.1).
        if self.switches.detached && self.state > State::CloseWait && incoming.len > 0 {
            self.end(Reason::Reset);
            return self.refuse(segment);
        }
        if !self.trim_back(&mut incoming) {
            return;
        }
        // RFC 7323 §4.3 (2).
        if let Some(stamps) = segment.options.timestamps
            && self.switches.timestamps
            && first <= self.last_ack_sent.to(self.rcv_nxt)
        {
            self.ts_recent = stamps.value;
            self.ts_recent_at_s = seconds(self.now);
        }
        if incoming.flags.has(Flags::RST) {
            return self.handle_reset(first);
        }
        if incoming.flags.has(Flags::SYN) {
            return self.handle_syn_in_window(segment);
        }
        if !incoming.flags.has(Flags::ACK) {
            return;
        }
        if self.switches.ecn && incoming.len > 0 {
            // RFC 3168 §6.1.3: until the sender has said that it knows.
            self.switches.echo_mark &= !incoming.flags.has(Flags::CWR);
            self.switches.echo_mark |= segment.ecn == Ecn::Congestion;
        }
        if !self.handle_ack(segment, incoming) {
            return;
        }
        self.update_window(incoming);
        if incoming.flags.has(Flags::URG) && segment.urgent > 0 && !self.state.has_received_fin() {
            self.take_urgent(first, segment.urgent);
        }
        self.take_text(incoming);
        if self.switches.ack_now {
            self.want_pass();
        }
    }

    /// Protection against wrapped numbers: the time stamp is older than the last.
    fn is_old(&self, segment: &Segment) -> bool {
        let Some(stamps) = segment.options.timestamps else { return false };
        self.switches.timestamps
            && !segment.flags.any(Flags::RST | Flags::SYN)
            && (stamps.value.wrapping_sub(self.ts_recent) as i32) < 0
            && seconds(self.now).wrapping_sub(self.ts_recent_at_s) < PAWS_IDLE_S
    }

    /// Takes off what came before; false where nothing is left to look at.
    fn trim_front(&mut self, incoming: &mut Incoming) -> bool {
        let mut before = self.rcv_nxt - incoming.from;
        if before <= 0 {
            return true;
        }
        if incoming.flags.has(Flags::SYN) {
            incoming.flags = incoming.flags.without(Flags::SYN);
            incoming.from += 1;
            before -= 1;
        }
        if before >= incoming.len {
            if incoming.flags.has(Flags::FIN) && before == incoming.len + 1 {
                // The FIN came before: the peer did not see it acknowledged, but its acknowledgment
                // counts.
                before = incoming.len;
                incoming.flags = incoming.flags.without(Flags::FIN);
                if self.state == State::TimeWait {
                    self.start_two_msl(self.config.two_msl);
                }
            } else if before != 0 || !incoming.flags.has(Flags::ACK) {
                self.answer_outside(incoming.flags);
                return false;
            }
            self.switches.ack_now = true;
        }
        incoming.from += before;
        incoming.len -= before;
        true
    }

    /// Takes off what lies behind the window; false where nothing is left to look at.
    fn trim_back(&mut self, incoming: &mut Incoming) -> bool {
        let wnd = i64::from(self.rcv_wnd());
        let behind = incoming.from + incoming.len - (self.rcv_nxt + wnd);
        if behind <= 0 {
            return true;
        }
        if behind >= incoming.len {
            // A closed window takes nothing, but acknowledgments count.
            if wnd == 0 && incoming.from == self.rcv_nxt {
                self.switches.ack_now = true;
            } else {
                self.answer_outside(incoming.flags);
                return false;
            }
        }
        incoming.len -= behind;
        incoming.flags = incoming.flags.without(Flags::PSH | Flags::FIN);
        true
    }

    /// RFC 9293 §3.10.7.4, first: an answer that says where this end is.
    fn answer_outside(&mut self, flags: Flags) {
        self.counters.outside += 1;
        if !flags.has(Flags::RST) {
            self.challenge();
        }
    }

    /// Acknowledges at once, if the last time was not too short a while ago.
    pub(super) fn challenge(&mut self) {
        if let Some(interval) = self.config.invalid_interval {
            let now_ms = (self.now.since_start().as_ns() / 1_000_000) as u32;
            let interval_ms = interval.as_ns() / 1_000_000;
            let last = self.last_challenge_ms;
            if last != u32::MAX && u64::from(now_ms.wrapping_sub(last)) < interval_ms {
                return;
            }
            self.last_challenge_ms = now_ms;
        }
        self.switches.ack_now = true;
        self.want_pass();
    }

    fn handle_reset(&mut self, from: Place) {
        // RFC 5961 §3.2: only the very next number ends the connection.
        if self.config.challenge && from != self.rcv_nxt {
            return self.challenge();
        }
        match self.state {
            State::SynReceived if self.switches.passive => self.listen_again(),
            State::SynReceived => self.end(Reason::Refused),
            State::TimeWait => self.end(Reason::Finished),
            _ => self.end(Reason::Reset),
        }
    }

    fn listen_again(&mut self) {
        let mut fresh = Self::new(self.config.clone(), self.setup);
        fresh.state = State::Listen;
        fresh.switches.passive = true;
        fresh.switches.begun = true;
        fresh.switches.nodelay = self.switches.nodelay;
        fresh.switches.keep_alive = self.switches.keep_alive;
        fresh.now = self.now;
        fresh.last_received = self.now;
        fresh.tally = self.tally;
        fresh.counters = self.counters;
        *self = fresh;
    }

    fn handle_syn_in_window(&mut self, segment: &Segment) {
        // RFC 5961 §4.2.
        if self.config.challenge {
            return self.challenge();
        }
        if self.state == State::SynReceived && self.switches.passive {
            return self.listen_again();
        }
        self.end(Reason::Reset);
        self.refuse(segment);
    }

    /// The acknowledgment of a SYN that was sent in answer to one; false where it is none.
    pub(super) fn handle_ack_of_syn(&mut self, segment: &Segment, incoming: Incoming) -> bool {
        if !(1..=self.snd_max).contains(&incoming.ack) {
            self.refuse(segment);
            return false;
        }
        self.snd_wl1 = self.peer_seq_of(incoming.from - 1);
        self.open();
        true
    }

    fn take_urgent(&mut self, first: Place, urgent: u16) {
        // Choice: the pointer leads to the octet after the urgent data, as BSD and all that followed
        // it have it (RFC 6093 §2.1).
        let up = first + i64::from(urgent);
        if up > self.rcv_up.to(self.rcv_nxt) {
            self.rcv_up = Near::new(up);
            self.pend().urgent = true;
        }
    }

    fn take_text(&mut self, incoming: Incoming) {
        let fin = incoming.flags.has(Flags::FIN);
        if (incoming.len == 0 && !fin) || self.state.has_received_fin() {
            return;
        }
        let to = incoming.from + incoming.len;
        if fin && self.rcv_fin == NO_PLACE {
            self.rcv_fin = to;
        }
        // What lies behind a FIN is a fault of the peer.
        let to = to.min(self.rcv_fin);
        let len = to - incoming.from;
        self.rcv_mss = self.rcv_mss.max(len.clamp(0, i64::from(u16::MAX)) as u16);
        if incoming.from == self.rcv_nxt {
            self.rcv_nxt = self.rcv_nxt.max(to);
            if len > 0 {
                self.work(WorkKind::Wakeup, 0, 1);
            }
            if self.held.is_empty() {
                self.schedule_ack(len, incoming.gap);
            } else {
                // RFC 5681 §4.2: a gap that is filled, in whole or in part, is told of at once.
                self.held.forget_before(self.rcv_nxt);
                if let Some(end) = self.held.take_through(self.rcv_nxt) {
                    self.rcv_nxt = end;
                }
                self.held.relax();
                self.switches.ack_now = true;
            }
        } else {
            if self.held.insert(incoming.from, to, usize::from(self.config.most_ranges)) {
                self.held_last = Near::new(incoming.from);
            }
            self.switches.ack_now = true;
        }
        if self.rcv_nxt == self.rcv_fin {
            self.take_fin();
        }
    }

    /// Data came in order: when are they acknowledged?
    fn schedule_ack(&mut self, len: i64, gap: Span) {
        if self.switches.ack_now || len == 0 {
            return;
        }
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            self.switches.ack_now = true;
            return;
        }
        let now = self.now;
        let wait = match self.config.delayed_ack {
            DelayedAck::None => {
                self.switches.ack_now = true;
                return;
            }
            DelayedAck::Grid => {
                self.switches.ack_delayed = true;
                if !self.timers.runs(Timer::DelayedAck) {
                    let fast = match self.config.clock {
                        Clock::Ticks { fast, .. } => fast,
                        Clock::Fine => FAST_GRID,
                    };
                    let tick = tick_after(now, 1, fast, self.config.phases.fast);
                    self.timers.set(Timer::DelayedAck, tick);
                }
                return;
            }
            DelayedAck::EverySecond { after } => after,
            DelayedAck::Adaptive { min, max } => self.adapt(gap, min, max),
        };
        let owed = self.rcv_nxt - self.last_ack_sent.to(self.rcv_nxt);
        if owed >= 2 * i64::from(self.rcv_mss.max(1)) {
            self.switches.ack_now = true;
        } else if !self.switches.ack_delayed {
            self.switches.ack_delayed = true;
            self.timers.set(Timer::DelayedAck, now.saturating_add(wait));
        }
    }

    /// The time that an acknowledgment waits follows the gaps between arrivals.
    fn adapt(&mut self, gap: Span, min: Span, max: Span) -> Span {
        let us = |span: Span| (span.as_ns() / 1_000) as u32;
        let (least, most) = (us(min), us(max));
        let gap = us(gap.min(max));
        if gap <= least / 2 {
            self.ato_us = self.ato_us / 2 + least / 2;
        } else if gap < self.ato_us {
            self.ato_us = self.ato_us / 2 + gap;
        }
        self.ato_us = self.ato_us.clamp(least, most);
        Span::from_us(u64::from(self.ato_us))
    }

    /// The peer's FIN, with all before it.
    fn take_fin(&mut self) {
        self.rcv_nxt += 1;
        self.pend().end_of_stream = true;
        self.switches.ack_now = true;
        self.work(WorkKind::Wakeup, 0, 1);
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait_out(),
            _ => {}
        }
    }

    /// TIME-WAIT begins.
    pub(super) fn wait_out(&mut self) {
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.start_two_msl(self.config.two_msl);
    }

    /// RFC 9293 §3.10.7.4, fifth: the window, if this segment is not older than the one that told of
    /// it last.
    fn update_window(&mut self, incoming: Incoming) {
        let window = incoming.window;
        let (seq, ack) = (self.peer_seq_of(incoming.from), self.seq_of(incoming.ack));
        let newer = self.snd_wl1.precedes(seq)
            || (self.snd_wl1 == seq
                && (self.snd_wl2.precedes(ack) || (self.snd_wl2 == ack && window > self.snd_wnd)));
        if newer {
            self.snd_wnd = window;
            self.snd_wl1 = seq;
            self.snd_wl2 = ack;
            self.max_sndwnd = self.max_sndwnd.max(window);
            self.want_pass();
        }
    }

    /// A round trip in time stamps, for a segment that cannot be timed otherwise (RFC 7323 §4.1).
    pub(super) fn measured_by_stamps(&self, segment: &Segment) -> Option<Span> {
        let period = self.config.timestamps?;
        let echo = segment.options.timestamps.filter(|_| self.switches.timestamps)?.echo;
        let ticks = timestamp(self.now, period).wrapping_sub(echo);
        (echo != 0 && ticks < 1 << 31).then(|| Span::from_ps(period.as_ps().saturating_mul(u64::from(ticks))))
    }
}

/// RFC 7323 §5.5: after 24 days a time stamp says nothing.
const PAWS_IDLE_S: u32 = 24 * 86_400;
/// The fast grid of a connection whose other timers are fine.
const FAST_GRID: Span = Span::from_ms(200);
/// RFC 6298 (5.7).
const AFTER_LOST_SYN: Span = Span::from_s(3);

fn seconds(time: SimTime) -> u32 {
    (time.since_start().as_ns() / 1_000_000_000) as u32
}
