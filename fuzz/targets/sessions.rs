#![no_main]

#[path = "../checks/sessions.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
