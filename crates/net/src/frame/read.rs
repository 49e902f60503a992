//! Reading a wire from JSON: errors name the key, the value and what is allowed.

use serde_json::Value;
use wiretwin_engine::{DEFAULT_SEED, Probability};
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Bytes, Span};

use super::queues::{Background, Queues};
use super::wire::{Medium, WireConfig};
use super::{HEADER, PortId};
use crate::fault::{Action, Filter, Hold, Rule, When};
use crate::json::At;

/// The keys that [`read_wire`] reads.
pub const KEYS: &str = "medium rate_bit_s delay_ns switch queue_frames mtu rules seed";

const SLOWEST_BIT_S: u64 = 1_000;
const FASTEST_BIT_S: u64 = 1_000_000_000_000;
/// A minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// As the transmit queue of a Linux interface.
const QUEUE_FRAMES: u64 = 1000;
const SWITCH_QUEUE_BYTES: u64 = 512 * 1024;
/// The least MTU of IPv4 (RFC 791) and the most of an IP packet.
const MTU: (u64, u64) = (68, 65_535);
const MOST_RULES: usize = 64;
const HOLD_NS: u64 = 10_000_000;
/// A VLAN tag, which a frame of full MTU may carry besides.
const TAG: u64 = 4;

/// Reads the wire among `fields`, of which other keys may be the caller's; `ports` are the names of
/// its ports, in order.
///
/// # Errors
/// [`PlanError`], at the first key that is wrong.
pub fn read_wire(fields: &At<'_>, ports: &[String]) -> Result<WireConfig, PlanError> {
    let at = fields.get("medium")?;
    let media = [("duplex", None), ("shared", Some(Medium::Shared)), ("csma_cd", Some(Medium::CsmaCd))];
    let shared = at.one_of(&media)?;
    let switch = fields.optional("switch");
    let mut of_switch = OfSwitch::default();
    let medium = match (shared, switch) {
        (Some(_), Some(at)) => return Err(at.refuse("nothing: a shared medium has no switch")),
        (Some(medium), None) => medium,
        (None, None) if ports.len() == 2 => Medium::Cable,
        (None, at) => read_switch(at.as_ref(), ports, &mut of_switch)?,
    };
    let at = fields.get("rate_bit_s")?;
    let rate = at.integer(SLOWEST_BIT_S, FASTEST_BIT_S)?;
    if medium == Medium::CsmaCd && ![10_000_000, 100_000_000, 1_000_000_000].contains(&rate) {
        return Err(at.refuse("10000000, 100000000 or 1000000000 where stations collide"));
    }
    let mtu = read_mtu(fields)?;
    let rules = match fields.optional("rules") {
        None => Vec::new(),
        Some(at) => read_rules(&at, ports)?,
    };
    Ok(WireConfig {
        medium,
        rate: BitRate::bit_s(rate),
        delay: Span::from_ns(number(fields, "delay_ns", 0, LONGEST_NS, 0)?),
        queue_frames: number(fields, "queue_frames", 0, 1 << 20, QUEUE_FRAMES)? as u32,
        longest: Bytes::new(mtu + HEADER as u64 + TAG),
        rules,
        queues: of_switch.queues,
        background: of_switch.background,
        seed: number(fields, "seed", 0, u64::MAX, DEFAULT_SEED)?,
    })
}

/// The MTU among `fields`; 1500 if it is not given.
pub fn read_mtu(fields: &At<'_>) -> Result<u64, PlanError> {
    number(fields, "mtu", MTU.0, MTU.1, 1500)
}

fn number(fields: &At<'_>, key: &str, least: u64, most: u64, absent: u64) -> Result<u64, PlanError> {
    fields.optional(key).map_or(Ok(absent), |at| at.integer(least, most))
}

/// What a switch has besides its medium.
#[derive(Default)]
struct OfSwitch {
    queues: Option<Queues>,
    background: Vec<Background>,
}

fn read_switch(at: Option<&At<'_>>, ports: &[String], of_switch: &mut OfSwitch) -> Result<Medium, PlanError> {
    let Some(at) = at else {
        return Ok(Medium::Switch { latency: Span::ZERO, queue: Bytes::new(SWITCH_QUEUE_BYTES) });
    };
    let fields = at.object("latency_ns queue_bytes queues background")?;
    of_switch.queues = fields.optional("queues").map(|at| read_queues(&at)).transpose()?;
    if let Some(at) = fields.optional("background") {
        let list = at.list("background loads")?;
        of_switch.background = list.iter().map(|at| read_background(at, ports)).collect::<Result<_, _>>()?;
    }
    Ok(Medium::Switch {
        latency: Span::from_ns(number(&fields, "latency_ns", 0, LONGEST_NS, 0)?),
        queue: Bytes::new(number(&fields, "queue_bytes", 0, 1 << 32, SWITCH_QUEUE_BYTES)?),
    })
}

fn read_queues(at: &At<'_>) -> Result<Queues, PlanError> {
    let fields = at.object("scheduler dscp weights others")?;
    let is_weighted = fields.get("scheduler")?.one_of(&[("strict-priority", false), ("weighted", true)])?;
    let (dscp, weights, others) =
        (fields.optional("dscp"), fields.optional("weights"), fields.optional("others"));
    if !is_weighted {
        if let Some(at) = weights.or(others) {
            return Err(at.refuse("nothing: strict priority has no weights"));
        }
        let list = fields.get("dscp")?.list("codepoints")?;
        let dscp =
            list.iter().map(|at| at.integer(0, 63).map(|dscp| dscp as u8)).collect::<Result<Vec<_>, _>>()?;
        return Queues::strict_priority(&dscp).map_err(|error| at.refuse(&error.allowed));
    }
    if let Some(at) = dscp {
        return Err(at.refuse("nothing: weighted queues have their codepoints in `weights`"));
    }
    let list = fields.get("weights")?.list("codepoints and their weights")?;
    let mut weights = Vec::new();
    for item in &list {
        let fields = item.object("dscp weight")?;
        let (dscp, weight) = (fields.get("dscp")?.integer(0, 63)?, fields.get("weight")?.integer(1, 255)?);
        weights.push((dscp as u8, weight as u8));
    }
    let others = others.map_or(Ok(1), |at| at.integer(1, 255))? as u8;
    Queues::weighted(&weights, others).map_err(|error| at.refuse(&error.allowed))
}

fn read_background(at: &At<'_>, ports: &[String]) -> Result<Background, PlanError> {
    let fields = at.object("dscp to load sources peak_over_mean on_ns bytes")?;
    let dscp = fields.get("dscp")?.integer(0, 63)? as u8;
    let usual = Background::of(dscp, fields.get("load")?.real(0.0, 2.0)?);
    let peak = fields.optional("peak_over_mean").map(|at| at.real(1.0, 1000.0)).transpose()?;
    let octets = number(&fields, "bytes", 46, MTU.1, usual.frame.get() - HEADER as u64)?;
    Ok(Background {
        to: read_port(&fields, "to", ports)?,
        sources: number(&fields, "sources", 1, 1000, usual.sources.into())? as u16,
        peak_over_mean: peak.unwrap_or(usual.peak_over_mean),
        on: Span::from_ns(number(&fields, "on_ns", 1, LONGEST_NS, usual.on.as_ns())?),
        frame: Bytes::new(octets + HEADER as u64),
        ..usual
    })
}

fn read_rules(at: &At<'_>, ports: &[String]) -> Result<Vec<Rule>, PlanError> {
    if at.value.as_array().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let list = at.list("rules")?;
    if list.len() > MOST_RULES {
        return Err(at.refuse(&format!("at most {MOST_RULES} rules")));
    }
    list.iter().map(|at| read_rule(at, ports)).collect()
}

fn read_rule(at: &At<'_>, ports: &[String]) -> Result<Rule, PlanError> {
    const ACTIONS: [&str; 4] = ["drop", "corrupt", "duplicate", "reorder"];
    let fields =
        at.object("drop corrupt duplicate reorder from to ethertype protocol dscp frames hold_ns")?;
    let mut given = ACTIONS.into_iter().filter(|name| fields.value.get(*name).is_some());
    let (Some(name), None) = (given.next(), given.next()) else {
        return Err(at.refuse(&format!("one of {} in each rule", ACTIONS.join(", "))));
    };
    let hold = read_hold(at, &fields, name == "reorder")?;
    let action = match name {
        "drop" => Action::Drop,
        "corrupt" => Action::Corrupt,
        "duplicate" => Action::Duplicate,
        _ => Action::Reorder(hold),
    };
    let filter = Filter {
        from: read_port(&fields, "from", ports)?,
        to: read_port(&fields, "to", ports)?,
        ethertype: read_named(&fields, "ethertype", &ETHERTYPES, 0xFFFF)?.map(|number| number as u16),
        protocol: read_named(&fields, "protocol", &PROTOCOLS, 0xFF)?.map(|number| number as u8),
        dscp: fields.optional("dscp").map(|at| at.integer(0, 63)).transpose()?.map(|class| class as u8),
    };
    Ok(Rule { action, when: read_when(&fields.get(name)?)?, filter })
}

fn read_when(at: &At<'_>) -> Result<When, PlanError> {
    const ALLOWED: &str = "a probability from 0 to 1, {\"nth\": [1, ...]} or {\"every\": 1 or more}";
    if let Some(value) = at.value.as_f64() {
        return Probability::new(value).map(When::Chance).map_err(|_| at.refuse(ALLOWED));
    }
    if !at.value.is_object() {
        return Err(at.refuse(ALLOWED));
    }
    let fields = at.object("nth every")?;
    match (fields.optional("nth"), fields.optional("every")) {
        (Some(nth), None) => {
            let list = nth.list("numbers of frames, counted from 1")?;
            Ok(When::Nth(list.iter().map(|at| at.integer(1, u64::MAX)).collect::<Result<_, _>>()?))
        }
        (None, Some(every)) => Ok(When::Every(every.integer(1, u64::MAX)?)),
        _ => Err(at.refuse(ALLOWED)),
    }
}

fn read_hold(at: &At<'_>, fields: &At<'_>, reorders: bool) -> Result<Hold, PlanError> {
    let frames = fields.optional("frames");
    let time = fields.optional("hold_ns");
    if !reorders && let Some(at) = frames.as_ref().or(time.as_ref()) {
        return Err(at.refuse("nothing: only a rule that reorders holds frames back"));
    }
    if reorders && frames.is_none() && time.is_none() {
        return Err(at.refuse("`frames`, `hold_ns` or both in a rule that reorders"));
    }
    Ok(Hold {
        frames: frames.map(|at| at.integer(1, 1 << 20)).transpose()?.map(|count| count as u32),
        time: Span::from_ns(time.map_or(Ok(HOLD_NS), |at| at.integer(1, LONGEST_NS))?),
    })
}

fn read_port(fields: &At<'_>, key: &str, ports: &[String]) -> Result<Option<PortId>, PlanError> {
    let Some(at) = fields.optional(key) else { return Ok(None) };
    let found = at.value.as_str().and_then(|name| ports.iter().position(|port| port == name));
    match found {
        Some(index) => Ok(Some(PortId(index as u16))),
        None => Err(at.refuse(&format!("the name of a port: {}", ports.join(", ")))),
    }
}

/// RFC 894, RFC 826, RFC 2464.
const ETHERTYPES: [(&str, u64); 3] = [("ipv4", 0x0800), ("arp", 0x0806), ("ipv6", 0x86DD)];
/// RFC 792, RFC 9293, RFC 768, RFC 4443.
const PROTOCOLS: [(&str, u64); 4] = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmpv6", 58)];

fn read_named(
    fields: &At<'_>,
    key: &str,
    names: &[(&str, u64)],
    most: u64,
) -> Result<Option<u64>, PlanError> {
    let Some(at) = fields.optional(key) else { return Ok(None) };
    let found = match at.value {
        Value::String(word) => names.iter().find(|(name, _)| name == word).map(|&(_, number)| number),
        other => other.as_u64().filter(|&number| number <= most),
    };
    let words: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
    found.map(Some).ok_or_else(|| at.refuse(&format!("{}, or a number from 0 to {most}", words.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: impl Fn(&mut Value), names: &[&str]) -> Result<WireConfig, String> {
        let mut value = serde_json::json!({
            "medium": "duplex", "rate_bit_s": 10_000_000, "delay_ns": 5_000,
            "rules": [{ "drop": 0.5, "from": "h1", "protocol": "udp" }, { "reorder": { "every": 3 }, "frames": 2, "dscp": 8 }],
        });
        change(&mut value);
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let fields = At::top(&value).object(KEYS).map_err(|error| error.to_string())?;
        read_wire(&fields, &names).map_err(|error| error.to_string())
    }

    const TWO: &[&str] = &["h1", "h2"];

    #[test]
    fn a_right_wire_is_read() {
        let config = read(|_| (), TWO).unwrap();
        assert_eq!((config.medium, config.rate), (Medium::Cable, BitRate::mbit_s(10)));
        assert_eq!((config.delay, config.longest), (Span::from_us(5), Bytes::new(1518)));
        assert_eq!((config.queue_frames, config.seed), (1000, DEFAULT_SEED));
        assert_eq!(config.rules[0].filter.from, Some(PortId(0)));
        assert_eq!(config.rules[0].filter.protocol, Some(17));
        assert_eq!((config.rules[0].filter.dscp, config.rules[1].filter.dscp), (None, Some(8)));
        let hold = Hold { frames: Some(2), time: Span::from_ms(10) };
        assert_eq!((config.rules[1].action, &config.rules[1].when), (Action::Reorder(hold), &When::Every(3)));
    }

    #[test]
    fn two_ports_are_a_cable_unless_a_switch_is_named_and_more_are_a_switch() {
        let switch = Medium::Switch { latency: Span::ZERO, queue: Bytes::kib(512) };
        assert_eq!(read(|v| v["switch"] = serde_json::json!({}), TWO).unwrap().medium, switch);
        assert_eq!(read(|_| (), &["h1", "h2", "h3"]).unwrap().medium, switch);
        let named = read(|v| v["switch"] = serde_json::json!({"latency_ns": 7, "queue_bytes": 9}), TWO);
        let expected = Medium::Switch { latency: Span::from_ns(7), queue: Bytes::new(9) };
        assert_eq!(named.unwrap().medium, expected);
        assert_eq!(read(|v| v["medium"] = "shared".into(), TWO).unwrap().medium, Medium::Shared);
        assert_eq!(read(|v| v["medium"] = "csma_cd".into(), TWO).unwrap().medium, Medium::CsmaCd);
        let odd = read(|v| (v["medium"], v["rate_bit_s"]) = ("csma_cd".into(), 20_000_000.into()), TWO);
        let expected = "rate_bit_s is 20000000; allowed: 10000000, 100000000 or 1000000000";
        assert!(odd.unwrap_err().starts_with(expected));
    }

    #[test]
    fn a_switch_has_the_queues_and_the_background_load_that_it_is_said_to() {
        let with = |switch: Value| read(move |v| v["switch"] = switch.clone(), TWO);
        let strict = with(serde_json::json!({
            "queues": {"scheduler": "strict-priority", "dscp": [46, 34]},
            "background": [{"dscp": 0, "load": 0.7}, {"dscp": 8, "to": "h2", "load": 0.1, "sources": 1, "peak_over_mean": 1, "on_ns": 5, "bytes": 46}],
        }));
        let strict = strict.unwrap();
        assert_eq!(strict.queues, Queues::strict_priority(&[46, 34]).ok());
        assert_eq!(strict.background[0], Background::of(0, 0.7));
        let other = Background {
            sources: 1,
            to: Some(PortId(1)),
            peak_over_mean: 1.0,
            on: Span::from_ns(5),
            frame: Bytes::new(60),
            ..Background::of(8, 0.1)
        };
        assert_eq!(strict.background[1], other);
        let weights = serde_json::json!([{"dscp": 46, "weight": 3}]);
        let weighted =
            with(serde_json::json!({"queues": {"scheduler": "weighted", "weights": weights, "others": 2}}));
        assert_eq!(weighted.unwrap().queues, Queues::weighted(&[(46, 3)], 2).ok());
        for (queues, said) in [
            (
                serde_json::json!({"scheduler": "fifo"}),
                r#"scheduler is "fifo"; allowed: strict-priority, weighted"#,
            ),
            (
                serde_json::json!({"scheduler": "strict-priority", "dscp": [46, 46]}),
                "allowed: 0 to 63, each once",
            ),
            (
                serde_json::json!({"scheduler": "strict-priority", "dscp": [46], "others": 1}),
                "allowed: nothing: strict priority has no weights",
            ),
            (
                serde_json::json!({"scheduler": "weighted", "dscp": [46]}),
                "allowed: nothing: weighted queues have their codepoints in `weights`",
            ),
            (
                serde_json::json!({"scheduler": "weighted", "weights": [{"dscp": 46, "weight": 0}]}),
                "weight is 0; allowed: an integer from 1 to 255",
            ),
        ] {
            let error = with(serde_json::json!({ "queues": queues })).unwrap_err();
            assert!(error.contains("switch.queues") && error.contains(said), "{error}\n{said}");
        }
        let error = with(serde_json::json!({"background": [{"dscp": 0, "load": 2.5}]})).unwrap_err();
        assert!(error.contains("switch.background[0].load is 2.5; allowed: 0 to 2"), "{error}");
    }

    #[test]
    fn every_wrong_key_is_named_with_its_value_and_what_is_allowed() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 18] = [
            (|v| v["medium"] = "ring".into(), r#"medium is "ring"; allowed: duplex, shared, csma_cd"#),
            (|v| v["medium"] = Value::Null, "medium is null; allowed: duplex"),
            (
                |v| v["rate_bit_s"] = 999.into(),
                "rate_bit_s is 999; allowed: an integer from 1000 to 1000000000000",
            ),
            (|v| v["rate_bit_s"] = "10 Mbit/s".into(), r#"rate_bit_s is "10 Mbit/s"; allowed: an integer"#),
            (|v| v["delay_ns"] = (-1).into(), "delay_ns is -1; allowed: an integer from 0 to 60000000000"),
            (|v| v["mtu"] = 67.into(), "mtu is 67; allowed: an integer from 68 to 65535"),
            (|v| v["seed"] = 1.5.into(), "seed is 1.5; allowed: an integer from 0"),
            (|v| v["delay"] = 1.into(), "delay is 1; allowed: no such key; known are medium,"),
            (
                |v| v["switch"] = 3.into(),
                "switch is 3; allowed: an object with the keys latency_ns, queue_bytes",
            ),
            (|v| v["rules"] = 3.into(), "rules is 3; allowed: a list of rules"),
            (
                |v| v["rules"][0]["drop"] = 1.1.into(),
                "rules[0].drop is 1.1; allowed: a probability from 0 to 1",
            ),
            (|v| v["rules"][0]["corrupt"] = 1.into(), "rules[0] is {"),
            (
                |v| v["rules"][0]["from"] = "h3".into(),
                r#"rules[0].from is "h3"; allowed: the name of a port: h1, h2"#,
            ),
            (
                |v| v["rules"][0]["protocol"] = "sctp".into(),
                r#"rules[0].protocol is "sctp"; allowed: icmp, tcp, udp, icmpv6, or a number from 0 to 255"#,
            ),
            (
                |v| v["rules"][0]["frames"] = 2.into(),
                "rules[0].frames is 2; allowed: nothing: only a rule that reorders",
            ),
            (|v| v["rules"][1]["frames"] = Value::Null, "rules[1] is {"),
            (
                |v| v["rules"][1]["reorder"] = serde_json::json!({"every": 0}),
                "rules[1].reorder.every is 0; allowed: an integer from 1",
            ),
            (
                |v| v["rules"][1]["reorder"] = serde_json::json!({"nth": []}),
                "rules[1].reorder.nth is []; allowed: a list of numbers",
            ),
        ];
        for (change, expected) in cases {
            let error = read(change, TWO).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
        let error = read(|v| (v["medium"], v["switch"]) = ("shared".into(), serde_json::json!({})), TWO);
        assert_eq!(error.unwrap_err(), "switch is {}; allowed: nothing: a shared medium has no switch");
    }
}
