//! The shipped programs over message layers in a local network compute what one processor computes.

mod lan_of;

use std::collections::BTreeMap;

use lan_of::{PLAIN, Want, lan};
use wiretwin_net::SimComm;
use wiretwin_net::local::run;
use wiretwin_prog::{Program, ProgramError, Reference};

const STACKS: [&str; 4] =
    ["framed/tcp/aal5", "pvm-advise/tcp/aal5", "pvm-normal/udp/aal5", "pvm-normal/udp/ethernet"];

/// Runs a program on so many hosts and returns whether each rank has found its part right.
fn verified(stack: &'static str, hosts: usize, name: &str, values: &[u64]) -> Vec<bool> {
    let (adapter, switch) =
        if stack.ends_with("ethernet") { ("frames", false) } else { ("series-200", true) };
    let want = Want { stack, adapter, switch, hosts, ..PLAIN };
    let program = Program::new(name, values).expect("its values");
    let reference = Reference::default();
    let whole =
        async move |comm: &mut SimComm| -> Result<_, ProgramError> { program.run(comm, &reference).await };
    let (_, outcomes) = run(lan(&want, 1, false), BTreeMap::new(), whole).expect("a run that ends");
    outcomes.iter().map(|outcome| outcome.verified).collect()
}

#[test]
fn matrices_and_grids_on_a_mesh_are_those_of_one_processor() {
    for stack in STACKS {
        // 40 by 40 doubles, and 48 by 48 points to 10^-2, on two by two.
        assert_eq!(verified(stack, 4, "mm", &[40, 64, 1, 2, 2]), [true; 4], "{stack}");
        assert_eq!(verified(stack, 4, "pde", &[48, 2, 2, 2]), [true; 4], "{stack}");
        assert_eq!(verified(stack, 2, "pde", &[16, 3, 1, 2]), [true; 2], "{stack}");
    }
}
