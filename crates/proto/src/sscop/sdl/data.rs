//! State 10 over plain lists: SD, POLL, STAT, USTAT, and what is sent when.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use super::{NUMBERS, Sdl};
use crate::Payload;

impl Sdl {
    pub(super) fn sd(&mut self, n: u32, payload: Payload) {
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

    pub(super) fn poll(&mut self, ps: u32, s: u32) {
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

    pub(super) fn stat(&mut self, ps: u32, mr: u32, r: u32, list: &[u32]) {
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

    pub(super) fn ustat(&mut self, first: u32, end: u32, mr: u32, r: u32) {
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
    pub(super) fn send_all(&mut self) {
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

    pub(super) fn poll_out(&mut self) {
        self.vt.insert("ps", (self.vt["ps"] + 1) % NUMBERS);
        self.vt.insert("pd", 0);
        self.say(format!("POLL PS={} S={} None", self.vt["ps"], self.vt["s"]));
    }
}
