//! The pages in a real browser: `explore`, `dedup --serve` and the lab's report, driven by the scripts in `browser/`.
//!
//! `cargo xtask test` fetches what this needs and names its folder in EVERBLOOM_BROWSER; without it these tests are
//! skipped, loudly. EVERBLOOM_SCREENSHOTS names a folder for pictures to look at.
#![cfg(all(feature = "web", feature = "lab"))]

mod common;

use common::Folder;
use common::http::Site;
use common::live::{Running, numbered};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder with node, a browser and what drives it, if it is there.
fn browser() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/browser");
    let folder = std::env::var_os("EVERBLOOM_BROWSER").map_or(own, PathBuf::from);
    if folder.join("whole").exists() {
        return Some(folder);
    }
    let missing = format!("there is no browser in {}; `cargo xtask browser` fetches one", folder.display());
    assert!(std::env::var_os("EVERBLOOM_CI").is_none(), "{missing}");
    eprintln!("SKIPPED: the pages in a browser: {missing}");
    None
}

/// Runs a script on a page; what it prints is shown.
#[track_caller]
fn script(browser: &Path, name: &str, arguments: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(name);
    let mut command = Command::new(browser.join("node"));
    command.arg(path).args(arguments).env("EVERBLOOM_BROWSER", browser);
    let output = command.stdin(Stdio::null()).output().expect("node runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    println!("{said}");
    assert!(output.status.success(), "{name}: {said}");
}

fn address(site: Site) -> String {
    format!("http://127.0.0.1:{}/", site.0)
}

/// Runs a part of the script for `explore`, on a page with a sample.
fn explore(part: &str) {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    let lines: String = (0..6000u64).map(|line| format!("key {}\n", line * line % 1709)).collect();
    folder.write("visits.txt", &lines);
    let other = folder.write("other.txt", &lines);
    folder.output_of(&["build", "visits.txt", "-o", "visits.ebf"]);
    let mut running = Running::start(&folder, &["explore", "visits.txt"], Stdio::null(), Stdio::piped());
    let site = Site::printed(&mut running.0.stdout);
    let filter = folder.path("visits.ebf");
    let files = [&filter, &other].map(|path| path.to_str().expect("text"));
    script(&browser, "explore.mjs", &[&address(site), files[0], files[1], part]);
}

#[test]
fn explore_is_small_and_accessible_on_every_screen() {
    explore("looks");
}

#[test]
fn every_control_of_explore_works_and_is_in_the_address() {
    explore("controls");
}

#[test]
fn explore_works_by_keys_alone() {
    explore("keyboard");
}

#[test]
fn files_can_be_dropped_onto_explore() {
    explore("files");
}

#[test]
fn a_running_dedup_works_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    let arguments = ["dedup", "--serve", "--audit=64KiB", "--filter", "ranked", "-m", "4KiB", "-q", "-o", "out"];
    let mut running = Running::start(&folder, &arguments, Stdio::piped(), Stdio::null());
    let mut line = String::new();
    BufReader::new(running.0.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let site = Site::named_in(&line);
    let mut input = running.0.stdin.take().expect("a pipe");
    // Lines come while the page is looked at, and end with the test.
    let feeder = std::thread::spawn(move || {
        let mut round = 0;
        while input.write_all(numbered(&format!("round {}", round % 7), 500).as_bytes()).is_ok() {
            round += 1;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    script(&browser, "serve.mjs", &[&address(site)]);
    drop(running);
    feeder.join().expect("the feeder ends");
}

#[test]
fn the_labs_report_works_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    let experiments = ["lecture-hashes", "lecture-counting"];
    folder
        .output_of(&[&["lab", "run"], &experiments[..], &["--quick", "--out", "results", "--format", "json"]].concat());
    folder.output_of(&["lab", "report", "results"]);
    let report = folder.path("results/report.html");
    script(&browser, "report.mjs", &[&format!("file://{}", report.display())]);
}
