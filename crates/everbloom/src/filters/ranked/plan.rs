//! The parameters of a ranked filter and how a goal becomes them.

use super::KIND;
use super::gate::GATE_BITS;
use crate::cells::lanes::{MAX_LANE_BITS, MAX_PACKED_BITS, Shape, Wide, Words};
use crate::filter::{Parameter, Plan, Takes, Unset, one_of};
use crate::promise::{Error, Goal, MAX_MEMORY_BITS, Promise, Result, Spec, choice_name, rate_text, size_text};
use crate::sizing::closed_forms::poisson_mean;

/// Where a new arrival goes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insert {
    /// In the middle of the word.
    Middle,
    /// Before everything else.
    Front,
    /// Right behind the first.
    Rank1,
    /// Behind everything else.
    Tail,
    /// The more important, the further to the front.
    Importance,
}

/// What happens to a lane whose key comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hit {
    /// It moves to the front.
    Front,
    /// It moves one lane forward.
    Bubble,
    /// Nothing.
    Still,
}

/// Which arrivals are not let in at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gate {
    /// All are let in.
    Off,
    /// Those below a moving threshold of importance.
    Importance,
    /// A fixed share of keys, so large that `gate_fpr` is kept; for one lane.
    Clamped,
}

/// How words lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packing {
    /// One right after the other, as far as a 64-bit load reaches.
    Packed,
    /// In 8, 16, 32 or 64 bits.
    Padded,
}

/// What a word does with lanes that are not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WordLayout {
    /// Until it is full it keeps longer fingerprints, and errs less.
    Wide,
    /// They are empty.
    Plain,
}

const INSERTS: &[(&str, Insert)] = &[
    ("middle", Insert::Middle),
    ("front", Insert::Front),
    ("rank1", Insert::Rank1),
    ("tail", Insert::Tail),
    ("importance", Insert::Importance),
];
const HITS: &[(&str, Hit)] = &[("front", Hit::Front), ("bubble", Hit::Bubble), ("still", Hit::Still)];
const GATES: &[(&str, Gate)] = &[("off", Gate::Off), ("importance", Gate::Importance), ("clamped", Gate::Clamped)];
const WORDS: &[(&str, WordLayout)] = &[("wide", WordLayout::Wide), ("plain", WordLayout::Plain)];
const PACKINGS: &[(&str, Packing)] = &[("packed", Packing::Packed), ("padded", Packing::Padded)];

const NUM_WORDS: Parameter = Parameter::planned("num_words", "words in all", Takes::Whole(1, MAX_MEMORY_BITS / 64));
const LANES: Parameter = Parameter::planned("lanes", "fingerprints of a word", Takes::Whole(1, 64));
const LANE_BITS: Parameter =
    Parameter::planned("lane_bits", "bits of a fingerprint", Takes::Whole(1, MAX_LANE_BITS as u64));
const PACKING: Parameter =
    Parameter::planned("packing", "how words lie: one after another, or in 8, 16, 32 or 64 bits", one_of!(PACKINGS))
        .or(Unset::Value("packed"));
const WORD_LAYOUT: Parameter = Parameter::planned(
    "words",
    "whether words that are not full keep longer fingerprints; planned as wide where that can be",
    one_of!(WORDS),
);
const INSERT: &str = "where in its word a new key goes";
const HIT: Parameter =
    Parameter::planned("hit", "where a key goes when it comes back", one_of!(HITS)).or(Unset::Value("front"));

/// The parameters of `ranked`, for people.
pub(super) const PARAMETERS: [Parameter; 10] = [
    NUM_WORDS,
    LANES,
    LANE_BITS,
    PACKING,
    WORD_LAYOUT,
    Parameter::planned("insert", INSERT, one_of!(INSERTS)).or(Unset::Value("middle")),
    HIT,
    Parameter::planned("gate", "which arrivals are not let in", one_of!(GATES)).or(Unset::Value("off")),
    Parameter::planned("gate_fpr", "the rate that the gate keeps, for one lane", Takes::Within(0.0, 1.0))
        .with("gate", &["clamped"]),
    Parameter::planned("gate_items", "keys that the gate prepares for; 0 if unknown", Takes::Whole(0, MAX_GATE_ITEMS))
        .with("gate", &["importance"]),
];

/// The parameters of `graceful`, which keeps hashes without ranks at first.
pub(super) const GRACEFUL: [Parameter; 7] = [
    NUM_WORDS,
    LANES,
    LANE_BITS,
    PACKING,
    WORD_LAYOUT,
    Parameter::planned("insert", INSERT, Takes::Choice(&["middle", "front", "rank1", "tail"]))
        .or(Unset::Value("middle")),
    HIT,
];

/// More keys than this are not expected of any stream.
const MAX_GATE_ITEMS: u64 = 1 << 56;

/// The parameters of a ranked filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Words in all.
    pub num_words: u64,
    /// Lanes of a word.
    pub lanes: u32,
    /// Bits of a lane.
    pub lane_bits: u32,
    /// How words lie in memory.
    pub packing: Packing,
    /// What a word does with lanes that are not in use.
    pub words: WordLayout,
    /// Where a new arrival goes in.
    pub insert: Insert,
    /// What happens to a lane whose key comes back.
    pub hit: Hit,
    /// Which arrivals are not let in.
    pub gate: Gate,
    /// The rate that the clamped gate keeps.
    pub gate_fpr: f64,
    /// The distinct keys that the importance gate prepares for; 0 if unknown.
    pub gate_items: u64,
}

impl Parameters {
    /// Bits from one word to the next.
    pub(crate) fn stride(&self) -> u32 {
        let word_bits = self.lanes * self.lane_bits;
        match self.packing {
            Packing::Packed if word_bits <= MAX_PACKED_BITS => word_bits,
            Packing::Packed => 64,
            Packing::Padded => word_bits.next_power_of_two().max(8),
        }
    }

    /// How many fingerprints there is room for.
    pub fn capacity(&self) -> u64 {
        self.num_words.saturating_mul(self.lanes.into())
    }

    /// What the gate takes of the memory.
    pub(super) fn gate_bits(&self) -> u64 {
        match self.gate {
            Gate::Off => 0,
            Gate::Importance => GATE_BITS,
            Gate::Clamped => 64,
        }
    }

    fn memory_bits(&self) -> u64 {
        Words::bits(self.num_words, self.stride()).saturating_add(self.gate_bits())
    }

    /// How words are divided.
    pub(super) fn division(&self) -> Result<(Shape, Option<&'static Wide>)> {
        let shape = Shape::new(self.lanes, self.lane_bits)?;
        let wide = (self.words == WordLayout::Wide).then(|| Wide::of(shape)).transpose()?;
        Ok((shape, wide))
    }

    /// The rates of false positives of words with 0, 1, … keys, up to as many as lanes.
    pub fn rates(&self) -> Vec<f64> {
        let wide = self.division().ok().and_then(|(_, wide)| wide);
        let fingerprints = (u64::MAX >> (64 - self.lane_bits)) as f64;
        let of_lanes = |keys: u32| (f64::from(keys) / fingerprints).min(1.0);
        (0..=self.lanes).map(|keys| wide.map_or_else(|| of_lanes(keys), |wide| wide.rate(keys))).collect()
    }

    /// The bound of the rate of false positives: every lane of every word in use.
    pub fn predicted_fpr(&self) -> f64 {
        let full = self.rates()[self.lanes as usize];
        if self.gate == Gate::Clamped { full.min(self.gate_fpr) } else { full }
    }

    /// The rate once `items` distinct keys have come: that of a word with min(N, lanes) keys, N Poisson with mean items/words.
    pub(crate) fn predicted_fpr_at(&self, items: u64) -> f64 {
        let (mean, rates) = (items as f64 / self.num_words as f64, self.rates());
        poisson_mean(mean, |keys| rates[keys.min(self.lanes.into()) as usize]).min(self.predicted_fpr())
    }

    pub(super) fn checked(self) -> Result<Self> {
        self.division()?;
        if self.num_words == 0 || self.num_words > MAX_MEMORY_BITS / 64 {
            let needed = format!("between 1 and {}", MAX_MEMORY_BITS / 64);
            return Err(Error::parameter("num_words", self.num_words, needed, "give memory for at least one word"));
        }
        if self.gate == Gate::Clamped && self.lanes != 1 {
            return Err(Error::parameter("lanes", self.lanes, "1 with gate=clamped", "leave the gate off"));
        }
        if self.gate == Gate::Clamped && !(self.gate_fpr > 0.0 && self.gate_fpr < 1.0) {
            return Err(Error::parameter("gate_fpr", self.gate_fpr, "above 0 and below 1", "give the rate to keep"));
        }
        if self.gate_items > MAX_GATE_ITEMS {
            let needed = format!("at most {MAX_GATE_ITEMS}");
            return Err(Error::parameter("gate_items", self.gate_items, needed, "give 0 if the number is unknown"));
        }
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        let num_words = spec.required("num_words")?;
        Draft::new(spec, None)?.finished(num_words, spec.required("lanes")?, spec.required("lane_bits")?)
    }

    /// The full spec.
    pub fn spec(&self) -> Spec {
        let spec = Spec::new(KIND.name)
            .with("num_words", self.num_words)
            .with("lanes", self.lanes)
            .with("lane_bits", self.lane_bits)
            .with("packing", choice_name(PACKINGS, self.packing));
        // Specs that were written before there were wide words do not name them.
        let spec = match self.words {
            WordLayout::Wide => spec.with("words", choice_name(WORDS, self.words)),
            WordLayout::Plain => spec,
        };
        let spec = spec
            .with("insert", choice_name(INSERTS, self.insert))
            .with("hit", choice_name(HITS, self.hit))
            .with("gate", choice_name(GATES, self.gate));
        match self.gate {
            Gate::Off => spec,
            Gate::Importance => spec.with("gate_items", self.gate_items),
            Gate::Clamped => spec.with("gate_fpr", self.gate_fpr),
        }
    }
}

/// The parameters of a spec that are not sizes.
struct Draft {
    packing: Packing,
    /// As given, or what suits the shape.
    words: Option<WordLayout>,
    insert: Insert,
    hit: Hit,
    gate: Gate,
    gate_fpr: f64,
    gate_items: u64,
}

impl Draft {
    fn new(spec: &Spec, goal: Option<&Goal>) -> Result<Self> {
        // An arrival that jumps to the front leaves its rank behind; one lane at a time keeps most of the
        // order by importance and costs real streams 1 to 3 % more false negatives.
        let (insert, hit) = match goal.is_some_and(|goal| goal.importance) {
            true => (Insert::Importance, Hit::Bubble),
            false => (Insert::Middle, Hit::Front),
        };
        let target = goal.and_then(|goal| goal.target_fpr);
        // A spec with all sizes is one that was printed, and means what it meant before there were wide words.
        let is_sized = ["num_words", "lanes", "lane_bits"].iter().all(|size| spec.get(size).is_some());
        let words = spec.choice("words", WORDS, WordLayout::Plain)?;
        Ok(Draft {
            packing: spec.choice("packing", PACKINGS, Packing::Packed)?,
            words: (is_sized || spec.get("words").is_some()).then_some(words),
            insert: spec.choice("insert", INSERTS, insert)?,
            hit: spec.choice("hit", HITS, hit)?,
            gate: spec.choice("gate", GATES, Gate::Off)?,
            gate_fpr: spec.value("gate_fpr", "a rate")?.or(target).unwrap_or(0.0),
            gate_items: spec.number("gate_items")?.or(goal.and_then(|goal| goal.expected_items)).unwrap_or(0),
        })
    }

    fn finished(&self, num_words: u64, lanes: u32, lane_bits: u32) -> Result<Parameters> {
        let Draft { packing, insert, hit, gate, gate_fpr, gate_items, .. } = *self;
        let words = self.words.unwrap_or(match is_suited(lanes, lane_bits) {
            true => WordLayout::Wide,
            false => WordLayout::Plain,
        });
        Parameters { num_words, lanes, lane_bits, packing, words, insert, hit, gate, gate_fpr, gate_items }.checked()
    }

    /// As many words as fit.
    fn fitting(&self, memory_bits: u64, lanes: u32, lane_bits: u32) -> Result<Parameters> {
        let single = self.finished(1, lanes, lane_bits)?;
        let num_words = Words::fitting(memory_bits.saturating_sub(single.gate_bits()), single.stride());
        if num_words == 0 {
            let needed = format!("at least {}, one cache line", size_text(512 + single.gate_bits()));
            return Err(Error::memory(memory_bits, needed, "give that much"));
        }
        self.finished(num_words, lanes, lane_bits)
    }
}

/// Whether such words can be wide.
fn is_suited(lanes: u32, lane_bits: u32) -> bool {
    Shape::new(lanes, lane_bits).is_ok_and(Wide::suits)
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let draft = Draft::new(spec, Some(goal))?;
    let sized = |lanes: u32, lane_bits: u32| match spec.number("num_words")? {
        Some(num_words) => draft.finished(num_words, lanes, lane_bits),
        None => draft.fitting(goal.required_memory()?, lanes, lane_bits),
    };
    let (lanes, lane_bits) = (spec.number("lanes")?, spec.number("lane_bits")?);
    let parameters = match (lanes, lane_bits) {
        (Some(lanes), Some(lane_bits)) => sized(lanes, lane_bits)?,
        _ => {
            // What is left open becomes a shape whose words can be wide, if it has three lanes.
            let is_open = |count: u32, bits: u32| match draft.words {
                Some(WordLayout::Wide) => is_suited(count, bits),
                Some(WordLayout::Plain) => true,
                None => lanes.or(lane_bits).is_some() || count < 3 || is_suited(count, bits),
            };
            best(goal, lanes, lane_bits, |lanes, lane_bits| {
                is_open(lanes, lane_bits).then(|| sized(lanes, lane_bits)).transpose()
            })?
        }
    };
    let bound = parameters.predicted_fpr();
    let promise = match (goal.expected_items, goal.target_fpr) {
        // With many short lanes the target is kept only while most of them are empty.
        (Some(items), Some(target)) if bound > target => {
            Promise { predicted_fnr: None, ..Promise::until(items, parameters.predicted_fpr_at(items)) }
        }
        _ => Promise::always(bound),
    };
    Ok(Plan::new(&KIND, parameters.spec(), parameters.memory_bits(), promise, goal.hashing))
}

/// The smallest lanes for which some number of them keeps the target, then as many as keep it.
fn best(
    goal: &Goal,
    lanes: Option<u32>,
    lane_bits: Option<u32>,
    sized: impl Fn(u32, u32) -> Result<Option<Parameters>>,
) -> Result<Parameters> {
    let target = goal.required_fpr()?;
    let fewest = if target >= 0.03 { 3 } else { 4 };
    // Fingerprints for rates below 5e-5 are so long that fewer of them fit into a word: as many as do.
    let choices = match lanes {
        Some(given) => vec![given..=given],
        None => std::iter::once(fewest..=7).chain((1..fewest).rev().map(|count| count..=count)).collect(),
    };
    for counts in choices {
        if let Some(parameters) = narrowest(goal, target, counts, lane_bits, &sized)? {
            return Ok(parameters);
        }
    }
    Err(Error::Infeasible {
        wanted: format!("a rate of {}", rate_text(target)),
        reason: "it needs fingerprints of more than 32 bits".into(),
        remedy: "accept a higher rate, or take exact, which keeps every key".into(),
    })
}

/// The narrowest lanes for which one of these numbers of them keeps the target, and the largest of those.
fn narrowest(
    goal: &Goal,
    target: f64,
    counts: std::ops::RangeInclusive<u32>,
    lane_bits: Option<u32>,
    sized: impl Fn(u32, u32) -> Result<Option<Parameters>>,
) -> Result<Option<Parameters>> {
    let widths = lane_bits.map_or(1..=32, |given| given..=given);
    for (lane_bits, lanes) in widths.flat_map(|bits| counts.clone().rev().map(move |lanes| (bits, lanes))) {
        if lanes.saturating_mul(lane_bits) > 64 {
            continue;
        }
        let Some(parameters) = sized(lanes, lane_bits)? else { continue };
        let rate = match goal.expected_items {
            Some(items) => parameters.predicted_fpr_at(items),
            None => parameters.predicted_fpr(),
        };
        if rate <= target {
            return Ok(Some(parameters));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_down_to_a_billionth_has_a_word() {
        let words: Vec<String> = [0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6, 1e-9]
            .map(|rate| Goal::new().memory_bits(1 << 20).fpr(rate).plan("ranked").expect("plans"))
            .map(|plan| Parameters::from_spec(&plan.spec).expect("a full spec"))
            .map(|parameters| format!("{}x{}", parameters.lanes, parameters.lane_bits))
            .into();
        assert_eq!(words, ["3x5", "5x9", "4x12", "4x16", "3x19", "2x21", "2x31"]);
    }

    fn spec(goal: &Goal, spec: &str) -> String {
        goal.plan(spec).unwrap_or_else(|error| panic!("{spec}: {error}")).spec.to_string()
    }

    #[test]
    fn words_are_wide_where_a_plan_chooses_them_and_there_is_room() {
        let goal = Goal::new().memory_bits(1 << 16).default_fpr(0.01);
        for open in ["ranked", "ranked:lanes=4", "ranked:lane_bits=9", "ranked:lanes=5,lane_bits=9", "graceful"] {
            assert!(spec(&goal, open).contains(",words=wide,"), "{open}");
        }
        for narrow in ["ranked:lanes=1", "ranked:lanes=2", "ranked:lanes=8,lane_bits=8", "ranked:words=plain"] {
            assert!(!spec(&goal, narrow).contains(",words="), "{narrow}");
        }
        // As it was printed before there were wide words.
        let printed = "ranked:num_words=61,lanes=5,lane_bits=9,packing=packed,insert=middle,hit=front,gate=off";
        assert_eq!(spec(&goal, printed), printed);
        for refused in ["ranked:lanes=2,words=wide", "ranked:lanes=1,gate=clamped,words=wide", "ranked:words=narrow"] {
            assert!(goal.plan(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn the_rate_is_foreseen_as_it_grows_and_never_exceeds_the_bound() {
        let goal = Goal::new().memory_bits(1 << 20).fpr(0.01);
        let rates = |words: &str| -> Vec<f64> {
            let plan = goal.plan(&format!("ranked:words={words}")).expect("plans");
            let parameters = Parameters::from_spec(&plan.spec).expect("a full spec");
            assert_eq!(plan.promise.fpr_bound, parameters.predicted_fpr());
            let items = [1_000, 5_000, 20_000, 60_000, 200_000, 10_000_000];
            items.map(|items| parameters.predicted_fpr_at(items)).into()
        };
        let (wide, plain) = (rates("wide"), rates("plain"));
        assert!(wide.is_sorted() && plain.is_sorted());
        assert!(wide[0] < plain[0] / 1000.0 && wide[3] < plain[3] * 0.9, "{wide:?} and {plain:?}");
        let near = |rate: f64, bound: f64| rate <= bound && rate > bound * (1.0 - 1e-9);
        assert!(near(wide[5], 5.0 / 510.0) && near(plain[5], 5.0 / 511.0), "{wide:?} and {plain:?}");
    }
}
