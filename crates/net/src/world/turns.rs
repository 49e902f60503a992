//! Ranks that look for messages by turns, on a core that they share.
//!
//! A rank that yields looks, and offers the core to the others (`sched_yield`). It is always ready to run, and what
//! that means is the kernel's to say. Where it takes a rank that yields for one that wants nothing, ranks go round
//! and round, a look each, and one that computes keeps its core. Where it is *fair*, it gives the core to whom it
//! owes the most, waiting or not: a rank that has computed has had more than its share, and those that wait look
//! and look until they have had as much.
//!
//! Who may have the core then is told as by the kernel's scheduler (EEVDF; Stoica and Abdel-Wahab 1995, section 3):
//! a rank is eligible while it has had no more than the mean of all. A rank that looks keeps the core while it is
//! eligible, and for one look at least; then the one has it that has had the least.
//!
//! In some calls a rank that waits looks again and again and offers its core to nobody: its turn is a time slice. A
//! slice ends at a tick of the kernel's clock, the first at which the rank has had the core for long enough.
//!
//! A turn begins with a look; what comes for a rank after it, while the core is handed on, it finds in its next one.
//!
//! Nothing is simulated look by look: a turn is one step, however long, and rounds of ranks that have all had as
//! much are left out.

use crate::model::Ticks;

/// The turns on one core.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// What a look takes, and handing the core on, in picoseconds.
    turn: u64,
    /// A time slice, in picoseconds.
    slice: u64,
    ticks: Option<Ticks>,
    fair: bool,
    /// By member, what it has had of the core, in picoseconds; only differences count. All 0 where nobody is owed.
    had: Vec<u64>,
    /// By member, whether it waits in a call that offers its core to nobody.
    keeps: Vec<bool>,
    /// By member, whether it sleeps and takes no turns.
    asleep: Vec<bool>,
    /// How many do not sleep, and what they have had together.
    awake: u64,
    all: u64,
    /// Whose turn begins at `since`, if none has had anything to do since then.
    whose: u32,
    since: u64,
}

impl Turns {
    /// A core without ranks; a look and a slice take so long, in picoseconds.
    pub(super) fn new(turn: u64, slice: u64, ticks: Option<Ticks>, fair: bool) -> Self {
        let (had, keeps, asleep) = (Vec::new(), Vec::new(), Vec::new());
        Self { turn, slice, ticks, fair, had, keeps, asleep, awake: 0, all: 0, whose: 0, since: 0 }
    }

    /// One more rank takes turns; returns its number.
    pub(super) fn join(&mut self) -> u32 {
        self.had.push(0);
        self.keeps.push(false);
        self.asleep.push(false);
        self.awake += 1;
        self.had.len() as u32 - 1
    }

    /// A rank has worked for so long.
    pub(super) fn work(&mut self, member: u32, span: u64) {
        if self.fair {
            self.had[member as usize] += span;
            self.all += if self.asleep[member as usize] { 0 } else { span };
        }
    }

    /// Whether a rank whose slice has ended keeps the core, though another may want it: `queued` is whether one has
    /// work.
    pub(super) fn goes_on(&self, member: u32, queued: bool) -> bool {
        if self.fair { self.is_owed(member) } else { !queued }
    }

    /// Whether a rank has had no more than the mean.
    pub(super) fn is_owed(&self, member: u32) -> bool {
        self.owed(member).is_some()
    }

    /// On a core that nobody works on, a kernel that is fair picks anew who has it: another rank, if the one whose turn is
    /// under way has had more than the mean by now.
    pub(super) fn pick_anew(&mut self, now: u64) {
        if self.awake == 0 {
            return;
        }
        self.advance(now);
        self.work(self.whose, now - self.since);
        self.since = now;
        if !self.is_owed(self.whose) {
            self.whose = self.after(self.whose);
        }
    }

    /// A rank that had something to do leaves the core; if it waits, it looks first, and `keeps` the core for that or
    /// not.
    pub(super) fn leave(&mut self, member: u32, now: u64, waits: bool, keeps: bool) {
        self.since = now;
        self.keeps[member as usize] = keeps;
        self.whose = if waits { member } else { self.after(member) };
    }

    /// A rank's program sleeps; it has the core, and leaves it next.
    pub(super) fn sleep(&mut self, member: u32) {
        self.asleep[member as usize] = true;
        self.awake -= 1;
        self.all -= self.had[member as usize];
    }

    /// A rank's program has slept enough; `is_free` is whether nobody works on the core. It is owed what the others
    /// are owed on the mean, as by a kernel that keeps no account of those who sleep.
    pub(super) fn wake(&mut self, member: u32, now: u64, is_free: bool) {
        if is_free {
            self.advance(now);
        }
        if let Some(mean) = self.all.checked_div(self.awake) {
            self.had[member as usize] = mean;
        } else {
            (self.whose, self.since) = (member, now);
        }
        self.asleep[member as usize] = false;
        self.awake += 1;
        self.all += self.had[member as usize];
    }

    /// What those have had that do not sleep.
    fn awake(&self) -> impl Iterator<Item = u64> {
        self.had.iter().zip(&self.asleep).filter(|(_, asleep)| !**asleep).map(|(had, _)| *had)
    }

    /// A rank begins to work, after those that have looked until now.
    pub(super) fn begin(&mut self, now: u64) {
        self.advance(now);
        self.work(self.whose, now - self.since);
    }

    /// Of ranks that want the core, none of which sleeps, the one that looks first, and when that is. Nobody has had
    /// anything to do since one left.
    pub(super) fn first(&mut self, wanting: impl Iterator<Item = u32>, now: u64) -> Option<(u64, u32)> {
        let mut wants = vec![false; self.had.len()];
        wanting.for_each(|member| wants[member as usize] = true);
        let members = wants.len() as u32;
        let next_from = |whose: u32| {
            let mut round = (0..members).map(|step| (whose + step) % members);
            round.find(|member| wants[*member as usize])
        };
        let lowest = next_from(0)?;
        if self.awake == 1 {
            return Some((now, lowest));
        }
        self.advance(now);
        if wants[self.whose as usize]
            && let Some(look) = self.look(now)
        {
            return Some((look, self.whose));
        }
        let mut ahead = self.clone();
        let mut at_once = u32::from(!ahead.next());
        while !wants[ahead.whose as usize] {
            at_once = if ahead.next() { 0 } else { at_once + 1 };
            if at_once > members {
                return Some((ahead.since, next_from(ahead.whose)?));
            }
        }
        Some((ahead.since, ahead.whose))
    }

    /// When the rank whose turn is under way looks next, if it does again before it hands the core on.
    fn look(&self, now: u64) -> Option<u64> {
        if self.keeps[self.whose as usize] || self.length() == 0 {
            return Some(now);
        }
        let look = (now - self.since).next_multiple_of(self.turn);
        (look == 0 || look + self.turn <= self.length()).then_some(self.since + look)
    }

    /// When a slice ends that began at `since`, of a rank that is owed so much of the core.
    pub(super) fn slice_end(&self, since: u64, owed: u64) -> u64 {
        let Some(Ticks { first, least }) = self.ticks else {
            return since + owed.div_ceil(self.slice).max(1) * self.slice;
        };
        let (end, first) = (since + owed.max(least.as_ps()).max(1), first.as_ps() % self.slice);
        (end + self.slice - first).next_multiple_of(self.slice) - self.slice + first
    }

    /// Goes on to the turn that is under way at `now`.
    fn advance(&mut self, now: u64) {
        if self.awake == 0 {
            return;
        }
        let keeping =
            self.keeps.iter().zip(&self.asleep).filter(|(keeps, asleep)| **keeps && !**asleep).count() as u64;
        let round = (self.awake - keeping) * self.turn + keeping * self.slice;
        let mut at_once = 0;
        loop {
            let length = self.length();
            if now - self.since < length || now == self.since {
                return;
            }
            if length == 0 {
                at_once += 1;
                if at_once > self.had.len() {
                    self.since = now;
                    return;
                }
                self.next();
                continue;
            }
            at_once = 0;
            let (least, most) = (self.awake().min(), self.awake().max());
            let level = most.zip(least).is_some_and(|(most, least)| most - least <= self.turn);
            if level && (keeping == 0 || !self.fair && self.ticks.is_none()) && now - self.since >= round {
                self.since += (now - self.since) / round * round;
                continue;
            }
            self.next();
        }
    }

    /// Ends a turn; `false` if none takes any time.
    fn next(&mut self) -> bool {
        let length = self.length();
        self.work(self.whose, length);
        self.since += length;
        self.whose = self.after(self.whose);
        length > 0
    }

    /// How long the turn is that begins: slices, where it keeps the core, and at least one look.
    fn length(&self) -> u64 {
        let owed = self.owed(self.whose).unwrap_or(0);
        if self.keeps[self.whose as usize] {
            self.slice_end(self.since, owed) - self.since
        } else {
            owed.max(self.turn)
        }
    }

    /// How long a rank may have the core until it has had the mean; none if it has had more.
    fn owed(&self, member: u32) -> Option<u64> {
        let short = self.all.checked_sub(self.awake * self.had[member as usize])?;
        Some(if self.awake > 1 { short / (self.awake - 1) } else { 0 })
    }

    /// Who has the core after a rank: of those that have had the least, the next one round.
    fn after(&self, member: u32) -> u32 {
        let members = self.had.len() as u32;
        let others = (1..=members).map(|step| (member + step) % members);
        let others = others.filter(|other| !self.asleep[*other as usize]);
        others.min_by_key(|other| self.had[*other as usize]).unwrap_or(member)
    }
}

#[cfg(test)]
mod tests {
    use wiretwin_units::Span;

    use super::*;

    fn members(count: u32, fair: bool) -> Turns {
        let mut turns = Turns::new(10, 400, None, fair);
        for member in 0..count {
            assert_eq!(turns.join(), member);
        }
        turns
    }

    /// When the next turn of a rank begins.
    fn begins(turns: &Turns, member: u32, now: u64) -> u64 {
        turns.clone().first([member].into_iter(), now).expect("one wants the core").0
    }

    fn begin(turns: &Turns, now: u64) -> Vec<u64> {
        (0..turns.had.len() as u32).map(|member| begins(turns, member, now)).collect()
    }

    #[test]
    fn ranks_that_wait_look_in_turn_after_the_one_that_left() {
        for fair in [false, true] {
            let mut turns = members(3, fair);
            turns.leave(0, 100, true, false);
            // 0 looks at 100, 1 at 110, 2 at 120, and again.
            assert_eq!(begin(&turns, 100), [100, 110, 120]);
            assert_eq!(begin(&turns, 105), [130, 110, 120]);
            assert_eq!(begin(&turns, 110), [130, 110, 120]);
            assert_eq!(begin(&turns, 115), [130, 140, 120]);
            assert_eq!(begin(&turns, 139), [160, 140, 150]);
            assert_eq!(begin(&turns, 3_000_139), [3_000_160, 3_000_140, 3_000_150]);
        }
    }

    #[test]
    fn a_rank_whose_slice_has_ended_does_not_look_first() {
        let mut turns = members(3, false);
        turns.leave(2, 100, false, false);
        assert_eq!(begin(&turns, 100), [100, 110, 120]);
    }

    #[test]
    fn ranks_that_work_take_turns_where_a_look_takes_no_time() {
        let mut turns = Turns::new(0, 400, None, false);
        (0..3).for_each(|member| assert_eq!(turns.join(), member));
        let wanting = [0, 2];
        let mut has = 0;
        let order = (1..5).map(|slice| {
            turns.leave(has, 400 * slice, false, false);
            let (at, member) = turns.first(wanting.into_iter(), 400 * slice).expect("two want the core");
            assert_eq!(at, 400 * slice);
            has = member;
            member
        });
        assert_eq!(order.collect::<Vec<_>>(), [2, 0, 2, 0]);
    }

    #[test]
    fn looks_that_take_no_time_wait_for_the_slice_of_one_that_keeps_its_core() {
        let mut turns = Turns { turn: 0, ..members(4, false) };
        turns.leave(1, 100, true, true);
        assert_eq!(turns.first([0, 3].into_iter(), 100), Some((500, 3)));
        assert_eq!(turns.first([0].into_iter(), 100), Some((500, 0)));
        turns.leave(3, 600, false, false);
        assert_eq!(turns.first([3].into_iter(), 600), Some((1000, 3)));
        assert_eq!(turns.first([0, 3].into_iter(), 600), Some((600, 0)));
        assert_eq!(turns.first([0, 3].into_iter(), 700), Some((1000, 3)));
        let mut nobody_keeps = Turns { turn: 0, ..members(3, false) };
        nobody_keeps.leave(0, 100, true, false);
        assert_eq!(nobody_keeps.first([2].into_iter(), 700), Some((700, 2)));
    }

    #[test]
    fn a_rank_alone_on_its_core_always_looks() {
        let mut turns = members(1, true);
        turns.work(0, 50);
        turns.leave(0, 100, true, false);
        assert_eq!(begins(&turns, 0, 103), 103);
    }

    #[test]
    fn one_that_waits_looks_until_it_has_had_as_much_as_the_one_that_computed() {
        let mut turns = members(2, true);
        turns.work(0, 500);
        turns.leave(0, 500, true, false);
        // 0 looks at 500; 1 from 510 on until it has had those 510 too, and then both by turns.
        assert_eq!(begin(&turns, 505), [1020, 510]);
        assert_eq!(begin(&turns, 600), [1020, 600]);
        assert_eq!(begin(&turns, 1001), [1020, 1010]);
        assert_eq!(begin(&turns, 1019), [1020, 1030]);
        assert_eq!(begin(&turns, 1025), [1040, 1030]);
        // What it has looked for in vain, it is not given again.
        turns.begin(700);
        turns.work(1, 320);
        turns.leave(1, 1020, false, false);
        assert_eq!(begin(&turns, 1020), [1020, 1030]);
    }

    #[test]
    fn one_that_is_not_owed_more_than_others_gives_its_core_up() {
        let mut turns = members(3, true);
        turns.work(0, 300);
        assert!(!turns.goes_on(0, false), "it has had 300 of the others' 0");
        assert!(turns.goes_on(1, true), "it is owed the most");
        turns.leave(0, 300, false, false);
        // 1 to the mean of (300 + 150) / 3; then 2 to that of (450 + 225) / 3; and 1 again, which has had less.
        assert_eq!(begin(&turns, 300)[1..], [300, 450]);
        assert_eq!(begin(&turns, 460)[1..], [675, 460]);
        let handed_on = members(2, false);
        assert!(handed_on.goes_on(0, false));
        assert!(!handed_on.goes_on(0, true));
    }

    #[test]
    fn a_rank_that_offers_its_core_to_nobody_looks_for_a_slice() {
        let mut turns = members(2, false);
        turns.leave(0, 100, true, true);
        assert_eq!(begin(&turns, 105), [105, 500]);
        assert_eq!(begin(&turns, 505), [510, 910]);
        assert_eq!(begin(&turns, 4100 + 100 + 405), [4610, 5010]);
        let mut turns = members(2, true);
        turns.work(1, 900);
        turns.leave(0, 100, true, true);
        // It is owed 900, and has had 1200 when the third slice ends; the other one is owed 300 then.
        assert_eq!(begin(&turns, 105), [105, 1300]);
        assert_eq!(begin(&turns, 1305), [1600, 1310]);
    }

    #[test]
    fn picked_anew_a_core_goes_to_who_has_had_less() {
        let mut turns = members(2, true);
        turns.leave(0, 100, true, true);
        // 0 keeps the core for a slice, to 500, and has had 105 of it when 1 is picked, which is owed as much.
        turns.pick_anew(205);
        assert_eq!(begin(&turns, 205), [310, 205]);
        // 1 has had 60 since then: it goes on.
        turns.pick_anew(265);
        assert_eq!(begin(&turns, 265), [310, 265]);
    }

    #[test]
    fn a_slice_ends_at_the_first_tick_at_which_it_was_long_enough() {
        let ticks = Ticks { first: Span::from_ps(30), least: Span::from_ps(140) };
        let turns = Turns::new(10, 400, Some(ticks), true);
        // Ticks at 30, 430, 830, 1230.
        assert_eq!([0, 30, 290, 291, 430].map(|since| turns.slice_end(since, 0)), [430, 430, 430, 830, 830]);
        assert_eq!([400, 401, 800].map(|owed| turns.slice_end(30, owed)), [430, 830, 830]);
        let mut waiting = Turns { ticks: Some(ticks), ..members(2, false) };
        waiting.leave(0, 200, true, true);
        // 0 looks until 430, 1 at 430, and 0 from 440 to 830.
        assert_eq!(begin(&waiting, 205), [205, 430]);
        assert_eq!(begin(&waiting, 500), [500, 830]);
        assert_eq!(begin(&waiting, 435), [440, 830]);
    }

    #[test]
    fn one_that_sleeps_takes_no_turns_and_is_owed_the_mean_when_it_wakes() {
        let mut turns = members(3, true);
        turns.work(0, 300);
        turns.sleep(0);
        turns.leave(0, 300, false, false);
        // 1 and 2 by turns, which have had 0 both.
        let others = |now| [1, 2].map(|member| begins(&turns, member, now));
        assert_eq!(others(300), [300, 310]);
        assert_eq!(others(1_000_305), [1_000_320, 1_000_310]);
        turns.wake(0, 1_000_310, true);
        assert!(turns.had[0] <= turns.had[1] && turns.had[1] - turns.had[0] <= 10, "{:?}", turns.had);
        // One alone, whom nobody looked beside, has the core at once.
        let mut alone = members(1, true);
        alone.sleep(0);
        alone.leave(0, 300, false, false);
        alone.wake(0, 800, true);
        assert_eq!(begin(&alone, 800), [800]);
    }

    #[test]
    fn looks_that_take_no_time_are_over_at_once() {
        let mut turns = Turns { turn: 0, ..members(2, true) };
        turns.leave(0, 100, true, false);
        assert_eq!(begin(&turns, 100), [100, 100]);
    }
}
