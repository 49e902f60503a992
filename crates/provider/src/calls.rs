//! What is told from outside of a rank whose time is simulated: calls of its library, looks at the clock, sleep.
//!
//! The functions are found by name by the shim that is loaded before the library.

use std::ffi::{CStr, c_char, c_int};

use wiretwin_host::sim::{Call, Rank, with_rank};

/// What the shim calls, in the order in which it has it.
#[repr(C)]
pub struct SimCalls {
    enter: unsafe extern "C" fn(*const c_char, c_int),
    exit: extern "C" fn(),
    now: unsafe extern "C" fn(*mut u64) -> c_int,
    sleep: extern "C" fn(u64) -> c_int,
    begin_thread: extern "C" fn(),
    wait_outside: extern "C" fn(u64),
    spawn: extern "C" fn(u32),
    rehearse: extern "C" fn(c_int),
    host: extern "C" fn() -> u32,
    will_ask: extern "C" fn(u32),
}

static CALLS: SimCalls =
    SimCalls { enter, exit, now, sleep, begin_thread, wait_outside, spawn, rehearse, host, will_ask };

/// The functions, if this process is a rank of a simulated run.
#[unsafe(no_mangle)]
pub extern "C" fn wiretwin_sim_calls() -> *const SimCalls {
    if of_rank(|_| ()).is_some() { &CALLS } else { std::ptr::null() }
}

fn of_rank<R>(act: impl FnOnce(&mut Rank) -> R) -> Option<R> {
    match with_rank(act) {
        Ok(done) => done,
        Err(error) => {
            eprintln!("wiretwin: {error}");
            std::process::exit(1);
        }
    }
}

unsafe extern "C" fn enter(name: *const c_char, call: c_int) {
    let call = match call {
        1 => Call::Looks,
        2 => Call::Begins,
        3 => Call::Ends,
        6 => Call::Reaches,
        _ => Call::Waits,
    };
    // SAFETY: the shim's own string of C.
    let name = unsafe { CStr::from_ptr(name) };
    if of_rank(|rank| rank.enter(name.to_bytes(), call)).is_none() {
        eprintln!(
            "wiretwin: {} was called by a process that a rank has forked: only ranks may call MPI",
            name.to_string_lossy()
        );
        std::process::exit(1);
    }
}

extern "C" fn exit() {
    of_rank(Rank::exit);
}

unsafe extern "C" fn now(to: *mut u64) -> c_int {
    let Some(now_ps) = of_rank(Rank::now_ps).flatten() else { return 0 };
    // SAFETY: the shim's place for it.
    unsafe { *to = now_ps };
    1
}

extern "C" fn sleep(span_ps: u64) -> c_int {
    if !of_rank(|rank| rank.sleep(span_ps)).unwrap_or(false) {
        return 0;
    }
    while !of_rank(Rank::has_slept).unwrap_or(true) {
        // Without the rank, which the thread that goes on needs.
        std::thread::yield_now();
    }
    1
}

extern "C" fn begin_thread() {
    of_rank(Rank::begin_thread);
}

extern "C" fn wait_outside(span_ps: u64) {
    of_rank(|rank| rank.wait_outside(span_ps));
}

extern "C" fn rehearse(turns: c_int) {
    of_rank(|rank| rank.rehearse(turns != 0));
}

extern "C" fn spawn(count: u32) {
    of_rank(|rank| rank.spawn(count));
}

extern "C" fn will_ask(questions: u32) {
    of_rank(|rank| rank.will_ask(questions));
}

extern "C" fn host() -> u32 {
    of_rank(|rank| rank.host()).unwrap_or(u32::MAX)
}
