//! Versioned results and traces; foreign formats.

pub mod capture;
pub mod chrome;
pub mod timeline;
