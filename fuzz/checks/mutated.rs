//! The corpus of a target and what small changes make of it, for the ordinary tests.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// A change of a few octets.
#[derive(Clone, Debug)]
enum Edit {
    Replace(Index, u8),
    Turn(Index, u8),
    Insert(Index, Vec<u8>),
    Cut(Index, Index),
    Repeat(Index, Index),
}

impl Edit {
    fn apply(&self, octets: &mut Vec<u8>) {
        let end = octets.len();
        let range = |from: &Index, to: &Index| {
            let (one, other) = (from.index(end + 1), to.index(end + 1));
            one.min(other)..one.max(other)
        };
        match self {
            Self::Replace(at, octet) if end > 0 => octets[at.index(end)] = *octet,
            Self::Turn(at, bit) if end > 0 => octets[at.index(end)] ^= 1 << (bit % 8),
            Self::Replace(..) | Self::Turn(..) => {}
            Self::Insert(at, more) => {
                drop(octets.splice(at.index(end + 1)..at.index(end + 1), more.iter().copied()))
            }
            Self::Cut(from, to) => drop(octets.drain(range(from, to))),
            Self::Repeat(from, to) => octets.extend_from_within(range(from, to)),
        }
    }
}

fn any_edit() -> impl Strategy<Value = Edit> {
    // Octets that mean something in text are more likely to lead somewhere.
    let telling = prop::sample::select(&b"0123456789.-+eE{}[]\":, nBkMGi/su\x00\xFF"[..]);
    let octet = prop_oneof![telling, any::<u8>()].boxed();
    prop_oneof![
        (any::<Index>(), octet.clone()).prop_map(|(at, octet)| Edit::Replace(at, octet)),
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Edit::Turn(at, bit)),
        (any::<Index>(), prop::collection::vec(octet, 1..6)).prop_map(|(at, more)| Edit::Insert(at, more)),
        any::<(Index, Index)>().prop_map(|(from, to)| Edit::Cut(from, to)),
        any::<(Index, Index)>().prop_map(|(from, to)| Edit::Repeat(from, to)),
    ]
}

/// Runs `check` over the corpus of `target`, over changed inputs of it, and over arbitrary octets.
///
/// # Panics
/// If `check` does, with the smallest input found, or if the corpus is empty.
pub fn check_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("a file").path())
        .collect();
    names.sort();
    let seeds: Vec<Vec<u8>> = names.iter().map(|name| fs::read(name).expect("a file")).collect();
    assert!(!seeds.is_empty(), "no input in {}", folder.display());
    seeds.iter().for_each(|seed| check(seed));

    let mut runner = TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let changed = (prop::sample::select(seeds), prop::collection::vec(any_edit(), 0..6)).prop_map(
        |(mut octets, edits)| {
            edits.iter().for_each(|edit| edit.apply(&mut octets));
            octets
        },
    );
    let arbitrary = prop::collection::vec(any::<u8>(), 0..300);
    let inputs = prop_oneof![4 => changed, 1 => arbitrary];
    if let Err(error) = runner.run(&inputs, |octets| {
        check(&octets);
        Ok(())
    }) {
        panic!("{error}");
    }
}
