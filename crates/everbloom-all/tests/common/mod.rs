//! What tests over all kinds share with the laws.

use everbloom::kind::Kinds;
use everbloom::{AnyFilter, Goal};
use everbloom_laws::{Set, common};

pub use everbloom_laws::common::*;

/// All kinds.
pub struct All;

impl Set for All {
    const KINDS: Kinds = everbloom_all::KINDS;
    const CAN_EVERYTHING: bool = true;
}

pub fn bare_kinds() -> Vec<String> {
    common::bare_kinds::<All>()
}

pub fn is_seeded(spec: &str) -> bool {
    common::is_seeded::<All>(spec)
}

pub fn large(spec: &str, seed: u64) -> Option<AnyFilter> {
    common::large::<All>(spec, seed)
}

pub fn variants() -> Vec<String> {
    common::variants::<All>()
}

pub fn build(spec: &str, goal: &Goal) -> AnyFilter {
    common::build::<All>(spec, goal)
}

pub fn small(spec: &str, seed: u64) -> AnyFilter {
    common::small::<All>(spec, seed)
}
