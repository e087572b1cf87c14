//! `tune --keys --log`, and `build`, `query`, `info` and `merge` with the scheme it makes.

mod common;

use common::{Folder, assert_refused, json_of, lines};
use std::fmt::Write as _;

/// 2,000 members, and 30,000 queries that ask for the same few hundred others again and again.
fn sample() -> Folder {
    let folder = Folder::new();
    let numbered = |name: &str, numbers: &mut dyn Iterator<Item = u64>| {
        numbers.map(|number| format!("{name}-{number}\n")).collect::<String>()
    };
    folder.write("keys.txt", numbered("member", &mut (0..2000)));
    // Squares modulo a prime: every residue twice in a row of 701, some members in between.
    folder.write("log.txt", numbered("other", &mut (0..30_000).map(|time| time * time % 701)));
    folder.write("fresh.txt", numbered("fresh", &mut (0..30_000)));
    folder
}

const TUNE: [&str; 9] = ["tune", "--keys", "keys.txt", "--log", "log.txt", "--memory", "2KiB", "-o", "scheme.ebs"];

#[test]
fn a_log_that_repeats_itself_gives_a_scheme_that_helps() {
    let folder = sample();
    let document = json_of(&folder.output_of(&[&TUNE[..], &["--format", "json"]].concat()));
    let number = |field: &str| document[field].as_f64().expect("a number");
    assert_ne!(document["kind"], "standard");
    assert!(number("holdout_fpr") < 0.1 * number("standard_fpr"), "{document}");
    assert!(number("filter_bits") + number("table_bits") <= 16_384.0);
    assert!(number("retune_fpr") > number("holdout_fpr") && number("retune_fpr") < number("standard_fpr"));
    assert_eq!(document["holdout_queries"], 15_000);
    let classes = document["classes"].as_array().expect("classes");
    let shares: f64 = classes.iter().map(|class| class["query_share"].as_f64().expect("a share")).sum();
    assert!((shares - 1.0).abs() < 1e-6);
    let text = String::from_utf8(folder.output_of(&TUNE)).expect("text");
    assert!(text.contains("times fewer") && text.contains("tune again"), "{text}");
}

#[test]
fn a_filter_built_with_a_scheme_finds_every_member() {
    let folder = sample();
    folder.output_of(&TUNE);
    folder.output_of(&["build", "keys.txt", "--scheme", "scheme.ebs", "-o", "keys.ebf"]);
    let found = folder.output_of(&["query", "keys.ebf", "keys.txt", "--scheme", "scheme.ebs"]);
    assert_eq!(found, folder.read("keys.txt"));
    let wrong = folder.run(&["query", "keys.ebf", "log.txt", "--scheme", "scheme.ebs", "--count"]);
    let wrong: f64 = String::from_utf8_lossy(&wrong.stdout).trim().parse().expect("a count");
    assert!(wrong / 30_000.0 < 0.005, "{wrong} of 30,000");
    let info = json_of(&folder.output_of(&["info", "keys.ebf", "--scheme", "scheme.ebs", "--format", "json"]));
    assert!(info["memory_bits"].as_u64().expect("bits") <= 16_384, "{info}");
}

/// Several sets that share their classes: popularity wins.
fn shared_sets() -> Folder {
    let folder = Folder::new();
    for set in 0..3u64 {
        let mut keys = String::new();
        (0..200u64).for_each(|key| writeln!(keys, "object-{}", (key * 97 + set * 31) % 20_000 + 800).expect("written"));
        folder.write(&format!("set-{set}.txt"), keys);
    }
    let mut log = String::new();
    (0..40_000u64).for_each(|time| writeln!(log, "object-{}", time * time % 701).expect("written"));
    folder.write("log.txt", log);
    let sets = ["--keys", "set-0.txt", "set-1.txt", "--keys", "set-2.txt"];
    let rest =
        ["--log", "log.txt", "--memory", "1600b", "--sets-sharing", "1e6", "-o", "shared.ebs", "--format", "json"];
    let document = json_of(&folder.output_of(&[&["tune"][..], &sets, &rest].concat()));
    assert_eq!(document["kind"], "popularity", "{document}");
    assert_eq!(document["sets"], 3);
    folder
}

#[test]
fn another_scheme_is_refused_and_nothing_is_written() {
    let folder = shared_sets();
    folder.output_of(&["build", "set-0.txt", "--scheme", "shared.ebs", "-o", "0.ebf"]);
    folder.output_of(&["build", "set-1.txt", "--scheme", "shared.ebs", "--memory", "1536b", "-o", "1.ebf"]);
    folder.write("keys.txt", "a\nb\nc\n");
    folder.output_of(&[
        "tune",
        "--keys",
        "keys.txt",
        "--log",
        "log.txt",
        "--memory",
        "512b",
        "-o",
        "other.ebs",
        "--seed",
        "9",
    ]);
    let before = folder.names();
    for arguments in [
        &["query", "0.ebf", "set-0.txt"][..],
        &["query", "0.ebf", "set-0.txt", "--scheme", "other.ebs"],
        &["info", "0.ebf"],
        &["merge", "0.ebf", "1.ebf", "-o", "both.ebf"],
        &["merge", "0.ebf", "1.ebf", "-o", "both.ebf", "--scheme", "other.ebs"],
    ] {
        assert_refused(&folder.run(arguments), "scheme");
    }
    assert_eq!(folder.names(), before);
    assert_eq!(lines(&folder.output_of(&["query", "0.ebf", "set-0.txt", "--scheme", "shared.ebs"])).len(), 200);
    folder.output_of(&["build", "set-0.txt", "--scheme", "shared.ebs", "--memory", "1536b", "-o", "0.ebf"]);
    folder.output_of(&["merge", "0.ebf", "1.ebf", "-o", "both.ebf", "--scheme", "shared.ebs"]);
    assert_eq!(lines(&folder.output_of(&["query", "both.ebf", "set-1.txt", "--scheme", "shared.ebs"])).len(), 200);
}

#[test]
fn a_filter_without_a_scheme_is_not_asked_with_one() {
    let folder = shared_sets();
    folder.output_of(&["build", "set-0.txt", "-o", "plain.ebf"]);
    assert_refused(&folder.run(&["query", "plain.ebf", "set-0.txt", "--scheme", "shared.ebs"]), "without a scheme");
}

#[test]
fn damaged_schemes_are_refused_and_nothing_is_written() {
    let folder = sample();
    folder.output_of(&TUNE);
    let whole = folder.read("scheme.ebs");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    folder.write("cut.ebs", &whole[..whole.len() - 9]);
    folder.write("flipped.ebs", flipped);
    folder.write("empty.ebs", "");
    folder.write("text.ebs", "not a scheme");
    folder.output_of(&["build", "keys.txt", "-o", "filter.ebs"]);
    let before = folder.names();
    for scheme in ["cut.ebs", "flipped.ebs", "empty.ebs", "text.ebs", "filter.ebs", "nowhere.ebs", "."] {
        let run = folder.run(&["build", "keys.txt", "--scheme", scheme, "-o", "keys.ebf"]);
        assert_refused(&run, scheme);
    }
    assert_eq!(folder.names(), before);
    folder.write("none.txt", "");
    assert_refused(&folder.run(&["build", "none.txt", "--scheme", "scheme.ebs", "-o", "keys.ebf"]), "no keys");
    for option in [["--filter", "bloom"], ["--fpr", "1%"], ["--expect", "9"], ["--seed", "1"]] {
        let arguments = [&["build", "keys.txt", "--scheme", "scheme.ebs", "-o", "keys.ebf"][..], &option].concat();
        assert_refused(&folder.run(&arguments), option[0]);
    }
}

#[test]
fn calls_and_samples_without_sense_are_refused_and_nothing_is_written() {
    let folder = sample();
    folder.write("empty.txt", "");
    let before = folder.names();
    let with = |change: &[(usize, &'static str)], more: &[&'static str]| {
        let mut arguments = TUNE.to_vec();
        change.iter().for_each(|(place, value)| arguments[*place] = value);
        arguments.extend_from_slice(more);
        folder.run(&arguments)
    };
    assert_refused(&with(&[(2, "empty.txt")], &[]), "no keys");
    assert_refused(&with(&[(4, "empty.txt")], &[]), "0 queries");
    assert_refused(&with(&[(4, "keys.txt")], &[]), "not members");
    assert_refused(&with(&[(2, "nowhere.txt")], &[]), "nowhere.txt");
    assert_refused(&with(&[(6, "8b")], &[]), "--memory is 1B");
    assert_refused(&with(&[], &["--max-hashes", "0"]), "--max-hashes is");
    assert_refused(&with(&[], &["--max-hashes", "33"]), "--max-hashes is");
    assert_refused(&with(&[], &["--min-hashes", "9", "--max-hashes", "8"]), "--min-hashes is");
    assert_refused(&with(&[], &["--sets-sharing", "0"]), "sets-sharing");
    assert_refused(&with(&[(8, "log.txt")], &[]), "log.txt");
    assert_refused(&folder.run(&["tune"]), "--popularity");
    assert_refused(&folder.run(&TUNE[..5]), "--memory");
    assert_refused(&folder.run(&TUNE[..7]), "--output");
    assert_eq!(folder.names(), before);
}

#[test]
fn where_nothing_repeats_the_standard_filter_is_returned_and_built() {
    let folder = sample();
    let mut arguments = TUNE.to_vec();
    arguments[4] = "fresh.txt";
    let text = String::from_utf8(folder.output_of(&arguments)).expect("text");
    assert!(text.contains("winner          standard") && text.contains("standard filter is returned"), "{text}");
    folder.output_of(&["build", "keys.txt", "--scheme", "scheme.ebs", "-o", "keys.ebf"]);
    let info = String::from_utf8(folder.output_of(&["info", "keys.ebf"])).expect("text");
    assert!(info.contains("bloom:num_bits=16384"), "{info}");
    assert_eq!(lines(&folder.output_of(&["query", "keys.ebf", "keys.txt", "--scheme", "scheme.ebs"])).len(), 2000);
}

#[test]
fn lengths_tell_keys_apart_without_a_map() {
    let folder = Folder::new();
    let (mut keys, mut log) = (String::new(), String::new());
    (0..2000).for_each(|key| writeln!(keys, "a long member, number {key:08}").expect("written"));
    (0..20_000).for_each(|time| writeln!(log, "{time}").expect("written"));
    folder.write("keys.txt", keys);
    folder.write("log.txt", log);
    let document = json_of(&folder.output_of(&[&TUNE[..], &["--by-length", "--format", "json"]].concat()));
    assert_eq!(document["kind"], "popularity", "{document}");
    folder.output_of(&["build", "keys.txt", "--scheme", "scheme.ebs", "-o", "keys.ebf"]);
    assert_eq!(lines(&folder.output_of(&["query", "keys.ebf", "keys.txt", "--scheme", "scheme.ebs"])).len(), 2000);
}
