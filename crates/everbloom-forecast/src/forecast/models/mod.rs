//! How the errors of a kind on a stream are forecast: by how full it is, or by a model of its own.

mod ranked;

use crate::stream::Method;
use crate::stream::integrate::{ALL_ALIKE, Integral};
use crate::{Forecast, Stream};
use everbloom::kind::{SHARDS, is_sharded, shard_plan};
use everbloom::{Goal, Plan, Result, filters};
use libm::ldexp;

/// What a kind has in [`Kind::extension`](everbloom::kind::Kind::extension) if there is a formula or a chain for its errors on a
/// stream: the forecast of a full spec, or `None` where a filter must be simulated.
pub struct StreamModel(pub fn(&Plan, &Stream) -> Result<Option<Forecast>>);

impl StreamModel {
    /// The model of the plan's kind, if it has one.
    fn of(plan: &Plan) -> Option<&'static StreamModel> {
        static RANKED: StreamModel = StreamModel(ranked::forecast);
        static GRACEFUL: StreamModel = StreamModel(graceful);
        match plan.kind {
            kind if *kind == filters::ranked::KIND => Some(&RANKED),
            kind if *kind == filters::ranked::GRACEFUL => Some(&GRACEFUL),
            kind => kind.extension?.downcast_ref(),
        }
    }
}

/// What a formula or a chain says of a full spec on a stream; `None` where there is none.
pub(super) fn by_formula(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    if is_sharded(&plan.spec) {
        return match plan.scaled(1.0)? {
            Some(whole) => by_formula(&whole, stream),
            // What has no size to put together is asked about one shard, which sees its part of the stream.
            None => by_formula(&shard_plan(plan), &stream.part(plan.spec.required(SHARDS)?)),
        };
    }
    match StreamModel::of(plan) {
        Some(model) => (model.0)(plan, stream),
        None => Ok((plan.kind.model.fill_at)(&plan.spec)?.map(|fill_at| never_forgetting(plan, stream, fill_at))),
    }
}

/// The forecast of a filter that never forgets: its rate and its share of zero cells by distinct keys inside.
fn never_forgetting(plan: &Plan, stream: &Stream, fill_at: impl Fn(f64) -> (f64, f64)) -> Forecast {
    let course = stream.course();
    let integral = Integral { state: &|time| fill_at(course.distinct(time)), fnr: &|_, _| 0.0, levels: ALL_ALIKE };
    integral.forecast(stream, plan.promise, Method::ClosedForm)
}

/// The share of arrivals up to which the exact beginning does not matter to a forecast.
const SHORT_BEGINNING: f64 = 0.01;

fn graceful(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let exact = (plan.kind.plan)(&plan.spec, &Goal::new())?.promise.exact_until.unwrap_or(0);
    if stream.distinct() <= exact {
        // Seven of eight slots are in use when the table is full; two keys may share their 64 bits.
        let fill_at = |items: f64| (ldexp(items, -64), 1.0 - items / (exact as f64 * 8.0 / 7.0));
        return Ok(Some(never_forgetting(plan, stream, fill_at)));
    }
    if stream.footprint().distinct(SHORT_BEGINNING * stream.arrivals() as f64) < exact as f64 {
        return Ok(None);
    }
    ranked::forecast(plan, stream)
}
