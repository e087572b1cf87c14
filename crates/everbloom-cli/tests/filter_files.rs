//! `build`, `query`, `info` and `merge`: what they answer, and what they refuse.

mod common;

use common::{Folder, assert_refused, error_of, json_of};
use std::fmt::Write as _;
use std::io::Write as _;

fn numbered(prefix: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, index| {
        writeln!(text, "{prefix}-{index}").expect("a string takes every write");
        text
    })
}

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
fn impossible_wishes_are_refused_in_one_line() {
    let folder = folder_with_filter();
    let refused = |arguments: &[&str], mention: &str| {
        let mut all = vec!["build", "keys.txt", "-o", "x.ebf"];
        all.extend_from_slice(arguments);
        assert_refused(&folder.run(&all), mention);
        assert!(!folder.path("x.ebf").exists());
    };
    for rate in ["0", "1", "NaN", "-0.1", "100%", "often"] {
        refused(&[&format!("--fpr={rate}")], "--fpr");
    }
    refused(&["--memory", "0"], "at least one bit");
    refused(&["--memory", "64XB"], "64MiB");
    refused(&["--expect", "0"], "at least 1");
    refused(&["--memory", "8b"], "memory");
    refused(&["--memory", "1000TiB", "--filter", "bloom:num_bits=9000000000000000,num_hashes=3"], "memory");
    refused(&["--filter", "blom"], "blom");
    refused(&["--filter", "bloom:num_bit=3"], "num_bit");
    refused(&["--key", "0"], "counted from 1");
    refused(&["--key", "name"], "--header");
    refused(&["--no-such-option"], "--no-such-option");
    assert_refused(&folder.run(&["build", "nowhere.txt", "-o", "x.ebf"]), "nowhere.txt");
    assert_refused(&folder.run_with(&["build", "-o", "x.ebf"], b""), "no keys");
    assert_refused(&folder.run(&["qery"]), "query");
    assert_refused(&folder.run(&[]), "build");
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
fn keys_are_bytes() {
    let folder = Folder::new();
    let keys = b"\xfe\x00\xff \x80\nplain\n\xc3\x28\r\nlast without newline";
    folder.write("keys.bin", keys);
    folder.output_of(&["build", "keys.bin", "-o", "keys.ebf"]);
    assert_eq!(folder.output_of(&["query", "keys.ebf", "keys.bin"]), [&keys[..], b"\n"].concat());
    assert_eq!(
        folder.run_with(&["query", "keys.ebf"], b"\xc3\x28\n").status.code(),
        Some(1),
        "the return is part of the key"
    );
}

#[test]
fn records_can_end_with_nul() {
    let folder = Folder::new();
    folder.output_with(&["build", "--null", "-o", "keys.ebf"], b"a\nb\0c\0");
    assert_eq!(folder.output_with(&["query", "--null", "keys.ebf"], b"c\0d\0a\nb\0"), b"c\0a\nb\0");
}

#[test]
fn a_line_longer_than_any_buffer_is_one_key() {
    let folder = Folder::new();
    let long = vec![b'x'; 40 << 20];
    let mut keys = b"short\n".to_vec();
    keys.extend_from_slice(&long);
    keys.extend_from_slice(b"\nafter\n");
    folder.write("keys.txt", &keys);
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    assert!(folder.output_of(&["query", "keys.ebf", "keys.txt"]) == keys);
    assert_eq!(folder.run_with(&["query", "keys.ebf"], &long[1..]).status.code(), Some(1));
}

#[test]
fn packed_inputs_are_read_as_they_are_whatever_their_name() {
    let folder = folder_with_filter();
    let keys = folder.read("keys.txt");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&keys).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    folder.write("keys.gz", &gzip);
    folder.write("keys.renamed", zstd::encode_all(&keys[..], 3).expect("zstd"));
    for name in ["keys.gz", "keys.renamed"] {
        assert_eq!(folder.output_of(&["query", "keys.ebf", name]), keys);
    }
    assert_eq!(folder.output_with(&["query", "keys.ebf"], &gzip), keys);
}

#[test]
fn what_was_read_of_a_broken_packed_file_is_answered_then_exit_2() {
    let folder = folder_with_filter();
    let keys = folder.read("keys.txt");
    let packed = zstd::encode_all(&keys[..], 3).expect("zstd");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&keys).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    folder.write("cut.zst", &packed[..packed.len() - 5]);
    folder.write("cut.gz", &gzip[..gzip.len() - 9]);
    for name in ["cut.zst", "cut.gz"] {
        let output = folder.run(&["query", "keys.ebf", name]);
        assert_refused(&output, name);
        assert!(keys.starts_with(&output.stdout), "{name}");
    }
    assert!(!folder.run(&["query", "keys.ebf", "cut.gz"]).stdout.is_empty());
}

#[test]
fn keys_come_from_fields_csv_headers_and_json() {
    let folder = Folder::new();
    folder.output_with(&["build", "-o", "keys.ebf"], b"ann\nbob, jr\n7\n");
    let ask = |arguments: &[&str], input: &[u8]| {
        let mut all = vec!["query", "keys.ebf"];
        all.extend_from_slice(arguments);
        folder.output_with(&all, input)
    };
    assert_eq!(ask(&["--key", "2"], b"1\tann\t3\n2\tcat\t3\n"), b"1\tann\t3\n");
    assert_eq!(ask(&["--key", "2", "--delimiter", ";"], b"1;cat\r\n2;ann\r\n"), b"2;ann\r\n");
    assert_eq!(ask(&["--key", "1", "--csv"], b"\"bob, jr\",1\nbob,2\n"), b"\"bob, jr\",1\n");
    assert_eq!(ask(&["--key", "name", "--header", "--csv"], b"id,name\n1,cat\n2,ann\n"), b"id,name\n2,ann\n");
    assert_eq!(
        ask(&["--json", "--key", "/u/n"], b"{\"u\":{\"n\":7}}\n{\"u\":{\"n\":\"7\"}}\n"),
        b"{\"u\":{\"n\":\"7\"}}\n",
        "a number is no text"
    );
    assert_eq!(ask(&["--ignore-case"], b"ANN\nDan\n"), b"ANN\n");
}

#[test]
fn a_record_without_a_key_stops_or_is_skipped() {
    let folder = Folder::new();
    folder.output_with(&["build", "-o", "keys.ebf"], b"ann\n");
    let input = b"1\tann\nno tab here\n";
    assert_refused(&folder.run_with(&["query", "keys.ebf", "--key", "2"], input), "record 2");
    assert_eq!(folder.output_with(&["query", "keys.ebf", "--key", "2", "--on-error", "skip"], input), b"1\tann\n");
    let missing = ["query", "keys.ebf", "--key", "2", "--on-error", "keep", "--missing"];
    assert_eq!(folder.output_with(&missing, input), b"no tab here\n");
    let header = ["query", "keys.ebf", "--header", "--key", "nme"];
    assert_refused(&folder.run_with(&header, b"id\tname\n1\tann\n"), "did you mean 'name'?");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("a key that fills the pipe soon", 100_000));
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "\"$0\" query keys.ebf keys.txt | head -n 1; exit ${PIPESTATUS:-0}"]);
    command.arg(env!("CARGO_BIN_EXE_everbloom")).current_dir(folder.path(""));
    let output = command.output().expect("sh runs");
    assert_eq!(error_of(&output), "");
    assert_eq!(output.stdout, b"a key that fills the pipe soon-0\n");
}

#[test]
fn two_inputs_never_run_into_each_other() {
    let folder = Folder::new();
    folder.write("a.txt", "one");
    folder.write("b.txt", "two");
    folder.output_of(&["build", "a.txt", "b.txt", "-o", "keys.ebf"]);
    assert_eq!(folder.output_of(&["query", "keys.ebf", "a.txt", "b.txt"]), b"one\ntwo\n");
}

#[test]
fn a_spectral_filter_says_how_often_each_key_came() {
    let folder = Folder::new();
    folder.write("keys.txt", "a\nb\na\nc\na\n");
    folder.output_of(&["build", "keys.txt", "--filter", "spectral", "--fpr", "1e-6", "-o", "counts.ebf"]);
    let counts = folder.output_with(&["query", "counts.ebf", "--count-each"], b"c\na\nnever\n");
    assert_eq!(String::from_utf8_lossy(&counts), "1\tc\n3\ta\n0\tnever\n");
    folder.output_of(&["build", "keys.txt", "-o", "plain.ebf"]);
    assert_refused(&folder.run(&["query", "plain.ebf", "keys.txt", "--count-each"]), "spectral");
}

#[test]
fn a_compressed_filter_is_smaller_and_answers_alike() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "--filter", "bloom", "-o", "plain.ebf"]);
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "--compress", "-o", "small.ebf"]);
    let (plain, small) = (folder.read("plain.ebf").len(), folder.read("small.ebf").len());
    assert!(small * 100 < plain * 87, "{small} bytes instead of {plain}");
    assert_eq!(folder.output_of(&["query", "small.ebf", "keys.txt"]), folder.read("keys.txt"));
    let document = json_of(&folder.output_of(&["info", "small.ebf", "--format", "json"]));
    assert_eq!((&document["compressed"], document["file_bytes"].as_u64()), (&true.into(), Some(small as u64)));
    assert!(document["predicted_fpr"].as_f64().expect("a rate") <= 0.01);

    folder.write("others.txt", numbered("none", 20_000));
    let spec = document["filter"].as_str().expect("a spec");
    folder.output_of(&["build", "others.txt", "--filter", spec, "--compress", "-o", "others.ebf"]);
    let merge = ["merge", "small.ebf", "others.ebf", "--compress", "-o", "both.ebf"];
    folder.output_of(&[&merge[..], &["--on-broken-promise", "ignore"]].concat());
    for name in ["keys.txt", "others.txt"] {
        let output = folder.run(&["query", "both.ebf", name, "--count"]);
        assert_eq!(output.stdout, b"20000\n", "{name}");
        assert!(error_of(&output).contains("the promise is broken"), "twice as many keys: {}", error_of(&output));
    }
}

fn info(folder: &Folder, file: &str) -> serde_json::Value {
    json_of(&folder.output_of(&["info", file, "--format", "json"]))
}

#[test]
fn a_file_stays_within_the_bytes_that_may_be_sent_and_errs_less_than_a_plain_one() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    folder.write("others.txt", numbered("none", 100_000));
    for (budget, bytes) in [("20000", 20_000), ("16KiB", 16 << 10), ("200000b", 25_000)] {
        folder.output_of(&["build", "keys.txt", "--transmit", budget, "-o", "sent.ebf"]);
        let document = info(&folder, "sent.ebf");
        let length = folder.read("sent.ebf").len();
        assert!(length <= bytes && length > bytes - 1000, "{length} bytes instead of {bytes}");
        assert_eq!(document["compressed"], true);
        assert_eq!(folder.output_of(&["query", "sent.ebf", "keys.txt", "--count"]), b"20000\n");

        let predicted = document["predicted_fpr"].as_f64().expect("a rate");
        let wrong = folder.run(&["query", "sent.ebf", "others.txt", "--count"]).stdout;
        let wrong: f64 = String::from_utf8_lossy(&wrong).trim().parse().expect("a count");
        let sigma = (100_000.0 * predicted * (1.0 - predicted)).sqrt();
        assert!((wrong - 100_000.0 * predicted).abs() <= 4.0 * sigma, "{wrong} wrong at {predicted}");

        // The plain filter of as many bytes: its best number of hashes, by formula.
        let bits_per_key = (bytes - 192) as f64 * 8.0 / 20_000.0;
        let plain = (-bits_per_key * std::f64::consts::LN_2.powi(2)).exp();
        assert!(predicted < plain && wrong < 100_000.0 * plain, "{predicted}, not under {plain}");
    }
}

#[test]
fn bytes_that_cannot_be_kept_are_refused_with_what_would_fit() {
    let folder = folder_with_filter();
    let refused = |arguments: &[&str], mention: &str| {
        let output = folder.run(&[&["build", "keys.txt", "-o", "x.ebf"], arguments].concat());
        assert_refused(&output, mention);
        assert!(!folder.path("x.ebf").exists());
        error_of(&output)
    };
    refused(&["--transmit", "1KiB", "--fpr", "1%"], "leave --fpr out");
    refused(&["--transmit", "1KiB", "--memory", "1MiB"], "leave --memory out");
    refused(&["--transmit", "0"], "at least one bit");
    refused(&["--transmit", "many"], "64MiB");
    refused(&["--transmit", "1b"], "0 bytes on the wire");
    refused(&["--transmit", "1KiB", "--filter", "counting"], "take bloom");
    refused(&["--transmit", "1KiB", "--filter", "bloom:shards=4"], "take bloom");
    refused(&["--transmit", "1KiB", "--filter", "bloom:num_hashes=3"], "'num_hashes'");
    refused(&["--transmit", "1KiB", "--filter", "bloom:num_bits=9000,num_hashes=3"], "'num_bits'");
    refused(&["--transmit", "1KiB", "--scheme", "s.ebs"], "--scheme");
    let error = refused(&["--transmit", "200"], "bytes for a rate of 50%");
    // What it says would fit does.
    let needed: Vec<&str> = error.split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect();
    let [_given, _keys, half, hundredth] = needed[..] else { panic!("{error}") };
    for (bytes, rate) in [(half, 0.5), (hundredth, 0.01)] {
        folder.output_of(&["build", "keys.txt", "--transmit", bytes, "-o", "y.ebf"]);
        let predicted = info(&folder, "y.ebf")["predicted_fpr"].as_f64().expect("a rate");
        assert!(predicted <= rate && folder.read("y.ebf").len() <= bytes.parse().expect("a number"), "{error}");
    }
    // More keys than were expected would break the limit: nothing is written.
    refused(&["--transmit", "600", "--expect", "100", "--quiet"], "leave it out");
    folder.output_of(&["build", "keys.txt", "--transmit", "2KiB", "--expect", "1000", "-o", "z.ebf"]);
    assert!(folder.read("z.ebf").len() <= 2048);
}

#[test]
fn memory_bounds_what_is_built_sparse_and_what_is_unpacked() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "--compress", "--memory", "64KiB", "-o", "two.ebf"]);
    let document = json_of(&folder.output_of(&["info", "two.ebf", "--format", "json"]));
    assert!(document["memory_bits"].as_u64().expect("bits") <= 64 << 13);
    assert!(document["filter"].as_str().expect("a spec").ends_with("num_hashes=2"), "{document}");
    for command in
        [&["query", "two.ebf", "keys.txt", "--memory", "32KiB"][..], &["info", "two.ebf", "--memory", "1KiB"]]
    {
        assert_refused(&folder.run(command), "allow that much with --memory");
    }
    folder.output_of(&["query", "two.ebf", "keys.txt", "--memory", "64KiB"]);
}

#[test]
fn compression_works_with_every_filter() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 1000));
    for filter in
        ["counting", "blocked", "scalable", "spectral", "stable", "bloom:shards=4", "age_partitioned:window=5000"]
    {
        let name = format!("{}.ebf", filter.replace(':', "-"));
        folder.output_of(&["build", "keys.txt", "--filter", filter, "--memory", "64KiB", "--compress", "-o", &name]);
        let found = folder.output_of(&["query", &name, "keys.txt", "--count"]);
        assert_eq!(found, b"1000\n", "{filter}");
    }
}

#[test]
fn damaged_compressed_filters_are_refused() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 1000));
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "--compress", "-o", "small.ebf"]);
    let bytes = folder.read("small.ebf");
    for at in [8, 13, 200, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        folder.write("damaged.ebf", damaged);
        assert_eq!(folder.run(&["query", "damaged.ebf", "keys.txt"]).status.code(), Some(2), "byte {at}");
    }
    folder.write("cut.ebf", &bytes[..bytes.len() - 70]);
    assert_refused(&folder.run(&["info", "cut.ebf"]), "ends before");
}

#[test]
fn a_mapped_filter_answers_alike() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    folder.write("mixed.txt", numbered("user", 25_000) + &numbered("none", 25_000));
    for filter in ["bloom", "blocked"] {
        folder.output_of(&["build", "keys.txt", "--filter", filter, "--fpr", "1%", "-o", "keys.ebf"]);
        for more in [&[][..], &["--missing"], &["--count"]] {
            let read = folder.output_of(&[&["query", "keys.ebf", "mixed.txt"], more].concat());
            let mapped = folder.output_of(&[&["query", "keys.ebf", "mixed.txt", "--mmap"], more].concat());
            assert!(read == mapped, "{filter} {more:?}");
        }
    }
    // A state of dedup begins with its filter.
    folder.output_of(&[
        "dedup", "keys.txt", "--filter", "blocked", "--expect", "20000", "--state", "seen.ebf", "-o", "out",
    ]);
    assert_eq!(folder.output_of(&["query", "seen.ebf", "keys.txt", "--mmap", "--count"]), b"20000\n");
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let folder = folder_with_filter();
    let bytes = folder.read("keys.ebf");
    folder.write("cut.ebf", &bytes[..bytes.len() - 64]);
    assert_refused(
        &folder.run(&["query", "cut.ebf", "keys.txt", "--mmap"]),
        "cut.ebf: the filter's bytes are not as many",
    );
    folder.write("short.ebf", &bytes[..bytes.len() / 2]);
    assert_refused(&folder.run(&["query", "short.ebf", "keys.txt", "--mmap"]), "ends before");
    let mut damaged = bytes.clone();
    damaged[80] ^= 1;
    folder.write("damaged.ebf", damaged);
    assert_refused(&folder.run(&["query", "damaged.ebf", "keys.txt", "--mmap"]), "checksum");
    folder.write("empty.ebf", "");
    assert_refused(&folder.run(&["query", "empty.ebf", "keys.txt", "--mmap"]), "empty");
    folder.output_of(&["build", "keys.txt", "--filter", "counting", "-o", "counting.ebf"]);
    assert_refused(
        &folder.run(&["query", "counting.ebf", "keys.txt", "--mmap"]),
        "counting filters cannot be read in place",
    );
    folder.output_of(&["build", "keys.txt", "--fpr", "1%", "--compress", "-o", "small.ebf"]);
    assert_refused(&folder.run(&["query", "small.ebf", "keys.txt", "--mmap"]), "without compression");
}

#[test]
fn a_set_that_does_not_fit_is_refused_with_a_memory_and_a_rate_that_do() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    let build = |memory: &str, fpr: &str| {
        folder.run(&["build", "keys.txt", "-o", "keys.ebf", "--memory", memory, "--fpr", fpr])
    };
    for memory in ["4KiB", "1KiB", "64B", "100b"] {
        let refused = build(memory, "0.1%");
        assert_refused(&refused, "0.1%");
        assert!(!common::exists(folder.path("keys.ebf")), "{memory}: a file was written");
        let message = error_of(&refused);
        let enough = message.split("; give ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size");
        assert!(build(enough, "0.1%").status.success(), "{message}");
        std::fs::remove_file(folder.path("keys.ebf")).expect("it was written");
    }
    let message = error_of(&build("4KiB", "0.1%"));
    let rate = message.split("accept a rate of ").nth(1).expect("a rate");
    assert!(build("4KiB", rate).status.success(), "{message}");
    let info = json_of(&folder.output_of(&["info", "keys.ebf", "--format", "json"]));
    assert_eq!(info["predicted_fnr"], 0.0, "{info}");
}

#[test]
fn specs_larger_than_the_memory_are_refused() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 100));
    for (spec, size) in [
        ("bloom:num_bits=8388608,num_hashes=5", "1MiB"),
        ("blocked:num_bits=8388608", "1MiB"),
        ("counting:num_cells=2097152,num_hashes=5,cell_bits=4", "1MiB"),
        ("bloom:num_bits=1048576,num_hashes=5,shards=8", "1MiB"),
        ("ranked:num_words=131072,lanes=4,lane_bits=16", "1MiB"),
        ("reservoir:memory_bits=8388608,num_filters=8", "1MiB"),
        ("stable:num_cells=8388608,cell_max=1,num_hashes=3,decrements=7", "1MiB"),
        ("aging:window=10000,num_lines=8192", "1MiB"),
        ("age_partitioned:window=10000,num_blocks=4096,num_hashes=7", "1MiB"),
        ("scalable:initial_items=1000000,target_fpr=0.01", "grows"),
    ] {
        for command in ["build", "dedup"] {
            let refused = folder.run(&[command, "keys.txt", "-o", "out", "--filter", spec, "--memory", "64KiB"]);
            assert_refused(&refused, "64KiB");
            assert!(error_of(&refused).contains(size), "{spec}: {}", error_of(&refused));
            assert!(!common::exists(folder.path("out")), "{spec}: a file was written");
        }
    }
    // Filters that grow begin small, and nobody bounded the memory here.
    folder.output_of(&["build", "keys.txt", "-o", "out", "--filter", "exact", "--memory", "64KiB"]);
    folder.output_of(&["dedup", "keys.txt", "-o", "lines", "--filter", "bloom:num_bits=1073741824,num_hashes=5"]);
}

#[test]
fn parameters_that_would_crawl_are_refused_with_their_range() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 100));
    for (spec, range) in [
        ("stable:num_cells=1000000,cell_max=1,num_hashes=3,decrements=65536", "at most 1024"),
        ("ibf1:num_cells=100000,num_hashes=3,decrements=65536,cell_max=3", "at most 1024"),
        ("spectral:num_cells=10000000,num_hashes=3,half_life=1", "at least"),
        ("aging:window=1,num_lines=100000", "at least"),
        ("age_partitioned:window=1,num_blocks=100000,num_hashes=7", "at least"),
        ("bloom:num_bits=1000,num_hashes=100000", "between 1 and 64"),
        ("reservoir:memory_bits=1000000,num_filters=1000", "between 1 and 64"),
    ] {
        assert_refused(&folder.run(&["dedup", "keys.txt", "--filter", spec]), range);
    }
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
fn parameters_that_break_the_rate_for_the_expected_keys_are_refused() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 100));
    let spec = ["--filter", "bloom:num_bits=8192,num_hashes=5", "--expect", "2000"];
    let run =
        |command: &str, more: &[&str]| folder.run(&[&[command, "keys.txt", "-o", "out"], &spec[..], more].concat());
    for command in ["build", "dedup"] {
        assert_refused(&run(command, &["--fpr", "1%"]), "a rate of 1% for 2000 keys");
        assert_refused(&run(command, &[]), "a rate of 0.1% for 2000 keys");
        assert_eq!(run(command, &["--fpr", "60%"]).status.code(), Some(0), "{command}");
    }
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
