//! What a key of type `everbloom` holds: a filter and what belongs to it.

use super::limits;
use super::note::note_of;
use super::tokens::{Bits, Token, Tokens};
use crate::fault;
use crate::report::{self, COUNTERS, Counted};
use crate::server::{Call, Digest, Failure, Loader, Rewriter, Saver, TypeSlot, Value};
use everbloom::{AnyFilter, Hashing, Importance, ImportanceScale, Importances, KeyHash, Verdict, codec};
use everbloom_all::KINDS;
use std::ffi::CStr;
use std::io::Write;

/// A filter and what belongs to it.
pub(crate) struct Stored {
    pub(super) filter: AnyFilter,
    /// What came, and what of it was judged new.
    pub(super) counts: Counts,
    /// The importances that arrivals may have.
    pub(super) importance: Option<Scale>,
    /// When generations turn by themselves.
    pub(super) turns: Option<Turns>,
    pub(super) tokens: Tokens,
    /// Generations of a filter that has a window, and the arrivals that it is for; else 0.
    pub(super) generations: u32,
    pub(super) window: u64,
    counted: Counted,
}

/// Arrivals judged, and those judged new.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Counts {
    pub(super) observed: u64,
    pub(super) distinct: u64,
}

impl Counts {
    pub(super) fn checked(observed: u64, distinct: u64) -> Result<Self, String> {
        match distinct <= observed {
            true => Ok(Counts { observed, distinct }),
            false => Err(format!("{distinct} of {observed} arrivals cannot have been distinct")),
        }
    }
}

/// Importances from 0 to a maximum, as they are or by their logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) max: f64,
    pub(super) is_logarithmic: bool,
    scale: ImportanceScale,
}

impl Scale {
    pub(super) fn new(max: f64, is_logarithmic: bool) -> everbloom::Result<Self> {
        let scale = if is_logarithmic { ImportanceScale::logarithmic(max) } else { ImportanceScale::linear(max) };
        Ok(Scale { max, is_logarithmic, scale: scale? })
    }

    pub(super) fn of(&self, value: f64) -> everbloom::Result<Importance> {
        self.scale.of(value)
    }
}

/// Generations that turn every so many milliseconds, counted from 1970, at the first write after it is time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turns {
    pub(super) every: u64,
    /// The number of the present generation.
    pub(super) generation: u64,
}

impl Turns {
    /// The longest time between two: a thousand years.
    const LONGEST: u64 = 32_000_000_000_000;

    pub(super) fn checked(every: u64, generation: u64) -> Result<Self, String> {
        match (1..=Self::LONGEST).contains(&every) {
            true => Ok(Turns { every, generation }),
            false => Err("EVERY must be at least 1ms and at most a thousand years; try 5m".into()),
        }
    }

    /// The number of the generation at a time.
    pub(super) fn at(every: u64, now: i64) -> u64 {
        u64::try_from(now).unwrap_or(0) / every.max(1)
    }
}

impl Stored {
    pub(super) fn new(mut filter: AnyFilter) -> Self {
        let counted = Counted::new(filter.spec().kind(), filter.memory_bits() / 8);
        let (counts, tokens) = (Counts::default(), Tokens::default());
        let (generations, window) =
            filter.as_windowed().map_or((0, 0), |windowed| (windowed.generations(), windowed.window()));
        Stored { filter, counts, importance: None, turns: None, tokens, generations, window, counted }
    }

    /// Puts another filter in its place.
    pub(super) fn replace_filter(&mut self, filter: AnyFilter) {
        self.counted = Counted::new(filter.spec().kind(), filter.memory_bits() / 8);
        self.filter = filter;
    }

    #[inline]
    pub(super) fn hashing(&self) -> Hashing {
        *self.filter.hashing()
    }

    /// The importance that a client gave, or all there is if it gave none.
    pub(super) fn importance(&self, value: Option<f64>) -> Result<Importance, Failure> {
        match (value, &self.importance) {
            (None, _) => Ok(Importance::FULL),
            (Some(value), Some(scale)) => Ok(scale.of(value)?),
            (Some(_), None) => {
                Err(Failure::new("the filter knows no importances; reserve it with IMPORTANCE and the largest"))
            }
        }
    }

    /// Judges arrivals and remembers them. An error, and nothing changed, if they may not be taken.
    pub(super) fn observe(
        &mut self,
        call: &Call<'_>,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
        token: Option<Token<'_>>,
    ) -> Result<(), Failure> {
        importances.check(hashes.len())?;
        self.make_room(call, hashes)?;
        self.turn(call);
        if let Some(token) = token {
            self.tokens.begin(token);
        }
        match (hashes, &mut *verdicts) {
            ([hash], [verdict]) => *verdict = self.filter.observe_hash(*hash, importances.at(0)),
            _ => {
                if hashes.len() <= self.filter.prefetch_distance() {
                    self.filter.prefetch_hashes(hashes);
                }
                self.filter.observe_hashes(hashes, importances, verdicts)?;
            }
        }
        fault::panic_after_change();
        let (observed, distinct) =
            (hashes.len() as u64, verdicts.iter().filter(|verdict| verdict.is_distinct()).count() as u64);
        self.counts.observed = self.counts.observed.saturating_add(observed);
        self.counts.distinct = self.counts.distinct.saturating_add(distinct);
        report::count(&COUNTERS.observed, observed);
        report::count(&COUNTERS.distinct, distinct);
        if let Some(token) = token {
            self.tokens.keep(token, hashes, Bits::of_verdicts(verdicts));
        }
        Ok(())
    }

    /// Makes room for keys, within the limits of whom they come from.
    fn make_room(&mut self, call: &Call<'_>, hashes: &[KeyHash]) -> Result<(), Failure> {
        let growth = self.filter.growth_bits(hashes).div_ceil(8);
        if growth == 0 {
            return limits::made(call, self.filter.make_room(hashes));
        }
        limits::check(call, (self.filter.memory_bits() / 8).saturating_add(growth), growth)?;
        let made = match fault::refuses_growth() {
            true => Err(everbloom::Error::OutOfMemory { bytes: growth }),
            false => self.filter.make_room(hashes),
        };
        limits::made(call, made)?;
        self.counted.resize(self.filter.memory_bits() / 8);
        Ok(())
    }

    /// Begins the generations that are due, and tells replicas so. Replicas do what they are told.
    ///
    /// A clock that was set back turns nothing until it is where it was, so that nothing is forgotten early. If it is back by
    /// more than the window, it had been wrong before: time goes on from where it is.
    pub(super) fn turn(&mut self, call: &Call<'_>) {
        let Some(turns) = &mut self.turns else { return };
        let now = Turns::at(turns.every, call.now());
        let was_wrong = turns.generation > now.saturating_add(self.generations.into());
        if now <= turns.generation && !was_wrong || call.must_obey() {
            return;
        }
        let due = now.saturating_sub(turns.generation);
        turns.generation = now;
        if let Some(windowed) = self.filter.as_windowed().filter(|_| due > 0) {
            windowed.advance_by(due);
        }
        let (due, now) = (due.to_string(), now.to_string());
        let words: [&[u8]; 4] = [call.word(1), due.as_bytes(), b"AT", now.as_bytes()];
        call.replicate(c"EB.ADVANCE", words);
    }

    /// Forgets everything, clients included: an answer that was kept is no longer true.
    pub(super) fn clear(&mut self) {
        self.filter.clear();
        (self.counts, self.tokens) = (Counts::default(), Tokens::default());
        self.counted.resize(self.filter.memory_bits() / 8);
    }

    /// The words behind the filter's bytes with which `EB.LOAD` makes the same.
    pub(super) fn load_options(&self) -> Vec<Vec<u8>> {
        let mut words = vec![b"COUNTS".to_vec()];
        words.extend([self.counts.observed, self.counts.distinct].map(|count| count.to_string().into_bytes()));
        if let Some(Scale { max, is_logarithmic, .. }) = self.importance {
            words.extend([b"IMPORTANCE".to_vec(), max.to_string().into_bytes()]);
            words.extend(is_logarithmic.then(|| b"LOG".to_vec()));
        }
        if let Some(Turns { every, generation }) = self.turns {
            words.extend([b"EVERY".to_vec(), format!("{every}ms").into_bytes()]);
            words.extend([b"AT".to_vec(), generation.to_string().into_bytes()]);
        }
        if !self.tokens.is_empty() {
            words.extend([b"TOKENS".to_vec(), self.tokens.to_bytes()]);
        }
        words
    }

    /// The filter as a file has it; nothing if the memory for it is refused.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = self.room_for_bytes()?;
        codec::encode_to(&*self.filter, &mut bytes).ok()?;
        Some(bytes)
    }

    /// The filter as a file has it, with a note of what belongs to the filter; compressed, it takes no more room, most of the time much less.
    pub(super) fn file(&self, is_compressed: bool) -> Option<Vec<u8>> {
        let (mut bytes, note) = (self.room_for_bytes()?, note_of(self));
        let encode = if is_compressed { codec::encode_compressed_to } else { codec::encode_noted_to };
        encode(&*self.filter, &note, &mut bytes).ok()?;
        Some(bytes)
    }

    fn room_for_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(codec::encoded_bytes(&*self.filter)).ok()?).ok()?;
        Some(bytes)
    }
}

static SLOT: TypeSlot = TypeSlot::new();

/// The version of the fields below. Builds before the first release wrote 1.
const FIELDS: u64 = 2;

impl Value for Stored {
    const NAME: &'static CStr = c"everbloom";
    const VERSION: i32 = 1;

    fn slot() -> &'static TypeSlot {
        &SLOT
    }

    fn save(&self, out: &mut Saver) {
        out.number(FIELDS);
        out.number(self.counts.observed);
        out.number(self.counts.distinct);
        out.double(self.importance.map_or(0.0, |scale| scale.max));
        out.number(self.importance.is_some_and(|scale| scale.is_logarithmic).into());
        out.number(self.turns.map_or(0, |turns| turns.every));
        out.number(self.turns.map_or(0, |turns| turns.generation));
        out.bytes(&self.tokens.to_bytes());
        out.number(codec::encoded_bytes(&*self.filter));
        // The server remembers what it could not write.
        let _ = out.stream(|out| codec::encode_to(&*self.filter, out));
    }

    fn load(from: &mut Loader, version: i32) -> Result<Self, String> {
        if version != Self::VERSION || from.number()? != FIELDS {
            return Err("it was written by another version; upgrade everbloom".into());
        }
        let counts = Counts::checked(from.number()?, from.number()?)?;
        let (max, logarithmic) = (from.double()?, from.number()?);
        let importance = match (max, logarithmic) {
            (0.0, 0) => None,
            (max, 0 | 1) => Some(Scale::new(max, logarithmic == 1).map_err(|error| error.to_string())?),
            _ => return Err("the importances cannot be read".into()),
        };
        let turns = match (from.number()?, from.number()?) {
            (0, 0) => None,
            (every, generation) => Some(Turns::checked(every, generation)?),
        };
        let tokens = Tokens::from_bytes(&from.bytes()?)?;
        let length = from.number()?;
        let is_limited = from.is_limited();
        if is_limited && let Some(refusal) = limits::refusal_within(length, length, from.memory_left()) {
            return Err(refusal);
        }
        let mut reader = from.stream(length);
        let decoded = KINDS.decoder().read(&mut reader, length).map_err(|error| error.to_string());
        let mut filter = AnyFilter::from(decoded?);
        reader.finish()?;
        if let Some(refusal) = limits::refusal(filter.memory_bits() / 8).filter(|_| is_limited) {
            return Err(refusal);
        }
        belongs(&mut filter, turns)?;
        Ok(Stored { counts, importance, turns, tokens, ..Stored::new(filter) })
    }

    fn rewrite(&self, out: &mut Rewriter) {
        match self.bytes() {
            Some(bytes) => {
                let options = self.load_options();
                out.command(c"EB.LOAD", std::iter::once(&bytes).chain(&options).map(Vec::as_slice));
            }
            // A file without the filter must not replace one that has it.
            None => panic!("no memory to write a filter into the append-only file"),
        }
    }

    fn digest(&self, out: &mut Digest) {
        out.number(self.counts.observed);
        out.number(self.counts.distinct);
        out.number(self.importance.map_or(0, |scale| scale.max.to_bits()));
        out.number(self.importance.is_some_and(|scale| scale.is_logarithmic).into());
        out.number(self.turns.map_or(0, |turns| turns.every));
        out.number(self.turns.map_or(0, |turns| turns.generation));
        out.bytes(&self.tokens.to_bytes());
        // A digest takes whatever is written.
        let _ = out.stream(|out: &mut dyn Write| codec::encode_to(&*self.filter, out));
    }

    fn memory_usage(&self) -> usize {
        let bytes = usize::try_from(self.filter.memory_bits() / 8).unwrap_or(usize::MAX);
        bytes.saturating_add(size_of::<Self>() + self.filter.spec().to_string().len() + self.tokens.memory_usage())
    }

    fn copy(&self) -> Option<Self> {
        let Stored { counts, importance, turns, .. } = *self;
        let filter = AnyFilter::from(self.filter.try_clone_boxed().ok()?);
        Some(Stored { counts, importance, turns, tokens: self.tokens.clone(), ..Stored::new(filter) })
    }
}

/// Refuses turns for a filter that has no generations.
pub(super) fn belongs(filter: &mut AnyFilter, turns: Option<Turns>) -> Result<(), String> {
    match turns.is_none() || filter.as_windowed().is_some() {
        true => Ok(()),
        false => Err(format!("{} filters have no generations, which EVERY would turn", filter.spec().kind())),
    }
}
