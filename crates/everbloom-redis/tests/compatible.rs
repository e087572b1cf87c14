//! `BF.*` is what RedisBloom answers: recorded replies, its own file, the tests of a client that others wrote.

mod common;

use common::{Maker, Reply, Server, Start, crc64, on_every_server, servers, words};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name.ends_with(".zst") { zstd::decode_all(&bytes[..]).expect("zstd") } else { bytes }
}

/// A command that was sent to RedisBloom, and the bytes that came back in both protocols.
struct Recorded {
    arguments: Vec<Vec<u8>>,
    replies: [Vec<u8>; 2],
}

/// `bf-replies.zst`: per command the number of arguments, each behind its length, then the reply in RESP2 and, where it
/// differs, in RESP3; lengths in base 128, an empty second reply for the same.
fn recorded() -> Vec<Recorded> {
    fn length(rest: &mut &[u8]) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = rest[0];
            *rest = &rest[1..];
            value |= usize::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return value;
            }
        }
    }
    fn text(rest: &mut &[u8]) -> Vec<u8> {
        let length = length(rest);
        let (text, after) = rest.split_at(length);
        *rest = after;
        text.to_vec()
    }
    let bytes = golden("bf-replies.zst");
    let (mut rest, mut rows) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let count = length(&mut rest);
        let arguments = (0..count).map(|_| text(&mut rest)).collect();
        let (second, third) = (text(&mut rest), text(&mut rest));
        let third = if third.is_empty() { second.clone() } else { third };
        rows.push(Recorded { arguments, replies: [second, third] });
    }
    rows
}

#[test]
fn twelve_thousand_recorded_replies_are_given_again() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 6000);
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        for (index, protocol) in [2, 3].into_iter().enumerate() {
            let mut wire = common::Wire::new(server.port, protocol);
            wire.ok("FLUSHALL");
            let mut wrong = Vec::new();
            for (number, row) in recorded.iter().enumerate() {
                let (got, wanted) = (wire.bytes(&row.arguments), &row.replies[index]);
                if got != *wanted {
                    let command = row.arguments.join(&b' ').escape_ascii().to_string();
                    wrong.push(format!("#{number} {command}\n  {}\n  {}", wanted.escape_ascii(), got.escape_ascii()));
                }
            }
            let shown = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
            assert!(wrong.is_empty(), "RESP{protocol}: {} of 6000 replies differ:\n{shown}", wrong.len());
        }
        server.check("the recorded commands");
    });
}

/// What was written down about a filter of RedisBloom's.
#[derive(Default)]
struct Facts {
    name: String,
    /// It has `i0`, `i1`, … up to here.
    items: usize,
    debug: Vec<String>,
    /// Which of `absent0` … `absent19999` it has nevertheless.
    false_positives: Vec<usize>,
    /// SCANDUMP: next iterator, length, CRC-64.
    chunks: Vec<(i64, usize, u64)>,
}

fn facts() -> Vec<Facts> {
    let text = String::from_utf8(golden("redisbloom-2.8.20.txt")).expect("text");
    let mut filters: Vec<Facts> = Vec::new();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').expect("a word and the rest");
        if word == "filter" {
            filters.push(Facts { name: rest.into(), ..Facts::default() });
            continue;
        }
        let filter = filters.last_mut().expect("a filter");
        let mut words = rest.split_whitespace();
        match word {
            "items" => filter.items = rest.parse().expect("a number"),
            "debug" => filter.debug.push(rest.into()),
            "false" => filter.false_positives = words.map(|number| number.parse().expect("a number")).collect(),
            "chunk" => {
                let mut next = || words.next().expect("three numbers");
                let (iterator, length) = (next().parse().expect("a number"), next().parse().expect("a number"));
                filter.chunks.push((iterator, length, u64::from_str_radix(next(), 16).expect("a CRC")));
            }
            _ => panic!("{line}"),
        }
    }
    filters
}

/// Everything that SCANDUMP gives.
fn chunks(server: &Server, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut wire, mut iterator, mut chunks) = (server.wire(), 0, Vec::new());
    loop {
        let reply = wire.call(&["BF.SCANDUMP", key, &iterator.to_string()]);
        let Reply::Array(pair) = reply else { panic!("{reply:?}") };
        iterator = pair[0].number();
        if iterator == 0 {
            assert_eq!(pair[1], Reply::Bulk(Vec::new()));
            return chunks;
        }
        chunks.push((iterator, pair[1].clone().into_bytes()));
    }
}

/// The numbers below `end` whose key, with this prefix, is there.
fn present(server: &Server, key: &str, prefix: &str, end: usize) -> Vec<usize> {
    let mut wire = server.wire();
    let mut found = Vec::new();
    for start in (0..end).step_by(1000) {
        let numbers: Vec<usize> = (start..end.min(start + 1000)).collect();
        let mut command = vec!["BF.MEXISTS".to_string(), key.into()];
        command.extend(numbers.iter().map(|number| format!("{prefix}{number}")));
        let yeses = wire.call(&command).yeses();
        found.extend(numbers.into_iter().zip(yeses).filter(|(_, yes)| *yes).map(|(number, _)| number));
    }
    found
}

fn holds(server: &Server, facts: &Facts, key: &str) {
    let debug: Vec<String> = server.wire().call(&["BF.DEBUG", key]).items().iter().map(Reply::text).collect();
    assert_eq!(debug, facts.debug, "{key}");
    assert_eq!(present(server, key, "i", facts.items).len(), facts.items, "items of {key}");
    assert_eq!(present(server, key, "absent", 20_000), facts.false_positives, "false positives of {key}");
    let measured: Vec<(i64, usize, u64)> =
        chunks(server, key).iter().map(|(iterator, bytes)| (*iterator, bytes.len(), crc64(bytes))).collect();
    assert_eq!(measured, facts.chunks, "chunks of {key}");
}

#[test]
fn a_file_of_redisblooms_answers_as_it_did_there_and_is_saved_again() {
    let facts = facts();
    assert_eq!(facts.len(), 5);
    on_every_server(|maker| {
        let settings = ["appendonly no", "dbfilename dump.rdb"];
        let mut server = Start::new(maker).database(golden("redisbloom-2.8.20.rdb.zst")).with(&settings).start();
        let hold = |server: &Server| facts.iter().for_each(|facts| holds(server, facts, &facts.name));
        hold(&server);
        // Chunk by chunk into another key.
        let mut wire = server.wire();
        for facts in &facts {
            let copy = format!("copy of {}", facts.name);
            for (iterator, bytes) in chunks(&server, &facts.name) {
                assert_eq!(
                    wire.call(words!["BF.LOADCHUNK", copy, &iterator.to_string().into_bytes(), bytes]).text(),
                    "OK",
                    "{copy}"
                );
            }
            assert_eq!(chunks(&server, &copy), chunks(&server, &facts.name));
            assert_eq!(server.digest(&copy), server.digest(&facts.name), "{copy}");
            let dumped = wire.call(&["DUMP", &facts.name]).into_bytes();
            assert_eq!(wire.call(&["DUMP", &copy]).into_bytes(), dumped, "{copy}");
            wire.call(&["DEL", &copy]);
        }
        wire.ok("SAVE");
        server.start_again();
        hold(&server);
        // By commands: a rewritten append-only file without an RDB in it.
        server.wire().ok("CONFIG SET aof-use-rdb-preamble no");
        server.wire().ok("CONFIG SET appendonly yes");
        server.rewrite();
        let digests = |server: &Server| facts.iter().map(|facts| server.digest(&facts.name)).collect::<Vec<_>>();
        let before = digests(&server);
        server.wire().ok("DEBUG LOADAOF");
        assert_eq!(digests(&server), before);
        hold(&server);
        server.check("RedisBloom's file");
    });
}

#[test]
fn a_file_of_redisblooms_loads_in_a_cluster() {
    on_every_server(|maker| {
        let start = Start::new(maker).with(&["cluster-enabled yes"]);
        let mut server = start.database(golden("redisbloom-2.8.20.rdb.zst")).start();
        assert_eq!(server.wire().say("DBSIZE").number(), 5);
        server.check("a load in a cluster");
    });
}

/// Waits for the second name in the list of modules, which comes when the server is up.
fn listed_as_bf(server: &Server) {
    let mut wire = server.wire();
    let mut is_listed = || String::from_utf8_lossy(&wire.bytes(&["INFO", "modules"])).contains("name=bf,ver=20820,");
    let since = Instant::now();
    while !is_listed() {
        assert!(since.elapsed() < Duration::from_secs(10), "there is no module bf");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The two names are in the configuration that a server writes, in either order, and both are there after a restart.
#[test]
fn the_second_name_survives_a_configuration_that_is_rewritten() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        listed_as_bf(&server);
        server.wire().ok("CONFIG REWRITE");
        let path = server.folder().join("server.conf");
        let written = fs::read_to_string(&path).expect("the configuration");
        let (modules, others): (Vec<_>, Vec<_>) = written.lines().partition(|line| line.starts_with("loadmodule"));
        assert_eq!(modules.len(), 2, "{written}");
        for modules in [[modules[0], modules[1]], [modules[1], modules[0]]] {
            fs::write(&path, [&modules, &others[..]].concat().join("\n") + "\n").expect("the configuration");
            server.start_again_as_configured();
            listed_as_bf(&server);
            assert_eq!(server.wire().call(&["BF.ADD", "filter", "item"]).number(), 1);
        }
    });
}

#[test]
fn redis_pys_own_tests_pass() {
    let environment = servers().join("redis-py");
    if !environment.join("whole").exists() {
        let missing = format!("redis-py's tests, since there is no {}", environment.display());
        assert!(std::env::var_os("EVERBLOOM_CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}; `cargo xtask redis --fetch` fetches it");
        return;
    }
    on_every_server(|maker| {
        // The suite asks for the version of a module called bf before it runs anything.
        let mut server = Server::new(maker);
        listed_as_bf(&server);
        let url = format!("redis://127.0.0.1:{}/0", server.port);
        for (protocol, legacy) in [("2", "true"), ("2", "false"), ("3", "true"), ("3", "false")] {
            let mut command = Command::new(environment.join("bin/python"));
            command.args(["-W", "ignore", "-m", "pytest", "tests/test_bloom.py", "tests/test_asyncio/test_bloom.py"]);
            command.args(["--redis-url", &url, "--redis-mod-url", &url, "--protocol", protocol]);
            command.args(["--legacy-responses", legacy, "-k", "test_bf_ and not reserve", "-q", "--no-header"]);
            command.args(["--tb=short", "-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
            let output = command.current_dir(environment.join("source")).output().expect("python");
            let said = String::from_utf8_lossy(&output.stdout);
            let passed = output.status.success() && said.contains("15 passed");
            assert!(passed, "RESP{protocol}, legacy {legacy}:\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        server.check("redis-py's tests");
    });
}

/// A filter that stops half-way through a command: the replica gets what was done, and does not fail.
#[test]
fn half_done_commands_and_other_defaults_leave_replicas_equal() {
    on_every_server(|maker| {
        let mut primary = Server::new(maker);
        let replica = Start::new(maker)
            .module("bf-error-rate 0.2 bf-initial-size 7 bf-expansion-factor 5 max-filter-bytes 4096")
            .instructions("portable")
            .with(&["propagation-error-behavior panic", "replica-read-only yes"])
            .replica_of(&primary);
        let mut replica = replica.start();
        primary.wait_for(&replica);
        let mut wire = primary.wire();
        wire.ok("BF.RESERVE full 0.01 10 NONSCALING");
        let many: Vec<String> = (0..30).map(|number| format!("item{number}")).collect();
        let line = |command: &str, rest: &[String]| format!("{command} {}", rest.join(" "));
        let stopped = wire.say(&line("BF.MADD full", &many));
        let stopped = stopped.items();
        assert_eq!(stopped.last().map(Reply::text).as_deref(), Some("ERR non scaling filter is full"));
        assert!(stopped.len() < 30);
        let stopped = wire.say(&line("BF.INSERT full ITEMS", &many));
        assert!(stopped.items().iter().any(Reply::is_error), "{stopped:?}");
        // Made with the primary's defaults, and grown beyond what the replica would allow itself.
        wire.say("BF.ADD default x");
        wire.say(&line("BF.INSERT inserted CAPACITY 3 ERROR 0.001 EXPANSION 3 ITEMS", &many));
        let more: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
        more.chunks(500).for_each(|some| drop(wire.say(&line("BF.MADD default", some))));
        primary.wait_for(&replica);
        for key in ["full", "default", "inserted"] {
            assert_eq!(replica.digest(key), primary.digest(key), "{key}");
        }
        let before = primary.info("replication", "master_repl_offset");
        wire.say("BF.ADD default x");
        wire.say("BF.MADD default 1 2 3");
        let said = [primary.info("replication", "master_repl_offset"), before];
        // Pings of the primary to its replicas may lie between.
        assert!(said[0].parse::<u64>().expect("bytes") - said[1].parse::<u64>().expect("bytes") <= 14, "{said:?}");
        primary.check("half-done commands");
        replica.check("half-done commands");
    });
}

/// A filter grows until its limit, then says so, and what was added stays.
#[test]
fn growth_beyond_the_limit_is_refused() {
    on_every_server(|maker: Maker| {
        let mut server = Start::new(maker).module("max-filter-bytes 65536").start();
        let mut wire = server.wire();
        wire.ok("BF.RESERVE limited 0.01 1000");
        let mut refused = None;
        for number in 0..100_000 {
            let reply = wire.call(&["BF.ADD", "limited", &format!("item{number}")]);
            if reply.is_error() {
                refused = Some((number, reply.text()));
                break;
            }
        }
        let (number, error) = refused.expect("a refusal");
        assert!(error.contains("problem inserting into filter"), "{error}");
        let still: Vec<usize> = present(&server, "limited", "item", number);
        assert_eq!(still.len(), number);
        let big = wire.say("BF.RESERVE big 0.01 1000000").text();
        assert!(big.contains("Insufficient memory to create filter"), "{big}");
        assert_ne!(server.info("everbloom", "refused_by_limit"), "0");
        server.check("a refusal");
    });
}
