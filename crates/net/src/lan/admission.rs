//! Reserved bandwidth, and which circuits get it.
//!
//! A circuit asks for a target and says the least that will do. On each link of its path, what is reserved
//! and the target must fit the capacity; else the circuit gets what is left, if that is enough; else it is
//! rejected, and nothing is reserved anywhere (as the Fore interface describes it: target, minimum and what
//! was selected). A circuit that asks for nothing counts nothing and goes behind those that have something.
//!
//! A circuit that has got its rate keeps to it: its sender's adapter spaces its cells. In a switch its cells
//! go before all those of circuits without ([`super::asx100`]), and as no link has more reserved than it
//! carries, nothing that others send slows it down by more than the cell on the line.
//!
//! Choices: a rate counts the 424 bits of a cell, so that the capacity of a link is the rate of its cells
//! times 424 bits; and what counts is the peak rate: mean rate and burst are not looked at. Adapters that
//! cannot space cells (Series-100) are rejected a reservation.

use thiserror::Error;
use wiretwin_msg::fore::Bandwidth;
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Bits, Span};

use super::Lan;
use super::config::{AdapterConfig, HostConfig, NetworkConfig};
use super::core::LinkConfig;
use super::load::LoadConfig;
use crate::json::At;

/// What a circuit asks for. Rates count the 424 bits of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The rate asked for.
    pub target: BitRate,
    /// The least that will do, at most the target; `None` where anything will, also nothing.
    pub minimum: Option<BitRate>,
}

impl Demand {
    /// This rate and no other.
    #[must_use]
    pub const fn exactly(rate: BitRate) -> Self {
        Self { target: rate, minimum: Some(rate) }
    }
}

/// A circuit of a configuration that asks for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rank that sends on it.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// What it asks for.
    pub demand: Demand,
}

/// Why a circuit gets no bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No two different ranks of an ATM network are named.
    #[error("there is no circuit from rank {from} to rank {to}")]
    NoCircuit {
        /// From this rank.
        from: u32,
        /// To that.
        to: u32,
    },
    /// The least is more than the target.
    #[error("the minimum, {minimum}, is more than the target, {target}")]
    Demand {
        /// The target.
        target: BitRate,
        /// The least.
        minimum: BitRate,
    },
    /// The sender's adapter cannot space cells.
    #[error("the adapter of host {host} cannot space cells: bandwidth needs a series-200")]
    Unpaced {
        /// The host.
        host: u32,
    },
    /// A link has too little left.
    #[error(
        "no resources: link {link} carries {capacity}, {} of it are reserved, and {asked} or more are asked for",
        shown(*reserved)
    )]
    NoResources {
        /// The link, by its number.
        link: u32,
        /// What it carries.
        capacity: BitRate,
        /// What is reserved, bit/s; none at all is possible.
        reserved: u64,
        /// The least that would do.
        asked: BitRate,
    },
}

/// A rate that may be nothing, in words.
fn shown(bit_s: u64) -> String {
    BitRate::new(bit_s).map_or("0 bit/s".into(), |rate| rate.to_string())
}

/// What is reserved on each link: the account that call control keeps too.
#[derive(Clone, Debug, Default)]
pub(super) struct Admission {
    ledger: Bandwidth,
}

impl Admission {
    /// The links of an ATM network; none of others.
    pub(super) fn new(network: &NetworkConfig, hosts: usize, generators: usize) -> Self {
        let (link, count) = match network {
            NetworkConfig::BackToBack(link) => (link, 2),
            NetworkConfig::Switch(link, _) => (link, 2 * (hosts + generators)),
            NetworkConfig::Cable { .. }
            | NetworkConfig::Ring { .. }
            | NetworkConfig::Gige(_)
            | NetworkConfig::Switches => {
                return Self::default();
            }
        };
        Self { ledger: Bandwidth::new(vec![capacity(link).get(); count]) }
    }

    /// The account, to be given to whoever keeps it.
    pub(super) const fn ledger_mut(&mut self) -> &mut Bandwidth {
        &mut self.ledger
    }
}

/// Reserves on every link of a path; returns what is granted, `None` where that is nothing.
pub(super) fn grant(
    ledger: &mut Bandwidth,
    path: &[u32],
    demand: Demand,
) -> Result<Option<BitRate>, Refusal> {
    let Demand { target, minimum } = demand;
    if let Some(minimum) = minimum.filter(|minimum| *minimum > target) {
        return Err(Refusal::Demand { target, minimum });
    }
    let least = minimum.map_or(0, BitRate::get);
    let granted = ledger.grant(path, target.get(), least).map_err(|short| Refusal::NoResources {
        link: short.link,
        capacity: BitRate::bit_s(short.capacity_bit_s),
        reserved: short.reserved_bit_s,
        asked: minimum.unwrap_or(target),
    })?;
    Ok(BitRate::new(granted).ok())
}

/// What cells of 424 bits a link carries.
fn capacity(link: &LinkConfig) -> BitRate {
    let cells = u128::from(link.rate.get()) * u128::from(CELL.get());
    let rate = (cells / u128::from(link.cell_bits.get())) as u64;
    // A cell on the line has no fewer bits than a cell, and at most twice as many.
    BitRate::bit_s(rate.max(1))
}

/// The links of a circuit from one station to another.
fn path_of(network: &NetworkConfig, from: u32, to: u32) -> ([u32; 2], usize) {
    match network {
        NetworkConfig::Switch(..) => ([2 * from, 2 * to + 1], 2),
        _ => ([from, from], 1),
    }
}

/// Reads what circuits ask for, and sees whether they get it, in their order, behind generators with
/// reserved bandwidth.
pub(super) fn read(
    top: &At<'_>,
    network: &NetworkConfig,
    hosts: &[HostConfig],
    load: &[LoadConfig],
) -> Result<Vec<Reservation>, PlanError> {
    let count = hosts.len() as u32;
    let mut admission = Admission::new(network, hosts.len(), load.len());
    for (number, generator) in load.iter().enumerate().filter(|(_, one)| one.reserved && one.share > 0.0) {
        let granted = admit_load(admission.ledger_mut(), network, count, number as u32, generator);
        if let Err(refusal) = granted {
            let list = top.get("load")?.list("generators")?;
            return Err(list[number].refuse(&refusal.to_string()));
        }
    }
    let Some(list) = top.optional("reservations") else { return Ok(Vec::new()) };
    if !network.has_cells() {
        return Err(list.refuse("nothing here: only circuits of adapters with cells have reservations"));
    }
    let mut found = Vec::new();
    for at in list.list("reservations")? {
        let fields = at.object("from to target_bit_s minimum_bit_s")?;
        let rank = |key| fields.get(key)?.integer(0, u64::from(count) - 1).map(|rank| rank as u32);
        let target = BitRate::bit_s(fields.get("target_bit_s")?.integer(1_000, 1_000_000_000_000)?);
        let minimum = fields.get("minimum_bit_s")?.integer(0, target.get())?;
        let demand = Demand { target, minimum: BitRate::new(minimum).ok() };
        let one = Reservation { from: rank("from")?, to: rank("to")?, demand };
        let admitted = check(hosts, one).and_then(|()| {
            let (path, links) = path_of(network, one.from, one.to);
            grant(admission.ledger_mut(), &path[..links], demand)
        });
        admitted.map_err(|why| at.refuse(&format!("what is left ({why})")))?;
        if found.iter().any(|other: &Reservation| (other.from, other.to) == (one.from, one.to)) {
            return Err(at.refuse("one reservation for each circuit"));
        }
        found.push(one);
    }
    Ok(found)
}

fn check(hosts: &[HostConfig], one: Reservation) -> Result<(), Refusal> {
    let Reservation { from, to, .. } = one;
    if from == to || from.max(to) as usize >= hosts.len() {
        return Err(Refusal::NoCircuit { from, to });
    }
    match hosts[from as usize].adapter {
        AdapterConfig::Series200 { .. } => Ok(()),
        AdapterConfig::Series100 { .. } => Err(Refusal::Unpaced { host: from }),
        AdapterConfig::Frames => Err(Refusal::NoCircuit { from, to }),
    }
}

/// Reserves for a generator, which sends no faster than its share, or its peak.
fn admit_load(
    ledger: &mut Bandwidth,
    network: &NetworkConfig,
    hosts: u32,
    number: u32,
    load: &LoadConfig,
) -> Result<Option<BitRate>, Refusal> {
    let (path, links) = path_of(network, hosts + number, load.to);
    let capacity = ledger.capacity(path[0]);
    let rate = (capacity as f64 * load.most()) as u64;
    grant(ledger, &path[..links], Demand::exactly(BitRate::bit_s(rate.clamp(1, capacity))))
}

impl Lan {
    /// Admits the generators and circuits of the configuration, which was checked when it was read.
    pub(super) fn admit_all(&mut self) {
        let (network, hosts) = (self.config.network, self.size());
        self.admission = Admission::new(&network, hosts as usize, self.config.load.len());
        for number in 0..self.config.load.len() {
            let load = self.config.load[number];
            if load.reserved && load.share > 0.0 {
                let granted = admit_load(self.admission.ledger_mut(), &network, hosts, number as u32, &load);
                granted.expect("the reader of the configuration has admitted it");
            }
        }
        for number in 0..self.config.reservations.len() {
            let Reservation { from, to, demand } = self.config.reservations[number];
            self.reserve(from, to, demand).expect("the reader of the configuration has admitted it");
        }
    }

    /// Reserves bandwidth for the circuit from one rank to another, in place of what it has. Returns what is
    /// granted: the target or what is left, `None` for nothing.
    ///
    /// # Errors
    /// [`Refusal`]; the circuit keeps what it had then.
    pub fn reserve(&mut self, from: u32, to: u32, demand: Demand) -> Result<Option<BitRate>, Refusal> {
        if !self.config.network.has_cells() {
            return Err(Refusal::NoCircuit { from, to });
        }
        check(&self.config.hosts, Reservation { from, to, demand })?;
        let (path, links) = path_of(&self.config.network, from, to);
        let before = self.circuits[self.circuit_between(from, to) as usize].reserved;
        let mut ledger = self.ledger_mut().clone();
        if let Some(before) = before {
            ledger.release(&path[..links], before.get());
        }
        let granted = grant(&mut ledger, &path[..links], demand)?;
        *self.ledger_mut() = ledger;
        self.give_rate(from, to, granted);
        Ok(granted)
    }

    /// Gives back what the circuit from one rank to another has reserved, if anything.
    pub fn release(&mut self, from: u32, to: u32) {
        let Some(reserved) = self.reserved(from, to) else { return };
        let (path, links) = path_of(&self.config.network, from, to);
        self.ledger_mut().release(&path[..links], reserved.get());
        self.give_rate(from, to, None);
    }

    /// What the circuit from one rank to another has reserved.
    #[must_use]
    pub fn reserved(&self, from: u32, to: u32) -> Option<BitRate> {
        let is_one = self.config.network.has_cells() && from != to && from.max(to) < self.size();
        is_one.then(|| self.circuits[self.circuit_between(from, to) as usize].reserved).flatten()
    }

    fn give_rate(&mut self, from: u32, to: u32, rate: Option<BitRate>) {
        let number = self.circuit_between(from, to) as usize;
        let circuit = &mut self.circuits[number];
        circuit.reserved = rate;
        circuit.spacing = spacing(rate);
        let vc = circuit.vc;
        if let Some(switch) = self.switches.first_mut() {
            switch.set_class(from, vc, u8::from(rate.is_none()));
        }
    }
}

/// The time between two cells of a circuit that has this rate: rounded up, so that it is never faster.
pub(super) fn spacing(rate: Option<BitRate>) -> Span {
    rate.map_or(Span::ZERO, |rate| rate.time_for(CELL).map_or(Span::MAX, |span| span + Span::from_ps(1)))
}

/// A cell, without what a line adds.
const CELL: Bits = Bits::new(424);

#[cfg(test)]
mod tests;
