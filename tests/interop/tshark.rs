//! Running `tshark` over what we wrote.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use wiretwin_record::capture::pcap::{Header, Writer};
use wiretwin_record::capture::pcapng::{self, ClockTick};
use wiretwin_record::capture::{ByteOrder, LinkType, Timestamp};

/// A folder that is gone when this is.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("wiretwin-interop-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether every one of these programs is here. CI has them all; elsewhere the test says what it
/// passes over.
pub fn have(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let here = |program: &&&str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing: Vec<_> = programs.iter().filter(|program| !here(program)).collect();
    if !missing.is_empty() {
        assert!(env::var_os("CI").is_none(), "CI installs {missing:?}");
        eprintln!("passed over: {missing:?} not installed");
    }
    missing.is_empty()
}

/// Runs a program to its end and returns what it printed. Its own limit is that of `timeout`.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new("timeout").arg("60").arg(program).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {} {said}", done.status);
    String::from_utf8(done.stdout).expect("text")
}

/// The file format.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    Pcap(ByteOrder),
    Pcapng(ByteOrder),
}

impl Format {
    pub const ALL: [Self; 4] = [
        Self::Pcap(ByteOrder::Little),
        Self::Pcap(ByteOrder::Big),
        Self::Pcapng(ByteOrder::Little),
        Self::Pcapng(ByteOrder::Big),
    ];
}

/// When the packet of this number is said to be seen.
pub fn time(number: usize) -> Timestamp {
    Timestamp { seconds: 800_000_000 + number as u64, picoseconds: 123_456_789_000 }
}

/// Writes packets of one link type.
pub fn write(path: &Path, format: Format, link: LinkType, packets: &[Vec<u8>]) {
    let file = fs::File::create(path).expect("a file");
    match format {
        Format::Pcap(order) => {
            let fcs_octets = (link == LinkType::ETHERNET).then_some(4);
            let header = Header { order, fcs_octets, ..Header::new(link) };
            let mut writer = Writer::new(file, header).expect("a header");
            for (number, packet) in packets.iter().enumerate() {
                writer.packet(time(number), packet).expect("a packet");
            }
            writer.finish().expect("the end");
        }
        Format::Pcapng(order) => {
            let mut writer = pcapng::Writer::new(file, order).expect("a section");
            let interface = writer.interface("wire", link, ClockTick::NANOSECOND).expect("an interface");
            for (number, packet) in packets.iter().enumerate() {
                writer.packet(interface, time(number), packet).expect("a packet");
            }
            writer.finish().expect("the end");
        }
    }
}

/// Every check that `tshark` can make, switched on.
const CHECKS: [&str; 20] = [
    "-n",
    "-2",
    "-o",
    "eth.fcs:Always",
    "-o",
    "eth.check_fcs:TRUE",
    "-o",
    "eth.padding:Zeros",
    "-o",
    "ip.check_checksum:TRUE",
    "-o",
    "tcp.check_checksum:TRUE",
    "-o",
    "udp.check_checksum:TRUE",
    "-o",
    "ip.defragment:TRUE",
    "-o",
    "tcp.desegment_tcp_streams:FALSE",
    "-o",
    "erf.aal5_type:LLC multiplexed",
];

/// The values of `fields`, packet by packet.
pub fn fields(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-r", path.to_str().expect("a name in UTF-8")];
    arguments.extend(CHECKS);
    arguments.extend(["-T", "fields", "-E", "separator=/t"]);
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let lines = run("tshark", &arguments);
    lines.lines().map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

/// All that is said of each packet by some protocols.
pub fn words(path: &Path, protocols: &str) -> Vec<String> {
    let mut arguments = vec!["-r", path.to_str().expect("a name in UTF-8")];
    arguments.extend(CHECKS);
    arguments.extend(["-V", "-O", protocols]);
    run("tshark", &arguments)
        .split("\n\n")
        .filter(|text| !text.trim().is_empty())
        .map(str::to_string)
        .collect()
}
