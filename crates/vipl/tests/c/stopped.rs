//! A process that stands still.

use std::fs;
use std::time::Instant;

use super::PATIENCE;

/// The process that started this one, stopped with all its threads until this is dropped.
pub struct Stopped(libc::pid_t);

impl Stopped {
    pub fn parent() -> Self {
        // SAFETY: plain calls; the parent waits for this process, and so is there.
        let process = unsafe {
            let process = libc::getppid();
            assert_eq!(libc::kill(process, libc::SIGSTOP), 0);
            process
        };
        let stopped = Self(process);
        let began = Instant::now();
        while !stands_still(process) {
            assert!(began.elapsed() < PATIENCE, "process {process} does not stop");
            std::thread::yield_now();
        }
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: a plain call.
        unsafe { libc::kill(self.0, libc::SIGCONT) };
    }
}

/// Whether every thread of a process is stopped.
fn stands_still(process: libc::pid_t) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("a process that is there");
    threads.filter_map(Result::ok).all(|thread| {
        // A thread that has gone meanwhile does nothing.
        let status = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        status.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}
