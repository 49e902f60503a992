//! Ports, circuits over them, and what passes along.

use wiretwin_engine::{Schedule, Slab, Stream};
use wiretwin_plan::PlanError;
use wiretwin_proto::Output;
use wiretwin_proto::abr::{
    self, CellRate, Destination, Erica, Notifier, Source, SourceCell, SourceOutput, VcIndex,
};
use wiretwin_proto::pcaal;
use wiretwin_units::{BitRate, Cells, SimTime, Span, Transmitter};
use wiretwin_wire::rm;

use super::port::{Cell, Class, Port, PortPlan, Reserve};
use super::task::{End, Task, TaskPlan, TaskReport};
use super::tournament::Tournament;
use crate::load::{Generator, Law};
use crate::port::Taken;

/// A category of service (af-tm-0056 §2). Rates count 424 bits a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Category {
    /// A rate that is guaranteed, and that the source keeps to: constant bit rate, or variable without bursts.
    Guaranteed(BitRate),
    /// Available bit rate.
    Abr(abr::Config),
    /// Unspecified bit rate: nothing is promised, nothing asked.
    Ubr,
}

impl Category {
    /// What a port sets aside for a circuit, in bit/s.
    fn guaranteed(&self) -> f64 {
        match self {
            Self::Guaranteed(rate) => rate.get() as f64,
            Self::Abr(config) => config.mcr.cells_per_s() * CELL_BITS as f64,
            Self::Ubr => 0.0,
        }
    }
}

/// A circuit with a source of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitPlan {
    /// What it is called.
    pub name: String,
    /// The ports it crosses, in order; each at most once.
    pub path: Vec<usize>,
    /// What it is promised.
    pub category: Category,
    /// Its source; `None` for one that always has a cell, on a circuit whose rate is told.
    pub law: Option<Law>,
    /// From the source to the first port.
    pub access: Span,
}

impl CircuitPlan {
    /// A key of it, as errors name them.
    fn key(&self, what: &str) -> String {
        format!("circuits.{}.{what}", self.name)
    }
}

/// Counts of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitReport {
    /// Cells that carried data, sent.
    pub sent: u64,
    /// Forward resource management cells sent.
    pub management: u64,
    /// Cells lost in queues.
    pub lost: u64,
    /// Cells that came out at the other end.
    pub delivered: u64,
    /// Those of them with data.
    pub delivered_data: u64,
    /// Backward cells that ports made by themselves (BECN).
    pub notified: u64,
}

/// What is inside a cell, where it matters.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Rm(rm::Repr),
    Task(u32, pcaal::Cell),
}

/// Something on its way.
#[derive(Clone, Debug)]
enum Arrival {
    /// A cell reaches a port.
    ToPort(Cell),
    /// A backward resource management cell reaches the port before this many of its circuit, counted down;
    /// at 0 the source.
    Backward(u16, usize, rm::Repr),
    /// A cell of a task reaches one of its ends.
    ToEnd(u32, End, pcaal::Cell),
}

/// How a circuit's cells come to be.
#[derive(Clone, Debug)]
enum Sender {
    /// They leave as they come to be.
    Open(Generator),
    /// They leave at the rate that is allowed.
    Abr(Box<Source>, Option<Generator>),
    /// They are handed in and leave at this rate.
    Paced(Transmitter),
}

#[derive(Clone, Debug)]
pub(super) struct Circuit {
    name: String,
    path: Vec<(u16, VcIndex)>,
    class: Class,
    sender: Sender,
    destination: Destination,
    /// One for each port on its way.
    notifiers: Vec<Notifier>,
    access: Span,
    /// Whose it is: an end of a task hands cells in.
    task: Option<u32>,
    /// What was handed in and has not left.
    queue: std::collections::VecDeque<u32>,
    pub report: CircuitReport,
}

/// A network.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Its ports.
    pub ports: Vec<PortPlan>,
    /// Circuits with sources of their own.
    pub circuits: Vec<CircuitPlan>,
    /// Tasks that send messages.
    pub tasks: Vec<TaskPlan>,
}

/// A network that runs.
pub struct Network {
    now: SimTime,
    /// When each part acts next: arrivals, ports, circuits, tasks.
    next: Tournament,
    schedule: Schedule<u32>,
    arrivals: Slab<Arrival>,
    contents: Slab<Content>,
    ports: Vec<Port>,
    pub(super) circuits: Vec<Circuit>,
    pub(super) tasks: Vec<Task>,
}

/// The most circuits and ports.
const MOST: usize = 4096;

impl Plan {
    /// Builds it: checks every part, and that what is guaranteed fits every line.
    ///
    /// # Errors
    /// [`PlanError`] naming the part, its value and what is allowed.
    pub fn build(&self, seed: u64) -> Result<Network, PlanError> {
        if !(1..=MOST).contains(&self.ports.len()) {
            return Err(PlanError::new("ports", self.ports.len(), format!("1 to {MOST}")));
        }
        let circuits = self.circuits.len() + 3 * self.tasks.len();
        if circuits > MOST {
            return Err(PlanError::new(
                "circuits",
                circuits,
                format!("at most {MOST}, three a task counted in"),
            ));
        }
        let mut ports = Vec::new();
        for (number, plan) in self.ports.iter().enumerate() {
            let key = |what| format!("ports[{number}].{what}");
            if plan.buffer.is_zero() {
                return Err(PlanError::new(key("buffer"), plan.buffer, "1 cell or more"));
            }
            let erica = plan.erica.map(Erica::new).transpose();
            let erica = erica.map_err(|error| PlanError::new(key("erica"), error, "rates that can be"))?;
            ports.push(Port::new(*plan, erica));
        }
        let mut network = Network {
            now: SimTime::ZERO,
            next: Tournament::new(1 + self.ports.len() + circuits + self.tasks.len()),
            schedule: Schedule::new(),
            arrivals: Slab::new(),
            contents: Slab::new(),
            ports,
            circuits: Vec::new(),
            tasks: Vec::new(),
        };
        let mut guaranteed = vec![0.0; self.ports.len()];
        for plan in &self.circuits {
            network.admit(plan, &mut guaranteed)?;
            if let Some(Law::OnOff { interval: cell, on, .. }) = plan.law
                // Else a single cell would take thousands of times on, each drawn.
                && on.as_ps().saturating_mul(1000) < cell.as_ps()
            {
                let allowed = format!("a thousandth of the time of a cell, {cell}, or more");
                return Err(PlanError::new(plan.key("source.on"), on, allowed));
            }
            let stream = Stream::derive(seed, &format!("service/circuit {}", plan.name));
            let sender = match (plan.category, plan.law) {
                (Category::Abr(config), law) => {
                    let source = Source::new(config).expect("the contract was checked");
                    let generator = law.map(|law| Generator::new(law, stream));
                    Sender::Abr(Box::new(source), generator)
                }
                (_, None) => {
                    return Err(PlanError::new(
                        plan.key("source"),
                        "greedy",
                        "a rate, on a circuit that is not abr",
                    ));
                }
                (_, Some(law)) => Sender::Open(Generator::new(law, stream)),
            };
            network.add(plan, sender, None);
        }
        for (number, plan) in self.tasks.iter().enumerate() {
            network.add_task(number as u32, plan, &mut guaranteed, seed)?;
        }
        for number in 0..network.circuits.len() {
            let circuit = &mut network.circuits[number];
            if let Sender::Abr(source, None) = &mut circuit.sender
                && circuit.task.is_none()
            {
                source.offer(SimTime::ZERO, Cells::new(u64::MAX / 2));
            }
            network.send_on(number);
        }
        for number in 0..network.tasks.len() {
            network.look_after(number);
        }
        Ok(network)
    }
}

impl Network {
    /// Checks a circuit and sets aside what is guaranteed of it.
    fn admit(&self, plan: &CircuitPlan, guaranteed: &mut [f64]) -> Result<(), PlanError> {
        if let Category::Abr(config) = plan.category {
            let wrong = |error| PlanError::new(plan.key("category.abr"), error, "rates that can be");
            config.check().map_err(wrong)?;
        }
        if !(1..=usize::from(u8::MAX)).contains(&plan.path.len()) {
            let value = format!("{} ports", plan.path.len());
            return Err(PlanError::new(plan.key("path"), value, "1 to 255"));
        }
        for (place, &port) in plan.path.iter().enumerate() {
            if port >= self.ports.len() || plan.path[..place].contains(&port) {
                let allowed = format!("ports 0 to {}, each at most once", self.ports.len() - 1);
                return Err(PlanError::new(plan.key("path"), port, allowed));
            }
            let line = self.ports[port].plan.rate;
            let asked = plan.category.guaranteed();
            if guaranteed[port] + asked > line.get() as f64 {
                let left = line.get() as f64 - guaranteed[port];
                let allowed = format!("at most {left} bit/s, which port {port} has left of {line}");
                return Err(PlanError::new(plan.key("category"), format!("{asked} bit/s"), allowed));
            }
            guaranteed[port] += asked;
            if matches!(plan.category, Category::Abr(_)) && self.ports[port].erica.is_none() {
                let allowed = format!("any but abr: port {port} tells no rates");
                return Err(PlanError::new(plan.key("category"), "abr", allowed));
            }
        }
        Ok(())
    }

    fn add(&mut self, plan: &CircuitPlan, sender: Sender, task: Option<u32>) -> usize {
        let class = match plan.category {
            Category::Abr(_) => Class::Abr,
            Category::Ubr => Class::Ubr,
            Category::Guaranteed(_) => Class::Guaranteed,
        };
        let mut path = Vec::new();
        for &port in &plan.path {
            let erica = self.ports[port].erica.as_mut().filter(|_| class == Class::Abr);
            path.push((port as u16, erica.map_or(VcIndex(0), Erica::add)));
        }
        self.circuits.push(Circuit {
            name: plan.name.clone(),
            path,
            class,
            sender,
            destination: Destination::new(),
            notifiers: vec![Notifier::new(); plan.path.len()],
            access: plan.access,
            task,
            queue: std::collections::VecDeque::new(),
            report: CircuitReport::default(),
        });
        self.circuits.len() - 1
    }

    fn add_task(
        &mut self,
        number: u32,
        plan: &TaskPlan,
        guaranteed: &mut [f64],
        seed: u64,
    ) -> Result<(), PlanError> {
        let category = |category, kind: &str| CircuitPlan {
            name: format!("{} {kind}", plan.name),
            path: plan.path.clone(),
            category,
            law: None,
            access: plan.access,
        };
        let circuits = [
            (category(Category::Ubr, "ordinary"), None),
            (category(Category::Abr(plan.backup), "backup"), Some(plan.backup)),
            (category(Category::Guaranteed(plan.control), "control"), None),
        ];
        let mut numbers = [0; 3];
        for (place, (circuit, abr)) in circuits.iter().enumerate() {
            self.admit(circuit, guaranteed)?;
            let sender = match abr {
                Some(config) => Sender::Abr(Box::new(Source::new(*config).expect("it was checked")), None),
                None if place == 0 => Sender::Paced(Transmitter::new(plan.line)),
                None => Sender::Paced(Transmitter::new(plan.control)),
            };
            numbers[place] = self.add(circuit, sender, Some(number));
        }
        let stream = Stream::derive(seed, &format!("service/task {}", plan.name));
        let there: Span = plan.path.iter().map(|&port| self.ports[port].plan.delay).sum();
        let task = Task::new(plan, numbers, plan.access + there, stream).map_err(|error| {
            PlanError::new(format!("tasks.{}.layer", plan.name), error, "a layer that can be")
        })?;
        self.tasks.push(task);
        Ok(())
    }

    /// The clock.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// Runs up to a time.
    pub fn run_until(&mut self, end: SimTime) {
        let circuits_from = 1 + self.ports.len();
        let tasks_from = circuits_from + self.circuits.len();
        loop {
            let (time, part) = self.next.first();
            if time > end {
                break;
            }
            debug_assert!(time >= self.now, "time goes on");
            self.now = time;
            if part == 0 {
                self.take_arrival();
            } else if part < circuits_from {
                self.leave(part - 1);
            } else if part < tasks_from {
                self.due(part - circuits_from);
            } else {
                let number = part - tasks_from;
                self.tasks[number].handle_time(time);
                self.look_after(number);
            }
        }
        self.now = end;
    }

    fn arrive_at(&mut self, time: SimTime, arrival: Arrival) {
        let number = self.arrivals.insert(arrival);
        let scheduled = self.schedule.at(time, number);
        debug_assert!(scheduled.is_ok(), "arrivals lie ahead");
        self.next.set(0, self.schedule.next_time().unwrap_or(SimTime::MAX));
    }

    fn take_arrival(&mut self) {
        let event = self.schedule.next().expect("an arrival is due");
        self.next.set(0, self.schedule.next_time().unwrap_or(SimTime::MAX));
        match self.arrivals.remove(event.what) {
            Arrival::ToPort(cell) => self.arrive(cell),
            Arrival::Backward(circuit, before, cell) => self.go_back(usize::from(circuit), before, cell),
            Arrival::ToEnd(task, end, cell) => {
                self.tasks[task as usize].handle_cell(self.now, end, cell);
                self.look_after(task as usize);
            }
        }
    }

    // Circuits

    /// A circuit has something to send by now.
    #[inline]
    fn due(&mut self, number: usize) {
        let now = self.now;
        let circuit = &mut self.circuits[number];
        match &mut circuit.sender {
            Sender::Open(generator) => {
                generator.advance();
                let next = generator.next();
                self.next.set(1 + self.ports.len() + number, next);
                self.emit(number, Cell::EMPTY, 0);
            }
            Sender::Abr(source, Some(generator)) => {
                if generator.next() <= now {
                    generator.advance();
                    source.offer(now, Cells::new(1));
                }
                self.send_on(number);
            }
            Sender::Abr(..) | Sender::Paced(_) => self.go_on(number),
        }
    }

    /// Sends what a circuit may send now, and says when it may go on.
    fn send_on(&mut self, number: usize) {
        let now = self.now;
        let next = loop {
            let circuit = &mut self.circuits[number];
            match &mut circuit.sender {
                Sender::Open(generator) => break generator.next(),
                Sender::Paced(line) => {
                    if circuit.queue.is_empty() {
                        break SimTime::MAX;
                    }
                    if line.is_busy(now) {
                        break line.free_at();
                    }
                    let sent = line.send(now, Cells::new(1).bits());
                    debug_assert!(sent.is_ok(), "a run ends long before time does");
                    let content = circuit.queue.pop_front().expect("it is not empty");
                    self.emit(number, content, 0);
                }
                Sender::Abr(source, generator) => {
                    source.handle_timeout(now);
                    match source.poll_output() {
                        SourceOutput::Transmit(SourceCell::Data) => {
                            let content = circuit.queue.pop_front().unwrap_or(Cell::EMPTY);
                            self.emit(number, content, 0);
                        }
                        SourceOutput::Transmit(
                            SourceCell::Forward(cell) | SourceCell::TaggedForward(cell),
                        ) => {
                            let content = self.contents.insert(Content::Rm(cell));
                            self.emit(number, content, Cell::RM);
                        }
                        Output::Timeout(at) => {
                            let at = at.unwrap_or(SimTime::MAX);
                            break generator.as_ref().map_or(at, |generator| at.min(generator.next()));
                        }
                        // The other direction has no source here: nothing is turned around within this one.
                        SourceOutput::Transmit(SourceCell::Backward(_))
                        | Output::Event(_)
                        | Output::Work(_)
                        | Output::Deliver(_) => {}
                    }
                }
            }
        };
        self.next.set(1 + self.ports.len() + number, next);
    }

    /// The same, and lets the task whose circuit it is hand in more.
    fn go_on(&mut self, number: usize) {
        self.send_on(number);
        if let Some(task) = self.circuits[number].task {
            self.tell(task as usize, number);
            self.look_after(task as usize);
        }
    }

    /// Tells a task whether its circuit takes more.
    fn tell(&mut self, task: usize, circuit: usize) {
        let busy = !self.circuits[circuit].queue.is_empty();
        self.tasks[task].set_busy(self.now, circuit, busy);
    }

    /// A cell leaves its source.
    #[inline]
    fn emit(&mut self, number: usize, content: u32, flags: u8) {
        let circuit = &mut self.circuits[number];
        if flags & Cell::RM == 0 {
            circuit.report.sent += 1;
        } else {
            circuit.report.management += 1;
        }
        let cell = Cell { circuit: number as u16, hop: 0, flags, content };
        if circuit.task.is_some() && !circuit.access.is_zero() {
            let at = self.now + circuit.access;
            self.arrive_at(at, Arrival::ToPort(cell));
        } else {
            // A source of its own stands beside the first port: where its clock begins does not matter, and
            // what comes back to it takes the way there twice.
            self.arrive(cell);
        }
    }

    // Ports

    /// A cell reaches the next port of its circuit.
    #[inline]
    fn arrive(&mut self, cell: Cell) {
        let now = self.now;
        let circuit = &mut self.circuits[usize::from(cell.circuit)];
        let (place, vc) = circuit.path[usize::from(cell.hop)];
        let class = circuit.class;
        let port = &mut self.ports[usize::from(place)];
        let waiting = Cells::new(port.waiting());
        let notifies = class == Class::Abr && port.plan.becn.is_some_and(|limit| waiting > limit);
        if let Some(erica) = &mut port.erica {
            erica.handle_timeout(now, waiting);
            match class {
                Class::Abr => {
                    if cell.flags & Cell::RM != 0
                        && let Content::Rm(forward) = &mut self.contents[cell.content]
                    {
                        erica.handle_forward(vc, forward);
                    }
                    erica.handle_cell(now, vc, waiting);
                }
                Class::Ubr if port.plan.reserve == Reserve::Guaranteed => {}
                Class::Guaranteed | Class::Ubr => erica.handle_guaranteed(Cells::new(1)),
            }
        }
        let made = if notifies { circuit.notifiers[usize::from(cell.hop)].becn(now) } else { None };
        circuit.report.notified += u64::from(made.is_some());
        match port.take(now, cell, class) {
            Taken::Sent(end) | Taken::Marked(end) => self.next.set(1 + usize::from(place), end),
            Taken::Waits => {}
            Taken::Instead(other) => self.lose(other),
            Taken::Lost => self.lose(cell),
        }
        if let Some(made) = made {
            self.send_back(usize::from(cell.circuit), usize::from(cell.hop), made);
        }
    }

    fn lose(&mut self, cell: Cell) {
        self.circuits[usize::from(cell.circuit)].report.lost += 1;
        if cell.content != Cell::EMPTY
            && let Content::Task(task, lost) = self.contents.remove(cell.content)
        {
            self.tasks[task as usize].lost(&lost);
        }
    }

    /// The cell on a port's line has left.
    #[inline]
    fn leave(&mut self, number: usize) {
        let now = self.now;
        let port = &mut self.ports[number];
        let (mut cell, next) = port.left(now);
        let delay = port.plan.delay;
        self.next.set(1 + number, next.unwrap_or(SimTime::MAX));
        let circuit = &mut self.circuits[usize::from(cell.circuit)];
        if usize::from(cell.hop) + 1 < circuit.path.len() {
            cell.hop += 1;
            return self.arrive_at(now + delay, Arrival::ToPort(cell));
        }
        circuit.report.delivered += 1;
        circuit.report.delivered_data += u64::from(cell.flags & Cell::RM == 0);
        if circuit.class == Class::Abr && cell.flags & Cell::RM == 0 {
            circuit.destination.handle_data(cell.flags & Cell::EFCI != 0);
        }
        if cell.content == Cell::EMPTY {
            return;
        }
        match self.contents.remove(cell.content) {
            Content::Rm(forward) => {
                // There and back again, to the port.
                let circuit = &mut self.circuits[usize::from(cell.circuit)];
                let backward = circuit.destination.handle_forward(&forward);
                let hops = circuit.path.len();
                self.arrive_at(now + delay + delay, Arrival::Backward(cell.circuit, hops, backward));
            }
            Content::Task(task, mut inside) => {
                inside.congestion = cell.flags & Cell::EFCI != 0;
                self.arrive_at(now + delay, Arrival::ToEnd(task, End::Receiver, inside));
            }
        }
    }

    /// A backward cell is at the port before so many of its circuit, or at its source.
    fn go_back(&mut self, number: usize, before: usize, mut cell: rm::Repr) {
        let circuit = &mut self.circuits[number];
        let Some(hop) = before.checked_sub(1) else {
            if let Sender::Abr(source, _) = &mut circuit.sender {
                source.handle_backward(self.now, &cell);
            }
            return self.go_on(number);
        };
        let (port, vc) = circuit.path[hop];
        if let Some(erica) = &mut self.ports[usize::from(port)].erica {
            erica.handle_backward(vc, &mut cell);
        }
        self.send_back(number, hop, cell);
    }

    /// Sends a backward cell from the port of this number on a circuit's way to what is before it.
    fn send_back(&mut self, number: usize, hop: usize, cell: rm::Repr) {
        let circuit = &self.circuits[number];
        let delay = match hop.checked_sub(1) {
            Some(earlier) => self.ports[usize::from(circuit.path[earlier].0)].plan.delay,
            None if circuit.task.is_some() => circuit.access,
            None => circuit.access + circuit.access,
        };
        self.arrive_at(self.now + delay, Arrival::Backward(number as u16, hop, cell));
    }

    // Tasks

    /// Lets a task's machines say what they want, and says when it is their turn again.
    fn look_after(&mut self, number: usize) {
        let now = self.now;
        // Cells that are handed in may leave at once, which may let the machine hand in more.
        while let Some((circuit, cell)) = self.tasks[number].next_cell(now) {
            match circuit {
                Some(circuit) => {
                    let content = self.contents.insert(Content::Task(number as u32, cell));
                    let circuit_of = &mut self.circuits[circuit];
                    circuit_of.queue.push_back(content);
                    if let Sender::Abr(source, _) = &mut circuit_of.sender {
                        source.offer(now, Cells::new(1));
                    }
                    self.send_on(circuit);
                    self.tell(number, circuit);
                }
                None => {
                    let at = self.tasks[number].carry_back(now);
                    self.arrive_at(at, Arrival::ToEnd(number as u32, End::Sender, cell));
                }
            }
        }
        let place = 1 + self.ports.len() + self.circuits.len() + number;
        self.next.set(place, self.tasks[number].due());
    }

    // What was seen

    /// Counts of the circuits with sources of their own and of those of tasks, by name.
    pub fn circuits(&self) -> impl Iterator<Item = (&str, CircuitReport)> {
        self.circuits.iter().map(|circuit| (circuit.name.as_str(), circuit.report))
    }

    /// The rate that a circuit of available rate is allowed now.
    pub fn allowed(&self, circuit: usize) -> Option<CellRate> {
        match &self.circuits.get(circuit)?.sender {
            Sender::Abr(source, _) => Some(source.allowed()),
            Sender::Open(_) | Sender::Paced(_) => None,
        }
    }

    /// Of each port: cells sent, those that it marked (EFCI), the mean number that waited and the most.
    pub fn ports(&self) -> impl Iterator<Item = (u64, u64, f64, u64)> {
        self.ports.iter().map(|port| (port.sent, port.marked, port.mean_waiting(self.now), port.longest()))
    }

    /// What was seen of each task.
    pub fn tasks(&self) -> impl Iterator<Item = TaskReport> {
        self.tasks.iter().map(|task| {
            let count = |circuit: usize| self.circuits[circuit].report;
            task.report(self.now, task.circuits().map(count))
        })
    }

    /// Checks that every cell sent is delivered, lost or under way.
    ///
    /// # Errors
    /// The name of the first circuit whose books do not balance.
    pub fn audit(&self) -> Result<(), String> {
        let mut held = vec![0_u64; self.circuits.len()];
        let under_way = self.arrivals.iter().filter_map(|arrival| match arrival {
            Arrival::ToPort(cell) => Some(*cell),
            _ => None,
        });
        for cell in self.ports.iter().flat_map(Port::held).chain(under_way) {
            held[usize::from(cell.circuit)] += 1;
        }
        for (circuit, held) in self.circuits.iter().zip(held) {
            let CircuitReport { sent, management, lost, delivered, .. } = circuit.report;
            if sent + management != lost + delivered + held {
                return Err(format!(
                    "{}: {sent} + {management} sent; {delivered} delivered, {lost} lost, {held} under way",
                    circuit.name
                ));
            }
        }
        Ok(())
    }
}

/// From one cell to the next at a rate, rounded down.
pub(super) fn cell_time(rate: BitRate) -> Span {
    Span::from_ps((u128::from(CELL_BITS) * 1_000_000_000_000 / u128::from(rate.get())) as u64)
}

/// Bits of a cell.
const CELL_BITS: u64 = 424;

/// A rate in cells of 424 bits.
pub(super) fn cells_per_s(rate: BitRate) -> CellRate {
    CellRate::new(rate.get() as f64 / CELL_BITS as f64).expect("a rate of bits is finite and above 0")
}
