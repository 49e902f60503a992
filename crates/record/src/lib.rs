//! Versioned results and traces; foreign formats.

pub mod capture;
pub mod chrome;
pub mod goal;
pub mod recording;
pub mod script;
pub mod timeline;
