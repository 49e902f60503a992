//! The probe process: one live layer behind the probe protocol.
