//! What a rank asks of the world, one operation after the other, as bytes: millions of them fit the caches that a table
//! of their fields would not.
//!
//! An operation is its kind and its mode in one byte, and its numbers, seven bits a byte, the last one's eighth bit
//! zero. Behind a wait or a cancel stand the requests that it names, each as how many have been made since.

use serde::{Deserialize, Serialize};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::Op;
use wiretwin_units::Bytes;

use crate::rank_trace::number;

/// An operation; the requests that it names stand behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Compute(u64),
    Sleep(u64),
    Enter {
        name: u32,
        site: i32,
    },
    Exit,
    Send {
        context: u32,
        to: u32,
        tag: u32,
        bytes: u64,
        mode: u8,
    },
    Recv {
        asked: Asks,
        capacity: u64,
    },
    Cancel,
    Wait {
        count: u32,
        mode: u8,
    },
    Probe(Asks),
    ProbeNow(Asks),
    Yield,
    Finish,
    /// Messages go on in the background from here, those of the next number from 0.
    Begin,
    /// For all messages of the background of this number.
    WaitBackground(u32),
}

/// What a receive or a probe accepts; `ANY` is any source or tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asks {
    pub(crate) context: u32,
    pub(crate) source: u32,
    pub(crate) tag: u32,
}

/// No rank of a world, and no tag.
pub(crate) const ANY: u32 = u32::MAX;

impl Asks {
    pub(crate) fn of(pattern: &Pattern) -> Self {
        let Pattern { context, source, tag } = *pattern;
        Self { context, source: source.unwrap_or(ANY), tag: tag.unwrap_or(ANY) }
    }

    pub(crate) fn pattern(self) -> Pattern {
        let given = |one: u32| (one != ANY).then_some(one);
        Pattern { context: self.context, source: given(self.source), tag: given(self.tag) }
    }
}

impl Step {
    /// Whether the world gives it a number, by which waits name it.
    pub(crate) const fn makes_request(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Recv { .. })
    }

    /// How many requests it names.
    pub(crate) const fn names(&self) -> usize {
        match *self {
            Self::Cancel => 1,
            Self::Wait { count, .. } => count as usize,
            _ => 0,
        }
    }

    /// Whether the rank goes on only when the world resumes it.
    pub(crate) const fn suspends(&self) -> bool {
        matches!(
            self,
            Self::Wait { .. } | Self::WaitBackground(_) | Self::Probe(_) | Self::ProbeNow(_) | Self::Yield
        )
    }

    /// The operation of a send or a receive.
    #[inline]
    pub(crate) fn transfer(self) -> Option<Op<'static>> {
        match self {
            Self::Send { context, to, tag, bytes, mode } => {
                let mode = Mode::BY_NAME[mode as usize].1;
                Some(Op::Send { context, to, tag, bytes: Bytes::new(bytes), mode })
            }
            Self::Recv { asked, capacity } => {
                Some(Op::Recv { pattern: asked.pattern(), capacity: Bytes::new(capacity) })
            }
            _ => None,
        }
    }

    /// Whether it is the same, as far as the rank's own path decides it: not how long it computed, nor the number
    /// of a line, which are numbered in the order in which all ranks came to them.
    pub(crate) fn is_like(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Compute(_), Self::Compute(_)) => true,
            (Self::Enter { name: then, .. }, Self::Enter { name, .. }) => then == name,
            _ => self.sent() == now.sent(),
        }
    }

    /// A send of memory that is as it was, as one of memory that may not be: a rank that runs alone does not look.
    fn sent(&self) -> Self {
        match *self {
            Self::Send { context, to, tag, bytes, mode }
                if Mode::BY_NAME[mode as usize].1 == Mode::Unchanged =>
            {
                let mode = number(&Mode::BY_NAME, Mode::Standard);
                Self::Send { context, to, tag, bytes, mode }
            }
            other => other,
        }
    }
}

/// The operations of a rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Steps {
    bytes: Vec<u8>,
    count: usize,
    /// How many of them have made a request.
    requests: u64,
}

impl Steps {
    /// Adds an operation and the requests that it names, which are numbered from 1 as they were made, or in any other way.
    pub(crate) fn push(&mut self, step: Step, named: impl IntoIterator<Item = u64>) {
        let bytes = &mut self.bytes;
        let kind = |kind: u8, mode: u8| kind | mode << 4;
        match step {
            Step::Compute(ps) => write(bytes, kind(0, 0), [ps]),
            Step::Sleep(ps) => write(bytes, kind(0, 1), [ps]),
            Step::Enter { name, site } => {
                let folded = (site << 1) ^ (site >> 31);
                write(bytes, kind(1, 0), [u64::from(name), u64::from(folded as u32)]);
            }
            Step::Exit => write(bytes, kind(2, 0), []),
            Step::Send { context, to, tag, bytes: length, mode } => {
                write(bytes, kind(3, mode), [u64::from(context), u64::from(to), u64::from(tag), length]);
            }
            Step::Recv { asked, capacity } => {
                let [context, source, tag] = folded(asked);
                write(bytes, kind(4, 0), [context, source, tag, capacity]);
            }
            Step::Cancel => write(bytes, kind(5, 0), []),
            Step::Wait { count, mode } => write(bytes, kind(6, mode), [u64::from(count)]),
            Step::Probe(asked) => write(bytes, kind(7, 0), folded(asked)),
            Step::ProbeNow(asked) => write(bytes, kind(8, 0), folded(asked)),
            Step::Yield => write(bytes, kind(9, 0), []),
            Step::Finish => write(bytes, kind(10, 0), []),
            Step::Begin => write(bytes, kind(11, 0), []),
            Step::WaitBackground(number) => write(bytes, kind(12, 0), [u64::from(number)]),
        }
        for number in named {
            put(&mut self.bytes, (self.requests + 1).wrapping_sub(number));
        }
        self.requests += u64::from(step.makes_request());
        self.count += 1;
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// How many requests they make.
    pub(crate) const fn requests(&self) -> u64 {
        self.requests
    }

    pub(crate) fn read(&self) -> StepReader<'_> {
        StepReader { rest: &self.bytes, made: 0 }
    }

    /// A reader that goes on where another was.
    pub(crate) fn read_from(&self, place: Place) -> StepReader<'_> {
        StepReader { rest: self.bytes.get(place.at..).unwrap_or_default(), made: place.made }
    }

    /// Where a reader is.
    pub(crate) fn place_of(&self, reader: &StepReader<'_>) -> Place {
        Place { at: self.bytes.len() - reader.rest.len(), made: reader.made }
    }

    /// The operations without what they name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Step> {
        let mut reader = self.read();
        std::iter::from_fn(move || {
            let step = reader.step()?;
            for _ in 0..step.names() {
                reader.number();
            }
            Some(step)
        })
    }
}

/// Where a [`StepReader`] is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    at: usize,
    made: u64,
}

/// Reads operations. What one names has to be read before the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepReader<'a> {
    rest: &'a [u8],
    /// How many requests the operations so far have made.
    made: u64,
}

impl StepReader<'_> {
    pub(crate) const fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next operation.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Step> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        let mode = first >> 4 & 7;
        Some(match first & 15 {
            0 if mode == 0 => Step::Compute(self.number()),
            0 => Step::Sleep(self.number()),
            1 => {
                let (name, folded) = (self.number() as u32, self.number() as u32);
                Step::Enter { name, site: (folded >> 1) as i32 ^ -((folded & 1) as i32) }
            }
            2 => Step::Exit,
            3 => {
                self.made += 1;
                let (context, to, tag) = (self.number() as u32, self.number() as u32, self.number() as u32);
                Step::Send { context, to, tag, bytes: self.number(), mode }
            }
            4 => {
                self.made += 1;
                Step::Recv { asked: self.asked(), capacity: self.number() }
            }
            5 => Step::Cancel,
            6 => Step::Wait { count: self.number() as u32, mode },
            7 => Step::Probe(self.asked()),
            8 => Step::ProbeNow(self.asked()),
            9 => Step::Yield,
            10 => Step::Finish,
            11 => Step::Begin,
            12 => Step::WaitBackground(self.number() as u32),
            _ => return None,
        })
    }

    /// The number of the next request that the last operation names.
    #[inline]
    pub(crate) fn named(&mut self) -> u64 {
        (self.made + 1).wrapping_sub(self.number())
    }

    #[inline]
    fn asked(&mut self) -> Asks {
        let context = self.number() as u32;
        let any = |number: u64| (number as u32).wrapping_sub(1);
        Asks { context, source: any(self.number()), tag: any(self.number()) }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if *byte < 0x80 || shift == 63 {
                break;
            }
            shift += 7;
        }
        number
    }
}

fn folded(Asks { context, source, tag }: Asks) -> [u64; 3] {
    [context, source.wrapping_add(1), tag.wrapping_add(1)].map(u64::from)
}

#[inline]
fn write<const N: usize>(bytes: &mut Vec<u8>, kind: u8, numbers: [u64; N]) {
    bytes.push(kind);
    for number in numbers {
        put(bytes, number);
    }
}

#[inline]
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_were_added() {
        let asked = Asks { context: 3, source: ANY, tag: 0 };
        let steps = [
            (Step::Compute(u64::MAX), vec![]),
            (Step::Sleep(u64::MAX), vec![]),
            (Step::Enter { name: 700, site: -1 }, vec![]),
            (Step::Recv { asked, capacity: 1 << 40 }, vec![]),
            (Step::Send { context: 0, to: 1 << 31, tag: 127, bytes: 128, mode: 4 }, vec![]),
            (Step::Cancel, vec![1]),
            (Step::Wait { count: 3, mode: 2 }, vec![1, 2, 7 << 32]),
            (Step::Probe(asked), vec![]),
            (Step::ProbeNow(Asks { source: 0, tag: ANY, ..asked }), vec![]),
            (Step::Exit, vec![]),
            (Step::Begin, vec![]),
            (Step::WaitBackground(300), vec![]),
            (Step::Yield, vec![]),
            (Step::Finish, vec![]),
        ];
        let mut kept = Steps::default();
        for (step, named) in &steps {
            kept.push(*step, named.iter().copied());
        }
        assert_eq!((kept.len(), kept.requests()), (steps.len(), 2));
        let mut place = Place::default();
        for (step, named) in &steps {
            let mut reader = kept.read_from(place);
            assert_eq!(reader.step(), Some(*step));
            assert_eq!((0..step.names()).map(|_| reader.named()).collect::<Vec<_>>(), *named);
            place = kept.place_of(&reader);
        }
        assert!(kept.read_from(place).is_over());
        assert!(kept.iter().eq(steps.iter().map(|(step, _)| *step)));
    }
}
