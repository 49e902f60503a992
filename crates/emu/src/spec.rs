//! The specification of a wire process: what is allowed in it.

use std::path::PathBuf;
use std::time::Duration;

use wiretwin_net::frame::{KEYS, PortId, Wire, WireConfig, read_mtu, read_wire};
use wiretwin_net::json::{At, PlanError, read};
use wiretwin_units::Span;

/// What the `format` key says.
pub const FORMAT: &str = "wiretwin-wire";
/// The version read here.
pub const VERSION: u64 = 1;
/// The longest life: a week.
const LONGEST_LIFE_S: u64 = 7 * 86_400;
/// Before a deadline, the wire stops sleeping this long ahead, where the specification does not say.
const SPIN_US: u64 = 50;

/// A wire process.
#[derive(Clone, Debug, PartialEq)]
pub struct WireSpec {
    /// The ports, in order.
    pub ports: Vec<PortSpec>,
    /// What joins them.
    pub wire: WireConfig,
    /// The largest packet, Ethernet header apart, to which devices that are made here are set.
    pub mtu: u32,
    /// The longest the process may live.
    pub limit: Duration,
    /// How long before a deadline it stops sleeping and watches the clock, at most.
    pub spin: Span,
    /// The core to run on, where a port names none.
    pub cpu: Option<u32>,
    /// Its real-time priority.
    pub priority: Option<u8>,
    /// The pcapng file of what crosses.
    pub capture: Option<PathBuf>,
    /// Whether it ends with the process that started it.
    pub die_with_parent: bool,
}

/// A port of a wire process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// What it is called in rules and counters.
    pub name: String,
    /// The TAP device.
    pub tap: String,
    /// The file that stands for the network namespace the device is in; this process's own if absent.
    pub netns: Option<PathBuf>,
    /// Whether the wire makes the device, with the MTU given and up; else it must be there.
    pub create: bool,
    /// The core from which its frames are taken, by a thread that stays there.
    pub cpu: Option<u32>,
}

impl WireSpec {
    /// Reads a specification.
    ///
    /// # Errors
    /// [`PlanError`], at the first key that is wrong.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let value = read::from_json(text)?;
        let own = "format version ports limit_s spin_us cpu priority capture die_with_parent";
        let fields = At::top(&value).object(&format!("{own} {KEYS}"))?;
        let format = fields.get("format")?;
        if format.value != FORMAT {
            return Err(format.refuse(&format!("{FORMAT:?}")));
        }
        fields.get("version")?.integer(VERSION, VERSION)?;
        let cpu = fields.optional("cpu").map(|at| read_cpu(&at)).transpose()?;
        let ports = read_ports(&fields.get("ports")?, cpu)?;
        let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
        let wire = read_wire(&fields, &names)?;
        let number = |key, least, most| -> Result<Option<u64>, PlanError> {
            fields.optional(key).map(|at| at.integer(least, most)).transpose()
        };
        Ok(Self {
            wire,
            mtu: read_mtu(&fields)? as u32,
            limit: read_limit(&fields.get("limit_s")?)?,
            spin: Span::from_us(number("spin_us", 0, 1_000_000)?.unwrap_or(SPIN_US)),
            cpu,
            priority: number("priority", 1, 99)?.map(|priority| priority as u8),
            capture: fields.optional("capture").map(|at| read_text(&at).map(PathBuf::from)).transpose()?,
            die_with_parent: fields.optional("die_with_parent").map_or(Ok(false), |at| at.truth())?,
            ports,
        })
    }
}

fn read_limit(at: &At<'_>) -> Result<Duration, PlanError> {
    match at.value.as_f64() {
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST_LIFE_S as f64 => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(at.refuse(&format!("a number above 0, at most {LONGEST_LIFE_S}"))),
    }
}

fn read_cpu(at: &At<'_>) -> Result<u32, PlanError> {
    Ok(at.integer(0, 65_535)? as u32)
}

fn read_ports(at: &At<'_>, cpu: Option<u32>) -> Result<Vec<PortSpec>, PlanError> {
    let most = Wire::<()>::MOST_PORTS;
    let allowed = format!("a list of 2 to {most} ports");
    let list = at.list("ports")?;
    if !(2..=most).contains(&list.len()) {
        return Err(at.refuse(&allowed));
    }
    let mut ports: Vec<PortSpec> = Vec::new();
    for item in &list {
        let fields = item.object("tap name netns create cpu")?;
        let (tap, netns) = (read_text(&fields.get("tap")?)?, fields.optional("netns"));
        let port = PortSpec {
            name: fields.optional("name").map_or_else(|| Ok(tap.clone()), |at| read_text(&at))?,
            netns: netns.map(|at| read_text(&at).map(PathBuf::from)).transpose()?,
            create: fields.optional("create").map_or(Ok(false), |at| at.truth())?,
            cpu: fields.optional("cpu").map(|at| read_cpu(&at)).transpose()?.or(cpu),
            tap,
        };
        if let Some(index) = ports.iter().position(|other| other.name == port.name) {
            return Err(item.refuse(&format!(
                "a `name` of its own: {} is called {:?}, too",
                PortId(index as u16),
                port.name
            )));
        }
        if ports.iter().any(|other| other.tap == port.tap && other.netns == port.netns) {
            return Err(item.refuse("a `tap` of its own: an earlier port has it"));
        }
        ports.push(port);
    }
    Ok(ports)
}

fn read_text(at: &At<'_>) -> Result<String, PlanError> {
    match at.value.as_str() {
        Some(text) if !text.is_empty() && !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(at.refuse("a text that is not empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wiretwin_net::frame::Medium;
    use wiretwin_units::BitRate;

    fn spec(change: impl Fn(&mut Value)) -> Result<WireSpec, String> {
        let mut value = json!({
            "format": "wiretwin-wire", "version": 1, "medium": "duplex", "rate_bit_s": 10_000_000,
            "delay_ns": 5_000, "limit_s": 600,
            "ports": [{ "tap": "wt0", "name": "h1", "netns": "/proc/7/ns/net" }, { "tap": "wt1" }],
            "rules": [{ "drop": 0.01, "to": "h1" }],
        });
        change(&mut value);
        WireSpec::parse(&value.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_right_specification_is_read() {
        let spec = spec(|_| ()).unwrap();
        assert_eq!((spec.wire.medium, spec.wire.rate), (Medium::Cable, BitRate::mbit_s(10)));
        assert_eq!((spec.limit, spec.spin, spec.mtu), (Duration::from_secs(600), Span::from_us(50), 1500));
        assert_eq!((spec.cpu, spec.priority, spec.die_with_parent), (None, None, false));
        assert_eq!(spec.ports[0].netns.as_deref(), Some(std::path::Path::new("/proc/7/ns/net")));
        assert_eq!((spec.ports[1].name.as_str(), spec.ports[1].create), ("wt1", false));
        assert_eq!(spec.wire.rules[0].filter.to, Some(PortId(0)));
    }

    #[test]
    fn every_wrong_key_is_named_with_its_value_and_what_is_allowed() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 15] = [
            (|v| v["capture"] = true.into(), "capture is true; allowed: a text that is not empty"),
            (|v| v["format"] = "wire".into(), r#"format is "wire"; allowed: "wiretwin-wire""#),
            (|v| v["version"] = 2.into(), "version is 2; allowed: 1"),
            (|v| v["limit_s"] = 0.into(), "limit_s is 0; allowed: a number above 0, at most 604800"),
            (|v| v["limit_s"] = Value::Null, "limit_s is null; allowed: a number above 0"),
            (|v| v["priority"] = 0.into(), "priority is 0; allowed: an integer from 1 to 99"),
            (|v| v["cpu"] = "0".into(), r#"cpu is "0"; allowed: an integer from 0 to 65535"#),
            (|v| v["spin_us"] = (-1).into(), "spin_us is -1; allowed: an integer from 0 to 1000000"),
            (|v| v["die_with_parent"] = 1.into(), "die_with_parent is 1; allowed: true or false"),
            (|v| v["ports"] = json!([]), "ports is []; allowed: a list of ports"),
            (
                |v| v["ports"] = json!([{ "tap": "a" }]),
                r#"ports is [{"tap":"a"}]; allowed: a list of 2 to 256 ports"#,
            ),
            (
                |v| v["ports"][1]["tap"] = "".into(),
                r#"ports[1].tap is ""; allowed: a text that is not empty"#,
            ),
            (|v| v["ports"][1]["name"] = "h1".into(), "ports[1] is {"),
            (
                |v| v["ports"][1]["mac"] = 1.into(),
                "ports[1].mac is 1; allowed: no such key; known are tap, name,",
            ),
            (|v| v["rate"] = 1.into(), "rate is 1; allowed: no such key; known are format, version, ports,"),
        ];
        for (change, expected) in cases {
            let error = spec(change).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
        let error = spec(|v| v["ports"] = json!([{ "tap": "a", "name": "x" }, { "tap": "a", "name": "y" }]));
        assert!(error.unwrap_err().ends_with("allowed: a `tap` of its own: an earlier port has it"));
        let error = spec(|v| v["ports"][1]["name"] = "h1".into()).unwrap_err();
        assert!(error.ends_with("allowed: a `name` of its own: port 0 is called \"h1\", too"), "{error}");
        let error = WireSpec::parse("{").unwrap_err().to_string();
        assert!(error.starts_with("the whole is not JSON"), "{error}");
    }
}
