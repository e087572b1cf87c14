use super::*;

fn library(document_lengths: Law, direct: bool) -> Library {
    let recipe = Recipe {
        documents: 10_000,
        words: 1000,
        document_lengths,
        word_frequencies: Law::Zipf(1.0),
        direct,
        queries: 600,
    };
    Library::new(&recipe, 1).expect("a library")
}

#[test]
fn libraries_have_long_lists_of_common_words_and_queries_of_the_papers_length() {
    for law in [Law::Zipf(1.0), Law::Lognormal(1.5)] {
        let library = library(law, false);
        assert!(library.lists[0].len() > 20 * library.lists[500].len());
        assert!(library.lists.iter().all(|list| list.is_sorted_by(|one, other| one < other)));
        // Poisson, so the variance of the number of terms is that of its Poisson part; repeats take a little away.
        let terms = library.queries.iter().map(Vec::len).sum::<usize>() as f64 / 600.0;
        let sigma = ((TERMS_PER_QUERY - 1.0) / 600.0).sqrt();
        assert!((TERMS_PER_QUERY - 0.2 - 4.0 * sigma..TERMS_PER_QUERY + 4.0 * sigma).contains(&terms), "{terms}");
    }
}

#[test]
fn lists_have_as_many_documents_as_their_odds_say() {
    // A common word's list in the direct model: every document with the same odds 1 − e^−f.
    let library = library(Law::Zipf(1.0), true);
    let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
    for word in [0usize, 5, 19] {
        let frequency = 0.01 * 1000.0 / harmonic / (word as f64 + 1.0);
        let odds = 1.0 - (-frequency).exp();
        let sigma = (10_000.0 * odds * (1.0 - odds)).sqrt();
        let length = library.lists[word].len() as f64;
        assert!((length - 10_000.0 * odds).abs() < 4.0 * sigma, "word {word}: {length}, not {}", 10_000.0 * odds);
    }
}

#[test]
fn our_scheme_saves_bytes_at_given_sizes_and_at_the_best_ones() {
    let library = library(Law::Zipf(1.0), true);
    let study = Study::new(&library);
    let [standard, ours] = [Scheme::Standard, Scheme::Ours].map(|scheme| study.at(scheme, 6.0, 1).expect("a run"));
    assert!(ours.measured_fpr() < 0.5 * standard.measured_fpr(), "{}", ours.measured_fpr());
    assert!((ours.bytes() as f64) < 0.8 * standard.bytes() as f64);
    assert_eq!((ours.filter_bytes, ours.answer_bytes), (standard.filter_bytes, standard.answer_bytes));
    let [standard_best, ours_best] =
        [Scheme::Standard, Scheme::Ours].map(|scheme| study.at_own_best(scheme, 1).expect("a run"));
    assert!(standard_best.bytes() < standard.bytes() && ours_best.bytes() < ours.bytes());
    assert!((ours_best.bytes() as f64) < 0.97 * standard_best.bytes() as f64);
}

#[test]
fn no_document_of_an_answer_is_ever_lost() {
    for (law, direct) in [(Law::Zipf(1.0), true), (Law::Lognormal(1.5), false)] {
        let library = library(law, direct);
        let study = Study::new(&library);
        for scheme in Scheme::ALL {
            let outcome = study.at(scheme, 3.0, 2).expect("a run");
            assert_eq!(outcome.false_negatives, 0, "{}", scheme.name());
            assert_eq!(outcome.queries, 300);
        }
    }
}

#[test]
fn libraries_without_documents_are_refused() {
    let recipe = Recipe {
        documents: 0,
        words: 10,
        document_lengths: Law::Zipf(1.0),
        word_frequencies: Law::Zipf(1.0),
        direct: false,
        queries: 1,
    };
    assert!(Library::new(&recipe, 1).is_err());
    assert!(Library::new(&Recipe { documents: 10, words: 1, ..recipe }, 1).is_err());
}
