//! A host's processor: one thing at a time, interrupts before processes.
//!
//! A *thread* is a context that has work for it: a process, or the handler of an interrupt. Its work is a
//! queue of [`Step`]s: time to be charged, and actions that are done once all before them is paid. An
//! interrupt takes the processor from a process at once and gives it back when it has nothing left; what
//! the process had begun goes on where it was. Interrupts do not interrupt each other. A process that wakes
//! takes the processor from one that computes, as one that slept in the kernel comes first in 4.3BSD; else
//! processes take turns as they came.

use std::collections::VecDeque;

use wiretwin_units::{SimTime, Span};

use super::activity::Activity;
use super::trail::{SegmentId, Trail};

/// Who has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Interrupt,
    Process,
}

/// One thing a thread does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<A> {
    /// It keeps the processor for this long.
    Charge(Activity, Span),
    /// It does this, which takes no time.
    Do(A),
    /// What follows could not begin before this had ended.
    After(SegmentId),
    /// From here on interrupts wait until it is done with them waiting (`splnet`), or do not any more.
    Mask(bool),
}

/// The number of a thread on its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadId(pub(crate) u16);

/// What the processor does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<A> {
    /// The thread asks for this action; ask again when it is done.
    Act(ThreadId, A),
    /// Nothing until this instant; then call [`Cpu::finish`] with this number.
    Busy(SimTime, u32),
    /// Nothing at all.
    Idle,
}

struct Thread<A> {
    level: Level,
    steps: VecDeque<Step<A>>,
    ready: bool,
    /// Interrupts wait.
    masked: bool,
    /// It sleeps in the middle of its steps.
    blocked: bool,
    /// What its next step comes after.
    trail: SegmentId,
}

/// The processor.
pub(crate) struct Cpu<A> {
    place: u16,
    threads: Vec<Thread<A>>,
    running: Option<ThreadId>,
    /// When the charge that runs began; `None` between charges.
    since: Option<SimTime>,
    /// The number of the charge that runs: an event of an earlier one is void.
    number: u32,
    interrupts: VecDeque<ThreadId>,
    processes: VecDeque<ThreadId>,
    busy: Span,
}

impl<A: Copy> Cpu<A> {
    /// The processor of host number `place`.
    pub(crate) const fn new(place: u16) -> Self {
        Self {
            place,
            threads: Vec::new(),
            running: None,
            since: None,
            number: 0,
            interrupts: VecDeque::new(),
            processes: VecDeque::new(),
            busy: Span::ZERO,
        }
    }

    /// A new thread, with nothing to do.
    pub(crate) fn thread(&mut self, level: Level) -> ThreadId {
        let id = ThreadId(u16::try_from(self.threads.len()).expect("a host has fewer than 2^16 threads"));
        self.threads.push(Thread {
            level,
            steps: VecDeque::new(),
            ready: false,
            masked: false,
            blocked: false,
            trail: SegmentId::NONE,
        });
        id
    }

    /// How long it has been busy.
    pub(crate) const fn busy(&self) -> Span {
        self.busy
    }

    /// Gives a thread a step behind those that it has.
    pub(crate) fn append(&mut self, thread: ThreadId, step: Step<A>) {
        self.of(thread).steps.push_back(step);
    }

    /// Gives a thread steps before those that it has, `steps` in their order.
    pub(crate) fn prepend(&mut self, thread: ThreadId, steps: &[Step<A>]) {
        for step in steps.iter().rev() {
            self.of(thread).steps.push_front(*step);
        }
    }

    /// What a thread's next step comes after.
    pub(crate) fn trail(&self, thread: ThreadId) -> SegmentId {
        self.threads[thread.0 as usize].trail
    }

    /// Says what a thread's next step comes after.
    pub(crate) fn set_trail(&mut self, thread: ThreadId, trail: SegmentId) {
        self.of(thread).trail = trail;
    }

    /// Makes a thread ready, if it is not; an interrupt takes the processor from a process.
    pub(crate) fn wake(&mut self, thread: ThreadId, now: SimTime, trail: &mut Trail) {
        if self.of(thread).blocked || core::mem::replace(&mut self.of(thread).ready, true) {
            return;
        }
        let computes = self.computes();
        match self.of(thread).level {
            Level::Process if computes => {
                self.preempt(now, trail);
                self.processes.push_front(thread);
            }
            Level::Process => self.processes.push_back(thread),
            Level::Interrupt => {
                self.interrupts.push_back(thread);
                self.preempt(now, trail);
            }
        }
    }

    /// Whether a process does its program's own work.
    fn computes(&self) -> bool {
        self.since.is_some()
            && self.running.is_some_and(|running| {
                let thread = &self.threads[running.0 as usize];
                matches!(thread.steps.front(), Some(Step::Charge(Activity::Compute, _)))
            })
    }

    /// A thread that runs sleeps from here on, whatever it has left to do.
    pub(crate) fn block(&mut self, thread: ThreadId) {
        self.of(thread).blocked = true;
    }

    /// It sleeps no more.
    pub(crate) fn unblock(&mut self, thread: ThreadId, now: SimTime, trail: &mut Trail) {
        self.of(thread).blocked = false;
        self.wake(thread, now, trail);
    }

    /// Takes the processor from a process in the middle of a charge, and shortens the charge.
    fn preempt(&mut self, now: SimTime, trail: &mut Trail) {
        let Some(running) = self.running else { return };
        if self.of(running).level == Level::Interrupt || self.of(running).masked {
            return;
        }
        if let Some(since) = self.since.take() {
            let spent = now - since;
            let place = self.place;
            let thread = self.of(running);
            if let Some(Step::Charge(activity, span)) = thread.steps.front_mut() {
                *span -= spent;
                let activity = *activity;
                if spent > Span::ZERO {
                    thread.trail = trail.push(thread.trail, activity, place, since, now);
                }
            }
            self.busy += spent;
            self.number = self.number.wrapping_add(1);
        }
        self.processes.push_front(running);
        self.running = None;
    }

    /// The charge of this number has run its time; `false` if it was interrupted since.
    pub(crate) fn finish(&mut self, number: u32, now: SimTime, trail: &mut Trail) -> bool {
        if number != self.number {
            return false;
        }
        let (Some(running), Some(since)) = (self.running, self.since.take()) else { return false };
        let place = self.place;
        let thread = self.of(running);
        if let Some(Step::Charge(activity, _)) = thread.steps.pop_front() {
            thread.trail = trail.push(thread.trail, activity, place, since, now);
        }
        self.busy += now - since;
        true
    }

    /// What to do now.
    pub(crate) fn next(&mut self, now: SimTime, trail: &Trail) -> Next<A> {
        if self.since.is_some() {
            // Asked again in the middle of a charge: its event is under way.
            return Next::Idle;
        }
        loop {
            if self.running.is_none() {
                self.running = self.interrupts.pop_front().or_else(|| self.processes.pop_front());
            }
            let Some(running) = self.running else { return Next::Idle };
            let thread = &mut self.threads[running.0 as usize];
            if thread.blocked {
                thread.ready = false;
                self.running = None;
                continue;
            }
            match thread.steps.front().copied() {
                None => {
                    thread.ready = false;
                    self.running = None;
                }
                Some(Step::After(cause)) => {
                    thread.steps.pop_front();
                    thread.trail = trail.later(thread.trail, cause);
                }
                Some(Step::Mask(masked)) => {
                    thread.steps.pop_front();
                    thread.masked = masked;
                    if !masked && thread.level == Level::Process && !self.interrupts.is_empty() {
                        self.processes.push_front(running);
                        self.running = None;
                    }
                }
                Some(Step::Do(action)) => {
                    thread.steps.pop_front();
                    return Next::Act(running, action);
                }
                Some(Step::Charge(_, Span::ZERO)) => {
                    thread.steps.pop_front();
                }
                Some(Step::Charge(_, span)) => {
                    self.since = Some(now);
                    self.number = self.number.wrapping_add(1);
                    return Next::Busy(now + span, self.number);
                }
            }
        }
    }

    fn of(&mut self, thread: ThreadId) -> &mut Thread<A> {
        &mut self.threads[thread.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    fn span(ps: u64) -> Span {
        Span::from_ps(ps)
    }

    /// Runs until nothing is left or `until`, and returns what was done when.
    fn run(
        cpu: &mut Cpu<u32>,
        trail: &mut Trail,
        start: u64,
        raise: Option<(u64, ThreadId)>,
    ) -> Vec<(u64, u32)> {
        let (mut now, mut raise, mut done) = (start, raise, Vec::new());
        loop {
            match cpu.next(at(now), trail) {
                Next::Act(_, action) => done.push((now, action)),
                Next::Idle => return done,
                Next::Busy(end, number) => match raise.take() {
                    Some((when, thread)) if when < end.as_ps() => {
                        let preempts =
                            cpu.threads[cpu.running.expect("it is busy").0 as usize].level == Level::Process;
                        cpu.wake(thread, at(when), trail);
                        assert_eq!(
                            cpu.finish(number, end, trail),
                            !preempts,
                            "the event of a process is void"
                        );
                        now = if preempts { when } else { end.as_ps() };
                    }
                    other => {
                        raise = other;
                        now = end.as_ps();
                        assert!(cpu.finish(number, end, trail));
                    }
                },
            }
        }
    }

    #[test]
    fn an_action_comes_once_all_before_it_is_paid() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let process = cpu.thread(Level::Process);
        cpu.append(process, Step::Charge(Activity::Trap, span(10)));
        cpu.append(process, Step::Do(1));
        cpu.append(process, Step::Charge(Activity::CopyIn, span(5)));
        cpu.append(process, Step::Do(2));
        cpu.wake(process, at(0), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 0, None), [(10, 1), (15, 2)]);
        assert_eq!(cpu.busy(), span(15));
    }

    #[test]
    fn an_interrupt_goes_first_and_the_process_goes_on_where_it_was() {
        let (mut cpu, mut trail) = (Cpu::new(3), Trail::new(true));
        let (process, handler) = (cpu.thread(Level::Process), cpu.thread(Level::Interrupt));
        let root = trail.begin(1, at(0), 3);
        cpu.append(process, Step::After(root));
        cpu.append(process, Step::Charge(Activity::CopyIn, span(100)));
        cpu.append(process, Step::Do(1));
        cpu.append(handler, Step::Charge(Activity::Interrupt, span(30)));
        cpu.append(handler, Step::Do(2));
        cpu.wake(process, at(0), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 0, Some((40, handler))), [(70, 2), (130, 1)]);
        let path = trail.path(cpu.trail(process), at(0), at(130));
        let shown: Vec<_> = path
            .iter()
            .map(|part| (part.waited.as_ps(), part.segment.start.as_ps(), part.segment.end.as_ps()))
            .collect();
        assert_eq!(shown, [(0, 0, 0), (0, 0, 40), (30, 70, 130)], "the interrupt is waiting to the process");
        assert_eq!(cpu.busy(), span(130));
    }

    #[test]
    fn a_process_that_masks_interrupts_is_not_interrupted_until_it_is_done() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (process, handler) = (cpu.thread(Level::Process), cpu.thread(Level::Interrupt));
        let charge = Step::Charge(Activity::SegmentOut, span(10));
        for step in [Step::Mask(true), charge, charge, Step::Do(1), Step::Mask(false), charge, Step::Do(2)] {
            cpu.append(process, step);
        }
        cpu.append(handler, Step::Charge(Activity::Interrupt, span(30)));
        cpu.append(handler, Step::Do(3));
        cpu.wake(process, at(0), &mut trail);
        let Next::Busy(_, number) = cpu.next(at(0), &trail) else { panic!("it is busy") };
        cpu.wake(handler, at(4), &mut trail);
        assert!(cpu.finish(number, at(10), &mut trail), "it was not interrupted");
        assert_eq!(run(&mut cpu, &mut trail, 10, None), [(20, 1), (50, 3), (60, 2)]);
    }

    #[test]
    fn a_thread_that_sleeps_keeps_its_steps_for_later() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (one, other) = (cpu.thread(Level::Process), cpu.thread(Level::Process));
        for step in [Step::Do(1), Step::Charge(Activity::CopyIn, span(10)), Step::Do(2)] {
            cpu.append(one, step);
        }
        cpu.append(other, Step::Do(3));
        cpu.wake(one, at(0), &mut trail);
        cpu.wake(other, at(0), &mut trail);
        assert!(matches!(cpu.next(at(0), &trail), Next::Act(_, 1)));
        cpu.block(one);
        cpu.wake(one, at(0), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 0, None), [(0, 3)]);
        cpu.unblock(one, at(5), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 5, None), [(15, 2)]);
    }

    #[test]
    fn interrupts_wait_for_each_other_and_steps_may_be_put_in_front() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (first, second) = (cpu.thread(Level::Interrupt), cpu.thread(Level::Interrupt));
        cpu.append(first, Step::Do(9));
        cpu.prepend(first, &[Step::Charge(Activity::Interrupt, span(10)), Step::Do(8)]);
        cpu.append(second, Step::Do(7));
        cpu.wake(first, at(0), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 0, Some((4, second))), [(10, 8), (10, 9), (10, 7)]);
    }
}
