//! The model of a program-level world: nodes, placement of ranks, layers, link; read from JSON.
//!
//! ```json
//! {"nodes": [{"cores": 2, "idle": "spin", "quantum_ps": 4000000000}],
//!  "placement": [0, 0], "dealt": [0, 1] or null, "order": [1, 0] or null,
//!  "intra": LAYER, "inter": LAYER or null,
//!  "link": {"rate_bit_s": 10000000000, "delay_ps": 500000} or null,
//!  "network": {"topology": "fat-tree", "hosts": 64, "rate": "100 Gbit/s"} or null,
//!  "first": [{"calls": ["recv"], "ps": 20000000, "at_end": true or absent,
//!             "early_from_bytes": 1024 or absent}] or absent,
//!  "beyond": [{"calls": ["Barrier"], "ps": 900000}] or absent,
//!  "cold": [{"after_ps": 50000000, "ps": 10000000}] or absent}
//! ```
//!
//! with `LAYER` as `{"call_ps", "overhead_send", "overhead_recv", "latency", "gap",
//! "rendezvous_from_bytes", "acknowledged_from_bytes", "fetch", "fetch_unchanged", "unexpected_copy", "last_packet", "interrupt",
//! "interrupt_saved_ps"}`; each curve is a list of `{"from_bytes", "base_ps", "per_byte_fs"}` with `from_bytes` ascending from 0.
//! `rendezvous_from_bytes`, `acknowledged_from_bytes`, `fetch`, `fetch_unchanged`, `unexpected_copy`, `last_packet`, `interrupt` and `interrupt_saved_ps`
//! may be null or absent. Numbers are integers. A node may have a `name`, which programs are told where there is no other
//! node, and nothing here depends on.

use std::sync::Arc;

use wiretwin_plan::{Below, Fidelity, Graph, NetworkPlan, Packets, PlanError, read};
use wiretwin_units::{BitRate, Bytes, Span};

use crate::json::At;
use crate::layer::{Curve, Layer, Segment};

/// What a rank that waits does with its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Polls: keeps the core until its time slice ends.
    Spin,
    /// Looks for messages by turns with the others on its core.
    Yield,
    /// Gives the core up at once.
    Sleep,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeModel {
    /// Cores that ranks and their message processing share.
    pub cores: u32,
    /// The node whose cores these are, if not its own: hosts of a testbed run on one machine's.
    pub cores_of: Option<u32>,
    /// What waiting ranks do, when there are more ranks than cores.
    pub idle: Idle,
    /// The time slice, when there are more ranks than cores.
    pub quantum: Span,
    /// What a waiting rank that yields takes to look for messages and to hand its core on.
    pub turn: Span,
    /// Whether ranks that yield get as much of a core as those that compute on it.
    pub fair: bool,
    /// Whether a rank that yields offers its core once in each wait, even for a message that has come.
    pub offers: bool,
    /// Whether messages that come over the network are a process's work, after which the kernel picks anew whose
    /// core it is, as that of a testbed's wire.
    pub picks_anew: bool,
    /// When the kernel looks whose core it is; `None`: a slice after it was given.
    pub ticks: Option<Ticks>,
}

/// The ticks of a kernel's clock, a time slice apart: a core that ranks yield changes hands at one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// When the first one is.
    pub first: Span,
    /// A rank that has had the core for less keeps it at a tick.
    pub least: Span,
}

/// The wire of each node to a switch that never blocks: one transmitter per direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// Its rate.
    pub rate: BitRate,
    /// Propagation and switching, end to end.
    pub delay: Span,
    /// What each message occupies the link for besides its own bytes: headers, and the bytes of others
    /// that answer it. An envelope occupies it likewise.
    pub message: Bytes,
}

/// The network of a model: its graph, whose hosts are the model's nodes, and what messages become on its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkModel {
    /// Nodes and lines.
    pub graph: Arc<Graph>,
    /// Packets, headers and switches.
    pub packets: Packets,
    /// What there is besides where messages are followed packet by packet or cell by cell.
    pub below: Option<Below>,
}

impl NetworkModel {
    /// The network that a plan describes.
    ///
    /// # Errors
    /// [`PlanError`] for a network that cannot be.
    pub fn new(plan: &NetworkPlan) -> Result<Self, PlanError> {
        let below = match plan.fidelity.unwrap_or_default() {
            Fidelity::Message => None,
            Fidelity::Packet | Fidelity::Cell => Some(plan.below()?),
        };
        let graph = Arc::new(plan.graph()?);
        if let Some(Below::Cells(cells)) = &below {
            cells.check_any_circuit()?;
            crate::fabric::Plan::over(&graph, cells).build(1)?;
        }
        Ok(Self { graph, packets: plan.packets(), below })
    }
}

/// What the first of some calls takes beyond a later one, in each rank: of all with these names, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstCall {
    /// Names of calls, as [`Op::Enter`](crate::op::Op::Enter) has them.
    pub calls: Vec<String>,
    /// How long.
    pub takes: Span,
    /// It comes at the end of the call: when what the call waited for is there.
    pub at_end: bool,
    /// If given, this is the cost of a message and not of a call. A rank pays it once: for the first eager message from
    /// another node that has at least this many bytes and that its library reads before the receive is posted. A message
    /// that is received in one of `calls` counts as read before.
    pub early_from: Option<Bytes>,
}

/// So many [`FirstCall`]s a model has at most.
pub const MOST_FIRST_CALLS: usize = 64;

/// What a call takes beyond its messages and what every call does: each time, whichever of these it is. Where it is
/// negative the call is cheaper than others, down to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondMessages {
    /// Names of calls, as [`Op::Enter`](crate::op::Op::Enter) has them.
    pub calls: Vec<String>,
    /// How long, in picoseconds.
    pub takes_ps: i64,
}

/// What a rank's next call takes more when it has computed so long since its last one: the work has filled caches and
/// branch predictors, and the call finds little of itself there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// How long it has computed.
    pub after: Span,
    /// How much more the call takes.
    pub takes: Span,
}

/// How far apart the two ranks of a message are, which says what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A rank and itself.
    Own,
    /// Two ranks of one node.
    Within,
    /// Ranks of two nodes.
    Between,
}

/// A whole world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The hosts.
    pub nodes: Vec<NodeModel>,
    /// The node of each rank.
    pub placement: Vec<u32>,
    /// The core of its node that each rank is dealt to where ranks yield; empty: in turn.
    pub dealt: Vec<u32>,
    /// The ranks, in the order in which those of a core where ranks yield have it first; empty: by number.
    pub order: Vec<u32>,
    /// The layer between a rank and itself; `None` if that between ranks of one node says it.
    pub own: Option<Layer>,
    /// The layer between ranks of one node.
    pub intra: Layer,
    /// The layer between nodes; `None` if there is only one node in use.
    pub inter: Option<Layer>,
    /// The link between nodes; `None` if the layer's latency and gap say all.
    pub link: Option<LinkModel>,
    /// The network between nodes; the nodes are its first hosts.
    pub network: Option<NetworkModel>,
    /// What first calls take beyond later ones.
    pub first: Vec<FirstCall>,
    /// What calls take beyond their messages.
    pub beyond: Vec<BeyondMessages>,
    /// What a call takes more after computation, the shortest first: between two of these, and from none on, it grows
    /// evenly, and beyond the last it stays.
    pub cold: Vec<Cold>,
    /// Calls in which a rank that waits keeps its core to the end of its slice, though ranks yield elsewhere.
    pub keeping: Vec<String>,
}

const MODEL_KEYS: &str = "nodes placement dealt order own intra inter link network first beyond cold keeping";
const FIRST_KEYS: &str = "calls ps at_end early_from_bytes";
const BEYOND_KEYS: &str = "calls ps";
const COLD_KEYS: &str = "after_ps ps";
const NODE_KEYS: &str = "name cores cores_of idle quantum_ps turn_ps fair offers picks_anew tick_ps least_ps";
const LINK_KEYS: &str = "rate_bit_s delay_ps message_bytes";
const LAYER_KEYS: &str = "call_ps overhead_send overhead_recv latency gap rendezvous_from_bytes \
    acknowledged_from_bytes fetch fetch_unchanged unexpected_copy last_packet interrupt interrupt_saved_ps";
const SEGMENT_KEYS: &str = "from_bytes base_ps per_byte_fs";
/// A day, far below the end of the clock: no sum of a few of them overflows.
const LONGEST_PS: u64 = 86_400_000_000_000_000;

impl Model {
    /// Reads and checks a model for `ranks` ranks.
    ///
    /// # Errors
    /// [`PlanError`] names the key, its value and what is allowed.
    pub fn from_json(text: &str, ranks: u32) -> Result<Self, PlanError> {
        let value = read::from_json(text)?;
        let top = At::top(&value);
        let fields = top.object(MODEL_KEYS)?;
        let nodes = fields.get("nodes")?.list("one node or more")?;
        let nodes = nodes.iter().map(|at| read_node(at, &nodes)).collect::<Result<Vec<_>, _>>()?;
        let placement = read_by_rank(&fields.get("placement")?, ranks, "node", nodes.len() as u64 - 1)?;
        let dealt = match fields.optional("dealt") {
            None => Vec::new(),
            Some(at) => {
                let least = nodes.iter().map(|node| node.cores).min().unwrap_or(1);
                read_by_rank(&at, ranks, "core", u64::from(least) - 1)?
            }
        };
        let order = fields.optional("order").map_or(Ok(Vec::new()), |at| read_order(&at, ranks))?;
        let own = fields.optional("own").map(|at| read_layer(&at)).transpose()?;
        let intra = read_layer(&fields.get("intra")?)?;
        let inter_at = fields.optional("inter");
        let inter = inter_at.as_ref().map(read_layer).transpose()?;
        if inter.is_none() && placement.iter().any(|node| *node != placement[0]) {
            let allowed = "a layer, because ranks are placed on more than one node";
            return Err(PlanError::new("inter", "null", allowed));
        }
        let link = fields.optional("link").map(|at| read_link(&at)).transpose()?;
        let network = fields.optional("network").map(|at| read_network(&at, nodes.len())).transpose()?;
        if let (Some(_), Some(at)) = (&network, fields.optional("link")) {
            return Err(at.refuse("null, where there is a network"));
        }
        let first = match fields.optional("first") {
            None => Vec::new(),
            Some(at) => read_first(&at)?,
        };
        let beyond = fields.optional("beyond").map_or(Ok(Vec::new()), |at| read_beyond(&at))?;
        let cold = fields.optional("cold").map_or(Ok(Vec::new()), |at| read_cold(&at))?;
        let keeping = fields.optional("keeping").map_or(Ok(Vec::new()), |at| read_names(&at))?;
        Ok(Self {
            nodes,
            placement,
            dealt,
            order,
            own,
            intra,
            inter,
            link,
            network,
            first,
            beyond,
            cold,
            keeping,
        })
    }

    /// How much more a call takes after so long a computation, both in picoseconds.
    #[inline]
    pub(crate) fn cold_ps(&self, computed: u64) -> u64 {
        let (mut from, mut took) = (0, 0);
        for point in &self.cold {
            let (to, takes) = (point.after.as_ps(), point.takes.as_ps());
            if computed < to {
                let grown =
                    u128::from(takes.abs_diff(took)) * u128::from(computed - from) / u128::from(to - from);
                let grown = grown as u64; // at most the difference of two times
                return if takes < took { took - grown } else { took + grown };
            }
            (from, took) = (to, takes);
        }
        took
    }

    /// What messages between two ranks cost.
    pub(crate) fn layer(&self, reach: Reach) -> &Layer {
        let other = match reach {
            Reach::Own => &self.own,
            Reach::Within => &None,
            Reach::Between => &self.inter,
        };
        other.as_ref().unwrap_or(&self.intra)
    }
}

fn read_first(at: &At<'_>) -> Result<Vec<FirstCall>, PlanError> {
    let list = at.list("one first call or more")?;
    if list.len() > MOST_FIRST_CALLS {
        let allowed = format!("{MOST_FIRST_CALLS} first calls at most");
        return Err(at.refuse_as(format!("a list of {}", list.len()), allowed));
    }
    list.iter()
        .map(|item| {
            let fields = item.object(FIRST_KEYS)?;
            let calls = read_names(&fields.get("calls")?)?;
            let at_end = fields.optional("at_end").map_or(Ok(false), |at| at.truth())?;
            let takes = Span::from_ps(fields.get("ps")?.integer(0, LONGEST_PS)?);
            let early_from = fields.optional("early_from_bytes");
            let early_from = early_from.map(|at| at.integer(0, u64::MAX)).transpose()?.map(Bytes::new);
            Ok(FirstCall { calls, takes, at_end, early_from })
        })
        .collect()
}

fn read_beyond(at: &At<'_>) -> Result<Vec<BeyondMessages>, PlanError> {
    let list = at.list("calls and what they take")?;
    list.iter()
        .map(|item| {
            let fields = item.object(BEYOND_KEYS)?;
            let calls = read_names(&fields.get("calls")?)?;
            let takes_ps = fields.get("ps")?.signed(-(LONGEST_PS as i64), LONGEST_PS as i64)?;
            Ok(BeyondMessages { calls, takes_ps })
        })
        .collect()
}

fn read_cold(at: &At<'_>) -> Result<Vec<Cold>, PlanError> {
    let mut least = 1;
    let list = at.list("times after which a call takes more, ascending")?;
    list.iter()
        .map(|item| {
            let fields = item.object(COLD_KEYS)?;
            let after = fields.get("after_ps")?.integer(least, LONGEST_PS)?;
            least = after + 1;
            let takes = Span::from_ps(fields.get("ps")?.integer(0, LONGEST_PS)?);
            Ok(Cold { after: Span::from_ps(after), takes })
        })
        .collect()
}

fn read_names(at: &At<'_>) -> Result<Vec<String>, PlanError> {
    at.list("names of calls")?.iter().map(|at| at.text().map(str::to_owned)).collect()
}

fn read_by_rank(at: &At<'_>, ranks: u32, what: &str, last: u64) -> Result<Vec<u32>, PlanError> {
    let list = at.list(&format!("a {what} number per rank"))?;
    if list.len() != ranks as usize {
        let allowed = format!("one {what} number for each of {ranks} ranks");
        return Err(at.refuse_as(format!("a list of {}", list.len()), allowed));
    }
    list.iter().map(|at| Ok(at.integer(0, last)? as u32)).collect()
}

fn read_order(at: &At<'_>, ranks: u32) -> Result<Vec<u32>, PlanError> {
    let order = read_by_rank(at, ranks, "rank", u64::from(ranks) - 1)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(order),
        Some(pair) => Err(at.refuse_as(format!("rank {} twice", pair[0]), "each rank once")),
    }
}

fn read_node(at: &At<'_>, all: &[At<'_>]) -> Result<NodeModel, PlanError> {
    let fields = at.object(NODE_KEYS)?;
    let idle_at = fields.get("idle")?;
    let idle = idle_at.one_of(&[("spin", Idle::Spin), ("yield", Idle::Yield), ("sleep", Idle::Sleep)])?;
    let first = fields.optional("tick_ps").map(|at| at.integer(0, LONGEST_PS)).transpose()?;
    let least_at = fields.optional("least_ps");
    if let (None, Some(at)) = (first, &least_at) {
        return Err(at.refuse("nothing without tick_ps: only at ticks does a rank keep its core"));
    }
    let least = least_at.map(|at| at.integer(0, LONGEST_PS)).transpose()?;
    Ok(NodeModel {
        cores: fields.get("cores")?.integer(1, 1 << 20)? as u32,
        cores_of: fields.optional("cores_of").map(|at| read_cores_of(&at, all)).transpose()?,
        idle,
        quantum: Span::from_ps(fields.get("quantum_ps")?.integer(1, LONGEST_PS)?),
        turn: Span::from_ps(match fields.optional("turn_ps") {
            Some(at) => at.integer(0, LONGEST_PS)?,
            None => 0,
        }),
        fair: fields.optional("fair").map_or(Ok(false), |at| at.truth())?,
        offers: fields.optional("offers").map_or(Ok(false), |at| at.truth())?,
        picks_anew: fields.optional("picks_anew").map_or(Ok(false), |at| at.truth())?,
        ticks: first
            .map(|first| Ticks { first: Span::from_ps(first), least: Span::from_ps(least.unwrap_or(0)) }),
    })
}

fn read_cores_of(at: &At<'_>, all: &[At<'_>]) -> Result<u32, PlanError> {
    let node = at.integer(0, all.len() as u64 - 1)?;
    if all[node as usize].object(NODE_KEYS)?.optional("cores_of").is_some() {
        return Err(at.refuse("a node that runs on its own cores"));
    }
    Ok(node as u32)
}

fn read_link(at: &At<'_>) -> Result<LinkModel, PlanError> {
    let fields = at.object(LINK_KEYS)?;
    Ok(LinkModel {
        rate: BitRate::bit_s(fields.get("rate_bit_s")?.integer(1, 1_000_000_000_000_000)?),
        delay: Span::from_ps(fields.get("delay_ps")?.integer(0, LONGEST_PS)?),
        message: Bytes::new(match fields.optional("message_bytes") {
            Some(at) => at.integer(0, 1 << 20)?,
            None => 0,
        }),
    })
}

fn read_network(at: &At<'_>, nodes: usize) -> Result<NetworkModel, PlanError> {
    let refused = |error: PlanError| error.under(&at.key);
    let plan = NetworkPlan::from_value(at.value).map_err(refused)?;
    let network = NetworkModel::new(&plan).map_err(refused)?;
    let hosts = network.graph.hosts().len();
    if nodes > hosts {
        let found = format!("a network of {hosts} hosts");
        return Err(at.refuse_as(found, format!("a host for each of {nodes} nodes")));
    }
    Ok(network)
}

fn read_layer(at: &At<'_>) -> Result<Layer, PlanError> {
    let fields = at.object(LAYER_KEYS)?;
    let (unexpected, last) = (fields.optional("unexpected_copy"), fields.optional("last_packet"));
    let (rendezvous, interrupt) = (fields.optional("rendezvous_from_bytes"), fields.optional("interrupt"));
    let (acknowledged, saved) =
        (fields.optional("acknowledged_from_bytes"), fields.optional("interrupt_saved_ps"));
    let (fetch, unchanged) = (fields.optional("fetch"), fields.optional("fetch_unchanged"));
    Ok(Layer {
        call: Span::from_ps(fields.get("call_ps")?.integer(0, LONGEST_PS)?),
        overhead_send: read_curve(&fields.get("overhead_send")?, Sign::NeverNegative)?,
        overhead_recv: read_curve(&fields.get("overhead_recv")?, Sign::NeverNegative)?,
        latency: read_curve(&fields.get("latency")?, Sign::Any)?,
        gap: read_curve(&fields.get("gap")?, Sign::NeverNegative)?,
        rendezvous_from: rendezvous.map(|at| at.integer(0, u64::MAX)).transpose()?.map(Bytes::new),
        acknowledged_from: acknowledged.map(|at| at.integer(0, u64::MAX)).transpose()?.map(Bytes::new),
        fetch: fetch.map(|at| read_curve(&at, Sign::NeverNegative)).transpose()?,
        fetch_unchanged: unchanged.map(|at| read_curve(&at, Sign::NeverNegative)).transpose()?,
        unexpected_copy: unexpected.map(|at| read_curve(&at, Sign::NeverNegative)).transpose()?,
        last_packet: last.map(|at| read_curve(&at, Sign::Any)).transpose()?,
        interrupt: interrupt.map(|at| read_curve(&at, Sign::NeverNegative)).transpose()?,
        interrupt_saved: Span::from_ps(saved.map_or(Ok(0), |at| at.integer(0, LONGEST_PS))?),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    NeverNegative,
    Any,
}

fn read_curve(at: &At<'_>, sign: Sign) -> Result<Curve, PlanError> {
    let list = at.list("one segment or more")?;
    let mut segments: Vec<Segment> = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let fields = item.object(SEGMENT_KEYS)?;
        let from_at = fields.get("from_bytes")?;
        let from_bytes = match segments.last() {
            None => from_at.integer(0, 0)?,
            Some(before) => from_at.integer(before.from_bytes + 1, i64::MAX as u64)?,
        };
        let bound = LONGEST_PS as i64;
        let base_at = fields.get("base_ps")?;
        let slope_at = fields.get("per_byte_fs")?;
        let segment = Segment {
            from_bytes,
            base_ps: base_at.signed(-bound, bound)?,
            per_byte_fs: slope_at.signed(if sign == Sign::Any { -bound } else { 0 }, bound)?,
        };
        if sign == Sign::NeverNegative && segment.at(from_bytes) < 0 {
            return Err(base_at.refuse(&format!(
                "a base that leaves no negative time at {from_bytes} bytes, where segment {index} begins"
            )));
        }
        segments.push(segment);
    }
    // The list is not empty, begins at 0 and ascends: checked above.
    Ok(Curve::new(segments).expect("segments that were checked one by one"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wiretwin_msg::protocol::Mode;

    use super::*;

    const LAYER: &str = r#"{"call_ps": 100,
        "overhead_send": [{"from_bytes": 0, "base_ps": 700, "per_byte_fs": 10}],
        "overhead_recv": [{"from_bytes": 0, "base_ps": 500, "per_byte_fs": 10}],
        "latency": [{"from_bytes": 0, "base_ps": 900, "per_byte_fs": 0},
                    {"from_bytes": 8192, "base_ps": -50, "per_byte_fs": 20}],
        "gap": [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}],
        "rendezvous_from_bytes": 65536, "unexpected_copy": null}"#;

    fn model(change: impl Fn(&mut Value)) -> Result<Model, PlanError> {
        let mut value: Value = serde_json::from_str(&format!(
            r#"{{"nodes": [{{"cores": 2, "idle": "spin", "quantum_ps": 4000}}], "placement": [0, 0],
                "intra": {LAYER}, "inter": null, "link": null}}"#
        ))
        .unwrap();
        change(&mut value);
        Model::from_json(&value.to_string(), 2)
    }

    #[test]
    fn a_model_is_read() {
        let model = model(|_| ()).unwrap();
        assert_eq!(model.placement, [0, 0]);
        assert_eq!(model.nodes[0].idle, Idle::Spin);
        assert_eq!(model.intra.rendezvous_from, Some(Bytes::new(65536)));
        assert_eq!(model.intra.latency.at(8192), -50 + 164);
        assert_eq!(model.intra.unexpected_copy, None);
        assert_eq!(model.intra.fetch, None);
    }

    #[test]
    fn a_layer_whose_receivers_fetch_is_read() {
        let fetch = serde_json::json!([{"from_bytes": 0, "base_ps": 800, "per_byte_fs": 30}]);
        let model = model(|m| m["intra"]["fetch"] = fetch.clone()).unwrap();
        let cost = |layer: &Layer, mode| layer.fetch_cost_ps(100_000, mode);
        assert_eq!(cost(&model.intra, Mode::Standard), Some(800 + 3000 - 100));
        assert_eq!(cost(&model.intra, Mode::Unchanged), Some(800 + 3000 - 100));
        let unchanged = serde_json::json!([{"from_bytes": 0, "base_ps": 600, "per_byte_fs": 10}]);
        let model = self::model(|m| {
            m["intra"]["fetch"] = fetch.clone();
            m["intra"]["fetch_unchanged"] = unchanged.clone();
        });
        let layer = model.unwrap().intra;
        assert_eq!(cost(&layer, Mode::Standard), Some(800 + 3000 - 100));
        assert_eq!(cost(&layer, Mode::Unchanged), Some(600 + 1000 - 100));
    }

    #[test]
    fn a_wrong_model_is_refused_with_key_value_and_what_is_allowed() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str, &str, &str); 21] = [
            (|m| m["nodes"] = Value::Array(vec![]), "nodes", "[]", "one node or more"),
            (|m| m["nodes"][0]["cores"] = 0.into(), "nodes[0].cores", "0", "from 1 to"),
            (|m| m["nodes"][0]["least_ps"] = 5.into(), "nodes[0].least_ps", "5", "nothing without tick_ps"),
            (
                |m| m["first"] = serde_json::json!([{"calls": [7], "ps": 1}]),
                "first[0].calls[0]",
                "7",
                "a text",
            ),
            (
                |m| m["first"] = serde_json::json!([{"calls": ["recv"], "ps": 1, "at_end": 1}]),
                "first[0].at_end",
                "1",
                "true or false",
            ),
            (
                |m| m["cold"] = serde_json::json!([{"after_ps": 7, "ps": 1}, {"after_ps": 7, "ps": 2}]),
                "cold[1].after_ps",
                "7",
                "from 8",
            ),
            (|m| m["nodes"][0]["idle"] = "nap".into(), "nodes[0].idle", "\"nap\"", "spin, yield, sleep"),
            (|m| m["nodes"][0]["quantum_ps"] = 0.into(), "nodes[0].quantum_ps", "0", "from 1"),
            (|m| m["placement"][1] = 1.into(), "placement[1]", "1", "0"),
            (|m| m["placement"] = vec![0].into(), "placement", "a list of 1", "each of 2 ranks"),
            (|m| m["intra"]["call_ps"] = (-1).into(), "intra.call_ps", "-1", "from 0"),
            (
                |m| m["intra"]["latency"][1]["from_bytes"] = 0.into(),
                "intra.latency[1].from_bytes",
                "0",
                "from 1 to",
            ),
            (|m| m["intra"]["gap"][0]["from_bytes"] = 4.into(), "intra.gap[0].from_bytes", "4", "0"),
            (
                |m| m["intra"]["gap"][0]["base_ps"] = (-4).into(),
                "intra.gap[0].base_ps",
                "-4",
                "no negative time",
            ),
            (
                |m| m["intra"]["gap"][0]["per_byte_fs"] = 0.5.into(),
                "intra.gap[0].per_byte_fs",
                "0.5",
                "an integer",
            ),
            (|m| m["intra"]["fetch"] = serde_json::json!([]), "intra.fetch", "[]", "one segment or more"),
            (|m| m["speed"] = 1.into(), "speed", "1", "no such key"),
            (|m| m["nodes"][0]["cores_of"] = 1.into(), "nodes[0].cores_of", "1", "0"),
            (
                |m| m["nodes"][0]["cores_of"] = 0.into(),
                "nodes[0].cores_of",
                "0",
                "a node that runs on its own cores",
            ),
            (
                |m| m["link"] = serde_json::json!({"rate_bit_s": 0, "delay_ps": 0}),
                "link.rate_bit_s",
                "0",
                "from 1",
            ),
            (
                |m| m["link"] = serde_json::json!({"rate_bit_s": 1, "delay_ps": 0, "message_bytes": -1}),
                "link.message_bytes",
                "-1",
                "from 0",
            ),
        ];
        for (change, key, value, allowed) in cases {
            let error = model(change).expect_err(key);
            assert_eq!((error.key.as_str(), error.value.as_str()), (key, value));
            assert!(error.allowed.contains(allowed), "{key}: {}", error.allowed);
        }
    }

    #[test]
    fn an_absent_key_text_that_is_not_json_and_a_missing_layer_are_refused() {
        let absent = model(|m| drop(m["intra"].as_object_mut().unwrap().remove("gap"))).unwrap_err();
        assert_eq!(absent.to_string(), "intra.gap is nothing; allowed: this key must be given");
        assert!(Model::from_json("{", 1).unwrap_err().to_string().contains("not JSON"));
        let node = serde_json::json!({"cores": 1, "idle": "sleep", "quantum_ps": 1});
        let inter = model(|m| {
            m["nodes"] = vec![node.clone(), node.clone()].into();
            m["placement"] = vec![0, 1].into();
        });
        assert_eq!(inter.unwrap_err().key, "inter");
    }

    /// Two hosts at a switch of cells.
    fn listed(switch: &Value) -> Value {
        serde_json::json!({
            "topology": "listed", "fidelity": "cell", "rate": "155 Mbit/s",
            "nodes": [
                {"name": "s", "kind": "switch", "switch": switch},
                {"name": "a", "kind": "host"}, {"name": "b", "kind": "host"},
            ],
            "lines": [{"from": "a", "to": "s"}, {"from": "b", "to": "s"}],
        })
    }

    #[test]
    fn a_network_that_cannot_be_is_refused_by_its_own_key() {
        use serde_json::json;
        let crossbar = |key: &str, value: u32| listed(&json!({"kind": "crossbar", key: value}));
        assert!(model(|m| m["network"] = crossbar("queue", 9)).is_ok());
        for (network, key, value) in [
            (json!({"topology": "star", "hosts": 2, "rate": "0 Gbit/s"}), "rate", "\"0 Gbit/s\""),
            (json!({"topology": "star", "hosts": 10_000_000, "rate": "1 Gbit/s"}), "hosts", "10000000"),
            (
                json!({"topology": "shared-cable", "hosts": 2, "rate": "10 Mbit/s", "fidelity": "cell"}),
                "topology",
                "\"shared-cable\"",
            ),
            (crossbar("ports", 1), "nodes[0].switch.ports", "1"),
            (crossbar("iterations", 0), "nodes[0].switch.iterations", "0"),
            (crossbar("circuits", 7), "nodes[0].switch.circuits", "7"),
            (listed(&json!({"kind": "output-queued", "buffer": 7})), "nodes[0].switch.buffer", "7"),
        ] {
            let error = model(|m| m["network"] = network.clone()).unwrap_err();
            assert_eq!((error.key, error.value.as_str()), (format!("network.{key}"), value));
        }
        let node = json!({"cores": 1, "idle": "sleep", "quantum_ps": 1});
        let few = model(|m| {
            m["nodes"] = vec![node.clone(), node.clone(), node.clone()].into();
            m["network"] = crossbar("queue", 9);
        });
        assert_eq!(
            few.unwrap_err().to_string(),
            "network is a network of 2 hosts; allowed: a host for each of 3 nodes"
        );
    }
}
