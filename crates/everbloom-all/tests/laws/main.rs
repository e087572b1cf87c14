//! The laws that every registered filter obeys.

#[path = "../common/mod.rs"]
#[allow(unreachable_pub, dead_code)] // shared by several test binaries, each of which uses its part
mod common;

mod abilities;
mod costs;
mod forecasts;
mod growth;
mod parameters;
mod planning;
mod probes;
mod rates;
mod refusals;
mod surfaces;
mod verdicts;
