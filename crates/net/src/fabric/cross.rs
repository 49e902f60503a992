//! A crossbar in its slots: inputs and outputs are matched, pairs send.

use wiretwin_engine::Stream;
use wiretwin_units::SimTime;

use super::node::{Kind, Node, ones};
use super::state::{NONE, Store};
use crate::cell_switch::crossbar::{Islip, Matching, Pim, Requests};

#[derive(Clone, Debug)]
pub(super) enum Matcher {
    Pim(Pim),
    Islip(Islip),
    ByCircuit(ByCircuit),
}

/// As PIM, with grants by the fewest turns.
#[derive(Clone, Debug)]
pub(super) struct ByCircuit {
    pub grants: Vec<u64>,
    /// Turns of the circuit that each output served last.
    pub turns: Vec<u64>,
    pub stream: Stream,
}

impl Node {
    /// A crossbar's slot.
    #[inline]
    pub(super) fn cross(&mut self, busy: u64, slot: u64, now: SimTime, store: &mut Store) {
        let Kind::Crossbar { iterations, inside, .. } = self.kind else { return };
        if inside == 1 {
            if !self.pair_up(iterations, true, busy, 0, store) {
                return;
            }
            self.send_pairs(slot, now, store);
        } else {
            // Round by round: an input that is quicker than its line may be matched in several.
            let (mut outputs, mut full, mut turns) = (busy, 0, [0_u8; 64]);
            for round in 0..iterations {
                if !self.pair_up(1, round == 0, outputs, full, store) {
                    break;
                }
                let Kind::Crossbar { matching, .. } = &self.kind else { return };
                for (input, output) in matching.pairs() {
                    outputs |= 1 << output;
                    turns[input as usize] += 1;
                    full |= u64::from(turns[input as usize] == inside) << input;
                }
                self.send_pairs(slot, now, store);
            }
        }
    }

    /// Matches inputs and outputs that are not withheld in so many rounds; whether there are pairs.
    #[inline]
    fn pair_up(&mut self, rounds: u8, first: bool, outputs: u64, inputs: u64, store: &Store) -> bool {
        let ports = self.outward.len();
        let Kind::Crossbar { requests, matching, matcher, .. } = &mut self.kind else { return false };
        matching.clear();
        matching.withhold(inputs, outputs);
        for round in 0..rounds {
            let grown = match matcher {
                Matcher::Pim(pim) => pim.round(requests, matching),
                Matcher::Islip(islip) => islip.round(requests, matching, first && round == 0),
                Matcher::ByCircuit(fair) => {
                    let turns = |input: usize, output: usize| {
                        store.branches[self.rings[input * ports + output].head as usize].turns
                    };
                    fair.round(requests, matching, turns)
                }
            };
            if !grown {
                return round > 0;
            }
        }
        true
    }

    /// Lets every pair send.
    #[inline]
    fn send_pairs(&mut self, slot: u64, now: SimTime, store: &mut Store) {
        let Kind::Crossbar { matching, .. } = &self.kind else { return };
        let mut inputs = matching.inputs();
        while inputs != 0 {
            let input = inputs.trailing_zeros();
            inputs &= inputs - 1;
            let Kind::Crossbar { matching, .. } = &self.kind else { return };
            let output = matching.paired(input);
            self.send_pair(input, output, slot, now, store);
        }
    }

    /// Lets the circuit whose turn it is send from an input to an output.
    #[inline]
    fn send_pair(&mut self, input: u32, output: u32, slot: u64, now: SimTime, store: &mut Store) {
        let place = input as usize * self.outward.len() + output as usize;
        let Kind::Crossbar { matcher, .. } = &mut self.kind else { return };
        if let Matcher::ByCircuit(fair) = matcher {
            let turns = &mut store.branches[self.rings[place].head as usize].turns;
            fair.turns[output as usize] = fair.turns[output as usize].max(*turns);
            *turns += 1;
        }
        if let Some(number) = self.turn(place, store) {
            self.send(number, output as usize, slot, now, store);
        }
        if self.rings[place].head == NONE
            && let Kind::Crossbar { requests, .. } = &mut self.kind
        {
            requests.set(input, output, false);
        }
    }
}

impl ByCircuit {
    pub(super) fn new(ports: usize, stream: Stream) -> Self {
        Self { grants: vec![0; 64], turns: vec![0; ports], stream }
    }

    /// One round: grows the matching; whether it did.
    fn round(
        &mut self,
        requests: &Requests,
        matching: &mut Matching,
        turns: impl Fn(usize, usize) -> u64,
    ) -> bool {
        let mut granted = 0_u64;
        for output in ones(matching.free_outputs()) {
            let asking = requests.of_output(output as u32) & matching.free_inputs();
            if asking == 0 {
                continue;
            }
            // Of those with the fewest turns the first from a random place on.
            let from = self.stream.below(64) as u32;
            let input = ones(asking.rotate_right(from))
                .map(|place| (place + from as usize) % 64)
                .min_by_key(|&input| turns(input, output))
                .expect("somebody asks");
            self.grants[input] |= 1 << output;
            granted |= 1 << input;
        }
        for input in ones(granted) {
            let grants = std::mem::take(&mut self.grants[input]);
            let nth = self.stream.below(u64::from(grants.count_ones())) as usize;
            let output = ones(grants).nth(nth).expect("there are so many");
            matching.pair(input as u32, output as u32);
        }
        granted != 0
    }
}
