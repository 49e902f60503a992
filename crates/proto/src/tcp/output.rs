//! Which segment goes next, if any (`tcp_output`; RFC 9293 §3.8.6, RFC 1122 §4.2.3.4).

use wiretwin_units::{Bytes, SimTime};

use super::config::{Nagle, WindowUpdate};
use super::endpoint::{Endpoint, Pass};
use super::sack::Flight;
use super::segment::{Ecn, Flags, Options, SackBlocks, Segment, Timestamps};
use super::state::State;
use super::timers::Timer;
use crate::Payload;
use crate::ranges::{Near, Place};

/// What a segment does to the variables of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It is the next.
    Next,
    /// It was sent before and goes again out of turn.
    Again,
    /// It probes a closed window.
    Probe,
}

/// A segment that was decided on: what its sender's variables do not say any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stub {
    from: Near,
    len: u32,
    flags: Flags,
    window: u16,
    urgent: u16,
    /// Congestion may mark it in place of dropping it.
    ecn: bool,
}

impl Stub {
    /// Nothing follows a segment without text: all that it says is said.
    pub(super) const fn is_last(&self) -> bool {
        self.len == 0
    }
}

impl Endpoint {
    /// Begins a round of sending, if that was not done; whether all had been acknowledged when it began.
    pub(super) fn begin_pass(&mut self) -> bool {
        if let Pass::Begun { idle } = self.pass {
            return idle;
        }
        let idle = self.snd_max == self.snd_una;
        if idle && self.config.idle_restart && self.state.is_synchronized() {
            let silence = self.config.elapsed(self.last_received, self.now);
            if silence >= self.rtt.rto(&self.config) {
                let mss = self.segment_octets();
                self.window.restart_after_idle(&self.config, mss);
            }
        }
        self.pass = Pass::Begun { idle };
        idle
    }

    /// The next segment of a round; `idle` says whether all had been acknowledged when it began.
    pub(super) fn next_segment(&mut self, idle: bool) -> Option<Stub> {
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived => self.next_syn(),
            _ => {
                if core::mem::take(&mut self.switches.keep_probe) {
                    return Some(self.keep_probe());
                }
                if core::mem::take(&mut self.switches.resend_first)
                    && let Some(segment) = self.resend_first()
                {
                    return Some(segment);
                }
                if self.switches.recovering && self.switches.sack {
                    return self.next_in_sack_recovery(idle);
                }
                let cwnd = i64::from(self.window.cwnd) + self.limited_transmit();
                self.next_in_turn(idle, cwnd)
            }
        }
    }

    fn next_syn(&mut self) -> Option<Stub> {
        if self.snd_nxt > 0 && !self.switches.ack_now {
            return None;
        }
        // RFC 3168 §6.1.1.
        let flags = match self.state {
            State::SynSent if self.config.ecn => self.state.flags() | Flags::ECE | Flags::CWR,
            State::SynReceived if self.switches.ecn => self.state.flags() | Flags::ECE,
            state => state.flags(),
        };
        self.snd_nxt = 0;
        Some(self.segment(0, 0, flags, Kind::Next))
    }

    /// A segment without text whose number is acknowledged already.
    fn keep_probe(&mut self) -> Stub {
        let window = self.offer(false);
        self.counters.sent += 1;
        Stub { from: Near::new(self.snd_una - 1), len: 0, flags: Flags::ACK, window, urgent: 0, ecn: false }
    }

    /// The first segment that is not acknowledged.
    fn resend_first(&mut self) -> Option<Stub> {
        let most = i64::from(self.text_octets());
        let to = self.snd_end.min(self.snd_max).min(self.snd_una + most);
        let hole = self.sacked.next_after(self.snd_una).map_or(to, |range| to.min(range.from));
        let len = (hole - self.snd_una).max(0);
        let fin = self.switches.sent_fin && self.snd_una + len == self.snd_end;
        if len == 0 && !fin {
            return None;
        }
        let high = self.high_rxt.to(self.snd_una).max(self.snd_una + len);
        self.high_rxt = Near::new(high);
        let flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        Some(self.segment(self.snd_una, len as u32, flags, Kind::Again))
    }

    /// RFC 6675 §5 (C): retransmissions and new segments, while the window has room for what is on
    /// its way.
    fn next_in_sack_recovery(&mut self, idle: bool) -> Option<Stub> {
        let mss = self.text_octets();
        let flight = self.flight(mss);
        let room = i64::from(self.window.cwnd) - i64::from(flight.pipe());
        if room >= i64::from(mss) {
            let lost = flight.next_hole(false);
            let has_new =
                self.snd_nxt < self.snd_end && self.snd_nxt - self.snd_una < i64::from(self.snd_wnd);
            let hole = if lost.is_some() || has_new { lost } else { flight.next_hole(true) };
            if let Some(hole) = hole {
                self.high_rxt = Near::new(hole.to);
                let flags = Flags::ACK;
                return Some(self.segment(hole.from, (hole.to - hole.from) as u32, flags, Kind::Again));
            }
        }
        self.next_in_turn(idle, self.snd_nxt - self.snd_una + room.max(0))
    }

    /// What is in flight, for the procedures of RFC 6675.
    pub(super) fn flight(&self, mss: u32) -> Flight<'_> {
        Flight {
            sacked: &self.sacked,
            una: self.snd_una,
            snd_max: self.snd_max,
            high_rxt: self.high_rxt.to(self.snd_una).max(self.snd_una),
            mss,
            threshold: self.config.duplicate_acks,
        }
    }

    /// RFC 3042: each of the first two duplicate acknowledgments lets out one segment more.
    fn limited_transmit(&self) -> i64 {
        let out_of_three = self.dupacks > 0 && self.dupacks < self.config.duplicate_acks;
        if self.config.limited_transmit && out_of_three && !self.switches.recovering {
            i64::from(self.dupacks) * i64::from(self.segment_octets())
        } else {
            0
        }
    }

    /// The segment at `snd_nxt`, if there is a reason to send one.
    fn next_in_turn(&mut self, idle: bool, cwnd: i64) -> Option<Stub> {
        let mut most = i64::from(self.text_octets());
        if self.switches.force {
            // What is probed for is the first octet, whatever the peer has said to hold.
            self.snd_nxt = self.snd_una;
        } else if self.snd_nxt < self.snd_max && !self.sacked.is_empty() {
            // What the peer has said it holds is passed over.
            if let Some(range) = self.sacked.containing(self.snd_nxt) {
                self.snd_nxt = range.to;
            }
            if let Some(range) = self.sacked.next_after(self.snd_nxt) {
                most = most.min(range.from - self.snd_nxt);
            }
        }
        let mut win = i64::from(self.snd_wnd).min(cwnd);
        let off = self.snd_nxt - self.snd_una;
        let queued = self.queued();
        let mut flags = self.state.flags();
        if self.switches.force {
            if win == 0 {
                win = 1;
            } else {
                self.timers.stop(Timer::Persist);
                self.rtt.forgive();
            }
        }
        let mut len = queued.min(win) - off;
        if len < 0 {
            len = 0;
            if win == 0 {
                // The window closed over what is in flight: it is to be probed, not retransmitted.
                self.timers.stop(Timer::Retransmit);
                self.snd_nxt = self.snd_una;
                self.switches.recovering = false;
            }
        }
        let full = len >= most;
        len = len.min(most);
        if self.snd_nxt + len != self.snd_end {
            flags = flags.without(Flags::FIN);
        }
        if !self.is_worth_sending(idle, len, full, flags) {
            self.switches.force = false;
            self.persist_if_held_back();
            return None;
        }
        let probes = self.switches.force && self.timers.runs(Timer::Persist);
        self.switches.force = false;
        let kind = if probes { Kind::Probe } else { Kind::Next };
        let bare = len == 0 && !flags.has(Flags::FIN) && !self.timers.runs(Timer::Persist);
        let from = if bare { self.snd_max } else { self.snd_nxt };
        Some(self.segment(from, len as u32, flags, kind))
    }

    fn is_worth_sending(&self, idle: bool, len: i64, full: bool, flags: Flags) -> bool {
        if len > 0 {
            let empties = self.snd_nxt + len >= self.snd_end;
            let nagle = self.switches.nodelay
                || match self.config.nagle {
                    Nagle::Off => true,
                    Nagle::AnyOutstanding => idle,
                    Nagle::SmallOutstanding => self.snd_sml.to(self.snd_una) <= self.snd_una,
                };
            if full
                || (nagle && empties)
                || self.switches.force
                || len >= i64::from(self.max_sndwnd / 2)
                || self.snd_nxt < self.snd_max
            {
                return true;
            }
        }
        self.switches.ack_now
            || self.snd_up.to(self.snd_una) > self.snd_una.max(self.snd_nxt)
            || (flags.has(Flags::FIN) && (!self.switches.sent_fin || self.snd_nxt == self.snd_una))
            || self.is_update_worth_sending()
    }

    fn is_update_worth_sending(&self) -> bool {
        let offered = self.rcv_adv - self.rcv_nxt;
        let win = self.receive_space().min(self.most_window(self.rcv_scale));
        let win = i64::from(win >> self.rcv_scale << self.rcv_scale);
        let adv = win - offered;
        if win == 0 || adv <= 0 || self.state.has_received_fin() {
            return false;
        }
        let mss = i64::from(self.segment_octets());
        let buffer = i64::from(self.rcv_hiwat);
        match self.config.window_update {
            WindowUpdate::Share35OrEmpty => {
                (self.readable_octets() == 0 && adv >= 2 * mss) || 100 * adv / buffer >= 35
            }
            WindowUpdate::Half => adv >= 2 * mss || 2 * adv >= buffer,
            WindowUpdate::Segment => adv >= mss.min(buffer / 2),
            WindowUpdate::Doubled => adv >= mss.min(buffer / 2) && win >= 2 * offered,
        }
    }

    /// Data wait and no timer runs that would let them go: the window is to be probed.
    ///
    /// Deviation: BSD forgets to where it has an acknowledgment to send as the window closes.
    pub(super) fn persist_if_held_back(&mut self) {
        if self.queued() > 0 && !self.timers.runs(Timer::Retransmit) && !self.timers.runs(Timer::Persist) {
            self.rtt.forgive();
            self.set_persist();
        }
    }

    pub(super) fn set_persist(&mut self) {
        let span = self.rtt.persist(&self.config);
        self.timers.set(Timer::Persist, self.config.deadline(self.now, span));
    }

    /// Octets of text that a segment has room for now: less where it tells what came out of order.
    fn text_octets(&self) -> u32 {
        let full = self.segment_octets();
        if self.held.is_empty() || !self.switches.sack {
            return full;
        }
        let options = Options { sack: self.sack_blocks(), ..Options::NONE };
        full.saturating_sub(u32::from(options.octets())).max(1)
    }

    fn segment(&mut self, from: Place, len: u32, mut flags: Flags, kind: Kind) -> Stub {
        let to = from + i64::from(len);
        let syn = flags.has(Flags::SYN);
        let mut urgent = 0;
        let up = self.snd_up.to(self.snd_una);
        if up > self.snd_una && up > from && !syn {
            urgent = (up - from).min(i64::from(u16::MAX)) as u16;
            flags |= Flags::URG;
            // Choice: said once.
            self.snd_up = Near::new(self.snd_una);
        }
        if len > 0 && to == self.snd_end {
            flags |= Flags::PSH;
        }
        let window = self.offer(syn);
        // RFC 3168 §6.1.4, §6.1.5 and §6.1.6: of new text alone.
        let ecn = self.switches.ecn && len > 0 && from >= self.snd_max && kind != Kind::Probe;
        if self.switches.ecn && !syn {
            if self.switches.echo_mark {
                flags |= Flags::ECE;
            }
            if ecn && core::mem::take(&mut self.switches.tell_reduced) {
                flags |= Flags::CWR;
            }
        }
        self.note_sent(from, to, len, flags, kind);
        Stub { from: Near::new(from), len, flags, window, urgent, ecn }
    }

    /// Writes out a segment that was decided on.
    pub(super) fn build(&self, stub: Stub) -> Segment {
        let Stub { from, len, flags, window, urgent, ecn } = stub;
        let from = from.to(self.snd_una);
        Segment {
            seq: self.seq_of(from),
            ack: self.peer_seq_of(self.rcv_nxt),
            flags,
            window,
            urgent,
            corrupted: false,
            ecn: if ecn { Ecn::Capable } else { Ecn::NotCapable },
            options: self.options(flags),
            payload: Payload {
                message: self.setup.stream,
                start: Bytes::new((from - 1).max(0) as u64),
                length: Bytes::new(u64::from(len)),
            },
        }
    }

    /// The window field, and what has been offered with it.
    fn offer(&mut self, syn: bool) -> u16 {
        let scale = if syn { 0 } else { self.rcv_scale };
        let mut win = self.receive_space();
        // Receiver's side of silly-window avoidance.
        if win < self.rcv_hiwat / 4 && win < self.segment_octets() {
            win = 0;
        }
        win = win.min(self.most_window(scale));
        let offered = (self.rcv_adv - self.rcv_nxt).clamp(0, i64::from(self.most_window(scale))) as u32;
        let field = win.max(offered) >> scale;
        if self.rcv_nxt > 0 {
            self.rcv_adv = self.rcv_adv.max(self.rcv_nxt + (i64::from(field) << scale));
        }
        field as u16
    }

    fn options(&self, flags: Flags) -> Options {
        let timestamps = match self.config.timestamps {
            Some(period) if self.switches.timestamps => {
                let echo = if flags.has(Flags::ACK) { self.ts_recent } else { 0 };
                Some(Timestamps { value: timestamp(self.now, period), echo })
            }
            _ => None,
        };
        if flags.has(Flags::SYN) {
            return Options {
                mss: Some(self.config.offered_mss(self.setup.mtu)),
                window_scale: self.switches.scaling.then(|| self.config.offered_scale()),
                sack_permitted: self.switches.sack,
                timestamps,
                sack: SackBlocks::NONE,
            };
        }
        let is_told = self.switches.sack && !self.held.is_empty();
        let sack = if is_told { self.sack_blocks() } else { SackBlocks::NONE };
        Options { timestamps, sack, ..Options::NONE }
    }

    /// RFC 2018 §4: first the range that grew last, then others.
    ///
    /// Choice: the others follow from the highest down, where the RFC has them by the time at which
    /// they were last told.
    fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        let most = if self.switches.timestamps { SackBlocks::MOST - 1 } else { SackBlocks::MOST };
        let last = self.held.containing(self.held_last.to(self.rcv_nxt));
        let others = self.held.as_slice().iter().rev().copied().filter(|&range| Some(range) != last);
        for range in last.into_iter().chain(others).take(most) {
            blocks.push(self.peer_seq_of(range.from), self.peer_seq_of(range.to));
        }
        blocks
    }

    fn note_sent(&mut self, from: Place, to: Place, len: u32, flags: Flags, kind: Kind) {
        self.counters.sent += 1;
        let after = to + i64::from(flags.has(Flags::SYN)) + i64::from(flags.has(Flags::FIN));
        if len > 0 {
            self.counters.sent_data += 1;
            self.counters.retransmitted += u32::from(from < self.snd_max);
            if len < self.segment_octets() {
                self.snd_sml = Near::new(self.snd_sml.to(self.snd_una).max(to));
            }
        }
        if after > from {
            match kind {
                // A probe is not on its way: it is sent again by the timer that sent it.
                Kind::Probe => self.snd_max = self.snd_max.max(after),
                Kind::Next => self.advance(from, after),
                Kind::Again => {
                    self.snd_nxt = self.snd_nxt.max(after);
                    self.start_retransmit_if_idle();
                }
            }
            self.switches.sent_fin |= flags.has(Flags::FIN);
        }
        if flags.has(Flags::ACK) {
            self.last_ack_sent = Near::new(self.rcv_nxt);
            self.switches.ack_now = false;
            self.switches.ack_delayed = false;
            self.timers.stop(Timer::DelayedAck);
        }
    }

    fn advance(&mut self, from: Place, after: Place) {
        self.snd_nxt = after;
        if after > self.snd_max {
            // A segment that is sent for the first time, in whole or in part, is timed, one at a time.
            if !self.switches.timing && from >= self.snd_max {
                self.switches.timing = true;
                self.rtt_seq = Near::new(from);
                self.rtt_at = self.now;
            }
            self.snd_max = after;
        }
        self.start_retransmit_if_idle();
    }

    fn start_retransmit_if_idle(&mut self) {
        if !self.timers.runs(Timer::Retransmit) && self.snd_nxt != self.snd_una {
            self.start_retransmit();
            if self.timers.runs(Timer::Persist) {
                self.timers.stop(Timer::Persist);
                self.rtt.forgive();
            }
        }
    }

    pub(super) fn start_retransmit(&mut self) {
        let rto = self.rtt.rto(&self.config);
        self.timers.set(Timer::Retransmit, self.config.deadline(self.now, rto));
    }
}

/// The timestamp clock.
pub(super) fn timestamp(now: SimTime, period: wiretwin_units::Span) -> u32 {
    // Never 0, which a peer may take for none.
    ((now.as_ps() / period.as_ps()) as u32).wrapping_add(1)
}
