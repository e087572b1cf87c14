//! `EB.RESERVE` and `EB.PLAN`: from a spec and what is wanted to a filter.

use super::limits;
use super::stored::{Scale, Stored, Turns, belongs};
use super::words::{Words, text};
use crate::server::{Call, Failure};
use crate::settings::{self, DEFAULT_FPR, RANDOM_SEED};
use everbloom::planning::{AUTO, windowed};
use everbloom::{Count, Goal, Hashing, Holds, Plan, Promise, Rate, Span, Spec, Window};
use everbloom_all::KINDS;
use everbloom_forecast::audit::usual_bytes;
use everbloom_forecast::{Auditing, Audits};
use std::time::Duration;

/// What a client wants of a filter.
#[derive(Default)]
struct Wanted {
    goal: Goal,
    importance: Option<Scale>,
    seed: Option<u64>,
    /// Whether the client gave the seed.
    seed_is_given: bool,
    time: Option<Time>,
    promise: Option<Promised>,
    audit: Option<Audited>,
    only_new: bool,
}

/// An audit that is asked for: its bytes, and the seed that chooses the keys which it follows, if they are given.
#[derive(Clone, Copy)]
struct Audited {
    bytes: Option<u64>,
    seed: Option<u64>,
}

/// A window of time, or a time between generations.
#[derive(Clone, Copy)]
enum Time {
    Window(Duration),
    Every(Duration),
}

/// What a primary found out, for its replicas.
struct Promised {
    fpr: f64,
    fnr: Option<f64>,
    holds: Holds,
    generation: u64,
}

const OPTIONS: &[&str] =
    &["MEMORY", "FPR", "EXPECT", "IMPORTANCE", "SEED", "EVERY", "WINDOW", "AUDIT", "NX", "PROMISE"];
const PLAN_OPTIONS: &[&str] = &["MEMORY", "FPR", "EXPECT", "IMPORTANCE", "EVERY", "WINDOW"];

impl Wanted {
    fn read(call: &Call<'_>, from: usize, options: &'static [&'static str]) -> Result<Self, Failure> {
        let mut words = Words::from(call, from, options);
        let mut wanted = Wanted::default();
        while let Some(option) = words.option()? {
            wanted.take(option, &mut words)?;
        }
        if wanted.promise.is_some() && !call.must_obey() {
            return Err(Failure::new("PROMISE is for what a primary replicates; leave it out, a promise is planned"));
        }
        Ok(wanted)
    }

    fn take(&mut self, option: &'static str, words: &mut Words<'_, '_>) -> Result<(), Failure> {
        match option {
            "MEMORY" => {
                let bits = settings::size(words.text(option)?).named("memory").get()?;
                self.goal = std::mem::take(&mut self.goal).memory_bits(bits);
            }
            "FPR" => {
                let rate = Rate::from(words.text(option)?).named("fpr").get()?;
                self.goal = std::mem::take(&mut self.goal).fpr(rate);
            }
            "EXPECT" => {
                let items = Count::from(words.text(option)?).named("expected_items").get()?;
                self.goal = std::mem::take(&mut self.goal).expected_items(items);
            }
            "IMPORTANCE" => {
                let max = words.number(option)?;
                self.importance = Some(Scale::new(max, words.takes("LOG"))?);
                self.goal = std::mem::take(&mut self.goal).with_importance();
            }
            "SEED" => (self.seed, self.seed_is_given) = (Some(words.number(option)?), true),
            "EVERY" | "WINDOW" if self.time.is_some() => {
                return Err(Failure::new("EVERY and WINDOW say the same in two ways; give one of them"));
            }
            "EVERY" => self.time = Some(Time::Every(duration(words.text(option)?, "time")?)),
            "WINDOW" => self.time = Some(Time::Window(duration(words.text(option)?, "window")?)),
            "AUDIT" => self.audit = Some(Audited::read(words)?),
            "NX" => self.only_new = true,
            _ => self.promise = Some(Promised::read(words)?),
        }
        Ok(())
    }

    /// The plan for a spec.
    fn plan(&self, spec: &str) -> Result<Plan, Failure> {
        let spec = Spec::parse(spec)?;
        refuse_schemes(&spec)?;
        let goal = self.goal.clone().hashing(Hashing::seeded(self.seed.unwrap_or(0)));
        if self.promise.is_some() {
            // A primary found every parameter, by its own settings.
            return Ok(Goal::new().hashing(goal.key_hashing()).plan_among(KINDS, &spec.to_string())?);
        }
        let is_auto = spec.kind() == AUTO;
        let (spec, goal) = self.with_window(spec, goal)?;
        // A change of all cells at once would stop the server for a third of a second, and all of its clients.
        let plan =
            goal.default_fpr(DEFAULT_FPR.get_fraction()).bounded_latency().plan_among(KINDS, &spec.to_string())?;
        let kind = KINDS.of(&plan.spec)?;
        if self.seed_is_given && kind.can.own_hash.is_some() {
            let problem = format!("{} filters hash without a seed, as others do; leave SEED out", kind.name);
            return Err(Failure::new(problem));
        }
        // What auto takes weighs importances, or forgets nothing.
        let is_free = is_auto && !kind.forgets(&plan.spec);
        if self.importance.is_some() && !kind.can.weigh_importance && !is_free {
            let able: Vec<_> = KINDS.iter().filter(|kind| kind.can.weigh_importance).map(|kind| kind.name).collect();
            let problem = format!("{} filters weigh no importance; these do: {}", kind.name, able.join(", "));
            return Err(Failure::new(problem));
        }
        Ok(plan)
    }

    /// Spec and goal of a filter whose generations the server turns.
    fn with_window(&self, spec: Spec, goal: Goal) -> Result<(Spec, Goal), Failure> {
        let Some(time) = self.time else { return Ok((spec, goal)) };
        let (Time::Window(length) | Time::Every(length)) = time;
        let within = goal.clone().without_expected_items();
        if spec.kind() == AUTO && spec.is_bare() {
            if goal.most_memory_bits().is_none() && goal.known_items().is_none() {
                let remedy = "say how much memory there is, or how many arrivals a window has";
                return Err(Failure::new(format!("MEMORY or EXPECT is missing; {remedy}")));
            }
            return Ok((windowed(&Window::Time(length), goal.known_items(), true)?, within));
        }
        let kind = KINDS.of(&spec)?;
        if !kind.can.advance {
            let able: Vec<_> = KINDS.iter().filter(|kind| kind.can.advance).map(|kind| kind.name).collect();
            let problem = format!("{} filters have no generations; these have: {}", kind.name, able.join(", "));
            return Err(Failure::new(problem));
        }
        let Some((window, by_caller)) = kind.can.window.and_then(|window| Some((window, window.by_caller?))) else {
            return Ok((spec, goal));
        };
        let spec = match spec.get(by_caller.0) {
            None => spec.with(by_caller.0, by_caller.1),
            Some(value) if value == by_caller.1 => spec,
            Some(value) => {
                let problem = format!("{}={value} turns generations by itself; leave it out with EVERY", by_caller.0);
                return Err(Failure::new(problem));
            }
        };
        match goal.known_items().filter(|_| spec.get(window.parameter).is_none()) {
            Some(arrivals) => Ok((spec.with(window.parameter, arrivals), within)),
            None => Ok((spec, goal)),
        }
    }

    /// The turns of a filter that is built.
    fn turns(&self, stored: &mut Stored, now: i64) -> Result<Option<Turns>, Failure> {
        let Some(time) = self.time else { return Ok(None) };
        let generations = stored.filter.as_windowed().map_or(1, |windowed| windowed.generations()).max(1);
        let every = match time {
            Time::Every(every) => every.as_millis(),
            // Rounded up: the generations together are never shorter than the window.
            Time::Window(length) => length.as_millis().div_ceil(u128::from(generations)),
        };
        let every = u64::try_from(every).unwrap_or(u64::MAX);
        let generation = match &self.promise {
            Some(promised) => promised.generation,
            None => Turns::at(every, now),
        };
        let turns = Turns::checked(every, generation).map_err(Failure::new)?;
        belongs(&mut stored.filter, Some(turns)).map_err(Failure::new)?;
        Ok(Some(turns))
    }
}

fn duration(text: &str, name: &'static str) -> Result<Duration, Failure> {
    Ok(Span::from(text).named(name).get()?)
}

/// Refuses kinds that follow a scheme, which no server has.
fn refuse_schemes(spec: &Spec) -> Result<(), Failure> {
    if spec.kind() == AUTO {
        return Ok(());
    }
    let kind = KINDS.of(spec)?;
    if kind.can.follow_scheme.is_none() {
        return Ok(());
    }
    let problem = format!("{} filters follow a scheme, which no server has; take another kind, or auto", kind.name);
    Err(Failure::new(problem))
}

impl Audited {
    /// `[size [seed]]`
    fn read(words: &mut Words<'_, '_>) -> Result<Self, Failure> {
        let Some(size) = words.digits("AUDIT")? else { return Ok(Audited { bytes: None, seed: None }) };
        let bytes = settings::size(size).named("audit").get()? / 8;
        let seed = words.digits("AUDIT")?.map(|seed| super::words::number(seed.as_bytes(), "AUDIT")).transpose()?;
        Ok(Audited { bytes: Some(bytes), seed })
    }

    /// The memory beside a filter of so many bits.
    fn bytes(&self, filter_bits: u64) -> u64 {
        self.bytes.unwrap_or_else(|| usual_bytes(filter_bits))
    }
}

impl Promised {
    /// `fpr fnr holds generation`, of which all but the first may be `-`.
    fn read(words: &mut Words<'_, '_>) -> Result<Self, Failure> {
        let fpr = words.number("PROMISE")?;
        let fnr = match words.text("PROMISE")? {
            "-" => None,
            number => Some(super::words::number(number.as_bytes(), "PROMISE")?),
        };
        let holds = match words.text("PROMISE")? {
            "always" => Holds::Always,
            "none" => Holds::Never,
            items => Holds::UntilItems(super::words::number(items.as_bytes(), "PROMISE")?),
        };
        Ok(Promised { fpr, fnr, holds, generation: words.number("PROMISE")? })
    }

    fn write(promise: &Promise, generation: u64) -> [String; 4] {
        let fnr = promise.predicted_fnr.map_or("-".into(), |fnr| fnr.to_string());
        [promise.fpr_bound.to_string(), fnr, holds_text(promise.holds), generation.to_string()]
    }
}

/// Until when a promise holds, in a word.
pub(super) fn holds_text(holds: Holds) -> String {
    match holds {
        Holds::Always => "always".into(),
        Holds::Never => "none".into(),
        Holds::UntilItems(items) => items.to_string(),
    }
}

/// `EB.RESERVE key spec [options]`
pub(super) fn reserve(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut wanted = Wanted::read(call, 3, OPTIONS)?;
    let mut key = call.write::<Stored>(1)?;
    if key.value().is_some() {
        return match wanted.only_new {
            true => {
                call.reply_null();
                Ok(())
            }
            false => Err(Failure::busy()),
        };
    }
    if wanted.seed.is_none() && wanted.promise.is_none() && RANDOM_SEED.get() != 0 {
        wanted.seed = Some(call.random());
    }
    let mut plan = wanted.plan(text(call.word(2), "the spec")?)?;
    if let Some(Promised { fpr, fnr, holds, .. }) = wanted.promise {
        (plan.promise.fpr_bound, plan.promise.predicted_fnr, plan.promise.holds) = (fpr, fnr, holds);
    }
    let audit_bytes = wanted.audit.map_or(0, |audit| audit.bytes(plan.memory_bits));
    let bytes = (plan.memory_bits / 8).saturating_add(audit_bytes);
    limits::check(call, bytes, bytes)?;
    let mut filter = limits::made(call, plan.build())?;
    if let Some(audit) = wanted.audit {
        // Random, so that no client can avoid the keys that are followed.
        filter = filter.audited(format!("{audit_bytes}B").as_str(), audit.seed.unwrap_or_else(|| call.random()))?;
    }
    let mut stored = Stored::new(filter);
    stored.importance = wanted.importance;
    stored.turns = wanted.turns(&mut stored, call.now())?;
    let words = replicated(call.word(1), &stored);
    key.set(stored);
    call.replicate(c"EB.RESERVE", words.iter().map(Vec::as_slice));
    call.notify(c"eb.reserve", 1);
    call.reply_ok();
    Ok(())
}

/// The words that make the same filter on any server of this version, whatever its settings.
fn replicated(key: &[u8], stored: &Stored) -> Vec<Vec<u8>> {
    let mut words = vec![key.to_vec(), stored.filter.spec().to_string().into_bytes()];
    if let Some(seed) = stored.hashing().seed() {
        words.extend([b"SEED".to_vec(), seed.to_string().into_bytes()]);
    }
    if let Some(Scale { max, is_logarithmic, .. }) = stored.importance {
        words.extend([b"IMPORTANCE".to_vec(), max.to_string().into_bytes()]);
        words.extend(is_logarithmic.then(|| b"LOG".to_vec()));
    }
    if let Some(turns) = stored.turns {
        words.extend([b"EVERY".to_vec(), format!("{}ms", turns.every).into_bytes()]);
    }
    if let Some(audit) = stored.filter.audit() {
        let size = (audit.memory_bits() / 8).to_string();
        words.extend([b"AUDIT".to_vec(), size.into_bytes(), audit.seed().to_string().into_bytes()]);
    }
    words.push(b"PROMISE".to_vec());
    let generation = stored.turns.map_or(0, |turns| turns.generation);
    words.extend(Promised::write(&stored.filter.promise(), generation).map(String::into_bytes));
    words
}

/// `EB.PLAN spec [options]`
pub(super) fn plan(call: &mut Call<'_>) -> Result<(), Failure> {
    let wanted = Wanted::read(call, 2, PLAN_OPTIONS)?;
    let plan = wanted.plan(text(call.word(1), "the spec")?)?;
    let bytes = plan.memory_bits.div_ceil(8);
    let grows = wanted.goal.most_memory_bits().is_some() && KINDS.of(&plan.spec)?.can.grow;
    let begins =
        grows.then(|| format!("MEMORY is what it begins with: {} filters grow with their keys", plan.spec.kind()));
    let notes: Vec<String> = plan.notes.iter().cloned().chain(begins).chain(limits::refusal(bytes)).collect();
    call.reply_map(5);
    call.reply_bulk(b"spec");
    call.reply_bulk(plan.spec.to_string().as_bytes());
    call.reply_bulk(b"memory_bytes");
    call.reply_number(bytes);
    call.reply_bulk(b"predicted_fpr");
    call.reply_double(plan.promise.fpr_bound);
    call.reply_bulk(b"promise");
    call.reply_bulk(holds_text(plan.promise.holds).as_bytes());
    call.reply_bulk(b"notes");
    call.reply_array(notes.len());
    notes.iter().for_each(|note| call.reply_bulk(note.as_bytes()));
    Ok(())
}
