//! An executor for rank programs: async tasks in virtual time, on one thread.
//!
//! A task is polled only after it was woken by its number. There are no wakers to make, count or
//! drop: a future that waits for the world notes [`Handle::current`] with what it waits for, and
//! whoever brings that calls [`Handle::wake`]. Tasks run in the order in which they were woken, so
//! a run is the same every time. Time does not pass here; the driver's loop is
//!
//! ```
//! # use wiretwin_engine::{Executor, Schedule};
//! # let mut executor: Executor = Executor::new();
//! # let mut schedule: Schedule = Schedule::new();
//! loop {
//!     executor.run_ready();
//!     let Some(event) = schedule.next() else { break };
//!     // … the world handles the event, and wakes whom it concerns
//! }
//! assert_eq!(executor.unfinished(), 0, "a task that is left waits for what nobody will bring");
//! ```

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// The number of a task in its executor: 0, 1, … in the order of spawning; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u32);

impl TaskId {
    /// The task of this number, whether there is one or not.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.0)
    }
}

/// What an executor and its handles share.
#[derive(Default)]
struct Shared {
    current: Cell<Option<TaskId>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// One bit a task: whether it is in `ready`, or finished. Neither is to be queued.
    settled: RefCell<Vec<u64>>,
}

const BITS: usize = u64::BITS as usize;

impl Shared {
    fn wake(&self, task: TaskId) -> bool {
        let (word, bit) = (task.0 as usize / BITS, 1_u64 << (task.0 as usize % BITS));
        match self.settled.borrow_mut().get_mut(word) {
            Some(settled) if *settled & bit == 0 => *settled |= bit,
            _ => return false,
        }
        self.ready.borrow_mut().push_back(task);
        true
    }

    /// Lets a task never be woken again; a wake during its last poll is void.
    fn retire(&self, task: TaskId) {
        if self.wake(task) {
            self.ready.borrow_mut().pop_back();
        } else {
            self.ready.borrow_mut().retain(|&ready| ready != task);
        }
    }

    /// Lets a task be woken (again).
    fn unsettle(&self, task: TaskId) {
        self.settled.borrow_mut()[task.0 as usize / BITS] &= !(1 << (task.0 as usize % BITS));
    }
}

/// A way to an executor from within its tasks and from the world: cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Rc<Shared>,
}

impl Handle {
    /// The task that is being polled.
    ///
    /// # Panics
    /// Outside a poll by this executor: a leaf future must be awaited inside one of its tasks.
    #[track_caller]
    pub fn current(&self) -> TaskId {
        self.shared.current.get().expect("a leaf future is polled by a task of its executor")
    }

    /// Makes a task ready; it runs after those that are ready already.
    ///
    /// Returns whether that changed anything: not where it was ready, has finished or is unknown. A
    /// task may wake itself while it runs, and then runs again.
    pub fn wake(&self, task: TaskId) -> bool {
        self.shared.wake(task)
    }

    /// Lets all tasks that are ready run before the current one goes on.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        core::future::poll_fn(|_| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            self.wake(self.current());
            Poll::Pending
        })
        .await;
    }
}

/// A future in a box of its own, as tasks of different programs are kept.
pub type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

/// What [`Executor::run_next`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Which task was polled.
    pub task: TaskId,
    /// Whether it has finished.
    pub finished: bool,
}

/// Runs tasks to their next wait, in the order in which they were woken.
///
/// `F` is how a task is kept: [`BoxedTask`] for tasks of different types, or `Pin<Box<…>>` of one
/// future type, which makes an idle task 8 bytes smaller: then it costs one pointer, its future's
/// box and a bit.
///
/// Tasks are polled with a waker that does nothing. A combinator that polls all its parts each time
/// (a join) works; one that relies on wakers to know which part to poll does not.
pub struct Executor<F = BoxedTask> {
    tasks: Vec<Option<F>>,
    unfinished: usize,
    shared: Rc<Shared>,
}

impl<F> Default for Executor<F> {
    fn default() -> Self {
        Self { tasks: Vec::new(), unfinished: 0, shared: Rc::default() }
    }
}

impl<F: Future<Output = ()> + Unpin> Executor<F> {
    /// An executor without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// An executor with room for so many tasks, so that spawning them moves nothing.
    pub fn with_capacity(tasks: usize) -> Self {
        let shared = Shared::default();
        shared.settled.borrow_mut().reserve_exact(tasks.div_ceil(BITS));
        Self { tasks: Vec::with_capacity(tasks), unfinished: 0, shared: Rc::new(shared) }
    }

    /// A handle for the world and the tasks.
    pub fn handle(&self) -> Handle {
        Handle { shared: Rc::clone(&self.shared) }
    }

    /// Adds a task, which is ready at once.
    ///
    /// # Panics
    /// Beyond 2^32 tasks.
    pub fn spawn(&mut self, future: F) -> TaskId {
        let task = TaskId(u32::try_from(self.tasks.len()).expect("memory ends before 2^32 tasks"));
        if self.tasks.len().is_multiple_of(BITS) {
            self.shared.settled.borrow_mut().push(0);
        }
        self.tasks.push(Some(future));
        self.unfinished += 1;
        self.shared.wake(task);
        task
    }

    /// Makes a task ready, as [`Handle::wake`].
    pub fn wake(&self, task: TaskId) -> bool {
        self.shared.wake(task)
    }

    /// Polls the task that has been ready longest; `None` where none is.
    pub fn run_next(&mut self) -> Option<Ran> {
        let task = self.shared.ready.borrow_mut().pop_front()?;
        let slot = &mut self.tasks[task.0 as usize];
        let future = slot.as_mut().expect("a finished task is never made ready");
        // Before the poll, so that what the task does may wake it.
        self.shared.unsettle(task);
        let current = Current::enter(&self.shared.current, task);
        let polled = Pin::new(future).poll(&mut Context::from_waker(Waker::noop()));
        drop(current);
        if polled.is_pending() {
            return Some(Ran { task, finished: false });
        }
        *slot = None;
        self.unfinished -= 1;
        self.shared.retire(task);
        Some(Ran { task, finished: true })
    }

    /// Runs until no task is ready and returns how many polls that took.
    ///
    /// Does not return where tasks wake each other without end; a driver that must not trust them
    /// counts calls of [`Executor::run_next`].
    pub fn run_ready(&mut self) -> u64 {
        let mut polls = 0;
        while self.run_next().is_some() {
            polls += 1;
        }
        polls
    }

    /// How many tasks were spawned.
    pub fn spawned(&self) -> usize {
        self.tasks.len()
    }

    /// How many of them have not finished.
    pub const fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether a task has finished; false for one that was never spawned.
    pub fn is_finished(&self, task: TaskId) -> bool {
        self.tasks.get(task.0 as usize).is_some_and(Option::is_none)
    }

    /// The tasks that have not finished, by number: once none is ready and no event is left, those
    /// that wait for each other.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> {
        (0_u32..).zip(&self.tasks).filter(|(_, slot)| slot.is_some()).map(|(number, _)| TaskId(number))
    }
}

/// Names the task being polled, and takes the name back even if the poll unwinds.
struct Current<'a> {
    cell: &'a Cell<Option<TaskId>>,
}

impl<'a> Current<'a> {
    fn enter(cell: &'a Cell<Option<TaskId>>, task: TaskId) -> Self {
        cell.set(Some(task));
        Self { cell }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        self.cell.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A wait for a flag, as a world would make it: it leaves its task's number behind.
    #[derive(Default)]
    struct Flag {
        up: Cell<bool>,
        waiter: Cell<Option<TaskId>>,
    }

    impl Flag {
        async fn wait(&self, handle: &Handle) {
            core::future::poll_fn(|_| {
                if self.up.get() {
                    return Poll::Ready(());
                }
                self.waiter.set(Some(handle.current()));
                Poll::Pending
            })
            .await;
        }

        fn raise(&self, handle: &Handle) {
            self.up.set(true);
            if let Some(task) = self.waiter.take() {
                handle.wake(task);
            }
        }
    }

    fn log() -> Rc<RefCell<Vec<u32>>> {
        Rc::default()
    }

    #[test]
    fn tasks_run_in_the_order_in_which_they_were_woken() {
        let mut executor: Executor = Executor::new();
        let order = log();
        let flags: Rc<Vec<Flag>> = Rc::new((0..4).map(|_| Flag::default()).collect());
        for number in 0..4_u32 {
            let (order, flags, handle) = (Rc::clone(&order), Rc::clone(&flags), executor.handle());
            executor.spawn(Box::pin(async move {
                flags[number as usize].wait(&handle).await;
                order.borrow_mut().push(number);
            }));
        }
        assert_eq!(executor.run_ready(), 4);
        for number in [2, 0, 3, 1] {
            flags[number].raise(&executor.handle());
        }
        assert_eq!(executor.run_ready(), 4);
        assert_eq!(*order.borrow(), vec![2, 0, 3, 1]);
        assert_eq!(executor.unfinished(), 0);
    }

    #[test]
    fn a_task_woken_twice_runs_once() {
        let mut executor: Executor = Executor::new();
        let task = executor.spawn(Box::pin(core::future::pending()));
        assert!(!executor.wake(task), "it is ready from the start");
        assert_eq!(executor.run_ready(), 1);
        assert!(executor.wake(task));
        assert!(!executor.wake(task));
        assert_eq!(executor.run_ready(), 1);
        assert_eq!(executor.run_ready(), 0);
    }

    #[test]
    fn a_task_that_yields_goes_behind_those_that_are_ready() {
        let mut executor: Executor = Executor::new();
        let order = log();
        for number in 0..3 {
            let (order, handle) = (Rc::clone(&order), executor.handle());
            executor.spawn(Box::pin(async move {
                for _ in 0..2 {
                    order.borrow_mut().push(number);
                    handle.yield_now().await;
                }
            }));
        }
        executor.run_ready();
        assert_eq!(*order.borrow(), vec![0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_finished_task_is_not_woken_even_by_itself() {
        let mut executor: Executor = Executor::new();
        let handle = executor.handle();
        let task = executor.spawn(Box::pin(async move {
            assert!(handle.wake(handle.current()));
        }));
        assert_eq!(executor.run_next(), Some(Ran { task, finished: true }));
        assert_eq!(executor.run_next(), None);
        assert!(executor.is_finished(task));
        assert!(!executor.wake(task));
        assert!(!executor.wake(TaskId::new(1_000)));
        assert!(!executor.is_finished(TaskId::new(1_000)));
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_named() {
        let mut executor: Executor = Executor::new();
        executor.spawn(Box::pin(core::future::pending()));
        executor.spawn(Box::pin(async {}));
        executor.spawn(Box::pin(core::future::pending()));
        executor.run_ready();
        assert_eq!(executor.waiting().collect::<Vec<_>>(), vec![TaskId::new(0), TaskId::new(2)]);
        assert_eq!((executor.spawned(), executor.unfinished()), (3, 2));
    }

    #[test]
    #[should_panic(expected = "a leaf future is polled by a task of its executor")]
    fn nobody_is_current_outside_a_poll() {
        let executor: Executor = Executor::new();
        executor.handle().current();
    }

    #[test]
    fn tasks_of_one_type_are_kept_behind_thin_pointers() {
        fn rank(number: u32) -> Pin<Box<impl Future<Output = ()>>> {
            Box::pin(async move {
                core::future::pending::<()>().await;
                assert!(number < u32::MAX);
            })
        }
        let mut executor = Executor::with_capacity(100);
        for number in 0..100 {
            executor.spawn(rank(number));
        }
        assert_eq!(executor.run_ready(), 100);
        assert_eq!(executor.unfinished(), 100);
    }
}
