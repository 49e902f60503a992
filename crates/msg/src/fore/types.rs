//! What calls of the Fore interface take, and why they fail.

use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::spans::{Aal, Address, Outcome, Resources};

/// Names an open device of a host (`fd`); given out from 0, never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor(pub u32);

/// Names a call that waits; the caller gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

/// Names a request for a connection that has come (`conn_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Where a process can be reached (`Atm_endpoint`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The host.
    pub nsap: Address,
    /// The service access point there.
    pub asap: u32,
}

/// A value that is asked for, and the least that will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Asked for.
    pub target: u32,
    /// At most the target.
    pub minimum: u32,
}

/// What a connection asks of the network (`Atm_qos`). 0 asks for nothing: such a circuit goes behind all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qos {
    /// Peak bandwidth, kbit/s, with the 424 bits of each cell.
    pub peak: Want,
    /// Mean bandwidth, kbit/s.
    pub mean: Want,
    /// Mean burst, kbit.
    pub burst: Want,
}

impl Qos {
    /// This peak and no other, kbit/s.
    #[must_use]
    pub const fn peak(kbit_s: u32) -> Self {
        const NOTHING: Want = Want { target: 0, minimum: 0 };
        Self { peak: Want { target: kbit_s, minimum: kbit_s }, mean: NOTHING, burst: NOTHING }
    }

    /// What is asked for.
    #[must_use]
    pub const fn targets(&self) -> Resources {
        Resources {
            peak_kbit_s: self.peak.target,
            mean_kbit_s: self.mean.target,
            burst_kbit: self.burst.target,
        }
    }

    /// The least that will do.
    #[must_use]
    pub const fn minima(&self) -> Resources {
        Resources {
            peak_kbit_s: self.peak.minimum,
            mean_kbit_s: self.mean.minimum,
            burst_kbit: self.burst.minimum,
        }
    }

    pub(super) const fn is_sound(&self) -> bool {
        self.peak.minimum <= self.peak.target
            && self.mean.minimum <= self.mean.target
            && self.burst.minimum <= self.burst.target
    }
}

/// Which way PDUs go (`Atm_dataflow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dataflow {
    /// From who connects to who accepts.
    Simplex,
    /// Both ways, on a circuit each.
    Duplex,
    /// From one to many, on a tree.
    Multicast,
}

/// What an open device says of itself (`Atm_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The longest PDU.
    pub mtu: Bytes,
}

/// Why a call fails (`atm_errno`). Numbers are not known; the names are those of the manual where it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such device.
    NoDevice,
    /// No more descriptors, or requests, are held (`ENOBUFS`).
    NoBuffers {
        /// How many there may be.
        most: u32,
    },
    /// There is no such descriptor (`EBADF`).
    BadDescriptor {
        /// Its number.
        descriptor: u32,
    },
    /// Not in the state that the call wants (`DL_OUTSTATE`).
    OutState {
        /// What it wants.
        wants: &'static str,
    },
    /// The service access point is another's (`DL_BOUND`).
    Bound {
        /// The point.
        asap: u32,
    },
    /// The service access point is the driver's (`DL_BADSAP`).
    BadSap {
        /// The point.
        asap: u32,
        /// Those up to here are the driver's.
        reserved: u32,
    },
    /// The adapter has no such adaptation layer.
    BadAal {
        /// The adaptation layer that was asked for.
        aal: Aal,
    },
    /// A minimum is more than its target.
    BadQos,
    /// This flow is not that of the request.
    BadFlow,
    /// No such request waits.
    NoRequest {
        /// Its number.
        request: u32,
    },
    /// A circuit comes in on this channel already, or none does.
    BadChannel {
        /// The path.
        vpi: u16,
        /// The channel.
        vci: u16,
    },
    /// A PDU is longer than the device takes.
    TooLong {
        /// Its bytes.
        bytes: Bytes,
        /// How many there may be.
        most: Bytes,
    },
    /// The network has not been heard of: the host has no address.
    NoNetwork,
    /// The other side, or the network, has rejected.
    Refused {
        /// The outcome that was answered.
        outcome: Outcome,
    },
    /// Nobody has answered.
    TimedOut,
    /// The descriptor was closed, or its circuits are gone.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoDevice => f.write_str("no such device: it is /dev/fa0"),
            Self::NoBuffers { most } => write!(f, "no buffers: {most} are held already"),
            Self::BadDescriptor { descriptor } => write!(f, "descriptor {descriptor} is not open"),
            Self::OutState { wants } => write!(f, "out of state: this needs a descriptor that is {wants}"),
            Self::Bound { asap } => write!(f, "access point {asap} is bound to another descriptor"),
            Self::BadSap { asap, reserved } => {
                write!(f, "access point {asap} is the driver's, as all up to {reserved}")
            }
            Self::BadAal { aal } => write!(f, "AAL {aal:?}: the adapter has types 3, 4 and 5"),
            Self::BadQos => f.write_str("a minimum is more than its target"),
            Self::BadFlow => f.write_str("the dataflow is not that of the request"),
            Self::NoRequest { request } => write!(f, "no request {request} waits here"),
            Self::BadChannel { vpi, vci } => write!(f, "channel {vpi}/{vci} is taken, or not attached"),
            Self::TooLong { bytes, most } => {
                write!(f, "a PDU of {} bytes, the device takes {}", bytes.get(), most.get())
            }
            Self::NoNetwork => f.write_str("no switch has been heard of"),
            Self::Refused { outcome } => {
                let why = match outcome {
                    Outcome::NoVc => "no channel is free",
                    Outcome::NoResources => "too little bandwidth is left",
                    Outcome::BadDestination => "there is no such destination",
                    Outcome::Ok | Outcome::Failed => "it was not accepted",
                };
                write!(f, "rejected: {why}")
            }
            Self::TimedOut => f.write_str("nobody has answered"),
            Self::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl core::error::Error for Error {}
