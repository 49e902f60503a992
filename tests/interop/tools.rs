//! What the tools of Wireshark write, as we read it.

use std::fs;

use wiretwin_record::capture::{self, ByteOrder, LinkType, pcap, pcapng};
use wiretwin_wire::ipv4::Protocol;

use crate::build;
use crate::tshark::{self, Folder, Format, have, run};

/// The packets of a file, which must come back octet for octet when written again.
pub fn read_back(octets: &[u8]) -> Vec<capture::Packet> {
    let whole = pcap::round_trip(octets).is_some() || pcapng::round_trip(octets).is_some();
    assert!(whole, "read to its end and written back");
    let mut capture = capture::open(octets).expect("a capture");
    let mut packets = Vec::new();
    while let Some(packet) = capture.next_packet().expect("no fault in it") {
        packets.push(packet);
    }
    packets
}

fn some_packets() -> Vec<Vec<u8>> {
    (1..40).map(|length| build::ip(Protocol::UDP, &build::udp(&vec![0xA5; length * 31], true))).collect()
}

#[test]
fn what_editcap_and_mergecap_make_of_our_files_is_read_back() {
    if !have(&["editcap", "mergecap", "capinfos"]) {
        return;
    }
    let packets = some_packets();
    for format in Format::ALL {
        let folder = Folder::new();
        let ours = folder.path("ours");
        tshark::write(&ours, format, LinkType::RAW_IP, &packets);
        let ours = ours.to_str().expect("a name in UTF-8");
        let theirs = folder.path("theirs");
        let theirs = theirs.to_str().expect("a name in UTF-8");
        for kind in ["pcap", "nsecpcap", "pcapng"] {
            run("editcap", &["-F", kind, ours, theirs]);
            let read = read_back(&fs::read(theirs).expect("a file"));
            assert_eq!(read.len(), packets.len(), "{format:?} to {kind}");
            for (number, (packet, octets)) in read.iter().zip(&packets).enumerate() {
                assert_eq!((packet.link, &packet.octets), (LinkType::RAW_IP, octets));
                let mut time = tshark::time(number);
                if kind == "pcap" {
                    time.picoseconds -= time.picoseconds % 1_000_000;
                }
                assert_eq!(packet.timestamp, Some(time), "{format:?} to {kind}, packet {number}");
            }
            run("mergecap", &["-a", "-F", kind, "-w", theirs, ours, ours]);
            let read = read_back(&fs::read(theirs).expect("a file"));
            assert_eq!(read.len(), 2 * packets.len(), "{format:?} twice to {kind}");
        }
        // Cut short: the length on the wire stays.
        run("editcap", &["-F", "pcapng", "-s", "60", ours, theirs]);
        for (packet, octets) in read_back(&fs::read(theirs).expect("a file")).iter().zip(&packets) {
            assert_eq!(packet.original_length as usize, octets.len());
            assert_eq!(packet.octets, octets[..octets.len().min(60)]);
        }
        assert!(run("capinfos", &["-c", ours]).contains(&packets.len().to_string()));
    }
}

#[test]
fn what_text2pcap_makes_of_octets_is_read_back() {
    if !have(&["text2pcap"]) {
        return;
    }
    let packets = some_packets();
    let mut dump = String::new();
    for packet in &packets {
        for (at, line) in packet.chunks(16).enumerate() {
            dump.push_str(&format!("{:06x}", at * 16));
            line.iter().for_each(|octet| dump.push_str(&format!(" {octet:02x}")));
            dump.push('\n');
        }
        dump.push('\n');
    }
    let folder = Folder::new();
    let (text, file) = (folder.path("dump"), folder.path("capture"));
    fs::write(&text, dump).expect("a file");
    let (text, file) = (text.to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    for kind in ["pcap", "nsecpcap", "pcapng"] {
        run("text2pcap", &["-q", "-F", kind, "-l", "101", text, file]);
        let read = read_back(&fs::read(file).expect("a file"));
        let octets: Vec<_> = read.into_iter().map(|packet| packet.octets).collect();
        assert_eq!(octets, packets, "{kind}");
    }
}

#[test]
fn a_file_in_the_other_order_of_octets_says_the_same() {
    let folder = Folder::new();
    let packets = some_packets();
    let mut read = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let path = folder.path("capture");
        tshark::write(&path, Format::Pcapng(order), LinkType::RAW_IP, &packets);
        read.push(read_back(&fs::read(path).expect("a file")));
    }
    assert_eq!(read[0], read[1]);
}
