use alloc::string::ToString;
use alloc::vec::Vec;

use wiretwin_proto::{MessageId, Payload};
use wiretwin_units::{Bytes, Span};
use wiretwin_wire::cell::{VcId, Vci, Vpi};
use wiretwin_wire::spans::{Aal, Connection, Outcome, Repr, Resources, Step};

use super::driver::{self, DEVICE, Done};
use super::switch::{Config, Event};
use super::testbed::{Bed, Passing, address, at};
use super::types::{Dataflow, Descriptor, Error, Qos, RequestId, Want};

fn bed(hosts: u32) -> Bed {
    Bed::new(hosts, Config::default())
}

fn channel(vci: u16) -> VcId {
    VcId { vpi: Vpi::new(0).expect("a path"), vci: Vci(vci) }
}

fn payload(bytes: u64) -> Payload {
    Payload::whole(MessageId(bytes), Bytes::new(bytes))
}

#[test]
fn a_host_learns_its_address_from_the_switch() {
    let bed = bed(2);
    assert_eq!([bed.hosts[0].address(), bed.hosts[1].address()], [Some(address(0)), Some(address(1))]);
    assert_eq!(bed.events[0], [driver::Event::Up]);
}

#[test]
fn a_simplex_connection_carries_pdus_one_way_and_keeps_their_borders() {
    let mut bed = bed(2);
    let (client, server) = bed.simplex(0, 1, Qos::default());
    for bytes in [10, 4096] {
        bed.send(0, client, bytes).expect("it sends");
    }
    assert_eq!(bed.receive(1, server, 5000), Some(payload(10)));
    // A short buffer gets a part; the rest comes with the next call, and not the PDU after it.
    assert_eq!(bed.receive(1, server, 4000).map(|one| one.length), Some(Bytes::new(4000)));
    let rest = bed.receive(1, server, 5000).expect("the rest");
    assert_eq!((rest.start, rest.length), (Bytes::new(4000), Bytes::new(96)));
    assert_eq!(bed.send(1, server, 1), Err(Error::OutState { wants: "connected to send" }));
    assert_eq!(bed.receive(0, client, 1), None);
}

#[test]
fn set_up_takes_the_control_processor_once_for_each_message() {
    let mut bed = bed(2);
    let began = bed.now;
    let server = bed.bound(1, 3000, 1);
    let client = bed.bound(0, 0, 0);
    bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Simplex).expect("it asks");
    bed.pass(Span::from_us(2020));
    bed.listen(1, server);
    // To the switch, 2 ms there, to the other host.
    assert_eq!(bed.now, began + Span::from_us(2020));
}

#[test]
fn a_duplex_connection_has_a_circuit_each_way() {
    let mut bed = bed(2);
    let server = bed.bound(1, 3000, 1);
    let client = bed.bound(0, 0, 0);
    let call = bed.connect(0, client, at(1, 3000), Qos::peak(10_000), Dataflow::Duplex).expect("it asks");
    bed.pass(Span::from_ms(50));
    assert!(!bed.is_connected(0, call));
    let accepted = bed.accept(1, server, Dataflow::Duplex);
    assert!(bed.is_connected(0, call) && bed.is_connected(1, accepted), "{:?}", bed.done);
    bed.send(0, client, 7).expect("there");
    bed.send(1, server, 8).expect("and back");
    assert_eq!(
        (bed.receive(1, server, 99), bed.receive(0, client, 99)),
        (Some(payload(7)), Some(payload(8)))
    );
    assert_eq!(bed.control.calls(), 2);
    // Only what was asked for there is reserved.
    assert_eq!((bed.control.bandwidth().reserved(0), bed.control.bandwidth().reserved(2)), (10_000_000, 0));
    bed.hosts[0].close(bed.now, client).expect("it closes");
    bed.run();
    assert_eq!((bed.control.calls(), bed.control.channels(), bed.control.bandwidth().reserved(0)), (0, 0, 0));
}

#[test]
fn a_tree_grows_leaf_by_leaf_and_every_leaf_gets_a_copy() {
    let mut bed = bed(4);
    let root = bed.bound(0, 0, 0);
    let mut leaves = Vec::new();
    for host in 1..4 {
        let leaf = bed.bound(host, 3000, 1);
        let to = at(host as u32, 3000);
        let call = bed.connect(0, root, to, Qos::peak(5_000), Dataflow::Multicast).expect("it asks");
        bed.pass(Span::from_ms(50));
        bed.accept(host, leaf, Dataflow::Multicast);
        assert!(bed.is_connected(0, call), "{host}: {:?}", bed.done);
        leaves.push(leaf);
    }
    assert_eq!(bed.control.bandwidth().reserved(0), 5_000_000, "once on the way to the switch");
    bed.send(0, root, 9).expect("it sends");
    for host in 1..4 {
        assert_eq!(bed.receive(host, leaves[host - 1], 99), Some(payload(9)));
    }
    // The first leaf goes: the tree stays.
    bed.hosts[1].close(bed.now, leaves[0]).expect("it closes");
    bed.run();
    assert_eq!(bed.events[0].last(), Some(&driver::Event::Gone { descriptor: root }));
    bed.send(0, root, 10).expect("it sends");
    assert_eq!(bed.receive(2, leaves[1], 99), Some(payload(10)));
    bed.hosts[0].close(bed.now, root).expect("it closes");
    bed.run();
    assert_eq!((bed.control.calls(), bed.control.channels()), (0, 0));
    assert_eq!(bed.receive(3, leaves[2], 99), Some(payload(10)), "what has come stays");
    assert_eq!(bed.receive(3, leaves[2], 99), None);
}

#[test]
fn bandwidth_is_granted_lowered_and_refused() {
    let mut bed = bed(3);
    bed.simplex(0, 1, Qos::peak(60_000));
    let ask = |bed: &mut Bed, from: usize, target, minimum| {
        let server = bed.bound(2, 0, 1);
        let asap = bed.hosts[2].access_point(server).expect("bound");
        let client = bed.bound(from, 0, 0);
        let qos = Qos { peak: Want { target, minimum }, ..Qos::default() };
        let call = bed.connect(from, client, at(2, asap), qos, Dataflow::Simplex).expect("it asks");
        bed.pass(Span::from_ms(50));
        (server, call)
    };
    let (_, call) = ask(&mut bed, 0, 50_000, 31_000);
    assert_eq!(bed.error_of(0, call), Some(Error::Refused { outcome: Outcome::NoResources }));
    let (server, call) = ask(&mut bed, 0, 50_000, 30_000);
    bed.accept(2, server, Dataflow::Simplex);
    let selected = Resources { peak_kbit_s: 30_000, ..Resources::default() };
    assert!(bed.done[0].contains(&Done::Connected { call, selected }), "{:?}", bed.done[0]);
    // Who asks for nothing gets a circuit on a line that is full.
    let (server, call) = ask(&mut bed, 0, 0, 0);
    bed.accept(2, server, Dataflow::Simplex);
    assert!(bed.is_connected(0, call));
    // Another host's line to the switch is free; the one to host 2 has 60 Mbit/s left.
    let (_, call) = ask(&mut bed, 1, 60_001, 60_001);
    assert_eq!(bed.error_of(1, call), Some(Error::Refused { outcome: Outcome::NoResources }));
    assert_eq!(bed.refusals.len(), 2);
}

#[test]
fn channels_that_are_all_given_out_are_named_as_the_reason() {
    let mut bed = Bed::new(2, Config { vcis: (32, 33), ..Config::default() });
    let (first, _) = bed.simplex(0, 1, Qos::default());
    bed.simplex(0, 1, Qos::default());
    let server = bed.bound(1, 3000, 1);
    let client = bed.bound(0, 0, 0);
    let ask = |bed: &mut Bed| bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Simplex);
    let call = ask(&mut bed).expect("it asks");
    bed.run();
    assert_eq!(bed.error_of(0, call), Some(Error::Refused { outcome: Outcome::NoVc }));
    // One that is given back is given out again.
    bed.hosts[0].close(bed.now, first).expect("it closes");
    bed.run();
    let call = ask(&mut bed).expect("it asks again");
    bed.pass(Span::from_ms(50));
    bed.accept(1, server, Dataflow::Simplex);
    assert!(bed.is_connected(0, call));
}

#[test]
fn a_call_that_nobody_takes_is_refused() {
    let mut bed = bed(2);
    for (to, outcome) in [(at(7, 3000), Outcome::BadDestination), (at(1, 3000), Outcome::Failed)] {
        let client = bed.bound(0, 0, 0);
        let call = bed.connect(0, client, to, Qos::default(), Dataflow::Simplex).expect("it asks");
        bed.run();
        assert_eq!(bed.error_of(0, call), Some(Error::Refused { outcome }));
        assert_eq!((bed.control.calls(), bed.control.channels()), (0, 0));
    }
    // One that is never answered: the switch gives up after its time.
    let server = bed.bound(1, 3000, 1);
    let client = bed.bound(0, 0, 0);
    let began = bed.now;
    let call = bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Simplex).expect("it asks");
    bed.run();
    assert_eq!(bed.error_of(0, call), Some(Error::Refused { outcome: Outcome::Failed }));
    assert!(bed.now - began < Span::from_s(40));
    // Who takes it too late is told that it is over.
    let request = bed.listen(1, server);
    let late = bed.call();
    let now = bed.now;
    bed.hosts[1]
        .accept(now, server, server, request, Qos::default(), Dataflow::Simplex, late)
        .expect("there");
    bed.run();
    assert_eq!(bed.events[1].last(), Some(&driver::Event::Gone { descriptor: server }));
}

#[test]
fn a_full_queue_of_requests_refuses_more() {
    let mut bed = bed(4);
    let server = bed.bound(3, 3000, 2);
    let mut calls = Vec::new();
    for host in 0..3 {
        let client = bed.bound(host, 0, 0);
        calls.push(bed.connect(host, client, at(3, 3000), Qos::default(), Dataflow::Simplex).expect("asks"));
    }
    bed.pass(Span::from_ms(50));
    assert_eq!(bed.error_of(2, calls[2]), Some(Error::Refused { outcome: Outcome::Failed }));
    // They are told in their order and may be answered in another; another descriptor takes one.
    let (first, second) = (bed.listen(3, server), bed.listen(3, server));
    let other = bed.bound(3, 0, 0);
    for (by, request) in [(other, second), (server, first)] {
        let (call, now) = (bed.call(), bed.now);
        let flow = Dataflow::Simplex;
        bed.hosts[3].accept(now, server, by, request, Qos::default(), flow, call).expect("it takes it");
        bed.pass(Span::from_ms(50));
    }
    assert!(bed.is_connected(0, calls[0]) && bed.is_connected(1, calls[1]));
}

#[test]
fn lost_messages_of_signalling_are_repeated() {
    // Each of the messages of a set-up and of a clearing is lost once.
    for lost in 1..=8 {
        let mut bed = bed(2);
        bed.lose = [bed.signals + lost].to_vec();
        let server = bed.bound(1, 3000, 1);
        let client = bed.bound(0, 0, 0);
        let call = bed.connect(0, client, at(1, 3000), Qos::peak(1_000), Dataflow::Simplex).expect("it asks");
        bed.pass(Span::from_s(7));
        bed.accept(1, server, Dataflow::Simplex);
        assert!(bed.is_connected(0, call), "message {lost}: {:?}", bed.done);
        bed.hosts[0].close(bed.now, client).expect("it closes");
        bed.run();
        let left = (bed.control.calls(), bed.control.channels(), bed.control.bandwidth().reserved(0));
        assert_eq!(left, (0, 0, 0), "message {lost}");
    }
}

#[test]
fn permanent_circuits_need_no_call() {
    let mut bed = bed(2);
    let (out, into) = ((0, channel(40)), (1, channel(50)));
    bed.control.add_permanent(out, into, 80_000).expect("a free channel");
    assert_eq!(bed.control.add_permanent(out, (1, channel(51)), 0), Err(Outcome::NoVc));
    assert_eq!(bed.control.add_permanent((0, channel(31)), (1, channel(51)), 0), Err(Outcome::NoVc));
    assert_eq!(
        bed.control.add_permanent((0, channel(41)), (9, channel(51)), 0),
        Err(Outcome::BadDestination)
    );
    let more = bed.control.add_permanent((0, channel(41)), (1, channel(51)), 80_000);
    assert_eq!(more, Err(Outcome::NoResources));
    bed.drain();
    let (one, other) = (bed.bound(0, 0, 0), bed.bound(1, 0, 0));
    let nothing = Resources::default();
    bed.hosts[0].connect_pvc(one, channel(40), Aal::Type5, nothing).expect("it is attached");
    bed.hosts[1].bind_pvc(other, channel(50), Aal::Type5).expect("it is attached");
    let taken = Error::BadChannel { vpi: 0, vci: 50 };
    assert_eq!(bed.hosts[1].bind_pvc(other, channel(50), Aal::Type5), Err(taken));
    assert_eq!(
        bed.hosts[0].connect_pvc(one, channel(42), Aal::Type2, nothing),
        Err(Error::BadAal { aal: Aal::Type2 })
    );
    bed.send(0, one, 5).expect("it sends");
    bed.hosts[0].send_to(one, payload(6), channel(40)).expect("the same");
    bed.run();
    assert_eq!(bed.receive(1, other, 99), Some(payload(5)));
    assert_eq!(bed.receive(1, other, 99), Some(payload(6)));
    bed.hosts[0].disconnect_pvc(one, channel(40)).expect("it was attached");
    assert_eq!(bed.hosts[0].disconnect_pvc(one, channel(40)), Err(Error::BadChannel { vpi: 0, vci: 40 }));
    bed.hosts[1].unbind_pvc(other, channel(50)).expect("it was attached");
    bed.control.remove_permanent(out, into).expect("it was there");
    assert_eq!(bed.control.remove_permanent(out, into), Err(Outcome::Failed));
    let reserved = [0, 3].map(|link| bed.control.bandwidth().reserved(link));
    assert_eq!((bed.control.channels(), reserved), (0, [0, 0]));
}

#[test]
fn every_error_of_a_call_names_what_is_wrong() {
    let mut bed = bed(2);
    let now = bed.now;
    let host = &mut bed.hosts[0];
    assert_eq!(host.open("/dev/le0"), Err(Error::NoDevice));
    let (fresh, _) = host.open(DEVICE).expect("it opens");
    let call = super::CallId(1);
    let simplex = Dataflow::Simplex;
    let nobody = Descriptor(99);
    assert_eq!(host.bind(nobody, 0, 0), Err(Error::BadDescriptor { descriptor: 99 }));
    assert_eq!(host.bind(fresh, 1025, 0), Err(Error::BadSap { asap: 1025, reserved: 1025 }));
    let wants = |error: Result<(), Error>| match error {
        Err(Error::OutState { wants }) => wants,
        other => panic!("{other:?}"),
    };
    assert!(wants(host.listen(fresh, call)).contains("bound with a queue"));
    let connect = |host: &mut super::Driver, aal, qos, flow| {
        host.connect(now, fresh, at(1, 3000), qos, aal, flow, call)
    };
    assert!(wants(connect(host, Aal::Type5, Qos::default(), simplex)).contains("bound without a queue"));
    assert_eq!(host.bind(fresh, 3000, 0), Ok(3000));
    assert!(wants(host.bind(fresh, 3001, 0).map(drop)).contains("unbound"));
    let (second, _) = host.open(DEVICE).expect("it opens");
    assert_eq!(host.bind(second, 3000, 0), Err(Error::Bound { asap: 3000 }));
    for aal in [Aal::Null, Aal::Type1, Aal::Type2] {
        assert_eq!(connect(host, aal, Qos::default(), simplex), Err(Error::BadAal { aal }));
    }
    let qos = Qos { peak: Want { target: 1, minimum: 2 }, ..Qos::default() };
    assert_eq!(connect(host, Aal::Type5, qos, simplex), Err(Error::BadQos));
    let none = RequestId(0);
    assert_eq!(
        host.accept(now, fresh, fresh, none, Qos::default(), simplex, call),
        Err(Error::NoRequest { request: 0 })
    );
    assert!(wants(host.send(fresh, payload(1))).contains("connected to send"));
    assert!(wants(host.receive(fresh, Bytes::new(1), call)).contains("connected to receive"));
    assert_eq!(host.send_to(fresh, payload(1), channel(40)), Err(Error::BadChannel { vpi: 0, vci: 40 }));
    connect(host, Aal::Type3, Qos::default(), simplex).expect("types 3 and 4 are one");
    assert!(wants(connect(host, Aal::Type4, Qos::default(), simplex)).contains("connects once"));
    host.close(now, fresh).expect("it closes");
    assert_eq!(host.close(now, fresh), Err(Error::BadDescriptor { descriptor: 0 }));
    bed.drain();
    assert_eq!(bed.error_of(0, call), Some(Error::Closed));
    let host = &mut bed.hosts[0];
    for _ in 0..63 {
        host.open(DEVICE).expect("room");
    }
    assert_eq!(host.open(DEVICE), Err(Error::NoBuffers { most: 64 }));
    let mut alone = super::Driver::new(driver::Config::default(), 1);
    let (one, _) = alone.open(DEVICE).expect("it opens");
    alone.bind(one, 0, 0).expect("it binds");
    let asked = alone.connect(now, one, at(1, 3000), Qos::default(), Aal::Type5, simplex, call);
    assert_eq!(asked.map_err(|error| error.to_string()), Err("no switch has been heard of".into()));
}

#[test]
fn a_pdu_that_is_too_long_is_refused_and_one_without_room_is_lost_without_a_word() {
    let mut bed = bed(2);
    let (client, server) = bed.simplex(0, 1, Qos::default());
    let (bytes, most) = (Bytes::new(4097), Bytes::new(4096));
    assert_eq!(bed.send(0, client, 4097), Err(Error::TooLong { bytes, most }));
    for _ in 0..513 {
        bed.hosts[0].send(client, payload(4096)).expect("it goes");
    }
    bed.run();
    assert_eq!(bed.events[1].iter().filter(|one| **one == driver::Event::Dropped).count(), 1);
    let mut came = 0;
    while bed.receive(1, server, 4096).is_some() {
        came += 1;
    }
    assert_eq!(came, 512);
}

#[test]
fn a_flow_that_is_not_that_of_the_request_is_refused() {
    let mut bed = bed(2);
    let server = bed.bound(1, 3000, 1);
    let client = bed.bound(0, 0, 0);
    bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Simplex).expect("it asks");
    bed.pass(Span::from_ms(50));
    let request = bed.listen(1, server);
    let (call, now) = (bed.call(), bed.now);
    let taken = bed.hosts[1].accept(now, server, server, request, Qos::default(), Dataflow::Multicast, call);
    assert_eq!(taken, Err(Error::BadFlow));
    let taken = bed.hosts[1].accept(now, server, server, request, Qos::default(), Dataflow::Simplex, call);
    assert_eq!(taken, Ok(()));
    bed.run();
    let again = bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Multicast);
    assert_eq!(again, Err(Error::BadFlow));
}

#[test]
fn a_switch_that_starts_anew_takes_all_switched_circuits_with_it() {
    let mut bed = bed(2);
    let (client, server) = bed.simplex(0, 1, Qos::default());
    let call = bed.call();
    bed.hosts[1].receive(server, Bytes::new(1), call).expect("it waits");
    for host in 0..2 {
        let message = Repr::StatusIndication { switch_epoch: 2, host: address(host), switch: address(99) };
        bed.post(Passing::ToHost(host, message));
    }
    bed.run();
    assert_eq!(bed.events[0].last(), Some(&driver::Event::Restarted));
    assert!(matches!(bed.send(0, client, 1), Err(Error::OutState { .. })));
    assert_eq!(bed.error_of(1, call), Some(Error::Closed));
}

#[test]
fn who_waits_when_its_circuit_goes_is_told() {
    let mut bed = bed(2);
    let (client, server) = bed.simplex(0, 1, Qos::default());
    let call = bed.call();
    bed.hosts[1].receive(server, Bytes::new(1), call).expect("it waits");
    bed.hosts[0].close(bed.now, client).expect("it closes");
    bed.run();
    assert_eq!(bed.error_of(1, call), Some(Error::Closed));
    assert_eq!(bed.events[1].last(), Some(&driver::Event::Gone { descriptor: server }));
}

#[test]
fn every_message_in_every_state_is_taken_or_named_as_garbage() {
    let connection = |sap| Connection {
        destination: address(1),
        source: address(0),
        destination_sap: sap,
        source_sap: 2048,
    };
    let messages = |connection: Connection| {
        let (resources, vc, outcome, aal) = (Resources::default(), channel(32), Outcome::Ok, Aal::Type5);
        let (desired, minimum) = (resources, resources);
        let mut list = [
            Repr::StatusRequest { host_epoch: 1 },
            Repr::StatusIndication { switch_epoch: 1, host: address(0), switch: address(9) },
            Repr::StatusResponse { host_epoch: 1, host: address(0) },
            Repr::VciRange { lowest: 32, highest: 1023 },
        ]
        .to_vec();
        for second in [false, true] {
            list.extend([
                Repr::Open { indication: second, connection, aal, desired, minimum, must: false, vc },
                Repr::Multi { indication: second, connection, aal, desired, minimum, vc },
                Repr::Opened { confirmation: second, connection, outcome, resources, vc },
                Repr::MultiOpened { confirmation: second, connection, outcome, resources, vc },
                Repr::Add { indication: second, leaf: connection, tree: connection },
                Repr::Added { confirmation: second, connection, outcome, resources },
            ]);
            for step in [Step::Request, Step::Indication, Step::Response, Step::Confirmation] {
                let outcome = (!step.asks()).then_some(outcome);
                list.push(Repr::Close { by_receiver: second, step, connection, outcome });
            }
        }
        list
    };
    // No call, one that is asked for, one that is there, one that is being given back.
    for stage in 0..4 {
        for sap in [3000, 3001] {
            for message in messages(connection(sap)) {
                for to_host in [None, Some(0), Some(1)] {
                    let mut bed = bed(2);
                    let server = bed.bound(1, 3000, 1);
                    let client = bed.bound(0, 0, 0);
                    if stage > 0 {
                        bed.connect(0, client, at(1, 3000), Qos::default(), Dataflow::Simplex).expect("asks");
                        bed.pass(Span::from_ms(50));
                    }
                    if stage > 1 {
                        bed.accept(1, server, Dataflow::Simplex);
                    }
                    if stage > 2 {
                        bed.hosts[0].close(bed.now, client).expect("it closes");
                        bed.drain();
                    }
                    match to_host {
                        Some(host) => bed.post(Passing::ToHost(host, message)),
                        None => bed.post(Passing::ToSwitch(0, message)),
                    }
                    bed.run();
                    for host in 0..2 {
                        let descriptor = if host == 0 { client } else { server };
                        // Closed already, where the test has done it.
                        let _ = bed.hosts[host].close(bed.now, descriptor);
                    }
                    bed.run();
                    let asks_itself = to_host.is_none();
                    assert!(bed.control.calls() == 0 || asks_itself, "stage {stage}, {message:?}");
                }
            }
        }
    }
}

#[test]
fn a_control_processor_with_too_much_to_do_loses_messages() {
    let mut bed = Bed::new(2, Config { backlog: 3, ..Config::default() });
    for _ in 0..10 {
        bed.post(Passing::ToSwitch(0, Repr::StatusRequest { host_epoch: 1 }));
    }
    bed.run();
    assert_eq!(bed.refusals.iter().filter(|one| **one == Event::Overrun).count(), 7);
}
