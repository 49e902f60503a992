//! Numbers out of arbitrary octets.

/// Takes numbers off the front; zeros when there is nothing left.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn octet(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from(self.octet()) << 8 | u16::from(self.octet())
    }
}
