//! A network with hosts and sessions, as JSON in and JSON out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wiretwin_engine::Stream;
use wiretwin_proto::tcp::{Buffers, Config, DelayedAck, Phases, Pieces};
use wiretwin_units::{BitRate, Bytes, Cells, SimTime, Span};

use super::hosts::{Echo, HostId, Hosts, SessionId, Ttcp};
use super::plan::{
    Arbiter, CircuitId, Credits, Crossbar, Discard, Faults, Line, Node, NodeId, Plan, Scheme, Service,
    SharedBuffer, Station, Window,
};
use crate::json::{At, Fields, JsonError, parse};
use crate::packet::Costs;

/// The longest time there is, in nanoseconds: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;
const MOST_CELLS: u64 = 1 << 30;

/// A network with hosts and sessions that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    plan: Plan,
    seed: u64,
    warm_up: Span,
    run: Span,
    /// By host, its station and what its processor takes.
    hosts: Vec<Costs>,
    sessions: Vec<Session>,
    tcp: Config,
    mtu: u16,
    lines: Vec<String>,
}

#[derive(Clone, Debug)]
struct Session {
    name: String,
    hosts: [HostId; 2],
    circuits: [CircuitId; 2],
    start: SimTime,
    /// What an echo sends, its pause and its time-out; none of a stream.
    echo: Option<(Bytes, Span, Span)>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// [`JsonError`] naming the key, the value and what is allowed.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let value = parse("scenario", text)?;
        let top = At::top("scenario", &value);
        let keys = ["seed", "warm_up_ns", "run_ns", "nodes", "lines", "sessions", "tcp"];
        let fields = top.object(&keys)?;
        let mut made = Making::default();
        for node in fields.get("nodes")?.list("nodes")? {
            made.node(&node)?;
        }
        for line in fields.get("lines")?.list("lines")? {
            made.line(&line)?;
        }
        for session in fields.get("sessions")?.list("sessions")? {
            made.session(&session)?;
        }
        let (tcp, mtu) = tcp(&fields.get("tcp")?)?;
        let Making { plan, hosts, sessions, lines, .. } = made;
        // What the plan itself refuses is refused here.
        if let Err(error) = plan.build(1) {
            return Err(top.refuse_as(error.to_string(), "a network that can be".into()));
        }
        Ok(Self {
            plan,
            seed: fields.get("seed")?.integer(0, u64::MAX)?,
            warm_up: span(&fields, "warm_up_ns")?,
            run: span(&fields, "run_ns")?,
            hosts,
            sessions,
            tcp,
            mtu,
            lines,
        })
    }

    /// Runs it: what became of sessions and lines after the warm-up, as JSON.
    ///
    /// # Panics
    /// Where the books do not balance at the end: see [`Fabric::audit`](super::Fabric::audit).
    pub fn run(&self) -> Value {
        let fabric = self.plan.build(self.seed).expect("it was built when it was read");
        let mut hosts = Hosts::new(fabric, self.seed);
        for &costs in &self.hosts {
            hosts.host(costs);
        }
        let made: Vec<_> = (0..)
            .zip(&self.sessions)
            .map(|(number, session)| self.begin(number, session, &mut hosts))
            .collect();
        let start = SimTime::ZERO + self.warm_up;
        hosts.run_until(start);
        let before: Vec<_> =
            self.sessions.iter().zip(&made).map(|(one, &id)| seen(one, id, &hosts)).collect();
        let hops = hosts.fabric().hops();
        hosts.run_until(start + self.run);
        hosts.fabric().audit().expect("the books balance");
        let after = self.sessions.iter().zip(&made).map(|(one, &id)| seen(one, id, &hosts));
        let sessions: Vec<_> = self
            .sessions
            .iter()
            .zip(after.zip(before))
            .map(|(one, (after, before))| {
                let mut report = json!({"name": one.name});
                for (key, value) in after {
                    report[key] = match (value, before.get(key)) {
                        (Value::Number(now), Some(Value::Number(then))) => {
                            json!(now.as_u64().unwrap_or(0) - then.as_u64().unwrap_or(0))
                        }
                        (Value::Array(now), Some(Value::Array(then))) => json!(now[then.len()..]),
                        (value, _) => value,
                    };
                }
                report
            })
            .collect();
        let lines: Vec<_> = (0..)
            .zip(&self.lines)
            .map(|(number, name)| {
                let sides = hosts.fabric().line(super::plan::LineId(number)).map(|side| {
                    json!({
                        "cells": side.cells, "lost": side.lost, "credits": side.credits,
                        "credits_lost": side.credits_lost, "credits_refused": side.credits_refused,
                        "markers": side.markers, "repaired": side.repaired,
                    })
                });
                json!({"name": name, "directions": sides})
            })
            .collect();
        json!({"sessions": sessions, "lines": lines, "cell_hops": hosts.fabric().hops() - hops})
    }

    fn begin(&self, number: u32, session: &Session, hosts: &mut Hosts) -> SessionId {
        let Session { hosts: ends, circuits, start, .. } = *session;
        if let Some((octets, pause, timeout)) = session.echo {
            return hosts.echo(Echo { hosts: ends, circuits, octets, pause, timeout, start });
        }
        // The grids of a host's timers lie where its clock began to run.
        let mut stream = Stream::derive(self.seed, &format!("scenario/session {number}"));
        let mut phase = |period| stream.uniform(Span::ZERO..=period);
        let almost = |ms| Span::from_ms(ms) - Span::from_ps(1);
        let phases = Phases { slow: phase(almost(500)), fast: phase(almost(200)) };
        let config = Arc::new(Config { phases, ..self.tcp.clone() });
        hosts.ttcp(&Ttcp { hosts: ends, circuits, config, mtu: self.mtu, start })
    }
}

/// What is seen of a session so far.
fn seen(session: &Session, id: SessionId, hosts: &Hosts) -> BTreeMap<&'static str, Value> {
    let [there, back] = session.circuits.map(|circuit| hosts.fabric().circuit(circuit));
    let mut seen = BTreeMap::from([
        ("cells_there", json!(there.sent)),
        ("cells_refused_there", json!(there.refused)),
        ("cells_back", json!(back.sent)),
        ("cells_refused_back", json!(back.refused)),
    ]);
    if session.echo.is_some() {
        let (times, lost) = hosts.round_trips(id);
        seen.insert("round_trip_ps", json!(times.iter().map(|time| time.as_ps()).collect::<Vec<_>>()));
        seen.insert("lost", json!(lost));
    } else {
        let report = hosts.stream(id);
        seen.insert("read_bytes", json!(report.read));
        seen.insert("segments", json!(report.segments));
        seen.insert("segments_again", json!(report.again));
        seen.insert("timeouts", json!(report.timeouts));
        seen.insert("pdus_lost", json!(report.pdus_lost));
    }
    seen
}

fn span(fields: &Fields<'_>, key: &str) -> Result<Span, JsonError> {
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
fn word<'a, T: Copy>(at: &At<'_>, words: &[(&'a str, T)]) -> Result<T, JsonError> {
    let found = words.iter().find(|(word, _)| at.value.as_str() == Some(word));
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<&'a str>>().join(", ");
    found.map(|&(_, value)| value).ok_or_else(|| at.refuse(&known()))
}

fn tcp(at: &At<'_>) -> Result<(Config, u16), JsonError> {
    let keys = ["preset", "window_bytes", "mss_bytes", "mtu_bytes", "delayed_ack"];
    let fields = at.object(&keys)?;
    let preset = fields.get("preset")?;
    let names = || Config::presets().map(|preset| preset.name).join(", ");
    let config = preset.value.as_str().and_then(Config::preset).ok_or_else(|| preset.refuse(&names()))?;
    let window = fields.get("window_bytes")?.integer(1, 1 << 24)? as u32;
    let mtu = fields.get("mtu_bytes")?.integer(68, u64::from(u16::MAX))? as u16;
    let mss = fields.optional("mss_bytes").map(|at| at.integer(1, u64::from(mtu) - 40)).transpose()?;
    let delayed = fields.get("delayed_ack")?;
    let delayed = delayed.value.as_bool().ok_or_else(|| delayed.refuse("true or false"))?;
    let delayed_ack = if delayed { config.delayed_ack } else { DelayedAck::None };
    let buffers = Buffers { send: window, receive: window, limit: window, ..config.buffers };
    let mss = mss.map(|mss| mss as u16);
    Ok((Config { buffers, mss, delayed_ack, pieces: Pieces::Whole, work: true, ..config }, mtu))
}

#[derive(Default)]
struct Making {
    plan: Plan,
    names: BTreeMap<String, (NodeId, Option<HostId>)>,
    hosts: Vec<Costs>,
    sessions: Vec<Session>,
    lines: Vec<String>,
}

impl Making {
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
                let fields = at.object(&["name", "kind", "packet_ns", "sar_ns"])?;
                let costs = Costs { per_segment: span(&fields, "packet_ns")?, ..Costs::default() };
                self.hosts.push(costs);
                let host = HostId((self.hosts.len() - 1) as u32);
                (Node::Station(Station { sar: span(&fields, "sar_ns")? }), Some(host))
            }
        };
        let name = text(&at.member("name").ok_or_else(|| at.refuse("an object with a name"))?)?;
        let number = self.plan.node(node);
        if self.names.insert(name.clone(), (number, host)).is_some() {
            return Err(at.refuse(&format!("a name of its own; there is another {name}")));
        }
        Ok(())
    }

    fn named(&self, at: &At<'_>) -> Result<(NodeId, Option<HostId>), JsonError> {
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

    fn session(&mut self, at: &At<'_>) -> Result<(), JsonError> {
        let keys = ["name", "kind", "path", "start_ns", "bytes", "pause_ns", "timeout_ns"];
        let fields = at.object(&keys)?;
        let path = fields.get("path")?;
        let mut nodes = Vec::new();
        let mut hosts = Vec::new();
        for name in path.list("names of nodes, from host to host")? {
            let (node, host) = self.named(&name)?;
            nodes.push(node);
            hosts.push(host);
        }
        let (Some(&Some(from)), Some(&Some(to))) = (hosts.first(), hosts.last()) else {
            return Err(path.refuse("names of nodes, from host to host"));
        };
        let mut circuit = |nodes: &[NodeId]| {
            self.plan
                .circuit_along(nodes)
                .map_err(|error| path.refuse_as(error.to_string(), "nodes with lines between them".into()))
        };
        let there = circuit(&nodes)?;
        nodes.reverse();
        let back = circuit(&nodes)?;
        let echo = if word(&fields.get("kind")?, &[("ttcp", false), ("echo", true)])? {
            let octets = Bytes::new(fields.get("bytes")?.integer(1, 65_507)?);
            let timeout = Span::from_ns(fields.get("timeout_ns")?.integer(1, LONGEST_NS)?);
            Some((octets, span(&fields, "pause_ns")?, timeout))
        } else {
            None
        };
        let start = SimTime::ZERO + span(&fields, "start_ns")?;
        let name = text(&fields.get("name")?)?;
        self.sessions.push(Session { name, hosts: [from, to], circuits: [there, back], start, echo });
        Ok(())
    }
}

fn text(at: &At<'_>) -> Result<String, JsonError> {
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
