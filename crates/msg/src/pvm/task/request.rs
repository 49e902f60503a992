//! What a task asks of the virtual machine.

use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::{Body, CallId, Pending, State, Task, Value};
use crate::pvm::pack::{Packed, Signature};
use crate::pvm::system::{
    CONTEXT_TC, DB_DELETE, DB_GET, DB_PUT, Get, HOST_DELETE, MOST_TAG, Put, TASK_EXIT, tag,
};
use crate::pvm::{Head, Message, PvmError, Tid};

/// A host, as `pvm_config` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// The number of its daemon, without the bit that makes it one.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// What kind of machine it is.
    pub architecture: String,
    /// Its speed, in PVM's own unit.
    pub speed: i32,
}

/// A task, as `pvm_tasks` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its number.
    pub tid: Tid,
    /// Who started it; 0 for nobody.
    pub parent: Tid,
    /// Its host.
    pub host: Tid,
    /// Whether it is connected, and more.
    pub flags: i32,
    /// Its program.
    pub name: String,
    /// Its process.
    pub pid: i32,
}

/// Where tasks are to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// Wherever the virtual machine likes (`PvmTaskDefault`).
    Anywhere,
    /// On the host of this name (`PvmTaskHost`).
    Host(String),
    /// On hosts of this kind (`PvmTaskArch`).
    Architecture(String),
    /// Not on the host of this name (`PvmTaskHost | PvmHostCompl`).
    NotHost(String),
}

/// Tasks to be started (`pvm_spawn`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnRequest {
    /// The program.
    pub file: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The hosts on which they may be started.
    pub place: Where,
    /// How many.
    pub count: u32,
}

/// Of what word is wanted (`pvm_notify`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The end of each of these tasks (`PvmTaskExit`).
    TaskExit,
    /// The loss of each of these hosts (`PvmHostDelete`).
    HostDelete,
}

impl<B: Body> Task<B> {
    /// Starts tasks (`pvm_spawn`): [`Value::Spawned`].
    ///
    /// # Errors
    /// [`PvmError::BadParam`] for none; [`PvmError::SysErr`] outside the virtual machine, as for all below.
    pub fn spawn(&mut self, _now: SimTime, wanted: &SpawnRequest) -> Result<CallId, PvmError> {
        let count = i32::try_from(wanted.count).ok().filter(|&count| count > 0).ok_or(PvmError::BadParam)?;
        self.is_enrolled()?;
        let (flags, place) = match &wanted.place {
            Where::Anywhere => (0, ""),
            Where::Host(name) => (1, &name[..]),
            Where::Architecture(name) => (2, &name[..]),
            Where::NotHost(name) => (33, &name[..]),
        };
        let mut put = Put::new().text(&wanted.file).int(flags).text(place).int(count);
        put = put.int(wanted.arguments.len() as i32);
        for argument in &wanted.arguments {
            put = put.text(argument);
        }
        // Nobody gets output or trace; there are no variables.
        let parts = put.ints(&[0; 6]).int(0).parts();
        Ok(self.ask(tag::TM_SPAWN, parts, Pending::Spawn))
    }

    /// The hosts (`pvm_config`): [`Value::Hosts`].
    ///
    /// # Errors
    /// As [`Task::spawn`].
    pub fn config(&mut self, _now: SimTime) -> Result<CallId, PvmError> {
        self.is_enrolled()?;
        Ok(self.ask(tag::TM_CONFIG, Vec::new(), Pending::Hosts))
    }

    /// The tasks of all hosts, of a daemon's host, or one (`pvm_tasks`): [`Value::Tasks`], or
    /// [`PvmError::NoHost`].
    ///
    /// # Errors
    /// As [`Task::spawn`].
    pub fn tasks(&mut self, _now: SimTime, whose: Option<Tid>) -> Result<CallId, PvmError> {
        self.is_enrolled()?;
        // A daemon means its host.
        let whom = whose.map_or(Tid(0), |tid| if tid.is_daemon() { Tid(tid.host() << 18) } else { tid });
        Ok(self.ask(tag::TM_TASK, Put::new().tid(whom).parts(), Pending::Tasks))
    }

    /// Whether a task is there (`pvm_pstat`): [`Value::Done`], or [`PvmError::NoTask`].
    ///
    /// # Errors
    /// [`PvmError::BadParam`] for whom is no task.
    pub fn pstat(&mut self, _now: SimTime, whom: Tid) -> Result<CallId, PvmError> {
        self.task_wanted(whom)?;
        Ok(self.ask(tag::TM_PSTAT, Put::new().tid(whom).parts(), Pending::Done))
    }

    /// Whether a host is there (`pvm_mstat`): [`Value::Done`], [`PvmError::NoHost`] or
    /// [`PvmError::HostFail`].
    ///
    /// # Errors
    /// As [`Task::spawn`].
    pub fn mstat(&mut self, _now: SimTime, host: &str) -> Result<CallId, PvmError> {
        self.is_enrolled()?;
        Ok(self.ask(tag::TM_MSTAT, Put::new().text(host).parts(), Pending::Done))
    }

    /// Sends a task a signal (`pvm_sendsig`; `pvm_kill` is 15): [`Value::Done`], whether it is there or not.
    ///
    /// # Errors
    /// As [`Task::pstat`].
    pub fn sendsig(&mut self, _now: SimTime, whom: Tid, signal: i32) -> Result<CallId, PvmError> {
        self.task_wanted(whom)?;
        let parts = Put::new().tid(whom).int(signal).parts();
        Ok(self.ask(tag::TM_SENDSIG, parts, Pending::Signal))
    }

    /// Wants word of ends (`pvm_notify`): for each a message with this tag that carries its number. Of what
    /// is not there it comes at once.
    ///
    /// # Errors
    /// [`PvmError::BadParam`] for nobody, for a task that is none, and for a tag of 2^31 and more.
    pub fn notify(&mut self, _now: SimTime, what: Notice, tag: u32, whom: &[Tid]) -> Result<(), PvmError> {
        let wrong = what == Notice::TaskExit && whom.iter().any(|tid| !tid.is_task());
        if whom.is_empty() || wrong || tag > MOST_TAG {
            return Err(PvmError::BadParam);
        }
        self.is_enrolled()?;
        self.want_word(what, 0, tag, whom);
        Ok(())
    }

    pub(super) fn want_word(&mut self, what: Notice, context: u32, tag: u32, whom: &[Tid]) {
        let what = match what {
            Notice::TaskExit => TASK_EXIT,
            Notice::HostDelete => HOST_DELETE,
        };
        let words: Vec<i32> = whom.iter().map(|tid| tid.0 as i32).collect();
        let put = Put::new().int(what).word(context).word(tag).int(words.len() as i32);
        self.request(tag::TM_NOTIFY, 0, put.ints(&words).parts());
    }

    /// Puts a message into the mailbox (`pvm_putinfo`): [`Value::Number`], its index, or
    /// [`PvmError::Denied`].
    ///
    /// # Errors
    /// [`PvmError::BadParam`] without a name, or where the message is a handle.
    pub fn putinfo(
        &mut self,
        _now: SimTime,
        name: &str,
        packed: &Packed<B>,
        flags: u32,
    ) -> Result<CallId, PvmError> {
        if name.is_empty() {
            return Err(PvmError::BadParam);
        }
        self.is_enrolled()?;
        let head = Put::new().int(DB_PUT).tid(self.tid).text(name).int(-1).word(flags);
        // Its length, context, tag, wait, encoding, checksum, sender and receiver; then each piece.
        let mut put = head.int(packed.length().get() as i32).ints(&[0; 3]).word(packed.encoding.0);
        put = put.int(0).tid(self.tid).int(0);
        for part in &packed.parts {
            let octets = part.octets().ok_or(PvmError::BadParam)?;
            put = put.int(octets.len() as i32).octets(octets);
        }
        Ok(self.ask(tag::TM_DB, put.parts(), Pending::Number))
    }

    /// Reads a message of the mailbox (`pvm_recvinfo`): [`Value::Entry`], or [`PvmError::NotFound`].
    ///
    /// # Errors
    /// [`PvmError::BadParam`] without a name.
    pub fn recvinfo(
        &mut self,
        _now: SimTime,
        name: &str,
        index: u32,
        flags: u32,
    ) -> Result<CallId, PvmError> {
        let index = i32::try_from(index).ok().filter(|_| !name.is_empty()).ok_or(PvmError::BadParam)?;
        self.is_enrolled()?;
        let parts = self.entry_wanted(name, index, flags).parts();
        Ok(self.ask(tag::TM_DB, parts, Pending::Entry))
    }

    /// Deletes an entry of the mailbox (`pvm_delinfo`): [`Value::Number`], [`PvmError::NotFound`] or
    /// [`PvmError::Denied`].
    ///
    /// # Errors
    /// As [`Task::recvinfo`].
    pub fn delinfo(&mut self, _now: SimTime, name: &str, index: u32, flags: u32) -> Result<CallId, PvmError> {
        let index = i32::try_from(index).ok().filter(|_| !name.is_empty()).ok_or(PvmError::BadParam)?;
        self.is_enrolled()?;
        let put = Put::new().int(DB_DELETE).tid(self.tid).text(name).int(index).word(flags);
        Ok(self.ask(tag::TM_DB, put.parts(), Pending::Number))
    }

    /// Removes hosts (`pvm_delhosts`): [`Value::Each`].
    ///
    /// # Errors
    /// [`PvmError::BadParam`] for none.
    pub fn delhosts(&mut self, _now: SimTime, names: &[&str]) -> Result<CallId, PvmError> {
        if names.is_empty() {
            return Err(PvmError::BadParam);
        }
        self.is_enrolled()?;
        let mut put = Put::new().int(names.len() as i32);
        for name in names {
            put = put.text(name);
        }
        Ok(self.ask(tag::TM_DELHOST, put.parts(), Pending::Each))
    }

    /// Ends the virtual machine (`pvm_halt`): nobody answers.
    ///
    /// # Errors
    /// As [`Task::spawn`].
    pub fn halt(&mut self, _now: SimTime) -> Result<(), PvmError> {
        self.is_enrolled()?;
        self.request(tag::TM_HALT, 0, Vec::new());
        Ok(())
    }

    /// Leaves the virtual machine (`pvm_exit`): [`Value::Done`].
    ///
    /// # Errors
    /// As [`Task::spawn`].
    pub fn exit(&mut self, _now: SimTime) -> Result<CallId, PvmError> {
        self.is_enrolled()?;
        self.state = State::Leaving;
        Ok(self.ask(tag::TM_EXIT, Vec::new(), Pending::Exit))
    }

    pub(super) fn entry_wanted(&self, name: &str, index: i32, flags: u32) -> Put {
        Put::new().int(DB_GET).tid(self.tid).text(name).int(index).word(flags)
    }

    fn task_wanted(&self, whom: Tid) -> Result<(), PvmError> {
        if whom.is_task() { self.is_enrolled() } else { Err(PvmError::BadParam) }
    }

    /// An answer of the daemon.
    pub(super) fn answered(
        &mut self,
        now: SimTime,
        message: &Message<B>,
        get: &mut Get,
    ) -> Result<(), PvmError> {
        let (call, pending) = self.pending.remove(&message.head.wait).ok_or(PvmError::BadMsg)?;
        let read = self.read_answer(now, call, &pending, get);
        let result = match pending {
            // Nobody traces.
            Pending::Tracer => {
                self.enrolled();
                return Ok(());
            }
            Pending::Exit => {
                self.pending.insert(0, (call, Pending::Exit));
                self.lose(PvmError::SysErr, true);
                return Ok(());
            }
            Pending::FindServer | Pending::StartServer => {
                self.server_told(now, call, matches!(pending, Pending::FindServer), read);
                return Ok(());
            }
            _ => read,
        };
        self.answer(call, result);
        Ok(())
    }

    fn read_answer(
        &mut self,
        now: SimTime,
        _call: CallId,
        pending: &Pending,
        get: &mut Get,
    ) -> Result<Value<B>, PvmError> {
        match pending {
            Pending::Tracer | Pending::Exit | Pending::Signal => Ok(Value::Done),
            Pending::Done => number(get.int()?).map(|_| Value::Done),
            Pending::Number => number(get.int()?).map(Value::Number),
            Pending::Each => {
                let each = |code| if code < 0 { Err(PvmError::of_answer(code)) } else { Ok(()) };
                Ok(Value::Each(get.list(Get::int)?.into_iter().map(each).collect()))
            }
            Pending::Spawn | Pending::StartServer => {
                let count = number(get.int()?)?;
                let (mut tids, mut errors) = (Vec::new(), Vec::new());
                for _ in 0..count {
                    match get.int()? {
                        error if error < 0 => errors.push(PvmError::of_answer(error)),
                        tid => tids.push(Tid(tid as u32)),
                    }
                }
                self.tell_siblings(now, &tids);
                Ok(Value::Spawned(tids, errors))
            }
            Pending::Hosts => {
                let (count, _architectures) = (number(get.int()?)?, get.int()?);
                let mut hosts = Vec::new();
                for _ in 0..count {
                    let (tid, name, architecture, speed) = (get.tid()?, get.text()?, get.text()?, get.int()?);
                    get.word()?;
                    hosts.push(HostInfo { tid, name, architecture, speed });
                }
                Ok(Value::Hosts(hosts))
            }
            Pending::Tasks => {
                number(get.int()?)?;
                let mut tasks = Vec::new();
                while let Ok(tid) = get.tid() {
                    let (parent, host, flags) = (get.tid()?, get.tid()?, get.int()?);
                    let (name, pid) = (get.text()?, get.int()?);
                    tasks.push(TaskInfo { tid, parent, host, flags, name, pid });
                }
                Ok(Value::Tasks(tasks))
            }
            Pending::Entry | Pending::FindServer => {
                number(get.int()?)?;
                let length = number(get.int()?)?;
                for _ in 0..3 {
                    get.word()?;
                }
                let encoding = Signature(get.word()?);
                for _ in 0..3 {
                    get.word()?;
                }
                let (mut parts, mut read) = (Vec::new(), 0);
                while read < length {
                    let octets = get.sized()?;
                    read += octets.len() as i32;
                    if !octets.is_empty() {
                        parts.push(B::from_octets(octets));
                    }
                }
                Ok(Value::Entry(Packed { encoding, parts }))
            }
        }
    }

    /// Tells tasks whom they were started with.
    fn tell_siblings(&mut self, now: SimTime, tids: &[Tid]) {
        if tids.is_empty() {
            return;
        }
        let words: Vec<i32> = tids.iter().map(|tid| tid.0 as i32).collect();
        let parts = Put::new().int(words.len() as i32).ints(&words).parts();
        let head = Head { encoding: Signature::XDR, tag: tag::TC_SIBLINGS, context: CONTEXT_TC, wait: 0 };
        let message = Message { to: Tid(0), from: self.tid, head, parts };
        self.send_to_many(now, tids, &message);
    }
}

/// A number, or the error that it is.
pub(super) fn number(value: i32) -> Result<i32, PvmError> {
    if value < 0 { Err(PvmError::of_answer(value)) } else { Ok(value) }
}
