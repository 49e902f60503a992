#![no_main]

#[path = "../checks/pcaal.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
