//! Distributed keyword search: nodes intersect lists of documents (\[Zhong et al. 2008\], section 5.3).
//!
//! Every word's list of documents lives on one of 4,096 nodes. A query's lists are intersected in order of their
//! lengths: the node with the shorter list A sends a filter of it, the node with the longer list B looks every document
//! of B up and sends back those that may be in A, four bytes each. That costs (eq. 27)
//!
//! ```text
//! m/8  +  4·|A∩B|  +  4·|B − A∩B|·P   bytes
//! ```
//!
//! with m the bits of the filter and P its rate of false positives. Here the filter is real and the last term counted.
//!
//! # Why there is something to gain
//!
//! A long document is in many lists, and above all in those of rare words, which are the short ones: the members of A
//! are long documents. The lists of common words have nearly every document: what B asks in vain is short ones. So
//! members are skewed and missing queries nearly flat, and a document's length, which both nodes know, tells its class.
//! [`library`] makes such lists; how skewed the documents' lengths are decides how much is gained.

pub mod library;
pub mod search;

pub use super::Scheme;
pub use library::{Law, Library, Recipe};
pub use search::{Outcome, Study};

/// The paper's number of nodes.
pub const NODES: u64 = 4096;

/// The paper's terms per query, on average.
pub const TERMS_PER_QUERY: f64 = 2.54;

/// Bytes that name a document.
pub const DOCUMENT_BYTES: u64 = 4;

#[cfg(test)]
mod tests;
