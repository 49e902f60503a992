//! A messaging library behind the shim interface: any layer that a shared object can reach.
//!
//! `python/wiretwin/stacks/shim/wiretwin_shim.h` is the interface, ABI 1; the functions are looked up
//! once, and a call costs one indirect jump more than the library's own.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::{Bytes, Span};

use crate::clock::Clock;

/// The version of the interface spoken here.
pub const SHIM_ABI: i32 = 1;

const OK: c_int = 0;
const TRUNCATED: c_int = 1;
const PEER_LOST: c_int = 2;
const TIMED_OUT: c_int = 3;
const UNSUPPORTED: c_int = 4;
const NO_SUCH_RANK: c_int = 6;
/// Room for the reason of a failed opening.
const REASON: usize = 1024;
/// Room for what the library reports of itself: that of `wt_info`.
const EFFECTIVE: usize = 2048;

#[repr(C)]
struct WtInfo {
    rank: i32,
    size: i32,
    effective: [c_char; EFFECTIVE],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct WtStatus {
    source: i32,
    tag: u32,
    bytes: u64,
}

#[repr(C)]
struct WtOutgoing {
    to: i32,
    tag: u32,
    data: *const c_void,
    bytes: u64,
}

#[repr(C)]
struct WtIncoming {
    from: i32,
    tag: i64,
    data: *mut c_void,
    capacity: u64,
    status: WtStatus,
}

#[repr(C)]
struct WtTogether {
    name: *const c_char,
    verify: u32,
    bytes: u64,
    messages: u64,
    busy_ns: u64,
    iterations: u64,
}

/// What all ranks are to do at once, each with the same order.
#[derive(Clone, Copy, Debug)]
pub struct TogetherCall<'a> {
    /// What, as the probe protocol names it.
    pub name: &'a str,
    /// Do it once and look at what has come, in place of timing it.
    pub verify: bool,
    /// Length of a message, or of the block of one rank, in bytes.
    pub bytes: u64,
    /// Messages an iteration.
    pub messages: u64,
    /// How long a rank computes between the start and the end of a non-blocking call.
    pub busy: Span,
}

type Abi = unsafe extern "C" fn() -> c_int;
type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut WtInfo, *mut c_char, usize) -> c_int;
type Send = unsafe extern "C" fn(*mut c_void, i32, u32, *const c_void, u64) -> c_int;
type Recv = unsafe extern "C" fn(*mut c_void, i32, i64, *mut c_void, u64, *mut WtStatus) -> c_int;
type Exchange = unsafe extern "C" fn(*mut c_void, *const WtOutgoing, i32, *mut WtIncoming, i32) -> c_int;
type Call = unsafe extern "C" fn(*mut c_void) -> c_int;
type Together = unsafe extern "C" fn(*mut c_void, *const WtTogether, *mut u64) -> c_int;
type Error = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Close = unsafe extern "C" fn(*mut c_void);

/// Why a shim could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimError {
    /// What was being done, with the file.
    pub place: String,
    /// Why it failed.
    pub reason: String,
}

impl fmt::Display for ShimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for ShimError {}

/// A rank whose messages a shim moves. Stays on the thread that opened it.
///
/// Dropping it closes the layer; the library itself stays loaded, as most messaging libraries cannot be
/// unloaded.
pub struct Shim {
    this: *mut c_void,
    send: Send,
    recv: Recv,
    exchange: Exchange,
    call: Call,
    together: Option<Together>,
    error: Error,
    close: Close,
    rank: Rank,
    size: u32,
    effective: String,
    limit: Duration,
    clock: Clock,
    outgoing: Vec<WtOutgoing>,
    incoming: Vec<WtIncoming>,
    one_thread: PhantomData<Cell<()>>,
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shim").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

/// A shared object that stays loaded until the process ends.
struct Library {
    handle: *mut c_void,
    path: String,
}

impl Library {
    fn load(path: &Path) -> Result<Self, ShimError> {
        let shown = path.display().to_string();
        let failed = |reason: String| ShimError { place: format!("loading the shim {shown}"), reason };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| failed("the path has a zero byte in it".into()))?;
        // SAFETY: `name` is a C string. Loading runs the constructors of the library, whose file the user
        // of this process names as code to run.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(failed(loader_reason()));
        }
        Ok(Self { handle, path: shown })
    }

    fn symbol(&self, name: &CStr) -> Result<*mut c_void, ShimError> {
        // SAFETY: the handle is that of a library loaded and never unloaded; `name` is a C string.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if symbol.is_null() {
            let reason = format!("it has no function {}: it is no shim", name.to_string_lossy());
            return Err(ShimError { place: format!("loading the shim {}", self.path), reason });
        }
        Ok(symbol)
    }

    fn has(&self, name: &CStr) -> bool {
        // SAFETY: as in `symbol`.
        !unsafe { libc::dlsym(self.handle, name.as_ptr()) }.is_null()
    }
}

fn loader_reason() -> String {
    // SAFETY: dlerror returns null or a C string good until the next call of the loader by this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gave no reason".into();
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Tells the library behind this process's shim that its ranks are more than cores from now on, if that makes a
/// difference to it.
pub fn crowded() {
    // SAFETY: `name` is a C string; a shim is loaded so that its functions are found without its handle.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"wt_crowded".as_ptr()) };
    if !symbol.is_null() {
        // SAFETY: the interface declares it with this type; it may be called whenever the layer is open.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(symbol)() };
    }
}

/// One function of the shim, by its name in the interface and its type here.
macro_rules! function {
    ($library:expr, $name:literal, $kind:ty) => {{
        let symbol = $library.symbol($name)?;
        // SAFETY: the interface declares this function with this type, and wt_abi has told that the shim
        // was built for it. A function pointer is as large as an object pointer on POSIX.
        unsafe { std::mem::transmute::<*mut c_void, $kind>(symbol) }
    }};
}

impl Shim {
    /// Loads the shim at `path` and opens its layer with `options`, pairs of key and value.
    /// `limit` is the longest life of this process, for the text of errors.
    ///
    /// # Errors
    /// [`ShimError`]: the file cannot be loaded, is no shim or of another version; a key or value that
    /// does not fit in a line; the layer rejects to open, with its reason.
    pub fn open(path: &Path, options: &[(String, String)], limit: Duration) -> Result<Self, ShimError> {
        let library = Library::load(path)?;
        let abi = function!(library, c"wt_abi", Abi);
        // SAFETY: wt_abi takes nothing and may be called at any time.
        let version = unsafe { abi() };
        if version != SHIM_ABI {
            return Err(ShimError {
                place: format!("loading the shim {}", library.path),
                reason: format!(
                    "it was built for version {version} of the interface: only {SHIM_ABI} is spoken here"
                ),
            });
        }
        let lines = lines(options)?;
        let open = function!(library, c"wt_open", Open);
        let mut shim = Self {
            this: std::ptr::null_mut(),
            send: function!(library, c"wt_send", Send),
            recv: function!(library, c"wt_recv", Recv),
            exchange: function!(library, c"wt_exchange", Exchange),
            call: function!(library, c"wt_call", Call),
            together: if library.has(c"wt_together") {
                Some(function!(library, c"wt_together", Together))
            } else {
                None
            },
            error: function!(library, c"wt_error", Error),
            close: function!(library, c"wt_close", Close),
            rank: Rank(0),
            size: 0,
            effective: String::new(),
            limit,
            clock: Clock::start(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            one_thread: PhantomData,
        };
        let mut this = std::ptr::null_mut();
        let mut info = WtInfo { rank: -1, size: 0, effective: [0; EFFECTIVE] };
        let mut reason = [0 as c_char; REASON];
        // SAFETY: all pointers are to live values of the types of the interface, and `reason` has REASON bytes.
        let code = unsafe { open(lines.as_ptr(), &raw mut this, &raw mut info, reason.as_mut_ptr(), REASON) };
        let place = format!("opening the layer through {}", library.path);
        if code != OK {
            let reason = text(&reason);
            let reason =
                if reason.is_empty() { format!("rejected with code {code} and no reason") } else { reason };
            return Err(ShimError { place, reason });
        }
        shim.this = this;
        let (Ok(rank), Ok(size)) = (u32::try_from(info.rank), u32::try_from(info.size)) else {
            let reason = format!("it says that this is rank {} of {}", info.rank, info.size);
            return Err(ShimError { place, reason });
        };
        if rank >= size {
            let reason = format!("it says that this is rank {rank} of {size}");
            return Err(ShimError { place, reason });
        }
        (shim.rank, shim.size) = (Rank(rank), size);
        shim.effective = text(&info.effective);
        Ok(shim)
    }

    /// What the library reports of itself: a JSON object, as the shim wrote it.
    pub fn effective(&self) -> &str {
        &self.effective
    }

    /// Takes part in a call of the library that all ranks make, once for each entry of `times_ns`, which is set to
    /// the time of this rank's part in nanoseconds.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] for a call that the library does not have; its own error; what it gave is wrong.
    ///
    /// # Panics
    /// If the name has a zero byte in it.
    pub fn together(&mut self, call: &TogetherCall<'_>, times_ns: &mut [u64]) -> Result<(), CommError> {
        let Some(together) = self.together else {
            return Err(CommError::Unsupported("calls that all ranks make: its shim has none"));
        };
        let name = CString::new(call.name).expect("a name of the protocol");
        let order = WtTogether {
            name: name.as_ptr(),
            verify: u32::from(call.verify),
            bytes: call.bytes,
            messages: call.messages,
            busy_ns: call.busy.as_ps() / 1000,
            iterations: times_ns.len() as u64,
        };
        // SAFETY: opened; the order, its name and as many times as it has iterations live until the call returns.
        let code = unsafe { together(self.this, &raw const order, times_ns.as_mut_ptr()) };
        if code == OK { Ok(()) } else { Err(self.fail(code, -1, 0, 0)) }
    }

    #[inline]
    fn check_rank(&self, rank: Rank) -> Result<i32, CommError> {
        if rank.0 < self.size { Ok(rank.0 as i32) } else { Err(self.no_such(rank)) }
    }

    #[cold]
    fn no_such(&self, rank: Rank) -> CommError {
        CommError::NoSuchRank { rank, size: self.size }
    }

    #[inline]
    fn check_source(&self, from: Source) -> Result<i32, CommError> {
        match from {
            Source::Rank(rank) => self.check_rank(rank),
            Source::Any => Ok(-1),
        }
    }

    /// What a code other than `OK` means. `peer` is the other end of the call, if it has one; `buffer`
    /// the room there was.
    #[cold]
    fn fail(&self, code: c_int, peer: i32, message: u64, buffer: u64) -> CommError {
        let rank = Rank(u32::try_from(peer).unwrap_or(u32::from(self.rank.0 == 0)));
        match code {
            TRUNCATED if message > buffer => {
                CommError::Truncated { message: Bytes::new(message), buffer: Bytes::new(buffer) }
            }
            TRUNCATED => CommError::Transport(format!(
                "a message met a buffer of {buffer} bytes that is too short for it"
            )),
            PEER_LOST => CommError::PeerLost { rank },
            TIMED_OUT => CommError::TimedOut {
                limit: Span::from_ps(
                    u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000),
                ),
            },
            NO_SUCH_RANK => self.no_such(rank),
            // Leaked: it is a constant text elsewhere, and here the last thing a probe says.
            UNSUPPORTED => CommError::Unsupported(Box::leak(self.last_error().into_boxed_str())),
            code => {
                let reason = self.last_error();
                let empty = reason.is_empty();
                CommError::Transport(if empty { format!("code {code} and no reason") } else { reason })
            }
        }
    }

    fn last_error(&self) -> String {
        // SAFETY: `this` was opened and is not closed before the drop.
        let text = unsafe { (self.error)(self.this) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null; the interface promises a C string good until the next call.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        if !self.this.is_null() {
            // SAFETY: opened, and closed here only.
            unsafe { (self.close)(self.this) };
        }
    }
}

/// `key=value` lines as a C string.
fn lines(options: &[(String, String)]) -> Result<CString, ShimError> {
    let mut text = String::new();
    for (key, value) in options {
        if key.is_empty() || key.contains(['=', '\n', '\0']) || value.contains(['\n', '\0']) {
            return Err(ShimError {
                place: format!("option {key:?}"),
                reason: format!("{value:?} is not allowed: one line, and a key without `=`"),
            });
        }
        text.push_str(key);
        text.push('=');
        text.push_str(value);
        text.push('\n');
    }
    Ok(CString::new(text).expect("no zero byte passes the check above"))
}

/// The text up to the zero, or all of it if the shim has left the zero out.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|char| **char != 0).map(|char| *char as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

const fn tag_or_any(tag: TagMatch) -> i64 {
    match tag {
        TagMatch::Tag(tag) => tag.0 as i64,
        TagMatch::Any => -1,
    }
}

fn status_of(status: &WtStatus) -> Status {
    Status {
        source: Rank(u32::try_from(status.source).unwrap_or(0)),
        tag: Tag(status.tag),
        bytes: Bytes::new(status.bytes),
    }
}

impl Comm for Shim {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn now(&self) -> Span {
        self.clock.now()
    }

    #[inline]
    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let to = self.check_rank(to)?;
        let bytes = message.len() as u64;
        // SAFETY: opened; the buffer lives until the call returns, which is as long as the shim may read it.
        let code = unsafe { (self.send)(self.this, to, tag.0, message.as_ptr().cast(), bytes) };
        if code == OK { Ok(()) } else { Err(self.fail(code, to, 0, 0)) }
    }

    #[inline]
    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let from = self.check_source(from)?;
        let capacity = buffer.len() as u64;
        let mut status = WtStatus::default();
        // SAFETY: opened; buffer and status live until the call returns, and the shim writes no more than
        // `capacity` bytes.
        let code = unsafe {
            let data = buffer.as_mut_ptr().cast();
            (self.recv)(self.this, from, tag_or_any(tag), data, capacity, &raw mut status)
        };
        if code == OK { Ok(status_of(&status)) } else { Err(self.fail(code, from, status.bytes, capacity)) }
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        if sends.is_empty() && receives.is_empty() {
            // SAFETY: opened.
            let code = unsafe { (self.call)(self.this) };
            return if code == OK { Ok(()) } else { Err(self.fail(code, -1, 0, 0)) };
        }
        self.outgoing.clear();
        self.incoming.clear();
        for send in sends {
            let (data, bytes) = (send.message.as_ptr().cast(), send.message.len() as u64);
            self.outgoing.push(WtOutgoing { to: self.check_rank(send.to)?, tag: send.tag.0, data, bytes });
        }
        for receive in receives.iter_mut() {
            self.incoming.push(WtIncoming {
                from: self.check_source(receive.from)?,
                tag: tag_or_any(receive.tag),
                data: receive.buffer.as_mut_ptr().cast(),
                capacity: receive.buffer.len() as u64,
                status: WtStatus::default(),
            });
        }
        let count = |length: usize| {
            i32::try_from(length).map_err(|_| CommError::Unsupported("over 2^31 messages in one exchange"))
        };
        let (sending, receiving) = (count(sends.len())?, count(receives.len())?);
        // SAFETY: opened; both lists have as many entries as said, and the buffers they point to are
        // borrowed until this function returns, the receiving ones mutably.
        let code = unsafe {
            (self.exchange)(self.this, self.outgoing.as_ptr(), sending, self.incoming.as_mut_ptr(), receiving)
        };
        if code != OK {
            let long = self.incoming.iter().find(|one| one.status.bytes > one.capacity);
            let (message, buffer) = long.map_or((0, 0), |one| (one.status.bytes, one.capacity));
            let peer = match (receives.first(), sends.first()) {
                (Some(Incoming { from: Source::Rank(rank), .. }), _)
                | (_, Some(Outgoing { to: rank, .. })) => rank.0 as i32,
                _ => -1,
            };
            return Err(self.fail(code, peer, message, buffer));
        }
        for (receive, raw) in receives.iter_mut().zip(&self.incoming) {
            receive.status = Some(status_of(&raw.status));
        }
        Ok(())
    }

    async fn compute<T>(&mut self, _work: Work, body: impl FnOnce() -> T) -> T {
        body()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;
    use crate::pair::drive;

    const LIMIT: Duration = Duration::from_secs(60);
    const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/wiretwin/stacks/shim");
    const REFUSES: &str = r#"
        #include "wiretwin_shim.h"
        #include <stdio.h>
        static int code = 0;
        int wt_abi(void) { return WT_ABI; }
        int wt_open(const char *options, void **self, wt_info *info, char *error, size_t room) {
            (void)error; (void)room;
            *self = &code; info->rank = 0; info->size = 3;
            return sscanf(options, "code=%d", &code) == 1 ? WT_OK : WT_TRANSPORT;
        }
        int wt_send(void *s, int32_t t, uint32_t g, const void *d, uint64_t n) {
            (void)s; (void)t; (void)g; (void)d; (void)n; return code;
        }
        int wt_recv(void *s, int32_t f, int64_t g, void *d, uint64_t n, wt_status *status) {
            (void)s; (void)f; (void)g; (void)d; status->bytes = n + 1; return code;
        }
        int wt_exchange(void *s, const wt_outgoing *o, int32_t m, wt_incoming *i, int32_t n) {
            (void)s; (void)o; (void)m; (void)i; (void)n; return code;
        }
        int wt_call(void *s) { (void)s; return code; }
        const char *wt_error(void *s) { (void)s; return "the reason"; }
        void wt_close(void *s) { (void)s; }
    "#;

    /// A directory of one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("wiretwin-shim-{}-{number}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn compile(&self, source: &Path) -> PathBuf {
            let made = self.0.join("shim.so");
            let output = Command::new("cc")
                .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", SOURCES, "-o"])
                .arg(&made)
                .arg(source)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            made
        }

        fn compile_text(&self, text: &str) -> PathBuf {
            let source = self.0.join("shim.c");
            std::fs::write(&source, text).unwrap();
            self.compile(&source)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn pairs(options: &[(&str, &str)]) -> Vec<(String, String)> {
        options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// Runs `body` on every rank of the reference shim, each in a thread of its own.
    fn reference<T: std::marker::Send>(size: u32, body: impl Fn(Shim) -> T + Sync) -> Vec<T> {
        let folder = Folder::new();
        let path = folder.compile(&Path::new(SOURCES).join("reference_tcp.c"));
        thread::scope(|scope| {
            let (path, folder, body) = (&path, &folder, &body);
            let ranks: Vec<_> = (0..size)
                .map(|rank| {
                    scope.spawn(move || {
                        let directory = folder.0.display().to_string();
                        let (rank, size) = (rank.to_string(), size.to_string());
                        let options = [
                            ("directory", directory.as_str()),
                            ("limit_s", "60"),
                            ("rank", &rank),
                            ("size", &size),
                        ];
                        body(Shim::open(path, &pairs(&options), LIMIT).unwrap())
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    fn data(bytes: usize, seed: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 31 + seed) as u8).collect()
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let effective = reference(2, |mut shim| {
            let peer = Rank(1 - shim.rank().0);
            for bytes in [1, 4096, 1 << 20] {
                let mut buffer = vec![0; bytes];
                if peer == Rank(1) {
                    drive(shim.send(peer, Tag(7), &data(bytes, bytes))).unwrap();
                    drive(shim.recv(Source::Rank(peer), TagMatch::Tag(Tag(8)), &mut buffer)).unwrap();
                } else {
                    let status =
                        drive(shim.recv(Source::Rank(peer), TagMatch::Tag(Tag(7)), &mut buffer)).unwrap();
                    assert_eq!((status.source, status.tag), (peer, Tag(7)));
                    assert_eq!(status.bytes, Bytes::new(bytes as u64));
                    drive(shim.send(peer, Tag(8), &buffer)).unwrap();
                }
                assert_eq!(buffer, data(bytes, bytes));
            }
            drive(shim.exchange(&[], &mut [])).unwrap();
            shim.effective().to_owned()
        });
        assert_eq!(effective, vec![r#"{"wait":"block","nodelay":true}"#; 2]);
    }

    #[test]
    fn all_ranks_exchange_long_messages_at_once() {
        const BYTES: usize = 3 << 20;
        reference(3, |mut shim| {
            let (rank, size) = (shim.rank().0, shim.size());
            let (right, left) = (Rank((rank + 1) % size), Rank((rank + size - 1) % size));
            let (message, mut buffer) = (data(BYTES, rank as usize), vec![0; BYTES]);
            let sends = [Outgoing { to: right, tag: Tag(1), message: &message }];
            let mut receives = [Incoming {
                from: Source::Rank(left),
                tag: TagMatch::Tag(Tag(1)),
                buffer: &mut buffer,
                status: None,
            }];
            drive(shim.exchange(&sends, &mut receives)).unwrap();
            assert_eq!(receives[0].status.unwrap().source, left);
            assert_eq!(buffer, data(BYTES, left.0 as usize));
        });
    }

    #[test]
    fn a_peer_that_has_gone_and_a_rank_that_never_was_are_named() {
        reference(2, |mut shim| {
            if shim.rank() == Rank(1) {
                return; // closes
            }
            let lost = drive(shim.recv(Source::Rank(Rank(1)), TagMatch::Tag(Tag(1)), &mut [0; 4]));
            assert_eq!(lost, Err(CommError::PeerLost { rank: Rank(1) }));
            let none = drive(shim.send(Rank(2), Tag(1), &[]));
            assert_eq!(none, Err(CommError::NoSuchRank { rank: Rank(2), size: 2 }));
            let any = drive(shim.recv(Source::Any, TagMatch::Any, &mut [0; 4])).unwrap_err();
            assert_eq!(
                any.to_string(),
                "this layer cannot do that: a message from any rank: each has a socket of its own"
            );
        });
    }

    #[test]
    fn every_code_of_the_interface_is_an_error_of_its_own() {
        let folder = Folder::new();
        let path = folder.compile_text(REFUSES);
        let told = |code: &str| {
            let mut shim = Shim::open(&path, &pairs(&[("code", code)]), LIMIT).unwrap();
            let from = Source::Rank(Rank(2));
            drive(shim.recv(from, TagMatch::Tag(Tag(1)), &mut [0; 4])).unwrap_err()
        };
        assert_eq!(told("1"), CommError::Truncated { message: Bytes::new(5), buffer: Bytes::new(4) });
        assert_eq!(told("2"), CommError::PeerLost { rank: Rank(2) });
        assert_eq!(told("3"), CommError::TimedOut { limit: Span::from_ps(60_000_000_000_000) });
        assert_eq!(told("4"), CommError::Unsupported("the reason"));
        assert_eq!(told("5"), CommError::Transport("the reason".into()));
        assert_eq!(told("6"), CommError::NoSuchRank { rank: Rank(2), size: 3 });
    }

    #[test]
    fn what_is_no_shim_is_refused_with_the_reason() {
        let folder = Folder::new();
        let open = |path: &Path, options: &[(&str, &str)]| {
            Shim::open(path, &pairs(options), LIMIT).unwrap_err().to_string()
        };
        let absent = folder.0.join("absent.so");
        assert!(open(&absent, &[]).starts_with(&format!("loading the shim {}: ", absent.display())));

        let path = folder.compile_text("int anything(void) { return 0; }");
        assert!(open(&path, &[]).ends_with("it has no function wt_abi: it is no shim"));

        let other = Folder::new();
        let path = other.compile_text("int wt_abi(void) { return 2; }");
        let reason = "it was built for version 2 of the interface: only 1 is spoken here";
        assert!(open(&path, &[]).ends_with(reason));

        let silent = Folder::new();
        let path = silent.compile_text(REFUSES);
        assert!(open(&path, &[]).ends_with("rejected with code 5 and no reason"));
        let reason = r#"option "a=b": "c" is not allowed: one line, and a key without `=`"#;
        assert_eq!(open(&path, &[("a=b", "c")]), reason);

        let reference = Folder::new();
        let path = reference.compile(&Path::new(SOURCES).join("reference_tcp.c"));
        let error = open(&path, &[("speed", "high")]);
        assert!(error.ends_with("option speed=high is not allowed: address, nodelay"), "{error}");
    }
}
