//! `everbloom compare` and `everbloom lab generate`, as scripts use them.

mod common;

use common::Folder;
use serde_json::Value;

const IMPORTANCE: [&str; 6] = ["--key", "1", "--importance", "2", "--importance-max", "50"];

/// A folder with the first 20,000 arrivals of a set in `stream.tsv`.
fn folder_with(set: &str) -> Folder {
    let folder = Folder::new();
    let stream = folder.output_of(&["lab", "generate", set, "--items", "20000", "--seed", "1"]);
    folder.write("stream.tsv", stream);
    folder
}

fn compare(folder: &Folder, arguments: &[&str]) -> Value {
    let mut all = vec!["compare", "stream.tsv", "--format", "json"];
    all.extend(arguments);
    serde_json::from_slice(&folder.output_of(&all)).expect("JSON")
}

fn row(document: &Value, index: usize) -> &Value {
    &document["filters"][index]
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn counts_are_the_truth_and_rows_keep_their_order() {
    let folder = folder_with("linear");
    let mut seen = std::collections::BTreeSet::new();
    let text = String::from_utf8(folder.read("stream.tsv")).expect("text");
    let distinct = text.lines().filter(|line| seen.insert(*line)).count();
    let document = compare(&folder, &["--memory", "1KiB", "--fpr", "1%", "--filter", "ranked", "--filter", "stable"]);
    assert_eq!(number(&document["items"]), 20_000.0);
    assert_eq!(number(&document["distinct"]), distinct as f64);
    assert_eq!(number(&document["duplicates"]), 20_000.0 - distinct as f64);
    for (index, kind) in ["ranked:", "stable:"].into_iter().enumerate() {
        assert!(row(&document, index)["filter"].as_str().is_some_and(|filter| filter.starts_with(kind)));
        assert!(number(&row(&document, index)["memory_bits"]) <= 8192.0);
    }
}

#[test]
fn what_plans_note_stands_below_the_table() {
    let folder = folder_with("linear");
    let filters = ["--memory", "16KiB", "--fpr", "1%", "--filter", "ibf2", "--filter", "ibf3", "--filter", "ibf6"];
    let document = compare(&folder, &filters);
    let note = row(&document, 0)["notes"][0].as_str().expect("a note").to_string();
    assert!(note.contains("without importances") && row(&document, 2)["notes"][0] == note.as_str(), "{document}");
    assert!(row(&document, 1).get("notes").is_none(), "ibf3 writes the same value for all: {document}");
    let table = |more: &[&str]| {
        let text = folder.output_of(&[&["compare", "stream.tsv"], &filters[..], more].concat());
        String::from_utf8(text).expect("text")
    };
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&table(&[])).ends_with(&format!(" note on 1, 3: {}", squeezed(&note))), "{}", table(&[]));
    assert!(!table(&IMPORTANCE).contains("note on"), "with importances there is nothing to note");
}

#[test]
fn a_filter_that_never_forgets_has_no_false_negatives() {
    let folder = folder_with("uniform");
    let document = compare(&folder, &["--memory", "64KiB", "--fpr", "0.1%", "--filter", "bloom"]);
    let bloom = row(&document, 0);
    assert_eq!((number(&bloom["measured_fnr"]), number(&bloom["late_fnr"])), (0.0, 0.0));
    assert_eq!(number(&bloom["weighted_recall"]), 1.0);
    assert!(number(&bloom["measured_fpr"]) < 0.001);
}

#[test]
fn without_filters_named_every_stream_filter_and_bloom_are_tried() {
    let folder = folder_with("uniform");
    let document = compare(&folder, &["--memory", "4KiB", "--fpr", "1%"]);
    let filters = document["filters"].as_array().expect("rows");
    let kinds: Vec<_> = filters.iter().map(|row| row["filter"].as_str().expect("a spec")).collect();
    for kind in everbloom_all::KINDS.iter().filter(|kind| kind.can.run_forever || kind.name == "bloom") {
        let named = |spec: &&str| spec.split(':').next() == Some(kind.name);
        assert!(kinds.iter().any(named) || document["omitted"].to_string().contains(kind.name), "{}", kind.name);
    }
}

#[test]
fn importances_tell_filters_apart() {
    let folder = folder_with("linear_70");
    // The same shape without and with importance, so that one gains what the other loses.
    let shape = |insert: &str| format!("ranked:lanes=5,lane_bits=9,insert={insert},hit=still");
    let (blind, aware) = (shape("middle"), shape("importance"));
    let mut arguments = vec!["--memory", "2KiB", "--by-importance", "--filter", &blind, "--filter", &aware];
    arguments.extend(IMPORTANCE);
    let document = compare(&folder, &arguments);
    let curve = |index: usize| row(&document, index)["by_importance"].as_array().expect("a curve").clone();
    let labels: Vec<_> = curve(1).iter().map(|row| number(&row["importance"])).collect();
    assert_eq!(labels, (1..=50).map(f64::from).collect::<Vec<_>>());
    let arrivals: f64 = curve(0).iter().map(|row| number(&row["distinct"]) + number(&row["duplicates"])).sum();
    assert_eq!(arrivals, 20_000.0);
    let slope = |index| number(&row(&document, index)["fn_share_slope"]);
    assert!(slope(1) < 0.0 && slope(1).abs() > 5.0 * slope(0).abs(), "{} and {}", slope(0), slope(1));
    assert!((1.0..50.0).contains(&number(&row(&document, 1)["crossover_importance"])));
}

#[test]
fn logarithmic_importances_are_labelled_in_the_units_given() {
    let folder = Folder::new();
    folder.write("stream.tsv", "a\t0\nb\t1000\nc\t1000000\nb\t1000\n");
    let document = compare(
        &folder,
        &[
            "--key",
            "1",
            "--importance",
            "2",
            "--importance-max",
            "1e6",
            "--importance-scale",
            "log",
            "--by-importance",
            "--memory",
            "1KiB",
        ],
    );
    let curve = row(&document, 0)["by_importance"].as_array().expect("a curve");
    let labels: Vec<_> = curve.iter().map(|row| number(&row["importance"]).round()).collect();
    assert_eq!(labels, [0.0, 1000.0, 1_000_000.0]);
}

#[test]
fn uniform_repeats_have_a_limit_that_no_filter_beats() {
    let folder = folder_with("uniform");
    let document = compare(&folder, &["--memory", "9800b", "--fpr", "1%"]);
    assert_eq!(document["limit_kind"], "uniform repeats");
    let limit = number(&document["limit_fnr"]);
    assert!((0.60..0.67).contains(&limit), "{limit}");
    let forgetting =
        document["filters"].as_array().expect("rows").iter().filter(|row| number(&row["measured_fpr"]) <= 0.01);
    assert!(forgetting.clone().count() >= 2);
    assert!(forgetting.clone().all(|row| number(&row["measured_fnr"]) > limit));
}

#[test]
fn streams_whose_repeats_are_not_even_have_no_limit() {
    for set in ["zipf", "log_lag"] {
        let document = compare(&folder_with(set), &["--memory", "1KiB", "--fpr", "1%", "--filter", "ranked"]);
        assert_eq!((&document["limit_kind"], &document["limit_fnr"]), (&Value::Null, &Value::Null), "{set}");
    }
    // Every key twice, in succession, is as even as can be, and any filter finds all of it.
    let folder = Folder::new();
    folder.write("stream.tsv", (0..20_000).map(|at| format!("{}\n", at / 2)).collect::<String>());
    let document = compare(&folder, &["--memory", "1KiB", "--fpr", "1%", "--filter", "ranked"]);
    assert_eq!(document["limit_fnr"], Value::Null);
}

#[test]
fn tables_are_as_wide_as_asked_and_classes_are_ranges() {
    let folder = Folder::new();
    let lines = (0..30_000).map(|at| format!("{}\t{}\n", at % 9_000, at % 9_000 % 313));
    folder.write("stream.tsv", lines.collect::<String>());
    let call = ["compare", "stream.tsv", "--memory", "1KiB", "--fpr", "1%", "--key", "1"];
    let at = |columns: &str, more: &[&str]| {
        let output = folder.command(&[&call[..], more].concat()).env("COLUMNS", columns).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let narrow = at("80", &[]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    // What has no room beside the rest stands below it; at the usual width all of it has.
    assert_eq!(narrow.matches("#  filter").count(), 2, "{narrow}");
    let usual = at("100", &[]);
    assert_eq!(usual.matches("#  filter").count(), 1, "one table: {usual}");
    let weighted = ["--importance", "2", "--importance-max", "312", "--by-importance", "--filter", "ranked"];
    let classes = at("100", &weighted);
    let labels: Vec<&str> =
        classes.lines().skip_while(|line| !line.contains("importance  lines")).skip(1).map(str::trim).collect();
    let labels: Vec<&str> =
        labels.iter().take_while(|line| !line.is_empty()).filter_map(|line| line.split(' ').next()).collect();
    assert!(labels.len() == 10 && labels.iter().all(|label| label.contains('–')), "{classes}");
    assert!(labels[0].starts_with("0–") && labels[9].ends_with("–312"), "{classes}");
}

#[test]
fn matched_filters_are_compared_at_the_asked_rate() {
    let folder = folder_with("linear");
    let mut arguments =
        vec!["--matched", "--memory", "4KiB", "--fpr", "1%", "--filter", "ranked", "--filter", "stable"];
    arguments.extend(IMPORTANCE);
    let document = compare(&folder, &arguments);
    let (ranked, stable) = (row(&document, 0), row(&document, 1));
    assert!(number(&ranked["matched_fnr"]) < number(&stable["matched_fnr"]));
    assert!(number(&ranked["benefit"]) > 0.0);
    assert_eq!(number(&stable["benefit"]), 0.0);
    for row in [ranked, stable] {
        assert!(number(&row["grid_size"]) > 20.0);
        assert_eq!(number(&row["matched_fpr"]), 0.01);
        assert!(number(&row["measured_fpr"]) <= 0.01, "the row shown is the nearest from below");
    }
}

#[test]
fn a_sample_of_the_truth_gives_rates_near_those_of_all_of_it() {
    let folder = folder_with("uniform");
    let arguments = ["--memory", "2KiB", "--fpr", "10%", "--filter", "stable"];
    let whole = compare(&folder, &arguments);
    let sampled = compare(&folder, &[&arguments[..], &["--truth-sample", "25%"]].concat());
    let (rate, near) = (number(&row(&whole, 0)["measured_fnr"]), number(&row(&sampled, 0)["measured_fnr"]));
    let sigma = (rate * (1.0 - rate) / (0.25 * number(&whole["duplicates"]))).sqrt();
    assert!((rate - near).abs() < 4.0 * sigma, "{near} from the sample, {rate} from all");
    assert_eq!(number(&sampled["items"]), number(&sampled["distinct"]) + number(&sampled["duplicates"]));
    let sigma = (0.25f64 * 0.75 * number(&whole["distinct"])).sqrt() / 0.25;
    assert!((number(&sampled["distinct"]) - number(&whole["distinct"])).abs() < 4.0 * sigma);
}

#[test]
fn the_same_seed_gives_the_same_rates_and_another_does_not() {
    let folder = folder_with("uniform");
    let rates = |seed: &str| {
        let document = compare(&folder, &["--memory", "1KiB", "--fpr", "1%", "--filter", "stable", "--seed", seed]);
        (document["filters"][0]["measured_fpr"].clone(), document["filters"][0]["measured_fnr"].clone())
    };
    assert_eq!(rates("3"), rates("3"));
    assert_ne!(rates("3"), rates("4"));
}

#[test]
fn odd_streams_work() {
    let folder = Folder::new();
    for (stream, fnr) in [("", Value::Null), ("a\n", Value::Null), ("\n\n\n", 0.0.into()), ("x\nx\nx", 0.0.into())] {
        folder.write("stream.tsv", stream);
        let document = compare(&folder, &["--memory", "1KiB", "--fpr", "1%"]);
        assert_eq!(number(&document["items"]), stream.lines().count() as f64, "{stream:?}");
        assert_eq!(document["filters"][0]["measured_fnr"], fnr, "{stream:?}");
    }
}

#[test]
fn bad_calls_are_refused_in_one_line() {
    let folder = folder_with("linear");
    folder.write("bad.tsv", "a\t-1\n");
    folder.write("nan.tsv", "a\tNaN\n");
    folder.write("short.tsv", "a\n");
    let importance = |file: &'static str| [&["compare", file, "--memory", "1KiB"][..], &IMPORTANCE].concat();
    let calls: Vec<Vec<&str>> = vec![
        vec!["compare", "stream.tsv"],
        vec!["compare", "stream.tsv", "--memory", "1b"],
        vec!["compare", "stream.tsv", "--memory", "1KiB", "--filter", "stabel"],
        vec!["compare", "stream.tsv", "--memory", "1KiB", "--matched", "--filter", "stabel"],
        vec!["compare", "stream.tsv", "--memory", "1TiB", "--matched"],
        vec!["compare", "stream.tsv", "--memory", "1KiB", "--truth-sample", "0"],
        vec!["compare", "stream.tsv", "--memory", "1KiB", "--by-importance"],
        vec!["compare", "stream.tsv", "--filter", "stable:num_cells=8,cell_max=1,num_hashes=2,decrements=9"],
        vec!["compare", "nowhere.tsv", "--memory", "1KiB"],
        importance("bad.tsv"),
        importance("nan.tsv"),
        importance("short.tsv"),
        vec!["lab", "generate"],
        vec!["lab", "generate", "nothing"],
        vec!["lab", "generate", "zipf", "--exponent=-1"],
        vec!["lab", "generate", "crawl", "--items", "1e12"],
    ];
    for call in calls {
        let output = folder.run(&call);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{call:?}: {message}");
        assert_eq!(message.trim().lines().count(), 1, "{call:?}: {message}");
    }
}

#[test]
fn records_that_cannot_be_used_are_skipped_and_counted_on_request() {
    let folder = Folder::new();
    folder.write("stream.tsv", "a\t1\nb\nc\t99\nd\t2\n");
    let document = compare(&folder, &[&["--memory", "1KiB", "--on-error", "skip"][..], &IMPORTANCE].concat());
    assert_eq!((number(&document["items"]), number(&document["skipped"])), (2.0, 2.0));
}

#[test]
fn tables_name_every_filter_and_hide_what_was_not_asked() {
    let folder = folder_with("linear");
    let table = |more: &[&str]| {
        let call = [&["compare", "stream.tsv", "--memory", "1KiB", "--fpr", "1%"][..], more].concat();
        String::from_utf8(folder.output_of(&call)).expect("text")
    };
    let plain = table(&[]);
    assert!(plain.starts_with("20,000 lines") && plain.contains("  ranked ") && !plain.contains("wfn"), "{plain}");
    assert!(!plain.contains("num_"), "the whole specs are for --verbose: {plain}");
    for word in ["FNR:", "FPR:", "late:", "*:"] {
        assert!(plain.contains(word), "{word} is not explained: {plain}");
    }
    assert!(plain.lines().all(|line| line.chars().count() <= 100), "{plain}");
    assert!(table(&["-v"]).contains("ranked:num_words="));
    let weighted = table(&[&IMPORTANCE[..], &["--by-importance"]].concat());
    assert!(weighted.contains("wfn") && weighted.contains("fn_share:"), "{weighted}");
    assert!(weighted.lines().all(|line| line.chars().count() <= 100), "{weighted}");
    // 50 importances, ten classes for as many filters as fit beside each other.
    let classes = weighted.lines().filter(|line| line.trim_start().starts_with("46–50 ")).count();
    let rows = weighted.lines().filter(|line| line.split_whitespace().next().is_some_and(|cell| cell.contains('–')));
    assert_eq!(rows.count(), 10 * classes, "{weighted}");
}

/// The kinds of a table's rows, in order, and its lines.
fn kinds_of(table: &str) -> Vec<String> {
    let body = table.lines().skip_while(|line| !line.trim_start().starts_with('#')).skip(1);
    let row = |line: &str| Some(line.split_whitespace().nth(1)?.split(':').next()?.to_string());
    body.take_while(|line| !line.is_empty()).filter_map(row).collect()
}

#[test]
fn tables_are_sorted_as_asked_and_json_never_is() {
    let folder = folder_with("linear");
    let named = ["--memory", "4KiB", "--fpr", "1%", "--filter", "bloom", "--filter", "stable", "--filter", "ranked"];
    let table = |more: &[&str]| {
        let call = [&["compare", "stream.tsv"], &named[..], more].concat();
        String::from_utf8(folder.output_of(&call)).expect("text")
    };
    assert_eq!(kinds_of(&table(&[])), ["bloom", "stable", "ranked"], "as they were named");
    // bloom misses nothing, because it calls everything a repeat: its promise is broken.
    assert_eq!(kinds_of(&table(&["--sort", "fnr"])), ["ranked", "stable", "bloom"]);
    let document = compare(&folder, &[&named[..], &["--sort", "fnr"]].concat());
    let kind = |index: usize| row(&document, index)["filter"].as_str().and_then(|spec| spec.split(':').next());
    assert_eq!((kind(0), kind(1), kind(2)), (Some("bloom"), Some("stable"), Some("ranked")));
    let sorted = |column: &str, value: &str| {
        let rows = kinds_of(&table(&["--sort", column]));
        let value_of = |kind: &String| {
            let found = document["filters"]
                .as_array()?
                .iter()
                .find(|row| row["filter"].as_str().is_some_and(|spec| spec.starts_with(kind.as_str())))?;
            found[value].as_f64()
        };
        let values: Vec<f64> = rows.iter().filter_map(value_of).collect();
        assert!(values.len() == 3 && values.is_sorted(), "{column}: {values:?}");
    };
    sorted("fpr", "measured_fpr");
    sorted("memory", "memory_bits");
    // Of what nobody named, the best comes first.
    let all = table_of_all(&folder);
    assert_eq!(kinds_of(&all).last().map(String::as_str), Some("bloom"), "{all}");
    let marked: Vec<&str> = all.lines().filter(|line| line.contains("%*")).collect();
    assert!(!marked.is_empty() && marked.iter().all(|line| !line.contains("broken")), "{all}");
}

fn table_of_all(folder: &Folder) -> String {
    String::from_utf8(folder.output_of(&["compare", "stream.tsv", "--memory", "1KiB", "--fpr", "1%"])).expect("text")
}

#[test]
fn seeds_give_the_mean_of_single_runs_and_its_error() {
    let folder = folder_with("linear");
    let base = ["--memory", "1KiB", "--fpr", "5%", "--filter", "stable", "--filter", "ranked"];
    let rate = |document: &Value, index: usize| number(&row(document, index)["measured_fnr"]);
    let together = compare(&folder, &[&base[..], &["--seed", "7", "--seeds", "4"]].concat());
    let single: Vec<Value> =
        ["7", "8", "9", "10"].iter().map(|seed| compare(&folder, &[&base[..], &["--seed", seed]].concat())).collect();
    for index in 0..2 {
        let rates: Vec<f64> = single.iter().map(|document| rate(document, index)).collect();
        let mean = rates.iter().sum::<f64>() / 4.0;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 3.0;
        assert!((rate(&together, index) - mean).abs() < 1e-12, "{together}");
        let stated = number(&row(&together, index)["measured_fnr_error"]);
        // Student's t of three degrees of freedom.
        assert!((stated - 3.182 * (variance / 4.0).sqrt()).abs() < 1e-12, "{stated} of {rates:?}");
    }
    assert_eq!(number(&together["seeds"]), 4.0);
    assert!(single[0].get("seeds").is_none() && row(&single[0], 0).get("measured_fnr_error").is_none());
    let text = folder.output_of(&[&["compare", "stream.tsv", "--seeds", "3"], &base[..]].concat());
    assert!(String::from_utf8_lossy(&text).contains(" ± "));
    let sampled = compare(&folder, &[&base[..], &["--truth-sample", "20%"]].concat());
    assert!(number(&row(&sampled, 0)["measured_fnr_error"]) > 0.0, "{sampled}");
}

#[test]
fn auto_is_what_dedup_would_take() {
    let folder = folder_with("linear");
    for goal in [
        &["--expect", "5000"][..],
        &["--memory", "4KiB"],
        &["--memory", "1MiB", "--expect", "10k", "--fpr", "1%"],
        &["--memory", "2KiB", "--expect", "10k", "--fpr", "1%"],
    ] {
        let document = compare(&folder, &[goal, &["--filter", "auto"]].concat());
        let dedup = [&["dedup", "stream.tsv", "-o", "out.tsv", "--stats", "stats.json"], goal, &["--quiet"]].concat();
        folder.run(&dedup);
        let stats: Value = serde_json::from_slice(&folder.read("stats.json")).expect("JSON");
        assert_eq!(row(&document, 0)["filter"], stats["filter"], "{goal:?}");
    }
}

#[test]
fn generated_streams_are_keys_and_importances() {
    let folder = Folder::new();
    for kind in everbloom_lab::datasets::KINDS {
        let stream = folder.output_of(&["lab", "generate", kind.name, "--items", "100", "--seed", "5"]);
        let stream = String::from_utf8(stream).expect("text");
        assert_eq!(stream.lines().count(), 100, "{}", kind.name);
        for line in stream.lines() {
            let (key, importance) = line.split_once('\t').expect("two fields");
            key.parse::<u64>().expect("a key");
            assert!((1..=kind.importance_max).contains(&importance.parse().expect("an importance")), "{line}");
        }
    }
    let listing = String::from_utf8(folder.output_of(&["lab", "generate", "--list"])).expect("text");
    assert_eq!(listing.lines().count(), everbloom_lab::datasets::KINDS.len());
}

#[test]
fn a_spec_larger_than_the_memory_is_shown_with_its_own() {
    let folder = folder_with("linear");
    let specs = ["bloom:num_bits=8388608,num_hashes=5", "bloom:num_bits=8192,num_hashes=1", "ranked"];
    let mut arguments = vec!["--memory", "1KiB", "--fpr", "0.1%", "--expect", "20000"];
    specs.iter().for_each(|spec| arguments.extend(["--filter", spec]));
    let document = compare(&folder, &arguments);
    let bits: Vec<f64> = (0..3).map(|index| number(&row(&document, index)["memory_bits"])).collect();
    assert_eq!(bits[..2], [8_388_608.0, 8192.0]);
    assert!(bits[2] <= 8192.0, "{bits:?}");
}

#[test]
fn nothing_is_best_where_nothing_came() {
    let folder = Folder::new();
    let text = String::from_utf8(folder.output_of(&["compare", "/dev/null", "--memory", "1KiB"])).expect("text");
    assert!(text.contains("there were no lines") && !text.contains("FNR"), "{text}");
}

/// Every column is shown in every width: beside the others, or below them.
#[test]
fn no_column_is_left_out() {
    let folder = folder_with("linear");
    for columns in ["40", "70", "80", "200"] {
        let mut command = folder.command(&["compare", "stream.tsv", "--memory", "1KiB", "--fpr", "1%", "--key", "1"]);
        let output = command.env("COLUMNS", columns).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        for column in ["late FPR", "late FNR", "promised", "ns/item", "memory"] {
            assert!(
                text.lines().any(|line| line.trim_start().starts_with('#') && line.contains(column)),
                "{column}: {text}"
            );
        }
    }
}
