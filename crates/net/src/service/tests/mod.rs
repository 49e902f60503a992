//! Networks of services: rates that are fair, contracts that are kept, tasks that lose nothing.

mod contracts;
mod rates;
mod tasks;

use wiretwin_proto::abr::{Config, EricaConfig};
use wiretwin_units::{BitRate, Cells, Span};

use super::network::{cell_time, cells_per_s};
use super::{Category, CircuitPlan, PortPlan, Reserve};
use crate::load::Law;
use crate::port::PushOut;

/// The payload of OC-3c.
const LINE: BitRate = BitRate::bit_s(149_760_000);

/// A port with a large buffer and explicit rates of every so many cells.
fn port(rate: BitRate, cells: u64) -> PortPlan {
    PortPlan {
        rate,
        buffer: Cells::new(20_000),
        push_out: PushOut::Last,
        efci: None,
        becn: None,
        // The aim counts as reached up to a load of 1.02: closer than the usual 1.1.
        erica: Some(EricaConfig { equality: 0.02, ..EricaConfig::new(cells_per_s(rate), Cells::new(cells)) }),
        reserve: Reserve::Guaranteed,
        delay: Span::from_us(20),
    }
}

fn circuit(name: &str, path: &[usize], category: Category, law: Option<Law>) -> CircuitPlan {
    CircuitPlan { name: name.into(), path: path.to_vec(), category, law, access: Span::from_us(5) }
}

/// A source of this rate.
fn constant(rate: BitRate) -> Option<Law> {
    Some(Law::Constant { interval: cell_time(rate) })
}

/// A circuit of available rate whose peak is this line.
fn available(rate: BitRate) -> Category {
    Category::Abr(Config::new(cells_per_s(rate)))
}
