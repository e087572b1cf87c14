//! What was counted: of each followed key by classes, and of all covered arrivals together.

use super::IMPORTANCE_CLASSES;

/// No tally.
pub(super) const NONE: u32 = u32::MAX;
/// What a tally takes.
pub(super) const TALLY_BYTES: u64 = 12;
/// The most that one tally counts; another one goes on.
const MOST: u64 = (1 << 24) - 1;

/// What arrivals are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Repeats whose key was last seen at least 2^n arrivals ago, and less than twice as many.
    Lag(u8),
    /// Repeats in a division of the stream.
    Repeats(u8),
    /// Repeats of an importance.
    RepeatsOf(u8),
    /// Arrivals of keys that are new again.
    NewAgain,
    /// New ones in a division; a key's first arrival is not among them.
    New(u8),
    /// New ones of an importance; as above.
    NewOf(u8),
}

impl Class {
    pub(super) fn lag(lag: u64) -> Self {
        Class::Lag(lag.max(1).ilog2() as u8)
    }

    pub(super) fn code(self) -> u16 {
        let (kind, value) = match self {
            Class::Lag(value) => (0, value),
            Class::Repeats(value) => (1, value),
            Class::RepeatsOf(value) => (2, value),
            Class::NewAgain => (3, 0),
            Class::New(value) => (4, value),
            Class::NewOf(value) => (5, value),
        };
        kind << 8 | u16::from(value)
    }

    /// Its place among all classes.
    fn index(self) -> usize {
        match self {
            Class::Lag(value) => usize::from(value),
            Class::Repeats(value) => 64 + usize::from(value),
            Class::RepeatsOf(value) => 193 + usize::from(value),
            Class::NewAgain => 201,
            Class::New(value) => 202 + usize::from(value),
            Class::NewOf(value) => 331 + usize::from(value),
        }
    }

    /// The class that a number stands for, if there is one.
    pub(super) fn of_code(code: u16) -> Option<Self> {
        let value = code as u8;
        match code >> 8 {
            0 if value < 64 => Some(Class::Lag(value)),
            1 if value <= 128 => Some(Class::Repeats(value)),
            2 if u32::from(value) < IMPORTANCE_CLASSES => Some(Class::RepeatsOf(value)),
            3 if value == 0 => Some(Class::NewAgain),
            4 if value <= 128 => Some(Class::New(value)),
            5 if u32::from(value) < IMPORTANCE_CLASSES => Some(Class::NewOf(value)),
            _ => None,
        }
    }

    /// The class with its division moved.
    pub(super) fn shifted(self, by: i16) -> Self {
        match self {
            Class::Repeats(division) => Class::Repeats(shifted(division, by)),
            Class::New(division) => Class::New(shifted(division, by)),
            other => other,
        }
    }

    /// Whether it is of a division before this one.
    pub(super) fn is_before(self, oldest: u8) -> bool {
        matches!(self, Class::Repeats(division) | Class::New(division) if division < oldest)
    }
}

/// A division, moved.
pub(super) fn shifted(division: u8, by: i16) -> u8 {
    (i16::from(division) + by).clamp(1, 128) as u8
}

/// A tally: class, wrong and all, in 16, 24 and 24 bits. Two halves, so that it lies at any multiple of four bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tally([u32; 2]);

impl Tally {
    fn new(class: Class, counts: (u64, u64)) -> Self {
        let packed = pack(class, counts);
        Tally([packed as u32, (packed >> 32) as u32])
    }

    fn packed(self) -> u64 {
        u64::from(self.0[1]) << 32 | u64::from(self.0[0])
    }

    /// What was counted of which class.
    fn read(self) -> Option<(Class, (u64, u64))> {
        Some((Class::of_code((self.packed() >> 48) as u16)?, counts(self.packed())))
    }

    /// Counts so many more; false, and nothing counted, if it is another's or full.
    #[inline]
    fn add(&mut self, code: u16, (all, wrong): (u64, u64)) -> bool {
        // Neither number runs over into the bits above it: of all there are no more than fit, and of wrong ones no more than of all.
        let packed = self.packed();
        let fits = packed >> 48 == u64::from(code) && (packed & MOST) + all <= MOST;
        if fits {
            let packed = packed + (wrong << 24 | all);
            *self = Tally([packed as u32, (packed >> 32) as u32]);
        }
        fits
    }

    fn is_before(self, oldest: u8) -> bool {
        self.read().is_some_and(|(class, _)| class.is_before(oldest))
    }

    fn shifted(self, by: i16) -> Self {
        self.read().map_or(self, |(class, counts)| Tally::new(class.shifted(by), counts))
    }
}

/// The class, all and wrong, as they are saved.
pub(super) fn pack(class: Class, (all, wrong): (u64, u64)) -> u64 {
    u64::from(class.code()) << 48 | wrong << 24 | all
}

/// All and wrong.
pub(super) fn counts(packed: u64) -> (u64, u64) {
    (packed & MOST, packed >> 24 & MOST)
}

/// The tallies of all followed keys: lists in one piece of memory. What was counted last stands first, unless a list was saved or
/// cut since: the order is for speed alone.
#[derive(Debug, Clone)]
pub(super) struct Tallies {
    nodes: Vec<(Tally, u32)>,
    free: u32,
    most: usize,
}

impl Tallies {
    pub(super) fn new(most: usize) -> Self {
        Tallies { nodes: Vec::new(), free: NONE, most: most.min(NONE as usize) }
    }

    /// Counts so many more, of which so many were wrong; false, and nothing counted, if there is no room. No more than
    /// one tally holds.
    pub(super) fn add(&mut self, head: &mut u32, class: Class, counts: (u64, u64)) -> bool {
        let (code, mut at, mut before) = (class.code(), *head, NONE);
        while let Some((tally, next)) = self.nodes.get_mut(at as usize) {
            if tally.add(code, counts) {
                // It is the likeliest to be counted next, and lists of keys that come often are long.
                if before != NONE {
                    let after = std::mem::replace(next, *head);
                    self.nodes[before as usize].1 = after;
                    *head = at;
                }
                return true;
            }
            (before, at) = (at, *next);
        }
        self.push(head, class, counts)
    }

    /// Counts in a tally of its own: a list that was saved need not be searched for each of its tallies.
    pub(super) fn push(&mut self, head: &mut u32, class: Class, counts: (u64, u64)) -> bool {
        let Some(place) = self.room() else { return false };
        self.nodes[place as usize] = (Tally::new(class, (counts.0.min(MOST), counts.1.min(MOST))), *head);
        *head = place;
        true
    }

    fn room(&mut self) -> Option<u32> {
        if self.free != NONE {
            let place = self.free;
            self.free = self.nodes[place as usize].1;
            return Some(place);
        }
        let length = self.nodes.len();
        if length >= self.most {
            return None;
        }
        if length == self.nodes.capacity() {
            // Exactly so many, so that doubling does not go beyond what was given.
            self.nodes.try_reserve_exact(length.max(64).min(self.most - length)).ok()?;
        }
        self.nodes.push((Tally([0; 2]), NONE));
        Some(length as u32)
    }

    /// What was counted for a key.
    pub(super) fn of(&self, head: u32) -> impl Iterator<Item = (Class, (u64, u64))> + '_ {
        let node = |at: u32| self.nodes.get(at as usize);
        std::iter::successors(node(head), move |(_, next)| node(*next)).filter_map(|(tally, _)| tally.read())
    }

    pub(super) fn free_all(&mut self, mut head: u32) {
        while head != NONE {
            head = self.let_go(head);
        }
    }

    /// Frees one, and says which came after it.
    fn let_go(&mut self, at: u32) -> u32 {
        let next = std::mem::replace(&mut self.nodes[at as usize].1, self.free);
        self.free = at;
        next
    }

    /// Forgets what is counted for divisions before this one; whether there was anything.
    pub(super) fn keep_since(&mut self, head: &mut u32, oldest: u8) -> bool {
        let (mut at, mut kept, mut is_any) = (*head, NONE, false);
        while at != NONE {
            if self.nodes[at as usize].0.is_before(oldest) {
                is_any = true;
                at = self.let_go(at);
            } else {
                let next = std::mem::replace(&mut self.nodes[at as usize].1, kept);
                (kept, at) = (at, next);
            }
        }
        *head = kept;
        is_any
    }

    /// Moves the divisions of a key's tallies.
    pub(super) fn shift(&mut self, head: u32, by: i16) {
        let mut at = head;
        while let Some((tally, next)) = self.nodes.get_mut(at as usize) {
            *tally = tally.shifted(by);
            at = *next;
        }
    }

    pub(super) fn clear(&mut self) {
        (self.nodes, self.free) = (Vec::new(), NONE);
    }
}

/// Classes in all.
const CLASSES: usize = 331 + IMPORTANCE_CLASSES as usize;

/// What all covered arrivals came to: a few KiB.
#[derive(Debug, Clone)]
pub(super) struct Totals {
    pub(super) arrivals: u64,
    /// All and wrong, by class.
    counts: Vec<(u64, u64)>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals { arrivals: 0, counts: vec![(0, 0); CLASSES] }
    }
}

impl Totals {
    pub(super) fn add(&mut self, class: Class, (all, wrong): (u64, u64)) {
        let counts = &mut self.counts[class.index()];
        *counts = (counts.0.saturating_add(all), counts.1.saturating_add(wrong));
    }

    /// The classes of which something was counted, in one order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Class, (u64, u64))> + '_ {
        let classes = (0..6 << 8).filter_map(Class::of_code);
        classes.map(|class| (class, self.counts[class.index()])).filter(|(_, counts)| counts.0 > 0)
    }

    pub(super) fn merge(&mut self, other: &Totals, shift: i16) {
        self.arrivals = self.arrivals.saturating_add(other.arrivals);
        other.iter().for_each(|(class, counts)| self.add(class.shifted(shift), counts));
    }

    pub(super) fn shift(&mut self, by: i16) {
        let before = std::mem::take(self);
        self.merge(&before, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom_cells::key::finalise;
    use std::collections::BTreeMap;

    #[test]
    fn lists_count_what_maps_would_whatever_comes_in_which_order() {
        let (mut tallies, mut heads, mut maps) = (Tallies::new(1000), [NONE; 5], vec![BTreeMap::new(); 5]);
        for turn in 0..50_000 {
            let random = finalise(turn);
            let (key, wrong) = (random as usize % 5, random >> 8 & 1);
            let class = match random >> 9 & 3 {
                0 => Class::NewAgain,
                1 => Class::Repeats((turn / 5000) as u8 + 1),
                _ => Class::lag(random >> 11 & (random >> 40)),
            };
            assert!(tallies.add(&mut heads[key], class, (1, wrong)));
            let map: &mut (u64, u64) = maps[key].entry(class).or_default();
            *map = (map.0 + 1, map.1 + wrong);
            if turn % 7000 == 0 {
                let oldest = (turn / 5000) as u8;
                tallies.keep_since(&mut heads[key], oldest);
                maps[key].retain(|class, _| !class.is_before(oldest));
            }
        }
        for (head, map) in heads.into_iter().zip(maps) {
            assert!(map.len() > 20);
            assert_eq!(tallies.of(head).collect::<Vec<_>>().len(), map.len());
            assert_eq!(tallies.of(head).collect::<BTreeMap<_, _>>(), map);
        }
    }

    #[test]
    fn what_one_tally_cannot_count_another_one_does() {
        let (mut tallies, mut head) = (Tallies::new(2), NONE);
        let class = Class::Lag(3);
        assert!(tallies.add(&mut head, class, (MOST - 1, MOST - 1)));
        (0..3).for_each(|_| assert!(tallies.add(&mut head, class, (1, 1))));
        let mut counted: Vec<_> = tallies.of(head).collect();
        counted.sort_unstable();
        assert_eq!(counted, [(class, (2, 2)), (class, (MOST, MOST))]);
        assert!(!tallies.add(&mut head, Class::NewAgain, (1, 0)), "there is room for two");
    }
}
