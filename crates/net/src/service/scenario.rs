//! A network of services as JSON in and JSON out.

use std::sync::Arc;

use serde_json::{Value, json};
use wiretwin_plan::PlanError;
use wiretwin_proto::abr::{self, EricaConfig, QueueControl};
use wiretwin_proto::pcaal::{self, ClockSync, Kind, LocalClock, Watch};
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::contract::{Category, cell_time};
use super::network::{CircuitPlan, CircuitReport, Excess, Network, Plan, cells_per_s};
use super::port::{PortPlan, Reserve};
use super::task::{Mechanism, Message, TaskPlan, TaskReport, Trace};
use crate::json::{At, Fields, JsonError, parse};
use crate::load::Law;
use crate::port::PushOut;

/// A day, in nanoseconds.
const LONGEST_NS: u64 = 86_400_000_000_000;
const MOST_CELLS: u64 = 1 << 24;
const FASTEST_BIT_S: u64 = 1_000_000_000_000;

/// A network that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    plan: Plan,
    seed: u64,
    end: SimTime,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// [`JsonError`] naming the key, the value and what is allowed.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let value = parse("scenario", text)?;
        let top = At::top("scenario", &value);
        let fields = top.object(&["seed", "warm_up_ns", "run_ns", "ports", "circuits", "tasks"])?;
        let start = SimTime::ZERO + span(&fields, "warm_up_ns")?;
        let mut plan = Plan::default();
        for port in fields.get("ports")?.list("ports")? {
            plan.ports.push(read_port(&port)?);
        }
        for circuit in items(&fields, "circuits")? {
            plan.circuits.push(read_circuit(&circuit)?);
        }
        for task in items(&fields, "tasks")? {
            plan.tasks.push(read_task(&task, start)?);
        }
        // What the plan itself refuses is refused here.
        if let Err(error) = plan.build(1) {
            let PlanError { key, value, allowed } = error;
            return Err(JsonError { document: "scenario", key, value, allowed });
        }
        let seed = fields.get("seed")?.integer(0, u64::MAX)?;
        Ok(Self { plan, seed, end: start + span(&fields, "run_ns")? })
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
            .map(|(sent, mean, most)| json!({"sent": sent, "mean_waiting": mean, "most_waiting": most}))
            .collect();
        json!({"tasks": tasks, "circuits": circuits, "ports": ports})
    }
}

fn circuit_value(report: &CircuitReport) -> Value {
    json!({
        "sent": report.sent, "management": report.management, "policed": report.policed,
        "lost": report.lost, "delivered": report.delivered, "delivered_data": report.delivered_data,
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

fn items<'a>(fields: &Fields<'a>, key: &str) -> Result<Vec<At<'a>>, JsonError> {
    match fields.optional(key) {
        Some(at) if at.value.as_array().is_some_and(Vec::is_empty) => Ok(Vec::new()),
        Some(at) => at.list(key),
        None => Ok(Vec::new()),
    }
}

fn span(fields: &Fields<'_>, key: &str) -> Result<Span, JsonError> {
    Ok(Span::from_ns(fields.get(key)?.integer(0, LONGEST_NS)?))
}

fn rate(fields: &Fields<'_>, key: &str) -> Result<BitRate, JsonError> {
    Ok(BitRate::bit_s(fields.get(key)?.integer(1, FASTEST_BIT_S)?))
}

fn cells(fields: &Fields<'_>, key: &str) -> Result<Option<Cells>, JsonError> {
    fields.optional(key).map(|at| Ok(Cells::new(at.integer(0, MOST_CELLS)?))).transpose()
}

fn real(fields: &Fields<'_>, key: &str, default: f64) -> Result<f64, JsonError> {
    let Some(at) = fields.optional(key) else { return Ok(default) };
    at.value.as_f64().filter(|value| value.is_finite()).ok_or_else(|| at.refuse("a number"))
}

fn path(fields: &Fields<'_>) -> Result<Vec<usize>, JsonError> {
    let ports = fields.get("path")?.list("ports")?;
    ports.iter().map(|at| Ok(at.integer(0, 1 << 16)? as usize)).collect()
}

fn read_port(at: &At<'_>) -> Result<PortPlan, JsonError> {
    let fields = at.object(&[
        "bit_s",
        "buffer_cells",
        "push_out",
        "efci_cells",
        "becn_cells",
        "tagged_cells",
        "erica",
        "reserve",
        "delay_ns",
    ])?;
    let line = rate(&fields, "bit_s")?;
    let push_out = [("last", PushOut::Last), ("first", PushOut::First), ("none", PushOut::None)];
    let reserve = [("guaranteed", Reserve::Guaranteed), ("everything", Reserve::Everything)];
    Ok(PortPlan {
        rate: line,
        buffer: Cells::new(fields.get("buffer_cells")?.integer(1, MOST_CELLS)?),
        push_out: fields.get("push_out")?.one_of(&push_out)?,
        efci: cells(&fields, "efci_cells")?,
        becn: cells(&fields, "becn_cells")?,
        tagged: cells(&fields, "tagged_cells")?,
        erica: fields.optional("erica").map(|at| read_erica(&at, line)).transpose()?,
        reserve: fields.get("reserve")?.one_of(&reserve)?,
        delay: span(&fields, "delay_ns")?,
    })
}

fn read_erica(at: &At<'_>, line: BitRate) -> Result<EricaConfig, JsonError> {
    let fields = at.object(&["utilization", "interval_cells", "equality", "plus"])?;
    let interval = Cells::new(fields.get("interval_cells")?.integer(1, MOST_CELLS)?);
    let typical = EricaConfig::new(cells_per_s(line), interval);
    let queue = fields.optional("plus").map(|at| -> Result<_, JsonError> {
        let fields = at.object(&["delay_ns", "above", "empty", "least"])?;
        Ok(QueueControl {
            delay: span(&fields, "delay_ns")?,
            above: real(&fields, "above", 1.15)?,
            empty: real(&fields, "empty", 1.05)?,
            least: real(&fields, "least", 0.5)?,
        })
    });
    let config = EricaConfig {
        utilization: real(&fields, "utilization", typical.utilization)?,
        equality: real(&fields, "equality", typical.equality)?,
        queue: queue.transpose()?,
        ..typical
    };
    config.check().map_err(|error| at.refuse(&error.to_string()))?;
    Ok(config)
}

fn read_abr(at: &At<'_>, fields: &Fields<'_>) -> Result<abr::Config, JsonError> {
    let config = abr::Config {
        mcr: match fields.optional("mcr_bit_s") {
            Some(at) => match at.integer(0, FASTEST_BIT_S)? {
                0 => abr::CellRate::ZERO,
                bits => cells_per_s(BitRate::bit_s(bits)),
            },
            None => abr::CellRate::ZERO,
        },
        adtf: Span::from_ns(
            fields.optional("adtf_ns").map_or(Ok(500_000_000), |at| at.integer(0, LONGEST_NS))?,
        ),
        nrm: cells(fields, "nrm_cells")?.unwrap_or(Cells::new(32)),
        ..abr::Config::new(cells_per_s(rate(fields, "pcr_bit_s")?))
    };
    config.check().map_err(|error| at.refuse_as(at.value.to_string(), error.to_string()))?;
    Ok(config)
}

const ABR_KEYS: [&str; 4] = ["pcr_bit_s", "mcr_bit_s", "adtf_ns", "nrm_cells"];

fn read_circuit(at: &At<'_>) -> Result<CircuitPlan, JsonError> {
    let fields = at.object(&["name", "path", "access_ns", "category", "excess", "source"])?;
    let contract = fields.get("category")?;
    let of = |known: &[&str]| contract.object(known);
    let kind = contract.member("kind").and_then(|kind| kind.value.as_str());
    let category = match kind {
        Some("ubr") => of(&["kind"]).map(|_| Category::Ubr)?,
        Some("abr") => {
            let inner = of(&[&["kind"][..], &ABR_KEYS].concat())?;
            Category::Abr(read_abr(&contract, &inner)?)
        }
        Some("cbr") => {
            let inner = of(&["kind", "pcr_bit_s", "cdvt_ns"])?;
            Category::Cbr { peak: rate(&inner, "pcr_bit_s")?, tolerance: span(&inner, "cdvt_ns")? }
        }
        Some("vbr") => {
            let inner = of(&["kind", "pcr_bit_s", "cdvt_ns", "scr_bit_s", "mbs_cells"])?;
            Category::Vbr {
                peak: rate(&inner, "pcr_bit_s")?,
                tolerance: span(&inner, "cdvt_ns")?,
                sustained: rate(&inner, "scr_bit_s")?,
                burst: Cells::new(inner.get("mbs_cells")?.integer(1, MOST_CELLS)?),
            }
        }
        _ => return Err(contract.refuse("an object whose kind is ubr, abr, vbr or cbr")),
    };
    let source = fields.get("source")?;
    let inner = source.object(&["law", "bit_s", "on_ns", "off_ns"])?;
    let law = match inner.get("law")?.text()? {
        "greedy" => None,
        "constant" => Some(Law::Constant { interval: cell_time(rate(&inner, "bit_s")?) }),
        "on-off" => {
            let on = Span::from_ns(inner.get("on_ns")?.integer(1, LONGEST_NS)?);
            let off = Span::from_ns(inner.get("off_ns")?.integer(1, LONGEST_NS)?);
            Some(Law::OnOff { interval: cell_time(rate(&inner, "bit_s")?), on, off })
        }
        _ => return Err(inner.get("law")?.refuse("greedy, constant or on-off")),
    };
    Ok(CircuitPlan {
        name: fields.get("name")?.text()?.to_string(),
        path: path(&fields)?,
        category,
        excess: fields.get("excess")?.one_of(&[("dropped", Excess::Dropped), ("tagged", Excess::Tagged)])?,
        law,
        access: span(&fields, "access_ns")?,
    })
}

fn read_task(at: &At<'_>, start: SimTime) -> Result<TaskPlan, JsonError> {
    let fields = at.object(&[
        "name",
        "path",
        "access_ns",
        "line_bit_s",
        "mechanism",
        "layer",
        "peer_clock",
        "backup",
        "control_bit_s",
        "trace",
    ])?;
    let mechanisms = [("ubr", Mechanism::Ubr), ("abr", Mechanism::Abr), ("lme-ece", Mechanism::LmeEce)];
    let backup = fields.get("backup")?;
    let inner = backup.object(&ABR_KEYS)?;
    let clock = fields.optional("peer_clock").map(|at| -> Result<_, JsonError> {
        let fields = at.object(&["ahead_ns", "gains_ns_each_s"])?;
        Ok(LocalClock {
            ahead_ns: fields.get("ahead_ns")?.signed(-(1 << 53), 1 << 53)?,
            gains_ns_each_s: fields.get("gains_ns_each_s")?.signed(-100_000_000, 100_000_000)?,
        })
    });
    Ok(TaskPlan {
        name: fields.get("name")?.text()?.to_string(),
        path: path(&fields)?,
        access: span(&fields, "access_ns")?,
        line: rate(&fields, "line_bit_s")?,
        mechanism: fields.get("mechanism")?.one_of(&mechanisms)?,
        layer: read_layer(&fields.get("layer")?)?,
        peer_clock: clock.transpose()?.unwrap_or_default(),
        backup: read_abr(&backup, &inner)?,
        control: rate(&fields, "control_bit_s")?,
        trace: Arc::new(read_trace(&fields.get("trace")?)?),
        start,
    })
}

fn read_layer(at: &At<'_>) -> Result<pcaal::Config, JsonError> {
    let fields = at.object(&[
        "poll_ns",
        "monitor_ns",
        "loss_ns",
        "high_ns",
        "low_ns",
        "window",
        "max_pd",
        "stamps",
        "watch",
        "weight",
        "clock_sync",
    ])?;
    let weight = fields.optional("weight").map_or(Ok(8), |at| at.integer(1, 1 << 20))? as u32;
    let watches = [
        ("each-cell", Watch::EachCell),
        ("average", Watch::Average(weight)),
        ("on-demand", Watch::OnDemand),
        ("round-trip", Watch::RoundTrip),
        ("network", Watch::Network),
    ];
    let sync = fields.optional("clock_sync").map(|at| -> Result<_, JsonError> {
        let fields = at.object(&["interval_ns", "delay_ns"])?;
        Ok(ClockSync { interval: span(&fields, "interval_ns")?, delay: span(&fields, "delay_ns")? })
    });
    let config = pcaal::Config {
        timer_poll: span(&fields, "poll_ns")?,
        max_pd: fields.get("max_pd")?.integer(1, u32::MAX.into())? as u32,
        window: fields.get("window")?.integer(1, (1 << 31) - 1)? as u32,
        stamp_data: fields.get("stamps")?.truth()?,
        watch: Some(fields.get("watch")?.one_of(&watches)?),
        monitor_interval: span(&fields, "monitor_ns")?,
        loss_threshold: span(&fields, "loss_ns")?,
        high_threshold: span(&fields, "high_ns")?,
        low_threshold: span(&fields, "low_ns")?,
        clock_sync: sync.transpose()?,
        ..pcaal::Config::default()
    };
    config.check().map_err(|error| at.refuse(&error.to_string()))?;
    Ok(config)
}

fn read_trace(at: &At<'_>) -> Result<Trace, JsonError> {
    let fields = at.object(&["period_ns", "at_ns", "values", "octets"])?;
    let kinds = Kind::ALL.map(|kind| (kind.octets() as u64, kind));
    let octets = fields.get("octets")?;
    let kind = kinds.iter().find(|(count, _)| octets.value.as_u64() == Some(*count));
    let (_, kind) = *kind.ok_or_else(|| octets.refuse("1, 2, 4, 8 or 16"))?;
    let (times, values) = (fields.get("at_ns")?, fields.get("values")?);
    let (each, counts) = (times.list("times")?, values.list("counts")?);
    if each.len() != counts.len() {
        return Err(
            values.refuse_as(format!("{} counts", counts.len()), format!("{}, one a time", each.len()))
        );
    }
    let mut messages = Vec::with_capacity(each.len());
    let mut last = 0;
    for (at, count) in each.iter().zip(&counts) {
        last = at.integer(last, LONGEST_NS)?;
        let values = count.integer(1, u32::MAX.into())? as u32;
        messages.push(Message { at: Span::from_ns(last), values, kind });
    }
    // A trace of no length would send without end in no time.
    let period = Span::from_ns(fields.get("period_ns")?.integer(last.max(1), LONGEST_NS)?);
    Ok(Trace { messages, period })
}
