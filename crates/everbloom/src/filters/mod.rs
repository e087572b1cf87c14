//! The filters, one file each, and the registry that everything else iterates.
//!
//! Adding a filter: write its file, and name it here, as a module and in the registry. The command line, the
//! laws in the tests, the lab and the bindings find it there.

pub mod age_partitioned;
pub mod aging;
pub mod blocked;
pub mod bloom;
pub mod counting;
pub mod exact;
pub mod ibf;
pub mod popularity;
pub mod ranked;
pub mod redisbloom;
pub mod reservoir;
pub mod scalable;
pub mod sharded;
pub mod spectral;
pub mod stable;
pub mod stacked;

use crate::audit::Horizon;
use crate::filter::model::Effort;
use crate::filter::{Base, Filter, Kind, Parameter, Restore, Watch, unaudited, without_audit};
use crate::promise::{
    Error, Goal, Holds, Plan, Promise, Result, Spec, Standing, Status, rate_text, refuse_murmur, size_text, suggestion,
};
use crate::stream::{Forecast, Stream};
use std::any::Any;

pub use blocked::AtomicBlocked;
pub(crate) use sharded::SHARDS;
pub use sharded::Sharded;

/// Exports every filter, lists its kinds in [`KINDS`], and hands all of them to whatever is to be done for each type
/// (`for_every_filter!`). One line a filter: `module::Type: its kinds`, of which the first is what the type is planned as.
macro_rules! registry {
    ($dollar:tt $($module:ident::$type:ident: $first:ident $(, $kind:ident)*;)*) => {
        $(pub use $module::$type;)*

        /// Every kind of filter.
        pub static KINDS: &[Kind] = &[$($module::$first, $($module::$kind,)*)*];

        macro_rules! for_every_filter {
            ($dollar action:ident) => { $dollar action! { $($module::$type: $first;)* } };
        }
        pub(crate) use for_every_filter;
    };
}

registry! { $
    bloom::Bloom: KIND;
    blocked::Blocked: KIND;
    counting::Counting: KIND;
    exact::Exact: KIND;
    stable::Stable: KIND;
    reservoir::Reservoir: KIND;
    ranked::Graceful: GRACEFUL;
    ranked::Ranked: KIND;
    ibf::Ibf: IBF, IBF1, IBF2, IBF3, IBF4, IBF5, IBF6;
    age_partitioned::AgePartitioned: KIND;
    aging::Aging: KIND;
    scalable::Scalable: KIND;
    redisbloom::RedisBloom: KIND;
    spectral::Spectral: KIND;
    popularity::Popularity: KIND;
    stacked::Stacked: KIND;
}

/// The names of the kinds for which something holds, for people.
pub(crate) fn names(holds: impl Fn(&Kind) -> bool) -> String {
    let names: Vec<_> = KINDS.iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect();
    names.join(", ")
}

/// The kind of this name, or an error that lists them.
pub fn kind(spec: &Spec) -> Result<&'static Kind> {
    let kind = KINDS.iter().find(|kind| kind.name == spec.kind()).ok_or_else(|| {
        let all = ["auto"].into_iter().chain(KINDS.iter().map(|kind| kind.name));
        spec.error(format!("there is no filter '{}'", spec.kind()), suggestion(spec.kind(), all, "take one of"))
    })?;
    let known = || parameters(kind).map(|parameter| parameter.name);
    match spec.parameters().find(|parameter| known().all(|name| name != *parameter)) {
        None => Ok(kind),
        Some(parameter) => {
            let problem = format!("{} has no parameter '{parameter}'", kind.name);
            Err(spec.error(problem, suggestion(parameter, known(), "it has")))
        }
    }
}

/// Every parameter that a spec of this kind may give: its own, and those that all kinds have.
pub fn parameters(kind: &Kind) -> impl Iterator<Item = &'static Parameter> + Clone + use<> {
    kind.parameters.iter().chain([&sharded::SHARDS_PARAMETER])
}

/// Fills in what a spec of a named kind leaves out.
pub(crate) fn plan(spec: &Spec, goal: &Goal) -> Result<Plan> {
    goal.checked()?;
    let plan_one = kind(spec)?.plan;
    if kind(spec)?.can.own_hash.is_none() {
        refuse_murmur(spec.kind(), &goal.hashing)?;
    }
    if goal.transmitted_bytes.is_some() && (!kind(spec)?.can.fit_bytes || is_sharded(spec)) {
        let able = names(|kind| kind.can.fit_bytes);
        let problem = format!("only {able}, in one piece, is planned by the bytes that are sent");
        return Err(spec.error(problem, format!("take {able}, or leave the bytes open and compress what comes out")));
    }
    let planned = |goal: &Goal| match is_sharded(spec) {
        true => sharded::planned(spec, goal, plan_one),
        false => plan_one(spec, goal),
    };
    // A spec that says everything is not held to a rate that nobody asked for.
    let unasked = goal.assumed_fpr.then(|| Goal { target_fpr: None, ..goal.clone() });
    let plan = match unasked.filter(|_| planned(&Goal::new()).is_ok()) {
        Some(goal) => planned(&goal),
        None => planned(goal),
    }?;
    if let Some(effort) = effort(&plan)? {
        effort.checked()?;
    }
    within_memory(&plan, goal)?;
    keeping_rate(plan, goal)
}

/// What an arrival costs, where a parameter can make it too much.
fn effort(plan: &Plan) -> Result<Option<Effort>> {
    let one = plan.spec.without(SHARDS);
    (kind(&one)?.model.effort)(&one)
}

/// The cells or words that an arrival changes besides its own, on average.
pub(crate) fn changed(plan: &Plan) -> Result<f64> {
    Ok(effort(plan)?.map_or(0.0, |effort| effort.changed))
}

/// Refuses a plan that takes more memory than there is: its spec has sizes of its own.
fn within_memory(plan: &Plan, goal: &Goal) -> Result<()> {
    match goal.memory_bits {
        Some(most) if plan.memory_bits > most && !goal.assumed_memory => Err(Error::Infeasible {
            wanted: format!("a memory of {}", size_text(most)),
            reason: format!(
                "{} takes {}{}",
                plan.spec,
                size_text(plan.memory_bits),
                if kind(&plan.spec)?.can.grow { " to begin with, and grows" } else { "" }
            ),
            remedy: "give that much memory, or leave its sizes to the plan".into(),
        }),
        _ => Ok(()),
    }
}

/// The plan, unless its spec has parameters that break the rate which was asked for; one that nobody asked for is named
/// in a note.
fn keeping_rate(mut plan: Plan, goal: &Goal) -> Result<Plan> {
    let (Some(broken), Some(target)) = (broken_rate(&plan, goal), goal.target_fpr) else { return Ok(plan) };
    if !goal.assumed_fpr {
        return Err(broken);
    }
    // How often it errs when it is full was not asked, and it says when it is.
    if goal.expected_items.is_none() && plan.promise.holds != Holds::Always {
        return Ok(plan);
    }
    let (target, predicted) = (rate_text(target), rate_text(plan.promise.predicted_fpr));
    plan.notes.push(format!("its parameters do not keep a rate of {target}{}, but {predicted}", for_items(goal)));
    Ok(plan)
}

fn for_items(goal: &Goal) -> String {
    goal.expected_items.map_or(String::new(), |items| format!(" for {items} keys"))
}

/// The error that a plan does not keep the rate of a goal, if it does not: for callers that hold it to one that is only
/// usual.
pub(crate) fn broken_rate(plan: &Plan, goal: &Goal) -> Option<Error> {
    let (promise, target) = (plan.promise, goal.target_fpr?);
    (promise.holds != Holds::Never && promise.predicted_fpr > target).then(|| Error::Infeasible {
        wanted: format!("a rate of {}{}", rate_text(target), for_items(goal)),
        reason: format!("{} comes to {}", plan.spec, rate_text(promise.predicted_fpr)),
        remedy: "accept that rate, or leave its parameters to the plan".into(),
    })
}

/// What a filter is held to: its promise, which for one that is exact, and grows, has no end.
fn held_to(spec: &Spec, promise: Promise) -> Promise {
    let is_exact = kind(spec).is_ok_and(|kind| kind.can.be_exact);
    if is_exact { Promise { holds: Holds::Always, ..promise } } else { promise }
}

/// Whether a filter keeps its promise, as far as its contents and its audit tell.
#[doc(hidden)]
pub fn standing(filter: &dyn Filter, status: &Status) -> Standing {
    match filter.audit().is_some_and(|audit| audit.breach(&filter.promise()).is_some()) {
        true => Standing::Broken,
        false => standing_of(filter.spec(), filter.promise(), status),
    }
}

/// The same of a filter that is elsewhere, by its contents alone.
#[doc(hidden)]
pub fn standing_of(spec: &Spec, promise: Promise, status: &Status) -> Standing {
    // Where keys are removed, few may be left while the counters that they filled stay full: only the fill tells.
    let may_be_fewer = kind(spec).is_ok_and(|kind| kind.can.remove);
    let arrivals = if may_be_fewer { u64::MAX } else { status.arrivals };
    held_to(spec, promise).standing(&Status { arrivals, ..*status })
}

/// Watches whether a filter keeps its promise. Where keys fade or are counted, looks at its cells tell.
#[doc(hidden)]
pub fn watch(filter: &dyn Filter) -> Watch {
    watch_of(filter.spec(), filter.promise())
}

/// The same of a filter that is elsewhere.
#[doc(hidden)]
pub fn watch_of(spec: &Spec, promise: Promise) -> Watch {
    let promise = held_to(spec, promise);
    let Ok(kind) = kind(spec) else { return Watch::over(&promise) };
    match (kind.forgets(spec) && !kind.can.forget, kind.can.count) {
        (true, _) => Watch::by_looks(&promise),
        (false, true) => Watch::over(&promise).with_looks(),
        (false, false) => Watch::over(&promise),
    }
}

/// A plan for about 1/`divisor` of the filter, shards put together; `None` if its kind does not scale.
pub(crate) fn scaled(plan: &Plan, divisor: f64) -> Result<Option<Plan>> {
    let shards = if is_sharded(&plan.spec) { plan.spec.required::<u32>(SHARDS)? } else { 1 };
    let whole = plan.spec.without(SHARDS);
    let Some((spec, share)) = kind(&whole)?.model.scaled(&whole, divisor / f64::from(shards))? else { return Ok(None) };
    let memory_bits = (plan.memory_bits as f64 * share / f64::from(shards)) as u64;
    Ok(Some(Plan { spec, memory_bits, ..plan.clone() }))
}

/// Whether a part of a stream's keys does not tell what a filter does on all of it.
pub(crate) fn takes_whole_stream(plan: &Plan) -> bool {
    kind(&plan.spec).is_ok_and(|kind| (kind.model.whole_stream)(&plan.spec.without(SHARDS)))
}

/// Whether a filter is only like itself at its own size.
pub(crate) fn takes_full_size(plan: &Plan) -> bool {
    kind(&plan.spec).is_ok_and(|kind| (kind.model.full_size)(&plan.spec.without(SHARDS)))
}

/// What a formula or a chain says of a full spec on a stream; `None` where there is none.
pub(crate) fn forecast(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    if is_sharded(&plan.spec) {
        return match scaled(plan, 1.0)? {
            Some(whole) => forecast(&whole, stream),
            // What has no size to put together is asked about one shard, which sees its part of the stream.
            None => forecast(&sharded::one_of(plan), &stream.part(plan.spec.required(SHARDS)?)),
        };
    }
    (kind(&plan.spec)?.model.forecast)(plan, stream)
}

/// Allocates what a plan describes.
pub(crate) fn build(plan: &Plan) -> Result<Box<dyn Filter>> {
    if is_sharded(&plan.spec) {
        return Ok(Box::new(Sharded::from_plan(plan)?));
    }
    (kind(&plan.spec)?.build)(plan)
}

impl Sharded {
    /// The filter that a plan with `shards=` describes.
    pub fn from_plan(plan: &Plan) -> Result<Self> {
        let (one, count) = (sharded::one_of(plan), sharded::count_of(&plan.spec)?);
        let shards = (0..count).map(|_| build(&one)).collect::<Result<_>>()?;
        let base = Base::of_any_hash(plan.spec.clone(), plan.hashing, plan.promise);
        Ok(Sharded::of(shards, base, kind(&plan.spec)?.can))
    }
}

/// How many shards a spec asks for: one, if it says nothing of them.
#[doc(hidden)]
pub fn shards_of(spec: &Spec) -> Result<u32> {
    if is_sharded(spec) { sharded::count_of(spec) } else { Ok(1) }
}

/// The spec with so many shards.
#[doc(hidden)]
pub fn in_shards(spec: &Spec, count: u32) -> Spec {
    spec.clone().with(SHARDS, count)
}

/// The spec of each of its shards.
#[doc(hidden)]
pub fn shard_spec(spec: &Spec) -> Spec {
    spec.without(SHARDS)
}

/// The arrivals of a window in all, of which each of `count` shards keeps `share`.
#[doc(hidden)]
pub fn window_in_shards(share: u64, count: u32) -> u64 {
    sharded::items_of_share(share, count.into())
}

/// Whether the window of such a filter stands still unless somebody turns it.
#[doc(hidden)]
pub fn is_turned_by_caller(spec: &Spec) -> bool {
    let by_caller = kind(spec).ok().and_then(|kind| kind.can.window?.by_caller);
    by_caller.is_some_and(|(parameter, value)| spec.get(parameter) == Some(value))
}

/// One shard of what a plan describes, empty: all of them are alike.
#[doc(hidden)]
pub fn build_shard(plan: &Plan) -> Result<Box<dyn Filter>> {
    build(&sharded::one_of(plan))
}

/// The shards of a filter, in the order of [`crate::KeyHash::shard`]; a filter without shards is its own only one.
#[doc(hidden)]
pub fn split(filter: Box<dyn Filter>) -> Vec<Box<dyn Filter>> {
    let mut filter = without_audit(filter);
    let any: &mut dyn Any = filter.as_mut();
    match any.downcast_mut::<Sharded>() {
        Some(sharded) => sharded.take_shards(),
        None => vec![filter],
    }
}

/// The filter with this spec whose shards these are: what [`split`] took apart. Its bytes are those of a filter that was
/// never apart. Shards that do not belong together are an error.
#[doc(hidden)]
pub fn join(spec: &Spec, mut shards: Vec<Box<dyn Filter>>) -> Result<Box<dyn Filter>> {
    let count = shards_of(spec)? as usize;
    if shards.len() != count {
        return Err(Error::corrupt(format!("the filter has {count} shards, and {} are there", shards.len())));
    }
    let part = spec.without(SHARDS);
    let (hashing, promise) = (*shards[0].hashing(), shards[0].promise());
    let belongs =
        |shard: &dyn Filter| *shard.spec() == part && *shard.hashing() == hashing && shard.promise() == promise;
    if let Some(at) = shards.iter().position(|shard| !belongs(shard.as_ref())) {
        let problem = format!("shard {at} is '{}', which does not belong to '{spec}'", shards[at].spec());
        return Err(Error::corrupt(problem));
    }
    if !is_sharded(spec) {
        return Ok(shards.remove(0));
    }
    let base = Base::of_any_hash(spec.clone(), hashing, promise);
    Ok(Box::new(Sharded::of(shards, base, kind(spec)?.can)))
}

/// What a filter that keeps a window has to know and what it has to forget, for its audit; nothing for other filters, and for
/// windows that do not turn by arrivals or by their caller as a whole.
#[doc(hidden)]
pub fn horizon(filter: &mut dyn Filter) -> Option<Horizon> {
    let spec = filter.spec().clone();
    let takes = kind(&spec).ok()?.can.window?;
    let (by_caller, renews) = (takes.by_caller?, spec.get(takes.refresh?) != Some("no"));
    let windowed = filter.as_windowed()?;
    match spec.get(by_caller.0) == Some(by_caller.1) {
        true => Some(Horizon::of_turns(windowed.generations(), windowed.fading(), renews)),
        false if is_sharded(&spec) => None,
        false => Some(Horizon::of_arrivals(windowed.window(), windowed.generations(), windowed.fading(), renews)),
    }
}

pub(crate) fn is_sharded(spec: &Spec) -> bool {
    spec.get(SHARDS).is_some()
}

/// Ids of kinds as they were before a key's bits were chosen as they are now ([`KeyHash::places`](crate::KeyHash::places)). A
/// filter that was read as one of today's would miss its keys.
const RETIRED: [(&str, u16); 6] =
    [("bloom", 1), ("counting", 3), ("scalable", 32), ("spectral", 33), ("popularity", 40), ("stacked", 41)];

/// Set in the format's id of a filter that is split into shards.
const SHARDED_ID: u16 = 1 << 15;

/// The format's id for a filter with this spec.
pub(crate) fn id_of(spec: &Spec) -> u16 {
    let id = KINDS.iter().find(|kind| kind.name == spec.kind()).map_or(0, |kind| kind.id);
    if is_sharded(spec) { id | SHARDED_ID } else { id }
}

/// The kind of a spec, if the format's id belongs to it.
pub(crate) fn check_id(spec: &Spec, id: u16) -> Result<&'static Kind> {
    let kind = kind(spec)?;
    if RETIRED.contains(&(kind.name, id & !SHARDED_ID)) {
        let problem = format!("a '{}' filter of an earlier version, which chose other bits for a key", kind.name);
        return Err(Error::Corrupt { problem, remedy: "build it again from its keys" });
    }
    if id_of(spec) != id {
        return Err(Error::corrupt(format!("the filter's id {id} does not belong to '{}'", kind.name)));
    }
    Ok(kind)
}

/// Rebuilds the filter with this id.
pub(crate) fn restore(id: u16, from: Restore<'_, '_>) -> Result<Box<dyn Filter>> {
    let kind = check_id(from.spec, id)?;
    if is_sharded(from.spec) { Ok(Box::new(Sharded::restore(from, kind.can)?)) } else { (kind.restore)(from) }
}

/// The plain filter to send to others: a bit for every counter that is not zero.
///
/// This is what the summary cache does: counters at home, bits on the wire.
///
/// ```
/// use everbloom::internal::FilterExt;
/// use everbloom::filters::{Bloom, Counting};
///
/// let mut cached = Counting::with_rate(1000, 0.01)?;
/// cached.insert("page");
/// let summary = Bloom::try_from(&cached)?;
/// assert!(summary.contains("page"));
/// assert_eq!(summary.spec().to_string(), "bloom:num_bits=9595,num_hashes=7");
/// # use everbloom::Filter;
/// # Ok::<(), everbloom::Error>(())
/// ```
impl TryFrom<&Counting> for Bloom {
    type Error = Error;

    fn try_from(counting: &Counting) -> Result<Bloom> {
        let mut base = counting.base().clone();
        if counting.saturated() > 0 {
            // Counters that are stuck stand for keys that may be gone, and their bits go on being set.
            let seen = counting.status().estimated_items.map_or(u64::MAX, |items| items as u64);
            base.arrivals = base.arrivals.max(seen);
        }
        Ok(Bloom::from_bits(counting.parameters().size, counting.to_bits()?, base))
    }
}

/// A filter with counters as plain bits, in shards if it is: the same cells, so that it answers alike and keeps the same
/// promise. An error for what has no counters to reduce.
#[doc(hidden)]
pub fn to_bits(filter: &dyn Filter) -> Result<Box<dyn Filter>> {
    let filter = unaudited(filter);
    let any: &dyn Any = filter;
    if let Some(counting) = any.downcast_ref::<Counting>() {
        return Ok(Box::new(Bloom::try_from(counting)?));
    }
    let name = filter.spec().kind();
    if let Some(sharded) = any.downcast_ref::<Sharded>().filter(|_| name == counting::KIND.name) {
        let shards = sharded.shards().iter().map(|shard| to_bits(shard.as_ref())).collect::<Result<Vec<_>>>()?;
        let base = Base { spec: shards[0].spec().clone().with(SHARDS, shards.len()), ..filter.base().clone() };
        return Ok(Box::new(Sharded::of(shards, base, bloom::KIND.can)));
    }
    let remedy = match name == bloom::KIND.name {
        true => "it has bits already, so send the file itself".to_string(),
        false => format!("these can: {}; build a filter to send from the keys", counting::KIND.name),
    };
    Err(Error::unsupported(name, "be reduced to bits", remedy))
}
