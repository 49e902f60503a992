//! Real clocks, sockets, shared memory and pinning.
//!
//! The live world: [`Pair`] is the unframed two-rank world that the measuring loops run on, [`Mesh`]
//! the framed world of any number of ranks that programs run on, [`Shim`] either of them over a messaging
//! library. Every wait has a limit, and a peer that dies ends the wait at once.

mod clock;
mod crossing;
pub mod direct;
mod interface;
mod line;
mod mapping;
mod mesh;
mod mvich;
mod pair;
mod pcaal;
mod process;
mod reader;
mod rendezvous;
mod ring;
mod rpc;
mod shim;
mod shm;
mod signals;
pub mod sim;
mod socket;
mod store;
mod stream;
mod tap;
mod udp;
pub mod vipl;

pub use clock::{Clock, ClockQuality, since_1970};
pub use crossing::crossing;
pub use interface::Traffic;
pub use mesh::Mesh;
pub use mvich::{Mvich, MvichOptions};
pub use pair::{Pair, drive};
pub use pcaal::{Faults as PcaalFaults, PcaalOptions, PcaalStream, pcaal};
pub use process::{
    PinError, arm_watchdog, default_interrupts, die_with_parent, disarm_watchdog, pin, pinned,
    run_before_all_others, sharp_timers, tie_to, worked, write_line,
};
pub use reader::{Reader, ReaderError};
pub use rendezvous::{Meeting, MeetingError};
pub use rpc::{Heard, Reaction, RpcClient, RpcClientError, RpcServer, broadcast};
pub use shim::{SHIM_ABI, Shim, ShimError, TogetherCall, crowded};
pub use shm::{ShmStream, shm};
pub use signals::{Caught, Signals};
pub use socket::{SocketOptions, SocketStream, tcp, unix};
pub use stream::{Failure, Spinner, Stream, Wait};
pub use tap::{Tap, TapError, TapOptions};
pub use udp::{LARGEST_DATAGRAM, LossLimit, UdpStream};
pub use wiretwin_proto::pcaal::{Counters as PcaalCounters, Watch};
