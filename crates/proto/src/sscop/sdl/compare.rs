//! The machine beside the table, told the same.

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, vec};

use wiretwin_units::{Seq, SimTime, Span};

use super::{BITS, NUMBERS, Said, Sdl};
use crate::sscop::testbed::{Random, drain, payload, small};
use crate::sscop::{Config, Delivered, Event, Machine, ManagementError, Pdu, Retrieval};
use crate::{Output, Payload};

/// What the machine says, in the words of the table.
fn words(outputs: Vec<Output<Pdu<BITS>, Delivered<BITS>, Event>>) -> Said {
    let word = |output| match output {
        Output::Transmit(pdu) => format!("{pdu} {:?}", Pdu::payload(&pdu)),
        Output::Deliver(Delivered::Data { payload, number }) => format!("data {number} {payload:?}"),
        Output::Deliver(Delivered::Unitdata(payload)) => format!("ud {payload:?}"),
        Output::Deliver(Delivered::Management(payload)) => format!("md {payload:?}"),
        Output::Deliver(Delivered::Retrieved(payload)) => format!("retrieved {payload:?}"),
        Output::Event(Event::EstablishIndication { uu }) => format!("establish.ind {uu:?}"),
        Output::Event(Event::EstablishConfirm { uu }) => format!("establish.conf {uu:?}"),
        Output::Event(Event::ReleaseIndication { source, uu }) => format!("release.ind {source:?} {uu:?}"),
        Output::Event(Event::ReleaseConfirm { uu }) => format!("release.conf {uu:?}"),
        Output::Event(Event::ResyncIndication { uu }) => format!("resync.ind {uu:?}"),
        Output::Event(Event::ResyncConfirm) => "resync.conf".to_string(),
        Output::Event(Event::RecoverIndication) => "recover.ind".to_string(),
        Output::Event(Event::RetrieveComplete) => "retrieve.compl".to_string(),
        Output::Event(Event::Error(ManagementError::Retransmitted(count))) => format!("V {count}"),
        Output::Event(Event::Error(error)) => error.letter().to_string(),
        output => panic!("{output:?}"),
    };
    outputs.into_iter().map(word).collect()
}

/// One end of each kind, told the same.
struct Both {
    machine: Machine<BITS>,
    sdl: Sdl,
    now: u64,
    timeout: Option<SimTime>,
    /// What the last event made the machine send.
    sent: Vec<Pdu<BITS>>,
    /// The letters of the management errors so far.
    letters: BTreeSet<char>,
}

impl Both {
    fn new(config: Config) -> Self {
        let machine = Machine::new(config).expect("a good configuration");
        Self {
            machine,
            sdl: Sdl::new(config),
            now: 0,
            timeout: None,
            sent: Vec::new(),
            letters: BTreeSet::new(),
        }
    }

    fn at(&self) -> SimTime {
        SimTime::from_ps(self.now)
    }

    fn request(&mut self, which: u64, payload: Payload) -> (&'static str, bool, bool) {
        let (now, uu) = (self.at(), Some(payload));
        self.sdl.now = self.now;
        let (machine, sdl) = (&mut self.machine, &mut self.sdl);
        let what = match which % 3 {
            0 => Retrieval::Unsent,
            1 => Retrieval::Unacknowledged,
            _ => Retrieval::After(Seq::wrapping(which as u32)),
        };
        let mut both = |name, done: Result<(), _>, uu| (name, done.is_ok(), sdl.run(name, None, uu));
        match which % 16 {
            0 => both("ESTABLISH.request", machine.establish(now, uu), uu),
            1 => both("ESTABLISH.response", machine.respond_establish(now, uu), uu),
            2 => both("RELEASE.request", machine.release(now, uu), uu),
            3 => both("RESYNC.request", machine.resync(now, uu), uu),
            4 | 5 => both("RESYNC.response", machine.respond_resync(now), None),
            6 | 7 => both("RECOVER.response", machine.respond_recover(now), None),
            8 => ("RETRIEVE.request", machine.retrieve(now, what).is_ok(), sdl.retrieve(what)),
            _ => both("DATA.request", machine.send(now, payload), uu),
        }
    }

    fn pdu(&mut self, pdu: &Pdu<BITS>) {
        self.sdl.pass(self.now);
        self.machine.handle_pdu(self.at(), pdu.clone());
        self.sdl.pdu(pdu);
    }

    fn pass(&mut self, to: u64) {
        self.now = to;
        self.machine.handle_timeout(SimTime::from_ps(to));
        self.sdl.pass(to);
    }

    /// Compares what was said, and where both stand.
    fn compare(&mut self, what: &str) {
        let (outputs, timeout) = drain(&mut self.machine);
        self.sent = outputs
            .iter()
            .filter_map(|output| if let Output::Transmit(pdu) = output { Some(pdu.clone()) } else { None })
            .collect();
        self.letters.extend(outputs.iter().filter_map(|output| match output {
            Output::Event(Event::Error(error)) => Some(error.letter()),
            _ => None,
        }));
        self.sdl.send_all();
        assert_eq!(words(outputs), core::mem::take(&mut self.sdl.said), "{what}");
        assert_eq!(self.machine.state() as u32, self.sdl.state, "{what}");
        let next = self.sdl.timers.values().min().map(|&at| SimTime::from_ps(at));
        assert_eq!(timeout, next, "{what}: {:?}", self.sdl.timers);
        self.timeout = timeout;
        let both = &self.machine;
        assert_eq!(both.sender.waiting(), self.sdl.xq.len(), "{what}");
        assert_eq!((both.receiver.vr_r.get(), both.receiver.kept()), (self.sdl.vr["r"], self.sdl.rbuf.len()));
    }
}

/// Any PDU, its numbers near what `both` has.
fn any_pdu(random: &mut Random, both: &Both, message: u64) -> Pdu<BITS> {
    let mut near = |base: u32| Seq::wrapping(base + random.below(6) as u32 + NUMBERS - 2);
    let machine = &both.machine;
    let (s, mr) = (near(machine.receiver.vr_h.get()), near(machine.sender.vt_s.get() + 3));
    let (ps, r) = (near(machine.sender.vt_pa.get()), near(machine.sender.vt_a.get()));
    let (first, end) = (near(machine.sender.vt_a.get()), near(machine.sender.vt_a.get() + 2));
    let third = near(machine.sender.vt_a.get() + 4);
    let sq = Seq::wrapping(both.sdl.vr["sq"] + random.below(2) as u32);
    let uu = random.chance(50).then(|| payload(message));
    match random.below(18) {
        0 => Pdu::Bgn { sq, mr, uu },
        1 => Pdu::Bgak { mr, uu },
        2 => Pdu::Bgrej { uu },
        3 => Pdu::End { by_sscop: random.chance(50), uu },
        4 => Pdu::Endak,
        5 => Pdu::Rs { sq, mr, uu },
        6 => Pdu::Rsak { mr },
        7 => Pdu::Er { sq, mr },
        8 => Pdu::Erak { mr },
        9 | 10 => Pdu::Sd { s, payload: payload(message) },
        11 => Pdu::Poll { ps, s },
        12 => Pdu::Stat { ps, mr, r, list: [first, end, third, end][..random.below(5) as usize].to_vec() },
        13 => Pdu::Ustat { first, end, mr, r },
        14 => Pdu::Ud { payload: payload(message) },
        15 => Pdu::Md { payload: payload(message) },
        16 => Pdu::Stat { ps, mr, r: machine.sender.vt_a, list: vec![first, end] },
        _ => Pdu::Ustat { first, end, mr, r: machine.sender.vt_a },
    }
}

fn config(random: &mut Random) -> Config {
    Config {
        clear_buffers: random.chance(50),
        poll_after_retransmission: random.chance(50),
        max_cc: 2,
        max_stat: 3 + 2 * random.below(2) as u32,
        ..small(1 + random.below(7) as u32)
    }
}

/// Leads both to a state, the shortest way.
fn lead(both: &mut Both, state: u32) {
    let (n, sq) = (Seq::<BITS>::wrapping, Seq::wrapping(77));
    let connected = |both: &mut Both| {
        both.request(0, payload(0));
        both.pdu(&Pdu::Bgak { mr: n(7), uu: None });
    };
    match state {
        1 => {}
        2 => drop(both.request(0, payload(0))),
        3 => both.pdu(&Pdu::Bgn { sq, mr: n(7), uu: None }),
        4 => {
            both.request(0, payload(0));
            both.request(2, payload(0));
        }
        _ => connected(both),
    }
    match state {
        5 => drop(both.request(3, payload(0))),
        6 => both.pdu(&Pdu::Rs { sq, mr: n(7), uu: None }),
        7 | 8 => both.pdu(&Pdu::Stat { ps: n(9), mr: n(7), r: n(0), list: vec![] }),
        9 => both.pdu(&Pdu::Er { sq, mr: n(7) }),
        _ => {}
    }
    if state == 8 {
        both.pdu(&Pdu::Erak { mr: n(7) });
    }
    both.compare("the way there");
    assert_eq!(both.sdl.state, state);
}

#[test]
fn the_machine_does_what_the_table_says_whatever_happens() {
    let (mut met, mut letters) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let mut both = Both::new(config(&mut random));
        lead(&mut both, seed as u32 % 10 + 1);
        for step in 0..25 {
            let before = both.sdl.state;
            let what = match random.below(10) {
                0..4 => {
                    let which = random.below(48);
                    let (name, done, table) = both.request(which, payload(step));
                    assert_eq!(done, table, "{name} in state {before}");
                    name.to_string()
                }
                4..9 => {
                    let pdu = any_pdu(&mut random, &both, step);
                    // One with the N(SQ) that came last is another event.
                    let again = match pdu {
                        Pdu::Bgn { sq, .. } | Pdu::Rs { sq, .. } | Pdu::Er { sq, .. } => {
                            sq.get() == both.sdl.vr["sq"]
                        }
                        _ => false,
                    };
                    both.pdu(&pdu);
                    if again { format!("again:{pdu}") } else { pdu.to_string() }
                }
                _ => {
                    let to = both.timeout.map_or(both.now, SimTime::as_ps);
                    both.pass(to.max(both.now) + random.below(2) * Span::from_ms(9).as_ps());
                    "time".to_string()
                }
            };
            both.compare(&format!("seed {seed}, step {step}, state {before}: {what}"));
            let name = what.split(' ').next().unwrap_or_default().to_string();
            met.insert((before, name));
        }
        letters.append(&mut both.letters);
    }
    let names = "BGN again:BGN BGAK BGREJ END ENDAK RS again:RS RSAK ER again:ER ERAK SD POLL STAT USTAT UD MD time \
        ESTABLISH.request ESTABLISH.response RELEASE.request RESYNC.request RESYNC.response \
        RECOVER.response RETRIEVE.request DATA.request";
    for state in 1..=10 {
        for name in names.split_whitespace() {
            assert!(met.contains(&(state, name.to_string())), "state {state} has not met {name}");
        }
    }
    // There is no N, and no state in which an END would be E. V, W and X come where data flow.
    let all: BTreeSet<_> = "ABCDFGHIJKLMOPQRSTU".chars().collect();
    assert_eq!(letters, all);
}

#[test]
fn two_ends_that_talk_do_what_the_table_says() {
    let mut letters = BTreeSet::new();
    for seed in 0..200 {
        let mut random = Random::new(1_000_000 + seed);
        let config = Config { max_cc: 4, ..config(&mut random) };
        let mut ends = [Both::new(config), Both::new(config)];
        let mut lines: [Vec<Pdu<BITS>>; 2] = [Vec::new(), Vec::new()];
        ends[0].request(0, payload(0));
        let mut data = 0;
        for step in 0..150 {
            for end in 0..2 {
                ends[end].compare(&format!("seed {seed}, step {step}, end {end}"));
                lines[1 - end].append(&mut ends[end].sent);
            }
            let end = random.below(2) as usize;
            let both = &mut ends[end];
            // A user that answers, and sends.
            let which = match both.sdl.state {
                3 => 1,
                6 => 4,
                8 | 9 => 6,
                10 if random.chance(20) => 9,
                1 if random.chance(2) => 0,
                10 if random.chance(1) => 3,
                _ => 99,
            };
            if which != 99 {
                both.request(which, payload(step));
                data += u32::from(which == 9);
            } else if !lines[end].is_empty() && random.chance(80) {
                let pdu = lines[end].remove(0);
                if !random.chance(seed % 21) {
                    both.pdu(&pdu);
                }
            } else {
                let to = both.timeout.map_or(both.now, SimTime::as_ps).max(both.now);
                let now = if random.chance(30) { to } else { both.now };
                both.pass(now);
            }
        }
        assert!(data > 0, "seed {seed}: no data flowed");
        ends.iter_mut().for_each(|end| letters.append(&mut end.letters));
    }
    assert!("VWX".chars().all(|letter| letters.contains(&letter)), "{letters:?}");
}
