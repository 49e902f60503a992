//! Arbitrary octets as PDUs of the user-level layer, and as calls of two hosts whose signalling a switch
//! carries, with messages that nobody sent among them.

use wiretwin_msg::fore::driver::{self, DEVICE, Transmit};
use wiretwin_msg::fore::switch::{self, Act};
use wiretwin_msg::fore::{
    Bandwidth, CallControl, CallId, Dataflow, Descriptor, Driver, Endpoint, Qos, RequestId, Want,
};
use wiretwin_msg::library::Content;
use wiretwin_msg::reliable::channel::{Channel, Config};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::cell::{VcId, Vci, Vpi};
use wiretwin_wire::spans::{Aal, Address, Repr, Resources};

#[allow(clippy::duplicate_mod, reason = "each check is a program of its own, but in the ordinary tests")]
#[path = "input.rs"]
mod input;
use input::Input;

const HOSTS: [Address; 2] = [Address([1; 8]), Address([2; 8])];

/// Panics if a machine does, or never ends, or if what was reserved for calls is more than there is.
pub fn check(octets: &[u8]) {
    channels(octets);
    calls(octets);
}

fn channels(octets: &[u8]) {
    let config = Config { window: 4, limit: Span::from_s(5), ..Config::default() };
    let mut one = Channel::new(config);
    let mut now = SimTime::ZERO;
    let step = usize::from(octets.first().copied().unwrap_or(0)) % 60 + 1;
    for piece in octets.chunks(step) {
        let mut body = Content::new();
        body.push_body(Payload::whole(MessageId(1), Bytes::new(9000)));
        one.write(now, &mut body);
        let mut pdu = Content::new();
        pdu.push_octets(piece);
        one.handle_pdu(now, &mut pdu);
        while !matches!(one.poll_output(), Output::Timeout(_)) {}
        if let Some(due) = one.deadline() {
            now = now.max(due);
            one.handle_timeout(now);
        }
    }
    // The peer says nothing from now on: that ends.
    for _ in 0..20 {
        let Some(due) = one.deadline() else { break };
        now = now.max(due);
        one.handle_timeout(now);
    }
    assert!(one.deadline().is_none() && !one.is_waiting(), "it waits for ever");
}

fn calls(octets: &[u8]) {
    let mut input = Input(octets);
    let mut now = SimTime::ZERO;
    let config = driver::Config { descriptors: 4, ..driver::Config::default() };
    let mut hosts = [0, 1].map(|epoch| Driver::new(config, epoch));
    let bandwidth = Bandwidth::new([1_000_000; 4]);
    let narrow = switch::Config { vcis: (32, 35), ..switch::Config::default() };
    let mut control = CallControl::new(narrow, 1, Address([9; 8]), HOSTS.to_vec(), bandwidth);
    hosts.iter_mut().for_each(|host| host.start(now));
    let mut number = 0;
    while !input.is_empty() {
        let (what, more) = (input.octet(), input.octet());
        let at = usize::from(what & 1);
        number += 1;
        let call = CallId(number);
        let descriptor = Descriptor(u32::from(more % 5));
        let flow = [Dataflow::Simplex, Dataflow::Duplex, Dataflow::Multicast][usize::from(more >> 4) % 3];
        let vc = VcId { vpi: Vpi::new(0).expect("a path"), vci: Vci(32 + u16::from(more % 8)) };
        let host = &mut hosts[at];
        // Each may be refused: that is a result, and no more.
        match (what >> 1) % 14 {
            0 => drop(host.open(DEVICE)),
            1 => {
                let _ = host.bind(descriptor, u32::from(input.word()), u32::from(more >> 4) % 3);
            }
            2 => {
                let _ = host.listen(descriptor, call);
            }
            3 => {
                let request = RequestId(u32::from(input.octet() % 8));
                let _ = host.accept(now, descriptor, descriptor, request, Qos::default(), flow, call);
            }
            4 | 5 => {
                let asap = u32::from(input.word());
                let target = u32::from(input.octet()) * 8;
                let qos = Qos { peak: Want { target, minimum: target / 2 }, ..Qos::default() };
                let to = Endpoint { nsap: HOSTS[1 - at], asap };
                let _ = host.connect(now, descriptor, to, qos, Aal::Type5, flow, call);
            }
            6 => {
                let _ = host.send(descriptor, Payload::whole(MessageId(1), Bytes::new(input.word().into())));
            }
            7 => {
                let _ = host.receive(descriptor, Bytes::new(more.into()), call);
            }
            8 => host.handle_pdu(vc, Payload::whole(MessageId(1), Bytes::new(more.into()))),
            9 => {
                let _ = host.close(now, descriptor);
            }
            10 => {
                let _ = host.bind_pvc(descriptor, vc, Aal::Type5);
            }
            11 => {
                let _ = host.connect_pvc(descriptor, vc, Aal::Type5, Resources::default());
            }
            12 => {
                // A message that nobody sent, if it is one.
                let length = input.0.len().min(usize::from(more));
                let (octets, rest) = input.0.split_at(length);
                input.0 = rest;
                if let Ok(message) = Repr::parse(octets) {
                    hosts[at].handle_signal(now, message);
                    control.handle_message(now, at as u32, message);
                }
            }
            _ => now += Span::from_ms(u64::from(more) * 50),
        }
        settle(now, &mut hosts, &mut control);
    }
    // Nobody does anything any more: that comes to an end, all requests answered or given up.
    for _ in 0..200 {
        let Some(due) = settle(now, &mut hosts, &mut control) else { break };
        now = now.max(due);
        control.handle_timeout(now);
        hosts.iter_mut().for_each(|host| host.handle_timeout(now));
    }
    for link in 0..4 {
        assert!(control.bandwidth().reserved(link) <= 1_000_000);
    }
}

/// Carries what is to be carried, in no time, until that is all; when somebody wants to be called next.
fn settle(now: SimTime, hosts: &mut [Driver; 2], control: &mut CallControl) -> Option<SimTime> {
    for _ in 0..10_000 {
        let mut due = None;
        let mut moved = false;
        for (port, host) in (0..).zip(hosts.iter_mut()) {
            loop {
                match host.poll_output() {
                    Output::Transmit(Transmit::Signal(message)) => {
                        moved = true;
                        control.handle_message(now, port, message);
                    }
                    Output::Timeout(time) => break due = due.into_iter().chain(time).min(),
                    _ => {}
                }
            }
        }
        loop {
            match control.poll_output() {
                Output::Transmit(Act::Signal { port, message }) => {
                    moved = true;
                    hosts[port as usize].handle_signal(now, message);
                }
                Output::Timeout(time) => break due = due.into_iter().chain(time).min(),
                _ => {}
            }
        }
        if !moved {
            return due;
        }
    }
    panic!("they go on for ever");
}
