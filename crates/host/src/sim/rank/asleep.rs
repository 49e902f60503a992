//! Threads of a rank that sleep or wait outside the library, in virtual time.

use super::work::processor_ns;
use super::{Ask, AskKind, Phase, Rank, UNANSWERED};

impl Rank {
    /// Lets this thread sleep: whether the rank has virtual time. It has slept when [`Rank::has_slept`] says so.
    pub fn sleep(&mut self, span_ps: u64) -> bool {
        if self.callers.me().is_inside || self.phase == Phase::Outside {
            return false;
        }
        self.compute(processor_ns(), 0);
        self.callers.me().sleeps_until_ps = Some(self.clock_ps + span_ps);
        self.looks = 0;
        true
    }

    /// This thread waits outside the library, for so long at most; or has done so, where that is no time.
    pub fn wait_outside(&mut self, span_ps: u64) {
        let until_ps = self.clock_ps + span_ps;
        self.callers.me().sleeps_until_ps = (span_ps > 0).then_some(until_ps);
    }

    /// Whether this thread has slept. Where no other can go on, time passes until the first that sleeps has.
    pub fn has_slept(&mut self) -> bool {
        let Some(until_ps) = self.callers.me().sleeps_until_ps else { return true };
        if until_ps > self.clock_ps {
            if self.callers.first_sleeps_until_ps() < Some(until_ps) || self.others_go_on() {
                return false;
            }
            self.owed_ps += until_ps - self.clock_ps;
            self.clock_ps = until_ps;
        }
        self.callers.me().sleeps_until_ps = None;
        self.unanswered = UNANSWERED;
        // What has come for those that wait meanwhile; else others do first what they do outside the library by then.
        let kind = if self.callers.is_inside() { AskKind::Look } else { AskKind::Now };
        self.pay();
        self.ask(Ask::new(kind));
        self.hand_over();
        self.go_on();
        true
    }
}
