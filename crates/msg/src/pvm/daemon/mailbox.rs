//! The mailbox that the master keeps: messages under names (`pvm_putinfo`, `pvm_recvinfo`).

use alloc::string::String;
use alloc::vec::Vec;

use crate::pvm::{PvmError, Tid};

/// The entry stays when its owner ends.
pub(super) const PERSISTENT: u32 = 1;
/// There may be several of a name.
const MULTIPLE: u32 = 2;
/// Anybody may write over it or delete it.
const OVERWRITABLE: u32 = 4;
/// The first from that index on.
const FIRST_THERE_IS: u32 = 8;
/// It is deleted once read.
const AND_DELETE: u32 = 16;
/// Whoever asks waits until it is there.
pub(super) const WAIT: u32 = 32;

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    index: i32,
    owner: Tid,
    flags: u32,
    message: Vec<u8>,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    /// Who asks.
    pub(super) owner: Tid,
    /// The name.
    pub(super) name: String,
    /// The index.
    pub(super) index: i32,
    /// The flags of the call, which say how the name is looked up.
    pub(super) flags: u32,
}

/// The entries, by name in the order of first use and then by index.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    entries: Vec<Entry>,
}

impl Mailbox {
    /// Puts a message, in octets as it was packed; returns its index.
    pub(super) fn put(&mut self, lookup: Lookup, message: Vec<u8>) -> Result<i32, PvmError> {
        let Lookup { owner, name, index, flags } = lookup;
        let explicit = index != -1;
        let direct = (flags >> DIRECT_INDEX_AT) as i32;
        let mut index = if explicit { index } else { direct };
        let taken =
            |entries: &[Entry], index| entries.iter().position(|one| one.name == name && one.index == index);
        if let Some(at) = taken(&self.entries, index) {
            if flags & MULTIPLE != 0 {
                if explicit {
                    return Err(PvmError::Denied);
                }
                while taken(&self.entries, index).is_some() {
                    index += 1;
                }
            } else if self.entries[at].flags & OVERWRITABLE == 0 && self.entries[at].owner != owner {
                return Err(PvmError::Denied);
            } else {
                self.entries.remove(at);
            }
        }
        self.entries.push(Entry { name, index, owner, flags, message });
        Ok(index)
    }

    /// Deletes an entry; returns its index.
    pub(super) fn delete(&mut self, lookup: &Lookup) -> Result<i32, PvmError> {
        let is = |one: &Entry| one.name == lookup.name && one.index == lookup.index;
        let at = self.entries.iter().position(is).ok_or(PvmError::NotFound)?;
        if self.entries[at].flags & OVERWRITABLE == 0 && self.entries[at].owner != lookup.owner {
            return Err(PvmError::Denied);
        }
        Ok(self.entries.remove(at).index)
    }

    /// Reads an entry; returns its index and its message.
    pub(super) fn get(&mut self, lookup: &Lookup) -> Result<(i32, Vec<u8>), PvmError> {
        let any = lookup.flags & FIRST_THERE_IS != 0;
        let fits = |one: &Entry| if any { one.index >= lookup.index } else { one.index == lookup.index };
        let found = self.entries.iter().enumerate().filter(|(_, one)| one.name == lookup.name && fits(one));
        let (at, entry) = found.min_by_key(|(_, one)| one.index).ok_or(PvmError::NotFound)?;
        let answer = (entry.index, entry.message.clone());
        if lookup.flags & AND_DELETE != 0 {
            if entry.flags & OVERWRITABLE == 0 && entry.owner != lookup.owner {
                return Err(PvmError::Denied);
            }
            self.entries.remove(at);
        }
        Ok(answer)
    }

    /// A task has ended: its entries go, but for those that stay, which are nobody's.
    pub(super) fn tidy(&mut self, tid: Tid) {
        self.entries.retain(|entry| entry.owner != tid || entry.flags & PERSISTENT != 0);
        for entry in self.entries.iter_mut().filter(|entry| entry.owner == tid) {
            entry.owner = Tid(0);
        }
    }
}

/// Where in the flags an index may be (`PvmMboxDirectIndex`).
const DIRECT_INDEX_AT: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(owner: u32, index: i32, flags: u32) -> Lookup {
        Lookup { owner: Tid(owner), name: "name".into(), index, flags }
    }

    #[test]
    fn an_entry_is_its_owners_until_that_ends() {
        let mut mailbox = Mailbox::default();
        assert_eq!(mailbox.put(lookup(1, -1, 0), b"one".to_vec()), Ok(0));
        assert_eq!(mailbox.get(&lookup(2, 0, 0)), Ok((0, b"one".to_vec())));
        assert_eq!(mailbox.put(lookup(2, -1, 0), b"two".to_vec()), Err(PvmError::Denied));
        assert_eq!(mailbox.delete(&lookup(2, 0, 0)), Err(PvmError::Denied));
        assert_eq!(mailbox.get(&lookup(2, 0, AND_DELETE)), Err(PvmError::Denied));
        assert_eq!(mailbox.put(lookup(1, -1, 0), b"new".to_vec()), Ok(0), "the owner may");
        mailbox.tidy(Tid(2));
        assert_eq!(mailbox.get(&lookup(2, 0, 0)), Ok((0, b"new".to_vec())));
        mailbox.tidy(Tid(1));
        assert_eq!(mailbox.get(&lookup(2, 0, 0)), Err(PvmError::NotFound));
        assert_eq!(mailbox.delete(&lookup(1, 0, 0)), Err(PvmError::NotFound));
    }

    #[test]
    fn several_of_a_name_are_told_apart_by_their_index() {
        let mut mailbox = Mailbox::default();
        for (owner, expected) in [(1, 0), (2, 1), (1, 2)] {
            let text = alloc::vec![owner as u8];
            assert_eq!(mailbox.put(lookup(owner, -1, MULTIPLE | OVERWRITABLE), text), Ok(expected));
        }
        assert_eq!(mailbox.put(lookup(1, 0, MULTIPLE), Vec::new()), Err(PvmError::Denied));
        assert_eq!(mailbox.put(lookup(1, -1, 5 << DIRECT_INDEX_AT), Vec::new()), Ok(5));
        assert_eq!(mailbox.get(&lookup(9, 0, AND_DELETE)), Ok((0, alloc::vec![1])), "anybody may");
        assert_eq!(mailbox.get(&lookup(9, 0, 0)), Err(PvmError::NotFound));
        assert_eq!(mailbox.get(&lookup(9, 0, FIRST_THERE_IS)), Ok((1, alloc::vec![2])));
        assert_eq!(mailbox.delete(&lookup(9, 2, 0)), Ok(2));
    }

    #[test]
    fn what_stays_is_nobodys() {
        let mut mailbox = Mailbox::default();
        assert_eq!(mailbox.put(lookup(1, -1, PERSISTENT), Vec::new()), Ok(0));
        mailbox.tidy(Tid(1));
        assert_eq!(mailbox.get(&lookup(1, 0, 0)), Ok((0, Vec::new())));
        assert_eq!(mailbox.delete(&lookup(1, 0, 0)), Err(PvmError::Denied));
    }
}
