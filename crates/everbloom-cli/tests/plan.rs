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
fn what_calculators_answer_is_there() {
    let text = text_of(&Folder::new(), &["--expect", "1e6", "--fpr", "1%"]);
    // The textbook's 9.59 bits a key and 7 hashes, in whole cache lines.
    assert!(text.contains("9,593,344 bits, 1,199,168 bytes, 7 hashes"), "{text}");
}

fn text_of(folder: &Folder, arguments: &[&str]) -> String {
    String::from_utf8(folder.output_of(&[&["plan"], arguments].concat())).expect("text")
}

#[test]
fn a_plan_begins_with_a_sentence_and_ends_with_lines_to_paste() {
    let folder = Folder::new();
    folder.write("stream.txt", recent(40_000));
    let sentence = |arguments: &[&str]| {
        let text = text_of(&folder, arguments);
        let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        for part in ["\ntake ", "\nfalse positives ", "\ncommand line\n  everbloom ", "\nRust\n  let mut "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let lines = text.lines().take_while(|line| *line != "command line");
        assert!(lines.into_iter().all(|line| line.chars().count() <= 100), "{text}");
        first.join(" ")
    };
    assert_eq!(
        sentence(&["--window", "8e6", "--fpr", "0.1%"]),
        "With 29.5 MiB you can drop the repeats from a stream that never ends: of 1,000 new lines at most 1 is dropped by \
         mistake; every repeat within 8,000,000 lines is found."
    );
    assert_eq!(
        sentence(&["--expect", "1e6", "--fpr", "1%"]),
        "With 1.2 MiB you can remember 1,000,040 keys: of 100 other keys at most 1 is taken for one of them by mistake; none \
         of them is ever missed."
    );
    let learned = sentence(&["--memory", "512B", "--fpr", "1%", "--stream", "stream.txt"]);
    assert!(learned.starts_with("With 512 bytes you can ") && learned.contains("no repeat is expected"), "{learned}");
    let described = sentence(&["--memory", "1KiB", "--fpr", "1%", "--expect", "20k", "--stream", "zipf:1"]);
    assert!(
        described.contains("of 100 new lines at most 1 is dropped") && described.contains(" repeats get"),
        "{described}"
    );
    let timed = sentence(&["--window", "24h", "--expect", "50k"]);
    assert!(timed.contains("with up to 50,000 lines in 1d") && timed.ends_with("every repeat within 1d is found."));
}

#[test]
fn rates_that_no_hash_justifies_are_refused_and_never_printed() {
    let folder = Folder::new();
    for command in [&["plan", "--expect", "1e6"][..], &["dedup", "--expect", "1e6"], &["compare", "--memory", "1MiB"]] {
        let refused = folder.run(&[command, &["--fpr", "9e-16"]].concat());
        common::assert_refused(&refused, "at least 1e-15");
        common::assert_refused(&refused, "try 1e-12");
    }
    let text =
        text_of(&folder, &["--filter", "bloom:num_bits=8388608,num_hashes=60", "--expect", "100", "--memory", "1MiB"]);
    assert!(!text.contains("e-2") && !text.contains("e-3"), "{text}");
    let on_stream = [
        "--filter",
        "bloom:num_bits=8388608,num_hashes=60",
        "--expect",
        "100",
        "--memory",
        "1MiB",
        "--stream",
        "uniform",
    ];
    let text = text_of(&folder, &on_stream).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1e-15 at most") && text.contains("about < 1e-15 on this stream"), "{text}");
}

/// Runs the very tokens that `plan` prints for Rust.
macro_rules! is_printed_and_runs {
    ($folder:expr, $arguments:expr, $result:ident, $($code:tt)*) => {{
        let found = plan($folder, $arguments);
        let lines = found["commands"][1]["lines"].as_str().expect("lines for Rust").to_string();
        assert_eq!(found["commands"][1]["surface"], "rust");
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeezed(&lines), squeezed(stringify!($($code)*)), "{lines}");
        let run = || -> Result<bool, everbloom::Error> {
            $($code)*
            Ok($result)
        };
        assert_eq!(run(), Ok(true), "{lines}");
    }};
}

#[test]
fn the_lines_for_rust_compile_and_run() {
    let folder = &Folder::new();
    is_printed_and_runs!(folder, &["--expect", "1000", "--fpr", "1%"], is_inside,
        let mut keys = everbloom::Goal::new().filter("blocked:num_bits=10240").fpr("1%").expected_items(1000u64).build()?;
        keys.insert("a key");
        let is_inside = keys.contains("a key");
    );
    is_printed_and_runs!(folder, &["--window", "1000", "--fpr", "1%", "--seed", "7"], is_new,
        let mut seen = everbloom::Goal::new()
            .filter("age_partitioned:window=1000,num_blocks=11,num_hashes=7,refresh=yes,advance=arrivals")
            .fpr("1%")
            .hashing(everbloom::Hashing::seeded(7))
            .build()?;
        let is_new = seen.insert("a line");
    );
    is_printed_and_runs!(folder, &["--window", "24h", "--expect", "50k", "--fpr", "2%"], is_new,
        let mut seen = everbloom::TimeWindow::new("1d", &everbloom::Goal::new().fpr("2%").expected_items(50000u64))?;
        let is_new = seen.insert("a line", 1_700_000_000_000_000);
    );
    is_printed_and_runs!(folder, &["--filter", "stable:cell_max=3", "--memory", "4KiB", "--importance", "linear"], is_new,
        let mut seen = everbloom::Goal::new()
            .filter("stable:num_cells=16384,cell_max=3,num_hashes=7,decrements=43,decrement=run,layout=blocked,update=distinct")
            .memory("4KiB")
            .build_among(everbloom_all::KINDS)?;
        let is_new = seen.observe("a line", everbloom::Importance::new(3, 50)?).is_distinct();
    );
}

/// Plans whose lines for Python and Redis are kept in a file, which the tests of both run.
const PASTED: &[&str] = &[
    "--expect 1000 --fpr 1%",
    "--memory 64KiB --fpr 0.1% --expect 1M",
    "--memory 1000B --fpr 2%",
    "--window 1000 --fpr 1% --seed 7",
    "--window 1000 --refresh no",
    "--window 24h --expect 50k --fpr 2%",
    "--window 24h --expect 50k --refresh no",
    "--memory 4KiB --fpr 1% --importance linear",
    "--filter stable:cell_max=3 --memory 4KiB --importance linear",
    "--filter counting --expect 5000",
    "--filter redisbloom --expect 1000 --fpr 1% --seed 3",
    "--filter exact --expect 1000",
];

#[test]
fn the_lines_for_python_and_redis_are_those_that_their_tests_run() {
    let folder = Folder::new();
    let mut text = String::new();
    for arguments in PASTED {
        let found = plan(&folder, &arguments.split(' ').collect::<Vec<_>>());
        let lines = |surface: &str| {
            let commands = found["commands"].as_array().expect("commands").iter();
            commands.filter(|command| command["surface"] == surface).map(|command| command["lines"].clone()).next()
        };
        let row = serde_json::json!({ "plan": arguments, "python": lines("python"), "redis": lines("redis") });
        text.push_str(&format!("{row}\n"));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan_lines.jsonl");
    if std::env::var_os("EVERBLOOM_BLESS").is_some() {
        std::fs::write(&path, &text).expect("a file");
    }
    let kept = std::fs::read_to_string(&path).expect("the file of lines");
    assert_eq!(kept, text, "EVERBLOOM_BLESS=1 writes {} anew; then run the tests of both", path.display());
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
    let weighted_with: Vec<&str> = wanted.into_iter().chain(["--importance", "importances.txt"]).collect();
    let weighted = plan(&folder, &weighted_with);
    assert!(weighted["fnr_by_importance"].as_array().is_some_and(|rows| rows.len() > 1), "{weighted}");
    // The largest of the file is the largest of the command.
    folder.write("importances.txt", "0.5\n2\n12.5\n");
    let command = plan(&folder, &weighted_with)["command"].to_string();
    assert!(command.contains("--importance FIELD --importance-max 12.5"), "{command}");
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
        (vec!["--expect", "100", "--importance", "3"], "linear, exponential, or a file"),
        (vec!["--expect", "100", "--importance", "linear", "--importance-max", "9"], "--stream FILE"),
        (vec!["--expect", "100", "--importance-max", "9"], "--importance"),
        (vec!["--expect", "2e18", "--stream", "uniform"], "--expect"),
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
        (vec!["--window", "24h", "--expect", "50k"], vec!["--window 1d", "--expect 50000"]),
        (vec!["--window", "90s", "--memory", "64KiB"], vec!["--window 1m30s", "--memory 64KiB"]),
        (vec!["--memory", "4KiB", "--seed", "7"], vec!["--memory 4KiB", "--seed 7", "--filter"]),
        (
            vec!["--memory", "65536b", "--expect", "1e6", "--stream", "zipf:1", "--key", "1,2", "--delimiter", ","],
            vec!["--memory 8KiB", "--expect 1000000", "--key '1,2'", "--delimiter ','"],
        ),
        (
            vec!["--expect", "5000", "--memory", "8KiB", "--filter", "bloom"],
            vec!["everbloom build ", "--memory 8KiB", "--expect 5000"],
        ),
        (
            vec!["--memory", "4KiB", "--stream", "zipf:1", "--expect", "20k", "--importance", "linear"],
            vec!["--importance FIELD --importance-max 50"],
        ),
        (vec!["--memory", "4KiB", "--stream", "in.txt"], vec!["dedup in.txt ", "--memory 4KiB"]),
    ] {
        let all: Vec<&str> = arguments.iter().copied().chain(["--fpr", "2%"]).collect();
        let found = plan(&folder, &all);
        for option in options {
            assert!(found["command"].as_str().is_some_and(|command| command.contains(option)), "{option}: {found}");
        }
        // Run as it is, it uses the filter that was planned.
        let mut command: Vec<String> = words(&found["command"])[1..].to_vec();
        // In which field importances are, only the user knows.
        command.iter_mut().filter(|word| *word == "FIELD").for_each(|word| *word = "2".into());
        let built = command[0] == "build";
        // As it stands it works; what else is given only shows what it did.
        if !built {
            // The input has no second field, which does not matter here.
            command.extend(["--stats", "stats.json", "-o", "out.txt", "--on-error", "keep"].map(String::from));
        }
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let done = folder.run_with(&command, recent(3_000).as_bytes());
        assert!(done.status.success(), "{command:?}: {}", common::error_of(&done));
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

#[test]
fn what_was_asked_for_is_given_as_the_reason() {
    let folder = Folder::new();
    folder.write("in.txt", recent(20_000));
    for stream in ["in.txt", "zipf:1"] {
        let call = ["--stream", stream, "--expect", "5k", "--memory", "1KiB", "--filter", "stable"];
        let found = plan(&folder, &call);
        assert!(found["reason"].as_str().is_some_and(|reason| reason.starts_with("it was asked for")), "{found}");
    }
}

#[test]
fn the_least_memory_is_compared_with_the_others_by_the_same_forecasts() {
    let folder = Folder::new();
    folder.write("in.txt", recent(50_000));
    let found = plan(&folder, &["--stream", "in.txt", "--fnr", "1%", "--fpr", "1%"]);
    let missed = 100.0 * found["predicted_fnr"].as_f64().expect("a rate");
    assert!(missed <= 1.0, "{found}");
    let others = found["runners_up"].as_array().expect("others");
    let mut specs: Vec<&str> = others.iter().filter_map(|row| row["filter"].as_str()).collect();
    specs.extend(found["filter"].as_str());
    let count = specs.len();
    specs.sort_unstable();
    specs.dedup();
    assert_eq!(specs.len(), count, "one of them twice: {found}");
    for reason in others.iter().filter_map(|row| row["reason"].as_str()).filter(|reason| reason.starts_with("misses "))
    {
        assert!(
            !reason.contains(", not ") || reason.ends_with(&format!("not {missed:.3} %")),
            "{reason}, but {missed}"
        );
    }
}

#[test]
fn a_plan_by_cost_begins_with_what_errors_cost_and_keeps_its_limits() {
    let folder = Folder::new();
    folder.write("stream.txt", recent(40_000));
    let costs = ["--cost-fp", "5", "--cost-fn", "1", "--stream", "stream.txt", "--memory", "2KiB"];
    let text = text_of(&folder, &costs);
    assert!(text.starts_with("With ") && text.contains(" errors cost about "), "{text}");
    assert!(text.contains("\ncost of a line, by memory"), "{text}");
    let free = plan(&folder, &costs);
    let limited = plan(&folder, &[&costs[..], &["--max-fpr", "0.1%"]].concat());
    assert!(limited["predicted_fpr"].as_f64() <= Some(0.001), "{limited}");
    assert!(free["cost_per_arrival"].as_f64() <= limited["cost_per_arrival"].as_f64(), "{free}\n{limited}");
    assert!(free["curve"].as_array().is_some_and(|curve| curve.len() > 3), "{free}");
    // The line to paste runs, also where the memory is left open and the filter is made for so many keys.
    let open = plan(&folder, &["--cost-fp", "5", "--cost-fn", "1", "--stream", "stream.txt"]);
    for planned in [&free, &open] {
        let line = planned["command"].as_str().expect("a command");
        let words = line.strip_prefix("everbloom ").expect(line);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("\"$0\" {words} --count"), env!("CARGO_BIN_EXE_everbloom")]);
        let ran = shell.current_dir(folder.path("")).output().expect("a shell");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn what_is_no_cost_is_refused_in_words_of_the_command_line() {
    let folder = Folder::new();
    for wrong in ["-1", "nan", "5c", "inf", ""] {
        let message = refused(&folder, &["--cost-fp", wrong, "--cost-fn", "1", "--expect", "1000"]);
        assert!(message.contains("--cost-fp") && message.contains("without a unit"), "{wrong}: {message}");
    }
    for (arguments, part) in [
        (&["--cost-fp", "1", "--expect", "1000"][..], "--cost-fn"),
        (&["--cost-fp", "0", "--cost-fn", "0", "--expect", "1000"], "both 0"),
        (&["--cost-fp", "1", "--cost-fn", "1"], "--expect"),
        (&["--cost-fp", "1", "--cost-fn", "1", "--cost-fn-by-importance", "linear", "--expect", "1000"], "importance"),
    ] {
        let message = refused(&folder, arguments);
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// A stream whose important keys come back late: what an unweighted plan forgets first.
fn weighted(arrivals: u32) -> String {
    let line = |index: u32| match index % 4 {
        0 => format!("new-{index}\tx\t1\n"),
        1 => format!("late-{}\tx\t100\n", index % 4000),
        _ => format!("soon-{}\tx\t{}\n", index / 40, index / 40 % 7),
    };
    (0..arrivals).map(line).collect()
}

#[test]
fn importances_of_a_sample_are_read_from_its_records_as_dedup_reads_them() {
    let folder = Folder::new();
    folder.write("clicks.tsv", weighted(40_000));
    folder.write("imp.txt", "1\n2\n100\n");
    folder.write("table.txt", "0 0\n10 0.1\n100 1\n");
    let sample = ["--stream", "clicks.tsv", "--key", "1,2"];
    let field = ["--importance", "3", "--importance-max", "100"];
    for more in [
        &["--cost-fn-by-importance", "linear"][..],
        &["--cost-fn-by-importance", "table.txt", "--cost-fp-by-importance", "linear"],
        &["--cost-fn-by-importance", "table.txt", "--importance-scale", "log"],
    ] {
        let costs = [&["--cost-fp", "1", "--cost-fn", "5", "--memory", "1KiB"][..], &field, more].concat();
        let planned = plan(&folder, &[&sample[..], &costs].concat());
        let ran = folder.run(&[&["dedup", "clicks.tsv", "--key", "1,2", "--count"][..], &costs].concat());
        let said = common::error_of(&ran);
        let summary = planned["summary"].as_str().expect("a sentence");
        let cost = |text: &str| {
            text.split("errors cost about ").nth(1).map(|rest| rest.split(" than").next().map(str::to_string))
        };
        assert_eq!(cost(&said), cost(summary), "{more:?}: {said}");
        assert!(cost(summary).is_some(), "{summary}");
        let kind = kind_of(&planned);
        assert!(said.contains(&format!("; {kind} drops")), "{kind}: {said}");
        let command = planned["command"].as_str().expect("a command");
        assert!(command.contains("--importance 3 --importance-max 100"), "{command}");
        assert_eq!(command.contains("--importance-scale log"), more.contains(&"log"), "{command}");
        let taken = taken_of(&planned);
        assert_eq!(taken["cost_per_arrival"], planned["cost_per_arrival"], "{planned}");
    }
    // What nobody weighs is weighed otherwise.
    let wanted = [&sample[..], &["--memory", "1KiB", "--fpr", "1%", "--filter", "ibf3"]].concat();
    let (plain, weighted) = (plan(&folder, &wanted), plan(&folder, &[&wanted[..], &field].concat()));
    assert!(weighted["fnr_by_importance"].as_array().is_some_and(|rows| rows.len() > 1), "{weighted}");
    assert_ne!(plain["wfn"], weighted["wfn"]);
    for refuses in ["imp.txt", "linear", "exponential", "3"] {
        let message = refused(&folder, &[&wanted[..], &["--importance", refuses]].concat());
        assert!(message.contains("--importance 3 --importance-max"), "{message}");
    }
}

/// The point of a cost curve at the memory that is taken.
fn taken_of(planned: &Value) -> Value {
    let taken = planned["memory_bits"].as_u64().expect("a memory");
    let points = planned["curve"].as_array().expect("a curve");
    let point = points.iter().find(|point| point["memory_bits"].as_u64() >= Some(taken));
    point.expect("a point of the memory that is taken").clone()
}

#[test]
fn the_curve_of_costs_says_of_what_is_taken_what_the_plan_says_of_it() {
    let folder = Folder::new();
    for (costs, more) in [
        (["0.0001", "5"], &["--stream", "uniform", "--memory", "4KiB", "--filter", "stable"][..]),
        (["1", "5"], &["--stream", "uniform", "--memory", "4KiB", "--filter", "stable"]),
        (["1", "5"], &["--stream", "zipf:1", "--memory", "5000B", "--filter", "stable"]),
        (["1", "5"], &["--stream", "uniform", "--memory", "4KiB"]),
        (["1", "5"], &["--stream", "uniform"]),
    ] {
        let all = [&["--cost-fp", costs[0], "--cost-fn", costs[1], "--expect", "1e4"][..], more].concat();
        let planned = plan(&folder, &all);
        assert_eq!(taken_of(&planned)["cost_per_arrival"], planned["cost_per_arrival"], "{all:?}: {planned}");
        let costs: Vec<f64> = (planned["curve"].as_array().expect("a curve").iter())
            .filter_map(|point| point["cost_per_arrival"].as_f64())
            .collect();
        assert!(costs.is_sorted_by(|one, next| one >= next), "{all:?}: {costs:?}");
    }
}

#[test]
fn a_curve_of_costs_is_near_what_a_plan_at_its_memories_finds() {
    let folder = Folder::new();
    let costs =
        ["--cost-fp", "0.0001", "--cost-fn", "5", "--expect", "1e4", "--stream", "uniform", "--filter", "stable"];
    let curve = plan(&folder, &[&costs[..], &["--memory", "4KiB"]].concat());
    for point in curve["curve"].as_array().expect("a curve") {
        let bits = point["memory_bits"].as_u64().expect("a memory");
        if !(8_192..=65_536).contains(&bits) {
            continue;
        }
        let closely = plan(&folder, &[&costs[..], &["--memory", &format!("{bits}b")]].concat());
        // A curve is by short simulations: what those cannot tell apart is a factor of two, not of seventeen.
        let ratio =
            point["cost_per_arrival"].as_f64().expect("a cost") / closely["cost_per_arrival"].as_f64().expect("a cost");
        assert!((0.5..2.0).contains(&ratio), "{bits} bits: {ratio} times: {point}, {closely}");
    }
}

/// The rate that a filter promises, and for how many keys.
fn promise_of(document: &Value) -> (Value, Value, Value) {
    (document["predicted_fpr"].clone(), document["promise"].clone(), document["promised_items"].clone())
}

#[test]
fn every_line_to_paste_promises_what_the_plan_does() {
    let folder = Folder::new();
    folder.write("in.txt", recent(20_000));
    folder.output_of(&["dedup", "in.txt", "--memory", "4KiB", "--audit", "--state", "s.ebf", "-o", "out.txt", "-q"]);
    for arguments in [
        "--stream in.txt --memory 1M",
        "--stream in.txt --memory 1M --expect 100",
        "--stream in.txt --memory 1M --expect 50k",
        "--stream in.txt",
        "--stream in.txt --fpr 2%",
        "--stream in.txt --memory 1KiB",
        "--from-state s.ebf --memory 1M",
        "--from-state s.ebf --memory 2KiB --fpr 1%",
        "--expect 5000",
        "--expect 5000 --memory 64KiB",
        "--expect 5000 --filter bloom:num_bits=9984",
        "--expect 5000 --filter counting",
        "--window 1000",
        "--cost-fp 5 --cost-fn 1 --stream in.txt",
        "--cost-fp 5 --cost-fn 1 --stream in.txt --memory 2KiB",
    ] {
        let planned = plan(&folder, &arguments.split(' ').collect::<Vec<_>>());
        let command: Vec<String> = words(&planned["command"])[1..].to_vec();
        let mut command: Vec<&str> = command.iter().map(String::as_str).collect();
        let saved = if command[0] == "build" { "keys.ebf" } else { "seen.ebf" };
        if command[0] == "dedup" {
            command.extend(["--state", "seen.ebf", "-o", "out.txt"]);
        }
        let done = folder.run_with(&command, recent(20_000).as_bytes());
        assert!(matches!(done.status.code(), Some(0 | 3)), "{arguments}: {command:?}: {}", common::error_of(&done));
        let info: Value = common::json_of(&folder.output_of(&["info", saved, "--format", "json"]));
        let ((kept, holds, items), (promised, ..)) = (promise_of(&info), promise_of(&planned));
        assert_eq!((&planned["promise"], &planned["promised_items"]), (&holds, &items), "{arguments}: {command:?}");
        // A rate that nobody asked for is printed with three digits, rounded up: what is promised to whoever pastes it.
        let (kept, promised) = (kept.as_f64().expect("a rate"), promised.as_f64().expect("a rate"));
        let third_digit = 10f64.powf(promised.log10().floor() - 2.0);
        assert!(kept >= promised && kept - promised < third_digit, "{arguments}: {command:?}: {kept} {promised}");
        let _ = std::fs::remove_file(folder.path(saved));
    }
}

#[test]
fn limits_that_contradict_each_other_name_what_is_kept() {
    let folder = Folder::new();
    folder.write("in.txt", weighted(40_000));
    for stream in [
        &["--stream", "in.txt", "--memory", "512B"][..],
        &["--stream", "uniform", "--expect", "1e4", "--memory", "4KiB"],
    ] {
        let asked = [&["--cost-fp", "1", "--cost-fn", "5", "--max-fpr", "1%"][..], stream].concat();
        let message = refused(&folder, &[&asked[..], &["--max-fnr", "0"]].concat());
        assert!(message.contains("at most 1% false positives and at most 0% false negatives within "), "{message}");
        assert!(!message.contains("100%"), "{message}");
        let after = |words: &str| {
            let rest = message.split(words).nth(1).expect(words);
            rest.split('%').next().and_then(|rate| rate.parse::<f64>().ok()).expect(words)
        };
        let (best, accepted) = (after("the best forecast is "), after("or accept "));
        let kept = plan(&folder, &[&asked[..], &["--max-fnr", &format!("{accepted}%")]].concat());
        assert!(kept["predicted_fnr"].as_f64() <= Some(accepted / 100.0), "{message}: {kept}");
        // What is said to be the best is: a twentieth less is refused.
        let less = refused(&folder, &[&asked[..], &["--max-fnr", &format!("{}%", 0.95 * best)]].concat());
        assert!(less.contains("cannot be kept"), "{less}");
    }
}

#[test]
fn costs_that_no_hash_justifies_are_not_printed() {
    let folder = Folder::new();
    folder.write("in.txt", recent(20_000));
    let text = text_of(&folder, &["--cost-fp", "1", "--cost-fn", "0", "--stream", "in.txt"]);
    let said: Vec<&str> = text.split("command line").next().expect("a plan").split_whitespace().collect();
    assert!(said.join(" ").contains("< 1e-15"), "{text}");
    let tiny = |word: &&str| {
        word.split_once("e-").is_some_and(|(_, power)| {
            let power: String = power.chars().take_while(char::is_ascii_digit).collect();
            power.parse::<u32>().is_ok_and(|power| power > 15)
        })
    };
    assert_eq!(said.iter().find(|word| tiny(word)), None, "{text}");
}

#[test]
fn a_chart_is_not_drawn_over_what_is_read() {
    let folder = Folder::new();
    let costs = ["--cost-fp", "1", "--cost-fn", "1", "--memory", "1KiB"];
    for (name, text) in [("in.txt", recent(2_000)), ("lags", "10 1\n100 1\n".into()), ("table", "0 1\n50 2\n".into())] {
        folder.write(name, text);
    }
    for (read, more) in [
        ("in.txt", vec!["--stream", "in.txt"]),
        ("lags", vec!["--stream", "lag:lags", "--expect", "1000"]),
        (
            "table",
            vec![
                "--stream",
                "uniform",
                "--expect",
                "1000",
                "--importance",
                "linear",
                "--cost-fn-by-importance",
                "table",
            ],
        ),
    ] {
        let before = folder.read(read);
        let message = refused(&folder, &[&costs[..], &more, &["--chart", read]].concat());
        assert!(message.contains("is also read as"), "{message}");
        assert_eq!(folder.read(read), before);
    }
}

#[test]
fn costs_count_the_keys_that_are_still_to_come() {
    let folder = Folder::new();
    folder.write("in.txt", recent(2_000));
    let costs = ["--cost-fp", "5", "--cost-fn", "1", "--stream", "in.txt"];
    for more in [&["--expect", "1M"][..], &["--expect", "1M", "--memory", "4KiB"]] {
        let plan = plan(&folder, &[&costs[..], more].concat());
        // A filter that is full before half of them came drops nearly all others.
        assert!(plan["predicted_fpr"].as_f64().is_some_and(|rate| rate < 0.9), "{plan}");
    }
    let typo = refused(&folder, &[&costs[..], &["--filter", "stabel"]].concat());
    assert!(typo.contains("did you mean 'stable'?"), "{typo}");
    let arrivals = refused(&folder, &["--memory", "1KiB", "--stream", "in.txt", "--arrivals", "1M"]);
    assert!(arrivals.contains("--arrivals is for streams that are described"), "{arrivals}");
    let arrivals = refused(&folder, &["--memory", "1KiB", "--expect", "1000", "--arrivals", "10"]);
    assert!(arrivals.contains("add --stream uniform"), "{arrivals}");
}

#[test]
fn reasons_are_said_in_words_that_fit() {
    let folder = Folder::new();
    let assumed = text_of(&folder, &["--memory", "1KiB", "--fpr", "1%"]);
    assert!(assumed.contains("errs on nothing until its memory is full"), "{assumed}");
    let known = text_of(&folder, &["--memory", "1KiB", "--fpr", "1%", "--stream", "uniform", "--expect", "1e4"]);
    assert!(known.contains("forgets least on this stream"), "{known}");
    for text in [assumed, known, text_of(&folder, &["--expect", "1e6", "--fpr", "50%"])] {
        for share in text.split(" % more memory").filter_map(|before| before.split_whitespace().last()) {
            assert!(share.parse::<f64>().map_or(true, |share| share < 100.0), "{share}: {text}");
        }
    }
    for stream in [&[][..], &["--stream", "uniform"]] {
        let message = refused(&folder, &[&["--expect", "1e18"][..], stream].concat());
        assert!(!message.contains("arrivals is") && !message.contains("lag is"), "{message}");
    }
}
