//! Documents of many lengths, words of many frequencies, and the lists of documents that have a word.

use super::{NODES, TERMS_PER_QUERY};
use crate::bad;
use crate::datasets::zipf::Zipf;
use everbloom::{Hashing, Result};
use everbloom_cells::key::Generator;
use libm::{cos, exp, expm1, log, pow, sqrt};

/// How lengths of documents and of lists are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// The r-th is r^−exponent of the first.
    Zipf(f64),
    /// Logarithms are normal with this deviation.
    Lognormal(f64),
}

impl Law {
    /// In words.
    pub fn name(self) -> String {
        match self {
            Law::Zipf(exponent) => format!("Zipf {exponent}"),
            Law::Lognormal(deviation) => format!("lognormal {deviation}"),
        }
    }

    /// `count` sizes, the largest first, 1 in the mean.
    fn sizes(self, count: usize, generator: &mut Generator) -> Vec<f64> {
        let mut sizes: Vec<f64> = match self {
            Law::Zipf(exponent) => (1..=count).map(|rank| pow(rank as f64, -exponent)).collect(),
            Law::Lognormal(deviation) => (0..count).map(|_| exp(deviation * normal(generator))).collect(),
        };
        sizes.sort_by(|one, other| other.total_cmp(one));
        let mean = sizes.iter().sum::<f64>() / count as f64;
        sizes.iter().map(|size| size / mean).collect()
    }
}

/// A standard normal number (Box and Muller 1958).
fn normal(generator: &mut Generator) -> f64 {
    let (radius, angle) = (1.0 - generator.unit(), generator.unit());
    sqrt(-2.0 * log(radius)) * cos(std::f64::consts::TAU * angle)
}

/// Documents, words and queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// How many documents.
    pub documents: usize,
    /// How many words have a list.
    pub words: usize,
    /// How lengths of documents are spread.
    pub document_lengths: Law,
    /// How frequencies of words are spread.
    pub word_frequencies: Law,
    /// Whether common words are in documents of any length alike, the others in proportion to it, and every query has
    /// one of the others and then common ones: members Zipf-like and missing queries flat, which the paper's figures
    /// need. Otherwise words are drawn as texts have them.
    pub direct: bool,
    /// How many queries.
    pub queries: usize,
}

/// Lists of documents and queries for words.
pub struct Library {
    /// The length of every document, in words, relative to the mean.
    pub lengths: Vec<f64>,
    /// For every word the documents that have it, in order.
    pub lists: Vec<Vec<u32>>,
    /// The words of every query, each once.
    pub queries: Vec<Vec<u32>>,
}

/// The share of documents of mean length that have the average word.
const AVERAGE_FREQUENCY: f64 = 0.01;

/// One word in so many is a common one. Half of the words of queries are.
const ONE_COMMON_IN: usize = 50;

/// How skewed queries are over the common words, and over the others.
const QUERY_EXPONENT: f64 = 0.7;

impl Library {
    /// A library: a document of length l has a word of frequency f with probability 1 − e^(−f·l), so common words are in
    /// nearly every document and rare ones in long ones.
    pub fn new(recipe: &Recipe, seed: u64) -> Result<Self> {
        if recipe.documents == 0 || recipe.words < 2 || u32::try_from(recipe.documents).is_err() {
            let given = format!("{} documents and {} words", recipe.documents, recipe.words);
            return Err(bad("library", given, "some documents and two words at least", "ask for 20000 and 2000"));
        }
        let mut generator = Generator::seeded(seed);
        let lengths = recipe.document_lengths.sizes(recipe.documents, &mut generator);
        let frequencies = recipe.word_frequencies.sizes(recipe.words, &mut generator);
        let common = recipe.words.div_ceil(ONE_COMMON_IN);
        let lists = frequencies.iter().enumerate().map(|(word, frequency)| {
            let (frequency, flat) = (frequency * AVERAGE_FREQUENCY, recipe.direct && word < common);
            list(&lengths, |length| -expm1(-frequency * if flat { 1.0 } else { length }), &mut generator)
        });
        let lists = lists.collect();
        let words = Words {
            common: Zipf::new(common as u64, QUERY_EXPONENT)?,
            others: Zipf::new((recipe.words - common) as u64, QUERY_EXPONENT)?,
            num_common: common as u32,
            direct: recipe.direct,
        };
        let queries = (0..recipe.queries).map(|_| query(&words, &mut generator)).collect();
        Ok(Library { lengths, lists, queries })
    }

    /// The node that has a word's list.
    pub fn node(word: u32) -> u64 {
        Hashing::seeded(0).hash_u64(word.into()).index(NODES)
    }
}

/// The documents that have a word. Lengths and so odds fall, so the next one is found by a leap at the present odds,
/// and taken with the odds it truly has.
fn list(lengths: &[f64], odds: impl Fn(f64) -> f64, generator: &mut Generator) -> Vec<u32> {
    let (mut list, mut document) = (Vec::new(), 0);
    while document < lengths.len() {
        let most = odds(lengths[document]);
        if most < 1.0 {
            let leap = log(1.0 - generator.unit()) / libm::log1p(-most);
            document = document.saturating_add(leap as usize);
        }
        if document < lengths.len() && generator.unit() * most < odds(lengths[document]) {
            list.push(document as u32);
        }
        document = document.saturating_add(1);
    }
    list
}

/// How the words of queries are drawn.
struct Words {
    common: Zipf,
    others: Zipf,
    num_common: u32,
    direct: bool,
}

impl Words {
    fn draw(&self, is_first: bool, generator: &mut Generator) -> u32 {
        let common = if self.direct { !is_first } else { generator.below(2) == 0 };
        match common {
            true => self.common.rank(generator) as u32 - 1,
            false => self.num_common + self.others.rank(generator) as u32 - 1,
        }
    }
}

/// One word and as many more as a Poisson number says, repeats left out.
fn query(words: &Words, generator: &mut Generator) -> Vec<u32> {
    let mut more = exp(-(TERMS_PER_QUERY - 1.0));
    let mut query = Vec::new();
    let mut chance = generator.unit();
    let mut count = 1.0;
    loop {
        let word = words.draw(query.is_empty(), generator);
        if !query.contains(&word) {
            query.push(word);
        }
        if chance < more {
            return query;
        }
        chance -= more;
        more *= (TERMS_PER_QUERY - 1.0) / count;
        count += 1.0;
        // What rounding leaves over must not go on for ever.
        if count > 64.0 {
            return query;
        }
    }
}
