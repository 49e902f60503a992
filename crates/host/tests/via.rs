//! The VI suite between two processes over shared memory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use wiretwin_host::{Meeting, ViaOverShm, Wait, drive, shm};
use wiretwin_msg::via::conformance::{self, CASES, Side};
use wiretwin_msg::via::{HostAddress, NicAttributes};
use wiretwin_units::Span;

/// Where the two meet; set in the process of the client.
const DIRECTORY: &str = "WIRETWIN_TEST_VIA";
/// No wait in either process is longer.
const LIMIT: Duration = Duration::from_secs(20);

/// A folder that goes with its test.
struct Folder(PathBuf);

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

/// One process: every case at every level, over one pair of rings.
fn process(directory: &Path, side: Side) {
    let rank = if side == Side::Server { 0 } else { 1 };
    let meeting = Meeting { directory, rank, size: 2, limit: LIMIT };
    let stream = shm(&meeting, Wait::Yield, LIMIT).expect("they meet").into_iter().flatten().next();
    let mut device = ViaOverShm::new(rank, stream.expect("the other process"));
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
    let folder = Folder(env::temp_dir().join(format!("wiretwin-via-{}", std::process::id())));
    fs::create_dir(&folder.0).expect("a new folder");
    let mut client = Running(
        Command::new(env::current_exe().expect("this test"))
            .args(["--exact", "nics_over_shared_memory_conform", "--nocapture"])
            .env(DIRECTORY, &folder.0)
            .spawn()
            .expect("it starts"),
    );
    process(&folder.0, Side::Server);
    assert!(client.0.wait().expect("it ends").success(), "the client's process");
}
