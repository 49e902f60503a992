//! From the name of a topology and its parameters to nodes and lines.

use std::collections::BTreeMap;

use wiretwin_units::{BitRate, Span};

use crate::error::PlanError;
use crate::graph::{Graph, NodeId, NodeKind};
use crate::network::{ListedKind, MOST_LINES, NetworkPlan, Topology};

/// Builds a checked network.
pub(crate) fn build(plan: &NetworkPlan) -> Result<Graph, PlanError> {
    if plan.topology == Topology::Listed {
        return listed(plan);
    }
    let rate = plan.host_rate()?;
    let delay = plan.delay.map_or(Span::ZERO, |delay| delay.0);
    let mut builder = Builder {
        graph: Graph::default(),
        hosts: plan.hosts.unwrap_or(2),
        line: (rate, delay),
        trunk: (plan.trunk_rate.map_or(rate, |rate| rate.0), plan.trunk_delay.map_or(delay, |delay| delay.0)),
    };
    match plan.topology {
        Topology::BackToBack => builder.back_to_back(),
        Topology::Star => {
            let switch = builder.switch("switch");
            builder.hosts_at(switch, builder.hosts);
        }
        Topology::SharedCable => builder.shared_cable(),
        Topology::Ring => builder.row(plan.hosts_per_switch, true)?,
        Topology::Chain => builder.row(plan.hosts_per_switch, false)?,
        Topology::Dumbbell => builder.dumbbell(),
        Topology::ParkingLot => builder.parking_lot(),
        Topology::Tree => builder.tree(plan.fanout)?,
        Topology::FatTree => builder.fat_tree(plan)?,
        // Built above.
        Topology::Listed => {}
    }
    Ok(builder.graph)
}

type LineOf = (BitRate, Span);

struct Builder {
    graph: Graph,
    /// How many hosts are wanted.
    hosts: u32,
    /// Of every line at a host.
    line: LineOf,
    /// Of every line between switches.
    trunk: LineOf,
}

impl Builder {
    fn host(&mut self) -> NodeId {
        let number = self.graph.hosts().len();
        self.graph.add_node(format!("host{number}"), NodeKind::Host)
    }

    fn switch(&mut self, name: impl Into<String>) -> NodeId {
        self.graph.add_node(name.into(), NodeKind::Switch)
    }

    fn host_at(&mut self, switch: NodeId) {
        let host = self.host();
        self.graph.join([host, switch], [self.line.0; 2], self.line.1);
    }

    fn hosts_at(&mut self, switch: NodeId, count: u32) {
        for _ in 0..count {
            self.host_at(switch);
        }
    }

    fn trunk(&mut self, one: NodeId, other: NodeId) {
        self.graph.join([one, other], [self.trunk.0; 2], self.trunk.1);
    }

    /// How many hosts are still to be placed.
    fn left(&self) -> u32 {
        self.hosts - self.graph.hosts().len() as u32
    }

    fn back_to_back(&mut self) {
        let (one, other) = (self.host(), self.host());
        self.graph.join([one, other], [self.line.0; 2], self.line.1);
    }

    fn shared_cable(&mut self) {
        let cable = self.graph.add_node("cable".into(), NodeKind::Cable);
        let medium = self.graph.add_medium(self.line.0);
        for _ in 0..self.hosts {
            let host = self.host();
            // The way to the cable stands for the whole: the signal is at every host after one delay.
            self.graph.add_line(host, cable, self.line.1, medium);
            self.graph.add_line(cable, host, Span::ZERO, medium);
        }
    }

    /// Switches one after the other with hosts at each, closed to a ring or not.
    fn row(&mut self, hosts_per_switch: Option<u32>, closed: bool) -> Result<(), PlanError> {
        let each = hosts_per_switch.unwrap_or(1);
        if each == 0 || each > self.hosts {
            return Err(PlanError::new("hosts_per_switch", each, format!("1 to the {} hosts", self.hosts)));
        }
        let mut switches = Vec::new();
        while self.left() > 0 {
            let switch = self.switch(format!("switch{}", switches.len()));
            self.hosts_at(switch, each.min(self.left()));
            if let Some(before) = switches.last() {
                self.trunk(*before, switch);
            }
            switches.push(switch);
        }
        if closed && switches.len() > 2 {
            self.trunk(switches[switches.len() - 1], switches[0]);
        }
        Ok(())
    }

    fn dumbbell(&mut self) {
        let sides = [self.switch("left"), self.switch("right")];
        self.trunk(sides[0], sides[1]);
        // Host 2 i is to talk to host 2 i + 1, across.
        for number in 0..self.hosts {
            self.host_at(sides[(number % 2) as usize]);
        }
    }

    fn parking_lot(&mut self) {
        let lines = (self.hosts - 2) / 2;
        let switches = (0..=lines).map(|number| self.switch(format!("switch{number}"))).collect::<Vec<_>>();
        for pair in switches.windows(2) {
            self.trunk(pair[0], pair[1]);
        }
        // Hosts 0 and 1 are the pair across all lines, 2 i + 2 and 2 i + 3 that across line i.
        self.host_at(switches[0]);
        self.host_at(switches[lines as usize]);
        for pair in switches.windows(2) {
            self.host_at(pair[0]);
            self.host_at(pair[1]);
        }
    }

    fn tree(&mut self, fanout: Option<u32>) -> Result<(), PlanError> {
        let fanout = fanout.unwrap_or(0);
        if fanout < 2 {
            let found = if fanout == 0 { "nothing".to_string() } else { fanout.to_string() };
            return Err(PlanError::new("fanout", found, "2 and above"));
        }
        // From the leaves up: at each level one switch for every `fanout` nodes of the one below.
        let mut below = Vec::new();
        while self.left() > 0 {
            let leaf = self.switch(format!("level1-{}", below.len()));
            self.hosts_at(leaf, fanout.min(self.left()));
            below.push(leaf);
        }
        let mut level = 2;
        while below.len() > 1 {
            let mut above = Vec::new();
            for children in below.chunks(fanout as usize) {
                let parent = self.switch(format!("level{level}-{}", above.len()));
                children.iter().for_each(|child| self.trunk(parent, *child));
                above.push(parent);
            }
            below = above;
            level += 1;
        }
        Ok(())
    }

    fn fat_tree(&mut self, plan: &NetworkPlan) -> Result<(), PlanError> {
        let over = plan.oversubscription.unwrap_or(1);
        if over == 0 {
            return Err(PlanError::new("oversubscription", over, "1 and above"));
        }
        let levels = plan.levels.unwrap_or(if self.hosts <= TWO_LEVEL_HOSTS { 2 } else { 3 });
        if !(2..=3).contains(&levels) {
            return Err(PlanError::new("levels", levels, "2 or 3"));
        }
        let capacity = |radix: u32| {
            let half = u64::from(radix / 2);
            if levels == 2 { half * u64::from(radix) } else { half * half * u64::from(radix) }
        };
        let radix = match plan.radix {
            Some(radix) => radix,
            // Switches are sold with powers of two.
            None => (1..=16)
                .map(|power| 1 << power)
                .find(|radix| capacity(*radix) >= u64::from(self.hosts))
                .unwrap_or(MOST_RADIX),
        };
        if radix < 2 || radix % 2 == 1 || radix > MOST_RADIX {
            return Err(PlanError::new("radix", radix, format!("even numbers from 2 to {MOST_RADIX}")));
        }
        if capacity(radix) < u64::from(self.hosts) {
            let allowed =
                format!("{} at most on {levels} levels of switches with {radix} ports", capacity(radix));
            return Err(PlanError::new("hosts", self.hosts, allowed));
        }
        let half = radix / 2;
        if !half.is_multiple_of(over) {
            let allowed = format!("a divisor of {half}, half of the ports of a switch");
            return Err(PlanError::new("oversubscription", over, allowed));
        }
        let up = half / over;
        if levels == 2 {
            let spines = (0..up).map(|number| self.switch(format!("spine{number}"))).collect::<Vec<_>>();
            self.leaves("", half, &spines, u32::MAX);
            return Ok(());
        }
        let pods = self.hosts.div_ceil(half * half);
        // One pod needs no core.
        let cores = if pods > 1 { up * half } else { 0 };
        let cores = (0..cores).map(|number| self.switch(format!("core{number}"))).collect::<Vec<_>>();
        for pod in 0..pods {
            let middle = (0..up).map(|n| self.switch(format!("pod{pod}-spine{n}"))).collect::<Vec<_>>();
            for (group, spine) in cores.chunks(half as usize).zip(&middle) {
                group.iter().for_each(|core| self.trunk(*spine, *core));
            }
            self.leaves(&format!("pod{pod}-"), half, &middle, half);
        }
        Ok(())
    }

    /// Leaves with hosts, each joined to every one of `spines`.
    fn leaves(&mut self, prefix: &str, hosts_each: u32, spines: &[NodeId], most: u32) {
        let mut number = 0;
        while self.left() > 0 && number < most {
            let leaf = self.switch(format!("{prefix}leaf{number}"));
            self.hosts_at(leaf, hosts_each.min(self.left()));
            spines.iter().for_each(|spine| self.trunk(leaf, *spine));
            number += 1;
        }
    }
}

/// Up to here a fat tree has two levels unless it is asked for three: what switches of 64 ports allow.
const TWO_LEVEL_HOSTS: u32 = 2048;
/// The most ports of a switch.
const MOST_RADIX: u32 = 1024;

fn listed(plan: &NetworkPlan) -> Result<Graph, PlanError> {
    let mut graph = Graph::default();
    let mut names = BTreeMap::new();
    let nodes = plan.nodes.as_deref().unwrap_or_default();
    let lines = plan.lines.as_deref().unwrap_or_default();
    if nodes.len() + 2 * lines.len() > MOST_LINES {
        return Err(PlanError::new("lines", lines.len(), format!("{MOST_LINES} nodes and lines at most")));
    }
    for (index, node) in nodes.iter().enumerate() {
        let kind = match node.kind {
            ListedKind::Host => NodeKind::Host,
            ListedKind::Switch => NodeKind::Switch,
        };
        let id = graph.add_node(node.name.clone(), kind);
        if names.insert(node.name.as_str(), id).is_some() {
            return Err(PlanError::new(format!("nodes[{index}].name"), &node.name, "each name once"));
        }
    }
    if graph.hosts().len() < 2 {
        let found = format!("a list with {} of kind \"host\"", graph.hosts().len());
        return Err(PlanError::new("nodes", found, "two hosts or more"));
    }
    for (index, line) in lines.iter().enumerate() {
        let end = |key: &str, name: &String| {
            names.get(name.as_str()).copied().ok_or_else(|| {
                PlanError::new(
                    format!("lines[{index}].{key}"),
                    name,
                    "the name of a node in the list `nodes`",
                )
            })
        };
        let (from, to) = (end("from", &line.from)?, end("to", &line.to)?);
        if from == to {
            return Err(PlanError::new(format!("lines[{index}].to"), &line.to, "another node than `from`"));
        }
        let rate = line.rate.or(plan.rate).ok_or_else(|| {
            PlanError::new(
                format!("lines[{index}].rate"),
                "nothing",
                "a rate, here or as `rate` of the whole network",
            )
        })?;
        let delay = line.delay.or(plan.delay).map_or(Span::ZERO, |delay| delay.0);
        let back = line.back_rate.unwrap_or(rate);
        graph.join([from, to], [rate.0, back.0], delay);
    }
    connected(&graph)?;
    Ok(graph)
}

/// Checks that every host can reach every other, hosts passing nothing on.
fn connected(graph: &Graph) -> Result<(), PlanError> {
    let hosts = graph.hosts();
    let seen = reached(graph, hosts[0]);
    lost(graph, hosts[0], &seen)?;
    // Nearly always the switches that the first host reaches join all others too.
    let joins = |host: &NodeId| {
        graph.leaving(*host).iter().any(|line| {
            let to = graph.lines()[line.0 as usize].to;
            graph.nodes()[to.0 as usize].kind == NodeKind::Switch && seen[to.0 as usize]
        })
    };
    let is_one = graph.leaving(hosts[0]).iter().filter(|line| !is_host(graph, line.0)).count() == 1;
    if is_one && hosts.iter().all(joins) {
        return Ok(());
    }
    if hosts.len() * graph.lines().len() > MOST_STEPS {
        let found = format!("{} hosts that no one network of switches joins", hosts.len());
        return Err(PlanError::new("lines", found, "a line from every host to switches that are all joined"));
    }
    hosts[1..].iter().try_for_each(|host| lost(graph, *host, &reached(graph, *host)))
}

/// The most lines that are looked at to see whether hosts reach each other where switches do not join them all.
const MOST_STEPS: usize = 1 << 28;

/// Whether a line leads to a host.
fn is_host(graph: &Graph, line: u32) -> bool {
    graph.nodes()[graph.lines()[line as usize].to.0 as usize].kind == NodeKind::Host
}

/// The nodes that are reached from a host.
fn reached(graph: &Graph, first: NodeId) -> Vec<bool> {
    let mut seen = vec![false; graph.nodes().len()];
    seen[first.0 as usize] = true;
    let mut open = vec![first];
    while let Some(node) = open.pop() {
        if node != first && graph.nodes()[node.0 as usize].kind == NodeKind::Host {
            continue;
        }
        for line in graph.leaving(node) {
            let to = graph.lines()[line.0 as usize].to;
            if !std::mem::replace(&mut seen[to.0 as usize], true) {
                open.push(to);
            }
        }
    }
    seen
}

/// Rejects a network in which a host is not among those that `from` reaches.
fn lost(graph: &Graph, from: NodeId, seen: &[bool]) -> Result<(), PlanError> {
    let name = |node: NodeId| &graph.nodes()[node.0 as usize].name;
    match graph.hosts().iter().find(|host| !seen[host.0 as usize]) {
        None => Ok(()),
        Some(to) => Err(PlanError::new(
            "lines",
            format!("no way from {} to {}", name(from), name(*to)),
            "lines, over switches, between every two hosts",
        )),
    }
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
