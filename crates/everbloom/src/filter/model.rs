//! What a kind's errors depend on, and how to try the kind small.

use crate::promise::{Error, Result, Spec};

/// Parameters and the values worth trying for them.
pub type Choices = &'static [(&'static str, &'static [&'static str])];

/// The rate of false positives and the share of zero cells of a filter with so many distinct keys inside.
pub type FillAt = Box<dyn Fn(f64) -> (f64, f64)>;

/// What a kind's errors depend on, and what a search for the best of its filters tries.
#[derive(Clone, Copy)]
pub struct Model {
    /// The parameters that grow with the filter, the leading one first: a smaller filter has less of each.
    pub sizes: &'static [&'static str],
    /// The leading size comes in multiples of this.
    pub unit: fn(&Spec) -> Result<u64>,
    /// Whether a smaller filter with this spec is not like the large one, so that a forecast takes its own size.
    pub full_size: fn(&Spec) -> bool,
    /// Whether a part of a stream's keys does not tell what a filter with this spec does on all of it.
    pub whole_stream: fn(&Spec) -> bool,
    /// Parameters with a value that makes the kind another filter, to be tried and shown beside the usual one.
    pub forms: &'static [(&'static str, &'static str)],
    /// The parameter that says how many cache lines a key touches; one if there is none.
    pub accesses: Option<&'static str>,
    /// What a plan leaves open and a search should try: all combinations.
    pub choices: Choices,
    /// What a search should try where arrivals have importances, if it differs.
    pub choices_by_importance: Option<Choices>,
    /// What a search by cost tries besides, where the usual rules fix it; only of kinds that take long to simulate.
    pub choices_by_cost: Choices,
    /// What an arrival costs with this full spec, where a parameter can make it too much.
    pub effort: fn(&Spec) -> Result<Option<Effort>>,
    /// Of a full spec that never forgets and errs by how full it is: how full that is with so many keys.
    pub fill_at: fn(&Spec) -> Result<Option<FillAt>>,
}

/// The most cells or words that an arrival may change, on average: so many take up to 0.1 ms.
pub const MOST_CHANGED: u32 = 1024;

/// What an arrival costs.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The parameter that decides it.
    pub parameter: &'static str,
    /// Its value.
    pub given: u64,
    /// The cells or words that are changed, on average.
    pub changed: f64,
    /// Whether more of the parameter costs more, or less.
    pub grows: bool,
}

impl Effort {
    /// Refuses what would crawl, and says how far one can go.
    pub fn checked(self) -> Result<()> {
        let over = self.changed / f64::from(MOST_CHANGED);
        if over <= 1.0 {
            return Ok(());
        }
        let needed = match self.grows {
            true => format!("at most {}", (self.given as f64 / over) as u64),
            false => format!("at least {}", (self.given as f64 * over).ceil() as u64),
        };
        let remedy = format!(
            "every arrival would change {:.0} cells on average, and beyond {MOST_CHANGED} a filter is too slow to use",
            self.changed
        );
        Err(Error::parameter(self.parameter, self.given, needed, remedy))
    }
}

impl Model {
    /// A kind that can be tried small and has no formula.
    pub const fn sized(sizes: &'static [&'static str]) -> Self {
        Model {
            sizes,
            unit: |_| Ok(1),
            full_size: |_| false,
            whole_stream: |_| false,
            forms: &[],
            accesses: None,
            choices: &[],
            choices_by_importance: None,
            choices_by_cost: &[],
            effort: |_| Ok(None),
            fill_at: |_| Ok(None),
        }
    }

    /// The spec as it is, and in every other form that it leaves open.
    pub fn forms(&self, spec: &Spec) -> Vec<Spec> {
        let open = self.forms.iter().filter(|(parameter, _)| spec.get(parameter).is_none());
        std::iter::once(spec.clone())
            .chain(open.map(|(parameter, value)| spec.clone().with(parameter, value)))
            .collect()
    }

    /// Which form a full spec has: the usual one, or the number of another.
    pub fn form_of(&self, spec: &Spec) -> Option<usize> {
        self.forms.iter().position(|(parameter, value)| spec.get(parameter) == Some(value))
    }

    /// Cache lines that a key of a filter with this full spec touches.
    pub fn accesses(&self, spec: &Spec) -> u64 {
        self.accesses.and_then(|parameter| spec.number(parameter).ok().flatten()).unwrap_or(1)
    }

    /// The spec with every combination of the choices it leaves open.
    pub fn variants(&self, spec: &Spec, with_importance: bool) -> Vec<Spec> {
        let choices = match self.choices_by_importance {
            Some(choices) if with_importance => choices,
            _ => self.choices,
        };
        combined(vec![spec.clone()], choices)
    }

    /// The spec with every combination of the choices it leaves open, and of what else a search by cost tries.
    pub fn variants_by_cost(&self, spec: &Spec, with_importance: bool) -> Vec<Spec> {
        combined(self.variants(spec, with_importance), self.choices_by_cost)
    }

    /// A spec with about 1/`divisor` of the size, and its true part of the size; a divisor below 1 makes it larger.
    /// `None` if the kind does not scale.
    pub fn scaled(&self, spec: &Spec, divisor: f64) -> Result<Option<(Spec, f64)>> {
        let Some(leading) = self.sizes.first() else { return Ok(None) };
        let (whole, unit) = (spec.required::<u64>(leading)? as f64, (self.unit)(spec)?.max(1) as f64);
        let part = ((whole / divisor / unit).round().max(1.0) * unit).min((whole / divisor.min(1.0)).max(unit));
        let share = part / whole;
        let mut scaled = Spec::new(spec.kind());
        for parameter in spec.parameters() {
            let value = spec.get(parameter).unwrap_or_default();
            scaled = match (self.sizes.contains(&parameter), value.parse::<u64>()) {
                (true, Ok(number)) if number > 0 => {
                    scaled.with(parameter, (number as f64 * share).round().max(1.0) as u64)
                }
                _ => scaled.with(parameter, value),
            };
        }
        Ok(Some((scaled, share)))
    }
}

/// The specs with every combination of the choices that they leave open.
fn combined(mut specs: Vec<Spec>, choices: Choices) -> Vec<Spec> {
    for (parameter, values) in choices {
        let with = |spec: &Spec| -> Vec<Spec> {
            if spec.get(parameter).is_some() {
                return vec![spec.clone()];
            }
            values.iter().map(|value| spec.clone().with(parameter, value)).collect()
        };
        specs = specs.iter().flat_map(with).collect();
    }
    specs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_crawl_is_refused_with_the_nearest_that_does_not() {
        let effort = |given: u64, changed: f64, grows: bool| Effort { parameter: "number", given, changed, grows };
        assert!(effort(1024, 1024.0, true).checked().is_ok());
        let many = effort(4096, 4096.0, true).checked().expect_err("too many").to_string();
        assert!(many.contains("number is 4096, but must be at most 1024"), "{many}");
        let few = effort(10, 2048.0, false).checked().expect_err("too few").to_string();
        assert!(few.contains("number is 10, but must be at least 20"), "{few}");
    }
}
