//! Arbitrary octets as RM cells, data and times against both ends of ABR and a switch's port.

use super::input::Input;
use wiretwin_proto::Output;
use wiretwin_proto::abr::{
    ActiveCount, CellRate, Config, Destination, Erica, EricaConfig, Interval, Load, Source, SourceCell,
};
use wiretwin_units::{Cells, SimTime, Span};
use wiretwin_wire::rm::{Rate, Repr};

fn rate(input: &mut Input) -> Rate {
    Rate::from_code(input.word() & 0x7FFF).expect("the reserved bit is clear")
}

/// A cell that no source, switch or destination need have sent.
fn any_cell(input: &mut Input) -> Repr {
    let flags = input.octet();
    Repr {
        backward: flags & 1 != 0,
        becn: flags & 2 != 0,
        congestion: flags & 4 != 0,
        no_increase: flags & 8 != 0,
        request_acknowledge: flags & 16 != 0,
        explicit_rate: rate(input),
        current_cell_rate: rate(input),
        minimum_cell_rate: rate(input),
        ..Repr::default()
    }
}

fn cells_per_s(input: &mut Input) -> CellRate {
    CellRate::new(f64::from(input.word())).expect("finite")
}

/// Panics if a machine does, or a source leaves the bounds of its rate, sends faster than its peak, loses
/// data, names a time that has passed or never stops; or if a port raises an explicit rate.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let config = Config {
        mcr: cells_per_s(&mut input),
        icr: cells_per_s(&mut input),
        rif_halvings: input.octet() % 17,
        rdf_halvings: input.octet() % 17,
        nrm: Cells::new(1 << (input.octet() % 10)),
        tbe: Cells::new(input.word().into()),
        frtt: Span::from_us(input.word().into()),
        cdf_halvings: Some(input.octet() % 8),
        ..Config::new(cells_per_s(&mut input))
    };
    assert_eq!(config.check().is_ok(), Source::new(config).is_ok());
    let Ok(mut source) = Source::new(config) else { return };
    let mut destination = Destination::new();
    let mut port = Erica::new(EricaConfig {
        interval: Interval {
            cells: Some(Cells::new(1 + u64::from(input.octet()))),
            time: Some(Span::from_us(90)),
        },
        load: Load::Averaged(0.8),
        active: ActiveCount::Decayed(0.9),
        measure_rates: input.octet() & 1 != 0,
        ..EricaConfig::new(CellRate::new(353_207.5).expect("a rate"), Cells::new(30))
    })
    .expect("typical parameters");
    let vc = port.add();
    let (mut now, mut offered, mut data, mut last) = (SimTime::ZERO, 0, 0, None);
    for _ in 0..400 {
        if input.is_empty() {
            break;
        }
        now += Span::from_us(input.octet().into()) * u64::from(input.octet());
        source.handle_timeout(now);
        match input.octet() % 7 {
            0 => {
                let cells = u64::from(input.octet());
                source.offer(now, Cells::new(cells));
                offered += cells;
            }
            1 => source.turn(now, any_cell(&mut input)),
            2 => destination.handle_data(input.octet() & 1 != 0),
            3 => destination.limit(Some(cells_per_s(&mut input))),
            4 => port.handle_guaranteed(Cells::new(input.word().into())),
            5 => {
                let mut turned = destination.handle_forward(&any_cell(&mut input));
                let before = turned.explicit_rate.cells_per_s();
                port.handle_backward(vc, &mut turned);
                assert!(turned.explicit_rate.cells_per_s() <= before, "a port only lowers a rate");
                source.handle_backward(now, &turned);
            }
            _ => source.handle_backward(now, &any_cell(&mut input)),
        }
        port.handle_timeout(now, Cells::new(input.octet().into()));
        let mut stopped = false;
        for _ in 0..4 {
            match source.poll_output() {
                Output::Transmit(cell) => {
                    data += u64::from(cell == SourceCell::Data);
                    if let SourceCell::Forward(forward) = cell {
                        port.handle_forward(vc, &forward);
                    }
                    if !matches!(cell, SourceCell::TaggedForward(_)) {
                        let apart = last.map(|last| now.saturating_since(last));
                        let least = config.pcr.interval();
                        assert!(apart.is_none_or(|apart| least.is_some_and(|least| apart >= least)));
                        last = Some(now);
                    }
                    port.handle_cell(now, vc, Cells::new(3));
                }
                Output::Timeout(due) => {
                    assert!(due.is_none_or(|due| due > now), "a time that has passed");
                    stopped = true;
                    break;
                }
                _ => {}
            }
        }
        assert!(stopped, "outputs without an end");
        assert!(source.allowed() >= config.mcr && source.allowed() <= config.pcr, "a rate out of its bounds");
        assert_eq!(data + source.waiting().get(), offered, "data was lost");
        assert!(port.fair_share() <= port.target());
    }
}
