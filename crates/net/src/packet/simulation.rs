//! A network of packets with a clock of its own, and connections whose users write.

use std::sync::Arc;

use wiretwin_engine::{EventSink, Schedule};
use wiretwin_plan::{NetworkPlan, PlanError};
use wiretwin_proto::tcp::Config;
use wiretwin_units::{Bytes, SimTime};

use super::connection::ConnectionId;
use super::costs::Costs;
use super::echo::{Echo, EchoId};
use super::network::{Event, Kind, Network};

/// What the user of the end that opens a connection does; the other end reads all that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Writes without end.
    Endless,
    /// Writes so much, then closes.
    Transfer(Bytes),
}

/// A network of packets and its clock.
///
/// ```
/// use std::sync::Arc;
///
/// use wiretwin_net::packet::{Application, Simulation};
/// use wiretwin_plan::NetworkPlan;
/// use wiretwin_proto::tcp::Config;
/// use wiretwin_units::{Bytes, SimTime, Span};
///
/// let plan = NetworkPlan::from_text("star:hosts=2,rate=1Gbit/s,delay=5us")?;
/// let mut simulation = Simulation::new(&plan, 1)?;
/// let rules = Arc::new(Config { work: false, ..Config::linux_modern() });
/// let megabyte = Application::Transfer(Bytes::new(1_000_000));
/// let connection = simulation.connect([0, 1], [&rules, &rules], megabyte, SimTime::ZERO);
/// simulation.run_until(SimTime::ZERO + Span::from_s(1));
/// let report = simulation.network().stream(connection.end(true));
/// assert_eq!(report.read, Bytes::new(1_000_000));
/// # Ok::<(), wiretwin_plan::PlanError>(())
/// ```
#[derive(Clone)]
pub struct Simulation {
    schedule: Schedule<Event>,
    network: Network,
}

impl Simulation {
    /// The network that a plan describes, at the start of the run; `seed` is that of all random choices.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn new(plan: &NetworkPlan, seed: u64) -> Result<Self, PlanError> {
        Ok(Self { schedule: Schedule::new(), network: Network::new(plan, seed)? })
    }

    /// Gives every host a processor that takes its time.
    pub fn set_costs(&mut self, costs: Costs) {
        self.network.set_costs(costs);
    }

    /// Adds a connection that is opened at `start`.
    ///
    /// # Panics
    /// As [`Network::connect`].
    pub fn connect(
        &mut self,
        hosts: [u32; 2],
        configs: [&Arc<Config>; 2],
        application: Application,
        start: SimTime,
    ) -> ConnectionId {
        let connection = self.network.connect(hosts, configs);
        let (bytes, closes) = match application {
            Application::Endless => (Bytes::new(u64::MAX), false),
            Application::Transfer(bytes) => (bytes, true),
        };
        let now = self.schedule.now();
        self.network.write(&mut self.schedule, now, connection.end(true), bytes, closes);
        self.schedule.put(start.max(now), Kind::Open.of(connection.0));
        connection
    }

    /// Adds an echo.
    ///
    /// # Panics
    /// As [`Network::connect`].
    pub fn echo(&mut self, spec: Echo, config: &Arc<Config>, seed: u64) -> EchoId {
        let connection = self.network.connect(spec.hosts, [config, config]);
        let echo = self.network.add_echo(connection, spec, seed);
        self.schedule.put(spec.start.max(self.schedule.now()), Kind::Ask.of(echo.0));
        echo
    }

    /// Runs until no event is due up to `until`, which the clock then shows.
    pub fn run_until(&mut self, until: SimTime) {
        while let Some(event) = self.schedule.next_through(until) {
            self.network.handle(&mut self.schedule, event.time, event.what);
        }
        // Nothing is due until then, and it has not passed unless the clock was there before.
        let _ = self.schedule.advance(until);
    }

    /// The clock.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.schedule.now()
    }

    /// Events that were scheduled so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.schedule.scheduled()
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }
}
