//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/aal34_machine.rs"]
mod aal34_machine;
#[path = "../../../fuzz/checks/aal5_machine.rs"]
mod aal5_machine;
#[path = "../../../fuzz/checks/abr_machine.rs"]
mod abr_machine;
#[path = "../../../fuzz/checks/direct_machine.rs"]
mod direct_machine;
#[path = "../../../fuzz/checks/input.rs"]
mod input;
#[path = "../../../fuzz/checks/ip_machine.rs"]
mod ip_machine;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/pcaal_machine.rs"]
mod pcaal_machine;
#[path = "../../../fuzz/checks/sscop_machine.rs"]
mod sscop_machine;
#[path = "../../../fuzz/checks/tcp_machine.rs"]
mod tcp_machine;

#[test]
fn aal34_machine_holds_for_any_input() {
    mutated::check_corpus("aal34_machine", aal34_machine::check);
}

#[test]
fn aal5_machine_holds_for_any_input() {
    mutated::check_corpus("aal5_machine", aal5_machine::check);
}

#[test]
fn abr_machine_holds_for_any_input() {
    mutated::check_corpus("abr_machine", abr_machine::check);
}

#[test]
fn ip_machine_holds_for_any_input() {
    mutated::check_corpus("ip_machine", ip_machine::check);
}

#[test]
fn direct_machine_holds_for_any_input() {
    mutated::check_corpus("direct_machine", direct_machine::check);
}

#[test]
fn tcp_machine_holds_for_any_input() {
    mutated::check_corpus("tcp_machine", tcp_machine::check);
}

#[test]
fn sscop_machine_holds_for_any_input() {
    mutated::check_corpus("sscop_machine", sscop_machine::check);
}

#[test]
fn pcaal_machine_holds_for_any_input() {
    mutated::check_corpus("pcaal_machine", pcaal_machine::check);
}
