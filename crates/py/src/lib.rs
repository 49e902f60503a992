//! Python bindings: conversion and nothing else.
//!
//! One submodule-free extension, `wiretwin._core`; its typed stub is
//! `python/wiretwin/_core.pyi`.

use pyo3::prelude::*;

mod background;
mod crossing;
mod direct;
mod fabric;
mod lan;
mod network;
mod operation;
mod probe;
mod programs;
mod rank_trace;
mod reader;
mod recording;
mod reduction;
mod rpc;
mod schedule;
mod steps;
mod wire;
mod world;

/// The compiled core of wiretwin.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    crossing::register(module)?;
    direct::register(module)?;
    fabric::register(module)?;
    lan::register(module)?;
    network::register(module)?;
    probe::register(module)?;
    programs::register(module)?;
    reader::register(module)?;
    recording::register(module)?;
    reduction::register(module)?;
    rpc::register(module)?;
    schedule::register(module)?;
    wire::register(module)?;
    world::register(module)?;
    Ok(())
}
