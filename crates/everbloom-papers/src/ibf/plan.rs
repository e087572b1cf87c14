//! From memory, a target rate and the importances to expect to cells, hashes, decrements and limit.
//!
//! The promise is kept by `fill_limit`: never are more cells non-zero, so a new key finds all of its
//! k independent cells set with probability at most (limit/n)^k, at every moment of every stream. The
//! limit is rounded **down**. Decrements are chosen so that the deletion alone settles at the limit,
//! and rounded **up**; where a stream is unlike the one expected, random cells make up the difference.

use super::parameters::{
    CellImportance, Deletion, Insertion, LEAST_LIMIT_SHARE, MAX_HASHES, Parameters, cell_importance_of,
    priority_step_of, scheme_of,
};
use super::reinsertion;
use everbloom::kind::{Effort, MOST_CHANGED, rate_text};
use everbloom::sizing::closed_forms::largest;
use everbloom::{Error, Goal, Holds, ImportanceMix, Plan, Promise, Result, Spec};
use libm::{ceil, floor, log1p, log2, pow};

/// The value of full cells unless asked otherwise: two bits tell four classes of importance apart.
const DEFAULT_CELL_MAX: u32 = 3;

const NUMBERS: [&str; 4] = ["num_cells", "num_hashes", "decrements", "cell_max"];

/// What the decrements cost.
pub(super) fn effort(spec: &Spec) -> Result<Option<Effort>> {
    let decrements = Parameters::from_spec(spec)?.decrements;
    Ok(Some(Effort { parameter: "decrements", given: decrements.into(), changed: decrements.into(), grows: true }))
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let by_hand = NUMBERS.iter().all(|word| spec.get(word).is_some());
    let mix = goal.known_importance_mix().unwrap_or_else(ImportanceMix::uniform);
    let parameters = if by_hand { Parameters::from_spec(spec)? } else { best(spec, goal, &mix)? };
    let mut plan = Plan::new(
        parameters.kind(),
        parameters.spec(),
        parameters.memory_bits(),
        promise(&parameters, &mix),
        goal.key_hashing(),
    );
    plan.notes.extend(note(&parameters, goal));
    Ok(plan)
}

/// What to know about a mix that does not tell keys apart, or about arrivals that have no importance: all count
/// as full.
fn note(parameters: &Parameters, goal: &Goal) -> Option<String> {
    if parameters.insertion == Insertion::Max {
        return None;
    }
    let most = parameters.cell_max;
    let (condition, value) = match (goal.known_importance_mix(), goal.has_importance()) {
        (Some(mix), _) => ("with these", mix.only_share_of(most)?),
        (None, true) => return None,
        (None, false) => ("without", most),
    };
    let meaning = if value == 0 { "nothing is remembered" } else { "the insertion does not tell keys apart" };
    Some(format!("{condition} importances every arrival writes the value {value} of {most}: {meaning}"))
}

/// The rate that parameters come to: promised if a limit or the stable point bounds it.
pub(super) fn promise(parameters: &Parameters, mix: &ImportanceMix) -> Promise {
    let hashes = f64::from(parameters.num_hashes);
    if let Some(limit) = parameters.fill_limit {
        return Promise::always(pow(limit as f64 / parameters.num_cells as f64, hashes).min(1.0));
    }
    let predicted_fpr = pow(stable_fill(parameters, mix), hashes);
    let holds = if parameters.deletion == Deletion::Random { Holds::Always } else { Holds::Never };
    Promise::always(predicted_fpr).held(holds)
}

/// The share of cells that are not zero once it no longer changes, as far as theory goes.
///
/// Random deletion has an exact one-cell Markov chain; a random one bounds whatever the importances,
/// so its value is full. The others are means that hold when cells do not differ much.
fn stable_fill(parameters: &Parameters, mix: &ImportanceMix) -> f64 {
    let values = match parameters.deletion {
        Deletion::Random => Values { cell_max: parameters.cell_max, mix: None },
        _ => Values::of(parameters, mix),
    };
    let (decrements, hashes) = (f64::from(parameters.decrements), f64::from(parameters.num_hashes));
    match parameters.deletion {
        Deletion::Random | Deletion::Probabilistic => fill_under_random(parameters, &values, decrements),
        Deletion::ProbabilisticP | Deletion::ProbabilisticVal => {
            // Picks that are never wasted are worth 1/fill random ones: the fill at which both agree.
            let parts = 1 << 20;
            let low = largest(parts, |part| {
                let fill = part as f64 / parts as f64;
                fill == 0.0 || fill_under_random(parameters, &values, decrements / fill) >= fill
            });
            ((low + 1) as f64 / parts as f64).min(1.0)
        }
        Deletion::MinImp => (1.0 - decrements / (hashes * values.mean())).clamp(1.0 / parameters.num_cells as f64, 1.0),
        Deletion::MinImpOptional | Deletion::MinImpPriority => 1.0,
    }
}

/// The values that arrivals write.
struct Values<'m> {
    cell_max: u32,
    /// `None` if all write the largest.
    mix: Option<&'m ImportanceMix>,
}

impl<'m> Values<'m> {
    fn of(parameters: &Parameters, mix: &'m ImportanceMix) -> Self {
        Values { cell_max: parameters.cell_max, mix: (parameters.insertion == Insertion::Importance).then_some(mix) }
    }

    /// The share of arrivals that write more than `value`.
    fn above(&self, value: u32) -> f64 {
        self.mix.map_or(1.0, |mix| mix.share_from(f64::from(value + 1) / f64::from(self.cell_max)))
    }

    fn mean(&self) -> f64 {
        (0..self.cell_max).map(|value| self.above(value)).sum::<f64>().max(1e-9)
    }
}

/// The fill at which `decrements` random cells an arrival leave the cells.
///
/// A cell holds at most j with probability F_j. It crosses from j + 1 down as often as it crosses up:
/// p·(F_{j+1} − F_j) = k·Pr(v > j)·F_j, hence F_0 = Π_j 1/(1 + (k/p)·Pr(v > j)), which for one value is
/// the stable filter's (eq. of theorem 2), with its correction for few cells.
fn fill_under_random(parameters: &Parameters, values: &Values<'_>, decrements: f64) -> f64 {
    let room = decrements * (1.0 / f64::from(parameters.num_hashes) - 1.0 / parameters.num_cells as f64);
    if room <= 0.0 {
        return 1.0;
    }
    let zeros: f64 = (0..parameters.cell_max).map(|value| 1.0 / (1.0 + values.above(value) / room)).product();
    1.0 - zeros
}

/// The fewest decrements that hold the fill at `fill`.
fn decrements_for(parameters: &Parameters, mix: &ImportanceMix, fill: f64) -> u32 {
    let values = Values::of(parameters, mix);
    let wanted = |worth: f64| {
        let short = |decrements: u64| fill_under_random(parameters, &values, decrements as f64 * worth) > fill;
        largest(MOST_CHANGED.into(), |decrements| decrements == 0 || short(decrements)) + 1
    };
    let decrements = match parameters.deletion {
        Deletion::Random | Deletion::Probabilistic => wanted(1.0),
        Deletion::ProbabilisticP | Deletion::ProbabilisticVal => wanted(1.0 / fill),
        _ => ceil(f64::from(parameters.num_hashes) * values.mean() * (1.0 - fill)) as u64,
    };
    decrements.clamp(1, MOST_CHANGED.into()) as u32
}

/// The parameters that a goal comes to; words that are given are kept.
fn best(spec: &Spec, goal: &Goal, mix: &ImportanceMix) -> Result<Parameters> {
    let target = goal.required_fpr()?;
    // A key is lost with the first of its cells, so fewer hashes than a plain filter's log2(1/target).
    let ideal = floor(-0.6 * log2(target) + 0.5).clamp(1.0, f64::from(MAX_HASHES)) as u32;
    if let Some(given) = spec.number("num_hashes")? {
        return with_hashes(spec, goal, mix, target, given);
    }
    let mut refusal = None;
    // The nearest number to the ideal one that the memory allows.
    for distance in 0..MAX_HASHES {
        for hashes in [ideal.saturating_sub(distance), ideal + distance] {
            if (1..=MAX_HASHES).contains(&hashes) {
                match with_hashes(spec, goal, mix, target, hashes) {
                    Ok(parameters) => return Ok(parameters),
                    Err(error) => refusal = refusal.or(Some(error)),
                }
            }
        }
    }
    Err(refusal.unwrap_or_else(|| spec.error("no number of hashes to try", "leave out num_hashes")))
}

fn with_hashes(spec: &Spec, goal: &Goal, mix: &ImportanceMix, target: f64, num_hashes: u32) -> Result<Parameters> {
    let (kind, insertion, deletion) = scheme_of(spec)?;
    let fill = pow(target, 1.0 / f64::from(num_hashes));
    let draft = |num_cells: u64, decrements: u32| -> Result<Parameters> {
        Ok(Parameters {
            kind,
            insertion,
            deletion,
            num_cells,
            num_hashes,
            decrements,
            cell_max: spec.number("cell_max")?.unwrap_or(DEFAULT_CELL_MAX),
            cell_importance: cell_importance_of(spec, CellImportance::Decayed)?,
            fill_limit: None,
            reinsertion: reinsertion::from_spec(spec, num_cells)?,
            priority_step: priority_step_of(spec, deletion)?,
        })
    };
    draft(1, 1)?.checked()?;
    let (mut num_cells, mut decrements) = (deletion.max_cells(), spec.number("decrements")?.unwrap_or(1));
    // Decrements hardly depend on the number of cells, and that hardly on them: twice settles it.
    for _ in 0..2 {
        num_cells = cells_for(spec, goal, fill, |cells| draft(cells, decrements))?;
        let parameters = draft(num_cells, decrements)?;
        decrements = spec.number("decrements")?.unwrap_or_else(|| decrements_for(&parameters, mix, fill));
    }
    num_cells = num_cells.min(cells_for(spec, goal, fill, |cells| draft(cells, decrements))?);
    let limit = floor(num_cells as f64 * fill).max(0.0) as u64;
    let least = num_cells / LEAST_LIMIT_SHARE + u64::from(num_hashes);
    let fill_limit = spec.number("fill_limit")?.unwrap_or(limit);
    if fill_limit > num_cells {
        let needed = format!("at most {num_cells}, the cells that there are");
        return Err(Error::parameter("fill_limit", fill_limit, needed, "leave it out to have it planned"));
    }
    // Rounding may have gone the wrong way in the power.
    let fill_limit = largest(fill_limit.min(num_cells), |limit| {
        pow(limit as f64 / num_cells as f64, f64::from(num_hashes)) <= target
    });
    if fill_limit < least {
        return Err(Error::Infeasible {
            wanted: format!("a rate of {}", rate_text(target)),
            reason: format!("of {num_cells} cells only {fill_limit} may be in use, and a key needs {num_hashes}"),
            remedy: "give more memory or accept a higher rate".into(),
        });
    }
    Parameters { fill_limit: Some(fill_limit), ..draft(num_cells, decrements)? }.checked()
}

/// The cells that are given, or that the memory holds, or that the expected keys need.
fn cells_for(spec: &Spec, goal: &Goal, fill: f64, draft: impl Fn(u64) -> Result<Parameters>) -> Result<u64> {
    if let Some(given) = spec.number("num_cells")? {
        return Ok(given);
    }
    let most = draft(1)?.deletion.max_cells();
    match (goal.most_memory_bits(), goal.known_items()) {
        (None, Some(items)) => {
            let hashes = f64::from(draft(1)?.num_hashes);
            let cells = ceil(items as f64 * hashes / -log1p(-fill));
            if cells > most as f64 {
                let reason = format!("it needs {cells:.3e} cells, and there can be {most}");
                let remedy = "expect fewer keys, or take shards".into();
                return Err(Error::Infeasible { wanted: format!("{items} keys"), reason, remedy });
            }
            Ok((cells as u64).max(1))
        }
        _ => {
            let memory = goal.required_memory()?;
            let fits = |cells| draft(cells).is_ok_and(|parameters| parameters.memory_bits() <= memory);
            let cells = largest(most, |cells| cells == 0 || fits(cells));
            if cells == 0 {
                let needed = "enough for one group of cells";
                return Err(Error::memory(memory, needed, "give 8KiB or more"));
            }
            if cells == most && draft(cells)?.memory_bits() < memory / 2 {
                let needed = format!("at most what {most} cells take");
                return Err(Error::memory(memory, needed, "give less, or take shards"));
            }
            Ok(cells)
        }
    }
}
