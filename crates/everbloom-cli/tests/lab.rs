//! `everbloom lab`: experiments from the command line.

mod common;

use common::{Folder, assert_refused, error_of, exists, json_of};
use std::collections::BTreeSet;

/// A short experiment that needs no data.
const SHORT: &str = "lecture-hashes";

fn run(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["lab", "run", SHORT, "--quick", "--out", "results", "--format", "json"];
    arguments.extend(more);
    json_of(&folder.output_of(&arguments))["experiments"][0].clone()
}

#[test]
fn the_list_names_source_figure_and_time() {
    let folder = Folder::new();
    let list = json_of(&folder.output_of(&["lab", "list", "--format", "json"]));
    let entries = list["experiments"].as_array().expect("a list");
    let names: BTreeSet<_> = entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect();
    assert_eq!(names.len(), entries.len(), "names are unique");
    for entry in entries {
        for field in ["source", "figure", "shows"] {
            assert!(entry[field].as_str().is_some_and(|text| !text.is_empty()), "{entry}");
        }
        assert!(entry["default_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{entry}");
    }
    let text = String::from_utf8(folder.output_of(&["lab", "list"])).expect("text");
    assert_eq!(text.lines().count(), entries.len(), "a line each");
}

#[test]
fn a_run_writes_json_csv_and_charts_and_a_second_one_keeps_them() {
    let folder = Folder::new();
    let first = run(&folder, &[]);
    assert_eq!(first["reused"], 0);
    let result = folder.read(&format!("results/{SHORT}/result.json"));
    assert!(json_of(&result)["verdicts"].as_array().is_some_and(|verdicts| !verdicts.is_empty()));
    for chart in first["charts"].as_array().expect("charts") {
        let text = folder.read(chart.as_str().expect("a name"));
        assert!(text.starts_with(b"<svg"), "{chart}");
    }
    assert!(exists(folder.path(&format!("results/{SHORT}/rates.csv"))));
    let second = run(&folder, &[]);
    assert_eq!(second["reused"], first["cells"]);
    assert_eq!(folder.read(&format!("results/{SHORT}/result.json")), result, "the same again");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let result = |threads| {
        let folder = Folder::new();
        run(&folder, &["--threads", threads]);
        folder.read(&format!("results/{SHORT}/result.json"))
    };
    assert_eq!(result("1"), result("4"));
}

#[test]
fn what_is_lost_or_damaged_is_run_again() {
    let folder = Folder::new();
    run(&folder, &[]);
    let whole = folder.read(&format!("results/{SHORT}/result.json"));
    let cells = folder.path(&format!("results/{SHORT}/cells/quick"));
    let mut files: Vec<_> = std::fs::read_dir(&cells).expect("cells").map(|entry| entry.expect("one").path()).collect();
    files.sort();
    std::fs::remove_file(&files[0]).expect("removed");
    std::fs::write(&files[1], b"{\"experiment\": \"lect").expect("cut");
    let again = run(&folder, &[]);
    assert_eq!(again["damaged"], 1);
    assert_eq!(again["reused"].as_u64(), again["cells"].as_u64().map(|cells| cells - 2));
    assert_eq!(folder.read(&format!("results/{SHORT}/result.json")), whole);
}

#[test]
fn unknown_experiments_are_refused_with_the_nearest_name() {
    let folder = Folder::new();
    assert_refused(&folder.run(&["lab", "run", "lecture-hashs", "--out", "r"]), "did you mean 'lecture-hashes'?");
    assert_refused(&folder.run(&["lab", "run", "no-such-thing", "--out", "r"]), "lab list");
    assert!(!exists(folder.path("r")), "nothing is made for a bad call");
}

#[test]
fn foreign_and_unfinished_directories_are_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("mine")).expect("a folder");
    folder.write("mine/notes.txt", "precious");
    assert_refused(&folder.run(&["lab", "run", SHORT, "--quick", "--out", "mine"]), "did not write");
    assert_refused(&folder.run(&["lab", "report", "mine"]), "no results");
    assert_refused(&folder.run(&["lab", "verdicts", "nowhere"]), "nowhere");
    assert_refused(&folder.run(&["lab", "verdicts", "mine/notes.txt"]), "not a directory");
    assert_eq!(folder.read("mine/notes.txt"), b"precious");
    run(&folder, &[]);
    folder.write(&format!("results/{SHORT}/result.json"), "{\"experiment\"");
    assert_refused(&folder.run(&["lab", "verdicts", "results"]), "run the experiment again");
    std::fs::remove_file(folder.path(&format!("results/{SHORT}/result.json"))).expect("removed");
    assert_refused(&folder.run(&["lab", "report", "results"]), "no experiment is finished");
}

#[test]
fn a_full_disk_is_told_and_the_run_goes_on_later() {
    let folder = Folder::new();
    // Files up to 1 KiB: the marker fits, a cell does not.
    let output = folder.run_on_full_disk(2, &["lab", "run", SHORT, "--quick", "--out", "results"]);
    assert_refused(&output, "make room and run again");
    let text = std::fs::read_dir(folder.path(&format!("results/{SHORT}/cells/quick"))).map_or(0, Iterator::count);
    assert_eq!(text, 0, "no half-written cell is left");
    assert_eq!(run(&folder, &[])["damaged"], 0);
}

#[test]
fn verdicts_and_report_show_what_came_out() {
    let folder = Folder::new();
    run(&folder, &[]);
    let verdicts = json_of(&folder.output_of(&["lab", "verdicts", "results", "--format", "json"]));
    let all = verdicts["verdicts"].as_array().expect("verdicts");
    for verdict in all {
        let outcome = verdict["outcome"].as_str().expect("an outcome");
        assert!(
            ["holds", "holds_loosely", "holds_in_direction", "does_not_hold", "misprint"].contains(&outcome),
            "{verdict}"
        );
        assert!(verdict["numbers"].as_array().is_some_and(|numbers| !numbers.is_empty()), "{verdict}");
        assert!(verdict["claim"].is_string() && verdict["source"].is_string(), "{verdict}");
    }
    let text = String::from_utf8(folder.output_of(&["lab", "verdicts", "results"])).expect("text");
    assert!(text.contains(&format!("{} verdicts", all.len())), "{text}");
    folder.output_of(&["lab", "report", "results"]);
    let page = String::from_utf8(folder.read("results/report.html")).expect("text");
    assert!(page.contains("<svg") && page.contains(SHORT));
    folder.output_of(&["lab", "report", "results", "-o", "pages/RESULTS.md", "--command", "make it so"]);
    let page = String::from_utf8(folder.read("pages/RESULTS.md")).expect("text");
    assert!(page.contains("make it so") && page.contains("charts/lecture-hashes-false-positives.svg"), "{page}");
    assert!(exists(folder.path("pages/charts/lecture-hashes-false-positives.svg")));
    assert_refused(&folder.run(&["lab", "report", "results", "-o", "page.pdf"]), ".html or .md");
}

#[test]
fn an_interrupted_run_leaves_whole_cells_only() {
    let folder = Folder::new();
    let mut child = folder.command(&["lab", "run", SHORT, "--out", "results", "--threads", "1"]).spawn().expect("runs");
    let cells = folder.path(&format!("results/{SHORT}/cells/default"));
    let count = || std::fs::read_dir(&cells).map_or(0, Iterator::count);
    while count() < 2 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    let finished = folder.run(&["lab", "run", SHORT, "--out", "results", "--format", "json"]);
    assert_eq!(error_of(&finished), "");
    let entry = json_of(&finished.stdout)["experiments"][0].clone();
    assert!(entry["reused"].as_u64().is_some_and(|reused| reused >= 1), "{entry}");
    assert_eq!(entry["damaged"], 0);
}
