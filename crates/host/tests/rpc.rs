//! Our remote procedure calls against `rpcbind` and libtirpc, both ways, over TCP and UDP.
//!
//! All of it in a network and a `/run` of its own, where port 111 is nobody else's.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use wiretwin_host::{Reaction, RpcClient, RpcClientError, RpcServer, broadcast, since_1970};
use wiretwin_msg::rpc::broadcast;
use wiretwin_msg::rpc::client::{Config, DATAGRAM_OCTETS, Failure, Retry, Transport};
use wiretwin_msg::rpc::mapper::{Answer, Caller, Mapper, Question, Reading, SUPERUSER};
use wiretwin_msg::rpc::record::DEFAULT_BUFFER;
use wiretwin_msg::rpc::server::{self, CACHE_CALLS, Origin, Request, Service};
use wiretwin_msg::rpc::{AuthStatus, Call, Credential, Refusal, Target};
use wiretwin_units::Span;
use wiretwin_wire::rpc::System;
use wiretwin_wire::rpc::portmap::{self, Entry, Mapping};
use wiretwin_wire::xdr::Reader;

/// Set in the process that is inside.
const INSIDE: &str = "WIRETWIN_TEST_INSIDE";
const SCRIPT: &str = r#"mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@""#;
const OURS: u32 = 0x2000_0001;
const THEIRS: u32 = 0x2000_0002;

/// Runs a test again inside; true if this is the inside.
fn inside(name: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let header = Path::new("/usr/include/tirpc/rpc/rpc.h");
    if !header.exists() {
        assert!(env::var_os("CI").is_none(), "CI installs libtirpc-dev");
        eprintln!("passed over: no {}", header.display());
        return false;
    }
    let needed = ["unshare", "mount", "ip", "cc", "timeout", "rpcbind"];
    if let Some(missing) = needed.iter().find(|name| system_program(name).is_none()) {
        assert!(env::var_os("CI").is_none(), "CI installs {missing}");
        eprintln!("passed over: no {missing}");
        return false;
    }
    let spaces = if superuser() { "-mn" } else { "-rmn" };
    let ours = env::current_exe().expect("this test");
    let done = Command::new("timeout")
        .args(["100", "unshare", spaces, "--", "sh", "-c", SCRIPT, "sh"])
        .arg(ours)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "yes")
        .output()
        .expect("it starts");
    let said =
        [done.stdout, done.stderr].map(|octets| String::from_utf8_lossy(&octets).into_owned()).concat();
    if !said.contains("running 1 test") {
        assert!(env::var_os("CI").is_none(), "a network of our own: {} {said}", done.status);
        eprintln!("passed over: no namespaces here: {said}");
        return false;
    }
    assert!(done.status.success(), "{} {said}", done.status);
    false
}

fn system_program(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())
}

/// Whether we are the superuser: the owner of what this process opens says so.
fn superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|status| status.uid() == 0)
}

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("wiretwin-rpc-{}-{count}", std::process::id()));
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn client(program: u32, version: u32, port: u16, stream: bool, credential: Credential) -> RpcClient {
    let transport = if stream {
        Transport::Stream { buffer: DEFAULT_BUFFER, resends: 0 }
    } else {
        Transport::Datagram { retry: Retry::SUN_RPC, largest: DATAGRAM_OCTETS }
    };
    let config = Config { program, version, credential, total: Span::from_s(20), transport };
    RpcClient::new(config, local(port), 1).expect("a socket")
}

fn ask(question: Question<'_>, version: u32, stream: bool) -> Arc<[u8]> {
    let mut client = client(portmap::PROGRAM, version, portmap::PORT, stream, Credential::NONE);
    let arguments = question.arguments().expect("short strings");
    client.call(question.procedure(), &arguments).unwrap_or_else(|error| panic!("{question:?}: {error}"))
}

/// The real `rpcbind`, once it answers.
fn rpcbind() -> Running {
    rpcbind_with(&[])
}

fn rpcbind_with(more: &[&str]) -> Running {
    let program = system_program("rpcbind").expect("it was found outside");
    let mut command = Command::new(program);
    let running = Running(command.args(["-f", "-w"]).args(more).spawn().expect("rpcbind starts"));
    let answers = |_: &u32| {
        let mut client = client(portmap::PROGRAM, 2, portmap::PORT, true, Credential::NONE);
        match client.call(0, &[]) {
            Ok(results) => {
                assert!(results.is_empty(), "procedure 0 has no results");
                true
            }
            Err(RpcClientError::Failed(Failure::NotConnected)) => {
                thread::sleep(Duration::from_millis(10));
                false
            }
            Err(error) => panic!("rpcbind: {error}"),
        }
    };
    assert!((0..1000).any(|attempt| answers(&attempt)), "rpcbind answers within ten seconds");
    running
}

fn compiled(folder: &Folder, name: &str) -> PathBuf {
    let program = folder.path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rpc").join(format!("{name}.c"));
    let done = Command::new("cc")
        .args(["-O1", "-Wall", "-I/usr/include/tirpc", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-ltirpc")
        .output()
        .expect("cc starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn mapping(transport: portmap::Transport, port: u32) -> Mapping {
    Mapping { program: OURS, version: 1, transport, port }
}

/// A server of ours in a thread, until it is dropped.
struct Serving {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Serving {
    fn start<P>(services: &[Service], port: u16, mut program: P) -> Self
    where
        P: FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction + Send + 'static,
    {
        let config = server::Config { cache: CACHE_CALLS, buffer: DEFAULT_BUFFER, datagram: DATAGRAM_OCTETS };
        let mut server = RpcServer::bind(config, local(port)).expect("a free port");
        services.iter().for_each(|service| server.register(service.clone()));
        let port = server.address().expect("it is bound").port();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                server.step(Duration::from_millis(20), &mut program).expect("it can wait");
            }
        }));
        Self { port, stop, thread }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let done = self.thread.take().expect("once").join();
        assert!(thread::panicking() || done.is_ok(), "the server's thread");
    }
}

/// The program that their client calls.
fn ours() -> impl FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction {
    let mut total = 0_i32;
    move |request| {
        let mut reader = Reader::new("arguments", &request.arguments);
        let result = |number: i32| Reaction::Results(Arc::from(number.to_be_bytes()));
        match request.target.procedure {
            1 => match reader.counted("block", u32::MAX, "any").and_then(|_| reader.end()) {
                Ok(()) => Reaction::Results(Arc::clone(&request.arguments)),
                Err(_) => Reaction::Refused(Refusal::GarbageArguments),
            },
            2 => {
                total += reader.i32("number").expect("their client sends one");
                Reaction::Silence
            }
            3 => result(total),
            4 => Reaction::Refused(Refusal::GarbageArguments),
            5 => match request.credential.who() {
                Some(Ok(who)) => result(who.uid as i32),
                _ => Reaction::Refused(Refusal::Authentication(AuthStatus::TOO_WEAK)),
            },
            other => panic!("procedure {other} is not registered"),
        }
    }
}

fn our_service() -> Service {
    Service { program: OURS, version: 1, procedures: (1..=5).collect(), wants_system: false }
}

/// What their client says of our server.
fn their_words(program: &Path, netid: &str) -> Vec<String> {
    let done = Command::new("timeout").arg("40").arg(program).args(["127.0.0.1", netid]).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{} {}", done.status, String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").lines().map(String::from).collect()
}

fn expected_words(netid: &str) -> Vec<&'static str> {
    let mut words = vec!["echo 0: same", "echo 5: same"];
    words.extend(match netid {
        "tcp" => &["echo 200000: same", "total: RPC: Success 5050"][..],
        _ => &["echo 8000: same"],
    });
    words.extend([
        "garbage: RPC: Server can't decode arguments 0",
        "no procedure: RPC: Procedure unavailable 0",
        "nobody: RPC: Authentication error 0",
        "somebody: RPC: Success 1234",
        "version: RPC: Program/version mismatch 0",
        "versions: 1 to 1",
        "program: RPC: Program unavailable 0",
    ]);
    words
}

#[test]
fn rpcbind_answers_our_client() {
    if !inside("rpcbind_answers_our_client") {
        return;
    }
    let _rpcbind = rpcbind();
    for stream in [true, false] {
        let flag = |question, version| Reading::flag(&ask(question, version, stream)).expect("a boolean");
        let tcp = mapping(portmap::Transport::TCP, 2049);
        let port = |version| {
            let question = Question::GetPort(Mapping { version, port: 0, ..tcp });
            Reading::word(&ask(question, 2, stream)).expect("a port")
        };
        assert_eq!(port(1), 0);
        assert!(flag(Question::Set(tcp), 2));
        assert_eq!((port(1), port(2)), (2049, 2049), "another version's too");
        let all = || Reading::mappings(&ask(Question::Dump, 2, stream)).expect("a list");
        assert!(all().contains(&tcp) && all().iter().any(|each| each.program == portmap::PROGRAM));
        let entry = Entry { program: OURS, version: 1, netid: b"udp", address: b"0.0.0.0.8.2", owner: b"" };
        for version in [3, 4] {
            let address = |question| Reading::string(&ask(question, version, stream)).expect("a string");
            assert!(flag(Question::SetEntry(entry), version));
            // For the transport of the question, whatever its r_netid is.
            let expected = if stream { "127.0.0.1.8.1" } else { "127.0.0.1.8.2" };
            assert_eq!(address(Question::GetAddress(Entry { address: b"", ..entry })), expected);
            let listed =
                Reading::registrations(&ask(Question::DumpEntries, version, stream)).expect("a list");
            let found = listed.iter().find(|each| each.program == OURS && each.netid == "udp");
            assert_eq!(found.map(|found| &*found.address), Some("0.0.0.0.8.2"));
            let now = Reading::word(&ask(Question::GetTime, version, stream)).expect("a time");
            assert!(u64::from(now).abs_diff(since_1970().as_ns() / 1_000_000_000) <= 2, "the same clock");
            assert!(flag(Question::UnsetEntry(entry), version));
            let gone = address(Question::GetAddress(entry));
            assert_eq!(gone, if stream { expected } else { "" });
        }
        assert!(flag(Question::Unset(tcp), 2));
        assert!(all().iter().all(|each| each.program != OURS));
        // What it has not is refused by name.
        let mut wrong = client(portmap::PROGRAM, 9, portmap::PORT, stream, Credential::NONE);
        let error = wrong.call(0, &[]).expect_err("version 9").to_string();
        assert_eq!(error, "PROG_MISMATCH: the server has versions 2 to 4");
        let mut wrong = client(OURS, 1, portmap::PORT, stream, Credential::NONE);
        let error = wrong.call(0, &[]).expect_err("another program").to_string();
        assert_eq!(error, "PROG_UNAVAIL: the server has no such program");
    }
}

#[test]
fn a_client_of_libtirpc_finds_our_server_through_rpcbind() {
    if !inside("a_client_of_libtirpc_finds_our_server_through_rpcbind") {
        return;
    }
    let folder = Folder::new();
    let program = compiled(&folder, "client");
    let _rpcbind = rpcbind();
    let serving = Serving::start(&[our_service()], 0, ours());
    for transport in [portmap::Transport::TCP, portmap::Transport::UDP] {
        let question = Question::Set(mapping(transport, serving.port.into()));
        assert_eq!(Reading::flag(&ask(question, 2, true)), Ok(true));
    }
    for netid in ["tcp", "udp"] {
        assert_eq!(their_words(&program, netid), expected_words(netid), "{netid}");
    }
}

#[test]
fn a_client_of_libtirpc_finds_our_server_through_our_port_mapper() {
    if !inside("a_client_of_libtirpc_finds_our_server_through_our_port_mapper") {
        return;
    }
    let folder = Folder::new();
    let program = compiled(&folder, "client");
    let serving = Serving::start(&[our_service()], 0, ours());
    let mut mapper = Mapper::new(64);
    let _mapper = Serving::start(&Mapper::services(), portmap::PORT, move |request| {
        let seconds = (since_1970().as_ns() / 1_000_000_000) as u32;
        let transport = match request.origin {
            Origin::Datagram(_) => portmap::Transport::UDP,
            Origin::Connection(_) => portmap::Transport::TCP,
        };
        let caller =
            Caller { local: true, transport, owner: SUPERUSER.into(), reached: Ipv4Addr::LOCALHOST, seconds };
        match mapper.answer(request.target.version, request.target.procedure, &request.arguments, &caller) {
            Answer::Results(results) => Reaction::Results(results),
            Answer::Refused(refusal) => Reaction::Refused(refusal),
            Answer::Silence => Reaction::Silence,
        }
    });
    for transport in [portmap::Transport::TCP, portmap::Transport::UDP] {
        let question = Question::Set(mapping(transport, serving.port.into()));
        assert_eq!(Reading::flag(&ask(question, 2, false)), Ok(true));
    }
    for netid in ["tcp", "udp"] {
        assert_eq!(their_words(&program, netid), expected_words(netid), "{netid}");
    }
}

#[test]
fn a_server_of_libtirpc_answers_our_client() {
    if !inside("a_server_of_libtirpc_answers_our_client") {
        return;
    }
    let folder = Folder::new();
    let program = compiled(&folder, "server");
    let _rpcbind = rpcbind();
    let mut server = Running(Command::new(program).stdout(Stdio::piped()).spawn().expect("it starts"));
    let output = server.0.stdout.take().expect("piped");
    let (say, said) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _read = BufReader::new(output).read_line(&mut line);
        let _gone = say.send(line);
    });
    let line = said.recv_timeout(Duration::from_secs(20)).expect("a line within its limit");
    assert_eq!(line, "ready\n", "it has registered");
    let who = System::new(0, b"spark", 4321, 10, &[]).expect("no groups");
    let system = Credential::system(&who).expect("a short name");
    for (stream, transport) in [(true, portmap::Transport::TCP), (false, portmap::Transport::UDP)] {
        let question = Mapping { program: THEIRS, version: 3, transport, port: 0 };
        let port = Reading::word(&ask(Question::GetPort(question), 2, stream)).expect("a port");
        let port = u16::try_from(port).expect("a port");
        assert_ne!(port, 0, "rpcbind knows it");
        let mut client = client(THEIRS, 3, port, stream, Credential::NONE);
        // A call of several fragments, and one of no octets.
        for length in if stream { [0, 5, 100_000] } else { [0, 5, 8000] } {
            let mut block = (length as u32).to_be_bytes().to_vec();
            block.extend((0..length).map(|at| (at * 7) as u8));
            block.resize(4 + (length as usize).next_multiple_of(4), 0);
            let echoed = client.call(1, &block).expect("an echo");
            assert_eq!(*echoed, block[..], "{length} octets");
        }
        let mut refused = |procedure, arguments: &[u8]| match client.call(procedure, arguments) {
            Err(RpcClientError::Failed(Failure::Refused(refusal))) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(1, &[0xFF; 4]), Refusal::GarbageArguments);
        assert_eq!(refused(2, &[]), Refusal::Authentication(AuthStatus::TOO_WEAK));
        assert_eq!(refused(3, &[]), Refusal::SystemError);
        assert_eq!(refused(99, &[]), Refusal::ProcedureUnavailable);
        let mut known = self::client(THEIRS, 3, port, stream, system.clone());
        assert_eq!(*known.call(2, &[]).expect("our number"), 4321_u32.to_be_bytes());
        let mut wrong = self::client(THEIRS, 5, port, stream, Credential::NONE);
        let error = wrong.call(0, &[]).expect_err("version 5").to_string();
        assert_eq!(error, "PROG_MISMATCH: the server has versions 3 to 3");
    }
}

#[test]
fn a_broadcast_reaches_our_server_through_rpcbind_and_silence_is_no_answer() {
    const SHORT: &[Span] = &[Span::from_ms(100), Span::from_ms(200)];
    const LONG: &[Span] = &[Span::from_s(10), Span::from_s(10)];
    if !inside("a_broadcast_reaches_our_server_through_rpcbind_and_silence_is_no_answer") {
        return;
    }
    // It calls for others only if it is told to.
    let _rpcbind = rpcbind_with(&["-r"]);
    let serving = Serving::start(&[our_service()], 0, ours());
    let question = Question::Set(mapping(portmap::Transport::UDP, serving.port.into()));
    assert_eq!(Reading::flag(&ask(question, 2, true)), Ok(true));
    let call = |xid, procedure, arguments: &[u8]| {
        let question = Question::CallIt { program: OURS, version: 1, procedure, arguments };
        let target = Target {
            program: portmap::PROGRAM,
            version: question.version(),
            procedure: question.procedure(),
        };
        let arguments = question.arguments().expect("short ones");
        Call { xid, target, credential: Credential::NONE, arguments }
    };
    let all: SocketAddr = (Ipv4Addr::new(127, 255, 255, 255), portmap::PORT).into();
    let block = [0, 0, 0, 4, b'a', b'b', b'c', b'd'];
    let config = broadcast::Config { waits: LONG, enough: Some(1) };
    let (answers, ended) = broadcast(config, call(7, 1, &block), all).expect("it is sent");
    assert_eq!((ended.answers, ended.timed_out), (1, false));
    assert_eq!(Reading::called(&answers[0].results), Ok((serving.port.into(), &block[..])));
    // A procedure that there is not, arguments that are none: nobody answers.
    for (xid, procedure, arguments) in [(8, 99, &block[..]), (9, 1, &[0, 0, 0, 9])] {
        let config = broadcast::Config { waits: SHORT, enough: None };
        let (answers, ended) = broadcast(config, call(xid, procedure, arguments), all).expect("it is sent");
        assert_eq!(answers, []);
        assert_eq!(ended, broadcast::Ended { answers: 0, sent: 2, timed_out: true });
    }
}
