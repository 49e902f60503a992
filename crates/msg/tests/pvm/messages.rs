//! Messages between tasks, whichever way they go.

use wiretwin_msg::pvm::PvmError;
use wiretwin_msg::pvm::task::{Event, Routing, SpawnRequest, Value, Where};

use crate::testbed::{Machine, Sent, octets, packed};

#[test]
fn tasks_enrol_and_get_the_numbers_of_their_hosts() {
    let mut machine = Machine::new(2);
    let tids: Vec<u32> = [1, 2, 1].into_iter().map(|host| machine.enrolled(host).1.0).collect();
    assert_eq!(tids, [0x4_0001, 0x8_0001, 0x4_0002]);
    assert_eq!(machine.task(0).parent(), Err(PvmError::NoParent));
}

#[test]
fn messages_come_in_order_and_are_taken_by_sender_and_tag() {
    for routing in [Routing::Allow, Routing::Never, Routing::Direct] {
        let mut machine = Machine::new(2);
        machine.routing = routing;
        let ((one, first), (two, second), (three, third)) =
            (machine.enrolled(1), machine.enrolled(2), machine.enrolled(2));
        for number in 0..20_u8 {
            let tag = u32::from(number % 2);
            machine.send(one, second, tag, &vec![number; 5000]);
            machine.send(three, second, tag, &[100 + number; 4]);
        }
        for number in (1..20).step_by(2) {
            let message = machine.recv(two, Some(first), Some(1));
            assert_eq!((octets(&message), message.from), (vec![number; 5000], first));
        }
        for number in 0..20 {
            let message = machine.recv(two, Some(third), None);
            assert_eq!(octets(&message), [100 + number; 4], "any tag");
        }
        for number in (0..20).step_by(2) {
            assert_eq!(octets(&machine.recv(two, None, None)), vec![number; 5000], "any of all");
        }
        assert_eq!(machine.task(two).probe(None, None), None);
        let direct = machine.wire.iter().any(|sent| matches!(sent, Sent::Fragment { .. }));
        assert_eq!(direct, routing == Routing::Direct);
    }
}

#[test]
fn a_task_that_wants_no_connection_refuses_it_and_is_reached_through_the_daemons() {
    let mut machine = Machine::new(2);
    machine.routing = Routing::Never;
    let (two, second) = machine.enrolled(2);
    machine.routing = Routing::Direct;
    let (one, _) = machine.enrolled(1);
    for number in 0..3 {
        machine.send(one, second, number, b"text");
    }
    for number in 0..3 {
        assert_eq!(machine.recv(two, None, None).head.tag, number);
    }
    assert!(machine.task_events.contains(&(one, Event::RouteRefused(second))));
    assert!(!machine.wire.iter().any(|sent| matches!(sent, Sent::Fragment { .. })));
}

#[test]
fn two_that_ask_each_other_at_once_get_one_connection() {
    for hold in [true, false] {
        let mut machine = Machine::new(2);
        (machine.routing, machine.hold) = (Routing::Direct, hold);
        let ((one, first), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
        machine.send(one, second, 1, b"there");
        machine.send(two, first, 2, b"back");
        assert_eq!(octets(&machine.recv(two, Some(first), Some(1))), b"there\0\0\0");
        assert_eq!(octets(&machine.recv(one, Some(second), Some(2))), b"back");
        assert!(machine.task(one).has_route(second) && machine.task(two).has_route(first));
        let opened = |process, tid| {
            machine.task_events.iter().filter(|&&event| event == (process, Event::RouteOpen(tid))).count()
        };
        assert_eq!((opened(one, second), opened(two, first)), (1, 1));
    }
}

#[test]
fn a_message_that_waits_keeps_its_place_while_a_connection_is_granted() {
    // The one that grants sends at once, before the other has connected; then over the connection.
    for (hold, expected) in [(true, [0, 1, 2]), (false, [1, 2, 0])] {
        let mut machine = Machine::new(2);
        (machine.routing, machine.hold) = (Routing::Direct, hold);
        let ((one, _), (two, second)) = (machine.enrolled(1), machine.enrolled(2));
        let first = machine.tid(one).expect("enrolled");
        machine.send(one, second, 9, b"");
        machine.run_until(|machine| {
            let asked = |sent: &Sent| matches!(sent, Sent::Packet { packet, .. } if packet.head.is_some_and(|head| head.tag == 0x8003_0002));
            machine.wire.iter().any(asked)
        });
        // So long that it takes its time through the daemons.
        machine.send(two, first, 0, &[0; 60_000]);
        machine.run_until(|machine| machine.task(two).has_route(first));
        machine.send(two, first, 1, b"");
        machine.send(two, first, 2, b"");
        let tags: Vec<u32> = (0..3).map(|_| machine.recv(one, Some(second), None).head.tag).collect();
        assert_eq!(tags, expected);
    }
}

#[test]
fn one_message_to_many_comes_once_to_each_and_not_to_its_sender() {
    for routing in [Routing::Allow, Routing::Direct] {
        let mut machine = Machine::new(3);
        machine.routing = routing;
        let all: Vec<_> = [1, 1, 2, 2, 3].into_iter().map(|host| machine.enrolled(host)).collect();
        let (sender, own) = all[0];
        // With one of them there is a connection.
        machine.send(sender, all[2].1, 1, b"");
        machine.recv(all[2].0, None, Some(1));
        let text = vec![7; 9000];
        let mut tids: Vec<_> = all.iter().map(|one| one.1).collect();
        tids.push(all[4].1);
        let before = machine.wire.len();
        let many = packed(&text);
        assert_eq!(machine.call(sender, |task, now| task.mcast(now, &tids, 5, many)), Ok(Value::Done));
        for &(process, _) in &all[1..] {
            let message = machine.recv(process, Some(own), Some(5));
            assert_eq!(octets(&message), text);
        }
        machine.finish();
        assert!(all.iter().all(|one| machine.task(one.0).probe(None, None).is_none()));
        let fragments = |sent: &&Sent| matches!(sent, Sent::Fragment { .. });
        let direct = machine.wire[before..].iter().filter(fragments).count();
        assert_eq!(direct, if routing == Routing::Direct { 3 } else { 0 });
    }
}

#[test]
fn children_are_started_in_turn_on_the_hosts_and_know_their_parent_and_siblings() {
    let mut machine = Machine::new(3);
    let (parent, own) = machine.enrolled(1);
    let wanted =
        SpawnRequest { file: "child".into(), arguments: vec!["x".into()], place: Where::Anywhere, count: 5 };
    let Ok(Value::Spawned(tids, errors)) = machine.call(parent, |task, now| task.spawn(now, &wanted)) else {
        panic!("children")
    };
    let hosts: Vec<u32> = tids.iter().map(|tid| tid.host()).collect();
    assert_eq!((hosts, errors), (vec![2, 2, 3, 3, 1], vec![]));
    for &tid in &tids {
        machine.send(parent, tid, 3, b"hello");
    }
    machine.finish();
    for &tid in &tids {
        let child = machine.process(tid).expect("it runs");
        assert_eq!(machine.task(child).parent(), Ok(own));
        assert_eq!(machine.task(child).siblings(), tids);
        assert!(machine.task(child).probe(Some(own), Some(3)).is_some(), "kept until it was there");
    }
    let Ok(Value::Tasks(tasks)) = machine.call(parent, |task, now| task.tasks(now, None)) else {
        panic!("tasks")
    };
    assert_eq!(tasks.len(), 6);
    assert!(tasks.iter().all(|one| tids.contains(&one.tid) == (one.parent == own)));
    let one = tids[0];
    let Ok(Value::Tasks(tasks)) = machine.call(parent, |task, now| task.tasks(now, Some(one))) else {
        panic!("one")
    };
    assert_eq!((tasks.len(), tasks[0].tid, &tasks[0].name[..]), (1, one, "child"));
    let Ok(Value::Hosts(hosts)) = machine.call(parent, |task, now| task.config(now)) else { panic!("hosts") };
    let names: Vec<_> = hosts.iter().map(|host| &host.name[..]).collect();
    assert_eq!(names, ["h1", "h2", "h3"]);
}

#[test]
fn groups_over_all_hosts_meet_at_barriers_and_broadcast() {
    let mut machine = Machine::new(3);
    let all: Vec<_> = [1, 2, 3, 2].into_iter().map(|host| machine.enrolled(host)).collect();
    for (expected, &(process, _)) in all.iter().enumerate() {
        assert_eq!(machine.number(process, |task, now| task.joingroup(now, "ring")), expected as i32);
    }
    let count = |machine: &Machine| {
        machine.daemon(1).tasks().chain(machine.daemon(2).tasks()).chain(machine.daemon(3).tasks()).count()
    };
    assert_eq!(count(&machine), 5, "one server, whoever asked first");
    let calls: Vec<_> = all[..3]
        .iter()
        .map(|&(process, _)| {
            machine.with_task(process, |task, now| task.barrier(now, "ring", None)).expect("asked")
        })
        .collect();
    machine.finish();
    assert!(calls.iter().zip(&all).all(|(&call, &(process, _))| machine.answer(process, call).is_none()));
    assert_eq!(machine.number(all[3].0, |task, now| task.barrier(now, "ring", Some(4))), 4);
    machine.finish();
    for (&call, &(process, _)) in calls.iter().zip(&all) {
        assert_eq!(machine.answer(process, call), Some(Ok(Value::Number(4))));
    }
    let text = packed(b"all of you");
    assert_eq!(machine.number(all[1].0, |task, now| task.bcast(now, "ring", 6, text)), 3, "to so many");
    for &(process, _) in [&all[0], &all[2], &all[3]] {
        assert_eq!(octets(&machine.recv(process, Some(all[1].1), Some(6))), b"all of you\0\0");
    }
    assert_eq!(machine.number(all[0].0, |task, now| task.gettid(now, "ring", 2)), all[2].1.0 as i32);
    assert_eq!(machine.number(all[0].0, |task, now| task.getinst(now, "ring", all[3].1)), 3);
    machine.kill(all[2].0);
    machine.finish();
    assert_eq!(machine.number(all[0].0, |task, now| task.gsize(now, "ring")), 3, "the dead are no members");
}
