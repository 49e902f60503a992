//! What takes the processor between operations of a rank: its program's work between calls, and its library's within them.
//!
//! What a library does within its calls besides its messages: it combines, packs, reads and writes files, makes windows
//! and communicators. Here it takes the processor as it does in a real run, and so it is measured.
//!
//! Between two operations of its network a library works on. What it does there for the sake of a message (to look up a
//! peer, to match, to hand on a completion) is part of the message's costs, which a twin has from its ends, and takes a
//! fraction of a microsecond, or several in caches that another rank has left. What takes as long as work does is no part of
//! them, and is charged beside them; for a short message there is next to nothing to pack or to combine, and it must have
//! taken far longer than caches can make it. A look in vain at
//! the network ends what is measured where a call only moves messages, for the library then does nothing but look again; in
//! calls that make communicators or windows, or are about files, it goes on with its work.
//!
//! Time in which the rank's thread does not run and waits for no core is a part of its work: a real run, too, waits there for a
//! disk, for a process that the program has started, for threads that never call. The thread has slept then, and the wall's
//! clock is far beyond the processor's. A rank that sleeps for long has lost its turn meanwhile, and the simulator keeps
//! account of that.
//!
//! Where a long message goes into memory that has never been touched, the kernel maps and clears it, for longer than the copy
//! takes: the twin's copy goes to memory that is there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::{Access, Phase, Rank};
use crate::process::{PinError, pin, pinned};
use crate::sim::shared::{Ask, AskKind};

/// What takes this long or longer is work, picoseconds: a look after it is not one of a row, and it is no part of a
/// message's costs.
const WORK_PS: u64 = 2_000_000;

/// The same beside a message shorter than [`SHORT`], picoseconds: *choice*, several times what was seen in cold caches.
const WORK_BESIDE_SHORT_PS: u64 = 20_000_000;

/// Length from which what is done for a message can take as long as [`WORK_PS`], bytes: 512 numbers in strides.
const SHORT: u64 = 1 << 12;

/// Length from which it is checked whether a message goes into memory that was never touched, bytes.
const LEAST: u64 = 1 << 14;

/// Length from which copying a message takes longer than reading the clock, bytes: only then is the clock read again after
/// the copy.
pub(super) const LONG: u64 = 1 << 12;

/// What the wall's clock shows beyond the processor's is looked into from here on, nanoseconds; less is an interrupt.
const AWAY_NS: u64 = 30_000;

/// Turns that follow a stretch in which the rank was away, after which its time without a core is read.
const WATCHED: u32 = 64;

/// What the kernel counts of a rank's thread. It is asked after a turn has been waited for, which takes longer than to ask,
/// and where a rank has been away.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// How often the thread has given up its core to wait for something.
    slept: u64,
    file: Option<File>,
    /// How long it has been ready to run and had no core, nanoseconds.
    queued_ns: u64,
    /// Turns after which that is read: the rank has been away, and may soon be again.
    watched: u32,
}

impl Counts {
    /// The rank has waited for its turn; what it has waited for until now is none of the program's.
    pub(super) fn begin(&mut self) {
        self.slept = slept();
        if self.watched > 0 {
            self.watched -= 1;
            self.queued_since_ns();
        }
    }

    /// Whether the thread has slept since its turn began.
    fn has_slept(&self) -> bool {
        self.slept != slept()
    }

    /// How long it has waited for a core since it was last asked, nanoseconds; none where the kernel does not tell.
    pub(super) fn queued_since_ns(&mut self) -> Option<u64> {
        if self.file.is_none() {
            self.file = File::open("/proc/thread-self/schedstat").ok();
        }
        let mut text = [0; 96];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        // proc(5): the second of three numbers.
        let now_ns = std::str::from_utf8(&text[..length]).ok()?.split(' ').nth(1)?.parse().ok()?;
        Some(now_ns - std::mem::replace(&mut self.queued_ns, now_ns))
    }
}

/// Goes to the core of a rank, counted from the last that the process may use: before the library begins, for a core is
/// cold for what has run on another.
pub(super) fn take_core(number: usize) -> Result<(), PinError> {
    pinned().into_iter().rev().nth(number).map_or(Ok(()), pin)
}

impl Rank {
    /// Books what was computed from the last call to a time of the processor, `stretches` of it where their length is
    /// given.
    pub(super) fn compute(&mut self, now_ns: u64, stretches: u64) {
        let span_ps = if self.given.compute_ps == u64::MAX {
            let wall_ns = wall_ns();
            let me = self.callers.me();
            let since_ns = std::mem::replace(&mut me.left_at_ns, now_ns);
            let span_ns = now_ns.saturating_sub(since_ns);
            let beyond_ns = wall_ns - std::mem::replace(&mut me.left_wall_ns, wall_ns);
            let blocked_ns = self.blocked_ns(beyond_ns.saturating_sub(span_ns));
            let own_ns = span_ns.saturating_sub(self.ends_ns[usize::from(self.has_turned)]);
            (self.undisturbed(own_ns) + blocked_ns) * 1000
        } else {
            self.given.compute_ps * stretches
        };
        self.has_turned = false;
        if span_ps >= WORK_PS {
            self.looks = 0;
        }
        self.owed_ps += span_ps;
        self.clock_ps += span_ps;
    }

    /// How long the thread was blocked in a stretch after which the wall's clock is so far beyond the processor's,
    /// nanoseconds. All that it has waited for a core since it was last looked at is taken off: in the first such stretch
    /// that is too much.
    fn blocked_ns(&mut self, beyond_ns: u64) -> u64 {
        if beyond_ns < AWAY_NS || !self.measures() {
            return 0;
        }
        self.counts.watched = WATCHED;
        let blocked_ns = beyond_ns.saturating_sub(self.counts.queued_since_ns().unwrap_or(u64::MAX));
        // SAFETY: an atomic of a place inside the mapping.
        let is_passed_over = unsafe { (*self.slot).is_passed_over.load(Ordering::Acquire) != 0 };
        let counts = self.counts.has_slept() && !is_passed_over && self.callers.is_alone();
        if counts && blocked_ns >= AWAY_NS { blocked_ns } else { 0 }
    }

    /// What work would have taken that took so long here, nanoseconds, did the simulator not have this core, too: it leaves
    /// caches and predictions of branches that are no more the rank's.
    fn undisturbed(&self, span_ns: u64) -> u64 {
        if self.given.disturbed_rank == self.number {
            span_ns - span_ns * u64::from(self.given.disturbed_ppm) / 1_000_000
        } else {
            span_ns
        }
    }

    /// A stretch has ended in which the program did nothing, once the library had begun: what such stretches take is
    /// none of what others take. `turns`: others have the processor before the next one.
    pub fn rehearse(&mut self, turns: bool) {
        if self.phase != Phase::Inside || self.given.compute_ps != u64::MAX {
            return;
        }
        let now_ns = processor_ns();
        let kind = usize::from(std::mem::take(&mut self.has_turned));
        let span_ns = now_ns.saturating_sub(self.callers.me().left_at_ns);
        let some = &mut self.rehearsed[kind];
        some.push(span_ns);
        some.sort_unstable();
        self.ends_ns[kind] = some[some.len() / 2];
        if turns {
            self.ask(Ask::new(AskKind::Now));
            self.hand_over();
        }
        self.go_on();
    }

    /// The program goes on in this thread: what it computes begins now, and what was done for the simulator is none of it.
    pub(super) fn go_on(&mut self) {
        let me = self.callers.me();
        (me.left_wall_ns, me.left_at_ns) = (wall_ns(), processor_ns());
    }

    /// Asks for the computation that is owed.
    pub(super) fn pay(&mut self) {
        let length = std::mem::take(&mut self.owed_ps);
        if length > 0 {
            self.ask(Ask { length, ..Ask::new(AskKind::Compute) });
        }
    }

    /// The library goes on in this thread: it begins a call, or has done something with its network, for a message of
    /// this length.
    pub(super) fn library_goes_on(&mut self, now_ns: u64, beside: Option<u64>) {
        if self.measures() && self.callers.me().is_inside {
            let me = self.callers.me();
            me.beside = beside;
            me.library_since_ns = Some(now_ns);
            me.library_wall_ns = me.is_of_file.then(wall_ns);
        }
    }

    /// It comes to its network for a message of this length, or to the end of the call: what it did until then was work if
    /// it was long.
    pub(super) fn library_has_worked(&mut self, now_ns: u64, beside: Option<u64>) {
        let Some(since_ns) = self.callers.me().library_since_ns.take() else { return };
        let me = self.callers.me();
        let is_fresh = std::mem::replace(&mut me.is_fresh, false);
        // A call that has waited for its time finds the caches as others have left them.
        let has_turned = is_fresh && me.access == Access::Orders;
        let ends_ns = self.ends_ns[usize::from(has_turned)];
        let took_ns = now_ns.saturating_sub(since_ns);
        let since_wall_ns = me.library_wall_ns.take();
        let blocked_ns = since_wall_ns
            .map_or(0, |since_ns| self.blocked_ns((wall_ns() - since_ns).saturating_sub(took_ns)));
        let span_ns = self.undisturbed(took_ns.saturating_sub(ends_ns)) + blocked_ns;
        let me = self.callers.me();
        let is_short = !me.works && me.beside.take().max(beside).is_some_and(|length| length < SHORT);
        let least_ps = if is_short { WORK_BESIDE_SHORT_PS } else { WORK_PS };
        if span_ns * 1000 >= least_ps || me.access.is_charged() && is_fresh {
            self.charge(span_ns * 1000);
        } else if me.access.is_charged() {
            me.looked_ns += span_ns;
        }
    }

    /// What the library has done in looks is charged: it has not waited after them.
    pub(super) fn charge_looks(&mut self) {
        let span_ns = std::mem::take(&mut self.callers.me().looked_ns);
        self.charge(span_ns * 1000);
    }

    /// The same, if the clock has to be looked at for it.
    pub(super) fn library_has_worked_until_now(&mut self, beside: Option<u64>) {
        if self.callers.me().library_since_ns.is_some() {
            self.library_has_worked(processor_ns(), beside);
        }
    }

    /// A message will be written there, without the rank's time: that which the kernel needs for memory that is touched for
    /// the first time is charged.
    ///
    /// # Safety
    /// The memory is the rank's to write, and what it holds does not count.
    pub(super) unsafe fn touch(&mut self, memory: *mut u8, length: u64) {
        if length < LEAST || !self.measures() {
            return;
        }
        // SAFETY: a system call without arguments.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let first = memory as usize & !(page - 1);
        let pages = (memory as usize + length as usize - first).div_ceil(page);
        let mut there = vec![0_u8; pages];
        // SAFETY: a byte for each page; what is not mapped is said.
        let failed = unsafe { libc::mincore(first as *mut _, pages * page, there.as_mut_ptr()) } != 0;
        if !failed && there.iter().all(|page| page & 1 != 0) {
            return;
        }
        let begun_ns = processor_ns();
        // SAFETY: a byte of each page, inside the memory.
        let walk = || unsafe {
            (0..length as usize).step_by(page).for_each(|at| memory.add(at).write_volatile(0));
            memory.add(length as usize - 1).write_volatile(0);
        };
        walk();
        let touched_ns = processor_ns();
        walk();
        let beyond_ns = (touched_ns - begun_ns).saturating_sub(processor_ns() - touched_ns);
        self.charge(beyond_ns * 1000);
    }

    /// Whether the rank's own time is measured now.
    pub(super) fn measures(&self) -> bool {
        self.phase == Phase::Inside && self.given.compute_ps == u64::MAX
    }

    fn charge(&mut self, span_ps: u64) {
        self.owed_ps += span_ps;
        self.clock_ps += span_ps;
    }
}

/// Whether a function does more than to move messages, for it makes a communicator or a window or is about a file; and
/// whether it is about a file.
pub(super) fn works(function: &[u8]) -> (bool, bool) {
    let name = function.strip_prefix(b"P").unwrap_or(function);
    let name = name.strip_prefix(b"MPI_").unwrap_or(name);
    let is_of_file = name.starts_with(b"File_");
    let makes = [
        &b"Comm_"[..],
        b"Intercomm_",
        b"Cart_",
        b"Graph_",
        b"Dist_graph_",
        b"Win_allocate",
        b"Win_create",
        b"Win_free",
    ]
    .iter()
    .any(|begins| name.starts_with(begins));
    (makes || is_of_file, is_of_file)
}

/// The processor time of this thread, nanoseconds.
pub(super) fn processor_ns() -> u64 {
    // SAFETY: a system call, for the functions of the C library may tell virtual time; a place for the time.
    told(|time| unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, time) as i32 })
}

/// The time on the wall, nanoseconds since some moment: by the C library's own function, which needs no system call.
fn wall_ns() -> u64 {
    type Gettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> i32;
    static REAL: OnceLock<Gettime> = OnceLock::new();
    let real = REAL.get_or_init(|| {
        // SAFETY: the library is there, and its function has this type.
        unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            let found =
                if library.is_null() { library } else { libc::dlsym(library, c"clock_gettime".as_ptr()) };
            if found.is_null() { libc::clock_gettime } else { std::mem::transmute::<*mut _, Gettime>(found) }
        }
    });
    // SAFETY: a place for the time.
    told(|time| unsafe { real(libc::CLOCK_MONOTONIC, time) })
}

fn told(read: impl FnOnce(*mut libc::timespec) -> i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    read(&raw mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often this thread has given up its core to wait for something.
fn slept() -> u64 {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a place for what is told, which is all numbers.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, used.as_mut_ptr());
        used.assume_init().ru_nvcsw as u64
    }
}
