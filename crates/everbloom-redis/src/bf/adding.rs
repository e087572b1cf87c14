//! `BF.RESERVE`, `BF.ADD`, `BF.MADD`, `BF.INSERT`.
//!
//! What is replicated is what was done: a filter that is created by an addition goes to replicas with all of its properties,
//! because their settings may differ; additions that changed nothing do not go there; of a command that was refused half-way,
//! only what was added does.

use super::chain::{self, Chain};
use super::numbers::{fraction, integer};
use super::{not_found, without_code};
use crate::eb::limits::{most_bytes, obeyed};
use crate::fault;
use crate::report::COUNTERS;
use crate::server::{Call, Failure, Level, Writing};
use crate::settings::{BF_ERROR_RATE, BF_EXPANSION_FACTOR, BF_INITIAL_SIZE};
use everbloom::{Hashing, KeyHash};
use everbloom_compat::RedisBloom;
use everbloom_compat::redisbloom::{Parameters, Refusal};
use std::sync::atomic::Ordering::Relaxed;

/// The most keys that a first stage may be made for.
const MOST_CAPACITY: i64 = 1 << 30;
/// The most times as many keys that a stage may have than the one before.
const MOST_EXPANSION: i64 = 32_768;
/// RedisBloom takes no higher rate, and does not say so.
const HIGHEST_RATE: f64 = 0.25;
/// How stages of a filter would grow that does not: RedisBloom writes it down all the same.
const UNUSED_EXPANSION: i64 = 2;

/// By what a filter is made.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted {
    capacity: i64,
    error_rate: f64,
    expansion: i64,
    is_fixed: bool,
}

impl Wanted {
    /// What the settings say.
    fn by_settings() -> Self {
        let expansion = BF_EXPANSION_FACTOR.get();
        Wanted {
            capacity: BF_INITIAL_SIZE.get(),
            error_rate: BF_ERROR_RATE.get_fraction(),
            expansion,
            is_fixed: expansion == 0,
        }
    }

    fn parameters(&self) -> Parameters {
        let rate = self.error_rate.min(HIGHEST_RATE);
        // All three were held to their ranges.
        let grows = Parameters::new(self.capacity.unsigned_abs(), rate).expansion(self.expansion as u32);
        if self.is_fixed { grows.nonscaling() } else { grows }
    }

    /// The words of `BF.INSERT` that say the same, whatever the settings of who reads them.
    fn words(&self) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = vec![b"CAPACITY".into(), self.capacity.to_string().into()];
        words.extend([b"ERROR".into(), self.error_rate.to_string().into()]);
        words.extend([b"EXPANSION".into(), self.expansion.to_string().into()]);
        words.extend(self.is_fixed.then(|| b"NONSCALING".into()));
        words
    }
}

/// `BF.RESERVE key error capacity [EXPANSION e] [NONSCALING]`
pub(super) fn reserve(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.len() > 7 {
        return Err(Failure::Arity);
    }
    let words: Vec<&[u8]> = call.words_from(2).collect();
    let wanted = reserve_words(&words)?;
    let mut key = call.write::<Chain>(1)?;
    if key.value().is_some() {
        return Err(Failure::new("item exists"));
    }
    key.set(create(call, &wanted)?);
    drop(key);
    call.reply_ok();
    let said = wanted.words();
    // The rate as it was written, the rest as it was understood.
    let (rate, capacity) = (words[0], words[1]);
    let mut explicit: Vec<&[u8]> = vec![call.word(1), rate, capacity];
    match wanted.is_fixed && wanted.expansion == UNUSED_EXPANSION {
        true => explicit.push(b"NONSCALING"),
        false => explicit.extend([&said[4][..], &said[5][..]]),
    }
    call.replicate(c"BF.RESERVE", explicit);
    call.notify(c"bloom.reserve", 1);
    Ok(())
}

/// What the words behind the key of `BF.RESERVE` say; what is not known there is passed over.
fn reserve_words(words: &[&[u8]]) -> Result<Wanted, Failure> {
    let [rate, capacity, options @ ..] = words else { return Err(Failure::Arity) };
    let error_rate = fraction(rate).ok_or_else(|| Failure::new("bad error rate"))?;
    if !(error_rate > 0.0 && error_rate < 1.0) {
        return Err(Failure::new("error rate must be in the range (0.000000, 1.000000)"));
    }
    let capacity = integer(capacity).ok_or_else(|| Failure::new("bad capacity"))?;
    if !(1..=MOST_CAPACITY).contains(&capacity) {
        return Err(Failure::new(format!("capacity must be in the range [1, {MOST_CAPACITY}]")));
    }
    let place = |word: &str| options.iter().position(|option| option.eq_ignore_ascii_case(word.as_bytes()));
    let is_fixed = place("NONSCALING").is_some();
    let Some(at) = place("EXPANSION") else {
        let usual = Wanted { capacity, error_rate, ..Wanted::by_settings() };
        return Ok(if is_fixed { Wanted { expansion: UNUSED_EXPANSION, is_fixed, ..usual } } else { usual });
    };
    let value = options.get(at + 1).ok_or_else(|| Failure::new("no expansion"))?;
    let expansion = integer(value).ok_or_else(|| Failure::new("bad expansion"))?;
    if !(0..=MOST_EXPANSION).contains(&expansion) {
        return Err(Failure::new(format!("expansion must be in the range [0, {MOST_EXPANSION}]")));
    }
    if is_fixed && expansion > 0 {
        return Err(without_code("Nonscaling filters cannot expand"));
    }
    Ok(Wanted { capacity, error_rate, expansion, is_fixed: expansion == 0 })
}

/// An empty filter, unless it is larger than it may be.
fn create(call: &Call<'_>, wanted: &Wanted) -> Result<Chain, Failure> {
    let refused = |why: &str| Failure::new(format!("Insufficient memory to create filter{why}"));
    let parameters = wanted.parameters();
    if !call.must_obey() {
        let bytes = parameters.first_stage().map_or(u64::MAX, |stage| stage.bytes());
        let beyond = beyond(call, bytes, bytes);
        if let Some(limit) = beyond {
            return Err(refused(&format!(": it takes {bytes} bytes, which is beyond {limit}")));
        }
    }
    let filter = match fault::refuses_growth() {
        true => Err(everbloom::Error::OutOfMemory { bytes: 0 }),
        false => RedisBloom::new(parameters),
    };
    obeyed(call, filter).map(Chain::new).map_err(|_| refused(""))
}

/// Growth smaller than this is left to the server, which looks at its memory before every command.
const SMALL_BYTES: u64 = 1 << 20;

/// The limit that a filter of so many bytes, of which some are new, would exceed.
fn beyond(call: &Call<'_>, bytes: u64, new: u64) -> Option<&'static str> {
    let limit = match bytes > most_bytes() {
        true => Some("max-filter-bytes"),
        false if new > SMALL_BYTES && call.memory_left().is_some_and(|left| new > left) => Some("maxmemory"),
        false => None,
    };
    if limit.is_some() {
        COUNTERS.refused_by_limit.fetch_add(1, Relaxed);
    }
    limit
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    New,
    Seen,
    Full,
    /// Another stage would be beyond `max-filter-bytes`, or `maxmemory`.
    TooLarge,
    Refused,
}

impl Outcome {
    fn reply(self, call: &Call<'_>) {
        match self {
            Outcome::New => call.reply_bool(true),
            Outcome::Seen => call.reply_bool(false),
            Outcome::Full => call.reply_error("ERR non scaling filter is full"),
            Outcome::TooLarge => call.reply_error("ERR problem inserting into filter: beyond max-filter-bytes"),
            Outcome::Refused => call.reply_error("ERR problem inserting into filter"),
        }
    }
}

/// `BF.ADD key item`
pub(super) fn add(call: &mut Call<'_>) -> Result<(), Failure> {
    add_items(call, 2, &Wanted::by_settings(), true, Reply::One)
}

/// `BF.MADD key item…`
pub(super) fn add_many(call: &mut Call<'_>) -> Result<(), Failure> {
    add_items(call, 2, &Wanted::by_settings(), true, Reply::Many)
}

/// `BF.INSERT key [CAPACITY c] [ERROR e] [EXPANSION x] [NOCREATE] [NONSCALING] ITEMS item…`
pub(super) fn insert(call: &mut Call<'_>) -> Result<(), Failure> {
    let (wanted, may_create, items) = insert_words(call.words_from(2))?;
    add_items(call, 2 + items, &wanted, may_create, Reply::Many)
}

/// What `BF.INSERT` wants, whether it may create the filter, and behind how many words its items are.
fn insert_words<'w>(words: impl Iterator<Item = &'w [u8]>) -> Result<(Wanted, bool, usize), Failure> {
    let (mut wanted, mut may_create) = (Wanted::by_settings(), true);
    let mut words = words.enumerate();
    while let Some((at, word)) = words.next() {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let mut value = || words.next().map(|(_, value)| value).ok_or(Failure::Arity);
        if is("ITEMS") {
            return if words.next().is_some() { Ok((wanted, may_create, at + 1)) } else { Err(Failure::Arity) };
        } else if is("CAPACITY") {
            let capacity = integer(value()?).filter(|capacity| (1..=MOST_CAPACITY).contains(capacity));
            wanted.capacity = capacity.ok_or_else(|| without_code("Bad capacity"))?;
        } else if is("ERROR") {
            let rate = fraction(value()?).filter(|rate| *rate > 0.0 && *rate < 1.0);
            wanted.error_rate = rate.ok_or_else(|| without_code("Bad error rate"))?;
        } else if is("EXPANSION") {
            let expansion = integer(value()?).filter(|expansion| (0..=MOST_EXPANSION).contains(expansion));
            wanted.expansion = expansion.ok_or_else(|| without_code("Bad expansion"))?;
            wanted.is_fixed |= wanted.expansion == 0;
        } else if is("NONSCALING") {
            wanted.is_fixed = true;
        } else if is("NOCREATE") {
            may_create = false;
        } else {
            return Err(without_code("Unknown argument received"));
        }
    }
    Err(Failure::Arity)
}

#[derive(Clone, Copy, PartialEq)]
enum Reply {
    One,
    Many,
}

/// Adds the words from one on, to a filter that is created if it is not there.
fn add_items(call: &Call<'_>, first: usize, wanted: &Wanted, may_create: bool, reply: Reply) -> Result<(), Failure> {
    let mut key = call.write::<Chain>(1)?;
    let is_created = key.value().is_none();
    if is_created {
        if !may_create {
            return Err(not_found());
        }
        key.set(create(call, wanted)?);
    }
    let adding = Adding { call, first };
    let (single, several);
    let outcomes: &[Outcome] = if call.len() == first + 1 {
        single = [adding.single(&mut key)];
        &single
    } else {
        several = adding.all(&mut key);
        &several
    };
    fault::panic_after_change();
    drop(key);
    if reply == Reply::Many {
        call.reply_array(outcomes.len());
    }
    outcomes.iter().for_each(|outcome| outcome.reply(call));
    replicate(call, first, outcomes, is_created.then_some(wanted));
    let new = outcomes.iter().filter(|outcome| **outcome == Outcome::New).count() as u64;
    COUNTERS.observed.fetch_add(outcomes.len() as u64, Relaxed);
    COUNTERS.distinct.fetch_add(new, Relaxed);
    if is_created {
        call.notify(c"bloom.reserve", 1);
    }
    if new > 0 {
        call.notify(c"bloom.add", 1);
    }
    Ok(())
}

/// How many items ahead of the one that is added are hashed, and their lines asked for: so the memory is waited for while
/// others are worked on. A key has eight lines or more, and a core asks for a dozen at a time.
const AHEAD: usize = 16;

struct Adding<'c, 'w> {
    call: &'c Call<'w>,
    first: usize,
}

impl Adding<'_, '_> {
    /// What became of the only item.
    fn single(&self, key: &mut Writing<'_, Chain>) -> Outcome {
        let hash = Hashing::Murmur.hash(self.call.word(self.first));
        key.value().map_or(Outcome::Refused, |chain| chain.change(|filter| self.one(filter, hash)))
    }

    /// What became of each item; fewer than there are if the filter is full.
    fn all(&self, key: &mut Writing<'_, Chain>) -> Vec<Outcome> {
        let items = self.call.words_from(self.first);
        let count = items.len();
        let mut outcomes = Vec::with_capacity(count);
        let Some(chain) = key.value() else { return outcomes };
        let mut hashes = [KeyHash::default(); AHEAD];
        let mut items = items.map(|item| Hashing::Murmur.hash(item));
        chain.change(|filter| {
            for place in 0..count + AHEAD {
                if place >= AHEAD {
                    let outcome = self.one(filter, hashes[place % AHEAD]);
                    outcomes.push(outcome);
                    if outcome == Outcome::Full {
                        break;
                    }
                }
                if let Some(hash) = items.next() {
                    filter.prepare_to_add(&[hash]);
                    hashes[place % AHEAD] = hash;
                }
            }
        });
        outcomes
    }

    #[inline]
    fn one(&self, filter: &mut RedisBloom, hash: KeyHash) -> Outcome {
        // As long as the last stage has room, nothing can be refused.
        match filter.add_hash_within(hash, 0) {
            Ok(true) => Outcome::New,
            Ok(false) => Outcome::Seen,
            Err(Refusal::Full) => Outcome::Full,
            Err(_) => self.with_growth(filter, hash),
        }
    }

    /// Adds a key that needs another stage.
    #[cold]
    fn with_growth(&self, filter: &mut RedisBloom, hash: KeyHash) -> Outcome {
        let obeys = self.call.must_obey();
        let new = filter.next_growth_bytes();
        if !obeys && beyond(self.call, filter.header().bytes().saturating_add(new), new).is_some() {
            return Outcome::TooLarge;
        }
        let added = match fault::refuses_growth() {
            true => Err(Refusal::NoRoom(everbloom::Error::OutOfMemory { bytes: new })),
            false => filter.add_hash(hash),
        };
        match added {
            Ok(_) => Outcome::New,
            Err(refusal) if obeys => self.give_up(&refusal),
            Err(_) => Outcome::Refused,
        }
    }

    /// A copy that goes on without what the primary has would differ from it for ever and not say so.
    fn give_up(&self, refusal: &Refusal) -> Outcome {
        let Refusal::NoRoom(everbloom::Error::OutOfMemory { bytes }) = refusal else { return Outcome::Refused };
        let key = String::from_utf8_lossy(self.call.word(1)).into_owned();
        let text = format!("there is no memory for the {bytes} bytes that '{key}' must grow by to stay equal; ending");
        self.call.log(Level::Warning, &text);
        std::process::abort()
    }
}

/// Tells replicas and the append-only file what was done.
fn replicate(call: &Call<'_>, first: usize, outcomes: &[Outcome], created: Option<&Wanted>) {
    let is_new = |outcome: &Outcome| *outcome == Outcome::New;
    let is_refused = |outcome: &Outcome| !matches!(outcome, Outcome::New | Outcome::Seen);
    let added = || call.words_from(first).zip(outcomes).filter(|(_, outcome)| is_new(outcome)).map(|(item, _)| item);
    match created {
        Some(wanted) => {
            let said = wanted.words();
            let words = std::iter::once(call.word(1)).chain(said.iter().map(Vec::as_slice));
            // The first item was new, and there was room for it.
            call.replicate(c"BF.INSERT", words.chain([&b"ITEMS"[..]]).chain(added()));
        }
        None if !outcomes.iter().any(is_new) => {}
        None if outcomes.iter().any(is_refused) => {
            call.replicate(c"BF.MADD", std::iter::once(call.word(1)).chain(added()));
        }
        None => call.replicate_verbatim(),
    }
}

/// After a defect: makes copies of the value what it is here.
pub(super) fn repair(call: &mut Call<'_>) -> Result<(), Failure> {
    let name = call.word(1);
    call.replicate(c"DEL", [name]);
    if let Ok(Some(chain)) = call.read::<Chain>(1) {
        chain::for_each_load(chain.filter(), |words| {
            call.replicate(chain::LOAD, std::iter::once(name).chain(words));
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(words: &str) -> Result<Wanted, Failure> {
        reserve_words(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    fn inserted(words: &str) -> Result<(Wanted, bool, usize), Failure> {
        insert_words(words.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes))
    }

    #[test]
    fn reserving_is_refused_for_the_first_thing_that_is_wrong() {
        let refusal = |words: &str| match reserved(words).expect_err(words) {
            Failure::Error(text) => text,
            other => format!("{other:?}"),
        };
        assert_eq!(refusal("abc 0"), "ERR bad error rate");
        assert_eq!(refusal("1 abc"), "ERR error rate must be in the range (0.000000, 1.000000)");
        assert_eq!(refusal("0.1 1.5 EXPANSION"), "ERR bad capacity");
        assert_eq!(refusal("0.1 0 EXPANSION"), "ERR capacity must be in the range [1, 1073741824]");
        assert_eq!(refusal("0.1 1073741825"), "ERR capacity must be in the range [1, 1073741824]");
        assert_eq!(refusal("0.1 10 expansion"), "ERR no expansion");
        assert_eq!(refusal("0.1 10 EXPANSION NONSCALING"), "ERR bad expansion");
        assert_eq!(refusal("0.1 10 EXPANSION 32769"), "ERR expansion must be in the range [0, 32768]");
        assert_eq!(refusal("0.1 10 NONSCALING EXPANSION 2"), "Nonscaling filters cannot expand");
    }

    #[test]
    fn reserving_takes_what_redisbloom_takes() {
        assert_eq!(reserved("0.5 10 foo"), Ok(Wanted { capacity: 10, error_rate: 0.5, expansion: 2, is_fixed: false }));
        assert!(reserved("0.1 10 EXPANSION 0").is_ok_and(|wanted| wanted.is_fixed && !wanted.parameters().scales()));
        assert!(reserved("0.1 10 nonscaling").is_ok_and(|wanted| wanted.is_fixed && wanted.expansion == 2));
        assert!(reserved("0.9 10").is_ok_and(|wanted| wanted.parameters().error_rate == 0.25));
    }

    #[test]
    fn reservation_as_words_reads_back_equal() {
        for words in ["0.001 7 EXPANSION 30000", "1e-300 1073741824", "0.3 1 NONSCALING", "0.3 1 EXPANSION 0"] {
            let wanted = reserved(words).expect(words);
            let mut said: Vec<Vec<u8>> = wanted.words();
            said.extend([b"ITEMS".to_vec(), b"item".to_vec()]);
            let (again, may_create, items) = insert_words(said.iter().map(Vec::as_slice)).expect(words);
            assert_eq!((again, may_create, items), (wanted, true, said.len() - 1), "{words}");
        }
    }

    #[test]
    fn insertions_are_refused_in_the_order_of_their_words() {
        let refusal = |words: &str| inserted(words).expect_err(words);
        assert_eq!(refusal("BAD CAPACITY 0"), without_code("Unknown argument received"));
        assert_eq!(refusal("CAPACITY 0 BAD ITEMS x"), without_code("Bad capacity"));
        assert_eq!(refusal("ERROR 2"), without_code("Bad error rate"));
        assert_eq!(refusal("EXPANSION -1 CAPACITY x ITEMS y"), without_code("Bad expansion"));
        for words in ["", "CAPACITY", "CAPACITY 5", "NOCREATE ITEMS", "ERROR 0.1 EXPANSION 1 ITEMS"] {
            assert_eq!(refusal(words), Failure::Arity, "{words}");
        }
        assert!(inserted("items items").is_ok_and(|(_, may_create, items)| may_create && items == 1));
        assert!(inserted("nocreate NONSCALING EXPANSION 3 ITEMS x y").is_ok_and(|(wanted, may_create, items)| {
            !may_create && items == 5 && wanted.is_fixed && wanted.expansion == 3
        }));
    }
}
