//! Commands that take out, turn, clear, merge and load.

use super::limits;
use super::note::Noted;
use super::stored::{Counts, Scale, Stored, Turns, belongs};
use super::tokens::Tokens;
use super::words::{Words, not_found, number};
use crate::report::COUNTERS;
use crate::server::{Call, Failure};
use everbloom::kind::Combine;
use everbloom::{AnyFilter, Error, KeyHash, Span};
use everbloom_all::KINDS;
use std::sync::atomic::Ordering::Relaxed;

/// `EB.REMOVE key item…`
pub(super) fn remove(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut key = call.write::<Stored>(1)?;
    let stored = key.value().ok_or_else(not_found)?;
    stored.filter.removal()?;
    let hashing = stored.hashing();
    let hashes: Vec<KeyHash> = call.words_from(2).map(|item| hashing.hash(item)).collect();
    stored.turn(call);
    let removal = stored.filter.removal()?;
    let removed: Vec<bool> = hashes.into_iter().map(|hash| removal.remove_hash(hash)).collect();
    if removed.contains(&true) {
        call.replicate_verbatim();
        call.notify(c"eb.remove", 1);
    }
    call.reply_array(removed.len());
    removed.iter().for_each(|removed| call.reply_bool(*removed));
    Ok(())
}

/// `EB.ADVANCE key [generations]`; replicas are also told where they are: `AT generation`.
pub(super) fn advance(call: &mut Call<'_>) -> Result<(), Failure> {
    let generations: u64 = if call.len() > 2 { number(call.word(2), "the number of generations")? } else { 1 };
    let at: Option<u64> = match call.len() {
        ..=3 => None,
        5 if call.word(3) == b"AT" && call.must_obey() => Some(number(call.word(4), "AT")?),
        _ => return Err(Failure::Arity),
    };
    if generations == 0 && at.is_none() {
        return Err(Failure::new("the number of generations is 0, but must be at least 1"));
    }
    let mut key = call.write::<Stored>(1)?;
    let stored = key.value().ok_or_else(not_found)?;
    if stored.filter.as_windowed().is_none() {
        // Which names the kinds that can.
        stored.filter.advance()?;
    }
    stored.turn(call);
    if let Some(windowed) = stored.filter.as_windowed().filter(|_| generations > 0) {
        windowed.advance_by(generations);
    }
    if let (Some(turns), Some(at)) = (&mut stored.turns, at) {
        turns.generation = at;
    }
    call.replicate_verbatim();
    call.notify(c"eb.advance", 1);
    call.reply_ok();
    Ok(())
}

/// `EB.CLEAR key`
pub(super) fn clear(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut key = call.write::<Stored>(1)?;
    key.value().ok_or_else(not_found)?.clear();
    call.replicate_verbatim();
    call.notify(c"eb.clear", 1);
    call.reply_ok();
    Ok(())
}

/// `EB.MERGE UNION|INTERSECT dest src [src …]`
pub(super) fn merge(call: &mut Call<'_>) -> Result<(), Failure> {
    let how = match call.word(1).to_ascii_uppercase().as_slice() {
        b"UNION" => Combine::Union,
        b"INTERSECT" => Combine::Intersection,
        other => {
            let given = String::from_utf8_lossy(other).into_owned();
            return Err(Failure::new(format!("'{given}' is no way to merge; write UNION or INTERSECT")));
        }
    };
    let merged = Merged::read(call, how)?;
    let mut key = call.write::<Stored>(2)?;
    match key.value() {
        Some(stored) => {
            stored.replace_filter(merged.filter);
            stored.counts = merged.counts;
        }
        None => {
            let mut stored = Stored::new(merged.filter);
            (stored.counts, stored.importance, stored.turns) = (merged.counts, merged.importance, merged.turns);
            key.set(stored);
        }
    }
    call.replicate_verbatim();
    call.notify(c"eb.merge", 2);
    call.reply_ok();
    Ok(())
}

/// What filters come to, made apart from all of them: if one does not fit, nothing was changed.
struct Merged {
    filter: AnyFilter,
    counts: Counts,
    importance: Option<Scale>,
    turns: Option<Turns>,
}

impl Merged {
    fn read(call: &Call<'_>, how: Combine) -> Result<Self, Failure> {
        let destination = call.read::<Stored>(2)?;
        let first = if destination.is_some() { 2 } else { 3 };
        let mut merged: Option<Merged> = None;
        for place in first..call.len() {
            // A filter merged with itself is itself.
            if place > 2 && destination.is_some() && call.word(place) == call.word(2) {
                continue;
            }
            let source = call.read::<Stored>(place)?.ok_or_else(|| {
                let name = String::from_utf8_lossy(call.word(place)).into_owned();
                Failure::new(format!("'{name}' is not found; reserve it with EB.RESERVE"))
            })?;
            match &mut merged {
                Some(merged) => merged.take(call, &source, how)?,
                None => {
                    let bytes = source.filter.memory_bits() / 8;
                    limits::check(call, bytes, if place == 2 { 0 } else { bytes })?;
                    let Stored { counts, importance, turns, .. } = *source;
                    let filter = AnyFilter::from(limits::made(call, source.filter.try_clone_boxed())?);
                    merged = Some(Merged { filter, counts, importance, turns });
                }
            }
        }
        merged.ok_or_else(not_found)
    }

    fn take(&mut self, call: &Call<'_>, source: &Stored, how: Combine) -> Result<(), Failure> {
        let (one, other, before) = (self.counts, source.counts, self.filter.memory_bits());
        match how {
            Combine::Union => {
                limits::made(call, self.filter.merge(&source.filter))?;
                self.counts.observed = one.observed.saturating_add(other.observed);
                self.counts.distinct = one.distinct.saturating_add(other.distinct);
            }
            Combine::Intersection => {
                limits::made(call, self.filter.intersect(&source.filter))?;
                self.counts.observed = one.observed.min(other.observed);
                self.counts.distinct = one.distinct.min(other.distinct);
            }
        }
        // What counts exactly grows with what it takes in.
        let now = self.filter.memory_bits();
        limits::check(call, now / 8, now.saturating_sub(before) / 8)
    }
}

/// `EB.LOAD key bytes [REPLACE] [COUNTS observed distinct] [IMPORTANCE max [LOG]] [EVERY duration [AT generation]]
/// [TOKENS bytes]`
pub(super) fn load(call: &mut Call<'_>) -> Result<(), Failure> {
    let (mut replace, mut counts, mut importance, mut turns, mut tokens) =
        (false, Counts::default(), None, None, Tokens::default());
    let mut words = Words::from(call, 3, &["REPLACE", "COUNTS", "IMPORTANCE", "EVERY", "TOKENS"]);
    while let Some(option) = words.option()? {
        match option {
            "REPLACE" => replace = true,
            "COUNTS" => {
                counts = Counts::checked(words.number(option)?, words.number(option)?).map_err(Failure::new)?;
            }
            "IMPORTANCE" => {
                let max = words.number(option)?;
                importance = Some(Scale::new(max, words.takes("LOG"))?);
            }
            "EVERY" => {
                let every = Span::from(words.text(option)?).named("time").get()?;
                let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
                let generation = if words.takes("AT") { words.number("AT")? } else { Turns::at(every, call.now()) };
                turns = Some(Turns::checked(every, generation).map_err(Failure::new)?);
            }
            _ => tokens = Tokens::from_bytes(words.value(option)?).map_err(Failure::new)?,
        }
    }
    let mut key = call.write::<Stored>(1)?;
    if key.value().is_some() && !replace {
        return Err(Failure::busy());
    }
    let mut filter = decoded(call, call.word(2))?;
    belongs(&mut filter, turns).map_err(Failure::new)?;
    let mut stored = Stored::new(filter);
    (stored.counts, stored.importance, stored.turns, stored.tokens) = (counts, importance, turns, tokens);
    take_note(call, &mut stored)?;
    // A replica's clock may show another time.
    let options = stored.turns.map(|_| stored.load_options());
    match key.value() {
        // In its place, so that the key expires when it would have: a repaired replica's, too.
        Some(before) => *before = stored,
        None => key.set(stored),
    }
    match options {
        Some(options) => replicate_load(call, 1, call.word(2), &options),
        None => call.replicate_verbatim(),
    }
    call.notify(c"eb.load", 1);
    call.reply_ok();
    Ok(())
}

/// What a file notes holds where the command says nothing else.
fn take_note(call: &Call<'_>, stored: &mut Stored) -> Result<(), Failure> {
    let bytes = call.word(2);
    let note = KINDS.decoder().summarise(&mut &*bytes, bytes.len() as u64)?.note;
    if note.is_empty() || stored.turns.is_some() && stored.importance.is_some() {
        return Ok(());
    }
    let noted = Noted::read(&note).map_err(Failure::new)?;
    if stored.turns.is_none() {
        stored.turns = noted.turns(stored.generations, call.now()).transpose().map_err(Failure::new)?;
    }
    if stored.importance.is_none() && KINDS.of(stored.filter.spec())?.can.weigh_importance {
        stored.importance = noted.importance().transpose()?;
    }
    Ok(())
}

/// The filter in these bytes, within the limits of whom they come from: also what is compressed is looked at before it
/// is unpacked.
fn decoded(call: &Call<'_>, bytes: &[u8]) -> Result<AnyFilter, Failure> {
    let length = bytes.len() as u64;
    limits::check(call, length, length)?;
    let most = match call.must_obey() {
        true => u64::MAX,
        false => limits::most_bytes().min(call.memory_left().unwrap_or(u64::MAX)),
    };
    let decoded = KINDS.decoder().limit(most).decode(bytes);
    if decoded.is_err() {
        COUNTERS.loads_refused.fetch_add(1, Relaxed);
    }
    if let Err(Error::Parameter { name: "unpacked size", given, .. }) = &decoded {
        let limit = if most < limits::most_bytes() { "what maxmemory leaves" } else { "max-filter-bytes" };
        COUNTERS.refused_by_limit.fetch_add(1, Relaxed);
        let problem = format!("the filter unpacks to {given}, which is beyond {limit}, {most} bytes");
        return Err(Failure::new(format!("{problem}; raise it, or load a smaller filter")));
    }
    let filter = AnyFilter::from(limits::made(call, decoded)?);
    limits::check(call, filter.memory_bits() / 8, 0)?;
    Ok(filter)
}

/// After a panic in a write: replicas get the value as it is now.
pub(super) fn repair(call: &mut Call<'_>) -> Result<(), Failure> {
    repair_at(call, 1)
}

/// After a panic in a write of a command whose key is the second.
pub(super) fn repair_second(call: &mut Call<'_>) -> Result<(), Failure> {
    repair_at(call, 2)
}

fn repair_at(call: &Call<'_>, place: usize) -> Result<(), Failure> {
    let mut key = call.write::<Stored>(place)?;
    let Some(stored) = key.value() else { return Ok(()) };
    let bytes = stored.bytes().ok_or_else(|| Failure::new("there is no memory for a copy"))?;
    replicate_load(call, place, &bytes, &stored.load_options());
    Ok(())
}

/// Replicates a whole value.
fn replicate_load(call: &Call<'_>, place: usize, bytes: &[u8], options: &[Vec<u8>]) {
    let words = [call.word(place), bytes, b"REPLACE"].into_iter().chain(options.iter().map(Vec::as_slice));
    call.replicate(c"EB.LOAD", words);
}
