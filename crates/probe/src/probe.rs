//! From a specification to its samples.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use wiretwin_host::{
    Clock, Meeting, MeetingError, Mesh, Pair, ShmStream, SocketStream, Stream, UdpStream, arm_watchdog,
    default_interrupts, die_with_parent, disarm_watchdog, drive, pin, pinned, shm, tcp, unix, write_line,
};
use wiretwin_measure::{Follower, Leader, Settings, Step};
use wiretwin_prog::{CommError, Rank};
use wiretwin_units::Span;

use crate::output;
use crate::program::Program;
use crate::spec::{Layer, Spec, Task};
use crate::timed::{Timed, barrier};

/// Why a probe ended early.
struct Stop {
    place: String,
    reason: String,
}

impl Stop {
    fn new(place: impl Into<String>, reason: impl ToString) -> Self {
        Self { place: place.into(), reason: reason.to_string() }
    }
}

impl From<MeetingError> for Stop {
    fn from(error: MeetingError) -> Self {
        Self { place: error.place, reason: error.reason }
    }
}

/// The share of the life of a probe that may go into meeting its peer.
const MEETING_SHARE: f64 = 0.5;
/// The longest to wait for a peer.
const LONGEST_MEETING: Duration = Duration::from_secs(10);

/// Runs the probe that the file at `path` specifies; the exit status, 0 only if all was done.
///
/// Takes over the process: the parent's death, `SIGINT`, `SIGTERM` and the limit end it.
pub fn probe_main(path: &Path) -> i32 {
    let outcome = run(path);
    disarm_watchdog();
    match outcome {
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
    default_interrupts();
    die_with_parent().map_err(|error| Stop::new("following the parent process", error))?;
    let text = fs::read_to_string(path).map_err(|error| Stop::new(&file, error))?;
    let spec = Spec::parse(&text).map_err(|error| {
        let place = if error.key.is_empty() { file.clone() } else { format!("{file}: {}", error.key) };
        Stop::new(place, error.reason)
    })?;
    let last_words = output::error("limit_s", &format!("not done after {} s", spec.limit.as_secs_f64()));
    arm_watchdog(spec.limit, &last_words).map_err(|error| Stop::new("setting the time limit", error))?;
    if let Some(cpu) = spec.pin_cpu {
        pin(cpu).map_err(|error| Stop::new(format!("{file}: pin_cpu"), error))?;
    }
    let meeting = Meeting {
        directory: &spec.directory,
        rank: spec.rank,
        size: spec.size,
        limit: spec.limit.mul_f64(MEETING_SHARE).min(LONGEST_MEETING),
    };
    match &spec.task {
        Task::Measure(schedule) => measure_layer(&spec, &meeting, schedule),
        Task::Run(program) => run_program(&spec, &meeting, program),
    }
}

fn measure_layer(spec: &Spec, meeting: &Meeting<'_>, schedule: &[Step]) -> Result<(), Stop> {
    match &spec.layer {
        Layer::Tcp(options) => {
            let stream = only(tcp(meeting, options, spec.limit)?);
            let mut effective = socket_effective(&stream)?;
            effective.insert("nodelay".into(), stream.nodelay().into());
            effective.insert("congestion".into(), stream.congestion().into());
            measure(spec, schedule, stream, effective)
        }
        Layer::Unix(options) => {
            let stream = only(unix(meeting, options, spec.limit)?);
            let effective = socket_effective(&stream)?;
            measure(spec, schedule, stream, effective)
        }
        Layer::Shm(wait) => {
            let stream = only(shm(meeting, *wait, spec.limit)?);
            let mut effective = Map::new();
            effective.insert("wait".into(), stream.wait().name().into());
            effective.insert("ring_bytes".into(), ShmStream::ring_bytes().into());
            measure(spec, schedule, stream, effective)
        }
        Layer::Udp { socket, loss_limit } => {
            let stream = UdpStream::meet(meeting, socket, spec.limit, *loss_limit)?;
            let (send, receive) =
                stream.buffers().map_err(|error| Stop::new("reading socket buffers", error))?;
            let mut effective = Map::new();
            effective.insert("wait".into(), socket.wait.name().into());
            effective.insert("send_buffer_bytes".into(), send.into());
            effective.insert("receive_buffer_bytes".into(), receive.into());
            effective.insert("loss_limit_ms".into(), (loss_limit.as_secs_f64() * 1000.0).into());
            measure(spec, schedule, stream, effective)
        }
    }
}

fn run_program(spec: &Spec, meeting: &Meeting<'_>, program: &Program) -> Result<(), Stop> {
    match &spec.layer {
        Layer::Tcp(options) => run_on(spec, program, tcp(meeting, options, spec.limit)?),
        Layer::Unix(options) => run_on(spec, program, unix(meeting, options, spec.limit)?),
        Layer::Shm(wait) => run_on(spec, program, shm(meeting, *wait, spec.limit)?),
        Layer::Udp { .. } => unreachable!("refused when the specification was read"),
    }
}

fn run_on<S: Stream>(spec: &Spec, program: &Program, streams: Vec<Option<S>>) -> Result<(), Stop> {
    let mut comm = Timed::new(Mesh::new(Rank(spec.rank), streams, spec.limit));
    let place = || format!("rank {} of {}", spec.rank, program.name());
    drive(barrier(&mut comm)).map_err(|error| lost("meeting before the program", &error))?;
    let split = comm.begin();
    let outcome = drive(program.run(&mut comm)).map_err(|error| Stop::new(place(), error))?;
    let split = comm.since(split);
    say(&output::rank(spec, program.name(), &outcome, &split))?;
    // Nobody leaves while others still send to him.
    drive(barrier(&mut comm)).map_err(|error| lost("meeting after the program", &error))?;
    say(&output::done())
}

/// The one connection of a pair.
fn only<S>(connections: Vec<Option<S>>) -> S {
    connections.into_iter().flatten().next().expect("two ranks have met, so there is a connection")
}

fn socket_effective(stream: &SocketStream) -> Result<Map<String, Value>, Stop> {
    let (send, receive) = stream.buffers().map_err(|error| Stop::new("reading socket buffers", error))?;
    let mut effective = Map::new();
    effective.insert("wait".into(), stream.wait().name().into());
    effective.insert("send_buffer_bytes".into(), send.into());
    effective.insert("receive_buffer_bytes".into(), receive.into());
    Ok(effective)
}

fn measure<S: Stream>(
    spec: &Spec,
    schedule: &[Step],
    stream: S,
    mut effective: Map<String, Value>,
) -> Result<(), Stop> {
    effective.insert("cores".into(), pinned().into());
    let quality = Clock::start().quality();
    let settings = Settings {
        clock_cost: Span::from_ps((quality.cost_ns * 1000.0).ceil() as u64),
        lossy: spec.layer.lossy(),
    };
    let mut pair = Pair::new(Rank(spec.rank), stream);
    if spec.rank == 1 {
        return drive(Follower::new(settings).serve(&mut pair))
            .map_err(|error| lost("serving rank 0", &error));
    }
    say(&output::hello(spec.layer.name(), effective, quality))?;
    let mut leader = Leader::new(settings);
    for (number, step) in schedule.iter().enumerate() {
        let samples = drive(leader.step(&mut pair, step, number as u64))
            .map_err(|error| lost(&format!("schedule[{number}]"), &error))?;
        say(&output::samples(number, step, &samples))?;
    }
    drive(leader.quit(&mut pair)).map_err(|error| lost("ending", &error))?;
    say(&output::done())
}

fn lost(place: &str, error: &CommError) -> Stop {
    Stop::new(place, error)
}

fn say(line: &str) -> Result<(), Stop> {
    write_line(line).map_err(|error| Stop::new("writing to standard output", error))
}
