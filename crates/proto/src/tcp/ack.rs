//! What an acknowledgment brings about: loss, round trips, the congestion window, closing.

use super::config::{Congestion, LossBasis};
use super::congestion::Acked;
use super::endpoint::Endpoint;
use super::event::Reason;
use super::input::Incoming;
use super::segment::{Flags, Segment};
use super::state::State;
use super::timers::Timer;
use crate::WorkKind;
use crate::ranges::{Near, Place};

impl Endpoint {
    /// RFC 9293 §3.10.7.4, fifth; false where the segment is done with.
    pub(super) fn handle_ack(&mut self, segment: &Segment, incoming: Incoming) -> bool {
        if self.state == State::SynReceived && !self.handle_ack_of_syn(segment, incoming) {
            return false;
        }
        let ack = incoming.ack;
        if ack > self.snd_max {
            // It acknowledges what was never sent.
            self.counters.outside += 1;
            self.challenge();
            return false;
        }
        let news = self.take_blocks(segment, ack);
        if ack <= self.snd_una {
            let duplicate = ack == self.snd_una
                && self.timers.runs(Timer::Retransmit)
                && (news || (incoming.len == 0 && incoming.window == self.snd_wnd))
                && !incoming.flags.any(Flags::FIN | Flags::SYN);
            if duplicate {
                self.handle_duplicate();
            } else if incoming.len == 0 {
                self.dupacks = 0;
            }
            return true;
        }
        self.handle_new_ack(segment, ack);
        if self.switches.ecn && incoming.flags.has(Flags::ECE) {
            self.handle_mark(ack);
        }
        // FIN-WAIT-1 and its like may have ended by now, and in CLOSED nothing more is looked at.
        self.state != State::Closed
    }

    /// Takes in what the peer says to hold; whether that is more than was known.
    fn take_blocks(&mut self, segment: &Segment, ack: Place) -> bool {
        if !self.switches.sack || segment.options.sack.is_empty() {
            return false;
        }
        let mut news = false;
        for &(from, to) in segment.options.sack.as_slice() {
            let (from, to) = (self.place_of_ack(from), self.place_of_ack(to));
            // A block below the acknowledgment tells of a duplicate (RFC 2883).
            if from < to && from > ack.max(self.snd_una) && to <= self.snd_max {
                let known = self.sacked.containing(from).is_some_and(|range| range.to >= to);
                let most = usize::from(self.config.most_ranges);
                news |= !known && self.sacked.insert(from, to, most);
            }
        }
        news
    }

    fn handle_duplicate(&mut self) {
        self.dupacks = self.dupacks.saturating_add(1);
        let mss = self.segment_octets();
        let sack = self.switches.sack;
        let threshold = self.config.duplicate_acks;
        if self.switches.recovering {
            if !sack {
                // Another segment has left the network.
                self.window.cwnd = self.window.cwnd.saturating_add(mss);
            }
            self.want_pass();
            return;
        }
        let told = self.dupacks == threshold || (sack && self.flight(mss).is_first_lost());
        // RFC 6582 §3.2 (2), RFC 6675 §5 (1): not again for what was in flight at the last loss.
        let careful = sack || matches!(self.config.congestion, Congestion::NewReno | Congestion::Cubic);
        let again = self.snd_una <= self.recover.to(self.snd_una);
        if told && !(careful && again) {
            self.retransmit_fast(mss);
        } else if self.dupacks > threshold && self.config.congestion == Congestion::Reno && !sack {
            self.window.cwnd = self.window.cwnd.saturating_add(mss);
            self.want_pass();
        } else if self.config.limited_transmit {
            self.want_pass();
        }
    }

    /// The first segment in flight is taken to be lost.
    fn retransmit_fast(&mut self, mss: u32) {
        self.counters.fast_retransmits += 1;
        let flight = (self.snd_max - self.snd_una) as u32;
        // A mark that came of the same window has reduced it already.
        if self.snd_una >= self.marked.to(self.snd_una) {
            self.window.on_loss(&self.config, self.snd_wnd, flight, mss);
        }
        self.timers.stop(Timer::Retransmit);
        self.switches.timing = false;
        self.recover = Near::new(self.snd_max);
        self.high_rxt = Near::new(self.snd_una);
        self.switches.resend_first = true;
        let inflated = self.window.ssthresh.saturating_add(u32::from(self.dupacks) * mss);
        match self.config.congestion {
            Congestion::Tahoe => self.window.cwnd = mss,
            _ if self.switches.sack => {
                self.switches.recovering = true;
                self.window.cwnd = self.window.ssthresh;
            }
            Congestion::Reno => self.window.cwnd = inflated,
            Congestion::NewReno | Congestion::Cubic => {
                self.switches.recovering = true;
                self.window.cwnd = inflated;
            }
        }
        self.want_pass();
    }

    fn handle_new_ack(&mut self, segment: &Segment, ack: Place) {
        let mss = self.segment_octets();
        let acked = (ack - self.snd_una) as u32;
        let flight = (self.snd_max - self.snd_una) as u32;
        let of_syn = self.snd_una == 0;
        self.work(WorkKind::AckIn, acked - u32::from(of_syn), 1);
        if self.switches.timing && ack > self.rtt_seq.to(self.snd_una) {
            self.measure(ack);
        } else if !self.switches.timing
            && let Some(measured) = self.measured_by_stamps(segment)
        {
            self.rtt.sample(&self.config, measured);
        } else if self.config.loss_basis == LossBasis::Flight {
            // What was sent is arriving, however often it was sent.
            self.rtt.forgive();
        }
        self.switches.timed_out = false;
        self.switches.unreachable = false;
        let was_recovering = self.switches.recovering;
        if was_recovering {
            self.handle_ack_in_recovery(ack, acked, mss);
        } else if self.config.congestion == Congestion::Reno
            && self.dupacks >= self.config.deflate_from
            && self.window.cwnd > self.window.ssthresh
        {
            self.window.cwnd = self.window.ssthresh;
        }
        if !self.switches.recovering {
            self.dupacks = 0;
        }
        if ack == self.snd_max {
            self.timers.stop(Timer::Retransmit);
        } else if !self.timers.runs(Timer::Persist) {
            self.start_retransmit();
        }
        // The SYN is no octet that a window could have let out.
        if !was_recovering && !of_syn {
            let most = match self.config.loss_basis {
                LossBasis::Windows => self.most_window(self.snd_scale),
                LossBasis::Flight => 1 << 30,
            };
            let round_trip = self.rtt.smoothed(&self.config);
            let acked = Acked { now: self.now, octets: acked, mss, flight, most, round_trip };
            self.window.on_ack(&self.config, acked);
        }
        self.snd_wnd = self.snd_wnd.saturating_sub(acked);
        // What lies far behind is dragged along, so that it never seems to lie ahead.
        let una = self.snd_una;
        self.recover = Near::new(self.recover.to(una).max(ack - 1));
        self.marked = Near::new(self.marked.to(una).max(ack - 1));
        self.snd_sml = Near::new(self.snd_sml.to(una).max(ack));
        self.snd_up = Near::new(self.snd_up.to(una).max(ack));
        self.high_rxt = Near::new(self.high_rxt.to(una).max(ack));
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        if !self.sacked.is_empty() {
            self.sacked.forget_before(ack);
            self.sacked.relax();
        }
        self.wake_writer();
        self.want_pass();
        if self.switches.sent_fin && ack > self.snd_end {
            self.fin_is_acknowledged();
        }
    }

    /// RFC 3168 §6.1.2: a mark is to the window what a loss is, at most once for what was in flight.
    fn handle_mark(&mut self, ack: Place) {
        if self.switches.recovering || ack <= self.marked.to(self.snd_una) {
            return;
        }
        self.counters.marks += 1;
        let flight = (self.snd_max - self.snd_una) as u32;
        let mss = self.segment_octets();
        self.window.on_loss(&self.config, self.snd_wnd, flight, mss);
        self.window.cwnd = self.window.ssthresh;
        self.marked = Near::new(self.snd_max);
        self.switches.tell_reduced = true;
    }

    fn handle_ack_in_recovery(&mut self, ack: Place, acked: u32, mss: u32) {
        if ack >= self.recover.to(self.snd_una) {
            self.switches.recovering = false;
            let ssthresh = self.window.ssthresh;
            self.window.cwnd = if self.switches.sack {
                ssthresh
            } else {
                // RFC 6582 §3.2 (3), first way: no burst out of what little is in flight.
                let flight = (self.snd_max - ack) as u32;
                ssthresh.min(flight.max(mss) + mss)
            };
        } else if !self.switches.sack {
            // A partial acknowledgment: the next hole, and as much new as has left.
            self.switches.resend_first = true;
            let back = if acked >= mss { mss } else { 0 };
            self.window.cwnd = self.window.cwnd.saturating_sub(acked).max(mss).saturating_add(back);
        }
    }

    /// Takes the time of the segment that was timed, if `ack` covers it.
    pub(super) fn measure(&mut self, ack: Place) {
        if core::mem::take(&mut self.switches.timing) && ack > self.rtt_seq.to(self.snd_una) {
            let measured = self.config.elapsed(self.rtt_at, self.now);
            self.rtt.sample(&self.config, measured);
        }
    }

    fn wake_writer(&mut self) {
        let room = self.config.buffers.send_low.lets_on(self.send_space(), self.snd_hiwat);
        if self.switches.writer_waits && room {
            self.switches.writer_waits = false;
            self.pend().writable = true;
            self.work(WorkKind::Wakeup, 0, 1);
        }
    }

    fn fin_is_acknowledged(&mut self) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.switches.detached {
                    self.start_two_msl(self.config.fin_wait_2);
                }
            }
            State::Closing => self.wait_out(),
            State::LastAck => self.end(Reason::Finished),
            _ => {}
        }
    }
}
