//! What a user may set from outside: environment variables, read when an endpoint is made.

use std::net::Ipv4Addr;
use std::time::Duration;

use wiretwin_host::direct::{Options, Services, Ways, address_of_interface, thresholds};

/// How a rank waits that finds nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Asks again and again while nobody else wants the core; else gives way, or sleeps where all peers are elsewhere.
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

/// `ordinary`, `protected` or `adaptive`.
const SERVICE: &str = "WIRETWIN_DIRECT_SERVICE";
/// The times of the adaptive service in microseconds: `T_M`, `T_m`, from one measurement to the next, `T_L`.
const TIMES: [(&str, u64); 4] = [
    ("WIRETWIN_DIRECT_T_HIGH_US", 2_000),
    ("WIRETWIN_DIRECT_T_LOW_US", 1_000),
    ("WIRETWIN_DIRECT_INTERVAL_US", 5_000),
    ("WIRETWIN_DIRECT_T_LOST_US", 50_000),
];
/// The longest time that a variable may give, in microseconds: one minute.
const LONGEST_US: u64 = 60_000_000;

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
    let mut times = [Duration::ZERO; 4];
    for (time, (name, usual)) in times.iter_mut().zip(TIMES) {
        let value = setting(name).map_or(Ok(usual), |text| {
            let us = text.parse().ok().filter(|us| (1..=LONGEST_US).contains(us));
            us.ok_or_else(|| wrong(name, &text, "1 to 60000000, in us"))
        });
        *time = Duration::from_micros(value?);
    }
    let [high, low, _, lost] = times;
    let services = match setting(SERVICE).as_deref() {
        None | Some("ordinary") => Services::Ordinary,
        Some("protected") => Services::Protected,
        Some("adaptive") if low < high && high < lost => Services::Adaptive(thresholds(times)),
        Some(word @ "adaptive") => {
            return Err(wrong(SERVICE, word, "with T_LOW_US below T_HIGH_US, and that below T_LOST_US"));
        }
        Some(other) => return Err(wrong(SERVICE, other, "ordinary, protected or adaptive")),
    };
    let interface = setting(INTERFACE);
    let ip = match (address_of_interface(interface.as_deref()), &interface) {
        (Some(ip), _) => ip,
        (None, None) => Ipv4Addr::LOCALHOST,
        (None, Some(name)) => {
            return Err(wrong(INTERFACE, name, "an interface that is up and has an IPv4 address"));
        }
    };
    Ok((Options { ip, ways, services, ..Options::default() }, wait))
}
