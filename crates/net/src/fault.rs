//! Faults of lines: wrong bits, and rules that drop, corrupt, duplicate and hold back.
//!
//! [`BitErrors`] says which bits of a line are wrong, each with the same chance and apart from all others.
//!
//! Rules stand in order. A rule looks at every frame about to reach a port (each copy of a frame for
//! several ports by itself, after it has taken its time on the line); all rules that a frame meets
//! act on it, except that a dropped frame meets no more.
//!
//! Each rule counts, and draws its numbers, separately for every pair of ports. So the fate of the
//! n-th frame from one port to another that a rule looks at depends on the seed and on nothing else,
//! however the frames of other pairs fall between.

use std::collections::BTreeMap;

use wiretwin_engine::{Probability, Stream};
use wiretwin_units::{Bits, Span};

use crate::port::PortId;

/// What happens to which frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What happens.
    pub action: Action,
    /// To how many of the frames that the filter lets through.
    pub when: When,
    /// Which frames the rule looks at.
    pub filter: Filter,
}

/// What a rule does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is lost, having taken its time on the line.
    Drop,
    /// One bit of it, each with the same chance, is flipped. It is delivered all the same, as if the
    /// damage had been done where no check sequence sees it.
    Corrupt,
    /// It comes twice: the second copy one frame time later, taking no capacity.
    Duplicate,
    /// Others overtake it.
    Reorder(Hold),
}

/// How long a frame is held back: until the first of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Until this number of later frames has reached the same port.
    pub frames: Option<u32>,
    /// At most so long.
    pub time: Span,
}

/// Which of the frames that a rule looks at it acts on.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// Each with this chance.
    Chance(Probability),
    /// These, counted from 1.
    Nth(Vec<u64>),
    /// Every so-many-th.
    Every(u64),
}

/// Which frames a rule looks at: those for which everything that is given holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// They come from this port.
    pub from: Option<PortId>,
    /// They go to this port.
    pub to: Option<PortId>,
    /// They have this type.
    pub ethertype: Option<u16>,
    /// They hold an IP packet of this protocol.
    pub protocol: Option<u8>,
    /// They hold an IP packet of this class: a differentiated services codepoint.
    pub dscp: Option<u8>,
}

/// What rules see of a frame that is about to reach a port.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    /// The port that it comes from.
    pub from: PortId,
    /// The port that it goes to.
    pub to: PortId,
    /// Its type.
    pub ethertype: u16,
    /// The protocol of the IP packet in it.
    pub protocol: Option<u8>,
    /// The class of the IP packet in it.
    pub dscp: Option<u8>,
    /// Its length.
    pub length: Bits,
}

impl Filter {
    fn takes(&self, frame: &Passing) -> bool {
        self.from.is_none_or(|port| port == frame.from)
            && self.to.is_none_or(|port| port == frame.to)
            && self.ethertype.is_none_or(|ethertype| ethertype == frame.ethertype)
            && self.protocol.is_none_or(|protocol| frame.protocol == Some(protocol))
            && self.dscp.is_none_or(|dscp| frame.dscp == Some(dscp))
    }
}

/// What the rules make of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// It is lost.
    pub dropped: bool,
    /// Bits to flip.
    pub flips: Vec<u32>,
    /// Further copies.
    pub copies: u32,
    /// Held back: by the last rule that does.
    pub hold: Option<Hold>,
}

/// The rules of a wire and what they remember.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    seed: u64,
    memory: BTreeMap<(usize, PortId, PortId), Memory>,
}

/// What a rule remembers of a pair of ports.
#[derive(Clone, Debug)]
struct Memory {
    seen: u64,
    stream: Stream,
}

impl Faults {
    pub fn new(rules: Vec<Rule>, seed: u64) -> Self {
        Self { rules, seed, memory: BTreeMap::new() }
    }

    /// What becomes of a frame that is about to reach a port.
    pub fn judge(&mut self, frame: &Passing) -> Fate {
        let Passing { from, to, .. } = *frame;
        let mut fate = Fate::default();
        for (number, rule) in self.rules.iter().enumerate() {
            if !rule.filter.takes(frame) {
                continue;
            }
            let memory = self.memory.entry((number, from, to)).or_insert_with(|| Memory {
                seen: 0,
                stream: Stream::derive(self.seed, &format!("wire/rule {number}/from {}/to {}", from.0, to.0)),
            });
            memory.seen += 1;
            let acts = match &rule.when {
                When::Chance(chance) => memory.stream.happens(*chance),
                When::Nth(list) => list.contains(&memory.seen),
                When::Every(count) => memory.seen.is_multiple_of(*count),
            };
            if !acts {
                continue;
            }
            match rule.action {
                Action::Drop => {
                    fate.dropped = true;
                    return fate;
                }
                Action::Corrupt => {
                    let bits = frame.length.get().max(1);
                    // A frame is far shorter than 2^32 bits.
                    fate.flips.push(memory.stream.below(bits) as u32);
                }
                Action::Duplicate => fate.copies += 1,
                Action::Reorder(hold) => fate.hold = Some(hold),
            }
        }
        fate
    }
}

/// The least and the most that the probability of a wrong bit may be, besides none.
pub const BIT_ERROR_RATES: (f64, f64) = (1e-12, 0.01);

/// Which bits of a line are wrong.
#[derive(Clone, Debug)]
pub(crate) struct BitErrors {
    stream: Stream,
    /// The mean distance of two wrong bits, in 65536ths of a bit.
    mean: Span,
    /// Bits that are right before the next wrong one.
    right: u64,
}

impl BitErrors {
    /// A line whose bits are wrong with this probability.
    pub(crate) fn new(rate: f64, stream: Stream) -> Self {
        // -ln(1 - rate): so the whole part of an exponential distance is a geometric one. For what is
        // allowed the sum is right to ten figures.
        let decay = rate + rate * rate / 2.0 + rate * rate * rate / 3.0 + rate * rate * rate * rate / 4.0;
        let mean = Span::from_ps((65_536.0 / decay) as u64);
        let mut errors = Self { stream, mean, right: 0 };
        errors.right = errors.distance();
        errors
    }

    fn distance(&mut self) -> u64 {
        self.stream.exponential(self.mean).as_ps() >> 16
    }

    /// Passes this number of bits and reports the position of each bit in error.
    pub(crate) fn pass(&mut self, bits: u64, mut wrong: impl FnMut(u64)) {
        let mut at = 0;
        while self.right < bits - at {
            at += self.right;
            wrong(at);
            at += 1;
            self.right = self.distance();
        }
        self.right -= bits - at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Filter = Filter { from: None, to: None, ethertype: None, protocol: None, dscp: None };

    /// From port 0 to port 1.
    fn frame(ethertype: u16, protocol: Option<u8>) -> Passing {
        let (from, to, length) = (PortId(0), PortId(1), Bits::new(800));
        Passing { from, to, ethertype, protocol, dscp: protocol.map(|_| 8), length }
    }

    fn chance(value: f64) -> When {
        When::Chance(Probability::new(value).unwrap())
    }

    /// Which of the first `count` frames from port 0 to port 1 are dropped.
    fn dropped(faults: &mut Faults, count: usize) -> Vec<usize> {
        (1..=count).filter(|_| faults.judge(&frame(0x0800, Some(17))).dropped).collect()
    }

    #[test]
    fn the_nth_and_every_so_many_are_counted_from_one() {
        let drop = |when| Faults::new(vec![Rule { action: Action::Drop, when, filter: ANY }], 1);
        assert_eq!(dropped(&mut drop(When::Nth(vec![1, 4])), 10), [1, 4]);
        assert_eq!(dropped(&mut drop(When::Every(3)), 10), [3, 6, 9]);
        assert_eq!(dropped(&mut drop(chance(0.0)), 10), [0_usize; 0]);
        assert_eq!(dropped(&mut drop(chance(1.0)), 3), [1, 2, 3]);
    }

    #[test]
    fn the_fate_of_a_frame_depends_on_its_pair_of_ports_alone() {
        let rules = vec![Rule { action: Action::Drop, when: chance(0.3), filter: ANY }];
        let alone = dropped(&mut Faults::new(rules.clone(), 7), 200);
        assert!((30..90).contains(&alone.len()), "{}", alone.len());
        let mut faults = Faults::new(rules.clone(), 7);
        let among: Vec<usize> = (1..=200)
            .filter(|number| {
                for _ in 0..number % 3 {
                    faults.judge(&Passing { from: PortId(1), to: PortId(0), ..frame(0x0800, Some(6)) });
                    faults.judge(&Passing { to: PortId(2), ..frame(0x0800, Some(6)) });
                }
                faults.judge(&frame(0x0800, Some(17))).dropped
            })
            .collect();
        assert_eq!(among, alone);
        assert_ne!(dropped(&mut Faults::new(rules, 8), 200), alone);
    }

    #[test]
    fn a_filter_lets_through_what_meets_all_of_it() {
        let rule = |filter| vec![Rule { action: Action::Drop, when: When::Every(1), filter }];
        let acts = |filter, from, to, frame: &Passing| {
            let frame = Passing { from: PortId(from), to: PortId(to), ..*frame };
            Faults::new(rule(filter), 1).judge(&frame).dropped
        };
        let udp = frame(0x0800, Some(17));
        let only = Filter {
            from: Some(PortId(0)),
            to: Some(PortId(1)),
            ethertype: Some(0x0800),
            protocol: Some(17),
            dscp: Some(8),
        };
        assert!(acts(only, 0, 1, &udp));
        assert!(!acts(only, 2, 1, &udp) && !acts(only, 0, 2, &udp));
        assert!(!acts(only, 0, 1, &frame(0x0800, Some(6))) && !acts(only, 0, 1, &frame(0x86DD, Some(17))));
        assert!(!acts(Filter { protocol: Some(1), ..ANY }, 0, 1, &frame(0x0806, None)));
        assert!(!acts(Filter { dscp: Some(46), ..ANY }, 0, 1, &udp));
        assert!(!acts(Filter { dscp: Some(0), ..ANY }, 0, 1, &frame(0x0806, None)));
        assert!(acts(ANY, 5, 6, &frame(0x0806, None)));
    }

    #[test]
    fn rules_act_in_order_and_none_after_a_drop() {
        let hold = Hold { frames: Some(2), time: Span::from_ms(1) };
        let rule = |action, when| Rule { action, when, filter: ANY };
        let mut faults = Faults::new(
            vec![
                rule(Action::Corrupt, When::Every(1)),
                rule(Action::Drop, When::Nth(vec![2])),
                rule(Action::Duplicate, When::Every(1)),
                rule(Action::Corrupt, When::Every(1)),
                rule(Action::Reorder(hold), When::Nth(vec![2])),
            ],
            1,
        );
        let mut judge = || faults.judge(&frame(0x0800, None));
        let first = judge();
        assert_eq!((first.dropped, first.copies, first.flips.len(), first.hold), (false, 1, 2, None));
        assert!(first.flips.iter().all(|&bit| bit < 800), "{:?}", first.flips);
        assert!(judge().dropped);
        // The third frame is the second that the last rule sees.
        assert_eq!(judge().hold, Some(hold));
    }

    #[test]
    fn every_bit_is_flipped_sooner_or_later() {
        let rules = vec![Rule { action: Action::Corrupt, when: When::Every(1), filter: ANY }];
        let mut faults = Faults::new(rules, 1);
        let mut hit = [false; 800];
        for _ in 0..20_000 {
            hit[faults.judge(&frame(0x0800, None)).flips[0] as usize] = true;
        }
        assert!(hit.iter().all(|&hit| hit));
    }

    #[test]
    fn bits_are_wrong_as_often_as_is_asked_and_apart_from_each_other() {
        for rate in [0.01, 0.001, 1e-5] {
            let mut errors = BitErrors::new(rate, Stream::derive(5, "bits"));
            let bits = (4000.0 / rate) as u64;
            let (mut count, mut pairs) = (0_u64, 0_u64);
            for _ in 0..bits / 424 {
                let mut here = 0;
                let mut last = None;
                errors.pass(424, |bit| {
                    assert!(bit < 424 && last < Some(bit), "in order, within the cell");
                    last = Some(bit);
                    here += 1;
                });
                count += here;
                pairs += here * here.saturating_sub(1) / 2;
            }
            // 4000 wrong bits on average: four standard deviations are 253.
            assert!(count.abs_diff(4000) < 260, "{rate}: {count}");
            let expected = bits as f64 / 424.0 * (424.0 * 423.0 / 2.0) * rate * rate;
            let close = 5.0 * (expected * (1.0 + 4.0 * 424.0 * rate)).sqrt() + 3.0;
            assert!((pairs as f64 - expected).abs() < close, "{rate}: {pairs} of {expected}");
        }
    }
}
