//! Accuracy: filters against the reference figures, against their promises, and against each other.
//!
//! Every tolerance is computed from the spread over seeds or from binomial counts. The real streams
//! are looked for in the folder that `EVERBLOOM_DATA` names; without it those tests say so and pass.
//! Long runs are ignored by default; `cargo xtask accuracy` makes them all.

mod comparison;
mod harness;
mod importance;
mod promise;
mod reference;
mod twins;
