//! What takes time on the way of a message, and to which layer and resource it belongs.

use std::fmt;

use wiretwin_proto::WorkKind;

use crate::named::named;

named! {
    /// A layer of a stack, from the program to the wire.
    Layer:
    /// The program itself.
    Program = "program",
    /// The message layer: what the program calls.
    Message = "message",
    /// The operating system under it: traps, switches of context, interrupts, copies.
    System = "system",
    /// TCP, UDP and IP.
    Transport = "transport",
    /// The ATM adaptation layer.
    Adaptation = "adaptation",
    /// The adapter's driver.
    Driver = "driver",
    /// The adapter.
    Adapter = "adapter",
    /// Links.
    Link = "link",
    /// Switches and other elements between links.
    Switch = "switch",
}

named! {
    /// Something that does one thing at a time, or the plain passing of time.
    Resource:
    /// A host's processor.
    Cpu = "cpu",
    /// A host's input and output bus.
    Bus = "bus",
    /// The processor on an adapter.
    Firmware = "firmware",
    /// A link while it sends.
    Wire = "wire",
    /// A switch's fabric.
    Fabric = "fabric",
    /// Nothing is used: light travels, a delay passes.
    Delay = "delay",
}

macro_rules! activities {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $layer:ident, $resource:ident;)*) => {
        named! {
            /// One kind of thing that takes time.
            Activity: $($(#[$doc])* $variant = $name,)*
        }

        impl Activity {
            /// The layer that asks for it.
            #[must_use]
            pub const fn layer(self) -> Layer {
                match self { $(Self::$variant => Layer::$layer,)* }
            }

            /// What it keeps busy.
            #[must_use]
            pub const fn resource(self) -> Resource {
                match self { $(Self::$variant => Resource::$resource,)* }
            }
        }
    };
}

activities! {
    // What a host's processor does, priced by its profile. `CPU_ACTIVITIES` counts these.
    /// The program computes.
    Compute = "compute", Program, Cpu;
    /// Entering and leaving the kernel, once a system call.
    Trap = "trap", System, Cpu;
    /// Taking an interrupt and returning from it.
    Interrupt = "interrupt", System, Cpu;
    /// A process that slept is made to run.
    ContextSwitch = "context_switch", System, Cpu;
    /// Copying from the program's memory into the kernel's.
    CopyIn = "copy_in", System, Cpu;
    /// Copying from the kernel's memory into the program's.
    CopyOut = "copy_out", System, Cpu;
    /// What the host does besides: the clock's interrupt, other processes.
    Background = "background", System, Cpu;
    /// What the first message to a peer takes besides: what is behind it is not told apart.
    FirstUse = "first_use", System, Cpu;
    /// The Fore interface's send: stream head, message blocks, device queue; once a PDU.
    ForeSend = "fore_send", Message, Cpu;
    /// The Fore interface's receive, in the process: stream head and message blocks; once a PDU.
    ForeReceive = "fore_receive", Message, Cpu;
    /// A socket's send, but copies and protocols: once a system call.
    SocketSend = "socket_send", Message, Cpu;
    /// A socket's receive, the same.
    SocketReceive = "socket_receive", Message, Cpu;
    /// Looking which of a process's sockets are ready (`select`), but the system call.
    Select = "select", System, Cpu;
    /// What a message layer's library does once a message, at each end.
    Library = "library", Message, Cpu;
    /// Copying from one place of a process to another.
    UserCopy = "user_copy", Message, Cpu;
    /// Making or reading the head of a remote procedure call, and finding whom it is for.
    RpcHead = "rpc_head", Message, Cpu;
    /// Converting one item to or from XDR.
    XdrItem = "xdr_item", Message, Cpu;
    /// A daemon hands on a piece of a message that is not its own, once each way.
    Forward = "forward", Message, Cpu;
    /// Making or reading the mark of one fragment of a record.
    RecordMark = "record_mark", Message, Cpu;
    /// Getting or freeing a buffer of the kernel's.
    Mbuf = "mbuf", System, Cpu;
    /// The Internet checksum.
    Checksum = "checksum", Transport, Cpu;
    /// TCP and IP make a segment.
    SegmentOut = "segment_out", Transport, Cpu;
    /// IP and TCP take a segment in.
    SegmentIn = "segment_in", Transport, Cpu;
    /// What an acknowledgment brings about.
    AckIn = "ack_in", Transport, Cpu;
    /// A timer of a protocol runs out.
    TimerExpiry = "timer_expiry", Transport, Cpu;
    /// The driver sends a packet.
    PacketOut = "packet_out", Driver, Cpu;
    /// The driver's work in an interrupt for a packet that has come.
    PacketIn = "packet_in", Driver, Cpu;
    /// The driver's work in an interrupt for a PDU that has come, up to waking its reader.
    PduInterrupt = "pdu_interrupt", Driver, Cpu;
    /// Entering the kernel by a trap gate of its own, to post a descriptor.
    FastTrap = "fast_trap", System, Cpu;
    /// Ringing the doorbell of a VI: a store to the adapter.
    Doorbell = "doorbell", Message, Cpu;
    /// Seeing that a descriptor is done, by a process that looks again and again.
    ViaPoll = "via_poll", Message, Cpu;
    /// The kernel's emulation of VIs makes one packet and hands it to the adapter.
    ViaPacketOut = "via_packet_out", Driver, Cpu;
    /// It takes one packet to its VI.
    ViaPacketIn = "via_packet_in", Driver, Cpu;
    /// It copies from the driver's ring to where a descriptor says.
    ViaCopy = "via_copy", Driver, Cpu;
    /// Registering memory: pinning its pages.
    RegisterMemory = "register_memory", System, Cpu;
    /// Giving registered memory back.
    DeregisterMemory = "deregister_memory", System, Cpu;
    /// A CRC by software.
    Crc = "crc", Adaptation, Cpu;
    /// Cutting a cell off a PDU by software.
    SegmentCell = "segment_cell", Adaptation, Cpu;
    /// Putting a cell behind the others of its PDU by software.
    ReassembleCell = "reassemble_cell", Adaptation, Cpu;
    /// The processor looks whether an adapter's FIFO has room again.
    FifoFull = "fifo_full", Driver, Cpu;
    /// Writing a cell into an adapter's FIFO, word by word over the bus.
    CellOut = "cell_out", Driver, Bus;
    /// Reading a cell from an adapter's FIFO, word by word over the bus.
    CellIn = "cell_in", Driver, Bus;
    // What adapters do.
    /// Firmware takes up a PDU to send.
    SendPdu = "send_pdu", Adapter, Firmware;
    /// Firmware sends a cell.
    SendCell = "send_cell", Adapter, Firmware;
    /// Firmware takes in a cell.
    ReceiveCell = "receive_cell", Adapter, Firmware;
    /// Firmware hands a whole PDU to the host.
    ReceivePdu = "receive_pdu", Adapter, Firmware;
    /// A cell's payload crosses the host's bus.
    Dma = "dma", Adapter, Bus;
    /// From a cell in the receive FIFO to the interrupt.
    InterruptDelay = "interrupt_delay", Adapter, Delay;
    // What is between adapters.
    /// A cell or frame is sent.
    Serialize = "serialize", Link, Wire;
    /// It travels.
    Propagate = "propagate", Link, Delay;
    /// It crosses a switch's fabric.
    Fabric = "fabric", Switch, Fabric;
    /// It passes the fixed part of a switch's delay.
    SwitchDelay = "switch_delay", Switch, Delay;
}

/// What work of a machine is to the processor that does it; `None` where it is in another price.
///
/// Every kind is named, so that one that is added is thought of here.
#[must_use]
pub const fn activity_of(kind: WorkKind) -> Option<Activity> {
    match kind {
        WorkKind::CopyIn => Some(Activity::CopyIn),
        WorkKind::CopyOut => Some(Activity::CopyOut),
        WorkKind::Checksum => Some(Activity::Checksum),
        WorkKind::SegmentOut | WorkKind::DatagramOut | WorkKind::SscopOut => Some(Activity::SegmentOut),
        WorkKind::SegmentIn | WorkKind::DatagramIn | WorkKind::SscopIn => Some(Activity::SegmentIn),
        WorkKind::AckIn => Some(Activity::AckIn),
        WorkKind::TimerExpiry => Some(Activity::TimerExpiry),
        WorkKind::SegmentCell => Some(Activity::SegmentCell),
        WorkKind::ReassembleCell => Some(Activity::ReassembleCell),
        WorkKind::Crc => Some(Activity::Crc),
        WorkKind::RpcHeadOut | WorkKind::RpcHeadIn => Some(Activity::RpcHead),
        WorkKind::XdrItemsOut | WorkKind::XdrItemsIn => Some(Activity::XdrItem),
        WorkKind::RecordOut | WorkKind::RecordIn => Some(Activity::RecordMark),
        WorkKind::Forward => Some(Activity::Forward),
        WorkKind::SystemCall => Some(Activity::Trap),
        WorkKind::LibrarySend | WorkKind::LibraryReceive => Some(Activity::Library),
        WorkKind::XdrOpaqueOut | WorkKind::XdrOpaqueIn | WorkKind::UserCopy => Some(Activity::UserCopy),
        // The driver's price of a packet has it, and who is woken pays for the switch of context.
        WorkKind::PacketOut | WorkKind::PacketIn | WorkKind::Wakeup => None,
        WorkKind::Doorbell => Some(Activity::Doorbell),
        WorkKind::FastTrap => Some(Activity::FastTrap),
        WorkKind::ViaPacketOut => Some(Activity::ViaPacketOut),
        WorkKind::ViaPacketIn => Some(Activity::ViaPacketIn),
        WorkKind::RegisterMemory => Some(Activity::RegisterMemory),
        WorkKind::DeregisterMemory => Some(Activity::DeregisterMemory),
    }
}

/// The activities of stacks over VIs: a profile of a host may leave them out where the stack is another.
pub const VI_ACTIVITIES: [Activity; 8] = [
    Activity::FastTrap,
    Activity::Doorbell,
    Activity::ViaPoll,
    Activity::ViaPacketOut,
    Activity::ViaPacketIn,
    Activity::ViaCopy,
    Activity::RegisterMemory,
    Activity::DeregisterMemory,
];

/// How many activities are those of a host's processor, the first ones.
pub const CPU_ACTIVITIES: usize = Activity::CellIn as usize + 1;

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_numbered_as_they_are_listed_and_named_apart() {
        for (number, activity) in Activity::ALL.iter().enumerate() {
            assert_eq!(*activity as usize, number);
            assert_eq!(Activity::ALL.iter().filter(|other| other.name() == activity.name()).count(), 1);
        }
        let on_host = |activity: &Activity| matches!(activity.resource(), Resource::Cpu | Resource::Bus);
        assert!(Activity::ALL[..CPU_ACTIVITIES].iter().all(on_host));
    }
}
