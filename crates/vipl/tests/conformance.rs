//! The VI suite through the calls of `vipl.h`, between two processes.

mod c;

use std::env;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use wiretwin_host::drive;
use wiretwin_msg::via::conformance::{self, CASES, Side};
use wiretwin_msg::via::{ErrorCode, HostAddress, NicAttributes, ViplError};

use c::{C, SEEN};

/// Set in the process of the client, whose standard input is the socket to the server's; the device's name.
const CLIENT: &str = "WIRETWIN_TEST_VIPL";
/// No wait in either process is longer.
const LIMIT: Duration = Duration::from_secs(30);

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Codes that a call returned, and that the error handler was told, when something breaks: `broken.rs` has them.
const BROKEN: ([ViplError; 1], [ErrorCode; 3]) = (
    [ViplError::NotReachable],
    [ErrorCode::RdmaWriteData, ErrorCode::RdmaWriteAbort, ErrorCode::Catastrophic],
);

/// Fails unless this process and the other together have seen every code that there is.
fn saw_every_code(mut other: UnixStream) {
    let ours = SEEN.each_ref().map(|seen| seen.load(Ordering::Relaxed));
    let told = ours.map(u32::to_le_bytes).concat();
    let mut theirs = [0; 8];
    other.write_all(&told).expect("the other process");
    other.read_exact(&mut theirs).expect("the other process");
    let [returned, told] = [0, 1]
        .map(|kind| ours[kind] | u32::from_le_bytes(*theirs[4 * kind..].first_chunk().expect("four octets")));
    let codes = ViplError::ALL.into_iter().filter(|error| !BROKEN.0.contains(error));
    let unreturned: Vec<_> = codes.filter(|error| returned & 1 << error.code() == 0).collect();
    assert_eq!(unreturned, [], "no call returned these");
    let told_in_vain = (0..=ErrorCode::Catastrophic as u32).filter(|code| told & 1 << code == 0);
    assert_eq!(
        told_in_vain.collect::<Vec<_>>(),
        BROKEN.1.map(|code| code as u32),
        "the error handler was not told"
    );
}

/// One process: every case at every level.
fn process(side: Side, device: &str, mut other: UnixStream) {
    other.set_read_timeout(Some(LIMIT)).expect("a limit above nothing");
    for (number, level) in
        conformance::levels(&NicAttributes::adapter(HostAddress([0; 6]))).into_iter().enumerate()
    {
        for (case, turn) in CASES.iter().zip(number..) {
            // Every other time long data come out of memory that both processes have mapped.
            let consumer = C::open(device, other, turn % 2 == 0);
            other = drive(conformance::run(case, level, side, consumer))
                .unwrap_or_else(|found| panic!("{found}"));
        }
    }
    saw_every_code(other);
}

/// Runs the suite over a device, this process and another running the same test.
fn conforms(test: &str, device: &str) {
    if let Some(device) = env::var_os(CLIENT) {
        let other = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned().expect("a socket");
        return process(Side::Client, &device.to_string_lossy(), UnixStream::from(other));
    }
    let device = format!("{device}:t{}", std::process::id());
    let (ours, theirs) = UnixStream::pair().expect("two sockets");
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["--exact", test, "--nocapture"]);
    command.env(CLIENT, &device).stdin(Stdio::from(OwnedFd::from(theirs)));
    let mut client = Running(command.spawn().expect("it starts"));
    // So that this end hears when the client's is closed.
    drop(command);
    process(Side::Server, &device, ours);
    assert!(client.0.wait().expect("it ends").success(), "the client's process");
}

#[test]
fn the_c_interface_over_shared_memory_conforms() {
    conforms("the_c_interface_over_shared_memory_conforms", "shm");
}

#[test]
fn the_c_interface_over_datagrams_conforms() {
    conforms("the_c_interface_over_datagrams_conforms", "udp@lo");
}
