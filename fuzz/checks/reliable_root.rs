//! Arbitrary octets as what the leaves of a tree say to its root, and as what becomes of PDUs between them.

use std::collections::VecDeque;

use wiretwin_msg::library::Content;
use wiretwin_msg::reliable::channel::{Channel, ChannelOutput, Config};
use wiretwin_msg::reliable::root::Root;
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

#[allow(clippy::duplicate_mod, reason = "each check is a program of its own, but in the ordinary tests")]
#[path = "input.rs"]
mod input;
use input::Input;

const LEAVES: [u32; 3] = [1, 2, 3];

/// Panics if a machine does, or never ends, or if a leaf does not get all that was written, once.
pub fn check(octets: &[u8]) {
    garbage(octets);
    Tree::new().follow(Input(octets));
}

fn message(bytes: u64) -> Content {
    let mut body = Content::new();
    body.push_body(Payload::whole(MessageId(1), Bytes::new(bytes)));
    body
}

fn garbage(octets: &[u8]) {
    let config = Config { window: 4, limit: Span::from_s(5), ..Config::default() };
    let mut root = Root::new(config, &LEAVES);
    let mut now = SimTime::ZERO;
    let step = usize::from(octets.first().copied().unwrap_or(0)) % 60 + 1;
    for piece in octets.chunks(step) {
        root.write(now, &mut message(9000));
        let mut pdu = Content::new();
        pdu.push_octets(piece);
        // The last of these is no leaf of it.
        root.handle_pdu(now, u32::from(piece[0]) % 4 + 1, &mut pdu);
        while !matches!(root.poll_output(), Output::Timeout(_)) {}
        if let Some(due) = root.deadline() {
            now = now.max(due);
            root.handle_timeout(now);
        }
    }
    // The leaves say nothing from now on: that ends.
    for _ in 0..20 {
        let Some(due) = root.deadline() else { break };
        now = now.max(due);
        root.handle_timeout(now);
    }
    assert!(root.deadline().is_none(), "it waits for ever");
}

/// A root and its leaves, with what is on its way.
struct Tree {
    now: SimTime,
    root: Root,
    leaves: [Channel; 3],
    down: [VecDeque<Content>; 3],
    up: [VecDeque<Content>; 3],
    written: u64,
}

impl Tree {
    fn new() -> Self {
        let config = Config { window: 8, limit: Span::from_s(1_000_000), ..Config::default() };
        Self {
            now: SimTime::ZERO,
            root: Root::new(config, &LEAVES),
            leaves: LEAVES.map(|_| Channel::new(config)),
            down: Default::default(),
            up: Default::default(),
            written: 0,
        }
    }

    fn follow(mut self, mut input: Input<'_>) {
        while !input.is_empty() {
            let what = input.octet();
            let leaf = usize::from(what >> 4) % LEAVES.len();
            match what % 8 {
                0 | 1 => {
                    let bytes = u64::from(input.word());
                    let mut content = message(bytes);
                    self.root.write(self.now, &mut content);
                    self.written += bytes - content.length().get();
                }
                2 | 3 => self.reach_leaf(leaf),
                4 => drop(self.down[leaf].pop_front()),
                5 => self.reach_root(leaf),
                6 => drop(self.up[leaf].pop_front()),
                _ => self.wait(),
            }
            self.drain();
        }
        // Nothing is lost from now on.
        for _ in 0..60 {
            while self.down.iter().chain(&self.up).any(|way| !way.is_empty()) {
                for leaf in 0..LEAVES.len() {
                    self.reach_leaf(leaf);
                    self.reach_root(leaf);
                    self.drain();
                }
            }
            self.wait();
            self.drain();
        }
        assert_eq!((self.root.lost(), self.root.deadline()), (None, None), "it ends");
        for leaf in &mut self.leaves {
            assert_eq!(leaf.inbox().length().get(), self.written, "each leaf has all of it, once");
        }
    }

    fn reach_leaf(&mut self, leaf: usize) {
        if let Some(mut pdu) = self.down[leaf].pop_front() {
            self.leaves[leaf].handle_pdu(self.now, &mut pdu);
        }
    }

    fn reach_root(&mut self, leaf: usize) {
        if let Some(mut pdu) = self.up[leaf].pop_front() {
            self.root.handle_pdu(self.now, LEAVES[leaf], &mut pdu);
        }
    }

    fn wait(&mut self) {
        if let Some(due) = self.root.deadline() {
            self.now = self.now.max(due);
            self.root.handle_timeout(self.now);
        }
    }

    fn drain(&mut self) {
        for pdu in sent(|| self.root.poll_output()) {
            self.down.iter_mut().for_each(|way| way.push_back(pdu.clone()));
        }
        for (leaf, way) in self.leaves.iter_mut().zip(&mut self.up) {
            way.extend(sent(|| leaf.poll_output()));
        }
    }
}

/// The PDUs among what a machine has to tell.
fn sent(mut poll: impl FnMut() -> ChannelOutput) -> Vec<Content> {
    let mut all = Vec::new();
    loop {
        match poll() {
            Output::Transmit(pdu) => all.push(pdu),
            Output::Timeout(_) => return all,
            _ => {}
        }
    }
}
