//! What to expect of a filter on a stream, and which filter for a goal on a stream or by what errors cost.

pub mod limit;
mod models;
mod recommend;
mod simulate;

use crate::{Forecast, Stream};
use everbloom::{Error, Plan, Result};

pub use models::StreamModel;
pub use recommend::{Candidate, CostCurve, CostPoint, CostSoFar, ExpectedCost, Question, Recommendation};

/// Arrivals of a simulation: enough for a rate of 15 % to be known to 0.1 points.
const SIMULATED: f64 = 262_144.0;

/// Arrivals of a simulation of filters that are tried at their own size: about a second.
const MOST_SIMULATED: f64 = 2_097_152.0;

/// Which errors to expect of a planned filter on a stream: by formula or chain where there is one, else by a
/// seeded simulation.
pub fn forecast(plan: &Plan, stream: &Stream) -> Result<Forecast> {
    match by_formula(plan, stream)? {
        Some(forecast) => Ok(forecast),
        None => simulated(plan, stream),
    }
}

/// Which errors to expect on a part of a learned stream, for many candidates.
fn forecast_of_part(plan: &Plan, stream: &Stream) -> Result<Forecast> {
    match by_formula(plan, stream)? {
        Some(forecast) => Ok(forecast),
        None => match simulate::simulated_long(plan, stream, SIMULATED)? {
            Some(forecast) => Ok(forecast),
            None => simulated(plan, stream),
        },
    }
}

/// A formula or a chain, unless there is a sample to simulate on, which tells more than its lags do.
fn by_formula(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    if stream.is_learned() && plan.scaled(1.0)?.is_some() {
        return Ok(None);
    }
    models::by_formula(plan, stream)
}

/// Which errors to expect, by simulation, whatever formulas there are.
pub fn simulated(plan: &Plan, stream: &Stream) -> Result<Forecast> {
    let found = if stream.is_learned() {
        simulate::simulated_in_full(plan, stream)?
    } else {
        let arrivals = if plan.takes_full_size() { stream.arrivals() as f64 } else { SIMULATED };
        simulate::simulated_long(plan, stream, arrivals.clamp(SIMULATED, MOST_SIMULATED))?
    };
    found.ok_or_else(|| {
        let remedy = "run it on a stream of your own, with compare";
        Error::unsupported(plan.spec.kind(), "be forecast", remedy.into())
    })
}
