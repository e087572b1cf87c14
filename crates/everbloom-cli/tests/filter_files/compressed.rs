//! Filters as they are sent or mapped: compressed, within so many bytes, asked where they lie.

use crate::common::live::numbered;
use crate::common::{Folder, assert_refused, error_of, json_of};
use crate::folder_with_filter;

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
