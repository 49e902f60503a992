//! What each of several sessions would get of a network if it were fair: an oracle in floating point.
//!
//! Max-min fair shares: no session can get more without another that has no more getting less. Found by
//! progressive filling (D. Bertsekas, R. Gallager, "Data Networks", 2nd edition 1992, 6.5.2).

use proptest::prelude::*;

/// A session: the links it crosses and what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its links, as places in the list of capacities; in any order, each once.
    pub links: Vec<usize>,
    /// The most it would use; `None` is all there is.
    pub demand: Option<f64>,
    /// Its weight: a session of weight 2 counts as two. Above 0.
    pub weight: f64,
}

impl Session {
    /// A session that takes all it gets, of weight 1.
    pub fn greedy(links: impl Into<Vec<usize>>) -> Self {
        Self { links: links.into(), demand: None, weight: 1.0 }
    }
}

/// The max-min fair share of each session, in the unit of the capacities.
pub fn max_min_shares(capacities: &[f64], sessions: &[Session]) -> Vec<f64> {
    let mut left = capacities.to_vec();
    let mut shares: Vec<Option<f64>> = vec![None; sessions.len()];
    loop {
        // The level at which the next link is full, or the next session has what it asks for.
        let mut weights = vec![0.0; capacities.len()];
        let open = |shares: &[Option<f64>], number: usize| shares[number].is_none();
        for (number, session) in sessions.iter().enumerate() {
            if open(&shares, number) {
                session.links.iter().for_each(|&link| weights[link] += session.weight);
            }
        }
        let of_links = left.iter().zip(&weights).filter(|&(_, &weight)| weight > 0.0);
        let of_links = of_links.map(|(&left, &weight)| left / weight);
        let demands = sessions.iter().enumerate().filter(|&(number, _)| open(&shares, number));
        let of_demands =
            demands.filter_map(|(_, session)| session.demand.map(|demand| demand / session.weight));
        let Some(level) = of_links.chain(of_demands).min_by(f64::total_cmp) else {
            return shares.into_iter().map(|share| share.unwrap_or(0.0)).collect();
        };
        // Everybody who cannot go further stays there. Equal levels are equal but for rounding.
        let full = |link: usize| weights[link] > 0.0 && left[link] / weights[link] <= level * (1.0 + 1e-12);
        let stays: Vec<_> = (0..sessions.len())
            .filter(|&number| open(&shares, number))
            .filter(|&number| {
                let session = &sessions[number];
                let content =
                    session.demand.is_some_and(|demand| demand <= level * session.weight * (1.0 + 1e-12));
                content || session.links.iter().any(|&link| full(link))
            })
            .collect();
        for number in stays {
            let session = &sessions[number];
            let share = session.demand.unwrap_or(f64::INFINITY).min(level * session.weight);
            shares[number] = Some(share);
            session.links.iter().for_each(|&link| left[link] = (left[link] - share).max(0.0));
        }
    }
}

fn near(shares: &[f64], known: &[f64]) -> bool {
    shares.len() == known.len() && shares.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-9)
}

#[test]
fn a_parking_lot_gives_thirds_and_what_they_leave() {
    // A, B, C over the first link, C and D over the second.
    let sessions = [&[0][..], &[0], &[0, 1], &[1]].map(Session::greedy);
    let shares = max_min_shares(&[135.44, 135.44], &sessions);
    let third = 135.44 / 3.0;
    assert!(near(&shares, &[third, third, third, 135.44 - third]), "{shares:?}");
}

#[test]
fn a_session_with_less_than_its_share_leaves_the_rest() {
    let mut sessions = vec![Session::greedy([0]); 3];
    sessions[1].demand = Some(1.0);
    assert!(near(&max_min_shares(&[10.0], &sessions), &[4.5, 1.0, 4.5]));
    sessions[0].weight = 2.0;
    assert!(near(&max_min_shares(&[10.0], &sessions), &[6.0, 1.0, 3.0]));
}

#[test]
fn nothing_of_nothing() {
    assert_eq!(max_min_shares(&[], &[]), Vec::<f64>::new());
    assert!(near(&max_min_shares(&[0.0, 5.0], &[Session::greedy([0, 1])]), &[0.0]));
}

fn networks() -> impl Strategy<Value = (Vec<f64>, Vec<Session>)> {
    prop::collection::vec(1.0..100.0, 1..8).prop_flat_map(|capacities| {
        let links = capacities.len();
        let session = (
            prop::collection::btree_set(0..links, 1..=links),
            prop::option::of(0.1..60.0),
            prop_oneof![Just(1.0), 0.5..4.0],
        );
        let session = session.prop_map(|(links, demand, weight)| Session {
            links: links.into_iter().collect(),
            demand,
            weight,
        });
        (Just(capacities), prop::collection::vec(session, 1..10))
    })
}

proptest! {
    #[test]
    fn nobody_can_have_more_without_taking_from_one_who_has_no_more((capacities, sessions) in networks()) {
        let shares = max_min_shares(&capacities, &sessions);
        let used: Vec<f64> = (0..capacities.len())
            .map(|link| sessions.iter().zip(&shares).filter(|(s, _)| s.links.contains(&link)).map(|(_, x)| x).sum())
            .collect();
        for (used, capacity) in used.iter().zip(&capacities) {
            prop_assert!(*used <= capacity * (1.0 + 1e-9));
        }
        for (session, share) in sessions.iter().zip(&shares) {
            prop_assert!(session.demand.is_none_or(|demand| *share <= demand * (1.0 + 1e-9)));
            // Content, or held by a full link on which no other has more by weight.
            let content = session.demand.is_some_and(|demand| *share >= demand * (1.0 - 1e-9));
            let held = session.links.iter().any(|&link| {
                let full = used[link] >= capacities[link] * (1.0 - 1e-9);
                let others = sessions.iter().zip(&shares).filter(|(other, _)| other.links.contains(&link));
                let greatest = others.map(|(other, share)| share / other.weight).fold(0.0, f64::max);
                full && share / session.weight >= greatest * (1.0 - 1e-9)
            });
            prop_assert!(content || held, "{session:?} has {share} of {shares:?}");
        }
    }
}
