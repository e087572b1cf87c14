//! What remembers the keys: a filter in fixed memory, or every hash.

use crate::failure::{Failure, Result};
use crate::record::Batch;
use everbloom::exact::ExactSet;
use everbloom::internal::codec;
use everbloom::{AnyFilter, Filter, Hashing, Plan, Verdict};
use std::io::{self, Read, Write};

/// Says of each key whether it has been here.
pub(super) enum Memory {
    Filter(AnyFilter),
    Exact(ExactSet, Hashing),
}

/// A memory that is not allocated yet.
pub(super) enum Planned {
    Filter(Plan),
    Exact(Hashing),
}

impl Planned {
    /// What [`Memory::spec`] will be.
    pub(super) fn spec(&self) -> String {
        match self {
            Planned::Filter(plan) => plan.spec.to_string(),
            Planned::Exact(_) => EXACT.to_string(),
        }
    }

    /// What else there is to know about it.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Planned::Filter(plan) => plan.notes.clone(),
            Planned::Exact(_) => Vec::new(),
        }
    }

    /// Allocates it.
    pub(super) fn build(self) -> Result<Memory> {
        match self {
            Planned::Filter(plan) => Ok(Memory::Filter(plan.build()?)),
            Planned::Exact(hashing) => Ok(Memory::Exact(ExactSet::new()?, hashing)),
        }
    }
}

/// The name of the exact memory where a filter's spec would stand.
pub(super) const EXACT: &str = "exact";

impl Memory {
    /// How keys are hashed for it.
    pub(super) fn hashing(&self) -> Hashing {
        match self {
            Memory::Filter(filter) => *filter.hashing(),
            Memory::Exact(_, hashing) => *hashing,
        }
    }

    /// The filter's full spec, or `exact`.
    pub(super) fn spec(&self) -> String {
        match self {
            Memory::Filter(filter) => filter.spec().to_string(),
            Memory::Exact(..) => EXACT.to_string(),
        }
    }

    pub(super) fn memory_bits(&self) -> u64 {
        match self {
            Memory::Filter(filter) => filter.memory_bits(),
            Memory::Exact(set, _) => set.memory_bits(),
        }
    }

    /// Judges the keys of a batch and remembers them; one verdict per key.
    pub(super) fn observe(&mut self, batch: &Batch, verdicts: &mut Vec<Verdict>) -> Result<()> {
        verdicts.resize(batch.hashes().len(), Verdict::Distinct);
        match self {
            Memory::Filter(filter) => filter.observe_hashes(batch.hashes(), batch.importances(), verdicts),
            Memory::Exact(set, _) => set.observe_hashes(batch.hashes(), verdicts)?,
        }
        Ok(())
    }

    /// Writes all of it.
    pub(super) fn encode_to(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Memory::Filter(filter) => codec::encode_to(filter.as_ref(), out),
            Memory::Exact(set, _) => set.bits().try_for_each(|bits| out.write_all(&bits.to_le_bytes())),
        }
    }

    /// Reads what [`Memory::encode_to`] wrote.
    pub(super) fn decode_from(source: &mut dyn Read, length: u64, exact: Option<Hashing>) -> Result<Self> {
        let Some(hashing) = exact else { return Ok(Memory::Filter(codec::Decoder::new().read(source, length)?)) };
        let mut set = ExactSet::new()?;
        let mut bits = [0; 8];
        for _ in 0..length / 8 {
            source.read_exact(&mut bits).map_err(|error| Failure::io("the state", &error))?;
            set.insert_bits(u64::from_le_bytes(bits))?;
        }
        Ok(Memory::Exact(set, hashing))
    }
}
