//! TAP devices: the end of an Ethernet whose other end is a file descriptor.
//!
//! What the kernel sends on the device is read here, one frame a read; what is written here the
//! kernel receives. Frames are bare: no preamble, no frame check sequence, no packet information
//! (`IFF_NO_PI`). A descriptor belongs to a device, not to a namespace: [`Tap::open_in`] makes or
//! finds the device in another network namespace, and this process reads and writes it from its own.
//!
//! Source: `Documentation/networking/tuntap.rst` of the Linux kernel.

use std::ffi::c_short;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The longest name of an interface: `IFNAMSIZ` without its end.
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;
const DEVICE: &str = "/dev/net/tun";

/// How a device is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapOptions {
    /// Make the device if there is none of that name; it goes with its last descriptor. Otherwise a
    /// device that is not there is an error.
    pub create: bool,
    /// The largest packet in bytes, Ethernet header apart; `None` leaves what is set (1500 at first).
    pub mtu: Option<u32>,
    /// Bring the device up.
    pub up: bool,
}

/// Why a device was not opened.
#[derive(Debug)]
pub struct TapError {
    /// The device's name as given.
    pub name: String,
    /// The namespace it was looked for in, unless this thread's own.
    pub namespace: Option<PathBuf>,
    /// What was being done.
    pub step: &'static str,
    /// What the kernel said.
    pub error: io::Error,
}

impl fmt::Display for TapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TAP device `{}`", self.name)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in {}", namespace.display())?;
        }
        write!(f, ": {}: {}", self.step, self.error)?;
        let cure = match self.error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "needs CAP_NET_ADMIN there",
            Some(libc::EBUSY) => "another process has it open",
            Some(libc::ENXIO | libc::ENOENT) if self.step == OPENING => "is the kernel module `tun` loaded?",
            Some(libc::EINVAL) if self.step == ATTACHING => "an interface of that name is no TAP device",
            _ => return Ok(()),
        };
        write!(f, " ({cure})")
    }
}

impl std::error::Error for TapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

const OPENING: &str = "opening /dev/net/tun";
const ATTACHING: &str = "attaching";

/// An open TAP device; reads and writes do not wait.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
    index: u32,
    mtu: u32,
    address: [u8; 6],
}

impl Tap {
    /// Opens the device `name` of this thread's network namespace.
    ///
    /// # Errors
    /// [`TapError`].
    pub fn open(name: &str, options: TapOptions) -> Result<Self, TapError> {
        open(name, options).map_err(|(step, error)| TapError {
            name: name.to_owned(),
            namespace: None,
            step,
            error,
        })
    }

    /// Opens the device `name` of the network namespace that the file `namespace` stands for:
    /// `/proc/PID/ns/net`, or a name under `/run/netns`. A thread of its own goes there, so this one
    /// stays where it is.
    ///
    /// # Errors
    /// [`TapError`].
    pub fn open_in(namespace: &Path, name: &str, options: TapOptions) -> Result<Self, TapError> {
        within(namespace, || open(name, options)).map_err(|(step, error)| TapError {
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            step,
            error,
        })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the interface in its namespace.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The largest packet in bytes when it was opened, Ethernet header apart.
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The device's Ethernet address when it was opened.
    pub const fn address(&self) -> [u8; 6] {
        self.address
    }

    /// Takes the next frame that the kernel has sent; its length, or `None` if there is none. What
    /// does not fit in `buffer` is cut off.
    ///
    /// # Errors
    /// Those of `read(2)`: `EBADFD` once the device has been deleted.
    #[inline]
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives the kernel a frame, which goes up its stack before this returns; `false` if there was no
    /// room.
    ///
    /// # Errors
    /// Those of `write(2)`: `EIO` while the device is down, `EBADFD` once it has been deleted,
    /// `EINVAL` for less than an Ethernet header.
    #[inline]
    pub fn try_write(&self, frame: &[u8]) -> io::Result<bool> {
        loop {
            match rustix::io::write(&self.fd, frame) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

type Step<T> = Result<T, (&'static str, io::Error)>;

/// Runs `work` on a thread that has moved into a network namespace.
fn within<T: Send>(namespace: &Path, work: impl FnOnce() -> Step<T> + Send) -> Step<T> {
    let file = File::open(namespace).map_err(|error| ("opening the namespace", error))?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("wiretwin-netns".into())
            .spawn_scoped(scope, || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|error| ("entering the namespace", io::Error::from(error)))?;
                work()
            })
            .map_err(|error| ("starting a thread", error))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn open(name: &str, options: TapOptions) -> Step<Tap> {
    let mut request = interface_request(name).map_err(|error| ("naming", error))?;
    let control = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| ("opening a control socket", error.into()))?;
    // TUNSETIFF makes what it does not find.
    if !options.create && rustix::net::netdevice::name_to_index(&control, name).is_err() {
        return Err(("finding", io::Error::other("there is no interface of that name")));
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(|error| (OPENING, error.into()))?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as c_short;
    control_device(&fd, libc::TUNSETIFF, &mut request).map_err(|error| (ATTACHING, error))?;
    if let Some(mtu) = options.mtu {
        request.ifr_ifru.ifru_mtu =
            i32::try_from(mtu).map_err(|_| ("setting the MTU", Errno::INVAL.into()))?;
        control_device(&control, libc::SIOCSIFMTU, &mut request)
            .map_err(|error| ("setting the MTU", error))?;
    }
    if options.up {
        control_device(&control, libc::SIOCGIFFLAGS, &mut request)
            .map_err(|error| ("reading the flags", error))?;
        // SAFETY: the kernel has just set the flags of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as c_short;
        control_device(&control, libc::SIOCSIFFLAGS, &mut request)
            .map_err(|error| ("bringing it up", error))?;
    }
    let index = rustix::net::netdevice::name_to_index(&control, name)
        .map_err(|error| ("finding", io::Error::from(error)))?;
    control_device(&control, libc::SIOCGIFMTU, &mut request).map_err(|error| ("reading the MTU", error))?;
    // SAFETY: the kernel has just set the MTU of the union; every bit pattern is an integer.
    let mtu = u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0);
    control_device(&control, libc::SIOCGIFHWADDR, &mut request)
        .map_err(|error| ("reading the address", error))?;
    // SAFETY: the kernel has just set the address of the union; every bit pattern is an address.
    let raw = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    let address = std::array::from_fn(|octet| raw[octet].cast_unsigned());
    Ok(Tap { fd, name: name.to_owned(), index, mtu, address })
}

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if name.is_empty() || name.len() > LONGEST_NAME {
        return refuse(format!(
            "the name of an interface has 1 to {LONGEST_NAME} bytes, this has {}",
            name.len()
        ));
    }
    if let Some(bad) = name.chars().find(|&c| !c.is_ascii_graphic() || matches!(c, '/' | ':' | '%')) {
        return refuse(format!("{bad:?} may not stand in the name of an interface"));
    }
    // SAFETY: an all-zero ifreq is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = octet.cast_signed() as libc::c_char;
    }
    Ok(request)
}

fn control_device(fd: impl AsFd, command: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every command used here reads and writes one ifreq, which is live and exclusive.
    let status = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), command, std::ptr::from_mut(request)) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    /// Runs `test` on a thread with a network namespace of its own, or says why not: never silently
    /// where `CI` is set.
    fn in_a_namespace(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    // SAFETY: only this thread changes its network namespace.
                    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                        let why = io::Error::last_os_error();
                        assert!(std::env::var_os("CI").is_none(), "no network namespace: {why}");
                        eprintln!("skipped: no network namespace: {why}");
                        return;
                    }
                    test();
                })
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }

    const NEW: TapOptions = TapOptions { create: true, mtu: Some(1400), up: true };

    /// Gives the device an address.
    fn address(name: &str, address: Ipv4Addr) {
        let control =
            socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        let mut request = interface_request(name).unwrap();
        // SAFETY: an all-zero sockaddr is a valid value.
        let mut socket_address: libc::sockaddr = unsafe { std::mem::zeroed() };
        socket_address.sa_family = libc::AF_INET as libc::sa_family_t;
        for (place, octet) in socket_address.sa_data[2..6].iter_mut().zip(address.octets()) {
            *place = octet.cast_signed() as libc::c_char;
        }
        request.ifr_ifru.ifru_addr = socket_address;
        control_device(&control, libc::SIOCSIFADDR, &mut request).unwrap();
    }

    /// The first frame from the kernel that `wanted` takes.
    fn read_until(tap: &Tap, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(10);
        let mut buffer = [0; 2048];
        while Instant::now() < end {
            match tap.try_read(&mut buffer).unwrap() {
                Some(count) if wanted(&buffer[..count]) => return buffer[..count].to_vec(),
                _ => std::thread::yield_now(),
            }
        }
        panic!("the kernel sent no such frame in 10 s");
    }

    #[test]
    fn the_kernel_sends_and_receives_bare_frames() {
        in_a_namespace(|| {
            let tap = Tap::open("wt-tap0", NEW).unwrap();
            assert_eq!((tap.name(), tap.mtu()), ("wt-tap0", 1400));
            assert!(tap.index() > 0);
            address("wt-tap0", Ipv4Addr::new(10, 0, 0, 1));
            let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
            socket.set_broadcast(true).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket.send_to(b"ping", "10.255.255.255:4001").unwrap();
            let frame = read_until(&tap, |frame| frame.ends_with(b"ping"));
            assert_eq!(frame.len(), 14 + 20 + 8 + 4, "no packet information, no padding, no FCS");
            assert_eq!(frame[..6], [0xFF; 6]);
            assert_eq!(frame[6..12], tap.address());
            // An answer from 10.0.0.2, its UDP checksum 0: none.
            let mut answer = frame;
            answer.copy_within(6..12, 0);
            answer[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
            answer[26..30].copy_from_slice(&[10, 0, 0, 2]);
            answer[30..34].copy_from_slice(&[10, 0, 0, 1]);
            answer[34..38].copy_from_slice(&[0x0F, 0xA1, 0x0F, 0xA0]);
            answer[40..42].fill(0);
            answer[24..26].fill(0);
            let sum = answer[14..34]
                .chunks(2)
                .fold(0_u32, |sum, word| sum + u32::from(word[0]) * 256 + u32::from(word[1]));
            let sum = !(((sum >> 16) + sum) as u16);
            answer[24..26].copy_from_slice(&sum.to_be_bytes());
            answer.truncate(42);
            answer.extend_from_slice(b"pong");
            assert!(tap.try_write(&answer).unwrap());
            let mut buffer = [0; 64];
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..count], from.to_string().as_str()), (&b"pong"[..], "10.0.0.2:4001"));
        });
    }

    #[test]
    fn a_device_that_is_missing_taken_or_misnamed_is_refused_by_name() {
        in_a_namespace(|| {
            let refusal = |name: &str, options| Tap::open(name, options).unwrap_err().to_string();
            assert_eq!(
                refusal("wt-tap1", TapOptions::default()),
                "TAP device `wt-tap1`: finding: there is no interface of that name"
            );
            assert_eq!(
                refusal("a-name-of-16-bytes", NEW),
                "TAP device `a-name-of-16-bytes`: naming: the name of an interface has 1 to 15 bytes, this has 18"
            );
            assert!(refusal("wt:1", NEW).contains("':' may not stand"), "{}", refusal("wt:1", NEW));
            assert!(refusal("lo", NEW).ends_with("(an interface of that name is no TAP device)"));
            let _first = Tap::open("wt-tap1", NEW).unwrap();
            assert!(refusal("wt-tap1", NEW).ends_with("(another process has it open)"));
            let long = TapOptions { mtu: Some(1 << 20), ..NEW };
            assert!(refusal("wt-tap2", long).contains("`wt-tap2`: setting the MTU"));
        });
    }

    #[test]
    fn a_device_of_another_namespace_is_opened_from_here() {
        in_a_namespace(|| {
            // SAFETY: a getter without arguments.
            let here = format!("/proc/self/task/{}/ns/net", unsafe { libc::gettid() });
            let here = Path::new(&here);
            std::thread::scope(|scope| {
                let elsewhere = scope.spawn(|| Tap::open_in(here, "wt-tap3", NEW).unwrap()).join().unwrap();
                assert_eq!(elsewhere.name(), "wt-tap3");
                assert!(Tap::open("wt-tap3", NEW).unwrap_err().to_string().contains("another process"));
            });
            let error = Tap::open_in(Path::new("/proc/self/ns/uts"), "wt-tap4", NEW).unwrap_err();
            assert_eq!(error.step, "entering the namespace");
            let error = Tap::open_in(Path::new("/no/such/namespace"), "wt-tap4", NEW).unwrap_err();
            assert!(error.to_string().starts_with("TAP device `wt-tap4` in /no/such/namespace: opening"));
        });
    }
}
