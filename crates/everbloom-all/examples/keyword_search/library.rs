//! The documents: which of them contain which word. Every process can work that out, and a node keeps its own words' lists.

use everbloom::{Hashing, Key as _};

/// Documents that there are.
pub(crate) const DOCUMENTS: u32 = 200_000;

/// Words, and one in how many documents contains each.
pub(crate) const WORDS: [(&str, u32); 8] = [
    ("the", 2),
    ("data", 5),
    ("network", 12),
    ("stream", 25),
    ("filter", 60),
    ("sampling", 80),
    ("bloom", 200),
    ("reservoir", 400),
];

/// The documents that contain a word, in order; none for a word that is not known.
pub(crate) fn list(word: &str) -> Vec<u32> {
    let Some((_, one_in)) = WORDS.iter().find(|(known, _)| *known == word) else { return Vec::new() };
    let hashing = Hashing::seeded(2008);
    let contains = |document: &u32| (word, *document).hash_with(&hashing).low.is_multiple_of(u64::from(*one_in));
    (0..DOCUMENTS).filter(contains).collect()
}

/// The truth.
pub(crate) fn documents_with_all(words: &[&str]) -> Vec<u32> {
    let lists: Vec<Vec<u32>> = words.iter().map(|word| list(word)).collect();
    let in_all = |document: &u32| lists.iter().all(|list| list.binary_search(document).is_ok());
    (0..DOCUMENTS).filter(in_all).collect()
}

/// The node that has a word's list.
pub(crate) fn node_of(word: &str, nodes: usize) -> usize {
    WORDS.iter().position(|(known, _)| *known == word).unwrap_or(0) % nodes
}
