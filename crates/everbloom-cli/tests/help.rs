//! Help that people can rely on: the examples at its end run, options have the letters that fingers know, defaults are said.

mod common;

use common::Folder;
use std::path::Path;
use std::process::{Command, Stdio};

/// The help of a command, and its subcommands.
fn help(folder: &Folder, words: &[String]) -> (String, Vec<String>) {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let text = String::from_utf8(folder.output_of(&arguments)).expect("text");
    let listed = text.split("Commands:\n").nth(1).unwrap_or_default();
    let names = listed.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| line.chars().nth(2).is_some_and(|letter| letter != ' '));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    (text.clone(), names.map(str::to_string).collect())
}

/// Every command with its help.
fn all_help(folder: &Folder) -> Vec<(Vec<String>, String)> {
    let (mut open, mut all) = (vec![Vec::new()], Vec::new());
    while let Some(words) = open.pop() {
        let (text, names) = help(folder, &words);
        open.extend(names.into_iter().map(|name| words.iter().cloned().chain([name]).collect::<Vec<String>>()));
        all.push((words, text));
    }
    all
}

fn examples(help: &str) -> Vec<&str> {
    let behind = help.split("Examples:\n").nth(1).unwrap_or_default();
    behind.lines().filter_map(|line| line.strip_prefix("    ")).map(str::trim).collect()
}

/// Files by the names that the examples use.
fn fixtures() -> Folder {
    let folder = Folder::new();
    let lines = |range: std::ops::Range<u32>, text: &dyn Fn(u32) -> String| -> String { range.map(text).collect() };
    folder.write("lines.txt", lines(0..3000, &|i| format!("line {}\n", i * i % 911)));
    folder.write("members.txt", lines(0..400, &|i| format!("line {i}\n")));
    folder.write("monday.txt", lines(0..100, &|i| format!("line {i}\n")));
    folder.write("tuesday.txt", lines(50..150, &|i| format!("line {i}\n")));
    folder.write("sessions.txt", lines(0..50, &|i| format!("session {i}\n")));
    folder.write("ended.txt", "session 1\nsession 2\n");
    folder.write("queries.txt", lines(0..4000, &|i| format!("line {}\n", 300 + i * i % 401)));
    folder.write("shares.tsv", lines(1..9, &|i| format!("key {i}\t0.{i}\t0.{}\n", 9 - i)));
    folder.write("visits.tsv", lines(0..2000, &|i| format!("v{}\tp{}\t{}\n", i % 300, i % 7, i % 50)));
    folder.write("people.csv", "name,email\nAnn,a@x\nBob,b@x\n\"Ann, again\",a@x\n");
    let event = |i: u32| format!("{{\"user\":{{\"id\":{}}},\"at\":\"2024-01-0{}T00:00:00Z\"}}\n", i % 3, 1 + i / 2);
    folder.write("events.jsonl", lines(0..8, &event));
    for place in ["bash-completion/completions", "man/man1"] {
        std::fs::create_dir_all(folder.path(&format!(".local/share/{place}"))).expect("a folder");
    }
    std::fs::create_dir_all(folder.path(".config/fish/completions")).expect("a folder");
    folder
}

#[test]
fn every_help_ends_with_examples_that_run() {
    let binary = Path::new(env!("CARGO_BIN_EXE_everbloom")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let (folder, mut ran) = (fixtures(), 0);
    for (words, text) in all_help(&folder) {
        let examples = examples(&text);
        assert!(!examples.is_empty(), "{words:?} has no examples");
        // What needs a server is tried by the tests that start one, and what serves pages until it is stopped by those that stop it.
        let is_endless = |example: &&str| example.contains("--redis ") || example.starts_with("everbloom explore");
        for example in examples.into_iter().filter(|example| !is_endless(example)) {
            // Outside a terminal nothing may be said but what is wrong; what is written is written by the command itself.
            let mut shell = Command::new("sh");
            shell.args(["-c", example]).current_dir(folder.path(".")).env("PATH", &path).env("HOME", folder.path("."));
            let output = shell.stdin(Stdio::null()).output().expect("sh runs");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{words:?}: {example} → {}: {error}", output.status);
            assert!(example.contains("everbloom "), "{example}");
            ran += 1;
        }
    }
    assert!(ran > 40, "{ran} examples");
}

#[test]
fn long_options_have_the_short_ones_that_fingers_know() {
    let folder = Folder::new();
    let known = [
        ("--key", "-k"),
        ("--delimiter", "-d"),
        ("--count", "-c"),
        ("--null", "-z"),
        ("--quiet", "-q"),
        ("--verbose", "-v"),
        ("--memory", "-m"),
        ("--threads", "-j"),
        ("--header", "-H"),
        ("--output", "-o"),
    ];
    let mut found = std::collections::BTreeSet::new();
    for (words, text) in all_help(&folder) {
        for line in text.lines().map(str::trim_start) {
            let Some((long, short)) =
                known.iter().find(|(long, _)| line.contains(&format!("{long} ")) || line.ends_with(long))
            else {
                continue;
            };
            let is_option = line.starts_with("--") || line.starts_with('-') && line.contains(", --");
            let own = line.split(", ").last().unwrap_or_default().split_whitespace().next();
            if is_option && own == Some(long) {
                assert!(line.starts_with(short), "{words:?}: {line}");
                found.insert(*long);
            }
        }
    }
    assert_eq!(found, known.iter().map(|(long, _)| *long).collect());
}

#[test]
fn defaults_are_said() {
    let folder = Folder::new();
    let text =
        |command: &str| String::from_utf8(folder.output_of(&[command, "--help"])).expect("text").replace("\n", " ");
    let dedup = text("dedup").split_whitespace().collect::<Vec<_>>().join(" ");
    for default in [
        "[default: 64MiB for dedup",
        "[default: 0.1%]",
        "[default: auto]",
        "[default: 0]",
        "[default: 30s]",
        "[default: keep for dedup, fail elsewhere]",
        "[default: one per core, at most 8]",
        "[default: tab; comma with --csv]",
        "[default: the whole line]",
        "[default: warn]",
        "[default: stdin]",
        "[default: stdout]",
    ] {
        assert!(dedup.contains(default), "{default}");
    }
    let flowing = |command: &str| text(command).split_whitespace().collect::<Vec<_>>().join(" ");
    let plan = flowing("plan");
    for default in ["[default: auto]", "[default: what --expect keys at --fpr take]", "[default: any]"] {
        assert!(plan.contains(default), "{default}");
    }
    let compare = flowing("compare");
    assert!(compare.contains("to save memory [default: all]"), "{compare}");
    let generate = String::from_utf8(folder.output_of(&["lab", "generate", "--help"])).expect("text");
    let generate = generate.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(generate.contains("zipf set [default: 1]") && generate.contains("as --list says]"), "{generate}");
    // What compare's help says of the memory is so.
    assert!(compare.contains("compare needs it, unless every --filter has a size of its own"), "{compare}");
    folder.write("lines.txt", "a\nb\na\n");
    assert!(!folder.run(&["compare", "lines.txt", "--filter", "ranked"]).status.success());
    assert!(folder.run(&["compare", "lines.txt", "--filter", "bloom:num_bits=1024,num_hashes=3"]).status.success());
    assert!(text("tune").starts_with("Tune a filter to a query log"));
    assert!(dedup.contains("A record is late if its time is before that of an earlier one"));
}

/// Options that take a value and do nothing where they are not given, or must be. Every other one says what holds
/// without it.
const WITHOUT_DEFAULT: &[&str] = &[
    "--arrivals",
    "--audit",
    "--chart",
    "--cost-fn",
    "--cost-fp",
    "--duplicates",
    "--expect",
    "--from",
    "--from-state",
    "--importance",
    "--importance-max",
    "--keys",
    "--log",
    "--memory-cost",
    "--name",
    "--out",
    "--output",
    "--per-key",
    "--popularity",
    "--redis",
    "--scheme",
    "--serve",
    "--state",
    "--stats",
    "--stream",
    "--target-rate",
    "--trace",
    "--transmit",
    "--window",
    "--all",
];

#[test]
fn every_option_with_a_value_says_its_default_or_is_known_to_have_none() {
    let (folder, mut seen) = (Folder::new(), 0);
    for (words, text) in all_help(&folder) {
        let is_start = |line: &str| line.trim_start().starts_with('-') && line.starts_with("  ") && line.contains("--");
        let mut entries: Vec<String> = Vec::new();
        for line in text.split("Examples:").next().unwrap_or_default().lines() {
            match entries.last_mut() {
                _ if is_start(line) => entries.push(line.to_string()),
                Some(entry) => entry.push_str(line),
                None => {}
            }
        }
        for entry in entries {
            let name = entry.split("--").nth(1).unwrap_or_default();
            let end = name.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-').unwrap_or(name.len());
            let takes_value = name[end..].starts_with(" <") || name[end..].starts_with("[=<");
            let option = format!("--{}", &name[..end]);
            // Where tune learns from a log, how much memory to take is the question itself.
            let is_needed = words == ["tune"] && option == "--memory";
            if takes_value && !is_needed {
                seen += 1;
                let has_none = WITHOUT_DEFAULT.contains(&option.as_str());
                assert!(entry.contains("[default") || has_none, "{words:?} {option} does not say its default: {entry}");
            }
        }
    }
    assert!(seen > 100, "{seen} options");
}

/// Help and errors are plain text, so that they look alike in a file, in a pipe and where colours are not wanted.
#[test]
fn help_and_errors_have_no_colours_whoever_asks_for_them() {
    let folder = Folder::new();
    for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")] {
        for arguments in [&["dedup", "--help"][..], &["--version"], &["dedup", "--no-such"], &["plan", "--memory", "1"]]
        {
            let output =
                folder.command(arguments).env(name, value).stdin(Stdio::null()).output().expect("everbloom runs");
            assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{arguments:?}");
        }
    }
}
