//! dedup with a filter on servers: many processes, none of which may lose a line or write one twice.

#![cfg(feature = "redis")]

#[path = "../../everbloom-redis/tests/common/mod.rs"]
mod common;
#[path = "servers/trouble.rs"]
mod trouble;

use common::{Chance, Cluster, Maker, Server, on_every_server, seed, share};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

fn everbloom(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everbloom"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).env_remove("EVERBLOOM_REDIS");
    command
}

fn run(folder: &Path, words: &[&str]) -> Output {
    everbloom(folder, words).output().expect("the command line")
}

fn done(folder: &Path, words: &[&str]) -> Vec<u8> {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let output = run(folder, words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}: {text}");
    text
}

/// Bytes of a line, so that a block is a thousand of them.
const LINE: usize = 109;

/// Files of parts of one stream, in which 70 lines in 100 are repeats on average, and the numbers of its distinct lines.
fn parts(folder: &Path, chance: &mut Chance, files: u64, count: u64) -> HashSet<u32> {
    let (universe, padding) = (files * count * 3 / 10, "x".repeat(LINE - 9));
    let mut all = HashSet::new();
    for file in 0..files {
        let mut out = BufWriter::new(File::create(folder.join(format!("part{file}"))).expect("a file"));
        for _ in 0..count {
            let number = chance.below(universe) as u32;
            writeln!(out, "{number:08}{padding}").expect("room");
            all.insert(number);
        }
        out.flush().expect("room");
    }
    all
}

/// How often each line was written. What a killed process wrote half of a line of is no line.
fn written(folder: &Path, files: u64) -> HashMap<u32, u32> {
    let mut counts = HashMap::new();
    for file in 0..files {
        let Ok(out) = File::open(folder.join(format!("out{file}"))) else { continue };
        let lines = BufReader::new(out).split(b'\n').map(|line| line.expect("a line"));
        for line in lines.filter(|line| line.len() == LINE - 1) {
            let number = std::str::from_utf8(&line[..8]).expect("text").parse().expect("a number");
            *counts.entry(number).or_default() += 1;
        }
    }
    counts
}

fn assert_each_once(folder: &Path, files: u64, distinct: &HashSet<u32>) {
    let counts = written(folder, files);
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).take(3).collect();
    let missing: Vec<_> = distinct.iter().filter(|line| !counts.contains_key(*line)).take(3).collect();
    assert!(twice.is_empty() && missing.is_empty(), "twice {twice:?}, missing {missing:?}");
    assert_eq!(counts.len(), distinct.len());
}

fn client(folder: &Path, urls: &str, file: u64, more: &[&str]) -> Child {
    let (input, output) = (format!("part{file}"), format!("out{file}"));
    let mut words = vec!["dedup", "--redis", urls, "--name", "clicks", "--exact", "-o", &output, &input];
    words.extend(more);
    everbloom(folder, &words).stderr(Stdio::piped()).spawn().expect("a client")
}

fn succeeds(client: Child) {
    let output = client.wait_with_output().expect("a client");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn one_client_writes_what_a_filter_of_its_own_would() {
    on_every_server(|maker| {
        let (folder, cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start(maker, 3, false));
        let (folder, urls) = (folder.path(), cluster.urls());
        let mut chance = Chance(seed() + 1);
        let rows = |chance: &mut Chance| format!("{},{}\n", chance.below(3000), chance.below(50));
        let text: String = (0..20_000).map(|_| rows(&mut chance)).collect();
        fs::write(folder.join("rows.csv"), text).expect("a file");
        let cases: [(&str, &[&str]); 3] = [
            ("plain", &["--memory", "8KiB", "--fpr", "1%"]),
            ("keys", &["--csv", "-k", "1", "--filter", "stable", "--memory", "4KiB", "--seed", "9"]),
            ("weighed", &["--csv", "-k", "1", "--importance", "2", "--importance-max", "50", "--memory", "4KiB"]),
        ];
        for (name, options) in cases {
            let filter = options.iter().position(|word| *word == "--filter").map_or("auto", |at| options[at + 1]);
            let sharded = format!("{filter}:shards=16");
            let kept: Vec<&str> =
                options.iter().copied().filter(|word| *word != "--filter" && *word != filter).collect();
            let local = done(folder, &[&["dedup", "rows.csv", "--filter", &sharded], kept.as_slice()].concat());
            let on_servers = ["dedup", "rows.csv", "--redis", &urls, "--name", name, "--shards", "16"];
            let remote = done(folder, &[&on_servers, options].concat());
            assert!(local == remote, "{name}: {} and {} bytes", local.len(), remote.len());
            // A second client with the same options finds nothing new, but for what the filter forgets; others are refused.
            let other = refused(folder, &["dedup", "rows.csv", "--redis", &urls, "--name", name, "--shards", "8"]);
            assert!(other.contains("was asked for"), "{other}");
            // Into a file and back, which then knows the same.
            done(folder, &["redis", "save", name, "saved.ebf", "--redis", &urls]);
            done(folder, &["redis", "load", &format!("{name}2"), "saved.ebf", "--redis", &urls]);
            done(folder, &["redis", "save", &format!("{name}2"), "again.ebf", "--redis", &urls]);
            assert!(
                fs::read(folder.join("saved.ebf")).expect("a file")
                    == fs::read(folder.join("again.ebf")).expect("a file")
            );
            let info = String::from_utf8(done(folder, &["redis", "info", name, "--redis", &urls])).expect("text");
            assert!(info.contains("20,000") && info.contains("shards=16"), "{info}");
            done(folder, &["redis", "delete", name, "--redis", &urls]);
            let gone = refused(folder, &["redis", "info", name, "--redis", &urls]);
            assert!(gone.contains("there is no filter"), "{gone}");
        }
    });
}

#[test]
fn eight_processes_write_each_line_once() {
    on_every_server(|maker| {
        let (folder, mut cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start(maker, 3, true));
        let distinct = parts(folder.path(), &mut Chance(seed() + 2), 8, share(1_250_000));
        let clients: Vec<Child> = (0..8).map(|file| client(folder.path(), &cluster.urls(), file, &[])).collect();
        clients.into_iter().for_each(succeeds);
        assert_each_once(folder.path(), 8, &distinct);
        cluster.check("eight clients");
    });
}

/// Runs clients, and kills each whenever its output has grown to some random length, until it ends by itself; how often.
fn run_killed(folder: &TempDir, urls: &str, chance: &mut Chance, files: u64, more: &dyn Fn(u64) -> Vec<String>) -> u64 {
    let mut kills = 0;
    let mut running: Vec<(u64, Child, u64)> = Vec::new();
    let start = |file: u64, chance: &mut Chance| {
        let more = more(file);
        let child = client(folder.path(), urls, file, &more.iter().map(String::as_str).collect::<Vec<_>>());
        let length = fs::metadata(folder.path().join(format!("out{file}"))).map_or(0, |data| data.len());
        (file, child, length + 1 + chance.below(200_000))
    };
    running.extend((0..files).map(|file| start(file, chance)));
    while !running.is_empty() {
        for (file, mut child, limit) in std::mem::take(&mut running) {
            let length = fs::metadata(folder.path().join(format!("out{file}"))).map_or(0, |data| data.len());
            if child.try_wait().expect("a client").is_some() {
                succeeds(child);
            } else if length >= limit {
                let _ = (child.kill(), child.wait());
                kills += 1;
                running.push(start(file, chance));
            } else {
                running.push((file, child, limit));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kills
}

#[test]
fn clients_that_are_killed_go_on_with_their_state_and_lose_nothing() {
    on_every_server(|maker| {
        let (folder, cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start(maker, 2, false));
        let mut chance = Chance(seed() + 3);
        let distinct = parts(folder.path(), &mut chance, 3, share(200_000).max(20_000));
        let state = |file: u64| vec!["--state".to_string(), format!("state{file}"), "-q".into()];
        let kills = run_killed(&folder, &cluster.urls(), &mut chance, 3, &state);
        eprintln!("{kills} clients were killed");
        assert!(kills >= share(30));
        assert_each_once(folder.path(), 3, &distinct);
        // A run that ended has nothing more to do.
        let again = client(folder.path(), &cluster.urls(), 0, &["--state", "state0"]);
        succeeds(again);
        assert_each_once(folder.path(), 3, &distinct);
    });
}

#[test]
fn a_client_that_is_killed_without_a_state_loses_a_block_for_each_thread_at_most() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let (url, mut chance, mut lost) = (format!("redis://127.0.0.1:{}", server.port), Chance(seed() + 5), 0);
        for round in 0..share(30) {
            let folder = tempfile::tempdir().expect("a folder");
            let (folder, name) = (folder.path(), format!("round{round}"));
            let distinct = parts(folder, &mut chance, 1, 20_000);
            let words = ["dedup", "--redis", &url, "--name", &name, "--exact", "--threads", "2", "part0", "-o"];
            let mut killed = everbloom(folder, &[&words[..], &["out0"]].concat()).spawn().expect("a client");
            let limit = chance.below(distinct.len() as u64 * LINE as u64 * 9 / 10);
            let grown = || fs::metadata(folder.join("out0")).map_or(0, |data| data.len()) > limit;
            common::wait("some lines", grown);
            let _ = (killed.kill(), killed.wait());
            done(folder, &[&words[..], &["out1"]].concat());
            let counts = written(folder, 2);
            assert!(counts.values().all(|count| *count == 1), "round {round}: a line was written twice");
            let missing = distinct.len() - counts.len();
            assert!(missing <= 2 * (512 << 10) / LINE, "round {round}: {missing} lines are lost");
            lost += missing;
        }
        eprintln!("{} clients were killed without a state, and lost {lost} lines", share(30));
    });
}

#[test]
fn a_primary_that_dies_under_load_is_not_noticed_in_the_output() {
    on_every_server(|maker| {
        let (folder, mut cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start(maker, 3, true));
        let mut chance = Chance(seed() + 4);
        let distinct = parts(folder.path(), &mut chance, 2, share(200_000).max(20_000));
        let clients: Vec<Child> = (0..2)
            .map(|file| client(folder.path(), &cluster.urls(), file, &["--replicas", "1", "--shards", "12"]))
            .collect();
        let grown = || fs::metadata(folder.path().join("out0")).map_or(0, |data| data.len()) > 200_000;
        common::wait("the first lines", grown);
        cluster.nodes[2].kill();
        // The shards of the dead one have no replica any more, and wait for it to come back as one.
        common::wait("a failover", || cluster.nodes[5].info("replication", "role") == "master");
        cluster.nodes[2].start_again_as_configured();
        clients.into_iter().for_each(succeeds);
        assert_each_once(folder.path(), 2, &distinct);
        cluster.wait_until_whole();
        let (one, other) = (&cluster.nodes[5], &cluster.nodes[2]);
        one.wait_for(other);
        let keys = one.wire().call(&["KEYS", "*"]);
        for key in keys.items().iter().map(common::Reply::text) {
            let digest = |server: &Server| server.wire().call(&["DEBUG", "DIGEST-VALUE", &key]).items()[0].text();
            assert_eq!(digest(one), digest(other), "{key}");
        }
    });
}

#[test]
fn windows_on_servers_keep_what_they_say() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), format!("redis://127.0.0.1:{}", server.port));
        let mut chance = Chance(seed() + 6);
        let text: String = (0..20_000).map(|_| format!("{}\n", chance.below(6000))).collect();
        fs::write(folder.join("lines"), &text).expect("a file");
        let at = |name: &'static str| ["dedup", "lines", "-v", "--redis", &url, "--name", name].map(str::to_string);
        let run = |name: &'static str, more: &[&str]| {
            let words = at(name);
            let output = run(folder, &[&words.each_ref().map(String::as_str), more].concat());
            assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", String::from_utf8_lossy(&output.stderr));
            let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
            (output.stdout, lines, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        // A window of lines is that of one machine.
        let local = done(folder, &["dedup", "lines", "--window", "3000", "--fpr", "1%"]);
        let (remote, _, told) = run("lines", &["--window", "3000", "--fpr", "1%"]);
        assert!(local == remote && told.contains("no repeat within 3,000 lines of all machines got through"), "{told}");
        // One of time finds what came before, whoever asks, and forgets it when it has turned.
        let day = ["--window", "300000d", "--expect", "20000", "--fpr", "1%"];
        let distinct = text.lines().collect::<HashSet<_>>().len();
        let (_, lines, told) = run("day", &day);
        // At most 1 in 100 of the lines that are new is missing, and four standard deviations more.
        let missing = distinct - lines;
        assert!(missing as f64 <= distinct as f64 * 0.01 + 4.0 * (distinct as f64 * 0.01).sqrt(), "{missing}");
        assert!(told.contains("At most 1 in") && told.contains("no repeat within 42857w1d got through"), "{told}");
        let (_, lines, told) = run("day", &[]);
        assert!(lines == 0 && told.contains("no repeat within 42857w1d got through"), "{lines}: {told}");
        let mut wire = server.wire();
        let shards = wire.call(&["KEYS", "{day.*}"]);
        assert_eq!(shards.items().len(), 64);
        let turn = |key: &common::Reply| server.wire().ok(&format!("EB.ADVANCE {} 100", key.text()));
        shards.items().iter().for_each(turn);
        assert!(run("day", &day).1 > distinct * 9 / 10);
        // More than planned is said, once, and nothing else is promised.
        let few = ["--window", "300000d", "--expect", "100", "--fpr", "1%"];
        let (_, _, told) = run("few", &few);
        assert!(told.contains("planned for") && told.contains("lines within 42857w1d from all machines"), "{told}");
        assert!(told.contains("The promise was broken"), "{told}");
        let other = ["dedup", "lines", "--redis", &url, "--name", "few", "--window", "1d", "--expect", "100"];
        assert!(refused(folder, &other).contains("was asked for"));
        let info = String::from_utf8(done(folder, &["redis", "info", "day", "--redis", &url])).expect("text");
        assert!(info.contains("42857w1d, planned for"), "{info}");
    });
}

#[test]
fn what_cannot_be_is_said_plainly() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\nb\na\n").expect("a file");
    let nobody = ["dedup", "lines", "--redis", "redis://me:secret@127.0.0.1:1", "--name", "x", "--patience", "1s"];
    let text = refused(folder, &nobody);
    assert!(text.contains("127.0.0.1:1") && !text.contains("secret"), "{text}");
    let cases: [(&[&str], &str); 8] = [
        (&["--redis", "redis://h:1"], "--name"),
        (&["--name", "x"], "--redis"),
        (&["--redis", "localhost", "--name", "x"], "redis://"),
        (&["--redis", "rediss://h:1", "--name", "x"], "TLS"),
        (&["--redis", "redis://h:1", "--name", "x", "--window", "1000", "--shards", "8"], "leave --shards out"),
        (&["--redis", "redis://h:1", "--name", "x", "--window", "24h", "--time", "1"], "leave --time out"),
        (&["--redis", "redis://h:1", "--name", "x", "--counts"], "--counts"),
        (&["--redis", "redis://127.0.0.1:1", "--name", "a b"], "name"),
    ];
    for (options, expected) in cases {
        let text = refused(folder, &[&["dedup", "lines"], options].concat());
        assert!(text.contains(expected), "{options:?}: {text}");
    }
    on_every_server(|maker: Maker| {
        let server = Server::without_module(maker);
        let url = format!("redis://127.0.0.1:{}", server.port);
        let text = refused(folder, &["dedup", "lines", "--redis", &url, "--name", "x"]);
        assert!(text.contains("lacks the everbloom module") && text.contains("loadmodule"), "{text}");
        let server = Server::new(maker);
        let url = format!("redis://127.0.0.1:{}", server.port);
        assert_eq!(done(folder, &["dedup", "lines", "--redis", &url, "--name", "x"]), b"a\nb\n");
        assert_eq!(done(folder, &["dedup", "lines", "--redis", &url, "--name", "y", "--state", "s", "-q"]), b"a\nb\n");
        let text = refused(folder, &["dedup", "lines", "--state", "s"]);
        assert!(text.contains("--redis"), "{text}");
        fs::remove_file(folder.join("s")).expect("a state");
    });
}
