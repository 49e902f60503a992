//! What blocks of a grid on a mesh of ranks exchange with their neighbours.

use crate::comm::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch};
use crate::data::{get, put};
use crate::grid::Mesh;

/// A direction on a mesh: rows down, columns right.
pub(crate) type Side = (i32, i32);

/// The sides that have a neighbour in common with a block's lines, then its corners.
pub(crate) const SIDES: [Side; 8] = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)];

/// What is exchanged with a neighbour: where in the block's values it lies.
pub(crate) struct Border {
    pub(crate) side: Side,
    peer: u32,
    give: Vec<usize>,
    take: Vec<usize>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Border {
    /// Values to give to the neighbour on a side and values to take from it, in an order both know.
    pub(crate) fn new(side: Side, peer: u32, give: Vec<usize>, take: Vec<usize>) -> Self {
        let (outgoing, incoming) = (vec![0; give.len() * 8], vec![0; take.len() * 8]);
        Self { side, peer, give, take, outgoing, incoming }
    }
}

/// A message is tagged with the direction it goes.
const fn tag((rows, columns): Side) -> Tag {
    Tag(((rows + 1) * 3 + columns + 1) as u32)
}

/// Gives every neighbour its values and takes theirs, all at once. A message of nothing is not sent.
pub(crate) async fn exchange<C: Comm>(
    comm: &mut C,
    values: &mut [f64],
    borders: &mut [Border],
) -> Result<(), CommError> {
    for border in &mut *borders {
        let given: Vec<f64> = border.give.iter().map(|at| values[*at]).collect();
        put(&given, &mut border.outgoing);
    }
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for Border { side, peer, outgoing, incoming, .. } in &mut *borders {
        if !outgoing.is_empty() {
            sends.push(Outgoing { to: Rank(*peer), tag: tag(*side), message: outgoing });
        }
        if !incoming.is_empty() {
            receives.push(Incoming {
                from: Source::Rank(Rank(*peer)),
                tag: TagMatch::Tag(tag((-side.0, -side.1))),
                buffer: incoming,
                status: None,
            });
        }
    }
    comm.exchange(&sends, &mut receives).await?;
    for border in borders {
        let mut taken = vec![0.0; border.take.len()];
        get(&border.incoming, &mut taken);
        for (at, value) in border.take.iter().zip(taken) {
            values[*at] = value;
        }
    }
    Ok(())
}

const GREATEST_UP: Tag = Tag(9);
const GREATEST_DOWN: Tag = Tag(10);

/// The greatest of all ranks' numbers, known to all: up a binomial tree to rank 0 and down again.
pub(crate) async fn greatest<C: Comm>(comm: &mut C, mine: f64) -> Result<f64, CommError> {
    let (rank, size) = (comm.rank().0, comm.size());
    let mut most = mine;
    let mut bytes = [0; 8];
    let mut reach = 1;
    // The rank below has the lowest set bit cleared; above are those with one more below it.
    while reach < size && rank & reach == 0 {
        if rank + reach < size {
            comm.recv(Source::Rank(Rank(rank + reach)), TagMatch::Tag(GREATEST_UP), &mut bytes).await?;
            most = most.max(f64::from_le_bytes(bytes));
        }
        reach *= 2;
    }
    if rank > 0 {
        let below = Rank(rank & (rank - 1));
        comm.send(below, GREATEST_UP, &most.to_le_bytes()).await?;
        comm.recv(Source::Rank(below), TagMatch::Tag(GREATEST_DOWN), &mut bytes).await?;
        most = f64::from_le_bytes(bytes);
    }
    while reach > 1 {
        reach /= 2;
        if rank + reach < size {
            comm.send(Rank(rank + reach), GREATEST_DOWN, &most.to_le_bytes()).await?;
        }
    }
    Ok(most)
}

const COLLECT: Tag = Tag(100);

/// Rank 0 gets every rank's values, with the rank they are of; nobody else gets any.
pub(crate) async fn collect<C: Comm>(
    comm: &mut C,
    mine: &[f64],
    length_of: impl Fn(u32) -> usize,
    mut place: impl FnMut(u32, &[f64]),
) -> Result<(), CommError> {
    if comm.rank() != Rank(0) {
        let mut bytes = vec![0; mine.len() * 8];
        put(mine, &mut bytes);
        return comm.send(Rank(0), COLLECT, &bytes).await;
    }
    place(0, mine);
    for other in 1..comm.size() {
        let mut bytes = vec![0; length_of(other) * 8];
        comm.recv(Source::Rank(Rank(other)), TagMatch::Tag(COLLECT), &mut bytes).await?;
        let mut values = vec![0.0; bytes.len() / 8];
        get(&bytes, &mut values);
        place(other, &values);
    }
    Ok(())
}

/// Rank 0 puts all blocks of an n x n grid in their places.
pub(crate) async fn collect_blocks<C: Comm>(
    comm: &mut C,
    mesh: Mesh,
    n: usize,
    mine: &[f64],
    grid: &mut [f64],
) -> Result<(), CommError> {
    let length_of = |other| {
        let ((_, rows), (_, columns)) = mesh.block(other, n, n);
        rows * columns
    };
    collect(comm, mine, length_of, |other, values| {
        let ((top, _), (left, columns)) = mesh.block(other, n, n);
        for (row, line) in values.chunks_exact(columns).enumerate() {
            let at = (top + row) * n + left;
            grid[at..at + columns].copy_from_slice(line);
        }
    })
    .await
}
