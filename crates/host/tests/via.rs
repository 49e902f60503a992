//! The VI suite between two processes over shared memory.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use wiretwin_host::{Meeting, ViaOverShm, Wait, drive, shm};
use wiretwin_msg::via::conformance::{self, CASES, Side};
use wiretwin_msg::via::{
    DataSegment, Descriptor, ErrorCode, HostAddress, NicAttributes, Place, QueueKind, Reliability,
    ViAttributes, ViHandle, Vipl, ViplError, status,
};
use wiretwin_units::{Bytes, Span};

/// Where the two meet; set in the process of the client.
const DIRECTORY: &str = "WIRETWIN_TEST_VIA";
/// No wait in either process is longer.
const LIMIT: Duration = Duration::from_secs(20);

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    /// One that nobody has, whatever earlier runs have left behind.
    fn new() -> Self {
        for number in 0.. {
            let path = env::temp_dir().join(format!("wiretwin-via-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
        unreachable!("numbers do not end")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nics(local: HostAddress) -> [NicAttributes; 2] {
    // Memory loses nothing: what is late is late because the other process has not had its turn.
    [NicAttributes::adapter(local), NicAttributes::m_via(local)]
        .map(|nic| NicAttributes { resend_after: Span::from_s(20), ..nic })
}

/// The end of a process, which is rank 0 if it is the server's.
fn device(directory: &Path, side: Side) -> ViaOverShm {
    let rank = if side == Side::Server { 0 } else { 1 };
    let meeting = Meeting { directory, rank, size: 2, limit: LIMIT };
    let stream = shm(&meeting, Wait::Yield, LIMIT).expect("they meet").into_iter().flatten().next();
    ViaOverShm::new(rank, stream.expect("the other process"))
}

/// This test once more, as the client's process.
fn client(test: &str, directory: &Path) -> Running {
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["--exact", test, "--nocapture"]).env(DIRECTORY, directory);
    Running(command.spawn().expect("it starts"))
}

/// One process: every case at every level, over one pair of rings.
fn process(directory: &Path, side: Side) {
    let mut device = device(directory, side);
    for nic in nics(device.local()) {
        for level in conformance::levels(&nic) {
            for case in CASES {
                let run = conformance::run(case, level, side, device, &nic);
                device = drive(run).unwrap_or_else(|found| panic!("{}: {found}", nic.name));
            }
        }
    }
}

#[test]
fn nics_over_shared_memory_conform() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return process(Path::new(&directory), Side::Client);
    }
    let folder = Folder::new();
    let mut client = client("nics_over_shared_memory_conform", &folder.0);
    process(&folder.0, Side::Server);
    assert!(client.0.wait().expect("it ends").success(), "the client's process");
}

/// A NIC with a VI that is connected, and where a receive of this process is posted.
async fn connected(device: ViaOverShm) -> Result<(Vipl<ViaOverShm>, ViHandle), ViplError> {
    let [nic, _] = nics(device.local());
    let mut vipl = Vipl::open(device, nic);
    let ptag = vipl.nic().create_ptag()?;
    let data = vipl.allocate_registered(4_096, ptag)?;
    let vi = vipl.nic().create_vi(ViAttributes {
        reliability: Reliability::ReliableDelivery,
        max_transfer: Bytes::new(4_096),
        qos: 0,
        ptag,
        enable_rdma_write: false,
        enable_rdma_read: false,
        send_cq: None,
        receive_cq: None,
    })?;
    let place = Place { address: data.address, handle: data.handle };
    let into = DataSegment { address: data.address + 64, length: 64, ..data };
    vipl.post(vi, QueueKind::Receive, place, &Descriptor::new(&[into]))?;
    vipl.meet().await?;
    vipl.connect_peer_request(vi, b"a", b"a", None)?;
    vipl.connect_peer_wait(vi).await?;
    vipl.meet().await?;
    Ok((vipl, vi))
}

#[test]
fn a_process_that_is_gone_ends_what_the_other_waits_for() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        drive(connected(device(Path::new(&directory), Side::Client))).expect("they connect");
        // Without a word, and with nothing given back.
        std::process::exit(0);
    }
    let folder = Folder::new();
    let mut client = client("a_process_that_is_gone_ends_what_the_other_waits_for", &folder.0);
    drive(async {
        let (mut vipl, vi) = connected(device(&folder.0, Side::Server)).await.expect("they connect");
        assert!(client.0.wait().expect("it ends").success(), "the client's process");
        let waited = vipl.wait(vi, QueueKind::Receive, None).await;
        assert_eq!(waited, Err(ViplError::NotReachable));
        let codes: Vec<_> = vipl.take_errors().iter().map(|error| error.code).collect();
        assert_eq!(codes, [ErrorCode::Catastrophic, ErrorCode::ConnectionLost]);
        let flushed = vipl.wait(vi, QueueKind::Receive, None).await.expect("it is done");
        assert_eq!(flushed.outcome.status & status::ERRORS, status::FLUSHED_ERROR);
    });
}
