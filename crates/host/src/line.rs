//! One connection of a mesh: frames in and out, each as far as it goes without waiting.

use wiretwin_prog::{Outgoing, Tag};

use crate::stream::{Failure, Stream};

/// Bytes before the payload.
pub(crate) const HEADER: usize = 16;
/// Marks a frame: a cheap check that both ends are in step.
const MARK: u32 = u32::from_le_bytes(*b"wtm1");
/// The longest payload: what a length may be in a frame that is not nonsense.
const LONGEST: u64 = 1 << 40;
/// Bytes read ahead, and the beginning of a frame that is sent in one piece.
const PIECE: usize = 4096;

/// Where the payload of a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Into the buffer of this receive of the call that is under way.
    Receive(usize),
    /// Into the store.
    Store(usize),
    /// Thrown away.
    Nowhere,
}

/// Whoever takes in the frames of a line.
pub(crate) trait Sink {
    /// A frame begins: where does its payload go?
    fn begin(&mut self, tag: Tag, length: usize) -> Place;
    /// Room for the payload from byte `at` on; empty if what follows is thrown away.
    fn room(&mut self, place: Place, at: usize) -> &mut [u8];
    /// The whole frame has come.
    fn end(&mut self, place: Place, tag: Tag, length: usize);
}

#[derive(Debug)]
struct Body {
    place: Place,
    tag: Tag,
    length: usize,
    filled: usize,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line<S> {
    stream: S,
    /// What has been read and not been looked at: `input[start..end]`.
    input: Box<[u8; PIECE]>,
    start: usize,
    end: usize,
    body: Option<Body>,
    /// The beginning of the frame that is being sent.
    head: Vec<u8>,
    /// Which send of the call under way is being sent.
    sending: Option<usize>,
    /// A frame was broken off: nothing can follow it.
    torn: bool,
    /// The peer has gone, though what it sent may still be there.
    closing: bool,
    /// The peer has gone and nothing more will come.
    ended: bool,
}

impl<S: Stream> Line<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            input: Box::new([0; PIECE]),
            start: 0,
            end: 0,
            body: None,
            head: Vec::with_capacity(PIECE),
            sending: None,
            torn: false,
            closing: false,
            ended: false,
        }
    }

    pub const fn stream(&self) -> &S {
        &self.stream
    }

    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether a frame is half here.
    pub const fn is_busy(&self) -> bool {
        self.body.is_some() || self.start < self.end
    }

    /// Asks the stream whether its peer has gone.
    pub fn notice_end(&mut self) {
        self.closing = self.closing || self.stream.closed();
    }

    /// The call under way has failed: its buffers are no longer there.
    pub fn abandon(&mut self) {
        if let Some(body) = &mut self.body
            && matches!(body.place, Place::Receive(_))
        {
            body.place = Place::Nowhere;
        }
        self.torn |= self.sending.take().is_some();
    }

    /// Sends as much as goes of the frame of `send`, the `number`th of the call, of which `sent`
    /// bytes are sent. Does nothing while an earlier frame to the same peer is not through.
    pub fn send(&mut self, number: usize, send: &Outgoing<'_>, sent: &mut usize) -> Result<(), Failure> {
        if self.sending.is_some_and(|other| other != number) {
            return Ok(());
        }
        if self.torn {
            return Err(Failure::Refused("an earlier message to this rank was broken off".into()));
        }
        if self.ended {
            return Err(Failure::PeerGone);
        }
        let message = send.message;
        if self.sending.is_none() {
            self.sending = Some(number);
            self.head.clear();
            self.head.extend_from_slice(&send.tag.0.to_le_bytes());
            self.head.extend_from_slice(&MARK.to_le_bytes());
            self.head.extend_from_slice(&(message.len() as u64).to_le_bytes());
            self.head.extend_from_slice(&message[..message.len().min(PIECE - HEADER)]);
        }
        while *sent < HEADER + message.len() {
            let rest = if *sent < self.head.len() { &self.head[*sent..] } else { &message[*sent - HEADER..] };
            match self.stream.try_send(rest) {
                Ok(Some(count)) => *sent += count,
                Ok(None) => return Ok(()),
                Err(failure) => {
                    self.ended |= failure == Failure::PeerGone;
                    return Err(failure);
                }
            }
        }
        self.sending = None;
        Ok(())
    }

    /// Takes in what has come, up to the end of a frame; whether anything has.
    pub fn receive(&mut self, sink: &mut impl Sink) -> Result<bool, Failure> {
        let mut moved = false;
        while self.body.is_none() {
            if self.end - self.start >= HEADER {
                self.body = Some(self.begin(sink)?);
            } else if self.read_ahead()? {
                moved = true;
            } else {
                return Ok(moved);
            }
        }
        while let Some(body) = &mut self.body {
            let left = body.length - body.filled;
            if left == 0 {
                sink.end(body.place, body.tag, body.length);
                self.body = None;
                return Ok(true);
            }
            let ahead = self.end - self.start;
            let room = sink.room(body.place, body.filled);
            if ahead > 0 {
                let count = ahead.min(left);
                let kept = count.min(room.len());
                room[..kept].copy_from_slice(&self.input[self.start..self.start + kept]);
                self.start += count;
                body.filled += count;
                moved = true;
                continue;
            }
            if room.is_empty() {
                if !self.read_ahead()? {
                    return Ok(moved);
                }
                moved = true;
                continue;
            }
            let length = room.len().min(left);
            match self.stream.try_recv(&mut room[..length]) {
                Ok(Some(count)) => {
                    body.filled += count;
                    moved = true;
                }
                Ok(None) => {
                    self.ended |= self.closing;
                    return Ok(moved);
                }
                Err(Failure::PeerGone) => {
                    self.ended = true;
                    return Ok(moved);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(moved)
    }

    /// Reads what there is into the input; whether there was anything.
    fn read_ahead(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.stream.try_recv(&mut self.input[self.end..]) {
            Ok(Some(count)) => {
                self.end += count;
                Ok(true)
            }
            Ok(None) => {
                self.ended |= self.closing;
                Ok(false)
            }
            Err(Failure::PeerGone) => {
                self.ended = true;
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    fn begin(&mut self, sink: &mut impl Sink) -> Result<Body, Failure> {
        let header = &self.input[self.start..self.start + HEADER];
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = u64::from(word(8)) | u64::from(word(12)) << 32;
        if word(4) != MARK || length > LONGEST {
            return Err(Failure::Refused("the ranks are out of step: not a frame".into()));
        }
        let tag = Tag(word(0));
        let length = usize::try_from(length)
            .map_err(|_| Failure::Refused(format!("a message of {length} bytes does not fit in memory")))?;
        self.start += HEADER;
        Ok(Body { place: sink.begin(tag, length), tag, length, filled: 0 })
    }
}
