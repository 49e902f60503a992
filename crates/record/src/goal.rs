//! GOAL, the schedules of `LogGOPSim` (Hoefler et al. 2010), as text.
//!
//! A rank begins its operations in the order of the file, and waits for what one requires before it begins it.
//! That is what GOAL says where each operation stands behind those that it requires and a rank has one processor
//! and one network card; other schedules are rejected.

use std::collections::BTreeMap;
use std::path::Path;

use wiretwin_msg::protocol::Mode;

use crate::script::{Message, Receive, Rejected, Script};

/// The most ranks of a schedule.
pub const MOST_RANKS: u32 = 1 << 16;

/// Reads a schedule: a script for each rank. A `calc` of 1 takes `unit_ps`.
///
/// # Errors
/// It is no schedule of this form: the line, what stands there, what is allowed.
pub fn read<S: Script + Default>(path: &Path, text: &str, unit_ps: f64) -> Result<Vec<S>, Rejected> {
    let mut reader = Reader { path, unit_ps, scripts: None, seen: Vec::new(), rank: Rank::default() };
    let mut rest = text;
    for number in 1.. {
        if rest.is_empty() {
            break;
        }
        if let Some(length) = reader.plain(rest.as_bytes()) {
            rest = &rest[length..];
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.split("//").next().unwrap_or_default().trim_ascii();
        if !line.is_empty() {
            reader.line(number, line)?;
        }
    }
    match (reader.scripts, reader.rank.number) {
        (Some(scripts), None) if reader.seen.iter().all(|seen| *seen) => Ok(scripts),
        _ => Err(Rejected::whole(path, "ends early").allowing("num_ranks, and each rank's {...}")),
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Send { to: u32, tag: u32, bytes: u64 },
    Recv { from: u32, tag: u32, bytes: u64 },
    Calc(u64),
}

/// How long a `calc` takes.
fn picoseconds(span: u64, unit_ps: f64) -> u64 {
    (span as f64 * unit_ps).round_ties_even() as u64
}

/// The rank that is being read.
#[derive(Debug, Default)]
struct Rank<'a> {
    /// None between ranks.
    number: Option<u32>,
    /// The last operation, which begins when all that it requires is known.
    last: Option<What>,
    label: Option<&'a str>,
    /// By operation, the request that nothing has waited for; 0 where there is none.
    open: Vec<u64>,
    /// How many requests there are.
    requests: u64,
    /// The requests that the last operation waits for.
    waited: Vec<u64>,
    /// By label, the last operation that has it; none as long as they are l1, l2 and so on, as programs write them.
    by_label: Option<BTreeMap<String, usize>>,
}

/// The number of a label that is an l and that number.
fn numbered(label: &str) -> Option<usize> {
    let digits =
        label.strip_prefix('l').filter(|digits| digits.starts_with(|one| matches!(one, '1'..='9')))?;
    digits.parse().ok()
}

impl<'a> Rank<'a> {
    /// Takes an operation.
    fn add(&mut self, label: Option<&'a str>, what: What, script: &mut impl Script) {
        self.begin(script);
        self.open.push(0);
        let place = self.open.len();
        (self.last, self.label) = (Some(what), label);
        if self.by_label.is_none() && label.and_then(numbered) == Some(place) {
            return;
        }
        let before = || (1..place).map(|number| (format!("l{number}"), number - 1)).collect();
        let by_label = self.by_label.get_or_insert_with(before);
        by_label.extend(label.map(|label| (label.to_string(), place - 1)));
    }

    /// The last operation with a label.
    fn find(&self, label: &str) -> Option<usize> {
        let Some(by_label) = &self.by_label else {
            return numbered(label).map(|number| number - 1).filter(|at| *at < self.open.len());
        };
        by_label.get(label).copied()
    }

    /// Whether a label is that of the last operation.
    fn is_last(&self, label: &str) -> bool {
        match &self.by_label {
            None => numbered(label) == Some(self.open.len()),
            Some(_) => self.label == Some(label),
        }
    }

    /// Notes that the last operation waits for another.
    fn wait_for(&mut self, other: usize) {
        let request = std::mem::take(&mut self.open[other]);
        if request > 0 {
            self.waited.push(request);
        }
    }

    /// Begins the last operation.
    fn begin(&mut self, script: &mut impl Script) {
        let Some(what) = self.last.take() else { return };
        if !self.waited.is_empty() {
            script.wait(&self.waited);
            self.waited.clear();
        }
        let request = self.requests + 1;
        match what {
            What::Calc(0) => return,
            What::Calc(ps) => return script.compute(ps),
            What::Send { to, tag, bytes } => {
                script.send(Message { context: 0, to, tag, bytes }, Mode::Standard, request);
            }
            What::Recv { from, tag, bytes } => {
                let receive = Receive { context: 0, source: Some(from), tag: Some(tag), capacity: bytes };
                script.recv(receive, request);
            }
        }
        self.requests = request;
        if let Some(open) = self.open.last_mut() {
            *open = request;
        }
    }

    /// Ends the rank.
    fn end(&mut self, script: &mut impl Script) {
        self.begin(script);
        self.waited.extend(self.open.drain(..).filter(|one| *one > 0));
        if !self.waited.is_empty() {
            script.wait(&self.waited);
            self.waited.clear();
        }
        script.finish();
        (self.number, self.by_label, self.requests) = (None, None, 0);
    }
}

/// What is left of a line that is read byte by byte.
struct Plain<'a>(&'a [u8]);

impl Plain<'_> {
    /// Whether this stands next, which is then behind.
    #[inline(always)]
    fn is<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let Some((_, rest)) = self.0.split_first_chunk().filter(|(next, _)| *next == text) else {
            return false;
        };
        self.0 = rest;
        true
    }

    /// The number that stands next, if it is one of at most 18 digits.
    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut digits) = (0_u64, 0);
        for byte in self.0 {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        self.0 = &self.0[digits..];
        (1..=18).contains(&digits).then_some(number)
    }

    /// The number of a label that is an l and that number.
    #[inline(always)]
    fn label(&mut self) -> Option<usize> {
        if !self.is(b"l") || self.0.first() == Some(&b'0') {
            return None;
        }
        self.number().map(|number| number as usize)
    }
}

struct Reader<'a, S> {
    path: &'a Path,
    unit_ps: f64,
    scripts: Option<Vec<S>>,
    /// By rank.
    seen: Vec<bool>,
    rank: Rank<'a>,
}

impl<'a, S: Script + Default> Reader<'a, S> {
    fn wrong(&self, number: u64, line: &str, allowed: impl Into<String>) -> Rejected {
        Rejected::at(self.path, format!("line {number}"), line, allowed)
    }

    /// Takes the first line of a text if it is one as programs write most of them: a send, a receive, a `calc` or
    /// what is required, with labels l1, l2 and so on and nothing else. Returns its length.
    #[inline]
    fn plain(&mut self, text: &[u8]) -> Option<usize> {
        let script = &mut self.scripts.as_mut()?[self.rank.number? as usize];
        let rank = &mut self.rank;
        if rank.by_label.is_some() {
            return None;
        }
        let mut line = Plain(text);
        let label = line.label()?;
        let last = rank.open.len();
        if line.is(b": ") {
            if label != last + 1 {
                return None;
            }
            let what = if line.is(b"calc ") {
                let span = line.number()?;
                if !line.is(b"\n") {
                    return None;
                }
                What::Calc(picoseconds(span, self.unit_ps))
            } else {
                let sends = line.is(b"send ");
                if !sends && !line.is(b"recv ") {
                    return None;
                }
                let bytes = line.number()?;
                if !(if sends { line.is(b"b to ") } else { line.is(b"b from ") }) {
                    return None;
                }
                let peer = line.number()?;
                let tag = if line.is(b" tag ") { line.number()? } else { 0 };
                if !line.is(b"\n") || peer >= self.seen.len() as u64 {
                    return None;
                }
                let (peer, tag) = (peer as u32, (tag & 0x7FFF_FFFF) as u32);
                if sends {
                    What::Send { to: peer, tag, bytes }
                } else {
                    What::Recv { from: peer, tag, bytes }
                }
            };
            rank.begin(script);
            rank.open.push(0);
            rank.last = Some(what);
        } else {
            if label != last || !line.is(b" requires ") {
                return None;
            }
            let other = line.label()?;
            if !line.is(b"\n") || other >= last {
                return None;
            }
            rank.wait_for(other - 1);
        }
        Some(text.len() - line.0.len())
    }

    /// Takes a line that is not empty.
    fn line(&mut self, number: u64, line: &'a str) -> Result<(), Rejected> {
        let Some(scripts) = &mut self.scripts else {
            let ranks = line.strip_prefix("num_ranks").filter(|rest| rest.starts_with(char::is_whitespace));
            let ranks = ranks.and_then(|rest| rest.trim().parse().ok());
            let ranks = ranks
                .filter(|ranks| (1..=MOST_RANKS).contains(ranks))
                .ok_or_else(|| self.wrong(number, line, format!("num_ranks from 1 to {MOST_RANKS}")))?;
            self.scripts = Some((0..ranks).map(|_| S::default()).collect());
            self.seen = vec![false; ranks as usize];
            return Ok(());
        };
        let Some(rank) = self.rank.number else {
            let rest = line.strip_prefix("rank").filter(|rest| rest.starts_with(char::is_whitespace));
            let rank =
                rest.and_then(|rest| rest.strip_suffix('{').unwrap_or(rest).trim().parse::<u32>().ok());
            let rank =
                rank.filter(|rank| self.seen.get(*rank as usize) == Some(&false)).ok_or_else(|| {
                    self.wrong(
                        number,
                        line,
                        format!("rank, once each from 0 to {}, and {{", self.seen.len() - 1),
                    )
                })?;
            self.seen[rank as usize] = true;
            self.rank.number = Some(rank);
            return Ok(());
        };
        match line {
            "{" => Ok(()),
            "}" => {
                self.rank.end(&mut scripts[rank as usize]);
                Ok(())
            }
            _ => self.operation(number, line),
        }
    }

    fn operation(&mut self, number: u64, line: &'a str) -> Result<(), Rejected> {
        let unread = || self.wrong(number, line, "send, recv, calc, requires, irequires or }");
        let mut words = line.split_ascii_whitespace();
        let mut first = words.next().unwrap_or_default();
        let label = first.strip_suffix(':').or_else(|| first.split_once(':').map(|(label, _)| label));
        if let Some(label) = label {
            let rest = &line[label.len() + 1..];
            words = rest.split_ascii_whitespace();
            first = words.next().unwrap_or_default();
        }
        let what = match first {
            "send" | "recv" => {
                let sends = first == "send";
                let bytes = words.next().and_then(|word| word.strip_suffix('b')?.parse().ok());
                let way = words.next();
                let peer = words.next().and_then(|word| word.parse::<u64>().ok());
                let (Some(bytes), Some(peer), true) =
                    (bytes, peer, way == Some(if sends { "to" } else { "from" }))
                else {
                    return Err(unread());
                };
                let ranks = self.seen.len() as u64;
                if peer >= ranks {
                    return Err(self.wrong(number, line, format!("ranks from 0 to {}", ranks - 1)));
                }
                let tag = self.placed(number, line, &mut words, true)?;
                let peer = peer as u32;
                if sends {
                    What::Send { to: peer, tag, bytes }
                } else {
                    What::Recv { from: peer, tag, bytes }
                }
            }
            "calc" => {
                let span = words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(unread)?;
                self.placed(number, line, &mut words, false)?;
                What::Calc(picoseconds(span, self.unit_ps))
            }
            own => {
                let (how, other, end) = (words.next(), words.next(), words.next());
                let (Some(how @ ("requires" | "irequires")), Some(other), None, None) =
                    (how, other, end, label)
                else {
                    return Err(unread());
                };
                return self.requires(number, line, own, other, how == "requires");
            }
        };
        if let (Some(scripts), Some(rank)) = (&mut self.scripts, self.rank.number) {
            self.rank.add(label, what, &mut scripts[rank as usize]);
        }
        Ok(())
    }

    /// Reads what stands behind an operation; returns its tag.
    fn placed<'b>(
        &self,
        number: u64,
        line: &str,
        words: &mut impl Iterator<Item = &'b str>,
        has_tag: bool,
    ) -> Result<u32, Rejected> {
        let mut tag = 0;
        while let Some(word) = words.next() {
            let given = words.next().and_then(|word| word.parse::<u64>().ok());
            match (word, given) {
                ("tag", Some(given)) if has_tag => tag = (given & 0x7FFF_FFFF) as u32,
                ("cpu" | "nic", Some(0)) => {}
                ("cpu" | "nic", _) => {
                    return Err(self.wrong(number, line, "cpu 0 and nic 0: a rank has one of each"));
                }
                _ => return Err(self.wrong(number, line, "tag, cpu 0 or nic 0 behind an operation")),
            }
        }
        Ok(tag)
    }

    /// Notes that the last operation follows another.
    fn requires(
        &mut self,
        number: u64,
        line: &str,
        own: &str,
        other: &'a str,
        ends: bool,
    ) -> Result<(), Rejected> {
        let rank = &mut self.rank;
        if !rank.is_last(own) {
            return Err(self.wrong(number, line, "what an operation requires right behind it"));
        }
        let last = rank.open.len() - 1;
        let Some(other) = rank.find(other).filter(|other| *other < last) else {
            return Err(self.wrong(number, line, "an operation above the one that requires it"));
        };
        if ends {
            rank.wait_for(other);
        }
        Ok(())
    }
}
