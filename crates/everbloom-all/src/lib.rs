//! Every kind of filter that everbloom has, named in one place: for the command line, servers, bindings and the lab.
//!
//! ```
//! use everbloom::Goal;
//! use everbloom_all::KINDS;
//!
//! let mut seen = Goal::new().memory("64KiB").fpr("1%").filter("stable").build_among(KINDS)?;
//! assert!(seen.insert("alice") && !seen.insert("alice"));
//! assert!(KINDS.from_bytes(&seen.to_bytes())?.contains("alice"));
//! # Ok::<(), everbloom::Error>(())
//! ```

use everbloom::kind::{Kind, Kinds};

/// All kinds, and how to read the audits beside their filters.
pub const KINDS: Kinds = Kinds::new(LISTS).with_annexes(everbloom_forecast::audit::read_annex);

const LISTS: &[&[&Kind]] =
    &[everbloom::filters::KINDS, everbloom_papers::KINDS, everbloom_tune::KINDS, everbloom_compat::KINDS];
