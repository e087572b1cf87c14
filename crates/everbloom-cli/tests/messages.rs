//! What is said about a bad call: what was typed, what would work, and then no more.

mod common;

use common::{Folder, assert_refused, error_of};

#[test]
fn a_bad_value_is_answered_with_what_would_work_and_ends_once() {
    let folder = Folder::new();
    for (arguments, ending) in [
        (["dedup", "--fpr", "0"], "must be above 0 and below 1; try 0.1%"),
        (
            ["dedup", "--fpr", "5"],
            "invalid value '5' for '--fpr <RATE>': must be above 0 and below 1; did you mean 5%?",
        ),
        (["dedup", "--fpr", "-1"], "invalid value '-1' for '--fpr <RATE>': must be above 0 and below 1; try 0.1%"),
        (["dedup", "--expect", "-1"], "for '--expect <COUNT>': must be at least 1 and below 2^64; try 1e6"),
        (
            ["dedup", "--filter", "bloom:num_hashes"],
            "invalid value 'bloom:num_hashes' for '--filter <SPEC>': 'num_hashes' has no value; write kind or \
             kind:parameter=value,parameter=value",
        ),
        (["plan", "--memory=1MiB", "clicks.tsv"], "write --stream clicks.tsv if it is a file to read"),
        (["dedup", "--memory", "64XB"], "B (bytes) or b (bits); try 64MiB"),
        (["dedup", "--expect", "few"], "1e6 or 10k; try 1e6"),
        (["dedup", "--window", "soon"], "or a time such as 24h, 90s or 1w; try 24h"),
        (["dedup", "--checkpoint", "soon"], "5m, 1h30m, 7d or 1w; try 30s"),
        (["dedup", "--seed", "x"], "from 0 to 2^64 - 1; try 0"),
        (["dedup", "--on-error", "cry"], "must be one of skip, keep, fail"),
        (["plan", "--fnr", "2"], "must be 0 or more and below 1; did you mean 2%?"),
        (["dedup", "--flag", "--count"], "--flag cannot be used with --count; leave one of them out"),
        (
            ["dedup", "--exact", "--memory=1MiB"],
            "--exact cannot be used with --memory: --exact takes as much memory as the keys need; leave one of them out",
        ),
        (
            ["dedup", "--window=24h", "--filter=bloom"],
            "--window cannot be used with --filter: a window chooses its filter; leave one of them out",
        ),
        (["dedup", "--counts", "--audit"], "estimates of --filter spectral are off; leave one of them out"),
        (["dedup", "--time", "3"], "(--time and --refresh say how a window counts); add --window 24h"),
        (["dedup", "--refresh", "no"], "(--time and --refresh say how a window counts); add --window 24h"),
        (["build", "a.txt", "b.txt"], "--output is missing (the file to write); add --output FILE"),
        (["build", "a.txt", "--from=a.ebf"], "files cannot be used with --from; leave one of them out"),
        (["build", "--from=a.ebf", "a.txt"], "--from cannot be used with files; leave one of them out"),
        (["dedup", "--importance", "3"], "record can have); add --importance-max 50"),
        (["dedup", "--serve", "8080"], "there is no file '8080'; if it is the page's port, write --serve=8080"),
        (["dedup", "keys.txt", "--serve=99999"], "must be a port, a number from 1 to 65535; try 8080"),
        (["dedup", ".", "-q"], ".: is a directory; name the files in it"),
        (["dedup", "--wndow", "5"], "did you mean '--window'?"),
    ] {
        let output = folder.run(&arguments);
        assert_refused(&output, ending);
        let error = error_of(&output);
        assert!(error.ends_with(ending), "{error}");
        assert!(!error.contains("For more information") && !error.contains(":;"), "{error}");
    }
}

#[test]
fn errors_of_the_library_name_the_options_that_were_typed() {
    let folder = Folder::new();
    assert_refused(&folder.run(&["plan"]), "--memory or --expect is missing");
    assert_refused(&folder.run(&["dedup", "--memory", "8b"]), "--memory is 1B, but must be at least");
    let tune = ["tune", "--popularity", "p.tsv", "--max-hashes", "33"];
    assert_refused(&folder.run(&tune), "--max-hashes is 33");
}

#[test]
fn long_help_tells_what_short_help_leaves_out() {
    let folder = Folder::new();
    let help = |arguments: &[&str]| String::from_utf8_lossy(&folder.output_of(arguments)).into_owned();
    assert!(help(&["dedup", "--help"]).contains("kill -9"));
    assert!(help(&["compare", "--help"]).contains("FNR = false negatives among true duplicates"));
    assert!(help(&["dedup", "-h"]).starts_with("Drop repeats from a stream"));
}

#[test]
fn help_manual_pages_and_completions_know_every_command() {
    let folder = Folder::new();
    let text = |arguments: &[&str]| {
        let output = folder.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(text(&["help", "dedup"]), text(&["dedup", "--help"]));
    let page = text(&["man", "lab", "run"]);
    assert!(page.contains(".TH EVERBLOOM-LAB-RUN 1") && page.contains(r"everbloom\-lab\-run"), "{page}");
    text(&["man", "--all", "pages"]);
    let pages = std::fs::read_dir(folder.path("pages")).expect("a folder").count();
    let completions = text(&["completions", "bash"]);
    for command in ["dedup", "build", "query", "info", "merge", "compare", "tune", "plan", "lab"] {
        assert!(folder.path(&format!("pages/everbloom-{command}.1")).exists(), "{command}");
        assert!(completions.contains(command), "{command}");
    }
    assert!(pages > 12, "{pages} pages");
    let output = folder.run(&["man", "dedpu"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("dedup"), "{message}");
}

/// Bytes that are no text can be typed where a command is looked for.
#[test]
fn bytes_that_are_no_text_are_no_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new();
    let bytes = OsStr::from_bytes(b"\xff");
    for words in [&["xyzzy"][..], &["lab", "xyzzy"], &[], &["lab"]] {
        let output = folder.command(words).arg(bytes).output().expect("everbloom runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", error_of(&output));
    }
    assert_refused(&folder.run(&["lab"]), "missing subcommand; one of list, ");
    assert_refused(&folder.run(&[]), "missing subcommand; one of dedup, ");
}
