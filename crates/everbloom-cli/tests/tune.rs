//! `tune --popularity`: what it finds, and what it refuses.

mod common;

use common::{Folder, assert_refused, json_of, lines};

/// Members uniform, negative queries Zipf.
fn zipf(keys: u32, exponent: f64) -> String {
    (1..=keys).map(|rank| format!("key-{rank}\t1\t{}\n", f64::from(rank).powf(-exponent))).collect::<String>()
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

#[test]
fn the_smallest_filter_for_a_rate_is_smaller_than_a_standard_one() {
    let folder = Folder::new();
    folder.write("popularity.tsv", zipf(2000, 1.5));
    let ask = |more: &[&str]| {
        let call = ["tune", "--popularity", "popularity.tsv", "--format", "json"];
        json_of(&folder.output_of(&[&call[..], more].concat()))
    };
    let found = ask(&["--target-rate", "0.1%"]);
    let number = |field: &str| found[field].as_f64().expect("a number");
    assert!(number("predicted_fpr") <= 0.001 && number("predicted_fpr") > 0.00098, "{found}");
    assert!((14.3..14.5).contains(&number("standard_bits_per_key")), "{found}");
    assert!(number("bits_per_key") < 0.7 * number("standard_bits_per_key"), "{found}");
    let bits = number("bits_per_key").to_string();
    let again = ask(&["--bits-per-key", &bits]);
    assert_eq!(again["predicted_fpr"], found["predicted_fpr"]);
    let text =
        String::from_utf8(folder.output_of(&["tune", "--popularity", "popularity.tsv", "--target-rate", "0.1%"]));
    assert!(text.expect("text").contains("the smallest for 0.1 %; a standard filter takes"));
    assert_refused(&folder.run(&["tune", "--popularity", "popularity.tsv", "--target-rate", "2"]), "--target-rate");
    let both = ["tune", "--popularity", "popularity.tsv", "--target-rate", "1%", "--bits-per-key", "8"];
    assert_refused(&folder.run(&both), "--bits-per-key");
}

#[test]
fn the_papers_solvers_can_be_compared_with_ours() {
    let folder = Folder::new();
    folder.write("popularity.tsv", zipf(14, 1.5));
    let ask = |more: &[&str]| {
        let call =
            ["tune", "--popularity", "popularity.tsv", "--bits-per-key", "6", "--max-hashes", "6", "--format", "json"];
        json_of(&folder.output_of(&[&call[..], more].concat()))
    };
    let ours = ask(&[]);
    let rate = |document: &serde_json::Value, field: &str| document[field].as_f64().expect("a rate");
    assert_eq!(ours["solver"], "free-fill");
    for solver in ["programme", "approximation"] {
        let theirs = ask(&["--solver", solver]);
        assert_eq!((&theirs["solver"], &theirs["free_fill_fpr"]), (&solver.into(), &ours["predicted_fpr"]));
        assert!(rate(&theirs, "predicted_fpr") >= rate(&ours, "lower_bound"), "{theirs}");
        assert!(rate(&theirs, "predicted_fpr") >= rate(&ours, "predicted_fpr") * (1.0 - 1e-9), "{theirs}");
        assert!(rate(&theirs, "predicted_fpr") < rate(&theirs, "standard_fpr"), "{theirs}");
    }
    let smallest = |solver: &str| {
        let call =
            ["tune", "--popularity", "popularity.tsv", "--target-rate", "1%", "--max-hashes", "6", "--format", "json"];
        rate(&json_of(&folder.output_of(&[&call[..], &["--solver", solver]].concat())), "bits_per_key")
    };
    assert!(smallest("free-fill") <= 1.001 * smallest("programme").min(smallest("approximation")));
    folder.write("many.tsv", zipf(2000, 1.0));
    let many = |more: &[&str]| folder.run(&[&["tune", "--popularity", "many.tsv", "--solver"], more].concat());
    assert_refused(&many(&["approximation"]), "--solver free-fill");
    assert_refused(&many(&["programme", "--max-hashes", "32"]), "--max-hashes");
    assert_refused(&many(&["greedy"]), "must be one of free-fill, programme, approximation");
}

#[test]
fn a_log_gives_the_smallest_filter_for_a_rate() {
    let folder = Folder::new();
    let members: String = (0..2000).map(|key| format!("m{key}\n")).collect();
    let log: String = (0..40_000u64).map(|time| format!("n{}\n", time * time % 401 % (1 + time % 400))).collect();
    folder.write("members.txt", members);
    folder.write("log.txt", log);
    let ask = |more: &[&str]| {
        let call = ["tune", "--keys", "members.txt", "--log", "log.txt", "-o", "m.ebs", "--format", "json"];
        folder.run(&[&call[..], more].concat())
    };
    let found = json_of(&common::stdout_of(ask(&["--target-rate", "0.1%"]), &["tune"]));
    let number = |field: &str| found[field].as_f64().expect("a number");
    assert!(number("holdout_fpr") <= 0.001, "{found}");
    // A standard filter takes 14.4 bits a key.
    assert!(number("memory_bits") < 0.8 * 14.4 * 2000.0, "{found}");
    folder.output_of(&["build", "members.txt", "--scheme", "m.ebs", "-o", "m.ebf"]);
    assert_eq!(folder.output_of(&["query", "m.ebf", "members.txt", "--scheme", "m.ebs", "--count"]), b"2000\n");
    let theirs = ask(&["--memory", "2KiB", "--solver", "programme", "--max-hashes", "8"]);
    assert_eq!(theirs.status.code(), Some(0), "{}", common::error_of(&theirs));
    assert_refused(&ask(&[]), "--memory <SIZE>|--target-rate <RATE>");
    assert_refused(&ask(&["--memory", "2KiB", "--target-rate", "1%"]), "--target-rate");
}

#[test]
fn what_a_log_is_too_short_to_show_is_said() {
    let folder = Folder::new();
    folder.write("members.txt", (0..1000).map(|key| format!("m{key}\n")).collect::<String>());
    // A few keys are asked for most of the time.
    let asked = |time: u64| (time * time % 10_007 + 1) * (time * time % 10_007 + 1) % (1 + time % 200 * (time % 100));
    folder.write("log.txt", (0..20_000u64).map(|time| format!("n{}\n", asked(time))).collect::<String>());
    let notes = |more: &[&str]| {
        let call = ["tune", "--keys", "members.txt", "--log", "log.txt", "-o", "m.ebs"];
        let printed = String::from_utf8(folder.output_of(&[&call[..], more].concat())).expect("text");
        printed.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = notes(&["--target-rate", "1e-15"]);
    assert!(told.contains("cannot show a rate of 1e-13%") && told.contains("is to be expected"), "{told}");
    let told = notes(&["--target-rate", "1%"]);
    assert!(!told.contains("cannot show"), "{told}");
}
