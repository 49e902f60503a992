//! What a local network is made of, read from JSON.
//!
//! Every number is a count of picoseconds, bits, cells or octets, as its key says. The names of prices
//! are those of [`Activity`].

use std::str::FromStr as _;

use wiretwin_engine::Probability;
use wiretwin_msg::mpi::SynchronousSend;
use wiretwin_plan::{PlanError, read};
use wiretwin_proto::{tcp, udp};
use wiretwin_record::capture::LinkType;
use wiretwin_units::{BitRate, Bits, Bytes, Span};

use super::activity::{Activity, CPU_ACTIVITIES, VI_ACTIVITIES};
use super::admission::{self, Reservation};
use super::asx100::SwitchConfig;
use super::capture;
use super::core::LinkConfig;
use super::load::{self, LoadConfig};
use super::signalling::{self, SwitchedConfig};
use super::stack::{Lower, Message, Stack};
use super::switches;
use super::vi::{self, ViConfig};
use crate::fabric;
use crate::fault::BIT_ERROR_RATES;
use crate::gige;
use crate::json::At;

/// What an activity costs a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Each time.
    pub call: Span,
    /// For each byte besides.
    pub byte: Span,
    /// For each byte where the message does not fit the cache.
    pub cold_byte: Span,
}

/// What a host's processor charges, by activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    list: [Price; CPU_ACTIVITIES],
    /// Messages up to this size find their bytes in the cache.
    cache: Bytes,
}

impl Prices {
    /// What an activity over so many bytes of a message of such a size costs.
    #[must_use]
    pub fn of(&self, activity: Activity, bytes: Bytes, message: Bytes) -> Span {
        let price = &self.list[activity as usize];
        let byte = if message > self.cache { price.cold_byte } else { price.byte };
        price.call + byte * bytes.get()
    }
}

/// A host's bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// To get the bus, each transfer.
    pub setup: Span,
    /// Each byte.
    pub byte: Span,
}

/// What firmware charges for an adaptation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirmwarePrices {
    /// Taking up a PDU to send.
    pub send_pdu: Span,
    /// Each cell sent.
    pub send_cell: Span,
    /// Each cell taken in.
    pub receive_cell: Span,
    /// Handing a whole PDU to the host.
    pub receive_pdu: Span,
}

/// An adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterConfig {
    /// The host does everything through two FIFOs of cells.
    Series100 {
        /// Cells that wait to be sent.
        send_fifo_cells: u32,
        /// Cells that wait to be read.
        receive_fifo_cells: u32,
        /// From the first cell in an empty FIFO to the interrupt.
        interrupt_delay: Span,
    },
    /// A processor on the adapter segments and reassembles, by DMA from and to the host's memory.
    Series200 {
        /// Cells between DMA and line, outward.
        send_fifo_cells: u32,
        /// The same inward.
        receive_fifo_cells: u32,
        /// What its firmware charges for AAL 5.
        aal5: FirmwarePrices,
        /// The same for AAL 3/4.
        aal34: FirmwarePrices,
        /// The least time from one cell of a circuit to the next; zero is as fast as it goes.
        pace: Span,
    },
    /// An adapter for whole frames, or for whole PDUs in a network of cell switches, which it cuts and joins
    /// by DMA: packets pass through a queue to the medium, and an interrupt each comes back.
    Frames,
}

/// What else runs on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundConfig {
    /// The clock interrupts once in this time, at a random phase; zero is never.
    pub tick: Span,
    /// What that takes.
    pub tick_work: Span,
    /// Other processes wake once in this time on average (exponential); zero is never.
    pub wake: Span,
    /// What they then take on average (exponential).
    pub wake_work: Span,
}

/// A host with its adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name.
    pub name: String,
    /// What its processor charges.
    pub prices: Prices,
    /// Its bus.
    pub bus: BusConfig,
    /// Its adapter.
    pub adapter: AdapterConfig,
    /// What else it does.
    pub background: Option<BackgroundConfig>,
}

/// What is between the adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkConfig {
    /// A fibre between two hosts.
    BackToBack(LinkConfig),
    /// One switch in the middle, with the same fibre to each host.
    Switch(LinkConfig, SwitchConfig),
    /// A cable with CSMA/CD (Ethernet).
    Cable {
        /// Bits per second.
        rate: BitRate,
        /// From one station to the next.
        hop: Span,
    },
    /// A ring with a timed token (FDDI).
    Ring {
        /// Bits per second.
        rate: BitRate,
        /// From one station to the next.
        hop: Span,
        /// Through a station.
        latency: Span,
        /// The target token rotation time.
        target: Span,
    },
    /// Gigabit Ethernet.
    Gige(gige::Config),
    /// Any network of cell switches: [`Config::switches`].
    Switches,
}

/// Stream sockets.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketConfig {
    /// The rules that TCP follows, with socket buffers.
    pub tcp: tcp::Config,
    /// Those of UDP between ranks, with the same buffers.
    pub udp: udp::Config,
    /// Both ends set `TCP_NODELAY`.
    pub nodelay: bool,
    /// The largest IP packet of the network.
    pub mtu: u16,
    /// What encapsulation, framing and check sequence add to an IP packet.
    pub encapsulation: Bytes,
}

/// A local network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The stack that programs use.
    pub stack: Stack,
    /// Hosts; rank r runs on host r.
    pub hosts: Vec<HostConfig>,
    /// What is between the adapters.
    pub network: NetworkConfig,
    /// The network of cell switches, if that is what it is.
    pub switches: Option<fabric::Plan>,
    /// The longest PDU that the Fore interface takes.
    pub pdu_bytes: Bytes,
    /// Whether a longer message is cut into several PDUs; else it is rejected, as the interface does.
    pub cut_messages: bool,
    /// Bytes that a circuit's receiver queues before its process reads them; more are lost.
    pub stream_bytes: Bytes,
    /// Sockets, where the stack has them.
    pub socket: Option<SocketConfig>,
    /// VIs, where the stack has them.
    pub vi: Option<ViConfig>,
    /// Where a layer of MPI begins with rendezvous, if not where its library does: everywhere the same, or by
    /// rank.
    pub rendezvous: Vec<Bytes>,
    /// What else is set of MPI that is nobody's.
    pub mpi: Option<MpiConfig>,
    /// What the first message of a rank to another takes besides, at its sender.
    pub first_use: Span,
    /// Of `pvm-mapped`: buffers of a PDU each, of every connection, for what is sent, and as many for what comes.
    pub mapped_buffers: u32,
    /// Whose packets are captured, and what each begins with.
    pub capture: Option<(u32, LinkType)>,
    /// The chance of each bit on a link, a cable or a ring to be wrong.
    pub bit_error: Option<f64>,
    /// How long after its first cell a PDU may take to be whole; for ever where there is none.
    pub reassembly_timer: Option<Span>,
    /// The chance of a cell to be lost on each link.
    pub loss: Option<Probability>,
    /// Stations that only generate.
    pub load: Vec<LoadConfig>,
    /// How circuits are set up; permanent ones are used where there is nothing.
    pub circuits: Option<SwitchedConfig>,
    /// Circuits that have bandwidth reserved.
    pub reservations: Vec<Reservation>,
    /// Message layers of other programs on the same hosts, a rank of each on each host.
    pub beside: Vec<Beside>,
}

/// The message layer of another program on the hosts of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its stack, which has the network's transport and all below it.
    pub stack: Stack,
    /// By host, what its library charges; none where it charges what the main stack's does.
    pub prices: Vec<Prices>,
}

impl Beside {
    /// Reads what a library charges by host from hosts as its stack has them.
    pub fn read_prices(at: &At<'_>) -> Result<Vec<Prices>, PlanError> {
        let hosts = at.list("hosts")?;
        hosts.iter().map(|host| read_host(host, false).map(|read| read.prices)).collect()
    }
}

/// Settings of MPI that is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiConfig {
    /// The first length whose data are a message of their own behind the head; with heads of p4 then.
    pub apart_from: Option<Bytes>,
    /// How a synchronous send learns that it has matched.
    pub synchronous: SynchronousSend,
    /// Every message goes through a buffer of the library.
    pub always_buffered: bool,
}

impl Config {
    /// Where a rank begins with rendezvous, if that is set.
    pub(super) fn rendezvous_of(&self, rank: u32) -> Option<Bytes> {
        self.rendezvous.get(rank as usize).or(self.rendezvous.first()).copied()
    }
}

impl NetworkConfig {
    /// Whether adapters send and take single cells.
    pub(super) const fn has_cells(&self) -> bool {
        matches!(self, Self::BackToBack(_) | Self::Switch(..))
    }
}

/// The longest time that any key may hold: a minute.
const LONGEST_PS: u64 = 60_000_000_000_000;

impl Config {
    /// Reads a network.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let value = read::from_json(text)?;
        let top = At::top(&value).object(CONFIG_KEYS)?;
        let stack = Stack::from_str(top.get("stack")?.text()?)?;
        let hosts = top.get("hosts")?.list("hosts")?;
        let most = if stack.has_many_hosts() { MANY_HOSTS } else { MOST_HOSTS };
        if !(2..=most).contains(&hosts.len()) {
            let allowed = format!("2 to {most} hosts");
            return Err(top.refuse_member("hosts", hosts.len(), allowed));
        }
        let over_vis = stack.message.is_over_vis();
        let hosts = hosts.iter().map(|at| read_host(at, over_vis)).collect::<Result<Vec<_>, _>>()?;
        let generators = top.optional("load").and_then(|at| at.value.as_array().map(Vec::len)).unwrap_or(0);
        let network = read_network(&top, &stack, hosts.len() as u64, generators as u64)?;
        let switches = match top.optional("switches") {
            Some(at) => Some(switches::read(&top, &at, &stack, &hosts)?),
            None if stack.message == Message::PvmMapped => {
                let allowed = "one over a network of switches with credits: pvm-mapped repeats nothing";
                return Err(top.refuse_member("stack", "pvm-mapped/aal5", allowed));
            }
            None => None,
        };
        let frames = hosts.iter().position(|host| host.adapter == AdapterConfig::Frames);
        let atm = stack.is_atm();
        let cells = network.has_cells();
        if let Some(at) = hosts.iter().position(|host| (host.adapter == AdapterConfig::Frames) == cells) {
            let allowed = match (cells, atm) {
                (true, _) => "series-100 or series-200: the stack is ATM",
                (false, true) => "frames: switches carry whole PDUs",
                (false, false) => "frames: it is not ATM",
            };
            let value = if frames.is_some() { "frames" } else { "an ATM adapter" };
            let key = format!("hosts[{at}].adapter.kind");
            return Err(PlanError::new(key, value, allowed));
        }
        let socket = match stack.message {
            Message::Via | Message::MpiMvich => None,
            message if message.has_circuits() => None,
            _ => Some(read_socket(&top.get("socket")?, &stack)?),
        };
        let vi = if over_vis { Some(vi::read(&top.get("vi")?, hosts.len() as u64)?) } else { None };
        let mtu = socket.as_ref().filter(|_| !atm).map(|socket| socket.mtu);
        let load = load::read(&top, &network, hosts.len() as u32, mtu)?;
        let reservations = admission::read(&top, &network, &hosts, &load)?;
        let circuits = signalling::read(&top, &stack, &network, &hosts)?;
        let pdu_bytes = Bytes::new(top.get("pdu_bytes")?.integer(1, 65_535)?);
        let cut_messages = top.get("cut_messages")?.truth()?;
        let stream_bytes = Bytes::new(top.get("stream_bytes")?.integer(pdu_bytes.get(), 1 << 32)?);
        for key in ["cell_loss", "bit_error"] {
            if let Some(at) = top.optional(key).filter(|_| switches.is_some()) {
                return Err(at.refuse("nothing here: lines of switches have cells_lost and credits_lost"));
            }
        }
        let loss = match top.optional("cell_loss") {
            None => None,
            Some(at) => {
                let loss = at.value.as_f64().and_then(|loss| Probability::new(loss).ok());
                Some(loss.ok_or_else(|| at.refuse("a probability, 0 to 1"))?)
            }
        };
        let capture = match top.optional("capture_host") {
            None => None,
            Some(at) => {
                let host = at.integer(0, hosts.len() as u64 - 1)? as u32;
                let link = capture::link_of(stack, socket.as_ref()).map_err(|why| at.refuse(why))?;
                Some((host, link))
            }
        };
        let bit_error = match top.optional("bit_error") {
            None => None,
            Some(at) => {
                let (least, most) = BIT_ERROR_RATES;
                let rate = at.value.as_f64().filter(|rate| *rate == 0.0 || (least..=most).contains(rate));
                let rate = rate.ok_or_else(|| at.refuse(&format!("0, or {least:e} to {most}")))?;
                (rate > 0.0).then_some(rate)
            }
        };
        let reassembly_timer = match top.optional("reassembly_timer_ps") {
            Some(at) if !cells => {
                return Err(at.refuse(
                    "nothing here: only ATM has cells, and adapters for whole PDUs wait for no cells",
                ));
            }
            Some(at) => Some(Span::from_ps(at.integer(1_000_000, LONGEST_PS)?)),
            None => None,
        };
        let most = vi.as_ref().map_or(1 << 31, ViConfig::most_eager);
        let rendezvous = read_rendezvous(&top, &stack, hosts.len(), most)?;
        let mpi = read_mpi(&top, &stack)?;
        let first_use = top.optional("first_use_ps").map(|at| at.integer(0, LONGEST_PS)).transpose()?;
        let first_use = Span::from_ps(first_use.unwrap_or(0));
        let mapped_buffers = match top.optional("mapped_buffers") {
            None => MAPPED_BUFFERS,
            Some(at) if stack.message != Message::PvmMapped => {
                return Err(at.refuse("nothing but of pvm-mapped"));
            }
            Some(at) => at.integer(1, 1 << 16)? as u32,
        };
        Ok(Self {
            stack,
            hosts,
            network,
            switches,
            socket,
            vi,
            pdu_bytes,
            cut_messages,
            stream_bytes,
            rendezvous,
            mpi,
            first_use,
            mapped_buffers,
            capture,
            bit_error,
            reassembly_timer,
            loss,
            load,
            circuits,
            reservations,
            beside: Vec::new(),
        })
    }
}

/// Hosts of a network, at most; and where packets go through one switch of Ethernet.
const MOST_HOSTS: usize = 64;
const MANY_HOSTS: usize = 1024;

/// Reads from where there is rendezvous: a length for all, or one for each rank.
fn read_rendezvous(top: &At<'_>, stack: &Stack, hosts: usize, most: u64) -> Result<Vec<Bytes>, PlanError> {
    let Some(at) = top.optional("rendezvous_from_bytes") else { return Ok(Vec::new()) };
    if !stack.message.is_mpi() {
        return Err(at.refuse("nothing here: only layers of MPI have rendezvous"));
    }
    if !at.value.is_array() {
        return Ok(vec![Bytes::new(at.integer(1, most)?)]);
    }
    let list = at.list("lengths")?;
    if list.len() != hosts || stack.message.is_over_vis() {
        return Err(at.refuse("one length, or, over sockets, one for each host"));
    }
    list.iter().map(|at| at.integer(1, most).map(Bytes::new)).collect()
}

/// Reads what else is set of MPI that is nobody's.
fn read_mpi(top: &At<'_>, stack: &Stack) -> Result<Option<MpiConfig>, PlanError> {
    let Some(at) = top.optional("mpi") else { return Ok(None) };
    if stack.message != Message::Mpi {
        return Err(
            at.refuse("nothing here: only mpi over tcp is set by its user, other layers as their library")
        );
    }
    let fields = at.object("apart_from_bytes synchronous always_buffered")?;
    let apart = fields.optional("apart_from_bytes").map(|at| at.integer(1, 1 << 31)).transpose()?;
    Ok(Some(MpiConfig {
        apart_from: apart.map(Bytes::new),
        synchronous: fields.get("synchronous")?.one_of(&[
            ("acknowledged", SynchronousSend::Acknowledged),
            ("rendezvous", SynchronousSend::Rendezvous),
        ])?,
        always_buffered: fields.get("always_buffered")?.truth()?,
    }))
}

/// Buffers of mapped memory where nothing else is said (choice): 144 KB of each connection, each way.
const MAPPED_BUFFERS: u32 = 16;

const CONFIG_KEYS: &str = "circuits stack hosts link switch cable ring gige switches socket vi pdu_bytes \
    cut_messages stream_bytes first_use_ps mapped_buffers rendezvous_from_bytes mpi capture_host bit_error \
    reassembly_timer_ps cell_loss load reservations";

fn read_network(
    top: &At<'_>,
    stack: &Stack,
    hosts: u64,
    generators: u64,
) -> Result<NetworkConfig, PlanError> {
    match stack.lower {
        Lower::Aal5 | Lower::Aal34 if top.optional("switches").is_some() => Ok(NetworkConfig::Switches),
        Lower::Aal5 | Lower::Aal34 => {
            let link = read_link(&top.get("link")?)?;
            match top.optional("switch") {
                None if hosts > 2 => {
                    Err(top.refuse_member("switch", "nothing", "a switch, for more than two hosts"))
                }
                None => Ok(NetworkConfig::BackToBack(link)),
                Some(at) => Ok(NetworkConfig::Switch(link, read_switch(&at, hosts + generators, &link)?)),
            }
        }
        Lower::Ethernet => {
            let fields = top.get("cable")?;
            let fields = fields.object("rate_bit_s hop_ps")?;
            let rate = fields.get("rate_bit_s")?.integer(1_000_000, 1_000_000_000)?;
            Ok(NetworkConfig::Cable { rate: BitRate::bit_s(rate), hop: span(&fields, "hop_ps")? })
        }
        Lower::Fddi => {
            let fields = top.get("ring")?;
            let fields = fields.object("rate_bit_s hop_ps latency_ps target_ps")?;
            let rate = fields.get("rate_bit_s")?.integer(1_000_000, 1_000_000_000)?;
            // Long enough for a rotation and the longest frame, whatever the stations.
            let target = fields.get("target_ps")?.integer(4_000_000_000, 165_000_000_000)?;
            Ok(NetworkConfig::Ring {
                rate: BitRate::bit_s(rate),
                hop: Span::from_ps(fields.get("hop_ps")?.integer(0, 10_000_000)?),
                latency: Span::from_ps(fields.get("latency_ps")?.integer(0, 10_000_000)?),
                target: Span::from_ps(target),
            })
        }
        Lower::Gige => read_gige(&top.get("gige")?, hosts).map(NetworkConfig::Gige),
    }
}

fn read_gige(at: &At<'_>, hosts: u64) -> Result<gige::Config, PlanError> {
    let fields = at.object("rate_bit_s duplex propagation_ps adapter switch")?;
    let adapter = fields.get("adapter")?;
    let adapter = adapter.object("bus_setup_ps bus_byte_ps frame_ps send_frames receive_bytes receive_frames coalesce_frames coalesce_ps pause")?;
    let pause = adapter.get("pause")?;
    let duplexes = [
        ("full", gige::Duplex::Full),
        ("half", gige::Duplex::Half { bursts: false }),
        ("half-in-bursts", gige::Duplex::Half { bursts: true }),
    ];
    let duplex = fields.optional("duplex").map_or(Ok(gige::Duplex::Full), |at| at.one_of(&duplexes))?;
    let half = duplex != gige::Duplex::Full;
    if half && pause.value.as_bool() == Some(true) {
        return Err(pause.refuse("false in half duplex"));
    }
    let switch = match fields.optional("switch") {
        Some(switch) if half => return Err(switch.refuse("none in half duplex, where all share a line")),
        None if hosts > 2 && !half => {
            return Err(at.refuse("an object with the key switch, for more than two hosts"));
        }
        None => None,
        Some(switch) => {
            let fields = switch.object("forwarding latency_ps port_bytes")?;
            Some(gige::Switch {
                forwarding: fields.get("forwarding")?.one_of(&[
                    ("stored", gige::Forwarding::Stored),
                    ("cut-through", gige::Forwarding::CutThrough),
                ])?,
                latency: span(&fields, "latency_ps")?,
                port: Bytes::new(fields.get("port_bytes")?.integer(9_018, 1 << 40)?),
            })
        }
    };
    let config = gige::Config {
        rate: rate(&fields, "rate_bit_s")?,
        duplex,
        propagation: span(&fields, "propagation_ps")?,
        adapter: gige::Adapter {
            bus_setup: span(&adapter, "bus_setup_ps")?,
            bus_byte: span(&adapter, "bus_byte_ps")?,
            frame: span(&adapter, "frame_ps")?,
            send_frames: count(&adapter, "send_frames")?,
            receive: Bytes::new(adapter.get("receive_bytes")?.integer(9_018, 1 << 40)?),
            receive_frames: match adapter.optional("receive_frames") {
                None => u32::MAX,
                Some(_) => count(&adapter, "receive_frames")?,
            },
            coalesce_frames: count(&adapter, "coalesce_frames")?,
            coalesce: span(&adapter, "coalesce_ps")?,
            pause: pause.truth()?,
        },
        switch,
    };
    if !gige::fits(&config, hosts as u32) {
        let propagation = fields.get("propagation_ps")?;
        return Err(
            propagation.refuse("at most half a slot of 4096 bit times from the first host to the last")
        );
    }
    Ok(config)
}

fn read_socket(at: &At<'_>, stack: &Stack) -> Result<SocketConfig, PlanError> {
    let fields = at.object("tcp buffer_bytes nodelay mtu_bytes encapsulation_bytes")?;
    let rules = fields.get("tcp")?;
    let names = tcp::Config::presets().map(|preset| preset.name).join(", ");
    let preset = tcp::Config::preset(rules.text()?).ok_or_else(|| rules.refuse(&names))?;
    let buffer = fields.get("buffer_bytes")?;
    let octets = Bytes::new(buffer.integer(1, 1 << 30)?);
    let tcp = preset.with_buffers(octets, octets).map_err(|error| buffer.refuse(&error.to_string()))?;
    let nodelay = fields.get("nodelay")?.truth()?;
    let most = match stack.lower {
        Lower::Aal5 | Lower::Aal34 => 65_000,
        Lower::Ethernet => 1_500,
        Lower::Fddi => 4_352,
        Lower::Gige => 9_000,
    };
    let mtu = fields.get("mtu_bytes")?.integer(100, most)? as u16;
    let encapsulation = Bytes::new(fields.get("encapsulation_bytes")?.integer(0, 100)?);
    // SunOS 4.1 sends datagrams without a checksum.
    let checksum = rules.value.as_str() != Some("sunos41");
    let send_most = octets.get().min(u16::MAX.into()) as u16;
    let udp = udp::Config { send_most, receive_buffer: octets.get() as u32, checksum };
    Ok(SocketConfig { tcp, udp, nodelay, mtu, encapsulation })
}

fn span(fields: &At<'_>, key: &str) -> Result<Span, PlanError> {
    Ok(Span::from_ps(fields.get(key)?.integer(0, LONGEST_PS)?))
}

fn count(fields: &At<'_>, key: &str) -> Result<u32, PlanError> {
    Ok(fields.get(key)?.integer(1, 1 << 20)? as u32)
}

fn rate(fields: &At<'_>, key: &str) -> Result<BitRate, PlanError> {
    // At least 1, so that it is a rate.
    Ok(BitRate::bit_s(fields.get(key)?.integer(1_000, 1_000_000_000_000)?))
}

fn read_link(at: &At<'_>) -> Result<LinkConfig, PlanError> {
    let fields = at.object("rate_bit_s cell_bits propagation_ps")?;
    Ok(LinkConfig {
        rate: rate(&fields, "rate_bit_s")?,
        cell_bits: Bits::new(fields.get("cell_bits")?.integer(424, 848)?),
        propagation: span(&fields, "propagation_ps")?,
    })
}

fn read_switch(at: &At<'_>, ports: u64, link: &LinkConfig) -> Result<SwitchConfig, PlanError> {
    let fields = at.object("fabric_bit_s delay_ps queue_cells module_bit_s modules")?;
    let config = SwitchConfig {
        fabric: rate(&fields, "fabric_bit_s")?,
        delay: span(&fields, "delay_ps")?,
        queue_cells: count(&fields, "queue_cells")?,
        module_rate: rate(&fields, "module_bit_s")?,
        modules: count(&fields, "modules")?,
    };
    // So that neither a module nor the fabric ever has more to carry than it can.
    let a_module = config.module_rate.get() / link.rate.get();
    let all = (a_module * u64::from(config.modules)).min(config.fabric.get() / link.rate.get());
    if ports > all {
        let allowed = format!("at most {all} ports: {a_module} a module, {} in the fabric", config.fabric);
        return Err(PlanError::new("hosts", format!("{ports} ports of {}", link.rate), allowed));
    }
    Ok(config)
}

fn read_host(at: &At<'_>, over_vis: bool) -> Result<HostConfig, PlanError> {
    let fields = at.object("name cache_bytes prices bus adapter background")?;
    let cache = Bytes::new(fields.get("cache_bytes")?.integer(0, u64::MAX)?);
    let bus = fields.get("bus")?;
    let bus = bus.object("setup_ps byte_ps")?;
    Ok(HostConfig {
        name: fields.get("name")?.text()?.to_string(),
        prices: Prices { list: read_prices(&fields.get("prices")?, over_vis)?, cache },
        bus: BusConfig { setup: span(&bus, "setup_ps")?, byte: span(&bus, "byte_ps")? },
        adapter: read_adapter(&fields.get("adapter")?)?,
        background: fields.optional("background").map(|at| read_background(&at)).transpose()?,
    })
}

/// Every price is given: one that is missing would be a cost forgotten. Those of VIs may be left out where
/// there are none.
fn read_prices(at: &At<'_>, over_vis: bool) -> Result<[Price; CPU_ACTIVITIES], PlanError> {
    let names: Vec<&str> = priced().map(Activity::name).collect();
    let fields = at.object(&names.join(" "))?;
    let mut list = [Price::default(); CPU_ACTIVITIES];
    for activity in priced() {
        if !over_vis && VI_ACTIVITIES.contains(&activity) && fields.optional(activity.name()).is_none() {
            continue;
        }
        let price = fields.get(activity.name())?;
        let price = price.object("call_ps byte_ps cold_byte_ps")?;
        let byte = span(&price, "byte_ps")?;
        let cold_byte = match price.optional("cold_byte_ps") {
            Some(at) => Span::from_ps(at.integer(0, LONGEST_PS)?),
            None => byte,
        };
        list[activity as usize] = Price { call: span(&price, "call_ps")?, byte, cold_byte };
    }
    Ok(list)
}

/// The activities that a profile has a price for; the time of the other ones comes from elsewhere.
pub fn priced() -> impl Iterator<Item = Activity> {
    let elsewhere = [Activity::Compute, Activity::Background, Activity::FirstUse, Activity::FifoFull];
    Activity::ALL[..CPU_ACTIVITIES].iter().copied().filter(move |activity| !elsewhere.contains(activity))
}

fn read_firmware(at: &At<'_>) -> Result<FirmwarePrices, PlanError> {
    let fields = at.object("send_pdu_ps send_cell_ps receive_cell_ps receive_pdu_ps")?;
    Ok(FirmwarePrices {
        send_pdu: span(&fields, "send_pdu_ps")?,
        send_cell: span(&fields, "send_cell_ps")?,
        receive_cell: span(&fields, "receive_cell_ps")?,
        receive_pdu: span(&fields, "receive_pdu_ps")?,
    })
}

fn read_adapter(at: &At<'_>) -> Result<AdapterConfig, PlanError> {
    let kind = at.value.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
    match kind {
        "series-100" => {
            let fields = at.object("kind send_fifo_cells receive_fifo_cells interrupt_delay_ps")?;
            Ok(AdapterConfig::Series100 {
                send_fifo_cells: count(&fields, "send_fifo_cells")?,
                receive_fifo_cells: count(&fields, "receive_fifo_cells")?,
                interrupt_delay: span(&fields, "interrupt_delay_ps")?,
            })
        }
        "series-200" => {
            let fields = at.object("kind send_fifo_cells receive_fifo_cells aal5 aal34 pace_ps")?;
            Ok(AdapterConfig::Series200 {
                send_fifo_cells: count(&fields, "send_fifo_cells")?,
                receive_fifo_cells: count(&fields, "receive_fifo_cells")?,
                aal5: read_firmware(&fields.get("aal5")?)?,
                aal34: read_firmware(&fields.get("aal34")?)?,
                pace: span(&fields, "pace_ps")?,
            })
        }
        "frames" => at.object("kind").map(|_| AdapterConfig::Frames),
        _ => Err(at.refuse("an object with the key kind: series-100, series-200 or frames")),
    }
}

fn read_background(at: &At<'_>) -> Result<BackgroundConfig, PlanError> {
    let fields = at.object("tick_ps tick_work_ps wake_ps wake_work_ps")?;
    Ok(BackgroundConfig {
        tick: span(&fields, "tick_ps")?,
        tick_work: span(&fields, "tick_work_ps")?,
        wake: span(&fields, "wake_ps")?,
        wake_work: span(&fields, "wake_work_ps")?,
    })
}
