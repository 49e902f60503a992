//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/wire_spec.rs"]
mod wire_spec;

#[test]
fn wire_spec_holds_for_any_input() {
    mutated::check_corpus("wire_spec", wire_spec::check);
}
