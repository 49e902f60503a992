//! What a program is told when processes end or stop, memory goes, or files are closed under the library.

mod c;

use std::env;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wiretwin_host::drive;
use wiretwin_msg::via::conformance::Consumer;
use wiretwin_msg::via::{
    AddressSegment, DataSegment, Descriptor, ErrorCode, MemoryAttributes, MemoryHandle, Operation, Place,
    QueueKind, Reliability, ViAttributes, ViHandle, ViState, ViplError, status,
};
use wiretwin_units::{Bytes, Span};

use c::C;

const CHILD: &str = "WIRETWIN_TEST_VIPL_BROKEN";
const LIMIT: Duration = Duration::from_secs(30);
/// The most that may pass before a dead process is heard of.
const HEARD: Duration = Duration::from_secs(3);
const PATIENCE: Option<Span> = Some(Span::from_s(20));
/// A message that names where its data are.
const LONG: u32 = 64 << 10;

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This test once more, as another process, and a socket to it.
fn child(test: &str, device: &str) -> (Running, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("two sockets");
    ours.set_read_timeout(Some(LIMIT)).expect("a limit above nothing");
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, device);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    (Running(command.spawn().expect("it starts")), ours)
}

/// The device and the socket to its parent, of a child.
fn parent() -> Option<(String, UnixStream)> {
    let device = env::var(CHILD).ok()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    Some((device, UnixStream::from(socket)))
}

/// A process with a VI that is connected, and a receive.
struct End {
    c: C,
    vi: ViHandle,
    data: DataSegment,
    place: Place,
}

impl End {
    fn connected(device: &str, other: UnixStream, level: Reliability, first: bool) -> Self {
        Self::of(device, other, level, first, LONG)
    }

    /// The same, whose receive is as long as this.
    fn of(device: &str, other: UnixStream, level: Reliability, first: bool, length: u32) -> Self {
        let mut c = C::open(device, other, false);
        let ptag = c.create_ptag().expect("a tag");
        let data = c.allocate_registered(length as usize, ptag).expect("memory");
        let descriptors = c.allocate_registered(256, ptag).expect("memory");
        let attributes = ViAttributes {
            reliability: level,
            max_transfer: Bytes::new(length.into()),
            qos: 0,
            ptag,
            enable_rdma_write: true,
            enable_rdma_read: false,
            send_cq: None,
            receive_cq: None,
        };
        let vi = c.create_vi(attributes).expect("a VI");
        let place = Place { address: descriptors.address, handle: descriptors.handle };
        c.post(vi, QueueKind::Receive, place, &Descriptor::new(&[data])).expect("a receive");
        let (ours, theirs): (&[u8], &[u8]) = if first { (b"a", b"b") } else { (b"b", b"a") };
        c.connect_peer_request(vi, ours, theirs, PATIENCE).expect("asked");
        drive(c.connect_peer_wait(vi)).expect("connected");
        Self { c, vi, data, place }
    }

    /// The codes that the error handler is told, from the next error on.
    fn codes(&mut self) -> Vec<ErrorCode> {
        drive(self.c.turn()).expect("an error");
        self.c.take_errors().iter().map(|error| error.code).collect()
    }

    fn state(&mut self) -> ViState {
        self.c.query_vi(self.vi).expect("a VI").0
    }
}

/// A process that is killed is heard of by the other end over this device.
fn killed(test: &str, device: &str) {
    if let Some((device, socket)) = parent() {
        let mut told = socket.try_clone().expect("a socket");
        let _end = End::connected(&device, socket, Reliability::UnreliableDelivery, false);
        told.write_all(&[1]).expect("the parent");
        std::thread::park_timeout(LIMIT);
        return;
    }
    let device = format!("{device}:k{}", std::process::id());
    let (mut running, socket) = child(test, &device);
    let mut told = socket.try_clone().expect("a socket");
    let mut end = End::connected(&device, socket, Reliability::UnreliableDelivery, true);
    told.read_exact(&mut [0]).expect("the child is connected");
    running.0.kill().expect("it is killed");
    let began = Instant::now();
    let waited = drive(end.c.wait(end.vi, QueueKind::Receive, PATIENCE)).expect("it is flushed");
    assert_eq!(waited.outcome.status & status::ERRORS, status::FLUSHED_ERROR);
    assert_eq!(end.codes(), [ErrorCode::ConnectionLost]);
    assert!(began.elapsed() < HEARD, "heard of after {:?}", began.elapsed());
    assert_eq!(end.state(), ViState::Error);
}

#[test]
fn a_process_that_is_killed_is_heard_of_at_once() {
    killed("a_process_that_is_killed_is_heard_of_at_once", "shm");
}

#[test]
fn a_process_that_is_killed_is_heard_of_at_once_over_datagrams() {
    killed("a_process_that_is_killed_is_heard_of_at_once_over_datagrams", "udp@lo");
}

/// Whether the kernel lets this process read the memory of its parent, where this octet lies.
fn reads_parent(address: u64) -> bool {
    let mut octet = 0_u8;
    let ours = libc::iovec { iov_base: (&raw mut octet).cast(), iov_len: 1 };
    let theirs = libc::iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: the first range is the variable; the kernel looks at the second.
    let came =
        unsafe { libc::process_vm_readv(libc::getppid(), &raw const ours, 1, &raw const theirs, 1, 0) };
    came == 1
}

/// Of a level: what goes is a message, and no RDMA write.
const MESSAGE: u8 = 0x80;

/// What a process is told when data that an RDMA write, or a message, names cannot be fetched: none of them, or the
/// second half. False where the kernel lets no process read another's memory, and all goes through the ring.
fn unfetched(level: Reliability, half: bool, message: bool) -> bool {
    let device = format!("shm:u{}{}{}{}", level as u8, u8::from(half), u8::from(message), std::process::id());
    let (running, socket) = child("data_that_cannot_be_fetched_are_told_of", &device);
    let process = libc::pid_t::try_from(running.0.id()).expect("a process");
    let mut socket_too = socket.try_clone().expect("a socket");
    let octet = level as u8 | if message { MESSAGE } else { 0 };
    let mut asked = vec![octet];
    asked.extend((&raw const octet as u64).to_le_bytes());
    socket_too.write_all(&asked).expect("the child");
    let mut reads = [0];
    socket_too.read_exact(&mut reads).expect("whether it can read");
    if reads == [0] {
        return false;
    }
    let mut end = End::connected(&device, socket, level, true);
    let mut there = [0; 12];
    socket_too.read_exact(&mut there).expect("where its memory is");
    let remote = AddressSegment {
        address: u64::from_le_bytes(*there.first_chunk().expect("eight octets")),
        handle: MemoryHandle(u32::from_le_bytes(*there.last_chunk().expect("four octets"))),
    };
    // SAFETY: memory of its own, which is given back below; the other process is stopped until then.
    unsafe {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), LONG as usize, access, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let ptag = end.c.query_vi(end.vi).expect("a VI").1.ptag;
        let attributes = MemoryAttributes { ptag, enable_rdma_write: false, enable_rdma_read: false };
        let handle = end.c.register(memory as u64, LONG as usize, attributes).expect("memory");
        let mut status = 0;
        assert_eq!(libc::kill(process, libc::SIGSTOP), 0);
        assert_eq!(libc::waitpid(process, &raw mut status, libc::WUNTRACED), process);
        let from = DataSegment { address: memory as u64, handle, length: LONG };
        let write = match message {
            true => Descriptor::new(&[from]),
            false => Descriptor::rdma(Operation::RdmaWrite, remote, &[from]),
        };
        let place = Place { address: end.place.address + 128, ..end.place };
        end.c.post(end.vi, QueueKind::Send, place, &write).expect("posted");
        let gone = if half { LONG as usize / 2 } else { 0 };
        assert_eq!(libc::munmap(memory.add(gone), LONG as usize - gone), 0);
        assert_eq!(libc::kill(process, libc::SIGCONT), 0);
    }
    let mut codes = [0xff; 4];
    let count = socket_too.read(&mut codes).expect("the codes that it was told");
    if message {
        let told = u32::from_le_bytes(codes);
        let expected = if half { status::PARTIAL_ERROR } else { status::TRANSPORT_ERROR };
        assert_eq!(told & status::ERRORS, expected, "{level:?}, half {half}");
        return true;
    }
    let expected: &[ErrorCode] = match (level.is_reliable(), half) {
        (true, _) => &[ErrorCode::RdmaTransport, ErrorCode::ConnectionLost],
        (false, false) => &[ErrorCode::RdmaWriteData],
        (false, true) => &[ErrorCode::RdmaWriteAbort],
    };
    let expected: Vec<u8> = expected.iter().map(|code| *code as u8).collect();
    assert_eq!(&codes[..count], expected, "{level:?}, half {half}");
    if level.is_reliable() {
        let sent = drive(end.c.wait(end.vi, QueueKind::Send, PATIENCE)).expect("it is done");
        assert_eq!(sent.outcome.status & status::ERRORS, status::TRANSPORT_ERROR);
    }
    socket_too.write_all(&[1]).expect("the child");
    true
}

#[test]
fn data_that_cannot_be_fetched_are_told_of() {
    if let Some((device, mut socket)) = parent() {
        let mut asked = [0; 9];
        socket.read_exact(&mut asked).expect("the level, and where an octet lies");
        let level = Reliability::from_code(asked[0] & !MESSAGE).expect("a level");
        let reads = reads_parent(u64::from_le_bytes(*asked.last_chunk().expect("eight octets")));
        let mut told = socket.try_clone().expect("a socket");
        told.write_all(&[reads.into()]).expect("the parent");
        if !reads {
            return;
        }
        let mut end = End::connected(&device, socket, level, false);
        let mut there = end.data.address.to_le_bytes().to_vec();
        there.extend(end.data.handle.0.to_le_bytes());
        told.write_all(&there).expect("the parent");
        if asked[0] & MESSAGE != 0 {
            let came = drive(end.c.wait(end.vi, QueueKind::Receive, PATIENCE)).expect("it is done");
            told.write_all(&came.outcome.status.to_le_bytes()).expect("the parent");
            return;
        }
        let codes: Vec<u8> = end.codes().into_iter().map(|code| code as u8).collect();
        told.write_all(&codes).expect("the parent");
        let _ = told.read(&mut [0]);
        return;
    }
    for level in Reliability::ALL {
        for (half, message) in [(false, false), (false, true), (true, false), (true, true)] {
            if !unfetched(level, half, message) {
                eprintln!("skipped: data_that_cannot_be_fetched_are_told_of: process_vm_readv is forbidden");
                return;
            }
        }
    }
}

#[test]
fn a_program_that_closes_the_files_of_the_library_is_told_of_a_catastrophe() {
    let test = "a_program_that_closes_the_files_of_the_library_is_told_of_a_catastrophe";
    if let Some((device, socket)) = parent() {
        let mut c = C::open(&device, socket, false);
        // As a program does that becomes a daemon.
        for file in 3..1024 {
            // SAFETY: what breaks by it is looked at below.
            unsafe { libc::close(file) };
        }
        c.error().expect("an error");
        let codes: Vec<ErrorCode> = c.take_errors().iter().map(|error| error.code).collect();
        assert_eq!(codes, [ErrorCode::Catastrophic]);
        let waits = drive(c.connect_wait(b"a", PATIENCE));
        assert_eq!(waits.map(|_| ()), Err(ViplError::NotReachable));
        // What is dropped would be closed once more.
        std::process::exit(0);
    }
    let (mut running, _socket) = child(test, &format!("shm:f{}", std::process::id()));
    assert!(running.0.wait().expect("it ends").success(), "the child");
}

/// Longer than any connection has room for.
const HUGE: u32 = 64 << 20;
/// What memory holds that is the program's again.
const FREE: u8 = 0xff;

/// Sends data whose memory is given back at once to a process that waits for them; or to one that gives back its own
/// while they come, this process being stopped. False where half of them came before the receiver had a core to look
/// at the first, and nothing is known: the library's own thread takes them in.
fn given_back(test: &str, by_receiver: bool, round: u32) -> bool {
    if let Some((device, mut socket)) = parent() {
        let mut end = End::of(
            &device,
            socket.try_clone().expect("a socket"),
            Reliability::ReliableDelivery,
            false,
            HUGE,
        );
        let DataSegment { address, handle, length } = end.data;
        end.c.write(address, &vec![1; length as usize]);
        let place = Place { address: end.place.address + 128, ..end.place };
        end.c.post(end.vi, QueueKind::Send, place, &Descriptor::new(&[end.data])).expect("posted");
        end.c.deregister_mem(address, handle).expect("it was registered");
        end.c.write(address, &vec![FREE; length as usize]);
        let _ = socket.read(&mut [0]);
        return true;
    }
    let device = format!("udp@lo:g{}{round}{}", u8::from(by_receiver), std::process::id());
    let (running, socket) = child(test, &device);
    let mut end = End::of(&device, socket, Reliability::ReliableDelivery, true, HUGE);
    let DataSegment { address, handle, length } = end.data;
    if by_receiver {
        let process = libc::pid_t::try_from(running.0.id()).expect("a process");
        let began = Instant::now();
        // SAFETY: the memory of the receive, of which single octets are looked at.
        let came = |at: usize| unsafe { (address as *const u8).add(at).read_volatile() } != 0;
        while !came(0) {
            assert!(began.elapsed() < LIMIT, "nothing came");
            let _ = end.c.done(end.vi, QueueKind::Receive);
        }
        // SAFETY: plain signals.
        assert_eq!(unsafe { libc::kill(process, libc::SIGSTOP) }, 0);
        if came(length as usize / 2) {
            return false;
        }
        end.c.deregister_mem(address, handle).expect("it was registered");
        end.c.write(address, &vec![FREE; length as usize]);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(process, libc::SIGCONT) }, 0);
    }
    let came = drive(end.c.wait(end.vi, QueueKind::Receive, PATIENCE)).expect("it is done").outcome;
    let expected = if by_receiver { status::PROTECTION_ERROR } else { 0 };
    assert_eq!(came.status & status::ERRORS, expected);
    let octet = if by_receiver { FREE } else { 1 };
    assert!(
        end.c.read(address, length as usize).iter().all(|found| *found == octet),
        "what the memory holds"
    );
    true
}

#[test]
fn memory_that_the_sender_gives_back_is_sent_as_it_was() {
    assert!(given_back("memory_that_the_sender_gives_back_is_sent_as_it_was", false, 0));
}

#[test]
fn memory_that_the_receiver_gives_back_is_written_no_more() {
    let test = "memory_that_the_receiver_gives_back_is_written_no_more";
    assert!((0..8).any(|round| given_back(test, true, round)), "all came at once, each time");
}

#[test]
fn a_process_that_is_stopped_for_longer_than_a_host_may_be_silent_is_not_lost() {
    let test = "a_process_that_is_stopped_for_longer_than_a_host_may_be_silent_is_not_lost";
    if let Some((device, socket)) = parent() {
        let mut told = socket.try_clone().expect("a socket");
        let mut end = End::connected(&device, socket, Reliability::ReliableDelivery, false);
        told.write_all(&[1]).expect("the parent");
        let came = drive(end.c.wait(end.vi, QueueKind::Receive, PATIENCE)).expect("a message");
        told.write_all(&came.outcome.length.to_le_bytes()).expect("the parent");
        let _ = told.read(&mut [0]);
        return;
    }
    let device = format!("udp@lo:s{}", std::process::id());
    let (running, socket) = child(test, &device);
    let mut told = socket.try_clone().expect("a socket");
    let mut end = End::connected(&device, socket, Reliability::ReliableDelivery, true);
    told.read_exact(&mut [0]).expect("the child is connected");
    let process = libc::pid_t::try_from(running.0.id()).expect("a process");
    // SAFETY: plain signals.
    assert_eq!(unsafe { libc::kill(process, libc::SIGSTOP) }, 0);
    let place = Place { address: end.place.address + 128, ..end.place };
    let data = DataSegment { length: 8, ..end.data };
    end.c.post(end.vi, QueueKind::Send, place, &Descriptor::new(&[data])).expect("posted");
    // Nothing comes meanwhile, nor is anything flushed.
    let waited = drive(end.c.wait(end.vi, QueueKind::Receive, Some(Span::from_s(8))));
    assert_eq!(waited.map(|_| ()), Err(ViplError::Timeout));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(process, libc::SIGCONT) }, 0);
    let mut length = [0; 4];
    told.read_exact(&mut length).expect("how long the message was");
    assert_eq!((u32::from_le_bytes(length), end.state()), (8, ViState::Connected));
}
