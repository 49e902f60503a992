//! AAL type 3/4: a common part convergence sublayer and a segmentation sublayer of its own.
//!
//! I.363.3 (1996). A message becomes a [`cpcs`] PDU, which is cut into [`sar`] PDUs of one cell's
//! payload each. Left out: the procedures, which stand with the machine, in the room of protocols.

pub mod cpcs;
pub mod sar;
