//! Explicit congestion notification (RFC 3168 §6.1): how it is agreed on, and what a mark brings about.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wiretwin_units::Span;

use super::pair::{ACTIVE, Fate, PASSIVE, Pair};
use crate::tcp::{Config, Ecn, Flags};

fn ends(active: bool, passive: bool) -> Pair {
    let [active, passive] = [active, passive].map(|ecn| Config { ecn, ..Config::linux_modern() });
    Pair::new([active, passive])
}

#[test]
fn both_ends_must_want_it() {
    const BOTH: Flags = Flags::from_bits(Flags::ECE.bits() | Flags::CWR.bits());
    for (active, passive) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut pair = ends(active, passive);
        pair.connect();
        pair.send_all(ACTIVE, 50_000, Span::from_s(1));
        let syns: Vec<_> = pair.segments[..2].iter().map(|(_, _, segment)| segment.flags).collect();
        assert_eq!(syns[0].has(BOTH), active, "{syns:?}");
        let granted = active && passive;
        assert_eq!((syns[1].has(Flags::ECE), syns[1].has(Flags::CWR)), (granted, false), "{syns:?}");
        for (_, _, segment) in &pair.segments[2..] {
            let capable = granted && !segment.is_empty();
            assert_eq!(segment.ecn == Ecn::Capable, capable, "{segment:?}");
            assert!(!segment.flags.any(BOTH), "{segment:?}");
        }
    }
}

#[test]
fn marks_of_one_window_reduce_it_once_and_are_echoed_until_the_sender_says_so() {
    let mut pair = ends(true, true);
    pair.delay = Span::from_ms(10);
    let mut texts = 0;
    pair.fates = Box::new(move |_, segment| {
        texts += usize::from(!segment.is_empty());
        // The last three of the first window of ten, and one much later.
        let marked = !segment.is_empty() && matches!(texts, 8..=10 | 60);
        Fate { marked, ..Fate::passed() }
    });
    pair.connect();
    pair.send_all(ACTIVE, 200_000, Span::from_s(5));
    let end = &pair.ends[ACTIVE];
    assert_eq!((end.counters().marks, end.counters().retransmitted), (2, 0));
    assert!(end.ssthresh() < 200_000, "the window was reduced");
    let sent_by = |end| pair.segments[2..].iter().filter(move |(_, of, _)| *of == end);
    let reduced = sent_by(ACTIVE).filter(|(_, _, segment)| segment.flags.has(Flags::CWR));
    let reduced: Vec<_> = reduced.map(|(at, _, _)| *at).collect();
    assert_eq!(reduced.len(), 2);
    // Between the first mark and the coming of the segment that says so, and then again.
    let echoes: Vec<_> =
        sent_by(PASSIVE).map(|(at, _, segment)| (*at, segment.flags.has(Flags::ECE))).collect();
    let heard = reduced[0] + Span::from_ms(10);
    assert!(echoes.iter().any(|(at, echo)| *echo && *at < heard));
    let since: Vec<_> = echoes.iter().filter(|(at, _)| *at >= heard).map(|(_, echo)| *echo).collect();
    assert!(!since[0] && since.contains(&true) && !since[since.len() - 1], "{since:?}");
}
