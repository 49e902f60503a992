//! Versioned results and traces; foreign formats.

pub mod chrome;
pub mod timeline;
