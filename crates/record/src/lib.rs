//! Versioned results and traces; foreign formats.

pub mod timeline;
