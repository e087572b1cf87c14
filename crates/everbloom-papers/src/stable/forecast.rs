//! What a stream makes of the filter, by the [chain of a cell](everbloom_forecast::stream::cell_chain); where there is none, a smaller
//! filter is simulated.

use super::plan::{Layout, Parameters, Update};
use everbloom::{Plan, Result};
use everbloom_forecast::stream::Method;
use everbloom_forecast::stream::cell_chain::{CellChain, CellRates};
use everbloom_forecast::stream::integrate::{ALL_ALIKE, Integral};
use everbloom_forecast::{Forecast, Stream};

/// The chain, where cells are alike and every arrival changes them. In the blocked layout the cells
/// of a line are not independent, and where duplicates change nothing the past depends on the verdicts.
pub(super) fn forecast(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let parameters = Parameters::from_spec(&plan.spec)?;
    if parameters.layout != Layout::Spread || parameters.update != Update::Always {
        return Ok(None);
    }
    let rates = CellRates {
        num_cells: parameters.num_cells as f64,
        num_hashes: parameters.num_hashes.into(),
        decrements: parameters.decrements.into(),
        above: &vec![1.0; parameters.cell_max as usize],
    };
    let chain = CellChain::new(&rates, &stream.footprint(), stream.arrivals() as f64);
    let integral = Integral {
        state: &|time| (chain.fpr(time), chain.zeros(time)),
        fnr: &|lag, _| chain.fnr(lag, parameters.cell_max as usize),
        levels: ALL_ALIKE,
    };
    Ok(Some(integral.forecast(stream, plan.promise, Method::Chain)))
}
