//! The methods that a type of filter has without an import: those of every filter, and those that mean something for it.

use super::AnyFilter;
use crate::filter::{Filter, Kinds};
use crate::format::Header;
use crate::promise::{Error, Goal, Result, Spec};

/// A filter of one of these kinds, the first unless the goal names another.
pub fn build_typed(kinds: Kinds, goal: &Goal) -> Result<AnyFilter> {
    let first = kinds.iter().next().map_or("", |kind| kind.name);
    let spec = goal.filter.clone().unwrap_or_else(|| Spec::new(first));
    if kinds.named(spec.kind()).is_none() {
        return Err(another_type(kinds, &spec));
    }
    kinds.complete(&spec, goal)?.build()
}

/// The filter in these bytes, which is of one of these kinds, the first among them.
pub fn typed_from_bytes<F: Filter>(kinds: Kinds, bytes: &[u8]) -> Result<F> {
    let (header, _) = Header::read(&mut &*bytes, bytes.len() as u64)?;
    let spec = Spec::parse(&header.spec)?;
    match kinds.named(spec.kind()) {
        Some(_) => kinds.from_bytes(bytes)?.downcast(),
        None => Err(another_type(kinds, &spec)),
    }
}

fn another_type(kinds: Kinds, spec: &Spec) -> Error {
    Error::Mismatch {
        what: "their type",
        left: kinds.iter().next().map_or("", |kind| kind.name).to_string(),
        right: spec.to_string(),
        remedy: "take AnyFilter, which holds every kind",
    }
}

/// Gives a type of filter what users expect of one: `typed_filter!(Bloom: KIND; merge intersect)` names the type, its kinds
/// (the first is what it is planned as) and what it can do besides: `remove`, `count`, `merge`, `intersect`, `advance`.
#[macro_export]
macro_rules! typed_filter {
    ($type:ident: $first:path $(, $kind:path)* $(; $($ability:ident)+)?) => {
        impl $type {
            /// A filter for this goal: parameters that it leaves open are planned. A goal that names a filter of another
            /// type is an error.
            pub fn with_goal(goal: &$crate::Goal) -> $crate::Result<Self> {
                $crate::kind::build_typed(Self::kinds(), goal)?.downcast()
            }

            /// Whether the key seems to have been here. Changes nothing.
            #[inline]
            pub fn contains(&self, key: impl $crate::Key) -> bool {
                $crate::FilterExt::contains(self, key)
            }

            /// Remembers the key; true if it seems new.
            #[inline]
            pub fn insert(&mut self, key: impl $crate::Key) -> bool {
                $crate::FilterExt::insert(self, key)
            }

            /// The filter as bytes, which are the same on every machine.
            pub fn to_bytes(&self) -> Vec<u8> {
                $crate::codec::encode(self)
            }

            /// The filter in these bytes; an error if they are damaged, or hold a filter of another type.
            pub fn from_bytes(bytes: &[u8]) -> $crate::Result<Self> {
                $crate::kind::typed_from_bytes(Self::kinds(), bytes)
            }

            /// Writes the filter, without a copy of its cells.
            pub fn write_to(&self, out: &mut impl std::io::Write) -> $crate::Result<()> {
                Ok($crate::codec::encode_to(self, out)?)
            }

            /// Reads a filter, which must be all that the reader has.
            pub fn read_from(source: &mut impl std::io::Read) -> $crate::Result<Self> {
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes)?;
                Self::from_bytes(&bytes)
            }

            $($($crate::typed_filter!(@$ability);)+)?

            fn kinds() -> $crate::kind::Kinds {
                const OWN: &[&[&$crate::kind::Kind]] = &[&[&$first $(, &$kind)*]];
                $crate::kind::Kinds::new(OWN)
            }
        }

        impl<K: $crate::Key> Extend<K> for $type {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                $crate::FilterExt::insert_all(self, keys);
            }
        }

        impl From<$type> for $crate::AnyFilter {
            fn from(filter: $type) -> Self {
                $crate::AnyFilter::from(Box::new(filter) as Box<dyn $crate::Filter>)
            }
        }

        impl TryFrom<$crate::AnyFilter> for $type {
            type Error = $crate::Error;

            fn try_from(filter: $crate::AnyFilter) -> $crate::Result<Self> {
                filter.downcast()
            }
        }
    };
    (@remove) => {
        /// Takes one insertion of the key back; false, and nothing changed, if the key is not there.
        ///
        /// Only keys that were inserted may be removed: removing one that is merely a false positive takes cells away from
        /// other keys.
        pub fn remove(&mut self, key: impl $crate::Key) -> bool {
            let hash = key.hash_with($crate::Filter::hashing(self));
            $crate::kind::Removal::remove_hash(self, hash)
        }
    };
    (@count) => {
        /// How often the key came, or seems to have; at least so often where its counters are full.
        pub fn count(&self, key: impl $crate::Key) -> u64 {
            $crate::kind::Multiplicity::count_hash(self, key.hash_with($crate::Filter::hashing(self)))
        }
    };
    (@merge) => {
        /// Takes the keys of another filter of the same spec and seed into this one.
        pub fn merge(&mut self, other: &Self) -> $crate::Result<()> {
            $crate::kind::Merge::merge(self, other, $crate::kind::Combine::Union)
        }
    };
    (@intersect) => {
        /// Keeps the keys that are in both, and false positives: no more of them than the filter with fewer had.
        pub fn intersect(&mut self, other: &Self) -> $crate::Result<()> {
            $crate::kind::Merge::merge(self, other, $crate::kind::Combine::Intersection)
        }
    };
    (@advance) => {
        /// Begins a new generation: what is older than the window is forgotten, counts fade.
        pub fn advance(&mut self) {
            $crate::kind::Windowed::advance(self);
        }
    };
}
pub use typed_filter;
