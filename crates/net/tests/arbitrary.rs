//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/lan.rs"]
mod lan;
#[path = "../../../fuzz/checks/model.rs"]
mod model;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/service.rs"]
mod service;
#[path = "../../../fuzz/checks/sessions.rs"]
mod sessions;

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
    mutated::check_corpus("sessions", sessions::check);
}

#[test]
fn ports_that_categories_share_hold_for_any_input() {
    mutated::check_corpus("service", service::check);
}
