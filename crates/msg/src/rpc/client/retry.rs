//! When a call over datagrams is sent again.
//!
//! RFC 5531 §4 leaves time-outs to whoever uses an unreliable transport. Two libraries, two habits.

use wiretwin_units::Span;

/// When a call is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How long to wait after the first time.
    pub first: Span,
    /// How the waits go on.
    pub growth: Growth,
}

/// How waits go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Each like the first.
    Constant,
    /// Each twice the one before, until one is this long or longer.
    Doubling {
        /// From here on they stay.
        until: Span,
    },
}

impl Retry {
    /// Sun RPC 4.0: every five seconds, the wait that `rpcgen`'s clients and `clnt_create` of that time
    /// ask `clntudp_create` for.
    pub const SUN_RPC: Self = Self { first: Span::from_s(5), growth: Growth::Constant };
    /// TI-RPC (`clnt_dg`): 15 s at first, then doubled until 30 s (`RPC_MAX_BACKOFF`).
    pub const TI_RPC: Self =
        Self { first: Span::from_s(15), growth: Growth::Doubling { until: Span::from_s(30) } };

    /// The wait after one of this length.
    pub fn next(&self, wait: Span) -> Span {
        match self.growth {
            Growth::Doubling { until } if wait < until => Span::from_ps(wait.as_ps().saturating_mul(2)),
            Growth::Constant | Growth::Doubling { .. } => wait,
        }
    }
}

/// How long a call may take in all: what `rpcgen` writes into a client (`TIMEOUT`, 25 s).
pub const TOTAL: Span = Span::from_s(25);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn waits(retry: Retry) -> Vec<u64> {
        core::iter::successors(Some(retry.first), |&wait| Some(retry.next(wait)))
            .map(|wait| wait.as_ns() / 1_000_000_000)
            .take(4)
            .collect()
    }

    #[test]
    fn the_two_libraries_wait_as_they_did() {
        assert_eq!(waits(Retry::SUN_RPC), [5, 5, 5, 5]);
        assert_eq!(waits(Retry::TI_RPC), [15, 30, 30, 30]);
        let until = Span::from_s(20);
        assert_eq!(
            waits(Retry { first: Span::from_s(3), growth: Growth::Doubling { until } }),
            [3, 6, 12, 24]
        );
    }
}
