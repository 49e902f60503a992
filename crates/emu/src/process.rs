//! The wire process: from a specification to the counters at its end.

use std::fs;
use std::path::Path;

use wiretwin_host::{
    PinError, Signals, Tap, TapOptions, die_with_parent, pinned, run_before_all_others, sharp_timers,
    write_line,
};
use wiretwin_net::frame::Wire;

use crate::capture::Capture;
use crate::output;
use crate::pacer::{End, Pacer};
use crate::spec::{PortSpec, WireSpec};

/// Why the process ended early.
struct Stop {
    place: String,
    reason: String,
}

impl Stop {
    fn new(place: impl Into<String>, reason: impl ToString) -> Self {
        Self { place: place.into(), reason: reason.to_string() }
    }
}

/// Runs the wire that the file at `path` specifies; the exit status, 0 only if it ended by a signal
/// or its limit. See `docs/models/wire.md`.
pub fn wire_main(path: &Path) -> i32 {
    match run(path) {
        Ok(()) => 0,
        Err(stop) => {
            // If standard output is closed there is nobody left to tell.
            let _ = write_line(&output::error(&stop.place, &stop.reason));
            1
        }
    }
}

fn run(path: &Path) -> Result<(), Stop> {
    let file = path.display().to_string();
    // Before anything that is to be undone at the end.
    let signals = Signals::catch().map_err(|error| Stop::new("catching signals", error))?;
    let text = fs::read_to_string(path).map_err(|error| Stop::new(&file, error))?;
    let spec = WireSpec::parse(&text).map_err(|error| {
        let key = if error.key.is_empty() { "the whole" } else { &error.key };
        Stop::new(format!("{file}: {key}"), format!("{} is not allowed: {}", error.value, error.allowed))
    })?;
    check_cpus(&spec).map_err(|(key, error)| Stop::new(format!("{file}: {key}"), error))?;
    if spec.die_with_parent {
        die_with_parent().map_err(|error| Stop::new("following the parent process", error))?;
    }
    let wire = Wire::new(spec.wire.clone(), spec.ports.len()).map_err(|error| Stop::new(&file, error))?;
    let taps: Vec<Tap> = spec
        .ports
        .iter()
        .map(|port| open(port, spec.mtu).map_err(|error| Stop::new(format!("port {}", port.name), error)))
        .collect::<Result<_, _>>()?;
    let names: Vec<String> = spec.ports.iter().map(|port| port.name.clone()).collect();
    let cpus: Vec<Option<u32>> = spec.ports.iter().map(|port| port.cpu).collect();
    let mut pacer =
        Pacer::new(wire, taps, &cpus, spec.spin).map_err(|error| Stop::new("watching the devices", error))?;
    // Before this thread goes before others: the one that writes is none of them.
    if let Some(path) = &spec.capture {
        let capture = Capture::begin(path, &names, pacer.elapsed())
            .map_err(|error| Stop::new(format!("{file}: capture"), error))?;
        pacer.capture_to(capture);
    }
    sharp_timers().map_err(|error| Stop::new("asking for sharp timers", error))?;
    if let Some(priority) = spec.priority {
        run_before_all_others(priority).map_err(|error| Stop::new(format!("{file}: priority"), error))?;
    }
    let ready = output::ready(&spec, pacer.devices());
    if spec.priority.is_some() {
        pacer.rest_regularly();
    }
    say(&ready)?;
    let mut unsaid = None;
    let ended = pacer.run(&signals, spec.limit, |pacer| {
        unsaid = unsaid.take().or(say(&output::counters(&spec, pacer, "SIGUSR1")).err());
    });
    let reason = match &ended {
        Ok(End::Signal(signal)) => signal.name().to_owned(),
        Ok(End::Limit) => "limit_s".to_owned(),
        Err(error) => error.to_string(),
    };
    let captured = pacer.stop_capture().map(Capture::end).transpose();
    let missed = captured.as_ref().ok().copied().flatten();
    say(&output::last_counters(&spec, &pacer, &reason, missed))?;
    captured.map_err(|error| Stop::new("capture", error))?;
    if let Some(stop) = unsaid {
        return Err(stop);
    }
    ended.map(drop).map_err(|error| {
        let port = error.port.map(|port| &spec.ports[usize::from(port.0)].name);
        Stop::new(port.map_or_else(|| "the wire".to_owned(), |name| format!("port {name}")), error)
    })
}

/// The first of the ports' cores that this process may not use, with the key that names it.
fn check_cpus(spec: &WireSpec) -> Result<(), (String, PinError)> {
    let allowed = pinned();
    let wrong = |&(_, port): &(usize, &PortSpec)| port.cpu.is_some_and(|cpu| !allowed.contains(&cpu));
    let Some((number, port)) = spec.ports.iter().enumerate().find(wrong) else { return Ok(()) };
    let key = if port.cpu == spec.cpu { "cpu".to_owned() } else { format!("ports[{number}].cpu") };
    let cpu = port.cpu.unwrap_or_default();
    Err((key, PinError { cpu, allowed, reason: None }))
}

fn open(port: &PortSpec, mtu: u32) -> Result<Tap, wiretwin_host::TapError> {
    let options = TapOptions { create: port.create, mtu: port.create.then_some(mtu), up: port.create };
    match &port.netns {
        None => Tap::open(&port.tap, options),
        Some(netns) => Tap::open_in(netns, &port.tap, options),
    }
}

fn say(line: &str) -> Result<(), Stop> {
    write_line(line).map_err(|error| Stop::new("writing to standard output", error))
}
