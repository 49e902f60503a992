//! Where the frames of a network lie while they are in it: queues and events have their places alone.

use std::ops::{Index, IndexMut};

use wiretwin_units::Bytes;

use super::Stamps;

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<P> {
    pub(super) to: u32,
    pub(super) octets: Bytes,
    pub(super) payload: P,
    pub(super) stamps: Stamps,
}

/// Which of the network's frames.
pub(super) type Place = u32;

/// The frames that are somewhere in the network.
#[derive(Debug)]
pub(super) struct Frames<P> {
    list: Vec<Frame<P>>,
    free: Vec<Place>,
}

impl<P: Copy> Frames<P> {
    pub(super) const fn new() -> Self {
        Self { list: Vec::new(), free: Vec::new() }
    }

    pub(super) fn put(&mut self, frame: Frame<P>) -> Place {
        if let Some(place) = self.free.pop() {
            self.list[place as usize] = frame;
            return place;
        }
        self.list.push(frame);
        self.list.len() as Place - 1
    }

    /// Where it was is free.
    pub(super) fn take(&mut self, place: Place) -> &Frame<P> {
        self.free.push(place);
        &self.list[place as usize]
    }
}

impl<P> Index<Place> for Frames<P> {
    type Output = Frame<P>;

    fn index(&self, place: Place) -> &Frame<P> {
        &self.list[place as usize]
    }
}

impl<P> IndexMut<Place> for Frames<P> {
    fn index_mut(&mut self, place: Place) -> &mut Frame<P> {
        &mut self.list[place as usize]
    }
}
