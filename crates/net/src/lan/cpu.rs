//! A host's processor: one thing at a time, interrupts before processes.
//!
//! A *thread* is a context that has work for it: a process, or the handler of an interrupt. Its work is a
//! queue of [`Step`]s: time to be charged, and actions that are done once all before them is paid. An
//! interrupt takes the processor from a process at once and gives it back when it has nothing left; what
//! the process had begun goes on where it was. Interrupts do not interrupt each other.
//!
//! Processes share it as in 4.3BSD (S. Leffler and others 1989, chapter 4.4). One that wakes in the kernel takes
//! it from one that computes, and comes before all that compute, whether or not an interrupt has just taken it
//! from them. A process in the kernel gives it up when it sleeps or returns to its program. Of those that compute,
//! or have returned, the one goes on that has used the least: counted in steps of [`STEP`], and a third of it
//! forgotten each second. So one that has always something to read does not starve one that computes. Else
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// It has returned to its program, and has not run since.
    returned: bool,
    /// The time that it has had, less what is forgotten, as of this second.
    used: Span,
    second: u64,
    /// What its next step comes after.
    trail: SegmentId,
}

/// What a queue keeps room for in any case.
const ROOM: usize = 64;

/// Gives memory back of what was a long queue.
pub(super) fn relax<T>(queue: &mut VecDeque<T>) {
    let capacity = queue.capacity();
    if capacity > ROOM && queue.len() < capacity / 4 {
        queue.shrink_to(capacity / 2);
    }
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
            returned: false,
            used: Span::ZERO,
            second: 0,
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
        match self.of(thread).level {
            Level::Process => {
                if self.since.is_some()
                    && let Some(running) = self.running.filter(|&running| self.computes(running))
                    && self.claim(thread, now) < self.claim(running, now)
                {
                    self.preempt(now, trail);
                }
                self.processes.push_back(thread);
            }
            Level::Interrupt => {
                self.interrupts.push_back(thread);
                self.preempt(now, trail);
            }
        }
    }

    /// A process is back in its program: what it does next counts as begun there.
    pub(crate) fn returned(&mut self, thread: ThreadId) {
        self.of(thread).returned = true;
    }

    /// It has slept since.
    pub(crate) fn slept(&mut self, thread: ThreadId) {
        self.of(thread).returned = false;
    }

    /// Whether what a thread does next is its program's own work.
    fn computes(&self, thread: ThreadId) -> bool {
        let thread = &self.threads[thread.0 as usize];
        matches!(thread.steps.front(), Some(Step::Charge(Activity::Compute, _)))
    }

    /// Who goes first of processes: the least. Nothing for those in the kernel, else a step for each [`STEP`]
    /// that it has used, and the first one.
    fn claim(&self, thread: ThreadId, now: SimTime) -> u64 {
        let of = &self.threads[thread.0 as usize];
        if !of.returned && !self.computes(thread) {
            return 0;
        }
        1 + of.used_by(now).as_ps() / STEP.as_ps()
    }

    /// Takes the process that goes first, of several the one that came first.
    fn elect(&mut self, now: SimTime) -> Option<ThreadId> {
        let place = match self.processes.len() {
            0 | 1 => 0,
            count => (0..count).min_by_key(|&place| self.claim(self.processes[place], now))?,
        };
        let thread = self.processes.remove(place)?;
        self.of(thread).returned = false;
        Some(thread)
    }

    /// How long a process may compute before it is looked at again who goes first; `None` where another does.
    fn turn(&self, thread: ThreadId, now: SimTime) -> Option<Span> {
        let first = self.processes.iter().map(|&other| self.claim(other, now)).min();
        match first {
            None => Some(Span::MAX),
            Some(first) if first < self.claim(thread, now) => None,
            Some(_) => {
                let used = self.threads[thread.0 as usize].used_by(now).as_ps();
                Some(STEP - Span::from_ps(used % STEP.as_ps()))
            }
        }
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
            self.spend(running, since, now, trail);
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
        self.spend(running, since, now, trail);
        true
    }

    /// Part of a thread's charge is paid, or all of it, which ends it.
    fn spend(&mut self, thread: ThreadId, since: SimTime, now: SimTime, trail: &mut Trail) {
        let (spent, place) = (now - since, self.place);
        self.busy += spent;
        let thread = self.of(thread);
        (thread.used, thread.second) = (thread.used_by(now) + spent, second_of(now));
        let Some(Step::Charge(activity, left)) = thread.steps.front_mut() else { return };
        *left -= spent;
        let (activity, over) = (*activity, *left == Span::ZERO);
        if over {
            thread.steps.pop_front();
        }
        if spent > Span::ZERO {
            thread.trail = trail.push(thread.trail, activity, place, since, now);
        }
    }

    /// What to do now.
    pub(crate) fn next(&mut self, now: SimTime, trail: &Trail) -> Next<A> {
        if self.since.is_some() {
            // Asked again in the middle of a charge: its event is under way.
            return Next::Idle;
        }
        loop {
            if self.running.is_none() {
                self.running = self.interrupts.pop_front().or_else(|| self.elect(now));
            }
            let Some(running) = self.running else { return Next::Idle };
            if self.threads[running.0 as usize].returned {
                // It has gone on without a pause: others may have used less.
                if self.turn(running, now).is_none() {
                    self.processes.push_back(running);
                    self.running = None;
                    continue;
                }
                self.of(running).returned = false;
            }
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
                    relax(&mut thread.steps);
                    return Next::Act(running, action);
                }
                Some(Step::Charge(_, Span::ZERO)) => {
                    thread.steps.pop_front();
                }
                Some(Step::Charge(activity, mut span)) => {
                    if activity == Activity::Compute && thread.level == Level::Process {
                        let Some(turn) = self.turn(running, now) else {
                            self.processes.push_back(running);
                            self.running = None;
                            continue;
                        };
                        span = span.min(turn);
                    }
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

impl<A> Thread<A> {
    /// The time that it has had, less what is forgotten by now.
    fn used_by(&self, now: SimTime) -> Span {
        // After so long nothing is left that counts.
        let seconds = (second_of(now) - self.second).min(64);
        (0..seconds).fold(self.used, |used, _| used * 2 / 3)
    }
}

const fn second_of(time: SimTime) -> u64 {
    time.as_ps() / 1_000_000_000_000
}

/// Four ticks of 10 ms: what makes a priority of 4.3BSD worse by one.
const STEP: Span = Span::from_ms(40);

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

    /// Runs until this time: who had the processor, when, for how long, charge by charge.
    fn shares(
        cpu: &mut Cpu<u32>,
        trail: &mut Trail,
        until: u64,
        mut did: impl FnMut(&mut Cpu<u32>, u64, u32),
    ) {
        let mut now = 0;
        while now < until {
            match cpu.next(at(now), trail) {
                Next::Act(_, action) => did(cpu, now, action),
                Next::Idle => return,
                Next::Busy(end, number) => {
                    now = end.as_ps();
                    assert!(cpu.finish(number, end, trail));
                }
            }
        }
    }

    #[test]
    fn who_is_woken_by_an_interrupt_goes_before_one_that_computes() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (process, reader) = (cpu.thread(Level::Process), cpu.thread(Level::Process));
        let handler = cpu.thread(Level::Interrupt);
        cpu.append(process, Step::Charge(Activity::Compute, span(1000)));
        cpu.append(process, Step::Do(1));
        cpu.append(handler, Step::Charge(Activity::Interrupt, span(30)));
        cpu.append(handler, Step::Do(2));
        cpu.wake(process, at(0), &mut trail);
        let Next::Busy(..) = cpu.next(at(0), &trail) else { panic!("it computes") };
        cpu.wake(handler, at(40), &mut trail);
        let Next::Busy(_, number) = cpu.next(at(40), &trail) else { panic!("it handles") };
        assert!(cpu.finish(number, at(70), &mut trail));
        assert!(matches!(cpu.next(at(70), &trail), Next::Act(_, 2)));
        // The handler wakes a reader while the one that computed waits to go on.
        cpu.append(reader, Step::Charge(Activity::SocketReceive, span(5)));
        cpu.append(reader, Step::Do(3));
        cpu.wake(reader, at(70), &mut trail);
        assert_eq!(run(&mut cpu, &mut trail, 70, None), [(75, 3), (1035, 1)]);
    }

    #[test]
    fn one_that_always_has_something_to_do_shares_with_one_that_computes() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (program, reader) = (cpu.thread(Level::Process), cpu.thread(Level::Process));
        let ms = |number: u64| Span::from_ms(number);
        cpu.append(program, Step::Charge(Activity::Compute, ms(60_000)));
        cpu.wake(program, at(0), &mut trail);
        // It reads for 1 ms, is back in its program, and reads again.
        let read = |cpu: &mut Cpu<u32>, now, trail: &mut Trail| {
            cpu.append(reader, Step::Charge(Activity::CopyOut, ms(1)));
            cpu.append(reader, Step::Do(1));
            cpu.wake(reader, at(now), trail);
        };
        read(&mut cpu, 0, &mut trail);
        let (mut reads, mut longest, mut last, mut other) = (0, 0, 0, Trail::new(false));
        shares(&mut cpu, &mut trail, ms(10_000).as_ps(), |cpu, now, _| {
            (reads, longest, last) = (reads + 1, longest.max(now - last), now);
            cpu.returned(reader);
            read(cpu, now, &mut other);
        });
        assert!((4_900..=5_100).contains(&reads), "{reads} ms of 10 000");
        // Steps of 40 ms, and as they are used up at most two at once.
        assert!(longest <= ms(81).as_ps(), "{longest} ps without a turn");
    }

    #[test]
    fn who_has_used_little_is_back_before_one_that_computes() {
        let (mut cpu, mut trail) = (Cpu::new(0), Trail::new(false));
        let (program, server) = (cpu.thread(Level::Process), cpu.thread(Level::Process));
        cpu.append(program, Step::Charge(Activity::Compute, Span::from_ms(500)));
        cpu.append(program, Step::Do(1));
        cpu.wake(program, at(0), &mut trail);
        let start = Span::from_ms(100).as_ps();
        let Next::Busy(_, number) = cpu.next(at(0), &trail) else { panic!("it computes") };
        // Nobody else waits: it is not looked at before its end.
        cpu.append(server, Step::Charge(Activity::Trap, span(10)));
        cpu.append(server, Step::Do(2));
        cpu.wake(server, at(start), &mut trail);
        assert!(!cpu.finish(number, at(Span::from_ms(500).as_ps()), &mut trail), "it was interrupted");
        let Next::Busy(end, number) = cpu.next(at(start), &trail) else { panic!("it serves") };
        assert!(cpu.finish(number, end, &mut trail));
        assert!(matches!(cpu.next(end, &trail), Next::Act(_, 2)));
        // Back in its program, which asks for more at once: before the one that has had 100 ms.
        cpu.returned(server);
        assert!(matches!(cpu.next(end, &trail), Next::Busy(..)), "nothing is asked yet");
        cpu.append(server, Step::Charge(Activity::Trap, span(10)));
        cpu.append(server, Step::Do(3));
        cpu.wake(server, end, &mut trail);
        let Next::Busy(again, number) = cpu.next(end, &trail) else { panic!("it serves") };
        assert_eq!((again - end, cpu.finish(number, again, &mut trail)), (span(10), true));
        assert!(matches!(cpu.next(again, &trail), Next::Act(_, 3)));
        let done = run(&mut cpu, &mut trail, again.as_ps(), None);
        assert_eq!(done, [(Span::from_ms(500).as_ps() + 20, 1)]);
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
