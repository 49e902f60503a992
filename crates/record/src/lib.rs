//! Versioned results and traces; foreign formats.
