//! The thread of an adapter: what goes on where nobody calls.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

use super::Event;
use super::adapter::{Shared, State};
use super::carrier::Carrier;
use super::connect;
use super::wire::Wire;

/// What the bell says, among handles of VIs, and what a carrier's files say.
pub(super) const BELL: u64 = u64::MAX;
const CARRIER: u64 = u64::MAX - 1;
/// While calls look for what comes, the thread looks so often whether they still do.
const TICK: Duration = Duration::from_millis(2);
/// After remote ends were asked to wake this one, it looks once more when what they had not seen must have come.
const SETTLED: Duration = Duration::from_millis(1);
/// How long the thread sleeps at most: where its files were closed under it, nothing wakes it.
const SLEEP: Duration = Duration::from_secs(1);
/// How often an adapter that has broken down looks whether it is closed.
const FAILED: Duration = Duration::from_millis(20);
/// Sockets served in one turn.
const TURN: usize = 64;

/// How far the thread is from sleeping.
#[derive(Clone, Copy, PartialEq)]
enum Sleep {
    /// Calls look for what comes.
    Awake,
    /// A remote end was asked just now to wake this one.
    Asked,
    /// All were asked before.
    Settled,
}

/// What a carrier's files are watched for: once, each time that the thread goes to sleep.
const CARRIED: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ONESHOT);

/// Has the thread wait for a carrier's files too, from when it goes to sleep.
pub(super) fn watch(files: &OwnedFd, carrier: &Carrier) -> rustix::io::Result<()> {
    let data = epoll::EventData::new_u64(CARRIER);
    carrier.wakers().try_for_each(|file| epoll::add(files, file, data, epoll::EventFlags::ONESHOT))
}

/// Starts it; signals of the program stay with the program's threads.
pub(super) fn start(shared: Arc<Shared>, handler: Box<dyn Fn(Event) + Send>) -> io::Result<JoinHandle<()>> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are filled in before they are read.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = std::thread::Builder::new().name("vipl".into()).spawn(move || serve(&shared, &*handler));
    // SAFETY: filled in above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    thread
}

fn serve(shared: &Shared, handler: &dyn Fn(Event)) {
    let mut looks = 0;
    let mut events = Vec::new();
    loop {
        let (sleep, deadline, failed) = {
            let mut state = shared.lock();
            if state.closed {
                return;
            }
            let now = Instant::now();
            let State { common, vis, .. } = &mut *state;
            vis.values_mut().for_each(|vi| connect::expire(shared, common, vi, now));
            let looked = std::mem::replace(&mut looks, state.looks) != state.looks;
            let mut moved = state.progress();
            let waited_for = shared.sleepers.load(Ordering::SeqCst) > 0;
            let stays_awake = moved || (looked && !waited_for);
            let links = state.vis.values().filter_map(|vi| match &vi.link {
                Some(Wire::Memory(link)) => Some(link),
                _ => None,
            });
            // Who wakes this end takes the request back, whether or not anything is found then.
            let asked = links.filter(|link| link.sleep(!stays_awake) == stays_awake).count();
            let after = match asked {
                _ if stays_awake => Sleep::Awake,
                0 => Sleep::Settled,
                _ => Sleep::Asked,
            };
            if let Some(carrier) = state.common.carrier.as_ref().filter(|_| !stays_awake) {
                let data = epoll::EventData::new_u64(CARRIER);
                // Where it fails, so does the wait below.
                let arm = |file| epoll::modify(&shared.epoll, file, data, CARRIED);
                let _ = carrier.wakers().try_for_each(arm);
            }
            if after == Sleep::Asked {
                // What came before it was asked wakes nobody.
                moved = state.progress();
            }
            let moves_on = moved && (!looked || waited_for);
            looks = state.looks;
            events.extend(state.common.events.drain(..));
            let deadline = if moves_on { Some(Instant::now()) } else { next_deadline(&state) };
            (after, deadline, state.failed)
        };
        shared.wake();
        events.drain(..).for_each(handler);
        let longest = match sleep {
            _ if failed => Some(FAILED),
            Sleep::Awake => Some(TICK),
            Sleep::Asked => Some(SETTLED),
            Sleep::Settled => Some(SLEEP),
        };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = [longest, left].into_iter().flatten().min();
        if failed {
            std::thread::park_timeout(timeout.unwrap_or(FAILED));
        } else if attend(shared, timeout).is_err() {
            shared.lock().fail();
        }
    }
}

/// The next time at which something is to be done about a request for a connection, or by the carrier.
fn next_deadline(state: &State) -> Option<Instant> {
    let asked = state.vis.values().filter_map(|vi| vi.asking.as_ref()?.due()).min();
    let carried = state.common.carrier.as_ref().and_then(Carrier::due).map(|due| Instant::now() + due);
    [asked, carried].into_iter().flatten().min()
}

/// Waits for sockets, so long at most, and serves those for which something has come.
fn attend(shared: &Shared, timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let mut ready = [MaybeUninit::uninit(); TURN];
    let (ready, _) = match epoll::wait(&shared.epoll, &mut ready[..], timeout.as_ref()) {
        Err(rustix::io::Errno::INTR) => return Ok(()),
        ready => ready?,
    };
    for event in ready {
        let data = event.data.u64();
        if data == BELL {
            shared.hush();
            continue;
        }
        if data == CARRIER {
            continue;
        }
        let mut state = shared.lock();
        let State { common, vis, .. } = &mut *state;
        let Some(vi) = u32::try_from(data).ok().and_then(|vi| vis.get_mut(vi)) else { continue };
        if vi.asking.is_some() {
            connect::greet(shared, common, vi);
        } else if vi.link.as_mut().is_some_and(Wire::is_gone) {
            vi.gone(common);
        }
    }
    Ok(())
}
