//! What random deletion makes of a stream, by the chain of one cell.
//!
//! State: how often the cell was lowered, and the importance class of what was written (see
//! [`cell_chain`](everbloom_forecast::stream::cell_chain)). The other deletions choose cells by what was mapped to them; for
//! them, where a cache inserts keys again, and where the limit of cells in use is reached, a smaller filter is
//! simulated.

use super::parameters::{Deletion, Insertion, Parameters};
use everbloom::{Importance, ImportanceMix, Plan, Result, Spec};
use everbloom_forecast::stream::Method;
use everbloom_forecast::stream::cell_chain::{CellChain, CellRates};
use everbloom_forecast::stream::integrate::{Integral, Level};
use everbloom_forecast::{Forecast, Stream};

pub(super) fn forecast(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let parameters = Parameters::from_spec(&plan.spec)?;
    if parameters.deletion != Deletion::Random || parameters.reinsertion.is_some() {
        return Ok(None);
    }
    let full = ImportanceMix::of([Importance::FULL]);
    let mix = stream.importance().unwrap_or(&full);
    let cell_max = parameters.cell_max as usize;
    let from = |value: usize| mix.share_from(value as f64 / cell_max as f64);
    let above: Vec<f64> = match parameters.insertion {
        Insertion::Max => vec![1.0; cell_max],
        Insertion::Importance => (1..=cell_max).map(from).collect(),
    };
    let Some(chain) = unlimited(&parameters, &above, stream) else { return Ok(None) };
    // A level for every value that an arrival may write.
    let share = |value: usize| from(value) - if value < cell_max { from(value + 1) } else { 0.0 };
    let levels: Vec<Level> = (0..=cell_max)
        .map(|value| {
            let (low, high) = (value as f64 / cell_max as f64, (value as f64 + 1.0) / cell_max as f64);
            Level { importance: mix.mean_between(low, high), share: share(value) }
        })
        .collect();
    let written = |level: usize| if parameters.insertion == Insertion::Max { cell_max } else { level };
    let integral = Integral {
        state: &|time| (chain.fpr(time), chain.zeros(time)),
        fnr: &|lag, level| chain.fnr(lag, written(level)),
        levels: &levels,
    };
    Ok(Some(integral.forecast(stream, plan.promise, Method::Chain)))
}

/// The chain of a cell, unless so many cells come into use that the limit is needed: then how much is lowered
/// depends on how many are in use.
fn unlimited(parameters: &Parameters, above: &[f64], stream: &Stream) -> Option<CellChain> {
    let arrivals = stream.arrivals() as f64;
    let num_cells = parameters.num_cells as f64;
    let rates = CellRates {
        num_cells,
        num_hashes: parameters.num_hashes.into(),
        decrements: parameters.decrements.into(),
        above,
    };
    let chain = CellChain::new(&rates, &stream.footprint(), arrivals);
    let fill = 1.0 - chain.zeros(arrivals);
    // Cells in use vary from moment to moment; two standard deviations are left for it.
    let spread = 2.0 * (fill * (1.0 - fill) / num_cells).sqrt();
    let kept = parameters.fill_limit.is_none_or(|limit| fill + spread < limit as f64 / num_cells);
    kept.then_some(chain)
}

/// Whom a filter deletes that keeps the importance of its cells depends on what each hot key brings to them.
pub(super) fn takes_whole_stream(spec: &Spec) -> bool {
    spec.get("cell_importance").is_some()
}

/// The least important of few cells are not those of many.
pub(super) fn takes_full_size(spec: &Spec) -> bool {
    let deletion = Parameters::from_spec(spec).map(|parameters| parameters.deletion);
    matches!(deletion, Ok(Deletion::MinImp | Deletion::MinImpOptional | Deletion::MinImpPriority))
}
