//! What cannot be built is refused, with what can.

use crate::common::live::numbered;
use crate::common::{Folder, assert_refused, error_of, json_of};
use crate::folder_with_filter;

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
fn a_set_that_does_not_fit_is_refused_with_a_memory_and_a_rate_that_do() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 20_000));
    let build = |memory: &str, fpr: &str| {
        folder.run(&["build", "keys.txt", "-o", "keys.ebf", "--memory", memory, "--fpr", fpr])
    };
    for memory in ["4KiB", "1KiB", "64B", "100b"] {
        let refused = build(memory, "0.1%");
        assert_refused(&refused, "0.1%");
        assert!(!crate::common::exists(folder.path("keys.ebf")), "{memory}: a file was written");
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
            assert!(!crate::common::exists(folder.path("out")), "{spec}: a file was written");
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
