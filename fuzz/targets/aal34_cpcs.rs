#![no_main]

#[path = "../checks/aal34_cpcs.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
