//! Losses, ends in mid-message and hosts that go: the error that is named, and nothing that waits for ever.

use wiretwin_msg::pvm::daemon::{self, Timing};
use wiretwin_msg::pvm::task::{Event, Notice, Routing, SpawnRequest, State, Value, Where};
use wiretwin_msg::pvm::{PvmError, Tid};
use wiretwin_units::{SimTime, Span};

use crate::testbed::{Machine, octets, packed};

fn wanted(file: &str, place: Where, count: u32) -> SpawnRequest {
    SpawnRequest { file: file.into(), arguments: Vec::new(), place, count }
}

#[test]
fn a_lost_packet_is_sent_again_and_a_lost_acknowledgement_makes_no_copy() {
    let mut machine = Machine::new(2);
    let ((one, first), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
    machine.finish();
    let begun = machine.wire.len();
    // The third packet, the acknowledgement of its second copy, and that of the fourth.
    machine.lost = [begun + 4, begun + 6, begun + 10].into();
    let text: Vec<u8> = (0..40_000_u32).map(|at| at as u8).collect();
    machine.send(one, second, 1, &text);
    assert_eq!(octets(&machine.recv(two, Some(first), Some(1))), text);
    machine.finish();
    let again =
        machine.daemon_events.iter().filter(|event| event.1 == daemon::Event::SentAgain { host: 2 }).count();
    let repeated =
        machine.daemon_events.iter().filter(|event| event.1 == daemon::Event::Repeated { host: 1 }).count();
    assert_eq!((again, repeated), (3, 2));
}

#[test]
fn what_a_task_has_written_before_it_is_killed_comes() {
    for routing in [Routing::Allow, Routing::Direct] {
        let mut machine = Machine::new(2);
        machine.routing = routing;
        let ((one, first), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
        machine.send(one, second, 1, b"whole");
        machine.recv(two, None, None);
        machine.with_task(two, |task, now| task.notify(now, Notice::TaskExit, 77, &[first])).expect("a task");
        machine.send(one, second, 2, &[1; 100_000]);
        machine.kill(one);
        let word = machine.recv(two, None, Some(77));
        assert_eq!(octets(&word), first.0.to_be_bytes());
        machine.finish();
        // Through the daemon all of it was written before: it comes. Over the connection too.
        assert_eq!(machine.task(two).probe(None, None).map(|message| message.head.tag), Some(2));
        assert_eq!(machine.daemon(1).tasks().count(), 0);
        assert_eq!(machine.call(two, |task, now| task.pstat(now, first)), Err(PvmError::NoTask));
        // To whom is not there any more, a message goes and comes nowhere.
        machine.send(two, first, 3, b"lost");
        machine.finish();
        assert!(machine.daemon_events.iter().any(|event| event.1 == daemon::Event::NobodyThere(first)));
    }
}

#[test]
fn a_task_that_is_killed_in_mid_message_leaves_no_half_of_it() {
    for routing in [Routing::Allow, Routing::Direct] {
        for fragments in [1, 7, 24] {
            let mut machine = Machine::new(2);
            machine.routing = routing;
            let ((one, first), (two, second), (three, third)) =
                (machine.enrolled(1), machine.enrolled(2), machine.enrolled(1));
            for sender in [one, three] {
                machine.send(sender, second, 1, b"whole");
                machine.recv(two, None, None);
            }
            machine
                .with_task(two, |task, now| task.notify(now, Notice::TaskExit, 77, &[first]))
                .expect("a task");
            machine.finish();
            machine.send(one, second, 2, &[1; 100_000]);
            machine.kill_in_mid_message(one, fragments);
            assert_eq!(octets(&machine.recv(two, None, Some(77))), first.0.to_be_bytes(), "it is told");
            let text: Vec<u8> = (0..20_000_u32).map(|at| at as u8).collect();
            machine.send(three, second, 2, &text);
            assert_eq!(octets(&machine.recv(two, None, Some(2))), text, "nothing is before it or in it");
            machine.finish();
            assert!(machine.task(two).probe(None, None).is_none(), "{routing:?}, {fragments} fragments");
            assert_eq!(machine.call(two, |task, now| task.pstat(now, first)), Err(PvmError::NoTask));
            assert_eq!(machine.tid(three), Some(third));
        }
    }
}

#[test]
fn a_daemon_that_is_killed_in_mid_message_leaves_no_half_of_it() {
    let mut machine = Machine::new(3);
    let ((one, _), (two, second), (three, _)) =
        (machine.enrolled(1), machine.enrolled(2), machine.enrolled(3));
    let host = Tid::daemon(3).expect("a host");
    machine.with_task(two, |task, now| task.notify(now, Notice::HostDelete, 71, &[host])).expect("a host");
    machine.finish();
    machine.send(three, second, 2, &[1; 100_000]);
    // Some of its packets, not all of them, have come to the other daemon.
    let begun = machine.wire.len();
    machine.run_until(|machine| machine.wire.len() >= begun + 20);
    machine.dark.insert(3);
    machine.finish();
    assert!(machine.task(two).probe(None, Some(2)).is_none(), "no half of it");
    // The master finds it out as soon as it has something to say to it.
    let there = machine.with_task(one, |task, now| task.mstat(now, "h3")).expect("asked");
    let spawn = machine
        .with_task(one, |task, now| task.spawn(now, &wanted("child", Where::Host("h3".into()), 1)))
        .expect("asked");
    machine.finish();
    assert!(machine.answer(one, there).is_some(), "no call waits for ever");
    let failed = Value::Spawned(vec![], vec![PvmError::HostFail]);
    assert_eq!(machine.answer(one, spawn), Some(Ok(failed)));
    assert_eq!(octets(&machine.recv(two, None, Some(71))), host.0.to_be_bytes());
    machine.send(one, second, 2, b"more");
    assert_eq!(octets(&machine.recv(two, None, Some(2))), b"more");
    assert!(machine.task(two).probe(None, None).is_none());
    // The task on it has lost its daemon, or waits for nobody: it hears of it when it asks.
    assert!(matches!(machine.task(three).state(), State::Enrolled | State::Gone));
}

#[test]
fn a_receiver_that_is_gone_before_the_connection_is_there_holds_nobody_up() {
    let mut machine = Machine::new(2);
    machine.routing = Routing::Direct;
    let ((one, _), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
    machine.kill(two);
    machine.finish();
    let call = machine.send(one, second, 1, b"text");
    machine.finish();
    assert_eq!(machine.answer(one, call), Some(Ok(Value::Done)), "sent to nobody, as PVM says it");
    assert!(machine.task_events.contains(&(one, Event::RouteRefused(second))));
}

#[test]
fn a_host_that_does_not_answer_is_lost_after_three_minutes_with_all_that_waits_for_it() {
    let mut machine = Machine::new(3);
    let ((one, _), (two, second), (three, _)) =
        (machine.enrolled(1), machine.enrolled(2), machine.enrolled(3));
    machine.with_task(one, |task, now| task.notify(now, Notice::TaskExit, 70, &[second])).expect("a task");
    let host = Tid::daemon(2).expect("a host");
    machine.with_task(three, |task, now| task.notify(now, Notice::HostDelete, 71, &[host])).expect("a host");
    machine.finish();
    machine.dark.insert(2);
    let begun = machine.now;
    let status = machine.with_task(one, |task, now| task.pstat(now, second)).expect("a task");
    let spawn = wanted("child", Where::Host("h2".into()), 2);
    let there = machine.with_task(one, |task, now| task.spawn(now, &spawn)).expect("asked");
    let list = machine.with_task(one, |task, now| task.tasks(now, None)).expect("asked");
    machine.finish();
    assert_eq!(machine.answer(one, status), Some(Err(PvmError::HostFail)));
    let failed = Value::Spawned(vec![], vec![PvmError::HostFail; 2]);
    assert_eq!(machine.answer(one, there), Some(Ok(failed)));
    let Some(Ok(Value::Tasks(tasks))) = machine.answer(one, list) else { panic!("those of the others") };
    assert_eq!(tasks.len(), 2);
    let took = machine.now - begun;
    assert!(took > Span::from_s(180) && took < Span::from_s(210), "{took}");
    assert_eq!(octets(&machine.recv(one, None, Some(70))), second.0.to_be_bytes());
    assert_eq!(octets(&machine.recv(three, None, Some(71))), host.0.to_be_bytes());
    assert_eq!(machine.daemon(3).hosts().count(), 2, "the master has told the others");
    assert_eq!(machine.call(one, |task, now| task.mstat(now, "h2")), Err(PvmError::NoHost));
    assert_eq!(machine.call(one, |task, now| task.pstat(now, second)), Err(PvmError::NoTask));
    let Ok(Value::Spawned(tids, _)) =
        machine.call(one, |task, now| task.spawn(now, &wanted("child", Where::Anywhere, 2)))
    else {
        panic!("on those that are left")
    };
    assert!(tids.iter().all(|tid| tid.host() != 2));
    // The one that is cut off has lost its master in turn, once it has something to say.
    let _silent = machine.with_task(two, |task, now| task.recvinfo(now, "name", 0, 0)).expect("asked");
    machine.finish();
    assert!(machine.halted.contains(&2));
    assert_eq!(machine.task(two).state(), State::Gone);
}

#[test]
fn hosts_are_asked_whether_they_are_there() {
    let mut machine = Machine::with(2, Timing::default());
    machine.dark.insert(2);
    machine.run_until(|machine| machine.daemon(1).hosts().count() == 1);
    let seconds = (machine.now - SimTime::ZERO).as_ns() / 1_000_000_000;
    assert_eq!(seconds, 60 + 190, "nothing was sent for a minute, then nothing was heard");
}

#[test]
fn a_daemon_that_is_gone_is_an_error_for_all_that_its_tasks_ask() {
    let mut machine = Machine::new(2);
    let ((one, _), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
    machine.dark.insert(1);
    let waits = machine.with_task(two, |task, now| task.joingroup(now, "g")).expect("asked");
    machine.finish();
    assert_eq!(machine.answer(two, waits), Some(Err(PvmError::SysErr)), "the master is lost");
    let packed = packed(b"");
    assert_eq!(machine.with_task(two, |task, now| task.send(now, second, 1, packed)), Err(PvmError::SysErr));
    assert_eq!(machine.with_task(two, |task, now| task.config(now)), Err(PvmError::SysErr));
    assert!(machine.task_events.contains(&(two, Event::Lost(PvmError::SysErr))));
    assert_eq!(machine.task(one).state(), State::Enrolled, "its own daemon is there");
}

#[test]
fn removed_hosts_hear_it_and_a_halt_is_for_all() {
    let mut machine = Machine::new(3);
    let ((one, _), (two, _)) = (machine.enrolled(1), machine.enrolled(2));
    let names = ["h3", "h9", "h3", "h1"];
    let Ok(Value::Each(each)) = machine.call(two, |task, now| task.delhosts(now, &names)) else {
        panic!("each")
    };
    assert_eq!(each, [Ok(()), Err(PvmError::NoHost), Err(PvmError::DupHost), Err(PvmError::BadParam)]);
    machine.finish();
    assert!(machine.halted.contains(&3));
    assert_eq!((machine.daemon(1).hosts().count(), machine.daemon(2).hosts().count()), (2, 2));
    machine.with_task(two, |task, now| task.halt(now)).expect("enrolled");
    machine.finish();
    assert_eq!(machine.halted.len(), 3);
    assert!([one, two].iter().all(|&process| machine.task(process).state() == State::Gone));
    assert_eq!(machine.with_task(one, |task, now| task.delhosts(now, &[])), Err(PvmError::BadParam));
}

#[test]
fn a_server_that_cannot_be_started_is_an_error() {
    let mut machine = Machine::new(2);
    machine.files.clear();
    let (one, _) = machine.enrolled(1);
    for _ in 0..2 {
        assert_eq!(machine.call(one, |task, now| task.joingroup(now, "g")), Err(PvmError::SysErr));
    }
    let call = machine.with_task(one, |task, now| task.gsize(now, "g")).expect("asked");
    assert_eq!(machine.with_task(one, |task, now| task.gsize(now, "g")), Err(PvmError::Already));
    machine.finish();
    assert_eq!(machine.answer(one, call), Some(Err(PvmError::SysErr)));
}

#[test]
fn a_signal_ends_a_task_and_an_exit_is_told() {
    let mut machine = Machine::new(2);
    let ((one, first), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
    machine.with_task(one, |task, now| task.notify(now, Notice::TaskExit, 5, &[second])).expect("a task");
    assert_eq!(machine.call(one, |task, now| task.sendsig(now, second, 15)), Ok(Value::Done));
    assert_eq!(octets(&machine.recv(one, None, Some(5))), second.0.to_be_bytes());
    assert_eq!(machine.signals, [(second, 15)]);
    assert!(machine.task(two).tid().is_some(), "nobody has asked it");
    let (three, third) = machine.enrolled(2);
    machine.with_task(three, |task, now| task.notify(now, Notice::TaskExit, 6, &[first])).expect("a task");
    assert_eq!(machine.call(one, |task, now| task.exit(now)), Ok(Value::Done));
    assert_eq!(machine.with_task(one, |task, now| task.exit(now)), Err(PvmError::SysErr));
    assert_eq!(octets(&machine.recv(three, None, Some(6))), first.0.to_be_bytes());
    assert_eq!(machine.tid(three), Some(third));
}
