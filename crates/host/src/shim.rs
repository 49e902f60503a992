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

type Abi = unsafe extern "C" fn() -> c_int;
type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut WtInfo, *mut c_char, usize) -> c_int;
type Send = unsafe extern "C" fn(*mut c_void, i32, u32, *const c_void, u64) -> c_int;
type Recv = unsafe extern "C" fn(*mut c_void, i32, i64, *mut c_void, u64, *mut WtStatus) -> c_int;
type Exchange = unsafe extern "C" fn(*mut c_void, *const WtOutgoing, i32, *mut WtIncoming, i32) -> c_int;
type Call = unsafe extern "C" fn(*mut c_void) -> c_int;
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
        let failed =
            |reason: String| ShimError { place: format!("loading the shim {shown}"), reason };
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
    /// does not fit in a line; the layer refuses to open, with its reason.
    pub fn open(path: &Path, options: &[(String, String)], limit: Duration) -> Result<Self, ShimError> {
        let library = Library::load(path)?;
        let abi = function!(library, c"wt_abi", Abi);
        // SAFETY: wt_abi takes nothing and may be called at any time.
        let version = unsafe { abi() };
        if version != SHIM_ABI {
            return Err(ShimError {
                place: format!("loading the shim {}", library.path),
                reason: format!("it was built for version {version} of the interface: only {SHIM_ABI} is spoken here"),
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
        let code = unsafe {
            open(lines.as_ptr(), &raw mut this, &raw mut info, reason.as_mut_ptr(), REASON)
        };
        let place = format!("opening the layer through {}", library.path);
        if code != OK {
            let reason = text(&reason);
            let reason = if reason.is_empty() { format!("refused with code {code} and no reason") } else { reason };
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
            UNSUPPORTED => CommError::Transport(format!("this layer cannot do that: {}", self.last_error())),
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
                (Some(Incoming { from: Source::Rank(rank), .. }), _) | (_, Some(Outgoing { to: rank, .. })) => {
                    rank.0 as i32
                }
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
