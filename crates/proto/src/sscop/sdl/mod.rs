//! The procedures again, slowly: a table of what each state does with each event, word for word, and
//! the data procedures over plain lists. The machine must say and do the same.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::Seq;

use super::{Config, Pdu, Retrieval, Source};
use crate::Payload;

mod compare;
mod data;

/// Rows: state, event, what is done. `;` separates what is done for a new N(SQ) from what is done for
/// one that came before. An event that a state has no row for is ignored, if it is a PDU, or rejected.
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
