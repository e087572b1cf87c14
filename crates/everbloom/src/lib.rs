//! Membership filters that know what matters.
//!
//! Tell everbloom how much memory you have and what matters to you; it tells you which errors you
//! will see, keeps that promise on an endless stream, and spends the memory on the keys that matter.
//!
//! ```
//! use everbloom::{FilterExt, Goal};
//!
//! let plan = Goal::new().expected_items(10_000).target_fpr(0.01).plan("bloom")?;
//! println!("{} bits, errs in {} of queries", plan.memory_bits, plan.promise.predicted_fpr);
//!
//! let mut seen = plan.build()?;
//! assert!(seen.insert("alice"));
//! assert!(!seen.insert("alice"));
//! assert!(seen.contains("alice"));
//! # Ok::<(), everbloom::Error>(())
//! ```
//!
//! # Where to start
//!
//! - [`Goal`] → [`Plan`] → filter: say what you want and get any filter of the [registry](filters::KINDS).
//! - [`Stream`] and [`planner::Question`]: which filter misses least on a stream like yours, and how much it misses.
//! - [`filters`]: the types themselves, when you know which one you want.
//! - [`Filter`] and [`FilterExt`]: what every filter can do; [`UnseenExt`]: drop repeats from an iterator.
//! - [`codec`]: any filter to bytes and back.
//!
//! The crate does no I/O of its own, reads no clock and has no global state: what a filter does
//! depends on its seed and its arrivals alone.

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("everbloom needs a 64-bit little-endian target: filters are larger than 32 bits can address");

pub mod cells;
pub mod codec;
pub mod filter;
pub mod filters;
pub mod forecast;
pub mod format;
pub mod key;
pub mod promise;
pub mod querylog;
pub mod scheme;
#[allow(unsafe_code)]
pub mod simd;
pub mod stream;

pub use filter::{Combine, Filter, FilterExt, Merge, Multiplicity, Removal, UnseenExt, Windowed};
pub use key::{Hashing, Key, KeyHash, SecretKey};
pub use promise::{
    Error, Goal, Holds, Importance, ImportanceMix, ImportanceScale, Importances, Plan, Promise, Result, Spec, Status,
    Verdict,
};
pub use stream::{Forecast, Stream};

/// The README's example, held to what it says.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
