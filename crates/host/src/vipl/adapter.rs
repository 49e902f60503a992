//! A NIC of one process: the calls of VIPL.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use wiretwin_msg::via::{
    CONTROL_SEGMENT, Completion, ConnHandle, ControlSegment, CqHandle, DESCRIPTOR_ALIGNMENT, DoneError,
    ErrorCode, HostAddress, Memory, MemoryAttributes, MemoryHandle, Names, NicAttributes, Place, Ptag,
    QueueKind, Resource, ViAttributes, ViHandle, ViState, ViplError,
};

use super::Reach;
use super::carrier::Carrier;
use super::connect::Request;
use super::lock::{Held, Lock};
use super::place::{host_of, network_address};
use super::service;
use super::table::{Cq, Cqs, Table};
use super::vi::{Common, End, Vi};
use super::{Event, Token};

/// Looks for what a call waits for before it lets others run, and between two looks at the clock.
const BURST: u32 = 64;
/// Looks for a message in one call.
const LOOKS: u32 = 16;
/// Of this many polls of a receive queue, one also handles everything else that the adapter has to do.
const WHOLE: u64 = 128;
/// How long a call looks before it sleeps.
const PATIENCE: Duration = Duration::from_micros(50);

/// How long an adapter that is closed waits at most until what it has sent to other hosts has come.
const FAREWELL: Duration = Duration::from_secs(1);

/// All that the lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub common: Common,
    pub vis: Table<Box<Vi>>,
    pub requests: BTreeMap<u32, Request>,
    pub next_request: u32,
    names: Names,
    /// Calls that looked for what has come: the thread of the adapter leaves it to them while there are any.
    pub looks: u64,
    pub closed: bool,
    /// The adapter has broken down.
    pub failed: bool,
}

impl State {
    #[inline(always)]
    fn vi(&mut self, handle: ViHandle) -> Result<(&mut Common, &mut Vi), ViplError> {
        let vi = self.vis.get_mut(handle.0).ok_or(ViplError::InvalidParameter)?;
        Ok((&mut self.common, vi))
    }

    /// Takes and sends what can be, on all VIs; whether anything moved.
    pub fn progress(&mut self) -> bool {
        let mut moved = false;
        if let Some(carrier) = &mut self.common.carrier {
            carrier.attend();
        }
        for vi in self.vis.values_mut() {
            moved |= vi.progress(&mut self.common, true);
        }
        moved
    }

    /// The thread of the adapter cannot wait any more: nothing works.
    pub fn fail(&mut self) {
        if std::mem::replace(&mut self.failed, true) {
            return;
        }
        self.common.error(Resource::Nic, ErrorCode::Catastrophic);
        for vi in self.vis.values_mut() {
            match vi.state {
                ViState::Connected => vi.lose(&mut self.common, End::DISCONNECT),
                ViState::ConnectPending => vi.answered(ViplError::NotReachable),
                ViState::Idle | ViState::Error => {}
            }
        }
    }

    #[inline(always)]
    fn post(&mut self, handle: ViHandle, kind: QueueKind, place: Place) -> Result<(), ViplError> {
        let (common, vi) = self.vi(handle)?;
        let posted = match kind {
            QueueKind::Send => vi.send_short(common, place),
            QueueKind::Receive => vi.post_short(common, place),
        };
        if !posted {
            self.post_at_length(handle, kind, place);
        }
        Ok(())
    }

    #[inline(always)]
    fn done(&mut self, handle: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        self.looks = self.looks.wrapping_add(1);
        let looks = self.looks_of_call();
        let vi = self.vis.get_mut(handle.0).ok_or(DoneError::NoSuchVi)?;
        let short = match kind {
            QueueKind::Send => vi.sent_short(&self.common),
            QueueKind::Receive => vi.receive_short(&self.common, looks),
        };
        match short {
            Some(completion) => Ok(completion),
            None => self.done_at_length(handle, kind),
        }
    }

    /// Posts the descriptor that lies there, whatever it is.
    #[inline(never)]
    fn post_at_length(&mut self, handle: ViHandle, kind: QueueKind, place: Place) {
        let Ok((common, vi)) = self.vi(handle) else { return };
        let tag = vi.attributes().ptag;
        let reaches = |octets: usize| common.memory.reaches(place.address, octets as u64, place.handle, tag);
        // Most are one line and no longer: what reaches that far is looked at once.
        let line = reaches(DESCRIPTOR_ALIGNMENT as usize);
        let sound = place.address.is_multiple_of(DESCRIPTOR_ALIGNMENT) && (line || reaches(CONTROL_SEGMENT));
        // SAFETY: registered memory, which waits for the lock until it is given back.
        let memory = |octets| unsafe { std::slice::from_raw_parts(place.address as *const u8, octets) };
        let octets = if sound {
            ControlSegment::parse(memory(CONTROL_SEGMENT)).map_or(0, |head| head.descriptor_octets())
        } else {
            0
        };
        let whole = line && octets <= DESCRIPTOR_ALIGNMENT as usize;
        let fault = if !sound || !(whole || reaches(octets)) {
            Some((Resource::Descriptor(handle, place), ErrorCode::PostDescriptor))
        } else if vi.queue(kind).len() >= common.attributes.max_descriptors.into() {
            Some((Resource::Vi(handle), ErrorCode::Overrun))
        } else {
            None
        };
        if let Some((resource, code)) = fault {
            // Choice: the provider does not know what was meant, so the connection does not go on.
            common.error(resource, code);
            if vi.state == ViState::Connected {
                vi.lose(common, End::DISCONNECT);
            }
            return;
        }
        let number = vi.queue(kind).push(place, memory(octets), common.attributes.max_segments);
        match (vi.state, kind) {
            (ViState::Connected, QueueKind::Send) => vi.send_posted(common),
            (ViState::Connected | ViState::Idle | ViState::ConnectPending, QueueKind::Receive) => {}
            (ViState::Error, _) | (_, QueueKind::Send) => vi.flushed(common, kind, number),
        }
    }

    /// How often a call looks for a message: where there are other VIs, they are to have their turn.
    const fn looks_of_call(&self) -> u32 {
        if self.vis.len() == 1 { LOOKS } else { 1 }
    }

    /// What is not as usual, or has not come yet.
    #[inline(never)]
    fn done_at_length(&mut self, handle: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        let is_turn = self.looks.is_multiple_of(WHOLE / u64::from(self.looks_of_call()));
        let vi = self.vis.get_mut(handle.0).ok_or(DoneError::NoSuchVi)?;
        if vi.queue(kind).published == 0 {
            if vi.queue(kind).len() == 0 {
                return Err(DoneError::Empty);
            }
            let whole = kind == QueueKind::Send || is_turn;
            if !whole && !vi.waits_for_frame(&mut self.common) {
                return Err(DoneError::NotDone);
            }
            vi.progress(&mut self.common, whole);
        }
        match vi.queue(kind).take() {
            None => Err(DoneError::NotDone),
            Some(completion) if completion.is_success() => Ok(completion),
            Some(completion) => Err(DoneError::Failed(completion)),
        }
    }

    fn cq_done(&mut self, handle: CqHandle) -> Result<(ViHandle, QueueKind), ViplError> {
        self.looks = self.looks.wrapping_add(1);
        let whole = self.looks.is_multiple_of(4);
        for index in 0.. {
            let cq = self.common.cqs.0.get_mut(handle.0).ok_or(ViplError::InvalidParameter)?;
            if let Some(entry) = cq.entries.pop_front() {
                return Ok(entry);
            }
            let Some(vi) = cq.bound.get(index).copied() else { break };
            if let Some(vi) = self.vis.get_mut(vi.0) {
                vi.progress(&mut self.common, whole);
            }
        }
        let cq = self.common.cqs.0.get_mut(handle.0).ok_or(ViplError::InvalidParameter)?;
        cq.entries.pop_front().ok_or(ViplError::NotDone)
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Lock<State>,
    /// What the thread of the adapter waits for.
    pub epoll: OwnedFd,
    bell: OwnedFd,
    /// Calls that sleep, and how often something has happened.
    pub sleepers: AtomicU32,
    happened: Mutex<u64>,
    woken: Condvar,
    /// The name of the network.
    pub network: String,
    pub reach: Reach,
}

// SAFETY: what the state points to is mapped for the whole process, or belongs to it.
unsafe impl Send for State {}

impl Shared {
    #[inline]
    pub fn lock(&self) -> Held<'_, State> {
        self.state.lock()
    }

    /// Wakes the thread of the adapter.
    pub fn ring(&self) {
        // Full or gone, it is awake.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Takes what woke it.
    pub fn hush(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
    }

    /// Wakes all calls that sleep.
    pub fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            *self.happened.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.woken.notify_all();
        }
    }

    /// Makes a call, and wakes the thread if a handler is to be told of what it found.
    #[inline(always)]
    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = call(&mut state);
        self.release(state);
        result
    }

    /// Ends a call, and wakes the thread if a handler is to be told of what it found.
    #[inline(always)]
    fn release(&self, state: Held<'_, State>) {
        let told = !state.common.events.is_empty();
        drop(state);
        if told {
            self.ring();
        }
    }

    /// Looks until something is found, or the time is over; sleeps when it was in vain for long.
    fn wait<T>(&self, timeout: Option<Duration>, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut look = || self.with(&mut look);
        for _ in 0..BURST {
            if let Some(found) = look() {
                return Some(found);
            }
            std::hint::spin_loop();
        }
        let began = Instant::now();
        let is_over = || timeout.is_some_and(|timeout| began.elapsed() >= timeout);
        while began.elapsed() < PATIENCE && !is_over() {
            for _ in 0..BURST {
                if let Some(found) = look() {
                    return Some(found);
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let before = *self.happened.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = look() {
                break Some(found);
            }
            if is_over() {
                break None;
            }
            // From here on the thread of the adapter looks.
            self.ring();
            let mut happened = self.happened.lock().unwrap_or_else(PoisonError::into_inner);
            while *happened == before && !is_over() {
                happened = match timeout {
                    Some(timeout) => {
                        let left = timeout.saturating_sub(began.elapsed());
                        let woken = self.woken.wait_timeout(happened, left);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => self.woken.wait(happened).unwrap_or_else(PoisonError::into_inner),
                };
            }
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

/// A NIC of this process. Every call may be made from several threads at once.
#[derive(Debug)]
pub struct Adapter {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    local: HostAddress,
}

impl Adapter {
    /// The most that the adapter offers; `local` is its address.
    const fn attributes_at(reach: Reach, local: HostAddress) -> NicAttributes {
        NicAttributes {
            name: reach.name(),
            max_vi: 1024,
            max_transfer: 1 << 30,
            native_mtu: if reach.is_network() { super::carrier::FRAME } else { crate::ring::FRAME } as u32,
            ..NicAttributes::adapter(local)
        }
    }

    /// `VipOpenNic`: of the network of this name, of at most 16 letters; processes that name the same network reach each
    /// other, within a host those of one user. `handler` is called on a thread of the adapter, and may make any call.
    ///
    /// `lasting` is whether what is registered stays the memory that it was then until it is given back, so that
    /// remote ends may map it.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for a longer name; [`ViplError::ErrorResource`] where the system has no more
    /// files or threads, or the device of [`Reach`] cannot be had.
    pub fn open(
        reach: Reach,
        network: &str,
        lasting: bool,
        handler: Box<dyn Fn(Event) + Send>,
    ) -> Result<Self, ViplError> {
        if network.len() > 16 {
            return Err(ViplError::InvalidParameter);
        }
        let none_left = |_| ViplError::ErrorResource;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(none_left)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(none_left)?;
        let bell_rings = epoll::EventData::new_u64(service::BELL);
        epoll::add(&epoll, &bell, bell_rings, epoll::EventFlags::IN).map_err(none_left)?;
        let at = reach.device();
        let carrier = at.map(|(ip, ways)| Carrier::open(ip, ways)).transpose();
        let carrier = carrier.map_err(|_| ViplError::ErrorResource)?;
        if let Some(carrier) = &carrier {
            service::watch(&epoll, carrier).map_err(none_left)?;
        }
        let local = at.map_or_else(|| network_address(network), |(ip, _)| host_of(ip));
        let common = Common {
            attributes: Self::attributes_at(reach, local),
            memory: Memory::default(),
            lasting,
            cqs: Cqs(Table::new()),
            carrier,
            events: VecDeque::new(),
        };
        let state = State {
            common,
            vis: Table::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            names: Names::default(),
            looks: 0,
            closed: false,
            failed: false,
        };
        let shared = Arc::new(Shared {
            state: Lock::new(state),
            epoll,
            bell,
            sleepers: AtomicU32::new(0),
            happened: Mutex::new(0),
            woken: Condvar::new(),
            network: network.into(),
            reach,
        });
        let thread = service::start(Arc::clone(&shared), handler).map_err(|_| ViplError::ErrorResource)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), local })
    }

    /// `VipCloseNic`: every connection is ended. No handler is called any more when it returns, unless a handler
    /// calls it.
    pub fn close(&self) {
        {
            let mut state = self.shared.lock();
            let State { common, vis, requests, .. } = &mut *state;
            state_end(common, vis);
            if let Some(mut carrier) = common.carrier.take() {
                // What was sent last, and that the connections have ended.
                carrier.finish(FAREWELL);
            }
            requests.clear();
            state.closed = true;
        }
        self.shared.ring();
        self.shared.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }

    /// Its address: that of the network's host.
    pub const fn local(&self) -> HostAddress {
        self.local
    }

    /// `VipQueryNic`.
    pub fn attributes(&self) -> NicAttributes {
        self.shared.lock().common.attributes.clone()
    }

    #[inline(always)]
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(call)
    }

    /// The name service.
    pub fn names<T>(&self, call: impl FnOnce(&mut Names) -> T) -> T {
        self.with(|state| call(&mut state.names))
    }

    /// `VipCreatePtag`.
    ///
    /// # Errors
    /// As for [`Memory::create_tag`].
    pub fn create_ptag(&self) -> Result<Ptag, ViplError> {
        self.with(|State { common, .. }| common.memory.create_tag(&common.attributes))
    }

    /// `VipDestroyPtag`.
    ///
    /// # Errors
    /// As for [`Memory::destroy_tag`].
    pub fn destroy_ptag(&self, tag: Ptag) -> Result<(), ViplError> {
        self.with(|state| {
            let in_use = state.vis.values().any(|vi| vi.attributes().ptag == tag);
            state.common.memory.destroy_tag(tag, in_use)
        })
    }

    /// `VipRegisterMem`. The memory must be there and writable, and stay so until it is given back: the adapter
    /// writes into it when data come.
    ///
    /// # Errors
    /// As for [`Memory::register`]; [`ViplError::InvalidParameter`] also for what is no memory of this process, or
    /// cannot be written.
    pub fn register_mem(
        &self,
        address: u64,
        length: u64,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        if length > 0 && address.checked_add(length).is_some() && !is_writable(address, length) {
            return Err(ViplError::InvalidParameter);
        }
        self.with(|State { common, .. }| {
            common.memory.register(&common.attributes, address, length, attributes)
        })
    }

    /// `VipDeregisterMem`: nothing is written there any more when it returns.
    ///
    /// # Errors
    /// As for [`Memory::deregister`].
    pub fn deregister_mem(&self, address: u64, handle: MemoryHandle) -> Result<(), ViplError> {
        self.with(|State { common, .. }| {
            let length = common.memory.deregister(address, handle)?;
            if let Some(carrier) = &mut common.carrier {
                carrier.release(address, length);
            }
            Ok(())
        })
    }

    /// `VipQueryMem`.
    ///
    /// # Errors
    /// As for [`Memory::attributes`].
    pub fn query_mem(&self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError> {
        self.with(|state| state.common.memory.attributes(address, handle))
    }

    /// `VipSetMemAttributes`.
    ///
    /// # Errors
    /// As for [`Memory::set_attributes`].
    pub fn set_mem_attributes(
        &self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        self.with(|State { common, .. }| {
            common.memory.set_attributes(&common.attributes, address, handle, attributes)
        })
    }

    /// `VipCreateVi`.
    ///
    /// # Errors
    /// As for [`ViAttributes::check`]; [`ViplError::ErrorResource`] if there are too many.
    pub fn create_vi(&self, attributes: ViAttributes) -> Result<ViHandle, ViplError> {
        self.with(|State { common, vis, .. }| {
            attributes.check(&common.attributes, &common.memory, |cq| common.cqs.0.get(cq.0).is_some())?;
            if vis.len() >= common.attributes.max_vi {
                return Err(ViplError::ErrorResource);
            }
            let made = vis.insert(|handle| Box::new(Vi::new(ViHandle(handle), attributes)));
            let handle = ViHandle(made.ok_or(ViplError::ErrorResource)?);
            for cq in [attributes.send_cq, attributes.receive_cq].into_iter().flatten() {
                if let Some(cq) = common.cqs.0.get_mut(cq.0) {
                    cq.bound.push(handle);
                }
            }
            Ok(handle)
        })
    }

    /// `VipDestroyVi`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless it is idle,
    /// [`ViplError::ErrorResource`] while descriptors are on its queues.
    pub fn destroy_vi(&self, handle: ViHandle) -> Result<(), ViplError> {
        self.with(|state| {
            let (common, vi) = state.vi(handle)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            if vi.send.len() + vi.receive.len() > 0 {
                return Err(ViplError::ErrorResource);
            }
            let ViAttributes { send_cq, receive_cq, .. } = *vi.attributes();
            for cq in [send_cq, receive_cq].into_iter().flatten() {
                if let Some(cq) = common.cqs.0.get_mut(cq.0) {
                    cq.bound.retain(|bound| *bound != handle);
                }
            }
            state.vis.remove(handle.0);
            Ok(())
        })
    }

    /// `VipQueryVi`: its state and attributes, and whether its queues are empty (send, receive).
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn query_vi(&self, handle: ViHandle) -> Result<(ViState, ViAttributes, bool, bool), ViplError> {
        self.with(|state| {
            let (common, vi) = state.vi(handle)?;
            vi.progress(common, true);
            Ok((vi.state, *vi.attributes(), vi.send.len() == 0, vi.receive.len() == 0))
        })
    }

    /// `VipSetViAttributes`; the completion queues stay as they are.
    ///
    /// # Errors
    /// As for [`ViAttributes::check`], and [`ViplError::InvalidState`] unless it is idle.
    pub fn set_vi_attributes(&self, handle: ViHandle, attributes: ViAttributes) -> Result<(), ViplError> {
        self.with(|state| {
            let (common, vi) = state.vi(handle)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            let ViAttributes { send_cq, receive_cq, .. } = *vi.attributes();
            let attributes = ViAttributes { send_cq, receive_cq, ..attributes };
            attributes.check(&common.attributes, &common.memory, |_| true)?;
            vi.set_attributes(attributes);
            Ok(())
        })
    }

    /// `VipPostSend` and `VipPostRecv` of the descriptor that lies there.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] if there is no such VI. All else is told by the descriptor, or as an
    /// asynchronous error.
    #[inline(always)]
    pub fn post(&self, handle: ViHandle, kind: QueueKind, place: Place) -> Result<(), ViplError> {
        // Not a closure, of which the queues would have one copy together that reads which of them is meant.
        let mut state = self.shared.lock();
        let posted = state.post(handle, kind, place);
        self.shared.release(state);
        posted
    }

    /// `VipSendDone` and `VipRecvDone`: takes the head off a queue if it is done.
    ///
    /// # Errors
    /// [`DoneError`].
    #[inline(always)]
    pub fn done(&self, vi: ViHandle, kind: QueueKind) -> Result<Completion, DoneError> {
        let mut state = self.shared.lock();
        let taken = state.done(vi, kind);
        self.shared.release(state);
        taken
    }

    /// `VipSendWait` and `VipRecvWait`; no timeout is for ever.
    ///
    /// # Errors
    /// As for [`Adapter::done`]; [`DoneError::NotDone`] when the time is over.
    pub fn wait(
        &self,
        vi: ViHandle,
        kind: QueueKind,
        timeout: Option<Duration>,
    ) -> Result<Completion, DoneError> {
        let found = self.shared.wait(timeout, |state| match state.done(vi, kind) {
            Err(DoneError::NotDone) => None,
            found => Some(found),
        });
        found.unwrap_or(Err(DoneError::NotDone))
    }

    /// `VipSendNotify` and `VipRecvNotify`: the next descriptor done is taken off and told of once.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn notify(&self, handle: ViHandle, kind: QueueKind, token: Token) -> Result<(), ViplError> {
        self.with(|state| {
            let (common, vi) = state.vi(handle)?;
            match vi.queue(kind).take() {
                Some(completion) => {
                    common.events.push_back(Event::Notified { vi: handle, kind, completion, token });
                }
                None => vi.queue(kind).notify.push_back(token),
            }
            Ok::<_, ViplError>(())
        })?;
        self.shared.ring();
        Ok(())
    }

    /// `VipCreateCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for none or too many entries, [`ViplError::ErrorResource`].
    pub fn create_cq(&self, capacity: u32) -> Result<CqHandle, ViplError> {
        self.with(|State { common, .. }| {
            if capacity == 0 || capacity > common.attributes.max_cq_entries {
                return Err(ViplError::InvalidParameter);
            }
            if common.cqs.0.len() >= common.attributes.max_cq {
                return Err(ViplError::ErrorResource);
            }
            let entries = VecDeque::with_capacity(capacity as usize);
            let cq = Cq { entries, capacity, notify: VecDeque::new(), bound: Vec::new() };
            common.cqs.0.insert(|_| cq).map(CqHandle).ok_or(ViplError::ErrorResource)
        })
    }

    /// `VipResizeCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], also for fewer than wait in it.
    pub fn resize_cq(&self, handle: CqHandle, capacity: u32) -> Result<(), ViplError> {
        self.with(|State { common, .. }| {
            let most = common.attributes.max_cq_entries;
            let cq = common.cqs.0.get_mut(handle.0).ok_or(ViplError::InvalidParameter)?;
            if capacity == 0 || capacity > most || (capacity as usize) < cq.entries.len() {
                return Err(ViplError::InvalidParameter);
            }
            cq.capacity = capacity;
            cq.entries.reserve((capacity as usize).saturating_sub(cq.entries.len()));
            Ok(())
        })
    }

    /// `VipDestroyCQ`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], or [`ViplError::ErrorResource`] while a VI is bound to it.
    pub fn destroy_cq(&self, handle: CqHandle) -> Result<(), ViplError> {
        self.with(|State { common, .. }| {
            let cq = common.cqs.0.get(handle.0).ok_or(ViplError::InvalidParameter)?;
            if !cq.bound.is_empty() {
                return Err(ViplError::ErrorResource);
            }
            common.cqs.0.remove(handle.0);
            Ok(())
        })
    }

    /// `VipCQDone`: which queue has a descriptor that is done.
    ///
    /// # Errors
    /// [`ViplError::NotDone`], [`ViplError::InvalidParameter`].
    pub fn cq_done(&self, cq: CqHandle) -> Result<(ViHandle, QueueKind), ViplError> {
        self.with(|state| state.cq_done(cq))
    }

    /// `VipCQWait`; no timeout is for ever.
    ///
    /// # Errors
    /// [`ViplError::Timeout`], [`ViplError::InvalidParameter`].
    pub fn cq_wait(
        &self,
        cq: CqHandle,
        timeout: Option<Duration>,
    ) -> Result<(ViHandle, QueueKind), ViplError> {
        let found = self.shared.wait(timeout, |state| match state.cq_done(cq) {
            Err(ViplError::NotDone) => None,
            found => Some(found),
        });
        found.unwrap_or(Err(ViplError::Timeout))
    }

    /// `VipCQNotify`: the next entry is told of once.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn cq_notify(&self, handle: CqHandle, token: Token) -> Result<(), ViplError> {
        self.with(|State { common, .. }| {
            let cq = common.cqs.0.get_mut(handle.0).ok_or(ViplError::InvalidParameter)?;
            match cq.entries.pop_front() {
                Some((vi, kind)) => {
                    common.events.push_back(Event::CqNotified { cq: handle, vi, kind, token });
                }
                None => cq.notify.push_back(token),
            }
            Ok::<_, ViplError>(())
        })?;
        self.shared.ring();
        Ok(())
    }

    /// `VipDisconnect`: the VI is idle, and what was posted is flushed.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn disconnect(&self, handle: ViHandle) -> Result<(), ViplError> {
        self.with(|state| {
            let (common, vi) = state.vi(handle)?;
            vi.disconnect(common);
            Ok::<_, ViplError>(())
        })?;
        self.shared.wake();
        Ok(())
    }

    /// Waits until a request of this VI for a connection has been answered.
    pub(super) fn wait_for_answer<T>(&self, look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        self.shared.wait(None, look)
    }

    /// Removes the request of this handle from the table, and returns it.
    pub(super) fn take_request(&self, connection: ConnHandle) -> Result<Request, ViplError> {
        self.with(|state| state.requests.remove(&connection.0).ok_or(ViplError::InvalidParameter))
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.close();
    }
}

fn state_end(common: &mut Common, vis: &mut Table<Box<Vi>>) {
    for vi in vis.values_mut() {
        vi.disconnect(common);
    }
    common.events.clear();
}

/// Whether all of this is memory of this process that can be written; it is there then, as what is registered is
/// with an adapter of hardware.
fn is_writable(address: u64, length: u64) -> bool {
    // SAFETY: a plain query.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let first = address & !(page - 1);
    let octets = (address + length - first).next_multiple_of(page);
    // SAFETY: the advice changes nothing of what is there: pages that were never written are given memory.
    let told =
        unsafe { libc::madvise(first as *mut libc::c_void, octets as usize, libc::MADV_POPULATE_WRITE) };
    // A kernel that does not know the advice (before 5.14) says EINVAL, and the program is believed.
    told == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}
