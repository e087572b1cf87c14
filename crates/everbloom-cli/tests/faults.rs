//! `dedup` when the system fails it: at every read, write, seek, sync, rename, open, stat, chmod and lock in turn, something goes wrong.
//!
//! Either the run goes on and the output is right, or it says that it failed and the next run makes it right.
//! `src/fault.rs` is the other half of this, and only in builds that check themselves.

#![cfg(debug_assertions)]

mod common;

use common::{Folder, error_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::process::Output;
use std::sync::LazyLock;

/// Some way to use dedup: what comes before, and then the run that is hit.
struct Use {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Read again from its start by the next run.
    stdin: Option<&'static str>,
    /// Writes the inputs, and runs dedup on them if need be.
    prepare: fn(&Use, &Folder),
}

const FILES: &[&str] =
    &["dedup", "--exact", "--state", "s", "-o", "out", "--duplicates", "dup", "--checkpoint", "0s", "one.gz", "two"];
const PIPE: &[&str] = &["dedup", "--exact", "--state", "s", "-o", "out", "--checkpoint", "0s"];

const STDOUT: &[&str] = &["dedup", "--exact", "--state", "s", "--checkpoint", "0s", "one.gz", "two"];

const USES: [Use; 4] = [
    Use { name: "from the start", arguments: FILES, stdin: None, prepare: |_, folder| write_first(folder) },
    Use { name: "resumed", arguments: FILES, stdin: None, prepare: write_more },
    Use { name: "from a pipe", arguments: PIPE, stdin: Some("two"), prepare: |_, folder| write_first(folder) },
    Use { name: "to stdout", arguments: STDOUT, stdin: None, prepare: |_, folder| write_first(folder) },
];

/// Every seventh line is a repeat, from near by or from afar.
fn lines(from: usize, to: usize) -> String {
    (from..to).map(|line| format!("line {}\n", if line % 7 == 0 { line / 14 } else { line })).collect()
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("gzip")
}

/// Three blocks of 128 KiB each, and half a line, in both. Made once for hundreds of runs.
static FIRST: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [packed(&(lines(0, 25_000) + "unhea")), (lines(20_000, 45_000) + "line 4").into()]);

fn write_first(folder: &Folder) {
    folder.write("one.gz", &FIRST[0]);
    folder.write("two", &FIRST[1]);
}

/// Writes the first inputs, has a run read them, and puts more behind.
fn write_more(usage: &Use, folder: &Folder) {
    write_first(folder);
    let first = run(usage, folder, None, 1);
    assert!(first.status.success(), "{}", error_of(&first));
    static MORE: LazyLock<[Vec<u8>; 2]> =
        LazyLock::new(|| [packed("rd of\nline 1\n"), (lines(44_000, 60_000) + "li").into()]);
    for (name, more) in ["one.gz", "two"].into_iter().zip(&*MORE) {
        let mut file = File::options().append(true).open(folder.path(name)).expect("an input");
        file.write_all(more).expect("a longer input");
    }
}

fn run(usage: &Use, folder: &Folder, fault: Option<&str>, threads: usize) -> Output {
    let threads = threads.to_string();
    let mut command = folder.command(&[usage.arguments, &["--threads", &threads]].concat());
    command.envs(fault.map(|fault| ("EVERBLOOM_FAULT", fault)));
    let output = match usage.stdin {
        Some(name) => common::feed(command, &folder.read(name)),
        None => command.output().expect("everbloom runs"),
    };
    if usage.arguments == STDOUT {
        // All that stdout ever got; of a line that a failing write cut, the reader sees that it has no end.
        let whole = output.stdout.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let before = std::fs::read(folder.path("out")).unwrap_or_default();
        folder.write("out", [&before[..], &output.stdout[..whole]].concat());
    }
    output
}

/// What is wrong with the outputs, if anything is.
fn wrong(usage: &Use, folder: &Folder, expected: &[Vec<u8>; 2]) -> Option<String> {
    let [out, dup] = outputs(folder);
    if usage.stdin.is_none() && usage.arguments != STDOUT {
        return ([&out, &dup] != [&expected[0], &expected[1]]).then(|| {
            let lengths = [&expected[0], &out, &expected[1], &dup].map(Vec::len);
            format!("{} and {} bytes instead of {} and {}", lengths[1], lengths[3], lengths[0], lengths[2])
        });
    }
    // What a pipe brought since the last checkpoint may come twice, and so may what stdout got.
    let (found, wanted) = (set(&out), set(&expected[0]));
    (found != wanted).then(|| {
        let (lost, more) = (wanted.difference(&found).count(), found.difference(&wanted).count());
        format!("{lost} lines lost, {more} that nobody wrote")
    })
}

fn set(bytes: &[u8]) -> BTreeSet<&[u8]> {
    common::lines(bytes).into_iter().collect()
}

fn outputs(folder: &Folder) -> [Vec<u8>; 2] {
    ["out", "dup"].map(|name| std::fs::read(folder.path(name)).unwrap_or_default())
}

/// Lets it happen at one call after another until a run is through before it comes; at every `step`-th, each use from
/// another one on, or in a soak at every single one.
fn at_every_call(what: &str, step: usize) {
    let step = if std::env::var_os("EVERBLOOM_SOAK").is_some() { 1 } else { step };
    let mut wrongs = Vec::new();
    for (place, usage) in USES.iter().enumerate() {
        let folder = Folder::without_disk();
        (usage.prepare)(usage, &folder);
        let clean = run(usage, &folder, None, 1);
        assert!(clean.status.success(), "{}", error_of(&clean));
        let expected = outputs(&folder);
        let mut calls = BTreeMap::new();
        for number in (place % step..).step_by(step) {
            let folder = Folder::without_disk();
            (usage.prepare)(usage, &folder);
            let hit = run(usage, &folder, Some(&format!("{what} {number}")), number / step % 2 + 1);
            let said = error_of(&hit);
            let call = said.lines().find_map(|line| line.strip_prefix("fault: ")).map(str::to_string);
            if let Some(call) = &call {
                *calls.entry(call.clone()).or_insert(0) += 1;
            }
            let mut complain = |when: &str, problem: String| {
                wrongs.push(format!("{}, {what} {number} ({call:?}), {when}: {problem}; it said: {said}", usage.name));
            };
            if said.contains("panicked") {
                complain("at once", "a panic".into());
            }
            if hit.status.success() {
                wrong(usage, &folder, &expected).into_iter().for_each(|problem| complain("at once", problem));
            } else if what == "fail" && folder.names().iter().any(|name| name.starts_with(".everbloom")) {
                complain("at once", format!("left behind: {:?}", folder.names()));
            }
            let again = run(usage, &folder, None, 1);
            if !again.status.success() {
                complain("then", error_of(&again));
            }
            wrong(usage, &folder, &expected).into_iter().for_each(|problem| complain("then", problem));
            if call.is_none() {
                assert!(hit.status.success(), "{said}");
                break;
            }
        }
        println!("{}, {what}: {calls:?}", usage.name);
        let is_hit = |call: &str| calls.keys().any(|hit| hit.ends_with(call));
        assert!(step > 1 || is_hit("write"), "{calls:?}");
        let others = ["read", "sync", "rename", "open", "lock", "stat", "chmod"];
        assert!(step > 1 || what == "full" || others.iter().all(|call| is_hit(call)), "{calls:?}");
    }
    assert!(wrongs.is_empty(), "{} of these:\n{}", wrongs.len(), wrongs.join("\n"));
}

#[test]
fn a_record_that_was_taken_back_and_not_saved_is_written_again() {
    let folder = Folder::without_disk();
    let usage = Use { name: "ends", arguments: &["dedup", "--exact", "--state", "s", "-o", "out", "two"], ..USES[0] };
    let out = || String::from_utf8(folder.read("out")).expect("text");
    folder.write("two", "a\nb");
    assert!(run(&usage, &folder, None, 1).status.success());
    assert_eq!(out(), "a\nb\n");
    folder.write("two", "a\nbc");
    let cut = run(&usage, &folder, Some("full 0"), 1);
    assert!(out() == "a\n" && !cut.status.success(), "{cut:?}");
    folder.write("two", "a\nb\n");
    assert!(run(&usage, &folder, None, 1).status.success());
    assert_eq!(out(), "a\nb\n");
}

#[test]
fn any_call_may_fail() {
    at_every_call("fail", 1);
}

#[test]
fn the_disk_may_be_full_from_any_call_on() {
    at_every_call("full", 3);
}

#[test]
fn any_call_may_be_the_last() {
    at_every_call("kill", 2);
}

#[test]
fn a_signal_may_come_at_any_call() {
    at_every_call("term", 3);
}
