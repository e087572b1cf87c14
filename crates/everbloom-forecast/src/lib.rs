//! What errors to expect of a filter on a stream, which filter to take for it, and what a running filter gets wrong.
//!
//! A *promise* is a bound that a filter keeps whatever comes; a *forecast* is what to expect on a [`Stream`] that was described,
//! or learned from a sample. A [`Question`] finds the filter that errs or costs least there, among kinds that are handed to it.
//! [`Auditing`] measures how often a filter really errs while it works.
//!
//! ```
//! use everbloom::Goal;
//! use everbloom_forecast::{Question, Stream};
//!
//! let mut question = Question::new(Goal::new().memory("16KiB").fpr("1%"));
//! question.stream = Some(Stream::zipf_of(100_000, 1.0)?);
//! let best = question.answer()?.best;
//! assert!(best.forecast.predicted_fnr > 0.0, "{} forgets some keys", best.plan.spec);
//! # Ok::<(), everbloom::Error>(())
//! ```

// Pages of public types point into the rooms behind them, which `--document-private-items` shows.
#![allow(rustdoc::private_intra_doc_links)]

pub mod audit;
pub mod forecast;
mod price;
pub mod stream;

pub use audit::{AuditReport, Auditing, Audits, Breach, ByImportance, ByLag, LastPart, Measured};
pub use forecast::{Candidate, CostCurve, CostPoint, CostSoFar, ExpectedCost, Question, Recommendation};
pub use price::{Cost, Price};
pub use stream::{Forecast, Stream};
