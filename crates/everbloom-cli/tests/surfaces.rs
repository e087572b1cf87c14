//! The command line and its page take what the library takes, for the 200 goals of its `laws/surfaces.rs`.

mod common;

use common::{Folder, json_of};
use serde_json::Value;
use std::process::Output;

fn goals() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../everbloom-all/tests/golden/goals.jsonl");
    let text = std::fs::read_to_string(path).expect("the goals of the library's tests");
    text.lines().map(|line| json_of(line.as_bytes())).collect()
}

fn options(goal: &Value) -> Vec<(&'static str, String)> {
    let given = |name| goal[name].as_str().map(|value| (name, value.to_string()));
    ["memory", "fpr", "expect", "window"].into_iter().filter_map(given).collect()
}

fn words(command: &str, goal: &Value, more: &[&str]) -> Vec<String> {
    let options = options(goal).into_iter().map(|(name, value)| format!("--{name}={value}"));
    [command.to_string()].into_iter().chain(options).chain(more.iter().map(|word| word.to_string())).collect()
}

fn run(folder: &Folder, words: &[String]) -> Output {
    folder.run_with(&words.iter().map(String::as_str).collect::<Vec<_>>(), b"")
}

/// Asks for every goal, on two threads; `asked` says what is taken, if a goal can be asked so.
fn each(column: &str, asked: impl Fn(&Folder, &Value) -> Option<Option<String>> + Sync) {
    let goals = goals();
    let count = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for part in goals.chunks(goals.len().div_ceil(2)) {
            let (asked, count) = (&asked, &count);
            scope.spawn(move || {
                let folder = Folder::new();
                for goal in part {
                    let Some(found) = asked(&folder, goal) else { continue };
                    let wanted = goal[column].as_str();
                    // How importances are spread has words of its own here; the kind is the same.
                    let kind = |spec: &str| spec.split(':').next().unwrap_or_default().to_string();
                    match goal["importance"] == true && column == "plan" {
                        true => assert_eq!(found.as_deref().map(kind), wanted.map(kind), "{goal}"),
                        false => assert_eq!(found.as_deref(), wanted, "{goal}"),
                    }
                    count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert!(count.into_inner() >= 50, "few goals are asked");
}

/// The filter of a document, unless the run was refused.
fn filter_of(output: &Output, document: impl FnOnce() -> Vec<u8>) -> Option<String> {
    let filter = || json_of(&document())["filter"].as_str().expect("a filter").to_string();
    match output.status.code() {
        Some(2) => None,
        code => (code == Some(0)).then(filter).or_else(|| panic!("{output:?}")),
    }
}

#[test]
fn plan_takes_what_the_library_takes() {
    each("plan", |folder, goal| {
        let importance: &[&str] = if goal["importance"] == true { &["--importance=linear"] } else { &[] };
        let output = run(folder, &words("plan", goal, &[&["--format=json"], importance].concat()));
        Some(filter_of(&output, || output.stdout.clone()))
    });
}

#[test]
fn dedup_takes_what_the_library_takes_where_more_keys_may_come() {
    each("stream", |folder, goal| {
        let importance = ["--importance=1", "--importance-max=9"];
        let importance: &[&str] = if goal["importance"] == true { &importance } else { &[] };
        let output = run(folder, &words("dedup", goal, &[&["--stats=stats.json"], importance].concat()));
        Some(filter_of(&output, || folder.read("stats.json")))
    });
}

#[test]
fn build_takes_what_the_library_takes_where_nothing_may_be_forgotten() {
    each("set", |folder, goal| {
        // It counts keys that nobody expects, and has no windows.
        if goal["expect"].is_null() || !goal["window"].is_null() {
            return None;
        }
        let output = run(folder, &words("build", goal, &["-o", "keys.ebf"]));
        Some(filter_of(&output, || folder.output_of(&["info", "keys.ebf", "--format", "json"])))
    });
}

#[cfg(feature = "web")]
#[test]
fn the_page_takes_what_the_library_takes() {
    use common::http::{Site, in_address};
    use std::process::Stdio;
    let folder = Folder::new();
    let mut command = folder.command(&["explore"]);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut running = common::live::Running(spawned.expect("everbloom runs"));
    let site = Site::printed(&mut running.0.stdout);
    each("plan", |_, goal| {
        let mut pairs = options(goal);
        pairs.extend((goal["importance"] == true).then(|| ("importance", "linear".to_string())));
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={}", in_address(value))).collect();
        let reply = site.get(&format!("/api/glance?{}", pairs.join("&")));
        Some(match reply.status {
            200 => reply.json()["told"]["document"]["filter"].as_str().map(String::from),
            status => (400..500).contains(&status).then_some(None).expect("an answer or a refusal"),
        })
    });
}
