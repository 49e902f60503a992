//! What the kernel's own stack sends, as we read it, and written again from what was read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use wiretwin_record::capture::LinkType;
use wiretwin_wire::ethernet::{self, EtherType, Frame, Kind};
use wiretwin_wire::ipv4::{self, FragmentOffset, Protocol};
use wiretwin_wire::{arp, icmp, tcp, udp};

use crate::tools::read_back;
use crate::tshark::{Folder, have};

/// Two network namespaces and a cable between them. Checksums are the kernel's own, for the devices
/// are told to make none. Ends when the datagram that is sent last is in both captures.
const SCRIPT: &str = r#"
set -eu
folder=$1
unshare -n sleep 50 & peer=$!
trap 'kill $peer $dump $more $echo 2>/dev/null || true; wait' EXIT
dump= more= echo=
for try in $(seq 500); do
  [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break
  sleep 0.01
done
ip link add left type veth peer name right netns $peer
there="nsenter -t $peer -n"
ethtool -K left rx off tx off tso off gso off gro off >/dev/null
$there ethtool -K right rx off tx off tso off gso off gro off >/dev/null
ip addr add 10.9.0.1/24 dev left; ip link set left up
$there ip addr add 10.9.0.2/24 dev right; $there ip link set right up
tcpdump -i left -n -U --immediate-mode --time-stamp-precision=nano -Z root -w "$folder/kernel.pcap" 2>"$folder/dump" & dump=$!
dumpcap -q -i left -w "$folder/kernel.pcapng" 2>"$folder/more" & more=$!
$there python3 -c '
import socket
listener = socket.create_server(("10.9.0.2", 7000))
connection, _ = listener.accept()
total = b""
while len(total) < 5000:
    total += connection.recv(5000)
connection.sendall(total)
connection.recv(1)
' & echo=$!
for try in $(seq 1000); do
  grep -q "listening on" "$folder/dump" && grep -q "File:" "$folder/more" && break
  sleep 0.01
done
python3 -c '
import socket, time
for attempt in range(1000):
    connection = socket.socket()
    try:
        connection.connect(("10.9.0.2", 7000))
        break
    except OSError:
        connection.close()
        time.sleep(0.01)
connection.sendall(bytes(range(250)) * 20)
left = 5000
while left:
    left -= len(connection.recv(left))
connection.close()
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.settimeout(5)
datagrams.connect(("10.9.0.2", 7001))
datagrams.send(b"x" * 3000)
try:
    datagrams.recv(1)
except ConnectionRefusedError:
    pass  # the other side has said that nobody is there
'
for try in $(seq 100); do
  python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"the last of all", ("10.9.0.2", 7002))
'
  grep -q "the last of all" "$folder/kernel.pcap" && grep -q "the last of all" "$folder/kernel.pcapng" && break
  sleep 0.02
done
kill -INT $more; wait $more || true
kill -INT $dump; wait $dump || true
"#;

/// Lets two kernels talk; false where this host does not let us have their namespaces.
fn captured(folder: &Folder) -> bool {
    let programs = ["unshare", "nsenter", "ip", "ethtool", "tcpdump", "dumpcap", "python3"];
    if !have(&programs) {
        return false;
    }
    let root = superuser();
    let mut command = Command::new("timeout");
    command.args(["55", "unshare", if root { "-n" } else { "-rn" }, "bash", "-c", SCRIPT, "bash"]);
    let done = command.arg(folder.path("")).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        assert!(std::env::var_os("CI").is_none(), "two namespaces: {} {said}", done.status);
        eprintln!("passed over: no namespaces here: {said}");
    }
    done.status.success()
}

/// Whether we are the superuser: the owner of what this process opens says so.
fn superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|status| status.uid() == 0)
}

/// What was met on the way through a frame.
type Met = BTreeSet<&'static str>;

/// The same frame, made from what was read of it.
fn made_again(octets: &[u8], met: &mut Met) -> Vec<u8> {
    let frame = Frame::new_checked(octets).expect("a frame");
    let header = ethernet::Repr::parse(&frame);
    let data = match header.kind {
        Kind::Type(EtherType::ARP) => {
            let repr = arp::Repr::parse(frame.payload()).expect("an ARP packet");
            met.insert(if repr.operation == arp::Operation::REQUEST { "ARP request" } else { "ARP reply" });
            let mut data = frame.payload().to_vec();
            repr.emit(&mut data[..arp::PACKET_OCTETS]).expect("28 octets");
            data
        }
        Kind::Type(EtherType::IPV4) => packet_again(frame.payload(), met),
        other => panic!("{other:?}: nobody here sends that"),
    };
    let mut again = vec![0; ethernet::HEADER_OCTETS];
    again.extend(data);
    header.emit(&mut again).expect("a frame");
    again
}

fn packet_again(octets: &[u8], met: &mut Met) -> Vec<u8> {
    let packet = ipv4::Packet::new_checked(octets).expect("a packet");
    let repr = ipv4::Repr::parse(&packet).expect("a header whose checksum holds");
    let payload = packet.payload();
    let mut inside = vec![0; payload.len()];
    let ends = &repr.ends;
    if repr.more_fragments || repr.fragment_offset != FragmentOffset::ZERO {
        met.insert("fragment");
        inside.copy_from_slice(payload);
    } else {
        match repr.protocol {
            Protocol::TCP => {
                let segment = tcp::Segment::new_checked(payload).expect("a segment");
                let repr = tcp::Repr::parse(&segment, ends).expect("a segment whose checksum holds");
                let known = tcp::Known::of(&repr.options).expect("options of their lengths");
                if repr.flags.syn {
                    assert_eq!(known.mss, Some(1460), "the MTU of Ethernet less 40");
                    met.insert(if repr.ack.is_some() { "SYN and ACK" } else { "SYN" });
                }
                if repr.flags.fin {
                    met.insert("FIN");
                }
                if repr.payload_length > 0 {
                    met.insert("data");
                }
                inside[repr.header_octets()..].copy_from_slice(segment.payload());
                repr.emit(ends, &mut inside).expect("as many octets");
            }
            Protocol::UDP => {
                let datagram = udp::Datagram::new_checked(payload).expect("a datagram");
                let repr = udp::Repr::parse(&datagram, ends).expect("a datagram whose checksum holds");
                met.insert("datagram");
                inside[udp::HEADER_OCTETS..].copy_from_slice(datagram.payload());
                repr.emit(ends, &mut inside).expect("as many octets");
            }
            Protocol::ICMP => {
                let repr = icmp::Repr::parse(payload).expect("a message whose checksum holds");
                assert_eq!(repr.message, icmp::Message::Unreachable(icmp::Unreachable::Port));
                met.insert("port unreachable");
                inside.copy_from_slice(payload);
                repr.emit(&mut inside).expect("as many octets");
            }
            other => panic!("{other:?}: nobody here sends that"),
        }
    }
    let mut again = vec![0; repr.header_octets()];
    again.extend(inside);
    repr.emit(&mut again).expect("as many octets");
    again.extend(&octets[again.len()..]);
    again
}

/// Everything in a file, each frame made again.
fn met_in(path: &Path) -> Met {
    let mut met = Met::new();
    let packets = read_back(&fs::read(path).expect("a file"));
    for (number, packet) in packets.iter().enumerate() {
        assert_eq!(packet.link, LinkType::ETHERNET);
        assert_eq!(packet.octets.len(), packet.original_length as usize, "all of it was kept");
        assert!(packet.timestamp.expect("a time").seconds > 1_500_000_000, "after 2017");
        // Each end also looks for IPv6 routers, which is not spoken here.
        if packet.octets[12..14] == [0x86, 0xDD] {
            continue;
        }
        let again = made_again(&packet.octets, &mut met);
        assert_eq!(again, packet.octets, "packet {number} of {}", path.display());
    }
    met
}

#[test]
fn all_that_two_kernels_say_is_read_and_made_again() {
    let folder = Folder::new();
    if !captured(&folder) {
        return;
    }
    let met = met_in(&folder.path("kernel.pcap"));
    let said = [
        "ARP reply",
        "ARP request",
        "FIN",
        "SYN",
        "SYN and ACK",
        "data",
        "datagram",
        "fragment",
        "port unreachable",
    ];
    assert_eq!(met.into_iter().collect::<Vec<_>>(), said);
    // The other program may have missed the first of it.
    assert!(met_in(&folder.path("kernel.pcapng")).contains("datagram"));
}
