//! `tune --popularity`: what it finds, and what it refuses.

mod common;

use common::{Folder, assert_refused, json_of, lines};
use std::fmt::Write as _;

/// Members uniform, negative queries Zipf.
fn zipf(keys: u32, exponent: f64) -> String {
    (1..=keys).fold(String::new(), |mut text, rank| {
        writeln!(text, "key-{rank}\t1\t{}", f64::from(rank).powf(-exponent)).expect("a string takes every write");
        text
    })
}

#[test]
fn known_popularities_give_the_reference_figures() {
    let folder = Folder::new();
    folder.write("popularity.tsv", zipf(10_000, 1.5));
    let ask = ["tune", "--popularity", "popularity.tsv", "--bits-per-key", "8", "--max-hashes", "10"];
    let document = json_of(&folder.output_of(&[&ask[..], &["--limit", "100", "--format", "json"]].concat()));
    for (field, expected) in [
        ("standard_fpr", 2.17e-2),
        ("optimal_real_fpr", 3.70e-4),
        ("rounding_fpr", 1.19e-3),
        ("fixed_fill_fpr", 1.28e-3),
        ("predicted_fpr", 4.95e-4),
    ] {
        let found = document[field].as_f64().expect(field);
        assert!((found / expected - 1.0).abs() < 0.02, "{field}: {found}, not {expected}");
    }
    let number = |field: &str| document[field].as_f64().expect("a number");
    assert!(number("lower_bound") <= number("predicted_fpr"));
    assert!(number("lower_bound") > 0.998 * number("predicted_fpr"));
    assert!(number("predicted_fpr") < number("limited_fpr") && number("limited_fpr") < number("standard_fpr"));
    assert!(number("seconds") >= 0.0);
}

#[test]
fn every_key_gets_its_number_of_hashes() {
    let folder = Folder::new();
    folder.write("popularity.tsv", "hot\t0.01\t0.6\r\ncold\t0.99\t0.3\nnever a member\t0\t0.1\nnever asked\t0.5\t0");
    let ask = ["tune", "--popularity", "popularity.tsv", "--max-hashes", "20", "--per-key", "hashes.tsv"];
    let text = String::from_utf8(folder.output_of(&ask)).expect("text");
    assert!(text.contains("predicted fpr") && text.contains("fewer"), "{text}");
    let written = String::from_utf8(folder.read("hashes.tsv")).expect("text");
    let rows: Vec<(&str, u8)> = written
        .lines()
        .map(|line| line.split_once('\t').expect("a tab"))
        .map(|(key, hashes)| (key, hashes.parse().expect("a number")))
        .collect();
    assert_eq!(rows.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["hot", "cold", "never a member", "never asked"]);
    assert!(rows[0].1 > rows[1].1, "{written}");
    assert_eq!((rows[2].1, rows[3].1), (20, 1), "{written}");
    assert_eq!(lines(&folder.read("hashes.tsv")).len(), 4);
}

#[test]
fn popularities_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    for (content, mention) in [
        ("", "no keys"),
        ("a\t0.5\n", "line 1: 2 fields"),
        ("a\t1\t1\nb\t1\t1\t1\n", "line 2: 4 fields"),
        ("a\t1\t1\n\n", "line 2: 1 fields"),
        ("a\t-1\t1\n", "line 1: '-1'"),
        ("a\t1\tNaN\n", "line 1: 'NaN'"),
        ("a\t1\tinf\n", "'inf'"),
        ("a\tmany\t1\n", "'many'"),
        ("a\t0\t1\nb\t0\t1\n", "member shares is 0"),
        ("a\t1\t0\nb\t1\t0\n", "miss shares is 0"),
        ("a\t1\t1\nb\t1\t1\nb\t1\t1\na\t1\t1\n", "lines 2 and 3"),
    ] {
        folder.write("bad.tsv", content);
        let output = folder.run(&["tune", "--popularity", "bad.tsv", "--per-key", "hashes.tsv"]);
        assert_refused(&output, mention);
        assert!(!folder.names().contains(&"hashes.tsv".to_string()), "half written after {content:?}");
    }
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    folder.write("good.tsv", "a\t1\t1\nb\t1\t2\n");
    let ask = |more: &[&str]| folder.run(&[&["tune", "--popularity", "good.tsv"], more].concat());
    assert_refused(&ask(&["--max-hashes", "0"]), "--max-hashes is");
    assert_refused(&ask(&["--max-hashes", "33"]), "--max-hashes is");
    assert_refused(&ask(&["--min-hashes", "5", "--max-hashes", "4"]), "--min-hashes is");
    assert_refused(&ask(&["--bits-per-key", "0"]), "bits_per_key");
    assert_refused(&ask(&["--bits-per-key", "NaN"]), "bits_per_key");
    assert_refused(&ask(&["--limit", "0"]), "--limit");
    assert_refused(&ask(&["--per-key", "good.tsv"]), "also read");
    assert_refused(&folder.run(&["tune", "--popularity", "none.tsv"]), "none.tsv");
    assert_refused(&folder.run(&["tune"]), "--popularity");
    assert_eq!(folder.read("good.tsv"), b"a\t1\t1\nb\t1\t2\n");
}
