//! Admission and push-out; what cannot be is rejected by name.

use wiretwin_proto::abr::{CellRate, Config};
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::super::network::cell_time;
use super::super::{Category, CircuitReport, Plan, PortPlan};
use super::{LINE, available, circuit, constant, port};
use crate::load::Law;
use crate::port::PushOut;

fn run(plan: &Plan, ms: u64) -> Vec<CircuitReport> {
    let mut network = plan.build(3).expect("a network that can be");
    network.run_until(SimTime::ZERO + Span::from_ms(ms));
    network.audit().expect("the books balance");
    network.circuits().map(|(_, report)| report).collect()
}

fn cbr(mbit_s: u64) -> Category {
    Category::Guaranteed(BitRate::mbit_s(mbit_s))
}

#[test]
fn ubr_gives_way_to_the_others_and_nothing_else_does() {
    let mbit_s = BitRate::mbit_s;
    let circuits = vec![
        circuit("ubr", &[0], Category::Ubr, constant(mbit_s(100))),
        circuit("cbr", &[0], cbr(30), constant(mbit_s(30))),
        circuit("abr", &[0], available(mbit_s(50)), constant(mbit_s(50))),
    ];
    let lost = |push_out| {
        let ports = vec![PortPlan { push_out, buffer: Cells::new(200), ..port(LINE, 30) }];
        let reports = run(&Plan { ports, circuits: circuits.clone(), tasks: vec![] }, 300);
        reports.iter().map(|report| report.lost).collect::<Vec<_>>()
    };
    for push_out in [PushOut::Last, PushOut::First] {
        let [ubr, 0, 0] = lost(push_out)[..] else { panic!("{:?}", lost(push_out)) };
        assert!(ubr > 1000);
    }
    let [ubr, cbr, abr] = lost(PushOut::None)[..] else { panic!("three circuits") };
    assert!(ubr > 1000 && cbr > 0 && abr > 0, "{ubr} {cbr} {abr}");
}

#[test]
fn what_is_guaranteed_must_fit_the_line() {
    let sends = |name: &str, mbit_s| circuit(name, &[0], cbr(mbit_s), constant(BitRate::mbit_s(1)));
    let plan = |circuits| Plan { ports: vec![port(LINE, 30)], circuits, tasks: vec![] };
    assert!(plan(vec![sends("a", 100), sends("b", 49)]).build(1).is_ok());
    let refused = plan(vec![sends("a", 100), sends("b", 50)]).build(1).err().expect("more than the line");
    assert_eq!(
        refused.to_string(),
        "circuits.b.category is 50000000 bit/s; allowed: at most 49760000 bit/s, which port 0 has left of 149.76 \
         Mbit/s"
    );
    let minimum =
        Config { mcr: CellRate::new(353_000.0).expect("a rate"), ..Config::new(super::cells_per_s(LINE)) };
    let abr = circuit("abr", &[0], Category::Abr(minimum), None);
    assert!(plan(vec![sends("a", 1), abr]).build(1).is_err(), "a minimum rate is guaranteed too");
}

#[test]
fn what_cannot_be_is_refused_with_its_place_and_what_is_allowed() {
    let good = circuit("c", &[0], Category::Ubr, constant(BitRate::mbit_s(1)));
    let plan = |port: PortPlan, circuit: super::super::CircuitPlan| Plan {
        ports: vec![port],
        circuits: vec![circuit],
        tasks: vec![],
    };
    let here = || port(LINE, 30);
    let cases = [
        (
            plan(PortPlan { buffer: Cells::new(0), ..here() }, good.clone()),
            "ports[0].buffer is 0 cells; allowed: 1 cell or more",
        ),
        (
            plan(port(LINE, 0), good.clone()),
            "ports[0].erica is interval cells is 0: allowed is 1 or more; allowed: rates that can be",
        ),
        (
            plan(here(), super::super::CircuitPlan { path: vec![1], ..good.clone() }),
            "circuits.c.path is 1; allowed: ports 0 to 0, each at most once",
        ),
        (
            plan(here(), super::super::CircuitPlan { path: vec![], ..good.clone() }),
            "circuits.c.path is 0 ports; allowed: 1 to 255",
        ),
        (
            plan(here(), super::super::CircuitPlan { law: None, ..good.clone() }),
            "circuits.c.source is greedy; allowed: a rate, on a circuit that is not abr",
        ),
        (
            plan(PortPlan { erica: None, ..here() }, circuit("c", &[0], available(LINE), None)),
            "circuits.c.category is abr; allowed: any but abr: port 0 tells no rates",
        ),
        (
            plan(
                here(),
                circuit(
                    "c",
                    &[0],
                    Category::Ubr,
                    Some(Law::OnOff {
                        interval: cell_time(BitRate::bit_s(1)),
                        on: Span::from_us(1),
                        off: Span::from_us(1),
                    }),
                ),
            ),
            "circuits.c.source.on is 1 us; allowed: a thousandth of the time of a cell, 424 s, or more",
        ),
        (Plan::default(), "ports is 0; allowed: 1 to 4096"),
    ];
    for (plan, said) in cases {
        assert_eq!(plan.build(1).err().expect(said).to_string(), said);
    }
}
