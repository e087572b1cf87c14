//! The least important cells, in order, without a pass over the cells.
//!
//! Cells are ordered by key (their importance), then by position. The lowest few are kept sorted in a
//! small **front**; a **fence** separates them from the rest: every cell that takes part and whose place
//! in the order is before the fence is in the front. Over the rest stands a tree of minima, sixteen
//! children to a node, over groups of sixteen cells.
//!
//! ```text
//! front   5@17  5@90  7@3 │ fence
//! tree                      [7]                 a node: the least key below it, or less
//!                [9] [7] [12] …
//!        groups [9 11 …] [7 30 …] [12 …]
//! ```
//!
//! A key that grows, and a cell that leaves the order, leave the minima above them too low until the search comes
//! across them and corrects them. So most arrivals touch no more than the lowest level of the tree, and taking the
//! lowest cells costs what refilling the front costs: a path down the tree for each cell that left it.
//!
//! Which cells are lowest depends on the keys alone, not on front, fence or tree: they are an index,
//! rebuilt when a filter is read, and no part of its bytes.

use super::weighed::GROUP;
use everbloom::{Error, Result};
use everbloom_cells::simd::prefetch;

/// Keys are below this: they share 64 bits with a position below 2^36.
pub(super) const KEY_LIMIT: u32 = 1 << 28;

const POSITION_BITS: u32 = 36;
const FAN: usize = 16;
/// No cell that takes part.
const NONE: u32 = u32::MAX;
/// A front shorter than this would be refilled too often.
const LEAST_FRONT: usize = 32;

/// What the queue orders.
pub(super) trait Keys {
    /// The key of a cell, or `None` if it takes no part.
    fn key(&self, position: u64) -> Option<u32>;

    /// The positions of a group.
    fn group(&self, group: usize) -> std::ops::Range<u64>;
}

#[inline]
fn packed(key: u32, position: u64) -> u64 {
    u64::from(key) << POSITION_BITS | position
}

#[inline]
fn position_of(entry: u64) -> u64 {
    entry & ((1 << POSITION_BITS) - 1)
}

/// The front, the fence and the tree.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    front: Vec<u64>,
    capacity: usize,
    fence: u64,
    /// Level 0 has a minimum for each group; each level is padded to whole nodes.
    levels: Vec<Vec<[u32; FAN]>>,
}

/// The length of the front: never more than there are cells, so that a spec alone cannot make it long.
fn capacity_for(groups: u64, decrements: u32) -> usize {
    let cells = groups.saturating_mul(GROUP as u64);
    LEAST_FRONT.max(cells.min(2 * u64::from(decrements)) as usize)
}

/// How many nodes each level has.
fn nodes_for(groups: u64) -> impl Iterator<Item = u64> {
    let nodes = |items: u64| items.div_ceil(FAN as u64);
    std::iter::successors(Some(nodes(groups)), move |&below| (below > 1).then(|| nodes(below)))
}

impl Queue {
    pub(super) fn new(groups: u64, decrements: u32) -> Result<Self> {
        let refused = |_| Error::OutOfMemory { bytes: groups.saturating_mul(4) };
        let capacity = capacity_for(groups, decrements);
        let mut levels = Vec::new();
        for nodes in nodes_for(groups) {
            let mut level = Vec::new();
            level.try_reserve_exact(nodes as usize).map_err(refused)?;
            level.resize(nodes as usize, [NONE; FAN]);
            levels.push(level);
        }
        Ok(Queue { front: Vec::with_capacity(capacity + 1), capacity, fence: 0, levels })
    }

    pub(super) fn memory_bits_for(groups: u64, decrements: u32) -> u64 {
        let tree: u64 = nodes_for(groups).fold(0, |sum, nodes| sum.saturating_add(nodes.saturating_mul(512)));
        tree.saturating_add((capacity_for(groups, decrements) as u64 + 1) * 64)
    }

    /// Forgets front and fence and computes every minimum anew.
    pub(super) fn rebuild(&mut self, groups: usize, keys: &impl Keys) {
        self.front.clear();
        self.fence = 0;
        for group in 0..groups {
            let least = keys.group(group).filter_map(|position| keys.key(position)).min();
            self.levels[0][group / FAN][group % FAN] = least.unwrap_or(NONE);
        }
        for level in 1..self.levels.len() {
            for node in 0..self.levels[level - 1].len() {
                self.levels[level][node / FAN][node % FAN] = least_of(&self.levels[level - 1][node]);
            }
        }
    }

    /// The lowest `count` cells, or as many as there are; makes sure that the front has them.
    #[inline]
    pub(super) fn lowest(&mut self, count: usize, keys: &impl Keys) -> usize {
        while self.front.len() < count && self.advance(keys) {}
        self.front.len().min(count)
    }

    /// The position of the cell at this place in the front.
    #[inline]
    pub(super) fn at(&self, place: usize) -> u64 {
        position_of(self.front[place])
    }

    /// Keeps, of the first `count` cells of the front, those that `keep` says yes to.
    #[inline]
    pub(super) fn retain_first(&mut self, count: usize, mut keep: impl FnMut(u64) -> bool) {
        let mut kept = 0;
        for place in 0..count {
            let entry = self.front[place];
            self.front[kept] = entry;
            kept += usize::from(keep(position_of(entry)));
        }
        self.front.drain(kept..count);
    }

    /// Takes note that a cell's key has changed; `None` where it takes no part.
    #[inline]
    pub(super) fn change(&mut self, position: u64, old: Option<u32>, new: Option<u32>) {
        let in_front = old.is_some_and(|key| packed(key, position) < self.fence);
        if old == new || (!in_front && new.is_none()) {
            return;
        }
        if in_front && let Some(place) = old.and_then(|key| self.front.binary_search(&packed(key, position)).ok()) {
            self.front.remove(place);
        }
        let Some(key) = new else { return };
        if packed(key, position) < self.fence {
            self.enter_front(packed(key, position));
        } else if in_front || old.is_none_or(|old| key < old) {
            self.offer(position, key);
        }
    }

    /// Asks for the minimum of a cell's group.
    #[inline(always)]
    pub(super) fn prefetch(&self, position: u64) {
        prefetch(&self.levels[0], position as usize / (GROUP * FAN));
    }

    fn enter_front(&mut self, entry: u64) {
        let place = self.front.partition_point(|other| *other < entry);
        self.front.insert(place, entry);
        if self.front.len() > self.capacity
            && let Some(last) = self.front.pop()
        {
            self.fence = last;
            self.offer(position_of(last), (last >> POSITION_BITS) as u32);
        }
    }

    /// Lowers the minima above a cell to its key.
    #[inline]
    fn offer(&mut self, position: u64, key: u32) {
        let mut item = position as usize / GROUP;
        for level in &mut self.levels {
            let least = &mut level[item / FAN][item % FAN];
            if *least <= key {
                return;
            }
            *least = key;
            item /= FAN;
        }
    }

    /// Moves the fence behind the next cell, which joins the front; false if there is none.
    fn advance(&mut self, keys: &impl Keys) -> bool {
        while let Some((group, key)) = self.least_group() {
            let (first, second) = self.two_lowest(group, keys);
            if first == u64::MAX || (first >> POSITION_BITS) as u32 != key {
                self.correct(group, first);
                continue;
            }
            self.front.push(first);
            self.fence = first + 1;
            self.correct(group, second);
            return true;
        }
        false
    }

    /// The two lowest cells of a group behind the fence.
    fn two_lowest(&self, group: usize, keys: &impl Keys) -> (u64, u64) {
        let (mut first, mut second) = (u64::MAX, u64::MAX);
        for position in keys.group(group) {
            let entry = keys.key(position).map_or(u64::MAX, |key| packed(key, position));
            let entry = if entry < self.fence { u64::MAX } else { entry };
            second = second.min(entry.max(first));
            first = first.min(entry);
        }
        (first, second)
    }

    /// The first group whose minimum, as far as the tree knows, is the least.
    fn least_group(&self) -> Option<(usize, u32)> {
        let key = least_of(&self.levels.last()?[0]);
        if key == NONE {
            return None;
        }
        let child = |node: &[u32; FAN]| node.iter().position(|least| *least == key).unwrap_or(0);
        Some((self.levels.iter().rev().fold(0, |node, level| node * FAN + child(&level[node])), key))
    }

    /// Sets a group's minimum and those above it.
    fn correct(&mut self, group: usize, lowest: u64) {
        let mut least = if lowest == u64::MAX { NONE } else { (lowest >> POSITION_BITS) as u32 };
        let mut item = group;
        for level in &mut self.levels {
            let node = &mut level[item / FAN];
            if node[item % FAN] == least {
                return;
            }
            node[item % FAN] = least;
            least = least_of(node);
            item /= FAN;
        }
    }
}

#[inline]
fn least_of(node: &[u32; FAN]) -> u32 {
    node.iter().fold(NONE, |least, key| least.min(*key))
}
