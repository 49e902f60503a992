//! The shipped programs: right results, exact times, and errors with names.

use super::*;
use crate::model::Model;
use wiretwin_prog::jacobi::JacobiParams;
use wiretwin_prog::md::{self, MdParams};
use wiretwin_prog::mm::MmParams;
use wiretwin_prog::pde::PdeParams;
use wiretwin_prog::ring::RingParams;
use wiretwin_prog::{jacobi as jacobi_program, mm, pde, ring as ring_program};

fn flat(ps: u64) -> String {
    format!(r#"[{{"from_bytes": 0, "base_ps": {ps}, "per_byte_fs": 0}}]"#)
}

pub(crate) fn model(ranks: u32, cores: u32) -> String {
    let placement = vec!["0"; ranks as usize].join(",");
    format!(
        r#"{{"nodes": [{{"cores": {cores}, "idle": "sleep", "quantum_ps": 4000}}], "placement": [{placement}],
            "intra": {{"call_ps": 10, "overhead_send": {}, "overhead_recv": {}, "latency": {}, "gap": {},
                       "rendezvous_from_bytes": 1000}}}}"#,
        flat(110),
        flat(60),
        flat(1000),
        flat(0)
    )
}

fn finished(name: &str, parameters: &str, ranks: u32, cores: u32) -> Finished {
    run_named(name, parameters, &model(ranks, cores), ranks, 1, false)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn verified(run: &Finished) -> bool {
    run.outcomes.iter().all(|outcome| outcome.verified)
}

#[test]
fn an_echo_takes_its_half_round_trips() {
    for bytes in [0, 8, 999, 1000, 5000] {
        let run = finished("echo", &format!(r#"{{"bytes": {bytes}, "rounds": 7}}"#), 3, 3);
        assert!(verified(&run));
        assert_eq!(run.outcomes[0].elapsed.as_ps(), 7 * 2 * 1170, "{bytes} bytes");
        assert_eq!(run.outcomes[2].elapsed.as_ps(), 0);
    }
}

#[test]
fn a_stream_is_as_fast_as_its_sender() {
    let run = finished("stream", r#"{"bytes": 8, "messages": 100}"#, 2, 2);
    assert!(verified(&run));
    // 100 sends of 110; the last takes 1060 more; then the answer.
    assert_eq!(run.outcomes[0].elapsed.as_ps(), 100 * 110 + 1060 + 1170);
}

#[test]
fn a_ring_sums_on_every_rank_whatever_their_number() {
    for ranks in [1, 2, 3, 4, 7] {
        for elements in [0, 1, 5, 400] {
            let parameters = format!(r#"{{"elements": {elements}, "rounds": 2, "costs_ps": {{"add": 3}}}}"#);
            let run = finished("ring", &parameters, ranks, ranks);
            assert!(verified(&run), "{ranks} ranks, {elements} elements");
            let sum = ring_program::sequential(&RingParams { elements, rounds: 2 }, ranks);
            assert_eq!(run.outcomes[0].digest, wiretwin_prog::digest_of(&sum));
            assert!(sum.len() as u64 == elements);
        }
    }
}

#[test]
fn the_ranks_of_a_ring_hold_their_results_against_one_reference() {
    let params = RingParams { elements: 5, rounds: 1 };
    for known in [true, false] {
        let reference = Reference::default();
        if !known {
            // Not what the sequential program has: a rank that computed it again would not see that.
            reference.digest(|| 1);
        }
        let shared = reference.clone();
        let world = World::new(Model::from_json(&model(3, 3), 3).unwrap(), 1, false);
        let body = async move |comm: &mut SimComm| ring_program::ring(comm, &params, &shared).await;
        let run = drive(Shared::new(Ranks::Costs(world), BTreeMap::new(), None), body)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(run.outcomes.iter().all(|outcome| outcome.verified == known));
        let sum = wiretwin_prog::digest_of(&ring_program::sequential(&params, 3));
        assert_eq!(reference.digest(|| unreachable!("a rank has asked")) == sum, known);
    }
}

#[test]
fn jacobi_equals_the_sequential_program_bit_for_bit() {
    for (rows, columns) in [(1, 40), (12, 9), (30, 31)] {
        for ranks in [1, 2, 3, 4, 6] {
            let parameters = format!(
                r#"{{"rows": {rows}, "columns": {columns}, "iterations": 25, "costs_ps": {{"stencil-point": 11}}}}"#
            );
            // With a core each, and sharing one.
            for cores in [ranks, 1] {
                let run = finished("jacobi", &parameters, ranks, cores);
                assert!(verified(&run), "{rows} x {columns} on {ranks} ranks");
                let points: u64 = rows * columns * 25 * 11;
                let compute: u64 = (0..ranks).map(|rank| run.world.totals(rank).unwrap()[0].as_ps()).sum();
                assert_eq!(compute, points, "every point is paid for");
            }
        }
    }
    let params = JacobiParams { rows: 12, columns: 9, iterations: 25 };
    let alone = jacobi_program::sequential(&params);
    assert!(alone.iter().all(|value| value.is_finite()));
    let later = jacobi_program::sequential(&JacobiParams { iterations: 26, ..params });
    assert_ne!(alone, later, "the iterations change the grid");
}

#[test]
fn a_product_equals_the_sequential_one_bit_for_bit_on_every_mesh() {
    let meshes = [(1, 0, 0), (2, 1, 2), (2, 2, 1), (4, 0, 0), (4, 1, 4), (6, 3, 2), (6, 2, 0), (9, 0, 3)];
    for bits in [64, 32] {
        for n in [9, 20] {
            let alone = mm::sequential(&MmParams { n, bits, rounds: 1, down: 0, across: 0 });
            let mut digests = Vec::new();
            for (ranks, down, across) in meshes {
                let parameters = format!(
                    r#"{{"n": {n}, "bits": {bits}, "rounds": 3, "down": {down}, "across": {across},
                        "costs_ps": {{"multiply-add": 7}}}}"#
                );
                let run = finished("mm", &parameters, ranks, 2);
                assert!(verified(&run), "{n}, {bits} bits, {ranks} ranks, {down} x {across}");
                let compute: u64 = (0..ranks).map(|rank| run.world.totals(rank).unwrap()[0].as_ps()).sum();
                assert_eq!(compute, 3 * 7 * n * n * n, "every product is paid for, once");
                digests.push(run.outcomes[0].digest);
            }
            assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:x?}");
            assert_eq!(alone.len() as u64, n * n * bits / 8);
        }
    }
}

#[test]
fn stripes_travel_along_rows_and_then_columns_and_blocks_to_the_master() {
    let parameters = r#"{"n": 16, "rounds": 2, "costs_ps": {"multiply-add": 0}}"#;
    let run = finished("mm", parameters, 4, 4);
    // Two rows pass a stripe of A, two columns one of B, three ranks send a block; twice.
    assert_eq!(run.world.counts().sent, 2 * (2 + 2 + 3));
}

#[test]
fn a_relaxation_equals_the_sequential_one_bit_for_bit_on_every_mesh() {
    let meshes = [(1, 0, 0), (2, 1, 2), (2, 2, 1), (4, 0, 0), (4, 4, 1), (6, 3, 2), (9, 3, 3)];
    for n in [8, 13, 32] {
        let mut digests = Vec::new();
        for (ranks, down, across) in meshes {
            if n < 2 * down.max(across) {
                continue;
            }
            let parameters = format!(
                r#"{{"n": {n}, "accuracy": 6, "down": {down}, "across": {across}, "costs_ps": {{"sor-point": 7}}}}"#
            );
            let run = finished("pde", &parameters, ranks, 2);
            assert!(verified(&run), "{n} x {n} on {ranks} ranks, {down} x {across}");
            digests.push(run.outcomes[0].digest);
        }
        assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:x?}");
        let params = PdeParams { n, accuracy: 6, down: 0, across: 0 };
        assert_eq!(digests[0], wiretwin_prog::digest_of(&pde::sequential(&params)));
    }
}

#[test]
fn atoms_on_any_mesh_move_as_alone() {
    let mut digests = Vec::new();
    for (ranks, down, across) in
        [(1, 0, 0), (2, 0, 0), (4, 0, 0), (4, 4, 1), (3, 1, 3), (6, 2, 3), (16, 4, 4)]
    {
        let parameters = format!(
            r#"{{"x": 12, "y": 12, "z": 5, "steps": 6, "down": {down}, "across": {across}, "costs_ps": {{"atom-pair": 7}}}}"#
        );
        let run = finished("md", &parameters, ranks, 2);
        assert!(verified(&run), "{ranks} ranks, {down} x {across}");
        digests.push(run.outcomes[0].digest);
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:x?}");
    let params = MdParams { x: 12, y: 12, z: 5, steps: 6, down: 0, across: 0 };
    let more = MdParams { steps: 7, ..params };
    assert_ne!(md::sequential(&params).digest, md::sequential(&more).digest);
}

#[test]
fn a_step_of_atoms_is_four_messages_in_each_direction_that_is_cut() {
    for (ranks, down, across, cut) in [(2, 2, 1, 1), (4, 2, 2, 2)] {
        let parameters = format!(
            r#"{{"x": 7, "y": 7, "z": 5, "steps": 3, "down": {down}, "across": {across}, "costs_ps": {{"atom-pair": 0}}}}"#
        );
        let run = finished("md", &parameters, ranks, ranks);
        // Steps and the start; at the end each rank tells rank 0.
        assert_eq!(run.world.counts().sent, u64::from(ranks) * 4 * 4 * cut + u64::from(ranks) - 1);
    }
}

#[test]
fn a_boundary_is_one_message_a_neighbour_and_one_for_a_black_corner() {
    let run = finished("pde", r#"{"n": 64, "accuracy": 6, "costs_ps": {"sor-point": 0}}"#, 4, 4);
    let iterations = 128;
    // Each rank to two neighbours, two diagonal partners with a black corner, three ranks at the end.
    assert_eq!(run.world.counts().sent, iterations * (8 + 2) + 3);
}

#[test]
fn a_cube_and_a_multigrid_equal_their_sequential_versions_on_every_mesh() {
    for (ranks, down, across) in [(1, 0, 0), (2, 2, 1), (3, 1, 3), (4, 2, 2), (6, 2, 3)] {
        let mesh = format!(r#""down": {down}, "across": {across}"#);
        for (name, parameters) in [
            (
                "pde1",
                format!(r#"{{"n": 9, "accuracy": 6, "check": 4, {mesh}, "costs_ps": {{"relax-point": 7}}}}"#),
            ),
            (
                "pde2",
                format!(
                    r#"{{"n": 15, "accuracy": 6, {mesh}, "costs_ps": {{"smooth-point": 7, "transfer-point": 3}}}}"#
                ),
            ),
        ] {
            let run = finished(name, &parameters, ranks, 2);
            assert!(verified(&run), "{name} on {ranks} ranks, {down} x {across}");
        }
    }
}

#[test]
fn a_flipped_byte_on_the_way_changes_the_result() {
    let cases = [
        ("echo", r#"{"bytes": 8, "rounds": 3, "fault": {"delivery": 1, "byte": 2, "flip": 4}}"#),
        ("stream", r#"{"bytes": 8, "messages": 3, "fault": {"delivery": 1, "byte": 7, "flip": 1}}"#),
        (
            "ring",
            r#"{"elements": 40, "rounds": 1, "costs_ps": {"add": 0}, "fault": {"delivery": 0, "byte": 6, "flip": 1}}"#,
        ),
        (
            "jacobi",
            r#"{"rows": 8, "columns": 8, "iterations": 5, "costs_ps": {"stencil-point": 0},
                "fault": {"delivery": 3, "byte": 6, "flip": 32}}"#,
        ),
        (
            "mm",
            r#"{"n": 8, "rounds": 2, "costs_ps": {"multiply-add": 0}, "fault": {"delivery": 0, "byte": 6, "flip": 1}}"#,
        ),
        (
            "pde",
            r#"{"n": 8, "accuracy": 3, "costs_ps": {"sor-point": 0}, "fault": {"delivery": 3, "byte": 6, "flip": 1}}"#,
        ),
        (
            "pde1",
            r#"{"n": 6, "accuracy": 4, "check": 3, "costs_ps": {"relax-point": 0}, "fault": {"delivery": 20, "byte": 6, "flip": 1}}"#,
        ),
        (
            "pde2",
            r#"{"n": 7, "accuracy": 4, "costs_ps": {"smooth-point": 0, "transfer-point": 0}, "fault": {"delivery": 20, "byte": 6, "flip": 1}}"#,
        ),
        (
            "md",
            r#"{"x": 6, "y": 5, "z": 5, "steps": 2, "down": 2, "costs_ps": {"atom-pair": 0}, "fault": {"delivery": 4, "byte": 6, "flip": 1}}"#,
        ),
    ];
    for (name, faulty) in cases {
        let start =
            faulty.find(", \"fault\"").or_else(|| faulty.find(",\n                \"fault\"")).unwrap();
        let sound = finished(name, &format!("{}}}", &faulty[..start]), 2, 2);
        let hurt = finished(name, faulty, 2, 2);
        assert!(verified(&sound), "{name}");
        assert!(!verified(&hurt), "{name} computes with what it receives");
        let digests = |run: &Finished| run.outcomes.iter().map(|outcome| outcome.digest).collect::<Vec<_>>();
        assert_ne!(digests(&sound), digests(&hurt), "{name}");
        assert_eq!(sound.world.digest(), hurt.world.digest(), "{name}: the same messages at the same times");
    }
}

#[test]
fn nodes_that_run_on_the_cores_of_one_compute_in_turns() {
    let layer = |model: &str| model[model.find("\"intra\": ").unwrap() + 9..model.len() - 1].to_string();
    let layer = layer(&model(2, 1));
    let elapsed = |cores_of: &str| {
        let node = |more: &str| format!(r#"{{"cores": 1, "idle": "sleep", "quantum_ps": 4000 {more}}}"#);
        let model = format!(
            r#"{{"nodes": [{}, {}], "placement": [0, 1], "intra": {layer}, "inter": {layer}}}"#,
            node(""),
            node(cores_of)
        );
        let parameters = r#"{"n": 8, "rounds": 1, "costs_ps": {"multiply-add": 10000}}"#;
        let run = run_named("mm", parameters, &model, 2, 1, false).unwrap_or_else(|error| panic!("{error}"));
        assert!(verified(&run));
        run.outcomes[0].elapsed.as_ps()
    };
    let half = 8 * 8 * 4 * 10_000;
    let (apart, together) = (elapsed(""), elapsed(", \"cores_of\": 0"));
    assert!((half..half + 10_000).contains(&apart), "{apart}");
    assert!((2 * half - 5_000..2 * half + 10_000).contains(&together), "{together}");
}

#[test]
fn a_rerun_is_the_same() {
    let parameters = r#"{"rows": 20, "columns": 20, "iterations": 10, "costs_ps": {"stencil-point": 700}}"#;
    let first = finished("jacobi", parameters, 6, 2);
    let again = finished("jacobi", parameters, 6, 2);
    assert_eq!(first.world.digest(), again.world.digest());
    assert_eq!(first.outcomes, again.outcomes);
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let text = |name: &str, parameters: &str, ranks| match run_named(
        name,
        parameters,
        &model(ranks, 1),
        ranks,
        1,
        false,
    ) {
        Ok(_) => panic!("{name} {parameters} ran"),
        Err(error) => error.to_string(),
    };
    let cases = [
        (
            "sort",
            "{}",
            2,
            "program is sort; allowed: echo, stream, cast, ring, jacobi, mm, pde, pde1, pde2, md, md-coarse, \
             netpipe",
        ),
        ("echo", "{\"bytes\": 4}", 2, "parameters.rounds is nothing"),
        ("echo", "{\"bytes\": -4, \"rounds\": 1}", 2, "parameters.bytes is -4; allowed: an integer from 0"),
        (
            "echo",
            "{\"bytes\": 4, \"rounds\": 1, \"speed\": 3}",
            2,
            "speed is 3; allowed: no such key; known are bytes",
        ),
        ("echo", "{\"bytes\": 4, \"rounds\": 1}", 1, "rank 0: ranks is 1; allowed: 2 or more"),
        ("ring", "{\"elements\": 4, \"rounds\": 1}", 2, "costs_ps.add is nothing"),
        (
            "jacobi",
            "{\"rows\": 1, \"columns\": 2, \"iterations\": 1, \"costs_ps\": {\"stencil-point\": 1}}",
            3,
            "columns is 2; allowed: 3 or more, for 3 ranks in a mesh of 1 x 3",
        ),
        (
            "mm",
            "{\"n\": 4, \"bits\": 48, \"rounds\": 1, \"costs_ps\": {\"multiply-add\": 1}}",
            2,
            "rank 0: bits is 48; allowed: 64 or 32",
        ),
        (
            "mm",
            "{\"n\": 2, \"rounds\": 1, \"costs_ps\": {\"multiply-add\": 1}}",
            3,
            "rank 0: n is 2; allowed: 3 or more, for a mesh of 1 x 3",
        ),
        ("mm", "{\"rounds\": 1}", 2, "parameters.n is nothing"),
        (
            "pde",
            "{\"n\": 4, \"accuracy\": 6, \"down\": 3, \"costs_ps\": {\"sor-point\": 1}}",
            4,
            "rank 0: down is 3; allowed: a divisor of 4 (ranks)",
        ),
        (
            "pde1",
            "{\"n\": 2, \"accuracy\": 3, \"across\": 3, \"costs_ps\": {\"relax-point\": 1}}",
            3,
            "rank 0: n is 2; allowed: 3 or more, for a mesh of 1 x 3",
        ),
        (
            "pde2",
            "{\"n\": 8, \"accuracy\": 3, \"costs_ps\": {\"smooth-point\": 1, \"transfer-point\": 1}}",
            2,
            "n is 8; allowed: a power of two less one",
        ),
        ("md", "{\"x\": 4, \"steps\": 1}", 2, "parameters.x is 4; allowed: an integer from 5 to 512"),
        (
            "md",
            "{\"x\": 5, \"steps\": 1, \"down\": 2, \"costs_ps\": {\"atom-pair\": 1}}",
            2,
            "rank 0: x is 5; allowed: 6 or more, for 2 ranks in its direction",
        ),
        ("pde", "{\"n\": 8, \"accuracy\": 16}", 2, "accuracy is 16; allowed: an integer from 1 to 15"),
    ];
    for (name, parameters, ranks, message) in cases {
        let shown = text(name, parameters, ranks);
        assert!(shown.contains(message), "{shown}");
    }
}

#[test]
fn a_program_that_waits_for_itself_is_a_deadlock_with_names() {
    use wiretwin_prog::{Comm, Rank, Source, Tag, TagMatch};
    let model = Model::from_json(&model(2, 2), 2).unwrap();
    let shared = Shared::new(Ranks::Costs(World::new(model, 1, true)), BTreeMap::new(), None);
    let program = async |comm: &mut SimComm| {
        let peer = Rank(1 - comm.rank().0);
        comm.recv(Source::Rank(peer), TagMatch::Tag(Tag(3)), &mut [0; 4]).await?;
        Ok(Outcome::new(comm.now(), 0, true))
    };
    let Err(error) = drive(shared, program) else { panic!("it ran") };
    assert_eq!(
        error.to_string(),
        "deadlock: rank 0 in recv waits for receive of a message from rank 1 with tag 3 in context 0; \
         rank 1 in recv waits for receive of a message from rank 0 with tag 3 in context 0;"
    );
}

#[test]
fn a_short_buffer_and_a_rank_that_does_not_exist_are_errors_of_the_call() {
    use wiretwin_prog::{Comm, CommError, Rank, Source, Tag, TagMatch};
    use wiretwin_units::Bytes;
    let model = Model::from_json(&model(2, 2), 2).unwrap();
    let shared = Shared::new(Ranks::Costs(World::new(model, 1, true)), BTreeMap::new(), None);
    let program = async |comm: &mut SimComm| {
        if comm.rank() == Rank(0) {
            assert_eq!(
                comm.send(Rank(2), Tag(0), &[1]).await,
                Err(CommError::NoSuchRank { rank: Rank(2), size: 2 })
            );
            comm.send(Rank(1), Tag(0), &[1, 2, 3]).await?;
        } else {
            let short = comm.recv(Source::Any, TagMatch::Any, &mut [0; 2]).await;
            let (message, buffer) = (Bytes::new(3), Bytes::new(2));
            assert_eq!(short, Err(CommError::Truncated { message, buffer }));
        }
        Ok(Outcome::new(comm.now(), 0, true))
    };
    assert!(drive(shared, program).is_ok());
}
