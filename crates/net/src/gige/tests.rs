use super::*;

const NOTHING: Adapter = Adapter {
    bus_setup: Span::ZERO,
    bus_byte: Span::ZERO,
    frame: Span::ZERO,
    send_frames: 1 << 20,
    receive: Bytes::new(1 << 30),
    receive_frames: u32::MAX,
    coalesce_frames: 1,
    coalesce: Span::ZERO,
    pause: false,
};

fn config(adapter: Adapter) -> Config {
    let (duplex, propagation) = (Duplex::Full, Span::from_ns(50));
    Config { rate: BitRate::bit_s(1_000_000_000), duplex, propagation, adapter, switch: None }
}

fn backoff(station: StationId) -> Stream {
    Stream::derive(7, &format!("gige/{station}"))
}

/// What came (when, where, which), which were lost, and the network.
type Ran = (Vec<(u64, u32, usize)>, Vec<usize>, Gige<usize>);

/// Sends these frames (when, from, to, octets) and runs to the end.
fn run(config: Config, stations: u32, frames: &[(u64, u32, u32, u64)]) -> Ran {
    let mut network = Gige::new(config, stations, backoff);
    let (mut came, mut lost) = (Vec::new(), Vec::new());
    let mut now = SimTime::ZERO;
    let mut drain = |network: &mut Gige<usize>, now: SimTime| loop {
        match network.poll_output() {
            Output::Deliver { station, payload, stamps } => {
                let Stamps { fetched, there, sent, gone, came: whole, stored, taken } = stamps;
                assert!([fetched, there, sent, gone, whole, stored, taken, now].is_sorted(), "{stamps:?}");
                came.push((now.as_ps() / 1000, station, payload));
            }
            Output::Lost { payload, .. } => lost.push(payload),
            Output::Timeout(next) => return next,
        }
    };
    for (number, &(at, from, to, octets)) in frames.iter().enumerate() {
        let at = SimTime::from_ps(at * 1000);
        while let Some(next) = drain(&mut network, now).filter(|next| *next <= at) {
            now = next;
            network.handle_timeout(now);
        }
        now = at;
        assert!(network.offer(now, from, to, Bytes::new(octets), number), "there is room");
    }
    while let Some(next) = drain(&mut network, now) {
        now = next;
        network.handle_timeout(now);
    }
    let counters = network.counters();
    assert_eq!(
        counters.taken,
        counters.delivered + counters.lost + counters.lost_in_switch + counters.given_up,
        "none is missing"
    );
    (came, lost, network)
}

#[test]
fn frames_follow_each_other_at_the_rate_of_the_line() {
    let (came, ..) = run(config(NOTHING), 2, &[(0, 0, 1, 1518), (0, 0, 1, 1518), (0, 0, 1, 20)]);
    // 1518 octets take 12 144 ns, preamble and gap 160; the shortest frame has 64.
    assert_eq!(came, [(12_194, 1, 0), (24_498, 1, 1), (12_304 * 2 + 512 + 50, 1, 2)]);
}

#[test]
fn both_ways_at_once_do_not_meet_but_on_the_bus() {
    let frames = [(0, 0, 1, 1518), (0, 1, 0, 1518)];
    let (came, ..) = run(config(NOTHING), 2, &frames);
    assert_eq!(came, [(12_194, 1, 0), (12_194, 0, 1)]);
    // A bus of 8 ns a byte is as slow as the line; what came goes before what is to go.
    let slow = Adapter { bus_byte: Span::from_ns(8), bus_setup: Span::from_ns(100), ..NOTHING };
    let (came, ..) = run(config(slow), 2, &frames);
    let bus = 12_144 + 100;
    assert_eq!(came, [(bus + 12_194 + bus, 1, 0), (bus + 12_194 + bus, 0, 1)]);
}

#[test]
fn the_bus_bounds_a_stream_when_it_is_slower_than_the_line() {
    // 100 frames of 9018 octets over 10 ns a byte and 2 us of the adapter's own.
    let slow = Adapter { bus_byte: Span::from_ns(10), frame: Span::from_us(2), ..NOTHING };
    let frames = vec![(0, 0, 1, 9_018); 100];
    let (came, ..) = run(config(slow), 2, &frames);
    let (last, _, _) = came[99];
    let each = 90_180 + 2_000;
    assert_eq!(last, 100 * each + 72_144 + 50 + each, "each after the other, and once through");
}

#[test]
fn a_host_is_told_of_several_frames_at_once() {
    let adapter = Adapter { coalesce_frames: 3, coalesce: Span::from_us(100), ..NOTHING };
    let (came, _, network) = run(config(adapter), 2, &[(0, 0, 1, 64); 5]);
    let third = 3 * 672 - 160 + 50;
    // The fourth waits for a hundred microseconds, and the fifth with it.
    let fourth = 4 * 672 - 160 + 50 + 100_000;
    let times: Vec<u64> = came.iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [third, third, third, fourth, fourth]);
    assert_eq!(network.counters().interrupts, 2);
}

#[test]
fn a_slow_receiver_loses_frames_or_stops_its_sender() {
    let slow =
        Adapter { bus_byte: Span::ZERO, frame: Span::from_us(20), receive: Bytes::new(8_000), ..NOTHING };
    // Only the receiver is slow: what goes out costs it nothing here, so the sender's frames are offered apart.
    let frames: Vec<_> = (0..40).map(|number| (number * 20_000, 0, 1, 1518)).collect();
    let (came, lost, _) = run(config(slow), 2, &frames);
    assert_eq!((came.len(), lost.len()), (40, 0), "one at a time it keeps up");
    // Three senders through a switch to one: the switch's port and the receiver are too small for all.
    let switch =
        Switch { forwarding: Forwarding::Stored, latency: Span::from_us(2), port: Bytes::new(20_000) };
    let three: Vec<_> = (0..60).map(|number| (0, number % 3, 3, 1518)).collect();
    let through =
        Config { switch: Some(switch), ..config(Adapter { receive: Bytes::new(1 << 20), ..NOTHING }) };
    let (came, lost, network) = run(through, 4, &three);
    assert_eq!(came.len() + lost.len(), 60);
    assert_eq!(network.counters().lost_in_switch, lost.len() as u64);
    assert!(!lost.is_empty());
    let mut order: Vec<_> =
        came.iter().filter(|(.., which)| which % 3 == 0).map(|(.., which)| *which).collect();
    assert!(order.is_sorted(), "frames of one sender keep their order");
    order.dedup();
    assert_eq!(order.len(), came.iter().filter(|(.., which)| which % 3 == 0).count());
}

#[test]
fn pause_keeps_what_would_be_lost() {
    // While the bus stores a long frame, short ones fill the receiver's memory.
    let adapter = Adapter { bus_byte: Span::from_ns(4), receive: Bytes::new(10_000), ..NOTHING };
    let mut frames = vec![(0, 0, 1, 64); 41];
    frames[0].3 = 9_018;
    let fast = |pause| Config { rate: BitRate::bit_s(4_000_000_000), ..config(Adapter { pause, ..adapter }) };
    let (_, lost, network) = run(fast(false), 2, &frames);
    assert_eq!((lost.len(), network.counters().pauses), (25, 0), "fifteen fit beside it");
    let (came, lost, network) = run(fast(true), 2, &frames);
    assert_eq!((came.len(), lost.len(), network.counters().pauses), (41, 0, 1));
    assert!(came.iter().map(|(.., which)| *which).is_sorted());
}

#[test]
fn pause_is_asked_for_again_while_there_is_no_room() {
    // A host that takes nothing for a second: many times the longest pause.
    let adapter = Adapter { receive: Bytes::new(1_000), receive_frames: 1, pause: true, ..NOTHING };
    let mut network = Gige::new(config(adapter), 2, backoff);
    for number in 0..40 {
        assert!(network.offer(SimTime::ZERO, 0, 1, Bytes::new(64), number), "there is room");
    }
    let until = SimTime::ZERO + Span::from_s(1);
    let mut now = SimTime::ZERO;
    let (mut came, mut lost) = (0, 0);
    while now <= until {
        network.handle_timeout(now);
        now = loop {
            match network.poll_output() {
                Output::Deliver { .. } => came += 1,
                Output::Lost { .. } => lost += 1,
                Output::Timeout(next) => break next.unwrap_or(SimTime::MAX),
            }
        };
    }
    // 65 535 quanta of 512 bit times are 33.55 ms.
    assert_eq!((came, lost, network.counters().pauses), (1, 0, 30));
    // It takes them then, and all of them come.
    now = until;
    while came < 40 {
        network.taken(now, 1);
        now = loop {
            match network.poll_output() {
                Output::Deliver { .. } => came += 1,
                Output::Lost { .. } => lost += 1,
                Output::Timeout(next) => break next.expect("there is more to come"),
            }
        };
        network.handle_timeout(now);
    }
    assert_eq!(lost, 0);
}

#[test]
fn a_switch_obeys_pause_and_keeps_the_frames() {
    let switch =
        Switch { forwarding: Forwarding::Stored, latency: Span::from_us(2), port: Bytes::new(1 << 20) };
    let bus = Adapter { bus_byte: Span::from_ns(4), receive: Bytes::new(16_000), ..NOTHING };
    let through = |pause| Config {
        rate: BitRate::bit_s(4_000_000_000),
        switch: Some(switch),
        ..config(Adapter { pause, ..bus })
    };
    let frames: Vec<_> = (0..100).map(|number| (0, number % 2, 2, 1518)).collect();
    let (_, lost, _) = run(through(false), 3, &frames);
    assert!(!lost.is_empty(), "two senders are twice as fast as the receiver's bus");
    let (came, lost, network) = run(through(true), 3, &frames);
    assert_eq!((came.len(), lost.len()), (100, 0));
    assert!(network.counters().pauses > 0);
}

#[test]
fn a_switch_that_cuts_through_saves_a_frames_time() {
    let switch = |forwarding| Switch { forwarding, latency: Span::from_us(1), port: Bytes::new(1 << 20) };
    let through = |forwarding| Config { switch: Some(switch(forwarding)), ..config(NOTHING) };
    let (stored, ..) = run(through(Forwarding::Stored), 3, &[(0, 0, 2, 1518)]);
    let (cut, ..) = run(through(Forwarding::CutThrough), 3, &[(0, 0, 2, 1518)]);
    assert_eq!(stored, [(2 * 12_144 + 100 + 1_000, 2, 0)]);
    assert_eq!(cut, [(112 + 12_144 + 100 + 1_000, 2, 0)]);
}

#[test]
fn a_ring_that_is_full_takes_no_more() {
    let adapter = Adapter { send_frames: 2, frame: Span::from_us(1), ..NOTHING };
    let mut network = Gige::new(config(adapter), 2, backoff);
    let taken: Vec<bool> =
        (0..5).map(|number| network.offer(SimTime::ZERO, 0, 1, Bytes::new(100), number)).collect();
    assert_eq!(taken, [true, true, true, false, false], "one is on the bus, two in the ring");
}

fn half(bursts: bool, adapter: Adapter) -> Config {
    Config { duplex: Duplex::Half { bursts }, ..config(adapter) }
}

#[test]
fn in_half_duplex_a_short_frame_takes_a_slot_and_in_a_burst_its_octets() {
    let three = [(0, 0, 1, 64); 3];
    let slot = 64 + 4096;
    let (came, ..) = run(half(false, NOTHING), 2, &three);
    assert_eq!(came, [(slot + 50, 1, 0), (2 * slot + 96 + 50, 1, 1), (3 * slot + 192 + 50, 1, 2)]);
    let (came, ..) = run(half(true, NOTHING), 2, &three);
    let next = 96 + 64 + 512;
    assert_eq!(came, [(slot + 50, 1, 0), (slot + next + 50, 1, 1), (slot + 2 * next + 50, 1, 2)]);
}

#[test]
fn in_half_duplex_both_ends_share_the_line_and_nothing_is_missing() {
    let mut frames = Vec::new();
    for number in 0..300 {
        frames.push((number * 500, number as u32 % 5, (number as u32 + 1) % 5, 64 + number % 1_454));
    }
    for bursts in [false, true] {
        let (came, lost, network) = run(half(bursts, NOTHING), 5, &frames);
        assert_eq!((came.len(), lost.len()), (300, 0), "sixteen collisions in a row are rare");
        let octets: u64 = frames.iter().map(|frame| frame.3).sum();
        let (last, ..) = came[299];
        assert!(last > 8 * octets, "one at a time: {last} ns for {octets} octets");
        for sender in 0..5 {
            let of = came.iter().map(|(.., which)| *which).filter(|which| which % 5 == sender);
            assert!(of.is_sorted(), "frames of one sender keep their order");
        }
        assert_eq!(network.counters().delivered, 300);
    }
}

#[test]
fn bursts_save_most_of_what_extension_takes() {
    let frames: Vec<_> = (0..400).map(|number| (0, number % 2, 1 - number % 2, 64)).collect();
    let last = |bursts| run(half(bursts, NOTHING), 2, &frames).0[399].0;
    let (alone, together) = (last(false), last(true));
    assert!(alone > 400 * 4_256, "a slot and a gap each: {alone}");
    assert!(together < alone / 4, "{together} of {alone}");
}

#[test]
fn a_line_that_all_share_is_at_most_half_a_slot_long() {
    // Half a slot is 2048 ns: 40 ways of 50 ns are 2000.
    assert!(fits(&half(true, NOTHING), 41));
    assert!(!fits(&half(true, NOTHING), 43));
    assert!(fits(&config(NOTHING), 1_000), "in full duplex nobody listens");
}

#[test]
fn a_host_that_does_not_take_frames_fills_its_ring_then_its_adapter_and_then_they_are_lost() {
    let adapter = Adapter { receive_frames: 4, receive: Bytes::new(3 * 1_518), ..NOTHING };
    let mut network = Gige::new(config(adapter), 2, backoff);
    for number in 0..10 {
        assert!(network.offer(SimTime::ZERO, 0, 1, Bytes::new(1_518), number));
    }
    let mut now = SimTime::ZERO;
    let (mut came, mut lost) = (Vec::new(), Vec::new());
    let mut drain = |network: &mut Gige<u32>| loop {
        match network.poll_output() {
            Output::Deliver { payload, .. } => came.push(payload),
            Output::Lost { payload, .. } => lost.push(payload),
            Output::Timeout(next) => break next,
        }
    };
    while let Some(next) = drain(&mut network) {
        now = next;
        network.handle_timeout(now);
    }
    // Four are told of, three wait on the adapter; each that is taken lets the next one in.
    for _ in 0..10 {
        network.taken(now, 1);
        while let Some(next) = drain(&mut network) {
            now = next;
            network.handle_timeout(now);
        }
    }
    assert_eq!(came, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(lost, [7, 8, 9]);
}
