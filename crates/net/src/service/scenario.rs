//! Scenarios of shared ports: JSON in, JSON out.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wiretwin_plan::{PlanError, read};
use wiretwin_proto::abr::{self, EricaConfig, QueueControl};
use wiretwin_proto::pcaal::{self, ClockSync, Kind, LocalClock, Watch};
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::network::{Category, CircuitPlan, CircuitReport, Network, Plan, cell_time, cells_per_s};
use super::port::{PortPlan, Reserve};
use super::task::{Mechanism, Message, TaskPlan, TaskReport, Trace};
use crate::load::Law;
use crate::port::PushOut;

/// Nanoseconds, a day at most.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
struct Ns(Span);

impl TryFrom<u64> for Ns {
    type Error = &'static str;

    fn try_from(ns: u64) -> Result<Self, Self::Error> {
        let allowed = "an integer from 0 to 86400000000000";
        if ns <= 86_400_000_000_000 { Ok(Self(Span::from_ns(ns))) } else { Err(allowed) }
    }
}

/// Bits per second, above 0.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
struct BitS(BitRate);

impl TryFrom<u64> for BitS {
    type Error = &'static str;

    fn try_from(bit_s: u64) -> Result<Self, Self::Error> {
        let allowed = "an integer from 1 to 1000000000000";
        if (1..=1_000_000_000_000).contains(&bit_s) { Ok(Self(BitRate::bit_s(bit_s))) } else { Err(allowed) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    seed: u64,
    warm_up_ns: Ns,
    run_ns: Ns,
    ports: Vec<PortTable>,
    circuits: Vec<CircuitTable>,
    tasks: Vec<TaskTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortTable {
    bit_s: BitS,
    buffer_cells: u32,
    push_out: PushOut,
    efci_cells: Option<u32>,
    becn_cells: Option<u32>,
    reserve: Reserve,
    delay_ns: Ns,
    erica: EricaTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EricaTable {
    utilization: f64,
    interval_cells: u32,
    /// The delay that ERICA+ aims at.
    plus_ns: Option<Ns>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CircuitTable {
    name: String,
    path: Vec<usize>,
    access_ns: Ns,
    /// Of a circuit of ABR; one without is of UBR.
    pcr_bit_s: Option<BitS>,
    /// Of its source, while it is on.
    bit_s: BitS,
    /// Mean times, of a source that is not always on.
    on_off_ns: Option<[Ns; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    name: String,
    path: Vec<usize>,
    access_ns: Ns,
    line_bit_s: BitS,
    mechanism: Mechanism,
    /// At which the host makes cells.
    source_bit_s: Option<BitS>,
    layer: LayerTable,
    peer_clock: Option<ClockTable>,
    backup: BackupTable,
    control_bit_s: BitS,
    trace: TraceTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupTable {
    pcr_bit_s: BitS,
    mcr_bit_s: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockTable {
    ahead_ns: i64,
    gains_ns_each_s: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerTable {
    poll_ns: Ns,
    /// From POLL to POLL while no data are under way; none without.
    keep_alive_ns: Option<Ns>,
    monitor_ns: Ns,
    loss_ns: Ns,
    high_ns: Ns,
    low_ns: Ns,
    window: u32,
    max_pd: u32,
    stamps: bool,
    watch: WatchName,
    weight: u32,
    clock_sync: Option<SyncTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WatchName {
    EachCell,
    Average,
    OnDemand,
    RoundTrip,
    Network,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SyncTable {
    interval_ns: Ns,
    delay_ns: Ns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceTable {
    period_ns: Ns,
    at_ns: Vec<Ns>,
    values: Vec<u32>,
    octets: u64,
}

/// A network that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    plan: Plan,
    seed: u64,
    end: SimTime,
}

impl Scenario {
    /// Reads a scenario.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let Document { seed, warm_up_ns, run_ns, ports, circuits, tasks } = read::from_json(text)?;
        let start = SimTime::ZERO + warm_up_ns.0;
        let tasks = tasks
            .into_iter()
            .enumerate()
            .map(|(number, task)| task.plan(start).map_err(|error| error.under(&format!("tasks[{number}]"))));
        let plan = Plan {
            ports: ports.into_iter().map(PortTable::plan).collect(),
            circuits: circuits.into_iter().map(CircuitTable::plan).collect(),
            tasks: tasks.collect::<Result<_, _>>()?,
        };
        // What the plan itself rejects is rejected here.
        plan.build(1)?;
        Ok(Self { plan, seed, end: start + run_ns.0 })
    }

    /// The network at its beginning.
    ///
    /// # Panics
    /// Never: it was built when it was read.
    #[must_use]
    pub fn build(&self) -> Network {
        self.plan.build(self.seed).expect("it was built when it was read")
    }

    /// Runs it: what was seen of tasks, circuits and ports, as JSON.
    ///
    /// # Panics
    /// Where the books do not balance at the end: see [`Network::audit`].
    #[must_use]
    pub fn run(&self) -> Value {
        let mut network = self.build();
        network.run_until(self.end);
        if let Err(wrong) = network.audit() {
            panic!("the books do not balance: {wrong}");
        }
        let tasks: Vec<Value> = network.tasks().map(|task| task_value(&task)).collect();
        let circuits: Vec<Value> = network
            .circuits()
            .map(|(name, report)| {
                let mut value = circuit_value(&report);
                value["name"] = json!(name);
                value
            })
            .collect();
        let ports: Vec<Value> = network
            .ports()
            .map(|(sent, marked, mean, most)| {
                json!({"sent": sent, "marked": marked, "mean_waiting": mean, "most_waiting": most})
            })
            .collect();
        json!({"tasks": tasks, "circuits": circuits, "ports": ports})
    }
}

fn circuit_value(report: &CircuitReport) -> Value {
    json!({
        "sent": report.sent, "management": report.management, "lost": report.lost,
        "delivered": report.delivered, "delivered_data": report.delivered_data,
    })
}

fn task_value(task: &TaskReport) -> Value {
    let counters = task.counters;
    json!({
        "messages": task.messages,
        "latency_ps": task.latencies.iter().map(|latency| latency.as_ps()).collect::<Vec<_>>(),
        "data_ordinary": counters.data_ordinary, "data_backup": counters.data_backup,
        "retransmitted": counters.retransmitted, "monitoring": counters.monitoring,
        "switches": counters.switches, "ignored": counters.ignored,
        "lost_data": task.lost_data, "lost_other": task.lost_other,
        "ordinary": circuit_value(&task.circuits[0]), "backup": circuit_value(&task.circuits[1]),
        "control": circuit_value(&task.circuits[2]), "back": task.back,
        "high_ps": task.high.as_ps(), "misplaced": task.misplaced, "peer_lost": task.peer_lost,
        "digest": task.digest.to_string(),
    })
}

impl PortTable {
    fn plan(self) -> PortPlan {
        let cells = |count: u32| Cells::new(count.into());
        let EricaTable { utilization, interval_cells, plus_ns } = self.erica;
        let plus = |Ns(delay)| QueueControl { delay, above: 1.15, empty: 1.05, least: 0.5 };
        PortPlan {
            rate: self.bit_s.0,
            buffer: cells(self.buffer_cells),
            push_out: self.push_out,
            efci: self.efci_cells.map(cells),
            becn: self.becn_cells.map(cells),
            erica: Some(EricaConfig {
                utilization,
                queue: plus_ns.map(plus),
                ..EricaConfig::new(cells_per_s(self.bit_s.0), cells(interval_cells))
            }),
            reserve: self.reserve,
            delay: self.delay_ns.0,
        }
    }
}

impl CircuitTable {
    fn plan(self) -> CircuitPlan {
        let interval = cell_time(self.bit_s.0);
        CircuitPlan {
            name: self.name,
            path: self.path,
            category: self
                .pcr_bit_s
                .map_or(Category::Ubr, |BitS(peak)| Category::Abr(abr::Config::new(cells_per_s(peak)))),
            law: Some(match self.on_off_ns {
                None => Law::Constant { interval },
                Some([Ns(on), Ns(off)]) => Law::OnOff { interval, on, off },
            }),
            access: self.access_ns.0,
        }
    }
}

impl TaskTable {
    fn plan(self, start: SimTime) -> Result<TaskPlan, PlanError> {
        let BackupTable { pcr_bit_s: BitS(peak), mcr_bit_s } = self.backup;
        let mcr = BitRate::new(mcr_bit_s).map_or(abr::CellRate::ZERO, cells_per_s);
        let clock = |clock: ClockTable| LocalClock {
            ahead_ns: clock.ahead_ns,
            gains_ns_each_s: clock.gains_ns_each_s,
        };
        Ok(TaskPlan {
            name: self.name,
            path: self.path,
            access: self.access_ns.0,
            line: self.line_bit_s.0,
            mechanism: self.mechanism,
            source: self.source_bit_s.map(|BitS(rate)| rate),
            layer: self.layer.config(),
            peer_clock: self.peer_clock.map(clock).unwrap_or_default(),
            backup: abr::Config { mcr, ..abr::Config::new(cells_per_s(peak)) },
            control: self.control_bit_s.0,
            trace: Arc::new(self.trace.trace().map_err(|error| error.under("trace"))?),
            start,
        })
    }
}

impl LayerTable {
    fn config(self) -> pcaal::Config {
        let sync =
            |SyncTable { interval_ns, delay_ns }| ClockSync { interval: interval_ns.0, delay: delay_ns.0 };
        pcaal::Config {
            timer_poll: self.poll_ns.0,
            timer_keep_alive: self.keep_alive_ns.map(|Ns(timer)| timer),
            max_pd: self.max_pd,
            window: self.window,
            stamp_data: self.stamps,
            watch: Some(match self.watch {
                WatchName::EachCell => Watch::EachCell,
                WatchName::Average => Watch::Average(self.weight),
                WatchName::OnDemand => Watch::OnDemand,
                WatchName::RoundTrip => Watch::RoundTrip,
                WatchName::Network => Watch::Network,
            }),
            monitor_interval: self.monitor_ns.0,
            loss_threshold: self.loss_ns.0,
            high_threshold: self.high_ns.0,
            low_threshold: self.low_ns.0,
            clock_sync: self.clock_sync.map(sync),
            ..pcaal::Config::default()
        }
    }
}

impl TraceTable {
    fn trace(self) -> Result<Trace, PlanError> {
        let Self { period_ns: Ns(period), at_ns, values, octets } = self;
        let kind = Kind::ALL.into_iter().find(|kind| kind.octets() as u64 == octets);
        let kind = kind.ok_or_else(|| PlanError::new("octets", octets, "1, 2, 4, 8 or 16"))?;
        if values.is_empty() || values.len() != at_ns.len() || values.contains(&0) {
            let allowed = format!("1 or more for each of the {} times", at_ns.len());
            return Err(PlanError::new("values", format!("{} counts", values.len()), allowed));
        }
        if !at_ns.is_sorted_by_key(|at| at.0) {
            return Err(PlanError::new("at_ns", "a list of times", "times that ascend"));
        }
        // A trace of no length would send without end in no time.
        let least = at_ns.last().map_or(Span::ZERO, |at| at.0).max(Span::from_ns(1));
        if period < least {
            return Err(PlanError::new("period_ns", period, format!("{least} or more")));
        }
        let messages = at_ns.into_iter().zip(values).map(|(Ns(at), values)| Message { at, values, kind });
        Ok(Trace { messages: messages.collect(), period })
    }
}
