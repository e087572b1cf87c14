//! `remove` and `build --from`: what they change, what they leave alone, and what they refuse.

mod common;

use common::{Folder, assert_refused, error_of, json_of};

fn numbered(prefix: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|index| format!("{prefix}-{index}\n")).collect()
}

fn folder_with_counters(rate: &str) -> Folder {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 0..5000));
    folder.output_of(&["build", "keys.txt", "--filter", "counting", "--fpr", rate, "-o", "keys.ebf"]);
    folder
}

#[test]
fn what_is_removed_is_gone_and_what_is_left_is_found() {
    // At a rate this high many keys look like others when they are inserted, and must be inserted all the same.
    let folder = folder_with_counters("20%");
    folder.write("gone.txt", numbered("user", 0..4000));
    folder.write("left.txt", numbered("user", 4000..5000));
    let ask = ["remove", "keys.ebf", "gone.txt", "--format", "json"];
    let document = json_of(&folder.output_of(&ask));
    assert_eq!(
        (&document["keys"], &document["removed"], &document["not_there"]),
        (&4000.into(), &4000.into(), &0.into())
    );
    assert_eq!((&document["arrivals"], &document["stuck_counters"]), (&1000.into(), &0.into()));
    assert_eq!(folder.output_of(&["query", "keys.ebf", "left.txt"]), folder.read("left.txt"));
    // Exactly the filter that the keys left would have made.
    let spec = document["filter"].as_str().expect("a spec");
    folder.output_of(&["build", "left.txt", "--filter", spec, "-o", "anew.ebf"]);
    let info = |file: &str| json_of(&folder.output_of(&["info", file, "--format", "json"]));
    let (removed, anew) = (info("keys.ebf"), info("anew.ebf"));
    assert_eq!((&removed["fill"], &removed["arrivals"]), (&anew["fill"], &anew["arrivals"]));
}

#[test]
fn a_filter_that_is_emptied_knows_nothing_however_its_keys_were_given() {
    for options in [&["--expect", "5000"][..], &[], &["--filter", "counting:shards=4"]] {
        let folder = Folder::new();
        // Every key twice, so that a repeat that were counted again would stay behind.
        folder.write("keys.txt", numbered("user", 0..5000).repeat(2));
        folder.write("once.txt", numbered("user", 0..5000));
        let spec = if options.contains(&"--filter") { &[][..] } else { &["--filter", "counting"][..] };
        folder.output_of(&[&["build", "keys.txt", "--fpr", "20%", "-o", "keys.ebf"], spec, options].concat());
        folder.output_of(&["remove", "keys.ebf", "once.txt"]);
        let document = json_of(&folder.output_of(&["info", "keys.ebf", "--format", "json"]));
        assert_eq!((&document["arrivals"], &document["fill"]), (&0.into(), &0.0.into()), "{options:?}");
    }
}

#[test]
fn keys_that_are_not_there_are_counted_and_change_nothing() {
    let folder = folder_with_counters("0.0001%");
    let before = folder.read("keys.ebf");
    let output = folder.run_with(&["remove", "keys.ebf"], b"nobody\nno one\n");
    assert_eq!((output.status.code(), error_of(&output).as_str()), (Some(1), ""));
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("not there      2 keys") && table.contains("record 1: 'nobody'"), "{table}");
    assert_eq!(folder.read("keys.ebf"), before);
    // A key that comes twice was there once.
    let output = folder.run_with(&["remove", "keys.ebf", "--format", "json"], b"user-1\nuser-1\n");
    let document = json_of(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&document["removed"], &document["not_there"]), (&1.into(), &1.into()));
    assert!(document["expected_mistaken"].as_f64().expect("a number") < 1e-5);
}

#[test]
fn several_files_and_another_output() {
    let folder = folder_with_counters("1%");
    let before = folder.read("keys.ebf");
    folder.write("a.txt", numbered("user", 0..10));
    folder.write("b.txt", numbered("user", 10..20));
    let document =
        json_of(&folder.output_of(&["remove", "keys.ebf", "a.txt", "b.txt", "-o", "fewer.ebf", "--format", "json"]));
    assert_eq!(document["removed"], 20);
    assert_eq!(folder.read("keys.ebf"), before, "another file was named for the output");
    let info = json_of(&folder.output_of(&["info", "fewer.ebf", "--format", "json"]));
    assert_eq!(info["arrivals"], 4980);
}

#[test]
fn keys_are_found_as_when_the_filter_was_built() {
    let folder = Folder::new();
    folder.write("users.csv", "id,name\n1,ann\n2,bob\n3,cid\n");
    folder.output_of(&[
        "build",
        "users.csv",
        "--csv",
        "--header",
        "--key",
        "name",
        "--filter",
        "counting",
        "--fpr",
        "0.001%",
        "-o",
        "u.ebf",
    ]);
    folder.write("gone.csv", "name,why\nbob,moved\n");
    let document = json_of(&folder.output_of(&["remove", "u.ebf", "gone.csv", "--format", "json"]));
    assert_eq!((&document["removed"], &document["not_there"]), (&1.into(), &0.into()));
    assert_eq!(folder.output_of(&["query", "u.ebf", "users.csv"]), b"id,name\n1,ann\n3,cid\n");
    folder.write("bad.csv", "why\nmoved\n");
    assert_refused(&folder.run(&["remove", "u.ebf", "bad.csv"]), "name");
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let folder = folder_with_counters("1%");
    folder.output_of(&["build", "keys.txt", "--filter", "bloom", "-o", "bits.ebf"]);
    let before = folder.read("keys.ebf");
    assert_refused(
        &folder.run(&["remove", "bits.ebf", "keys.txt"]),
        "bloom filters cannot remove; these can: counting",
    );
    assert_refused(&folder.run(&["remove", "none.ebf", "keys.txt"]), "none.ebf");
    assert_refused(&folder.run(&["remove", "keys.txt", "keys.txt"]), "also read");
    assert_refused(&folder.run(&["remove", "keys.ebf", "keys.ebf"]), "also read");
    assert_refused(&folder.run(&["remove", "keys.ebf", "none.txt"]), "none.txt");
    assert_refused(&folder.run(&["remove", "keys.ebf", "keys.txt", "none.txt"]), "none.txt");
    assert_refused(&folder.run(&["remove", "keys.ebf", "keys.txt", "--key", "2"]), "no field 2");
    folder.write("words.txt", "not a filter\n");
    assert_refused(&folder.run_with(&["remove", "words.txt"], b"x\n"), "words.txt");
    assert_eq!(folder.read("keys.ebf"), before);
    // Nothing to do is nothing wrong.
    let output = folder.run(&["remove", "keys.ebf"]);
    assert_eq!((output.status.code(), folder.read("keys.ebf") == before), (Some(0), true));
    // A state of dedup has its place in the inputs besides the filter, and does not insert what looks like a repeat.
    folder.output_of(&["dedup", "keys.txt", "--filter", "counting", "--expect", "5000", "--state", "seen.state"]);
    let state = folder.read("seen.state");
    assert_refused(&folder.run(&["remove", "seen.state", "keys.txt"]), "state of `everbloom dedup`");
    assert_eq!(folder.read("seen.state"), state);
}

#[test]
fn a_file_that_is_in_use_is_left_alone() {
    let folder = folder_with_counters("1%");
    let held = std::fs::File::open(folder.path("keys.ebf")).expect("the filter");
    held.try_lock().expect("nobody else has it");
    assert_refused(&folder.run(&["remove", "keys.ebf", "keys.txt"]), "another process");
    drop(held);
    folder.output_of(&["remove", "keys.ebf", "keys.txt"]);
}

#[test]
fn full_counters_are_explained() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("user", 0..300));
    let spec = "counting:num_cells=64,num_hashes=2,cell_bits=2";
    let build = folder.run(&["build", "keys.txt", "--filter", spec, "--on-broken-promise", "ignore", "-o", "keys.ebf"]);
    assert_eq!(build.status.code(), Some(0), "{}", error_of(&build));
    let output = folder.run(&["remove", "keys.ebf", "keys.txt", "--on-broken-promise", "ignore"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("still found") && table.contains("counters are full and never fall"), "{table}");
    let output = folder.run(&["remove", "keys.ebf", "keys.txt"]);
    assert_eq!(output.status.code(), Some(3), "{}", error_of(&output));
    assert!(error_of(&output).contains("the promise is broken"), "{}", error_of(&output));
}

#[test]
fn counters_become_the_bits_to_send() {
    let folder = folder_with_counters("1%");
    folder.write("others.txt", numbered("other", 0..20_000));
    folder.output_of(&["build", "--from", "keys.ebf", "-o", "bits.ebf"]);
    for keys in ["keys.txt", "others.txt"] {
        let answer = |file: &str| folder.output_of(&["query", file, keys]);
        assert_eq!(answer("bits.ebf"), answer("keys.ebf"), "{keys}");
    }
    let info = |file: &str| json_of(&folder.output_of(&["info", file, "--format", "json"]));
    let (counters, bits) = (info("keys.ebf"), info("bits.ebf"));
    for field in ["promise", "promised_items", "predicted_fpr", "standing", "arrivals", "fill", "seed", "hash"] {
        assert_eq!(bits[field], counters[field], "{field}");
    }
    assert!(bits["filter"].as_str().expect("a spec").starts_with("bloom:"));
    let ratio = counters["memory_bits"].as_f64().expect("bits") / bits["memory_bits"].as_f64().expect("bits");
    assert!((3.9..4.1).contains(&ratio), "{ratio}");
}

#[test]
fn bits_to_send_keep_key_options_and_shards_and_fit_a_size() {
    let folder = Folder::new();
    folder.write("users.tsv", "1\tann\n2\tbob\n");
    folder.output_of(&[
        "build",
        "users.tsv",
        "--key",
        "2",
        "--filter",
        "counting:shards=3",
        "--expect",
        "5000",
        "--fpr",
        "1%",
        "-o",
        "u.ebf",
    ]);
    folder.output_of(&["build", "--from", "u.ebf", "--transmit", "3KiB", "-o", "bits.ebf"]);
    assert!(folder.read("bits.ebf").len() <= 3 << 10);
    assert_eq!(folder.output_of(&["query", "bits.ebf", "users.tsv"]), folder.read("users.tsv"));
    let info = json_of(&folder.output_of(&["info", "bits.ebf", "--format", "json"]));
    assert!(info["filter"].as_str().expect("a spec").ends_with("shards=3"));
    assert_eq!((&info["keys"], &info["arrivals"]), (&"--key 2".into(), &2.into()));
    assert_refused(
        &folder.run(&["build", "--from", "u.ebf", "--transmit", "100", "-o", "x.ebf"]),
        "build those smaller",
    );
}

#[test]
fn other_filters_are_not_reduced() {
    let folder = folder_with_counters("1%");
    folder.output_of(&["build", "keys.txt", "--filter", "bloom", "-o", "bits.ebf"]);
    folder.output_of(&["build", "keys.txt", "--filter", "spectral", "-o", "counts.ebf"]);
    let from = |file: &str, more: &[&str]| folder.run(&[&["build", "--from", file, "-o", "x.ebf"], more].concat());
    assert_refused(&from("bits.ebf", &[]), "it has bits already");
    assert_refused(&from("counts.ebf", &[]), "these can: counting");
    assert_refused(&from("none.ebf", &[]), "none.ebf");
    assert_refused(&from("keys.ebf", &["keys.txt"]), "--from");
    assert_refused(&from("keys.ebf", &["--fpr", "1%"]), "--from");
    assert_refused(&folder.run(&["build", "--from", "keys.ebf", "-o", "keys.ebf"]), "also read");
    assert!(!folder.path("x.ebf").exists());
}
