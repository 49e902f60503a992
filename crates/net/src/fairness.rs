//! What each of several sessions would get of a network if it were fair, and how far from it they are.
//!
//! Max-min fair shares: no session can get more without another that has no more getting less. Found by
//! progressive filling (D. Bertsekas, R. Gallager, "Data Networks", 2nd edition 1992, 6.5.2). Jain's index
//! and the comparison with the shares measure what came out.

use std::fmt;

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

/// Why there are no shares.
#[derive(Clone, Debug, PartialEq)]
pub enum FairnessError {
    /// A capacity that is no number, or below 0.
    Capacity {
        /// Which link.
        link: usize,
        /// Its capacity.
        capacity: f64,
    },
    /// A session crosses a link that is not there, or one twice.
    Link {
        /// Which session.
        session: usize,
        /// The link.
        link: usize,
        /// How many links there are.
        links: usize,
    },
    /// A session without a link that asks for all there is.
    Unbounded {
        /// Which session.
        session: usize,
    },
    /// A demand below 0 or a weight not above 0.
    Value {
        /// Which session.
        session: usize,
        /// `demand` or `weight`.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl fmt::Display for FairnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity { link, capacity } => {
                write!(f, "link {link} has a capacity of {capacity}: 0 or more, and finite")
            }
            Self::Link { session, link, links } => {
                write!(f, "session {session} crosses link {link}: there are {links}, each at most once")
            }
            Self::Unbounded { session } => {
                write!(f, "session {session} crosses no link and asks for all there is")
            }
            Self::Value { session, name, value } => {
                let least = if *name == "weight" { "above 0" } else { "0 or more" };
                write!(f, "session {session} has a {name} of {value}: {least}, and finite")
            }
        }
    }
}

impl std::error::Error for FairnessError {}

/// The max-min fair share of each session, in the unit of the capacities.
///
/// # Errors
/// [`FairnessError`].
pub fn max_min_shares(capacities: &[f64], sessions: &[Session]) -> Result<Vec<f64>, FairnessError> {
    check(capacities, sessions)?;
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
            return Ok(shares.into_iter().map(|share| share.unwrap_or(0.0)).collect());
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

fn check(capacities: &[f64], sessions: &[Session]) -> Result<(), FairnessError> {
    let proper = |value: f64| value.is_finite() && value >= 0.0;
    if let Some((link, &capacity)) = capacities.iter().enumerate().find(|&(_, &capacity)| !proper(capacity)) {
        return Err(FairnessError::Capacity { link, capacity });
    }
    for (number, session) in sessions.iter().enumerate() {
        for (place, &link) in session.links.iter().enumerate() {
            if link >= capacities.len() || session.links[..place].contains(&link) {
                return Err(FairnessError::Link { session: number, link, links: capacities.len() });
            }
        }
        if let Some(value) = session.demand.filter(|&demand| !proper(demand)) {
            return Err(FairnessError::Value { session: number, name: "demand", value });
        }
        if !(proper(session.weight) && session.weight > 0.0) {
            return Err(FairnessError::Value { session: number, name: "weight", value: session.weight });
        }
        if session.links.is_empty() && session.demand.is_none() {
            return Err(FairnessError::Unbounded { session: number });
        }
    }
    Ok(())
}

/// Jain's index (R. Jain, D. Chiu, W. Hawe 1984): 1 where all are equal, 1/n where one has everything;
/// `None` of nothing, or where nobody has anything.
pub fn jain_index(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// How far a session is from its share, as Chen, Brandt and Armstrong (1996) write it, in per cent:
/// measured over share times link efficiency, less one.
pub fn deviation_percent(measured: f64, share: f64, efficiency: f64) -> f64 {
    (measured / (share * efficiency) - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(shares: &[f64], known: &[f64]) -> bool {
        shares.len() == known.len() && shares.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    #[test]
    fn a_parking_lot_gives_thirds_and_what_they_leave() {
        // A, B, C over the first link, C and D over the second.
        let sessions = [&[0][..], &[0], &[0, 1], &[1]].map(Session::greedy);
        let shares = max_min_shares(&[135.44, 135.44], &sessions).unwrap();
        let third = 135.44 / 3.0;
        assert!(near(&shares, &[third, third, third, 135.44 - third]), "{shares:?}");
    }

    #[test]
    fn a_session_with_less_than_its_share_leaves_the_rest() {
        let mut sessions = vec![Session::greedy([0]); 3];
        sessions[1].demand = Some(1.0);
        assert!(near(&max_min_shares(&[10.0], &sessions).unwrap(), &[4.5, 1.0, 4.5]));
        sessions[0].weight = 2.0;
        assert!(near(&max_min_shares(&[10.0], &sessions).unwrap(), &[6.0, 1.0, 3.0]));
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!(max_min_shares(&[], &[]), Ok(vec![]));
        assert!(near(&max_min_shares(&[0.0, 5.0], &[Session::greedy([0, 1])]).unwrap(), &[0.0]));
        assert_eq!((jain_index(&[]), jain_index(&[0.0, 0.0])), (None, None));
        assert_eq!(jain_index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain_index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert!((deviation_percent(40.0, 50.0, 0.9) + 11.111).abs() < 1e-3);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused = |capacities: &[f64], sessions: &[Session]| {
            max_min_shares(capacities, sessions).unwrap_err().to_string()
        };
        let greedy = |links: &[usize]| Session::greedy(links);
        assert_eq!(refused(&[-1.0], &[]), "link 0 has a capacity of -1: 0 or more, and finite");
        assert_eq!(
            refused(&[1.0], &[greedy(&[1])]),
            "session 0 crosses link 1: there are 1, each at most once"
        );
        assert_eq!(
            refused(&[1.0], &[greedy(&[0, 0])]),
            "session 0 crosses link 0: there are 1, each at most once"
        );
        assert_eq!(refused(&[1.0], &[greedy(&[])]), "session 0 crosses no link and asks for all there is");
        let weight = Session { weight: 0.0, ..greedy(&[0]) };
        assert_eq!(refused(&[1.0], &[weight]), "session 0 has a weight of 0: above 0, and finite");
        let demand = Session { demand: Some(f64::NAN), ..greedy(&[0]) };
        assert_eq!(refused(&[1.0], &[demand]), "session 0 has a demand of NaN: 0 or more, and finite");
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
            let shares = max_min_shares(&capacities, &sessions).unwrap();
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
}
