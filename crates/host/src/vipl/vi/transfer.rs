//! Frames of a VI, out and in.

use super::*;

impl Vi {
    /// Sends what may be sent: answers to RDMA reads first, then descriptors; whether anything went.
    #[inline]
    pub(super) fn transmit(&mut self, common: &mut Common, link: &mut Wire) -> Result<bool, End> {
        let mut any = false;
        while self.respond(common, link)? || self.advance(common, link)? {
            any = true;
        }
        if any {
            link.nudge();
        }
        Ok(any)
    }

    /// The head of a frame, which tells how many messages were accepted here.
    #[inline]
    fn head(&mut self, kind: u8) -> Head {
        self.told = self.taken;
        Head::new(kind, self.taken)
    }

    /// One frame of an answer to an RDMA read; whether one went.
    fn respond(&mut self, common: &mut Common, link: &mut Wire) -> Result<bool, End> {
        let Some(Answer { number, source, total, offset }) = self.answers.front().copied() else {
            return Ok(false);
        };
        if !link.has_room(common.carrier.as_ref()) {
            return Ok(false);
        }
        // It was allowed when it was asked for; memory may have been given back since.
        let AddressSegment { address, handle } = source;
        let tag = self.attributes.ptag;
        if common.memory.check(address, total.into(), handle, tag, Access::RdmaRead).is_err() {
            return Err(End { tell: Closing::Disconnected, code: Some(ErrorCode::RdmaReadProtection) });
        }
        let mut head = self.head(if offset == 0 { kind::ANSWER } else { kind::MORE });
        if offset == 0 {
            head.push(number.to_le_bytes());
        }
        let data = [DataSegment { address, handle, length: total }];
        let gone = piece(link, &mut common.carrier, head, (&data, common.lasting), total, offset);
        if gone == total {
            self.answers.pop_front();
            self.unaccepted.push(ANSWER);
        } else if let Some(answer) = self.answers.front_mut() {
            answer.offset = gone;
        }
        Ok(true)
    }

    /// One frame of the descriptor at hand; whether something was done.
    #[inline]
    fn advance(&mut self, common: &mut Common, link: &mut Wire) -> Result<bool, End> {
        let number = self.next;
        let Some(posted) = self.send.get(number) else { return Ok(false) };
        let waits = posted.is_sound && posted.control & control::QUEUE_FENCE != 0 && self.reads > 0;
        if !self.begun && waits {
            return Ok(false);
        }
        // Memory may have been given back since a long message began.
        if let Err(error) = common.check_send(&self.attributes, posted) {
            self.fail(common, QueueKind::Send, number, error);
            if self.attributes.reliability.is_reliable() {
                return Err(End::DISCONNECT);
            }
            (self.next, self.offset, self.begun) = (number + 1, 0, false);
            return Ok(true);
        }
        if !link.has_room(common.carrier.as_ref()) {
            return Ok(false);
        }
        let (operation, total) = (posted.operation(), posted.length);
        let immediate = (posted.control & control::IMMEDIATE != 0).then_some(posted.immediate());
        let (remote, offset) = (posted.remote(), self.offset);
        let mut head = self.head(match operation {
            _ if self.begun => kind::MORE,
            0 => kind::SEND,
            1 => kind::WRITE,
            _ => kind::READ,
        });
        if let Some(immediate) = immediate.filter(|_| !self.begun) {
            head.octets[0] |= kind::IMMEDIATE;
            head.push(immediate.to_le_bytes());
        }
        if operation != 0 && !self.begun {
            head.remote(remote);
        }
        if operation == 2 {
            head.push(total.to_le_bytes());
            head.push((number as u32).to_le_bytes());
            // SAFETY: no ranges.
            unsafe { link.push(&mut common.carrier, &head.octets[..head.length], std::iter::empty()) };
            self.next += 1;
            self.unaccepted.push(number);
            if total == 0 {
                let outcome =
                    Outcome { status: status::DONE | status::OP_RDMA_READ, length: 0, immediate: 0 };
                self.finish(common, QueueKind::Send, number, outcome);
            } else {
                self.reads += 1;
            }
            return Ok(true);
        }
        let Some(posted) = self.send.get(number) else { return Ok(false) };
        let by_reference = !self.begun && goes_by_reference(link, posted.data(), total);
        let gone = piece(link, &mut common.carrier, head, (posted.data(), common.lasting), total, offset);
        if gone < total {
            (self.offset, self.begun) = (gone, true);
            return Ok(true);
        }
        (self.next, self.offset, self.begun) = (number + 1, 0, false);
        if self.attributes.reliability.is_reliable() || by_reference {
            self.unaccepted.push(number);
        } else {
            // It is on its way, and nobody answers for more.
            self.unaccepted.push(NOBODY);
            let bits = if operation == 1 { status::OP_RDMA_WRITE } else { 0 };
            let outcome = Outcome { status: status::DONE | bits, length: total, immediate: 0 };
            self.finish(common, QueueKind::Send, number, outcome);
        }
        Ok(true)
    }

    /// Takes a frame.
    #[inline]
    pub(super) fn frame(
        &mut self,
        common: &mut Common,
        views: Option<&mut Views>,
        frame: &[u8],
    ) -> Result<(), End> {
        // What no end of a connection sends ends it.
        let nonsense = Err(End { tell: Closing::Transport, code: None });
        self.read_frame(common, views, Reader(frame)).unwrap_or(nonsense)
    }

    /// Takes what has come from another host.
    pub(super) fn carried(&mut self, common: &mut Common, flow: u32, next: Next) -> Result<(), End> {
        match next {
            Next::Frame(came) => {
                let mut found = self.frame(common, None, came.frame());
                let has_data = came.has_data();
                if let Some(carrier) = &mut common.carrier {
                    carrier.give_back(flow, came);
                }
                if has_data {
                    found = self.await_data(common, flow, found);
                }
                found
            }
            Next::Data(aside) => self.late(common, aside.as_deref()),
        }
    }

    /// The data of the message at hand have come beside its frame, or are passed over.
    fn late(&mut self, common: &mut Common, aside: Option<&[u8]>) -> Result<(), End> {
        let (_, total) = self.place_of_data();
        self.more(common, Data::Beside(aside), total).unwrap_or(Ok(()))
    }

    /// The data of a frame come beside it: says where to.
    fn await_data(&mut self, common: &mut Common, flow: u32, found: Result<(), End>) -> Result<(), End> {
        let (place, total) = self.place_of_data();
        let Some(carrier) = &mut common.carrier else { return found };
        if found.is_err() || matches!(self.assembly, Assembly::Nothing | Assembly::Refused { .. }) {
            carrier.pass_over(flow);
            return found.and_then(|()| self.late(common, None));
        }
        carrier.await_data(flow, total, place);
        Ok(())
    }

    /// Where the data of the message at hand go, if that is one place, and how many they are.
    fn place_of_data(&self) -> (Option<Range>, u32) {
        match self.assembly {
            Assembly::Nothing => (None, 0),
            Assembly::Refused { total, .. } => (None, total),
            Assembly::Receive { number, total, .. } => {
                (self.receive.get(number).and_then(|posted| whole(posted.data(), total)), total)
            }
            Assembly::Write { to, total, .. } => (Some((to.address, total)), total),
            Assembly::Read { number, total, .. } => {
                (self.send.get(number).and_then(|posted| whole(posted.data(), total)), total)
            }
        }
    }

    fn read_frame(
        &mut self,
        common: &mut Common,
        views: Option<&mut Views>,
        mut reader: Reader<'_>,
    ) -> Option<Result<(), End>> {
        let [what, low, high] = reader.take()?;
        self.hear(u16::from_le_bytes([low, high]));
        if self.heard > self.accepted {
            self.accepted_up_to(common, self.heard);
        }
        if what == kind::ACCEPT {
            return Some(Ok(()));
        }
        if what & kind::ANY == kind::MORE {
            return self.more(common, Data::Here(reader.0), reader.0.len() as u32);
        }
        let immediate = if what & kind::IMMEDIATE != 0 { Some(reader.word()?) } else { None };
        self.broken(common);
        let begun = match what & kind::ANY {
            kind::SEND => {
                let total = length(what, &mut reader)?;
                self.begin_receive(common, total, immediate)
            }
            kind::WRITE => {
                let to = reader.remote()?;
                let total = length(what, &mut reader)?;
                self.begin_write(common, to, total, immediate)
            }
            kind::ANSWER => {
                let number = self.send.number_of(reader.word()?)?;
                let total = length(what, &mut reader)?;
                let posted = self.send.get(number)?;
                let asked = posted.operation() == 2 && posted.outcome().is_none() && number < self.next;
                if !asked || posted.length != total {
                    return None;
                }
                self.assembly = Assembly::Read { number, got: 0, total };
                Ok(())
            }
            kind::READ => {
                let source = reader.remote()?;
                let (total, number) = (reader.word()?, reader.word()?);
                return self.asked_to_read(common, source, total, number);
            }
            _ => return None,
        };
        if let Err(end) = begun {
            return Some(Err(end));
        }
        if what & kind::REFERENCE == 0 {
            return self.more(common, Data::Here(reader.0), reader.0.len() as u32);
        }
        let Some(views) = views else { return Some(Ok(())) };
        let sum = reader.0.chunks_exact(PART).map(|octets| u64::from(Part::parse(octets).length));
        let sum = u32::try_from(sum.sum::<u64>()).ok().filter(|_| reader.0.len() <= PART * PARTS)?;
        views.process?;
        self.is_awaited = true;
        self.more(common, Data::There(views, reader.0), sum)
    }

    /// The rest of the message that was coming will not come.
    #[inline]
    fn broken(&mut self, common: &mut Common) {
        match std::mem::take(&mut self.assembly) {
            Assembly::Receive { number, got, .. } => {
                let status = status::DONE | status::PARTIAL_ERROR | status::OP_RECEIVE;
                self.finish(
                    common,
                    QueueKind::Receive,
                    number,
                    Outcome { status, length: got, immediate: 0 },
                );
            }
            Assembly::Write { .. } => common.error(Resource::Vi(self.handle), ErrorCode::RdmaWriteAbort),
            Assembly::Nothing | Assembly::Read { .. } | Assembly::Refused { .. } => {}
        }
    }

    /// A message cannot be taken: a reliable connection ends, and of an unreliable one the rest is passed over.
    fn refuse(
        &mut self,
        common: &mut Common,
        (got, total): (u32, u32),
        tell: Closing,
        code: Option<ErrorCode>,
    ) -> Result<(), End> {
        if self.attributes.reliability.is_reliable() {
            return Err(End { tell, code });
        }
        if let Some(code) = code {
            common.error(Resource::Vi(self.handle), code);
        }
        self.assembly = Assembly::Refused { got, total };
        self.ended(got > 0 && got == total);
        Ok(())
    }

    /// Finds the receive for a message, and looks whether it will do.
    #[inline]
    fn begin_receive(&mut self, common: &mut Common, total: u32, immediate: Option<u32>) -> Result<(), End> {
        let Some(number) = self.receive.first_open() else {
            let code = ErrorCode::ReceiveQueueEmpty;
            return self.refuse(common, (0, total), Closing::ReceiveQueueEmpty, Some(code));
        };
        let view = self.receive.get(number).and_then(Posted::view).ok_or(status::FORMAT_ERROR);
        let error = view.and_then(|view| view.check_receive(total, &self.attributes, &common.memory));
        match error {
            Ok(()) => {
                self.assembly = Assembly::Receive { number, got: 0, total, immediate };
                Ok(())
            }
            Err(error) => {
                self.fail(common, QueueKind::Receive, number, error);
                self.refuse(common, (0, total), Closing::Descriptor, None)
            }
        }
    }

    /// Looks whether memory may be written: all of it, so that nothing of a write that is rejected is written.
    fn begin_write(
        &mut self,
        common: &mut Common,
        to: AddressSegment,
        total: u32,
        immediate: Option<u32>,
    ) -> Result<(), End> {
        let (tag, access) = (self.attributes.ptag, Access::RdmaWrite);
        let allowed = self.attributes.enable_rdma_write
            && u64::from(total) <= self.attributes.max_transfer.get()
            && common.memory.check(to.address, total.into(), to.handle, tag, access).is_ok();
        let open = self.receive.first_open().filter(|_| immediate.is_some());
        if !allowed {
            let mut code = Some(ErrorCode::RdmaWriteProtection);
            // With immediate data a descriptor tells of it.
            if let Some(number) = open {
                let status = status::DONE | status::RDMA_PROTECTION_ERROR | status::OP_REMOTE_RDMA_WRITE;
                self.finish(common, QueueKind::Receive, number, Outcome { status, length: 0, immediate: 0 });
                code = None;
            }
            return self.refuse(common, (0, total), Closing::RdmaProtection, code);
        }
        if immediate.is_some() && open.is_none() {
            let code = ErrorCode::ReceiveQueueEmpty;
            return self.refuse(common, (0, total), Closing::ReceiveQueueEmpty, Some(code));
        }
        self.assembly = Assembly::Write { to, got: 0, total, immediate };
        Ok(())
    }

    /// So much data of the message at hand has come, or lies there to be fetched.
    #[inline]
    fn more(&mut self, common: &mut Common, data: Data<'_>, length: u32) -> Option<Result<(), End>> {
        let after = |got: u32, total: u32| got.checked_add(length).filter(|after| *after <= total);
        match self.assembly {
            Assembly::Nothing => None,
            Assembly::Refused { got, total } => {
                let got = after(got, total)?;
                self.assembly = Assembly::Refused { got, total };
                self.ended(got == total);
                Some(Ok(()))
            }
            Assembly::Receive { number, got, total, immediate } => {
                let after = after(got, total)?;
                let posted = self.receive.get(number)?;
                // It was all there when the message began; memory may have been given back since.
                if (got > 0 || data.is_late())
                    && let Err(error) = common.check(&self.attributes, posted.data())
                {
                    self.fail(common, QueueKind::Receive, number, error);
                    return Some(self.refuse(common, (after, total), Closing::Descriptor, None));
                }
                let came = put(data, parts(posted.data(), got, length));
                if came < length {
                    let error = if came > 0 { status::PARTIAL_ERROR } else { status::TRANSPORT_ERROR };
                    let status = status::DONE | error | status::OP_RECEIVE;
                    let outcome = Outcome { status, length: came, immediate: 0 };
                    self.finish(common, QueueKind::Receive, number, outcome);
                    return Some(self.unfetched(common, None));
                }
                self.assembly = Assembly::Receive { number, got: after, total, immediate };
                if self.ended(after == total) {
                    let with = if immediate.is_some() { status::IMMEDIATE } else { 0 };
                    let status = status::DONE | status::OP_RECEIVE | with;
                    let outcome = Outcome { status, length: total, immediate: immediate.unwrap_or(0) };
                    self.finish(common, QueueKind::Receive, number, outcome);
                }
                Some(Ok(()))
            }
            Assembly::Write { to, got, total, immediate } => {
                let after = after(got, total)?;
                let address = to.address + u64::from(got);
                let (tag, access) = (self.attributes.ptag, Access::RdmaWrite);
                if common.memory.check(address, length.into(), to.handle, tag, access).is_err() {
                    let code = Some(ErrorCode::RdmaWriteProtection);
                    return Some(self.refuse(common, (after, total), Closing::RdmaProtection, code));
                }
                let came = put(data, std::iter::once((address, length)));
                if came < length {
                    let part = came > 0 || got > 0;
                    let code = if part { ErrorCode::RdmaWriteAbort } else { ErrorCode::RdmaWriteData };
                    return Some(self.unfetched(common, Some(code)));
                }
                self.assembly = Assembly::Write { to, got: after, total, immediate };
                if self.ended(after == total)
                    && let (Some(immediate), Some(number)) = (immediate, self.receive.first_open())
                {
                    let status = status::DONE | status::OP_REMOTE_RDMA_WRITE | status::IMMEDIATE;
                    let outcome = Outcome { status, length: total, immediate };
                    self.finish(common, QueueKind::Receive, number, outcome);
                }
                Some(Ok(()))
            }
            Assembly::Read { number, got, total } => {
                let after = after(got, total)?;
                let posted = self.send.get(number)?;
                if let Err(error) = common.check(&self.attributes, posted.data()) {
                    self.fail(common, QueueKind::Send, number, error);
                    return Some(Err(End::DISCONNECT));
                }
                if put(data, parts(posted.data(), got, length)) < length {
                    self.fail(common, QueueKind::Send, number, status::TRANSPORT_ERROR);
                    return Some(Err(End { tell: Closing::Transport, code: None }));
                }
                self.assembly = Assembly::Read { number, got: after, total };
                if self.ended(after == total) {
                    self.reads = self.reads.saturating_sub(1);
                    let status = status::DONE | status::OP_RDMA_READ;
                    let outcome = Outcome { status, length: total, immediate: 0 };
                    self.finish(common, QueueKind::Send, number, outcome);
                }
                Some(Ok(()))
            }
        }
    }

    /// The message has come whole, if it has.
    #[inline]
    fn ended(&mut self, whole: bool) -> bool {
        if whole {
            self.assembly = Assembly::Nothing;
            self.taken += 1;
        }
        whole
    }

    /// The data of the message at hand could not be fetched, or not all of them.
    fn unfetched(&mut self, common: &mut Common, code: Option<ErrorCode>) -> Result<(), End> {
        if self.attributes.reliability.is_reliable() {
            // An RDMA write that is under way when the connection is lost is told of then.
            return Err(End { tell: Closing::Transport, code: None });
        }
        if let Some(code) = code {
            common.error(Resource::Vi(self.handle), code);
        }
        self.ended(true);
        Ok(())
    }

    /// The remote end reads memory.
    fn asked_to_read(
        &mut self,
        common: &mut Common,
        source: AddressSegment,
        total: u32,
        number: u32,
    ) -> Option<Result<(), End>> {
        let most = common.attributes.max_descriptors as usize;
        if !self.attributes.reliability.is_reliable() || self.answers.len() >= most {
            return None;
        }
        let AddressSegment { address, handle } = source;
        let tag = self.attributes.ptag;
        let allowed = self.attributes.enable_rdma_read
            && u64::from(total) <= self.attributes.max_transfer.get()
            && common.memory.check(address, total.into(), handle, tag, Access::RdmaRead).is_ok();
        if !allowed {
            let code = Some(ErrorCode::RdmaReadProtection);
            return Some(Err(End { tell: Closing::RdmaProtection, code }));
        }
        self.taken += 1;
        if total > 0 {
            self.answers.push_back(Answer { number, source, total, offset: 0 });
        }
        Some(Ok(()))
    }
}

/// The length of a message that begins with this frame.
#[inline]
fn length(what: u8, reader: &mut Reader<'_>) -> Option<u32> {
    if what & kind::LONG != 0 { reader.word() } else { Some(reader.0.len() as u32) }
}

fn goes_by_reference(link: &Wire, data: &[DataSegment], total: u32) -> bool {
    total > BY_REFERENCE
        && match link {
            Wire::Memory(link) => data.len() <= PARTS && link.is_read(),
            Wire::Network(_) => whole(data, total).is_some(),
        }
}

/// The one place where so many octets are.
fn whole(data: &[DataSegment], total: u32) -> Option<Range> {
    parts(data, 0, total).next().filter(|part| part.1 == total)
}

/// Sends one frame of a message; how much of it has gone then. There is room for a frame.
#[inline]
fn piece(
    link: &mut Wire,
    carrier: &mut Option<Carrier>,
    mut head: Head,
    (data, lasting): (&[DataSegment], bool),
    total: u32,
    offset: u32,
) -> u32 {
    let first = head.octets[0] & kind::ANY != kind::MORE;
    if first && goes_by_reference(link, data, total) {
        head.octets[0] |= kind::LONG | kind::REFERENCE;
        head.push(total.to_le_bytes());
        match (&mut *link, whole(data, total)) {
            (Wire::Memory(link), _) => refer(link, &head, data, lasting),
            // SAFETY: registered memory, which waits for the lock until it is given back, and is released then.
            (_, Some(data)) => unsafe { link.push_beside(carrier, &head.octets[..head.length], data) },
            _ => {}
        }
        return total;
    }
    let longest = link.longest();
    if first && total as usize + head.length > longest {
        head.octets[0] |= kind::LONG;
        head.push(total.to_le_bytes());
    }
    let length = (total - offset).min((longest - head.length) as u32);
    // SAFETY: all of it is registered memory, which waits for the lock until it is given back.
    unsafe { link.push(carrier, &head.octets[..head.length], parts(data, offset, length)) };
    offset + length
}

/// Sends a frame that names where the data of a message are.
fn refer(link: &mut Link, head: &Head, data: &[DataSegment], lasting: bool) {
    let mut length = 0;
    for &DataSegment { address, handle, length: octets } in data.iter().filter(|part| part.length > 0) {
        // What may be other memory by now is read where it is.
        let handle = if lasting { handle } else { MemoryHandle(0) };
        let part = Part { address, length: octets, handle };
        link.scratch[length..length + PART].copy_from_slice(&part.octets());
        length += PART;
    }
    link.producer.push_frame(&head.octets[..head.length], &link.scratch[..length]);
}
