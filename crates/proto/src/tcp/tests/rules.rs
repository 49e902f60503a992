//! Each rule by itself: what it lets out, and when.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_units::Span;

use super::pair::{ACTIVE, Fate, PASSIVE, Pair, bytes, ms, setup};
use crate::tcp::{
    Config, DelayedAck, Event, Flags, Listener, Nagle, Options, Pieces, Read, Refusal, SackBlocks, Segment,
    SeqNumber, Setup, State, Timestamps, WindowUpdate,
};
use crate::{Output, WorkKind};

const LIMIT: Span = Span::from_s(60);

/// BSD's rules with writes in one piece.
fn plain() -> Config {
    Config { pieces: Pieces::Whole, ..Config::bsd43_reno() }
}

/// The lengths of the segments with text that an end has sent from the `from`th segment on.
fn lengths(pair: &Pair, end: usize, from: usize) -> Vec<u32> {
    let sent = pair.segments[from..].iter().filter(|(_, of, segment)| *of == end && !segment.is_empty());
    sent.map(|(_, _, segment)| segment.len()).collect()
}

fn write(pair: &mut Pair, end: usize, octets: u64) {
    assert_eq!(pair.ends[end].send(pair.now, bytes(octets)), Ok(bytes(octets)));
    pair.drain(end);
}

#[test]
fn small_writes_wait_for_the_acknowledgment_of_the_first() {
    let sent = |nagle, nodelay| {
        let config = Config { nagle, delayed_ack: DelayedAck::None, ..plain() };
        let mut pair = Pair::connected(config);
        pair.ends[ACTIVE].set_nodelay(nodelay);
        let from = pair.segments.len();
        for _ in 0..5 {
            write(&mut pair, ACTIVE, 10);
        }
        pair.run_to(pair.now + Span::from_s(1));
        assert_eq!(pair.read[PASSIVE], 50);
        lengths(&pair, ACTIVE, from)
    };
    assert_eq!(sent(Nagle::AnyOutstanding, false), [10, 40]);
    assert_eq!(sent(Nagle::SmallOutstanding, false), [10, 40]);
    assert_eq!(sent(Nagle::AnyOutstanding, true), [10; 5]);
    assert_eq!(sent(Nagle::Off, false), [10; 5]);
}

#[test]
fn minshall_lets_a_short_end_out_behind_full_segments() {
    let sent = |nagle| {
        let mut pair = Pair::connected(Config { nagle, ..plain() });
        // Windows wide open.
        pair.send_all(ACTIVE, 60_000, LIMIT);
        pair.run_to(pair.now + Span::from_ms(600));
        let (from, start) = (pair.segments.len(), pair.now);
        write(&mut pair, ACTIVE, 1_460);
        write(&mut pair, ACTIVE, 100);
        pair.run_to(start);
        lengths(&pair, ACTIVE, from)
    };
    assert_eq!(sent(Nagle::AnyOutstanding), [1_460], "the short end waits for all before it");
    assert_eq!(sent(Nagle::SmallOutstanding), [1_460, 100]);
}

#[test]
fn a_delayed_acknowledgment_goes_on_the_tick_or_with_every_second_segment() {
    // When the acknowledgment of one segment goes, that arrives at 11 ms.
    let one = |delayed_ack| {
        let mut config = Config { delayed_ack, window_update: WindowUpdate::Half, ..plain() };
        config.phases.fast = Span::from_ms(50);
        let mut pair = Pair::connected(config.with_buffers(bytes(32_768), bytes(32_768)).unwrap());
        pair.run_to(ms(10));
        write(&mut pair, ACTIVE, 100);
        pair.run_to(ms(1_000));
        let ack = pair.segments.last().unwrap();
        assert_eq!(ack.1, PASSIVE);
        (ack.0 - ms(11)).as_ps() / 1_000_000_000
    };
    assert_eq!(one(DelayedAck::None), 0);
    assert_eq!(one(DelayedAck::Grid), 139, "ticks at 150, 350, ...");
    assert_eq!(one(DelayedAck::EverySecond { after: Span::from_ms(100) }), 100);
    let (min, max) = (Span::from_ms(40), Span::from_ms(200));
    assert_eq!(one(DelayedAck::Adaptive { min, max }), 40);
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let after = Span::from_ms(500);
    let config = Config { delayed_ack: DelayedAck::EverySecond { after }, ..Config::linux_modern() };
    let mut pair = Pair::connected(Config { quick_acks: 0, ..config });
    let from = pair.segments.len();
    pair.send_all(ACTIVE, 1_448 * 8, Span::from_ms(400));
    let acks = pair.segments[from..].iter().filter(|(_, end, _)| *end == PASSIVE).count();
    assert_eq!(acks, 4);
}

#[test]
fn a_reader_tells_of_room_as_its_age_did() {
    // A receive buffer of 20 000 octets takes 6 segments of 1460 that are not read; then so much is.
    let tells = |rule, read: u64| {
        let config = Config { window_update: rule, ..plain() };
        let mut pair = Pair::connected(config.with_buffers(bytes(20_000), bytes(20_000)).unwrap());
        pair.reads[PASSIVE] = false;
        pair.to_write[ACTIVE] = 8_760;
        pair.drain(ACTIVE);
        pair.run_to(pair.now + Span::from_s(3));
        let before = pair.segments.len();
        assert_eq!(pair.ends[PASSIVE].receive(pair.now, bytes(read)), Read::Octets(bytes(read)));
        pair.drain(PASSIVE);
        pair.segments.len() > before
    };
    let rules =
        [WindowUpdate::Share35OrEmpty, WindowUpdate::Half, WindowUpdate::Segment, WindowUpdate::Doubled];
    let told = |read| rules.map(|rule| tells(rule, read));
    assert_eq!(told(1_459), [false, false, false, false]);
    assert_eq!(told(1_460), [false, false, true, false]);
    assert_eq!(told(2_919), [false, false, true, false]);
    assert_eq!(told(2_920), [false, true, true, false], "two segments, the buffer not empty");
    assert_eq!(told(7_000), [true, true, true, false], "35 %");
    assert_eq!(told(8_760), [true, true, true, false], "all");
}

#[test]
fn a_receiver_never_offers_a_silly_window() {
    let mut pair = Pair::connected(plain());
    pair.reads[PASSIVE] = false;
    pair.to_write[ACTIVE] = 100_000;
    pair.drain(ACTIVE);
    pair.run_to(pair.now + Span::from_s(10));
    // A reader of ten octets at a time.
    for _ in 0..2_000 {
        if let Read::Octets(octets) = pair.ends[PASSIVE].receive(pair.now, bytes(10)) {
            pair.read[PASSIVE] += octets.get();
        }
        pair.drain(PASSIVE);
        pair.run_to(pair.now + Span::from_ms(2));
    }
    let mut right = 0_i64;
    for (_, end, segment) in &pair.segments {
        if *end == PASSIVE {
            let edge = i64::from(segment.ack.get()) + i64::from(segment.window);
            // What was offered stays; a new offer is worth a segment.
            assert!(edge == right || segment.window >= 1_460, "{} at {edge} after {right}", segment.window);
            right = edge.max(right);
        }
    }
    // But for what probes of the closed window bring, the sender keeps to whole segments.
    let small = lengths(&pair, ACTIVE, 0).into_iter().filter(|&len| len > 1 && len < 1_460).count();
    assert!(small <= 1, "{small} small segments");
}

#[test]
fn scaled_windows_fill_a_long_path_and_plain_ones_do_not() {
    let throughput = |window_scaling| {
        let config = Config { window_scaling, ..Config::linux_modern() };
        let mut pair = Pair::new([config.clone(), config]);
        pair.delay = Span::from_ms(50);
        pair.connect();
        pair.send_all(ACTIVE, 8 << 20, LIMIT);
        let took = pair.send_all(ACTIVE, 8 << 20, LIMIT);
        (8 << 20) as f64 / took.as_s_f64()
    };
    // 65 535 octets a round trip of 100 ms.
    let plain = throughput(false);
    assert!((0.9..=1.05).contains(&(plain / 655_350.0)), "{plain}");
    assert!(throughput(true) > 10.0 * plain);
}

#[test]
fn an_old_time_stamp_is_dropped_and_answered() {
    let mut pair = Pair::connected(Config::linux_modern());
    pair.run_to(ms(5_000));
    pair.send_all(ACTIVE, 100, LIMIT);
    let end = &mut pair.ends[PASSIVE];
    let old = Segment {
        window: 100,
        options: Options { timestamps: Some(Timestamps { value: 1, echo: 0 }), ..Options::NONE },
        payload: crate::Payload::whole(crate::MessageId(0), bytes(10)),
        ..Segment::control(
            SeqNumber::wrapping(super::pair::ISS[0]) + 101,
            SeqNumber::wrapping(super::pair::ISS[1]) + 1,
            Flags::ACK,
        )
    };
    end.handle_segment(pair.now, &old);
    assert_eq!(end.counters().outside, 1);
    assert_eq!(end.expected(), bytes(100), "nothing was taken");
    let young = Timestamps { value: 6_000, echo: 0 };
    let options = Options { timestamps: Some(young), ..Options::NONE };
    end.handle_segment(pair.now, &Segment { options, ..old });
    assert_eq!(end.expected(), bytes(110));
}

#[test]
fn what_came_out_of_order_is_told_of_with_the_latest_first() {
    let mut pair = Pair::connected(Config { limited_transmit: false, ..Config::linux_modern() });
    let mut count = 0;
    pair.fates = Box::new(move |end, segment| {
        count += usize::from(end == ACTIVE && !segment.is_empty());
        if end == ACTIVE && [1, 3].contains(&count) { Fate::lost() } else { Fate::passed() }
    });
    pair.to_write[ACTIVE] = 5 * 1_448;
    pair.drain(ACTIVE);
    pair.run_to(pair.now + Span::from_ms(1));
    let blocks: Vec<SackBlocks> = pair
        .segments
        .iter()
        .filter(|(_, end, segment)| *end == PASSIVE && !segment.options.sack.is_empty())
        .map(|(_, _, segment)| segment.options.sack)
        .collect();
    let place = |number: u32| SeqNumber::wrapping(super::pair::ISS[0]) + 1 + number * 1_448;
    let (low, high) = ((place(1), place(2)), (place(3), place(4)));
    assert_eq!(blocks[0].as_slice(), [low]);
    assert_eq!(blocks[1].as_slice(), [high, low]);
    assert_eq!(blocks[2].as_slice(), [(place(3), place(5)), low]);
}

#[test]
fn accepted_sockets_inherit_nodelay_where_their_age_had_it() {
    for (config, inherits) in [(Config::sunos41(), false), (Config::linux22(), true)] {
        let mut listener = Listener::new(Arc::new(config), 1);
        listener.set_nodelay(true);
        let syn = Segment::control(SeqNumber::ZERO, SeqNumber::ZERO, Flags::SYN);
        let end = listener.handle_segment(ms(0), &syn, setup(PASSIVE)).unwrap();
        assert_eq!(end.state(), State::SynReceived);
        assert_eq!(end.switches.nodelay, inherits);
        let refused = |listener: &mut Listener, segment: &Segment| {
            listener.handle_segment(ms(0), segment, setup(PASSIVE)).err()
        };
        assert_eq!(refused(&mut listener, &syn), Some(Refusal::Full { backlog: 1 }));
        let ack = Segment { flags: Flags::ACK, ..syn };
        assert_eq!(refused(&mut listener, &ack), Some(Refusal::NoSyn));
        listener.release();
        assert_eq!(refused(&mut listener, &syn), None);
    }
}

#[test]
fn net2_rounds_segments_to_clusters_and_buffers_to_segments() {
    let setups = [setup(0), setup(1)].map(|setup| Setup { mtu: 9_188, ..setup });
    let config = Config::net2().with_buffers(bytes(20_000), bytes(20_000)).unwrap();
    let mut pair = Pair::with_setups([config.clone(), config], setups);
    pair.connect();
    let end = &pair.ends[ACTIVE];
    assert_eq!((end.segment_octets(), end.snd_hiwat, end.rcv_hiwat), (8_192, 24_576, 24_576));
}

#[test]
fn a_syn_goes_again_as_it_did_in_its_age() {
    let times = |config: Config| {
        let mut pair = Pair::new([config.clone(), config]);
        pair.fates = Box::new(|_, _| Fate::lost());
        pair.ends[ACTIVE].connect(pair.now).unwrap();
        pair.drain(ACTIVE);
        pair.run(ms(300_000));
        pair.segments.iter().map(|(at, ..)| at.as_ps() / 1_000_000_000_000).collect::<Vec<_>>()
    };
    // Stevens (1994), §18.5: 5.8 s, then 24 s, given up after 75 s.
    assert_eq!(times(Config::bsd43_reno()), [0, 6, 30]);
    assert_eq!(times(Config::bsd43_tahoe()), [0, 6, 18, 42]);
    assert_eq!(times(Config::linux_modern()), [0, 1, 3, 7, 15, 31, 63]);
}

#[test]
fn after_a_silence_the_window_begins_anew() {
    for (config, least) in [(plain(), 1), (Config::linux_modern(), 10)] {
        let mut pair = Pair::connected(config);
        pair.send_all(ACTIVE, 200_000, LIMIT);
        pair.run_to(pair.now + Span::from_s(20));
        let wide = pair.ends[ACTIVE].cwnd();
        pair.send_all(ACTIVE, 1, LIMIT);
        let mss = pair.ends[ACTIVE].segment_octets();
        let narrow = pair.ends[ACTIVE].cwnd();
        assert!(wide > (least + 1) * mss && narrow <= (least + 1) * mss, "{wide}, then {narrow}");
    }
}

#[test]
fn urgent_data_are_told_of_and_stay_in_the_stream() {
    let mut pair = Pair::connected(plain());
    pair.ends[ACTIVE].mark_urgent(pair.now).unwrap();
    write(&mut pair, ACTIVE, 100);
    let urgent = pair.segments.iter().filter(|(_, _, segment)| segment.flags.has(Flags::URG));
    assert_eq!(urgent.map(|(_, _, segment)| segment.urgent).collect::<Vec<_>>(), [100]);
    pair.run_to(pair.now + Span::from_s(1));
    assert_eq!(pair.read[PASSIVE], 100);
    assert!(pair.events[PASSIVE].contains(&Event::Urgent { end: bytes(100) }), "{:?}", pair.events);
}

#[test]
fn a_write_reaches_the_protocol_in_the_pieces_of_its_age() {
    let pieces = |config: Config, octets: u64| {
        let mut pair = Pair::connected(Config { nagle: Nagle::Off, ..config });
        pair.send_all(ACTIVE, 30_000, LIMIT);
        pair.run_to(pair.now + Span::from_ms(600));
        let from = pair.segments.len();
        write(&mut pair, ACTIVE, octets);
        lengths(&pair, ACTIVE, from)
    };
    let roomy = |config: Config| config.with_buffers(bytes(16_384), bytes(16_384)).unwrap();
    assert_eq!(pieces(roomy(Config::bsd43_reno()), 150), [100, 50]);
    assert_eq!(pieces(roomy(Config::bsd43_reno()), 208), [208]);
    assert_eq!(pieces(roomy(Config::bsd43_reno()), 2_500), [1_460, 588, 452]);
    assert_eq!(pieces(roomy(Config::sunos41()), 4_200), [1_460, 1_460, 1_176, 104]);
    let whole = Config { pieces: Pieces::Whole, ..Config::bsd43_reno() };
    assert_eq!(pieces(roomy(whole), 2_500), [1_460, 1_040]);
}

#[test]
fn linux_copies_a_segment_and_sends_it_before_it_copies_the_next() {
    let copied_before_the_first = |config: Config| {
        let mut pair = Pair::connected(config);
        assert_eq!(pair.ends[ACTIVE].send(pair.now, bytes(10_000)), Ok(bytes(10_000)));
        let mut copied = 0;
        loop {
            match pair.ends[ACTIVE].poll_output() {
                Output::Work(work) if work.kind == WorkKind::CopyIn => copied += work.bytes.get(),
                Output::Transmit(_) => return copied,
                Output::Timeout(_) => panic!("nothing is sent"),
                _ => {}
            }
        }
    };
    assert_eq!(copied_before_the_first(Config::linux22()), 1_448);
    assert_eq!(copied_before_the_first(Config { pieces: Pieces::Whole, ..Config::linux22() }), 10_000);
}

#[test]
fn a_writer_that_found_no_room_is_told_when_there_is_some() {
    let mut pair = Pair::connected(plain());
    assert_eq!(pair.ends[ACTIVE].send(pair.now, bytes(10_000)), Ok(bytes(8_192)));
    assert_eq!(pair.ends[ACTIVE].send(pair.now, bytes(1)), Ok(bytes(0)));
    pair.drain(ACTIVE);
    assert_eq!(pair.ends[ACTIVE].written(), bytes(8_192));
    pair.run_while(ms(10_000), |pair| !pair.events[ACTIVE].contains(&Event::Writable));
    assert!(pair.ends[ACTIVE].writable() >= bytes(2_048), "the low-water mark");
    assert!(pair.ends[ACTIVE].acknowledged() >= bytes(2_048));
    assert_eq!(vec![Event::Established, Event::Writable], pair.events[ACTIVE]);
}

/// However buffers, segments and pieces meet: 1 MiB waits for one delayed acknowledgment or two, not for
/// one each write.
#[test]
fn a_long_transfer_does_not_stall_write_by_write() {
    for config in Config::presets() {
        for (kib, mtu) in
            [4, 16, 32, 51].into_iter().flat_map(|kib| [1_500, 4_352, 9_188].map(|mtu| (kib, mtu)))
        {
            let name = config.name;
            let config = config.clone().with_buffers(bytes(kib << 10), bytes(kib << 10)).unwrap();
            let setups = [setup(0), setup(1)].map(|setup| Setup { mtu, ..setup });
            let mut pair = Pair::with_setups([config.clone(), config], setups);
            pair.delay = Span::from_us(100);
            pair.connect();
            pair.send_all(ACTIVE, 1 << 20, LIMIT);
            let took = pair.send_all(ACTIVE, 1 << 20, LIMIT);
            assert!(took < Span::from_ms(450), "{name}, {kib} KiB, MTU {mtu}: {took}");
        }
    }
}
