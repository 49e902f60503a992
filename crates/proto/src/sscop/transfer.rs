//! State 10, Data Transfer Ready: SD, POLL, STAT and USTAT, and the timers that run there.

use wiretwin_units::Seq;

use super::config::Faults;
use super::endpoint::Machine;
use super::event::{Delivered, ManagementError, Source};
use super::pdu::Pdu;
use super::receiver::Sd;
use super::sender::{Missing, StatError};
use super::state::State;
use super::timers::Timer;
use crate::{Output, Payload, Work, WorkKind};

impl<const BITS: u32> Machine<BITS> {
    // Sending

    /// Sends one SD, or the POLL that a closed window asks for; false where there is nothing to do.
    #[inline]
    pub(super) fn send_opportunity(&mut self) -> bool {
        let poll = if let Some((number, payload)) = self.sender.next_wanted() {
            self.counters.sd_retransmitted += 1;
            self.send_sd(number, payload);
            self.config.poll_after_retransmission && !self.sender.has_wanted()
        } else if self.sender.waiting() == 0 {
            return false;
        } else if self.sender.is_open()
            && let Some((number, payload)) = self.sender.next_new()
        {
            self.send_sd(number, payload);
            false
        } else if self.timers.runs(Timer::Idle) {
            // The peer may have opened the window, and nothing would tell.
            self.timers.stop(Timer::Idle);
            self.start(Timer::NoResponse);
            self.send_poll();
            self.start(Timer::Poll);
            return true;
        } else {
            return false;
        };
        self.count_towards_poll(poll);
        true
    }

    fn send_sd(&mut self, s: Seq<BITS>, payload: Payload) {
        self.counters.sd_sent += 1;
        self.transmit(Pdu::Sd { s, payload });
    }

    fn count_towards_poll(&mut self, poll: bool) {
        self.sender.vt_pd += 1;
        let poll = poll || self.sender.vt_pd >= self.config.max_pd;
        if !self.timers.runs(Timer::Poll) {
            if self.timers.runs(Timer::Idle) {
                self.timers.stop(Timer::Idle);
                self.start(Timer::NoResponse);
            } else {
                self.timers.stop(Timer::KeepAlive);
            }
            self.start(Timer::Poll);
        }
        if poll {
            self.send_poll();
            self.start(Timer::Poll);
        }
    }

    fn send_poll(&mut self) {
        self.counters.polls += 1;
        let ps = self.sender.next_poll();
        self.transmit(Pdu::Poll { ps, s: self.sender.vt_s });
    }

    /// A timer has run out.
    pub(super) fn expire(&mut self, timer: Timer) {
        if self.config.work {
            let bytes = wiretwin_units::Bytes::new(0);
            self.outputs.push_back(Output::Work(Work { kind: WorkKind::TimerExpiry, bytes, count: 1 }));
        }
        match timer {
            Timer::Cc => self.expire_cc(),
            Timer::NoResponse => {
                self.stop_data_timers();
                self.error(ManagementError::NoResponse);
                self.send_end(true);
                self.release_indication(Source::Sscop, None);
                self.prepare_retrieval();
                self.state = State::Idle;
            }
            Timer::Poll | Timer::KeepAlive | Timer::Idle => {
                if timer == Timer::Idle {
                    self.start(Timer::NoResponse);
                }
                self.send_poll();
                // `Set POLL timer`
                let quiet = self.sender.waiting() == 0 && self.sender.unacknowledged() == 0;
                self.start(if quiet { Timer::KeepAlive } else { Timer::Poll });
            }
        }
    }

    // Receiving

    #[inline]
    pub(super) fn handle_sd(&mut self, n: Seq<BITS>, payload: Payload) {
        self.counters.sd_received += 1;
        match self.receiver.sd(n, payload) {
            Sd::Next => {
                while let Some((number, payload)) = self.receiver.next() {
                    self.outputs.push_back(Output::Deliver(Delivered::Data { payload, number }));
                }
                self.move_window();
            }
            Sd::Kept => {}
            Sd::Gap(first, end) => self.send_ustat(first, end),
            Sd::Beyond(gap) => {
                self.counters.sd_discarded += 1;
                if let Some((first, end)) = gap {
                    self.send_ustat(first, end);
                }
            }
            Sd::Again => {
                self.counters.sd_discarded += 1;
                self.wrong(ManagementError::SdOrPollNumber);
            }
        }
    }

    fn send_ustat(&mut self, first: Seq<BITS>, end: Seq<BITS>) {
        self.transmit(Pdu::Ustat { first, end, mr: self.receiver.vr_mr, r: self.receiver.vr_r });
    }

    pub(super) fn handle_poll(&mut self, ps: Seq<BITS>, s: Seq<BITS>) {
        if self.receiver.is_below_highest(s) {
            return self.wrong(ManagementError::SdOrPollNumber);
        }
        self.receiver.polled(s);
        let (mr, r) = (self.receiver.vr_mr, self.receiver.vr_r);
        if self.receiver.vr_h == r {
            return self.transmit(Pdu::Stat { ps, mr, r, list: alloc::vec::Vec::new() });
        }
        let mut lists = alloc::vec::Vec::new();
        self.receiver.lists(self.config.max_stat as usize, |list| lists.push(list));
        for list in lists {
            self.transmit(Pdu::Stat { ps, mr, r, list });
        }
    }

    pub(super) fn handle_stat(&mut self, ps: Seq<BITS>, mr: Seq<BITS>, r: Seq<BITS>, list: &[Seq<BITS>]) {
        let missing = match self.config.faults {
            Faults::Recovered => Missing::IsError,
            Faults::Ignored if !self.sender.accepts(Some(ps), r, list) => {
                self.counters.ignored += 1;
                return;
            }
            Faults::Ignored => Missing::IsSkipped,
        };
        let mr = self.window_edge(mr);
        match self.sender.stat(ps, r, mr, list, missing, self.config.clear_buffers) {
            Ok(Some(count)) => self.error(ManagementError::Retransmitted(count)),
            Ok(None) => {}
            Err(StatError::Poll) => return self.wrong(ManagementError::StatPollNumber),
            Err(StatError::List) => return self.wrong(ManagementError::StatList),
        }
        if !self.sender.is_open() {
            if self.credit {
                self.credit = false;
                self.error(ManagementError::NoCredit);
            }
        } else if !self.credit {
            self.credit = true;
            self.error(ManagementError::Credit);
        }
        if self.timers.runs(Timer::Poll) {
            self.start(Timer::NoResponse);
        } else if !self.timers.runs(Timer::Idle) {
            self.timers.stop(Timer::KeepAlive);
            self.timers.stop(Timer::NoResponse);
            self.start(Timer::Idle);
        }
    }

    pub(super) fn handle_ustat(&mut self, gap: (Seq<BITS>, Seq<BITS>), mr: Seq<BITS>, r: Seq<BITS>) {
        let missing = match self.config.faults {
            Faults::Recovered => Missing::IsError,
            Faults::Ignored if !self.sender.accepts(None, r, &[gap.0, gap.1]) => {
                self.counters.ignored += 1;
                return;
            }
            Faults::Ignored => Missing::IsSkipped,
        };
        let mr = self.window_edge(mr);
        match self.sender.ustat(gap, r, mr, missing) {
            Ok(count) => self.error(ManagementError::Retransmitted(count)),
            Err(_) => self.wrong(ManagementError::UstatList),
        }
    }

    /// N(MR), and where PDUs may overtake each other no edge before one that was told.
    fn window_edge(&self, mr: Seq<BITS>) -> Seq<BITS> {
        let old = self.sender.vt_ms;
        if self.config.faults == Faults::Ignored && mr.precedes(old) { old } else { mr }
    }

    /// A number that cannot be: a recovery, or nothing.
    fn wrong(&mut self, error: ManagementError) {
        if self.config.faults == Faults::Ignored {
            self.counters.ignored += 1;
            return;
        }
        self.stop_data_timers();
        self.error(error);
        self.counters.recoveries += 1;
        self.vt_cc = 1;
        self.vt_sq = self.vt_sq.next();
        self.initialize_mr();
        self.send_er();
        self.prepare_recovery();
        self.start(Timer::Cc);
        self.state = State::OutgoingRecoveryPending;
    }
}
