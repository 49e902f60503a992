//! The file of one rank: a header of 24 bytes, then records of 48 in the order in which its calls ended.

use std::path::{Path, PathBuf};

use crate::script::Rejected;

const MARK: &[u8; 8] = b"wttrace1";
const HEADER_BYTES: usize = 24;
/// The length of a record.
pub(super) const RECORD_BYTES: usize = 48;

/// What a record is of, as the recorder numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Isend,
    Recv,
    Irecv,
    /// A request that the wait behind it has completed.
    Done,
    Wait,
    /// A message that was found.
    Probe,
    Collective,
    /// The bytes for one rank of the collective behind it.
    Count,
    /// A rank of a communicator that is used for the first time.
    Member,
    /// A function that is not recorded; its name takes the place of the last four numbers.
    Unknown,
    End,
    /// A collective that the rank has begun; it is complete when a [`Kind::Done`] says so of [`TOGETHER`] and its
    /// number among those of the rank, from 0.
    Icollective,
}

/// In the number of a request: it is a collective's.
pub(super) const TOGETHER: u64 = 1 << 63;

impl Kind {
    const ALL: [Self; 13] = [
        Self::Send,
        Self::Isend,
        Self::Recv,
        Self::Irecv,
        Self::Done,
        Self::Wait,
        Self::Probe,
        Self::Collective,
        Self::Count,
        Self::Member,
        Self::Unknown,
        Self::End,
        Self::Icollective,
    ];
}

/// One record; what its numbers mean hangs on its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: Kind,
    pub(super) peer: i32,
    pub(super) tag: i32,
    pub(super) context: i32,
    pub(super) bytes: u64,
    pub(super) request: u64,
    /// Since the call before.
    pub(super) compute_ns: u64,
    pub(super) inside_ns: u64,
    raw: &'a [u8],
}

impl<'a> Record<'a> {
    fn read(raw: &'a [u8]) -> Option<Self> {
        let int = |at: usize| Some(i32::from_le_bytes(raw.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(raw.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            kind: *usize::try_from(int(0)?).ok()?.checked_sub(1).and_then(|nth| Kind::ALL.get(nth))?,
            peer: int(4)?,
            tag: int(8)?,
            context: int(12)?,
            bytes: long(16)?,
            request: long(24)?,
            compute_ns: long(32)?,
            inside_ns: long(40)?,
            raw,
        })
    }

    /// The name of a function that is not recorded.
    pub(super) fn name(&self) -> String {
        let text = self.raw[16..].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The beginning of a whole file of one of `ranks` ranks.
pub(super) fn header(rank: u32, ranks: u32) -> Vec<u8> {
    let mut raw = MARK.to_vec();
    raw.extend([rank, ranks, 0, 0].iter().flat_map(|one| one.to_le_bytes()));
    raw
}

/// Appends a record: peer, tag and context; bytes and request; the time before it and in it, in ns.
pub(super) fn write(
    raw: &mut Vec<u8>,
    kind: Kind,
    names: [i32; 3],
    amounts: [u64; 2],
    (before, inside): (u64, u64),
) {
    raw.extend((kind as u32 + 1).to_le_bytes());
    raw.extend(names.iter().flat_map(|one| one.to_le_bytes()));
    raw.extend(amounts.iter().chain(&[before, inside]).flat_map(|one| one.to_le_bytes()));
}

/// Where the files of ranks come from.
pub(super) type Load<'a> = dyn Fn(&Path) -> std::io::Result<Vec<u8>> + 'a;

/// The file of a rank, read and whole.
pub(super) struct File {
    pub(super) path: PathBuf,
    raw: Vec<u8>,
}

impl File {
    /// Reads the file of one of `ranks` ranks by `load`, and checks that it is whole.
    pub(super) fn read(folder: &Path, load: &Load<'_>, rank: u32, ranks: u32) -> Result<Self, Rejected> {
        let path = folder.join(rank.to_string());
        let raw = load(&path).map_err(|error| Rejected::whole(&path, reason(&error)))?;
        let number = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().unwrap_or_default());
        if raw.len() < HEADER_BYTES || &raw[..8] != MARK {
            return Err(Rejected::whole(&path, "is not what a rank recorded"));
        }
        let (own, all) = (number(8), number(12));
        if (own, all) != (rank, ranks) {
            return Err(Rejected::whole(&path, format!("is of rank {own} of {all}")));
        }
        if raw[16..HEADER_BYTES].iter().any(|byte| *byte != 0) {
            let cut = Rejected::whole(&path, "was cut off at its longest");
            return Err(cut.allowing("a larger --most when recording"));
        }
        if !(raw.len() - HEADER_BYTES).is_multiple_of(RECORD_BYTES) {
            return Err(Rejected::whole(&path, "ends within a record"));
        }
        let last = raw[HEADER_BYTES..].chunks_exact(RECORD_BYTES).next_back().and_then(Record::read);
        if last.is_none_or(|last| last.kind != Kind::End) {
            return Err(Rejected::whole(&path, "has no end: the rank did not call MPI_Finalize"));
        }
        Ok(Self { path, raw })
    }

    /// Its records, each with its number from 0, or why one is none.
    pub(super) fn records(&self) -> impl Iterator<Item = Result<(usize, Record<'_>), Rejected>> {
        self.raw[HEADER_BYTES..].chunks_exact(RECORD_BYTES).enumerate().map(|(nth, raw)| {
            Record::read(raw).map(|record| (nth, record)).ok_or_else(|| {
                let kind = u32::from_le_bytes(raw[..4].try_into().unwrap_or_default());
                self.wrong(nth, format!("kind {kind}"), format!("1 to {}", Kind::ALL.len()))
            })
        })
    }

    /// What is wrong with one of its records.
    pub(super) fn wrong(&self, nth: usize, value: String, allowed: impl Into<String>) -> Rejected {
        Rejected::at(&self.path, format!("record {nth}"), value, allowed)
    }
}

/// What the system says, without the number of the error.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
