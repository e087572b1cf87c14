//! Two systems that ship filters to each other, simulated request by request with real bits.
//!
//! - [`caching`]: proxies that tell each other what they have cached.
//! - [`keyword`]: nodes that intersect lists of documents.
//! - [`trace`]: what is requested, recorded or generated.

pub mod caching;
pub mod keyword;
pub mod trace;
