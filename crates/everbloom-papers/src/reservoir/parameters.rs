//! What can be chosen, the paper's settings, and the plan.

use super::KIND;
use everbloom::kind::{MAX_MEMORY_BITS, Parameter, Takes, Unset, choice_name, one_of, rate_text};
use everbloom::{Error, Goal, Holds, Plan, Promise, Result, Spec};
use everbloom_cells::buffer::LINE_BITS;
use libm::{log, pow};

/// How the probability of insertion depends on the number of arrivals.
///
/// The first `filter_bits` arrivals are always inserted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Bias {
    /// `filter_bits`/i, as in the paper.
    Reservoir,
    /// Always the same.
    Constant {
        /// The probability; [`DEFAULT_INSERT_PROB`] if nothing is said.
        insert_prob: f64,
    },
    /// Halving again and again.
    Exponential {
        /// After so many arrivals; `filter_bits` if nothing is said.
        half_life: u64,
    },
}

/// The names of bias functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BiasName {
    Reservoir,
    Constant,
    Exponential,
}

/// What the floor p* means; the paper says both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Floor {
    /// A distinct arrival whose draw exceeds p* is inserted, as Algorithm 1 has it.
    Algorithm,
    /// Every distinct arrival is inserted once the probability of insertion is no more than p*, as the text has it.
    Text,
}

/// What is done with an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insert {
    /// It is inserted by sampling.
    Sampled,
    /// It is inserted if it is distinct.
    IfDistinct,
    /// It is not inserted.
    Not,
}

/// Where an arrival's bits lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One in each array, anywhere, as in the paper.
    Spread,
    /// All in one cache line, those that are cleared for it, too.
    Blocked,
}

/// The paper's three ways to pick the number of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Balanced,
    LowFnr,
    LowFpr,
}

const BIASES: &[(&str, BiasName)] =
    &[("reservoir", BiasName::Reservoir), ("constant", BiasName::Constant), ("exponential", BiasName::Exponential)];
const FLOORS: &[(&str, Floor)] = &[("algorithm", Floor::Algorithm), ("text", Floor::Text)];
const LAYOUTS: &[(&str, Layout)] = &[("spread", Layout::Spread), ("blocked", Layout::Blocked)];
const SETTINGS: &[(&str, Option<Setting>)] =
    &[("balanced", Some(Setting::Balanced)), ("low_fnr", Some(Setting::LowFnr)), ("low_fpr", Some(Setting::LowFpr))];

/// The paper's p*.
pub const DEFAULT_INSERT_FLOOR: f64 = 0.03;
/// The probability of insertion where it is constant.
pub const DEFAULT_INSERT_PROB: f64 = 0.1;
/// Longer half-lives are none.
const MAX_HALF_LIFE: u64 = 1 << 56;
pub(super) const MAX_FILTERS: u32 = 64;

pub(super) const PARAMETERS: [Parameter; 9] = [
    Parameter::planned("memory_bits", "bits in all", Takes::Whole(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_filters", "bit arrays, and so bits that a key sets", Takes::Whole(1, MAX_FILTERS as u64)),
    Parameter::planned(
        "insert_floor",
        "the paper's p*: what keeps new keys from being forced in",
        Takes::Between(0.0, 1.0),
    )
    .or(Unset::Value("0.03")),
    Parameter::planned("floor", "how p* is read: as the paper's algorithm has it, or its text", one_of!(FLOORS))
        .or(Unset::Value("algorithm")),
    Parameter::planned("setting", "one of the paper's ways to choose num_filters", one_of!(SETTINGS))
        .or(Unset::Without),
    Parameter::planned("bias", "how the probability that a key is inserted falls with time", one_of!(BIASES))
        .or(Unset::Value("reservoir")),
    Parameter::planned("insert_prob", "the probability that a key is inserted", Takes::Between(0.0, 1.0))
        .or(Unset::Value("0.1"))
        .with("bias", &["constant"]),
    Parameter::planned("half_life", "arrivals after which that probability is halved", Takes::Whole(1, MAX_HALF_LIFE))
        .or(Unset::Derived("as many as an array has bits"))
        .with("bias", &["exponential"]),
    Parameter::planned("layout", "where a key's bits lie: one in each array, or in one cache line", one_of!(LAYOUTS))
        .or(Unset::BySizes("blocked", "spread")),
];

/// The parameters of a reservoir filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Bits in all.
    pub memory_bits: u64,
    /// Bit arrays, and so probes.
    pub num_filters: u32,
    /// The paper's p*: what keeps distinct arrivals from being forced in.
    pub insert_floor: f64,
    /// How it does so.
    pub floor: Floor,
    /// How the probability of insertion falls.
    pub bias: Bias,
    /// Where an arrival's bits lie.
    pub layout: Layout,
}

impl Parameters {
    /// Bits of one array.
    pub fn filter_bits(&self) -> u64 {
        self.memory_bits / u64::from(self.num_filters)
    }

    /// Arrays begin at a word, so that a set bit can be found by words.
    pub(super) fn words_per_filter(&self) -> u64 {
        self.filter_bits().div_ceil(64)
    }

    pub(super) fn body_bytes(&self) -> u64 {
        if self.layout == Layout::Blocked {
            return self.memory_bits / 8;
        }
        (self.words_per_filter() * u64::from(self.num_filters)).div_ceil(8) * 64
    }

    pub(super) fn checked(self) -> Result<Self> {
        if !(1..=MAX_FILTERS).contains(&self.num_filters) {
            let needed = format!("between 1 and {MAX_FILTERS}");
            return Err(Error::parameter("num_filters", self.num_filters, needed, "7 arrays keep 1 %"));
        }
        if self.filter_bits() == 0 || self.memory_bits > MAX_MEMORY_BITS {
            let needed = format!("between {} and {MAX_MEMORY_BITS}: a bit for each array", self.num_filters);
            return Err(Error::parameter("memory_bits", self.memory_bits, needed, "give more memory or fewer arrays"));
        }
        if self.layout == Layout::Blocked && !self.memory_bits.is_multiple_of(LINE_BITS) {
            let remedy = format!("take {}, or layout=spread", self.memory_bits.next_multiple_of(LINE_BITS));
            let needed = "a multiple of 512, the bits of a cache line, in the blocked layout";
            return Err(Error::parameter("memory_bits", self.memory_bits, needed, remedy));
        }
        if !(0.0..=1.0).contains(&self.insert_floor) {
            return Err(Error::parameter("insert_floor", self.insert_floor, "between 0 and 1", "the paper takes 0.03"));
        }
        self.bias.checked()?;
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        Self::with_sizes(
            spec,
            (spec.required("memory_bits")?, spec.required("num_filters")?),
            spec.choice("layout", LAYOUTS, Layout::Spread)?,
        )
    }

    /// What a spec says besides the sizes and the layout.
    fn with_sizes(spec: &Spec, (memory_bits, num_filters): (u64, u32), layout: Layout) -> Result<Self> {
        let insert_floor = spec.value("insert_floor", "a probability")?.unwrap_or(DEFAULT_INSERT_FLOOR);
        let floor = spec.choice("floor", FLOORS, Floor::Algorithm)?;
        let bias = Bias::Reservoir;
        let sized = Parameters { memory_bits, num_filters, insert_floor, floor, bias, layout }.checked()?;
        Parameters { bias: Bias::from_spec(spec, sized.filter_bits())?, ..sized }.checked()
    }

    pub(super) fn spec(&self) -> Spec {
        let spec = Spec::new(KIND.name)
            .with("memory_bits", self.memory_bits)
            .with("num_filters", self.num_filters)
            .with("insert_floor", self.insert_floor);
        // A spec that does not say means the algorithm's, as all did before there was a choice.
        let spec = match self.floor {
            Floor::Algorithm => spec,
            floor => spec.with("floor", choice_name(FLOORS, floor)),
        };
        self.bias.said_in(spec, self.filter_bits()).with("layout", choice_name(LAYOUTS, self.layout))
    }

    /// The rate of false positives once half of the bits are set, and never before.
    ///
    /// The share of set bits varies by ±√(1/8s), which lifts its k-th power a little; in the blocked
    /// layout s is the line, and where a key has more than eight bits, two may fall on the same bit of a word.
    pub fn predicted_fpr(&self) -> f64 {
        let k = f64::from(self.num_filters);
        let (s, shared) = match self.layout {
            Layout::Spread => (self.filter_bits() as f64, 0.0),
            Layout::Blocked => (LINE_BITS as f64, pairs_in_words(self.num_filters)),
        };
        (pow(0.5, k) * (1.0 + k * (k - 1.0) / (4.0 * s)) * pow(1.0 + 1.0 / 64.0, shared)).min(1.0)
    }
}

impl Bias {
    /// What a spec says, where an array has `filter_bits`.
    fn from_spec(spec: &Spec, filter_bits: u64) -> Result<Self> {
        let name = spec.choice("bias", BIASES, BiasName::Reservoir)?;
        let belongs = [("insert_prob", BiasName::Constant), ("half_life", BiasName::Exponential)];
        if let Some((parameter, to)) = belongs.iter().find(|(given, to)| spec.get(given).is_some() && *to != name) {
            let bias = choice_name(BIASES, *to);
            let problem = format!("{parameter} belongs to bias={bias}");
            return Err(spec.error(problem, format!("write bias={bias}, or leave {parameter} out")));
        }
        Ok(match name {
            BiasName::Reservoir => Bias::Reservoir,
            BiasName::Constant => Bias::Constant {
                insert_prob: spec.value("insert_prob", "a probability")?.unwrap_or(DEFAULT_INSERT_PROB),
            },
            BiasName::Exponential => Bias::Exponential { half_life: spec.number("half_life")?.unwrap_or(filter_bits) },
        })
    }

    /// A spec that does not say means the usual value, as all did before there was a choice.
    fn said_in(self, spec: Spec, filter_bits: u64) -> Spec {
        let spec = spec.with("bias", choice_name(BIASES, self.name()));
        match self {
            Bias::Constant { insert_prob } if insert_prob != DEFAULT_INSERT_PROB => {
                spec.with("insert_prob", insert_prob)
            }
            Bias::Exponential { half_life } if half_life != filter_bits => spec.with("half_life", half_life),
            _ => spec,
        }
    }

    fn name(self) -> BiasName {
        match self {
            Bias::Reservoir => BiasName::Reservoir,
            Bias::Constant { .. } => BiasName::Constant,
            Bias::Exponential { .. } => BiasName::Exponential,
        }
    }

    fn checked(self) -> Result<()> {
        match self {
            Bias::Constant { insert_prob } if !(0.0..=1.0).contains(&insert_prob) => Err(Error::parameter(
                "insert_prob",
                insert_prob,
                "a probability between 0 and 1",
                format!("{DEFAULT_INSERT_PROB} is usual"),
            )),
            Bias::Exponential { half_life } if !(1..=MAX_HALF_LIFE).contains(&half_life) => Err(Error::parameter(
                "half_life",
                half_life,
                "between 1 and 2^56 arrivals",
                "leave it out for one as long as an array has bits",
            )),
            _ => Ok(()),
        }
    }

    /// The probability that arrival number `arrival` (from 1) is inserted by sampling, where an array
    /// has `filter_bits`.
    #[inline]
    pub(super) fn insert_prob(self, filter_bits: u64, arrival: u64) -> f64 {
        if arrival <= filter_bits {
            return 1.0;
        }
        match self {
            Bias::Reservoir => filter_bits as f64 / arrival as f64,
            Bias::Constant { insert_prob } => insert_prob,
            Bias::Exponential { half_life } => pow(0.5, (arrival - filter_bits) as f64 / half_life as f64),
        }
    }
}

impl Floor {
    /// What is done with an arrival, given its draw, the probability of insertion by sampling, and p*.
    #[inline(always)]
    pub(super) fn insert(self, draw: f64, sampled: f64, floor: f64) -> Insert {
        let forced = match self {
            Floor::Algorithm => draw > floor,
            Floor::Text => sampled <= floor,
        };
        match (draw <= sampled, forced) {
            (true, _) => Insert::Sampled,
            (false, true) => Insert::IfDistinct,
            (false, false) => Insert::Not,
        }
    }
}

/// How many pairs of a key's bits share a word, dealt out over eight of them.
fn pairs_in_words(num_filters: u32) -> f64 {
    let in_word = |word: u32| f64::from((num_filters + 7 - word) / 8);
    (0..8).map(|word| in_word(word) * (in_word(word) - 1.0) / 2.0).sum()
}

/// The paper's number of arrays for a target rate.
fn paper_filters(setting: Setting, target: f64) -> u32 {
    let full = log(target) / log(1.0 - 1.0 / std::f64::consts::E);
    let filters = match setting {
        Setting::LowFnr => 1.0,
        Setting::LowFpr => full.round(),
        Setting::Balanced => ((1.0 + full) / 2.0).round(),
    };
    (filters as u32).clamp(1, MAX_FILTERS)
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let setting = spec.choice("setting", SETTINGS, None)?;
    let given_memory = spec.number("memory_bits")?;
    // Numbers given by hand or by a setting of the paper's mean the paper's filter.
    let by_hand = given_memory.is_some() || spec.get("num_filters").is_some() || setting.is_some();
    let layout = spec.choice("layout", LAYOUTS, if by_hand { Layout::Spread } else { Layout::Blocked })?;
    let with_filters = |num_filters: u32, goal: &Goal| -> Result<Parameters> {
        let memory_bits = match given_memory {
            Some(given) => given,
            None if layout == Layout::Blocked => goal.required_memory()? / LINE_BITS * LINE_BITS,
            // Whole lines in all and whole words in each array, so that nothing is lost to padding.
            None => {
                goal.required_memory()? / 512 * 512 / u64::from(num_filters.max(1)) / 64 * 64 * u64::from(num_filters)
            }
        };
        Parameters::with_sizes(spec, (memory_bits, num_filters), layout)
    };
    let (parameters, holds) = match (spec.number("num_filters")?, setting) {
        (Some(num_filters), None) => (with_filters(num_filters, goal)?, Holds::Never),
        (Some(_), Some(_)) => {
            return Err(spec.error("both num_filters and setting are given", "give one of them"));
        }
        (None, Some(setting)) => (with_filters(paper_filters(setting, goal.required_fpr()?), goal)?, Holds::Never),
        (None, None) => (keeping(goal.required_fpr()?, |filters| with_filters(filters, goal))?, Holds::Always),
    };
    let promise = Promise::always(parameters.predicted_fpr()).held(holds);
    let memory_bits = parameters.body_bytes() * 8;
    Ok(Plan::new(&KIND, parameters.spec(), memory_bits, promise, goal.key_hashing()))
}

/// The fewest arrays that keep the target.
fn keeping(target: f64, with_filters: impl Fn(u32) -> Result<Parameters>) -> Result<Parameters> {
    for num_filters in 1..=MAX_FILTERS {
        let parameters = with_filters(num_filters)?;
        if parameters.predicted_fpr() <= target {
            return Ok(parameters);
        }
    }
    Err(Error::Infeasible {
        wanted: format!("a rate of {}", rate_text(target)),
        reason: format!("{MAX_FILTERS} arrays do not reach it"),
        remedy: "accept a higher rate".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reservoir::Reservoir;
    use everbloom::{Filter, Hashing, Importance, Key};

    fn parameters(text: &str) -> Parameters {
        Parameters::from_spec(&Spec::parse(text).expect("a spec")).expect("parameters")
    }

    #[test]
    fn a_spec_without_a_floor_means_the_algorithms_and_prints_as_before() {
        let old = "reservoir:memory_bits=3072,num_filters=3,insert_floor=0.03,bias=reservoir,layout=spread";
        assert_eq!(parameters(old).floor, Floor::Algorithm);
        assert_eq!(parameters(old).spec().to_string(), old);
        let text = parameters("reservoir:memory_bits=3072,num_filters=3,floor=text");
        assert_eq!(parameters(&text.spec().to_string()), text);
    }

    #[test]
    fn a_spec_without_the_parameters_of_its_bias_means_what_it_did_and_prints_as_before() {
        let spec = "reservoir:memory_bits=3072,num_filters=3,insert_floor=0.03";
        for (bias, meant) in
            [("constant", Bias::Constant { insert_prob: 0.1 }), ("exponential", Bias::Exponential { half_life: 1024 })]
        {
            let old = format!("{spec},bias={bias},layout=spread");
            assert_eq!(parameters(&old).bias, meant);
            assert_eq!(parameters(&old).spec().to_string(), old);
        }
        for said in ["bias=constant,insert_prob=0", "bias=constant,insert_prob=0.25", "bias=exponential,half_life=7"] {
            let full = format!("{spec},{said},layout=spread");
            assert_eq!(parameters(&full).spec().to_string(), full);
        }
    }

    #[test]
    fn parameters_that_do_not_belong_or_cannot_be_are_refused() {
        for (said, mention) in [
            ("bias=constant,insert_prob=1.5", "insert_prob is 1.5, but must be a probability between 0 and 1"),
            ("bias=constant,insert_prob=-0.1", "between 0 and 1"),
            ("bias=constant,insert_prob=NaN", "between 0 and 1"),
            ("bias=constant,insert_prob=often", "a probability"),
            ("bias=exponential,half_life=0", "half_life is 0, but must be between 1"),
            ("insert_prob=0.5", "write bias=constant"),
            ("bias=constant,half_life=5", "write bias=exponential"),
            ("bias=exponential,insert_prob=0.5", "write bias=constant"),
        ] {
            for spec in [format!("reservoir:memory_bits=4096,num_filters=3,{said}"), format!("reservoir:{said}")] {
                let error = Goal::new()
                    .memory_bits(1 << 16)
                    .fpr(0.1)
                    .plan_among(crate::TESTED, spec.as_str())
                    .expect_err(said)
                    .to_string();
                assert!(error.contains(mention), "{spec}: {error}");
            }
        }
    }

    /// Where nothing is forced in, a distinct arrival is kept as often as the bias says: naively, by its formula.
    #[test]
    fn arrivals_are_inserted_as_often_as_their_bias_says() {
        for (bias, prob) in [
            ("constant", Box::new(|_| 0.1) as Box<dyn Fn(f64) -> f64>),
            ("constant,insert_prob=0.4", Box::new(|_| 0.4)),
            ("constant,insert_prob=1", Box::new(|_| 1.0)),
            ("exponential", Box::new(|beyond: f64| (-beyond / 1024.0).exp2())),
            ("exponential,half_life=5000", Box::new(|beyond: f64| (-beyond / 5000.0).exp2())),
        ] {
            for layout in ["spread", "blocked"] {
                // No draw exceeds a floor of 1.
                let spec =
                    format!("reservoir:memory_bits=3072,num_filters=3,insert_floor=1,bias={bias},layout={layout}");
                let mut filter = Reservoir::new(parameters(&spec), Hashing::seeded(1)).expect("small");
                let (mut kept, mut expected, mut variance) = (0.0, 0.0, 0.0);
                for key in 0..12_000u64 {
                    let hash = key.hash_with(&Hashing::seeded(1));
                    let distinct = filter.observe_hash(hash, Importance::FULL).is_distinct();
                    if distinct && key >= 1024 {
                        let share = prob((key + 1 - 1024) as f64);
                        kept += f64::from(u8::from(filter.contains_hash(hash)));
                        (expected, variance) = (expected + share, variance + share * (1.0 - share));
                    }
                }
                let off = (kept - expected).abs();
                assert!(off <= 4.0 * variance.sqrt(), "{spec}: {kept} kept of {expected} expected");
            }
        }
    }

    /// By the text nothing is forced in before the probability of insertion is down to the floor, and every distinct
    /// arrival afterwards; by the algorithm all but those whose draw lies between that probability and the floor.
    #[test]
    fn the_two_floors_force_arrivals_in_when_they_say() {
        const FLOOR: f64 = 0.06;
        for (layout, floor) in
            [("spread", "text"), ("spread", "algorithm"), ("blocked", "text"), ("blocked", "algorithm")]
        {
            let spec = format!("reservoir:memory_bits=3072,num_filters=3,insert_floor={FLOOR}");
            let parameters = parameters(&format!("{spec},layout={layout},floor={floor}"));
            let mut filter = Reservoir::new(parameters, Hashing::seeded(1)).expect("small");
            // Sampling inserts with 1024/i, which reaches the floor at arrival 17,067.
            for (from, to) in [(0, 11_000), (11_000, 15_000), (15_000, 20_000), (20_000, 24_000)] {
                let (mut kept, mut expected, mut variance) = (0.0, 0.0, 0.0);
                for key in from..to {
                    let hash = u64::hash_with(&key, &Hashing::seeded(1));
                    let distinct = filter.observe_hash(hash, Importance::FULL).is_distinct();
                    let sampled = (1024.0 / (key + 1) as f64).min(1.0);
                    let share = match floor {
                        "text" if sampled > FLOOR => sampled,
                        "text" => 1.0,
                        _ => 1.0 - (FLOOR - sampled).max(0.0),
                    };
                    if distinct {
                        kept += f64::from(u8::from(filter.contains_hash(hash)));
                        expected += share;
                        variance += share * (1.0 - share);
                    }
                }
                let off = (kept - expected).abs();
                assert!(off <= 4.0 * variance.sqrt(), "{layout}, {floor}, {from}: {kept} kept of {expected} expected");
            }
        }
    }
}
