//! The shipped programs, by name and parameters.

use crate::cast::{CAST_BYTE, CastParams, cast};
use crate::comm::Comm;
use crate::echo::{ANSWERED_BYTE, CHECKED_BYTE, EchoParams, MADE_BYTE, echo};
use crate::jacobi::{JacobiParams, STENCIL_POINT, jacobi};
use crate::md::{ATOM_PAIR, MdParams, md};
use crate::mm::{MULTIPLY_ADD, MmParams, mm};
use crate::netpipe::{Method, NetpipeParams, netpipe};
use crate::outcome::{Outcome, ProgramError};
use crate::pde::{PdeParams, SOR_POINT, pde};
use crate::pde1::{Pde1Params, RELAX_POINT, pde1};
use crate::pde2::{Pde2Params, SMOOTH_POINT, TRANSFER_POINT, pde2};
use crate::reference::Reference;
use crate::ring::{ADD, RingParams, ring};
use crate::stream::{StreamParams, stream};

/// A parameter of a program: a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The least that is allowed.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// What it is when it is not given; none: it must be.
    pub default: Option<u64>,
}

const fn needed(name: &'static str, least: u64, most: u64) -> Parameter {
    Parameter { name, least, most, default: None }
}

const fn optional(name: &'static str, least: u64, most: u64, default: u64) -> Parameter {
    Parameter { name, least, most, default: Some(default) }
}

/// The longest message or vector: 4 GiB.
const LONGEST: u64 = 1 << 32;
/// The most repetitions.
const MOST: u64 = 1 << 40;
/// The longest side of a matrix or grid.
const SIDE: u64 = 1 << 14;
const DOWN: Parameter = optional("down", 0, 1 << 20, 0);
const ACROSS: Parameter = optional("across", 0, 1 << 20, 0);

const ECHO: &[Parameter] = &[needed("bytes", 0, LONGEST), needed("rounds", 1, MOST)];
const CAST: &[Parameter] = &[needed("bytes", 0, LONGEST), needed("rounds", 1, MOST)];
const STREAM: &[Parameter] = &[needed("bytes", 0, LONGEST), needed("messages", 1, MOST)];
const RING: &[Parameter] = &[needed("elements", 0, LONGEST / 8), needed("rounds", 1, MOST)];
const JACOBI: &[Parameter] =
    &[needed("rows", 1, 1 << 16), needed("columns", 1, 1 << 30), needed("iterations", 0, MOST)];
const MM: &[Parameter] =
    &[needed("n", 1, SIDE), optional("bits", 32, 64, 64), needed("rounds", 1, MOST), DOWN, ACROSS];
/// The most unit cells of a lattice in a direction.
const UNITS: u64 = 1 << 9;
const MD: &[Parameter] = &[
    optional("x", 5, UNITS, 10),
    optional("y", 5, UNITS, 10),
    optional("z", 5, UNITS, 10),
    needed("steps", 0, MOST),
    DOWN,
    ACROSS,
];
/// Slabs with large faces: a message of about 1 MB to each neighbour in each step.
const MD_COARSE: &[Parameter] = &[
    optional("x", 5, UNITS, 12),
    optional("y", 5, UNITS, 80),
    optional("z", 5, UNITS, 80),
    needed("steps", 0, MOST),
    DOWN,
    optional("across", 0, 1 << 20, 1),
];
const NETPIPE: &[Parameter] = &[
    optional("most", 1, LONGEST, 4 << 20),
    optional("perturbation", 0, 8, 3),
    optional("trial_us", 1, 10_000_000, Method::NETPIPE.trial_us),
    optional("trials", 1, 1 << 10, Method::NETPIPE.trials),
    optional("full", 0, 1, 0),
];
const PDE: &[Parameter] = &[needed("n", 2, SIDE), needed("accuracy", 1, 15), DOWN, ACROSS];
const PDE1: &[Parameter] =
    &[needed("n", 1, 1 << 9), needed("accuracy", 1, 12), optional("check", 1, 1 << 20, 10), DOWN, ACROSS];
const PDE2: &[Parameter] = &[needed("n", 1, SIDE), needed("accuracy", 1, 12), DOWN, ACROSS];

/// A shipped program with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ping-pong between ranks 0 and 1.
    Echo(EchoParams),
    /// One way from rank 0 to rank 1.
    Stream(StreamParams),
    /// From rank 0 to all others, and back.
    Cast(CastParams),
    /// Ring allreduce.
    Ring(RingParams),
    /// The heat equation on a line or a square.
    Jacobi(JacobiParams),
    /// Matrix multiplication on a mesh.
    Mm(MmParams),
    /// Poisson's equation on a mesh.
    Pde(PdeParams),
    /// Poisson's equation on a cube, by red-black over-relaxation.
    Pde1(Pde1Params),
    /// Poisson's equation on a square, by multigrid.
    Pde2(Pde2Params),
    /// Molecular dynamics on a mesh.
    Md(MdParams),
    /// The same, coarse-grained: other defaults.
    MdCoarse(MdParams),
    /// NetPIPE: the time of a message over a schedule of sizes.
    Netpipe(NetpipeParams),
}

impl Program {
    /// The programs' names.
    pub const NAMES: [&str; 12] = [
        "echo",
        "stream",
        "cast",
        "ring",
        "jacobi",
        "mm",
        "pde",
        "pde1",
        "pde2",
        "md",
        "md-coarse",
        "netpipe",
    ];

    /// The parameters of the program of this name; none: there is no such program.
    #[must_use]
    pub fn parameters(name: &str) -> Option<&'static [Parameter]> {
        Some(match name {
            "echo" => ECHO,
            "stream" => STREAM,
            "cast" => CAST,
            "ring" => RING,
            "jacobi" => JACOBI,
            "mm" => MM,
            "pde" => PDE,
            "pde1" => PDE1,
            "pde2" => PDE2,
            "md" => MD,
            "md-coarse" => MD_COARSE,
            "netpipe" => NETPIPE,
            _ => return None,
        })
    }

    /// The program of a name with the values of its parameters, in the order of [`Program::parameters`].
    ///
    /// # Panics
    /// With another number of values than the program has parameters.
    #[must_use]
    pub fn new(name: &str, values: &[u64]) -> Option<Self> {
        assert_eq!(values.len(), Self::parameters(name)?.len(), "a value for each parameter of {name}");
        let dynamics = || MdParams {
            x: values[0],
            y: values[1],
            z: values[2],
            steps: values[3],
            down: values[4],
            across: values[5],
        };
        Some(match name {
            "echo" => Self::Echo(EchoParams { bytes: values[0], rounds: values[1] }),
            "stream" => Self::Stream(StreamParams { bytes: values[0], messages: values[1] }),
            "cast" => Self::Cast(CastParams { bytes: values[0], rounds: values[1] }),
            "ring" => Self::Ring(RingParams { elements: values[0], rounds: values[1] }),
            "jacobi" => {
                Self::Jacobi(JacobiParams { rows: values[0], columns: values[1], iterations: values[2] })
            }
            "mm" => Self::Mm(MmParams {
                n: values[0],
                bits: values[1],
                rounds: values[2],
                down: values[3],
                across: values[4],
            }),
            "pde" => {
                Self::Pde(PdeParams { n: values[0], accuracy: values[1], down: values[2], across: values[3] })
            }
            "pde1" => Self::Pde1(Pde1Params {
                n: values[0],
                accuracy: values[1],
                check: values[2],
                down: values[3],
                across: values[4],
            }),
            "pde2" => Self::Pde2(Pde2Params {
                n: values[0],
                accuracy: values[1],
                down: values[2],
                across: values[3],
            }),
            "md" => Self::Md(dynamics()),
            "md-coarse" => Self::MdCoarse(dynamics()),
            "netpipe" => Self::Netpipe(NetpipeParams {
                most: values[0],
                perturbation: values[1],
                method: Method { trial_us: values[2], trials: values[3], full: values[4] == 1 },
            }),
            _ => return None,
        })
    }

    /// The name used in specifications.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Stream(_) => "stream",
            Self::Cast(_) => "cast",
            Self::Ring(_) => "ring",
            Self::Jacobi(_) => "jacobi",
            Self::Mm(_) => "mm",
            Self::Pde(_) => "pde",
            Self::Pde1(_) => "pde1",
            Self::Pde2(_) => "pde2",
            Self::Md(_) => "md",
            Self::MdCoarse(_) => "md-coarse",
            Self::Netpipe(_) => "netpipe",
        }
    }

    /// The kinds of work that it does and that must have a price in a simulated world.
    #[must_use]
    pub const fn work(&self) -> &'static [&'static str] {
        match self {
            Self::Echo(_) | Self::Stream(_) | Self::Cast(_) | Self::Netpipe(_) => &[],
            Self::Ring(_) => &[ADD],
            Self::Jacobi(_) => &[STENCIL_POINT],
            Self::Mm(_) => &[MULTIPLY_ADD],
            Self::Pde(_) => &[SOR_POINT],
            Self::Pde1(_) => &[RELAX_POINT],
            Self::Pde2(_) => &[SMOOTH_POINT, TRANSFER_POINT],
            Self::Md(_) | Self::MdCoarse(_) => &[ATOM_PAIR],
        }
    }

    /// The kinds that are free unless they are given a price.
    #[must_use]
    pub const fn free_work(&self) -> &'static [&'static str] {
        match self {
            Self::Echo(_) => &[MADE_BYTE, ANSWERED_BYTE, CHECKED_BYTE],
            Self::Stream(_) => &[MADE_BYTE, CHECKED_BYTE],
            Self::Cast(_) => &[CAST_BYTE],
            _ => &[],
        }
    }

    /// Runs this rank's part; ranks of one run that share a process share the `reference` that every one of
    /// them holds its result against, where the program is one that does.
    ///
    /// # Errors
    /// Those of the program.
    pub async fn run<C: Comm>(&self, comm: &mut C, reference: &Reference) -> Result<Outcome, ProgramError> {
        match self {
            Self::Echo(params) => echo(comm, params).await,
            Self::Stream(params) => stream(comm, params).await,
            Self::Cast(params) => cast(comm, params).await,
            Self::Ring(params) => ring(comm, params, reference).await,
            Self::Jacobi(params) => jacobi(comm, params).await,
            Self::Mm(params) => mm(comm, params).await,
            Self::Pde(params) => pde(comm, params).await,
            Self::Pde1(params) => pde1(comm, params).await,
            Self::Pde2(params) => pde2(comm, params).await,
            Self::Md(params) | Self::MdCoarse(params) => md(comm, params).await,
            Self::Netpipe(params) => netpipe(comm, params).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_made_of_its_parameters() {
        for name in Program::NAMES {
            let values = Program::parameters(name).expect("has parameters");
            let values = values.iter().map(|one| one.default.unwrap_or(one.least)).collect::<Vec<_>>();
            assert_eq!(Program::new(name, &values).expect("is made").name(), name);
        }
        assert_eq!(Program::parameters("sort"), None);
        assert_eq!(Program::new("sort", &[]), None);
    }
}
