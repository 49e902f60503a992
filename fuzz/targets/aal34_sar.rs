#![no_main]

#[path = "../checks/aal34_sar.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
