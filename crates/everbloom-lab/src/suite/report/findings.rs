//! What a run found, in sentences with their numbers.
//!
//! A sentence stands on one verdict: it is said only if that verdict came out as the sentence has it, with the numbers of
//! this run. So a page never claims what its own tables do not show.

use super::Results;
use crate::suite::{Outcome, Verdict, short};

/// A sentence, and the verdict it stands on.
struct Finding {
    experiment: &'static str,
    verdict: &'static str,
    outcome: Outcome,
    /// The numbers of the verdict, by how their names begin; `{0}` in the sentence is the first.
    numbers: &'static [&'static str],
    sentence: &'static str,
}

/// How many are shown.
const MOST: usize = 10;

/// A finding that a run supports.
pub(super) struct Found {
    /// The sentence, numbers included.
    pub(super) sentence: String,
    /// The experiment that shows it.
    pub(super) experiment: &'static str,
}

/// The first ten findings that these results support.
pub(super) fn findings(results: &[Results]) -> Vec<Found> {
    FINDINGS.iter().filter_map(|finding| finding.of(results)).take(MOST).collect()
}

impl Finding {
    fn of(&self, results: &[Results]) -> Option<Found> {
        let result = results.iter().find(|result| result.experiment == self.experiment)?;
        let verdict = result.verdicts.iter().find(|verdict| verdict.id == self.verdict)?;
        let sentence = self.said_of(verdict)?;
        Some(Found { sentence, experiment: self.experiment })
    }

    fn said_of(&self, verdict: &Verdict) -> Option<String> {
        if verdict.outcome != self.outcome {
            return None;
        }
        let mut sentence = self.sentence.to_string();
        for (place, name) in self.numbers.iter().enumerate() {
            let number = verdict.numbers.iter().find(|number| number.what.starts_with(name))?;
            sentence = sentence.replace(&format!("{{{place}}}"), &short(number.value));
        }
        Some(sentence)
    }
}

const FINDINGS: &[Finding] = &[
    Finding {
        experiment: "frontier",
        verdict: "winner-zipf-1-0.01",
        outcome: Outcome::Holds,
        numbers: &["ranked, FNR", "next best"],
        sentence: "Of the filters that work for ever in fixed memory, ranked forgets least: with 1 bit per key and 1 % false \
                   positives it misses {0} % of the repeats of a Zipf stream, the next best {1} %.",
    },
    Finding {
        experiment: "frontier",
        verdict: "limit-0.01",
        outcome: Outcome::Holds,
        numbers: &["limit of this stream"],
        sentence: "There is a limit: in 1 bit per key, at 1 % false positives, no filter can miss fewer than {0} % of repeats \
                   that are spread evenly.",
    },
    Finding {
        experiment: "frontier-weighted",
        verdict: "winner-exponential-0.01",
        outcome: Outcome::Holds,
        numbers: &["ranked, weighted FNR", "next best"],
        sentence: "With importance, the order of ranked's lanes is enough: it forgets {0} % of the importance on the \
                   exponential set where the next best forgets {1} %.",
    },
    Finding {
        experiment: "thesis-equal-state",
        verdict: "IBF3-twice",
        outcome: Outcome::Holds,
        numbers: &["mean difference in wfp + wfn"],
        sentence: "Importance-aware filters lose where memory is counted: a stable filter with twice the cells has {0} points \
                   fewer weighted errors than IBF3.",
    },
    Finding {
        experiment: "thesis-equal-state",
        verdict: "state",
        outcome: Outcome::Holds,
        numbers: &["memory of IBF3 / memory of SBF"],
        sentence: "The totals of importance and their index cost IBF3 {0} times the memory of a stable filter with as many cells.",
    },
    Finding {
        experiment: "thesis-endless",
        verdict: "unbounded",
        outcome: Outcome::DoesNotHold,
        numbers: &["slope in the first fifth", "in the last fifth"],
        sentence: "Sums of importance wear off on an endless stream: IBF3's misses fall with importance by {0} points per unit \
                   at first, by {1} in the end.",
    },
    Finding {
        experiment: "thesis-tables",
        verdict: "wfn-SBF-65536-8",
        outcome: Outcome::Misprint,
        numbers: &["printed", "mended", "measured"],
        sentence: "One column of the thesis's Table 4 is shifted by a row: it prints {0} % for the stable filter, means {1} %, \
                   and {2} % is measured.",
    },
    Finding {
        experiment: "reservoir-table-5",
        verdict: "of-two-arrays",
        outcome: Outcome::DoesNotHold,
        numbers: &["only with 2", "only with 3 arrays"],
        sentence: "The reservoir filter's Table 5 was run with 2 arrays: {0} of its numbers come out with 2 only, {1} with the \
                   3 that the paper's rule gives.",
    },
    Finding {
        experiment: "reservoir-closed-forms",
        verdict: "algorithm-1",
        outcome: Outcome::DoesNotHold,
        numbers: &["Algorithm 1 word for word", "Table 2"],
        sentence: "The reservoir filter's algorithm as printed saturates: {0} % false positives where its table says {1} %.",
    },
    Finding {
        experiment: "reservoir-drift",
        verdict: "stable-fails",
        outcome: Outcome::DoesNotHold,
        numbers: &["after a sudden one", "late FNR of SBF without change"],
        sentence: "The stable filter does follow a changing stream: it misses {0} % after all keys were replaced at once, and \
                   {1} % without a change.",
    },
    Finding {
        experiment: "popularity-figure-2",
        verdict: "ours-settled",
        outcome: Outcome::Holds,
        numbers: &["times fewer, ours", "times fewer, the paper's programme"],
        sentence: "Hashes chosen by popularity, with the fill left free, send {0} times fewer false hits between caches that \
                   have settled; the paper's programme {1} times fewer.",
    },
    Finding {
        experiment: "popularity-figure-1",
        verdict: "free-fill",
        outcome: Outcome::Holds,
        numbers: &["times at exponent 1"],
        sentence: "Whole numbers of hashes cost little: with the fill left free they have {0} times the false positives of the \
                   real optimum.",
    },
    Finding {
        experiment: "lecture-counting",
        verdict: "resetting",
        outcome: Outcome::Holds,
        numbers: &["other keys lost"],
        sentence: "Removing half of the keys by resetting their bits loses {0} % of the other half; counters lose none.",
    },
    Finding {
        experiment: "thesis-reinsertion",
        verdict: "cells-fifo-threshold",
        outcome: Outcome::Holds,
        numbers: &["wfp + wfn with reinsertion", "with more cells"],
        sentence: "A cache of important keys, inserted again and again, is worth less than its memory in cells: {0} % weighted \
                   errors against {1} %.",
    },
    Finding {
        experiment: "lecture-sizing",
        verdict: "one-percent",
        outcome: Outcome::Holds,
        numbers: &["bits a key", "hashes"],
        sentence: "The lectures' rule is right: 1 % false positives take {0} bits a key and {1} hashes.",
    },
    Finding {
        experiment: "lecture-hashes",
        verdict: "optimum-8",
        outcome: Outcome::Holds,
        numbers: &["lowest at", "share of bits set there"],
        sentence: "With 8 bits a key, {0} hashes are best, and then a share of {1} of the bits is set.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn results(outcome: Outcome) -> Vec<Results> {
        let verdict = outcome.on("resetting", "handling deletions", "resetting loses others");
        vec![Results {
            experiment: "lecture-counting".into(),
            source: "[SDS]".into(),
            figure: String::new(),
            shows: String::new(),
            scale: "quick".into(),
            seeds: 1,
            verdicts: vec![verdict.number("other keys lost when half are deleted, %", 91.33)],
            charts: Vec::new(),
            tables: Vec::new(),
        }]
    }

    #[test]
    fn a_finding_is_said_with_this_runs_numbers_and_only_if_its_verdict_came_out_so() {
        let said = findings(&results(Outcome::Holds));
        assert_eq!(said.len(), 1);
        assert!(said[0].sentence.contains("loses 91.33 %"), "{}", said[0].sentence);
        assert!(findings(&results(Outcome::DoesNotHold)).is_empty());
        assert!(findings(&[]).is_empty());
    }

    #[test]
    fn every_finding_names_an_experiment_and_as_many_numbers_as_it_says() {
        for finding in FINDINGS {
            let known = crate::experiments::ALL.iter().any(|known| known.name == finding.experiment);
            assert!(known, "{} is no experiment", finding.experiment);
            let places = (0..9).filter(|place| finding.sentence.contains(&format!("{{{place}}}"))).count();
            assert_eq!(places, finding.numbers.len(), "{}", finding.sentence);
        }
    }
    /// The repository's own run supports ten, so that a sentence whose verdict was renamed is missed.
    #[test]
    fn the_run_in_the_repository_supports_every_finding() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/verdicts.json");
        let document: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("the verdicts")).expect("JSON");
        for finding in FINDINGS {
            let entries = document["verdicts"].as_array().expect("verdicts").iter();
            let entry = entries
                .filter(|entry| entry["experiment"] == finding.experiment)
                .find(|entry| entry["id"] == finding.verdict);
            let entry = entry.unwrap_or_else(|| panic!("{}: no verdict {}", finding.experiment, finding.verdict));
            let verdict: Verdict = serde_json::from_value(entry.clone()).expect("a verdict");
            let said = finding.said_of(&verdict);
            assert!(said.is_some(), "{}: {} came out otherwise", finding.experiment, finding.verdict);
        }
    }
}
