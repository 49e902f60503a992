//! A `Comm` that keeps account of where a rank's time goes.

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
use wiretwin_units::Span;

/// Where a rank's time went. What is in neither part is the program between its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// All of it.
    pub total: Span,
    /// Inside sends, receives and exchanges.
    pub in_comm: Span,
    /// Inside the work that the program names, by its kind, in the order in which the kinds came.
    pub compute: Vec<(&'static str, Span)>,
    /// How many sends, receives and exchanges.
    pub calls: u64,
}

impl Split {
    /// Inside all work that the program names.
    pub fn computed(&self) -> Span {
        Span::from_ps(self.compute.iter().map(|(_, time)| time.as_ps()).sum())
    }
}

/// The account over another `Comm`: two readings of the clock a call.
#[derive(Debug)]
pub(crate) struct Timed<'a, C> {
    comm: &'a mut C,
    so_far: Split,
}

impl<'a, C: Comm> Timed<'a, C> {
    pub fn new(comm: &'a mut C) -> Self {
        Self { comm, so_far: Split::default() }
    }

    /// The account at this instant, for [`Timed::since`].
    pub fn begin(&self) -> Split {
        Split { total: self.comm.now(), ..self.so_far.clone() }
    }

    /// Where the time since then went.
    pub fn since(&self, before: &Split) -> Split {
        let less = |a: Span, b: Span| Span::from_ps(a.as_ps() - b.as_ps());
        Split {
            total: less(self.comm.now(), before.total),
            in_comm: less(self.so_far.in_comm, before.in_comm),
            compute: self
                .so_far
                .compute
                .iter()
                .map(|&(kind, time)| {
                    let earlier = before.compute.iter().find(|(one, _)| *one == kind);
                    (kind, earlier.map_or(time, |&(_, earlier)| less(time, earlier)))
                })
                .collect(),
            calls: self.so_far.calls - before.calls,
        }
    }

    fn called(&mut self, since: Span) {
        let inside = self.comm.now().as_ps() - since.as_ps();
        self.so_far.in_comm = Span::from_ps(self.so_far.in_comm.as_ps() + inside);
        self.so_far.calls += 1;
    }
}

impl<C: Comm> Comm for Timed<'_, C> {
    fn rank(&self) -> Rank {
        self.comm.rank()
    }

    fn size(&self) -> u32 {
        self.comm.size()
    }

    fn now(&self) -> Span {
        self.comm.now()
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let since = self.comm.now();
        let outcome = self.comm.send(to, tag, message).await;
        self.called(since);
        outcome
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        let since = self.comm.now();
        let outcome = self.comm.recv(from, tag, buffer).await;
        self.called(since);
        outcome
    }

    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        let since = self.comm.now();
        let outcome = self.comm.exchange(sends, receives).await;
        self.called(since);
        outcome
    }

    async fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> T {
        let since = self.comm.now().as_ps();
        let value = self.comm.compute(work, body).await;
        let took = self.comm.now().as_ps() - since;
        match self.so_far.compute.iter_mut().find(|(kind, _)| *kind == work.kind) {
            Some((_, time)) => *time = Span::from_ps(time.as_ps() + took),
            None => self.so_far.compute.push((work.kind, Span::from_ps(took))),
        }
        value
    }
}

/// All ranks meet: in round k each hears from the rank 2^k before it (Hensgen, Finkel & Manber 1988).
pub(crate) async fn barrier<C: Comm>(comm: &mut C) -> Result<(), CommError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let mut distance = 1;
    while distance < size {
        let to = Rank((rank + distance) % size);
        let from = Rank((rank + size - distance) % size);
        let mut receives = [Incoming {
            from: Source::Rank(from),
            tag: TagMatch::Tag(Tag::CONTROL),
            buffer: &mut [],
            status: None,
        }];
        comm.exchange(&[Outgoing { to, tag: Tag::CONTROL, message: &[] }], &mut receives).await?;
        distance *= 2;
    }
    Ok(())
}
