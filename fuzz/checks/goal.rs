//! Arbitrary octets as a schedule in GOAL, and as what two ranks recorded.

use std::collections::BTreeSet;
use std::path::Path;

use wiretwin_msg::protocol::Mode;
use wiretwin_record::script::{Message, Receive, Script, Transfer};
use wiretwin_record::{goal, recording};

/// The requests and backgrounds of one rank that nothing has waited for.
#[derive(Clone, Default)]
struct Open {
    requests: BTreeSet<u64>,
    backgrounds: BTreeSet<u64>,
    begun: u64,
    finished: bool,
}

impl Script for Open {
    fn compute(&mut self, ps: u64) {
        assert!(ps > 0, "no computation of no time");
    }
    fn enter(&mut self, _: &str) {}
    fn exit(&mut self) {}
    fn send(&mut self, _: Message, _: Mode, request: u64) {
        assert!(self.requests.insert(request), "each request once");
    }
    fn recv(&mut self, _: Receive, request: u64) {
        assert!(self.requests.insert(request), "each request once");
    }
    fn wait(&mut self, requests: &[u64]) {
        assert!(!requests.is_empty());
        for request in requests {
            assert!(self.requests.remove(request), "a wait is for what was begun, once");
        }
    }
    fn begin(&mut self, rounds: &[Vec<Transfer>]) {
        assert!(rounds.iter().all(|round| !round.is_empty()));
        self.backgrounds.insert(self.begun);
        self.begun += 1;
    }
    fn wait_background(&mut self, number: u64) {
        assert!(self.backgrounds.remove(&number), "a wait is for what was begun, once");
    }
    fn finish(&mut self) {
        self.finished = true;
    }
}

/// Panics if a wait is for what was not begun, or a schedule leaves a message without a wait.
pub fn check(octets: &[u8]) {
    if let Ok(text) = std::str::from_utf8(octets)
        && let Ok(ranks) = goal::read::<Open>(Path::new("fuzzed"), text, 1000.0)
    {
        assert!(ranks.iter().all(|rank| rank.finished && rank.requests.is_empty()));
    }
    let (first, second) = octets.split_at(octets.len() / 2);
    let load = |path: &Path| Ok(if path.ends_with("0") { first.to_vec() } else { second.to_vec() });
    let mut ranks = vec![Open::default(); 2];
    if recording::read_from(Path::new("fuzzed"), &load, &mut ranks, 1.0).is_ok() {
        assert!(ranks.iter().all(|rank| rank.finished && rank.backgrounds.is_empty()));
    }
}
