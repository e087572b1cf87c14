//! `dedup --audit`: what it measures is so, whatever threads, restarts and windows there are.

mod common;

use common::{Folder, assert_refused, error_of, json_of, lines, stream};
use everbloom::Goal;
use everbloom_all::KINDS;
use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

/// Both rates of lines that are marked, counted: (fpr, fnr).
fn counted(marked: &[u8]) -> (f64, f64) {
    let mut seen = HashSet::new();
    let (mut new, mut repeats) = ((0.0, 0.0), (0.0, 0.0));
    for line in lines(marked) {
        let (mark, key) = line.split_at(4);
        match seen.insert(key) {
            true => new = (new.0 + 1.0, new.1 + f64::from(u8::from(mark == b"dup\t"))),
            false => repeats = (repeats.0 + 1.0, repeats.1 + f64::from(u8::from(mark == b"new\t"))),
        }
    }
    (new.1 / new.0, repeats.1 / repeats.0)
}

#[track_caller]
fn assert_measured(stats: &serde_json::Value, (fpr, fnr): (f64, f64)) {
    let audit = &stats["audit"];
    assert_eq!(audit["one_in"], 1, "{audit}");
    for (name, truth) in [("measured_fpr", fpr), ("measured_fnr", fnr)] {
        for end in ["rate", "low", "high"] {
            let found = audit[name][end].as_f64().expect("a rate");
            assert!((found - truth).abs() < 1e-9, "{name}, {end}: {found} where {truth} is counted");
        }
    }
}

const SMALL: [&str; 6] = ["--filter", "ranked", "--memory", "8KiB", "--fpr", "1%"];

#[test]
fn what_is_full_is_the_filter_without_its_audit() {
    let folder = Folder::new();
    folder.write("in.txt", stream(2, 5000, 4000));
    let said = error_of(&folder.run(&["dedup", "--audit", "--memory", "1KiB", "in.txt"]));
    assert!(said.contains("(1.0 KiB): exact up to here;"), "{said}");
}

#[test]
fn an_audit_measures_what_is_counted_and_changes_nothing() {
    let folder = Folder::new();
    folder.write("in.txt", stream(1, 50_000, 30_000));
    let call = |more: &[&'static str]| [&["dedup", "--flag", "in.txt"], &SMALL[..], more].concat();
    let plain = folder.output_of(&call(&[]));
    for threads in ["1", "3"] {
        let audited = folder.run(&call(&["--audit=8MiB", "--stats", "s.json", "-j", threads]));
        let said = error_of(&audited);
        assert!(audited.status.success() && audited.stdout == plain, "{said}");
        assert!(said.lines().count() == 1 && said.contains("the audit takes 8.0 MiB"), "{said}");
        assert_measured(&json_of(&folder.read("s.json")), counted(&plain));
    }
    // What it takes unasked is said, too; with a sample the truth is within four standard deviations: twice the interval.
    let summary = error_of(&folder.run(&call(&["--audit", "--stats", "s.json", "-v"])));
    assert!(summary.contains("the audit takes 256.0 KiB") && summary.contains("Measured on"), "{summary}");
    let (stats, (_, fnr)) = (json_of(&folder.read("s.json")), counted(&plain));
    let found = &stats["audit"]["measured_fnr"];
    let end = |name: &str| found[name].as_f64().expect("a rate");
    assert!((end("rate") - fnr).abs() <= end("high") - end("low"), "{found} where {fnr} is counted");
    assert!(stats["audit"]["by_lag"].as_array().is_some_and(|lags| lags.len() > 5), "{stats}");
}

#[test]
fn an_audit_goes_on_with_its_state_after_kills() {
    let folder = Folder::new();
    folder.write("in.txt", stream(2, 120_000, 60_000));
    let arguments = [&["dedup", "--flag", "in.txt", "-o", "out.txt", "--state", "s.ebf"], &SMALL[..]].concat();
    let first = [&arguments[..], &["--audit=16MiB", "--checkpoint", "1ms", "-q"]].concat();
    for wait in [5, 20, 40, 60] {
        let mut command = folder.command(&first);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("everbloom runs");
        // Only what began is gone on with; on a busy machine that takes a while.
        while !std::fs::metadata(folder.path("s.ebf")).is_ok_and(|state| state.len() > 0)
            && child.try_wait().expect("a child").is_none()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().expect("a signal");
        child.wait().expect("an end");
    }
    // The state knows that it is audited.
    let last = folder.run(&[&arguments[..], &["--stats", "stats.json"]].concat());
    assert!(last.status.success(), "{}", error_of(&last));
    assert_measured(&json_of(&folder.read("stats.json")), counted(&folder.read("out.txt")));
    let info = String::from_utf8(folder.run(&["info", "s.ebf"]).stdout).expect("text");
    assert!(info.contains("measured fnr") && info.contains("120,000 lines"), "{info}");
    let json = json_of(&folder.output_of(&["info", "s.ebf", "--format", "json"]));
    assert_measured(&json, counted(&folder.read("out.txt")));
    assert_refused(&folder.run(&[&arguments[..], &["--audit=1MiB"]].concat()), "--audit 16MiB");
}

#[test]
fn keys_that_were_made_to_be_mistaken_are_noticed_by_the_audit_alone() {
    let folder = Folder::new();
    let options = ["--filter", "bloom", "--expect", "2000", "--fpr", "1%"];
    let mut text: String = (0..1500).fold(String::new(), |text, key| text + &format!("first {key}\n"));
    folder.write("first.txt", &text);
    folder.output_of(&[&["dedup", "first.txt", "-o", "unique.txt", "--stats", "s.json"], &options[..]].concat());
    let spec = json_of(&folder.read("s.json"))["filter"].as_str().expect("a spec").to_string();
    let mut filter = Goal::new().filter(&spec).build_among(KINDS).expect("a filter");
    (0..1500).for_each(|key| assert!(filter.insert(format!("first {key}").as_str()) || key > 0));
    // Whoever knows the seed sends only new lines that the filter takes for repeats: it never sees too many new ones.
    let made = (0..1_000_000).map(|key| format!("made {key}")).filter(|line| filter.contains(line.as_str()));
    made.take(1000).for_each(|line| text += &(line + "\n"));
    folder.write("all.txt", &text);
    let call = |more: &[&'static str]| [&["dedup", "all.txt", "-o", "unique.txt"], &options[..], more].concat();
    assert!(folder.run(&call(&[])).status.success(), "nothing is noticed without an audit");
    let audited = folder.run(&call(&["--audit", "--stats", "s.json"]));
    let said = error_of(&audited);
    assert_eq!(audited.status.code(), Some(3), "{said}");
    assert!(said.contains("the promise is broken, as the audit shows: 40 % of new lines"), "{said}");
    assert_eq!(json_of(&folder.read("s.json"))["promise"], "broken");
    let ignored = folder.run(&call(&["--audit", "--on-broken-promise", "ignore"]));
    assert!(ignored.status.success(), "{}", error_of(&ignored));
    let failed = folder.run(&call(&["--audit", "--on-broken-promise", "fail"]));
    assert!(
        failed.status.code() == Some(3) && error_of(&failed).contains("as the audit shows"),
        "{}",
        error_of(&failed)
    );
}

#[test]
fn a_window_of_time_is_audited_by_its_own_promise() {
    let folder = Folder::new();
    let lines = stream(3, 40_000, 3000);
    let timed =
        lines.lines().enumerate().map(|(at, line)| format!("{}\t{line}\n", 1_700_000_000 + at)).collect::<String>();
    folder.write("in.txt", timed);
    for refresh in ["yes", "no"] {
        let run = folder.run(&[
            "dedup",
            "in.txt",
            "-o",
            "out.txt",
            "-k",
            "2",
            "--time",
            "1",
            "--window",
            "1000s",
            "--expect",
            "2000",
            "--refresh",
            refresh,
            "--audit=4MiB",
            "--stats",
            "s.json",
        ]);
        assert!(run.status.success(), "{}", error_of(&run));
        let audit = json_of(&folder.read("s.json"))["audit"].clone();
        assert_eq!(audit["measured_fnr"]["rate"], 0.0, "{refresh}: nothing within the window is missed: {audit}");
        // Far more often than there are keys, a line is new to the window.
        assert!(audit["measured_fpr"]["of"].as_f64().is_some_and(|of| of > 6000.0), "{refresh}: {audit}");
        assert!(audit["measured_fpr"]["rate"].as_f64().is_some_and(|rate| rate < 0.005), "{refresh}: {audit}");
    }
}

#[test]
fn few_lines_or_none_are_told_without_claims() {
    let folder = Folder::new();
    folder.write("none.txt", "");
    folder.write("few.txt", (0..40).fold(String::new(), |text, line| text + &format!("{}\n", line % 10)));
    let said = error_of(&folder.run(&["dedup", "--audit", "-v", "none.txt"]));
    assert!(said.contains("0 lines") && !said.contains("Measured"), "{said}");
    // A window of five lines remembers some more: that is no broken promise.
    let window = folder.run(&["dedup", "--audit", "-v", "--window", "5", "few.txt"]);
    assert!(window.status.success(), "{}", error_of(&window));
    // Of ten keys that come for ever, next to none is in the sample in the end.
    folder.write("many.txt", (0..600_000).fold(String::new(), |text, line| text + &format!("{}\n", line % 10)));
    let said = error_of(&folder.run(&["dedup", "--audit", "-v", "--filter", "ranked", "-m", "1KiB", "many.txt"]));
    assert!(said.contains("1 in 128") && !said.contains("was no new line,"), "{said}");
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let folder = Folder::new();
    folder.write("in.txt", "a\nb\na\n");
    assert_refused(&folder.run(&["dedup", "in.txt", "--audit=1B"]), "try 1MiB");
    assert_refused(&folder.run(&["dedup", "in.txt", "--audit=much"]), "--audit");
    assert_refused(&folder.run(&["dedup", "--audit", "1MiB", "in.txt"]), "write --audit=1MiB");
    assert_refused(&folder.run(&["dedup", "in.txt", "--audit", "--counts"]), "--counts");
    folder.output_of(&["dedup", "in.txt", "-o", "out.txt", "--state", "s.ebf"]);
    let late = folder.run(&["dedup", "in.txt", "-o", "out.txt", "--state", "s.ebf", "--audit"]);
    assert_refused(&late, "the state was saved without --audit");
}

#[test]
fn what_is_planned_from_a_state_has_its_keys() {
    let folder = Folder::new();
    let lines: String = stream(5, 20_000, 6_000).lines().enumerate().map(|(at, key)| format!("{at} {key}\n")).collect();
    folder.write("in.txt", lines);
    let keys = ["-k", "2", "-d", " "];
    folder.run(&[&["dedup", "in.txt", "-o", "out.txt", "--state", "s.ebf", "--audit"], &SMALL[..], &keys].concat());
    let plan = folder.output_of(&["plan", "--memory", "16KiB", "--fpr", "1%", "--from-state", "s.ebf"]);
    let plan = String::from_utf8(plan).expect("text");
    assert!(plan.contains("--key 2 --delimiter ' '"), "{plan}");
}

#[test]
fn a_plan_is_made_anew_from_what_the_audit_saw() {
    let folder = Folder::new();
    folder.write("in.txt", stream(5, 60_000, 20_000));
    folder.output_of(&["dedup", "in.txt", "-o", "plain.txt", "--state", "plain.ebf"]);
    assert_refused(&folder.run(&["plan", "--from-state", "plain.ebf", "--memory", "16KiB"]), "dedup --audit");
    folder.write("few.txt", "a\nb\na\n");
    folder.run(&["dedup", "few.txt", "-o", "few-out.txt", "--state", "few.ebf", "--audit"]);
    assert_refused(&folder.run(&["plan", "--from-state", "few.ebf"]), "only 1 repeats");
    folder.run(&[&["dedup", "in.txt", "-o", "out.txt", "--state", "s.ebf", "--audit"], &SMALL[..]].concat());
    let plan = |how: [&str; 2]| {
        let call = [&["plan", "--memory", "16KiB", "--fpr", "1%", "--format", "json"], &how[..]].concat();
        json_of(&folder.output_of(&call))
    };
    let (audited, sampled) = (plan(["--from-state", "s.ebf"]), plan(["--stream", "in.txt"]));
    let distinct = |plan: &serde_json::Value| plan["stream"]["distinct"].as_f64().expect("a number");
    assert_eq!(audited["stream"]["arrivals"], 60_000, "{audited}");
    // One key in about sixteen is followed: four standard deviations of that.
    let sigma = (15.0 / distinct(&sampled)).sqrt();
    assert!((distinct(&audited) / distinct(&sampled) - 1.0).abs() < 4.0 * sigma, "{audited} and {sampled}");
    let number = |plan: &serde_json::Value, name: &str| plan[name].as_f64().expect("a number");
    let rows = sampled["fnr_by_lag"].as_array().expect("rows").clone();
    let at = |row: usize| number(&rows[row.min(rows.len() - 1)], "predicted_fnr");
    let share = |row: usize| number(&rows[row], "share");
    // The followed keys have the shares of the classes but for chance: four standard deviations of a rate among so many.
    let mean: f64 = (0..rows.len()).map(|row| share(row) * at(row)).sum();
    let spread: f64 = (0..rows.len()).map(|row| share(row) * (at(row) - mean).powi(2)).sum();
    let info = json_of(&folder.output_of(&["info", "s.ebf", "--format", "json"]));
    let by_chance = 4.0 * (spread / number(&info["audit"], "followed_keys")).sqrt();
    // That of what was learned from an audit allows for classes of lags that double.
    let stated: f64 = [&audited, &sampled].iter().map(|plan| number(plan, "predicted_fnr_error")).sum();
    let (one, other) = (number(&audited, "predicted_fnr"), number(&sampled, "predicted_fnr"));
    let tolerance = by_chance + stated;
    assert!((one - other).abs() < tolerance && tolerance < 0.5 * other, "{one} and {other}, ± {tolerance}");
}

#[test]
fn audits_of_one_seed_are_merged_with_their_states() {
    let folder = Folder::new();
    let filter = ["--filter", "bloom", "--memory", "8KiB", "--expect", "3000", "--on-broken-promise", "ignore"];
    let state = |name: &str, seed: u64, more: &[&str]| {
        folder.write("in.txt", stream(seed, 2000, 1500));
        let arguments = [&["dedup", "in.txt", "-o", "out.txt", "-q", "--state", name], &filter[..], more].concat();
        let output = folder.run(&arguments);
        assert!(output.status.success(), "{}", error_of(&output));
    };
    let merged = |names: [&str; 2]| {
        let output = folder.run(&["merge", names[0], names[1], "-o", "merged.ebf", "--on-broken-promise", "ignore"]);
        assert!(output.status.success(), "{}", error_of(&output));
        (error_of(&output), json_of(&folder.output_of(&["info", "merged.ebf", "--format", "json"])))
    };
    for (name, seed) in [("a1", 1), ("a2", 2)] {
        state(name, seed, &["--audit"]);
    }
    let (said, document) = merged(["a1", "a2"]);
    assert!(document["audit"].is_null() && said.contains("--audit-seed"), "the remedy is named: {said}");
    for (name, seed) in [("b1", 1), ("b2", 2)] {
        state(name, seed, &["--audit", "--audit-seed", "7"]);
    }
    let (said, document) = merged(["b1", "b2"]);
    assert_eq!((said.as_str(), &document["audit"]["arrivals"]), ("", &4000.into()), "{document}");

    let run = |more: &[&str]| folder.run(&[&["dedup", "in.txt", "-o", "out2.txt", "-q"], more].concat());
    assert_refused(&run(&["--audit-seed", "7"]), "--audit");
    assert_refused(
        &run(&["--state", "b1", "--audit", "--audit-seed", "8"]),
        "saved with --audit-seed 7, not --audit-seed 8",
    );
    assert_refused(&run(&["--state", "a1", "--audit", "--audit-seed", "7"]), "saved without --audit-seed");
    state("b1", 1, &["--audit", "--audit-seed", "7"]);
}
