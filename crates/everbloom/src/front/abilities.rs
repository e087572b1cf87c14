//! What only some kinds can do, asked of any filter: the answer, or an error that names the kinds which can.

use crate::filter::{Abilities, Combine, Filter, Kinds, Removal, alone};
use crate::key::Key;
use crate::promise::{Error, Result};

fn lacks(filter: &dyn Filter, operation: &'static str, can: fn(&Abilities) -> bool) -> Error {
    let able = Kinds::default().names(|kind| can(&kind.can));
    Error::unsupported(filter.spec().kind(), operation, format!("these can: {able}"))
}

pub(super) fn removal(filter: &mut dyn Filter) -> Result<&mut dyn Removal> {
    let lacking = match filter.annex() {
        Some(_) => Error::unsupported("audited", "remove", "build it without an audit".into()),
        None => lacks(filter, "remove", |can| can.remove),
    };
    filter.as_removal().ok_or(lacking)
}

pub(super) fn remove(filter: &mut dyn Filter, key: &impl Key) -> Result<bool> {
    let hash = key.hash_with(filter.hashing());
    Ok(removal(filter)?.remove_hash(hash))
}

pub(super) fn count(filter: &dyn Filter, key: &impl Key) -> Result<u64> {
    match filter.as_multiplicity() {
        Some(counts) => Ok(counts.count_hash(key.hash_with(filter.hashing()))),
        None => Err(lacks(filter, "count", |can| can.count)),
    }
}

pub(super) fn merge(filter: &mut dyn Filter, other: &dyn Filter, how: Combine) -> Result<()> {
    let is_audited = filter.annex().is_some();
    match filter.as_merge() {
        // What is not audited stays so.
        Some(audited) if is_audited => audited.merge(other, how),
        Some(filter) => filter.merge(alone(other), how),
        None => Err(lacks(filter, "be merged", |can| can.merge)),
    }
}

pub(super) fn advance(filter: &mut dyn Filter) -> Result<()> {
    match filter.as_windowed() {
        Some(filter) => {
            filter.advance();
            Ok(())
        }
        None => Err(lacks(filter, "be advanced", |can| can.advance)),
    }
}
