//! The lines a probe writes.

use serde_json::{Map, Value, json};
use wiretwin_host::{Clock, ClockQuality, PcaalCounters, Traffic};
use wiretwin_measure::{Samples, Step};
use wiretwin_prog::Outcome;

use crate::spec::{PROTOCOL, Seat};
use crate::timed::Split;

pub(crate) fn hello(layer: &str, effective: Map<String, Value>, clock: ClockQuality) -> String {
    json!({
        "event": "hello",
        "protocol": PROTOCOL,
        "layer": layer,
        "effective": effective,
        "clock": {
            "name": Clock::NAME,
            "cost_ns": clock.cost_ns,
            "resolution_ns": clock.resolution_ns,
        },
        "pid": std::process::id(),
    })
    .to_string()
}

pub(crate) fn samples<K>(
    number: usize,
    name: &str,
    step: &Step<K>,
    samples: &Samples,
    carried: Option<Traffic>,
) -> String {
    let mut line = json!({
        "event": "samples",
        "step": number,
        "loop": name,
        "bytes": step.bytes.get(),
        "messages": step.messages,
        "delay_ns": step.delay.as_ps() / 1000,
        "pause_ns": samples.pause.as_ps() / 1000,
        "batch": samples.batch,
        "first_ns": samples.first.map(|first| first.as_ps() / 1000),
        "values_ns": samples.values_ns,
        "lost": samples.lost,
    });
    if let Some(carried) = carried {
        line["network"] = json!({
            "payload_out": samples.payload_out,
            "payload_in": samples.payload_in,
            "bytes_out": carried.bytes_out,
            "bytes_in": carried.bytes_in,
            "packets_out": carried.packets_out,
            "packets_in": carried.packets_in,
        });
    }
    line.to_string()
}

pub(crate) fn rank(layer: &str, seat: Seat, program: &str, outcome: &Outcome, split: &Split) -> String {
    let by_kind: Map<_, _> = split
        .compute
        .iter()
        .map(|&(kind, time)| (kind.to_owned(), Value::from(time.as_ps() / 1000)))
        .collect();
    let points: Vec<_> = outcome
        .points
        .iter()
        .map(|one| json!([one.bytes, one.time.as_ps() as f64 / 1e3, one.rounds]))
        .collect();
    json!({
        "event": "rank",
        "program": program,
        "layer": layer,
        "rank": seat.rank,
        "size": seat.size,
        "elapsed_ns": outcome.elapsed.as_ps() / 1000,
        "total_ns": split.total.as_ps() / 1000,
        "in_comm_ns": split.in_comm.as_ps() / 1000,
        "compute_ns": split.computed().as_ps() / 1000,
        "compute_by_kind_ns": by_kind,
        "calls": split.calls,
        "digest": format!("{:016x}", outcome.digest),
        "verified": outcome.verified,
        "points": points,
    })
    .to_string()
}

pub(crate) fn error(place: &str, reason: &str) -> String {
    json!({ "event": "error", "place": place, "reason": reason }).to_string()
}

pub(crate) fn done(crossing_ns: Option<(f64, f64)>, counted: Option<Value>) -> String {
    let mut line = json!({ "event": "done", "crossing_ns": crossing_ns });
    if let Some(counted) = counted {
        line["counted"] = counted;
    }
    line.to_string()
}

/// What the adaptation layer has counted, over all peers of this rank.
pub(crate) fn cells(ends: impl IntoIterator<Item = PcaalCounters>) -> Value {
    let mut names: [(&str, u64); 11] = [("", 0); 11];
    for end in ends.into_iter().chain([PcaalCounters::default()]) {
        let counts = [
            ("data_ordinary", end.data_ordinary),
            ("data_backup", end.data_backup),
            ("retransmitted", end.retransmitted),
            ("control", end.control),
            ("monitoring", end.monitoring),
            ("received", end.received),
            ("discarded", end.discarded),
            ("corrupted", end.corrupted),
            ("ignored", end.ignored),
            ("switches", end.switches),
            ("clock_steps", end.clock_steps),
        ];
        for (sum, (name, count)) in names.iter_mut().zip(counts) {
            *sum = (name, sum.1 + count);
        }
    }
    names.into_iter().map(|(name, count)| (name.to_owned(), Value::from(count))).collect::<Map<_, _>>().into()
}
