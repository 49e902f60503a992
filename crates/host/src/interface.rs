//! What a network interface has carried, as the kernel counts it.

use std::fs;
use std::io;

/// Counts of one interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received, Ethernet headers included.
    pub bytes_in: u64,
    /// Bytes sent, likewise.
    pub bytes_out: u64,
    /// Packets received; one may be longer than a frame where the kernel joins segments.
    pub packets_in: u64,
    /// Packets sent; one may be longer than a frame where the interface segments.
    pub packets_out: u64,
}

impl Traffic {
    /// The counts of an interface of this process's network namespace.
    ///
    /// # Errors
    /// The table cannot be read, or the interface is not in it.
    pub fn of(interface: &str) -> io::Result<Self> {
        Self::find(&fs::read_to_string("/proc/self/net/dev")?, interface).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no interface `{interface}`"))
        })
    }

    /// What was carried since `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            bytes_in: self.bytes_in.wrapping_sub(before.bytes_in),
            bytes_out: self.bytes_out.wrapping_sub(before.bytes_out),
            packets_in: self.packets_in.wrapping_sub(before.packets_in),
            packets_out: self.packets_out.wrapping_sub(before.packets_out),
        }
    }

    /// Finds an interface in the table: its name and a colon, eight numbers received (bytes and
    /// packets first), eight sent.
    fn find(table: &str, interface: &str) -> Option<Self> {
        table.lines().find_map(|line| {
            let (name, counts) = line.split_once(':')?;
            if name.trim() != interface {
                return None;
            }
            let numbers: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
            Some(Self {
                bytes_in: *numbers.first()?,
                packets_in: *numbers.get(1)?,
                bytes_out: *numbers.get(8)?,
                packets_out: *numbers.get(9)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:     111      12    0    0    0     0          0         0      131      14    0    0    0     0
  eth0:18446744073709551615 7 0 0 0 0 0 0 8 9 0 0 0 0 0 0
  eth1: 1 2
";

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let lo = Traffic { bytes_in: 111, packets_in: 12, bytes_out: 131, packets_out: 14 };
        assert_eq!(Traffic::find(TABLE, "lo"), Some(lo));
        let eth0 = Traffic { bytes_in: u64::MAX, packets_in: 7, bytes_out: 8, packets_out: 9 };
        assert_eq!(Traffic::find(TABLE, "eth0"), Some(eth0));
        assert_eq!(Traffic::find(TABLE, "eth1"), None, "a line that is cut off");
        assert_eq!(Traffic::find(TABLE, "eth"), None);
        assert_eq!(lo.since(&lo), Traffic::default());
    }

    #[test]
    fn the_loopback_interface_is_there() {
        let before = Traffic::of("lo").unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 500], socket.local_addr().unwrap()).unwrap();
        assert!(Traffic::of("lo").unwrap().since(&before).bytes_out >= 528);
        let missing = Traffic::of("no such thing").unwrap_err();
        assert_eq!(missing.to_string(), "there is no interface `no such thing`");
    }
}
