//! Reinsertion: important keys are kept aside and inserted again from time to time.
//!
//! A key above the importance threshold that the filter calls distinct goes into a cache, the oldest
//! entry making room. When triggered, every so many arrivals or while too few cells are zero, one
//! entry is inserted again, as an arrival that nobody asks about: it deletes, then inserts, so the
//! fill stays what it is without reinsertion. The thesis found that the cache's memory is better spent
//! on cells; it is 192 bits an entry, and counted.

use super::draws::Draws;
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use everbloom::kind::{StateReader, StateWriter, Takes, choice_name, one_of};
use everbloom::{Error, Importance, KeyHash, Result, Spec};

/// Which entry is inserted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// The one that has waited longest.
    Fifo,
    /// One at random.
    Random,
}

const CHOICES: &[(&str, Option<Choice>)] =
    &[("off", None), ("fifo", Some(Choice::Fifo)), ("random", Some(Choice::Random))];

/// The values of `reinsert`.
pub(super) const CHOICE: Takes = one_of!(CHOICES);

/// When and what to insert again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reinsertion {
    /// Which entry.
    pub choice: Choice,
    /// The share of the greatest importance above which keys are cached.
    pub above: f64,
    /// Entries of the cache.
    pub slots: u64,
    /// Arrivals between two reinsertions; 0 for never.
    pub every: u64,
    /// The share of zero cells below which every arrival is followed by a reinsertion; 0 for never.
    pub below: f64,
}

const DEFAULT_ABOVE: f64 = 0.8;
const DEFAULT_EVERY: u64 = 10;
const LEAST_SLOTS: u64 = 8;
pub(super) const MAX_SLOTS: u64 = 1 << 32;
/// By default one entry for this many cells.
const CELLS_PER_SLOT: u64 = 128;

/// What a spec says about reinsertion; what it leaves out is small against `num_cells`.
pub(super) fn from_spec(spec: &Spec, num_cells: u64) -> Result<Option<Reinsertion>> {
    let choice = spec.choice("reinsert", CHOICES, None)?;
    let above = spec.value("reinsert_above", "a share between 0 and 1")?;
    let (slots, every) = (spec.number("reinsert_slots")?, spec.number("reinsert_every")?);
    let below = spec.value("reinsert_below", "a share between 0 and 1")?;
    let Some(choice) = choice else {
        if above.is_some() || slots.is_some() || every.is_some() || below.is_some() {
            return Err(spec.error("nothing is reinserted", "add reinsert=fifo or reinsert=random"));
        }
        return Ok(None);
    };
    let reinsertion = Reinsertion {
        choice,
        above: above.unwrap_or(DEFAULT_ABOVE),
        slots: slots.unwrap_or_else(|| (num_cells / CELLS_PER_SLOT).max(LEAST_SLOTS)),
        every: every.unwrap_or(if below.is_some() { 0 } else { DEFAULT_EVERY }),
        below: below.unwrap_or(0.0),
    };
    reinsertion.checked()?;
    Ok(Some(reinsertion))
}

impl Reinsertion {
    pub(super) fn checked(&self) -> Result<()> {
        for (name, share) in [("reinsert_above", self.above), ("reinsert_below", self.below)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::parameter(name, share, "between 0 and 1", "give a share, as 0.8"));
            }
        }
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            let needed = format!("between 1 and {MAX_SLOTS}");
            return Err(Error::parameter("reinsert_slots", self.slots, needed, "1000 entries take 24 KB"));
        }
        Ok(())
    }

    pub(super) fn add_to(&self, spec: Spec) -> Spec {
        spec.with("reinsert", choice_name(CHOICES, Some(self.choice)))
            .with("reinsert_above", self.above)
            .with("reinsert_slots", self.slots)
            .with("reinsert_every", self.every)
            .with("reinsert_below", self.below)
    }

    pub(super) fn byte_length(&self) -> u64 {
        self.slots.saturating_mul(size_of::<Entry>() as u64)
    }

    /// Whether an arrival is followed by a reinsertion.
    #[inline]
    fn is_due(&self, arrivals: u64, nonzero: u64, num_cells: u64) -> bool {
        let periodic = self.every > 0 && arrivals.is_multiple_of(self.every);
        periodic || (self.below > 0.0 && ((num_cells - nonzero) as f64) < self.below * num_cells as f64)
    }
}

/// A key that matters; all zero where there is none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    high: u64,
    low: u64,
    value: u32,
    max: u32,
}

/// The keys kept aside.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    settings: Reinsertion,
    entries: Vec<Entry>,
    filled: u64,
    /// Where the next key goes.
    next_in: u64,
    /// Which entry has waited longest.
    next_out: u64,
}

impl Cache {
    pub(super) fn new(settings: Reinsertion) -> Result<Self> {
        let mut entries = Vec::new();
        entries
            .try_reserve_exact(settings.slots as usize)
            .map_err(|_| Error::OutOfMemory { bytes: settings.byte_length() })?;
        entries.resize(settings.slots as usize, Entry::zeroed());
        Ok(Cache { settings, entries, filled: 0, next_in: 0, next_out: 0 })
    }

    /// Takes note of an arrival; gives the key to insert again, if it is time.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        (hash, importance, distinct): (KeyHash, Importance, bool),
        (arrivals, nonzero, num_cells): (u64, u64, u64),
        draws: &mut Draws,
    ) -> Option<(KeyHash, Importance)> {
        let due = self.settings.is_due(arrivals, nonzero, num_cells).then(|| self.choose(draws)).flatten();
        if distinct && f64::from(importance.value()) > self.settings.above * f64::from(importance.max()) {
            self.keep(hash, importance);
        }
        due
    }

    fn keep(&mut self, hash: KeyHash, importance: Importance) {
        let (value, max) = (importance.value(), importance.max());
        self.entries[self.next_in as usize] = Entry { high: hash.high, low: hash.low, value, max };
        self.next_in = (self.next_in + 1) % self.settings.slots;
        self.filled = (self.filled + 1).min(self.settings.slots);
    }

    fn choose(&mut self, draws: &mut Draws) -> Option<(KeyHash, Importance)> {
        if self.filled == 0 {
            return None;
        }
        let chosen = match self.settings.choice {
            Choice::Random => draws.below(self.filled),
            Choice::Fifo => {
                let oldest = self.next_out % self.filled;
                self.next_out = (oldest + 1) % self.filled;
                oldest
            }
        };
        let Entry { high, low, value, max } = self.entries[chosen as usize];
        Some((KeyHash { high, low }, Importance::new(value, max).ok()?))
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(Entry::zeroed());
        (self.filled, self.next_in, self.next_out) = (0, 0, 0);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        cast_slice(&self.entries)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.entries)
    }

    pub(super) fn write_state(&self, state: StateWriter) -> StateWriter {
        state.u64(self.filled).u64(self.next_in).u64(self.next_out)
    }

    pub(super) fn restore(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        (self.filled, self.next_in, self.next_out) = (state.u64()?, state.u64()?, state.u64()?);
        let slots = self.settings.slots;
        if self.filled > slots || self.next_in >= slots || self.next_out >= slots {
            return Err(Error::corrupt("the filter's reinsertion cache points outside itself"));
        }
        Ok(())
    }

    /// Refuses entries that are no keys; called when the bytes are in.
    pub(super) fn check(&self) -> Result<()> {
        let (filled, empty) = self.entries.split_at(self.filled as usize);
        let wrong = |entry: &Entry| entry.max == 0 || entry.value > entry.max;
        if filled.iter().any(wrong) || empty.iter().any(|entry| *entry != Entry::zeroed()) {
            return Err(Error::corrupt("the filter's reinsertion cache holds what is no key"));
        }
        Ok(())
    }
}
