//! A filter that is watched while it works.

use super::{AnyFilter, abilities};
use crate::audit::{Audit, AuditReport, Breach};
use crate::codec::{self, Decoder};
use crate::filter::{Combine, Filter};
use crate::key::{Key, KeyHash};
use crate::promise::{Error, Importance, Importances, Result, Size, Verdict};

/// A filter with an audit beside it: some keys are followed exactly, and tell how often it errs on the stream that it really
/// sees. It answers as the filter alone would.
///
/// ```
/// use everbloom::{AnyFilter, Audited, Goal};
///
/// let filter = Goal::new().filter("stable").memory("16KiB").fpr("1%").build()?;
/// // The seed should be random, so that nobody can make a stream which avoids the keys that are followed.
/// let mut seen = Audited::new(filter, "64KiB", 0x5eed)?;
/// (0..200_000u64).for_each(|key| {
///     seen.insert(key * key % 50_021);
/// });
/// let report = seen.report();
/// let fnr = report.measured_fnr.expect("there are repeats");
/// assert!(fnr.low > 0.05 && fnr.high < 1.0, "it has to forget most of 50,021 keys: {fnr:?}");
/// assert!(seen.breach().is_none(), "the promised rate of false positives is kept");
///
/// let copy = Audited::<AnyFilter>::from_bytes(&seen.to_bytes())?;
/// assert_eq!(copy.report(), report);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Audited<F> {
    filter: F,
    audit: Audit,
}

/// What can be audited: every filter, and [`AnyFilter`].
pub trait Auditable {
    #[doc(hidden)]
    fn as_filter(&self) -> &dyn Filter;

    #[doc(hidden)]
    fn as_filter_mut(&mut self) -> &mut dyn Filter;
}

impl<F: Filter> Auditable for F {
    fn as_filter(&self) -> &dyn Filter {
        self
    }

    fn as_filter_mut(&mut self) -> &mut dyn Filter {
        self
    }
}

impl Auditable for AnyFilter {
    fn as_filter(&self) -> &dyn Filter {
        self.as_ref()
    }

    fn as_filter_mut(&mut self) -> &mut dyn Filter {
        self.as_mut()
    }
}

impl<F: Auditable> Audited<F> {
    /// Audits a filter that has seen nothing yet, in so much memory; the seed chooses the keys that are followed.
    pub fn new(filter: F, memory: impl Into<Size>, seed: u64) -> Result<Self> {
        if filter.as_filter().arrivals() > 0 {
            return Err(Error::parameter(
                "arrivals",
                filter.as_filter().arrivals(),
                "0 when an audit begins: it cannot know what came before",
                "audit a filter from its first arrival on",
            ));
        }
        let audit = Audit::new(memory.into().named("audit").get()? / 8, seed)?;
        Ok(Audited { filter, audit })
    }

    /// Whether the key seems to have been here. Changes nothing.
    pub fn contains(&self, key: impl Key) -> bool {
        let filter = self.filter.as_filter();
        filter.contains_hash(key.hash_with(filter.hashing()))
    }

    /// Remembers the key; true if it seems new.
    pub fn insert(&mut self, key: impl Key) -> bool {
        let filter = self.filter.as_filter_mut();
        let hash = key.hash_with(filter.hashing());
        // Some filters count what is inserted, and what is observed only if it is new.
        let is_new = filter.insert_hash(hash);
        self.audit.observe(&[hash], Importances::default(), &[Verdict::from_seen(!is_new)]);
        is_new
    }

    /// Says whether the key has been here, then remembers it.
    pub fn observe(&mut self, key: impl Key, importance: Importance) -> Verdict {
        let filter = self.filter.as_filter_mut();
        let hash = key.hash_with(filter.hashing());
        let verdict = filter.observe_hash(hash, importance);
        let importances = match importance {
            Importance::FULL => Importances::default(),
            other => Importances::Each(&[other]),
        };
        self.audit.observe(&[hash], importances, &[verdict]);
        verdict
    }

    /// [`Audited::observe`] for many keys; `verdicts` is as long as `keys`. An error, and nothing observed, if there are
    /// fewer importances than keys.
    pub fn observe_batch<K: Key>(
        &mut self,
        keys: &[K],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        let hashing = *self.filter.as_filter().hashing();
        let keys = &keys[..keys.len().min(verdicts.len())];
        let hashes: Vec<KeyHash> = keys.iter().map(|key| key.hash_with(&hashing)).collect();
        self.observe_hashes(&hashes, importances, verdicts)
    }

    /// The same for keys that are hashed already.
    pub fn observe_hashes(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        self.filter.as_filter_mut().observe_hashes(hashes, importances, verdicts)?;
        self.audit.observe(hashes, importances, verdicts);
        Ok(())
    }

    /// How often it erred, with intervals.
    pub fn report(&self) -> AuditReport {
        self.audit.report()
    }

    /// What of the filter's promise is broken beyond chance, if anything is.
    pub fn breach(&self) -> Option<Breach> {
        self.audit.breach(&self.filter.as_filter().promise())
    }

    /// The filter inside.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Takes in the keys of another filter of the same spec and seed, and its audit, which must have the same seed, too. The
    /// report is then of all verdicts that either gave.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        // On a copy: nothing is to be changed if either refuses.
        let mut audit = self.audit.clone();
        audit.merge(&other.audit)?;
        abilities::merge(self.filter.as_filter_mut(), other.filter.as_filter(), Combine::Union)?;
        self.audit = audit;
        Ok(())
    }

    /// Filter and audit as bytes. [`AnyFilter::from_bytes`] reads them, too, and leaves the audit.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A Vec takes every write.
        let _ = codec::encode_annexed_to(self.filter.as_filter(), "", Some(&self.audit.to_bytes()), &mut bytes);
        bytes
    }
}

impl Audited<AnyFilter> {
    /// The filter and the audit in these bytes. They are trusted with nothing.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (filter, annex) = Decoder::new().read_annexed(&mut &*bytes, bytes.len() as u64)?;
        let annex = annex.ok_or(Error::Corrupt {
            problem: "the filter has no audit beside it".into(),
            remedy: "read it with AnyFilter::from_bytes",
        })?;
        Ok(Audited { filter: filter.into(), audit: Audit::from_bytes(&annex)? })
    }
}
