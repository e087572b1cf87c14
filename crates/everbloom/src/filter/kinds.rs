//! Which kinds there are, for whoever names one: in a spec, or in a filter's bytes.

use super::sharded::{self, Sharded, is_sharded};
use super::{Filter, Kind, Parameter, Plan, ReadAnnex, Restore};
use crate::promise::{Error, Goal, Holds, Result, Spec, rate_text, refuse_murmur, size_text, suggestion};

/// Kinds of filters, by their names. Everything else that works on any filter asks the filter or its plan what kind it is.
#[derive(Debug, Clone, Copy)]
pub struct Kinds {
    lists: &'static [&'static [&'static Kind]],
    read_annex: Option<ReadAnnex>,
}

/// Set in the format's id of a filter that is split into shards.
const SHARDED_ID: u16 = 1 << 15;

impl Kinds {
    /// The kinds of these lists. Their names and ids must differ, to which the law `ids_and_names_are_unique` holds them; of two
    /// with one name the first is taken.
    pub const fn new(lists: &'static [&'static [&'static Kind]]) -> Self {
        Kinds { lists, read_annex: None }
    }

    /// Says how to read what filters have beside them: audits.
    pub const fn with_annexes(self, read: ReadAnnex) -> Self {
        Kinds { read_annex: Some(read), ..self }
    }

    /// Puts beside a filter what was saved so.
    pub(crate) fn annexed(self, filter: Box<dyn Filter>, bytes: &[u8]) -> Result<Box<dyn Filter>> {
        match self.read_annex {
            Some(read) => read(filter, bytes),
            None => Err(Error::unsupported(
                "audited",
                "be read by this program",
                "read it with kinds that have audits (in Rust, those of everbloom-all), or save it without its audit"
                    .into(),
            )),
        }
    }

    /// Every kind.
    pub fn iter(self) -> impl Iterator<Item = &'static Kind> + Clone {
        self.lists.iter().flat_map(|list| list.iter().copied())
    }

    /// The kind of this name.
    pub fn named(self, name: &str) -> Option<&'static Kind> {
        self.iter().find(|kind| kind.name == name)
    }

    /// The names of the kinds for which something holds, for people.
    pub fn names(self, holds: impl Fn(&Kind) -> bool) -> String {
        let names: Vec<_> = self.iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect();
        names.join(", ")
    }

    /// The kind that a spec names, or an error that lists them. Parameters that it does not have are an error, too.
    pub fn of(self, spec: &Spec) -> Result<&'static Kind> {
        let kind = self.named(spec.kind()).ok_or_else(|| {
            let all = ["auto"].into_iter().chain(self.iter().map(|kind| kind.name));
            spec.error(format!("there is no filter '{}'", spec.kind()), suggestion(spec.kind(), all, "take one of"))
        })?;
        let known = || kind.all_parameters().map(|parameter| parameter.name);
        match spec.parameters().find(|parameter| known().all(|name| name != *parameter)) {
            None => Ok(kind),
            Some(parameter) => {
                let problem = format!("{} has no parameter '{parameter}'", kind.name);
                Err(spec.error(problem, suggestion(parameter, known(), "it has")))
            }
        }
    }

    /// Fills in what a spec of a named kind leaves out, so that the goal is kept.
    pub fn complete(self, spec: &Spec, goal: &Goal) -> Result<Plan> {
        goal.checked()?;
        let kind = self.of(spec)?;
        if kind.can.own_hash.is_none() {
            refuse_murmur(spec.kind(), &goal.hashing)?;
        }
        if goal.transmitted_bytes.is_some() && (!kind.can.fit_bytes || is_sharded(spec)) {
            let instead = match self.names(|kind| kind.can.fit_bytes) {
                able if able.is_empty() => String::new(),
                able => format!("take {able}, in one piece, or "),
            };
            let remedy = format!("{instead}leave the bytes open and compress what comes out");
            return Err(spec.error("it is not planned by the bytes that are sent", remedy));
        }
        let planned = |goal: &Goal| sharded::plan_any(kind, spec, goal);
        // A spec that says everything is not held to a rate that nobody asked for.
        let unasked = goal.assumed_fpr.then(|| Goal { target_fpr: None, ..goal.clone() });
        let plan = match unasked.filter(|_| planned(&Goal::new()).is_ok()) {
            Some(goal) => planned(&goal),
            None => planned(goal),
        }?;
        if let Some(effort) = plan.effort()? {
            effort.checked()?;
        }
        within_memory(&plan, goal)?;
        keeping_rate(plan, goal)
    }

    /// The kind of a stored spec, or an error that says where there may be more.
    pub(crate) fn stored(self, spec: &Spec) -> Result<&'static Kind> {
        if self.named(spec.kind()).is_some() {
            return self.of(spec);
        }
        let remedy = "use a program that has this kind (in Rust, the crate everbloom-all has all of everbloom's)";
        Err(Error::unsupported(spec.kind(), "be read by this program", remedy.into()))
    }

    /// The kind of a stored spec, if the format's id belongs to it.
    pub fn checked(self, spec: &Spec, id: u16) -> Result<&'static Kind> {
        let kind = self.stored(spec)?;
        if kind.retired.contains(&(id & !SHARDED_ID)) {
            let problem = format!("a '{}' filter of an earlier version, which chose other bits for a key", kind.name);
            return Err(Error::Corrupt { problem, remedy: "build it again from its keys" });
        }
        if id_of(kind, spec) != id {
            return Err(Error::corrupt(format!("the filter's id {id} does not belong to '{}'", kind.name)));
        }
        Ok(kind)
    }
}

/// The format's id for a filter of this kind and spec.
pub(crate) fn id_of(kind: &Kind, spec: &Spec) -> u16 {
    if is_sharded(spec) { kind.id | SHARDED_ID } else { kind.id }
}

/// Rebuilds a filter.
pub(crate) fn restore(from: Restore<'_, '_>) -> Result<Box<dyn Filter>> {
    if is_sharded(from.spec) { Ok(Box::new(Sharded::restore(from)?)) } else { (from.kind.restore)(from) }
}

impl Kind {
    /// Every parameter that a spec of this kind may give: its own, and those that all kinds have.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static Parameter> + Clone + use<> {
        self.parameters.iter().chain([&sharded::SHARDS_PARAMETER])
    }
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
                if plan.kind.can.grow { " to begin with, and grows" } else { "" }
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
    let (target, predicted) = (rate_text(target), rate_text(plan.promise.fpr_bound));
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
    (promise.holds != Holds::Never && promise.fpr_bound > target).then(|| Error::Infeasible {
        wanted: format!("a rate of {}{}", rate_text(target), for_items(goal)),
        reason: format!("{} comes to {}", plan.spec, rate_text(promise.fpr_bound)),
        remedy: "accept that rate, or leave its parameters to the plan".into(),
    })
}

impl IntoIterator for Kinds {
    type Item = &'static Kind;
    type IntoIter = Box<dyn Iterator<Item = &'static Kind>>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
