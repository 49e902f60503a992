//! Sends and receives, tagged and not.

use std::ffi::{c_int, c_void};

use libc::{iovec, size_t, ssize_t};
use wiretwin_host::direct::{Busy, Completion, Kind, Outgoing, Receive, Trouble};
use wiretwin_msg::tagged::Pattern;

use crate::abi::*;
use crate::endpoint::Ep;
use crate::error;

type Ctx = *mut c_void;

/// An error as these functions return it.
const fn refused(number: c_int) -> ssize_t {
    error(number) as ssize_t
}

/// What a send says.
struct Send {
    bytes: *const c_void,
    length: size_t,
    to: FiAddr,
    tag: Option<u64>,
    data: Option<u64>,
    /// The context, and the flags that say whether it is to be told of; none for what is injected.
    told: Option<(Ctx, u64)>,
}

/// # Safety
/// As libfabric asks of its callers.
#[inline]
unsafe fn send(ep: *mut FidEp, send: Send) -> ssize_t {
    // SAFETY: an endpoint of ours in a domain of ours; the bytes are left alone until the completion.
    unsafe {
        let ep = &mut *ep.cast::<Ep>();
        let _held = (*ep.domain).lock.take();
        let Some(peer) = ep.peer(send.to) else { return refused(EINVAL) };
        let told = send.told.filter(|&(_, flags)| flags & FI_INJECT == 0 && ep.tells(true, flags));
        let message = Outgoing {
            bytes: send.bytes.cast(),
            length: send.length as u64,
            tag: send.tag,
            data: send.data,
            context: told.map(|(context, _)| context as usize),
        };
        let sent = ep.below.send(peer, message);
        if let Some((context, flags)) = send.told
            && sent.is_ok()
            && flags & FI_INJECT != 0
            && ep.tells(true, flags)
        {
            ep.tell(&Completion { kind: Kind::Sent, ..seen(context, send.tag) });
        }
        match sent {
            Ok(()) => {
                ep.settle();
                0
            }
            Err(Busy) => {
                ep.below.progress();
                ep.settle();
                refused(EAGAIN)
            }
        }
    }
}

fn seen(context: Ctx, tag: Option<u64>) -> Completion {
    Completion {
        kind: Kind::Received,
        context: context as usize,
        length: 0,
        buffer: std::ptr::null_mut(),
        tag,
        data: None,
        source: usize::MAX,
        trouble: None,
    }
}

/// The pattern of a receive; none if it names a peer that there is not.
fn pattern(ep: &mut Ep, source: FiAddr, tag: Option<u64>, ignore: u64) -> Option<Pattern> {
    let source = match source {
        FI_ADDR_UNSPEC => None,
        number => Some(ep.peer(number)? as u32),
    };
    Some(Pattern { source, tag, ignore })
}

/// What a receive says.
struct Post {
    buffer: *mut c_void,
    length: size_t,
    from: FiAddr,
    tag: Option<u64>,
    ignore: u64,
    context: Ctx,
    flags: u64,
}

/// # Safety
/// As libfabric asks of its callers.
#[inline]
unsafe fn receive(ep: *mut FidEp, post: Post) -> ssize_t {
    // SAFETY: an endpoint of ours in a domain of ours; the buffer is left alone until the completion.
    unsafe {
        let ep = &mut *ep.cast::<Ep>();
        let _held = (*ep.domain).lock.take();
        let context = ep.tells(false, post.flags).then_some(post.context as usize);
        let receive = Receive { buffer: post.buffer.cast(), length: post.length as u64, context };
        if post.flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) != 0 {
            return special(ep, &post, receive);
        }
        let Some(pattern) = pattern(ep, post.from, post.tag, post.ignore) else { return refused(EINVAL) };
        if post.flags & FI_MULTI_RECV == 0 {
            ep.below.receive(pattern, receive);
        } else {
            ep.receive_several(pattern, receive, post.context as usize);
        }
        ep.settle();
    }
    0
}

/// Looks for a message, claims it, or receives what was claimed.
///
/// # Safety
/// The buffer is left alone until the completion.
unsafe fn special(ep: &mut Ep, post: &Post, receive: Receive) -> ssize_t {
    let context = post.context as usize;
    if post.flags & FI_PEEK != 0 {
        let Some(pattern) = pattern(ep, post.from, post.tag, post.ignore) else { return refused(EINVAL) };
        let found = if post.flags & (FI_CLAIM | FI_DISCARD) != 0 {
            ep.below.claim(&pattern).map(|(place, found)| {
                if post.flags & FI_DISCARD != 0 {
                    ep.below.discard_claimed(place);
                } else {
                    ep.claims.push((context, place));
                }
                found
            })
        } else {
            ep.below.peek(&pattern)
        };
        let none = Completion { trouble: Some(Trouble::NoMessage), ..seen(post.context, post.tag) };
        ep.settle();
        ep.tell(&Completion { context, ..found.unwrap_or(none) });
        return 0;
    }
    let Some(at) = ep.claims.iter().position(|&(claimed, _)| claimed == context) else {
        return refused(EINVAL);
    };
    let (_, place) = ep.claims.swap_remove(at);
    if post.flags & FI_DISCARD != 0 {
        ep.below.discard_claimed(place);
        ep.tell(&seen(post.context, post.tag));
    } else {
        // SAFETY: the caller's promise.
        unsafe { ep.below.receive_claimed(place, receive) };
    }
    ep.settle();
    0
}

/// The only piece of a message that is given as pieces; none if there are several.
///
/// # Safety
/// `count` pieces from `iov` on.
unsafe fn one(iov: *const iovec, count: size_t) -> Option<(*mut c_void, size_t)> {
    match count {
        0 => Some((std::ptr::null_mut(), 0)),
        // SAFETY: the caller's promise.
        1 => unsafe { Some(((*iov).iov_base, (*iov).iov_len)) },
        _ => None,
    }
}

macro_rules! flags_of {
    ($ep:expr, $field:ident) => {
        // SAFETY: an endpoint of ours.
        unsafe { (*$ep.cast::<Ep>()).$field }
    };
}

unsafe extern "C" fn t_recv(
    ep: *mut FidEp,
    buffer: *mut c_void,
    length: size_t,
    _desc: Ctx,
    from: FiAddr,
    tag: u64,
    ignore: u64,
    context: Ctx,
) -> ssize_t {
    let flags = flags_of!(ep, rx_flags);
    // SAFETY: the caller's arguments, handed on; so in all that follow.
    unsafe { receive(ep, Post { buffer, length, from, tag: Some(tag), ignore, context, flags }) }
}

unsafe extern "C" fn t_recvv(
    ep: *mut FidEp,
    iov: *const iovec,
    _desc: *mut Ctx,
    count: size_t,
    from: FiAddr,
    tag: u64,
    ignore: u64,
    context: Ctx,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some((buffer, length)) = one(iov, count) else { return refused(EINVAL) };
        t_recv(ep, buffer, length, context, from, tag, ignore, context)
    }
}

unsafe extern "C" fn t_recvmsg(ep: *mut FidEp, msg: *const MsgTagged, flags: u64) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let msg = &*msg;
        let Some((buffer, length)) = one(msg.iov, msg.iov_count) else { return refused(EINVAL) };
        let (from, tag, ignore, context) = (msg.addr, Some(msg.tag), msg.ignore, msg.context);
        receive(ep, Post { buffer, length, from, tag, ignore, context, flags })
    }
}

unsafe extern "C" fn t_send(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    _desc: Ctx,
    to: FiAddr,
    tag: u64,
    context: Ctx,
) -> ssize_t {
    let told = Some((context, flags_of!(ep, tx_flags)));
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: Some(tag), data: None, told }) }
}

unsafe extern "C" fn t_sendv(
    ep: *mut FidEp,
    iov: *const iovec,
    _desc: *mut Ctx,
    count: size_t,
    to: FiAddr,
    tag: u64,
    context: Ctx,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some((bytes, length)) = one(iov, count) else { return refused(EINVAL) };
        t_send(ep, bytes, length, context, to, tag, context)
    }
}

unsafe extern "C" fn t_sendmsg(ep: *mut FidEp, msg: *const MsgTagged, flags: u64) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let msg = &*msg;
        let Some((bytes, length)) = one(msg.iov, msg.iov_count) else { return refused(EINVAL) };
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
        let told = Some((msg.context, flags));
        send(ep, Send { bytes, length, to: msg.addr, tag: Some(msg.tag), data, told })
    }
}

unsafe extern "C" fn t_inject(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    to: FiAddr,
    tag: u64,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: Some(tag), data: None, told: None }) }
}

unsafe extern "C" fn t_senddata(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    _desc: Ctx,
    data: u64,
    to: FiAddr,
    tag: u64,
    context: Ctx,
) -> ssize_t {
    let told = Some((context, flags_of!(ep, tx_flags)));
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: Some(tag), data: Some(data), told }) }
}

unsafe extern "C" fn t_injectdata(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    data: u64,
    to: FiAddr,
    tag: u64,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: Some(tag), data: Some(data), told: None }) }
}

pub(crate) static TAGGED: OpsTagged = OpsTagged {
    size: size_of::<OpsTagged>(),
    recv: t_recv,
    recvv: t_recvv,
    recvmsg: t_recvmsg,
    send: t_send,
    sendv: t_sendv,
    sendmsg: t_sendmsg,
    inject: t_inject,
    senddata: t_senddata,
    injectdata: t_injectdata,
};

unsafe extern "C" fn m_recv(
    ep: *mut FidEp,
    buffer: *mut c_void,
    length: size_t,
    _desc: Ctx,
    from: FiAddr,
    context: Ctx,
) -> ssize_t {
    let flags = flags_of!(ep, rx_flags);
    // SAFETY: as above.
    unsafe { receive(ep, Post { buffer, length, from, tag: None, ignore: 0, context, flags }) }
}

unsafe extern "C" fn m_recvv(
    ep: *mut FidEp,
    iov: *const iovec,
    _desc: *mut Ctx,
    count: size_t,
    from: FiAddr,
    context: Ctx,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some((buffer, length)) = one(iov, count) else { return refused(EINVAL) };
        m_recv(ep, buffer, length, context, from, context)
    }
}

unsafe extern "C" fn m_recvmsg(ep: *mut FidEp, msg: *const Msg, flags: u64) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let msg = &*msg;
        let Some((buffer, length)) = one(msg.iov, msg.iov_count) else { return refused(EINVAL) };
        let (from, context) = (msg.addr, msg.context);
        receive(ep, Post { buffer, length, from, tag: None, ignore: 0, context, flags })
    }
}

unsafe extern "C" fn m_send(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    _desc: Ctx,
    to: FiAddr,
    context: Ctx,
) -> ssize_t {
    let told = Some((context, flags_of!(ep, tx_flags)));
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: None, data: None, told }) }
}

unsafe extern "C" fn m_sendv(
    ep: *mut FidEp,
    iov: *const iovec,
    _desc: *mut Ctx,
    count: size_t,
    to: FiAddr,
    context: Ctx,
) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let Some((bytes, length)) = one(iov, count) else { return refused(EINVAL) };
        m_send(ep, bytes, length, context, to, context)
    }
}

unsafe extern "C" fn m_sendmsg(ep: *mut FidEp, msg: *const Msg, flags: u64) -> ssize_t {
    // SAFETY: as above.
    unsafe {
        let msg = &*msg;
        let Some((bytes, length)) = one(msg.iov, msg.iov_count) else { return refused(EINVAL) };
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
        send(ep, Send { bytes, length, to: msg.addr, tag: None, data, told: Some((msg.context, flags)) })
    }
}

unsafe extern "C" fn m_inject(ep: *mut FidEp, bytes: *const c_void, length: size_t, to: FiAddr) -> ssize_t {
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: None, data: None, told: None }) }
}

unsafe extern "C" fn m_senddata(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    _desc: Ctx,
    data: u64,
    to: FiAddr,
    context: Ctx,
) -> ssize_t {
    let told = Some((context, flags_of!(ep, tx_flags)));
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: None, data: Some(data), told }) }
}

unsafe extern "C" fn m_injectdata(
    ep: *mut FidEp,
    bytes: *const c_void,
    length: size_t,
    data: u64,
    to: FiAddr,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { send(ep, Send { bytes, length, to, tag: None, data: Some(data), told: None }) }
}

pub(crate) static MSG: OpsMsg = OpsMsg {
    size: size_of::<OpsMsg>(),
    recv: m_recv,
    recvv: m_recvv,
    recvmsg: m_recvmsg,
    send: m_send,
    sendv: m_sendv,
    sendmsg: m_sendmsg,
    inject: m_inject,
    senddata: m_senddata,
    injectdata: m_injectdata,
};
