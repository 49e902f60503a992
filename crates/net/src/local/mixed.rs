//! Clients of other programs beside a parallel program, on the same hosts and lines.
//!
//! A *caller* sends a request to a server, waits for the reply, and pauses for a random time; a *streamer*
//! sends messages for ever. Each is a rank of a stack beside the main one, and so is its peer. They begin with
//! the program, and are looked at until it ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use wiretwin_engine::{Stream, StreamError};
use wiretwin_prog::{Comm, CommError, Outcome, Rank, Reference, Source, Tag, TagMatch};
use wiretwin_units::{Bytes, Span};

use super::run_beside;
use crate::SimComm;
use crate::json::{At, JsonError, parse};
use crate::lan::stack::Message;
use crate::lan::{Config, Lan};
use crate::run::{Beside, RunError, RunOptions};

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls, with replies of so many octets and a mean pause, exponential.
    Calls {
        /// Of the reply.
        reply: Bytes,
        /// After it.
        pause: Span,
    },
    /// Sends for ever.
    Stream,
}

/// A client and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// What it does.
    pub kind: Kind,
    /// The client's host and the server's.
    pub hosts: [u32; 2],
    /// Of a request, or of a message.
    pub bytes: Bytes,
}

/// What a client has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of a caller, from request to reply; the first left out, for it makes the connection.
    pub responses: Vec<Span>,
    /// Octets that the server has got.
    pub received: u64,
}

/// Reads clients.
///
/// # Errors
/// [`JsonError`] naming key, value and what is allowed.
pub fn clients(text: &str, config: &Config) -> Result<Vec<Client>, JsonError> {
    let value = parse("clients", text)?;
    let hosts = config.hosts.len() as u64;
    let mut found: Vec<Client> = Vec::new();
    for at in At::top("clients", &value).list("clients")? {
        let fields = at.object(&["kind", "from", "to", "bytes", "reply_bytes", "pause_ps"])?;
        let kind = fields.get("kind")?;
        let kind = match kind.value.as_str() {
            Some("calls") => Kind::Calls {
                reply: Bytes::new(fields.get("reply_bytes")?.integer(1, MOST_BYTES)?),
                pause: Span::from_ps(fields.get("pause_ps")?.integer(0, 60_000_000_000_000)?),
            },
            Some("stream") => Kind::Stream,
            _ => return Err(kind.refuse("calls or stream")),
        };
        let host = |key| fields.get(key)?.integer(0, hosts - 1).map(|host| host as u32);
        let bytes = Bytes::new(fields.get("bytes")?.integer(1, MOST_BYTES)?);
        let one = Client { kind, hosts: [host("from")?, host("to")?], bytes };
        // A rank has one thread: it serves, or is one client.
        let is_call = |one: &Client| matches!(one.kind, Kind::Calls { .. });
        let clash = found.iter().filter(|other| is_call(other) == is_call(&one)).any(|other| {
            other.hosts[0] == one.hosts[0] || other.hosts[1] == one.hosts[0] || other.hosts[0] == one.hosts[1]
        });
        if clash || one.hosts[0] == one.hosts[1] {
            return Err(at.refuse("a host that is no client or server of that kind yet, and another host"));
        }
        if crew_of(&one, config).is_none() {
            return Err(at.refuse("calls with rpc among the stacks beside, a stream with framed"));
        }
        found.push(one);
    }
    Ok(found)
}

const MOST_BYTES: u64 = 1 << 24;

/// Which stack a client uses, counted from 0 with the main one.
fn crew_of(client: &Client, config: &Config) -> Option<usize> {
    let wanted = match client.kind {
        Kind::Calls { .. } => Message::Rpc,
        Kind::Stream => Message::Framed,
    };
    config.beside.iter().position(|stack| stack.message == wanted).map(|at| at + 1)
}

/// Why nothing was run.
#[derive(Debug)]
pub enum MixedError {
    /// No network was made.
    Build(StreamError),
    /// The program did not end.
    Run(RunError),
}

impl std::fmt::Display for MixedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MixedError {}

/// Runs a program beside clients.
///
/// # Errors
/// [`MixedError`].
///
/// # Panics
/// With clients whose stacks are not among those of the network: [`clients`] refuses them.
pub fn run_mixed(
    config: Config,
    options: RunOptions,
    clients: &[Client],
    seed: u64,
) -> Result<(Lan, Vec<Outcome>, Vec<Seen>), MixedError> {
    let seen: Vec<Shared> = clients.iter().map(|_| Rc::default()).collect();
    let lan = Lan::new(config.clone(), seed, false).map_err(MixedError::Build)?;
    let crews = lan.crews();
    let mut bodies = Vec::new();
    let mut add = |crew: usize, rank, body| bodies.push(Beside { rank, process: crews[crew] + rank, body });
    let mut servers: BTreeMap<(usize, u32), Vec<(Client, Shared)>> = BTreeMap::new();
    for (number, (&client, seen)) in clients.iter().zip(&seen).enumerate() {
        let crew = crew_of(&client, &config).expect("its stack is there");
        let stream = Stream::derive(seed, &format!("mixed/client {number}"));
        let mine = Rc::clone(seen);
        add(crew, client.hosts[0], Box::new(move |comm| Box::pin(ask(comm, client, stream, mine))));
        servers.entry((crew, client.hosts[1])).or_default().push((client, Rc::clone(seen)));
    }
    for ((crew, host), clients) in servers {
        add(crew, host, Box::new(move |comm| Box::pin(serve(comm, clients))));
    }
    let RunOptions { program, costs, .. } = options;
    let reference = Reference::default();
    let body = async move |comm: &mut SimComm| program.run(comm, &reference).await;
    let (lan, outcomes) = run_beside(lan, costs, body, bodies).map_err(MixedError::Run)?;
    Ok((lan, outcomes, seen.iter().map(|seen| seen.borrow().clone()).collect()))
}

type Shared = Rc<RefCell<Seen>>;

/// What a client does, for ever.
async fn ask(mut comm: SimComm, client: Client, stream: Stream, seen: Shared) {
    // What ends it is the end of its connection, which its figures show.
    let _ = asking(&mut comm, client, stream, &seen).await;
}

async fn asking(
    comm: &mut SimComm,
    client: Client,
    mut stream: Stream,
    seen: &Shared,
) -> Result<(), CommError> {
    let request = vec![0; client.bytes.get() as usize];
    let server = Rank(client.hosts[1]);
    let Kind::Calls { reply, pause } = client.kind else {
        loop {
            comm.send(server, Tag(0), &request).await?;
        }
    };
    let mut answer = vec![0; reply.get() as usize];
    let mut first = true;
    loop {
        let begun = comm.now();
        comm.send(server, Tag(0), &request).await?;
        comm.recv(Source::Rank(server), TagMatch::Any, &mut answer).await?;
        if !core::mem::take(&mut first) {
            seen.borrow_mut().responses.push(comm.now() - begun);
        }
        comm.pause(stream.exponential(pause)).await?;
    }
}

/// What a server does, for ever.
async fn serve(mut comm: SimComm, clients: Vec<(Client, Shared)>) {
    let most = clients.iter().map(|(client, _)| client.bytes.get()).max().unwrap_or(0);
    let mut buffer = vec![0; most as usize];
    while let Ok(status) = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await {
        let Some((client, seen)) = clients.iter().find(|(client, _)| client.hosts[0] == status.source.0)
        else {
            continue;
        };
        seen.borrow_mut().received += status.bytes.get();
        if let Kind::Calls { reply, .. } = client.kind
            && comm.send(status.source, status.tag, &vec![0; reply.get() as usize]).await.is_err()
        {
            return;
        }
    }
}
