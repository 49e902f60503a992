//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/fore.rs"]
mod fore;
#[path = "../../../fuzz/checks/mpi.rs"]
mod mpi;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/pvm_machines.rs"]
mod pvm_machines;
#[path = "../../../fuzz/checks/reliable_root.rs"]
mod reliable_root;
#[path = "../../../fuzz/checks/rpc_machines.rs"]
mod rpc_machines;
#[path = "../../../fuzz/checks/via.rs"]
mod via;

#[test]
fn pvm_machines_hold_for_any_input() {
    mutated::check_corpus("pvm_machines", pvm_machines::check);
}

#[test]
fn rpc_machines_hold_for_any_input() {
    mutated::check_corpus("rpc_machines", rpc_machines::check);
}

#[test]
fn nics_hold_for_any_calls() {
    mutated::check_corpus("via", via::check);
}

#[test]
fn mpi_libraries_hold_for_any_input() {
    mutated::check_corpus("mpi", mpi::check);
}

#[test]
fn the_fore_interface_holds_for_any_calls_and_messages() {
    mutated::check_corpus("fore", fore::check);
}

#[test]
fn a_tree_brings_everything_to_all_of_its_leaves_whatever_is_lost() {
    mutated::check_corpus("reliable_root", reliable_root::check);
}
