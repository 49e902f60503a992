//! How one message crosses: eager, or by rendezvous.
//!
//! MPI-4.1, section 3.4 (communication modes). Both ends of a message share one [`Transfer`]; the
//! driver tells it what has happened and it says what may happen next. It moves no bytes and keeps
//! no time.
//!
//! Eager: the sender pushes envelope and data together, and its request is complete. Rendezvous: a
//! request-to-send (RTS) with the envelope alone; a clear-to-send (CTS) once it is matched and the
//! receiver is inside the library; then the data, pushed while the sender is inside the library
//! (there is no asynchronous progress); the sender's request is complete when the receiver has all.
//!
//! Fetched: a rendezvous in which the receiver takes the data from the sender's memory by itself, as
//! libraries do between processes of one host. The envelope says where they are; a receiver inside the
//! library copies them, whether or not the sender is; then its word to the sender (FIN) is under way,
//! and the sender's request is complete once the sender, inside the library, has seen it.
//!
//! Acknowledged: a synchronous send whose data are short enough to be pushed with the envelope. The receiver, when it
//! has them, says so (the same FIN), and the sender's request is complete when it has seen that: MPICH over libfabric
//! and Open MPI (`ob1`) do it so.
//!
//! Choice: a buffered send leaves as a standard one would, but its request is complete at once.

/// The mode of a send (MPI-4.1, 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `MPI_Send`: the library chooses.
    Standard,
    /// `MPI_Ssend`: complete only when the receive has begun.
    Synchronous,
    /// `MPI_Rsend`: the receive is posted already; a program in which it is not is wrong.
    Ready,
    /// `MPI_Bsend`: complete at once, from a buffer of the sender's.
    Buffered,
    /// `MPI_Send` of memory that has not been written since the same was sent to the same rank, whose core has
    /// it in its caches.
    Unchanged,
}

impl Mode {
    /// All of them by name, as in the Python interface.
    pub const BY_NAME: [(&'static str, Self); 5] = [
        ("standard", Self::Standard),
        ("synchronous", Self::Synchronous),
        ("ready", Self::Ready),
        ("buffered", Self::Buffered),
        ("unchanged", Self::Unchanged),
    ];

    /// The mode named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::BY_NAME.iter().find(|(one, _)| *one == name).map(|(_, mode)| *mode)
    }
}

/// How the data of a message go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// With the envelope, whether or not a receive is posted.
    Eager,
    /// With the envelope, and the receiver's FIN completes the send.
    Acknowledged,
    /// After a handshake, once a receive is matched.
    Rendezvous,
    /// By rendezvous, the receiver taking them from the sender's memory.
    Fetched,
}

impl Protocol {
    /// The protocol for a message of `bytes`; `rendezvous_from` is the smallest rendezvous message,
    /// `None` if the layer has no rendezvous.
    #[inline]
    #[must_use]
    pub fn choose(mode: Mode, bytes: u64, rendezvous_from: Option<u64>) -> Self {
        match mode {
            _ if rendezvous_from.is_some_and(|from| bytes >= from) => Self::Rendezvous,
            Mode::Synchronous => Self::Acknowledged,
            // A ready send knows its receive is there, so it needs no handshake, but its data are
            // as long as another's: MPICH treats it as a standard one, and so does this.
            Mode::Standard | Mode::Ready | Mode::Buffered | Mode::Unchanged => Self::Eager,
        }
    }

    /// Whether data leave with the envelope.
    #[inline]
    #[must_use]
    pub const fn pushes_at_once(self) -> bool {
        matches!(self, Self::Eager | Self::Acknowledged)
    }

    /// Whether the receiver, when it has the data, sends a FIN.
    const fn ends_with_fin(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Fetched)
    }
}

/// Where a message is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferState {
    /// Eager data, or an RTS, are under way.
    EnvelopeUnderWay,
    /// The envelope has arrived and no receive accepts it yet.
    Unexpected,
    /// Rendezvous: matched; the CTS waits for the receiver to enter the library.
    Matched,
    /// Rendezvous: cleared; the data wait for the sender to enter the library.
    Cleared,
    /// Rendezvous: the data are under way.
    DataUnderWay,
    /// The data are where the receiver can take them in, matched, and not yet taken in.
    Delivered,
    /// Fetched or acknowledged: the receive is complete; the FIN is under way, or waits for the sender to enter the
    /// library.
    FinUnderWay,
    /// Taken in: the receive is complete, and the send with it.
    Complete,
}

/// What has happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Its envelope arrived and a posted receive took it.
    ArrivedMatched,
    /// Its envelope arrived and nobody wanted it.
    ArrivedUnexpected,
    /// A receive posted later took it.
    Posted,
    /// The receiver is inside the library and sends the CTS.
    Clear,
    /// The sender is inside the library and pushes the data.
    Push,
    /// The rendezvous data are at the receiver.
    DataArrived,
    /// The receiver has taken the data in.
    TakenIn,
    /// The sender is inside the library and has seen the FIN.
    FinSeen,
}

/// What an input calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing yet.
    Wait,
    /// The receiver, when next inside the library, has a CTS to send.
    ReceiverClears,
    /// The sender, when next inside the library, has data to push.
    SenderPushes,
    /// The data travel.
    DataTravel,
    /// The receiver, when next inside the library, has data to take in.
    ReceiverTakesIn,
    /// The receive is complete; the FIN travels, and the sender, when next inside the library, has to see it.
    FinTravels,
    /// The receive is complete; `sender_completes` says whether the send is only now, too.
    Done {
        /// Whether the sender's request waited for this.
        sender_completes: bool,
    },
}

/// An input that does not fit the state: the driver has lost track of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongState {
    /// The state the message was in.
    pub state: TransferState,
    /// What was said to have happened.
    pub input: Input,
}

/// The protocol state of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    protocol: Protocol,
    mode: Mode,
    state: TransferState,
}

impl Transfer {
    /// A message that has just left.
    #[must_use]
    pub const fn new(protocol: Protocol, mode: Mode) -> Self {
        Self { protocol, mode, state: TransferState::EnvelopeUnderWay }
    }

    /// Eager or rendezvous.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The mode it was sent in.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Where it is.
    #[must_use]
    pub const fn state(&self) -> TransferState {
        self.state
    }

    /// Whether the send's request is complete as soon as the envelope has left.
    #[must_use]
    pub const fn completes_locally(&self) -> bool {
        matches!(self.protocol, Protocol::Eager) || matches!(self.mode, Mode::Buffered)
    }

    /// Takes one input.
    ///
    /// # Errors
    /// [`WrongState`] if the input cannot happen now; nothing changes.
    pub const fn handle(&mut self, input: Input) -> Result<Next, WrongState> {
        use TransferState as S;
        let (state, next) = match (self.state, input, self.protocol) {
            (S::EnvelopeUnderWay, Input::ArrivedUnexpected, _) => (S::Unexpected, Next::Wait),
            (S::EnvelopeUnderWay, Input::ArrivedMatched, Protocol::Rendezvous)
            | (S::Unexpected, Input::Posted, Protocol::Rendezvous) => (S::Matched, Next::ReceiverClears),
            (S::EnvelopeUnderWay, Input::ArrivedMatched, _) | (S::Unexpected, Input::Posted, _) => {
                (S::Delivered, Next::ReceiverTakesIn)
            }
            (S::Matched, Input::Clear, _) => (S::Cleared, Next::SenderPushes),
            (S::Cleared, Input::Push, _) => (S::DataUnderWay, Next::DataTravel),
            (S::DataUnderWay, Input::DataArrived, _) => (S::Delivered, Next::ReceiverTakesIn),
            (S::Delivered, Input::TakenIn, protocol) if protocol.ends_with_fin() => {
                (S::FinUnderWay, Next::FinTravels)
            }
            (S::FinUnderWay, Input::FinSeen, _) => {
                (S::Complete, Next::Done { sender_completes: !self.completes_locally() })
            }
            (S::Delivered, Input::TakenIn, _) => {
                (S::Complete, Next::Done { sender_completes: !self.completes_locally() })
            }
            (state, input, _) => return Err(WrongState { state, input }),
        };
        self.state = state;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: [Input; 8] = [
        Input::ArrivedMatched,
        Input::ArrivedUnexpected,
        Input::Posted,
        Input::Clear,
        Input::Push,
        Input::DataArrived,
        Input::TakenIn,
        Input::FinSeen,
    ];

    #[test]
    fn the_size_and_the_mode_choose_the_protocol() {
        assert_eq!(Protocol::choose(Mode::Standard, 99, Some(100)), Protocol::Eager);
        assert_eq!(Protocol::choose(Mode::Standard, 100, Some(100)), Protocol::Rendezvous);
        assert_eq!(Protocol::choose(Mode::Standard, u64::MAX, None), Protocol::Eager);
        assert_eq!(Protocol::choose(Mode::Synchronous, 0, None), Protocol::Acknowledged);
        assert_eq!(Protocol::choose(Mode::Synchronous, 99, Some(100)), Protocol::Acknowledged);
        assert_eq!(Protocol::choose(Mode::Synchronous, 100, Some(100)), Protocol::Rendezvous);
        assert_eq!(Protocol::choose(Mode::Buffered, 100, Some(100)), Protocol::Rendezvous);
    }

    #[test]
    fn an_eager_message_is_taken_in_once_matched() {
        let mut transfer = Transfer::new(Protocol::Eager, Mode::Standard);
        assert!(transfer.completes_locally());
        assert_eq!(transfer.handle(Input::ArrivedUnexpected), Ok(Next::Wait));
        assert_eq!(transfer.handle(Input::Posted), Ok(Next::ReceiverTakesIn));
        assert_eq!(transfer.handle(Input::TakenIn), Ok(Next::Done { sender_completes: false }));
    }

    #[test]
    fn a_rendezvous_needs_receiver_then_sender_and_completes_both() {
        let mut transfer = Transfer::new(Protocol::Rendezvous, Mode::Standard);
        assert!(!transfer.completes_locally());
        assert_eq!(transfer.handle(Input::ArrivedMatched), Ok(Next::ReceiverClears));
        assert_eq!(transfer.handle(Input::Clear), Ok(Next::SenderPushes));
        assert_eq!(transfer.handle(Input::Push), Ok(Next::DataTravel));
        assert_eq!(transfer.handle(Input::DataArrived), Ok(Next::ReceiverTakesIn));
        assert_eq!(transfer.handle(Input::TakenIn), Ok(Next::Done { sender_completes: true }));
    }

    #[test]
    fn fetched_and_acknowledged_data_need_the_receiver_alone_and_the_sender_completes_when_it_sees_the_fin() {
        for (protocol, mode) in
            [(Protocol::Fetched, Mode::Standard), (Protocol::Acknowledged, Mode::Synchronous)]
        {
            let mut transfer = Transfer::new(protocol, mode);
            assert!(!transfer.completes_locally());
            assert_eq!(transfer.handle(Input::ArrivedMatched), Ok(Next::ReceiverTakesIn));
            assert_eq!(transfer.handle(Input::TakenIn), Ok(Next::FinTravels));
            assert_eq!(transfer.handle(Input::FinSeen), Ok(Next::Done { sender_completes: true }));
            assert_eq!(transfer.state(), TransferState::Complete);
        }
        let mut buffered = Transfer::new(Protocol::Fetched, Mode::Buffered);
        assert_eq!(buffered.handle(Input::ArrivedUnexpected), Ok(Next::Wait));
        assert_eq!(buffered.handle(Input::Posted), Ok(Next::ReceiverTakesIn));
        assert_eq!(buffered.handle(Input::TakenIn), Ok(Next::FinTravels));
        assert_eq!(buffered.handle(Input::FinSeen), Ok(Next::Done { sender_completes: false }));
    }

    #[test]
    fn every_state_meets_every_input_and_a_wrong_one_changes_nothing() {
        // Allowed inputs by state, eager, rendezvous, and fetched or acknowledged, in the order of `INPUTS`.
        let table = [
            (TransferState::EnvelopeUnderWay, "1100 0000", "1100 0000", "1100 0000"),
            (TransferState::Unexpected, "0010 0000", "0010 0000", "0010 0000"),
            (TransferState::Matched, "", "0001 0000", ""),
            (TransferState::Cleared, "", "0000 1000", ""),
            (TransferState::DataUnderWay, "", "0000 0100", ""),
            (TransferState::Delivered, "0000 0010", "0000 0010", "0000 0010"),
            (TransferState::FinUnderWay, "", "", "0000 0001"),
            (TransferState::Complete, "0000 0000", "0000 0000", "0000 0000"),
        ];
        for (state, eager, rendezvous, told) in table {
            for (protocol, allowed) in [
                (Protocol::Eager, eager),
                (Protocol::Rendezvous, rendezvous),
                (Protocol::Fetched, told),
                (Protocol::Acknowledged, told),
            ] {
                for (input, flag) in INPUTS.iter().zip(allowed.chars().filter(|c| *c != ' ')) {
                    let mut transfer = Transfer { protocol, mode: Mode::Standard, state };
                    let outcome = transfer.handle(*input);
                    assert_eq!(outcome.is_ok(), flag == '1', "{protocol:?} {state:?} {input:?}");
                    if outcome.is_err() {
                        assert_eq!(transfer.state(), state);
                    }
                }
            }
        }
    }
}
