//! Endpoints: made, bound, progressed, closed. What they transfer is in [`crate::transfer`].

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::time::Duration;

use libc::{size_t, ssize_t};
use wiretwin_host::direct::{Completion, Kind, Receive, Trouble};
use wiretwin_msg::tagged::Pattern;

use crate::abi::*;
use crate::below::Below;
use crate::cq::{Cq, Reader};
use crate::domain::{Av, Domain, give};
use crate::error;
use crate::inert::{nothing, nothing_sent};
use crate::settings::Wait;
use crate::transfer;

/// An endpoint.
#[repr(C)]
pub(crate) struct Ep {
    fid: FidEp,
    pub domain: *mut Domain,
    pub below: Below,
    av: *mut Av,
    /// The numbers of peers by those of the address vector.
    peers: Vec<usize>,
    /// The reverse, where there is one.
    numbers: Vec<FiAddr>,
    tx_cq: *mut Cq,
    rx_cq: *mut Cq,
    /// Sends and receives complete only if they say so.
    tx_selective: bool,
    rx_selective: bool,
    /// What operations say that cannot say anything themselves.
    pub tx_flags: u64,
    pub rx_flags: u64,
    /// Messages that were claimed, by the context they were claimed with.
    pub claims: Vec<(usize, usize)>,
    /// Buffers that take one untagged message after the other, by context.
    buffers: BTreeMap<usize, Buffer>,
    /// With less room than this a buffer takes no more.
    least_room: u64,
    wait: Wait,
}

/// What is left of a buffer that takes several messages (`FI_MULTI_RECV`), and from whom it takes them.
struct Buffer {
    pattern: Pattern,
    left: Receive,
}

/// Where messages begin in a buffer of several: at multiples of this many bytes.
const ALIGNMENT: u64 = 16;

/// How long an endpoint that is closed sends what is left.
const LINGER: Duration = Duration::from_secs(2);

static EP_FID: FiOps = FiOps { size: size_of::<FiOps>(), close, bind, control, ops_open: nothing };
static EP: OpsEp = OpsEp {
    size: size_of::<OpsEp>(),
    cancel,
    getopt,
    setopt,
    tx_ctx: nothing,
    rx_ctx: nothing,
    rx_size_left: nothing_sent,
    tx_size_left: nothing_sent,
};
/// A library that is told to use them all the same hears that it cannot.
static RMA: OpsRma = OpsRma { size: size_of::<OpsRma>(), each: [nothing_sent; 9] };
static CM: OpsCm = OpsCm {
    size: size_of::<OpsCm>(),
    setname: nothing,
    getname,
    getpeer: nothing,
    connect: nothing,
    listen: nothing,
    accept: nothing,
    reject: nothing,
    shutdown: nothing,
    join: nothing,
};

pub(crate) unsafe extern "C" fn endpoint(
    domain: *mut FidDomain,
    info: *mut FiInfo,
    made: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    let (below, wait) = match Below::open() {
        Ok(opened) => opened,
        Err(reason) => {
            // The only way to say why: the caller is given no more than a number.
            eprintln!("wiretwin: {reason}");
            return error(EINVAL);
        }
    };
    let fid = Fid { fclass: FI_CLASS_EP, context, ops: &EP_FID };
    // SAFETY: the info is one of ours or a copy of it, and the result has the caller's place.
    unsafe {
        let ep = Ep {
            fid: FidEp {
                fid,
                ops: &EP,
                cm: &CM,
                msg: &transfer::MSG,
                rma: &RMA,
                tagged: &transfer::TAGGED,
                atomic: null(),
                collective: null(),
            },
            domain: domain.cast(),
            below,
            av: null_mut(),
            peers: Vec::new(),
            numbers: Vec::new(),
            tx_cq: null_mut(),
            rx_cq: null_mut(),
            tx_selective: false,
            rx_selective: false,
            tx_flags: (*info).tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
            rx_flags: (*info).rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
            claims: Vec::new(),
            buffers: BTreeMap::new(),
            least_room: 1,
            wait,
        };
        *made = Box::into_raw(Box::new(ep)).cast();
    }
    0
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    let ep = fid.cast::<Ep>();
    // SAFETY: the objects are ours; what is bound lives until after the endpoint is closed.
    unsafe {
        match (*other).fclass {
            FI_CLASS_CQ => {
                let cq = other.cast::<Cq>();
                if flags & FI_SEND != 0 {
                    (*ep).tx_cq = cq;
                    (*ep).tx_selective = flags & FI_SELECTIVE_COMPLETION != 0;
                }
                if flags & FI_RECV != 0 {
                    (*ep).rx_cq = cq;
                    (*ep).rx_selective = flags & FI_SELECTIVE_COMPLETION != 0;
                }
                let cq = &mut *cq;
                cq.is_direct &= matches!((*ep).below, Below::Direct(_));
                if !cq.endpoints.contains(&ep) {
                    cq.endpoints.push(ep);
                }
            }
            FI_CLASS_AV => (*ep).av = other.cast(),
            FI_CLASS_CNTR | FI_CLASS_EQ => {}
            _ => return error(EINVAL),
        }
    }
    0
}

unsafe extern "C" fn control(_fid: *mut Fid, command: c_int, _argument: *mut c_void) -> c_int {
    if command == FI_ENABLE { 0 } else { error(ENOSYS) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: an endpoint that was made by `endpoint` and is closed once; its queues live still.
    unsafe {
        let ep = fid.cast::<Ep>();
        let domain = (*ep).domain;
        let _held = (*domain).lock.take();
        let mut ep = Box::from_raw(ep);
        let own: *mut Ep = &raw mut *ep;
        for cq in [ep.tx_cq, ep.rx_cq] {
            if let Some(cq) = cq.as_mut() {
                cq.endpoints.retain(|&one| one != own);
            }
        }
        ep.below.finish(LINGER);
    }
    0
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> ssize_t {
    // SAFETY: an endpoint of ours.
    unsafe {
        let ep = &mut *fid.cast::<Ep>();
        let _held = (*ep.domain).lock.take();
        let found = ep.below.cancel(context as usize);
        ep.settle();
        if found { 0 } else { error(ENOENT) as ssize_t }
    }
}

unsafe extern "C" fn getopt(_: *mut Fid, _: c_int, _: c_int, _: *mut c_void, _: *mut size_t) -> c_int {
    error(ENOPROTOOPT)
}

unsafe extern "C" fn setopt(
    fid: *mut Fid,
    _level: c_int,
    name: c_int,
    value: *const c_void,
    length: size_t,
) -> c_int {
    if name != FI_OPT_MIN_MULTI_RECV || length != size_of::<size_t>() {
        return error(ENOPROTOOPT);
    }
    // SAFETY: an endpoint of ours, and a value of that many bytes.
    unsafe { (*fid.cast::<Ep>()).least_room = *value.cast::<size_t>() as u64 };
    0
}

unsafe extern "C" fn getname(fid: *mut Fid, to: *mut c_void, length: *mut size_t) -> c_int {
    // SAFETY: an endpoint of ours, and the caller's room for `length` bytes.
    unsafe {
        let ep = &*fid.cast::<Ep>();
        let enough = give(&ep.below.address().to_bytes(), to, length);
        if enough { 0 } else { error(FI_ETOOSMALL) }
    }
}

impl Ep {
    /// Takes what has come and sends what may be sent, and hands what has ended to the reader of a queue, the rest to the
    /// queues; waits a little where there is nothing to do.
    ///
    /// # Safety
    /// An endpoint of ours, in whose domain nobody else is at work.
    pub(crate) unsafe fn progress(ep: *mut Self, reader: &mut Reader) {
        // SAFETY: the caller's promise.
        let ep = unsafe { &mut *ep };
        ep.below.look_on(ep.wait);
        ep.below.give_way(ep.wait);
        while reader.has_room()
            && let Some(completion) = ep.below.completion()
        {
            let in_buffer = completion.tag.is_none() && !ep.buffers.is_empty();
            if completion.trouble.is_none() && !in_buffer && ep.queue_of(&completion) == reader.cq {
                let (entry, source) = ep.entry(&completion, 0);
                reader.give(&entry, source);
            } else {
                ep.settle_one(&completion);
            }
        }
        ep.settle();
    }

    /// Puts what has ended into the queues.
    #[inline]
    pub(crate) fn settle(&mut self) {
        while let Some(completion) = self.below.completion() {
            self.settle_one(&completion);
        }
    }

    fn settle_one(&mut self, completion: &Completion) {
        let ends_buffer = !self.buffers.is_empty() && self.ends_buffer(completion);
        self.put(completion, if ends_buffer { FI_MULTI_RECV } else { 0 });
    }

    /// Posts a buffer that takes messages until it has too little room.
    ///
    /// # Safety
    /// The buffer is left alone until a completion says that it takes no more.
    pub(crate) unsafe fn receive_several(&mut self, pattern: Pattern, receive: Receive, context: usize) {
        let left = Receive { context: Some(context), ..receive };
        self.buffers.insert(context, Buffer { pattern, left });
        // SAFETY: the caller's promise.
        unsafe { self.below.receive(pattern, left) };
    }

    /// Posts what a message has left of the buffer of several that it is in: whether it has ended one.
    #[cold]
    fn ends_buffer(&mut self, completion: &Completion) -> bool {
        if completion.kind == Kind::Sent || completion.tag.is_some() {
            return false;
        }
        let Some(Buffer { pattern, left }) = self.buffers.get_mut(&completion.context) else { return false };
        let used = completion.length.next_multiple_of(ALIGNMENT).min(left.length);
        left.length -= used;
        if completion.trouble.is_some() || left.length < self.least_room {
            self.buffers.remove(&completion.context);
            return true;
        }
        left.buffer = left.buffer.wrapping_add(used as usize);
        // SAFETY: the rest of a buffer that is left alone until its end is told.
        unsafe { self.below.receive(*pattern, *left) };
        false
    }

    /// The peer of a number of the address vector; none for a number that it has not given out.
    #[inline]
    pub(crate) fn peer(&mut self, number: FiAddr) -> Option<usize> {
        if self.peers.len() <= number as usize {
            self.learn();
        }
        self.peers.get(number as usize).copied()
    }

    #[cold]
    fn learn(&mut self) {
        // SAFETY: the vector lives longer than the endpoint it is bound to.
        let Some(av) = (unsafe { self.av.as_ref() }) else { return };
        for (number, address) in av.addresses.iter().enumerate().skip(self.peers.len()) {
            let peer = self.below.peer(*address);
            if self.numbers.len() <= peer {
                self.numbers.resize(peer + 1, FI_ADDR_UNSPEC);
            }
            self.numbers[peer] = number as FiAddr;
            self.peers.push(peer);
        }
    }

    /// Whether an operation with these flags is to be told of.
    pub(crate) const fn tells(&self, is_send: bool, flags: u64) -> bool {
        let selective = if is_send { self.tx_selective } else { self.rx_selective };
        !selective || flags & FI_COMPLETION != 0
    }

    fn number_of(&mut self, peer: usize) -> FiAddr {
        if self.numbers.get(peer).is_none_or(|&number| number == FI_ADDR_UNSPEC) {
            self.learn();
        }
        self.numbers.get(peer).copied().unwrap_or(FI_ADDR_UNSPEC)
    }

    /// Puts one completion into its queue.
    pub(crate) fn tell(&mut self, completion: &Completion) {
        self.put(completion, 0);
    }

    fn queue_of(&self, completion: &Completion) -> *mut Cq {
        if completion.kind == Kind::Sent { self.tx_cq } else { self.rx_cq }
    }

    /// What a queue says of a completion, and of whom it came from.
    #[inline]
    fn entry(&mut self, completion: &Completion, more_flags: u64) -> (CqEntry, FiAddr) {
        let is_send = completion.kind == Kind::Sent;
        let kind = if completion.tag.is_some() { FI_TAGGED } else { FI_MSG };
        let mut flags = kind | more_flags | if is_send { FI_SEND } else { FI_RECV };
        if completion.data.is_some() {
            flags |= FI_REMOTE_CQ_DATA;
        }
        let op_context = completion.context as *mut c_void;
        let (len, buf) = (completion.length as size_t, completion.buffer.cast());
        let (data, tag) = (completion.data.unwrap_or(0), completion.tag.unwrap_or(0));
        let source = if is_send { FI_ADDR_UNSPEC } else { self.number_of(completion.source) };
        (CqEntry { op_context, flags, len, buf, data, tag }, source)
    }

    fn put(&mut self, completion: &Completion, more_flags: u64) {
        let (entry, source) = self.entry(completion, more_flags);
        // SAFETY: queues live longer than the endpoints bound to them.
        let Some(cq) = (unsafe { self.queue_of(completion).as_mut() }) else { return };
        let Some(trouble) = completion.trouble else {
            cq.entries.push_back((entry, source));
            return;
        };
        let CqEntry { op_context, flags, len, buf, data, tag } = entry;
        let (err, olen) = match trouble {
            Trouble::Truncated(over) => (FI_ETRUNC, over as size_t),
            Trouble::Cancelled => (ECANCELED, 0),
            Trouble::PeerGone => (ECONNRESET, 0),
            Trouble::NoMessage => (ENOMSG, 0),
        };
        cq.errors.push_back(CqErrEntry {
            op_context,
            flags,
            len: len - olen.min(len),
            buf,
            data,
            tag,
            olen,
            err,
            prov_errno: if err == ECONNRESET { EIO } else { err },
            err_data: null_mut(),
            err_data_size: 0,
        });
    }
}
