//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/fabric.rs"]
mod fabric;
#[path = "../../../fuzz/checks/lan.rs"]
mod lan;
#[path = "../../../fuzz/checks/model.rs"]
mod model;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/service.rs"]
mod service;

#[test]
fn model_holds_for_any_input() {
    mutated::check_corpus("model", model::check);
}

#[test]
fn a_local_network_holds_for_any_input() {
    mutated::check_corpus("lan", lan::check);
}

#[test]
fn a_network_of_switches_holds_for_any_input() {
    mutated::check_corpus("fabric", fabric::check);
}

#[test]
fn ports_that_categories_share_hold_for_any_input() {
    mutated::check_corpus("service", service::check);
}
