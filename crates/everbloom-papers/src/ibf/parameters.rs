//! What can be chosen: insertion, deletion, how cells remember importance, reinsertion, sizes.

use super::reinsertion::{self, Reinsertion};
use everbloom::kind::{MOST_CHANGED, Parameter, Takes, Unset, choice_name, one_of};
use everbloom::{Error, Result, Spec};

/// What an arrival writes into its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insertion {
    /// `cell_max`, whatever the importance (the thesis's M-insert).
    Max,
    /// ⌊`cell_max` · importance / its maximum⌋, if the cell holds less (Imp-insert).
    Importance,
}

/// Which cells are lowered before an arrival is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deletion {
    /// Cells at random.
    Random,
    /// Cells with probability ∝ 1/importance of the cell; a zero cell wastes the pick.
    Probabilistic,
    /// Cells with probability ∝ 1/importance among those that are not zero: no pick is wasted.
    ProbabilisticP,
    /// Cells with probability ∝ 1/value, none wasted.
    ProbabilisticVal,
    /// The least important cells that are not zero, each once.
    MinImp,
    /// The least important cells, zero or not.
    MinImpOptional,
    /// The least importance plus priority; every pick raises the cell's priority.
    MinImpPriority,
}

impl Deletion {
    /// Whether cells keep the importance that was mapped to them.
    pub fn weighs_cells(self) -> bool {
        !matches!(self, Deletion::Random | Deletion::ProbabilisticVal)
    }

    /// The most cells that a filter may have: 32 bits number groups of 16 of them in the sampling index and in
    /// the queue, single ones in the list of cells in use.
    pub(super) const fn max_cells(self) -> u64 {
        if matches!(self, Deletion::ProbabilisticVal) { 1 << 32 } else { 1 << 36 }
    }
}

/// How a cell sums up the importances that were mapped to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellImportance {
    /// All of them, as in the thesis.
    Sum,
    /// All of them, halved as time passes.
    Decayed,
    /// The last one.
    Last,
}

pub(super) const INSERTIONS: &[(&str, Insertion)] = &[("m", Insertion::Max), ("imp", Insertion::Importance)];
pub(super) const DELETIONS: &[(&str, Deletion)] = &[
    ("random", Deletion::Random),
    ("probabilistic", Deletion::Probabilistic),
    ("probabilistic_p", Deletion::ProbabilisticP),
    ("probabilistic_val", Deletion::ProbabilisticVal),
    ("min_imp", Deletion::MinImp),
    ("min_imp_optional", Deletion::MinImpOptional),
    ("min_imp_priority", Deletion::MinImpPriority),
];
const CELL_IMPORTANCES: &[(&str, CellImportance)] =
    &[("sum", CellImportance::Sum), ("decayed", CellImportance::Decayed), ("last", CellImportance::Last)];

/// Kinds of the family; the presets fix insertion and deletion.
const PRESETS: &[(&str, Insertion, Deletion)] = &[
    ("ibf", Insertion::Max, Deletion::Probabilistic),
    ("ibf1", Insertion::Importance, Deletion::Random),
    ("ibf2", Insertion::Importance, Deletion::MinImp),
    ("ibf3", Insertion::Max, Deletion::Probabilistic),
    ("ibf4", Insertion::Max, Deletion::MinImp),
    ("ibf5", Insertion::Importance, Deletion::Probabilistic),
    ("ibf6", Insertion::Importance, Deletion::ProbabilisticVal),
];

/// The parameters of a kind of the family, in the order in which a full spec prints them: with this insertion and deletion
/// unless the spec says otherwise, and the values that they take.
const fn table(
    (insertion, insertions): (&'static str, Takes),
    (deletion, deletions): (&'static str, Takes),
    max_cells: u64,
) -> [Parameter; 14] {
    let share = Takes::Between(0.0, 1.0);
    [
        Parameter::planned("insertion", "what an arrival writes: the most (m), or by importance (imp)", insertions)
            .or(Unset::Value(insertion)),
        Parameter::planned("deletion", "which cells an arrival lowers", deletions).or(Unset::Value(deletion)),
        Parameter::planned("num_cells", "cells in all", Takes::Whole(1, max_cells)),
        Parameter::planned("num_hashes", "cells that a key sets", Takes::Whole(1, MAX_HASHES as u64)),
        Parameter::planned("decrements", "cells that an arrival lowers", Takes::Whole(0, MOST_CHANGED as u64)),
        Parameter::planned("cell_max", "the largest value of a cell", Takes::Whole(1, MAX_CELL as u64))
            .or(Unset::Value("3")),
        Parameter::planned("cell_importance", "how a cell sums up importances", one_of!(CELL_IMPORTANCES))
            .or(Unset::BySizes("decayed", "sum")),
        Parameter::planned(
            "fill_limit",
            "cells that may be in use, which keeps the rate; where sizes are given, no limit and no promise",
            Takes::Whole(1, max_cells),
        ),
        Parameter::planned("reinsert", "whether important keys are inserted again, and which", reinsertion::CHOICE)
            .or(Unset::Value("off")),
        Parameter::planned(
            "reinsert_above",
            "the share of the greatest importance from which keys are kept for that",
            share,
        )
        .or(Unset::Value("0.8"))
        .with("reinsert", &["fifo", "random"]),
        Parameter::planned("reinsert_slots", "keys that are kept for that", Takes::Whole(1, reinsertion::MAX_SLOTS))
            .or(Unset::Derived("one for 128 cells, at least 8"))
            .with("reinsert", &["fifo", "random"]),
        Parameter::planned(
            "reinsert_every",
            "arrivals from one of them to the next; 0 for never",
            Takes::Whole(0, u64::MAX),
        )
        .or(Unset::Value("10"))
        .with("reinsert", &["fifo", "random"]),
        Parameter::planned(
            "reinsert_below",
            "the share of zero cells below which every arrival brings one back",
            share,
        )
        .or(Unset::Derived("none: reinsert_every holds"))
        .with("reinsert", &["fifo", "random"]),
        Parameter::planned(
            "priority_step",
            "what being lowered adds to a cell's priority",
            Takes::Whole(1, MAX_PRIORITY_STEP as u64),
        )
        .or(Unset::Derived("as cell_max"))
        .with("deletion", &["min_imp_priority"]),
    ]
}

const MANY: u64 = Deletion::Random.max_cells();
const FEWER: u64 = Deletion::ProbabilisticVal.max_cells();
const M: (&str, Takes) = ("m", Takes::Choice(&["m"]));
const IMP: (&str, Takes) = ("imp", Takes::Choice(&["imp"]));
const RANDOM: (&str, Takes) = ("random", Takes::Choice(&["random"]));
const MIN_IMP: (&str, Takes) = ("min_imp", Takes::Choice(&["min_imp"]));
const PROBABILISTIC: (&str, Takes) = ("probabilistic", Takes::Choice(&["probabilistic"]));
const BY_VALUE: (&str, Takes) = ("probabilistic_val", Takes::Choice(&["probabilistic_val"]));

pub(super) const IBF: [Parameter; 14] = table(("m", one_of!(INSERTIONS)), ("probabilistic", one_of!(DELETIONS)), MANY);
pub(super) const IBF1: [Parameter; 14] = table(IMP, RANDOM, MANY);
pub(super) const IBF2: [Parameter; 14] = table(IMP, MIN_IMP, MANY);
pub(super) const IBF3: [Parameter; 14] = table(M, PROBABILISTIC, MANY);
pub(super) const IBF4: [Parameter; 14] = table(M, MIN_IMP, MANY);
pub(super) const IBF5: [Parameter; 14] = table(IMP, PROBABILISTIC, MANY);
pub(super) const IBF6: [Parameter; 14] = table(IMP, BY_VALUE, FEWER);

pub(super) const MAX_HASHES: u32 = 64;
pub(super) const MAX_CELL: u32 = 255;
/// More lowered cells per arrival are a mistake, and would take milliseconds.
pub(super) const MAX_DECREMENTS: u32 = 1 << 16;
/// A larger step would reach the largest priority within a few picks, and priorities would no longer tell cells apart.
pub(super) const MAX_PRIORITY_STEP: u32 = 1 << 16;
/// A limit below one cell in this many would be kept by searching for rare cells.
pub(super) const LEAST_LIMIT_SHARE: u64 = 64;

/// Everything that makes up an importance-aware filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// The name in specs: `ibf`, or a preset.
    pub(super) kind: &'static str,
    /// What an arrival writes.
    pub insertion: Insertion,
    /// What is lowered before.
    pub deletion: Deletion,
    /// Cells in all.
    pub num_cells: u64,
    /// Cells of an arrival.
    pub num_hashes: u32,
    /// Cells lowered at each arrival.
    pub decrements: u32,
    /// The largest value of a cell.
    pub cell_max: u32,
    /// How a cell sums up importances.
    pub cell_importance: CellImportance,
    /// The most cells that may be non-zero when a key is looked up: what keeps a promised rate.
    pub fill_limit: Option<u64>,
    /// The cache of important keys to insert again.
    pub reinsertion: Option<Reinsertion>,
    /// What a pick adds to the cell's priority, on the thesis's scale of importances up to 50; `cell_max` if not given.
    pub priority_step: Option<u32>,
}

/// Insertion and deletion that a spec names, by its kind or its words.
pub(super) fn scheme_of(spec: &Spec) -> Result<(&'static str, Insertion, Deletion)> {
    let (kind, insertion, deletion) = *PRESETS.iter().find(|(name, ..)| *name == spec.kind()).unwrap_or(&PRESETS[0]);
    let wanted = (spec.choice("insertion", INSERTIONS, insertion)?, spec.choice("deletion", DELETIONS, deletion)?);
    if kind != "ibf" && wanted != (insertion, deletion) {
        let (insertion, deletion) = (choice_name(INSERTIONS, insertion), choice_name(DELETIONS, deletion));
        return Err(spec.error(
            format!("{kind} is insertion={insertion} with deletion={deletion}"),
            "name other pairs as ibf:insertion=…,deletion=…",
        ));
    }
    if wanted == (Insertion::Max, Deletion::ProbabilisticVal) {
        return Err(spec.error(
            "probabilistic_val reads importance off the cells' values, and insertion=m writes the same value for all",
            "take insertion=imp, or deletion=probabilistic",
        ));
    }
    Ok((kind, wanted.0, wanted.1))
}

/// The step of priorities, which only one deletion has.
pub(super) fn priority_step_of(spec: &Spec, deletion: Deletion) -> Result<Option<u32>> {
    match spec.number("priority_step")? {
        Some(_) if deletion != Deletion::MinImpPriority => Err(spec.error(
            "priority_step is given, and this deletion has no priorities",
            "take deletion=min_imp_priority, or leave priority_step out",
        )),
        step => Ok(step),
    }
}

pub(super) fn cell_importance_of(spec: &Spec, default: CellImportance) -> Result<CellImportance> {
    spec.choice("cell_importance", CELL_IMPORTANCES, default)
}

impl Parameters {
    /// Insertion and deletion with sizes given by hand: the thesis's filter, which promises no rate.
    pub fn by_hand(insertion: Insertion, deletion: Deletion, size: Sizes) -> Self {
        Parameters {
            kind: "ibf",
            insertion,
            deletion,
            num_cells: size.num_cells,
            num_hashes: size.num_hashes,
            decrements: size.decrements,
            cell_max: size.cell_max,
            cell_importance: CellImportance::Sum,
            fill_limit: None,
            reinsertion: None,
            priority_step: None,
        }
    }

    /// What a spec with all numbers says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        let (kind, insertion, deletion) = scheme_of(spec)?;
        let num_cells = spec.required("num_cells")?;
        Parameters {
            kind,
            insertion,
            deletion,
            num_cells,
            num_hashes: spec.required("num_hashes")?,
            decrements: spec.required("decrements")?,
            cell_max: spec.required("cell_max")?,
            cell_importance: cell_importance_of(spec, CellImportance::Sum)?,
            fill_limit: spec.number("fill_limit")?,
            reinsertion: reinsertion::from_spec(spec, num_cells)?,
            priority_step: priority_step_of(spec, deletion)?,
        }
        .checked()
    }

    /// The preset that these are named after, or the kind of all combinations.
    pub(super) fn kind(&self) -> &'static everbloom::kind::Kind {
        super::KINDS.iter().find(|kind| kind.name == self.kind).unwrap_or(&&super::IBF)
    }

    /// The full spec.
    pub(super) fn spec(&self) -> Spec {
        let mut spec = Spec::new(self.kind);
        if self.kind == "ibf" {
            spec = spec
                .with("insertion", choice_name(INSERTIONS, self.insertion))
                .with("deletion", choice_name(DELETIONS, self.deletion));
        }
        spec = spec
            .with("num_cells", self.num_cells)
            .with("num_hashes", self.num_hashes)
            .with("decrements", self.decrements)
            .with("cell_max", self.cell_max);
        if self.deletion.weighs_cells() {
            spec = spec.with("cell_importance", choice_name(CELL_IMPORTANCES, self.cell_importance));
        }
        if let Some(limit) = self.fill_limit {
            spec = spec.with("fill_limit", limit);
        }
        if let Some(reinsertion) = &self.reinsertion {
            spec = reinsertion.add_to(spec);
        }
        match self.priority_step {
            Some(step) => spec.with("priority_step", step),
            None => spec,
        }
    }

    /// The parameters, if a filter can work with them.
    pub(super) fn checked(mut self) -> Result<Self> {
        if !self.deletion.weighs_cells() {
            self.cell_importance = CellImportance::Sum; // there is none, so none is halved
        }
        let bounded = |name, given: u64, least: u64, most: u64, remedy: &str| {
            if (least..=most).contains(&given) {
                return Ok(());
            }
            Err(Error::parameter(name, given, format!("between {least} and {most}"), remedy))
        };
        let most = self.deletion.max_cells();
        bounded("num_cells", self.num_cells, 1, most, "65536 cells are 256 KiB at most; for more, take shards")?;
        bounded("num_hashes", self.num_hashes.into(), 1, MAX_HASHES.into(), "the thesis takes 4")?;
        bounded("cell_max", self.cell_max.into(), 1, MAX_CELL.into(), "the thesis takes 4")?;
        bounded("decrements", self.decrements.into(), 0, MAX_DECREMENTS.into(), "the thesis takes 7")?;
        if let Some(limit) = self.fill_limit {
            let least = self.num_cells / LEAST_LIMIT_SHARE + u64::from(self.num_hashes);
            bounded("fill_limit", limit, least, self.num_cells.max(least), "leave it out to promise no rate")?;
        }
        if let Some(step) = self.priority_step {
            bounded(
                "priority_step",
                step.into(),
                1,
                MAX_PRIORITY_STEP.into(),
                "the thesis's algorithm takes cell_max",
            )?;
        }
        if let Some(reinsertion) = &self.reinsertion {
            reinsertion.checked()?;
        }
        Ok(self)
    }

    /// Bits that a cell's value needs.
    pub(super) fn cell_bits(&self) -> u32 {
        u32::BITS - self.cell_max.leading_zeros()
    }
}

/// The numbers of a filter made by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Cells in all.
    pub num_cells: u64,
    /// Cells of an arrival.
    pub num_hashes: u32,
    /// Cells lowered at each arrival.
    pub decrements: u32,
    /// The largest value of a cell.
    pub cell_max: u32,
}
