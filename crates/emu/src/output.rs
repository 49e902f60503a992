//! The lines a wire process writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wiretwin_host::{Clock, Tap, pinned};
use wiretwin_net::frame::QueueCounters;

use crate::pacer::Pacer;
use crate::spec::WireSpec;

pub(crate) fn ready(spec: &WireSpec, taps: &[Tap]) -> String {
    let ports: Vec<Value> = spec
        .ports
        .iter()
        .zip(taps)
        .map(|(port, tap)| {
            let address: Vec<String> = tap.address().iter().map(|octet| format!("{octet:02x}")).collect();
            json!({
                "name": port.name,
                "tap": tap.name(),
                "index": tap.index(),
                "mtu": tap.mtu(),
                "address": address.join(":"),
            })
        })
        .collect();
    let quality = Clock::start().quality();
    json!({
        "event": "ready",
        "pid": std::process::id(),
        "ports": ports,
        "rate_bit_s": spec.wire.rate.get(),
        "seed": spec.wire.seed,
        "clock": {
            "name": Clock::NAME,
            "cost_ns": quality.cost_ns,
            "resolution_ns": quality.resolution_ns,
        },
        "cores": cores(spec),
        "priority": spec.priority,
        "spin_us": spec.spin.as_ns() / 1000,
    })
    .to_string()
}

/// The cores that its threads stay on, or may use where not every port names one.
fn cores(spec: &WireSpec) -> Vec<u32> {
    let named: Option<BTreeSet<u32>> = spec.ports.iter().map(|port| port.cpu).collect();
    named.map_or_else(pinned, |cores| cores.into_iter().collect())
}

pub(crate) fn counters(spec: &WireSpec, pacer: &Pacer<Tap>, reason: &str) -> String {
    count(spec, pacer, reason).to_string()
}

/// The counters at the end, with the frames that are not in the capture, if there is one.
pub(crate) fn last_counters(
    spec: &WireSpec,
    pacer: &Pacer<Tap>,
    reason: &str,
    uncaptured: Option<u64>,
) -> String {
    let mut line = count(spec, pacer, reason);
    if let Some(uncaptured) = uncaptured {
        line["uncaptured"] = uncaptured.into();
    }
    line.to_string()
}

fn count(spec: &WireSpec, pacer: &Pacer<Tap>, reason: &str) -> Value {
    let ports: Vec<Value> = spec
        .ports
        .iter()
        .zip(pacer.counters())
        .zip(pacer.queue_counters())
        .map(|((port, (model, device)), queues)| {
            let mut line = json!({
                "name": port.name,
                "received": model.received,
                "received_bytes": model.received_bytes,
                "delivered": model.delivered,
                "delivered_bytes": model.delivered_bytes,
                "queue_drops": model.queue_drops,
                "switch_drops": model.switch_drops,
                "rule_drops": model.rule_drops,
                "collision_drops": model.collision_drops,
                "collisions": model.collisions,
                "damaged": model.damaged,
                "corrupted": model.corrupted,
                "duplicated": model.duplicated,
                "reordered": model.reordered,
                "copied": model.copied,
                "filtered": model.filtered,
                "refused": device.refused,
                "malformed": device.malformed,
            });
            if !queues.is_empty() {
                line["queues"] = queues.iter().map(queue).collect();
            }
            line
        })
        .collect();
    json!({
        "event": "counters",
        "reason": reason,
        "elapsed_s": pacer.elapsed().as_s_f64(),
        "ports": ports,
        "held": pacer.totals().held,
        "lateness_ns": pacer.lateness().to_json(),
        "turn_ns": pacer.turns().to_json(),
        "rests": { "count": pacer.rests().count, "total_ns": pacer.rests().total.as_ns() },
    })
}

fn queue(counted: &QueueCounters) -> Value {
    json!({
        "sent": counted.sent,
        "sent_bytes": counted.sent_bytes,
        "drops": counted.drops,
        "background": counted.background,
        "background_drops": counted.background_drops,
    })
}

pub(crate) fn error(place: &str, reason: &str) -> String {
    json!({ "event": "error", "place": place, "reason": reason }).to_string()
}
