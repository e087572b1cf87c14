//! Membership filters that know what matters.
//!
//! Tell everbloom how much memory you have and what matters to you; it tells you which errors you
//! will see, keeps that promise on an endless stream, and spends the memory on the keys that matter.
//!
//! ```
//! let mut seen = everbloom::Goal::new().memory("64MiB").fpr("1%").build()?;   // any filter, planned
//! assert!(seen.insert("alice"));
//! assert!(!seen.insert("alice"));
//!
//! let mut set = everbloom::Bloom::with_rate(1_000_000, 0.01)?;                // a known one
//! set.insert(42);
//! assert!(set.contains(42));
//! # Ok::<(), everbloom::Error>(())
//! ```
//!
//! # Where to start
//!
//! - [`Goal`] → [`AnyFilter`]: say what you want and hold whatever filter keeps it. [`Goal::plan`] shows the [`Plan`] and
//!   its [`Promise`] before anything is allocated.
//! - [`Bloom`], [`Blocked`], [`Counting`], [`Ranked`], … when you know which one you want; [`filters`] has a page on each.
//! - [`Goal::window`] and [`TimeWindow`]: the last so many arrivals, or the last while.
//! - [`Shared`] and [`AtomicBlocked`]: one filter, many threads. [`View`]: a filter in a mapped file.
//! - [`kind`]: a kind of filter of your own.
//!
//! A *promise* is a bound that is kept whatever comes; a *forecast* is what to expect on a stream that was described. Crates beside
//! this one: `everbloom-forecast` (which filter errs least on a stream like yours; how often a running one really errs),
//! `everbloom-tune` (fewer false hits, from a key list and a query log), `everbloom-papers` (the filters of the papers),
//! `everbloom-compat` (RedisBloom's), and `everbloom-all`, the set of all kinds.
//!
//! The crate does no I/O of its own, reads no clock and has no global state: what a filter does
//! depends on its seed and its arrivals alone.

// Pages of public types point into the rooms behind them, which `--document-private-items` shows.
#![allow(rustdoc::private_intra_doc_links)]

use everbloom_cells::{self as cells, key, simd};

pub mod codec;
mod filter;
pub mod filters;
mod format;
mod front;
pub mod kind;
pub mod planning;
mod promise;
pub mod sizing;

pub use codec::{Decoder, View};
pub use filter::{Filter, FilterExt, Info, Plan, Unseen};
pub use filters::{
    AgePartitioned, AtomicBlocked, Blocked, Bloom, Counting, Exact, Graceful, Ranked, Scalable, Spectral,
};
pub use front::{AnyFilter, Shared, TimeWindow};
pub use key::{Hashing, Key, KeyHash, SecretKey};
pub use promise::{
    Count, Error, Goal, Holds, Importance, ImportanceMix, ImportanceScale, Importances, IoError, Promise, Rate, Result,
    Size, Span, Spec, Status, Verdict, Window,
};

/// The README's example, held to what it says.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The book's tour of the API, held to what it says.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)]
#[doc = include_str!("../../../book/src/rust.md")]
struct Tour;
