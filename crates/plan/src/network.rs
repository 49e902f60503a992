//! A network as a user writes it, and its checks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wiretwin_units::{BitRate, Bytes, Cells, Span};

use crate::cells::{ByCells, CreditPlan, Share, Switch, SwitchPlan, Window};
use crate::error::PlanError;
use crate::graph::Graph;
use crate::quantity::{Duration, Queue, Rate, Size};
use crate::{read, text, topology};

/// The most hosts that a topology by name has.
pub(crate) const MOST_HOSTS: u32 = 131_072;

/// The most nodes and the most lines of a network.
pub(crate) const MOST_LINES: usize = 1 << 22;

/// How nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Two hosts and a line each way.
    BackToBack,
    /// Every host at one switch.
    Star,
    /// Every host at one cable, whose rate all share in both directions.
    SharedCable,
    /// Switches in a ring, hosts at each.
    Ring,
    /// Switches in a row, hosts at each.
    Chain,
    /// Two switches, half of the hosts at each, and the line that they share.
    Dumbbell,
    /// A row of switches: one pair of hosts across all its lines, and a pair across each of them.
    ParkingLot,
    /// One root, `fanout` nodes below each switch.
    Tree,
    /// Leaves and spines, or pods below a core (Leiserson 1985; Al-Fares, Loukissas and Vahdat 2008).
    FatTree,
    /// The nodes and lines that are listed.
    Listed,
}

impl Topology {
    /// What a plan calls a network whose nodes and lines are listed.
    pub const LISTED: &'static str = "listed";
}

/// Whether a switch waits for the whole of a packet before it passes the packet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// It does.
    #[default]
    StoreAndForward,
    /// It begins to send as soon as the packet's head is there.
    CutThrough,
}

/// How finely what crosses a network is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Message by message: those that are under way share the rates of lines max-min fairly.
    #[default]
    Message,
    /// Packet by packet: they wait at ports, and TCP carries them.
    Packet,
    /// Cell by cell: PDUs of AAL 5 over circuits of ATM switches, held back by credits.
    Cell,
}

/// What carries messages from host to host packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP in the kernel of each host.
    #[default]
    Tcp,
    /// The direct transport in each process.
    Direct,
}

/// A node of a listed network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedNode {
    /// The name that lines use.
    pub name: String,
    /// What the node does with what reaches it.
    pub kind: ListedKind,
    /// Cell by cell, what the node takes between its queue, or its memory, and a line; that of the network for a
    /// switch and 0 for a host if it is left out.
    pub delay: Option<Duration>,
    /// Cell by cell, what the switch is; that of the network if it is left out.
    pub switch: Option<SwitchPlan>,
}

/// The kinds of nodes that may be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedKind {
    /// It sends and receives.
    Host,
    /// It passes on what is for others.
    Switch,
}

/// A line of a listed network: one each way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedLine {
    /// The name of one end.
    pub from: String,
    /// The name of the other end.
    pub to: String,
    /// The rate each way; that of the network if it is left out.
    pub rate: Option<Rate>,
    /// The rate of the way back, if it is another.
    pub back_rate: Option<Rate>,
    /// The delay each way; that of the network if it is left out.
    pub delay: Option<Duration>,
    /// Cell by cell, the credits of circuits; those of the network if it is left out.
    pub credits: Option<CreditPlan>,
    /// Cell by cell, the probability that a cell is lost.
    pub cells_lost: Option<Share>,
    /// Cell by cell, the probability that what a cell says of credits is lost.
    pub credits_lost: Option<Share>,
}

/// A network as a user writes it: a table of a scenario, or a text such as `fat-tree:hosts=64,rate=100Gbit/s`.
///
/// ```
/// use wiretwin_plan::NetworkPlan;
///
/// let plan = NetworkPlan::from_text("fat-tree:hosts=64,rate=100Gbit/s")?;
/// let graph = plan.graph()?;
/// assert_eq!(graph.hosts().len(), 64);
/// # Ok::<(), wiretwin_plan::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPlan {
    /// How nodes are joined.
    pub topology: Topology,
    /// How many hosts there are; 2 and above.
    pub hosts: Option<u32>,
    /// The rate of every line.
    pub rate: Option<Rate>,
    /// The propagation delay of every line; 0 if it is left out.
    pub delay: Option<Duration>,
    /// What a switch takes to pass a packet on besides the packet's own time on the line; 0 if it is left out.
    pub switch_delay: Option<Duration>,
    /// Whether switches wait for whole packets.
    pub forwarding: Option<Forwarding>,
    /// The largest packet, its headers included; 1500 B if it is left out.
    pub mtu: Option<Size>,
    /// What of a packet is not the program's; 52 B (IP, and TCP with time stamps) if it is left out.
    pub headers: Option<Size>,
    /// What a line carries for each packet besides the packet; 38 B (Ethernet's preamble, header, check sequence
    /// and gap, IEEE 802.3 clauses 3 and 4) if it is left out.
    pub framing: Option<Size>,
    /// How finely what crosses the network is followed; message by message if it is left out.
    pub fidelity: Option<Fidelity>,
    /// Packet by packet, what carries messages; TCP if it is left out.
    pub transport: Option<Transport>,
    /// Packet by packet, the probability that a packet is lost on a line, each line by itself; 0 if it is left out.
    pub packet_loss: Option<Share>,
    /// What may wait at a port of a switch packet by packet, or in a switch cell by cell; any amount if it is left
    /// out.
    pub queue: Option<Queue>,
    /// How much may be ahead of a packet at a port of a switch before it is marked in place of being dropped
    /// (explicit congestion notification, RFC 3168); never if it is left out.
    pub ecn: Option<Queue>,
    /// Where cells wait in a switch; at its outputs if it is left out.
    pub switch: Option<Switch>,
    /// Rounds of a crossbar's matching; 4 if it is left out.
    pub iterations: Option<u8>,
    /// What holds cells back; as many credits as fill a line if it is left out.
    pub credits: Option<Window>,
    /// Switches from a host to the core of a fat tree: 2 or 3.
    pub levels: Option<u32>,
    /// Ports of each switch of a fat tree; even.
    pub radix: Option<u32>,
    /// How many times more rate a leaf of a fat tree has towards its hosts than towards the core; 1 and above.
    pub oversubscription: Option<u32>,
    /// Nodes below each switch of a tree.
    pub fanout: Option<u32>,
    /// Hosts at each switch of a ring or chain; 1 if it is left out.
    pub hosts_per_switch: Option<u32>,
    /// The rate of lines between switches; that of every line if it is left out.
    pub trunk_rate: Option<Rate>,
    /// The delay of lines between switches; that of every line if it is left out.
    pub trunk_delay: Option<Duration>,
    /// The nodes of a listed network.
    pub nodes: Option<Vec<ListedNode>>,
    /// The lines of a listed network.
    pub lines: Option<Vec<ListedLine>>,
}

/// What a network is made of packet by packet, besides its nodes and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByPackets {
    /// The largest packet.
    pub mtu: u16,
    /// What a line carries for each packet besides the packet.
    pub framing: Bytes,
    /// What a switch takes besides the packet's own time on the line.
    pub switch_delay: Span,
    /// What may wait at a port of a switch; `None` for any amount.
    pub queue: Option<Queue>,
    /// What may be ahead of a packet there, its framing counted in, before it is marked; `None` for any amount.
    pub ecn: Option<Bytes>,
    /// What carries messages.
    pub transport: Transport,
    /// The probability that a packet is lost on a line.
    pub packet_loss: Share,
}

/// What a network is made of besides its nodes and lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    /// Ports at which packets wait.
    Packets(ByPackets),
    /// Switches of cells.
    Cells(ByCells),
}

/// What messages become on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Bytes of a message in a full packet, or in a full PDU.
    pub payload: Bytes,
    /// What a line carries for each packet besides those; of a PDU, before it is cut into cells.
    pub overhead: Bytes,
    /// Whether a line carries cells.
    pub in_cells: bool,
    /// What a switch takes besides the packet's own time on the line.
    pub switch_delay: Span,
    /// Whether switches wait for whole packets.
    pub forwarding: Forwarding,
}

impl Packets {
    /// What a message of `bytes` occupies of a line, all its packets with what belongs to each. A message of no
    /// bytes is a packet too.
    #[must_use]
    pub fn on_line(&self, bytes: Bytes) -> Bytes {
        let packets = bytes.get().div_ceil(self.payload.get()).max(1);
        if self.in_cells {
            let cells = |payload: u64| cells_of(Bytes::new(payload) + self.overhead).get();
            let rest = bytes.get() - (packets - 1) * self.payload.get();
            let full = (packets - 1).saturating_mul(cells(self.payload.get()));
            return Bytes::new((full + cells(rest)).saturating_mul(CELL.get()));
        }
        Bytes::new(bytes.get().saturating_add(packets.saturating_mul(self.overhead.get())))
    }

    /// What a full packet, or a cell, occupies of a line.
    #[must_use]
    pub fn full_on_line(&self) -> Bytes {
        if self.in_cells { CELL } else { self.payload + self.overhead }
    }

    /// What the last packet of a message of `bytes`, or its last cell, occupies of a line.
    #[must_use]
    pub fn last_on_line(&self, bytes: Bytes) -> Bytes {
        if self.in_cells {
            return CELL;
        }
        let rest = match bytes.get() % self.payload.get() {
            0 if bytes.get() > 0 => self.payload.get(),
            rest => rest,
        };
        Bytes::new(rest + self.overhead.get())
    }
}

/// The cells of a PDU of AAL 5 of `bytes`, its trailer counted in (I.363.5).
#[must_use]
pub const fn cells_of(bytes: Bytes) -> Cells {
    Cells::new(bytes.get().div_ceil(48))
}

/// The trailer of a PDU of AAL 5 (I.363.5).
pub const TRAILER: Bytes = Bytes::new(8);
/// LLC and SNAP before an IP packet in a PDU (RFC 2684).
pub const LLC: Bytes = Bytes::new(8);
/// A cell (I.361).
const CELL: Bytes = Bytes::new(53);
/// IP version 4 (RFC 791) and TCP with time stamps (RFC 7323).
pub(crate) const HEADERS: Bytes = Bytes::new(52);
/// IP version 4, UDP, and of the direct transport the header, a tag and remote data.
pub(crate) const DIRECT_HEADERS: Bytes = Bytes::new(20 + 8 + 32 + 16);
/// Ethernet's preamble and start delimiter (8), header (14), check sequence (4) and gap (12): IEEE 802.3.
const FRAMING: Bytes = Bytes::new(38);
const MTU: Bytes = Bytes::new(1500);
/// IP and TCP with time stamps, and as much again: a packet carries more of a message than of itself (RFC 791 asks for
/// 68 B at least).
pub(crate) const LEAST_MTU: u16 = 104;
/// IP, UDP and the least frame of the direct transport, 256 B.
const LEAST_DIRECT_MTU: u16 = 20 + 8 + 256;
/// Above this share no transport makes progress in a reasonable time.
const MOST_LOSS: f64 = 0.5;
/// Far above any packet of any network, far below what an addition overflows at.
const LARGEST_PACKET: u64 = 1 << 30;
/// What a packet may take on a line and as long again to cross it: TCP would take a slower line for a broken one.
pub(crate) const SLOWEST: Span = Span::from_s(1);
/// A day: no sum of a path's delays overflows.
const LONGEST: Span = Span::from_s(86_400);

/// The keys that some topologies have.
const OF_TOPOLOGIES: &str =
    "hosts levels radix oversubscription fanout hosts_per_switch trunk_rate trunk_delay nodes lines";
/// The keys that every topology has.
const COMMON: &str = "rate delay switch_delay forwarding mtu headers framing fidelity transport packet_loss \
    queue ecn switch iterations credits";

impl NetworkPlan {
    /// Reads `NAME` or `NAME:key=value,key=value`.
    ///
    /// # Errors
    /// [`PlanError`] for an unknown name or key, a wrong value, and for a network that cannot be.
    pub fn from_text(text: &str) -> Result<Self, PlanError> {
        Self::from_value(&text::table(text)?)
    }

    /// The table that a text stands for, unchecked: a JSON object as it is, or the short form taken apart.
    ///
    /// # Errors
    /// [`PlanError`] for text that is neither.
    pub fn table(text: &str) -> Result<Value, PlanError> {
        if !text.trim_start().starts_with('{') {
            return text::table(text);
        }
        let not_json = |error| PlanError::new("", format!("not JSON ({error})"), "a JSON object");
        serde_json::from_str(text).map_err(not_json)
    }

    /// Reads a JSON object.
    ///
    /// # Errors
    /// As [`NetworkPlan::from_text`].
    pub fn from_value(value: &Value) -> Result<Self, PlanError> {
        let plan: Self = read::from_value(value)?;
        plan.check()?;
        Ok(plan)
    }

    /// The nodes and lines of this network.
    ///
    /// # Errors
    /// [`PlanError`] for a network that cannot be.
    pub fn graph(&self) -> Result<Graph, PlanError> {
        self.check()?;
        let graph = topology::build(self)?;
        self.check_ports(&graph)?;
        Ok(graph)
    }

    /// What messages become on the lines of this network.
    #[must_use]
    pub fn packets(&self) -> Packets {
        let size = |given: Option<Size>, default: Bytes| given.map_or(default, |size| size.0);
        let headers = size(self.headers, self.usual_headers());
        if let (Some(Fidelity::Cell), Ok(cells)) = (self.fidelity, self.by_cells()) {
            let headers = if cells.keeps_all() { Bytes::ZERO } else { headers };
            let wrapping = if cells.keeps_all() { TRAILER } else { LLC + TRAILER };
            return Packets {
                payload: Bytes::new(cells.mtu.into()) - headers,
                overhead: headers + wrapping,
                in_cells: true,
                switch_delay: cells.switch_delay,
                forwarding: Forwarding::StoreAndForward,
            };
        }
        Packets {
            in_cells: false,
            payload: size(self.mtu, MTU).saturating_sub(headers),
            overhead: headers.saturating_add(size(self.framing, FRAMING)),
            switch_delay: self.switch_delay.map_or(Span::ZERO, |delay| delay.0),
            forwarding: self.forwarding.unwrap_or_default(),
        }
    }

    /// What this network is made of: cells where it asks for them, else packets.
    ///
    /// # Errors
    /// As [`NetworkPlan::by_packets`] and [`NetworkPlan::by_cells`].
    pub fn below(&self) -> Result<Below, PlanError> {
        match self.fidelity {
            Some(Fidelity::Cell) => self.by_cells().map(Below::Cells),
            _ => self.by_packets().map(Below::Packets),
        }
    }

    /// What this network is made of packet by packet, whatever fidelity it asks for.
    ///
    /// # Errors
    /// [`PlanError`] for what exists message by message only: a shared cable, switches that do not wait for whole
    /// packets, headers of another length than those of IP and TCP, packets longer than those of IP.
    pub fn by_packets(&self) -> Result<ByPackets, PlanError> {
        if self.topology == Topology::SharedCable {
            let allowed = "with fidelity packet, a topology of switches";
            return Err(PlanError::new("topology", "\"shared-cable\"", allowed));
        }
        if self.forwarding == Some(Forwarding::CutThrough) {
            let allowed = "with fidelity packet, \"store-and-forward\"";
            return Err(PlanError::new("forwarding", "\"cut-through\"", allowed));
        }
        let (transport, usual) = (self.transport.unwrap_or_default(), self.usual_headers());
        let (of, least) = match transport {
            Transport::Tcp => ("TCP", LEAST_MTU),
            Transport::Direct => ("the direct transport", LEAST_DIRECT_MTU),
        };
        if let Some(headers) = self.headers.filter(|headers| headers.0 != usual) {
            let allowed = format!("with fidelity packet, the {usual} of IP and {of}");
            return Err(PlanError::new("headers", headers, allowed));
        }
        let mtu = self.mtu.map_or(MTU, |size| size.0);
        let Some(mtu) = u16::try_from(mtu.get()).ok().filter(|mtu| *mtu >= least) else {
            let allowed = format!("with fidelity packet, {least} B to {} B", u16::MAX);
            return Err(PlanError::new("mtu", mtu, allowed));
        };
        let framing = self.framing.map_or(FRAMING, |size| size.0);
        let full = Bytes::new(u64::from(mtu)).saturating_add(framing);
        let is_too_short = match self.queue {
            None => false,
            Some(Queue::Packets(packets)) => packets == 0,
            Some(Queue::Bytes(bytes)) => bytes < full,
            Some(Queue::Cells(_)) => true,
        };
        let ecn = match self.ecn {
            None => None,
            Some(Queue::Packets(packets)) => Some(Bytes::new(full.get() * u64::from(packets))),
            Some(Queue::Bytes(bytes)) => Some(bytes),
            Some(queue @ Queue::Cells(_)) => {
                return Err(PlanError::new("ecn", queue, "packets or bytes: cells are not marked"));
            }
        };
        if let (Some(ecn), Transport::Direct) = (self.ecn, transport) {
            let allowed = "nothing with the transport direct, whose window follows the delay";
            return Err(PlanError::new("ecn", ecn, allowed));
        }
        let packet_loss = self.packet_loss.unwrap_or_default();
        if packet_loss.0 > MOST_LOSS {
            return Err(PlanError::new("packet_loss", packet_loss, format!("0 to {MOST_LOSS}")));
        }
        let lines = self.lines.iter().flatten();
        let rates = lines.clone().map(|line| ("lines", line.rate));
        let delays = lines.map(|line| ("lines", line.delay));
        for (key, rate) in [("rate", self.rate), ("trunk_rate", self.trunk_rate)].into_iter().chain(rates) {
            let is_slow = |rate: &Rate| rate.0.time_for(full.bits()).is_none_or(|time| time > SLOWEST);
            if let Some(rate) = rate.filter(is_slow) {
                let allowed = format!("with fidelity packet, {full} in {SLOWEST} or faster");
                return Err(PlanError::new(key, rate, allowed));
            }
        }
        let own =
            [("delay", self.delay), ("trunk_delay", self.trunk_delay), ("switch_delay", self.switch_delay)];
        for (key, delay) in own.into_iter().chain(delays) {
            if let Some(delay) = delay.filter(|delay| delay.0 > SLOWEST) {
                return Err(PlanError::new(key, delay, format!("with fidelity packet, {SLOWEST} at most")));
            }
        }
        if let Some(queue) = self.queue.filter(|_| is_too_short) {
            let allowed = format!("room for one packet of {full} or more");
            return Err(PlanError::new("queue", queue, allowed));
        }
        Ok(ByPackets {
            mtu,
            framing,
            switch_delay: self.switch_delay.map_or(Span::ZERO, |delay| delay.0),
            queue: self.queue,
            ecn,
            transport,
            packet_loss,
        })
    }

    /// What of a packet is not the program's, if nothing else is said.
    fn usual_headers(&self) -> Bytes {
        if self.transport == Some(Transport::Direct) { DIRECT_HEADERS } else { HEADERS }
    }

    /// The rate of lines at hosts. A checked plan that is not listed has one.
    pub(crate) fn host_rate(&self) -> Result<BitRate, PlanError> {
        self.rate.map(|rate| rate.0).ok_or_else(|| {
            PlanError::new("rate", "nothing", "a rate above zero with a unit, such as \"100 Gbit/s\"")
        })
    }

    fn check(&self) -> Result<(), PlanError> {
        self.check_keys()?;
        for (key, delay) in
            [("delay", self.delay), ("switch_delay", self.switch_delay), ("trunk_delay", self.trunk_delay)]
        {
            if let Some(delay) = delay.filter(|delay| delay.0 > LONGEST) {
                return Err(PlanError::new(key, delay, "a day at most"));
            }
        }
        for (key, size) in [("mtu", self.mtu), ("headers", self.headers), ("framing", self.framing)] {
            if let Some(size) = size.filter(|size| size.0.get() > LARGEST_PACKET) {
                return Err(PlanError::new(key, size, "1 GiB at most"));
            }
        }
        if self.fidelity != Some(Fidelity::Cell) {
            self.check_no_cells()?;
        }
        if self.packets().payload.is_zero() {
            let (mtu, headers) =
                (self.mtu.map_or(MTU, |size| size.0), self.headers.map_or(HEADERS, |size| size.0));
            return Err(PlanError::new("mtu", mtu, format!("more than the {headers} of the headers")));
        }
        if self.topology != Topology::Listed {
            self.host_rate()?;
            self.check_hosts()?;
        }
        if self.fidelity != Some(Fidelity::Packet) {
            let name =
                self.transport.map(|name| if name == Transport::Tcp { "\"tcp\"" } else { "\"direct\"" });
            let of_packets = [
                ("ecn", self.ecn.map(|ecn| ecn.to_string()), "packets are marked"),
                ("transport", name.map(str::to_owned), "packets have one"),
                ("packet_loss", self.packet_loss.map(|loss| loss.to_string()), "packets are lost"),
            ];
            for (key, value, why) in of_packets {
                if let Some(value) = value {
                    let allowed = format!("nothing, except with fidelity packet: {why}");
                    return Err(PlanError::new(key, value, allowed));
                }
            }
        }
        match (self.fidelity.unwrap_or_default(), self.queue) {
            (Fidelity::Packet, _) => self.by_packets().map(drop),
            (Fidelity::Cell, _) => self.by_cells().map(drop),
            (Fidelity::Message, Some(queue)) => Err(PlanError::new(
                "queue",
                queue,
                "nothing, except with fidelity packet or cell: messages do not queue",
            )),
            (Fidelity::Message, None) => Ok(()),
        }
    }

    /// Rejects a key that would have no effect on this topology.
    fn check_keys(&self) -> Result<(), PlanError> {
        let own = match self.topology {
            Topology::BackToBack | Topology::Star | Topology::SharedCable => "hosts",
            Topology::Ring | Topology::Chain => "hosts hosts_per_switch trunk_rate trunk_delay",
            Topology::Dumbbell | Topology::ParkingLot => "hosts trunk_rate trunk_delay",
            Topology::Tree => "hosts fanout trunk_rate trunk_delay",
            Topology::FatTree => "hosts levels radix oversubscription trunk_rate trunk_delay",
            Topology::Listed => "nodes lines",
        };
        let given = serde_json::to_value(self).unwrap_or_default();
        let own: Vec<&str> = own.split(' ').collect();
        let is_wrong = |key: &&str| !given[*key].is_null() && !own.contains(key);
        let Some(key) = OF_TOPOLOGIES.split(' ').find(is_wrong) else { return Ok(()) };
        let (name, keys) = (&given["topology"], own.join(", "));
        let common = COMMON.split_ascii_whitespace().collect::<Vec<_>>().join(", ");
        let allowed = format!("not with the topology {name}, whose keys are {keys}, {common}");
        Err(PlanError::new(key, &given[key], allowed))
    }

    fn check_hosts(&self) -> Result<(), PlanError> {
        let (least, most) = match self.topology {
            Topology::BackToBack => (2, 2),
            Topology::ParkingLot => (4, MOST_HOSTS),
            _ => (2, MOST_HOSTS),
        };
        let even = matches!(self.topology, Topology::Dumbbell | Topology::ParkingLot);
        let hosts = match (self.hosts, self.topology) {
            (Some(hosts), _) => hosts,
            (None, Topology::BackToBack) => 2,
            (None, _) => return Err(PlanError::new("hosts", "nothing", format!("{least} to {most}"))),
        };
        if !(least..=most).contains(&hosts) || (even && hosts % 2 == 1) {
            let numbers = if even { "even numbers from " } else { "" };
            return Err(PlanError::new("hosts", hosts, format!("{numbers}{least} to {most}")));
        }
        Ok(())
    }
}
