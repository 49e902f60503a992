//! Molecular dynamics of a Lennard-Jones liquid: short range, a periodic box, velocity Verlet, the box cut
//! into blocks of cells, one per rank of a mesh.
//!
//! In each step atoms that have left a block go to its neighbour, first down the mesh, then across; then the
//! atoms in a block's outermost cells are copied to the neighbours, in the same two stages, so that what
//! belongs to a diagonal neighbour goes by way of another. The third direction is not cut.
//!
//! Forces and energies are summed in fixed point, so any mesh gives the sequential trajectory bit for bit. The
//! total energy, kinetic and potential, is watched in every step: it may drift by [`MOST_DRIFT`] of itself.
//!
//! Choice: the force is shifted to end at the cut-off without a step. Choice: atoms are sorted into cells
//! anew in every step, without lists of neighbours that last for several.

mod atoms;

use atoms::{Atoms, ENERGY_UNIT, STEP, Space, Vector, mix};

use crate::comm::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch, Work};
use crate::grid::Mesh;
use crate::outcome::{Outcome, ProgramError, elapsed};

/// The kind of work of looking at one pair of atoms in neighbouring cells.
pub const ATOM_PAIR: &str = "atom-pair";

/// The most that the total energy may differ from that at the start, as a share of it.
pub const MOST_DRIFT: f64 = 1e-3;

/// The liquid and how far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdParams {
    /// Unit cells of the lattice at the start, four atoms each, in the direction that `down` cuts.
    pub x: u64,
    /// In the direction that `across` cuts.
    pub y: u64,
    /// In the third direction.
    pub z: u64,
    /// Steps in time.
    pub steps: u64,
    /// Ranks down the mesh; 0: what `across` leaves.
    pub down: u64,
    /// Ranks across the mesh; 0: what `down` leaves.
    pub across: u64,
}

impl MdParams {
    const fn units(&self) -> [u64; 3] {
        [self.x, self.y, self.z]
    }
}

/// What the sequential program comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// A digest of all places and velocities at the end.
    pub digest: u64,
    /// The total energy at the start and after each step, in units of 2^-32.
    pub energies: Vec<i64>,
}

impl Trajectory {
    /// The greatest difference of the energy from that at the start, as a share of it.
    #[must_use]
    pub fn drift(&self) -> f64 {
        let units = |energy: &i64| *energy as f64 / ENERGY_UNIT;
        let start = self.energies.first().map_or(0.0, units);
        self.energies.iter().map(|energy| ((units(energy) - start) / start).abs()).fold(0.0, f64::max)
    }
}

/// The whole box computed alone.
#[must_use]
pub fn sequential(params: &MdParams) -> Trajectory {
    let space = Space::of(params.units());
    let mut atoms = Atoms::on_lattice(params.units(), |_| true);
    atoms.sort(&space);
    let mut energies = vec![atoms.feel(&space) + atoms.kinetic()];
    for _ in 0..params.steps {
        atoms.kick(STEP);
        atoms.drift(&space, STEP);
        atoms.sort(&space);
        let potential = atoms.feel(&space);
        atoms.kick(STEP);
        energies.push(potential + atoms.kinetic());
    }
    Trajectory { digest: atoms.digest(), energies }
}

/// A direction in which the box is cut, as a rank sees it.
struct Cut {
    /// 0 or 1: the coordinate.
    way: usize,
    /// The first cell of the block, and how many.
    first: usize,
    width: usize,
    /// The ranks before and behind, around the edge.
    before: u32,
    behind: u32,
    /// The most atoms that a message may hold.
    most: usize,
}

/// Messages to the rank before and to that behind.
const MOVED: [Tag; 2] = [Tag(1), Tag(2)];
const COPIED: [Tag; 2] = [Tag(3), Tag(4)];
const RESULT: Tag = Tag(5);

const MOVED_BYTES: usize = 56;
const COPIED_BYTES: usize = 24;

/// Runs it; rank 0 compares the result with [`sequential`], and the energy's drift with [`MOST_DRIFT`].
/// Elapsed is the time of the steps.
///
/// The digest is of all atoms on rank 0, the same for every mesh, and of the rank's own elsewhere.
///
/// # Errors
/// [`ProgramError`] from a call, or with a box that is too small for the mesh.
pub async fn md<C: Comm>(comm: &mut C, params: &MdParams) -> Result<Outcome, ProgramError> {
    let mesh = Mesh::of(comm.size(), params.down, params.across)?;
    let space = Space::of(params.units());
    let cuts = cuts(comm.rank().0, mesh, &space, params)?;
    let inside = |place: &Vector| {
        let cell = space.cell(place);
        let ((top, rows), (left, columns)) = mesh.block(comm.rank().0, space.cells[0], space.cells[1]);
        (top..top + rows).contains(&cell[0]) && (left..left + columns).contains(&cell[1])
    };
    let mut atoms = Atoms::on_lattice(params.units(), inside);
    let mut energies = Vec::new();
    let start = comm.now();
    for step in 0..=params.steps {
        if step > 0 {
            atoms.alone();
            atoms.kick(STEP);
            atoms.drift(&space, STEP);
        }
        for cut in &cuts {
            let (gone, come) = (leaving(&mut atoms, cut, &space), [MOVED_BYTES; 2]);
            for message in swap(comm, cut, gone, come.map(|bytes| bytes * cut.most), MOVED).await? {
                arrive(&mut atoms, &message);
            }
        }
        for cut in &cuts {
            let (given, taken) = (border(&atoms, cut, &space), [COPIED_BYTES; 2]);
            for message in swap(comm, cut, given, taken.map(|bytes| bytes * cut.most), COPIED).await? {
                atoms.places.extend(message.chunks_exact(COPIED_BYTES).map(vector));
            }
        }
        let count = atoms.sort(&space);
        let potential = comm.compute(Work { kind: ATOM_PAIR, count }, || atoms.feel(&space)).await;
        if step > 0 {
            atoms.kick(STEP);
        }
        energies.push(potential.wrapping_add(atoms.kinetic()));
    }
    let elapsed = elapsed(start, comm.now());
    conclude(comm, params, &atoms, energies, elapsed).await
}

/// Brings digests and energies to rank 0, which compares them with the sequential program's.
async fn conclude<C: Comm>(
    comm: &mut C,
    params: &MdParams,
    atoms: &Atoms,
    energies: Vec<i64>,
    elapsed: wiretwin_units::Span,
) -> Result<Outcome, ProgramError> {
    let digest = atoms.digest();
    let words = std::iter::once(digest).chain(energies.iter().map(|energy| *energy as u64));
    let mine = words.flat_map(u64::to_le_bytes).collect::<Vec<_>>();
    if comm.rank().0 > 0 {
        comm.send(Rank(0), RESULT, &mine).await?;
        return Ok(Outcome::new(elapsed, digest, true));
    }
    let mut whole = Trajectory { digest, energies };
    let mut theirs = vec![0; mine.len()];
    for other in 1..comm.size() {
        comm.recv(Source::Rank(Rank(other)), TagMatch::Tag(RESULT), &mut theirs).await?;
        let mut words = theirs.chunks_exact(8).map(word);
        whole.digest = whole.digest.wrapping_add(words.next().unwrap_or(0));
        for (sum, energy) in whole.energies.iter_mut().zip(words) {
            *sum = sum.wrapping_add(energy as i64);
        }
    }
    let verified = whole == sequential(params) && whole.drift() < MOST_DRIFT;
    // The energies are in the digest, too: a share of one that was changed on its way is seen.
    let digest = whole.energies.iter().fold(whole.digest, |hash, energy| mix(hash ^ *energy as u64));
    Ok(Outcome::new(elapsed, digest, verified))
}

/// How this rank's block is cut out of the box; nothing in a direction that one rank has to itself.
fn cuts(rank: u32, mesh: Mesh, space: &Space, params: &MdParams) -> Result<Vec<Cut>, ProgramError> {
    let (row, column) = mesh.place(rank);
    let blocks = mesh.block(rank, space.cells[0], space.cells[1]);
    let atoms = 4 * params.units().iter().product::<u64>();
    let mut cuts = Vec::new();
    for (way, name, value, ranks, at, (first, width)) in
        [(0, "x", params.x, mesh.down, row, blocks.0), (1, "y", params.y, mesh.across, column, blocks.1)]
    {
        // A cell on either side that is not the same one: then no atom is copied twice.
        let least = if ranks > 1 { 2 * ranks as usize } else { 3 };
        if space.cells[way] < least {
            let enough = (1..).find(|units| Space::of([*units; 3]).cells[0] >= least).unwrap_or(u64::MAX);
            let allowed = format!("{enough} or more, for {ranks} ranks in its direction");
            return Err(ProgramError::Parameter { name, value, allowed });
        }
        if ranks > 1 {
            let rank_at =
                |along: u32| if way == 0 { along * mesh.across + column } else { row * mesh.across + along };
            // A layer of cells over the whole box, twice, for where the liquid is dense.
            let most = 2 * (atoms / space.cells[way] as u64) as usize + 64;
            let (before, behind) = (rank_at((at + ranks - 1) % ranks), rank_at((at + 1) % ranks));
            cuts.push(Cut { way, first, width, before, behind, most });
        }
    }
    Ok(cuts)
}

/// Takes out the atoms that have left the block: messages to the rank before and to that behind.
fn leaving(atoms: &mut Atoms, cut: &Cut, space: &Space) -> [Vec<u8>; 2] {
    let mut messages = [Vec::new(), Vec::new()];
    let all = space.cells[cut.way];
    let mut at = 0;
    while at < atoms.ids.len() {
        let beyond = (space.cell(&atoms.places[at])[cut.way] + all - cut.first) % all;
        if beyond < cut.width {
            at += 1;
            continue;
        }
        // To whichever side is nearer.
        let message = &mut messages[usize::from(beyond - (cut.width - 1) <= all - beyond)];
        let (id, place, velocity) = atoms.take(at);
        message.extend(id.to_le_bytes());
        message.extend(place.iter().chain(&velocity).flat_map(|value| value.to_le_bytes()));
    }
    messages
}

fn arrive(atoms: &mut Atoms, message: &[u8]) {
    for atom in message.chunks_exact(MOVED_BYTES) {
        atoms.push(word(&atom[..8]), vector(&atom[8..32]), vector(&atom[32..]));
    }
}

/// The places of all atoms, copies among them, in the first and in the last cells of the block.
fn border(atoms: &Atoms, cut: &Cut, space: &Space) -> [Vec<u8>; 2] {
    let mut messages = [Vec::new(), Vec::new()];
    for place in &atoms.places {
        let cell = space.cell(place)[cut.way];
        for (message, edge) in messages.iter_mut().zip([cut.first, cut.first + cut.width - 1]) {
            if cell == edge {
                message.extend(place.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    }
    messages
}

/// Gives a message to each neighbour and takes theirs, from the one behind first.
async fn swap<C: Comm>(
    comm: &mut C,
    cut: &Cut,
    messages: [Vec<u8>; 2],
    most: [usize; 2],
    tags: [Tag; 2],
) -> Result<[Vec<u8>; 2], CommError> {
    let sends = [cut.before, cut.behind].map(Rank);
    let sends = [0, 1].map(|at| Outgoing { to: sends[at], tag: tags[at], message: &messages[at] });
    let mut taken = most.map(|bytes| vec![0; bytes]);
    let [behind, before] = &mut taken;
    // What goes to the rank before comes from the one behind.
    let receive = |from: u32, tag, buffer| Incoming {
        from: Source::Rank(Rank(from)),
        tag: TagMatch::Tag(tag),
        buffer,
        status: None,
    };
    let mut receives = [receive(cut.behind, tags[0], behind), receive(cut.before, tags[1], before)];
    comm.exchange(&sends, &mut receives).await?;
    let lengths = receives.map(|one| one.status.map_or(0, |status| status.bytes.get() as usize));
    for (message, length) in taken.iter_mut().zip(lengths) {
        message.truncate(length);
    }
    Ok(taken)
}

fn word(bytes: &[u8]) -> u64 {
    // A piece of exactly eight bytes.
    u64::from_le_bytes(bytes.try_into().expect("pieces of eight bytes"))
}

fn vector(bytes: &[u8]) -> Vector {
    std::array::from_fn(|way| f64::from_bits(word(&bytes[8 * way..8 * way + 8])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_too_small_for_its_mesh_is_refused_by_its_side() {
        let refused = |units: [u64; 3], down, across| {
            let params = MdParams { x: units[0], y: units[1], z: units[2], steps: 1, down, across };
            let mesh = Mesh { down: down as u32, across: across as u32 };
            cuts(0, mesh, &Space::of(units), &params).err().map(|error| error.to_string())
        };
        assert_eq!(refused([6, 6, 6], 2, 2), None);
        assert_eq!(
            refused([6, 6, 6], 1, 3).unwrap(),
            "y is 6; allowed: 9 or more, for 3 ranks in its direction"
        );
        assert_eq!(
            refused([5, 6, 6], 2, 1).unwrap(),
            "x is 5; allowed: 6 or more, for 2 ranks in its direction"
        );
    }

    #[test]
    fn the_coarse_preset_copies_about_a_megabyte_to_each_neighbour() {
        let (mesh, params) =
            (Mesh { down: 4, across: 1 }, MdParams { x: 12, y: 80, z: 80, steps: 4, down: 4, across: 1 });
        let space = Space::of(params.units());
        let cuts = cuts(1, mesh, &space, &params).expect("is large enough");
        let ((top, rows), _) = mesh.block(1, space.cells[0], space.cells[1]);
        let atoms =
            Atoms::on_lattice(params.units(), |place| (top..top + rows).contains(&space.cell(place)[0]));
        for message in border(&atoms, &cuts[0], &space) {
            assert!((700_000..1_300_000).contains(&message.len()), "{}", message.len());
        }
    }

    #[test]
    fn energy_is_kept_over_many_steps() {
        let params = MdParams { x: 5, y: 5, z: 5, steps: 300, down: 0, across: 0 };
        let drift = sequential(&params).drift();
        assert!(drift > 0.0 && drift < MOST_DRIFT / 4.0, "{drift}");
    }
}
