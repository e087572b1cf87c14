//! What a parameter of a filter's spec means, which values it takes, and what holds where a spec does not say.
//!
//! Each filter's file has one table of them, next to the code that reads and checks the values; the crate everbloom-laws
//! holds the tables to that code.

use std::fmt;

/// A parameter that a spec of some kind may give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name in specs.
    pub name: &'static str,
    /// What it means, in a few words.
    pub meaning: &'static str,
    /// The values that it takes.
    pub takes: Takes,
    /// What holds where a spec does not give it.
    pub unset: Unset,
    /// The parameter and the values of it without which it means nothing.
    pub needs: Option<(&'static str, &'static [&'static str])>,
}

/// The values that a parameter takes. Other parameters of the same spec may narrow them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Takes {
    /// Whole numbers, both ends included.
    Whole(u64, u64),
    /// Numbers, both ends included.
    Between(f64, f64),
    /// Numbers, without the ends.
    Within(f64, f64),
    /// Numbers from the first on, below the second.
    FromBelow(f64, f64),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// Whole numbers, a slash between those of one layer and the next.
    Layers(u64, u64),
    /// What `tune` printed: the id of a scheme.
    SchemeId,
}

/// What holds where a spec does not give a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Unset {
    /// The plan chooses, by what is wanted of the filter: memory, rate, number of keys, importances.
    Planned,
    /// This value.
    Value(&'static str),
    /// The first value where the plan chooses the sizes, the second where the spec gives them.
    BySizes(&'static str, &'static str),
    /// What other parameters come to, in words.
    Derived(&'static str),
    /// Nothing: the filter does without.
    Without,
}

impl Parameter {
    /// A parameter that the plan chooses if the spec does not.
    pub const fn planned(name: &'static str, meaning: &'static str, takes: Takes) -> Self {
        Parameter { name, meaning, takes, unset: Unset::Planned, needs: None }
    }

    /// Takes something else where the spec does not say.
    pub const fn or(self, unset: Unset) -> Self {
        Parameter { unset, ..self }
    }

    /// Allows it only together with one of these values of another.
    pub const fn with(self, parameter: &'static str, values: &'static [&'static str]) -> Self {
        Parameter { needs: Some((parameter, values)), ..self }
    }
}

/// The names of a table of choices, of which there are `N`.
pub const fn names<const N: usize, T>(choices: &[(&'static str, T)]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = choices[at].0;
        at += 1;
    }
    names
}

/// The values of a [`Parameter`](crate::kind::Parameter) that takes one of a table's choices.
#[macro_export]
macro_rules! one_of {
    ($choices:expr) => {
        $crate::kind::Takes::Choice({
            const NAMES: [&str; $choices.len()] = $crate::kind::names($choices);
            &NAMES
        })
    };
}
pub use crate::one_of;

/// As people read it: `1 to 64`, `above 0, below 1`, `yes or no`.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Whole(least, most) => write!(f, "{} to {}", short(*least), short(*most)),
            Takes::Between(least, most) => write!(f, "{least} to {most}"),
            Takes::Within(least, most) => write!(f, "above {least}, below {most}"),
            Takes::FromBelow(least, most) => write!(f, "{least:e} or above, below {most}"),
            Takes::Choice(names) => match names {
                [others @ .., last] if !others.is_empty() => write!(f, "{} or {last}", others.join(", ")),
                names => f.write_str(&names.join(", ")),
            },
            Takes::Layers(least, most) => write!(f, "{} to {}, one a layer: 8192/512", short(*least), short(*most)),
            Takes::SchemeId => f.write_str("the id of a scheme"),
        }
    }
}

/// As people read it.
impl fmt::Display for Unset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unset::Planned => f.write_str("planned"),
            Unset::Value(value) => f.write_str(value),
            Unset::BySizes(planned, given) => write!(f, "{planned}; {given} if sizes are given"),
            Unset::Derived(words) => f.write_str(words),
            Unset::Without => f.write_str("none"),
        }
    }
}

/// Large powers of two as such, and other numbers as they are.
fn short(number: u64) -> String {
    if number == u64::MAX {
        return "2^64 - 1".into();
    }
    if number > 1 << 20 && number.is_power_of_two() { format!("2^{}", number.ilog2()) } else { number.to_string() }
}
