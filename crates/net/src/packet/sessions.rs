//! Streams and echoes over a network, as a plan in and JSON out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wiretwin_engine::Stream;
use wiretwin_plan::{Below, Graph, PlanError, Router, SessionKind, SessionPlan, SessionsPlan};
use wiretwin_proto::tcp::{Buffers, Clock, Config, DelayedAck, Phases, Pieces, Rto};
use wiretwin_units::{Bits, Bytes, SimTime, Span};

use super::connection::ConnectionId;
use super::costs::Costs;
use super::echo::{Echo, EchoId};
use super::network::Network;
use super::simulation::{Application, Simulation};
use crate::fabric::{Circuit, Fabric, LineCounters, LineId, Plan};
use crate::flow::Flows;

/// Streams and echoes over a network of cells that can be run.
#[derive(Clone, Debug)]
pub struct Sessions {
    plan: SessionsPlan,
    graph: Graph,
    tcp: Config,
    /// By stream, what max-min fairness gives it of the lines, headers counted in.
    fair_bit_s: Vec<u64>,
}

/// A session that runs.
enum Running {
    Stream(ConnectionId),
    Echo(EchoId),
}

impl Sessions {
    /// Reads a plan of sessions.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan = SessionsPlan::from_json(text)?;
        let Below::Cells(cells) = plan.network.below()? else {
            return Err(PlanError::new("network.fidelity", "not cell", "cell"));
        };
        let tcp = tcp(&plan)?;
        let graph = plan.network.graph()?;
        let mut circuits = Plan::over(&graph, &cells);
        let mut router = Router::new(graph.clone());
        let mut flows = Flows::new(graph.media().iter().map(|medium| medium.rate));
        let mut streams = Vec::new();
        for session in &plan.sessions {
            let [from, to] = ends(session, &graph).map(|host| graph.hosts()[host as usize]);
            let [there, _] = [[from, to], [to, from]].map(|[from, to]| {
                let mut path = Vec::new();
                router.path(from, to, &mut path);
                circuits.circuit(Circuit::over(&graph, &path));
                path
            });
            if session.kind == SessionKind::Ttcp {
                let media: Vec<_> =
                    there.iter().map(|line| graph.lines()[line.0 as usize].medium.0).collect();
                streams.push(flows.start(SimTime::ZERO, &media, Bits::new(u64::MAX), None, 0));
            }
        }
        flows.settle(SimTime::ZERO);
        let fair_bit_s = streams.into_iter().map(|stream| flows.rate(stream).get()).collect();
        // What the switches have no room for is rejected here.
        circuits.build(1).map_err(|error| error.under("network"))?;
        Ok(Self { plan, graph, tcp, fair_bit_s })
    }

    /// Runs it: what became of sessions and lines after the warm-up, as JSON.
    ///
    /// # Panics
    /// Where the books of the network do not balance at the end: see [`Fabric::audit`].
    #[must_use]
    pub fn run(&self) -> Value {
        let mut simulation =
            Simulation::new(&self.plan.network, self.plan.seed).expect("it was checked when it was read");
        simulation.set_costs(Costs { per_segment: self.plan.per_segment.0, ..Costs::default() });
        let made: Vec<_> = self
            .plan
            .sessions
            .iter()
            .enumerate()
            .map(|(number, session)| self.begin(number, session, &mut simulation))
            .collect();
        let seen = |simulation: &Simulation| -> Vec<Counted> {
            made.iter().enumerate().map(|(at, one)| seen(at, one, simulation.network())).collect()
        };
        let start = SimTime::ZERO + self.plan.warm_up.0;
        simulation.run_until(start);
        let before = seen(&simulation);
        let (hops, lines_before) = (fabric(&simulation).hops(), self.lines(fabric(&simulation)));
        simulation.run_until(start + self.plan.run.0);
        fabric(&simulation).audit().expect("the books balance");
        let mut shares = self.fair_bit_s.iter();
        let after = seen(&simulation).into_iter().zip(before);
        let sessions: Vec<_> = self
            .plan
            .sessions
            .iter()
            .zip(after)
            .map(|(one, (after, before))| {
                let mut report = json!({"name": one.name});
                if one.kind == SessionKind::Ttcp {
                    report["fair_bit_s"] = json!(shares.next());
                }
                for (key, value) in after {
                    report[key] = since(value, before.get(key));
                }
                report
            })
            .collect();
        let lines = self.lines(fabric(&simulation)).into_iter().zip(lines_before);
        let lines: Vec<_> = lines
            .map(|((name, after), (_, before))| {
                let sides = after.into_iter().zip(before).map(|(after, before)| {
                    after
                        .into_iter()
                        .map(|(key, now)| (key, since(now, before.get(key))))
                        .collect::<Counted>()
                });
                json!({"name": name, "directions": sides.collect::<Vec<_>>()})
            })
            .collect();
        let hops = fabric(&simulation).hops() - hops;
        json!({"sessions": sessions, "lines": lines, "cell_hops": hops})
    }

    /// What was counted so far on each line, in each direction, with the line's name.
    fn lines(&self, fabric: &Fabric) -> Vec<(String, [Counted; 2])> {
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
        let name = |node: wiretwin_plan::NodeId| &self.graph.nodes()[node.0 as usize].name;
        let named = self.graph.lines().iter().step_by(2);
        let named = named.map(|line| format!("{}-{}", name(line.from), name(line.to)));
        (0..).zip(named).map(|(at, name)| (name, fabric.line(LineId(at)).map(counted))).collect()
    }

    fn begin(&self, number: usize, session: &SessionPlan, simulation: &mut Simulation) -> Running {
        let (hosts, start) = (ends(session, &self.graph), SimTime::ZERO + session.start.0);
        let seed = self.plan.seed;
        if session.kind == SessionKind::Echo {
            let span = |time: Option<wiretwin_plan::Duration>| time.map_or(Span::ZERO, |time| time.0);
            let (pause, timeout) = (span(session.pause), span(session.timeout));
            let bytes = session.bytes.map_or(Bytes::ZERO, |bytes| bytes.0);
            let echo = Echo { hosts, bytes, pause, timeout, start };
            return Running::Echo(simulation.echo(echo, &Arc::new(self.tcp.clone()), seed));
        }
        // The grids of a host's timers lie where its clock began to run.
        let mut stream = Stream::derive(seed, &format!("scenario/session {number}"));
        let mut phase = |period| stream.uniform(Span::ZERO..=period);
        let almost = |ms| Span::from_ms(ms) - Span::from_ps(1);
        let slow = match self.tcp.clock {
            Clock::Ticks { slow, .. } => slow - Span::from_ps(1),
            Clock::Fine => almost(500),
        };
        let phases = Phases { slow: phase(slow), fast: phase(almost(200)) };
        let config = Arc::new(Config { phases, ..self.tcp.clone() });
        Running::Stream(simulation.connect(hosts, [&config, &config], Application::Endless, start))
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

/// The network of cells of a simulation.
fn fabric(simulation: &Simulation) -> &Fabric {
    simulation.network().fabric().expect("sessions run over cells")
}

/// The hosts of a checked session.
fn ends(session: &SessionPlan, graph: &Graph) -> [u32; 2] {
    [&session.from, &session.to].map(|name| graph.host(name).expect("sessions are between hosts"))
}

/// What is seen so far of the session of this number.
fn seen(number: usize, session: &Running, network: &Network) -> Counted {
    let fabric = network.fabric().expect("sessions run over cells");
    let circuit = |side: usize| fabric.circuit(crate::fabric::CircuitId((2 * number + side) as u32));
    let (there, back) = (circuit(0), circuit(1));
    let mut seen = BTreeMap::from([
        ("cells_there", json!(there.sent)),
        ("cells_refused_there", json!(there.refused)),
        ("cells_back", json!(back.sent)),
        ("cells_refused_back", json!(back.refused)),
    ]);
    match *session {
        Running::Echo(echo) => {
            let (times, lost) = network.round_trips(echo);
            seen.insert("round_trip_ps", json!(times.iter().map(|time| time.as_ps()).collect::<Vec<_>>()));
            seen.insert("lost", json!(lost));
        }
        Running::Stream(connection) => {
            let report = network.stream(connection.end(true));
            seen.insert("read_bytes", json!(report.read.get()));
            seen.insert("segments", json!(report.sender.sent_data));
            seen.insert("segments_again", json!(report.sender.retransmitted));
            seen.insert("timeouts", json!(report.sender.timeouts));
            seen.insert("pdus_lost", json!(report.packets_lost));
        }
    }
    seen
}

fn tcp(plan: &SessionsPlan) -> Result<Config, PlanError> {
    let given = &plan.tcp;
    let config = Config::preset(&given.preset).ok_or_else(|| {
        let names = Config::presets().map(|preset| preset.name).join(", ");
        PlanError::new("tcp.preset", &given.preset, names)
    })?;
    let window = given.window.0.get() as u32;
    let delayed_ack = if given.delayed_ack { config.delayed_ack } else { DelayedAck::None };
    let buffers = Buffers { send: window, receive: window, limit: window, ..config.buffers };
    let mss = given.mss.map(|mss| mss.0.get() as u16);
    let (clock, rto) = match (given.tick, config.clock) {
        (None, clock) => (clock, config.rto),
        // TCPTV_MIN is two ticks.
        (Some(tick), Clock::Ticks { fast, .. }) => {
            (Clock::Ticks { slow: tick.0, fast }, Rto { min: tick.0 * 2, ..config.rto })
        }
        (Some(tick), Clock::Fine) => {
            return Err(PlanError::new("tcp.tick", tick, "nothing: the timers of this preset have no grain"));
        }
    };
    let rules = Config { buffers, mss, delayed_ack, clock, rto, ..config };
    Ok(Config { pieces: Pieces::Whole, work: true, ..rules })
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
