//! The filters of the papers behind everbloom, as they are described there, with forecasts of their errors.
//!
//! They are here to be compared, and for those who know that they want them; `ranked` and `graceful`, in everbloom itself, forget
//! less in the same memory.
//!
//! | module | filter |
//! |---|---|
//! | [`stable`] | the stable Bloom filter |
//! | [`reservoir`] | the reservoir-sampling Bloom filter |
//! | [`ibf`] | importance-aware Bloom filters: two insertions, six deletions |
//! | [`aging`] | a Bloom filter of two generations |

// Pages of public types point into the rooms behind them, which `--document-private-items` shows.
#![allow(rustdoc::private_intra_doc_links)]

pub mod aging;
pub mod ibf;
pub mod reservoir;
pub mod stable;

pub use aging::Aging;
pub use ibf::Ibf;
pub use reservoir::Reservoir;
pub use stable::Stable;

use everbloom::kind::Kind;

/// The kinds of this crate.
pub const KINDS: &[&Kind] = &[
    &stable::KIND,
    &reservoir::KIND,
    &ibf::IBF,
    &ibf::IBF1,
    &ibf::IBF2,
    &ibf::IBF3,
    &ibf::IBF4,
    &ibf::IBF5,
    &ibf::IBF6,
    &aging::KIND,
];

/// These kinds as a set, for tests.
#[cfg(test)]
pub(crate) const TESTED: everbloom::kind::Kinds = {
    const LISTS: &[&[&Kind]] = &[KINDS];
    everbloom::kind::Kinds::new(LISTS)
};
