//! The two ways to let time pass agree in everything; refusals.

use proptest::prelude::*;
use wiretwin_engine::{TraceRecorder, Untraced};
use wiretwin_units::Span;

use super::*;

fn configs() -> impl Strategy<Value = Config> {
    let traffic = prop_oneof![Just(Traffic::Uniform), (1.0..30.0).prop_map(|mean| Traffic::Bursty { mean })];
    let buffer = prop_oneof![Just(None), (0_u32..20).prop_map(Some)];
    (2_u8..=64, traffic, 0.0..=1.0, 0.0..=1.0, buffer, 1000_u64..3_000_000, 0_u64..400, any::<u64>())
        .prop_map(|(ports, traffic, load, urgent, buffer, slot_ps, slots, seed)| Config {
            ports,
            traffic,
            load,
            urgent,
            buffer,
            slot: Span::from_ps(slot_ps),
            slots,
            seed,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn by_event_and_by_slot_the_same_cells_leave_at_the_same_times(config in configs()) {
        let (mut by_event, mut by_slot) = (TraceRecorder::new(), TraceRecorder::new());
        let totals = run_by_event(&config, &mut by_event).unwrap();
        prop_assert_eq!(&totals, &run_by_slot(&config, &mut by_slot).unwrap());
        if let Some(difference) = by_event.first_difference(&by_slot) {
            prop_assert!(false, "{:?}", difference);
        }
        prop_assert_eq!(by_event.digest(), by_slot.digest());
    }

    #[test]
    fn cells_are_conserved(config in configs()) {
        let totals = run_by_slot(&config, &mut Untraced).unwrap();
        prop_assert_eq!(totals.arrived, totals.departed + totals.lost + totals.held);
        prop_assert_eq!(totals.waits.iter().sum::<u64>(), totals.departed);
        if let Some(buffer) = config.buffer {
            prop_assert!(totals.longest <= buffer);
        } else {
            prop_assert_eq!(totals.lost, 0);
        }
    }
}

#[test]
fn a_full_load_to_two_ports_without_contention_never_waits_twice() {
    // One input alone: each of its cells leaves in the slot in which it came.
    let config = Config { ports: 2, load: 1.0, slots: 1000, ..Config::default() };
    let mut switch = OutputQueued::new(&config);
    for slot in 0..10 {
        switch.arrive(slot, 0, Arrival { output: 1, urgent: false });
        assert_eq!(switch.depart(slot, 0), None);
        assert!(switch.depart(slot, 1).is_some());
    }
    assert_eq!((switch.totals().waited, switch.totals().longest), (0, 1));
}

#[test]
fn urgent_cells_go_before_others_and_keep_their_own_order() {
    let mut switch = OutputQueued::new(&Config::default());
    for (input, urgent) in [(3, false), (5, true), (7, false), (9, true)] {
        switch.arrive(0, input, Arrival { output: 2, urgent });
    }
    let order: Vec<_> = (0..5).map(|slot| switch.depart(slot, 2).map(|cell| cell.input)).collect();
    assert_eq!(order, [Some(5), Some(9), Some(3), Some(7), None]);
}

#[test]
fn a_cell_that_finds_no_room_is_lost_and_counted() {
    let mut switch = OutputQueued::new(&Config { buffer: Some(2), ..Config::default() });
    let plain = Arrival { output: 0, urgent: false };
    assert_eq!([0, 1, 2].map(|input| switch.arrive(0, input, plain)), [true, true, false]);
    assert!(switch.depart(0, 0).is_some());
    assert!(switch.arrive(1, 0, Arrival { urgent: true, ..plain }));
    assert_eq!(switch.totals().lost, 1);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |config: Config| run_by_event(&config, &mut Untraced).unwrap_err().to_string();
    let config = Config::default();
    assert_eq!(refused(Config { ports: 1, ..config }), "ports = 1: a switch has 2 to 64");
    assert_eq!(refused(Config { load: 1.5, ..config }), "load = 1.5: allowed are 0 to 1");
    assert_eq!(refused(Config { urgent: f64::NAN, ..config }), "urgent = NaN: allowed are 0 to 1");
    assert_eq!(
        refused(Config { traffic: Traffic::Bursty { mean: 0.5 }, ..config }),
        "bursts of 0.5 cells: at least 1, and finite"
    );
    assert_eq!(refused(Config { slot: Span::from_ps(999), ..config }), "a slot of 999 ps: at least 1 ns");
    assert!(
        refused(Config { slots: u64::MAX, ..config }).starts_with("slots = 18446744073709551615: at most ")
    );
}
