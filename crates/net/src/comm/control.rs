//! What ranks of a local network ask for that is no message: pauses, processes, circuits, users, groups.

use wiretwin_msg::library::Control;
use wiretwin_prog::{CommError, Rank, Tag};
use wiretwin_units::{Bytes, Span};

use super::SimComm;
use crate::ranks::{Completion, Op, RequestId};

/// To how many a message goes, while nobody knows.
const UNKNOWN: usize = 1 << 31;

impl SimComm {
    /// Sleeps for so long; on a twin's host, which has no sleepers, it has its core meanwhile.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where the ranks of a local network have no message layer.
    pub async fn pause(&mut self, span: Span) -> Result<(), CommError> {
        if !self.is_local {
            self.post(Op::Compute(span))?;
            self.post(Op::Yield)?;
            self.resumption().await;
            return Ok(());
        }
        self.post(Op::Pause(span))?;
        self.resumption().await;
        Ok(())
    }

    /// Asks for what is no message: the number that it came to.
    pub(super) async fn control(&self, control: &Control) -> Result<u32, CommError> {
        let request = self.post(Op::Control(control))?;
        self.answer(request).await.map(|completion| completion.number)
    }

    /// Sends to all of a group.
    pub(super) async fn cast(&self, group: &str, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let bytes = Bytes::new(message.len() as u64);
        let control = Control::Cast { group: group.into(), tag: tag.0, bytes };
        let request = self.post(Op::Control(&control))?;
        // To how many it goes is known when the group has said who is in it; until then it is kept.
        self.shared.several.borrow_mut().insert(request, (message.to_vec(), UNKNOWN));
        let done = self.answer(request).await;
        let number = done.as_ref().map_or(0, |completion| completion.number as usize);
        let mut several = self.shared.several.borrow_mut();
        if let Some((_, takers)) = several.get_mut(&request) {
            *takers = (*takers + number).saturating_sub(UNKNOWN);
            if *takers == 0 {
                several.remove(&request);
            }
        }
        done.map(drop)
    }

    /// Waits for one request.
    pub(super) async fn answer(&self, request: RequestId) -> Result<Completion, CommError> {
        self.post(Op::wait(&[request]))?;
        let first = self.resumption().await;
        self.shared.check(self.process, first)
    }

    /// Starts processes of a program (`pvm_spawn`): how many were started.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where the interface starts none; [`CommError::Transport`] where none was
    /// started, with the interface's own error.
    pub async fn spawn(&mut self, program: &str, count: u32) -> Result<u32, CommError> {
        self.control(&Control::Spawn { program: program.into(), count }).await
    }

    /// Clears the circuit to a rank (`atm_close`), on which all has come that was sent; the next message to it
    /// asks for another. Whether there was one.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where circuits are there for good; [`CommError::Transport`] while something
    /// is on its way.
    pub async fn hang_up(&mut self, rank: Rank) -> Result<bool, CommError> {
        self.check(rank)?;
        self.control(&Control::HangUp { rank: rank.0 }).await.map(|cleared| cleared > 0)
    }

    /// Lets messages say from now on that they are of this user (AUTH_SYS).
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where messages say nothing of the kind.
    pub async fn identify(&mut self, user: u32) -> Result<(), CommError> {
        self.control(&Control::Identify { user }).await.map(drop)
    }

    /// The user that the last message says it is of.
    ///
    /// # Errors
    /// As [`LanComm::identify`]; [`CommError::Transport`] where it did not say.
    pub async fn caller(&mut self) -> Result<u32, CommError> {
        self.control(&Control::Caller).await
    }
}
