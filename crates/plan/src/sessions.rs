//! Streams and echoes over a network: who sends to whom, by which rules, and how long they are looked at.

use serde::{Deserialize, Serialize};
use wiretwin_units::Span;

use crate::error::PlanError;
use crate::graph::Graph;
use crate::network::NetworkPlan;
use crate::quantity::{Duration, Size};
use crate::read;

/// A network, its hosts and the sessions between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionsPlan {
    /// Of all random choices.
    pub seed: u64,
    /// What passes before anything is counted.
    pub warm_up: Duration,
    /// How long is counted.
    pub run: Duration,
    /// What joins the hosts.
    pub network: NetworkPlan,
    /// What a host takes for a segment or datagram out or in.
    pub per_segment: Duration,
    /// The rules of streams.
    pub tcp: TcpPlan,
    /// Who sends to whom.
    pub sessions: Vec<SessionPlan>,
}

/// The rules of TCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpPlan {
    /// Their name, such as `bsd43_reno`.
    pub preset: String,
    /// The buffers of both ends, each way; at most 16 MiB.
    pub window: Size,
    /// The largest segment where it is not that of the network's packets.
    pub mss: Option<Size>,
    /// Whether acknowledgments wait.
    pub delayed_ack: bool,
    /// The grain of the slow timer where it is not that of the preset, 100 us to 1 s; two of it are the
    /// least time-out.
    #[serde(default)]
    pub tick: Option<Duration>,
}

/// What a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKind {
    /// A stream over TCP without end.
    Ttcp,
    /// A datagram that is sent back, again and again.
    Echo,
}

/// A session between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    /// What the report calls it.
    pub name: String,
    /// What it is.
    pub kind: SessionKind,
    /// The host that begins.
    pub from: String,
    /// The other host.
    pub to: String,
    /// When it begins.
    pub start: Duration,
    /// Of an echo, what its datagram carries.
    pub bytes: Option<Size>,
    /// Of an echo, the mean pause before the next datagram, exponential.
    pub pause: Option<Duration>,
    /// Of an echo, when a datagram that has not come back is given up.
    pub timeout: Option<Duration>,
}

/// A day: no sum of a few times overflows.
const LONGEST: Span = Span::from_s(86_400);
const LARGEST_WINDOW: u64 = 16 << 20;
const LEAST_TICK: Span = Span::from_us(100);
const LARGEST_TICK: Span = Span::from_s(1);
/// What UDP carries in a PDU of AAL 5 behind the headers of LLC, SNAP and IP (RFC 768, RFC 2684).
const LARGEST_DATAGRAM: u64 = 65_499;

impl SessionsPlan {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// [`PlanError`] for the first key that is wrong.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = read::from_json(text)?;
        let under = |error: PlanError| error.under("network");
        plan.network.below().map_err(under)?;
        let graph = plan.network.graph().map_err(under)?;
        plan.check(&graph)?;
        Ok(plan)
    }

    fn check(&self, graph: &Graph) -> Result<(), PlanError> {
        let times = [("warm_up", self.warm_up), ("run", self.run), ("per_segment", self.per_segment)];
        let of_sessions = self.sessions.iter().enumerate().flat_map(|(number, session)| {
            let zero = Duration(Span::ZERO);
            [
                (number, "start", session.start),
                (number, "pause", session.pause.unwrap_or(zero)),
                (number, "timeout", session.timeout.unwrap_or(zero)),
            ]
        });
        let of_sessions = of_sessions.map(|(number, key, time)| (format!("sessions[{number}].{key}"), time));
        for (key, time) in times.map(|(key, time)| (key.to_string(), time)).into_iter().chain(of_sessions) {
            if time.0 > LONGEST {
                return Err(PlanError::new(key, time, "a day at most"));
            }
        }
        let window = self.tcp.window;
        if !(1..=LARGEST_WINDOW).contains(&window.0.get()) {
            return Err(PlanError::new("tcp.window", window, "1 B to 16 MiB"));
        }
        if let Some(tick) = self.tcp.tick.filter(|tick| !(LEAST_TICK..=LARGEST_TICK).contains(&tick.0)) {
            return Err(PlanError::new("tcp.tick", tick, "100 us to 1 s"));
        }
        let mtu = self.network.packets().payload.get();
        if let Some(mss) = self.tcp.mss.filter(|mss| !(1..=mtu).contains(&mss.0.get())) {
            return Err(PlanError::new("tcp.mss", mss, format!("1 B to {mtu} B, what a packet carries")));
        }
        for (number, session) in self.sessions.iter().enumerate() {
            session.check(graph).map_err(|error| error.under(&format!("sessions[{number}]")))?;
        }
        Ok(())
    }
}

impl SessionPlan {
    fn check(&self, graph: &Graph) -> Result<(), PlanError> {
        let [from, to] = [("from", &self.from), ("to", &self.to)].map(|(key, name)| {
            graph.host(name).ok_or_else(|| PlanError::new(key, name, "the name of a host of the network"))
        });
        if from? == to? {
            return Err(PlanError::new("to", &self.to, "another host than `from`"));
        }
        let given = [self.bytes.is_some(), self.pause.is_some(), self.timeout.is_some()];
        match self.kind {
            SessionKind::Ttcp if given == [false; 3] => Ok(()),
            SessionKind::Ttcp => {
                Err(PlanError::new("kind", "\"ttcp\"", "echo, with bytes, pause and timeout; ttcp, without"))
            }
            SessionKind::Echo => {
                let bytes = self.bytes.map_or(0, |bytes| bytes.0.get());
                if !(1..=LARGEST_DATAGRAM).contains(&bytes) {
                    return Err(PlanError::new("bytes", bytes, format!("1 B to {LARGEST_DATAGRAM} B")));
                }
                if self.pause.is_none() || self.timeout.is_none_or(|time| time.0.is_zero()) {
                    return Err(PlanError::new("timeout", "nothing", "a pause, and a time-out above 0"));
                }
                Ok(())
            }
        }
    }
}
