//! This process: its cores, its limit, its parent, its standard output.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use wiretwin_units::Span;

/// Why a core was not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinError {
    /// The core asked for.
    pub cpu: u32,
    /// The cores this process may use.
    pub allowed: Vec<u32>,
    /// What the kernel said, if it was asked.
    pub reason: Option<String>,
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot run on core {}: this process may use {:?}", self.cpu, self.allowed)?;
        if let Some(reason) = &self.reason { write!(f, " ({reason})") } else { Ok(()) }
    }
}

impl std::error::Error for PinError {}

/// Ties this thread to one core.
///
/// # Errors
/// [`PinError`] if the core is not among those this process may use.
pub fn pin(cpu: u32) -> Result<(), PinError> {
    let allowed = pinned();
    if !allowed.contains(&cpu) {
        return Err(PinError { cpu, allowed, reason: None });
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(|error| PinError {
        cpu,
        allowed,
        reason: Some(io::Error::from(error).to_string()),
    })
}

/// Lets this thread run on these cores, whichever it was tied to before; those that there are not are left out.
///
/// # Errors
/// Those of `sched_setaffinity(2)`: `EINVAL` where none of them is there.
pub fn tie_to(cores: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cores {
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// How much of a processor this thread has had since it began.
pub fn worked() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let ns = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
    Span::from_ps(ns * 1000)
}

/// The cores this thread may run on, ascending.
pub fn pinned() -> Vec<u32> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// Gives this thread a real-time priority (`SCHED_FIFO`, 1 to 99): it runs before every ordinary
/// thread, and holds its memory in place.
///
/// # Errors
/// Those of `sched_setscheduler(2)` and `mlockall(2)`: `EPERM` without CAP_SYS_NICE, `EINVAL` for a
/// priority out of range.
pub fn run_before_all_others(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: valid parameters; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } != 0 {
        return Err(io::Error::last_os_error());
    }
    rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::FUTURE)?;
    Ok(())
}

/// Asks that the waits of this thread end when they are due, not with others up to 50 us later.
///
/// # Errors
/// Those of `prctl(2)`.
pub fn sharp_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    Ok(())
}

/// Asks the kernel to kill this process when the thread that started it ends, so that no probe
/// outlives its harness. Ends this process at once if that has happened already.
///
/// # Errors
/// Those of `prctl(2)`.
pub fn die_with_parent() -> io::Result<()> {
    let before = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != before {
        std::process::exit(1);
    }
    Ok(())
}

/// Gives `SIGINT` and `SIGTERM` back their default effect, the end of the process. An interpreter
/// that started us may have installed handlers that never run while native code does.
pub fn default_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: SIG_DFL is a valid disposition for both signals; no handler of ours is replaced.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

static LAST_WORDS: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static LAST_WORDS_LENGTH: AtomicUsize = AtomicUsize::new(0);
static WRITING: AtomicBool = AtomicBool::new(false);

/// Ends the process with status 1 after `limit`, whatever it is doing then, having written
/// `last_words` (one line without its line feed) to standard output if there is room for it.
///
/// An interval timer and a signal, not a thread: a second thread would make every system call of
/// the measured one a little dearer.
///
/// # Errors
/// Those of `sigaction(2)` and `setitimer(2)`.
pub fn arm_watchdog(limit: Duration, last_words: &str) -> io::Result<()> {
    // The leading line feed is written only if the signal arrives within another line.
    let line: &'static mut [u8] = Box::leak(format!("\n{last_words}\n").into_bytes().into_boxed_slice());
    LAST_WORDS_LENGTH.store(line.len(), Ordering::SeqCst);
    LAST_WORDS.store(line.as_mut_ptr(), Ordering::SeqCst);
    let handler: extern "C" fn(libc::c_int) = end_of_time;
    // SAFETY: an all-zero sigaction is a valid value; the handler calls only async-signal-safe
    // functions (poll, write, _exit) and reads atomics.
    let status = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut())
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    set_timer(limit.max(Duration::from_micros(1)))
}

/// Takes the limit back: the end has come by itself.
pub fn disarm_watchdog() {
    // Only an invalid timer value can fail, and zero is valid.
    let _ = set_timer(Duration::ZERO);
}

fn set_timer(limit: Duration) -> io::Result<()> {
    let timer = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_usec: libc::suseconds_t::from(limit.subsec_micros()),
        },
    };
    // SAFETY: a valid timer value; the old one is not asked for.
    if unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn end_of_time(_signal: libc::c_int) {
    let line = LAST_WORDS.load(Ordering::SeqCst);
    let length = LAST_WORDS_LENGTH.load(Ordering::SeqCst);
    let skip = usize::from(!WRITING.load(Ordering::SeqCst));
    // SAFETY: `line` points to `length` leaked bytes, set before the handler was installed; `skip`
    // is at most 1 and the line is never empty. The calls are async-signal-safe.
    unsafe {
        let mut stdout = libc::pollfd { fd: 1, events: libc::POLLOUT, revents: 0 };
        if libc::poll(&raw mut stdout, 1, 0) == 1 && stdout.revents & libc::POLLOUT != 0 {
            libc::write(1, line.add(skip).cast(), length - skip);
        }
        libc::_exit(1);
    }
}

/// Writes one line to standard output at once.
///
/// # Errors
/// Those of `write(2)`: a full disk, a closed pipe.
pub fn write_line(line: &str) -> io::Result<()> {
    let mut text = String::with_capacity(line.len() + 1);
    text.push_str(line);
    text.push('\n');
    let mut rest = text.as_bytes();
    WRITING.store(true, Ordering::SeqCst);
    let outcome = loop {
        if rest.is_empty() {
            break Ok(());
        }
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(0) => break Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => break Err(error.into()),
        }
    };
    WRITING.store(false, Ordering::SeqCst);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_to_a_core_that_is_not_there_names_the_cores_that_are() {
        let error = pin(1_000_000).unwrap_err();
        assert_eq!(error.allowed, pinned());
        assert!(
            error.to_string().starts_with("cannot run on core 1000000: this process may use ["),
            "{error}"
        );
    }

    #[test]
    fn a_priority_out_of_range_is_refused() {
        assert!(run_before_all_others(100).is_err());
        assert!(sharp_timers().is_ok());
    }

    #[test]
    fn pinning_leaves_one_core() {
        // In a thread of its own, so that no other test is confined.
        std::thread::spawn(|| {
            let cpu = *pinned().last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(pinned(), vec![cpu]);
        })
        .join()
        .unwrap();
    }
}
