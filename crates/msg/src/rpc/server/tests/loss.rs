//! A client and a server over a net that loses, doubles and reorders datagrams.

use alloc::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::rpc::client::{self, Client, Completed, Failure, Growth, Mode, Retry};

enum Datagram {
    Call(Call<Octets>),
    Reply(Reply<Octets>),
    /// The program has carried a call out.
    Carried(RequestId),
}

/// What the net does with one datagram: how long each of its copies is on the way. None is a loss.
type Fate = Vec<u64>;

struct Outcome {
    completed: Vec<Completed<Octets>>,
    /// How often each call was carried out, by its arguments.
    effects: BTreeMap<Vec<u8>, u32>,
}

/// Makes so many calls at once and lets the net do as it is told, then deliver all that is left.
fn run(calls: u8, cache: usize, fates: &[Fate], carrying_ms: u64) -> Outcome {
    let retry = Retry { first: Span::from_ms(100), growth: Growth::Doubling { until: Span::from_ms(800) } };
    let transport = client::Transport::Datagram { retry, largest: client::DATAGRAM_OCTETS };
    let total = Span::from_s(5);
    let credential = Credential::NONE;
    let config = client::Config { program: PROGRAM, version: 1, credential, total, transport };
    let mut caller = Client::new(config, 100);
    let mut server = server(Config { cache, ..CONFIG });
    let mut fates = fates.iter();
    let mut air: BTreeMap<(SimTime, u64), Datagram> = BTreeMap::new();
    let mut outcome = Outcome { completed: Vec::new(), effects: BTreeMap::new() };
    let (mut now, mut number) = (NOW, 0);
    for call in 0..calls {
        caller.call(now, 1, octets(&[call; 4]), Mode::Blocking).expect("44 octets");
    }
    for _ in 0..100_000 {
        let mut send = |datagram: &dyn Fn() -> Datagram| {
            for &us in fates.next().unwrap_or(&Vec::from([1000])) {
                number += 1;
                air.insert((now + Span::from_us(us), number), datagram());
            }
        };
        let next = loop {
            match caller.poll_output() {
                Output::Transmit(client::Transmit::Datagram(call)) => send(&|| Datagram::Call(call.clone())),
                Output::Deliver(completed) => outcome.completed.push(completed),
                Output::Timeout(next) => break next,
                _ => {}
            }
        };
        let mut carried = Vec::new();
        loop {
            match server.poll_output() {
                Output::Transmit(Transmit::Datagram(_, reply)) => send(&|| Datagram::Reply(reply.clone())),
                Output::Deliver(request) => {
                    *outcome.effects.entry(request.arguments.to_vec()).or_default() += 1;
                    carried.push(request.id);
                }
                Output::Timeout(_) => break,
                _ => {}
            }
        }
        for id in carried {
            number += 1;
            air.insert((now + Span::from_ms(carrying_ms), number), Datagram::Carried(id));
        }
        let arrival = air.keys().next().map(|&(time, _)| time);
        let Some(then) = [next, arrival].into_iter().flatten().min() else { return outcome };
        now = then;
        if arrival == Some(now) {
            match air.pop_first().expect("the first").1 {
                Datagram::Call(call) => server.handle_datagram(now, 9, Incoming::Call(call)),
                Datagram::Reply(reply) => caller.handle_reply(now, reply),
                Datagram::Carried(id) => {
                    let done = server.reply(now, id, Ok(octets(&id.0.to_be_bytes())));
                    assert!(done, "it is open");
                }
            }
        } else {
            caller.handle_timeout(now);
        }
    }
    panic!("it does not end");
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    // Up to three copies, on the way for up to a second: longer than several waits.
    prop::collection::vec(prop::collection::vec(0u64..1_000_000, 0..4), 0..60)
}

proptest! {
    #[test]
    fn with_a_cache_no_call_is_carried_out_twice_and_each_ends(
        calls in 1u8..6, fates in fates(), carrying_ms in 0u64..500,
    ) {
        let outcome = run(calls, 64, &fates, carrying_ms);
        prop_assert!(outcome.effects.values().all(|&times| times == 1), "{:?}", outcome.effects);
        let ended: BTreeSet<_> = outcome.completed.iter().map(|completed| completed.call).collect();
        prop_assert_eq!((ended.len(), outcome.completed.len()), (calls.into(), calls.into()), "each ends once");
        for completed in outcome.completed {
            match completed.result {
                Ok(_) | Err(Failure::TimedOut { .. }) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn with_a_small_cache_every_call_still_ends(calls in 1u8..6, fates in fates(), cache in 0usize..3) {
        let outcome = run(calls, cache, &fates, 50);
        prop_assert_eq!(outcome.completed.len(), usize::from(calls));
    }
}

#[test]
fn without_a_cache_a_call_that_comes_twice_is_carried_out_twice() {
    let twice = [Vec::from([1000, 2000])];
    for (cache, times) in [(0, 2), (4, 1)] {
        assert_eq!(run(1, cache, &twice, 0).effects, BTreeMap::from([([0; 4].to_vec(), times)]));
    }
}

#[test]
fn when_every_datagram_is_lost_the_call_ends_in_its_total_time() {
    let outcome = run(1, 4, &alloc::vec![Vec::new(); 100], 0);
    // At 0, 0.1, 0.3, 0.7, 1.5, 2.3, 3.1, 3.9 and 4.7 s.
    let failure = Failure::TimedOut { after: Span::from_s(5), sent: 9 };
    assert_eq!(outcome.completed[0].result, Err(failure));
    assert!(outcome.effects.is_empty());
}
