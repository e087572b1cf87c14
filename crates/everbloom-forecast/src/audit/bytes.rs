//! An audit as bytes: saved with its filter, read back from whoever sends them.
//!
//! Numbers are little-endian and 64 bits wide but where said otherwise.
//!
//! ```text
//! memory, seed, arrivals, how far turns moved the window, halvings,
//! flags (1 weighted, 2 horizon, 4 which counts arrivals, 8 and renews; 256 times the arrivals of which one is drawn, where 0 is
//! 32, as it was at first), within, beyond, turn
//! places; of each place id, arrival, anchor, votes (256 more if the key is awaited)
//! covered arrivals, classes; of each class its number, all, wrong
//! keys; of each key, by ascending id: id, arrival, anchor, tallies (32 bits), division, importance, wrong, 0 (8 bits each);
//!       of each tally its class, all, wrong in 16, 24 and 24 bits
//! ```

use super::divisions::{division_of, start_of};
use super::hot::{Hot, MOST_VOTES, Place};
use super::lots::{ONCE_ONE_IN, ONE_IN, SamplingSchedule};
use super::tallies::{self, Class, NONE};
use super::{Audit, Followed, Horizon, IMPORTANCE_CLASSES, LATEST, Seen};
use everbloom::kind::{StateReader, StateWriter};
use everbloom::{Error, Result};

impl Audit {
    /// The audit as bytes, which are the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let none = Horizon { within: 0, beyond: 0, turn: 0, counts_arrivals: false, renews: false };
        let horizon = self.horizon.unwrap_or(none);
        let flags = [self.weighted, self.horizon.is_some(), horizon.counts_arrivals, horizon.renews];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
        let one_in = if self.lots.one_in == ONCE_ONE_IN { 0 } else { self.lots.one_in };
        let start = [
            self.memory_bytes,
            self.seed,
            self.arrivals,
            self.turned,
            self.halvings.into(),
            flags | one_in << 8,
            horizon.within,
            horizon.beyond,
            horizon.turn,
            self.hot.ids.len() as u64,
        ];
        let mut out = start.into_iter().fold(StateWriter::new(), StateWriter::u64);
        for ((id, awaited), Place { seen, votes }) in self.hot.ids.iter().zip(&self.hot.awaited).zip(&self.hot.places) {
            let is_awaited = u64::from(*awaited != 0) << 8;
            out = out.u64(*id).u64(seen.arrival).u64(seen.anchor as u64).u64(u64::from(*votes) | is_awaited);
        }
        let covered: Vec<_> = self.covered.iter().collect();
        out = out.u64(self.covered.arrivals).u64(covered.len() as u64);
        for (class, (all, wrong)) in covered {
            out = out.u64(class.code().into()).u64(all).u64(wrong);
        }
        out = out.u64(self.keys.len() as u64);
        let mut keys: Vec<_> = self.keys.iter().collect();
        keys.sort_unstable_by_key(|(id, _)| **id);
        for (id, followed) in keys {
            let mut packed: Vec<u64> =
                self.kept(followed).map(|(class, counts)| tallies::pack(class, counts)).collect();
            packed.sort_unstable();
            out = out.u64(*id).u64(followed.seen.arrival).u64(followed.seen.anchor as u64);
            out = out.bytes(&(packed.len() as u32).to_le_bytes());
            out = out.bytes(&[followed.division, followed.importance, followed.wrong.into(), 0]);
            out = packed.into_iter().fold(out, StateWriter::u64);
        }
        out.finish()
    }

    /// How many bytes that makes.
    pub fn encoded_bytes(&self) -> u64 {
        let tallies: usize = self.keys.values().map(|followed| self.kept(followed).count()).sum();
        let words =
            10 + self.hot.ids.len() * 4 + 2 + self.covered.iter().count() * 3 + 1 + self.keys.len() * 4 + tallies;
        words as u64 * 8
    }

    /// What was counted of a key, but for what nobody asks for any more.
    fn kept(&self, followed: &Followed) -> impl Iterator<Item = (Class, (u64, u64))> + '_ {
        let oldest = self.last_from();
        self.tallies.of(followed.head).filter(move |(class, _)| !class.is_before(oldest))
    }

    /// The audit in these bytes. They are trusted with nothing: no more is allocated than their length justifies.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut state = StateReader::new(bytes);
        let audit = read(&mut state).map_err(|_| damaged())?;
        state.finish().map_err(|_| damaged())?;
        Ok(audit)
    }
}

fn damaged() -> Error {
    Error::corrupt("the audit beside the filter is damaged")
}

fn read(state: &mut StateReader<'_>) -> Result<Audit> {
    let mut start = [0; 10];
    for word in &mut start {
        *word = state.u64()?;
    }
    let [memory, seed, arrivals, turned, halvings, flags, within, beyond, turn, places] = start;
    let mut audit = Audit::new(memory, seed)?;
    let is_sound = halvings < 64 && flags & 255 < 16 && arrivals < LATEST && turned <= LATEST && within <= beyond;
    if !is_sound || places != audit.hot.ids.len() as u64 {
        return Err(damaged());
    }
    let bit = |place: u32| flags >> place & 1 == 1;
    audit.horizon = bit(1).then_some(Horizon { within, beyond, turn, counts_arrivals: bit(2), renews: bit(3) });
    (audit.arrivals, audit.turned, audit.weighted) = (arrivals, turned, bit(0));
    audit.halvings = halvings as u32;
    audit.division = division_of(arrivals);
    audit.next_division = start_of(audit.division + 1);
    read_hot(state, &mut audit.hot, arrivals)?;
    let one_in = match flags >> 8 {
        0 => ONCE_ONE_IN,
        ONE_IN => ONE_IN,
        _ => return Err(damaged()),
    };
    audit.lots = SamplingSchedule::after(arrivals, one_in, seed);
    audit.covered.arrivals = bounded(state.u64()?, arrivals)?;
    for _ in 0..state.u64()? {
        let class = class_of(state.u64()?)?;
        let all = bounded(state.u64()?, arrivals)?;
        audit.covered.add(class, (all, bounded(state.u64()?, all)?));
    }
    read_keys(state, &mut audit)?;
    Ok(audit)
}

fn read_hot(state: &mut StateReader<'_>, hot: &mut Hot, arrivals: u64) -> Result<()> {
    for ((id, awaited), place) in hot.ids.iter_mut().zip(&mut hot.awaited).zip(&mut hot.places) {
        *id = state.u64()?;
        let seen = Seen { arrival: bounded(state.u64()?, arrivals)?, anchor: state.u64()? as i64 };
        let votes = bounded(state.u64()?, 256 + u64::from(MOST_VOTES))?;
        *awaited = if votes >= 256 { *id } else { 0 };
        *place = Place { seen, votes: bounded(votes & 255, MOST_VOTES.into())? as u8 };
    }
    Ok(())
}

fn read_keys(state: &mut StateReader<'_>, audit: &mut Audit) -> Result<()> {
    let (count, mut before) = (bounded(state.u64()?, audit.most_keys as u64)?, 0);
    for _ in 0..count {
        let id = state.u64()?;
        let arrival = bounded(state.u64()?, audit.arrivals)?;
        let anchor = state.u64()? as i64;
        let mixed = state.u64()?;
        let [.., division, importance, wrong, zero] = mixed.to_le_bytes();
        let is_sound = id > before && id <= u64::MAX >> audit.halvings && arrival > 0 && wrong <= 1 && zero == 0;
        if !is_sound || !(1..=128).contains(&division) || u32::from(importance) >= IMPORTANCE_CLASSES {
            return Err(damaged());
        }
        before = id;
        let seen = Seen { arrival, anchor };
        let mut followed = Followed { seen, head: NONE, division, importance, wrong: wrong == 1 };
        for _ in 0..mixed as u32 {
            let packed = state.u64()?;
            let class = class_of(packed >> 48)?;
            let (all, wrong) = tallies::counts(packed);
            if all == 0 || wrong > all || !audit.tallies.push(&mut followed.head, class, (all, wrong)) {
                return Err(damaged());
            }
        }
        audit.keys.try_reserve(1).map_err(|_| damaged())?;
        audit.keys.insert(id, followed);
    }
    Ok(())
}

fn class_of(code: u64) -> Result<Class> {
    u16::try_from(code).ok().and_then(Class::of_code).ok_or_else(damaged)
}

/// A number that is no more than another.
fn bounded(value: u64, most: u64) -> Result<u64> {
    if value <= most { Ok(value) } else { Err(damaged()) }
}
