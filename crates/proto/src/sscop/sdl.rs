//! The procedures again, slowly: a table of what each state does with each event, word for word, and
//! the data procedures over plain lists. The machine must say and do the same.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use wiretwin_units::{Seq, SimTime, Span};

use super::testbed::{Random, drain, payload, small};
use super::{Config, Delivered, Event, Machine, Pdu, Retrieval, Source};
use crate::{Output, Payload};

/// Rows: state, event, what is done. `;` separates what is done for a new N(SQ) from what is done for
/// one that came before. An event that a state has no row for is ignored, if it is a PDU, or refused.
const TABLE: &str = "
1  ESTABLISH.request   clear-tx cc=1 sq++ mr BGN +cc ->2
1  BGN                 ms establish.ind ->3                       ; BGREJ
1  END                 ENDAK
1  BGREJ               letter
1  SD POLL STAT USTAT BGAK RS RSAK ER ERAK   letter END1
1  RETRIEVE.request    retrieve

2  BGAK                -cc ms establish.conf data
2  BGN                 -cc ms mr BGAK establish.conf data         ; nothing
2  BGREJ               -cc release.ind.peer ->1
2  RELEASE.request     -cc cc=1 END0 +cc ->4
2  CC-last             letter-o END1 release.ind ->1
2  CC                  cc++ BGN +cc

3  ESTABLISH.response  clear-tx mr BGAK data
3  RELEASE.request     BGREJ ->1
3  BGN                 ms release.ind.user establish.ind          ; nothing
3  END                 ENDAK release.ind.peer ->1
3  ENDAK BGREJ         letter release.ind ->1
3  SD POLL STAT USTAT  letter END1 release.ind ->1
3  BGAK RS RSAK ER ERAK  letter
3  RETRIEVE.request    retrieve

4  ESTABLISH.request   -cc clear-tx cc=1 sq++ mr BGN +cc ->2
4  ENDAK BGREJ         -cc release.conf.peer ->1
4  END                 -cc ENDAK release.conf.peer ->1
4  BGN                 -cc ms release.conf establish.ind ->3      ; uu-bgak-none BGAK END-again
4  RETRIEVE.request    retrieve
4  CC-last             letter-o release.conf ->1
4  CC                  cc++ END-again +cc

5  BGN                 -cc ms release.ind.user establish.ind ->3  ; BGAK RS
5  END                 -cc ENDAK release.ind.peer ->1
5  ENDAK BGREJ         -cc letter release.ind ->1
5  RS                  -cc ms mr RSAK resync.conf data            ; nothing
5  RSAK                -cc ms resync.conf data
5  RELEASE.request     -cc cc=1 END0 +cc ->4
5  CC-last             letter-o END1 release.ind ->1
5  CC                  cc++ RS +cc

6  RESYNC.response     mr RSAK clear-tx data
6  RELEASE.request     cc=1 END0 +cc ->4
6  BGN                 ms release.ind.user establish.ind ->3      ; letter
6  END                 ENDAK release.ind.peer ->1
6  ENDAK BGREJ         letter release.ind ->1
6  SD POLL STAT USTAT  letter END1 release.ind ->1
6  RS                  letter                                     ; nothing
6  BGAK RSAK ER ERAK   letter
6  RETRIEVE.request    retrieve

7  DATA.request        queue-unless-cleared
7  RELEASE.request     -cc cc=1 END0 clear-rx +cc ->4
7  RESYNC.request      -cc cc=1 sq++ mr RS clear-tx clear-rx +cc ->5
7  BGN                 -cc ms release.ind.user establish.ind clear-rx ->3  ; letter
7  END                 -cc ENDAK release.ind.peer clear-rx ->1
7  ENDAK BGREJ         -cc letter release.ind clear-rx ->1
7  RS                  -cc ms resync.ind clear-rx ->6             ; letter
7  ER                  -cc ms mr ERAK deliver recover.ind ->8     ; letter
7  ERAK                -cc ms deliver recover.ind ->8
7  BGAK RSAK           letter
7  CC-last             letter-o END1 release.ind clear-rx ->1
7  CC                  cc++ ER +cc

8  RECOVER.response    data
8  RELEASE.request     cc=1 END0 +cc ->4
8  RESYNC.request      clear-tx cc=1 sq++ mr RS +cc ->5
8  BGN                 ms release.ind.user establish.ind ->3      ; letter
8  END                 ENDAK release.ind.peer ->1
8  ENDAK BGREJ         letter release.ind ->1
8  RS                  ms resync.ind ->6                          ; letter
8  ER                  letter                                     ; ERAK
8  STAT USTAT          letter END1 release.ind ->1
8  BGAK RSAK           letter
8  RETRIEVE.request    retrieve

9  RECOVER.response    mr ERAK data
9  RELEASE.request     cc=1 END0 +cc ->4
9  RESYNC.request      clear-tx cc=1 sq++ mr RS +cc ->5
9  BGN                 ms release.ind.user establish.ind ->3      ; letter
9  END                 ENDAK release.ind.peer ->1
9  ENDAK BGREJ         letter release.ind ->1
9  RS                  ms resync.ind ->6                          ; letter
9  ER                  letter                                     ; nothing
9  SD POLL STAT USTAT  letter END1 release.ind ->1
9  BGAK RSAK ERAK      letter
9  RETRIEVE.request    retrieve

10 DATA.request        queue
10 RELEASE.request     reset cc=1 END0 retrieval +cc ->4
10 RESYNC.request      reset cc=1 sq++ mr RS release-buffers +cc ->5
10 BGN                 reset ms release.ind.user establish.ind retrieval ->3  ; +nr BGAK
10 END                 reset ENDAK release.ind.peer retrieval ->1
10 ENDAK BGREJ         reset letter release.ind retrieval ->1
10 RS                  reset ms resync.ind retrieval ->6          ; +nr RSAK
10 ER                  reset ms recovery deliver recover.ind ->9  ; +nr ERAK
";

const BITS: u32 = 4;
const NUMBERS: u32 = 16;

/// What comes out, as text.
type Said = Vec<String>;

/// The procedures over plain lists; times in ps.
struct Sdl {
    config: Config,
    table: BTreeMap<(u32, &'static str), &'static str>,
    state: u32,
    now: u64,
    timers: BTreeMap<&'static str, u64>,
    vt: BTreeMap<&'static str, u32>,
    vr: BTreeMap<&'static str, u32>,
    credit: bool,
    xq: Vec<Payload>,
    /// Number, VT(PS) when sent, payload.
    xbuf: Vec<(u32, u32, Payload)>,
    /// Numbers, in the order of their numbers.
    rxq: Vec<u32>,
    rbuf: BTreeMap<u32, Payload>,
    uu: BTreeMap<&'static str, Option<Payload>>,
    end_by_sscop: bool,
    said: Said,
}

impl Sdl {
    fn new(config: Config) -> Self {
        let mut table = BTreeMap::new();
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            // The events are what is in capitals up to the first run of blanks that is longer than one.
            let (state, rest) = line.split_at(3);
            let (events, done) = rest.split_once("  ").expect("events, two blanks, what is done");
            for event in events.split(' ') {
                let state = state.trim().parse().expect("a state");
                assert!(table.insert((state, event), done.trim()).is_none(), "{state} {event} twice");
            }
        }
        let zeros = |names: &[&'static str]| names.iter().map(|&name| (name, 0)).collect();
        Self {
            config,
            table,
            state: 1,
            now: 0,
            timers: BTreeMap::new(),
            vt: zeros(&["s", "ps", "a", "pa", "ms", "pd", "cc", "sq"]),
            vr: zeros(&["r", "h", "mr", "sq"]),
            credit: true,
            xq: Vec::new(),
            xbuf: Vec::new(),
            rxq: Vec::new(),
            rbuf: BTreeMap::new(),
            uu: BTreeMap::new(),
            end_by_sscop: false,
            said: Vec::new(),
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.said.push(text.into());
    }

    fn uu(&self, name: &str) -> Option<Payload> {
        self.uu.get(name).copied().flatten()
    }

    fn start(&mut self, timer: &'static str) {
        let span = match timer {
            "cc" => self.config.timer_cc,
            "poll" => self.config.timer_poll,
            "ka" => self.config.timer_keep_alive,
            "nr" => self.config.timer_no_response,
            _ => self.config.timer_idle,
        };
        self.timers.insert(timer, self.now + span.as_ps());
    }

    fn reset(&mut self) {
        for timer in ["ka", "nr", "idle", "poll"] {
            self.timers.remove(timer);
        }
    }

    fn ahead(base: u32, number: u32) -> u32 {
        (number + NUMBERS - base) % NUMBERS
    }

    /// Does what a row says; false where there is none.
    fn run(&mut self, event: &'static str, pdu: Option<&Pdu<BITS>>, uu: Option<Payload>) -> bool {
        let Some(row) = self.table.get(&(self.state, event)).copied() else { return false };
        let repeated = match pdu {
            // `Detect retransmission` is a part of the rows that tell the two apart.
            Some(Pdu::Bgn { sq, .. } | Pdu::Rs { sq, .. } | Pdu::Er { sq, .. }) if row.contains(';') => {
                let repeated = self.vr["sq"] == sq.get();
                self.vr.insert("sq", sq.get());
                repeated
            }
            _ => false,
        };
        let row = match row.split_once(';') {
            Some((new, old)) => (if repeated { old } else { new }).trim(),
            None => row,
        };
        match event {
            "ESTABLISH.request" => self.uu.insert("bgn", uu),
            "ESTABLISH.response" => self.uu.insert("bgak", uu),
            "RESYNC.request" => self.uu.insert("rs", uu),
            "RELEASE.request" => self.uu.insert(if self.state == 3 { "bgrej" } else { "end" }, uu),
            _ => None,
        };
        for word in row.split_whitespace() {
            self.step(word, pdu, uu);
        }
        true
    }

    fn step(&mut self, word: &str, pdu: Option<&Pdu<BITS>>, uu: Option<Payload>) {
        let theirs = pdu.and_then(Pdu::payload);
        let number = |value: u32| Seq::<BITS>::wrapping(value);
        let (sq, mr) = (Seq::wrapping(self.vt["sq"]), number(self.vr["mr"]));
        match word {
            "nothing" => {}
            "cc=1" => drop(self.vt.insert("cc", 1)),
            "cc++" => *self.vt.get_mut("cc").expect("set") += 1,
            "sq++" => drop(self.vt.insert("sq", (self.vt["sq"] + 1) % 256)),
            "mr" => drop(self.vr.insert("mr", self.config.window)),
            "ms" => match pdu.expect("a PDU") {
                Pdu::Bgn { mr, .. } | Pdu::Bgak { mr, .. } | Pdu::Rs { mr, .. } => {
                    self.vt.insert("ms", mr.get());
                }
                Pdu::Rsak { mr } | Pdu::Er { mr, .. } | Pdu::Erak { mr } => {
                    self.vt.insert("ms", mr.get());
                }
                pdu => panic!("{pdu} has no N(MR)"),
            },
            "+cc" => self.start("cc"),
            "-cc" => drop(self.timers.remove("cc")),
            "+nr" => self.start("nr"),
            "reset" => self.reset(),
            "BGN" => self.say(format!("{} {:?}", Pdu::Bgn { sq, mr, uu: None }, self.uu("bgn"))),
            "BGAK" => self.say(format!("{} {:?}", Pdu::<BITS>::Bgak { mr, uu: None }, self.uu("bgak"))),
            "BGREJ" => self.say(format!("BGREJ {:?}", self.uu("bgrej"))),
            "END0" | "END1" => {
                self.end_by_sscop = word == "END1";
                if self.end_by_sscop {
                    self.uu.insert("end", None);
                }
                self.step("END-again", pdu, uu);
            }
            "END-again" => {
                let end = Pdu::<BITS>::End { by_sscop: self.end_by_sscop, uu: None };
                self.say(format!("{end} {:?}", self.uu("end")));
            }
            "ENDAK" => self.say("ENDAK None"),
            "RS" => self.say(format!("{} {:?}", Pdu::Rs { sq, mr, uu: None }, self.uu("rs"))),
            "RSAK" => self.say(format!("{} None", Pdu::<BITS>::Rsak { mr })),
            "ER" => self.say(format!("{} None", Pdu::Er { sq, mr })),
            "ERAK" => self.say(format!("{} None", Pdu::<BITS>::Erak { mr })),
            "uu-bgak-none" => drop(self.uu.insert("bgak", None)),
            "letter" => {
                let letter = pdu.and_then(Pdu::letter).expect("a PDU with a letter");
                self.say(letter);
            }
            "letter-o" => self.say('O'),
            "establish.ind" => self.say(format!("establish.ind {theirs:?}")),
            "establish.conf" => self.say(format!("establish.conf {theirs:?}")),
            "release.ind" => self.say("release.ind Sscop None"),
            "release.ind.user" => self.say("release.ind User None"),
            "release.ind.peer" => {
                let by_sscop = matches!(pdu, Some(Pdu::End { by_sscop: true, .. }));
                let source = if by_sscop { Source::Sscop } else { Source::User };
                self.say(format!("release.ind {source:?} {theirs:?}"));
            }
            "release.conf" => self.say("release.conf None"),
            "release.conf.peer" => self.say(format!("release.conf {theirs:?}")),
            "resync.ind" => self.say(format!("resync.ind {theirs:?}")),
            "resync.conf" => self.say("resync.conf"),
            "recover.ind" => self.say("recover.ind"),
            "clear-tx" => {
                if !self.config.clear_buffers {
                    self.xq.clear();
                    self.xbuf.clear();
                    self.rxq.clear();
                }
            }
            "clear-rx" => self.rbuf.clear(),
            "release-buffers" => {
                self.xq.clear();
                self.xbuf.clear();
                self.rxq.clear();
                self.rbuf.clear();
            }
            "recovery" | "retrieval" => {
                if self.config.clear_buffers {
                    self.xq.clear();
                    self.xbuf.clear();
                }
                self.rxq.clear();
                if word == "retrieval" {
                    self.rbuf.clear();
                }
            }
            "deliver" => {
                let r = self.vr["r"];
                let mut kept: Vec<_> = core::mem::take(&mut self.rbuf).into_iter().collect();
                kept.sort_by_key(|(number, _)| Self::ahead(r, *number));
                if !self.config.clear_buffers {
                    for (number, payload) in kept {
                        self.say(format!("data {number} {payload:?}"));
                    }
                }
            }
            "queue" => self.xq.push(uu.expect("data")),
            "queue-unless-cleared" => {
                if !self.config.clear_buffers {
                    self.xq.push(uu.expect("data"));
                }
            }
            "retrieve" => {}
            "data" => {
                for name in ["s", "ps", "a", "pd"] {
                    self.vt.insert(name, 0);
                }
                self.vt.insert("pa", 1);
                self.vr.insert("r", 0);
                self.vr.insert("h", 0);
                self.xbuf.clear();
                self.rxq.clear();
                self.rbuf.clear();
                self.credit = true;
                self.start("poll");
                self.start("nr");
                self.state = 10;
            }
            word => self.state = word.strip_prefix("->").and_then(|state| state.parse().ok()).expect(word),
        }
    }

    fn retrieve(&mut self, what: Retrieval<BITS>) -> bool {
        if !self.run("RETRIEVE.request", None, None) {
            return false;
        }
        let (a, s) = (self.vt["a"], self.vt["s"]);
        let from = match what {
            Retrieval::Unsent => None,
            Retrieval::Unacknowledged => Some(a),
            Retrieval::After(number) => Some((number.get() + 1) % NUMBERS),
        };
        if let Some(from) = from {
            let held = Self::ahead(a, s);
            let (back, kept): (Vec<_>, Vec<_>) = self.xbuf.iter().partition(|(number, ..)| {
                Self::ahead(a, from) <= held && Self::ahead(a, *number) >= Self::ahead(a, from)
            });
            if Self::ahead(a, from) <= held {
                self.vt.insert("s", from);
            }
            self.xbuf = kept;
            for (_, _, payload) in back {
                self.say(format!("retrieved {payload:?}"));
            }
        }
        for payload in core::mem::take(&mut self.xq) {
            self.say(format!("retrieved {payload:?}"));
        }
        self.say("retrieve.compl");
        true
    }

    fn pdu(&mut self, pdu: &Pdu<BITS>) {
        match pdu {
            Pdu::Ud { payload } => return self.say(format!("ud {payload:?}")),
            Pdu::Md { payload } => return self.say(format!("md {payload:?}")),
            Pdu::Stat { list, .. } if list.len() > self.config.max_stat as usize => return self.say('U'),
            _ => {}
        }
        if self.state == 10 {
            match pdu {
                Pdu::Sd { s, payload } => return self.sd(s.get(), *payload),
                Pdu::Poll { ps, s } => return self.poll(ps.get(), s.get()),
                Pdu::Stat { ps, mr, r, list } => {
                    let list: Vec<_> = list.iter().map(|number| number.get()).collect();
                    return self.stat(ps.get(), mr.get(), r.get(), &list);
                }
                Pdu::Ustat { first, end, mr, r } => {
                    return self.ustat(first.get(), end.get(), mr.get(), r.get());
                }
                _ => {}
            }
        }
        let name = match pdu {
            Pdu::Bgn { .. } => "BGN",
            Pdu::Bgak { .. } => "BGAK",
            Pdu::Bgrej { .. } => "BGREJ",
            Pdu::End { .. } => "END",
            Pdu::Endak => "ENDAK",
            Pdu::Rs { .. } => "RS",
            Pdu::Rsak { .. } => "RSAK",
            Pdu::Er { .. } => "ER",
            Pdu::Erak { .. } => "ERAK",
            Pdu::Sd { .. } => "SD",
            Pdu::Poll { .. } => "POLL",
            Pdu::Stat { .. } => "STAT",
            _ => "USTAT",
        };
        self.run(name, Some(pdu), None);
    }

    fn recover(&mut self, letter: char) {
        self.reset();
        self.say(letter);
        for word in ["cc=1", "sq++", "mr", "ER", "recovery", "+cc", "->7"] {
            self.step(word, None, None);
        }
    }

    fn sd(&mut self, n: u32, payload: Payload) {
        let (r, h, mr) = (self.vr["r"], self.vr["h"], self.vr["mr"]);
        let place = Self::ahead(r, n);
        if place > NUMBERS / 2 {
            return self.recover('Q');
        }
        if place >= Self::ahead(r, mr) {
            if h != mr {
                self.ustat_out(h, mr);
                self.vr.insert("h", mr);
            }
        } else if n == r {
            self.rbuf.insert(n, payload);
            if n == h {
                self.vr.insert("h", (n + 1) % NUMBERS);
            }
            let mut next = n;
            while let Some(payload) = self.rbuf.remove(&next) {
                self.say(format!("data {next} {payload:?}"));
                next = (next + 1) % NUMBERS;
            }
            self.vr.insert("r", next);
            self.vr.insert("mr", (next + self.config.window) % NUMBERS);
        } else if n == h {
            self.rbuf.insert(n, payload);
            self.vr.insert("h", (n + 1) % NUMBERS);
        } else if place > Self::ahead(r, h) {
            self.rbuf.insert(n, payload);
            self.ustat_out(h, n);
            self.vr.insert("h", (n + 1) % NUMBERS);
        } else if self.rbuf.insert(n, payload).is_some() {
            self.recover('Q');
        }
    }

    fn ustat_out(&mut self, first: u32, end: u32) {
        self.say(format!("USTAT {first} {end} MR={} R={} None", self.vr["mr"], self.vr["r"]));
    }

    fn poll(&mut self, ps: u32, s: u32) {
        let (r, h, mr) = (self.vr["r"], self.vr["h"], self.vr["mr"]);
        if Self::ahead(r, s) > NUMBERS / 2 || Self::ahead(r, s) < Self::ahead(r, h) {
            return self.recover('Q');
        }
        let h = if Self::ahead(r, s) < Self::ahead(r, mr) { s } else { mr };
        self.vr.insert("h", h);
        // First missing, first that came after it, and so on; each number in turn.
        let mut edges = Vec::new();
        let mut here = false;
        for number in (0..Self::ahead(r, h)).map(|ahead| (r + ahead) % NUMBERS) {
            let came = self.rbuf.contains_key(&number);
            if came == here {
                edges.push(number);
                here = !came;
            }
        }
        if !edges.is_empty() {
            edges.push(h);
        }
        // Split where a part would grow over MaxSTAT: the next begins with the hole that ends this.
        let most = self.config.max_stat as usize;
        let mut parts = vec![edges];
        while parts.last().expect("one").len() > most {
            let last = parts.pop().expect("one");
            parts.push(last[..most].to_vec());
            parts.push(last[most - 1..].to_vec());
        }
        for part in parts {
            let list: String = part.iter().map(|number| format!(" {number}")).collect();
            self.say(format!("STAT PS={ps} MR={mr} R={r}{list} None"));
        }
    }

    fn acknowledge(&mut self, r: u32, mr: u32) {
        let a = self.vt["a"];
        self.xbuf.retain(|(number, ..)| Self::ahead(a, *number) >= Self::ahead(a, r));
        self.rxq.retain(|number| Self::ahead(a, *number) >= Self::ahead(a, r));
        self.vt.insert("a", r);
        self.vt.insert("ms", mr);
    }

    fn stat(&mut self, ps: u32, mr: u32, r: u32, list: &[u32]) {
        let polls = Self::ahead(self.vt["pa"], (self.vt["ps"] + 1) % NUMBERS);
        if Self::ahead(self.vt["pa"], ps) >= polls {
            return self.recover('R');
        }
        if Self::ahead(self.vt["a"], r) > Self::ahead(self.vt["a"], self.vt["s"]) {
            return self.recover('S');
        }
        self.acknowledge(r, mr);
        self.vt.insert("pa", ps);
        if list.len() > 1 {
            let (a, s) = (r, self.vt["s"]);
            if Self::ahead(a, list[0]) >= Self::ahead(a, s) {
                return self.recover('S');
            }
            let mut count = 0;
            for (index, pair) in list.windows(2).enumerate() {
                let (from, to) = (Self::ahead(a, pair[0]), Self::ahead(a, pair[1]));
                if from >= to || to > Self::ahead(a, s) {
                    return self.recover('S');
                }
                for number in (from..to).map(|ahead| (a + ahead) % NUMBERS) {
                    let entry = self.xbuf.iter().position(|(held, ..)| *held == number);
                    if index % 2 == 1 {
                        if self.config.clear_buffers
                            && let Some(entry) = entry
                        {
                            self.xbuf.remove(entry);
                            self.rxq.retain(|held| *held != number);
                        }
                        continue;
                    }
                    let Some(entry) = entry else { return self.recover('S') };
                    let sent = self.xbuf[entry].1;
                    let vt_ps = self.vt["ps"];
                    let before = Self::ahead(sent, vt_ps) > Self::ahead(ps, vt_ps);
                    if before && !self.rxq.contains(&number) {
                        self.rxq.push(number);
                        count += 1;
                    }
                }
            }
            self.say(format!("V {count}"));
        }
        let closed = !self.window_is_open();
        if closed == self.credit {
            self.credit = !closed;
            self.say(if closed { 'W' } else { 'X' });
        }
        if self.timers.contains_key("poll") {
            self.start("nr");
        } else if !self.timers.contains_key("idle") {
            self.timers.remove("ka");
            self.timers.remove("nr");
            self.start("idle");
        }
    }

    fn window_is_open(&self) -> bool {
        let window = Self::ahead(self.vt["a"], self.vt["ms"]);
        window < NUMBERS / 2 + 1 && Self::ahead(self.vt["a"], self.vt["s"]) < window
    }

    fn ustat(&mut self, first: u32, end: u32, mr: u32, r: u32) {
        let (a, s) = (self.vt["a"], self.vt["s"]);
        if Self::ahead(a, r) >= Self::ahead(a, s) {
            return self.recover('T');
        }
        self.acknowledge(r, mr);
        let (from, to) = (Self::ahead(r, first), Self::ahead(r, end));
        if from >= to || to >= Self::ahead(r, s) {
            return self.recover('T');
        }
        for number in (from..to).map(|ahead| (r + ahead) % NUMBERS) {
            if !self.xbuf.iter().any(|(held, ..)| *held == number) {
                return self.recover('T');
            }
            if !self.rxq.contains(&number) {
                self.rxq.push(number);
            }
        }
        self.say(format!("V {}", to - from));
    }

    /// All that can be sent is.
    fn send_all(&mut self) {
        while self.state == 10 {
            let a = self.vt["a"];
            let lowest = self.rxq.iter().copied().min_by_key(|number| Self::ahead(a, *number));
            let mut poll = false;
            if let Some(number) = lowest {
                self.rxq.retain(|held| *held != number);
                let vt_ps = self.vt["ps"];
                let entry = self.xbuf.iter_mut().find(|(held, ..)| *held == number).expect("kept");
                entry.1 = vt_ps;
                let payload = entry.2;
                self.say(format!("SD S={number} {:?}", Some(payload)));
                poll = self.config.poll_after_retransmission && self.rxq.is_empty();
            } else if self.xq.is_empty() {
                return;
            } else if self.window_is_open() {
                let payload = self.xq.remove(0);
                let number = self.vt["s"];
                self.xbuf.push((number, self.vt["ps"], payload));
                self.vt.insert("s", (number + 1) % NUMBERS);
                self.say(format!("SD S={number} {:?}", Some(payload)));
            } else if self.timers.contains_key("idle") {
                self.timers.remove("idle");
                self.start("nr");
                self.poll_out();
                self.start("poll");
                continue;
            } else {
                return;
            }
            *self.vt.get_mut("pd").expect("set") += 1;
            let full = self.vt["pd"] >= self.config.max_pd;
            if !self.timers.contains_key("poll") {
                if self.timers.remove("idle").is_some() {
                    self.start("nr");
                } else {
                    self.timers.remove("ka");
                }
                self.start("poll");
            }
            if poll || full {
                self.poll_out();
                self.start("poll");
            }
        }
    }

    fn poll_out(&mut self) {
        self.vt.insert("ps", (self.vt["ps"] + 1) % NUMBERS);
        self.vt.insert("pd", 0);
        self.say(format!("POLL PS={} S={} None", self.vt["ps"], self.vt["s"]));
    }

    fn pass(&mut self, now: u64) {
        self.now = now;
        // The earliest first; of those together, in this order.
        let order = ["cc", "nr", "poll", "ka", "idle"];
        while let Some(timer) = order
            .into_iter()
            .filter(|timer| self.timers.get(timer).is_some_and(|&at| at <= now))
            .min_by_key(|timer| self.timers[timer])
        {
            self.timers.remove(timer);
            match timer {
                "cc" => {
                    let last = self.vt["cc"] >= self.config.max_cc;
                    self.run(if last { "CC-last" } else { "CC" }, None, None);
                }
                "nr" => {
                    self.reset();
                    self.say('P');
                    for word in ["END1", "release.ind", "retrieval", "->1"] {
                        self.step(word, None, None);
                    }
                }
                timer => {
                    if timer == "idle" {
                        self.start("nr");
                    }
                    self.poll_out();
                    let quiet = self.xq.is_empty() && self.vt["s"] == self.vt["a"];
                    self.start(if quiet { "ka" } else { "poll" });
                }
            }
        }
    }
}

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
        Output::Event(Event::Error(super::ManagementError::Retransmitted(count))) => format!("V {count}"),
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
}

impl Both {
    fn new(config: Config) -> Self {
        let machine = Machine::new(config).expect("a good configuration");
        Self { machine, sdl: Sdl::new(config), now: 0, timeout: None, sent: Vec::new() }
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
    let mut met = BTreeMap::new();
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
                    both.pdu(&pdu);
                    pdu.to_string()
                }
                _ => {
                    let to = both.timeout.map_or(both.now, SimTime::as_ps);
                    both.pass(to.max(both.now) + random.below(2) * Span::from_ms(9).as_ps());
                    "time".to_string()
                }
            };
            both.compare(&format!("seed {seed}, step {step}, state {before}: {what}"));
            let name = what.split(' ').next().unwrap_or_default().to_string();
            *met.entry((before, name)).or_insert(0) += 1;
        }
    }
    let names = "BGN BGAK BGREJ END ENDAK RS RSAK ER ERAK SD POLL STAT USTAT UD MD time \
        ESTABLISH.request ESTABLISH.response RELEASE.request RESYNC.request RESYNC.response \
        RECOVER.response RETRIEVE.request DATA.request";
    for state in 1..=10 {
        for name in names.split_whitespace() {
            assert!(met.contains_key(&(state, name.to_string())), "state {state} has not met {name}");
        }
    }
}

#[test]
fn two_ends_that_talk_do_what_the_table_says() {
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
    }
}
