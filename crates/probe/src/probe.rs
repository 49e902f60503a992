//! From a specification to its samples.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use wiretwin_host::vipl::Reach;
use wiretwin_host::{
    Clock, Meeting, MeetingError, Mesh, Mvich, MvichOptions, Pair, PcaalOptions, PcaalStream, Shim,
    ShimError, ShmStream, SocketStream, Stream, TogetherCall, Traffic, UdpStream, arm_watchdog, crossing,
    crowded, default_interrupts, die_with_parent, disarm_watchdog, drive, pcaal, pin, pinned, shm, tcp,
    tie_to, unix, worked, write_line,
};
use wiretwin_measure::{Deed, Doing, Follower, Group, Leader, Settings, Step, Together};
use wiretwin_prog::{Comm, CommError, Rank, Reference};
use wiretwin_units::{Bytes, Span};

use crate::output;
use crate::program::Program;
use crate::spec::{Layer, Pin, Seat, ShimLayer, Spec, Task};
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

impl From<ShimError> for Stop {
    fn from(error: ShimError) -> Self {
        Self { place: error.place, reason: error.reason }
    }
}

/// The share of the life of a probe that may go into meeting its peer.
const MEETING_SHARE: f64 = 0.5;
/// What a layer has counted by the end, if it counts.
type Counted<C> = fn(&C) -> Option<Value>;

const fn uncounted<C>(_: &C) -> Option<Value> {
    None
}

/// The longest to wait for a peer.
const LONGEST_MEETING: Duration = Duration::from_secs(10);
/// So long both ranks are together on another core first, and then on the one that they share.
const SETTLE: Duration = Duration::from_millis(75);
/// The longest to wait for a peer that has just been heard of, to see how far away it is.
const CROSSING_LIMIT: Duration = Duration::from_millis(200);

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
    if let Layer::Shim(layer) = &spec.layer {
        return through_shim(&spec, layer, &file);
    }
    let Some(seat) = spec.seat else { unreachable!("only a layer behind a shim goes without") };
    pin_rank(&spec.pin, seat.rank, &file)?;
    let meeting = Meeting {
        directory: &spec.directory,
        rank: seat.rank,
        size: seat.size,
        limit: spec.limit.mul_f64(MEETING_SHARE).min(LONGEST_MEETING),
    };
    match &spec.task {
        Task::Measure(schedule) => measure_layer(&spec, &meeting, schedule),
        Task::Run(program) => run_program(&spec, &meeting, program),
        Task::Together(steps) => together_on_layer(&spec, &meeting, steps),
    }
}

/// Ties this rank to its core, if it has one.
fn pin_rank(pins: &Pin, rank: u32, file: &str) -> Result<(), Stop> {
    let cpu = match pins {
        Pin::Free => return Ok(()),
        Pin::One(cpu) => *cpu,
        Pin::Each(cores) => cores[rank as usize % cores.len()],
    };
    pin(cpu).map_err(|error| Stop::new(format!("{file}: pin_cpu"), error))
}

fn through_shim(spec: &Spec, layer: &ShimLayer, file: &str) -> Result<(), Stop> {
    // Before the library starts threads of its own, which then share the core.
    let variable = layer.rank_variable.as_ref().and_then(|name| std::env::var(name).ok());
    let told = spec.seat.map(|seat| seat.rank).or_else(|| variable?.parse().ok());
    if let Some(rank) = told {
        pin_rank(&spec.pin, rank, file)?;
    }
    let mut options = vec![
        ("directory".to_owned(), spec.directory.display().to_string()),
        ("limit_s".to_owned(), spec.limit.as_secs_f64().to_string()),
    ];
    if let Some(seat) = spec.seat {
        options.push(("rank".to_owned(), seat.rank.to_string()));
        options.push(("size".to_owned(), seat.size.to_string()));
    }
    options.extend(layer.options.iter().cloned());
    let mut shim = Shim::open(&layer.path, &options, spec.limit)?;
    let outcome = on_shim(spec, layer, file, told, &mut shim);
    if outcome.is_err() {
        // A library whose peers are gone may wait for them for ever when it is closed.
        std::mem::forget(shim);
    }
    outcome
}

fn on_shim(
    spec: &Spec,
    layer: &ShimLayer,
    file: &str,
    told: Option<u32>,
    shim: &mut Shim,
) -> Result<(), Stop> {
    let seat = Seat { rank: shim.rank().0, size: shim.size() };
    if let Some(asked) = spec.seat
        && asked != seat
    {
        let place = format!("opening the layer through {}", layer.path.display());
        let reason = format!(
            "it made this rank {} of {}: {} of {} was asked for",
            seat.rank, seat.size, asked.rank, asked.size
        );
        return Err(Stop::new(place, reason));
    }
    if told != Some(seat.rank) {
        pin_rank(&spec.pin, seat.rank, file)?;
    }
    let place = || format!("what {} reports", layer.path.display());
    let effective: Map<String, Value> =
        serde_json::from_str(shim.effective()).map_err(|error| Stop::new(place(), error))?;
    match &spec.task {
        Task::Measure(_) if seat.size != 2 => {
            let reason = format!("{} ranks were started: a measurement has 2", seat.size);
            Err(Stop::new(format!("{file}: schedule"), reason))
        }
        Task::Measure(schedule) => measure(spec, schedule, seat.rank, shim, effective, uncounted),
        Task::Run(program) => run_on(spec, program, shim, uncounted),
        Task::Together(_) if seat.size < 2 => {
            Err(Stop::new(format!("{file}: together"), "one rank was started: it takes 2 or more"))
        }
        Task::Together(steps) => together(spec, steps, shim, effective, by_library),
    }
}

/// What a library has of its own.
fn by_library(shim: &mut Shim, deed: &Deed, times_ns: &mut [u64]) -> Result<(), CommError> {
    let Deed { what, verify, bytes, messages, busy } = *deed;
    shim.together(&TogetherCall { name: what.name(), verify, bytes, messages, busy }, times_ns)
}

/// What a layer without a library has of its own.
fn by_nobody<C>(_: &mut C, deed: &Deed, _: &mut [u64]) -> Result<(), CommError> {
    unreachable!("{} was rejected when the specification was read", deed.what.name())
}

fn together_on_layer(spec: &Spec, meeting: &Meeting<'_>, steps: &[Step<Together>]) -> Result<(), Stop> {
    match &spec.layer {
        Layer::Tcp(options) => on_streams(spec, meeting, steps, tcp(meeting, options, spec.limit)?),
        Layer::Unix(options) => on_streams(spec, meeting, steps, unix(meeting, options, spec.limit)?),
        Layer::Shm(wait) => on_streams(spec, meeting, steps, shm(meeting, *wait, spec.limit)?),
        Layer::Pcaal(options) => on_streams(spec, meeting, steps, pcaal(meeting, options, spec.limit)?),
        Layer::Mvich(options) => {
            let mut mvich = Mvich::meet(meeting, options, spec.limit)?;
            let effective = mvich_effective(&mvich, options);
            together(spec, steps, &mut mvich, effective, by_nobody)
        }
        Layer::Udp { .. } => unreachable!("rejected when the specification was read"),
        Layer::Shim(_) => unreachable!("has gone another way"),
    }
}

fn on_streams<S: Stream>(
    spec: &Spec,
    meeting: &Meeting<'_>,
    steps: &[Step<Together>],
    streams: Vec<Option<S>>,
) -> Result<(), Stop> {
    let mut effective = Map::new();
    if let Some(stream) = streams.iter().flatten().next() {
        effective.insert("wait".into(), stream.wait().name().into());
    }
    let mut mesh = Mesh::new(Rank(meeting.rank), streams, spec.limit);
    together(spec, steps, &mut mesh, effective, by_nobody)
}

fn together<C: Comm>(
    spec: &Spec,
    steps: &[Step<Together>],
    comm: &mut C,
    mut effective: Map<String, Value>,
    doing: Doing<C>,
) -> Result<(), Stop> {
    let seat = Seat { rank: comm.rank().0, size: comm.size() };
    effective.insert("cores".into(), pinned().into());
    let mut group = Group::new(doing);
    if seat.rank > 0 {
        crossed(spec, seat, "before");
        drive(group.serve(comm)).map_err(|error| lost(&format!("rank {}", seat.rank), &error))?;
        crossed(spec, seat, "after");
        return Ok(());
    }
    say(&output::hello(spec.layer.name(), effective, Clock::start().quality()))?;
    let before = crossed(spec, seat, "before");
    for (number, step) in steps.iter().enumerate() {
        let name = step.kind.name();
        let samples = drive(group.step(comm, step))
            .map_err(|error| lost(&format!("together[{number}], {name}"), &error))?;
        say(&output::samples(number, name, step, &samples.slowest, None))?;
        say(&output::samples(number, &format!("{name}_mean"), step, &samples.mean, None))?;
    }
    drive(group.quit(comm)).map_err(|error| lost("ending", &error))?;
    let after = crossed(spec, seat, "after");
    say(&output::done(before.zip(after), None))
}

fn measure_layer(spec: &Spec, meeting: &Meeting<'_>, schedule: &[Step]) -> Result<(), Stop> {
    let rank = meeting.rank;
    match &spec.layer {
        Layer::Tcp(options) => {
            let stream = only(tcp(meeting, options, spec.limit)?);
            let mut effective = socket_effective(&stream)?;
            effective.insert("nodelay".into(), stream.nodelay().into());
            effective.insert("congestion".into(), stream.congestion().into());
            measure(spec, schedule, rank, &mut Pair::new(Rank(rank), stream), effective, uncounted)
        }
        Layer::Unix(options) => {
            let stream = only(unix(meeting, options, spec.limit)?);
            let effective = socket_effective(&stream)?;
            measure(spec, schedule, rank, &mut Pair::new(Rank(rank), stream), effective, uncounted)
        }
        Layer::Shm(wait) => {
            let stream = only(shm(meeting, *wait, spec.limit)?);
            let mut effective = Map::new();
            effective.insert("wait".into(), stream.wait().name().into());
            effective.insert("ring_bytes".into(), ShmStream::ring_bytes().into());
            measure(spec, schedule, rank, &mut Pair::new(Rank(rank), stream), effective, uncounted)
        }
        Layer::Udp { socket, loss_limit } => {
            let stream = UdpStream::meet(meeting, socket, spec.limit, *loss_limit)?;
            let (send, receive) =
                stream.buffers().map_err(|error| Stop::new("reading socket buffers", error))?;
            let mut effective = Map::new();
            effective.insert("wait".into(), socket.wait.name().into());
            effective.insert("send_buffer_bytes".into(), send.into());
            effective.insert("receive_buffer_bytes".into(), receive.into());
            for (name, limit) in
                [("least_loss_limit_ms", loss_limit.least), ("loss_limit_ms", loss_limit.most)]
            {
                effective.insert(name.into(), (limit.as_secs_f64() * 1000.0).into());
            }
            measure(spec, schedule, rank, &mut Pair::new(Rank(rank), stream), effective, uncounted)
        }
        Layer::Pcaal(options) => {
            let stream = only(pcaal(meeting, options, spec.limit)?);
            let effective = pcaal_effective(&stream, options)?;
            measure(spec, schedule, rank, &mut Pair::new(Rank(rank), stream), effective, |pair| {
                Some(output::cells([pair.stream().counters()]))
            })
        }
        Layer::Mvich(options) => {
            let mut mvich = Mvich::meet(meeting, options, spec.limit)?;
            let effective = mvich_effective(&mvich, options);
            measure(spec, schedule, rank, &mut mvich, effective, uncounted)
        }
        Layer::Shim(_) => unreachable!("has gone another way"),
    }
}

fn run_program(spec: &Spec, meeting: &Meeting<'_>, program: &Program) -> Result<(), Stop> {
    match &spec.layer {
        Layer::Tcp(options) => run_on_mesh(spec, program, meeting, tcp(meeting, options, spec.limit)?),
        Layer::Unix(options) => run_on_mesh(spec, program, meeting, unix(meeting, options, spec.limit)?),
        Layer::Shm(wait) => run_on_mesh(spec, program, meeting, shm(meeting, *wait, spec.limit)?),
        Layer::Pcaal(options) => {
            let streams = pcaal(meeting, options, spec.limit)?;
            let mut mesh = Mesh::new(Rank(meeting.rank), streams, spec.limit);
            run_on(spec, program, &mut mesh, |mesh| {
                Some(output::cells(mesh.streams().map(PcaalStream::counters)))
            })
        }
        Layer::Mvich(options) => {
            run_on(spec, program, &mut Mvich::meet(meeting, options, spec.limit)?, uncounted)
        }
        Layer::Udp { .. } => unreachable!("rejected when the specification was read"),
        Layer::Shim(_) => unreachable!("has gone another way"),
    }
}

fn run_on_mesh<S: Stream>(
    spec: &Spec,
    program: &Program,
    meeting: &Meeting<'_>,
    streams: Vec<Option<S>>,
) -> Result<(), Stop> {
    run_on(spec, program, &mut Mesh::new(Rank(meeting.rank), streams, spec.limit), uncounted)
}

fn run_on<C: Comm>(spec: &Spec, program: &Program, inner: &mut C, counted: Counted<C>) -> Result<(), Stop> {
    let seat = Seat { rank: inner.rank().0, size: inner.size() };
    let mut comm = Timed::new(&mut *inner);
    let place = || format!("rank {} of {}", seat.rank, program.name());
    drive(barrier(&mut comm)).map_err(|error| lost("meeting before the program", &error))?;
    let before = crossed(spec, seat, "before");
    drive(barrier(&mut comm)).map_err(|error| lost("meeting before the program", &error))?;
    let split = comm.begin();
    let outcome =
        drive(program.run(&mut comm, &Reference::default())).map_err(|error| Stop::new(place(), error))?;
    let split = comm.since(&split);
    say(&output::rank(spec.layer.name(), seat, program.name(), &outcome, &split))?;
    // Nobody leaves while others still send to him.
    drive(barrier(&mut comm)).map_err(|error| lost("meeting after the program", &error))?;
    let after = crossed(spec, seat, "after");
    say(&output::done(before.zip(after), counted(inner)))
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

fn pcaal_effective(stream: &PcaalStream, options: &PcaalOptions) -> Result<Map<String, Value>, Stop> {
    let refuse = |error| Stop::new("reading what the sockets are set to", error);
    let (send, receive) = stream.buffers().map_err(refuse)?;
    let ms = |time: Duration| Value::from(time.as_secs_f64() * 1000.0);
    let mut effective = Map::new();
    effective.insert("wait".into(), stream.wait().name().into());
    effective.insert("send_buffer_bytes".into(), send.into());
    effective.insert("receive_buffer_bytes".into(), receive.into());
    effective.insert("dscp".into(), stream.classes().map_err(refuse)?.to_vec().into());
    effective.insert("clocks".into(), if stream.clocks_are_apart() { "two" } else { "one" }.into());
    effective.insert("interval_ms".into(), ms(options.interval));
    effective.insert("loss_ms".into(), ms(options.loss));
    effective.insert("high_ms".into(), ms(options.high));
    effective.insert("low_ms".into(), ms(options.low));
    if options.faults.loss_percent > 0 {
        effective.insert("fault_loss_percent".into(), options.faults.loss_percent.into());
    }
    Ok(effective)
}

fn mvich_effective(mvich: &Mvich, options: &MvichOptions) -> Map<String, Value> {
    let policy = &options.policy;
    let mut effective = Map::new();
    effective.insert("wait".into(), mvich.wait().name().into());
    if let Reach::Udp(ip) | Reach::Packet(ip) = options.reach {
        effective.insert("address".into(), ip.to_string().into());
    }
    effective.insert("rendezvous_bytes".into(), policy.rendezvous_from.map(Bytes::get).into());
    effective.insert("registrations".into(), policy.registrations.into());
    if let Some(flow) = policy.flow {
        effective.insert("buffers".into(), flow.buffers.into());
        effective.insert("reserve".into(), flow.reserve.into());
        effective.insert("return_after".into(), flow.return_after.into());
        effective.insert("buffer_bytes".into(), flow.buffer.get().into());
    }
    effective
}

fn measure<C: Comm>(
    spec: &Spec,
    schedule: &[Step],
    rank: u32,
    comm: &mut C,
    mut effective: Map<String, Value>,
    counted: Counted<C>,
) -> Result<(), Stop> {
    effective.insert("cores".into(), pinned().into());
    let quality = Clock::start().quality();
    let settings = Settings {
        clock_cost: Span::from_ps((quality.cost_ns * 1000.0).ceil() as u64),
        lossy: spec.layer.lossy(),
        worked,
    };
    let own = pinned();
    let moves = |together: bool| move_ranks(spec, &own, together);
    let seat = Seat { rank, size: 2 };
    if rank == 1 {
        crossed(spec, seat, "before");
        drive(Follower::new(settings).serve(comm, moves)).map_err(|error| lost("serving rank 0", &error))?;
        crossed(spec, seat, "after");
        return Ok(());
    }
    say(&output::hello(spec.layer.name(), effective, quality))?;
    let before = crossed(spec, seat, "before");
    let mut leader = Leader::new(settings);
    let mut are_together = false;
    for (number, step) in schedule.iter().enumerate() {
        if step.kind.on_one_core() && (before.is_none() || spec.pin.shared().is_none()) {
            continue; // they have none in common
        }
        if step.kind.on_one_core() != are_together {
            are_together = !are_together;
            drive(leader.order_move(comm, are_together)).map_err(|error| lost("moving", &error))?;
            moves(are_together);
        }
        let before = traffic(spec)?;
        let samples = drive(leader.step(comm, step, number as u64))
            .map_err(|error| lost(&format!("schedule[{number}]"), &error))?;
        let carried = before.zip(traffic(spec)?).map(|(before, after)| after.since(&before));
        say(&output::samples(number, step.kind.name(), step, &samples, carried))?;
    }
    if are_together {
        drive(leader.order_move(comm, false)).map_err(|error| lost("moving", &error))?;
        moves(false);
    }
    drive(leader.quit(comm)).map_err(|error| lost("ending", &error))?;
    let after = crossed(spec, seat, "after");
    say(&output::done(before.zip(after), counted(comm)))
}

/// Moves this rank to the core that both share, and tells its library that ranks are more than cores; or back.
///
/// A kernel that shares cores between groups of threads gives less of one to a group that has just loaded another: so
/// both ranks are together on another core first.
fn move_ranks(spec: &Spec, own: &[u32], together: bool) {
    let Some((first, last)) = spec.pin.shared().filter(|_| together) else {
        // It was there before.
        let _ = tie_to(own);
        return;
    };
    crowded();
    for cpu in [last, first] {
        let _ = tie_to(&[cpu]);
        let begun = Instant::now();
        while begun.elapsed() < SETTLE {
            std::hint::spin_loop();
        }
    }
}

/// How far ranks 0 and 1 are apart just now, in nanoseconds; nothing if they do not share the
/// directory's memory, which is no fault.
fn crossed(spec: &Spec, seat: Seat, when: &str) -> Option<f64> {
    if seat.rank > 1 || seat.size < 2 {
        return None;
    }
    let file = spec.directory.join(format!("crossing-{when}"));
    crossing(&file, seat.rank == 0, CROSSING_LIMIT).ok().flatten()
}

/// What the interface that is watched has carried so far.
fn traffic(spec: &Spec) -> Result<Option<Traffic>, Stop> {
    let read = |name: &String| Traffic::of(name).map_err(|error| Stop::new("interface", error));
    spec.interface.as_ref().map(read).transpose()
}

fn lost(place: &str, error: &CommError) -> Stop {
    Stop::new(place, error)
}

fn say(line: &str) -> Result<(), Stop> {
    write_line(line).map_err(|error| Stop::new("writing to standard output", error))
}
