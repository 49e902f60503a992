//! What the leader tells the follower: one message of 56 bytes, answered before work begins.

use wiretwin_prog::CommError;

use crate::loops::Kind;

/// Length of every control message in bytes. Fits the payload of one cache line of a ring.
pub const CONTROL_BYTES: usize = 56;

const MAGIC: u64 = u64::from_le_bytes(*b"wtprobe1");

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Run a loop.
    Run(Order),
    /// Send the payload back unchanged, so that the leader can compare it.
    Verify {
        /// Length of the payload.
        bytes: u64,
    },
    /// Move to the core that both ranks share, or away from it; answered first.
    Move {
        /// Whether to that core.
        together: bool,
    },
    /// Ready to run what was ordered.
    Ready,
    /// The loop has ended on this side, with this many messages lost.
    Over {
        /// Messages given up.
        lost: u64,
    },
    /// Nothing more will come.
    Quit,
}

/// One run of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Which loop.
    pub kind: Kind,
    /// Length of a message.
    pub bytes: u64,
    /// Messages an iteration.
    pub messages: u64,
    /// Iterations.
    pub iterations: u64,
}

impl Control {
    /// The message.
    pub fn encode(self) -> [u8; CONTROL_BYTES] {
        let words: [u64; 6] = match self {
            Self::Run(order) => [1, order.kind.code(), order.bytes, order.messages, order.iterations, 0],
            Self::Verify { bytes } => [2, 0, bytes, 0, 0, 0],
            Self::Ready => [3, 0, 0, 0, 0, 0],
            Self::Over { lost } => [4, lost, 0, 0, 0, 0],
            Self::Quit => [5, 0, 0, 0, 0, 0],
            Self::Move { together } => [6, u64::from(together), 0, 0, 0, 0],
        };
        let mut message = [0; CONTROL_BYTES];
        message[..8].copy_from_slice(&MAGIC.to_le_bytes());
        for (at, word) in words.iter().enumerate() {
            message[8 * (at + 1)..8 * (at + 2)].copy_from_slice(&word.to_le_bytes());
        }
        message
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`CommError::Transport`] if the two ranks no longer agree on what comes next.
    pub fn decode(message: &[u8; CONTROL_BYTES]) -> Result<Self, CommError> {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&message[8 * at..8 * (at + 1)]);
            u64::from_le_bytes(bytes)
        };
        let lost_step = || CommError::Transport("the ranks are out of step: not a control message".into());
        if word(0) != MAGIC {
            return Err(lost_step());
        }
        match word(1) {
            1 => Ok(Self::Run(Order {
                kind: Kind::from_code(word(2)).ok_or_else(lost_step)?,
                bytes: word(3),
                messages: word(4),
                iterations: word(5),
            })),
            2 => Ok(Self::Verify { bytes: word(3) }),
            3 => Ok(Self::Ready),
            4 => Ok(Self::Over { lost: word(2) }),
            5 => Ok(Self::Quit),
            6 => Ok(Self::Move { together: word(2) != 0 }),
            _ => Err(lost_step()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_reads_back_and_any_other_is_refused() {
        for kind in Kind::ALL {
            let order = Order { kind, bytes: 1 << 20, messages: 3, iterations: u64::MAX };
            assert_eq!(Control::decode(&Control::Run(order).encode()), Ok(Control::Run(order)));
        }
        let moves = [true, false].map(|together| Control::Move { together });
        let others = [Control::Verify { bytes: 7 }, Control::Ready, Control::Over { lost: 2 }, Control::Quit];
        for control in others.into_iter().chain(moves) {
            assert_eq!(Control::decode(&control.encode()), Ok(control));
        }
        let mut message = Control::Ready.encode();
        message[8] = 9;
        assert!(Control::decode(&message).is_err());
        assert!(Control::decode(&[0; CONTROL_BYTES]).is_err());
    }
}
