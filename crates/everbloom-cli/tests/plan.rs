//! `everbloom plan`: what it recommends, and what it refuses.

mod common;

use common::Folder;
use serde_json::Value;

fn plan(folder: &Folder, arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["plan"].into_iter().chain(arguments.iter().copied()).chain(["--format", "json"]).collect();
    serde_json::from_slice(&folder.output_of(&all)).expect("a JSON document")
}

fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let all: Vec<&str> = ["plan"].into_iter().chain(arguments.iter().copied()).collect();
    let done = folder.run(&all);
    let message = String::from_utf8_lossy(&done.stderr).trim().to_string();
    assert_eq!(done.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    message
}

fn kind_of(document: &Value) -> &str {
    document["filter"].as_str().and_then(|spec| spec.split(':').next()).expect("a filter")
}

/// A stream of keys that come back after a few arrivals, and of some that never do.
fn recent(arrivals: u32) -> String {
    (0..arrivals)
        .map(|index| if index % 3 == 0 { format!("new-{index}\n") } else { format!("{}\n", index / 40) })
        .collect()
}

#[test]
fn what_calculators_answer_takes_one_line() {
    let folder = Folder::new();
    let text = String::from_utf8(folder.output_of(&["plan", "--expect", "1e6", "--fpr", "1%"])).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    // The textbook's 9.59 bits a key and 7 hashes, in whole cache lines.
    assert!(text.contains("bloom: 9,593,344 bits, 7 hashes, 1,199,168 bytes"), "{text}");
}

#[test]
fn memory_that_suffices_is_never_spent_on_forgetting() {
    let folder = Folder::new();
    let ample = plan(&folder, &["--memory", "2MiB", "--expect", "1e6", "--fpr", "1%", "--stream", "uniform"]);
    assert!(["bloom", "blocked"].contains(&kind_of(&ample)), "{ample}");
    assert_eq!(ample["predicted_fnr"], 0.0);
    assert_eq!(ample["method"], "closed form");
    let command = |document: &Value| document["command"].as_str().expect("a command").to_string();
    assert!(command(&ample).starts_with("everbloom dedup"), "a stream was described: {}", command(&ample));
    let set = plan(&folder, &["--expect", "1e6", "--fpr", "1%"]);
    assert!(command(&set).starts_with("everbloom build"), "a set was described: {}", command(&set));
    let scarce = plan(&folder, &["--memory", "64KiB", "--expect", "1e6", "--fpr", "1%", "--stream", "uniform"]);
    assert_eq!(kind_of(&scarce), "graceful");
    let (fnr, limit) =
        (scarce["predicted_fnr"].as_f64().expect("a rate"), scarce["limit_fnr"].as_f64().expect("a rate"));
    assert!(limit < fnr && fnr < 1.0, "{fnr} at a limit of {limit}");
    assert!(scarce["runners_up"].as_array().is_some_and(|others| others.len() >= 2));
}

#[test]
fn a_window_is_kept_by_a_filter_with_one() {
    let folder = Folder::new();
    let found = plan(&folder, &["--window", "10000", "--fpr", "1%"]);
    assert!(found["filter"].as_str().is_some_and(|spec| spec.contains("window=10000")), "{found}");
    let beyond = found["fnr_by_lag"].as_array().expect("a curve");
    let inside = beyond.iter().filter(|row| row["lag"].as_f64() < Some(5_000.0));
    assert!(inside.clone().count() > 0 && inside.into_iter().all(|row| row["predicted_fnr"] == 0.0), "{found}");
    let message = refused(&folder, &["--window", "1e6", "--memory", "1KiB", "--fpr", "1%"]);
    assert!(message.contains("a window of at most"), "{message}");
}

#[test]
fn a_sample_of_the_stream_is_learned_from() {
    let folder = Folder::new();
    folder.write("stream.txt", recent(40_000));
    let found = plan(&folder, &["--memory", "2KiB", "--fpr", "1%", "--stream", "stream.txt"]);
    assert_eq!(found["stream"]["arrivals"], 40_000);
    assert_eq!(found["stream"]["distinct"], 13_334 + 1_000);
    assert!(found["predicted_fnr"].as_f64() < Some(0.05), "{found}");
    folder.write("short.txt", "a\nb\na\n");
    let message = refused(&folder, &["--memory", "2KiB", "--stream", "short.txt"]);
    assert!(message.contains("only 1 of its 3 arrivals"), "{message}");
}

#[test]
fn lags_and_importances_are_read_from_files() {
    let folder = Folder::new();
    folder.write("lags.txt", "10 1\n100\t2\n1000,1\n");
    folder.write("importances.txt", "1\n2\n2\n50\n");
    let wanted = ["--memory", "2KiB", "--expect", "20000", "--fpr", "1%", "--stream", "lag:lags.txt"];
    let plain = plan(&folder, &wanted);
    assert!(plain.get("fnr_by_importance").is_none(), "{plain}");
    let weighted: Vec<&str> = wanted.into_iter().chain(["--importance", "importances.txt"]).collect();
    let weighted = plan(&folder, &weighted);
    assert!(weighted["fnr_by_importance"].as_array().is_some_and(|rows| rows.len() > 1), "{weighted}");
}

#[test]
fn the_same_question_has_the_same_answer() {
    let folder = Folder::new();
    let arguments = ["--memory", "4KiB", "--expect", "50000", "--fpr", "3%", "--stream", "zipf:1"];
    assert_eq!(plan(&folder, &arguments), plan(&folder, &arguments));
}

#[test]
fn goals_that_cannot_be_kept_name_one_that_can() {
    let folder = Folder::new();
    folder.write("broken.txt", "ten percent\n");
    folder.write("negative.txt", "10 -1\n");
    let scarce = ["--memory", "4KiB", "--expect", "1e6", "--fpr", "1%", "--stream", "uniform"];
    let impossible: Vec<&str> = scarce.into_iter().chain(["--fnr", "1%"]).collect();
    let message = refused(&folder, &impossible);
    assert!(message.contains("give about") && message.contains("accept"), "{message}");
    for (arguments, expected) in [
        (vec!["--memory", "1b", "--fpr", "1e-9"], "at least 64B"),
        (vec![], "how much memory"),
        (vec!["--stream", "zipf:1"], "--expect"),
        (vec!["--stream", "zipf:eleven"], "zipf:1.1"),
        (vec!["--stream", "lag:"], "lag:FILE"),
        (vec!["--expect", "100", "--memory", "1KiB", "--stream", "lag:broken.txt"], "line 1"),
        (vec!["--expect", "100", "--memory", "1KiB", "--stream", "lag:negative.txt"], "negative"),
        (vec!["--expect", "100", "--memory", "1KiB", "--stream", "nowhere.txt"], "nowhere.txt"),
        (vec!["--expect", "900", "--arrivals", "1000", "--memory", "512b", "--stream", "zipf:2"], "at most"),
        (vec!["--expect", "1000", "--arrivals", "900", "--memory", "1KiB", "--stream", "uniform"], "arrivals"),
        (vec!["--expect", "100", "--importance", "broken.txt"], "line 1"),
        (vec!["--expect", "100", "--filter", "blom"], "blom"),
        (vec!["--window", "100", "--filter", "ranked"], "no window"),
    ] {
        let message = refused(&folder, &arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn a_named_filter_keeps_the_asked_rate_on_every_stream() {
    let folder = Folder::new();
    folder.write("sample.txt", recent(30_000));
    folder.write("lags.txt", "10 1\n1000 2\n");
    for filter in ["ranked", "stable", "ibf1", "age_partitioned"] {
        for stream in ["uniform", "zipf:1", "lag:lags.txt", "sample.txt"] {
            let found = plan(
                &folder,
                &["--filter", filter, "--memory", "4KiB", "--expect", "60000", "--fpr", "2%", "--stream", stream],
            );
            for rate in ["predicted_fpr", "stream_fpr"] {
                assert!(found[rate].as_f64() <= Some(0.02), "{filter} on {stream}: {found}");
            }
        }
    }
}

#[test]
fn what_was_counted_has_a_standard_error_and_what_was_calculated_has_none() {
    let folder = Folder::new();
    let wanted = ["--memory", "4KiB", "--expect", "60000", "--fpr", "2%", "--stream", "uniform"];
    let counted = plan(&folder, &wanted);
    assert_eq!(counted["method"], "simulation");
    assert!(counted["stream_fpr_error"].as_f64() > Some(0.0), "{counted}");
    assert!(counted["predicted_fnr_error"].as_f64() > Some(0.0), "{counted}");
    let all: Vec<&str> = ["plan"].into_iter().chain(wanted).collect();
    let text = String::from_utf8(folder.output_of(&all)).expect("text");
    assert_eq!(text.matches('±').count(), 2, "{text}");
    let calculated = plan(&folder, &["--memory", "4MiB", "--expect", "60000", "--fpr", "2%", "--stream", "uniform"]);
    assert_eq!(calculated["method"], "closed form");
    assert!(calculated["stream_fpr_error"].is_null(), "{calculated}");
}

#[test]
fn shards_are_forecast_as_one_filter() {
    let folder = Folder::new();
    let wanted = ["--memory", "2MiB", "--expect", "1e6", "--fpr", "1%", "--stream", "uniform"];
    for shards in ["2", "8", "64"] {
        let spec = format!("bloom:shards={shards}");
        let found = plan(&folder, &wanted.into_iter().chain(["--filter", &spec]).collect::<Vec<_>>());
        assert!(found["predicted_fpr"].as_f64() <= Some(0.01), "{found}");
        // On average over a stream that fills it, a Bloom filter errs a few times less than at its end.
        let on_stream = found["stream_fpr"].as_f64().expect("a rate");
        assert!((0.001..0.01).contains(&on_stream), "{found}");
    }
}

/// The words of a command as a shell reads them; only specs are quoted here.
fn words(command: &Value) -> Vec<String> {
    command.as_str().expect("a command").split(' ').map(|word| word.trim_matches('\'').to_string()).collect()
}

#[test]
fn the_command_is_what_was_planned_with_every_option_that_was_given() {
    let folder = Folder::new();
    folder.write("in.txt", recent(3_000));
    for (arguments, options) in [
        (vec!["--window", "2000"], vec!["--window 2000", "--fpr 2%"]),
        (vec!["--window", "2000", "--refresh", "no"], vec!["--window 2000 --refresh no"]),
        (vec!["--window", "24h", "--expect", "50k"], vec!["--window 24h", "--expect 50000"]),
        (vec!["--window", "90s", "--memory", "64KiB"], vec!["--window 90s", "--memory 64KiB"]),
        (vec!["--memory", "4KiB", "--seed", "7"], vec!["--memory 4KiB", "--seed 7", "--filter"]),
        (
            vec!["--memory", "65536b", "--expect", "1e6", "--stream", "zipf:1", "--key", "1,2", "--delimiter", ","],
            vec!["--memory 8KiB", "--expect 1000000", "--key '1,2'", "--delimiter ','"],
        ),
        (
            vec!["--expect", "5000", "--memory", "8KiB", "--filter", "bloom"],
            vec!["build KEYS", "--memory 8KiB", "--expect 5000"],
        ),
    ] {
        let all: Vec<&str> = arguments.iter().copied().chain(["--fpr", "2%"]).collect();
        let found = plan(&folder, &all);
        for option in options {
            assert!(found["command"].as_str().is_some_and(|command| command.contains(option)), "{option}: {found}");
        }
        // Run as it is, it uses the filter that was planned.
        let mut command: Vec<String> = words(&found["command"])[1..].to_vec();
        let built = command[0] == "build";
        if built {
            command[1] = "in.txt".into();
        } else {
            // The input has no second field, which does not matter here.
            let more = ["in.txt", "--stats", "stats.json", "-o", "out.txt", "--on-error", "keep"];
            command.extend(more.map(String::from));
        }
        folder.output_of(&command.iter().map(String::as_str).collect::<Vec<_>>());
        let report = match built {
            true => folder.output_of(&["info", "keys.ebf", "--format", "json"]),
            false => folder.read("stats.json"),
        };
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!(report["filter"], found["filter"], "{}", found["command"]);
    }
}

#[test]
fn a_window_of_time_needs_its_lines_or_a_memory() {
    let folder = Folder::new();
    assert!(refused(&folder, &["--window", "24h"]).contains("how many"));
    assert!(refused(&folder, &["--window", "24h", "--expect", "100", "--filter", "aging"]).contains("no window"));
}
