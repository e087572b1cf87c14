//! A broken promise is loud, at the record that breaks it, and a kept one is silent.

mod common;

use common::{Folder, error_of, json_of, lines};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::process::{Output, Stdio};

/// Lines that are all different.
fn distinct(count: u32) -> String {
    (0..count).map(|key| format!("key number {key}\n")).collect()
}

/// A filter for 2,000 lines.
const SMALL: [&str; 7] = ["dedup", "--filter", "bloom", "--fpr", "1%", "--expect", "2000"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

fn stats(folder: &Folder) -> Value {
    json_of(&folder.read("stats.json"))
}

/// The line, from 1, that is new number 2,001: found line by line, with `--flag`.
fn breaking_line(folder: &Folder) -> u64 {
    let done = folder.run(&small(&["--flag", "--on-broken-promise", "ignore", "in.txt"]));
    let marked = lines(&done.stdout).into_iter().enumerate().filter(|(_, line)| line.starts_with(b"new"));
    marked.map(|(place, _)| place as u64 + 1).nth(2000).expect("more than 2,000 new lines")
}

#[track_caller]
fn assert_broken(done: &Output, mention: &str) {
    let error = error_of(done);
    assert_eq!(done.status.code(), Some(3), "{error}");
    assert!(error.contains("promise") && error.contains(mention), "'{error}' does not mention '{mention}'");
}

#[test]
fn a_filter_that_is_filled_beyond_its_plan_says_so_once_and_at_each_doubling() {
    let folder = Folder::new();
    folder.write("in.txt", distinct(9000));
    let done = folder.run(&small(&["in.txt", "--stats", "stats.json"]));
    assert_broken(&done, "planned for 2,000 different lines");
    let at = breaking_line(&folder);
    let stats = stats(&folder);
    assert_eq!((&stats["promise"], &stats["broken_at"]), (&"broken".into(), &at.into()));
    let warnings = error_of(&done);
    // All in one block of the input, so at the end of which is said how many there are by then; never more often than
    // the count doubles.
    assert!((1..=3).contains(&warnings.lines().count()), "{warnings}");
    assert!(warnings.lines().all(|line| line.starts_with("everbloom: warning: ") && line.contains("--memory")));

    let quiet = folder.run(&small(&["in.txt", "--quiet"]));
    assert_eq!((quiet.status.code(), error_of(&quiet)), (Some(3), String::new()));
    assert!(quiet.stdout == done.stdout);
    let ignored = folder.run(&small(&["in.txt", "--on-broken-promise", "ignore", "--stats", "stats.json"]));
    assert_eq!((ignored.status.code(), error_of(&ignored)), (Some(0), String::new()));
    assert!(ignored.stdout == done.stdout && json_of(&folder.read("stats.json"))["promise"] == "broken");
}

#[test]
fn a_promise_that_is_kept_to_the_last_key_is_kept() {
    let folder = Folder::new();
    let input = distinct(2000).repeat(3);
    let output = folder.output_with(&small(&["--stats", "stats.json"]), input.as_bytes());
    assert!(lines(&output).len() > 1950);
    assert_eq!((&stats(&folder)["promise"], &stats(&folder)["broken_at"]), (&"kept".into(), &Value::Null));
    folder.output_with(&["dedup", "--memory", "1KiB", "--fpr", "1%", "--stats", "stats.json"], input.as_bytes());
    assert_eq!(stats(&folder)["promise"], "kept", "filters that forget never fill up");
    let by_hand = ["dedup", "--filter", "reservoir:num_filters=2", "--memory", "1KiB", "--stats", "stats.json"];
    folder.output_with(&by_hand, input.as_bytes());
    assert_eq!(stats(&folder)["promise"], "none");
}

#[test]
fn where_a_promise_breaks_does_not_depend_on_threads_or_restarts() {
    let folder = Folder::new();
    let input = distinct(300_000).repeat(2);
    folder.write("in.txt", &input);
    let filter = ["dedup", "--filter", "bloom", "--fpr", "1%", "--expect", "100000", "--stats", "stats.json"];
    let broken_at = |more: &[&str]| {
        assert_broken(&folder.run(&[&filter[..], &["-o", "out.txt"], more].concat()), "");
        stats(&folder)["broken_at"].as_u64().expect("a record")
    };
    let alone = broken_at(&["in.txt", "--threads", "1"]);
    let whole = folder.read("out.txt");
    assert!((100_001..101_000).contains(&alone), "{alone}");
    for threads in ["2", "8"] {
        assert_eq!(broken_at(&["in.txt", "--threads", threads]), alone);
    }
    // In parts, of which the second breaks it.
    let (mut parts, mut rest) = (Vec::new(), lines(input.as_bytes()).into_iter());
    for (count, code) in [(60_000, 0), (70_000, 3), (470_000, 3)] {
        let part = rest.by_ref().take(count).collect::<Vec<_>>().concat();
        let done = folder.run_with(&[&filter[..], &["--state", "s.ebf"]].concat(), &part);
        assert_eq!(done.status.code(), Some(code), "{}", error_of(&done));
        parts.extend(done.stdout);
    }
    assert!(parts == whole, "a run in three parts differs from one");
    assert_eq!(stats(&folder)["broken_at"], alone);
    let again = folder.run_with(&[&filter[..], &["--state", "s.ebf"]].concat(), b"one more\n");
    assert_broken(&again, "in an earlier run");
    let refused =
        folder.run_with(&[&filter[..], &["--state", "s.ebf", "--on-broken-promise", "fail"]].concat(), b"x\n");
    assert_broken(&refused, "in an earlier run");
    assert_eq!(refused.stdout, b"");
}

#[test]
fn failing_stops_at_once_though_more_may_come() {
    let folder = Folder::new();
    folder.write("in.txt", distinct(9000));
    let at = breaking_line(&folder);
    let mut command = folder.command(&small(&["--on-broken-promise", "fail", "--duplicates", "dup.txt"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("everbloom runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may stop reading before all is written.
    let _ = stdin.write_all(distinct(9000).as_bytes());
    let mut written = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut written).expect("its output");
    let done = child.wait_with_output().expect("an end, while stdin is open");
    drop(stdin);
    assert_broken(&done, "stopped before line");
    assert_eq!(lines(&written).len(), 2000);
    let repeats = folder.read("dup.txt");
    assert_eq!(lines(&written).len() + lines(&repeats).len(), at as usize - 1);
}

#[test]
fn a_run_that_stopped_goes_on_where_it_stopped_and_loses_nothing() {
    let folder = Folder::new();
    folder.write("in.txt", distinct(9000).repeat(2));
    // The other input, so that the stop is in the first of two.
    folder.write("more.txt", distinct(10));
    let whole = folder.run(&small(&["in.txt", "more.txt", "--quiet"])).stdout;
    for threads in ["1", "4"] {
        let state = ["in.txt", "more.txt", "-o", "out.txt", "--state", "s.ebf", "--threads", threads];
        let failing = small(&[&state[..], &["--on-broken-promise", "fail", "--stats", "stats.json"]].concat());
        for _ in 0..2 {
            assert_broken(&folder.run(&failing), "stopped before line");
            let stats = stats(&folder);
            let total = &stats["total"];
            assert_eq!((&total["written"], &stats["broken_at"]), (&2000.into(), &breaking_line(&folder).into()));
            assert_eq!(total["items"].as_u64().map(|items| items + 1), stats["broken_at"].as_u64());
            assert!(folder.read("out.txt") == whole[..folder.read("out.txt").len()]);
        }
        assert_broken(&folder.run(&small(&state)), "is broken at line");
        assert!(folder.read("out.txt") == whole, "{threads} threads: stopped and resumed differs from one run");
        std::fs::remove_file(folder.path("s.ebf")).expect("a state");
    }
}

#[test]
fn lines_without_a_key_do_not_shift_the_line_that_breaks_a_promise() {
    let folder = Folder::new();
    let input: String =
        (0..6000).map(|key| if key % 3 == 0 { "none\n".into() } else { format!("a\t{key}\n") }).collect();
    folder.write("in.tsv", &input);
    let arguments = small(&["--key", "2", "--on-error", "keep", "in.tsv", "--flag"]);
    let all = folder.run(&[&arguments[..], &["--quiet", "--stats", "stats.json"]].concat()).stdout;
    let marked = lines(&all).into_iter().enumerate().filter(|(_, line)| line.starts_with(b"new"));
    let at = marked.map(|(place, _)| place).nth(2000).expect("a new line too many");
    assert_eq!(stats(&folder)["broken_at"], at as u64 + 1);
    let stopped = folder.run(&[&arguments[..], &["--on-broken-promise", "fail"]].concat());
    assert_broken(&stopped, "stopped before line");
    assert!(stopped.stdout == lines(&all)[..at].concat());
}

#[test]
fn a_busy_window_of_time_is_told_and_stops_where_it_must() {
    let folder = Folder::new();
    let line = |arrival: u32| format!("{}.{:02}\tkey-{arrival}\n", 1_700_000_000 + arrival / 100, arrival % 100);
    let input: String = (0..5000).map(line).collect();
    let window = ["dedup", "--key", "2", "--time", "1", "--window", "1h", "--expect", "2000", "--fpr", "1%"];
    let done = folder.run_with(&[&window[..], &["--stats", "stats.json"]].concat(), input.as_bytes());
    assert_broken(&done, "planned for 2,000 lines within 1h");
    assert_eq!((&stats(&folder)["promise"], &stats(&folder)["broken_at"]), (&"broken".into(), &2001.into()));
    let failing = ["--on-broken-promise", "fail", "--flag", "--state", "s.ebf"];
    for _ in 0..2 {
        let stopped = folder.run_with(&[&window[..], &failing].concat(), input.as_bytes());
        assert_broken(&stopped, "stopped before line 2,001");
        let written = lines(&stopped.stdout).len();
        assert!(written == 2000 || written == 0, "{written} lines");
    }
    // The same number, spread over more than the window, is as planned.
    let line = |arrival: u32| format!("{}\tkey-{arrival}\n", 1_700_000_000 + arrival * 2);
    let spread: String = (0..5000).map(line).collect();
    folder.output_with(&[&window[..], &["--stats", "stats.json"]].concat(), spread.as_bytes());
    assert_eq!(stats(&folder)["promise"], "kept");
}

#[test]
fn a_file_for_too_few_keys_is_told_and_not_written_if_it_must_not_be() {
    let folder = Folder::new();
    folder.write("in.txt", distinct(9000));
    let build = ["build", "in.txt", "-o", "f.ebf", "--filter", "bloom", "--fpr", "1%", "--expect", "2000"];
    let failed = folder.run(&[&build[..], &["--on-broken-promise", "fail"]].concat());
    assert_broken(&failed, "leave --expect out");
    assert_eq!(folder.names(), ["in.txt"]);
    assert_broken(&folder.run(&build), "planned for 2,000 keys");
    let quiet = folder.run(&[&build[..], &["-q"]].concat());
    assert_eq!((quiet.status.code(), error_of(&quiet)), (Some(3), String::new()));
    folder.output_of(&[&build[..], &["--on-broken-promise", "ignore"]].concat());
    let text = String::from_utf8(folder.output_of(&["info", "f.ebf"])).expect("text");
    assert!(text.contains("at most 1 in 100 (1 %) of keys") && text.contains("up to 2,000 keys"), "{text}");
    assert!(
        text.contains("no: more keys came than that") && text.contains("every key that was inserted is found"),
        "{text}"
    );
    let document = json_of(&folder.output_of(&["info", "f.ebf", "--format", "json"]));
    assert_eq!((&document["standing"], &document["forgets"]), (&"broken".into(), &false.into()));

    folder.output_of(&["build", "in.txt", "-o", "f.ebf", "--filter", "bloom", "--fpr", "1%"]);
    let document = json_of(&folder.output_of(&["info", "f.ebf", "--format", "json"]));
    assert_eq!((&document["standing"], &document["promised_items"]), (&"kept".into(), &9000.into()));
    let stable = ["build", "in.txt", "-o", "f.ebf", "--filter", "stable", "--memory", "1KiB", "--fpr", "1%"];
    let built = folder.run(&stable);
    assert!(built.status.success() && error_of(&built).contains("stable forgets: "), "{}", error_of(&built));
    let text = String::from_utf8(folder.output_of(&["info", "f.ebf"])).expect("text");
    assert!(text.contains("however many come") && text.contains("may be taken for new"), "{text}");
}

#[test]
fn merging_keeps_the_promise_if_the_keys_fit_and_says_so_if_not() {
    let folder = Folder::new();
    let keys = |from: u32, count: u32| (from..from + count).map(|key| format!("{key}\n")).collect::<String>();
    for (name, from, count) in [("a", 0, 2000), ("half", 0, 1000), ("b", 5000, 2000)] {
        let build = ["build", "-o", name, "--filter", "bloom", "--fpr", "1%", "--expect", "2000"];
        folder.output_with(&build, keys(from, count).as_bytes());
    }
    folder.output_of(&["merge", "a", "half", "-o", "kept"]);
    let broken = folder.run(&["merge", "a", "b", "-o", "ab"]);
    assert_broken(&broken, "build all of them with --expect 4");
    let document = json_of(&folder.output_of(&["info", "ab", "--format", "json"]));
    assert_eq!(document["standing"], "broken", "it is written all the same");
    let failed = folder.run(&["merge", "a", "b", "-o", "never", "--on-broken-promise", "fail"]);
    assert_broken(&failed, "keys are inside");
    assert!(!folder.names().contains(&"never".to_string()));
    folder.output_of(&["merge", "a", "b", "-o", "ab", "--on-broken-promise", "ignore"]);
    folder.output_of(&["merge", "a", "b", "-o", "both", "--intersection"]);
}

#[test]
fn counters_that_are_full_break_the_promise() {
    let folder = Folder::new();
    folder.write("in.txt", format!("{}{}", distinct(100), "often\n".repeat(400)));
    let filter = ["--filter", "spectral:cell_bits=8", "--fpr", "1%", "--expect", "200"];
    let built = folder.run(&[&["build", "in.txt", "-o", "f.ebf"], &filter[..]].concat());
    assert_broken(&built, "counters are full");
    let done = folder.run(&[&["dedup", "in.txt", "--stats", "stats.json"], &filter[..]].concat());
    assert_broken(&done, "counters are full");
    assert_eq!(stats(&folder)["promise"], "broken");
    folder.write("in.txt", format!("{}{}", distinct(100), "often\n".repeat(200)));
    folder.output_of(&[&["build", "in.txt", "-o", "f.ebf"], &filter[..]].concat());
}

#[test]
fn a_comparison_marks_who_broke_the_promise() {
    let folder = Folder::new();
    folder.write("in.txt", distinct(9000));
    let compare = ["compare", "in.txt", "--memory", "1KiB", "--fpr", "1%", "--filter", "bloom", "--filter", "stable"];
    let text = String::from_utf8(folder.output_of(&compare)).expect("text");
    assert!(text.contains("% broken") && text.contains("the promise of 1 (bloom) is broken at arrival"), "{text}");
    let document = json_of(&folder.output_of(&[&compare[..], &["--format", "json"]].concat()));
    let rows = document["filters"].as_array().expect("rows");
    assert_eq!((&rows[0]["promise"], &rows[1]["promise"]), (&"broken".into(), &"kept".into()));
    assert!(rows[0]["broken_at"].as_u64().is_some_and(|at| at < 9000) && rows[1]["broken_at"].is_null());
}

#[test]
fn the_summary_is_true_in_every_mode() {
    let folder = Folder::new();
    folder.write("in.txt", "a\nb\na\nc\na\n");
    let summary = |more: &[&str]| {
        let done = folder.run(&[&["dedup", "in.txt", "--verbose"], more].concat());
        assert!(done.status.success());
        error_of(&done)
    };
    let said = "No line was dropped by mistake and no repeat got through";
    assert!(summary(&["--exact"]).contains(&format!("5 lines: 3 new, 2 repeats. {said}")), "{}", summary(&["--exact"]));
    let bloom = ["--filter", "bloom", "--fpr", "1%", "--expect", "1000"];
    let all = [
        (
            &[][..],
            "5 lines: 3 new, 2 repeats. At most 1 in 100 new lines was dropped by mistake (promised 1 %); no repeat got through.",
        ),
        (&["--count"], "5 lines: 3 new, 2 repeats. At most 1 in 100 new lines was taken for a repeat by mistake"),
        (&["--flag"], "5 lines, 5 written with a mark: 3 new, 2 repeats."),
        (&["--only-duplicates"], "5 lines, 2 written, all repeats."),
    ];
    for (mode, wanted) in all {
        let text = summary(&[&bloom[..], mode].concat());
        assert!(text.starts_with(&format!("everbloom: {wanted}")) && !text.contains("num_bits"), "{mode:?}: {text}");
    }
    assert!(summary(&["--window", "10"]).contains("no repeat within 10 lines got through"));
    let silent = folder.run(&["dedup", "in.txt", "--quiet"]);
    assert_eq!(error_of(&silent), "");
    common::assert_refused(&folder.run(&["dedup", "in.txt", "--quiet", "--verbose"]), "--verbose");
}

#[test]
fn what_got_through_a_filter_that_forgets_is_told() {
    let folder = Folder::new();
    let input = distinct(5000).repeat(4);
    let done = folder.run_with(&["dedup", "--memory", "1KiB", "--fpr", "1%", "--verbose"], input.as_bytes());
    // Every line comes back after 4,999 others, far longer than 1 KiB remembers most of them; lags are told by powers of two.
    let text = error_of(&done);
    let (_, after) = text.split_once("repeats were missed").expect("what was missed");
    assert!(after.starts_with(", mostly ones last seen more than 4,000 lines ago"), "{text}");
    let through = (lines(&done.stdout).len() - 5000) as f64 / 15_000.0;
    let told =
        text.split_once("about ").and_then(|(_, rest)| rest.split_once(" of 100 repeats")?.0.parse::<f64>().ok());
    // At least one key in four is followed: four standard errors of a rate among 1,250 keys, and half a hundredth for rounding.
    let tolerance = 4.0 * (through * (1.0 - through) / 1250.0).sqrt() + 0.005;
    assert!((told.expect(&text) / 100.0 - through).abs() < tolerance, "{text}: {through}");
}

#[test]
fn help_names_the_exit_codes() {
    let folder = Folder::new();
    for command in ["dedup", "build", "merge"] {
        let help = String::from_utf8(folder.output_of(&[command, "--help"])).expect("text");
        assert!(help.contains("3 the filter's promise is broken") && help.contains("--on-broken-promise"), "{help}");
    }
}
