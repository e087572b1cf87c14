//! The rules of ARCHITECTURE.md, read off the parsed sources.
//!
//! Code that only tests see obeys none of them. What breaks a rule today is listed beside it, and the lists only shrink:
//! an entry that is no longer needed fails the test, too. `EVERBLOOM_BLESS=1 cargo test -p xtask --test architecture`
//! writes the picture of imports and the listing of the public surface anew.

mod files;
mod names;
mod paths;
mod rooms;
mod sources;
mod surface;

mod rules;
