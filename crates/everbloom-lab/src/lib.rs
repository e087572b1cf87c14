//! The lab: streams to try filters on, the exact truth about them, and what the errors come to.
//!
//! - [`datasets`]: seeded streams, the same on every machine, and readers for real ones.
//! - [`oracle`]: which arrivals are truly new.
//! - [`metrics`]: every rate, defined once; [`curve`]: lines through rates by importance.
//! - [`evaluate`]: several filters over one stream in one pass, a [`Report`](evaluate::Report) each.
//! - [`spread`]: how far a measured rate may be off, by the choice of keys or by the seed.
//! - [`simulators`]: cooperative caches and keyword search, request by request.
//! - [`matched`]: filters tuned over a stated grid and compared at the same rate of false positives.
//! - [`charts`]: what is drawn, as SVG.
//! - [`suite`]: what an experiment is, and how experiments are run, kept, drawn and judged; [`experiments`]: all of them.
//!
//! Streams, simulators and experiments come with the feature `suite`, which is on unless it is turned off; charts have one of their own.
//!
//! ```
//! use everbloom::{Goal, Hashing};
//! use everbloom_lab::{datasets, evaluate};
//!
//! let request = datasets::Request { items: Some(20_000), distinct: Some(0.5), ..Default::default() };
//! let mut stream = datasets::open("uniform", &request)?;
//! let filter = Goal::new().memory_bits(1 << 17).fpr(0.01).plan("bloom")?.build()?;
//!
//! let outcome = evaluate::run(&mut stream, Hashing::seeded(0), vec![filter])?;
//! assert_eq!(outcome.items, 20_000);
//! assert_eq!(outcome.reports[0].measured_fnr, Some(0.0));
//! assert!(outcome.reports[0].measured_fpr.is_some_and(|rate| rate < 0.01));
//! # Ok::<(), everbloom::Error>(())
//! ```

#[cfg(feature = "charts")]
pub mod charts;
pub mod curve;
#[cfg(feature = "suite")]
pub mod datasets;
pub mod evaluate;
#[cfg(feature = "suite")]
pub mod experiments;
pub mod matched;
pub mod metrics;
pub mod oracle;
#[cfg(feature = "suite")]
pub mod simulators;
pub mod spread;
#[cfg(feature = "suite")]
pub mod suite;

/// A bad request, in the words of the library's own errors.
pub(crate) fn bad(name: &'static str, given: impl ToString, needed: &str, remedy: &str) -> everbloom::Error {
    everbloom::Error::Parameter {
        name,
        given: given.to_string(),
        needed: needed.to_string(),
        remedy: remedy.to_string(),
    }
}
