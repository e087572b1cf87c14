//! A filter that is watched while it works.

use super::sharded::is_sharded;
use super::{Base, Body, Combine, Filter, Merge, Multiplicity, Windowed};
use crate::audit::{Audit, Horizon};
use crate::format::StateWriter;
use crate::key::KeyHash;
use crate::promise::{Error, Importance, Importances, Result, Status, Verdict};
use std::any::Any;

/// A filter with an audit beside it, which sees every arrival with the filter's verdict. It answers as the filter alone would,
/// and is saved, copied and merged with its audit.
///
/// Keys cannot be removed from it: the audit does not count how often a key was inserted.
#[derive(Debug, Clone)]
pub struct Audited {
    filter: Box<dyn Filter>,
    audit: Audit,
    /// Generations and arrivals of its window, if it has one.
    window: Option<(u32, u32, u64)>,
}

impl Audited {
    /// Audits a filter that has seen nothing yet: what came before, an audit cannot know.
    pub(crate) fn new(filter: Box<dyn Filter>, audit: Audit) -> Result<Self> {
        let refused = |given: String, needed: &str, remedy: &str| Error::parameter("audit", given, needed, remedy);
        if filter.audit().is_some() {
            return Err(refused("a second one".into(), "one for a filter", "leave it out"));
        }
        if filter.arrivals() > 0 {
            let given = format!("begun after {} arrivals", filter.arrivals());
            return Err(refused(given, "begun before anything comes", "audit a new filter, or one that was cleared"));
        }
        Ok(Self::restored(filter, audit))
    }

    /// A filter and the audit that was saved with it.
    pub(crate) fn restored(mut filter: Box<dyn Filter>, audit: Audit) -> Self {
        let window =
            filter.as_windowed().map(|windowed| (windowed.generations(), windowed.fading(), windowed.window()));
        Audited { filter, audit, window }
    }

    fn note(&mut self, hash: KeyHash, importance: Importance, verdict: Verdict) {
        self.audit.observe(&[hash], Importances::All(importance), &[verdict]);
    }
}

/// The filter without its audit, if it has one.
pub(crate) fn without_audit(filter: Box<dyn Filter>) -> Box<dyn Filter> {
    if filter.audit().is_none() {
        return filter;
    }
    let any: Box<dyn Any> = filter;
    match any.downcast::<Audited>() {
        Ok(audited) => audited.filter,
        Err(_) => unreachable!("only this type has an audit"),
    }
}

/// The same by reference.
pub fn unaudited(filter: &dyn Filter) -> &dyn Filter {
    let any: &dyn Any = filter;
    any.downcast_ref::<Audited>().map_or(filter, |audited| audited.filter.as_ref())
}

/// What a filter that keeps a window has to know and what it has to forget, for its audit; nothing for other filters, and for
/// windows that do not turn by arrivals or by their caller as a whole.
pub fn horizon(filter: &mut dyn Filter) -> Option<Horizon> {
    let (spec, takes) = (filter.spec().clone(), filter.kind().can.window?);
    let (by_caller, renews) = (takes.by_caller?, spec.get(takes.refresh?) != Some("no"));
    let windowed = filter.as_windowed()?;
    match spec.get(by_caller.0) == Some(by_caller.1) {
        true => Some(Horizon::of_turns(windowed.generations(), windowed.fading(), renews)),
        false if is_sharded(&spec) => None,
        false => Some(Horizon::of_arrivals(windowed.window(), windowed.generations(), windowed.fading(), renews)),
    }
}

impl Filter for Audited {
    fn base(&self) -> &Base {
        self.filter.base()
    }

    fn base_mut(&mut self) -> &mut Base {
        self.filter.base_mut()
    }

    fn audit(&self) -> Option<&Audit> {
        Some(&self.audit)
    }

    /// The filter's and the audit's.
    fn memory_bits(&self) -> u64 {
        self.filter.memory_bits().saturating_add(self.audit.memory_bits())
    }

    fn status(&self) -> Status {
        self.filter.status()
    }

    fn arrivals(&self) -> u64 {
        self.filter.arrivals()
    }

    fn refused(&self) -> u64 {
        self.filter.refused()
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.filter.contains_hash(hash)
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        self.filter.contains_hashes(hashes, found);
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        let verdict = self.filter.observe_hash(hash, importance);
        self.note(hash, importance, verdict);
        verdict
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        self.filter.observe_checked(hashes, importances, verdicts);
        self.audit.observe(hashes, importances, verdicts);
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        // Some filters count what is inserted, and what is observed only if it is new.
        let is_new = self.filter.insert_hash(hash);
        self.note(hash, Importance::FULL, Verdict::from_seen(!is_new));
        is_new
    }

    // `insert_hashes` is made of `insert_hash`, because a filter's own says nothing of its verdicts.

    fn keys_ahead(&self) -> usize {
        self.filter.keys_ahead()
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        self.filter.prefetch_hashes(hashes);
    }

    fn clear(&mut self) {
        self.filter.clear();
        self.audit.clear();
    }

    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        match self.filter.as_merge() {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        match self.window {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn as_multiplicity(&self) -> Option<&dyn Multiplicity> {
        self.filter.as_multiplicity()
    }

    fn exact_arrivals(&self) -> u64 {
        self.filter.exact_arrivals()
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        self.filter.make_room(hashes)
    }

    fn growth_bits(&self, hashes: &[KeyHash]) -> u64 {
        self.filter.growth_bits(hashes)
    }

    fn state(&self) -> Vec<u8> {
        self.filter.state()
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        self.filter.save(state)
    }

    fn body(&self) -> Body<'_> {
        self.filter.body()
    }
}

impl Merge for Audited {
    /// The audits become one, too, and tell of all verdicts that either gave. Nothing is changed if they follow other keys,
    /// or if the keys of both are to be kept, of which no audit knows anything.
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let remedy = "take copies without their audits";
        let mismatch = |left: &str, right: &str| Error::Mismatch {
            what: "their audits",
            left: left.into(),
            right: right.into(),
            remedy,
        };
        let audit = match (other.audit(), how) {
            (Some(theirs), Combine::Union) => {
                let mut audit = self.audit.clone();
                audit.merge(theirs).map_err(|_| mismatch("keys of one seed", "keys of another"))?;
                audit
            }
            (None, _) => return Err(mismatch("one", "none")),
            (Some(_), Combine::Intersection) => {
                return Err(mismatch("of one stream", "of another, whose common keys nobody followed"));
            }
        };
        match self.filter.as_merge() {
            Some(filter) => filter.merge(unaudited(other), how)?,
            None => return Err(mismatch("one", "one")),
        }
        self.audit = audit;
        Ok(())
    }
}

impl Windowed for Audited {
    fn generations(&self) -> u32 {
        self.window.map_or(0, |window| window.0)
    }

    fn fading(&self) -> u32 {
        self.window.map_or(0, |window| window.1)
    }

    fn window(&self) -> u64 {
        self.window.map_or(0, |window| window.2)
    }

    fn advance(&mut self) {
        self.advance_by(1);
    }

    fn advance_by(&mut self, generations: u64) {
        if let Some(windowed) = self.filter.as_windowed() {
            windowed.advance_by(generations);
        }
        self.audit.turn(generations);
    }
}
