//! A rank's side: the operations of an endpoint, in virtual time.
//!
//! What a rank posts is only written down. It gives its turn back where it cannot go on: where the library asks in
//! vain for what has ended, and so waits; where its program looks whether something has ended, once a call; and
//! where the time has to be known. Calls of the library are told of from outside ([`Rank::enter`], [`Rank::exit`]);
//! what lies between them is computation.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use wiretwin_msg::tagged::Pattern;

use super::callers::{Caller, Callers};
use super::shared::{
    Answer, Ask, AskKind, Given, Head, MARK, Memory, NONE, ROOM, Slot, TOLD, ring, sleep_on,
};
use crate::direct::{Address, Busy, Completion, Kind, Outgoing, Receive, Trouble};

mod asleep;
mod windows;
mod work;

pub(super) use windows::Access;
use work::{LONG, processor_ns};

/// The variable that names the file of the run.
const FILE: &str = "WIRETWIN_SIM";
/// Variables in which launchers number their ranks.
const NUMBERS: [&str; 2] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"];
/// Where a launcher numbers its ranks so, its library ends by waiting for the others through the launcher, and sends no
/// more messages.
const ENDS_OUTSIDE: &str = NUMBERS[0];
/// Looks in vain, one after the other and without work between them, before the next thing that happens to the rank
/// is waited for, or that nothing else happens.
const LOOKS: u32 = 16;
/// Turns of a library that asks again and again within a call that only looks.
const RESTLESS: u32 = 5000;
/// Questions in vain of a library that has nothing under way, and may be at work for itself alone.
const UNDISTURBED: u32 = 64;
/// Questions in vain, over many calls, that were answered without a look at what has happened in the world.
const UNANSWERED: u32 = 64;
/// How long a rank sleeps before it looks whether the run goes on.
const SLEEP: Duration = Duration::from_secs(2);
/// How long a rank leaves its launcher to end it when another has failed.
const ENDED: Duration = Duration::from_secs(1);

/// What a call of the library does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It may wait.
    Waits,
    /// It looks whether something has happened, and never waits.
    Looks,
    /// It starts the library: before its end there is no virtual time.
    Begins,
    /// It ends it.
    Ends,
    /// It reaches a window in memory, without the library.
    Reaches,
}

/// Why a process is no rank of a simulated run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankError(String);

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RankError {}

/// Something that was begun and has not ended.
#[derive(Clone, Copy, Debug)]
enum Open {
    Send {
        context: usize,
        length: u64,
        tag: Option<u64>,
    },
    Receive {
        receive: Receive,
        is_tagged: bool,
    },
    /// A message that was claimed: where its bytes are, once they have come.
    Claimed(Option<u64>),
}

/// What a rank is in the midst of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The library is being started.
    Outside,
    /// Virtual time.
    Inside,
    /// It has left.
    Left,
}

/// This process as a rank of a simulated run.
#[derive(Debug)]
pub struct Rank {
    memory: Memory,
    given: Given,
    number: u32,
    slot: *mut Slot,
    phase: Phase,
    asked: usize,
    open: BTreeMap<u64, Open>,
    next_token: u64,
    completions: VecDeque<Completion>,
    /// The clock as far as it is known here, and whether what was asked since may have moved it otherwise.
    clock_ps: u64,
    is_unsure: bool,
    /// Whether it has sent, or asked for, a message of a program: buffers for the library's own are no reason to wait.
    has_messages: bool,
    /// Picoseconds of computation that have not been asked for.
    owed_ps: u64,
    /// What the ends of a stretch take in which the program does nothing, nanoseconds: where the rank has kept the
    /// processor before it, and where others have had it.
    ends_ns: [u64; 2],
    /// Such stretches, of either kind.
    rehearsed: [Vec<u64>; 2],
    /// Whether others have had the processor since the last stretch.
    has_turned: bool,
    callers: Callers,
    counts: work::Counts,
    /// Whether the end of the library needs no messages, and waits outside.
    ends_outside: bool,
    /// Looks in vain in a row.
    looks: u32,
    /// Questions in vain that its library has use for, beyond [`UNDISTURBED`].
    to_ask: u32,
    /// Questions in vain since it last looked at what has happened in the world.
    unanswered: u32,
    /// Whether its library has made windows in memory.
    has_windows: bool,
    /// How often ranks have told each other to look there, since something else happened to this one.
    told: u64,
}

// SAFETY: the place of the rank is in shared memory; a lock holds threads apart.
unsafe impl Send for Rank {}

static RANK: Mutex<Option<Rank>> = Mutex::new(None);
/// Whether this process is one that a rank has forked.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Does something with this process's rank, which is made when it is first asked for: the process is one of a
/// simulated run if the environment names the run's memory. One that a rank has forked is none.
///
/// # Errors
/// [`RankError`] where it names one that cannot be used.
pub fn with_rank<R>(act: impl FnOnce(&mut Rank) -> R) -> Result<Option<R>, RankError> {
    if IS_FORKED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut rank = RANK.lock().unwrap_or_else(PoisonError::into_inner);
    if rank.is_none() {
        let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) else { return Ok(None) };
        *rank = Some(Rank::join(path.into())?);
        // SAFETY: the function lives as long as the library, which is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
    Ok(rank.as_mut().map(act))
}

impl Rank {
    fn join(path: PathBuf) -> Result<Self, RankError> {
        let wrong = |reason: String| RankError(format!("{FILE}={}: {reason}", path.display()));
        let file =
            File::options().read(true).write(true).open(&path).map_err(|error| wrong(error.to_string()))?;
        let memory = Memory::map(&file).map_err(|error| wrong(error.to_string()))?;
        let top = memory.top();
        if top.mark.load(Ordering::Acquire) != MARK {
            return Err(wrong("is no memory of a run of this version".into()));
        }
        let given = top.given;
        let number = NUMBERS.iter().find_map(|name| std::env::var(name).ok()?.parse::<u32>().ok());
        let number = if std::env::var_os("PMI_SPAWNED").is_some() {
            let first = top.spawned_from.load(Ordering::Acquire);
            number.map(|number| first.saturating_add(number)).filter(|&number| number < given.ranks)
        } else {
            number.filter(|&number| number < given.launched)
        };
        let number = number.ok_or_else(|| {
            RankError(format!(
                "not started as one of {} ranks: {} is not set so",
                given.launched,
                NUMBERS.join(" or ")
            ))
        })?;
        let slot = memory.slot(number);
        if given.own_cores != 0 {
            work::take_core(number as usize).map_err(|error| RankError(error.to_string()))?;
        }
        // SAFETY: atomics of a place inside the mapping.
        unsafe {
            if (*slot).process.swap(std::process::id(), Ordering::AcqRel) != 0 {
                return Err(RankError(format!("rank {number} has been started twice")));
            }
        }
        Ok(Self {
            memory,
            given,
            number,
            slot,
            phase: Phase::Outside,
            asked: 0,
            open: BTreeMap::new(),
            next_token: 0,
            completions: VecDeque::new(),
            clock_ps: 0,
            is_unsure: false,
            has_messages: false,
            owed_ps: 0,
            ends_ns: [0; 2],
            rehearsed: [Vec::new(), Vec::new()],
            has_turned: false,
            callers: Callers::default(),
            counts: work::Counts::default(),
            ends_outside: std::env::var_os(ENDS_OUTSIDE).is_some(),
            looks: 0,
            to_ask: 0,
            unanswered: 0,
            has_windows: false,
            told: 0,
        })
    }

    // Calls, and the time.

    /// A call of the library begins.
    pub fn enter(&mut self, name: &[u8], call: Call) {
        let now_ns = processor_ns();
        let is_first = !self.callers.is_inside();
        let access = self.accesses(name, call);
        let (works, is_of_file) = work::works(name);
        let completes = windows::completes(name);
        let me = self.callers.me();
        *me = Caller {
            call,
            is_inside: true,
            works,
            is_of_file,
            completes,
            access,
            is_fresh: true,
            looked_ns: 0,
            vain: 0,
            has_looked: false,
            sought: None,
            ..*me
        };
        // What the process did before its library had begun is none of the program's work.
        if self.phase != Phase::Inside || call == Call::Begins {
            return;
        }
        self.compute(now_ns, 1);
        self.pay();
        if is_first {
            self.ask(Ask::enter(name));
            self.clock_ps += self.given.call_ps;
        }
        if call == Call::Ends {
            self.ask(Ask::new(AskKind::Mark));
            self.hand_over();
            if self.ends_outside {
                self.finish(Duration::ZERO);
            }
            return;
        }
        self.begin_access(access);
        self.library_goes_on(if access.is_charged() { processor_ns() } else { now_ns }, None);
    }

    /// It ends.
    pub fn exit(&mut self) {
        self.library_has_worked_until_now(None);
        self.charge_looks();
        let me = self.callers.me();
        let access = std::mem::replace(&mut me.access, Access::None);
        let call = std::mem::replace(&mut me.call, Call::Waits);
        me.is_inside = false;
        if std::mem::take(&mut me.completes) {
            self.to_ask = 0;
        }
        if call == Call::Begins {
            if self.phase == Phase::Outside {
                self.come();
            }
            self.ask(Ask::new(AskKind::Mark));
            self.hand_over();
            self.counts.queued_since_ns();
        } else if self.phase == Phase::Inside && !self.callers.is_inside() {
            self.pay();
            self.end_access(access);
            self.ask(Ask::new(AskKind::Exit));
        }
        self.go_on();
    }

    /// The time of the rank, picoseconds, a look at which takes what it takes; none where it has no virtual time.
    pub fn now_ps(&mut self) -> Option<u64> {
        if self.callers.me().is_inside || self.phase == Phase::Outside {
            return None;
        }
        self.compute(processor_ns(), 0);
        self.owed_ps += self.given.look_ps;
        self.clock_ps += self.given.look_ps;
        self.looks = 0;
        // SAFETY: an atomic of a place inside the mapping.
        let is_passed_over = unsafe { (*self.slot).is_passed_over.load(Ordering::Acquire) != 0 };
        let is_unsure = self.is_unsure || is_passed_over || self.given.is_behind != 0;
        if self.phase == Phase::Inside && is_unsure {
            self.pay();
            self.ask(Ask::new(AskKind::Now));
            self.hand_over();
            self.go_on();
        }
        Some(self.clock_ps)
    }

    /// The library, which this thread has called, starts this number of processes.
    pub fn spawn(&mut self, count: u32) {
        self.ask(Ask { length: u64::from(count), ..Ask::new(AskKind::Spawn) });
        self.hand_over();
    }

    /// The host that the rank lives on: those of one host have the same.
    #[must_use]
    pub fn host(&self) -> u32 {
        // SAFETY: a place inside the mapping, written before the rank came.
        unsafe { (*self.slot).host }
    }

    /// The program has begun a thread.
    pub const fn begin_thread(&mut self) {
        self.callers.are_several = true;
    }

    /// Whether anything is begun that needs another rank; the library's own buffers for whatever comes do not.
    fn is_under_way(&self) -> bool {
        self.open.values().any(|open| !matches!(open, Open::Receive { is_tagged: false, .. }))
    }

    fn others_go_on(&self) -> bool {
        self.callers.others_go_on(self.given.patience, self.clock_ps)
    }

    /// Whether a thread other than this does something before a message comes.
    fn others_act(&self) -> bool {
        self.callers.first_sleeps_until_ps().is_some() || self.others_go_on()
    }

    // Turns.

    /// Comes into the world, and waits for the first turn.
    fn come(&mut self) {
        self.phase = Phase::Inside;
        // SAFETY: an atomic of a place inside the mapping.
        unsafe { (*self.slot).phase.store(1, Ordering::Release) };
        ring(self.memory.top());
        self.await_turn();
    }

    fn ask(&mut self, ask: Ask) {
        if self.phase == Phase::Left {
            return;
        }
        if self.asked == ROOM {
            self.hand_over();
        }
        // SAFETY: the place belongs to the rank while it has the turn.
        unsafe { (*self.slot).asks[self.asked] = ask };
        self.asked += 1;
    }

    /// Gives the turn back with all that was asked, and waits for the next. What is asked for before the library's
    /// start is over is only written down until the library waits for it: others may wait for this rank through the
    /// launcher.
    fn hand_over(&mut self) {
        match self.phase {
            Phase::Outside => self.come(),
            Phase::Inside => {}
            Phase::Left => return,
        }
        // SAFETY: as above; the simulator reads it after it has seen the turn change.
        unsafe {
            (*self.slot).asked = std::mem::take(&mut self.asked) as u32;
            (*self.slot).turn.store(0, Ordering::Release);
        }
        ring(self.memory.top());
        self.await_turn();
        self.has_turned = true;
        if self.measures() {
            self.counts.begin();
        }
    }

    fn await_turn(&mut self) {
        // SAFETY: atomics of a place inside the mapping; the rest is the rank's when it has the turn.
        let turn = unsafe { &(*self.slot).turn };
        while turn.load(Ordering::Acquire) == 0 {
            if self.memory.top().over.load(Ordering::Acquire) != 0 {
                // The simulator has said why. Who is ended by the launcher is not taken for who failed first.
                sleep_on(turn, 0, ENDED);
                std::process::abort();
            }
            if self.given.own_cores == 0 {
                sleep_on(turn, 0, SLEEP);
            } else {
                // The simulator may share this core.
                std::thread::yield_now();
            }
        }
        // SAFETY: as above.
        let (answered, clock_ps) = unsafe { ((*self.slot).answered as usize, (*self.slot).clock_ps) };
        (self.clock_ps, self.is_unsure) = (clock_ps + self.owed_ps, false);
        for at in 0..answered {
            // SAFETY: as above.
            let answer = unsafe { (*self.slot).answers[at] };
            self.hear(answer);
        }
    }

    fn hear(&mut self, answer: Answer) {
        self.told = if answer.token == TOLD { answer.place + 1 } else { 0 };
        match self.open.remove(&answer.token) {
            Some(Open::Send { context, length, tag }) => self.sent(context, length, tag),
            Some(Open::Receive { receive, .. }) => self.deliver(receive, answer.place),
            Some(Open::Claimed(_)) => {
                self.open.insert(answer.token, Open::Claimed(Some(answer.place)));
            }
            None => {}
        }
        self.happened();
    }

    /// Something has ended or come: what was asked in vain may be asked anew.
    fn happened(&mut self) {
        self.callers.begin_anew();
        self.looks = 0;
    }

    fn sent(&mut self, context: usize, length: u64, tag: Option<u64>) {
        let (source, buffer) = (self.number as usize, std::ptr::null_mut());
        let kind = Kind::Sent;
        self.completions.push_back(Completion {
            kind,
            context,
            length,
            buffer,
            tag,
            data: None,
            source,
            trouble: None,
        });
    }

    /// Copies what has come to where it was asked for.
    fn deliver(&mut self, receive: Receive, place: u64) {
        let mut completion = Completion {
            kind: Kind::Received,
            context: receive.context.unwrap_or(0),
            length: 0,
            buffer: receive.buffer,
            tag: None,
            data: None,
            source: usize::MAX,
            trouble: Some(Trouble::Cancelled),
        };
        if place != NONE {
            let head = self.memory.head(place);
            let over = head.length.saturating_sub(receive.length);
            // SAFETY: the bytes lie behind their head; the buffer is left alone until the completion.
            unsafe {
                self.touch(receive.buffer, head.length - over);
                let bytes = self.memory.at(place).add(size_of::<Head>());
                std::ptr::copy_nonoverlapping(bytes, receive.buffer, (head.length - over) as usize);
            }
            self.memory.give(place);
            completion = seen(&head, completion);
            completion.trouble = (over > 0).then_some(Trouble::Truncated(over));
        }
        if receive.context.is_some() {
            self.completions.push_back(completion);
        }
    }

    // The operations of an endpoint.

    /// What others need to reach this rank.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::of_rank(self.number)
    }

    /// The number of the peer at an address.
    pub fn peer(&mut self, address: Address) -> usize {
        address.rank() as usize
    }

    /// Sends a message; its bytes are free at once, but a long one is told of when its receiver has it.
    ///
    /// # Errors
    /// None: there is always room.
    ///
    /// # Safety
    /// There are as many bytes as the message says.
    pub unsafe fn send(&mut self, peer: usize, message: Outgoing) -> Result<(), Busy> {
        let mut now_ns = processor_ns();
        self.library_has_worked(now_ns, Some(message.length));
        self.charge_looks();
        self.pay();
        let head = Head {
            length: message.length,
            tag: message.tag.unwrap_or(0),
            data: message.data.unwrap_or(0),
            source: self.number,
            is_tagged: message.tag.is_some(),
            has_data: message.data.is_some(),
            class: 0,
        };
        let place = self.memory.take(head).unwrap_or_else(|| {
            let bytes = message.length;
            give_up(&format!(
                "no memory left for a message of {bytes} bytes: allowed: less under way, or more of it"
            ))
        });
        // SAFETY: the room is as long as its head says, and the caller has as many bytes.
        unsafe {
            let bytes = self.memory.at(place).add(size_of::<Head>());
            std::ptr::copy_nonoverlapping(message.bytes, bytes, message.length as usize);
        }
        let is_eager = message.length < self.given.eager_below;
        let mut token = NONE;
        if let Some(context) = message.context {
            if is_eager {
                self.sent(context, message.length, message.tag);
            } else {
                token = self.begin(Open::Send { context, length: message.length, tag: message.tag });
            }
        }
        let (tagged, tag) = (u32::from(head.is_tagged), head.tag);
        let (peer, length) = (peer as u64, message.length);
        self.ask(Ask { kind: AskKind::Send, tagged, peer, token, tag, ignore: 0, length, place });
        (self.is_unsure, self.looks, self.has_messages) = (true, 0, true);
        if length >= LONG {
            now_ns = processor_ns();
        }
        self.library_goes_on(now_ns, Some(length));
        Ok(())
    }

    fn begin(&mut self, open: Open) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.open.insert(token, open);
        token
    }

    fn pattern(kind: AskKind, pattern: &Pattern) -> Ask {
        let peer = pattern.source.map_or(NONE, u64::from);
        let (tagged, tag) = (u32::from(pattern.tag.is_some()), pattern.tag.unwrap_or(0));
        Ask { tagged, peer, tag, ignore: pattern.ignore, place: 0, ..Ask::new(kind) }
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// The buffer is left alone until the completion.
    pub unsafe fn receive(&mut self, pattern: Pattern, receive: Receive) {
        self.pay();
        let token = self.begin(Open::Receive { receive, is_tagged: pattern.tag.is_some() });
        self.has_messages |= pattern.tag.is_some();
        self.ask(Ask { token, length: receive.length, ..Self::pattern(AskKind::Receive, &pattern) });
    }

    /// The source, tag, remote data and length of the earliest message that has come and that a pattern accepts.
    pub fn peek(&mut self, pattern: &Pattern) -> Option<Completion> {
        self.find(pattern).map(|head| seen(&head, nothing()))
    }

    fn find(&mut self, pattern: &Pattern) -> Option<Head> {
        if self.phase != Phase::Inside {
            return None;
        }
        self.library_has_worked_until_now(Some(0));
        let me = self.callers.me();
        me.vain += 1;
        (me.has_looked, me.sought) = (true, Some(*pattern));
        let waits = if me.call == Call::Looks {
            self.looks += 1;
            self.looks > LOOKS + 1
        } else {
            me.vain > self.given.patience
        };
        let waits = waits && !self.others_act();
        self.pay();
        if waits {
            self.ask_to_wait(Some(pattern));
        } else {
            self.ask(Self::pattern(AskKind::Look, pattern));
        }
        self.hand_over();
        // SAFETY: the rank has the turn.
        let found = unsafe {
            let answered = (*self.slot).answered as usize;
            (&(*self.slot).answers)[..answered].iter().find(|answer| answer.token == NONE).copied()
        };
        let head = self.memory.head(found?.place);
        self.happened();
        self.callers.me().sought = None;
        Some(head)
    }

    /// The same, and takes it: only [`Rank::receive_claimed`] with the number that comes with it will have it.
    pub fn claim(&mut self, pattern: &Pattern) -> Option<(usize, Completion)> {
        let head = self.find(pattern)?;
        let token = self.begin(Open::Claimed(None));
        let tag = head.is_tagged.then_some(head.tag);
        let this = Pattern { source: Some(head.source), tag, ignore: self.given.ignored };
        self.ask(Ask { token, length: u64::MAX, ..Self::pattern(AskKind::Receive, &this) });
        Some((token as usize, seen(&head, nothing())))
    }

    /// Receives a message that was claimed.
    ///
    /// # Safety
    /// As for [`Rank::receive`].
    pub unsafe fn receive_claimed(&mut self, place: usize, receive: Receive) {
        match self.open.get_mut(&(place as u64)) {
            Some(Open::Claimed(Some(bytes))) => {
                let bytes = *bytes;
                self.open.remove(&(place as u64));
                self.deliver(receive, bytes);
            }
            Some(open) => *open = Open::Receive { receive, is_tagged: true },
            None => {}
        }
    }

    /// Drops a message that was claimed.
    pub fn discard_claimed(&mut self, place: usize) {
        let nowhere = Receive { buffer: std::ptr::null_mut(), length: 0, context: None };
        // SAFETY: a buffer of no bytes is never written to.
        unsafe { self.receive_claimed(place, nowhere) };
    }

    /// Withdraws the receives of a context: whether there was one that waits.
    pub fn cancel(&mut self, context: usize) -> bool {
        let of_context =
            |open: &Open| matches!(open, Open::Receive { receive, .. } if receive.context == Some(context));
        let Some(token) = self.open.iter().find(|(_, open)| of_context(open)).map(|(&token, _)| token) else {
            return false;
        };
        self.ask(Ask { token, ..Ask::new(AskKind::Cancel) });
        true
    }

    /// The next operation that has ended.
    pub fn completion(&mut self) -> Option<Completion> {
        let completion = self.completions.pop_front();
        if let Some(Completion { length, .. }) = completion {
            self.happened();
            self.library_goes_on(processor_ns(), Some(length));
        }
        completion
    }

    /// The library asks what has ended: gives the turn back where it waits. Whether it has been told nothing because
    /// another of the rank's threads does something before.
    pub fn progress(&mut self) -> bool {
        if self.phase == Phase::Left || !self.completions.is_empty() {
            return false;
        }
        self.library_has_worked_until_now(Some(0));
        let others_act = self.look_on();
        if self.callers.me().works || self.callers.me().access != Access::None {
            self.library_goes_on(processor_ns(), None);
        }
        others_act
    }

    /// See [`Rank::progress`].
    fn look_on(&mut self) -> bool {
        let me = self.callers.me();
        me.vain += 1;
        if self.phase == Phase::Outside && !self.has_messages {
            return false;
        }
        let (is_sought, vain) = (me.sought.is_some(), me.vain);
        let waits = if me.call == Call::Looks {
            if me.has_looked && me.vain < RESTLESS {
                return false;
            }
            me.has_looked = true;
            self.looks += 1;
            self.looks > LOOKS && (is_sought || self.is_under_way())
        } else if vain > self.given.patience
            && (is_sought || vain > UNDISTURBED + self.to_ask || self.is_under_way())
        {
            true
        } else {
            // A program that waits for a window to change may do so by calls that ask once or twice each, and sleep
            // between them.
            self.unanswered += 1;
            if self.unanswered <= UNANSWERED {
                return false;
            }
            false
        };
        self.unanswered = 0;
        let looks = self.callers.me().call == Call::Looks;
        let others_act = waits && self.others_act();
        if others_act && !looks {
            return true;
        }
        self.pay();
        if waits && !others_act {
            let sought = self.callers.me().sought;
            self.ask_to_wait(sought.as_ref());
        } else {
            self.ask(Ask::new(AskKind::Look));
        }
        self.hand_over();
        false
    }

    /// Leaves the world.
    pub fn finish(&mut self, _limit: Duration) {
        if self.phase == Phase::Inside {
            self.ask(Ask::new(AskKind::Finish));
            // SAFETY: as in `hand_over`; nobody waits for the next turn.
            unsafe {
                (*self.slot).asked = self.asked as u32;
                (*self.slot).phase.store(2, Ordering::Release);
                (*self.slot).turn.store(0, Ordering::Release);
            }
            ring(self.memory.top());
        }
        self.phase = Phase::Left;
    }

    /// Turns without anything to do; the simulator gives way by itself.
    #[must_use]
    pub const fn idle_turns(&self) -> u32 {
        0
    }

    /// How many ranks share this host: none, as far as waiting is concerned.
    #[must_use]
    pub const fn ranks_here(&self) -> usize {
        1
    }
}

fn nothing() -> Completion {
    Completion {
        kind: Kind::Received,
        context: 0,
        length: 0,
        buffer: std::ptr::null_mut(),
        tag: None,
        data: None,
        source: usize::MAX,
        trouble: None,
    }
}

/// A completion of a message with this head.
fn seen(head: &Head, like: Completion) -> Completion {
    Completion {
        length: head.length,
        tag: head.is_tagged.then_some(head.tag),
        data: head.has_data.then_some(head.data),
        source: head.source as usize,
        trouble: None,
        ..like
    }
}

/// Ends the process with the reason on its standard error.
fn give_up(reason: &str) -> ! {
    eprintln!("wiretwin: {reason}");
    std::process::abort();
}
