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
    let mut reader =
        Reader { path, unit_ps, scripts: None, rank: None, seen: Vec::new(), pending: Pending::default() };
    for (number, line) in (1..).zip(text.lines()) {
        // Few lines have one, and a search for a letter is cheaper than for two.
        let line = if line.contains('/') { line.split("//").next().unwrap_or_default() } else { line };
        let line = line.trim_ascii();
        if !line.is_empty() {
            reader.line(number, line)?;
        }
    }
    match (reader.scripts, reader.rank) {
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

/// The operations of the rank that is being read.
#[derive(Debug, Default)]
struct Pending<'a> {
    /// Each with the place of the first of its needs.
    operations: Vec<(What, usize)>,
    labels: Vec<Option<&'a str>>,
    /// What operations require, one after the other.
    needs: Vec<usize>,
    /// The first `listed` labels, by name. It stays empty until a label is looked up that is not at the place that its
    /// number gives.
    by_label: BTreeMap<&'a str, usize>,
    listed: usize,
}

impl<'a> Pending<'a> {
    /// The last operation with a label, which is most often the one of its number.
    fn find(&mut self, label: &'a str) -> Option<usize> {
        let digits = label.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let number = digits.parse::<usize>().unwrap_or(usize::MAX);
        let is_there = |at: &usize| self.labels.get(*at).copied().flatten() == Some(label);
        // Written by programs, labels are l1, l2 and so on, each once.
        if self.by_label.is_empty()
            && let Some(at) = number.checked_sub(1).filter(is_there)
        {
            return Some(at);
        }
        let new = self.labels.iter().enumerate().skip(self.listed);
        self.by_label.extend(new.filter_map(|(at, label)| Some(((*label)?, at))));
        self.listed = self.labels.len();
        self.by_label.get(label).copied()
    }
}

struct Reader<'a, S> {
    path: &'a Path,
    unit_ps: f64,
    scripts: Option<Vec<S>>,
    rank: Option<u32>,
    /// By rank.
    seen: Vec<bool>,
    pending: Pending<'a>,
}

impl<'a, S: Script + Default> Reader<'a, S> {
    fn wrong(&self, number: u64, line: &str, allowed: impl Into<String>) -> Rejected {
        Rejected::at(self.path, format!("line {number}"), line, allowed)
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
        let Some(rank) = self.rank else {
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
            self.rank = Some(rank);
            return Ok(());
        };
        match line {
            "{" => Ok(()),
            "}" => {
                std::mem::take(&mut self.pending).write(&mut scripts[rank as usize]);
                self.rank = None;
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
                What::Calc((span as f64 * self.unit_ps).round_ties_even() as u64)
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
        let pending = &mut self.pending;
        pending.operations.push((what, pending.needs.len()));
        pending.labels.push(label);
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
        let pending = &mut self.pending;
        if pending.labels.last() != Some(&Some(own)) {
            return Err(self.wrong(number, line, "what an operation requires right behind it"));
        }
        let last = pending.operations.len() - 1;
        let Some(other) = pending.find(other).filter(|other| *other < last) else {
            return Err(self.wrong(number, line, "an operation above the one that requires it"));
        };
        if ends && !pending.needs[pending.operations[last].1..].contains(&other) {
            pending.needs.push(other);
        }
        Ok(())
    }
}

impl Pending<'_> {
    /// Writes what the rank does that ends here.
    fn write(self, script: &mut impl Script) {
        // By operation, the request that nothing has waited for.
        let mut open = vec![0_u64; self.operations.len()];
        let mut waited = Vec::new();
        for (nth, (what, first)) in self.operations.iter().copied().enumerate() {
            let end = self.operations.get(nth + 1).map_or(self.needs.len(), |next| next.1);
            let needs = self.needs[first..end].iter().map(|need| std::mem::take(&mut open[*need]));
            waited.extend(needs.filter(|one| *one > 0));
            if !waited.is_empty() {
                script.wait(&waited);
                waited.clear();
            }
            let request = nth as u64 + 1;
            match what {
                What::Calc(0) => {}
                What::Calc(ps) => script.compute(ps),
                What::Send { to, tag, bytes } => {
                    script.send(Message { context: 0, to, tag, bytes }, Mode::Standard, request);
                    open[nth] = request;
                }
                What::Recv { from, tag, bytes } => {
                    let receive = Receive { context: 0, source: Some(from), tag: Some(tag), capacity: bytes };
                    script.recv(receive, request);
                    open[nth] = request;
                }
            }
        }
        waited.extend(open.into_iter().filter(|one| *one > 0));
        if !waited.is_empty() {
            script.wait(&waited);
        }
        script.finish();
    }
}
