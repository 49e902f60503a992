//! What an interface can do, found out by asking it to: each ability is a small program that is run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use wiretwin_msg::pvm::group::SERVER;
use wiretwin_prog::{Comm, CommError, Outcome, Rank, Source, Tag, TagMatch, Work};
use wiretwin_units::Span;

use super::run;
use crate::SimComm;
use crate::lan::{Config, Lan};
use crate::named::named;

named! {
    /// What may be tried; on three hosts or more.
    Ability:
    /// A process starts others of a program.
    Spawn = "spawn",
    /// Ranks join a group, meet at its barrier, and one sends a message to it.
    Groups = "dynamic-groups",
    /// What programs send is put into a form that all machines can read.
    Encapsulation = "data-encapsulation",
    /// A message says whose it is, and who gets it can ask.
    Authentication = "authentication",
    /// A server takes the request of a second client before it has answered the first, and answers that last.
    ConcurrentServer = "concurrent-server",
    /// A send is over before its receiver has looked for it.
    BufferedSend = "buffered-send",
}

impl Ability {
    /// The ability of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

/// What a trial has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Whether the interface has done it.
    pub able: bool,
    /// What it has done, or has said.
    pub evidence: String,
}

/// Tries an ability on a fresh network.
#[must_use]
pub fn try_ability(config: Config, seed: u64, ability: Ability) -> Trial {
    let lan = Lan::new(config, seed, false);
    let found: Rc<RefCell<Option<String>>> = Rc::default();
    let costs = BTreeMap::from([(LATE.kind.to_string(), 1_000_000_000_000)]);
    let body = {
        let found = Rc::clone(&found);
        async move |comm: &mut SimComm| {
            let done = match ability {
                Ability::Spawn => spawn(comm).await,
                Ability::Groups => groups(comm).await,
                Ability::Encapsulation => message(comm).await,
                Ability::Authentication => authentication(comm).await,
                Ability::ConcurrentServer => concurrent_server(comm).await,
                Ability::BufferedSend => buffered_send(comm).await,
            };
            if let Some(done) = done? {
                found.replace(Some(done));
            }
            Ok(Outcome::new(Span::ZERO, 0, true))
        }
    };
    let ran = run(lan, costs, body);
    let evidence = found.take();
    match (ran, evidence) {
        (Err(error), _) => Trial { able: false, evidence: error.to_string() },
        (Ok((lan, _)), _) if ability == Ability::Encapsulation => {
            let octets = lan.converted();
            let evidence = format!("{octets} octets put into the form of the wire and taken out of it");
            Trial { able: octets > 0, evidence }
        }
        (Ok(_), Some(evidence)) => Trial { able: true, evidence },
        (Ok(_), None) => Trial { able: false, evidence: "nothing came of it".to_string() },
    }
}

/// What a receiver does before it looks: a second of work.
const LATE: Work = Work { kind: "late", count: 1 };
/// As long as that.
const SECOND: Span = Span::from_ms(1000);
const USER: u32 = 1234;
const OCTETS: usize = 1001;

type Done = Result<Option<String>, CommError>;

async fn spawn(comm: &mut SimComm) -> Done {
    if comm.rank() != Rank(0) {
        return Ok(None);
    }
    let count = comm.spawn(SERVER, 1).await?;
    Ok((count == 1).then(|| "one process was started".to_string()))
}

async fn groups(comm: &mut SimComm) -> Done {
    let size = comm.size();
    comm.join_group("g").await?;
    comm.group_barrier("g", size).await?;
    if comm.rank() == Rank(0) {
        comm.group_cast("g", Tag(1), &[1; OCTETS]).await?;
        return Ok(None);
    }
    let status = comm.recv(Source::Any, TagMatch::Tag(Tag(1)), &mut [0; OCTETS]).await?;
    let came = status.source == Rank(0) && status.bytes.get() == OCTETS as u64;
    Ok(came.then(|| format!("{size} ranks met, and a message went to all of them")))
}

async fn message(comm: &mut SimComm) -> Done {
    if comm.rank() == Rank(0) {
        comm.send(Rank(1), Tag(1), &[1; OCTETS]).await?;
    } else if comm.rank() == Rank(1) {
        comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut [0; OCTETS]).await?;
    }
    Ok(None)
}

async fn authentication(comm: &mut SimComm) -> Done {
    if comm.rank() == Rank(0) {
        comm.identify(USER).await?;
        comm.send(Rank(1), Tag(1), &[1; OCTETS]).await?;
    } else if comm.rank() == Rank(1) {
        comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut [0; OCTETS]).await?;
        let user = comm.caller().await?;
        return Ok((user == USER).then(|| format!("the message says that it is of user {user}")));
    }
    Ok(None)
}

async fn concurrent_server(comm: &mut SimComm) -> Done {
    let mut buffer = [0; 4];
    match comm.rank().0 {
        0 => {
            let first = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?.source;
            let second = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?.source;
            for client in [second, first] {
                comm.send(client, Tag(2), &client.0.to_le_bytes()).await?;
            }
            let apart = first != second;
            Ok(apart.then(|| "two clients were served at once, the second before the first".to_string()))
        }
        mine @ (1 | 2) => {
            comm.send(Rank(0), Tag(1), &mine.to_le_bytes()).await?;
            comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut buffer).await?;
            Ok(None)
        }
        _ => Ok(None),
    }
}

async fn buffered_send(comm: &mut SimComm) -> Done {
    if comm.rank() == Rank(0) {
        comm.send(Rank(1), Tag(1), &[1; OCTETS]).await?;
        let returned = comm.now();
        let early = returned < SECOND;
        return Ok(early.then(|| format!("it was over after {} us", returned.as_ps() / 1_000_000)));
    }
    if comm.rank() == Rank(1) {
        comm.compute(LATE, || ()).await;
        comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut [0; OCTETS]).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lan::tests::{PLAIN, Want, json};

    const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
        "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;

    fn tried(stack: &'static str) -> Vec<(&'static str, String)> {
        let more = if stack.contains("fore") { PLAIN.more } else { SOCKET };
        let want = Want { stack, hosts: 3, switch: true, more, ..PLAIN };
        let one = |ability: Ability| {
            let config = Config::from_json(&json(&want)).expect("a network");
            let trial = try_ability(config, 1, ability);
            let sign = if trial.able { "yes" } else { "no" };
            (ability.name(), format!("{sign}: {}", trial.evidence))
        };
        Ability::ALL.iter().copied().map(one).collect()
    }

    fn yes(stack: &'static str) -> Vec<&'static str> {
        tried(stack).into_iter().filter(|(_, said)| said.starts_with("yes")).map(|(name, _)| name).collect()
    }

    #[test]
    fn each_interface_does_what_it_can_and_says_what_it_cannot() {
        let plain = ["concurrent-server", "buffered-send"];
        for stack in ["fore/aal5", "fore+reliable/aal5", "socket/tcp/aal5", "framed/tcp/aal5"] {
            assert_eq!(yes(stack), plain, "{stack}");
        }
        let rpc = ["data-encapsulation", "authentication", "concurrent-server", "buffered-send"];
        assert_eq!(yes("rpc/tcp/aal5"), rpc);
        let pvm = ["spawn", "dynamic-groups", "data-encapsulation", "concurrent-server", "buffered-send"];
        for stack in ["pvm-advise/tcp/aal5", "pvm-normal/udp/aal5"] {
            assert_eq!(yes(stack), pvm, "{stack}");
        }
        let fore = tried("fore/aal5");
        assert!(fore[0].1.ends_with("the start of other processes"), "{}", fore[0].1);
        assert!(fore[1].1.ends_with("groups of ranks"), "{}", fore[1].1);
        assert_eq!(fore[2].1, "no: 0 octets put into the form of the wire and taken out of it");
    }

    #[test]
    fn an_ability_has_a_name() {
        for ability in Ability::ALL {
            assert_eq!(Ability::from_name(ability.name()), Some(*ability));
        }
        assert_eq!(Ability::from_name("all"), None);
    }
}
