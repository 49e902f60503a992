//! What runs out (`tcp_timers`, `tcp_fasttimo`; RFC 6298 §5).

use wiretwin_units::{SimTime, Span};

use super::config::Clock;
use super::endpoint::Endpoint;
use super::event::Reason;
use super::state::State;
use super::timers::Timer;
use crate::WorkKind;

impl Endpoint {
    /// Lets time pass: does what timers ask for that have run out by `now`.
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.clock(now);
        for timer in Timer::ALL {
            if self.timers.take_expired(timer, now) {
                self.work(WorkKind::TimerExpiry, 0, 1);
                match timer {
                    Timer::DelayedAck => self.ack_at_once(),
                    Timer::Retransmit => self.retransmit(),
                    Timer::Persist => self.probe_window(),
                    Timer::Keep => self.probe_peer(),
                    Timer::TwoMsl => self.wait_is_over(),
                }
            }
        }
    }

    /// The network says that there is no way to the peer (ICMP destination unreachable). The
    /// connection goes on trying (RFC 1122 §4.2.3.9), and says so if it gives up.
    pub fn handle_unreachable(&mut self, now: SimTime) {
        self.clock(now);
        self.switches.unreachable = !matches!(self.state, State::Closed | State::Listen);
    }

    pub(super) fn ack_at_once(&mut self) {
        self.switches.ack_delayed = false;
        self.switches.ack_now = true;
        self.want_pass();
    }

    fn retransmit(&mut self) {
        if !self.rtt.back_off(&self.config) {
            let unreachable = self.switches.unreachable;
            let reason = if unreachable { Reason::Unreachable } else { Reason::TimedOut(Timer::Retransmit) };
            return self.drop_connection(reason);
        }
        self.counters.timeouts += 1;
        self.start_retransmit();
        let mss = self.segment_octets();
        let flight = (self.snd_max - self.snd_una) as u32;
        if self.state.is_synchronized() {
            let again = self.switches.timed_out;
            self.window.on_timeout(&self.config, self.snd_wnd, flight, mss, again);
        } else {
            self.switches.syn_again = true;
        }
        self.snd_nxt = self.snd_una;
        self.switches.timing = false;
        self.switches.timed_out = true;
        self.switches.recovering = false;
        self.switches.resend_first = false;
        self.recover = crate::ranges::Near::new(self.snd_max);
        self.dupacks = 0;
        // RFC 2018 §8: the receiver may have dropped what it had said to hold.
        self.sacked.clear();
        self.sacked.relax();
        self.want_pass();
    }

    fn probe_window(&mut self) {
        // A peer that answers probes may keep its window closed for ever; one that is silent may not
        // (RFC 1122 §4.2.2.17).
        let silence = self.config.elapsed(self.last_received, self.now);
        if self.rtt.shift() >= self.config.rto.most && silence >= self.persist_limit() {
            return self.drop_connection(Reason::TimedOut(Timer::Persist));
        }
        self.set_persist();
        self.switches.force = true;
        self.want_pass();
    }

    /// How long a silent peer is probed: as long as it would be retransmitted to, and no longer than
    /// the limit.
    fn persist_limit(&self) -> Span {
        let most = u32::from(self.config.rto.most);
        let doublings = u32::from(self.config.rto.doublings).min(most);
        let back_offs = (1_u64 << (doublings + 1)) - 1 + u64::from(most - doublings) * (1 << doublings);
        let all = self.config.rto.min.as_ps().saturating_mul(back_offs);
        Span::from_ps(all).min(self.config.persist_limit)
    }

    fn probe_peer(&mut self) {
        if !self.state.is_synchronized() {
            return self.drop_connection(Reason::TimedOut(Timer::Keep));
        }
        if !self.switches.keep_alive || self.state > State::CloseWait {
            return;
        }
        if self.probes >= self.config.keep_alive.probes {
            return self.drop_connection(Reason::TimedOut(Timer::Keep));
        }
        self.probes += 1;
        // RFC 1122 §4.2.3.6: a number that is acknowledged already brings an answer from a peer that
        // is there.
        self.switches.keep_probe = true;
        self.want_pass();
        self.set_keep(self.config.keep_alive.interval);
    }

    pub(super) fn set_keep(&mut self, span: Span) {
        self.timers.set(Timer::Keep, self.config.deadline(self.now, span));
    }

    fn wait_is_over(&mut self) {
        if self.state == State::TimeWait {
            return self.end(Reason::Finished);
        }
        // FIN-WAIT-2, and the user has left: as long as the peer says something, it may say more.
        let silence = self.config.elapsed(self.last_received, self.now);
        let least = self.least_silence();
        if silence >= least {
            self.end(Reason::TimedOut(Timer::TwoMsl));
        } else {
            self.start_two_msl(self.config.keep_alive.interval.min(self.config.fin_wait_2));
        }
    }

    /// A silence this long ends FIN-WAIT-2. On a clock of ticks, the one that has just begun does not
    /// count.
    fn least_silence(&self) -> Span {
        let tick = match self.config.clock {
            Clock::Ticks { slow, .. } => slow,
            Clock::Fine => Span::ZERO,
        };
        self.config.fin_wait_2.saturating_sub(tick)
    }
}
