//! Copies stay equal: replicas, append-only files, RDB files, COPY, DUMP, whatever was done to a filter of whatever kind.

mod common;

use common::{Chance, Maker, Reply, Server, Start, Twin, Wire, kinds, on_every_server, seed, times, words};
use std::collections::HashSet;

/// A primary that logs every command, and a replica that is as different as it can be.
fn pair(maker: Maker) -> (Server, Server) {
    let persistent = ["appendonly yes", "appendfsync no", "aof-use-rdb-preamble no", "auto-aof-rewrite-percentage 0"];
    let primary = Start::new(maker).with(&persistent).start();
    let replica = Start::new(maker)
        .module("max-filter-bytes 1024 default-fpr 0.2 random-seed no")
        .instructions("portable")
        .with(&["propagation-error-behavior panic"])
        .replica_of(&primary)
        .start();
    primary.wait_for(&replica);
    assert_eq!(replica.info("everbloom", "instruction_set"), "portable");
    (primary, replica)
}

#[test]
fn every_kind_is_the_same_in_every_copy_and_in_the_library() {
    on_every_server(|maker| {
        let (mut primary, mut replica) = pair(maker);
        let mut keys = Vec::new();
        for (number, kind) in kinds().into_iter().enumerate() {
            let mut wire = Wire::new(primary.port, 2 + number as u8 % 2);
            let mut chance = Chance(seed() + number as u64);
            let mut twin = Twin::new(&mut wire, kind, &format!("key:{}", kind.name), chance.bits() >> 1);
            for _ in 0..times(1000) {
                twin.step(&mut wire, &mut chance);
            }
            twin.compare(&mut wire);
            copies(&primary, &mut wire, &twin.key);
            keys.push(twin.key.clone());
        }
        primary.wait_for(&replica);
        let digests = |server: &Server| keys.iter().map(|key| (key.clone(), server.digest(key))).collect::<Vec<_>>();
        let before = digests(&primary);
        assert_eq!(digests(&replica), before, "the replica");
        let mut wire = primary.wire();
        wire.ok("DEBUG LOADAOF");
        assert_eq!(digests(&primary), before, "all commands again");
        primary.rewrite();
        wire.ok("DEBUG LOADAOF");
        assert_eq!(digests(&primary), before, "a rewritten append-only file");
        wire.ok("DEBUG RELOAD");
        assert_eq!(digests(&primary), before, "an RDB file");
        // A replica that comes late, by a full synchronisation.
        let late = Start::new(maker).instructions("avx2").replica_of(&primary).start();
        primary.wait_for(&late);
        assert_eq!(digests(&late), before, "a full synchronisation");
        primary.check("every kind");
        replica.check("every kind");
    });
}

/// COPY, DUMP → RESTORE and EB.DUMP → EB.LOAD give the same value.
fn copies(server: &Server, wire: &mut Wire, key: &str) {
    let digest = server.digest(key);
    assert_eq!(wire.call(&["COPY", key, "copied"]).number(), 1);
    assert_eq!(server.digest("copied"), digest, "COPY of {key}");
    let dumped = wire.call(&["DUMP", key]).into_bytes();
    assert_eq!(wire.call(words!["RESTORE", "restored", "0", dumped]).text(), "OK");
    assert_eq!(server.digest("restored"), digest, "RESTORE of {key}");
    let bytes = wire.call(&["EB.DUMP", key]).into_bytes();
    assert_eq!(wire.call(words!["EB.LOAD", "loaded", bytes]).text(), "OK");
    assert_eq!(wire.call(&["EB.DUMP", "loaded"]).into_bytes(), bytes, "EB.LOAD of {key}");
    wire.call(&["UNLINK", "copied", "restored", "loaded"]);
}

/// What two kinds of commands are is decided by the primary's clock and its chance alone.
#[test]
fn seeds_and_windows_of_time_come_from_the_primary() {
    on_every_server(|maker| {
        let (mut primary, mut replica) = pair(maker);
        let mut wire = primary.wire();
        wire.ok("EB.RESERVE planned auto MEMORY 64kb");
        wire.ok("EB.RESERVE window auto MEMORY 64kb FPR 1% EVERY 2ms");
        for number in 0..200 {
            wire.call(&["EB.MADD", "window", &number.to_string(), "again"]);
            wire.call(&["EB.ADD", "planned", &number.to_string()]);
            if number % 10 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
        }
        primary.wait_for(&replica);
        for key in ["planned", "window"] {
            assert_eq!(replica.digest(key), primary.digest(key), "{key}");
        }
        let before = ["planned", "window"].map(|key| primary.digest(key));
        wire.ok("DEBUG LOADAOF");
        assert_eq!(["planned", "window"].map(|key| primary.digest(key)), before, "the append-only file");
        assert!(wire.call(&["EB.EXISTS", "planned", "0"]).is_yes());
        assert!(!wire.call(&["EB.EXISTS", "window", "0"]).is_yes(), "a window of time forgets");
        primary.check("windows of time");
        replica.check("windows of time");
    });
}

/// The keys that an audit follows are chosen by the primary's chance alone.
#[test]
fn an_audit_is_the_same_in_every_copy_and_tells_what_happened() {
    on_every_server(|maker| {
        let (mut primary, mut replica) = pair(maker);
        let mut wire = primary.wire();
        wire.ok("EB.RESERVE small stable MEMORY 4kb FPR 1% AUDIT 8kb");
        wire.ok("EB.RESERVE exact stable MEMORY 4kb FPR 1% AUDIT 4mb NX");
        wire.ok("EB.RESERVE usual stable MEMORY 4kb FPR 1% AUDIT NX");
        wire.ok("EB.RESERVE window auto EXPECT 500 WINDOW 100ms AUDIT 64kb");
        let keys = ["small", "exact", "usual", "window"];
        let (mut chance, mut seen) = (Chance(seed()), HashSet::new());
        let (mut new, mut repeats) = ((0u32, 0u32), (0u32, 0u32));
        for round in 0..60 {
            let items: Vec<String> = (0..500).map(|_| (chance.bits() % 5000).to_string()).collect();
            for key in keys {
                let verdicts = wire.say(&format!("EB.MADD {key} {}", items.join(" "))).yeses();
                for (item, is_new) in items.iter().zip(verdicts).filter(|_| key == "exact") {
                    let (counts, wrong) = match seen.insert(item.clone()) {
                        true => (&mut new, !is_new),
                        false => (&mut repeats, is_new),
                    };
                    *counts = (counts.0 + 1, counts.1 + u32::from(wrong));
                }
            }
            if round % 20 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
        }
        let status = wire.say("EB.STATUS exact");
        let rate = |name: &str| status.field(name).expect("a rate").text().parse::<f64>().expect("a number");
        assert_eq!(status.field("audit_one_in").map(Reply::number), Some(1));
        for (name, (all, wrong)) in [("measured_fpr", new), ("measured_fnr", repeats)] {
            let truth = f64::from(wrong) / f64::from(all);
            assert!((rate(name) - truth).abs() < 1e-9, "{name}: {} where {truth} is counted", rate(name));
        }
        assert_eq!(status.field("standing").map(Reply::text).as_deref(), Some("kept"));
        let sampled = wire.say("EB.STATUS small");
        assert!(sampled.field("audit_one_in").map(Reply::number) > Some(1), "{sampled:?}");
        assert_eq!(wire.say("EB.INFO small").field("audit_bytes").map(Reply::number), Some(8192));
        assert_eq!(wire.say("EB.INFO usual").field("audit_bytes").map(Reply::number), Some(256 << 10));
        // The file of a window of time has the time in it.
        keys[..3].iter().for_each(|key| copies(&primary, &mut wire, key));
        primary.wait_for(&replica);
        let before = keys.map(|key| primary.digest(key));
        assert_eq!(keys.map(|key| replica.digest(key)), before, "the replica");
        wire.ok("DEBUG LOADAOF");
        assert_eq!(keys.map(|key| primary.digest(key)), before, "all commands again");
        primary.rewrite();
        wire.ok("DEBUG LOADAOF");
        assert_eq!(keys.map(|key| primary.digest(key)), before, "a rewritten append-only file");
        wire.ok("DEBUG RELOAD");
        assert_eq!(keys.map(|key| primary.digest(key)), before, "an RDB file");
        // What was copied while it was empty follows the same keys, and can be merged.
        wire.ok("EB.RESERVE one bloom EXPECT 1000 FPR 1% SEED 1 AUDIT 8kb");
        wire.ok("EB.RESERVE other bloom EXPECT 1000 FPR 1% SEED 1 AUDIT 8kb");
        assert_eq!(wire.say("COPY one two").number(), 1);
        wire.say("EB.MADD one a b");
        wire.say("EB.MADD two b c");
        wire.ok("EB.MERGE UNION one two");
        let refused = wire.say("EB.MERGE UNION one other").text();
        assert!(refused.contains("COPY it while it is empty"), "{refused}");
        wire.ok("CONFIG SET everbloom.max-filter-bytes 20000");
        let refused = wire.say("EB.RESERVE f stable MEMORY 4kb AUDIT 64kb").text();
        assert!(refused.contains("max-filter-bytes"), "{refused}");
        let refused = wire.say("EB.RESERVE f stable MEMORY 4kb AUDIT 10").text();
        assert!(refused.contains("AUDIT is ") && refused.contains("from 4KiB"), "{refused}");
        primary.check("audits");
        replica.check("audits");
    });
}

/// Debug builds of the module fail on demand (`everbloom.fault`): 1 is a panic in a write, 2 a growth that gets no memory.
#[test]
fn a_defect_in_a_write_leaves_copies_equal_or_stops_them() {
    on_every_server(|maker| {
        let (primary, mut replica) = pair(maker);
        let mut wire = primary.wire();
        if wire.say("CONFIG SET everbloom.fault 0").is_error() {
            eprintln!("SKIPPED: defects on demand, which only debug builds of the module have");
            return;
        }
        wire.ok("EB.RESERVE f counting EXPECT 1000 FPR 1%");
        wire.ok("EB.RESERVE grows scalable FPR 1%");
        wire.ok("CONFIG SET everbloom.fault 1");
        let reply = wire.say("EB.ADD f a");
        assert!(reply.is_error(), "{reply:?}");
        assert_eq!(primary.info("everbloom", "panics_caught"), "1");
        primary.wait_for(&replica);
        assert_eq!(replica.digest("f"), primary.digest("f"), "after a panic");
        assert!(!wire.say("EB.ADD f b").is_error(), "it goes on");
        // The primary refuses what it has no memory for; what was there stays.
        wire.ok("CONFIG SET everbloom.fault 2");
        let refused = (0..200).any(|start| {
            let items: Vec<String> = (0..1000).map(|item| format!("{start}:{item}")).collect();
            wire.say(&format!("EB.MADD grows {}", items.join(" "))).is_error()
        });
        assert!(refused, "no growth was refused");
        primary.wait_for(&replica);
        assert_eq!(replica.digest("grows"), primary.digest("grows"), "after a growth that was refused");
        // A replica that cannot follow may not go on as if it had.
        replica.wire().ok("CONFIG SET everbloom.fault 2");
        for start in 0..400 {
            let items: Vec<String> = (0..1000).map(|item| format!("more:{start}:{item}")).collect();
            assert!(!wire.say(&format!("EB.MADD grows {}", items.join(" "))).is_error());
        }
        assert!(replica.ends(), "the replica goes on without a growth that the primary had");
    });
}

/// A replica stops for filters of BF, too, which another command would else make anew by the replica's own settings.
#[test]
fn a_replica_without_memory_for_a_filter_stops() {
    on_every_server(|maker| {
        let source = Server::new(maker);
        source.wire().ok("BF.RESERVE b 0.01 1000");
        let header = source.wire().say("BF.SCANDUMP b 0").items()[1].clone().into_bytes();
        let commands: [[&[u8]; 4]; 2] =
            [[b"BF.RESERVE", b"b", b"0.01", b"1000"], [b"BF.LOADCHUNK", b"b", b"1", &header]];
        for command in commands {
            let (primary, mut replica) = pair(maker);
            if replica.wire().say("CONFIG SET everbloom.fault 2").is_error() {
                eprintln!("SKIPPED: defects on demand, which only debug builds of the module have");
                return;
            }
            assert_eq!(primary.wire().call(&command).text(), "OK");
            assert!(replica.ends(), "the replica goes on without a filter of its primary");
        }
    });
}
