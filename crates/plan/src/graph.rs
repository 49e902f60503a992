//! The nodes and lines of a network.

use wiretwin_units::{BitRate, Span};

/// The number of a node of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The number of a line of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

/// The number of a medium of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumId(pub u32);

/// What a node does with what reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// It sends and receives, and passes nothing on.
    Host,
    /// It passes on what is for others.
    Switch,
    /// A cable to which several hosts are attached: it passes everything on at once.
    Cable,
}

/// A node of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name, unique within the graph, such as `host3` or `leaf1`.
    pub name: String,
    /// What it does with what reaches it.
    pub kind: NodeKind,
}

/// One direction of a connection between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it begins.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// The time that a bit takes from one end to the other.
    pub delay: Span,
    /// What its bits occupy; lines of one medium share its rate.
    pub medium: MediumId,
}

/// Something of a certain rate that one sender at a time can use: a line of its own, or a shared cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    /// The rate at which it carries bits.
    pub rate: BitRate,
}

/// A network as nodes and lines, each line one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    lines: Vec<Line>,
    media: Vec<Medium>,
    hosts: Vec<NodeId>,
    /// The lines that leave each node, in the order in which they were added.
    leaving: Vec<Vec<LineId>>,
}

impl Graph {
    /// Every node, by number.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every line, by number.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Every medium, by number.
    #[must_use]
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// The hosts, in the order in which ranks are placed on them.
    #[must_use]
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// The place among the hosts of the one of this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<u32> {
        let place = self.hosts.iter().position(|host| self.nodes[host.0 as usize].name == name)?;
        Some(place as u32)
    }

    /// The lines that leave a node.
    ///
    /// # Panics
    /// Where the graph has no such node.
    #[must_use]
    pub fn leaving(&self, node: NodeId) -> &[LineId] {
        &self.leaving[node.0 as usize]
    }

    /// By node, the lines that leave it.
    pub(crate) fn leaving_all(&self) -> &[Vec<LineId>] {
        &self.leaving
    }

    pub(crate) fn add_node(&mut self, name: String, kind: NodeKind) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { name, kind });
        self.leaving.push(Vec::new());
        if kind == NodeKind::Host {
            self.hosts.push(id);
        }
        id
    }

    pub(crate) fn add_medium(&mut self, rate: BitRate) -> MediumId {
        self.media.push(Medium { rate });
        MediumId((self.media.len() - 1) as u32)
    }

    pub(crate) fn add_line(&mut self, from: NodeId, to: NodeId, delay: Span, medium: MediumId) {
        self.leaving[from.0 as usize].push(LineId(self.lines.len() as u32));
        self.lines.push(Line { from, to, delay, medium });
    }

    /// Adds a line each way, each with a rate and a medium of its own.
    pub(crate) fn join(&mut self, ends: [NodeId; 2], rates: [BitRate; 2], delay: Span) {
        for side in 0..2 {
            let medium = self.add_medium(rates[side]);
            self.add_line(ends[side], ends[1 - side], delay, medium);
        }
    }
}
