//! The receiver: datagrams out of packets, with a timer and a bound on what is held.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;

use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::ipv4::{Ends, HEADER_OCTETS, Protocol};

use super::{Datagram, MAX_DATAGRAM_OCTETS, Packet};
use crate::ranges::Ranges;
use crate::{Output, Work, WorkKind};

/// Parameters of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long after its first fragment a datagram may take. BSD and Linux: 30 s (`IPFRAGTTL`); RFC
    /// 1122 §3.3.2: 60 to 120 s. The default is 30 s.
    pub timer: Span,
    /// Datagrams that may be held in pieces; what would be one more is dropped. The default is 64.
    pub most_datagrams: u16,
    /// Pieces apart from each other that may be held of a datagram. The default is 64.
    pub most_pieces: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self { timer: Span::from_s(30), most_datagrams: 64, most_pieces: 64 }
    }
}

/// Packets that were dropped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The reason why they were dropped.
    pub why: Why,
    /// Whose they were.
    pub ends: Ends,
    /// How many packets.
    pub packets: u32,
}

/// Why packets were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The checksum of the header fails.
    Header,
    /// A fragment that is not the last has a length that is no multiple of 8, or one reaches beyond
    /// what a packet can say or beyond the end that another told of.
    Shape,
    /// As many datagrams are held in pieces as may be.
    TooMany,
    /// As many pieces of this datagram are held as may be.
    TooManyPieces,
    /// The rest did not come in time. `first` says whether its beginning had: then the sender is told
    /// (ICMP time exceeded, code 1).
    Timer {
        /// The fragment with offset 0 had come.
        first: bool,
    },
}

/// Outputs of the receiver.
pub type ReceiverOutput<D> = Output<Infallible, Received<D>, Dropped>;

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<D> {
    /// The datagram.
    pub datagram: Datagram<D>,
    /// An octet of it is not as it was sent.
    pub corrupted: bool,
}

/// A datagram of which pieces came.
#[derive(Clone, Debug)]
struct Partial<D> {
    ends: Ends,
    protocol: Protocol,
    identification: u16,
    deadline: SimTime,
    came: Ranges,
    /// Octets of the whole, once its last piece came.
    length: Option<u16>,
    content: Option<D>,
    corrupted: bool,
    packets: u32,
}

/// The receiving side of a host.
#[derive(Clone, Debug)]
pub struct Receiver<D> {
    config: Config,
    /// In the order in which they began, which is that of their deadlines.
    partial: Vec<Partial<D>>,
    /// Empty ones, kept for their allocations.
    spare: Vec<Ranges>,
    outputs: VecDeque<ReceiverOutput<D>>,
}

impl<D: Clone> Receiver<D> {
    /// A receiver that holds nothing.
    pub const fn new(config: Config) -> Self {
        Self { config, partial: Vec::new(), spare: Vec::new(), outputs: VecDeque::new() }
    }

    /// Takes a packet that is for this host.
    ///
    /// Timers that have run out by `now` and were not handled yet are handled first.
    pub fn handle_packet(&mut self, now: SimTime, packet: Packet<D>) {
        self.handle_timeout(now);
        self.work(WorkKind::PacketIn, packet.octets());
        self.work(WorkKind::Checksum, HEADER_OCTETS as u32);
        if packet.header_corrupted {
            return self.drop_packets(Why::Header, packet.ends, 1);
        }
        if u32::from(packet.offset) + u32::from(packet.length) > u32::from(MAX_DATAGRAM_OCTETS) {
            return self.drop_packets(Why::Shape, packet.ends, 1);
        }
        if packet.is_fragment() {
            self.take_fragment(now, packet);
        } else {
            let Packet { ends, protocol, length, dont_fragment, content, .. } = packet;
            let datagram = Datagram { ends, protocol, length, dont_fragment, content };
            let corrupted = packet.content_corrupted;
            self.outputs.push_back(Output::Deliver(Received { datagram, corrupted }));
        }
    }

    /// Lets time pass: gives up datagrams whose timer has run out by `now`.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while let Some(first) = self.partial.first()
            && first.deadline <= now
        {
            let gone = self.partial.remove(0);
            let first = gone.content.is_some();
            self.keep(gone.came);
            self.drop_packets(Why::Timer { first }, gone.ends, gone.packets);
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> ReceiverOutput<D> {
        self.outputs
            .pop_front()
            .unwrap_or_else(|| Output::Timeout(self.partial.first().map(|first| first.deadline)))
    }

    /// Packets that are held.
    pub fn held(&self) -> u32 {
        self.partial.iter().map(|partial| partial.packets).sum()
    }

    fn take_fragment(&mut self, now: SimTime, packet: Packet<D>) {
        let ends = packet.ends;
        let end = u32::from(packet.offset) + u32::from(packet.length);
        let whole_words = packet.length.is_multiple_of(8) && packet.length > 0;
        if packet.more_fragments && !whole_words {
            return self.drop_packets(Why::Shape, ends, 1);
        }
        let index = self.partial.iter().position(|partial| {
            partial.identification == packet.identification
                && partial.ends == ends
                && partial.protocol == packet.protocol
        });
        let index = match index {
            Some(index) => index,
            None if self.partial.len() >= usize::from(self.config.most_datagrams) => {
                return self.drop_packets(Why::TooMany, ends, 1);
            }
            None => {
                self.partial.push(Partial {
                    ends,
                    protocol: packet.protocol,
                    identification: packet.identification,
                    // Choice: the timer runs from the first piece and is not restarted by others.
                    deadline: now.saturating_add(self.config.timer),
                    came: self.spare.pop().unwrap_or_default(),
                    length: None,
                    content: None,
                    corrupted: false,
                    packets: 0,
                });
                self.partial.len() - 1
            }
        };
        let partial = &mut self.partial[index];
        let beyond = partial.length.is_some_and(|length| end > u32::from(length));
        // The last piece tells how long the whole is: nothing may have come from behind it, and no two
        // may tell otherwise.
        let told = !packet.more_fragments;
        let came_to = partial.came.as_slice().last().map_or(0, |range| range.to);
        let otherwise = told
            && (partial.length.is_some_and(|length| end != u32::from(length)) || came_to > i64::from(end));
        if beyond || otherwise {
            return self.drop_packets(Why::Shape, ends, 1);
        }
        let most = usize::from(self.config.most_pieces);
        if !partial.came.insert(packet.offset.into(), end.into(), most) {
            return self.drop_packets(Why::TooManyPieces, ends, 1);
        }
        partial.packets += 1;
        partial.corrupted |= packet.content_corrupted;
        if told {
            partial.length = Some(end as u16);
        }
        if packet.offset == 0 {
            partial.content = Some(packet.content);
        }
        self.deliver_if_whole(index);
    }

    fn deliver_if_whole(&mut self, index: usize) {
        let partial = &self.partial[index];
        let Some(length) = partial.length else { return };
        let [range] = partial.came.as_slice() else { return };
        if (range.from, range.to) != (0, i64::from(length)) {
            return;
        }
        let Partial { ends, protocol, content, corrupted, came, .. } = self.partial.remove(index);
        self.keep(came);
        // The piece with offset 0 came, for the range begins there; it had octets, or it was not cut.
        let Some(content) = content else { return };
        let datagram = Datagram { ends, protocol, length, dont_fragment: false, content };
        self.outputs.push_back(Output::Deliver(Received { datagram, corrupted }));
    }

    /// Keeps the room of what came for another datagram: never more than datagrams were held at a time.
    fn keep(&mut self, mut came: Ranges) {
        came.clear();
        self.spare.push(came);
    }

    fn drop_packets(&mut self, why: Why, ends: Ends, packets: u32) {
        self.outputs.push_back(Output::Event(Dropped { why, ends, packets }));
    }

    fn work(&mut self, kind: WorkKind, octets: u32) {
        let bytes = Bytes::new(octets.into());
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ip::Fragments;
    use crate::ip::tests::{ENDS, packet};

    fn at_s(s: u64) -> SimTime {
        SimTime::ZERO + Span::from_s(s)
    }

    /// Everything but work.
    fn drain(receiver: &mut Receiver<u32>) -> Vec<ReceiverOutput<u32>> {
        let mut outputs = Vec::new();
        loop {
            match receiver.poll_output() {
                Output::Work(_) => {}
                Output::Timeout(_) => return outputs,
                output => outputs.push(output),
            }
        }
    }

    fn whole(length: u16) -> ReceiverOutput<u32> {
        let Packet { ends, protocol, content, dont_fragment, .. } = packet(length);
        let datagram = Datagram { ends, protocol, length, dont_fragment, content };
        Output::Deliver(Received { datagram, corrupted: false })
    }

    fn dropped(why: Why, packets: u32) -> ReceiverOutput<u32> {
        Output::Event(Dropped { why, ends: ENDS, packets })
    }

    #[test]
    fn pieces_in_any_order_with_doubles_make_the_whole_once() {
        let mut receiver = Receiver::new(Config::default());
        let pieces: Vec<_> = Fragments::new(packet(4_000), 1_500).collect();
        for piece in [&pieces[2], &pieces[0], &pieces[0]] {
            receiver.handle_packet(at_s(0), *piece);
        }
        assert_eq!(drain(&mut receiver), []);
        assert_eq!(receiver.held(), 3);
        receiver.handle_packet(at_s(1), pieces[1]);
        assert_eq!(drain(&mut receiver), [whole(4_000)]);
        assert_eq!(receiver.held(), 0);
        receiver.handle_packet(at_s(1), packet(9));
        assert_eq!(drain(&mut receiver), [whole(9)]);
    }

    #[test]
    fn datagrams_that_differ_in_a_part_of_their_name_are_kept_apart() {
        let mut receiver = Receiver::new(Config::default());
        let one: Vec<_> = Fragments::new(packet(2_000), 1_500).collect();
        receiver.handle_packet(at_s(0), one[0]);
        receiver.handle_packet(at_s(0), Packet { identification: 8, ..one[1] });
        receiver.handle_packet(at_s(0), Packet { protocol: Protocol::TCP, ..one[1] });
        receiver.handle_packet(at_s(0), Packet { ends: ENDS.reversed(), ..one[1] });
        assert_eq!(drain(&mut receiver), []);
        receiver.handle_packet(at_s(0), one[1]);
        assert_eq!(drain(&mut receiver), [whole(2_000)]);
    }

    #[test]
    fn what_stays_in_pieces_is_given_up_and_the_beginning_is_remembered() {
        let mut receiver = Receiver::new(Config::default());
        let pieces: Vec<_> = Fragments::new(packet(4_000), 1_500).collect();
        receiver.handle_packet(at_s(0), pieces[0]);
        receiver.handle_packet(at_s(10), pieces[1]);
        drain(&mut receiver);
        receiver.handle_packet(at_s(20), Packet { identification: 9, ..pieces[1] });
        drain(&mut receiver);
        assert_eq!(receiver.poll_output(), Output::Timeout(Some(at_s(30))));
        receiver.handle_timeout(at_s(30));
        assert_eq!(drain(&mut receiver), [dropped(Why::Timer { first: true }, 2)]);
        // The last piece comes too late, and begins anew.
        receiver.handle_packet(at_s(50), pieces[2]);
        assert_eq!(drain(&mut receiver), [dropped(Why::Timer { first: false }, 1)]);
        assert_eq!(receiver.held(), 1);
    }

    #[test]
    fn pieces_of_impossible_shape_are_dropped() {
        let mut receiver = Receiver::new(Config::default());
        let piece = Packet { more_fragments: true, ..packet(8) };
        for wrong in [
            Packet { length: 9, ..piece },
            Packet { length: 0, ..piece },
            Packet { offset: 65_528, length: 16, ..piece },
            Packet { more_fragments: false, length: MAX_DATAGRAM_OCTETS + 1, ..piece },
            Packet { offset: 65_512, length: 8, more_fragments: false, ..piece },
        ] {
            receiver.handle_packet(at_s(0), wrong);
            assert_eq!(drain(&mut receiver), [dropped(Why::Shape, 1)], "{wrong:?}");
        }
        // An end is told of; then another, and a piece behind it.
        receiver.handle_packet(at_s(0), Packet { offset: 16, more_fragments: false, ..piece });
        assert_eq!(drain(&mut receiver), []);
        for wrong in [Packet { offset: 24, ..piece }, Packet { offset: 8, more_fragments: false, ..piece }] {
            receiver.handle_packet(at_s(0), wrong);
            assert_eq!(drain(&mut receiver), [dropped(Why::Shape, 1)], "{wrong:?}");
        }
        receiver.handle_packet(at_s(0), Packet { header_corrupted: true, ..packet(8) });
        assert_eq!(drain(&mut receiver), [dropped(Why::Header, 1)]);
    }

    #[test]
    fn what_is_held_has_bounds() {
        let config = Config { most_datagrams: 2, most_pieces: 2, ..Config::default() };
        let mut receiver = Receiver::new(config);
        let piece = Packet { more_fragments: true, ..packet(8) };
        for identification in 0..3 {
            receiver.handle_packet(at_s(0), Packet { identification, ..piece });
        }
        assert_eq!(drain(&mut receiver), [dropped(Why::TooMany, 1)]);
        for offset in [16, 32] {
            receiver.handle_packet(at_s(0), Packet { identification: 0, offset, ..piece });
        }
        assert_eq!(drain(&mut receiver), [dropped(Why::TooManyPieces, 1)]);
    }

    #[test]
    fn a_damaged_piece_damages_the_whole() {
        let mut receiver = Receiver::new(Config::default());
        for (number, piece) in Fragments::new(packet(2_000), 1_500).enumerate() {
            receiver.handle_packet(at_s(0), Packet { content_corrupted: number == 1, ..piece });
        }
        let outputs = drain(&mut receiver);
        assert!(matches!(outputs[..], [Output::Deliver(Received { corrupted: true, .. })]));
    }

    proptest! {
        /// Any packets at any times: nothing panics, what comes in comes out, was dropped, or is held,
        /// and a timer runs exactly while something is held.
        #[test]
        fn any_packets_are_conserved(
            steps in prop::collection::vec(
                (0_u64..12, 0_u16..4, 0_u16..9, 0_u16..40, any::<bool>(), any::<bool>()), 1..80),
        ) {
            let config = Config { most_datagrams: 3, most_pieces: 3, ..Config::default() };
            let mut receiver = Receiver::new(config);
            let (mut now, mut received, mut out) = (0, 0_u32, 0);
            for (pause, identification, words, length, more_fragments, exact) in steps {
                now += pause;
                let length = if exact { length * 8 } else { length };
                let content = u32::from(identification);
                let piece = Packet { identification, offset: words * 8, length, more_fragments, content, ..packet(0) };
                receiver.handle_packet(at_s(now), piece);
                received += 1;
                let held_before = receiver.held();
                loop {
                    match receiver.poll_output() {
                        Output::Work(_) => {}
                        Output::Event(dropped) => out += dropped.packets,
                        Output::Deliver(whole) => {
                            prop_assert!(u32::from(whole.datagram.length) <= 8 * 8 + 40 * 8);
                            prop_assert_eq!(whole.datagram.content, content);
                        }
                        Output::Timeout(timeout) => {
                            prop_assert_eq!(timeout.is_some(), receiver.held() > 0);
                            prop_assert!(timeout.is_none_or(|at| at > at_s(now)));
                            break;
                        }
                    }
                }
                prop_assert!(out + held_before <= received);
            }
        }
    }
}
