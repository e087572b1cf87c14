//! The laws that every kind obeys, and those of planning and forecasting over all of them.

#[path = "../common/mod.rs"]
#[allow(unreachable_pub, dead_code)] // shared by several test binaries, each of which uses its part
mod common;

mod costs;
mod forecasts;
mod own;
mod probes;
mod surfaces;

everbloom_laws::hold!(everbloom_all::KINDS, true);
