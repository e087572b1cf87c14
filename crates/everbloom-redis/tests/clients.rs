//! The examples run, as a user would run them, and their own assertions hold.

mod common;

use common::{Reply, Server, on_every_server, servers};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}:\n{}\n{}", said[0], said[1]);
    eprintln!("{}", said[0]);
}

#[test]
fn a_client_in_rust() {
    let test = std::env::current_exe().expect("this test");
    let built = test.parent().and_then(Path::parent).expect("a target folder").join("examples/workers");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        run(Command::new(&built).arg(format!("redis://127.0.0.1:{}", server.port)));
        server.check("the example");
    });
}

#[test]
fn a_client_in_python() {
    let python = servers().join("redis-py/bin/python");
    if !servers().join("redis-py/whole").exists() {
        let missing = format!("the client in Python, since there is no {}", python.display());
        assert!(std::env::var_os("EVERBLOOM_CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}; `cargo xtask redis --fetch` fetches it");
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workers.py");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        run(Command::new(&python).arg(&program).arg(format!("redis://127.0.0.1:{}", server.port)));
        server.check("the example");
    });
}

#[test]
fn lines_that_plan_prints_are_accepted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../everbloom-cli/tests/plan_lines.jsonl");
    let rows = std::fs::read_to_string(path).expect("the lines of `everbloom plan`");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut pasted = 0;
        for row in rows.lines() {
            let Some(lines) = text_of(row, "redis") else { continue };
            // As pasted into a shell that finds this server; `-e` makes redis-cli fail where the server does.
            let program = servers().join("redis-cli");
            let begin = format!("redis-cli() {{ '{}' -e -p {} \"$@\"; }}", program.display(), server.port);
            let output = Command::new("bash").args(["-ec", &format!("{begin}\n{lines}")]).output().expect("bash");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{lines}\n{said}{problem}");
            // A line is new, and a key is inside.
            assert!(said.starts_with("OK\n1\n") && said.ends_with("1\n"), "{lines}\n{said}");
            server.wire().say("FLUSHALL");
            pasted += 1;
        }
        assert!(pasted > 5, "{pasted} plans");
        server.check("the lines of plans");
    });
}

#[test]
fn auto_takes_what_the_library_takes_where_no_arrival_may_take_long() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../everbloom-all/tests/golden/goals.jsonl");
    let rows = std::fs::read_to_string(path).expect("the goals of the library's tests");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        let mut asked = 0;
        for row in rows.lines() {
            let mut line = "EB.PLAN auto".to_string();
            for name in ["memory", "fpr", "expect", "window"] {
                text_of(row, name).iter().for_each(|value| line.push_str(&format!(" {} {value}", name.to_uppercase())));
            }
            if row.contains("\"importance\":true") {
                line.push_str(" IMPORTANCE 9");
            }
            // Its windows are of time.
            if text_of(row, "window").is_some_and(|window| !window.ends_with(['s', 'h'])) {
                continue;
            }
            let reply = wire.say(&line);
            let taken = if matches!(reply, Reply::Error(_)) { None } else { reply.field("spec").map(Reply::text) };
            assert_eq!(taken, text_of(row, "server"), "{line}: {reply:?}");
            // What differs from a filter of one process is what would change all of its cells at once, and block.
            let plain = text_of(row, "plan");
            let blocks = |spec: &String| spec.starts_with("graceful");
            assert_eq!(taken != plain, plain.as_ref().is_some_and(blocks), "{row}");
            asked += 1;
        }
        assert!(asked > 120, "{asked} goals");
        server.check("the goals");
    });
}

/// A text of a JSON object in one line, whose quotes and newlines are escaped and nothing else.
fn text_of(row: &str, name: &str) -> Option<String> {
    let (_, rest) = row.split_once(&format!("\"{name}\":\""))?;
    let mut text = String::new();
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => match letters.next()? {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            letter => text.push(letter),
        }
    }
}
