//! The matchers: who may send to whom.

use wiretwin_engine::Stream;

use super::bits::{Choices, next_one, ones};

/// Who asks for what: for each input the outputs it has cells for, and the same the other way round.
#[derive(Clone, Debug)]
pub struct Requests {
    of_input: Vec<u64>,
    of_output: Vec<u64>,
}

impl Requests {
    /// No requests among so many ports, at most 64.
    pub fn new(ports: usize) -> Self {
        assert!(ports <= 64, "ports are bits of a word");
        Self { of_input: vec![0; ports], of_output: vec![0; ports] }
    }

    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.of_input.len()
    }

    /// An input asks for an output, or does no more.
    #[inline]
    pub fn set(&mut self, input: u32, output: u32, asks: bool) {
        let (of_input, of_output) =
            (&mut self.of_input[input as usize], &mut self.of_output[output as usize]);
        *of_input = *of_input & !(1 << output) | u64::from(asks) << output;
        *of_output = *of_output & !(1 << input) | u64::from(asks) << input;
    }

    /// The outputs that an input asks for, as bits.
    #[inline]
    pub fn of_input(&self, input: u32) -> u64 {
        self.of_input[input as usize]
    }

    /// Whether anybody asks for anything.
    #[inline]
    pub fn any(&self) -> bool {
        self.of_input.iter().any(|&outputs| outputs != 0)
    }

    /// The inputs that ask for an output, as bits.
    #[inline]
    pub fn of_output(&self, output: u32) -> u64 {
        self.of_output[output as usize]
    }
}

/// Pairs of an input and an output, no port in two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matching {
    /// The output of each input that has one.
    output_of: Vec<u8>,
    free_inputs: u64,
    free_outputs: u64,
    /// Inputs that take no part.
    withheld: u64,
    all: u64,
}

impl Matching {
    /// No pairs among so many ports.
    pub fn new(ports: usize) -> Self {
        let all = u64::MAX >> (64 - ports);
        Self { output_of: vec![0; ports], free_inputs: all, free_outputs: all, withheld: 0, all }
    }

    /// Parts all pairs.
    #[inline]
    pub fn clear(&mut self) {
        (self.free_inputs, self.free_outputs, self.withheld) = (self.all, self.all, 0);
    }

    /// Takes ports out of a matching without pairs, those of these bits.
    #[inline]
    pub fn withhold(&mut self, inputs: u64, outputs: u64) {
        debug_assert!(self.is_empty(), "ports are withheld before any are paired");
        self.free_inputs &= !inputs;
        self.free_outputs &= !outputs;
        self.withheld = inputs;
    }

    /// Inputs without an output, as bits.
    #[inline]
    pub const fn free_inputs(&self) -> u64 {
        self.free_inputs
    }

    /// Outputs without an input, those withheld left out, as bits.
    #[inline]
    pub const fn free_outputs(&self) -> u64 {
        self.free_outputs
    }

    /// Inputs with an output, as bits.
    #[inline]
    pub const fn inputs(&self) -> u64 {
        self.all & !self.free_inputs & !self.withheld
    }

    /// The output of an input that has one.
    #[inline]
    pub fn paired(&self, input: u32) -> u32 {
        u32::from(self.output_of[input as usize])
    }

    /// Pairs two ports that are free.
    #[inline]
    pub fn pair(&mut self, input: u32, output: u32) {
        debug_assert!(self.free_inputs >> input & self.free_outputs >> output & 1 == 1, "both are free");
        self.output_of[input as usize] = output as u8;
        self.free_inputs &= !(1 << input);
        self.free_outputs &= !(1 << output);
    }

    /// How many pairs there are.
    #[inline]
    pub fn len(&self) -> u32 {
        self.inputs().count_ones()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pairs, input first, in the order of the inputs.
    #[inline]
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        ones(self.inputs()).map(|input| (input, u32::from(self.output_of[input as usize])))
    }
}

/// Parallel iterative matching.
#[derive(Clone, Debug)]
pub struct Pim {
    choices: Choices,
    grants: Vec<u64>,
}

impl Pim {
    /// A matcher of so many ports.
    pub fn new(ports: usize, stream: Stream) -> Self {
        Self { choices: Choices::new(stream), grants: vec![0; ports] }
    }

    /// One round: grows the matching; whether it did.
    #[inline]
    pub fn round(&mut self, requests: &Requests, matching: &mut Matching) -> bool {
        let mut granted = 0_u64;
        for output in ones(matching.free_outputs) {
            let asking = requests.of_output(output) & matching.free_inputs;
            if asking != 0 {
                let input = self.choices.one_of(asking);
                self.grants[input as usize] |= 1 << output;
                granted |= 1 << input;
            }
        }
        for input in ones(granted) {
            let output = self.choices.one_of(std::mem::take(&mut self.grants[input as usize]));
            matching.pair(input, output);
        }
        granted != 0
    }
}

/// iSLIP.
#[derive(Clone, Debug)]
pub struct Islip {
    /// Where each output looks first for an input.
    grant_from: Vec<u8>,
    /// Where each input looks first among its grants.
    accept_from: Vec<u8>,
    grants: Vec<u64>,
}

impl Islip {
    /// A matcher of so many ports, all pointers at the first.
    pub fn new(ports: usize) -> Self {
        Self { grant_from: vec![0; ports], accept_from: vec![0; ports], grants: vec![0; ports] }
    }

    /// One round: grows the matching; whether it did. Pointers move in the first round of a slot only.
    #[inline]
    pub fn round(&mut self, requests: &Requests, matching: &mut Matching, first: bool) -> bool {
        let ports = self.grants.len() as u32;
        let mut granted = 0_u64;
        for output in ones(matching.free_outputs) {
            let asking = requests.of_output(output) & matching.free_inputs;
            if asking != 0 {
                let input = next_one(asking, u32::from(self.grant_from[output as usize]));
                self.grants[input as usize] |= 1 << output;
                granted |= 1 << input;
            }
        }
        for input in ones(granted) {
            let grants = std::mem::take(&mut self.grants[input as usize]);
            let output = next_one(grants, u32::from(self.accept_from[input as usize]));
            matching.pair(input, output);
            if first {
                self.grant_from[output as usize] = ((input + 1) % ports) as u8;
                self.accept_from[input as usize] = ((output + 1) % ports) as u8;
            }
        }
        granted != 0
    }
}
