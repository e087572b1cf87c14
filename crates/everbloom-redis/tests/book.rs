//! The sessions that the book's page on Redis shows are typed into redis-cli, and must print what the page says.
//!
//! A block of language `redis` has commands behind `> `, each followed by what redis-cli prints; `…` within a line stands
//! for any text, alone in a line for any lines. The blocks of the page share a server.
//! `EVERBLOOM_BLESS=1 cargo test -p everbloom-redis --test book` writes what is printed into the page.

//! The lines of the block with `EB.DUMP` are pasted into a shell beside such a server.

mod common;
#[path = "../../../xtask/tests/documents/output.rs"]
#[allow(dead_code)]
mod output;

use common::{Maker, Server, on_every_server, servers};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../book/src/redis.md")
}

/// What redis-cli prints for a line that is typed into it.
fn typed(server: &Server, line: &str) -> Vec<String> {
    let mut command = Command::new(servers().join("redis-cli"));
    command.args(["-p", &server.port.to_string(), "--no-raw"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = command.spawn().expect("redis-cli");
    client.stdin.take().expect("its input").write_all(line.as_bytes()).expect("a line");
    let output = client.wait_with_output().expect("redis-cli");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // How long a slow command took is printed in a line of its own.
    let is_time = |line: &str| {
        line.starts_with('(') && line.ends_with("s)") && line[1..].starts_with(|c: char| c.is_ascii_digit())
    };
    text.lines().map(|line| line.trim_end().to_string()).filter(|line| !line.is_empty() && !is_time(line)).collect()
}

#[test]
fn sessions_print_what_the_page_says() {
    let text = std::fs::read_to_string(page()).expect("the page");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let (mut blessed, mut problems, mut commands) = (Vec::new(), Vec::new(), 0);
        let mut lines = text.lines().map(String::from).peekable();
        let mut inside = false;
        while let Some(line) = lines.next() {
            inside = if line.starts_with("```") { line == "```redis" } else { inside };
            blessed.push(line.clone());
            let Some(command) = line.strip_prefix("> ").filter(|_| inside) else { continue };
            let mut expected = Vec::new();
            while let Some(next) = lines.next_if(|next| !next.starts_with("> ") && !next.starts_with("```")) {
                expected.push(next);
            }
            commands += 1;
            let printed = typed(&server, command);
            let shown = expected.iter().map(|line| line.trim_end().to_string()).filter(|line| !line.is_empty());
            let shown: Vec<String> = shown.collect();
            if output::matches(&shown, &printed) {
                blessed.extend(expected);
            } else {
                problems.push(format!("> {command}\n{}\n", printed.join("\n")));
                blessed.extend(printed);
            }
        }
        assert!(commands > 10, "{commands} commands");
        if std::env::var_os("EVERBLOOM_BLESS").is_some() && maker == Maker::Redis && !problems.is_empty() {
            std::fs::write(page(), blessed.join("\n") + "\n").expect("the page is written");
        } else {
            assert!(problems.is_empty(), "the page shows something else for\n{}", problems.join("\n"));
        }
        server.check("the page");
    });
}

/// The command line, where it was built: `cargo xtask test` does.
fn command_line() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("this test");
    let found = test.ancestors().skip(1).take(2).map(|folder| folder.join("everbloom")).find(|file| file.exists());
    assert!(found.is_some() || std::env::var_os("EVERBLOOM_CI").is_none(), "no everbloom beside {}", test.display());
    found
}

#[test]
fn filters_go_from_a_server_to_a_file_and_back_as_the_page_says() {
    let Some(everbloom) = command_line() else {
        eprintln!("SKIPPED: files of the command line; `cargo build -p everbloom-cli` makes it");
        return;
    };
    let text = std::fs::read_to_string(page()).expect("the page");
    let block = text.split("```").find(|block| block.starts_with("sh ") && block.contains("EB.DUMP")).expect("a block");
    let lines = block.split_once('\n').expect("lines").1;
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        wire.ok("EB.RESERVE seen auto MEMORY 16mb FPR 0.1%");
        wire.say("EB.MADD seen event-1 event-2");
        // A client that knows the server's port, and the command line, by their names.
        let folder = tempfile::tempdir().expect("a folder");
        let names = [
            ("redis-cli", servers().join("redis-cli"), format!("-p {}", server.port)),
            ("everbloom", everbloom.clone(), String::new()),
        ];
        for (name, program, options) in names {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\nexec '{}' {options} \"$@\"\n", program.display()))
                .expect("a file");
            let run = Command::new("chmod").arg("+x").arg(&file).status().expect("chmod");
            assert!(run.success());
        }
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", lines]).env("PATH", path).current_dir(folder.path());
        let output = shell.output().expect("a shell");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{}\n{}", said[0], said[1]);
        eprintln!("{}", said[0]);
        assert!(said[0].contains("ranked"), "what `info` says: {}", said[0]);
        assert!(said[0].contains("\nOK\n1\n1\n0\n"), "{}", said[0]);
        // What a server gave is what it has, to the byte; what was built is what is loaded.
        for (file, key) in [("seen.ebf", "seen"), ("numbers.ebf", "numbers")] {
            let bytes = std::fs::read(folder.path().join(file)).expect("a file");
            assert!(bytes == wire.call(&["EB.DUMP", key]).into_bytes(), "{file} and {key} differ");
        }
        server.check("files");
    });
}
