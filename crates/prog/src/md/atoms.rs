//! Atoms in a periodic box: where they are, what they feel, how they move.
//!
//! Reduced units of the Lennard-Jones potential. Sums of forces and energies are kept in fixed point, as
//! special machines for molecular dynamics keep them: such a sum does not depend on the order of its terms,
//! so any partition of the box gives the same trajectory, bit for bit.

/// Number density of the liquid near its triple point.
pub(super) const DENSITY: f64 = 0.8442;
/// Temperature at the start, of which half soon becomes potential energy.
const TEMPERATURE: f64 = 1.44;
/// Beyond this distance atoms do not feel each other.
pub(super) const CUTOFF: f64 = 2.5;
/// A step in time.
pub(super) const STEP: f64 = 0.002;
/// Fixed point: 2^40 to the unit, for forces up to 8 million.
const FORCE_UNIT: f64 = (1_u64 << 40) as f64;
/// Fixed point: 2^32 to the unit, for energies up to two thousand million.
pub(super) const ENERGY_UNIT: f64 = (1_u64 << 32) as f64;

/// A place, a velocity.
pub(super) type Vector = [f64; 3];

/// The periodic box and its grid of cells, none narrower than [`CUTOFF`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Space {
    pub side: Vector,
    pub cells: [usize; 3],
}

impl Space {
    /// A box of so many unit cells of a face-centred cubic lattice, four atoms each.
    pub fn of(units: [u64; 3]) -> Self {
        let lattice = lattice();
        let side = units.map(|count| count as f64 * lattice);
        Self { side, cells: side.map(|length| (length / CUTOFF) as usize) }
    }

    /// The cell of a place, by direction.
    pub fn cell(&self, place: &Vector) -> [usize; 3] {
        std::array::from_fn(|way| {
            ((place[way] * (self.cells[way] as f64 / self.side[way])) as usize).min(self.cells[way] - 1)
        })
    }

    fn index(&self, cell: [usize; 3]) -> usize {
        (cell[0] * self.cells[1] + cell[1]) * self.cells[2] + cell[2]
    }

    /// From one place to another, to the nearest image.
    fn apart(&self, from: &Vector, to: &Vector) -> Vector {
        std::array::from_fn(|way| {
            let (distance, side) = (to[way] - from[way], self.side[way]);
            if distance > 0.5 * side {
                distance - side
            } else if distance < -0.5 * side {
                distance + side
            } else {
                distance
            }
        })
    }
}

/// The side of a unit cell with four atoms at [`DENSITY`]: the cube root, by Newton's method, the same on
/// every machine.
fn lattice() -> f64 {
    let volume = 4.0 / DENSITY;
    (0..30).fold(1.5, |side: f64, _| side - (side * side * side - volume) / (3.0 * side * side))
}

/// Atoms: a rank's own first, then copies of its neighbours' near the border.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Atoms {
    pub ids: Vec<u64>,
    pub velocities: Vec<Vector>,
    /// Of own atoms, then of copies.
    pub places: Vec<Vector>,
    forces: Vec<[i64; 3]>,
    /// First atom of each cell, and for each atom the next in its cell.
    heads: Vec<u32>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// The lattice's four atoms in a unit cell.
const BASIS: [Vector; 4] = [[0.25, 0.25, 0.25], [0.75, 0.75, 0.25], [0.75, 0.25, 0.75], [0.25, 0.75, 0.75]];

/// Mixes a number (`SplitMix64`, Steele, Lea & Flood 2014).
pub(super) const fn mix(number: u64) -> u64 {
    let a = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}

impl Atoms {
    /// The atoms that `wanted` says, on the lattice. Two neighbours in number have opposite velocities, so
    /// that the whole is at rest.
    pub fn on_lattice(units: [u64; 3], wanted: impl Fn(&Vector) -> bool) -> Self {
        let (mut atoms, lattice) = (Self::default(), lattice());
        let most = (3.0 * TEMPERATURE).sqrt();
        for number in 0..units.iter().product::<u64>() {
            let unit = [number / (units[1] * units[2]), number / units[2] % units[1], number % units[2]];
            for (at, within) in BASIS.iter().enumerate() {
                let place = std::array::from_fn(|way| (unit[way] as f64 + within[way]) * lattice);
                if wanted(&place) {
                    let id = 4 * number + at as u64;
                    let sign = if id.is_multiple_of(2) { 1.0 } else { -1.0 };
                    let velocity = std::array::from_fn(|way| {
                        let even = (mix(3 * (id / 2) + way as u64) >> 11) as f64 / (1_u64 << 53) as f64;
                        sign * most * (2.0 * even - 1.0)
                    });
                    atoms.push(id, place, velocity);
                }
            }
        }
        atoms
    }

    /// Adds an own atom; there must be no copies.
    pub fn push(&mut self, id: u64, place: Vector, velocity: Vector) {
        self.ids.push(id);
        self.places.push(place);
        self.velocities.push(velocity);
    }

    /// Takes out the own atom at `at`; the last takes its index. There must be no copies.
    pub fn take(&mut self, at: usize) -> (u64, Vector, Vector) {
        (self.ids.swap_remove(at), self.places.swap_remove(at), self.velocities.swap_remove(at))
    }

    /// Drops the copies.
    pub fn alone(&mut self) {
        self.places.truncate(self.ids.len());
    }

    /// Half a step of the velocities, by the forces.
    pub fn kick(&mut self, step: f64) {
        for (velocity, force) in self.velocities.iter_mut().zip(&self.forces) {
            for way in 0..3 {
                velocity[way] += 0.5 * step * (force[way] as f64 / FORCE_UNIT);
            }
        }
    }

    /// A step of the places, back into the box.
    pub fn drift(&mut self, space: &Space, step: f64) {
        for (place, velocity) in self.places.iter_mut().zip(&self.velocities) {
            for way in 0..3 {
                place[way] += step * velocity[way];
                if place[way] < 0.0 {
                    place[way] += space.side[way];
                }
                // Also where a tiny negative number has become the side itself.
                if place[way] >= space.side[way] {
                    place[way] -= space.side[way];
                }
            }
        }
    }

    /// Sorts all atoms into cells, and counts the pairs that [`Atoms::feel`] will look at.
    pub fn sort(&mut self, space: &Space) -> u64 {
        let all = space.cells.iter().product();
        self.heads.clear();
        self.heads.resize(all, NONE);
        self.next.clear();
        self.next.resize(self.places.len(), NONE);
        let mut counts = vec![(0_u64, 0_u64); all];
        // From the last to the first, so that a cell lists own atoms before copies.
        for at in (0..self.places.len()).rev() {
            let cell = space.index(space.cell(&self.places[at]));
            self.next[at] = self.heads[cell];
            self.heads[cell] = at as u32;
            if at < self.ids.len() {
                counts[cell].0 += 1;
            } else {
                counts[cell].1 += 1;
            }
        }
        let mut pairs = 0;
        each_cell(space, |cell, around| {
            let (own, _) = counts[cell];
            if own > 0 {
                for &other in around {
                    let (theirs, copies) = counts[other];
                    pairs += own * (theirs + copies);
                }
            }
        });
        pairs
    }

    /// The forces on own atoms by all within [`CUTOFF`], and their share of the potential energy, in
    /// fixed point. The atoms must have been sorted since they moved.
    pub fn feel(&mut self, space: &Space) -> i64 {
        let own = self.ids.len();
        let law = Law::new();
        let mut forces = std::mem::take(&mut self.forces);
        forces.clear();
        forces.resize(own, [0; 3]);
        let mut energy = 0_i64;
        each_cell(space, |cell, around| {
            let mut one = self.heads[cell];
            while one != NONE && (one as usize) < own {
                let here = self.places[one as usize];
                let mut felt = forces[one as usize];
                for &beside in around {
                    let mut other = self.heads[beside];
                    while other != NONE {
                        let at = other as usize;
                        // A pair of own atoms is met twice, and taken once.
                        if at > one as usize {
                            let apart = space.apart(&self.places[at], &here);
                            if let Some((pull, half)) = law.between(&apart) {
                                for way in 0..3 {
                                    felt[way] = felt[way].wrapping_add(pull[way]);
                                }
                                energy = energy.wrapping_add(half);
                                if at < own {
                                    for way in 0..3 {
                                        forces[at][way] = forces[at][way].wrapping_sub(pull[way]);
                                    }
                                    energy = energy.wrapping_add(half);
                                }
                            }
                        }
                        other = self.next[at];
                    }
                }
                forces[one as usize] = felt;
                one = self.next[one as usize];
            }
        });
        self.forces = forces;
        energy
    }

    /// The kinetic energy of own atoms, in fixed point.
    pub fn kinetic(&self) -> i64 {
        let each = |velocity: &Vector| {
            let square = velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2];
            (0.5 * square * ENERGY_UNIT) as i64
        };
        self.velocities.iter().map(each).fold(0, i64::wrapping_add)
    }

    /// The sum of a digest of each own atom, number, place and velocity: of any partition the same.
    pub fn digest(&self) -> u64 {
        let numbers = self.ids.iter().zip(&self.places).zip(&self.velocities);
        numbers.fold(0, |sum: u64, ((id, place), velocity)| {
            let values = place.iter().chain(velocity);
            sum.wrapping_add(values.fold(mix(*id), |hash, value| mix(hash ^ value.to_bits())))
        })
    }
}

/// Calls for every cell with the cells around it, itself among them: indices.
fn each_cell(space: &Space, mut call: impl FnMut(usize, &[usize; 27])) {
    let [across, deep, high] = space.cells;
    let mut around = [0; 27];
    for x in 0..across {
        for y in 0..deep {
            for z in 0..high {
                for (at, index) in around.iter_mut().enumerate() {
                    let step = [at / 9, at / 3 % 3, at % 3];
                    *index = space.index([
                        (x + across + step[0] - 1) % across,
                        (y + deep + step[1] - 1) % deep,
                        (z + high + step[2] - 1) % high,
                    ]);
                }
                call(space.index([x, y, z]), &around);
            }
        }
    }
}

/// The Lennard-Jones potential with its force shifted to end at [`CUTOFF`] without a step.
struct Law {
    /// Potential at the cut-off.
    last: f64,
    /// Its slope there.
    slope: f64,
}

impl Law {
    fn new() -> Self {
        let inverse = 1.0 / (CUTOFF * CUTOFF);
        let sixth = inverse * inverse * inverse;
        Self { last: 4.0 * sixth * (sixth - 1.0), slope: -24.0 * sixth * (2.0 * sixth - 1.0) / CUTOFF }
    }

    /// The force along `apart`, and half the potential energy, in fixed point; none beyond the cut-off.
    /// The force on the other atom is the opposite, to the last bit.
    fn between(&self, apart: &Vector) -> Option<([i64; 3], i64)> {
        let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
        if square >= CUTOFF * CUTOFF {
            return None;
        }
        let (inverse, distance) = (1.0 / square, square.sqrt());
        let sixth = inverse * inverse * inverse;
        let push = 24.0 * sixth * (2.0 * sixth - 1.0) * inverse + self.slope / distance;
        let potential = 4.0 * sixth * (sixth - 1.0) - self.last - (distance - CUTOFF) * self.slope;
        let force = apart.map(|part| (push * part * FORCE_UNIT) as i64);
        Some((force, (0.5 * potential * ENERGY_UNIT) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(units: [u64; 3]) -> (Space, Atoms) {
        (Space::of(units), Atoms::on_lattice(units, |_| true))
    }

    /// Steps of a system alone; the total energies in units.
    fn run(space: &Space, atoms: &mut Atoms, step: f64, steps: usize) -> Vec<f64> {
        atoms.sort(space);
        let mut potential = atoms.feel(space);
        let mut energies = vec![(potential + atoms.kinetic()) as f64 / ENERGY_UNIT];
        for _ in 0..steps {
            atoms.kick(step);
            atoms.drift(space, step);
            atoms.sort(space);
            potential = atoms.feel(space);
            atoms.kick(step);
            energies.push((potential + atoms.kinetic()) as f64 / ENERGY_UNIT);
        }
        energies
    }

    #[test]
    fn the_lattice_fills_the_box_at_its_density_and_rests() {
        let (space, atoms) = started([5, 6, 7]);
        assert_eq!(atoms.ids.len(), 4 * 5 * 6 * 7);
        let density = atoms.ids.len() as f64 / space.side.iter().product::<f64>();
        assert!((density - DENSITY).abs() < 1e-12);
        assert!(space.cells.iter().zip(&space.side).all(|(cells, side)| side / *cells as f64 >= CUTOFF));
        let momentum = atoms.velocities.iter().fold(0.0, |sum, velocity| sum + velocity[1]);
        assert!(momentum.abs() < 1e-9, "{momentum}");
        let warmth = atoms.kinetic() as f64 / ENERGY_UNIT / (1.5 * atoms.ids.len() as f64);
        assert!((warmth - TEMPERATURE).abs() < 0.1, "{warmth}");
    }

    #[test]
    fn cells_find_the_forces_of_all_pairs_bit_for_bit() {
        let (space, mut atoms) = started([5, 6, 8]);
        run(&space, &mut atoms, STEP, 20);
        let (mut forces, mut energy) = (vec![[0_i64; 3]; atoms.ids.len()], 0);
        // Every ordered pair, in the order of their numbers.
        for (one, force) in forces.iter_mut().enumerate() {
            for other in (0..atoms.ids.len()).filter(|other| *other != one) {
                let apart = space.apart(&atoms.places[other], &atoms.places[one]);
                if let Some((pull, half)) = Law::new().between(&apart) {
                    for way in 0..3 {
                        force[way] += pull[way];
                    }
                    energy += half;
                }
            }
        }
        atoms.sort(&space);
        assert_eq!(atoms.feel(&space), energy);
        assert_eq!(atoms.forces, forces);
    }

    #[test]
    fn the_force_is_the_slope_of_the_potential_and_both_end_at_the_cut_off() {
        let law = Law::new();
        let potential =
            |r: f64| law.between(&[r, 0.0, 0.0]).map_or(0.0, |(_, half)| 2.0 * half as f64 / ENERGY_UNIT);
        for r in [0.95, 1.0, 1.122, 1.5, 2.0, 2.49] {
            let slope = (potential(r + 1e-3) - potential(r - 1e-3)) / 2e-3;
            let ([force, ..], _) = law.between(&[r, 0.0, 0.0]).expect("is near");
            let force = force as f64 / FORCE_UNIT;
            assert!((force + slope).abs() < 2e-3 * (1.0 + slope.abs()), "at {r}: {force} and {slope}");
        }
        let ([force, ..], half) = law.between(&[CUTOFF - 1e-9, 0.0, 0.0]).expect("is near");
        assert!(force.abs() < 1 << 13 && half.abs() < 4, "{force} {half}");
        assert_eq!(law.between(&[CUTOFF, 0.0, 0.0]), None);
    }

    #[test]
    fn energy_drifts_with_the_square_of_the_step() {
        let most = |step: f64, steps| {
            let (space, mut atoms) = started([5, 5, 5]);
            let energies = run(&space, &mut atoms, step, steps);
            energies.iter().map(|energy| (energy / energies[0] - 1.0).abs()).fold(0.0, f64::max)
        };
        let (whole, half) = (most(2.0 * STEP, 60), most(STEP, 120));
        assert!((3.0..5.0).contains(&(whole / half)), "{whole} and {half}");
        assert!(half < 1e-4, "{half}");
    }

    #[test]
    fn a_trajectory_runs_backwards() {
        let (space, mut atoms) = started([5, 5, 5]);
        let start = atoms.places.clone();
        run(&space, &mut atoms, STEP, 25);
        for velocity in &mut atoms.velocities {
            *velocity = velocity.map(|part| -part);
        }
        run(&space, &mut atoms, STEP, 25);
        let back = atoms.places.iter().zip(&start);
        let far = back.map(|(a, b)| space.apart(a, b).into_iter().fold(0.0, |m: f64, d| m.max(d.abs())));
        assert!(far.fold(0.0, f64::max) < 1e-8);
    }
}
