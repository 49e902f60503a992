//! What a machine asks of its driver.

use wiretwin_units::{Bytes, SimTime};

/// One thing a machine asks of its driver, in the order in which it is to be done.
///
/// `P` is the machine's PDU, `D` what it hands to the layer above, `E` what it tells management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P, D, E> {
    /// Work that was done, to be paid for before anything that follows is let go. A live driver
    /// drops it: there the work takes the time it takes.
    Work(Work),
    /// Send this to the layer below.
    Transmit(P),
    /// Give this to the layer above.
    Deliver(D),
    /// Something happened that is no one's data: a loss, an expiry.
    Event(E),
    /// Nothing more for now. Call `handle_timeout` at this time; `None` is never.
    Timeout(Option<SimTime>),
}

/// Work that a machine has done, in units that a host profile has a price for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)] // so that no field is read together with one that was not written with it
pub struct Work {
    /// What was done.
    pub kind: WorkKind,
    /// How many times.
    pub count: u32,
    /// To how many bytes in all.
    pub bytes: Bytes,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Cutting one cell's payload off a PDU.
    SegmentCell,
    /// Putting one cell's payload behind those of its PDU.
    ReassembleCell,
    /// A CRC over the bytes.
    Crc,
    /// Making one TCP segment of so many bytes, its header included, and handing it to IP.
    SegmentOut,
    /// Taking one TCP segment of so many bytes, its header included, to its connection.
    SegmentIn,
    /// What an acknowledgment of so many new bytes brings about.
    AckIn,
    /// The Internet checksum over the bytes.
    Checksum,
    /// Copying the bytes from the user to the kernel; `count` is the mbufs or clusters they fill.
    CopyIn,
    /// Copying the bytes from the kernel to the user; `count` is the mbufs or clusters they leave.
    CopyOut,
    /// Making one IP packet of so many bytes, a fragment or a whole one, and handing it to the link.
    PacketOut,
    /// Taking one IP packet of so many bytes to where it belongs.
    PacketIn,
    /// Making one UDP datagram of so many bytes, its header included, and handing it to IP.
    DatagramOut,
    /// Taking one UDP datagram of so many bytes, its header included, to its socket.
    DatagramIn,
    /// Making one SSCOP PDU of so many bytes and handing it to the layer below.
    SscopOut,
    /// Taking one SSCOP PDU of so many bytes to its connection.
    SscopIn,
    /// A protocol timer that ran out.
    TimerExpiry,
    /// Waking whoever sleeps on a socket; nobody may.
    Wakeup,
    /// Making the head of one RPC message of so many bytes.
    RpcHeadOut,
    /// Reading the head of one RPC message of so many bytes and finding whom it is for.
    RpcHeadIn,
    /// Putting so many items into XDR one by one; the bytes are those they take there.
    XdrItemsOut,
    /// Taking so many items out of XDR one by one.
    XdrItemsIn,
    /// Copying opaque bytes into XDR.
    XdrOpaqueOut,
    /// Copying opaque bytes out of XDR.
    XdrOpaqueIn,
    /// Writing the mark of one fragment of a record, and handing the fragment of so many bytes on.
    RecordOut,
    /// Reading the mark of one fragment of a record of so many bytes.
    RecordIn,
    /// What a message layer's library does once for a message of so many bytes that is sent.
    LibrarySend,
    /// The same for one that comes.
    LibraryReceive,
    /// Copying the bytes from one place of a process to another.
    UserCopy,
    /// Ringing the doorbell of a VI: a store to the adapter.
    Doorbell,
    /// Entering the kernel by a trap gate of its own, without the path of a system call.
    FastTrap,
    /// Making one packet of a VI's message with so many bytes of data, and handing it to the link.
    ViaPacketOut,
    /// Taking one packet of a VI's message with so many bytes of data to its VI.
    ViaPacketIn,
    /// Registering a region of so many bytes of memory: pinning its pages.
    RegisterMemory,
    /// Giving a region of so many bytes of memory back.
    DeregisterMemory,
    /// What a daemon does to hand on one piece of a message of so many bytes, its headers included.
    Forward,
    /// A system call that does next to nothing, as one that asks for the time.
    SystemCall,
}
