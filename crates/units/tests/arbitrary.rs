//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/units.rs"]
mod units;

#[test]
fn units_holds_for_any_input() {
    mutated::check_corpus("units", units::check);
}
