//! Servers that fail, forget or do not say: no line is lost, and what is not known is told.

use super::common::{Cluster, Server, on_every_server};
use super::{done, run};
use everbloom_redis_client::shard_key;
use std::fs;
use std::path::Path;

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

fn lines(from: u32, count: u32) -> String {
    (from..from + count).map(|number| format!("line {number}\n")).collect::<String>()
}

fn told(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = run(folder, words);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn lines_that_servers_took_are_written_though_they_do_not_say_how_full_they_are() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        server.wire().ok("ACL SETUSER guest on >secret ~* +@all -EB.INFO");
        let url = format!("redis://guest:secret@127.0.0.1:{}", server.port);
        fs::write(folder.path().join("lines"), lines(0, 1000)).expect("a file");
        let words = ["dedup", "lines", "-o", "out", "--redis", &url, "--name", "clicks", "--exact"];
        let (code, told) = told(folder.path(), &words);
        assert!(code == Some(0) && told.contains("did not say how full"), "{code:?}: {told}");
        assert_eq!(fs::read_to_string(folder.path().join("out")).expect("lines"), lines(0, 1000));
    });
}

#[test]
fn servers_that_know_nothing_of_each_other_are_refused() {
    on_every_server(|maker| {
        let (folder, one, other) = (tempfile::tempdir().expect("a folder"), Server::new(maker), Server::new(maker));
        fs::write(folder.path().join("lines"), lines(0, 10)).expect("a file");
        let words = |urls: &str| ["dedup", "lines", "--redis", urls, "--name", "all"].map(str::to_string);
        let run = |urls: String| told(folder.path(), &words(&urls).each_ref().map(String::as_str));
        let (code, text) = run(format!("{},{}", url(&one), url(&other)));
        assert!(code == Some(2) && text.contains("know nothing of each other"), "{code:?}: {text}");
        let twice = format!("{},{}", url(&one), url(&one).replace("127.0.0.1", "localhost"));
        assert_eq!(run(twice).0, Some(0));
    });
}

/// A failover while no client runs, to a replica that lagged: the next run says what was lost.
#[test]
fn what_a_failover_lost_between_two_runs_is_told_by_the_next() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), url(&server));
        let words = ["dedup", "lines", "-o", "out", "--redis", &url, "--name", "all", "--exact", "--shards", "2"];
        let words = [&words[..], &["--state", "state", "--stats", "stats"]].concat();
        let (first, second, third) = (lines(0, 300), lines(300, 200), lines(500, 100));
        fs::write(folder.join("lines"), &first).expect("a file");
        done(folder, &words);
        let keys = [0, 1].map(|shard| shard_key("all", shard, 2));
        let dumps = keys.each_ref().map(|key| server.wire().say(&format!("DUMP {key}")).into_bytes());
        fs::write(folder.join("lines"), first.clone() + &second).expect("a file");
        done(folder, &words);
        for (key, dump) in keys.iter().zip(&dumps) {
            let restore: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), b"0", dump, b"REPLACE"];
            assert_eq!(server.wire().call(&restore).text(), "OK");
        }
        // And once more, for what was lost is kept with the state.
        for more in ["", &first] {
            fs::write(folder.join("lines"), [&first, &second, &third, more].concat()).expect("a file");
            let (code, told) = told(folder, &words);
            assert!(code == Some(3) && told.contains("servers forgot 200 lines in a failover"), "{code:?}: {told}");
            let stats = fs::read_to_string(folder.join("stats")).expect("a report");
            assert!(stats.contains("\"forgotten\": 200") && stats.contains("\"forgotten_or_more\": false"), "{stats}");
        }
        assert_eq!(fs::read_to_string(folder.join("out")).expect("lines"), [first, second, third].concat());
    });
}

#[test]
fn a_run_that_ends_leaves_its_place_to_others() {
    on_every_server(|maker| {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), Server::new(maker));
        let (folder, url) = (folder.path(), url(&server));
        fs::write(folder.join("lines"), lines(0, 100)).expect("a file");
        let words = ["dedup", "lines", "-q", "--redis", &url, "--name", "all", "--exact", "--shards", "2"];
        done(folder, &words);
        done(folder, &words);
        let info = server.wire().say(&format!("EB.INFO {}", shard_key("all", 0, 2)));
        assert_eq!(info.field("token_clients").map(super::common::Reply::number), Some(0));
    });
}

#[test]
fn a_cluster_without_its_majority_is_an_error_with_a_remedy_and_nothing_is_written() {
    on_every_server(|maker| {
        let (folder, mut cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start(maker, 3, false));
        let (folder, urls) = (folder.path(), cluster.urls());
        fs::write(folder.join("lines"), lines(0, 1000)).expect("a file");
        let words = ["dedup", "lines", "-q", "--redis", &urls, "--name", "all", "--patience", "2s", "--state", "state"];
        let on = |output: &'static str| [&words[..], &["-o", output]].concat();
        done(folder, &[&on("first")[..], &["--exact"]].concat());
        cluster.nodes.iter_mut().skip(1).for_each(Server::kill);
        fs::write(folder.join("lines"), lines(0, 2000)).expect("a file");
        let (code, told) = told(folder, &on("first"));
        assert!(code == Some(2) && told.contains("gave up after 2 s; see to the servers"), "{code:?}: {told}");
        assert_eq!(fs::read_to_string(folder.join("first")).expect("lines"), lines(0, 1000));
    });
}
