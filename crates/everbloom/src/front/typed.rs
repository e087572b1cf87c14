//! The methods that every typed filter has, the same as [`AnyFilter`]'s, without an import of a trait.

use super::{AnyFilter, Info, abilities, any};
use crate::codec::{self, Decoder};
use crate::filter::{Combine, Filter, FilterExt, Plan, Unseen, UnseenExt};
use crate::filters::{self, for_every_filter};
use crate::key::{Hashing, Key};
use crate::promise::{Error, Goal, Importance, Importances, Promise, Result, Spec, Verdict};
use std::any::Any;
use std::io::{Read, Write};

/// The filter as one of type `F`, if it is.
fn downcast<F: Filter>(filter: Box<dyn Filter>) -> Result<F> {
    let spec = filter.spec().clone();
    let filter: Box<dyn Any> = filter;
    filter.downcast().map(|filter| *filter).map_err(|_| Error::Mismatch {
        what: "their type",
        left: std::any::type_name::<F>().rsplit("::").next().unwrap_or_default().to_string(),
        right: spec.to_string(),
        remedy: "take AnyFilter, which holds every kind",
    })
}

/// Builds what a plan describes, as the type that it is.
fn built<F: Filter>(plan: &Plan) -> Result<F> {
    downcast(plan.filter()?)
}

macro_rules! front_door {
    ($($module:ident::$type:ident: $kind:ident;)*) => {$(
        impl filters::$type {
            /// A filter for this goal: parameters that it leaves open are planned. A goal that names a filter of another
            /// type is an error.
            pub fn with_goal(goal: &Goal) -> Result<Self> {
                let spec = goal.filter.clone().unwrap_or_else(|| Spec::new(filters::$module::$kind.name));
                built(&filters::plan(&spec, goal)?)
            }

            /// Whether the key seems to have been here. Changes nothing.
            #[inline]
            pub fn contains(&self, key: impl Key) -> bool {
                FilterExt::contains(self, &key)
            }

            /// Remembers the key; true if it seems new.
            #[inline]
            pub fn insert(&mut self, key: impl Key) -> bool {
                FilterExt::insert(self, &key)
            }

            /// Remembers the key, or an error, and nothing changed, if the filter must grow and the memory is refused.
            pub fn try_insert(&mut self, key: impl Key) -> Result<bool> {
                let hash = key.hash_with(Filter::hashing(self));
                self.make_room(&[hash])?;
                Ok(self.insert_hash(hash))
            }

            /// The items that the filter has not seen yet; it remembers every one.
            pub fn unseen<I: IntoIterator<Item: Key>>(&mut self, items: I) -> Unseen<'_, I::IntoIter, Self> {
                UnseenExt::unseen(items.into_iter(), self)
            }

            /// Its kind and every parameter.
            pub fn spec(&self) -> &Spec {
                Filter::spec(self)
            }

            /// What it promised when it was planned.
            pub fn promise(&self) -> Promise {
                Filter::promise(self)
            }

            /// How it hashes keys.
            #[inline]
            pub fn hashing(&self) -> &Hashing {
                Filter::hashing(self)
            }

            /// Says whether the key has been here, then remembers it.
            #[inline]
            pub fn observe(&mut self, key: impl Key, importance: Importance) -> Verdict {
                FilterExt::observe(self, &key, importance)
            }

            /// Whether each of many keys seems to have been here; `found` is as long as `keys`.
            pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
                FilterExt::contains_batch(self, keys, found);
            }

            /// Remembers many keys.
            pub fn insert_batch<K: Key>(&mut self, keys: &[K]) {
                FilterExt::insert_batch(self, keys);
            }

            /// Says of each of many keys whether it has been here, and remembers it; `verdicts` is as long as `keys`. An
            /// error if there are fewer importances.
            pub fn observe_batch<K: Key>(
                &mut self,
                keys: &[K],
                importances: Importances<'_>,
                verdicts: &mut [Verdict],
            ) -> Result<()> {
                FilterExt::observe_batch(self, keys, importances, verdicts)
            }

            /// Takes one insertion of the key back, if this kind can; false if the key is not there.
            pub fn remove(&mut self, key: impl Key) -> Result<bool> {
                abilities::remove(self, &key)
            }

            /// How often the key came, or seems to have, if this kind counts.
            pub fn count(&self, key: impl Key) -> Result<u64> {
                abilities::count(self, &key)
            }

            /// Takes the keys of another filter of the same spec and seed into this one, if this kind can.
            pub fn merge(&mut self, other: &Self) -> Result<()> {
                abilities::merge(self, other, Combine::Union)
            }

            /// Keeps the keys that are in both, if this kind can.
            pub fn intersect(&mut self, other: &Self) -> Result<()> {
                abilities::merge(self, other, Combine::Intersection)
            }

            /// Begins a new generation, if this kind has any.
            pub fn advance(&mut self) -> Result<()> {
                abilities::advance(self)
            }

            /// Forgets everything, as if just built.
            pub fn clear(&mut self) {
                Filter::clear(self);
            }

            /// What it is, promises and looks like now.
            pub fn info(&self) -> Info {
                Info::of(self)
            }

            /// The filter as bytes, which are the same on every machine.
            pub fn to_bytes(&self) -> Vec<u8> {
                codec::encode(self)
            }

            /// The filter in these bytes; an error if they are damaged, or hold a filter of another type.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                downcast(Decoder::new().decode(bytes)?)
            }

            /// Writes the filter, without a copy of its cells.
            pub fn write_to(&self, out: &mut impl Write) -> Result<()> {
                Ok(codec::encode_to(self, out)?)
            }

            /// Reads a filter, which must be all that the reader has.
            pub fn read_from(source: &mut impl Read) -> Result<Self> {
                downcast(AnyFilter::read_from(source)?.into_dyn())
            }
        }

        impl<K: Key> Extend<K> for filters::$type {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                any::extend(self, keys);
            }
        }

        impl From<filters::$type> for AnyFilter {
            fn from(filter: filters::$type) -> Self {
                AnyFilter::from(Box::new(filter) as Box<dyn Filter>)
            }
        }

        impl TryFrom<AnyFilter> for filters::$type {
            type Error = Error;

            fn try_from(filter: AnyFilter) -> Result<Self> {
                downcast(filter.into_dyn())
            }
        }
    )*};
}
for_every_filter!(front_door);
