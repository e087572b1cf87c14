//! A filter that is watched while it works.

use super::{Audit, AuditReport, Breach, Horizon};
use everbloom::kind::{Annex, Base, Body, Combine, Merge, Multiplicity, StateWriter, Windowed, alone, is_sharded};
use everbloom::{
    AnyFilter, Error, Filter, Importance, Importances, KeyHash, Promise, Result, Size, Status, TimeWindow, Verdict,
};
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
        let window = filter
            .as_windowed()
            .map(|windowed| (windowed.generations(), windowed.partial_generations(), windowed.window()));
        Audited { filter, audit, window }
    }

    fn note(&mut self, hash: KeyHash, importance: Importance, verdict: Verdict) {
        self.audit.observe(&[hash], Importances::All(importance), &[verdict]);
    }
}

/// Reads the audit that was saved beside a filter.
pub fn read_annex(filter: Box<dyn Filter>, bytes: &[u8]) -> Result<Box<dyn Filter>> {
    Ok(Box::new(Audited::restored(filter, Audit::from_bytes(bytes)?)))
}

impl Annex for Audit {
    fn to_bytes(&self) -> Vec<u8> {
        Audit::to_bytes(self)
    }

    fn encoded_bytes(&self) -> u64 {
        Audit::encoded_bytes(self)
    }

    fn shows_breach(&self, promise: &Promise) -> bool {
        self.breach(promise).is_some()
    }
}

/// Measures how often a filter really errs, while it works.
///
/// ```
/// use everbloom::Goal;
/// use everbloom_all::KINDS;
/// use everbloom_forecast::{Auditing, Audits};
///
/// let filter = Goal::new().filter("stable").memory("16KiB").fpr("1%").build_among(KINDS)?;
/// let mut seen = filter.audited("64KiB", 0x5eed)?;
/// (0..200_000u64).for_each(|key| {
///     seen.insert(key * key % 50_021);
/// });
/// let report = seen.audit_report().expect("it is audited");
/// let fnr = report.measured_fnr.expect("there are repeats");
/// assert!(fnr.low > 0.05 && fnr.high < 1.0, "it has to forget most of 50,021 keys: {fnr:?}");
/// assert!(seen.breach().is_none(), "the promised rate of false positives is kept");
///
/// let copy = KINDS.from_bytes(&seen.to_bytes())?;
/// assert_eq!(copy.audit_report(), Some(report));
/// # Ok::<(), everbloom::Error>(())
/// ```
pub trait Auditing: Sized {
    /// Audits what has seen nothing yet, in so much memory: some keys are followed exactly, and tell how often it errs on the
    /// stream that it really sees. It answers as before, and is saved and merged with its audit. The seed chooses the keys
    /// that are followed; it should be random, so that nobody can make a stream which avoids them. Repeats to a window are
    /// those within it.
    fn audited(self, memory: impl Into<Size>, seed: u64) -> Result<Self>;

    /// Puts an audit beside it that the caller made.
    fn with_audit(self, audit: Audit) -> Result<Self>;

    /// Takes its audit away, if it has one.
    fn without_audit(self) -> Self;
}

impl Auditing for AnyFilter {
    fn audited(mut self, memory: impl Into<Size>, seed: u64) -> Result<Self> {
        let audit = Audit::new(memory.into().named("audit").get()? / 8, seed)?;
        let horizon = horizon(&mut *self);
        self.with_audit(audit.with_horizon(horizon))
    }

    fn with_audit(self, audit: Audit) -> Result<Self> {
        let audited: Box<dyn Filter> = Box::new(Audited::new(self.into_dyn(), audit)?);
        Ok(audited.into())
    }

    fn without_audit(self) -> Self {
        let any: Box<dyn Any> = match self.audit() {
            Some(_) => self.into_dyn(),
            None => return self,
        };
        match any.downcast::<Audited>() {
            Ok(audited) => audited.filter.into(),
            Err(_) => unreachable!("only this type has an audit"),
        }
    }
}

impl Auditing for TimeWindow {
    fn audited(self, memory: impl Into<Size>, seed: u64) -> Result<Self> {
        self.try_map(|filter| filter.audited(memory, seed))
    }

    fn with_audit(self, audit: Audit) -> Result<Self> {
        self.try_map(|filter| filter.with_audit(audit))
    }

    fn without_audit(self) -> Self {
        self.map(AnyFilter::without_audit)
    }
}

/// What the audit beside a filter has found.
pub trait Audits {
    /// The audit beside it, if it has one.
    fn audit(&self) -> Option<&Audit>;

    /// How often the filter erred, with intervals, if it is audited.
    fn audit_report(&self) -> Option<AuditReport>;

    /// What of its promise the audit shows to be broken beyond chance, if it is audited and anything is.
    fn breach(&self) -> Option<Breach>;
}

impl Audits for dyn Filter {
    fn audit(&self) -> Option<&Audit> {
        let any: &dyn Any = self;
        any.downcast_ref::<Audited>().map(|audited| &audited.audit)
    }

    fn audit_report(&self) -> Option<AuditReport> {
        self.audit().map(Audit::report)
    }

    fn breach(&self) -> Option<Breach> {
        self.audit()?.breach(&self.promise())
    }
}

/// What a filter that keeps a window has to know and what it has to forget, for its audit; nothing for other filters, and for
/// windows that do not turn by arrivals or by their caller as a whole.
pub fn horizon(filter: &mut dyn Filter) -> Option<Horizon> {
    let (spec, takes) = (filter.spec().clone(), filter.kind().can.window?);
    let (by_caller, renews) = (takes.by_caller?, spec.get(takes.refresh?) != Some("no"));
    let windowed = filter.as_windowed()?;
    match spec.get(by_caller.0) == Some(by_caller.1) {
        true => Some(Horizon::of_turns(windowed.generations(), windowed.partial_generations(), renews)),
        false if is_sharded(&spec) => None,
        false => Some(Horizon::of_arrivals(
            windowed.window(),
            windowed.generations(),
            windowed.partial_generations(),
            renews,
        )),
    }
}

impl Filter for Audited {
    fn base(&self) -> &Base {
        self.filter.base()
    }

    fn base_mut(&mut self) -> &mut Base {
        self.filter.base_mut()
    }

    fn annex(&self) -> Option<&dyn Annex> {
        Some(&self.audit)
    }

    fn inner(&self) -> Option<&dyn Filter> {
        Some(&*self.filter)
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

    fn prefetch_distance(&self) -> usize {
        self.filter.prefetch_distance()
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
            Some(filter) => filter.merge(alone(other), how)?,
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

    fn partial_generations(&self) -> u32 {
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
