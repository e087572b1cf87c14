//! The audit: whether what it says of a filter is so.

mod behaviour;
mod coverage;
mod streams;
