//! Nodes and lines of a network, read from JSON.

use std::collections::BTreeMap;

use wiretwin_units::{BitRate, Cells, Span};

use super::plan::{
    Arbiter, Credits, Crossbar, Discard, Faults, Line, Node, NodeId, Plan, Scheme, Service, SharedBuffer,
    Station, Window,
};
use crate::json::{At, Fields, JsonError};

/// The longest time there is, in nanoseconds: a day.
pub(super) const LONGEST_NS: u64 = 86_400_000_000_000;
const MOST_CELLS: u64 = 1 << 30;

/// Nodes and lines, by name.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    /// Without circuits.
    pub(crate) plan: Plan,
    names: BTreeMap<String, (NodeId, Option<u32>)>,
    /// Nodes that are hosts, in their order.
    pub(crate) stations: Vec<NodeId>,
    /// Lines by the names of their ends.
    pub(super) lines: Vec<String>,
    /// Whether a host says what it takes for a packet; and what each takes.
    paid: bool,
    pub(super) packets: Vec<Span>,
}

impl Wiring {
    /// Reads the lists `nodes` and `lines` of an object; with `paid`, each host says what it takes for a packet.
    ///
    /// # Errors
    /// [`JsonError`] naming the key, the value and what is allowed.
    pub(crate) fn read(fields: &Fields<'_>, paid: bool) -> Result<Self, JsonError> {
        let mut made = Self { paid, ..Self::default() };
        for node in fields.get("nodes")?.list("nodes")? {
            made.node(&node)?;
        }
        for line in fields.get("lines")?.list("lines")? {
            made.line(&line)?;
        }
        Ok(made)
    }

    fn node(&mut self, at: &At<'_>) -> Result<(), JsonError> {
        let switch =
            ["name", "kind", "ports", "latency_ns", "queue_cells", "discard", "early_cells", "circuits"];
        let of =
            |more: &[&'static str]| switch.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
        let kinds = [("crossbar", 0), ("shared-buffer", 1), ("host", 2)];
        let kind = at.member("kind").ok_or_else(|| at.refuse("an object with a kind"))?;
        let kind = word(&kind, &kinds)?;
        let (node, host) = match kind {
            0 => {
                let fields = at.object(&of(&["matching", "iterations", "inside"]))?;
                let iterations = small(&fields, "iterations")?;
                let arbiters = [
                    ("pim", Arbiter::Pim { iterations }),
                    ("islip", Arbiter::Islip { iterations }),
                    ("by-circuit", Arbiter::ByCircuit { iterations }),
                ];
                let spec = Crossbar {
                    ports: small(&fields, "ports")?,
                    arbiter: word(&fields.get("matching")?, &arbiters)?,
                    inside: small(&fields, "inside")?,
                    latency: span(&fields, "latency_ns")?,
                    queue: cells(&fields, "queue_cells")?,
                    discard: discard(&fields)?,
                    circuits: fields.get("circuits")?.integer(1, u64::from(u32::MAX))? as u32,
                };
                (Node::Crossbar(spec), None)
            }
            1 => {
                let fields = at.object(&of(&["service", "buffer_cells"]))?;
                let services = [("in-turn", Service::InTurn), ("in-order", Service::InOrder)];
                let spec = SharedBuffer {
                    ports: small(&fields, "ports")?,
                    service: word(&fields.get("service")?, &services)?,
                    latency: span(&fields, "latency_ns")?,
                    buffer: Cells::new(fields.get("buffer_cells")?.integer(1, MOST_CELLS)?),
                    queue: cells(&fields, "queue_cells")?,
                    discard: discard(&fields)?,
                    circuits: fields.get("circuits")?.integer(1, u64::from(u32::MAX))? as u32,
                };
                (Node::SharedBuffer(spec), None)
            }
            _ => {
                let paid: &[&'static str] = if self.paid { &["packet_ns"] } else { &[] };
                let keys = ["name", "kind", "sar_ns"].iter().chain(paid).copied().collect::<Vec<_>>();
                let fields = at.object(&keys)?;
                if self.paid {
                    self.packets.push(span(&fields, "packet_ns")?);
                }
                (Node::Station(Station { sar: span(&fields, "sar_ns")? }), Some(self.stations.len() as u32))
            }
        };
        let name = text(&at.member("name").ok_or_else(|| at.refuse("an object with a name"))?)?;
        let number = self.plan.node(node);
        if host.is_some() {
            self.stations.push(number);
        }
        if self.names.insert(name.clone(), (number, host)).is_some() {
            return Err(at.refuse(&format!("a name of its own; there is another {name}")));
        }
        Ok(())
    }

    /// A node by its name, and which station it is.
    pub(super) fn named(&self, at: &At<'_>) -> Result<(NodeId, Option<u32>), JsonError> {
        let found = at.value.as_str().and_then(|name| self.names.get(name)).copied();
        found.ok_or_else(|| at.refuse("the name of a node"))
    }

    fn line(&mut self, at: &At<'_>) -> Result<(), JsonError> {
        let keys = ["between", "bit_s", "back_bit_s", "delay_ns", "credits", "cells_lost", "credits_lost"];
        let fields = at.object(&keys)?;
        let between = fields.get("between")?;
        let ends = between.list("two names")?;
        let [from, to] = &ends[..] else { return Err(between.refuse("two names")) };
        let (first, second) = (self.named(from)?.0, self.named(to)?.0);
        let rate = |at: &At<'_>| at.integer(1_000, 10_000_000_000_000).map(BitRate::bit_s);
        let there = rate(&fields.get("bit_s")?)?;
        let back = fields.optional("back_bit_s").map_or(Ok(there), |at| rate(&at))?;
        let credits = fields.optional("credits").map(|at| credits(&at)).transpose()?;
        let faults =
            Faults { cells: share(&fields, "cells_lost")?, credits: share(&fields, "credits_lost")? };
        let delay = fields.get("delay_ns")?.integer(0, 1_000_000_000)?;
        let line = Line { rates: [there, back], delay: Span::from_ns(delay), credits, faults };
        self.plan.line(first, second, line);
        let name = |at: &At<'_>| at.value.as_str().unwrap_or_default().to_string();
        self.lines.push(format!("{}-{}", name(from), name(to)));
        Ok(())
    }
}

pub(super) fn text(at: &At<'_>) -> Result<String, JsonError> {
    let text = at.value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_string).ok_or_else(|| at.refuse("a name"))
}

fn discard(fields: &Fields<'_>) -> Result<Discard, JsonError> {
    let at = fields.get("discard")?;
    let threshold = cells(fields, "early_cells")?.unwrap_or(Cells::new(0));
    let early = Discard::Early { threshold };
    word(&at, &[("tail", Discard::Tail), ("partial", Discard::Partial), ("early", early)])
}

fn credits(at: &At<'_>) -> Result<Credits, JsonError> {
    let fields = at.object(&["cells", "shared_cells", "scheme", "resync_ns"])?;
    let window = match fields.get("cells")? {
        at if at.value.as_str() == Some("loop") => Window::Loop,
        at => match at.value.as_u64().filter(|&cells| cells <= MOST_CELLS) {
            Some(cells) => Window::Cells(Cells::new(cells)),
            None => return Err(at.refuse("a number of cells, or loop")),
        },
    };
    let schemes = [("increments", Scheme::Increments), ("totals", Scheme::Totals)];
    let scheme = fields.optional("scheme").map_or(Ok(Scheme::Increments), |at| word(&at, &schemes))?;
    let resync = fields.optional("resync_ns").map(|at| at.integer(1, LONGEST_NS)).transpose()?;
    let shared = cells(&fields, "shared_cells")?.unwrap_or(Cells::new(0));
    Ok(Credits { window, shared, scheme, resync: resync.map(Span::from_ns) })
}

pub(super) fn span(fields: &Fields<'_>, key: &str) -> Result<Span, JsonError> {
    Ok(Span::from_ns(fields.get(key)?.integer(0, LONGEST_NS)?))
}

fn cells(fields: &Fields<'_>, key: &str) -> Result<Option<Cells>, JsonError> {
    let given = fields.optional(key);
    given.map(|at| Ok(Cells::new(at.integer(0, MOST_CELLS)?))).transpose()
}

fn small(fields: &Fields<'_>, key: &str) -> Result<u8, JsonError> {
    Ok(fields.get(key)?.integer(0, 255)? as u8)
}

fn share(fields: &Fields<'_>, key: &str) -> Result<f64, JsonError> {
    let Some(at) = fields.optional(key) else { return Ok(0.0) };
    let share = at.value.as_f64().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| at.refuse("a number from 0 to 1"))
}

/// One of some words.
pub(super) fn word<'a, T: Copy>(at: &At<'_>, words: &[(&'a str, T)]) -> Result<T, JsonError> {
    let found = words.iter().find(|(word, _)| at.value.as_str() == Some(word));
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<&'a str>>().join(", ");
    found.map(|&(_, value)| value).ok_or_else(|| at.refuse(&known()))
}
