//! What a user may set from outside: environment variables, read when an endpoint is made.

use std::net::Ipv4Addr;

use wiretwin_host::direct::{Options, Ways, address_of_interface};

/// How a rank waits that finds nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As [`Wait::Yield`] where this host has more ranks than cores, else as [`Wait::Spin`].
    Auto,
    /// Asks again and again.
    Spin,
    /// Asks again and again for some microseconds, and then lets others have the core each time.
    Yield,
}

/// Which ways to peers may be taken: `any`, `shm`, `packet` or `udp`.
const WAYS: &str = "WIRETWIN_DIRECT_WAYS";
/// The interface whose address others reach this host at.
const INTERFACE: &str = "WIRETWIN_DIRECT_INTERFACE";
/// `auto`, `spin` or `yield`.
const WAIT: &str = "WIRETWIN_DIRECT_WAIT";

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the variables say, or the first of them that cannot be, with what is allowed.
pub(crate) fn read() -> Result<(Options, Wait), String> {
    let wrong = |name: &str, value: &str, allowed: &str| format!("{name}={value}: allowed is {allowed}");
    let ways = match setting(WAYS).as_deref() {
        None | Some("any") => Ways::Any,
        Some("shm") => Ways::SharedMemory,
        Some("packet") => Ways::Packet,
        Some("udp") => Ways::Datagrams,
        Some(other) => return Err(wrong(WAYS, other, "any, shm, packet or udp")),
    };
    let wait = match setting(WAIT).as_deref() {
        None | Some("auto") => Wait::Auto,
        Some("spin") => Wait::Spin,
        Some("yield") => Wait::Yield,
        Some(other) => return Err(wrong(WAIT, other, "auto, spin or yield")),
    };
    let interface = setting(INTERFACE);
    let ip = match (address_of_interface(interface.as_deref()), &interface) {
        (Some(ip), _) => ip,
        (None, None) => Ipv4Addr::LOCALHOST,
        (None, Some(name)) => {
            return Err(wrong(INTERFACE, name, "an interface that is up and has an IPv4 address"));
        }
    };
    Ok((Options { ip, ways, ..Options::default() }, wait))
}
