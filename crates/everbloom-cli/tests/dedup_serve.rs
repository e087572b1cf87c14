//! The page of a running dedup, and its metrics.
#![cfg(feature = "web")]

mod common;

use common::http::Site;
use common::live::{Running, numbered, wait_until};
use common::{Folder, assert_refused};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Stdio};

/// A run that waits for more lines.
struct Run {
    site: Site,
    running: Running,
    said: BufReader<ChildStderr>,
}

fn run(folder: &Folder, more: &[&str]) -> Run {
    let arguments = [&["dedup", "--serve", "-o", "out"], more].concat();
    let mut running = Running::start(folder, &arguments, Stdio::piped(), Stdio::null());
    let mut said = BufReader::new(running.0.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(said.read_line(&mut line).expect("a line") > 0, "no address");
    }
    Run { site: Site::named_in(&line), running, said }
}

impl Run {
    fn send(&mut self, lines: &str) {
        let input = self.running.0.stdin.as_mut().expect("a pipe");
        input.write_all(lines.as_bytes()).and_then(|()| input.flush()).expect("sent");
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let reply = self.site.get("/metrics");
        assert_eq!(reply.status, 200);
        assert!(reply.headers.contains("content-type: text/plain; version=0.0.4"), "{}", reply.headers);
        parsed(&reply.body)
    }

    fn end(mut self) -> (Option<i32>, String) {
        drop(self.running.0.stdin.take());
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        (self.running.0.wait().expect("an end").code(), said)
    }
}

/// The text format: HELP and TYPE before each name, a number behind it.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with('\n'));
    let mut found = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(help) = lines.next() {
        let name = help.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()).expect(help);
        let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")?.strip_prefix(name)).expect(name);
        assert!([" counter", " gauge"].contains(&kind), "{kind}");
        assert_eq!(kind == " counter", name.ends_with("_total"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let (same, value) = lines.next().and_then(|line| line.split_once(' ')).expect(name);
        assert_eq!(same, name);
        assert_eq!(found.insert(name.to_string(), value.parse().expect(name)), None, "{name} comes twice");
    }
    found
}

#[test]
fn a_run_shows_what_has_come_while_it_goes_on() {
    let folder = Folder::new();
    let mut run = run(&folder, &["-m", "64KiB"]);
    run.send(&(numbered("line", 1000) + &numbered("line", 600)));
    wait_until("all lines", || run.metrics()["everbloom_arrivals_total"] == 1600.0);
    let metrics = run.metrics();
    assert_eq!(metrics["everbloom_repeats_total"], 600.0);
    assert_eq!(metrics["everbloom_promise_broken"], 0.0);
    assert!((0.0005..=0.001).contains(&metrics["everbloom_promised_fpr"]), "{metrics:?}");
    assert!(metrics["everbloom_memory_bytes"] <= 65536.0 && metrics["everbloom_arrivals_per_second"] > 0.0);
    assert!(metrics.keys().all(|name| !name.contains("audit")));
    let shown = run.site.get("/api/run").json();
    let rows: Vec<(String, String)> = serde_json::from_value(shown["rows"].clone()).expect("rows");
    assert!(rows.contains(&("lines".into(), "1,600".into())), "{rows:?}");
    assert!(rows.contains(&("repeats".into(), "600 (37.5 %)".into())), "{rows:?}");
    assert!(rows.iter().any(|(name, value)| name == "promise" && value.starts_with("kept so far")), "{rows:?}");
    assert!(shown["svg"].as_str().expect("a chart").starts_with("<svg"));
    run.send(&numbered("more", 400));
    wait_until("more lines", || run.metrics()["everbloom_arrivals_total"] == 2000.0);
    let (code, said) = run.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(String::from_utf8(folder.read("out")).expect("text"), numbered("line", 1000) + &numbered("more", 400));
}

#[test]
fn an_audit_is_on_the_page_and_in_the_metrics() {
    let folder = Folder::new();
    let mut run = run(&folder, &["--filter", "ranked", "-m", "2KiB", "--audit=64KiB"]);
    // New lines and repeats to the end, so that there are both in the last part, too.
    let lines: String = (0..5000).map(|number| format!("line {number}\nline {}\n", number / 2)).collect();
    run.send(&lines);
    wait_until("all lines", || run.metrics()["everbloom_arrivals_total"] == 10_000.0);
    // Without another line.
    wait_until("a look at the audit", || run.metrics().get("everbloom_audit_fnr").is_some_and(|rate| *rate > 0.1));
    let metrics = run.metrics();
    for name in ["audit_fpr", "audit_fnr", "audit_last_fpr", "audit_last_fnr"] {
        let [rate, low, high] = ["", "_low", "_high"].map(|end| metrics[&format!("everbloom_{name}{end}")]);
        assert!(low <= rate && rate <= high, "{name}: {low} {rate} {high}");
    }
    let rows = run.site.get("/api/run").json()["rows"].to_string();
    assert!(rows.contains("measured fnr"), "{rows}");
}

/// Each takes a file descriptor, of which a process has few.
#[cfg(target_os = "linux")]
#[test]
fn idle_connections_leave_a_run_its_files() {
    let folder = Folder::new();
    let mut run = run(&folder, &[]);
    let listed = format!("/proc/{}/fd", run.running.0.id());
    let open = || std::fs::read_dir(&listed).expect("a process").count();
    let before = open();
    let idle: Vec<_> = (0..100).map(|_| run.site.connect()).collect();
    wait_until("connections", || open() >= before + 60);
    run.send("a\na\n");
    assert!(open() <= before + 70, "{} of {} connections are open", open() - before, idle.len());
    drop(idle);
    wait_until("both lines", || run.metrics()["everbloom_arrivals_total"] == 2.0);
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn a_broken_promise_is_in_the_metrics() {
    let folder = Folder::new();
    let mut run = run(&folder, &["--filter", "bloom", "--expect", "100", "--quiet"]);
    run.send(&numbered("line", 20_000));
    wait_until("all lines", || run.metrics()["everbloom_arrivals_total"] == 20_000.0);
    // Though no more lines come.
    wait_until("a look", || run.metrics()["everbloom_promise_broken"] == 1.0);
    assert_eq!(run.metrics()["everbloom_arrivals_total"], 20_000.0);
    wait_until("a pause", || run.metrics()["everbloom_pause_seconds"] >= 2.0);
    let state = run.site.get("/api/run").json()["state"].to_string();
    assert!(state.contains("No lines come: the last one came"), "{state}");
    run.send("again\n");
    wait_until("a line", || run.site.get("/api/run").json()["state"] == "Running.");
    assert_eq!(run.end().0, Some(3));
}

#[test]
fn the_page_of_a_run_is_for_this_machine_alone() {
    let folder = Folder::new();
    let run = run(&folder, &[]);
    for path in ["/", "/page.css", "/charts.css", "/page.js", "/api/run", "/metrics"] {
        let reply = run.site.get(path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.headers.contains("content-security-policy"), "{path}");
        assert_eq!(run.site.ask_as("Host: evil.example", &format!("GET {path}"), &[], b"").status, 403, "{path}");
    }
    assert_eq!(run.site.ask("GET /metrics", &["Sec-Fetch-Site: cross-site"], b"").status, 403);
    assert_eq!(run.site.ask("POST /metrics", &[], b"x").status, 405);
    assert_eq!(run.site.get("/nothing").status, 404);
    let port = run.site.0.to_string();
    assert_refused(&folder.run(&["dedup", &format!("--serve={port}"), "-o", "other"]), "leave the port out");
    assert_refused(&folder.run(&["dedup", "--serve=x"]), "--serve");
    assert_refused(&folder.run(&["dedup", "--serve", "--counts"]), "--counts");
}
