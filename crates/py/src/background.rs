//! Messages of a rank that go on in the background of what it does: those of collectives that do not block.

use wiretwin_net::ranks::{Completion, Op, OpError, Ranks, RequestId, WaitMode};

use crate::steps::StepReader;

/// What goes on, and what the rank waits for meanwhile.
#[derive(Default)]
pub(crate) struct Backgrounds<'a> {
    /// How many have begun.
    begun: u32,
    going: Vec<Going<'a>>,
    /// For what the rank waits, if it does.
    wait: Option<Wait>,
}

struct Going<'a> {
    number: u32,
    /// The rounds that have not begun.
    rest: StepReader<'a>,
    /// What is not complete of the one that has.
    open: Vec<RequestId>,
}

struct Wait {
    open: Vec<RequestId>,
    /// For all of this number.
    background: Option<u32>,
}

impl<'a> Backgrounds<'a> {
    /// Whether nothing goes on.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.going.is_empty()
    }

    /// Whether the rank waits while they go on.
    #[inline]
    pub(crate) const fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Begins the next: posts its first round.
    pub(crate) fn begin(
        &mut self,
        rounds: StepReader<'a>,
        rank: u32,
        world: &mut Ranks,
    ) -> Result<(), OpError> {
        let mut one = Going { number: self.begun, rest: rounds, open: Vec::new() };
        self.begun += 1;
        if one.go_on(rank, world)? {
            self.going.push(one);
        }
        Ok(())
    }

    /// Lets the rank wait, for requests or for all of one that goes on: see [`Self::go_on`].
    pub(crate) fn wait_for(&mut self, requests: &[RequestId], background: Option<u32>) {
        self.wait = Some(Wait { open: requests.to_vec(), background });
    }

    /// Begins the rounds before which nothing is open, and waits again unless what the rank waits for is complete:
    /// whether it is.
    pub(crate) fn go_on(
        &mut self,
        rank: u32,
        world: &mut Ranks,
        requests: &mut Vec<RequestId>,
    ) -> Result<bool, OpError> {
        let mut at = 0;
        while at < self.going.len() {
            if self.going[at].go_on(rank, world)? {
                at += 1;
            } else {
                self.going.remove(at);
            }
        }
        let Some(wait) = &self.wait else { return Ok(true) };
        let goes_on = self.going.iter().any(|one| Some(one.number) == wait.background);
        if wait.open.is_empty() && !goes_on {
            self.wait = None;
            return Ok(true);
        }
        requests.clear();
        requests.extend(&wait.open);
        requests.extend(self.going.iter().flat_map(|one| &one.open));
        world.post(rank, Op::Wait { requests, mode: WaitMode::Some })?;
        Ok(false)
    }

    /// Takes what is complete of what the last wait was for.
    pub(crate) fn completed(&mut self, completions: &[Completion]) {
        let Some(wait) = &mut self.wait else { return };
        for one in completions {
            let lists = std::iter::once(&mut wait.open).chain(self.going.iter_mut().map(|one| &mut one.open));
            for list in lists {
                if let Some(at) = list.iter().position(|request| *request == one.request) {
                    list.swap_remove(at);
                    break;
                }
            }
        }
    }
}

impl Going<'_> {
    /// Posts the next round where nothing is open; whether anything is then.
    fn go_on(&mut self, rank: u32, world: &mut Ranks) -> Result<bool, OpError> {
        while self.open.is_empty() {
            loop {
                let Some(step) = self.rest.step() else { return Ok(false) };
                if let Some(transfer) = step.transfer() {
                    self.open.extend(world.post(rank, transfer)?);
                } else {
                    (0..step.names()).for_each(|_| _ = self.rest.named());
                    break;
                }
            }
        }
        Ok(true)
    }
}
