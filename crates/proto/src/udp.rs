//! The User Datagram Protocol: a socket's two queues and their bounds.
//!
//! RFC 768 (1980) with RFC 1122 §4.1. One [`Socket`] is one end; ports and addresses are told to it by
//! whoever takes datagrams to sockets. There is no timer and no state: a datagram goes or is rejected,
//! comes or is dropped.

use alloc::collections::VecDeque;
use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::udp::{HEADER_OCTETS, MAX_PAYLOAD_OCTETS};

use crate::{Output, Payload, Work, WorkKind};

/// Parameters of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest datagram that may be sent, in octets of payload: `SO_SNDBUF` bounds it. 4.3BSD:
    /// 2048, then 9216 (the default), so that 8 KiB of NFS fit; at most 65507.
    pub send_most: u16,
    /// What may wait to be read, in octets, each datagram with the address of its sender (16 octets).
    /// Net/2: 41600 (the default), forty datagrams of 1 KiB.
    pub receive_buffer: u32,
    /// Whether datagrams carry a checksum. SunOS 4.1: no; RFC 1122 §4.1.3.4: yes, the default.
    pub checksum: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { send_most: 9_216, receive_buffer: 41_600, checksum: true }
    }
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// What it carries.
    pub payload: Payload,
    /// Whether it carries a checksum.
    pub checksum: bool,
    /// An octet is not as it was sent. A checksum will find it, if there is one.
    pub corrupted: bool,
}

impl Datagram {
    /// Octets of it, header included, without those of IP.
    pub const fn octets(&self) -> u32 {
        HEADER_OCTETS as u32 + self.payload.length.get() as u32
    }
}

/// A payload that is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError {
    /// Octets of the payload.
    pub length: Bytes,
    /// The most there may be.
    pub most: Bytes,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, most) = (self.length.get(), self.most.get());
        write!(f, "a datagram of {length} octets: this socket sends at most {most} (EMSGSIZE)")
    }
}

impl core::error::Error for SendError {}

/// Something that happened to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A datagram was dropped: its checksum fails.
    Checksum,
    /// A datagram was dropped: there was no room for it.
    Full {
        /// Octets of its payload.
        length: Bytes,
    },
    /// A datagram was delivered whose octets are not as they were sent: it has no checksum.
    Unnoticed,
    /// The network said that there is no way to the peer, or nobody there (`ECONNREFUSED`).
    Unreachable,
}

/// What a socket asks of its driver.
pub type UdpOutput = Output<Datagram, Payload, Event>;

/// One socket.
#[derive(Clone, Debug)]
pub struct Socket {
    config: Config,
    /// What came and was not read.
    waiting: VecDeque<Payload>,
    waiting_octets: u32,
    outputs: VecDeque<UdpOutput>,
}

impl Socket {
    /// A socket with nothing in it.
    pub const fn new(config: Config) -> Self {
        Self { config, waiting: VecDeque::new(), waiting_octets: 0, outputs: VecDeque::new() }
    }

    /// Sends a datagram; an empty one goes, too.
    ///
    /// # Errors
    /// [`SendError`] where the payload is longer than the socket sends.
    pub fn send(&mut self, payload: Payload) -> Result<(), SendError> {
        let most = Bytes::new(u64::from(self.config.send_most.min(MAX_PAYLOAD_OCTETS)));
        if payload.length > most {
            return Err(SendError { length: payload.length, most });
        }
        let datagram = Datagram { payload, checksum: self.config.checksum, corrupted: false };
        self.work(WorkKind::CopyIn, payload.length);
        let octets = Bytes::new(datagram.octets().into());
        if datagram.checksum {
            self.work(WorkKind::Checksum, octets);
        }
        self.work(WorkKind::DatagramOut, octets);
        self.outputs.push_back(Output::Transmit(datagram));
        Ok(())
    }

    /// Takes a datagram that is for this socket.
    pub fn handle_datagram(&mut self, datagram: Datagram) {
        let octets = Bytes::new(datagram.octets().into());
        self.work(WorkKind::DatagramIn, octets);
        if datagram.checksum {
            self.work(WorkKind::Checksum, octets);
            if datagram.corrupted {
                return self.outputs.push_back(Output::Event(Event::Checksum));
            }
        }
        let payload = datagram.payload;
        let taken = u64::from(self.waiting_octets) + payload.length.get() + ADDRESS_OCTETS;
        if taken > u64::from(self.config.receive_buffer) {
            return self.outputs.push_back(Output::Event(Event::Full { length: payload.length }));
        }
        self.waiting_octets = taken as u32;
        self.waiting.push_back(payload);
        if datagram.corrupted {
            self.outputs.push_back(Output::Event(Event::Unnoticed));
        }
        self.work(WorkKind::Wakeup, Bytes::new(0));
        self.outputs.push_back(Output::Deliver(payload));
    }

    /// The network says that there is no way to the peer, or that no socket is there (ICMP destination
    /// unreachable).
    pub fn handle_unreachable(&mut self) {
        self.outputs.push_back(Output::Event(Event::Unreachable));
    }

    /// Reads the next datagram that was delivered; `None` where there is none. What does not fit the
    /// reader's buffer is lost with it.
    pub fn receive(&mut self, most: Bytes) -> Option<Payload> {
        let payload = self.waiting.pop_front()?;
        self.waiting_octets -= (payload.length.get() + ADDRESS_OCTETS) as u32;
        let length = payload.length.min(most);
        self.work(WorkKind::CopyOut, length);
        Some(Payload { length, ..payload })
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> UdpOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }

    /// Octets that wait to be read, each datagram with an address.
    pub const fn waiting(&self) -> Bytes {
        Bytes::new(self.waiting_octets as u64)
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }
}

/// A `sockaddr_in` before each datagram that waits (`sbappendaddr`).
const ADDRESS_OCTETS: u64 = 16;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::MessageId;

    fn payload(message: u64, length: u64) -> Payload {
        Payload::whole(MessageId(message), Bytes::new(length))
    }

    fn datagram(message: u64, length: u64) -> Datagram {
        Datagram { payload: payload(message, length), checksum: true, corrupted: false }
    }

    fn drain(socket: &mut Socket) -> Vec<UdpOutput> {
        core::iter::from_fn(|| match socket.poll_output() {
            Output::Timeout(timeout) => {
                assert_eq!(timeout, None);
                None
            }
            output => Some(output),
        })
        .collect()
    }

    #[test]
    fn a_datagram_goes_out_after_its_copy_and_its_checksum() {
        let mut socket = Socket::new(Config::default());
        socket.send(payload(1, 100)).unwrap();
        let work = |kind, octets| Output::Work(Work { kind, bytes: Bytes::new(octets), count: 1 });
        let expected = [
            work(WorkKind::CopyIn, 100),
            work(WorkKind::Checksum, 108),
            work(WorkKind::DatagramOut, 108),
            Output::Transmit(datagram(1, 100)),
        ];
        assert_eq!(drain(&mut socket), expected);
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_is_refused_and_leaves_nothing() {
        let mut socket = Socket::new(Config::default());
        let error = socket.send(payload(1, 9_217)).unwrap_err();
        assert_eq!(error.to_string(), "a datagram of 9217 octets: this socket sends at most 9216 (EMSGSIZE)");
        assert_eq!(drain(&mut socket), []);
        let mut wide = Socket::new(Config { send_most: u16::MAX, ..Config::default() });
        assert_eq!(wide.send(payload(1, 65_508)).unwrap_err().most, Bytes::new(65_507));
        assert_eq!(wide.send(payload(1, 0)), Ok(()));
    }

    #[test]
    fn a_full_buffer_drops_and_a_reader_makes_room() {
        let mut socket = Socket::new(Config { receive_buffer: 232, ..Config::default() });
        for message in 0..3 {
            socket.handle_datagram(datagram(message, 100));
        }
        let outputs = drain(&mut socket);
        assert_eq!(outputs.last(), Some(&Output::Event(Event::Full { length: Bytes::new(100) })));
        assert_eq!(outputs.iter().filter(|output| matches!(output, Output::Deliver(_))).count(), 2);
        assert_eq!(socket.receive(Bytes::new(60)), Some(payload(0, 60)), "what does not fit is lost");
        assert_eq!(socket.waiting(), Bytes::new(116));
        socket.handle_datagram(datagram(3, 100));
        assert_eq!(socket.receive(Bytes::new(100)), Some(payload(1, 100)));
        assert_eq!(socket.receive(Bytes::new(100)), Some(payload(3, 100)));
        assert_eq!(socket.receive(Bytes::new(100)), None);
        assert_eq!(socket.waiting(), Bytes::new(0));
    }

    #[test]
    fn damage_is_found_by_a_checksum_and_not_without() {
        let mut socket = Socket::new(Config::default());
        socket.handle_datagram(Datagram { corrupted: true, ..datagram(1, 10) });
        assert_eq!(drain(&mut socket).last(), Some(&Output::Event(Event::Checksum)));
        assert_eq!(socket.receive(Bytes::new(10)), None);
        socket.handle_datagram(Datagram { corrupted: true, checksum: false, ..datagram(2, 10) });
        assert!(drain(&mut socket).contains(&Output::Event(Event::Unnoticed)));
        assert_eq!(socket.receive(Bytes::new(10)), Some(payload(2, 10)));
    }

    #[test]
    fn a_report_of_the_network_reaches_the_user() {
        let mut socket = Socket::new(Config::default());
        socket.handle_unreachable();
        assert_eq!(drain(&mut socket), [Output::Event(Event::Unreachable)]);
    }
}
