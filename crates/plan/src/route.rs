//! Paths through a network: shortest ones, with those of equal length shared out by a hash.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::graph::{Graph, LineId, NodeId, NodeKind};

/// Finds paths through one graph; remembers how far every switch is from those that were asked for.
///
/// Of several shortest ways from a node a packet takes the one that a hash of its source, its destination and
/// the node names, as switches do with equal-cost multipath (RFC 2992): always the same for one pair of hosts.
#[derive(Clone, Debug)]
pub struct Router {
    graph: Arc<Graph>,
    /// For a destination's switch (or the destination, where it has several lines), every node's distance to it.
    distances: BTreeMap<NodeId, Vec<u16>>,
}

/// Farther than any path.
const FAR: u16 = u16::MAX;

impl Router {
    /// A router of `graph`.
    #[must_use]
    pub fn new(graph: impl Into<Arc<Graph>>) -> Self {
        Self { graph: graph.into(), distances: BTreeMap::new() }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Appends the lines from one host to another to `path`; false where there is no way, nothing being appended.
    ///
    /// # Panics
    /// Where the graph has no such nodes.
    pub fn path(&mut self, from: NodeId, to: NodeId, path: &mut Vec<LineId>) -> bool {
        let before = path.len();
        // Hosts mostly hang on one switch: distances are kept for it, and serve all its hosts.
        let target = self.only_neighbour(to).unwrap_or(to);
        let graph = &self.graph;
        let distances = self.distances.entry(target).or_insert_with(|| distances_to(graph, target));
        let mut at = from;
        while at != to {
            let next = if at == target {
                graph.leaving(at).iter().copied().find(|line| graph.lines()[line.0 as usize].to == to)
            } else {
                step(graph, distances, (from, to), at)
            };
            let Some(line) = next else {
                path.truncate(before);
                return false;
            };
            path.push(line);
            at = graph.lines()[line.0 as usize].to;
        }
        true
    }

    fn only_neighbour(&self, node: NodeId) -> Option<NodeId> {
        match self.graph.leaving(node) {
            [line] => {
                let next = self.graph.lines()[line.0 as usize].to;
                (self.graph.nodes()[next.0 as usize].kind != NodeKind::Host).then_some(next)
            }
            _ => None,
        }
    }
}

/// The line from `at` that comes nearer to where the distances lead.
fn step(graph: &Graph, distances: &[u16], pair: (NodeId, NodeId), at: NodeId) -> Option<LineId> {
    let here = distances[at.0 as usize];
    let nearer = |line: &&LineId| {
        let to = graph.lines()[line.0 as usize].to;
        here != FAR && here > 0 && distances[to.0 as usize] == here - 1
    };
    let ways = graph.leaving(at).iter().filter(nearer).count() as u64;
    if ways == 0 {
        return None;
    }
    let choice = mixed(pair.0.0, pair.1.0, at.0) % ways;
    graph.leaving(at).iter().filter(nearer).nth(choice as usize).copied()
}

/// The hash that chooses among equal ways: the finaliser of MurmurHash3 over the three numbers.
fn mixed(from: u32, to: u32, at: u32) -> u64 {
    let mut value =
        (u64::from(from) << 32 | u64::from(to)) ^ u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

/// Every node's distance to `target` in lines, hosts passing nothing on.
fn distances_to(graph: &Graph, target: NodeId) -> Vec<u16> {
    let mut distances = vec![FAR; graph.nodes().len()];
    distances[target.0 as usize] = 0;
    let mut open = VecDeque::from([target]);
    while let Some(node) = open.pop_front() {
        let is_host = graph.nodes()[node.0 as usize].kind == NodeKind::Host;
        if is_host && node != target {
            continue;
        }
        let next = distances[node.0 as usize].saturating_add(1);
        // Every line has one the other way, so who can be reached can reach.
        for line in graph.leaving(node) {
            let to = graph.lines()[line.0 as usize].to.0 as usize;
            if distances[to] == FAR {
                distances[to] = next;
                open.push_back(NodeId(to as u32));
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::NetworkPlan;

    fn router(text: &str) -> Router {
        Router::new(NetworkPlan::from_text(text).unwrap().graph().unwrap())
    }

    /// The names of the nodes on the way from one host to another.
    fn way(router: &mut Router, from: usize, to: usize) -> Vec<String> {
        let (from, to) = (router.graph().hosts()[from], router.graph().hosts()[to]);
        let mut path = Vec::new();
        assert!(router.path(from, to, &mut path));
        let graph = router.graph();
        path.iter()
            .map(|line| graph.nodes()[graph.lines()[line.0 as usize].to.0 as usize].name.clone())
            .collect()
    }

    #[test]
    fn a_path_is_a_shortest_one() {
        let mut star = router("star:hosts=3,rate=1Gbit/s");
        assert_eq!(way(&mut star, 0, 2), ["switch", "host2"]);
        let mut ring = router("ring:hosts=6,rate=1Gbit/s");
        assert_eq!(way(&mut ring, 0, 5), ["switch0", "switch5", "host5"]);
        let mut two = router("back-to-back:rate=1Gbit/s");
        assert_eq!(way(&mut two, 1, 0), ["host0"]);
        let mut cable = router("shared-cable:hosts=4,rate=10Mbit/s");
        assert_eq!(way(&mut cable, 3, 1), ["cable", "host1"]);
    }

    #[test]
    fn equal_paths_are_shared_out_and_stay_the_same_for_a_pair() {
        let mut tree = router("fat-tree:hosts=64,rate=1Gbit/s");
        let mut spines = BTreeSet::new();
        for to in 8..64 {
            let first = way(&mut tree, 0, to);
            assert_eq!(first.len(), 4, "leaf, spine, leaf, host");
            assert_eq!(first, way(&mut tree, 0, to));
            spines.insert(first[1].clone());
        }
        assert_eq!(spines.len(), 8, "56 pairs meet every spine");
        assert_eq!(way(&mut tree, 0, 7), ["leaf0", "host7"], "within a leaf no spine is met");
    }

    #[test]
    fn a_three_level_tree_is_crossed_over_its_core() {
        let mut tree = router("fat-tree:hosts=16,levels=3,radix=4,rate=1Gbit/s");
        let names = way(&mut tree, 0, 15);
        assert_eq!(names.len(), 6);
        assert!(names[2].starts_with("core"), "{names:?}");
        assert_eq!(way(&mut tree, 0, 2).len(), 4, "within a pod");
    }
}
