//! A network with hosts and sessions, as JSON in and JSON out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wiretwin_engine::Stream;
use wiretwin_proto::tcp::{Buffers, Config, DelayedAck, Phases, Pieces};
use wiretwin_units::{Bytes, SimTime, Span};

use super::hosts::{Echo, HostId, Hosts, SessionId, Ttcp};
use super::network::Fabric;
use super::plan::{CircuitId, LineId, NodeId, Plan};
use super::read::{LONGEST_NS, Wiring, span, text, word};
use super::state::LineCounters;
use crate::json::{At, JsonError, parse};
use crate::packet::Costs;

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
        let mut made = Making { wiring: Wiring::read(&fields, true)?, sessions: Vec::new() };
        for session in fields.get("sessions")?.list("sessions")? {
            made.session(&session)?;
        }
        let (tcp, mtu) = tcp(&fields.get("tcp")?)?;
        let Making { wiring: Wiring { plan, packets, lines, .. }, sessions } = made;
        let hosts =
            packets.into_iter().map(|per_segment| Costs { per_segment, ..Costs::default() }).collect();
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
        let (hops, lines_before) = (hosts.fabric().hops(), self.lines(hosts.fabric()));
        hosts.run_until(start + self.run);
        hosts.fabric().audit().expect("the books balance");
        let streams: Vec<_> =
            self.sessions.iter().filter(|one| one.echo.is_none()).map(|one| one.circuits[0]).collect();
        let shares = self.plan.fair_shares(&streams).expect("streams have circuits of the plan");
        let mut shares = shares.into_iter();
        let after = self.sessions.iter().zip(&made).map(|(one, &id)| seen(one, id, &hosts));
        let sessions: Vec<_> = self
            .sessions
            .iter()
            .zip(after.zip(before))
            .map(|(one, (after, before))| {
                let mut report = json!({"name": one.name});
                if one.echo.is_none() {
                    report["fair_bit_s"] = json!(shares.next().map_or(0, |share| share.round() as u64));
                }
                for (key, value) in after {
                    report[key] = since(value, before.get(key));
                }
                report
            })
            .collect();
        let sides = |before: [Counted; 2], after: [Counted; 2]| {
            let mut before = before.into_iter();
            after.map(|side| {
                let then = before.next().unwrap_or_default();
                side.into_iter().map(|(key, now)| (key, since(now, then.get(key)))).collect::<Counted>()
            })
        };
        let lines: Vec<_> = self
            .lines
            .iter()
            .zip(lines_before.into_iter().zip(self.lines(hosts.fabric())))
            .map(|(name, (before, after))| json!({"name": name, "directions": sides(before, after)}))
            .collect();
        json!({"sessions": sessions, "lines": lines, "cell_hops": hosts.fabric().hops() - hops})
    }

    /// What was counted so far on each line, in each direction.
    fn lines(&self, fabric: &Fabric) -> Vec<[Counted; 2]> {
        let counted = |side: LineCounters| {
            BTreeMap::from([
                ("cells", json!(side.cells)),
                ("lost", json!(side.lost)),
                ("credits", json!(side.credits)),
                ("credits_lost", json!(side.credits_lost)),
                ("credits_refused", json!(side.credits_refused)),
                ("markers", json!(side.markers)),
                ("repaired", json!(side.repaired)),
            ])
        };
        (0..).zip(&self.lines).map(|(number, _)| fabric.line(LineId(number)).map(counted)).collect()
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

/// Counts and lists by name.
type Counted = BTreeMap<&'static str, Value>;

/// Of a count or a list, what has been added to it since it was another.
fn since(now: Value, then: Option<&Value>) -> Value {
    match (now, then) {
        (Value::Number(now), Some(Value::Number(then))) => {
            json!(now.as_u64().unwrap_or(0) - then.as_u64().unwrap_or(0))
        }
        (Value::Array(now), Some(Value::Array(then))) => json!(now[then.len()..]),
        (now, _) => now,
    }
}

/// What is seen of a session so far.
fn seen(session: &Session, id: SessionId, hosts: &Hosts) -> Counted {
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

struct Making {
    wiring: Wiring,
    sessions: Vec<Session>,
}

impl Making {
    fn session(&mut self, at: &At<'_>) -> Result<(), JsonError> {
        let keys = ["name", "kind", "path", "start_ns", "bytes", "pause_ns", "timeout_ns"];
        let fields = at.object(&keys)?;
        let path = fields.get("path")?;
        let mut nodes = Vec::new();
        let mut hosts = Vec::new();
        for name in path.list("names of nodes, from host to host")? {
            let (node, host) = self.wiring.named(&name)?;
            nodes.push(node);
            hosts.push(host);
        }
        let (Some(&Some(from)), Some(&Some(to))) = (hosts.first(), hosts.last()) else {
            return Err(path.refuse("names of nodes, from host to host"));
        };
        let mut circuit = |nodes: &[NodeId]| {
            self.wiring
                .plan
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
        self.sessions.push(Session {
            name,
            hosts: [from, to].map(HostId),
            circuits: [there, back],
            start,
            echo,
        });
        Ok(())
    }
}
