//! The duplicate-request cache: a call that a datagram brings twice is carried out once.
//!
//! RFC 5531 §4 leaves it to the implementation; this is the cache of Sun's UDP servers
//! (`svcudp_enablecache`), with a place also for calls that are still being carried out, and the caller's
//! address as part of what is compared.

use alloc::collections::{BTreeMap, VecDeque};

use super::{Reply, Target};

/// What makes two calls the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<P> {
    /// That of the call.
    pub xid: u32,
    /// Who calls.
    pub peer: P,
    /// What is called.
    pub target: Target,
}

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<B> {
    /// It is new, and has its place now: carry it out.
    New,
    /// It is being carried out: its reply will come.
    InProgress,
    /// It was carried out: this was the reply.
    Done(Reply<B>),
    /// It is new, and every place is taken by a call in progress: drop it, its caller will call again.
    Full,
}

/// A bounded cache; the oldest reply makes room.
#[derive(Clone, Debug)]
pub struct DuplicateCache<P, B> {
    capacity: usize,
    calls: BTreeMap<Key<P>, Option<Reply<B>>>,
    /// Those with a reply, oldest first.
    done: VecDeque<Key<P>>,
}

impl<P: Ord + Copy, B: Clone> DuplicateCache<P, B> {
    /// A cache of so many calls; 0 for none, and every call is new.
    pub const fn new(capacity: usize) -> Self {
        Self { capacity, calls: BTreeMap::new(), done: VecDeque::new() }
    }

    /// A call arrives.
    pub fn look(&mut self, key: Key<P>) -> Verdict<B> {
        match self.calls.get(&key) {
            Some(Some(reply)) => return Verdict::Done(reply.clone()),
            Some(None) => return Verdict::InProgress,
            None if self.capacity == 0 => return Verdict::New,
            None => {}
        }
        if self.calls.len() == self.capacity {
            let Some(oldest) = self.done.pop_front() else { return Verdict::Full };
            self.calls.remove(&oldest);
        }
        self.calls.insert(key, None);
        Verdict::New
    }

    /// A call was carried out, with this reply or without one.
    pub fn finish(&mut self, key: Key<P>, reply: Option<Reply<B>>) {
        let Some(place) = self.calls.get_mut(&key) else { return };
        match reply {
            Some(_) => {
                *place = reply;
                self.done.push_back(key);
            }
            // A batched call: none comes, but one that comes twice is still the same.
            None => self.done.push_back(key),
        }
    }

    /// How many calls it holds.
    pub fn held(&self) -> usize {
        self.calls.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(xid: u32, peer: u8, procedure: u32) -> Key<u8> {
        Key { xid, peer, target: Target { program: 1, version: 1, procedure } }
    }

    fn reply(xid: u32) -> Reply<u8> {
        Reply { xid, result: Ok(xid as u8) }
    }

    #[test]
    fn a_call_is_new_then_in_progress_then_done() {
        let mut cache = DuplicateCache::new(2);
        assert_eq!(cache.look(key(1, 0, 1)), Verdict::New);
        assert_eq!(cache.look(key(1, 0, 1)), Verdict::InProgress);
        cache.finish(key(1, 0, 1), Some(reply(1)));
        assert_eq!(cache.look(key(1, 0, 1)), Verdict::Done(reply(1)));
    }

    #[test]
    fn another_peer_or_procedure_is_another_call() {
        let mut cache = DuplicateCache::<_, u8>::new(3);
        for other in [key(1, 0, 1), key(1, 1, 1), key(1, 0, 2)] {
            assert_eq!(cache.look(other), Verdict::New);
        }
    }

    #[test]
    fn the_oldest_reply_makes_room_and_a_call_in_progress_does_not() {
        let mut cache = DuplicateCache::new(2);
        for xid in [1, 2] {
            assert_eq!(cache.look(key(xid, 0, 1)), Verdict::New);
        }
        assert_eq!(cache.look(key(3, 0, 1)), Verdict::Full);
        cache.finish(key(2, 0, 1), Some(reply(2)));
        assert_eq!(cache.look(key(3, 0, 1)), Verdict::New);
        assert_eq!((cache.look(key(1, 0, 1)), cache.held()), (Verdict::InProgress, 2));
        cache.finish(key(1, 0, 1), None);
        assert_eq!(cache.look(key(1, 0, 1)), Verdict::InProgress, "no reply, not a second time either");
        assert_eq!(cache.look(key(2, 0, 1)), Verdict::New, "forgotten, and takes the place of 1");
        assert_eq!(cache.look(key(1, 0, 1)), Verdict::Full);
    }

    #[test]
    fn without_places_every_call_is_new() {
        let mut cache = DuplicateCache::new(0);
        for _ in 0..2 {
            assert_eq!(cache.look(key(1, 0, 1)), Verdict::New);
            cache.finish(key(1, 0, 1), Some(reply(1)));
        }
        assert_eq!(cache.held(), 0);
    }
}
