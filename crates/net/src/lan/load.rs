//! Background load: stations that only generate.
//!
//! A generator of an ATM network sits at a switch port of its own and sends PDUs, cell after cell, to the
//! output port of a host, on a circuit that the host's adapter has not opened: the cells share the fabric,
//! the output queue and the line, and the adapter leaves them at its line side, at no cost. A generator of
//! a cable or a ring is a pair of stations, and one sends datagrams to the other.
//!
//! The share is that of the medium's time that the load would take if nothing disturbed it: of the output
//! line in cells with what the line adds to each, of the cable with preamble and gap or without (as
//! configured), of the ring with preamble and delimiters.

use wiretwin_plan::PlanError;
use wiretwin_units::{Bytes, Span};
use wiretwin_wire::aal5;
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::Lan;
use super::asx100::Branch;
use super::cell::{Cell, Marks, PduId, Vc};
use super::circuit::FIRST_VCI;
use super::config::{Config, NetworkConfig};
use super::core::{LanEvent, LinkId, Port};
use super::trail::SegmentId;
use crate::json::At;
use crate::load::{Generator, Law};
use crate::{csma_cd, timed_token};

/// When the units of a generator follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// At equal intervals, from a random phase on.
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// In bursts at a higher share, with exponentially distributed pauses between them.
    OnOff {
        /// The share within a burst, above the mean one, at most 1.
        peak: f64,
        /// Units in a burst on average (geometric), at least 1.
        burst: f64,
    },
}

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadConfig {
    /// When its units follow each other.
    pub pattern: Pattern,
    /// The share of the medium's time that it takes, 0 to 1.
    pub share: f64,
    /// Of an ATM network: octets of a PDU of AAL 5; else octets of UDP in a datagram.
    pub octets: Bytes,
    /// Of an ATM network: the host at whose output port its cells come out.
    pub to: u32,
    /// Of an ATM network: in front of circuits without reserved bandwidth, as those that have it.
    pub reserved: bool,
    /// Of a cable: preamble and gap count for the share.
    pub whole: bool,
}

impl LoadConfig {
    /// The largest share that it takes at any time.
    pub(super) fn most(&self) -> f64 {
        match self.pattern {
            Pattern::OnOff { peak, .. } => peak,
            Pattern::Constant | Pattern::Poisson => self.share,
        }
    }

    /// The same pattern for units that take so much of the medium's time each.
    fn law(&self, unit: Span) -> Law {
        let every = |share: f64| Span::from_ps((unit.as_ps() as f64 / share) as u64);
        let mean = every(self.share);
        match self.pattern {
            Pattern::Constant => Law::Constant { interval: mean },
            Pattern::Poisson => Law::Poisson { mean },
            Pattern::OnOff { peak, burst } => Law::Bursts { mean, interval: every(peak), units: burst },
        }
    }
}

/// Octets of the headers of UDP and IP.
const HEADERS: u64 = 28;

/// Reads the generators of a network.
pub(super) fn read(
    top: &At<'_>,
    network: &NetworkConfig,
    hosts: u32,
    mtu: Option<u16>,
) -> Result<Vec<LoadConfig>, PlanError> {
    let Some(list) = top.optional("load") else { return Ok(Vec::new()) };
    if matches!(network, NetworkConfig::BackToBack(_)) {
        return Err(list.refuse("nothing between two hosts back to back: load needs a switch, cable or ring"));
    }
    if matches!(network, NetworkConfig::Gige(_) | NetworkConfig::Switches) {
        return Err(list.refuse("nothing on Gigabit Ethernet or switches: load is not modelled there"));
    }
    let found = list.list("a list of generators")?;
    let stations = u64::from(hosts) + 2 * found.len() as u64;
    if matches!(network, NetworkConfig::Cable { .. } | NetworkConfig::Ring { .. }) && stations > 64 {
        let allowed = format!("at most 64 stations: {hosts} hosts and two a generator");
        return Err(list.refuse_as(format!("{} generators", found.len()), allowed));
    }
    found.iter().map(|at| read_one(at, network, hosts, mtu)).collect()
}

fn read_one(
    at: &At<'_>,
    network: &NetworkConfig,
    hosts: u32,
    mtu: Option<u16>,
) -> Result<LoadConfig, PlanError> {
    let fields = at.object(match network {
        NetworkConfig::Cable { .. } => "law share octets peak burst counted",
        NetworkConfig::Ring { .. } => "law share octets peak burst",
        _ => "law share octets peak burst to reserved",
    })?;
    let share = fields.get("share")?.real(0.0, 1.0)?;
    let law = fields.get("law")?;
    let pattern = match law.value.as_str() {
        Some("constant") => Pattern::Constant,
        Some("poisson") => Pattern::Poisson,
        Some("on-off") => Pattern::OnOff {
            peak: fields.get("peak")?.real(share, 1.0)?,
            burst: fields.get("burst")?.real(1.0, 1e6)?,
        },
        _ => return Err(law.refuse("constant, poisson or on-off")),
    };
    if !matches!(pattern, Pattern::OnOff { .. })
        && let Some(key) = fields.optional("peak").or_else(|| fields.optional("burst"))
    {
        return Err(key.refuse("nothing here: only a generator of law on-off has it"));
    }
    let most = mtu.map_or(65_535, |mtu| u64::from(mtu).saturating_sub(HEADERS));
    let octets = fields.get("octets")?.integer(1, most)?;
    let mut found =
        LoadConfig { pattern, share, octets: Bytes::new(octets), to: 0, reserved: false, whole: true };
    match network {
        NetworkConfig::Cable { .. } => {
            // With preamble and gap, or without.
            found.whole = fields.get("counted")?.one_of(&[("line", true), ("frame", false)])?;
        }
        NetworkConfig::Ring { .. } => {}
        _ => {
            found.to = fields.get("to")?.integer(0, u64::from(hosts) - 1)? as u32;
            found.reserved = fields.get("reserved")?.truth()?;
        }
    }
    Ok(found)
}

/// A generator at work.
pub(super) struct Load {
    /// When its units come to be; none where its share is 0.
    generator: Option<Generator>,
    way: Way,
    sent: u64,
}

#[derive(Clone, Copy)]
enum Way {
    Cells { link: LinkId, vc: Vc, count: u32 },
    Frames { from: u32, octets: Bytes },
}

/// What a unit of a generator takes of the medium of a network.
fn unit_of(config: &Config, load: &LoadConfig) -> Span {
    let encapsulation = config.socket.as_ref().map_or(0, |socket| socket.encapsulation.get());
    let octets = Bytes::new(load.octets.get() + HEADERS + encapsulation);
    match config.network {
        NetworkConfig::BackToBack(link) | NetworkConfig::Switch(link, _) => {
            let cell = link.rate.time_for(link.cell_bits).unwrap_or(Span::MAX);
            cell * u64::from(cells(load.octets))
        }
        NetworkConfig::Cable { rate, .. } => {
            let cable = csma_cd::Config { rate, ..csma_cd::Config::TEN };
            let gap = rate.time_for(cable.gap).unwrap_or(Span::ZERO);
            let preamble = rate.time_for(cable.preamble).unwrap_or(Span::ZERO);
            let frame = cable.time_of(octets) - preamble;
            if load.whole { preamble + frame + gap } else { frame }
        }
        // Load is refused there when the network is read.
        NetworkConfig::Gige(_) | NetworkConfig::Switches => Span::ZERO,
        NetworkConfig::Ring { rate, .. } => {
            timed_token::Config { rate, ..timed_token::Config::FDDI }.time_of(octets)
        }
    }
}

fn cells(octets: Bytes) -> u32 {
    // As long as a PDU of AAL 5 may be: 16 bits.
    (aal5::pdu_octets(octets.get() as u16) / PAYLOAD_OCTETS) as u32
}

impl Lan {
    /// Starts the generators of the network, each at a random time of its first interval.
    pub(super) fn start_load(&mut self) {
        for number in 0..self.config.load.len() as u32 {
            let config = self.config.load[number as usize];
            let unit = unit_of(&self.config, &config);
            let way = match self.config.network {
                NetworkConfig::Switch(link, _) => {
                    let (vc, port) = (Vc::new(0, FIRST_VCI), self.size() + number);
                    let links = 2 * port;
                    let up = self.add_link(links, link, Port::Element { element: 0, port });
                    let down = self.add_link(links + 1, link, Port::Adapter(config.to));
                    // The host has circuits from every other one below these.
                    let into = Vc::new(0, FIRST_VCI + self.size() as u16 + number as u16);
                    if let Some(switch) = self.switches.first_mut() {
                        switch.add_port(down);
                        let class = u8::from(!config.reserved);
                        let branch = Branch { port: config.to, vc: into, class };
                        switch.connect(port, vc, branch).expect("a channel of its own on either link");
                    }
                    Way::Cells { link: up, vc, count: cells(config.octets) }
                }
                _ => {
                    let encapsulation =
                        self.config.socket.as_ref().map_or(Bytes::new(0), |socket| socket.encapsulation);
                    let octets = config.octets + Bytes::new(HEADERS) + encapsulation;
                    Way::Frames { from: self.size() + 2 * number, octets }
                }
            };
            let stream = self.stream(&format!("load {number}/arrivals"));
            let generator = (config.share > 0.0).then(|| Generator::new(config.law(unit), stream));
            if let Some(generator) = &generator {
                self.core.at(generator.next(), LanEvent::Load(number));
            }
            self.loads.push(Load { generator, way, sent: 0 });
        }
    }

    /// A generator sends a unit.
    pub(super) fn load_due(&mut self, number: u32) {
        let now = self.core.now();
        let load = &mut self.loads[number as usize];
        let Some(generator) = &mut load.generator else { return };
        generator.advance();
        let next = generator.next();
        load.sent += 1;
        match load.way {
            Way::Cells { link, vc, count } => {
                for index in 0..count {
                    let cell = Cell {
                        vc,
                        pdu: PduId::NONE,
                        index,
                        marks: Marks::NONE.with(Marks::LAST, index + 1 == count),
                        trail: SegmentId::NONE,
                    };
                    self.core.send(link, cell);
                }
            }
            Way::Frames { from, octets } => {
                if let Some(medium) = &mut self.medium {
                    medium.advance(now);
                    medium.offer(now, from, from + 1, LOAD_PACKET, octets);
                    self.medium_due();
                }
            }
        }
        self.core.at(next, LanEvent::Load(number));
    }

    /// Units that each generator has sent, in the order of the configuration.
    #[must_use]
    pub fn generated(&self) -> Vec<u64> {
        self.loads.iter().map(|load| load.sent).collect()
    }

    /// Whether something is under way besides load and what else hosts do.
    pub(super) fn has_work(&self) -> bool {
        let aside = if self.loads.is_empty() { 0 } else { self.core.carrying() + self.generating() };
        self.core.future.pending() > self.endless + aside
            || (aside > 0
                && (self.core.pdus.live() > 0 || (self.medium.is_some() && !self.packets.is_empty())))
    }

    /// Events that generators wait for.
    fn generating(&self) -> usize {
        self.loads.iter().filter(|load| load.generator.is_some()).count()
    }
}

/// The packet of every frame of load.
pub(super) const LOAD_PACKET: u32 = u32::MAX;

#[cfg(test)]
mod tests;
