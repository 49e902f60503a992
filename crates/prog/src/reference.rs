//! What a program's result must be, computed once for all ranks that share a process.

use std::cell::OnceCell;
use std::rc::Rc;

/// The digest of the result that the sequential program has, computed when the first rank asks for it.
///
/// Clones share it. A simulated run gives one to all its ranks; a live rank, which shares memory with
/// nobody, has its own.
///
/// ```
/// # use wiretwin_prog::Reference;
/// let (ours, theirs) = { let one = Reference::default(); (one.clone(), one) };
/// assert_eq!(ours.digest(|| 7), 7);
/// assert_eq!(theirs.digest(|| unreachable!("is known by now")), 7);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reference(Rc<OnceCell<u64>>);

impl Reference {
    /// The digest; `alone` computes it where no rank has asked before. All ranks of a run must pass the
    /// same computation.
    pub fn digest(&self, alone: impl FnOnce() -> u64) -> u64 {
        *self.0.get_or_init(alone)
    }
}
