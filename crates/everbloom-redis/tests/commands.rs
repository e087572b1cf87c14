//! The module among what a server has: permissions, documentation, events, scripts, limits, settings.

mod common;

use common::{Maker, Reply, Server, Start, Wire, bits, on_every_server, packed, words};
use everbloom_all::KINDS;

const NAMES: &str = "eb.reserve eb.add eb.madd eb.iadd eb.exists eb.mexists eb.remove eb.count eb.advance \
                     eb.clear eb.merge eb.info eb.status eb.plan eb.dump eb.load eb.addhashes eb.existshashes \
                     bf.reserve bf.add bf.madd bf.insert bf.exists bf.mexists bf.info bf.card bf.scandump \
                     bf.loadchunk bf.debug";

#[test]
fn every_command_is_documented_and_names_its_keys() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut wire = server.wire();
        for name in NAMES.split(' ') {
            let docs = wire.call(&["COMMAND", "DOCS", name]);
            let docs = docs.items().get(1).unwrap_or_else(|| panic!("{name} is not there")).clone();
            let text = |field| docs.field(field).map(Reply::text).unwrap_or_default();
            assert!(text("summary").len() > 10, "{name}: {docs:?}");
            assert!(!text("since").is_empty() && !text("complexity").is_empty(), "{name}: {docs:?}");
            assert!(docs.field("arguments").is_some(), "{name} has no arguments");
            let info = wire.call(&["COMMAND", "INFO", name]);
            let info = info.items()[0].items();
            let flags: Vec<String> = info[2].items().iter().map(Reply::text).collect();
            let writes = flags.contains(&"write".to_string());
            assert!(writes != flags.contains(&"readonly".to_string()), "{name}: {flags:?}");
            let specs = info[8].items();
            assert_eq!(specs.is_empty(), name == "eb.plan", "{name}: {specs:?}");
        }
        let keys = |wire: &mut Wire, line: &str| -> Vec<String> {
            let reply = wire.say(&format!("COMMAND GETKEYS {line}"));
            if let Reply::Error(error) = &reply {
                panic!("{line}: {error}")
            }
            reply.items().iter().map(Reply::text).collect()
        };
        assert_eq!(keys(&mut wire, "EB.MADD k a b"), ["k"]);
        assert_eq!(keys(&mut wire, "EB.MERGE UNION to a b"), ["to", "a", "b"]);
        assert_eq!(keys(&mut wire, "BF.INSERT k ITEMS a b"), ["k"]);
    });
}

#[test]
fn permissions_are_kept() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut wire = server.wire();
        wire.ok("EB.RESERVE open:f counting EXPECT 1000 FPR 1%");
        wire.ok("EB.RESERVE shut:f counting EXPECT 1000 FPR 1%");
        wire.call(&["BF.ADD", "open:b", "x"]);
        // Redis 7.0 puts no command of a module into a category: there, each is named.
        let reading = match maker {
            Maker::Redis => "+eb.exists +eb.mexists +eb.count +eb.info +bf.exists",
            Maker::Valkey => "+@read",
        };
        wire.ok(&format!("ACL SETUSER reader on >word ~open:* {reading}"));
        wire.ok("ACL SETUSER writer on >word ~open:* +@all -@dangerous");
        let mut reader = server.wire();
        reader.ok("AUTH reader word");
        for line in
            ["EB.EXISTS open:f a", "EB.MEXISTS open:f a", "EB.COUNT open:f a", "EB.INFO open:f", "BF.EXISTS open:b x"]
        {
            let reply = reader.say(line);
            let refused = matches!(&reply, Reply::Error(text) if text.starts_with("NOPERM"));
            assert!(!refused, "{line}: {reply:?}");
        }
        for line in
            ["EB.ADD open:f a", "EB.REMOVE open:f a", "BF.ADD open:b a", "EB.EXISTS shut:f a", "EB.CLEAR open:f"]
        {
            let reply = reader.say(line);
            assert!(reply.is_error() && reply.text().starts_with("NOPERM"), "{line}: {reply:?}");
        }
        let mut writer = server.wire();
        writer.ok("AUTH writer word");
        assert!(writer.say("EB.ADD open:f a").is_yes());
        assert!(writer.say("EB.MERGE UNION open:f shut:f").text().starts_with("NOPERM"));
        if maker == Maker::Valkey {
            let shown = wire.say("ACL CAT");
            let categories: Vec<String> = shown.items().iter().map(Reply::text).collect();
            for (category, command) in [("bloom", "bf.add"), ("everbloom", "eb.add")] {
                assert!(categories.contains(&category.to_string()), "{categories:?}");
                let shown = wire.say(&format!("ACL CAT {category}"));
                assert!(shown.items().iter().any(|name| name.text() == command), "{shown:?}");
            }
            assert!(writer.say("EB.LOAD open:x y").text().starts_with("NOPERM"), "EB.LOAD is dangerous");
        }
    });
}

#[test]
fn keyspace_events_tell_what_changed() {
    on_every_server(|maker| {
        let server = Start::new(maker).with(&["notify-keyspace-events KEA"]).start();
        let mut wire = server.wire();
        let mut listener = server.wire();
        listener.say("PSUBSCRIBE __keyevent@0__:*");
        let mut told = |lines: &[&str]| -> Vec<String> {
            for line in lines {
                let reply = wire.say(line);
                assert!(!reply.is_error(), "{line}: {reply:?}");
            }
            wire.call(&["SET", "end", "1"]);
            let mut events = Vec::new();
            loop {
                let bytes = listener.receive_bytes().expect("an event");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let event = text.split("__keyevent@0__:").nth(2).and_then(|rest| rest.split("\r\n").next());
                match event.expect("an event") {
                    "set" => return events,
                    // Redis tells of keys that are new to it, where it is asked to tell everything.
                    "new" => {}
                    event => events.push(event.to_string()),
                }
            }
        };
        let created = ["EB.RESERVE f counting EXPECT 1000 FPR 1%", "EB.ADD f a", "EB.EXISTS f a", "EB.MEXISTS f a b"];
        assert_eq!(told(&created), ["eb.reserve", "eb.add"]);
        assert_eq!(told(&["EB.REMOVE f a", "EB.REMOVE f a", "EB.CLEAR f"]), ["eb.remove", "eb.clear"]);
        assert_eq!(told(&["BF.RESERVE b 0.01 100", "BF.ADD b x", "BF.ADD b x"]), ["bloom.reserve", "bloom.add"]);
        assert_eq!(told(&["BF.EXISTS b x", "BF.INFO b", "BF.CARD b"]), [""; 0]);
    });
}

#[test]
fn filters_are_keys_like_others() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        wire.ok("EB.RESERVE f auto MEMORY 64kb FPR 1%");
        assert_eq!(wire.say("TYPE f").text(), "everbloom");
        let used = wire.say("MEMORY USAGE f").number();
        assert!((60_000..80_000).contains(&used), "{used} bytes");
        wire.ok("RENAME f g");
        assert_eq!(wire.say("EXPIRE g 1000").number(), 1);
        assert!(wire.say("EB.ADD g a").is_yes());
        assert!(wire.say("TTL g").number() > 0, "adding keeps the expiry");
        // In a transaction and in a script.
        wire.ok("MULTI");
        for line in ["EB.ADD g a", "EB.ADD g b", "EB.EXISTS g b"] {
            assert_eq!(wire.say(line).text(), "QUEUED");
        }
        assert_eq!(wire.say("EXEC").yeses(), [false, true, true]);
        let script = "return redis.call('EB.MADD', KEYS[1], ARGV[1], ARGV[2])";
        let reply = wire.call(&["EVAL", script, "1", "g", "b", "c"]);
        assert_eq!(reply.yeses(), [false, true]);
        // What is another type is said, and nothing happens to it.
        wire.call(&["SET", "s", "text"]);
        for line in ["EB.ADD s a", "EB.EXISTS s a", "BF.ADD s a", "BF.ADD g a", "GET g", "EB.INFO s"] {
            let reply = wire.say(line);
            assert!(reply.is_error() && reply.text().starts_with("WRONGTYPE"), "{line}: {reply:?}");
        }
        assert_eq!(wire.say("GET s").text(), "text");
        // Nothing is made by the way.
        let missing = wire.say("EB.ADD missing a").text();
        assert!(missing.contains("EB.RESERVE"), "{missing}");
        assert!(!wire.say("EB.EXISTS missing a").is_yes());
        assert_eq!(wire.say("EXISTS missing").number(), 0);
        let busy = wire.say("EB.RESERVE g auto MEMORY 64kb").text();
        assert!(busy.starts_with("BUSYKEY"), "{busy}");
        assert_eq!(wire.say("EB.RESERVE g auto MEMORY 64kb NX"), Reply::Null);
        server.check("keys like others");
    });
}

#[test]
fn replies_follow_the_protocol() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let (mut two, mut three) = (server.wire(), Wire::new(server.port, 3));
        two.ok("EB.RESERVE f auto MEMORY 64kb FPR 1%");
        assert_eq!(two.say("EB.ADD f a"), Reply::Integer(1));
        assert_eq!(three.say("EB.ADD f a"), Reply::Bool(false));
        assert_eq!(three.say("EB.MADD f a b"), Reply::Array(vec![Reply::Bool(false), Reply::Bool(true)]));
        let (flat, map) = (two.say("EB.INFO f"), three.say("EB.INFO f"));
        assert!(matches!(flat, Reply::Array(_)) && matches!(map, Reply::Map(_)));
        for name in ["spec", "kind", "memory_bytes", "encoded_bytes", "hash", "seed", "predicted_fpr", "observed"] {
            let (one, other) = (flat.field(name), map.field(name));
            assert!(one.is_some() && other.is_some(), "{name}: {flat:?}");
        }
        assert_eq!(map.field("observed"), Some(&Reply::Integer(4)));
        assert_eq!(map.field("distinct"), Some(&Reply::Integer(2)));
        for line in ["EB.STATUS f", "EB.PLAN auto MEMORY 64kb FPR 1%"] {
            assert!(matches!(three.say(line), Reply::Map(_)), "{line}");
        }
    });
}

#[test]
fn a_batch_that_is_sent_again_is_answered_as_before() {
    on_every_server(|maker| {
        let mut server = Start::new(maker).with(&["appendonly yes", "appendfsync always"]).start();
        let mut wire = server.wire();
        wire.ok("EB.RESERVE f scalable FPR 0.1%");
        let twin = KINDS.from_bytes(&wire.say("EB.DUMP f").into_bytes()).expect("a filter");
        let hashes: Vec<_> = (0..100).map(|item: u32| twin.hashing().hash(&item.to_le_bytes())).collect();
        let blob = packed(&hashes);
        let send =
            |wire: &mut Wire, sequence: &str| wire.call(words!["EB.ADDHASHES", "f", blob, "TOKEN", "worker", sequence]);
        let register = ["EB.ADDHASHES", "f", "", "TOKEN", "worker", "0"];
        assert!(send(&mut wire, "1").text().starts_with("TOKENLOST "), "nobody registered");
        assert_eq!(wire.call(&register), Reply::Bulk(Vec::new()));
        assert_eq!(wire.call(&register), Reply::Bulk(Vec::new()), "once more, as after a lost connection");
        let new = Reply::Bulk(bits(&[true; 100]));
        assert_eq!(send(&mut wire, "1"), new);
        assert_eq!(send(&mut wire, "1"), new, "the same batch again");
        server.start_again();
        let mut wire = server.wire();
        assert_eq!(send(&mut wire, "1"), new, "the same batch after a restart");
        for (sequence, problem) in [("0", "neither takes items"), ("3", "the next is 2"), ("x", "whole number")] {
            let reply = send(&mut wire, sequence);
            assert!(reply.is_error() && reply.text().contains(problem), "{sequence}: {reply:?}");
        }
        assert!(wire.call(&register).text().contains("register another name"), "the name is taken");
        let other = packed(&hashes.iter().rev().copied().collect::<Vec<_>>());
        assert!(
            wire.call(words!["EB.ADDHASHES", "f", other, "TOKEN", "worker", "1"])
                .text()
                .contains("was sent with other items"),
            "a program that began anew"
        );
        assert_eq!(send(&mut wire, "2"), Reply::Bulk(bits(&[false; 100])), "another batch");
        let info = wire.say("EB.INFO f");
        assert_eq!(info.field("observed").map(Reply::number), Some(200));
        assert_eq!(info.field("token_clients").map(Reply::number), Some(1));
        server.check("batches again");
    });
}

/// Sixty-four clients are remembered. One that was pushed out is told so, on the primary, on what is promoted in its place
/// and after a restart; its batch is not applied a second time.
#[test]
fn a_client_that_was_forgotten_is_told_and_not_answered_by_guess() {
    on_every_server(|maker| {
        let primary = Start::new(maker).start();
        let mut replica = Start::new(maker).with(&["propagation-error-behavior panic"]).replica_of(&primary).start();
        primary.wait_for(&replica);
        let mut wire = primary.wire();
        wire.ok("EB.RESERVE f scalable FPR 0.1%");
        let register = |wire: &mut Wire, client: &str| wire.say(&format!("EB.INSERT f TOKEN {client} 0 ITEMS"));
        assert_eq!(register(&mut wire, "first"), Reply::Array(Vec::new()));
        assert_eq!(register(&mut wire, "second"), Reply::Array(Vec::new()));
        let one = Reply::Array(vec![Reply::Integer(1)]);
        assert_eq!(wire.say("EB.INSERT f TOKEN first 1 ITEMS a"), one);
        for client in 0..63 {
            assert_eq!(register(&mut wire, &format!("client-{client}")), Reply::Array(Vec::new()));
        }
        primary.wait_for(&replica);
        assert_eq!(primary.digest("f"), replica.digest("f"));
        let observed = |wire: &mut Wire| wire.say("EB.INFO f").field("observed").map(Reply::number);
        let lost = |wire: &mut Wire| {
            let reply = wire.say("EB.ADD f b TOKEN second 1");
            assert!(reply.is_error() && reply.text().starts_with("TOKENLOST client 'second' is not"), "{reply:?}");
            assert_eq!(wire.say("EB.INSERT f TOKEN first 1 ITEMS a"), one, "the other is remembered");
            assert_eq!(observed(wire), Some(1), "nothing was applied");
        };
        lost(&mut wire);
        wire.ok("DEBUG RELOAD");
        lost(&mut wire);
        let mut promoted = replica.wire();
        promoted.ok("REPLICAOF NO ONE");
        lost(&mut promoted);
        // Registered anew, it goes on.
        assert_eq!(register(&mut promoted, "second"), Reply::Array(Vec::new()));
        assert_eq!(promoted.say("EB.ADD f b TOKEN second 1"), Reply::Integer(1));
        // A filter that was cleared knows nobody: its kept answers are no longer true.
        promoted.ok("EB.CLEAR f");
        assert!(promoted.say("EB.ADD f b TOKEN second 1").text().starts_with("TOKENLOST "));
        assert_eq!(register(&mut promoted, "second"), Reply::Array(Vec::new()));
        assert_eq!(promoted.say("EB.ADD f b TOKEN second 1"), Reply::Integer(1));
        // Nor does one that takes the place of another.
        let file = promoted.say("EB.DUMP f").into_bytes();
        assert_eq!(promoted.call(words!["EB.LOAD", "f", file, "REPLACE"]).text(), "OK");
        assert!(promoted.say("EB.ADD f c TOKEN second 2").text().starts_with("TOKENLOST "));
        replica.check("a forgotten client");
    });
}

#[test]
fn limits_hold_for_clients_and_not_for_what_is_there() {
    on_every_server(|maker| {
        let mut server = Start::new(maker).with(&["appendonly yes", "aof-use-rdb-preamble no"]).start();
        let mut wire = server.wire();
        wire.ok("EB.RESERVE large bloom MEMORY 1mb EXPECT 100000");
        let file = wire.say("EB.DUMP large").into_bytes();
        let dumped = wire.say("DUMP large").into_bytes();
        wire.ok("CONFIG SET everbloom.max-filter-bytes 100000");
        for line in ["EB.RESERVE f stable MEMORY 1mb", "EB.RESERVE f auto MEMORY 1gb", "EB.RESERVE f auto MEMORY 10tb"]
        {
            let reply = wire.say(line).text();
            assert!(reply.starts_with("ERR") && reply.contains("max-filter-bytes"), "{line}: {reply}");
        }
        assert!(wire.call(words!["EB.LOAD", "f", file]).text().contains("max-filter-bytes"));
        assert!(wire.call(words!["RESTORE", "f", "0", dumped]).is_error());
        let digest = server.digest("large");
        // What is there stays, and is read again whatever the limit.
        wire.ok("DEBUG LOADAOF");
        wire.ok("DEBUG RELOAD");
        assert_eq!(server.digest("large"), digest);
        wire.ok("EB.RESERVE grows scalable FPR 1%");
        let mut refused = None;
        for start in (0..2_000_000).step_by(1000) {
            let items: Vec<String> = (start..start + 1000).map(|item: u64| item.to_string()).collect();
            let reply = wire.say(&format!("EB.MADD grows {}", items.join(" ")));
            if reply.is_error() {
                refused = Some(reply.text());
                break;
            }
        }
        // Nor does a merge exceed it, where a filter grows by what it takes in.
        for name in ["a", "b"] {
            wire.ok(&format!("EB.RESERVE {name} exact EXPECT 6000 SEED 1"));
            let items: Vec<String> = (0..6000).map(|item| format!("{name}:{item}")).collect();
            assert!(!wire.say(&format!("EB.MADD {name} {}", items.join(" "))).is_error());
        }
        let merged = wire.say("EB.MERGE UNION m a b");
        assert!(merged.is_error() && merged.text().contains("max-filter-bytes"), "{merged:?}");
        let refused = refused.expect("growth is refused");
        assert!(refused.contains("max-filter-bytes"), "{refused}");
        assert!(wire.say("MEMORY USAGE grows").number() <= 110_000);
        wire.ok("CONFIG SET everbloom.max-filter-bytes 512mb");
        wire.ok("CONFIG SET maxmemory 20mb");
        let reply = wire.say("EB.RESERVE f stable MEMORY 64mb");
        assert!(reply.is_error(), "{reply:?}");
        server.check("limits");
    });
}

/// A few kilobytes may unpack to gigabytes: what they become is looked at before anything is allocated, and no key is evicted.
#[test]
fn maxmemory_limits_unpacking() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        wire.ok("EB.RESERVE large bloom:num_bits=1600000000,num_hashes=7");
        wire.ok("BF.RESERVE chain 0.01 150000000 NONSCALING");
        let file = wire.say("EB.DUMP large COMPRESSED").into_bytes();
        assert!(file.len() < 100_000, "{} bytes", file.len());
        let header = wire.say("BF.SCANDUMP chain 0").items()[1].clone().into_bytes();
        let dumped = wire.say("DUMP large").into_bytes();
        wire.ok("FLUSHALL SYNC");
        (0..1000).for_each(|key| drop(wire.call(&["SET", &format!("key-{key}"), &"x".repeat(1000)])));
        for policy in ["noeviction", "allkeys-lru"] {
            wire.ok(&format!("CONFIG SET maxmemory-policy {policy}"));
            wire.ok("CONFIG SET maxmemory 60mb");
            let commands: [(&[&[u8]], &str); 3] = [
                (&[b"EB.LOAD", b"l", &file], "maxmemory"),
                (&[b"BF.LOADCHUNK", b"l", b"1", &header], "maxmemory"),
                (&[b"RESTORE", b"l", b"0", &dumped], "Bad data format"),
            ];
            for (command, problem) in commands {
                let reply = wire.call(command);
                let name = String::from_utf8_lossy(command[0]);
                assert!(reply.is_error() && reply.text().contains(problem), "{policy} {name}: {reply:?}");
                assert_eq!(wire.say("DBSIZE").number(), 1000, "{policy} {name}: keys were evicted");
            }
            wire.ok("CONFIG SET maxmemory 0");
        }
        wire.ok("CONFIG SET everbloom.max-filter-bytes 1mb");
        let reply = wire.call(words!["EB.LOAD", "l", file]).text();
        assert!(reply.contains("which is beyond max-filter-bytes"), "{reply}");
        server.check("what unpacks");
    });
}

/// A file has the time of a window and the largest importance in its note: they come back with it, as they do in Python.
#[test]
fn a_window_and_its_importances_survive_the_way_through_a_file() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        let field = |wire: &mut Wire, key: &str, name: &str| wire.say(&format!("EB.INFO {key}")).field(name).cloned();
        wire.ok("EB.RESERVE w auto MEMORY 64kb FPR 1% WINDOW 15min");
        wire.ok("EB.RESERVE i auto MEMORY 64kb FPR 1% IMPORTANCE 16");
        for (key, name) in [("w", "every_ms"), ("i", "importance_max")] {
            for option in [&[][..], &["COMPRESSED"]] {
                let file = wire.call(&[&["EB.DUMP", key][..], option].concat()).into_bytes();
                assert_eq!(wire.call(words!["EB.LOAD", "copy", file, "REPLACE"]).text(), "OK");
                let (one, other) = (field(&mut wire, key, name), field(&mut wire, "copy", name));
                assert!(one.is_some() && one == other, "{key}: {one:?} {other:?}");
            }
        }
        // A clock that had been in the future does not stop the window for ever.
        let file = wire.say("EB.DUMP w").into_bytes();
        assert_eq!(
            wire.call(words!["EB.LOAD", "copy", file, "REPLACE", "EVERY", "1h", "AT", "99999999999"]).text(),
            "OK"
        );
        assert_eq!(field(&mut wire, "copy", "generation"), Some(Reply::Integer(99_999_999_999)));
        wire.say("EB.ADD copy x");
        let generation = field(&mut wire, "copy", "generation").map(|reply| reply.number());
        assert!(generation.is_some_and(|generation| generation < 10_000_000), "{generation:?}");
        // The command's own words come first.
        assert_eq!(wire.call(words!["EB.LOAD", "copy", file, "REPLACE", "EVERY", "1h"]).text(), "OK");
        assert_eq!(field(&mut wire, "copy", "every_ms"), Some(Reply::Integer(3_600_000)));
        server.check("notes");
    });
}

#[test]
fn settings_and_counters_can_be_read() {
    on_every_server(|maker| {
        let mut server = Start::new(maker).module("default-fpr 0.02 bf-initial-size 1000").start();
        let mut wire = server.wire();
        let shown = wire.say("CONFIG GET everbloom.*");
        for (name, value) in [("default-fpr", "0.02"), ("bf-initial-size", "1000"), ("bf-commands", "auto")] {
            let found = shown.field(&format!("everbloom.{name}")).map(Reply::text);
            assert_eq!(found.as_deref(), Some(value), "{name}");
        }
        assert_eq!(shown.field("everbloom.max-filter-bytes").map(Reply::text).as_deref(), Some("536870912"));
        for wrong in ["max-filter-bytes -1", "default-fpr 2", "default-fpr x", "bf-expansion-factor 100000"] {
            let reply = wire.say(&format!("CONFIG SET everbloom.{wrong}"));
            assert!(reply.is_error(), "{wrong}: {reply:?}");
        }
        wire.call(&["BF.ADD", "b", "x"]);
        assert_eq!(wire.say("BF.INFO b CAPACITY").items()[0].number(), 1000);
        wire.ok("EB.RESERVE f counting EXPECT 1000 FPR 1%");
        wire.say("EB.MADD f a b a");
        for (field, value) in [("filters", "2"), ("observed", "4"), ("distinct", "3"), ("panics_caught", "0")] {
            assert_eq!(server.info("everbloom", field), value, "{field}");
        }
        assert!(server.info("everbloom", "bytes").parse::<u64>().expect("a number") > 1000);
        wire.ok("FLUSHALL SYNC");
        assert_eq!(server.info("everbloom", "filters"), "0");
        server.check("settings");
    });
}

/// Two modules of the same commands: ours leaves BF to the other where it may.
#[test]
fn the_bf_family_can_be_left_out() {
    on_every_server(|maker| {
        let mut server = Start::new(maker).module("bf-commands no").start();
        let mut wire = server.wire();
        let unknown = wire.say("BF.ADD b x").text();
        assert!(unknown.starts_with("ERR unknown command"), "{unknown}");
        wire.ok("EB.RESERVE f auto MEMORY 64kb");
        server.check("EB alone");
    });
}

#[test]
fn errors_say_what_would_work() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut wire = server.wire();
        wire.ok("EB.RESERVE f bloom EXPECT 1000 FPR 1%");
        wire.ok("EB.RESERVE r redisbloom EXPECT 1000 FPR 1%");
        for (line, remedy) in [
            ("EB.RESERVE g blooom EXPECT 1000", "bloom"),
            ("EB.RESERVE g bloom MEMORY lots", "such as 64mb"),
            ("EB.RESERVE g auto FPR 1% WINDOW 5m", "MEMORY or EXPECT is missing"),
            ("EB.RESERVE g bloom EXPECT 1000 FPR 150%", "150%"),
            ("EB.REMOVE f a", "counting"),
            ("EB.COUNT f a", "spectral"),
            ("EB.ADVANCE f", "age_partitioned"),
            ("EB.ADDHASHES f short", "16"),
            ("EB.IADD f a", "importance"),
            ("EB.ADD f a IMPORTANCE 3", "IMPORTANCE"),
            ("EB.ADDHASHES r 0123456789abcdef", "send the keys themselves"),
            ("EB.EXISTSHASHES r 0123456789abcdef", "send the keys themselves"),
        ] {
            let reply = wire.say(line);
            assert!(reply.is_error() && reply.text().contains(remedy), "{line}: {reply:?}");
            assert!(!reply.text().contains("--"), "{line} is answered for a command line: {reply:?}");
        }
        server.check("errors");
    });
}
