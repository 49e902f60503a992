//! Fragments as content of a stream: heads as octets, what programs send as handles.

use alloc::vec;

use wiretwin_units::Bytes;
use wiretwin_wire::DecodeError;
use wiretwin_wire::pvm::{self as wire, HEADER_OCTETS, MESSAGE_OCTETS};

use crate::library::{Content, Front};
use crate::pvm::body::Piece;
use crate::pvm::message::heads;
use crate::pvm::{Body, Fragment, Head, Tid};

/// A connection that fragments come over.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) peer: Tid,
    pub(super) inbox: Content,
    /// The header that was read.
    header: Option<wire::Fragment>,
}

impl Line {
    pub(super) const fn new(peer: Tid) -> Self {
        Self { peer, inbox: Content::new(), header: None }
    }

    /// Whether the daemon is at its other end.
    pub(super) fn is_daemon(&self) -> bool {
        self.peer == Tid::MY_DAEMON
    }

    /// Whether a header was read, and what it announced was not.
    pub(super) const fn is_announced(&self) -> bool {
        self.header.is_some()
    }

    /// What the next read asks for: the rest of a header, or of what it announced.
    pub(super) fn wanted(&self) -> Bytes {
        let whole = self.header.map_or(HEADER_OCTETS as u64, |header| header.length.into());
        Bytes::new(whole) - self.inbox.length()
    }

    /// The next fragment, if all of it is here.
    pub(super) fn take(&mut self) -> Result<Option<Fragment<Piece>>, DecodeError> {
        let header = match self.header {
            Some(header) => header,
            None => {
                let mut octets = [0; HEADER_OCTETS];
                if !self.inbox.take_octets(&mut octets) {
                    return Ok(None);
                }
                let (header, _) = wire::Fragment::parse(&octets)?;
                self.header = Some(header);
                header
            }
        };
        if self.inbox.length() < Bytes::new(header.length.into()) {
            return Ok(None);
        }
        self.header = None;
        let mut length = Bytes::new(header.length.into());
        let mut first = None;
        if header.first {
            let mut octets = [0; MESSAGE_OCTETS];
            self.inbox.take_octets(&mut octets);
            let (message, _) = wire::Message::parse(&octets)?;
            first = Some(Head::of(&message));
            length -= Bytes::new(MESSAGE_OCTETS as u64);
        }
        let body = piece(&mut self.inbox, length);
        let wire::Fragment { destination, source, last, .. } = header;
        Ok(Some(Fragment { to: destination, from: source, first, last, body }))
    }
}

/// What is in front, of this length: a range of a message and what fills, or octets.
pub(super) fn piece(inbox: &mut Content, length: Bytes) -> Piece {
    if let Front::Body(range) = inbox.front()
        && range.length <= length
        && let Some(range) = inbox.take_body(length)
    {
        let mut fill = vec![0; (length - range.length).get() as usize];
        inbox.take_octets(&mut fill);
        return Piece::Message { range, fill: fill.len() as u8 };
    }
    let mut octets = vec![0; length.get() as usize];
    inbox.take_octets(&mut octets);
    Piece::from_octets(octets)
}

/// A piece behind what is in the content.
pub(super) fn push(content: &mut Content, piece: &Piece) {
    match piece {
        Piece::Octets(octets) => content.push_octets(octets.as_slice()),
        Piece::Message { range, fill } => {
            content.push_body(*range);
            content.push_zeros((*fill).into());
        }
    }
}

/// A fragment as content, in the memory of one that is empty.
pub(super) fn content(fragment: &Fragment<Piece>, mut content: Content) -> Content {
    content.push_octets(&heads(fragment));
    push(&mut content, &fragment.body);
    content
}
