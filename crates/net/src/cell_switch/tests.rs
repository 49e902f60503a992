//! By event and by slot a switch is the same in everything; what cannot be.

use proptest::prelude::*;
use wiretwin_engine::{TraceRecorder, Untraced};
use wiretwin_units::Span;

use super::*;
use crate::cell_switch;

#[path = "../../benches/cells/by_event.rs"]
mod by_event;
use by_event::run_by_event;

fn configs() -> impl Strategy<Value = Config> {
    (2_u8..=64, 0.0..=1.0, 1000_u64..3_000_000, 0_u64..400, any::<u64>()).prop_map(
        |(ports, load, slot_ps, slots, seed)| Config {
            ports,
            load,
            slot: Span::from_ps(slot_ps),
            slots,
            seed,
        },
    )
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
        prop_assert_eq!(totals.arrived, totals.departed + totals.held);
    }
}

#[test]
fn a_full_load_to_two_ports_without_contention_never_waits_twice() {
    // One input alone: each of its cells leaves in the slot in which it came.
    let config = Config { ports: 2, load: 1.0, slots: 1000, ..Config::default() };
    let mut switch = OutputQueued::new(&config);
    for slot in 0..10 {
        switch.arrive(slot, 0, 1);
        assert_eq!(switch.depart(slot, 0), None);
        assert!(switch.depart(slot, 1).is_some());
    }
    assert_eq!(switch.totals().waited, 0);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |config: Config| run_by_event(&config, &mut Untraced).unwrap_err().to_string();
    let config = Config::default();
    assert_eq!(refused(Config { ports: 1, ..config }), "ports is 1; allowed: 2 to 64");
    assert_eq!(refused(Config { load: 1.5, ..config }), "load is 1.5; allowed: 0 to 1");
    assert_eq!(
        refused(Config { slot: Span::from_ps(999), ..config }),
        "slot is 999 ps; allowed: 1 ns or more"
    );
    assert!(
        refused(Config { slots: u64::MAX, ..config })
            .starts_with("slots is 18446744073709551615; allowed: at most ")
    );
}
