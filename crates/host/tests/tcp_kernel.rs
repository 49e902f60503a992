//! Our TCP against the kernel's, octet by octet.
//!
//! A TAP device in a network namespace of the test's own joins the two: on its one side are the kernel's
//! sockets, on its other our machine, and between them a network that loses, doubles, delays and damages
//! frames as a seeded generator says. Connections run in parallel, opened and closed from either end, and
//! both ends compare every octet with what must come. The namespace goes with its thread.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wiretwin_host::{Tap, TapOptions};
use wiretwin_proto::tcp::{
    Config, Congestion, Counters, Endpoint, Event, Nagle, Read, Reason, Segment, SeqNumber, Setup, State,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::ipv4::{self, Ends, Protocol};
use wiretwin_wire::tcp as wire;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ETHERNET_OCTETS: usize = 14;
const IP_OCTETS: usize = 20;
const DATA_OFFSET_AT: usize = 12;
/// How long one seed may take: 7 s alone on two cores, three times that beside a build.
const LIMIT: Duration = Duration::from_secs(60);

/// Of what the network does; each seed with a device of its own.
const SEEDS: [u64; 4] = [1_995, 1_996, 1_998, 2_000];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn per_mille(&mut self, chance: u64) -> bool {
        self.next() % 1_000 < chance
    }
}

/// The octet at a place of the stream of one end of a connection.
fn octet(connection: usize, from_kernel: bool, place: usize) -> u8 {
    let seed = (connection as u64) << 1 | u64::from(from_kernel);
    Random(seed.wrapping_mul(0x1234_5678_9abc_def1) ^ (place as u64 >> 3)).next().to_le_bytes()[place & 7]
}

fn octets(connection: usize, from_kernel: bool, places: std::ops::Range<usize>) -> Vec<u8> {
    places.map(|place| octet(connection, from_kernel, place)).collect()
}

/// What one connection is to do.
#[derive(Clone)]
struct Plan {
    name: &'static str,
    config: Config,
    /// Our end opens it.
    we_open: bool,
    /// Our end writes all and closes at once; otherwise it closes after the kernel has.
    we_close_first: bool,
    from_us: usize,
    from_kernel: usize,
}

fn plans() -> Vec<Plan> {
    let modern = Config { work: false, ..Config::linux_modern() };
    let small = Bytes::new(8_192);
    let configs = [
        ("linux_modern", modern.clone()),
        (
            "newreno, no options",
            Config {
                congestion: Congestion::NewReno,
                sack: false,
                timestamps: None,
                window_scaling: false,
                nagle: Nagle::AnyOutstanding,
                ..modern.clone()
            },
        ),
        ("small buffers", modern.with_buffers(small, small).expect("within the limit")),
        ("linux22", Config { work: false, ..Config::linux22() }),
    ];
    let mut plans = Vec::new();
    for (name, config) in configs {
        for we_open in [false, true] {
            for we_close_first in [false, true] {
                let (from_us, from_kernel) = if we_open { (500_000, 100_001) } else { (100_001, 500_000) };
                plans.push(Plan {
                    name,
                    config: config.clone(),
                    we_open,
                    we_close_first,
                    from_us,
                    from_kernel,
                });
            }
        }
    }
    plans
}

/// The kernel's end of a connection: writes its octets, reads and compares ours.
fn kernel_end(mut stream: TcpStream, connection: usize, plan: &Plan) -> Result<(), String> {
    let fail = |what: &str, error: std::io::Error| format!("kernel's end of {connection}: {what}: {error}");
    stream.set_read_timeout(Some(LIMIT)).map_err(|error| fail("limit", error))?;
    stream.set_write_timeout(Some(LIMIT)).map_err(|error| fail("limit", error))?;
    let mut reader = stream.try_clone().map_err(|error| fail("clone", error))?;
    let (from_us, from_kernel, we_close_first) = (plan.from_us, plan.from_kernel, plan.we_close_first);
    let reading = std::thread::spawn(move || {
        let (mut buffer, mut place) = (vec![0; 16_384], 0);
        loop {
            let count = reader.read(&mut buffer).map_err(|error| format!("reading at {place}: {error}"))?;
            if count == 0 {
                return if place == from_us { Ok(()) } else { Err(format!("end at {place} of {from_us}")) };
            }
            if buffer[..count] != octets(connection, false, place..place + count)[..] {
                return Err(format!("wrong octets in {place}..{}", place + count));
            }
            place += count;
        }
    });
    let mut place = 0;
    while place < from_kernel {
        let to = from_kernel.min(place + 10_000);
        let written = stream.write(&octets(connection, true, place..to));
        place += written.map_err(|error| fail("writing", error))?;
    }
    let join = |reading: std::thread::JoinHandle<Result<(), String>>| match reading.join() {
        Ok(result) => result.map_err(|error| format!("kernel's end of {connection}: {error}")),
        Err(_) => Err(format!("kernel's end of {connection}: its reader panicked")),
    };
    if we_close_first {
        join(reading)?;
        stream.shutdown(Shutdown::Write).map_err(|error| fail("shutdown", error))
    } else {
        stream.shutdown(Shutdown::Write).map_err(|error| fail("shutdown", error))?;
        join(reading)
    }
}

/// Our end of a connection.
struct OurEnd {
    plan: Plan,
    machine: Endpoint,
    port: u16,
    kernel_port: u16,
    /// What came of the kernel's stream, with gaps.
    came: Vec<u8>,
    delivered: usize,
    written: usize,
    ended: bool,
    shut: bool,
    deadline: Option<SimTime>,
    closed: Option<Reason>,
}

impl OurEnd {
    /// Whether all was sent and acknowledged, and all received.
    fn is_done(&self) -> bool {
        self.ended && matches!(self.machine.state(), State::TimeWait | State::Closed)
    }
}

/// A frame on its way, by the time at which it arrives.
#[derive(Default)]
struct Wire {
    flying: BTreeMap<(Instant, u64), Vec<u8>>,
    count: u64,
}

/// What the network has done.
#[derive(Debug, Default)]
struct Faults {
    lost: u64,
    doubled: u64,
    delayed: u64,
    damaged: u64,
}

struct Net {
    tap: Tap,
    start: Instant,
    random: Random,
    to_kernel: Wire,
    to_us: Wire,
    faults: [Faults; 2],
    ends: Vec<OurEnd>,
    identification: u16,
}

impl Net {
    fn now(&self) -> SimTime {
        SimTime::ZERO + Span::from_ns(self.start.elapsed().as_nanos() as u64)
    }

    /// Puts a frame on the wire, with what the network does to it.
    fn carry(&mut self, mut frame: Vec<u8>, to_kernel: bool) {
        let faults = &mut self.faults[usize::from(to_kernel)];
        let mut copies = 1;
        if self.random.per_mille(20) {
            faults.lost += 1;
            return;
        }
        if self.random.per_mille(20) {
            faults.doubled += 1;
            copies = 2;
        }
        if self.random.per_mille(5) {
            // One bit behind the IP header, which the checksum of TCP always finds; not of the data offset,
            // which the kernel looks at first.
            faults.damaged += copies;
            let first = ETHERNET_OCTETS + IP_OCTETS;
            let place = self.random.next() as usize % (frame.len() - first);
            let place = first + if place == DATA_OFFSET_AT { 0 } else { place };
            frame[place] ^= 1 << (self.random.next() % 8);
        }
        for _ in 0..copies {
            let mut delay = Duration::from_micros(300);
            if self.random.per_mille(50) {
                faults.delayed += 1;
                delay += Duration::from_micros(self.random.next() % 5_000);
            }
            let wire = if to_kernel { &mut self.to_kernel } else { &mut self.to_us };
            wire.count += 1;
            wire.flying.insert((Instant::now() + delay, wire.count), frame.clone());
        }
    }

    /// Takes one frame that is for us.
    fn receive(&mut self, frame: &[u8]) {
        let Ok(packet) = ipv4::Packet::new_checked(&frame[ETHERNET_OCTETS..]) else { return };
        let Ok(ip) = ipv4::Repr::parse(&packet) else { return };
        if ip.protocol != Protocol::TCP || ip.ends.destination != OURS {
            return;
        }
        let payload = packet.payload();
        let Ok(view) = wire::Segment::new_checked(payload) else { return };
        // What is damaged is dropped here, as a kernel drops it.
        let Ok(repr) = wire::Repr::parse(&view, &ip.ends) else { return };
        let Ok(segment) = Segment::from_wire(&repr) else { return };
        let now = self.now();
        let (port, kernel_port) = (repr.destination_port, repr.source_port);
        let Some(index) = self.ends.iter().position(|end| end.port == port) else { return };
        let end = &mut self.ends[index];
        if end.kernel_port == 0 {
            end.kernel_port = kernel_port;
        }
        if end.kernel_port != kernel_port {
            return;
        }
        if let Some(place) = end.machine.place_of(&segment) {
            // What may be kept is kept, before the machine hears of it.
            let first = (place.get() as usize).max(end.delivered);
            let last =
                (place.get() as usize + view.payload().len()).min(end.machine.keeps_to().get() as usize);
            if first < last {
                if end.came.len() < last {
                    end.came.resize(last, 0);
                }
                let skipped = first - place.get() as usize;
                end.came[first..last].copy_from_slice(&view.payload()[skipped..skipped + last - first]);
            }
        }
        end.machine.handle_segment(now, &segment);
        self.drain(index);
    }

    /// Takes what an end puts out, and lets its user go on.
    fn drain(&mut self, index: usize) {
        let now = self.now();
        loop {
            let end = &mut self.ends[index];
            match end.machine.poll_output() {
                Output::Work(work) => panic!("{work:?} where none is to be put out"),
                Output::Transmit(segment) => {
                    let (port, kernel_port) = (end.port, end.kernel_port);
                    let frame = self.frame(index, port, kernel_port, &segment);
                    self.carry(frame, true);
                }
                Output::Deliver(Payload { start, length, .. }) => {
                    let (first, last) = (start.get() as usize, (start.get() + length.get()) as usize);
                    assert_eq!(first, end.delivered, "{}: in order", end.plan.name);
                    assert_eq!(end.came[first..last], octets(index, true, first..last), "{}", end.plan.name);
                    end.delivered = last;
                }
                Output::Event(Event::EndOfStream) => end.ended = true,
                Output::Event(Event::Closed(reason)) => end.closed = Some(reason),
                Output::Event(_) => {}
                Output::Timeout(deadline) => {
                    end.deadline = deadline;
                    if !end.user_goes_on(now) {
                        return;
                    }
                }
            }
        }
    }

    fn frame(&mut self, index: usize, port: u16, kernel_port: u16, segment: &Segment) -> Vec<u8> {
        let tcp = segment.to_wire(port, kernel_port).expect("what the machine makes fits its header");
        let ends = Ends { source: OURS, destination: KERNEL };
        let length = tcp.total_octets();
        let mut frame = vec![0; ETHERNET_OCTETS + IP_OCTETS + length];
        frame[..6].copy_from_slice(&self.tap.address());
        frame[6..12].copy_from_slice(&OUR_MAC);
        frame[12..14].copy_from_slice(&[8, 0]);
        self.identification = self.identification.wrapping_add(1);
        let ip = ipv4::Repr {
            type_of_service: 0,
            identification: self.identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: ipv4::FragmentOffset::ZERO,
            time_to_live: 64,
            protocol: Protocol::TCP,
            ends,
            options: wiretwin_wire::Options::NONE,
            payload_length: length as u16,
        };
        let start = segment.payload.start.get() as usize;
        let text = octets(index, false, start..start + segment.len() as usize);
        let header = ETHERNET_OCTETS + IP_OCTETS + tcp.header_octets();
        frame[header..].copy_from_slice(&text);
        tcp.emit(&ends, &mut frame[ETHERNET_OCTETS + IP_OCTETS..]).expect("as long as it says");
        ip.emit(&mut frame[ETHERNET_OCTETS..]).expect("as long as it says");
        frame
    }

    /// One round: frames, timers, a wait for the next of either.
    fn step(&mut self) {
        let mut buffer = [0; 2_048];
        while let Some(count) = self.tap.try_read(&mut buffer).expect("the device stays") {
            let frame = &buffer[..count];
            if count > ETHERNET_OCTETS + IP_OCTETS && frame[12..14] == [8, 0] && frame[23] == 6 {
                self.carry(frame.to_vec(), false);
            }
        }
        let now = Instant::now();
        while let Some(entry) = self.to_us.flying.first_entry()
            && entry.key().0 <= now
        {
            let frame = entry.remove();
            self.receive(&frame);
        }
        while let Some(entry) = self.to_kernel.flying.first_entry()
            && entry.key().0 <= now
        {
            let frame = entry.remove();
            assert!(self.tap.try_write(&frame).expect("the device stays"), "the kernel takes a frame");
        }
        let time = self.now();
        for index in 0..self.ends.len() {
            if self.ends[index].deadline.is_some_and(|deadline| deadline <= time) {
                self.ends[index].machine.handle_timeout(time);
                self.drain(index);
            }
        }
        let arrivals =
            [&self.to_us, &self.to_kernel].map(|wire| wire.flying.keys().next().map(|&(at, _)| at));
        let timers = self.ends.iter().filter_map(|end| end.deadline).min();
        let timer = timers.map(|at| self.start + Duration::from_nanos(at.since_start().as_ns() + 1_000));
        let next = arrivals.into_iter().chain([timer]).flatten().min();
        let wait =
            next.map_or(Duration::from_millis(20), |next| next.saturating_duration_since(Instant::now()));
        let wait = wait.min(Duration::from_millis(20));
        let timespec = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as i64 };
        let mut fds = [PollFd::from_borrowed_fd(self.tap.as_fd(), PollFlags::IN)];
        // An interrupted wait is as good as one that is over.
        let _ = poll(&mut fds, Some(&timespec));
    }
}

impl OurEnd {
    /// Reads, writes, closes: whether there was anything to do.
    fn user_goes_on(&mut self, now: SimTime) -> bool {
        if let Read::Octets(_) = self.machine.receive(now, Bytes::new(u64::MAX)) {
            return true;
        }
        let left = self.plan.from_us - self.written;
        let open = matches!(self.machine.state(), State::Established | State::CloseWait);
        if left > 0 && open {
            let taken = self.machine.send(now, Bytes::new(left as u64)).expect("it is open").get() as usize;
            self.written += taken;
            return taken > 0;
        }
        if open && !self.shut && (self.plan.we_close_first || self.ended) {
            self.shut = true;
            self.machine.shutdown(now).expect("it is open");
            return true;
        }
        false
    }
}

fn run_command(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {error}", arguments.join(" "));
}

/// A number of the kernel's TCP in this thread's namespace.
fn kernel_counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("proc is mounted");
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let place = names.split(' ').position(|word| word == name).expect("the kernel counts it");
    values.split(' ').nth(place).expect("a value").parse().expect("a number")
}

fn against_the_kernel(seed: u64) {
    let tap =
        Tap::open("wt-tcp0", TapOptions { create: true, mtu: Some(1_500), up: true }).expect("a device");
    run_command(&["addr", "add", "10.99.0.1/24", "dev", "wt-tcp0"]);
    run_command(&["neigh", "replace", "10.99.0.2", "lladdr", "02:00:00:00:00:02", "dev", "wt-tcp0"]);
    let (errors, retransmitted) = (kernel_counter("InCsumErrors"), kernel_counter("RetransSegs"));
    let mut net = Net {
        tap,
        start: Instant::now(),
        random: Random(seed),
        to_kernel: Wire::default(),
        to_us: Wire::default(),
        faults: Default::default(),
        ends: Vec::new(),
        identification: 0,
    };
    let mut kernel = Vec::new();
    for (connection, plan) in plans().into_iter().enumerate() {
        let setup = Setup {
            // Near the wrap of sequence numbers, for some.
            iss: SeqNumber::wrapping(0xffff_0000_u32.wrapping_add(connection as u32 * 7_919)),
            stream: MessageId(0),
            peer_stream: MessageId(1),
            mtu: 1_500,
        };
        let mut machine = Endpoint::new(Arc::new(plan.config.clone()), setup);
        let port = 5_000 + connection as u16;
        let mut kernel_port = 0;
        let of_kernel = plan.clone();
        if plan.we_open {
            let listener = TcpListener::bind((KERNEL, 0)).expect("a port");
            kernel_port = listener.local_addr().expect("a name").port();
            machine.connect(net.now()).expect("a new end is closed");
            kernel.push(std::thread::spawn(move || {
                let (stream, _) = listener.accept().map_err(|error| format!("accept: {error}"))?;
                kernel_end(stream, connection, &of_kernel)
            }));
        } else {
            machine.listen(net.now()).expect("a new end is closed");
            kernel.push(std::thread::spawn(move || {
                let stream = TcpStream::connect((OURS, port))
                    .map_err(|error| format!("kernel's end of {connection}: connect: {error}"))?;
                kernel_end(stream, connection, &of_kernel)
            }));
        }
        net.ends.push(OurEnd {
            plan,
            machine,
            port,
            kernel_port,
            came: Vec::new(),
            delivered: 0,
            written: 0,
            ended: false,
            shut: false,
            deadline: None,
            closed: None,
        });
        net.drain(connection);
    }
    while !(net.ends.iter().all(OurEnd::is_done) && kernel.iter().all(std::thread::JoinHandle::is_finished)) {
        let states = || {
            let of = |end: &OurEnd| {
                format!(
                    "{} {}: {}/{}",
                    end.plan.name,
                    end.machine.state(),
                    end.delivered,
                    end.plan.from_kernel
                )
            };
            net.ends.iter().map(of).collect::<Vec<_>>()
        };
        assert!(net.start.elapsed() < LIMIT, "not done in {LIMIT:?}: {:#?}", states());
        net.step();
    }
    while !net.to_kernel.flying.is_empty() {
        net.step();
    }
    for (connection, kernel) in kernel.into_iter().enumerate() {
        let result = kernel.join().expect("the kernel's end does not panic");
        assert_eq!(result, Ok(()), "connection {connection}");
    }
    let mut all = Counters::default();
    for end in &net.ends {
        assert_eq!(end.delivered, end.plan.from_kernel, "{}", end.plan.name);
        assert_eq!(end.machine.acknowledged().get() as usize, end.plan.from_us, "{}", end.plan.name);
        assert!(matches!(end.closed, None | Some(Reason::Finished)), "{}: {:?}", end.plan.name, end.closed);
        let counters = end.machine.counters();
        all.retransmitted += counters.retransmitted;
        all.fast_retransmits += counters.fast_retransmits;
    }
    // The faults did happen, and were repaired by both.
    assert!(net.faults.iter().all(|faults| faults.lost > 20 && faults.damaged > 0), "{:?}", net.faults);
    assert!(net.faults.iter().all(|faults| faults.doubled > 20 && faults.delayed > 20), "{:?}", net.faults);
    assert!(all.retransmitted > 20 && all.fast_retransmits > 5, "{all:?}");
    assert!(kernel_counter("RetransSegs") - retransmitted > 20);
    // Damaged segments and none besides failed the kernel's checksum; a few it may drop unseen.
    let (failed, damaged) = (kernel_counter("InCsumErrors") - errors, net.faults[1].damaged);
    assert!((damaged * 9 / 10..=damaged).contains(&failed), "{failed} of {damaged}");
    eprintln!("{} connections in {:?}; {:?}; {all:?}", net.ends.len(), net.start.elapsed(), net.faults);
}

#[test]
fn both_stacks_agree_on_every_octet() {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: only this thread, and those that it starts, are in the new namespace.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                let why = std::io::Error::last_os_error();
                assert!(std::env::var_os("CI").is_none(), "no network namespace: {why}");
                eprintln!("skipped: no network namespace: {why}");
                return;
            }
            for seed in SEEDS {
                against_the_kernel(seed);
            }
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
