//! Why there is no such network.

use std::fmt;

use wiretwin_proto::abr::EricaError;
use wiretwin_proto::pcaal;
use wiretwin_units::{BitRate, Span};

use super::contract::ContractError;

/// Why there is no such network: which part, its value, what is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// None, or too many.
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The most.
        most: usize,
    },
    /// A port without a buffer.
    Buffer {
        /// Which.
        port: usize,
    },
    /// Explicit rates that cannot be.
    Erica {
        /// Of which port.
        port: usize,
        /// What is wrong.
        error: EricaError,
    },
    /// A contract that cannot be.
    Contract {
        /// Of which circuit.
        circuit: String,
        /// What is wrong.
        error: ContractError,
    },
    /// A circuit over no port, or too many.
    Path {
        /// Which.
        circuit: String,
        /// How many.
        count: usize,
    },
    /// A circuit over a port that is not there, or over one twice.
    Port {
        /// Which circuit.
        circuit: String,
        /// The port.
        port: usize,
        /// How many there are.
        ports: usize,
    },
    /// What is guaranteed does not fit a line.
    Admission {
        /// Which circuit is refused.
        circuit: String,
        /// At which port.
        port: usize,
        /// What it asks for, in bit/s.
        asked: f64,
        /// What is left, in bit/s.
        left: f64,
        /// Of this line.
        line: BitRate,
    },
    /// A circuit of available rate over a port that tells no rates.
    NoRates {
        /// Which.
        circuit: String,
        /// The port.
        port: usize,
    },
    /// A source without end on a circuit whose rate nobody tells.
    Greedy {
        /// Which.
        circuit: String,
    },
    /// Bursts far shorter than the time of a cell.
    Burst {
        /// Which circuit.
        circuit: String,
        /// The mean time on.
        on: Span,
        /// The time of a cell at the peak rate.
        cell: Span,
    },
    /// The adaptation layer of a task.
    Task {
        /// Which.
        task: String,
        /// What is wrong.
        error: pcaal::ConfigError,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { what, count, most } => write!(f, "{count} {what}: allowed are 1 to {most}"),
            Self::Buffer { port } => write!(f, "port {port}: a buffer of 0 cells: allowed is 1 or more"),
            Self::Erica { port, error } => write!(f, "port {port}: {error}"),
            Self::Contract { circuit, error } => write!(f, "circuit {circuit}: {error}"),
            Self::Path { circuit, count } => {
                write!(f, "circuit {circuit} crosses {count} ports: allowed are 1 to 255")
            }
            Self::Port { circuit, port, ports } => {
                write!(f, "circuit {circuit} crosses port {port}: there are {ports}, each at most once")
            }
            Self::Admission { circuit, port, asked, left, line } => write!(
                f,
                "circuit {circuit} is not admitted: it asks for {asked} bit/s at port {port}, where {left} \
                 bit/s of {line} are left"
            ),
            Self::NoRates { circuit, port } => {
                write!(f, "circuit {circuit} is of available rate: port {port} tells no rates")
            }
            Self::Greedy { circuit } => {
                write!(f, "circuit {circuit} has a source without end: allowed is one on a circuit of abr")
            }
            Self::Burst { circuit, on, cell } => write!(
                f,
                "circuit {circuit} is on for {on} on average: allowed is at least a thousandth of the time of \
                 a cell, {cell}"
            ),
            Self::Task { task, error } => write!(f, "task {task}: {error}"),
        }
    }
}

impl std::error::Error for PlanError {}
