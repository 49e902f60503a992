//! What calls return: line by line as `tests/golden/pvm/calls.txt`, which the real PVM has written.

use std::cell::Cell;
use std::fmt::{Display, Write};

use wiretwin_msg::pvm::daemon::DATAGRAM_OCTETS;
use wiretwin_msg::pvm::pack::Packed;
use wiretwin_msg::pvm::task::{CallId, Notice, SpawnRequest, Task, Value, Where};
use wiretwin_msg::pvm::{Encoding, Octets, PvmError, ReceiveBuffer, SendBuffer, Tid};
use wiretwin_units::SimTime;

use crate::testbed::{Machine, packed};

const EXPECTED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/pvm/calls.txt"));
const NONE: Tid = Tid(0x4_0FFF);
const FAR: Tid = Tid(0x14_0001);

struct Said {
    text: String,
    machine: Machine,
    one: usize,
    mine: Tid,
}

fn code<T>(result: Result<T, PvmError>) -> i32 {
    result.map_or_else(PvmError::code, |_| 0)
}

impl Said {
    fn say(&mut self, what: &str, value: impl Display) {
        writeln!(self.text, "{what} {value}").expect("a string");
    }

    /// A call, and the number it comes to.
    fn call(
        &mut self,
        what: &str,
        call: impl FnOnce(&mut Task<Octets>, SimTime) -> Result<CallId, PvmError>,
    ) {
        let value = self.machine.number(self.one, call);
        self.say(what, value);
    }

    fn packing(&mut self, name: &str, encoding: Encoding) {
        let doubles = vec![0_f64; 1200];
        let mut pack = |what: &str, fill: &dyn Fn(&mut SendBuffer<'_>) -> Result<(), PvmError>| {
            let mut buffer = SendBuffer::new(encoding);
            fill(&mut buffer).expect("it fits");
            writeln!(self.text, "{name} {what} {}", buffer.length().get()).expect("a string");
        };
        pack("byte 5", &|buffer| buffer.pack(&[0_u8; 5], 5, 1));
        pack("byte 1 stride 0", &|buffer| buffer.pack(&[0_u8; 5], 1, 0));
        pack("short 3", &|buffer| buffer.pack(&[1_i16, -2, 3], 3, 1));
        pack("int 3", &|buffer| buffer.pack(&[1, 2, 3], 3, 1));
        pack("int 2 stride 2", &|buffer| buffer.pack(&[1, 2, 3], 2, 2));
        pack("int 3 stride 0", &|buffer| buffer.pack(&[1, 2, 3], 3, 0));
        pack("int 0", &|buffer| buffer.pack(&[1, 2, 3], 0, 1));
        pack("long 3", &|buffer| buffer.pack(&[1_i64, 2, -5], 3, 1));
        pack("float 3", &|buffer| buffer.pack(&[1_f32, 2.0, 3.0], 3, 1));
        pack("cplx 2", &|buffer| buffer.pack(&[[1_f32, 2.0], [3.0, 4.0]], 2, 1));
        pack("dcplx 2", &|buffer| buffer.pack(&[[0_f64; 2]; 2], 2, 1));
        pack("double 1200", &|buffer| buffer.pack(&doubles, 1200, 1));
        pack("int double 1200", &|buffer| {
            buffer.pack(&[1], 1, 1)?;
            buffer.pack(&doubles, 1200, 1)
        });
        pack("string hello", &|buffer| buffer.pack_string("hello"));
    }

    fn unpacking(&mut self, name: &str, encoding: Encoding) {
        let ints = [1, 2, 3].map(Cell::new);
        let mut buffer = SendBuffer::new(encoding);
        buffer.pack_in_place(&ints, 3, 1).expect("three");
        for _ in 0..2 {
            let (packed, mine) = (buffer.packed(), self.mine);
            self.machine.with_task(self.one, |task, now| task.send(now, mine, 7, packed)).expect("to itself");
        }
        let mut received = || {
            let message = self.machine.recv(self.one, None, Some(7));
            ReceiveBuffer::new(&message.packed()).expect("octets")
        };
        let (mut first, mut second) = (received(), received());
        self.say(&format!("{name} received"), first.length().get());
        self.say(&format!("{name} first double"), code(first.unpack(&mut [0_f64], 1, 1)));
        self.say(&format!("{name} second double"), code(first.unpack(&mut [0_f64], 1, 1)));
        self.say(&format!("{name} int after it"), code(first.unpack(&mut [0_i32], 1, 1)));
        let mut back = [0; 4];
        self.say(&format!("{name} four of three"), code(second.unpack(&mut back, 4, 1)));
        self.say(&format!("{name} the third"), back[2]);
    }

    fn spawn(&mut self, what: &str, file: &str, place: Where, count: u32) {
        let wanted = SpawnRequest { file: file.into(), arguments: Vec::new(), place, count };
        match self.machine.call(self.one, |task, now| task.spawn(now, &wanted)) {
            Ok(Value::Spawned(tids, errors)) => {
                self.say(what, tids.len());
                let errors: Vec<_> = errors.iter().map(|error| error.code().to_string()).collect();
                self.say("why", errors.join(" "));
            }
            other => self.say(what, code(other)),
        }
    }

    fn requests(&mut self) {
        let mine = self.mine;
        let nothing = || packed(b"");
        let code_of_send = |said: &mut Self, to, tag| {
            code(said.machine.with_task(said.one, |task, now| task.send(now, to, tag, nothing())))
        };
        for (what, to, tag) in [
            ("send to the daemon", Tid::MY_DAEMON, 3),
            ("send tag -3", mine, -3_i32 as u32),
            ("send to no host", FAR, 3),
        ] {
            let value = code_of_send(self, to, tag);
            self.say(what, value);
        }
        let parent = code(self.machine.task(self.one).parent());
        self.say("parent", parent);
        self.spawn("spawn none", "x", Where::Anywhere, 0);
        self.spawn("spawn no file", "nosuchfile", Where::Anywhere, 2);
        self.spawn("spawn no host", "x", Where::Host("nohost".into()), 1);
        self.call("pstat no task", |task, now| task.pstat(now, NONE));
        self.call("pstat no host", |task, now| task.pstat(now, FAR));
        self.call("pstat itself", |task, now| task.pstat(now, mine));
        self.call("pstat no task's number", |task, now| task.pstat(now, Tid::MY_DAEMON));
        self.call("mstat no host", |task, now| task.mstat(now, "nohost"));
        self.call("tasks no host", |task, now| task.tasks(now, Some(FAR)));
        self.call("kill no task", |task, now| task.sendsig(now, NONE, 15));
        for (what, whom) in [("notify nobody", &[][..]), ("notify the dead", &[NONE])] {
            let done = |task: &mut Task<Octets>, now| task.notify(now, Notice::TaskExit, 12, whom);
            let value = code(self.machine.with_task(self.one, done));
            self.say(what, value);
        }
        let word = self.machine.recv(self.one, None, Some(12));
        let mut told = [0_u32];
        ReceiveBuffer::new(&word.packed()).expect("octets").unpack(&mut told, 1, 1).expect("a number");
        self.say("told of", format!("{:x}", told[0]));
    }

    fn mailbox(&mut self) {
        let mine = self.mine;
        self.call("recvinfo nothing", |task, now| task.recvinfo(now, "nothing", 0, 0));
        self.call("recvinfo no name", |task, now| task.recvinfo(now, "", 0, 0));
        self.call("delinfo nothing", |task, now| task.delinfo(now, "nothing", 0, 0));
        let mut buffer = SendBuffer::new(Encoding::Default);
        buffer.pack(&[mine.0], 1, 1).expect("one");
        let packed: Packed<Octets> = buffer.packed();
        for (what, name, flags) in [("putinfo", "entry", 0), ("putinfo several", "more", 2)] {
            for _ in 0..2 {
                self.call(what, |task, now| task.putinfo(now, name, &packed, flags));
            }
        }
        let entry = self.machine.call(self.one, |task, now| task.recvinfo(now, "entry", 0, 0));
        self.say("recvinfo", u8::from(entry.is_ok()));
        self.say("the entry", u8::from(entry == Ok(Value::Entry(packed))));
        self.call("recvinfo from 1 on", |task, now| task.recvinfo(now, "entry", 1, 8));
        self.call("delinfo", |task, now| task.delinfo(now, "entry", 0, 0));
        self.call("delinfo again", |task, now| task.delinfo(now, "entry", 0, 0));
    }

    fn groups(&mut self) {
        let mine = self.mine;
        self.call("join no name", |task, now| task.joingroup(now, ""));
        self.call("join", |task, now| task.joingroup(now, "g"));
        self.call("join again", |task, now| task.joingroup(now, "g"));
        self.call("gsize", |task, now| task.gsize(now, "g"));
        self.call("gsize no group", |task, now| task.gsize(now, "h"));
        self.call("getinst", |task, now| task.getinst(now, "g", mine));
        self.call("getinst no member", |task, now| task.getinst(now, "g", NONE));
        let tid = self.machine.number(self.one, |task, now| task.gettid(now, "g", 0));
        self.say("gettid", u8::from(tid == mine.0 as i32));
        self.call("gettid no instance", |task, now| task.gettid(now, "g", 9));
        self.call("barrier no group", |task, now| task.barrier(now, "h", Some(1)));
        for (what, count) in [("barrier of one", Some(1)), ("barrier of all", None)] {
            // How many there were is not told by the library.
            let value = self.machine.number(self.one, |task, now| task.barrier(now, "g", count));
            self.say(what, value.min(0));
        }
        self.call("bcast alone", |task, now| task.bcast(now, "g", 5, packed(b"")));
        self.call("bcast no group", |task, now| task.bcast(now, "h", 5, packed(b"")));
        self.call("leave", |task, now| task.lvgroup(now, "g"));
        self.call("leave again", |task, now| task.lvgroup(now, "g"));
        self.call("exit", Task::exit);
    }
}

#[test]
fn every_call_returns_what_pvm_returns() {
    let mut machine = Machine::new(1);
    let (one, mine) = machine.enrolled(1);
    let mut said = Said { text: String::new(), machine, one, mine };
    said.packing("default", Encoding::Default);
    said.packing("raw", Encoding::Raw);
    said.unpacking("default", Encoding::Default);
    said.unpacking("raw", Encoding::Raw);
    said.unpacking("in place", Encoding::InPlace);
    let cells = [0, 0].map(Cell::new);
    let mut buffer = SendBuffer::new(Encoding::InPlace);
    said.say("in place stride 2", code(buffer.pack_in_place(&cells, 1, 2)));
    said.say("in place string", code(buffer.pack_string("no")));
    said.requests();
    said.mailbox();
    said.groups();
    for (number, (ours, theirs)) in said.text.lines().zip(EXPECTED.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(said.text.lines().count(), EXPECTED.lines().count());
    assert_eq!(DATAGRAM_OCTETS.get(), 4080);
}
