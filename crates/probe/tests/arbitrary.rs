//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/probe_spec.rs"]
mod probe_spec;

#[test]
fn probe_spec_holds_for_any_input() {
    mutated::check_corpus("probe_spec", probe_spec::check);
}
