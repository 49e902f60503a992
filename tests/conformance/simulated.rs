//! The simulated world: ranks on cores of their own, and ranks that share two cores; all messages by
//! the eager protocol up to a bound, by rendezvous above it.

use wiretwin_net::run::run_body;
use wiretwin_net::{Model, SimComm, World};
use wiretwin_prog::Outcome;
use wiretwin_units::Span;

fn model(ranks: u32, cores: u32, rendezvous_from_bytes: u64) -> Model {
    let line = |base_ps: u64, per_byte_fs: u64| {
        format!(r#"[{{"from_bytes": 0, "base_ps": {base_ps}, "per_byte_fs": {per_byte_fs}}}]"#)
    };
    let placement = vec!["0"; ranks as usize].join(",");
    let text = format!(
        r#"{{"nodes": [{{"cores": {cores}, "idle": "sleep", "quantum_ps": 4000000}}], "placement": [{placement}],
            "intra": {{"call_ps": 1000, "overhead_send": {}, "overhead_recv": {}, "latency": {}, "gap": {},
                       "rendezvous_from_bytes": {rendezvous_from_bytes}}}}}"#,
        line(300_000, 20_000),
        line(200_000, 30_000),
        line(500_000, 50_000),
        line(100_000, 40_000),
    );
    Model::from_json(&text, ranks).unwrap()
}

fn run_on(ranks: u32, cores: u32, rendezvous_from_bytes: u64, body: impl AsyncFn(&mut SimComm) + Clone) {
    let world = World::new(model(ranks, cores, rendezvous_from_bytes), 1, false);
    let finished = run_body(world, async move |comm: &mut SimComm| {
        body(comm).await;
        Ok(Outcome::new(Span::ZERO, 0, true))
    });
    match finished {
        Ok(finished) => assert_eq!(finished.outcomes.len(), ranks as usize),
        Err(error) => panic!("{error}"),
    }
}

mod eager {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone) {
        run_on(ranks, ranks, 1 << 40, body);
    }

    wiretwin_tests::conformance!(run);
}

mod rendezvous {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone) {
        run_on(ranks, ranks, 4096, body);
    }

    wiretwin_tests::conformance!(run);
}

mod shared_cores {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone) {
        run_on(ranks, 2, 65_536, body);
    }

    wiretwin_tests::conformance!(run);
}
