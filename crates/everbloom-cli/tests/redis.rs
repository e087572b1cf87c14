//! `everbloom redis`: filters between files and servers, and what is said of those that cannot go.

#![cfg(feature = "redis")]

#[path = "../../everbloom-redis/tests/common/mod.rs"]
mod common;

use common::{Server, kinds, on_every_server, small_spec};
use everbloom_all::KINDS;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everbloom"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).env_remove("EVERBLOOM_REDIS");
    let Output { status, stdout, stderr } = command.output().expect("the command line");
    (status.code(), stdout, String::from_utf8_lossy(&stderr).into_owned())
}

/// What it says beside its output.
fn done(folder: &Path, words: &[&str]) -> String {
    let (code, _, told) = run(folder, words);
    assert_eq!(code, Some(0), "{words:?}: {told}");
    told
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let (code, out, told) = run(folder, words);
    assert!(code == Some(2) && out.is_empty(), "{words:?}: {code:?} {told}");
    told
}

fn lines(folder: &Path, name: &str, numbers: std::ops::Range<u32>) {
    let text: String = numbers.map(|number| format!("{number},x\n")).collect();
    fs::write(folder.join(name), text).expect("a file");
}

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

fn same(folder: &Path, one: &str, other: &str) -> bool {
    fs::read(folder.join(one)).expect("a file") == fs::read(folder.join(other)).expect("a file")
}

#[test]
fn dedup_notices_that_a_loaded_filter_gets_more_than_it_was_planned_for() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), url(&server));
        lines(folder, "old", 0..900);
        lines(folder, "new", 900..1700);
        done(
            folder,
            &["build", "old", "-o", "old.ebf", "--filter", "blocked:shards=4", "--expect", "1000", "--fpr", "1%"],
        );
        done(folder, &["redis", "load", "seen", "old.ebf", "--redis", &url]);
        let (_, info, _) = run(folder, &["redis", "info", "seen", "--redis", &url]);
        let info = String::from_utf8_lossy(&info).into_owned();
        assert!(info.lines().any(|line| line.starts_with("observed") && line.ends_with(" 900")), "{info}");
        // As many as were promised, of which the file has most, and then more.
        let (code, _, told) = run(folder, &["dedup", "old", "--redis", &url, "--name", "seen"]);
        assert_eq!((code, told.contains("promise")), (Some(0), false), "{told}");
        let (code, _, told) = run(folder, &["dedup", "new", "--redis", &url, "--name", "seen"]);
        assert_eq!(code, Some(3), "{told}");
        let (_, after, _) = run(folder, &["redis", "info", "seen", "--redis", &url]);
        let after = String::from_utf8_lossy(&after).into_owned();
        let holds = |info: &str| info.lines().find(|line| line.starts_with("still holds")).map(str::to_string);
        assert!(holds(&info).expect(&info).ends_with("yes") && holds(&after).expect(&after).contains("no: more"));
    });
}

#[test]
fn costs_are_refused_where_many_machines_share_a_filter() {
    let folder = tempfile::tempdir().expect("a folder");
    lines(folder.path(), "some", 0..100);
    let cost = ["dedup", "some", "--redis", "redis://127.0.0.1:1", "--name", "x", "--cost-fp", "1", "--cost-fn", "2"];
    let told = refused(folder.path(), &cost);
    assert!(told.contains("--cost-fp") && told.contains("everbloom plan"), "{told}");
}

#[test]
fn files_of_every_kind_come_back_as_they_went_or_are_refused_with_the_reason() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), url(&server));
        for kind in kinds() {
            let goal = everbloom::Goal::new().memory_bits(1 << 18).expected_items(4000).fpr(0.1);
            let mut filter = goal.plan_among(KINDS, &small_spec(kind)).and_then(|plan| plan.build()).expect("a filter");
            filter.extend(0..3000u64);
            fs::write(folder.join("one.ebf"), filter.to_bytes()).expect("a file");
            let load = ["redis", "load", kind.name, "one.ebf", "--redis", &url];
            if filter.hashing().seed().is_none() {
                let told = refused(folder, &load);
                assert!(told.contains("cannot be split") && told.contains("EB.LOAD"), "{told}");
                continue;
            }
            done(folder, &load);
            for times in ["two.ebf", "three.ebf"] {
                done(folder, &["redis", "save", kind.name, times, "--redis", &url]);
                assert!(same(folder, "one.ebf", times), "{}", kind.name);
                done(folder, &["redis", "load", kind.name, times, "--replace", "--redis", &url]);
            }
        }
    });
}

#[test]
fn what_a_file_has_beside_its_filter_is_kept_or_it_is_said() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), url(&server));
        lines(folder, "rows", 0..500);
        done(folder, &["build", "rows", "--csv", "-k", "1", "-o", "keys.ebf", "--expect", "1000"]);
        let told = done(folder, &["redis", "load", "keys", "keys.ebf", "--redis", &url]);
        assert!(told.contains("--csv --key 1"), "{told}");
        done(folder, &["redis", "save", "keys", "back.ebf", "--redis", &url]);
        assert!(same(folder, "keys.ebf", "back.ebf"));
        done(folder, &["dedup", "rows", "--audit", "-o", "out", "--state", "audited.state", "--memory", "64KiB", "-q"]);
        let told = done(folder, &["redis", "load", "audited", "audited.state", "--redis", &url]);
        assert!(told.contains("audit"), "{told}");
        // A window of time is as long as its file says, or as it is told.
        let plan = ["redis", "create", "day", "--window", "24h", "--expect", "1000", "--shards", "3", "--redis", &url];
        done(folder, &plan);
        done(folder, &["redis", "save", "day", "day.ebf", "--redis", &url]);
        let told = refused(folder, &["redis", "load", "again", "day.ebf", "--redis", &url]);
        assert!(told.contains("give the window"), "{told}");
        done(folder, &["redis", "load", "again", "day.ebf", "--window", "24h", "--redis", &url]);
        let key = everbloom_redis_client::shard_key("again", 1, 3);
        let dumped = server.wire().call(&["EB.DUMP", &key]);
        let common::Reply::Bulk(bytes) = dumped else { panic!("{dumped:?}") };
        fs::write(folder.join("shard.ebf"), bytes).expect("a file");
        done(folder, &["redis", "load", "shard", "shard.ebf", "--redis", &url]);
        let (_, info, _) = run(folder, &["redis", "info", "shard", "--redis", &url]);
        assert!(String::from_utf8_lossy(&info).contains("1d, planned for"), "{}", String::from_utf8_lossy(&info));
    });
}

#[test]
fn what_create_is_told_is_what_it_makes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let nowhere = ["--redis", "redis://127.0.0.1:1"];
    let cases: [(&[&str], &str); 4] = [
        (&["create", "x", "--window", "1000", "--shards", "8"], "leave --shards out"),
        (&["create", "x", "--filter", "bloom:shards=4", "--shards", "8"], "leave one of them out"),
        (&["load", "x", "x.ebf", "--window", "1000"], "24h"),
        (&["create", "x", "--window", "1000", "--filter", "bloom"], "--filter"),
    ];
    for (words, expected) in cases {
        let told = refused(folder, &[&["redis"], words, &nowhere].concat());
        assert!(told.contains(expected), "{words:?}: {told}");
    }
    on_every_server(|maker| {
        let server = Server::new(maker);
        let url = url(&server);
        let made = |words: &[&str]| {
            let (code, out, told) = run(folder, &[&["redis", "create"], words, &["--redis", &url]].concat());
            assert_eq!(code, Some(0), "{told}");
            String::from_utf8(out).expect("text")
        };
        // A count is a window of lines, as for dedup, which then uses it.
        let window = made(&["last", "--window", "1000", "--fpr", "1%"]);
        assert!(window.contains("window=1000") && !window.contains("advance=caller"), "{window}");
        lines(folder, "some", 0..50);
        done(folder, &["dedup", "some", "--redis", &url, "--name", "last", "--window", "1000", "--fpr", "1%", "-q"]);
        let one = made(&["one", "--filter", "bloom:shards=1", "--expect", "100"]);
        assert!(one.lines().any(|line| line.starts_with("shards ") && line.ends_with(" 1")), "{one}");
    });
}
