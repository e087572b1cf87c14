//! `build`, `query`, `info` and `merge`: what they answer, and what they refuse.

#[path = "../common/mod.rs"]
mod common;
mod compressed;
mod records;
mod refused;

use common::live::numbered;
use common::{Folder, assert_refused, error_of, json_of};

fn folder_with_filter() -> Folder {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 1000));
    folder.output_of(&["build", "keys.txt", "--filter", "bloom", "--fpr", "1%", "-o", "keys.ebf"]);
    folder
}

/// Whoever builds a file of a filter that forgets is told what is missing.
#[test]
fn a_filter_that_forgets_says_what_is_missing() {
    let folder = Folder::new();
    let keys: String = (0..5000).map(|at| format!("key {at}\n")).collect();
    folder.write("keys.txt", &keys);
    for kind in ["ranked", "stable"] {
        let build = ["build", "keys.txt", "-m", "1KiB", "--fpr", "1%", "--filter", kind, "-o", "keys.ebf"];
        let output = folder.run(&build);
        assert!(output.status.success(), "{}", error_of(&output));
        let found: u64 = String::from_utf8(folder.output_of(&["query", "keys.ebf", "keys.txt", "-c"]))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .expect("a number");
        let missing = format!(
            "note: {kind} forgets: {},{:03} of 5,000 keys are missing",
            (5000 - found) / 1000,
            (5000 - found) % 1000
        );
        assert!(error_of(&output).contains(&missing), "{missing}: {}", error_of(&output));
        assert_eq!(error_of(&folder.run(&[&build[..], &["-q"]].concat())), "");
        let expecting = folder.run(&[&build[..], &["--expect", "5000"]].concat());
        assert!(error_of(&expecting).contains("forgets, so that keys may be missing"), "{}", error_of(&expecting));
    }
    assert_eq!(error_of(&folder.run(&["build", "keys.txt", "-o", "keys.ebf"])), "");
}

#[test]
fn every_key_that_was_built_in_is_found() {
    let folder = folder_with_filter();
    assert_eq!(folder.output_of(&["query", "keys.ebf", "keys.txt"]), folder.read("keys.txt"));
    assert_eq!(folder.output_of(&["query", "keys.ebf", "keys.txt", "--count"]), b"1000\n");
}

#[test]
fn missing_keys_are_the_others_within_the_promised_rate() {
    let folder = folder_with_filter();
    let others = numbered("none", 10_000);
    folder.write("others.txt", &others);
    let missing = folder.output_of(&["query", "keys.ebf", "others.txt", "--missing", "--count"]);
    let missing: f64 = String::from_utf8_lossy(&missing).trim().parse().expect("a count");
    let sigma = (10_000.0f64 * 0.01 * 0.99).sqrt();
    assert!(10_000.0 - missing <= 100.0 + 4.0 * sigma, "{missing} of 10,000 called missing");
    let found = folder.run(&["query", "keys.ebf", "others.txt"]);
    assert_eq!(common::lines(&found.stdout).len(), 10_000 - missing as usize);
}

#[test]
fn nothing_found_is_exit_1() {
    let folder = folder_with_filter();
    let output = folder.run_with(&["query", "keys.ebf"], b"surely-not-there-91827\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert_eq!(error_of(&output), "");
}

#[test]
fn info_reports_the_plan_and_the_present() {
    let folder = folder_with_filter();
    let document = json_of(&folder.output_of(&["info", "keys.ebf", "--format", "json"]));
    assert!(document["filter"].as_str().expect("a spec").starts_with("bloom:num_bits="));
    assert!(document["predicted_fpr"].as_f64().expect("a rate") <= 0.01);
    assert_eq!(document["arrivals"], 1000);
    assert_eq!(document["promised_items"], 1000);
    let items = document["estimated_items"].as_f64().expect("a count");
    assert!((900.0..1100.0).contains(&items), "{items}");
    let file_bytes = folder.read("keys.ebf").len();
    assert_eq!(document["file_bytes"], file_bytes);
    let table = String::from_utf8(folder.output_of(&["info", "keys.ebf"])).expect("text");
    assert!(table.contains("predicted fpr") && table.contains("up to 1,000 keys"), "{table}");
}

#[test]
fn the_seed_makes_a_build_repeatable() {
    let folder = folder_with_filter();
    for (seed, name) in [("7", "a.ebf"), ("7", "b.ebf"), ("8", "c.ebf")] {
        folder.output_of(&["build", "keys.txt", "--seed", seed, "-o", name]);
    }
    assert_eq!(folder.read("a.ebf"), folder.read("b.ebf"));
    assert_ne!(folder.read("a.ebf"), folder.read("c.ebf"));
}

#[test]
fn expecting_keys_streams_them_and_gives_the_same_filter() {
    let folder = folder_with_filter();
    folder.output_of(&[
        "build",
        "keys.txt",
        "--filter",
        "bloom",
        "--fpr",
        "1%",
        "--expect",
        "1e3",
        "-o",
        "streamed.ebf",
    ]);
    assert_eq!(folder.read("streamed.ebf"), folder.read("keys.ebf"));
}

#[test]
fn repeated_keys_are_counted_once() {
    let folder = folder_with_filter();
    let twice = numbered("user", 1000).repeat(2);
    folder.output_with(&["build", "--filter", "bloom", "--fpr", "1%", "-o", "twice.ebf"], twice.as_bytes());
    // Sized for the distinct keys; that it was shown each of them twice is all that differs.
    let info = |file: &str| json_of(&folder.output_of(&["info", file, "--format", "json"]));
    let (twice, once) = (info("twice.ebf"), info("keys.ebf"));
    assert_eq!(twice["filter"], once["filter"]);
    assert_eq!((&twice["fill"], &twice["estimated_items"]), (&once["fill"], &once["estimated_items"]));
}

#[test]
fn merging_gives_the_keys_of_either_or_of_both() {
    let folder = Folder::new();
    let spec = "bloom:num_bits=65536,num_hashes=5";
    folder.write("a.txt", "one\ntwo\n");
    folder.write("b.txt", "two\nthree\n");
    folder.output_of(&["build", "a.txt", "--filter", spec, "-o", "a.ebf"]);
    folder.output_of(&["build", "b.txt", "--filter", spec, "-o", "b.ebf"]);
    folder.output_of(&["merge", "a.ebf", "b.ebf", "-o", "either.ebf"]);
    folder.output_of(&["merge", "a.ebf", "b.ebf", "--intersection", "-o", "both.ebf"]);
    let all = b"one\ntwo\nthree\nfour\n";
    assert_eq!(folder.output_with(&["query", "either.ebf"], all), b"one\ntwo\nthree\n");
    assert_eq!(folder.output_with(&["query", "both.ebf"], all), b"two\n");
}

#[test]
fn unlike_filters_are_not_merged_and_nothing_is_written() {
    let folder = folder_with_filter();
    let build = |name: &str, more: &[&str]| {
        let mut arguments = vec!["build", "keys.txt", "--fpr", "1%", "-o", name];
        arguments.extend_from_slice(more);
        folder.output_of(&arguments);
    };
    build("size.ebf", &["--filter", "bloom", "--expect", "5000"]);
    build("seed.ebf", &["--filter", "bloom", "--seed", "1"]);
    build("kind.ebf", &["--filter", "blocked"]);
    for other in ["size.ebf", "seed.ebf", "kind.ebf"] {
        assert_refused(&folder.run(&["merge", "keys.ebf", other, "-o", "x.ebf"]), "differ");
    }
    assert!(!folder.path("x.ebf").exists());
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = folder_with_filter();
    let whole = folder.read("keys.ebf");
    let mut newer = whole.clone();
    newer[8] = 99;
    let mut longer = whole.clone();
    longer.extend_from_slice(b"more");
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.ebf", b"", "empty"),
        ("short.ebf", &whole[..20], "ends within its header"),
        ("cut.ebf", &whole[..whole.len() - 7], "ends"),
        (
            "foreign.ebf",
            b"\x89PNG\r\n\x1a\n and then some more bytes, enough for a whole header of a filter file",
            "not an everbloom filter",
        ),
        ("newer.ebf", &newer, "version 99"),
        ("longer.ebf", &longer, "follow"),
    ];
    for (name, bytes, mention) in cases {
        folder.write(name, bytes);
        assert_refused(&folder.run(&["query", name, "keys.txt"]), mention);
        assert_refused(&folder.run(&["info", name]), name);
        assert_refused(&folder.run(&["merge", "keys.ebf", name, "-o", "x.ebf"]), name);
    }
    assert_refused(&folder.run(&["query", "nowhere.ebf", "keys.txt"]), "nowhere.ebf: no such file");
    assert_refused(&folder.run(&["query", ".", "keys.txt"]), "directory");
    assert!(!folder.path("x.ebf").exists());
}

#[test]
fn every_flipped_byte_is_refused_or_changes_nothing() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 5));
    folder.write("asked.txt", numbered("user", 5) + &numbered("none", 5));
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "-o", "keys.ebf"]);
    let whole = folder.read("keys.ebf");
    let answer = folder.output_of(&["query", "keys.ebf", "asked.txt"]);
    for index in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[index] ^= 0xff;
        folder.write("flipped.ebf", &flipped);
        let output = folder.run(&["query", "flipped.ebf", "asked.txt"]);
        if output.status.code() != Some(0) {
            assert_refused(&output, "flipped.ebf");
        } else {
            assert_eq!(output.stdout, answer, "byte {index} changed the answer");
        }
    }
}

#[test]
fn a_full_disk_leaves_the_old_file_whole() {
    let folder = folder_with_filter();
    let before = folder.read("keys.ebf");
    folder.write("many.txt", numbered("other", 50_000));
    assert_refused(&folder.run_on_full_disk(8, &["build", "many.txt", "-o", "keys.ebf"]), "keys.ebf");
    assert_eq!(folder.read("keys.ebf"), before);
    assert_eq!(folder.names(), ["keys.ebf", "keys.txt", "many.txt"], "nothing is left lying about");
    if std::path::Path::new("/dev/full").exists() {
        assert_refused(&folder.run(&["build", "many.txt", "-o", "/dev/full"]), "no space left");
    }
}

#[test]
fn an_input_is_never_overwritten() {
    let folder = folder_with_filter();
    let before = folder.read("keys.txt");
    assert_refused(&folder.run(&["build", "keys.txt", "-o", "keys.txt"]), "another file");
    assert_eq!(folder.read("keys.txt"), before);
}

#[test]
fn counts_go_on_past_255_and_full_counters_say_so() {
    let folder = Folder::new();
    let keys = "hot\n".repeat(1000) + &"warm\n".repeat(300) + &numbered("cold", 500);
    folder.write("keys.txt", keys);
    let asked = b"hot\nwarm\ncold-7\nnever\n";
    for spec in ["spectral", "spectral:shards=4"] {
        folder.output_of(&["build", "keys.txt", "--filter", spec, "--fpr", "0.01%", "-o", "counts.ebf"]);
        let counts = folder.output_with(&["query", "counts.ebf", "--count-each"], asked);
        assert_eq!(String::from_utf8_lossy(&counts), "1000\thot\n300\twarm\n1\tcold-7\n0\tnever\n", "{spec}");
    }
    let narrow = ["build", "keys.txt", "--filter", "spectral:cell_bits=8", "--fpr", "0.01%", "-o", "counts.ebf"];
    assert_eq!(folder.run(&narrow).status.code(), Some(3), "full counters break a promise");
    let output = folder.run_with(&["query", "counts.ebf", "--count-each"], asked);
    assert!(error_of(&output).contains("counters are full"), "{}", error_of(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "255+\thot\n255+\twarm\n1\tcold-7\n0\tnever\n");
}

#[test]
fn the_same_expectation_gives_filters_that_merge_whatever_their_keys() {
    let folder = Folder::new();
    for (name, count) in [("few", 10), ("many", 9_000)] {
        folder.write("keys.txt", numbered(name, count));
        let file = format!("{name}.ebf");
        folder.output_of(&["build", "keys.txt", "--expect", "10000", "--fpr", "0.1%", "-o", &file]);
    }
    folder.output_of(&["merge", "few.ebf", "many.ebf", "-o", "both.ebf"]);
    assert_eq!(folder.output_of(&["query", "both.ebf", "keys.txt", "--count"]), b"9000\n");
}

#[test]
fn merging_to_stdout_does_not_append_to_an_input() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    for name in ["one.ebf", "two.ebf"] {
        folder.output_of(&["build", "in", "--filter", "bloom:num_bits=512,num_hashes=3", "-o", name]);
    }
    let before = folder.read("one.ebf");
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "\"$0\" merge one.ebf two.ebf -o - >> one.ebf"]).arg(env!("CARGO_BIN_EXE_everbloom"));
    let output = command.current_dir(folder.path("")).output().expect("a shell");
    assert_eq!(output.status.code(), Some(2), "{}", error_of(&output));
    assert_eq!(folder.read("one.ebf"), before);
}
