//! Fewer false hits from a key list and a query log.
//!
//! [`querylog`] learns a [`Scheme`] from them: how many hashes each class of keys gets, or which keys are asked for in vain so
//! often that they are stored. [`Popularity`] and [`Stacked`] are the filters that follow one.

// Pages of public types point into the rooms behind them, which `--document-private-items` shows.
#![allow(rustdoc::private_intra_doc_links)]

mod chosen;
pub mod popularity;
pub mod querylog;
pub mod ribbon;
pub mod scheme;
pub mod stacked;

pub use popularity::Popularity;
pub use scheme::{Scheme, WithScheme};
pub use stacked::Stacked;

use everbloom::kind::Kind;

/// The kinds of this crate.
pub const KINDS: &[&Kind] = &[&popularity::KIND, &stacked::KIND];
