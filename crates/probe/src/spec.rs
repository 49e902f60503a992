//! The specification of a probe: what is allowed in it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use wiretwin_host::vipl::Reach;
use wiretwin_host::{
    LARGEST_DATAGRAM, LossLimit, MvichOptions, PcaalFaults, PcaalOptions, SocketOptions, Wait, Watch, pinned,
};
use wiretwin_measure::{Kind, Step, Together};
use wiretwin_units::{Bytes, Span};

use crate::program::{self, Program};
use crate::reader::Reader;
pub use crate::reader::SpecError;

/// The version of the protocol spoken here.
pub const PROTOCOL: u64 = 1;
/// The longest message a step may ask for: 1 GiB.
pub const LARGEST_MESSAGE: u64 = 1 << 30;
/// The most ranks of a program.
const MOST_RANKS: u64 = 1024;
/// Of an average of latencies, the new one counts one part in so many.
const AVERAGED: u32 = 8;
/// A datagram does not count as lost before, whatever was seen.
const LEAST_LOSS_LIMIT: Duration = Duration::from_millis(50);
/// The most buffers of a connection, as many as a queue of VIPL takes, and the most bytes of one.
const MOST_BUFFERS: u64 = 1000;
const LARGEST_BUFFER: u64 = 1 << 20;
/// The longest a probe may be asked to live, in seconds.
const LONGEST_LIFE_S: f64 = 86_400.0;

/// A layer reached through a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimLayer {
    /// What it is called.
    pub name: String,
    /// The shared object.
    pub path: PathBuf,
    /// The options of the layer, as the shim is told them.
    pub options: Vec<(String, String)>,
    /// The environment variable in which the launcher says the rank, if it does.
    pub rank_variable: Option<String>,
}

/// A layer that a Rust probe knows, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `socket/tcp`
    Tcp(SocketOptions),
    /// `socket/udp`
    Udp {
        /// The socket.
        socket: SocketOptions,
        /// When a datagram counts as lost.
        loss_limit: LossLimit,
    },
    /// `socket/unix`
    Unix(SocketOptions),
    /// `shm`: how to wait.
    Shm(Wait),
    /// `pcaal/udp`
    Pcaal(PcaalOptions),
    /// `mpi-mvich/shm`, `mpi-mvich/udp`, `mpi-mvich/packet`
    Mvich(MvichOptions),
    /// Any messaging library.
    Shim(ShimLayer),
}

/// Where the ranks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Wherever the scheduler puts them.
    Free,
    /// This rank on this core.
    One(u32),
    /// Rank r on core r of the list, which begins anew at its end.
    Each(Vec<u32>),
}

impl Pin {
    /// The core that both ranks of a measurement can share, and another one if there is; none where each rank is told
    /// its own.
    pub fn shared(&self) -> Option<(u32, u32)> {
        let cores = match self {
            Self::Free => &pinned(),
            Self::One(_) => return None,
            Self::Each(cores) => cores,
        };
        cores.first().copied().zip(cores.last().copied())
    }
}

/// This process among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
}

impl Layer {
    /// The names of all layers.
    pub const NAMES: &'static str = "socket/tcp, socket/udp, socket/unix, shm, pcaal/udp, \
        mpi-mvich/shm, mpi-mvich/udp, mpi-mvich/packet";

    /// The name used in specifications.
    pub fn name(&self) -> &str {
        match self {
            Self::Tcp(_) => "socket/tcp",
            Self::Udp { .. } => "socket/udp",
            Self::Unix(_) => "socket/unix",
            Self::Shm(_) => "shm",
            Self::Pcaal(_) => "pcaal/udp",
            Self::Mvich(options) => match options.reach {
                Reach::Memory => "mpi-mvich/shm",
                Reach::Udp(_) => "mpi-mvich/udp",
                Reach::Packet(_) => "mpi-mvich/packet",
            },
            Self::Shim(layer) => &layer.name,
        }
    }

    /// Whether messages may be lost.
    pub const fn lossy(&self) -> bool {
        matches!(self, Self::Udp { .. })
    }

    /// Whether a message of no bytes can be told from no message.
    const fn has_boundaries(&self) -> bool {
        !matches!(self, Self::Tcp(_) | Self::Unix(_) | Self::Pcaal(_))
    }
}

/// Everything a probe is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The layer.
    pub layer: Layer,
    /// This process; nothing where the library behind a shim says it.
    pub seat: Option<Seat>,
    /// Where the two meet.
    pub directory: PathBuf,
    /// The cores to run on.
    pub pin: Pin,
    /// The longest this process may live.
    pub limit: Duration,
    /// The interface whose traffic is counted around each step, if one is.
    pub interface: Option<String>,
    /// What to do.
    pub task: Task,
}

/// What the ranks do together.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Measure these steps, on two ranks.
    Measure(Vec<Step>),
    /// Run a program, on any number of ranks.
    Run(Program),
    /// Measure what ranks do together, on two or more.
    Together(Vec<Step<Together>>),
}

impl Spec {
    /// Reads a specification.
    ///
    /// # Errors
    /// [`SpecError`], at the first key that is wrong.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| SpecError { key: String::new(), reason: format!("not JSON: {error}") })?;
        let mut reader = Reader::new("", value)?;
        let protocol = reader.integer("protocol", 0, u64::MAX, None)?;
        if protocol != PROTOCOL {
            return Err(SpecError {
                key: "protocol".into(),
                reason: format!("version {protocol} is not spoken here: only {PROTOCOL} is"),
            });
        }
        let name = reader.required("layer", Layer::NAMES)?;
        let options = reader.optional("options").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let options = Reader::new("options", options)?;
        let layer = match reader.optional("shim") {
            Some(path) => shim_layer(&mut reader, &name, &path, options)?,
            None => known_layer(&reader, &name, options)?,
        };
        let program = reader.optional("program").map(program::read).transpose()?;
        let together = reader.optional("together");
        let (least, most) = match (&program, &together) {
            (Some(_), _) => (1, MOST_RANKS),
            (None, Some(_)) => (2, MOST_RANKS),
            (None, None) => (2, 2),
        };
        let seat = seat(&mut reader, least, most, matches!(layer, Layer::Shim(_)))?;
        let directory = PathBuf::from(reader.word(
            "directory",
            "the path of the directory where the ranks meet",
            None,
            |text| (!text.is_empty()).then(|| text.to_owned()),
        )?);
        let pin = pin(&mut reader, seat.is_none())?;
        let limit = Duration::from_secs_f64(reader.positive("limit_s", LONGEST_LIFE_S, None)?);
        let interface = match reader.optional("interface") {
            None => None,
            Some(Value::String(name)) if !name.is_empty() => Some(name),
            Some(value) => {
                return Err(reader.wrong("interface", &value, "the name of an interface, or null"));
            }
        };
        let task = match (program, reader.optional("schedule"), together) {
            (Some(program), None, None) => Task::Run(program),
            (None, Some(schedule), None) => {
                Task::Measure(read_steps(&reader, "schedule", schedule, |key, step| {
                    read_step(key, step, &layer)
                })?)
            }
            (None, None, Some(steps)) => {
                Task::Together(read_steps(&reader, "together", steps, |key, step| {
                    read_together(key, step, &layer)
                })?)
            }
            (None, None, None) => {
                return Err(SpecError { key: "schedule".into(), reason: "missing: a list of steps".into() });
            }
            (_, schedule, together) => {
                let (name, value) = match schedule {
                    Some(schedule) => ("schedule", schedule),
                    None => ("together", together.unwrap_or_default()),
                };
                return Err(reader.wrong(name, &value, "one of schedule, together and program"));
            }
        };
        if !matches!(task, Task::Measure(_)) && layer.lossy() {
            let allowed = "a program, and what ranks do together, need one that loses nothing";
            return Err(reader.wrong("layer", &name, allowed));
        }
        reader.end()?;
        Ok(Self { layer, seat, directory, pin, limit, interface, task })
    }
}

/// The rank and the number of ranks; both null where the library says them.
fn seat(spec: &mut Reader, least: u64, most: u64, may_be_told: bool) -> Result<Option<Seat>, SpecError> {
    if may_be_told && spec.lacks("size") && spec.lacks("rank") {
        spec.optional("size");
        spec.optional("rank");
        return Ok(None);
    }
    let size = spec.integer("size", least, most, None)? as u32;
    let rank = spec.integer("rank", 0, u64::from(size) - 1, None)? as u32;
    Ok(Some(Seat { rank, size }))
}

fn pin(spec: &mut Reader, many: bool) -> Result<Pin, SpecError> {
    let core = |value: &Value| value.as_u64().and_then(|cpu| u32::try_from(cpu).ok());
    let Some(value) = spec.optional("pin_cpu") else { return Ok(Pin::Free) };
    if let Some(cpu) = core(&value) {
        return Ok(Pin::One(cpu));
    }
    if let (true, Some(list)) = (many, value.as_array())
        && !list.is_empty()
        && let Some(cores) = list.iter().map(core).collect()
    {
        return Ok(Pin::Each(cores));
    }
    let allowed = if many { "a list of cores, one core, or null" } else { "the number of a core, or null" };
    Err(spec.wrong("pin_cpu", &value, allowed))
}

/// A layer behind a shim. Which options it knows is for the shim to say.
fn shim_layer(spec: &mut Reader, name: &Value, path: &Value, options: Reader) -> Result<Layer, SpecError> {
    let word = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let name = word(name).ok_or_else(|| spec.wrong("layer", name, "the name of the layer"))?;
    let path = word(path).ok_or_else(|| spec.wrong("shim", path, "the path of a shared object"))?;
    let rank_variable = match spec.optional("rank_variable") {
        None => None,
        Some(value) => {
            Some(word(&value).ok_or_else(|| spec.wrong("rank_variable", &value, "an environment variable"))?)
        }
    };
    let options = options.rest(|value| match value {
        Value::String(text) if !text.contains(['\n', '\0']) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    })?;
    Ok(Layer::Shim(ShimLayer { name, path: PathBuf::from(path), options, rank_variable }))
}

fn known_layer(spec: &Reader, name: &Value, mut options: Reader) -> Result<Layer, SpecError> {
    let layer = match name.as_str() {
        Some("socket/tcp") => {
            let nodelay = options.boolean("nodelay", true)?;
            Layer::Tcp(SocketOptions { nodelay, ..socket(&mut options, true)? })
        }
        Some("socket/udp") => Layer::Udp {
            socket: socket(&mut options, true)?,
            loss_limit: {
                let learnt = options.lacks("loss_limit_ms");
                let ms = options.positive("loss_limit_ms", 60_000.0, Some(250.0))?.max(20.0);
                let most = Duration::from_secs_f64(ms / 1000.0);
                if learnt { LossLimit { least: LEAST_LOSS_LIMIT, most } } else { LossLimit::exactly(most) }
            },
        },
        Some("shm") => Layer::Shm(asks(&mut options)?),
        Some("socket/unix") => Layer::Unix(socket(&mut options, false)?),
        Some("pcaal/udp") => Layer::Pcaal(pcaal(&mut options)?),
        Some("mpi-mvich/shm") => Layer::Mvich(mvich(&mut options, |_| Ok(Reach::Memory))?),
        Some("mpi-mvich/udp") => Layer::Mvich(mvich(&mut options, |at| Ok(Reach::Udp(address(at)?)))?),
        Some("mpi-mvich/packet") => Layer::Mvich(mvich(&mut options, |at| Ok(Reach::Packet(address(at)?)))?),
        _ => return Err(spec.wrong("layer", name, Layer::NAMES)),
    };
    options.end()?;
    Ok(layer)
}

/// How a layer waits that never sleeps in the kernel.
fn asks(options: &mut Reader) -> Result<Wait, SpecError> {
    options.word("wait", "spin or yield", Some(Wait::Spin), |word| match word {
        "spin" => Some(Wait::Spin),
        "yield" => Some(Wait::Yield),
        _ => None,
    })
}

/// The address of this host by which others reach it.
fn address(options: &mut Reader) -> Result<Ipv4Addr, SpecError> {
    options.word("address", "an address of IPv4", Some(Ipv4Addr::LOCALHOST), |text| text.parse().ok())
}

fn mvich(
    options: &mut Reader,
    reach: impl FnOnce(&mut Reader) -> Result<Reach, SpecError>,
) -> Result<MvichOptions, SpecError> {
    let reach = reach(options)?;
    let mut read = MvichOptions { wait: asks(options)?, reach, ..MvichOptions::default() };
    let policy = &mut read.policy;
    let from = policy.rendezvous_from.map(Bytes::get);
    policy.rendezvous_from =
        Some(Bytes::new(options.integer("rendezvous_bytes", 1, LARGEST_MESSAGE, from)?));
    let kept = policy.registrations.map(u64::from);
    policy.registrations = Some(options.integer("registrations", 1, 4096, kept)? as u32);
    let mut buffers = 0;
    if let Some(flow) = &mut policy.flow {
        for (name, number) in [
            ("buffers", &mut flow.buffers),
            ("reserve", &mut flow.reserve),
            ("return_after", &mut flow.return_after),
        ] {
            *number = options.integer(name, 1, MOST_BUFFERS, Some((*number).into()))? as u32;
        }
        let bytes = options.integer("buffer_bytes", 64, LARGEST_BUFFER, Some(flow.buffer.get()))?;
        (buffers, flow.buffer) = (flow.buffers, Bytes::new(bytes));
    }
    policy.check().map_err(|error| options.wrong("buffers", &Value::from(buffers), error.to_string()))?;
    Ok(read)
}

fn socket(options: &mut Reader, internet: bool) -> Result<SocketOptions, SpecError> {
    let defaults = SocketOptions::default();
    let wait = options.word("wait", "block, spin or yield", Some(defaults.wait), |word| match word {
        "block" => Some(Wait::Block),
        "spin" => Some(Wait::Spin),
        "yield" => Some(Wait::Yield),
        _ => None,
    })?;
    let mut size = |name| -> Result<Option<usize>, SpecError> {
        let bytes = options.integer(name, 1, 1 << 30, Some(0))?;
        Ok((bytes > 0).then_some(bytes as usize))
    };
    let (send_buffer_bytes, receive_buffer_bytes) =
        (size("send_buffer_bytes")?, size("receive_buffer_bytes")?);
    let (address, port) = if internet {
        let address: IpAddr =
            options.word("address", "an IP address", Some(defaults.address), |text| text.parse().ok())?;
        (address, options.integer("port", 0, 65_535, Some(0))? as u16)
    } else {
        (defaults.address, 0)
    };
    Ok(SocketOptions { wait, send_buffer_bytes, receive_buffer_bytes, address, port, ..defaults })
}

fn pcaal(options: &mut Reader) -> Result<PcaalOptions, SpecError> {
    let socket = socket(options, true)?;
    let defaults = PcaalOptions::default();
    let watches = "each-cell, average, on-demand or round-trip";
    let watch = options.word("watch", watches, Some(defaults.watch), |word| match word {
        "each-cell" => Some(Watch::EachCell),
        "average" => Some(Watch::Average(AVERAGED)),
        "on-demand" => Some(Watch::OnDemand),
        "round-trip" => Some(Watch::RoundTrip),
        _ => None,
    })?;
    let mut time = |name, default: Duration| {
        let ms = options.positive(name, 60_000.0, Some(default.as_secs_f64() * 1000.0))?;
        Ok(Duration::from_secs_f64(ms / 1000.0))
    };
    let interval = time("interval_ms", defaults.interval)?;
    let loss = time("loss_ms", defaults.loss)?;
    let high = time("high_ms", defaults.high)?;
    let low = time("low_ms", defaults.low.min(high.mul_f64(0.9)))?;
    if low >= high {
        let found = Value::from(low.as_secs_f64() * 1000.0);
        let allowed = format!("below high_ms, which is {}", high.as_secs_f64() * 1000.0);
        return Err(options.wrong("low_ms", &found, allowed));
    }
    let mut whole = |name, high, default: u64| options.integer(name, 0, high, Some(default));
    let mut dscp = |name, circuit: usize| Ok(whole(name, 63, defaults.dscp[circuit].into())? as u8);
    let dscp = [dscp("dscp_ordinary", 0)?, dscp("dscp_backup", 1)?, dscp("dscp_control", 2)?];
    let faults = PcaalFaults {
        loss_percent: whole("fault_loss_percent", 100, 0)? as u32,
        repeat_percent: whole("fault_repeat_percent", 100, 0)? as u32,
        jitter: Duration::from_micros(whole("fault_jitter_us", 1_000_000, 0)?),
        congestion: Duration::from_micros(whole("fault_congestion_us", 1_000_000, 0)?),
        congested: (
            whole("fault_congested_from", u64::MAX, PcaalFaults::ALWAYS.0)?,
            whole("fault_congested_to", u64::MAX, PcaalFaults::ALWAYS.1)?,
        ),
        seed: whole("fault_seed", u64::MAX, 1)?,
    };
    Ok(PcaalOptions { socket, watch, interval, loss, high, low, dscp, faults })
}

/// Reads a list of steps, each by `read`, which is told its key.
fn read_steps<K>(
    spec: &Reader,
    name: &'static str,
    value: Value,
    read: impl Fn(String, Value) -> Result<Step<K>, SpecError>,
) -> Result<Vec<Step<K>>, SpecError> {
    match value {
        Value::Array(steps) => {
            let each = |(number, step)| read(format!("{name}[{number}]"), step);
            steps.into_iter().enumerate().map(each).collect()
        }
        other => Err(spec.wrong(name, &other, "a list of steps")),
    }
}

fn read_together(key: String, value: Value, layer: &Layer) -> Result<Step<Together>, SpecError> {
    let mut reader = Reader::new(key, value)?;
    // What is not made of messages is for a library to have.
    let here = |one: &Together| one.over_any_layer() || matches!(layer, Layer::Shim(_));
    let find = |name: &str| Together::from_name(name).filter(here);
    let known: Vec<&str> = Together::NAMES.iter().copied().filter(|name| find(name).is_some()).collect();
    let kind = reader.word("loop", &known.join(", "), None, find)?;
    let bytes = reader.integer("bytes", 0, LARGEST_MESSAGE, None)?;
    end_of_step(reader, kind, bytes)
}

fn read_step(key: String, value: Value, layer: &Layer) -> Result<Step, SpecError> {
    let mut reader = Reader::new(key, value)?;
    let names = Kind::ALL.map(Kind::name).join(", ");
    let kind = reader.word("loop", &names, None, Kind::from_name)?;
    let bytes = reader.integer("bytes", 0, LARGEST_MESSAGE, None)?;
    let refuse_bytes =
        |reader: &Reader, allowed: &str| Err(reader.wrong("bytes", &Value::from(bytes), allowed));
    if !matches!(kind, Kind::Call | Kind::Slice | Kind::Beside) {
        if bytes == 0 && !layer.has_boundaries() {
            return refuse_bytes(&reader, "a byte stream has no empty message, the least is 1");
        }
        if layer.lossy() && bytes > LARGEST_DATAGRAM as u64 {
            return refuse_bytes(
                &reader,
                &format!("the largest payload of a datagram is {LARGEST_DATAGRAM} bytes"),
            );
        }
        if kind == Kind::TwoWrite && bytes < 2 {
            return refuse_bytes(&reader, "two writes need at least 2 bytes");
        }
    }
    end_of_step(reader, kind, bytes)
}

/// Reads what every step has besides its loop and its length.
fn end_of_step<K>(mut reader: Reader, kind: K, bytes: u64) -> Result<Step<K>, SpecError> {
    let step = Step {
        kind,
        bytes: Bytes::new(bytes),
        messages: reader.integer("messages", 1, 1 << 24, Some(1))? as u32,
        delay: Span::from_ps(reader.integer("delay_ns", 0, 10_000_000_000, Some(0))? * 1000),
        warmup: reader.integer("warmup", 0, 1 << 24, Some(16))? as u32,
        min_samples: reader.integer("min_samples", 1, 1 << 24, Some(20))? as u32,
        max_samples: reader.integer("max_samples", 1, 1 << 24, Some(2000))? as u32,
        budget: Span::from_ps((reader.positive("budget_ms", 3_600_000.0, Some(20.0))? * 1e9) as u64),
        batch: reader.integer("batch", 0, 1 << 20, Some(0))? as u32,
    };
    if step.min_samples > step.max_samples {
        return Err(reader.wrong(
            "max_samples",
            &Value::from(step.max_samples),
            format!("at least min_samples, which is {}", step.min_samples),
        ));
    }
    reader.end()?;
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::show;

    fn spec(change: impl Fn(&mut Value)) -> Result<Spec, String> {
        let mut value: Value = serde_json::from_str(
            r#"{"protocol":1,"layer":"socket/tcp","rank":0,"size":2,"options":{"wait":"spin"},
                "directory":"/tmp/x","pin_cpu":null,"limit_s":20.0,
                "schedule":[{"loop":"echo","bytes":4,"warmup":16,"min_samples":20,"max_samples":2000,
                "budget_ms":20.0,"batch":0,"messages":1,"delay_ns":0}]}"#,
        )
        .unwrap();
        change(&mut value);
        Spec::parse(&value.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_right_specification_is_read() {
        let spec = spec(|_| ()).unwrap();
        assert_eq!(spec.layer.name(), "socket/tcp");
        assert_eq!(spec.seat, Some(Seat { rank: 0, size: 2 }));
        assert_eq!((spec.pin, spec.limit), (Pin::Free, Duration::from_secs(20)));
        let Task::Measure(schedule) = spec.task else { panic!("a schedule is a measurement") };
        assert_eq!(schedule[0].budget, Span::from_ps(20_000_000_000));
        assert!(matches!(spec.layer, Layer::Tcp(SocketOptions { wait: Wait::Spin, nodelay: true, .. })));
    }

    #[test]
    fn a_layer_behind_a_shim_has_any_name_and_passes_its_options_on() {
        let shim = |change: &dyn Fn(&mut Value)| {
            spec(|v| {
                v["layer"] = "mpi/any".into();
                v["shim"] = "/tmp/any.so".into();
                v["rank"] = Value::Null;
                v["size"] = Value::Null;
                v["options"] = serde_json::json!({"eager": 4096, "route": "direct", "advise": true});
                v["schedule"][0]["bytes"] = 0.into();
                change(v);
            })
        };
        let read = shim(&|v| v["pin_cpu"] = serde_json::json!([1, 0])).unwrap();
        assert_eq!((read.seat, read.pin), (None, Pin::Each(vec![1, 0])));
        let Layer::Shim(layer) = read.layer else { panic!("a shim is a shim") };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut options = layer.options;
        options.sort();
        assert_eq!(options, [pair("advise", "true"), pair("eager", "4096"), pair("route", "direct")]);
        assert_eq!((layer.name.as_str(), layer.path), ("mpi/any", PathBuf::from("/tmp/any.so")));
        let known = shim(&|v| {
            v["rank"] = 1.into();
            v["size"] = 2.into();
            v["pin_cpu"] = 3.into();
            v["rank_variable"] = "PMI_RANK".into();
        });
        let known = known.unwrap();
        assert_eq!((known.seat, known.pin), (Some(Seat { rank: 1, size: 2 }), Pin::One(3)));
        assert!(matches!(known.layer, Layer::Shim(ShimLayer { rank_variable: Some(_), .. })));

        type Change = fn(&mut Value);
        let cases: [(Change, &str); 7] = [
            (|v| v["shim"] = 7.into(), "shim: 7 is not allowed: the path of a shared object"),
            (|v| v["layer"] = "".into(), r#"layer: "" is not allowed: the name of the layer"#),
            (|v| v["options"]["eager"] = Value::Null, "options.eager: null is not allowed: one line of text"),
            (|v| v["options"]["eager"] = "1\n2".into(), r#"options.eager: "1\n2" is not allowed: one line"#),
            (|v| v["rank"] = 0.into(), "size: missing: a whole number from 2 to 2"),
            (
                |v| v["pin_cpu"] = serde_json::json!([]),
                "pin_cpu: [] is not allowed: a list of cores, one core",
            ),
            (|v| v["rank_variable"] = 1.into(), "rank_variable: 1 is not allowed: an environment variable"),
        ];
        for (change, expected) in cases {
            let error = shim(&change).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
        let plain = spec(|v| v["pin_cpu"] = serde_json::json!([0, 1])).unwrap_err();
        assert_eq!(plain, "pin_cpu: [0,1] is not allowed: the number of a core, or null");
    }

    #[test]
    fn what_ranks_do_together_is_of_two_or_more_and_calls_of_a_library_are_for_its_shim() {
        let together = |change: &dyn Fn(&mut Value)| {
            spec(|v| {
                v["together"] = serde_json::json!([{"loop": "pairs", "bytes": 4, "messages": 8}]);
                v["schedule"] = Value::Null;
                v["size"] = 4.into();
                change(v);
            })
        };
        let read = together(&|_| ()).unwrap();
        assert_eq!(read.seat, Some(Seat { rank: 0, size: 4 }));
        let Task::Together(steps) = read.task else { panic!("what ranks do together") };
        assert_eq!((steps[0].kind.name(), steps[0].messages), ("pairs", 8));
        let shim = together(&|v| {
            v["shim"] = "/tmp/any.so".into();
            v["together"][0]["loop"] = "iallreduce_busy".into();
        });
        let Task::Together(steps) = shim.unwrap().task else { panic!("what ranks do together") };
        assert_eq!(steps[0].kind.name(), "iallreduce_busy");

        type Change = fn(&mut Value);
        let cases: [(Change, &str); 6] = [
            (
                |v| v["together"][0]["loop"] = "allreduce".into(),
                r#"together[0].loop: "allreduce" is not allowed: pairs, bidirectional, load"#,
            ),
            (
                |v| v["together"][0]["loop"] = "echo".into(),
                r#"together[0].loop: "echo" is not allowed: pairs"#,
            ),
            (|v| v["together"] = 4.into(), "together: 4 is not allowed: a list of steps"),
            (|v| v["size"] = 1.into(), "size: 1 is not allowed: a whole number from 2 to 1024"),
            (
                |v| v["layer"] = "socket/udp".into(),
                r#"layer: "socket/udp" is not allowed: a program, and what"#,
            ),
            (
                |v| v["schedule"] = serde_json::json!([]),
                "schedule: [] is not allowed: one of schedule, together and program",
            ),
        ];
        for (change, expected) in cases {
            let error = together(&change).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }

    #[test]
    fn every_wrong_key_is_named_with_its_value_and_what_is_allowed() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 17] = [
            (|v| v["protocol"] = 2.into(), "protocol: version 2 is not spoken here: only 1 is"),
            (|v| v["layer"] = "socket/sctp".into(), r#"layer: "socket/sctp" is not allowed: socket/tcp,"#),
            (|v| v["rank"] = 2.into(), "rank: 2 is not allowed: a whole number from 0 to 1"),
            (|v| v["size"] = 3.into(), "size: 3 is not allowed: a whole number from 2 to 2"),
            (|v| v["rank"] = Value::Null, "rank: missing: a whole number from 0 to 1"),
            (|v| v["directory"] = 7.into(), "directory: 7 is not allowed: the path"),
            (|v| v["interface"] = 0.into(), "interface: 0 is not allowed: the name of an interface, or null"),
            (|v| v["pin_cpu"] = (-1).into(), "pin_cpu: -1 is not allowed: the number of a core, or null"),
            (|v| v["limit_s"] = 0.into(), "limit_s: 0 is not allowed: a number above 0"),
            (|v| v["schedule"] = "all".into(), r#"schedule: "all" is not allowed: a list of steps"#),
            (
                |v| v["options"]["wait"] = "sleep".into(),
                r#"options.wait: "sleep" is not allowed: block, spin"#,
            ),
            (
                |v| v["options"]["no_delay"] = true.into(),
                "options.no_delay: unknown key: allowed are nodelay",
            ),
            (
                |v| v["schedule"][0]["loop"] = "pong".into(),
                r#"schedule[0].loop: "pong" is not allowed: echo,"#,
            ),
            (|v| v["schedule"][0]["bytes"] = 0.into(), "schedule[0].bytes: 0 is not allowed: a byte stream"),
            (|v| v["schedule"][0]["bytes"] = 1.5.into(), "schedule[0].bytes: 1.5 is not allowed: a whole"),
            (|v| v["schedule"][0]["max_samples"] = 3.into(), "schedule[0].max_samples: 3 is not allowed: at"),
            (
                |v| v["sched"] = 1.into(),
                "sched: unknown key: allowed are protocol, layer, options, shim, program",
            ),
        ];
        for (change, expected) in cases {
            let error = spec(change).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
        let error = spec(|v| {
            v["layer"] = "socket/udp".into();
            v["schedule"][0]["bytes"] = 65_508.into();
        });
        assert_eq!(
            error.unwrap_err(),
            "schedule[0].bytes: 65508 is not allowed: the largest payload of a datagram is 65507 bytes"
        );
        let mvich =
            |options: Value| spec(|v| (v["layer"], v["options"]) = ("mpi-mvich/shm".into(), options.clone()));
        let few = mvich(serde_json::json!({"buffers": 12})).unwrap_err();
        assert_eq!(
            few,
            "options.buffers: 12 is not allowed: an eager message needs 9 buffers, at most 0 can be filled"
        );
        let set = mvich(serde_json::json!({"rendezvous_bytes": 65_537, "buffer_bytes": 8192})).unwrap();
        let Layer::Mvich(MvichOptions { policy, wait: Wait::Spin, .. }) = set.layer else { panic!("MVICH") };
        assert_eq!(policy.rendezvous_from, Some(Bytes::new(65_537)));
        assert!(Spec::parse("{").unwrap_err().to_string().starts_with("not JSON: "));
        assert_eq!(Spec::parse("[]").unwrap_err().to_string(), "[] is not an object");
        assert_eq!(show(&Value::from("x".repeat(200))).chars().count(), 81);
    }
}
